"""The raycast-wheel car against closed forms, conservation and plain facts."""

import dataclasses
import hashlib
import math
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from vehicle_world import Drive, G, field_world

from wmeval.assets.car import AXLE, COM_HEIGHT, HALF_TRACK, WHEEL_RADIUS
from wmeval.envs.racing_car import MASS, TOP_SPEED_MPS, vehicle_params
from wmeval.errors import UserError
from wmeval.sim.drivers.tyres import (
    Tyre,
    deflected,
    engine_torque,
    grip,
    magic,
    spring_force,
    spun,
)
from wmeval.sim.engines.bullet_shapes import principal_inertia
from wmeval.sim.protocol import Probe
from wmeval.sim.world import LocalWorld

COAST, FULL, BRAKE = (0.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
WHEELBASE = 2 * AXLE
CAR = vehicle_params()
SPIN_INERTIA = CAR["wheel_inertia"]
SLIDING = magic(1.0, 10.0, 1.9, 0.97)
"""Friction of a locked wheel over the peak: 0.91 (B makes little difference there)."""


# --- pure parts ---------------------------------------------------------------------------------


def test_magic_formula_has_its_peak_and_its_slope():
    slips = np.linspace(0, 3, 3001)
    shares = np.array([magic(s, 10.0, 1.9, 0.97) for s in slips])
    assert shares.max() == pytest.approx(1.0, abs=1e-6)  # D
    assert shares[1] / slips[1] == pytest.approx(10.0 * 1.9, rel=1e-3)  # B C
    assert 0.1 < slips[shares.argmax()] < 0.3
    assert (shares[slips >= 1] == shares[slips >= 1][0]).all()
    assert shares[-1] == pytest.approx(0.9145, abs=1e-4)


def test_force_stays_in_the_friction_ellipse_and_never_drives():
    rng = np.random.default_rng(3)
    tyre = Tyre(1.1, 0.8)
    for _ in range(2000):
        load = rng.uniform(0, 8000)
        along, across, rim = rng.normal(0, 1, 3) * 10 ** rng.uniform(-4, 1.5)
        speed = max(math.hypot(along, across), abs(rim))
        slip = rim - along, -across
        # The tread has followed this slip for a while.
        u = deflected(tyre, 0.0, 0.0, *slip, speed, 10.0 / speed)
        fx, fy = grip(tyre, load, *u, *slip, speed)
        assert math.hypot(fx / 1.1, fy / 0.8) <= load * (1 + 1e-9)
        # Work of the road's force on the sliding tread: it only takes.
        assert fx * slip[0] + fy * slip[1] >= -1e-9
    assert grip(tyre, 0.0, 0.01, 0.02, 0.1, 0.1, 0.1) == (0.0, 0.0)


def test_steady_force_is_the_magic_formulas():
    tyre = Tyre(1.1, 0.8)
    for slip in (0.001, 0.05, 0.16, 0.5, 1.0):
        for angle in (0.0, 0.7, 2.0):
            speed = 17.0
            v = slip * speed * math.cos(angle), slip * speed * math.sin(angle)
            u = deflected(tyre, 0.0, 0.0, *v, speed, 5.0)
            fx, fy = grip(tyre, 3000.0, *u, *v, speed)
            share = magic(slip, 10.0, 1.9, 0.97)
            assert fx == pytest.approx(1.1 * 3000 * share * math.cos(angle), abs=1e-6)
            assert fy == pytest.approx(0.8 * 3000 * share * math.sin(angle), abs=1e-6)


def test_deflection_is_the_exact_solution():
    tyre = Tyre()
    u, v, speed = 0.013, 0.02, 11.0
    steps = 40_000
    by_euler = u
    stiffer = 19 * (v / speed) / magic(v / speed, 10.0, 1.9, 0.97)
    for _ in range(steps):
        by_euler += (v - speed / 0.35 * stiffer * by_euler) * (0.02 / steps)
    once = deflected(tyre, u, u, v, 0.0, speed, 0.02)
    assert once[0] == pytest.approx(by_euler, rel=1e-4)
    half = deflected(tyre, u, u, v, 0.0, speed, 0.01)
    assert deflected(tyre, *half, v, 0.0, speed, 0.01) == pytest.approx(once, rel=1e-12)
    assert deflected(tyre, u, u, v, 0.0, 0.0, 0.02) == (u + v * 0.02, u)
    # A relaxation length of rolling leaves 1/e of what a step of slip still lacks.
    step = deflected(tyre, 0.0, 0.0, 1e-6, 0.0, 10.0, 0.35 / 10)[0]
    assert step == pytest.approx((1 - 1 / math.e) * 1e-6 / 10 * 0.35, rel=1e-3)


def test_brakes_stop_a_wheel_and_never_turn_it():
    assert spun(10.0, 0.0, 3000.0, 1.3, 1 / 240) == pytest.approx(10 - 3000 / 1.3 / 240)
    assert spun(0.5, 0.0, 3000.0, 1.3, 1 / 240) == 0.0
    assert spun(-0.5, 0.0, 3000.0, 1.3, 1 / 240) == 0.0
    assert spun(0.0, 2999.0, 3000.0, 1.3, 1 / 240) == 0.0
    assert spun(0.0, 3001.0, 3000.0, 1.3, 1 / 240) == pytest.approx(1 / 1.3 / 240)


def test_engine_never_gives_more_than_its_power_and_ends_at_its_limiter():
    top = TOP_SPEED_MPS / WHEEL_RADIUS
    for spin in np.linspace(-20, 1.2 * top, 300):
        for throttle in (-1.0, -0.3, 0.4, 1.0):
            torque = engine_torque(throttle, spin, 1900.0, 150e3, top)
            assert abs(torque) <= 1900 * abs(throttle) + 1e-9
            assert torque * spin <= 150e3 * abs(throttle) * (1 + 1e-9)
    assert engine_torque(1.0, 1.01 * top, 1900.0, 150e3, top) == 0.0
    assert engine_torque(-1.0, -1.01 * top, 1900.0, 150e3, top) == 0.0


def test_springs_push_and_never_pull():
    assert spring_force(-0.1, 5.0, 4e4, 3e3, 0.2) == 0.0
    assert spring_force(0.1, -5.0, 4e4, 3e3, 0.2) == 0.0
    assert spring_force(0.1, 0.2, 4e4, 3e3, 0.2) == pytest.approx(4600)
    assert spring_force(0.21, 0.0, 4e4, 3e3, 0.2) == pytest.approx(8400 + 20 * 400)


# --- rest ---------------------------------------------------------------------------------------


def rests(seconds, world):
    drive = Drive(world, (seconds, COAST))
    drift = np.linalg.norm(drive.position - drive.position[0], axis=1).max()
    return drive.speed.max(), drift


def test_stands_still():
    speed, drift = rests(5, field_world())
    assert speed < 1e-3
    assert drift < 1e-3


@pytest.mark.accept
def test_stands_still_for_a_minute():
    world = field_world()
    speed, drift = rests(60, world)
    assert speed < 1e-3
    assert drift < 1e-3


def test_comes_to_rest_without_jitter():
    drive = Drive(field_world(velocity=(0.0, 12.0, 0.0)), (4, BRAKE), (16, COAST))
    late = drive.time > 15
    assert drive.speed[late].max() < 1e-3
    assert np.ptp(drive.position[late], axis=0).max() < 1e-3


def test_brakes_hold_it_on_a_slope():
    """A slope of 15 degrees is one in gravity; the treads hold like springs and do not creep."""
    tilt = math.radians(15)
    for across, along in ((0, 1), (1, 0)):
        gravity = (G * math.sin(tilt) * across, G * math.sin(tilt) * along, -G * math.cos(tilt))
        drive = Drive(field_world(gravity=gravity), (8, BRAKE), (6, BRAKE))
        late = drive.time > 8
        assert drive.speed[late].max() < 1e-3
        assert np.ptp(drive.position[late], axis=0).max() < 1e-3


# --- straight on --------------------------------------------------------------------------------


@pytest.mark.parametrize("v", [10.0, 25.0, 33.0])
def test_braking_distance(v):
    """All four wheels lock; then sliding friction and drag: m v dv/dx = -(mu m g + c v^2)."""
    drive = Drive(field_world(velocity=(0.0, v, 0.0)), (6, BRAKE))
    assert drive.speed[-240:].max() < 0.01
    distance = np.ptp(drive.position[:, 1])
    c, mu = CAR["drag"], SLIDING
    closed = MASS / (2 * c) * math.log1p(c * v * v / (mu * MASS * G))
    assert distance == pytest.approx(closed, rel=0.02)
    assert distance == pytest.approx(v * v / (2 * mu * G), rel=0.04)
    locked = np.abs(drive.modal["wheel_speed"]).max(axis=1) == 0
    assert drive.time[locked][0] < 0.25
    assert abs(drive.position[-1, 0]) < 1e-6


def test_acceleration_follows_torque_then_power_then_the_limiter():
    drive = Drive(field_world(), (30, FULL))
    a = np.gradient(drive.speed, drive.time)
    v = drive.velocity[:, 1]
    inertia = MASS + 4 * SPIN_INERTIA / WHEEL_RADIUS**2
    rolling = 0.012 * MASS * G

    def at(time):
        rows = np.abs(drive.time - time) < 0.25
        return v[rows].mean(), a[rows].mean()

    speed, gained = at(3.0)
    expected = (1900 / WHEEL_RADIUS - rolling - 0.42 * speed**2) / inertia
    assert gained == pytest.approx(expected, rel=0.02)
    rows = (v > 28) & (v < 30)
    # The driven rim is faster than the road by its slip.
    spin = drive.modal["wheel_speed"][rows, 2:].mean(axis=1)
    expected = (150e3 / (spin * WHEEL_RADIUS) - rolling - 0.42 * v[rows] ** 2) / inertia
    assert a[rows].mean() == pytest.approx(expected.mean(), rel=0.03)
    assert v.max() < TOP_SPEED_MPS
    assert v[-1] == pytest.approx(TOP_SPEED_MPS, rel=0.02)
    slip = drive.modal["slip_x"][drive.time > 1, 2:]
    assert (slip > 0).all()
    assert slip.max() < 0.1


def test_reverse_mirrors_forward():
    forward = Drive(field_world(), (2, FULL))
    back = Drive(field_world(), (2, (0.0, -1.0, 0.0)))
    # Backwards the driven axle is relieved instead of loaded: it slips a little more.
    np.testing.assert_allclose(back.position[:, 1], -forward.position[:, 1], atol=0.02)
    assert -back.position[-1, 1] < forward.position[-1, 1]


def test_weight_moves_to_the_rear_axle_under_power():
    drive = Drive(field_world(), (3, FULL))
    load = drive.modal["load"][-1]
    a = np.gradient(drive.velocity[:, 1], drive.time)[-240:].mean()
    # Moments about the road: m a h, the wheels' own spin, and the drag, which acts at the height h.
    spun = 4 * SPIN_INERTIA * a / WHEEL_RADIUS
    moved = (MASS * a * COM_HEIGHT + 0.42 * drive.speed[-1] ** 2 * COM_HEIGHT + spun) / WHEELBASE
    assert (load[2:].sum() - load[:2].sum()) / 2 == pytest.approx(moved, rel=0.03)
    assert load.sum() == pytest.approx(MASS * G, rel=1e-3)


# --- turning ------------------------------------------------------------------------------------


@pytest.mark.parametrize("steering", [0.2, -0.5, 1.0])
def test_turning_radius_is_the_bicycles_at_low_speed(steering):
    drive = Drive(field_world(velocity=(0.0, 3.0, 0.0)), (2.0, (steering, 0.05, 0.0)))
    late = drive.time > 1.0
    turn = drive.turning[late, 2]
    w, x, y, z = drive.attitude[late].T
    ahead = np.stack([2 * (x * y - w * z), 1 - 2 * (x * x + z * z)], axis=1)
    rear = drive.velocity[late, :2] + AXLE * turn[:, None] * ahead[:, ::-1] * [1, -1]
    radius = np.linalg.norm(rear, axis=1) / turn
    expected = -WHEELBASE / math.tan(math.radians(30 * steering))
    assert radius.mean() == pytest.approx(expected, rel=0.03)
    assert np.ptp(radius) < 0.06 * abs(expected)


@pytest.mark.parametrize("v", [10.0, 20.0, 30.0])
def test_yaw_gain_is_the_linear_single_track_models(v):
    """delta = L/R + (W_f/C_f - W_r/C_r) v^2/(g R), with C = B C W: the car understeers a little."""
    steering = 0.01
    drive = Drive(field_world(velocity=(0.0, v, 0.0)), (3.0, (steering, 0.0, 0.0)))
    rows = drive.time > 2.0
    speed = drive.speed[rows].mean()
    under = 1 / (9.0 * 1.9) - 1 / (11.0 * 1.9)
    curvature = math.radians(30 * steering) / (WHEELBASE + under * speed**2 / G)
    assert -drive.turning[rows, 2].mean() == pytest.approx(curvature * speed, rel=0.005)


def test_grip_limits_the_turn():
    """At speed the car understeers: less than mu g sideways, and wider than it is steered."""
    drive = Drive(field_world(velocity=(0.0, 25.0, 0.0)), (3.0, (0.35, 0.15, 0.0)))
    a = np.gradient(drive.velocity, drive.time, axis=0)
    # Half a body's length of smoothing: the suspension's ring is not grip.
    smooth = np.stack([np.convolve(a[:, k], np.ones(48) / 48, "same") for k in range(2)], axis=1)
    inner = slice(60, -60)
    assert np.linalg.norm(smooth[inner], axis=1).max() < 1.0 * G * 1.02
    late = drive.time > 1.5
    lateral = np.linalg.norm(smooth[late][:-60], axis=1)
    assert lateral.mean() > 0.75 * G
    radius = drive.speed[late] / np.abs(drive.turning[late, 2])
    assert radius.min() > 1.5 * WHEELBASE / math.tan(math.radians(10.5))
    # It keeps its head: no spin, no roll-over.
    _, x, y, _ = drive.attitude.T
    assert (1 - 2 * (x * x + y * y)).min() > math.cos(math.radians(8))
    slide = np.degrees(np.arctan2(*_own(drive).T))
    assert np.abs(slide[drive.time > 0.5]).max() < 20


def _own(drive):
    """Velocity to the right and forward in the car's own frame."""
    w, x, y, z = drive.attitude.T
    right = np.stack([1 - 2 * (y * y + z * z), 2 * (x * y + w * z)], axis=1)
    ahead = np.stack([2 * (x * y - w * z), 1 - 2 * (x * x + z * z)], axis=1)
    v = drive.velocity[:, :2]
    return np.stack([(right * v).sum(axis=1), (ahead * v).sum(axis=1)], axis=1)


def test_right_is_right_and_mirrored_left():
    right = Drive(field_world(velocity=(0.0, 8.0, 0.0)), (2.0, (0.4, 0.0, 0.0)))
    left = Drive(field_world(velocity=(0.0, 8.0, 0.0)), (2.0, (-0.4, 0.0, 0.0)))
    assert right.position[-1, 0] > 4
    np.testing.assert_allclose(left.position[:, 0], -right.position[:, 0], atol=1e-6)


def test_front_wheels_take_time_to_turn():
    drive = Drive(field_world(), (1.0, (1.0, 0.0, 0.0)))
    steer = drive.modal["steer"][:, 0]
    assert steer.max() == pytest.approx(math.radians(30))
    np.testing.assert_allclose(steer[:50], np.radians(120) * drive.time[:50], atol=1e-9)


# --- energy and momentum ------------------------------------------------------------------------


def energy(drive):
    """Kinetic energy of body and wheels, height, springs and anti-roll bars [J]."""
    body = drive.scene.bodies[drive.scene.index("car")]
    inertia = principal_inertia(body, {})
    w, x, y, z = drive.attitude.T
    rows = np.stack(
        [
            np.stack([1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)], axis=1),
            np.stack([2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)], axis=1),
            np.stack([2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)], axis=1),
        ],
        axis=1,
    )
    own = np.einsum("nij,ni->nj", rows, drive.turning)
    squeezed = drive.modal["compression"]
    total = 0.5 * MASS * drive.speed**2 + 0.5 * (inertia * own**2).sum(axis=1)
    total += 0.5 * SPIN_INERTIA * (drive.modal["wheel_speed"] ** 2).sum(axis=1)
    total += MASS * G * drive.position[:, 2]
    total += 0.5 * CAR["front"]["stiffness"] * (squeezed**2).sum(axis=1)
    beyond = np.maximum(squeezed - CAR["travel"], 0)
    total += 10 * CAR["front"]["stiffness"] * (beyond**2).sum(axis=1)
    for axle, pair in (("front", (0, 1)), ("rear", (2, 3))):
        twist = squeezed[:, pair[0]] - squeezed[:, pair[1]]
        total += 0.5 * CAR[axle]["anti_roll"] * twist**2
    return total


@pytest.mark.parametrize("steering", [0.0, 0.3])
def test_coasting_gains_no_energy(steering):
    drive = Drive(field_world(velocity=(0.0, 20.0, 0.0)), (10, (steering, 0.0, 0.0)))
    total = energy(drive)
    assert np.diff(total).max() < 2e-5 * total[0]  # a substep's rounding of the springs
    assert (np.diff(total[::24]) < 0).all()
    assert total[-1] < 0.9 * total[0]


def test_free_rolling_loses_rolling_resistance_and_drag_alone():
    v = 20.0
    drive = Drive(field_world(velocity=(0.0, v, 0.0)), (6, COAST))
    rows = drive.time > 1
    inertia = MASS + 4 * SPIN_INERTIA / WHEEL_RADIUS**2
    a = np.gradient(drive.velocity[:, 1], drive.time)[rows]
    expected = -(0.012 * MASS * G + 0.42 * drive.speed[rows] ** 2) / inertia
    assert a.mean() == pytest.approx(expected.mean(), rel=0.01)


def test_dropped_car_never_has_more_energy_than_at_first_and_settles():
    drive = Drive(field_world(height=1.0), (6, COAST))
    total = energy(drive)
    assert total.max() < total[0] * (1 + 1e-3)
    assert drive.position[:, 2].max() <= 1.0 + 1e-9
    settled = drive.modal["compression"][-1]
    np.testing.assert_allclose(settled, MASS * G / 4 / CAR["front"]["stiffness"], rtol=1e-3)
    assert drive.speed[-1] < 1e-3
    # Critical facts of a damped spring: it bounces back less than it fell.
    bottom = int(drive.position[:, 2].argmin())
    assert drive.position[bottom:, 2].max() < 0.62


def test_no_force_in_the_air():
    world = field_world(height=5.0, velocity=(1.0, 6.0, 0.0), drag=0.0)
    drive = Drive(world, (0.5, (0.5, 1.0, 0.0)))
    assert not drive.modal["load"].any()
    n = np.arange(len(drive.time))
    np.testing.assert_allclose(drive.velocity[:, 2], -G * drive.time, atol=1e-9)
    np.testing.assert_allclose(drive.velocity[:, :2], [[1.0, 6.0]] * len(n), atol=1e-9)
    # The engine spins the rear wheels up; their reaction pitches the body, and nothing is lost.
    spin = drive.modal["wheel_speed"]
    assert spin[-1, 2] > spin[-1, 0] + 50
    body = drive.scene.bodies[drive.scene.index("car")]
    own = SPIN_INERTIA * (spin - spin[0]).sum(axis=1)
    pitched = principal_inertia(body, {})[0] * drive.turning[:, 0]
    np.testing.assert_allclose(pitched[:60], own[:60], rtol=0.02, atol=1.0)


def test_wheels_are_shown_where_the_road_is():
    world = field_world(velocity=(0.0, 15.0, 0.0))
    world.advance((0.3, 0.2, 0.0), 300, Probe())
    log = world.log()
    scene = world.spec.scene
    state = log.state
    for i, name in enumerate(("front_left", "front_right", "rear_left", "rear_right")):
        wheel = scene.index(f"wheel_{name}")
        assert state.position[-1, wheel, 2] == pytest.approx(WHEEL_RADIUS, abs=0.006)
        car = state.position[-1, scene.index("car")]
        reach = np.linalg.norm(state.position[-1, wheel, :2] - car[:2])
        assert reach == pytest.approx(math.hypot(AXLE, HALF_TRACK), rel=0.02)
        w, x, y, z = state.quaternion_wxyz[-1, wheel]
        axle = np.array([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)])
        w, x, y, z = state.quaternion_wxyz[-1, scene.index("car")]
        right = np.array([1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)])
        angle = math.degrees(math.acos(min(float(axle @ right), 1.0)))
        # Ackermann: the inner (right) wheel turns more than the outer one.
        turn = math.tan(math.radians(9.0))
        side = HALF_TRACK * (1 if i % 2 else -1)
        own = math.degrees(math.atan(turn / (1 - side * turn / WHEELBASE)))
        assert angle == pytest.approx(own if i < 2 else 0.0, abs=1e-3)
        # Steered right, the axle points back on the right side.
        assert (axle - right)[1] <= 1e-9
        spun = float(state.angular_velocity[-1, wheel] @ axle)
        assert spun == pytest.approx(-float(state.modal["wheel_speed"][-1, i]), abs=0.3)


def test_less_friction_brakes_longer():
    world = field_world(velocity=(0.0, 15.0, 0.0))
    spec = world.spec
    scene = spec.scene.with_bodies(field={"friction": 0.5})
    slippery = LocalWorld(dataclasses.replace(spec, scene=scene))
    slippery.reset()
    dry, wet = (np.ptp(Drive(w, (5, BRAKE)).position[:, 1]) for w in (world, slippery))
    assert wet == pytest.approx(2 * dry, rel=0.04)


def test_a_scene_without_the_modal_state_is_refused():
    spec = field_world().spec
    bare = dataclasses.replace(spec, scene=spec.scene.model_copy(update={"modal": ()}))
    with pytest.raises(UserError, match="declares no modal state 'controls'"):
        LocalWorld(bare).reset()


_HASH = """
import hashlib, sys
sys.path.insert(0, {folder!r})
from vehicle_world import Drive, field_world
world = field_world(velocity=(0.0, 9.0, 0.0))
drive = Drive(world, (1.0, (0.3, 0.7, 0.0)), (0.5, (-0.5, 0.0, 1.0)))
print(hashlib.sha256(drive.position.tobytes() + drive.modal["tread_y"].tobytes()).hexdigest())
"""


def test_two_processes_give_the_same_bits():
    program = _HASH.format(folder=str(Path(__file__).parent))
    there = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout.strip()
    drive = Drive(
        field_world(velocity=(0.0, 9.0, 0.0)), (1.0, (0.3, 0.7, 0.0)), (0.5, (-0.5, 0.0, 1.0))
    )
    here = hashlib.sha256(drive.position.tobytes() + drive.modal["tread_y"].tobytes()).hexdigest()
    assert there == here
