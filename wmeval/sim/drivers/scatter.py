"""Random numbers that are a function of counters: nothing is drawn in any order."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]
U8 = NDArray[np.uint64]


def scattered(seed: int, a: U8, b: U8, channels: int) -> F8:
    """Uniform numbers in [0, 1) for pairs of counters: the same pair gives the same numbers.

    The finaliser of SplitMix64 (Steele, Lea & Flood 2014), twice over a mix of the keys.

    Args:
        seed: of all.
        a: (N,) first counters.
        b: (N,) second counters.
        channels: how many numbers for each pair.

    Returns:
        (channels, N).
    """
    with np.errstate(over="ignore"):
        rows = np.arange(channels, dtype=np.uint64)[:, None] * np.uint64(0xD1B54A32D192ED03)
        key = np.uint64(seed % 2**64) * np.uint64(0x9E3779B97F4A7C15)
        z = a * np.uint64(0xBF58476D1CE4E5B9) + b * np.uint64(0x94D049BB133111EB) + (rows + key)
        for _ in range(2):
            z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            z = z ^ (z >> np.uint64(31))
    return np.asarray((z >> np.uint64(11)).astype(np.float64) * 2.0**-53)
