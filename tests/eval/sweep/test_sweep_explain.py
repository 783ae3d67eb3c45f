"""Explaining a cell: one change at a time, and the one that closes the gap is named."""

import json

import numpy as np
import pytest
from engine_worlds import engine_here

from wmeval.assets.gauge_cards import families
from wmeval.cli import main
from wmeval.errors import UserError
from wmeval.eval.metrics.trajectory import rmse
from wmeval.eval.sweep import explain as explaining
from wmeval.eval.sweep.ablations import (
    ABLATIONS,
    COMMON,
    applies,
    cell_of,
    grid_of,
    is_change,
)
from wmeval.eval.sweep.cells import CellResult, Measurement
from wmeval.eval.sweep.departures import departure, off
from wmeval.eval.sweep.explain import (
    Trial,
    cost,
    explain,
    parse_cell,
    seconds_of,
    verdict,
    worst,
)
from wmeval.eval.sweep.prepared import spaced
from wmeval.eval.sweep.running import run_cell
from wmeval.eval.sweep.scoring import scored, told

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
    common = {a.name: grid_of(cell, a) for a in COMMON if applies(a, cell)}
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
    assert verdict(base, [trial("x", 2.4)]).endswith("nothing that was tried closes it (1 change)")
    slow = [
        Trial(name=n, settings={}, value=None, error=None, left=None, status=s)
        for n, s in (("a", "time_out"), ("b", "crash"), ("c", "time_out"))
    ]
    assert verdict(base, [trial("x", 2.4), *slow]).endswith(
        "closes it (4 changes, 2 of them timed out, 1 of them crashed)"
    )


def test_what_lies_deep_in_a_body_is_explained_by_its_depth(monkeypatch):
    """Nothing else is off; of the changes one alone lets nothing sink in."""
    told = []

    def pretend(cell, key, **_):
        deep = 0.5 if cell.grid.get("dt") == "1/1800" else 8.0
        numbers = (
            Measurement(metric="period", truth="t", value=2.0, expected=1.0),
            Measurement(metric="penetration", value=deep, unit="mm"),
        )
        status, reason = ("penetration", "its corner is 8.0 mm deep") if deep > 5 else ("ok", "")
        return CellResult(
            cell=cell, key=key, status=status, reason=reason, measurements=numbers, wall_s=0.0
        )

    monkeypatch.setattr(explaining, "run_cell", pretend)
    made = explain(parse_cell(TURNTABLE), budget=60, told=told.append)
    assert made.verdict == "penetration 8 mm: closed by step / 10 (0.5)"
    assert told[0].endswith("penetration 8 mm (its corner is 8.0 mm deep)")
    # A number that is named is explained all the same.
    assert explain(parse_cell(TURNTABLE), budget=60, metric="period").metric == "period"


def test_a_gain_of_energy_is_explained_by_it_where_the_family_has_the_number():
    cell = parse_cell(TURNTABLE)
    rise = Measurement(metric="energy_rise", value=299.0, expected=0.0)
    period = Measurement(metric="period", truth="t", value=2.0, expected=1.0)
    for numbers, named in (((period, rise), "energy_rise"), ((period,), "period")):
        result = CellResult(cell=cell, key="k", status="energy_gain", measurements=numbers)
        assert worst(result).metric == named
        assert worst(result, "period").metric == "period"


def test_what_counts_is_said_in_a_number(monkeypatch):
    def pretend(cell, key, **_):
        numbers = (
            Measurement(metric="period", truth="t", value=2.001, expected=2.0, unit="s"),
            Measurement(metric="rmse", truth="t", value=0.1, baseline=18.0, unit="mm"),
            Measurement(metric="penetration", value=2.0, unit="mm"),
        )
        return CellResult(cell=cell, key=key, status="ok", measurements=numbers, wall_s=0.0)

    monkeypatch.setattr(explaining, "run_cell", pretend)
    said = [
        explain(parse_cell(TURNTABLE), budget=60, metric=m).verdict.partition("off by ")[2]
        for m in ("period", "rmse", "penetration")
    ]
    assert said == [f"less than what counts ({x})" for x in ("0.02 s", "3.6 mm", "5 mm")]


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


def test_what_no_change_closes_alone_is_tried_on_top_of_the_best(monkeypatch):
    """An engine whose number is right only without armature and with a gap, in this order."""

    def pretend(cell, key, **_):
        value = 2.0
        if cell.grid.get("default_armature") == 0.0:
            value = 1.6 if "gap" not in cell.grid else 1.05
        m = Measurement(metric="mte", truth="t", value=value, expected=1.0)
        return CellResult(cell=cell, key=key, status="ok", measurements=(m,), wall_s=0.0)

    monkeypatch.setattr(explaining, "run_cell", pretend)
    made = explain(parse_cell("genesis:published-settings:newtons_cradle/1/metal"), budget=60)
    assert made.trials[0].name == "no default armature + gaps of 0.1 mm"
    assert made.trials[0].settings == {"default_armature": 0.0, "gap": 1e-4}
    assert "closed by no default armature + gaps of 0.1 mm (1.05)" in made.verdict


def test_a_change_that_needs_a_finer_step_is_tried_with_one(monkeypatch):
    """Contacts by restitution blow up at the coarse step, and are right at the fine one."""

    def pretend(cell, key, **_):
        stiff, fine = cell.grid.get("contact") == "restitution", cell.grid.get("dt") == "1/1800"
        value = 1.0 if stiff and fine else 40.0 if stiff else 2.0
        m = Measurement(metric="apex", truth="t", value=value, expected=1.01)
        return CellResult(cell=cell, key=key, status="ok", measurements=(m,), wall_s=0.0)

    monkeypatch.setattr(explaining, "run_cell", pretend)
    made = explain(parse_cell("genesis:published-settings:bouncing_ball/1/rubber"), budget=60)
    assert "closed by contacts by restitution + step / 10 (1)" in made.verdict


def test_a_first_run_that_compiles_does_not_spend_the_budget(monkeypatch):
    calls = []

    def pretend(cell, key, **_):
        calls.append(cell.grid)
        m = Measurement(metric="apex", truth="t", value=2.0, expected=1.0)
        wall = 100.0 if len(calls) == 1 else 0.01
        return CellResult(cell=cell, key=key, status="ok", measurements=(m,), wall_s=wall)

    monkeypatch.setattr(explaining, "run_cell", pretend)
    made = explain(parse_cell("genesis:published-settings:bouncing_ball/1/rubber"), budget=101)
    assert len(made.trials) == len(calls) - 1
    assert made.untried == ()


def test_what_does_not_depart_or_cannot_run_is_said():
    still = explain(
        parse_cell("bullet:tuned:slope_slider/2/wood"), budget=30, metric="acceleration"
    )
    assert "does not depart" in still.verdict
    with pytest.raises(UserError, match="modulus"):
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


def test_ablations_are_options_that_their_engines_know():
    from importlib import import_module

    for engine, ablations in ABLATIONS.items():
        name = "bullet_options" if engine == "bullet" else engine
        module = import_module(f"wmeval.sim.engines.{name}")
        known = {**module.OPTIONS, **getattr(module, "CHOICES", {})}
        if engine == "bullet":
            known |= module._BODY_OPTIONS
        for ablation in ablations:
            assert set(ablation.settings) - {"iterations"} <= set(known), ablation.name
            assert set(ablation.where) <= set(known), ablation.name
            assert set(ablation.rates) <= {c.rates for c in families().values()}


def test_ablations_are_of_the_families_that_they_can_change():
    cloth = parse_cell("newton:published-settings:textile_bending/1/rayon")
    cradle = parse_cell("newton:published-settings:newtons_cradle/1/metal")
    xpbd = next(a for a in ABLATIONS["newton"] if "XPBD" in a.name)
    gap = next(a for a in COMMON if "gaps" in a.name)
    assert [applies(xpbd, c) for c in (cloth, cradle)] == [False, True]
    assert [applies(gap, c) for c in (cloth, cradle, parse_cell(TURNTABLE))] == [
        False, True, False,
    ]  # fmt: skip
    assert seconds_of(cradle, "") == 2.0
    assert seconds_of(cloth, "stretch") == 2.0
    assert seconds_of(parse_cell(TURNTABLE), "") is None


def pretending(monkeypatch, value_of):
    """An engine whose number is a function of its settings; what it was asked for."""
    asked = []

    def pretend(cell, key, **_):
        asked.append(cell.grid)
        m = Measurement(metric="sag", truth="t", value=value_of(cell.grid), expected=1.0)
        return CellResult(cell=cell, key=key, status="ok", measurements=(m,), wall_s=0.0)

    monkeypatch.setattr(explaining, "run_cell", pretend)
    return asked


@pytest.mark.parametrize(
    ("cell", "grid", "name"),
    [
        ("newton:published-settings:foam_stretching/1/soft", {"cell": 0.00625},
         "cells half as large"),
        ("newton:published-settings:textile_bending/1/rayon", {"cell": 0.005},
         "cells half as large"),
        ("newton:published-settings:textile_bending/1/rayon", {"particle_contact_damping": 0.0},
         "contacts of cloth undamped"),
        ("newton:published-settings:foam_stretching/1/soft",
         {"solver": "vbd", "iterations": 10, "warm_start": 1},
         "tetrahedra (VBD) in place of particles"),
        ("newton:tuned:foam_stretching/1/soft", {"solver": "mpm", "iterations": 250},
         "particles (MPM) in place of tetrahedra"),
        ("genesis:published-settings:foam_shearing/1/soft", {"volume": "fem"},
         "finite elements in place of particles"),
        ("genesis:tuned:foam_shearing/1/soft", {"volume": "mpm"},
         "particles in place of finite elements"),
        ("newton:published-settings:bouncing_ball/1/rubber", {"contact": "restitution"},
         "contacts by restitution"),
    ],
)  # fmt: skip
def test_whichever_one_setting_is_to_blame_is_found_among_all(monkeypatch, cell, grid, name):
    """The engine's number is right with this setting alone; all others are tried and cleared."""
    asked = pretending(monkeypatch, lambda g: 1.0 if grid.items() <= g.items() else 2.0)
    made = explain(parse_cell(cell), budget=60)
    assert made.verdict.endswith(f"closed by {name} (1)")
    assert len(asked) - 1 == len(made.trials) >= 5
    assert [t.left for t in made.trials[1:]] == [1.0] * (len(made.trials) - 1)
    assert {"iterations x 4", "step / 2"} <= {t.name for t in made.trials}


def test_an_engine_that_nothing_closes_is_not_explained_away(monkeypatch):
    pretending(monkeypatch, lambda g: 2.0)
    made = explain(parse_cell("newton:published-settings:foam_stretching/1/soft"), budget=60)
    assert "nothing that was tried closes it" in made.verdict


def test_finer_cells_are_weighed_against_the_budget(monkeypatch):
    foam = parse_cell("newton:published-settings:foam_stretching/1/soft")
    cloth = parse_cell("newton:published-settings:textile_bending/1/rayon")
    assert cost(foam, {"cell": 0.00625}) == pytest.approx(8)
    assert cost(cloth, {"cell": 0.005}) == pytest.approx(4)
    assert cost(cloth, {"dt": "1/900"}) == pytest.approx(5)
    assert cell_of(families()["bouncing_ball"]) is None
    assert cell_of(families()["rope_winding"]) is None
    # Whole kinds of body are tried only where a solver for the other is chosen.
    names = {a.name for a in ABLATIONS["newton"] if applies(a, foam)}
    assert "particles (MPM) in place of tetrahedra" not in names
    assert "particles' grid of 3 mm" in names


def test_a_cloth_departs_where_it_stretches_too_far():
    def with_stretch(value):
        return CellResult(
            cell=parse_cell(TURNTABLE), key="k", status="ok",
            measurements=(
                Measurement(metric="sag", truth="t", value=1.5, expected=1.0),
                Measurement(metric="stretch", value=value),
            ),
        )  # fmt: skip

    assert worst(with_stretch(0.4)).metric == "stretch"
    assert departure(with_stretch(0.4).measurements[1]) == pytest.approx(20.0)
    assert worst(with_stretch(0.019)).metric == "sag"
    assert off(with_stretch(0.4).measurements[1]) == 0.4


def test_a_constant_offset_of_areas_is_told_from_mechanics():
    true = 208.33 * (1 + 0.04 * np.linspace(0, 1, 30)[:, None] * np.ones(12))
    moved = true + np.linspace(-40, 40, 12)
    found = (scored(moved, true, "hungarian"), scored(true * 1.001, true, "barycentric"))
    published, ours = found
    assert published.offset == pytest.approx(published.error, rel=1e-9)
    assert published.error == pytest.approx(rmse(moved, true))
    # An offset of a facet is a factor of it, nearly: what is left is that times the strain.
    assert published.relative < 0.03 * published.error
    assert ours.error < 1.0
    said = told(found)
    assert "stand before anything moves" in said
    assert "closed by A(t)/A(0)" in said
    assert "closed by points of the body itself" in said
    # Where the mechanics is off, no way of scoring closes it.
    wrong = 208.33 * (1 + 0.4 * np.linspace(0, 1, 30)[:, None] * np.ones(12))
    both = [scored(wrong, true, m) for m in ("hungarian", "barycentric")]
    assert "closed" not in told(both)
    assert told(()) == ""


def test_a_gap_is_of_the_cradle_alone():
    made = spaced(families()["newtons_cradle"], 1e-4)
    assert made.bodies["ball_1"].shape.diameter == pytest.approx(0.0199)
    with pytest.raises(UserError, match="is of newtons_cradle, not of pendulum"):
        spaced(families()["pendulum"], 1e-4)
    with pytest.raises(UserError, match=r"give metres, 0 to less than 0\.02"):
        spaced(families()["newtons_cradle"], 0.02)


def test_a_shortened_record_ends_where_it_is_told():
    cell = parse_cell("bullet:published-settings:bouncing_ball/1/rubber")
    made = run_cell(cell, "k", seconds=0.2)
    assert (made.frames, made.ended, made.seconds) == (7, pytest.approx(0.2), pytest.approx(0.2))


@pytest.mark.accept
@pytest.mark.parametrize(
    ("cell", "metric", "closed_by", "seconds"),
    [
        # Two periods, of what swings as it should.
        ("genesis:published-settings:pendulum/1/metal", "period", "no default armature", 3.0),
        ("newton:published-settings:turntable/1/metal", "rmse", "XPBD in place of MuJoCo", 1.5),
    ],
)  # fmt: skip
def test_the_paper_s_odd_cells_are_explained(cell, metric, closed_by, seconds, monkeypatch):
    """Of everything that may be changed: the one, and no other (a tenth of the step takes long)."""
    engine_here(cell.partition(":")[0])
    common = tuple(a for a in COMMON if a.name != "step / 10")
    monkeypatch.setattr(explaining, "COMMON", common)
    made = explain(parse_cell(cell), budget=600, metric=metric, seconds=seconds)
    assert not made.untried
    assert (
        made.verdict.partition("; also")[0].rpartition(" (")[0].endswith(f"closed by {closed_by}")
    )
    left = {t.name: t.left for t in made.trials}
    others = {k: x for k, x in left.items() if k != closed_by}
    assert {"iterations x 4", "step / 2"} <= set(others)
    assert all(x is None or x > 0.5 for x in others.values()), others


def test_a_number_that_the_cell_has_not_is_answered_with_those_it_has(capsys):
    with pytest.raises(SystemExit) as stop:
        main(["sweep", "--explain", "bullet:tuned:bouncing_ball/1/rubber", "--metric", "foo"])
    assert stop.value.code == 2
    said = capsys.readouterr().err
    assert said.startswith("error: --metric foo: bouncing_ball/1/rubber has no such number: choose")
    assert "rmse, " in said
    assert "restitution" in said
