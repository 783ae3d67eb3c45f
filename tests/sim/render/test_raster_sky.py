"""The light of the state: a sun that turns through day and night, skies of any colour."""

import math
from dataclasses import replace

import numpy as np
import pytest
from raster_scene import HEIGHT, MESHES, WIDTH, cast, make_scene, moved, rays

from wmeval.sim.render import make_renderer

pytestmark = pytest.mark.gl
SCENE = make_scene()
LAYERS = ("rgb", "ids", "shadow_ids")


@pytest.fixture(scope="module")
def renderer():
    made = make_renderer("raster", SCENE, MESHES)
    yield made
    made.close()


def sun_at(angle):
    """Direction of sunlight; the sun rises in the east at 0 and is highest at pi / 2."""
    up = np.array([math.cos(angle), -0.3 * math.sin(angle), math.sin(angle)])
    return -up / np.linalg.norm(up)


def test_a_sun_turns_through_day_and_night(renderer):
    brightness, shaded = [], []
    for k in range(12):
        state = replace(moved(SCENE, 0), sun_direction=sun_at(k * math.pi / 6))
        out = renderer.draw(state, WIDTH, HEIGHT, LAYERS)
        ground = out["rgb"][out["ids"] == 1].astype(float)
        brightness.append(ground.mean())
        shaded.append(int((out["shadow_ids"] > 0).sum()))
    # At 0 and from 180 degrees on the sun is not above the horizon.
    assert shaded[0] == 0
    assert all(n == 0 for n in shaded[6:])
    assert all(n > 100 for n in shaded[1:6])
    night = brightness[7:]
    assert max(night) - min(night) < 0.5
    assert min(brightness[1:6]) > 1.3 * max(night)
    # Noon is the brightest hour.
    assert brightness[3] == max(brightness)


@pytest.mark.parametrize("elevation", [-0.02, -1e-3, -1e-9, 0.0, 1e-9, 1e-3, 0.02, 0.2])
def test_the_sun_passes_the_horizon_without_a_jump(renderer, elevation):
    pictures = []
    for step in (0.0, 1e-4):
        up = np.array([0.8, 0.6, elevation + step])
        state = replace(moved(SCENE, 0), sun_direction=-up / np.linalg.norm(up))
        pictures.append(renderer.draw(state, WIDTH, HEIGHT, ("rgb",))["rgb"].astype(float))
    assert np.abs(pictures[1] - pictures[0]).mean() < 0.3


@pytest.mark.parametrize("elevation", [3.0, 8.0, 30.0, 80.0])
def test_shadows_of_any_sun_are_where_rays_say(renderer, elevation):
    up = np.array([0.5, -0.85, 0.0]) * math.cos(math.radians(elevation))
    up[2] = math.sin(math.radians(elevation))
    state = replace(moved(SCENE, 0), sun_direction=-up / np.linalg.norm(up))
    out = renderer.draw(state, WIDTH, HEIGHT, ("ids", "shadow_ids", "normals"))
    depth = cast(SCENE, state)[0]
    ray = rays(state)[1]
    point = state.T_world_camera[:3, 3] + ray * np.where(np.isfinite(depth), depth, 0)[..., None]
    floor = (out["ids"] == 1) & (np.abs(point[..., 2]) < 1e-6)
    # Against the two balls that stand free: a floor point is in a ball's shadow when the line to
    # the sun passes its centre closer than its radius.
    certain = 0
    for index in (1, 2):
        to = np.asarray(state.position[index]) - point
        along = to @ up
        distance = np.linalg.norm(to - along[..., None] * up, axis=-1)
        radius = SCENE.bodies[index].visuals[0].shape.radius
        # The map's texel, drawn out along a low sun, and the pixel.
        dark = floor & (along > 0) & (distance < radius - 0.06)
        assert (out["shadow_ids"][dark] > 0).all()
        certain += int(dark.sum())
    assert certain > 30


def test_the_sky_is_the_state_s(renderer):
    state = moved(SCENE, 0)
    plain = renderer.draw(state, WIDTH, HEIGHT, ("rgb", "ids"))
    red = replace(state, sky=np.array([[0.7, 0.05, 0.05], [0.9, 0.2, 0.1], [0.2, 0.1, 0.1]]))
    # The cache must see it, too: the same renderer, the same pose.
    for _ in range(3):
        shown = renderer.draw(red, WIDTH, HEIGHT, ("rgb", "ids"))
    assert np.array_equal(shown["ids"], plain["ids"])
    above = plain["ids"] == 0
    assert above.sum() > 500
    mean = shown["rgb"].astype(float)
    assert mean[above][:, 0].mean() > mean[above][:, 2].mean() + 40
    was = plain["rgb"].astype(float)
    assert was[above][:, 2].mean() > was[above][:, 0].mean()
    # It lights the ground.
    ground = plain["ids"] == 1
    assert (mean - was)[ground][:, 2].mean() < -3
    black = replace(state, sky=np.zeros((3, 3)), sun_color=np.zeros(3))
    assert renderer.draw(black, WIDTH, HEIGHT, ("rgb",))["rgb"].max() <= 2
