"""Sets of clips: whole or absent, shared meshes, any file system, any reader."""

import dataclasses
import io
import itertools
import multiprocessing

import numpy as np
import pytest
from clip_maker import make_clip
from object_store import object_store
from rollout_maker import make_rollout

import wmeval
from wmeval.datasets import set_runs, sets
from wmeval.datasets.clip import ClipActor, ClipFacts, ClipRecord, with_facts
from wmeval.datasets.clips import write_clip
from wmeval.datasets.location import locate
from wmeval.datasets.sets import CLIPS
from wmeval.datasets.validate import validate
from wmeval.datasets.video import read_mp4
from wmeval.errors import UserError

SPLITS = ("train", "train", "ood-scene", "ood-object")


def synthetic(seed):
    """A clip of random numbers with meshes: no physics is claimed of it."""
    rollout = make_rollout(
        seed=seed, frames=5, layers=("rgb", "depth", "ids"), size=(24, 16), modal=("slosh",)
    )
    facts = ClipFacts(
        sample_id=f"{seed:05d}",
        task_type="bounce" if seed % 2 else "free_fall",
        scene_id="hall",
        surface_name="floor",
        seed=seed,
        split=SPLITS[seed % 4],
        actors=(
            ClipActor(name="body 0", role="active", object="apple", instance=1),
            ClipActor(name="body 2", role="passive", instance=3),
        ),
        prompt=f"Thing {seed} falls.",
    )
    return with_facts(rollout, facts)


def make_set(url, clips, *, layers=None, only=None, count=None):
    place = locate(url)
    count = len(clips) if count is None else count
    set_runs.begin(place, {"clips": count, "seed": 1}, kind=CLIPS)
    for number, clip in enumerate(clips):
        if only is None or number in only:
            write_clip(url, number, clip, layers=layers)
    return place


@pytest.fixture(scope="module")
def clips():
    return [synthetic(i) for i in range(4)]


@pytest.fixture(scope="module")
def url(tmp_path_factory, clips):
    folder = str(tmp_path_factory.mktemp("sets") / "set")
    set_runs.complete(make_set(folder, clips), CLIPS)
    return folder


def same(a, b):
    """Two clips hold the same, bit for bit."""
    assert a.facts == b.facts
    assert a.rollout.sha256() == b.rollout.sha256()
    left, right = a.rollout.columns(), b.rollout.columns()
    assert left.keys() == right.keys()
    for path, column in left.items():
        assert np.array_equal(column, right[path], equal_nan=column.dtype.kind == "f"), path
    for name in ("rgb", "depth", "ids"):
        assert np.asarray(a.layer(name)).tobytes() == np.asarray(b.layer(name)).tobytes()
    assert a.rollout.scene == b.rollout.scene
    assert dict(a.rollout.meshes).keys() == dict(b.rollout.meshes).keys()
    for key, mesh in a.rollout.meshes.items():
        assert b.rollout.meshes[key].content_hash() == mesh.content_hash() == key


def test_what_is_read_is_what_was_written(url, clips):
    found = wmeval.open(url)
    assert len(found) == 4
    for i, clip in enumerate(clips):
        same(found[i], ClipRecord(clip))
    assert found[-1].facts.seed == 3
    with pytest.raises(IndexError):
        found[4]
    assert validate(url) == []


def test_clips_share_their_meshes(url):
    place = locate(url)
    assert len([k for k in place.objects() if k.startswith("meshes/")]) == 1
    assert not any("/mesh" in k for k in place.objects())


def test_parts_of_a_set(url):
    found = wmeval.open(url)
    assert [c.facts.seed for c in found[1:3]] == [1, 2]
    assert len(found.select(split="train")) == 2
    assert [c.facts.seed for c in found.select(task="bounce", split="train")] == [1]
    assert len(found.select(object="apple", scene="hall")) == 4
    assert found.select(split="ood-object").facts(0).seed == 3
    with pytest.raises(UserError, match="no clip with split 'test': there are ood-object"):
        found.select(split="test")
    with pytest.raises(UserError, match="no clip with object 'pear': there are apple"):
        found.select(object="pear")


def test_how_long_each_actor_is_seen_follows_from_the_ids(tmp_path):
    rollout = make_rollout(frames=5, layers=("rgb", "ids", "glass_ids"), size=(24, 16))
    ids = np.zeros((5, 16, 24), np.uint16)
    ids[:4, 3, 7], ids[0, 0, 0] = 1, 3
    glass = np.zeros_like(ids)
    glass[2, 5, 5], glass[4, 5, 5] = 3, 3
    frames = dataclasses.replace(
        rollout.frames, layers={**rollout.frames.layers, "ids": ids, "glass_ids": glass}
    )
    clip = with_facts(dataclasses.replace(rollout, frames=frames), ClipRecord(synthetic(0)).facts)
    facts = ClipRecord(clip).facts
    assert [a.seen_share for a in facts.actors] == [0.8, 0.6]
    assert facts.seen_share == 0.8  # of what moves
    set_runs.complete(make_set(tmp_path / "set", [clip]), CLIPS)
    found = wmeval.open(tmp_path / "set")
    assert len(found.select(seen=0.8)) == 1
    with pytest.raises(UserError, match=r"moves in 0.9 of its frames: the most is 0.80"):
        found.select(seen=0.9)


def test_a_clip_without_its_row_does_not_exist(tmp_path, clips):
    place = make_set(tmp_path / "set", clips)
    row = tmp_path / "set" / "rows" / "000002.json"
    content = row.read_bytes()
    row.unlink()  # killed before the row was written
    (tmp_path / "set" / "clips" / "000002.zarr" / "manifest.json").unlink()
    assert [c.facts.seed for c in wmeval.open(tmp_path / "set")] == [0, 1, 3]
    with pytest.raises(UserError, match=r"1 of 4 clips are missing or damaged \(2\)"):
        set_runs.complete(place, CLIPS)
    write_clip(tmp_path / "set", 2, clips[2])
    assert row.read_bytes() == content
    set_runs.complete(place, CLIPS)
    assert validate(tmp_path / "set") == []


def test_damage_is_found_and_mended_by_writing_again(tmp_path, clips):
    place = make_set(tmp_path / "set", clips[:2])
    set_runs.complete(place, CLIPS)
    mesh = next((tmp_path / "set" / "meshes").iterdir())
    whole = mesh.read_bytes()
    mesh.write_bytes(whole[:-40])
    problems = validate(tmp_path / "set")
    assert any(f"{mesh.name}: damaged" in p for p in problems)
    assert validate(tmp_path / "set", workers=2) == problems
    assert not sets.is_whole(place, 0, CLIPS)
    with pytest.raises(UserError, match="damaged"):
        dict(wmeval.open(tmp_path / "set")[0].rollout.meshes)
    write_clip(tmp_path / "set", 0, clips[0])
    assert sets.is_whole(place, 0, CLIPS)
    assert sets.is_whole(place, 1, CLIPS)
    film = tmp_path / "set" / "clips" / "000001.mp4"
    film.write_bytes(film.read_bytes()[:-9])
    assert not sets.is_whole(place, 1, CLIPS)


def content(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def test_shards_merge_into_the_same_bytes(tmp_path, clips, url):
    for i in (0, 1):
        make_set(tmp_path / f"part{i}", clips, only=range(i, 4, 2))
    set_runs.merge_set(tmp_path / "part0", [tmp_path / "part1"])
    assert content(tmp_path / "part0") == content(locate(url).path)
    with pytest.raises(UserError, match="2 of 4 clips are missing"):
        set_runs.merge_set(tmp_path / "part1")
    with pytest.raises(UserError, match="there is no set here"):
        set_runs.merge_set(tmp_path / "none")


def test_colour_of_the_video_where_none_is_kept(tmp_path, clips):
    make_set(tmp_path / "set", clips[:1], layers=("depth", "ids"))
    found = wmeval.open(tmp_path / "set")
    clip = found[0]
    assert not clip.lossless_rgb
    expected, _ = read_mp4(found.video(0))
    assert clip.rgb.shape == expected.shape
    for i in (3, 0, 4, 4, 1, 2):
        assert (clip.rgb[i] == expected[i]).all()
    assert (clip.rgb[:] == expected).all()


@pytest.mark.parametrize("lossless", [True, False])
def test_a_set_in_memory(clips, lossless, request):
    url = f"memory://clips/{request.node.callspec.id}"
    layers = None if lossless else ("depth", "ids")
    set_runs.complete(make_set(url, clips[:2], layers=layers), CLIPS)
    assert validate(url) == []
    found = wmeval.open(url)
    if lossless:
        same(found[1], ClipRecord(clips[1]))
    else:
        assert found[1].rgb[2].shape == (16, 24, 3)


def test_a_set_in_object_storage(clips):
    with object_store("clips"):
        set_runs.complete(make_set("s3://clips/set", clips[:1]), CLIPS)
        assert validate("s3://clips/set") == []
        same(wmeval.open("s3://clips/set")[0], ClipRecord(clips[0]))


def test_workers_that_are_spawned_read_for_themselves(url):
    arrays = wmeval.open(url).arrays("depth", "position")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.apply(arrays.__getitem__, (2,))
    assert (found["depth"] == arrays[2]["depth"]).all()
    assert found["sample_id"] == "00002"
    with pytest.raises(UserError, match="no array 'colour'"):
        wmeval.open(url).arrays("colour")


def test_other_places_say_what_is_there(tmp_path, clips):
    with pytest.raises(UserError, match="there is no set of clips here"):
        wmeval.open(tmp_path)
    set_runs.begin(locate(tmp_path / "other"), {"episodes": 1}, kind=sets.ROLLOUTS)
    with pytest.raises(UserError, match="a set of rollouts, not of clips"):
        wmeval.open(tmp_path / "other")
    with pytest.raises(UserError, match="a rollout, but no clip"):
        write_clip(tmp_path / "set", 0, dataclasses.replace(clips[0], metadata={"dt": "1/240"}))
    make_set(tmp_path / "set", clips[:1])
    with pytest.raises(UserError, match="seed: 1 there, 2 asked"):
        set_runs.begin(locate(tmp_path / "set"), {"clips": 1, "seed": 2}, kind=CLIPS)
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match="files that wmeval did not write"):
        set_runs.begin(locate(tmp_path / "strange"), {"clips": 1}, kind=CLIPS)


@pytest.mark.gl
def test_labels_of_a_still_camera_take_far_less_than_npz(tmp_path):
    clip = make_clip(size=(640, 352), layers=("rgb", "depth", "ids"))
    make_set(tmp_path / "set", [clip])
    stream = io.BytesIO()
    layers = clip.frames.layers
    np.savez_compressed(stream, depth=layers["depth"], ids=layers["ids"])
    taken = 0
    for name, part in itertools.product(("depth", "ids"), ("layer", "plate")):
        folder = tmp_path / "set" / "clips" / "000000.zarr" / part / name
        taken += sum(p.stat().st_size for p in folder.rglob("*") if p.is_file())
    # Seven frames: the one plate weighs seven times what it does in 49.
    assert taken < len(stream.getvalue()) / 4
