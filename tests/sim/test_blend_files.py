"""A .blend as an object and as a room: read by Blender, once for each content."""

from __future__ import annotations

import hashlib
import subprocess

import numpy as np
import pytest
import trimesh
from blender_here import needs_bpy, take_bpy_away

from wmeval.assets.cards import ObjectCard, SettingCard
from wmeval.assets.models import build_object
from wmeval.assets.settings import build_setting
from wmeval.errors import UserError
from wmeval.jobs import installed
from wmeval.sim import blend_files
from wmeval.sim.blend_files import as_glb
from wmeval.sim.blender_worker import blender_python

MAKE = """
import sys
import bpy

bpy.ops.wm.read_factory_settings(use_empty=True)
bpy.ops.mesh.primitive_cube_add(size=0.2)
cube = bpy.context.object
cube.scale = (1, 0.5, 2)
cube.modifiers.new("round", "BEVEL").width = 0.01
look = bpy.data.materials.new("look")
look.use_nodes = True
picture = bpy.data.images.new("picture", 2, 2)
picture.pixels[:] = [1, 0, 0, 1] * 2 + [0, 0, 1, 1] * 2
picture.pack()
node = look.node_tree.nodes.new("ShaderNodeTexImage")
node.image = picture
surface = look.node_tree.nodes["Principled BSDF"]
look.node_tree.links.new(node.outputs[0], surface.inputs["Base Color"])
cube.data.materials.append(look)
bpy.ops.mesh.primitive_uv_sphere_add(location=(9, 0, 0))
bpy.context.object.hide_render = True
bpy.ops.wm.save_as_mainfile(filepath=sys.argv[1])
"""


def thing(path):
    return ObjectCard.model_validate(
        {
            "id": "thing", "name": "Thing", "tags": ["all"],
            "physics": {"mass": 0.2, "friction": 0.4, "restitution": 0.1},
            "asset": {"source": "file", "path": path},
        }
    )  # fmt: skip


def room(path):
    return SettingCard.model_validate(
        {
            "id": "mine", "name": "Mine", "asset": {"source": "file", "path": path},
            "surfaces": {
                "Table": {"center": [0, 0, 0.7], "size": [1.4, 0.8], "long_axis_deg": 0,
                          "clutter_hide": []},
            },
        }
    )  # fmt: skip


@needs_bpy
def test_an_object_and_a_room_from_blender(tmp_path, monkeypatch):
    monkeypatch.setattr(blend_files, "home", lambda: tmp_path / "home" / "environments")
    (tmp_path / "make.py").write_text(MAKE)
    command = [blender_python(), str(tmp_path / "make.py"), str(tmp_path / "a.blend")]
    subprocess.run(command, check=True, capture_output=True, timeout=120)
    model = build_object(thing("a.blend"), tmp_path, as_glb)
    np.testing.assert_allclose(model.size, (0.2, 0.1, 0.4), atol=1e-5)
    (part,) = model.parts
    assert len(part.mesh.triangles) > 12
    assert part.material.texture.builder.startswith("image:")
    assert part.material.texture.colors[0] == pytest.approx((0.5, 0, 0.5), abs=1e-3)
    setting = build_setting(room("a.blend"), tmp_path, as_glb)
    assert setting.materials[0].texture == part.material.texture
    # The second time nothing is started.
    monkeypatch.setattr(blend_files, "BlenderWorker", None)
    assert as_glb(tmp_path / "a.blend").parent == tmp_path / "home" / "converted"
    monkeypatch.undo()
    monkeypatch.setattr(blend_files, "home", lambda: tmp_path / "other" / "environments")
    assert build_object(thing("a.blend"), tmp_path, as_glb).meshes().keys() == model.meshes().keys()
    (tmp_path / "bad.blend").write_bytes(b"nonsense")
    with pytest.raises(UserError, match=r"object 'thing':.*Blender cannot open it"):
        build_object(thing("bad.blend"), tmp_path, as_glb)
    assert len(list((tmp_path / "other" / "converted").iterdir())) == 1


def test_a_kept_file_needs_no_blender(tmp_path, monkeypatch):
    take_bpy_away(monkeypatch, tmp_path)
    (tmp_path / "a.blend").write_bytes(b"whatever it holds")
    with pytest.raises(UserError, match=r"object 'thing':.*wmeval install blender"):
        build_object(thing("a.blend"), tmp_path, as_glb)
    with pytest.raises(UserError, match=r"setting 'mine':.*wmeval install blender"):
        build_setting(room("a.blend"), tmp_path, as_glb)
    with pytest.raises(UserError, match="no such file"):
        build_object(thing("none.blend"), tmp_path, as_glb)
    with pytest.raises(UserError, match="no file"):
        build_setting(room("none.blend"), tmp_path, as_glb)
    folder = installed.home().parent / blend_files.FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    digest = hashlib.sha256(b"whatever it holds").hexdigest()
    trimesh.creation.box((0.2, 0.4, 0.1)).export(folder / f"{digest}-{blend_files.VERSION}.glb")
    model = build_object(thing("a.blend"), tmp_path, as_glb)
    np.testing.assert_allclose(model.size, (0.2, 0.1, 0.4), atol=1e-6)
