"""Statistics against brute force enumeration and textbook values."""

import itertools
import math

import numpy as np
import pytest

from wmeval.eval import statistics as S


def test_summary_keeps_scenes_and_generations_apart():
    samples = {0: [1.0, 3.0], 1: [10.0, 10.0, 13.0]}
    summary = S.summarise(samples)
    assert summary.mean == pytest.approx((2 + 11) / 2)
    # Variances within the scenes: 2 and 3; the scenes' distance does not enter.
    assert summary.std == pytest.approx(math.sqrt(2.5))
    assert (summary.scenes, summary.values) == (2, 5)
    assert summary.low <= 2 + 1e-9
    assert summary.high >= 11 - 1e-9


def test_one_generation_has_no_standard_deviation_and_one_scene_no_interval():
    one = S.summarise({0: [1.0], 1: [2.0], 2: [float("nan")]})
    assert math.isnan(one.std)
    assert (one.scenes, one.values) == (2, 2)
    alone = S.summarise({0: [1.0, 2.0]})
    assert math.isnan(alone.low)
    assert alone.std == pytest.approx(math.sqrt(0.5))
    assert math.isnan(S.summarise({}).mean)


def test_bootstrap_matches_all_resamples():
    x = [1.0, 2.0, 4.0, 8.0]
    exact = np.array([np.mean(c) for c in itertools.product(x, repeat=4)])
    low, high = S.cluster_bootstrap(x)
    assert low == pytest.approx(np.quantile(exact, 0.025), abs=0.26)
    assert high == pytest.approx(np.quantile(exact, 0.975), abs=0.26)
    assert S.cluster_bootstrap(x) == (low, high)


def test_bootstrap_interval_covers_about_as_stated():
    rng = np.random.default_rng(0)
    hits = 0
    for k in range(200):
        low, high = S.cluster_bootstrap(rng.normal(size=20), resamples=500, seed=k)
        hits += low <= 0 <= high
    assert 0.86 <= hits / 200 <= 0.98  # the percentile method is a little short at 20 clusters


def test_permutation_equals_enumeration():
    rng = np.random.default_rng(1)
    for shift in (0.0, 0.5, 3.0):
        a, b = rng.normal(size=5), rng.normal(size=5) + shift
        pooled = np.concatenate([a, b])
        observed = abs(a.mean() - b.mean())
        extreme = 0
        for pick in itertools.combinations(range(10), 5):
            rest = [i for i in range(10) if i not in pick]
            extreme += abs(pooled[list(pick)].mean() - pooled[rest].mean()) >= observed - 1e-12
        assert S.permutation(a, b) == pytest.approx(extreme / 252)
    assert S.permutation([1, 2, 3, 4, 5], [11, 12, 13, 14, 15]) == pytest.approx(2 / 252)


def test_welch_textbook():
    a, b = [27.5, 21.0, 19.0, 23.6, 17.0], [27.1, 22.0, 20.8, 23.4, 23.4]
    va, vb = np.var(a, ddof=1) / 5, np.var(b, ddof=1) / 5
    t = (np.mean(a) - np.mean(b)) / math.sqrt(va + vb)
    dof = (va + vb) ** 2 / (va**2 / 4 + vb**2 / 4)
    # Two-sided tail of Student's t by direct quadrature of its density.
    grid = np.linspace(abs(t), abs(t) + 400, 4_000_001)
    log_c = math.lgamma((dof + 1) / 2) - math.lgamma(dof / 2) - 0.5 * math.log(dof * math.pi)
    density = np.exp(log_c - (dof + 1) / 2 * np.log1p(grid**2 / dof))
    tail = float(np.sum((density[1:] + density[:-1]) / 2 * np.diff(grid)))
    assert S.welch(a, b) == pytest.approx(2 * tail, rel=1e-5)
    assert math.isnan(S.welch([1.0], b))
    assert S.welch([1.0, 1.0], [1.0, 1.0]) == 1.0
    assert S.welch([1.0, 1.0], [2.0, 2.0]) == 0.0


def test_fisher_and_clopper_pearson_give_the_papers_published_numbers():
    # WMEval, table 3: 3/15 chains against 13/15: p = 0.0007, interval [4.3, 48.1] %.
    assert S.fisher(3, 15, 13, 15) == pytest.approx(0.0007, abs=5e-5)
    low, high = S.clopper_pearson(3, 15)
    assert (100 * low, 100 * high) == pytest.approx((4.3, 48.1), abs=0.05)


def test_fisher_equals_enumeration_of_tables():
    def p_table(k, n1, n2, total):
        return math.comb(n1, k) * math.comb(n2, total - k) / math.comb(n1 + n2, total)

    for a, b in itertools.product(range(6), range(8)):
        total = a + b
        ks = range(max(0, total - 7), min(5, total) + 1)
        observed = p_table(a, 5, 7, total)
        brute = sum(p for k in ks if (p := p_table(k, 5, 7, total)) <= observed * (1 + 1e-9))
        assert S.fisher(a, 5, b, 7) == pytest.approx(brute)


def test_clopper_pearson_inverts_the_binomial_tails():
    for k, n in ((1, 5), (7, 9), (13, 15)):
        low, high = S.clopper_pearson(k, n)
        upper = sum(math.comb(n, i) * low**i * (1 - low) ** (n - i) for i in range(k, n + 1))
        lower = sum(math.comb(n, i) * high**i * (1 - high) ** (n - i) for i in range(k + 1))
        assert upper == pytest.approx(0.025, abs=1e-6)
        assert lower == pytest.approx(0.025, abs=1e-6)
    assert S.clopper_pearson(0, 4)[0] == 0
    assert S.clopper_pearson(4, 4)[1] == 1


def test_three_run_subsets_and_stability():
    assert len(S.three_run_subsets([1, 2, 3, 4, 5])) == 10
    assert S.three_run_subsets([1, 2, 6]) == (3.0,)
    assert S.subset_stability([1, 2, 3, 4, 5], [11, 12, 13, 14, 15]) == 1
    # One outlier makes b larger on the whole; without it (4 of 10 subsets) a is larger.
    assert S.subset_stability([1, 1, 1, 1, 1], [0, 0, 0, 0, 9]) == pytest.approx(0.6)
    assert math.isnan(S.subset_stability([1, 2], [3, 4]))


def test_the_fewest_repetitions_that_can_separate_are_found_by_the_tests_themselves():
    for n in range(2, 7):
        a, b = [0.1 * k for k in range(n)], [9 + 0.1 * k for k in range(n)]
        assert S.can_separate(n, n) == (S.permutation(a, b) < S.ALPHA) == (n >= 4)
        assert S.can_separate(n, n) == (S.fisher(0, n, n, n) < S.ALPHA)


@pytest.mark.filterwarnings("error")
def test_samples_without_spread_raise_no_warning():
    third = 1 / 3
    almost = [third, third + 4e-17, third * (1 + 1e-15)]
    for a, b, p in (
        ([third] * 3, almost, 1.0),
        ([third] * 3, [2.0] * 3, 0.0),
        ([2.0] * 4, [1.0, 1.1, 1.2, 1.3], None),
    ):
        assert S.welch(a, b) == pytest.approx(S.welch(b, a))
        assert p is None or S.welch(a, b) == p
    assert 0 < S.welch([2.0] * 4, [1.0, 1.1, 1.2, 1.3]) < 0.01
    same = {s: [third] for s in range(4)}
    assert S.compare(same, same).permutation_p == 1.0


def test_equal_candidates_are_not_separable_and_far_ones_are():
    near = {0: [1.0, 1.1, 0.9, 1.05, 0.95]}
    far = {0: [2.0, 2.1, 1.9, 2.05, 1.95]}
    assert not S.compare(near, near).separable
    assert S.compare(near, far).separable
    assert S.compare(near, far).difference == pytest.approx(-1.0)
    few = S.compare({0: [1.0, 1.1]}, {0: [9.0, 9.1]})
    assert not few.separable
    assert "2 repetitions are too few" in few.reason
    assert S.compare({0: [1.0]}, {1: [1.0]}).reason == "no scene is measured for both"


def test_scenes_are_the_replicates_where_there_are_several():
    a = {s: [float(s)] for s in range(5)}
    b = {s: [s + 20.0] for s in range(5)}
    result = S.compare(a, b)
    assert result.separable
    assert (result.low, result.high) == pytest.approx((-20, -20))
    # Five generations of two scenes are two replicates, not ten.
    c = {0: [1.0] * 5, 1: [1.1] * 5}
    assert "2 repetitions" in S.compare(c, {0: [3.0] * 5, 1: [3.1] * 5}).reason
