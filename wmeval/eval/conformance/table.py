"""The suite as a table: what is asked, in which world, and how near is near enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from wmeval.eval.conformance.measures import (
    ball_restitution,
    cloth_friction,
    creep,
    effective_bending,
    effective_friction,
    effective_gravity,
    effective_restitution,
    effective_stretch,
    effective_young,
    momentum_drift,
    pendulum_energy,
    pendulum_period,
    precession,
    spin_drift,
    stack_drift,
    tumble_energy,
    tumble_momentum,
)
from wmeval.eval.conformance.scenes import (
    BALL,
    FOAM,
    GRAVITY,
    LEG,
    MU,
    OVERHANG,
    STRIKER,
    STRIP,
    bar,
    bouncing,
    cloth_slide,
    collision,
    falling,
    overhanging,
    pendulum,
    slope,
    stack,
    strip,
    top,
    top_precession,
    tumbling,
)
from wmeval.eval.truths.rigid import small_period, swing_period
from wmeval.records import WorldLog
from wmeval.scene import Scene

RATE, SOFT_RATE = 180, 900
"""Substeps per second of rigid bodies and cloth, and of solids, unless said otherwise."""
RESTITUTIONS = (0.2, 0.5, 0.8, 0.95)


@dataclass(frozen=True)
class Check:
    """One quantity in one small world.

    Attributes:
        name: key; what it is about comes first.
        quantity: what is measured, with its symbol.
        unit: SI unit, "1" for none.
        asked: the right value.
        tolerance: greatest |effective - asked| that conforms.
        seconds: how long the world runs.
        rate: substeps per second.
        scene: makes the world at t = 0.
        measure: effective value, of a log with every state.
        doc: what is right, and why.
    """

    name: str
    quantity: str
    unit: str
    asked: float
    tolerance: float
    seconds: float
    rate: int
    scene: Callable[[], Scene]
    measure: Callable[[WorldLog], float]
    doc: str


def _checks() -> Iterable[Check]:
    yield Check("free_fall", "gravity g", "m/s^2", GRAVITY, 0.01, 0.5, RATE, falling,
                effective_gravity, "the acceleration of a ball that nothing touches")  # fmt: skip
    for e in RESTITUTIONS:
        yield Check(f"bounce_{e:g}", "restitution e", "1", e, 0.03, 0.6, RATE, bouncing(e),
                    effective_restitution, "speed after over speed before, from 0.4 m")  # fmt: skip
    yield Check("friction_stick", "creep", "m", 0.0, 1e-3, 1.0, RATE, slope(10.0), creep,
                "tan 10 deg < mu = 0.3: a cube on the slope stays")  # fmt: skip
    yield Check("friction_slide", "friction mu", "1", MU, 0.01, 0.6, RATE, slope(30.0),
                effective_friction(30.0), "tan a - a_s / (g cos a), sliding")  # fmt: skip
    yield Check("stack", "drift", "m", 0.0, 2e-3, 2.0, RATE, stack, stack_drift,
                "five boxes stand on each other for two seconds")  # fmt: skip
    yield Check("top", "precession", "rad/s", top_precession(), 0.02 * top_precession(), 1.0, RATE,
                top, precession, "a heavy symmetric top in steady precession")  # fmt: skip
    period = swing_period(small_period(LEG, inertia=0.4 * BALL**2), math.pi / 2)
    yield Check("pendulum_period", "period T", "s", period, 2e-3 * period, 5.0, RATE, pendulum,
                pendulum_period, "a ball on a hinge, let go at 90 degrees")  # fmt: skip
    yield Check("pendulum_energy", "energy ratio", "1", 1.0, 0.01, 10.0, RATE, pendulum,
                pendulum_energy, "energy of the tenth second over the first")  # fmt: skip
    yield Check("collision_momentum", "momentum drift", "1", 0.0, 1e-3, 0.6, RATE, collision,
                momentum_drift, "an oblique impact of two balls keeps their momentum")  # fmt: skip
    yield Check("collision_spin", "angular momentum drift", "1", 0.0, 0.02, 0.6, RATE, collision,
                spin_drift, "and their angular momentum, spin and orbit together")  # fmt: skip
    yield Check("collision_restitution", "restitution e of balls", "1", STRIKER["restitution"] ** 2,
                0.03, 0.6, RATE, collision, ball_restitution,
                "two balls of 0.7 part at 0.7^2 of their speed along their centres")  # fmt: skip
    yield Check("tumble_energy", "energy ratio, tumbling", "1", 1.0, 0.1, 1.0, RATE, tumbling,
                tumble_energy, "a brick that tumbles freely keeps its spin's energy")  # fmt: skip
    yield Check("tumble_momentum", "momentum drift, tumbling", "1", 0.0, 0.1, 1.0, RATE, tumbling,
                tumble_momentum, "and its angular momentum, by amount and way")  # fmt: skip
    yield Check("cloth_stretch", "stretch K_s", "N/m", STRIP["stretch"],
                0.1 * STRIP["stretch"], 1.0, RATE, strip, effective_stretch,
                "a strip hangs by its own weight: w L^2 / 2 K_s longer")  # fmt: skip
    yield Check("cloth_bend", "bending stiffness B", "N m", OVERHANG["bending"],
                0.15 * OVERHANG["bending"], 4.0, RATE, overhanging, effective_bending,
                "a clamped strip hangs over as the heavy elastica; 15 % of B is 5 % of the bending "
                "length (B / w)^(1/3), all that its shape knows")  # fmt: skip
    yield Check("cloth_slide", "friction mu on cloth", "1", MU, 0.03, 0.2, RATE,
                cloth_slide, cloth_friction,
                "a cube slows on a sheet that an edge holds, on ice: a / g")  # fmt: skip
    yield Check("bar_stretch", "Young's modulus E", "Pa", FOAM["young"], 0.1 * FOAM["young"],
                0.4, SOFT_RATE, bar, effective_young,
                "a clamped bar hangs by its own weight: rho g L^2 / 2 E longer")  # fmt: skip


CHECKS: dict[str, Check] = {check.name: check for check in _checks()}
"""The suite, by name."""
