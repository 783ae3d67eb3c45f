"""Newton (on Warp, on the CPU): rigid bodies and joints, cloth, solids of tetrahedra, ropes.

Option ``solver`` says which of its solvers moves a scene:

- "mujoco" (default without deformables): MuJoCo's own CPU build. It has no restitution (about 0);
  ``contact`` "restitution" maps it to the damping of its contact springs, whose stiffness
  ``contact_stiffness`` says: the period of a contact in substeps. Softer contacts sink deeper.
- "xpbd": restitution is a parameter of its own.
- "vbd" (default with deformables): everything by vertex block descent.

Stiffness that is asked for is what `wmeval.assets.gauge_mapping` turns it into (the published
mapping, with its fall-backs) unless the options ``tri_ke``, ``tri_ka``, ``edge_ke`` say otherwise
(0: the mapping). What comes out depends on iterations and substeps as well. Pins of cloth and
solids follow bodies that are not dynamic. A rope is a chain of capsules whose joints stretch and
bend; its pins are joints about a point, to any body.

Friction of a pair is the product of the bodies' values, as everywhere here, by values of the
bodies' own that each solver's rule combines to it. No contacts are told and no rays cast.
"""

from __future__ import annotations

import contextlib
import io
import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_mapping import newton_textile
from wmeval.conventions import quaternion_conjugate, quaternion_multiply, quaternion_to_matrix
from wmeval.deformables import RestShape, rest_shape
from wmeval.errors import UserError
from wmeval.scene import (
    DYNAMIC,
    Body,
    Box,
    Capsule,
    Cloth,
    Collision,
    Deformable,
    Joint,
    Mesh,
    Meshes,
    Rope,
    Scene,
    Soft,
    Sphere,
)
from wmeval.sim.engines.bullet_shapes import mass_properties
from wmeval.sim.engines.joint_tree import joint_tree
from wmeval.sim.engines.pairs import Rule, own_values
from wmeval.sim.engines.pins import Pinned, carried_pose, pinned_vertices, pinned_where
from wmeval.sim.engines.stepped import Numbers, Put, SteppedEngine, info_of, options_of
from wmeval.sim.protocol import EngineConfig, Quat, Vec

Solver = Literal["mujoco", "xpbd", "vbd"]
OPTIONS = {
    # option: (default, least, greatest)
    "contact_stiffness": (16.0, 2.0, 1e4),
    "tri_ke": (0.0, 0.0, 1e12),
    "tri_ka": (0.0, 0.0, 1e12),
    "edge_ke": (0.0, 0.0, 1e12),
    "particle_contact_stiffness": (1e3, 0.0, 1e9),
    "elliptic": (0, 0, 1),
}
CHOICES = {
    "solver": ("auto", "mujoco", "xpbd", "vbd"),
    "contact": ("default", "restitution"),
}
_FRICTION: dict[str, Rule] = {"mujoco": "max", "xpbd": "mean", "vbd": "geometric"}
_NO_RESTITUTION = 1e-3


class NewtonEngine(SteppedEngine):
    """Rigid bodies, cloth and solids by Newton."""

    def __init__(self) -> None:
        super().__init__()
        self.info = info_of(
            "newton",
            ("rigid", "joint", "cloth", "soft", "rope"),
            deterministic=True,
            impulses=False,
        )
        self._model: Any = None

    # --- making -----------------------------------------------------------------------------------

    def _make(self, scene: Scene, meshes: Meshes, config: EngineConfig) -> None:
        self._numbers, words = options_of("newton", OPTIONS, config, CHOICES)
        self._solver_name = self._chosen(words["solver"], scene)
        self._restitution = words["contact"] == "restitution" or self._solver_name == "xpbd"
        # What it prints of its kernels is for nobody here.
        with contextlib.redirect_stdout(io.StringIO()):
            import newton
            import warp

            self._newton, self._warp = newton, warp
            warp.config.quiet = True
            with warp.ScopedDevice("cpu"):
                self._build(scene, meshes, config)

    def _chosen(self, word: str, scene: Scene) -> Solver:
        if word == "auto":
            return "vbd" if scene.deformables else "mujoco"
        if scene.deformables and word == "mujoco":
            raise UserError("newton: solver mujoco has no deformables: leave solver out, or vbd")
        return word  # type: ignore[return-value]

    def _build(self, scene: Scene, meshes: Meshes, config: EngineConfig) -> None:
        newton, warp = self._newton, self._warp
        builder = newton.ModelBuilder(up_axis=newton.Axis.Z, gravity=warp.vec3(*scene.gravity))
        if self._solver_name == "mujoco":
            newton.solvers.SolverMuJoCo.register_custom_attributes(builder)
        friction = own_values(scene, "friction", _FRICTION[self._solver_name], 1e6)
        rule: Rule = "min" if self._solver_name == "mujoco" else "mean"
        restitution = dict.fromkeys(friction, 0.0)
        if self._restitution:
            restitution = own_values(scene, "restitution", rule, 1.0)
        self._links: dict[int, int] = {}  # scene index to Newton's number
        self._chains: dict[str, list[int]] = {}  # joints of what a body hangs on and itself
        self._articulations: list[list[int]] = []
        joints = joint_tree(scene, "newton")
        for i in joints.order:
            self._add(builder, i, meshes, joints.held.get(i), friction[i], restitution[i])
        for chain in self._articulations:
            builder.add_articulation(chain)
        ends: dict[str, tuple[int, int]] = {}
        self._rest: dict[str, RestShape] = {}
        self._ropes: dict[str, tuple[list[int], NDArray[np.float64]]] = {}
        for item in scene.deformables:
            first = builder.particle_count
            self._rest[item.name] = rest_shape(item, meshes)
            if isinstance(item, Rope):
                self._add_rope(builder, item, self._rest[item.name].vertices)
                continue
            self._add_deformable(builder, item, self._rest[item.name])
            ends[item.name] = (first, builder.particle_count)
        self._ranges = ends
        if self._solver_name == "vbd":
            builder.color(include_bending=True)
        self._model = model = builder.finalize(device="cpu")
        self._set_pins(scene, model)
        self._set_contact(scene, model)
        self._solver = self._make_solver(model, config)
        self._state, self._next = model.state(), model.state()
        self._control = model.control()
        newton.eval_fk(model, model.joint_q, model.joint_qd, self._state)
        self._start(scene)
        self._contacts: Any = None
        if self._solver_name != "mujoco":
            self._pipeline = newton.CollisionPipeline(model)
            self._contacts = self._pipeline.contacts()
        self._pushed = False
        self._damped = [
            (number, (1.0 - b.linear_damping) ** self.dt, (1.0 - b.angular_damping) ** self.dt)
            for i, number in self._links.items()
            if (b := scene.bodies[i]).linear_damping or b.angular_damping
        ]

    def _add(
        self,
        builder: Any,
        i: int,
        meshes: Meshes,
        joint: Joint | None,
        friction: float,
        restitution: float,
    ) -> None:
        body = self._scene.bodies[i]
        if body.rolling_friction or body.upright:
            raise UserError(
                f"body {body.name!r}: engine newton has no rolling_friction and no upright: run it "
                "with bullet"
            )
        place = self._transform(body.position, body.quaternion_wxyz)
        still = body.motion == "static" and body.mass <= 0
        if still:
            number = -1
        else:
            kinematic = self._motion[i] != DYNAMIC
            _, centre, inertia = (
                mass_properties(body, meshes) if body.mass > 0 else (1.0, np.zeros(3), np.eye(3))
            )
            if float(np.abs(centre).max()) > 1e-4:
                raise UserError(
                    f"body {body.name!r}: the centre of mass of its shapes is at "
                    f"{centre.round(4).tolist()} m in its own frame; move the shapes so that it "
                    "is at 0"
                )
            number = builder.add_link(
                xform=place,
                mass=body.mass if body.mass > 0 else 1.0,
                inertia=self._warp.mat33(*inertia.ravel().tolist()),
                lock_inertia=True,
                is_kinematic=kinematic,
                label=body.name,
            )
            self._links[i] = number
            self._number_joint(builder, body, number, place, joint)
        for part in body.collision:
            self._shape(builder, number, body, part, meshes, friction, restitution)

    def _number_joint(
        self, builder: Any, body: Body, number: int, place: Any, joint: Joint | None
    ) -> None:
        """Newton wants a joint for every body, in an articulation, parents first."""
        if joint is None:
            made = builder.add_joint_free(number, parent_xform=self._transform((0, 0, 0)))
            builder.joint_q[-7:] = [*place]
        else:
            turn = np.array(body.quaternion_wxyz)
            parent, frame = -1, self._transform(joint.pivot)
            if joint.other:
                k = self._scene.index(joint.other)
                parent = self._links.get(k, -1)
                other = self._scene.bodies[k]
                frame = self._local(other.position, np.array(other.quaternion_wxyz), joint.pivot)
            frames = {
                "parent_xform": frame,
                "child_xform": self._local(body.position, turn, joint.pivot),
                "collision_filter_parent": not joint.collide,
            }
            if joint.kind == "hinge":
                axis = np.array(joint.axis) / float(np.linalg.norm(joint.axis))
                made = builder.add_joint_revolute(
                    parent, number, axis=self._warp.vec3(*axis.tolist()), armature=joint.armature,
                    damping=joint.damping, friction=0.0, **frames,
                )  # fmt: skip
            elif joint.kind == "ball":
                made = builder.add_joint_ball(
                    parent, number, armature=0.0, friction=0.0, damping=0.0, **frames
                )
            else:
                made = builder.add_joint_fixed(parent, number, **frames)
        self._articulation(body, joint, made)

    def _articulation(self, body: Body, joint: Joint | None, made: int) -> None:
        chain = self._chains.get(joint.other, []) if joint is not None else []
        if not chain:
            self._articulations.append(chain)
        chain.append(made)
        self._chains[body.name] = chain

    def _transform(self, position: Vec, quaternion: Quat = (1.0, 0.0, 0.0, 0.0)) -> Any:
        w, x, y, z = quaternion
        return self._warp.transform(self._warp.vec3(*position), self._warp.quat(x, y, z, w))

    def _local(self, position: Vec, turn: NDArray[np.float64], pivot: Vec) -> Any:
        """The world's axes at a point, in the frame of a body."""
        at = quaternion_to_matrix(turn).T @ (np.array(pivot) - np.array(position))
        w, x, y, z = quaternion_conjugate(turn).tolist()
        return self._transform(tuple(at.tolist()), (w, x, y, z))

    def _shape(
        self,
        builder: Any,
        number: int,
        body: Body,
        part: Collision,
        meshes: Meshes,
        friction: float,
        restitution: float,
    ) -> None:
        shape = part.shape
        place = self._transform(part.position, part.quaternion_wxyz)
        if number < 0:
            turn = np.array(body.quaternion_wxyz)
            at = np.array(body.position) + quaternion_to_matrix(turn) @ np.array(part.position)
            w, x, y, z = quaternion_multiply(turn, np.array(part.quaternion_wxyz)).tolist()
            place = self._transform(tuple(at.tolist()), (w, x, y, z))
        config = builder.ShapeConfig(
            density=0.0, mu=friction, restitution=restitution, mu_torsional=0.0, mu_rolling=0.0
        )
        extra: dict[str, Any] = {"xform": place, "cfg": config}
        if self._solver_name == "mujoco" and self._restitution:
            extra["custom_attributes"] = {
                "mujoco:solref": self._warp.vec2(*self._solref(restitution)),
                "mujoco:solref_mode": 1,
            }
        if isinstance(shape, Sphere):
            builder.add_shape_sphere(number, radius=shape.radius, **extra)
        elif isinstance(shape, Box):
            hx, hy, hz = shape.half_extents
            builder.add_shape_box(number, hx=hx, hy=hy, hz=hz, **extra)
        elif isinstance(shape, Mesh):
            mesh = self._mesh(body, shape, meshes)
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

    def _mesh(self, body: Body, shape: Mesh, meshes: Meshes) -> Any:
        if shape.sha256 not in meshes:
            raise UserError(
                f"body {body.name!r}: mesh {shape.sha256[:12]}... is not among the meshes"
            )
        mesh = meshes[shape.sha256]
        return self._newton.Mesh(
            mesh.vertices.copy(), mesh.triangles.astype(np.int32).ravel(), compute_inertia=False
        )

    def _solref(self, restitution: float) -> tuple[float, float]:
        """Stiffness and damping per mass of a contact, negative: as MuJoCo marks raw values."""
        omega = math.pi / (0.5 * self._numbers["contact_stiffness"] * self.dt)
        log = -math.log(max(restitution, _NO_RESTITUTION))
        return -(omega**2), -2.0 * omega * log / math.hypot(math.pi, log)

    # --- what bends -------------------------------------------------------------------------------

    def _add_deformable(self, builder: Any, item: Deformable, rest: RestShape) -> None:
        warp = self._warp
        common: dict[str, Any] = {
            "pos": warp.vec3(0.0, 0.0, 0.0),
            "rot": warp.quat_identity(),
            "scale": 1.0,
            "vel": warp.vec3(*item.linear_velocity),
            "vertices": [warp.vec3(*v) for v in rest.vertices.tolist()],
        }
        if isinstance(item, Cloth):
            stiff = self.textile(item, rest)
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
                k_damp=item.damping * young, add_surface_mesh_edges=False, particle_radius=1e-3,
            )  # fmt: skip

    def _add_rope(self, builder: Any, item: Rope, points: NDArray[np.float64]) -> None:
        """Capsules between the points, and a joint about a point for every pinned vertex."""
        newton = self._newton
        rod = newton.Rod(
            points=points.astype(np.float32), radius=item.radius,
            stretch_rigidity=item.stretch, shear_rigidity=item.stretch,
            bend_rigidity=item.bending, twist_rigidity=item.bending,
        )  # fmt: skip
        config = builder.ShapeConfig(
            density=item.density, mu=item.friction**2, mu_torsional=0.0, mu_rolling=0.0
        )
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
        self._ropes[item.name] = (bodies, lengths)
        for pin in pinned_vertices(self._scene, item, points):
            for vertex, place in zip(pin.vertices.tolist(), pin.local.tolist(), strict=True):
                self._pin_rope(builder, bodies, lengths, pin, vertex, tuple(place))

    def _pin_rope(
        self,
        builder: Any,
        bodies: list[int],
        lengths: NDArray[np.float64],
        pin: Pinned,
        vertex: int,
        place: Vec,
    ) -> None:
        last = len(bodies)
        segment = min(vertex, last - 1)
        half = float(lengths[segment]) / 2
        end = self._transform((0.0, 0.0, half if vertex == last else -half))
        parent = -1 if pin.body is None else self._links.get(pin.body, -1)
        frame = self._transform(place)
        if pin.body is not None and parent < 0:
            body = self._scene.bodies[pin.body]
            turn = quaternion_to_matrix(np.array(body.quaternion_wxyz))
            at = np.array(body.position) + turn @ np.array(place)
            frame = self._transform(tuple(at.tolist()))
        builder.add_joint_ball(
            parent, bodies[segment], parent_xform=frame, child_xform=end, armature=0.0,
            friction=0.0, damping=0.0, collision_filter_parent=True,
        )  # fmt: skip

    def textile(self, item: Cloth, rest: RestShape) -> dict[str, float]:
        """Newton's numbers of a cloth: the mapping's, or the options' where they say."""
        edges = np.unique(
            np.sort(rest.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1), axis=0
        )
        along = rest.vertices[edges[:, 1]] - rest.vertices[edges[:, 0]]
        mapped = newton_textile(
            stretch=item.stretch,
            shear=item.shear,
            hinge=max(item.bending, 1e-12),
            edge_length=float(np.linalg.norm(along, axis=1).mean()),
        )
        return {
            key: self._numbers[key] or getattr(mapped, key)
            for key in ("tri_ke", "tri_ka", "edge_ke")
        }

    def _set_pins(self, scene: Scene, model: Any) -> None:
        self._pinned: list[tuple[NDArray[np.intp], Pinned]] = []
        if not scene.deformables:
            return
        flags = model.particle_flags.numpy() if self._ranges else np.zeros(0, np.int32)
        for item in scene.deformables:
            if isinstance(item, Rope):
                continue
            first = self._ranges[item.name][0]
            for pin in pinned_vertices(scene, item, self._rest[item.name].vertices):
                if pin.body is not None and self._motion[pin.body] == DYNAMIC:
                    raise UserError(
                        f"{item.kind} {item.name!r} is pinned to the dynamic body "
                        f"{scene.bodies[pin.body].name!r}: engine newton pins to bodies that a "
                        "driver moves"
                    )
                numbers = pin.vertices + first
                flags[numbers] &= ~int(self._newton.ParticleFlags.ACTIVE)
                self._pinned.append((numbers, pin))
        if self._ranges:
            model.particle_flags.assign(flags)

    def _set_contact(self, scene: Scene, model: Any) -> None:
        values = {d.friction for d in scene.deformables if not isinstance(d, Rope)}
        if len(values) > 1:
            raise UserError(
                f"scene {scene.name!r}: engine newton has one friction for all deformables; they "
                f"have {', '.join(f'{v:g}' for v in sorted(values))}"
            )
        if values:
            model.soft_contact_mu = values.pop() ** 2
            model.soft_contact_ke = self._numbers["particle_contact_stiffness"]

    def _make_solver(self, model: Any, config: EngineConfig) -> Any:
        solvers = self._newton.solvers
        if self._solver_name == "mujoco":
            return solvers.SolverMuJoCo(
                model,
                use_mujoco_cpu=True,
                iterations=config.iterations,
                cone="elliptic" if self._numbers["elliptic"] else "pyramidal",
            )
        if self._solver_name == "xpbd":
            return solvers.SolverXPBD(model, iterations=config.iterations, enable_restitution=True)
        touching = any(isinstance(d, Cloth) and d.self_contact for d in self._scene.deformables)
        radius = max((d.thickness for d in self._scene.deformables if isinstance(d, Cloth)),
                     default=1e-3)  # fmt: skip
        return solvers.SolverVBD(
            model,
            iterations=config.iterations,
            particle_enable_self_contact=touching,
            particle_self_contact_radius=radius if touching else None,
            particle_self_contact_margin=1.5 * radius if touching else None,
            particle_enable_tile_solve=False,
        )

    def _start(self, scene: Scene) -> None:
        """Initial velocities, of jointed bodies too."""
        moving = False
        for i, number in self._links.items():
            body = scene.bodies[i]
            if not (any(body.linear_velocity) or any(body.angular_velocity)):
                continue
            put = body.position, body.quaternion_wxyz, body.linear_velocity, body.angular_velocity
            if self._motion[i] == DYNAMIC:
                self._write_body(number, put)
                moving = True
            else:
                self._carried[i] = put
        if moving:
            self._to_joints()

    # --- stepping ---------------------------------------------------------------------------------

    def _step(self) -> None:
        with self._warp.ScopedDevice("cpu"):
            self._place_pins()
            for body, put in self._carried.items():
                self._write_body(self._links[body], put)
            if self._carried:
                self._to_joints()
            if self._contacts is not None:
                self._pipeline.collide(self._state, self._contacts)
            self._solver.step(self._state, self._next, self._control, self._contacts, self.dt)
            self._state, self._next = self._next, self._state
            if self._pushed:
                self._next.clear_forces()
                self._state.clear_forces()
                self._pushed = False
            if self._damped:
                self._damp()

    def _damp(self) -> None:
        moving = self._state.body_qd.numpy()
        for number, linear, angular in self._damped:
            moving[number, :3] *= linear
            moving[number, 3:] *= angular
        self._to_joints()

    def _place_pins(self) -> None:
        if not self._pinned:
            return
        where, speed = self._state.particle_q.numpy(), self._state.particle_qd.numpy()
        after = self._next.particle_q.numpy()
        for numbers, pin in self._pinned:
            where[numbers] = after[numbers] = self._pin_at(pin)
            speed[numbers] = 0.0

    def _pin_at(self, pin: Pinned) -> NDArray[np.float64]:
        """Where pinned vertices (n, 3) are when the substep is over: with what leads them."""
        if pin.body is None:
            return pinned_where(pin, None, None)
        place = carried_pose(*self.pose(pin.body), *self.velocity(pin.body), self.dt)
        return pinned_where(pin, *place)

    def _read(self) -> list[Numbers]:
        if not self._bodies:
            return []
        numbers = [self._links[i] for i in self._bodies]
        poses = self._state.body_q.numpy()[numbers]
        moving = self._state.body_qd.numpy()[numbers]
        both: list[Numbers] = np.concatenate([poses, moving], axis=1).astype(np.float64).tolist()
        return both

    def _read_vertices(self) -> dict[str, NDArray[np.float64]]:
        out: dict[str, NDArray[np.float64]] = {}
        if self._ranges:
            where = self._state.particle_q.numpy()
            for name, (first, last) in self._ranges.items():
                out[name] = where[first:last].astype(np.float64)
        for name, (bodies, lengths) in self._ropes.items():
            out[name] = _nodes(self._state.body_q.numpy()[bodies].astype(np.float64), lengths)
        return out

    def _put(self, body: int, put: Put) -> None:
        if body not in self._links:
            raise UserError(
                f"body {self._scene.bodies[body].name!r} is static without a mass: engine newton "
                "cannot move it; make it kinematic"
            )
        if any(self._scene.bodies[body].name in (j.body, j.other) for j in self._scene.joints):
            raise self._lacks("puts bodies that a joint holds")
        self._write_body(self._links[body], put)
        self._to_joints()

    def _write_body(self, number: int, put: Put) -> None:
        position, (w, x, y, z), linear, angular = put
        self._state.body_q.numpy()[number] = (*position, x, y, z, w)
        self._state.body_qd.numpy()[number] = (*linear, *angular)

    def _to_joints(self) -> None:
        """Bring joint coordinates up to the bodies that were put."""
        self._newton.eval_ik(self._model, self._state, self._state.joint_q, self._state.joint_qd)

    def _push(self, body: int, force: Vec, at: Vec | None, torque: Vec) -> None:
        tx, ty, tz = torque
        if at is not None:
            arm = np.array(at) - np.array(self.pose(body)[0])
            tx, ty, tz = (np.array(torque) + np.cross(arm, np.array(force))).tolist()
        self._state.body_f.numpy()[self._links[body]] += np.array((*force, tx, ty, tz), np.float32)
        self._pushed = True

    def close(self) -> None:
        """Free everything; idempotent."""
        self._model = self._solver = self._state = self._next = self._contacts = None


def _nodes(poses: NDArray[np.float64], lengths: NDArray[np.float64]) -> NDArray[np.float64]:
    """Nodes (S + 1, 3) between segments of poses (S, 7): the middle of the two ends that meet."""
    half = np.zeros_like(poses[:, :3])
    for k, pose in enumerate(poses):
        turn = quaternion_to_matrix(pose[[6, 3, 4, 5]])
        half[k] = turn[:, 2] * (lengths[k] / 2)
    starts, ends = poses[:, :3] - half, poses[:, :3] + half
    return np.concatenate([starts[:1], (ends[:-1] + starts[1:]) / 2, ends[-1:]])


__all__ = ["CHOICES", "OPTIONS", "NewtonEngine"]
