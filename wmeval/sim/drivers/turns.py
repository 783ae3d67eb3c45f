"""Rotations of many bodies at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]


def crossed(a: F8, b: F8) -> F8:
    """Cross products (N, 3); several times as fast as numpy's."""
    out = np.empty_like(a)
    out[:, 0] = a[:, 1] * b[:, 2] - a[:, 2] * b[:, 1]
    out[:, 1] = a[:, 2] * b[:, 0] - a[:, 0] * b[:, 2]
    out[:, 2] = a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]
    return out


def exponential(vector: F8, rate: F8) -> tuple[F8, F8]:
    """Rotations by rotation vectors, and how fast they turn.

    Args:
        vector: (N, 3) axis times angle [rad].
        rate: (N, 3) its time derivative [rad/s].

    Returns:
        Quaternions (N, 4), ``wxyz``, and angular velocities (N, 3) [rad/s] in the world frame: the
        left Jacobian of SO(3) applied to the rate (Chirikjian, Stochastic Models 2, 2011, 10.86).
    """
    square = (vector * vector).sum(axis=1)
    angle = np.sqrt(square)
    small = angle < 1e-4
    safe = np.where(small, 1.0, angle)
    half = np.where(small, 0.5 - square / 48, np.sin(safe / 2) / safe)
    first = np.where(small, 0.5 - square / 24, (1 - np.cos(safe)) / safe**2)
    second = np.where(small, 1 / 6 - square / 120, (safe - np.sin(safe)) / safe**3)
    quaternion = np.concatenate([np.cos(angle / 2)[:, None], half[:, None] * vector], axis=1)
    once = crossed(vector, rate)
    velocity = rate + first[:, None] * once + second[:, None] * crossed(vector, once)
    return quaternion, np.asarray(velocity)


def turned(quaternion: F8, vector: F8) -> F8:
    """Vectors (N, 3) turned by unit quaternions (N, 4)."""
    axis = quaternion[:, 1:]
    once = crossed(axis, vector)
    return np.asarray(vector + 2 * (quaternion[:, :1] * once + crossed(axis, once)))
