import multiprocessing
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


KIND = atomic.FolderKind(files=r"sub/x|y|mark\.json", marks={r"mark\.json": "wmeval-test/1"})


def test_a_folder_appears_only_when_whole_and_is_not_replaced_unasked(tmp_path):
    target = tmp_path / "set"
    target.mkdir()  # An empty folder is as good as none.
    with atomic.atomic_dir(target) as temporary:
        (temporary / "sub").mkdir()
        (temporary / "sub" / "x").write_text("1")
        (temporary / "mark.json").write_text('{"format": "wmeval-test/1"}')
    with pytest.raises(UserError, match="overwrite"), atomic.atomic_dir(target):
        pass
    with pytest.raises(ZeroDivisionError), atomic.atomic_dir(target, replaces=KIND):
        raise ZeroDivisionError
    assert (target / "sub" / "x").read_text() == "1"
    with atomic.atomic_dir(target, replaces=KIND) as temporary:
        (temporary / "y").write_text("2")
    assert names(target) == ["y"]
    assert names(tmp_path) == ["set"]


@pytest.mark.parametrize(
    ("files", "stranger"),
    [
        ({"thesis.tex": ""}, "thesis.tex"),
        ({"mark.json": "wmeval-test/1", "thesis.tex": ""}, "thesis.tex"),
        ({"mark.json": "wmeval-test/1", ".git/HEAD": ""}, ".git/HEAD"),
        ({"mark.json": "{}"}, "mark.json"),  # the name is ours, the file is not
        ({"y": "wmeval-test/1"}, "y"),
    ],
)
def test_only_folders_of_the_same_maker_are_replaced(tmp_path, files, stranger):
    target = tmp_path / "home"
    for name, text in files.items():
        atomic.write_text(target / name, text)
    message = f"holds files that wmeval did not write here \\({stranger}\\): choose another folder"
    with pytest.raises(UserError, match=message), atomic.atomic_dir(target, replaces=KIND):
        pass
    assert {n: (target / n).read_text() for n in files} == files


CLAIMING = """
import sys
from wmeval.jobs.atomic import claim
with claim(sys.argv[1], shared=sys.argv[2] == "shared"):
    print("in", flush=True)
    sys.stdin.read()
"""


def test_a_second_writer_is_refused_until_the_first_ends_or_dies(tmp_path):
    out = tmp_path / "deep" / "out"
    for end in ("close", "kill"):
        other = subprocess.Popen(
            [sys.executable, "-c", CLAIMING, str(out), "alone"],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert other.stdout.readline() == b"in\n"
        for shared in (False, True):
            with pytest.raises(UserError, match="another run is writing here"):
                atomic.claim(out, shared=shared).__enter__()
        with atomic.claim(out.with_name("another")):
            pass
        if end == "kill":
            other.kill()
        other.communicate()
        with atomic.claim(out):
            pass
        assert names(out.parent) == []


@pytest.mark.parametrize("place", ["/proc/wmeval-x", "/proc/wmeval-x/y"])
def test_a_place_where_nothing_can_be_made_is_named_itself(place):
    with pytest.raises(UserError, match=f"^{place}: nothing can be made there"):
        atomic.claim(place).__enter__()


def test_claims_are_shared_by_those_who_share(tmp_path):
    with atomic.claim(tmp_path / "a", shared=True):
        with atomic.claim(tmp_path / "a", shared=True):
            pass
        with pytest.raises(UserError, match="another run"):
            atomic.claim(tmp_path / "a").__enter__()
    (tmp_path / "link").symlink_to(tmp_path / "a")
    with atomic.claim(tmp_path / "a"), pytest.raises(UserError, match="another run"):
        atomic.claim(tmp_path / "link").__enter__()
    assert names(tmp_path) == ["link"]


def _climb(folder: str, times: int) -> None:
    for _ in range(times):
        while True:
            try:
                with atomic.claim(Path(folder, "count")):
                    path = Path(folder, "count")
                    path.write_text(str(int(path.read_text()) + 1))
                break
            except UserError:
                pass


def test_claims_taken_and_left_in_haste_never_overlap(tmp_path):
    """Removing the lock at the end of a claim must let nobody in beside the next owner."""
    (tmp_path / "count").write_text("0")
    context = multiprocessing.get_context("fork")
    climbers = [context.Process(target=_climb, args=(str(tmp_path), 150)) for _ in range(3)]
    for process in climbers:
        process.start()
    for process in climbers:
        process.join()
    assert (tmp_path / "count").read_text() == "450"
    assert names(tmp_path) == ["count"]


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
