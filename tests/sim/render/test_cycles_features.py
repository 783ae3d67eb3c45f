"""What scenes may hold beyond solids in the open, by Cycles: hidden bodies, an eye inside a body,
a vessel with liquid; and what it draws none of."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from agreement import assert_same_labels
from blender_here import needs_bpy
from raster_scene import MESHES, make_scene, moved, near_edge

from wmeval.errors import UserError
from wmeval.scene import Cloth, Sheet
from wmeval.sim.protocol import hidden_from
from wmeval.sim.render import make_renderer
from wmeval.sim.render.cycles import VESSEL_BOUNCES, Preset
from wmeval.sim.render.pieces import start_state

SIZE = (160, 88)
LABELS = ("depth", "ids", "glass_ids", "normals")
QUICK = {"preset": Preset("quick", samples=4), "device": "cpu", "threads": 1}


def with_eye(scene, *names):
    camera = scene.cameras[0].model_copy(update={"name": "eye", "hides": names})
    return scene.model_copy(update={"cameras": (*scene.cameras, camera)})


@needs_bpy
@pytest.mark.gl
def test_what_is_hidden_from_the_camera_still_casts_its_shadow():
    plain = make_scene()
    scene = with_eye(plain, "small", "block")
    eye = len(plain.cameras)
    state = start_state(scene, eye)
    gone = replace(state, active=state.active & ~hidden_from(scene, eye), hidden=None)
    raster = make_renderer("raster", scene, MESHES)
    cycles = make_renderer("cycles", scene, MESHES, **QUICK)
    here = raster.draw(state, *SIZE, (*LABELS, "shadow_ids"))
    there = cycles.draw(state, *SIZE, ("rgb", *LABELS))
    empty = cycles.draw(gone, *SIZE, ("rgb", "ids"))
    raster.close()
    cycles.close()
    assert_same_labels(here, there)
    np.testing.assert_array_equal(there["ids"], empty["ids"])
    label = {b.name: b.instance for b in scene.bodies}
    for name in ("small", "block"):
        own = (here["shadow_ids"] == label[name]) & (here["ids"] == label["floor"])
        own &= ~near_edge(here["shadow_ids"])
        assert own.sum() > 5
        assert there["rgb"][own].mean() < 0.85 * empty["rgb"][own].mean(), name


@needs_bpy
@pytest.mark.gl
def test_an_eye_inside_a_body_sees_out_of_it():
    scene = make_scene()
    raster = make_renderer("raster", scene, MESHES)
    cycles = make_renderer("cycles", scene, MESHES, **QUICK)
    outside = moved(scene, 1)
    before = cycles.draw(outside, *SIZE, ("rgb", *LABELS))
    for name in ("small", "block"):
        k = scene.index(name)
        eye = outside.T_world_camera.copy()
        eye[:3, 3] = outside.position[k]
        inside = replace(outside, T_world_camera=eye, near=0.01)
        here = raster.draw(inside, *SIZE, LABELS)
        there = cycles.draw(inside, *SIZE, ("rgb", *LABELS))
        assert_same_labels(here, there)
        assert not (there["ids"] == scene.bodies[k].instance).any()
        assert there["rgb"].mean() > 30
    after = cycles.draw(outside, *SIZE, ("rgb", *LABELS))
    for name, layer in before.items():
        np.testing.assert_array_equal(after[name], layer, err_msg=name)
    raster.close()
    cycles.close()


@needs_bpy
@pytest.mark.gl
def test_liquid_in_a_bottle_is_clear_and_of_its_own_colour():
    from wmeval.envs import liquid_container

    made = liquid_container.compose()
    state = start_state(made.scene)
    drawn = []
    for name, options in (("raster", {}), ("cycles", QUICK)):
        renderer = make_renderer(name, made.scene, made.meshes, **options)
        drawn.append(renderer.draw(state, *SIZE, ("rgb", *LABELS)))
        if name == "cycles":
            preset = renderer.about["preset"]
        renderer.close()
    here, there = drawn
    assert_same_labels(here, there)
    assert preset["transmission_bounces"] == preset["bounces"] == VESSEL_BOUNCES
    liquid = here["ids"] == made.scene.bodies[made.scene.index("liquid")].instance
    inner = liquid & ~near_edge(here["ids"])
    colors = [x["rgb"][inner].mean(axis=0) for x in drawn]
    for red, green, blue in colors:
        assert red > 1.3 * green > 1.3 * blue
    assert np.abs(colors[0] - colors[1]).max() < 45


def test_cloth_is_refused_in_one_line(monkeypatch):
    monkeypatch.setenv("WMEVAL_BLENDER_PYTHON", "/any/python")
    scene = make_scene()
    cloth = Cloth(
        name="flag", surface=Sheet(size=(1.0, 1.0), cells=(4, 4)), areal_density=0.1,
        stretch=100.0, shear=100.0, bending=0.0,
    )  # fmt: skip
    with pytest.raises(UserError, match=r"cloth, ropes or solids \('flag'\): the cycles renderer"):
        make_renderer("cycles", scene.model_copy(update={"deformables": (cloth,)}), MESHES)
