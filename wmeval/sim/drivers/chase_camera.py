"""A chase camera that answers to speed, and a camera that is mounted on a body."""

from __future__ import annotations

import math

from pydantic import Field

from wmeval.scene import Card, Scene, Vec3
from wmeval.sim.drivers.names import body_index, camera_index
from wmeval.sim.protocol import Driver, SubstepView
from wmeval.vectors import axes


class ChaseCamera(Driver):
    """Behind a body that faces +y of its own frame; further back, and wider, the faster it is.

    With ``s`` the horizontal speed over ``full_speed``, at most 1 and smoothed, the eye is
    ``distance + pull_back s`` behind the body and ``height`` above it, looks at a point ``ahead +
    shift s`` before it, and its vertical field of view goes from ``fov_deg[0]`` to ``fov_deg[1]``.
    Heading and s follow the body by ``1 - exp(-rate dt)`` per substep.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            camera: name of the camera.
            body: name of the followed body.
            distance: of the eye behind the body at rest [m].
            pull_back: additional distance at full speed [m].
            height: of the eye over the body [m].
            ahead: of the body to the looked-at point at rest [m].
            shift: additional at full speed [m].
            look_height: of the looked-at point over the body [m].
            fov_deg: vertical field of view at rest and at full speed [deg].
            full_speed: [m/s].
            heading_rate: [1/s].
            speed_rate: [1/s].
        """

        camera: str
        body: str
        distance: float = Field(gt=0)
        pull_back: float = Field(default=3.0, ge=0)
        height: float
        ahead: float = 0.0
        shift: float = Field(default=0.0, ge=0)
        look_height: float = 0.0
        fov_deg: tuple[float, float] = (65.0, 80.0)
        full_speed: float = Field(gt=0)
        heading_rate: float = Field(default=6.0, gt=0)
        speed_rate: float = Field(default=2.5, gt=0)

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0, at rest behind the body."""
        p = self._params
        self._body = body_index(scene, p.body, "chase_camera")
        self._camera = camera_index(scene, p.camera, "chase_camera")
        self._turn = -math.expm1(-p.heading_rate * view.dt)
        self._gain = -math.expm1(-p.speed_rate * view.dt)
        self._fov = math.radians(p.fov_deg[0]), math.radians(p.fov_deg[1])
        self._heading = (0.0, 1.0)
        self._heading = self._faces(view)
        self._share = self._wanted(view)
        self._put(view)

    def after(self, view: SubstepView) -> None:
        """Follow."""
        self._share += (self._wanted(view) - self._share) * self._gain
        (hx, hy), (x, y) = self._heading, self._faces(view)
        hx, hy = hx + (x - hx) * self._turn, hy + (y - hy) * self._turn
        length = math.sqrt(hx * hx + hy * hy)
        # Only a body that has turned right round between two substeps leaves no heading.
        self._heading = (hx / length, hy / length) if length > 1e-6 else (x, y)
        self._put(view)

    def _faces(self, view: SubstepView) -> tuple[float, float]:
        """Horizontal direction in which the body faces; upended, as it faced last."""
        _, (fx, fy, _), _ = axes(view.pose(self._body)[1])
        length = math.sqrt(fx * fx + fy * fy)
        return (fx / length, fy / length) if length > 0.05 else self._heading

    def _wanted(self, view: SubstepView) -> float:
        vx, vy, _ = view.velocity(self._body)[0]
        return min(math.sqrt(vx * vx + vy * vy) / self._params.full_speed, 1.0)

    def _put(self, view: SubstepView) -> None:
        p, s, (hx, hy) = self._params, self._share, self._heading
        x, y, z = view.pose(self._body)[0]
        back, ahead = p.distance + p.pull_back * s, p.ahead + p.shift * s
        view.set_camera(
            self._camera,
            (x - back * hx, y - back * hy, z + p.height),
            (x + ahead * hx, y + ahead * hy, z + p.look_height),
            self._fov[0] + (self._fov[1] - self._fov[0]) * s,
        )


class MountedCamera(Driver):
    """A camera whose eye and looked-at point are fixed in a body's frame; it stays upright."""

    class Params(Card):
        """Parameters.

        Attributes:
            camera: name of the camera.
            body: name of the body.
            eye: in the body's frame [m].
            target: looked-at point in the body's frame [m].
        """

        camera: str
        body: str
        eye: Vec3
        target: Vec3

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0."""
        self._body = body_index(scene, self._params.body, "mounted_camera")
        self._camera = camera_index(scene, self._params.camera, "mounted_camera")

    def show(self, view: SubstepView) -> None:
        """Put the camera where the body has it."""
        (px, py, pz), (w, x, y, z) = view.pose(self._body)

        def world(v: Vec3) -> Vec3:
            a, b, c = v
            # v + 2 w (q x v) + 2 q x (q x v)
            i, j, k = y * c - z * b, z * a - x * c, x * b - y * a
            return (
                px + a + 2 * (w * i + y * k - z * j),
                py + b + 2 * (w * j + z * i - x * k),
                pz + c + 2 * (w * k + x * j - y * i),
            )

        eye, target = world(self._params.eye), world(self._params.target)
        across = math.hypot(target[0] - eye[0], target[1] - eye[1])
        if across > 1e-6 * math.dist(eye, target):  # a fallen body may look straight up or down
            view.set_camera(self._camera, eye, target)
