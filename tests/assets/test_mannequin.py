"""The mannequin has a human's proportions, closed skins and a skeleton that fits its parts."""

from __future__ import annotations

import numpy as np
import pytest

from wmeval.assets import loft, mannequin
from wmeval.assets.mannequin import SKELETON, joint_at_rest, part_mesh
from wmeval.scene import Mesh, MeshData, Sphere


def volume(mesh: MeshData) -> float:
    """Signed volume [m^3]: positive for a closed mesh whose faces look outwards."""
    a, b, c = np.moveaxis(mesh.vertices.astype(np.float64)[mesh.triangles], 1, 0)
    return float(np.einsum("ij,ij->i", a, np.cross(b, c)).sum() / 6)


def closed(mesh: MeshData) -> bool:
    """Every edge is met once in each direction, vertices in one place taken as one."""
    _, place = np.unique(np.rint(mesh.vertices * 1e5), axis=0, return_inverse=True)
    t = np.asarray(place).ravel()[mesh.triangles]
    edges = np.concatenate([t[:, [0, 1]], t[:, [1, 2]], t[:, [2, 0]]])
    edges = edges[edges[:, 0] != edges[:, 1]]
    there, n = np.unique(edges, axis=0, return_counts=True)
    back = {(b, a): k for (a, b), k in zip(map(tuple, there.tolist()), n.tolist(), strict=True)}
    return back == dict(zip(map(tuple, there.tolist()), n.tolist(), strict=True))


@pytest.mark.parametrize("bone", [b.name for b in SKELETON])
def test_parts_are_closed_and_look_outwards(bone: str) -> None:
    mesh = part_mesh(bone)
    assert closed(mesh)
    assert volume(mesh) > 0
    corner = mesh.vertices[mesh.triangles].astype(np.float64)
    facing = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    seen = np.einsum("fj,fkj->fk", facing, mesh.normals[mesh.triangles].astype(np.float64))
    assert (seen > 0).mean() > 0.99


def test_a_lofted_ellipsoid_has_its_volume_and_normals() -> None:
    turn = np.linspace(-np.pi / 2, np.pi / 2, 61)
    rings = np.array(
        [
            np.column_stack([loft.superellipse(96, 2 * np.cos(t) + 1e-9, np.cos(t) + 1e-9),
                             np.full(96, 3 * np.sin(t))])
            for t in turn
        ]
    )  # fmt: skip
    mesh = loft.loft(rings)
    assert volume(mesh) == pytest.approx(4 / 3 * np.pi * 6, rel=5e-3)
    true = mesh.vertices / np.array([4, 1, 9])
    true /= np.linalg.norm(true, axis=1, keepdims=True)
    assert np.einsum("ij,ij->i", true, mesh.normals).min() > 0.995


def test_a_creased_edge_stays_sharp() -> None:
    square = np.array([[1, 1, 0], [-1, 1, 0], [-1, -1, 0], [1, -1, 0.0]])
    mesh = loft.loft(np.stack([square, square + np.array([0, 0, 2])]), crease_deg=40)
    assert volume(mesh) == pytest.approx(8)
    assert np.abs(mesh.normals).max(axis=1).min() > 0.999


def test_stature_and_lengths_are_those_of_the_table() -> None:
    stature = 1.8
    figure = mannequin.mannequin("skin", "joint", stature=stature)
    low, high = np.inf, -np.inf
    for bone in SKELETON:
        mesh = part_mesh(bone.name, stature)
        z = mesh.vertices[:, 2] + figure.positions[bone.name][2]
        low, high = min(low, float(z.min())), max(high, float(z.max()))
    assert low == pytest.approx(0, abs=2e-3)
    assert high == pytest.approx(stature, abs=0.01)
    # Drillis & Contini (1966): heights of the joints and lengths of the segments.
    heights = {"foot": 0.039, "shank": 0.285, "thigh": 0.530, "upper_arm": 0.812}
    for part, height in heights.items():
        assert joint_at_rest(f"{part}_left")[2] == pytest.approx(height, abs=1e-9)
    hand = part_mesh("hand_right", stature).vertices[:, 2]
    fingertip = figure.positions["hand_right"][2] + float(hand.min())
    assert fingertip / stature == pytest.approx(0.377, abs=0.01)
    foot, toes = (part_mesh(f"{n}_left", stature).vertices[:, 1] for n in ("foot", "toes"))
    length = (figure.positions["toes_left"][1] + float(toes.max())) - (
        figure.positions["foot_left"][1] + float(foot.min())
    )
    assert length / stature == pytest.approx(0.152, abs=0.003)


def test_left_and_right_are_mirror_images() -> None:
    figure = mannequin.mannequin("skin", "joint")
    for bone in SKELETON:
        if bone.name.endswith("_left"):
            other = bone.name.replace("left", "right")
            x, y, z = figure.positions[bone.name]
            assert (-x, y, z) == pytest.approx(figure.positions[other])
            here = np.sort(part_mesh(bone.name).vertices[:, 0])
            there = np.sort(-part_mesh(other).vertices[:, 0])
            assert np.allclose(here, there)


def test_every_part_has_its_mesh_and_parents_come_first() -> None:
    figure = mannequin.mannequin("skin", "joint")
    known: set[str] = set()
    for bone in SKELETON:
        assert bone.parent is None or bone.parent in known
        known.add(bone.name)
        first, *balls = figure.visuals[bone.name]
        assert isinstance(first.shape, Mesh)
        assert first.shape.sha256 in figure.meshes
        assert all(isinstance(b.shape, Sphere) for b in balls)
        # The body's origin lies in the middle of its mesh: bounding spheres stay tight.
        mesh = figure.meshes[first.shape.sha256].vertices
        middle = 0.5 * (mesh.min(axis=0) + mesh.max(axis=0))
        assert np.abs(middle).max() < 0.025


@pytest.mark.parametrize("cell", [0.01, 0.03, 0.08])
def test_stand_ins_depart_no_more_than_they_say(cell: float) -> None:
    mesh = part_mesh("chest")
    coarse, departure = loft.clustered(mesh, cell)
    assert 0 < departure <= cell * np.sqrt(3) / 2 * 2
    assert len(coarse.triangles) < len(mesh.triangles)
    assert closed(coarse)
    assert volume(coarse) == pytest.approx(volume(mesh), rel=3 * departure / 0.1)
    # Every vertex of the fine mesh has one of the coarse within reach.
    gap = np.linalg.norm(mesh.vertices[:, None] - coarse.vertices[None], axis=2).min(axis=1)
    assert gap.max() <= departure + 1e-6


def test_figures_list_their_stand_ins_from_coarse_to_fine() -> None:
    figure = mannequin.mannequin("skin", "joint")
    for visuals in figure.visuals.values():
        shape = visuals[0].shape
        assert isinstance(shape, Mesh)
        errors = [error for _, error in shape.coarser]
        assert errors == sorted(errors, reverse=True)
        sizes = [len(figure.meshes[key].triangles) for key, _ in shape.coarser]
        assert sizes == sorted(sizes)
        assert sizes[-1] <= len(figure.meshes[shape.sha256].triangles)
