"""The least of a loss that has no derivative, within bounds, reproducibly.

Losses over chaotic motions are rough: differential evolution (Storn and Price 1997) looks over all
of the box, the simplex of Nelder and Mead (1965) then about its best, both by scipy.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError

F8 = NDArray[np.float64]

OPTIMIZER = "differential evolution, then Nelder and Mead"
_LOOKING = 0.65
"""Share of the evaluations that the first has."""
_MEMBERS = 5
"""Of its population, for every parameter."""


@dataclass(frozen=True)
class Parameter:
    """What is looked for.

    Attributes:
        name: of it.
        start: a first guess.
        low, high: bounds.
        log: even ratios, not differences, are alike.
    """

    name: str
    start: float
    low: float
    high: float
    log: bool = False

    def value(self, share: float) -> float:
        """Its value at a share in [0, 1] of the way from low to high."""
        share = min(max(share, 0.0), 1.0)
        if self.log:
            return float(self.low * (self.high / self.low) ** share)
        return self.low + share * (self.high - self.low)

    def share(self, value: float) -> float:
        """The other way round."""
        if self.log:
            return math.log(value / self.low) / math.log(self.high / self.low)
        return (value - self.low) / (self.high - self.low)


@dataclass(frozen=True)
class Found:
    """The best that was met.

    Attributes:
        values: by name.
        before, after: the loss at the start and there.
        evaluations: of the loss.
    """

    values: Mapping[str, float]
    before: float
    after: float
    evaluations: int

    @property
    def improved(self) -> bool:
        """It is better than the start."""
        return self.after < self.before


class _SpentError(Exception):
    """All evaluations are used."""


def search(
    loss: Callable[[dict[str, float]], float],
    parameters: Sequence[Parameter],
    *,
    evaluations: int,
    seed: int = 0,
    told: Callable[[int, dict[str, float], float], None] | None = None,
) -> Found:
    """Look for the parameters of the least loss.

    The same loss, parameters, evaluations and seed give the same answer.

    Args:
        loss: of values by name; one that is not finite counts as the worst.
        parameters: what is looked for.
        evaluations: how many at most.
        seed: of the first population and its mixing.
        told: after each: how many, where, the loss.

    Raises:
        UserError: too few evaluations, or the loss is not finite at the start.
    """
    size = len(parameters)
    members = _MEMBERS * size
    if evaluations < 2 * members:
        what = "1 parameter ({}) wants" if size == 1 else f"{size} parameters ({{}}) want"
        names = ", ".join(p.name for p in parameters)
        raise UserError(f"--evaluations {evaluations}: {what.format(names)} {2 * members} or more")
    for p in parameters:
        if not p.low <= p.start <= p.high or not p.low < p.high or (p.log and p.low <= 0):
            raise UserError(f"{p.name}: {p.start:g} is not within {p.low:g} to {p.high:g}")
    best: tuple[float, dict[str, float]] = (math.inf, {})
    before = math.nan
    count = 0
    known: dict[bytes, float] = {}

    def asked(shares: F8) -> float:
        nonlocal best, before, count
        key = shares.tobytes()
        if key in known:
            return known[key]
        if count >= evaluations:
            raise _SpentError
        values = {p.name: p.value(float(x)) for p, x in zip(parameters, shares, strict=True)}
        found = float(loss(values))
        count += 1
        if count == 1:
            before = found
        if found < best[0]:
            best = (found, values)
        if told is not None:
            told(count, values, found)
        known[key] = found if math.isfinite(found) else 1e300
        return known[key]

    first = np.array([p.share(p.start) for p in parameters])
    random = np.random.Generator(np.random.PCG64(seed))
    optimize = importlib.import_module("scipy.optimize")
    try:
        asked(first)
        if not math.isfinite(before):
            raise UserError("the loss is not finite at the start: nothing can be fitted from there")
        population = _latin(random, members, size)
        population[0] = first
        generations = max(1, round(_LOOKING * evaluations / members) - 1)
        looked = optimize.differential_evolution(
            asked, [(0.0, 1.0)] * size, init=population, maxiter=generations, tol=0.0, atol=0.0,
            polish=False, rng=random,
        )  # fmt: skip
        at = np.asarray(looked.x)
        simplex = np.vstack([at, *(at + step * row for step, row in _edges(at))])
        optimize.minimize(
            asked, at, method="Nelder-Mead", bounds=[(0.0, 1.0)] * size,
            options={"initial_simplex": simplex, "maxfev": evaluations, "xatol": 1e-4,
                     "fatol": 0.0},
        )  # fmt: skip
    except _SpentError:
        pass
    return Found(best[1], before, best[0], count)


def _latin(random: np.random.Generator, members: int, size: int) -> F8:
    """A Latin hypercube (members, size) in [0, 1]."""
    rows = np.stack([random.permutation(members) for _ in range(size)], axis=1)
    out: F8 = (rows + random.random((members, size))) / members
    return out


def _edges(at: F8, length: float = 0.08) -> list[tuple[float, F8]]:
    """A step along each axis that stays within the box."""
    rows = np.eye(len(at))
    return [(length if x < 0.5 else -length, row) for x, row in zip(at, rows, strict=True)]
