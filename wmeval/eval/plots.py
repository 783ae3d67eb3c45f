"""Pictures of a comparison: paths, errors over time, timelines, bars, film strips.

Each is a data URI; equal results give equal bytes.
"""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.eval.metrics.table import METRICS
from wmeval.eval.results import CaseRecord, EventMark, PairResults, Row, Track
from wmeval.eval.wording import main_rows, spoken

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REFERENCE_COLOUR, CANDIDATE_COLOUR, FLOOR_COLOUR = "#2f5d8a", "#d9702b", "#9aa4af"
STRIP_FRAMES = 6
CHANGED_LEVELS = 24
"""Levels of smoothed grey by which a film strip's pixel changed."""


def png(figure: Figure) -> str:
    """A figure as a data URI; no dates and versions, so that equal figures are equal bytes."""
    from matplotlib import pyplot as plt

    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, metadata={"Software": None})
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
def style() -> Iterator[None]:
    """The look of all plots here, off screen."""
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

    with style():
        return png(_paths(plt, case, player))


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
    top.set(xlabel="x [m]", ylabel="y [m]", title=f"{spoken(player)}: path from above")
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


_PANELS = ("fde", "rmse", "robust_error", "rel_epe_dyn", "cos_sim_dyn", "icra")


def tints(count: int) -> tuple[str, ...]:
    """Colours of so many candidates, told apart from each other and from the reference."""
    palette = ("#d9702b", "#8a5fb0", "#3b9a78", "#c23b5a", "#b0912e", "#4c8dbf", "#7d6a5a")
    return tuple(palette[i % len(palette)] for i in range(count))


def bars_plot(
    all_results: Sequence[PairResults], names: Sequence[str], colours: Sequence[str]
) -> str:
    """One panel per headline metric: a bar and a ring per candidate, the pixel floor as a line."""
    from matplotlib import pyplot as plt

    with style():
        return png(_bars(plt, all_results, names, colours))


def _bars(
    plt: Any, all_results: Sequence[PairResults], names: Sequence[str], colours: Sequence[str]
) -> Figure:
    rows = {name: [_by_source(one, name) for one in all_results] for name in _PANELS}
    panels = [n for n in _PANELS if any(by for by in rows[n])]
    count = len(all_results)
    figure: Figure
    if not panels:
        figure, axis = plt.subplots(figsize=(6, 1.2))
        axis.text(0.5, 0.5, "nothing was measured", ha="center", transform=axis.transAxes)
        axis.set_axis_off()
        return figure
    height = (0.62 + 0.27 * count) * -(-len(panels) // 3) + 0.2
    figure, axes = plt.subplots(
        -(-len(panels) // 3), min(3, len(panels)), figsize=(11, height), squeeze=False, sharey=True
    )
    for axis in axes.flat[len(panels) :]:
        axis.set_visible(False)
    for axis, name in zip(axes.flat, panels, strict=False):
        card = METRICS[name]
        for y, by in enumerate(rows[name]):
            exact, seen = by.get("oracle"), by.get("classical")
            if exact is not None:
                axis.barh(y, exact.value, height=0.62, color=colours[y], alpha=0.85)
            if seen is not None:
                axis.plot(seen.value, y, "o", mfc="white", mec=colours[y], mew=1.6, ms=6, zorder=3)
                if seen.pixel_floor is not None:
                    axis.plot([seen.pixel_floor] * 2, [y - 0.42, y + 0.42], color=FLOOR_COLOUR,
                              lw=1.6, zorder=2)  # fmt: skip
        axis.set(ylim=(count - 0.4, -0.6), yticks=range(count))
        axis.set_yticklabels(names)
        unit = "" if card.unit == "1" else f" [{card.unit}]"
        axis.set_title(f"{card.title}{unit} {card.arrow}")
        axis.grid(axis="y", visible=False)
        axis.axvline(0, color="#b8c0c8", lw=0.8)
        axis.tick_params(axis="y", length=0)
        axis.spines["left"].set_visible(False)
    return figure


def _by_source(results: PairResults, metric: str) -> dict[str, Row]:
    rows = [r for r in main_rows(results) if r.metric == metric and r.status == "measured"]
    return {r.source: r for r in rows}


def joint_paths_plot(
    cases: Sequence[tuple[str, CaseRecord]], colours: Sequence[str], player: str
) -> str:
    """Paths of the driven body of several candidates, from above, and their distances over time."""
    from matplotlib import pyplot as plt

    with style():
        return png(_joint_paths(plt, cases, colours, player))


def _joint_paths(
    plt: Any, cases: Sequence[tuple[str, CaseRecord]], colours: Sequence[str], player: str
) -> Figure:
    figure: Figure
    figure, (top, error) = plt.subplots(
        1, 2, figsize=(9.6, 3.8), gridspec_kw={"width_ratios": [1, 1.25]}
    )
    drawn = False
    for (name, case), colour in zip(cases, colours, strict=True):
        reference = next((t for t in case.reference_tracks if t.body == player), None)
        if reference is None:
            continue
        truth = _xyz(reference)
        if not drawn:
            top.plot(truth[:, 0], truth[:, 1], color=REFERENCE_COLOUR, lw=3.6, label="reference")
            top.plot(*truth[0, :2], "o", ms=6, mfc="white", mec=REFERENCE_COLOUR, zorder=4)
            drawn = True
        mine = [t for t in case.candidate_tracks if t.body == player]
        track = next((t for t in mine if t.source == "oracle"), mine[0] if mine else None)
        if track is None:
            continue
        xyz = _xyz(track)
        style = "-" if track.source == "oracle" else ":"
        top.plot(xyz[:, 0], xyz[:, 1], style, color=colour, lw=1.6, label=name)
        known = np.flatnonzero(np.isfinite(xyz).all(axis=1))
        if len(known):
            top.plot(*xyz[known[-1], :2], "s", ms=5, color=colour, zorder=4)
        if len(xyz) == len(case.times) == len(truth):
            distance = np.linalg.norm(xyz - truth, axis=1)
            error.plot(case.times, distance, style, color=colour, lw=1.6)
    top.set(xlabel="x [m]", ylabel="y [m]", title=f"{spoken(player)}: path from above")
    top.set_aspect("equal", adjustable="datalim")
    error.set(xlabel="time [s]", ylabel="distance from the reference [m]",
              title="how far off at the same instant")  # fmt: skip
    error.set_ylim(bottom=0)
    if drawn:
        figure.legend(loc="outside lower center", ncols=4)
    return figure


_MARKS: Mapping[str, tuple[str, str]] = {
    "contact": ("|", "#8a949e"), "impact": ("D", "#7a4fa3"), "glance": ("D", "#b07ad1"),
    "strike": ("D", "#a3324f"), "collapse": ("v", "#20262c"), "roof_release": ("^", "#c99a1e"),
    "topple": ("o", "#2f8a4f"), "fall": ("|", "#2f8a4f"), "cascade": ("s", "#1f6b3a"),
    "left_world": ("x", "#c0392b"),
}  # fmt: skip


Lane = tuple[str, str, Sequence[EventMark] | None]
"""Name, colour, events (None: not known)."""


def timeline_plot(case: CaseRecord, candidates: Sequence[Lane]) -> str:
    """Events of a reference and of candidates on one axis of time; empty without any."""
    lanes: list[Lane] = [("reference", REFERENCE_COLOUR, case.reference_events), *candidates]
    if not any(marks for _, _, marks in lanes):
        return ""
    from matplotlib import pyplot as plt

    with style():
        return png(_timeline(plt, case, lanes))


def _timeline(plt: Any, case: CaseRecord, lanes: Sequence[Lane]) -> Figure:
    figure: Figure
    figure, axis = plt.subplots(figsize=(9.6, 0.9 + 0.4 * len(lanes)))
    end = max(case.times)
    for y, (name, colour, marks) in enumerate(lanes):
        axis.plot([0, end], [y, y], color=colour, lw=2, alpha=0.5, zorder=1)
        axis.text(-0.012 * end, y, name, ha="right", va="center", color=colour, fontweight="bold")
        if marks is None:
            axis.text(end / 2, y - 0.12, "events are not known from pixels", ha="center",
                      color="#8a949e", fontsize=8)  # fmt: skip
        for mark in marks or ():
            if mark.kind in _MARKS:
                shape, fill = _MARKS[mark.kind]
                tick = shape == "|"
                axis.plot(mark.time, y, shape, color=fill, ms=9 if tick else 6,
                          mew=1.1 if tick else 0.6, alpha=0.8, zorder=2 if tick else 3)  # fmt: skip
    seen = {k.kind for _, _, marks in lanes for k in marks or ()}
    for kind in (k for k in _MARKS if k in seen):
        shape, fill = _MARKS[kind]
        axis.plot([], [], shape, color=fill, ms=6, label=kind.replace("_", " "))
    axis.set(xlim=(0, end), ylim=(len(lanes) - 0.5, -0.5), yticks=[], xlabel="time [s]")
    axis.spines["left"].set_visible(False)
    figure.legend(loc="outside upper center", ncols=10, handletextpad=0.2, columnspacing=1.2)
    return figure


def jpeg(picture: NDArray[np.uint8]) -> str:
    """A picture (H, W, 3) as a data URI."""
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
    """Reference and candidate side by side at evenly spaced times, cut to where things happen."""
    from wmeval.datasets.video import read_mp4

    clips: dict[str, NDArray[np.uint8]] = {}
    for name in ("reference.mp4", "candidate.mp4"):
        if name in case.files and (root / case.files[name]).is_file():
            clips[name] = read_mp4(root / case.files[name])[0]
    count = len(case.times)
    picks = np.unique(np.linspace(0, count - 1, min(frames, count)).round().astype(int))

    window = _action(clips.get("reference.mp4"))

    def shot(name: str, k: int) -> str:
        clip = clips.get(name)
        return jpeg(_small(clip[k][window])) if clip is not None and k < len(clip) else ""

    return tuple(
        StripFrame(case.times[k], shot("reference.mp4", k), shot("candidate.mp4", k))
        for k in picks.tolist()
    )


def _action(clip: NDArray[np.uint8] | None) -> tuple[slice, slice]:
    """The part (rows, columns) of a reference's pictures in which anything ever changes.

    With a margin of 5 % of the width around it, at least a third of each side. A moving camera
    changes everything: then it is the whole picture.
    """
    import cv2

    if clip is None:
        return slice(None), slice(None)
    margin = round(0.05 * clip.shape[2])
    grey = [cv2.blur(cv2.cvtColor(f, cv2.COLOR_RGB2GRAY), (5, 5)).astype(int) for f in clip[::4]]
    changed = np.any([np.abs(g - grey[0]) > CHANGED_LEVELS for g in grey], axis=0)

    def window(found: NDArray[np.bool_]) -> slice:
        side, where = len(found), np.flatnonzero(found)
        if not len(where):
            return slice(None)
        middle, length = where[0] + where[-1] + 1, where[-1] + 1 - where[0] + 2 * margin
        length = min(max(length, side // 3), side)
        first = min(max((middle - length) // 2, 0), side - length)
        return slice(int(first), int(first + length))

    return window(changed.any(axis=1)), window(changed.any(axis=0))


def _small(picture: NDArray[np.uint8], width: int = 320) -> NDArray[np.uint8]:
    import cv2

    height, own = picture.shape[:2]
    if own <= width:
        return picture
    size = (width, round(height * width / own))
    return np.asarray(cv2.resize(picture, size, interpolation=cv2.INTER_AREA), np.uint8)
