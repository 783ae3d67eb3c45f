"""PyBullet as a module, and the options of its engine."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from types import ModuleType

from wmeval.errors import UserError
from wmeval.sim.engines.bullet_shapes import HULL_MARGIN
from wmeval.sim.protocol import EngineConfig

OPTIONS: dict[str, tuple[str, float, float]] = {
    # option: (PyBullet parameter, least, greatest)
    "contact_erp": ("contactERP", 0.0, 1.0),
    "friction_erp": ("frictionERP", 0.0, 1.0),
    "contact_slop": ("contactSlop", 0.0, 1.0),
    "cone_friction": ("enableConeFriction", 0, 1),
    "split_impulse": ("useSplitImpulse", 0, 1),
}
_SWITCHES = ("cone_friction", "split_impulse", "maximal_coordinates")
"""Engine options, all numbers. ``contact_erp`` 0.02 or 0 tightens restitution (0.536-0.558 for
0.54) and leaves a resting penetration of a third of a millimetre; the default is PyBullet's."""

_BODY_OPTIONS = {
    "contact_breaking_threshold": ("", 0.0, 1.0),
    "contact_processing_threshold": ("", 0.0, 1.0),
    "hull_margin": ("", 0.0, 0.01),
    "maximal_coordinates": ("", 0, 1),
}
"""Options that bodies are made with; the first is of the whole process. A hull collides
``hull_margin`` [m] before it is reached: 1 mm, by which hulls that begin in contact overlap; less
for those."""

NAMES = (*OPTIONS, *_BODY_OPTIONS)
"""Of all options."""

BREAKING_THRESHOLD_M = 0.02
"""Bullet's default: the distance at which a contact is given up."""


@dataclass(frozen=True)
class BodyOptions:
    """What bodies are made with.

    Attributes:
        breaking_threshold: distance at which a contact is given up [m], of the whole process.
        processing_threshold: distance from which a contact is solved [m].
        hull_margin: of hulls [m].
        maximal: bodies have maximal coordinates.
    """

    breaking_threshold: float
    processing_threshold: float
    hull_margin: float
    maximal: bool


def parameters(config: EngineConfig) -> tuple[dict[str, float], BodyOptions]:
    """Settings for PyBullet's world, and those of its bodies.

    Raises:
        UserError: an unknown option, a value out of its range, or two that exclude each other.
    """
    world: dict[str, float] = {}
    bodies = dict.fromkeys(_BODY_OPTIONS, 0.0)
    bodies["contact_breaking_threshold"] = BREAKING_THRESHOLD_M
    bodies["hull_margin"] = HULL_MARGIN
    known = {**OPTIONS, **_BODY_OPTIONS}
    for key, value in config.options.items():
        if key not in known:
            raise UserError(f"bullet has no option {key!r}; known: {', '.join(sorted(known))}")
        name, least, greatest = known[key]
        if isinstance(value, bool | str) or not isinstance(value, int | float):
            raise UserError(f"bullet option {key} = {value!r}: give a number")
        if not least <= value <= greatest:
            raise UserError(f"bullet option {key} = {value}: give {least} to {greatest}")
        if key in _BODY_OPTIONS:
            bodies[key] = float(value)
        else:
            world[name] = int(value) if key in _SWITCHES else float(value)
    if world.get("useSplitImpulse"):
        if not bodies["maximal_coordinates"]:
            raise UserError("bullet option split_impulse needs maximal_coordinates")
        # Every penetration is split off, not only deep ones.
        world["splitImpulsePenetrationThreshold"] = 0.0
    return world, BodyOptions(
        breaking_threshold=bodies["contact_breaking_threshold"],
        processing_threshold=bodies["contact_processing_threshold"],
        hull_margin=bodies["hull_margin"],
        maximal=bool(bodies["maximal_coordinates"]),
    )


@contextlib.contextmanager
def _quiet_import() -> Iterator[None]:
    """PyBullet prints its build time from C when it is imported; keep that off the terminal."""
    sys.stdout.flush()
    saved = os.dup(1), os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        os.dup2(null, 2)
        yield
    finally:
        # The line waits in C's buffer; it must leave while nobody listens.
        ctypes.CDLL(None).fflush(None)
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for descriptor in (*saved, null):
            os.close(descriptor)


def pybullet() -> ModuleType:
    """The module."""
    if "pybullet" in sys.modules:
        return sys.modules["pybullet"]
    with _quiet_import():
        return importlib.import_module("pybullet")
