"""Slosh of a half-full vessel of revolution: damped modes driven by the vessel's motion."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from pydantic import Field

from wmeval.assets.cavity import Cavity
from wmeval.assets.liquid import SEGMENTS, SHARES, TILT_SHARES, XI, held_surface
from wmeval.conventions import quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import Card, Modal, Scene
from wmeval.sim.drivers.names import body_index
from wmeval.sim.protocol import Driver, Quat, SubstepView, Vec
from wmeval.vectors import axes

XI_HIGHER = 8.536316366346286
"""Third zero of J1': the shape that stands for all higher modes moves with this one's frequency."""

MODAL = (
    Modal(name="liquid_surface", size=12, unit="1",
          doc="up (3), slope vectors of modes 1, 2 and higher (3 each), in the vessel's frame"),
    Modal(name="slosh_amplitude", size=6, unit="m",
          doc="rise at the wall of mode 1 along world x, y; mode 2 x, y; higher modes x, y"),
    Modal(name="slosh_velocity", size=6, unit="m/s", doc="rates of slosh_amplitude"),
    Modal(name="surface_normal", size=3, unit="1",
          doc="unit normal of the least-squares plane of the surface, world frame"),
    Modal(name="surface_level", size=1, unit="m", doc="height of the undisturbed surface, world z"),
    Modal(name="meniscus", size=3 * SEGMENTS, unit="m",
          doc=f"{SEGMENTS} points x, y, z once around the line where surface and wall meet, world"),
)  # fmt: skip
"""What the driver puts: `Scene.modal` of a scene that it drives."""


@dataclass(frozen=True)
class Mode:
    """One antisymmetric mode of a cylindrical tank.

    Attributes:
        omega: natural angular frequency [rad/s].
        damping: share of critical damping.
        depth: of the point on the axis whose acceleration drives it, below the surface [m].
        share: rise at the wall per slope and radius.
    """

    omega: float
    damping: float
    depth: float
    share: float


def modes_of(
    radius: float, fill: float, *, gravity: float, viscosity: float
) -> tuple[Mode, Mode, Mode]:
    """Modes 1 and 2 of an upright cylindrical tank, and one for all higher ones.

    Frequencies: ``omega_n^2 = (g xi_n / R) tanh(xi_n h / R)`` (Abramson 1966; Ibrahim 2005, Liquid
    Sloshing Dynamics; Dodge 2000).

    Driving point: the hinge of the equivalent pendulum of length ``g / omega_n^2`` (Abramson 1966,
    chapter 6; Dodge 2000, chapter 3), ``(R / xi_n) (1 - 2 / cosh(xi_n h / R)) / tanh(xi_n h / R)``
    below the surface: a vessel that turns about it slowly or fast excites no wave in the world.

    Damping of mode 1: ``0.79 sqrt(nu / sqrt(g R^3)) (1 + 0.318 / sinh(xi_1 h / R) (1 + (1 - h / R)
    / cosh(xi_1 h / R)))``, measured by G. N. Mikishev and N. Ya. Dorozhkin (1961), as in Dodge
    2000. Of the others: scaled from it by the boundary layer on the wall, ``sqrt(1 / omega_n)
    (xi_n^2 + 1) / (xi_n^2 - 1)`` (K. M. Case and W. C. Parkinson, J. Fluid Mech. 2, 1957).

    Args:
        radius: R [m].
        fill: depth h of the liquid [m].
        gravity: g [m/s^2].
        viscosity: kinematic, nu [m^2/s].
    """
    xis = (*XI, XI_HIGHER)
    shares = (*SHARES, 1.0 - sum(SHARES))
    layers = [(xi * xi + 1) / (xi * xi - 1) for xi in xis]
    x = XI[0] * fill / radius
    first = 0.79 * math.sqrt(viscosity / math.sqrt(gravity * radius**3))
    first *= 1 + 0.318 / math.sinh(x) * (1 + (1 - fill / radius) / math.cosh(x))
    out: list[Mode] = []
    start = 0.0
    for xi, share, layer in zip(xis, shares, layers, strict=True):
        x = xi * fill / radius
        omega = math.sqrt(gravity * xi / radius * math.tanh(x))
        if not out:
            start = omega
        damping = first * layer / layers[0] * math.sqrt(start / omega)
        depth = radius / xi * (1 - 2 / math.cosh(x)) / math.tanh(x)
        out.append(Mode(omega, damping, depth, share))
    return out[0], out[1], out[2]


def propagator(omega: float, damping: float, dt: float) -> tuple[float, float, float, float]:
    """Exact step of ``y'' + 2 damping omega y' + omega^2 y = 0``: (y, y') times this matrix.

    Returns:
        Its entries row by row.
    """
    rate = damping * omega
    turn = omega * math.sqrt(1 - damping * damping)
    fade, c, s = math.exp(-rate * dt), math.cos(turn * dt), math.sin(turn * dt) / turn
    return (
        fade * (c + rate * s),
        fade * s,
        -fade * omega * omega * s,
        fade * (c - rate * s),
    )


class Slosh(Driver):
    """A parametric slosh model: no fluid is solved.

    The undisturbed surface is level in the WORLD, whatever the vessel's attitude: gravity's part of
    the driving is exact for every tilt. Waves on it are slopes s_n (world x and y) of the three
    shapes of `wmeval.assets.liquid`, each a damped oscillator

        s_n'' + 2 zeta_n omega_n s_n' + omega_n^2 (s_n + a_n / (g + a_z)) = 0

    with a_n the horizontal acceleration of the mode's driving point on the vessel's axis: linear,
    angular and centripetal parts of the vessel's motion as the body's velocities tell them. a_z is
    the vertical acceleration of the vessel. Under a steady acceleration all slopes tend to -a/g,
    and the shapes add up to the plane of that slope. Over a substep the driving is constant, and
    the step is exact.

    Ours: frequencies and driving points are those of the upright vessel at all attitudes; vertical
    acceleration does not change the frequency; a wave that would rise above ``limits`` at the wall
    breaks, that is, loses what is above.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            body: name of the vessel.
            profile: (radius, z) [m] of the cavity in the vessel's frame (`Cavity`).
            viscosity: kinematic viscosity of the liquid [m^2/s].
            limits: largest rise at the wall of mode 1, mode 2 and the higher ones, in radii.
        """

        body: str
        profile: tuple[tuple[float, float], ...] = Field(min_length=4)
        viscosity: float = Field(gt=0)
        limits: tuple[float, float, float] = (0.45, 0.08, 0.06)

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0 with a still surface.

        Raises:
            UserError: gravity is not straight down.
        """
        p = self._params
        gx, gy, gz = scene.gravity
        if gx or gy or gz >= 0:
            raise UserError(f"driver 'slosh' needs gravity straight down, not {scene.gravity}")
        self._gravity = -gz
        self._body = body_index(scene, p.body, "slosh")
        self._cavity = Cavity(p.profile)
        radius, fill = self._cavity.radius, -float(self._cavity.points[0, 1])
        self.modes = modes_of(radius, fill, gravity=-gz, viscosity=p.viscosity)
        self._steps = [
            (*propagator(m.omega, m.damping, view.dt), m.depth, m.omega, limit / m.share)
            for m, limit in zip(self.modes, p.limits, strict=True)
        ]
        # Slopes and their rates: x, y, x', y' of each mode.
        self._state = [[0.0] * 4 for _ in self.modes]
        self._linear, self._angular = view.velocity(self._body)
        self._still = True

    def after(self, view: SubstepView) -> None:
        """Move the surface through the substep just done."""
        before_v, before_w = self._linear, self._angular
        (vx, vy, vz), (wx, wy, wz) = now_v, now_w = view.velocity(self._body)
        if self._still:
            if now_v == before_v and now_w == before_w and not (wx or wy or wz):
                return
            self._still = False
        self._linear, self._angular = now_v, now_w
        rate = 1.0 / view.dt
        ax, ay = (vx - before_v[0]) * rate, (vy - before_v[1]) * rate
        az = (vz - before_v[2]) * rate
        # Along the axis, of a point at height 1: angular and centripetal parts.
        ox = oy = 0.0
        if wx or wy or wz or now_w != before_w:
            ox, oy = _lever(view.pose(self._body)[1], before_w, now_w, rate)
        g = self._gravity
        down = max(g + az, 0.25 * g)
        quiet = True
        for state, (a, b, c, d, depth, omega, most) in zip(self._state, self._steps, strict=True):
            tx, ty = -(ax - depth * ox) / down, -(ay - depth * oy) / down
            x, y, u, v = state[0] - tx, state[1] - ty, state[2], state[3]
            x, y, u, v = a * x + b * u + tx, a * y + b * v + ty, c * x + d * u, c * y + d * v
            size = x * x + y * y + (u * u + v * v) / (omega * omega)
            if size > most * most:
                k = most / math.sqrt(size)
                x, y, u, v = k * x, k * y, k * u, k * v
            state[:] = x, y, u, v
            quiet = quiet and size < 1e-28
        if quiet and not (ax or ay or az or ox or oy):
            for state in self._state:
                state[:] = 0.0, 0.0, 0.0, 0.0
            self._still = not (wx or wy or wz)

    def show(self, view: SubstepView) -> None:
        """The surface of the present."""
        (px, py, pz), quaternion = view.pose(self._body)
        turn = quaternion_to_matrix(np.array(quaternion))
        slopes = np.array([[s[0], s[1], 0.0] for s in self._state])
        surface = held_surface(self._cavity, turn[2], slopes @ turn)
        rim = surface.rim @ turn.T + (px, py, pz)
        radius = self._cavity.radius
        view.set_modal("liquid_surface", [*turn[2].tolist(), *surface.slopes.ravel().tolist()])
        rises = [m.share * radius for m in self.modes]
        view.set_modal(
            "slosh_amplitude",
            [k * e for k, s in zip(rises, self._state, strict=True) for e in s[:2]],
        )
        view.set_modal(
            "slosh_velocity",
            [k * e for k, s in zip(rises, self._state, strict=True) for e in s[2:]],
        )
        shares = (*TILT_SHARES, 1.0 - sum(TILT_SHARES))
        sx, sy = (sum(t * s[k] for t, s in zip(shares, self._state, strict=True)) for k in (0, 1))
        n = 1.0 / math.sqrt(1.0 + sx * sx + sy * sy)
        view.set_modal("surface_normal", (-sx * n, -sy * n, n))
        view.set_modal("surface_level", (pz + float(surface.centre @ turn[2]) + surface.level,))
        view.set_modal("meniscus", rim.ravel().tolist())


def _lever(q: Quat, before: Vec, now: Vec, rate: float) -> tuple[float, float]:
    """Horizontal acceleration [1/s^2] of a point on the body's axis, per metre of its height."""
    _, _, (kx, ky, kz) = axes(q)
    ax, ay, az = (
        (now[0] - before[0]) * rate,
        (now[1] - before[1]) * rate,
        (now[2] - before[2]) * rate,
    )
    wx, wy, wz = 0.5 * (now[0] + before[0]), 0.5 * (now[1] + before[1]), 0.5 * (now[2] + before[2])
    along, size = wx * kx + wy * ky + wz * kz, wx * wx + wy * wy + wz * wz
    return ay * kz - az * ky + wx * along - kx * size, az * kx - ax * kz + wy * along - ky * size
