"""Lumps, leaves and stones: meshes made of noise-displaced icospheres.

A cluster of leaves is a lump with short leaf sprays all over it: its silhouette is ragged, while it
has a few hundred triangles only. Everything is closed, so that it casts shadows, but for the feet
of sprays and blades, which lie inside the lump or the ground. The same seed gives the same mesh.
Lengths in metres.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.scene import MeshData

Array = NDArray[np.float64]
Triangles = NDArray[np.int64]
Vec = tuple[float, float, float]
GOLDEN = math.pi * (3 - math.sqrt(5))


@lru_cache(maxsize=8)
def icosphere(level: int) -> tuple[Array, Triangles]:
    """Unit sphere of 20 * 4^level nearly equal triangles.

    Returns:
        Vertices (V, 3) and counter-clockwise triangles (F, 3); every vertex is there once.

    Raises:
        UserError: a level outside 0..5.
    """
    if not 0 <= level <= 5:
        raise UserError(f"icosphere: level {level} is not in 0..5")
    g = (1 + math.sqrt(5)) / 2
    corners = np.array(
        [(-1, g, 0), (1, g, 0), (-1, -g, 0), (1, -g, 0), (0, -1, g), (0, 1, g),
         (0, -1, -g), (0, 1, -g), (g, 0, -1), (g, 0, 1), (-g, 0, -1), (-g, 0, 1)], np.float64
    )  # fmt: skip
    faces = np.array(
        [(0, 11, 5), (0, 5, 1), (0, 1, 7), (0, 7, 10), (0, 10, 11), (1, 5, 9), (5, 11, 4),
         (11, 10, 2), (10, 7, 6), (7, 1, 8), (3, 9, 4), (3, 4, 2), (3, 2, 6), (3, 6, 8),
         (3, 8, 9), (4, 9, 5), (2, 4, 11), (6, 2, 10), (8, 6, 7), (9, 8, 1)], np.int64
    )  # fmt: skip
    points = corners / np.linalg.norm(corners, axis=1, keepdims=True)
    for _ in range(level):
        edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), 1)
        unique, which = np.unique(edges, axis=0, return_inverse=True)
        middle = points[unique].mean(axis=1)
        middle /= np.linalg.norm(middle, axis=1, keepdims=True)
        ab, bc, ca = (which.reshape(3, -1) + len(points)).astype(np.int64)
        a, b, c = faces.T
        points = np.concatenate([points, middle])
        faces = np.concatenate(
            [np.stack(t, axis=1) for t in ((a, ab, ca), (b, bc, ab), (c, ca, bc), (ab, bc, ca))]
        )
    return points, faces


def noise_field(seed: int, low: float, high: float, count: int = 16) -> Callable[[Array], Array]:
    """A smooth random function of points (..., 3): plane waves of ``low`` to ``high`` rad per unit.

    Zero mean and unit variance over space; bounded by ``sqrt(2 count)``.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    k = rng.standard_normal((3, count))
    k *= np.geomspace(low, high, count) / np.linalg.norm(k, axis=0)
    phase = rng.uniform(0, 2 * math.pi, count)
    weight = (low / np.geomspace(low, high, count)) ** 0.5
    weight *= math.sqrt(2 / float((weight**2).sum()))

    def field(points: Array) -> Array:
        return np.asarray(np.cos(points @ k + phase) @ weight)

    return field


def fibonacci_directions(count: int) -> Array:
    """Evenly spread unit vectors (count, 3) (spherical Fibonacci lattice)."""
    i = np.arange(count) + 0.5
    z = 1 - 2 * i / count
    r = np.sqrt(1 - z * z)
    return np.stack([r * np.cos(GOLDEN * i), r * np.sin(GOLDEN * i), z], axis=1)


def smooth_normals(points: Array, faces: Triangles) -> Array:
    """Area-weighted vertex normals (V, 3), unit."""
    corner = points[faces]
    facet = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    total = np.zeros_like(points)
    for k in range(3):
        np.add.at(total, faces[:, k], facet)
    length = np.linalg.norm(total, axis=1, keepdims=True)
    return np.asarray(total / np.where(length > 0, length, 1))


def mapped(points: Array, faces: Triangles, normals: Array, metres: float) -> MeshData:
    """A mesh with box-mapped texture coordinates: one period is ``metres`` of surface.

    Each triangle is mapped along the largest axis of its plane, so that no triangle is smeared
    over two sides; vertices on such seams are doubled.
    """
    corner = points[faces]
    facet = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    axis = np.argmax(np.abs(facet), axis=1)
    sign = np.sign(np.take_along_axis(facet, axis[:, None], axis=1)[:, 0])
    side = axis * 2 + (sign < 0)
    keys = faces * 6 + side[:, None]
    unique, which = np.unique(keys.ravel(), return_inverse=True)
    vertex, side = unique // 6, unique % 6
    p, s = points[vertex], np.where(side % 2, -1.0, 1.0)
    axis = side // 2
    u = np.where(axis == 0, p[:, 1] * s, np.where(axis == 1, -p[:, 0] * s, p[:, 0] * s))
    v = np.where(axis == 2, -p[:, 1], -p[:, 2])
    return MeshData(
        np.ascontiguousarray(p, np.float32),
        np.ascontiguousarray(which.reshape(-1, 3), np.uint32),
        np.ascontiguousarray(normals[vertex], np.float32),
        np.ascontiguousarray(np.stack([u, v], axis=1) / metres, np.float32),
    )


def placed(
    mesh: MeshData, position: Vec = (0.0, 0.0, 0.0), yaw: float = 0.0, scale: float = 1.0
) -> MeshData:
    """A copy moved by ``position`` [m], turned by ``yaw`` [rad] about z and scaled evenly."""
    c, s = math.cos(yaw), math.sin(yaw)
    turn = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    points = scale * mesh.vertices.astype(np.float64) @ turn.T + np.array(position)
    normals = mesh.normals.astype(np.float64) @ turn.T
    return MeshData(
        np.ascontiguousarray(points, np.float32),
        mesh.triangles,
        np.ascontiguousarray(normals, np.float32),
        np.ascontiguousarray(mesh.uv * np.float32(scale), np.float32),
    )


def lump(
    seed: int, radii: Vec, *, level: int = 2, bumps: float = 0.16, metres: float = 0.9
) -> MeshData:
    """A bumpy ellipsoid.

    Args:
        seed: of its shape.
        radii: along x, y, z [m].
        level: of the icosphere.
        bumps: standard deviation of the radius, as a share of it.
        metres: of surface per period of texture.
    """
    direction, faces = icosphere(level)
    stretch = np.maximum(1 + bumps * noise_field(seed, 2.2, 7.0)(direction), 0.45)
    points = direction * stretch[:, None] * np.array(radii)
    return mapped(points, faces, smooth_normals(points, faces), metres)


def leaf_cluster(
    seed: int,
    radii: Vec,
    *,
    sprays: int = 80,
    spray: float = 0.28,
    droop: float = 0.15,
    level: int = 1,
    metres: float = 0.8,
) -> MeshData:
    """A cluster of leaves: a lump with leaf sprays on its surface.

    Args:
        seed: of its shape.
        radii: of the lump along x, y, z [m].
        sprays: their number.
        spray: length of one [m].
        droop: how far their tips hang down, as a share of their length.
        level: of the lump's icosphere.
        metres: of surface per period of texture.

    Returns:
        20 * 4^level + 3 ``sprays`` triangles. Sprays have the lump's normals: light rounds the
        cluster instead of falling on single leaves.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    core, faces = icosphere(level)
    field = noise_field(seed, 2.2, 6.0)
    size = np.array(radii)

    def radius(direction: Array) -> Array:
        return np.maximum(1 + 0.17 * field(direction), 0.5)

    points = core * radius(core)[:, None] * size
    core_normals = smooth_normals(points, faces)
    out = fibonacci_directions(sprays) + rng.normal(0, 0.16, (sprays, 3))
    out /= np.linalg.norm(out, axis=1, keepdims=True)
    root = out * radius(out)[:, None] * size
    normal = out / size
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    side = np.cross(normal, rng.standard_normal((sprays, 3)))
    side /= np.linalg.norm(side, axis=1, keepdims=True)
    third = np.cross(normal, side)
    length = spray * rng.uniform(0.65, 1.25, (sprays, 1))
    width = length * rng.uniform(0.42, 0.62, (sprays, 1))
    lean = rng.uniform(0.3, 1.0, (sprays, 1))
    tip = root + length * (0.6 * normal + lean * third) - [0.0, 0.0, droop] * length
    below = root - 0.35 * length * normal
    # Three feet around the root, the first two a leaf's width apart; counter-clockwise outside.
    a, b = below + width * side + 0.1 * length * third, below - width * side + 0.1 * length * third
    c = below - 0.45 * width * third - 0.1 * length * normal
    apart = np.stack([tip, a, b, c], axis=1).reshape(-1, 3)
    base = len(points) + 4 * np.arange(sprays)[:, None]
    cones = np.concatenate([base + np.array(t) for t in ((0, 1, 2), (0, 2, 3), (0, 3, 1))])
    corner = np.concatenate([points, apart])[cones]
    middle = np.repeat(apart.reshape(-1, 4, 3).mean(axis=1)[None], 3, axis=0).reshape(-1, 3)
    facet = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    inward = np.einsum("ij,ij->i", facet, corner.mean(axis=1) - middle) < 0
    cones[inward] = cones[inward][:, [0, 2, 1]]
    bent = normal + 0.35 * rng.standard_normal((sprays, 3))
    bent /= np.linalg.norm(bent, axis=1, keepdims=True)
    normals = np.concatenate([core_normals, np.repeat(bent, 4, axis=0)])
    everything = np.concatenate([points, apart])
    return mapped(everything, np.concatenate([faces, cones]), normals, metres)


def stone(seed: int, radii: Vec, *, level: int = 3, cuts: int = 7, metres: float = 1.2) -> MeshData:
    """A weathered stone: an ellipsoid with planes cut off and noise at two scales.

    Args:
        seed: of its shape.
        radii: along x, y, z [m]; the stone stays within 1.15 of them.
        level: of the icosphere.
        cuts: broken faces.
        metres: of surface per period of texture.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    direction, faces = icosphere(level)
    radius = 1 + 0.1 * np.clip(noise_field(seed, 1.5, 4.0)(direction), -2, 1)
    planes = fibonacci_directions(cuts) + rng.normal(0, 0.35, (cuts, 3))
    planes /= np.linalg.norm(planes, axis=1, keepdims=True)
    for plane, distance in zip(planes, rng.uniform(0.68, 0.9, cuts), strict=True):
        facing = direction @ plane
        reach = np.where(facing > 0.2, distance / np.maximum(facing, 0.2), np.inf)
        radius = np.minimum(radius, reach)
    radius = radius * (1 + 0.022 * np.clip(noise_field(seed + 1, 8.0, 22.0)(direction), -2, 1))
    points = direction * radius[:, None] * np.array(radii)
    return mapped(points, faces, smooth_normals(points, faces), metres)


def blades(
    seed: int, count: int, height: float, spread: float, *, width: float = 0.035, lean: float = 0.5
) -> MeshData:
    """A tuft of grass or reeds that stands on its origin.

    Args:
        seed: of its shape.
        count: blades.
        height: of the longest [m].
        spread: radius of the foot [m].
        width: of a blade at its foot [m].
        lean: sideways reach of the tips, as a share of the height.

    Returns:
        Slender pyramids of two joints, 12 ``count`` triangles; u across, v up.
    """
    rng = np.random.Generator(np.random.PCG64(seed))
    parts: list[Array] = []
    for i in range(count):
        angle = GOLDEN * i + rng.normal(0, 0.3)
        foot = spread * math.sqrt((i + 0.5) / count)
        tall = height * rng.uniform(0.6, 1.0)
        out = np.array([math.cos(angle), math.sin(angle), 0.0])
        reach = lean * tall * rng.uniform(0.3, 1.0)
        turn = rng.uniform(0, 2 * math.pi)
        ring = np.array(
            [[math.cos(turn + t), math.sin(turn + t), 0] for t in (0, 2.6, 3.7)]
        ) * (width / 2)  # fmt: skip
        low = foot * out
        mid = low + 0.45 * reach * out + np.array([0, 0, 0.6 * tall])
        top = low + reach * out + np.array([0, 0, tall])
        parts.append(np.concatenate([ring + low, 0.8 * ring + mid, top[None]]))
    faces = np.array(
        [(0, 1, 4), (0, 4, 3), (1, 2, 5), (1, 5, 4), (2, 0, 3), (2, 3, 5),
         (3, 4, 6), (4, 5, 6), (5, 3, 6)]
    )  # fmt: skip
    points = np.concatenate(parts)
    everything = np.concatenate([faces + 7 * i for i in range(count)])
    normals = smooth_normals(points, everything)
    # Grass is lit like the ground it grows on.
    normals = normals + np.array([0.0, 0.0, 0.9])
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return mapped(points, everything, normals, 0.5)


def tube(
    path: Sequence[Vec] | Array,
    radii: Sequence[float] | Array,
    *,
    sides: int = 8,
    around: float = 1.0,
    metres: float = 1.0,
    lobes: Sequence[float] | Array | None = None,
    lobe_count: int = 5,
) -> MeshData:
    """A round tube along a path, closed at both ends: trunks, branches, posts.

    Args:
        path: (N, 3) centres [m].
        radii: (N,) [m].
        sides: facets around.
        around: texture periods around.
        metres: length of path per texture period.
        lobes: (N,) swelling of ``lobe_count`` ridges, as a share of the radius (root flare).
        lobe_count: ridges.

    Raises:
        UserError: fewer than two points, or numbers that do not belong together.
    """
    centre, r = np.asarray(path, np.float64), np.asarray(radii, np.float64)
    if len(centre) < 2 or len(r) != len(centre):
        raise UserError("tube: give two points or more, and a radius for each")
    ahead = np.gradient(centre, axis=0)
    ahead /= np.linalg.norm(ahead, axis=1, keepdims=True)
    helper = np.array([1.0, 0, 0]) if abs(ahead[0, 0]) < 0.8 else np.array([0.0, 1, 0])
    x = helper - ahead[0] * (helper @ ahead[0])
    x /= np.linalg.norm(x)
    angle = np.linspace(0, 2 * math.pi, sides + 1)
    swell = np.zeros(len(r)) if lobes is None else np.asarray(lobes, np.float64)
    travelled = np.concatenate([[0], np.cumsum(np.linalg.norm(np.diff(centre, axis=0), axis=1))])
    points, normals, uv = [], [], []
    for i, (c, t) in enumerate(zip(centre, ahead, strict=True)):
        # The frame is carried along without twist.
        x = x - t * (x @ t)
        x /= np.linalg.norm(x)
        y = np.cross(t, x)
        out = np.cos(angle)[:, None] * x + np.sin(angle)[:, None] * y
        ridge = 1 + swell[i] * np.cos(lobe_count * angle)
        points.append(c + r[i] * ridge[:, None] * out)
        normals.append(out)
        uv.append(
            np.stack(
                [around * angle / (2 * math.pi), np.full_like(angle, -travelled[i] / metres)], 1
            )
        )
    n = sides + 1
    lower = (np.arange(len(r) - 1)[:, None] * n + np.arange(sides)).ravel()
    faces = np.concatenate(
        [
            np.stack([lower, lower + 1, lower + n + 1], axis=1),
            np.stack([lower, lower + n + 1, lower + n], axis=1),
        ]
    )
    for row, sign in ((0, -1), (len(r) - 1, 1)):
        first = row * n
        fan = np.array([(first, first + k, first + k + 1) for k in range(1, sides - 1)])
        faces = np.concatenate([faces, fan if sign > 0 else fan[:, ::-1]])
    return MeshData(
        np.ascontiguousarray(np.concatenate(points), np.float32),
        np.ascontiguousarray(faces, np.uint32),
        np.ascontiguousarray(np.concatenate(normals), np.float32),
        np.ascontiguousarray(np.concatenate(uv), np.float32),
    )
