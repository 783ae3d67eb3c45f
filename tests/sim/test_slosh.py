"""Slosh against closed forms: rest, steady tilt, free decay, resonance; and the hand that moves."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy.signal import find_peaks
from scipy.special import jnp_zeros

from wmeval.clock import SceneClock
from wmeval.envs.liquid_container import compose
from wmeval.errors import UserError
from wmeval.sim.drivers import make_driver
from wmeval.sim.drivers.slosh import XI_HIGHER, Slosh, modes_of, propagator
from wmeval.sim.protocol import DriverSpec, EngineConfig, EventRules, Probe, WorldSpec
from wmeval.sim.world import LocalWorld

G = 9.81
R, H = 0.08, 0.15329
MODES = modes_of(R, H, gravity=G, viscosity=8.9e-5)
SPEC = compose()
SCENE = SPEC.scene
BOTTLE = SCENE.index("bottle")


class Stand:
    """A `SubstepView` of the bottle alone, moved as a test says."""

    def __init__(self, *, dt=1 / 240, gravity=G):
        self.dt, self.modal, self.states = dt, {}, {}
        self.state = ((0.0, 0.0, 0.2), (1.0, 0.0, 0.0, 0.0), (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
        self.slosh = make_driver(next(d for d in SPEC.drivers if d.kind == "slosh"))
        scene = SCENE.model_copy(update={"gravity": (0.0, 0.0, -gravity)})
        self.slosh.reset(scene, self)

    def pose(self, body):
        return self.state[:2]

    def velocity(self, body):
        return self.state[2:]

    def set_modal(self, name, values):
        self.modal[name] = np.array(values)

    def set_state(self, body, *state):
        self.state = state

    def accelerate(self, a, seconds):
        """Constant linear acceleration; slopes (N, 3 modes, 2) after every substep."""
        out = []
        for _ in range(round(seconds / self.dt)):
            position, quaternion, v, w = self.state
            v = tuple(x + y * self.dt for x, y in zip(v, a, strict=True))
            self.state = (position, quaternion, v, w)
            self.slosh.after(self)
            out.append([s[:2] for s in self.slosh._state])
        return np.array(out)

    def looked(self):
        self.slosh.show(self)
        return self.modal


def world(action_of, seconds):
    """State log of every control step of the scene under actions (a function of the step)."""
    clock = SceneClock(Fraction(1, 240), Fraction(1, 60))
    made = LocalWorld(
        WorldSpec(SCENE, SPEC.meshes, SPEC.drivers, clock, EventRules(), config=EngineConfig())
    )
    made.reset()
    logs = [
        made.advance(action_of(i), 4 * (i + 1), Probe("substeps")).state
        for i in range(round(60 * seconds))
    ]
    made.close()
    return logs


def at_the_end(action_of, seconds):
    """The last state; nobody looks before."""
    clock = SceneClock(Fraction(1, 240), Fraction(1, 60))
    made = LocalWorld(
        WorldSpec(SCENE, SPEC.meshes, SPEC.drivers, clock, EventRules(), config=EngineConfig())
    )
    made.reset()
    for i in range(round(60 * seconds)):
        made.run(action_of(i), 4 * (i + 1))
    log = made.log().state
    made.close()
    return log


# --- the modes ----------------------------------------------------------------------------------


def test_frequencies_are_those_of_a_cylindrical_tank():
    xi = jnp_zeros(1, 3)
    assert pytest.approx(xi[2], rel=1e-12) == XI_HIGHER
    for mode, x in zip(MODES, xi, strict=True):
        assert mode.omega**2 == pytest.approx(G * x / R * math.tanh(x * H / R), rel=1e-12)
    assert MODES[0].omega / (2 * math.pi) == pytest.approx(2.39, abs=0.01)


def test_the_driving_point_is_the_hinge_of_abramsons_pendulum():
    """Its mass hangs at the height of the spring-mass model's (NASA SP-106, chapter 6)."""
    for mode, xi in zip(MODES, jnp_zeros(1, 3), strict=True):
        mass_depth = 2 * R / xi * math.tanh(xi * H / (2 * R))
        assert mode.depth == pytest.approx(mass_depth - G / mode.omega**2, rel=1e-9)


def test_damping_grows_with_viscosity_and_is_the_measured_formula():
    thin = modes_of(R, H, gravity=G, viscosity=1e-6)
    for a, b in zip(thin, MODES, strict=True):
        assert b.damping / a.damping == pytest.approx(math.sqrt(89), rel=1e-9)
    deep = modes_of(R, 10 * R, gravity=G, viscosity=1e-6)[0]
    assert deep.damping == pytest.approx(0.79 * math.sqrt(1e-6 / math.sqrt(G * R**3)), rel=1e-6)


@pytest.mark.parametrize("dt", [1 / 960, 1 / 240, 1 / 60, 1 / 7])
def test_free_decay_is_the_closed_form_whatever_the_step(dt):
    mode = MODES[0]
    a, b, c, d = propagator(mode.omega, mode.damping, dt)
    y, v, rate = 0.3, -1.1, mode.damping * mode.omega
    turn = mode.omega * math.sqrt(1 - mode.damping**2)
    y0, v0 = y, v
    for k in range(1, round(4 / dt) + 1):
        y, v = a * y + b * v, c * y + d * v
        t = k * dt
        exact = math.exp(-rate * t) * (
            y0 * math.cos(turn * t) + (v0 + rate * y0) / turn * math.sin(turn * t)
        )
        assert y == pytest.approx(exact, abs=1e-12)


def test_what_rings_after_a_push_has_the_frequency_and_decrement_of_mode_1():
    stand = Stand()
    stand.accelerate((0.5, 0.0, 0.0), 0.2)
    x = stand.accelerate((0.0, 0.0, 0.0), 6.0)[:, 0, 0]
    peaks, _ = find_peaks(x)
    mode = MODES[0]
    turn = mode.omega * math.sqrt(1 - mode.damping**2)
    period = np.diff(peaks).mean() / 240
    assert period == pytest.approx(2 * math.pi / turn, rel=2e-3)
    decrement = np.log(x[peaks[:-1]] / x[peaks[1:]]).mean()
    assert decrement == pytest.approx(2 * math.pi * mode.damping * mode.omega / turn, rel=5e-3)


def test_steady_acceleration_leans_the_surface_by_a_over_g():
    a = (0.6, -0.35, 0.0)
    stand = Stand()
    stand.accelerate(a, 50.0)
    seen = stand.looked()
    # Every shape carries the same slope, so that they add up to the plane itself.
    slopes = seen["liquid_surface"][3:].reshape(3, 3)
    np.testing.assert_allclose(slopes, np.tile([-a[0] / G, -a[1] / G, 0], (3, 1)), atol=1e-6)
    normal = seen["surface_normal"]
    assert math.hypot(normal[0], normal[1]) / normal[2] == pytest.approx(
        math.hypot(a[0], a[1]) / G, abs=1e-6
    )
    rim = seen["meniscus"].reshape(-1, 3) - (0, 0, 0.2)
    np.testing.assert_allclose(rim[:, 2], -(rim[:, :2] @ np.array(a[:2])) / G, atol=1e-7)


def test_a_vertical_acceleration_alone_moves_nothing_and_steepens_or_flattens_a_lean():
    stand = Stand()
    assert not stand.accelerate((0.0, 0.0, 0.7), 1.0).any()
    stand = Stand()
    last = stand.accelerate((0.5, 0.0, 2.0), 50.0)[-1]
    np.testing.assert_allclose(last[:, 0], -0.5 / (G + 2.0), atol=1e-6)


def test_weaker_gravity_sloshes_slower():
    assert Stand(gravity=0.64 * G).slosh.modes[0].omega == pytest.approx(
        0.8 * MODES[0].omega, rel=1e-3
    )


def test_shaking_answers_most_strongly_at_the_natural_frequency():
    def answer(frequency):
        stand = Stand()
        x = []
        for k in range(240 * 16):
            a = 0.02 * math.sin(2 * math.pi * frequency * k / 240)
            x.append(stand.accelerate((a, 0, 0), 1 / 240)[0, 0, 0])
        return np.ptp(x[-240 * 3 :]) / 2

    natural = MODES[0].omega / (2 * math.pi)
    ratios = np.array([0.5, 0.93, 1.0, 1.07, 1.5])
    found = np.array([answer(r * natural) for r in ratios])
    gain = 1 / np.sqrt((1 - ratios**2) ** 2 + (2 * MODES[0].damping * ratios) ** 2)
    assert found.argmax() == 2
    np.testing.assert_allclose(found, 0.02 / G * gain, rtol=0.03)


def test_a_wave_breaks_at_its_limit():
    stand = Stand()
    x = stand.accelerate((6.0, 0.0, 0.0), 3.0)[:, 0, 0]
    assert np.abs(x).max() * 0.8369 <= 0.45 + 1e-9
    with pytest.raises(UserError, match="straight down"):
        Slosh(stand.slosh._params).reset(
            SCENE.model_copy(update={"gravity": (0.0, 0.1, -9.8)}), stand
        )


# --- turning ------------------------------------------------------------------------------------


@pytest.mark.parametrize("channel", [3, 5])
@pytest.mark.parametrize("degrees", [20, 60])
def test_the_surface_is_level_at_any_tilt_once_it_rests(channel, degrees):
    """Turned by hand to a tilt and held there."""
    rate = 0.4
    hold = round(math.radians(degrees) / (rate * 1.6) * 60)

    def action(i):
        out = [0.0] * 6
        out[2] = 0.5 if i < 60 else 0.0
        out[channel] = rate if i < hold else 0.0
        return out

    log = at_the_end(action, 45)
    assert np.linalg.norm(log.angular_velocity[-1, BOTTLE]) == 0
    _, x, y, _ = log.quaternion_wxyz[-1, BOTTLE]
    tilt = math.degrees(math.acos(1 - 2 * (x * x + y * y)))
    assert tilt == pytest.approx(degrees, abs=4)
    np.testing.assert_allclose(log.modal["surface_normal"][-1], [0, 0, 1], atol=1e-6)
    rim = log.modal["meniscus"][-1].reshape(-1, 3)
    assert np.ptp(rim[:, 2]) < 1e-6
    assert rim[0, 2] == pytest.approx(log.modal["surface_level"][-1, 0], abs=1e-6)
    up = log.modal["liquid_surface"][-1, :3]
    assert math.degrees(math.acos(up[2])) == pytest.approx(tilt, abs=1e-6)


def test_turning_about_the_driving_point_makes_no_wave_of_its_mode():
    stand = Stand()
    depth = MODES[0].depth
    angle = rate = 0.0
    for k in range(480):
        # About world x through the point on the axis that is `depth` below the origin.
        turn = 3.0 * math.cos(2 * math.pi * 1.3 * k / 240)
        new = rate + turn / 240
        angle += 0.5 * (rate + new) / 240
        rate = new
        axis = np.array([0.0, -math.sin(angle), math.cos(angle)])
        v = np.cross([rate, 0, 0], depth * axis)
        q = (math.cos(angle / 2), math.sin(angle / 2), 0.0, 0.0)
        stand.state = ((0, 0, 0), q, tuple(v.tolist()), (rate, 0.0, 0.0))
        stand.slosh.after(stand)
    wave = np.array([s[:2] for s in stand.slosh._state])
    assert np.abs(wave[0]).max() < 2e-4
    assert np.abs(wave[1:]).max() > 2e-3


def test_spinning_about_its_axis_leaves_the_surface_alone():
    log = at_the_end(lambda i: [0, 0, 0, 0, 1.0, 0], 2)
    np.testing.assert_allclose(log.modal["slosh_amplitude"], 0, atol=1e-12)
    assert np.linalg.norm(log.angular_velocity[-1, BOTTLE]) == pytest.approx(1.6)


# --- the hand -----------------------------------------------------------------------------------


def test_position_and_velocity_follow_the_acceleration_exactly():
    logs = world(lambda i: [0.3, 1.0 if i < 40 else 0.0, 0.2, 0, 0, 0], 1.6)
    x = np.concatenate([log.position[:, BOTTLE] for log in logs])
    v = np.concatenate([log.linear_velocity[:, BOTTLE] for log in logs])
    dt = 1 / 240
    np.testing.assert_allclose(np.diff(x, axis=0), 0.5 * (v[1:] + v[:-1]) * dt, atol=1e-13)
    a = np.diff(v, axis=0) / dt
    assert np.abs(a).max() < 0.8 * (1 + 1e-9)
    np.testing.assert_allclose(a[:155, 0], 0.8, rtol=1e-9)
    np.testing.assert_allclose(a[165:300, 0], -0.8, rtol=1e-9)


@pytest.mark.parametrize(("channel", "axis", "bound"), [(1, 0, 0.60), (0, 1, 0.35), (2, 2, 0.24)])
def test_a_held_command_brakes_to_rest_at_the_bound(channel, axis, bound):
    action = [0.0] * 6
    action[channel] = 1.0
    logs = world(lambda i: action, 4)
    x = np.concatenate([log.position[:, BOTTLE, axis] for log in logs])
    v = np.concatenate([log.linear_velocity[:, BOTTLE, axis] for log in logs])
    start = SCENE.bodies[BOTTLE].position[axis]
    assert (x <= start + bound).all()
    assert x[-1] == pytest.approx(start + bound, abs=1e-5)
    assert v[-1] == 0
    assert np.abs(np.diff(v)).max() * 240 < 0.8 * (1 + 1e-6)
    # Half the way up to speed, half the way down.
    assert v.max() == pytest.approx(math.sqrt(0.8 * bound), rel=0.01)


def test_turned_near_the_floor_it_stands_on_its_edge():
    logs = world(lambda i: [0, 0, -1.0, 0, 0, 1.0 if i < 24 else 0.0], 0.7)
    start = SCENE.bodies[BOTTLE].position[2]
    heights = [log.position[-1, BOTTLE, 2] for log in logs]
    assert max(heights) > start + 0.01
    outline = np.array(next(d for d in SPEC.drivers if d.kind == "bottle").params["outline"])
    for log in logs[::7]:
        _, x, y, _ = log.quaternion_wxyz[-1, BOTTLE]
        c = 1 - 2 * (x * x + y * y)
        low = (outline[:, 0] * math.sqrt(max(1 - c * c, 0)) - outline[:, 1] * c).max()
        assert log.position[-1, BOTTLE, 2] == pytest.approx(max(low, start), abs=1e-9)


def test_bad_parameters_are_one_clear_error():
    card = next(d for d in SPEC.drivers if d.kind == "bottle")
    with pytest.raises(UserError, match="work volume"):
        make_driver(DriverSpec(kind="bottle", params={**card.params, "low": [9.0, 0.0, 0.0]}))
