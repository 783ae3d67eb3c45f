"""Motion on the cloth against closed forms and an independent integration."""

import math

import numpy as np
import pytest
from carom_tables import ROLL, SLIDE, G, R, rolling, shot, table, table_spec
from scipy.integrate import solve_ivp

from wmeval.sim.engines.carom_motion import (
    RESTING,
    ROLLING,
    SLIDING,
    SPINNING,
    BallState,
    Cloth,
    Turning,
    begin,
    series_turn,
    slip,
)

CLOTH = Cloth(R, SLIDE * G, ROLL * G, 10.0)


@pytest.mark.parametrize("speed", [0.3, 2.0, 6.0])
def test_a_sliding_ball_rolls_after_two_sevenths_and_at_five_sevenths(speed):
    phase = begin(shot(0, 0, speed, 0.7), 0.0, CLOTH)
    assert phase.kind == SLIDING
    assert phase.duration == pytest.approx(2 * speed / (7 * SLIDE * G), rel=1e-14)
    end = phase.last(R)
    assert math.hypot(end.vx, end.vy) == pytest.approx(5 / 7 * speed, rel=1e-14)
    assert math.hypot(*slip(end, R)) < 1e-15
    travelled = math.hypot(end.x, end.y)
    assert travelled == pytest.approx(12 * speed**2 / (49 * SLIDE * G), rel=1e-13)
    after = begin(end, phase.end, CLOTH)
    assert after.kind == ROLLING
    assert after.duration == pytest.approx(5 / 7 * speed / (ROLL * G), rel=1e-13)
    stop = after.last(R)
    assert (stop.vx, stop.vy, stop.wx, stop.wy) == (0, 0, 0, 0)
    path = math.hypot(stop.x - end.x, stop.y - end.y)
    assert path == pytest.approx((5 / 7 * speed) ** 2 / (2 * ROLL * G), rel=1e-12)


def test_a_ball_struck_at_two_fifths_above_its_centre_rolls_at_once():
    assert begin(rolling(0, 0, 2.0, 1.1), 0.0, CLOTH).kind == ROLLING


def test_a_draw_shot_on_an_empty_table_slides_longer_and_rolls_slower():
    """Struck at b below the centre: v = 5/7 (1 + b) v0 with b = -1/2, from the angular momentum
    about the contact point."""
    phase = begin(shot(0, 0, 2.0, 0.0, follow=-0.5), 0.0, CLOTH)
    assert phase.last(R).vx == pytest.approx(5 / 7 * 2.0 * (1 - 0.5), rel=1e-14)


def test_side_spin_does_not_bend_the_path_and_ends_at_its_own_rate():
    """With the cue level the axis of the spin is vertical: nothing pushes sideways."""
    world = table(table_spec(1, half=(9, 9)), shot(0, 0, 1.0, 0.0, side=0.5))
    spin = 2.5 * 1.0 / R * 0.5
    world.advance(spin / 10.0 + 1e-9)
    assert world.state(0, world.now).wz == 0.0
    world = table(table_spec(1, half=(9, 9)), shot(0, 0, 1.0, 0.0, side=0.5))
    world.advance(1.5)
    assert world.state(0, 1.5).wz == pytest.approx(-spin + 15.0)
    assert world.state(0, 1.5).y == 0.0


def test_a_spinning_ball_stays_and_rests():
    phase = begin(BallState(0, 0, wz=-30.0), 2.0, CLOTH)
    assert phase.kind == SPINNING
    assert phase.end == pytest.approx(5.0)
    assert begin(phase.last(R), phase.end, CLOTH).kind == RESTING


def test_every_phase_agrees_with_an_integration_of_coulombs_law():
    def rate(_, s):
        vx, vy, wx, wy, wz = s[2:7]
        ux, uy = vx - R * wy, vy + R * wx
        u = math.hypot(ux, uy)
        ax, ay = -SLIDE * G * ux / u, -SLIDE * G * uy / u
        k = 2.5 / R
        return [vx, vy, ax, ay, k * ay, -k * ax, -10.0 * np.sign(wz)]

    rng = np.random.default_rng(5)
    for _ in range(5):
        first = BallState(0, 0, *rng.uniform(-3, 3, 2), *rng.uniform(-150, 150, 3))
        phase = begin(first, 0.0, CLOTH)
        h = 0.9 * phase.duration
        found = solve_ivp(
            rate, (0, h), [0, 0, first.vx, first.vy, first.wx, first.wy, first.wz],
            rtol=1e-12, atol=1e-12,
        ).y[:, -1]  # fmt: skip
        s = phase.at(h)
        np.testing.assert_allclose([s.x, s.y, s.vx, s.vy, s.wx, s.wy, s.wz], found, atol=1e-8)


# --- rotation -----------------------------------------------------------------------------------


def integrated(q, w, b, h):
    def rate(t, q):
        x, y, z = w + b * t
        omega = np.array([[0, -x, -y, -z], [x, 0, -z, y], [y, z, 0, -x], [z, -y, x, 0]])
        return 0.5 * omega @ q

    return solve_ivp(rate, (0, h), q, rtol=1e-13, atol=1e-14, method="DOP853").y[:, -1]


def test_rotation_about_a_turning_axis_is_that_of_its_equation():
    rng = np.random.default_rng(6)
    for _ in range(4):
        w, b = rng.uniform(-60, 60, 3), rng.uniform(-80, 80, 3)
        first = BallState(0, 0, 2.0, 0.5, *w)
        phase = begin(first, 0.0, CLOTH)
        b = np.array([phase.bx, phase.by, phase.bz])
        h = min(phase.duration, 0.5)
        q = Turning((1.0, 0.0, 0.0, 0.0)).at([phase], h)
        assert math.hypot(*q) == pytest.approx(1.0, abs=1e-15)
        np.testing.assert_allclose(q, integrated([1, 0, 0, 0], w, b, h), atol=3e-11)


def test_the_power_series_does_not_depend_on_its_step():
    w, b = (3.0, -20.0, 7.0), (11.0, 5.0, -10.0)
    one = series_turn((1.0, 0.0, 0.0, 0.0), w, b, 0.1)
    half = series_turn((1.0, 0.0, 0.0, 0.0), w, b, 0.05)
    middle = tuple(x + 0.05 * y for x, y in zip(w, b, strict=True))
    np.testing.assert_allclose(series_turn(half, middle, b, 0.05), one, atol=4e-16)


def test_a_rolling_ball_turns_by_its_path_over_its_radius():
    world = table(table_spec(1, half=(9, 9)), rolling(0, 0, 2.0, 0.0))
    world.advance(1.0)
    w, x, y, z = world.rotation(0)
    angle = world.state(0, 1.0).x / R
    assert (w, x, y, z) == pytest.approx((math.cos(angle / 2), 0, math.sin(angle / 2), 0))


def test_what_was_asked_before_changes_no_bit_of_the_rotation():
    first = shot(-1, 0.2, 3.0, 0.3, side=0.4, follow=0.2)
    spec = table_spec(1)
    often, once = table(spec, first), table(spec, first)
    for k in range(1, 500):
        often.advance(k / 177)
        often.rotation(0)
    once.advance(499 / 177)
    assert often.rotation(0) == once.rotation(0)
