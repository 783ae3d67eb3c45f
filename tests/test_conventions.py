"""Frames and quaternions against independent matrix computations."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.transform import Rotation

from wmeval import conventions as c

P = np.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]])
unit = st.floats(-1, 1, allow_nan=False)
vectors = st.tuples(unit, unit, unit).map(np.array)
quaternions = (
    st.tuples(unit, unit, unit, unit)
    .map(np.array)
    .filter(lambda q: np.linalg.norm(q) > 0.1)
    .map(lambda q: q / np.linalg.norm(q))
)


def unity_rotation(euler_degrees):
    """Unity's rotation matrix: about z, then x, then y, each by its left-handed convention."""
    x, y, z = np.radians(euler_degrees)
    cx, sx, cy, sy, cz, sz = (f(a) for a in (x, y, z) for f in (math.cos, math.sin))
    rx = np.array([[1, 0, 0], [0, cx, -sx], [0, sx, cx]])
    ry = np.array([[cy, 0, sy], [0, 1, 0], [-sy, 0, cy]])
    rz = np.array([[cz, -sz, 0], [sz, cz, 0], [0, 0, 1]])
    return ry @ rx @ rz


@given(quaternions, quaternions)
def test_product_and_matrix_agree_with_scipy(a, b):
    ra, rb = (Rotation.from_quat(q[[1, 2, 3, 0]]) for q in (a, b))
    np.testing.assert_allclose(c.quaternion_to_matrix(a), ra.as_matrix(), atol=1e-12)
    product = c.quaternion_multiply(a, b)
    np.testing.assert_allclose(c.quaternion_to_matrix(product), (ra * rb).as_matrix(), atol=1e-12)
    np.testing.assert_allclose(
        c.quaternion_to_matrix(c.quaternion_conjugate(a)), ra.inv().as_matrix(), atol=1e-12
    )


@given(quaternions)
def test_matrix_to_quaternion_inverts(q):
    back = c.matrix_to_quaternion(c.quaternion_to_matrix(q))
    assert min(np.abs(back - q).max(), np.abs(back + q).max()) < 1e-9


@given(quaternions, vectors)
def test_unity_rotation_acts_as_the_world_rotation(q, v):
    """Turning in Unity's frame is turning in the world, seen through P."""
    x, y, z, w = c.to_unity_quaternion(q)
    in_unity = Rotation.from_quat([x, y, z, w]).apply(P @ v)
    np.testing.assert_allclose(in_unity, P @ (c.quaternion_to_matrix(q) @ v), atol=1e-12)
    np.testing.assert_allclose(c.from_unity_quaternion(np.array([x, y, z, w])), q, atol=0)


@given(vectors, vectors)
def test_axial_vectors_keep_the_cross_product(w, r):
    """v = w x r must hold between Unity's components, where both cross products read the same."""
    np.testing.assert_allclose(
        c.to_unity_vector(np.cross(w, r)),
        np.cross(c.to_unity_axial(w), c.to_unity_vector(r)),
        atol=1e-12,
    )


@given(quaternions)
def test_unity_euler_angles_rebuild_the_rotation(q):
    angles = c.unity_euler_degrees(q)
    assert (angles >= -180).all()
    assert (angles < 180).all()
    x, y, z, w = c.to_unity_quaternion(q)
    matrix = Rotation.from_quat([x, y, z, w]).as_matrix()
    np.testing.assert_allclose(unity_rotation(angles), matrix, atol=1e-6)


@pytest.mark.parametrize("pitch", [90.0, -90.0])
def test_unity_euler_angles_at_the_gimbal_lock(pitch):
    matrix = unity_rotation([pitch, 30.0, 20.0])
    x, y, z, w = Rotation.from_matrix(matrix).as_quat()
    angles = c.unity_euler_degrees(c.from_unity_quaternion(np.array([x, y, z, w])))
    np.testing.assert_allclose(unity_rotation(angles), matrix, atol=1e-6)
    assert angles[2] == 0


def test_a_unity_camera_behind_and_above_looks_forward_and_down():
    """Offset (0, 6, -12) in Unity looking at the origin: pitch atan(6/12), no yaw, no roll."""
    pose = c.look_at(np.array([0.0, -12.0, 6.0]), np.zeros(3))
    np.testing.assert_allclose(
        c.unity_camera_euler_degrees(pose), [math.degrees(math.atan2(6, 12)), 0, 0], atol=1e-9
    )
    right = c.look_at(np.zeros(3), np.array([1.0, 0, 0]))
    np.testing.assert_allclose(c.unity_camera_euler_degrees(right), [0, 90, 0], atol=1e-9)


@given(vectors.filter(lambda v: np.linalg.norm(v[:2]) > 0.1), vectors)
def test_projection_and_unprojection_are_inverse(target, offset):
    pose = c.look_at(np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3]) + 5 * target)
    rotation = pose[:3, :3]
    np.testing.assert_allclose(rotation.T @ rotation, np.eye(3), atol=1e-12)
    assert np.linalg.det(rotation) == pytest.approx(1)
    K = c.intrinsics(0.9, 640, 352)
    point = pose[:3, 3] + rotation @ (offset + np.array([0, 0, 3.0]))
    pixel, depth = c.project(point, K, pose)
    assert depth == pytest.approx(offset[2] + 3)
    np.testing.assert_allclose(c.unproject(pixel, depth, K, pose), point, atol=1e-9)


def test_the_middle_of_the_picture_is_the_optical_axis():
    pose = c.look_at(np.array([1.0, -3, 2]), np.array([1.0, 4, 0]))
    pixel, _ = c.project(np.array([1.0, 4, 0]), c.intrinsics(0.7, 321, 180), pose)
    np.testing.assert_allclose(pixel, [160.5, 90.0], atol=1e-9)
    grid = c.pixel_grid(321, 180)
    assert grid[0, 0].tolist() == [0.5, 0.5]
    assert grid[-1, -1].tolist() == [320.5, 179.5]


def test_the_vertical_field_of_view_spans_the_height():
    K = c.intrinsics(math.radians(60), 400, 200)
    pose = c.look_at(np.zeros(3), np.array([0, 1.0, 0]))
    pixel, _ = c.project(np.array([0, 1.0, math.tan(math.radians(30))]), K, pose)
    np.testing.assert_allclose(pixel, [200, 0], atol=1e-9)


def test_tilt_is_the_angle_of_the_own_z_axis():
    q = c.quaternion_multiply(
        c.axis_angle_quaternion((0, 0, 1), 0.7), c.axis_angle_quaternion((1, 1, 0), 0.4)
    )
    assert c.tilt_angle(q) == pytest.approx(0.4)


def test_look_at_refuses_a_view_without_direction():
    with pytest.raises(ValueError, match="no view"):
        c.look_at(np.zeros(3), np.array([0, 0, 1.0]))


def test_what_is_computed_of_components_does_not_depend_on_where_it_lies():
    count = 369
    memory = np.zeros(6 * count + 64)
    vectors = memory[: 3 * count].reshape(count, 3)
    vectors[:] = np.random.default_rng(0).uniform(0.1, 0.9, (count, 3))
    x, y, z = c.apart(vectors)
    assert np.array_equal(np.stack([x, y, z], axis=1), vectors)
    found = set()
    for gap in range(40):
        place = memory[3 * count + gap : 4 * count + gap]
        found.add(np.arctan2(y, x, out=place).tobytes() + np.exp(z, out=place).tobytes())
    assert len(found) == 1


def test_continuous_quaternions_are_the_same_rotations_without_jumps():
    rng = np.random.default_rng(0)
    angle = np.linspace(0, 9.0, 200)[:, None] * np.array([1.0, -2.0])
    axis = np.array([[0.6, 0.0, 0.8], [0.0, 1.0, 0.0]])
    smooth = np.concatenate(
        [np.cos(angle / 2)[..., None], np.sin(angle / 2)[..., None] * axis], axis=-1
    )
    flipped = smooth * np.where(rng.random((200, 2)) < 0.5, -1.0, 1.0)[..., None]
    flipped[0] = smooth[0]
    assert np.abs(np.diff(flipped, axis=0)).max() > 1
    np.testing.assert_array_equal(c.continuous_quaternions(flipped), smooth)
    one = smooth[:1, 0]
    np.testing.assert_array_equal(c.continuous_quaternions(one), one)
