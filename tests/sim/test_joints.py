"""Joints against closed forms: periods of finite amplitude, energy, what is held stays held."""

import dataclasses
import math

import numpy as np
import pytest
from engine_worlds import (
    GYRATION,
    LENGTH,
    MASS,
    RADIUS,
    at_rate,
    crossings,
    engine_here,
    joined,
    pendulum,
    period,
    play,
)
from physics_scenes import body, floor, world_spec

from wmeval.errors import UserError
from wmeval.scene import Box, Joint, Sphere
from wmeval.sim.engines import make_engine
from wmeval.sim.protocol import Driver, DriverSpec
from wmeval.sim.world import LocalWorld

ENGINES = ("bullet", "physx")


@pytest.fixture(params=ENGINES)
def engine(request):
    return engine_here(request.param)


def energy(state, body_index=0):
    linear, angular = state.linear_velocity[:, body_index], state.angular_velocity[:, body_index]
    kinetic = MASS * (linear**2).sum(axis=1) + 0.4 * MASS * RADIUS**2 * (angular**2).sum(axis=1)
    return kinetic / 2 + MASS * 9.81 * state.position[:, body_index, 2]


@pytest.mark.parametrize(
    ("degrees", "changes"),
    [(10, {}), (90, {}), (90, {"turned": True}), (90, {"kind": "ball"}), (150, {})],
)
def test_a_pendulum_has_the_period_of_its_amplitude(engine, degrees, changes):
    log = play(at_rate(pendulum(degrees, **changes), 360, engine), 6.0)
    state = log.state
    measured = np.diff(crossings(state.times, state.position[:, 0, 0])).mean()
    # A float32 solver of constraints against exact joint coordinates.
    assert measured == pytest.approx(period(degrees), rel=4e-4 if engine == "physx" else 5e-5)
    away = np.linalg.norm(state.position[:, 0] - (0, 0, 1), axis=1)
    assert away == pytest.approx(LENGTH, abs=1e-5)
    # Symplectic stepping: energy swings by g dt v and does not drift.
    scale = MASS * 9.81 * LENGTH
    now = (energy(state) - energy(state)[0]) / scale
    assert np.abs(now).max() < 0.02
    assert abs(now[-720:].mean() - now[:720].mean()) < 2e-3


def test_armature_slows_a_hinge_as_inertia_about_its_axis(engine):
    plain = 0.1 * MASS * GYRATION
    log = play(at_rate(pendulum(10, armature=plain), 360, engine), 6.0)
    measured = np.diff(crossings(log.state.times, log.state.position[:, 0, 0])).mean()
    assert measured == pytest.approx(period(10, plain), rel=2e-4)
    # The published odd pendulum: 0.1 kg m2 at the hinge makes 1.06 s into seconds.
    assert period(10, 0.1) / period(10) == pytest.approx(
        math.sqrt(1 + 0.1 / (MASS * GYRATION)), rel=1e-12
    )


def test_damping_of_a_hinge_is_a_torque_against_its_turning(engine):
    inertia = MASS * GYRATION
    damping = 0.2 * inertia  # 1/s: amplitudes fall as exp(-0.1 t)
    log = play(at_rate(pendulum(5, damping=damping), 720, engine), 5.0)
    x = log.state.position[:, 0, 0]
    peaks = [k for k in range(1, len(x) - 1) if x[k - 1] < x[k] >= x[k + 1]]
    rate = -np.log(x[peaks[-1]] / x[peaks[0]]) / (
        log.state.times[peaks[-1]] - log.state.times[peaks[0]]
    )
    assert rate == pytest.approx(0.1, rel=0.02)


def test_a_hinge_turns_about_its_axis_alone(engine):
    log = play(at_rate(pendulum(60), 240, engine), 2.0)
    assert np.abs(log.state.position[:, 0, 1]).max() < 1e-6
    spin = log.state.angular_velocity[:, 0]
    assert np.abs(spin[:, [0, 2]]).max() < 1e-4
    # The rod turns with the ball, and so does its frame.
    w, _, y, _ = log.state.quaternion_wxyz[:, 0].T
    swing = np.arctan2(-log.state.position[:, 0, 0], 1 - log.state.position[:, 0, 2])
    assert 2 * np.arctan(y / w) == pytest.approx(swing - swing[0], abs=1e-4)


def test_bodies_joined_to_each_other_stay_so_and_fall_as_one(engine):
    """A dumb-bell thrown without gravity: momentum and spin are kept, and so is its length."""
    ends = [
        body(n, Sphere(radius=0.05), position=(x, 0, 0), linear_velocity=(1.0, v, 0),
             angular_velocity=(0, 0, 4.0))
        for n, x, v in (("a", -0.25, -1.0), ("b", 0.25, 1.0))
    ]  # fmt: skip
    spec = world_spec(*ends, gravity=(0, 0, 0))
    weld = Joint(name="weld", kind="fixed", body="b", other="a", pivot=(0, 0, 0))
    log = play(at_rate(joined(spec, weld), 480, engine), 2.0)
    state = log.state
    apart = np.linalg.norm(state.position[:, 1] - state.position[:, 0], axis=1)
    assert apart == pytest.approx(0.5, abs=2e-3)
    momentum = state.linear_velocity.sum(axis=1)
    assert momentum == pytest.approx(np.tile([2.0, 0, 0], (len(momentum), 1)), abs=2e-3)
    middle = state.position.mean(axis=1)
    assert middle[:, 0] == pytest.approx(state.times, abs=5e-3)
    turned = np.unwrap(np.arctan2(*(state.position[:, 1] - state.position[:, 0]).T[[1, 0]]))
    assert turned[-1] == pytest.approx(8.0, rel=0.02)


def test_a_chain_hangs_and_its_links_do_not_part(engine):
    links = [
        body(f"link_{i}", Box(half_extents=(0.05, 0.01, 0.01)), position=(0.05 + 0.1 * i, 0, 1),
             angular_damping=0.9, linear_damping=0.9)
        for i in range(5)
    ]  # fmt: skip
    joints = [
        Joint(
            name=f"joint_{i}", kind="ball", body=f"link_{i}", other=f"link_{i - 1}" if i else "",
            pivot=(0.1 * i, 0, 1),
        )
        for i in range(5)
    ]  # fmt: skip
    spec = joined(world_spec(*links), *joints)
    log = play(at_rate(spec, 480, engine), 4.0, states="last")
    last = log.state.position[-1]
    # Hanging straight down, each link's centre a link's length under the last.
    assert last[:, 2] == pytest.approx(1 - 0.05 - 0.1 * np.arange(5), abs=5e-3)
    assert np.abs(last[:, :2]).max() < 0.03


@pytest.mark.parametrize("restitution", [1.0, 0.5])
def test_a_cradle_of_two_passes_on_what_restitution_says(engine, restitution):
    """Equal balls: the second leaves with (1 + e) / 2 of the speed, the first keeps the rest."""
    radius, rod = 0.01, 0.13
    balls, joints = [], []
    for i, degrees in enumerate((60.0, 0.0)):
        angle, y = math.radians(degrees), i * (2 * radius + 2e-4)
        balls.append(
            body(f"ball_{i}", Sphere(radius=radius), mass=0.03, friction=0.0,
                 restitution=math.sqrt(restitution),
                 position=(0, y - rod * math.sin(angle), 1 - rod * math.cos(angle)))
        )  # fmt: skip
        joints.append(
            Joint(name=f"j{i}", kind="hinge", body=f"ball_{i}", pivot=(0, y, 1), axis=(1, 0, 0))
        )
    spec = joined(world_spec(*balls, restitution_threshold=0.01), *joints)
    log = play(at_rate(spec, 2000, engine), 0.3)
    v = log.state.linear_velocity[:, :, 1]
    hit = int(np.argmax(v[:, 1] > 0.1))
    assert hit > 0
    share = v[hit + 1] / v[hit - 2, 0]
    expected = np.array([(1 - restitution) / 2, (1 + restitution) / 2])
    assert share == pytest.approx(expected, abs=0.04)
    assert share.sum() == pytest.approx(1.0, abs=0.02)


def test_two_plays_of_a_jointed_world_have_the_same_bits(engine):
    spec = at_rate(pendulum(90), 180, engine)
    assert play(spec, 1.0).state.sha256() == play(spec, 1.0).state.sha256()


def test_what_an_engine_has_no_joints_for_is_refused_before_it_is_made():
    for name in ("blender", "carom"):
        spec = dataclasses.replace(pendulum(10), engine=name)
        with pytest.raises(UserError, match=f"engine {name} has no joints.*'pivot'"):
            LocalWorld(spec).reset()


def test_bullet_says_what_it_cannot_do_with_a_joint():
    spec = pendulum(10)
    with pytest.raises(UserError, match="leave out maximal_coordinates"):
        LocalWorld(at_rate(spec, 240, "bullet", maximal_coordinates=1)).reset()
    damped = spec.scene.with_bodies(ball={"linear_damping": 0.1})
    with pytest.raises(UserError, match="give the joint the damping"):
        LocalWorld(dataclasses.replace(spec, scene=damped)).reset()
    engine = make_engine("bullet")
    engine.build(spec.scene, {}, spec.config, spec.clock.dt, ())
    with pytest.raises(UserError, match="cannot hold or release it"):
        engine.set_motion(0, 1)
    with pytest.raises(UserError, match="cannot put it"):
        engine.set_state(0, (0, 0, 0), (1, 0, 0, 0), (0, 0, 0), (0, 0, 0))
    engine.close()
    other = body("other", Sphere(radius=0.1), position=(0.5, 0, 1))
    hinge = Joint(name="h", kind="hinge", body="other", other="floor", pivot=(0, 0, 1), damping=1)
    with pytest.raises(UserError, match="only to the one hinge"):
        LocalWorld(joined(world_spec(other, floor()), hinge)).reset()


def test_a_force_on_a_body_of_a_joint_balances_its_weight(engine):
    angle, weight = math.radians(30), MASS * 9.81
    across = weight * math.sin(angle)
    driver = DriverSpec(
        kind="force",
        params={
            "body": "ball",
            "axes": [[-across * math.cos(angle), 0.0, across * math.sin(angle)]],
            "newtons": 1.0,
        },
    )
    spec = dataclasses.replace(at_rate(pendulum(30), 480, engine), drivers=(driver,))
    state = play(spec, 0.5, action=(1.0,)).state
    assert np.abs(state.angular_velocity[-1, 0]).max() < 0.02
    assert state.position[-1, 0, 0] == pytest.approx(-LENGTH * math.sin(angle), abs=2e-3)


def test_a_torque_on_a_body_of_a_joint_turns_it_about_the_joint():
    """Bullet, by hand: alpha = tau / (m (L^2 + 2/5 r^2)) without gravity."""

    class Twist(Driver):
        def reset(self, scene, view):
            pass

        def before(self, view):
            view.apply_torque(0, (0.0, 1e-3, 0.0))

    spec = at_rate(pendulum(30, turned=True), 480, "bullet")
    scene = spec.scene.model_copy(update={"gravity": (0.0, 0.0, 0.0)})
    engine = make_engine("bullet")
    engine.build(scene, {}, spec.config, spec.clock.dt, (Twist(),))
    engine.run((), 240)
    spin = engine.velocity(0)[1]
    engine.close()
    assert spin == pytest.approx((0.0, 0.5e-3 / (MASS * GYRATION), 0.0), rel=1e-3, abs=1e-9)
