"""Lofted meshes: a skin over cross-sections, with normals that are smooth up to a crease.

A loft is a stack of closed rings of equally many points. It is what limbs, heads and other shapes
without an axis of revolution are made of.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.scene import MeshData

Array = NDArray[np.float64]
Ints = NDArray[np.int64]


def superellipse(points: int, a: float, b: float, power: float = 2.0) -> Array:
    """Closed outline |x/a|^p + |y/b|^p = 1, counter-clockwise from +x.

    Args:
        points: how many, evenly in angle.
        a: half axis along x [m].
        b: half axis along y [m].
        power: 2 is an ellipse, larger ones come close to a rectangle.

    Returns:
        (points, 2) [m].
    """
    angle = 2 * np.pi * np.arange(points) / points
    c, s = np.cos(angle), np.sin(angle)
    k = 2.0 / power
    return np.stack([a * np.sign(c) * np.abs(c) ** k, b * np.sign(s) * np.abs(s) ** k], axis=1)


def loft(rings: Array, *, crease_deg: float = 50.0) -> MeshData:
    """Closed skin over rings, with a cap on the first and the last.

    Args:
        rings: (R, M, 3) [m]; each ring runs counter-clockwise seen from the end of the stack, so
            that the skin's outside is outside. A ring whose points coincide is a tip.
        crease_deg: faces that meet at a larger angle [deg] keep a sharp edge.

    Raises:
        UserError: fewer than two rings or three points.
    """
    r = np.asarray(rings, np.float64)
    if r.ndim != 3 or r.shape[0] < 2 or r.shape[1] < 3 or r.shape[2] != 3:
        raise UserError(f"loft: rings of shape {r.shape}; give (R >= 2, M >= 3, 3)")
    around = r.shape[1]
    caps = [ring.mean(axis=0) for ring in (r[0], r[-1])]
    stack = np.concatenate(
        [np.repeat(caps[0][None, None], around, 1), r, np.repeat(caps[1][None, None], around, 1)]
    )
    closed = np.concatenate([stack, stack[:, :1]], axis=1)
    rows, columns = closed.shape[:2]
    step = np.linalg.norm(np.diff(closed, axis=0), axis=2).mean(axis=1)
    along = np.concatenate([[0.0], np.cumsum(step)])
    along /= max(along[-1], 1e-12)
    uu, vv = np.meshgrid(np.arange(columns) / around, 1 - along)
    i = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)[None, :]).ravel()
    triangles = np.concatenate(
        [
            np.stack([i, i + 1, i + columns + 1], axis=1),
            np.stack([i, i + columns + 1, i + columns], axis=1),
        ]
    )
    uv = np.stack([uu.ravel(), vv.ravel()], axis=1)
    return shaded(closed.reshape(-1, 3), triangles, uv, crease_deg=crease_deg)


def shaded(vertices: Array, triangles: Ints, uv: Array, *, crease_deg: float) -> MeshData:
    """A mesh with normals averaged over the faces that meet below a crease angle.

    Args:
        vertices: (V, 3) [m]; those that lie in one place (to a micrometre) count as one.
        triangles: (F, 3), counter-clockwise from outside; those without area are left out.
        uv: (V, 2) texture coordinates.
        crease_deg: sharper edges stay sharp [deg].
    """
    v = np.asarray(vertices, np.float64)
    corner = v[triangles]
    weighted = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    area = np.linalg.norm(weighted, axis=1)
    keep = area > 1e-12
    triangles, weighted, area = triangles[keep], weighted[keep], area[keep]
    facing = weighted / area[:, None]
    _, place = np.unique(np.rint(v * 1e6).astype(np.int64), axis=0, return_inverse=True)
    place = np.asarray(place).ravel()
    corners = place[triangles].ravel()
    owner = np.repeat(np.arange(len(triangles)), 3)
    order = np.argsort(corners, kind="stable")
    starts = np.flatnonzero(np.diff(corners[order], prepend=-1))
    limit = math.cos(math.radians(crease_deg))
    normals = np.zeros((len(owner), 3))
    for group in np.split(order, starts[1:]):
        faces = owner[group]
        together = facing[faces] @ facing[faces].T >= limit
        normals[group] = together @ weighted[faces]
    normals /= np.linalg.norm(normals, axis=1, keepdims=True)
    # One vertex for each place, texture coordinate and normal that occurs.
    index = triangles.ravel()
    key = np.concatenate([index[:, None], np.rint(normals * 1e4).astype(np.int64)], axis=1)
    _, first, again = np.unique(key, axis=0, return_index=True, return_inverse=True)
    return MeshData(
        np.ascontiguousarray(v[index[first]], np.float32),
        np.ascontiguousarray(np.asarray(again).reshape(-1, 3), np.uint32),
        np.ascontiguousarray(normals[first], np.float32),
        np.ascontiguousarray(np.asarray(uv)[index[first]], np.float32),
    )


Section = tuple[float, float, float, float, float]
"""Height z, half width (x), half depth (y), middle x and middle y of a cross-section [m]."""


def column(
    sections: Sequence[Section],
    *,
    points: int = 20,
    power: float = 2.0,
    between: int = 2,
    crease_deg: float = 60.0,
) -> MeshData:
    """A loft along z through superelliptic cross-sections, rounded by a cubic through them.

    Args:
        sections: from the bottom to the top.
        points: around each ring.
        power: of the superellipses.
        between: rings per interval; the sections are followed by a monotone cubic.
        crease_deg: as for `loft`.

    Raises:
        UserError: sections that do not rise.
    """
    table = np.array(sections, np.float64)
    z = table[:, 0]
    if len(table) < 2 or np.diff(z).min() <= 0:
        raise UserError("column: give two sections or more whose heights rise")
    fine = np.unique(np.concatenate([np.linspace(a, b, between + 1) for a, b in pairwise(z)]))
    columns = [fine] + [monotone_cubic(z, table[:, k], fine) for k in range(1, 5)]
    rings = []
    for height, a, b, x, y in zip(*columns, strict=True):
        outline = superellipse(points, max(a, 1e-6), max(b, 1e-6), power)
        rings.append(np.column_stack([outline + np.array([x, y]), np.full(points, height)]))
    return loft(np.array(rings), crease_deg=crease_deg)


def monotone_cubic(x: Array, y: Array, at: Array) -> Array:
    """Monotone cubic interpolation (Fritsch & Butland 1984) of y(x) at points."""
    h = np.diff(x)
    slope = np.diff(y) / h
    m = np.zeros_like(y)
    m[0], m[-1] = slope[0], slope[-1]
    for k in range(1, len(y) - 1):
        a, b = slope[k - 1], slope[k]
        if a * b > 0:
            w1, w2 = 2 * h[k] + h[k - 1], h[k] + 2 * h[k - 1]
            m[k] = (w1 + w2) / (w1 / a + w2 / b)
    i = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(h) - 1)
    t = (at - x[i]) / h[i]
    t2, t3 = t * t, t * t * t
    out: Array = (
        (2 * t3 - 3 * t2 + 1) * y[i]
        + (t3 - 2 * t2 + t) * h[i] * m[i]
        + (3 * t2 - 2 * t3) * y[i + 1]
        + (t3 - t2) * h[i] * m[i + 1]
    )
    return out


def clustered(mesh: MeshData, cell: float) -> tuple[MeshData, float]:
    """A coarser mesh: vertices in one cell of a grid become one (Rossignac & Borrel 1993).

    Args:
        mesh: what to simplify.
        cell: edge of the grid's cells [m].

    Returns:
        The mesh, and how far [m] a vertex was moved at most.
    """
    v = mesh.vertices.astype(np.float64)
    _, place = np.unique(np.floor(v / cell).astype(np.int64), axis=0, return_inverse=True)
    place = np.asarray(place).ravel()
    count = np.bincount(place).astype(np.float64)
    total: Array = np.array([np.bincount(place, v[:, k]) for k in range(3)], np.float64).T
    middle = total / count[:, None]
    departure = float(np.linalg.norm(middle[place] - v, axis=1).max())
    corners = place[mesh.triangles]
    whole = (corners != np.roll(corners, 1, axis=1)).all(axis=1)
    triangles = mesh.triangles[whole].astype(np.int64)
    # Vertices of one cell that face another way stay apart: edges stay sharp.
    used, again = np.unique(triangles, return_inverse=True)
    way = mesh.normals[used].astype(np.float64)
    axis = np.abs(way).argmax(axis=1)
    side = np.take_along_axis(way, axis[:, None], axis=1)[:, 0] > 0
    key = np.stack([place[used], axis * 2 + side], axis=1)
    _, first, group = np.unique(key, axis=0, return_index=True, return_inverse=True)
    group = np.asarray(group).ravel()
    normals: Array = np.array([np.bincount(group, way[:, k]) for k in range(3)], np.float64).T
    normals /= np.maximum(np.linalg.norm(normals, axis=1, keepdims=True), 1e-12)
    return (
        MeshData(
            np.ascontiguousarray(middle[place[used[first]]], np.float32),
            np.ascontiguousarray(group[np.asarray(again).reshape(-1, 3)], np.uint32),
            np.ascontiguousarray(normals, np.float32),
            np.ascontiguousarray(mesh.uv[used[first]]),
        ),
        departure,
    )
