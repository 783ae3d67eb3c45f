"""The first-person walker against closed forms, and what it bumps into."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from physics_scenes import CAMERAS, STONE, body, floor, world_spec, yaw

from wmeval.clock import SceneClock
from wmeval.conventions import look_at
from wmeval.errors import UserError
from wmeval.records import WorldLog
from wmeval.scene import Box, Camera, Capsule, Collision, Cylinder, Modal, Scene, Sphere, Sun
from wmeval.sim.drivers.footprints import Court, Outline, convex_hull, outlines
from wmeval.sim.protocol import DriverSpec, EventRules, Probe, WorldSpec
from wmeval.sim.world import LocalWorld

EVERY = Probe(states="substeps")
DT = 1 / 240
R, H = 0.4, 1.8


def walker_spec(*obstacles, start=(0.0, 0.0), heading=0.0, **params):
    player = body(
        "player",
        Capsule(radius=R, height=H),
        motion="kinematic",
        position=(*start, H / 2),
        quaternion_wxyz=yaw(heading),
    )
    base = world_spec(floor(), player, *obstacles)
    scene = Scene(
        name="walk",
        bodies=base.scene.bodies,
        materials=(STONE,),
        cameras=(Camera(name="first", position=(0, 0, 1.6), target=(0, 1, 1.6)), *CAMERAS),
        sun=Sun(direction=(0.3, 0.4, -0.8660254)),
        modal=(Modal(name="pitch", size=1, unit="rad", doc="down"),),
    )
    driver = DriverSpec(
        kind="first_person",
        params={
            "body": "player",
            "camera": "first",
            "radius": R,
            "height": H,
            "eye": 1.6,
            **params,
        },
    )
    return WorldSpec(scene, {}, (driver,), SceneClock(base.clock.dt, base.clock.control_period),
                     EventRules())  # fmt: skip


def walk(spec, *legs):
    """Log of legs (substeps, action)."""
    world = LocalWorld(spec)
    logs, until = [world.reset()], 0
    for steps, action in legs:
        until += steps
        logs.append(world.advance(action, until, EVERY))
    return WorldLog.concatenate(logs)


def test_speed_follows_exponentially_and_the_way_is_its_sum():
    log = walk(walker_spec(), (240, (0.0, 0.5, 0.0, 0.0)), (240, (0.0, 0.0, 0.0, 0.0)))
    v = log.state.linear_velocity[:, 1]
    k = np.arange(1, 241)
    rise = 2.0 * (1 - np.exp(-10 * k * DT))
    np.testing.assert_allclose(v[1:241, 1], rise, atol=1e-9)
    np.testing.assert_allclose(log.state.position[1:241, 1, 1], np.cumsum(rise) * DT, atol=1e-9)
    np.testing.assert_allclose(v[241:, 1], rise[-1] * np.exp(-10 * k * DT), atol=1e-9)
    assert np.abs(v[:, [0, 2]]).max() == 0
    assert np.ptp(log.state.position[:, 1, 2]) == 0


def test_full_diagonal_is_no_faster_than_straight_ahead():
    log = walk(walker_spec(), (480, (1.0, 1.0, 0.0, 0.0)))
    assert np.linalg.norm(log.state.linear_velocity[-1, 1]) == pytest.approx(4.0, abs=1e-6)
    x, y, _ = log.state.position[-1, 1]
    assert x == pytest.approx(y)


def test_yaw_turns_right_and_forward_follows_the_heading():
    log = walk(walker_spec(yaw_deg=90.0), (240, (0.0, 0.0, 1.0, 0.0)), (240, (0.0, 1.0, 0.0, 0.0)))
    assert log.state.angular_velocity[100, 1, 2] == pytest.approx(-math.pi / 2)
    x, y, _ = log.state.position[-1, 1]
    assert x > 3.0
    assert abs(y) < 1e-9
    strafe = walk(walker_spec(heading=90.0), (240, (1.0, 0.0, 0.0, 0.0)))
    assert strafe.state.position[-1, 1, 1] > 3.0  # facing -x, right is +y


def test_the_camera_is_at_the_eyes_and_pitches_to_its_limit():
    spec = walker_spec(pitch_deg=60.0, pitch_limit_deg=80.0)
    log = walk(spec, (240, (0.3, 0.5, 0.4, 0.5)), (480, (0.0, 0.0, 0.0, 1.0)),
               (960, (0.0, 0.0, 0.0, -1.0)))  # fmt: skip
    pitch = log.state.modal["pitch"][:, 0]
    assert math.degrees(pitch[240]) == pytest.approx(30.0)
    assert math.degrees(pitch.max()) == pytest.approx(80.0)
    assert math.degrees(pitch[-1]) == pytest.approx(-80.0)
    for row in (0, 100, 240, 500, len(log) - 1):
        w, _, _, k = log.state.quaternion_wxyz[row, 1]
        heading = 2 * math.atan2(k, w)
        eye = log.state.position[row, 1] + [0, 0, 1.6 - H / 2]
        flat = math.cos(pitch[row])
        ahead = np.array(
            [-flat * math.sin(heading), flat * math.cos(heading), -math.sin(pitch[row])]
        )
        wanted = look_at(eye, eye + ahead)
        np.testing.assert_allclose(log.cameras.T_world_camera[row, 0], wanted, atol=1e-9)


def test_a_wall_stops_what_goes_into_it_and_leaves_what_goes_along():
    wall = body("wall", Box(half_extents=(0.5, 20, 1.0)), motion="static", position=(2.0, 0, 1.0))
    log = walk(walker_spec(wall), (960, (0.5, 0.5, 0.0, 0.0)))
    x, y = log.state.position[:, 1, 0], log.state.position[:, 1, 1]
    assert x.max() == pytest.approx(1.5 - R, abs=1e-9)
    assert x[-1] == pytest.approx(1.5 - R, abs=1e-9)
    # Along the wall it keeps its part of the velocity.
    assert log.state.linear_velocity[-1, 1] == pytest.approx([0, 2.0, 0], abs=1e-6)
    assert y[-1] == pytest.approx(
        np.cumsum(2.0 * (1 - np.exp(-10 * np.arange(1, 961) * DT)))[-1] * DT
    )


def test_it_never_stands_inside_an_obstacle():
    rng = np.random.default_rng(5)
    obstacles = [
        body("post", Cylinder(radius=0.5, height=2), motion="static", position=(2, 1, 1)),
        body("box", Box(half_extents=(0.8, 0.4, 1)), motion="static", position=(-2, 2, 1),
             quaternion_wxyz=yaw(30)),
        body("ball", Sphere(radius=0.9), motion="static", position=(0.5, -2.5, 0.9)),
        *(body(f"wall_{i}", Box(half_extents=(5, 0.3, 1)), motion="static",
               position=(4.7 * math.sin(math.radians(t)), 4.7 * math.cos(math.radians(t)), 1),
               quaternion_wxyz=yaw(-t)) for i, t in enumerate((0, 90, 180, 270))),
    ]  # fmt: skip
    spec = walker_spec(*obstacles)
    legs = [(60, tuple(rng.uniform(-1, 1, 4))) for _ in range(60)]
    log = walk(spec, *legs)
    court = Court(outlines(spec.scene, 0.25, H, (1,)), R)
    where = log.state.position[:, 1, :2]
    clear = np.array([court.clear(x, y) for x, y in where[::7]])
    assert clear.min() > -0.005
    assert (clear < 0.01).any()  # it did bump
    assert np.abs(where).max() < 4.7


def test_steps_low_enough_are_no_obstacle():
    kerb = body("kerb", Box(half_extents=(3, 0.2, 0.1)), motion="static", position=(0, 2.0, 0.1))
    assert walk(walker_spec(kerb), (480, (0, 1.0, 0, 0))).state.position[-1, 1, 1] > 5
    high = body("kerb", Box(half_extents=(3, 0.2, 0.2)), motion="static", position=(0, 2.0, 0.2))
    stopped = walk(walker_spec(high), (480, (0, 1.0, 0, 0))).state.position[-1, 1, 1]
    assert stopped == pytest.approx(1.8 - R, abs=1e-9)


def test_movers_push_and_walls_win():
    mover = body("visitor", Cylinder(radius=0.3, height=1.8), motion="kinematic",
                 position=(-3, 0.05, 0.9))  # fmt: skip
    around = [[-3, 0.05, 0.9], [3, 0.05, 0.9], [9, 0.05, 0.9], [0, 20, 0.9], [-9, 0.05, 0.9]]
    spline = DriverSpec(kind="spline", params={"body": "visitor", "speed": 1.0, "points": around})
    spec = walker_spec(mover, movers=["visitor"])
    spec = dataclasses.replace(spec, drivers=(spline, *spec.drivers))
    log = walk(spec, (900, (0, 0, 0, 0)))
    gap = np.linalg.norm(log.state.position[:, 1, :2] - log.state.position[:, 2, :2], axis=1)
    assert gap.min() == pytest.approx(R + 0.3, abs=1e-3)
    assert np.linalg.norm(log.state.position[-1, 1, :2]) > 0.3


def test_a_start_inside_an_obstacle_is_refused():
    post = body("post", Cylinder(radius=0.5, height=2), motion="static", position=(0.3, 0, 1))
    with pytest.raises(UserError, match="begins inside an obstacle"):
        LocalWorld(walker_spec(post)).reset()


# --- outlines -----------------------------------------------------------------------------------


def test_gap_to_a_polygon_is_the_distance_to_its_nearest_point():
    rng = np.random.default_rng(2)
    hull = convex_hull([tuple(p) for p in rng.normal(size=(12, 2)).tolist()])
    outline = Outline(0, hull, 0.0, (0, 0), (0, 0))
    corners = np.array(hull)
    edges = np.roll(corners, -1, axis=0) - corners
    t = np.linspace(0, 1, 4001)[:, None]
    rim = np.concatenate([c + t * e for c, e in zip(corners, edges, strict=True)])
    for x, y in rng.uniform(-3, 3, (300, 2)):
        gap, ux, uy = outline.gap(x, y)
        nearest = np.linalg.norm(rim - [x, y], axis=1).min()
        cross = edges[:, 0] * (y - corners[:, 1]) - edges[:, 1] * (x - corners[:, 0])
        inside = (cross > 0).all()
        assert (gap < 0) == inside
        assert abs(gap) == pytest.approx(nearest, abs=2e-3)
        assert math.hypot(ux, uy) == pytest.approx(1)
        # The way out leads to the rim.
        assert outline.gap(x - gap * ux, y - gap * uy)[0] == pytest.approx(0, abs=1e-9)


def test_outlines_are_of_what_reaches_into_the_heights():
    tilted = Collision(shape=Box(half_extents=(1, 1, 0.1)), position=(0, 0, 0.2),
                       quaternion_wxyz=(math.cos(0.3), math.sin(0.3), 0, 0))  # fmt: skip
    bodies = (
        body("low", Box(half_extents=(1, 1, 0.1)), motion="static", position=(0, 0, 0.1)),
        body("roof", Box(half_extents=(1, 1, 0.1)), motion="static", position=(0, 0, 2.5)),
        body("post", Cylinder(radius=0.2, height=3), motion="static", position=(5, 0, 1.5)),
        body("ramp", (tilted,), motion="static", position=(9, 0, 0)),
        body("dynamic", Sphere(radius=1), position=(20, 0, 1)),
    )
    found = outlines(world_spec(*bodies).scene, 0.25, 1.8)
    assert [bodies[o.body].name for o in found] == ["post", "ramp"]
    assert found[0].radius == 0.2
    assert found[0].corners == ((5.0, 0.0),)
    assert len(found[1].corners) == 4
