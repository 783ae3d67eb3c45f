"""Engines by name. A new engine is one new file and one row here."""

from __future__ import annotations

import importlib
import sys

from wmeval.errors import UserError
from wmeval.jobs import installed
from wmeval.sim.protocol import Engine, EngineConfig, EngineInfo

ENGINES: dict[str, str] = {
    "bullet": "wmeval.sim.engines.bullet:BulletEngine",
    "carom": "wmeval.sim.engines.carom:CaromEngine",
    "blender": "wmeval.sim.engines.blender:BlenderEngine",
    "physx": "wmeval.sim.engines.physx:PhysxEngine",
    "newton": "wmeval.sim.engines.newton:NewtonEngine",
    "genesis": "wmeval.sim.engines.genesis:GenesisEngine",
    "isaac": "wmeval.sim.engines.isaac:IsaacEngine",
}
"""Engine name to "module:Class"; the module is imported on first use."""

WORKERS = ("physx", "newton", "genesis")
"""Engines whose library has an environment of its own (`wmeval.jobs.installed`, the same name).

Where this interpreter lacks the library, their whole world runs under the one that has it.
"""


def interpreter_of(name: str, config: EngineConfig) -> str | None:
    """The interpreter that an engine's world must run under; None: this one.

    Args:
        name: row of `ENGINES`.
        config: option ``python`` names an interpreter, so that two builds compare side by side.

    Raises:
        UserError: the engine's library is not installed.
    """
    if name not in WORKERS:
        return None
    python = config.options.get("python", "")
    if not isinstance(python, str):
        raise UserError(f"{name} option python = {python!r}: name an interpreter")
    found = installed.interpreter(name, python)
    return None if found == sys.executable else found


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
