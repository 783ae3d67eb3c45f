"""Closed forms of rope and textiles: strips, sags, hanging sheets, wraps and pulls.

Pure functions in SI units. w: weight per area [N/m^2], B: bending stiffness per width [N m],
l_b = (B / w)^(1/3) the bending length [m], K_s: stretch stiffness per width [N/m].
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.integrate import cumulative_trapezoid, solve_bvp, trapezoid
from scipy.optimize import brentq
from scipy.special import jn_zeros

from wmeval.assets.gauge_cards import GRAVITY

F8 = NDArray[np.float64]


def bending_length(bend: float, weight: float) -> float:
    """l_b = (B / w)^(1/3) [m] (Peirce 1930)."""
    return float((bend / weight) ** (1 / 3))


@dataclass(frozen=True, eq=False)
class Strip:
    """A shape in a vertical plane.

    Attributes:
        along: arc length (N,) [m].
        angle: slope below the horizontal (N,) [rad].
        x: horizontal position (N,) [m]; down: drop (N,) [m].
    """

    along: F8
    angle: F8
    x: F8
    down: F8

    @property
    def droop(self) -> float:
        """Drop of the end [m]."""
        return float(self.down[-1])

    @property
    def tip_angle(self) -> float:
        """Slope of the end below the horizontal [rad]."""
        return float(self.angle[-1])

    @property
    def chord_angle(self) -> float:
        """Slope of the line from root to end [rad]."""
        return math.atan2(float(self.down[-1]), float(self.x[-1]))


def _shape(along: F8, angle: F8) -> Strip:
    x = cumulative_trapezoid(np.cos(angle), along, initial=0)
    down = cumulative_trapezoid(np.sin(angle), along, initial=0)
    return Strip(along, angle, x, down)


def _mesh(count: int) -> F8:
    """Points of [0, 1], dense at both ends where layers form."""
    out: F8 = (1 - np.cos(np.linspace(0, math.pi, count))) / 2
    return out


def overhang(length: float, bend: float, weight: float) -> Strip:
    """Heavy elastica: B th'' = -w (l - s) cos th, th(0) = 0, th'(l) = 0.

    An inextensible strip clamped level at one end, its weight its only load (Bickley 1934, whose
    equation Peirce's cantilever test uses). Exact for a thin strip of any rotation; it says nothing
    of stretch. One number rules it: (l / l_b)^3.

    Args:
        length: l [m].
        bend: B [N m].
        weight: w [N/m^2].
    """
    target = (length / bending_length(bend, weight)) ** 3
    u = _mesh(401)
    load = min(1.0, target)
    guess = np.stack([load * (u / 2 - u**2 / 2 + u**3 / 6), load * (1 - u) ** 2 / 2])
    made = None
    while True:
        # From light to heavy: each shape starts the next.
        strength = load

        def rhs(s: F8, y: F8, strength: float = strength) -> F8:
            return np.stack([y[1], -strength * (1 - s) * np.cos(y[0])])

        made = solve_bvp(rhs, lambda a, b: np.array([a[0], b[1]]), u, guess, tol=1e-8,
                         max_nodes=20000)  # fmt: skip
        if not made.success:
            raise ArithmeticError(f"overhang: {made.message}")
        if load >= target:
            break
        guess, load = made.sol(u), min(target, load * 4)
    fine = _mesh(4001)
    return _shape(length * fine, made.sol(fine)[0])


def peirce_overhang(chord_deg: float = 41.5) -> float:
    """Overhang over bending length at which the chord falls by so many degrees: 2.000 at 41.5.

    Peirce's cantilever test, from the heavy elastica itself.
    """
    return float(
        brentq(
            lambda x: math.degrees(overhang(x, 1.0, 1.0).chord_angle) - chord_deg,
            0.5, 6.0, xtol=1e-5,
        )
    )  # fmt: skip


def catenary_sag(span: float, arc: float) -> float:
    """Sag of an inextensible chain of length ``arc`` between two points ``span`` apart [m].

    arc = 2 a sinh(c / 2a), sag = a (cosh(c / 2a) - 1).
    """
    if not 0 < span < arc:
        raise ValueError(f"a span in (0, {arc}) is wanted; got {span}")
    u = float(brentq(lambda x: math.sinh(x) / x - arc / span, 1e-9, 60.0))
    a = span / (2 * u)
    return a * (math.cosh(u) - 1)


def clamped_sag(span: float, arc: float, bend: float, weight: float) -> float:
    """Sag of a strip clamped level at two points ``span`` apart [m].

    B th'' = H sin th - V cos th with V = w (arc / 2 - s): the catenary with a bending layer of
    thickness sqrt(B / H) at each clamp and in the middle. By symmetry th = 0 at clamp and middle.

    Args:
        span: c [m].
        arc: length of the strip [m].
        bend: B [N m].
        weight: w [N/m^2].
    """
    half = arc / 2
    u = float(brentq(lambda x: math.sinh(x) / x - arc / span, 1e-9, 60.0))
    pull = weight * span / (2 * u)
    x = _mesh(801)
    ratio = bend / (weight * half**3)
    guess = np.stack(
        [np.arctan2(1 - x, pull / (weight * half)), np.zeros_like(x), np.zeros_like(x)]
    )
    layer = math.sqrt(bend / pull) / half
    guess[0] *= 1 - np.exp(-x / layer)
    guess[1] = np.gradient(guess[0], x)
    guess[2] = cumulative_trapezoid(np.cos(guess[0]), x, initial=0)

    def rhs(s: F8, y: F8, p: F8) -> F8:
        return np.stack(
            [y[1], (p[0] * np.sin(y[0]) - (1 - s) * np.cos(y[0])) / ratio, np.cos(y[0])]
        )

    def ends(a: F8, b: F8, p: F8) -> F8:
        return np.array([a[0], b[0], a[2], b[2] - span / arc])

    made = solve_bvp(rhs, ends, x, guess, p=np.array([pull / (weight * half)]), tol=1e-6,
                     max_nodes=100000)  # fmt: skip
    if not made.success:
        raise ArithmeticError(f"clamped sag: {made.message}")
    fine = np.unique(np.concatenate([_mesh(4001), made.x]))
    return half * float(trapezoid(np.sin(made.sol(fine)[0]), fine))


def hanging_modes(length: float, count: int = 3, *, g: float = GRAVITY) -> F8:
    """(j_0n / 4 pi) sqrt(g / L): frequencies of a chain or sheet that hangs from one edge [Hz].

    Small amplitude, no bending stiffness, no air (Bernoulli's hanging chain).
    """
    out: F8 = jn_zeros(0, count) / (4 * math.pi) * math.sqrt(g / length)
    return out


def hanging_strain(length: float, weight: float, stretch: float) -> float:
    """Mean strain w L / 2 K_s of a sheet that hangs from one edge [1]."""
    return weight * length / (2 * stretch)


def capstan(friction: float, wrap: float) -> float:
    """e^(mu phi): the greatest ratio of tensions over a wrap of phi [rad] (Euler, Eytelwein)."""
    return math.exp(friction * wrap)


def strand_energy(length: float, stretch: float, pull: float, weight: float) -> float:
    """Elastic energy of a strand that hangs, E A constant [J].

    At s above its lower end the tension is F + w s, and a length ds holds T^2 / (2 E A) ds:
    U = F^2 l / (2 E A) (1 + w l / F + (w l / F)^2 / 3).

    Args:
        length: l without stress [m].
        stretch: E A [N].
        pull: F, of what hangs on it [N].
        weight: w, of the strand by its length without stress [N/m].
    """
    own = weight * length / pull
    return pull**2 * length / (2 * stretch) * (1 + own + own**2 / 3)


@dataclass(frozen=True)
class Pull:
    """A block on a cloth that is pulled away.

    Attributes:
        acceleration: of the block while the cloth slips below it [m/s^2].
        passed: when the cloth's edge passes below its centre [s].
        moved: how far it has moved by then, along the pull [m].
    """

    acceleration: float
    passed: float
    moved: float


def tablecloth(
    friction: float, edge: float, *, acceleration: float, speed: float, g: float = GRAVITY
) -> Pull:
    """Moves by mu g t^2 / 2 while the cloth, faster, slips below the block (ours).

    Valid where the pull's acceleration exceeds mu g, for a cloth that does not stretch, until its
    edge passes below the block's centre; the edge, and the table's friction after it, are not
    followed.

    Args:
        friction: mu of block and cloth.
        edge: from the block's centre back to the cloth's trailing edge [m].
        acceleration: of the pull [m/s^2], up to its ``speed`` [m/s].
        speed: see there.
        g: [m/s^2].

    Raises:
        ValueError: the block does not slip.
    """
    block = friction * g
    if acceleration <= block:
        raise ValueError(f"no slip: the pull of {acceleration} m/s^2 is below mu g = {block:.3g}")
    rise = speed / acceleration

    def gained(t: float) -> float:
        up = min(t, rise)
        return acceleration * up**2 / 2 + speed * (t - up) - block * t**2 / 2 - edge

    passed = float(brentq(gained, 0.0, speed / block))
    return Pull(block, passed, block * passed**2 / 2)
