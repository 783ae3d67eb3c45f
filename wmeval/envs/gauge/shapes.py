"""Shapes of GAUGE's cards as collision geometry, looks and meshes."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wmeval.assets import gauge_cards as cards
from wmeval.assets.hulls import convex_hull, moments
from wmeval.assets.meshes import flat_shaded
from wmeval.conventions import matrix_to_quaternion
from wmeval.scene import (
    IDENTITY,
    Box,
    Collision,
    Cylinder,
    Mesh,
    MeshData,
    Quat,
    Shape,
    Sphere,
    Vec3,
)

F8 = NDArray[np.float64]

AROUND = 64
"""Facets of a round hole."""
_HALF = math.sqrt(0.5)
_UPRIGHT: dict[str, Quat] = {
    "z": IDENTITY,
    "x": (_HALF, 0.0, _HALF, 0.0),
    "y": (_HALF, -_HALF, 0.0, 0.0),
}
"""From the z axis, along which our cylinders lie, to another."""


@dataclass(frozen=True)
class Form:
    """What a body is to engines and pictures, in its own frame.

    Attributes:
        pieces: convex pieces, or one static mesh that is not; the first is the body's, each further
            one a fixed body of its own (engines that join hulls in one body are few).
        look: what is seen.
        meshes: by content hash.
        frame: turn of this frame against the card's, where the card's is not the principal one of
            the inertia.
    """

    pieces: tuple[Collision, ...]
    look: tuple[Collision, ...]
    meshes: dict[str, MeshData] = field(default_factory=dict)
    frame: Quat = IDENTITY


def form_of(shape: cards.Shape) -> Form:
    """A card's shape about its body's translation.

    Raises:
        TypeError: a shape that bends, or bricks, which are many bodies.
    """
    if isinstance(shape, cards.Box):
        x, y, z = shape.size
        return _primitive(Box(half_extents=(x / 2, y / 2, z / 2), bevel=0.02 * min(x, y, z)))
    if isinstance(shape, cards.Sphere):
        return _primitive(Sphere(radius=shape.diameter / 2))
    if isinstance(shape, cards.Cylinder):
        return _primitive(
            Cylinder(radius=shape.radius, height=shape.length), turn=_UPRIGHT[shape.axis]
        )
    if isinstance(shape, cards.Convex):
        return _convex(np.array(shape.points))
    if isinstance(shape, cards.NotchedBlock):
        return _solid([notched_corners(shape)])
    if isinstance(shape, cards.Prism):
        return _solid([prism_corners(shape, piece) for piece in shape.pieces])
    if isinstance(shape, cards.HoledBoard):
        mesh = holed_board(shape.size, shape.hole_radius)
        key = mesh.content_hash()
        part = (Collision(shape=Mesh(sha256=key, convex=False)),)
        return Form(part, part, {key: mesh})
    if isinstance(shape, cards.Frame):
        return _frame(shape)
    raise TypeError(f"{type(shape).__name__} is no rigid body")


def _primitive(shape: Shape, *, turn: Quat = IDENTITY) -> Form:
    part = (Collision(shape=shape, quaternion_wxyz=turn),)
    return Form(part, part)


def _convex(points: F8) -> Form:
    """A convex body in the principal frame of its inertia."""
    _, _, second = moments(convex_hull(points))
    frame = IDENTITY
    if float(np.abs(second - np.diag(np.diag(second))).max()) > 1e-4 * float(second.max()):
        _, axes = np.linalg.eigh(second)
        axes[:, 2] *= np.linalg.det(axes)
        points = points @ axes
        w, x, y, z = matrix_to_quaternion(axes).tolist()
        frame = (w, x, y, z)
    made = _solid([points])
    return Form(made.pieces, made.look, made.meshes, frame)


def _solid(pieces: list[F8]) -> Form:
    meshes: dict[str, MeshData] = {}
    parts: list[Collision] = []
    look: list[Collision] = []
    for corners in pieces:
        hull = convex_hull(corners)
        faceted = flat_shaded(hull.vertices.astype(np.float64), hull.triangles.tolist())
        for mesh, where in ((hull, parts), (faceted, look)):
            key = mesh.content_hash()
            meshes[key] = mesh
            where.append(Collision(shape=Mesh(sha256=key)))
    return Form(tuple(parts), tuple(look), meshes)


def notched_corners(shape: cards.NotchedBlock) -> F8:
    """Corners (N, 3) [m] of a block less the tetrahedron at one of its corners.

    What is cut off is the part beyond one plane, so that what stays is convex.
    """
    hx, hy, hz = (s / 2 for s in shape.size)
    angle = math.radians(shape.turn_deg)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])
    flat = np.array([(x, y) for x in (-hx, hx) for y in (-hy, hy)]) @ turn.T
    block = np.array([(x, y, z) for x, y in flat for z in (-hz, hz)])
    notch = np.array(shape.notch)
    away = np.linalg.norm(block[:, None] - notch[None], axis=2).min(axis=1)
    return np.concatenate([block[away > 1e-6], notch[1:]])


def prism_corners(shape: cards.Prism, piece: tuple[tuple[float, float], ...]) -> F8:
    """Corners (2 N, 3) [m] of one piece of a plate."""
    return np.array([(x, y, z) for x, y in piece for z in (shape.bottom, shape.top)])


def holed_board(size: Vec3, hole: float) -> MeshData:
    """A board with a round hole in its middle; its inner edge has `AROUND` facets."""
    hx, hy, hz = (s / 2 for s in size)
    angle = 2 * np.pi * np.arange(AROUND) / AROUND
    ways = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    outer = ways * np.minimum(hx / np.maximum(np.abs(ways[:, 0]), 1e-12),
                              hy / np.maximum(np.abs(ways[:, 1]), 1e-12))[:, None]  # fmt: skip
    rings = [(hole * ways, hz), (outer, hz), (outer, -hz), (hole * ways, -hz)]
    corners = np.concatenate([np.column_stack([xy, np.full(AROUND, z)]) for xy, z in rings])
    faces = []
    for k in range(AROUND):
        n = (k + 1) % AROUND
        for ring in range(4):
            a, b = ring * AROUND, (ring + 1) % 4 * AROUND
            faces.append((a + k, b + k, b + n, a + n))
    return flat_shaded(corners, faces)


def _frame(shape: cards.Frame) -> Form:
    """Four rods; what is clamped to them is not touched by them."""
    axes = [a for a in "xyz" if a != shape.axis]
    parts = []
    for along, across, length, apart in (
        (axes[0], axes[1], shape.size[0], shape.size[1]),
        (axes[1], axes[0], shape.size[1], shape.size[0]),
    ):
        for side in (-0.5, 0.5):
            place = [0.0, 0.0, 0.0]
            place["xyz".index(across)] = side * apart
            parts.append(
                Collision(
                    shape=Cylinder(radius=shape.radius, height=length + 2 * shape.radius),
                    position=(place[0], place[1], place[2]),
                    quaternion_wxyz=_UPRIGHT[along],
                )
            )
    return Form((), tuple(parts))
