"""Short words for large things, sets of bundles read like sets of clips, and bad arguments."""

import numpy as np
import pytest
from clip_maker import make_clip
from test_card import JOB, clip_of

import wmeval
from wmeval.cli import main
from wmeval.datasets import set_runs
from wmeval.datasets.bundle_sets import write_bundle_of
from wmeval.datasets.clip import ClipRecord
from wmeval.datasets.clips import write_clip
from wmeval.datasets.document import damaged
from wmeval.datasets.exports import export
from wmeval.datasets.location import locate
from wmeval.datasets.sets import BUNDLES, CLIPS, ROLLOUTS, RolloutSet
from wmeval.datasets.validate import validate
from wmeval.errors import UserError


@pytest.fixture(scope="module")
def rollouts():
    return [clip_of(i) for i in range(2)]


@pytest.fixture(scope="module")
def sets_of(tmp_path_factory, rollouts):
    """The same two clips as a store, as bundles, and as bundles with EXR streams."""
    made = {}
    for name, kind, job in (
        ("store", CLIPS, {}), ("bundles", BUNDLES, {}), ("exr", BUNDLES, {"exr": True})
    ):  # fmt: skip
        place = locate(tmp_path_factory.mktemp("sets") / name)
        set_runs.begin(place, {**JOB, **job, kind.samples: 2}, kind=kind)
        for number, rollout in enumerate(rollouts):
            if kind is CLIPS:
                write_clip(place.url, number, rollout)
            else:
                write_bundle_of(place.url, number, rollout, exr=bool(job))
        set_runs.complete(place, kind)
        made[name] = place.url
    return made


def test_what_is_large_is_shown_in_a_line(sets_of):
    clips = wmeval.open(sets_of["store"])
    assert repr(clips) == f"<ClipSet {sets_of['store']}: 2 clips of bounce, free_fall>"
    clip = ClipRecord(make_clip())
    rollout = clip.rollout
    assert repr(clip) == (
        "<ClipRecord 00000, topple in court: 7 frames of 96x64 px, actors floor_ball, slab, "
        "domino_00>"
    )
    assert "WMEval/BeamDomino-v0: 15 actions" in repr(rollout)
    shown = [
        clips, clips[0], clips.arrays("rgb"), clip, clip.states, clip.tracks(), rollout,
        rollout.frames, rollout.log, rollout.log.state, rollout.log.cameras, rollout.log.lights,
        rollout.log.contacts, RolloutSet("set", {"episodes": 3}, ({"path": "x" * 9999},)),
    ]  # fmt: skip
    for one in shown:
        assert 10 < len(repr(one)) < 400, type(one)


def test_bundles_are_opened_and_exported_like_clips(sets_of, tmp_path):
    store, bundles = wmeval.open(sets_of["store"]), wmeval.open(sets_of["bundles"])
    assert [clip.prompt for clip in bundles] == [clip.prompt for clip in store]
    for a, b in zip(store, bundles, strict=True):
        assert a.rollout.sha256() == b.rollout.sha256()
        np.testing.assert_array_equal(a.rgb[3], b.rgb[3])
        np.testing.assert_array_equal(a.depth[:], b.depth[:])
        np.testing.assert_array_equal(a.masks(2), b.masks(2))
    assert len(bundles.select(task="bounce")) == 1
    assert export("webdataset", bundles.url, tmp_path / "shards").samples == 2


def test_a_damaged_bundle_of_a_set_says_what_mends_it(tmp_path, rollouts):
    place = locate(tmp_path / "set")
    set_runs.begin(place, {**JOB, "bundles": 1}, kind=BUNDLES)
    write_bundle_of(place.url, 0, rollouts[0])
    state = tmp_path / "set" / "bundles" / "00000" / "state.h5"
    state.write_bytes(state.read_bytes()[:400])
    with pytest.raises(UserError, match=r"state\.h5: damaged: .* run its `wmeval generate` again"):
        wmeval.open(place.url)[0]


def test_exr_streams_are_asked_for_and_recorded(sets_of, tmp_path, capsys):
    bundle = locate(sets_of["exr"]).path / "bundles" / "00000"
    assert len(list((bundle / "depth").glob("Depth_*.exr"))) == 5
    assert len(list((bundle / "masks").glob("IndexOB_*.exr"))) == 5
    assert validate(sets_of["exr"]) == []
    readme = (locate(sets_of["exr"]).path / "README.md").read_text()
    assert "--format bundle --out clips --exr" in readme
    assert r"IndexOB\_0000.exr" in readme
    with pytest.raises(UserError, match="other settings"):
        set_runs.begin(locate(sets_of["exr"]), {**JOB, "bundles": 2}, kind=BUNDLES)
    store, out = sets_of["store"], tmp_path / "out"
    with pytest.raises(SystemExit) as stop:
        main(["export", "bundle", store, str(out), "--exr", "--task", "bounce"])
    assert stop.value.code == 0
    assert capsys.readouterr().out == f"{out}: 1 sample as bundle\n"
    assert len(list(out.rglob("*.exr"))) == 10
    with pytest.raises(UserError, match="a bundle with EXR streams; pass overwrite"):
        export("bundle", store, out)
    export("bundle", store, out, overwrite=True)
    assert not list(out.rglob("*.exr"))
    with pytest.raises(UserError, match="EXR streams are files of a bundle"):
        export("hf", store, tmp_path / "hf", exr=True)
    with pytest.raises(SystemExit) as stop:
        main(["generate", "rigidbench", "--exr", "--out", str(tmp_path / "set")])
    assert stop.value.code == 2
    assert "EXR streams are files of a bundle" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("where", "mend"),
    [
        ("s3://a/set/clips/000012.zarr", "run its `wmeval generate` again."),
        ("/a/set/clips/000012.mp4", "run its `wmeval generate` again."),
        (f"/a/set/meshes/{'0a' * 32}.npz", "run its `wmeval generate` again."),
        ("/a/set/bundles/free_fall_0001/state.h5", "run its `wmeval generate` again."),
        ("set/episodes/000000.h5", "run its `wmeval generate rollouts` again."),
        ("beam/rollout.h5", "run its `wmeval rollout` again with --overwrite."),
        ("/a/mine.zarr", "run the command that made it again."),
    ],
)
def test_damage_says_what_mends_it(where, mend):
    assert str(damaged(where, "cut")) == f"{where}: damaged: cut. Restore it from a copy, or {mend}"


@pytest.mark.parametrize("kind", [ROLLOUTS, CLIPS, BUNDLES])
def test_a_damaged_file_of_a_set_says_what_mends_the_set(tmp_path, kind):
    place = locate(tmp_path / "set")
    set_runs.begin(place, {**JOB, kind.samples: 2}, kind=kind)
    place.put("rows/000000.json", b"{")
    (problem,) = validate(place.url)
    assert problem.endswith(f"Restore it from a copy, or {kind.mend}.")


@pytest.mark.parametrize("seen", [2, -0.1, float("nan"), float("inf")])
def test_a_share_lies_between_none_and_all(sets_of, seen):
    with pytest.raises(UserError, match=r"a share of the frames lies in 0\.\.1"):
        wmeval.open(sets_of["store"]).select(seen=seen)


@pytest.mark.parametrize("points", [-1, 0])
def test_tracks_follow_at_least_a_point(points):
    with pytest.raises(UserError, match="follow at least 1"):
        ClipRecord(make_clip()).tracks(points)


@pytest.mark.gl
def test_amodal_masks_of_one_frame_are_asked_for_by_its_number():
    clip = ClipRecord(make_clip())
    one = clip.amodal_masks(3)
    assert one.shape == (3, 64, 96)
    np.testing.assert_array_equal(one, clip.amodal_masks([3])[0])


def test_one_is_one(tmp_path, rollouts, capsys):
    place = locate(tmp_path / "set")
    set_runs.begin(place, {**JOB, "bundles": 2}, kind=BUNDLES)
    write_bundle_of(place.url, 0, rollouts[0])
    with pytest.raises(SystemExit):
        main(["describe", place.url])
    assert capsys.readouterr().out == f"{place.url}: 1 bundle described\n"
