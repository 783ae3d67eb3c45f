"""What the objects' builders share: looks, parts, swept pieces."""

from __future__ import annotations

from typing import Any

import numpy as np

from wmeval.assets.models import Part
from wmeval.assets.skin import Array, Skin, grid_skin, mapped, round_skin
from wmeval.assets.solids import moved, turned
from wmeval.conventions import apart
from wmeval.scene import Color, Material, MeshData, Texture

METAL: Color = (0.62, 0.63, 0.65)
STALK: tuple[Color, ...] = ((0.16, 0.085, 0.035), (0.30, 0.21, 0.09))
SEPAL: tuple[Color, ...] = ((0.07, 0.17, 0.025), (0.16, 0.29, 0.05))


def look(name: str, builder: str, *colors: Color, seed: int = 0, **more: Any) -> Material:
    """A material of one texture; ``more`` are fields of `Material`."""
    return Material(name=name, texture=Texture(builder=builder, colors=colors, seed=seed), **more)


def part(skin: Skin | MeshData, material: Material) -> Part:
    """A piece of a skin, or of a mesh that has no stand-ins."""
    if isinstance(skin, MeshData):
        return Part(skin, material)
    return Part(skin.mesh, material, skin.coarser)


def placed(
    skin: Skin, x: float, y: float, z: float, *, tilt: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> Skin:
    """Turned about x, then y, then z [deg], and shifted."""

    def change(mesh: MeshData) -> MeshData:
        for axis, angle in zip(((1, 0, 0), (0, 1, 0), (0, 0, 1)), tilt, strict=True):
            if angle:
                mesh = turned(mesh, axis, angle)
        return moved(mesh, x, y, z)

    return mapped(skin, change)


def ellipsoid(a: float, b: float, c: float, *, columns: int = 24, rows: int = 16) -> Skin:
    """Half axes [m] along x, y, z."""
    return round_skin(lambda d: d * np.array([a, b, c]), columns=columns, rows=rows)


def sweep(path: Array, side: Array, half_side: Array, half_up: Array, *, columns: int = 8) -> Skin:
    """Ellipses along a path: stalks, sepals.

    Args:
        path: (R, 3) [m], R - 1 a multiple of 8.
        side: (3,) or (R, 3), about across the path.
        half_side: (R,) half widths along ``side`` [m]; 0 at the ends closes them.
        half_up: (R,) half thickness across it [m].
        columns: facets around, a multiple of 8.
    """
    along = np.gradient(path, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True)
    across = np.broadcast_to(side, path.shape)
    across = across - along * np.einsum("ij,ij->i", across, along)[:, None]
    across = across / np.linalg.norm(across, axis=1, keepdims=True)
    up = np.cross(across, along)
    angle = np.linspace(0, 2 * np.pi, columns + 1)
    c, s = np.cos(angle)[None, :, None], np.sin(angle)[None, :, None]
    rings = (
        path[:, None]
        + c * (across * half_side[:, None])[:, None]
        + s * (up * half_up[:, None])[:, None]
    )
    rings[:, -1] = rings[:, 0]
    return grid_skin(rings)


def stalk(points: Array, radius: tuple[float, float], *, columns: int = 8) -> Skin:
    """A closed round stalk through points [m], from one radius to another."""
    rows = 16
    t = np.linspace(0, 1, rows - 1)
    knots = np.linspace(0, 1, len(points))
    inner = np.stack([np.interp(t, knots, points[:, k]) for k in range(3)], axis=1)
    path = np.concatenate([inner[:1] - 1e-5 * (inner[1] - inner[0]), inner,
                           inner[-1:] + 1e-5 * (inner[-1] - inner[-2])])  # fmt: skip
    r = np.concatenate([[0.0], np.interp(t, [0, 1], radius), [0.0]])
    side = np.array([0.0, 1, 0])
    return sweep(path, side, r, r, columns=columns)


def polar(d: Array) -> tuple[Array, Array, Array]:
    """Height z, distance from the axis and longitude of unit vectors (N, 3)."""
    x, y, z = apart(d)
    return z, np.hypot(x, y), np.arctan2(y, x)


def around(radius: Array, longitude: Array, height: Array) -> Array:
    """Places (N, 3) of cylindrical coordinates."""
    return np.stack([radius * np.cos(longitude), radius * np.sin(longitude), height], axis=1)


def bell(x: Array, width: float) -> Array:
    """exp(-(x / width)^2)."""
    return np.asarray(np.exp(-((x / width) ** 2)))


def bumps(d: Array, seed: int, frequency: float, octaves: int = 3) -> Array:
    """Noise of unit deviation on directions (N, 3)."""
    from wmeval.assets.noise import solid_noise

    rng = np.random.default_rng(seed)
    return solid_noise(d.T, rng, frequency=frequency, octaves=octaves).astype(np.float64)
