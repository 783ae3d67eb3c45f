"""Which points of a sample's actors a camera sees: rays against the setting and the actors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.meshes import tessellate
from wmeval.clock import SceneClock
from wmeval.conventions import quaternion_to_matrix
from wmeval.scene import Body, Camera, Collision, Material, Mesh, MeshData, Meshes, Scene, Sun
from wmeval.sim.protocol import EventRules, WorldSpec
from wmeval.sim.world import LocalWorld

F8 = NDArray[np.float64]

SHORT_OF_M = 5e-3
"""A ray ends this far before its point: what touches the point there hides nothing."""

_MOST_TRIANGLES = 40_000
"""Of one piece; the ray engine takes no larger meshes than three times this."""


@dataclass(frozen=True, eq=False)
class Solid:
    """An actor for rays, in its body's frame.

    Attributes:
        points: on its surface (P, 3) [m]; they are looked for.
        planes: of its hull (F, 4), outward normal and offset: inside n x + d <= 0.
        radius: of a ball about the origin that holds it [m].
    """

    points: F8
    planes: F8
    radius: float


def solid_of(hull: MeshData, points: F8) -> Solid:
    """A solid of a convex mesh with outward triangles and the points to look for."""
    v = hull.vertices.astype(np.float64)
    a, b, c = (v[hull.triangles[:, k]] for k in range(3))
    normal = np.cross(b - a, c - a)
    length = np.linalg.norm(normal, axis=1)
    normal = normal[length > 0] / length[length > 0, None]
    planes = np.column_stack([normal, -np.einsum("ij,ij->i", normal, a[length > 0])])
    return Solid(points, planes, float(np.linalg.norm(v, axis=1).max()))


def crossed(solid: Solid, position: F8, rotation: F8, origins: F8, ends: F8) -> NDArray[np.bool_]:
    """Whether ways (N, 3) -> (N, 3) lead through a solid's hull.

    Args:
        solid: what may stand in the way.
        position: of its body (3,) [m].
        rotation: of its body (3, 3).
        origins: [m], world frame.
        ends: [m], world frame.
    """
    way = ends - origins
    to = position - origins
    t = np.clip(np.einsum("ij,ij->i", to, way) / np.einsum("ij,ij->i", way, way), 0.0, 1.0)
    near = np.linalg.norm(to - t[:, None] * way, axis=1) < solid.radius
    out = np.zeros(len(origins), bool)
    if near.any():
        o, d = (origins[near] - position) @ rotation, way[near] @ rotation
        over = o @ solid.planes[:, :3].T + solid.planes[:, 3]
        speed = d @ solid.planes[:, :3].T
        with np.errstate(divide="ignore", invalid="ignore"):
            at = -over / speed
        enters = np.where(speed < 0, at, 0.0).max(axis=1).clip(0.0)
        leaves = np.where(speed > 0, at, 1.0).min(axis=1).clip(None, 1.0)
        outside = ((speed == 0) & (over > 0)).any(axis=1)
        out[near] = (enters < leaves) & ~outside
    return out


class Surroundings:
    """What of a setting stops a ray: its opaque pieces, as they stand.

    Args:
        bodies: of the setting.
        materials: of the setting.
        meshes: that its bodies name.
    """

    def __init__(
        self, bodies: Sequence[Body], materials: Sequence[Material], meshes: Meshes
    ) -> None:
        clear = {m.name for m in materials if m.opacity < 1.0}
        pieces: dict[str, MeshData] = {}
        still: list[Body] = []
        for body in bodies:
            for mesh in _opaque(body, clear, meshes):
                key = mesh.content_hash()
                pieces[key] = mesh
                shape = Mesh(sha256=key, convex=False)
                still.append(
                    Body(
                        name=f"piece_{len(still)}",
                        role="piece",
                        motion="static",
                        instance=0,
                        collision=(Collision(shape=shape),),
                    )
                )
        self._world: LocalWorld | None = None
        if still:
            scene = Scene(
                name="surroundings",
                bodies=tuple(still),
                materials=(),
                cameras=(Camera(name="none", position=(1, 0, 0), target=(0, 0, 0)),),
                sun=Sun(direction=(0.0, 0.0, -1.0)),
            )
            clock = SceneClock(Fraction(1, 24), Fraction(1, 24))
            self._world = LocalWorld(WorldSpec(scene, pieces, (), clock, EventRules()))
            self._world.reset()

    def reached(self, origins: F8, ends: F8) -> F8:
        """Where ways (N, 3) -> (N, 3) are stopped, as a fraction (N,) of each; inf: nowhere."""
        if self._world is None:
            return np.full(len(origins), np.inf)
        bodies, points = self._world.raycast(origins, ends)
        met = np.linalg.norm(points - origins, axis=1) / np.linalg.norm(ends - origins, axis=1)
        return np.where(bodies >= 0, np.minimum(met, 1.0), np.inf)

    def free(self, origins: F8, ends: F8) -> NDArray[np.bool_]:
        """Whether ways (N, 3) -> (N, 3) are free."""
        return np.isinf(self.reached(origins, ends))


def visible_shares(
    solids: Sequence[Solid],
    positions: Sequence[F8],
    rotations: Sequence[F8],
    eyes: F8,
    surroundings: Surroundings,
) -> F8:
    """Least share over the actors of points that are seen, from each eye (A,).

    A point is seen when neither the setting nor another actor stands before it; an actor hides
    nothing of itself, so that a whole object in plain view counts as a whole.

    Args:
        solids: the actors.
        positions: of their bodies, (3,) each [m].
        rotations: of their bodies, (3, 3) each.
        eyes: (A, 3) [m].
        surroundings: the setting.
    """
    worlds = [s.points @ r.T + p for s, p, r in zip(solids, positions, rotations, strict=True)]
    counts = [len(w) * len(eyes) for w in worlds]
    origins = np.concatenate([np.repeat(eyes, len(w), axis=0) for w in worlds])
    ends = np.concatenate([np.tile(w, (len(eyes), 1)) for w in worlds])
    way = ends - origins
    length = np.linalg.norm(way, axis=1, keepdims=True)
    ends = ends - way * (SHORT_OF_M / np.maximum(length, 2 * SHORT_OF_M))
    seen = surroundings.free(origins, ends)
    shares = np.ones(len(eyes))
    start = 0
    for i, count in enumerate(counts):
        part = slice(start, start + count)
        mine = seen[part]
        for j, (solid, position, rotation) in enumerate(
            zip(solids, positions, rotations, strict=True)
        ):
            if j != i:
                mine &= ~crossed(solid, position, rotation, origins[part], ends[part])
        shares = np.minimum(shares, mine.reshape(len(eyes), -1).mean(axis=1))
        start += count
    return shares


def _opaque(body: Body, clear: set[str], meshes: Meshes) -> list[MeshData]:
    """A body's opaque visuals in the world's frame, in pieces of bounded size."""
    out = []
    turn = quaternion_to_matrix(np.array(body.quaternion_wxyz))
    for visual in body.visuals:
        if visual.material in clear:
            continue
        mesh = tessellate(visual.shape, meshes)
        own = quaternion_to_matrix(np.array(visual.quaternion_wxyz))
        v = mesh.vertices.astype(np.float64) @ own.T + np.array(visual.position)
        v = v @ turn.T + np.array(body.position)
        for start in range(0, len(mesh.triangles), _MOST_TRIANGLES):
            used, triangles = np.unique(
                mesh.triangles[start : start + _MOST_TRIANGLES], return_inverse=True
            )
            out.append(
                MeshData(
                    np.ascontiguousarray(v[used], np.float32),
                    np.ascontiguousarray(triangles.reshape(-1, 3), np.uint32),
                    np.zeros((len(used), 3), np.float32),
                    np.zeros((len(used), 2), np.float32),
                )
            )
    return out
