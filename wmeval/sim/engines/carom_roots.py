"""First contact as a root of a polynomial in time, found without missing or repeating one.

The gap between two balls whose positions are quadratic in time has the sign of a quartic; that
between a ball and a cushion is a quadratic. Between the roots of its derivative a polynomial is
monotone, so the roots of a quartic are bracketed by those of its cubic derivative, those by the
roots of the second derivative, and so on down to a line. Each bracket holds one root, which
bisection with Newton steps narrows to neighbouring floats: no companion matrix, no starting guess,
no step, and a grazing hit is found whenever the polynomial dips to zero in float64.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

TOUCHING = 1e-11
"""Gap [m] up to which two bodies touch."""
RESTING = 1e-7
"""Approach speed [m/s] below which bodies that touch rest against each other."""
_RISE = 1e-13
"""Gap [m] that is no rounding: a pair that has gained it has parted."""


def value(c: Sequence[float], t: float) -> float:
    """``c[0] + c[1] t + c[2] t^2 + ...``."""
    total = 0.0
    for x in reversed(c):
        total = total * t + x
    return total


def derivative(c: Sequence[float]) -> list[float]:
    """Coefficients of the derivative, lowest first."""
    return [i * c[i] for i in range(1, len(c))]


def crossings(c: Sequence[float], low: float, high: float) -> list[float]:
    """All points of (low, high) at which a polynomial changes sign, in order.

    Args:
        c: coefficients, lowest first.
        low: lower end.
        high: upper end.
    """
    while len(c) > 1 and c[-1] == 0.0:
        c = c[:-1]
    if len(c) < 2:
        return []
    if len(c) == 2:
        root = -c[0] / c[1]
        return [root] if low < root < high else []
    nodes = [low, *crossings(derivative(c), low, high), high]
    found: list[float] = []
    before = value(c, low)
    for a, b in pairwise(nodes):
        after = value(c, b)
        if (before < 0.0 < after) or (before > 0.0 > after):
            found.append(bracketed(c, a, b))
        elif after == 0.0 and b < high:
            found.append(b)
        before = after
    return found


def bracketed(c: Sequence[float], low: float, high: float, level: float = 0.0) -> float:
    """The root of ``c(t) = level`` in a bracket on which c is monotone, to neighbouring floats.

    Returns:
        The end of the last bracket on the side of ``high``.
    """
    c = [c[0] - level, *c[1:]]
    slope = derivative(c)
    rising = value(c, high) > value(c, low)
    t = 0.5 * (low + high)
    count = 0
    while low < t < high:
        f = value(c, t)
        if (f > 0.0) == rising and f != 0.0:
            high = t
        else:
            low = t
        # A Newton step, a little too long so that it closes the bracket from the other side;
        # where it leaves the bracket, a bisection.
        count += 1
        g = value(slope, t)
        step = t - f / g if g != 0.0 and count < 60 else low
        step += 4e-16 * abs(t) if step > t else -4e-16 * abs(t)
        t = step if low < step < high else 0.5 * (low + high)
    return high


def first_contact(c: Sequence[float], horizon: float) -> float | None:
    """When a gap that is not negative at t = 0 next closes.

    A pair that touches at t = 0 (gap within `TOUCHING`) meets at once when it approaches faster
    than `RESTING`. Otherwise it has just been resolved, or rests: it meets again when it has parted
    and comes back, or when it overlaps by `TOUCHING` more than it does now.

    Args:
        c: coefficients of the gap [m], lowest first: any polynomial in time [s] that equals the
            gap to first order where it vanishes.
        horizon: look no further [s].

    Returns:
        A time in [0, horizon], or None.
    """
    start = c[0]
    apart = start > TOUCHING
    if not apart and len(c) > 1 and c[1] < -RESTING:
        return 0.0
    level = 0.0 if apart else min(start, 0.0) - TOUCHING
    before, a = start, 0.0
    for b in (*crossings(derivative(c), 0.0, horizon), horizon):
        after = value(c, b)
        if after <= level < before:
            return bracketed(c, a, b, level)
        if not apart and after > start + _RISE:
            level = min(start, 0.0)
        if after > TOUCHING:
            apart, level = True, 0.0
        before, a = after, b
    return None
