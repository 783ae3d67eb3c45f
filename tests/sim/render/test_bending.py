"""Cloth, solids and ropes in pictures: where their vertices are, whatever was drawn before."""

from dataclasses import replace

import numpy as np
import pytest

from wmeval.deformables import rest_shape
from wmeval.errors import UserError
from wmeval.scene import (
    Block,
    Body,
    Box,
    Camera,
    Cloth,
    Collision,
    Material,
    Rope,
    Scene,
    Sheet,
    Soft,
    Sun,
    Texture,
    Visual,
)
from wmeval.sim.render import labels, make_renderer
from wmeval.sim.render.bending import Bend, fingerprint, stand_ins
from wmeval.sim.render.pieces import start_state

WIDTH, HEIGHT = 320, 176
STUFF = {"areal_density": 0.1, "stretch": 100.0, "shear": 50.0, "bending": 1e-6}
SHEET = Cloth(
    name="sheet", material="cloth", instance=7, position=(0, 0, 0.5),
    surface=Sheet(size=(1.0, 1.0), cells=(10, 10)), **STUFF,
)  # fmt: skip
BLOCK = Soft(
    name="block", material="foam", instance=8, position=(1.2, 0, 0.3), density=10.0,
    youngs_modulus=1e4, poisson_ratio=0.3, volume=Block(size=(0.4, 0.4, 0.6), cells=(2, 2, 3)),
)  # fmt: skip
ROPE = Rope(
    name="rope", material="foam", instance=9, position=(-1.0, 0, 0.4), radius=0.05, density=1e3,
    stretch=10.0, points=tuple((0.0, 0.1 * k - 0.5, 0.0) for k in range(11)),
)  # fmt: skip


def material(name, **look):
    return Material(name=name, texture=Texture(builder="noise", colors=((0.5, 0.4, 0.3),)), **look)


@pytest.fixture(scope="module")
def scene():
    floor = Body(
        name="floor", role="floor", motion="static", instance=1,
        collision=(Collision(shape=Box(half_extents=(5, 5, 0.1))),), position=(0, 0, -0.1),
        visuals=(Visual(shape=Box(half_extents=(5, 5, 0.1)), material="foam"),),
    )  # fmt: skip
    return Scene(
        name="bends",
        bodies=(floor,),
        materials=(material("cloth", two_sided=True), material("foam")),
        cameras=(Camera(name="main", position=(0, -0.01, 4.5), target=(0, 0, 0), fov_y_deg=40),),
        sun=Sun(direction=(0.3, 0.2, -0.9327379)),
        deformables=(SHEET, BLOCK, ROPE),
    )


def state_of(scene, **moved):
    shapes = {d.name: rest_shape(d, {}).vertices for d in scene.deformables}
    return replace(start_state(scene), vertices={**shapes, **moved})


def tilted(scene, slope, lift=0.0):
    """The sheet as a plane that rises along x, narrower by the same angle."""
    x, y, z = rest_shape(SHEET, {}).vertices.T
    c = np.cos(slope)
    return np.stack([c * x, y, z + np.sin(slope) * x + lift], axis=1)


@pytest.mark.gl
def test_depth_and_ids_are_of_the_vertices(scene):
    renderer = make_renderer("raster", scene, {})
    for slope in (0.0, 0.4, -0.7):
        state = state_of(scene, sheet=tilted(scene, slope, 0.1))
        drawn = renderer.draw(state, WIDTH, HEIGHT, ("depth", "ids", "normals"))
        ids, depth = drawn["ids"], drawn["depth"].astype(np.float64)
        assert {7, 8, 9} <= set(np.unique(ids))
        rows, columns = np.nonzero(ids == 7)
        centres = np.stack([columns + 0.5, rows + 0.5], axis=1)
        from wmeval.conventions import intrinsics, unproject

        K = intrinsics(state.fov_y, WIDTH, HEIGHT)
        points = unproject(centres, depth[rows, columns], K, state.T_world_camera)
        # On the plane, inside its edges.
        assert points[:, 2] == pytest.approx(0.6 + np.tan(slope) * points[:, 0], abs=2e-4)
        assert np.abs(points[:, 1]).max() <= 0.5 + 1e-3
        assert np.abs(points[:, 0]).max() <= 0.5 * np.cos(slope) + 1e-3
        area = len(rows) * (np.median(depth[rows, columns]) / K[0, 0]) ** 2
        assert area == pytest.approx(np.cos(slope), rel=0.06)
        normal = np.median(drawn["normals"][rows, columns], axis=0)
        assert np.abs(normal) == pytest.approx([abs(np.sin(slope)), 0, np.cos(slope)], abs=2e-2)
    renderer.close()


@pytest.mark.gl
def test_what_was_drawn_before_leaves_no_trace(scene):
    cached = make_renderer("raster", scene, {}, cached=True)
    plain = make_renderer("raster", scene, {}, cached=False)
    layers = ("rgb", "depth", "ids", "normals")
    rest = rest_shape(BLOCK, {}).vertices
    for k in (0, 0, 1, 2, 2, 5, 0):
        squeezed = rest * [1, 1, 1 - 0.1 * k]
        state = state_of(scene, sheet=tilted(scene, 0.1 * k), block=squeezed)
        for layer in layers:
            a, b = (r.draw(state, WIDTH, HEIGHT, (layer,))[layer] for r in (cached, plain))
            assert np.array_equal(a, b, equal_nan=True), (k, layer)
    cached.close()
    plain.close()


@pytest.mark.gl
def test_flow_tells_nothing_of_what_bends_and_all_of_the_rest(scene):
    renderer = make_renderer("raster", scene, {})
    a, b = state_of(scene), state_of(scene, sheet=tilted(scene, 0.3))
    drawn = renderer.draw(a, WIDTH, HEIGHT, ("depth", "ids"))
    moved = labels.flow(drawn["depth"], drawn["ids"], a, b, np.array([1], np.uint16))
    bends = drawn["ids"] >= 7
    assert np.isnan(moved[bends]).all()
    assert np.abs(moved[~bends]).max() < 1e-3
    renderer.close()


def test_a_ropes_skin_is_round_and_a_cloths_normals_stand_on_it(scene):
    _, _, bends = stand_ins(scene, {})
    by = {b.name: b for b in bends}
    points, normals = by["rope"].surface(rest_shape(ROPE, {}).vertices)
    away = points - np.array([-1.0, 0, 0.4])
    assert np.hypot(away[:, 0], away[:, 2]) == pytest.approx(0.05)
    assert (normals * away).sum(axis=1) == pytest.approx(0.05)
    _, normals = by["sheet"].surface(tilted(scene, 0.3))
    assert normals == pytest.approx(np.tile([-np.sin(0.3), 0, np.cos(0.3)], (121, 1)))
    # Solids show faces outward.
    points, normals = by["block"].surface(rest_shape(BLOCK, {}).vertices)
    assert ((points - np.array([1.2, 0, 0.3])) * normals).sum(axis=1).min() > 0.19


def test_vertices_are_told_apart_and_must_be_there(scene):
    rest = rest_shape(SHEET, {}).vertices
    other = rest.copy()
    other[5, 2] += 1e-12
    assert fingerprint(rest) == fingerprint(rest.copy()) != fingerprint(other)
    assert isinstance(stand_ins(scene, {})[2][0], Bend)
    from wmeval.sim.render.bending import bent_state

    bends = stand_ins(scene, {})[2]
    with pytest.raises(UserError, match="no vertices of 'sheet'"):
        bent_state(start_state(scene), bends)
    with pytest.raises(UserError, match="infinite vertices of 'sheet'"):
        bent_state(state_of(scene, sheet=rest * np.nan), bends)
