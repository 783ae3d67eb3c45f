"""Convex hulls: few vertices, exact mass properties."""

from __future__ import annotations

import itertools

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.scene import MeshData

Array = NDArray[np.float64]

_BATCH = 24


def moments(hull: MeshData) -> tuple[float, Array, Array]:
    """Volume [m^3], centroid (3,) [m] and central second moments (3, 3) [m^5] of a closed mesh.

    The second moments are the integrals of x_i x_j over the volume; the inertia tensor of density
    rho is rho (trace(M) 1 - M). Exact for polyhedra: sums over tetrahedra (Tonon 2004).
    """
    v = hull.vertices.astype(np.float64)
    middle = v.mean(axis=0)
    a, b, c = (v[hull.triangles[:, k]] - middle for k in range(3))
    six = np.einsum("ij,ij->i", a, np.cross(b, c))
    volume = float(six.sum() / 6)
    total = a + b + c
    centroid = (six[:, None] * total).sum(axis=0) / (24 * volume)
    second = (
        np.einsum("n,ni,nj->ij", six, a, a)
        + np.einsum("n,ni,nj->ij", six, b, b)
        + np.einsum("n,ni,nj->ij", six, c, c)
        + np.einsum("n,ni,nj->ij", six, total, total)
    ) / 120
    return volume, middle + centroid, second - volume * np.outer(centroid, centroid)


def convex_hull(points: Array, limit: int | None = None) -> MeshData:
    """Hull of points, from at most ``limit`` of them.

    The farthest point is added until the limit, starting from the extremes along 26 directions:
    the box of the hull is that of the points.

    Args:
        points: (N, 3) [m].
        limit: most vertices, 32 or more; None keeps all.

    Returns:
        The hull, with outward triangles.

    Raises:
        UserError: points without volume.
    """
    p = np.unique(np.asarray(points, np.float64), axis=0)
    corners = p[_hull(p)[0]]
    if limit is None or len(corners) <= limit:
        return _mesh(corners)
    ways = np.array([w for w in itertools.product((-1, 0, 1), repeat=3) if any(w)], np.float64)
    chosen = set(np.argmax(corners @ ways.T, axis=0).tolist())
    while True:
        kept = corners[sorted(chosen)]
        _, planes = _hull(kept)
        beyond = corners @ planes[:, :3].T + planes[:, 3]
        room = limit - len(chosen)
        if room <= 0:
            return _mesh(kept)
        # At most one for each face in a round: each new vertex moves the faces around it.
        worst = beyond.argmax(axis=0)
        order = np.argsort(-beyond.max(axis=0))
        fresh = [int(worst[k]) for k in order if beyond[worst[k], k] > 1e-9]
        fresh = [k for k in dict.fromkeys(fresh) if k not in chosen]
        if not fresh:
            return _mesh(kept)
        chosen.update(fresh[: min(room, _BATCH)])


def departure_of(points: Array, hull: MeshData) -> float:
    """The largest distance [m] by which a point lies beyond the plane of a face of a hull."""
    v = hull.vertices.astype(np.float64)
    a, b, c = (v[hull.triangles[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    beyond = np.asarray(points, np.float64) @ normal.T - np.einsum("ij,ij->i", normal, a)
    return max(float(beyond.max()), 0.0)


def _hull(points: Array) -> tuple[NDArray[np.int64], Array]:
    """Indices of the corners; planes (F, 4) with outward normals."""
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(points)
    except (QhullError, ValueError) as error:
        raise UserError(
            f"a hull of {len(points)} points has no volume: give a thing that is not flat"
        ) from error
    return np.asarray(hull.vertices, np.int64), np.asarray(hull.equations, np.float64)


def _mesh(corners: Array) -> MeshData:
    from scipy.spatial import ConvexHull

    hull = ConvexHull(corners)
    triangles = np.asarray(hull.simplices, np.int64)
    a, b, c = (corners[triangles[:, k]] for k in range(3))
    facing = np.cross(b - a, c - a)
    inward = np.einsum("ij,ij->i", facing, np.asarray(hull.equations)[:, :3]) < 0
    triangles[inward] = triangles[inward][:, ::-1]
    facing[inward] *= -1
    normals = np.zeros_like(corners)
    for k in range(3):
        np.add.at(normals, triangles[:, k], facing)
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    return MeshData(
        np.ascontiguousarray(corners, np.float32),
        np.ascontiguousarray(triangles, np.uint32),
        np.ascontiguousarray(normals, np.float32),
        np.zeros((len(corners), 2), np.float32),
    )
