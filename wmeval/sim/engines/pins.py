"""Vertices of deformables that follow bodies."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_multiply, quaternion_to_matrix
from wmeval.scene import Deformable, Scene
from wmeval.sim.protocol import Quat, Vec

F8 = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Pinned:
    """Vertices of one pin.

    Attributes:
        vertices: (n,) numbers.
        body: scene index of what they follow; None: they stay.
        local: (n, 3) places in the body's frame at t = 0, or in the world's [m].
    """

    vertices: NDArray[np.intp]
    body: int | None
    local: F8


def pinned_vertices(scene: Scene, item: Deformable, vertices: F8) -> list[Pinned]:
    """The pins of a deformable whose vertices (V, 3) at t = 0 are given."""
    out = []
    for pin in item.pins:
        numbers = np.array(pin.vertices, np.intp)
        places = vertices[numbers]
        if not pin.body:
            out.append(Pinned(numbers, None, places))
            continue
        i = scene.index(pin.body)
        body = scene.bodies[i]
        turn = quaternion_to_matrix(np.array(body.quaternion_wxyz))
        out.append(Pinned(numbers, i, (places - np.array(body.position)) @ turn))
    return out


def pinned_where(pin: Pinned, position: Vec | None, quaternion: Quat | None) -> F8:
    """Places (n, 3) [m] of the vertices of a pin when its body is there."""
    if position is None or quaternion is None:
        return pin.local
    turn = quaternion_to_matrix(np.array(quaternion))
    return np.asarray(pin.local @ turn.T + np.array(position))


def carried_pose(
    position: Vec, quaternion: Quat, linear: Vec, angular: Vec, dt: float
) -> tuple[Vec, Quat]:
    """The pose of a body that a driver leads when the substep is over, at its velocities."""
    px, py, pz = (np.array(position) + dt * np.array(linear)).tolist()
    rate = float(np.linalg.norm(angular))
    if rate == 0.0:
        return (px, py, pz), quaternion
    half = rate * dt / 2
    turn = np.array((np.cos(half), *(np.array(angular) * (np.sin(half) / rate))))
    w, x, y, z = quaternion_multiply(turn, np.array(quaternion)).tolist()
    return (px, py, pz), (w, x, y, z)
