"""Pictures of a sweep: courses against truth, errors over time, convergence, film strips."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import QUANTITY_UNITS, families
from wmeval.errors import UserError
from wmeval.eval.metrics.gauge import SCALES
from wmeval.eval.plots import REFERENCE_COLOUR, jpeg, png, style
from wmeval.eval.sweep.cells import CellResult, Measurement
from wmeval.eval.sweep.course import Course
from wmeval.eval.sweep.measure import reference_of
from wmeval.eval.sweep.prepared import scene_of
from wmeval.eval.sweep.results import Converged
from wmeval.sim.protocol import RenderState
from wmeval.sim.render import make_renderer

F8 = NDArray[np.float64]
Arrays = Callable[[str], Mapping[str, NDArray[Any]]]
STRIP_SIZE = (320, 176)


def _course(result: CellResult, arrays: Arrays) -> Course | None:
    found = arrays(result.key)
    if "course" not in found:
        return None
    return Course(
        np.asarray(found["times"], np.float64), np.asarray(found["course"], np.float64),
        families()[result.cell.family].quantity, (),
    )  # fmt: skip


def course_plot(
    results: Sequence[CellResult], arrays: Arrays, labels: Sequence[str], colours: Sequence[str]
) -> str:
    """One task: each engine's course with the closed form's, and its error over time.

    Returns:
        A data URI; "" where no cell has a course.
    """
    from matplotlib import pyplot as plt

    courses = [_course(r, arrays) for r in results]
    if not any(c is not None for c in courses):
        return ""
    first = results[0].cell
    card = families()[first.family]
    unit = QUANTITY_UNITS[card.quantity]
    with style():
        figure, (left, right) = plt.subplots(1, 2, figsize=(9.6, 3.1))
        longest = max((c for c in courses if c is not None), key=lambda c: len(c.times))
        form, true = (
            (None, None)
            if first.drive
            else reference_of(card, first.subtask, first.material, longest.times)
        )
        times = longest.times[: len(true)] if true is not None else longest.times[:0]
        wanted = card.quantity if form is not None and true is not None else ""
        comparable = true is not None and form is not None and _same(true, longest.values)
        if comparable and wanted and true is not None:
            body = (
                true if true.ndim == 3 else true[:, None] if card.quantity == "position" else true
            )
            reference = Course(times, body, card.quantity, ())
            left.plot(times, reference.curve, color=REFERENCE_COLOUR, lw=4, alpha=0.45,
                      label="closed form")  # fmt: skip
        for course, label, colour in zip(courses, labels, colours, strict=True):
            if course is None:
                continue
            left.plot(course.times, course.curve, lw=1.4, color=colour, label=label)
            if comparable and true is not None:
                n = min(len(true), len(course.values))
                a = course.values[:n].reshape(n, -1) * SCALES[card.quantity]
                b = true[:n].reshape(n, -1) * SCALES[card.quantity]
                error = np.linalg.norm(a - b, axis=1) / np.sqrt(max(1, course.count))
                right.plot(course.times[:n], error, lw=1.4, color=colour, label=label)
        what = {"position": "way from the start", "curvature": "change of curvature",
                "area": "change of the faces"}[card.quantity]  # fmt: skip
        left.set(xlabel="time [s]", ylabel=f"{what} [{unit}]", title="course (RMS of the parts)")
        right.set(xlabel="time [s]", ylabel=f"error [{unit}]", title="off the closed form")
        if not comparable:
            right.text(0.5, 0.5, "no closed form of its course", ha="center", color="#5b6670",
                       transform=right.transAxes)  # fmt: skip
        left.legend()
        return png(figure)


def _same(true: F8, values: F8) -> bool:
    return bool(true[0].size == values[0].size)


def order_text(c: Converged) -> str:
    """An order with what speaks for it: that of the three steps before the finest."""
    if c.order is None:
        return ""
    if len(c.steps) < 4:
        checked = "three steps: unchecked"
    elif c.order_before is None:
        checked = "none a step before"
    else:
        checked = f"{c.order_before:.2g} a step before"
    return f", order {c.order:.2g} ({checked})"


def convergence_plot(converged: Sequence[Converged], colours: Mapping[str, str]) -> str:
    """Errors against the extrapolated limit, over the step or the size of cells."""
    from matplotlib import pyplot as plt

    shown = [c for c in converged if any(e for e in c.errors)]
    if not shown:
        return ""
    with style():
        figure, axis = plt.subplots(figsize=(9.6, 3.3))
        marks = "os^Dv<>P*X"
        tasks = list(dict.fromkeys(c.task for c in shown))
        for c in shown:
            pairs = [(h, e) for h, e in zip(c.steps, c.errors, strict=True) if e]
            axis.plot(
                [h for h, _ in pairs], [e for _, e in pairs], color=colours.get(c.engine),
                marker=marks[tasks.index(c.task) % len(marks)], lw=1.2,
                label=f"{c.engine} {c.task} {c.point}".strip() + order_text(c),
            )  # fmt: skip
        over = "size of a cell [m]" if shown[0].over == "cell" else "step [s]"
        axis.set(xscale="log", yscale="log", xlabel=over,
                 ylabel=f"off its own limit [{shown[0].unit}]")  # fmt: skip
        axis.legend(fontsize=7)
        return png(figure)


@dataclass(frozen=True)
class Point:
    """One grid point of an engine on a task."""

    engine: str
    label: str
    cost: float
    error: float


def pareto(points: Sequence[Point]) -> list[Point]:
    """Points that no other beats in both cost and error, by cost."""
    out: list[Point] = []
    for p in sorted(points, key=lambda p: (p.cost, p.error)):
        if not out or p.error < out[-1].error:
            out.append(p)
    return out


def costed(results: Sequence[CellResult]) -> tuple[Measurement | None, str]:
    """Which number's error is set against cost, as one cell has it, and why where none is.

    The RMSE to the closed form's course; of families that are not scored by it (pendulum, cradle)
    the first number that a closed form predicts of what was asked for; then the RMSE to own trials.
    """
    found = [
        (_rank(m), k, m)
        for r in results
        if not r.cell.repeat and r.cpu_s
        for k, m in enumerate(r.measurements)
        if m.error is not None and _rank(m) is not None
    ]
    if found:
        return min(found, key=lambda x: (x[0] or 0, x[1]))[2], ""
    if not any(r.cpu_s for r in results):
        return None, "the CPU time of these cells is not known"
    return None, "no closed form or recording says how far these cells are off"


def _rank(m: Measurement) -> int | None:
    """Place among what may be set against cost; None where it may not."""
    if m.metric == "rmse":
        return 0 if m.truth != "real" else 2
    return 1 if m.truth and m.expected is not None and not m.ideal else None


def grid_points(
    results: Sequence[CellResult], metric: str = "rmse", truth: str | None = None
) -> list[Point]:
    """Error and CPU time of every cell that has both."""
    out = []
    for r in results:
        found = r.measurement(metric, truth)
        # A clock of ticks, of an older sweep, tells 0: no time at all.
        if found is None or found.error is None or not r.cpu_s or r.cell.repeat:
            continue
        text = ",".join(f"{k}={v}" for k, v in r.cell.grid.items())
        out.append(Point(r.cell.engine.label, text, r.cpu_s, found.error))
    return out


def pareto_plot(
    points: Sequence[Point], unit: str, colours: Mapping[str, str], what: str = "error"
) -> str:
    """Error against CPU time, each engine's front as a line; ``what`` heads the errors."""
    from matplotlib import pyplot as plt

    if not points:
        return ""
    with style():
        figure, axis = plt.subplots(figsize=(9.6, 3.3))
        for engine in dict.fromkeys(p.engine for p in points):
            own = [p for p in points if p.engine == engine]
            colour = colours.get(engine)
            axis.plot([p.cost for p in own], [p.error for p in own], "o", ms=4, color=colour,
                      alpha=0.6)  # fmt: skip
            front = pareto(own)
            axis.plot([p.cost for p in front], [p.error for p in front], "-", lw=1.4,
                      color=colour, label=engine)  # fmt: skip
            for p in front:
                axis.annotate(p.label, (p.cost, p.error), fontsize=6.5, color="#5b6670",
                              xytext=(3, 3), textcoords="offset points")  # fmt: skip
        axis.set(xscale="log", xlabel="CPU time [s]", ylabel=f"{what} [{unit}]")
        if all(p.error > 0 for p in points):
            axis.set(yscale="log")
        axis.legend()
        return png(figure)


@dataclass(frozen=True)
class Frame:
    """One instant of a film strip: a picture as a data URI."""

    time: float
    picture: str


def film(result: CellResult, arrays: Arrays) -> tuple[Frame, ...]:
    """Evenly spaced instants of a cell, drawn by ``raster``; empty where it cannot be drawn."""
    found = arrays(result.key)
    if "strip" not in found:
        return ()
    try:
        _, _, built = scene_of(result.cell)
        scene = built.scene
        renderer = make_renderer("raster", scene, built.meshes)
    except Exception:  # no GL: a report without strips is still one
        return ()
    camera = scene.cameras[0]
    out = []
    try:
        for k, row in enumerate(found["strip"].tolist()):
            position = np.asarray(found["position"][row], np.float64)
            state = RenderState(
                position,
                np.asarray(found["quaternion_wxyz"][row], np.float64),
                np.ones(len(position), bool),
                float(found["fov_y"][0]),
                found["T_world_camera"][0],
                camera.near,
                camera.far,
                found["sun_direction"],
                found["sun_color"],
                found["sky"],
                vertices={
                    name.removeprefix("vertices/"): np.asarray(x[k], np.float64)
                    for name, x in found.items()
                    if name.startswith("vertices/")
                },
            )
            picture = renderer.draw(state, *STRIP_SIZE, ("rgb",))["rgb"]
            out.append(Frame(float(found["times"][row]), jpeg(picture)))
    except UserError:
        return ()
    finally:
        renderer.close()
    return tuple(out)
