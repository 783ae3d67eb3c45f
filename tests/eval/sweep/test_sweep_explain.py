"""Explaining a cell: one change at a time, and the one that closes the gap is named."""

import json

import pytest

from wmeval.cli import main
from wmeval.errors import UserError
from wmeval.eval.sweep.cells import CellResult, Measurement
from wmeval.eval.sweep.explain import (
    ABLATIONS,
    Trial,
    explain,
    grid_of,
    is_change,
    parse_cell,
    verdict,
    worst,
)

TURNTABLE = "bullet:published-settings:turntable/1/metal"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("bullet:pendulum", "write ENGINE:CONFIG:FAMILY/SUBTASK/MATERIAL"),
        ("bullet:tuned:slope_slider", "9 set-ups: name subtask and material, as slope_slider/1"),
        ("bullet:best:pendulum/1/metal", "choose from published-settings, tuned"),
        ("bullet:tuned:cube_toss/4", "ablations are of GAUGE's families"),
    ],
)
def test_a_cell_that_is_none_is_refused(text, said):
    with pytest.raises(UserError, match=said):
        parse_cell(text)


def test_factors_are_of_the_configuration_s_own_settings():
    cell = parse_cell("genesis:published-settings:pendulum/1/metal")
    grids = {a.name: grid_of(cell, a) for a in ABLATIONS["genesis"]}
    assert grids["no default armature"] == {"default_armature": 0.0}
    assert is_change(cell, grids["no default armature"])
    assert not is_change(cell, {"default_armature": 0.1, "dt": "1/180"})
    from wmeval.eval.sweep.explain import COMMON

    common = {a.name: grid_of(cell, a) for a in COMMON}
    assert common["step / 10"] == {"dt": "1/1800"}
    assert common["iterations x 4"] == {"iterations": 200}


def test_the_worst_number_is_relative_to_what_is_right():
    result = CellResult(
        cell=parse_cell(TURNTABLE), key="k", status="ok",
        measurements=(
            Measurement(metric="a", truth="t", value=1.1, expected=1.0),
            Measurement(metric="b", truth="t", value=300.0, expected=200.0),
            Measurement(metric="c", truth="t", value=5.0),
            Measurement(metric="d", value=9.0, expected=1.0),
        ),
    )  # fmt: skip
    assert worst(result).metric == "b"
    assert worst(result, "a").metric == "a"
    assert worst(result, "nothing") is None


def test_the_verdict_names_what_closes_or_helps():
    base = Measurement(metric="period", truth="t", value=2.47, expected=1.25, unit="s")

    def trial(name, value):
        error = abs(value - 1.25)
        return Trial(name=name, settings={}, value=value, error=error, left=error / 1.22,
                     status="ok")  # fmt: skip

    closed = verdict(base, [trial("no armature", 1.254), trial("half", 1.9)])
    assert closed == "period 2.47 s where 1.25 is right: closed by no armature (1.254)"
    assert "nothing alone closes it; it helps: half" in verdict(base, [trial("half", 1.9)])
    assert "nothing that was tried closes it (1 changes)" in verdict(base, [trial("x", 2.4)])


def test_a_slider_that_is_too_fast_is_explained_by_the_step(tmp_path, capsys):
    cell = "bullet:published-settings:slope_slider/2/metal"
    with pytest.raises(SystemExit) as stop:
        main(["sweep", "--explain", cell, "--budget", "60", "--metric", "acceleration",
              "--out", str(tmp_path)])  # fmt: skip
    assert stop.value.code == 0
    assert "closed by step / 10" in capsys.readouterr().out
    (made,) = json.loads((tmp_path / "explain.json").read_text())
    assert made["trials"][0]["left"] < 0.15
    assert made["untried"] == []


def test_what_does_not_depart_or_cannot_run_is_said():
    still = explain(
        parse_cell("bullet:tuned:slope_slider/2/wood"), budget=30, metric="acceleration"
    )
    assert "does not depart" in still.verdict
    with pytest.raises(UserError, match="take no modulus"):
        explain(parse_cell("bullet:tuned:foam_shearing/1/soft"), budget=5)


def test_what_the_budget_does_not_cover_is_listed():
    made = explain(parse_cell(TURNTABLE), budget=1e-3)
    assert made.trials == ()
    assert made.verdict.startswith("nothing to explain: time_out")


@pytest.mark.accept
def test_the_creeping_cube_is_explained_by_the_step():
    made = explain(parse_cell(TURNTABLE), budget=120)
    assert made.metric == "rmse"
    assert "closed by step / 10" in made.verdict
