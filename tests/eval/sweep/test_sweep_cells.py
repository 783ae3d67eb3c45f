"""Cells of a sweep: a real engine against closed forms, and every way in which one can end."""

import math
import time

import numpy as np
import pytest

from wmeval.eval.sweep import planning, running
from wmeval.eval.sweep.cells import UNSEEN, parse_engines
from wmeval.eval.sweep.course import course_of
from wmeval.eval.sweep.depths import greatest_depth
from wmeval.eval.sweep.measure import reference_of
from wmeval.eval.sweep.prepared import prepare
from wmeval.eval.sweep.results import SweepResults
from wmeval.eval.sweep.running import run_cell
from wmeval.eval.sweep.tables import main_lines, number_lines
from wmeval.records import WorldLog
from wmeval.sim.engines import bullet
from wmeval.sim.world import open_world


def cell_of(task, config="tuned", engines="bullet", **grid):
    (cell,) = planning.plan(
        parse_engines(engines), planning.tasks_of(task), [config],
        {k: (v,) for k, v in grid.items()}, twice="none",
    )  # fmt: skip
    return cell


def number(result, metric, truth=None):
    found = result.measurement(metric, truth)
    assert found is not None, metric
    assert found.value is not None, found.reason
    return found.value


def test_the_slider_sticks_and_slides_as_coulomb_says():
    sticks = run_cell(cell_of("slope_slider/1/metal"), "k")
    assert sticks.status == "ok"
    assert number(sticks, "rmse") < 0.05  # mm, of a cube of 50 mm
    assert number(sticks, "displacement") < 5e-5
    slides = run_cell(cell_of("slope_slider/2/wood"), "k")
    found = slides.measurement("acceleration", "cube_slides")
    assert found.value == pytest.approx(found.expected, rel=3e-3)
    assert number(slides, "rmse") < 0.5
    assert found.expected == pytest.approx(2.58, abs=0.01)
    # Divided as the paper divides: by the real trials' own spread.
    rmse = slides.measurement("rmse")
    assert rmse.normalised == pytest.approx(rmse.value / rmse.baseline)
    assert rmse.baseline == 18


def test_the_ball_bounces_with_the_restitution_asked_for_when_tuned_and_not_by_default():
    tuned = run_cell(cell_of("bouncing_ball"), "k")
    assert number(tuned, "restitution") == pytest.approx(0.576733, rel=5e-3)
    assert number(tuned, "rmse") < 1.0
    default = run_cell(cell_of("bouncing_ball", "published-settings"), "k")
    off = default.measurement("restitution")
    assert off.expected == 0.576733
    assert off.error > 0.03
    assert number(default, "rmse") > 10 * number(tuned, "rmse")


def test_the_pendulum_swings_with_its_finite_amplitude_period():
    result = run_cell(cell_of("pendulum/1/metal", "published-settings"), "k")
    period = result.measurement("period", "pendulum_swings")
    assert period.value == pytest.approx(period.expected, rel=2e-4)
    assert abs(number(result, "energy_loss")) < 2e-3
    raw = result.measurement("pd_fourier")
    assert raw.normalised == pytest.approx(raw.value / raw.baseline)
    assert result.frames == 300
    assert result.hz == 180
    assert result.wall_s > 0
    assert result.cpu_s > 0
    assert len(result.sha256) == 64


def test_the_same_cell_twice_is_bit_identical():
    cell = cell_of("turntable/1/wood", "published-settings")
    assert run_cell(cell, "a").sha256 == run_cell(cell, "b").sha256


def test_a_grid_point_reaches_the_engine():
    coarse = run_cell(cell_of("bouncing_ball", dt="1/180"), "k")
    fine = run_cell(cell_of("bouncing_ball", dt="1/3600", iterations=20), "k")
    assert (coarse.hz, fine.hz) == (180, 3600)
    assert fine.settings["iterations"] == 20
    assert number(fine, "rmse") < number(coarse, "rmse") / 5
    cell = cell_of("bouncing_ball")
    unknown = run_cell(cell.model_copy(update={"grid": {"nonsense": 1}}), "k")
    assert unknown.status == "not_run"
    assert "nonsense" in unknown.reason


def test_what_cannot_be_run_says_why(nothing_installed):
    soft = run_cell(cell_of("foam_shearing/1/soft"), "k")
    assert soft.status == "not_run"
    assert "its solids give 0.68 of the modulus asked" in soft.reason
    absent = run_cell(cell_of("pendulum/1/metal", engines="isaac"), "k")
    assert (absent.status, absent.reason) == ("not_run", "Isaac Sim is not installed")


class Clock:
    """Set forward, it makes an engine slow at a set place, however busy the machine is."""

    late = 0.0

    @classmethod
    def perf_counter(cls):
        return time.perf_counter() + cls.late


class Spoilt(bullet.BulletEngine):
    """Bullet that goes wrong at 0.2 s."""

    how = "nan"

    def advance(self, action, until, probe):
        state, *rest = super().advance(action, until, probe)
        if float(state.times[-1]) >= 0.2:
            if self.how == "slow":
                Clock.late += 100.0
            elif self.how == "raise" or (self.how == "breaks" and state.times[-1] > 0.28):
                raise RuntimeError("the solver gave up")
            elif self.how == "lost":
                raise self._not_finite(0)
            else:
                value = 1e5 if self.how == "far" else math.nan
                moved = np.full_like(state.position, value)
                state = type(state)(
                    state.bodies, state.dt,
                    **{n: getattr(state, n) for n in state.ARRAYS if n != "position"},
                    position=moved,
                )  # fmt: skip
        return (state, *rest)


@pytest.mark.parametrize(
    ("how", "status", "said"),
    [
        ("nan", "diverged", "diverged at t = 0.2 s: a body has no finite position"),
        (
            "far",
            "diverged",
            "diverged at t = 0.2 s: a body is 1.73e+05 m away, the scene ends at 30 m",
        ),
        # It breaks three frames later at what went wrong.
        ("breaks", "diverged", "diverged at t = 0.2 s: a body has no finite position"),
        # So engines say it of themselves.
        ("lost", "diverged", "diverged: body 'ground' left the finite world at t = 0.2 s"),
        ("raise", "crash", "RuntimeError: the solver gave up at t = 0.167 s"),
        ("slow", "time_out", "time-out after 90 s, at t = 0.2 s of 0.567 s"),
    ],
)
def test_an_engine_that_fails_costs_its_cell_and_says_how(monkeypatch, how, status, said):
    monkeypatch.setattr(bullet, "BulletEngine", type("Faulty", (Spoilt,), {"how": how}))
    monkeypatch.setattr(running, "time", Clock)
    result = run_cell(cell_of("bouncing_ball", "published-settings"), "k", limit=90.0)
    assert (result.status, result.reason) == (status, said)
    # What it took is told however it ended.
    assert result.build_s > 0
    assert result.wall_s > 0
    assert result.measurements == ()
    assert result.ended <= 0.2
    assert result.seconds == pytest.approx(17 / 30)


def test_a_table_says_that_a_record_does_not_show_a_number_and_no_more():
    result = run_cell(cell_of("bouncing_ball", "published-settings"), "k", seconds=0.1)
    assert result.status == "ok"
    unseen = {m.metric for m in result.measurements if m.reason == UNSEEN}
    assert unseen  # A tenth of a second: the ball has not bounced yet.
    measured = tuple(
        m.model_copy(update={"value": None, "reason": UNSEEN}) if m.metric == "rmse" else m
        for m in result.measurements
    )
    result = result.model_copy(update={"measurements": measured})
    results = SweepResults(wmeval="0", engines=(result.cell.engine,), versions={}, cells=(result,))
    lines = number_lines(results, "published-settings")
    assert any(e.more == UNSEEN for line in lines for e in line.entries)
    assert main_lines(results, "published-settings")[0].entries[0].text == UNSEEN


def test_a_body_deep_in_the_ground_is_a_penetration(monkeypatch):
    class Sunk(bullet.BulletEngine):
        def advance(self, action, until, probe):
            state, *rest = super().advance(action, until, probe)
            position = state.position.copy()
            position[:, state.body("ball"), 2] -= 0.02
            parts = {n: getattr(state, n) for n in state.ARRAYS}
            return (type(state)(state.bodies, state.dt, **{**parts, "position": position}), *rest)

    cell = cell_of("bouncing_ball", "published-settings")
    fine = run_cell(cell, "k")
    monkeypatch.setattr(bullet, "BulletEngine", Sunk)
    result = run_cell(cell, "k")
    assert result.status == "penetration"
    assert fine.penetration_mm < 5 < result.penetration_mm <= 20 + fine.penetration_mm
    assert "mm deep" in result.reason
    assert number(result, "rmse") > 10


def test_depths_are_measured_in_the_frame_of_a_tilted_board():
    ready = prepare(cell_of("slope_slider/2/wood"))
    log = open_world(ready.spec).reset()
    state = log.state
    assert greatest_depth(ready.spec.scene, {}, state) < 1e-4
    i, board = state.body("cube"), ready.spec.scene.bodies[state.body("board")]
    w, x, y, z = board.quaternion_wxyz
    normal = np.array([2 * (x * z + w * y), 2 * (y * z - w * x), 1 - 2 * (x * x + y * y)])
    position = state.position.copy()
    position[:, i] -= 0.007 * normal
    parts = {n: getattr(state, n) for n in state.ARRAYS}
    sunk = type(state)(state.bodies, state.dt, **{**parts, "position": position})
    assert greatest_depth(ready.spec.scene, {}, sunk) == pytest.approx(0.007, abs=1e-4)


def test_the_closed_form_measures_itself_as_exact():
    ready = prepare(cell_of("bouncing_ball"))
    log = open_world(ready.spec).reset()
    rows = WorldLog.concatenate([log] * 18).state
    parts = {n: getattr(rows, n).copy() for n in rows.ARRAYS}
    parts["substep"] = np.arange(18) * ready.spec.clock.substeps
    form, true = reference_of(ready.card, "1", "rubber", np.arange(18) / 30)
    parts["position"][:, rows.body("ball")] = true
    state = type(rows)(rows.bodies, rows.dt, **parts)
    course = course_of(ready.card, "1", "rubber", ready.built, state)
    assert form.truth == "ball_bounces"
    assert np.abs(course.values[:, 0] - true).max() == 0
    from wmeval.eval.sweep.measure import measure

    found = {m.metric: m for m in measure(ready.card, "1", "rubber", ready.built, state)}
    assert found["rmse"].value == 0
    assert found["dtw"].value == 0
    assert found["restitution"].value == pytest.approx(0.576733, rel=1e-6)
    assert found["apex"].value == pytest.approx(found["apex"].expected, abs=1e-6)
