"""Exact rays at balls and boxes."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]


def cast_at_spheres(origins: F8, ways: F8, centres: F8, radius: float) -> tuple[F8, F8]:
    """Rays from outside at spheres.

    Args:
        origins: (N, 3) [m].
        ways: (N, 3) from origin to end [m].
        centres: (B, 3) [m].
        radius: [m].

    Returns:
        Fraction of the way to each sphere (N, B), infinite for a miss, and outward normals there
        (N, B, 3).
    """
    away = origins[:, None] - centres
    a = np.einsum("nk,nk->n", ways, ways)[:, None]
    half = np.einsum("nbk,nk->nb", away, ways)
    c = np.einsum("nbk,nbk->nb", away, away) - radius * radius
    square = half * half - a * c
    with np.errstate(invalid="ignore", divide="ignore"):
        t = c / (-half + np.sqrt(square))
    t = np.where((square >= 0) & (half < 0) & (c >= 0) & (t <= 1), t, np.inf)
    hit = np.where(np.isfinite(t), t, 0.0)
    normals = (away + ways[:, None] * hit[..., None]) / radius
    return t, normals


def cast_at_boxes(origins: F8, ways: F8, centres: F8, axes: F8, halves: F8) -> tuple[F8, F8]:
    """Rays from outside at boxes.

    Args:
        origins: (N, 3) [m].
        ways: (N, 3) from origin to end [m].
        centres: (B, 3) [m].
        axes: (B, 3, 3), rows are the boxes' axes in the world.
        halves: (B, 3) half extents [m].

    Returns:
        As `cast_at_spheres`.
    """
    local = np.einsum("bij,nbj->nbi", axes, origins[:, None] - centres)
    way = np.einsum("bij,nj->nbi", axes, ways)
    with np.errstate(invalid="ignore", divide="ignore"):
        one, two = (-halves - local) / way, (halves - local) / way
    # A ray along a face: inside for ever, or never.
    inside = np.abs(local) <= halves
    parallel = way == 0.0
    enter = np.where(parallel, np.where(inside, -np.inf, np.inf), np.minimum(one, two))
    leave = np.where(parallel, np.where(inside, np.inf, -np.inf), np.maximum(one, two))
    t, out = enter.max(axis=-1), leave.min(axis=-1)
    axis = enter.argmax(axis=-1)
    t = np.where((t <= out) & (t >= 0) & (t <= 1), t, np.inf)
    sign = -np.sign(np.take_along_axis(way, axis[..., None], -1)[..., 0])
    rows = np.take_along_axis(
        np.broadcast_to(axes, (*axis.shape, 3, 3)), axis[..., None, None], axis=2
    )[..., 0, :]
    return t, rows * sign[..., None]
