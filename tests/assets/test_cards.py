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
