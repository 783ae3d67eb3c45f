"""Products of pairs for engines that combine friction and restitution by another rule.

Friction and restitution of a pair are the product of the two bodies' values everywhere here. An
engine that takes the mean, the greater, the smaller or the geometric mean gets values of its own
for the bodies, such that its rule gives those products, or the scene is refused.
"""

from __future__ import annotations

import importlib
import math
from collections import Counter
from collections.abc import Callable
from itertools import combinations_with_replacement
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.scene import Scene

Rule = Literal["mean", "max", "min", "geometric"]
Group = tuple[bool, float]
"""Bodies of one kind: whether they may move, and their value."""

TOLERANCE = 1e-3

_RULES: dict[str, tuple[str, Callable[[float, float], float]]] = {
    "mean": ("the mean of", lambda a, b: (a + b) / 2),
    "max": ("the greater of", max),
    "min": ("the smaller of", min),
    "geometric": ("the geometric mean of", lambda a, b: math.sqrt(a * b)),
}


def own_values(scene: Scene, what: str, rule: Rule, greatest: float) -> dict[int, float]:
    """A value for each body so that an engine's rule gives the products that the scene asks for.

    Only pairs that can touch count: two bodies of which one may move.

    Args:
        scene: the world.
        what: "friction" or "restitution".
        rule: how the engine combines two bodies' values.
        greatest: largest value that the engine takes.

    Returns:
        Value by scene index of every body that collides, in [0, greatest].

    Raises:
        UserError: no such values exist; the message names the worst pair.
    """
    bodies = [(i, b) for i, b in enumerate(scene.bodies) if b.collision]
    kinds = [(b.mass > 0, float(getattr(b, what))) for _, b in bodies]
    count = Counter(kinds)
    pairs = [
        (a, b)
        for a, b in combinations_with_replacement(sorted(count), 2)
        if (a[0] or b[0]) and (a != b or count[a] > 1)
    ]
    values = _found(sorted(count), pairs, rule, greatest)
    said, combined = _RULES[rule]
    off = [abs(combined(values[a], values[b]) - a[1] * b[1]) for a, b in pairs]
    if off and max(off) > TOLERANCE:
        a, b = pairs[int(np.argmax(off))]
        raise UserError(
            f"this engine takes {said} two bodies' {what}, and no values of its own give all the "
            f"products that scene {scene.name!r} asks for ({a[1]:g} with {b[1]:g} would be off by "
            f"{max(off):.3g}): give the bodies that touch values that agree"
        )
    return {i: values[kind] for (i, _), kind in zip(bodies, kinds, strict=True)}


def _found(
    groups: list[Group], pairs: list[tuple[Group, Group]], rule: Rule, greatest: float
) -> dict[Group, float]:
    if rule == "geometric":
        return {g: min(g[1] ** 2, greatest) for g in groups}
    if rule == "mean":
        return _means(groups, pairs, greatest)
    # The greater of two is the product of every pair if each has the least of its products; and
    # the smaller likewise.
    pick = min if rule == "max" else max
    products: dict[Group, list[float]] = {g: [] for g in groups}
    for a, b in pairs:
        for g in {a, b}:
            products[g].append(a[1] * b[1])
    return {g: min(pick(products[g], default=0.0), greatest) for g in groups}


def _means(
    groups: list[Group], pairs: list[tuple[Group, Group]], greatest: float
) -> dict[Group, float]:
    """Least squares within [0, greatest]."""
    if not pairs:
        return dict.fromkeys(groups, 0.0)
    number = {group: k for k, group in enumerate(groups)}
    rows: NDArray[np.float64] = np.zeros((len(pairs), len(groups)))
    for row, pair in zip(rows, pairs, strict=True):
        for group in pair:
            row[number[group]] += 0.5
    wanted = np.array([a[1] * b[1] for a, b in pairs])
    optimize = importlib.import_module("scipy.optimize")
    found = optimize.lsq_linear(rows, wanted, bounds=(0.0, greatest), method="bvls", tol=1e-14)
    return {g: float(np.clip(found.x[number[g]], 0.0, greatest)) for g in groups}
