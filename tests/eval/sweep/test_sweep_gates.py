"""What numbers rest on: the table, the gate, and a sweep whose engine is off."""

import json
import math
import sys

import pytest

from wmeval.assets.gauge_cards import families
from wmeval.cli import main
from wmeval.envs.gauge.configurations import ROWS
from wmeval.errors import UserError
from wmeval.eval.conformance import CHECKS
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import CellResult, Measurement, parse_engines
from wmeval.eval.sweep.compare import compare
from wmeval.eval.sweep.conformance_tables import conformance_lines, other_checks
from wmeval.eval.sweep.gates import (
    RESTS,
    WHOLE,
    checks_of,
    failed_rows,
    gated,
    kind_of,
    profile_of,
    rests_on,
    said,
    suites_of,
)
from wmeval.eval.sweep.report import render, write_sweep_report
from wmeval.eval.sweep.results import SweepResults, read_sweep
from wmeval.eval.sweep.sweeping import run_sweep
from wmeval.eval.sweep.tables import best_of, main_lines, number_lines, ranking
from wmeval.eval.sweep.toss import FAMILY


def cells_of(tasks, config="published-settings", engines="bullet", grid=""):
    return planning.plan(
        parse_engines(engines), planning.tasks_of(tasks), [config], planning.parse_grid(grid),
        twice="none",
    )  # fmt: skip


def test_every_family_rests_on_checks_that_exist():
    for card in families().values():
        for subtask in card.subtasks:
            checks = checks_of(card.id, subtask)
            assert checks, card.id
            for metric in card.metrics:
                assert set(rests_on(card.id, subtask, metric)) <= set(checks)
    assert checks_of(FAMILY, "20") == ("free_fall", "bounce_0.2", "friction_slide")
    named = {c for row in (*RESTS.values(), *WHOLE.values()) for c in row}
    assert named <= set(CHECKS)
    assert {f for f, _, _ in RESTS} == {*families(), FAMILY}
    with pytest.raises(UserError, match="add a row to RESTS"):
        rests_on("juggling", "1", "rmse")


def test_the_most_particular_row_is_taken():
    assert rests_on("newtons_cradle", "1", "lsd") == ("pendulum_period",)
    assert "bounce_0.2" in rests_on("newtons_cradle", "1", "mte_first")
    assert rests_on("turntable", "2", "rmse", "cube_on_turntable") == ("friction_slide",)
    # Up to the first contact it only falls; the whole record, against real data, does more.
    assert rests_on("nonsmooth_contact", "1", "rmse", "falls_until_contact") == ("free_fall",)
    assert "friction_slide" in rests_on("nonsmooth_contact", "1", "rmse", "real")
    assert rests_on("textile_flinging", "1", "sum", "curvature_sums_to_zero") == ()


def test_what_bends_counts_only_where_cloth_has_its_bending_stiffness():
    for family in ("textile_bending", "textile_flinging"):
        assert rests_on(family, "1", "rmse", "real") == ("cloth_stretch", "cloth_bend")
        (subtask, *_), (material, *_) = families()[family].subtasks, families()[family].materials
        (cell,) = cells_of(f"{family}/{subtask}/{material}", "tuned", "newton")
        rows = [row_of(cell, "cloth_stretch", 100.0, "ok"), row_of(cell, "cloth_bend", 1e-6, "off")]
        (m,) = gated([result_of(cell, 1.0)], rows)[0].measurements
        assert (m.counts, m.because) == (False, "cloth_bend: 1e-06 of 1e-05 N m")
    # Closed forms of a chain, without bending.
    assert rests_on("textile_bending", "1", "sag", "sheet_sags")[1:] == ("cloth_bend",)
    assert rests_on("textile_bending", "1", "sag_half", "sheet_sags") == ("cloth_stretch",)
    assert rests_on("textile_flinging", "1", "mode_1", "sheet_hangs") == ("cloth_stretch",)
    assert rests_on("textile_flinging", "1", "strain", "sheet_hangs") == ("cloth_stretch",)


def test_a_suite_whose_process_is_lost_says_of_every_check_why():
    suite, *_ = suites_of(cells_of("pendulum/1/metal"))
    rows = failed_rows(suite, "killed by SIGKILL", "3.2")
    assert [r["check"] for r in rows] == list(suite.checks)
    for row in rows:
        assert (row["status"], row["reason"]) == ("failed", "killed by SIGKILL")
        assert (row["effective"], row["off_by"], row["version"]) == (None, None, "3.2")
        assert (row["label"], row["config"]) == ("bullet", "published-settings")


@pytest.mark.parametrize("family", ["tablecloth_pulling", "funnel", "rotating_ball"])
def test_what_slides_on_cloth_counts_only_where_cloth_has_its_friction(family):
    """A rigid cube on a rigid board says nothing of it."""
    card = families()[family]
    (subtask, *_), (material, *_) = card.subtasks, card.materials
    (cell,) = cells_of(f"{family}/{subtask}/{material}", "tuned", "newton")
    rows = [
        row_of(cell, name, CHECKS[name].asked, "ok")
        for name in ("cloth_stretch", "friction_slide")
    ]  # fmt: skip
    rows.append(row_of(cell, "cloth_slide", 0.6, "off"))
    (m,) = gated([result_of(cell, 1.0)], rows)[0].measurements
    assert (m.counts, m.because) == (False, "cloth_slide: 0.6 of 0.3")
    _, _, dt, settings = profile_of(cell)
    (own,) = [s for s in suites_of([cell]) if (str(s.dt), s.settings) == (dt, settings)]
    assert {"cloth_stretch", "cloth_slide"} <= set(own.checks)


def test_checks_run_under_the_settings_of_their_cells():
    cells = cells_of("slope_slider/2/wood", grid="dt=1/360,1/720")
    suites = suites_of(cells)
    assert {c for s in suites for c in s.checks} == set(CHECKS)
    base = next(s.dt for s in suites if "free_fall" in s.checks)
    assert 1 / base == ROWS["published-settings", "bullet", "rigid"].hz
    assert [(str(s.dt), s.checks) for s in suites[-2:]] == [
        ("1/360", ("friction_slide",)),
        ("1/720", ("friction_slide",)),
    ]
    assert profile_of(cells[0])[2] == "1/360"
    # Bullet's free bodies are tuned otherwise than its other rigid ones.
    free = suites_of(cells_of("bouncing_ball", "tuned"))[-1]
    assert json.loads(free.settings)["options"]["split_impulse"] == 1
    assert free.checks == ("free_fall", "bounce_0.5")
    # A rope is solved by a solver of what bends: so is the friction that it rests on.
    suites = suites_of(cells_of("rope_winding", engines="newton"))
    (rope,) = [s for s in suites if str(s.dt) == "1/3600"]
    assert json.loads(rope.settings)["options"]["solver"] == "vbd"
    assert rope.checks == ("free_fall", "friction_slide")
    (textile,) = [s for s in suites if "cloth_stretch" in s.checks]
    assert kind_of("cloth_stretch") == "textile"
    assert set(textile.checks) == {"cloth_stretch", "cloth_bend", "cloth_slide"}


def test_what_is_not_installed_has_no_checks(nothing_installed):
    assert suites_of(cells_of("bouncing_ball", engines="isaac")) == []


def test_a_build_of_one_s_own_runs_the_suite_with_its_own_python():
    spec = f"newton,name=main,adapter=newton,python={sys.executable}"
    cells = cells_of("slope_slider/2/wood", engines=spec)
    suites = suites_of(cells)
    for cell in cells:
        own = [s for s in suites if s.engine == cell.engine]
        _, _, dt, settings = profile_of(cell)
        (one,) = [s for s in own if (str(s.dt), s.settings) == (dt, settings)]
        assert "friction_slide" in one.checks
        assert {c for s in own for c in s.checks} == set(CHECKS)
        told = json.loads(settings)["options"].get("python", "")
        assert told == cell.engine.python
    assert len({s.key("1") for s in suites}) == len(suites)


def test_a_fitted_file_has_its_own_checks(tmp_path):
    path = tmp_path / "fit.yaml"
    path.write_text("family: pendulum\nfitted_on: first half\nhz: 720\n")
    (suite,) = suites_of(cells_of("pendulum/1/metal", str(path)))
    assert (str(suite.dt), suite.checks) == ("1/720", ("pendulum_period", "pendulum_energy"))


def row_of(cell, check, effective, status, reason=""):
    label, config, dt, settings = profile_of(cell)
    c = CHECKS[check]
    return {
        "label": label, "config": config, "dt": dt, "settings": settings, "check": check,
        "asked": c.asked, "unit": c.unit, "effective": effective, "status": status,
        "reason": reason, "tolerance": c.tolerance, "quantity": c.quantity,
        "off_by": None if effective is None else effective - c.asked,
    }  # fmt: skip


def result_of(cell, value, metric="rmse"):
    m = Measurement(metric=metric, truth="cube_slides", value=value, unit="mm")
    return CellResult(cell=cell, key="k", status="ok", measurements=(m,))


def test_an_off_parameter_takes_numbers_out_and_says_which():
    (cell,) = cells_of("textile_stretching/1/rayon", engines="newton")
    rows = [row_of(cell, "cloth_stretch", 33.0, "off")]
    (one,) = gated([result_of(cell, 1.0)], rows)
    (m,) = one.measurements
    assert (m.counts, m.because) == (False, "cloth_stretch: 33 of 100 N/m")
    (one,) = gated([result_of(cell, 1.0)], [row_of(cell, "cloth_stretch", 99.0, "ok")])
    assert (one.measurements[0].counts, one.measurements[0].because) == (True, "")
    (one,) = gated([result_of(cell, 1.0)], [])
    assert one.measurements[0].counts is None
    # Another step is another engine: its checks do not speak for this cell.
    other = {**rows[0], "dt": "1/9000"}
    (m,) = gated([result_of(cell, 1.0)], [other])[0].measurements
    assert (m.counts, m.because) == (False, "cloth_stretch: not run under its settings")
    failed = row_of(cell, "cloth_stretch", None, "failed", "it tore")
    assert said(failed) == "cloth_stretch: failed (it tore)"


def test_checks_of_another_mesh_do_not_speak_for_a_cell():
    """They are run on the families' cells; of coarser ones an engine makes something else."""
    grid = "cell=0.04,0.01"
    coarse, own = cells_of("textile_stretching/1/rayon", engines="newton", grid=grid)
    for cell, counts, because in (
        (coarse, False, "cloth_stretch: not run with cells of 40 mm"), (own, True, "")
    ):  # fmt: skip
        rows = [row_of(cell, "cloth_stretch", 100.0, "ok")]
        (m,) = gated([result_of(cell, 1.0)], rows)[0].measurements
        assert (m.counts, m.because) == (counts, because)
        assert gated([result_of(cell, 1.0)], [])[0].measurements[0].counts is None
    # Friction of a cube on a table has no mesh, and off is off on any.
    (pulled, *_) = cells_of("tablecloth_pulling/1/wood", engines="newton", grid="cell=0.02")
    names = ("cloth_stretch", "cloth_slide", "friction_slide")
    rows = [row_of(pulled, n, CHECKS[n].asked, "ok") for n in names[:2]]
    rows.append(row_of(pulled, "friction_slide", 0.1, "off"))
    (m,) = gated([result_of(pulled, 1.0)], rows)[0].measurements
    assert m.because == (
        "cloth_stretch, cloth_slide: not run with cells of 20 mm; friction_slide: 0.1 of 0.3"
    )


def test_what_does_not_count_is_shown_and_not_ranked():
    cells = cells_of("slope_slider/2/wood", engines="bullet,newton,genesis")
    near, far, unknown = (result_of(c, v) for c, v in zip(cells, (1.0, 5.0, 0.5), strict=True))
    rows = [row_of(cells[0], "friction_slide", 0.1, "off"),
            row_of(cells[1], "friction_slide", 0.3, "ok")]  # fmt: skip
    made = gated([near, far, unknown], rows)
    results = SweepResults(wmeval="0", engines=tuple(c.engine for c in cells), versions={},
                           cells=tuple(made))  # fmt: skip
    line = next(x for x in main_lines(results, "published-settings") if x.what == "RMSE")
    assert [e.best for e in line.entries] == [False, True, False]
    assert line.entries[0].idle == "does not count: friction_slide: 0.1 of 0.3"
    assert line.entries[2].idle == "does not count: friction_slide: not run under its settings"
    assert line.entries[0].text != "–"


@pytest.mark.parametrize(
    ("status", "best"),
    [("ok", [True, False]), ("penetration", [False, True]), ("energy_gain", [False, True])],
)
def test_a_cell_in_which_something_is_wrong_is_never_the_best(status, best):
    cells = cells_of("slope_slider/2/wood", engines="bullet,newton")
    made = [result_of(c, v) for c, v in zip(cells, (1.0, 5.0), strict=True)]
    number = Measurement(metric="acceleration", truth="cube_slides", value=1.0, expected=1.1)
    made = [r.model_copy(update={"measurements": (*r.measurements, number)}) for r in made]
    made[0] = made[0].model_copy(update={"status": status})
    made[1] = made[1].model_copy(update={"measurements": (
        made[1].measurements[0], number.model_copy(update={"value": 1.5})
    )})  # fmt: skip
    results = SweepResults(wmeval="0", engines=tuple(c.engine for c in cells), versions={},
                           cells=tuple(made))  # fmt: skip
    line = next(x for x in main_lines(results, "published-settings") if x.what == "RMSE")
    assert [e.best for e in line.entries] == best
    assert status == "ok" or line.entries[0].more.endswith(status.replace("_", " "))
    (line,) = number_lines(results, "published-settings")
    assert [e.best for e in line.entries] == best


def test_an_engine_whose_friction_is_off_ends_last_among_the_tosses():
    cells = cells_of("cube_toss/4", engines="bullet,newton")

    def tossed(cell, error, counts):
        m = Measurement(metric="position_error", truth="real", value=error, counts=counts,
                        because="" if counts else "free_fall: 9 of 9.81 m/s^2")  # fmt: skip
        return CellResult(cell=cell, key="k", status="ok", measurements=(m,))

    made = ranking([tossed(cells[0], 1.0, False), tossed(cells[1], 50.0, True)])
    assert [s.result.cell.engine.label for s in made] == ["newton", "bullet"]
    assert [s.rank for s in made] == [1, 0]


@pytest.fixture(scope="module")
def loose(tmp_path_factory):
    """Bullet that bounces from 10 m/s only, and Bullet as it is."""
    out = tmp_path_factory.mktemp("gates") / "loose"
    cells = cells_of("bouncing_ball", "tuned", grid="restitution_threshold=0.01,10.0")
    return out, run_sweep(cells, out, workers=0)


def test_a_sweep_gates_its_numbers(loose):
    out, results = loose
    good, bad = results.cells
    assert all(m.counts for m in good.measurements)
    rmse = bad.measurement("rmse")
    assert rmse.counts is False
    assert rmse.because == "bounce_0.5: 0 of 0.5"
    rows = [r for r in results.rows if r["metric"] == "rmse"]
    assert [r["counts"] for r in rows] == [True, False]
    assert read_sweep(out) == results
    whole = {r["check"] for r in results.conformance}
    assert whole == set(CHECKS)
    assert all(
        r["off_by"] == pytest.approx(r["effective"] - r["asked"])
        for r in results.conformance if r["effective"] is not None
    )  # fmt: skip


def test_the_page_and_a_comparison_tell_the_gate(loose):
    out, results = loose
    page = write_sweep_report(results, out, strips=False).read_text()
    assert "does not count: bounce_0.5: " in page
    assert "Which checks a number rests on" in page
    heads, lines = conformance_lines(results.conformance)
    assert heads == ["bullet, tuned"]
    assert [x.check for x in lines] == list(CHECKS)
    assert {o.check for o in other_checks(results.conformance)} == {"free_fall", "bounce_0.5"}
    good, _ = results.cells
    before = results.model_copy(update={"cells": (good,)})
    fallen = good.model_copy(update={"measurements": tuple(
        m.model_copy(update={"counts": False, "because": "bounce_0.5: 0 of 0.5"})
        for m in good.measurements
    )})  # fmt: skip
    made = compare(before, results.model_copy(update={"cells": (fallen,)}))
    assert {(c.kind, c.after) for c in made.changes} == {("lost", "does not: bounce_0.5: 0 of 0.5")}


def test_without_the_suite_nothing_is_said_to_count(tmp_path, capsys):
    with pytest.raises(SystemExit):
        main(
            ["sweep", "gauge", "--tasks", "slope_slider/1/wood", "--out", str(tmp_path / "s"),
             "--workers", "0", "--no-conformance", "--no-strips"]
        )  # fmt: skip
    assert "conformance was not run" in capsys.readouterr().out
    results = read_sweep(tmp_path / "s")
    told = {m.counts for c in results.cells for m in c.measurements if m.metric != "penetration"}
    assert told == {None}
    assert "The conformance suite was not run" in (tmp_path / "s" / "report.html").read_text()


@pytest.mark.parametrize(
    ("scores", "best"),
    [([1.0, 1.0001, 2.0], [True, True, False]), ([1.0, 1.0001], [False, False]),
     ([1.0, math.inf], [True, False]), ([1.0], [False]), ([math.inf, math.inf], [False, False]),
     ([1.0, 1.0001, math.inf], [False, False, False])],
)  # fmt: skip
def test_equal_to_the_digits_shown_is_equally_good(scores, best):
    assert best_of(scores) == best


def test_why_a_number_does_not_count_is_a_footnote_said_once(tmp_path):
    cells = cells_of("slope_slider/2/wood", engines="bullet,newton")
    rows = [row_of(cells[0], "friction_slide", 0.1, "off"),
            row_of(cells[1], "friction_slide", 0.3, "ok")]  # fmt: skip
    made = gated([result_of(c, v) for c, v in zip(cells, (1.0, 5.0), strict=True)], rows)
    results = SweepResults(wmeval="0", engines=tuple(c.engine for c in cells), versions={},
                           cells=tuple(made))  # fmt: skip
    page = render(results, tmp_path, strips=False)
    assert "<sup>a</sup>" in page
    assert page.count("<sup>a</sup> does not count: friction_slide: 0.1 of 0.3") == 1
