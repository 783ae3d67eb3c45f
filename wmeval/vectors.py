"""Three and four plain numbers: vectors and quaternions where numpy would be too slow.

For loops that run every substep. Quaternions are ``wxyz``. `wmeval.conventions` has the same for
arrays.
"""

from __future__ import annotations

import math

Vec = tuple[float, float, float]
Quat = tuple[float, float, float, float]


def plus(a: Vec, b: Vec) -> Vec:
    """Sum."""
    return (a[0] + b[0], a[1] + b[1], a[2] + b[2])


def minus(a: Vec, b: Vec) -> Vec:
    """Difference."""
    return (a[0] - b[0], a[1] - b[1], a[2] - b[2])


def negative(a: Vec) -> Vec:
    """The opposite vector."""
    return (-a[0], -a[1], -a[2])


def scaled(a: Vec, k: float) -> Vec:
    """The vector times a number."""
    return (a[0] * k, a[1] * k, a[2] * k)


def dot(a: Vec, b: Vec) -> float:
    """Scalar product."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def cross(a: Vec, b: Vec) -> Vec:
    """Vector product."""
    return (
        a[1] * b[2] - a[2] * b[1],
        a[2] * b[0] - a[0] * b[2],
        a[0] * b[1] - a[1] * b[0],
    )


def length(a: Vec) -> float:
    """Euclidean length."""
    return math.sqrt(dot(a, a))


def unit(a: Vec) -> Vec:
    """The direction of a vector that is not zero."""
    n = length(a)
    return (a[0] / n, a[1] / n, a[2] / n)


def product(a: Quat, b: Quat) -> Quat:
    """Hamilton product: the rotation b, then a."""
    aw, ax, ay, az = a
    bw, bx, by, bz = b
    return (
        aw * bw - ax * bx - ay * by - az * bz,
        aw * bx + ax * bw + ay * bz - az * by,
        aw * by - ax * bz + ay * bw + az * bx,
        aw * bz + ax * by - ay * bx + az * bw,
    )


def axes(q: Quat) -> tuple[Vec, Vec, Vec]:
    """Where a body of unit quaternion q has its x, y and z axis in the world."""
    w, x, y, z = q
    return (
        (1 - 2 * (y * y + z * z), 2 * (x * y + w * z), 2 * (x * z - w * y)),
        (2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)),
        (2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)),
    )
