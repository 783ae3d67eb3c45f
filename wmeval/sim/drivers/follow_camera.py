"""A camera that follows a body."""

from __future__ import annotations

import math
from typing import Literal

from pydantic import Field

from wmeval.scene import Card, Scene, Vec3
from wmeval.sim.drivers.names import body_index, camera_index
from wmeval.sim.protocol import Driver, SubstepView


class FollowCamera(Driver):
    """The eye keeps an offset from a body, at once or smoothly, and looks at it.

    Smoothly means ``eye += (body + offset - eye) (1 - exp(-rate dt))`` after every substep: a Lerp
    factor per second that does not depend on the frame rate.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            camera: name of the camera.
            body: name of the followed body.
            offset: eye minus body [m], world frame.
            mode: "rigid" or "smooth".
            rate: rate of the smooth mode [1/s].
            look_at: point looked at minus body [m].
        """

        camera: str
        body: str
        offset: Vec3
        mode: Literal["rigid", "smooth"] = "rigid"
        rate: float = Field(default=8.0, gt=0)
        look_at: Vec3 = (0.0, 0.0, 0.0)

    def __init__(self, params: Params) -> None:
        self._params = params
        self._offset = params.offset
        self._look_at = params.look_at

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0 with the eye at its offset."""
        self._body = body_index(scene, self._params.body, "follow_camera")
        self._camera = camera_index(scene, self._params.camera, "follow_camera")
        smooth = self._params.mode == "smooth"
        self._factor = -math.expm1(-self._params.rate * view.dt) if smooth else 1.0
        x, y, z = view.pose(self._body)[0]
        ox, oy, oz = self._offset
        lx, ly, lz = self._look_at
        self._eye = (x + ox, y + oy, z + oz)
        view.set_camera(self._camera, self._eye, (x + lx, y + ly, z + lz))

    def after(self, view: SubstepView) -> None:
        """Follow."""
        x, y, z = view.pose(self._body)[0]
        ox, oy, oz = self._offset
        lx, ly, lz = self._look_at
        k = self._factor
        if k == 1.0:
            self._eye = (x + ox, y + oy, z + oz)
        else:
            ex, ey, ez = self._eye
            self._eye = (
                ex + (x + ox - ex) * k,
                ey + (y + oy - ey) * k,
                ez + (z + oz - ez) * k,
            )
        view.set_camera(self._camera, self._eye, (x + lx, y + ly, z + lz))
