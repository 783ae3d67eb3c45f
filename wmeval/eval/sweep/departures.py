"""How far a number of a cell is off, and from where on it departs."""

from __future__ import annotations

import math

from wmeval.eval.sweep.ablations import STRETCH_LIMIT
from wmeval.eval.sweep.cells import Measurement
from wmeval.eval.sweep.depths import LIMIT

SMALL = 0.01
"""Relative error below which a cell does not depart."""
REPEATS = 0.2
"""Of an error, the share of what GAUGE's real trials are apart below which it does not."""
_MOST = {"stretch": STRETCH_LIMIT, "penetration": 1e3 * LIMIT}
"""Numbers that are off where they are greater than this, whatever is true [1, mm]."""


def departure(m: Measurement) -> float:
    """How far a number is off, relative to what is right; NaN where nothing says.

    A textile's stretch and a depth are held against what they may be: 1 is as much.
    """
    if m.metric in _MOST:
        return max(0.0, m.value) / _MOST[m.metric] if m.value is not None else math.nan
    if m.error is None:
        return math.nan
    scale = abs(m.expected) if m.expected else (m.baseline or 0.0)
    return m.error / scale if scale else math.nan


def least(m: Measurement) -> float:
    """Departure from which a number is explained."""
    if m.metric in _MOST:
        return 1.0
    return max(SMALL, m.accuracy) if m.expected is not None else REPEATS


def slight(m: Measurement) -> bool:
    """Whether a number departs by less than what is explained.

    Of a share that should be 0, nothing is relative: its error is the part that is off.
    """
    if m.metric not in _MOST and m.expected == 0 and not m.baseline and m.unit == "1":
        return m.error is not None and m.error < least(m)
    return departure(m) < least(m)


def least_said(m: Measurement) -> str:
    """What `least` is in the number's own unit, as text."""
    scale = abs(m.expected) if m.expected else (m.baseline or (1.0 if m.unit == "1" else 0.0))
    most = least(m) * _MOST.get(m.metric, scale)
    return f"{most:.3g}" + ("" if m.unit == "1" else f" {m.unit}")


def off(m: Measurement) -> float | None:
    """The error that trials should make smaller; a stretch is its own."""
    return m.value if m.metric == "stretch" else m.error
