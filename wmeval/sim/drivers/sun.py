"""A sun that turns, and the colours of its light and of the sky by its height."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from pydantic import Field

from wmeval.scene import Card, Scene
from wmeval.sim.protocol import Driver, Quat, SubstepView, Vec

# Elevation of the sun [deg]; sunlight, sky at the zenith, at the horizon, below the ground: linear
# RGB times strength. High sun: the defaults of `wmeval.scene.Sun` and `Sky`. Lower down the colours
# follow the reddening of direct light along the longer way through the air, the pink and orange
# band of twilight, its blue zenith, and a night without a moon that is lit so far that a picture
# of it can be read (a real one is a million times darker than the day). Sunlight below the horizon
# is the glow that a renderer shows in the sky; it does not reach the ground.
KEYS: tuple[tuple[float, Vec, Vec, Vec, Vec], ...] = (
    (-90.0, (0.0, 0.0, 0.0), (0.150, 0.205, 0.370), (0.185, 0.230, 0.365), (0.095, 0.105, 0.140)),
    (-20.0, (0.0, 0.0, 0.0), (0.150, 0.205, 0.370), (0.188, 0.232, 0.366), (0.096, 0.106, 0.140)),
    (
        -12.0,
        (0.12, 0.03, 0.02),
        (0.148, 0.206, 0.385),
        (0.275, 0.250, 0.345),
        (0.104, 0.106, 0.136),
    ),
    (-6.0, (0.60, 0.15, 0.05), (0.146, 0.214, 0.420), (0.540, 0.350, 0.340), (0.122, 0.114, 0.126)),
    (-1.0, (1.30, 0.34, 0.06), (0.148, 0.240, 0.490), (0.880, 0.510, 0.335), (0.146, 0.130, 0.128)),
    (1.5, (1.80, 0.52, 0.09), (0.148, 0.250, 0.510), (0.960, 0.590, 0.365), (0.160, 0.140, 0.134)),
    (6.0, (3.20, 1.42, 0.45), (0.146, 0.268, 0.560), (0.960, 0.690, 0.480), (0.180, 0.160, 0.148)),
    (14.0, (3.20, 2.10, 1.12), (0.146, 0.296, 0.630), (0.830, 0.735, 0.640), (0.200, 0.186, 0.172)),
    (30.0, (3.00, 2.56, 2.02), (0.152, 0.322, 0.690), (0.660, 0.720, 0.780), (0.212, 0.202, 0.190)),
    (55.0, (3.00, 2.84, 2.60), (0.160, 0.340, 0.720), (0.620, 0.740, 0.880), (0.220, 0.210, 0.200)),
    (90.0, (3.00, 2.88, 2.70), (0.160, 0.340, 0.720), (0.620, 0.740, 0.880), (0.220, 0.210, 0.200)),
)


class Sun(Driver):
    """A directional light that turns about the world's X axis, with the sky that goes with it.

    The light's orientation in Unity's frame is ``R_X(turn) R_Y(yaw) R_X(pitch)`` with ``turn =
    turn_deg + rate t``: at rest (rate 0, turn 0) its Euler angles are (pitch, yaw, 0), as a light
    in Unity's inspector, and pitch is the sun's elevation. A pure function of time.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            rate_deg_per_s: turning about world X; WMEval's scene: 100. 0 stands still.
            turn_deg: turned so far at t = 0 [deg].
            yaw_deg: Unity's second Euler angle of the unturned light [deg]. Turning, its sine is
                the part of the light along X that never changes: the noon sun stands at an
                elevation of 90 degrees less |yaw|.
            pitch_deg: Unity's first Euler angle of the unturned light [deg].
        """

        rate_deg_per_s: float = Field(default=100.0, ge=-36000, le=36000)
        turn_deg: float = 0.0
        yaw_deg: float = -30.0
        pitch_deg: float = 0.0

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0: there is nothing to remember."""

    def show(self, view: SubstepView) -> None:
        """Light and sky of the present."""
        p = self._params
        turn = p.turn_deg + p.rate_deg_per_s * (view.substep * view.dt)
        direction = light_direction(turn, p.yaw_deg, p.pitch_deg)
        color, zenith, horizon, ground = daylight(elevation_deg(direction))
        view.set_sun(direction, color)
        view.set_sky(zenith, horizon, ground)


# --- where it stands ----------------------------------------------------------------------------


def light_quaternion(turn_deg: float, yaw_deg: float, pitch_deg: float = 0.0) -> Quat:
    """World ``wxyz`` quaternion of the light; it shines along its own +y (Unity's forward)."""
    # Unity's angles turn left-handed: about the same axis, the other way.
    a, b, c = (math.radians(-x) / 2 for x in (turn_deg, yaw_deg, pitch_deg))
    ca, sa, cb, sb, cc, sc = (f(x) for x in (a, b, c) for f in (math.cos, math.sin))
    # (about x by a) (about z by b) (about x by c)
    w, x, y, z = ca * cb, sa * cb, -sa * sb, ca * sb
    return (w * cc - x * sc, w * sc + x * cc, y * cc + z * sc, z * cc - y * sc)


def light_direction(turn_deg: float, yaw_deg: float, pitch_deg: float = 0.0) -> Vec:
    """Unit vector along which the light travels, world frame."""
    turn, yaw, pitch = (math.radians(a) for a in (turn_deg, yaw_deg, pitch_deg))
    x, y, z = math.sin(yaw) * math.cos(pitch), math.cos(yaw) * math.cos(pitch), -math.sin(pitch)
    c, s = math.cos(turn), math.sin(turn)
    return (x, c * y + s * z, c * z - s * y)


def turn_of(direction: Sequence[float], pitch_deg: float = 0.0, yaw_deg: float = 0.0) -> float:
    """The turn [deg] in [-180, 180) that gives a direction: the inverse of `light_direction`."""
    yaw, pitch = math.radians(yaw_deg), math.radians(pitch_deg)
    y, z = math.cos(yaw) * math.cos(pitch), -math.sin(pitch)
    turn = math.atan2(-direction[2], direction[1]) - math.atan2(-z, y)
    return (math.degrees(turn) + 180.0) % 360.0 - 180.0


def elevation_deg(direction: Sequence[float]) -> float:
    """Height of the sun above the horizon [deg] of the direction in which its light travels."""
    return math.degrees(math.asin(min(max(-direction[2], -1.0), 1.0)))


# --- its colours --------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def _slopes() -> tuple[tuple[float, ...], ...]:
    """Slopes at the keys, twelve numbers each (F. N. Fritsch and J. Butland, 1984)."""
    x = [k[0] for k in KEYS]
    y = [_numbers(k) for k in KEYS]
    step = [b - a for a, b in pairwise(x)]
    out: list[list[float]] = [[0.0] * 12 for _ in KEYS]
    for c in range(12):
        rise = [(y[i + 1][c] - y[i][c]) / step[i] for i in range(len(step))]
        for i in range(1, len(step)):
            before, after = rise[i - 1], rise[i]
            if before * after > 0:
                share = (step[i - 1] + 2 * step[i]) / (3 * (step[i - 1] + step[i]))
                out[i][c] = before * after / (share * after + (1 - share) * before)
    return tuple(tuple(row) for row in out)


def _numbers(key: tuple[float, Vec, Vec, Vec, Vec]) -> tuple[float, ...]:
    return (*key[1], *key[2], *key[3], *key[4])


def daylight(elevation: float) -> tuple[Vec, Vec, Vec, Vec]:
    """Colours of a clear day by the height of the sun.

    Monotone cubic interpolation of `KEYS` in linear RGB: no colour overshoots its keys.

    Args:
        elevation: of the sun [deg], -90..90.

    Returns:
        Sunlight, zenith, horizon and ground: linear RGB times strength.
    """
    x = [k[0] for k in KEYS]
    i = min(max(bisect_right(x, elevation) - 1, 0), len(x) - 2)
    h = x[i + 1] - x[i]
    t = min(max((elevation - x[i]) / h, 0.0), 1.0)
    a, b = _numbers(KEYS[i]), _numbers(KEYS[i + 1])
    da, db = _slopes()[i], _slopes()[i + 1]
    t2, t3 = t * t, t * t * t
    w = (2 * t3 - 3 * t2 + 1, 3 * t2 - 2 * t3, h * (t3 - 2 * t2 + t), h * (t3 - t2))
    v = [w[0] * p + w[1] * q + w[2] * r + w[3] * s for p, q, r, s in zip(a, b, da, db, strict=True)]
    return (v[0], v[1], v[2]), (v[3], v[4], v[5]), (v[6], v[7], v[8]), (v[9], v[10], v[11])
