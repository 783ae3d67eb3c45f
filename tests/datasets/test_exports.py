"""Exports, opened by the formats' own readers where they are installed, else by plain ones."""

import csv
import dataclasses
import io
import json
import shutil
import tarfile

import numpy as np
import pytest
from clip_maker import ACTORS, FRAMES, make_clip
from object_store import object_store

from wmeval.cli import main
from wmeval.datasets import exports, set_runs, sets
from wmeval.datasets.bundle import read_bundle
from wmeval.datasets.clips import read_clips, write_clip
from wmeval.datasets.exports import EXPORTS, export, samples
from wmeval.datasets.exports.minari import dataset_id
from wmeval.datasets.location import locate
from wmeval.datasets.rollout import write_hdf5
from wmeval.datasets.sets import CLIPS, ROLLOUTS
from wmeval.datasets.validate import validate
from wmeval.datasets.video import read_mp4, write_mp4
from wmeval.errors import UserError

pytestmark = pytest.mark.gl
SPLITS = ("train", "train", "ood-scene")


@pytest.fixture(scope="module")
def clips(tmp_path_factory):
    url = tmp_path_factory.mktemp("sets") / "clips"
    set_runs.begin(locate(url), {"clips": 3}, kind=CLIPS)
    for i, split in enumerate(SPLITS):
        write_clip(url, i, make_clip(i, split=split, task=("topple", "roll")[i % 2]))
    set_runs.complete(locate(url), CLIPS)
    return read_clips(url)


@pytest.fixture(scope="module")
def rollouts(tmp_path_factory):
    """Two rollouts as `wmeval generate rollouts` leaves them."""
    url = tmp_path_factory.mktemp("sets") / "rollouts"
    place = locate(url)
    set_runs.begin(place, {"episodes": 2}, kind=ROLLOUTS)
    for i in range(2):
        rollout, path = make_clip(i), f"episodes/{i:06d}.h5"
        write_hdf5(rollout, url / path, layers=("depth",))
        write_mp4(url / f"episodes/{i:06d}.mp4", rollout.frames.layers["rgb"], 24)
        objects = {
            key: sets.object_entry((url / key).read_bytes())
            for key in (path, f"episodes/{i:06d}.mp4")
        }
        row = {
            "format": ROLLOUTS.format,
            "episode": i,
            "path": path,
            "video": f"episodes/{i:06d}.mp4",
            "objects": objects,
        }
        place.put(sets.row_key(i), sets.sealed(row))
    set_runs.complete(place, ROLLOUTS)
    return sets.read_set(url)


def npz(content):
    with np.load(io.BytesIO(content), allow_pickle=False) as archive:
        return dict(archive)


# --- webdataset ---------------------------------------------------------------------------------


def check_webdataset_sample(files, clip, film):
    assert files["mp4"] == film
    facts = json.loads(files["json"])
    assert facts["prompt"] == clip.prompt
    assert facts["fps"] == 24.0
    assert [a["name"] for a in facts["actors"]] == list(ACTORS)
    depth, masks, state = (npz(files[k]) for k in ("depth.npz", "masks.npz", "state.npz"))
    assert (depth["depth"] == clip.depth[:]).all()
    assert (masks["masks"][3] == clip.masks(3)).all()
    assert (state["state.position"] == clip.rollout.log.state.position).all()
    assert (state["contact.normal_impulse"] == clip.contacts.normal_impulse).all()
    assert files["first.png"].startswith(b"\x89PNG")


def test_webdataset_shards_read_as_plain_tar(clips, tmp_path):
    done = export("webdataset", clips.url, tmp_path / "out")
    assert done.samples == 3
    assert validate(tmp_path / "out") == []
    names = sorted(p.name for p in (tmp_path / "out").glob("*.tar"))
    assert names == ["ood-scene-000000.tar", "train-000000.tar"]
    with tarfile.open(tmp_path / "out" / "train-000000.tar") as tar:
        members = {m.name: tar.extractfile(m).read() for m in tar}
    keys = [name.split(".", 1)[0] for name in members]
    assert list(dict.fromkeys(keys)) == ["00000", "00001"]
    for i in range(2):
        mine = {n.split(".", 1)[1]: c for n, c in members.items() if n.startswith(f"0000{i}.")}
        check_webdataset_sample(mine, clips[i], locate(clips.video(i)).open().read())
    export("webdataset", clips.url, tmp_path / "again")
    for name in names:
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_webdataset_opens_with_its_reader(clips, tmp_path):
    wds = pytest.importorskip("webdataset", reason="webdataset is not installed")
    export("webdataset", clips.url, tmp_path / "out", split="train")
    urls = str(tmp_path / "out" / "train-000000.tar")
    samples = list(wds.WebDataset(urls, shardshuffle=False))
    assert [s["__key__"] for s in samples] == ["00000", "00001"]
    check_webdataset_sample(samples[1], clips[1], locate(clips.video(1)).open().read())
    decoded = list(wds.WebDataset(urls, shardshuffle=False).decode("rgb8"))[1]
    assert (decoded["first.png"] == clips[1].rgb[0]).all()
    assert decoded["json"]["prompt"] == clips[1].prompt
    assert (decoded["depth.npz"]["depth"] == clips[1].depth[:]).all()


# --- diffsynth ----------------------------------------------------------------------------------


def test_diffsynth_table_leads_to_videos(clips, tmp_path):
    """As its trainer does: the columns ``video`` below the base folder and ``prompt``."""
    assert export("diffsynth", clips.url, tmp_path / "out", split="train").samples == 2
    with (tmp_path / "out" / "metadata.csv").open(newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [r["video"] for r in rows] == ["videos/00000.mp4", "videos/00001.mp4"]
    for i, row in enumerate(rows):
        assert row["prompt"] == clips[i].prompt
        frames, _ = read_mp4(tmp_path / "out" / row["video"])
        assert (frames == clips[i].film[:]).all()
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    table = pandas.read_csv(tmp_path / "out" / "metadata.csv", dtype={"sample_id": str})
    assert table["sample_id"].tolist() == ["00000", "00001"]


# --- minari -------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["clips", "rollouts"])
def test_minari_holds_every_step(kind, request, tmp_path):
    import h5py

    source = request.getfixturevalue(kind)
    export("minari", source.url, tmp_path / "out")
    data = tmp_path / "out" / "wmeval" / "BeamDomino-v0" / "data"
    metadata = json.loads((data / "metadata.json").read_text())
    assert metadata["total_episodes"] == len(source)
    with h5py.File(data / "main_data.hdf5") as file:
        for i in range(len(source)):
            held = source[i].rollout if kind == "clips" else source[i]
            group = file[f"episode_{i}"]
            assert (group["observations"][...] == held.observations).all()
            assert np.allclose(group["actions"][...], held.actions)
            assert (group["truncations"][...] == held.truncated).all()
            assert group["infos/time"][1] == pytest.approx(1 / 60)
            assert len(group["infos/time"]) == len(held) + 1
            assert group.attrs["total_steps"] == len(held)


def test_minari_opens_with_its_reader(rollouts, tmp_path, monkeypatch):
    minari = pytest.importorskip("minari", reason="minari is not installed")
    export("minari", rollouts.url, tmp_path / "out")
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path / "out"))
    dataset = minari.load_dataset("wmeval/BeamDomino-v0")
    assert dataset.total_episodes == 2
    assert dataset.total_steps == sum(len(r) for r in rollouts)
    episode = dataset[1]
    held = rollouts[1]
    assert (episode.observations == held.observations).all()
    assert np.allclose(episode.actions, held.actions)
    assert dataset.observation_space.shape == held.observations.shape[1:]
    assert dataset.action_space.contains(episode.actions[0])
    assert dataset.spec.env_spec.id == "WMEval/BeamDomino-v0"
    assert dataset.spec.env_spec.kwargs["action_mode"] == "flat"
    assert [e.id for e in dataset.iterate_episodes()] == [0, 1]


@pytest.mark.parametrize(
    ("env_id", "expected"),
    [
        ("RigidBench/FreeFall-v0", "rigidbench/FreeFall-v0"),
        ("Own-v3", "wmeval/Own-v3"),
        ("strange name", "wmeval/strange_name-v0"),
    ],
)
def test_minari_names_follow_the_environments(env_id, expected):
    assert dataset_id(env_id) == expected


# --- lerobot ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["clips", "rollouts"])
def test_lerobot_tables_and_videos_tell_of_the_same_frames(kind, request, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    source = request.getfixturevalue(kind)
    export("lerobot", source.url, tmp_path / "out")
    root = tmp_path / "out"
    info = json.loads((root / "meta" / "info.json").read_text())
    stats = json.loads((root / "meta" / "stats.json").read_text())
    assert info["codebase_version"] == "v3.0"
    assert info["total_episodes"] == len(source)
    meta = pq.read_table(root / "meta" / "episodes" / "chunk-000" / "file-000.parquet").to_pylist()
    tasks = pq.read_table(root / "meta" / "tasks.parquet").to_pylist()
    whole = []
    for number, episode in enumerate(meta):
        held = source[number].rollout if kind == "clips" else source[number]
        path = info["data_path"].format(
            chunk_index=episode["data/chunk_index"], file_index=episode["data/file_index"]
        )
        rows = pq.read_table(root / path).to_pylist()
        rows = [r for r in rows if r["episode_index"] == number]
        assert len(rows) == episode["length"]
        assert rows[0]["index"] == episode["dataset_from_index"]
        assert rows[-1]["index"] == episode["dataset_to_index"] - 1
        key = "observation.images.main"
        film = info["video_path"].format(
            video_key=key,
            chunk_index=episode[f"videos/{key}/chunk_index"],
            file_index=episode[f"videos/{key}/file_index"],
        )
        frames, times = read_mp4(root / film, fps=info["fps"])
        assert list(frames.shape[1:]) == info["features"][key]["shape"]
        for row in rows:
            whole.append(row["observation.state"])
            j = row["frame_index"]
            assert row["timestamp"] == pytest.approx(float(times[j]))
            # 24 frames and 60 actions a second: frame j shows state 10 j, action 10 j // 4.
            step = 10 * j // 4
            assert row["observation.state"] == held.observations[step].tolist()
            assert np.allclose(row["action"], held.actions[step])
            assert tasks[row["task_index"]]["task"] == episode["tasks"][0]
        assert frames.shape[0] >= len(rows)
        assert set(info["features"]) == {*rows[0], key}
    whole = np.array(whole, np.float64)
    assert info["total_frames"] == len(whole)
    found = stats["observation.state"]
    assert np.allclose(found["mean"], whole.mean(axis=0))
    assert np.allclose(found["std"], whole.std(axis=0))
    assert np.allclose(found["max"], whole.max(axis=0))
    assert np.shape(stats["observation.images.main"]["mean"]) == (3, 1, 1)
    assert 0 < stats["observation.images.main"]["mean"][0][0][0] < 1


def test_lerobot_tables_load_as_its_reader_loads_them(rollouts, tmp_path):
    """That reader, which needs torch, casts the parquet files to the features of info.json."""
    pytest.importorskip("datasets.load", reason="datasets is not installed")
    from datasets import Dataset, Features, Sequence, Value

    export("lerobot", rollouts.url, tmp_path / "out")
    root = tmp_path / "out"
    info = json.loads((root / "meta" / "info.json").read_text())
    features = {}
    for name, feature in info["features"].items():
        value = Value(feature["dtype"]) if feature["dtype"] != "video" else None
        (length, *_) = feature["shape"]
        if value is not None:
            features[name] = value if length == 1 else Sequence(value, length=length)
    files = [str(path) for path in sorted((root / "data").glob("*/*.parquet"))]
    cache = str(tmp_path / "cache")
    frames = Dataset.from_parquet(files, features=Features(features), cache_dir=cache)
    assert len(frames) == info["total_frames"]
    assert np.allclose(frames[3]["action"], rollouts[0].actions[10 * 3 // 4])
    files = [str(path) for path in sorted((root / "meta" / "episodes").glob("*/*.parquet"))]
    episodes = Dataset.from_parquet(files, cache_dir=cache)
    assert sum(episodes["length"]) == len(frames)


def test_lerobot_tasks_have_the_text_as_index(clips, tmp_path):
    pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    pandas = pytest.importorskip("pandas", reason="pandas is not installed")
    export("lerobot", clips.url, tmp_path / "out")
    tasks = pandas.read_parquet(tmp_path / "out" / "meta" / "tasks.parquet")
    assert tasks.loc[clips[0].prompt].task_index == 0


# --- hf -----------------------------------------------------------------------------------------


def test_hf_folder_has_a_row_for_every_video(clips, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet", reason="pyarrow is not installed")
    export("hf", clips.url, tmp_path / "out")
    rows = pq.read_table(tmp_path / "out" / "train" / "metadata.parquet").to_pylist()
    assert [r["file_name"] for r in rows] == ["00000.mp4", "00001.mp4"]
    assert rows[1]["prompt"] == clips[1].prompt
    assert rows[0]["actor_names"] == list(ACTORS)
    assert rows[0]["frames"] == FRAMES
    for split in ("train", "ood_scene"):
        for row in pq.read_table(tmp_path / "out" / split / "metadata.parquet").to_pylist():
            assert (tmp_path / "out" / split / row["file_name"]).is_file()


UNDECODED = {"video": {"decode": False, "_type": "Video"}}


def test_hf_folder_opens_with_its_reader(clips, tmp_path):
    # Not "datasets": the folder of these tests is found by that name too.
    load = pytest.importorskip("datasets.load", reason="datasets is not installed")
    export("hf", clips.url, tmp_path / "out")
    loaded = load.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert {k: len(v) for k, v in loaded.items()} == {"train": 2, "ood_scene": 1}
    assert "video" in loaded["train"].features
    plain = loaded["train"].remove_columns("video")
    assert plain["sample_id"][:] == ["00000", "00001"]
    # Its decoder needs torch; undecoded, it names the file.
    videos = loaded["train"].cast_column("video", load.Features.from_dict(UNDECODED)["video"])
    frames, _ = read_mp4(videos[1]["video"]["path"])
    assert (frames == clips[1].film[:]).all()


# --- bundles and the command --------------------------------------------------------------------


def test_bundles_go_on_where_they_stopped(clips, tmp_path, capsys):
    seen = []
    export("bundle", clips.url, tmp_path / "out", progress=lambda a, b: seen.append((a, b)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
    clip = read_bundle(tmp_path / "out" / "00002")
    assert clip.rollout.sha256() == clips[2].rollout.sha256()
    kept = (tmp_path / "out" / "00000" / "SHA256SUMS").stat().st_mtime_ns
    (tmp_path / "out" / "00001" / "SHA256SUMS").rename(tmp_path / "gone")
    with pytest.raises(UserError, match="SHA256SUMS: there is no such file"):
        export("bundle", clips.url, tmp_path / "out")
    (tmp_path / "gone").rename(tmp_path / "out" / "00001" / "SHA256SUMS")
    export("bundle", clips.url, tmp_path / "out")
    assert (tmp_path / "out" / "00000" / "SHA256SUMS").stat().st_mtime_ns == kept
    with pytest.raises(SystemExit) as stop:
        main(["export", "bundle", clips.url, str(tmp_path / "out"), "--split", "train"])
    assert stop.value.code == 0
    assert "2 samples as bundle" in capsys.readouterr().out


def test_what_cannot_be_exported_says_why(clips, rollouts, tmp_path, capsys, monkeypatch):
    with pytest.raises(UserError, match="no export 'zip': choose from bundle, webdataset"):
        export("zip", clips.url, tmp_path / "out")
    with pytest.raises(UserError, match=r"webdataset takes clips \(for rollouts: minari, lerobot"):
        export("webdataset", rollouts.url, tmp_path / "out")
    with pytest.raises(UserError, match="no clip with split 'test': there are ood-scene, train"):
        export("webdataset", clips.url, tmp_path / "out", split="test")
    with pytest.raises(UserError, match="no split or task to choose by"):
        export("minari", rollouts.url, tmp_path / "out", split="train")
    monkeypatch.setattr(
        "wmeval.datasets.exports.tables.import_module",
        lambda name: (_ for _ in ()).throw(ImportError(name)),
    )
    with pytest.raises(UserError, match=r"hf needs pyarrow: install it with `pip install"):
        export("hf", clips.url, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    with pytest.raises(SystemExit) as stop:
        main(["export", "webdataset", str(tmp_path), str(tmp_path / "out")])
    assert stop.value.code == 2
    assert "there is no set of clips here" in capsys.readouterr().err


def test_an_export_is_whole_or_absent(clips, tmp_path, monkeypatch):
    out = tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr(exports, "write_checksums", lambda _: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            export("diffsynth", clips.url, out)
    assert list(tmp_path.iterdir()) == []
    export("diffsynth", clips.url, out)
    with pytest.raises(UserError, match="pass overwrite"):
        export("diffsynth", clips.url, out)
    export("diffsynth", clips.url, out, split="train", overwrite=True)
    assert len(list((out / "videos").iterdir())) == 2
    with pytest.raises(UserError, match="files that wmeval did not write"):
        export("webdataset", clips.url, out, overwrite=True)
    (out / "thesis.txt").write_text("mine")
    with pytest.raises(UserError, match=r"thesis\.txt"):
        export("diffsynth", clips.url, out, overwrite=True)


def test_from_and_to_any_file_system(clips, tmp_path):
    """A set in object storage, an export there, and both in memory."""
    with object_store("bucket") as system:
        system.put(clips.url, "bucket/set", recursive=True)
        export("webdataset", "s3://bucket/set", tmp_path / "near", split="train")
        export("webdataset", clips.url, "s3://bucket/far", split="train")
        export("webdataset", clips.url, "memory://far/shards", split="train")
        name = "train-000000.tar"
        content = (tmp_path / "near" / name).read_bytes()
        assert system.cat_file(f"bucket/far/{name}") == content
        assert locate("memory://far/shards").get(name, limit=None) == content
        with pytest.raises(UserError, match=r"s3://bucket/far exists; pass overwrite"):
            export("webdataset", clips.url, "s3://bucket/far")
        with pytest.raises(UserError, match="files that wmeval did not write"):
            export("diffsynth", clips.url, "s3://bucket/set", overwrite=True)
        export("webdataset", clips.url, "s3://bucket/far", split="ood-scene", overwrite=True)
        assert "train-000000.tar" not in locate("s3://bucket/far").objects()
        with pytest.raises(UserError, match="nobucket"):
            export("diffsynth", clips.url, "s3://nobucket/far")
        with pytest.raises(UserError, match="bundles are folders of files: give a folder"):
            export("bundle", clips.url, "s3://bucket/bundles")
    assert list(tmp_path.iterdir()) == [tmp_path / "near"]


def test_a_store_that_cannot_be_reached_is_one_clear_error(tmp_path, monkeypatch, capsys):
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "k")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "s")
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(SystemExit) as stop:
        main(["export", "hf", "s3://bucket/set", str(tmp_path / "out")])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert error.startswith("error: s3://bucket/set: set.json cannot be read: ")
    assert error.count("\n") == 1


@pytest.mark.parametrize("name", [name for name in EXPORTS if name != "minari"])
def test_a_damaged_clip_is_named_and_nothing_is_written(name, clips, tmp_path):
    """A byte of the last video, or a chunk of its depth where that is what is exported."""
    shutil.copytree(clips.url, tmp_path / "set")
    if name == "bundle":
        victim = next((tmp_path / "set/clips/000002.zarr/layer/depth").glob("c*"))
    else:
        victim = tmp_path / "set/clips/000002.mp4"
    content = bytearray(victim.read_bytes())
    content[len(content) // 2] ^= 1
    victim.write_bytes(content)
    with pytest.raises(UserError, match=r"000002\.(mp4|zarr).*damaged"):
        export(name, tmp_path / "set", tmp_path / "out")
    left = list((tmp_path / "out").iterdir()) if name == "bundle" else [tmp_path / "set"]
    assert [p.name for p in left if "." not in p.name[:1]] == (
        ["00000", "00001"] if name == "bundle" else ["set"]
    )
    assert name == "bundle" or not (tmp_path / "out").exists()


def test_clips_of_one_name_are_told_before_anything_is_copied(clips, tmp_path):
    twins = dataclasses.replace(clips, rows=(*clips.rows, clips.rows[0]))
    for by_split, mend in ((False, "choose one --split"), (True, "all are of split 'train'")):
        with pytest.raises(UserError, match=f"two clips are named '00000': {mend}"):
            samples.refuse_twins(twins, by_split=by_split)
    samples.refuse_twins(clips, by_split=False)


def test_an_export_does_not_go_into_its_set(clips):
    with pytest.raises(UserError, match="lies inside the set"):
        export("diffsynth", clips.url, f"{clips.url}/out")


def test_every_export_is_documented():
    for row in EXPORTS.values():
        assert row.doc
        assert row.entry.startswith("wmeval.datasets.exports.")
