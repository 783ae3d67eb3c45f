"""The library Genesis in this process: begun when it is first needed, and anew now and then.

Its compiled kernels of what bends belong to one scene and stay in memory when the scene is gone
(25 MB each was measured): after `SCENES` of them the library is put away as a whole, as soon as no
scene is left, and begun again with the next.
"""

from __future__ import annotations

from typing import Any

SCENES = 8
"""Scenes with cloth or solids after which the library is begun anew."""

_state = {"open": 0, "bent": 0}


def take() -> Any:
    """The library, for one more scene: `leave` when that is gone."""
    import genesis

    if not getattr(genesis, "_initialized", False):
        genesis.init(backend=genesis.cpu, precision="64", logging_level="error")
    _state["open"] += 1
    return genesis


def leave(genesis: Any, *, bent: bool) -> None:
    """A scene is gone.

    Args:
        genesis: the library.
        bent: cloth or solids were in it.
    """
    _state["open"] -= 1
    _state["bent"] += bent
    if _state["bent"] >= SCENES and not _state["open"]:
        genesis.destroy()
        _state["bent"] = 0
