"""Contact points of a PyBullet client: asked for by a body, and kept over many substeps."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.records import Contacts
from wmeval.sim.engines.bullet_bodies import BulletBodies
from wmeval.sim.protocol import ContactPoint, Vec
from wmeval.vectors import negative

_NO_CONTACTS = Contacts.empty()
_POINT = struct.Struct("18d")
"""A contact point: bodies a and b, place on b 3, normal 3, distance, normal force, and twice a
friction force with its direction 3."""

Hook = Callable[[object], None]
"""Runs after a substep, given the engine."""


class BulletContacts:
    """Contacts of a world, but for those of ropes.

    Args:
        p: PyBullet.
        client: its number.
        bodies: of the world.
        dt: substep [s].
        ropes: whether it has any.

    Attributes:
        put: PyBullet numbers of dynamic bodies whose state a driver put in this substep.
    """

    def __init__(
        self, p: Any, client: int, bodies: BulletBodies, dt: float, *, ropes: bool
    ) -> None:
        self._p, self._client, self._bodies, self._dt = p, client, bodies, dt
        self._ropes = ropes
        self._maximal = bodies.options.maximal
        self._threshold = bodies.options.processing_threshold
        self._scene_index = np.array(list(bodies.index.values()), np.int32)
        self.put: set[int] = set()
        self._pairs_key: tuple[tuple[int, int], ...] | None = None
        self._pairs: frozenset[tuple[int, int]] = frozenset()

    def _points(self, *bodies: int) -> Sequence[Any]:
        """PyBullet's own tuples."""
        found: Sequence[Any] = self._p.getContactPoints(*bodies, physicsClientId=self._client)
        if not self._ropes:
            return found
        known = self._bodies.index
        return [q for q in found if q[1] in known and q[2] in known]

    def of(self, body: int, other: int | None = None) -> list[ContactPoint]:
        """Contacts with positive impulse of a body (with another) in the substep just done."""
        a = self._bodies.number(body)
        b = -1 if other is None else self._bodies.number(other)
        # A query by bodies is cheap, but turns the normal and not the friction when it swaps them:
        # it only tells whether the full list is worth reading.
        asked = (a,) if other is None else (a, b)
        counts, index = self._counts, self._bodies.index
        if not any(map(counts, self._points(*asked))):
            return []
        points = []
        for q in self._points():
            first, second = q[1], q[2]
            if not counts(q) or a not in (first, second) or (b >= 0 and b not in (first, second)):
                continue
            impulse, tangential = q[9] * self._dt, _tangential(q, self._dt)
            points.append(
                ContactPoint(body, index[second], q[6], q[7], impulse, tangential, q[8])
                if first == a
                else ContactPoint(
                    body,
                    index[first],
                    q[5],
                    negative(q[7]),
                    impulse,
                    negative(tangential),
                    q[8],
                )
            )
        return points

    def _counts(self, q: Sequence[Any]) -> bool:
        """Whether a contact point of PyBullet's acted in the substep just done."""
        if not self._maximal:
            return bool(q[9] > 0.0)
        # A point beyond the threshold was not solved and still shows what it did before; friction
        # may outlive its normal force by a substep (warm start).
        return bool(q[8] <= self._threshold and (q[9] > 0.0 or q[10] or q[12]))

    def _pairs_of(self, pairs: tuple[tuple[int, int], ...]) -> frozenset[tuple[int, int]]:
        """Pairs of PyBullet numbers, in both orders."""
        if pairs is not self._pairs_key:
            numbers = [(self._bodies.numbers[a], self._bodies.numbers[b]) for a, b in pairs]
            known = [(a, b) for a, b in numbers if a is not None and b is not None]
            self._pairs_key, self._pairs = pairs, frozenset(known + [(b, a) for a, b in known])
        return self._pairs

    def reader(
        self,
        points: list[bytes],
        counts: list[int],
        wanted: bool | tuple[tuple[int, int], ...],
    ) -> Hook:
        """Reads a substep's contacts, before a driver changes anything.

        Args:
            points: what is read is added here, packed.
            counts: and how many here.
            wanted: False: none, True: all, or those of these pairs of scene indices.
        """
        get_points, pack = self._points, _POINT.pack
        only = None if isinstance(wanted, bool) else self._pairs_of(wanted)
        # As `_counts` says.
        limit = self._threshold if self._maximal else math.inf
        sliding = self._maximal

        def read(_: object) -> None:
            self.put.clear()
            before = len(points)
            # Packed at once: hundreds of nested tuples kept for later are slow to come back to.
            points.extend(
                [
                    pack(a, b, *place, *normal, gap, force, f, *along, g, *across)
                    for _, a, b, _, _, _, place, normal, gap, force, f, along, g, across in (
                        get_points()
                    )
                    if (force > 0.0 or (sliding and (f or g)))
                    and gap <= limit
                    and (only is None or (a, b) in only)
                ]
            )
            counts.append(len(points) - before)

        return read

    def dropper(self, points: list[bytes], counts: list[int]) -> Hook:
        """Takes out a substep's contacts of dynamic bodies that were put: they led to nothing."""

        def drop(_: object) -> None:
            if self.put:
                first = len(points) - counts[-1]
                kept = [x for x in points[first:] if self.put.isdisjoint(_POINT.unpack(x)[:2])]
                points[first:] = kept
                counts[-1] = len(kept)

        return drop

    def arrays(self, points: list[bytes], counts: list[int], first: int) -> Contacts:
        """Packed contact points of consecutive substeps, ``first`` and on, as arrays."""
        if not points:
            return _NO_CONTACTS
        table: NDArray[np.float64] = np.frombuffer(b"".join(points)).reshape(len(points), -1)
        ids = self._scene_index[table[:, 0:2].astype(np.intp)]
        f, g = table[:, 10:11] * self._dt, table[:, 14:15] * self._dt
        friction: NDArray[np.float64] = f * table[:, 11:14]
        friction += g * table[:, 15:18]
        return Contacts(
            np.repeat(np.arange(first, first + len(counts)), counts),
            ids[:, 0].copy(),
            ids[:, 1].copy(),
            table[:, 2:5].copy(),
            table[:, 5:8].copy(),
            table[:, 9] * self._dt,
            friction,
            table[:, 8].copy(),
        )


def _tangential(q: Sequence[Any], dt: float) -> Vec:
    f, (ax, ay, az), g, (bx, by, bz) = q[10], q[11], q[12], q[13]
    f, g = f * dt, g * dt
    return (f * ax + g * bx, f * ay + g * by, f * az + g * bz)
