"""Sets of clips: a row fixes its clip on every way, and what cannot be made is said and skipped."""

import hashlib
import json
import resource
from functools import partial
from pathlib import Path

import numpy as np
import pytest
import trimesh
from blender_here import take_bpy_away

import wmeval
from wmeval.assets.cards import library
from wmeval.cli import main
from wmeval.datasets.bundle import read_bundle
from wmeval.datasets.set_runs import merge_set
from wmeval.datasets.validate import validate
from wmeval.envs.rigidbench.rows import Row
from wmeval.errors import UserError
from wmeval.generators import rigidbench
from wmeval.generators.manifest import evaluation_manifest, training_manifest
from wmeval.generators.rigidbench import ENVIRONMENT_OF, generate_rigidbench, rows_of

pytestmark = pytest.mark.gl
SIZE = {"width": 96, "height": 64}
ROOM = "butterfly_mural_room"


def digests(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in folder.rglob("*")
        if p.is_file()
    }


def published(path: Path, rows) -> Path:
    path.write_text(json.dumps([row.model_dump(mode="json") for row in rows]))
    return path


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    """Four tasks in one room, which a process builds once."""
    ours = [row for row in evaluation_manifest(library()) if row.scene_id == ROOM]
    return list({row.task_type: row for row in ours}.values())[:4]


@pytest.fixture(scope="module")
def bare(tmp_path_factory, rows):
    path = published(tmp_path_factory.mktemp("rows") / "rows.json", rows)
    return partial(generate_rigidbench, path, limit=4, workers=0, **SIZE)


@pytest.fixture(scope="module")
def whole(tmp_path_factory, bare) -> Path:
    out = tmp_path_factory.mktemp("whole") / "set"
    made = bare(out)
    assert (made.made, made.failed, made.complete) == ((0, 1, 2, 3), {}, True)
    return out


def test_the_way_does_not_change_a_byte(bare, whole, tmp_path):
    """Two processes, shards merged, a run that was interrupted, a set that grows."""
    expected = digests(whole)
    assert bare(tmp_path / "two", limit=2, workers=2).made == (0, 1)
    assert bare(tmp_path / "two", shard="1/2").made == (3,)
    (tmp_path / "two" / "rows" / "000001.json").unlink()
    (tmp_path / "two" / "clips" / "000001.mp4").write_bytes(b"half")
    again = bare(tmp_path / "two")
    assert (again.made, again.reused, again.complete) == ((1, 2), (0, 3), True)
    assert digests(tmp_path / "two") == expected

    bare(tmp_path / "part", shard="1/2")
    bare(tmp_path / "gathered", shard="0/2")
    merge_set(tmp_path / "gathered", [tmp_path / "part"])
    assert digests(tmp_path / "gathered") == expected


def test_clips_are_what_their_rows_say(whole, rows):
    assert validate(whole) == []
    clips = wmeval.open(whole)
    for clip, row in zip(clips, rows, strict=True):
        assert clip.facts.model_dump(include=set(Row.model_fields)) == row.model_dump()
        assert (len(clip), clip.size, clip.fps) == (49, (96, 64), 24)
        assert len(clip.rollout.log) == 48 * 30 + 1  # every substep
        assert clip.facts.physics == "bullet"
        assert clip.facts.visible_share >= 0.5
        assert clip.rollout.metadata["env_id"] == ENVIRONMENT_OF[row.task_type]
        assert clip.rollout.metadata["sample"]["seed"] == row.seed
        assert clip.rgb.shape == (49, 64, 96, 3)
        assert not clip.lossless_rgb
        seen = np.mean([clip.masks(k).any(axis=(1, 2)) for k in range(49)], axis=0)
        assert [a.seen_share for a in clip.actors] == pytest.approx(seen.tolist())
        first = clip.masks(0)
        assert first.any(axis=(1, 2)).all(), "an actor is not in the first picture"
        assert np.isfinite(clip.depth[0][first.any(axis=0)]).all()
        # What falls is heard: the task's contacts are there, by substep.
        assert len(np.unique(clip.contacts.substep)) > 1


def test_another_mesh_is_another_set(rows, tmp_path):
    folder = tmp_path / "mine" / "objects"
    folder.mkdir(parents=True)
    (folder / "brick.yaml").write_text(
        "id: brick\nname: Brick\nasset: {source: file, path: brick.stl}\n"
        "physics: {mass: 1, friction: 0.5, restitution: 0.2}\ntags: [all]\n"
    )
    trimesh.creation.box((0.1, 0.05, 0.03)).export(folder / "brick.stl")
    row = next(r for r in rows if r.task_type == "free_fall")
    path = published(tmp_path / "rows.json", [row.model_copy(update={"objects": ("brick",)})])
    options = {"assets": tmp_path / "mine", "workers": 0, **SIZE}
    assert generate_rigidbench(path, tmp_path / "set", **options).complete
    said = wmeval.open(tmp_path / "set")[0].rollout.metadata["cards_sha256"]
    assert said == rigidbench.cards_digest(library(tmp_path / "mine"))
    trimesh.creation.box((0.1, 0.05, 0.08)).export(folder / "brick.stl")
    with pytest.raises(UserError, match="cards_sha256"):
        generate_rigidbench(path, tmp_path / "set", **options)
    assert generate_rigidbench(path, tmp_path / "set", overwrite=True, **options).complete
    again = wmeval.open(tmp_path / "set")[0].rollout
    assert again.metadata["cards_sha256"] == rigidbench.cards_digest(library(tmp_path / "mine"))
    assert again.metadata["sample"]["actors"][0]["size_m"] == pytest.approx([0.1, 0.05, 0.08])


def test_bundles_are_made_resumed_and_validated(bare, rows, tmp_path):
    make = partial(bare, tmp_path / "set", format="bundle", limit=2)
    assert make().complete
    expected = digests(tmp_path / "set")
    bundle = tmp_path / "set" / "bundles" / rows[1].sample_id
    clip = read_bundle(bundle)
    assert clip.facts.sample_id == rows[1].sample_id
    assert validate(tmp_path / "set") == []
    (bundle / "prompt.txt").write_text("other")
    assert any("prompt.txt" in problem for problem in validate(tmp_path / "set"))
    assert make().made == (1,)
    assert digests(tmp_path / "set") == expected
    with pytest.raises(UserError, match="give a folder, or format store"):
        bare("memory://bundles", format="bundle")


def test_any_url_takes_a_set(bare):
    assert bare("memory://rigidbench/set", limit=1).complete
    assert validate("memory://rigidbench/set") == []


def test_a_failing_clip_is_retried_recorded_skipped_and_made_later(
    bare, rows, tmp_path, monkeypatch, whole
):
    genuine, tried = rigidbench.record, []

    def failing(env, **options):
        sample = options["options"]["row"]["sample_id"]
        tried.append(sample)
        if sample == rows[1].sample_id or (
            sample == rows[2].sample_id and tried.count(sample) == 1
        ):
            raise RuntimeError("the engine broke")
        return genuine(env, **options)

    monkeypatch.setattr(rigidbench, "record", failing)
    calls = []
    made = bare(tmp_path / "set", progress=lambda done, asked, _: calls.append((done, asked)))
    assert made.failed == {1: "RuntimeError: the engine broke"}
    assert made.made == (0, 2, 3)
    assert [tried.count(row.sample_id) for row in rows] == [1, 2, 2, 1]
    assert calls == [(i, 4) for i in range(5)]
    record = json.loads((tmp_path / "set" / "failed" / "000001.json").read_text())
    assert record["error"] == "RuntimeError: the engine broke"
    assert not (tmp_path / "set" / "manifest.json").exists()
    assert validate(tmp_path / "set") == []
    monkeypatch.undo()
    assert bare(tmp_path / "set").made == (1,)
    assert digests(tmp_path / "set") == digests(whole)


@pytest.mark.parametrize("workers", [0, 1])
def test_a_full_disk_ends_the_run_with_one_error(bare, tmp_path, workers):
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16384, before[1]))
    try:
        with pytest.raises(UserError, match="disk full"):
            bare(tmp_path / "set", workers=workers, limit=2)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not list((tmp_path / "set").glob("rows/*"))
    assert not list((tmp_path / "set").glob("failed/*"))
    assert validate(tmp_path / "set") == []


def test_training_refuses_the_evaluations_seeds(tmp_path):
    cards = library()
    ours = evaluation_manifest(cards)[0]
    stolen = ours.model_copy(update={"split": "train"})
    with pytest.raises(UserError, match=f"seed {ours.seed}, which belongs to the evaluation"):
        generate_rigidbench(published(tmp_path / "a.json", [stolen]), tmp_path / "set")
    trained = training_manifest(cards)[0]
    held = published(tmp_path / "b.json", [trained.model_copy(update={"split": "ood-both"})])
    again = published(tmp_path / "c.json", [trained])
    with pytest.raises(UserError, match=f"seed {trained.seed}, which belongs to the evaluation"):
        generate_rigidbench(again, tmp_path / "set", hold_back=[held])
    assert not (tmp_path / "set").exists()
    # Our own manifest is drawn around what is held back.
    drawn = rows_of("train", cards, hold_back=[held])
    assert len(drawn) == 5000
    assert trained.seed not in {row.seed for row in drawn}
    # The frozen suite is held back under every seed of the training.
    frozen = {row.seed for row in evaluation_manifest(cards, 0)}
    assert not frozen & {row.seed for row in rows_of("train", cards, seed=5)}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"quality": "best"}, "unknown quality 'best': choose from draft, preview, paper"),
        ({"renderer": "crayon"}, "no renderer 'crayon': choose from raster, cycles"),
        ({"physics": "magic"}, "unknown physics 'magic': choose from bullet, bullet-faithful"),
        ({"format": "tar"}, "unknown format 'tar': choose from store, bundle"),
        ({"materialize": ["sound"]}, "cannot materialize 'sound': choose from flow, normals"),
        ({"tasks": ["fly"]}, "unknown task 'fly': choose from ball_chain"),
        ({"manifest": "nowhere.json"}, "manifest nowhere.json"),
        ({"assets": "nowhere"}, "asset folder nowhere does not exist"),
        ({"hold_back": ["nowhere.json"]}, "manifest nowhere.json"),
        ({"shard": "2/2"}, "shard 2/2"),
        ({"limit": 0}, "limit = 0"),
        ({"shard": "0/2", "overwrite": True}, "whole set"),
        ({"out": "nowhere://set"}, "nowhere"),
    ],
)
def test_bad_requests_are_refused_before_anything_is_written(tmp_path, arguments, message):
    wanted = {"manifest": "eval", "out": tmp_path / "set", "limit": 1, "workers": 0, **arguments}
    with pytest.raises(UserError, match=message):
        generate_rigidbench(**wanted)
    assert not (tmp_path / "set").exists()


def test_a_wrong_card_is_named(bare, tmp_path):
    folder = tmp_path / "assets" / "objects"
    folder.mkdir(parents=True)
    (folder / "apple.yaml").write_text("id: apple\nphysics: {mass: -1}\n")
    with pytest.raises(UserError, match=r"apple.yaml.*"):
        bare(tmp_path / "set", assets=tmp_path / "assets")
    assert not (tmp_path / "set").exists()


def test_what_needs_bpy_says_so_at_once(bare, tmp_path, monkeypatch):
    take_bpy_away(monkeypatch, tmp_path)
    for arguments in ({"renderer": "cycles"}, {"physics": "blender"}):
        with pytest.raises(UserError, match="bpy is not installed: wmeval install blender"):
            bare(tmp_path / "set", **arguments)
        assert not (tmp_path / "set").exists()


def test_other_settings_are_refused_unless_overwritten(bare, tmp_path):
    bare(tmp_path / "set", limit=1)
    with pytest.raises(UserError, match="physics: 'bullet' there, 'bullet-faithful' asked"):
        bare(tmp_path / "set", limit=1, physics="bullet-faithful")
    with pytest.raises(UserError, match=r"materialize: None there, \['flow', 'boxes'\] asked"):
        bare(tmp_path / "set", limit=1, materialize=["boxes", "flow"])
    made = bare(tmp_path / "set", limit=1, tasks=["bounce"], overwrite=True)
    assert made.complete
    assert wmeval.open(tmp_path / "set").facts(0).task_type == "bounce"


def test_the_command_makes_a_set(tmp_path, capsys):
    argv = ["generate", "rigidbench", "--manifest", "eval", "--limit", "2", "--workers", "2",
            "--width", "96", "--height", "64", "--materialize", "boxes,flow",
            "--out", str(tmp_path / "set")]  # fmt: skip
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 0
    assert "2 made" in (said := capsys.readouterr().out)
    assert "clips/hour" in said
    assert validate(tmp_path / "set") == []
    made = wmeval.open(tmp_path / "set")
    assert made.job["materialize"] == ["flow", "boxes"]
    assert made[1].stored("flow") is not None
    assert set(made[1].rollout.labels) == {"boxes"}


def test_the_first_rows_of_each_task(rows):
    cards = library()
    few = rows_of("train", cards, each=2)
    assert sorted(row.task_type for row in few) == sorted(2 * list(ENVIRONMENT_OF))
    every = rows_of("train", cards)
    assert all(row in every for row in few)
    assert (
        rows_of("train", cards, each=3, tasks=("bounce",))
        == tuple(row for row in every if row.task_type == "bounce")[:3]
    )
    with pytest.raises(UserError, match="each = 0"):
        rows_of("train", cards, each=0)
