"""What a set will cost follows from what was measured, and from nothing else."""

import json

import pytest

from wmeval.cli import main
from wmeval.errors import UserError
from wmeval.generators import estimate
from wmeval.generators.estimate import costs

EACH = {"simulate_s": 1.0, "draw_s": 2.0, "write_s": 1.0, "bytes": 1000}


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Two clips' worth of numbers that can be reckoned in the head."""
    path = tmp_path / "calibration.json"
    known = {"width": 640, "height": 352, "by_task": {"bounce": EACH, "free_fall": EACH}}
    path.write_text(json.dumps({"machine": {"cpu": "abacus"}, "clips": {"raster/draft": known}}))
    monkeypatch.setattr(estimate, "CALIBRATION", path)
    return path


def test_costs_add_up_and_grow_with_the_pixels(measured):
    told = {(c.renderer, c.quality): c for c in costs(["bounce"] * 899 + ["free_fall"])}
    assert told["raster", "draft"].core_hours == pytest.approx(1.0)
    assert told["raster", "draft"].bytes == 900_000
    large = {c.quality: c for c in costs(["bounce"], width=1280, height=352) if c.bytes}
    assert large["draft"].core_hours == pytest.approx(7 / 3600)  # physics knows no pixels
    assert large["draft"].bytes == 2000


def test_what_was_not_measured_is_not_told(measured):
    unknown = [c for c in costs(["bounce"]) if (c.renderer, c.quality) != ("raster", "draft")]
    assert unknown
    assert all(c.core_hours is None and c.bytes is None for c in unknown)
    assert all(c.core_hours is None for c in costs(["ball_chain"]))
    measured.unlink()
    with pytest.raises(UserError, match=r"python -m benchmarks.rigidbench"):
        costs(["bounce"])


def test_the_command_tells_and_makes_nothing(tmp_path, capsys):
    out = tmp_path / "set"
    argv = ["generate", "rigidbench", "--manifest", "train", "--dry-run", "--price", "0.05",
            "--shard", "0/2", "--out", str(out)]  # fmt: skip
    with pytest.raises(SystemExit) as stop:
        main(argv)
    assert stop.value.code == 0
    said = capsys.readouterr().out
    assert "2500 clips, from clips measured on" in said
    shown = [line.split() for line in said.splitlines() if line.startswith("raster")]
    assert [row[:3] for row in shown] == [
        ["raster", "draft", "640x352"],
        ["raster", "preview", "960x528"],
        ["raster", "paper", "1280x704"],
    ]
    hours = [float(row[3]) for row in shown]
    assert hours == sorted(hours)
    assert hours[0] > 0
    assert float(shown[0][-1]) == pytest.approx(0.05 * hours[0], abs=0.01)
    assert not out.exists()
