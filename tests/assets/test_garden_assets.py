"""Stones, leaves, trees and ornaments: closed, outward, the same for the same seed."""

import math
from collections import Counter

import numpy as np
import pytest

from wmeval.assets import foliage, garden, trees
from wmeval.errors import UserError


def volume(mesh):
    corner = mesh.vertices.astype(np.float64)[mesh.triangles]
    return float(np.einsum("ij,ij->", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])) / 6)


def open_edges(mesh):
    """Edges without a partner of the other direction, corners at the same place being one."""
    _, key = np.unique(mesh.vertices.round(5), axis=0, return_inverse=True)
    t = key.reshape(-1)[mesh.triangles]
    edges = np.concatenate([t[:, [0, 1]], t[:, [1, 2]], t[:, [2, 0]]])
    count = Counter(map(tuple, edges[edges[:, 0] != edges[:, 1]].tolist()))
    return sum(1 for (a, b), n in count.items() if count.get((b, a), 0) != n)


def facing(mesh):
    """Share of triangles whose corner normals look to the triangle's outer side."""
    p = mesh.vertices.astype(np.float64)[mesh.triangles]
    facet = np.cross(p[:, 1] - p[:, 0], p[:, 2] - p[:, 0])
    size = np.linalg.norm(facet, axis=1)
    normal = mesh.normals.astype(np.float64)[mesh.triangles].sum(axis=1)
    # Caps and rims may have the normals of the sides beside them.
    return float(((facet * normal).sum(axis=1) > -0.05 * size)[size > 1e-10].mean())


@pytest.mark.parametrize("level", range(4))
def test_icosphere_is_a_closed_sphere_of_equal_triangles(level):
    points, faces = foliage.icosphere(level)
    assert len(faces) == 20 * 4**level
    assert len(points) == 10 * 4**level + 2  # Euler: V - E + F = 2
    np.testing.assert_allclose(np.linalg.norm(points, axis=1), 1, atol=1e-12)
    corner = points[faces]
    area = np.linalg.norm(
        np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1
    )
    assert area.max() / area.min() < 1.9
    with pytest.raises(UserError, match="is not in"):
        foliage.icosphere(6)


def test_icospheres_approach_the_sphere_four_times_as_close_a_level():
    missing = []
    for level in range(5):
        points, faces = foliage.icosphere(level)
        corner = points[faces]
        inside = np.einsum("ij,ij->", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])) / 6
        missing.append(4 * math.pi / 3 - inside)
    ratios = np.array(missing[:-1]) / np.array(missing[1:])
    assert (ratios > 3.0).all()
    assert ratios[-1] == pytest.approx(4.0, abs=0.1)


def test_noise_has_no_mean_and_unit_variance():
    field = foliage.noise_field(3, 2.0, 9.0)
    values = field(np.random.default_rng(0).uniform(-40, 40, (20_000, 3)))
    assert abs(values.mean()) < 0.03
    assert values.std() == pytest.approx(1.0, abs=0.03)
    assert np.abs(values).max() <= math.sqrt(32)


def solids():
    for name, parts in (
        ("lamp", garden.lamp_post()), ("bench", garden.bench()), ("fountain", garden.fountain()),
        ("gate", garden.gate()), ("pond", garden.pond(2.3)), ("bird", garden.bird()),
        ("rockery_front", garden.rockery("foreground")),
        ("rockery_back", garden.rockery("background")), ("pergola", garden.pergola()),
        ("urn", garden.urn()),
    ):  # fmt: skip
        for part, mesh in parts.items():
            if part != "leaves":
                yield f"{name} {part}", mesh
    yield "hedge", garden.hedge(8.0)
    yield "hills", garden.hills(100.0, 15.0, 4)
    yield "stone", foliage.stone(4, (0.5, 0.4, 0.3))
    yield "lump", foliage.lump(4, (0.5, 0.4, 0.3))
    for species in trees.SPECIES:
        yield f"{species} wood", trees.grow(species, 3).wood


SOLIDS = dict(solids())


@pytest.mark.parametrize("name", SOLIDS)
def test_solids_are_closed_and_look_outwards(name):
    mesh = SOLIDS[name]
    assert open_edges(mesh) == 0
    assert volume(mesh) > 0
    assert facing(mesh) > (0.8 if name == "hills" else 0.97)  # hills have a sharp foot
    np.testing.assert_allclose(np.linalg.norm(mesh.normals, axis=1), 1, atol=1e-3)
    assert np.isfinite(mesh.uv).all()
    assert mesh.triangles.max() < len(mesh.vertices)


def test_leaf_sprays_stand_on_their_lump():
    mesh = foliage.leaf_cluster(5, (1.0, 0.8, 0.6), sprays=60, spray=0.3)
    assert len(mesh.triangles) == 80 + 3 * 60
    assert volume(mesh) > 0.5
    reach = np.linalg.norm(mesh.vertices / [1.0, 0.8, 0.6], axis=1)
    assert 1.1 < reach.max() < 2.4
    # The outline is ragged: tips stand out of the lump all around.
    bare = foliage.leaf_cluster(5, (1.0, 0.8, 0.6), sprays=1, spray=0.3)
    assert (
        np.quantile(reach, 0.95)
        > 1.05 * np.linalg.norm(bare.vertices / [1.0, 0.8, 0.6], axis=1).mean()
    )


def test_a_stone_stays_within_its_size():
    for seed in range(6):
        mesh = foliage.stone(seed, (0.6, 0.5, 0.4))
        assert np.linalg.norm(mesh.vertices / [0.6, 0.5, 0.4], axis=1).max() < 1.15
        assert volume(mesh) < 4 / 3 * math.pi * 0.6 * 0.5 * 0.4


@pytest.mark.parametrize("species", trees.SPECIES)
def test_trees_are_as_high_as_their_kind_and_hold_together(species):
    kind, tree = trees.SPECIES[species], trees.grow(species, 9)
    still, boughs = trees.boughs(species, 9)
    high = [still.vertices[:, 2].max()] if len(still.vertices) else []
    high += [float(b.leaves.vertices[:, 2].max()) + b.joint[2] for b in boughs]
    assert 0.8 * kind.height < max(high) < 1.35 * kind.height
    # Every bough's joint lies in the wood.
    wood = tree.wood.vertices.astype(np.float64)
    for bough in boughs:
        if kind.crown == "spire":  # one straight trunk of few corners
            assert math.hypot(*bough.joint[:2]) < kind.trunk
            continue
        assert np.linalg.norm(wood - bough.joint, axis=1).min() < 0.7
    assert len(boughs) == max(1, kind.limbs + 1 if kind.limbs else 1)
    total = len(still.triangles) + sum(len(b.leaves.triangles) for b in boughs)
    assert total == sum(
        len(trees.cluster_mesh(species, c.variant).triangles) for c in tree.clusters
    )
    assert total + len(tree.wood.triangles) < 14_000


def test_the_same_seed_grows_the_same_tree():
    trees.grow.cache_clear()
    first = trees.grow("oak", 4).wood.content_hash()
    trees.grow.cache_clear()
    assert trees.grow("oak", 4).wood.content_hash() == first
    assert trees.grow("oak", 5).wood.content_hash() != first


def test_tube_of_a_straight_path_is_a_cylinder():
    mesh = foliage.tube([(0, 0, 0), (0, 0, 1), (0, 0, 2)], [0.5] * 3, sides=64)
    assert volume(mesh) == pytest.approx(math.pi * 0.25 * 2, rel=2e-3)
    assert open_edges(mesh) == 0
    with pytest.raises(UserError, match="a radius for each"):
        foliage.tube([(0, 0, 0), (0, 0, 1)], [0.5])
