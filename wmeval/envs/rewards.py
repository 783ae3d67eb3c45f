"""Task rewards that several scenes share, as small machines over positions."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


class Displaced:
    """Fraction of balls that have newly moved away from where they started.

    Args:
        start: centres at t = 0 (n, 3) [m]; n may be 0.
        distance: a ball counts once its centre is farther than this [m] from its start.
    """

    def __init__(self, start: NDArray[np.float64], distance: float) -> None:
        self._start = np.array(start)
        self._distance = distance
        self._moved = np.zeros(len(start), bool)
        self.newly = 0.0

    def feed(self, position: NDArray[np.float64]) -> None:
        """The next state's centres (n, 3) [m]; ``newly`` is the fraction that just moved."""
        away = np.linalg.norm(position - self._start, axis=1) > self._distance
        fresh = away & ~self._moved
        self._moved = self._moved | away
        self.newly = float(fresh.sum()) / max(len(fresh), 1)
