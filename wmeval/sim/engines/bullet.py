"""PyBullet in process: corrected contact settings, bit-identical reruns.

Settings that depart from PyBullet's defaults, and why:

- ``deterministicOverlappingPairs = 1``: repeated runs, interleaved worlds and fresh processes give
  the same bits.
- ``contactProcessingThreshold = 0`` on every body: with the default margin a bounce depends on the
  phase at which it is hit.
- Damping is applied here as (1 - d)^dt per substep, the meaning of `Body.linear_damping`; the
  damping that PyBullet has for generalised coordinates has a quadratic term.
- The inertia of compounds and hulls is computed exactly at uniform density; PyBullet takes it from
  bounding boxes. Spheres, boxes and cylinders are exact in PyBullet.
- The velocity limit per coordinate is raised from 100 to 10,000.

By default bodies have generalised coordinates, so that they can be released. With the option
``maximal_coordinates`` they are the rigid bodies that Blender and games have: two to three times
faster, damped by Bullet itself in the same sense, with ``split_impulse`` free of penetration at
exact restitution, and bound to be static or dynamic throughout. Joints need generalised
coordinates (see `wmeval.sim.engines.bullet_joints`), and so do ropes, chains of capsules held
together by springs (see `wmeval.sim.engines.rope_chain`); contacts with them are not told.

Friction and restitution of a pair are products. The lever arm of rolling resistance of a pair is
``a.rolling_friction b.friction + b.rolling_friction a.friction`` [m]. A world rebuilt and driven by
the same actions is exact; PyBullet's saved states are not, so nothing here uses them.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import importlib.metadata
import math
import os
import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from types import ModuleType
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.records import CameraLog, Contacts, LightLog, StateLog
from wmeval.scene import DYNAMIC, Body, Meshes, Scene
from wmeval.sim.engines.bullet_joints import LINK, make_constraint, make_link, plan_joints
from wmeval.sim.engines.bullet_ropes import BulletRopes
from wmeval.sim.engines.bullet_shapes import (
    HULL_MARGIN,
    BulletShape,
    make_shape,
    principal_inertia,
)
from wmeval.sim.engines.rope_chain import chains
from wmeval.sim.protocol import (
    ContactPoint,
    Driver,
    EngineConfig,
    EngineInfo,
    Probe,
    Quat,
    RayHit,
    StateView,
    Vec,
)
from wmeval.sim.stage import Stage
from wmeval.vectors import negative

OPTIONS: dict[str, tuple[str, float, float]] = {
    # option: (PyBullet parameter, least, greatest)
    "contact_erp": ("contactERP", 0.0, 1.0),
    "friction_erp": ("frictionERP", 0.0, 1.0),
    "contact_slop": ("contactSlop", 0.0, 1.0),
    "cone_friction": ("enableConeFriction", 0, 1),
    "split_impulse": ("useSplitImpulse", 0, 1),
}
_SWITCHES = ("cone_friction", "split_impulse", "maximal_coordinates")
"""Engine options, all numbers. ``contact_erp`` 0.02 or 0 tightens restitution (0.536-0.558 for
0.54) and leaves a resting penetration of a third of a millimetre; the default is PyBullet's."""

_BODY_OPTIONS = {
    "contact_breaking_threshold": ("", 0.0, 1.0),
    "contact_processing_threshold": ("", 0.0, 1.0),
    "hull_margin": ("", 0.0, 0.01),
    "maximal_coordinates": ("", 0, 1),
}
"""Options that bodies are made with; the first is of the process (see `BulletEngine._own`). A hull
collides ``hull_margin`` [m] before it is reached: 1 mm, by which hulls that begin in contact
overlap; less for those."""

BREAKING_THRESHOLD_M = 0.02
"""Bullet's default: the distance at which a contact is given up."""
_MAX_RAYS = 4096
_NEVER_TURNS = 1e12
"""Inertia [kg m2] of an upright body: an impulse of 1 kN s at 1 m turns it at 1e-9 rad/s."""
_ZERO = (0.0, 0.0, 0.0)
_ROPE = -1
"""Stands for a rope's pieces where scene indices do for bodies."""
_NO_CONTACTS = Contacts.empty()
_POINT = struct.Struct("18d")
"""A contact point: bodies a and b, place on b 3, normal 3, distance, normal force, and twice a
friction force with its direction 3."""


@contextlib.contextmanager
def _quiet_import() -> Iterator[None]:
    """PyBullet prints its build time from C when it is imported; keep that off the terminal."""
    sys.stdout.flush()
    saved = os.dup(1), os.dup(2)
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        os.dup2(null, 2)
        yield
    finally:
        # The line waits in C's buffer; it must leave while nobody listens.
        ctypes.CDLL(None).fflush(None)
        os.dup2(saved[0], 1)
        os.dup2(saved[1], 2)
        for descriptor in (*saved, null):
            os.close(descriptor)


def _pybullet() -> ModuleType:
    if "pybullet" in sys.modules:
        return sys.modules["pybullet"]
    with _quiet_import():
        return importlib.import_module("pybullet")


class BulletEngine(Stage):
    """Rigid bodies by PyBullet; also the `SubstepView` of its drivers and a `RayQuery`."""

    _breaking_now: ClassVar[float] = math.nan
    """Breaking threshold [m] that the process's worlds have now."""

    def __init__(self) -> None:
        super().__init__()
        self._p: Any = _pybullet()
        self.info = EngineInfo(
            name="bullet",
            version=importlib.metadata.version("pybullet"),
            body_kinds=("rigid", "joint", "rope"),
            deterministic=True,
            clock="fixed",
            contact_impulses=True,
        )
        self._client: int = -1
        self._rays_client: int = -1

    # --- building -------------------------------------------------------------------------------

    def build(
        self,
        scene: Scene,
        meshes: Meshes,
        config: EngineConfig,
        dt: Fraction,
        drivers: Sequence[Driver],
    ) -> None:
        """Make the scene at state 0 and reset the drivers.

        Raises:
            UserError: an unknown option, a mesh that is missing, or a shape without physics.
        """
        p = self._p
        parameters, body_options = _parameters(config)
        self.close()
        self._client = c = p.connect(p.DIRECT)
        if c < 0:
            raise RuntimeError("PyBullet gave no client: close other worlds (it allows 1024)")
        p.setGravity(*scene.gravity, physicsClientId=c)
        p.setPhysicsEngineParameter(
            fixedTimeStep=float(dt),
            numSolverIterations=config.iterations,
            numSubSteps=0,
            restitutionVelocityThreshold=config.restitution_threshold,
            deterministicOverlappingPairs=1,
            physicsClientId=c,
            **parameters,
        )
        self._scene, self._meshes = scene, meshes
        self._set_stage(scene, dt)
        self._body_threshold = body_options["contact_processing_threshold"]
        self._breaking = body_options["contact_breaking_threshold"]
        self._hull_margin = body_options["hull_margin"]
        self._own()
        self._maximal = bool(body_options["maximal_coordinates"])
        if (scene.joints or scene.deformables) and self._maximal:
            raise UserError(
                "joints and ropes need generalised coordinates: leave out maximal_coordinates"
            )
        self._joints = plan_joints(scene)
        self._linked: set[int] = set()  # PyBullet numbers of bodies that are links
        self._get_pose: Callable[[int, int], tuple[Vec, Quat]] = p.getBasePositionAndOrientation
        self._get_velocity: Callable[[int, int], tuple[Vec, Vec]] = p.getBaseVelocity
        if self._joints.links:
            self._get_pose, self._get_velocity = self._any_pose, self._any_velocity
        # None: the body has no collision geometry or its slot is empty; its state is only data.
        self._ids: list[int | None] = []
        self._index: dict[int, int] = {}  # of a PyBullet number: in order, 0, 1, 2, ...
        self._inertia: dict[int, Vec] = {}
        self._damped: dict[int, tuple[float, float]] = {}
        for i, body in enumerate(scene.bodies):
            self._ids.append(self._add(i, body, meshes))
        for joint in self._joints.constraints:
            make_constraint(p, c, joint, self._end(joint.body), self._end(joint.other))
        ropes = chains(scene, "bullet", self.dt)
        self._ropes = BulletRopes(p, c, self, ropes, self._piece, self._ids) if ropes else None
        self._scene_index = np.array(list(self._index.values()), np.int32)
        self._moving = self._moving_bodies()
        self._poses: dict[int, tuple[Vec, Quat]] = {}
        self._velocities: dict[int, tuple[Vec, Vec]] = {}
        self._put: set[int] = set()  # PyBullet numbers whose state a driver put in this substep
        # Pose and velocity of kinematic bodies that were put with a velocity.
        self._carried: dict[int, tuple[Vec, Quat, Vec, Vec]] = {}
        self._read_key: tuple[frozenset[int] | None, dict[int, int]] | None = None
        self._read_bodies: tuple[int, ...] = ()
        self._pairs_key: tuple[tuple[int, int], ...] | None = None
        self._pairs: frozenset[tuple[int, int]] = frozenset()
        self._reading: list[int] = []
        self._write_ropes()
        self._enter(drivers, self)

    def _add(self, i: int, body: Body, meshes: Meshes) -> int | None:
        p, c = self._p, self._client
        if not body.collision or not body.active:
            if body.motion == "dynamic" and body.active:
                raise UserError(
                    f"body {body.name!r} is dynamic but has no collision shape: add one"
                )
            return None
        if body.name in self._joints.links:
            return self._add_link(i, body, meshes)
        number, shape = self._create(body, meshes, dynamic=self._motion[i] == DYNAMIC)
        w, x, y, z = body.quaternion_wxyz
        if body.upright:
            self._inertia[i] = (_NEVER_TURNS, _NEVER_TURNS, _NEVER_TURNS)
        elif body.mass > 0 and (body.inertia is not None or not shape.exact_inertia):
            self._inertia[i] = principal_inertia(body, meshes)
        self._index[number] = i
        if self._motion[i] == DYNAMIC:
            self._set_mass(i, number, body.mass)
            if self._maximal:
                # The new inertia takes hold when the pose is put.
                p.resetBasePositionAndOrientation(
                    number, body.position, (x, y, z, w), physicsClientId=c
                )
            p.resetBaseVelocity(
                number, body.linear_velocity, body.angular_velocity, physicsClientId=c
            )
        if (body.linear_damping or body.angular_damping) and not self._maximal:
            self._damped[i] = (
                (1.0 - body.linear_damping) ** self.dt,
                (1.0 - body.angular_damping) ** self.dt,
            )
        return number

    def _create(self, body: Body, meshes: Meshes, *, dynamic: bool) -> tuple[int, BulletShape]:
        """Make a free body, with PyBullet's own inertia; its number and its shape."""
        p, c = self._p, self._client
        shape = make_shape(p, c, body, meshes)
        w, x, y, z = body.quaternion_wxyz
        number: int = p.createMultiBody(
            baseMass=body.mass if dynamic else 0.0,
            baseCollisionShapeIndex=shape.index,
            basePosition=body.position,
            baseOrientation=(x, y, z, w),
            useMaximalCoordinates=self._maximal,
            physicsClientId=c,
        )
        if number < 0:
            raise UserError(f"body {body.name!r}: PyBullet could not make it; look at its shapes")
        self._set_surface(number, -1, body, shape.margin)
        return number, shape

    def _piece(self, body: Body) -> int:
        return self._create(body, {}, dynamic=True)[0]

    def vertices(self, name: str) -> NDArray[np.float64]:
        """Vertices (V, 3) [m] of a rope now, world frame.

        Raises:
            UserError: the scene has none of that name.
        """
        self._write_ropes()
        return self._rows.vertices(name)

    def _write_ropes(self) -> None:
        if self._ropes is not None:
            self._ropes.write(self._rows)

    def _points(self, *bodies: int) -> Sequence[Any]:
        """PyBullet's contact points, but for those of ropes."""
        found: Sequence[Any] = self._p.getContactPoints(*bodies, physicsClientId=self._client)
        if self._ropes is None:
            return found
        known = self._index
        return [q for q in found if q[1] in known and q[2] in known]

    def _set_surface(self, number: int, link: int, body: Body, margin: float | None) -> None:
        # Damping and speed limit are of a whole multibody: a call with them leaves its links be.
        of_all = {
            "linearDamping": body.linear_damping if self._maximal else 0.0,
            "angularDamping": body.angular_damping if self._maximal else 0.0,
            "maxJointVelocity": 1e4,
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
            contactProcessingThreshold=self._body_threshold,
            physicsClientId=self._client,
            **(of_all if link == -1 else {}),
        )
        if margin is not None:
            self._p.changeDynamics(
                number,
                link,
                collisionMargin=self._margin(margin),
                physicsClientId=self._client,
            )

    def _margin(self, margin: float) -> float:
        """Collision margin [m] of a mesh."""
        return self._hull_margin if margin == HULL_MARGIN else margin

    def _add_link(self, i: int, body: Body, meshes: Meshes) -> int:
        joint = self._joints.links[body.name]
        made = make_link(self._p, self._client, body, joint, meshes)
        self._set_surface(made.index, LINK, body, made.margin)
        self._linked.add(made.index)
        self._index[made.index] = i
        return made.index

    def _end(self, name: str) -> tuple[int, int, Body]:
        """A body's number and link, for a joint; the world's for no name."""
        if not name:
            return -1, -1, self._scene.bodies[0]
        i = self._scene.index(name)
        number = self._number(i)
        return number, LINK if number in self._linked else -1, self._scene.bodies[i]

    def _any_pose(self, number: int, client: int) -> tuple[Vec, Quat]:
        """Position and ``xyzw`` quaternion of a body, jointed or not."""
        if number not in self._linked:
            found: tuple[Vec, Quat] = self._p.getBasePositionAndOrientation(number, client)
            return found
        state = self._p.getLinkState(
            number, LINK, computeForwardKinematics=1, physicsClientId=client
        )
        return state[0], state[1]

    def _any_velocity(self, number: int, client: int) -> tuple[Vec, Vec]:
        """Linear and angular velocity of a body, jointed or not."""
        if number not in self._linked:
            found: tuple[Vec, Vec] = self._p.getBaseVelocity(number, client)
            return found
        state = self._p.getLinkState(
            number, LINK, computeLinkVelocity=1, computeForwardKinematics=1, physicsClientId=client
        )
        return state[6], state[7]

    def _free(self, body: int, verb: str) -> int:
        """The PyBullet number of a body that no joint holds to the world."""
        number = self._number(body)
        if number in self._linked:
            raise UserError(
                f"body {self._scene.bodies[body].name!r} is held to the world by a joint: engine "
                f"bullet cannot {verb} it"
            )
        return number

    def _set_mass(self, i: int, number: int, mass: float) -> None:
        inertia = self._inertia.get(i)
        extra: dict[str, Any] = {"localInertiaDiagonal": inertia} if inertia and mass > 0 else {}
        self._p.changeDynamics(number, -1, mass=mass, physicsClientId=self._client, **extra)

    def _moving_bodies(self) -> dict[int, int]:
        """Scene index to PyBullet number of what the solver moves."""
        return {
            i: number
            for i, number in enumerate(self._ids)
            if number is not None and self._motion[i] == DYNAMIC
        }

    # --- SubstepView ----------------------------------------------------------------------------

    def _number(self, body: int) -> int:
        number = self._ids[body]
        if number is None:
            raise UserError(
                f"body {self._scene.bodies[body].name!r} has no physics (no collision shape, or an "
                "empty slot): a driver cannot use it"
            )
        return number

    def pose(self, body: int) -> tuple[Vec, Quat]:
        """Position [m] and ``wxyz`` quaternion now."""
        known = self._poses.get(body)
        if known is None:
            number = self._moving.get(body)
            if number is None:
                return self._still_pose(body)
            position, (x, y, z, w) = self._get_pose(number, self._client)
            known = self._poses[body] = (position, (w, x, y, z))
        return known

    def velocity(self, body: int) -> tuple[Vec, Vec]:
        """Linear [m/s] and angular [rad/s] velocity now, world frame."""
        known = self._velocities.get(body)
        if known is None:
            number = self._moving.get(body)
            if number is None:
                return self._still_velocity(body)
            known = self._velocities[body] = self._get_velocity(number, self._client)
        return known

    def contacts(self, body: int, other: int | None = None) -> list[ContactPoint]:
        """Contacts with positive impulse of a body (with another) in the substep just done."""
        a = self._number(body)
        b = -1 if other is None else self._number(other)
        # A query by bodies is cheap, but turns the normal and not the friction when it swaps them:
        # it only tells whether the full list is worth reading.
        asked = (a,) if other is None else (a, b)
        counts = self._counts
        if not any(map(counts, self._points(*asked))):
            return []
        points = []
        for q in self._points():
            first, second = q[1], q[2]
            if not counts(q) or a not in (first, second) or (b >= 0 and b not in (first, second)):
                continue
            impulse, tangential = q[9] * self.dt, _tangential(q, self.dt)
            points.append(
                ContactPoint(body, self._index[second], q[6], q[7], impulse, tangential, q[8])
                if first == a
                else ContactPoint(
                    body,
                    self._index[first],
                    q[5],
                    negative(q[7]),
                    impulse,
                    negative(tangential),
                    q[8],
                )
            )
        return points

    def _counts(self, q: Sequence[Any]) -> bool:
        """Whether a contact point of PyBullet's acted in the substep just done."""
        if not self._maximal:
            return bool(q[9] > 0.0)
        # A point beyond the threshold was not solved and still shows what it did before; friction
        # may outlive its normal force by a substep (warm start).
        return bool(q[8] <= self._body_threshold and (q[9] > 0.0 or q[10] or q[12]))

    def apply_force(self, body: int, force: Vec, at: Vec | None = None) -> None:
        """Force [N] during the next substep, world frame, at a point [m] or the centre of mass."""
        p = self._p
        point = self.pose(body)[0] if at is None else at
        number = self._number(body)
        link = LINK if number in self._linked else -1
        p.applyExternalForce(number, link, force, point, p.WORLD_FRAME, self._client)

    def apply_torque(self, body: int, torque: Vec) -> None:
        """Torque [N m] during the next substep, world frame."""
        p = self._p
        number = self._number(body)
        link = LINK if number in self._linked else -1
        p.applyExternalTorque(number, link, torque, p.WORLD_FRAME, self._client)

    def set_motion(self, body: int, motion: int) -> None:
        """Make a body STATIC, KINEMATIC or DYNAMIC (with the scene's mass, at rest)."""
        number = self._free(body, "hold or release")
        if self._maximal:
            raise UserError(
                f"body {self._scene.bodies[body].name!r} cannot change its motion: leave out the "
                "engine option maximal_coordinates"
            )
        mass = self._scene.bodies[body].mass if motion == DYNAMIC else 0.0
        if motion == DYNAMIC and mass <= 0:
            raise UserError(
                f"body {self._scene.bodies[body].name!r} cannot be released: it has no mass"
            )
        self._set_mass(body, number, mass)
        self._carried.pop(number, None)
        self._p.resetBaseVelocity(number, _ZERO, _ZERO, self._client)
        self._poses.pop(body, None)
        self._velocities.pop(body, None)
        self._motion[body] = motion
        self._moving = self._moving_bodies()
        self._rows.put(body, self._read(number))
        self._rows.set_motion(body, motion)
        self._begin_rows()

    def set_state(
        self, body: int, position: Vec, quaternion: Quat, linear: Vec, angular: Vec
    ) -> None:
        """Put a body's state."""
        if self._data_bodies[body]:
            self._set_data_state(body, position, quaternion, linear, angular)
            return
        if self._showing:
            raise UserError(
                f"show() cannot put body {self._scene.bodies[body].name!r}: it has collision "
                "geometry; put it in before() or after()"
            )
        number = self._free(body, "put")
        p, c = self._p, self._client
        w, x, y, z = quaternion
        p.resetBasePositionAndOrientation(number, position, (x, y, z, w), c)
        p.resetBaseVelocity(number, linear, angular, c)
        self._poses.pop(body, None)
        self._velocities.pop(body, None)
        if self._motion[body] == DYNAMIC:
            self._put.add(number)
        else:
            self._carried[number] = (position, (x, y, z, w), linear, angular)
            if not any(linear) and not any(angular):
                del self._carried[number]
            self._rows.put(body, self._read(number))

    # --- stepping -------------------------------------------------------------------------------

    def _read(self, number: int) -> list[float]:
        position, quaternion = self._get_pose(number, self._client)
        linear, angular = self._get_velocity(number, self._client)
        return [*position, *quaternion, *linear, *angular]

    def _begin_rows(self, probe: Probe | None = None) -> None:
        if probe is not None:
            self._wanted = None if probe.bodies is None else frozenset(probe.bodies)
        key = (self._wanted, self._moving)
        if key != self._read_key:
            wanted = self._wanted
            self._read_key = key
            self._read_bodies = tuple(i for i in self._moving if wanted is None or i in wanted)
            self._reading = [self._moving[i] for i in self._read_bodies]
        self._rows.begin(self._read_bodies)

    def _write_row(self, *, look: bool = True) -> None:
        if look and self._shows:
            self._look()
        self._write_ropes()
        get_pose, get_velocity = self._get_pose, self._get_velocity
        c = self._client
        flat: list[float] = []
        for number in self._reading:
            position, quaternion = get_pose(number, c)
            linear, angular = get_velocity(number, c)
            # One extension of 13 numbers costs less than four short ones.
            flat += (*position, *quaternion, *linear, *angular)
        self._rows.add(self.substep, flat)

    def log(self, probe: Probe) -> tuple[StateLog, CameraLog, LightLog]:
        """The present state as one row."""
        self._begin_rows(probe)
        self._write_row()
        return self._rows.take()

    def advance(
        self, action: Sequence[float], until: int, probe: Probe
    ) -> tuple[StateLog, CameraLog, LightLog, Contacts]:
        """Run substeps up to state ``until`` under one action; rows as the probe asks.

        Raises:
            UserError: ``until`` is not after the present state, or a state is no longer finite.
        """
        first, every = self.substep, probe.states == "substeps"
        points: list[bytes] = []
        counts: list[int] = []
        after = list(self._after)
        if probe.contacts:
            # Read before a driver changes anything; what a driver then undoes is taken out again.
            after.insert(0, self._contact_reader(points, counts, probe.contacts))
            after.append(self._undone_dropper(points, counts))
        if every:
            after.append(BulletEngine._write_row if probe.shown else _row_writer(until))
        self._begin_rows(probe)
        self._steps(action, until, after)
        if not every:
            self._write_row()
        state, cameras, lights = self._rows.take()
        position = state.position[-1]
        if not math.isfinite(float(position.sum())):
            raise self._not_finite(int(np.argmin(np.isfinite(position).all(axis=-1))))
        return state, cameras, lights, self._contacts_of(points, counts, first)

    def run(self, action: Sequence[float], until: int) -> StateView:
        """Run substeps as `advance` does, and keep nothing.

        Returns:
            The present state: this engine.

        Raises:
            UserError: as `advance`.
        """
        self._steps(action, until, self._after)
        get_pose, c, poses = self._get_pose, self._client, self._poses
        total = 0.0
        for body, number in self._moving.items():
            if body in poses:
                px, py, pz = poses[body][0]
            else:
                position, (x, y, z, w) = get_pose(number, c)
                poses[body] = position, (w, x, y, z)
                px, py, pz = position
            total += px + py + pz
        if not math.isfinite(total):
            raise self._not_finite(
                next(i for i in self._moving if not all(map(math.isfinite, poses[i][0])))
            )
        return self

    def _own(self) -> None:
        """Put this world's breaking threshold in force.

        Bullet keeps it in one variable of the process, for all its worlds: without this, a world
        of another scene in the same process would change this one's contacts.
        """
        self._p.setPhysicsEngineParameter(
            contactBreakingThreshold=self._breaking, physicsClientId=self._client
        )
        BulletEngine._breaking_now = self._breaking

    def _steps(
        self,
        action: Sequence[float],
        until: int,
        after: Sequence[_Hook],
    ) -> None:
        if until <= self.substep:
            raise UserError(f"advance to state {until}: the world is already at {self.substep}")
        self.action = tuple(action)  # a caller may reuse its array
        if BulletEngine._breaking_now != self._breaking:
            self._own()
        step: Callable[[int], None] = self._p.stepSimulation
        c, before, damped, ropes = self._client, self._before, self._damped, self._ropes
        poses, velocities, carried = self._poses, self._velocities, self._carried
        self._in_hooks = True
        try:
            while self.substep < until:
                for prepare in before:
                    prepare(self)
                if damped:
                    self._damp()
                if ropes is not None:
                    ropes.pull()
                step(c)
                self.substep += 1
                poses.clear()
                velocities.clear()
                if carried:
                    self._put_back()
                for call in after:
                    call(self)
        finally:
            self._in_hooks = False

    def _put_back(self) -> None:
        """PyBullet moves and brakes a body without mass that has a velocity; a driver moves it."""
        p, c = self._p, self._client
        for number, (position, quaternion, linear, angular) in self._carried.items():
            p.resetBasePositionAndOrientation(number, position, quaternion, c)
            p.resetBaseVelocity(number, linear, angular, c)

    def _not_finite(self, body: int) -> UserError:
        return UserError(
            f"body {self._scene.bodies[body].name!r} left the finite world at t = "
            f"{float(self.substep * self._dt):.4g} s: use a smaller dt or weaker actions"
        )

    def _damp(self) -> None:
        for body, (linear_factor, angular_factor) in self._damped.items():
            if self._motion[body] != DYNAMIC:
                continue
            (vx, vy, vz), (wx, wy, wz) = self.velocity(body)
            k, m = linear_factor, angular_factor
            self._p.resetBaseVelocity(
                self._number(body), (k * vx, k * vy, k * vz), (m * wx, m * wy, m * wz), self._client
            )

    def _pairs_of(self, pairs: tuple[tuple[int, int], ...]) -> frozenset[tuple[int, int]]:
        """Pairs of PyBullet numbers, in both orders."""
        if pairs is not self._pairs_key:
            numbers = [(self._ids[a], self._ids[b]) for a, b in pairs]
            known = [(a, b) for a, b in numbers if a is not None and b is not None]
            self._pairs_key, self._pairs = pairs, frozenset(known + [(b, a) for a, b in known])
        return self._pairs

    def _contact_reader(
        self,
        points: list[bytes],
        counts: list[int],
        wanted: bool | tuple[tuple[int, int], ...],
    ) -> _Hook:
        get_points, pack = self._points, _POINT.pack
        only = None if isinstance(wanted, bool) else self._pairs_of(wanted)
        # As `_counts` says.
        limit = self._body_threshold if self._maximal else math.inf
        sliding = self._maximal

        def read(_: BulletEngine) -> None:
            self._put.clear()
            before = len(points)
            # Packed at once: hundreds of nested tuples kept for later are slow to come back to.
            points.extend(
                [
                    pack(a, b, *place, *normal, gap, force, f, *along, g, *across)
                    for _, a, b, _, _, _, place, normal, gap, force, f, along, g, across in (
                        get_points()
                    )
                    if (force > 0.0 or (sliding and (f or g)))
                    and gap <= limit
                    and (only is None or (a, b) in only)
                ]
            )
            counts.append(len(points) - before)

        return read

    def _undone_dropper(self, points: list[bytes], counts: list[int]) -> _Hook:
        """Takes out a substep's contacts of dynamic bodies that were put: they led to nothing."""

        def drop(_: BulletEngine) -> None:
            if self._put:
                first = len(points) - counts[-1]
                kept = [x for x in points[first:] if self._put.isdisjoint(_POINT.unpack(x)[:2])]
                points[first:] = kept
                counts[-1] = len(kept)

        return drop

    def _contacts_of(self, points: list[bytes], counts: list[int], first: int) -> Contacts:
        """Packed contact points of consecutive substeps, ``first`` and on, as arrays."""
        if not points:
            return _NO_CONTACTS
        table: NDArray[np.float64] = np.frombuffer(b"".join(points)).reshape(len(points), -1)
        ids = self._scene_index[table[:, 0:2].astype(np.intp)]
        f, g = table[:, 10:11] * self.dt, table[:, 14:15] * self.dt
        friction: NDArray[np.float64] = f * table[:, 11:14]
        friction += g * table[:, 15:18]
        return Contacts(
            np.repeat(np.arange(first, first + len(counts)), counts),
            ids[:, 0].copy(),
            ids[:, 1].copy(),
            table[:, 2:5].copy(),
            table[:, 5:8].copy(),
            table[:, 9] * self.dt,
            friction,
            table[:, 8].copy(),
        )

    # --- rays -------------------------------------------------------------------------------

    def raycast(self, origin: Vec, end: Vec, ignore: tuple[int, ...] = ()) -> RayHit | None:
        """The nearest body with collision geometry on a ray, but for those in ``ignore``.

        Hit points lie within 0.3 mm of the surface (PyBullet's convex cast stops that close).
        """
        p, c, index = self._p, self._client, self._index
        hit = p.rayTest(origin, end, physicsClientId=c)[0]
        if hit[0] >= 0 and index.get(hit[0], _ROPE) in (*ignore, _ROPE):
            hit = self._next_hit(origin, end, ignore)
        return RayHit(index[hit[0]], hit[3], hit[4], hit[2]) if hit[0] >= 0 else None

    def _next_hit(self, origin: Vec, end: Vec, ignore: tuple[int, ...]) -> Any:
        """The nearest of all hits of bodies that are not ignored; PyBullet does not sort them."""
        p, c, index = self._p, self._client, self._index
        nearest: Any = (-1, -1, 1.0)
        for rank in range(self._p.getNumBodies(c) * 64):
            hit = p.rayTestBatch((origin,), (end,), reportHitNumber=rank, physicsClientId=c)[0]
            if hit[0] < 0:
                break
            if index.get(hit[0], _ROPE) not in (*ignore, _ROPE) and hit[2] < nearest[2]:
                nearest = hit
        return nearest

    def cast_rays(
        self, origins: NDArray[np.float64], ends: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Body index (-1: none) and hit point (N, 3) [m] of rays (N, 3) -> (N, 3).

        Hit points lie within 0.3 mm of the surface (PyBullet's convex cast stops that close).
        """
        c = self._ray_client()
        bodies = np.full(len(origins), -1, np.int32)
        points = np.array(ends, np.float64)
        for start in range(0, len(origins), _MAX_RAYS):
            part = slice(start, start + _MAX_RAYS)
            hits = self._p.rayTestBatch(
                np.asarray(origins[part]).tolist(),
                np.asarray(ends[part]).tolist(),
                physicsClientId=c,
            )
            for i, hit in enumerate(hits, start):
                if hit[0] >= 0:
                    bodies[i] = self._rays[hit[0]][0]
                    points[i] = hit[3]
        return bodies, points

    def _ray_client(self) -> int:
        """A second client that holds the bodies still where they are now.

        PyBullet casts rays against the boxes that the last step began with, so a ray at a moving
        body may miss it, and refreshing them in the stepped client would touch its contacts.
        """
        p = self._p
        if self._rays_client < 0:
            self._rays_client = c = p.connect(p.DIRECT)
            for i, number in enumerate(self._ids):
                if number is not None:
                    body = self._scene.bodies[i]
                    shape = make_shape(p, c, body, self._meshes)
                    copy = p.createMultiBody(0.0, shape.index, physicsClientId=c)
                    if shape.margin is not None:
                        margin = self._margin(shape.margin)
                        p.changeDynamics(copy, -1, collisionMargin=margin, physicsClientId=c)
                    self._rays[copy] = (i, number)
        c = self._rays_client
        for copy, (_, number) in self._rays.items():
            position, quaternion = self._get_pose(number, self._client)
            p.resetBasePositionAndOrientation(copy, position, quaternion, c)
        p.performCollisionDetection(c)
        return c

    def close(self) -> None:
        """Free everything; idempotent."""
        for client in (self._client, self._rays_client):
            if client >= 0:
                self._p.disconnect(client)
        self._client = self._rays_client = -1
        self._rays: dict[int, tuple[int, int]] = {}

    def __del__(self) -> None:
        # A world that was dropped without close() must not keep one of PyBullet's 1024 clients; at
        # the interpreter's end the modules may be gone already, contextlib too.
        try:  # noqa: SIM105
            self.close()
        except Exception:
            pass


_Hook = Callable[[BulletEngine], None]


def _row_writer(until: int) -> _Hook:
    """Writes rows, and looks at what drivers show for the last one only."""

    def write(engine: BulletEngine) -> None:
        engine._write_row(look=engine.substep == until)

    return write


def _tangential(q: Sequence[Any], dt: float) -> Vec:
    f, (ax, ay, az), g, (bx, by, bz) = q[10], q[11], q[12], q[13]
    f, g = f * dt, g * dt
    return (f * ax + g * bx, f * ay + g * by, f * az + g * bz)


def _parameters(config: EngineConfig) -> tuple[dict[str, float], dict[str, float]]:
    """Settings for PyBullet's world, and those of its bodies."""
    parameters: dict[str, float] = {}
    bodies = dict.fromkeys(_BODY_OPTIONS, 0.0)
    bodies["contact_breaking_threshold"] = BREAKING_THRESHOLD_M
    bodies["hull_margin"] = HULL_MARGIN
    known = {**OPTIONS, **_BODY_OPTIONS}
    for key, value in config.options.items():
        if key not in known:
            raise UserError(f"bullet has no option {key!r}; known: {', '.join(sorted(known))}")
        name, least, greatest = known[key]
        if isinstance(value, bool | str) or not isinstance(value, int | float):
            raise UserError(f"bullet option {key} = {value!r}: give a number")
        if not least <= value <= greatest:
            raise UserError(f"bullet option {key} = {value}: give {least} to {greatest}")
        if key in _BODY_OPTIONS:
            bodies[key] = float(value)
        else:
            parameters[name] = int(value) if key in _SWITCHES else float(value)
    if parameters.get("useSplitImpulse"):
        if not bodies["maximal_coordinates"]:
            raise UserError("bullet option split_impulse needs maximal_coordinates")
        # Every penetration is split off, not only deep ones.
        parameters["splitImpulsePenetrationThreshold"] = 0.0
    return parameters, bodies
