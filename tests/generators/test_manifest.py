"""Manifests: the published counts, one seed, no seed on both sides, one clear error."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import pytest

from wmeval.assets.cards import library
from wmeval.errors import UserError
from wmeval.generators.manifest import (
    TRAIN_COUNTS,
    evaluation_manifest,
    published_seeds,
    read_manifest,
    refuse_evaluation_seeds,
    training_manifest,
)
from wmeval.generators.rigidbench import rows_of

CARDS = library()
PUBLISHED = (
    Path(os.environ.get("WMEVAL_SHARED", Path(__file__).parents[3] / "shared"))
    / "data/rigidbench/manifest_eval.json"
)


def test_the_training_manifest_has_the_published_counts() -> None:
    rows = training_manifest(CARDS)
    assert len(rows) == 5000
    assert Counter(r.task_type for r in rows) == TRAIN_COUNTS
    assert Counter(r.scene_id for r in rows) == dict.fromkeys(CARDS.splits.train.scenes, 625)
    assert {r.objects for r in rows} == {CARDS.splits.train.objects}
    assert len({r.seed for r in rows}) == 5000


def test_the_evaluation_manifest_has_25_a_condition_and_5_a_task() -> None:
    rows = evaluation_manifest(CARDS)
    assert Counter((r.split, r.task_type) for r in rows) == {
        (s, t): 5
        for s in ("in_distribution", "ood-scene", "ood-object", "ood-both")
        for t in CARDS.splits.tasks
    }
    for row in rows:
        held_scene = row.scene_id in CARDS.splits.held_out.scenes
        held_objects = row.objects == CARDS.splits.held_out.objects
        assert (held_scene, held_objects) == {
            "in_distribution": (False, False),
            "ood-scene": (True, False),
            "ood-object": (False, True),
            "ood-both": (True, True),
        }[row.split]


def test_one_seed_makes_the_same_rows_and_another_makes_others() -> None:
    assert training_manifest(CARDS, 3) == training_manifest(CARDS, 3)
    assert training_manifest(CARDS, 3) != training_manifest(CARDS, 4)


def test_training_never_has_a_seed_of_the_evaluation() -> None:
    held_back = {r.seed for r in training_manifest(CARDS)[:100]}
    rows = training_manifest(CARDS, held_back=held_back)
    assert not held_back & {r.seed for r in rows}
    assert not {r.seed for r in evaluation_manifest(CARDS)} & {r.seed for r in rows}
    stolen = rows[0].model_copy(update={"seed": evaluation_manifest(CARDS)[7].seed})
    with pytest.raises(UserError, match=rf"{stolen.sample_id}.*{stolen.seed}"):
        refuse_evaluation_seeds([stolen], [r.seed for r in evaluation_manifest(CARDS)])


def write(path: Path, rows: list[dict[str, object]]) -> Path:
    path.write_text(json.dumps(rows))
    return path


def good() -> dict[str, object]:
    return {
        "sample_id": "00000", "scene_id": "modern_loft", "task_type": "free_fall",
        "surface_name": "Counter", "seed": 1, "split": "in_distribution", "objects": ["apple"],
    }  # fmt: skip


def test_a_written_manifest_is_read_as_it_was(tmp_path: Path) -> None:
    rows = evaluation_manifest(CARDS)
    path = write(tmp_path / "m.json", [json.loads(r.model_dump_json()) for r in rows])
    assert read_manifest(path, CARDS) == rows


@pytest.mark.skipif(not PUBLISHED.is_file(), reason="the published manifest is not here")
def test_the_published_manifest_is_read_as_it_is() -> None:
    rows = read_manifest(PUBLISHED, CARDS)
    assert len(rows) == 100
    assert Counter(r.task_type for r in rows) == dict.fromkeys(CARDS.splits.tasks, 20)
    assert {r.seed for r in rows} == published_seeds()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"scene_id": "moon"}, ("row 0", "scene_id", "moon", "modern_loft")),
        ({"surface_name": "roof"}, ("surface_name", "roof", "Counter")),
        ({"objects": ["apple", "anvil"]}, ("objects", "anvil")),
        ({"task_type": "fly"}, ("task_type", "fly")),
        ({"task_type": "bounce"}, ("00000", "apple", "bouncy", "'bouncing'", "tennis_ball")),
        ({"seed": -1}, ("seed", "-1")),
        ({"sample_id": "../x"}, ("sample_id",)),
        ({"extra": 1}, ("extra",)),
    ],
)
def test_a_wrong_row_is_named_with_its_field(
    tmp_path: Path, change: dict[str, object], words: tuple[str, ...]
) -> None:
    path = write(tmp_path / "m.json", [{**good(), **change}])
    with pytest.raises(UserError) as error:
        read_manifest(path, CARDS)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("text", ["", "{}", "[]", "[1]", "[" * 100000])
def test_what_is_no_manifest_is_one_error(tmp_path: Path, text: str) -> None:
    path = tmp_path / "m.json"
    path.write_text(text)
    with pytest.raises(UserError, match=r"m\.json"):
        read_manifest(path, CARDS)


def test_a_sample_id_twice_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"00000.*twice"):
        read_manifest(write(tmp_path / "m.json", [good(), good()]), CARDS)


def test_sample_ids_that_some_disks_take_for_one_are_refused(tmp_path: Path) -> None:
    rows = [{**good(), "sample_id": name} for name in ("clip-a", "Clip-A")]
    with pytest.raises(UserError, match=r"'clip-a' and 'Clip-A' differ in case"):
        read_manifest(write(tmp_path / "m.json", rows), CARDS)


def test_a_seed_of_the_published_evaluation_is_not_trained_on(tmp_path: Path) -> None:
    seed = min(published_seeds())
    assert len(published_seeds()) == 100
    for split, refused in (("train", True), ("in_distribution", False)):
        path = write(tmp_path / "m.json", [{**good(), "seed": seed, "split": split}])
        if refused:
            with pytest.raises(UserError, match=rf"00000.*{seed}.*belongs to the evaluation"):
                rows_of(path, CARDS)
        else:
            assert [r.seed for r in rows_of(path, CARDS)] == [seed]
    assert not published_seeds() & {r.seed for r in training_manifest(CARDS)}
