"""Numbers of an ideal that the stated parameters have not: shown, and nothing is ranked by them."""

import pytest

from wmeval.assets.gauge_cards import family
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import CellResult, Measurement, parse_engines
from wmeval.eval.sweep.compare import errors_of
from wmeval.eval.sweep.explain import worst
from wmeval.eval.sweep.results import SweepResults
from wmeval.eval.sweep.tables import number_lines
from wmeval.eval.truths import predict


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
