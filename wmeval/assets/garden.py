"""Garden ornaments as meshes: lamp post, bench, fountain, urn, hedge, rockery, pond, hills, birds.

Each stands on its own origin, z up, and is closed (but for the feet of leaf sprays and blades).
Lengths in metres. `Parts` name the look of each piece ("iron", "wood", ...); a scene gives the
names their materials.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.foliage import (
    blades,
    icosphere,
    leaf_cluster,
    lump,
    mapped,
    noise_field,
    placed,
    smooth_normals,
    stone,
    tube,
)
from wmeval.assets.meshes import box, merge, revolve
from wmeval.scene import MeshData

Array = NDArray[np.float64]
Parts = Mapping[str, MeshData]
Vec = tuple[float, float, float]


def _block(half: Vec, at: Vec, *, bevel: float = 0.0) -> MeshData:
    return placed(box(half, bevel, 1), at)


def _tilted(half: Vec, at: Vec, lean: float) -> MeshData:
    """A block that leans backwards (towards +y) by ``lean`` [rad]."""
    mesh = box(half)
    c, s = math.cos(lean), math.sin(lean)
    turn = np.array([[1, 0, 0], [0, c, s], [0, -s, c]])
    points = mesh.vertices.astype(np.float64) @ turn.T + np.array(at)
    normals = mesh.normals.astype(np.float64) @ turn.T
    return MeshData(points.astype(np.float32), mesh.triangles, normals.astype(np.float32), mesh.uv)


LAMP_HEIGHT = 3.45


@lru_cache(maxsize=1)
def lamp_post() -> Parts:
    """A cast-iron garden lamp, 3.45 m: "iron" and the lantern's "pane"."""
    post = revolve(
        [(0, 0), (0.26, 0), (0.26, 0.09), (0.2, 0.12), (0.18, 0.42), (0.12, 0.5), (0.135, 0.55),
         (0.08, 0.62), (0.055, 0.75), (0.045, 2.35), (0.075, 2.39), (0.075, 2.44), (0.04, 2.5),
         (0.05, 2.68), (0.16, 2.72), (0.16, 2.75), (0, 2.75)], 14,
    )  # fmt: skip
    bar = placed(box((0.3, 0.018, 0.018), 0.01, 1), (0, 0, 2.52))
    ends = [
        placed(box((0.035, 0.035, 0.035), 0.01, 1), (s * 0.31, 0, 2.52)) for s in (-1, 1)
    ]  # fmt: skip
    roof = revolve([(0, 3.2), (0.28, 3.2), (0.29, 3.23), (0.13, 3.33), (0.05, 3.36), (0.03, 3.39),
                    (0.04, 3.42), (0, LAMP_HEIGHT)], 8)  # fmt: skip
    # The lantern widens upwards: eight ribs over a faceted pane.
    low, high, z0, z1 = 0.125, 0.215, 2.75, 3.2
    ribs = []
    for k in range(8):
        a = math.pi / 4 * k
        c, s = math.cos(a), math.sin(a)
        ribs.append(
            tube([(low * c, low * s, z0), (high * c, high * s, z1)], [0.014, 0.014], sides=4)
        )
    pane = revolve([(0, z0), (0.97 * low, z0), (0.97 * high, z1), (0, z1)], 8)
    return {"iron": merge([post, bar, *ends, roof, *ribs]), "pane": pane}


BENCH_HALF: Vec = (0.85, 0.3, 0.44)


@lru_cache(maxsize=1)
def bench() -> Parts:
    """A slatted bench, 1.7 m wide, seat at 0.44 m, that faces -y: "wood" and "iron"."""
    seat = [_block((0.85, 0.045, 0.017), (0, -0.2 + 0.115 * k, 0.44)) for k in range(4)]
    lean = 0.22
    back = [
        _tilted(
            (0.85, 0.015, 0.045), (0, 0.225 + 0.115 * k * math.tan(lean), 0.56 + 0.115 * k), lean
        )
        for k in range(3)
    ]
    iron = []
    for x in (-0.7, 0.7):
        iron.append(_block((0.025, 0.23, 0.02), (x, -0.03, 0.4)))
        iron.append(_block((0.025, 0.025, 0.2), (x, -0.2, 0.2)))
        iron.append(_tilted((0.025, 0.022, 0.42), (x, 0.235, 0.44), lean))
        iron.append(_block((0.025, 0.2, 0.018), (x, -0.02, 0.64)))
        iron.append(_block((0.02, 0.02, 0.12), (x, -0.19, 0.53)))
    return {"wood": merge(seat + back), "iron": merge(iron)}


BASIN_RADIUS, BASIN_HEIGHT, WATER_LEVEL = 1.95, 0.56, 0.44


@lru_cache(maxsize=1)
def fountain() -> Parts:
    """A round basin with a two-tier fountain, 1.8 m high: "stone" and "water"."""
    r, h = BASIN_RADIUS, BASIN_HEIGHT
    basin = revolve(
        [(0, 0), (r + 0.1, 0), (r + 0.1, 0.08), (r - 0.02, 0.12), (r - 0.02, h - 0.12),
         (r + 0.1, h - 0.08), (r + 0.1, h - 0.01), (r + 0.07, h), (r - 0.2, h),
         (r - 0.23, h - 0.03), (r - 0.23, 0.1), (0, 0.1)], 32,
    )  # fmt: skip
    tiers = revolve(
        [(0, 0.05), (0.34, 0.05), (0.34, 0.5), (0.22, 0.58), (0.13, 0.75), (0.12, 0.92),
         (0.2, 0.99), (0.62, 1.1), (0.74, 1.2), (0.76, 1.24), (0.7, 1.24), (0.58, 1.18),
         (0.12, 1.15), (0.085, 1.3), (0.075, 1.5), (0.12, 1.54), (0.28, 1.62), (0.32, 1.68),
         (0.26, 1.68), (0.08, 1.64), (0.05, 1.72), (0.06, 1.77), (0, 1.8)], 20,
    )  # fmt: skip
    pool = revolve([(0, 0.2), (r - 0.22, 0.2), (r - 0.22, WATER_LEVEL), (0, WATER_LEVEL)], 32)
    upper = revolve([(0, 1.15), (0.66, 1.17), (0.69, 1.215), (0, 1.215)], 20)
    flat = [mapped(*_soup(m), 1.5) for m in (pool, upper)]
    return {"stone": merge([basin, tiers]), "water": merge(flat)}


def _soup(mesh: MeshData) -> tuple[Array, NDArray[np.int64], Array]:
    return (
        mesh.vertices.astype(np.float64),
        mesh.triangles.astype(np.int64),
        mesh.normals.astype(np.float64),
    )


@lru_cache(maxsize=1)
def urn() -> Parts:
    """A stone urn with a bush in it, 1.25 m: "stone" and "leaves"."""
    body = revolve(
        [(0, 0), (0.27, 0), (0.27, 0.1), (0.15, 0.15), (0.1, 0.26), (0.13, 0.31), (0.3, 0.5),
         (0.36, 0.66), (0.33, 0.74), (0.4, 0.79), (0.4, 0.83), (0.33, 0.84), (0.28, 0.76),
         (0, 0.74)], 14,
    )  # fmt: skip
    leaves = leaf_cluster(77, (0.34, 0.34, 0.26), sprays=46, spray=0.18, droop=0.5, metres=0.6)
    return {"stone": body, "leaves": placed(leaves, (0, 0, 0.97))}


@lru_cache(maxsize=32)
def hedge(length: float, width: float = 1.0, height: float = 1.9, seed: int = 0) -> MeshData:
    """A clipped hedge along x, centred over its origin and standing on it."""
    rings = max(3, round(length / 1.0) + 1)
    corner = 0.18
    w, h = width / 2, height
    outline = np.array(
        [(-w, -0.05), (-w, 0.33 * h), (-w, 0.66 * h), (-w, h - corner), (-w + corner, h), (0, h),
         (w - corner, h), (w, h - corner), (w, 0.66 * h), (w, 0.33 * h), (w, -0.05)]
    )  # fmt: skip
    x = np.linspace(-length / 2, length / 2, rings)
    n = len(outline)
    points = np.stack(
        [np.repeat(x, n), np.tile(outline[:, 0], rings), np.tile(outline[:, 1], rings)], axis=1
    )
    bulge = noise_field(seed, 1.3, 8.0)(points) * 0.045
    away = points - np.array([0, 0, 0.45 * h])
    away[:, 0] = 0
    away /= np.linalg.norm(away, axis=1, keepdims=True)
    points = points + bulge[:, None] * away
    points[:, 2] = np.maximum(points[:, 2], -0.05)
    i = (np.arange(rings - 1)[:, None] * n + np.arange(n - 1)).ravel()
    faces = [np.stack([i, i + n, i + n + 1], axis=1), np.stack([i, i + n + 1, i + 1], axis=1)]
    # Underside and both ends.
    b = np.arange(rings - 1) * n
    faces.append(np.stack([b, b + n - 1, b + 2 * n - 1], axis=1))
    faces.append(np.stack([b, b + 2 * n - 1, b + n], axis=1))
    fan = np.array([(0, k, k + 1) for k in range(1, n - 1)])
    faces.append(fan)
    faces.append(fan[:, ::-1] + (rings - 1) * n)
    all_faces = np.concatenate(faces)
    return mapped(points, all_faces, smooth_normals(points, all_faces), 1.1)


ROCKERIES: dict[str, tuple[tuple[float, ...], ...]] = {
    # Stones as x, y, z of the centre, radii along x, y, z [m], turn [deg].
    "foreground": (
        (-0.42, 0.1, 0.3, 0.62, 0.5, 0.44, 20.0),
        (0.5, -0.05, 0.26, 0.56, 0.46, 0.4, -35.0),
        (0.05, -0.48, 0.2, 0.46, 0.36, 0.3, 70.0),
        (0.02, 0.25, 0.72, 0.44, 0.38, 0.62, 10.0),
        (-0.2, 0.05, 1.3, 0.3, 0.26, 0.4, -50.0),
        (0.36, 0.05, 0.82, 0.3, 0.26, 0.3, 35.0),
        (-0.86, -0.4, 0.12, 0.26, 0.22, 0.18, 0.0),
        (0.95, 0.42, 0.14, 0.28, 0.24, 0.2, 60.0),
    ),
    "background": (
        (-1.05, 0.0, 0.5, 1.0, 0.8, 0.75, 15.0),
        (1.0, 0.15, 0.42, 1.05, 0.8, 0.66, -25.0),
        (0.0, -0.7, 0.3, 0.9, 0.62, 0.5, 50.0),
        (-0.1, 0.35, 1.3, 0.85, 0.7, 1.05, 5.0),
        (0.75, 0.2, 1.2, 0.6, 0.5, 0.62, 40.0),
        (-0.85, 0.1, 1.35, 0.52, 0.46, 0.6, -30.0),
        (-0.15, 0.3, 2.45, 0.5, 0.42, 0.75, 65.0),
        (0.5, 0.25, 1.95, 0.36, 0.34, 0.45, -15.0),
        (-1.85, -0.6, 0.2, 0.46, 0.4, 0.3, 0.0),
        (1.9, -0.4, 0.22, 0.5, 0.42, 0.32, 30.0),
    ),
}
ROCKERY_SIZE = {"foreground": (1.0, 1.62), "background": (1.9, 3.1)}
"""Radius of the foot that keeps visitors off, and height [m]."""


@lru_cache(maxsize=2)
def rockery(name: str) -> Parts:
    """Piled stones with moss and small plants in the joints: "rock", "moss" and "leaves".

    Raises:
        KeyError: neither "foreground" nor "background".
    """
    rocks, moss, plants = [], [], []
    for i, (x, y, z, a, b, c, turn) in enumerate(ROCKERIES[name]):
        mesh = stone(300 + 17 * i + len(name), (a, b, c), level=2 if a > 0.34 else 1, metres=0.9)
        rocks.append(placed(mesh, (x, y, z), math.radians(turn)))
        if i < 4:
            angle = 1.3 * i + 0.6
            foot = (x + 0.8 * a * math.cos(angle), y + 0.8 * b * math.sin(angle), 0.3 * z)
            cushion = lump(500 + i, (0.34 * a, 0.34 * a, 0.2 * a), level=1, metres=0.4)
            moss.append(placed(cushion, foot))
        if i in (1, 2, 4):
            tuft = blades(600 + i, 12, 0.42 + 0.2 * a, 0.08, lean=0.75, width=0.03)
            plants.append(placed(tuft, (x + 0.75 * a, y - 0.55 * b, max(0.0, z - 0.6 * c))))
    return {"rock": merge(rocks), "moss": merge(moss), "leaves": merge(plants)}


@lru_cache(maxsize=4)
def pond(radius: float, seed: int = 5) -> Parts:
    """A pond with an edge of field stones: "water", "rock" and "pads" (water lilies)."""
    rng = np.random.Generator(np.random.PCG64(seed))
    t = np.linspace(0, 2 * math.pi, 41)[:-1]
    shape = 1 + 0.08 * np.sin(2 * t + 0.5) + 0.05 * np.sin(3 * t + 1.9)
    rim = radius * shape[:, None] * np.stack([np.cos(t), 0.82 * np.sin(t)], axis=1)
    top = np.concatenate([rim, np.full((40, 1), 0.035)], axis=1)
    low = top - [0, 0, 0.2]
    points = np.concatenate([top, low])
    k = np.arange(40)
    n = (k + 1) % 40
    fan = np.stack([np.zeros(38, int), np.arange(1, 39), np.arange(2, 40)], axis=1)
    faces = np.concatenate(
        [fan, fan[:, ::-1] + 40, np.stack([k, k + 40, n + 40], 1), np.stack([k, n + 40, n], 1)]
    )
    normals = np.zeros_like(points)
    normals[:, 2] = np.repeat([1.0, -1.0], 40)
    water = mapped(points, faces, normals, 2.2)
    stones = []
    count = round(2 * math.pi * radius / 0.46)
    for i in range(count):
        a = 2 * math.pi * i / count
        s = radius * (1 + 0.08 * math.sin(2 * a + 0.5) + 0.05 * math.sin(3 * a + 1.9)) + 0.1
        size = rng.uniform(0.19, 0.31)
        mesh = stone(700 + i % 9, (size, 0.8 * size, 0.62 * size), level=1, cuts=5, metres=0.8)
        place = (s * math.cos(a), 0.82 * s * math.sin(a), rng.uniform(0.02, 0.07))
        stones.append(placed(mesh, place, rng.uniform(0, 6.28)))
    pads = []
    for i in range(9):
        a, d = 0.5 + 0.33 * i, radius * rng.uniform(0.3, 0.75)
        r = rng.uniform(0.12, 0.2)
        pad = revolve([(0, -0.012), (r, -0.006), (r, 0.006), (0, 0.012)], 9)
        pads.append(placed(pad, (d * math.cos(a), 0.8 * d * math.sin(a), 0.045)))
    return {"water": water, "rock": merge(stones), "pads": merge(pads)}


@lru_cache(maxsize=1)
def pergola() -> Parts:
    """Six posts under beams and rafters, 4.4 m x 2.6 m, 2.7 m high: "wood" and "leaves"."""
    wood = [
        _block((0.08, 0.08, 1.25), (x, y, 1.25)) for x in (-2.0, 0.0, 2.0) for y in (-1.05, 1.05)
    ]
    wood += [_block((2.4, 0.06, 0.09), (0, y, 2.55)) for y in (-1.05, 1.05)]
    wood += [_block((0.04, 1.45, 0.065), (-2.1 + 0.6 * k, 0, 2.69)) for k in range(8)]
    vine = [
        placed(
            leaf_cluster(900 + i, (0.75, 0.45, 0.24), sprays=46, spray=0.24, droop=0.7, metres=0.7),
            (x, y, 2.76),
            0.4 * i,
        )
        for i, (x, y) in enumerate(((-1.6, -0.7), (-0.4, 0.6), (0.7, -0.5), (1.7, 0.5)))
    ]
    return {"wood": merge(wood), "leaves": merge(vine)}


@lru_cache(maxsize=1)
def gate() -> Parts:
    """A pair of boarded gates between masonry piers, 3.6 m wide: "wood", "stone" and "iron"."""
    boards = [_block((0.12, 0.03, 0.95), (-1.2 + 0.265 * k, 0, 1.02)) for k in range(10)]
    rails = [_block((1.32, 0.05, 0.06), (0, 0, z)) for z in (0.4, 1.65)]
    piers = [_block((0.3, 0.3, 1.1), (x, 0, 1.1), bevel=0.03) for x in (-1.62, 1.62)]
    caps = [_block((0.37, 0.37, 0.06), (x, 0, 2.24), bevel=0.03) for x in (-1.62, 1.62)]
    balls = [
        placed(lump(40, (0.22, 0.22, 0.22), bumps=0.0, metres=0.8), (x, 0, 2.5))
        for x in (-1.62, 1.62)
    ]
    iron = [_block((0.02, 0.06, 0.16), (s * 0.06, -0.04, 1.05)) for s in (-1, 1)]
    return {
        "wood": merge(boards + rails),
        "stone": merge(piers + caps + balls),
        "iron": merge(iron),
    }


@lru_cache(maxsize=4)
def tree_line(
    radius: float, seed: int, crown: float = 4.3, sectors: int = 8
) -> tuple[MeshData, ...]:
    """A ring of distant crowns about the origin, cut into sectors counter-clockwise from +x."""
    rng = np.random.Generator(np.random.PCG64(seed))
    count = round(2 * math.pi * radius / (1.6 * crown))
    parts: list[list[MeshData]] = [[] for _ in range(sectors)]
    for i in range(count):
        a = 2 * math.pi * (i + rng.uniform(-0.3, 0.3)) / count
        d = radius * rng.uniform(0.94, 1.1)
        size = crown * rng.uniform(0.7, 1.35)
        tall = size * rng.uniform(0.9, 1.5)
        mesh = leaf_cluster(
            800 + i % 5, (crown, crown, 1.2 * crown), sprays=40, spray=0.36 * crown, droop=0.0,
            level=1, metres=4.5,
        )  # fmt: skip
        where = (d * math.cos(a), d * math.sin(a), 0.55 * tall)
        parts[i * sectors // count].append(placed(mesh, where, rng.uniform(0, 6.28), size / crown))
    return tuple(merge(sector) for sector in parts)


@lru_cache(maxsize=4)
def hills(radius: float, height: float, seed: int) -> MeshData:
    """A ring of hills about the origin: from ``radius`` up to a crest at 1.5 times that."""
    around = 96
    t = np.linspace(0, 2 * math.pi, around + 1)[:-1]
    crest = noise_field(seed, 1.5, 14.0)(np.stack([np.cos(t), np.sin(t), 0 * t], axis=1))
    crest = height * np.clip(0.75 + 0.33 * crest, 0.25, 1.6)
    rows = []
    for share, lift in ((1.0, -0.02), (1.12, 0.25), (1.3, 0.74), (1.5, 1.0), (1.6, -0.2)):
        rows.append(
            np.stack([radius * share * np.cos(t), radius * share * np.sin(t), crest * lift], axis=1)
        )
    points = np.concatenate(rows)
    k = np.arange(around)
    n = (k + 1) % around
    faces = []
    for r in range(len(rows)):
        a, b = r * around, ((r + 1) % len(rows)) * around
        faces.append(np.stack([a + k, b + n, b + k], axis=1))
        faces.append(np.stack([a + k, a + n, b + n], axis=1))
    soup = np.concatenate(faces)[:, ::-1]
    corner = points[soup]
    facet = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    if facet[:around, 2].sum() < 0:
        soup = soup[:, ::-1]
    return mapped(points, soup, smooth_normals(points, soup), 30.0)


@lru_cache(maxsize=2)
def bird() -> Parts:
    """A bird that flies along +x: "body" and "wing" (hinged at its origin, along +y)."""
    direction, faces = icosphere(1)
    points = direction * np.array([0.2, 0.055, 0.05])
    taper = np.clip(points[:, 0] / 0.2, -1, 1)
    points[:, 1:] *= (1 - 0.35 * np.abs(taper))[:, None]
    body = mapped(points, faces, smooth_normals(points, faces), 0.3)
    tail = _wedge([(-0.12, 0.02), (-0.36, 0.085), (-0.29, 0.0)], 0.008)
    tail_r = _wedge([(-0.12, -0.02), (-0.29, 0.0), (-0.36, -0.085)], 0.008)
    wing = _wedge([(0.09, 0.0), (0.1, 0.16), (-0.06, 0.42), (-0.05, 0.18), (-0.08, 0.0)], 0.009)
    return {"body": merge([body, tail, tail_r]), "wing": wing}


def _wedge(outline: Sequence[tuple[float, float]], thick: float) -> MeshData:
    """A flat plate of a polygon (x, y), fanned from its first corner."""
    flat = np.array(outline, np.float64)
    n = len(flat)
    area = 0.5 * float(
        np.sum(flat[:, 0] * np.roll(flat[:, 1], -1) - flat[:, 1] * np.roll(flat[:, 0], -1))
    )
    if area < 0:
        flat = flat[::-1]
    high = np.concatenate([flat, np.full((n, 1), thick / 2)], axis=1)
    low = high - [0, 0, thick]
    points = np.concatenate([high, low])
    fan = np.array([(0, k, k + 1) for k in range(1, n - 1)])
    k = np.arange(n)
    m = (k + 1) % n
    faces = np.concatenate(
        [fan, fan[:, ::-1] + n, np.stack([k, k + n, m + n], 1), np.stack([k, m + n, m], 1)]
    )
    normals = np.zeros_like(points)
    normals[:, 2] = np.repeat([1.0, -1.0], n)
    return mapped(points, faces, normals, 0.3)


__all__ = [
    "BASIN_HEIGHT",
    "BASIN_RADIUS",
    "BENCH_HALF",
    "LAMP_HEIGHT",
    "ROCKERIES",
    "ROCKERY_SIZE",
    "WATER_LEVEL",
    "Parts",
    "bench",
    "bird",
    "fountain",
    "gate",
    "hedge",
    "hills",
    "lamp_post",
    "pergola",
    "pond",
    "rockery",
    "tree_line",
    "urn",
]
