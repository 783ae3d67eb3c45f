"""Free bodies that solids pull: by how much, and how they will move by it in a step.

Where a body will be when the step is over must be told with what pulls it: told without, what it
holds is a step behind, and the two shake one another up (at a rate of (w h)^4 / 2 h, 10 a second
for foam between cubes at 900 steps a second).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_to_matrix
from wmeval.scene import Meshes, Scene
from wmeval.sim.engines.bullet_shapes import mass_properties
from wmeval.sim.protocol import Quat, Vec

F8 = NDArray[np.float64]


class Pulled:
    """Dynamic bodies that hold something."""

    def __init__(self, scene: Scene, meshes: Meshes, bodies: Iterable[int], dt: float) -> None:
        """Read masses and inertia.

        Args:
            scene: the world.
            meshes: of it.
            bodies: scene indices.
            dt: step [s].
        """
        self._masses = {i: scene.bodies[i].mass for i in bodies}
        self._inertia = {i: mass_properties(scene.bodies[i], meshes)[2] for i in self._masses}
        self._gravity, self._dt = np.array(scene.gravity), dt
        self._gains: dict[int, tuple[F8, F8]] = {}

    def __contains__(self, body: object) -> bool:
        return body in self._masses

    def begin(self) -> None:
        """Nothing pulls yet in this step."""
        self._gains = {}

    def add(
        self, body: int, position: Vec, quaternion: Quat, places: F8, forces: F8
    ) -> tuple[Vec, Vec]:
        """Forces (n, 3) [N] at places (n, 3) [m].

        Returns:
            Force [N] at the centre of mass and torque [N m] about it.
        """
        force = forces.sum(axis=0)
        torque = np.cross(places - np.array(position), forces).sum(axis=0)
        turn = quaternion_to_matrix(np.array(quaternion))
        spun = turn @ np.linalg.solve(self._inertia[body], turn.T @ torque)
        linear, angular = self._gains.get(body, (self._dt * self._gravity, np.zeros(3)))
        self._gains[body] = (
            linear + self._dt / self._masses[body] * force,
            angular + self._dt * spun,
        )
        return _vec(force), _vec(torque)

    def speeds(self, body: int, linear: Vec, angular: Vec) -> tuple[Vec, Vec]:
        """Velocities [m/s] and [rad/s] that a body has after the step."""
        if body not in self._gains:
            return linear, angular
        more, faster = self._gains[body]
        return _vec(np.array(linear) + more), _vec(np.array(angular) + faster)


def _vec(numbers: F8) -> Vec:
    x, y, z = numbers.tolist()
    return x, y, z
