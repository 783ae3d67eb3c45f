"""Worlds that every engine must play, and which engines are here."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from physics_scenes import body, world_spec

from wmeval.clock import SceneClock
from wmeval.jobs import installed
from wmeval.scene import Cloth, Joint, Scene, Sheet, Sphere
from wmeval.sim.engines import WORKERS
from wmeval.sim.protocol import Probe, WorldSpec
from wmeval.sim.world import World, open_world

_last: dict[str, World] = {}
LENGTH, RADIUS, MASS = 0.28, 0.03, 0.1
GYRATION = LENGTH**2 + 0.4 * RADIUS**2


def engine_here(name: str) -> str:
    """The engine's name, or a skip that says how to get it."""
    if name in WORKERS and installed.version(name) is None:
        pytest.skip(f"engine {name} is not installed: {installed.mend(name)}")
    return name


def at_rate(spec: WorldSpec, rate: int, engine: str, **options: Any) -> WorldSpec:
    dt = Fraction(1, rate)
    config = spec.config.model_copy(update={"options": options})
    return dataclasses.replace(spec, clock=SceneClock(dt, dt), engine=engine, config=config)


def cloth_of(surface: Sheet, **fields: Any) -> Cloth:
    """A light cloth that stretches and hardly bends, 1 m up."""
    return Cloth(
        **{
            "name": "cloth",
            "surface": surface,
            "areal_density": 0.2,
            "stretch": 100.0,
            "shear": 40.0,
            "bending": 1e-5,
            "position": (0.0, 0.0, 1.0),
            **fields,
        }
    )


def with_deformables(spec: WorldSpec, *items: Any) -> WorldSpec:
    scene = Scene.model_validate({**spec.scene.model_dump(), "deformables": items})
    return dataclasses.replace(spec, scene=scene)


def joined(spec: WorldSpec, *joints: Joint) -> WorldSpec:
    scene = spec.scene.model_copy(update={"joints": joints})
    return dataclasses.replace(spec, scene=type(scene).model_validate(scene.model_dump()))


def pendulum(degrees: float, kind: str = "hinge", turned: bool = False, **fields: Any) -> WorldSpec:
    """A ball on a massless rod, at an angle from hanging down, toward -x."""
    angle = math.radians(degrees)
    ball = body(
        "ball",
        Sphere(radius=RADIUS),
        mass=MASS,
        position=(-LENGTH * math.sin(angle), 0.0, 1.0 - LENGTH * math.cos(angle)),
        quaternion_wxyz=(math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0) if turned else (1, 0, 0, 0),
    )
    joint = Joint(name="pivot", kind=kind, body="ball", pivot=(0, 0, 1), axis=(0, 2, 0), **fields)  # type: ignore[arg-type]
    return joined(world_spec(ball), joint)


def period(degrees: float, extra_inertia: float = 0.0) -> float:
    """Of a pendulum of finite amplitude: 4 K(sin(angle / 2)) / omega by the arithmetic mean."""
    inertia = MASS * GYRATION + extra_inertia
    small = 2 * math.pi * math.sqrt(inertia / (MASS * 9.81 * LENGTH))
    a, g = 1.0, math.cos(math.radians(degrees) / 2)
    for _ in range(6):
        a, g = (a + g) / 2, math.sqrt(a * g)
    return small / a


def crossings(times: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Times at which x rises through zero."""
    k = np.flatnonzero((x[:-1] < 0) & (x[1:] >= 0))
    return times[k] + (times[k + 1] - times[k]) * (-x[k]) / (x[k + 1] - x[k])


def play(spec: WorldSpec, seconds: float, action: tuple[float, ...] = (), **probe: Any) -> Any:
    """Everything that a world tells of some seconds."""
    # One worker an engine serves all: a heavy library takes seconds to start.
    world = _last[spec.engine] = open_world(spec, instead_of=_last.get(spec.engine))
    first = world.reset()
    steps = round(seconds / float(spec.clock.dt))
    rest = world.advance(action, steps, Probe(**{"states": "substeps", **probe}))
    return type(first).concatenate([first, rest])
