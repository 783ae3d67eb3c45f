"""Things on and around the table: closed meshes, everyday sizes, parts where they belong."""

from collections import Counter

import numpy as np
import pytest

from wmeval.assets import furniture, tableware, terrace
from wmeval.assets.solids import Part, plate_of, slab, tube, turned
from wmeval.errors import UserError

THINGS = {
    "toaster": (tableware.toaster, (0.45, 0.22, 0.28)),
    "mug": (tableware.mug, (0.135, 0.1, 0.11)),
    "bowl": (tableware.bowl, (0.31, 0.31, 0.09)),
    "plate": (tableware.plate, (0.29, 0.29, 0.025)),
    "knife": (tableware.knife, (0.24, 0.025, 0.015)),
    "table": (furniture.round_table, (1.62, 1.62, 0.76)),
    "chair": (furniture.chair, (0.47, 0.55, 0.93)),
    "lamp": (furniture.table_lamp, (0.32, 0.32, 0.53)),
    "fence": (lambda: terrace.picket_fence(3.0), (3.05, 0.15, 1.05)),
}


def faces(mesh):
    """Triangles over welded vertices, without those that have no area."""
    _, same = np.unique(np.round(mesh.vertices.astype(float), 5), axis=0, return_inverse=True)
    t = same.ravel()[mesh.triangles]
    return t[(t[:, 0] != t[:, 1]) & (t[:, 1] != t[:, 2]) & (t[:, 2] != t[:, 0])]


def open_edges(meshes):
    """Edges that are not met as often one way as the other."""
    edges = Counter()
    start = 0
    points = np.concatenate([m.vertices for m in meshes]).astype(float)
    _, same = np.unique(np.round(points, 5), axis=0, return_inverse=True)
    for mesh in meshes:
        t = same.ravel()[mesh.triangles.astype(int) + start]
        start += len(mesh.vertices)
        for a, b, c in t[(t[:, 0] != t[:, 1]) & (t[:, 1] != t[:, 2]) & (t[:, 2] != t[:, 0])]:
            edges.update([(a, b), (b, c), (c, a)])
    return sum(1 for (a, b), n in edges.items() if edges.get((b, a), 0) != n)


def volume(mesh):
    c = mesh.vertices.astype(float)[mesh.triangles]
    return float(np.einsum("ij,ij->i", c[:, 0], np.cross(c[:, 1], c[:, 2])).sum() / 6)


@pytest.mark.parametrize("name", THINGS)
def test_things_are_closed_so_that_they_cast_shadows(name):
    parts = THINGS[name][0]()
    # A bowl's two glazes are two sheets that meet at the rim.
    groups = [[p.mesh for p in parts]] if name == "bowl" else [[p.mesh] for p in parts]
    for meshes in groups:
        assert open_edges(meshes) == 0
        assert sum(volume(m) for m in meshes) > 0  # facing outwards


@pytest.mark.parametrize("name", THINGS)
def test_things_have_everyday_sizes_and_stand_on_their_foot(name):
    make, most = THINGS[name]
    points = np.concatenate([p.mesh.vertices for p in make()])
    size = np.ptp(points, axis=0)
    assert (size <= most).all()
    assert (size >= 0.8 * np.array(most)).all()
    assert abs(points[:, 2].min()) < (0.07 if name == "fence" else 0.006)


@pytest.mark.parametrize("name", THINGS)
def test_normals_are_unit_and_look_out_of_their_triangles(name):
    for part in THINGS[name][0]():
        m = part.mesh
        assert np.abs(np.linalg.norm(m.normals, axis=1) - 1).max() < 1e-5
        c = m.vertices.astype(float)[m.triangles]
        facet = np.cross(c[:, 1] - c[:, 0], c[:, 2] - c[:, 0])
        out = np.einsum("ij,ij->i", facet, m.normals[m.triangles].mean(axis=1))
        assert (out >= -1e-12).all()


def test_the_mug_holds_its_coffee_and_the_handle_stands_out():
    body, coffee = tableware.mug()
    assert (body.material, coffee.material) == ("glaze", "coffee")
    level = coffee.mesh.vertices[:, 2].max()
    assert 0.5 * tableware.MUG_HEIGHT < level < tableware.MUG_HEIGHT
    assert np.hypot(*coffee.mesh.vertices[:, :2].T).max() < tableware.MUG_RADIUS
    assert body.mesh.vertices[:, 0].max() > tableware.MUG_RADIUS + 0.02


def test_a_tube_has_its_radius_and_volume():
    rod = tube([(0, 0, 0), (0, 0, 0.5), (0, 0, 2.0)], 0.1, 64)
    assert open_edges([rod]) == 0
    assert np.hypot(*rod.vertices[:, :2].T).max() == pytest.approx(0.1, rel=1e-6)
    polygon = 0.5 * 64 * 0.1**2 * np.sin(2 * np.pi / 64)
    assert volume(rod) == pytest.approx(2 * polygon, rel=1e-5)
    with pytest.raises(UserError, match="tube: 1 points"):
        tube([(0, 0, 0)], 0.1)


def test_plates_and_turned_slabs_keep_their_volume():
    square = plate_of([(0, 0), (2, 0), (2, 1), (0, 1)], 0.25)
    assert volume(square) == pytest.approx(0.5, rel=1e-6)
    block = turned(slab((0.5, 0.3, 0.2), 0.0), (1, 2, 3), 40)
    assert volume(block) == pytest.approx(8 * 0.5 * 0.3 * 0.2, rel=1e-5)


def test_deck_boards_cover_the_square_but_for_their_gaps():
    parts = terrace.deck_boards(2.0, 0.025, 1)
    assert {p.material for p in parts} == {"deck_0", "deck_1", "deck_2"}
    covered = sum(volume(p.mesh) for p in parts) / 0.025
    assert 0.93 * 16 < covered < 0.97 * 16
    points = np.concatenate([p.mesh.vertices for p in parts])
    assert np.abs(points[:, :2]).max() < 2.0
    assert points[:, 2].max() == pytest.approx(0.0, abs=1e-7)


def test_parts_of_one_material_are_joined():
    names = [p.material for p in tableware.toaster()]
    assert len(names) == len(set(names)) == 4
    assert all(isinstance(p, Part) for p in tableware.toaster())
