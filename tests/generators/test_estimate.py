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


def test_what_pixels_do_not_change_is_not_scaled(measured):
    """A line through two sizes: 2 s and 1 s a pixel; the larger textures of "paper" come on top."""
    known = json.loads(measured.read_text())
    for quality, pixels, more in (("draft", 1, 0), ("preview", 4, 0), ("paper", 8, 16)):
        draw = {"draw_s": 2.0 + pixels + more, "write_s": 1.0, "bytes": 100 * pixels}
        one = {"simulate_s": 0.0, **draw}
        known["clips"][f"raster/{quality}"] = {
            "width": pixels, "height": 1, "by_task": {"bounce": one}
        }  # fmt: skip
    known["clips"]["cycles/draft"] = {
        "width": 1, "height": 1, "by_task": {"bounce": {**one, "draw_s": 149.0, "bytes": 100}},
        "frame": {"overhead_s": 1.0},
    }  # fmt: skip
    measured.write_text(json.dumps(known))
    told = {(c.renderer, c.quality): c for c in costs(["bounce"], width=32, height=1)}
    hours = [told["raster", q].core_hours * 3600 for q in ("draft", "preview", "paper")]
    assert hours == pytest.approx([2 + 32 + 1, 2 + 32 + 1, 2 + 24 * 4 + 1])
    assert told["raster", "draft"].bytes == 3200
    assert told["cycles", "draft"].core_hours * 3600 == pytest.approx(49 + 100 * 32 + 1)
    assert [told[k].basis for k in told] == ["scaled", "scaled", "scaled", "frames", "none", "none"]


def test_a_tables_rows_are_its_columns_long():
    for price in (None, 1.0):
        _, columns, rows, notes = estimate.estimate("eval", price=price)
        assert {len(row) for row in rows} == {len(columns)}
        assert [note.split(":")[0] for note in notes] == ["from clips", "from frames"]


def test_a_larger_preset_never_costs_less_at_the_same_size():
    for renderer in ("raster", "cycles"):
        tasks = ["free_fall", "bounce", "ball_chain", "drop_into_cluster", "ramp_collision"]
        for side in (64, 1000, 8192):
            all_ = costs(tasks, width=side, height=side)
            hours = [c.core_hours for c in all_ if c.renderer == renderer]
            assert hours == pytest.approx(sorted(hours), rel=0.02)


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
            "--tasks", "free_fall, bounce,ball_chain , drop_into_cluster,ramp_collision",
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
    assert "from frames: extrapolated from one small frame of each task" in said
    assert {row[-2] for row in shown} == {"clips"}
    assert float(shown[0][-1]) == pytest.approx(0.05 * hours[0], abs=0.01)
    assert not out.exists()
