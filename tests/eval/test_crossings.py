"""The period by crossings: it gives the period of known swings back, however they are recorded."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import solve_ivp

from wmeval.assets.gauge_cards import RECORD_HZ, family
from wmeval.envs.gauge.build import build
from wmeval.eval.metrics.crossings import pd_crossings
from wmeval.eval.sweep.measure import measure
from wmeval.eval.truths import predict, rigid
from wmeval.records import StateLog
from wmeval.scene import DYNAMIC


def swing(small, amplitude, frames, lead=0.0):
    """Times and angles of a pendulum of finite amplitude at 30 Hz, let go ``lead`` before."""
    t = np.arange(frames) / 30
    return t, rigid.swing_angle(t + lead, small, amplitude)


@settings(max_examples=60, deadline=None)
@given(
    small=st.floats(0.7, 2.4),
    amplitude=st.floats(0.05, 2.4),
    swings=st.floats(1.0, 25.0),
    lead=st.floats(0.0, 3.0),
    offset=st.floats(-0.3, 0.3),
    known=st.booleans(),
)
def test_a_swing_of_any_amplitude_and_length_has_its_own_period(
    small, amplitude, swings, lead, offset, known
):
    period = rigid.swing_period(small, amplitude)
    t, angle = swing(small, amplitude, math.ceil(swings * period * 30) + 4, lead)
    if known or swings < 1.6:
        found = pd_crossings(angle, t, level=0.0)
    else:
        found = pd_crossings(angle + offset * amplitude, t)
    assert found.period == pytest.approx(period, rel=1e-4)
    assert abs(len(found.times) / 2 - swings) <= 1


@settings(max_examples=40, deadline=None)
@given(
    damping=st.floats(-0.05, 0.35),
    swings=st.floats(2.6, 30.0),
    offset=st.floats(-0.5, 0.5),
    phase=st.floats(0.0, 6.28),
)
def test_damping_about_an_unknown_middle_moves_it_by_no_part_in_ten_thousand(
    damping, swings, offset, phase
):
    # Equal times between crossings, while the amplitude falls by up to a third a swing.
    period = 1.2558
    frames = math.ceil(swings * period * 30)
    t = np.arange(frames) / 30
    y = offset + np.exp(-damping * t / period) * np.cos(2 * math.pi * t / period + phase)
    assert pd_crossings(y, t).period == pytest.approx(period, rel=1e-4)


def test_a_damped_swing_of_finite_amplitude_crosses_when_it_does():
    # Its swings become shorter: the times themselves, from the equation of motion.
    def passes(_, y):
        return y[0]

    found = solve_ivp(
        lambda _, y: [y[1], -0.1 * y[1] - 35.0 * math.sin(y[0])], (0, 12), [math.pi / 2, 0.0],
        events=passes, rtol=1e-11, atol=1e-12, dense_output=True,
    )  # fmt: skip
    t = np.arange(361) / 30
    made = pd_crossings(found.sol(t)[0], t, level=0.0)
    assert made.times == pytest.approx(found.t_events[0], abs=2e-5)
    first, last = (2 * np.diff(found.t_events[0])[k] for k in (0, -1))
    assert last < made.period < first


@pytest.mark.parametrize("frames", [90, 300, 1000])
def test_noise_costs_what_its_share_of_the_speed_through_the_middle_does(frames):
    small = rigid.small_period(0.28)
    period = rigid.swing_period(small, math.pi / 2)
    t, angle = swing(small, math.pi / 2, frames)
    sigma = 2e-3 / 0.28  # 2 mm of motion capture
    speed = 2 * math.pi / small * math.sqrt(2)
    count = 2 * frames / 30 / period
    # Of a line through evenly spaced crossings, by least squares.
    spread = sigma / speed * math.sqrt(12 / count**3) * 2
    off = []
    for seed in range(20):
        noisy = angle + np.random.default_rng(seed).normal(0, sigma, frames)
        off.append(pd_crossings(noisy, t, level=0.0).period - period)
        assert pd_crossings(noisy + 0.1, t).period == pytest.approx(period, abs=5 * spread)
    assert np.sqrt(np.mean(np.square(off))) < 1.5 * spread


@pytest.mark.parametrize("rate", [2.0, 2.463, 2.9])
def test_twelve_frames_a_swing_that_is_no_sine_are_enough(rate):
    t = np.arange(150) / 30
    for damping, second in ((0.3, 0.0), (0.0, 0.1)):
        turn = 2 * math.pi * rate * t
        y = 0.05 * (1 - np.exp(-damping * t) * np.cos(turn) - second * np.cos(2 * turn))
        assert pd_crossings(y, t).period * rate == pytest.approx(1, abs=1e-4)


def test_fast_records_and_missing_frames():
    small = rigid.small_period(0.28)
    period = rigid.swing_period(small, math.pi / 2)
    t = np.arange(6000) / 2000
    angle = rigid.swing_angle(t, small, math.pi / 2)
    noisy = angle + np.random.default_rng(1).normal(0, 0.02, len(t))
    # Many frames about a crossing, in which noise alone changes the sign again and again.
    made = pd_crossings(noisy, t, level=0.0)
    assert len(made.times) == 5
    assert made.period == pytest.approx(period, rel=1e-3)
    t, angle = swing(small, math.pi / 2, 300)
    angle[[17, 18, 120]] = np.nan
    assert pd_crossings(angle, t, level=0.0).period == pytest.approx(period, rel=1e-4)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("lost", [8, 20, 34, 60, 90])
def test_swings_that_a_gap_hides_are_counted(lost, known):
    # By a gap of 34 frames, nearly one swing, of 20 frames or of 60 the period was 1.4 s.
    small = rigid.small_period(0.28)
    period = rigid.swing_period(small, math.pi / 2)
    t, angle = swing(small, math.pi / 2, 300)
    for begin in range(0, 300 - lost, 11):
        held = angle.copy()
        held[begin : begin + lost] = np.nan
        left = np.isfinite(held)
        for y, times in ((held, t), (held[left], t[left])):
            made = pd_crossings(y, times, level=0.0 if known else None)
            assert made.period == pytest.approx(period, rel=1e-4)


def test_half_a_swing_beside_a_gap_is_no_period():
    t, angle = swing(rigid.small_period(0.28), 1.0, 62)
    assert len(pd_crossings(angle, t, level=0.0).times) == 4
    angle[15:50] = np.nan  # two of the four passes, and what is between the others
    assert math.isnan(pd_crossings(angle, t, level=0.0).period)


def test_what_does_not_swing_through_once_has_none():
    t = np.arange(100) / 30
    once = np.where(t < 1, -1.0, 1.0)
    for values in (np.zeros(100), t, np.full(100, np.nan), once, np.sin(t + 1)):
        made = pd_crossings(values, t, level=0.0)
        assert math.isnan(made.period)
        assert len(made.times) < 2
    assert math.isnan(pd_crossings(np.sin(2 * t + 0.5), t).period)  # half a swing, about what?
    assert math.isnan(pd_crossings(np.array([1.0, -1, 1]), np.arange(3.0)).period)


def record_of(name, subtask, body, frames):
    """A record in which a body does what its closed form says."""
    card = family(name)
    built = build(card, subtask, "metal")
    (form,) = predict(card, subtask, "metal")
    t = np.arange(frames) / RECORD_HZ
    names = tuple(b.name for b in built.scene.bodies)
    shape = (frames, len(names))
    position = np.zeros((*shape, 3))
    position[:, names.index(body)] = form.trajectory(t)
    still = np.zeros((*shape, 3))
    state = StateLog(
        names, Fraction(1, RECORD_HZ), np.arange(frames), position,
        np.tile([1.0, 0, 0, 0], (*shape, 1)), still, still, np.ones(shape, bool),
        np.full(shape, DYNAMIC, np.uint8),
    )  # fmt: skip
    return card, built, state


@pytest.mark.parametrize("frames", [32, 50, 90, 121, 300, 3000])
@pytest.mark.parametrize("subtask", ["1", "2"])
def test_the_closed_forms_own_record_reads_the_closed_forms_period(subtask, frames):
    card, built, state = record_of("pendulum", subtask, "ball", frames)
    found = {m.metric: m for m in measure(card, subtask, "metal", built, state)}
    period = found["period"]
    assert period.value == pytest.approx(period.expected, rel=2e-5)
