"""Numbers of an ideal that the stated parameters have not: shown, and nothing is ranked by them."""

from fractions import Fraction

import numpy as np
import pytest

from wmeval.assets.gauge_cards import family
from wmeval.envs.gauge.build import build
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import CellResult, Measurement, parse_engines
from wmeval.eval.sweep.compare import errors_of
from wmeval.eval.sweep.explain import worst
from wmeval.eval.sweep.measure import measure
from wmeval.eval.sweep.results import SweepResults
from wmeval.eval.sweep.tables import main_lines, number_lines
from wmeval.eval.truths import predict
from wmeval.records import StateLog
from wmeval.scene import DYNAMIC


def passed_on(cell, value):
    (form,) = predict(family("newtons_cradle"), "1", "metal")
    names = ("mte_first", "mte_of_restitution")
    return CellResult(
        cell=cell, key=cell.engine.label, status="ok",
        measurements=tuple(
            Measurement(
                metric=n, truth=form.truth, value=value, expected=form.numbers[n].value,
                unit=form.numbers[n].unit, ideal=form.numbers[n].ideal, counts=True,
            )
            for n in names
        ),
    )  # fmt: skip


def lines_of(**values):
    cells = planning.plan(
        parse_engines(",".join(values)), planning.tasks_of("newtons_cradle/1/metal"), ["tuned"], {},
        twice="none",
    )  # fmt: skip
    made = [passed_on(c, v) for c, v in zip(cells, values.values(), strict=True)]
    results = SweepResults(
        wmeval="0", engines=tuple(c.engine for c in cells), versions={}, cells=tuple(made)
    )
    return {line.what: line for line in number_lines(results, "tuned")}, made


def test_an_engine_that_ignores_restitution_is_not_the_best_cradle():
    # What 0.2 passes on through impacts in turn is 20 %; one that loses nothing passes on all.
    lines, made = lines_of(bullet=29, physx=24, newton=98)
    lossless, stated = lines["mte first [%]"], lines["mte of restitution [%]"]
    assert [e.best for e in lossless.entries] == [False, False, False]
    assert lossless.expected == "100 % if lossless"
    assert [e.best for e in stated.entries] == [False, True, False]
    # The best is not near: none is.
    assert stated.expected.endswith("(none within 2 %)")
    assert worst(made[0]).metric == "mte_of_restitution"
    assert errors_of(made[0].measurements[0]) is None
    assert errors_of(made[0].measurements[1])[0] == pytest.approx(9, abs=0.1)


def test_a_number_that_some_engine_has_is_not_said_to_be_nobodys():
    lines, _ = lines_of(bullet=29, physx=20.1)
    assert "none" not in lines["mte of restitution [%]"].expected


def test_what_takes_impacts_without_loss_is_marked():
    (form,) = predict(family("newtons_cradle"), "1", "metal")
    marked = {name for name, n in form.numbers.items() if n.ideal}
    assert marked == {"mte_first", "lsd"}


ITSELF = {
    # metric, baseline, the form's number, values of which the last is the truest
    "pendulum/1/metal": ("pd_fourier", 1.14, "period", (1.43, 1.11, 1.25)),
    "newtons_cradle/1/metal": ("mte_first", 93.02, "mte_of_restitution", (98.0, 29.0, 20.0)),
    "pendulum/2/metal": ("el", 0.0, "energy_loss", (0.9, -0.2, 0.01)),
}


def results_by(task, metric, baseline, number, values):
    (form,) = predict(family(task.split("/")[0]), *task.split("/")[1:])
    said = form.numbers[number]
    cells = planning.plan(
        parse_engines("bullet,physx,newton"), planning.tasks_of(task), ["tuned"], {}, twice="none"
    )
    made = tuple(
        CellResult(
            cell=c, key=c.engine.label, status="ok",
            measurements=(
                Measurement(metric=metric, value=v, unit=said.unit, baseline=baseline, counts=True),
                Measurement(metric=number, truth=form.truth, value=v, expected=said.value,
                            unit=said.unit, ideal=said.ideal, counts=True),
            ),
        )
        for c, v in zip(cells, values, strict=True)
    )  # fmt: skip
    return SweepResults(wmeval="0", engines=tuple(c.engine for c in cells), versions={}, cells=made)


@pytest.mark.parametrize("task", ITSELF)
def test_the_truest_is_the_best_and_not_the_nearest_to_a_recording(task):
    results = results_by(task, *ITSELF[task])
    (line,) = [x for x in main_lines(results, "tuned") if any(e.best for e in x.entries)]
    assert [e.best for e in line.entries] == [False, False, True]


@pytest.mark.parametrize("task", ["pendulum/1/metal", "pendulum/2/metal"])
def test_the_best_is_by_the_closed_form_s_number_and_not_by_what_frames_show(task):
    """A peak between frames is 0.004 of an energy, and a period is a whole bin of the spectrum."""
    metric, _, number, _ = ITSELF[task]
    results = results_by(task, *ITSELF[task][:3], (0.004, 0.005, 0.006))
    (true,) = {m.expected for r in results.cells for m in r.measurements if m.metric == number}
    # The last shows the least, and the first is the truest.
    shown = dict(zip(("bullet", "physx", "newton"), (3e-3, 2e-3, 1e-3), strict=True))
    off = dict(zip(shown, (7e-6, 6e-5, 8e-5), strict=True))
    cells = tuple(
        r.model_copy(update={"measurements": tuple(
            m.model_copy(update={"value": true + (shown if m.metric == metric else off)[r.key]})
            for m in r.measurements
        )})
        for r in results.cells
    )  # fmt: skip
    made = results.model_copy(update={"cells": cells})
    (line,) = [x for x in main_lines(made, "tuned") if any(e.best for e in x.entries)]
    assert [e.best for e in line.entries] == [True, False, False]
    (told,) = number_lines(made, "tuned")
    assert [e.best for e in told.entries] == [True, False, False]


def test_rests_which_no_closed_form_has_with_the_stated_loss_have_no_best():
    results = results_by("newtons_cradle/1/metal", "lsd", 0.38, "lsd", (0.1, 0.43, 0.38))
    assert not any(e.best for x in main_lines(results, "tuned") for e in x.entries)


def test_nearer_to_a_recording_is_no_regression_undone():
    results = results_by("newtons_cradle/1/metal", "mte_first", 93.02, "mte_first", (98, 29, 20))
    assert {errors_of(m) for r in results.cells for m in r.measurements} == {None}


def test_published_rests_are_read_off_positions_as_motion_capture_has_them():
    # 0.38 s is published; with the engine's speeds the same course rests half its period.
    card = family("newtons_cradle")
    built = build(card, "1", "metal")
    (form,) = predict(card, "1", "metal")
    t = np.arange(120) / 30
    names = tuple(b.name for b in built.scene.bodies)
    ball, shape = names.index("ball_5"), (len(t), len(names))
    position, velocity = np.zeros((*shape, 3)), np.zeros((*shape, 3))
    position[:, ball] = form.trajectory(t)
    late, early = form.trajectory(t + 1e-6), form.trajectory(np.maximum(t - 1e-6, 0))
    velocity[:, ball] = (late - early) / 2e-6
    state = StateLog(
        names, Fraction(1, 30), np.arange(len(t)), position, np.tile([1.0, 0, 0, 0], (*shape, 1)),
        velocity, np.zeros((*shape, 3)), np.ones(shape, bool), np.full(shape, DYNAMIC, np.uint8),
    )  # fmt: skip
    rests = {m.truth: m.value for m in measure(card, "1", "metal", built, state)
             if m.metric == "lsd"}  # fmt: skip
    assert rests[""] == pytest.approx(11 / 30)
    assert rests[form.truth] == pytest.approx(13 / 30)
