"""Balls that friction with the cloth presses against each other or a cushion.

What is done to them before and after the impacts of an instant, so that what is pressed together
meets once per contact time (see `wmeval.sim.engines.carom_table`).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from wmeval.sim.engines.carom_collisions import approach
from wmeval.sim.engines.carom_motion import RESTING, BallState, Phase
from wmeval.sim.engines.carom_roots import TOUCHING
from wmeval.sim.engines.carom_spec import TableSpec

Pairs = Sequence[tuple[int, int]]
"""Two balls each, or a ball and a cushion."""

_PARTING = 1e-9
"""Least speed [m/s] at which a pressed pair parts."""


@dataclass
class Instant:
    """States at one instant while it is being resolved."""

    time: float
    states: list[BallState]
    touched: set[int] = field(default_factory=set)


def press(
    now: Instant, phases: Sequence[Phase], spec: TableSpec, pairs: Pairs, walls: Pairs
) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
    """Slow contacts that friction with the cloth presses on: their bounce lasts long enough.

    Args:
        now: the instant; states change.
        phases: the latest of every ball.
        spec: of the table.
        pairs: of balls that meet.
        walls: balls and the cushions that they meet.

    Returns:
        Those pairs and walls that are so.
    """
    half = 0.5 * spec.contact_time
    loads: dict[int, float] = {}
    slow_pairs, slow_walls = [], []
    for i, j in pairs:
        a, b = phases[i], phases[j]
        normal = _normal(now, i, j)
        speed = -approach(now.states[i], now.states[j], normal)
        pull = -((a.ax - b.ax) * normal[0] + (a.ay - b.ay) * normal[1])
        if speed < pull * half:
            slow_pairs.append((i, j))
            for ball in (i, j):
                loads[ball] = max(loads.get(ball, 0.0), half - max(speed, 0.0) / pull)
    for i, k in walls:
        phase, normal = phases[i], spec.cushions[k].normal
        s = now.states[i]
        speed = -(s.vx * normal[0] + s.vy * normal[1])
        pull = -(phase.ax * normal[0] + phase.ay * normal[1])
        if speed < pull * half:
            slow_walls.append((i, k))
            loads[i] = max(loads.get(i, 0.0), half - max(speed, 0.0) / pull)
    for i, time in loads.items():
        _load(now, phases[i], i, time)
    return slow_pairs, slow_walls


def _load(now: Instant, phase: Phase, ball: int, time: float) -> None:
    """Friction with the cloth over a time [s], in place; no longer than its phase lasts."""
    if phase.kind == RESTING:
        return
    h = min(time, phase.end - now.time)
    s = now.states[ball]
    now.states[ball] = BallState(
        s.x, s.y, s.vx + phase.ax * h, s.vy + phase.ay * h,
        s.wx + phase.bx * h, s.wy + phase.by * h, s.wz + phase.bz * h,
    )  # fmt: skip
    now.touched.add(ball)


def part(now: Instant, spec: TableSpec, pairs: Pairs, walls: Pairs) -> None:
    """Contacts that overlap part, if only just: what they gain is below any rounding."""
    for i, j in pairs:
        a, b = now.states[i], now.states[j]
        gap = math.hypot(a.x - b.x, a.y - b.y) - 2.0 * spec.radius
        normal = _normal(now, i, j)
        lack = _PARTING - approach(a, b, normal)
        if lack > 0.0 and gap < -0.5 * TOUCHING:
            share = spec.masses[j] / (spec.masses[i] + spec.masses[j])
            now.states[i] = _moved(a, normal, share * lack)
            now.states[j] = _moved(b, normal, (share - 1.0) * lack)
            now.touched |= {i, j}
    for i, k in walls:
        cushion, s = spec.cushions[k], now.states[i]
        nx, ny = cushion.normal
        lack = _PARTING - (s.vx * nx + s.vy * ny)
        if lack > 0.0 and s.x * nx + s.y * ny - cushion.offset < -0.5 * TOUCHING:
            now.states[i] = _moved(s, cushion.normal, lack)
            now.touched.add(i)


def _normal(now: Instant, i: int, j: int) -> tuple[float, float]:
    a, b = now.states[i], now.states[j]
    dx, dy = a.x - b.x, a.y - b.y
    distance = math.hypot(dx, dy)
    return (dx / distance, dy / distance)


def _moved(state: BallState, normal: tuple[float, float], speed: float) -> BallState:
    return replace(state, vx=state.vx + speed * normal[0], vy=state.vy + speed * normal[1])
