"""A stretch of highway: lanes with marks, guard rails, grass strips, slender trees.

Lengths in metres. A tile runs along +y from its own origin; the road's surface is z = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.foliage import leaf_cluster, tube
from wmeval.assets.loft import shaded
from wmeval.assets.meshes import box, merge
from wmeval.assets.solids import mirrored, moved
from wmeval.scene import MeshData

Array = NDArray[np.float64]

LANE = 3.6
LANES = 4
HALF_ROAD = 8.4
"""Half the paved width: four lanes and hard shoulders [m]."""
RAIL = 8.9
"""Distance of the guard rails' middle from the road's middle [m]."""
STRIP = (9.3, 15.2)
"""Where the grass strips along the road begin and end [m]."""
TREES = 17.5
"""Distance of the rows of trees [m]."""
RAIL_HEIGHT = 0.75
SLAB = 0.3
"""Thickness of the paving [m]."""
_PAINT = 0.006
"""Height of painted marks over the paving [m]."""


def lane_marks(length: float, *, dash: float = 4.0, gap: float = 6.0) -> MeshData:
    """White paint of a tile: solid lines at the edges, dashes between the lanes, no side faces.

    ``dash + gap`` should divide the tile's length, so that the rhythm goes on.
    """
    strips = [(side * (LANES / 2 * LANE + 0.1), 0.18, 0.0, length) for side in (-1.0, 1.0)]
    step = dash + gap
    for line in range(1, LANES):
        x = (line - LANES / 2) * LANE
        for i in range(math.floor(length / step + 1e-9)):
            start = i * step + gap / 2
            strips.append((x, 0.15, start, start + dash))
    return merge([_sheet(x - w / 2, x + w / 2, a, b, _PAINT) for x, w, a, b in strips])


def _sheet(x0: float, x1: float, y0: float, y1: float, z: float) -> MeshData:
    """A horizontal rectangle that faces up."""
    corners = np.array([(x0, y0, z), (x1, y0, z), (x1, y1, z), (x0, y1, z)], np.float32)
    return MeshData(
        corners,
        np.array([(0, 1, 2), (0, 2, 3)], np.uint32),
        np.tile(np.array([0, 0, 1], np.float32), (4, 1)),
        np.array([(0, 1), (1, 1), (1, 0), (0, 0)], np.float32),
    )


def slab(x0: float, x1: float, length: float, top: float, thick: float) -> MeshData:
    """Top and sides of a slab over [x0, x1] x [0, length] whose upper face is at ``top``.

    It has no ends: where tiles meet, they would show through as single pixels.
    """
    whole = box(((x1 - x0) / 2, length / 2, thick / 2))
    keep = np.abs(whole.normals[whole.triangles[:, 0], 1]) < 0.5
    keep &= whole.normals[whole.triangles[:, 0], 2] > -0.5
    open_box = MeshData(whole.vertices, whole.triangles[keep], whole.normals, whole.uv)
    return moved(open_box, (x0 + x1) / 2, length / 2, top - thick / 2)


def strips(length: float) -> MeshData:
    """The two mown grass strips of a tile, a little higher than the meadow."""
    low, high = STRIP
    return merge([slab(-high, -low, length, 0.02, 0.2), slab(low, high, length, 0.02, 0.2)])


def guard_rails(length: float, *, post_every: float = 4.0) -> MeshData:
    """Guard rails on both sides: a W beam on posts.

    The beam's profile is that of the usual two-wave steel rail, 0.31 m high and 83 mm deep
    (EN 1317 barriers of profile A), simplified to ten folds.
    """
    wave = [
        (0.000, 0.155), (0.022, 0.150), (0.083, 0.112), (0.083, 0.060), (0.012, 0.018),
        (0.012, -0.018), (0.083, -0.060), (0.083, -0.112), (0.022, -0.150), (0.000, -0.155),
    ]  # fmt: skip
    front = np.array(wave)
    back = front[::-1] - [0.006, 0.0]
    outline = np.concatenate([front, back])
    beam = _extruded(outline, length)
    middle = RAIL_HEIGHT - 0.155
    parts = []
    for side in (-1.0, 1.0):
        # The waves bulge towards the road.
        rail = beam if side < 0 else mirrored(beam)
        parts.append(moved(rail, side * (RAIL + 0.05), 0.0, middle))
        for i in range(round(length / post_every)):
            y = (i + 0.5) * post_every
            parts.append(
                moved(box((0.045, 0.06, 0.42)), side * (RAIL + 0.115), y, RAIL_HEIGHT - 0.45)
            )
    return merge(parts)


def _extruded(outline: Array, length: float) -> MeshData:
    """A closed outline (x, z), clockwise seen along +y, drawn along y from 0."""
    n = len(outline)
    ends = [np.column_stack([outline[:, 0], np.full(n, y), outline[:, 1]]) for y in (0.0, length)]
    vertices = np.concatenate(ends)
    k = np.arange(n)
    j = (k + 1) % n
    triangles = np.concatenate(
        [np.stack([k, k + n, j + n], axis=1), np.stack([k, j + n, j], axis=1)]
    )
    corner = vertices[triangles]
    facet = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    # Which way round the outline runs decides which side is out.
    area = 0.5 * float(np.sum(outline[k, 0] * outline[j, 1] - outline[j, 0] * outline[k, 1]))
    outwards = np.stack([outline[j, 1] - outline[k, 1], outline[k, 0] - outline[j, 0]], axis=1)
    if float((facet[:n, [0, 2]] * outwards).sum()) * math.copysign(1.0, area) < 0:
        triangles = triangles[:, ::-1]
    return shaded(vertices, triangles, np.zeros((2 * n, 2)), crease_deg=20.0)


@dataclass(frozen=True, eq=False)
class Poplar:
    """A tall, slender tree; its foot is the origin.

    Attributes:
        wood: the trunk.
        crown: leaves.
        height: [m].
    """

    wood: MeshData
    crown: MeshData
    height: float


@lru_cache(maxsize=16)
def poplar(variant: int) -> Poplar:
    """One of the slender trees, 11 to 13.5 m tall: a crown of four lobes about the trunk."""
    rng = np.random.Generator(np.random.PCG64(4_200 + variant))
    height = float(rng.uniform(11.0, 13.5))
    trunk = tube(
        [(0, 0, -0.2), (0, 0, 1.0), (0.05, 0.02, 0.55 * height), (0, 0, 0.85 * height)],
        [0.30, 0.21, 0.14, 0.04], sides=6, metres=1.4,
    )  # fmt: skip
    foot = 1.55
    rise = height - foot
    lobes = []
    for share, reach, aside in (
        (0.22, 0.98, 0.20), (0.42, 1.10, 0.26), (0.63, 0.95, 0.24), (0.84, 0.62, 0.05),
    ):  # fmt: skip
        angle = rng.uniform(0, 2 * math.pi)
        wide = 1.45 * reach * rng.uniform(0.92, 1.08)
        tall = 0.23 * rise * (1.0 if share < 0.8 else 0.72)
        lobe = leaf_cluster(
            int(rng.integers(1 << 30)), (wide, wide, tall), sprays=58, spray=0.62, droop=-1.0,
            metres=2.2,
        )  # fmt: skip
        centre = (aside * math.cos(angle), aside * math.sin(angle), foot + share * rise)
        lobes.append(moved(lobe, *centre))
    return Poplar(trunk, merge(lobes), height)
