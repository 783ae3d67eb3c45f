"""Units, axes and the one place where frames are converted.

The product's world is right-handed with z up, in SI units. Quaternions are ``wxyz``. WMEval's flat
vectors use Unity's frame: left-handed, x right, y up, z forward, quaternions ``xyzw``, Euler angles
in degrees in Unity's ZXY order (rotate about z, then x, then y). The map between the two swaps the
last two axes, ``P = [[1,0,0],[0,0,1],[0,1,0]]`` with ``det P = -1``; it is its own inverse. Polar
vectors map by ``P``, axial vectors (angular velocity, a quaternion's vector part) by ``det(P) P``.

Cameras follow OpenCV: x right, y down, z forward, ``K`` in pixels with pixel centres at +0.5.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
_Number = TypeVar("_Number", bound=np.generic)

GRAVITY_MPS2 = 9.81
_P_SWAP = (0, 2, 1)
# A Unity camera is x right, y up, z forward; an OpenCV camera is x right, y down, z forward.
_FLIP_Y = np.diag([1.0, -1.0, 1.0])


def apart(values: NDArray[_Number]) -> tuple[NDArray[_Number], ...]:
    """The components of (..., K) vectors, each an array of its own.

    What numpy computes of views into an array (arctan2, exp, powers) depends in the last bit on
    where in memory the result comes to lie: of a strided input it takes one of two implementations.
    """
    return tuple(np.ascontiguousarray(np.moveaxis(values, -1, 0)))


# --- quaternions (wxyz) -------------------------------------------------------------------------


def quaternion_multiply(a: Array, b: Array) -> Array:
    """Hamilton product ``a * b`` of ``wxyz`` quaternions, shape (..., 4)."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    aw, ax, ay, az = a[..., 0], a[..., 1], a[..., 2], a[..., 3]
    bw, bx, by, bz = b[..., 0], b[..., 1], b[..., 2], b[..., 3]
    w = np.asarray(aw * bw - ax * bx - ay * by - az * bz)
    # Filled in, not stacked: bodies are turned every time that somebody looks.
    out = np.empty((*w.shape, 4))
    out[..., 0] = w
    out[..., 1] = aw * bx + ax * bw + ay * bz - az * by
    out[..., 2] = aw * by - ax * bz + ay * bw + az * bx
    out[..., 3] = aw * bz + ax * by - ay * bx + az * bw
    return out


def quaternion_conjugate(q: Array) -> Array:
    """Conjugate (inverse of a unit quaternion), shape (..., 4)."""
    out: Array = np.asarray(q, np.float64) * np.array([1.0, -1.0, -1.0, -1.0])
    return out


def continuous_quaternions(q: Array) -> Array:
    """The same rotations (T, ..., 4) with signs that keep each next to the one before.

    q and -q are one rotation, and engines give either: differences and means over time need the
    nearer. The first keeps its sign.
    """
    q = np.asarray(q, np.float64)
    flips = np.where((q[1:] * q[:-1]).sum(axis=-1) < 0, -1.0, 1.0)
    out = q.copy()
    out[1:] *= np.cumprod(flips, axis=0)[..., None]
    return out


def quaternion_to_matrix(q: Array) -> Array:
    """Rotation matrices (..., 3, 3) of unit ``wxyz`` quaternions (..., 4)."""
    w, x, y, z = np.moveaxis(np.asarray(q, np.float64), -1, 0)
    rows = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)


def matrix_to_quaternion(matrix: Array) -> Array:
    """Unit ``wxyz`` quaternion (4,) with w >= 0 of one rotation matrix (3, 3)."""
    m = np.asarray(matrix, np.float64)
    # The largest of the four squared components first: no division is by a small number.
    squares = np.array(
        [
            1 + m[0, 0] + m[1, 1] + m[2, 2],
            1 + m[0, 0] - m[1, 1] - m[2, 2],
            1 - m[0, 0] + m[1, 1] - m[2, 2],
            1 - m[0, 0] - m[1, 1] + m[2, 2],
        ]
    )
    k = int(np.argmax(squares))
    s = 2.0 * math.sqrt(squares[k])
    if k == 0:
        q = [s / 4, (m[2, 1] - m[1, 2]) / s, (m[0, 2] - m[2, 0]) / s, (m[1, 0] - m[0, 1]) / s]
    elif k == 1:
        q = [(m[2, 1] - m[1, 2]) / s, s / 4, (m[0, 1] + m[1, 0]) / s, (m[0, 2] + m[2, 0]) / s]
    elif k == 2:
        q = [(m[0, 2] - m[2, 0]) / s, (m[0, 1] + m[1, 0]) / s, s / 4, (m[1, 2] + m[2, 1]) / s]
    else:
        q = [(m[1, 0] - m[0, 1]) / s, (m[0, 2] + m[2, 0]) / s, (m[1, 2] + m[2, 1]) / s, s / 4]
    out = np.array(q)
    out /= np.linalg.norm(out)
    return out if out[0] >= 0 else -out


def axis_angle_quaternion(axis: tuple[float, float, float], angle: float) -> Array:
    """Quaternion (4,) turning by ``angle`` [rad] about ``axis`` (need not be unit; not zero)."""
    n = math.sqrt(sum(c * c for c in axis))
    s = math.sin(angle / 2) / n
    return np.array([math.cos(angle / 2), axis[0] * s, axis[1] * s, axis[2] * s])


def tilt_angle(q: Array) -> Array:
    """Angle [rad] between a body's own z axis and the world's z axis, shape (...)."""
    q = np.asarray(q, np.float64)
    cos = 1 - 2 * (q[..., 1] ** 2 + q[..., 2] ** 2)
    return np.arccos(np.clip(cos, -1.0, 1.0))


# --- world <-> Unity ----------------------------------------------------------------------------


def to_unity_vector(v: Array) -> Array:
    """Polar vectors (position, velocity, force), shape (..., 3). Its own inverse."""
    out: Array = np.asarray(v)[..., _P_SWAP]
    return out


def to_unity_axial(v: Array) -> Array:
    """Axial vectors (angular velocity, torque), shape (..., 3): ``det(P) P v``. Its own inverse."""
    out: Array = -np.asarray(v)[..., _P_SWAP]
    return out


def to_unity_quaternion(q_wxyz: Array) -> Array:
    """World ``wxyz`` quaternions to Unity ``xyzw`` quaternions, shape (..., 4)."""
    q = np.asarray(q_wxyz)
    return np.stack([-q[..., 1], -q[..., 3], -q[..., 2], q[..., 0]], axis=-1)


def from_unity_quaternion(q_xyzw: Array) -> Array:
    """Unity ``xyzw`` quaternions to world ``wxyz`` quaternions, shape (..., 4)."""
    q = np.asarray(q_xyzw)
    return np.stack([q[..., 3], -q[..., 0], -q[..., 2], -q[..., 1]], axis=-1)


def unity_euler_degrees(q_wxyz: Array) -> Array:
    """Unity's Euler angles (x, y, z) [deg] in [-180, 180) of world quaternions, shape (..., 3).

    Unity composes ``R = R_y R_x R_z``. At the gimbal lock (x = +-90 deg) z is set to zero.
    """
    x, y, z, w = np.moveaxis(to_unity_quaternion(q_wxyz), -1, 0)
    sin_x = np.clip(2 * (w * x - y * z), -1.0, 1.0)
    locked = np.abs(sin_x) > 1 - 1e-12
    angle_x = np.arcsin(sin_x)
    free_y = np.arctan2(2 * (x * z + w * y), 1 - 2 * (x * x + y * y))
    free_z = np.arctan2(2 * (x * y + w * z), 1 - 2 * (x * x + z * z))
    locked_y = np.arctan2(-2 * (x * z - w * y), 1 - 2 * (y * y + z * z))
    angle_y = np.where(locked, locked_y, free_y)
    angle_z = np.where(locked, 0.0, free_z)
    degrees = np.degrees(np.stack([angle_x, angle_y, angle_z], axis=-1))
    out: Array = (degrees + 180.0) % 360.0 - 180.0
    return out


def unity_euler_degrees_of(q_wxyz: Sequence[float]) -> tuple[float, float, float]:
    """`unity_euler_degrees` of one quaternion (4 numbers), without numpy: for inner loops."""
    w, x, y, z = q_wxyz
    x, y, z = -x, -z, -y
    sin_x = min(max(2 * (w * x - y * z), -1.0), 1.0)
    if abs(sin_x) > 1 - 1e-12:
        angle_y, angle_z = math.atan2(-2 * (x * z - w * y), 1 - 2 * (y * y + z * z)), 0.0
    else:
        angle_y = math.atan2(2 * (x * z + w * y), 1 - 2 * (x * x + y * y))
        angle_z = math.atan2(2 * (x * y + w * z), 1 - 2 * (x * x + z * z))
    return _half_turn(math.asin(sin_x)), _half_turn(angle_y), _half_turn(angle_z)


def _half_turn(radians: float) -> float:
    """Degrees in [-180, 180)."""
    return (math.degrees(radians) + 180.0) % 360.0 - 180.0


def unity_camera_euler_degrees(T_world_camera: Array) -> Array:
    """Unity Euler angles (3,) [deg] of an OpenCV camera pose (4, 4)."""
    return np.array(unity_camera_euler_degrees_of(np.asarray(T_world_camera).tolist()))


def unity_camera_euler_degrees_of(
    T_world_camera: Sequence[Sequence[float]],
) -> tuple[float, float, float]:
    """`unity_camera_euler_degrees` of nested numbers, without numpy: for inner loops."""
    (a, _, c, _), (d, _, f, _), (g, h, i, _), _ = T_world_camera
    # Unity's camera axes are x right, y up, z forward. Both frames are left-handed once the world's
    # last axes are swapped (P) and the camera's y turned up: [[a, -b, c], [g, -h, i], [d, -e, f]].
    sin_x = min(max(-i, -1.0), 1.0)
    if abs(sin_x) > 1 - 1e-12:
        return _half_turn(math.asin(sin_x)), _half_turn(math.atan2(-d, a)), 0.0
    angle_y, angle_z = math.atan2(c, f), math.atan2(g, -h)
    return _half_turn(math.asin(sin_x)), _half_turn(angle_y), _half_turn(angle_z)


# --- cameras ------------------------------------------------------------------------------------


def look_at(position: Array, target: Array, up: tuple[float, float, float] = (0, 0, 1)) -> Array:
    """OpenCV camera pose ``T_world_camera`` (4, 4) at ``position`` [m] looking at ``target`` [m].

    Raises:
        ValueError: position and target coincide, or the view is parallel to ``up``.
    """
    forward = np.asarray(target, np.float64) - np.asarray(position, np.float64)
    distance = float(np.linalg.norm(forward))
    right = np.cross(forward, np.asarray(up, np.float64))
    side = float(np.linalg.norm(right))
    if distance < 1e-9 or side < 1e-9 * distance:
        raise ValueError(f"look_at: no view from {position} to {target} with up {up}")
    forward /= distance
    right /= side
    pose = np.eye(4)
    pose[:3, 0] = right
    pose[:3, 1] = np.cross(forward, right)
    pose[:3, 2] = forward
    pose[:3, 3] = position
    return pose


def intrinsics(fov_y: float, width: int, height: int) -> Array:
    """Pinhole ``K`` (3, 3) [px] with square pixels of a vertical field of view [rad]."""
    focal = 0.5 * height / math.tan(0.5 * fov_y)
    return np.array([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1.0]])


def project(points: Array, K: Array, T_world_camera: Array) -> tuple[Array, Array]:
    """Project world points (..., 3) [m].

    Returns:
        Pixel coordinates (..., 2) [px, centres at +0.5] and planar depth (...) [m]. Points at or
        behind the camera plane have non-positive depth and meaningless pixels.
    """
    T = np.asarray(T_world_camera)
    local = (np.asarray(points, np.float64) - T[:3, 3]) @ T[:3, :3]
    depth = local[..., 2]
    safe = np.where(np.abs(depth) < 1e-12, 1e-12, depth)
    pixels = local[..., :2] / safe[..., None] * np.array([K[0, 0], K[1, 1]]) + K[:2, 2]
    return pixels, depth


def unproject(pixels: Array, depth: Array, K: Array, T_world_camera: Array) -> Array:
    """World points (..., 3) [m] of pixels (..., 2) [px] at planar depth (...) [m]."""
    T = np.asarray(T_world_camera)
    depth = np.asarray(depth, np.float64)
    rays = (np.asarray(pixels, np.float64) - K[:2, 2]) / np.array([K[0, 0], K[1, 1]])
    local = np.concatenate([rays * depth[..., None], depth[..., None]], axis=-1)
    out: Array = local @ T[:3, :3].T + T[:3, 3]
    return out


def pixel_grid(width: int, height: int) -> Array:
    """Pixel-centre coordinates (height, width, 2) [px]."""
    u, v = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    return np.stack([u, v], axis=-1)
