"""How deep bodies lie in fixed ones: corners and balls against boxes and the ground."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_to_matrix
from wmeval.records import StateLog
from wmeval.scene import Body, Box, Collision, Cylinder, Mesh, Meshes, Scene, Sphere

F8 = NDArray[np.float64]

LIMIT = 5e-3
"""Depth at which a cell counts as penetrated [m] (ours): a tenth of the smallest cube here."""


@dataclass(frozen=True, eq=False)
class _Probe:
    body: int
    points: F8
    radius: float


def _probe(index: int, body: Body, meshes: Meshes) -> _Probe | None:
    points, radius = [], 0.0
    for part in body.collision:
        turn = quaternion_to_matrix(np.array(part.quaternion_wxyz))
        own = _corners(part, meshes)
        if isinstance(part.shape, Sphere):
            radius = part.shape.radius
        if own is not None:
            points.append(np.array(part.position) + own @ turn.T)
    return _Probe(index, np.concatenate(points), radius) if points else None


def _corners(part: Collision, meshes: Meshes) -> F8 | None:
    shape = part.shape
    if isinstance(shape, Sphere):
        return np.zeros((1, 3))
    if isinstance(shape, Box):
        signs = np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        out: F8 = signs * np.array(shape.half_extents)
        return out
    if isinstance(shape, Mesh) and shape.sha256 in meshes:
        return np.asarray(meshes[shape.sha256].vertices, np.float64)
    return None


def greatest_depth(scene: Scene, meshes: Meshes, state: StateLog) -> float:
    """Greatest depth of a dynamic body's corner, ball or a deformable's vertex [m]; 0 for none.

    Against level or tilted boxes and upright cylinders that are static or led. Range [0, inf).

    Args:
        scene: as it was built.
        meshes: of it.
        state: recorded states.
    """
    probes = [
        p
        for i, b in enumerate(scene.bodies)
        if b.motion == "dynamic" and (p := _probe(i, b, meshes)) is not None
    ]
    solids = [
        (i, b)
        for i, b in enumerate(scene.bodies)
        if b.motion != "dynamic"
        and len(b.collision) == 1
        and isinstance(b.collision[0].shape, Box | Cylinder)
    ]
    if not solids:
        return 0.0
    deepest = 0.0
    turns = quaternion_to_matrix(state.quaternion_wxyz)
    for probe in probes:
        x = state.position[:, None, probe.body] + np.einsum(
            "nij,mj->nmi", turns[:, probe.body], probe.points
        )
        for i, body in solids:
            deepest = max(deepest, _depth(x, probe.radius, i, body, state, turns))
    for name, vertices in state.vertices.items():
        held = {v for d in scene.deformables if d.name == name for p in d.pins for v in p.vertices}
        free = [v for v in range(vertices.shape[1]) if v not in held]
        for i, body in solids:
            if free and body.role == "ground":
                deepest = max(deepest, _depth(vertices[:, free], 0.0, i, body, state, turns))
    return deepest


def _depth(x: F8, radius: float, i: int, body: Body, state: StateLog, turns: F8) -> float:
    """Greatest depth of points (N, M, 3) below the face beyond which they started [m]."""
    part = body.collision[0]
    shape = part.shape
    own = quaternion_to_matrix(np.array(part.quaternion_wxyz))
    local = np.einsum("nji,nmj->nmi", turns[:, i], x - state.position[:, None, i])
    local = (local - np.array(part.position)) @ own
    if isinstance(shape, Box):
        across, half = local, np.array(shape.half_extents)
    elif isinstance(shape, Cylinder):
        around = np.hypot(local[..., 0], local[..., 1])
        across = np.stack([around, local[..., 2]], axis=-1)
        half = np.array([shape.radius, shape.height / 2])
    else:
        return 0.0
    start = across[0].mean(axis=0)
    # A thin board may be passed through: the way out is not the nearest face, but the one it came
    # in by.
    axis = int(np.argmax(np.abs(start) - half))
    sign = 1.0 if start[axis] >= 0 else -1.0
    beside = np.delete(np.abs(across) <= half, axis, axis=-1).all(axis=-1)
    depth = half[axis] - sign * across[..., axis] + radius
    inside = beside & (depth > 0) & (depth <= 2 * half[axis] + radius)
    return float(depth[inside].max()) if inside.any() else 0.0
