"""Skins: closed surfaces over a grid of places, with coarser stand-ins for pictures from afar."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wmeval.assets import meshes
from wmeval.errors import UserError
from wmeval.scene import MeshData

Array = NDArray[np.float64]
StandIns = tuple[tuple[MeshData, float], ...]
"""Coarse to fine: mesh, largest departure [m] from the finest."""

STRIDES = (8, 4, 2)


@dataclass(frozen=True, eq=False)
class Skin:
    """A mesh with its stand-ins."""

    mesh: MeshData
    coarser: StandIns = ()


def directions(columns: int, rows: int) -> Array:
    """Unit vectors (rows + 1, columns + 1, 3): once around z from +x, from the +z pole to -z.

    The last column repeats the first, as texture coordinates ask for.
    """
    longitude = np.linspace(0, 2 * np.pi, columns + 1)
    polar = np.linspace(0, np.pi, rows + 1)[:, None]
    x, y = np.sin(polar) * np.cos(longitude), np.sin(polar) * np.sin(longitude)
    out = np.stack([x, y, np.broadcast_to(np.cos(polar), x.shape)], axis=-1)
    out[:, -1] = out[:, 0]
    out[0], out[-1] = (0, 0, 1), (0, 0, -1)
    return np.asarray(out, np.float64)


def round_skin(
    shape: Callable[[Array], Array],
    *,
    columns: int = 64,
    rows: int = 40,
    axis: Literal["x", "z"] = "z",
) -> Skin:
    """A skin around a star-like thing.

    Args:
        shape: places (N, 3) [m] of unit vectors (N, 3), poles at +z and -z.
        columns: facets around, a multiple of 8.
        rows: from pole to pole, a multiple of 8.
        axis: where the +z pole ends up; "x" turns z, x, y into x, y, z.
    """
    unit = directions(columns, rows)
    places = shape(unit.reshape(-1, 3)).reshape(unit.shape)
    places[0], places[-1] = places[0, 0], places[-1, 0]
    if axis == "x":
        places = places[..., [2, 0, 1]]
    return grid_skin(places)


def grid_skin(places: Array) -> Skin:
    """A skin over places (R, C, 3) [m], closed around: the last column repeats the first.

    Rows run downwards seen from outside with columns to the right. A row whose places coincide is
    a point; else the ends stay open. Texture coordinates are column and row, 0..1.

    Raises:
        UserError: rows or columns that the strides of the stand-ins do not divide.
    """
    rows, columns = places.shape[0] - 1, places.shape[1] - 1
    if rows % STRIDES[0] or columns % STRIDES[0]:
        raise UserError(f"skin: {rows} x {columns} cells; give multiples of {STRIDES[0]}")
    normals = _normals(places)
    u, v = np.meshgrid(np.linspace(0, 1, columns + 1), np.linspace(0, 1, rows + 1))
    uv = np.stack([u, v], axis=-1)

    def mesh(stride: int) -> MeshData:
        cut = (slice(None, None, stride), slice(None, None, stride))
        return _triangulated(places[cut], normals[cut], uv[cut])

    coarser = tuple((mesh(s), _departure(places, s)) for s in STRIDES)
    return Skin(mesh(1), coarser)


def turned_skin(profile: Sequence[tuple[float, float]], segments: int = 64) -> Skin:
    """A surface of revolution as `wmeval.assets.meshes.revolve` makes it, with stand-ins."""
    widest = max(r for r, _ in profile)
    return Skin(
        meshes.revolve(profile, segments),
        tuple(
            (meshes.revolve(profile, n), widest * (1 - math.cos(math.pi / n)))
            for n in (segments // 4, segments // 2)
        ),
    )


def ball_skin(radius: float) -> Skin:
    """A ball of 64 meridians."""
    # Half a cell away along both of its sides.
    made = [(meshes.sphere(n), radius * (1 - math.cos(math.pi / n) ** 2)) for n in (16, 32, 64)]
    scaled = [
        (MeshData(m.vertices * np.float32(radius), m.triangles, m.normals, m.uv), off)
        for m, off in made
    ]
    return Skin(scaled[-1][0], tuple(scaled[:-1]))


def mapped(skin: Skin, change: Callable[[MeshData], MeshData]) -> Skin:
    """The skin with each of its meshes changed by a motion: departures stay."""
    return Skin(change(skin.mesh), tuple((change(mesh), off) for mesh, off in skin.coarser))


def _quads(columns: int, rows: int) -> NDArray[np.int64]:
    i = (np.arange(rows)[:, None] * (columns + 1) + np.arange(columns)[None, :]).ravel()
    first = np.stack([i, i + columns + 2, i + 1], axis=1)
    second = np.stack([i, i + columns + 1, i + columns + 2], axis=1)
    return np.concatenate([first, second])


def _triangulated(places: Array, normals: Array, uv: Array) -> MeshData:
    rows, columns = places.shape[0] - 1, places.shape[1] - 1
    triangles = _quads(columns, rows)
    flat = places.reshape(-1, 3)
    a, b, c = (flat[triangles[:, k]] for k in range(3))
    area = np.linalg.norm(np.cross(b - a, c - a), axis=1)
    return MeshData(
        np.ascontiguousarray(flat, np.float32),
        np.ascontiguousarray(triangles[area > 1e-14], np.uint32),
        np.ascontiguousarray(normals.reshape(-1, 3), np.float32),
        np.ascontiguousarray(uv.reshape(-1, 2), np.float32),
    )


def _normals(places: Array) -> Array:
    """Smooth normals, the same on both sides of the seam and all over a point."""
    rows, columns = places.shape[0] - 1, places.shape[1] - 1
    triangles = _quads(columns, rows)
    flat = places.reshape(-1, 3)
    a, b, c = (flat[triangles[:, k]] for k in range(3))
    facing = np.cross(b - a, c - a)
    total = np.zeros_like(flat)
    for k in range(3):
        np.add.at(total, triangles[:, k], facing)
    total = total.reshape(places.shape)
    total[:, 0] += total[:, -1]
    total[:, -1] = total[:, 0]
    extent = float(np.ptp(flat, axis=0).max())
    for row in (0, -1):
        if float(np.ptp(places[row], axis=0).max()) < 1e-9 * extent:
            total[row] = total[row, :-1].sum(axis=0)
    length = np.linalg.norm(total, axis=-1, keepdims=True)
    return np.asarray(total / np.where(length > 0, length, 1))


def _departure(places: Array, stride: int) -> float:
    """Largest distance [m] of a place from the coarse triangles over its own cell."""
    rows, columns = (n - 1 for n in places.shape[:2])
    r, c = np.meshgrid(np.arange(rows + 1), np.arange(columns + 1), indexing="ij")
    r0 = np.minimum(r // stride * stride, rows - stride)
    c0 = np.minimum(c // stride * stride, columns - stride)
    down = ((r - r0) / stride)[..., None]
    right = ((c - c0) / stride)[..., None]
    p00, p01 = places[r0, c0], places[r0, c0 + stride]
    p10, p11 = places[r0 + stride, c0], places[r0 + stride, c0 + stride]
    above = p00 + right * (p01 - p00) + down * (p11 - p01)
    below = p00 + down * (p10 - p00) + right * (p11 - p10)
    flat = np.where(down <= right, above, below)
    return float(np.linalg.norm(flat - places, axis=-1).max())
