"""Cards: published counts and numbers, overrides by id, one clear error."""

from __future__ import annotations

from pathlib import Path

import pytest

from wmeval.assets.cards import Builtin, File, Line, OnRamp, Ramp, library
from wmeval.errors import UserError

ORANGE = """id: orange
name: Orange
asset: {source: file, path: orange.glb, scale: 0.01}
physics: {mass: 0.2, friction: 0.5, restitution: 0.2}
tags: [all, rolling]
"""


def test_the_library_has_the_published_counts_and_splits() -> None:
    cards = library()
    assert (len(cards.objects), len(cards.settings), len(cards.materials)) == (24, 12, 4)
    train, held_out = cards.splits.train, cards.splits.held_out
    assert (len(train.scenes), len(train.objects)) == (8, 16)
    assert (len(held_out.scenes), len(held_out.objects)) == (4, 8)
    assert {*train.scenes, *held_out.scenes} == set(cards.settings)
    assert {*train.objects, *held_out.objects} == set(cards.objects)
    assert set(cards.splits.tasks) == set(cards.tasks)


def test_every_tag_that_a_task_needs_has_objects_on_both_sides_of_the_split() -> None:
    cards = library()
    for task in cards.tasks.values():
        for placement in task.placements:
            if isinstance(placement, Ramp):
                continue
            for side in (cards.splits.train, cards.splits.held_out):
                assert cards.tagged(placement.tags, side.objects), (task.id, placement.slot)


def test_tasks_hold_the_intervals_of_table_4() -> None:
    tasks = library().tasks
    chain = {p.slot: p for p in tasks["ball_chain"].placements}
    ramp, line = chain["ramp"], chain["chain"]
    assert isinstance(ramp, Ramp)
    assert isinstance(line, Line)
    assert (ramp.length_m, ramp.height_m, ramp.width_m) == ((0.5, 0.7), (0.3, 0.45), (0.3, 0.4))
    assert (line.count, line.distance_m, line.gap_m) == (3, (0.08, 0.12), (0.02, 0.04))
    assert tasks["bounce"].support is not None
    assert (tasks["bounce"].support.restitution, tasks["bounce"].support.friction) == (0.6, 0.3)
    assert tasks["ramp_collision"].camera_deg == ((70, 110), (250, 290))
    assert all(set(t.ramp_materials) <= set(library().materials) for t in tasks.values())
    assert sum(isinstance(p, OnRamp) for p in tasks["ramp_collision"].placements) == 2


@pytest.mark.parametrize(
    ("name", "phrase"),
    [("apple", "an apple"), ("rubiks_cube", "a Rubik's cube"), ("red_bull_can", "a Red Bull can"),
     ("orange", "an orange"), ("toy_duck", "a toy duck")],
)  # fmt: skip
def test_names_get_their_article(name: str, phrase: str) -> None:
    assert library().objects[name].phrase == phrase


def test_a_users_card_replaces_the_built_in_one_by_id(tmp_path: Path) -> None:
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "orange.yaml").write_text(ORANGE)
    cards = library(tmp_path)
    assert cards.objects["orange"].asset == File(source="file", path="orange.glb", scale=0.01)
    assert isinstance(cards.objects["apple"].asset, Builtin)
    assert cards.folders["objects/orange"] == tmp_path / "objects"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (ORANGE.replace("mass: 0.2", "mass: -1"), ("orange.yaml", "physics.mass", "-1")),
        (ORANGE.replace("id: orange", "id: lime"), ("orange.yaml", "lime", "name the file")),
        (ORANGE.replace("rolling", "flying"), ("tags", "flying")),
        ("]", ("orange.yaml",)),
        (ORANGE + "colour: red\n", ("colour",)),
        (ORANGE.replace("name: Orange", 'name: ""'), ("name", "''")),
        (ORANGE.replace("name: Orange", 'name: " "'), ("name",)),
        (ORANGE.replace("mass: 0.2", "mass: 1e-300"), ("physics.mass",)),
        (ORANGE.replace("friction: 0.5", "friction: 1.0e+300"), ("physics.friction",)),
        (ORANGE.replace("scale: 0.01", "scale: 1.0e-12"), ("scale",)),
        (
            ORANGE.replace(
                "file, path: orange.glb, scale: 0.01",
                "builtin, builder: orange, size_m: [-0.07, 0.07, 0.07]",
            ),
            ("size_m",),
        ),
        (ORANGE.replace("mass: 0.2", "mass: 2024-13-45"), ("orange.yaml",)),
        (ORANGE.replace("id: orange", "id: " + "x" * 5000), ("orange.yaml", "...")),
    ],
)
def test_a_wrong_card_is_one_line_with_file_and_field(
    tmp_path: Path, text: str, words: tuple[str, ...]
) -> None:
    (tmp_path / "objects").mkdir()
    (tmp_path / "objects" / "orange.yaml").write_text(text)
    with pytest.raises(UserError) as error:
        library(tmp_path)
    for word in words:
        assert word in str(error.value)


def test_a_folder_without_cards_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="holds no card"):
        library(tmp_path)
    with pytest.raises(UserError, match="does not exist"):
        library(tmp_path / "nowhere")


FALL = """id: free_fall
placements:
  - {kind: drop, slot: falling, tags: all, height_m: [0.5, 0.7]}
prompt: "{falling} is dropping."
camera_deg: [[0, 360]]
"""
RAMP = """id: slope
placements:
  - {kind: ramp, slot: ramp, length_m: [0.5, 0.7], height_m: [0.3, 0.45], width_m: [0.3, 0.4]}
  - {kind: on_ramp, slot: rolling, tags: rolling, ramp: ramp, position: 0.25}
  - {kind: line, slot: chain, tags: stackable, count: 3, in_front_of: ramp, distance_m: [0, 1],
     gap_m: [0, 0.1]}
ramp_materials: [light_wood]
prompt: "{rolling} rolls towards {chain_2}."
camera_deg: [[60, 150]]
"""


def put(root: Path, kind: str, name: str, text: str) -> Path:
    (root / kind).mkdir(exist_ok=True)
    (root / kind / f"{name}.yaml").write_text(text)
    return root


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("[0.5, 0.7], height", "[0, 0.7], height", ("length_m",)),
        ("[0.5, 0.7], height", "[-1, 0.7], height", ("length_m",)),
        ("[0.3, 0.45]", "[-1, -1]", ("height_m",)),
        ("count: 3", "count: 1000", ("count",)),
        ("{rolling} rolls", "{falling} rolls", ("prompt", "falling", "chain_0")),
        ("{chain_2}", "{chain_3}", ("prompt", "chain_3")),
        ("{rolling} rolls", "{ramp} rolls", ("prompt", "'ramp'")),
        ("slot: rolling,", "slot: chain_0,", ("slot", "chain_0", "twice")),
        ("slot: rolling,", "slot: 'a:b',", ("slot", "a:b")),
        ("[light_wood]", "[moonstone]", ("ramp_materials", "moonstone", "light_wood")),
        ("tags: rolling,", "tags: rolling, objects: [anvil],", ("rolling", "anvil", "apple")),
        ("[[60, 150]]", "[[60, 1.0e+9]]", ("camera_deg",)),
    ],
)
def test_a_wrong_task_is_refused_when_it_is_read(
    tmp_path: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    assert "slope" in library(put(tmp_path, "tasks", "slope", RAMP)).tasks
    assert old in RAMP
    with pytest.raises(UserError) as error:
        library(put(tmp_path, "tasks", "slope", RAMP.replace(old, new)))
    for word in ("slope", *words):
        assert word in str(error.value)


@pytest.mark.parametrize("height", ["[0.5, 1.0e+6]", "[-0.5, 0.7]", "[0, 0]"])
def test_a_drop_has_the_height_of_a_room(tmp_path: Path, height: str) -> None:
    with pytest.raises(UserError, match="height_m"):
        library(put(tmp_path, "tasks", "free_fall", FALL.replace("[0.5, 0.7]", height)))


@pytest.mark.parametrize(
    ("surface", "field"),
    [
        ("{center: [1.0e+9, 0, 0], size: [1, 1]}", "center"),
        ("{center: [0, 0, 0], size: [0, 1]}", "size"),
        ("{center: [0, 0, 0], size: [1, 1.0e+6]}", "size"),
        ("{center: [0, 0, 0], size: [1, 1], long_axis_deg: 1.0e+9}", "long_axis_deg"),
    ],
)
def test_a_support_lies_in_its_setting(tmp_path: Path, surface: str, field: str) -> None:
    card = "id: hall\nname: Hall\nasset: {source: file, path: hall.glb}\nsurfaces:\n  Top: "
    with pytest.raises(UserError, match=rf"hall\.yaml: surfaces\.Top\.{field}"):
        library(put(tmp_path, "settings", "hall", card + surface + "\n"))


def test_the_released_folder_is_refused_in_one_short_line(tmp_path: Path) -> None:
    for name in ("apple", "pear"):
        own = ORANGE.replace("orange", name)
        asset = f"file, path: {name}.glb, scale: 0.01"
        card = own.replace(asset, "blenderkit, type: model, id: abc")
        put(tmp_path, "objects", name, card)
    released = "placements: []\nprompt_template: '{x} is dropping.'\ncamera_range: [[0, 360]]\n"
    put(tmp_path, "tasks", "free_fall", released)
    with pytest.raises(UserError, match=r"BlenderKit.* not read \(objects/apple and 1 more\)") as e:
        library(tmp_path)
    assert len(str(e.value)) < 400
    (tmp_path / "own").mkdir()
    with pytest.raises(UserError, match=r"free_fall\.yaml: tasks in the released form"):
        library(put(tmp_path / "own", "tasks", "free_fall", released))


@pytest.mark.parametrize(
    ("files", "changed"),
    [
        ({"thing.stl": "solid"}, "thing.stl"),
        ({"thing.obj": "mtllib a thing.mtl\nv 0 0 0\n", "a thing.mtl": "map_Kd -s 1 1 wood.png\n",
          "wood.png": "x"}, "wood.png"),
        ({"thing.obj": "mtllib thing.mtl\n", "thing.mtl": "Kd 1 0 0\n"}, "thing.mtl"),
        ({"thing.gltf": '{"buffers": [{"uri": "thing%20one.bin"}, {"uri": "data:,x"}]}',
          "thing one.bin": "x"}, "thing one.bin"),
        ({"thing.ply": "ply\ncomment TextureFile wood.png\nend_header\n", "wood.png": "x"},
         "wood.png"),
    ],
)  # fmt: skip
def test_a_change_of_any_file_of_an_asset_is_seen(
    tmp_path: Path, files: dict[str, str], changed: str
) -> None:
    put(tmp_path, "objects", "orange", ORANGE.replace("orange.glb", next(iter(files))))
    with pytest.raises(UserError, match=r"object 'orange': .*no such file"):
        library(tmp_path).document()
    for name, text in files.items():
        (tmp_path / "objects" / name).write_text(text)
    before = library(tmp_path).document()
    assert library(tmp_path).document() == before
    (tmp_path / "objects" / changed).write_text(files[changed] + "\n")
    assert library(tmp_path).document() != before
    assert len(library().document()) == 4  # built-in cards name no file
