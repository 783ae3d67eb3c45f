"""Ropes for PyBullet: the capsules of `wmeval.sim.engines.rope_chain` as bodies of a client."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

from wmeval.scene import Body
from wmeval.sim.engines.rope_chain import Motion, RopeChain, ends_now
from wmeval.sim.protocol import SubstepView
from wmeval.sim.rows import Rows


class BulletRopes:
    """All ropes of a world.

    Args:
        p: PyBullet.
        client: its number.
        view: the world's engine, for what ropes are pinned to.
        ropes: chains whose substep is short enough.
        make: makes a dynamic body, gives its number.
        numbers: PyBullet's of the scene's bodies; None where there is none.
    """

    def __init__(
        self, p: Any, client: int, view: SubstepView, ropes: tuple[RopeChain, ...],
        make: Callable[[Body], int], numbers: list[int | None],
    ) -> None:  # fmt: skip
        self._p, self._client, self._view = p, client, view
        self._ropes = [(chain, self._add(chain, make, numbers)) for chain in ropes]

    def _add(
        self, chain: RopeChain, make: Callable[[Body], int], numbers: list[int | None]
    ) -> list[int]:
        p, c = self._p, self._client
        pieces = []
        for piece in chain.pieces:
            number = make(piece)
            p.changeDynamics(
                number, -1, mass=piece.mass, localInertiaDiagonal=piece.inertia, physicsClientId=c
            )
            p.resetBaseVelocity(number, piece.linear_velocity, (0, 0, 0), physicsClientId=c)
            pieces.append(number)
        touching = list(pairwise(pieces))
        for end, number in zip(chain.ends, (pieces[0], pieces[-1]), strict=True):
            held = None if end is None or end < 0 else numbers[end]
            if held is not None:
                touching.append((held, number))
        for a, b in touching:
            p.setCollisionFilterPair(a, b, -1, -1, 0, physicsClientId=c)
        return pieces

    def pull(self) -> None:
        """Let the springs act in the next substep."""
        p, c, view = self._p, self._client, self._view
        for chain, pieces in self._ropes:
            now, ends = self._now(chain, pieces)
            forces, torques, on_ends = chain.forces(now, ends)
            for number, at, force, torque in zip(
                pieces, now.position.tolist(), forces.tolist(), torques.tolist(), strict=True
            ):
                p.applyExternalForce(number, -1, force, at, p.WORLD_FRAME, c)
                p.applyExternalTorque(number, -1, torque, p.WORLD_FRAME, c)
            for end, force, at in chain.pulls(on_ends, ends):
                view.apply_force(end, force, at)

    def write(self, rows: Rows) -> None:
        """Put the vertices of all ropes."""
        for chain, pieces in self._ropes:
            rows.put_vertices(chain.name, chain.nodes(*self._now(chain, pieces)))

    def _now(self, chain: RopeChain, pieces: list[int]) -> tuple[Motion, Motion]:
        p, c = self._p, self._client
        rows = []
        for number in pieces:
            position, turn = p.getBasePositionAndOrientation(number, c)
            linear, angular = p.getBaseVelocity(number, c)
            rows.append((*position, *turn, *linear, *angular))
        return Motion.of(rows), ends_now(chain, self._view)
