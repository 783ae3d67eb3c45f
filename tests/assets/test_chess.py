"""Chess pieces: closed, in order of height, told apart by their outlines, held by what collides."""

from __future__ import annotations

import numpy as np
import pytest

from wmeval.assets.chess import KINDS, SIZES, coarser_meshes, piece_collision, piece_mesh
from wmeval.conventions import quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import Box, Capsule, Collision, Cylinder, MeshData


def depth_in(part: Collision, points: np.ndarray) -> np.ndarray:
    """How deep [m] points (N, 3) lie in a primitive; negative outside (a bound, not exact)."""
    turn = quaternion_to_matrix(np.array(part.quaternion_wxyz))
    p = (points - np.array(part.position)) @ turn
    shape = part.shape
    if isinstance(shape, Cylinder):
        side = shape.radius - np.hypot(p[:, 0], p[:, 1])
        return np.minimum(side, shape.height / 2 - np.abs(p[:, 2]))
    if isinstance(shape, Box):
        return (np.array(shape.half_extents) - np.abs(p)).min(axis=1)
    assert isinstance(shape, Capsule)
    half = shape.height / 2 - shape.radius
    axis = np.clip(p[:, 2], -half, half)
    return shape.radius - np.sqrt(p[:, 0] ** 2 + p[:, 1] ** 2 + (p[:, 2] - axis) ** 2)


def outline(mesh: MeshData, heights: np.ndarray) -> np.ndarray:
    """Widest distance from the axis within 2 cm of given shares of a piece's height."""
    v = mesh.vertices.astype(np.float64)
    r = np.hypot(v[:, 0], v[:, 1])
    top = v[:, 2].max()
    return np.array([r[np.abs(v[:, 2] - h * top) < 0.03].max(initial=0.0) / top for h in heights])


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_are_closed_stand_on_their_base_and_have_their_size(kind: str) -> None:
    mesh, size = piece_mesh(kind), SIZES[kind]
    z = mesh.vertices[:, 2]
    assert z.min() == pytest.approx(0.0, abs=1e-6)
    assert z.max() == pytest.approx(size.height, abs=0.01)
    low = mesh.vertices[z < 0.2]
    assert np.hypot(low[:, 0], low[:, 1]).max() == pytest.approx(size.base, abs=1e-3)
    _, place = np.unique(np.rint(mesh.vertices * 1e5), axis=0, return_inverse=True)
    t = np.asarray(place).ravel()[mesh.triangles]
    edges = np.concatenate([t[:, [0, 1]], t[:, [1, 2]], t[:, [2, 0]]])
    edges = edges[edges[:, 0] != edges[:, 1]]
    # Every edge is walked as often one way as the other: nothing gapes.
    there = {tuple(e): n for e, n in zip(*_counted(edges), strict=True)}
    back = {tuple(e): n for e, n in zip(*_counted(edges[:, ::-1]), strict=True)}
    assert there == back
    corner = mesh.vertices.astype(np.float64)[mesh.triangles]
    volume = np.einsum("ij,ij->i", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])).sum() / 6
    assert volume > 0.1 * np.pi * size.base**2 * size.height
    # Normals look the way their faces do.
    facing = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    seen = np.einsum("fj,fkj->fk", facing, mesh.normals[mesh.triangles].astype(np.float64))
    assert (seen > 0).mean() > 0.97


def _counted(edges: np.ndarray) -> tuple[list[list[int]], list[int]]:
    rows, count = np.unique(edges, axis=0, return_counts=True)
    return rows.tolist(), count.tolist()


def test_the_order_of_heights_is_the_players() -> None:
    order = ("king", "queen", "bishop", "knight", "rook", "pawn")
    heights = [SIZES[k].height for k in order]
    assert heights == sorted(heights, reverse=True)
    # Oversized beside a person of 1.75 m.
    assert heights[0] > 1.4 * 1.75
    assert heights[-1] > 0.6 * 1.75


def test_no_two_kinds_have_the_same_outline() -> None:
    heights = np.linspace(0.45, 0.98, 20)
    outlines = [outline(piece_mesh(k), heights) for k in KINDS]
    for i in range(len(KINDS)):
        for j in range(i):
            assert np.abs(outlines[i] - outlines[j]).max() > 0.03, (KINDS[i], KINDS[j])


@pytest.mark.parametrize("kind", KINDS)
def test_what_collides_holds_the_piece_and_little_more(kind: str) -> None:
    mesh = piece_mesh(kind)
    points = mesh.vertices.astype(np.float64)
    middle = points[mesh.triangles].mean(axis=1)
    points = np.concatenate([points, middle])
    parts = piece_collision(kind)
    inside = np.max([depth_in(part, points) for part in parts], axis=0)
    # The knight's mane and ears are out of anybody's reach.
    slack = 0.08 if kind == "knight" else 2e-3
    assert (inside > -slack).mean() > (0.97 if kind == "knight" else 0.9999)
    # No disc is wider than the piece somewhere within its own height.
    z, r = points[:, 2], np.hypot(points[:, 0], points[:, 1])
    for part in parts:
        if isinstance(part.shape, Cylinder):
            low = part.position[2] - part.shape.height / 2
            level = (z > low - 0.02) & (z < low + part.shape.height + 0.02)
            assert part.shape.radius <= r[level].max() + 4e-3


def crossings(mesh: MeshData, origin: np.ndarray, ray: np.ndarray) -> np.ndarray:
    """Sorted lengths at which a ray meets a mesh (Moeller & Trumbore 1997)."""
    a, b, c = np.moveaxis(mesh.vertices.astype(np.float64)[mesh.triangles], 1, 0)
    p = np.cross(ray, c - a)
    det = np.einsum("ij,ij->i", b - a, p)
    with np.errstate(divide="ignore", invalid="ignore"):
        u = np.einsum("ij,ij->i", origin - a, p) / det
        q = np.cross(origin - a, b - a)
        v = q @ ray / det
        t = np.einsum("ij,ij->i", c - a, q) / det
        hit = (np.abs(det) > 1e-12) & (u >= 0) & (v >= 0) & (u + v <= 1) & (t > 0)
    return np.sort(t[hit])


def test_the_bishops_mitre_is_cut() -> None:
    # Down into the mitre, through the gap of the cut, and on: in, out, in, out of the egg.
    depth = crossings(piece_mesh("bishop"), np.array([0.003, 0.1, 2.5]), np.array([0, 0, -1.0]))
    gap = 2.5 - depth[1:3]
    assert gap[0] - gap[1] == pytest.approx(2 * 0.017 / np.cos(np.radians(38)), abs=0.01)
    assert ((gap > 1.6) & (gap < 1.75)).all()
    # Behind, there is no cut.
    whole = crossings(piece_mesh("bishop"), np.array([0.003, -0.1, 2.5]), np.array([0, 0, -1.0]))
    assert whole[1] - whole[0] > 0.2


def test_the_rook_has_six_battlements() -> None:
    mesh, up = piece_mesh("rook"), np.array([0.0, 0.0, 1.0])
    angle = np.linspace(0, 2 * np.pi, 180, endpoint=False) + 0.003
    wall = [
        len(crossings(mesh, np.array([0.29 * np.cos(a), 0.29 * np.sin(a), 1.48]), up)) % 2
        for a in angle
    ]
    assert np.abs(np.diff([*wall, wall[0]])).sum() == 12
    assert 0.5 < np.mean(wall) < 0.8


def test_an_unknown_piece_names_the_known_ones() -> None:
    with pytest.raises(UserError, match="choose from king, queen, rook, bishop, knight, pawn"):
        piece_mesh("jester")


@pytest.mark.parametrize("kind", KINDS)
def test_stand_ins_depart_no_more_than_they_say(kind: str) -> None:
    fine = piece_mesh(kind)
    count = len(fine.triangles)
    sizes = []
    for mesh, departure in coarser_meshes(kind):
        sizes.append(len(mesh.triangles))
        assert departure < 0.1
        # The outline: the widest points at each height of the finer one lie within reach.
        for height in np.linspace(0.05, 0.95, 19) * SIZES[kind].height:
            level = np.abs(fine.vertices[:, 2] - height) < departure
            if level.any():
                r = np.hypot(*fine.vertices[level, :2].T).max()
                near = np.abs(mesh.vertices[:, 2] - height) < 0.35
                assert np.hypot(*mesh.vertices[near, :2].T).max() > r - departure - 1e-3
        low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
        assert np.abs(low - fine.vertices.min(axis=0)).max() <= departure + 1e-6
        assert np.abs(high - fine.vertices.max(axis=0)).max() <= departure + 1e-6
    assert sizes == sorted(sizes)
    assert sizes[-1] < count
