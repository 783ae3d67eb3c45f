"""The liquid in a half-full vessel: its waving surface, and its body as a mesh of fixed topology.

The surface is a level plane plus the antisymmetric modes of a cylindrical tank,

    eta(x) = sum_n (s_n . x / r) R g_n(r / R),   g_n(q) = 2 / (xi_n^2 - 1) J1(xi_n q) / J1(xi_n)

for n = 1, 2 (H. N. Abramson (ed.), NASA SP-106, 1966, chapter 2; F. T. Dodge, The New Dynamic
Behavior of Liquids in Moving Containers, 2000), with J1'(xi_n) = 0. A third shape, ``g_3 = q - g_1
- g_2``, stands for all higher modes, so that the three together are the plane ``eta = s . x``
exactly when all s_n are the same slope s. In a tilted vessel the modes are stretched to the level
section's half axes (ours). The level is moved until half of the cavity lies below the surface.

All vectors are in the vessel's frame. Pure numpy.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.cavity import Cavity
from wmeval.scene import MeshData

F8 = NDArray[np.float64]

XI = (1.841183781340659, 5.331442773525033)
"""First two zeros of J1' (Abramson 1966)."""
SHARES = tuple(2 / (xi * xi - 1) for xi in XI)
"""g_1(1) and g_2(1): how much of a slope's rise at the wall is carried by modes 1 and 2."""
TILT_SHARES = tuple(8 / (xi**2 * (xi**2 - 1)) for xi in XI)
"""Of a slope s_n, the part that the surface's least-squares plane over the circle shows."""
MODES = 3
SEGMENTS, RINGS, ARCS = 72, 12, 44
"""Of the mesh: around, from the middle of the surface to its rim, and from there down the wall."""

_TERMS = 16


def _series() -> F8:
    """g_n(q) / q as polynomials in q^2: (2, terms), lowest power first."""
    out = np.empty((2, _TERMS))
    for n, xi in enumerate(XI):
        terms = [
            (-1) ** k * (xi / 2) ** (2 * k + 1) / (math.factorial(k) * math.factorial(k + 1))
            for k in range(_TERMS)
        ]
        out[n] = SHARES[n] * np.array(terms) / sum(terms)
    return out


SERIES = _series()
_SERIES_BOTH = np.concatenate([SERIES, SERIES * (2 * np.arange(_TERMS) + 1)])


def shapes(q: F8) -> F8:
    """g_n(q) / q of the three shapes, (3, ...): beyond the wall (q > 1) modes 1 and 2 stay level.

    Args:
        q: distance from the middle, 1 at the wall.
    """
    inner = np.minimum(q, 1.0)
    out = np.empty((MODES, *q.shape))
    out[:2] = _polynomials(SERIES, inner * inner)
    out[:2] *= np.where(q > 1, inner / np.maximum(q, 1.0), 1.0)
    out[2] = 1.0 - out[0] - out[1]
    return out


def _shapes_and_slopes(q: F8) -> tuple[F8, F8]:
    """As `shapes`, and dg_n / dq, of ways (S,)."""
    inner = np.minimum(q, 1.0)
    values = _polynomials(_SERIES_BOTH, inner * inner)
    g, slope = np.empty((MODES, len(q))), np.empty((MODES, len(q)))
    np.multiply(values[:2], np.where(q > 1, inner / np.maximum(q, 1.0), 1.0), out=g[:2])
    np.multiply(values[2:], q <= 1, out=slope[:2])
    g[2], slope[2] = 1.0 - g[0] - g[1], 1.0 - slope[0] - slope[1]
    return g, slope


def _polynomials(coefficients: F8, x: F8) -> F8:
    """(N, ...) values at x (...) of N polynomials (N, terms), lowest power first."""
    columns = coefficients.reshape(*coefficients.shape, *[1] * x.ndim)
    out = np.empty((len(coefficients), *x.shape))
    out[:] = columns[:, -1]
    for k in range(coefficients.shape[1] - 2, -1, -1):
        out *= x
        out += columns[:, k]
    return out


@dataclass(frozen=True, eq=False)
class _Fan:
    """Level ways from the middle of a section to the wall.

    Attributes:
        way: (S, 3) unit.
        x, y: (S,) their parts along and across the tilt.
        away: (S,) [m] to the wall at the level plane.
        piece: (S,) of the wall there.
    """

    way: F8
    x: F8
    y: F8
    away: F8
    piece: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Surface:
    """A liquid surface in a half-full cavity.

    Attributes:
        cavity: what holds the liquid.
        up: (3,) unit, against gravity, in the vessel's frame.
        slopes: (3, 3) slope vectors of the three shapes, level; the surface rises along them.
    """

    cavity: Cavity
    up: F8
    slopes: F8

    @cached_property
    def axes(self) -> tuple[F8, F8]:
        """Unit vectors along the tilt and across it, both level."""
        n = self.up
        s = math.hypot(float(n[0]), float(n[1]))
        t = np.array([n[0] / s, n[1] / s, 0.0]) if s > 1e-12 else np.array([1.0, 0.0, 0.0])
        u = t * n[2] - np.array([0.0, 0.0, s])
        return u, np.cross(n, u)

    @cached_property
    def _section(self) -> tuple[float, F8, float, float]:
        """Level plane's height, section's centre, half axes."""
        section = self.cavity.section(float(self.up[2]))
        u, _ = self.axes
        centre = section.level * self.up + section.along * u
        return section.level, centre, *section.half

    @property
    def half(self) -> tuple[float, float]:
        """Half axes [m] of the level section along and across the tilt."""
        return self._section[2], self._section[3]

    @property
    def centre(self) -> F8:
        """(3,) [m] middle of the level section."""
        return self._section[1]

    @cached_property
    def level(self) -> float:
        """How much [m] the surface's mean stands above the plane that halves the cavity."""
        # What the finite number of ways gets wrong grows with the wave.
        most = float(np.abs(self.slopes).max())
        if self._simple or most < 1e-6:
            return 0.0  # the wave's crest and trough are alike about the middle
        level = 0.0
        for count in dict.fromkeys((_FINE[0][1], next(n for limit, n in _FINE if most < limit))):
            fan = self._fan(count)
            for _ in range(8):
                excess, area = self._excess(level, fan)
                level -= excess / area
                # What a step leaves is of second order in what it mended.
                if abs(excess) < 1e-5 * self.cavity.volume:
                    break
        return level

    @cached_property
    def _simple(self) -> bool:
        """Whether the surface touches nothing but the cylinder."""
        reach = float(np.linalg.norm(self.slopes, axis=1) @ (*SHARES, 0.1)) * max(self.half)
        return self.cavity.within_cylinder(float(self.up[2]), 1.3 * reach)

    def rise(self, along: F8, across: F8) -> F8:
        """Height [m] of the wave above the level plane at places [m] from the section's centre."""
        a, b = self.half
        q = np.hypot(along / a, across / b)
        u, v = self.axes
        g = shapes(q)
        out = np.zeros(np.shape(q))
        for n in range(MODES):
            su, sv = float(self.slopes[n] @ u), float(self.slopes[n] @ v)
            if su or sv:
                out += (su * along + sv * across) * g[n]
        return out

    @cached_property
    def _ways(self) -> tuple[F8, F8, F8]:
        """Level directions (S, 3) in which the rim's points are looked for, and their parts.

        The ring turns with the vessel: it is the vessel's own ring of meridians, carried by the
        shortest turn from the vessel's axis to up and stretched to the section's half axes.
        """
        turn = np.arange(SEGMENTS) * (2 * math.pi / SEGMENTS)
        n = self.up
        azimuth = math.atan2(float(n[1]), float(n[0])) if abs(n[2]) < 1 - 1e-24 else 0.0
        u, v = self.axes
        if n[2] < -1 + 1e-12:
            azimuth = 0.0
        a, b = self.half
        # The shortest turn keeps what lies across the tilt, and carries the rest to `u`.
        x, y = a * np.cos(turn - azimuth), b * np.sin(turn - azimuth)
        away = np.hypot(x, y)
        x, y = x / away, y / away
        return x[:, None] * u + y[:, None] * v, x, y

    def _excess(self, level: float, fan: _Fan) -> tuple[float, float]:
        """Volume under the surface at an offset, less that under the level plane.

        And its derivative: the area [m^2] that the surface covers, seen along up.
        """
        away, height, piece = self._meeting(level, fan)
        nodes, weights = _GAUSS
        at = away[:, None] * nodes
        eta = level + self.rise(fan.x[:, None] * at, fan.y[:, None] * at)
        inner = ((eta * at) @ weights) * away
        # The wall between the level plane and the rim leans.
        few, shares = _GAUSS_WALL
        origin = self.centre + (height[:, None] * few)[..., None] * self.up
        way = np.repeat(fan.way[:, None, :], len(few), axis=1)
        wall = self.cavity.crossings(origin, way, np.repeat(piece[:, None], len(few), axis=1))[
            ..., 0
        ]
        # On one piece where both ends are.
        other = (piece != fan.piece) | ~np.isfinite(wall).all(axis=1)
        if other.any():
            wall[other] = self.cavity.exits(origin[other], way[other])
        outer = 0.5 * height * ((wall * wall - (away * away)[:, None]) @ shares)
        turn = 2 * math.pi / len(away)
        return float((inner + outer).sum() * turn), float(0.5 * (away * away).sum() * turn)

    def _fan(self, count: int) -> _Fan:
        turn = (np.arange(count) + 0.5) * (2 * math.pi / count)
        u, v = self.axes
        x, y = np.cos(turn), np.sin(turn)
        return self._aimed(x[:, None] * u + y[:, None] * v, x, y)

    def _aimed(self, way: F8, x: F8, y: F8) -> _Fan:
        near = self.cavity.crossings(self.centre, way)
        return _Fan(way, x, y, near.min(axis=1), near.argmin(axis=1))

    def _meeting(self, level: float, fan: _Fan) -> tuple[F8, F8, NDArray[np.intp]]:
        """Where surface and wall meet along the ways of a fan.

        Newton's method on the piece of the wall that a way is heading for. A way that meets it
        beyond its ends is headed for what stands at its new height.

        Returns:
            Level distances (S,) and heights (S,) [m], and the piece of the wall of each.
        """
        away, piece, height = fan.away.copy(), fan.piece.copy(), np.full(len(fan.x), level)
        todo = np.arange(len(away))
        for turn in range(_ROUNDS):
            if turn:
                origin = self.centre + height[todo, None] * self.up
                near = self.cavity.crossings(origin, fan.way[todo])
                piece[todo], away[todo] = near.argmin(axis=1), near.min(axis=1)
            away[todo], good = self._on_pieces(level, fan, todo, away[todo], piece[todo])
            height[todo] = level + self.rise(fan.x[todo] * away[todo], fan.y[todo] * away[todo])
            todo = todo[~good]
            if not len(todo):
                break
        # The nearest wall is meant, not the far side of a neck.
        origin = self.centre + height[:, None] * self.up
        wrong = np.abs(self.cavity.crossings(origin, fan.way).min(axis=1) - away) > 1e-9
        wrong[todo] = True
        if wrong.any():
            way, x, y = fan.way[wrong], fan.x[wrong], fan.y[wrong]
            away[wrong], height[wrong], piece[wrong] = self._crept(level, way, x, y)
        return away, height, piece

    def _on_pieces(
        self, level: float, fan: _Fan, ways: NDArray[np.intp], start: F8, piece: NDArray[np.intp]
    ) -> tuple[F8, NDArray[np.bool_]]:
        """Level distances at which ways meet one piece each, and whether they truly do."""
        way, x, y = fan.way[ways], fan.x[ways], fan.y[ways]
        z0, z1, r0, r1, slope, flat = self.cavity.pieces(piece)
        (u, v), (a, b) = self.axes, self.half
        reach = np.hypot(x / a, y / b)
        # How each shape rises along each way.
        lean = (self.slopes @ u)[:, None] * x + (self.slopes @ v)[:, None] * y
        t = start
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            for _ in range(6):
                g, slopes = _shapes_and_slopes(t * reach)
                rise = level + t * (lean * g).sum(axis=0)
                climb = (lean * slopes).sum(axis=0)
                point = self.centre + t[:, None] * way + rise[:, None] * self.up
                move = way + climb[:, None] * self.up
                radius = r0 + slope * (point[:, 2] - z0)
                round_ = 0.5 * ((point[:, :2] ** 2).sum(axis=1) - radius * radius)
                change = (point[:, :2] * move[:, :2]).sum(axis=1) - radius * slope * move[:, 2]
                step = np.where(flat, (point[:, 2] - z0) / move[:, 2], round_ / change)
                t = t - step
                if np.abs(step).max() < _STEP:  # the next one would be its square
                    break
            z, tiny = point[:, 2], 1e-10
            inside = (z > z0 - tiny) & (z < z1 + tiny) & (radius > -tiny)
            wide = np.hypot(point[:, 0], point[:, 1])
            low, high = np.minimum(r0, r1), np.maximum(r0, r1)
            inside = np.where(flat, (wide > low - tiny) & (wide < high + tiny), inside)
            good = inside & (np.abs(step) < _STEP) & (t > 0)
        return np.where(np.isfinite(t) & (t > 0), t, start), good

    def _crept(self, level: float, way: F8, x: F8, y: F8) -> tuple[F8, F8, NDArray[np.intp]]:
        """As `_meeting`, by going to the wall at one height after the other."""
        height = np.full(len(x), level)
        for _ in range(60):
            near = self.cavity.crossings(self.centre + height[:, None] * self.up, way)
            away = near.min(axis=1)
            new = level + self.rise(x * away, y * away)
            if np.abs(new - height).max() < 1e-12:
                break
            height = new
        return away, height, near.argmin(axis=1)

    @cached_property
    def rim(self) -> F8:
        """Where surface and wall meet: (SEGMENTS, 3) [m], once around."""
        way, x, y = self._ways
        if not self._simple:
            away, height, _ = self._meeting(self.level, self._aimed(way, x, y))
            return np.asarray(self.centre + away[:, None] * way + height[:, None] * self.up)
        # On the cylinder x^2 + y^2 = R^2: a quadratic for each height of the wave.
        radius2 = self.cavity.radius**2
        a = (way[:, :2] ** 2).sum(axis=1)
        away = np.sqrt(radius2 / a)
        height = np.zeros(SEGMENTS)
        lean = way[:, :2] @ self.up[:2]
        steep = float(self.up[:2] @ self.up[:2])
        for _ in range(40):
            new = self.rise(x * away, y * away)
            done = np.abs(new - height).max() < 1e-15
            height = new
            b, c = lean * height, steep * height * height - radius2
            away = (np.sqrt(b * b - a * c) - b) / a
            if done:
                break
        return np.asarray(away[:, None] * way + height[:, None] * self.up)

    def normals(self, points: F8) -> F8:
        """Unit normals (..., 3) of the surface at points (..., 3) [m] on it."""
        u, v = self.axes
        local = points - self.centre
        along, across = local @ u, local @ v
        step = 1e-5 * max(self.half)
        du = (self.rise(along + step, across) - self.rise(along - step, across)) / (2 * step)
        dv = (self.rise(along, across + step) - self.rise(along, across - step)) / (2 * step)
        normal = self.up - du[..., None] * u - dv[..., None] * v
        return np.asarray(normal / np.linalg.norm(normal, axis=-1, keepdims=True))


def _gauss(count: int) -> tuple[F8, F8]:
    """Nodes and weights on 0..1."""
    nodes, weights = np.polynomial.legendre.leggauss(count)  # type: ignore[no-untyped-call]
    return 0.5 * (nodes + 1), 0.5 * weights


_GAUSS, _GAUSS_WALL = _gauss(8), _gauss(3)
_FINE = ((0.002, 96), (0.02, 192), (math.inf, 432))
_ROUNDS = 8
_STEP = 1e-8


def held_surface(cavity: Cavity, up: F8, slopes: F8) -> Surface:
    """The surface of waves that stay within the wall.

    Where a wave on a far tilted vessel is so high that the surface no longer meets the wall once
    all around, it is drawn a tenth lower, and again: it would break there, which is out of scope.

    Args:
        cavity: what holds the liquid.
        up: (3,) unit, against gravity, in the vessel's frame.
        slopes: (3, 3) as `Surface.slopes`.
    """
    surface = Surface(cavity, up, slopes)
    with np.errstate(all="ignore"):
        while not (math.isfinite(surface.level) and np.isfinite(surface.rim).all()):
            surface = Surface(cavity, up, 0.9 * surface.slopes)
    return surface


def liquid_mesh(surface: Surface) -> MeshData:
    """The liquid as a closed mesh [m] in the vessel's frame.

    Every surface of every vessel has the same triangles, and a vertex keeps its meaning: share of
    the way from the middle of the surface to its rim, or from the rim down the wall to the lowest
    point below the middle. So barycentric coordinates carry points from one instant to another.
    """
    rim = surface.rim
    up, cavity = surface.up, surface.cavity
    u, v = surface.axes
    middle = surface.centre
    local = rim - middle
    along, across = local @ u, local @ v
    share = np.linspace(0, 1, RINGS + 1)[1:]
    x, y = share[:, None] * along, share[:, None] * across
    height = surface.level + surface.rise(x, y)
    top = middle + x[..., None] * u + y[..., None] * v + height[..., None] * up
    top[-1] = rim
    top = top.reshape(-1, 3)
    top = np.concatenate([(middle + surface.level * up)[None], top])
    top_normals = surface.normals(top)

    # Great circles, seen from the vessel's origin, from the rim to straight down.
    way = rim / np.linalg.norm(rim, axis=1, keepdims=True)
    angle = np.arccos(np.clip(-way @ up, -1, 1))
    t = np.linspace(0, 1, ARCS + 1)[:-1, None]
    arc = (np.sin((1 - t) * angle)[..., None] * way - np.sin(t * angle)[..., None] * up) / np.sin(
        angle
    )[:, None]
    arc /= np.linalg.norm(arc, axis=-1, keepdims=True)
    wall, wall_normals = cavity.wall(arc.reshape(-1, 3))
    wall[:SEGMENTS] = rim
    low, low_normal = cavity.wall(-up[None])
    vertices = np.concatenate([top, wall, low])
    normals = np.concatenate([top_normals, wall_normals, low_normal])
    return MeshData(
        np.ascontiguousarray(vertices, np.float32),
        TRIANGLES,
        np.ascontiguousarray(normals, np.float32),
        UV,
    )


def _triangles() -> NDArray[np.uint32]:
    i = np.arange(SEGMENTS)
    j = (i + 1) % SEGMENTS
    parts = [np.stack([np.zeros_like(i), 1 + i, 1 + j], axis=1)]
    for ring in range(RINGS - 1):
        a, b = 1 + ring * SEGMENTS, 1 + (ring + 1) * SEGMENTS
        parts += [
            np.stack([a + i, b + i, b + j], axis=1),
            np.stack([a + i, b + j, a + j], axis=1),
        ]
    start = 1 + RINGS * SEGMENTS
    for ring in range(ARCS - 1):
        a, b = start + ring * SEGMENTS, start + (ring + 1) * SEGMENTS
        parts += [
            np.stack([a + i, b + i, b + j], axis=1),
            np.stack([a + i, b + j, a + j], axis=1),
        ]
    last = start + (ARCS - 1) * SEGMENTS
    pole = np.full_like(i, last + SEGMENTS)
    parts.append(np.stack([last + i, pole, last + j], axis=1))
    return np.ascontiguousarray(np.concatenate(parts), np.uint32)


def _uv() -> NDArray[np.float32]:
    share = np.concatenate([np.linspace(0, 0.3, RINGS + 1)[1:], np.linspace(0.3, 1, ARCS)])
    u, v = np.meshgrid(np.arange(SEGMENTS) / SEGMENTS, share)
    uv = np.stack([u.ravel(), v.ravel()], axis=1)
    return np.ascontiguousarray(np.concatenate([[[0.0, 0.0]], uv, [[0.0, 1.0]]]), np.float32)


TRIANGLES = _triangles()
UV = _uv()
