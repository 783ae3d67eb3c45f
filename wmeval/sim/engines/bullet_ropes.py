"""Ropes for PyBullet: the capsules of `wmeval.sim.engines.rope_chain` as bodies of a client."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from wmeval.sim.engines.bullet_bodies import BulletBodies
from wmeval.sim.engines.rope_chain import Motion, RopeChain, ends_now
from wmeval.sim.protocol import SubstepView
from wmeval.sim.rows import Rows

_BASE = -1
"""Link of a free body."""


class BulletRopes:
    """All ropes of a world.

    Args:
        p: PyBullet.
        client: its number.
        view: the world's engine, for what ropes are pinned to.
        ropes: chains whose substep is short enough.
        bodies: of the client: pieces are made as they are, and ends are pinned to them.
    """

    def __init__(
        self, p: Any, client: int, view: SubstepView, ropes: tuple[RopeChain, ...],
        bodies: BulletBodies,
    ) -> None:  # fmt: skip
        self._p, self._client, self._view = p, client, view
        self._ropes = [(chain, self._add(chain, bodies)) for chain in ropes]

    def _add(self, chain: RopeChain, bodies: BulletBodies) -> list[int]:
        p, c = self._p, self._client
        pieces = []
        for piece in chain.pieces:
            number = bodies.make_piece(piece)
            p.changeDynamics(
                number, -1, mass=piece.mass, localInertiaDiagonal=piece.inertia, physicsClientId=c
            )
            p.resetBaseVelocity(number, piece.linear_velocity, (0, 0, 0), physicsClientId=c)
            pieces.append(number)
        touching = [((a, _BASE), b) for a, b in pairwise(pieces)]
        for end, number in zip(chain.ends, (pieces[0], pieces[-1]), strict=True):
            if end is not None and end >= 0 and bodies.numbers[end] is not None:
                touching.append((bodies.at(end), number))
        for (held, link), end_piece in touching:
            p.setCollisionFilterPair(held, end_piece, link, _BASE, 0, physicsClientId=c)
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
