"""Trajectory metrics against closed forms and brute force over all monotone paths."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from wmeval.eval.metrics.trajectory import distances, final_displacement, rmse, warp


def all_paths(n: int, m: int):
    """Every monotone path from (0, 0) to (n - 1, m - 1)."""

    def walk(i: int, j: int):
        if (i, j) == (n - 1, m - 1):
            yield [(i, j)]
            return
        for a, b in ((1, 1), (1, 0), (0, 1)):
            if i + a < n and j + b < m:
                for rest in walk(i + a, j + b):
                    yield [(i, j), *rest]

    return walk(0, 0)


def tracks(n: int):
    return hnp.arrays(np.float64, (n, 2), elements=st.floats(-5, 5))


@settings(max_examples=40, deadline=None)
@given(tracks(4), tracks(5))
def test_warp_is_the_least_sum_over_all_monotone_paths(a, b):
    cost = np.linalg.norm(a[:, None] - b[None], axis=-1)
    brute = min(sum(cost[i, j] for i, j in path) for path in all_paths(4, 5))
    result = warp(a, b)
    assert result.total == pytest.approx(brute, abs=1e-12)
    assert list(result.path) in list(all_paths(4, 5))
    assert sum(cost[i, j] for i, j in result.path) == pytest.approx(result.total, abs=1e-12)
    assert result.mean == pytest.approx(result.total / len(result.path))


def test_warp_minimises_distances_not_their_squares():
    rng = np.random.default_rng(3)
    differs = 0
    for _ in range(200):
        a, b = rng.normal(size=(4, 2)), rng.normal(size=(4, 2))
        cost = np.linalg.norm(a[:, None] - b[None], axis=-1)
        squared = min(all_paths(4, 4), key=lambda p: sum(cost[i, j] ** 2 for i, j in p))
        total = sum(cost[i, j] for i, j in squared)
        assert warp(a, b).total <= total + 1e-12
        differs += warp(a, b).total < total - 1e-9
    assert differs > 0, "the test must meet cases in which the two problems differ"


def test_warp_equals_an_independent_library():
    dtw_ndim = pytest.importorskip("dtaidistance.dtw_ndim")
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(60, 3)).cumsum(0), rng.normal(size=(47, 3)).cumsum(0)
    other = dtw_ndim.distance(a, b, inner_dist="euclidean")
    assert warp(a, b).total == pytest.approx(other, rel=1e-12)


def test_a_delay_costs_the_final_displacement_more_than_the_warp():
    t = np.linspace(0, 2, 49)
    reference = np.stack([t, np.zeros_like(t)], axis=1)
    delayed = np.stack([np.maximum(t - 0.25, 0), np.zeros_like(t)], axis=1)
    assert final_displacement(delayed, reference) == pytest.approx(0.25)
    assert warp(delayed, reference).mean < 0.06


def test_closed_forms_of_a_shift():
    reference = np.random.default_rng(1).normal(size=(30, 3))
    shifted = reference + np.array([3.0, 4.0, 0.0])
    assert final_displacement(shifted, reference) == pytest.approx(5.0)
    assert rmse(shifted, reference) == pytest.approx(5.0)
    assert distances(shifted, reference) == pytest.approx(np.full(30, 5.0))
    assert warp(reference, reference).total == 0.0
    assert warp(reference, reference).path == tuple((i, i) for i in range(30))


def test_unmeasured_frames_are_left_out_not_guessed():
    reference = np.stack([np.arange(5.0), np.zeros(5)], axis=1)
    candidate = reference + np.array([0.0, 1.0])
    candidate[3:] = np.nan
    assert final_displacement(candidate, reference) == 1.0  # at frame 2, the last shared one
    assert rmse(candidate, reference) == 1.0
    assert max(i for i, _ in warp(candidate, reference).path) == 2
    nothing = np.full((5, 2), np.nan)
    assert math.isnan(final_displacement(nothing, reference))
    assert math.isnan(rmse(nothing, reference))
    assert math.isnan(warp(nothing, reference).total)


def test_tracks_of_unlike_shape_are_refused():
    with pytest.raises(ValueError, match="one shape"):
        rmse(np.zeros((3, 2)), np.zeros((4, 2)))
    with pytest.raises(ValueError, match=r"\(N, D\)"):
        warp(np.zeros((3, 2)), np.zeros((4, 3)))


def test_graded_errors_give_graded_values():
    t = np.linspace(0, 1, 30)
    reference = np.stack([t**2, np.sin(t)], axis=1)
    for metric in (final_displacement, rmse, lambda a, b: warp(a, b).mean):
        doses = [metric(reference * (1 + e), reference) for e in (0, 0.05, 0.1, 0.2, 0.4)]
        assert doses[0] == 0
        assert all(a < b for a, b in itertools.pairwise(doses))
