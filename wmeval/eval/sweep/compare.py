"""A sweep against an older one: what got worse, for an engine's own continuous integration."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from wmeval.eval.sweep.cells import COMPLETE, Cell, CellResult, Measurement
from wmeval.eval.sweep.results import SweepResults

TOLERANCE = 0.02
"""Relative growth of an error that does not count, beside the intervals."""
FLOOR = 1e-3
"""Growth that never counts, as a share of what is expected or of the real baseline."""
LEAST: dict[str, float] = {
    "mm": 0.05, "m": 5e-5, "mm^2": 0.05, "m^2": 5e-8, "deg": 0.05, "rad": 1e-3, "s": 1e-3,
    "m/s": 1e-3, "m/s^2": 0.01, "1": 1e-3, "%": 0.1,
}  # fmt: skip
"""Growth that never counts where nothing is expected to be there, by unit.

Half of what optical motion capture resolves (0.1 mm), a thirtieth of a frame, a thousandth of g, of
all energy, of any share.
"""


@dataclass(frozen=True)
class Change:
    """One number, or one cell, that changed.

    Attributes:
        kind: ``worse`` or ``better``: beyond intervals and tolerance; ``lost``: it was measured
            and is not any more; ``found``: the other way round.
        cell: its name; of an engine that is gone, the engine's.
        metric: with its truth; "" for the cell as a whole.
        before, after: as they are said.
    """

    kind: Literal["worse", "better", "lost", "found"]
    cell: str
    metric: str
    before: str
    after: str

    def __str__(self) -> str:
        what = f" {self.metric}" if self.metric else ""
        return f"{self.kind}: {self.cell}{what}: {self.before} -> {self.after}"


@dataclass(frozen=True)
class Comparison:
    """All changes, how many numbers were compared, and engines that are not what they were."""

    changes: tuple[Change, ...]
    compared: int
    engines: tuple[str, ...] = ()

    @property
    def regressions(self) -> tuple[Change, ...]:
        """What got worse or was lost."""
        return tuple(c for c in self.changes if c.kind in ("worse", "lost"))


def _name(cell: Cell) -> str:
    return cell.name


def errors_of(m: Measurement) -> tuple[float, float, float] | None:
    """Error with its least and greatest value over the interval; None where it is no error."""
    if m.value is None or m.ideal:
        return None
    low, high = (m.value if x is None else x for x in (m.low, m.high))
    if m.expected is not None:
        right = m.expected
    elif m.error is not None or (m.metric == "el" and m.truth != "real"):
        right = 0.0
    else:  # Nearer to a recording is not nearer to what the stated parameters ask for.
        return None
    ends = sorted((abs(low - right), abs(high - right)))
    least = 0.0 if low <= right <= high else ends[0]
    return abs(m.value - right), least, ends[1]


def slack(m: Measurement) -> float:
    """Growth of a number's error that never counts, in its unit.

    It is no less than what the truth may be off by: a share of what is expected, and of all there
    is where a share is expected to be 0.
    """
    scale = max(abs(m.expected or 0.0), abs(m.baseline or 0.0))
    least = FLOOR * scale if scale else LEAST.get(m.unit, 0.0)
    whole = 1.0 if m.expected == 0 and m.unit == "1" else abs(m.expected or 0.0)
    return max(least, m.accuracy * whole)


def compare(
    old: SweepResults, new: SweepResults, *, tolerance: float = TOLERANCE,
    elsewhere: Collection[str] = (),
) -> Comparison:  # fmt: skip
    """Cells that both hold, number by number; what only the baseline measured is lost.

    A number is worse where the least error of its interval now exceeds the greatest one before by
    more than the tolerance and what never counts (`slack`). Intervals are those over repeats and
    over tosses. Those over the trials of one recording that both are held against are common to
    both: they take no part where the engine is deterministic.

    Args:
        old: the baseline.
        new: what is judged.
        tolerance: relative growth of an error that does not count.
        elsewhere: names of cells that other shards run.
    """
    before = {_name(r.cell): r for r in old.cells if not r.cell.repeat}
    out = _gone(old, new, elsewhere)
    compared = 0
    for now in new.cells:
        was = before.get(_name(now.cell))
        if was is None or now.cell.repeat:
            continue
        name = _name(now.cell)
        if _rank(was) != _rank(now):
            kind: Literal["lost", "found"] = "found" if _rank(now) > _rank(was) else "lost"
            out.append(Change(kind, name, "", _status(was), _status(now)))
        numbers = {(m.metric, m.truth): m for m in now.measurements}
        for m in was.measurements:
            n = numbers.get((m.metric, m.truth))
            a = errors_of(m)
            b = errors_of(n) if n is not None else None
            label = m.metric + (f" ({m.truth})" if m.truth else "")
            if a is None:
                continue
            if b is None or n is None:
                if now.status in COMPLETE:
                    out.append(Change("lost", name, label, f"{m.value:.6g} {m.unit}", "missing"))
                continue
            if _of_one_recording(m, n) and was.deterministic and now.deterministic:
                a, b = (a[0],) * 3, (b[0],) * 3
            compared += 1
            if m.counts and n.counts is False:
                out.append(Change("lost", name, label, "counts", f"does not: {n.because}"))
            least = slack(n)
            texts = f"{m.value:.6g} {m.unit}", f"{n.value:.6g} {n.unit}"
            if b[1] > a[2] * (1 + tolerance) + least:
                out.append(Change("worse", name, label, *texts))
            elif a[1] > b[2] * (1 + tolerance) + least:
                out.append(Change("better", name, label, *texts))
    return Comparison(tuple(out), compared, _engines(old, new))


def _of_one_recording(m: Measurement, n: Measurement) -> bool:
    """Whether two numbers are held against the same trials."""
    same = (m.trials, m.baseline, m.spread) == (n.trials, n.baseline, n.spread)
    return m.truth == n.truth == "real" and m.trials is not None and same


def _rank(r: CellResult) -> int:
    """How much of a cell there is: all of it, numbers beside what is wrong, or none."""
    return 2 if r.status == "ok" else 1 if r.status in COMPLETE else 0


def _gone(old: SweepResults, new: SweepResults, elsewhere: Collection[str]) -> list[Change]:
    """What the baseline measured and this sweep has not; of an engine that is gone, in a line."""
    here = {_name(r.cell) for r in new.cells} | set(elsewhere)
    labels = {r.cell.engine.label for r in new.cells} | {x.partition(":")[0] for x in elsewhere}
    gone: dict[str, list[CellResult]] = {}
    for r in old.cells:
        if r.status in COMPLETE and not r.cell.repeat and _name(r.cell) not in here:
            label = r.cell.engine.label
            gone.setdefault(_name(r.cell) if label in labels else f"engine {label}", []).append(r)
    out = []
    for what, cells in gone.items():
        many = "1 cell" if len(cells) == 1 else f"{len(cells)} cells"
        was = many if what.startswith("engine ") else _status(cells[0])
        out.append(Change("lost", what, "", was, "not in this sweep"))
    return out


def _engines(old: SweepResults, new: SweepResults) -> tuple[str, ...]:
    """Engines whose adapter or version is another under the same label."""

    def whose(results: SweepResults) -> dict[str, str]:
        return {
            e.label: f"{e.adapter} {results.versions.get(e.label, '')}".strip()
            for e in results.engines
        }

    before = whose(old)
    return tuple(
        f"engine {label}: {before[label]} in the baseline, {now} here"
        for label, now in whose(new).items()
        if before.get(label, now) != now
    )


def _status(r: CellResult) -> str:
    return r.status + (f" ({r.reason})" if r.reason else "")


def with_ranges(cells: list[CellResult]) -> list[CellResult]:
    """Cells that ran more than once, each number with its range over the repeats."""
    repeats: dict[str, list[CellResult]] = {}
    for r in cells:
        repeats.setdefault(r.cell.model_copy(update={"repeat": 0}).name, []).append(r)
    out = []
    for r in cells:
        group = repeats[r.cell.model_copy(update={"repeat": 0}).name]
        if len(group) < 2:
            out.append(r)
            continue
        made = []
        for m in r.measurements:
            values = [
                x.value
                for other in group
                if (x := other.measurement(m.metric, m.truth)) is not None and x.value is not None
            ]
            ranged = m.value is not None and m.low is None and len(values) > 1
            made.append(
                m.model_copy(update={"low": min(values), "high": max(values)}) if ranged else m
            )
        out.append(r.model_copy(update={"measurements": tuple(made)}))
    return out
