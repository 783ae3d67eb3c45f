"""A baseline of which something is gone, or which is of something else, does not pass."""

import re

import pytest

from wmeval.assets.gauge_cards import QUANTITY_UNITS
from wmeval.cli import main
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import COMPLETE, CellResult, Measurement, parse_engines
from wmeval.eval.sweep.compare import LEAST, compare, errors_of
from wmeval.eval.sweep.results import SweepResults
from wmeval.eval.sweep.sweeping import gather, write_results

TASKS = "slope_slider/2/wood,bouncing_ball"


def results_of(folder, engines="bullet", tasks=TASKS, version="1", status="ok") -> SweepResults:
    """A sweep in which every cell has one number."""
    cells = planning.plan(
        parse_engines(engines), planning.tasks_of(tasks), ["published-settings"], twice="none"
    )
    number = Measurement(metric="rmse", truth="t", value=1.0, unit="mm")
    numbers = (number,) if status in COMPLETE else ()
    made = [
        CellResult(cell=c, key=c.key(version), status=status, version=version, measurements=numbers)
        for c in cells
    ]
    return gather(folder, made, [], {})


def test_a_cell_or_an_engine_that_is_gone_is_lost(tmp_path):
    old = results_of(tmp_path, "bullet,newton")
    made = compare(old, results_of(tmp_path, "bullet", "bouncing_ball"))
    assert [str(c) for c in made.regressions] == [
        "lost: bullet:published-settings:slope_slider/2/wood: ok -> not in this sweep",
        "lost: engine newton: 2 cells -> not in this sweep",
    ]
    assert made.compared == 1
    # What was not measured before cannot be lost, and other shards run what is theirs.
    ball = results_of(tmp_path, tasks="bouncing_ball")
    assert not compare(results_of(tmp_path, status="crash"), ball).regressions
    names = {c.cell.name for c in old.cells}
    part = results_of(tmp_path, "bullet", "bouncing_ball")
    assert not compare(old, part, elsewhere=names).changes


@pytest.mark.parametrize("wrong", ["penetration", "energy_gain"])
def test_what_was_wrong_and_crashes_now_is_lost(tmp_path, wrong):
    deep, dead = (results_of(tmp_path, status=s) for s in (wrong, "crash"))
    assert {c.kind for c in compare(deep, dead).changes} == {"lost"}
    assert {c.kind for c in compare(dead, deep).changes} == {"found"}
    assert {c.kind for c in compare(results_of(tmp_path), deep).changes} == {"lost"}
    bare = deep.model_copy(
        update={"cells": tuple(c.model_copy(update={"measurements": ()}) for c in deep.cells)}
    )
    assert {c.after for c in compare(deep, bare).regressions} == {"missing"}


def with_number(tmp_path, **told):
    """A sweep in which each cell has this number."""
    results = results_of(tmp_path, tasks="bouncing_ball")
    number = (Measurement(**told),)
    cells = tuple(c.model_copy(update={"measurements": number}) for c in results.cells)
    return results.model_copy(update={"cells": cells})


@pytest.mark.parametrize(
    ("before", "little", "much", "told"),
    [
        (0.158991, 0.176657, 0.23, {"metric": "penetration", "unit": "mm"}),
        (0.0, 0.04, 0.06, {"metric": "penetration", "unit": "mm"}),
        (-0.000119, -0.000133, -0.0014,
         {"metric": "energy_loss", "unit": "1", "truth": "t", "expected": 0.0}),
        (1e-6, 4e-5, 7e-5, {"metric": "displacement", "unit": "m", "truth": "t", "expected": 0.0}),
        (20.0, 20.43, 20.5, {"metric": "rotation_error", "unit": "deg", "truth": "real"}),
        # By as much as the truth itself may be off, nothing got worse.
        (-0.000119, -0.0022, -0.0026,
         {"metric": "energy_loss", "unit": "1", "truth": "t", "expected": 0.0, "accuracy": 0.0023}),
        (1.0, 1.09, 1.11, {"metric": "sag", "unit": "m", "truth": "t", "expected": 1.0,
                           "accuracy": 0.1}),
        (1.0, 1.0009, 1.0011, {"metric": "sag", "unit": "m", "truth": "t", "expected": 1.0}),
    ],
)  # fmt: skip
def test_what_is_too_small_to_tell_is_no_regression(tmp_path, before, little, much, told):
    old = with_number(tmp_path, value=before, **told)
    assert not compare(old, with_number(tmp_path, value=little, **told)).changes
    assert not compare(with_number(tmp_path, value=little, **told), old).changes
    assert {c.kind for c in compare(old, with_number(tmp_path, value=much, **told)).changes} == {
        "worse"
    }


def test_every_unit_has_a_growth_that_never_counts():
    units = {*QUANTITY_UNITS.values(), "m", "m^2", "s", "1", "%", "deg", "rad", "m/s", "m/s^2"}
    assert units <= set(LEAST)
    assert all(x > 0 for x in LEAST.values())


def test_another_engine_under_the_same_name_is_told(tmp_path):
    old = results_of(tmp_path, "name=mine,adapter=newton", version="1.7")
    now = results_of(tmp_path, "name=mine,adapter=physx", version="1.8")
    assert compare(old, now).engines == ("engine mine: newton 1.7 in the baseline, physx 1.8 here",)
    assert compare(old, old).engines == ()


def test_a_baseline_of_something_else_does_not_pass(tmp_path, capsys):
    write_results(tmp_path, results_of(tmp_path, "bullet", "slope_slider/2/wood"))
    command = [
        "sweep", "gauge", "--engines", "bullet", "--tasks", "bouncing_ball", "--twice", "none",
        "--out", str(tmp_path / "a"), "--workers", "0", "--no-conformance", "--no-strips",
        "--baseline", str(tmp_path / "results.json"),
    ]  # fmt: skip
    with pytest.raises(SystemExit) as stop:
        main([*command, "--fail-on-regression"])
    assert stop.value.code == 2
    told = capsys.readouterr()
    assert "0 numbers compared, 1 got worse or were lost" in told.out
    assert "results.json has no number that this sweep has: name its engines" in told.err
    with pytest.raises(SystemExit) as stop:
        main(command)
    assert not stop.value.code


def test_cells_of_an_earlier_run_are_told(tmp_path, capsys):
    command = [
        "sweep", "gauge", "--engines", "bullet", "--tasks", "bouncing_ball", "--twice", "none",
        "--out", str(tmp_path / "a"), "--workers", "0", "--no-conformance", "--no-strips",
    ]  # fmt: skip
    said = []
    for more in ([], [], ["--overwrite"]):
        with pytest.raises(SystemExit):
            main([*command, *more])
        lines = capsys.readouterr().out.splitlines()
        said.append([one for one in lines if "kept from an earlier run" in one])
    assert [len(x) for x in said] == [0, 1, 0]
    assert re.fullmatch(
        r"1 of 1 cell kept from an earlier run \(\d{4}-\d\d-\d\d \d\d:\d\d\): --overwrite runs all"
        r" again", said[1][0],
    )  # fmt: skip


@pytest.mark.parametrize(("truth", "errors"), [("closed-form", (0.3, 0.3, 0.3)), ("real", None)])
def test_an_energy_loss_like_that_of_a_recording_is_no_smaller_error(truth, errors):
    assert errors_of(Measurement(metric="el", truth=truth, value=0.3, unit="1")) == errors


@pytest.mark.parametrize(
    ("deterministic", "other", "kinds"),
    [(True, {}, {"worse"}), (False, {}, set()), (True, {"baseline": 1.1}, set())],
)
def test_an_interval_over_the_same_trials_hides_no_regression(
    tmp_path, deterministic, other, kinds
):
    told = {"metric": "rmse", "truth": "real", "unit": "mm", "baseline": 1.0,
            "spread": 0.5, "trials": 3}  # fmt: skip

    def made(value, **more):
        results = with_number(tmp_path, value=value, low=value - 9, high=value + 9, **told | more)
        cells = [c.model_copy(update={"deterministic": deterministic}) for c in results.cells]
        return results.model_copy(update={"cells": tuple(cells)})

    assert {c.kind for c in compare(made(2.0), made(2.1, **other)).changes} == kinds
    assert not compare(made(2.0), made(2.03)).changes
