"""Whether an engine takes a configuration, asked before anything is built or imported of it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module

from wmeval.errors import UserError
from wmeval.sim.engines.bullet_options import NAMES, parameters
from wmeval.sim.engines.engine_options import PYTHON, options_of
from wmeval.sim.protocol import EngineConfig

OF_EVERY_ENGINE = ("iterations", "restitution_threshold")
"""Fields of `EngineConfig` that are set by name beside an engine's own options."""
_TABLED = ("physx", "newton", "genesis", "isaac")
"""Engines whose modules hold OPTIONS, CHOICES and, where it is less than 1000, MAX_ITERATIONS."""


def check_names(engine: str, names: Iterable[str], beside: Iterable[str] = ()) -> None:
    """Refuse settings that an engine has not, where all kinds of them are given by name alike.

    Args:
        engine: row of `wmeval.sim.engines.ENGINES`; of those that are not swept nothing is checked.
        names: of what is set.
        beside: what else may be set there.

    Raises:
        UserError: a name that is none; the message has all that are.
    """
    if engine == "bullet":
        options = set(NAMES)
    elif engine in _TABLED:
        module = import_module(f"wmeval.sim.engines.{engine}")
        options = {*module.OPTIONS, *module.CHOICES, PYTHON}
    else:
        return
    known = sorted({*options, *OF_EVERY_ENGINE, *beside})
    for name in names:
        if name not in known:
            raise UserError(f"{engine} has no option {name!r}; known: {', '.join(known)}")


def check_config(engine: str, config: EngineConfig) -> None:
    """Refuse what an engine would refuse; its library need not be installed.

    Args:
        engine: row of `wmeval.sim.engines.ENGINES`; of those that are not swept nothing is checked.
        config: its settings.

    Raises:
        UserError: an option that it has not, or a value out of its range.
    """
    if engine == "bullet":
        parameters(config)
    if engine not in _TABLED:
        return
    module = import_module(f"wmeval.sim.engines.{engine}")
    most = getattr(module, "MAX_ITERATIONS", None)
    options_of(engine, module.OPTIONS, config, module.CHOICES, iterations=most)
