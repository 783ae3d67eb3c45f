"""GAUGE's mapping of measured stiffness to the numbers that each engine takes (eqs. 4-12).

The published settings use these functions and nothing else. Each returns what it chose and the
regime it chose it in, so that a result says whether a fall-back stands behind it. Symbols: K_s and
K_sh stretch and shear stiffness per unit width [N/m], t thickness [m], K_theta torque per angle of
a bending hinge [N m], nu Poisson's ratio.

Oddities that are kept: the fall-backs of eqs. 6 and 11 discard the measured shear stiffness, which
of the seven textiles only uniform cloth keeps; the ratio 2.7 of eq. 11 is an engineering prior.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from wmeval.errors import UserError

RATIO_PRIOR = 2.7
"""K_s / K_sh where the measured ratio fits no isotropic membrane (eq. 11)."""

LOW_FALLBACK, HIGH_FALLBACK = 0.30, 0.45
"""Poisson's ratios of eq. 6 below 0 and from 0.5 on."""

Regime = Literal["measured", "fallback_low", "fallback_high", "fallback_prior"]


def _positive(**numbers: float) -> None:
    for name, value in numbers.items():
        if not (math.isfinite(value) and value > 0):
            raise UserError(f"parameter mapping: {name} = {value!r} must be positive")


@dataclass(frozen=True)
class Poisson:
    """A Poisson's ratio that a solver can take.

    Attributes:
        given: the stated or derived one.
        value: the chosen one.
        regime: ``measured``, or the fall-back of eq. 6.
    """

    given: float
    value: float
    regime: Regime

    @property
    def fallback(self) -> bool:
        """Whether the given value was not used."""
        return self.regime != "measured"


def poisson(nu: float) -> Poisson:
    """The ratio itself for 0 <= nu < 0.5; 0.30 below 0; 0.45 from 0.5 on (eq. 6)."""
    if not math.isfinite(nu):
        raise UserError(f"parameter mapping: Poisson's ratio {nu!r} is not a finite number")
    if nu < 0:
        return Poisson(nu, LOW_FALLBACK, "fallback_low")
    if nu >= 0.5:
        return Poisson(nu, HIGH_FALLBACK, "fallback_high")
    return Poisson(nu, nu, "measured")


def isotropic_poisson(nu: float, *, of: str) -> float:
    """A Poisson's ratio as it is stated, for an isotropic solid.

    Args:
        nu: the stated ratio.
        of: whose it is, for the message.

    Raises:
        UserError: nu lies outside [0, 0.5), as the soft rod's published 0.62; the message names the
            body, the value and the documented fall-back (`poisson`).
    """
    chosen = poisson(nu)
    if chosen.fallback:
        raise UserError(
            f"{of}: Poisson's ratio {nu:g} is impossible for an isotropic solid (0 <= nu < 0.5): "
            f"correct it, or run with the fall-back {chosen.value:g} (GAUGE eq. 6)"
        )
    return nu


@dataclass(frozen=True)
class IsaacTextile:
    """Isaac Sim's surface FEM (eqs. 4-7).

    Attributes:
        young: E = K_s / t [Pa].
        poisson: nu of eqs. 5 and 6.
        surface_bend_stiffness: K_theta / (4 t^3) [Pa].
    """

    young: float
    poisson: Poisson
    surface_bend_stiffness: float


def isaac_textile(*, stretch: float, shear: float, hinge: float, thickness: float) -> IsaacTextile:
    """Eqs. 5, 6 and 7: nu = K_s / (2 K_sh) - 1, E = K_s / t, bending K_theta / (4 t^3).

    Args:
        stretch: K_s [N/m].
        shear: K_sh [N/m].
        hinge: K_theta [N m].
        thickness: t [m].
    """
    _positive(stretch=stretch, shear=shear, hinge=hinge, thickness=thickness)
    return IsaacTextile(
        young=stretch / thickness,
        poisson=poisson(stretch / (2 * shear) - 1),
        surface_bend_stiffness=hinge / (4 * thickness**3),
    )


@dataclass(frozen=True)
class GenesisTextile:
    """Genesis' position-based cloth (eq. 8): compliances [m/N] and [1/(N m)].

    It has no input for the shear stiffness.
    """

    stretch_compliance: float
    bending_compliance: float


def genesis_textile(*, stretch: float, hinge: float) -> GenesisTextile:
    """Eq. 8: 1 / K_s and 1 / K_theta."""
    _positive(stretch=stretch, hinge=hinge)
    return GenesisTextile(1 / stretch, 1 / hinge)


@dataclass(frozen=True)
class NewtonTextile:
    """Newton's VBD membrane (eqs. 9-12).

    Attributes:
        tri_ke: K~_sh [N/m]; tri_ka: eq. 10 [N/m].
        edge_ke: K_theta over the mean rest length of an edge [N].
        shear_given: the measured K_sh [N/m].
        regime: ``measured`` where 2 < K_s / K_sh < 4, else ``fallback_prior`` (eq. 11).
    """

    tri_ke: float
    tri_ka: float
    edge_ke: float
    shear_given: float
    regime: Regime

    @property
    def fallback(self) -> bool:
        """Whether the measured shear stiffness was not used."""
        return self.regime != "measured"


def newton_textile(
    *, stretch: float, shear: float, hinge: float, edge_length: float
) -> NewtonTextile:
    """Eqs. 10, 11 and 12.

    tri_ke = K~, tri_ka = 2 K~ (K_s - 2 K~) / (4 K~ - K_s) with K~ = K_sh where 2 < K_s / K_sh < 4,
    else K_s / 2.7; edge_ke = K_theta / mean edge length.

    Args:
        stretch: K_s [N/m].
        shear: K_sh [N/m].
        hinge: K_theta [N m].
        edge_length: mean rest length of the mesh's edges [m].
    """
    _positive(stretch=stretch, shear=shear, hinge=hinge, edge_length=edge_length)
    measured = 2 < stretch / shear < 4
    used = shear if measured else stretch / RATIO_PRIOR
    return NewtonTextile(
        tri_ke=used,
        tri_ka=2 * used * (stretch - 2 * used) / (4 * used - stretch),
        edge_ke=hinge / edge_length,
        shear_given=shear,
        regime="measured" if measured else "fallback_prior",
    )


def membrane_stiffness(tri_ke: float, tri_ka: float) -> tuple[float, float]:
    """(K_s, K_sh) of a membrane with Lame numbers mu = tri_ke, lambda = tri_ka (eq. 9) [N/m].

    The inverse of eq. 10: what the solver's numbers should measure in a uniaxial and a shear test.
    """
    _positive(tri_ke=tri_ke)
    return 4 * tri_ke * (tri_ka + tri_ke) / (tri_ka + 2 * tri_ke), tri_ke
