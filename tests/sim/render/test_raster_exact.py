"""What the label layers say is what rays through the pixels' centres hit."""

from dataclasses import replace

import numpy as np
import pytest
from raster_scene import HEIGHT, MESHES, WIDTH, angle_deg, cast, make_scene, moved, near_edge, rays

from wmeval import conventions
from wmeval.errors import UserError
from wmeval.scene import Box, Sphere
from wmeval.sim.render import make_renderer
from wmeval.sim.render.pieces import start_state

pytestmark = pytest.mark.gl
SCENE = make_scene()
INSTANCE = np.array([b.instance for b in SCENE.bodies])
LAYERS = ("rgb", "depth", "ids", "glass_ids", "normals", "shadow_ids")


@pytest.fixture(scope="module")
def renderer():
    made = make_renderer("raster", SCENE, MESHES)
    yield made
    made.close()


@pytest.fixture(scope="module", params=[(0, 0), (4, 1)], ids=["start", "moved"])
def instant(request, renderer):
    k, camera = request.param
    state = moved(SCENE, k, camera=camera)
    return state, renderer.draw(state, WIDTH, HEIGHT, LAYERS)


def test_layers_have_their_declared_shapes(instant):
    from wmeval.layers import LAYERS as ROWS

    _, seen = instant
    assert tuple(seen) == LAYERS
    for name, array in seen.items():
        assert array.shape == ROWS[name].shape(HEIGHT, WIDTH)
        assert array.dtype == np.dtype(ROWS[name].dtype)


def test_ids_equal_a_ray_cast(instant):
    state, seen = instant
    _, body, _ = cast(SCENE, state, skip=("bottle",))
    expected = np.where(body >= 0, INSTANCE[body], 0)
    differs = seen["ids"] != expected
    assert not (differs & ~near_edge(body)).any()
    assert differs.mean() < 5e-4  # even at the outlines hardly any pixel differs
    assert len(np.unique(expected)) >= 8


def test_depth_of_balls_and_planes_is_analytic(instant):
    state, seen = instant
    depth, body, _ = cast(SCENE, state, skip=("bottle",))
    shapes = [b.visuals[0].shape for b in SCENE.bodies]
    exact = np.array([isinstance(s, Sphere | Box) for s in shapes])[body] & (body >= 0)
    inner = exact & ~near_edge(body)
    error = np.abs(seen["depth"][inner] - depth[inner]) / depth[inner]
    # Rays that graze a ball are ill-conditioned: there the error of a float32 ray is magnified.
    assert np.quantile(error, 0.999) < 1e-5
    assert error.max() < 2e-4
    nothing = (body < 0) & ~near_edge(body)
    assert np.isinf(seen["depth"][nothing]).all()
    assert (seen["ids"][nothing] == 0).all()
    assert (seen["normals"][nothing] == 0).all()


def test_unprojected_depth_lies_on_the_ball_and_on_the_floor(instant):
    state, seen = instant
    K = conventions.intrinsics(state.fov_y, WIDTH, HEIGHT)
    with np.errstate(invalid="ignore"):
        points = conventions.unproject(
            conventions.pixel_grid(WIDTH, HEIGHT), seen["depth"], K, state.T_world_camera
        )
    ball = seen["ids"] == 2
    distance = np.linalg.norm(points[ball] - state.position[1], axis=-1)
    assert ball.sum() > 300
    assert np.abs(distance - 0.5).max() < 1e-4
    floor = seen["ids"] == 1
    scale = np.maximum(seen["depth"][floor], 1.0)
    assert (np.abs(points[floor][:, 2]) / scale).max() < 1e-5


def test_normals_are_analytic(instant):
    state, seen = instant
    _, body, normal = cast(SCENE, state, skip=("bottle",))
    inner = (body >= 0) & ~near_edge(body)
    length = np.linalg.norm(seen["normals"][inner], axis=-1)
    assert np.abs(length - 1).max() < 1e-4
    off = angle_deg(seen["normals"], normal)
    balls = np.isin(body, [1, 2, 4, 8]) & inner
    assert off[balls].max() < 0.05
    flat = np.isin(body, [0, 3, 7]) & inner & ~near_edge(np.rint(normal * 99).sum(-1))
    assert off[flat].max() < 0.01
    # A cylinder's sides turn smoothly; only the rounding of its rim departs from the sharp one.
    side = (body == 6) & inner & (np.abs(normal[..., 2]) < 0.5)
    assert off[side & ~near_edge(np.rint(normal[..., 2]))].max() < 0.5


def test_glass_is_seen_through_and_has_its_own_layer(instant):
    state, seen = instant
    _, first, _ = cast(SCENE, state)
    expected = np.where(first == 5, 60000, 0)
    inner = ~near_edge(first)
    assert (seen["glass_ids"] == expected)[inner].all()
    assert (expected > 0).sum() > 200
    # Behind the glass the labels go on: never the bottle itself.
    assert 60000 not in seen["ids"]


def test_shadow_ids_of_a_ball_on_the_floor(renderer):
    state = start_state(SCENE)
    alone = np.zeros(len(SCENE.bodies), bool)
    alone[[0, 1]] = True
    state = replace(state, active=alone)
    seen = renderer.draw(state, 640, 360, ("depth", "ids", "shadow_ids"))
    eye, ray = rays(state, 640, 360)
    floor = seen["ids"] == 1
    with np.errstate(divide="ignore"):
        point = eye + ray * (-eye[2] / ray[..., 2])[..., None]
    to_sun = -np.array(SCENE.sun.direction) / np.linalg.norm(SCENE.sun.direction)
    from_centre = point - state.position[1]
    miss = np.linalg.norm(np.cross(from_centre, to_sun), axis=-1)
    with np.errstate(invalid="ignore"):
        clear = np.abs(miss - 0.5) > 0.02  # two texels of the map with ids
    expected = np.where(miss < 0.5, 2, 0)
    assert (floor & (expected == 2)).sum() > 1000
    assert (seen["shadow_ids"] == expected)[floor & clear].all()
    # The ball's lit side is shaded by nobody, and its dark side is turned away.
    assert (seen["shadow_ids"][seen["ids"] == 2] == 0).mean() > 0.995


def test_inactive_bodies_are_not_drawn(renderer):
    state = start_state(SCENE)
    full = renderer.draw(state, WIDTH, HEIGHT, ("ids", "rgb"))
    assert 9 not in full["ids"]
    active = state.active.copy()
    active[9] = True
    there = renderer.draw(replace(state, active=active), WIDTH, HEIGHT, ("ids", "rgb"))
    assert (there["ids"] == 9).sum() > 100
    active[1] = False
    assert 2 not in renderer.draw(replace(state, active=active), WIDTH, HEIGHT, ("ids",))["ids"]


def test_garbage_in_an_empty_slot_changes_nothing(renderer):
    state = start_state(SCENE)
    position = state.position.copy()
    position[9] = np.nan
    a = renderer.draw(state, WIDTH, HEIGHT, ("rgb", "ids"))
    b = renderer.draw(replace(state, position=position), WIDTH, HEIGHT, ("rgb", "ids"))
    assert (a["rgb"] == b["rgb"]).all()


def test_a_body_without_a_label_hides_what_is_behind_it(renderer):
    state = start_state(SCENE)
    seen = renderer.draw(state, WIDTH, HEIGHT, ("ids", "depth"))
    hidden = (seen["ids"] == 0) & np.isfinite(seen["depth"])
    _, body, _ = cast(SCENE, state, skip=("bottle",))
    assert hidden.sum() > 50
    assert (body[hidden] == 8).all()


def test_what_is_far_beyond_the_far_plane_is_not_drawn(renderer):
    state = replace(start_state(SCENE), far=6.0)
    seen = renderer.draw(state, WIDTH, HEIGHT, ("depth",))["depth"]
    assert seen[np.isfinite(seen)].max() <= 6.0 + 1e-4


def test_shadows_and_chrome_show_in_the_colours(renderer):
    state = start_state(SCENE)
    seen = renderer.draw(state, 640, 360, ("rgb", "ids", "shadow_ids"))
    floor = seen["ids"] == 1
    light = seen["rgb"].astype(float).mean(axis=-1)
    dark, lit = floor & (seen["shadow_ids"] > 0), floor & (seen["shadow_ids"] == 0)
    assert light[dark].mean() < 0.7 * light[lit].mean()
    chrome = seen["ids"] == 5
    plain = make_renderer("raster", make_scene(chrome=False), MESHES)
    other = plain.draw(state, 640, 360, ("rgb",))["rgb"]
    plain.close()
    assert np.abs(other[chrome].astype(int) - seen["rgb"][chrome]).mean() > 15
    # The chrome ball mirrors its neighbour: taking the red ball away changes pixels on it.
    active = state.active.copy()
    active[1] = False
    without = renderer.draw(replace(state, active=active), 640, 360, ("rgb",))["rgb"]
    assert (without[chrome] != seen["rgb"][chrome]).any(axis=-1).mean() > 0.05


def test_no_surface_is_flat_colour(renderer):
    state = start_state(SCENE)
    seen = renderer.draw(state, 640, 360, ("rgb", "ids"))
    for label in (1, 2, 4, 7, 8):
        inner = (seen["ids"] == label) & ~near_edge(seen["ids"], 2)
        step = np.abs(np.diff(seen["rgb"].astype(int).sum(-1), axis=1))[inner[:, 1:]]
        assert (step > 0).mean() > 0.5


def test_far_from_the_origin_the_picture_is_the_same(renderer):
    state = start_state(SCENE)
    shift = np.array([640.0, -1280.0, 0.0])
    T = np.array(state.T_world_camera)
    T[:3, 3] += shift
    there = replace(state, position=state.position + shift, T_world_camera=T)
    a = renderer.draw(state, WIDTH, HEIGHT, ("depth", "ids", "normals"))
    b = renderer.draw(there, WIDTH, HEIGHT, ("depth", "ids", "normals"))
    assert (a["ids"] != b["ids"]).mean() < 1e-4
    same = a["ids"] == b["ids"]
    finite = same & np.isfinite(a["depth"])
    near, far = a["depth"][finite], b["depth"][finite]
    assert (np.abs(near - far) / near).max() < 1e-3


def test_faults_of_the_caller_are_named(renderer):
    state = start_state(SCENE)
    with pytest.raises(UserError, match="rgb, depth"):
        renderer.draw(state, 64, 64, ("colour",))
    with pytest.raises(UserError, match=r"labels\.flow"):
        renderer.draw(state, 64, 64, ("flow",))
    with pytest.raises(UserError, match="0x64"):
        renderer.draw(state, 0, 64, ("rgb",))
    with pytest.raises(UserError, match="bodies"):
        renderer.draw(replace(state, position=state.position[:3]), 64, 64, ("rgb",))
    bad = state.position.copy()
    bad[1] = np.inf
    with pytest.raises(UserError, match="infinite"):
        renderer.draw(replace(state, position=bad), 64, 64, ("rgb",))
    with pytest.raises(UserError, match="raster"):
        make_renderer("oil", SCENE, MESHES)
    closed = make_renderer("raster", SCENE, MESHES)
    closed.close()
    closed.close()
    with pytest.raises(UserError, match="closed"):
        closed.draw(state, 64, 64, ("rgb",))


def test_odd_sizes_and_single_samples(renderer):
    state = start_state(SCENE)
    seen = renderer.draw(state, 101, 53, LAYERS)
    assert seen["rgb"].shape == (53, 101, 3)
    tiny = renderer.draw(state, 1, 1, LAYERS)
    assert tiny["ids"].shape == (1, 1)
    single = make_renderer("raster", SCENE, MESHES, samples=1)
    rough = single.draw(state, 101, 53, LAYERS)
    single.close()
    assert (rough["ids"] == seen["ids"]).all()
    assert np.abs(rough["rgb"].astype(int) - seen["rgb"]).mean() < 12
