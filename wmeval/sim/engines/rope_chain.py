"""Ropes as chains of capsules, for engines of rigid bodies.

Every piece between two nodes of a rope is a capsule of the rope's radius and mass. Where two meet,
a spring of the stiffness that the rope's E A gives a piece holds their ends together, and another
bends them straight with E I: the rope stretches, bends, and cannot part. Its ends hang on what they
are pinned to by springs of twice that stiffness, so that the whole chain stretches by its length
over E A. Neighbours do not touch each other; else the rope touches itself and all bodies.

The springs are forces that act in every substep, which must be short enough for them
(`RopeChain.least_rate`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_to_matrix
from wmeval.deformables import rest_shape
from wmeval.errors import UserError
from wmeval.scene import Body, Capsule, Collision, Rope, Scene
from wmeval.sim.engines.pins import pinned_vertices
from wmeval.sim.protocol import Quat, SubstepView, Vec

F8 = NDArray[np.float64]
_STILL = (0.0,) * 13
_SAFE = 0.8
"""Share of the longest stable substep that is allowed: contacts stiffen a chain."""


@dataclass(frozen=True, eq=False)
class Motion:
    """Where pieces, or what ends are pinned to, are and go.

    Attributes:
        position: (n, 3) [m].
        turn: (n, 4) quaternions xyzw.
        linear: (n, 3) [m/s].
        angular: (n, 3) [rad/s].
    """

    position: F8
    turn: F8
    linear: F8
    angular: F8

    @classmethod
    def of(cls, rows: Sequence[Sequence[float]]) -> Motion:
        """From rows of 13 numbers: position, quaternion xyzw, linear and angular velocity."""
        table = np.array(rows, np.float64).reshape(len(rows), 13)
        return cls(table[:, :3], table[:, 3:7], table[:, 7:10], table[:, 10:])


class RopeChain:
    """A rope's capsules and the springs between them.

    Args:
        scene: the world.
        item: the rope.

    Attributes:
        name: of the rope.
        pieces: in order, capsules about z along the rope, as bodies that no scene has.
        ends: scene index of what the first and the last node are pinned to; -1: the world, None:
            they are free.
        least_rate: substeps per second that the springs need.

    Raises:
        UserError: a node between the ends is pinned, or two nodes are at one place.
    """

    def __init__(self, scene: Scene, item: Rope) -> None:
        nodes = rest_shape(item, {}).vertices
        along = nodes[1:] - nodes[:-1]
        lengths = np.linalg.norm(along, axis=1)
        if float(lengths.min()) < 1e-9:
            raise UserError(f"rope {item.name!r}: two of its points are at one place")
        self.name = item.name
        # What a driver leads, and what stands still, feels no pull.
        self._pulled = [b.motion == "dynamic" for b in scene.bodies]
        self.pieces = tuple(
            _piece(item, k, nodes[k], along[k], length) for k, length in enumerate(lengths.tolist())
        )
        self._half = lengths / 2
        stiff = item.stretch / ((lengths[1:] + lengths[:-1]) / 2)
        bent = item.bending / ((lengths[1:] + lengths[:-1]) / 2)
        self._bending, self._damping = bent, item.damping
        held = self._pin(scene, item, len(nodes), 2 * item.stretch / lengths[[0, -1]])
        self._stiffness = np.concatenate([held[:1], stiff, held[1:]])[:, None]
        frames = np.stack([quaternion_to_matrix(np.array(p.quaternion_wxyz)) for p in self.pieces])
        # Where the next piece points, in a piece's own frame, without stress.
        ways = along / lengths[:, None]
        self._straight = np.einsum("nji,nj->ni", frames[:-1], ways[1:])
        self._is_straight = bool(np.abs(self._straight - (0.0, 0.0, 1.0)).max(initial=0.0) < 1e-9)
        self.least_rate = self._rate(stiff, bent, held)

    def _pin(self, scene: Scene, item: Rope, count: int, stiffness: F8) -> F8:
        ends: list[int | None] = [None, None]
        self._held = np.zeros((2, 3))
        for pin in pinned_vertices(scene, item, rest_shape(item, {}).vertices):
            for vertex, place in zip(pin.vertices.tolist(), pin.local, strict=True):
                if vertex not in (0, count - 1):
                    raise UserError(
                        f"rope {item.name!r} is pinned at node {vertex}: a chain of capsules is "
                        "pinned at its ends"
                    )
                ends[int(vertex > 0)] = -1 if pin.body is None else pin.body
                self._held[int(vertex > 0)] = place
        self.ends = (ends[0], ends[1])
        self._on_body = np.array([[end is not None and end >= 0] for end in ends])
        return stiffness * [end is not None for end in ends]

    def _rate(self, stretch: F8, bending: F8, held: F8) -> float:
        """Of symplectic steps: omega^2 dt (dt + 2 damping) < 4, omega bounded by the rows of K / M.

        A force between two ends moves each by 1/m + (l/2)^2 / I, and neighbours by half of that.
        """
        mass = np.array([p.mass for p in self.pieces])
        about = np.array([p.inertia[0] for p in self.pieces if p.inertia is not None])
        give = 1 / mass + self._half**2 / about
        most = float((1.5 * held * give[[0, -1]]).max(initial=0.0))
        if len(stretch):
            pulled = 1.5 * stretch * (give[1:] + give[:-1])
            turned = 2 * bending * (1 / about[1:] + 1 / about[:-1])
            most = max(most, float((pulled + turned).max()))
        slow = self._damping
        return 1.0 / (math.sqrt(slow * slow + 4.0 / most) - slow) / _SAFE

    def check_rate(self, dt: float) -> None:
        """Are substeps of ``dt`` [s] short enough?

        Raises:
            UserError: not so.
        """
        if 1.0 / dt < self.least_rate:
            raise UserError(
                f"rope {self.name!r}: its {len(self.pieces)} pieces need "
                f"{math.ceil(self.least_rate)} substeps a second, not {1.0 / dt:.6g}: use a "
                "smaller dt, or fewer points"
            )

    def forces(self, now: Motion, ends: Motion) -> tuple[F8, F8, F8]:
        """Forces of the springs.

        Args:
            now: of the pieces.
            ends: of the two that the first and last node are pinned to; anything for others.

        Returns:
            Forces (n, 3) [N] and torques (n, 3) [N m] on the pieces, and the forces (2, 3) on what
            the ends are pinned to.
        """
        reach = self._reach(now)
        tail, head = now.position - reach, now.position + reach
        places = self._end_places(ends)
        gaps = np.concatenate([tail, places[1:]])
        gaps[1:] -= head
        gaps[0] -= places[0]
        if self._damping:
            gaps = self._damped(gaps, now, ends, reach, places)
        # On the tail of each piece, and by the next one's tail (or the pin) on its head.
        pull = self._stiffness * gaps
        torques = _cross(reach, pull[1:] + pull[:-1])
        if len(self._bending):
            bent = self._bending[:, None] * self._bend(now, reach)
            torques[1:] += bent
            torques[:-1] -= bent
        return pull[1:] - pull[:-1], torques, np.stack([pull[0], -pull[-1]])

    def _damped(self, gaps: F8, now: Motion, ends: Motion, reach: F8, places: F8) -> F8:
        """Gaps (n + 1, 3) [m], longer by what their lengthening is damped by."""
        speed = _cross(now.angular, reach)
        rates = np.zeros_like(gaps)
        rates[:-1] += now.linear - speed
        rates[1:] -= now.linear + speed
        arms = places - ends.position
        at_ends = np.where(self._on_body, ends.linear + _cross(ends.angular, arms), 0.0)
        rates[0] -= at_ends[0]
        rates[-1] += at_ends[1]
        # Along the gap alone: what turns the two about each other is not damped.
        square = np.maximum(np.einsum("ij,ij->i", gaps, gaps), 1e-30)
        opening = np.einsum("ij,ij->i", gaps, rates) / square
        return np.asarray(gaps * (1.0 + self._damping * opening)[:, None])

    def _bend(self, now: Motion, reach: F8) -> F8:
        """Turning (n - 1, 3) that would lay each piece straight behind the one before."""
        ways = reach / self._half[:, None]
        wanted = ways[:-1] if self._is_straight else _turned(now.turn[:-1], self._straight)
        out = _cross(ways[1:], wanted)
        if self._damping:
            out -= self._damping * (now.angular[1:] - now.angular[:-1])
        return out

    def _end_places(self, ends: Motion) -> F8:
        """Where the ends are pinned (2, 3) [m]; anything for free ones."""
        return np.asarray(
            np.where(self._on_body, ends.position + _turned(ends.turn, self._held), self._held)
        )

    def pulls(self, forces: F8, ends: Motion) -> list[tuple[int, Vec, Vec]]:
        """Scene index, force and its point, of the bodies that the ends pull."""
        out = []
        for end, (fx, fy, fz), (x, y, z) in zip(
            self.ends, forces.tolist(), self._end_places(ends).tolist(), strict=True
        ):
            if end is not None and end >= 0 and self._pulled[end]:
                out.append((end, (fx, fy, fz), (x, y, z)))
        return out

    def nodes(self, now: Motion, ends: Motion) -> F8:
        """Vertices (n + 1, 3) [m]: pinned ends, and the middles between ends that meet."""
        reach = self._reach(now)
        tail, head = now.position - reach, now.position + reach
        out = np.concatenate([tail[:1], (tail[1:] + head[:-1]) / 2, head[-1:]])
        places = self._end_places(ends)
        for k, end in enumerate(self.ends):
            if end is not None:
                out[-k] = places[k]
        return np.asarray(out)

    def _reach(self, now: Motion) -> F8:
        """From each piece's middle to its head."""
        x, y, z, w = now.turn.T
        axis = np.stack([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)], axis=1)
        return np.asarray(axis * self._half[:, None])


def ends_now(chain: RopeChain, view: SubstepView) -> Motion:
    """Motion of what a rope's ends are pinned to."""
    rows = []
    for end in chain.ends:
        if end is None or end < 0:
            rows.append(_STILL)
            continue
        position, (w, x, y, z) = view.pose(end)
        linear, angular = view.velocity(end)
        rows.append((*position, x, y, z, w, *linear, *angular))
    return Motion.of(rows)


def _piece(item: Rope, number: int, node: F8, way: F8, length: float) -> Body:
    r = item.radius
    mass = item.density * math.pi * r * r * length
    across = mass * (length * length / 12 + r * r / 4)
    x, y, z = (node + way / 2).tolist()
    return Body(
        name=f"{item.name}_{number}",
        role="rope",
        motion="dynamic",
        instance=0,
        collision=(Collision(shape=Capsule(radius=r, height=length + 2 * r)),),
        mass=mass,
        # Of the cylinder: the half balls at its ends are there to be touched.
        inertia=(across, across, mass * r * r / 2),
        friction=item.friction,
        position=(x, y, z),
        quaternion_wxyz=_from_z(way / length),
        linear_velocity=item.linear_velocity,
    )


def chains(scene: Scene, engine: str, dt: float) -> tuple[RopeChain, ...]:
    """The ropes of a scene.

    Args:
        scene: the world.
        engine: what messages call it.
        dt: substep [s].

    Raises:
        UserError: a deformable that is no rope, or a substep too long for one.
    """
    out = []
    for item in scene.deformables:
        if not isinstance(item, Rope):
            raise UserError(
                f"{item.kind} {item.name!r}: of what bends, engine {engine} has ropes: run it with "
                "newton or genesis"
            )
        out.append(RopeChain(scene, item))
        out[-1].check_rate(dt)
    return tuple(out)


def _from_z(way: F8) -> Quat:
    """A rotation (wxyz) that takes the z axis to a unit vector."""
    x, y, z = way.tolist()
    if z < -1.0 + 1e-12:
        return 0.0, 1.0, 0.0, 0.0
    size = math.sqrt(2.0 + 2.0 * z)
    return size / 2, -y / size, x / size, 0.0


def _cross(a: F8, b: F8) -> F8:
    """`numpy.cross` of (n, 3) rows, which costs a multiple of this."""
    out = np.empty_like(b)
    out[:, 0] = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    out[:, 1] = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    out[:, 2] = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return out


def _turned(turn: F8, vectors: F8) -> F8:
    """Vectors (n, 3) turned by quaternions (n, 4) xyzw."""
    axis = turn[:, :3]
    twice = 2 * _cross(axis, vectors)
    return np.asarray(vectors + turn[:, 3:] * twice + _cross(axis, twice))


__all__ = ["Motion", "RopeChain", "chains", "ends_now"]
