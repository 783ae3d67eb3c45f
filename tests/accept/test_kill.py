"""Killed at any instant, a command leaves nothing unreadable; a rerun ends with the same bytes."""

import contextlib
import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from wmeval.datasets.validate import validate

KILLS = int(os.environ.get("WMEVAL_KILLS", "50"))
FEWER = {"clips": 5}
"""Divides the kills of a command that takes long and whose kills a longer run tries, too."""
TOGETHER = 3
"""Kills of runs into one folder, each going on where the last was killed, before one may end."""
SMALL = ["--size", "64x36", "--max-steps", "45"]
COMMANDS = {
    "rollout": ["rollout", "WMEval/BallRoller-v0", "--plan", "forward", "--seed", "3", *SMALL,
                "--layers", "depth,ids"],
    "generate": ["generate", "rollouts", "--env", "WMEval/BallRoller-v0", "--policy", "random",
                 "--episodes", "4", "--workers", "2", *SMALL, "--layers", "ids"],
    "clips": ["generate", "rigidbench", "--manifest", "eval", "--limit", "3", "--workers", "2",
              "--width", "64", "--height", "36"],
    "pair": ["pair", "WMEval/BallRoller-v0", "--candidate", "twin:gravity=0.9", "--plan", "forward",
             "--scene-seeds", "0:2", *SMALL],
}  # fmt: skip


def start(command, out):
    argv = [sys.executable, "-m", "wmeval.cli", *command, "--out", str(out)]
    return subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def finish(command, out):
    process = start(command, out)
    output, _ = process.communicate(timeout=900)
    assert process.returncode == 0, output


def kill_group(process):
    """Kill the command and every worker it started, as a power cut would."""
    with contextlib.suppress(ProcessLookupError):  # it had just ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def still_runs(process, seconds):
    """After so long; False as soon as it has ended."""
    until = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < until:
        time.sleep(min(0.02, max(until - time.monotonic(), 0.0)))
    return process.poll() is None


def digests(folder: Path) -> dict[str, str]:
    return {
        str(p.relative_to(folder)): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def visible(folder: Path):
    """Files under their final names; a temporary one starts with a dot."""
    return [
        p
        for p in sorted(folder.rglob("*"))
        if p.is_file() and not any(x.startswith(".") for x in p.relative_to(folder).parts)
    ]


@pytest.mark.accept
@pytest.mark.gl
@pytest.mark.timeout(3000)
@pytest.mark.parametrize("name", COMMANDS)
def test_kills_lose_nothing(name, tmp_path):
    command = COMMANDS[name]
    whole = tmp_path / "whole"
    finish(command, whole)
    began = time.monotonic()
    finish(command, tmp_path / "warm")  # the first run also warms the disk
    duration = time.monotonic() - began
    expected = digests(whole)
    rng = random.Random(name)
    interrupted = folders = since = 0
    kills = max(KILLS // FEWER.get(name, 1), 1)
    for i in range(kills):
        out = tmp_path / f"run{folders}"
        process = start(command, out)
        began = time.monotonic()
        alive = still_runs(process, rng.uniform(0.0, duration))
        if not alive and since == 0:  # the machine has got less to do since that was measured
            duration = min(duration, time.monotonic() - began)
        interrupted += alive
        since += 1
        kill_group(process)
        for path in visible(out) if out.exists() else []:
            if path.suffix in {".h5", ".mp4", ".json", ".yaml"}:
                assert validate(path) == [], f"kill {i}: {path}"
        if not alive or since == TOGETHER or i == kills - 1:
            finish(command, out)
            assert digests(out) == expected, f"kill {i}"
            folders, since = folders + 1, 0
    # Many instants fall within the run, or the test has tried nothing.
    assert interrupted >= kills // 4


@pytest.mark.accept
@pytest.mark.gl
@pytest.mark.timeout(3000)
def test_thirty_kills_over_one_run_of_forty_clips(tmp_path):
    """Each run goes on where the last one was killed; at most the clips in flight are lost.

    Where all forty are made before the thirtieth kill, another forty are begun.
    """
    command = [*COMMANDS["clips"], "--limit", "40"]
    began = time.monotonic()
    finish(command, tmp_path / "whole")
    duration = time.monotonic() - began
    expected = digests(tmp_path / "whole")
    out = tmp_path / "killed"
    rng = random.Random("clips")
    interrupted, finished = 0, 0
    for i in range(30):
        process = start(command, out)
        alive = still_runs(process, rng.uniform(0.0, duration / 8))
        interrupted += alive
        kill_group(process)
        rows = len(list(out.glob("rows/[0-9]*.json")))
        assert rows >= finished, f"kill {i} lost a finished clip"
        finished = rows
        if not alive:
            assert digests(out) == expected, f"kill {i}"
            out, finished = tmp_path / f"killed{i}", 0
    assert interrupted >= 15
    finish(command, out)
    assert digests(out) == expected
    assert validate(out) == []
