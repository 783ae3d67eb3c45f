import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rollout_maker import make_rollout

from wmeval.datasets.checksums import check_checksums, write_checksums
from wmeval.datasets.rollout import read, write_hdf5, write_zarr
from wmeval.datasets.validate import validate
from wmeval.datasets.video import write_mp4
from wmeval.errors import UserError


@pytest.fixture
def folder(tmp_path):
    """What a recorded rollout looks like on disk."""
    rollout = make_rollout(frames=5, layers=("rgb", "ids"), size=(32, 24))
    out = tmp_path / "out"
    out.mkdir()
    write_hdf5(rollout, out / "rollout.h5", layers=("ids",))
    write_mp4(out / "video.mp4", rollout.frames.layers["rgb"], 24)
    (out / "summary.json").write_text(json.dumps({"steps": 6}))
    (out / "config.yaml").write_text("plan: forward\n")
    return out


def test_a_good_folder_has_no_problems(folder):
    assert validate(folder) == []
    assert len(read(folder)) == 6
    write_checksums(folder)
    assert validate(folder) == []
    for name in ("rollout.h5", "video.mp4", "summary.json", "config.yaml"):
        assert validate(folder / name) == []


def test_files_that_do_not_belong_together_are_found(folder):
    write_mp4(folder / "video.mp4", np.zeros((4, 24, 32, 3), np.uint8), 24)
    assert validate(folder) == [f"{folder}/video.mp4: 4 frames, expected 5 as in rollout.h5."]
    write_mp4(folder / "video.mp4", np.zeros((5, 24, 16, 3), np.uint8), 24)
    assert validate(folder) == [f"{folder}/video.mp4: 16x24 px, expected 32x24."]


def test_broken_json_and_yaml_are_named(folder):
    (folder / "summary.json").write_text('{"steps": 6')
    (folder / "config.yaml").write_text("a: [1, 2")
    problems = validate(folder)
    assert len(problems) == 2
    assert "config.yaml: no YAML" in problems[0]
    assert "summary.json: no JSON" in problems[1]
    (folder / "config.yaml").write_text("!!python/object/apply:os.system ['true']")
    assert "no YAML" in validate(folder / "config.yaml")[0]


def test_a_wrong_picture_is_found_even_where_the_frame_is_right(tmp_path):
    """A rewritten file whose bytes are whole but whose picture is not the one of the header."""
    from wmeval.datasets import hdf5

    rollout = make_rollout(frames=3, layers=("ids",))
    path = Path(write_hdf5(rollout, tmp_path / "a.h5"))
    import h5py

    inner = tmp_path / "inner.h5"
    inner.write_bytes(path.read_bytes()[hdf5.USER_BLOCK :])
    with h5py.File(inner, "r+") as file:
        file["layer/ids"][1, 2, 3] ^= 1
    content = inner.read_bytes()
    path.write_bytes(hdf5.user_block(content) + content)
    assert validate(path) == [f"{path}: damaged: checksum of layer 'ids' does not match."]


def test_checksums_are_those_of_sha256sum(folder):
    write_checksums(folder)
    done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=folder, check=False)
    assert done.returncode == 0


@settings(max_examples=30, deadline=None)
@given(data=st.data())
def test_any_flip_in_a_summed_folder_is_found(tmp_path_factory, data):
    folder = tmp_path_factory.mktemp("summed")
    (folder / "a.json").write_text('{"a": 1}')
    (folder / "b.txt").write_text("text")
    write_checksums(folder)
    assert check_checksums(folder) == []
    victim = folder / data.draw(st.sampled_from(["a.json", "b.txt", "SHA256SUMS"]))
    content = bytearray(victim.read_bytes())
    content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    victim.write_bytes(bytes(content))
    assert check_checksums(folder)
    assert validate(folder)


def test_missing_new_and_unlisted_files_are_told_apart(folder):
    write_checksums(folder)
    (folder / "video.mp4").unlink()
    (folder / "notes.txt").write_text("mine")
    problems = check_checksums(folder)
    assert problems == [
        f"{folder}/video.mp4: is listed in SHA256SUMS but missing.",
        f"{folder}/notes.txt: is not listed in SHA256SUMS.",
    ]
    with pytest.raises(UserError, match="no such file"):
        check_checksums(folder.parent)


def test_a_folder_of_many_is_checked_one_by_one(folder):
    write_zarr(make_rollout(), folder.parent / "b.zarr")
    (folder.parent / "pictures").mkdir()
    (folder.parent / "pictures" / "x.png").write_bytes(b"")
    assert validate(folder.parent) == []
    content = bytearray((folder / "rollout.h5").read_bytes())
    content[3000] ^= 1
    (folder / "rollout.h5").write_bytes(bytes(content))
    problems = validate(folder.parent)
    assert len(problems) == 1
    assert "rollout.h5: damaged" in problems[0]


@pytest.mark.parametrize("inner", ["cases/a/g00", "a", "store.zarr"])
def test_checksums_are_checked_wherever_they_lie(tmp_path, inner):
    """In folders of folders, and beside or within what has checks of its own."""
    folder = tmp_path / "run" / inner
    if inner == "store.zarr":
        write_zarr(make_rollout(), folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "notes.txt").write_text("mine")
    write_checksums(folder)
    (tmp_path / "run" / "results.json").write_text("{}")
    assert not any("does not match" in p for p in validate(tmp_path / "run"))
    (folder / "notes.txt").write_text("more")
    assert f"{folder}/notes.txt: checksum does not match SHA256SUMS." in validate(tmp_path / "run")
    (folder / "notes.txt").unlink()
    assert f"{folder}/notes.txt: is listed in SHA256SUMS but missing." in validate(tmp_path)


def test_what_is_not_there_or_not_ours_is_said(tmp_path):
    assert validate(tmp_path / "nothing") == [
        f"{tmp_path}/nothing: there is no such file or folder."
    ]
    assert validate(tmp_path) == [f"{tmp_path}: holds nothing that wmeval writes."]
    (tmp_path / "a.doc").write_text("")
    assert "not a file that wmeval writes" in validate(tmp_path / "a.doc")[0]
    assert "memory://x/y" in validate("memory://x/y")[0]
