"""Programs of others end with whoever asked for them."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wmeval.jobs.guarded import run_guarded

LAUNCHER = """#!/bin/sh
# Not by exec: what it starts is a process of its own.
{python} -c 'import os, sys, time
open(sys.argv[1], "w").write(str(os.getpid())); time.sleep(600)' "$1"
echo over
"""
ASKS = """
import sys
from wmeval.jobs.guarded import run_guarded
with open(sys.argv[1] + "/printed", "w+b") as file:
    run_guarded(sys.argv[2:], sys.argv[1], file, limit=600)
"""


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def until(condition, seconds=100.0):
    end = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > end:
            return False
        time.sleep(0.05)
    return True


@pytest.fixture
def launcher(tmp_path):
    path = tmp_path / "launcher.sh"
    path.write_text(LAUNCHER.format(python=sys.executable))
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_a_program_ends_with_the_process_that_asked_for_it(launcher, tmp_path, number):
    folder, pid = tmp_path / "job", tmp_path / "pid"
    folder.mkdir()
    asking = subprocess.Popen([sys.executable, "-c", ASKS, str(folder), launcher, str(pid)])
    assert until(lambda: pid.exists() and pid.read_text())
    program = int(pid.read_text())
    assert alive(program)
    asking.send_signal(number)
    asking.wait(100)
    assert until(lambda: not alive(program))
    if number != signal.SIGINT:  # which lets it tidy up itself
        assert until(lambda: not folder.exists())


def test_a_time_out_ends_what_a_launcher_started_and_keeps_the_folder(launcher, tmp_path):
    pid = tmp_path / "pid"
    for limit in (2.0, 20.0, 100.0):  # where it has not started within one, the next is longer
        with (tmp_path / "printed").open("w+b") as printed:
            assert run_guarded([launcher, str(pid)], tmp_path, printed, limit=limit) is None
        if pid.exists() and pid.read_text():
            break
    assert until(lambda: not alive(int(pid.read_text())))
    assert tmp_path.is_dir()


@pytest.mark.parametrize(
    ("script", "code"), [("exit 3", 3), ("kill -SEGV $$", -signal.SIGSEGV), ("true", 0)]
)
def test_how_a_program_ended_is_told(tmp_path, script, code):
    with (tmp_path / "printed").open("w+b") as printed:
        arguments = ["/bin/sh", "-c", f"echo word; {script}"]
        assert run_guarded(arguments, tmp_path, printed, limit=30) == code
        printed.seek(0)
        assert printed.read() == b"word\n"


def test_a_program_that_is_none_cannot_be_started(tmp_path):
    with (tmp_path / "printed").open("w+b") as printed, pytest.raises(FileNotFoundError):
        run_guarded([os.fspath(tmp_path / "absent")], tmp_path, printed, limit=30)
