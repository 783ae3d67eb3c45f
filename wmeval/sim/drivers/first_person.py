"""A walker seen through its own eyes."""

from __future__ import annotations

import math

from pydantic import Field

from wmeval.errors import UserError
from wmeval.scene import Capsule, Card, Cylinder, Scene, Sphere
from wmeval.sim.drivers.footprints import Court, outlines
from wmeval.sim.drivers.names import body_index, camera_index
from wmeval.sim.protocol import Driver, SubstepView

LOOK_AHEAD = 10.0


class FirstPerson(Driver):
    """An upright capsule on level ground, after Unity's StarterAssets first-person controller.

    Actions strafe, forward, yaw, pitch. Strafe and forward, together no more than 1, times
    ``speed`` is the wanted velocity in the body's own axes; the velocity follows it by
    ``1 - exp(-rate dt)`` each substep (the controller's ``Lerp(v, wanted, rate dt)``, whatever the
    step). Yaw 1 turns to the right and pitch 1 looks down (a positive turn about Unity's y and x
    axes), at constant rates; the pitch is clamped. The capsule slides along static obstacles that
    are higher than a step (`footprints`), and is pushed aside by ``movers``. Its state is the
    body's pose; its velocity is what it really covered in the substep, as Unity's
    ``CharacterController.velocity``. The pitch is the modal state ``pitch`` [rad], downwards.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            body: name of the kinematic body; its origin is the capsule's middle, its +y ahead.
            camera: name of the camera at its eyes.
            movers: names of bodies with a round collision shape that push it aside.
            actions: indices of strafe, forward, yaw and pitch in the action.
            speed: at full action [m/s].
            rate: at which the velocity follows [1/s].
            yaw_deg, pitch_deg: turning speeds at full action [deg/s].
            pitch_limit_deg: steepest view up or down [deg].
            radius, height: of the capsule [m].
            eye: height of the eyes above the ground [m].
            step: obstacles up to this height [m] do not stop it.
        """

        body: str
        camera: str
        movers: tuple[str, ...] = ()
        actions: tuple[int, int, int, int] = (0, 1, 2, 3)
        speed: float = Field(default=4.0, gt=0)
        rate: float = Field(default=10.0, gt=0)
        yaw_deg: float = Field(default=90.0, gt=0)
        pitch_deg: float = Field(default=60.0, gt=0)
        pitch_limit_deg: float = Field(default=80.0, gt=0, lt=90)
        radius: float = Field(default=0.5, gt=0)
        height: float = Field(default=2.0, gt=0)
        eye: float = Field(default=1.375, gt=0)
        step: float = Field(default=0.25, ge=0)

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0, as the scene puts the body, looking level.

        Raises:
            UserError: the body begins inside an obstacle, or a mover is not round.
        """
        p = self._params
        self._body = body_index(scene, p.body, "first_person")
        self._camera = camera_index(scene, p.camera, "first_person")
        self._movers = [(i, _round(scene, i)) for i in (
            body_index(scene, name, "first_person") for name in p.movers
        )]  # fmt: skip
        body = scene.bodies[self._body]
        foot = body.position[2] - p.height / 2
        walls = outlines(scene, foot + p.step, foot + p.height, (self._body,))
        self._court = Court(walls, p.radius)
        x, y, self._z = body.position
        if self._court.clear(x, y) < -1e-6:
            raise UserError(f"driver 'first_person': {p.body!r} begins inside an obstacle")
        w, _, _, k = body.quaternion_wxyz
        self._x, self._y, self._heading, self._pitch = x, y, 2 * math.atan2(k, w), 0.0
        self._vx = self._vy = 0.0
        self._follow = -math.expm1(-p.rate * view.dt)
        self._turn = math.radians(p.yaw_deg) * view.dt
        self._tilt = math.radians(p.pitch_deg) * view.dt
        self._limit = math.radians(p.pitch_limit_deg)
        self._rise = foot + p.eye
        view.set_modal("pitch", (0.0,))
        self._look(view)

    def after(self, view: SubstepView) -> None:
        """One substep of turning and walking."""
        p = self._params
        a = view.action
        strafe, ahead, yaw, pitch = (float(a[i]) for i in p.actions)
        if yaw:
            self._heading = math.remainder(self._heading - yaw * self._turn, math.tau)
        if pitch:
            wanted = self._pitch + pitch * self._tilt
            self._pitch = min(max(wanted, -self._limit), self._limit)
            view.set_modal("pitch", (self._pitch,))
        full = strafe * strafe + ahead * ahead
        reach = p.speed / math.sqrt(full) if full > 1.0 else p.speed
        c, s = math.cos(self._heading), math.sin(self._heading)
        # Right is (cos, sin) of the heading, ahead is (-sin, cos).
        vx = self._vx + self._follow * (reach * (strafe * c - ahead * s) - self._vx)
        vy = self._vy + self._follow * (reach * (strafe * s + ahead * c) - self._vy)
        movers = [(*view.pose(i)[0][:2], r) for i, r in self._movers]
        dt = view.dt
        x, y = self._court.settle(self._x + vx * dt, self._y + vy * dt, movers)
        # What the obstacles took is gone: the controller goes on from what it really covered.
        self._vx, self._vy = (x - self._x) / dt, (y - self._y) / dt
        self._x, self._y = x, y
        half = 0.5 * self._heading
        view.set_state(
            self._body,
            (x, y, self._z),
            (math.cos(half), 0.0, 0.0, math.sin(half)),
            (self._vx, self._vy, 0.0),
            (0.0, 0.0, -yaw * self._turn / dt),
        )
        self._look(view)

    def _look(self, view: SubstepView) -> None:
        flat, down = math.cos(self._pitch), math.sin(self._pitch)
        x, y, z = self._x, self._y, self._rise
        ahead = LOOK_AHEAD * flat
        view.set_camera(
            self._camera,
            (x, y, z),
            (
                x - ahead * math.sin(self._heading),
                y + ahead * math.cos(self._heading),
                z - LOOK_AHEAD * down,
            ),
        )


def _round(scene: Scene, index: int) -> float:
    for collision in scene.bodies[index].collision:
        if isinstance(collision.shape, Capsule | Cylinder | Sphere):
            return collision.shape.radius
    raise UserError(
        f"driver 'first_person': mover {scene.bodies[index].name!r} needs a collision shape that "
        "is round: a cylinder, a capsule or a sphere"
    )
