"""Joints of PhysX: one six-axis constraint each, of which some axes are free."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_conjugate, quaternion_multiply, quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import Body, Joint, Scene


def add_joint(sapien: Any, scene: Scene, joint: Joint, parts: Mapping[int, Any]) -> None:
    """Make a joint.

    Args:
        sapien: the library.
        scene: the world.
        joint: of it.
        parts: components of the scene's bodies, by index.

    Raises:
        UserError: armature between two bodies, or bodies that are joined and collide.
    """
    bodies = {name: scene.index(name) for name in (joint.body, joint.other) if name}
    body = parts[bodies[joint.body]]
    other = parts[bodies[joint.other]] if joint.other else None
    drive = sapien.physx.PhysxDriveComponent(body)
    drive.set_parent(other)
    hinge = joint.kind == "hinge"
    turn = _turn_to_x(np.array(joint.axis)) if hinge else np.array((1.0, 0.0, 0.0, 0.0))
    drive.set_pose_in_child(_frame(sapien, scene.bodies[bodies[joint.body]], joint, turn))
    held = scene.bodies[bodies[joint.other]] if joint.other else None
    drive.set_pose_in_parent(_frame(sapien, held, joint, turn))
    for limit in (drive.set_limit_x, drive.set_limit_y, drive.set_limit_z):
        limit(0.0, 0.0)
    if joint.kind != "ball":
        drive.set_limit_cone(0.0, 0.0)
    if joint.kind == "fixed":
        drive.set_limit_twist(0.0, 0.0)
    if joint.damping:
        drive.set_drive_property_twist(0.0, joint.damping)
    if joint.other and (joint.armature or joint.collide):
        raise UserError(
            f"joint {joint.name!r}: engine physx gives armature only to hinges of the world, "
            "and what it joins does not collide"
        )
    body.entity.add_component(drive)


def _frame(sapien: Any, body: Body | None, joint: Joint, turn: NDArray[np.float64]) -> Any:
    """The joint in a body's own frame, or the world's."""
    if body is None:
        place, own = np.array(joint.pivot), turn
    else:
        back = np.array(body.quaternion_wxyz)
        place = quaternion_to_matrix(back).T @ (np.array(joint.pivot) - np.array(body.position))
        own = quaternion_multiply(quaternion_conjugate(back), turn)
    return sapien.Pose(place.astype(np.float32), own.astype(np.float32))


def _turn_to_x(axis: NDArray[np.float64]) -> NDArray[np.float64]:
    """A rotation (wxyz) that takes the x axis to ``axis``."""
    x, y, z = (axis / np.linalg.norm(axis)).tolist()
    if x < -1.0 + 1e-9:
        return np.array((0.0, 0.0, 0.0, 1.0))
    turn = np.array((1.0 + x, 0.0, -z, y))
    return np.asarray(turn / np.linalg.norm(turn))
