"""The command: bad input gets one clear line and exit code 2, and nothing half written."""

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import typer

import wmeval.doctor
from wmeval.cli import app, main
from wmeval.cli.options import parse_seeds, parse_settings, parse_size
from wmeval.envs.adapters import ADAPTERS
from wmeval.errors import LINE_LENGTH, UserError

BALL = "WMEval/BallRoller-v0"


def run(capsys, *argv):
    """(exit code, output, error) of a command."""
    with pytest.raises(SystemExit) as stop:
        main(list(argv))
    captured = capsys.readouterr()
    return stop.value.code or 0, captured.out, captured.err


def test_sizes_seeds_and_settings_are_read():
    assert parse_size("640x352") == (640, 352)
    assert parse_seeds("0:3") == (0, 1, 2)
    assert parse_seeds("4,1") == (4, 1)
    assert parse_settings(["ball_count=20", "dt=1/480", "branching=true"]) == {
        "ball_count": 20,
        "dt": "1/480",
        "branching": True,
    }


@pytest.mark.parametrize("text", ["640", "640x", "8x8", "axb", "640x352x3", "99999x20"])
def test_a_bad_size_says_how_to_write_one(text):
    with pytest.raises(UserError, match="size"):
        parse_size(text)


@pytest.mark.parametrize(
    "text", ["", "3:3", "a", "1,1", "-1", "0:b", "0:1000000000000000", "0:100001", "4294967296"]
)
def test_bad_seeds_say_how_to_write_them(text):
    with pytest.raises(UserError, match="seeds"):
        parse_seeds(text)


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("rollout", "WMEval/Nope-v0", "--plan", "forward"), "WMEval/BallRoller-v0"),
        (("rollout", BALL, "--plan", "nope"), "collision"),
        (("rollout", BALL, "--plan", "forward", "--engine", "nope"), "bullet"),
        (("rollout", BALL, "--plan", "forward", "--view", "nope"), "static"),
        (("rollout", BALL, "--plan", "forward", "--layers", "dept"), "depth"),
        (("rollout", BALL, "--plan", "forward", "--fps", "fast"), "fast"),
        (("rollout", BALL, "--plan", "forward", "--fps", "0"), "fps"),
        (("rollout", BALL, "--plan", "forward", "--fps", "1e9"), "at most 240 fps"),
        (("rollout", BALL, "--plan", "forward", "--fps", "1e999999999"), "shorter"),
        (("rollout", BALL, "--plan", "forward", "--fps", "1000"), "more than one frame per state"),
        (("rollout", BALL, "--plan", "forward", "--layers", "flow"), "keep depth and ids too"),
        (("rollout", BALL, "--plan", "forward", "--set", "width=10"), "--size"),
        (("rollout", BALL, "--plan", "forward", "--set", "engine=3"), "--engine"),
        (("rollout", BALL, "--plan", "forward", "--set", "dt=[1, 2"), "not YAML"),
        (("rollout", BALL, "--plan", "forward", "--set", "dt=2020-01-01"), "env_kwargs"),
        (("rollout", BALL, "--plan", "forward", "--set", "dt=[1, 2]"), "exact number"),
        (("rollout", BALL, "--plan", "forward", "--set", "dt=1/60000000"), "substeps"),
        (("rollout", BALL, "--plan", "forward", "--set", "perturb=3"), "gravity=0.8"),
        (("rollout", BALL, "--plan", "forward", "--set", "branching=maybe"), "true or false"),
        (("pair", BALL, "--plan", "forward", "--candidate", "twin", "--tolerance", "-1"), "toler"),
        (("pair", BALL, "--plan", "forward", "--candidate", "twin", "--tolerance", "nan"), "toler"),
        (("pair", BALL, "--plan", "forward", "--candidate", "twin", "--set", "width=9"), "--size"),
        (("rollout", BALL, "--plan", "forward", "--set", "dt"), "NAME=VALUE"),
        (("rollout", BALL, "--plan", "forward", "--set", "colour=red"), "colour"),
        (("rollout", BALL, "--plan", "forward", "--set", "dt=1/250"), "1/250"),
        (("pair", BALL, "--plan", "forward", "--candidate", "nope"), "twin"),
        (("pair", BALL, "--plan", "forward", "--candidate", "twin:speed=2"), "gravity"),
        (("pair", BALL, "--plan", "forward", "--candidate", "twin:gravity=x"), "gravity"),
        (("pair", BALL, "--plan", "forward", "--candidate", "twin", "--grid", "x"), "candidate"),
        (("pair", BALL, "--plan", "forward", "--candidate", "video:/nowhere"), "/nowhere"),
        (("generate", "rollouts", "--env", BALL, "--policy", "nope"), "random"),
        (("generate", "rollouts", "--env", BALL, "--shard", "4/4"), "shard"),
        (("suite", "build", "--env", BALL, "--plan", "nope"), "collision"),
    ],
    ids=lambda v: " ".join(v) if isinstance(v, tuple) else None,
)
def test_bad_input_is_one_line_that_names_the_choices(argv, said, capsys, tmp_path):
    out = tmp_path / "out"
    code, _, error = run(capsys, *argv, "--out", str(out), "--size", "64x48")
    assert code == 2, error
    *progress, line = error.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert not any("error" in other for other in progress)
    assert not out.exists() or not any(out.rglob("*.*"))


@pytest.mark.parametrize(
    ("raised", "said"),
    [
        (UserError("first\nsecond\t" + "x" * 5000), "error: first second xx"),
        (PermissionError(13, "Permission denied", "/root/x"), "error: /root/x: Permission denied"),
        (OSError("no driver"), "error: no driver"),
    ],
)
def test_every_error_of_the_user_or_the_disk_is_one_bounded_line(raised, said, capsys, monkeypatch):
    def fail():
        raise raised

    monkeypatch.setattr(wmeval.doctor, "diagnose", fail)
    code, _, error = run(capsys, "doctor")
    assert code == 2
    assert error.startswith(said)
    assert error.count("\n") == 1
    assert len(error) <= LINE_LENGTH + 1


def test_the_doctor_tells_each_part_as_soon_as_it_is_known(capsys, monkeypatch):
    seen = []

    def found():
        yield wmeval.doctor.Finding("numpy", "ok", True, "1.0")
        seen.append(capsys.readouterr().out)
        yield wmeval.doctor.Finding("av", "broken", True, "no\nway", "make setup")

    monkeypatch.setattr(wmeval.doctor, "diagnose", found)
    code, out, _ = run(capsys, "doctor")
    assert seen[0].split() == ["numpy", "ok", "1.0"]
    assert (code, out.split("broken")[1]) == (1, "   no way; mend with: make setup\n")


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_doctor_s_probes_are_bounded_and_leave_nothing(tmp_path, monkeypatch):
    pid = tmp_path / "pid"
    launcher = tmp_path / "python.sh"
    launcher.write_text(f"#!/bin/sh\nsleep 600 & echo $! > {pid}\nwait\n")
    launcher.chmod(0o755)
    for limit in (1.0, 10.0, 100.0):  # where it has not started within one, the next is longer
        began = time.monotonic()
        told = wmeval.doctor._probe("import x", timeout=limit, python=str(launcher))
        assert told == (False, f"no answer in {limit:.0f} s")
        assert time.monotonic() - began < limit + 60
        if pid.exists() and pid.read_text():
            break
    until = time.monotonic() + 60
    while alive(int(pid.read_text())):
        assert time.monotonic() < until
        time.sleep(0.05)
    monkeypatch.setattr(wmeval.doctor, "_probe", lambda *a, **k: (True, "well"))
    assert tuple(f.part for f in wmeval.doctor.diagnose()) == wmeval.doctor.parts()


def test_a_fault_of_the_program_keeps_its_traceback(monkeypatch):
    monkeypatch.setattr(wmeval.doctor, "diagnose", lambda: int("x"))
    with pytest.raises(ValueError, match="invalid literal"):
        main(["doctor"])


def test_a_place_that_cannot_be_written_is_one_line(capsys):
    argv = ("suite", "build", "--env", BALL, "--plan", "forward", "--scene-seeds", "0")
    code, _, error = run(capsys, *argv, "--size", "64x48", "--out", "/proc/foo")
    assert (code, error.count("\n")) == (2, 1)
    assert error.startswith("error: /proc/")


def test_stopping_from_the_keyboard_is_one_line(capsys, monkeypatch):
    def stop():
        raise KeyboardInterrupt

    monkeypatch.setattr(wmeval.doctor, "diagnose", stop)
    code, _, error = run(capsys, "doctor")
    assert (code, error) == (130, "stopped; run the same command again to go on\n")


def test_an_interrupted_generation_stops_with_one_line(tmp_path):
    argv = ("generate", "rollouts", "--env", BALL, "--out", str(tmp_path / "set"), "--no-video")
    more = ("--episodes", "1000", "--max-steps", "20", "--workers", "0")
    process = subprocess.Popen(
        [sys.executable, "-m", "wmeval.cli", *argv, *more], stderr=subprocess.PIPE, text=True
    )
    until = time.monotonic() + 120
    while not list(tmp_path.glob("set/*/*.h5")) and time.monotonic() < until:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    error = process.communicate(timeout=120)[1]
    assert (process.returncode, error) == (130, "stopped; run the same command again to go on\n")


@pytest.mark.parametrize("content", [b"", b"hello", b"\x89HDF\r\n\x1a\n" + b"\0" * 64])
@pytest.mark.parametrize("name", ["a.h5", "a.mp4", "a.json", "a.yaml", "a.bin"])
def test_a_foreign_file_is_refused_without_a_traceback(name, content, capsys, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)
    code, out, error = run(capsys, "validate", str(path))
    assert (code, "Traceback" in out + error) == (2, False)
    assert name in out + error


def test_a_folder_that_holds_something_else_is_left_alone(capsys, tmp_path):
    (tmp_path / "mine.txt").write_text("precious")
    code, _, error = run(
        capsys, "rollout", BALL, "--plan", "forward", "--size", "64x48", "--out", str(tmp_path)
    )
    assert code == 2
    assert "mine.txt" in error
    for wrong in (("--plan", "nope"), ("--fps", "1e9"), ("--view", "nope"), ("--layers", "x")):
        argv = ("rollout", BALL, "--plan", "forward", *wrong, "--out", str(tmp_path))
        code, _, error = run(capsys, *argv)
        assert code == 2
        assert "mine.txt" not in error
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


def test_rerun_says_what_is_not_there(capsys, tmp_path):
    for folder, said in ((tmp_path / "nope", "is no folder"), (tmp_path, "has no config.yaml")):
        code, _, error = run(capsys, "rerun", str(folder), "--out", str(tmp_path / "out"))
        assert (code, error.count("\n")) == (2, 1)
        assert f"{folder} {said}" in error
    (tmp_path / "config.yaml").write_text("format: wmeval-rollout-folder/1\nlayers: 5\n")
    code, _, error = run(capsys, "rerun", str(tmp_path), "--out", str(tmp_path / "out"))
    assert (code, error.count("\n")) == (2, 1)
    assert "config.yaml" in error


@pytest.mark.gl
def test_a_rollout_is_made_kept_and_made_again(capsys, tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    argv = ("rollout", f"wmeval:{BALL}", "--plan", "forward", "--size", "64x48")
    argv += ("--max-steps", "20", "--layers", "depth,ids,flow")
    code, out, error = run(capsys, *argv, "--out", str(first))
    assert code == 0, error
    assert sorted(p.name for p in first.iterdir()) == sorted(
        ["rollout.h5", "video.mp4", "summary.json", "config.yaml", "SHA256SUMS"]
    )
    assert "already complete" in run(capsys, *argv, "--out", str(first))[1]
    assert run(capsys, *argv, "--seed", "5", "--out", str(first))[0] == 2
    assert run(capsys, "rerun", str(first), "--out", str(again))[0] == 0
    for path in first.iterdir():
        assert (again / path.name).read_bytes() == path.read_bytes(), path.name
    assert run(capsys, "validate", str(first))[0] == 0
    video = first / "video.mp4"
    data = bytearray(video.read_bytes())
    data[len(data) // 2] ^= 1
    video.write_bytes(data)
    code, out, error = run(capsys, "validate", str(first))
    assert code == 2
    assert "video.mp4" in out


@pytest.mark.parametrize(
    "what",
    [
        "envs",
        "plans",
        "engines",
        "renderers",
        "candidates",
        "adapters",
        "layers",
        "metrics",
        "families",
        "truths",
        "published",
    ],
)
def test_every_table_is_listed(what, capsys):
    code, out, error = run(capsys, "list", what)
    assert code == 0, error
    assert len(out.splitlines()) > 2


def test_adapters_and_derived_layers_are_described(capsys):
    out = run(capsys, "list", "adapters")[1]
    assert all(row.summary in out for row in ADAPTERS.values())
    assert "from depth, ids" in run(capsys, "list", "layers")[1]


def commands(command, path=()):
    """Paths of a command and of all below it."""
    yield path
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, (*path, name))


@pytest.mark.parametrize("path", [*commands(typer.main.get_command(app))], ids=" ".join)
def test_help_of_every_command_is_shown(path, capsys):
    code, out, err = run(capsys, *path, "--help")
    assert (code, err) == (0, "")
    assert out.startswith(f"Usage: {' '.join(('wmeval', *path))} ")
