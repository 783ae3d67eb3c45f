"""Whether an engine takes a configuration, asked before anything is built or imported of it."""

from __future__ import annotations

from importlib import import_module

from wmeval.sim.engines.bullet_options import parameters
from wmeval.sim.engines.engine_options import options_of
from wmeval.sim.protocol import EngineConfig

_TABLED = ("physx", "newton", "genesis", "isaac")
"""Engines whose modules hold OPTIONS, CHOICES and, where it is less than 1000, MAX_ITERATIONS."""


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
