"""Contacts are found by brackets: compared with companion matrices and with exact fractions."""

import random
from fractions import Fraction

import numpy as np
import pytest

from wmeval.sim.engines.carom_roots import (
    RESTING,
    TOUCHING,
    bracketed,
    crossings,
    first_contact,
    value,
)


def exact(c, t):
    return sum(Fraction(x) * Fraction(t) ** i for i, x in enumerate(c))


def test_crossings_are_the_companion_matrix_roots():
    rng = random.Random(1)
    for _ in range(300):
        roots = [rng.uniform(-1, 3) for _ in range(4)]
        c = np.polynomial.polynomial.polyfromroots(roots)
        inside = sorted(r for r in roots if 0 < r < 2)
        if len(inside) > 1 and np.diff(inside).min() < 1e-4:
            continue
        found = crossings(c.tolist(), 0.0, 2.0)
        assert len(found) == len(inside)
        companion = np.sort(np.roots(c[::-1]).real)
        for t, r in zip(found, inside, strict=True):
            assert t == pytest.approx(r, abs=1e-9)
            assert np.abs(companion - t).min() < 1e-9


def test_a_root_lies_between_neighbouring_floats():
    rng = random.Random(2)
    for _ in range(200):
        r = rng.uniform(0.1, 1.9)
        c = [-(r**3), 1e-3, 0.0, 1.0]
        t = bracketed(c, 0.0, 2.0)
        before = np.nextafter(t, 0.0)
        # The polynomial is rising: in exact arithmetic the root is within a rounding of value().
        slope = float(exact([1e-3, 0.0, 3.0], t))
        assert abs(float(exact(c, t))) < 4e-16 * max(1.0, r**3) + slope * (t - before)


def test_a_grazing_pair_is_found_to_the_rounding_and_a_near_miss_is_not():
    """A parabola in t^2: two balls whose paths come within a hair of the sum of the radii."""
    rng = random.Random(3)
    for _ in range(300):
        t0, k = rng.uniform(0.2, 1.5), rng.uniform(0.1, 20)
        for depth in (1e-2, 1e-6, 1e-12, 1e-14):
            # k (t - t0)^2 (1 + t^2) - depth
            square = np.array([t0 * t0, -2 * t0, 1.0]) * k
            c = np.polynomial.polynomial.polymul(square, [1.0, 0.0, 1.0])
            hit = c - np.array([depth, 0, 0, 0, 0])
            miss = c + np.array([depth, 0, 0, 0, 0])
            t = first_contact(hit.tolist(), 2.0)
            if depth > 1e-13:
                assert t is not None
                assert t0 - np.sqrt(depth / k) * 1.01 - 1e-9 < t < t0
            assert t is None or abs(value(hit.tolist(), t)) < 1e-13
            assert depth < 1e-13 or first_contact(miss.tolist(), 2.0) is None


def test_against_dense_sampling():
    rng = random.Random(4)
    grid = np.linspace(0, 1, 4001)
    for _ in range(300):
        c = [rng.uniform(0.01, 1), *(rng.uniform(-4, 4) for _ in range(4))]
        sampled = np.polynomial.polynomial.polyval(grid, c)
        t = first_contact(c, 1.0)
        below = np.flatnonzero(sampled <= 0)
        if len(below):
            assert t is not None
            assert grid[below[0] - 1] <= t <= grid[below[0]]
        else:
            assert t is None or sampled[int(t * 4000)] < 1e-3


def test_a_resolved_pair_is_not_found_again_until_it_comes_back():
    # Parting at 1 m/s, pulled back at 4 m/s^2: back at t = 0.5.
    for start in (0.0, 3e-17, -3e-17):
        assert first_contact([start, 1.0, -2.0], 0.4) is None
        assert first_contact([start, 1.0, -2.0], 1.0) == pytest.approx(0.5, abs=1e-12)


def test_touching_pairs():
    assert first_contact([0.0, -1.0, 0.0], 1.0) == 0.0
    assert first_contact([TOUCHING / 2, -2 * RESTING], 1.0) == 0.0
    assert first_contact([0.0, 0.0, 0.0], 1.0) is None
    assert first_contact([0.0, 0.0, 1.0], 1.0) is None
    # Pressed together at 2 m/s^2: found when they overlap by the tolerance.
    t = first_contact([0.0, 0.0, -1.0], 1.0)
    assert t == pytest.approx(np.sqrt(TOUCHING), rel=1e-6)


@pytest.mark.parametrize("horizon", [0.0, 1e-300, 1000.0])
def test_any_horizon(horizon):
    assert first_contact([1.0, 0.0, 0.0, 0.0, 0.0], horizon) is None
