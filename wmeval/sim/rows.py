"""Rows of a running world: what engines share when they write down states and cameras.

An engine reads its bodies into flat Python lists, one row per kept state; arrays are made once per
`take`, since a numpy call costs as much as several engine calls. Bodies that are not read repeat
their last known state.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.records import CameraLog, LightLog, StateLog, WorldLog
from wmeval.scene import MOTIONS, Scene
from wmeval.sim.protocol import Quat, Vec

Pose16 = tuple[float, ...]
ROW_WIDTH = 13
"""Numbers per body and row: position 3, quaternion xyzw 4, linear 3 and angular velocity 3."""


_WXYZ = np.array([6, 3, 4, 5])


def _rows_of(row: NDArray[Any], n: int) -> NDArray[Any]:
    """N equal rows without a copy."""
    return row[None] if n == 1 else np.broadcast_to(row, (n, *row.shape))


def look_at_row(position: Vec, target: Vec) -> Pose16:
    """`wmeval.conventions.look_at` with z up as sixteen numbers, row-major, without numpy.

    Raises:
        UserError: position and target coincide, or the view is vertical.
    """
    px, py, pz = position
    fx, fy, fz = target[0] - px, target[1] - py, target[2] - pz
    distance = math.sqrt(fx * fx + fy * fy + fz * fz)
    side = math.sqrt(fx * fx + fy * fy)
    if distance < 1e-9 or side < 1e-9 * distance:
        raise UserError(f"camera at {position} has no view of {target}: it must not look along z")
    fx, fy, fz = fx / distance, fy / distance, fz / distance
    side /= distance
    rx, ry = fy / side, -fx / side
    # down = forward x right (right has no z)
    dx, dy, dz = -fz * ry, fz * rx, fx * ry - fy * rx
    return (rx, dx, fx, px, ry, dy, fy, py, 0.0, dz, fz, pz, 0.0, 0.0, 0.0, 1.0)


class Rows:
    """Collects states and camera poses of one world."""

    def __init__(self, scene: Scene, dt: Fraction) -> None:
        bodies = scene.bodies
        self._names = tuple(b.name for b in bodies)
        self._dt = dt
        count = len(bodies)
        self._last = np.zeros((count, ROW_WIDTH))
        for i, body in enumerate(bodies):
            w, x, y, z = body.quaternion_wxyz
            self._last[i] = (
                *body.position,
                x,
                y,
                z,
                w,
                *body.linear_velocity,
                *body.angular_velocity,
            )
        self._active = np.array([b.active for b in bodies], bool)
        self._motion = np.array([MOTIONS.index(b.motion) for b in bodies], np.uint8)
        self._camera_names = tuple(c.name for c in scene.cameras)
        self._cameras = [look_at_row(c.position, c.target) for c in scene.cameras]
        self._moved: dict[int, tuple[Vec, Vec]] = {}
        self._fov_y = np.radians([c.fov_y_deg for c in scene.cameras])
        self._sun_direction = np.array(scene.sun.direction)
        self._sun_color = np.array(scene.sun.color) * scene.sun.strength
        self._blocks: list[NDArray[np.float64]] = []
        self._motions: list[NDArray[np.uint8]] = []
        self._flat: list[float] = []
        self._read: NDArray[np.intp] | slice = slice(0, 0)
        self._read_count = 0
        self._reading: Sequence[int] | None = None
        self._substeps: list[int] = []
        self._poses: list[float] = []
        self._open_rows = 0

    def begin(self, bodies: Sequence[int]) -> None:
        """Bodies that every following row reads, in order; closes the rows written before."""
        self._flush()
        if bodies is not self._reading:
            self._reading = bodies
            self._read_count = count = len(bodies)
            first = bodies[0] if count else 0
            # A run of bodies is written as a slice, several times faster than by a list.
            run = tuple(bodies) == tuple(range(first, first + count))
            self._read = slice(first, first + count) if run else np.array(bodies, np.intp)

    def add(self, substep: int, flat: list[float]) -> None:
        """One row: ``ROW_WIDTH`` numbers per body of `begin`."""
        self._substeps.append(substep)
        self._flat += flat
        self._open_rows += 1
        if self._moved:
            self._move_cameras()
        for pose in self._cameras:
            self._poses += pose

    def put(self, body: int, numbers: Sequence[float]) -> None:
        """Last known state (``ROW_WIDTH`` numbers) of a body that no row reads."""
        self._flush()
        self._last[body] = numbers

    def last(self, body: int) -> list[float]:
        """Last known state (``ROW_WIDTH`` numbers) of a body that no row reads."""
        self._flush()
        numbers: list[float] = self._last[body].tolist()
        return numbers

    def set_motion(self, body: int, motion: int) -> None:
        """Motion from the next row on."""
        self._flush()
        self._motion = self._motion.copy()
        self._motion[body] = motion

    def set_camera(self, camera: int, position: Vec, target: Vec) -> None:
        """Pose from the next row on."""
        self._moved[camera] = (position, target)

    def camera(self, camera: int) -> Pose16:
        """Pose now."""
        if self._moved:
            self._move_cameras()
        return self._cameras[camera]

    def _move_cameras(self) -> None:
        # Not in `set_camera`: a camera is put at every substep and looked through at few.
        for camera, (position, target) in self._moved.items():
            self._cameras[camera] = look_at_row(position, target)
        self._moved.clear()

    def _flush(self) -> None:
        rows = self._open_rows
        if not rows:
            return
        if rows == 1:
            block = self._last[None].copy()
        else:
            block = np.empty((rows, len(self._names), ROW_WIDTH))
            block[:] = self._last
        if self._read_count:
            block[:, self._read] = np.array(self._flat).reshape(rows, self._read_count, ROW_WIDTH)
        self._last = block[-1].copy()
        self._blocks.append(block)
        self._motions.append(_rows_of(self._motion, rows))
        self._flat = []
        self._open_rows = 0

    def take(self) -> tuple[StateLog, CameraLog, LightLog]:
        """All rows since the last call."""
        self._flush()
        n = len(self._substeps)
        one = len(self._blocks) == 1
        block = self._blocks[0] if one else np.concatenate(self._blocks)
        motion = self._motions[0] if one else np.concatenate(self._motions)
        state = StateLog(
            self._names,
            self._dt,
            np.array(self._substeps, np.int64),
            block[:, :, 0:3],
            block.take(_WXYZ, axis=2),
            block[:, :, 7:10],
            block[:, :, 10:13],
            _rows_of(self._active, n),
            motion,
        )
        count = len(self._cameras)
        cameras = CameraLog(
            self._camera_names,
            _rows_of(self._fov_y, n),
            np.array(self._poses).reshape(n, count, 4, 4),
        )
        lights = LightLog(_rows_of(self._sun_direction, n), _rows_of(self._sun_color, n))
        self._blocks, self._motions, self._substeps, self._poses = [], [], [], []
        return state, cameras, lights


class LastRow:
    """The last row of a log as a `StateView`."""

    def __init__(self, log: WorldLog) -> None:
        state = log.state
        self._position = state.position[-1].tolist()
        self._quaternion = state.quaternion_wxyz[-1].tolist()
        self._linear = state.linear_velocity[-1].tolist()
        self._angular = state.angular_velocity[-1].tolist()
        self._motion = state.motion[-1].tolist()
        self._cameras = log.cameras.T_world_camera[-1]

    def pose(self, body: int) -> tuple[Vec, Quat]:
        """Position [m] and ``wxyz`` quaternion."""
        return self._position[body], self._quaternion[body]

    def velocity(self, body: int) -> tuple[Vec, Vec]:
        """Linear [m/s] and angular [rad/s] velocity, world frame."""
        return self._linear[body], self._angular[body]

    def motion(self, body: int) -> int:
        """STATIC, KINEMATIC or DYNAMIC."""
        motion: int = self._motion[body]
        return motion

    def camera(self, camera: int) -> tuple[float, ...]:
        """``T_world_camera``, sixteen numbers, row-major."""
        return tuple(self._cameras[camera].ravel().tolist())
