"""Rigid bodies, their joints and shapes, for Newton's builder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_conjugate, quaternion_multiply, quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import DYNAMIC, Body, Box, Capsule, Collision, Joint, Mesh, Meshes, Scene, Sphere
from wmeval.sim.engines.bullet_shapes import centred_inertia
from wmeval.sim.engines.joint_tree import joint_tree
from wmeval.sim.engines.pairs import Rule, own_values
from wmeval.sim.protocol import Quat, Vec

Solver = Literal["mujoco", "xpbd", "vbd", "mpm"]
FRICTION: dict[str, Rule] = {
    "mujoco": "max", "xpbd": "mean", "vbd": "geometric", "mpm": "geometric"
}  # fmt: skip
_NO_RESTITUTION = 1e-3


@dataclass
class Making:
    """A scene on its way into Newton's builder.

    Attributes:
        newton, warp: the modules.
        builder: what is filled.
        scene, meshes: what is made.
        motion: of every body now (`wmeval.scene.DYNAMIC` and so on).
        dt: substep [s].
        solver: that will move it.
        numbers: the engine's options.
        restitution: whether contacts have it.
        links: scene index of a body to Newton's number.
    """

    newton: Any
    warp: Any
    builder: Any
    scene: Scene
    meshes: Meshes
    motion: Sequence[int]
    dt: float
    solver: Solver
    numbers: Mapping[str, float]
    restitution: bool
    links: dict[int, int] = field(default_factory=dict)

    def transform(self, position: Vec, quaternion: Quat = (1.0, 0.0, 0.0, 0.0)) -> Any:
        """Newton's word for a pose."""
        w, x, y, z = quaternion
        return self.warp.transform(self.warp.vec3(*position), self.warp.quat(x, y, z, w))

    def local(self, position: Vec, turn: NDArray[np.float64], pivot: Vec) -> Any:
        """The world's axes at a point, in the frame of a body."""
        at = quaternion_to_matrix(turn).T @ (np.array(pivot) - np.array(position))
        w, x, y, z = quaternion_conjugate(turn).tolist()
        return self.transform(tuple(at.tolist()), (w, x, y, z))


def add_bodies(making: Making) -> None:
    """All bodies, parents first, in articulations.

    Raises:
        UserError: a body or joint that Newton has no physics for.
    """
    scene = making.scene
    friction = own_values(scene, "friction", FRICTION[making.solver], 1e6)
    rule: Rule = "min" if making.solver == "mujoco" else "mean"
    restitution = dict.fromkeys(friction, 0.0)
    if making.restitution:
        restitution = own_values(scene, "restitution", rule, 1.0)
    holding = {pin.body for d in scene.deformables for pin in d.pins}
    chains: dict[str, list[int]] = {}  # joints of what a body hangs on and itself
    articulations: list[list[int]] = []
    joints = joint_tree(scene, "newton")
    for i in joints.order:
        body, joint = scene.bodies[i], joints.held.get(i)
        number = _add(making, i, joint, chains, articulations)
        for part in body.collision:
            _shape(making, number, body, part, friction[i], restitution[i],
                   touches=body.name not in holding)  # fmt: skip
    for chain in articulations:
        making.builder.add_articulation(chain)


def _add(
    making: Making,
    i: int,
    joint: Joint | None,
    chains: dict[str, list[int]],
    articulations: list[list[int]],
) -> int:
    """Newton's number of a body; -1 for what is part of the world."""
    body = making.scene.bodies[i]
    if body.rolling_friction or body.upright:
        raise UserError(
            f"body {body.name!r}: engine newton has no rolling_friction and no upright: run it "
            "with bullet"
        )
    if body.motion == "static" and body.mass <= 0:
        return -1
    inertia = centred_inertia(body, making.meshes) if body.mass > 0 else np.eye(3)
    place = making.transform(body.position, body.quaternion_wxyz)
    number: int = making.builder.add_link(
        xform=place,
        mass=body.mass if body.mass > 0 else 1.0,
        inertia=making.warp.mat33(*inertia.ravel().tolist()),
        lock_inertia=True,
        is_kinematic=making.motion[i] != DYNAMIC,
        label=body.name,
    )
    making.links[i] = number
    made = _joint(making, body, number, place, joint)
    chain = chains.get(joint.other, []) if joint is not None else []
    if not chain:
        articulations.append(chain)
    chain.append(made)
    chains[body.name] = chain
    return number


def _joint(making: Making, body: Body, number: int, place: Any, joint: Joint | None) -> int:
    """Newton wants a joint for every body, in an articulation, parents first."""
    builder = making.builder
    made: int
    if joint is None:
        made = builder.add_joint_free(number, parent_xform=making.transform((0, 0, 0)))
        builder.joint_q[-7:] = [*place]
        return made
    turn = np.array(body.quaternion_wxyz)
    parent, frame = -1, making.transform(joint.pivot)
    if joint.other:
        k = making.scene.index(joint.other)
        parent = making.links.get(k, -1)
        other = making.scene.bodies[k]
        frame = making.local(other.position, np.array(other.quaternion_wxyz), joint.pivot)
    frames = {
        "parent_xform": frame,
        "child_xform": making.local(body.position, turn, joint.pivot),
        "collision_filter_parent": not joint.collide,
    }
    if joint.kind == "hinge":
        axis = np.array(joint.axis) / float(np.linalg.norm(joint.axis))
        made = builder.add_joint_revolute(
            parent, number, axis=making.warp.vec3(*axis.tolist()), armature=joint.armature,
            damping=joint.damping, friction=0.0, **frames,
        )  # fmt: skip
    elif joint.kind == "ball":
        made = builder.add_joint_ball(
            parent, number, armature=0.0, friction=0.0, damping=0.0, **frames
        )
    else:
        made = builder.add_joint_fixed(parent, number, **frames)
    return made


def _shape(
    making: Making,
    number: int,
    body: Body,
    part: Collision,
    friction: float,
    restitution: float,
    *,
    touches: bool,
) -> None:
    """One collision shape; ``touches``: also what is made of particles."""
    shape, builder = part.shape, making.builder
    place = making.transform(part.position, part.quaternion_wxyz)
    if number < 0:
        turn = np.array(body.quaternion_wxyz)
        at = np.array(body.position) + quaternion_to_matrix(turn) @ np.array(part.position)
        w, x, y, z = quaternion_multiply(turn, np.array(part.quaternion_wxyz)).tolist()
        place = making.transform(tuple(at.tolist()), (w, x, y, z))
    config = builder.ShapeConfig(
        density=0.0, mu=friction, restitution=restitution, mu_torsional=0.0, mu_rolling=0.0,
        has_particle_collision=touches,
    )  # fmt: skip
    if making.solver == "vbd":
        config.ke = making.numbers["body_contact_stiffness"]
    extra: dict[str, Any] = {"xform": place, "cfg": config}
    if making.solver == "mujoco" and making.restitution:
        period = 0.5 * making.numbers["contact_stiffness"] * making.dt
        extra["custom_attributes"] = {
            "mujoco:solref": making.warp.vec2(*solref(restitution, period)),
            "mujoco:solref_mode": 1,
        }
    if isinstance(shape, Sphere):
        builder.add_shape_sphere(number, radius=shape.radius, **extra)
    elif isinstance(shape, Box):
        hx, hy, hz = shape.half_extents
        builder.add_shape_box(number, hx=hx, hy=hy, hz=hz, **extra)
    elif isinstance(shape, Mesh):
        mesh = _mesh(making, body, shape)
        extra.pop("custom_attributes", None)
        add = builder.add_shape_convex_hull if shape.convex else builder.add_shape_mesh
        add(number, mesh=mesh, **extra)
    elif isinstance(shape, Capsule):
        half = shape.height / 2 - shape.radius
        builder.add_shape_capsule(number, radius=shape.radius, half_height=half, **extra)
    else:
        builder.add_shape_cylinder(
            number, radius=shape.radius, half_height=shape.height / 2, **extra
        )


def _mesh(making: Making, body: Body, shape: Mesh) -> Any:
    if shape.sha256 not in making.meshes:
        raise UserError(f"body {body.name!r}: mesh {shape.sha256[:12]}... is not among the meshes")
    mesh = making.meshes[shape.sha256]
    return making.newton.Mesh(
        mesh.vertices.copy(), mesh.triangles.astype(np.int32).ravel(), compute_inertia=False
    )


def solref(restitution: float, half_period: float) -> tuple[float, float]:
    """Stiffness and damping per mass of MuJoCo's contact, negative: as it marks raw values.

    Args:
        restitution: speed after over speed before.
        half_period: of the undamped contact [s].
    """
    omega = math.pi / half_period
    log = -math.log(max(restitution, _NO_RESTITUTION))
    return -(omega**2), -2.0 * omega * log / math.hypot(math.pi, log)
