"""A user's own files: lengths, axes, colours, and one clear message for each mistake."""

import numpy as np
import pytest
import trimesh

from wmeval.assets.cards import library
from wmeval.assets.hulls import moments
from wmeval.assets.models import HULL_VERTICES, build_object
from wmeval.conventions import quaternion_to_matrix
from wmeval.errors import UserError


def card(path, scale=1.0, **asset):
    body = {
        "id": "thing", "name": "Thing", "tags": ["all"],
        "physics": {"mass": 0.2, "friction": 0.4, "restitution": 0.1},
        "asset": {"source": "file", "path": path, "scale": scale, **asset},
    }  # fmt: skip
    from wmeval.assets.cards import ObjectCard

    return ObjectCard.model_validate(body)


def lump():
    """A box with a bump above one end: its axes are not its principal axes."""
    box = trimesh.creation.box((0.2, 0.1, 0.06))
    bump = trimesh.creation.icosphere(2, 0.03)
    bump.apply_translation((0.05, 0, 0.04))
    return box, bump


@pytest.mark.parametrize("suffix", ["obj", "ply", "stl"])
def test_lengths_and_place(tmp_path, suffix):
    box, bump = lump()
    whole = trimesh.util.concatenate([box, bump])
    whole.apply_translation((3, -2, 1))
    whole.export(tmp_path / f"a.{suffix}")
    made = build_object(card(f"a.{suffix}", 0.5), tmp_path)
    np.testing.assert_allclose(made.size, np.array([0.2, 0.1, 0.1]) / 2, atol=2e-5)
    hull = whole.convex_hull
    expected = (whole.bounds.mean(axis=0) - hull.center_mass) / 2
    np.testing.assert_allclose(made.box_center, expected, atol=2e-4)
    assert len(made.hull.vertices) <= HULL_VERTICES


def test_the_frame_is_principal_and_nearest_to_upright(tmp_path):
    whole = trimesh.util.concatenate(lump())
    whole.apply_transform(trimesh.transformations.rotation_matrix(0.3, (1, 2, 3), (0.1, 0, 0)))
    whole.export(tmp_path / "a.obj")
    made = build_object(card("a.obj"), tmp_path)
    _, centre, second = moments(made.hull)
    assert np.abs(centre).max() < 1e-6
    off = second - np.diag(np.diag(second))
    assert np.abs(off).max() < 1e-5 * np.trace(second)
    upright = quaternion_to_matrix(np.array(made.turn))
    # Of the 24 ways to name the axes the one that turns least: by some 0.3 rad.
    assert np.degrees(np.arccos((np.trace(upright) - 1) / 2)) < 30
    # Turned by it the object stands as in the file.
    seen = np.concatenate([p.mesh.vertices for p in made.parts]) @ upright.T
    low, high = whole.bounds
    np.testing.assert_allclose(made.size, high - low, atol=1e-5)
    np.testing.assert_allclose((seen.min(0) + seen.max(0)) / 2, made.box_center, atol=1e-6)
    np.testing.assert_allclose(np.ptp(seen, axis=0), made.size, atol=1e-5)
    # Built-in objects are so as they stand, as is what has no products of inertia.
    trimesh.creation.box((0.2, 0.1, 0.06)).export(tmp_path / "b.obj")
    for plain in (build_object(card("b.obj"), tmp_path), banana()):
        assert plain.turn == (1.0, 0.0, 0.0, 0.0)


def banana():
    return build_object(library().objects["banana"], library().folders["objects/banana"])


def test_gltf_is_y_up_and_keeps_its_colours(tmp_path):
    box, bump = lump()
    box.visual.face_colors = (200, 30, 30, 255)
    bump.visual.face_colors = (20, 20, 220, 255)
    scene = trimesh.Scene({"box": box, "bump": bump})
    # What Blender writes: z-up turned to y-up.
    scene.apply_transform([[1, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
    scene.export(tmp_path / "a.glb")
    made = build_object(card("a.glb"), tmp_path)
    np.testing.assert_allclose(made.size, (0.2, 0.1, 0.1), atol=1e-5)
    blue_part, red_part = sorted(made.parts, key=lambda p: p.material.texture.colors[0][0])
    red, blue = (p.material.texture.colors[0] for p in (red_part, blue_part))
    # The bump is above.
    upright = quaternion_to_matrix(np.array(made.turn))
    tops = [(p.mesh.vertices @ upright.T)[:, 2].max() for p in (blue_part, red_part)]
    assert tops[0] == pytest.approx(tops[1] + 0.04, abs=1e-4)
    assert red[0] > 5 * red[2]
    assert blue[2] > 5 * blue[0]
    assert red[0] == pytest.approx(200 / 255, rel=0.02)  # glTF numbers colours linearly


def test_base_colours_of_materials(tmp_path):
    box, _ = lump()
    material = trimesh.visual.material.PBRMaterial(baseColorFactor=[0, 255, 0, 255])
    box.visual = trimesh.visual.TextureVisuals(material=material)
    box.export(tmp_path / "a.glb")
    (part,) = build_object(card("a.glb"), tmp_path).parts
    assert part.material.texture.builder == "plain"
    assert part.material.texture.colors[0] == pytest.approx((0, 1, 0), abs=1e-3)


def test_normals_look_outwards(tmp_path):
    trimesh.creation.icosphere(3, 0.05).export(tmp_path / "a.stl")
    made = build_object(card("a.stl"), tmp_path)
    mesh = made.parts[0].mesh
    out = np.einsum("ij,ij->i", mesh.normals, mesh.vertices) / 0.05
    assert out.min() > 0.99
    assert made.ball is None or made.ball == pytest.approx(0.05, rel=1e-3)


def test_each_mistake_has_its_message(tmp_path):
    box, _ = lump()
    box.export(tmp_path / "a.obj")
    (tmp_path / "b.glb").write_bytes(b"glTF nonsense")
    (tmp_path / "b.obj").write_text("v 0 0 0\n")
    flat = trimesh.Trimesh(
        [[0, 0, 0], [0.1, 0, 0], [0, 0.1, 0], [0.1, 0.1, 0]], [[0, 1, 2], [1, 3, 2]]
    )
    flat.export(tmp_path / "flat.ply")
    (tmp_path / "a.blend").write_bytes(b"BLENDER")
    for name, scale, message in (
        ("none.glb", 1.0, "no such file"),
        ("a.blend", 1.0, "export it as .glb"),
        ("a.fbx", 1.0, "give one of"),
        ("b.glb", 1.0, "cannot be read"),
        ("b.obj", 1.0, "no triangles|cannot be read"),
        ("flat.ply", 1.0, "not flat"),
        ("a.obj", 1000.0, "200 m large.*scale"),
        ("a.obj", 0.001, "0.0002 m large.*scale"),
    ):
        with pytest.raises(UserError, match=message):
            build_object(card(name, scale), tmp_path)


def test_an_asset_of_blenderkit_names_the_way_out(tmp_path):
    given = library().objects["apple"].model_dump()
    given["asset"] = {"source": "blenderkit", "type": "model", "id": "abc"}
    with pytest.raises(UserError, match=r"fetch it with Blender.*source: file"):
        build_object(type(library().objects["apple"]).model_validate(given), tmp_path)
