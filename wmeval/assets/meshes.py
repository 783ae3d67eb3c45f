"""Triangle meshes of shapes, with smooth normals and texture coordinates.

Triangles run counter-clockwise seen from outside. Meshes are closed wherever the shape is, since
shadows are cast by back faces.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.scene import Box, Capsule, Cylinder, MeshData, Meshes, Shape, Sphere

Array = NDArray[np.float64]

RIM = 0.04
"""Rounding of a cylinder's rims, as a share of its radius or half height."""


def mesh_of(vertices: Array, triangles: NDArray[Any], normals: Array, uv: NDArray[Any]) -> MeshData:
    """A mesh of arrays; normals of any length are made unit."""
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    return MeshData(
        np.ascontiguousarray(vertices, np.float32),
        np.ascontiguousarray(triangles, np.uint32),
        np.ascontiguousarray(normals / np.where(length > 0, length, 1), np.float32),
        np.ascontiguousarray(uv, np.float32),
    )


def _sheet(columns: int, rows: int) -> Array:
    """Triangles of a (rows, columns) vertex sheet, counter-clockwise for u right, v up."""
    i = np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)[None, :]
    i = i.ravel()
    lower = np.stack([i, i + 1, i + columns + 1], axis=1)
    upper = np.stack([i, i + columns + 1, i + columns], axis=1)
    return np.concatenate([lower, upper])


def merge(parts: Sequence[MeshData]) -> MeshData:
    """One mesh of several."""
    offsets = np.cumsum([0] + [len(p.vertices) for p in parts[:-1]])
    return MeshData(
        np.concatenate([p.vertices for p in parts]),
        np.concatenate([p.triangles + np.uint32(o) for p, o in zip(parts, offsets, strict=True)]),
        np.concatenate([p.normals for p in parts]),
        np.concatenate([p.uv for p in parts]),
    )


@lru_cache(maxsize=32)
def sphere(segments: int) -> MeshData:
    """Unit sphere of ``segments`` meridians and half as many parallels, inscribed.

    u runs once around z from +x, v from the +z pole (0) to the -z pole (1).
    """
    rings = segments // 2
    u = np.linspace(0, 1, segments + 1)
    v = np.linspace(0, 1, rings + 1)
    uu, vv = np.meshgrid(u, v)
    longitude, polar = 2 * np.pi * uu.ravel(), np.pi * vv.ravel()
    points = np.stack(
        [
            np.sin(polar) * np.cos(longitude),
            np.sin(polar) * np.sin(longitude),
            np.cos(polar),
        ],
        axis=1,
    )
    triangles = _sheet(segments + 1, rings + 1)[:, ::-1]
    # The first and the last ring are points: half of their triangles have no area.
    row = np.min(triangles, axis=1) // (segments + 1)
    corners = points[triangles]
    area = np.linalg.norm(
        np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]), axis=1
    )
    keep = (area > 1e-9) | ((row > 0) & (row < rings - 1))
    return mesh_of(points, triangles[keep], points, np.stack([uu.ravel(), vv.ravel()], axis=1))


# Each face: outward axis, the axis of u and its sign, the axis of v; u x v points outwards.
_FACES = (
    (0, 1.0, 1, 1.0, 2),
    (0, -1.0, 1, -1.0, 2),
    (1, 1.0, 0, -1.0, 2),
    (1, -1.0, 0, 1.0, 2),
    (2, 1.0, 0, 1.0, 1),
    (2, -1.0, 0, -1.0, 1),
)


def box(half: tuple[float, float, float], bevel: float = 0.0, steps: int = 2) -> MeshData:
    """Box of half extents [m]; edges rounded by ``bevel`` [m] in ``2 steps`` strips each.

    Texture coordinates are 0..1 on every face, upright on the four sides.
    """
    h = np.array(half, np.float64)
    b = min(bevel, 0.999 * float(h.min()))
    if b < 1e-5 * float(h.max()):
        b = 0.0  # float32 vertices could not tell its strips apart
    if b > 0:
        turn = np.tan(np.linspace(0, np.pi / 4, steps + 1))
        slope = np.concatenate([-turn[::-1], turn])
        side = np.concatenate([-np.ones(steps + 1), np.ones(steps + 1)])
    else:
        slope, side = np.zeros(2), np.array([-1.0, 1.0])
    n = len(slope)
    sheet = _sheet(n, n)
    parts = []
    for axis, sign, u_axis, u_sign, v_axis in _FACES:
        su, sv = np.meshgrid(side * u_sign, side)
        tu, tv = np.meshgrid(slope * u_sign, slope)
        normal = np.zeros((n * n, 3))
        normal[:, axis] = sign
        normal[:, u_axis] = tu.ravel()
        normal[:, v_axis] = tv.ravel()
        normal /= np.linalg.norm(normal, axis=1, keepdims=True)
        point = b * normal
        point[:, axis] += sign * (h[axis] - b)
        point[:, u_axis] += su.ravel() * (h[u_axis] - b)
        point[:, v_axis] += sv.ravel() * (h[v_axis] - b)
        uv = np.stack(
            [
                0.5 + 0.5 * u_sign * point[:, u_axis] / h[u_axis],
                0.5 - 0.5 * point[:, v_axis] / h[v_axis],
            ],
            axis=1,
        )
        parts.append(mesh_of(point, sheet, normal, uv))
    return merge(parts)


def revolve(profile: Sequence[tuple[float, float]], segments: int = 64) -> MeshData:
    """Solid of revolution about z.

    Args:
        profile: (radius, z) [m] from the bottom to the top, radii >= 0; start and end at radius 0
            for a closed solid. Corners sharper than 30 degrees stay sharp.
        segments: facets around.

    Raises:
        UserError: fewer than two points or a negative radius.
    """
    points = np.array(profile, np.float64)
    if len(points) < 2 or points[:, 0].min() < 0:
        raise UserError("revolve: the profile needs two points or more, with radii >= 0")
    step = np.diff(points, axis=0)
    length = np.hypot(step[:, 0], step[:, 1])
    points = points[np.concatenate([[True], length > 1e-12])]
    step = np.diff(points, axis=0)
    length = np.hypot(step[:, 0], step[:, 1])
    facet = np.stack([step[:, 1], -step[:, 0]], axis=1) / length[:, None]
    travelled = np.concatenate([[0], np.cumsum(length)])
    travelled /= travelled[-1]
    angle = np.linspace(0, 2 * np.pi, segments + 1)
    parts = []
    for i in range(len(step)):
        normals = []
        for neighbour in (i - 1, i + 1):
            smooth = 0 <= neighbour < len(step) and float(facet[i] @ facet[neighbour]) > math.cos(
                math.radians(30)
            )
            # Weighted by length: a narrow rounding does not bend the light on the long side.
            n = facet[i] * length[i]
            if smooth:
                n = n + facet[neighbour] * length[neighbour]
            normals.append(n / np.linalg.norm(n))
        ring = [points[i], points[i + 1]]
        vertices = np.concatenate(
            [
                np.stack([r * np.cos(angle), r * np.sin(angle), np.full_like(angle, z)], axis=1)
                for r, z in ring
            ]
        )
        normal = np.concatenate(
            [
                np.stack([n[0] * np.cos(angle), n[0] * np.sin(angle), np.full_like(angle, n[1])], 1)
                for n in normals
            ]
        )
        uv = np.concatenate(
            [
                np.stack([angle / (2 * np.pi), np.full_like(angle, 1 - t)], axis=1)
                for t in (travelled[i], travelled[i + 1])
            ]
        )
        triangles = _sheet(segments + 1, 2)
        corner = vertices[triangles]
        area = np.linalg.norm(
            np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1
        )
        parts.append(mesh_of(vertices, triangles[area > 1e-14], normal, uv))
    return merge(parts)


def cylinder(radius: float, height: float, segments: int = 64, rim: int = 3) -> MeshData:
    """Cylinder about z [m] with flat-mapped caps and rims rounded in ``rim`` strips (0: sharp)."""
    half = height / 2
    if rim:
        b = RIM * min(radius, half)
        bend = np.linspace(0, np.pi / 2, rim + 1)
        lower = [(radius - b + b * math.sin(t), -half + b - b * math.cos(t)) for t in bend]
        upper = [(radius - b + b * math.cos(t), half - b + b * math.sin(t)) for t in bend]
    else:
        lower, upper = [(radius, -half)], [(radius, half)]
    mesh = revolve([(0.0, -half), *lower, *upper, (0.0, half)], segments)
    uv = mesh.uv.copy()
    cap = np.abs(mesh.normals[:, 2]) > 0.999
    uv[cap] = 0.5 + 0.5 * mesh.vertices[cap, :2] / radius
    side = ~cap
    uv[side, 1] = 0.5 - mesh.vertices[side, 2] / height
    return MeshData(mesh.vertices, mesh.triangles, mesh.normals, uv)


def capsule(radius: float, height: float, segments: int = 64) -> MeshData:
    """Cylinder about z with half balls as ends, ``height`` [m] over all."""
    straight = height / 2 - radius
    bend = np.linspace(0, np.pi / 2, max(segments // 4, 2) + 1)
    lower = [(radius * math.sin(t), -straight - radius * math.cos(t)) for t in bend]
    upper = [(radius * math.cos(t), straight + radius * math.sin(t)) for t in bend]
    lower[0], upper[-1] = (0.0, -height / 2), (0.0, height / 2)
    return revolve([*lower, *upper], segments)


def flat_shaded(vertices: Array, faces: Sequence[Sequence[int]]) -> MeshData:
    """Convex-polygon faces with flat normals; each face is mapped to 0..1 of its longer side."""
    parts = []
    for face in faces:
        corner = np.asarray(vertices, np.float64)[list(face)]
        normal = np.cross(corner[1] - corner[0], corner[2] - corner[0])
        normal /= np.linalg.norm(normal)
        up = np.array([0.0, 0, 1]) if abs(normal[2]) < 0.99 else np.array([0.0, 1, 0])
        u_axis = np.cross(up, normal)
        u_axis /= np.linalg.norm(u_axis)
        v_axis = np.cross(normal, u_axis)
        uv = np.stack([corner @ u_axis, -(corner @ v_axis)], axis=1)
        uv = (uv - uv.min(axis=0)) / np.ptp(uv, axis=0).max()
        fan = np.array([[0, k, k + 1] for k in range(1, len(face) - 1)])
        parts.append(mesh_of(corner, fan, np.broadcast_to(normal, corner.shape), uv))
    return merge(parts)


def wedge(length: float, width: float, height: float) -> MeshData:
    """Ramp that rises along +x: a right triangular prism, centred on its centre of mass.

    Args:
        length: extent along x [m].
        width: along y [m].
        height: along z [m].

    Returns:
        A convex mesh; its lowest edge (x smallest) is the foot of the slope. The base lies at
        z = -height/3 and the tall side at x = +length/3.
    """
    x0, x1 = -2 * length / 3, length / 3
    z0, z1 = -height / 3, 2 * height / 3
    y = width / 2
    corners = np.array(
        [[x0, -y, z0], [x1, -y, z0], [x1, -y, z1], [x0, y, z0], [x1, y, z0], [x1, y, z1]]
    )
    faces = ((0, 1, 2), (3, 5, 4), (0, 3, 4, 1), (1, 4, 5, 2), (0, 2, 5, 3))
    return flat_shaded(corners, faces)


def dome(radius: float, height: float, segments: int = 64, rings: int = 16) -> MeshData:
    """Spherical cap on a flat base, centred on its centre of mass along z.

    Args:
        radius: of the base [m].
        height: of the cap [m], at most ``radius`` (then it is a half ball).
        segments: facets around.
        rings: facets from the rim to the top.

    Raises:
        UserError: height above radius.
    """
    if not 0 < height <= radius:
        raise UserError(f"dome: height {height} m must be in (0, radius {radius} m]")
    ball = (radius**2 + height**2) / (2 * height)
    # Centroid of a spherical cap above its base plane.
    centroid = 3 * (2 * ball - height) ** 2 / (4 * (3 * ball - height)) - (ball - height)
    start = math.asin(min(1.0, radius / ball))
    if height >= radius:
        start = math.pi / 2
    angles = np.linspace(start, 0, rings + 1)
    cap = [(ball * math.sin(t), ball * math.cos(t) - (ball - height)) for t in angles]
    cap[-1] = (0.0, height)
    profile = [(0.0, 0.0), *cap]
    return revolve([(r, z - centroid) for r, z in profile], segments)


def tessellate(shape: Shape, meshes: Meshes, *, uv_m: float | None = None) -> MeshData:
    """Finest mesh of any shape in its own frame.

    Args:
        shape: what to draw.
        meshes: content hash to mesh, for `Mesh` shapes.
        uv_m: metres of surface per unit of texture coordinates; None keeps 0..1 over the shape.

    Raises:
        UserError: a `Mesh` whose hash is not in ``meshes``.
    """
    return levels(shape, meshes, uv_m=uv_m)[-1][0]


def levels(
    shape: Shape, meshes: Meshes, *, uv_m: float | None = None
) -> list[tuple[MeshData, float]]:
    """Meshes of a shape from coarse to fine, each with its largest departure [m] from the finest.

    Arguments and errors as for `tessellate`.
    """
    if isinstance(shape, Sphere):
        out = []
        for segments in (16, 32, 64):
            unit = sphere(segments)
            ball = MeshData(unit.vertices * np.float32(shape.radius), *_rest(unit))
            if uv_m is not None:
                metres = np.array([2 * math.pi * shape.radius, math.pi * shape.radius])
                ball = _with_uv(ball, ball.uv * metres / uv_m)
            out.append((ball, shape.radius * (1 - math.cos(math.pi / segments))))
        return [*out[:-1], (out[-1][0], 0.0)]
    if isinstance(shape, Box):
        bevel = min(shape.bevel, 0.999 * min(shape.half_extents))
        steps = ((0.0, 1, 0.42 * bevel), (bevel, 1, 0.08 * bevel), (bevel, 2, 0.0))
        return [
            (_metric(box(shape.half_extents, b, n), uv_m), error)
            for b, n, error in (steps if bevel > 0 else steps[:1])
        ]
    if isinstance(shape, Cylinder):
        bevel = RIM * min(shape.radius, shape.height / 2)
        out = []
        for segments, rim in ((12, 0), (20, 0), (32, 1), (64, 3)):
            mesh = cylinder(shape.radius, shape.height, segments, rim)
            if uv_m is not None:
                cap = np.abs(mesh.normals[:, 2]) > 0.999
                uv = mesh.uv * np.array([2 * math.pi * shape.radius, shape.height]) / uv_m
                uv[cap] = mesh.vertices[cap, :2] / uv_m
                mesh = _with_uv(mesh, uv)
            facet = shape.radius * (1 - math.cos(math.pi / segments))
            out.append((mesh, facet + (0.42 - 0.34 * rim) * bevel))
        return [*out[:-1], (out[-1][0], 0.0)]
    if isinstance(shape, Capsule):
        out = []
        for segments in (12, 20, 32, 64):
            mesh = capsule(shape.radius, shape.height, segments)
            if uv_m is not None:
                length = 2 * math.pi * shape.radius, math.pi * shape.radius + shape.height
                mesh = _with_uv(mesh, mesh.uv * np.array(length) / uv_m)
            out.append((mesh, shape.radius * (1 - math.cos(math.pi / segments))))
        return [*out[:-1], (out[-1][0], 0.0)]
    made = [*shape.coarser, (shape.sha256, 0.0)]
    return [(_metric(_stored(key, meshes), uv_m), error) for key, error in made]


def _metric(mesh: MeshData, uv_m: float | None) -> MeshData:
    return mesh if uv_m is None else _with_uv(mesh, _cube_map(mesh) / uv_m)


def _rest(mesh: MeshData) -> tuple[NDArray[np.uint32], NDArray[np.float32], NDArray[np.float32]]:
    return mesh.triangles, mesh.normals, mesh.uv


def _with_uv(mesh: MeshData, uv: Array | NDArray[np.float32]) -> MeshData:
    return MeshData(
        mesh.vertices, mesh.triangles, mesh.normals, np.ascontiguousarray(uv, np.float32)
    )


def _stored(key: str, meshes: Meshes) -> MeshData:
    try:
        return meshes[key]
    except KeyError:
        raise UserError(
            f"mesh {key[:12]}... is not among the {len(meshes)} meshes of this scene: "
            "pass the mapping that was made with it"
        ) from None


def _cube_map(mesh: MeshData) -> Array:
    """Texture coordinates in metres: each vertex seen along its normal's largest axis."""
    axis = np.argmax(np.abs(mesh.normals), axis=1)
    sign = np.sign(np.take_along_axis(mesh.normals, axis[:, None], axis=1)[:, 0])
    p = mesh.vertices.astype(np.float64)
    u = np.where(axis == 0, p[:, 1] * sign, np.where(axis == 1, -p[:, 0] * sign, p[:, 0] * sign))
    v = np.where(axis == 2, -p[:, 1], -p[:, 2])
    return np.stack([u, v], axis=1)
