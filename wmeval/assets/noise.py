"""Random fields in space: the same grain on a thing's surface whatever its texture coordinates.

A field that is looked up by place has no seam where texture coordinates wrap and no pinch at poles.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

F4 = NDArray[np.float32]

_LATTICE = 32


def solid_noise(
    points: NDArray[Any],
    rng: np.random.Generator,
    *,
    frequency: float,
    octaves: int = 1,
    gain: float = 0.5,
) -> F4:
    """Value noise over a random lattice, blended by quintics (Perlin 2002), octaves added up.

    Args:
        points: (3, ...) places; the field repeats after 32 lattice cells.
        rng: where the lattice comes from.
        frequency: lattice cells per unit of length in the first octave; doubled in each further.
        octaves: how many.
        gain: amplitude of each octave relative to the one before.

    Returns:
        (...) of about zero mean and unit standard deviation.
    """
    shape = points.shape[1:]
    p = np.ascontiguousarray(points.reshape(3, -1), np.float32)
    total = np.zeros(p.shape[1], np.float32)
    power = 0.0
    for octave in range(octaves):
        lattice = rng.standard_normal(_LATTICE**3).astype(np.float32)
        # Shifted, so that the nodes of the octaves do not lie on top of each other.
        shift = rng.uniform(0, _LATTICE, (3, 1)).astype(np.float32)
        amplitude = gain**octave
        total += np.float32(amplitude) * _sample(lattice, p * np.float32(frequency) + shift)
        power += amplitude**2
        frequency *= 2
    # Blending eight values of variance 1 leaves about 0.35 of it.
    return np.asarray(total / np.float32((0.35 * power) ** 0.5), np.float32).reshape(shape)


def _sample(lattice: F4, q: F4) -> F4:
    """The lattice at places (3, N) in cells."""
    floor = np.floor(q)
    t = q - floor
    t = t * t * t * (t * (t * 6 - 15) + 10)
    low = floor.astype(np.int32) & (_LATTICE - 1)
    high = (low + 1) & (_LATTICE - 1)
    x = (low[0] * _LATTICE**2, high[0] * _LATTICE**2)
    y = (low[1] * _LATTICE, high[1] * _LATTICE)
    z = (low[2], high[2])

    def along_z(a: NDArray[np.int32]) -> F4:
        first = lattice[a + z[0]]
        return np.asarray(first + t[2] * (lattice[a + z[1]] - first), np.float32)

    def along_y(a: NDArray[np.int32]) -> F4:
        first = along_z(a + y[0])
        return np.asarray(first + t[1] * (along_z(a + y[1]) - first), np.float32)

    first = along_y(x[0])
    return np.asarray(first + t[0] * (along_y(x[1]) - first), np.float32)
