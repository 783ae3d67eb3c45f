"""The report of a sweep: one page, made from its folder alone."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import JsonValue

from wmeval.assets.gauge_cards import QUANTITY_UNITS, families
from wmeval.assets.gauge_published import PublishedResults, published
from wmeval.errors import one_line
from wmeval.eval import plots
from wmeval.eval.metrics.gauge_table import GAUGE_METRICS
from wmeval.eval.sweep import pictures
from wmeval.eval.sweep.cells import STATUSES, CellResult, Measurement
from wmeval.eval.sweep.folder import arrays_of
from wmeval.eval.sweep.results import SweepResults
from wmeval.eval.sweep.toss import FAMILY, Standing, standings
from wmeval.eval.truths import TRUTHS
from wmeval.eval.wording import number

if TYPE_CHECKING:
    from rich.table import Table

MAXIMUM_STRIPS = 40
"""Film strips in one page."""


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
    """One cell of the table: texts, and whether it is the best of its row."""

    text: str
    more: str = ""
    best: bool = False
    bad: bool = False


@dataclass(frozen=True)
class Line:
    """One row of the table."""

    task: str
    what: str
    truth: str
    expected: str
    entries: tuple[Entry, ...]
    published: tuple[Entry, ...] = ()


def columns(results: SweepResults, config: str) -> list[Column]:
    """Engines and grid points that ran under a configuration, in their order."""
    found = {
        Column(*r.cell.setting, results.versions.get(r.cell.engine.label, "")): None
        for r in results.cells
        if r.cell.config == config
    }
    return list(found)


def _by_setting(results: SweepResults, config: str) -> dict[str, dict[tuple[str, str], CellResult]]:
    """Task -> (engine, point) -> cell."""
    out: dict[str, dict[tuple[str, str], CellResult]] = {}
    for r in results.cells:
        if r.cell.config == config and not r.cell.repeat:
            out.setdefault(r.cell.task, {})[r.cell.setting[0], r.cell.setting[2]] = r
    return out


def _distance(metric: str, normalised: float) -> float:
    """How far a normalised value is from right: errors from 0, the others from the real 1."""
    if metric in ("rmse", "dtw", "el"):
        return abs(normalised)
    return abs(normalised - 1)


def main_lines(results: SweepResults, config: str) -> list[Line]:
    """GAUGE's metrics, over the real baselines as the paper divides them; best in bold."""
    heads = columns(results, config)
    known = published()
    out = []
    for task, cells in _by_setting(results, config).items():
        family, subtask, material = task.split("/")
        if family == FAMILY:
            continue
        for metric in families()[family].metrics:
            truths = dict.fromkeys(
                m.truth
                for cell in cells.values()
                for m in cell.measurements
                if m.metric == metric and m.expected is None and m.value is not None
            )
            for truth in truths or ("",):
                found: list[tuple[CellResult | None, Measurement | None]] = []
                for head in heads:
                    cell = cells.get((head.engine, head.point))
                    one = cell.measurement(metric, truth) if cell is not None else None
                    found.append((cell, one))
                out.append(
                    Line(
                        task, _metric(metric), truth, "", _entries(metric, found),
                        _published(known, family, subtask, material, metric),
                    )
                )  # fmt: skip
    return out


def _metric(metric: str) -> str:
    row = GAUGE_METRICS.get(metric)
    return row.title if row is not None else metric.replace("_", " ")


def _entries(
    metric: str, found: Sequence[tuple[CellResult | None, Measurement | None]]
) -> tuple[Entry, ...]:
    scores = [
        _score(metric, m) if m is not None and m.value is not None else math.inf for _, m in found
    ]
    least = min(scores, default=math.inf)
    out = []
    for (cell, m), score in zip(found, scores, strict=True):
        if cell is None:
            out.append(Entry("–"))
        elif m is None or m.value is None:
            said = cell.status != "ok"
            why = cell.status.replace("_", " ") if said else "no closed form"
            # Why a cell was not run stands in a table of its own.
            out.append(
                Entry(why, "" if cell.status == "not_run" else one_line(cell.reason, 60), bad=said)
            )
        else:
            normalised = m.normalised
            text = number(normalised) if normalised is not None else number(m.value, unit=m.unit)
            more = number(m.value, unit=m.unit) if normalised is not None else ""
            if cell.status != "ok":
                more = f"{more} · {one_line(cell.reason, 60)}".strip(" ·")
            best = len(found) > 1 and math.isfinite(least) and score <= least * (1 + 1e-9)
            out.append(Entry(text, more, best, cell.status != "ok"))
    return tuple(out)


def _score(metric: str, m: Measurement) -> float:
    if m.normalised is not None:
        return _distance(metric, m.normalised)
    return abs(m.value or 0.0)


def _published(
    known: PublishedResults, family: str, subtask: str, material: str, metric: str
) -> tuple[Entry, ...]:
    row = known.find(family, subtask, material, metric)
    if row is None:
        return tuple(Entry("–") for _ in known.engines)
    return tuple(Entry(number(row.engines[name])) for name in known.engines)


def number_lines(results: SweepResults, config: str) -> list[Line]:
    """Numbers that closed forms predict, with what was asked for."""
    heads = columns(results, config)
    out = []
    for task, cells in _by_setting(results, config).items():
        if task.split("/")[0] == FAMILY:
            continue
        names: dict[tuple[str, str], Measurement] = {}
        for cell in cells.values():
            for m in cell.measurements:
                if m.expected is not None or m.metric in ("stretch", "penetration"):
                    names.setdefault((m.truth, m.metric), m)
        for (truth, metric), one in names.items():
            found = [
                (cell, cell.measurement(metric, truth) if cell else None)
                for cell in (cells.get((h.engine, h.point)) for h in heads)
            ]
            errors = [
                m.error if m is not None and m.error is not None else math.inf for _, m in found
            ]
            least = min(errors, default=math.inf)
            entries = []
            for (run, got), error in zip(found, errors, strict=True):
                if run is None or got is None or got.value is None:
                    entries.append(Entry("–"))
                    continue
                best = len(found) > 1 and math.isfinite(least) and error <= least * (1 + 1e-9)
                entries.append(Entry(number(got.value), _off(got), best))
            expected = number(one.expected, unit=one.unit) if one.expected is not None else "–"
            unit = f" [{one.unit}]" if one.unit != "1" else ""
            out.append(Line(task, metric.replace("_", " ") + unit, truth, expected, tuple(entries)))
    return out


def _off(m: Measurement) -> str:
    if m.expected is None or m.value is None:
        return ""
    if m.expected == 0:
        return ""
    return f"{100 * (m.value / m.expected - 1):+.3g} %"


@dataclass(frozen=True)
class Shown:
    """One task under one configuration: its plot and film strips."""

    task: str
    says: str
    config: str
    plot: str
    strips: tuple[tuple[str, tuple[pictures.Frame, ...]], ...]
    wanting: tuple[tuple[str, str], ...]


def _shown(
    results: SweepResults, config: str, root: Path, colours: Mapping[str, str], strips: bool
) -> list[Shown]:
    arrays = cache(partial(arrays_of, root))
    out: list[Shown] = []
    drawn = sum(len(s.strips) for s in out)
    for task, cells in _by_setting(results, config).items():
        family, subtask, _ = task.split("/")
        if family == FAMILY:
            continue
        # Where a grid was run its first point is shown.
        first: dict[str, CellResult] = {}
        for (engine, _), cell in cells.items():
            first.setdefault(engine, cell)
        shown = list(first.items())
        films = []
        for engine, cell in shown:
            if strips and drawn < MAXIMUM_STRIPS and cell.status != "not_run":
                frames = pictures.film(cell, arrays)
                if frames:
                    films.append((engine, frames))
                    drawn += 1
        plot = pictures.course_plot(
            [c for _, c in shown], arrays, [e for e, _ in shown], [colours[e] for e, _ in shown]
        )
        out.append(
            Shown(
                task, families()[family].subtasks[subtask].says, config, plot, tuple(films),
                tuple((e, c.reason or c.status) for e, c in shown if c.status != "ok"),
            )
        )  # fmt: skip
    return out


@dataclass(frozen=True)
class Grid:
    """Plots of a grid on one task."""

    task: str
    config: str
    convergence: str
    pareto: str


def _grids(results: SweepResults, colours: Mapping[str, str]) -> list[Grid]:
    out = []
    for config in dict.fromkeys(r.cell.config for r in results.cells):
        for task, cells in _by_setting(results, config).items():
            own = [r for r in cells.values() if r.cell.grid]
            if not own or task.split("/")[0] == FAMILY:
                continue
            unit = QUANTITY_UNITS[families()[own[0].cell.family].quantity]
            converged = [c for c in results.converged if (c.config, c.task) == (config, task)]
            convergence = pictures.convergence_plot(converged, colours)
            pareto = pictures.pareto_plot(pictures.grid_points(own), unit, colours)
            if convergence or pareto:
                out.append(Grid(task, config, convergence, pareto))
    return out


@dataclass(frozen=True)
class Tosses:
    """Cube tosses under one configuration: engines from the best, those tied with it marked."""

    task: str
    config: str
    standings: tuple[Standing, ...]
    plot: str


def _tosses(results: SweepResults, root: Path, colours: Mapping[str, str]) -> list[Tosses]:
    out = []
    for config in dict.fromkeys(r.cell.config for r in results.cells):
        for task, cells in _by_setting(results, config).items():
            made = standings(list(cells.values())) if task.split("/")[0] == FAMILY else []
            if made:
                plot = pictures.toss_plot(
                    [s.result for s in made], partial(arrays_of, root), colours
                )
                out.append(Tosses(task, config, tuple(made), plot))
    return out


@dataclass(frozen=True)
class Conformance:
    """A check and every engine's effective value."""

    check: str
    quantity: str
    asked: str
    entries: tuple[Entry, ...]


def conformance_lines(
    rows: Sequence[Mapping[str, JsonValue]],
) -> tuple[list[str], list[Conformance]]:
    """Columns (engine and configuration) and lines of the conformance table."""
    heads = list(dict.fromkeys((str(r["label"]), str(r["config"])) for r in rows))
    by_check: dict[str, dict[tuple[str, str], Mapping[str, Any]]] = {}
    for r in rows:
        by_check.setdefault(str(r["check"]), {})[str(r["label"]), str(r["config"])] = r
    out = []
    for check, found in by_check.items():
        one = next(iter(found.values()))
        entries = []
        for head in heads:
            row = found.get(head)
            if row is None:
                entries.append(Entry("–"))
            elif row["effective"] is None:
                entries.append(Entry(str(row["status"]).replace("_", " "), str(row["reason"])))
            else:
                off = row["status"] == "off"
                entries.append(Entry(number(float(row["effective"])), "", bad=off))
        unit = "" if one["unit"] == "1" else f" [{one['unit']}]"
        asked = f"{number(float(one['asked']))} ± {number(float(one['tolerance']))}"
        out.append(Conformance(check, f"{one['quantity']}{unit}", asked, tuple(entries)))
    return [f"{label}, {config}" for label, config in heads], out


def render(results: SweepResults, root: Path, *, strips: bool = True) -> str:
    """The page's text.

    Args:
        results: of a sweep.
        root: its folder.
        strips: draw film strips.
    """
    import jinja2

    labels = [e.label for e in results.engines]
    colours = dict(zip(labels, plots.tints(len(labels)), strict=True))
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("wmeval.eval", "templates"),
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined,
    )  # fmt: skip
    environment.globals.update(
        number=number, standing=_standing, statuses=STATUSES, truths=TRUTHS,
        colours={"reference": plots.REFERENCE_COLOUR, "candidate": plots.CANDIDATE_COLOUR},
    )  # fmt: skip
    configs = list(dict.fromkeys(r.cell.config for r in results.cells))
    heads, checks = conformance_lines(results.conformance)
    known = published()
    return environment.get_template("sweep.html.j2").render(
        r=results,
        tints=colours,
        configs=[
            (c, columns(results, c), main_lines(results, c), number_lines(results, c),
             _settings(results, c))
            for c in configs
        ],
        published=[f"{e.name} {e.version}" for e in known.engines.values()],
        published_source=known.source,
        unfinished=_unfinished(results),
        shown=[s for c in configs for s in _shown(results, c, root, colours, strips)],
        grids=_grids(results, colours),
        tosses=_tosses(results, root, colours),
        heads=heads,
        checks=checks,
        used_truths=[
            TRUTHS[name]
            for name in dict.fromkeys(
                m.truth for r in results.cells for m in r.measurements if m.truth in TRUTHS
            )
        ],
    )  # fmt: skip


def _unfinished(results: SweepResults) -> list[tuple[str, str, str, str, str]]:
    """Engine, configuration, status, reason and the tasks that ended so."""
    found: dict[tuple[str, str, str, str], list[str]] = {}
    for r in results.cells:
        if r.status != "ok":
            point = f" [{r.cell.setting[2]}]" if r.cell.grid else ""
            again = " (again)" if r.cell.repeat else ""
            key = (r.cell.engine.label, r.cell.config, r.status, r.reason)
            found.setdefault(key, []).append(f"{r.cell.task}{point}{again}")
    return [(*key, ", ".join(tasks)) for key, tasks in found.items()]


def _settings(results: SweepResults, config: str) -> list[tuple[str, str, str, str, str]]:
    """Engine, kind of body, steps a second, solver with its settings, departures; once each."""
    found: dict[tuple[str, str, str, str, str], None] = {}
    for r in results.cells:
        if r.cell.config != config or not r.hz or r.cell.grid:
            continue
        options = ", ".join(f"{k} {v}" for k, v in r.settings.items())
        kind = families()[r.cell.family].rates if r.cell.family != FAMILY else "rigid"
        found[r.cell.engine.label, kind, f"{r.hz:g}", f"{r.solver}: {options}", r.departs] = None
    return list(found)


def write_sweep_report(results: SweepResults, root: str | Path, *, strips: bool = True) -> Path:
    """Write report.html beside results.json, whole or not at all."""
    from wmeval.jobs.atomic import write_text

    root = Path(root)
    write_text(root / "report.html", render(results, root, strips=strips))
    return root / "report.html"


def terminal_tables(results: SweepResults) -> list[Table]:
    """The main table of every configuration, for a terminal."""
    from rich.table import Table

    out = []
    for config in dict.fromkeys(r.cell.config for r in results.cells):
        heads = columns(results, config)
        table = Table(
            title=f"{config}: over GAUGE's real baseline where it has one", title_justify="left",
            box=None, pad_edge=False, header_style="bold",
        )  # fmt: skip
        table.add_column("task", overflow="fold")
        table.add_column("metric")
        table.add_column("against")
        for head in heads:
            table.add_column(head.title, justify="right")
        for line in main_lines(results, config):
            table.add_row(
                line.task, line.what, line.truth or "itself",
                *((e.text + ("*" if e.best else "")) for e in line.entries),
            )  # fmt: skip
        if table.row_count:
            out.append(table)
        for task, cells in _by_setting(results, config).items():
            found = standings(list(cells.values())) if task.split("/")[0] == FAMILY else []
            if found:
                out.append(_toss_table(f"{config}: {task}, mean over tosses", found))
    return out


def _toss_table(title: str, found: Sequence[Standing]) -> Table:
    from rich.table import Table

    table = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    table.add_column("engine")
    for name in ("position [mm]", "95 % over tosses", "rotation [deg]", "spread [mm]"):
        table.add_column(name, justify="right")
    table.add_column("standing")
    for k, one in enumerate(found):
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
            _standing(k, one),
        )  # fmt: skip
    return table


def _standing(place: int, one: Standing) -> str:
    if one.result.status != "ok":
        return f"incomplete: {one.result.reason}"
    return "best" if place == 0 else "tied with the best" if one.tied else "behind"
