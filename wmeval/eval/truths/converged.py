"""Convergence as truth where there is no closed form: in the step, in resolution, over engines."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from wmeval.errors import UserError

F8 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Convergence:
    """What a refinement says.

    Attributes:
        order: observed order p of |v(h) - v(0)| ~ h^p; NaN where the differences do not shrink.
        limit: Richardson's estimate of v(0), shape of one value; NaN likewise.
        error: estimated distance of the finest value from it, unit of the values.
        differences: distances between neighbours, from the coarsest.
        converging: whether each difference is smaller than the one before.
    """

    order: float
    limit: F8
    error: float
    differences: tuple[float, ...]
    converging: bool


def self_convergence(steps: Sequence[float], values: Sequence[F8 | float]) -> Convergence:
    """Observed order and limit from the three finest of K refinements (Richardson, Roache).

    Distances are root mean squares over all components, so that trajectories serve as well as
    numbers. Chaotic motion does not converge: that is what ``converging`` tells.

    Args:
        steps: step or cell sizes, strictly descending, three or more.
        values: a number, or an array of one shape, for each.

    Raises:
        UserError: fewer than three, of different shapes, or steps that do not descend.
    """
    h = [float(x) for x in steps]
    v = [np.asarray(x, np.float64) for x in values]
    if len(h) < 3 or len(h) != len(v) or any(b >= a or b <= 0 for a, b in pairwise(h)):
        raise UserError("self-convergence needs three or more descending steps, a value for each")
    if len({x.shape for x in v}) != 1:
        raise UserError("self-convergence: values differ in shape: record at the same times")
    differences = tuple(_distance(a, b) for a, b in pairwise(v))
    shrinking = all(b < a for a, b in pairwise(differences))
    coarse, fine = differences[-2:]
    nothing = np.full_like(v[-1], np.nan)
    if fine == 0:
        return Convergence(math.inf, v[-1], 0.0, differences, coarse >= 0)
    if not fine < coarse:
        return Convergence(math.nan, nothing, math.nan, differences, False)
    a, b, c = h[-3:]

    def off(p: float) -> float:
        return float((a**p - b**p) / (b**p - c**p) - coarse / fine)

    low, high = 1e-3, 20.0
    if off(low) * off(high) > 0:
        return Convergence(math.nan, nothing, math.nan, differences, False)
    order = float(brentq(off, low, high))
    share = c**order / (b**order - c**order)
    limit = v[-1] + (v[-1] - v[-2]) * share
    return Convergence(order, limit, _distance(limit, v[-1]), differences, shrinking)


def _distance(a: F8, b: F8) -> float:
    return float(np.sqrt(np.mean((a - b) ** 2)))


@dataclass(frozen=True)
class Spread:
    """How far engines are from one another.

    Attributes:
        pairs: root mean square distance of each pair, unit of the values.
        largest: the largest of them, and ``between`` whom.
    """

    pairs: Mapping[tuple[str, str], float]
    largest: float
    between: tuple[str, str]


def engine_spread(values: Mapping[str, F8]) -> Spread:
    """Distances between engines' values of one shape.

    Raises:
        UserError: fewer than two engines, or values of different shapes.
    """
    if len(values) < 2 or len({np.shape(v) for v in values.values()}) != 1:
        raise UserError("a spread needs two or more engines with values of one shape")
    pairs = {
        (a, b): _distance(np.asarray(values[a]), np.asarray(values[b]))
        for a, b in combinations(values, 2)
    }
    worst = max(pairs, key=lambda pair: pairs[pair])
    return Spread(pairs, pairs[worst], worst)


def greatest_rise(energies: F8) -> float:
    """Largest rise of an energy above any earlier value [unit of the input]; 0 where none rises.

    Passive systems at rest drives: energy never rises.
    """
    e = np.asarray(energies, np.float64)
    return float(np.max(e - np.minimum.accumulate(e)))
