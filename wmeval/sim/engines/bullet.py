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
- The velocity limit per coordinate is raised from 100 to 10,000, but not for bodies of generalised
  coordinates whose moments of inertia are unequal: Bullet steps their gyroscopic torque explicitly,
  so that tumbling gives them energy (a brick of 30 rad/s has twice its own after a second at
  180 Hz), the more the faster they are, and without a limit they spin ever faster.

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

import importlib.metadata
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import ClassVar

import numpy as np

from wmeval.errors import NotFiniteError
from wmeval.records import CameraLog, Contacts, LightLog, StateLog
from wmeval.scene import DYNAMIC, Meshes, Scene
from wmeval.sim.engines.bullet_options import parameters
from wmeval.sim.engines.bullet_view import BulletView
from wmeval.sim.protocol import Driver, EngineConfig, EngineInfo, Probe, StateView


class BulletEngine(BulletView):
    """Rigid bodies by PyBullet; also the `SubstepView` of its drivers and a `RayQuery`.

    How bodies are made is in `BulletBodies`, contacts in `BulletContacts`, rays in `BulletRays`;
    what drivers read and put, in `BulletView`.
    """

    _breaking_now: ClassVar[float] = math.nan
    """Breaking threshold [m] that the process's worlds have now."""

    def __init__(self) -> None:
        super().__init__()
        self.info = EngineInfo(
            name="bullet",
            version=importlib.metadata.version("pybullet"),
            body_kinds=("rigid", "joint", "rope"),
            deterministic=True,
            clock="fixed",
            contact_impulses=True,
        )

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
        world, options = parameters(config)
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
            **world,
        )
        self._set_stage(scene, dt)
        self._breaking = options.breaking_threshold
        self._own()
        self._add_bodies(scene, meshes, options)
        self._write_ropes()
        self._enter(drivers, self)

    # --- stepping -------------------------------------------------------------------------------

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
            after.insert(0, self._touching.reader(points, counts, probe.contacts))
            after.append(self._touching.dropper(points, counts))
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
        return state, cameras, lights, self._touching.arrays(points, counts, first)

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
        self._check_ahead(until)
        self.action = tuple(action)  # a caller may reuse its array
        if BulletEngine._breaking_now != self._breaking:
            self._own()
        step: Callable[[int], None] = self._p.stepSimulation
        c, before, damped, ropes = self._client, self._before, self._bodies.damped, self._ropes
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

    def _not_finite(self, body: int) -> NotFiniteError:
        return NotFiniteError(
            f"body {self._scene.bodies[body].name!r} left the finite world at t = "
            f"{float(self.substep * self._dt):.4g} s: use a smaller dt or weaker actions"
        )

    def _damp(self) -> None:
        for body, (linear_factor, angular_factor) in self._bodies.damped.items():
            if self._motion[body] != DYNAMIC:
                continue
            (vx, vy, vz), (wx, wy, wz) = self.velocity(body)
            k, m = linear_factor, angular_factor
            self._p.resetBaseVelocity(
                self._number(body), (k * vx, k * vy, k * vz), (m * wx, m * wy, m * wz), self._client
            )

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
