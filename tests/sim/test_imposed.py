"""Imposed motions: exact poses, what is carried goes along, kicks after a world has settled."""

import dataclasses
import json
import math
import subprocess
import sys

import numpy as np
import pytest
from engine_worlds import at_rate, play
from physics_scenes import body, world_spec

from wmeval.assets.gauge_cards import Drive
from wmeval.assets.gauge_profiles import motion
from wmeval.conventions import quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import Box, Sphere
from wmeval.sim.drivers import make_driver
from wmeval.sim.protocol import DriverSpec
from wmeval.sim.wire import pack_spec, unpack_spec
from wmeval.sim.world import open_world

RATE = 180
PLATE = {"motion": "kinematic", "mass": 0.0, "friction": 1.0, "restitution": 1.0}


def spec_of(kind, **params):
    return DriverSpec(kind=kind, params=json.loads(json.dumps(params)))


def led(drive=None, *, cube=None, **params):
    """A plate 0.4 m wide that a driver leads, and a cube on it."""
    plate = body("plate", Box(half_extents=(0.2, 0.2, 0.01)), position=(0.1, 0, 0.5), **PLATE)
    bodies = [plate]
    if cube is not None:
        half = (0.025, 0.025, 0.025)
        place = {"position": (*cube, 0.535), "mass": 0.1, "friction": 0.5, "restitution": 0.0}
        bodies.append(body("cube", Box(half_extents=half), **place))
    if drive is not None:
        params["drive"] = drive.model_dump(mode="json")
    driver = spec_of("imposed", body="plate", **params)
    return at_rate(dataclasses.replace(world_spec(*bodies), drivers=(driver,)), RATE, "bullet")


def test_a_turn_about_a_pivot_is_exact_in_pose_and_velocity():
    pivot = (0.0, 0.1, 0.5)
    drive = Drive(
        body="plate", profile="turn",
        parameters={"angle": 1.2, "axis": (0, 1, 1), "duration": 0.7, "pivot": pivot},
    )  # fmt: skip
    state = play(led(drive), 1.0).state
    moved = motion(drive, state.times)
    k = np.array([0, 1, 1]) / math.sqrt(2)
    arm = np.array([0.1, -0.1, 0.0])
    c, s = np.cos(moved.angle)[:, None], np.sin(moved.angle)[:, None]
    where = c * arm + s * np.cross(k, arm) + (1 - c) * (k @ arm) * k
    assert state.position[:, 0] == pytest.approx(np.array(pivot) + where, abs=1e-12)
    turned = quaternion_to_matrix(state.quaternion_wxyz[:, 0])
    assert turned @ arm == pytest.approx(where, abs=1e-9)
    spin = moved.rate[:, None] * k
    assert state.angular_velocity[:, 0] == pytest.approx(spin, abs=1e-9)
    assert state.linear_velocity[:, 0] == pytest.approx(np.cross(spin, where), abs=1e-9)


def test_a_cube_rides_on_what_is_moved_and_ends_where_it_does():
    drive = Drive(body="plate", profile="move", parameters={"offset": (0.3, 0, 0), "duration": 1.0})
    state = play(led(drive, cube=(0.1, 0.05)), 1.5).state
    # 0.3 m in a second asks for 1.8 m/s^2: below mu g = 4.9.
    assert state.position[-1, 0] == pytest.approx([0.4, 0, 0.5], abs=1e-12)
    assert state.position[-1, 1, :2] == pytest.approx([0.4, 0.05], abs=5e-4)


def test_measured_motions_lead_and_hold_their_ends():
    rows = [(0.1, 0, 0, 0, 0), (0.3, 0.1, 0, 0.05, 0.2), (0.4, 0.1, 0, 0.05, 0.0)]
    state = play(led(samples=rows, axis=(0, 0, 1)), 0.5).state
    x = np.interp(state.times, [r[0] for r in rows], [r[1] for r in rows])
    assert state.position[:, 0, 0] == pytest.approx(0.1 + x, abs=1e-12)
    assert state.position[-1, 0, 2] == pytest.approx(0.55, abs=1e-12)
    assert state.quaternion_wxyz[-1, 0] == pytest.approx([1, 0, 0, 0], abs=1e-12)


def test_the_action_is_a_velocity_in_given_units():
    spec = led(action=1, speed=0.5, rate=2.0)
    state = play(spec, 0.5, (9.0, 1.0, 0.0, -1.0, 0.5)).state
    assert state.position[-1, 0] == pytest.approx([0.35, 0, 0.25], abs=1e-9)
    angle = 2 * math.atan2(state.quaternion_wxyz[-1, 0, 3], state.quaternion_wxyz[-1, 0, 0])
    assert angle == pytest.approx(0.5, abs=1e-9)
    with pytest.raises(UserError, match="beyond the action"):
        play(spec, 0.1, (0.0, 0.0))


@pytest.mark.parametrize(
    ("params", "says"),
    [
        ({}, "give one of drive, samples and action"),
        ({"action": 0, "samples": [(0, 0, 0, 0, 0), (1, 0, 0, 0, 0)]}, "give one of"),
        ({"samples": [(1, 0, 0, 0, 0), (1, 0, 0, 0, 0)]}, "ascending"),
        ({"drive": {"body": "x", "profile": "nod", "parameters": {}}}, "no profile 'nod'"),
        ({"action": 0, "axis": (0, 0, 0)}, "no length"),
    ],
)
def test_what_says_no_motion_is_refused(params, says):
    with pytest.raises(UserError, match=says):
        make_driver(spec_of("imposed", body="plate", **params))


def test_only_kinematic_bodies_are_led():
    spec = led(action=0, cube=(0.1, 0))
    driver = spec_of("imposed", body="cube", action=0)
    with pytest.raises(UserError, match="'cube' is dynamic"):
        play(dataclasses.replace(spec, drivers=(driver,)), 0.1)


def test_a_kicked_ball_has_settled_before_the_record_begins():
    ground = body("ground", Box(half_extents=(2, 2, 0.1)), position=(0, 0, -0.1), motion="static",
                  friction=0.0, restitution=0.0)  # fmt: skip
    ball = body("ball", Sphere(radius=0.1), position=(0, 0, 0.5), mass=1.0, friction=0.0,
                restitution=0.0)  # fmt: skip
    driver = spec_of("kick", velocities={"ball": (0.8, 0, 0)}, damped=["ball"])
    spec = at_rate(dataclasses.replace(world_spec(ground, ball), drivers=(driver,)), RATE, "bullet")
    spec = dataclasses.replace(spec, settle=3 * RATE)
    assert unpack_spec(*pack_spec(spec)).settle == 3 * RATE
    state = play(spec, 1.0).state
    assert state.substep[0] == 0
    assert state.position[0, 1] == pytest.approx([0, 0, 0.1], abs=2e-3)
    assert state.linear_velocity[0, 1] == pytest.approx([0.8, 0, 0], abs=1e-12)
    assert state.position[-1, 1, 0] == pytest.approx(0.8, abs=5e-3)
    # The same in a worker, to the bit.
    world = open_world(spec, branching=True)
    first = world.reset()
    world.close()
    assert first.state.sha256() == state.rows(slice(0, 1)).sha256()


def test_workers_of_heavy_engines_need_nothing_else_for_it():
    """Their environments have numpy and pydantic beside the engine's own packages."""
    lacking = ("yaml", "scipy", "h5py", "pybullet", "cv2")
    code = f"import sys; sys.modules.update(dict.fromkeys({lacking}))\n" + (
        "from wmeval.sim.drivers import make_driver, DriverSpec\n"
        "make_driver(DriverSpec(kind='imposed', params={'body': 'b', 'action': 0}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_engines_of_exact_time_do_not_settle():
    spec = dataclasses.replace(led(action=0), settle=5, engine="carom")
    with pytest.raises((UserError, ValueError), match=r"settles|carom"):
        open_world(spec).reset()


def test_what_a_led_body_carries_is_told_with_its_impulses():
    drive = Drive(body="plate", profile="move", parameters={"offset": (0.3, 0, 0), "duration": 1.0})
    log = play(led(drive, cube=(0.1, 0.05)), 1.0, contacts=True)
    contacts, mass = log.contacts, 0.1
    late = contacts.substep > 10
    assert set(contacts.body_a.tolist()) | set(contacts.body_b.tolist()) == {0, 1}
    # Weight, and the momentum that friction gives: none at both ends, so their sum is the drift.
    up = np.where(contacts.body_a == 1, 1.0, -1.0) * contacts.normal[:, 2]
    steps = RATE - 11
    lifted = (up * contacts.normal_impulse)[late].sum()
    assert lifted == pytest.approx(mass * 9.81 * steps / RATE, rel=0.02)
    sign = np.where(contacts.body_a == 1, 1.0, -1.0)[:, None]
    pushed = (sign * contacts.tangential_impulse)[:, 0].cumsum()
    assert pushed.max() == pytest.approx(mass * 0.45, rel=0.03)
    assert abs(pushed[-1]) < 0.03 * mass * 0.45
