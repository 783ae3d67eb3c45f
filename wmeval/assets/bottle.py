"""A sealed glass bottle with a ribbed cap: outlines of revolution and meshes.

The bottle's frame has its z axis along the axis of revolution, towards the cap; its origin lies on
the level to which the half-full upright bottle is filled. All numbers are ours: a 6.1 litre jar
whose slosh frequency (2.4 Hz) lies inside the sweep of the published chirp (0.3 to 3 Hz).
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.cavity import Cavity
from wmeval.assets.meshes import merge, revolve
from wmeval.scene import MeshData

F8 = NDArray[np.float64]
Profile = tuple[tuple[float, float], ...]

RADIUS = 0.08
"""Of the inner cylinder [m]."""
WALL = 0.004
BASE = 0.007
BODY_TOP = 0.272
"""Where the shoulder begins [m], counted from the foot."""
SHOULDER = 0.066
NECK = 0.024
"""Inner radius of the neck [m]."""
HEIGHT = 0.388
"""From the foot to the end of the neck [m]."""
CAP_RADIUS, CAP_LOW, CAP_HIGH = 0.0335, 0.356, 0.402


def _outline(radius: float, foot: float, neck: float, top: float, corner: float) -> Profile:
    """(radius, z from the foot): rounded bottom, cylinder, shoulder, neck, closed."""
    bend = np.linspace(0, math.pi / 2, 7)
    bottom = [
        (radius - corner + corner * math.sin(t), foot + corner - corner * math.cos(t)) for t in bend
    ]
    # The shoulder turns from upright to upright: a convex and a concave quarter of ellipses.
    width = radius - neck
    convex, concave = 0.68, 0.32
    upper = [
        (radius - convex * width * (1 - math.cos(t)), BODY_TOP + 0.62 * SHOULDER * math.sin(t))
        for t in np.linspace(0, 0.5 * math.pi, 9)[1:-1]
    ]
    lower = [
        (neck + concave * width * (1 - math.sin(t)), BODY_TOP + SHOULDER * (1 - 0.38 * math.cos(t)))
        for t in np.linspace(0.0, 0.5 * math.pi, 7)
    ]
    # A cavity's profile may not be level between its ends.
    line = [(0.0, foot), *bottom, (radius, BODY_TOP), *upper, *lower, (neck, top), (0.0, top)]
    return tuple((float(r), float(z)) for r, z in line)


@lru_cache(maxsize=1)
def level() -> float:
    """Height [m] of the bottle's origin, the half-full level, above its foot."""
    return Cavity.half_level(_outline(RADIUS, BASE, NECK, HEIGHT, 0.011))


@lru_cache(maxsize=1)
def inner_profile() -> Profile:
    """Inner wall as (radius, z) [m] in the bottle's frame, from the bottom to the stopper."""
    return tuple((r, z - level()) for r, z in _outline(RADIUS, BASE, NECK, HEIGHT, 0.011))


@lru_cache(maxsize=1)
def outer_profile() -> Profile:
    """Outer wall as (radius, z) [m] in the bottle's frame, from the foot to the neck's end."""
    line = _outline(RADIUS + WALL, 0.0, NECK + WALL, HEIGHT + 0.003, 0.012)
    return tuple((r, z - level()) for r, z in line)


@lru_cache(maxsize=1)
def cavity() -> Cavity:
    """The hollow of the bottle."""
    return Cavity(inner_profile())


@lru_cache(maxsize=1)
def glass_mesh() -> MeshData:
    """The outer wall."""
    return revolve(outer_profile(), 96)


@lru_cache(maxsize=1)
def cap_mesh() -> MeshData:
    """The screw cap: a ribbed wall, a rounded top and a plain band below."""
    low, high = CAP_LOW - level(), CAP_HIGH - level()
    ribs, steps = 44, 6
    turn = np.arange(ribs * steps + 1) * (2 * math.pi / (ribs * steps))
    depth = 0.0013 * (0.5 + 0.5 * np.cos(ribs * turn)) ** 2
    # Rings from the band's lower rim to the top's middle: (radius, z, share of the ribs).
    bend = np.linspace(0, math.pi / 2, 5)
    rounding = 0.005
    rings = [
        (NECK + WALL, low, 0.0),
        (CAP_RADIUS - 0.0006, low, 0.0),
        (CAP_RADIUS, low + 0.0006, 0.0),
        (CAP_RADIUS, low + 0.008, 0.0),
        (CAP_RADIUS - 0.0012, low + 0.0088, 0.0),
        (CAP_RADIUS - 0.0012, low + 0.0096, 1.0),
        (CAP_RADIUS - 0.0012, high - rounding, 1.0),
        *(
            (
                CAP_RADIUS - 0.0012 - rounding * (1 - math.cos(t)),
                high - rounding + rounding * math.sin(t),
                math.cos(t) ** 2,
            )
            for t in bend[1:]
        ),
        (0.0, high, 0.0),
    ]
    across = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    rows = [
        np.column_stack([across * (r - share * depth)[:, None], np.full(len(turn), z)])
        for r, z, share in rings
    ]
    parts = []
    for below, above in pairwise(rows):
        parts.append(_strip(below, above))
    return merge(parts)


def _strip(below: F8, above: F8) -> MeshData:
    """A ring of quads with one normal a corner, across the ribs but not along z: crisp edges."""
    count = len(below)
    corner = np.concatenate([below, above])
    i = np.arange(count - 1)
    triangles = np.concatenate(
        [
            np.stack([i, i + 1, i + count + 1], axis=1),
            np.stack([i, i + count + 1, i + count], axis=1),
        ]
    )
    along = np.roll(below[:-1], -1, axis=0) - np.roll(below[:-1], 1, axis=0)
    along = along + np.roll(above[:-1], -1, axis=0) - np.roll(above[:-1], 1, axis=0)
    normal = np.cross(along, above[:-1] - below[:-1])
    normal /= np.maximum(np.linalg.norm(normal, axis=1, keepdims=True), 1e-12)
    normal = np.concatenate([normal, normal[:1]])
    u = np.linspace(0, 1, count)
    uv = np.concatenate([np.stack([u, np.full(count, v)], axis=1) for v in (1.0, 0.0)])
    a, b, c = (corner[triangles[:, k]] for k in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    return MeshData(
        np.ascontiguousarray(corner, np.float32),
        np.ascontiguousarray(triangles[area > 1e-14], np.uint32),
        np.ascontiguousarray(np.concatenate([normal, normal]), np.float32),
        np.ascontiguousarray(uv, np.float32),
    )
