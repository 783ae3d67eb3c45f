"""Small things in the air: falling petals, drops of a fountain, drifting motes."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from wmeval.scene import Card, Scene, Vec3
from wmeval.sim.drivers.names import body_index
from wmeval.sim.drivers.scatter import scattered
from wmeval.sim.drivers.turns import exponential
from wmeval.sim.protocol import Driver, SubstepView

F8 = NDArray[np.float64]


class Particles(Driver):
    """A fixed pool of data bodies whose states are a pure function of time and seed.

    Slot i lives again and again, each time for ``life`` out of ``period`` seconds, at a phase of
    its own; between two lives it is not active. Where it begins and how it moves is drawn for each
    life anew (`scattered`, a counter-based generator). Motions:

    - ``fall``: from the box down to ``floor`` at a steady speed, swinging sideways and tumbling;
      it ends where it lands, if it lives that long.
    - ``jet``: ballistic from the box with a speed and a cone, under the scene's gravity; it ends at
      ``floor``.
    - ``drift``: about its first place on slow Lissajous curves within ``swing``.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            bodies: names of data bodies.
            motion: "fall", "jet" or "drift".
            low, high: corners of the box in which a life begins [m].
            period: time from life to life [s].
            life: longest life [s].
            velocity: mean velocity at birth [m/s].
            spread: half width of the uniform scatter of each velocity component [m/s].
            swing: amplitude of swinging or drifting [m].
            rate: swings per second [1/s].
            spin: largest tumbling speed [rad/s].
            floor: height at which "fall" and "jet" end [m].
            seed: of all draws.
        """

        bodies: tuple[str, ...] = Field(min_length=1)
        motion: Literal["fall", "jet", "drift"]
        low: Vec3
        high: Vec3
        period: float = Field(gt=0)
        life: float = Field(gt=0)
        velocity: Vec3 = (0.0, 0.0, 0.0)
        spread: Vec3 = (0.0, 0.0, 0.0)
        swing: float = Field(default=0.0, ge=0)
        rate: float = Field(default=0.5, gt=0)
        spin: float = Field(default=0.0, ge=0)
        floor: float = 0.0
        seed: int = Field(default=0, ge=0)

        @model_validator(mode="after")
        def _check(self) -> Particles.Params:
            if self.life > self.period:
                raise ValueError(
                    f"a life of {self.life} s does not fit a period of {self.period} s"
                )
            if any(a > b for a, b in zip(self.low, self.high, strict=True)):
                raise ValueError(f"the box from {self.low} to {self.high} has no inside")
            return self

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0."""
        p = self._params
        self._bodies = np.array([body_index(scene, n, "particles") for n in p.bodies], np.intp)
        self._slots = np.arange(len(self._bodies)).astype(np.uint64)
        fixed = scattered(p.seed, self._slots, self._slots * np.uint64(0), 1)[0]
        # Evenly staggered, not quite regularly.
        self._phase = p.period * (np.arange(len(fixed)) + 0.8 * fixed) / len(fixed)
        self._lives = b""
        self._gravity = np.array(scene.gravity if p.motion == "jet" else (0.0, 0.0, 0.0))
        self.show(view)

    def show(self, view: SubstepView) -> None:
        """Everything where it is now."""
        numbers, alive = self.at(view.substep * view.dt)
        view.set_states(self._bodies, numbers)
        for body, on in zip(self._bodies.tolist(), alive.tolist(), strict=True):
            view.set_active(body, on)

    def at(self, time: float) -> tuple[F8, NDArray[np.bool_]]:
        """States (N, 13) as `SubstepView.set_states` takes them, and who lives (N,), at a time."""
        p = self._params
        turn = (time + self._phase) / p.period
        cycle = np.floor(turn)
        age = (turn - cycle) * p.period
        if cycle.tobytes() != self._lives:
            # Drawn once for as long as everybody lives the same life.
            self._lives = cycle.tobytes()
            self._draw(cycle.astype(np.uint64))
        a = age[:, None]
        place = self._start + self._speed * a + (0.5 * self._gravity) * (a * a)
        velocity = self._speed + self._gravity * a
        if p.swing > 0:
            # Begins without a jump: the swing is measured from its value at birth.
            swung = self._omega * a + self._first
            place += self._size * (np.sin(swung) - np.sin(self._first))
            velocity += self._size * self._omega * np.cos(swung)
        alive = age < p.life
        if p.motion != "drift":
            alive &= place[:, 2] > p.floor
        quaternion, _ = exponential(self._spin * (a + 1.0), self._spin)
        numbers = np.concatenate([place, quaternion, velocity, self._spin], axis=1)
        return numbers, np.asarray(alive)

    def _draw(self, life: NDArray[np.uint64]) -> None:
        """What is drawn for the present life of each slot: a function of the two alone."""
        p = self._params
        draws = scattered(p.seed, self._slots, life, 16)

        def three(k: int) -> F8:
            return draws[k : k + 3].T

        low, high = np.array(p.low), np.array(p.high)
        self._start = low + (high - low) * three(0)
        speed = np.array(p.velocity) + np.array(p.spread) * (2 * three(3) - 1)
        self._speed = speed if p.motion != "drift" else np.zeros_like(speed)
        self._omega = 2 * math.pi * p.rate * (0.7 + 0.6 * three(6))
        self._first = 2 * math.pi * three(9)
        self._size = p.swing * np.array([1.0, 1.0, 1.0 if p.motion == "drift" else 0.25])
        axis = 2 * three(12) - 1
        axis = axis / np.maximum(np.linalg.norm(axis, axis=1, keepdims=True), 1e-9)
        self._spin = p.spin * (0.4 + 0.6 * draws[15])[:, None] * axis
