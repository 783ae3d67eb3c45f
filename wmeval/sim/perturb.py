"""Wrong worlds with a known error: one physical constant off by a known factor.

A perturbed twin is what the metrics are tried on: its error is known in advance, and grows with the
perturbation's strength.
"""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from wmeval.clock import exact
from wmeval.errors import UserError
from wmeval.scene import Card
from wmeval.sim.protocol import WorldSpec


class Perturbation(Card):
    """Factors on a scene's physics and on its actions; the default changes nothing.

    The factors act on the scene's own constants, whatever engine and drivers make of them. A factor
    on what a scene does not have changes nothing: its page says what that is ("Arguments",
    `perturb`).

    Attributes:
        gravity: factor on gravity.
        friction: factor on the friction of every PAIR of bodies (each body gets its square root,
            since the value of a pair is the product). What resists rolling and spinning stays.
        restitution: factor on the restitution of every pair, likewise.
        mass: factor on all masses (the driving force stays).
        gain: factor on the actions. The result may leave [-1, 1]: a world takes it as it is.
        delay: time by which actions arrive late [s], a whole number of control periods; the
            world sees 0 before the first arrives.
    """

    gravity: float = Field(default=1.0, ge=0, le=100)
    friction: float = Field(default=1.0, ge=0, le=100)
    restitution: float = Field(default=1.0, ge=0, le=100)
    mass: float = Field(default=1.0, gt=0, le=100)
    gain: float = Field(default=1.0, ge=-100, le=100)
    delay: float = Field(default=0.0, ge=0, le=10)

    @classmethod
    def parse(cls, text: str) -> Perturbation:
        """Read "gravity=0.8,delay=0.1"; an empty text is no perturbation.

        Raises:
            UserError: an unknown key, a key twice, or a value that is no number in range.
        """
        values: dict[str, float] = {}
        known = ", ".join(cls.model_fields)
        for part in filter(None, (p.strip() for p in text.split(","))):
            key, equals, value = (x.strip() for x in part.partition("="))
            if not equals:
                raise UserError(f"perturbation {part!r}: write key=value; known keys: {known}")
            if key not in cls.model_fields:
                raise UserError(f"no perturbation {key!r}; known: {known}")
            if key in values:
                raise UserError(f"perturbation {key!r} is given twice in {text!r}")
            try:
                values[key] = float(value)
            except ValueError:
                raise UserError(f"perturbation {key} = {value!r} is not a number") from None
        try:
            return cls(**values)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(x) for x in first["loc"])
            raise UserError(f"perturbation {where} = {first['input']}: {first['msg']}") from error

    def __str__(self) -> str:
        """The text that `parse` reads."""
        return ",".join(
            f"{key}={value!r}" for key, value in self.model_dump(exclude_defaults=True).items()
        )

    def apply(self, spec: WorldSpec) -> WorldSpec:
        """The same world with the scene's physics scaled; the actions are for `actions`.

        Raises:
            UserError: a restitution would pass 1.
        """
        if (self.gravity, self.friction, self.restitution, self.mass) == (1, 1, 1, 1):
            return spec
        rough, bouncy = math.sqrt(self.friction), math.sqrt(self.restitution)
        most = max(spec.scene.bodies, key=lambda body: body.restitution)
        if most.restitution * bouncy > 1:
            raise UserError(
                f"perturbation restitution={self.restitution:g}: body {most.name!r} would "
                f"bounce with {most.restitution * bouncy:.3g} > 1; use a factor of at most "
                f"{1 / most.restitution**2:.3g}"
            )
        bodies = []
        for body in spec.scene.bodies:
            changes: dict[str, Any] = {
                "friction": body.friction * rough,
                "restitution": body.restitution * bouncy,
                "mass": body.mass * self.mass,
            }
            # The lever arm of rolling resistance is not friction, but a pair's value is
            # rolling_friction times the other's friction: keep it what it was.
            if rough > 0:
                changes["rolling_friction"] = body.rolling_friction / rough
            bodies.append(body.model_copy(update=changes))
        gx, gy, gz = (self.gravity * g for g in spec.scene.gravity)
        scene = spec.scene.model_copy(update={"gravity": (gx, gy, gz), "bodies": tuple(bodies)})
        return dataclasses.replace(spec, scene=scene)

    def delay_steps(self, control_period: Fraction) -> int:
        """The delay in control periods.

        Raises:
            UserError: it is not a whole number of them.
        """
        steps = exact(self.delay) / control_period
        if steps.denominator != 1:
            below = math.floor(steps) * control_period
            raise UserError(
                f"perturbation delay={self.delay:g} s is not a whole number of control periods of "
                f"{control_period} s; the nearest are {float(below):.6g} and "
                f"{float(below + control_period):.6g}"
            )
        return int(steps)

    def actions(
        self, actions: NDArray[Any], control_period: Fraction, *, branches: int = 0
    ) -> NDArray[np.float64]:
        """What the perturbed world gets: actions (T, A) scaled by the gain and late by the delay.

        The last ``branches`` channels are 0 or 1: they come late, but nothing scales them.

        Raises:
            UserError: as `delay_steps`.
        """
        late = self.delay_steps(control_period)
        given = np.asarray(actions, np.float64)
        driven = np.zeros_like(given)
        driven[late:] = given[: max(len(given) - late, 0)]
        driven[:, : given.shape[1] - branches] *= self.gain
        return driven
