"""The report of a sweep: one page, made from its folder alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

from wmeval.assets.gauge_cards import families
from wmeval.assets.gauge_published import published
from wmeval.eval import plots
from wmeval.eval.sweep import pictures
from wmeval.eval.sweep.cells import COMPLETE, STATUSES, CellResult
from wmeval.eval.sweep.conclude import OVER
from wmeval.eval.sweep.conformance_tables import conformance_lines, other_checks, resting
from wmeval.eval.sweep.folder import arrays_of
from wmeval.eval.sweep.results import SweepResults
from wmeval.eval.sweep.tables import (
    Line,
    by_setting,
    columns,
    led_by,
    main_lines,
    number_lines,
    ranking,
    real_lines,
    standing,
)
from wmeval.eval.sweep.toss import FAMILY
from wmeval.eval.sweep.toss_section import COLUMNS, Tosses, section
from wmeval.eval.truths import TRUTHS
from wmeval.eval.wording import number

MAXIMUM_STRIPS = 60
"""Film strips in one page: of one set-up of every family first, on every engine."""


@dataclass(frozen=True)
class Shown:
    """One task under one configuration: its plot and film strips."""

    task: str
    says: str
    config: str
    plot: str
    strips: tuple[tuple[str, tuple[pictures.Frame, ...]], ...]
    wanting: tuple[tuple[str, str], ...]


def filmed(results: SweepResults) -> set[tuple[str, str, str]]:
    """Engine, configuration and task of the cells that get a film strip.

    The first set-up of every family and configuration, then others, as many as one page holds.
    """
    ran = [
        r.cell
        for r in results.cells
        if r.status != "not_run" and not r.cell.repeat and r.cell.family != FAMILY
    ]
    firsts: dict[tuple[str, str], str] = {}
    for cell in ran:
        firsts.setdefault((cell.config, cell.family), cell.task)
    first = [c for c in ran if firsts[c.config, c.family] == c.task]
    wanted = dict.fromkeys(
        (c.engine.label, c.config, c.task)
        for c in (*first, *(c for c in ran if firsts[c.config, c.family] != c.task))
    )
    return set(list(wanted)[:MAXIMUM_STRIPS])


def _shown(
    results: SweepResults,
    config: str,
    root: Path,
    colours: Mapping[str, str],
    strips: set[tuple[str, str, str]],
) -> list[Shown]:
    arrays = cache(partial(arrays_of, root))
    out: list[Shown] = []
    for task, cells in by_setting(results, config).items():
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
            if (engine, config, task) in strips and (frames := pictures.film(cell, arrays)):
                films.append((engine, frames))
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
    """Plots of a grid on one task; ``why`` there is none over CPU time."""

    task: str
    config: str
    convergence: tuple[str, ...]
    pareto: str
    why: str


def _grids(results: SweepResults, colours: Mapping[str, str]) -> list[Grid]:
    out = []
    for config in dict.fromkeys(r.cell.config for r in results.cells):
        for task, cells in by_setting(results, config).items():
            own = [r for r in cells.values() if r.cell.grid]
            if task.split("/")[0] == FAMILY or not any(r.status in COMPLETE for r in own):
                continue
            converged = [c for c in results.converged if (c.config, c.task) == (config, task)]
            convergence = [
                pictures.convergence_plot([c for c in converged if c.over == over], colours)
                for over in OVER
            ]
            off, why = pictures.costed(own)
            pareto = ""
            if off is not None:
                points = pictures.grid_points(own, off.metric, off.truth)
                what = (
                    "RMSE" if off.metric == "rmse" else f"error of {off.metric.replace('_', ' ')}"
                )
                pareto = pictures.pareto_plot(points, off.unit, colours, what)
            out.append(Grid(task, config, tuple(c for c in convergence if c), pareto, why))
    return out


def _tosses(results: SweepResults, root: Path, colours: Mapping[str, str]) -> list[Tosses]:
    out = []
    for config in dict.fromkeys(r.cell.config for r in results.cells):
        for task, cells in by_setting(results, config).items():
            made = ranking(list(cells.values())) if task.split("/")[0] == FAMILY else []
            if made:
                out.append(section(task, config, made, partial(arrays_of, root), colours))
    return out


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
        number=number, standing=standing, statuses=STATUSES, truths=TRUTHS,
        colours={"reference": plots.REFERENCE_COLOUR, "candidate": plots.CANDIDATE_COLOUR},
    )  # fmt: skip
    environment.globals.update(led_by=partial(led_by, results))
    environment.filters.update(letter=_letter, reasons=_reasons, published=_beside)
    configs = list(dict.fromkeys(r.cell.config for r in results.cells))
    heads, checks = conformance_lines(results.conformance)
    films = filmed(results) if strips else set()
    return environment.get_template("sweep.html.j2").render(
        r=results,
        tints=colours,
        configs=[
            (c, columns(results, c), *_measured(main_lines(results, c)), real_lines(results, c),
             number_lines(results, c), _settings(results, c))
            for c in configs
        ],
        published_source=published().source,
        unfinished=_unfinished(results),
        shown=[s for c in configs for s in _shown(results, c, root, colours, films)],
        grids=_grids(results, colours),
        tosses=_tosses(results, root, colours), toss_columns=COLUMNS,
        heads=heads,
        checks=checks,
        others=other_checks(results.conformance),
        resting=resting() if checks else [],
        used_truths=[
            TRUTHS[name]
            for name in dict.fromkeys(
                m.truth for r in results.cells for m in r.measurements if m.truth in TRUTHS
            )
        ],
    )  # fmt: skip


def _measured(lines: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Lines in which an engine has a number, and the others."""
    numbers = [not all(e.empty for e in line.entries) for line in lines]
    return (
        [line for line, has in zip(lines, numbers, strict=True) if has],
        [line for line, has in zip(lines, numbers, strict=True) if not has],
    )


def _reasons(lines: Sequence[Line]) -> list[str]:
    """Why numbers of a table do not count, each once."""
    return list(dict.fromkeys(e.idle for line in lines for e in line.entries if e.idle))


def _beside(lines: Sequence[Line]) -> list[str]:
    """Engines whose published numbers stand beside lines; none where there is no such number."""
    stand = any(e.text != "–" for line in lines for e in line.published)
    return [f"{e.name} {e.version}" for e in published().engines.values()] if stand else []


def _letter(index: int) -> str:
    """A footnote's mark: a, b, ..., z, aa, ab, ..."""
    first, last = divmod(index, 26)
    return (_letter(first - 1) if first else "") + chr(ord("a") + last)


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
