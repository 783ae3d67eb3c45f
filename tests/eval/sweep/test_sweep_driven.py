"""Recorded motions in a sweep: they lead in place of the card's, and results say which."""

import json

import numpy as np
import pytest

from wmeval.assets.gauge_profiles import drive_hash, read_measured
from wmeval.cli import main
from wmeval.errors import UserError
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import parse_engines
from wmeval.eval.sweep.driven import NO_TRUTH, parse_drives
from wmeval.eval.sweep.folder import arrays_of
from wmeval.eval.sweep.results import read_sweep
from wmeval.eval.sweep.sweeping import stamp

HEAD = "time,x,y,z,angle\n"


@pytest.fixture
def still(tmp_path):
    path = tmp_path / "still.csv"
    path.write_text(HEAD + "0,0,0,0,0\n20,0,0,0,0\n")
    return path


def run(out, drive):
    with pytest.raises(SystemExit) as stop:
        main(["sweep", "gauge", "--tasks", "turntable/1/metal", "--out", str(out), "--twice",
              "none", "--no-strips", "--no-conformance", "--workers", "0", *drive])  # fmt: skip
    assert stop.value.code == 0
    (cell,) = read_sweep(out).cells
    return cell


def test_a_plate_that_a_file_holds_still_turns_no_cube(tmp_path, still):
    out = tmp_path / "s"
    cell = run(out, ["--drive", f"turntable={still}"])
    assert cell.status == "ok"
    found = arrays_of(out, cell.key)
    course = np.asarray(found["course"])
    assert np.abs(course - course[:1]).max() < 1e-4
    assert cell.facts["drives"] == {"plate": drive_hash(read_measured(still))}
    row = json.loads((out / "results.json").read_text())["rows"][0]
    assert row["drive"] == f"still.csv {drive_hash(read_measured(still))}"
    # Closed forms are of the card's motion: none is held against this one.
    rmse = cell.measurement("rmse")
    assert (rmse.value, rmse.reason) == (None, NO_TRUTH)
    assert not any(m.truth for m in cell.measurements)
    assert cell.cell.name.endswith("turntable/1/metal led by still.csv")


def test_a_cell_s_key_is_of_what_the_file_holds(still):
    tasks = planning.tasks_of("turntable/1/metal,pendulum/1/metal")
    drives = parse_drives([f"turntable={still}"], tasks)
    led, free = planning.plan(
        parse_engines("bullet"), tasks, ["tuned"], twice="none", drives=drives
    )
    assert (led.drive, free.drive) == (str(still), "")
    before = led.key(stamp(led))
    still.write_text(HEAD + "0,0,0,0,0\n20,0,0,0,1\n")
    assert led.key(stamp(led)) != before


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("turntable", "write FAMILY=FILE"),
        ("funnel={file}", "no task here is of 'funnel'"),
        ("bouncing_ball={file}", "no set-up in which one body is led"),
        ("turntable={file}x", "No such file"),
    ],
)
def test_a_drive_that_leads_nothing_is_refused(still, text, said):
    tasks = planning.tasks_of("turntable/1/metal,bouncing_ball")
    with pytest.raises(UserError, match=said):
        parse_drives([text.format(file=still)], tasks)
    with pytest.raises(UserError, match="named twice"):
        parse_drives([f"turntable={still}"] * 2, tasks)
