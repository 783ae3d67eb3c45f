"""How a beam of soft and rigid cubes in turn swings that is let go from level."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.optimize import fsolve

from wmeval.assets.gauge_cards import GRAVITY
from wmeval.eval.truths.soft import shear_coefficient, shear_modulus

F8 = NDArray[np.float64]
_DELTA = 1e-6
"""Step of differences [m, rad]."""
_STEPS = 40
"""Steps between frames: some thirty to the fastest swing of one cube."""


@dataclass(frozen=True)
class Swing:
    """What the beam does, and where it is in the mean of whole swings.

    Attributes:
        rest: drop of its end's middle where it hangs still, by this model [m].
        frequency: of small swings about that [Hz].
        drop, reach: means of its end's middle, below the root and out from the wall [m].
        angles: means of the rigid cubes' slopes below the horizontal [rad].
    """

    rest: float
    frequency: float
    drop: float
    reach: float
    angles: tuple[float, ...]


def whole_swings(down: F8) -> slice | None:
    """Frames of whole swings of a course (N,); None: not one.

    From where it first comes down through the middle between its extremes to where it last does.
    """
    over = down > (down.max() + down.min()) / 2
    through = np.flatnonzero(~over[:-1] & over[1:])
    if len(through) < 2:
        return None
    return slice(int(through[0]), int(through[-1]))


@dataclass(frozen=True, eq=False)
class _Blocks:
    """A chain of rigid cubes, joined by beams that have no mass.

    Its state is, of each cube, the centre's way out and down [m] and the slope [rad].
    """

    axial: float
    straight: float
    crossed: float
    side: float
    count: int
    soft_mass: float
    rigid_mass: float
    g: float

    def level(self) -> F8:
        out = np.zeros((self.count, 3))
        out[:, 0] = (2 * np.arange(self.count) + 1.5) * self.side
        return out.ravel()

    def end(self, state: F8) -> tuple[F8, F8]:
        """Way out and down of the end's middle, for states (..., 3 count)."""
        x, y, angle = (state[..., k - 3] for k in range(3))
        return x + self.side / 2 * np.cos(angle), y + self.side / 2 * np.sin(angle)

    def slope(self, state: F8) -> F8:
        """Of the energy at a state (3 count,): elastic, and of the weights."""
        cubes = state.reshape(-1, 3)
        out = np.zeros((self.count, 3))
        out[:, 1] -= self.rigid_mass * self.g
        ax, ay, aa = 0.0, 0.0, 0.0  # where a soft cube begins, and at what slope
        half = self.side / 2
        for k in range(self.count):
            x, y, angle = (float(v) for v in cubes[k])
            c, s = half * math.cos(angle), half * math.sin(angle)
            dx, dy = x - c - ax, y - s - ay
            length, chord = math.hypot(dx, dy), math.atan2(dy, dx)
            first, last = aa - chord, angle - chord
            m1 = self.straight * first + self.crossed * last
            m2 = self.crossed * first + self.straight * last
            pull, turn = self.axial * (length - self.side), (m1 + m2) / length
            ux, uy = dx / length, dy / length
            fx, fy = pull * ux + turn * uy, pull * uy - turn * ux
            weight = self.soft_mass * self.g / 2
            # On this cube's near face, then on the far face of the one before.
            out[k] += fx, fy - weight, m2 + fx * s - (fy - weight) * c
            if k:
                a0 = float(cubes[k - 1, 2])
                c0, s0 = half * math.cos(a0), half * math.sin(a0)
                out[k - 1] += -fx, -fy - weight, m1 + fx * s0 - (fy + weight) * c0
            ax, ay, aa = x + c, y + s, angle
        return out.ravel()

    def inertia(self) -> F8:
        """Of each coordinate (3 count,): a soft cube's mass goes to its neighbours by halves."""
        out = np.empty((self.count, 3))
        out[:, :2] = self.rigid_mass + self.soft_mass
        out[-1, :2] -= self.soft_mass / 2
        out[:, 2] = self.rigid_mass * self.side**2 / 6
        return out.ravel()


@cache
def block_swing(
    young: float, poisson: float, side: float, blocks: int, soft_mass: float, rigid_mass: float,
    *, duration: float, rate: float = 30.0, g: float = GRAVITY,
) -> Swing:  # fmt: skip
    """Undamped swing of `soft.block_cantilever`'s beam, let go at rest from level (ours).

    The rigid cubes move freely in a plane. The soft ones between them are beams of Timoshenko's
    without mass, linear in a frame that turns with their chord: where the beam hangs still, that is
    within half a per cent of the geometrically exact one. A swing that starts at level is no small
    one: in its mean the end is some 4 % higher than where it comes to rest.

    Args:
        young: E of the soft cubes [Pa].
        poisson: theirs.
        side: of all cubes [m].
        blocks: pairs of a soft and a rigid cube.
        soft_mass: of a soft cube [kg].
        rigid_mass: of a rigid cube [kg].
        duration: of the swing [s], of which a record of ``rate`` frames a second is taken.
        rate: see there.
        g: [m/s^2].
    """
    area, bend = side**2, young * side**4 / 12
    shear = shear_coefficient(poisson) * shear_modulus(young, poisson) * area
    phi = 12 * bend / (shear * side**2)
    stiff = bend / (side * (1 + phi))
    chain = _Blocks(
        young * area / side, (4 + phi) * stiff, (2 - phi) * stiff, side, blocks, soft_mass,
        rigid_mass, g,
    )  # fmt: skip
    level, inertia = chain.level(), chain.inertia()
    rest = np.asarray(fsolve(chain.slope, level, xtol=1e-12), np.float64)
    values = eigh(_changes(chain.slope, rest), np.diag(inertia), eigvals_only=True)
    states = _course(chain.slope, inertia, level, math.floor(duration * rate + 1e-9), 1 / rate)
    out, down = chain.end(states)
    found = whole_swings(down)
    rows = found or slice(0, 0)
    angles = states[rows].reshape(-1, blocks, 3)[:, :, 2]
    none = math.nan
    return Swing(
        float(chain.end(rest)[1]), math.sqrt(float(values[0])) / (2 * math.pi),
        float(down[rows].mean()) if found else none, float(out[rows].mean()) if found else none,
        tuple(float(a) for a in angles.mean(axis=0)) if found else (none,) * blocks,
    )  # fmt: skip


def _course(function: Callable[[F8], F8], inertia: F8, start: F8, frames: int, step: float) -> F8:
    """States of a record, from rest: by leapfrog steps, which keep the energy (N, size)."""
    h = step / _STEPS
    state, speed = start.copy(), -function(start) / inertia * h / 2
    out = [start]
    for _ in range(frames):
        for _ in range(_STEPS):
            state = state + h * speed
            speed = speed - h * function(state) / inertia
        out.append(state)
    return np.stack(out)


def _changes(function: Callable[[F8], F8], at: F8) -> F8:
    """Symmetric part of a function's derivative at a point, by central differences."""
    steps = _DELTA * np.eye(len(at))
    out = np.stack([(function(at + s) - function(at - s)) / (2 * _DELTA) for s in steps])
    return np.asarray((out + out.T) / 2, np.float64)
