"""The report: what was found, at a glance; and the same table for a terminal.

One self-contained HTML file: a sentence per quantity, film strips, paths, timelines, and the table
with directions, floors, intervals and coverage. No number is a composite of others. The same
results give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wmeval.eval import plots
from wmeval.eval.latex import find, latex, notes, standing
from wmeval.eval.metrics import causality
from wmeval.eval.metrics.table import METRICS, NEEDS_WEIGHTS
from wmeval.eval.results import CaseRecord, PairResults, Row
from wmeval.eval.wording import (
    ARROWS,
    Line,
    gist,
    headlines,
    lines,
    main_rows,
    number,
    player_of,
    short_names,
    span,
    status_text,
    tone,
)

if TYPE_CHECKING:
    from rich.table import Table

__all__ = [
    "headlines", "joint_table", "latex", "terminal_table", "write_joint_report", "write_report",
]  # fmt: skip

MAXIMUM_CASES = 6
"""Cases that are shown with pictures; the table counts all."""

DIMENSION_TITLES: Mapping[str, str] = {
    "kinematics": "Kinematics: where bodies go",
    "mechanics": "Mechanics: momentum and energy",
    "controllability": "Controllability: how the picture moves",
    "causality": "Causality: what leads to what",
    "causal_lpips": "Perceptual, around events",
    "consistency": "Consistency: whether the scene stays what it was",
    "fluid": "Fluid: how the liquid moves",
    "lighting": "Lighting: whether shadows agree",
    "prompt_consistency": "Prompt: whether the scene is the one that was asked for",
}


# --- terminal -----------------------------------------------------------------------------------


def terminal_table(results: PairResults, *, every: bool = False) -> Table:
    """The table for a terminal.

    Args:
        results: of one comparison.
        every: all bodies; by default the driven one, the picture, the chain, light and liquid.
    """
    from rich.table import Table

    table = Table(
        title=f"{results.config['env_id']} · {results.config['plan']} · {results.candidate}",
        title_justify="left", box=None, pad_edge=False, header_style="bold", caption=results.note,
        caption_justify="left",
    )  # fmt: skip
    table.add_column("metric", max_width=36)
    table.add_column("of")
    table.add_column("source")
    for name in ("value", "± gen.", "95 % scenes", "identity", "pixel floor", "reduction", "cover"):
        table.add_column(name, justify="right")
    for line in lines(results.rows if every else main_rows(results)):
        table.add_row(*_cells(line), style=None if line.row.status == "measured" else "dim")
    return table


def _cells(line: Line) -> tuple[str, ...]:
    row = line.row
    if row.status != "measured":
        what = f"{status_text(row)}: {row.reason}"
        return line.title, row.subject, row.source, what
    return (
        line.title,
        row.subject,
        row.source,
        number(row.value, unit=row.unit),
        number(row.std) if row.std is not None else "N/A",
        "N/A" if row.interval is None else span(row.interval),
        number(row.identity),
        number(row.pixel_floor),
        number(row.reduction_floor),
        "" if row.coverage is None else f"{100 * row.coverage:.0f} %",
    )


# --- HTML ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shown:
    """One case as the page shows it."""

    case: CaseRecord
    title: str
    strip: tuple[plots.StripFrame, ...]
    paths: str
    timeline: str
    stages: tuple[tuple[str, str, str, bool, bool], ...]
    quantities: tuple[Mapping[str, Any], ...]


def _shown(case: CaseRecord, root: Path, player: str) -> Shown:
    marks: Sequence[Any] = ()
    for x in case.measurements:
        if x.metric == "csr" and x.status == "measured" and not marks:
            marks = x.detail["stages_seen_caused"]  # type: ignore[assignment]
    stages = tuple(
        (name, causality.STAGES[name].asks_what, causality.STAGES[name].asks_why, seen, caused)
        for name, seen, caused in marks
    )
    return Shown(
        case,
        f"Scene seed {case.scene_seed}, generation {case.generation}",
        plots.strip(case, root),
        plots.paths_plot(case, player),
        plots.timeline_plot(case, [("candidate", plots.CANDIDATE_COLOUR, case.candidate_events)]),
        stages,
        case.quantities,
    )


def _page(name: str, **values: Any) -> str:
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.PackageLoader("wmeval.eval", "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    environment.globals.update(
        number=number,
        span=span,
        tone=tone,
        status_text=status_text,
        arrows=ARROWS,
        metrics=METRICS,
        needs_weights=NEEDS_WEIGHTS,
        dimension_titles=DIMENSION_TITLES,
        colours={"reference": plots.REFERENCE_COLOUR, "candidate": plots.CANDIDATE_COLOUR},
    )
    return environment.get_template(name).render(**values) + "\n"


def render(results: PairResults, root: Path) -> str:
    """The page of one candidate.

    Args:
        results: of one comparison.
        root: its folder, where the mp4 files lie.
    """
    player = player_of(results)
    main = {x.key for x in main_rows(results)}
    dimensions = list(dict.fromkeys(r.dimension for r in results.rows))
    return _page(
        "report.html.j2",
        r=results,
        player=player,
        headlines=headlines(results),
        groups=[
            (d, lines([x for x in results.rows if x.dimension == d and x.key in main]))
            for d in dimensions
        ],
        others=lines([x for x in results.rows if x.key not in main]),
        shown=[_shown(c, root, player) for c in results.cases[:MAXIMUM_CASES]],
        hidden=max(0, len(results.cases) - MAXIMUM_CASES),
    )


def write_report(results: PairResults, root: str | Path) -> Path:
    """Write report.html beside results.json, whole or not at all."""
    from wmeval.jobs.atomic import write_text

    root = Path(root)
    write_text(root / "report.html", render(results, root))
    return root / "report.html"


# --- several candidates -------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One candidate's row in a joint table; ``tied``: not separable from the best of its line."""

    row: Row
    tied: bool


def joint_lines(
    all_results: Sequence[PairResults],
) -> tuple[list[tuple[Row, list[Cell | None]]], list[str]]:
    """The main rows that somebody was measured on, every candidate's cell, and the footnotes."""
    keys = dict.fromkeys(r.key for one in all_results for r in main_rows(one))
    out, stands = [], []
    for key in keys:
        rows = [find(one, key) for one in all_results]
        if all(r is None or r.status != "measured" for r in rows):
            continue
        stand = standing(rows)
        known = next(r for r in rows if r is not None and r.status == "measured")
        cells = [None if r is None else Cell(r, id(r) in stand.tied) for r in rows]
        out.append((known, cells))
        stands.append(stand)
    return out, notes(all_results, stands)


def joint_table(all_results: Sequence[PairResults]) -> Table:
    """Several candidates side by side, for a terminal."""
    from rich.table import Table

    first = all_results[0]
    rows, footnotes = joint_lines(all_results)
    names, shared = short_names([one.candidate for one in all_results])
    table = Table(
        title=f"{first.config['env_id']} · {first.config['plan']}{shared}", title_justify="left",
        box=None, pad_edge=False, header_style="bold", caption_justify="left",
        caption="; ".join([*footnotes, first.note]),
    )  # fmt: skip
    table.add_column("metric")
    table.add_column("source")
    for name in names:
        table.add_column(name, justify="right")
    table.add_column("pixel floor", justify="right")
    for row, cells in rows:
        texts = [
            "–"
            if cell is None or cell.row.status != "measured"
            else number(cell.row.value, unit=row.unit) + ("†" if cell.tied else "")
            for cell in cells
        ]
        title = f"{row.title} {ARROWS[row.direction]}".strip()
        table.add_row(title, row.source, *texts, number(row.pixel_floor))
    return table


def render_joint(
    all_results: Sequence[PairResults], roots: Sequence[Path], links: Sequence[str]
) -> str:
    """The page of several candidates on the same plan and seeds.

    Args:
        all_results: one per candidate.
        roots: their folders.
        links: their pages, relative to this one.
    """
    first = all_results[0]
    player = player_of(first)
    tints = plots.tints(len(all_results))
    names, shared = short_names([one.candidate for one in all_results])
    cases = [one.cases[0] for one in all_results]
    strips = [
        (name, _Strip(case, plots.strip(case, root)))
        for name, case, root in zip(names, cases, roots, strict=True)
    ]
    rows, footnotes = joint_lines(all_results)
    known = any(r.source == "oracle" for one in all_results for r in main_rows(one))
    return _page(
        "joint.html.j2",
        r=first,
        all=all_results,
        links=links,
        names=names,
        shared=shared,
        tints=tints,
        gists=[gist(one) for one in all_results],
        bars=plots.bars_plot(all_results, names, tints),
        paths=plots.joint_paths_plot(list(zip(names, cases, strict=True)), tints, player),
        timeline=plots.timeline_plot(
            cases[0],
            [
                (name, tint, case.candidate_events)
                for name, tint, case in zip(names, tints, cases, strict=True)
            ],
        ),
        strips=strips,
        times=[f.time for f in strips[0][1].strip],
        joint=rows,
        footnotes=footnotes,
        source_note="read from the simulator behind the candidate, where there is one"
        if known
        else "none: no candidate here has a simulator behind it",
    )


@dataclass(frozen=True)
class _Strip:
    case: CaseRecord
    strip: tuple[plots.StripFrame, ...]


def write_joint_report(
    all_results: Sequence[PairResults], roots: Sequence[Path], out: str | Path
) -> Path:
    """Write the page that shows several candidates side by side, whole or not at all."""
    from wmeval.jobs.atomic import write_text

    out = Path(out)
    links = [f"{root.relative_to(out).as_posix()}/report.html" for root in roots]
    write_text(out / "report.html", render_joint(all_results, roots, links))
    return out / "report.html"
