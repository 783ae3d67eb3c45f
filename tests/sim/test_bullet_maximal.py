"""Bullet with maximal coordinates: exact restitution, full account of impulses, same damping."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from physics_scenes import body, world_spec

from wmeval.assets.meshes import sphere
from wmeval.clock import SceneClock
from wmeval.errors import UserError
from wmeval.records import WorldLog
from wmeval.scene import Body, Box, Mesh, MeshData, Sphere
from wmeval.sim.protocol import EngineConfig, Probe
from wmeval.sim.world import LocalWorld

G = 9.81
RADIUS, MASS = 0.0335, 0.057
CLOCK = SceneClock(Fraction(1, 720), Fraction(1, 24))
EXACT = EngineConfig(iterations=20, options={"maximal_coordinates": 1, "split_impulse": 1})
BALL = dataclasses.replace(
    sphere(10),
    vertices=sphere(10).vertices * np.float32(RADIUS / np.abs(sphere(10).vertices).max()),
)


def run(*bodies: Body, steps: int, config: EngineConfig = EXACT, **meshes: MeshData) -> WorldLog:
    spec = dataclasses.replace(
        world_spec(*bodies),
        clock=CLOCK,
        config=config,
        meshes={m.content_hash(): m for m in meshes.values()},
    )
    world = LocalWorld(spec)
    log = WorldLog.concatenate([world.reset(), world.advance((), steps, Probe("substeps", True))])
    world.close()
    return log


def table(slope: float = 0.0, **fields: float) -> Body:
    """A slab whose upper side goes through the origin and falls along +x."""
    return body(
        "table",
        Box(half_extents=(20, 2, 0.5)),
        motion="static",
        position=(-0.5 * math.sin(slope), 0, -0.5 * math.cos(slope)),
        quaternion_wxyz=(math.cos(slope / 2), 0, math.sin(slope / 2), 0),
        **fields,
    )


def ball(height: float, slope: float = 0.0, *, hull: bool = False, **fields: float) -> Body:
    """Its lowest point ``height`` off the table, along the normal."""
    off = RADIUS + height
    shape = Mesh(sha256=BALL.content_hash()) if hull else Sphere(radius=RADIUS)
    place = (off * math.sin(slope), 0, off * math.cos(slope))
    return body("ball", shape, mass=MASS, position=place, **fields)


def residuals(log: WorldLog, which: int, mass: float, linear_damping: float = 0.0) -> np.ndarray:
    """Momentum change less gravity, damping and impulses, (steps, 3) [N s]."""
    dt = float(CLOCK.dt)
    v = log.state.linear_velocity[:, which]
    impulses = np.zeros((len(v) - 1, 3))
    c = log.contacts
    j = c.normal_impulse[:, None] * c.normal + c.tangential_impulse
    for sign, ids in ((1, c.body_a), (-1, c.body_b)):
        mine = ids == which
        np.add.at(impulses, c.substep[mine], sign * j[mine])
    kept = (1 - linear_damping) ** dt
    return np.asarray(mass * (v[1:] - kept * v[:-1] - [0, 0, -G * dt]) - impulses)


@pytest.mark.parametrize("hull", [False, True])
@pytest.mark.parametrize("height", [0.5, 0.55, 0.61, 0.7])
def test_restitution_is_exact_at_any_phase_of_the_impact(height: float, hull: bool) -> None:
    log = run(
        table(restitution=0.6), ball(height, hull=hull, restitution=0.75), steps=500, hull=BALL
    )
    v = log.state.linear_velocity[:, 1, 2]
    hit = int(np.argmax(v > 0))
    assert v[hit] / -v[hit - 1] == pytest.approx(0.45, abs=1e-9)


def test_what_stays_lies_on_the_surface() -> None:
    log = run(table(restitution=0.3), ball(0.6, restitution=0.15), steps=720)
    lowest = log.state.position[:, 1, 2] - RADIUS
    assert lowest[-1] == pytest.approx(0.0, abs=2e-5)
    assert log.state.linear_velocity[-1, 1, 2] == pytest.approx(0.0, abs=1e-6)
    # One substep's way at impact, and gone within a frame.
    hit = int(np.argmin(lowest))
    assert lowest[hit] > -G * (hit / 720) / 720
    assert lowest[hit + 30] > -2e-4


def test_every_impulse_is_in_the_list() -> None:
    slope = 0.3
    for hull in (False, True):
        log = run(
            table(slope, restitution=0.6, friction=0.6),
            ball(0.3, slope, hull=hull, restitution=0.5, friction=0.7, linear_damping=0.1),
            steps=1400,
            hull=BALL,
        )
        assert len(np.unique(log.contacts.substep)) > 50
        assert np.abs(residuals(log, 1, MASS, 0.1)).max() < 1e-12


def test_damping_is_a_share_per_second() -> None:
    top = ball(1.0, linear_velocity=(2, 0, 0), angular_velocity=(0, 3, 0),
               linear_damping=0.1, angular_damping=0.5)  # fmt: skip
    state = run(top, steps=720).state
    assert state.linear_velocity[-1, 0, 0] == pytest.approx(2 * 0.9, rel=1e-9)
    assert state.angular_velocity[-1, 0, 1] == pytest.approx(3 * 0.5, rel=1e-9)


def test_a_sphere_rolls_at_five_sevenths() -> None:
    slope = 0.4
    log = run(table(slope, friction=0.8), ball(0.0, slope, friction=0.8), steps=720)
    along = log.state.linear_velocity[:, 1] @ [math.cos(slope), 0, -math.sin(slope)]
    assert along[-1] == pytest.approx(5 / 7 * G * math.sin(slope), rel=1e-4)


def test_options_that_do_not_go_together_are_refused() -> None:
    with pytest.raises(UserError, match="split_impulse needs maximal_coordinates"):
        run(ball(1.0), steps=1, config=EngineConfig(options={"split_impulse": 1}))
