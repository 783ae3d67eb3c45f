"""Solids to build things from: what `meshes` has, moved, bent, swept and grown.

All results are closed, with triangles counter-clockwise seen from outside, as `meshes` asks for.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.meshes import box, merge, mesh_of
from wmeval.conventions import axis_angle_quaternion, quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import MeshData

Array = NDArray[np.float64]
Point = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Part:
    """A piece of a thing: a mesh in the thing's frame, and the name of what it is made of.

    Attributes:
        mesh: in the frame of the whole thing [m].
        material: key that the scene gives a look to.
        solid: it fills its box, about; a renderer may darken the ground around the box.
    """

    mesh: MeshData
    material: str
    solid: bool = False


Parts = tuple[Part, ...]


def moved(
    mesh: MeshData, x: float = 0.0, y: float = 0.0, z: float = 0.0, *, scale: float = 1.0
) -> MeshData:
    """Scaled evenly, then shifted by (x, y, z) [m]."""
    shifted = mesh.vertices.astype(np.float64) * scale + np.array([x, y, z])
    return MeshData(shifted.astype(np.float32), mesh.triangles, mesh.normals, mesh.uv)


def turned(mesh: MeshData, axis: Point, degrees: float) -> MeshData:
    """Turned about an axis through the origin."""
    return rotated(mesh, quaternion_to_matrix(axis_angle_quaternion(axis, math.radians(degrees))))


def rotated(mesh: MeshData, rotation: Array) -> MeshData:
    """Turned by a rotation matrix (3, 3)."""
    return mesh_of(mesh.vertices @ rotation.T, mesh.triangles, mesh.normals @ rotation.T, mesh.uv)


def mirrored(mesh: MeshData) -> MeshData:
    """As a mirror at x = 0 shows it (a left limb from a right one)."""
    flip = np.array([-1, 1, 1], np.float32)
    return MeshData(
        np.ascontiguousarray(mesh.vertices * flip),
        np.ascontiguousarray(mesh.triangles[:, ::-1]),
        np.ascontiguousarray(mesh.normals * flip),
        mesh.uv,
    )


def stretched(mesh: MeshData, x: float = 1.0, y: float = 1.0, z: float = 1.0) -> MeshData:
    """Scaled along the axes by positive factors."""
    factors = np.array([x, y, z])
    return mesh_of(mesh.vertices * factors, mesh.triangles, mesh.normals / factors, mesh.uv)


def slab(half: Point, bevel: float, *, at: Point = (0.0, 0.0, 0.0), steps: int = 2) -> MeshData:
    """A box of half extents [m] with edges rounded by ``bevel`` [m], centred at a point."""
    return moved(box(half, bevel, steps), *at)


def tube(path: Sequence[Point], radius: float | Sequence[float], segments: int = 16) -> MeshData:
    """A round rod along a polyline, with flat ends.

    Args:
        path: two or more points [m], no two neighbours equal.
        radius: of the rod [m]; one number, or one for every point.
        segments: facets around.

    Raises:
        UserError: fewer than two points, or not as many radii.
    """
    points = np.array(path, np.float64)
    radii = np.full(len(points), radius) if isinstance(radius, float) else np.array(radius)
    if len(points) < 2 or len(radii) != len(points):
        raise UserError(f"tube: {len(points)} points and {len(radii)} radii; give two or more")
    step = np.diff(points, axis=0)
    length = np.linalg.norm(step, axis=1)
    step /= length[:, None]
    tangent = np.concatenate([step[:1], step[:-1] + step[1:], step[-1:]])
    tangent /= np.linalg.norm(tangent, axis=1, keepdims=True)
    helper = np.eye(3)[int(np.argmin(np.abs(tangent[0])))]
    side = np.cross(tangent[0], helper)
    side /= np.linalg.norm(side)
    angle = np.linspace(0, 2 * np.pi, segments + 1)
    vertices, normals = [], []
    slope = np.gradient(radii, np.concatenate([[0], np.cumsum(length)]))
    for centre, r, along, widening in zip(points, radii, tangent, slope, strict=True):
        # Carried along without twist: only what leans along the path is taken off.
        side = side - along * (side @ along)
        side /= np.linalg.norm(side)
        other = np.cross(along, side)
        ring = np.cos(angle)[:, None] * side + np.sin(angle)[:, None] * other
        vertices.append(centre + r * ring)
        normals.append(ring - widening * along)
    v = np.concatenate([[0], np.cumsum(length)]) / length.sum()
    uv = np.stack(np.meshgrid(angle / (2 * np.pi), v), axis=-1).reshape(-1, 2)
    wall = mesh_of(np.concatenate(vertices), _quads(segments + 1, len(points)),
                 np.concatenate(normals), uv)  # fmt: skip
    ends = [_disc(vertices[0][::-1], -tangent[0]), _disc(vertices[-1], tangent[-1])]
    return merge([wall, *ends])


def _quads(columns: int, rows: int) -> NDArray[np.int64]:
    i = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)[None, :]).ravel()
    lower = np.stack([i, i + 1, i + columns + 1], axis=1)
    upper = np.stack([i, i + columns + 1, i + columns], axis=1)
    return np.concatenate([lower, upper])


def _disc(ring: Array, normal: Array) -> MeshData:
    """The inside of a closed ring whose last point repeats the first, counter-clockwise."""
    rim = ring[:-1]
    count = len(rim)
    vertices = np.concatenate([rim, rim.mean(axis=0)[None]])
    i = np.arange(count)
    triangles = np.stack([i, (i + 1) % count, np.full(count, count)], axis=1)
    t = 2 * np.pi * np.concatenate([i / count, [0]])
    uv = np.stack([0.5 + 0.5 * np.cos(t), 0.5 + 0.5 * np.sin(t)], axis=1)
    uv[-1] = 0.5
    return mesh_of(vertices, triangles, np.broadcast_to(normal, vertices.shape).copy(), uv)


def plate_of(outline: Sequence[tuple[float, float]], thickness: float) -> MeshData:
    """A flat plate in the x-y plane, centred in z.

    Args:
        outline: corners [m], counter-clockwise, every one seen from the corners' mean.
        thickness: along z [m].
    """
    rim = np.array([*outline, outline[0]], np.float64)
    half = thickness / 2
    top = np.concatenate([rim, np.full((len(rim), 1), half)], axis=1)
    bottom = top * (1, 1, -1)
    sides = []
    for i in range(len(outline)):
        corner = np.stack([bottom[i], bottom[i + 1], top[i + 1], top[i]])
        edge = rim[i + 1] - rim[i]
        normal = np.array([edge[1], -edge[0], 0.0]) / np.hypot(*edge)
        uv = np.array([[0, 1], [1, 1], [1, 0], [0, 0]], np.float64)
        sides.append(mesh_of(corner, np.array([[0, 1, 2], [0, 2, 3]]), np.tile(normal, (4, 1)), uv))
    up = np.array([0.0, 0.0, 1.0])
    return merge([*sides, _disc(top, up), _disc(bottom[::-1], -up)])


def by_material(parts: Iterable[Part]) -> Parts:
    """One part for every material, in the order in which they first come."""
    groups: dict[str, list[MeshData]] = {}
    for part in parts:
        groups.setdefault(part.material, []).append(part.mesh)
    return tuple(Part(merge(found), name) for name, found in groups.items())
