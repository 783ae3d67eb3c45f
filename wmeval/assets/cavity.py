"""The hollow of a vessel of revolution: half-full planes, level sections and ways to the wall.

A `Cavity` is what a polyline of (radius, z) sweeps about the z axis. The plane that halves its
volume is found for every tilt; its section has a centre and two half axes, which carry the waves
of `wmeval.assets.liquid`. Pure numpy, in the vessel's own frame.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import apart
from wmeval.errors import UserError

F8 = NDArray[np.float64]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(14)  # type: ignore[no-untyped-call]
# Both ends of a piece may hold a square root; this change of variable smooths them.
_U = 0.5 * (_NODES + 1)
_PLACE = _U * _U * (3 - 2 * _U)
_SHARE = 0.5 * _WEIGHTS * 6 * _U * (1 - _U)


@dataclass(frozen=True)
class Section:
    """Where the half-full plane of a tilt cuts the cavity.

    Attributes:
        level: distance of the plane from the origin along up [m].
        along: place of the section's centre along the tilt direction [m].
        half: half axes [m] along and across the tilt: twice the section's radii of gyration, so
            those of the ellipse itself where the plane cuts nothing but the cylinder.
    """

    level: float
    along: float
    half: tuple[float, float]


class Cavity:
    """A hollow of revolution about z.

    Args:
        profile: (radius, z) [m] from the lower to the upper end of the axis; radii start and end at
            0 and rise to one longest stretch of the largest radius (the cylinder), then fall.

    Raises:
        UserError: the profile is no such line, or its half-full level is not in the cylinder, or
            the origin does not lie on that level.
    """

    def __init__(self, profile: Sequence[tuple[float, float]]) -> None:
        points = np.array(profile, np.float64)
        if points.ndim != 2 or len(points) < 4 or points[0, 0] != 0 or points[-1, 0] != 0:
            raise UserError("cavity: the profile must start and end on the axis (radius 0)")
        if (np.diff(points[:, 1]) < 0).any() or (points[:, 0] < 0).any():
            raise UserError("cavity: the profile must rise along z, with radii >= 0")
        self.points = points
        self.radius = float(points[:, 0].max())
        widest = np.flatnonzero(points[:, 0] > self.radius * (1 - 1e-12))
        self.cylinder = (float(points[widest[0], 1]), float(points[widest[-1], 1]))
        """Lowest and highest z [m] of the cylinder."""
        self.volume = float(_frustum_volumes(points).sum())
        if abs(2 * self._volume_below(0.0) / self.volume - 1) > 1e-9:
            raise UserError("cavity: put the origin on the level of the half-full upright vessel")
        if not self.cylinder[0] < 0 < self.cylinder[1]:
            raise UserError("cavity: the half-full level must lie in the cylinder")

    @staticmethod
    def half_level(profile: Sequence[tuple[float, float]]) -> float:
        """The z [m] below which lies half of the volume that a profile sweeps."""
        points = np.array(profile, np.float64)
        parts = _frustum_volumes(points)
        below = np.concatenate([[0.0], np.cumsum(parts)])
        k = int(np.searchsorted(below, below[-1] / 2) - 1)
        low, high = points[k, 1], points[k + 1, 1]
        wanted = below[-1] / 2 - below[k]
        for _ in range(80):
            middle = 0.5 * (low + high)
            t = (middle - points[k, 1]) / (points[k + 1, 1] - points[k, 1])
            r0, r1 = points[k, 0], points[k, 0] + t * (points[k + 1, 0] - points[k, 0])
            part = math.pi / 3 * (middle - points[k, 1]) * (r0 * r0 + r0 * r1 + r1 * r1)
            low, high = (middle, high) if part < wanted else (low, middle)
        return float(0.5 * (low + high))

    @property
    def bounds(self) -> F8:
        """Lower and upper corner (2, 3) [m]."""
        r = self.radius
        return np.array([[-r, -r, self.points[0, 1]], [r, r, self.points[-1, 1]]])

    def _volume_below(self, z: float) -> float:
        p = self.points
        cut = np.interp(z, p[:, 1], p[:, 0])
        kept = np.concatenate([p[p[:, 1] < z], [[cut, z]]])
        return float(_frustum_volumes(kept).sum())

    # --- half-full planes -----------------------------------------------------------------------

    def within_cylinder(self, tilt_cos: float, reach: float = 0.0) -> bool:
        """Whether the half-full plane, moved by ``reach`` [m], cuts nothing but the cylinder."""
        c = abs(tilt_cos)
        if c < 1e-3:
            return False
        rise = self.radius * math.sqrt(max(1 - c * c, 0.0)) / c + reach / c
        return rise < min(-self.cylinder[0], self.cylinder[1])

    def section(self, tilt_cos: float) -> Section:
        """The half-full section for the cosine of the angle between up and the vessel's axis."""
        c = min(max(tilt_cos, -1.0), 1.0)
        if self.within_cylinder(c):
            # Both halves of the cylinder are alike about the origin.
            return Section(0.0, 0.0, (self.radius / abs(c), self.radius))
        s = math.sqrt(1 - c * c)
        target = self.volume / 2

        def excess(h: float) -> float:
            return self._slices(h, c, s, _segment_area) - target

        reach = float(np.abs(self.points).sum(axis=1).max())
        level = _root(excess, -reach, reach)
        z, weight, r, x = self._cut(level, c, s)
        w = np.sqrt(np.maximum(r * r - x * x, 0.0))
        u = (level * c - z) / s
        share = 2 * w * weight / s
        area = float(share.sum())
        middle = float((share * u).sum()) / area
        uu = float((share * (u - middle) ** 2).sum()) / area
        yy = float((share * w * w).sum()) / (3 * area)
        return Section(level, middle, (2 * math.sqrt(uu), 2 * math.sqrt(yy)))

    def _slices(self, h: float, c: float, s: float, area: Callable[[F8, F8], F8]) -> float:
        _, weight, r, x = self._cut(h, c, s)
        return float((weight * area(r, x)).sum())

    def _cut(self, h: float, c: float, s: float) -> tuple[F8, F8, F8, F8]:
        """Heights, weights, radii and the cutting plane's x of the quadrature along z."""
        p = self.points
        z0, z1 = p[:-1, 1], p[1:, 1]
        tall = z1 > z0
        z0, z1, r0 = z0[tall], z1[tall], p[:-1, 0][tall]
        slope = (p[1:, 0] - p[:-1, 0])[tall] / (z1 - z0)
        edges = [z0, z1]
        for sign in (-1.0, 1.0):
            # Where the plane leaves the slices: (h - z c) / s = sign r(z).
            with np.errstate(divide="ignore", invalid="ignore"):
                at = (h - sign * s * (r0 - slope * z0)) / (c + sign * s * slope)
            edges.append(np.where((at > z0) & (at < z1), at, z0))
        cuts = np.sort(np.stack(edges, axis=1), axis=1)
        a, b = cuts[:, :-1], cuts[:, 1:]
        z = a[..., None] + (b - a)[..., None] * _PLACE
        weight = (b - a)[..., None] * _SHARE
        r = r0[:, None, None] + slope[:, None, None] * (z - z0[:, None, None])
        x = np.clip((h - z * c) / s, -r, r)
        return z.ravel(), weight.ravel(), r.ravel(), x.ravel()

    # --- ways to the wall -----------------------------------------------------------------------

    def exits(self, origin: F8, direction: F8) -> F8:
        """Distance to the wall along rays from inside.

        Args:
            origin: (..., 3) [m].
            direction: (..., 3), unit.

        Returns:
            (...) distances [m] to the nearest crossing ahead.
        """
        return np.asarray(self.crossings(origin, direction).min(axis=-1))

    def pieces(
        self, chosen: NDArray[np.intp] | None = None
    ) -> tuple[F8, F8, F8, F8, F8, NDArray[np.bool_]]:
        """Ends z0, z1 and r0, r1 [m] of pieces of the wall, dr / dz, and whether they are level."""
        k = slice(None) if chosen is None else chosen
        z0, z1, r0, r1, slope, flat = self._pieces
        return z0[k], z1[k], r0[k], r1[k], slope[k], flat[k]

    @cached_property
    def _pieces(self) -> tuple[F8, F8, F8, F8, F8, NDArray[np.bool_]]:
        p = self.points
        z0, z1, r0, r1 = p[:-1, 1], p[1:, 1], p[:-1, 0], p[1:, 0]
        flat = z1 <= z0
        return z0, z1, r0, r1, (r1 - r0) / np.where(flat, 1.0, z1 - z0), flat

    def crossings(self, origin: F8, direction: F8, piece: NDArray[np.intp] | None = None) -> F8:
        """As `exits`, to each of the P pieces of the wall: (..., P), inf where it is missed.

        Args:
            origin: (..., 3) [m].
            direction: (..., 3), unit.
            piece: (...) the one piece that each ray is asked about; then the result is (..., 1).
        """
        o, d = np.broadcast_arrays(origin, direction)
        o, d = o[..., None, :], d[..., None, :]
        z0, z1, r0, r1, slope, flat = self.pieces(None if piece is None else piece[..., None])
        # (o + t d)_xy^2 = (start + t rate)^2 on a cone.
        start = r0 + slope * (o[..., 2] - z0)
        rate = slope * d[..., 2]
        a = d[..., 0] ** 2 + d[..., 1] ** 2 - rate * rate
        b = o[..., 0] * d[..., 0] + o[..., 1] * d[..., 1] - start * rate
        c = o[..., 0] ** 2 + o[..., 1] ** 2 - start * start
        best = np.full(a.shape, np.inf)
        tiny = 1e-12
        with np.errstate(divide="ignore", invalid="ignore"):
            root = np.sqrt(b * b - a * c)
            q = -(b + np.copysign(root, b))
            for t in (q / a, c / q):
                z = o[..., 2] + t * d[..., 2]
                good = (t > tiny) & (z >= z0 - tiny) & (z <= z1 + tiny) & (start + t * rate >= 0)
                best = np.minimum(best, np.where(good & ~flat, t, np.inf))
            t = (z0 - o[..., 2]) / d[..., 2]
            x, y = o[..., 0] + t * d[..., 0], o[..., 1] + t * d[..., 1]
            away = np.hypot(x, y)
            low, high = np.minimum(r0, r1), np.maximum(r0, r1)
            good = flat & (t > tiny) & (away >= low - tiny) & (away <= high + tiny)
            best = np.minimum(best, np.where(good, t, np.inf))
        return np.asarray(best)

    @cached_property
    def _angles(self) -> F8:
        """Angle from the lower end of the axis of every profile point, seen from the origin."""
        away, up = apart(self.points)
        angles = np.arctan2(away, -up)
        if (np.diff(angles) < -1e-12).any():
            raise UserError("cavity: some of its wall cannot be seen from the origin")
        return np.asarray(angles)

    def wall(self, direction: F8) -> tuple[F8, F8]:
        """Points (..., 3) [m] of the wall seen from the origin along unit vectors, and its normals.

        The origin sees every point of the wall, so that this maps the sphere to the wall.
        """
        across = np.hypot(direction[..., 0], direction[..., 1])
        down = -direction[..., 2]
        angle = np.arctan2(across, down)
        p = self.points
        k = np.clip(np.searchsorted(self._angles, angle, side="right") - 1, 0, len(p) - 2)
        r0, z0 = p[k, 0], p[k, 1]
        dr, dz = p[k + 1, 0] - r0, p[k + 1, 1] - z0
        # t (across, -down) = (r0, z0) + share (dr, dz)
        t = (r0 * dz - z0 * dr) / (across * dz + down * dr)
        points = direction * t[..., None]
        length = np.hypot(dr, dz)
        with np.errstate(invalid="ignore", divide="ignore"):
            outward = np.where(across[..., None] > 0, direction[..., :2] / across[..., None], 0.0)
        normal = np.concatenate(
            [outward * (dz / length)[..., None], (-dr / length)[..., None]], axis=-1
        )
        return np.asarray(points), np.asarray(normal)


def _frustum_volumes(points: F8) -> F8:
    r0, r1 = points[:-1, 0], points[1:, 0]
    return np.asarray(np.pi / 3 * np.diff(points[:, 1]) * (r0 * r0 + r0 * r1 + r1 * r1))


def _segment_area(r: F8, x: F8) -> F8:
    """Area of the part of a disc of radius r that lies below x."""
    q = x / np.maximum(r, 1e-300)
    return np.asarray(r * r * (np.pi - np.arccos(q) + q * np.sqrt(np.maximum(1 - q * q, 0.0))))


def _root(function: Callable[[float], float], low: float, high: float) -> float:
    """Root of a rising function (Illinois' regula falsi)."""
    f_low, f_high = function(low), function(high)
    side = 0
    for _ in range(200):
        middle = (low * f_high - high * f_low) / (f_high - f_low)
        f = function(middle)
        if f == 0 or high - low < 1e-14:
            return middle
        if f < 0:
            step = middle - low
            low, f_low = middle, f
            if side == -1:
                f_high *= 0.5
            side = -1
        else:
            step = high - middle
            high, f_high = middle, f
            if side == 1:
                f_low *= 0.5
            side = 1
        if abs(step) < 1e-15:
            break
    return 0.5 * (low + high) if abs(f) > 1e-15 else middle
