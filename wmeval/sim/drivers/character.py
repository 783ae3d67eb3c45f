"""A figure that walks, sprints and jumps where the action says."""

from __future__ import annotations

import math

from pydantic import Field

from wmeval.errors import UserError
from wmeval.scene import Box, Capsule, Card, Cylinder, Modal, Scene, Sphere
from wmeval.sim.drivers.names import body_index
from wmeval.sim.protocol import Driver, SubstepView

SUPPORT = 0.7
"""Upward part of a contact's normal from which it supports: slopes up to 45 degrees."""

SETTLED_RAD, SETTLED_RAD_S = 1e-4, 1e-3


class Character(Driver):
    """An upright dynamic body whose horizontal velocity follows the action.

    The axes are the world's, whatever the figure or a camera faces: the first move channel is
    Unity's X (world +x), the second Unity's Z (world +y), as the paper gives ChessBoard's actions.

    A force through the centre of mass brings the horizontal velocity to ``speed`` times the move
    vector (at most 1 long), with at most ``acceleration`` times the grip. The grip is a pair's
    friction, the product of the sole's and of what it stands on. The body meets obstacles with that
    force and no more. Give it friction 0 of its own: then it slides along what it meets.

    The figure faces the way it is told to move, by a critically damped turn. A press of the jump
    channel (a rise above 1/2) while grounded gives it the vertical speed ``jump_speed``, in one
    substep; from then on it is a body in free flight with a little steering. Its apex is
    ``jump_speed^2 / (2 g)`` above the take-off.

    Modal state ``<modal>`` (1): 1 while grounded, else 0. Grounded means that a contact of the
    substep just done supports the body: it pushes, with a normal at most 45 degrees off the
    vertical.
    """

    class Params(Card):
        """Parameters.

        Attributes:
            body: name of an upright dynamic body that faces +y of its own frame.
            modal: name of the modal state.
            move: channels of movement along world x and y.
            jump: channel of the jump; None: it cannot.
            sprint: channel of the sprint; None: it cannot.
            walk_speed, sprint_speed: [m/s].
            acceleration: on the ground, with a grip of 1 [m/s2].
            air_acceleration: in flight [m/s2].
            jump_speed: at take-off [m/s].
            sole: name of the body whose friction is the sole's, a shown foot; None: it is 1.
            mass: of the body [kg] that the accelerations and the take-off are said of: a heavier
                one gets the same forces. None: of any.
            turn_time: a turn has mostly happened after about twice this [s].
        """

        body: str
        modal: str = "grounded"
        move: tuple[int, int] = (0, 1)
        jump: int | None = 2
        sprint: int | None = 3
        walk_speed: float = Field(default=2.0, gt=0)
        sprint_speed: float = Field(default=5.0, gt=0)
        acceleration: float = Field(default=9.0, gt=0)
        air_acceleration: float = Field(default=2.5, ge=0)
        jump_speed: float = Field(default=4.43, ge=0)
        sole: str | None = None
        mass: float | None = Field(default=None, gt=0)
        turn_time: float = Field(default=0.18, gt=0)

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0; grounded if something lies within 2 cm below."""
        p = self._params
        self._body = body_index(scene, p.body, "character")
        body = scene.bodies[self._body]
        if body.motion != "dynamic" or not body.upright:
            raise UserError(
                f"driver 'character': body {p.body!r} must be dynamic and upright (Body.upright)"
            )
        self._mass = body.mass
        strength = 1.0 if p.mass is None else p.mass / body.mass
        self._ground, self._air = p.acceleration * strength, p.air_acceleration * strength
        self._jump = p.jump_speed * strength
        gx, gy, gz = scene.gravity
        if gx or gy or gz > 0:
            raise UserError(f"driver 'character' knows gravity along -z only, not {scene.gravity}")
        self._gravity = -gz
        (x, y, z), (w, i, j, k) = view.pose(self._body)
        self._yaw = math.atan2(2 * (w * k + i * j), 1 - 2 * (j * j + k * k))
        self._rate, self._wanted = 0.0, self._yaw
        self._turning = False
        self._held = False
        omega = 2.0 / p.turn_time
        self._omega, self._fade = omega, math.exp(-omega * view.dt)
        reach = body_reach(scene, self._body) + 0.02
        below = view.raycast((x, y, z), (x, y, z - reach), ignore=(self._body,))
        self._grounded = below is not None and below.normal[2] >= SUPPORT
        rubber = 1.0
        if p.sole is not None:
            rubber = scene.bodies[body_index(scene, p.sole, "character")].friction
        self._grips = [rubber * b.friction for b in scene.bodies]
        self._grip = self._grips[below.body] if below is not None else rubber
        view.set_modal(p.modal, (1.0 if self._grounded else 0.0,))

    def before(self, view: SubstepView) -> None:
        """Turn, and push."""
        p, body, dt, action = self._params, self._body, view.dt, view.action
        mx, my = action[p.move[0]], action[p.move[1]]
        size = math.sqrt(mx * mx + my * my)
        if size > 0.05:
            wanted = math.atan2(-mx, my)
            if wanted != self._wanted:
                self._wanted, self._turning = wanted, True
        if self._turning:
            self._turn(view)
        (vx, vy, _), _ = view.velocity(body)
        sprints = p.sprint is not None and action[p.sprint] > 0.5
        speed = p.sprint_speed if sprints else p.walk_speed
        if size > 1.0:
            speed /= size
        ax, ay = (mx * speed - vx) / dt, (my * speed - vy) / dt
        limit = self._ground * self._grip if self._grounded else self._air
        asked = math.sqrt(ax * ax + ay * ay)
        if not self._grounded and size <= 0.05:
            limit = 0.0  # nothing to brake against
        if asked > limit:
            ax, ay = ax * limit / asked, ay * limit / asked
        az = 0.0
        pressed = p.jump is not None and action[p.jump] > 0.5
        if pressed and not self._held and self._grounded:
            # Half of this substep's gravity is given back: the discrete flight then rises exactly
            # as high as the continuous one.
            az = self._jump / dt + 0.5 * self._gravity
        self._held = pressed
        if ax or ay or az:
            m = self._mass
            view.apply_force(body, (m * ax, m * ay, m * az))

    def after(self, view: SubstepView) -> None:
        """See whether something supports it."""
        grounded = False
        for contact in view.contacts(self._body):
            if contact.normal[2] >= SUPPORT:
                grounded = True
                self._grip = self._grips[contact.body_b]
                break
        if grounded is not self._grounded:
            self._grounded = grounded
            view.set_modal(self._params.modal, (1.0 if grounded else 0.0,))

    def _turn(self, view: SubstepView) -> None:
        """One substep of a critically damped turn to the wanted heading."""
        yaw, dt = self._yaw, view.dt
        error = math.remainder(yaw - self._wanted, 2 * math.pi)
        if abs(error) < SETTLED_RAD and abs(self._rate) < SETTLED_RAD_S:
            ahead, self._rate, self._yaw = 0.0, 0.0, self._wanted
            self._turning = error != 0.0
        else:
            k = self._rate + self._omega * error
            ahead = (error + k * dt) * self._fade
            self._rate = (self._rate - self._omega * k * dt) * self._fade
            self._yaw = math.remainder(yaw + ahead - error, 2 * math.pi)
        # The engine turns the body by this rate, so that it gets to where the turn leads.
        spin = (ahead - error) / dt
        position, _ = view.pose(self._body)
        linear, _ = view.velocity(self._body)
        turned = (math.cos(yaw / 2), 0.0, 0.0, math.sin(yaw / 2))
        view.set_state(self._body, position, turned, linear, (0.0, 0.0, spin))


def grounded_modal(name: str = "grounded") -> Modal:
    """The modal state that a scene with this driver declares."""
    return Modal(name=name, size=1, doc="1 while a contact supports the figure, else 0")


def body_reach(scene: Scene, body: int) -> float:
    """How far [m] a body's capsule or other shape reaches below its centre of mass."""
    reach = 0.0
    for part in scene.bodies[body].collision:
        shape = part.shape
        if isinstance(shape, Sphere):
            half = shape.radius
        elif isinstance(shape, Box):
            half = shape.half_extents[2]
        elif isinstance(shape, Capsule | Cylinder):
            half = shape.height / 2
        else:
            raise UserError(
                f"body {scene.bodies[body].name!r}: a figure stands on a capsule, not on a mesh"
            )
        reach = max(reach, half - part.position[2])
    return reach
