"""The command: bad input gets one clear line and exit code 2, and nothing half written."""

import pytest

from wmeval.cli import main, parse_seeds, parse_settings, parse_size
from wmeval.errors import UserError

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


@pytest.mark.parametrize("text", ["", "3:3", "a", "1,1", "-1", "0:b"])
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
    assert error.startswith("error: ")
    assert said in error
    assert not out.exists() or not any(out.rglob("*.*"))


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
    assert "--overwrite" in error
    assert [p.name for p in tmp_path.iterdir()] == ["mine.txt"]


@pytest.mark.gl
def test_a_rollout_is_made_kept_and_made_again(capsys, tmp_path):
    first, again = tmp_path / "first", tmp_path / "again"
    argv = ("rollout", BALL, "--plan", "forward", "--size", "64x48", "--max-steps", "20")
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
    "what", ["envs", "plans", "engines", "renderers", "candidates", "adapters", "layers", "metrics"]
)
def test_every_table_is_listed(what, capsys):
    code, out, error = run(capsys, "list", what)
    assert code == 0, error
    assert len(out.splitlines()) > 2
