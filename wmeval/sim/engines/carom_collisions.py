"""Impacts of billiard balls with each other and with cushions, as impulses.

Models have the names of their sources: `THROW_MODELS`, `CUSHION_MODELS`.

**Ball and ball**, `alciatore_a14`: Newton's restitution along the line of centres and Coulomb
friction across it, which throws the struck ball and passes spin on (Alciatore, "Technical proof
A.14: The effects of cut angle, speed, and spin on object ball throw", 2006). The friction impulse
opposes the slip of the two surfaces and is ``min(mu j_n, |s| / K)`` with ``K = (7/2) (1/m_a +
1/m_b)``, what ends the slip: ``m |s| / 7`` for equal balls. The coefficient falls with the slip,
``mu = a + b exp(-c |s|)``; Alciatore fits Marlow's (1995) measurements with 0.009951, 0.108 and
1.088 s/m.

**Ball and cushion**, `han_2005`: Han, "Dynamics in carom and three cushion billiards", Journal of
Mechanical Science and Technology 19 (2005) 976-984. The nose touches the ball above its centre, at
an angle theta with ``sin theta = (h - R) / R``; restitution acts along that direction and friction
across it: ``min(mu P_n, 2 m |s| / 7)``, sliding throughout or sticking at the end. Balls stay on
the cloth, as in Han's plane model: the vertical momentum goes to the table.

**Several impacts at one instant** (none of the papers treats them): all pairs that approach are
resolved together as a linear complementarity problem for the normal impulses, whose solution has
``u' >= -e u`` for every pair (Moreau's rule: symmetric, and energy cannot rise since all get the
least e among them). Each friction impulse then ends at most its n-th part of the slip when n
impacts hang together, so that energy cannot rise either. Pairs that only touch are left out: they
take part in the next round at the same instant, so that an impulse runs through a row of frozen
balls as it does on a table.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from wmeval.sim.engines.carom_motion import BallState
from wmeval.sim.protocol import Vec


@dataclass(frozen=True)
class PairFriction:
    """Friction between balls, ``scale (a + b exp(-c slip))``; slip in m/s, c in s/m."""

    a: float = 0.009951
    b: float = 0.108
    c: float = 1.088

    def coefficient(self, slip: float, scale: float = 1.0) -> float:
        """Coefficient at a slip [m/s]."""
        return scale * (self.a + self.b * math.exp(-self.c * slip))


@dataclass(frozen=True)
class Hit:
    """One impact of ball a on ball b.

    Attributes:
        a, b: balls.
        normal: horizontal unit vector from b to a.
        restitution: of this impact.
        friction: scale of `PairFriction` for this pair.
    """

    a: int
    b: int
    normal: tuple[float, float]
    restitution: float
    friction: float


@dataclass(frozen=True)
class Impulse:
    """What an impact did to a: normal impulse and friction impulse, both [N s]."""

    normal: float
    tangential: Vec


def approach(a: BallState, b: BallState, normal: tuple[float, float]) -> float:
    """Rate of the gap [m/s]: negative when they approach. ``normal`` points from b to a."""
    return (a.vx - b.vx) * normal[0] + (a.vy - b.vy) * normal[1]


# --- ball and ball ------------------------------------------------------------------------------


def alciatore_a14(
    states: Sequence[BallState],
    hits: Sequence[Hit],
    masses: Sequence[float],
    radius: float,
    friction: PairFriction,
) -> tuple[list[BallState], list[Impulse]]:
    """Impacts that hang together, at one instant.

    Args:
        states: of all balls.
        hits: impacts, all approaching; the least restitution holds for all.
        masses: of all balls [kg].
        radius: of every ball [m].
        friction: between balls.

    Returns:
        States after, and one impulse for each hit.
    """
    after = list(states)
    e = min(h.restitution for h in hits)
    speeds = [approach(states[h.a], states[h.b], h.normal) for h in hits]
    matrix = [[_coupling(k, l, masses) for l in hits] for k in hits]  # noqa: E741
    normals = complementary(matrix, [(1.0 + e) * u for u in speeds])
    for hit, p in zip(hits, normals, strict=True):
        _push(after, hit, p, masses)
    # Friction of all from the same state: no order.
    middle = list(after)
    impulses = []
    for hit, p in zip(hits, normals, strict=True):
        tangential = _rub(middle, after, hit, p, masses, radius, friction, len(hits))
        impulses.append(Impulse(p, tangential))
    return after, impulses


def _coupling(k: Hit, l: Hit, masses: Sequence[float]) -> float:  # noqa: E741
    """Rate of k's gap that a unit impulse at l gives [1/kg]."""
    dot = k.normal[0] * l.normal[0] + k.normal[1] * l.normal[1]
    total = 0.0
    for ball, sign in ((k.a, 1.0), (k.b, -1.0)):
        if ball == l.a:
            total += sign * dot / masses[ball]
        elif ball == l.b:
            total -= sign * dot / masses[ball]
    return total


def _push(states: list[BallState], hit: Hit, p: float, masses: Sequence[float]) -> None:
    nx, ny = hit.normal
    a, b = states[hit.a], states[hit.b]
    ka, kb = p / masses[hit.a], p / masses[hit.b]
    states[hit.a] = replace(a, vx=a.vx + ka * nx, vy=a.vy + ka * ny)
    states[hit.b] = replace(b, vx=b.vx - kb * nx, vy=b.vy - kb * ny)


def pair_slip(
    a: BallState, b: BallState, normal: tuple[float, float], radius: float
) -> tuple[float, float]:
    """Slip [m/s] of a's surface over b's where they touch: along (-n_y, n_x) and upwards."""
    nx, ny = normal
    across = (a.vy - b.vy) * nx - (a.vx - b.vx) * ny - radius * (a.wz + b.wz)
    upward = -radius * ((a.wx + b.wx) * ny - (a.wy + b.wy) * nx)
    return across, upward


def _rub(
    before: Sequence[BallState],
    after: list[BallState],
    hit: Hit,
    p: float,
    masses: Sequence[float],
    radius: float,
    friction: PairFriction,
    share: int,
) -> Vec:
    """Friction of one impact, added to ``after``; the impulse on a."""
    nx, ny = hit.normal
    across, upward = pair_slip(before[hit.a], before[hit.b], hit.normal, radius)
    slip = math.hypot(across, upward)
    if slip == 0.0 or p <= 0.0:
        return (0.0, 0.0, 0.0)
    ma, mb = masses[hit.a], masses[hit.b]
    stick = slip / (3.5 * (1.0 / ma + 1.0 / mb) * share)
    j = min(friction.coefficient(slip, hit.friction) * p, stick)
    jt, jz = -j * across / slip, -j * upward / slip
    a, b = after[hit.a], after[hit.b]
    # dw = -(R / I) n x J for both balls, with n x J = jt z - jz t.
    ka, kb = 2.5 / (ma * radius), 2.5 / (mb * radius)
    tx, ty = -ny, nx
    after[hit.a] = BallState(
        a.x, a.y, a.vx + jt * tx / ma, a.vy + jt * ty / ma,
        a.wx + ka * jz * tx, a.wy + ka * jz * ty, a.wz - ka * jt,
    )  # fmt: skip
    after[hit.b] = BallState(
        b.x, b.y, b.vx - jt * tx / mb, b.vy - jt * ty / mb,
        b.wx + kb * jz * tx, b.wy + kb * jz * ty, b.wz - kb * jt,
    )  # fmt: skip
    return (jt * tx, jt * ty, jz)


def complementary(matrix: Sequence[Sequence[float]], q: Sequence[float]) -> list[float]:
    """The p with ``p >= 0``, ``w = M p + q >= 0`` and ``p w = 0`` (Murty's least-index rule).

    Args:
        matrix: M, symmetric and positive definite.
        q: (n,).

    Raises:
        ArithmeticError: no solution within 2^n pivots: M is not positive definite.
    """
    n = len(q)
    active: set[int] = set()
    scale = max(map(abs, q))
    for _ in range(2**n + 1):
        p = _solve(matrix, q, sorted(active))
        wrong = None
        for i in range(n):
            w = sum(matrix[i][k] * p[k] for k in range(n)) + q[i]
            if (i in active and p[i] < 0.0) or (i not in active and w < -1e-14 * scale):
                wrong = i
                break
        if wrong is None:
            return p
        active ^= {wrong}
    raise ArithmeticError("the impacts of one instant have no solution")


def _solve(matrix: Sequence[Sequence[float]], q: Sequence[float], rows: list[int]) -> list[float]:
    """Solution of ``M p = -q`` on the given rows, zero elsewhere (Gauss with pivots)."""
    table = [[matrix[i][k] for k in rows] + [-q[i]] for i in rows]
    n = len(rows)
    for k in range(n):
        best = max(range(k, n), key=lambda i: abs(table[i][k]))
        table[k], table[best] = table[best], table[k]
        for i in range(k + 1, n):
            factor = table[i][k] / table[k][k]
            for m in range(k, n + 1):
                table[i][m] -= factor * table[k][m]
    values = [0.0] * n
    for k in reversed(range(n)):
        rest = sum(table[k][m] * values[m] for m in range(k + 1, n))
        values[k] = (table[k][n] - rest) / table[k][k]
    p = [0.0] * len(q)
    for k, i in enumerate(rows):
        p[i] = values[k]
    return p


# --- ball and cushion ---------------------------------------------------------------------------


def han_2005(
    state: BallState,
    normal: tuple[float, float],
    *,
    mass: float,
    radius: float,
    nose: float,
    restitution: float,
    friction: float,
) -> tuple[BallState, Impulse, Vec]:
    """A ball meets a cushion.

    Args:
        state: before, approaching.
        normal: horizontal unit vector from the cushion into the table.
        mass: [kg].
        radius: [m].
        nose: height of the contact above the ball's centre over the radius, sin theta.
        restitution: along the line from the nose to the ball's centre.
        friction: coefficient.

    Returns:
        State after, impulses, and the unit vector from the nose to the centre.
    """
    sine = nose
    cosine = math.sqrt(1.0 - sine * sine)
    nx, ny, nz = normal[0] * cosine, normal[1] * cosine, -sine
    closing = -(state.vx * nx + state.vy * ny)
    p = (1.0 + restitution) * mass * closing
    # Slip of the ball's surface at the nose: v + w x (-R n), without its part along n.
    wx, wy, wz = state.wx, state.wy, state.wz
    sx = state.vx + closing * nx - radius * (wy * nz - wz * ny)
    sy = state.vy + closing * ny - radius * (wz * nx - wx * nz)
    sz = closing * nz - radius * (wx * ny - wy * nx)
    slip = math.sqrt(sx * sx + sy * sy + sz * sz)
    j = min(friction * p, 2.0 * mass * slip / 7.0)
    k = -j / slip if slip > 0.0 else 0.0
    jx, jy, jz = k * sx, k * sy, k * sz
    spin = -2.5 / (mass * radius)  # (-R n) x J / I
    after = BallState(
        state.x,
        state.y,
        state.vx + (p * nx + jx) / mass,
        state.vy + (p * ny + jy) / mass,
        wx + spin * (ny * jz - nz * jy),
        wy + spin * (nz * jx - nx * jz),
        wz + spin * (nx * jy - ny * jx),
    )
    return after, Impulse(p, (jx, jy, jz)), (nx, ny, nz)


THROW_MODELS = {"alciatore_a14": alciatore_a14}
"""What happens between balls, by the engine's option ``throw``."""
CUSHION_MODELS = {"han_2005": han_2005}
"""What happens at a cushion, by the engine's option ``cushion``."""
