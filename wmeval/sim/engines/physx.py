"""PhysX 5 on the CPU, by SAPIEN: rigid bodies, joints, contacts.

Not Isaac Sim: the same solver library, another set of defaults, and none of its deformables, which
need an NVIDIA GPU. Settings that depart from SAPIEN's, and why:

- Contacts begin 1 mm before bodies touch (option ``contact_offset``) instead of 10 mm, so that a
  bounce hardly depends on where in a substep it falls; nothing sleeps; determinism is "enhanced".
- Friction and restitution of a pair are the PRODUCT of the bodies' values, as everywhere here.
  PhysX takes the mean, so bodies get values whose means are those products; a scene for which
  there are none is refused. Option ``combine`` "mean" hands the values over as they are.
- Damping is (1 - d)^dt per substep. Inertia is exact for spheres, boxes, cylinders and capsules.

Joints are constraints of the solver (D6), good to 3e-4 of a pendulum's period at 180 Hz with TGS,
the default (``tgs`` 0: PGS, which takes energy out of them). PhysX tells no friction impulse:
``tangential_impulse`` is 0. A cylinder is a prism of 32 sides to it and rolls as one, a sixth more
slowly. Rolling friction is refused. Ropes are chains of capsules held together by springs (see
`wmeval.sim.engines.rope_chain`); contacts with them are not told.
"""

from __future__ import annotations

import warnings
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_multiply
from wmeval.errors import UserError
from wmeval.scene import DYNAMIC, Body, Box, Capsule, Collision, Mesh, Meshes, Scene, Sphere
from wmeval.sim.engines.bullet_shapes import principal_inertia
from wmeval.sim.engines.engine_options import info_of, options_of
from wmeval.sim.engines.pairs import own_values
from wmeval.sim.engines.physx_joints import add_joint
from wmeval.sim.engines.pins import carried_pose
from wmeval.sim.engines.rope_chain import Motion, RopeChain, chains, ends_now
from wmeval.sim.engines.stepped import Numbers, Point, Put, SteppedEngine
from wmeval.sim.protocol import EngineConfig, Quat, RayHit, Vec

OPTIONS = {
    # option: (default, least, greatest)
    "contact_offset": (1e-3, 1e-5, 0.1),
    "rest_offset": (0.0, -0.01, 0.01),
    "velocity_iterations": (1, 0, 255),
    "tgs": (1, 0, 1),
    "ccd": (0, 0, 1),
    "max_depenetration_velocity": (1e3, 1e-3, 1e6),
}
CHOICES = {"combine": ("product", "mean")}
MAX_ITERATIONS = 255
# From the z axis, along which our cylinders and capsules lie, to SAPIEN's x axis.
_UPRIGHT = (float(np.sqrt(0.5)), 0.0, -float(np.sqrt(0.5)), 0.0)


class PhysxEngine(SteppedEngine):
    """Rigid bodies by PhysX."""

    def __init__(self) -> None:
        super().__init__()
        self.info = info_of("physx", ("rigid", "joint", "rope"), deterministic=True, impulses=True)
        self._system: Any = None
        self._ropes: list[tuple[RopeChain, list[Any]]] = []

    # --- making -----------------------------------------------------------------------------------

    def _make(self, scene: Scene, meshes: Meshes, config: EngineConfig) -> None:
        numbers, words = options_of("physx", OPTIONS, config, CHOICES, iterations=MAX_ITERATIONS)
        with warnings.catch_warnings():
            # It asks for a Vulkan library, which no physics needs.
            warnings.simplefilter("ignore")
            import sapien
        self._sapien, self._px = sapien, sapien.physx
        px = self._px
        # SAPIEN keeps these for all that the process makes from now on.
        px.set_scene_config(
            gravity=np.array(scene.gravity, np.float32),
            bounce_threshold=config.restitution_threshold,
            enable_tgs=bool(numbers["tgs"]),
            enable_ccd=bool(numbers["ccd"]),
            enable_enhanced_determinism=True,
        )
        px.set_shape_config(
            contact_offset=numbers["contact_offset"], rest_offset=numbers["rest_offset"]
        )
        px.set_body_config(
            solver_position_iterations=config.iterations,
            solver_velocity_iterations=int(numbers["velocity_iterations"]),
            sleep_threshold=0.0,
        )
        self._depenetration = numbers["max_depenetration_velocity"]
        self._system = px.PhysxCpuSystem()
        self._world = sapien.Scene([self._system])
        self._system.set_timestep(self.dt)
        ropes = chains(scene, "physx", self.dt)
        pieces = [piece for chain in ropes for piece in chain.pieces]
        friction, restitution = self._surfaces(scene, pieces, words["combine"])
        self._parts: dict[int, Any] = {}
        self._number: dict[Any, int] = {}
        for i, body in enumerate(scene.bodies):
            if body.collision and body.active:
                material = px.PhysxMaterial(friction[i], friction[i], restitution[i])
                self._parts[i] = self._add(body, meshes, material, self._motion[i])
                self._number[self._parts[i]] = i
                self._set_going(i, body)
        for joint in scene.joints:
            add_joint(sapien, scene, joint, self._parts)
        first = len(scene.bodies)
        for chain in ropes:
            self._ropes.append((chain, self._add_rope(chain, friction[first])))
            first += len(chain.pieces)

    def _add_rope(self, chain: RopeChain, friction: float) -> list[Any]:
        """Make the capsules of a rope; neighbours, and what an end is pinned to, do not touch."""
        px = self._px
        # Ropes have no restitution: with a body, half of the body's own is what the mean makes.
        material = px.PhysxMaterial(friction, friction, 0.0)
        parts = [self._add(piece, {}, material, DYNAMIC) for piece in chain.pieces]
        held = [None if end is None or end < 0 else self._parts.get(end) for end in chain.ends]
        for a, b in [*pairwise(parts), (parts[0], held[0]), (parts[-1], held[1])]:
            if b is not None:
                # A joint that holds nothing: what it joins does not collide.
                free = px.PhysxDriveComponent(a)
                free.set_parent(b)
                a.entity.add_component(free)
        return parts

    def _surfaces(
        self, scene: Scene, pieces: list[Body], combine: str
    ) -> tuple[dict[int, float], dict[int, float]]:
        """Friction of bodies, and after them of ropes' pieces, and restitution of bodies."""
        every = scene.model_copy(update={"bodies": (*scene.bodies, *pieces)})
        if combine == "product":
            return (
                own_values(every, "friction", "mean", 1e6),
                own_values(scene, "restitution", "mean", 1.0),
            )
        bodies = list(enumerate(every.bodies))
        return {i: b.friction for i, b in bodies}, {i: b.restitution for i, b in bodies}

    def _add(self, body: Body, meshes: Meshes, material: Any, motion: int) -> Any:
        px = self._px
        if body.rolling_friction:
            raise UserError(
                f"body {body.name!r}: engine physx has no rolling_friction: run it with bullet"
            )
        still = body.motion == "static" and body.mass <= 0
        part = px.PhysxRigidStaticComponent() if still else px.PhysxRigidDynamicComponent()
        for collision in body.collision:
            part.attach(self._shape(body, collision, meshes, material, still=still))
        entity = self._sapien.Entity()
        entity.add_component(part)
        entity.set_pose(self._pose(body.position, body.quaternion_wxyz))
        if not still:
            part.mass = body.mass if body.mass > 0 else 1.0
            part.inertia = np.array(self._inertia(body, meshes), np.float32)
            part.cmass_local_pose = self._sapien.Pose()
            part.linear_damping = self._damping(body.linear_damping)
            part.angular_damping = self._damping(body.angular_damping)
            part.max_linear_velocity = part.max_angular_velocity = 1e4
            part.max_depenetration_velocity = self._depenetration
            part.kinematic = motion != DYNAMIC
            if body.upright:
                part.set_locked_motion_axes([False] * 3 + [True] * 3)
        self._world.add_entity(entity)
        if motion == DYNAMIC:
            part.linear_velocity = np.array(body.linear_velocity, np.float32)
            part.angular_velocity = np.array(body.angular_velocity, np.float32)
        return part

    def _set_going(self, i: int, body: Body) -> None:
        """Let what a driver leads carry what stands on it from the start."""
        moves = any(body.linear_velocity) or any(body.angular_velocity)
        if moves and self._motion[i] != DYNAMIC:
            if body.motion == "static" and body.mass <= 0:
                raise UserError(f"body {body.name!r} is static and moves: make it kinematic")
            self._carried[i] = (
                body.position, body.quaternion_wxyz, body.linear_velocity, body.angular_velocity
            )  # fmt: skip

    def _inertia(self, body: Body, meshes: Meshes) -> tuple[float, float, float]:
        if body.mass <= 0:
            return 1.0, 1.0, 1.0
        extra = sum(j.armature for j in self._scene.joints if j.body == body.name)
        # About a hinge only the inertia along its axis counts, and this adds to it.
        x, y, z = principal_inertia(body, meshes)
        return x + extra, y + extra, z + extra

    def _damping(self, lost: float) -> float:
        """PhysX multiplies velocity by 1 - c dt."""
        return float((1.0 - (1.0 - lost) ** self.dt) / self.dt)

    def _pose(self, position: Vec, quaternion: Quat) -> Any:
        return self._sapien.Pose(np.array(position, np.float32), np.array(quaternion, np.float32))

    def _shape(
        self, body: Body, part: Collision, meshes: Meshes, material: Any, *, still: bool
    ) -> Any:
        px, shape = self._px, part.shape
        turn = np.array(part.quaternion_wxyz)
        if isinstance(shape, Sphere):
            made = px.PhysxCollisionShapeSphere(shape.radius, material)
        elif isinstance(shape, Box):
            made = px.PhysxCollisionShapeBox(np.array(shape.half_extents, np.float32), material)
        elif isinstance(shape, Mesh):
            made = self._mesh(body, shape, meshes, material, still=still)
        else:
            turn = quaternion_multiply(turn, np.array(_UPRIGHT))
            if isinstance(shape, Capsule):
                half = shape.height / 2 - shape.radius
                made = px.PhysxCollisionShapeCapsule(shape.radius, half, material)
            else:
                made = px.PhysxCollisionShapeCylinder(shape.radius, shape.height / 2, material)
        w, x, y, z = turn.tolist()
        made.set_local_pose(self._pose(part.position, (w, x, y, z)))
        return made

    def _mesh(self, body: Body, shape: Mesh, meshes: Meshes, material: Any, *, still: bool) -> Any:
        if shape.sha256 not in meshes:
            raise UserError(
                f"body {body.name!r}: mesh {shape.sha256[:12]}... is not among the meshes"
            )
        mesh, one = meshes[shape.sha256], np.ones(3, np.float32)
        if shape.convex:
            return self._px.PhysxCollisionShapeConvexMesh(mesh.vertices, one, material)
        if not still:
            raise UserError(
                f"body {body.name!r} moves, but its mesh is concave: make it static, or convex=true"
            )
        return self._px.PhysxCollisionShapeTriangleMesh(
            mesh.vertices, mesh.triangles, one, material
        )

    # --- stepping ---------------------------------------------------------------------------------

    def _step(self) -> None:
        for chain, parts in self._ropes:
            self._pull(chain, parts)
        for body, (position, quaternion, linear, angular) in self._carried.items():
            # What carries has its velocity by where it would go; it is put back afterwards.
            target = carried_pose(position, quaternion, linear, angular, self.dt)
            self._parts[body].set_kinematic_target(self._pose(*target))
        self._system.step()
        for body, (position, quaternion, _, _) in self._carried.items():
            self._parts[body].entity.set_pose(self._pose(position, quaternion))

    def _pull(self, chain: RopeChain, parts: list[Any]) -> None:
        """Let a rope's springs act in the step to come."""
        now, ends = self._rope_now(chain, parts)
        forces, torques, on_ends = chain.forces(now, ends)
        rows = zip(parts, forces.astype(np.float32), torques.astype(np.float32), strict=True)
        for part, force, torque in rows:
            part.add_force_torque(force, torque)
        for end, pull, at in chain.pulls(on_ends, ends):
            self._push(end, pull, at, (0.0, 0.0, 0.0))

    def _rope_now(self, chain: RopeChain, parts: list[Any]) -> tuple[Motion, Motion]:
        return Motion.of([_numbers(part) for part in parts]), ends_now(chain, self)

    def _read(self) -> list[Numbers]:
        return [_numbers(self._parts[body]) for body in self._bodies]

    def _read_vertices(self) -> dict[str, NDArray[np.float64]]:
        return {c.name: c.nodes(*self._rope_now(c, parts)) for c, parts in self._ropes}

    def _points(self) -> list[Point]:
        out: list[Point] = []
        for contact in self._system.get_contacts():
            a, b = (self._number.get(part) for part in contact.bodies)
            if a is None or b is None:  # of a rope
                continue
            for point in contact.points:
                normal = point.normal.astype(np.float64)
                impulse = float(normal @ point.impulse.astype(np.float64))
                if impulse > 0.0:
                    nx, ny, nz = normal.tolist()
                    px, py, pz = point.position.tolist()
                    at = (px, py, pz), (nx, ny, nz)
                    out.append((a, b, *at, impulse, (0.0, 0.0, 0.0), float(point.separation)))
        return out

    def _put(self, body: int, put: Put) -> None:
        position, quaternion, linear, angular = put
        part = self._parts[body]
        part.entity.set_pose(self._pose(position, quaternion))
        if self._motion[body] == DYNAMIC:
            part.linear_velocity = np.array(linear, np.float32)
            part.angular_velocity = np.array(angular, np.float32)

    def _push(self, body: int, force: Vec, at: Vec | None, torque: Vec) -> None:
        part = self._parts[body]
        if at is not None:
            part.add_force_at_point(np.array(force, np.float32), np.array(at, np.float32))
            return
        part.add_force_torque(np.array(force, np.float32), np.array(torque, np.float32))

    def _hold(self, body: int, motion: int) -> None:
        part = self._parts[body]
        if not hasattr(part, "kinematic"):
            raise UserError(
                f"body {self._scene.bodies[body].name!r} is static without a mass: engine physx "
                "cannot move it; make it kinematic"
            )
        if motion != DYNAMIC and not part.kinematic:
            part.linear_velocity = part.angular_velocity = np.zeros(3, np.float32)
        part.kinematic = motion != DYNAMIC
        if motion == DYNAMIC:
            part.linear_velocity = part.angular_velocity = np.zeros(3, np.float32)

    # --- rays -------------------------------------------------------------------------------------

    def _ray(self, origin: Vec, end: Vec, ignore: tuple[int, ...]) -> RayHit | None:
        start, way = np.array(origin), np.array(end) - np.array(origin)
        length = float(np.linalg.norm(way))
        if length == 0.0:
            return None
        hidden = [shape for b in ignore for shape in self._parts[b].collision_shapes]
        gone = 0.0
        while gone < length:
            hit = self._system.raycast(
                (start + way * (gone / length)).astype(np.float32),
                (way / length).astype(np.float32),
                length - gone,
            )
            if hit is None:
                return None
            if hit.shape not in hidden and hit.component in self._number:
                px, py, pz = hit.position.tolist()
                nx, ny, nz = hit.normal.tolist()
                along = (gone + float(hit.distance)) / length
                return RayHit(self._number[hit.component], (px, py, pz), (nx, ny, nz), along)
            gone += float(hit.distance) + 1e-4
        return None

    def cast_rays(
        self, origins: NDArray[np.float64], ends: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Body index (-1: none) and hit point (N, 3) [m] of rays (N, 3) -> (N, 3)."""
        bodies = np.full(len(origins), -1, np.int32)
        points = np.array(ends, np.float64)
        for i, (origin, end) in enumerate(zip(origins.tolist(), ends.tolist(), strict=True)):
            hit = self._ray(origin, end, ())
            if hit is not None:
                bodies[i], points[i] = hit.body, hit.position
        return bodies, points

    def close(self) -> None:
        """Free everything; idempotent."""
        self._system = self._world = None
        self._parts, self._number, self._ropes = {}, {}, []


def _numbers(part: Any) -> Numbers:
    """Of one body, as `_read` gives them."""
    pose = part.entity_pose
    w, x, y, z = pose.q.tolist()
    return [
        *pose.p.tolist(), x, y, z, w,
        *part.linear_velocity.tolist(), *part.angular_velocity.tolist(),
    ]  # fmt: skip
