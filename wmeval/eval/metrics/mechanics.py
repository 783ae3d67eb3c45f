"""Momentum, kinetic energy and how wrong a set of mechanical quantities is.

Source: WMEval, appendix "Kinematics and Mechanics", Mechanical Quantities. A quantity is one number
per body and case, such as the momentum magnitude at the last frame.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]

WINDOW_S = 0.4
"""Stretch of a track from pixels over which its velocity is fitted [s]."""


def difference_velocity(positions: F8, times: F8) -> F8:
    """v^_t = (x^_t - x^_{t-1}) / (t_t - t_{t-1}), (T, D) [m/s]; row 0 has no predecessor: NaN.

    WMEval, appendix Kinematics and Mechanics. NaN where either position is not measured.

    Raises:
        ValueError: shapes do not fit, or the times do not ascend strictly.
    """
    x, t = np.asarray(positions, np.float64), np.asarray(times, np.float64)
    if x.ndim != 2 or t.shape != (len(x),):
        raise ValueError(f"positions (T, D) and times (T,) are wanted; got {x.shape} and {t.shape}")
    if len(t) > 1 and not (np.diff(t) > 0).all():
        raise ValueError("times must ascend strictly")
    out = np.full(x.shape, np.nan)
    out[1:] = np.diff(x, axis=0) / np.diff(t)[:, None]
    return out


def fitted_velocity(positions: F8, times: F8, *, window: float = WINDOW_S) -> F8:
    """Slope of a line through the measured positions within +-window/2, (T, D) [m/s] (ours).

    For positions from pixels. Their noise does not fall with the frame interval, so that
    differences of neighbouring frames (`difference_velocity`) grow worse the more frames there are.
    The slope is the median over all pairs of frames in the window (Theil and Sen), by component: a
    few frames in which the tracker jumped do not count. The window reaches at least one frame to
    either side, and is one-sided at the ends; NaN where the frame itself or all its neighbours are
    not measured.

    Args:
        positions: (T, D) [m].
        times: (T,) ascending [s].
        window: [s].
    """
    x, t = np.asarray(positions, np.float64), np.asarray(times, np.float64)
    out = np.full(x.shape, np.nan)
    measured = np.isfinite(x).all(axis=1)
    for k in np.flatnonzero(measured):
        near = np.abs(t - t[k]) <= window / 2 * (1 + 1e-9)
        near[max(k - 1, 0) : k + 2] = True
        rows = np.flatnonzero(near & measured)
        if len(rows) > 1:
            first, second = (rows[i] for i in np.triu_indices(len(rows), 1))
            out[k] = np.median((x[second] - x[first]) / (t[second] - t[first])[:, None], axis=0)
    return out


def momentum(mass: float, velocity: F8) -> F8:
    """Momentum p = m v, shape of ``velocity`` (..., D) [kg m/s]."""
    out: F8 = mass * np.asarray(velocity, np.float64)
    return out


def kinetic_energy(mass: float, velocity: F8) -> F8:
    """Kinetic energy E = m |v|^2 / 2 of translation, without spin (as the paper), (...) [J]."""
    out: F8 = 0.5 * mass * np.sum(np.asarray(velocity, np.float64) ** 2, axis=-1)
    return out


@dataclass(frozen=True)
class Quantity:
    """A mechanical quantity of one case.

    Attributes:
        name: what it is ("terminal momentum").
        body: whose it is.
        unit: SI unit.
        candidate: estimated value; NaN where it could not be measured.
        reference: the simulator's value.
        floor: magnitude of the reference [unit] below which a relative error says nothing.
    """

    name: str
    body: str
    unit: str
    candidate: float
    reference: float
    floor: float = 0.0


@dataclass(frozen=True)
class Score:
    """A number over a set of quantities.

    Attributes:
        value: the number; NaN when nothing was left to count.
        n: quantities counted.
        below_floor: quantities left out since the reference is below its floor (or is zero).
        unmeasured: quantities left out since the candidate's value is not finite.
    """

    value: float
    n: int
    below_floor: int
    unmeasured: int


def two_digits(value: float) -> float:
    """A number rounded to two significant digits (half to even on its shortest decimal form)."""
    return float(f"{value:.1e}") if math.isfinite(value) else value


def exact_match(quantities: Sequence[Quantity]) -> Score:
    """Share of quantities equal after rounding to two significant digits.

    WMEval, appendix Kinematics and Mechanics (ExactMatch). Unit %, range [0, 100], higher is
    better.
    Quantities below their floor are left out and counted, as in `error_rate`: bodies at rest would
    else decide the share. A value that could not be measured is left out and counted in
    ``unmeasured`` (ours): a mismatch would put a failure of measurement down to the candidate.
    """
    counted = [q for q in quantities if not _below(q)]
    measured = [q for q in counted if math.isfinite(q.candidate)]
    hits = [two_digits(q.candidate) == two_digits(q.reference) for q in measured]
    value = 100.0 * sum(hits) / len(hits) if hits else float("nan")
    return Score(value, len(hits), len(quantities) - len(counted), len(counted) - len(measured))


def _below(q: Quantity) -> bool:
    return abs(q.reference) < q.floor or q.reference == 0.0


def relative_errors(quantities: Sequence[Quantity]) -> tuple[list[float], int, int]:
    """|q^ - q| / |q| of what can be counted; counts of below-floor and unmeasured ones."""
    errors: list[float] = []
    below = unmeasured = 0
    for q in quantities:
        if _below(q):
            below += 1
        elif not math.isfinite(q.candidate):
            unmeasured += 1
        else:
            errors.append(abs(q.candidate - q.reference) / abs(q.reference))
    return errors, below, unmeasured


def error_rate(quantities: Sequence[Quantity]) -> Score:
    """ErrorRate = mean over quantities of |q^ - q| / |q|.

    WMEval, appendix Kinematics and Mechanics (average relative error). Unit %, range [0, inf),
    lower is better. Quantities with |q| below their floor are left out and counted, as are
    unmeasured ones.
    """
    errors, below, unmeasured = relative_errors(quantities)
    value = 100.0 * float(np.mean(errors)) if errors else float("nan")
    return Score(value, len(errors), below, unmeasured)


def robust_error(quantities: Sequence[Quantity]) -> Score:
    """Median over quantities of the relative error (our reading of Tables 4 and 16).

    Unit %, range [0, inf), lower is better. Left-outs as in `error_rate`; always beside it.
    """
    errors, below, unmeasured = relative_errors(quantities)
    value = 100.0 * float(np.median(errors)) if errors else float("nan")
    return Score(value, len(errors), below, unmeasured)
