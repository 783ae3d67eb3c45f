"""Rows of a running world: what engines share when they write down states, cameras and lights.

An engine reads its bodies into flat Python lists, one row per kept state; arrays are made once per
`take`, since a numpy call costs as much as several engine calls. Bodies that are not read repeat
their last known state, which may be put between rows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Generic, TypeVar

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
# Columns of `set_states` numbers (quaternion wxyz) in the order of a row (quaternion xyzw).
_FROM_WXYZ = np.array([0, 1, 2, 4, 5, 6, 3, 7, 8, 9, 10, 11, 12])

T = TypeVar("T")


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


class Held(Generic[T]):
    """A value that holds from row to row until another is put: its runs, not its repetitions.

    Attributes:
        value: as plain numbers.
    """

    def __init__(self, value: T, dtype: str = "float64") -> None:
        self.value = value
        self._dtype = dtype
        self._array: NDArray[Any] | None = None
        self._values: list[T] = [value]
        self._starts = [0]

    def put(self, value: T, row: int) -> None:
        """Another value from ``row`` on: as many rows as have been written since `take`."""
        self.value = value
        if self._starts[-1] == row:
            self._values[-1] = value
        else:
            self._values.append(value)
            self._starts.append(row)
        self._array = None

    def take(self, rows: int) -> NDArray[Any]:
        """The value at each of the rows since the last call, (rows, ...)."""
        if len(self._values) == 1:
            if self._array is None:
                self._array = np.array(self.value, self._dtype)
            return _rows_of(self._array, rows)
        runs = np.diff([*self._starts, rows])
        out: NDArray[Any] = np.repeat(np.array(self._values, self._dtype), runs, axis=0)
        self._values, self._starts, self._array = [self.value], [0], None
        return out


class Rows:
    """Collects states, cameras and lights of one world."""

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
        self._active = Held([b.active for b in bodies], "bool")
        self._motion = Held([MOTIONS.index(b.motion) for b in bodies], "uint8")
        self._camera_names = tuple(c.name for c in scene.cameras)
        self._cameras = [look_at_row(c.position, c.target) for c in scene.cameras]
        self._moved: dict[int, tuple[Vec, Vec]] = {}
        self._fov_y = Held([math.radians(c.fov_y_deg) for c in scene.cameras])
        sun, sky = scene.sun, scene.sky
        self._sun_direction: Held[Vec] = Held(sun.direction)
        self._sun_color: Held[Vec] = Held(_times(sun.color, sun.strength))
        self._sky: Held[tuple[Vec, Vec, Vec]] = Held(
            (
                _times(sky.zenith, sky.strength),
                _times(sky.horizon, sky.strength),
                _times(sky.ground, sky.strength),
            )
        )
        self._modal: dict[str, Held[tuple[float, ...]]] = {
            m.name: Held((0.0,) * m.size) for m in scene.modal
        }
        # Of each deformable: where its vertices are now, and at each row.
        self._vertices: dict[str, NDArray[np.float64]] = {}
        self._shapes: dict[str, list[NDArray[np.float64]]] = {}
        self._blocks: list[NDArray[np.float64]] = []
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
        for name, shapes in self._shapes.items():
            shapes.append(self._vertices[name])

    def put_vertices(self, name: str, vertices: NDArray[np.float64]) -> None:
        """Vertices (V, 3) of a deformable from the next row on: an array that stays as it is."""
        self._vertices[name] = vertices
        self._shapes.setdefault(name, [])

    def vertices(self, name: str) -> NDArray[np.float64]:
        """Vertices (V, 3) of a deformable now.

        Raises:
            UserError: there is none of that name.
        """
        if name not in self._vertices:
            known = ", ".join(self._vertices) or "none"
            raise UserError(f"the scene has no deformable {name!r}; there are: {known}")
        return self._vertices[name]

    # --- bodies that no row reads -----------------------------------------------------------------

    def put(self, body: int, numbers: Sequence[float]) -> None:
        """Last known state (``ROW_WIDTH`` numbers) of a body that no row reads."""
        if self._open_rows:
            self._flush()
        self._last[body] = numbers

    def put_many(self, bodies: NDArray[np.intp], numbers: NDArray[np.float64]) -> None:
        """Last known states (n, 13) of bodies (n,) that no row reads; quaternions ``wxyz``."""
        if self._open_rows:
            self._flush()
        self._last[bodies] = numbers[:, _FROM_WXYZ]

    def last(self, body: int) -> list[float]:
        """Last known state (``ROW_WIDTH`` numbers) of a body that no row reads."""
        numbers: list[float] = self._last[body].tolist()
        return numbers

    # --- what holds until it is put again ---------------------------------------------------------

    def set_motion(self, body: int, motion: int) -> None:
        """Motion from the next row on."""
        motions = self._motion.value.copy()
        motions[body] = motion
        self._motion.put(motions, len(self._substeps))

    def set_active(self, body: int, on: bool) -> None:
        """Presence from the next row on."""
        active = self._active.value.copy()
        active[body] = on
        self._active.put(active, len(self._substeps))

    def active(self, body: int) -> bool:
        """Presence now."""
        return self._active.value[body]

    def set_camera(
        self, camera: int, position: Vec, target: Vec, fov_y: float | None = None
    ) -> None:
        """Pose, and field of view [rad] if one is given, from the next row on."""
        self._moved[camera] = (position, target)
        if fov_y is not None and fov_y != self._fov_y.value[camera]:
            if not 0.0 < fov_y < math.pi:
                raise UserError(
                    f"camera {self._camera_names[camera]!r}: fov_y = {fov_y} rad is not in (0, pi)"
                )
            angles = self._fov_y.value.copy()
            angles[camera] = fov_y
            self._fov_y.put(angles, len(self._substeps))

    def camera(self, camera: int) -> Pose16:
        """Pose now."""
        if self._moved:
            self._move_cameras()
        return self._cameras[camera]

    def set_camera_pose(self, camera: int, pose: Pose16) -> None:
        """Pose as it is, from the next row on."""
        self._moved.pop(camera, None)
        self._cameras[camera] = pose

    def fov_y(self, camera: int) -> float:
        """Vertical field of view now [rad]."""
        return self._fov_y.value[camera]

    def _move_cameras(self) -> None:
        # Not in `set_camera`: a camera is put at every substep and looked through at few.
        for camera, (position, target) in self._moved.items():
            self._cameras[camera] = look_at_row(position, target)
        self._moved.clear()

    def set_sun(self, direction: Vec, color: Vec) -> None:
        """Sun from the next row on; the direction is made unit.

        Raises:
            UserError: the direction has no length.
        """
        x, y, z = direction
        length = math.sqrt(x * x + y * y + z * z)
        if not 1e-9 < length < math.inf:
            raise UserError(f"the sun's direction {direction} has no length")
        row = len(self._substeps)
        self._sun_direction.put((x / length, y / length, z / length), row)
        self._sun_color.put(color, row)

    def sun(self) -> tuple[Vec, Vec]:
        """Direction and colour now."""
        return self._sun_direction.value, self._sun_color.value

    def set_sky(self, zenith: Vec, horizon: Vec, ground: Vec) -> None:
        """Sky from the next row on."""
        self._sky.put((zenith, horizon, ground), len(self._substeps))

    def sky(self) -> tuple[Vec, Vec, Vec]:
        """Zenith, horizon and ground now."""
        return self._sky.value

    def set_modal(self, name: str, values: Sequence[float]) -> None:
        """Named extra state from the next row on.

        Raises:
            UserError: no such state is declared, or one of another size.
        """
        held = self._modal_of(name)
        numbers = tuple(values)
        if len(numbers) != len(held.value):
            raise UserError(
                f"modal state {name!r} holds {len(held.value)} numbers, got {len(numbers)}"
            )
        held.put(numbers, len(self._substeps))

    def modal(self, name: str) -> tuple[float, ...]:
        """Named extra state now.

        Raises:
            UserError: no such state is declared.
        """
        return self._modal_of(name).value

    def _modal_of(self, name: str) -> Held[tuple[float, ...]]:
        held = self._modal.get(name)
        if held is None:
            known = ", ".join(self._modal) or "none"
            raise UserError(f"the scene declares no modal state {name!r}; there are: {known}")
        return held

    # --- rows to arrays ---------------------------------------------------------------------------

    def _flush(self) -> None:
        rows = self._open_rows
        if not rows:
            return
        read, count = self._read, self._read_count
        if rows == 1:
            if count:
                self._last[read] = np.array(self._flat).reshape(count, ROW_WIDTH)
            block = self._last[None].copy()
        else:
            block = np.empty((rows, len(self._names), ROW_WIDTH))
            block[:] = self._last
            if count:
                block[:, read] = np.array(self._flat).reshape(rows, count, ROW_WIDTH)
                self._last = block[-1].copy()
        self._blocks.append(block)
        self._flat = []
        self._open_rows = 0

    def take(self) -> tuple[StateLog, CameraLog, LightLog]:
        """All rows since the last call."""
        self._flush()
        n = len(self._substeps)
        block = self._blocks[0] if len(self._blocks) == 1 else np.concatenate(self._blocks)
        state = StateLog(
            self._names,
            self._dt,
            np.array(self._substeps, np.int64),
            block[:, :, 0:3],
            block.take(_WXYZ, axis=2),
            block[:, :, 7:10],
            block[:, :, 10:13],
            self._active.take(n),
            self._motion.take(n),
            {name: held.take(n) for name, held in self._modal.items()},
            {name: np.stack(shapes) for name, shapes in self._shapes.items()},
        )
        count = len(self._cameras)
        cameras = CameraLog(
            self._camera_names,
            self._fov_y.take(n),
            np.array(self._poses).reshape(n, count, 4, 4),
        )
        lights = LightLog(self._sun_direction.take(n), self._sun_color.take(n), self._sky.take(n))
        self._blocks, self._substeps, self._poses = [], [], []
        for shapes in self._shapes.values():
            shapes.clear()
        return state, cameras, lights


def _times(color: Vec, strength: float) -> Vec:
    r, g, b = color
    return (r * strength, g * strength, b * strength)


class LastRow:
    """The last row of a log as a `StateView`."""

    def __init__(self, log: WorldLog) -> None:
        state = log.state
        self._position = state.position[-1].tolist()
        self._quaternion = state.quaternion_wxyz[-1].tolist()
        self._linear = state.linear_velocity[-1].tolist()
        self._angular = state.angular_velocity[-1].tolist()
        self._motion = state.motion[-1].tolist()
        self._log = log

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

    def active(self, body: int) -> bool:
        """Whether the body's slot is in the world."""
        return bool(self._log.state.active[-1, body])

    def camera(self, camera: int) -> tuple[float, ...]:
        """``T_world_camera``, sixteen numbers, row-major."""
        return tuple(self._log.cameras.T_world_camera[-1, camera].ravel().tolist())

    def fov_y(self, camera: int) -> float:
        """Vertical field of view [rad]."""
        return float(self._log.cameras.fov_y[-1, camera])

    def sun(self) -> tuple[Vec, Vec]:
        """Direction along which sunlight travels (unit), and linear RGB times strength."""
        lights = self._log.lights
        return _vec(lights.sun_direction[-1]), _vec(lights.sun_color[-1])

    def sky(self) -> tuple[Vec, Vec, Vec]:
        """Zenith, horizon and ground, each linear RGB times strength."""
        zenith, horizon, ground = self._log.lights.sky[-1]
        return _vec(zenith), _vec(horizon), _vec(ground)

    def modal(self, name: str) -> tuple[float, ...]:
        """Named extra state.

        Raises:
            UserError: the scene declares no such state.
        """
        modal = self._log.state.modal
        if name not in modal:
            known = ", ".join(modal) or "none"
            raise UserError(f"the scene declares no modal state {name!r}; there are: {known}")
        return tuple(modal[name][-1].tolist())

    def vertices(self, name: str) -> NDArray[np.float64]:
        """Vertices (V, 3) [m] of a deformable.

        Raises:
            UserError: the scene has none of that name.
        """
        shapes = self._log.state.vertices
        if name not in shapes:
            known = ", ".join(shapes) or "none"
            raise UserError(f"the scene has no deformable {name!r}; there are: {known}")
        return np.asarray(shapes[name][-1])


def _vec(row: NDArray[np.float64]) -> Vec:
    x, y, z = row.tolist()
    return (x, y, z)
