"""Files of other tools as they are drawn: from outside, without holes, with their pictures."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh
from blender_here import needs_bpy
from PIL import Image

from wmeval import conventions
from wmeval.assets.cards import ObjectCard, SettingCard
from wmeval.assets.models import build_object
from wmeval.assets.outsides import outwards
from wmeval.assets.pictures import LARGEST_PX, from_image, image_texture, packed, unpacked
from wmeval.assets.settings import build_setting
from wmeval.assets.textures import bake, decode_srgb
from wmeval.errors import UserError
from wmeval.scene import Body, Camera, Scene, Sun
from wmeval.sim.render import make_renderer
from wmeval.sim.render.pieces import start_state

SIZE = (160, 120)
Y_UP = np.array([[1.0, 0, 0, 0], [0, 0, 1, 0], [0, -1, 0, 0], [0, 0, 0, 1]])
"""What Blender does to z-up things that it writes as glTF."""
RED, BLUE = (200, 30, 20), (20, 40, 210)


def built(folder, name):
    return build_object(
        ObjectCard.model_validate(
            {
                "id": "thing", "name": "Thing", "tags": ["all"],
                "physics": {"mass": 0.2, "friction": 0.4, "restitution": 0.1},
                "asset": {"source": "file", "path": name},
            }
        ),
        folder,
    )  # fmt: skip


def shown(model, eye=(0.3, -0.8, 0.5), target=(0.0, 0.0, 0.0)):
    """A scene of one object, as it stands, and its meshes."""
    body = Body(
        name="thing", role="thing", motion="static", instance=7, quaternion_wxyz=model.turn,
        position=tuple(-x for x in model.box_center), visuals=model.visuals(),
    )  # fmt: skip
    scene = Scene(
        name="one", bodies=(body,), materials=model.materials(),
        cameras=(Camera(name="eye", position=eye, target=target, fov_y_deg=40),),
        sun=Sun(direction=(0.0, 0.3, -0.954)),
    )  # fmt: skip
    return scene, model.meshes()


def drawn(scene, meshes, layers=("rgb", "depth", "ids", "normals")):
    made = make_renderer("raster", scene, meshes)
    try:
        return made.draw(start_state(scene), *SIZE, layers)
    finally:
        made.close()


def struck(triangles, scene):
    """Planar depth (H, W) of the nearest triangle (F, 3, 3) at each pixel's centre; inf: none."""
    state = start_state(scene)
    K = conventions.intrinsics(state.fov_y, *SIZE)
    grid = conventions.pixel_grid(*SIZE).reshape(-1, 2)
    eye = state.T_world_camera[:3, 3]
    ray = conventions.unproject(grid, np.ones(len(grid)), K, state.T_world_camera) - eye
    best = np.full(len(grid), np.inf)
    for a, b, c in triangles:
        normal = np.cross(b - a, c - a)
        with np.errstate(divide="ignore", invalid="ignore"):
            t = (a - eye) @ normal / (ray @ normal)
            at = eye + ray * t[:, None]
            inside = t > 0
            for p, q in ((a, b), (b, c), (c, a)):
                inside &= (np.cross(q - p, at - p) @ normal) >= 0
        best = np.where(inside & (t < best), t, best)
    return best.reshape(SIZE[::-1])


def assert_as_rays(scene, meshes, triangles):
    """Depth and ids but for a pixel's width along outlines; normals look at the camera."""
    out = drawn(scene, meshes)
    expected = struck(triangles, scene)
    assert np.isfinite(expected).sum() > 800
    agree = np.isclose(out["depth"], expected, rtol=1e-4) | (
        np.isinf(out["depth"]) & np.isinf(expected)
    )
    assert (~agree).sum() <= 4
    assert ((out["ids"] == 7) != np.isfinite(expected)).sum() <= 4


@pytest.mark.gl
@pytest.mark.parametrize("suffix", ["ply", "obj", "stl", "glb"])
@pytest.mark.parametrize("inverted", [False, True])
def test_an_inverted_mesh_is_seen_from_outside(tmp_path, suffix, inverted):
    box = trimesh.creation.box((0.3, 0.2, 0.16))
    expected = box.triangles.copy()
    if inverted:
        box.invert()
    if suffix == "glb":
        box.apply_transform(Y_UP)
    box.export(tmp_path / f"a.{suffix}")
    model = built(tmp_path, f"a.{suffix}")
    assert not any(m.two_sided for m in model.materials())
    assert_as_rays(*shown(model), expected)


@pytest.mark.gl
@pytest.mark.parametrize("inverted", [False, True])
def test_an_open_mesh_keeps_its_mask(tmp_path, inverted):
    box = trimesh.creation.box((0.3, 0.2, 0.16))
    box.update_faces(box.face_normals[:, 2] < 0.5)  # without its lid
    expected = box.triangles.copy()
    if inverted:
        box.invert()
    box.export(tmp_path / "a.ply")
    model = built(tmp_path, "a.ply")
    assert all(m.two_sided for m in model.materials())
    assert_as_rays(*shown(model, eye=(0.2, -0.5, 0.8)), expected)


def test_what_a_file_cuts_by_materials_is_closed_as_a_whole():
    box = trimesh.creation.box((1, 1, 1))
    ball = trimesh.creation.icosphere(1, 0.2)
    ball.apply_translation((2, 0, 0))
    sheet = np.array([[0, 0, 5.0], [1, 0, 5], [0, 1, 5]])
    faces = box.faces[:, ::-1]
    halves = [(box.vertices, faces[:5]), (box.vertices, faces[5:])]
    found = outwards([*halves, (ball.vertices, ball.faces), (sheet, np.array([[0, 1, 2]]))])
    assert [bool(thin.any()) for _, thin in found] == [False, False, False, True]
    assert np.array_equal(np.concatenate([f for f, _ in found[:2]]), box.faces)
    assert np.array_equal(found[2][0], ball.faces)
    # Of several surfaces in one piece each is turned for itself.
    both = trimesh.util.concatenate([trimesh.Trimesh(box.vertices, faces), ball])
    ((turned, thin),) = outwards([(both.vertices, both.faces)])
    assert not thin.any()
    assert trimesh.Trimesh(both.vertices, turned).volume == pytest.approx(1 + ball.volume)


# --- pictures -------------------------------------------------------------------------------------


def checkerboard(folder, name="a.glb", factor=None, image=None, thickness=0.02, size=0.4):
    """An upright board with two by two squares: red above left and below right as seen from -y."""
    if image is None:
        texels = np.zeros((64, 64, 3), np.uint8)
        texels[:] = BLUE
        texels[:32, :32] = texels[32:, 32:] = RED
        image = Image.fromarray(texels)
    half = size / 2
    v = np.array([(-1, 0, -1), (1, 0, -1), (1, 0, 1), (-1, 0, 1)], float) * half
    front = v - np.array([0, thickness / 2, 0])
    back = v + np.array([0, thickness / 2, 0])
    # Texture coordinates of trimesh: v upwards.
    uv = np.array([(0, 0), (1, 0), (1, 1), (0, 1)], float)
    faces = np.array([(0, 1, 2), (0, 2, 3), (4, 6, 5), (4, 7, 6)])
    for k in range(4):
        n = (k + 1) % 4
        faces = np.concatenate([faces, [(k, k + 4, n), (n, k + 4, n + 4)]])
    if name.endswith(".obj"):
        material = trimesh.visual.material.SimpleMaterial(image=image)
    else:
        material = trimesh.visual.material.PBRMaterial(
            baseColorTexture=image, baseColorFactor=factor
        )
    board = trimesh.Trimesh(
        np.concatenate([front, back]), faces, process=False,
        visual=trimesh.visual.TextureVisuals(uv=np.concatenate([uv, uv]), material=material),
    )  # fmt: skip
    if name.endswith(".glb"):
        board.apply_transform(Y_UP)
    board.export(folder / name)
    return name


def quarters(rgb):
    """Colours (2, 2, 3) in the middle of the board's squares as `front` sees them."""
    return rgb[np.ix_([45, 75], [65, 95])].astype(float)


def front(model):
    return shown(model, eye=(0.0, -1.3, 0.0))


def hued(rgb):
    return np.where(rgb[..., 0] > rgb[..., 2], "red", "blue").tolist()


@pytest.mark.gl
@pytest.mark.parametrize("name", ["a.glb", "a.obj"])
def test_a_checkerboard_keeps_its_squares(tmp_path, name):
    model = built(tmp_path, checkerboard(tmp_path, name))
    (look,) = model.materials()
    assert look.texture.builder.startswith("image:")
    assert look.texture.builder[6:] in model.meshes()
    seen = quarters(drawn(*front(model))["rgb"])
    assert hued(seen) == [["red", "blue"], ["blue", "red"]]
    # Each as strongly as a plain board of that colour: the codes are those of the file.
    baked = bake_of(model)
    codes = {tuple(c) for c in baked[[64, 64, 448, 448], [64, 448, 64, 448]].tolist()}
    assert codes == {RED, BLUE}


def bake_of(model):
    scene, meshes = front(model)
    made = make_renderer("raster", scene, meshes)
    try:
        return bake(made._pieces.textures[0])
    finally:
        made.close()


@pytest.mark.gl
def test_the_factor_is_on_every_texel(tmp_path):
    model = built(tmp_path, checkerboard(tmp_path, factor=[255, 255, 51, 255]))
    texels = bake_of(model)
    expected = decode_srgb(np.array(BLUE, np.uint8)) * (1, 1, 0.2)
    np.testing.assert_allclose(decode_srgb(texels[64, 64]), expected, atol=0.01)


@pytest.mark.gl
def test_a_picture_on_a_user_s_room(tmp_path):
    card = SettingCard.model_validate(
        {
            "id": "mine", "name": "Mine",
            "asset": {"source": "file", "path": checkerboard(tmp_path, size=4.0)},
            "surfaces": {
                "Table": {"center": [0, 0, 0.7], "size": [1.4, 0.8], "long_axis_deg": 0,
                          "clutter_hide": []},
            },
        }
    )  # fmt: skip
    setting = build_setting(card, tmp_path)
    scene = Scene(
        name="room", bodies=setting.bodies, materials=setting.materials, sun=setting.sun,
        cameras=(Camera(name="eye", position=(0, -13, 0), target=(0, 0, 0), fov_y_deg=40),),
    )  # fmt: skip
    seen = quarters(drawn(scene, setting.meshes, ("rgb",))["rgb"])
    assert hued(seen) == [["red", "blue"], ["blue", "red"]]


def test_colours_of_vertices_stand_beside_a_material(tmp_path):
    box = trimesh.creation.box((0.2, 0.2, 0.2))
    box.visual = trimesh.visual.TextureVisuals(
        material=trimesh.visual.material.PBRMaterial(baseColorFactor=[255, 128, 255, 255])
    )
    box.visual.vertex_attributes["color"] = np.tile(
        np.array([51, 255, 102, 255], np.uint8), (len(box.vertices), 1)
    )
    box.export(tmp_path / "a.glb")
    (look,) = built(tmp_path, "a.glb").materials()
    assert look.texture.colors[0] == pytest.approx((0.2, 0.5, 0.4), abs=0.01)


@pytest.mark.gl
@pytest.mark.parametrize("suffix", ["glb", "ply"])
def test_many_colours_of_vertices_stay_where_they_are(tmp_path, suffix):
    ball = trimesh.creation.icosphere(4, 0.15)
    share = (ball.vertices - ball.vertices.min(axis=0)) / 0.3
    codes = np.full((len(share), 4), 255, np.uint8)
    codes[:, :3] = np.rint(share[:, [0, 2, 1]] * (1, 0.5, 0) * 255)
    ball.visual.vertex_colors = codes
    if suffix == "glb":
        ball.apply_transform(Y_UP)
    ball.export(tmp_path / f"a.{suffix}")
    model = built(tmp_path, f"a.{suffix}")
    assert len(model.parts) == 1
    rgb = drawn(*front(model), ("rgb",))["rgb"].astype(int)
    left, right, above, below = rgb[60, 68], rgb[60, 92], rgb[50, 80], rgb[70, 80]
    assert right[0] / right[1] > 1.3 * left[0] / left[1]
    assert above[1] / above[0] > 1.3 * below[1] / below[0]
    # Texels of the palette are those of the faces: no other colour is mixed in.
    mesh = model.parts[0].mesh
    texels = decode_srgb(bake_of(model))
    at = np.floor(mesh.uv * 512).astype(int)
    given = share[:, [0, 2, 1]] * (1, 0.5, 0)
    linear = given if suffix == "glb" else decode_srgb(np.rint(given * 255).astype(np.uint8))
    upright = conventions.quaternion_to_matrix(np.array(model.turn))
    places = mesh.vertices @ upright.T - np.array(model.box_center)
    near = trimesh.transformations.unit_vector(places, axis=1)
    wanted = trimesh.transformations.unit_vector(share - 0.5, axis=1)
    closest = (near[::97] @ wanted.T).argmax(axis=1)
    np.testing.assert_allclose(texels[at[::97, 1], at[::97, 0]], linear[closest], atol=0.11, rtol=0)


def test_pictures_travel_as_they_are_and_are_bounded():
    rng = np.random.default_rng(1)
    texels = rng.integers(0, 256, (5, 7, 3), np.uint8)
    assert np.array_equal(unpacked(packed(texels)), texels)
    assert np.array_equal(from_image(Image.fromarray(texels)), texels[::-1])
    assert image_texture(texels)[0] == image_texture(texels.copy())[0]
    wide = np.zeros((4, 2 * LARGEST_PX, 3), np.uint8)
    wide[:, ::2] = 255
    small = from_image(Image.fromarray(wide))
    assert small.shape == (4, LARGEST_PX, 3)
    np.testing.assert_allclose(decode_srgb(small), 0.5, atol=0.005)


def test_a_picture_that_is_missing_is_named(tmp_path):
    model = built(tmp_path, checkerboard(tmp_path))
    scene, meshes = front(model)
    key = model.materials()[0].texture.builder[6:]
    with pytest.raises(UserError, match="is not with the scene's meshes"):
        make_renderer("raster", scene, {k: m for k, m in meshes.items() if k != key})


@needs_bpy
@pytest.mark.gl
def test_cycles_draws_the_same_board(tmp_path):
    model = built(tmp_path, checkerboard(tmp_path))
    scene, meshes = front(model)
    made = make_renderer("cycles", scene, meshes, preset="draft", device="cpu", threads=1)
    try:
        there = made.draw(start_state(scene), *SIZE, ("rgb",))["rgb"]
    finally:
        made.close()
    assert hued(quarters(there)) == [["red", "blue"], ["blue", "red"]]
    here = drawn(scene, meshes, ("rgb",))["rgb"]
    assert np.abs(quarters(here) - quarters(there)).max() < 40


@pytest.mark.accept
@pytest.mark.gl
def test_a_picture_goes_where_meshes_go(tmp_path):
    """Through a task, its recording, files, and bytes between processes."""
    from wmeval.datasets.rollout import read, write_hdf5, write_zarr
    from wmeval.envs import make_environment
    from wmeval.envs.plans import load_plan
    from wmeval.envs.record import record
    from wmeval.sim.wire import pack_spec, unpack_spec

    folder = tmp_path / "assets" / "objects"
    folder.mkdir(parents=True)
    checkerboard(folder, size=0.2, thickness=0.08)
    (folder / "board.yaml").write_text(
        "id: board\nname: Board\nasset: {source: file, path: a.glb}\n"
        "physics: {mass: 0.3, friction: 0.5, restitution: 0.2}\ntags: [all]\n"
    )
    env = make_environment("FreeFall", assets=str(tmp_path / "assets"))
    plan = load_plan("FreeFall", "clip")
    rollout = record(env, plan=plan, seed=3, options={"objects": ["board"]}, max_steps=1)
    spec = env.unwrapped.world_spec
    env.close()
    key = next(m.texture.builder[6:] for m in rollout.scene.materials if m.name == "board_0")
    write_hdf5(rollout, tmp_path / "a.h5")
    write_zarr(rollout, tmp_path / "a.zarr")
    sent = unpack_spec(*pack_spec(spec))
    for meshes in (read(tmp_path / "a.h5").meshes, read(tmp_path / "a.zarr").meshes, sent.meshes):
        assert np.array_equal(unpacked(meshes[key]), unpacked(rollout.meshes[key]))
    assert len(np.unique(unpacked(rollout.meshes[key]).reshape(-1, 3), axis=0)) == 2
