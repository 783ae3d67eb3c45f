"""Mechanical quantities against closed forms."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wmeval.eval.metrics.mechanics import (
    Quantity,
    difference_velocity,
    error_rate,
    exact_match,
    fitted_velocity,
    kinetic_energy,
    momentum,
    robust_error,
    two_digits,
)


def quantity(candidate, reference, floor=0.0):
    return Quantity("terminal momentum", "ball", "kg m/s", candidate, reference, floor)


def test_backward_difference_of_a_parabola():
    t = np.arange(10) / 24
    x = np.stack([0.5 * 3.0 * t**2, 2.0 * t, 0 * t], axis=1)
    v = difference_velocity(x, t)
    assert np.isnan(v[0]).all()
    # The difference is the exact velocity half an interval earlier.
    assert v[1:, 0] == pytest.approx(3.0 * (t[1:] - 0.5 / 24))
    assert v[1:, 1] == pytest.approx(np.full(9, 2.0))


def test_difference_velocity_uses_the_real_intervals_and_keeps_gaps():
    v = difference_velocity(np.array([[0.0], [1.0], [np.nan], [4.0]]), np.array([0, 0.5, 1.0, 3.0]))
    assert v[1, 0] == 2.0
    assert np.isnan(v[2:]).all()
    with pytest.raises(ValueError, match="ascend"):
        difference_velocity(np.zeros((2, 1)), np.array([1.0, 1.0]))


def test_momentum_and_energy_of_a_known_ball():
    v = np.array([[3.0, 4.0, 0.0]])
    assert momentum(12.0, v)[0] == pytest.approx([36, 48, 0])
    assert kinetic_energy(12.0, v)[0] == pytest.approx(150.0)


@given(st.floats(1e-3, 1e3), st.floats(0.2, 5))
def test_energy_and_momentum_agree(mass, speed):
    v = np.array([speed, 0, 0])
    assert kinetic_energy(mass, v) == pytest.approx(
        np.linalg.norm(momentum(mass, v)) ** 2 / 2 / mass
    )


@pytest.mark.parametrize(
    ("value", "rounded"),
    [(0.0, 0.0), (1.26, 1.3), (-84.51, -85), (123.4, 120), (0.000678, 0.00068), (9.96, 10.0)],
)
def test_two_significant_digits(value, rounded):
    assert two_digits(value) == pytest.approx(rounded, rel=1e-12)


def test_exact_match_counts_equal_roundings_only():
    score = exact_match([quantity(1.26, 1.32), quantity(1.26, 1.36), quantity(1.3, 1.26)])
    assert score.value == pytest.approx(100 * 2 / 3)
    assert score.n == 3


def test_bodies_at_rest_do_not_decide_the_exact_matches():
    resting = [quantity(0.0, 0.0), quantity(0.0, 0.01, floor=0.05), quantity(0.02, 0.0, floor=0.05)]
    score = exact_match([quantity(1.0, 2.0), *resting])
    assert (score.value, score.n, score.below_floor) == (0.0, 1, 3)


def test_error_rate_is_the_mean_and_robust_error_the_median():
    rows = [quantity(1.1, 1.0), quantity(2.4, 2.0), quantity(-4.0, -1.0)]
    assert error_rate(rows).value == pytest.approx(100 * (0.1 + 0.2 + 3.0) / 3)
    assert robust_error(rows).value == pytest.approx(20.0)


def test_small_references_and_unmeasured_values_are_left_out_and_counted():
    rows = [quantity(1.1, 1.0), quantity(1.0, 0.0), quantity(1.0, 0.01, floor=0.05)]
    rows.append(quantity(float("nan"), 1.0))
    score = error_rate(rows)
    assert (score.n, score.below_floor, score.unmeasured) == (1, 2, 1)
    assert score.value == pytest.approx(10.0)
    nothing = robust_error(rows[1:])
    assert math.isnan(nothing.value)
    assert nothing.n == 0


def test_a_velocity_fitted_to_pixels_does_not_grow_noisy_with_the_frame_rate():
    rng = np.random.default_rng(0)
    fitted, differenced = [], []
    for fps in (15, 30, 60):
        t = np.arange(8 * fps) / fps
        x = np.stack([np.sin(t), 0.5 * t], axis=1)
        v = np.stack([np.cos(t), np.full(len(t), 0.5)], axis=1)
        seen = x + rng.normal(0, 0.02, x.shape)
        fitted.append(np.sqrt(np.mean((fitted_velocity(seen, t) - v) ** 2)))
        error = difference_velocity(seen, t)[1:] - v[1:]
        differenced.append(np.sqrt(np.mean(error**2)))
    assert differenced[2] > 3.5 * differenced[0]
    assert fitted[0] > fitted[1] > fitted[2]
    assert fitted[2] < differenced[2] / 10


def test_a_fitted_velocity_is_exact_on_a_line_and_deaf_to_a_jump():
    t = np.arange(30) / 30
    x = np.stack([2 * t, -t], axis=1)
    assert fitted_velocity(x, t) == pytest.approx(np.tile([2.0, -1.0], (30, 1)))
    x[14] += 5.0
    x[20] = np.nan
    v = fitted_velocity(x, t)
    assert np.isnan(v[20]).all()
    kept = np.delete(v, [14, 20], axis=0)
    assert np.abs(kept - [2.0, -1.0]).max() < 0.2
    assert np.isnan(fitted_velocity(x[:1], t[:1])).all()
