"""Engines by name. A new engine is one new file and one row here."""

from __future__ import annotations

import importlib

from wmeval.errors import UserError
from wmeval.sim.protocol import Engine, EngineInfo

ENGINES: dict[str, str] = {
    "bullet": "wmeval.sim.engines.bullet:BulletEngine",
    "carom": "wmeval.sim.engines.carom:CaromEngine",
    "blender": "wmeval.sim.engines.blender:BlenderEngine",
}
"""Engine name to "module:Class"; the module is imported on first use."""


def make_engine(name: str) -> Engine:
    """A fresh engine of a row of `ENGINES`.

    Raises:
        UserError: no such row, or the engine's library is not installed.
    """
    if name not in ENGINES:
        raise UserError(f"no engine {name!r}; known: {', '.join(sorted(ENGINES))}")
    module, attribute = ENGINES[name].split(":")
    try:
        engine: Engine = getattr(importlib.import_module(module), attribute)()
    except ModuleNotFoundError as error:
        raise UserError(
            f"engine {name!r} needs the package {error.name!r}: pip install {error.name}"
        ) from error
    return engine


def engine_info(name: str) -> EngineInfo:
    """What an engine is, without building a scene.

    Raises:
        UserError: as `make_engine`.
    """
    engine = make_engine(name)
    try:
        return engine.info
    finally:
        engine.close()
