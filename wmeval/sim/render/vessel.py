"""What the glass shader needs to know of a vessel: distances to its walls, and the liquid in it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.liquid import MODES, SERIES
from wmeval.scene import Color, Vessel
from wmeval.sim.render.deform import HalfFull

F8 = NDArray[np.float64]

MAP_SIZE = (96, 384)
"""Texels of the map of distances, across and along the axis."""
MARGIN = 0.006
"""How far the map reaches beyond the outer wall [m]."""
SERIES_TERMS = 12
PATH_M = 0.13
"""Way through the liquid that tints white light with the texture's first colour."""


def _distance(profile: F8, rho: F8, z: F8) -> F8:
    """Distance [m] to a wall of revolution, negative outside."""
    a, b = profile[:-1], profile[1:]
    step = b - a
    length2 = (step**2).sum(axis=1)
    local = np.stack([rho, z], axis=-1)[..., None, :] - a
    share = np.clip((local * step).sum(axis=-1) / np.maximum(length2, 1e-30), 0, 1)
    away = np.linalg.norm(local - share[..., None] * step, axis=-1).min(axis=-1)
    radius = np.interp(z, profile[:, 1], profile[:, 0])
    inside = (rho < radius) & (z > profile[0, 1]) & (z < profile[-1, 1])
    return np.asarray(np.where(inside, away, -away))


def distance_map(vessel: Vessel) -> tuple[NDArray[np.float32], tuple[float, float, float]]:
    """Distances to the walls around the axis, (rows along z, columns across, 4).

    Returns:
        Distance to the inner wall (negative outside the cavity) [m], its gradient across and along,
        distance to the outer wall; and the map's width, lowest z and height [m].
    """
    inner, outer = np.array(vessel.surface.profile), np.array(vessel.outer)
    width = float(outer[:, 0].max()) + MARGIN
    low, high = float(outer[:, 1].min()) - MARGIN, float(outer[:, 1].max()) + MARGIN
    columns, rows = MAP_SIZE
    rho = np.broadcast_to((np.arange(columns) + 0.5) / columns * width, (rows, columns))
    z = np.broadcast_to((low + (np.arange(rows) + 0.5) / rows * (high - low))[:, None], rho.shape)
    out = np.empty((rows, columns, 4), np.float32)
    out[..., 0] = _distance(inner, rho, z)
    out[..., 3] = _distance(outer, rho, z)
    # Across a few texels, so that the facets of the profile do not show.
    soft = _blurred(out[..., 0].astype(np.float64))
    along, across = np.gradient(soft, (high - low) / rows, width / columns)
    size = np.maximum(np.hypot(across, along), 1e-6)
    out[..., 1], out[..., 2] = across / size, along / size
    return out, (width, low, high - low)


def _blurred(field: F8, reach: int = 5) -> F8:
    import cv2

    return np.asarray(cv2.GaussianBlur(field, (2 * reach + 1, 2 * reach + 1), reach / 2.5))


def uniforms(deformer: HalfFull, values: F8, tint: Color, ior: float) -> dict[str, Any]:
    """Values of the shader's uniforms for a state of the liquid."""
    surface = deformer.surface(values)
    u, v = surface.axes
    a, b = surface.half
    level = float(surface.centre @ surface.up) + surface.level
    slopes = [(float(s @ u) * a, float(s @ v) * b) for s in surface.slopes]
    absorb = -np.log(np.clip(np.array(tint), 1e-3, 0.999)) / PATH_M
    return {
        "up_level": (*surface.up.tolist(), level),
        "middle": tuple(surface.centre.tolist()),
        "along": tuple((u / a).tolist()),
        "across": tuple((v / b).tolist()),
        "half_axes": (a, b),
        "slopes": slopes[:MODES],
        "cylinder": (surface.cavity.radius, *surface.cavity.cylinder),
        "liquid": (*absorb.tolist(), ior),
        "series": [tuple(pair) for pair in SERIES[:, :SERIES_TERMS].T.tolist()],
    }
