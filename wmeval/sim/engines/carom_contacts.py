"""When moving balls next touch each other or a cushion, by their present phases."""

from __future__ import annotations

import math

from wmeval.sim.engines.carom_motion import Phase
from wmeval.sim.engines.carom_roots import first_contact
from wmeval.sim.engines.carom_spec import Cushion


def first_pair_contact(a: Phase, b: Phase, t: float, distance: float) -> float | None:
    """When two balls next touch within their present phases, counted from t [s]; None: not."""
    p, q = a.at(t), b.at(t)
    horizon = min(a.end, b.end) - t
    dx, dy = p.x - q.x, p.y - q.y
    vx, vy = p.vx - q.vx, p.vy - q.vy
    ax, ay = 0.5 * (a.ax - b.ax), 0.5 * (a.ay - b.ay)
    squared = dx * dx + dy * dy
    reach = distance + (math.hypot(vx, vy) + math.hypot(ax, ay) * horizon) * horizon
    if squared > 1.000001 * reach * reach:
        return None
    # (|d|^2 - D^2) / 2D: the gap to first order where it vanishes.
    k = 0.5 / distance
    quartic = (
        k * (squared - distance * distance),
        2.0 * k * (dx * vx + dy * vy),
        k * (vx * vx + vy * vy + 2.0 * (dx * ax + dy * ay)),
        2.0 * k * (vx * ax + vy * ay),
        k * (ax * ax + ay * ay),
    )
    return first_contact(quartic, horizon)


def first_wall_contact(phase: Phase, t: float, cushion: Cushion) -> float | None:
    """When a ball next touches a cushion within its present phase, counted from t [s]."""
    s = phase.at(t)
    nx, ny = cushion.normal
    gap = (
        s.x * nx + s.y * ny - cushion.offset,
        s.vx * nx + s.vy * ny,
        0.5 * (phase.ax * nx + phase.ay * ny),
    )
    return first_contact(gap, phase.end - t)
