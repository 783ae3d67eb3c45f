"""The sports car's and the road's meshes: closed, right way round, of the stated size."""

import numpy as np
import pytest

from wmeval.assets import car, road
from wmeval.assets.meshes import merge

FLAT = np.arange(3)


def volume(mesh):
    """Signed volume: positive when triangles are counter-clockwise from outside."""
    a, b, c = (mesh.vertices.astype(float)[mesh.triangles[:, k]] for k in range(3))
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def open_edges(mesh):
    """How many edges are not shared by two triangles; places count, not vertices."""
    _, place = np.unique(np.rint(mesh.vertices * 1e5).astype(int), axis=0, return_inverse=True)
    faces = place.ravel()[mesh.triangles]
    faces = faces[(faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2])]
    faces = faces[faces[:, 0] != faces[:, 2]]
    edges = np.sort(np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]]), axis=1)
    _, counts = np.unique(edges, axis=0, return_counts=True)
    return int((counts % 2).sum())


@pytest.fixture(scope="module")
def body():
    return car.body()


def test_patches_of_the_skin_close_up():
    for patches in (car._shell(), car._cabin()):
        whole = merge(list(patches.values()))
        assert open_edges(whole) == 0
        assert volume(whole) > 0.3
        assert all(np.isfinite(m.normals).all() for m in patches.values())


def test_car_has_its_size_and_clears_the_road(body):
    everything = merge(list(body.values())).vertices
    low, high = everything.min(axis=0), everything.max(axis=0)
    assert high[1] - low[1] == pytest.approx(car.LENGTH, abs=0.06)
    assert high[0] - low[0] < 2.1
    assert high[2] + car.COM_HEIGHT == pytest.approx(car.HEIGHT, abs=0.03)
    assert low[2] + car.COM_HEIGHT > 0.1


def test_mirrors_stand_on_the_body_without_the_cabin(body):
    """From the driver's eye, which is inside it, no cabin is seen: nothing may hang on it."""
    shell = merge(list(car._shell().values())).vertices.astype(float)
    for side in (-1, 1):

        def near(points, x, width, side=side):
            return (np.abs(side * points[:, 0] - x) < width) & (np.abs(points[:, 1] - 0.53) < 0.06)

        foot, head = body[car.DARK].vertices, body[car.PAINT].vertices
        foot = foot[near(foot, 0.79, 0.10) & (foot[:, 2] + car.COM_HEIGHT > 0.70)]
        head = head[near(head, 0.90, 0.10) & (head[:, 2] + car.COM_HEIGHT > 0.86)]
        skin = shell[near(shell, 0.79, 0.10), 2].max()
        assert foot[:, 2].min() < skin - 0.005
        assert foot[:, 2].max() > head[:, 2].min()
        assert (side * foot[:, 0]).max() > (side * head[:, 0]).min() + 0.01


def test_car_is_yellow_with_two_black_stripes_over_its_whole_length(body):
    paint, stripe = body[car.PAINT], body[car.STRIPE]

    def seen_from_above(mesh):
        corner = mesh.vertices.astype(float)[mesh.triangles]
        facet = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]) / 2
        return np.maximum(facet[:, 2], 0), corner.mean(axis=1)

    area, _ = seen_from_above(paint)
    black, centre = seen_from_above(stripe)
    assert area.sum() > 2.5
    assert 0.6 < black.sum() < area.sum() / 2
    # Left and right of the middle, from tail to nose.
    low = (centre[:, 2] < 0.56) | (np.abs(centre[:, 0]) < 0.4) & (centre[:, 1] > -1.7)  # no wing
    for side in (-1, 1):
        own = low & (side * centre[:, 0] > 0)
        assert np.abs(centre[own, 0]).min() > 0.08
        assert np.ptp(centre[own, 1]) > 3.9
    assert (np.abs(centre[low, 0]) < 0.36).all()


def test_wheels_are_round_mirrored_and_turn_about_x():
    right = car.wheel()
    tyre = right[car.TYRE].vertices
    radius = np.hypot(tyre[:, 1], tyre[:, 2])
    assert radius.max() == pytest.approx(car.WHEEL_RADIUS, abs=1e-6)
    assert np.ptp(tyre[:, 0]) == pytest.approx(car.WHEEL_WIDTH, abs=0.01)
    assert volume(right[car.TYRE]) > 0
    made = car.sports_car()
    assert made is car.sports_car()
    left, other = made.wheel
    assert [v.material for v in left] == [v.material for v in other]
    for a, b in zip(left, other, strict=True):
        x, y = made.meshes[a.shape.sha256], made.meshes[b.shape.sha256]
        np.testing.assert_allclose(x.vertices * [-1, 1, 1], y.vertices)
    # Spokes: a turn of the wheel shows.
    rim = right[car.RIM].vertices
    face = rim[rim[:, 0] > 0.08]
    angle = np.degrees(np.arctan2(face[:, 2], face[:, 1]))[np.hypot(face[:, 1], face[:, 2]) > 0.1]
    inner = np.hypot(face[:, 1], face[:, 2]) < 0.2
    assert len(angle) > 100
    assert inner.any()


def test_wheels_fit_into_their_arches(body):
    """At rest nothing of the painted sides reaches into a wheel."""
    paint = np.concatenate([body[car.PAINT].vertices, body[car.STRIPE].vertices])
    for index in range(4):
        (x, y, z), _ = car.rest_of_wheel(index)
        near = np.abs(paint[:, 0] - x) < car.WHEEL_WIDTH / 2
        distance = np.hypot(paint[near, 1] - y, paint[near, 2] - z)
        assert distance.min() > car.WHEEL_RADIUS + 0.02


def test_lane_marks_go_on_from_tile_to_tile():
    length = 40.0
    marks = road.lane_marks(length)
    v = marks.vertices
    assert (marks.normals == [0, 0, 1]).all()
    assert volume(marks) == pytest.approx(0, abs=5)
    edge = v[np.abs(v[:, 0]) > 7]
    assert edge[:, 1].min() == 0
    assert edge[:, 1].max() == length
    middle = np.unique(v[np.abs(v[:, 0]) < 0.1, 1])
    np.testing.assert_allclose(np.diff(np.concatenate([middle, middle + length])).round(4)[0::2], 4)
    np.testing.assert_allclose(np.diff(np.concatenate([middle, middle + length])).round(4)[1::2], 6)


def test_slabs_have_no_ends_and_face_out():
    mesh = road.slab(-8.4, 8.4, 40.0, 0.0, 0.3)
    used = mesh.normals[mesh.triangles.ravel()]
    assert np.abs(used[:, 1]).max() < 0.1
    assert used[:, 2].min() >= 0
    assert mesh.vertices[:, 2].max() == pytest.approx(0, abs=1e-7)
    assert mesh.vertices[:, 1].min() == 0
    assert mesh.vertices[:, 1].max() == 40


def test_guard_rails_stand_on_both_sides_and_face_out():
    mesh = road.guard_rails(40.0)
    v = mesh.vertices
    assert v[:, 2].max() == pytest.approx(road.RAIL_HEIGHT, abs=0.02)
    assert v[:, 2].min() < 0
    assert np.abs(v[:, 0]).min() > road.HALF_ROAD
    np.testing.assert_allclose(v[:, 0].min(), -v[:, 0].max(), atol=1e-6)
    # A thin closed profile without ends; inside and outside the right way round.
    outline = np.array([(0.0, 0.1), (0.05, 0.1), (0.05, -0.1), (0.0, -0.1)])
    for way in (outline, outline[::-1]):
        beam = road._extruded(way, 40.0)
        assert volume(beam) == pytest.approx(2 / 3 * 0.05 * 0.2 * 40, rel=1e-6)
    assert volume(mesh) > 0


def test_trees_are_tall_and_slender_and_differ():
    trees = [road.poplar(k) for k in range(4)]
    for tree in trees:
        crown = tree.crown.vertices
        wide = np.hypot(crown[:, 0], crown[:, 1]).max()
        assert 10 < crown[:, 2].max() < 16
        assert wide < 0.25 * crown[:, 2].max()
        assert volume(tree.crown) > 0
        assert len(tree.crown.triangles) < 1500
    assert len({t.crown.content_hash() for t in trees}) == 4
    assert road.poplar(2).crown.content_hash() == trees[2].crown.content_hash()
