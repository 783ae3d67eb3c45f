"""How sure a number is, and whether two candidates can be told apart.

Two kinds of repetition are kept apart everywhere. A *scene seed* fixes a reference; a *generation*
is one of a candidate's draws of ONE case. Standard deviations are over generations within a scene;
intervals resample scenes. Sources: WMEval, "Finite-Sample Robustness" (three-run subsets, Welch,
exact permutation, Fisher exact, Clopper-Pearson). SciPy does what SciPy has.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Samples = Mapping[int, Sequence[float]]
"""Values of one metric: scene seed -> its generations' values. Non-finite values are unmeasured."""

RESAMPLES = 20_000
ALPHA = 0.05
_EXACT_LIMIT = 200_000  # splits that are enumerated; above it, that many are drawn


def measured(samples: Samples) -> dict[int, tuple[float, ...]]:
    """The finite values; scenes without one are left out."""
    kept = {s: tuple(float(v) for v in vs if math.isfinite(v)) for s, vs in samples.items()}
    return {s: vs for s, vs in kept.items() if vs}


def scene_means(samples: Samples) -> dict[int, float]:
    """Mean over generations of every scene that has a measured one."""
    return {s: float(np.mean(vs)) for s, vs in measured(samples).items()}


@dataclass(frozen=True)
class Summary:
    """One metric over scenes and generations.

    Attributes:
        mean: mean over scenes of the scenes' means over generations; NaN without a value.
        std: sample standard deviation over generations, root of the mean variance within scenes;
            NaN when no scene has two generations ("N/A").
        low, high: 95 % cluster percentile bootstrap interval over scenes; NaN below two scenes.
        scenes: scenes measured.
        values: values measured.
    """

    mean: float
    std: float
    low: float
    high: float
    scenes: int
    values: int


def summarise(samples: Samples, *, resamples: int = RESAMPLES, seed: int = 0) -> Summary:
    """Mean, standard deviation over generations, interval over scenes."""
    kept = measured(samples)
    means = list(scene_means(samples).values())
    within = [float(np.var(vs, ddof=1)) for vs in kept.values() if len(vs) > 1]
    low, high = cluster_bootstrap(means, resamples=resamples, seed=seed)
    return Summary(
        mean=float(np.mean(means)) if means else float("nan"),
        std=math.sqrt(float(np.mean(within))) if within else float("nan"),
        low=low,
        high=high,
        scenes=len(kept),
        values=sum(len(vs) for vs in kept.values()),
    )


def cluster_bootstrap(
    means: Sequence[float],
    *,
    confidence: float = 1 - ALPHA,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> tuple[float, float]:
    """Percentile interval of the mean when whole scenes are drawn with replacement.

    Args:
        means: one number per scene (cluster), shape (S,).
        confidence: in (0, 1).
        resamples: bootstrap draws.
        seed: of the draws; the same seed gives the same interval.

    Returns:
        (low, high); NaN, NaN below two scenes: one scene says nothing about others.
    """
    x = np.asarray(means, np.float64)
    if len(x) < 2:
        return float("nan"), float("nan")
    picks = np.random.default_rng(seed).integers(0, len(x), (resamples, len(x)))
    tail = (1 - confidence) / 2
    low, high = np.quantile(x[picks].mean(axis=1), [tail, 1 - tail])
    return float(low), float(high)


def welch(a: Sequence[float], b: Sequence[float]) -> float:
    """Two-sided p of Welch's unequal-variance t test; NaN below two values a side.

    Two constant samples have no variance to test against: p is 1 where they are equal, 0 otherwise.
    Spreads and differences within rounding of the values count as none.
    """
    if min(len(a), len(b)) < 2:
        return float("nan")
    x, y = np.asarray(a, np.float64), np.asarray(b, np.float64)
    rounding = 1e-12 * max(np.abs(x).max(), np.abs(y).max())
    if max(np.ptp(x), np.ptp(y)) <= rounding:
        return 1.0 if abs(x.mean() - y.mean()) <= rounding else 0.0
    from scipy import stats

    # From moments: SciPy warns of a sample without spread even where the other has one.
    left, right = ((v.mean(), v.std(ddof=1), len(v)) for v in (x, y))
    return float(stats.ttest_ind_from_stats(*left, *right, equal_var=False).pvalue)


def _mean_difference(x: NDArray[np.float64], y: NDArray[np.float64], axis: int = -1) -> Any:
    return np.mean(x, axis=axis) - np.mean(y, axis=axis)


def permutation(a: Sequence[float], b: Sequence[float], *, seed: int = 0) -> float:
    """Two-sided p of the permutation test of a difference of means; NaN when a side is empty.

    Exact over all splits up to 200,000 of them, else that many random ones from ``seed``.
    """
    if not len(a) or not len(b):
        return float("nan")
    if len(a) + len(b) < 3 or sorted(a) == sorted(b):
        return 1.0
    from scipy import stats

    splits = math.comb(len(a) + len(b), len(a))
    result = stats.permutation_test(
        (np.asarray(a, np.float64), np.asarray(b, np.float64)),
        _mean_difference,
        permutation_type="independent",
        vectorized=True,
        n_resamples=min(splits, _EXACT_LIMIT),
        alternative="two-sided",
        random_state=np.random.default_rng(seed),
    )
    return float(result.pvalue)


def can_separate(n_a: int, n_b: int, *, alpha: float = ALPHA) -> bool:
    """Whether so many repetitions a side can ever be told apart.

    The most extreme of all splits (permutation) and of all tables (Fisher) has the two-sided
    p = 2 / C(n_a + n_b, n_a): with four a side it is 0.029, with three 0.1.
    """
    return min(n_a, n_b) >= 3 and 2 / math.comb(n_a + n_b, n_a) < alpha


def fisher(successes_a: int, n_a: int, successes_b: int, n_b: int) -> float:
    """Two-sided p of Fisher's exact test of two proportions; NaN when a side is empty."""
    if not n_a or not n_b:
        return float("nan")
    from scipy import stats

    table = np.array([[successes_a, n_a - successes_a], [successes_b, n_b - successes_b]])
    return float(stats.fisher_exact(table).pvalue)


def clopper_pearson(
    successes: int, n: int, *, confidence: float = 1 - ALPHA
) -> tuple[float, float]:
    """Exact interval of a proportion, in [0, 1]; NaN, NaN for n = 0."""
    if not n:
        return float("nan"), float("nan")
    from scipy import stats

    interval = stats.binomtest(successes, n).proportion_ci(confidence, method="exact")
    return float(interval.low), float(interval.high)


def three_run_subsets(values: Sequence[float]) -> tuple[float, ...]:
    """Means of all three-run subsets (10 for five runs), in lexicographic order.

    Raises:
        ValueError: fewer than three runs.
    """
    if len(values) < 3:
        raise ValueError(f"three runs at least are wanted; got {len(values)}")
    return tuple(float(np.mean(c)) for c in combinations(values, 3))


def subset_stability(a: Sequence[float], b: Sequence[float]) -> float:
    """Share of three-run subsets, the same runs of both, that order two candidates as all do.

    WMEval, "Finite-Sample Robustness". NaN below three runs, or when the runs are not as many; a
    tie of a subset is not the same order, unless all runs tie.
    """
    if len(a) != len(b) or len(a) < 3:
        return float("nan")
    order = np.sign(np.mean(a) - np.mean(b))
    pairs = zip(three_run_subsets(a), three_run_subsets(b), strict=True)
    return float(np.mean([np.sign(x - y) == order for x, y in pairs]))


@dataclass(frozen=True)
class Comparison:
    """Two candidates on one metric.

    Attributes:
        difference: mean of a - mean of b.
        low, high: 95 % cluster bootstrap interval of the difference over shared scenes; NaN below
            two.
        welch_p, permutation_p: two-sided; over scenes, or over generations of the only scene.
        stability: share of three-run subsets with the same order; NaN where undefined.
        separable: the evidence tells them apart.
        reason: what is missing; empty when separable.
    """

    difference: float
    low: float
    high: float
    welch_p: float
    permutation_p: float
    stability: float
    separable: bool
    reason: str


def compare(a: Samples, b: Samples, *, alpha: float = ALPHA) -> Comparison:
    """Can two candidates be told apart by one metric?

    The unit of replication is the scene; with one shared scene it is the generation, as in the
    paper's tables. Separable (ours) means: enough units (`can_separate`), an exact permutation
    test below ``alpha``, the bootstrap interval of the difference over shared scenes not holding 0
    (where there are two or more), and every three-run subset in the same order (where defined).
    Only scenes measured for both enter.
    """
    kept_a, kept_b = measured(a), measured(b)
    shared = sorted(set(kept_a) & set(kept_b))
    if len(shared) == 1:
        left, right = list(kept_a[shared[0]]), list(kept_b[shared[0]])
    else:
        left = [float(np.mean(kept_a[s])) for s in shared]
        right = [float(np.mean(kept_b[s])) for s in shared]
    difference = float(np.mean(left) - np.mean(right)) if shared else float("nan")
    low = high = float("nan")
    if len(shared) > 1:
        low, high = cluster_bootstrap([x - y for x, y in zip(left, right, strict=True)])
    p_permutation = permutation(left, right)
    stability = subset_stability(left, right)
    reason = ""
    if not shared:
        reason = "no scene is measured for both"
    elif not can_separate(len(left), len(right), alpha=alpha):
        reason = f"{min(len(left), len(right))} repetitions are too few to separate"
    elif not p_permutation < alpha:
        reason = f"permutation p = {p_permutation:.3g}"
    elif low <= 0 <= high:
        reason = "the interval of the difference holds 0"
    elif stability < 1:
        reason = f"order kept in {100 * stability:.0f} % of three-run subsets"
    return Comparison(
        difference, low, high, welch(left, right), p_permutation, stability, not reason, reason
    )
