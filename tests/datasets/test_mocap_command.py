"""The command for measured motion."""

import json

import pytest

from wmeval.cli import main


def run(capsys, *argv):
    with pytest.raises(SystemExit) as stop:
        main(list(argv))
    captured = capsys.readouterr()
    return stop.value.code or 0, captured.out, captured.err


def test_a_file_is_shown_or_refused_in_one_line(capsys, tmp_path):
    path = tmp_path / "swing.json"
    document = {
        "format": "wmeval-mocap/1",
        "title": "a swing",
        "signals": [{"name": "angle", "unit": "rad"}],
        "trials": [
            {"name": "1", "times": [0, 0.1, 0.2], "signals": [[0.1], [None], [0.3]]},
            {"name": "2", "times": [0, 0.1], "signals": [[0.1], [0.2]]},
        ],
    }
    path.write_text(json.dumps(document))
    code, out, _ = run(capsys, "data", "show", str(path))
    assert code == 0
    assert out == "a swing: 2 trials of 1 signals; 2 to 3 frames, 0.1 to 0.2 s\n"
    document["trials"][1]["signals"] = [[0.1]]
    path.write_text(json.dumps(document))
    code, _, said = run(capsys, "data", "show", str(path))
    assert code == 2
    assert "trial '2': signals are (1, 1); (2, 1) are wanted" in said
    assert said.count("\n") == 1


def test_public_data_are_listed_and_unknown_ones_refused(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("WMEVAL_HOME", str(tmp_path))
    code, out, _ = run(capsys, "data", "list")
    assert code == 0
    assert "contactnets" in out
    assert "BSD-3-Clause" in out
    assert str(tmp_path / "data") in out
    code, _, said = run(capsys, "data", "get", "cubes")
    assert code == 2
    assert "choose from contactnets" in said
    code, _, said = run(capsys, "data", "get", "contactnets", "--url", str(tmp_path / "none"))
    assert code == 2
    assert "does not give commit 3357ba1300b9" in said
    assert said.splitlines()[-1].count("\n") == 0
    assert not (tmp_path / "data" / "contactnets").exists()
