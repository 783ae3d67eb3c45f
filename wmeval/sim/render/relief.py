"""Surface normals that follow from depth and ids, where no renderer drew them. Pure numpy.

On a plane the inverse depth is linear in the pixel: 1/z = N . ((u - cx)/fx, (v - cy)/fy, 1) with N
the plane's normal over its distance. So N follows from the two differences of 1/z to neighbours on
the same thing; planes come out exact, curved surfaces to the second order of the pixel.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError

F8 = NDArray[np.float64]

CREASE = 0.25
"""Central differences are taken where the two one-sided slopes differ by less than this, in units
of the inverse depth itself over the focal length (head-on, a bend of 14 degrees
within a pixel)."""


def normals_of_depth(
    depth: NDArray[np.float32],
    ids: NDArray[np.uint16],
    K: NDArray[Any],
    T_world_camera: NDArray[Any],
) -> NDArray[np.float32]:
    """World normals of what each pixel shows.

    Args:
        depth: (H, W) planar depth [m]; +inf where nothing is hit.
        ids: (H, W): differences are taken within one id only.
        K: (3, 3) intrinsics [px].
        T_world_camera: (4, 4).

    Returns:
        (H, W, 3) float32, unit, turned to the camera; zero where nothing is hit, or where a pixel
        has no neighbour of its own along x or y. At edges within one id (a box's) the side with
        the smaller slope counts; shading normals of smoothed meshes differ from these.

    Raises:
        UserError: shapes that do not fit.
    """
    if depth.shape != ids.shape or depth.ndim != 2:
        raise UserError(f"depth {depth.shape} and ids {ids.shape} must be the same (H, W)")
    height, width = depth.shape
    hit = np.isfinite(depth) & (depth > 0)
    inverse = np.where(hit, 1.0 / np.where(hit, depth, 1.0).astype(np.float64), 0.0)
    x = (np.arange(width) + 0.5 - K[0, 2]) / K[0, 0]
    y = ((np.arange(height) + 0.5 - K[1, 2]) / K[1, 1])[:, None]
    across, ok_x = _slope(inverse, ids, hit, 1, float(K[0, 0]))
    down, ok_y = _slope(inverse, ids, hit, 0, float(K[1, 1]))
    normal = np.stack([across, down, inverse - across * x - down * y], axis=-1)
    length = np.linalg.norm(normal, axis=-1)
    good = ok_x & ok_y & (length > 0)
    # N points along the view on what faces the camera.
    normal *= np.where(good, -1.0 / np.where(length > 0, length, 1.0), 0.0)[..., None]
    return np.asarray(normal @ np.asarray(T_world_camera)[:3, :3].T, np.float32)


def _slope(
    inverse: F8, ids: NDArray[np.uint16], hit: NDArray[np.bool_], axis: int, focal: float
) -> tuple[F8, NDArray[np.bool_]]:
    """Derivative of the inverse depth by the ray's coordinate along an axis, and where it is."""
    first = [slice(None)] * 2
    second = [slice(None)] * 2
    first[axis], second[axis] = slice(None, -1), slice(1, None)
    a, b = tuple(first), tuple(second)
    step = (inverse[b] - inverse[a]) * focal
    same = (ids[b] == ids[a]) & hit[a] & hit[b]
    forward, backward = np.zeros_like(inverse), np.zeros_like(inverse)
    ahead, behind = np.zeros_like(hit), np.zeros_like(hit)
    forward[a], backward[b] = step, step
    ahead[a], behind[b] = same, same
    both = ahead & behind
    smooth = both & (np.abs(forward - backward) < CREASE * inverse)
    one_sided = np.where(
        both,
        np.where(np.abs(forward) < np.abs(backward), forward, backward),
        np.where(ahead, forward, backward),
    )
    return np.where(smooth, (forward + backward) / 2, one_sided), ahead | behind
