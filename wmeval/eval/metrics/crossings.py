"""The period of a swing by the times at which it passes through its middle.

A spectrum knows periods only as finely as a record is long (300 frames at 30 Hz: 1.11 or 1.25 s),
and a parabola through its bins is off by as much as what the record's ends cut off. Crossings are
timed between frames, and a line through their times has the period of a record of any length.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.eval.metrics.gauge import parabola_peak

F8 = NDArray[np.float64]

BAND = 0.1
"""Of the greatest departure from the middle, what must be passed on both sides of a crossing."""
NEAR = 1 / 12
"""Of a period, the time to either side of a crossing whose frames tell when it was."""
FEW = 4
"""Frames that do so at least: a cubic."""
WIDE = 1 / 6
"""Of a period, the time without a frame in which what was passed is not known."""
AGAIN = 4
"""How often the middle is looked for by the turns between crossings, and these by the middle."""


@dataclass(frozen=True, eq=False)
class CrossingPeriod:
    """A period by crossings.

    Attributes:
        period: mean time from one crossing to the next the same way [s]; NaN where it is not seen.
        times: of the crossings, ways up and down in turn (K,) [s]; NaN where no frames tell when.
        level: the middle that was passed, unit of the values.
    """

    period: float
    times: F8
    level: float


def pd_crossings(values: F8, times: F8, *, level: float | None = None) -> CrossingPeriod:
    """Period of a swing by its crossings [s] (ours).

    The slope of the crossings' times over their numbers by least squares, those upwards and those
    downwards each with a start of their own: about a middle that is a little off, ways up and down
    alternate unevenly, and each by itself comes once a period. A crossing counts between two
    departures of `BAND` to either side, so that noise makes none; its time is where the cubic that
    is nearest to the frames about it passes the middle. Swings that a gap hides are counted by how
    long it is, and no crossing within it is timed. Of two crossings alone, which is half a swing,
    the period is twice what is between them if the middle is given; else there is none.

    A closed form's record, undamped and of any amplitude, gives its own period to 1e-4 from 20
    frames a swing and one swing on, 1.6 if the middle is not given. Where swings
    become smaller it is their mean over the record.

    Args:
        values: (T,) what swings once a period: an angle, or a coordinate along the swing. Frames
            that are not measured (NaN) are left out.
        times: (T,) ascending [s].
        level: the middle, in the unit of the values; None: by three turns in a row, x1, x2 and x3,
            the limit (x1 x3 - x2^2) / (x1 + x3 - 2 x2) of turns that come nearer to each other by
            one factor (Aitken), the median over the record.
    """
    y, t = np.asarray(values, np.float64), np.asarray(times, np.float64)
    good = np.isfinite(y) & np.isfinite(t)
    y, t = y[good], t[good]
    nothing = CrossingPeriod(math.nan, np.empty(0), math.nan if level is None else level)
    if len(y) < FEW or np.ptp(y) == 0:
        return nothing
    given = level is not None
    if level is None:
        level = float(y.max() + y.min()) / 2
        for _ in range(AGAIN):
            level = _middle(y, _sides(y - level), level)
    at, wide = _crossings(y - level, t)
    gaps = np.flatnonzero(np.diff(t) > wide)
    seen = [k for k in range(len(at) - 1) if not _holds(at[k], at[k + 1], t, gaps)]
    if len(at) == 2 and given and seen:
        return CrossingPeriod(2 * float(at[1] - at[0]), at, level)
    whole = [at[k + 2] - at[k] for k in seen if k + 1 in seen]
    if not whole:
        return CrossingPeriod(math.nan, at, level) if len(at) > 1 else nothing
    turn = float(np.median(whole))
    # Ways up and down each about a mean of their own.
    top = bottom = 0.0
    for way in (slice(0, None, 2), slice(1, None, 2)):
        own = at[way][np.isfinite(at[way])]
        if len(own) < 2:
            continue
        # One after the other, or as many as a gap has room for.
        on = [
            max(1, round((b - a) / turn)) if _holds(a, b, t, gaps) else 1
            for a, b in itertools.pairwise(own.tolist())
        ]
        n = np.cumsum([0.0, *on])
        n -= n.mean()
        top, bottom = top + float(n @ own), bottom + float(n @ n)
    return CrossingPeriod(top / bottom, at, level)


def _holds(begin: float, end: float, t: F8, gaps: NDArray[np.intp]) -> bool:
    """Whether a gap lies between two crossings [s], or hides one."""
    if not (math.isfinite(begin) and math.isfinite(end)):
        return True
    return bool(((t[gaps] < end) & (t[gaps + 1] > begin)).any())


def _sides(y: F8) -> list[tuple[int, int]]:
    """Last frame beyond the band on one side, and first on the other, of every crossing of 0."""
    out = np.flatnonzero(np.abs(y) > BAND * np.abs(y).max())
    turns = np.flatnonzero(np.sign(y[out[:-1]]) != np.sign(y[out[1:]]))
    return [(int(out[k]), int(out[k + 1])) for k in turns]


def _middle(y: F8, sides: list[tuple[int, int]], level: float) -> float:
    """The middle by the turns between crossings; the one that is given, with fewer than two."""
    turns = []
    for (_, begin), (end, _) in itertools.pairwise(sides):
        piece = y[max(0, begin - 1) : end + 2] - level
        up = 1.0 if y[begin] > level else -1.0
        _, top = parabola_peak(up * piece, int(np.argmax(up * piece)))
        turns.append(up * top + level)
    x = np.array(turns)
    if len(x) < 2:
        return level
    if len(x) == 2:
        return float(x.mean())
    a, b, c = x[:-2], x[1:-1], x[2:]
    return float(np.median((a * c - b**2) / (a + c - 2 * b)))


def _crossings(y: F8, t: F8) -> tuple[F8, float]:
    """Times at which a swing passes 0, ways up and down in turn, and how long a gap is [s].

    NaN of those that lie in a gap.
    """
    sides = _sides(y)
    middles = np.array([(t[i] + t[j]) / 2 for i, j in sides])
    if len(middles) < 2:
        return middles, math.inf
    halves = np.diff(middles)
    width = 2 * NEAR * float(np.median(halves))
    wide = max(2 * WIDE * float(halves.min()), 1.5 * float(np.median(np.diff(t))))
    at = [
        _passes(y, t, i, j, width) if np.diff(t[i : j + 1]).max() <= wide else math.nan
        for i, j in sides
    ]
    return np.array(at), wide


def _passes(y: F8, t: F8, begin: int, end: int, width: float) -> float:
    """When a value passes 0 between two frames, by a cubic through those within a width [s]."""
    middle = (t[begin] + t[end]) / 2
    away = np.abs(t - middle)
    near = np.flatnonzero(away <= width)
    if len(near) < FEW:
        near = np.sort(np.argsort(away, kind="stable")[:FEW])
    scale = float(away[near].max())
    cubic = np.polyfit((t[near] - middle) / scale, y[near], FEW - 1)
    roots = np.roots(cubic)
    real = roots.real[np.abs(roots.imag) < 1e-9]
    low, high = ((t[k] - middle) / scale for k in (begin, end))
    inside = real[(real >= low) & (real <= high)]
    if not len(inside):
        # Too noisy for a cubic: the line between what lies beyond the band.
        share = -y[begin] / (y[end] - y[begin])
        return float(t[begin] + share * (t[end] - t[begin]))
    return float(middle + scale * inside[np.argmin(np.abs(inside))])
