"""Who is ahead on the real tosses, as far as their spread allows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from wmeval.eval.statistics import cluster_bootstrap
from wmeval.eval.sweep.cells import CellResult


@dataclass(frozen=True)
class Standing:
    """One engine's place among those that ran the same tosses.

    Attributes:
        result: of its cell.
        rank: from 1; engines that are tied share it. 0: it did not finish, or ran other tosses.
        why: of the tie with the one ahead of it; "" where it leads or is behind.
        tied: with the best, though not the best itself by its mean.
    """

    result: CellResult
    rank: int
    why: str = ""

    @property
    def tied(self) -> bool:
        """Whether no ranking against another is claimed."""
        return bool(self.why)


def standings(results: Sequence[CellResult]) -> list[Standing]:
    """Engines by their position error, the least first; those that are tied share a rank.

    An engine is tied with the first of a rank if their means differ by less than the spread of the
    simulated starts (the greater of the two), or if the mean of their differences over the tosses
    has a 95 % bootstrap interval that holds 0.
    """
    known = [r for r in results if math.isfinite(_value(r, "position_error"))]
    # One that did not finish ran other tosses: it comes last and ties with nobody.
    order = sorted(known, key=lambda r: (r.status != "ok", _value(r, "position_error")))
    out: list[Standing] = []
    first: Standing | None = None
    for place, r in enumerate(order, 1):
        if r.status != "ok":
            out.append(Standing(r, 0))
            continue
        why = "" if first is None else _tie(first.result, r)
        made = Standing(r, first.rank if first is not None and why else place, why)
        if not why:
            first = made
        out.append(made)
    return out


def _value(result: CellResult, metric: str) -> float:
    found = result.measurement(metric)
    return found.value if found is not None and found.value is not None else math.inf


def _tie(first: CellResult, other: CellResult) -> str:
    spread = max(
        (x for r in (first, other) if math.isfinite(x := _value(r, "draw_spread"))), default=0.0
    )
    gap = _value(other, "position_error") - _value(first, "position_error")
    if gap < spread:
        return f"{gap:.2g} mm apart, closer than the starts' spread of {spread:.2g} mm"
    low, high = difference(first, other)
    if low <= 0 <= high:
        return f"over the tosses they differ by {low:.2g} to {high:.2g} mm"
    return ""


def difference(first: CellResult, other: CellResult) -> tuple[float, float]:
    """95 % interval of the mean over common tosses of ``other``'s error less ``first``'s [mm].

    NaN, NaN where they have no two tosses in common.
    """
    a, b = (r.facts.get("tosses") for r in (first, other))
    if not isinstance(a, dict) or not isinstance(b, dict):
        return math.nan, math.nan
    both = [k for k in a if k in b]
    return cluster_bootstrap([_number(b[k]) - _number(a[k]) for k in both])


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else math.nan
