"""Collision shapes for PyBullet, and exact mass properties of what PyBullet only approximates."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

import numpy as np

from wmeval.conventions import Array, quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import (
    IDENTITY,
    Body,
    Box,
    Capsule,
    Collision,
    Cylinder,
    Mesh,
    MeshData,
    Meshes,
    Sphere,
)

HULL_MARGIN = 1e-3
CONCAVE_MARGIN = 1e-4

_LEND = threading.Lock()
_ROWS: list[list[float]] = []
_NUMBERS: list[int] = []
_VERTICES: list[list[float]] = []
_INDICES: list[int] = []
"""What meshes are handed to PyBullet in. It never lets go of a sequence that it is given, nor of
the sequence's items, so that every mesh would stay in memory for ever: it gets the same objects
each time, filled anew."""


@dataclass(frozen=True)
class BulletShape:
    """A shape made in a client.

    Attributes:
        index: PyBullet's number of the shape.
        margin: collision margin to set [m]; None leaves PyBullet's (inside the primitives).
        exact_inertia: PyBullet computes the inertia exactly.
    """

    index: int
    margin: float | None
    exact_inertia: bool


def make_shape(p: Any, client: int, body: Body, meshes: Meshes) -> BulletShape:
    """Create the collision shape of a body in a PyBullet client.

    Raises:
        UserError: a missing mesh, a concave mesh that is not static, or meshes within a compound.
    """
    parts = body.collision
    if len(parts) > 1:
        return BulletShape(_compound(p, client, body), None, False)
    part = parts[0]
    arguments = _arguments(p, body, part, meshes)
    if not _centred(part):
        w, x, y, z = part.quaternion_wxyz
        arguments["collisionFramePosition"] = part.position
        arguments["collisionFrameOrientation"] = (x, y, z, w)
    with _LEND:
        if isinstance(part.shape, Mesh):
            arguments |= _lent(meshes[part.shape.sha256], convex=part.shape.convex)
        index: int = p.createCollisionShape(physicsClientId=client, **arguments)
    if index < 0:
        raise UserError(f"body {body.name!r}: PyBullet refused its {part.shape.kind} shape")
    margin = None
    if isinstance(part.shape, Mesh):
        margin = HULL_MARGIN if part.shape.convex else CONCAVE_MARGIN
    exact = _centred(part) and not isinstance(part.shape, Mesh | Capsule)
    return BulletShape(index, margin, exact)


def _centred(part: Collision) -> bool:
    return part.position == (0.0, 0.0, 0.0) and part.quaternion_wxyz == IDENTITY


def _arguments(p: Any, body: Body, part: Collision, meshes: Meshes) -> dict[str, Any]:
    shape = part.shape
    if isinstance(shape, Sphere):
        return {"shapeType": p.GEOM_SPHERE, "radius": shape.radius}
    if isinstance(shape, Box):
        return {"shapeType": p.GEOM_BOX, "halfExtents": shape.half_extents}
    if isinstance(shape, Cylinder):
        return {"shapeType": p.GEOM_CYLINDER, "radius": shape.radius, "height": shape.height}
    if isinstance(shape, Capsule):
        straight = shape.height - 2 * shape.radius
        return {"shapeType": p.GEOM_CAPSULE, "radius": shape.radius, "height": straight}
    if shape.sha256 not in meshes:
        raise UserError(f"body {body.name!r}: mesh {shape.sha256[:12]}... is not among the meshes")
    if shape.convex:
        return {"shapeType": p.GEOM_MESH}
    if body.motion != "static":
        raise UserError(
            f"body {body.name!r} moves, but its mesh is concave: make it static, give the mesh "
            "convex=true, or build it from several shapes"
        )
    return {"shapeType": p.GEOM_MESH, "flags": p.GEOM_FORCE_CONCAVE_TRIMESH}


def _lent(mesh: MeshData, *, convex: bool) -> dict[str, Any]:
    """A mesh in the lists that PyBullet may keep; valid until the next call."""
    _ROWS.extend([0.0, 0.0, 0.0] for _ in range(len(mesh.vertices) - len(_ROWS)))
    for row, place in zip(_ROWS, mesh.vertices.astype(np.float64).tolist(), strict=False):
        row[:] = place
    _VERTICES[:] = _ROWS[: len(mesh.vertices)]
    if convex:
        return {"vertices": _VERTICES}
    _NUMBERS.extend(range(len(_NUMBERS), len(mesh.vertices)))
    _INDICES[:] = [_NUMBERS[k] for k in mesh.triangles.ravel().tolist()]
    return {"vertices": _VERTICES, "indices": _INDICES}


def _compound(p: Any, client: int, body: Body) -> int:
    kinds, radii, halves, lengths = [], [], [], []
    for part in body.collision:
        shape = part.shape
        if isinstance(shape, Mesh):
            raise UserError(
                f"body {body.name!r}: bullet makes compounds of spheres, boxes, cylinders and "
                "capsules; join the meshes into one hull or use primitives"
            )
        kind = _arguments(p, body, part, {})
        kinds.append(kind["shapeType"])
        radii.append(0.0 if isinstance(shape, Box) else shape.radius)
        halves.append(shape.half_extents if isinstance(shape, Box) else (0.0, 0.0, 0.0))
        lengths.append(kind.get("height", 0.0))
    orientations = [
        (x, y, z, w) for w, x, y, z in (part.quaternion_wxyz for part in body.collision)
    ]
    index: int = p.createCollisionShapeArray(
        shapeTypes=kinds,
        radii=radii,
        halfExtents=halves,
        lengths=lengths,
        collisionFramePositions=[part.position for part in body.collision],
        collisionFrameOrientations=orientations,
        physicsClientId=client,
    )
    if index < 0:
        raise UserError(f"body {body.name!r}: PyBullet refused its compound shape")
    return index


# --- mass properties ----------------------------------------------------------------------------


def mass_properties(body: Body, meshes: Meshes) -> tuple[float, Array, Array]:
    """Volume [m^3], centre (3,) [m] and inertia (3, 3) [kg m^2] about it.

    At uniform density, in which overlapping parts of a compound count twice, unless the body says
    its inertia.
    """
    volumes, centres, tensors = [], [], []
    for part in body.collision:
        volume, centre, unit = _unit_inertia(part, body, meshes)
        rotation = quaternion_to_matrix(np.array(part.quaternion_wxyz))
        volumes.append(volume)
        centres.append(np.array(part.position) + rotation @ centre)
        tensors.append(rotation @ unit @ rotation.T * volume)
    total = sum(volumes)
    centre = sum(v * c for v, c in zip(volumes, centres, strict=True)) / total
    inertia = np.zeros((3, 3))
    for volume, c, tensor in zip(volumes, centres, tensors, strict=True):
        d = c - centre
        inertia += tensor + volume * (d @ d * np.eye(3) - np.outer(d, d))
    if body.inertia is not None:
        return float(total), np.zeros(3), np.diag(body.inertia)
    return float(total), np.asarray(centre), inertia * (body.mass / total)


def centred_inertia(body: Body, meshes: Meshes) -> Array:
    """Inertia (3, 3) [kg m^2] about the origin of a body's frame, in it.

    Raises:
        UserError: its centre of mass is elsewhere, by more than 1/1000 of its size.
    """
    volume, centre, inertia = mass_properties(body, meshes)
    if float(np.abs(centre).max()) > 1e-3 * volume ** (1 / 3):
        raise UserError(
            f"body {body.name!r}: the centre of mass of its shapes is at "
            f"{centre.round(4).tolist()} m in its own frame; move the shapes so that it is at 0"
        )
    return inertia


def principal_inertia(body: Body, meshes: Meshes) -> tuple[float, float, float]:
    """Diagonal inertia [kg m^2] in the body's frame.

    Raises:
        UserError: the body's frame is not its principal frame at its centre of mass.
    """
    inertia = centred_inertia(body, meshes)
    off = inertia - np.diag(np.diag(inertia))
    if float(np.abs(off).max()) > 1e-3 * float(np.diag(inertia).max()):
        raise UserError(
            f"body {body.name!r}: its shapes are turned against their principal axes of inertia; "
            "turn the body's frame into them"
        )
    ixx, iyy, izz = (float(x) for x in np.diag(inertia))
    return ixx, iyy, izz


def _unit_inertia(part: Collision, body: Body, meshes: Meshes) -> tuple[float, Array, Array]:
    """Volume, centre and inertia per unit of mass in the part's frame."""
    shape = part.shape
    zero = np.zeros(3)
    if isinstance(shape, Sphere):
        return 4 / 3 * np.pi * shape.radius**3, zero, np.eye(3) * 0.4 * shape.radius**2
    if isinstance(shape, Box):
        x, y, z = (h * h for h in shape.half_extents)
        volume = 8.0 * float(np.prod(shape.half_extents))
        return volume, zero, np.diag([y + z, x + z, x + y]) / 3
    if isinstance(shape, Cylinder):
        r2, h2 = shape.radius**2, shape.height**2
        side = (3 * r2 + h2) / 12
        return np.pi * r2 * shape.height, zero, np.diag([side, side, r2 / 2])
    if isinstance(shape, Capsule):
        r, h = shape.radius, shape.height - 2 * shape.radius
        rod, ball = np.pi * r**2 * h, 4 / 3 * np.pi * r**3
        volume = rod + ball
        # Half balls whose centres of mass lie 3/8 r beyond the rod's ends.
        ends = ball * (0.4 * r**2 + h**2 / 4 + 3 / 8 * h * r)
        side = (rod * (3 * r**2 + h**2) / 12 + ends) / volume
        about_z = (rod * r**2 / 2 + ball * 0.4 * r**2) / volume
        return float(volume), zero, np.diag([side, side, about_z])
    import trimesh

    mesh = meshes[shape.sha256]
    hull = trimesh.Trimesh(mesh.vertices, mesh.triangles).convex_hull
    hull.density = 1.0
    tensor = np.asarray(hull.moment_inertia, np.float64) / float(hull.volume)
    return float(hull.volume), np.asarray(hull.center_mass, np.float64), tensor
