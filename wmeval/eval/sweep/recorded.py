"""A user's own recordings as truth: trials in `wmeval-mocap/1` against a cell's course.

As the paper does: trials are brought to 30 frames a second, their mean is the truth, and the mean
of each trial's own RMSE to it is what an engine's RMSE is divided by. Its standard deviation over
the trials and their number stand beside it; the interval of an error is of what it would be with
other trials, by leaving each out in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit

from wmeval.assets.gauge_cards import QUANTITY_UNITS, RECORD_HZ, Family, families
from wmeval.assets.gauge_markers import MarkerSet
from wmeval.datasets.mocap import read_mocap
from wmeval.datasets.mocap.schema import Mocap, Trial
from wmeval.errors import UserError, one_line
from wmeval.eval.metrics import gauge
from wmeval.eval.metrics.trajectory import jointly_valid, rmse, warp
from wmeval.eval.sweep.cells import Measurement
from wmeval.eval.sweep.course import LEVEL, Course
from wmeval.eval.sweep.otherwise import Nodes, relative
from wmeval.eval.sweep.suited import ENOUGH, covers, lengths, ways

F8 = NDArray[np.float64]
ELSEWHERE = 10.0
"""Distance of the starts from which a recording is taken to have another place than the card [mm],
where it is also more than three times the spread of the trials' own starts."""
HOLE = 2.5
"""Samples that are so many of a trial's steps apart have a gap between them."""
ALIKE = 1e-9
"""Spread of trials, relative to their largest number, below which they are the same trial."""


@cache
def recording(path: str) -> Mocap:
    """A recording of one of GAUGE's set-ups.

    Raises:
        UserError: it cannot be read, or does not say of what it is.
    """
    mocap = read_mocap(Path(path))
    if mocap.header.family not in families():
        raise UserError(
            f"{path}: family {mocap.header.family!r} is none of GAUGE's: say in its header which "
            "family, subtask and material it measures"
        )
    if len(mocap.trials) < 2:
        raise UserError(f"{path}: a baseline needs two trials or more; it holds one")
    return mocap


def is_of(mocap: Mocap, family: str, subtask: str, material: str) -> bool:
    """Whether it measures a set-up; what its header leaves out is any."""
    h = mocap.header
    return h.family == family and h.subtask in (None, subtask) and h.material in (None, material)


def values_of(
    card: Family, names: Sequence[str], worn: MarkerSet | None, mocap: Mocap, trial: Trial,
    frames: int,
) -> F8:  # fmt: skip
    """A trial's quantity at 30 frames a second, from its first frame, (K, ...) in SI units.

    Frames that lie in a gap are NaN: between samples that are not measured, or that are further
    apart than a frame and `HOLE` of the trial's steps.

    Raises:
        UserError: it lacks a body or markers.
    """
    even = trial.resampled(RECORD_HZ)
    count = min(frames, len(even))
    if worn is not None:
        if trial.markers.shape[1] != len(worn.points):
            raise UserError(
                f"trial {trial.name!r}: {trial.markers.shape[1]} markers; {card.id} wears "
                f"{len(worn.points)}, in the order of its layout"
            )
        out = LEVEL[card.quantity](even.markers[:count], worn)
    else:
        missing = [n for n in names if n not in mocap.header.bodies]
        if missing:
            raise UserError(f"trial {trial.name!r}: has no body {missing[0]!r}, which is measured")
        rows = [mocap.header.bodies.index(n) for n in names]
        out = even.positions[:count, rows]
    lost = in_holes(trial, even.times[:count])
    return np.where(lost.reshape(-1, *[1] * (out.ndim - 1)), np.nan, out)


def in_holes(trial: Trial, times: F8) -> NDArray[np.bool_]:
    """Which times from the trial's start lie where samples are missing."""
    own = trial.times - trial.times[0]
    steps = np.diff(own)
    lost = np.zeros(len(times), bool)
    if len(steps):
        wide = max(HOLE * float(np.median(steps)), 1.5 / RECORD_HZ)
        for k in np.flatnonzero(steps > wide).tolist():
            lost |= (times > own[k] + 1e-6) & (times < own[k + 1] - 1e-6)
    return lost


def against(
    card: Family, path: str, course: Course, worn: MarkerSet | None, nodes: Nodes | None = None,
    without: Sequence[str] = (),
) -> tuple[Measurement, ...]:  # fmt: skip
    """RMSE and DTW of a course against the mean of real trials, with their own spread.

    Positions that were recorded elsewhere in space are compared from the recording's own start: the
    course is moved there as a whole, and the reason says by how much. It is never turned.
    Of areas and curvatures also the RMSE from the start and as published
    (`wmeval.eval.sweep.otherwise`). A number that the recording does not allow, because it lacks
    what is measured or fewer than two trials are left, says so in its place.

    Args:
        card: the family.
        path: of the recording.
        course: of the engine.
        worn: the family's markers, where it wears any.
        nodes: what `as_published` says of the record.
        without: names of trials that are left out: those that the engine was fitted on.
    """
    unit = QUANTITY_UNITS[card.quantity]

    def missing(error: object, *metrics: str) -> list[Measurement]:
        reason = one_line(str(error))
        return [Measurement(metric=m, truth="real", unit=unit, reason=reason) for m in metrics]

    metrics = ("rmse", "dtw") if card.quantity == "position" else ("rmse", "dtw", "rmse_relative")
    try:
        out = _held(card, path, course, worn, without, metrics)
    except UserError as error:
        out = missing(error, *metrics)
    if nodes is None:
        return tuple(out)
    if nodes.course is None:
        return (*out, *missing(nodes.reason, "rmse_published"))
    try:
        (one,) = _held(card, path, nodes.course, nodes.worn, without, ("rmse",))
    except UserError as error:
        return (*out, *missing(error, "rmse_published"))
    return (*out, one.model_copy(update={"metric": "rmse_published"}))


def _held(
    card: Family, path: str, course: Course, worn: MarkerSet | None, without: Sequence[str],
    metrics: Sequence[str],
) -> list[Measurement]:  # fmt: skip
    """Some metrics of a course.

    Raises:
        UserError: the recording lacks what is measured, or fewer than two trials are left.
    """
    mocap = recording(path)
    rest = scored_trials(mocap, path, len(course.times), without)
    trials = [values_of(card, course.names, worn, mocap, t, len(course.times)) for t in rest]
    count = min(len(t) for t in trials)
    each = [gauge.generalised(t[:count], card.quantity) for t in trials]
    found = gauge.generalised(course.values[:count], card.quantity)
    if found.shape != each[0].shape:
        raise UserError(
            f"{path}: {each[0].shape[1]} numbers a frame; the record has {found.shape[1]}"
        )
    if not any(np.isfinite(g[0]).all() for g in each):
        raise UserError(f"{path}: no trial has its first frame whole: begin each where it is seen")
    real = gauge.baseline(each)
    used = jointly_valid(found, real.mean)
    if used.sum() < ENOUGH * len(course.times):
        raise UserError(
            f"{path}: {used.sum()} of the record's {len(course.times)} frames are measured; "
            f"{100 * ENOUGH:.0f} % are needed"
        )
    notes = lengths(mocap, count, len(course.times))
    if card.quantity == "position":
        try:
            notes += ways(found, real.mean)
        except UserError as error:
            raise UserError(f"{path}: {error}") from error
        moved = _elsewhere(found, real.mean, each)
        if moved is not None:
            found = found + np.tile(moved, found.shape[1] // 3)
            notes.append(
                f"from the recording's own start, which is {np.linalg.norm(moved):.0f} mm from "
                "the card's"
            )
    notes += _gaps(each, used)
    alike = ALIKE * float(np.nanmax(np.abs(real.mean)))
    others = without_each(each)
    starts = (
        [relative(g, real.mean, card.quantity) for g in each] if "rmse_relative" in metrics else []
    )
    own: dict[str, tuple[float, float]] = {
        "rmse": (real.rmse, real.rmse_std), "dtw": (real.dtw, real.dtw_std),
        "rmse_relative": mean_and_spread(starts),
    }  # fmt: skip
    # What a gap takes from one side it takes from the other, or time is bridged by warping.
    score: dict[str, Callable[[], tuple[float, list[float]]]] = {
        "rmse": lambda: (rmse(found, real.mean), [rmse(found, m) for m in others]),
        "dtw": lambda: _warped(found[used], real.mean[used], [m[used] for m in others]),
        "rmse_relative": lambda: (
            relative(found, real.mean, card.quantity),
            [relative(found, m, card.quantity) for m in others],
        ),
    }
    out = []
    for metric in metrics:
        value, left_out = score[metric]()
        baseline, spread = own[metric]
        differ = baseline > alike
        # Two trials are as far from their mean as each other, whatever they are apart.
        known = differ and len(each) > 2 and np.isfinite(spread)
        said = notes if differ else [*notes, "trials do not differ: nothing to divide by"]
        low, high = over_trials(value, left_out)
        out.append(
            Measurement(
                metric=metric, truth="real", value=value if np.isfinite(value) else None,
                unit=QUANTITY_UNITS[card.quantity], baseline=baseline if differ else None,
                spread=spread if known else None, trials=len(each),
                n=int(used.sum()), low=low, high=high, reason="; ".join(said),
            )
        )  # fmt: skip
    return out


def scored_trials(
    mocap: Mocap, path: str, frames: int, without: Sequence[str]
) -> tuple[Trial, ...]:
    """Trials that a record of so many frames is held against, without those that are left out.

    Raises:
        UserError: they are far shorter, or fewer than two.
    """
    covers(mocap, path, frames)
    rest = tuple(t for t in mocap.trials if t.name not in without)
    if len(rest) < 2:
        raise UserError(
            f"{path}: {len(rest)} of its {len(mocap.trials)} trials were not fitted on; a baseline "
            "needs two or more"
        )
    return rest


def mean_and_spread(values: Sequence[float]) -> tuple[float, float]:
    """Mean of those that are known, NaN without one; standard deviation, NaN without two."""
    known = [x for x in values if np.isfinite(x)]
    return (
        float(np.mean(known)) if known else float("nan"),
        float(np.std(known, ddof=1)) if len(known) > 1 else float("nan"),
    )


def without_each(trials: Sequence[F8]) -> list[F8]:
    """Mean trajectories (T, D) with each trial left out in turn; NaN where no other is measured."""
    stack = np.asarray(trials, np.float64)
    measured = np.isfinite(stack)
    filled = np.where(measured, stack, 0.0)
    count, total = measured.sum(axis=0), filled.sum(axis=0)
    out = []
    for k in range(len(stack)):
        left = count - measured[k]
        out.append(np.where(left > 0, (total - filled[k]) / np.maximum(left, 1), np.nan))
    return out


def over_trials(value: float, left_out: Sequence[float]) -> tuple[float | None, float | None]:
    """95 % interval of an error over trials: the jackknife's, by Student's t.

    Args:
        value: of all trials.
        left_out: with each trial left out in turn.

    Returns:
        Its ends, of which the lower is no less than 0; None where a value is not known.
    """
    x, n = np.asarray(left_out, np.float64), len(left_out)
    if not np.isfinite([value, *x]).all():
        return None, None
    deviation = float(np.sqrt((n - 1) / n * ((x - x.mean()) ** 2).sum()))
    half = float(stdtrit(n - 1, 0.975)) * deviation
    return max(0.0, value - half), value + half


def _warped(found: F8, mean: F8, others: Sequence[F8]) -> tuple[float, list[float]]:
    """DTW to a mean, and to others along the same path: they are next to it, so is theirs."""
    best = warp(found, mean)
    i, j = np.array(best.path, np.intp).reshape(-1, 2).T
    off = [np.linalg.norm(found[i] - m[j], axis=1) for m in others]
    return best.mean, [float(np.mean(x[np.isfinite(x)])) if x.size else float("nan") for x in off]


def _gaps(trials: Sequence[F8], used: NDArray[np.bool_]) -> list[str]:
    """What is said of frames that are not measured in all trials."""
    whole = np.all([np.isfinite(t).all(axis=1) for t in trials], axis=0)
    none, few = int((~used).sum()), int((used & ~whole).sum())
    out = [f"{none} of {len(used)} frames are measured in no trial and left out"] if none else []
    if few:
        out.append(f"in {few} of {len(used)} frames the mean is not of all trials")
    return out


def _elsewhere(found: F8, mean: F8, trials: Sequence[F8]) -> F8 | None:
    """How far the trials' mean starts from a course (3,) [mm]; None where they share a place."""
    starts = np.stack([t[0] for t in trials]).reshape(len(trials), -1, 3).mean(axis=1)
    moved: F8 = (mean[0] - found[0]).reshape(-1, 3).mean(axis=0)
    spread = np.linalg.norm(starts - starts.mean(axis=0), axis=1)
    apart = float(np.linalg.norm(moved))
    return moved if apart > max(ELSEWHERE, 3 * float(np.sqrt(np.mean(spread**2)))) else None
