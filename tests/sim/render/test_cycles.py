"""Cycles beside the raster: the same labels, a like picture; equal bits; clear failures."""

from __future__ import annotations

import os
import signal
from dataclasses import asdict, replace

import numpy as np
import pytest
from agreement import assert_same_labels
from blender_here import needs_bpy, take_bpy_away
from raster_scene import MESHES, make_scene, moved

from wmeval import conventions
from wmeval.errors import UserError
from wmeval.jobs.worker import WorkerError
from wmeval.scene import Sky, Texture
from wmeval.sim.render import make_renderer
from wmeval.sim.render.cycles import PRESETS, Preset, develop
from wmeval.sim.render.pieces import start_state
from wmeval.sim.render.skylight import _sampled, directions, lit_sky, seen_sky

SCENE = make_scene()
SIZE = (160, 88)
LAYERS = ("rgb", "depth", "ids", "glass_ids", "normals")
QUICK = Preset("quick", samples=4)


def renderer(scene=SCENE, meshes=MESHES, **options):
    return make_renderer(
        "cycles", scene, meshes, **{"preset": QUICK, "device": "cpu", "threads": 1, **options}
    )


@pytest.fixture(scope="module")
def cycles():
    made = renderer()
    yield made
    made.close()


def agree(here, there):
    """Labels and, in the open, light of two renderers."""
    assert_same_labels(here, there)
    bright = [x["rgb"].astype(float) for x in (here, there)]
    assert np.abs(bright[0] - bright[1]).mean() < 8
    assert np.abs(bright[0].mean((0, 1)) - bright[1].mean((0, 1))).max() < 6


@needs_bpy
@pytest.mark.gl
def test_labels_and_colours_agree_with_the_raster(cycles):
    raster = make_renderer("raster", SCENE, MESHES)
    for k, camera in ((1, 0), (4, 1)):
        state = moved(SCENE, k, camera=camera)
        here, there = raster.draw(state, *SIZE, LAYERS), cycles.draw(state, *SIZE, LAYERS)
        assert list(there) == list(LAYERS)
        for name in LAYERS:
            assert there[name].dtype == here[name].dtype
            assert there[name].shape == here[name].shape
        assert {60000} < set(np.unique(there["glass_ids"]).tolist()) | {0, 60000, 1}
        agree(here, there)
    raster.close()


@needs_bpy
@pytest.mark.gl
def test_ball_roller_agrees_with_the_raster():
    from wmeval.envs import ball_roller

    made = ball_roller.compose(np.random.default_rng(1))
    state = start_state(made.scene)
    pictures = []
    for name, options in (
        ("raster", {}),
        ("cycles", {"preset": QUICK, "device": "cpu", "threads": 1}),
    ):
        other = make_renderer(name, made.scene, made.meshes, **options)
        pictures.append(other.draw(state, *SIZE, LAYERS))
        other.close()
    agree(*pictures)


@needs_bpy
def test_depth_reprojects_onto_the_floor(cycles):
    state = moved(SCENE, 2)
    drawn = cycles.draw(state, *SIZE, ("ids", "depth"))
    floor = drawn["ids"] == 1
    K = conventions.intrinsics(state.fov_y, *SIZE)
    points = conventions.unproject(
        conventions.pixel_grid(*SIZE)[floor], drawn["depth"][floor], K, state.T_world_camera
    )
    assert np.abs(points[:, 2] / drawn["depth"][floor]).max() < 1e-5


@needs_bpy
def test_two_draws_and_two_processes_give_equal_bits(cycles):
    states = [moved(SCENE, k) for k in (1, 5, 1)]
    drawn = [cycles.draw(state, *SIZE, LAYERS) for state in states]
    other = renderer()
    drawn.append(other.draw(states[0], *SIZE, LAYERS))
    other.close()
    assert (drawn[0]["ids"] != drawn[1]["ids"]).any()
    for again in drawn[2:]:
        for name in LAYERS:
            np.testing.assert_array_equal(drawn[0][name], again[name], err_msg=name)


@needs_bpy
def test_sun_and_sky_may_change_between_pictures(cycles):
    state = moved(SCENE, 1)
    day = cycles.draw(state, *SIZE, ("rgb",))["rgb"]
    night = cycles.draw(
        replace(state, sun_direction=np.array([0.0, 0.0, 1.0]), sky=state.sky * 0.05),
        *SIZE,
        ("rgb",),
    )["rgb"]
    assert night.mean() < 0.3 * day.mean()
    warm = cycles.draw(replace(state, sky=state.sky * [1.0, 0.3, 0.3]), *SIZE, ("rgb",))["rgb"]
    assert warm[:5, :, 0].mean() > 1.3 * warm[:5, :, 2].mean()
    np.testing.assert_array_equal(cycles.draw(state, *SIZE, ("rgb",))["rgb"], day)


@needs_bpy
def test_a_killed_or_hanging_blender_is_one_clear_error():
    for stop, message in ((signal.SIGKILL, "renderer cycles died"), (signal.SIGSTOP, "timeout=")):
        made = renderer(timeout=120.0)
        whole = made.draw(moved(SCENE, 0), 32, 18, ("rgb", "ids"))
        os.kill(made._worker.pid, stop)
        if stop == signal.SIGSTOP:  # the other takes its time to die
            made._worker._client._timeout = 1.0
        with pytest.raises(WorkerError, match=message) as caught:
            made.draw(moved(SCENE, 0), 32, 18, ("ids",))
        assert "\n" not in str(caught.value)
        if stop == signal.SIGKILL:  # the next picture has a Blender of its own, and is the same
            again = made.draw(moved(SCENE, 0), 32, 18, ("rgb", "ids"))
            for name, layer in whole.items():
                np.testing.assert_array_equal(again[name], layer)
        folder = made._folder.name
        made.close()
        made.close()
        assert not os.path.exists(folder)
        with pytest.raises(UserError, match="closed"):
            made.draw(moved(SCENE, 0), 32, 18, ("ids",))


@needs_bpy
def test_requests_that_cannot_be_met_are_refused(cycles):
    state = moved(SCENE, 0)
    for layers, message in (
        (("shadow_ids",), "the raster renderer draws it"),
        (("flow",), "labels.flow derives it"),
        (("warmth",), "got 'warmth'"),
    ):
        with pytest.raises(UserError, match=message):
            cycles.draw(state, *SIZE, layers)
    with pytest.raises(UserError, match="each side"):
        cycles.draw(state, 0, 88, ("ids",))
    broken = state.position.copy()
    broken[1] = np.nan
    with pytest.raises(UserError, match="NaN"):
        cycles.draw(replace(state, position=broken), *SIZE, ("ids",))
    with pytest.raises(UserError, match=r"no Cycles preset 'best'.*draft, preview, paper"):
        renderer(preset="best")
    with pytest.raises(UserError, match="device = 'tpu'"):
        renderer(device="tpu")


def test_presets_are_those_of_the_paper():
    assert [p.samples for p in PRESETS.values()] == [8, 16, 32]
    assert asdict(PRESETS["paper"]) == {
        "name": "paper", "samples": 32, "adaptive_threshold": 0.05, "bounces": 6,
        "diffuse_bounces": 3, "glossy_bounces": 3, "transmission_bounces": 3, "denoise": True,
    }  # fmt: skip


def test_without_bpy_it_says_so_and_how_to_mend_it(monkeypatch, tmp_path):
    take_bpy_away(monkeypatch, tmp_path)
    with pytest.raises(UserError, match=r"bpy is not installed: wmeval install blender"):
        renderer()


@pytest.mark.gl
@pytest.mark.parametrize(
    ("height", "panorama"), [(-0.2, False), (0.1, False), (0.8, False), (0.1, True)]
)
def test_seen_sky_is_the_rasters(height, panorama):
    """Day, dusk and night: the picture all around, looked up along each pixel's ray."""
    land = Texture(builder="coast", colors=((0.1, 0.2, 0.3), (0.6, 0.5, 0.3), (0.2, 0.2, 0.2),
                                            (0.1, 0.2, 0.05)), repeat=2)  # fmt: skip
    card = Sky(clouds=0.5, panorama=land if panorama else None)
    scene = SCENE.model_copy(update={"sky": card})
    base = start_state(scene)
    flat = float(np.sqrt(1 - height * height))
    to_sun = np.array([0.6 * flat, 0.8 * flat, height])
    state = replace(
        base,
        active=np.zeros_like(base.active),
        sun_direction=-to_sun,
        fov_y=1.0,
        T_world_camera=conventions.look_at(np.array([0.0, 0, 2]), np.array([1.0, 1.5, 2.5])),
    )
    raster = make_renderer("raster", scene, MESHES)
    shown = raster.draw(state, *SIZE, ("rgb",))["rgb"]
    raster.close()

    from wmeval.sim.render.raster import _daylight, _twilight

    sky = np.asarray(state.sky)
    picture = seen_sky(
        sky, sky[2] * (0.4 + 0.6 * max(height, 0)), card, to_sun,
        _twilight(height) * state.sun_color, _daylight(height) * state.sun_color, height=512,
    )  # fmt: skip
    K = conventions.intrinsics(state.fov_y, *SIZE)
    rays = conventions.unproject(
        conventions.pixel_grid(*SIZE), np.ones(SIZE[::-1]), K, state.T_world_camera
    ) - state.T_world_camera[:3, 3]  # fmt: skip
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    u = 0.5 - np.arctan2(rays[..., 1], rays[..., 0]) / (2 * np.pi)
    mine = develop(_sampled(u, np.arcsin(rays[..., 2]) / np.pi + 0.5, picture))
    gap = np.abs(mine.astype(int) - shown)
    assert gap.mean() < (3.5 if panorama else 2.0)  # a shore has detail between samples
    assert np.quantile(gap, 0.98) < 16


def test_lit_sky_gives_the_rasters_ambient_light():
    sky = np.array([[0.2, 0.4, 0.8], [0.6, 0.7, 0.9], [0.3, 0.2, 0.1]])
    d, light = directions(64).astype(float), lit_sky(sky, sky[2]).astype(float)
    solid = np.cos(np.arcsin(d[..., 2])) * (np.pi / 64) ** 2
    for normal, wanted in (
        ((0, 0, 1), sky[1] + 0.55 * (sky[0] - sky[1])),
        ((0, 0, -1), sky[2]),
    ):
        weight = np.maximum(d @ np.array(normal, float), 0) * solid / np.pi
        assert weight.sum() == pytest.approx(1, abs=1e-3)
        np.testing.assert_allclose((light * weight[..., None]).sum((0, 1)), wanted, atol=0.03)
