"""A seamless layer of soft clouds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.patterns import periodic_field


def cloud_layer(size: int) -> NDArray[np.uint8]:
    """Seamless (size, size, 2) uint8: density, and how brightly its upper side is lit."""
    rng = np.random.default_rng(7)
    body = periodic_field(size, rng, slope=1.75, low=2)
    wisps = periodic_field(size, rng, slope=1.15, low=6)
    density = body + 0.28 * wisps
    # Lit from one side: the density's slope across a short distance.
    lit = density - np.roll(density, (size // 40, size // 40), (0, 1))
    stack = np.stack([0.5 + 0.19 * density, 0.5 + 0.3 * lit / lit.std()], axis=-1)
    return np.asarray(np.rint(np.clip(stack, 0, 1) * 255), np.uint8)
