"""A PyBullet world between two substeps: what drivers read and put, and rows of states."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.scene import DYNAMIC, Meshes, Scene
from wmeval.sim.engines.bullet_bodies import BulletBodies
from wmeval.sim.engines.bullet_contacts import BulletContacts
from wmeval.sim.engines.bullet_options import BodyOptions, pybullet
from wmeval.sim.engines.bullet_rays import BulletRays
from wmeval.sim.engines.bullet_ropes import BulletRopes
from wmeval.sim.engines.rope_chain import chains
from wmeval.sim.protocol import ContactPoint, Probe, Quat, RayHit, Vec
from wmeval.sim.stage import Stage

_ZERO = (0.0, 0.0, 0.0)


class BulletView(Stage):
    """The `SubstepView` of a PyBullet client, and a `RayQuery`."""

    def __init__(self) -> None:
        super().__init__()
        self._p: Any = pybullet()
        self._client: int = -1
        self._rays: BulletRays | None = None

    def _add_bodies(self, scene: Scene, meshes: Meshes, options: BodyOptions) -> None:
        """Make bodies, joints and ropes in the client, which has none."""
        p, c = self._p, self._client
        self._bodies = bodies = BulletBodies(p, c, scene, meshes, self.dt, options)
        self._get_pose, self._get_velocity = bodies.read_pose, bodies.read_velocity
        self._ids, self._number = bodies.numbers, bodies.number
        ropes = chains(scene, "bullet", self.dt)
        self._ropes = BulletRopes(p, c, self, ropes, bodies) if ropes else None
        self._touching = BulletContacts(p, c, bodies, self.dt, ropes=bool(ropes))
        self._rays = BulletRays(p, c, bodies)
        self._moving = self._moving_bodies()
        self._poses: dict[int, tuple[Vec, Quat]] = {}
        self._velocities: dict[int, tuple[Vec, Vec]] = {}
        # Pose and velocity of kinematic bodies that were put with a velocity.
        self._carried: dict[int, tuple[Vec, Quat, Vec, Vec]] = {}
        self._read_key: tuple[frozenset[int] | None, dict[int, int]] | None = None
        self._read_bodies: tuple[int, ...] = ()
        self._reading: list[int] = []

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

    def _moving_bodies(self) -> dict[int, int]:
        """Scene index to PyBullet number of what the solver moves."""
        return {
            i: number
            for i, number in enumerate(self._ids)
            if number is not None and self._motion[i] == DYNAMIC
        }

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
        return self._touching.of(body, other)

    def apply_force(self, body: int, force: Vec, at: Vec | None = None) -> None:
        """Force [N] during the next substep, world frame, at a point [m] or the centre of mass."""
        p = self._p
        point = self.pose(body)[0] if at is None else at
        number, link = self._bodies.at(body)
        p.applyExternalForce(number, link, force, point, p.WORLD_FRAME, self._client)

    def apply_torque(self, body: int, torque: Vec) -> None:
        """Torque [N m] during the next substep, world frame."""
        p = self._p
        number, link = self._bodies.at(body)
        p.applyExternalTorque(number, link, torque, p.WORLD_FRAME, self._client)

    def set_motion(self, body: int, motion: int) -> None:
        """Make a body STATIC, KINEMATIC or DYNAMIC (with the scene's mass, at rest)."""
        number = self._bodies.free(body, "hold or release")
        if self._bodies.options.maximal:
            raise UserError(
                f"body {self._scene.bodies[body].name!r} cannot change its motion: leave out the "
                "engine option maximal_coordinates"
            )
        mass = self._scene.bodies[body].mass if motion == DYNAMIC else 0.0
        if motion == DYNAMIC and mass <= 0:
            raise UserError(
                f"body {self._scene.bodies[body].name!r} cannot be released: it has no mass"
            )
        self._bodies.set_mass(body, number, mass)
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
        if self._puts_data(body, position, quaternion, linear, angular):
            return
        number = self._bodies.free(body, "put")
        p, c = self._p, self._client
        w, x, y, z = quaternion
        p.resetBasePositionAndOrientation(number, position, (x, y, z, w), c)
        p.resetBaseVelocity(number, linear, angular, c)
        self._poses.pop(body, None)
        self._velocities.pop(body, None)
        if self._motion[body] == DYNAMIC:
            self._touching.put.add(number)
        else:
            self._carried[number] = (position, (x, y, z, w), linear, angular)
            if not any(linear) and not any(angular):
                del self._carried[number]
            self._rows.put(body, self._read(number))

    def raycast(self, origin: Vec, end: Vec, ignore: tuple[int, ...] = ()) -> RayHit | None:
        """The nearest body with collision geometry on a ray, but for those in ``ignore``.

        Hit points lie within 0.3 mm of the surface (PyBullet's convex cast stops that close).
        """
        assert self._rays is not None
        return self._rays.nearest(origin, end, ignore)

    def cast_rays(
        self, origins: NDArray[np.float64], ends: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Body index (-1: none) and hit point (N, 3) [m] of rays (N, 3) -> (N, 3).

        Hit points lie within 0.3 mm of the surface (PyBullet's convex cast stops that close).
        """
        assert self._rays is not None
        return self._rays.cast(origins, ends)

    def _read(self, number: int) -> list[float]:
        position, quaternion, linear, angular = self._bodies.read_state(number, self._client)
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
        c, read = self._client, self._bodies.read_state if self._bodies.linked else None
        flat: list[float] = []
        for number in self._reading:
            if read is None:
                position, quaternion = get_pose(number, c)
                linear, angular = get_velocity(number, c)
            else:  # what is jointed is asked once
                position, quaternion, linear, angular = read(number, c)
            # One extension of 13 numbers costs less than four short ones.
            flat += (*position, *quaternion, *linear, *angular)
        self._rows.add(self.substep, flat)

    def close(self) -> None:
        """Free everything; idempotent."""
        if self._client >= 0:
            self._p.disconnect(self._client)
        self._client = -1
        if self._rays is not None:
            self._rays.close()
        self._rays = None
