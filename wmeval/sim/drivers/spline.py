"""A body that walks a closed curve at constant speed."""

from __future__ import annotations

import bisect
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from wmeval.scene import Card, Scene, Vec3
from wmeval.sim.drivers.names import body_index
from wmeval.sim.protocol import Driver, SubstepView, Vec

F8 = NDArray[np.float64]

# Gauss-Legendre points and weights of order five on [0, 1].
_NODES, _WEIGHTS = (
    0.5 * a
    for a in np.polynomial.legendre.leggauss(5)  # type: ignore[no-untyped-call]
)
_NODES = _NODES + 0.5
PIECES = 64
"""Pieces of a segment in the table of arc lengths."""


class ClosedSpline:
    """A closed Catmull-Rom spline by arc length (Catmull & Rom 1974, uniform knots).

    C1: position and tangent are continuous. Arc length is integrated by Gauss-Legendre rules into a
    table, which is inverted by cubic Hermite interpolation: to a micrometre on a stroll's walk.

    Args:
        points: (N, 3) that it runs through in order, N >= 3 [m].
    """

    def __init__(self, points: Sequence[Vec]) -> None:
        p = np.array(points, np.float64)
        before, after, second = np.roll(p, 1, 0), np.roll(p, -1, 0), np.roll(p, -2, 0)
        # Cubic coefficients (N, 4, 3), constant term first.
        cubic = np.stack(
            [
                p,
                0.5 * (after - before),
                before - 2.5 * p + 2.0 * after - 0.5 * second,
                0.5 * (second - before) + 1.5 * (p - after),
            ],
            axis=1,
        )
        self._cubic: list[tuple[Vec, ...]] = [tuple(map(tuple, c)) for c in cubic.tolist()]
        lengths = [0.0]
        self._knots: list[tuple[int, float, float, float]] = []
        for k in range(len(p)):
            for j in range(PIECES):
                ends = [_norm(self._rate(k, (j + e) / PIECES)) for e in (0, 1)]
                self._knots.append((k, j / PIECES, 1 / ends[0], 1 / ends[1]))
                u = (j + _NODES) / PIECES
                rate = cubic[k, 1] + u[:, None] * (2 * cubic[k, 2] + 3 * u[:, None] * cubic[k, 3])
                speed = np.linalg.norm(rate, axis=1)
                lengths.append(lengths[-1] + float(_WEIGHTS @ speed) / PIECES)
        self._lengths = lengths
        self.length: float = lengths[-1]

    def _parameter(self, distance: float) -> tuple[int, float]:
        s = distance % self.length
        i = min(bisect.bisect_right(self._lengths, s) - 1, len(self._knots) - 1)
        k, u0, slope0, slope1 = self._knots[i]
        piece = self._lengths[i + 1] - self._lengths[i]
        t = (s - self._lengths[i]) / piece
        # Cubic Hermite interpolation of u(s) between two rows, whose slopes are known.
        a, b = slope0 * piece, slope1 * piece
        step = 1 / PIECES
        return k, u0 + t * (a + t * (3 * step - 2 * a - b + t * (a + b - 2 * step)))

    def _rate(self, k: int, u: float) -> Vec:
        _, (bx, by, bz), (cx, cy, cz), (dx, dy, dz) = self._cubic[k]
        return (
            bx + u * (2 * cx + 3 * u * dx),
            by + u * (2 * cy + 3 * u * dy),
            bz + u * (2 * cz + 3 * u * dz),
        )

    def at(self, distance: float) -> tuple[Vec, Vec, float]:
        """The curve at a distance along it [m].

        Returns:
            Point [m], unit tangent, and the heading's change per metre [rad/m], seen from above.
        """
        k, u = self._parameter(distance)
        (ax, ay, az), (bx, by, bz), (cx, cy, cz), (dx, dy, dz) = self._cubic[k]
        point = (
            ax + u * (bx + u * (cx + u * dx)),
            ay + u * (by + u * (cy + u * dy)),
            az + u * (bz + u * (cz + u * dz)),
        )
        vx, vy, vz = self._rate(k, u)
        speed = _norm((vx, vy, vz))
        qx, qy = 2 * cx + 6 * u * dx, 2 * cy + 6 * u * dy
        level = vx * vx + vy * vy
        bend = (vx * qy - vy * qx) / (level * speed) if level > 0 else 0.0
        return point, (vx / speed, vy / speed, vz / speed), bend


def _norm(v: Vec) -> float:
    return math.sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2])


class Spline(Driver):
    """A kinematic body on a closed Catmull-Rom spline: constant speed, its +y along the tangent.

    A pure function of time. A body with collision geometry is put after every substep, a data body
    when somebody looks.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            body: name of the body.
            points: that the curve runs through in order [m].
            speed: along the curve [m/s]; negative walks it backwards, facing that way.
            start: distance along the curve at t = 0, as a fraction of its length.
        """

        body: str
        points: tuple[Vec3, ...] = Field(min_length=3)
        speed: float
        start: float = Field(default=0.0, ge=0, le=1)

    def __init__(self, params: Params) -> None:
        self._params = params
        self.curve = ClosedSpline(params.points)

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0."""
        self._body = body_index(scene, self._params.body, "spline")
        self._solid = bool(scene.bodies[self._body].collision)
        self._put(view)

    def after(self, view: SubstepView) -> None:
        """Put a body that others can touch."""
        if self._solid:
            self._put(view)

    def show(self, view: SubstepView) -> None:
        """Put a body that is only seen."""
        if not self._solid:
            self._put(view)

    def _put(self, view: SubstepView) -> None:
        p = self._params
        distance = p.start * self.curve.length + p.speed * view.substep * view.dt
        point, (tx, ty, tz), bend = self.curve.at(distance)
        v = p.speed
        sign = 1.0 if v >= 0 else -1.0
        # The heading that turns the body's +y onto the way.
        half = 0.5 * math.atan2(-sign * tx, sign * ty)
        view.set_state(
            self._body,
            point,
            (math.cos(half), 0.0, 0.0, math.sin(half)),
            (v * tx, v * ty, v * tz),
            (0.0, 0.0, v * bend),
        )
