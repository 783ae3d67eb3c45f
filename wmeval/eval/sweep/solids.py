"""Collision shapes as faces: how far points are outside each face of a solid, in its own frame."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import ConvexHull

from wmeval.conventions import quaternion_to_matrix
from wmeval.scene import Body, Box, Capsule, Collision, Cylinder, Mesh, Meshes, Sphere

F8 = NDArray[np.float64]
_RIM = 16
"""Points on each rim of a cylinder."""
_BATCH = 1024
"""Points at a time that are looked for in a mesh that is no hull."""
_LEAST = 1e-4
"""Depth in such a mesh that reads as none [m]."""
_CHUNK = 1 << 18
"""Pairs of a point and a triangle at a time."""


@dataclass(frozen=True, eq=False)
class Solid:
    """One piece of a body's collision geometry.

    Attributes:
        body: scene index.
        part: shape and pose in the body's frame.
        planes: (K, 4) outward normal and offset of a box's or hull's faces; (0, 4) for the others.
        triangles: (F, 3, 3) of a mesh that is no hull; (0, 3, 3) for the others.
        reach: greatest distance of its points from the body's origin [m].
    """

    body: int
    part: Collision
    planes: F8
    triangles: F8
    reach: float

    @property
    def normals(self) -> F8:
        """Directions of the faces (K, 3) in the piece's frame; 0 for a curved one."""
        if len(self.planes):
            return self.planes[:, :3]
        if isinstance(self.part.shape, Cylinder):
            return np.array([(0.0, 0.0, 0.0), (0.0, 0.0, 1.0), (0.0, 0.0, -1.0)])
        return np.zeros((1, 3))

    def outside(self, points: F8, radius: float = 0.0) -> F8:
        """How far points (..., 3) of the body's frame are outside each face (..., K) [m].

        Negative inside; a point is in the solid where all are. A cylinder's faces are its mantle
        and its two ends; a ball, a capsule and a mesh that is no hull have one. Of such a mesh
        only the points of that radius [m] that are the deepest are measured: the others, and
        what is less than 0.1 mm deep, read as outside.
        """
        shape = self.part.shape
        turn = quaternion_to_matrix(np.array(self.part.quaternion_wxyz))
        x = (points - np.array(self.part.position)) @ turn
        if len(self.planes):
            out: F8 = x @ self.planes[:, :3].T + self.planes[:, 3]
            return out
        if isinstance(shape, Sphere):
            return _ball(x, shape.radius)
        if isinstance(shape, Capsule):
            half = shape.height / 2 - shape.radius
            along = np.clip(x[..., 2], -half, half)
            x = x - along[..., None] * np.array((0.0, 0.0, 1.0))
            return _ball(x, shape.radius)
        if isinstance(shape, Cylinder):
            around = np.hypot(x[..., 0], x[..., 1]) - shape.radius
            ends = [s * x[..., 2] - shape.height / 2 for s in (1.0, -1.0)]
            return np.stack([around, *ends], axis=-1)
        return _deepest_in(x, self.triangles, radius)[..., None]


def _deepest_in(x: F8, triangles: F8, radius: float) -> F8:
    """Signed distances (...) of the deepest of points (..., 3); ``radius`` of all others.

    No point is deeper in a mesh than in the box about it: from the deepest in that box onwards,
    until no other can be deeper than what was found.
    """
    flat = x.reshape(-1, 3)
    low, high = (f(triangles.reshape(-1, 3), axis=0) for f in (np.min, np.max))
    most = np.minimum(flat - low, high - flat).min(axis=1) + radius
    out = np.full(len(flat), radius)
    order = np.flatnonzero(most > _LEAST)
    order = order[np.argsort(-most[order])]
    best = _LEAST
    for k in range(0, len(order), _BATCH):
        some = order[k : k + _BATCH]
        if most[some[0]] <= best:
            break
        out[some] = signed_distance(flat[some], triangles)
        best = max(best, radius - float(out[some].min()))
    return out.reshape(x.shape[:-1])


def _ball(x: F8, radius: float) -> F8:
    out: F8 = np.linalg.norm(x, axis=-1, keepdims=True) - radius
    return out


def solids_of(index: int, body: Body, meshes: Meshes) -> list[Solid]:
    """All pieces of a body; a mesh that is not at hand is left out."""
    out = []
    for part in body.collision:
        shape = part.shape
        planes, triangles = np.zeros((0, 4)), np.zeros((0, 3, 3))
        if isinstance(shape, Box):
            half = np.array(shape.half_extents)
            sides = np.vstack([np.eye(3), -np.eye(3)])
            planes = np.hstack([sides, -np.tile(half, 2)[:, None]])
        elif isinstance(shape, Mesh):
            if shape.sha256 not in meshes:
                continue
            mesh = meshes[shape.sha256]
            corners = np.asarray(mesh.vertices, np.float64)
            if shape.convex:
                planes = np.unique(np.round(ConvexHull(corners).equations, 12), axis=0)
            else:
                triangles = corners[np.asarray(mesh.triangles, np.int64)]
        points, radius = probes_of(part, meshes)
        reach = float(np.linalg.norm(points, axis=1).max()) + radius
        out.append(Solid(index, part, planes, triangles, reach))
    return out


def probes_of(part: Collision, meshes: Meshes) -> tuple[F8, float]:
    """Points (M, 3) of a piece in the body's frame that may enter others, and their radius [m].

    Corners of boxes and meshes, the middle of a ball, the axis of a capsule, rims of a cylinder.
    """
    shape, radius = part.shape, 0.0
    if isinstance(shape, Box):
        signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        own = signs * np.array(shape.half_extents)
    elif isinstance(shape, Sphere):
        own, radius = np.zeros((1, 3)), shape.radius
    elif isinstance(shape, Capsule):
        half, radius = shape.height / 2 - shape.radius, shape.radius
        own = np.linspace(-half, half, 5)[:, None] * np.array((0.0, 0.0, 1.0))
    elif isinstance(shape, Cylinder):
        turn = np.arange(_RIM) * 2 * math.pi / _RIM
        ring = shape.radius * np.stack([np.cos(turn), np.sin(turn), 0 * turn], axis=1)
        lift = np.array((0.0, 0.0, shape.height / 2))
        own = np.concatenate([ring + lift, ring - lift])
    elif shape.sha256 in meshes:
        own = np.asarray(meshes[shape.sha256].vertices, np.float64)
    else:
        own = np.zeros((0, 3))
    turn = quaternion_to_matrix(np.array(part.quaternion_wxyz))
    return np.array(part.position) + own @ turn.T, radius


def signed_distance(points: F8, triangles: F8) -> F8:
    """Distance (...) of points (..., 3) from a closed mesh's triangles (F, 3, 3), < 0 inside [m].

    Inside by the winding number, the sum of solid angles (Van Oosterom and Strackee 1983).
    """
    flat = points.reshape(-1, 3)
    out = np.empty(len(flat))
    step = max(1, _CHUNK // max(1, len(triangles)))
    for k in range(0, len(flat), step):
        p = flat[k : k + step, None]
        a, b, c = (triangles[None, :, i] - p for i in range(3))
        la, lb, lc = (np.linalg.norm(v, axis=-1) for v in (a, b, c))
        dot = [(u * v).sum(-1) for u, v in ((a, b), (b, c), (c, a))]
        top = (a * np.cross(b, c)).sum(-1)
        under = la * lb * lc + dot[0] * lc + dot[1] * la + dot[2] * lb
        winding = (2 * np.arctan2(top, under)).sum(axis=1) / (4 * math.pi)
        near = _to_triangles(p, triangles).min(axis=1)
        out[k : k + step] = np.where(np.abs(winding) > 0.5, -near, near)
    return out.reshape(points.shape[:-1])


def _to_triangles(p: F8, triangles: F8) -> F8:
    """Distances (n, F) of points (n, 1, 3) from triangles: of the plane within, of edges beside."""
    corners = [triangles[None, :, i] for i in range(3)]
    normal = np.cross(corners[1] - corners[0], corners[2] - corners[0])
    size = np.linalg.norm(normal, axis=-1, keepdims=True)
    normal = normal / np.where(size > 0, size, 1.0)
    within = np.ones(np.broadcast_shapes(p.shape, corners[0].shape)[:-1], bool)
    nearest = np.full(within.shape, np.inf)
    for i in range(3):
        start, edge = corners[i], corners[(i + 1) % 3] - corners[i]
        way = p - start
        within &= (np.cross(edge, way) * normal).sum(-1) >= 0
        length = (edge * edge).sum(-1)
        along = np.clip((way * edge).sum(-1) / np.where(length > 0, length, 1.0), 0, 1)
        nearest = np.minimum(nearest, np.linalg.norm(way - along[..., None] * edge, axis=-1))
    height = np.abs(((p - corners[0]) * normal).sum(-1))
    return np.where(within, height, nearest)
