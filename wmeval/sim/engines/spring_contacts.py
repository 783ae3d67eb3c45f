"""Restitution of contacts that are a spring and a damper, and the damping that gives it.

A body that meets such a contact leaves it when the force that pushes it out has fallen to zero,
which with a damper is before it is back where it came in. With the damping ratio z the speed that
is left is then (Schwager and Poeschel 2007, eqs. 20 and 23)

    e = exp(-z / sqrt(1 - z^2) (pi - atan2(2 z sqrt(1 - z^2), 1 - 2 z^2)))         z < 1
    e = exp(-z / sqrt(z^2 - 1) log((z + sqrt(z^2 - 1)) / (z - sqrt(z^2 - 1))))     z > 1

and exp(-2) at z = 1: whatever the stiffness, mass and speed.
"""

from __future__ import annotations

import math

LEAST = 1e-3
"""Least restitution that a damping ratio is looked for."""
_HALVINGS = 60


def restitution(ratio: float) -> float:
    """Speed after over speed before.

    Args:
        ratio: damping over the critical one, 0 or more.
    """
    if abs(ratio - 1.0) < 1e-9:
        return math.exp(-2.0)
    root = math.sqrt(abs(1.0 - ratio * ratio))
    if ratio < 1.0:
        phase = math.pi - math.atan2(2 * ratio * root, 1 - 2 * ratio * ratio)
        return math.exp(-ratio / root * phase)
    # (z + r) / (z - r) as (z + r)^2: they multiply to one, and the difference would lose digits.
    return math.exp(-ratio / root * 2 * math.log(ratio + root))


def damping_ratio(wanted: float) -> float:
    """The damping ratio that gives a restitution, by halving.

    Args:
        wanted: 0 to 1; below `LEAST` as `LEAST`.
    """
    wanted = max(wanted, LEAST)
    low, high = 0.0, 1.0
    while restitution(high) > wanted:
        high *= 2
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        if restitution(middle) > wanted:
            low = middle
        else:
            high = middle
    return (low + high) / 2
