"""Motion of a billiard ball on a level cloth between two events, in closed form.

Coulomb friction at the contact with the cloth (Coriolis 1835; Marlow, "The Physics of Pocket
Billiards", 1995; Leckie and Greenspan, "Pool Physics Simulation by Event Prediction", 2006): with
the contact point's slip ``u = v + w x (-R z)``,

- sliding: ``a = -mu_s g u/|u|`` and ``dw/dt = (5 mu_s g / 2 R) z x u/|u|``. The direction of u does
  not change, so that both are constant; it slides for ``2 |u| / (7 mu_s g)``.
- rolling: ``a = -mu_r g v/|v|`` and ``w = z x v / R`` for ``|v| / (mu_r g)``.
- spinning: only ``w_z`` is left. In every phase ``|w_z|`` falls at a constant rate to zero.
- resting.

So in each phase positions are quadratic and velocities linear in time. The rotation follows from
``dq/dt = w q / 2`` with linear w: about a fixed axis at once; otherwise from the power series of
that equation, whose terms are summed until they no longer count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wmeval.sim.protocol import Quat, Vec

RESTING, SPINNING, ROLLING, SLIDING = range(4)
PHASES = ("resting", "spinning", "rolling", "sliding")
STILL = 1e-12
"""Speed [m/s] and slip that count as none."""
LONGEST = 1000.0
"""A phase is renewed after so long [s]: no time is infinite."""
_TURN = 1.0
"""Largest angle [rad] that one sum of the power series covers."""


@dataclass(frozen=True)
class Cloth:
    """What a ball meets on the table.

    Attributes:
        radius: of the ball [m].
        sliding: deceleration mu_s g [m/s^2].
        rolling: deceleration mu_r g [m/s^2].
        spinning: deceleration of spin about the vertical [rad/s^2].
    """

    radius: float
    sliding: float
    rolling: float
    spinning: float


@dataclass(frozen=True, slots=True)
class BallState:
    """A ball at one instant: position [m], velocity [m/s], angular velocity [rad/s], in the world.

    The centre is always at the height of the radius.
    """

    x: float
    y: float
    vx: float = 0.0
    vy: float = 0.0
    wx: float = 0.0
    wy: float = 0.0
    wz: float = 0.0

    @property
    def moving(self) -> bool:
        """Something moves or turns."""
        return any((self.vx, self.vy, self.wx, self.wy, self.wz))


@dataclass(frozen=True, slots=True)
class Phase:
    """One phase of one ball's motion.

    Attributes:
        kind: RESTING, SPINNING, ROLLING or SLIDING.
        start: when it began [s].
        duration: how long it lasts if nothing is hit [s]; infinite at rest.
        state: at its start.
        ax, ay: acceleration [m/s^2].
        bx, by, bz: angular acceleration [rad/s^2].
        spin_ends: the spin about the vertical is what ends it.
    """

    kind: int
    start: float
    duration: float
    state: BallState
    ax: float = 0.0
    ay: float = 0.0
    bx: float = 0.0
    by: float = 0.0
    bz: float = 0.0
    spin_ends: bool = False

    @property
    def end(self) -> float:
        """When it ends if nothing is hit [s]."""
        return self.start + self.duration

    def at(self, t: float) -> BallState:
        """State at a time [s] of this phase."""
        s = self.state
        if self.kind == RESTING:
            return s
        h = t - self.start
        return BallState(
            s.x + (s.vx + 0.5 * self.ax * h) * h,
            s.y + (s.vy + 0.5 * self.ay * h) * h,
            s.vx + self.ax * h,
            s.vy + self.ay * h,
            s.wx + self.bx * h,
            s.wy + self.by * h,
            s.wz + self.bz * h,
        )

    def last(self, radius: float) -> BallState:
        """State at the end: what ends there is exactly zero, what begins to roll exactly rolls."""
        s = self.at(self.start + self.duration)
        vx, vy, wx, wy, wz = s.vx, s.vy, s.wx, s.wy, s.wz
        if self.spin_ends:
            wz = 0.0
        elif self.kind == ROLLING and self.duration < LONGEST:
            vx = vy = wx = wy = 0.0
        elif self.kind == SLIDING and self.duration < LONGEST:
            wx, wy = -vy / radius, vx / radius
        return BallState(s.x, s.y, vx, vy, wx, wy, wz)


def slip(state: BallState, radius: float) -> tuple[float, float]:
    """Velocity [m/s] of the ball's lowest point over the cloth."""
    return state.vx - radius * state.wy, state.vy + radius * state.wx


def slide_time(slip_speed: float, cloth: Cloth) -> float:
    """How long a ball slides [s]: ``2 |u| / (7 mu_s g)``."""
    return 2.0 * slip_speed / (7.0 * cloth.sliding) if cloth.sliding > 0 else math.inf


def begin(state: BallState, t: float, cloth: Cloth) -> Phase:
    """The phase that begins with a state at a time [s]."""
    r = cloth.radius
    vx, vy, wx, wy, wz = state.vx, state.vy, state.wx, state.wy, state.wz
    bz = -math.copysign(cloth.spinning, wz) if wz else 0.0
    spin_time = wz / -bz if bz else math.inf
    ux, uy = slip(state, r)
    u, v = math.hypot(ux, uy), math.hypot(vx, vy)
    if u > STILL:
        kind, time = SLIDING, slide_time(u, cloth)
        ux, uy = ux / u, uy / u
        k = 2.5 * cloth.sliding / r
        ax, ay, bx, by = -cloth.sliding * ux, -cloth.sliding * uy, -k * uy, k * ux
    elif v > STILL:
        kind, time = ROLLING, v / cloth.rolling if cloth.rolling > 0 else math.inf
        ax, ay = -cloth.rolling * vx / v, -cloth.rolling * vy / v
        bx, by = -ay / r, ax / r
        wx, wy = -vy / r, vx / r
    else:
        kind, time = (SPINNING if wz else RESTING), math.inf
        vx = vy = wx = wy = ax = ay = bx = by = 0.0
    start = BallState(state.x, state.y, vx, vy, wx, wy, wz)
    if kind == RESTING:
        return Phase(RESTING, t, math.inf, start)
    spin_ends = spin_time <= min(time, LONGEST)
    return Phase(
        kind, t, min(time, spin_time, LONGEST), start, ax, ay, bx, by, bz, spin_ends=spin_ends
    )


# --- rotation -----------------------------------------------------------------------------------


def product(w: Vec, q: Quat) -> Quat:
    """Quaternion product of the pure quaternion w and q (wxyz)."""
    x, y, z = w
    a, b, c, d = q
    return (
        -x * b - y * c - z * d,
        x * a + y * d - z * c,
        y * a + z * b - x * d,
        z * a + x * c - y * b,
    )


def normalized(q: Quat) -> Quat:
    """Unit quaternion."""
    a, b, c, d = q
    n = math.sqrt(a * a + b * b + c * c + d * d)
    return (a / n, b / n, c / n, d / n)


def series_turn(q: Quat, w: Vec, b: Vec, h: float) -> Quat:
    """Rotation q after time h under ``w(t) = w + b t``, by the power series of its equation.

    ``(n + 1) q_{n+1} = (w q_n + b q_{n-1}) / 2`` gives the coefficients of t^n. The series
    converges for every h, best for |w| h up to about 1.
    """
    before: Quat = (0.0, 0.0, 0.0, 0.0)
    term = q
    total = q
    for n in range(1, 80):
        # Terms carry their power of h: term = q_n h^n.
        e0, e1, e2, e3 = product(w, term)
        f0, f1, f2, f3 = product(b, before)
        k = 0.5 * h / n
        before, term = term, (
            k * (e0 + h * f0),
            k * (e1 + h * f1),
            k * (e2 + h * f2),
            k * (e3 + h * f3),
        )  # fmt: skip
        t0, t1, t2, t3 = total
        total = (t0 + term[0], t1 + term[1], t2 + term[2], t3 + term[3])
        if max(map(abs, term)) < 1e-19 and max(map(abs, before)) < 1e-19:
            break
    return normalized(total)


def axis_turn(q: Quat, axis: Vec, angle: float) -> Quat:
    """Rotation q turned further about a fixed world axis (unit) by an angle [rad]."""
    s, c = math.sin(0.5 * angle), math.cos(0.5 * angle)
    x, y, z = axis
    e0, e1, e2, e3 = product((s * x, s * y, s * z), q)
    a, b, cc, d = q
    return normalized((c * a + e0, c * b + e1, c * cc + e2, c * d + e3))


class Turning:
    """A ball's rotation through its phases.

    Phases without a fixed axis are summed from knot to knot, whose times depend on the phase alone:
    the result does not depend on what was asked before, to the bit.

    Args:
        rotation: at the start of the first phase, wxyz.
    """

    def __init__(self, rotation: Quat) -> None:
        self._rotation = rotation  # at the start of the phase `_index`
        self._index = 0
        self._knot, self._knot_rotation = 0, rotation

    def restart(self, rotation: Quat, index: int) -> None:
        """Another rotation at the start of phase ``index``."""
        self._rotation = self._knot_rotation = rotation
        self._index, self._knot = index, 0

    def at(self, phases: list[Phase], t: float) -> Quat:
        """Rotation at a time not before the start of the phase that was asked for last.

        Args:
            phases: all phases so far; each but the last ends where the next begins.
            t: [s].
        """
        while self._index + 1 < len(phases) and phases[self._index + 1].start <= t:
            rotation = self._within(phases[self._index], phases[self._index + 1].start)
            self._index += 1
            self._rotation = self._knot_rotation = rotation
            self._knot = 0
        return self._within(phases[self._index], t)

    def _within(self, phase: Phase, t: float) -> Quat:
        h = t - phase.start
        if phase.kind == RESTING or h <= 0.0:
            return self._rotation
        s = phase.state
        w, b = (s.wx, s.wy, s.wz), (phase.bx, phase.by, phase.bz)
        axis = _fixed_axis(w, b)
        if axis is not None:
            x, y, z = axis
            rate = w[0] * x + w[1] * y + w[2] * z
            gain = b[0] * x + b[1] * y + b[2] * z
            return axis_turn(self._rotation, axis, (rate + 0.5 * gain * h) * h)
        # |w| is convex in time: it is greatest at an end.
        end = (w[0] + b[0] * phase.duration, w[1] + b[1] * phase.duration,
               w[2] + b[2] * phase.duration)  # fmt: skip
        step = _TURN / max(math.hypot(*w), math.hypot(*end))
        knots = int(h / step)
        if knots < self._knot:  # earlier than what was asked before
            self._knot, self._knot_rotation = 0, self._rotation
        while self._knot < knots:
            self._knot_rotation = series_turn(
                self._knot_rotation, _linear(w, b, self._knot * step), b, step
            )
            self._knot += 1
        rest = h - knots * step
        return series_turn(self._knot_rotation, _linear(w, b, knots * step), b, rest)


def _linear(w: Vec, b: Vec, h: float) -> Vec:
    return (w[0] + b[0] * h, w[1] + b[1] * h, w[2] + b[2] * h)


def _fixed_axis(w: Vec, b: Vec) -> Vec | None:
    """Direction of w where that of b is the same to the last bits."""
    nw, nb = math.hypot(*w), math.hypot(*b)
    cross = math.hypot(
        w[1] * b[2] - w[2] * b[1], w[2] * b[0] - w[0] * b[2], w[0] * b[1] - w[1] * b[0]
    )
    if cross > 1e-15 * nw * nb:
        return None
    (x, y, z), n = (w, nw) if nw > 0 else (b, nb)
    return (x / n, y / n, z / n) if n > 0 else (0.0, 0.0, 1.0)
