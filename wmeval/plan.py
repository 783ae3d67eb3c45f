"""ActionPlan: semantic actions on physical time, as a card."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue, model_validator

from wmeval.clock import exact
from wmeval.errors import UserError
from wmeval.scene import Card

Seconds = str | int | float


class PlanSegment(Card):
    """Channels held at constant values over [start, end) [s]; a later segment overrides.

    Attributes:
        start, end: exact times ("0.2", "1/5", 3).
        values: channel name to value in [-1, 1]; a branch's is 0 or 1.
    """

    start: Seconds
    end: Seconds
    values: dict[str, float]

    @model_validator(mode="after")
    def _check(self) -> PlanSegment:
        if not 0 <= exact(self.start) < exact(self.end):
            raise ValueError(f"segment [{self.start}, {self.end}) is empty or starts before 0")
        for channel, value in self.values.items():
            if not -1 <= value <= 1:
                raise ValueError(f"{channel} = {value} is outside [-1, 1]")
        return self


class ActionPlan(Card):
    """What is done to a scene, and why.

    Attributes:
        name: key within its scene.
        scene: environment id that it is made for.
        dimensions: evaluation dimensions that it serves.
        doc: what it is designed to elicit.
        duration: length [s].
        segments: piecewise constant channels; what no segment sets is 0.
        reset_options: `env.reset(options=...)` that go with it.
        prompt: what a text-conditioned candidate is told.
        negative_prompt: what it is told to avoid.
    """

    name: str
    scene: str
    dimensions: tuple[str, ...]
    doc: str
    duration: Seconds
    segments: tuple[PlanSegment, ...]
    reset_options: dict[str, JsonValue] = Field(default_factory=dict)
    prompt: str
    negative_prompt: str

    def value_at(self, time: Fraction, channels: tuple[str, ...]) -> tuple[float, ...]:
        """Channel values in force at an exact time [s]."""
        values = dict.fromkeys(channels, 0.0)
        for segment in self.segments:
            if exact(segment.start) <= time < exact(segment.end):
                values.update(segment.values)
        return tuple(values[c] for c in channels)

    def actions(
        self,
        channels: tuple[str, ...],
        control_period: Fraction,
        *,
        branches: tuple[str, ...] = (),
    ) -> NDArray[np.float64]:
        """Actions (T, C): action i holds the values in force at i Ta, T = ceil(duration / Ta).

        The values are those that an environment's float32 action space holds: the reference, its
        twins and exported controls are driven by the same bits.

        Args:
            channels: of the scene, in order.
            control_period: Ta [s].
            branches: the channels that are 0 or 1.

        Raises:
            UserError: the plan sets a channel that the scene does not have, or a branch to another
                value than 0 or 1; or a segment begins or ends between two actions, so that its
                length would not be what the card says.
        """
        for segment in self.segments:
            unknown = set(segment.values) - set(channels)
            if unknown:
                known = f"the channels {', '.join(channels)}" if channels else "no channels"
                raise UserError(
                    f"plan {self.name!r} sets {sorted(unknown)[0]!r}; {self.scene}, as it was "
                    f"made, has {known}"
                )
            for name in branches:
                if segment.values.get(name, 0) not in (0, 1):
                    raise UserError(
                        f"plan {self.name!r}: {name} = {segment.values[name]} at {segment.start} s "
                        "is a branch: set it to 0 or 1"
                    )
            for edge in (segment.start, segment.end):
                time = min(exact(edge), exact(self.duration))
                if (time / control_period).denominator != 1:
                    raise UserError(
                        f"plan {self.name!r}: {edge} s is no whole number of control periods of "
                        f"{control_period} s: choose a control period that divides it"
                    )
        count = -(-exact(self.duration) // control_period)
        rows = [self.value_at(i * control_period, channels) for i in range(int(count))]
        held = np.array(rows, np.float32).reshape(int(count), len(channels))
        return held.astype(np.float64)

    @classmethod
    def read(cls, document: Mapping[str, Any]) -> ActionPlan:
        """Validate a parsed card."""
        return cls.model_validate(document)
