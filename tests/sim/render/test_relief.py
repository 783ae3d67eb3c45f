"""Normals from depth against planes and balls whose normals are known."""

import numpy as np
import pytest

from wmeval.conventions import intrinsics, look_at, pixel_grid
from wmeval.errors import UserError
from wmeval.sim.render.relief import normals_of_depth

W, H = 120, 90
K = intrinsics(0.8, W, H)
T = look_at(np.array([0.4, -3.0, 1.7]), np.array([0.0, 0.2, 0.3]))


def rays():
    grid = pixel_grid(W, H)
    local = np.concatenate([(grid - K[:2, 2]) / K[0, 0], np.ones((H, W, 1))], axis=-1)
    return local @ T[:3, :3].T  # length: planar depth 1


def test_a_plane_is_exact():
    normal = np.array([0.2, -0.3, 1.0])
    normal /= np.linalg.norm(normal)
    depth = (0.1 - T[:3, 3] @ normal) / (rays() @ normal)
    depth = np.where(depth > 0, depth, np.inf).astype(np.float32)
    found = normals_of_depth(depth, np.full((H, W), 3, np.uint16), K, T)
    seen = np.isfinite(depth)
    assert seen.mean() > 0.5
    error = np.arccos(np.clip(found[seen] @ normal, -1, 1))
    assert np.degrees(np.quantile(error, 0.99)) < 0.2  # float32 depth
    assert (found[~seen] == 0).all()


def ball():
    centre, radius = np.array([0.0, 0.3, 0.3]), 0.6
    d, o = rays(), T[:3, 3] - centre
    b, a, c = d @ o, (d * d).sum(-1), o @ o - radius**2
    inside = b * b - a * c
    depth = np.where(inside > 0, (-b - np.sqrt(np.abs(inside))) / a, np.inf).astype(np.float32)
    normal = (o + d * np.where(inside > 0, depth, 1)[..., None]) / radius
    return depth, normal, inside > 0


def test_a_ball_is_right_within_the_pixel():
    depth, normal, seen = ball()
    found = normals_of_depth(depth, seen.astype(np.uint16), K, T)
    facing = seen & ((normal * -rays()).sum(-1) / np.linalg.norm(rays(), axis=-1) > 0.3)
    error = np.degrees(np.arccos(np.clip((found * normal).sum(-1)[facing], -1, 1)))
    assert np.median(error) < 0.3
    assert error.max() < 5
    assert np.allclose(np.linalg.norm(found[facing], axis=-1), 1, atol=1e-5)


def test_nothing_is_taken_across_ids():
    """A ball before a wall of the same depth gradient: the wall keeps its own normal."""
    depth, _, seen = ball()
    wall = np.full((H, W), 2.5, np.float32)
    normal = -T[:3, 2]  # a wall of constant planar depth faces the camera squarely
    found = normals_of_depth(np.where(seen, depth, wall), seen.astype(np.uint16), K, T)
    assert np.abs(found[~seen] - normal).max() < 1e-3
    alone = normals_of_depth(np.where(seen, depth, wall), np.ones((H, W), np.uint16), K, T)
    edge = np.abs(alone[~seen] - normal).max(axis=-1) > 1e-3
    assert not edge.any()  # even with one id, the flatter side is the wall's own


def test_shapes_must_fit():
    with pytest.raises(UserError, match="must be the same"):
        normals_of_depth(np.zeros((3, 4), np.float32), np.zeros((4, 3), np.uint16), K, T)
