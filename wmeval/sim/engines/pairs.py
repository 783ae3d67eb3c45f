"""Products of pairs for engines that combine friction and restitution by the mean."""

from __future__ import annotations

import importlib
from collections import Counter
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.scene import Scene

TOLERANCE = 1e-3


def mean_values(scene: Scene, what: str, greatest: float) -> dict[int, float]:
    """A value for each body so that the MEAN of two is the product that the scene asks for.

    Only pairs that can touch count: two bodies of which one may move.

    Args:
        scene: the world.
        what: "friction" or "restitution".
        greatest: largest value that an engine takes.

    Returns:
        Value by scene index of every body that collides, in [0, greatest].

    Raises:
        UserError: no such values exist; the message names the worst pair.
    """
    bodies = [(i, b) for i, b in enumerate(scene.bodies) if b.collision]
    kinds = [(b.mass > 0, float(getattr(b, what))) for _, b in bodies]
    count = Counter(kinds)
    groups = sorted(count)
    number = {group: k for k, group in enumerate(groups)}
    rows, wanted = [], []
    for a, b in combinations_with_replacement(groups, 2):
        if not (a[0] or b[0]) or (a == b and count[a] < 2):
            continue
        row = np.zeros(len(groups))
        row[number[a]] += 0.5
        row[number[b]] += 0.5
        rows.append(row)
        wanted.append(a[1] * b[1])
    values = _bounded(np.array(rows), np.array(wanted), greatest) if rows else np.zeros(len(groups))
    if rows:
        off = np.abs(np.array(rows) @ values - np.array(wanted))
        worst = int(np.argmax(off))
        if off[worst] > TOLERANCE:
            pair = np.flatnonzero(rows[worst])
            a, b = (groups[k] for k in (pair[0], pair[-1]))
            raise UserError(
                f"this engine takes the mean of two bodies' {what}, and no values of its own give "
                f"all the products that scene {scene.name!r} asks for ({a[1]:g} with {b[1]:g} "
                f"would be off by {off[worst]:.3g}): give the bodies that touch values that agree"
            )
    return {i: float(values[number[k]]) for (i, _), k in zip(bodies, kinds, strict=True)}


def _bounded(
    rows: NDArray[np.float64], wanted: NDArray[np.float64], greatest: float
) -> NDArray[np.float64]:
    """Least squares within [0, greatest]."""
    optimize = importlib.import_module("scipy.optimize")
    found = optimize.lsq_linear(rows, wanted, bounds=(0.0, greatest), method="bvls", tol=1e-14)
    return np.asarray(np.clip(found.x, 0.0, greatest))
