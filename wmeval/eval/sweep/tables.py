"""Tables of a sweep: GAUGE's metrics, predicted numbers, conformance, standings of the tosses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from wmeval.assets.gauge_cards import families
from wmeval.assets.gauge_published import PublishedResults, published
from wmeval.errors import one_line
from wmeval.eval.metrics.gauge_table import GAUGE_METRICS
from wmeval.eval.sweep.cells import UNSEEN, CellResult, Measurement
from wmeval.eval.sweep.conserved import COUNTED
from wmeval.eval.sweep.otherwise import OTHERWISE
from wmeval.eval.sweep.results import SweepResults, motion_of
from wmeval.eval.sweep.toss import FAMILY
from wmeval.eval.sweep.toss_standing import Standing, standings
from wmeval.eval.wording import number

if TYPE_CHECKING:
    from rich.table import Table


_SHOWN = ("stretch", "penetration", *COUNTED)
"""Numbers that are shown beside predicted ones, though nothing predicts them."""

NEAR = 0.02
"""Part of what is expected by which a number may be off and still be called near."""


PREDICTED = {"pd_fourier": "period", "mte_first": "mte_of_restitution", "el": "energy_loss"}
"""Metrics of a record by itself -> the closed form's number by which they are ranked.

Rests have none: the form's is of a cradle without loss. A recording has parameters of its own, so
that being near it is nobody's merit.
"""


@dataclass(frozen=True)
class Column:
    """An engine with its configuration and grid point."""

    engine: str
    config: str
    point: str
    version: str

    @property
    def title(self) -> str:
        """As tables head it."""
        return self.engine + (f" [{self.point}]" if self.point else "")


@dataclass(frozen=True)
class Entry:
    """One cell of the table: texts, and whether it is the best of its row.

    A number that does not count says because of what, and is never the best. ``full`` is what a
    pointer that rests on it is told. ``empty``: the text is no number.
    """

    text: str
    more: str = ""
    best: bool = False
    bad: bool = False
    idle: str = ""
    full: str = ""
    empty: bool = False


@dataclass(frozen=True)
class Line:
    """One row of the table; ``under`` stands below its task: what file it is of."""

    task: str
    what: str
    truth: str
    expected: str
    entries: tuple[Entry, ...]
    published: tuple[Entry, ...] = ()
    under: str = ""


def columns(results: SweepResults, config: str) -> list[Column]:
    """Engines and grid points that ran under a configuration, in their order."""
    found = {
        Column(*r.cell.setting, results.versions.get(r.cell.engine.label, "")): None
        for r in results.cells
        if r.cell.config == config
    }
    return list(found)


def by_setting(results: SweepResults, config: str) -> dict[str, dict[tuple[str, str], CellResult]]:
    """Task -> (engine, point) -> cell."""
    out: dict[str, dict[tuple[str, str], CellResult]] = {}
    for r in results.cells:
        if r.cell.config == config and not r.cell.repeat:
            out.setdefault(r.cell.task, {})[r.cell.setting[0], r.cell.setting[2]] = r
    return out


def led_by(results: SweepResults, config: str, task: str) -> str:
    """Whose motion leads a task, with the beginning of its hash; "" where it is the card's."""
    texts = dict.fromkeys(
        f"led by {Path(r.cell.drive).name} {motion_of(r)[:12]}".strip()
        for r in results.cells
        if r.cell.drive and (r.cell.config, r.cell.task) == (config, task)
    )
    # Of a cell that did not run the hash is not known.
    return ", ".join(x for x in texts if not any(y != x and y.startswith(x) for y in texts))


def main_lines(results: SweepResults, config: str) -> list[Line]:
    """GAUGE's metrics, over GAUGE's real baselines as the paper divides them, and the truest.

    What is held against a user's own trials has lines of its own (`real_lines`).
    """
    heads = columns(results, config)
    known = published()
    out = []
    for task, cells in by_setting(results, config).items():
        family, subtask, material = task.split("/")
        if family == FAMILY:
            continue
        led = led_by(results, config, task)
        for metric in (*families()[family].metrics, *OTHERWISE):
            all_of = [m for cell in cells.values() for m in cell.measurements]
            all_of = [
                m for m in all_of
                if m.metric == metric and m.expected is None and m.truth != "real"
            ]  # fmt: skip
            # A form whose number no record shows is a form all the same.
            truths = dict.fromkeys(m.truth for m in all_of if m.value is not None) or (
                dict.fromkeys(m.truth for m in all_of if m.reason == UNSEEN)
            )
            # How else areas and curvatures may be scored is shown where it was.
            for truth in truths or (() if metric in OTHERWISE else ("",)):
                found: list[tuple[CellResult | None, Measurement | None]] = []
                for head in heads:
                    cell = cells.get((head.engine, head.point))
                    one = cell.measurement(metric, truth) if cell is not None else None
                    found.append((cell, one))
                out.append(
                    Line(
                        task, metric_title(metric), truth, "", _entries(found),
                        _published(known, family, subtask, material, "" if led else metric),
                        led,
                    )
                )  # fmt: skip
    return out


def real_lines(results: SweepResults, config: str) -> list[Line]:
    """Numbers against a user's own trials, over what these come to themselves.

    Nothing that is published stands beside them: it is over the spread of other trials.
    """
    heads = columns(results, config)
    out = []
    for task, cells in by_setting(results, config).items():
        if task.split("/")[0] == FAMILY:
            continue
        own = [m for r in cells.values() for m in r.measurements if m.truth == "real"]
        files = dict.fromkeys(Path(r.cell.data).name for r in cells.values() if r.cell.data)
        led = led_by(results, config, task)
        for metric in dict.fromkeys(m.metric for m in own):
            found = [
                (cell, cell.measurement(metric, "real") if cell is not None else None)
                for cell in (cells.get((h.engine, h.point)) for h in heads)
            ]
            told = dict.fromkeys(baseline_text(m) for m in own if m.metric == metric)
            out.append(
                Line(
                    task, metric_title(metric), "real",
                    " or ".join(x for x in told if x) or "–", _entries(found),
                    under=", ".join((*files, *([led] if led else []))),
                )
            )  # fmt: skip
    return out


def baseline_text(m: Measurement) -> str:
    """What real trials come to: ``3.36 ± 0.42 mm (20 trials)``; "" where nothing is known."""
    if m.baseline is None:
        return ""
    spread = f" ± {number(m.spread)}" if m.spread is not None else ""
    unit = "" if m.unit == "1" else f" {m.unit}"
    trials = f" ({m.trials} trials)" if m.trials else ""
    return f"{number(m.baseline)}{spread}{unit}{trials}"


def metric_title(metric: str) -> str:
    """A metric as tables head it."""
    row = GAUGE_METRICS.get(metric)
    if row is not None:
        return row.title
    return OTHERWISE.get(metric) or metric.replace("_", " ").capitalize()


def _entries(found: Sequence[tuple[CellResult | None, Measurement | None]]) -> tuple[Entry, ...]:
    scores = [
        _score(cell, m) if cell is not None and m is not None and _ranked(cell, m) else math.inf
        for cell, m in found
    ]
    out = []
    for (cell, m), best in zip(found, best_of(scores), strict=True):
        if cell is None:
            out.append(Entry("–", empty=True))
        elif m is None or m.value is None:
            said = cell.status != "ok"
            why = cell.status.replace("_", " ") if said else "no closed form"
            # Why a cell did not end well stands in a table of its own.
            more, full = ("", cell.reason) if said else (one_line(cell.reason, 60), "")
            if not said and m is not None and m.reason == UNSEEN:
                why = UNSEEN
            elif not said and m is not None and m.truth:  # this record allows no such number
                why, more, full = "not measured", one_line(m.reason, 60), m.reason
            out.append(Entry(why, more, bad=said, full=full, empty=True))
        else:
            normalised = m.normalised
            text = number(normalised) if normalised is not None else number(m.value, unit=m.unit)
            more = number(m.value, unit=m.unit) if normalised not in (None, m.value) else ""
            if cell.status != "ok":
                # In full it stands in a table of its own.
                more = f"{more} · {cell.status.replace('_', ' ')}".strip(" ·")
            more = " · ".join(x for x in (more, _range(m)) if x)
            told = m.reason if m.truth == "real" else ""
            brief = "" if not told else "own start" if "own start" in told else "see reason"
            more = " · ".join(x for x in (more, brief) if x)
            out.append(Entry(text, more, best, cell.status != "ok", _idle(m), told))
    return tuple(out)


def best_of(scores: Sequence[float]) -> list[bool]:
    """Which are the least, to the digits that are shown; none where all of several are.

    Args:
        scores: how far each is from right; infinite where it cannot be the best.
    """
    least = min(scores, default=math.inf)
    found = [math.isfinite(one) and f"{one:.2e}" == f"{least:.2e}" for one in scores]
    able = sum(map(math.isfinite, scores))
    told = len(scores) > 1 and (able == 1 or sum(found) < able)
    return found if told else [False] * len(found)


def _range(m: Measurement) -> str:
    """The interval of a number that has one, in its own unit."""
    if m.low is None or m.high is None or not m.high > m.low:
        return ""
    return f"{number(m.low)} to {number(m.high, unit=m.unit)}"


def _ranked(cell: CellResult | None, m: Measurement) -> bool:
    """Whether a number may be the best: it counts, and nothing went through anything."""
    return cell is not None and cell.status == "ok" and m.counts is not False


def _idle(m: Measurement) -> str:
    return f"does not count: {m.because}" if m.counts is False else ""


def _score(cell: CellResult, m: Measurement) -> float:
    """How far from true: an error itself, others by the number that a closed form predicts.

    What GAUGE reads off frames is off by them: an energy at a peak between two by 0.004, a period
    by a bin of the spectrum. The closed form's number is read so that it tells engines apart.
    """
    if m.error is not None:  # to the digits shown, so as it is shown
        return abs(m.error if m.normalised is None else m.normalised)
    if m.truth == "real":  # of its own trials, which are what it is held against
        known = m.value is not None and m.baseline is not None
        return abs((m.value or 0.0) - (m.baseline or 0.0)) if known else math.inf
    errors = [
        one.error
        for one in cell.measurements
        if one.metric == PREDICTED.get(m.metric) and one.expected is not None and not one.ideal
    ]
    return next((e for e in errors if e is not None), math.inf)


def _published(
    known: PublishedResults, family: str, subtask: str, material: str, metric: str
) -> tuple[Entry, ...]:
    own = "rmse" if metric == "rmse_published" else metric
    row = known.find(family, subtask, material, own)
    if row is None:
        return tuple(Entry("–") for _ in known.engines)
    return tuple(Entry(number(row.engines[name])) for name in known.engines)


def number_lines(results: SweepResults, config: str) -> list[Line]:
    """Numbers that closed forms predict, with what was asked for."""
    heads = columns(results, config)
    out = []
    for task, cells in by_setting(results, config).items():
        if task.split("/")[0] == FAMILY:
            continue
        names: dict[tuple[str, str], Measurement] = {}
        for cell in cells.values():
            for m in cell.measurements:
                if m.expected is not None or m.metric in _SHOWN:
                    names.setdefault((m.truth, m.metric), m)
        for (truth, metric), one in names.items():
            found = [
                (cell, cell.measurement(metric, truth) if cell else None)
                for cell in (cells.get((h.engine, h.point)) for h in heads)
            ]
            errors = [
                m.error
                if m is not None and m.error is not None and _ranked(run, m) and not m.ideal
                else math.inf
                for run, m in found
            ]
            entries = []
            for (run, got), best in zip(found, best_of(errors), strict=True):
                if run is None or got is None or got.value is None:
                    unseen = got is not None and got.reason == UNSEEN
                    entries.append(Entry("–", UNSEEN if unseen else "", empty=True))
                    continue
                more = " · ".join(x for x in (_off(got), _range(got)) if x)
                entries.append(Entry(number(got.value), more, best, False, _idle(got)))
            expected = number(one.expected, unit=one.unit) if one.expected is not None else "–"
            expected += f" if {one.ideal}" if one.ideal else _none_near([m for _, m in found])
            unit = f" [{one.unit}]" if one.unit != "1" else ""
            out.append(
                Line(
                    task, metric.replace("_", " ") + unit, truth, expected, tuple(entries),
                    under=led_by(results, config, task),
                )
            )  # fmt: skip
    return out


def _none_near(found: Sequence[Measurement | None]) -> str:
    """Says where no engine's number is near what is expected, so that the best is not taken for it.

    Near is within `NEAR`, or within what the truth itself is good for.
    """
    told = [m for m in found if m is not None and m.error is not None and m.expected]
    within = max((NEAR, *(m.accuracy for m in told)))
    if not told or any((m.error or 0.0) <= within * abs(m.expected or 0.0) for m in told):
        return ""
    return f" (none within {100 * within:.3g} %)"


def _off(m: Measurement) -> str:
    if m.expected is None or m.value is None:
        return ""
    if m.expected == 0:
        return ""
    return f"{100 * (m.value / m.expected - 1):+.3g} %"


def ranking(cells: Sequence[CellResult]) -> list[Standing]:
    """Standings of those whose numbers count; the others behind them, tied with nobody."""
    idle = [r for r in cells if _toss_idle(r)]
    ranked = standings([r for r in cells if not _toss_idle(r)])
    return ranked + [Standing(s.result, 0) for s in standings(idle)]


def _toss_idle(r: CellResult) -> str:
    found = r.measurement("position_error")
    return _idle(found) if found is not None else ""


def terminal_tables(results: SweepResults) -> list[Table]:
    """The tables of every configuration, for a terminal."""
    out = []
    for config in dict.fromkeys(r.cell.config for r in results.cells):
        heads = columns(results, config)
        for title, against, lines in (
            ("over GAUGE's real baseline where it has one", "against",
             [(x, x.truth or "itself") for x in main_lines(results, config)]),
            ("against own recordings, over what their trials come to", "trials",
             [(x, x.expected) for x in real_lines(results, config)]),
        ):  # fmt: skip
            # What nobody ran is told once, not row by row.
            shown = [x for x in lines if not {e.text for e in x[0].entries} <= {"not run", "–"}]
            if shown:
                out.append(_metric_table(f"{config}: {title}", against, heads, shown))
        for task, cells in by_setting(results, config).items():
            found = ranking(list(cells.values())) if task.split("/")[0] == FAMILY else []
            if found:
                out.append(_toss_table(f"{config}: {task}, mean over tosses", found))
    return out


def _metric_table(
    title: str, against: str, heads: Sequence[Column], lines: Sequence[tuple[Line, str]]
) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("task", overflow="fold")
    table.add_column("metric")
    table.add_column(against)
    for head in heads:
        table.add_column(head.title, justify="right")
    for line, told in lines:
        table.add_row(line.task, line.what, told, *(e.text + _mark(e) for e in line.entries))
    return table


def _mark(e: Entry) -> str:
    return "*" if e.best else " (out)" if e.idle else ""


def _toss_table(title: str, found: Sequence[Standing]) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("engine")
    for name in ("position [mm]", "95 % over tosses", "rotation [deg]", "spread [mm]"):
        table.add_column(name, justify="right")
    table.add_column("standing")
    for one in found:
        position, rotation, spread = (
            one.result.measurement(m) for m in ("position_error", "rotation_error", "draw_spread")
        )
        assert position is not None
        interval = (
            "N/A" if position.low is None else f"{number(position.low)} to {number(position.high)}"
        )
        label = one.result.cell.engine.label + (
            f" [{one.result.cell.setting[2]}]" if one.result.cell.grid else ""
        )
        table.add_row(
            label, number(position.value), interval,
            number(rotation.value if rotation else None),
            number(spread.value if spread else None),
            standing(one),
        )  # fmt: skip
    return table


def standing(one: Standing) -> str:
    """A place among the tosses' engines, in words."""
    if one.result.status != "ok":
        return f"incomplete: {one.result.reason}"
    if _toss_idle(one.result):
        return _toss_idle(one.result)
    place = "best" if one.rank == 1 else f"rank {one.rank}"
    return f"{place}, tied: {one.why}" if one.tied else place
