"""Models of everyday objects: what is seen, what collides, from a card or a user's file.

A model's frame has its origin at the centre of mass of its hull at uniform density; its axes are
the hull's principal axes. Engines then need a mass and three numbers. Built-in objects stand
upright in it; a user's file keeps its shape, and `Model.turn` says how it stands.
"""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources.abc import Traversable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.cards import BlenderKit, Builtin, ObjectCard
from wmeval.assets.hulls import convex_hull, departure_of, moments
from wmeval.assets.meshes import sphere
from wmeval.assets.objects import OBJECTS
from wmeval.assets.skin import StandIns
from wmeval.conventions import matrix_to_quaternion
from wmeval.errors import UserError
from wmeval.scene import (
    IDENTITY,
    Collision,
    Material,
    Mesh,
    MeshData,
    Quat,
    Shape,
    Sphere,
    Vec3,
    Visual,
)

Array = NDArray[np.float64]

HULL_VERTICES = 128
"""Most vertices of a hull. Of our objects a vertex lies at most 0.9 % of the size outside of it."""
ROLLING_HULL_VERTICES = 512
"""Most vertices of the hull of what rolls; at most 0.5 % of the size. Facets brake: on a slope of
22 degrees, a ball of 128 vertices covers 82 % of a smooth ball's way in a second, of 512 94 %."""

_ROUND = 1e-5
"""A thing whose hull's vertices lie on one sphere to this share of its radius is a ball."""
_BALL_MERIDIANS = 32
_PRINCIPAL = 1e-5
"""Products of inertia up to this share of the sum of moments are those of principal axes."""


@dataclass(frozen=True, eq=False)
class Part:
    """A piece of an object.

    Attributes:
        mesh: in the object's frame [m], counter-clockwise from outside.
        material: its look.
        coarser: stand-ins for pictures from afar, coarse to fine, with their departure [m].
        picture: texels of the material's texture (`wmeval.assets.pictures`), if it is a picture.
    """

    mesh: MeshData
    material: Material
    coarser: StandIns = ()
    picture: MeshData | None = None

    def shape(self) -> tuple[Mesh, dict[str, MeshData]]:
        """Shape for a scene, and the meshes that it refers to by content hash."""
        meshes = {self.mesh.content_hash(): self.mesh}
        if self.picture is not None:
            meshes[self.picture.content_hash()] = self.picture
        coarser = []
        for mesh, off in self.coarser:
            key = mesh.content_hash()
            meshes[key] = mesh
            coarser.append((key, off))
        return Mesh(sha256=self.mesh.content_hash(), coarser=tuple(coarser)), meshes


@dataclass(frozen=True, eq=False)
class Model:
    """An object in the frame of its body.

    Attributes:
        parts: what is seen.
        hull: what collides; its centre of mass at uniform density is the origin, its principal
            axes are the axes.
        size: extents of all parts along x, y, z as it stands [m].
        box_center: middle of that box from the origin, as it stands [m]: a place for the body is
            that of the box, minus this.
        turn: body's frame to the object as it stands, ``wxyz``.
        departure: how far [m] a part reaches beyond the hull's faces, at most.
    """

    parts: tuple[Part, ...]
    hull: MeshData
    size: Vec3
    box_center: Vec3
    turn: Quat = IDENTITY
    departure: float = 0.0

    @property
    def ball(self) -> float | None:
        """Radius [m] of what is a ball about the origin; None of everything else."""
        vertices = self.hull.vertices.astype(np.float64)
        return float(np.ptp(vertices[:, 2])) / 2 if _on_a_sphere(vertices) else None

    def collision(self, *, exact_balls: bool = True) -> Collision:
        """What collides: the hull; of a ball the ball itself, which rolls without facets.

        Args:
            exact_balls: false keeps hulls throughout, as published.
        """
        radius = self.ball if exact_balls else None
        shape: Shape = (
            Mesh(sha256=self.hull.content_hash()) if radius is None else Sphere(radius=radius)
        )
        return Collision(shape=shape)

    def visuals(self) -> tuple[Visual, ...]:
        """What is seen, for a body."""
        return tuple(Visual(shape=p.shape()[0], material=p.material.name) for p in self.parts)

    def materials(self) -> tuple[Material, ...]:
        """Each look once."""
        return tuple({p.material.name: p.material for p in self.parts}.values())

    def meshes(self) -> dict[str, MeshData]:
        """All meshes by content hash, the hull too."""
        out = {self.hull.content_hash(): self.hull}
        for part in self.parts:
            out |= part.shape()[1]
        return out


def build_object(
    card: ObjectCard,
    folder: Path | Traversable,
    as_glb: Callable[[Path], Path] | None = None,
) -> Model:
    """The model of a card.

    Args:
        card: of the object.
        folder: where the card lies; a file's path is relative to it.
        as_glb: makes a .glb of a .blend; None: these cannot be read.

    Returns:
        A built-in object has the extents of its card's ``size_m``, to which each axis is scaled.
        Built-in objects are also sheared by a little (horizontally, and upwards not at all), so
        that their principal axes are the axes; files keep their shape.

    Raises:
        UserError: an unknown builder, a file that is missing or no mesh, an asset of BlenderKit.
    """
    asset = card.asset
    if isinstance(asset, BlenderKit):
        raise UserError(
            f"object {card.id!r}: its BlenderKit asset {asset.id} cannot be fetched from here: "
            "fetch it with Blender, save it as .glb, and give a card with "
            "asset: {source: file, path: NAME.glb}"
        )
    limit = ROLLING_HULL_VERTICES if "rolling" in card.tags else HULL_VERTICES
    if isinstance(asset, Builtin):
        return _built_in(card.id, asset.builder, asset.size_m, limit)
    from wmeval.assets.model_files import read_model

    parts = read_model(Path(str(folder)) / asset.path, asset.scale, card.id, as_glb)
    try:
        return settled(parts, limit=limit)
    except UserError as error:
        raise UserError(f"object {card.id!r}: {asset.path}: {error}") from error


@lru_cache(maxsize=128)
def _built_in(name: str, builder: str, size_m: Vec3 | None, limit: int) -> Model:
    row = OBJECTS.get(builder)
    if row is None:
        raise UserError(
            f"object {name!r}: no builder {builder!r}: choose from {', '.join(OBJECTS)}, or give "
            "a file"
        )
    module, function = row.split(":")
    parts = getattr(importlib.import_module(module), function)()
    return settled(parts, size_m=size_m, limit=limit, align=True)


def settled(
    parts: Sequence[Part],
    *,
    size_m: Vec3 | None = None,
    limit: int = HULL_VERTICES,
    align: bool = False,
) -> Model:
    """Parts in any place as a model.

    Args:
        parts: what is seen.
        size_m: extents to scale to [m]; None leaves them.
        limit: most vertices of the hull.
        align: shear horizontally until the principal axes are the axes.

    Raises:
        UserError: parts without volume.
    """
    pieces = list(parts)
    if size_m is not None:
        pieces = _scaled(pieces, np.diag(_factors(pieces, size_m)))
    full = convex_hull(_points(pieces))
    if _on_a_sphere(full.vertices.astype(np.float64)):
        hull = _ball_hull(full)
    else:
        if align:
            pieces = _scaled(pieces, _aligning(moments(full)[2]))
            if size_m is not None:
                pieces = _scaled(pieces, np.diag(_factors(pieces, size_m)))
        hull = convex_hull(_points(pieces), limit)
        if align:
            # What was left out moves the moments a little: the hull alone makes up for it.
            hull = _changed(hull, _aligning(moments(hull)[2]))
        hull = _fitted(hull, pieces)
    _, centre, second = moments(hull)
    pieces = [
        replace(
            p,
            mesh=_shifted(p.mesh, centre),
            coarser=tuple((_shifted(m, centre), off) for m, off in p.coarser),
        )
        for p in pieces
    ]
    hull = _shifted(hull, centre)
    low, high = _bounds([p.mesh for p in pieces])
    axes = _principal_axes(second)
    turn = IDENTITY
    if axes is not None:
        pieces, hull = _scaled(pieces, axes.T), _changed(hull, axes.T)
        w, i, j, k = matrix_to_quaternion(axes).tolist()
        turn = (w, i, j, k)
    return Model(
        parts=tuple(pieces),
        hull=hull,
        size=_vec3(high - low),
        box_center=_vec3((low + high) / 2),
        turn=turn,
        departure=departure_of(_points(pieces), hull),
    )


def _vec3(a: Array) -> Vec3:
    x, y, z = a.tolist()
    return (x, y, z)


def _principal_axes(second: Array) -> Array | None:
    """Principal axes as columns, those nearest to x, y, z; None: x, y, z are so themselves.

    Args:
        second: central second moments (3, 3).
    """
    off = second - np.diag(np.diag(second))
    if float(np.abs(off).max()) <= _PRINCIPAL * float(np.trace(second)):
        return None
    axes = np.asarray(np.linalg.eigh(second)[1])
    named: list[Array] = [
        axes[:, order] * signs
        for order in map(list, itertools.permutations(range(3)))
        for signs in np.array(list(itertools.product((-1.0, 1.0), repeat=3)))
    ]
    return max((t for t in named if np.linalg.det(t) > 0), key=lambda t: float(np.trace(t)))


def _points(parts: Sequence[Part]) -> Array:
    every = np.concatenate([p.mesh.vertices for p in parts])
    return np.asarray(np.unique(every, axis=0), np.float64)


def _fitted(hull: MeshData, parts: Sequence[Part]) -> MeshData:
    """The hull, its box made that of the parts."""
    low, high = _bounds([p.mesh for p in parts])
    here, there = _bounds([hull])
    scaled = _changed(hull, np.diag((high - low) / (there - here)))
    return _shifted(scaled, _bounds([scaled])[0] - low)


def _on_a_sphere(points: Array) -> bool:
    """Whether many points lie on one sphere about the middle of their box."""
    r = np.linalg.norm(points - (points.min(axis=0) + points.max(axis=0)) / 2, axis=1)
    return len(points) > 100 and float(np.ptp(r)) <= _ROUND * float(r.max())


def _ball_hull(full: MeshData) -> MeshData:
    """The hull of a ball, even in all directions: its moments have no axes."""
    low, high = _bounds([full])
    radius = float((high - low).max()) / 2
    unit = sphere(_BALL_MERIDIANS).vertices.astype(np.float64)
    return convex_hull(unit * radius + (low + high) / 2)


def _bounds(meshes: Sequence[MeshData]) -> tuple[Array, Array]:
    low = np.min([m.vertices.min(axis=0) for m in meshes], axis=0).astype(np.float64)
    high = np.max([m.vertices.max(axis=0) for m in meshes], axis=0).astype(np.float64)
    return low, high


def _factors(parts: Sequence[Part], size_m: Vec3) -> Array:
    low, high = _bounds([p.mesh for p in parts])
    return np.asarray(np.array(size_m) / (high - low))


def _aligning(second: Array) -> Array:
    """Unit upper triangular A with A M A^T diagonal: x and y lean along what is above them.

    It is the inverse of U in M = U D U^T. Level planes stay level.
    """
    upper = np.linalg.cholesky(second[::-1, ::-1])[::-1, ::-1]
    return np.asarray(np.linalg.inv(upper / np.diag(upper)))


def _changed(mesh: MeshData, matrix: Array) -> MeshData:
    vertices = mesh.vertices.astype(np.float64) @ matrix.T
    normals = mesh.normals.astype(np.float64) @ np.linalg.inv(matrix)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    return MeshData(
        np.ascontiguousarray(vertices, np.float32),
        mesh.triangles,
        np.ascontiguousarray(normals / np.where(length > 0, length, 1), np.float32),
        mesh.uv,
    )


def _scaled(parts: Sequence[Part], matrix: Array) -> list[Part]:
    most = float(np.linalg.norm(matrix, 2))
    return [
        replace(
            p,
            mesh=_changed(p.mesh, matrix),
            coarser=tuple((_changed(m, matrix), most * off) for m, off in p.coarser),
        )
        for p in parts
    ]


def _shifted(mesh: MeshData, by: Array) -> MeshData:
    vertices = mesh.vertices.astype(np.float64) - by
    return MeshData(
        np.ascontiguousarray(vertices, np.float32), mesh.triangles, mesh.normals, mesh.uv
    )


def triangles_of(model: Model) -> int:
    """How many triangles are drawn from near."""
    return sum(len(p.mesh.triangles) for p in model.parts)
