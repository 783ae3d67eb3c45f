"""A grid's report: error against cost for every family, and how far an order may be trusted."""

import numpy as np
import pytest

from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import CellResult, Measurement, parse_engines
from wmeval.eval.sweep.conclude import convergence
from wmeval.eval.sweep.pictures import costed, grid_points, order_text
from wmeval.eval.sweep.report import write_sweep_report
from wmeval.eval.sweep.results import SweepResults

STEPS = {"1/180": 1 / 180, "1/360": 1 / 360, "1/720": 1 / 720, "1/1440": 1 / 1440}


def cells(task, *numbers, points=3, cpu=0.5):
    """Made-up results over so many steps, each with these measurements."""
    planned = planning.plan(
        parse_engines("bullet"), planning.tasks_of(task), ["tuned"],
        {"dt": list(STEPS)[:points]}, twice="none",
    )  # fmt: skip
    return [
        CellResult(cell=c, key=c.grid["dt"], status="ok", cpu_s=cpu, measurements=numbers)
        for c in planned
    ]


def expects(metric, *, truth="form", ideal=""):
    return Measurement(
        metric=metric, truth=truth, value=1.3, expected=1.2, unit="s", ideal=ideal
    )  # fmt: skip


RMSE = Measurement(metric="rmse", truth="cube_slides", value=2.0, unit="mm")
REAL = Measurement(metric="rmse", truth="real", value=3.0, unit="mm")
DEPTH = Measurement(metric="penetration", value=0.1, unit="mm")


@pytest.mark.parametrize(
    ("task", "numbers", "metric", "truth"),
    [
        ("slope_slider/2/wood", (expects("acceleration"), RMSE, REAL), "rmse", "cube_slides"),
        # No closed form has the course of a pendulum or a cradle: what its number is off.
        ("pendulum/1/metal", (DEPTH, expects("period"), expects("energy_loss")), "period", "form"),
        ("newtons_cradle/1/metal", (expects("mte_first", ideal="lossless"),
                                    expects("mte_of_restitution")), "mte_of_restitution", "form"),
        # A recorded motion has no closed form, and own trials are one truth more.
        ("turntable/1/metal", (RMSE.model_copy(update={"value": None}), REAL), "rmse", "real"),
        ("pendulum/1/metal", (REAL, expects("period")), "period", "form"),
    ],
)  # fmt: skip
def test_the_error_that_is_set_against_cost_is_what_the_family_has(task, numbers, metric, truth):
    made = cells(task, *numbers)
    found, why = costed(made)
    assert found is not None
    assert (found.metric, found.truth, why) == (metric, truth, "")
    points = grid_points(made, found.metric, found.truth)
    assert len(points) == 3
    right = next(m for m in numbers if (m.metric, m.truth) == (metric, truth))
    assert {p.error for p in points} == {right.error}


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: cells("pendulum/1/metal", DEPTH),
         "no closed form or recording says how far these cells are off"),
        (lambda: cells("pendulum/1/metal", expects("period"), cpu=None),
         "the CPU time of these cells is not known"),
    ],
)  # fmt: skip
def test_where_nothing_is_set_against_cost_it_says_why(tmp_path, made, said):
    made = made()
    assert costed(made) == (None, said)
    results = SweepResults(
        wmeval="0", engines=(made[0].cell.engine,), versions={}, cells=tuple(made)
    )  # fmt: skip
    page = write_sweep_report(results, tmp_path, strips=False).read_text()
    assert f"No plot of error against CPU time: {said}." in page


def converged(*errors):
    """Of a course that is off by these, from the coarsest step."""
    made = cells("pendulum/1/metal", points=len(errors))
    off = {r.key: e for r, e in zip(made, errors, strict=True)}
    true = np.linspace(0, 1, 30)[:, None] * np.ones(3)
    (one,) = convergence(made, lambda key: {"course": true * (1 + off[key])})
    return made, one


SQUARES = [h**2 for h in STEPS.values()]


def test_an_order_of_three_steps_is_not_checked_and_of_four_has_the_one_before():
    _, three = converged(*SQUARES[:3])
    assert three.order == pytest.approx(2.0)
    assert three.order_before is None
    assert order_text(three) == ", order 2 (three steps: unchecked)"
    _, four = converged(*SQUARES)
    assert (four.order, four.order_before) == (pytest.approx(2.0), pytest.approx(2.0))
    assert order_text(four) == ", order 2 (2 a step before)"
    _, late = converged(0.0, 0.01, 0.11, 0.13)
    assert late.order == pytest.approx(np.log2(5))
    assert order_text(late) == ", order 2.3 (none a step before)"
    _, none = converged(0.0, 0.1, 0.3)
    assert order_text(none) == ""


def test_the_report_says_what_an_order_is_of(tmp_path):
    made, one = converged(*SQUARES[:3])
    results = SweepResults(
        wmeval="0", engines=(made[0].cell.engine,), versions={}, cells=tuple(made),
        converged=(one,),
    )  # fmt: skip
    page = write_sweep_report(results, tmp_path, strips=False).read_text()
    assert "An order is of the three finest" in page


def test_a_pendulum_s_and_a_cradle_s_grid_draw_error_against_cost(tmp_path):
    for task, metric in (("pendulum/1/metal", "period"),
                         ("newtons_cradle/1/metal", "mte_of_restitution")):  # fmt: skip
        made = cells(task, expects(metric))
        results = SweepResults(
            wmeval="0", engines=(made[0].cell.engine,), versions={}, cells=tuple(made)
        )
        page = write_sweep_report(results, tmp_path, strips=False).read_text()
        assert page.count('alt="error against CPU time"') == 1
