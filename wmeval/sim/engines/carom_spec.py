"""What a billiard table is made of, what happens on it, and the mechanics of a ball."""

from __future__ import annotations

from dataclasses import dataclass, field

from wmeval.sim.engines.carom_collisions import PairFriction
from wmeval.sim.engines.carom_motion import BallState, Cloth
from wmeval.sim.protocol import BodyMechanics, Vec


@dataclass(frozen=True)
class Cushion:
    """A straight cushion.

    Attributes:
        normal: horizontal unit vector into the table.
        offset: ``centre . normal`` [m] of a ball that touches.
        nose: sin theta of `carom_collisions.han_2005`.
    """

    normal: tuple[float, float]
    offset: float
    nose: float


@dataclass(frozen=True)
class TableSpec:
    """All that decides what happens on a table.

    Attributes:
        radius: of every ball [m].
        masses: [kg].
        cloths: what each ball meets on the cloth.
        cushions: any number.
        restitution: of ball i with ball j.
        friction: scale of ``pair_friction`` for ball i with ball j.
        cushion_restitution: of ball i with cushion k.
        cushion_friction: coefficient of ball i with cushion k.
        pair_friction: between balls.
        contact_time: [s].
        throw: name of `carom_collisions.THROW_MODELS`.
        cushion: name of `carom_collisions.CUSHION_MODELS`.
    """

    radius: float
    masses: tuple[float, ...]
    cloths: tuple[Cloth, ...]
    cushions: tuple[Cushion, ...]
    restitution: tuple[tuple[float, ...], ...]
    friction: tuple[tuple[float, ...], ...]
    cushion_restitution: tuple[tuple[float, ...], ...]
    cushion_friction: tuple[tuple[float, ...], ...]
    pair_friction: PairFriction = field(default_factory=PairFriction)
    contact_time: float = 1e-3
    throw: str = "alciatore_a14"
    cushion: str = "han_2005"


@dataclass(frozen=True)
class Impact:
    """One impact.

    Attributes:
        time: [s].
        a: ball.
        b: the other ball, or None.
        cushion: the cushion, or None.
        position: of the contact, on b or the cushion, [m]; z above the cloth.
        normal: unit vector towards a.
        normal_impulse: on a [N s].
        tangential_impulse: friction impulse on a [N s].
        distance: gap [m].
    """

    time: float
    a: int
    b: int | None
    cushion: int | None
    position: Vec
    normal: Vec
    normal_impulse: float
    tangential_impulse: Vec
    distance: float


def ball_mechanics(state: BallState, mass: float, radius: float) -> BodyMechanics:
    """Mechanics of a solid ball of uniform density."""
    s, inertia = state, 0.4 * mass * radius * radius
    return BodyMechanics(
        (mass * s.vx, mass * s.vy, 0.0),
        (inertia * s.wx, inertia * s.wy, inertia * s.wz),
        0.5 * mass * (s.vx * s.vx + s.vy * s.vy),
        0.5 * inertia * (s.wx * s.wx + s.wy * s.wy + s.wz * s.wz),
    )
