"""Measured torques: bodies are turned by what a motor gave, sample by sample."""

from __future__ import annotations

from pydantic import Field, model_validator

from wmeval.errors import UserError
from wmeval.scene import Card, Scene, Vec3
from wmeval.sim.drivers.names import body_index
from wmeval.sim.protocol import Driver, SubstepView


class Torques(Driver):
    """A torque about one axis on each of some bodies, linear between samples.

    Before time 0 and after the last sample there is none. Within a substep it is that of its
    middle.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            axis: of the torques, world frame, of unit length.
            step: time between samples, the first at time 0 [s].
            torques: of each body by name [N m].
        """

        axis: Vec3
        step: float = Field(gt=0)
        torques: dict[str, tuple[float, ...]] = Field(min_length=1)

        @model_validator(mode="after")
        def _check(self) -> Torques.Params:
            if abs(sum(c * c for c in self.axis) - 1) > 1e-6:
                raise ValueError(f"axis {self.axis}: its length must be 1")
            short = next((n for n, t in self.torques.items() if len(t) < 2), None)
            if short is not None:
                raise ValueError(f"torques of {short!r}: two samples or more are wanted")
            return self

    def __init__(self, params: Params) -> None:
        self.params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Find the bodies."""
        self._rows = [
            (body_index(scene, name, "torques"), samples)
            for name, samples in self.params.torques.items()
        ]
        for i, _ in self._rows:
            if scene.bodies[i].motion != "dynamic":
                raise UserError(f"driver torques: body {scene.bodies[i].name!r} is not dynamic")
        self._per_step = view.dt / self.params.step

    def before(self, view: SubstepView) -> None:
        """Turn them."""
        if view.substep < 0:
            return
        at = (view.substep + 0.5) * self._per_step
        k = int(at)
        share = at - k
        x, y, z = self.params.axis
        for i, samples in self._rows:
            if k + 1 < len(samples):
                torque = (1 - share) * samples[k] + share * samples[k + 1]
                view.apply_torque(i, (torque * x, torque * y, torque * z))
