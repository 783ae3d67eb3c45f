"""From case records to the table: one row per metric, subject and source, and its checks."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

import numpy as np

from wmeval.eval import measure as m
from wmeval.eval import statistics
from wmeval.eval.metrics.table import METRICS, NEEDS_WEIGHTS
from wmeval.eval.perception import CLASSICAL_SETTINGS
from wmeval.eval.results import CaseRecord, PairConfig, PairResults, Row

DIMENSIONS = tuple(
    dict.fromkeys(
        [
            *(x.dimension for x in METRICS.values()),
            *(x.dimension for x in NEEDS_WEIGHTS.values()),
        ]
    )
)
"""Evaluation dimensions that have a metric, in the table's order."""

DRIVEN_FOR = frozenset(
    [*(x.dimension for x in METRICS.values()), NEEDS_WEIGHTS["clpips"].dimension]
)
"""Dimensions for which a candidate is driven: of what it does, not of what its picture holds."""


def collect(job: PairConfig, cases: Sequence[CaseRecord]) -> PairResults:
    """Sum up cases: one row per metric, subject and source.

    Args:
        job: what was compared.
        cases: all of them, at least one.
    """
    import wmeval

    keys = list(dict.fromkeys(x.key for case in cases for x in case.measurements))
    subjects = list(dict.fromkeys(subject for _, subject, _ in keys))
    keys.sort(key=lambda key: _order(key, subjects))
    return PairResults(
        wmeval=wmeval.__version__,
        candidate=job.candidate,
        model=cases[0].model,
        config={**job.model_dump(mode="json"), "classical": dict(CLASSICAL_SETTINGS)},
        suite_sha256=suite_hash(cases),
        rows=tuple(_row(key, cases) for key in keys),
        cases=tuple(cases),
    )


def suite_hash(cases: Sequence[CaseRecord]) -> str:
    """Sha256 over the references' content, seed by seed: equal for equal references only."""
    lines = sorted({f"{c.case_id} {c.reference_sha256}" for c in cases})
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()


def _order(key: tuple[str, str, str], subjects: Sequence[str]) -> tuple[int, ...]:
    metric, subject, source = key
    names = [*METRICS, *NEEDS_WEIGHTS]
    sources = ["oracle", "classical", "learned", "none"]
    return (
        DIMENSIONS.index(m.dimension_of(metric)),
        names.index(metric),
        subjects.index(subject),
        sources.index(source),
    )


def _row(key: tuple[str, str, str], cases: Sequence[CaseRecord]) -> Row:
    metric, subject, source = key
    card = METRICS.get(metric) or NEEDS_WEIGHTS[metric]
    aggregate = getattr(card, "aggregate", "mean")
    found = [x for c in cases for x in c.measurements if x.key == key]
    samples: dict[int, list[float]] = {}
    for case in cases:
        for x in case.measurements:
            if x.key == key:
                value = math.nan if x.value is None else x.value
                samples.setdefault(case.scene_seed, []).append(value)
    summary = statistics.summarise(samples)
    values = [v for vs in statistics.measured(samples).values() for v in vs]
    value, std, interval = summary.mean, summary.std, (summary.low, summary.high)
    p_reference = None
    if aggregate == "proportion" and values:
        # The scene is the unit: generations of one scene are no independent evidence. It counts as
        # preserved when all its generations are (ours).
        per_scene = statistics.measured(samples)
        right, n = sum(all(v > 50 for v in vs) for vs in per_scene.values()), len(per_scene)
        if len(values) == n:
            low, high = statistics.clopper_pearson(right, n)
            std, interval = math.nan, (100 * low, 100 * high)
        own = {c.scene_seed: x.value for c in cases for x in c.identity if x.metric == metric}
        p_reference = statistics.fisher(right, n, sum(v == 100 for v in own.values()), len(own))
    elif aggregate == "max" and values:
        value, std, interval = max(values), math.nan, (math.nan, math.nan)
    covered = [x.coverage for x in found if x.status == "measured" and x.coverage is not None]
    missing = sorted({x.reason for x in found if x.status != "measured"})
    ends = [x.detail.get("stages_after_end") for x in found]
    after = max((n for n in ends if isinstance(n, int)), default=0)
    if after and values:
        missing.append(f"up to {after} stages end after the clip and are not asked about")
    floor, why = _floor(cases, metric, subject, source)
    return Row(
        metric=metric,
        subject=subject,
        source=source,
        title=card.title,
        dimension=card.dimension,
        unit=card.unit,
        direction=card.direction,
        status="measured" if values else found[0].status,
        value=_or_none(value),
        std=_or_none(std),
        interval=None if math.isnan(interval[0]) else interval,
        scenes=summary.scenes,
        generations=summary.values,
        cases=len(found),
        coverage=float(np.mean(covered)) if covered else None,
        identity=_check(cases, "identity", metric, subject),
        pixel_floor=floor,
        reduction_floor=_check(cases, "reduction_floor", metric, subject),
        floor_reason=why,
        p_reference=None if p_reference is None else _or_none(p_reference),
        samples={str(s): tuple(_or_none(v) for v in vs) for s, vs in samples.items()},
        reason="; ".join(missing),
    )


def _check(cases: Sequence[CaseRecord], name: str, metric: str, subject: str) -> float | None:
    values = [
        x.value
        for c in cases
        for x in getattr(c, name)
        if (x.metric, x.subject) == (metric, subject) and x.value is not None
    ]
    if not values:
        return None
    card = METRICS.get(metric)
    return max(values) if card and card.aggregate == "max" else float(np.mean(values))


def _floor(
    cases: Sequence[CaseRecord], metric: str, subject: str, source: str
) -> tuple[float | None, str]:
    """The pixel floor of a row, or why there is none."""
    if source != "classical":
        return None, "read from the simulator's records, not from pixels" if source == "oracle" \
            else ""  # fmt: skip
    value = _check(cases, "pixel_floor", metric, subject)
    if value is not None:
        return value, ""
    reasons = {
        x.reason for c in cases for x in c.pixel_floor if (x.metric, x.subject) == (metric, subject)
    }
    return None, "; ".join(sorted(reasons))


def _or_none(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
