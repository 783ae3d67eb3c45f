"""What bends, for Newton's builder: cloth, solids of tetrahedra, ropes; and what holds it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_mapping import NewtonTextile, newton_textile
from wmeval.conventions import quaternion_to_matrix
from wmeval.deformables import RestShape, mean_edge, rest_shape
from wmeval.errors import UserError
from wmeval.scene import DYNAMIC, Cloth, Deformable, Rope, Scene, Soft
from wmeval.sim.engines.newton_bodies import Making
from wmeval.sim.engines.pins import Pinned, pinned_vertices
from wmeval.sim.protocol import Vec

F8 = NDArray[np.float64]
_SOLID_RADIUS = 1e-5
"""Of the particles of a solid's surface [m]: its skin."""


@dataclass
class Bent:
    """Where everything that bends is among particles and bodies.

    Attributes:
        ranges: first and last particle of a cloth or solid, by name.
        ropes: bodies and segment lengths [m] of a rope, by name.
        pins: particles (n,) that are led, and where to.
    """

    ranges: dict[str, tuple[int, int]] = field(default_factory=dict)
    ropes: dict[str, tuple[list[int], F8]] = field(default_factory=dict)
    pins: list[tuple[NDArray[np.intp], Pinned]] = field(default_factory=list)


def check_bent(scene: Scene, solver: str) -> None:
    """Whether a solver that knows no attachments can move what bends.

    Args:
        scene: the world.
        solver: as messages call it.

    Raises:
        UserError: a rope, or a pin to a dynamic body.
    """
    for item in scene.deformables:
        held = {pin.body for pin in item.pins if pin.body}
        pulled = next((b.name for b in scene.bodies
                       if b.name in held and b.motion == "dynamic"), None)  # fmt: skip
        if isinstance(item, Rope) or pulled is not None:
            what = "" if isinstance(item, Rope) else f" is pinned to the dynamic body {pulled!r}"
            lacks = "ropes" if isinstance(item, Rope) else "such pins"
            raise UserError(
                f"{item.kind} {item.name!r}{what}: newton's solver {solver} has no {lacks}: leave "
                "solver out, or vbd"
            )


def add_deformables(making: Making) -> Bent:
    """All that bends, and its pins."""
    bent = Bent()
    for item in making.scene.deformables:
        rest = rest_shape(item, making.meshes)
        if isinstance(item, Rope):
            _add_rope(making, bent, item, rest.vertices)
            continue
        first = making.builder.particle_count
        _add_particles(making, item, rest)
        bent.ranges[item.name] = (first, making.builder.particle_count)
        for pin in pinned_vertices(making.scene, item, rest.vertices):
            _pin(making, bent, pin, first)
    return bent


def _add_particles(making: Making, item: Deformable, rest: RestShape) -> None:
    warp, builder = making.warp, making.builder
    common: dict[str, Any] = {
        "pos": warp.vec3(0.0, 0.0, 0.0),
        "rot": warp.quat_identity(),
        "scale": 1.0,
        "vel": warp.vec3(*item.linear_velocity),
        "vertices": [warp.vec3(*v) for v in rest.vertices.tolist()],
    }
    if isinstance(item, Cloth):
        stiff = textile(item, rest, making.numbers)
        builder.add_cloth_mesh(
            **common, indices=rest.triangles.ravel().tolist(), density=item.areal_density,
            tri_ke=stiff["tri_ke"], tri_ka=stiff["tri_ka"], edge_ke=stiff["edge_ke"],
            tri_kd=item.damping * stiff["tri_ke"], edge_kd=item.damping * stiff["edge_ke"],
            particle_radius=item.thickness / 2,
        )  # fmt: skip
    elif isinstance(item, Soft):
        young, nu = item.youngs_modulus, item.poisson_ratio
        builder.add_soft_mesh(
            **common, indices=rest.tetrahedra.ravel().tolist(), density=item.density,
            k_mu=young / (2 * (1 + nu)), k_lambda=young * nu / ((1 + nu) * (1 - 2 * nu)),
            k_damp=item.damping * young, add_surface_mesh_edges=False,
            particle_radius=_SOLID_RADIUS,
        )  # fmt: skip


def mapped(item: Cloth, rest: RestShape) -> NewtonTextile:
    """A cloth's numbers by GAUGE's mapping."""
    return newton_textile(
        stretch=item.stretch,
        shear=item.shear,
        hinge=max(item.bending, 1e-12),
        edge_length=mean_edge(rest),
    )


def textile(item: Cloth, rest: RestShape, numbers: Mapping[str, float]) -> dict[str, float]:
    """Newton's numbers of a cloth: the mapping's, or the options' where they say."""
    made = mapped(item, rest)
    return {
        key: numbers[key] or float(getattr(made, key)) for key in ("tri_ke", "tri_ka", "edge_ke")
    }


def _pin(making: Making, bent: Bent, pin: Pinned, first: int) -> None:
    """Vertices that stay or follow what is led; those of a dynamic body pull at it as it pulls."""
    numbers = pin.vertices + first
    if pin.body is None or making.motion[pin.body] != DYNAMIC:
        bent.pins.append((numbers, pin))
        return
    body = making.links[pin.body]
    for number, place in zip(numbers.tolist(), pin.local.tolist(), strict=True):
        making.builder.add_attachment_particle_body(
            number, body, body_point=making.warp.vec3(*place), stiffness=math.inf
        )


def _add_rope(making: Making, bent: Bent, item: Rope, points: F8) -> None:
    """Capsules between the points, and a joint about a point for every pinned vertex."""
    newton, builder = making.newton, making.builder
    rod = newton.Rod(
        points=points.astype(np.float32), radius=item.radius,
        stretch_rigidity=item.stretch, shear_rigidity=item.stretch,
        bend_rigidity=item.bending, twist_rigidity=item.bending,
    )  # fmt: skip
    config = builder.ShapeConfig(
        density=item.density, mu=item.friction**2, mu_torsional=0.0, mu_rolling=0.0,
        ke=making.numbers["body_contact_stiffness"],
    )  # fmt: skip
    lengths = np.linalg.norm(np.diff(points, axis=0), axis=1)
    bodies, _ = builder.add_rod(
        rod=rod, cfg=config, label=item.name,
        stretch_damping=item.damping * item.stretch / float(lengths.mean()),
        bend_damping=item.damping * item.bending / float(lengths.mean()),
    )  # fmt: skip
    # A capsule has half balls beyond its segment: the mass is the segment's, all the same.
    for number, length in zip(bodies, lengths.tolist(), strict=True):
        mass = item.density * math.pi * item.radius**2 * length
        share = mass / builder.body_mass[number]
        builder.body_mass[number] = mass
        builder.body_inv_mass[number] = 1.0 / mass
        builder.body_inertia[number] = builder.body_inertia[number] * share
        builder.body_inv_inertia[number] = builder.body_inv_inertia[number] / share
    bent.ropes[item.name] = (bodies, lengths)
    for pin in pinned_vertices(making.scene, item, points):
        for vertex, place in zip(pin.vertices.tolist(), pin.local.tolist(), strict=True):
            _pin_rope(making, bodies, lengths, pin, vertex, tuple(place))


def _pin_rope(
    making: Making, bodies: list[int], lengths: F8, pin: Pinned, vertex: int, place: Vec
) -> None:
    last = len(bodies)
    segment = min(vertex, last - 1)
    half = float(lengths[segment]) / 2
    end = making.transform((0.0, 0.0, half if vertex == last else -half))
    parent = -1 if pin.body is None else making.links.get(pin.body, -1)
    frame = making.transform(place)
    if pin.body is not None and parent < 0:
        body = making.scene.bodies[pin.body]
        turn = quaternion_to_matrix(np.array(body.quaternion_wxyz))
        at = np.array(body.position) + turn @ np.array(place)
        frame = making.transform(tuple(at.tolist()))
    making.builder.add_joint_ball(
        parent, bodies[segment], parent_xform=frame, child_xform=end, armature=0.0,
        friction=0.0, damping=0.0, collision_filter_parent=True,
    )  # fmt: skip


def rope_nodes(poses: F8, lengths: F8) -> F8:
    """Nodes (S + 1, 3) between segments of poses (S, 7): the middle of the two ends that meet."""
    half = np.zeros_like(poses[:, :3])
    for k, pose in enumerate(poses):
        turn = quaternion_to_matrix(pose[[6, 3, 4, 5]])
        half[k] = turn[:, 2] * (lengths[k] / 2)
    starts, ends = poses[:, :3] - half, poses[:, :3] + half
    return np.concatenate([starts[:1], (ends[:-1] + starts[1:]) / 2, ends[-1:]])
