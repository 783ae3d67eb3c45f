"""Hulls: exact moments, few vertices, nothing far outside."""

import math

import numpy as np
import pytest

from wmeval.assets.hulls import convex_hull, departure_of, moments
from wmeval.assets.meshes import box, cylinder, sphere
from wmeval.assets.skin import directions, grid_skin, round_skin
from wmeval.errors import UserError
from wmeval.scene import MeshData


def at(mesh, offset):
    return MeshData(
        (mesh.vertices + np.array(offset)).astype(np.float32), mesh.triangles, mesh.normals, mesh.uv
    )


def test_a_box_has_its_closed_form_wherever_it_is():
    half = np.array([0.1, 0.2, 0.35])
    volume, centre, second = moments(at(box(tuple(half)), (0.4, -0.3, 0.2)))
    assert volume == pytest.approx(8 * half.prod(), rel=1e-6)
    np.testing.assert_allclose(centre, (0.4, -0.3, 0.2), atol=1e-7)
    np.testing.assert_allclose(second, volume * np.diag(half**2 / 3), atol=1e-6 * volume)


def test_a_ball_comes_close_to_its_closed_form():
    volume, centre, second = moments(convex_hull(sphere(96).vertices * 0.5))
    assert volume == pytest.approx(4 / 3 * math.pi / 8, rel=4e-3)
    np.testing.assert_allclose(centre, 0, atol=1e-7)
    np.testing.assert_allclose(second / volume, np.eye(3) * 0.25 / 5, rtol=3e-3, atol=1e-8)


def test_a_prism_of_many_sides_is_exact():
    n, r, h = 64, 0.3, 0.8
    volume, _, second = moments(convex_hull(cylinder(r, h, n, 0).vertices))
    step = 2 * math.pi / n
    area = n / 2 * r * r * math.sin(step)
    assert volume == pytest.approx(area * h, rel=1e-6)
    # Second moment of a regular polygon about a diameter.
    across = area * r * r / 12 * (2 + math.cos(step))
    np.testing.assert_allclose(
        second, np.diag([across * h, across * h, area * h**3 / 12]), rtol=1e-5, atol=1e-9
    )


def test_a_tetrahedron():
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1.0]])
    volume, centre, second = moments(convex_hull(corners))
    assert volume == pytest.approx(1 / 6, rel=1e-6)
    np.testing.assert_allclose(centre, 0.25, atol=1e-7)
    expected = np.full((3, 3), -1 / 80) + np.eye(3) * (3 / 80 + 1 / 80)
    np.testing.assert_allclose(second * 6, expected, atol=1e-7)


def test_a_limit_keeps_the_box_and_bounds_what_is_left_out():
    points = np.random.default_rng(3).standard_normal((4000, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    last = math.inf
    for limit in (48, 128, 400):
        hull = convex_hull(points, limit)
        assert len(hull.vertices) <= limit
        np.testing.assert_allclose(hull.vertices.min(0), points.min(0), atol=1e-6)
        np.testing.assert_allclose(hull.vertices.max(0), points.max(0), atol=1e-6)
        off = departure_of(points, hull)
        assert 0 < off < last
        last = off
        # No hull of n points leaves less than the caps of n equal discs that cover the sphere.
        assert off > 0.5 * (1 - math.cos(2 / math.sqrt(limit)))
    assert last < 0.02


def test_a_hull_is_closed_and_faces_outwards():
    hull = convex_hull(np.random.default_rng(0).standard_normal((200, 3)), 64)
    edges = np.concatenate([hull.triangles[:, [k, (k + 1) % 3]] for k in range(3)])
    assert {tuple(e) for e in edges.tolist()} == {(b, a) for a, b in edges.tolist()}
    assert moments(hull)[0] > 0


def test_flat_things_have_no_hull():
    with pytest.raises(UserError, match="not flat"):
        convex_hull(np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0.0]]))


# --- skins --------------------------------------------------------------------------------------


def test_a_round_skin_of_a_ball_is_a_ball():
    skin = round_skin(lambda d: 0.5 * d)
    assert len(skin.mesh.triangles) == 64 * 40 * 2 - 2 * 64
    np.testing.assert_allclose(skin.mesh.normals, skin.mesh.vertices * 2, atol=0.02)
    for mesh, off in skin.coarser:
        stride = round((len(skin.mesh.vertices) / len(mesh.vertices)) ** 0.5)
        # The middle of a cell of the coarse grid lies about this deep below the sphere.
        deep = 0.5 * (1 - math.cos(math.pi / 64 * stride))
        assert deep < off < 4 * deep


def test_a_skin_has_one_normal_on_both_sides_of_its_seam():
    skin = round_skin(lambda d: d * (1 + 0.2 * d[:, :1]))
    normals = skin.mesh.normals.reshape(41, 65, 3)
    np.testing.assert_array_equal(normals[:, 0], normals[:, -1])
    assert np.ptp(normals[0], axis=0).max() == 0


def test_the_x_axis_turns_and_does_not_mirror():
    skin = round_skin(lambda d: d * np.array([1, 2, 5]), axis="x")
    size = np.ptp(skin.mesh.vertices, axis=0)
    np.testing.assert_allclose(size, (10, 2, 4), rtol=1e-3)
    assert moments(skin.mesh)[0] > 0


def test_skins_refuse_cells_that_their_stand_ins_cannot_halve():
    with pytest.raises(UserError, match="multiples of 8"):
        grid_skin(directions(60, 40))
