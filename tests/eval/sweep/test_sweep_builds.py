"""Two builds of one engine side by side, and an engine that is a program of its own."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from engine_worlds import engine_here
from fake_isaac import write_launcher

from wmeval.cli import main
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import parse_engines
from wmeval.eval.sweep.gates import conformance_rows, suites_of
from wmeval.eval.sweep.results import read_sweep
from wmeval.eval.sweep.running import run_cell
from wmeval.eval.sweep.sweeping import run_sweep
from wmeval.jobs import installed


def cells_of(engines, tasks="pendulum/1/metal"):
    return planning.plan(
        parse_engines(engines), planning.tasks_of(tasks), ["published-settings"], twice="none"
    )


@pytest.fixture
def launcher(tmp_path, monkeypatch):
    monkeypatch.delenv("WMEVAL_ISAAC_PYTHON", raising=False)
    monkeypatch.delenv("FAKE_ISAAC", raising=False)

    def make(name, version):
        folder = tmp_path / name
        folder.mkdir()
        path = write_launcher(folder)
        (folder / "VERSION").write_text(f"{version}\n")
        return path

    return make


def test_two_isaac_sims_stand_side_by_side_under_their_names(launcher, tmp_path):
    one, two = launcher("one", "5.1.0"), launcher("two", "6.0.0")
    engines = f"name=old,adapter=isaac,python={one},name=new,adapter=isaac,python={two},isaac"
    results = run_sweep(cells_of(engines), tmp_path / "out", workers=0, conformance=False)
    assert results.versions == {"old": "5.1.0", "new": "6.0.0"}
    told = {c.cell.engine.label: c for c in results.cells}
    assert [told[k].status for k in ("old", "new", "isaac")] == ["diverged", "diverged", "not_run"]
    # A bob that nothing holds is gone long before the record of ten seconds ends.
    assert told["old"].reason.startswith("diverged at t = 2.5 s: a body is 30.4 m away")
    assert told["isaac"].reason == "Isaac Sim is not installed"
    assert told["old"].sha256 == told["new"].sha256
    # The program's own times; what it spends is not this process's to count.
    assert (told["new"].build_s, told["new"].wall_s, told["new"].cpu_s) == (2.0, 0.5, None)
    assert (told["new"].solver, told["new"].hz) == ("omni physx, tgs", 180.0)
    rows = json.loads((tmp_path / "out/results.json").read_text())["rows"]
    assert {r["engine"] for r in rows} == {"old", "new", "isaac"}
    assert {r["version"] for r in rows if r["engine"] == "new"} == {"6.0.0"}


@pytest.mark.parametrize(
    ("how", "status", "reason"),
    [
        ("nan", "diverged", "diverged at t = 0.0667 s: a body has no finite position"),
        ("last nan", "diverged", "diverged at t = 9.97 s: a body has no finite position"),
        ("raise", "crash", "Isaac Sim ended with code 3 without an answer: JobError: no GPU"),
        ("altered", "crash", "Isaac Sim's states: its checksum does not fit its numbers"),
    ],
)
def test_a_job_that_fails_costs_its_cell(launcher, monkeypatch, how, status, reason):
    monkeypatch.setenv("FAKE_ISAAC", how)
    (cell,) = cells_of(f"name=sim,adapter=isaac,python={launcher('one', '6.0.0')}")
    result = run_cell(cell, "k", limit=60.0)
    assert result.status == status
    assert result.reason.startswith(reason)
    assert result.version == "6.0.0"


def test_a_job_that_takes_too_long_is_a_time_out(launcher, monkeypatch):
    monkeypatch.setenv("FAKE_ISAAC", "hang")
    (cell,) = cells_of(f"name=sim,adapter=isaac,python={launcher('one', '6.0.0')}")
    for limit in (1.0, 10.0, 100.0):  # where it said nothing within one, the next is longer
        result = run_cell(cell, "k", limit=limit)
        assert result.status == "time_out"
        assert result.reason.startswith(f"Isaac Sim gave no answer within {limit:g} s")
        if result.reason.endswith("s: [kit] loading a great many extensions"):
            return
    pytest.fail(f"what it said last is not told: {result.reason}")


def test_a_check_that_hangs_fails_at_the_limit_and_the_others_follow(launcher, monkeypatch):
    monkeypatch.setenv("FAKE_ISAAC", "hang")
    cells = cells_of(f"name=sim,adapter=isaac,python={launcher('one', '6.0.0')}")
    (suite, *_) = suites_of(cells)
    suite = replace(suite, checks=suite.checks[:2])
    rows = conformance_rows(suite, None, 0.5)
    assert len(rows) == len(suite.checks)
    for row in rows:
        assert row["status"] == "failed"
        assert row["reason"].startswith("Isaac Sim gave no answer within 0.5 s")


def test_a_worker_that_does_not_come_up_says_why(tmp_path, capsys):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\necho starting\necho 'libfoo.so: cannot open' >&2\nexit 3\n")
    broken.chmod(0o755)
    command = [
        "sweep", "gauge", "--engines", f"name=b,adapter=physx,python={broken}", "--tasks",
        "bouncing_ball", "--twice", "none", "--out", str(tmp_path / "out"), "--workers", "0",
        "--no-strips",
    ]  # fmt: skip
    with pytest.raises(SystemExit) as stop:
        main(command)
    assert stop.value.code == 1  # nothing was measured
    said = capsys.readouterr().out
    why = "died (exit status 3) during 'hello': libfoo.so: cannot open"
    assert re.search(rf"crash: b, 1 cell: .*{re.escape(why)}, as it was built", said)
    assert said.endswith("nothing was measured: no engine got through a cell\n")
    failed = [r for r in read_sweep(tmp_path / "out").conformance if r["status"] == "failed"]
    assert failed
    assert all(str(row["reason"]).endswith(why) for row in failed)


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.accept
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_program_that_hangs_ends_with_its_sweep(launcher, tmp_path, number):
    python, pid = launcher("one", "6.0.0"), tmp_path / "pid"
    variables = {"FAKE_ISAAC": "hang", "FAKE_ISAAC_PID": str(pid), "WMEVAL_ISAAC_PYTHON": python}
    sweep = subprocess.Popen(
        [sys.executable, "-m", "wmeval.cli", "sweep", "gauge", "--engines", "isaac", "--tasks",
         "bouncing_ball", "--no-conformance", "--out", str(tmp_path / "out")],
        env={**os.environ, **variables},
    )  # fmt: skip
    end = time.monotonic() + 120
    while not (pid.exists() and pid.read_text()):
        assert time.monotonic() < end
        time.sleep(0.1)
    sweep.send_signal(number)
    sweep.wait(60)
    end = time.monotonic() + 60
    while alive(int(pid.read_text())):
        assert time.monotonic() < end
        time.sleep(0.1)


def test_a_textile_job_is_mapped_and_measured(launcher, monkeypatch):
    monkeypatch.setenv("FAKE_ISAAC", "hovers")
    (cell,) = cells_of(
        f"name=sim,adapter=isaac,python={launcher('one', '6.0.0')}", "textile_bending/1/oxford"
    )
    result = run_cell(cell, "k", limit=60.0)
    assert result.status == "ok"
    assert result.solver == "omni physx, surface fem"
    tuned = planning.plan(
        [cell.engine], planning.tasks_of("textile_bending/1/oxford"), ["tuned"], twice="none"
    )
    assert run_cell(tuned[0], "k").reason == "textile_bending has no tuned for engine isaac"


@pytest.mark.accept
def test_two_builds_of_an_installed_engine_stand_side_by_side(tmp_path):
    """The same environment under two names: two columns, the same bits."""
    python = installed.interpreter(engine_here("physx"))
    engines = f"name=one,adapter=physx,python={python},name=two,adapter=physx,python={python}"
    results = run_sweep(
        cells_of(engines, "bouncing_ball"), tmp_path / "out", workers=0, conformance=False
    )
    one, two = results.cells
    assert (one.status, two.status) == ("ok", "ok")
    assert (one.cell.engine.label, two.cell.engine.label) == ("one", "two")
    assert one.sha256 == two.sha256
    assert one.key != two.key
    assert results.versions["one"] == results.versions["two"] == installed.version("physx")
