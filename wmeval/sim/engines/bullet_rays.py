"""Rays in a PyBullet client."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.sim.engines.bullet_bodies import BulletBodies
from wmeval.sim.engines.bullet_shapes import make_shape
from wmeval.sim.protocol import RayHit, Vec

_MAX_RAYS = 4096
_ROPE = -1
"""Stands for a rope's pieces where scene indices do for bodies."""


class BulletRays:
    """Rays in a world.

    Args:
        p: PyBullet.
        client: its number.
        bodies: of the world.
    """

    def __init__(self, p: Any, client: int, bodies: BulletBodies) -> None:
        self._p, self._client, self._bodies = p, client, bodies
        self._still = -1  # a client of our own
        self._copies: dict[int, tuple[int, int]] = {}  # scene index and number of a copy's number

    def nearest(self, origin: Vec, end: Vec, ignore: tuple[int, ...] = ()) -> RayHit | None:
        """The nearest body with collision geometry on a ray, but for those in ``ignore``.

        Hit points lie within 0.3 mm of the surface (PyBullet's convex cast stops that close).
        """
        p, c, index = self._p, self._client, self._bodies.index
        hit = p.rayTest(origin, end, physicsClientId=c)[0]
        if hit[0] >= 0 and index.get(hit[0], _ROPE) in (*ignore, _ROPE):
            hit = self._next_hit(origin, end, ignore)
        return RayHit(index[hit[0]], hit[3], hit[4], hit[2]) if hit[0] >= 0 else None

    def _next_hit(self, origin: Vec, end: Vec, ignore: tuple[int, ...]) -> Any:
        """The nearest of all hits of bodies that are not ignored; PyBullet does not sort them."""
        p, c, index = self._p, self._client, self._bodies.index
        nearest: Any = (-1, -1, 1.0)
        for rank in range(self._p.getNumBodies(c) * 64):
            hit = p.rayTestBatch((origin,), (end,), reportHitNumber=rank, physicsClientId=c)[0]
            if hit[0] < 0:
                break
            if index.get(hit[0], _ROPE) not in (*ignore, _ROPE) and hit[2] < nearest[2]:
                nearest = hit
        return nearest

    def cast(
        self, origins: NDArray[np.float64], ends: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Body index (-1: none) and hit point (N, 3) [m] of rays (N, 3) -> (N, 3).

        Hit points lie within 0.3 mm of the surface (PyBullet's convex cast stops that close).
        """
        c = self._still_client()
        bodies = np.full(len(origins), -1, np.int32)
        points = np.array(ends, np.float64)
        for start in range(0, len(origins), _MAX_RAYS):
            part = slice(start, start + _MAX_RAYS)
            hits = self._p.rayTestBatch(
                np.asarray(origins[part]).tolist(),
                np.asarray(ends[part]).tolist(),
                physicsClientId=c,
            )
            for i, hit in enumerate(hits, start):
                if hit[0] >= 0:
                    bodies[i] = self._copies[hit[0]][0]
                    points[i] = hit[3]
        return bodies, points

    def _still_client(self) -> int:
        """A second client that holds the bodies still where they are now.

        PyBullet casts rays against the boxes that the last step began with, so a ray at a moving
        body may miss it, and refreshing them in the stepped client would touch its contacts.
        """
        p = self._p
        if self._still < 0:
            self._still = c = p.connect(p.DIRECT)
            for i, number in enumerate(self._bodies.numbers):
                if number is not None:
                    body = self._bodies.scene.bodies[i]
                    shape = make_shape(p, c, body, self._bodies.meshes)
                    copy = p.createMultiBody(0.0, shape.index, physicsClientId=c)
                    if shape.margin is not None:
                        margin = self._bodies.margin(shape.margin)
                        p.changeDynamics(copy, -1, collisionMargin=margin, physicsClientId=c)
                    self._copies[copy] = (i, number)
        c = self._still
        for copy, (_, number) in self._copies.items():
            position, quaternion = self._bodies.read_pose(number, self._client)
            p.resetBasePositionAndOrientation(copy, position, quaternion, c)
        p.performCollisionDetection(c)
        return c

    def close(self) -> None:
        """Free the second client; idempotent."""
        if self._still >= 0:
            self._p.disconnect(self._still)
        self._still = -1
        self._copies = {}
