"""A figure driven by actions: speeds, jumps, turns, contact."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from physics_scenes import TA, body, floor, world_spec

from wmeval.assets.chess import piece_collision
from wmeval.clock import SceneClock
from wmeval.errors import UserError
from wmeval.records import WorldLog
from wmeval.scene import Box, Capsule, Cylinder, Scene, Sphere
from wmeval.sim.drivers.character import grounded_modal
from wmeval.sim.protocol import DriverSpec, EngineConfig, Probe
from wmeval.sim.world import LocalWorld

R, H = 0.28, 1.75
FINE = EngineConfig(
    iterations=20,
    options={"contact_processing_threshold": 0.05, "contact_breaking_threshold": 0.05},
)
STILL, AHEAD, RIGHT = (0.0, 0.0, 0.0, 0.0), (0.0, 1.0, 0.0, 0.0), (1.0, 0.0, 0.0, 0.0)
SPRINT, JUMP = (0.0, 1.0, 0.0, 1.0), (0.0, 0.0, 1.0, 0.0)


def world(
    *obstacles, dt=Fraction(1, 240), gravity=9.81, at=(0.0, 0.0, H / 2), ground=None, **params
):
    figure = body("figure", Capsule(radius=R, height=H), mass=75.0, position=at, friction=0.0,
                  upright=True)  # fmt: skip
    spec = world_spec(ground or floor(), figure, *obstacles, dt=dt, gravity=(0.0, 0.0, -gravity))
    scene: Scene = spec.scene.model_copy(update={"modal": (grounded_modal(),)})
    driver = DriverSpec(kind="character", params={"body": "figure", **params})
    return LocalWorld(
        dataclasses.replace(
            spec, scene=scene, drivers=(driver,), config=FINE, clock=SceneClock(dt, TA)
        )
    )


def play(made: LocalWorld, *acts: tuple[int, tuple[float, ...]]) -> WorldLog:
    """Substeps under each action in turn; every state and contact."""
    logs, at = [made.reset()], 0
    for count, action in acts:
        at += count
        logs.append(made.advance(action, at, Probe("substeps", contacts=True)))
    made.close()
    return WorldLog.concatenate(logs)


def path(log: WorldLog):
    return log.state.position[:, 1], log.state.linear_velocity[:, 1]


def grounded(log: WorldLog):
    return log.state.modal["grounded"][:, 0]


# --- walking ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "speed"),
    [(AHEAD, 2.0), (SPRINT, 5.0), ((0.0, 0.5, 0.0, 0.0), 1.0), ((-1.0, -1.0, 0.0, 0.0), 2.0),
     ((0.6, 0.8, 0.0, 1.0), 5.0)],
)  # fmt: skip
def test_speed_follows_the_action_with_limited_acceleration(action, speed):
    log = play(world(), (240, action), (240, STILL))
    position, velocity = path(log)
    way = np.array(action[:2]) / math.hypot(*action[:2])
    np.testing.assert_allclose(velocity[240, :2], speed * way, atol=1e-6)
    pace = np.hypot(*velocity[:, :2].T)
    assert pace.max() < speed + 1e-6
    gain = np.diff(velocity[:, :2], axis=0) * 240
    assert np.hypot(*gain.T).max() < 9.0 + 1e-6
    # v / a to full speed, then even; and the same to stop: the distances of uniform acceleration.
    there = position[240, :2] @ way
    assert there == pytest.approx(speed * (1 - speed / 9.0 / 2), abs=speed / 240)
    assert position[-1, :2] @ way - there == pytest.approx(speed**2 / 18, abs=speed / 240)
    assert pace[-1] < 1e-6
    assert np.abs(position[:, 2] - H / 2).max() < 1e-4


def test_the_first_channel_is_world_x_whatever_it_faces():
    log = play(world(), (240, AHEAD), (240, RIGHT), (240, AHEAD))
    position, velocity = path(log)
    assert velocity[480, :2] == pytest.approx([2.0, 0.0], abs=1e-6)
    assert velocity[720, :2] == pytest.approx([0.0, 2.0], abs=1e-6)
    assert position[-1, 0] > 1.5


def test_slippery_ground_gives_less_grip():
    ice = floor(friction=0.1)
    position, velocity = path(play(world(ground=ice), (240, AHEAD)))
    assert velocity[-1, 1] == pytest.approx(0.9, abs=1e-6)
    assert position[-1, 1] == pytest.approx(0.45, abs=0.01)


def test_grip_is_the_pairs_friction():
    """Sole times ground, without a cap: what `Perturbation` scales by its factor."""
    foot = body("foot", (), motion="kinematic", friction=0.5)
    _, velocity = path(play(world(foot, ground=floor(friction=0.4), sole="foot"), (60, AHEAD)))
    assert velocity[-1, 1] == pytest.approx(9.0 * 0.2 * 0.25, abs=1e-6)
    foot = foot.model_copy(update={"friction": 3.0})
    _, velocity = path(play(world(foot, sole="foot"), (12, AHEAD)))
    assert velocity[-1, 1] == pytest.approx(27.0 * 0.05, abs=1e-6)
    with pytest.raises(UserError, match="no body 'shoe'"):
        play(world(sole="shoe"), (1, STILL))


def test_a_heavier_figure_gets_the_same_forces():
    """75 kg that were to be 37.5 kg: half the acceleration, and half the speed of a jump."""
    _, velocity = path(play(world(mass=37.5), (24, AHEAD)))
    assert velocity[-1, 1] == pytest.approx(0.5 * 9.0 * 0.1, abs=1e-6)
    position, _ = path(play(world(mass=37.5), (240, JUMP)))
    assert position[:, 2].max() - H / 2 == pytest.approx((4.43 / 2) ** 2 / (2 * 9.81), rel=1e-3)


# --- turning ------------------------------------------------------------------------------------


def headings(log: WorldLog):
    w, x, y, z = log.state.quaternion_wxyz[:, 1].T
    assert np.abs([x, y]).max() < 1e-9  # it never tips
    return np.unwrap(2 * np.arctan2(z, w))


@pytest.mark.parametrize("wanted", [-120.0, -45.0, 30.0, 90.0, 170.0])
def test_it_turns_smoothly_to_where_it_goes(wanted):
    a = math.radians(wanted)
    log = play(world(), (360, (-math.sin(a), math.cos(a), 0.0, 0.0)))
    yaw = headings(log)
    assert yaw[-1] == pytest.approx(a, abs=1e-3)
    # Monotone, without overshoot: critically damped.
    assert (np.diff(yaw) * np.sign(a) > -1e-9).all()
    rate = log.state.angular_velocity[:, 1, 2]
    np.testing.assert_allclose(np.diff(yaw) * 240, rate[1:], atol=2e-3)
    t = np.arange(361) / 240
    omega = 2 / 0.18
    np.testing.assert_allclose(yaw, a * (1 - (1 + omega * t) * np.exp(-omega * t)), atol=2e-3)


def test_it_keeps_facing_when_it_stops():
    yaw = headings(play(world(), (240, RIGHT), (240, STILL)))
    assert yaw[-1] == pytest.approx(-math.pi / 2, abs=1e-3)


# --- jumping ------------------------------------------------------------------------------------


@pytest.mark.parametrize("dt", [Fraction(1, 240), Fraction(1, 480), Fraction(1, 120)])
@pytest.mark.parametrize(("speed", "gravity"), [(4.43, 9.81), (3.0, 9.81), (4.43, 3.7)])
def test_a_jump_rises_v2_over_2g_and_takes_2v_over_g(speed, gravity, dt):
    steps = round(3 / dt)
    log = play(world(gravity=gravity, dt=dt, jump_speed=speed), (4, STILL), (steps, JUMP))
    height = log.state.position[:, 1, 2] - H / 2
    # The discrete flight misses the top by g dt^2 / 8 at most.
    assert height.max() == pytest.approx(speed**2 / (2 * gravity), abs=gravity * float(dt) ** 2)
    air = np.flatnonzero(grounded(log) == 0)
    assert len(air) * float(dt) == pytest.approx(2 * speed / gravity, abs=2.1 * float(dt))
    # Held all along, it was one press: one flight.
    assert (np.diff(air) == 1).all()
    t = (air - 4) * float(dt)
    np.testing.assert_allclose(
        height[air], speed * t - gravity * t**2 / 2, atol=1.01 * speed * float(dt)
    )


def test_a_new_press_is_a_new_jump_but_not_in_flight():
    log = play(world(), (8, JUMP), (40, STILL), (8, JUMP), (240, STILL), (8, JUMP), (40, STILL))
    air = grounded(log) == 0
    starts = np.flatnonzero(np.diff(air.astype(int)) == 1)
    assert starts.tolist() == [0, 296]


def test_it_steers_a_little_in_flight_and_keeps_its_speed():
    log = play(world(), (240, AHEAD), (1, (0.0, 1.0, 1.0, 0.0)), (120, STILL))
    _, velocity = path(log)
    assert velocity[300, 1] == pytest.approx(2.0, abs=1e-9)
    log = play(world(), (1, JUMP), (120, RIGHT))
    _, velocity = path(log)
    assert velocity[121, 0] == pytest.approx(2.5 * 120 / 240, abs=1e-6)


def test_grounded_is_true_to_contact():
    plinth = body("plinth", Box(half_extents=(1, 1, 0.1)), motion="static", position=(0, 3.2, 0.1))
    log = play(
        world(plinth), (120, STILL), (200, AHEAD), (150, (0.0, 1.0, 1.0, 0.0)), (240, STILL),
        (8, JUMP), (300, STILL),
    )  # fmt: skip
    contacts = log.contacts
    of = (contacts.body_a == 1) | (contacts.body_b == 1)
    up = np.where(contacts.body_a == 1, 1.0, -1.0) * contacts.normal[:, 2]
    supported = np.zeros(len(log.state), bool)
    supported[contacts.substep[of & (up >= 0.7)] + 1] = True
    flag = grounded(log)
    assert flag[0] == 1
    np.testing.assert_array_equal(flag[1:], supported[1:])
    # It ends on the plinth, at rest, grounded.
    assert log.state.position[-1, 1, 2] == pytest.approx(H / 2 + 0.2, abs=1e-3)
    assert flag[-1] == 1
    assert (flag[120:320] == 1).all()
    assert (flag == 0).sum() > 300


def test_a_figure_that_begins_in_the_air_is_not_grounded():
    log = play(world(at=(0.0, 0.0, 1.5)), (240, STILL))
    flag = grounded(log)
    fall = math.sqrt(2 * (1.5 - H / 2) / 9.81)
    assert flag[0] == 0
    assert np.flatnonzero(flag)[0] / 240 == pytest.approx(fall, abs=2.1 / 240)


# --- contact ------------------------------------------------------------------------------------


def pieces():
    placed = (("king", 0, 3), ("rook", 2.4, 1.5), ("pawn", -2.2, 1.8), ("knight", 2.0, -2.2),
              ("bishop", -1.5, -2.5), ("queen", -3.2, -0.5))  # fmt: skip
    return [
        body(kind, piece_collision(kind), motion="static", position=(x, y, 0.0), friction=0.2)
        for kind, x, y in placed
    ]


@pytest.mark.parametrize("seed", range(4))
def test_random_walks_never_enter_a_piece(seed):
    rng = np.random.default_rng(seed)
    ball = body("ball", Sphere(radius=1.2), motion="static", position=(3.5, 4.0, 1.2), friction=0.2)
    made = world(*pieces(), ball)
    targets = [b.position for b in made.spec.scene.bodies[2:]]
    logs, at = [made.reset()], 0
    for turn in range(60):
        # At one of them, more or less; then at the next.
        x, y, _ = logs[-1].state.position[-1, 1]
        tx, ty, _ = targets[(turn // 6 + seed) % len(targets)]
        angle = math.atan2(ty - y, tx - x) + rng.normal(0, 0.4)
        jump, sprint = float(rng.random() < 0.4), float(rng.random() < 0.6)
        action = (math.cos(angle), math.sin(angle), jump, sprint)
        at += 60
        logs.append(made.advance(action, at, Probe("substeps", contacts=True)))
    made.close()
    log = WorldLog.concatenate(logs)
    touched = set(log.contacts.body_a) | set(log.contacts.body_b)
    assert len(touched) >= 5
    assert log.contacts.distance.min() > -0.005
    position, velocity = path(log)
    assert np.abs(log.state.quaternion_wxyz[:, 1, 1:3]).max() < 1e-9
    # Nothing is thrown about: a wall gives no more speed than there was.
    assert np.linalg.norm(velocity, axis=1).max() < math.hypot(5.0, 6.5)
    # Pieces stay where they are.
    still = log.state.position[:, 2:]
    assert (still == still[0]).all()
    assert np.isfinite(position).all()


def test_it_slides_along_what_it_meets():
    wall = body("wall", Box(half_extents=(3, 0.5, 1)), motion="static", position=(0, 2, 1))
    log = play(world(wall), (600, (0.6, 0.8, 0.0, 0.0)))
    position, velocity = path(log)
    # At the wall only the part of the push along it is left; it takes the asked velocity along x.
    assert position[-1, 1] == pytest.approx(1.5 - R, abs=1e-3)
    assert velocity[-1, 0] == pytest.approx(1.2, abs=0.02)
    hits = log.contacts.body_b == 2
    hits |= log.contacts.body_a == 2
    # It leans on the wall with no more than its own force.
    late = hits & (log.contacts.substep > 400)
    force = np.bincount(log.contacts.substep[late], log.contacts.normal_impulse[late]) * 240
    assert force.max() <= 75.0 * 9.0 + 1e-6


def test_it_walks_up_a_low_step_and_not_through_a_high_one():
    low = body("low", Box(half_extents=(2, 2, 0.03)), motion="static", position=(0, 3, 0.03))
    high = body("high", Cylinder(radius=1, height=0.8), motion="static", position=(0, 3, 0.4))
    position, _ = path(play(world(low), (480, AHEAD)))
    assert position[-1, 2] == pytest.approx(H / 2 + 0.06, abs=1e-3)
    position, _ = path(play(world(high), (480, AHEAD)))
    assert position[-1, 1] < 2.0


# --- wrong use ----------------------------------------------------------------------------------


def test_the_body_must_be_upright_and_gravity_must_pull_down():
    made = world()
    scene = made.spec.scene.with_bodies(figure={"upright": False})
    with pytest.raises(UserError, match="must be dynamic and upright"):
        LocalWorld(dataclasses.replace(made.spec, scene=scene)).reset()
    scene = made.spec.scene.model_copy(update={"gravity": (1.0, 0.0, -9.81)})
    with pytest.raises(UserError, match="gravity along -z only"):
        LocalWorld(dataclasses.replace(made.spec, scene=scene)).reset()


def test_the_same_actions_give_the_same_bits():
    acts = [(100, SPRINT), (30, (1.0, 0.3, 1.0, 1.0)), (200, RIGHT)]
    one, two = (play(world(*pieces()), *acts) for _ in range(2))
    assert one.state.sha256() == two.state.sha256()
