"""Bodies of a PyBullet client: how they are made, and where they and their links are read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wmeval.errors import UserError
from wmeval.scene import Body, Meshes, Scene
from wmeval.sim.engines.bullet_joints import LINK, make_constraint, make_link, plan_joints
from wmeval.sim.engines.bullet_options import BodyOptions
from wmeval.sim.engines.bullet_shapes import (
    HULL_MARGIN,
    BulletShape,
    make_shape,
    principal_inertia,
)
from wmeval.sim.protocol import Quat, Vec

_NEVER_TURNS = 1e12
"""Inertia [kg m2] of an upright body: an impulse of 1 kN s at 1 m turns it at 1e-9 rad/s."""

_FASTEST, _FASTEST_TUMBLING = 1e4, 100.0
"""Limit of a multibody's coordinates [m/s, rad/s]; the second is Bullet's own, without which the
explicit gyroscopic torque of a tumbling body lets it spin ever faster."""
_EQUAL = 1.01
"""Ratio of moments of inertia up to which a body has no gyroscopic torque to speak of."""


class BulletBodies:
    """All bodies of a world, with its joints.

    Args:
        p: PyBullet.
        client: its number.
        scene: the world.
        meshes: of it.
        dt: substep [s].
        options: what they are made with.

    Attributes:
        scene, meshes, options: as given.
        numbers: PyBullet's of the scene's bodies; None: the body has no collision geometry or its
            slot is empty, and its state is only data.
        index: scene index of a PyBullet number: in order, 0, 1, 2, ...
        linked: PyBullet numbers of bodies that are links.
        damped: by scene index, factors of linear and angular velocity in a substep.
        read_pose: position and ``xyzw`` quaternion of a number in a client.
        read_velocity: linear and angular velocity likewise.

    Raises:
        UserError: a mesh that is missing, a shape without physics, or joints that cannot be.
    """

    def __init__(
        self, p: Any, client: int, scene: Scene, meshes: Meshes, dt: float, options: BodyOptions
    ) -> None:
        self._p, self._client, self._dt = p, client, dt
        self.scene, self.meshes, self.options = scene, meshes, options
        if (scene.joints or scene.deformables) and options.maximal:
            raise UserError(
                "joints and ropes need generalised coordinates: leave out maximal_coordinates"
            )
        self._joints = plan_joints(scene)
        self.linked: set[int] = set()
        self.read_pose: Callable[[int, int], tuple[Vec, Quat]] = p.getBasePositionAndOrientation
        self.read_velocity: Callable[[int, int], tuple[Vec, Vec]] = p.getBaseVelocity
        if self._joints.links:
            self.read_pose, self.read_velocity = self._any_pose, self._any_velocity
        self.numbers: list[int | None] = []
        self.index: dict[int, int] = {}
        self.damped: dict[int, tuple[float, float]] = {}
        self._inertia: dict[int, Vec] = {}
        for i, body in enumerate(scene.bodies):
            self.numbers.append(self._add(i, body))
        for joint in self._joints.constraints:
            make_constraint(p, client, joint, self._end(joint.body), self._end(joint.other))

    def _add(self, i: int, body: Body) -> int | None:
        p, c = self._p, self._client
        if not body.collision or not body.active:
            if body.motion == "dynamic" and body.active:
                raise UserError(
                    f"body {body.name!r} is dynamic but has no collision shape: add one"
                )
            return None
        if body.name in self._joints.links:
            return self._add_link(i, body)
        number, shape = self._create(body, dynamic=body.motion == "dynamic")
        w, x, y, z = body.quaternion_wxyz
        if body.upright:
            self._inertia[i] = (_NEVER_TURNS, _NEVER_TURNS, _NEVER_TURNS)
        elif body.mass > 0 and (body.inertia is not None or not shape.exact_inertia):
            self._inertia[i] = principal_inertia(body, self.meshes)
        self.index[number] = i
        if body.motion == "dynamic":
            self.set_mass(i, number, body.mass)
            if self.options.maximal:
                # The new inertia takes hold when the pose is put.
                p.resetBasePositionAndOrientation(
                    number, body.position, (x, y, z, w), physicsClientId=c
                )
            p.resetBaseVelocity(
                number, body.linear_velocity, body.angular_velocity, physicsClientId=c
            )
        if (body.linear_damping or body.angular_damping) and not self.options.maximal:
            self.damped[i] = (
                (1.0 - body.linear_damping) ** self._dt,
                (1.0 - body.angular_damping) ** self._dt,
            )
        return number

    def _create(self, body: Body, *, dynamic: bool) -> tuple[int, BulletShape]:
        """Make a free body, with PyBullet's own inertia; its number and its shape."""
        p, c = self._p, self._client
        shape = make_shape(p, c, body, self.meshes)
        w, x, y, z = body.quaternion_wxyz
        number: int = p.createMultiBody(
            baseMass=body.mass if dynamic else 0.0,
            baseCollisionShapeIndex=shape.index,
            basePosition=body.position,
            baseOrientation=(x, y, z, w),
            useMaximalCoordinates=self.options.maximal,
            physicsClientId=c,
        )
        if number < 0:
            raise UserError(f"body {body.name!r}: PyBullet could not make it; look at its shapes")
        self._set_surface(number, -1, body, shape.margin)
        return number, shape

    def make_piece(self, body: Body) -> int:
        """The number of a new dynamic body that the scene does not have."""
        return self._create(body, dynamic=True)[0]

    def _set_surface(self, number: int, link: int, body: Body, margin: float | None) -> None:
        # Damping and speed limit are of a whole multibody: a call with them leaves its links be.
        of_all = {
            "linearDamping": body.linear_damping if self.options.maximal else 0.0,
            "angularDamping": body.angular_damping if self.options.maximal else 0.0,
            "maxJointVelocity": _FASTEST,
        }
        if link != -1:
            self._p.changeDynamics(number, -1, physicsClientId=self._client, **of_all)
        self._p.changeDynamics(
            number,
            link,
            lateralFriction=body.friction,
            restitution=body.restitution,
            rollingFriction=body.rolling_friction,
            spinningFriction=0.0,
            contactProcessingThreshold=self.options.processing_threshold,
            physicsClientId=self._client,
            **(of_all if link == -1 else {}),
        )
        if margin is not None:
            self._p.changeDynamics(
                number,
                link,
                collisionMargin=self.margin(margin),
                physicsClientId=self._client,
            )

    def margin(self, margin: float) -> float:
        """Collision margin [m] of a mesh."""
        return self.options.hull_margin if margin == HULL_MARGIN else margin

    def _add_link(self, i: int, body: Body) -> int:
        joint = self._joints.links[body.name]
        made = make_link(self._p, self._client, body, joint, self.meshes)
        self._set_surface(made.index, LINK, body, made.margin)
        self.linked.add(made.index)
        self.index[made.index] = i
        return made.index

    def _end(self, name: str) -> tuple[int, int, Body]:
        """A body's number and link, for a joint; the world's for no name."""
        if not name:
            return -1, -1, self.scene.bodies[0]
        i = self.scene.index(name)
        return *self.at(i), self.scene.bodies[i]

    def _any_pose(self, number: int, client: int) -> tuple[Vec, Quat]:
        """Position and ``xyzw`` quaternion of a body, jointed or not."""
        if number not in self.linked:
            found: tuple[Vec, Quat] = self._p.getBasePositionAndOrientation(number, client)
            return found
        state = self._p.getLinkState(
            number, LINK, computeForwardKinematics=1, physicsClientId=client
        )
        return state[0], state[1]

    def _any_velocity(self, number: int, client: int) -> tuple[Vec, Vec]:
        """Linear and angular velocity of a body, jointed or not."""
        if number not in self.linked:
            found: tuple[Vec, Vec] = self._p.getBaseVelocity(number, client)
            return found
        state = self._p.getLinkState(
            number, LINK, computeLinkVelocity=1, computeForwardKinematics=1, physicsClientId=client
        )
        return state[6], state[7]

    def read_state(self, number: int, client: int) -> tuple[Vec, Quat, Vec, Vec]:
        """Position, ``xyzw`` quaternion, linear and angular velocity of a body, jointed or not."""
        if number in self.linked:
            state = self._p.getLinkState(
                number, LINK, computeLinkVelocity=1, computeForwardKinematics=1,
                physicsClientId=client,
            )  # fmt: skip
            return state[0], state[1], state[6], state[7]
        position, quaternion = self._p.getBasePositionAndOrientation(number, client)
        linear, angular = self._p.getBaseVelocity(number, client)
        return position, quaternion, linear, angular

    def number(self, body: int) -> int:
        """The PyBullet number of a body.

        Raises:
            UserError: it has none.
        """
        number = self.numbers[body]
        if number is None:
            raise UserError(
                f"body {self.scene.bodies[body].name!r} has no physics (no collision shape, or an "
                "empty slot): a driver cannot use it"
            )
        return number

    def at(self, body: int) -> tuple[int, int]:
        """The PyBullet number and link of a body.

        Raises:
            UserError: it has none.
        """
        number = self.number(body)
        return number, LINK if number in self.linked else -1

    def free(self, body: int, verb: str) -> int:
        """The PyBullet number of a body that no joint holds to the world.

        Raises:
            UserError: one does.
        """
        number = self.number(body)
        if number in self.linked:
            raise UserError(
                f"body {self.scene.bodies[body].name!r} is held to the world by a joint: engine "
                f"bullet cannot {verb} it"
            )
        return number

    def set_mass(self, i: int, number: int, mass: float) -> None:
        """Give a body a mass [kg], 0 to hold it, with its own inertia."""
        p, c = self._p, self._client
        inertia = self._inertia.get(i)
        extra: dict[str, Any] = {"localInertiaDiagonal": inertia} if inertia and mass > 0 else {}
        p.changeDynamics(number, -1, mass=mass, physicsClientId=c, **extra)
        if mass > 0 and not self.options.maximal:
            moments = p.getDynamicsInfo(number, -1, physicsClientId=c)[2]
            if max(moments) > _EQUAL * min(moments):
                p.changeDynamics(number, -1, maxJointVelocity=_FASTEST_TUMBLING, physicsClientId=c)
