"""A force on a body, proportional to action channels, up to a speed."""

from __future__ import annotations

import math
from collections.abc import Sequence

from pydantic import Field, model_validator

from wmeval.scene import Card, Scene, Vec3
from wmeval.sim.drivers.names import body_index
from wmeval.sim.protocol import Driver, SubstepView, Vec

_NONE = (0.0, 0.0, 0.0)


class Force(Driver):
    """Force ``newtons * sum_i action[actions[i]] * axes[i]`` through the centre of mass.

    It acts during every substep that begins with a horizontal speed below ``max_speed`` (so the
    speed may pass the limit by one substep's acceleration), as the player of the ball scenes
    (Appendix "Unity Scenes").
    """

    class Params(Card):
        """Parameters.

        Attributes:
            body: name of the driven body.
            axes: world-frame direction of each used action channel (not normalised).
            actions: index of the action channel of each axis; None takes them in order.
            newtons: force at action 1 [N].
            max_speed: horizontal speed [m/s] from which no force acts; None is no limit.
        """

        body: str
        axes: tuple[Vec3, ...] = Field(min_length=1)
        actions: tuple[int, ...] | None = None
        newtons: float
        max_speed: float | None = Field(default=None, gt=0)

        @model_validator(mode="after")
        def _check(self) -> Force.Params:
            if self.actions is not None and len(self.actions) != len(self.axes):
                raise ValueError(f"{len(self.axes)} axes but {len(self.actions)} actions")
            return self

    def __init__(self, params: Params) -> None:
        self._params = params
        indices = params.actions if params.actions is not None else range(len(params.axes))
        n = params.newtons
        self._terms = [
            (i, n * x, n * y, n * z) for i, (x, y, z) in zip(indices, params.axes, strict=True)
        ]
        self._limit = math.inf if params.max_speed is None else params.max_speed**2

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0."""
        self._body = body_index(scene, self._params.body, "force")
        self._action: Sequence[float] | None = None
        self._force: Vec = _NONE

    def before(self, view: SubstepView) -> None:
        """Apply the force of the action in force."""
        action = view.action
        if action is not self._action:
            # The same object for all substeps of a control period: summed once.
            self._action = action
            self._force = self._sum(action)
        force = self._force
        if force == _NONE:
            return
        vx, vy, _ = view.velocity(self._body)[0]
        if vx * vx + vy * vy < self._limit:
            view.apply_force(self._body, force)

    def _sum(self, action: Sequence[float]) -> Vec:
        fx = fy = fz = 0.0
        for i, x, y, z in self._terms:
            a = float(action[i])
            fx += a * x
            fy += a * y
            fz += a * z
        return fx, fy, fz
