"""Contacts of Genesis that have the restitution of their pairs.

Genesis takes the mean of the two bodies' time constants and of their damping ratios. So bodies get
numbers whose means are what each pair needs, as nearly as there are such numbers: exactly where one
kind of body meets one other.
"""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np
from numpy.typing import NDArray

from wmeval.scene import Scene
from wmeval.sim.engines.spring_contacts import damping_ratio

Kind = tuple[bool, float]
"""Whether bodies of a kind move, and their restitution."""

LEAST_DAMPING = 1e-3
_GREATEST_DAMPING, _GREATEST_TIME = 100.0, 10.0


def contact_numbers(scene: Scene, springs: float) -> dict[int, tuple[float, float]]:
    """Time constant [s] and damping ratio of each body that collides, by scene index.

    Args:
        scene: whose restitutions multiply to a pair's.
        springs: one over the angular frequency of every contact [s].
    """
    bodies = [(i, b) for i, b in enumerate(scene.bodies) if b.collision]
    kinds = [(b.mass > 0, float(b.restitution)) for _, b in bodies]
    count = Counter(kinds)
    groups = sorted(count)
    pairs = [
        (a, b)
        for a, b in combinations_with_replacement(groups, 2)
        if (a[0] or b[0]) and (a != b or count[a] > 1)
    ]
    ratios = np.array([max(damping_ratio(a[1] * b[1]), LEAST_DAMPING) for a, b in pairs])
    # The time in which the damping alone would act is what Genesis, as MuJoCo, takes.
    damping = _means(groups, pairs, ratios, LEAST_DAMPING, _GREATEST_DAMPING)
    times = _means(groups, pairs, springs / ratios, springs / _GREATEST_DAMPING, _GREATEST_TIME)
    return {i: (times[kind], damping[kind]) for (i, _), kind in zip(bodies, kinds, strict=True)}


def _means(
    groups: Sequence[Kind],
    pairs: Sequence[tuple[Kind, Kind]],
    wanted: NDArray[np.float64],
    least: float,
    greatest: float,
) -> dict[Kind, float]:
    """Values of kinds whose means are those of pairs, by relative least squares within bounds."""
    if not pairs:
        return dict.fromkeys(groups, least)
    number = {group: k for k, group in enumerate(groups)}
    rows: NDArray[np.float64] = np.zeros((len(pairs), len(groups)))
    for row, pair in zip(rows, pairs, strict=True):
        for group in pair:
            row[number[group]] += 0.5
    wanted = np.minimum(wanted, greatest)
    optimize = importlib.import_module("scipy.optimize")
    found = optimize.lsq_linear(
        rows / wanted[:, None], np.ones(len(pairs)), bounds=(least, greatest), tol=1e-12
    )
    return {g: float(np.clip(found.x[number[g]], least, greatest)) for g in groups}
