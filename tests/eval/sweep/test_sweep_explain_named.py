"""A number that is named is explained by what is right for it, and by what can run."""

import pytest

from wmeval.eval.sweep import explain as explaining
from wmeval.eval.sweep.ablations import ABLATIONS, applies
from wmeval.eval.sweep.cells import CellResult, Measurement
from wmeval.eval.sweep.explain import explain, named, parse_cell
from wmeval.eval.sweep.running import run_cell

CRADLE = "bullet:published-settings:newtons_cradle/1/metal"
PENDULUM = "bullet:published-settings:pendulum/2/metal"


@pytest.fixture(scope="module")
def cradle():
    return run_cell(parse_cell(CRADLE), "k", seconds=0.6)


def test_a_number_of_a_lossless_ideal_is_held_against_what_the_stated_restitution_gives(cradle):
    first, stated = (cradle.measurement(m, "cradle_transfers") for m in
                     ("mte_first", "mte_of_restitution"))  # fmt: skip
    assert (first.expected, first.ideal) == (100.0, "lossless")
    found = named(cradle, "mte_first")
    # The card's restitution is 0.2, and each of four impacts passes on (1 + e) / 2 of the speed.
    assert (found.metric, found.value) == ("mte_first", first.value)
    assert (found.expected, found.ideal) == (stated.expected, "")
    assert found.expected == pytest.approx(20, abs=0.1)


def test_what_only_the_ideal_has_is_not_explained(monkeypatch, cradle):
    calls = []

    def pretend(cell, key, **_):
        calls.append(cell.grid)
        return cradle

    monkeypatch.setattr(explaining, "run_cell", pretend)
    made = explain(parse_cell(CRADLE), budget=60, metric="lsd")
    assert made.verdict.startswith("nothing to explain: lsd 0.")
    assert made.verdict.endswith(" s, and 0.4322 s is right only if lossless")
    assert len(calls) == 1
    assert not made.trials


@pytest.mark.parametrize(("metric", "by"), [("el", "energy_loss"), ("pd_fourier", "period")])
def test_a_metric_of_a_record_by_itself_is_told_by_its_closed_form_s_number(
    monkeypatch, metric, by
):
    truth = Measurement(metric=by, truth="t", value=2.0, expected=1.0)
    alone = Measurement(metric=metric, value=2.1, baseline=1.14)

    def pretend(cell, key, **_):
        return CellResult(cell=cell, key=key, status="ok", measurements=(alone, truth), wall_s=0.0)

    monkeypatch.setattr(explaining, "run_cell", pretend)
    said = []
    made = explain(parse_cell(PENDULUM), budget=60, metric=metric, told=said.append)
    spaced = [x.replace("_", " ") for x in (metric, by)]
    assert made.metric == by
    assert made.verdict.startswith(f"{spaced[0]}, told by {spaced[1]} 2 where 1 is right: ")
    assert said[0].endswith(f": {spaced[0]}, told by {spaced[1]} 2 where 1 is right")


def test_a_loss_that_is_nothing_is_not_explained(monkeypatch):
    """0 is right: relative to it, everything is off."""
    kept = Measurement(
        metric="energy_loss", truth="t", value=-6.7e-6, expected=0.0, accuracy=0.0023
    )
    shown = Measurement(metric="el", value=0.004)

    def pretend(cell, key, **_):
        return CellResult(cell=cell, key=key, status="ok", measurements=(shown, kept), wall_s=0.0)

    monkeypatch.setattr(explaining, "run_cell", pretend)
    for metric in ("energy_loss", "el"):
        made = explain(parse_cell(PENDULUM), budget=60, metric=metric)
        assert "it does not depart" in made.verdict
        assert made.verdict.endswith("is off by less than what counts (0.01)")


def test_what_joints_forbid_is_not_tried():
    change = next(a for a in ABLATIONS["bullet"] if "maximal_coordinates" in a.settings)
    jointed = (CRADLE, PENDULUM, "bullet:tuned:wall_breaking/1/wood")
    assert [applies(change, parse_cell(c)) for c in jointed] == [False] * 3
    assert applies(change, parse_cell("bullet:tuned:turntable/1/metal"))


def test_a_change_that_cannot_run_is_tried_once(monkeypatch):
    """Nor with a finer step, nor on top of the best."""
    asked = []

    def pretend(cell, key, **_):
        asked.append(cell.grid)
        if "cone_friction" in cell.grid:
            return CellResult(cell=cell, key=key, status="not_run", reason="no cone here")
        value = 1.8 if "hull_margin" in cell.grid else 2.0
        m = Measurement(metric="mte", truth="t", value=value, expected=1.0)
        return CellResult(cell=cell, key=key, status="ok", measurements=(m,), wall_s=0.0)

    monkeypatch.setattr(explaining, "run_cell", pretend)
    made = explain(parse_cell("bullet:published-settings:turntable/1/metal"), budget=60)
    assert sum("cone_friction" in g for g in asked) == 1
    # What can run is tried on top of it all the same.
    assert any({"hull_margin", "contact_erp"} <= g.keys() for g in asked)
    assert "1 of them could not be run" in made.verdict
