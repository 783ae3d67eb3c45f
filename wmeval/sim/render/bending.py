"""Cloth, solids and ropes in pictures: each is a body of its own whose mesh is written anew.

To the rest of the renderer a deformable is one more body, after all others, at the middle of its
vertices; its mesh follows the state's vertices. Pure numpy.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wmeval.deformables import rest_shape
from wmeval.errors import UserError
from wmeval.scene import Body, Cloth, Mesh, MeshData, Meshes, Rope, Scene, Visual
from wmeval.sim.protocol import RenderState
from wmeval.sim.render.pieces import Pieces

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]
I8 = NDArray[np.int64]

AROUND = 12
"""Facets around a rope."""
GROWTH = 1.5
"""Of the greatest distance within what bends: how much farther it is looked for."""


@dataclass(frozen=True, eq=False)
class Bend:
    """What bends, in pictures.

    Attributes:
        name: of the deformable.
        body: index among the bodies that pictures know of.
        kind: "cloth", "soft" or "rope".
        triangles: (F, 3) of its own vertices; of a rope of its skin's.
        radius: of a rope [m].
        both: both sides are seen.
        reach: no vertex is farther from the middle [m].
        slot, piece: rows of `Pieces.slots` and of `Pieces`; -1 until it is laid out.
    """

    name: str
    body: int
    kind: str
    triangles: I8
    radius: float
    both: bool
    reach: float
    slot: int = -1
    piece: int = -1

    def surface(self, vertices: F8) -> tuple[F8, F8]:
        """Points (V, 3) and unit normals (V, 3) of the drawn mesh, in the frame of the vertices."""
        if self.kind == "rope":
            return _tube(vertices, self.radius)
        corners = vertices[self.triangles]
        facing = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        if self.kind == "soft":
            # Solids have edges: every triangle has corners of its own.
            return corners.reshape(-1, 3), np.repeat(_unit(facing), 3, axis=0)
        normals = np.zeros_like(vertices)
        for k in range(3):
            np.add.at(normals, self.triangles[:, k], facing)
        return vertices, _unit(normals)

    def drawn_triangles(self) -> NDArray[np.uint32]:
        """(F, 3) of `surface`."""
        if self.kind == "soft":
            return np.arange(3 * len(self.triangles), dtype=np.uint32).reshape(-1, 3)
        return self.triangles.astype(np.uint32)

    def rows_in(self, pieces: Pieces) -> tuple[int, int]:
        """First row and end of its mesh among the vertices of all."""
        first = int(pieces.slots[self.slot, 2])
        count = len(self.triangles) * 3 if self.kind == "soft" else int(self.triangles.max()) + 1
        return first, first + count * (2 if self.both else 1)

    def rows(self, vertices: F8, uv: F4) -> F4:
        """What the renderer's buffer of vertices holds, (V, 8), about the vertices' middle.

        Args:
            vertices: of the state, (V, 3) [m].
            uv: texture coordinates of the mesh, as often as it is drawn.
        """
        points, normals = self.surface(vertices)
        points = points - middle(vertices)
        if self.both:
            points, normals = np.concatenate([points] * 2), np.concatenate([normals, -normals])
        return np.concatenate([points, normals, uv], axis=1).astype(np.float32)


def middle(vertices: F8) -> F8:
    """Middle (3,) of the box about vertices."""
    out: F8 = (vertices.min(axis=0) + vertices.max(axis=0)) / 2
    return out


def stand_ins(scene: Scene, meshes: Meshes) -> tuple[Scene, Meshes, tuple[Bend, ...]]:
    """A scene in which bodies stand for what bends and is seen, and what they are."""
    bodies, made, bends = list(scene.bodies), dict(meshes), []
    looks = {m.name: m for m in scene.materials}
    for item in scene.deformables:
        if not item.material:
            continue
        rest = rest_shape(item, meshes)
        kind = item.kind
        triangles = (
            _skin(len(rest.vertices)) if isinstance(item, Rope) else rest.triangles.astype(np.int64)
        )
        span = float(np.linalg.norm(np.ptp(rest.vertices, axis=0)))
        bend = Bend(
            item.name, len(bodies), kind, triangles,
            item.radius if isinstance(item, Rope) else 0.0,
            isinstance(item, Cloth) and looks[item.material].two_sided,
            GROWTH * span,
        )  # fmt: skip
        points, normals = bend.surface(rest.vertices)
        # In world coordinates, so that two that are alike have meshes of their own.
        mesh = MeshData(
            np.ascontiguousarray(points, np.float32),
            bend.drawn_triangles(),
            np.ascontiguousarray(normals, np.float32),
            np.zeros((len(points), 2), np.float32),
        )
        key = mesh.content_hash()
        made[key] = mesh
        x, y, z = middle(rest.vertices).tolist()
        bodies.append(
            Body(
                name=item.name, role=item.role, motion="kinematic", instance=item.instance,
                visuals=(Visual(shape=Mesh(sha256=key, convex=False), material=item.material),),
                position=(x, y, z),
            )
        )  # fmt: skip
        bends.append(bend)
    if not bends:
        return scene, meshes, ()
    shown = scene.model_copy(update={"bodies": tuple(bodies), "deformables": ()})
    return shown, made, tuple(bends)


def laid_out(pieces: Pieces, bends: Sequence[Bend]) -> tuple[Pieces, tuple[Bend, ...]]:
    """Pieces whose bounds hold what bends wherever it goes, and where it lies among them."""
    if not bends:
        return pieces, ()
    half, radius = pieces.half.copy(), pieces.radius.copy()
    placed = []
    for bend in bends:
        piece = int(np.flatnonzero(pieces.body == bend.body)[0])
        half[piece], radius[piece] = bend.reach / 2, bend.reach
        placed.append(replace(bend, piece=piece, slot=int(pieces.slot[piece])))
    return replace(pieces, half=half, radius=radius), tuple(placed)


def bent_state(state: RenderState, bends: Sequence[Bend]) -> RenderState:
    """The state with a body for everything that bends, at the middle of its vertices.

    Raises:
        UserError: the state lacks vertices, or they are not finite.
    """
    if not bends:
        return state
    places = []
    for bend in bends:
        if bend.name not in state.vertices:
            raise UserError(f"the state to draw has no vertices of {bend.name!r}")
        vertices = state.vertices[bend.name]
        if not np.isfinite(vertices).all():
            raise UserError(f"the state to draw holds NaN or infinite vertices of {bend.name!r}")
        places.append(middle(vertices))
    count = len(bends)
    hidden = state.hidden
    return replace(
        state,
        position=np.concatenate([state.position, np.array(places)]),
        quaternion_wxyz=np.concatenate(
            [state.quaternion_wxyz, np.tile([1.0, 0.0, 0.0, 0.0], (count, 1))]
        ),
        active=np.concatenate([state.active, np.ones(count, bool)]),
        hidden=None if hidden is None else np.concatenate([hidden, np.zeros(count, bool)]),
    )


def fingerprint(vertices: F8) -> float:
    """A number that tells vertices from others: exact in float64."""
    digest = hashlib.sha256(np.ascontiguousarray(vertices, np.float64).tobytes()).digest()
    return float(int.from_bytes(digest[:6], "little") + 1)


def _unit(v: F8) -> F8:
    length = np.linalg.norm(v, axis=1, keepdims=True)
    out: F8 = v / np.where(length > 0, length, 1.0)
    return out


def _skin(nodes: int) -> I8:
    """Triangles of a tube of rings of `AROUND` points."""
    i, k = np.meshgrid(np.arange(nodes - 1), np.arange(AROUND), indexing="ij")
    a = (i * AROUND + k).ravel()
    b = (i * AROUND + (k + 1) % AROUND).ravel()
    return np.concatenate(
        [np.stack([a, b, b + AROUND], axis=1), np.stack([a, b + AROUND, a + AROUND], axis=1)]
    )


def _tube(nodes: F8, radius: float) -> tuple[F8, F8]:
    """Rings about a line of nodes (N, 3), with a frame that is carried along it."""
    along = _unit(np.gradient(nodes, axis=0))
    side = np.cross(along[0], np.eye(3)[int(np.argmin(np.abs(along[0])))])
    sides = np.empty_like(nodes)
    for k, t in enumerate(along):
        side = side - (side @ t) * t
        side = side / max(float(np.linalg.norm(side)), 1e-12)
        sides[k] = side
    across = np.cross(along, sides)
    angle = 2 * np.pi * np.arange(AROUND) / AROUND
    normals = (
        np.cos(angle)[None, :, None] * sides[:, None]
        + np.sin(angle)[None, :, None] * across[:, None]
    )
    points = nodes[:, None] + radius * normals
    return points.reshape(-1, 3), normals.reshape(-1, 3)
