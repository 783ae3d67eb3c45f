"""Leaves in the wind."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from wmeval.conventions import quaternion_multiply
from wmeval.scene import Card, Scene
from wmeval.sim.drivers.names import body_index
from wmeval.sim.drivers.turns import exponential
from wmeval.sim.protocol import Driver, SubstepView

F8 = NDArray[np.float64]

MODES_HZ = (0.31, 0.57, 0.93, 1.61)
"""Frequencies of the sway; each body has them detuned by up to a sixth."""
SHARES = (0.3, 0.22, 0.13, 0.07)
LEAN = 1.0 - sum(SHARES)
"""What is left of the amplitude is a steady lean with the wind."""
GUST_PERIODS = (7.3, 3.1)
GUST_SHARES = (0.6, 0.4)
CALM = 0.12
"""Least strength of the wind between gusts; the greatest is 1."""


class Wind(Driver):
    """Data bodies swing about their places: a pure function of time and seed.

    Body i leans with the wind by ``sway g(t - x.d / speed) (LEAN + sum_k s_k sin(w_k t + p_k))``
    and across it by half as much without the lean, where x is its place, d the wind's direction and
    g in [CALM, 1] the strength of a gust that travels at the wind's speed. It shifts in the same
    way. Never more than its amplitude: the shares add up to 1.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            bodies: names of data bodies; the scene's poses are their rest.
            sway_deg: largest lean of each [deg].
            shift: largest displacement of each [m].
            heading_deg: where the wind blows to, counter-clockwise from +x [deg].
            speed: of the gusts over the ground [m/s].
            seed: of phases and detuning.
        """

        bodies: tuple[str, ...] = Field(min_length=1)
        sway_deg: tuple[float, ...]
        shift: tuple[float, ...]
        heading_deg: float = 0.0
        speed: float = Field(default=4.0, gt=0)
        seed: int = Field(default=0, ge=0)

        @model_validator(mode="after")
        def _check(self) -> Wind.Params:
            if not len(self.bodies) == len(self.sway_deg) == len(self.shift):
                raise ValueError("give one sway_deg and one shift for each body")
            if any(not 0 <= s <= 60 for s in self.sway_deg) or any(s < 0 for s in self.shift):
                raise ValueError("sway_deg lies in 0..60, shift is not negative")
            return self

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0."""
        p = self._params
        self._bodies = np.array([body_index(scene, n, "wind") for n in p.bodies], np.intp)
        places = [scene.bodies[i].position for i in self._bodies]
        self._place = np.array(places, np.float64)
        self._rest = np.array([scene.bodies[i].quaternion_wxyz for i in self._bodies], np.float64)
        self._field = Gusts.of(p, self._place)
        self._sway: F8 = np.radians(np.array(p.sway_deg, np.float64))[:, None]
        self._shift: F8 = np.array(p.shift, np.float64)[:, None]
        self._numbers = np.zeros((len(self._bodies), 13))
        self.show(view)

    def show(self, view: SubstepView) -> None:
        """Everything where the wind has it now."""
        along, along_rate, across, across_rate = self._field.at(view.substep * view.dt)
        d, side = self._field.direction, self._field.side
        # A turn about ``side`` tips what stands upright over towards ``d``.
        lean = self._sway * (along[:, None] * side - across[:, None] * d)
        rate = self._sway * (along_rate[:, None] * side - across_rate[:, None] * d)
        quaternion, angular = exponential(lean, rate)
        out = self._numbers
        out[:, 0:3] = self._place + self._shift * (along[:, None] * d + across[:, None] * side)
        out[:, 3:7] = quaternion_multiply(quaternion, self._rest)
        out[:, 7:10] = self._shift * (along_rate[:, None] * d + across_rate[:, None] * side)
        out[:, 10:13] = angular
        view.set_states(self._bodies, out)


@dataclass(frozen=True, eq=False)
class Gusts:
    """The wind at N places.

    Attributes:
        direction, side: (3,) unit: along the wind and to its left.
        late: (N,) time [s] that a gust needs to a place.
        omega, phase: (2, K, N) of the sway along and across [rad/s, rad].
        gust: (2,) phases of the gusts [rad].
    """

    direction: F8
    side: F8
    late: F8
    omega: F8
    phase: F8
    gust: F8

    @staticmethod
    def of(params: Wind.Params, place: F8) -> Gusts:
        """The field of a wind at places (N, 3) [m]."""
        rng = np.random.Generator(np.random.PCG64(np.random.SeedSequence(params.seed)))
        heading = math.radians(params.heading_deg)
        d = np.array([math.cos(heading), math.sin(heading), 0.0])
        side = np.array([-d[1], d[0], 0.0])
        n, k = len(place), len(MODES_HZ)
        detuned = rng.uniform(5 / 6, 7 / 6, (2, k, n))
        omega = 2 * math.pi * np.array(MODES_HZ)[None, :, None] * detuned
        phase = rng.uniform(0, 2 * math.pi, (2, k, n))
        return Gusts(
            d, side, place @ d / params.speed, omega, phase, rng.uniform(0, 2 * math.pi, 2)
        )

    def at(self, time: float) -> tuple[F8, F8, F8, F8]:
        """Along the wind, its rate [1/s], across it, its rate; (N,) each, within -1..1."""
        angle = self.omega * time + self.phase
        share = np.array(SHARES)[None, :, None]
        wave = (share * np.sin(angle)).sum(axis=1)
        wave_rate = (share * self.omega * np.cos(angle)).sum(axis=1)
        strength, strength_rate = np.full_like(self.late, 0.5), np.zeros_like(self.late)
        for period, weight, phase in zip(GUST_PERIODS, GUST_SHARES, self.gust, strict=True):
            w = 2 * math.pi / period
            turn = w * (time - self.late) + phase
            strength = strength + 0.5 * weight * np.sin(turn)
            strength_rate = strength_rate + 0.5 * weight * w * np.cos(turn)
        strength = CALM + (1 - CALM) * strength
        strength_rate = (1 - CALM) * strength_rate
        along = strength * (LEAN + wave[0])
        along_rate = strength_rate * (LEAN + wave[0]) + strength * wave_rate[0]
        half = 0.5 * strength
        across = half * wave[1]
        across_rate = 0.5 * strength_rate * wave[1] + half * wave_rate[1]
        return along, along_rate, across, across_rate
