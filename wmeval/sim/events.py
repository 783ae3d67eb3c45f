"""What happens in a world: contacts, falls, stages of a causal chain, trajectory shapes.

One detector serves both uses: it is fed stretches of a world as they come, and `detect` feeds it a
whole record at once; how a record is cut does not change the events. An event has the ``time`` at
which it happened and the first time ``detected_at`` at which somebody watching could know it: that
a cascade has ended is only known a plateau later.

Contacts of substep n lead to state n + 1 and are dated by it, t = (n + 1) dt. A contact that is
over within its substep (an event-driven engine's impact) counts like one that lasts; impacts of
one pair in one substep are one, their impulses summed.

Stages and shapes follow "Physical Causality Evaluation Pipeline Details" of the WMEval paper:
ROLLING ends with the first impact of the player, IMPACT when a domino first tilts past 30 deg,
TOPPLE when no further domino has fallen for 0.5 s, CASCADE runs to the end; GLANCE and STRIKE begin
with the player's first contact with a pillar that holds, and with a domino.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from wmeval.clock import SceneClock, exact
from wmeval.conventions import tilt_angle
from wmeval.errors import UserError
from wmeval.records import Event, Events, WorldLog
from wmeval.scene import MOTIONS, Scene
from wmeval.sim.protocol import EventRules, Probe

Shape = Literal["canonical", "glancing", "direct_strike", "none"]

EVENT_KINDS: dict[str, str] = {
    "rolling": "the stage begins; time 0",
    "contact": "body_a touches body_b, the first time or after a gap; value: normal impulse [N s] "
    "of the first substep",
    "impact": "body_a, the player, first hits a pillar or a domino, body_b; value: impulse [N s]",
    "strike": "body_a, the player, first touches a domino, body_b; value: impulse [N s]",
    "glance": "body_a, the player, touched the pillar body_b and the slab stands, known when a "
    "domino is struck or after two plateaus; time and value: those of the touch",
    "fall": "body_a, a domino or the slab, first tilts to the fall angle; value: tilt [deg]",
    "collapse": "body_a, the slab, falls; value: tilt [deg]",
    "topple": "body_a, the first domino, falls; value: tilt [deg]",
    "roof_release": "body_a, the roof ball, touched the slab body_b for the LAST time; known a "
    "plateau later",
    "cascade": "body_a, the last domino of a sequence of two or more, fell and no other did for a "
    "plateau; value: number of dominoes fallen",
    "left_world": "body_a's centre left the bounds, or is not a number; value: its height [m]",
}
"""Kind to meaning; events of one instant are in this order."""

SHAPE_STAGE_CHAINS: dict[str, tuple[str, ...]] = {
    "canonical": ("rolling", "impact", "topple", "cascade"),
    "glancing": ("rolling", "glance", "strike", "cascade_from_strike"),
    "direct_strike": ("rolling", "strike", "cascade_from_strike"),
    "none": ("rolling",),
}
"""Trajectory shape to its chain of stages."""

_RANK = {kind: i for i, kind in enumerate(EVENT_KINDS)}


class EventDetector:
    """Streaming detector of one world's events.

    Roles that the chain "beam_domino" reads: "player", "leg", "slab", "roof_ball", "domino".

    Attributes:
        probe: the least that a world must keep for it.
    """

    def __init__(self, scene: Scene, rules: EventRules, clock: SceneClock) -> None:
        self._names = tuple(b.name for b in scene.bodies)
        self._rules = rules
        self._dt = clock.dt
        self._gap = _whole(exact(rules.contact_gap) / clock.dt)
        self._plateau = _whole(exact(rules.plateau) / clock.dt, up=True)
        self._fall = math.radians(rules.fall_deg)
        lower, upper = np.array(rules.bounds[0]), np.array(rules.bounds[1])
        if not (lower < upper).all():
            raise UserError(
                f"event bounds {rules.bounds}: the first corner must be below the second"
            )
        self._bounds = lower, upper
        # Where a body without physics goes is its driver's business: it is no event.
        self._roaming = [
            i for i, b in enumerate(scene.bodies) if b.motion != MOTIONS[0] and b.collision
        ]
        chain = rules.chain == "beam_domino"

        def of(role: str) -> tuple[int, ...]:
            return scene.indices(role) if chain else ()

        self._players = frozenset(of("player"))
        self._legs = frozenset(of("leg"))
        self._dominoes = frozenset(of("domino"))
        self._slabs = frozenset(of("slab"))
        self._roof_balls = frozenset(of("roof_ball"))
        self._tilting = sorted(self._dominoes | self._slabs)
        self._pairs: dict[tuple[int, int], tuple[int, int]] = {}
        for role_a, role_b in rules.contact_roles:
            for a in scene.indices(role_a):
                for b in scene.indices(role_b):
                    if a != b:
                        self._pairs.setdefault((min(a, b), max(a, b)), (a, b))
        count = len(self._names)
        self._watched = np.zeros((count, count), bool)
        for a, b in self._pairs:
            self._watched[a, b] = self._watched[b, a] = True
        for ones, others in (
            (self._players, self._legs | self._dominoes),
            (self._roof_balls, self._slabs),
        ):
            for a in ones:
                for b in others:
                    self._watched[a, b] = self._watched[b, a] = True
        self._chain = chain
        self._state = -1
        pairs = np.argwhere(np.triu(self._watched)).tolist()
        self.probe = Probe("substeps", tuple((a, b) for a, b in pairs))

    # --- verbs ----------------------------------------------------------------------------------

    def reset(self, log: WorldLog) -> Events:
        """Begin with the row of state 0; the events of t = 0."""
        if len(log) != 1 or log.state.substep[0] != 0:
            raise ValueError("the event detector begins with one row, state 0")
        self._state = 0
        self._touched: dict[tuple[int, int], int] = {}
        self._fallen: set[int] = set()
        self._gone: set[int] = set()
        self._pillar: tuple[int, int, int, float] | None = None
        self._struck = self._hit = self._glanced = self._ended = self._collapsed = False
        self._falls: list[tuple[int, int]] = []
        self._roof: dict[int, tuple[int, int] | None] = dict.fromkeys(self._roof_balls)
        found = [self._event("rolling", 0, 0)] if self._chain else []
        tilts, out = self._fields(log)
        self._bodies(found, 0, tilts[0], out[0], log.state.position[0])
        return _ordered(found)

    def feed(self, log: WorldLog) -> Events:
        """Events that become known in the next stretch, in the order in which they do.

        Args:
            log: every state after the last one fed, with all contacts.

        Raises:
            ValueError: states are missing or out of order.
        """
        if self._state < 0:
            raise ValueError("reset the event detector first")
        substeps = log.state.substep
        expected = np.arange(self._state + 1, self._state + 1 + len(substeps))
        if not np.array_equal(substeps, expected):
            raise ValueError(
                f"events need every state: after state {self._state} came "
                f"{substeps[:3].tolist()}...; ask the world for Probe(states='substeps', "
                "contacts=True)"
            )
        found: list[Event] = []
        touching = self._touching(log)
        tilts, out = self._fields(log)
        busy = (tilts >= self._fall).any(axis=1) | out.any(axis=1)
        for row, k in enumerate(substeps.tolist()):
            now: list[Event] = []
            if k in touching:
                self._contacts(now, k, touching[k])
            if busy[row]:
                self._bodies(now, k, tilts[row], out[row], log.state.position[row])
            if self._chain:
                self._timers(now, k)
            if now:
                found += _ordered(now)
        self._state += len(substeps)
        return tuple(found)

    # --- what is read ---------------------------------------------------------------------------

    def _fields(self, log: WorldLog) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
        tilts = tilt_angle(log.state.quaternion_wxyz[:, self._tilting])
        position = log.state.position[:, self._roaming]
        lower, upper = self._bounds
        # Written so that NaN is outside.
        inside = ((position >= lower) & (position <= upper)).all(axis=-1)
        return tilts, ~inside & log.state.active[:, self._roaming]

    def _touching(self, log: WorldLog) -> dict[int, dict[tuple[int, int], float]]:
        """State to its touching watched pairs (low, high) with their summed normal impulse."""
        c = log.contacts
        keep = np.flatnonzero(self._watched[c.body_a, c.body_b])
        result: dict[int, dict[tuple[int, int], float]] = {}
        for n, a, b, impulse in zip(
            c.substep[keep].tolist(),
            c.body_a[keep].tolist(),
            c.body_b[keep].tolist(),
            c.normal_impulse[keep].tolist(),
            strict=True,
        ):
            pairs = result.setdefault(n + 1, {})
            pair = (a, b) if a < b else (b, a)
            pairs[pair] = pairs.get(pair, 0.0) + impulse
        return result

    # --- rules ----------------------------------------------------------------------------------

    def _event(
        self,
        kind: str,
        happened: int,
        known: int,
        a: int | None = None,
        b: int | None = None,
        *,
        value: float = math.nan,
    ) -> Event:
        return Event(
            kind,
            _seconds(happened, self._dt),
            _seconds(known, self._dt),
            "" if a is None else self._names[a],
            "" if b is None else self._names[b],
            value,
        )

    def _contacts(self, found: list[Event], k: int, pairs: dict[tuple[int, int], float]) -> None:
        # A pillar and a domino touched in one substep: the pillar is named (strict < of the paper).
        for pair, impulse in sorted(pairs.items(), key=lambda item: self._is_strike(item[0])):
            last = self._touched.get(pair)
            self._touched[pair] = k
            if pair in self._pairs and (last is None or k - last > self._gap):
                found.append(self._event("contact", k, k, *self._pairs[pair], value=impulse))
            if not self._chain:
                continue
            low, high = pair
            for a, b in ((low, high), (high, low)):
                if a in self._players and impulse >= self._rules.impact_impulse:
                    self._player(found, k, a, b, impulse)
                if a in self._roof and b in self._slabs and a not in self._gone:
                    self._roof[a] = (k, b)

    def _is_strike(self, pair: tuple[int, int]) -> bool:
        return pair[0] in self._dominoes or pair[1] in self._dominoes

    def _player(self, found: list[Event], k: int, a: int, b: int, impulse: float) -> None:
        pillar, domino = b in self._legs, b in self._dominoes
        if not (pillar or domino):
            return
        if not self._hit:
            self._hit = True
            found.append(self._event("impact", k, k, a, b, value=impulse))
        if pillar and self._pillar is None and not self._struck:
            self._pillar = (k, a, b, impulse)
        if domino and not self._struck:
            self._struck = True
            found.append(self._event("strike", k, k, a, b, value=impulse))
            self._glance(found, k)

    def _glance(self, found: list[Event], k: int) -> None:
        if self._pillar is not None and not self._glanced and not self._collapsed:
            self._glanced = True
            happened, a, b, impulse = self._pillar
            found.append(self._event("glance", happened, k, a, b, value=impulse))

    def _bodies(
        self,
        found: list[Event],
        k: int,
        tilts: NDArray[np.float64],
        out: NDArray[np.bool_],
        position: NDArray[np.float64],
    ) -> None:
        for column in np.flatnonzero(tilts >= self._fall):
            body = self._tilting[column]
            if body in self._fallen:
                continue
            self._fallen.add(body)
            degrees = math.degrees(tilts[column])
            found.append(self._event("fall", k, k, body, None, value=degrees))
            if body in self._slabs and not self._collapsed:
                self._collapsed = True
                found.append(self._event("collapse", k, k, body, None, value=degrees))
            if body in self._dominoes:
                if not self._falls:
                    found.append(self._event("topple", k, k, body, None, value=degrees))
                self._falls.append((k, body))
        for column in np.flatnonzero(out):
            body = self._roaming[column]
            if body not in self._gone:
                self._gone.add(body)
                height = float(position[body, 2])
                found.append(self._event("left_world", k, k, body, None, value=height))

    def _timers(self, found: list[Event], k: int) -> None:
        for ball, last in self._roof.items():
            if last is not None and k - last[0] >= self._plateau:
                found.append(self._event("roof_release", last[0], k, ball, last[1]))
                # One release per ball: a later touch of the fallen slab is no second one.
                self._roof = {b: v for b, v in self._roof.items() if b != ball}
        pillar = None if self._struck or self._glanced else self._pillar
        if pillar is not None and k - pillar[0] >= 2 * self._plateau:
            self._glance(found, k)
        if not self._ended and len(self._falls) > 1:
            last_fall, body = self._falls[-1]
            if k - last_fall >= self._plateau:
                self._ended = True
                count = float(len(self._falls))
                found.append(self._event("cascade", last_fall, k, body, None, value=count))


def _whole(substeps: Fraction, *, up: bool = False) -> int:
    return math.ceil(substeps) if up else math.floor(substeps)


def _seconds(k: int, dt: Fraction) -> float:
    # The same rounding as `StateLog.times`, so that an event's time is its state's time.
    return k * float(dt.numerator) / float(dt.denominator)


def _ordered(events: Iterable[Event]) -> Events:
    return tuple(sorted(events, key=lambda e: (_RANK[e.kind], e.body_a, e.body_b)))


def detect(
    scene: Scene, rules: EventRules, log: WorldLog, clock: SceneClock | None = None
) -> Events:
    """All events of a record of every state with contacts; equal to the streaming detector's.

    Args:
        scene: the record's scene.
        rules: what counts.
        log: states 0, 1, ..., N with all contacts.
        clock: not needed; the substep is the record's own.

    Raises:
        ValueError: states are missing.
    """
    clock = clock or SceneClock(log.state.dt, log.state.dt)
    detector = EventDetector(scene, rules, clock)
    first, rest = log.rows(slice(0, 1)), log.rows(slice(1, None))
    return (*detector.reset(first), *detector.feed(rest))


# --- shapes and stages --------------------------------------------------------------------------


def classify_shape(events: Events | Iterable[Event] | WorldLog) -> Shape:
    """Shape of a trajectory by its events (the paper's classifier).

    "direct_strike" if the player touched a domino before any pillar; else "canonical" if it touched
    a pillar and the slab tilted to the fall angle; else "glancing" if it touched a pillar; "none"
    if it touched neither.
    """
    found = tuple(events.events if isinstance(events, WorldLog) else events)
    first = {e.kind: e for e in reversed(found)}
    if "impact" not in first:
        return "none"
    strike = first.get("strike")
    if strike is not None and strike.body_b == first["impact"].body_b:
        return "direct_strike"
    return "canonical" if "collapse" in first else "glancing"


@dataclass(frozen=True)
class Stage:
    """A stage of a chain.

    Attributes:
        name: of `SHAPE_STAGE_CHAINS`.
        start, end: [s]; the last stage ends with the record.
        detected_at: first time [s] at which its start can be known.
    """

    name: str
    start: float
    end: float
    detected_at: float


_STAGE_EVENT = {"cascade_from_strike": "topple"}


def stages(
    events: Events | Iterable[Event] | WorldLog, *, end: float = math.nan
) -> tuple[Stage, ...]:
    """Stages that a trajectory went through, in the order of its shape's chain.

    A stage begins with its event and ends where the next begins; "cascade_from_strike" begins with
    the first domino's fall. A chain that breaks off has the stages up to the break, so a run
    without impact is "rolling" alone.

    Args:
        events: of one trajectory.
        end: end of the record [s].
    """
    found = tuple(events.events if isinstance(events, WorldLog) else events)
    first = {e.kind: e for e in reversed(found)}
    begun: list[tuple[str, Event]] = []
    for name in SHAPE_STAGE_CHAINS[classify_shape(found)]:
        event = first.get(_STAGE_EVENT.get(name, name))
        if event is None:
            break
        begun.append((name, event))
    ends = [event.time for _, event in begun[1:]] + [end]
    return tuple(
        Stage(name, event.time, stop, event.detected_at)
        for (name, event), stop in zip(begun, ends, strict=True)
    )
