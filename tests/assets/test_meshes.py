"""Meshes are closed, face outwards, and have the volume and centre they should."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wmeval.assets import meshes as m
from wmeval.errors import UserError
from wmeval.scene import Box, Cylinder, Mesh, Sphere

length = st.floats(0.05, 20)


def volume_and_centre(mesh):
    corner = mesh.vertices[mesh.triangles].astype(np.float64)
    six = np.einsum("ij,ij->i", corner[:, 0], np.cross(corner[:, 1], corner[:, 2]))
    volume = six.sum() / 6
    return volume, (six[:, None] * corner.sum(axis=1)).sum(axis=0) / 24 / volume


def assert_closed(mesh):
    """Every edge, by position, is run through once in each direction."""
    key = np.round(mesh.vertices.astype(np.float64) / np.abs(mesh.vertices).max(), 5)
    _, index = np.unique(key, axis=0, return_inverse=True)
    faces = index.ravel()[mesh.triangles]
    flat = (
        (faces[:, 0] == faces[:, 1]) | (faces[:, 1] == faces[:, 2]) | (faces[:, 2] == faces[:, 0])
    )
    faces = faces[~flat]
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    forward = {tuple(e) for e in edges.tolist()}
    assert all((b, a) in forward for a, b in forward)


def assert_sound(mesh):
    assert mesh.vertices.dtype == np.float32
    assert mesh.triangles.dtype == np.uint32
    assert mesh.triangles.max() < len(mesh.vertices)
    assert np.allclose(np.linalg.norm(mesh.normals, axis=1), 1, atol=1e-5)
    assert np.isfinite(mesh.uv).all()
    corner = mesh.vertices[mesh.triangles].astype(np.float64)
    face = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    size = np.linalg.norm(face, axis=1)
    big = size > 1e-12
    turn = np.einsum("ij,ikj->ik", face[big] / size[big, None], mesh.normals[mesh.triangles[big]])
    assert turn.min() > 0.5  # normals and winding agree
    assert_closed(mesh)


@given(length, length, length)
def test_wedge_stands_on_its_centre_of_mass(x, y, z):
    mesh = m.wedge(x, y, z)
    assert_sound(mesh)
    volume, centre = volume_and_centre(mesh)
    assert volume == pytest.approx(x * y * z / 2, rel=1e-4)
    assert np.abs(centre).max() < 1e-5 * max(x, y, z)
    assert np.ptp(mesh.vertices, axis=0) == pytest.approx([x, y, z], rel=1e-5)
    # The slope rises along +x.
    top = mesh.vertices[mesh.vertices[:, 2].argmax()]
    assert top[0] == pytest.approx(x / 3, rel=1e-5)


@given(length, length, length, st.floats(0, 0.5))
def test_box_with_rounded_edges(x, y, z, share):
    bevel = share * min(x, y, z)
    mesh = m.box((x, y, z), bevel)
    assert_sound(mesh)
    assert np.abs(mesh.vertices).max(axis=0) == pytest.approx([x, y, z], rel=1e-5)
    volume, centre = volume_and_centre(mesh)
    # The rounded box is the inner box grown by a ball; facets lie a little inside the roundings.
    i, j, k = (max(e - bevel, 0.0) for e in (x, y, z))
    flat = 8 * i * j * k + 8 * bevel * (i * j + j * k + k * i)
    rounding = 2 * math.pi * bevel**2 * (i + j + k) + 4 / 3 * math.pi * bevel**3
    assert flat + 0.88 * rounding - 1e-4 * flat <= volume <= flat + rounding + 1e-4 * flat
    assert np.abs(centre).max() < 1e-4 * max(x, y, z)


@pytest.mark.parametrize("segments", [16, 32, 64])
def test_sphere_is_inscribed(segments):
    mesh = m.sphere(segments)
    assert_sound(mesh)
    assert np.linalg.norm(mesh.vertices, axis=1) == pytest.approx(1, abs=1e-6)
    assert np.abs(mesh.normals - mesh.vertices).max() < 1e-6
    volume, _ = volume_and_centre(mesh)
    assert volume == pytest.approx(4 / 3 * math.pi, rel=17 / segments**2)
    assert mesh.uv.min() == 0
    assert mesh.uv.max() == 1


@given(length, length)
def test_cylinder(radius, height):
    mesh = m.cylinder(radius, height)
    assert_sound(mesh)
    volume, _ = volume_and_centre(mesh)
    assert volume == pytest.approx(math.pi * radius**2 * height, rel=0.01)


@given(length, st.floats(0.2, 1.0))
def test_dome_rests_on_its_base(radius, share):
    height = share * radius
    mesh = m.dome(radius, height)
    assert_sound(mesh)
    volume, centre = volume_and_centre(mesh)
    assert volume == pytest.approx(math.pi * height * (3 * radius**2 + height**2) / 6, rel=0.01)
    assert np.abs(centre).max() < 2e-3 * radius
    assert np.ptp(mesh.vertices[:, 2]) == pytest.approx(height, rel=1e-4)


def test_revolve_keeps_sharp_corners_sharp():
    mesh = m.revolve([(0, 0), (1, 0), (1, 1), (0, 1)], 32)
    assert_sound(mesh)
    steep = np.abs(mesh.normals[:, 2])
    assert (np.isclose(steep, 0, atol=1e-6) | np.isclose(steep, 1, atol=1e-6)).all()
    with pytest.raises(UserError, match="radii"):
        m.revolve([(-1, 0), (1, 1)])
    with pytest.raises(UserError, match="height"):
        m.dome(1.0, 1.5)


@pytest.mark.parametrize(
    "shape",
    [
        Sphere(radius=0.4),
        Box(half_extents=(0.3, 0.2, 0.5)),
        Box(half_extents=(0.3, 0.2, 0.5), bevel=0.05),
        Cylinder(radius=0.3, height=0.8),
    ],
)
def test_levels_stay_within_their_stated_error(shape):
    fine = m.tessellate(shape, {})
    points = fine.vertices[fine.triangles].astype(np.float64).mean(axis=1)
    for mesh, error in m.levels(shape, {}):
        assert_sound(mesh)
        corner = mesh.vertices[mesh.triangles].astype(np.float64)
        normal = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
        size = np.linalg.norm(normal, axis=1)
        keep = size > 1e-12
        normal = normal[keep] / size[keep, None]
        # All shapes are convex: the distance to the nearest face's plane bounds the departure.
        away = np.einsum("kj,pkj->pk", normal, points[:, None] - corner[keep, 0][None]).max(axis=1)
        assert np.abs(away).max() <= error + 0.01
    assert m.levels(shape, {})[-1][1] == 0


def test_metric_texture_coordinates():
    block = Box(half_extents=(2.0, 1.0, 0.5))
    mesh = m.tessellate(block, {}, uv_m=0.5)
    top = mesh.normals[:, 2] > 0.99
    assert np.ptp(mesh.uv[top], axis=0) == pytest.approx([4 / 0.5, 2 / 0.5], rel=1e-6)
    ball = m.tessellate(Sphere(radius=0.5), {}, uv_m=1.0)
    assert np.ptp(ball.uv, axis=0) == pytest.approx([math.pi, math.pi / 2], rel=1e-6)
    rod = m.tessellate(Cylinder(radius=0.5, height=2.0), {}, uv_m=1.0)
    side = np.abs(rod.normals[:, 2]) < 0.5
    assert np.ptp(rod.uv[side, 0]) == pytest.approx(math.pi, rel=1e-6)


def test_a_missing_mesh_is_named():
    with pytest.raises(UserError, match="meshes of this scene"):
        m.tessellate(Mesh(sha256="0" * 64), {})
