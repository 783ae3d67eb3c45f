"""Closed forms of GAUGE's foam families: stretch, shear, twist, bend, stick and hang.

Pure functions in SI units. A beam has a square section of side a unless said otherwise; E Young's
modulus, nu Poisson's ratio, G = E / (2 (1 + nu)), kappa Cowper's shear coefficient.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import solve_ivp
from scipy.optimize import brentq

from wmeval.assets.gauge_cards import GRAVITY

F8 = NDArray[np.float64]

TORSION_SQUARE = 0.1406
"""Torsion constant of a square over a^4 (Saint-Venant)."""


def shear_modulus(young: float, poisson: float) -> float:
    """G = E / (2 (1 + nu)) [Pa]."""
    return young / (2 * (1 + poisson))


def shear_coefficient(poisson: float) -> float:
    """Kappa = 10 (1 + nu) / (12 + 11 nu) of a rectangular section (Cowper 1966)."""
    return 10 * (1 + poisson) / (12 + 11 * poisson)


def facet_stretch(strain: float, poisson: float) -> float:
    """(1 + eps)^(1 - nu) - 1: relative change of a facet one of whose sides lies along the pull.

    Transverse stretch (1 + eps)^(-nu): a constant ratio of logarithmic strains, exact for the
    incompressible limit and to second order otherwise; the clamps' hindrance is ignored.
    """
    return float((1 + strain) ** (1 - poisson) - 1)


def stretch_force(young: float, side: float, strain: float) -> float:
    """E eps a^2 [N]; small strain."""
    return young * strain * side**2


def buckling_strain(side: float, length: float, poisson: float) -> tuple[float, float]:
    """Strain at which a clamped block buckles: (Euler's, Engesser's) [1].

    Euler pi^2 a^2 / (3 L^2); Engesser divides it by 1 + that over kappa G / E: a block only four
    times as long as wide gives way in shear first. Straight before it in either case.
    """
    euler = math.pi**2 * side**2 / (3 * length**2)
    shear = shear_coefficient(poisson) / (2 * (1 + poisson))
    return euler, euler / (1 + euler / shear)


@dataclass(frozen=True)
class Shear:
    """A beam whose ends are displaced sideways, kept parallel.

    Attributes:
        phi: Timoshenko's ratio of shear to bending.
        force: [N].
        pure_shear_force: G A delta / L, which ignores bending [N]: too large.
        axial: strain of the axis from its greater length [1].
    """

    phi: float
    force: float
    pure_shear_force: float
    axial: float


def clamped_shear(young: float, poisson: float, side: float, length: float, shift: float) -> Shear:
    """F = 12 E I d / (L^3 (1 + Phi)), Phi = 12 E I / (kappa G A L^2) (Timoshenko 1921).

    Small strain; the ends keep their distance, so that the axis stretches: by half the mean square
    of its slope, (0.6 + Phi + Phi^2 / 2) / (1 + Phi)^2 times (d / L)^2.

    Args:
        young: E [Pa].
        poisson: nu.
        side: a [m].
        length: L [m].
        shift: d [m].
    """
    bend = young * side**4 / 12
    area = side**2
    g = shear_modulus(young, poisson)
    phi = 12 * bend / (shear_coefficient(poisson) * g * area * length**2)
    force = 12 * bend * shift / (length**3 * (1 + phi))
    bow = (0.6 + phi + phi**2 / 2) / (1 + phi) ** 2
    return Shear(phi, force, g * area * shift / length, bow * (shift / length) ** 2)


def shear_face_strain(phi: float, shift: float, depth: float, length: float, at: float) -> float:
    """12 d c z / (L^3 (1 + Phi)): strain along the beam on its face [1].

    Args:
        phi: of `clamped_shear`.
        shift: displacement across that face [m].
        depth: c, from the axis to the face [m].
        length: L [m].
        at: z, along the beam from its middle [m].
    """
    return 12 * shift * depth * at / (length**3 * (1 + phi))


def torque(young: float, poisson: float, side: float, length: float, turn: float) -> float:
    """0.1406 a^4 G phi / L of a square bar (Saint-Venant) [N m]; free warping, small strain."""
    return TORSION_SQUARE * side**4 * shear_modulus(young, poisson) * turn / length


def square_warping(x: F8, y: F8, side: float) -> F8:
    """How far points of a square section leave their plane, over the twist per length (N,) [m^2].

    Saint-Venant's series (Timoshenko and Goodier, Theory of Elasticity, art. 109), x and y from the
    middle [m]: xy - (8 a^2 / pi^3) sum of (-1)^k / n^3 sinh(n pi y / a) / cosh(n pi / 2)
    sin(n pi x / a) over odd n = 2 k + 1.
    """
    out = x * y
    for k in range(12):
        n = math.pi * (2 * k + 1) / side
        rise = np.sinh(n * y) / math.cosh(n * side / 2)
        out = out - 8 / (side * n**3) * (-1) ** k * rise * np.sin(n * x)
    return np.asarray(out, np.float64)


def twisted(
    points: F8, axis_at: F8, low: float, length: float, turn: float, side: float = 0.0
) -> F8:
    """Points of a bar whose sections turn about z in proportion to their height, (N, 3) [m].

    They warp where a square section's ``side`` is given, freely; they keep their size and shape.

    Args:
        points: (N, 3) at rest [m].
        axis_at: (x, y) of the axis [m].
        low: z of the fixed end [m].
        length: L [m].
        turn: angle of the other end [rad].
        side: a of a square section [m]; 0: sections stay plane.
    """
    angle = turn * (points[:, 2] - low) / length
    c, s = np.cos(angle), np.sin(angle)
    x, y = points[:, 0] - axis_at[0], points[:, 1] - axis_at[1]
    up = turn / length * square_warping(x, y, side) if side else 0.0
    return np.stack(
        [axis_at[0] + c * x - s * y, axis_at[1] + s * x + c * y, points[:, 2] + up], axis=1
    )


def press_stiffness(young: float, poisson: float, side: float, length: float, half: float) -> float:
    """F / d of a beam pressed by a flat face, d the way of the face [N/m].

    As `press_shape`: the face rests on the beam by its two edges, where the beam is d low. At a
    point (``half`` 0): 1 / (L^3 / 192 E I + L / 4 kappa G A). Linear, for d up to about a tenth of
    the depth.
    """
    return 2 * young / _pressed(poisson, side, length, half, length / 2 - half)


def press_shape(poisson: float, side: float, length: float, half: float, at: float) -> float:
    """Deflection of a pressed beam's axis over that of its middle [1].

    Both ends clamped (Timoshenko 1921). A flat face presses a beam that bows below it by its two
    edges: two loads, ``half`` to either side of the middle; 0 is a load at a point.

    Args:
        poisson: nu.
        side: a [m].
        length: L [m].
        half: half the length of the face that presses [m].
        at: from the middle, along the beam [m].
    """
    there, middle = (
        _pressed(poisson, side, length, half, x) for x in (length / 2 - abs(at), length / 2)
    )
    return there / middle


def _pressed(poisson: float, side: float, length: float, half: float, x: float) -> float:
    """E w of two loads of 1 N each, x from the nearer clamp [N/m]."""
    arm = length / 2 - half
    bend, shear = side**4 / 12, shear_coefficient(poisson) / (2 * (1 + poisson)) * side**2
    moment = arm * (length - arm) / length
    past = max(0.0, x - arm)
    return (moment * x**2 / 2 - x**3 / 6 + past**3 / 6) / bend + min(x, arm) / shear


@dataclass(frozen=True)
class Stick:
    """A rod pressed on a board and moved aside.

    Attributes:
        press: normal force before it is moved aside [N].
        buckling: load at which it buckles, one end clamped and one held in place [N].
        slip: way of the clamp at which its end slips [m].
    """

    press: float
    buckling: float
    slip: float


def stick_slip(young: float, radius: float, length: float, friction: float, press: float) -> Stick:
    """The way d at which the lower end slips, standing on the rim of its flat face (ours).

    A beam (E I), clamped above, whose end has tipped onto its rim by th. The normal force N acts at
    the radius r from the axis, and its moment N r bends the rod back:
    th = 3 d / 2 L - N r L / 4 E I, lateral force V = 3 E I d / L^3 + 3 N r / 2 L. What tips lifts:
    N = (E A / L) (p + r th - s), s being half the integral of the squared slope, and V = mu N.
    A hinge on the axis, without r, would slip at half the way. Good to a tenth: small rotation, no
    shear, no beam-column effect.

    Args:
        young: E [Pa].
        radius: r of the rod [m].
        length: L [m].
        friction: mu.
        press: p [m].
    """
    axial = young * math.pi * radius**2 / length
    bend = young * math.pi * radius**4 / 4

    def normal(d: float) -> float:
        def over(force: float) -> float:
            back = force * radius * length / (4 * bend)
            lean = d / length
            bow = length / 2 * (1.2 * lean**2 - 0.2 * lean * back + 2 / 15 * back**2)
            return axial * (press + radius * (1.5 * lean - back) - bow) - force

        return float(brentq(over, 0.0, 10 * axial * (press + radius))) if over(0.0) > 0 else 0.0

    def left(d: float) -> float:
        force = normal(d)
        return friction * force - 3 * bend * d / length**3 - 1.5 * force * radius / length

    slip = float(brentq(left, 0.0, length / 2))
    return Stick(axial * press, 20.19 * bend / length**2, slip)


@dataclass(frozen=True)
class Hang:
    """A beam of foam and rubber blocks in turn, hung from a wall.

    Attributes:
        drop: of its end's middle [m].
        reach: how far from the wall that is [m].
        angles: slopes of the rigid blocks below the horizontal [rad].
        outer_strain: greatest bending strain of the foam's faces [1].
    """

    drop: float
    reach: float
    angles: tuple[float, ...]
    outer_strain: float


def block_cantilever(
    young: float, poisson: float, side: float, blocks: int, soft_mass: float, rigid_mass: float,
    *, g: float = GRAVITY,
) -> Hang:  # fmt: skip
    """Static shape of a cantilever of soft and rigid cubes in turn (ours).

    The soft cubes are geometrically exact beams that stretch, shear and bend (Reissner 1972) with a
    linear law, E A, kappa G A, E I; the rigid ones only turn. Weights are vertical, so that the
    force in each section is known and the root's moment is found by shooting. Outer strains of
    nearly a fifth limit it to about a tenth.

    Args:
        young: E of the soft cubes [Pa].
        poisson: theirs.
        side: of all cubes [m].
        blocks: pairs of a soft and a rigid cube.
        soft_mass: of a soft cube [kg].
        rigid_mass: of a rigid cube [kg].
        g: [m/s^2].
    """
    area, bend = side**2, young * side**4 / 12
    stretch = young * area
    shear = shear_coefficient(poisson) * shear_modulus(young, poisson) * area
    spread, lump = soft_mass * g / side, rigid_mass * g

    def walk(root: float) -> tuple[F8, float, list[float], float]:
        # State: reach, drop, slope below the horizontal, moment that bends it down.
        state = np.array([0.0, 0.0, 0.0, root])
        carried = blocks * (soft_mass * g + lump)
        slopes: list[float] = []
        greatest = abs(root)
        for _ in range(blocks):

            def rhs(s: float, y: F8, carried: float = carried) -> F8:
                force = carried - spread * s
                c, d = math.cos(y[2]), math.sin(y[2])
                along, across = 1 + force * d / stretch, force * c / shear
                x = along * c - across * d
                return np.array([x, along * d + across * c, y[3] / bend, -force * x])

            made = solve_ivp(rhs, (0.0, side), state, rtol=1e-10, atol=1e-12)
            state = made.y[:, -1].copy()
            greatest = max(greatest, float(np.abs(made.y[3]).max()))
            carried -= soft_mass * g
            c, d = math.cos(state[2]), math.sin(state[2])
            slopes.append(float(state[2]))
            # Across the rigid cube the moment falls by the lever of what it and the rest weigh.
            state = state + np.array([side * c, side * d, 0.0, 0.0])
            state[3] -= (carried - lump / 2) * side * c
            carried -= lump
        return state, float(state[3]), slopes, greatest

    straight = sum(
        (2 * k + 0.5) * side * soft_mass * g + (2 * k + 1.5) * side * lump for k in range(blocks)
    )
    root = float(brentq(lambda m: walk(m)[1], 0.0, 1.5 * straight, xtol=1e-10))
    state, _, slopes, greatest = walk(root)
    return Hang(
        float(state[1]), float(state[0]), tuple(slopes), greatest / bend * side / 2
    )  # fmt: skip
