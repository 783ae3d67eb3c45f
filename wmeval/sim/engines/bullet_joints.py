"""Joints for PyBullet.

A body that one joint holds, to the world, is a link of a multibody: it has the joint's own
coordinates, which Bullet integrates exactly on the joint (a pendulum neither stretches nor loses
energy to a constraint solver). Everything else (chains, loops, bodies held to bodies) is made of
constraints, which the solver's iterations keep.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np

from wmeval.conventions import quaternion_conjugate, quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import Body, Collision, Joint, Meshes, Scene
from wmeval.sim.engines.bullet_shapes import BulletShape, make_shape, principal_inertia
from wmeval.sim.protocol import Quat, Vec

LINK = 0
"""Number of the one link of a jointed body."""
_NO_LIMIT = 1e9
_LEVER = 0.05
"""Half the distance [m] between the two points that hold a hinge of constraints."""


@dataclass(frozen=True)
class JointPlan:
    """How the joints of a scene are made.

    Attributes:
        links: joints that hold a body to the world alone, by the body's name.
        constraints: all others.
    """

    links: dict[str, Joint]
    constraints: tuple[Joint, ...]


def plan_joints(scene: Scene) -> JointPlan:
    """Sort the joints of a scene.

    Raises:
        UserError: a joint has something that constraints have not.
    """
    named = Counter(n for j in scene.joints for n in (j.body, j.other) if n)
    links = {j.body: j for j in scene.joints if not j.other and named[j.body] == 1}
    rest = tuple(j for j in scene.joints if links.get(j.body) is not j)
    for joint in rest:
        if joint.armature or joint.damping:
            raise UserError(
                f"joint {joint.name!r}: engine bullet gives armature and damping only to the one "
                "hinge that holds a body to the world"
            )
    for name in links:
        body = scene.bodies[scene.index(name)]
        if body.linear_damping or body.angular_damping or body.upright:
            raise UserError(
                f"body {name!r} hangs on a joint: give the joint the damping, and no upright"
            )
    return JointPlan(links, rest)


def make_link(p: Any, client: int, body: Body, joint: Joint, meshes: Meshes) -> BulletShape:
    """Make a jointed body as the one link of a multibody whose base is the world.

    Returns:
        Its shape; ``index`` is the number of the multibody.

    Raises:
        UserError: shapes that PyBullet has not, or a frame that is not principal.
    """
    turn = np.array(body.quaternion_wxyz)
    back = quaternion_to_matrix(turn).T
    offset = back @ (np.array(body.position) - np.array(joint.pivot))
    axis = back @ np.array(joint.axis)
    axis = axis / float(np.linalg.norm(axis))
    moved = body.model_copy(
        update={"collision": tuple(_moved(part, offset) for part in body.collision)}
    )
    shape = make_shape(p, client, moved, meshes)
    w, x, y, z = body.quaternion_wxyz
    kinds = {"hinge": p.JOINT_REVOLUTE, "ball": p.JOINT_SPHERICAL, "fixed": p.JOINT_FIXED}
    number: int = p.createMultiBody(
        baseMass=0.0,
        baseCollisionShapeIndex=-1,
        basePosition=joint.pivot,
        linkMasses=[body.mass],
        linkCollisionShapeIndices=[shape.index],
        linkVisualShapeIndices=[-1],
        linkPositions=[(0.0, 0.0, 0.0)],
        linkOrientations=[(x, y, z, w)],
        linkInertialFramePositions=[offset.tolist()],
        linkInertialFrameOrientations=[(0.0, 0.0, 0.0, 1.0)],
        linkParentIndices=[0],
        linkJointTypes=[kinds[joint.kind]],
        linkJointAxis=[axis.tolist()],
        physicsClientId=client,
    )
    if number < 0:
        raise UserError(f"body {body.name!r}: PyBullet could not make it; look at its shapes")
    # About a hinge only the inertia along its axis counts, and this adds to it whatever the axis.
    inertia = [value + joint.armature for value in principal_inertia(body, meshes)]
    p.changeDynamics(number, LINK, mass=body.mass, localInertiaDiagonal=inertia,
                     jointDamping=joint.damping, physicsClientId=client)  # fmt: skip
    _let_go(p, client, number, body, joint, axis)
    return BulletShape(number, shape.margin, True)


def _moved(part: Collision, offset: np.ndarray[Any, np.dtype[np.float64]]) -> Collision:
    x, y, z = (np.array(part.position) + offset).tolist()
    return part.model_copy(update={"position": (x, y, z)})


def _let_go(p: Any, client: int, number: int, body: Body, joint: Joint, axis: Any) -> None:
    """Take out the motor that every joint begins with; put the initial velocity."""
    back = quaternion_to_matrix(np.array(body.quaternion_wxyz)).T
    spin = back @ np.array(body.angular_velocity)
    if joint.kind == "hinge":
        p.setJointMotorControl2(
            number, LINK, p.VELOCITY_CONTROL, targetVelocity=0.0, force=0.0, physicsClientId=client
        )
        p.resetJointState(number, LINK, 0.0, float(spin @ axis), physicsClientId=client)
    elif joint.kind == "ball":
        p.setJointMotorControlMultiDof(
            number, LINK, p.POSITION_CONTROL, targetPosition=(0.0, 0.0, 0.0, 1.0),
            force=(0.0, 0.0, 0.0), physicsClientId=client,
        )  # fmt: skip
        p.resetJointStateMultiDof(
            number, LINK, (0.0, 0.0, 0.0, 1.0), spin.tolist(), physicsClientId=client
        )


def make_constraint(
    p: Any, client: int, joint: Joint, one: tuple[int, int, Body], other: tuple[int, int, Body]
) -> None:
    """Hold two bodies together, each (PyBullet number, link, body); the world has number -1."""
    pivot, axis = np.array(joint.pivot), np.array(joint.axis)
    points = [pivot]
    kind = p.JOINT_POINT2POINT
    if joint.kind == "hinge":
        lever = axis * (_LEVER / float(np.linalg.norm(axis)))
        points = [pivot - lever, pivot + lever]
    elif joint.kind == "fixed":
        kind = p.JOINT_FIXED
    for point in points:
        frames = [_frame_of(end, point) for end in (one, other)]
        made: int = p.createConstraint(
            one[0], one[1], other[0], other[1], kind, (0.0, 0.0, 0.0),
            frames[0][0], frames[1][0], frames[0][1], frames[1][1], physicsClientId=client,
        )  # fmt: skip
        p.changeConstraint(made, maxForce=_NO_LIMIT, physicsClientId=client)
    if other[0] >= 0 and not joint.collide:
        p.setCollisionFilterPair(one[0], other[0], one[1], other[1], 0, physicsClientId=client)


def _frame_of(
    end: tuple[int, int, Body], point: np.ndarray[Any, np.dtype[np.float64]]
) -> tuple[Vec, Quat]:
    """A world point, and the world's axes (xyzw), in the frame of a body at t = 0."""
    number, _, body = end
    if number < 0:
        x, y, z = point.tolist()
        return (x, y, z), (0.0, 0.0, 0.0, 1.0)
    turn = np.array(body.quaternion_wxyz)
    x, y, z = (quaternion_to_matrix(turn).T @ (point - np.array(body.position))).tolist()
    qw, qx, qy, qz = quaternion_conjugate(turn).tolist()
    return (x, y, z), (qx, qy, qz, qw)


__all__ = ["LINK", "JointPlan", "make_constraint", "make_link", "plan_joints"]
