"""Boxes, many of them: what furniture is mostly made of."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from wmeval.assets.meshes import box
from wmeval.assets.solids import Point, moved
from wmeval.scene import MeshData

_box = lru_cache(maxsize=512)(box)


def slab(half: Point, bevel: float, *, at: Point = (0.0, 0.0, 0.0), steps: int = 2) -> MeshData:
    """As `wmeval.assets.solids.slab`, but equal boxes are made once."""
    if bevel > 0:
        return moved(_box(half, bevel, steps), *at)
    unit = _box((1.0, 1.0, 1.0), 0.0, 1)
    vertices = unit.vertices * np.array(half, np.float32) + np.array(at, np.float32)
    return MeshData(vertices, unit.triangles, unit.normals, unit.uv)


def block(x0: float, x1: float, y0: float, y1: float, z0: float, z1: float) -> MeshData:
    """A sharp box between two corners."""
    half = ((x1 - x0) / 2, (y1 - y0) / 2, (z1 - z0) / 2)
    return slab(half, 0.0, at=((x0 + x1) / 2, (y0 + y1) / 2, (z0 + z1) / 2))
