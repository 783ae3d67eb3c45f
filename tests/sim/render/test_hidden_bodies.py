"""What a camera hides is gone from its picture, and still casts shadows and shows in mirrors."""

from dataclasses import replace

import numpy as np
import pytest
from blender_here import needs_bpy
from pydantic import ValidationError
from raster_scene import MESHES, make_scene

from wmeval.scene import Camera, Scene
from wmeval.sim.protocol import hidden_from
from wmeval.sim.render import make_renderer
from wmeval.sim.render.pieces import start_state
from wmeval.sim.render.raster import RasterRenderer

PLAIN = make_scene()
HIDES = ("small", "block", "bottle")
SIZE = (320, 176)
LABELS = ("depth", "ids", "normals", "glass_ids")


def hiding(*names):
    camera = PLAIN.cameras[0].model_copy(update={"name": "eye", "hides": names})
    return PLAIN.model_copy(update={"cameras": (*PLAIN.cameras, camera)})


SCENE = hiding(*HIDES)
EYE = len(PLAIN.cameras)


def without(state):
    """The same instant with what is hidden out of the world."""
    hidden = hidden_from(SCENE, EYE)
    return replace(state, active=state.active & ~hidden, hidden=None)


def test_a_scene_carries_what_its_cameras_hide():
    assert Scene.model_validate_json(SCENE.model_dump_json()) == SCENE
    assert hidden_from(SCENE, 0) is None
    names = [b.name for b, h in zip(SCENE.bodies, hidden_from(SCENE, EYE), strict=True) if h]
    assert sorted(names) == sorted(HIDES)
    with pytest.raises(ValidationError, match="camera 'eye' hides 'nobody', which is no body"):
        Scene.model_validate(hiding("nobody").model_dump())
    assert Camera(name="a", position=(0, 0, 0), target=(1, 0, 0)).hides == ()


@pytest.mark.gl
def test_labels_are_those_of_a_world_without_the_hidden():
    state = start_state(SCENE, EYE)
    draws = RasterRenderer(SCENE, MESHES)
    seen = draws.draw(state, *SIZE, LABELS)
    gone = draws.draw(without(state), *SIZE, LABELS)
    plain = draws.draw(start_state(SCENE), *SIZE, LABELS)
    draws.close()
    for name in LABELS:
        assert np.array_equal(seen[name], gone[name], equal_nan=True), name
        assert not np.array_equal(seen[name], plain[name], equal_nan=True), name


@pytest.mark.gl
def test_the_hidden_cast_shadows_and_show_in_mirrors():
    state = start_state(SCENE, EYE)
    draws = RasterRenderer(SCENE, MESHES)
    layers = ("rgb", "ids", "shadow_ids")
    seen = draws.draw(state, *SIZE, layers)
    gone = draws.draw(without(state), *SIZE, layers)
    plain = draws.draw(start_state(SCENE), *SIZE, layers)
    draws.close()
    label = {b.name: b.instance for b in SCENE.bodies}
    for name in ("small", "block"):
        own = (plain["shadow_ids"] == label[name]) & (plain["ids"] == label["floor"])
        assert own.sum() > 30
        assert (seen["shadow_ids"][own] == label[name]).all()
        assert not (gone["shadow_ids"] == label[name]).any()
        darker = seen["rgb"][own].mean() < 0.8 * gone["rgb"][own].mean()
        assert darker, name
    mirror = (seen["ids"] == label["mirror"]) & (plain["ids"] == label["mirror"])
    inner = mirror & np.roll(mirror, 3, 0) & np.roll(mirror, -3, 0)
    inner &= np.roll(mirror, 3, 1) & np.roll(mirror, -3, 1)
    assert (np.abs(seen["rgb"][inner].astype(int) - gone["rgb"][inner]).max(axis=1) > 10).sum() > 50
    assert np.array_equal(seen["rgb"][inner], plain["rgb"][inner])


@pytest.mark.gl
def test_cameras_at_one_place_do_not_mix_up_what_they_hide():
    draws = RasterRenderer(SCENE, MESHES)
    fresh = RasterRenderer(SCENE, MESHES, cached=False)
    layers = ("rgb", "ids", "depth")
    for camera in (0, 0, EYE, EYE, 0, EYE, 0, 0):
        state = start_state(SCENE, camera)
        one, two = (r.draw(state, *SIZE, layers) for r in (draws, fresh))
        for name in layers:
            assert np.array_equal(one[name], two[name]), (camera, name)
    draws.close()
    fresh.close()


@needs_bpy
@pytest.mark.gl
def test_cycles_hides_the_same():
    state = start_state(SCENE, EYE)
    raster = RasterRenderer(SCENE, MESHES)
    cycles = make_renderer("cycles", SCENE, MESHES, preset="draft", device="cpu", threads=1)
    small = (160, 88)
    here = raster.draw(state, *small, ("ids",))["ids"]
    there = cycles.draw(state, *small, ("ids",))["ids"]
    shown = cycles.draw(start_state(SCENE), *small, ("ids",))["ids"]
    raster.close()
    cycles.close()
    assert (here != there).mean() < 0.03
    label = {b.name: b.instance for b in SCENE.bodies}
    for name in ("small", "block"):
        assert not (there == label[name]).any()
        assert (shown == label[name]).any()
