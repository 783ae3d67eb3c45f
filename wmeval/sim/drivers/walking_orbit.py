"""A walk around a point with the eyes on it."""

from __future__ import annotations

import math

from pydantic import Field

from wmeval.scene import Card, Scene, Vec3
from wmeval.sim.drivers.names import camera_index
from wmeval.sim.protocol import Driver, SubstepView, Vec


class WalkingOrbit(Driver):
    """A camera at eye height that walks a circle and always looks at one point.

    The walk of WMEval's lighting metrics: a first-person orbit under a fixed sun. A pure function
    of time: ``eye_at``.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            camera: name of the camera.
            target: looked-at point [m].
            radius: of the circle about the target's vertical [m].
            eye_height: above z = 0 [m].
            period: time of one round [s]; walking begins and goes on at this even pace.
            start_deg: azimuth of the eye at t = 0 [deg], counter-clockwise from +x.
            forward: counter-clockwise seen from above, else clockwise.
            bob: height by which a step lifts the head [m].
            steps: steps in one round.
        """

        camera: str
        target: Vec3
        radius: float = Field(gt=0)
        eye_height: float = 1.6
        period: float = Field(gt=0)
        start_deg: float = 0.0
        forward: bool = True
        bob: float = Field(default=0.0, ge=0, le=0.2)
        steps: int = Field(default=24, ge=1)

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0."""
        self._camera = camera_index(scene, self._params.camera, "walking_orbit")

    def show(self, view: SubstepView) -> None:
        """The eye of the present."""
        at = eye_at(self._params, view.substep * view.dt)
        view.set_camera(self._camera, at, self._params.target)


def eye_at(params: WalkingOrbit.Params, time: float) -> Vec:
    """Where the eye is at a time [s], in metres."""
    p = params
    round_ = 2 * math.pi * time / p.period
    angle = math.radians(p.start_deg) + (round_ if p.forward else -round_)
    lift = 0.5 * p.bob * (1 - math.cos(p.steps * round_))
    x, y, _ = p.target
    return (x + p.radius * math.cos(angle), y + p.radius * math.sin(angle), p.eye_height + lift)
