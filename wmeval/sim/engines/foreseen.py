"""Drivers run beforehand, without physics: for engines that are given a whole job, not substeps.

What drivers lead (kinematic bodies, data bodies, cameras, lights, modal state) is a function of
time and action wherever they read nothing that physics decides. Then it can be tabulated before a
solver starts. A driver that asks for the state of a dynamic body, for contacts or rays, or pushes,
is refused in one line.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

import numpy as np
from numpy.typing import NDArray

from wmeval.deformables import rest_shape
from wmeval.errors import UserError
from wmeval.records import StateLog, WorldLog
from wmeval.scene import DYNAMIC, KINEMATIC, Meshes, Scene
from wmeval.sim.drivers.imposed import Kick
from wmeval.sim.protocol import ContactPoint, Driver, Quat, RayHit, Vec
from wmeval.sim.stage import Stage

Stretch = tuple[tuple[float, ...], int]
"""An action, and the state up to which it is in force."""


@dataclass(frozen=True, eq=False)
class Foreseen:
    """What is known before physics runs.

    Attributes:
        led: scene indices of the kinematic bodies.
        poses: (S + 1, L, 7) position [m] and ``wxyz`` quaternion of each at every state, from the
            first that settles on.
        log: of the wanted states; dynamic bodies and deformables are as at the start.
        velocities: by body, what a kick gives it at state 0 [m/s].
        damped: bodies that lose the share ``1 - keep`` of their velocity in each substep before.
        keep: see there.
    """

    led: tuple[int, ...]
    poses: NDArray[np.float64]
    log: WorldLog
    velocities: dict[int, Vec]
    damped: tuple[int, ...]
    keep: float


class Foreseer(Stage):
    """The `SubstepView` of drivers that run without physics.

    Args:
        engine: whose name errors carry.
        scene: the world at t = 0.
        meshes: by content hash.
        dt: substep [s].
        drivers: reset here.
        settle: substeps before state 0.

    Raises:
        UserError: a driver needs physics, or names a body that it cannot have.
    """

    def __init__(
        self,
        engine: str,
        scene: Scene,
        meshes: Meshes,
        dt: Fraction,
        drivers: Sequence[Driver],
        settle: int = 0,
    ) -> None:
        super().__init__()
        self._engine = engine
        self._set_stage(scene, dt)
        self._set_out(scene)
        for item in scene.deformables:
            self._rows.put_vertices(item.name, rest_shape(item, meshes).vertices)
        self._kicks = [(d.params, *d.bodies(scene)) for d in drivers if isinstance(d, Kick)]
        self._rows.begin(())
        self.substep = -settle
        self._enter([d for d in drivers if not isinstance(d, Kick)], self)

    def _set_out(self, scene: Scene) -> None:
        self._led = tuple(i for i, m in enumerate(self._motion) if m == KINEMATIC)
        for i, body in enumerate(scene.bodies):
            moving = any(body.linear_velocity) or any(body.angular_velocity)
            if self._motion[i] != DYNAMIC and body.collision and moving:
                raise UserError(
                    f"body {body.name!r} moves by a velocity of its own and is not dynamic: engine "
                    f"{self._engine} wants it led by a driver"
                )

    def foresee(self, stretches: Sequence[Stretch], wanted: Sequence[int]) -> Foreseen:
        """Run the drivers through all substeps.

        Args:
            stretches: in order; the first begins at state 0.
            wanted: states to log, ascending, from 0.

        Raises:
            UserError: a driver needs physics.
        """
        poses = [self._led_poses()]
        keep = frozenset(wanted)
        if self.substep == 0 and 0 in keep:
            self._log_row()
        for action, until in [((), 0), *stretches]:
            self.action = action
            while self.substep < until:
                self._in_hooks = True
                for before in self._before:
                    before(self)
                self.substep += 1
                for after in self._after:
                    after(self)
                self._in_hooks = False
                poses.append(self._led_poses())
                if self.substep in keep:
                    self._log_row()
        return Foreseen(
            self._led,
            np.array(poses, np.float64).reshape(len(poses), len(self._led), 7),
            WorldLog(*self._rows.take()),
            {i: v for _, kicked, _ in self._kicks for i, v in kicked},
            tuple(i for _, _, damped in self._kicks for i in damped),
            min(((1.0 - p.damping) ** self.dt for p, _, d in self._kicks if d), default=1.0),
        )

    def _log_row(self) -> None:
        self._look()
        self._rows.add(self.substep, [])

    def _led_poses(self) -> list[tuple[float, ...]]:
        return [(*p, *q) for p, q in (self._still_pose(i) for i in self._led)]

    # --- SubstepView ------------------------------------------------------------------------------

    def pose(self, body: int) -> tuple[Vec, Quat]:
        """Pose of a body that physics does not move."""
        self._known(body, "reads the pose of")
        return self._still_pose(body)

    def velocity(self, body: int) -> tuple[Vec, Vec]:
        """Velocity of a body that physics does not move."""
        self._known(body, "reads the velocity of")
        return self._still_velocity(body)

    def set_state(
        self, body: int, position: Vec, quaternion: Quat, linear: Vec, angular: Vec
    ) -> None:
        """Lead a kinematic or data body.

        Raises:
            UserError: physics moves the body or nothing does, or `show` puts one that collides.
        """
        self._known(body, "puts")
        if self._puts_data(body, position, quaternion, linear, angular):
            return
        if self._motion[body] != KINEMATIC:
            self._refuse(f"puts the static body {self._scene.bodies[body].name!r}")
        w, x, y, z = quaternion
        self._rows.put(body, (*position, x, y, z, w, *linear, *angular))

    def _known(self, body: int, verb: str) -> None:
        if self._motion[body] == DYNAMIC and not self._data_bodies[body]:
            self._refuse(f"{verb} the dynamic body {self._scene.bodies[body].name!r}")

    def _refuse(self, what: str) -> NoReturn:
        raise UserError(
            f"scene {self._scene.name!r} has a driver that {what}: engine {self._engine} runs "
            "whole jobs whose motions are known beforehand; run it with bullet"
        )

    def vertices(self, name: str) -> NDArray[np.float64]:
        """Vertices are physics' own."""
        self._refuse(f"reads the vertices of {name!r}")

    def contacts(self, body: int, other: int | None = None) -> list[ContactPoint]:
        """Contacts are physics' own."""
        self._refuse("reads contacts")

    def raycast(self, origin: Vec, end: Vec, ignore: tuple[int, ...] = ()) -> RayHit | None:
        """Rays need physics."""
        self._refuse("casts rays")

    def apply_force(self, body: int, force: Vec, at: Vec | None = None) -> None:
        """Pushes need a body's state to be of use."""
        self._refuse("pushes bodies")

    def apply_torque(self, body: int, torque: Vec) -> None:
        """As `apply_force`."""
        self._refuse("turns bodies")

    def set_motion(self, body: int, motion: int) -> None:
        """A body stays what it is."""
        self._refuse("holds or releases bodies")


def merged(known: Foreseen, arrays: dict[str, NDArray[np.float64]], scene: Scene) -> WorldLog:
    """The log with what physics answered: ``position`` ... (N, B, ...) and ``vertices/name``."""
    state = known.log.state
    moved = np.array([i for i, b in enumerate(scene.bodies) if b.motion == "dynamic"], np.intp)
    made = {n: np.array(getattr(state, n)) for n in StateLog.ARRAYS}
    for name in ("position", "quaternion_wxyz", "linear_velocity", "angular_velocity"):
        made[name][:, moved] = arrays[name][:, moved]
        # What is known beforehand stays, but a solver that lost it has diverged.
        made[name][~np.isfinite(arrays[name])] = np.nan
    vertices = {d.name: np.array(arrays[f"vertices/{d.name}"], float) for d in scene.deformables}
    log = StateLog(state.bodies, state.dt, **made, modal=state.modal, vertices=vertices)
    return WorldLog(log, known.log.cameras, known.log.lights)


__all__ = ["Foreseen", "Foreseer", "Stretch", "merged"]
