"""Markers of a set-up as functions of its state: on what bends, and on rigid bodies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wmeval.assets import gauge_cards as cards
from wmeval.assets.gauge_markers import MarkerSet
from wmeval.assets.gauge_proxies import Proxies, hungarian, on_triangles
from wmeval.conventions import quaternion_to_matrix
from wmeval.datasets.rollout import Rollout
from wmeval.deformables import rest_shape
from wmeval.envs.gauge.build import Built, build
from wmeval.errors import UserError
from wmeval.records import StateLog
from wmeval.scene import Meshes, Scene
from wmeval.sim.protocol import StateView

F8 = NDArray[np.float64]
I8 = NDArray[np.intp]
Method = Literal["barycentric", "hungarian"]
_NEAR = 1e-6


@dataclass(frozen=True, eq=False)
class Worn:
    """Markers on one carrier.

    Attributes:
        carrier: name of a deformable, or of a rigid body.
        rows: (M,) which of all markers.
        proxies: on a deformable: weighted vertices.
        local: on a rigid body: (M, 3) places in its frame [m].
    """

    carrier: str
    rows: I8
    proxies: Proxies | None
    local: F8


@dataclass(frozen=True, eq=False)
class Followers:
    """All markers of a set-up; ``count`` of them."""

    count: int
    worn: tuple[Worn, ...]

    def now(self, scene: Scene, view: StateView) -> F8:
        """Where they are in a state, (M, 3) [m]."""
        out = np.empty((self.count, 3))
        for one in self.worn:
            if one.proxies is not None:
                out[one.rows] = one.proxies.follow(view.vertices(one.carrier))
            else:
                position, quaternion = view.pose(scene.index(one.carrier))
                turn = quaternion_to_matrix(np.array(quaternion))
                out[one.rows] = np.array(position) + one.local @ turn.T
        return out

    def track(self, state: StateLog) -> F8:
        """Where they are in every state, (N, M, 3) [m]."""
        out = np.empty((len(state), self.count, 3))
        for one in self.worn:
            if one.proxies is not None:
                out[:, one.rows] = one.proxies.follow(state.vertices[one.carrier])
            else:
                i = state.body(one.carrier)
                turn = quaternion_to_matrix(state.quaternion_wxyz[:, i])
                out[:, one.rows] = state.position[:, None, i] + np.einsum(
                    "nij,mj->nmi", turn, one.local
                )
        return out


def _barycentric(points: F8, vertices: F8, triangles: I8, names: list[str]) -> Proxies:
    return on_triangles(points, vertices, triangles, names=names)


def _hungarian(points: F8, vertices: F8, triangles: I8, names: list[str]) -> Proxies:
    return hungarian(points, vertices, names=names)


METHODS: Mapping[Method, Callable[[F8, F8, I8, list[str]], Proxies]] = {
    "barycentric": _barycentric,
    "hungarian": _hungarian,
}
"""Ours: points of the body itself, where the marker is; and the published one: nodes near by."""


def followers(
    scene: Scene, meshes: Meshes, markers: MarkerSet, method: Method = "barycentric"
) -> Followers:
    """Attach markers to what carries them: the nearest of what bends, or a rigid body around them.

    Args:
        scene: at its start.
        meshes: of it.
        markers: at the start.
        method: row of `METHODS`.

    Raises:
        UserError: no such method, or a marker that is 1 cm or further from anything.
    """
    if method not in METHODS:
        raise UserError(f"no markers by {method!r}: choose from {', '.join(METHODS)}")
    shapes = {d.name: rest_shape(d, meshes) for d in scene.deformables}
    solid = {b.name: b for b in scene.bodies if b.role == "actor" and b.collision}
    nearest: list[str] = []
    for point in markers.points:
        inside = [
            n for n, b in solid.items() if _outside(point, b.position, b.collision[0]) <= _NEAR
        ]
        gaps = {n: _gap(point, s.vertices, s.triangles) for n, s in shapes.items()}
        # Where a rigid cube and what is glued to it meet, the one that the marker is on.
        best = min(gaps, key=lambda n: gaps[n]) if gaps else ""
        nearest.append(inside[0] if inside and (not best or gaps[best] > _NEAR) else best)
    worn = []
    for carrier in dict.fromkeys(nearest):
        rows = np.array([k for k, n in enumerate(nearest) if n == carrier], np.intp)
        points = markers.points[rows]
        if carrier in shapes:
            shape = shapes[carrier]
            names = [markers.names[k] for k in rows.tolist()]
            proxies = METHODS[method](
                points, shape.vertices, shape.triangles.astype(np.intp), names
            )
            worn.append(Worn(carrier, rows, proxies, np.zeros((0, 3))))
        else:
            body = solid[carrier]
            turn = quaternion_to_matrix(np.array(body.quaternion_wxyz))
            worn.append(Worn(carrier, rows, None, (points - np.array(body.position)) @ turn))
    return Followers(len(markers.points), tuple(worn))


def _gap(point: F8, vertices: F8, triangles: I8) -> float:
    return float(on_triangles(point[None], vertices, triangles, limit=np.inf).errors[0])


def _outside(point: F8, position: tuple[float, ...], part: object) -> float:
    """By how much a point lies outside a level box [m]."""
    half = getattr(getattr(part, "shape", None), "half_extents", None)
    if half is None:
        return float("inf")
    return float((np.abs(point - np.array(position)) - np.array(half)).max())


def marker_tracks(rollout: Rollout, method: Method = "barycentric") -> F8:
    """Where the markers are in every state of a rollout of a family, (N, M, 3) [m].

    Args:
        rollout: of a family that wears markers.
        method: row of `METHODS`.

    Raises:
        UserError: the rollout is of no family, or of one without markers.
    """
    return track_of(rollout.scene, rollout.meshes, rollout.log.state, rollout.metadata, method)


def track_of(
    scene: Scene, meshes: Meshes, state: StateLog, metadata: Mapping[str, object], method: Method
) -> F8:
    """`marker_tracks` of its parts."""
    told = metadata.get("gauge")
    if not isinstance(told, Mapping):
        raise UserError("markers are of rollouts of GAUGE's families; this is of another scene")
    card = cards.family(str(told["family"]))
    built: Built = build(card, str(told["subtask"]), str(told["material"]))
    if built.markers is None:
        raise UserError(f"{card.id} wears no markers: compare its bodies' poses")
    return followers(scene, meshes, built.markers, method).track(state)
