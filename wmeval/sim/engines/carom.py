"""Carom billiards, event-driven: the same results for every substep, control and picture rate.

Balls move in closed form from event to event (`carom_motion`, `carom_table`), meet as published
models say (`carom_collisions`) and are read from a scene by the rules of `carom_scene`. A substep
is only a time at which somebody may look or act: `EngineConfig.iterations` and
`EngineConfig.restitution_threshold` do not apply, since nothing is iterated and all bounces.
Drivers act on balls by `set_state` at the time of a substep; a force that lasts a substep would
depend on its length, and is refused.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import Box, Meshes, Scene
from wmeval.sim.engines.carom_motion import BallState
from wmeval.sim.engines.carom_rays import cast_at_boxes, cast_at_spheres
from wmeval.sim.engines.carom_scene import ball_state, check_places, read_table
from wmeval.sim.engines.carom_spec import Impact
from wmeval.sim.engines.carom_table import Table
from wmeval.sim.engines.stepped import Point, SteppedEngine
from wmeval.sim.protocol import (
    BodyMechanics,
    Driver,
    EngineConfig,
    EngineInfo,
    Probe,
    Quat,
    RayHit,
    Vec,
)


class CaromEngine(SteppedEngine):
    """Balls on a table; also the `SubstepView` of its drivers, `RayQuery`, `MechanicsQuery`.

    Attributes:
        table: the balls, with every phase of their motion so far.
    """

    table: Table

    def __init__(self) -> None:
        super().__init__()
        self.info = EngineInfo(
            name="carom",
            version="1",
            body_kinds=("rigid",),
            deterministic=True,
            clock="exact",
            contact_impulses=True,
        )

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
            UserError: an unknown option, something that is no table, or balls that overlap.
        """
        self._given = given = read_table(scene, config)
        self._set_stage(scene, dt)
        self.table = Table(given.spec, given.states, given.rotations)
        self._balls = {body: ball for ball, body in enumerate(given.balls)}
        self._bodies = given.balls
        self._placed = False
        self._impacts: list[Impact] = []
        self._undone = set()
        self._vertices_stale = False
        self._told: tuple[int, ...] = self._bodies
        self._enter(drivers, self)
        self._check_places()

    # --- mechanics ------------------------------------------------------------------------------

    def mechanics(self, time: float) -> dict[str, BodyMechanics]:
        """Momentum and kinetic energy of every ball, by name, at ANY time [s] up to the present.

        Exact: of the closed form of the phase in which the time lies, not of the nearest state.

        Raises:
            UserError: a time before 0 or after the present.
        """
        try:
            found = self.table.mechanics(time)
        except ValueError as error:
            raise UserError(f"carom: {error}") from error
        names = [self._scene.bodies[i].name for i in self._bodies]
        return dict(zip(names, found, strict=True))

    # --- SubstepView ----------------------------------------------------------------------------

    def pose(self, body: int) -> tuple[Vec, Quat]:
        """Position [m] and ``wxyz`` quaternion now."""
        ball = self._balls.get(body)
        if ball is None:
            return self._still_pose(body)
        s = self.table.state(ball, self.table.now)
        return (s.x, s.y, self._given.height), self.table.rotation(ball)

    def velocity(self, body: int) -> tuple[Vec, Vec]:
        """Linear [m/s] and angular [rad/s] velocity now, world frame."""
        ball = self._balls.get(body)
        if ball is None:
            return self._still_velocity(body)
        s = self.table.state(ball, self.table.now)
        return (s.vx, s.vy, 0.0), (s.wx, s.wy, s.wz)

    def apply_force(self, body: int, force: Vec, at: Vec | None = None) -> None:
        """Refused.

        Raises:
            UserError: always.
        """
        raise self._refused("force")

    def apply_torque(self, body: int, torque: Vec) -> None:
        """Refused.

        Raises:
            UserError: always.
        """
        raise self._refused("torque")

    def _refused(self, what: str) -> UserError:
        return UserError(
            f"carom: no {what} acts during a substep, since what happens must not depend on its "
            "length: strike a ball by set_state"
        )

    def set_motion(self, body: int, motion: int) -> None:
        """Refused, but for the motion that a body has.

        Raises:
            UserError: balls move and tables stand.
        """
        if motion != self._motion[body]:
            raise UserError(
                f"carom: {self._scene.bodies[body].name!r} cannot change its kind of motion"
            )

    def set_state(
        self, body: int, position: Vec, quaternion: Quat, linear: Vec, angular: Vec
    ) -> None:
        """Put a ball on the table, or a data body anywhere.

        Raises:
            UserError: a ball off the cloth, or a body that stands.
        """
        if self._puts_data(body, position, quaternion, linear, angular):
            return
        ball = self._balls.get(body)
        if ball is None:
            name = self._scene.bodies[body].name
            raise UserError(f"carom: {name!r} stands where it is: only balls are put")
        state = ball_state(self._scene, body, self._given.height, position, linear, angular)
        rotation = None if quaternion == self.table.rotation(ball) else quaternion
        self.table.put(ball, state, rotation)
        self._undone.add(body)
        self._placed = True

    def _check_places(self) -> None:
        """After balls were put: all of them together must fit."""
        table, self._placed = self.table, False
        states = tuple(table.state(i, table.now) for i in range(len(table)))
        check_places(self._scene, table.spec, self._bodies, states)

    # --- stepping -------------------------------------------------------------------------------

    def _steps(
        self, until: int, write: Callable[[], None] | None, found: list[tuple[Any, ...]] | None
    ) -> None:
        """As `SteppedEngine`, but that a state is read only where somebody wants it."""
        table, before, after = self.table, self._before, self._after
        up, down = self._dt.numerator, self._dt.denominator
        self._in_hooks = True
        try:
            while self.substep < until:
                for prepare in before:
                    prepare(self)
                if self._placed:
                    self._check_places()
                table.impacts.clear()
                # Correctly rounded, so that a time has one float whatever the substep.
                table.advance((self.substep + 1) * up / down)
                self.substep += 1
                if after or found is not None:
                    self._impacts = list(table.impacts)
                    self._undone.clear()
                    for call in after:
                        call(self)
                    if found is not None:
                        # What a driver put undoes the impacts that led there.
                        undone, n = self._undone, self.substep - 1
                        found += [(n, *p) for p in self._points() if undone.isdisjoint(p[:2])]
                else:
                    self._impacts = table.impacts
                if write is not None:
                    write()
        finally:
            self._in_hooks = False

    def _points(self) -> list[Point]:
        return [self._point(impact) for impact in self._impacts]

    def _point(self, impact: Impact) -> Point:
        if impact.b is not None:
            other = self._bodies[impact.b]
        else:
            assert impact.cushion is not None
            other = self._given.cushions[impact.cushion]
        x, y, z = impact.position
        floor = self._given.height - self.table.spec.radius
        return (
            self._bodies[impact.a], other, (x, y, z + floor), impact.normal,
            impact.normal_impulse, impact.tangential_impulse, impact.distance,
        )  # fmt: skip

    def _begin(self, probe: Probe | None = None) -> None:
        wanted = None if probe is None else probe.bodies
        self._told = tuple(i for i in self._bodies if wanted is None or i in wanted)
        self._rows.begin(self._told)

    def _write(self, *, look: bool) -> None:
        self._look()
        table, z = self.table, self._given.height
        flat: list[float] = []
        for body in self._told:
            ball = self._balls[body]
            s: BallState = table.state(ball, table.now)
            qw, qx, qy, qz = table.rotation(ball)
            flat += (s.x, s.y, z, qx, qy, qz, qw, s.vx, s.vy, 0.0, s.wx, s.wy, s.wz)
        self._rows.add(self.substep, flat)

    # --- rays -----------------------------------------------------------------------------------

    def raycast(self, origin: Vec, end: Vec, ignore: tuple[int, ...] = ()) -> RayHit | None:
        """The nearest body with collision geometry on a ray, but for those in ``ignore``: exact."""
        start, way = np.array([origin]), np.array([end]) - np.array([origin])
        bodies, t, normals = self._rays(start, way)
        t[0, [k for k, body in enumerate(bodies) if body in ignore]] = np.inf
        k = int(t[0].argmin())
        fraction = float(t[0, k])
        if not math.isfinite(fraction):
            return None
        x, y, z = (start[0] + fraction * way[0]).tolist()
        nx, ny, nz = normals[0, k].tolist()
        return RayHit(bodies[k], (x, y, z), (nx, ny, nz), fraction)

    def cast_rays(
        self, origins: NDArray[np.float64], ends: NDArray[np.float64]
    ) -> tuple[NDArray[np.int32], NDArray[np.float64]]:
        """Body index (-1: none) and hit point (N, 3) [m] of rays (N, 3) -> (N, 3): exact."""
        start = np.asarray(origins, np.float64)
        way = np.asarray(ends, np.float64) - start
        bodies, t, _ = self._rays(start, way)
        nearest = t.argmin(axis=1)
        fraction = t[np.arange(len(t)), nearest]
        hit = np.isfinite(fraction)
        found = np.where(hit, np.array(bodies, np.int32)[nearest], -1).astype(np.int32)
        return found, start + np.where(hit, fraction, 1.0)[:, None] * way

    def _rays(
        self, origins: NDArray[np.float64], ways: NDArray[np.float64]
    ) -> tuple[list[int], NDArray[np.float64], NDArray[np.float64]]:
        """Bodies (B), fractions (N, B) and normals (N, B, 3)."""
        centres = np.array([self.pose(i)[0] for i in self._bodies])
        spheres = cast_at_spheres(origins, ways, centres, self.table.spec.radius)
        standing = [
            (i, b, part.shape)
            for i, b in enumerate(self._scene.bodies)
            for part in b.collision
            if isinstance(part.shape, Box) and b.active
        ]
        boxes = cast_at_boxes(
            origins,
            ways,
            np.array([b.position for _, b, _ in standing]),
            np.array([quaternion_to_matrix(np.array(b.quaternion_wxyz)).T for _, b, _ in standing]),
            np.array([shape.half_extents for _, _, shape in standing]),
        )
        return (
            [*self._bodies, *(i for i, _, _ in standing)],
            np.concatenate([spheres[0], boxes[0]], axis=1),
            np.concatenate([spheres[1], boxes[1]], axis=1),
        )
