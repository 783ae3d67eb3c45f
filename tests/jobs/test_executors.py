import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import pytest

from wmeval.errors import UserError
from wmeval.jobs.executors import LocalExecutor


def square(x: int) -> int:
    return x * x


def process_of(_: int) -> int:
    return os.getpid()


def misbehave(x: int, *, folder: str) -> int:
    if x == 1:
        os.kill(os.getpid(), signal.SIGSEGV)
    if x == 2:
        raise UserError("bad plan")
    if x == 3:
        raise RuntimeError("a bug")
    if x == 4:
        time.sleep(200)
    if x == 5:
        os._exit(7)
    Path(folder, str(x)).write_text("")
    return x


def first_ends_last(x: int, *, folder: str, others: int) -> int:
    """Unit 0 waits until the end of so many others has been noted."""
    until = time.monotonic() + 90
    while x == 0 and len(os.listdir(folder)) < others:
        assert time.monotonic() < until
        time.sleep(0.01)
    return x


class Notes:
    """Notes what ended, in the order in which it is told, where `first_ends_last` sees it."""

    def __init__(self, folder: Path):
        self.folder, self.seen = folder, []

    def __call__(self, unit, outcome):
        self.seen.append((unit, outcome.value))
        Path(self.folder, str(unit)).touch()

    def unit(self, others):
        return partial(first_ends_last, folder=str(self.folder), others=others)


@pytest.mark.parametrize("workers", [0, 2])
def test_results_come_in_the_order_of_the_items(workers, tmp_path):
    notes = Notes(tmp_path)
    outcomes = LocalExecutor(workers=workers).map(
        notes.unit(others=4 if workers else 0), range(5), on_outcome=notes
    )
    assert [o.value for o in outcomes] == list(range(5))
    assert sorted(notes.seen) == [(i, i) for i in range(5)]
    assert workers == 0 or notes.seen[-1] == (0, 0)


def test_a_crash_a_bug_or_a_hang_costs_one_unit(tmp_path):
    # A unit's time begins before its interpreter is up: it gets short once only one hangs.
    executor, ended = LocalExecutor(workers=2, timeout=100), []

    def after(unit, _):
        ended.append(unit)
        if len(ended) == 7:
            executor.timeout = 5

    outcomes = executor.map(partial(misbehave, folder=str(tmp_path)), range(8), on_outcome=after)
    assert [o.ok for o in outcomes] == [True, False, False, False, False, False, True, True]
    assert "signal 11" in (outcomes[1].error or "")
    assert outcomes[2].error == "bad plan"
    assert isinstance(outcomes[2].fault, UserError)
    assert outcomes[3].error == "RuntimeError: a bug"
    assert "misbehave" in outcomes[3].details
    assert "no result within 5 s" in (outcomes[4].error or "")
    assert "exit code 7" in (outcomes[5].error or "")
    assert sorted(os.listdir(tmp_path)) == ["0", "6", "7"]


def test_processes_are_recycled_and_are_not_this_one():
    outcomes = LocalExecutor(workers=1, recycle=2).map(process_of, range(5))
    pids = [o.value for o in outcomes]
    assert len(set(pids)) == 3
    assert pids[0] == pids[1] != pids[2]
    assert os.getpid() not in pids


def test_what_cannot_be_sent_is_one_failed_unit():
    outcomes = LocalExecutor(workers=1).map(square, [2, lambda: 0, 3])  # type: ignore[list-item]
    assert [o.value for o in outcomes] == [4, None, 9]
    assert "cannot be sent" in (outcomes[1].error or "")


def test_nothing_to_do_is_done_at_once():
    assert LocalExecutor(workers=2).map(square, []) == []


def test_bad_settings_are_refused():
    with pytest.raises(UserError, match="workers"):
        LocalExecutor(workers=-1)


ORPHANS = """
import sys, time, os
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from test_executors import wait_and_write
from wmeval.jobs.executors import LocalExecutor
if __name__ == "__main__":
    LocalExecutor(workers=1).map(wait_and_write, [sys.argv[1]])
"""


def wait_and_write(folder: str) -> None:
    Path(folder, "started").write_text(str(os.getpid()))
    time.sleep(200)
    Path(folder, "orphan wrote").write_text("")


def test_workers_leave_with_a_killed_parent(tmp_path):
    script = tmp_path / "run.py"
    script.write_text(ORPHANS)
    run = subprocess.Popen([sys.executable, str(script), str(tmp_path), str(Path(__file__).parent)])
    deadline = time.monotonic() + 100
    while not (tmp_path / "started").exists() or not (tmp_path / "started").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    worker = int((tmp_path / "started").read_text())
    run.kill()
    run.wait()
    deadline = time.monotonic() + 60
    while "Z" not in _state(worker):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert not (tmp_path / "orphan wrote").exists()


INTERRUPTED = """
import sys, time
sys.path.insert(0, sys.argv[1])
from test_executors import sleepy
from wmeval.jobs.executors import LocalExecutor
if __name__ == "__main__":
    try:
        print("go", flush=True)
        LocalExecutor(workers=2).map(sleepy, range(2))
    except KeyboardInterrupt:
        print("stopped")
"""


def sleepy(_: int) -> None:
    print("at work", flush=True)
    time.sleep(200)


@pytest.mark.parametrize("when", ["go", "at work"])
def test_a_keyboard_interrupt_is_the_parents_alone(tmp_path, when):
    """Pressed while the workers start or while they work: it goes to the whole process group."""
    script = tmp_path / "run.py"
    script.write_text(INTERRUPTED)
    run = subprocess.Popen(
        [sys.executable, str(script), str(Path(__file__).parent)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    while when not in run.stdout.readline():
        assert run.poll() is None
    if when == "go":
        time.sleep(0.2)  # the workers' interpreters are starting
    os.killpg(run.pid, signal.SIGINT)
    out, err = run.communicate(timeout=100)
    assert out.endswith("stopped\n")
    assert err == ""
    assert run.returncode == 0


def _state(pid: int) -> str:
    """Letter of a process's state; Z as of a zombie also where there is none (any more)."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return "Z"


def drawing_threads(_: int) -> str | None:
    return os.environ.get("LP_NUM_THREADS")


def test_workers_share_the_cores_for_drawing_unless_told_otherwise(monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.delenv("LP_NUM_THREADS", raising=False)

    def found(workers):
        return [o.value for o in LocalExecutor(workers=workers).map(drawing_threads, [0])]

    assert found(1) == ["4"]
    assert found(2) == ["2"]
    assert found(4) == ["0"]
    monkeypatch.setenv("LP_NUM_THREADS", "3")
    assert found(4) == ["3"]
