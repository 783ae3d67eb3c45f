import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from wmeval.errors import UserError
from wmeval.jobs import atomic


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


def test_a_file_appears_only_when_whole(tmp_path):
    target = tmp_path / "deep" / "a.txt"
    with atomic.atomic_file(target) as temporary:
        temporary.write_text("new")
        assert temporary.suffix == ".txt"
        assert not target.exists()
    assert target.read_text() == "new"
    assert names(target.parent) == ["a.txt"]


def test_a_failed_writer_leaves_the_old_file_alone(tmp_path):
    target = tmp_path / "a.txt"
    atomic.write_text(target, "old")

    def fail_half_way() -> None:
        with atomic.atomic_file(target) as temporary:
            temporary.write_text("half")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail_half_way()
    assert target.read_text() == "old"
    assert names(tmp_path) == ["a.txt"]


def test_a_folder_appears_only_when_whole_and_is_not_replaced_unasked(tmp_path):
    target = tmp_path / "set"
    with atomic.atomic_dir(target) as temporary:
        (temporary / "sub").mkdir()
        (temporary / "sub" / "x").write_text("1")
        assert not target.exists()
    with pytest.raises(UserError, match="overwrite"), atomic.atomic_dir(target):
        pass
    with pytest.raises(ZeroDivisionError), atomic.atomic_dir(target, overwrite=True):
        raise ZeroDivisionError
    assert (target / "sub" / "x").read_text() == "1"
    with atomic.atomic_dir(target, overwrite=True) as temporary:
        (temporary / "y").write_text("2")
    assert names(target) == ["y"]
    assert names(tmp_path) == ["set"]


KILLED = """
import os, signal, sys
from wmeval.jobs.atomic import atomic_dir, atomic_file
maker = atomic_dir if sys.argv[2] == "dir" else atomic_file
with maker(sys.argv[1]) as temporary:
    target = temporary / "part" if sys.argv[2] == "dir" else temporary
    target.write_text("half of it")
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("kind", ["file", "dir"])
def test_what_a_killed_writer_leaves_is_swept_by_the_next(tmp_path, kind):
    target = tmp_path / "a"
    done = subprocess.run([sys.executable, "-c", KILLED, str(target), kind], check=False)
    assert done.returncode == -9
    assert not target.exists()
    assert len(names(tmp_path)) == 1
    atomic.write_text(tmp_path / "b", "whole")
    assert names(tmp_path) == ["b"]


def test_living_writers_are_not_swept(tmp_path):
    with atomic.atomic_file(tmp_path / "a") as first:
        first.write_text("1")
        atomic.write_text(tmp_path / "b", "2")
        assert first.exists()
    assert names(tmp_path) == ["a", "b"]


def test_a_full_disk_is_one_clear_error_and_leaves_nothing(tmp_path):
    target = tmp_path / "big"
    atomic.write_text(target, "old")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        with pytest.raises(UserError, match="disk full"):
            atomic.write_bytes(target, b"x" * 100_000)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert target.read_text() == "old"
    assert names(tmp_path) == ["big"]


def test_a_file_in_the_way_of_a_folder_is_named(tmp_path):
    (tmp_path / "a").write_text("")
    with pytest.raises(UserError, match="a file stands where a folder is needed"):
        atomic.write_text(tmp_path / "a" / "b", "x")
