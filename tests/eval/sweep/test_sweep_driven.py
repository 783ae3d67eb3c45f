"""Recorded motions in a sweep: they lead in place of the card's, and results say which."""

import json
import re

import numpy as np
import pytest

from wmeval.assets.gauge_cards import families
from wmeval.assets.gauge_profiles import Measured, drive_hash, motion, read_measured
from wmeval.assets.gauge_published import published
from wmeval.cli import main
from wmeval.envs.gauge.measured import check_length, check_units
from wmeval.envs.gauge.motions import led_bodies
from wmeval.errors import UserError
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import parse_engines
from wmeval.eval.sweep.driven import NO_TRUTH, leads, parse_drives
from wmeval.eval.sweep.folder import arrays_of
from wmeval.eval.sweep.results import read_sweep
from wmeval.eval.sweep.sweeping import stamp
from wmeval.eval.sweep.tables import main_lines

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


def test_report_and_command_tell_whose_motion_led_and_show_nothing_published(
    tmp_path, still, capsys
):
    out = tmp_path / "s"
    cell = run(out, ["--drive", f"turntable={still}"])
    whole = drive_hash(read_measured(still))
    said, page = capsys.readouterr().out, (out / "report.html").read_text()
    note = (
        f"led by still.csv (sha256 of its numbers {whole}): turntable/1/metal; closed forms and "
        "published numbers are of the card's motion"
    )
    assert note in said.splitlines()
    assert note in page.replace("&#39;", "'")
    # In every table and above every picture of it.
    assert page.count(f"led by still.csv {whole[:12]}") >= 3
    assert published().find("turntable", "1", "metal", "rmse") is not None
    heads = re.findall("<th[^>]*>(.*?)</th>", page)
    assert not any("published" in head for head in heads)
    rows = json.loads((out / "results.json").read_text())["rows"]
    assert not any(v for row in rows for k, v in row.items() if k.startswith("published_"))
    # One of the card's beside it keeps its own.
    (card,) = planning.plan(
        parse_engines("bullet"), planning.tasks_of("turntable/2/metal"), ["published-settings"],
        twice="none",
    )  # fmt: skip
    free = cell.model_copy(update={"cell": card, "key": "k", "facts": {}})
    both = read_sweep(out).model_copy(update={"cells": (cell, free)})
    led, own = (
        next(x for x in main_lines(both, "published-settings") if x.task == t)
        for t in ("turntable/1/metal", "turntable/2/metal")
    )
    assert {e.text for e in led.published} == {"–"}
    assert {e.text for e in own.published} != {"–"}
    assert (own.under, led.under) == ("", f"led by still.csv {whole[:12]}")


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


def turning(path, *, seconds=3.2, angle=1.0, time=1.0, rate=4.0, start=0.0, rest=False, way=0.0):
    """A plate that is brought to a rate in half a second, in other units where they are named."""
    t = np.linspace(0, seconds, 241)
    turned = rate * np.where(t < 0.5, t**2, t - 0.25)
    rows = np.column_stack([time * (t + start), way * t, 0 * t, 0 * t, angle * turned])
    if rest:
        rows = np.vstack([rows, rows[-1] + np.array([time / 30, 0, 0, 0, 0])])
    path.write_text(HEAD + "\n".join(",".join(f"{x:.9g}" for x in row) for row in rows) + "\n")
    return path


@pytest.mark.parametrize(
    ("motion", "said"),
    [
        ({"angle": 180 / np.pi}, r"plate turns at up to 229 rad/s, .* is the angle in radians"),
        ({"way": 100.0}, r"plate moves at up to 100 m/s, .* are the offsets in metres"),
        ({"time": 1000.0}, r"it lasts 3200 s, and in the 3.13 s .* plate hardly moves: are the ti"),
        ({"start": 1e6}, r"in the 3.13 s of the record plate hardly moves"),
        ({"time": 1 / 60}, r"plate turns at up to .* are the times in seconds"),
        ({"seconds": 0.4}, r"it covers 0.4 s of the record's 3.13 s and is moving where it breaks"),
    ],
)
def test_a_drive_in_other_units_or_cut_off_is_refused(tmp_path, motion, said):
    tasks = planning.tasks_of("turntable/1/metal")
    path = turning(tmp_path / "m.csv", **motion)
    with pytest.raises(UserError, match=said):
        parse_drives([f"turntable={path}"], tasks)


@pytest.mark.parametrize(
    "motion",
    [{}, {"rate": 12.0}, {"rate": 0.1}, {"seconds": 0.4, "rest": True}, {"start": 0.2},
     {"seconds": 100.0}, {"seconds": 2.0}],
)  # fmt: skip
def test_a_drive_faster_slower_longer_or_shorter_than_the_card_s_is_taken(tmp_path, motion):
    tasks = planning.tasks_of("turntable")
    path = turning(tmp_path / "m.csv", **motion)
    assert parse_drives([f"turntable={path}"], tasks) == {"turntable": str(path)}


def test_every_card_s_own_motion_is_taken_and_in_degrees_or_millimetres_is_not():
    for card in families().values():
        for subtask, one in card.subtasks.items():
            for material in one.frames:
                if not leads(card, subtask, material):
                    continue
                (led,) = led_bodies(card, subtask, material)
                seconds = (card.frames(subtask, material) - 1) / 30
                t = np.linspace(0, seconds, 500)
                made = motion(led, t)
                samples = np.column_stack([made.offset, made.angle])
                check_units(Measured(t, samples), "own", led, seconds)
                check_length(Measured(t, samples), "own", seconds)
                other = samples * np.array([1000.0, 1000.0, 1000.0, 180 / np.pi])
                with pytest.raises(UserError, match=f"{led.body} (turns|moves) at up to"):
                    check_units(Measured(t, other), "own", led, seconds)
                with pytest.raises(UserError, match="are the times in seconds"):
                    check_units(Measured(1000 * t, samples), "own", led, seconds)
