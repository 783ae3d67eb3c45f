"""How deep things lie in one another, against every collision shape of the scene.

Probes are bodies' corners, balls and rims, and the vertices of what bends; shapes may be fixed, led
or moving.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_to_matrix
from wmeval.deformables import rest_shape
from wmeval.eval.sweep.solids import Solid, probes_of, solids_of
from wmeval.records import StateLog
from wmeval.scene import Collision, Meshes, Scene

F8 = NDArray[np.float64]
I8 = NDArray[np.intp]

LIMIT = 5e-3
"""Depth at which a cell counts as penetrated [m] (ours): a tenth of the smallest cube here."""
SHALLOW = 2e-3
"""Up to here the way out is by the nearest face [m]; deeper, by the one that was entered by, for a
thin board may be passed through."""
NEAR = 0.02
"""Vertices that never come so near to a body's surroundings are not looked at [m]."""


@dataclass(frozen=True)
class Depth:
    """The deepest place of a record: ``what`` in ``into``, at ``time`` [s], ``depth`` [m]."""

    depth: float
    what: str = ""
    into: str = ""
    time: float = 0.0


@dataclass(frozen=True, eq=False)
class _Probe:
    body: int
    points: F8
    radius: float


def greatest_depth(scene: Scene, meshes: Meshes, state: StateLog) -> float:
    """Depth of `deepest` [m]."""
    return deepest(scene, meshes, state).depth


def deepest(scene: Scene, meshes: Meshes, state: StateLog) -> Depth:
    """Where something lies deepest in something else; a depth of 0 where nothing does.

    Bodies that a joint holds together, that are deep in one another from the start (a clamp in
    what it holds), and vertices that are pinned, are the scene's own making: not looked at. Two
    bodies of which neither is dynamic are the script's.

    Args:
        scene: as it was built.
        meshes: of it.
        state: recorded states.
    """
    track = _track(scene, state)
    solids = [s for i, b in enumerate(scene.bodies) for s in solids_of(i, b, meshes)]
    worst = Depth(0.0)

    def judge(depth: F8, what: str, into: int, begin: int) -> None:
        nonlocal worst
        found = float(depth.max(initial=0.0))
        if found > worst.depth:
            row = begin + int(np.unravel_index(int(depth.argmax()), depth.shape)[0])
            at = float(state.times[max(0, row - 1)])
            worst = Depth(found, what, scene.bodies[into].name, at)

    pairs = list(_pairs(scene, meshes, track, solids))
    flying = [p for p in pairs if scene.bodies[p.solid.body].motion == "dynamic"]
    for pair in (p for p in pairs if scene.bodies[p.solid.body].motion != "dynamic"):
        probe, rows = pair.probe, slice(max(0, int(pair.near[0]) - 1), int(pair.near[-1]) + 1)
        x = track.position[rows, None, probe.body] + np.einsum(
            "nij,mj->nmi", track.turns[rows, probe.body], probe.points
        )
        depth = _depths(x, probe.radius, pair.solid, track, rows)
        if rows.start > 0 or depth[0].max(initial=0.0) <= LIMIT:
            judge(depth, scene.bodies[probe.body].name, pair.solid.body, rows.start)
    for pair, row, found in _in_flight(flying, track):
        judge(np.array([found]), scene.bodies[pair.probe.body].name, pair.solid.body, row)
    for item in scene.deformables:
        if item.name not in state.vertices:
            continue
        held = {v for p in item.pins for v in p.vertices}
        start = rest_shape(item, meshes).vertices
        free = np.array([v for v in range(len(start)) if v not in held], np.intp)
        vertices = np.concatenate([start[None], state.vertices[item.name]])
        for solid in solids:
            near = _near(vertices, free, solid, track)
            if len(near):
                depth = _depths(vertices[:, near], 0.0, solid, track, slice(0, len(vertices)))
                judge(depth[:, depth[0] <= LIMIT], item.name, solid.body, 0)
    return worst


@dataclass(frozen=True, eq=False)
class _Track:
    """Poses of all bodies: as the scene puts them, then as they were recorded."""

    position: F8
    turns: F8


def _track(scene: Scene, state: StateLog) -> _Track:
    position = np.array([b.position for b in scene.bodies]).reshape(1, -1, 3)
    quaternion = np.array([b.quaternion_wxyz for b in scene.bodies]).reshape(1, -1, 4)
    return _Track(
        np.concatenate([position, state.position]),
        quaternion_to_matrix(np.concatenate([quaternion, state.quaternion_wxyz])),
    )


@dataclass(frozen=True, eq=False)
class _Pair:
    probe: _Probe
    solid: Solid
    near: I8
    """Frames in which they may touch."""


def _pairs(scene: Scene, meshes: Meshes, track: _Track, solids: list[Solid]) -> Iterator[_Pair]:
    """Probes with the solids that they come near to."""
    held = {
        frozenset((scene.index(j.body), scene.index(j.other)))
        for j in scene.joints
        if j.other and not j.collide
    }
    dynamic = np.array([b.motion == "dynamic" for b in scene.bodies])
    bodies = np.array([s.body for s in solids], np.intp)
    reach = np.array([s.reach for s in solids])
    for i, body in enumerate(scene.bodies):
        apart = np.linalg.norm(track.position[:, i, None] - track.position[:, bodies], axis=-1)
        may = (bodies != i) & (dynamic[i] | dynamic[bodies])
        for part in body.collision:
            points, radius = probes_of(part, meshes)
            if not len(points):
                continue
            own = float(np.linalg.norm(points, axis=1).max()) + radius
            near = (apart < own + reach) & may
            probe = _Probe(i, points, radius)
            for k in np.flatnonzero(near.any(axis=0)).tolist():
                if frozenset((i, int(bodies[k]))) not in held:
                    yield _Pair(probe, solids[k], np.flatnonzero(near[:, k]))


def _in_flight(pairs: list[_Pair], track: _Track) -> Iterator[tuple[_Pair, int, float]]:
    """The deepest frame of each pair whose solid moves freely, by the nearest face.

    Between frames such bodies pass faces unseen, so that nothing says by which one they came in.
    Pairs of the same shapes are looked at together: a wall has a thousand.
    """
    alike: dict[tuple[bytes, float, Collision], list[_Pair]] = {}
    for pair in pairs:
        key = pair.probe.points.tobytes(), pair.probe.radius, pair.solid.part
        alike.setdefault(key, []).append(pair)
    for group in alike.values():
        probe, solid = group[0].probe, group[0].solid
        rows = np.concatenate([p.near for p in group])
        of = np.repeat(np.arange(len(group)), [len(p.near) for p in group])
        i = np.array([p.probe.body for p in group])[of]
        j = np.array([p.solid.body for p in group])[of]
        turn = np.einsum("nji,njk->nik", track.turns[rows, j], track.turns[rows, i])
        between = track.position[rows, i] - track.position[rows, j]
        place = np.einsum("nji,nj->ni", track.turns[rows, j], between)
        local = place[:, None] + np.einsum("nij,mj->nmi", turn, probe.points)
        faces = solid.outside(local, probe.radius)
        depth = _nearest(faces, probe.radius).max(axis=-1)
        own = np.zeros(len(group), bool)
        own[of[(rows == 0) & (depth > LIMIT)]] = True
        depth[own[of]] = 0.0
        for k in np.unique(of[depth > 0]).tolist():
            mine = np.flatnonzero(of == k)
            best = mine[int(depth[mine].argmax())]
            yield group[k], int(rows[best]), float(depth[best])


def _nearest(faces: F8, radius: float) -> F8:
    """Depth below the nearest face of points with a radius, of `Solid.outside`; 0 outside.

    A ball beside a corner, nearest to an edge, counts as outside.
    """
    first = faces.max(axis=-1)
    second = np.partition(faces, -2, axis=-1)[..., -2] if faces.shape[-1] > 1 else first - radius
    depth: F8 = np.where((first < radius) & (second <= 0), radius - first, 0.0)
    return depth


def _near(vertices: F8, free: I8, solid: Solid, track: _Track) -> I8:
    """Which free vertices ever come near a solid's surroundings."""
    out = np.zeros(len(free), bool)
    for x, place in zip(vertices, track.position[:, solid.body], strict=True):
        apart = np.linalg.norm(x[free] - place, axis=1)
        out |= apart < solid.reach + NEAR
    near: I8 = free[out]
    return near


def _depths(x: F8, radius: float, solid: Solid, track: _Track, frames: slice) -> F8:
    """How deep points (N, M, 3) with a radius lie in what stands or is led, (N, M) [m]."""
    place, turn = track.position[frames, None, solid.body], track.turns[frames, solid.body]
    local = np.einsum("nji,nmj->nmi", turn, x - place)
    faces = solid.outside(local, radius)
    nearest = _nearest(faces, radius)
    inside = nearest > 0
    if not inside.any():
        return nearest
    # The face by which each point came in: nearest when it was last outside, or at the start.
    face = faces.argmax(axis=-1)
    rows = np.arange(len(x))[:, None]
    last = np.maximum.accumulate(np.where(inside, -1, rows), axis=0)
    entered = np.take_along_axis(face, np.maximum(last, 0), axis=0)
    entry = radius - np.take_along_axis(faces, entered[..., None], -1)[..., 0]
    # Nearly through, the nearest face is the one opposite: no way out either.
    through = (solid.normals[face] * solid.normals[entered]).sum(axis=-1) < -0.5
    shallow = (nearest <= SHALLOW) & ~through
    depth: F8 = np.where(shallow, nearest, np.maximum(entry, nearest))
    return np.where(inside, depth, 0.0)
