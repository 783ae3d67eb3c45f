"""The report: what was found, at a glance; and the same table for a terminal and for a paper.

One self-contained HTML file: a sentence per quantity, film strips, paths, timelines, and the table
with directions, floors, intervals and coverage. No number is a composite of others. The same
results give the same bytes.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.eval import statistics
from wmeval.eval.metrics import causality
from wmeval.eval.metrics.table import METRICS, NEEDS_WEIGHTS
from wmeval.eval.results import CaseRecord, PairResults, Row, Track

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from rich.table import Table

REFERENCE_COLOUR, CANDIDATE_COLOUR, FLOOR_COLOUR = "#2f5d8a", "#d9702b", "#9aa4af"
STRIP_FRAMES = 7
MAXIMUM_CASES = 6
"""Cases that are shown with pictures; the table counts all."""

DIMENSION_TITLES: Mapping[str, str] = {
    "kinematics": "Kinematics: where bodies go",
    "mechanics": "Mechanics: momentum and energy",
    "controllability": "Controllability: how the picture moves",
    "causality": "Causality: what leads to what",
    "causal_lpips": "Perceptual, around events",
}

_ARROWS = {"lower": "↓", "higher": "↑", "none": ""}


# --- numbers as text ----------------------------------------------------------------------------


def number(value: float | None, *, unit: str = "", digits: int = 3) -> str:
    """A number with so many significant digits, whole ones without decimals, and its unit.

    A value that is none is "–".
    """
    if value is None or not math.isfinite(value):
        return "–"
    rounded = float(f"{value:.{digits - 1}e}")
    if value == round(value) and abs(value) < 1e5:
        text = f"{value:.0f}"
    elif abs(rounded) < 1e-6:
        text = "< 1e-6"
    elif abs(rounded) < 10 ** (digits - 1):
        text = f"{rounded:.{digits - 1 - math.floor(math.log10(abs(rounded)))}f}"
    else:
        text = f"{rounded:.0f}" if abs(value) < 1e5 else f"{value:.{digits - 1}e}"
    text = "0" if text == "-0" else text
    return text if not unit or unit == "1" else f"{text} {unit}"


@dataclass(frozen=True)
class Line:
    """A line of a table: one row with its number, or all that lack theirs for one reason."""

    rows: tuple[Row, ...]

    @property
    def row(self) -> Row:
        """Its first row."""
        return self.rows[0]

    @property
    def title(self) -> str:
        """Title and direction of its metrics."""
        return ", ".join(f"{r.title} {_ARROWS[r.direction]}".strip() for r in self.rows)


def lines(rows: Sequence[Row]) -> tuple[Line, ...]:
    """Measured rows as they come; then the others, joined by dimension, source and reason."""
    out: dict[Any, list[Row]] = {}
    for row in rows:
        missing = (row.dimension, row.subject, row.source, row.status, row.reason)
        out.setdefault(row.key if row.status == "measured" else missing, []).append(row)
    joined = sorted(out.values(), key=lambda group: group[0].status != "measured")
    return tuple(Line(tuple(group)) for group in joined)


def main_rows(results: PairResults) -> tuple[Row, ...]:
    """The rows of the driven body, the picture and the chain: those a reader looks at first."""
    first = _player(results)
    return tuple(r for r in results.rows if r.subject in (first, "picture", "chain"))


def _player(results: PairResults) -> str:
    paths = [r.subject for r in results.rows if r.metric == "fde"]
    return paths[0] if paths else ""


_HEADLINES = ("fde", "dtw", "robust_error", "rel_epe_dyn", "cos_sim_dyn", "csr", "icra")


@dataclass(frozen=True)
class Headline:
    """What one dimension says, for a reader in a hurry.

    Attributes:
        dimension: evaluation dimension.
        sentences: (text, note, tone) by quantity; the note says what the number is worth, the tone
            is "good", "bad" or "plain" as `tone` gives it.
    """

    dimension: str
    sentences: tuple[tuple[str, str, str], ...]

    @property
    def tone(self) -> str:
        """The worst of its sentences' tones."""
        tones = [t for _, _, t in self.sentences]
        return next((t for t in ("bad", "plain", "good") if t in tones), "plain")


def headlines(results: PairResults) -> tuple[Headline, ...]:
    """A sentence per quantity, by dimension: the exact source where there is one."""
    out: dict[str, list[tuple[str, str, str]]] = {}
    rows = main_rows(results)
    for name in _HEADLINES:
        found = [r for r in rows if r.metric == name]
        if found:
            row = next((r for r in found if r.status == "measured"), found[0])
            video = next((r for r in found if r.source == "classical" and r is not row), None)
            out.setdefault(row.dimension, []).append(_sentence(row, video))
    return tuple(Headline(d, tuple(sentences)) for d, sentences in out.items())


def _sentence(row: Row, video: Row | None) -> tuple[str, str, str]:
    card = METRICS[row.metric]
    if row.status != "measured":
        return f"{card.title}: {status_text(row)}.", row.reason, "plain"

    def shown(value: float | None) -> str:
        return number(value, unit=card.unit)

    who = {"picture": "It", "chain": "It"}.get(row.subject, f"Its {_spoken(row.subject)}")
    text = f"{who} {card.says.format(value=shown(row.value))}."
    notes = []
    own = "the reference's own video"
    if row.source == "classical":
        notes.append(f"measured from its video; {own}: {shown(row.pixel_floor)}")
    elif video is not None and video.value is not None:
        notes.append(f"from its video {shown(video.value)}; {own}: {shown(video.pixel_floor)}")
    if row.reduction_floor is not None and row.reduction_floor != row.identity:
        notes.append(f"coarser control alone: {shown(row.reduction_floor)}")
    return text, "; ".join(notes), tone(row)


def _spoken(name: str) -> str:
    return name.replace("_", " ")


def tone(row: Row) -> str:
    """Whether a value is told from its worst floor: "good" within, "bad" clearly off, "plain"."""
    if row.status != "measured" or row.value is None:
        return "plain"
    floors = [f for f in (row.identity, row.pixel_floor, row.reduction_floor) if f is not None]
    if not floors or row.direction == "none":
        return "plain"
    lower = row.direction == "lower"
    worst = max(floors) if lower else min(floors)
    slack = 1e-9 + 0.1 * abs(worst)
    within = row.value <= worst + slack if lower else row.value >= worst - slack
    return "good" if within else "bad"


def status_text(row: Row) -> str:
    """A missing value, in words."""
    words = {"not_measured": "not measured", "not_run": "not run", "ineligible": "ineligible"}
    return words.get(row.status, row.status)


# --- terminal -----------------------------------------------------------------------------------


def terminal_table(results: PairResults, *, every: bool = False) -> Table:
    """The table for a terminal.

    Args:
        results: of one comparison.
        every: all bodies; by default the driven one, the picture and the chain.
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
        "N/A" if row.interval is None else _span(row.interval),
        number(row.identity),
        number(row.pixel_floor),
        number(row.reduction_floor),
        "" if row.coverage is None else f"{100 * row.coverage:.0f} %",
    )


def _span(interval: tuple[float, float]) -> str:
    return f"{number(interval[0])} … {number(interval[1])}"


# --- LaTeX --------------------------------------------------------------------------------------


def latex(results: Sequence[PairResults]) -> str:
    """A booktabs table of one or several candidates on the SAME references.

    The best value of a line is bold where every other candidate can be told apart from it; values
    that cannot be told apart from the best carry a dagger: "not separable".

    Raises:
        UserError: nothing to show, or results on different references.
    """
    if not results:
        raise UserError("a table needs at least one results.json")
    first = results[0]
    for other in results[1:]:
        if other.suite_sha256 != first.suite_sha256:
            raise UserError(
                f"{other.candidate!r} was compared with other references than {first.candidate!r} "
                f"({other.suite_sha256[:12]} and {first.suite_sha256[:12]}): one table holds one "
                "set; run both on the same plan and scene seeds"
            )
    keys = list(dict.fromkeys(r.key for one in results for r in main_rows(one)))
    lines = [
        r"% needs \usepackage{booktabs}",
        r"\begin{tabular}{ll" + "r" * len(results) + "}",
        r"\toprule",
        " & ".join(["Metric", "Source", *(_tex(one.candidate) for one in results)]) + r" \\",
        r"\midrule",
    ]
    dimension = ""
    for key in keys:
        rows = [_find(one, key) for one in results]
        known = next(r for r in rows if r is not None)
        if dimension and known.dimension != dimension:
            lines.append(r"\addlinespace")
        dimension = known.dimension
        arrow = {"lower": r" $\downarrow$", "higher": r" $\uparrow$", "none": ""}[known.direction]
        unit = "" if known.unit == "1" else f" ({_tex(known.unit)})"
        cells = _tex_cells(rows)
        lines.append(" & ".join([_tex(known.title) + unit + arrow, known.source, *cells]) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}"]
    scenes, generations = len(first.config["scene_seeds"]), first.config["generations"]  # type: ignore[arg-type]
    lines += [
        f"% {_plain(first.config['env_id'])}, plan {_plain(first.config['plan'])}, "
        f"{scenes} scene seeds, {generations} generations; {first.note}",
        f"% references {first.suite_sha256}",
        "% mean over scenes, +- sample standard deviation over generations (N/A with one)",
        r"% $^\dagger$: not separable from the best of its line; --: not measured, not run or "
        "ineligible",
    ]
    return "\n".join(lines) + "\n"


def _find(results: PairResults, key: tuple[str, str, str]) -> Row | None:
    return next((r for r in results.rows if r.key == key), None)


def _tex_cells(rows: Sequence[Row | None]) -> list[str]:
    measured = [r for r in rows if r is not None and r.value is not None]
    best: Row | None = None
    if len(measured) > 1 and measured[0].direction != "none":
        pick = min if measured[0].direction == "lower" else max
        best = pick(measured, key=lambda r: r.value or 0.0)
    tied = {
        id(r) for r in measured if best is not None and r is not best and not separable(best, r)
    }
    out = []
    for row in rows:
        if row is None or row.value is None:
            out.append("--")
            continue
        text = number(row.value)
        if row.std is not None:
            text += rf" \pm {number(row.std)}"
        if row is best and not tied:
            text = rf"\mathbf{{{text}}}"
        mark = r"^{\dagger}" if id(row) in tied else ""
        out.append(f"${text}{mark}$")
    return out


def separable(a: Row, b: Row) -> bool:
    """Whether two candidates are told apart by one line of the table (`statistics.compare`)."""
    return statistics.compare(_samples(a), _samples(b)).separable


def _samples(row: Row) -> dict[int, list[float]]:
    return {
        int(s): [math.nan if v is None else v for v in values] for s, values in row.samples.items()
    }


_TEX = {"\\": r"\textbackslash{}", "%": r"\%", "_": r"\_", "&": r"\&", "#": r"\#", "$": r"\$",
        "{": r"\{", "}": r"\}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}  # fmt: skip


def _tex(text: str) -> str:
    return "".join(_TEX.get(c, c) for c in text)


def _plain(value: Any) -> str:
    return str(value).replace("\n", " ")


# --- pictures -----------------------------------------------------------------------------------


def _png(figure: Figure) -> str:
    """A figure as a data URI; no dates and versions, so that equal figures are equal bytes."""
    from matplotlib import pyplot as plt

    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=144, metadata={"Software": None})
    plt.close(figure)
    return "data:image/png;base64," + base64.b64encode(stream.getvalue()).decode()


_STYLE: Mapping[str, Any] = {
    "font.family": "DejaVu Sans", "font.size": 9, "axes.spines.top": False,
    "axes.spines.right": False, "axes.edgecolor": "#b8c0c8", "axes.labelcolor": "#46505a",
    "xtick.color": "#46505a", "ytick.color": "#46505a", "axes.titlesize": 10,
    "axes.titlecolor": "#20262c", "axes.titlelocation": "left", "axes.grid": True,
    "grid.color": "#e9edf0", "axes.axisbelow": True, "legend.frameon": False,
    "legend.fontsize": 8, "figure.constrained_layout.use": True,
}  # fmt: skip


@contextmanager
def _style() -> Iterator[None]:
    import matplotlib

    matplotlib.use("Agg", force=False)
    with matplotlib.rc_context(dict(_STYLE)):  # type: ignore[arg-type]
        yield


def _xyz(track: Track) -> NDArray[np.float64]:
    nothing = (math.nan, math.nan, math.nan)
    return np.array([nothing if p is None else p for p in track.xyz], np.float64).reshape(-1, 3)


def paths_plot(case: CaseRecord, player: str) -> str:
    """Top view of the driven body's paths, and the distance from the reference over time."""
    from matplotlib import pyplot as plt

    with _style():
        return _png(_paths(plt, case, player))


def _paths(plt: Any, case: CaseRecord, player: str) -> Figure:
    figure: Figure
    figure, (top, error) = plt.subplots(
        1, 2, figsize=(9.6, 3.6), gridspec_kw={"width_ratios": [1, 1.25]}
    )
    times = np.array(case.times)
    reference = next((t for t in case.reference_tracks if t.body == player), None)
    if reference is None:
        top.text(0.5, 0.5, "no path", ha="center", transform=top.transAxes)
        return figure
    truth = _xyz(reference)
    others = [t for t in case.reference_tracks if t.body != player]
    for track in others:
        start = _xyz(track)[0]
        top.plot(start[0], start[1], "o", ms=2.5, color="#c9d0d6", zorder=1)
    top.plot(truth[:, 0], truth[:, 1], color=REFERENCE_COLOUR, lw=3.2, alpha=0.85,
             label="reference")  # fmt: skip
    styles = {"oracle": ("-", "candidate (records)"), "classical": (":", "candidate (pixels)")}
    for track in case.candidate_tracks:
        if track.body != player or track.source not in styles:
            continue
        line, label = styles[track.source]
        xyz = _xyz(track)
        top.plot(xyz[:, 0], xyz[:, 1], line, color=CANDIDATE_COLOUR, lw=1.7, label=label)
        known = np.flatnonzero(np.isfinite(xyz).all(axis=1))
        if len(known):
            top.plot(*xyz[known[-1], :2], "s", ms=5, color=CANDIDATE_COLOUR, zorder=4)
        if len(xyz) == len(times) == len(truth):
            error.plot(times, np.linalg.norm(xyz - truth, axis=1), line, lw=1.7,
                       color=CANDIDATE_COLOUR, label=label)  # fmt: skip
    top.plot(*truth[0, :2], "o", ms=6, mfc="white", mec=REFERENCE_COLOUR, zorder=4)
    top.plot(*truth[-1, :2], "s", ms=5, color=REFERENCE_COLOUR, zorder=3)
    for track in case.floor_tracks:
        xyz = _xyz(track)
        if track.body == player and len(xyz) == len(times) == len(truth):
            error.plot(times, np.linalg.norm(xyz - truth, axis=1), color=FLOOR_COLOUR, lw=1.2,
                       label="pixel floor", zorder=1)  # fmt: skip
    top.set(xlabel="x [m]", ylabel="y [m]", title=f"{_spoken(player)}: path from above")
    top.set_aspect("equal", adjustable="datalim")
    error.set(xlabel="time [s]", ylabel="distance from the reference [m]",
              title="how far off at the same instant")  # fmt: skip
    error.set_ylim(bottom=0)
    handles = {
        label: handle
        for axis in (top, error)
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(
        list(handles.values()), list(handles), loc="outside lower center", ncols=len(handles)
    )
    return figure


_MARKS: Mapping[str, tuple[str, str]] = {
    "contact": ("|", "#8a949e"), "impact": ("D", "#7a4fa3"), "glance": ("D", "#b07ad1"),
    "strike": ("D", "#a3324f"), "collapse": ("v", "#20262c"), "roof_release": ("^", "#c99a1e"),
    "topple": ("o", "#2f8a4f"), "fall": ("|", "#2f8a4f"), "cascade": ("s", "#1f6b3a"),
    "left_world": ("x", "#c0392b"),
}  # fmt: skip


def timeline_plot(case: CaseRecord) -> str:
    """Events of reference and candidate on one axis of time; empty without any."""
    lanes = [("reference", case.reference_events), ("candidate", case.candidate_events)]
    if not any(marks for _, marks in lanes):
        return ""
    from matplotlib import pyplot as plt

    with _style():
        return _png(_timeline(plt, case, lanes))


def _timeline(plt: Any, case: CaseRecord, lanes: Sequence[tuple[str, Any]]) -> Figure:
    figure: Figure
    figure, axis = plt.subplots(figsize=(9.6, 1.8))
    end = max(case.times)
    for lane, (name, marks) in enumerate(lanes):
        colour = (REFERENCE_COLOUR, CANDIDATE_COLOUR)[lane]
        y = 1 - lane
        axis.plot([0, end], [y, y], color=colour, lw=2, alpha=0.5, zorder=1)
        axis.text(-0.012 * end, y, name, ha="right", va="center", color=colour, fontweight="bold")
        if marks is None:
            axis.text(end / 2, y + 0.12, "events are not known from pixels", ha="center",
                      color="#8a949e", fontsize=8)  # fmt: skip
        for mark in marks or ():
            if mark.kind in _MARKS:
                shape, fill = _MARKS[mark.kind]
                tick = shape == "|"
                axis.plot(mark.time, y, shape, color=fill, ms=9 if tick else 6,
                          mew=1.1 if tick else 0.6, alpha=0.8, zorder=2 if tick else 3)  # fmt: skip
    seen = {k.kind for _, marks in lanes for k in marks or ()}
    for kind in (k for k in _MARKS if k in seen):
        shape, fill = _MARKS[kind]
        axis.plot([], [], shape, color=fill, ms=6, label=kind.replace("_", " "))
    axis.set(xlim=(0, end), ylim=(-0.5, 1.5), yticks=[], xlabel="time [s]")
    axis.spines["left"].set_visible(False)
    figure.legend(loc="outside upper center", ncols=10, handletextpad=0.2, columnspacing=1.2)
    return figure


def _jpeg(picture: NDArray[np.uint8]) -> str:
    import cv2

    done, data = cv2.imencode(".jpg", picture[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 86])
    if not done:
        raise UserError("a frame of the film strip cannot be encoded")
    return "data:image/jpeg;base64," + base64.b64encode(data.tobytes()).decode()


@dataclass(frozen=True)
class StripFrame:
    """One time of a film strip; ``candidate`` is empty where it has no frame."""

    time: float
    reference: str
    candidate: str


def strip(case: CaseRecord, root: Path, *, frames: int = STRIP_FRAMES) -> tuple[StripFrame, ...]:
    """Reference and candidate side by side at evenly spaced times."""
    from wmeval.datasets.video import read_mp4

    clips: dict[str, NDArray[np.uint8]] = {}
    for name in ("reference.mp4", "candidate.mp4"):
        if name in case.files and (root / case.files[name]).is_file():
            clips[name] = read_mp4(root / case.files[name])[0]
    count = len(case.times)
    picks = np.unique(np.linspace(0, count - 1, min(frames, count)).round().astype(int))

    def shot(name: str, k: int) -> str:
        clip = clips.get(name)
        return _jpeg(_small(clip[k])) if clip is not None and k < len(clip) else ""

    return tuple(
        StripFrame(case.times[k], shot("reference.mp4", k), shot("candidate.mp4", k))
        for k in picks.tolist()
    )


def _small(picture: NDArray[np.uint8], width: int = 320) -> NDArray[np.uint8]:
    import cv2

    height, own = picture.shape[:2]
    if own <= width:
        return picture
    size = (width, round(height * width / own))
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)


# --- HTML ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Shown:
    """One case as the page shows it."""

    case: CaseRecord
    title: str
    strip: tuple[StripFrame, ...]
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
        strip(case, root),
        paths_plot(case, player),
        timeline_plot(case),
        stages,
        case.quantities,
    )


def render(results: PairResults, root: Path) -> str:
    """The page.

    Args:
        results: of one comparison.
        root: its folder, where the mp4 files lie.
    """
    import jinja2

    player = _player(results)
    template = (files("wmeval.eval") / "templates" / "report.html.j2").read_text("utf-8")
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.globals.update(
        number=number, span=_span, tone=tone, status_text=status_text, arrows=_ARROWS,
        metrics=METRICS, needs_weights=NEEDS_WEIGHTS, dimension_titles=DIMENSION_TITLES,
    )  # fmt: skip
    main = {x.key for x in main_rows(results)}
    dimensions = list(dict.fromkeys(r.dimension for r in results.rows))
    return environment.from_string(template).render(
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
        colours={"reference": REFERENCE_COLOUR, "candidate": CANDIDATE_COLOUR},
    )


def write_report(results: PairResults, root: str | Path) -> Path:
    """Write report.html beside results.json, whole or not at all."""
    from wmeval.jobs.atomic import write_text

    root = Path(root)
    write_text(root / "report.html", render(results, root))
    return root / "report.html"
