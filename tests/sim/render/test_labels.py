"""Flow, occlusion, tracks, boxes and amodal masks against reprojection of exact geometry."""

from dataclasses import replace

import numpy as np
import pytest
from raster_scene import HEIGHT, MESHES, WIDTH, cast, make_scene, moved, near_edge, rays

from wmeval import conventions
from wmeval.errors import UserError
from wmeval.sim.render import labels, make_renderer

SCENE = make_scene()
INSTANCE = labels.instances(SCENE)
PAIRS = [
    ({"k": 0}, {"k": 1}),
    ({"k": 2, "fly": True}, {"k": 3, "fly": True}),
    ({"k": 5, "fly": True}, {"k": 1, "fly": True}),
    ({"k": 4, "camera": 0}, {"k": 4, "camera": 1}),
]
IDS = ["still-camera", "moving-camera", "backwards", "two-cameras"]


def exact_pictures(state, skip=("bottle",)):
    depth, body, _ = cast(SCENE, state, skip=skip)
    return depth.astype(np.float32), np.where(body >= 0, INSTANCE[body], 0).astype(np.uint16), body


def reprojected(a, b, depth64, body):
    """Flow straight from its definition, pixel by pixel body by body, in float64."""
    eye, ray = rays(a)
    out = np.full((*body.shape, 2), np.nan)
    grid = conventions.pixel_grid(WIDTH, HEIGHT)
    K = conventions.intrinsics(b.fov_y, WIDTH, HEIGHT)
    for i in np.unique(body[body >= 0]):
        if not b.active[i]:
            continue
        here = body == i
        point = eye + ray[here] * depth64[here][:, None]
        Ra = conventions.quaternion_to_matrix(a.quaternion_wxyz[i])
        Rb = conventions.quaternion_to_matrix(b.quaternion_wxyz[i])
        local = (point - a.position[i]) @ Ra
        pixel, far = conventions.project(local @ Rb.T + b.position[i], K, b.T_world_camera)
        pixel[far <= 0] = np.nan
        out[here] = pixel - grid[here]
    return out


@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_flow_equals_reprojection(pair):
    a, b = moved(SCENE, **pair[0]), moved(SCENE, **pair[1])
    depth64, _, _ = cast(SCENE, a, skip=("bottle", "unlabelled"))
    depth, ids, body = exact_pictures(a, skip=("bottle", "unlabelled"))
    got = labels.flow(depth, ids, a, b, INSTANCE)
    expected = reprojected(a, b, depth64, body)
    seen = np.isfinite(expected).all(-1)
    near = seen & (np.abs(expected).max(-1) < 400)
    assert near.sum() > 30000
    assert np.abs(got[near] - expected[near]).max() < 1e-3
    rolling = near & (body == 1)
    if pair[0] != {"k": 4, "camera": 0}:
        # Parts of a rolling ball move differently from one another.
        assert np.ptp(got[rolling], axis=0).max() > 1.0


@pytest.mark.gl
@pytest.mark.parametrize("pair", PAIRS, ids=IDS)
def test_flow_of_rendered_layers_equals_reprojection(pair):
    a, b = moved(SCENE, **pair[0]), moved(SCENE, **pair[1])
    renderer = make_renderer("raster", SCENE, MESHES)
    seen = renderer.draw(a, WIDTH, HEIGHT, ("depth", "ids"))
    renderer.close()
    depth64, body, _ = cast(SCENE, a, skip=("bottle",))
    got = labels.flow(seen["depth"], seen["ids"], a, b, INSTANCE)
    expected = reprojected(a, b, depth64, body)
    inner = np.isfinite(expected).all(-1) & ~near_edge(body, 2) & ~np.isin(body, [6, 8])
    inner &= np.abs(expected).max(-1) < 100
    assert np.abs(got[inner] - expected[inner]).max() < 1e-3


def test_still_world_and_still_camera_have_no_flow():
    a, b = moved(SCENE, 0), moved(SCENE, 1)
    depth, ids, body = exact_pictures(a)
    got = labels.flow(depth, ids, a, b, INSTANCE)
    still = np.isin(body, [-1, 0, 6, 7])
    assert np.abs(got[still]).max() < 1e-4
    assert np.abs(got[body == 1]).max() > 1


def test_sky_moves_with_the_cameras_rotation_only():
    a = moved(SCENE, 0)
    shifted, turned = np.array(a.T_world_camera), np.array(a.T_world_camera)
    shifted[:3, 3] += (0.5, 0.2, 0.1)
    q = conventions.axis_angle_quaternion((0, 0, 1), 0.02)
    turned[:3, :3] = conventions.quaternion_to_matrix(q) @ turned[:3, :3]
    depth, ids, body = exact_pictures(a)
    sky = body < 0
    assert sky.sum() > 1000
    moving = labels.flow(depth, ids, a, replace(a, T_world_camera=shifted), INSTANCE)
    assert np.abs(moving[sky]).max() < 1e-6
    b = replace(a, T_world_camera=turned)
    got = labels.flow(depth, ids, a, b, INSTANCE)
    eye, ray = rays(a)
    K = conventions.intrinsics(b.fov_y, WIDTH, HEIGHT)
    pixel, _ = conventions.project(eye + 1e9 * ray, K, b.T_world_camera)
    expected = pixel - conventions.pixel_grid(WIDTH, HEIGHT)
    assert np.abs(got - expected)[sky].max() < 1e-3
    assert np.isnan(labels.flow(depth, ids, a, b, INSTANCE, sky="nan")[sky]).all()


def test_what_leaves_the_world_has_no_target():
    a = moved(SCENE, 4)
    active = a.active.copy()
    active[9] = False
    depth, ids, body = exact_pictures(a)
    gone = body == 9
    assert gone.sum() > 100
    b = replace(a, active=active)
    got = labels.flow(depth, ids, a, b, INSTANCE)
    assert np.isnan(got[gone]).all()
    assert np.isfinite(got[~gone]).all()
    depth_b, ids_b, _ = exact_pictures(b)
    hidden = labels.occlusion(depth, ids, a, depth_b, ids_b, b, INSTANCE)
    assert hidden[gone].all()


def test_occlusion_equals_ray_cast_visibility():
    a, b = moved(SCENE, 0, fly=True), moved(SCENE, 3, fly=True)
    depth_a, ids_a, body = exact_pictures(a)
    depth_b, ids_b, body_b = exact_pictures(b)
    hidden = labels.occlusion(depth_a, ids_a, a, depth_b, ids_b, b, INSTANCE)
    depth64, _, _ = cast(SCENE, a, skip=("bottle",))
    target = reprojected(a, b, depth64, body) + conventions.pixel_grid(WIDTH, HEIGHT)
    inside = (target >= 0).all(-1) & (target[..., 0] < WIDTH) & (target[..., 1] < HEIGHT)
    u = np.clip(np.nan_to_num(target[..., 0]).astype(int), 0, WIDTH - 1)
    v = np.clip(np.nan_to_num(target[..., 1]).astype(int), 0, HEIGHT - 1)
    clear = inside & ~near_edge(body_b, 2)[v, u] & (body >= 0) & ~near_edge(body, 1)
    # Another body at the target means hidden. (A ball that turned may show its other side.)
    other = body_b[v, u] != body
    assert hidden[clear & other].all()
    still = np.isin(body, [0, 7])
    assert not hidden[clear & ~other & still].any()
    assert hidden[~inside & (body >= 0)].all()
    assert (clear & other).sum() > 50


def test_tracks_follow_points_there_and_back():
    states = [moved(SCENE, k, fly=True) for k in range(4)]
    pictures = [exact_pictures(s) for s in states]
    depth, ids = [p[0] for p in pictures], [p[1] for p in pictures]
    v, u = np.nonzero(np.isin(ids[1], [1, 2, 4, 7]) & ~near_edge(ids[1], 2))
    pick = np.random.default_rng(0).choice(len(u), 300, replace=False)
    queries = np.stack([u[pick], v[pick]], axis=1) + 0.5
    found = labels.tracks(queries, 1, states, depth, ids, INSTANCE)
    assert found.visible[:, 1].all()
    assert np.abs(found.pixels[:, 1] - queries).max() < 1e-4
    for t in (0, 2, 3):
        flow = labels.flow(depth[1], ids[1], states[1], states[t], INSTANCE)
        step = flow[v[pick], u[pick]]
        assert np.abs(found.pixels[:, t] - queries - step).max() < 1e-3
    # Points on the rolling ball keep their distance from its centre.
    ball = found.ids == 2
    for t, state in enumerate(states):
        distance = np.linalg.norm(found.position[ball, t] - state.position[1], axis=-1)
        assert np.abs(distance - 0.5).max() < 1e-3
    assert 0.3 < found.visible.mean() < 1.0
    with pytest.raises(UserError, match="outside"):
        labels.tracks(np.array([[WIDTH + 1.0, 3]]), 0, states, depth, ids, INSTANCE)


def test_boxes_are_tight():
    ids = np.zeros((20, 30), np.uint16)
    ids[3:7, 5:9] = 4
    ids[10, 29] = 65535
    ids[12:14, 0] = 2
    ids[12, 7] = 2
    found = labels.boxes(ids)
    assert set(found) == {2, 4, 65535}
    assert found[4] == labels.PixelBox(5, 3, 9, 7, 16)
    assert found[65535] == labels.PixelBox(29, 10, 30, 11, 1)
    assert found[2] == labels.PixelBox(0, 12, 8, 14, 3)
    noise = np.random.default_rng(1).integers(0, 40, (50, 60)).astype(np.uint16)
    for label, box in labels.boxes(noise).items():
        v, u = np.nonzero(noise == label)
        assert (box.x0, box.y0, box.x1, box.y1) == (u.min(), v.min(), u.max() + 1, v.max() + 1)
        assert box.pixels == len(u)


@pytest.mark.gl
def test_amodal_mask_is_the_whole_outline():
    state = moved(SCENE, 0)
    renderer = make_renderer("raster", SCENE, MESHES)
    hidden_part = 0
    for body in (1, 4, 5, 6):
        mask = labels.amodal_mask(renderer.draw, state, body, INSTANCE, WIDTH, HEIGHT)
        others = tuple(b.name for i, b in enumerate(SCENE.bodies) if i != body)
        _, hit, _ = cast(SCENE, state, skip=others)
        whole = hit == body
        assert (mask == whole)[~near_edge(hit)].all()
        seen = renderer.draw(state, WIDTH, HEIGHT, ("ids", "glass_ids"))
        modal = (seen["ids"] == INSTANCE[body]) | (seen["glass_ids"] == INSTANCE[body])
        assert not (modal & ~mask).any()
        hidden_part += (mask & ~modal).sum()
    assert hidden_part > 50
    with pytest.raises(UserError, match="instance 0"):
        labels.amodal_mask(renderer.draw, state, 8, INSTANCE, WIDTH, HEIGHT)
    renderer.close()


def test_misfits_are_named():
    a = moved(SCENE, 0)
    depth, ids, _ = exact_pictures(a)
    with pytest.raises(UserError, match="same"):
        labels.flow(depth[:5], ids, a, a, INSTANCE)
    with pytest.raises(UserError, match="labels"):
        labels.flow(depth, ids, a, a, INSTANCE[:3])
