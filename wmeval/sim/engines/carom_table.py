"""Balls on a table from event to event: nothing is stepped, and any time can be asked for.

The next event is the earliest of all phase ends, ball-ball contacts and ball-cushion contacts, each
found in closed form or as a bracketed root (`carom_roots`). What happens does not depend on when
somebody looks. Rules that the equations leave open, all deterministic:

- One instant is resolved in rounds until nothing that touches approaches. A round takes ALL pairs
  of balls that touch and approach, together (`carom_collisions`); without any, the first cushion.
- A pair, or a ball and a cushion, that meets again within ``contact_time`` of its last impact, the
  time that a contact lasts, meets without loss (restitution 1; a cushion then pushes at the
  height of the centre). This is the TC model of Luding and McNamara, "How to handle the inelastic
  collapse of a dissipative hard-sphere gas with the TC model", Granular Matter 1 (1998) 113-128: a
  ball whose spin presses it against another makes finitely many, ever smaller, bounces.
- A pair, or a ball at a cushion, that friction with the cloth presses together and that meets so
  slowly that it would be back within ``contact_time`` gets beforehand, in place, as much of that
  friction as makes its bounce last one contact time (at most half a contact time of it). So balls
  that spin against each other or against a cushion meet once per contact time, until they roll.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence

from wmeval.sim.engines.carom_collisions import (
    CUSHION_MODELS,
    THROW_MODELS,
    Hit,
    Impulse,
    approach,
)
from wmeval.sim.engines.carom_contacts import first_pair_contact, first_wall_contact
from wmeval.sim.engines.carom_motion import (
    RESTING,
    BallState,
    Phase,
    Turning,
    begin,
)
from wmeval.sim.engines.carom_pressed import Instant, part, press
from wmeval.sim.engines.carom_roots import RESTING as RESTING_SPEED
from wmeval.sim.engines.carom_roots import TOUCHING
from wmeval.sim.engines.carom_spec import Impact, TableSpec, ball_mechanics
from wmeval.sim.protocol import BodyMechanics, Quat

_MAX_ROUNDS = 10_000


class Table:
    """Balls on a table.

    Args:
        spec: all that decides what happens.
        states: of the balls at t = 0.
        rotations: of the balls at t = 0, wxyz.

    Attributes:
        now: time reached [s].
        impacts: since the caller last cleared the list.
        events: events so far.
    """

    def __init__(
        self, spec: TableSpec, states: Sequence[BallState], rotations: Sequence[Quat]
    ) -> None:
        self.spec = spec
        self._throw, self._cushion = THROW_MODELS[spec.throw], CUSHION_MODELS[spec.cushion]
        self.now = 0.0
        self.impacts: list[Impact] = []
        self.events = 0
        n = len(states)
        self._phases: list[list[Phase]] = [
            [begin(s, 0.0, c)] for s, c in zip(states, spec.cloths, strict=True)
        ]
        self._turnings = [Turning(q) for q in rotations]
        self._pairs = [(i, j) for i in range(n) for j in range(i + 1, n)]
        self._walls = [(i, k) for i in range(n) for k in range(len(spec.cushions))]
        self._pair_times = dict.fromkeys(self._pairs, math.inf)
        self._wall_times = dict.fromkeys(self._walls, math.inf)
        self._pair_last = dict.fromkeys(self._pairs, -math.inf)
        self._wall_last = dict.fromkeys(self._walls, -math.inf)
        self._next = 0.0
        self._predict(0.0, range(n))

    # --- what is ----------------------------------------------------------------------------

    def __len__(self) -> int:
        return len(self._phases)

    @property
    def at_rest(self) -> bool:
        """Nothing moves or turns."""
        return all(p[-1].kind == RESTING for p in self._phases)

    @property
    def next_event(self) -> float:
        """Time of the next event [s]; infinite when nothing will happen."""
        return self._next

    def phases(self, ball: int) -> tuple[Phase, ...]:
        """All phases of a ball so far, in order; each lasts until the next begins."""
        return tuple(self._phases[ball])

    def phase(self, ball: int, t: float) -> Phase:
        """The phase of a ball at a time [s] up to `now`.

        Raises:
            ValueError: a time before 0 or after `now`.
        """
        phases = self._phases[ball]
        if t >= phases[-1].start and t <= self.now:
            return phases[-1]
        if not 0.0 <= t <= self.now:
            raise ValueError(f"t = {t} s: the table knows 0 to {self.now} s")
        return phases[bisect_right(phases, t, key=_start) - 1]

    def state(self, ball: int, t: float) -> BallState:
        """State of a ball at ANY time [s] up to `now`, exactly; after the events of that time.

        Raises:
            ValueError: a time before 0 or after `now`.
        """
        return self.phase(ball, t).at(t)

    def rotation(self, ball: int) -> Quat:
        """Rotation (wxyz) of a ball now."""
        return self._turnings[ball].at(self._phases[ball], self.now)

    def mechanics(self, t: float) -> tuple[BodyMechanics, ...]:
        """Momentum and energy of every ball at ANY time [s] up to `now`.

        Raises:
            ValueError: a time before 0 or after `now`.
        """
        spec = self.spec
        return tuple(
            ball_mechanics(self.state(i, t), m, spec.radius) for i, m in enumerate(spec.masses)
        )

    def gap(self, a: int, b: int) -> float:
        """Distance of two balls' surfaces [m] now."""
        p, q = self.state(a, self.now), self.state(b, self.now)
        return math.hypot(p.x - q.x, p.y - q.y) - 2.0 * self.spec.radius

    # --- what is done to it -----------------------------------------------------------------

    def put(self, ball: int, state: BallState, rotation: Quat | None = None) -> None:
        """Give a ball another state now; None leaves its rotation."""
        self.put_all({ball: (state, rotation)})

    def put_all(self, states: dict[int, tuple[BallState, Quat | None]]) -> None:
        """Give several balls other states at once."""
        for ball, (state, rotation) in states.items():
            q = self.rotation(ball) if rotation is None else rotation
            self._phases[ball].append(begin(state, self.now, self.spec.cloths[ball]))
            self._turnings[ball].restart(q, len(self._phases[ball]) - 1)
            for last in (self._pair_last, self._wall_last):
                for key in last:
                    if key[0] == ball or (last is self._pair_last and key[1] == ball):
                        last[key] = -math.inf
        self._predict(self.now, states)

    def advance(self, until: float) -> None:
        """Go on to a time [s]; every event up to and at it happens.

        Raises:
            ValueError: a time before `now`.
        """
        if until < self.now:
            raise ValueError(f"t = {until} s: the table is already at {self.now} s")
        while self._next <= until:
            self._happen(self._next)
        self.now = until

    def settle(self, longest: float = 600.0) -> float:
        """Go on until everything rests.

        Returns:
            The time [s] of the last event.

        Raises:
            RuntimeError: something still moves ``longest`` [s] from now.
        """
        limit = self.now + longest
        while not self.at_rest:
            if self._next > limit:
                raise RuntimeError(f"balls still move after {longest} s: is there friction?")
            t = self._next
            self._happen(t)
            self.now = t
        return self.now

    # --- events -----------------------------------------------------------------------------

    def _predict(self, t: float, balls: Iterable[int]) -> None:
        """When the balls next meet each other and the cushions, seen from time t."""
        spec, changed = self.spec, set(balls)
        phases = [p[-1] for p in self._phases]
        for i, j in self._pairs:
            if i not in changed and j not in changed:
                continue
            a, b = phases[i], phases[j]
            if a.kind == RESTING and b.kind == RESTING:
                self._pair_times[i, j] = math.inf
                continue
            h = first_pair_contact(a, b, t, 2.0 * spec.radius)
            self._pair_times[i, j] = math.inf if h is None else t + h
        for i in changed:
            phase = phases[i]
            for k, cushion in enumerate(spec.cushions):
                h = None if phase.kind == RESTING else first_wall_contact(phase, t, cushion)
                self._wall_times[i, k] = math.inf if h is None else t + h
        self._next = min(
            min((p.end for p in phases), default=math.inf),
            min(self._pair_times.values(), default=math.inf),
            min(self._wall_times.values(), default=math.inf),
        )

    def _happen(self, t: float) -> None:
        """All that happens at time t, the next event's."""
        self.events += 1
        spec = self.spec
        changed = set()
        for i, phases in enumerate(self._phases):
            if phases[-1].end <= t:
                phases.append(begin(phases[-1].last(spec.radius), t, spec.cloths[i]))
                changed.add(i)
        pairs = [pair for pair, time in self._pair_times.items() if time <= t]
        walls = [wall for wall, time in self._wall_times.items() if time <= t]
        if pairs or walls:
            now = Instant(t, [p[-1].at(t) for p in self._phases])
            latest = [p[-1] for p in self._phases]
            slow_pairs, slow_walls = press(now, latest, spec, pairs, walls)
            self._pair_last.update(dict.fromkeys(slow_pairs, t))
            self._wall_last.update(dict.fromkeys(slow_walls, t))
            self._rounds(now)
            part(now, spec, pairs, walls)
            for i in now.touched:
                self._phases[i].append(begin(now.states[i], t, spec.cloths[i]))
            # A contact that came to nothing is predicted anew, too.
            changed |= now.touched | {i for pair in pairs for i in pair} | {i for i, _ in walls}
        self._predict(t, sorted(changed))

    def _rounds(self, now: Instant) -> None:
        """Impacts until nothing that touches approaches."""
        for _ in range(_MAX_ROUNDS):
            hits = self._hits(now)
            if hits:
                for cluster in clusters(hits):
                    self._collide(now, cluster)
                continue
            wall = next((w for w in self._walls if self._closing(now, w)), None)
            if wall is None:
                return
            self._bounce(now, wall)
        raise RuntimeError(f"the impacts at t = {now.time} s do not end")

    def _hits(self, now: Instant) -> list[Hit]:
        """Pairs that touch and approach."""
        hits = []
        for i, j in self._pairs:
            a, b = now.states[i], now.states[j]
            dx, dy = a.x - b.x, a.y - b.y
            if (dx * a.vx + dy * a.vy) - (dx * b.vx + dy * b.vy) >= 0.0:
                continue
            distance = math.hypot(dx, dy)
            if distance - 2.0 * self.spec.radius > TOUCHING:
                continue
            normal = (dx / distance, dy / distance)
            if approach(a, b, normal) < -RESTING_SPEED:
                hits.append(self._hit(now, i, j, normal))
        return hits

    def _hit(self, now: Instant, i: int, j: int, normal: tuple[float, float]) -> Hit:
        spec = self.spec
        again = now.time - self._pair_last[i, j] < spec.contact_time
        e = 1.0 if again else spec.restitution[i][j]
        return Hit(i, j, normal, e, spec.friction[i][j])

    def _collide(self, now: Instant, hits: Sequence[Hit]) -> None:
        spec = self.spec
        before = now.states
        now.states, impulses = self._throw(
            before, hits, spec.masses, spec.radius, spec.pair_friction
        )
        for hit, impulse in zip(hits, impulses, strict=True):
            self._pair_last[hit.a, hit.b] = now.time
            now.touched |= {hit.a, hit.b}
            if impulse.normal > 0.0:
                self._note_pair(now, hit, impulse)

    def _note_pair(self, now: Instant, hit: Hit, impulse: Impulse) -> None:
        (nx, ny), r = hit.normal, self.spec.radius
        a, b = now.states[hit.a], now.states[hit.b]
        distance = math.hypot(a.x - b.x, a.y - b.y) - 2.0 * r
        self.impacts.append(
            Impact(
                now.time, hit.a, hit.b, None, (b.x + r * nx, b.y + r * ny, r), (nx, ny, 0.0),
                impulse.normal, impulse.tangential, distance,
            )
        )  # fmt: skip

    def _closing(self, now: Instant, wall: tuple[int, int]) -> bool:
        """A ball touches a cushion and approaches it."""
        s, cushion = now.states[wall[0]], self.spec.cushions[wall[1]]
        nx, ny = cushion.normal
        return (
            s.vx * nx + s.vy * ny < -RESTING_SPEED
            and s.x * nx + s.y * ny - cushion.offset <= TOUCHING
        )

    def _bounce(self, now: Instant, wall: tuple[int, int]) -> None:
        spec, (i, k) = self.spec, wall
        cushion = spec.cushions[k]
        again = now.time - self._wall_last[wall] < spec.contact_time
        s = now.states[i]
        after, impulse, normal = self._cushion(
            s,
            cushion.normal,
            mass=spec.masses[i],
            radius=spec.radius,
            nose=0.0 if again else cushion.nose,
            restitution=1.0 if again else spec.cushion_restitution[i][k],
            friction=spec.cushion_friction[i][k],
        )
        now.states[i] = after
        now.touched.add(i)
        self._wall_last[wall] = now.time
        r, (nx, ny, nz) = spec.radius, normal
        gap = s.x * cushion.normal[0] + s.y * cushion.normal[1] - cushion.offset
        self.impacts.append(
            Impact(
                now.time, i, None, k, (s.x - r * nx, s.y - r * ny, r - r * nz), normal,
                impulse.normal, impulse.tangential, gap,
            )
        )  # fmt: skip


_start: Callable[[Phase], float] = lambda phase: phase.start  # noqa: E731


def clusters(hits: Sequence[Hit]) -> list[list[Hit]]:
    """Hits that hang together through common balls, in order."""
    groups: list[tuple[set[int], list[Hit]]] = []
    for hit in hits:
        balls, members = {hit.a, hit.b}, [hit]
        rest = []
        for group in groups:
            if group[0] & balls:
                balls |= group[0]
                members = group[1] + members
            else:
                rest.append(group)
        groups = [*rest, (balls, members)]
    return [members for _, members in groups]
