"""The cue: placing, aiming, striking, ending; and where stick and eye are."""

import math
from fractions import Fraction

import numpy as np
import pytest

from wmeval.envs.billiard_game import CONTACT_S, MAX_FORCE_N, MISCUE, compose
from wmeval.envs.billiard_room import BALL_MASS, BALL_RADIUS, REACH
from wmeval.sim.drivers import make_driver
from wmeval.sim.drivers.cue import aim, places_are_free, struck
from wmeval.sim.drivers.cue_pose import Standpoint, eye_pose, stick_pose
from wmeval.sim.engines import make_engine
from wmeval.sim.protocol import EngineConfig

R = BALL_RADIUS
PLACES = [(0.7, -0.1), (0.1, 0.05), (-0.6, 0.3)]
APART = (0.5, 0.2, -0.3, 0.4, -0.8, -0.6)


def engine(places=PLACES, dt=Fraction(1, 240)):
    parts = compose(places)
    found = make_engine("carom")
    drivers = [make_driver(d) for d in parts.drivers]
    found.build(parts.scene, parts.meshes, EngineConfig(), dt, drivers)
    found.names = {b.name: i for i, b in enumerate(parts.scene.bodies)}
    return found


def act(balls=(0.0,) * 6, angle=0.0, force=0.0, hit=(0.0, 0.0), execute=0.0, end=0.0):
    return (*balls, angle, force, *hit, execute, end)


def go(world, action, steps=4):
    world.run(action, world.substep + steps)


def places(world):
    return np.array(
        [world.pose(world.names[n])[0][:2] for n in ("cue_ball", "yellow_ball", "red_ball")]
    )


def game(world):
    moving, refused, ignored, over, since = world.modal("game")
    return {"moving": moving, "refused": refused, "ignored": ignored, "over": over, "since": since}


# --- placing ------------------------------------------------------------------------------------


def test_balls_follow_the_action_while_nothing_moves():
    world = engine()
    go(world, act(APART))
    np.testing.assert_array_equal(places(world), np.array(APART).reshape(3, 2) * REACH)
    moved = (0.4, 0.2, *APART[2:])
    go(world, act(moved))
    np.testing.assert_array_equal(places(world), np.array(moved).reshape(3, 2) * REACH)
    assert game(world)["refused"] == 0


def test_an_overlapping_placement_is_refused_as_a_whole():
    world = engine()
    go(world, act())
    np.testing.assert_array_equal(places(world), PLACES)
    assert game(world)["refused"] == 1
    near = 2 * R * 0.999 / REACH[0]
    go(world, act((0.0, 0.0, near, 0.0, 0.9, 0.9)))
    np.testing.assert_array_equal(places(world), PLACES)
    go(world, act(APART))
    assert game(world)["refused"] == 0


def test_off_the_table_is_refused():
    """A perturbed gain may ask for it."""
    world = engine()
    go(world, act((1.01, *APART[1:])))
    np.testing.assert_array_equal(places(world), PLACES)
    assert game(world)["refused"] == 1
    go(world, act((1.0, 1.0, -1.0, -1.0, 1.0, -1.0)))
    assert game(world)["refused"] == 0
    assert places_are_free([(*REACH, 0.0)], REACH, R)


def test_held_numbers_do_not_put_the_balls_back_after_a_shot():
    world = engine()
    go(world, act(APART, force=-0.9, execute=1.0))
    start = places(world)
    for _ in range(400):
        go(world, act(APART, force=-0.9))
    assert game(world)["moving"] == 0
    end = places(world)
    assert np.abs(end[0] - start[0]).max() > 0.05
    go(world, act((0.45, *APART[1:]), force=-0.9))
    assert places(world)[0, 0] == 0.45 * REACH[0]


def test_nothing_is_placed_while_balls_move():
    world = engine()
    go(world, act(force=-0.5, execute=1.0))
    go(world, act(APART, force=-0.5))
    assert game(world)["moving"] == 1
    assert places(world)[2].tolist() == list(PLACES[2])


def test_placing_and_striking_in_one_action():
    world = engine()
    go(world, act(APART, angle=-1.0, force=-0.5, execute=1.0), 1)
    start = np.array(APART).reshape(3, 2) * REACH
    assert world.modal("shot")[:2] == pytest.approx(start[0])
    assert world.modal("shot")[4:] == (0.0, 1.0)
    assert places(world)[0, 0] > start[0, 0]


# --- striking -----------------------------------------------------------------------------------


def test_aim_covers_its_ranges():
    assert aim(act(angle=-1.0, force=-1.0), 1300.0) == (0.0, 0.0, 0.0, 0.0)
    assert aim(act(angle=1.0, force=1.0), 1300.0)[:2] == pytest.approx((2 * math.pi, 1300.0))
    assert aim(act(hit=(0.6, 0.8)), 1.0)[2:] == pytest.approx((0.6, 0.8))
    assert aim(act(hit=(1.0, 1.0)), 1.0)[2:] == pytest.approx((math.sqrt(0.5), math.sqrt(0.5)))
    assert aim(act(force=-1.2), 1.0)[1] == 0.0


@pytest.mark.parametrize("hit", [(0.0, 0.0), (0.7, 0.2), (-0.3, -0.9)])
def test_a_shot_gives_the_impulse_and_its_moment(hit):
    """Angular momentum is r x J for the point where the tip hits."""
    world = engine()
    angle = 0.3
    go(world, act(angle=angle, force=0.2, hit=hit, execute=1.0), 1)
    table = world.table
    state = table.phases(0)[-1].state if len(table.phases(0)) == 2 else table.state(0, 0.0)
    theta = math.pi * (angle + 1)
    d = np.array([math.cos(theta), math.sin(theta), 0])
    impulse = 0.6 * MAX_FORCE_N * CONTACT_S * d
    right, up = np.array([d[1], -d[0], 0]), np.array([0, 0, 1])
    arm = MISCUE * R * (hit[0] * right + hit[1] * up)
    spin = np.cross(arm, impulse) / (0.4 * BALL_MASS * R * R)
    np.testing.assert_allclose([state.vx, state.vy, 0], impulse / BALL_MASS, atol=1e-12)
    np.testing.assert_allclose([state.wx, state.wy, state.wz], spin, atol=1e-9)


def test_struck_two_fifths_above_the_centre_rolls():
    linear, angular = struck(0.3, 0.0, 0.0, 0.4, mass=BALL_MASS, radius=R)
    assert angular[1] * R == pytest.approx(linear[0])


def test_only_a_rise_strikes_and_only_at_rest():
    world = engine()
    shot = act(force=-0.8, execute=1.0)
    for _ in range(5):
        go(world, shot)
    assert world.modal("shot")[5] == 1
    go(world, act(force=-0.8))
    go(world, shot)
    assert world.modal("shot")[5] == 1
    assert game(world)["ignored"] == 1
    while game(world)["moving"]:
        go(world, shot)
    go(world, shot)
    assert world.modal("shot")[5] == 1
    go(world, act(force=-0.8))
    go(world, shot)
    assert world.modal("shot")[5] == 2
    assert game(world)["ignored"] == 0


def test_no_force_is_no_motion():
    world = engine()
    go(world, act(force=-1.0, execute=1.0))
    assert game(world)["moving"] == 0
    np.testing.assert_array_equal(places(world), PLACES)


def test_how_long_execute_is_held_does_not_matter():
    one, two = engine(), engine()
    for k in range(60):
        go(one, act(force=0.0, execute=float(k < 1)))
        go(two, act(force=0.0, execute=float(k < 30)))
    np.testing.assert_array_equal(places(one), places(two))


def test_it_notes_what_the_cue_ball_touches():
    world = engine([(0.5, 0.0), (0.0, 0.0), (-0.9, 0.5)])
    go(world, act(force=0.6, hit=(0.0, 0.9), execute=1.0), 60)
    one, two, cushions = world.modal("touched")
    assert (one, two) == (1, 0)
    assert cushions == 0
    while game(world)["moving"]:
        go(world, act(force=0.6, hit=(0.0, 0.9)))
    assert world.modal("touched")[2] > 0


def test_force_end_stops_everything_for_good():
    world = engine()
    go(world, act(force=0.5, execute=1.0), 40)
    go(world, act(force=0.5, end=1.0))
    here = places(world)
    assert game(world)["over"] == 1
    assert world.table.at_rest
    go(world, act(APART, execute=1.0), 20)
    np.testing.assert_array_equal(places(world), here)


# --- what is shown ------------------------------------------------------------------------------


def stand(**changes):
    known = {
        "time": 0.0, "ball": (0.2, -0.1, R), "angle": 2.0, "power": 0.5, "hit": (0.0, 0.0),
        "shot": None, "moving": False, "since": 0.0, "radius": R, "half": REACH, "cushion": 0.015,
    }  # fmt: skip
    return Standpoint(**{**known, **changes})


def axis_of(quaternion):
    w, x, y, z = quaternion
    return np.array([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)])


@pytest.mark.parametrize("hit", [(0.0, 0.0), (0.4, 0.2), (-0.3, -0.3)])
@pytest.mark.parametrize("angle", [0.0, 1.0, 3.0, 5.5])
def test_the_stick_points_at_the_hit_point(hit, angle):
    s = stand(hit=hit, angle=angle)
    tip, rotation = stick_pose(s)
    axis = axis_of(rotation)
    d = np.array([math.cos(angle), math.sin(angle), 0])
    right = np.array([d[1], -d[0], 0])
    deep = math.sqrt(1 - hit[0] ** 2 - hit[1] ** 2)
    point = np.array(s.ball) + R * (hit[0] * right + hit[1] * np.array([0, 0, 1]) - deep * d)
    reach = point - np.array(tip)
    np.testing.assert_allclose(reach, np.linalg.norm(reach) * axis, atol=1e-12)
    assert axis[2] < 0
    np.testing.assert_allclose(axis[:2] / np.hypot(*axis[:2]), d[:2], atol=1e-12)


def test_the_stick_clears_the_rail_behind_the_ball():
    for x in (0.0, 1.0, REACH[0] - 0.01, REACH[0]):
        s = stand(ball=(x, 0.3, R), angle=math.pi, power=0.0)
        tip, rotation = stick_pose(s)
        axis = axis_of(rotation)
        if REACH[0] - x > 0.05:
            height = tip[2] - axis[2] / -axis[0] * (REACH[0] + R - tip[0])
            assert height > R + 0.015 + 0.011


def test_the_stick_follows_through_and_steps_aside():
    shot = (0.2, -0.1, 2.0, 1.0)
    d = np.array([math.cos(2.0), math.sin(2.0)])
    address = np.array(stick_pose(stand())[0])
    struck_at = np.array(stick_pose(stand(time=1.0, shot=shot, moving=True))[0])
    through = np.array(stick_pose(stand(time=1.2, shot=shot, moving=True))[0])
    aside = np.array(stick_pose(stand(time=2.5, shot=shot, moving=True))[0])
    assert (struck_at - address)[:2] @ d > 0.05
    assert (through - struck_at)[:2] @ d == pytest.approx(0.07, abs=0.002)
    assert np.linalg.norm(aside - through) > 0.5
    # It comes back without a jump to where the ball has come to rest.
    times = np.linspace(5.0, 6.0, 400)
    path = np.array(
        [stick_pose(stand(time=t, ball=(-0.5, 0.3, R), shot=shot, since=5.0))[0] for t in times]
    )
    assert np.abs(np.diff(path, axis=0)).max() < 0.02
    end = stick_pose(stand(time=9.0, ball=(-0.5, 0.3, R)))[0]
    np.testing.assert_allclose(path[-1], end, atol=1e-12)


def test_the_eye_stands_behind_the_cue_and_looks_along_the_shot():
    eye, target = (np.array(v) for v in eye_pose(stand()))
    ahead = target - eye
    d = np.array([math.cos(2.0), math.sin(2.0)])
    assert ahead[:2] @ d == pytest.approx(np.hypot(*ahead[:2]))
    ball = np.array(stand().ball)
    assert (ball - eye)[:2] @ d > 0.3
    assert 0.2 < eye[2] < 0.6
