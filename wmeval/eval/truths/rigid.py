"""Closed forms of GAUGE's rigid families: slides, spins, falls, swings.

Pure functions in SI units; g = 9.81 m/s^2 unless it is given. Bodies are points with the contact
laws of Coulomb and Newton; each function says where that ends.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.integrate import solve_ivp
from scipy.interpolate import CubicHermiteSpline
from scipy.optimize import brentq, linprog
from scipy.special import ellipj, ellipk

from wmeval.assets.gauge_cards import GRAVITY

F8 = NDArray[np.float64]

# --- slopes ---------------------------------------------------------------------------------------


def slope_acceleration(angle: float, friction: float, *, g: float = GRAVITY) -> float:
    """Acceleration g (sin th - mu cos th) of a block that slides down [m/s^2]; 0 where it sticks.

    Coulomb friction on a slope of angle th [rad] (GAUGE A.2.1, solved for the acceleration).
    """
    return max(0.0, g * (math.sin(angle) - friction * math.cos(angle)))


@dataclass(frozen=True)
class TetrahedronSlide:
    """A trirectangular tetrahedron on the slope that its own hypotenuse face fits.

    Attributes:
        acceleration: along the slope [m/s^2].
        direction: unit vector down the slope, world frame.
        tip_distance: way to the point where it begins to tip [m].
        tip_time: when it does [s].
    """

    acceleration: float
    direction: tuple[float, float, float]
    tip_distance: float
    tip_time: float


def tetrahedron_slide(leg: float, friction: float, *, g: float = GRAVITY) -> TetrahedronSlide:
    """Acceleration g (sqrt(2/3) - mu / sqrt 3), until the resultant leaves the slope (ours).

    The hypotenuse face, an equilateral triangle of height h = leg sqrt(3/2), slopes by
    sin th = sqrt(2/3). Base and tetrahedron share it at the start, so that after a way s the
    support ends h - s below the tetrahedron's upper edge. The centre of mass lies leg / (4 sqrt 3)
    above the face, h / 3 below that edge, and friction moves the resultant downhill by mu times
    that height: it leaves the support at s = 2 h / 3 - mu leg / (4 sqrt 3).
    """
    acceleration = slope_acceleration(math.asin(math.sqrt(2 / 3)), friction, g=g)
    reach = 2 / 3 * leg * math.sqrt(1.5) - friction * leg / (4 * math.sqrt(3))
    time = math.sqrt(2 * reach / acceleration) if acceleration > 0 else math.inf
    direction = (1 / math.sqrt(3), 0.0, -math.sqrt(2 / 3))
    return TetrahedronSlide(acceleration, direction, reach, time)


@dataclass(frozen=True, eq=False)
class BoardSlide:
    """A block on a tilting board.

    Attributes:
        slip_time, slip_angle: when it begins to slide [s, rad]; inf, nan if it never does.
        off_time, off_speed: when its centre passes the board's end, and how fast [s, m/s].
        times, along, speed, angle: solution at all steps [s, m, m/s, rad].
    """

    slip_time: float
    slip_angle: float
    off_time: float
    off_speed: float
    times: F8
    along: F8
    speed: F8
    angle: F8

    def at(self, times: ArrayLike) -> F8:
        """The block's s at times, by cubics between the solution's steps, (M,) [m]."""
        t = np.clip(np.asarray(times, np.float64), self.times[0], self.times[-1])
        out: F8 = CubicHermiteSpline(self.times, self.along, self.speed)(t)
        return out


def tilting_board(
    tilt: Callable[[float], tuple[float, float, float]],
    friction: float,
    *,
    start: float,
    height: float,
    end: float,
    duration: float,
    g: float = GRAVITY,
) -> BoardSlide:
    """Slide of a block on a board that turns about its centre (ours, from Newton's law).

    In the board's frame, s along it and h above its axis of rotation:

        N / m = g cos th - 2 w s' - w' s - w^2 h
        s''   = w^2 s - w' h + g sin th - mu N / m     (while it slides downhill)

    It sticks while |w^2 s - w' h + g sin th| <= mu N / m. Footprint and tipping are ignored.

    Args:
        tilt: angle, rate and angular acceleration at a time [rad, rad/s, rad/s^2].
        friction: mu.
        start: s of the block's centre [m].
        height: h [m].
        end: s at which its centre leaves the board [m].
        duration: how long to follow it [s].
        g: [m/s^2].
    """

    def drive(t: float, s: float) -> float:
        angle, rate, change = tilt(t)
        return rate**2 * s - change * height + g * math.sin(angle)

    def normal(t: float, s: float, v: float) -> float:
        angle, rate, change = tilt(t)
        return g * math.cos(angle) - 2 * rate * v - change * s - rate**2 * height

    def excess(t: float) -> float:
        return drive(t, start) - friction * normal(t, start, 0.0)

    slip = _first_root(excess, duration)
    if slip is None:
        t = np.array([0.0, duration])
        angles = np.array([tilt(x)[0] for x in t])
        still = np.zeros(2)
        return BoardSlide(
            math.inf, math.nan, math.inf, math.nan, t, np.full(2, start), still, angles
        )

    def rhs(t: float, y: F8) -> F8:
        s, v = float(y[0]), float(y[1])
        return np.array([v, drive(t, s) - friction * max(0.0, normal(t, s, v))])

    def gone(t: float, y: F8) -> float:
        return float(y[0]) - end

    gone.terminal = True  # type: ignore[attr-defined]
    made = solve_ivp(
        rhs, (slip, duration), [start, 0.0], events=[gone], rtol=1e-9, atol=1e-11, max_step=0.01
    )
    # An event that ends the integration is its last step.
    left = made.status == 1
    off = float(made.t[-1]) if left else math.inf
    speed = float(made.y[1, -1]) if left else math.nan
    times = np.concatenate([[0.0], made.t])
    return BoardSlide(
        slip, tilt(slip)[0], off, speed, times, np.concatenate([[start], made.y[0]]),
        np.concatenate([[0.0], made.y[1]]), np.array([tilt(float(x))[0] for x in times]),
    )  # fmt: skip


def _first_root(f: Callable[[float], float], end: float, steps: int = 4000) -> float | None:
    """First time in [0, end] at which f becomes positive; None if it never does."""
    if f(0.0) > 0:
        return 0.0
    times = np.linspace(0.0, end, steps + 1)
    before = 0.0
    for t in times[1:]:
        if f(float(t)) > 0:
            return float(brentq(f, before, float(t), xtol=1e-12))
        before = float(t)
    return None


# --- turntable ------------------------------------------------------------------------------------


def slip_rate(radius: float, friction: float, *, g: float = GRAVITY) -> float:
    """w_c = sqrt(mu g / r), the steady rate at which friction is exhausted [rad/s]."""
    return math.sqrt(friction * g / radius)


@dataclass(frozen=True, eq=False)
class TableSlide:
    """A point with friction on a turning plate.

    Attributes:
        times: (N,) [s]; positions, velocities: (N, 2) about the axis, inertial frame [m, m/s].
        slips: when it began to slide; sticks: when it stopped [s].
        rim_time: when it passed the plate's edge [s]; inf if it did not.
    """

    times: F8
    positions: F8
    velocities: F8
    slips: tuple[float, ...]
    sticks: tuple[float, ...]
    rim_time: float

    @property
    def radii(self) -> F8:
        """Distance from the axis, (N,) [m]."""
        out: F8 = np.linalg.norm(self.positions, axis=1)
        return out

    def at(self, times: ArrayLike) -> F8:
        """Positions at times, by cubics between the solution's steps, (M, 2) [m]."""
        t = np.clip(np.asarray(times, np.float64), self.times[0], self.times[-1])
        out: F8 = CubicHermiteSpline(self.times, self.positions, self.velocities)(t)
        return out


_CREEP = 1e-7
"""Speed below which friction fades [m/s]: what sticks creeps by less than this."""

_SLIDES = 1e-4
"""Speed on the plate above which the point counts as sliding [m/s]."""


def turntable(
    spin: Callable[[float], tuple[float, float, float]],
    friction: float,
    *,
    position: tuple[float, float],
    rim: float,
    duration: float,
    g: float = GRAVITY,
) -> TableSlide:
    """Planar motion of a point with Coulomb friction on a plate that turns about its axis (ours).

    Its acceleration is mu g against its velocity relative to the plate below it; it sticks while
    (w^2 r)^2 + (w' r)^2 <= (mu g)^2. Friction is made smooth below 1e-7 m/s: what sticks creeps by
    less than a micrometre in seconds, and a slip that begins at a balance begins on time. The
    block's footprint, and with it the torque of friction about its own axis, is ignored.

    Args:
        spin: angle, rate and angular acceleration of the plate at a time [rad, rad/s, rad/s^2].
        friction: mu.
        position: (x, y) of the point about the axis at the start [m].
        rim: radius of the plate [m]; the motion ends there.
        duration: how long to follow it [s].
        g: [m/s^2].
    """
    limit = friction * g

    def rhs(t: float, y: F8) -> F8:
        px, py, vx, vy = (float(c) for c in y)
        rate = spin(t)[1]
        ux, uy = vx + rate * py, vy - rate * px
        share = -limit / math.sqrt(ux * ux + uy * uy + _CREEP * _CREEP)
        return np.array([vx, vy, share * ux, share * uy])

    def at_rim(t: float, y: F8) -> float:
        return math.hypot(float(y[0]), float(y[1])) - rim

    at_rim.terminal = True  # type: ignore[attr-defined]
    x, y = position
    rate = spin(0.0)[1]
    made = solve_ivp(
        rhs, (0.0, duration), [x, y, -rate * y, rate * x], method="LSODA", events=[at_rim],
        rtol=1e-8, atol=1e-10, max_step=2e-3,
    )  # fmt: skip
    rates = np.array([spin(float(t))[1] for t in made.t])
    on_plate = np.hypot(made.y[2] + rates * made.y[1], made.y[3] - rates * made.y[0])
    slides = np.concatenate([[False], on_plate > _SLIDES, [False]])
    changes = np.flatnonzero(np.diff(slides.astype(int)))
    begins, ends = changes[::2], changes[1::2]
    return TableSlide(
        made.t, made.y[:2].T, made.y[2:].T, tuple(float(made.t[k]) for k in begins),
        tuple(float(made.t[k]) for k in ends if k < len(made.t)),
        float(made.t[-1]) if made.status == 1 else math.inf,
    )  # fmt: skip


def slip_onset(
    spin: Callable[[float], tuple[float, float, float]],
    friction: float, radius: float, duration: float, *, g: float = GRAVITY,
) -> float:  # fmt: skip
    """When (w^2 r)^2 + (w' r)^2 first exceeds (mu g)^2 [s]; inf if it does not in ``duration``."""

    def excess(t: float) -> float:
        _, rate, change = spin(t)
        return radius * math.hypot(rate**2, change) - friction * g

    root = _first_root(excess, duration)
    return math.inf if root is None else root


# --- falls ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Bounce:
    """A ball that falls and bounces.

    Attributes:
        impact, speed: first impact [s, m/s].
        apex, apex_height: highest point after it [s, m].
        second: second impact [s].
        rest: when it comes to rest, after infinitely many bounces [s].
    """

    impact: float
    speed: float
    apex: float
    apex_height: float
    second: float
    rest: float


def bounce(height: float, restitution: float, *, g: float = GRAVITY) -> Bounce:
    """Falls from rest by ``height``: t1 = sqrt(2 h / g), H_n = e^2n h, rest t1 (1 + e) / (1 - e).

    Newton's restitution, no air, a point.
    """
    t1 = math.sqrt(2 * height / g)
    e = restitution
    rest = math.inf if e >= 1 else t1 * (1 + e) / (1 - e)
    return Bounce(t1, g * t1, t1 * (1 + e), e**2 * height, t1 * (1 + 2 * e), rest)


def bounce_height(times: ArrayLike, height: float, restitution: float, *, g: float = GRAVITY) -> F8:
    """Height of a ball's lowest point above the ground at times (N,) [m]: `bounce` as a motion."""
    t = np.atleast_1d(np.asarray(times, np.float64))
    t1 = math.sqrt(2 * height / g)
    out = np.maximum(height - g * t**2 / 2, 0.0)
    begin, flight = t1, 2 * restitution * t1
    after = t >= t1
    out[after] = 0.0
    while flight > 1e-9 and begin < float(t.max(initial=0.0)):
        here = (t >= begin) & (t < begin + flight)
        x = t[here] - begin
        out[here] = g * x * (flight - x) / 2
        begin, flight = begin + flight, flight * restitution
    return out


def first_contact(points: F8, pieces: Sequence[F8], floor: float, *, g: float = GRAVITY) -> float:
    """When a convex body that falls without turning first touches an obstacle or the floor [s].

    The least drop d >= 0 for which body and obstacle share a point, by linear programming: weights
    of the body's corners and of the obstacle's that give the same point, d lower.

    Args:
        points: (N, 3) corners of the body at rest [m].
        pieces: corners (M, 3) of each convex obstacle [m].
        floor: height of the ground [m].
        g: [m/s^2].
    """
    drops = [float(points[:, 2].min()) - floor]
    for piece in pieces:
        n, m = len(points), len(piece)
        equal = np.zeros((5, n + m + 1))
        equal[:3, :n], equal[:3, n : n + m] = points.T, -piece.T
        equal[2, -1] = -1.0
        equal[3, :n] = equal[4, n : n + m] = 1.0
        goal = np.zeros(n + m + 1)
        goal[-1] = 1.0
        made = linprog(goal, A_eq=equal, b_eq=[0, 0, 0, 1, 1], bounds=(0, None))
        if made.status == 0:
            drops.append(float(made.x[-1]))
    return math.sqrt(2 * max(0.0, min(drops)) / g)


# --- swings ---------------------------------------------------------------------------------------


def small_period(
    length: float, *, mass: float = 1.0, inertia: float = 0.0, armature: float = 0.0,
    g: float = GRAVITY,
) -> float:  # fmt: skip
    """T0 = 2 pi sqrt((m L^2 + I + J) / (m g L)) of small swings [s].

    Args:
        length: from the pivot to the centre of mass [m].
        mass: [kg].
        inertia: about the centre of mass [kg m^2]; a solid ball has 0.4 m r^2.
        armature: inertia that an engine adds to the joint [kg m^2].
        g: [m/s^2].
    """
    return 2 * math.pi * math.sqrt((mass * length**2 + inertia + armature) / (mass * g * length))


def swing_period(small: float, amplitude: float) -> float:
    """T = (2 T0 / pi) K(sin^2(th0 / 2)) of swings of a finite amplitude [rad] [s].

    Exact for the undamped pendulum (complete elliptic integral K of the parameter).
    """
    return 2 * small / math.pi * float(ellipk(math.sin(amplitude / 2) ** 2))


def swing_speed(small: float, start: float, end: float) -> float:
    """Rate of turning at the angle ``end`` [rad], after rest at ``start`` [rad] [rad/s].

    w^2 = 2 (2 pi / T0)^2 (cos end - cos start): energy, whatever inertia T0 is of.
    """
    return 2 * math.pi / small * math.sqrt(2 * (math.cos(end) - math.cos(start)))


def swing_angle(times: ArrayLike, small: float, amplitude: float) -> F8:
    """th(t) of a pendulum let go at rest at ``amplitude``, (N,) [rad].

    sin(th / 2) = k cd(2 pi t / T0 | k^2), k = sin(th0 / 2) (Jacobi's elliptic functions); exact
    without damping.
    """
    t = np.atleast_1d(np.asarray(times, np.float64))
    k = math.sin(abs(amplitude) / 2)
    _, cn, dn, _ = ellipj(2 * math.pi * t / small, k**2)
    out: F8 = math.copysign(2.0, amplitude) * np.arcsin(np.clip(k * cn / dn, -1, 1))
    return out


def swing_time(start: float, end: float, small: float) -> float:
    """Time from rest at the angle ``start`` down to ``end`` (same side, or beyond) [s].

    Args:
        start: amplitude [rad].
        end: angle on the way down, |end| <= |start| [rad].
        small: period T0 of small swings [s].
    """
    return float(
        brentq(
            lambda t: float(swing_angle(t, small, abs(start))[0]) - end,
            0.0,
            swing_period(small, start) / 2,
            xtol=1e-13,
        )
    )
