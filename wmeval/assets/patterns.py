"""What textures are made of: fields, cells, steps, blends.

A picture is linear (3, size, size) float32; weights and fields are (size, size).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wmeval.scene import Color

F4 = NDArray[np.float32]
Rng = np.random.Generator


def texels(size: int) -> tuple[F4, F4]:
    """Texel centres u (columns) and v (rows) in [0, 1), each (size, size)."""
    axis = ((np.arange(size) + 0.5) / size).astype(np.float32)
    u, v = np.meshgrid(axis, axis)
    return u, v


def periodic_field(
    size: int, rng: Rng, *, slope: float = 1.6, low: float = 1.0, stretch: float = 1.0
) -> F4:
    """Periodic random field (size, size), zero mean, unit standard deviation.

    Spectral synthesis: amplitude ``f ** -slope`` above ``low`` cycles per tile; ``stretch`` > 1
    draws the grain out along u. Grain finer than the texels is none: zero throughout.
    """
    import cv2

    noise = rng.standard_normal((size, size)).astype(np.float32)
    packed = np.asarray(cv2.dft(noise), np.float32) * _amplitude(size, slope, low, stretch)
    field = cv2.idft(packed, flags=cv2.DFT_REAL_OUTPUT)
    spread = field.std()
    return np.asarray(field / (spread if spread > 0 else 1), np.float32)  # its mean is left out


@lru_cache(maxsize=64)
def _amplitude(size: int, slope: float, low: float, stretch: float) -> F4:
    """Amplitude of each frequency of `periodic_field`, packed as OpenCV packs a real spectrum.

    Real and imaginary parts lie side by side; where all is real (the first column and, of an even
    size, the last), those of the column's own spectrum lie below each other.
    """
    pairs = (np.arange(size) + 1) // 2
    fx = np.broadcast_to(pairs, (size, size))
    fy = np.broadcast_to(np.abs(np.fft.fftfreq(size, 1 / size))[:, None], (size, size)).copy()
    fy[:, 0] = pairs
    if size % 2 == 0:
        fy[:, -1] = pairs
    f = np.hypot(fx * stretch, fy)
    out = np.where(f >= low, np.maximum(f, 1e-9) ** -slope, 0.0)
    out[0, 0] = 0.0
    return np.asarray(out, np.float32)


def cells(size: int, count: int, rng: Rng, *, jitter: float = 0.9) -> tuple[F4, NDArray[np.int32]]:
    """Periodic cells: distance to the nearest of ``count``^2 seeds (in cell widths), and its id."""
    u, v = texels(size)
    x, y = u * count, v * count
    ix, iy = np.floor(x[0]).astype(np.int32), np.floor(y[:, 0]).astype(np.int32)
    offset = (0.5 + jitter * (rng.random((count, count, 2)) - 0.5)).astype(np.float32)
    offset = np.ascontiguousarray(np.moveaxis(offset, -1, 0))
    best = np.full((size, size), 81.0, np.float32)
    which = np.zeros((size, size), np.int32)
    for dy in (-1, 0, 1):
        row = (iy + dy) % count
        for dx in (-1, 0, 1):
            column = (ix + dx) % count
            u0, v0 = (offset[k].take(row, axis=0).take(column, axis=1) for k in (0, 1))
            d = np.square(x - (ix + dx) - u0)
            d += np.square(y - (iy + dy)[:, None] - v0)
            near = d < best
            np.minimum(best, d, out=best)
            np.copyto(which, row[:, None] * np.int32(count) + column, where=near)
    return np.sqrt(best), which


def step(edge0: float, edge1: float, x: F4) -> F4:
    """Hermite step from 0 at ``edge0`` to 1 at ``edge1``."""
    t = np.clip((x - edge0) / (edge1 - edge0), 0, 1)
    return np.asarray(t * t * (3 - 2 * t), np.float32)


def mix(a: F4, b: F4, t: F4) -> F4:
    """Blend of (3, size, size) or (3, 1, 1) colours by (size, size) weights."""
    return np.asarray(a + (b - a) * t, np.float32)


def color_of(colors: tuple[Color, ...], index: int, *, fallback: float = 0.7) -> F4:
    """Colour ``index``; a missing one is colour 0 times ``fallback`` (towards white above 1)."""
    if index < len(colors):
        return np.array(colors[index], np.float32)
    base = np.array(colors[0], np.float32)
    if fallback > 1:
        return np.asarray(base + (1 - base) * (fallback - 1), np.float32)
    return np.asarray(base * fallback, np.float32)


def flat(color: F4) -> F4:
    """A colour (3,) as (3, 1, 1), to be blended."""
    return color[:, None, None]


def shade(rgb: F4, *factors: F4) -> F4:
    """Colour times (1 + each factor)."""
    total = 1 + factors[0]
    for factor in factors[1:]:
        total = total * (1 + factor)
    return np.asarray(rgb * total, np.float32)


def mottle(size: int, rng: Rng, coarse: float = 0.05, fine: float = 0.05) -> F4:
    """Relative brightness variation at all scales, for any surface."""
    broad = periodic_field(size, rng, slope=1.5)
    grain = periodic_field(size, rng, slope=0.6, low=24)
    return np.asarray(coarse * broad + fine * grain, np.float32)
