"""Drivers against closed forms."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from physics_scenes import (
    DT,
    LEG_NAMES,
    beam_domino,
    body,
    drive,
    world_spec,
)

from wmeval.conventions import look_at
from wmeval.errors import UserError
from wmeval.records import WorldLog
from wmeval.scene import DYNAMIC, KINEMATIC, Cylinder, Sphere
from wmeval.sim.drivers import make_driver
from wmeval.sim.protocol import DriverSpec, Probe
from wmeval.sim.rows import look_at_row
from wmeval.sim.world import LocalWorld

EVERY = Probe(states="substeps")


def driver(kind: str, **params) -> DriverSpec:
    return DriverSpec(kind=kind, params=params)


def run(spec, steps, action=()):
    world = LocalWorld(spec)
    return WorldLog.concatenate([world.reset(), world.advance(action, steps, EVERY)])


def test_force_accelerates_by_f_over_m_along_its_channels():
    ball = body("ball", Sphere(radius=0.2), mass=4.0)
    push = driver("force", body="ball", axes=[[0, 1, 0], [1, 0, 0]], actions=[2, 0], newtons=80.0)
    log = run(world_spec(ball, gravity=(0, 0, 0), drivers=(push,)), 240, (-0.25, 9.0, 0.5))
    v = log.state.linear_velocity[-1, 0]
    assert np.allclose(v, [-0.25 * 20.0, 0.5 * 20.0, 0], rtol=1e-9)
    # x = a dt^2 k (k + 1) / 2
    assert log.state.position[-1, 0, 1] == pytest.approx(10.0 * float(DT) ** 2 * 240 * 241 / 2)
    assert np.abs(log.state.angular_velocity).max() == 0


def test_force_stops_at_the_speed_cap():
    ball = body("ball", Sphere(radius=0.2), mass=4.0)
    push = driver("force", body="ball", axes=[[1, 0, 0]], newtons=80.0, max_speed=20.0)
    log = run(world_spec(ball, gravity=(0, 0, 0), drivers=(push,)), 480, (1.0,))
    speed = log.state.linear_velocity[:, 0, 0]
    step = 20.0 * float(DT)
    assert 20.0 <= speed[-1] < 20.0 + step
    assert speed[230] == pytest.approx(230 * step)
    # Vertical speed does not count.
    falling = body("ball", Sphere(radius=0.2), mass=4.0, linear_velocity=(0, 0, -90))
    log = run(world_spec(falling, drivers=(push,)), 120, (1.0,))
    assert log.state.linear_velocity[-1, 0, 0] == pytest.approx(120 * step)


def post_world(speed: float, threshold: float):
    # m v_n = 6 * speed against a post that stands free.
    ball = body(
        "ball", Sphere(radius=0.3), mass=6.0, position=(-1, 0, 1), linear_velocity=(speed, 0, 0)
    )
    post = body(
        "post", Cylinder(radius=0.2, height=2), motion="kinematic", mass=3.0, position=(0, 0, 1)
    )
    release = driver(
        "release", striker="ball", struck=["post"], released=["post"], impulse=threshold
    )
    return world_spec(ball, post, gravity=(0, 0, 0), drivers=(release,))


@pytest.mark.parametrize(("speed", "released"), [(4.99, False), (5.01, True)])
def test_release_threshold_is_the_approach_momentum(speed, released):
    log = run(post_world(speed, 30.0), 120)
    motion = log.state.motion[:, 1]
    assert motion[0] == KINEMATIC
    assert motion[-1] == (DYNAMIC if released else KINEMATIC)
    moved = np.abs(log.state.position[-1, 1] - [0, 0, 1]).max()
    assert (moved > 0.1) == released
    if released:
        k = int(np.argmax(motion == DYNAMIC))
        # The striker got its state back: the substep of the release did not happen to it.
        for name in ("position", "linear_velocity", "angular_velocity", "quaternion_wxyz"):
            values = getattr(log.state, name)[:, 0]
            assert np.array_equal(values[k], values[k - 1])
        assert not log.state.linear_velocity[k, 1].any()
        momentum = 6.0 * log.state.linear_velocity[:, 0] + 3.0 * log.state.linear_velocity[:, 1]
        assert np.abs(momentum[k:] - [6 * speed, 0, 0]).max() < 1e-6


def test_pillars_hold_under_a_glancing_hit_and_give_way_head_on():
    held = drive(LocalWorld(beam_domino(0.52)), seconds=2.5, probe=Probe())[-1].state
    freed = drive(LocalWorld(beam_domino(0.0)), seconds=2.5, probe=Probe())[-1].state
    for name in (*LEG_NAMES, "slab"):
        assert held.motion[-1, held.body(name)] == KINEMATIC
        assert freed.motion[-1, freed.body(name)] == DYNAMIC


def follow(mode: str, **fields) -> DriverSpec:
    return driver(
        "follow_camera", camera="follow", body="ball", offset=[0, -12, 6], mode=mode, **fields
    )


def test_smooth_camera_follows_the_closed_form():
    speed = np.array([3.0, 5.0, 0.0])
    ball = body("ball", Sphere(radius=0.5), linear_velocity=tuple(speed))
    log = run(world_spec(ball, gravity=(0, 0, 0), drivers=(follow("smooth"),)), 480)
    dt = float(DT)
    factor = 1 - math.exp(-8 * dt)
    k = np.arange(481)
    # lag_{k+1} = (lag_k + v dt)(1 - factor), lag_0 = 0
    lag = np.outer(dt * (1 - factor) / factor * (1 - (1 - factor) ** k), speed)
    target = log.state.position[:, 0]
    expected = target + np.array([0, -12, 6]) - lag
    pose = log.cameras.T_world_camera[:, 0]
    assert np.abs(pose[:, :3, 3] - expected).max() < 1e-9
    for i in (0, 1, 100, 480):
        assert np.abs(pose[i] - look_at(expected[i], target[i])).max() < 1e-12
    # The other camera stays.
    assert np.ptp(log.cameras.T_world_camera[:, 1], axis=0).max() == 0


def test_smooth_camera_does_not_depend_on_the_rate_of_steps():
    from fractions import Fraction

    ball = body("ball", Sphere(radius=0.5), position=(0, 0, 0), linear_velocity=(0, 6, 0))
    ends = []
    for dt in (Fraction(1, 240), Fraction(1, 960)):
        spec = world_spec(ball, gravity=(0, 0, 0), drivers=(follow("smooth"),), dt=dt)
        ends.append(run(spec, int(1 / dt)).cameras.T_world_camera[-1, 0, :3, 3])
    assert np.abs(ends[0] - ends[1]).max() < 0.02


def test_rigid_camera_keeps_its_offset():
    ball = body("ball", Sphere(radius=0.5), position=(1, 2, 3), linear_velocity=(3, 5, 1))
    log = run(
        world_spec(ball, gravity=(0, 0, 0), drivers=(follow("rigid", look_at=[0, 0, 1]),)), 48
    )
    pose = log.cameras.T_world_camera[:, 0]
    assert np.abs(pose[:, :3, 3] - log.state.position[:, 0] - [0, -12, 6]).max() < 1e-12
    assert np.abs(pose[:, :3, :3] - pose[0, :3, :3]).max() < 1e-12
    target = log.state.position[-1, 0] + [0, 0, 1]
    assert np.abs(pose[-1] - look_at(pose[-1, :3, 3], target)).max() < 1e-12


def test_camera_rows_equal_the_convention():
    rng = np.random.default_rng(5)
    for _ in range(200):
        eye, target = rng.normal(size=(2, 3)) * 10
        row = np.array(look_at_row(tuple(eye), tuple(target))).reshape(4, 4)
        assert np.abs(row - look_at(eye, target)).max() < 1e-12
    with pytest.raises(UserError, match="must not look along z"):
        look_at_row((0, 0, 1), (0, 0, 0))


def test_bad_drivers_are_refused_with_the_mend():
    with pytest.raises(UserError, match=r"no driver 'gale'; known: .*force"):
        make_driver(driver("gale"))
    with pytest.raises(UserError, match="'force': newtons"):
        make_driver(driver("force", body="ball", axes=[[1, 0, 0]]))
    with pytest.raises(UserError, match="2 axes but 1 actions"):
        make_driver(
            driver("force", body="b", axes=[[1, 0, 0], [0, 1, 0]], actions=[0], newtons=1.0)
        )
    ball = body("ball", Sphere(radius=0.5))
    lost = driver("force", body="bal", axes=[[1, 0, 0]], newtons=1.0)
    with pytest.raises(UserError, match="no body 'bal'; there are ball"):
        run(world_spec(ball, drivers=(lost,)), 1, (0.0,))
    with pytest.raises(UserError, match="no camera 'top'"):
        run(
            world_spec(
                ball,
                drivers=(driver("follow_camera", camera="top", body="ball", offset=[1, 0, 0]),),
            ),
            1,
        )
    massless = body("post", Sphere(radius=0.5), motion="kinematic", position=(1.2, 0, 0))
    release = driver("release", striker="ball", struck=["post"], released=["post"], impulse=1.0)
    with pytest.raises(UserError, match="cannot be released: give it a mass"):
        run(world_spec(ball, massless, drivers=(release,)), 1)


def test_a_measured_torque_begins_at_time_0():
    """Two samples of 6 N m, 0.1 s apart, on a free ball: what it turns by is their impulse."""
    ball = body("ball", Sphere(radius=0.5), mass=10.0)
    turn = driver("torques", axis=[0, 0, 1], step=0.1, torques={"ball": [6.0, 6.0]})
    spec = world_spec(ball, gravity=(0, 0, 0), drivers=(turn,))
    settled = dataclasses.replace(spec, settle=48)
    rates = [run(s, 48).state.angular_velocity[:, 0, 2] for s in (spec, settled)]
    assert rates[1][0] == 0
    assert rates[0][-1] == pytest.approx(6.0 * 0.1 / (0.4 * 10.0 * 0.25), rel=1e-6)
    assert np.array_equal(rates[0], rates[1])
