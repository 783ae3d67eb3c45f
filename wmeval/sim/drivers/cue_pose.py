"""Where the cue stick and the player's eye are: pure functions of the state of a game."""

from __future__ import annotations

import math
from dataclasses import dataclass

from wmeval.sim.protocol import Quat, Vec

PULL_BACK_M = 0.16
"""How far a full shot draws the stick back."""
GAP_M = 0.012
FOLLOW_M = 0.07
"""How far the tip follows through."""
LEVEL_DEG, STEEP_DEG = 5.0, 40.0
STICK_RADIUS_M = 0.011
STROKE_S, WITHDRAW_S, RETURN_S = 0.25, 0.7, 0.8
BACK_M, RIGHT_M, UP_M = 0.45, 0.42, 0.10
"""Where the stick waits while the balls move, from where it struck."""
EYE_BACK_M, EYE_UP_M, EYE_AHEAD_M = 0.62, 0.36, 0.55


@dataclass(frozen=True)
class Standpoint:
    """All that the poses depend on.

    Attributes:
        time: now [s].
        ball: centre of the cue ball [m].
        angle: aim [rad].
        power: force over the greatest force.
        hit: offset of the tip over the radius, right and up.
        shot: place x, y [m], angle [rad] and time [s] of the newest shot; None before the first.
        moving: something moves.
        since: time since when nothing moves [s].
        radius: of the balls [m].
        half: reach of the balls' centres [m].
        cushion: height to clear above the balls' centres [m].
    """

    time: float
    ball: Vec
    angle: float
    power: float
    hit: tuple[float, float]
    shot: tuple[float, float, float, float] | None
    moving: bool
    since: float
    radius: float
    half: tuple[float, float]
    cushion: float


def smooth(t: float) -> float:
    """Hermite step from 0 at t = 0 to 1 at t = 1."""
    t = min(max(t, 0.0), 1.0)
    return t * t * (3.0 - 2.0 * t)


def _anchor(s: Standpoint) -> tuple[float, float, float, float]:
    """Place x, y, angle of who plays, and how far the stick is back at the ball (0 to 1).

    While balls move he stands where he struck; then he walks to where the cue ball rests.
    """
    x, y, _ = s.ball
    if s.shot is None or (not s.moving and s.since < s.shot[3]):
        return x, y, s.angle, 1.0  # no shot yet, or placed by hand after it
    sx, sy, angle, _ = s.shot
    share = 0.0 if s.moving else smooth((s.time - s.since) / RETURN_S)
    turn = math.remainder(s.angle - angle, 2.0 * math.pi)
    return sx + (x - sx) * share, sy + (y - sy) * share, angle + turn * share, share


def elevation(x: float, y: float, angle: float, s: Standpoint) -> float:
    """Angle [rad] at which a stick behind a ball clears the rail behind it."""
    dx, dy = -math.cos(angle), -math.sin(angle)
    to_rail = min(
        (h - math.copysign(1.0, d) * p) / abs(d) if abs(d) > 1e-9 else math.inf
        for p, d, h in ((x, dx, s.half[0]), (y, dy, s.half[1]))
    )
    rise = s.cushion + 2.0 * STICK_RADIUS_M - s.hit[1] * s.radius
    steep = math.atan2(rise, max(to_rail, 0.02))
    return min(max(steep, math.radians(LEVEL_DEG)), math.radians(STEEP_DEG))


def stick_pose(s: Standpoint) -> tuple[Vec, Quat]:
    """Tip [m] and rotation of the stick, which points along its own +x."""
    x, y, angle, share = _anchor(s)
    tilt = elevation(x, y, angle, s)
    dx, dy = math.cos(angle), math.sin(angle)
    right, up = s.hit[0] * s.radius, s.hit[1] * s.radius
    deep = math.sqrt(max(s.radius**2 - right * right - up * up, 0.0))
    # Ahead of the ball's centre along the aim, back and up along the stick.
    address = -(GAP_M + PULL_BACK_M * s.power)
    along, away = address, 0.0
    if s.shot is not None and share < 1.0:
        since = s.time - s.shot[3]
        follow = FOLLOW_M * -math.expm1(-since / 0.03)
        away = smooth((since - STROKE_S) / WITHDRAW_S) * (1.0 - share)
        along = follow * (1.0 - share) + address * share
    ahead = along * math.cos(tilt) - deep - BACK_M * away
    place = (
        x + ahead * dx + (right + RIGHT_M * away) * dy,
        y + ahead * dy - (right + RIGHT_M * away) * dx,
        s.ball[2] + up - along * math.sin(tilt) + UP_M * away,
    )
    # About the vertical by the angle, then nose down by the tilt.
    a, b = 0.5 * angle, 0.5 * tilt
    ca, sa, cb, sb = math.cos(a), math.sin(a), math.cos(b), math.sin(b)
    return place, (ca * cb, -sa * sb, ca * sb, sa * cb)


def eye_pose(s: Standpoint) -> tuple[Vec, Vec]:
    """Eye and looked-at point [m] of who plays: behind the cue, along the shot."""
    x, y, angle, _ = _anchor(s)
    dx, dy = math.cos(angle), math.sin(angle)
    z = s.ball[2]
    return (
        (x - EYE_BACK_M * dx, y - EYE_BACK_M * dy, z + EYE_UP_M),
        (x + EYE_AHEAD_M * dx, y + EYE_AHEAD_M * dy, z),
    )
