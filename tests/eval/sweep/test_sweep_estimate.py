"""How long a sweep still takes, from what has ended."""

import pytest

from wmeval.eval.conformance import CHECKS
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import parse_engines
from wmeval.eval.sweep.estimate import Estimate, clock, cost_of
from wmeval.eval.sweep.gates import kind_of, suites_of


def cells_of(tasks, engines="bullet", config="published-settings", grid=""):
    return planning.plan(
        parse_engines(engines), planning.tasks_of(tasks), [config], planning.parse_grid(grid),
        twice="none",
    )  # fmt: skip


def test_a_cell_costs_its_substeps():
    (ball,) = cells_of("bouncing_ball")
    assert cost_of(ball) == (("bullet", "rigid"), pytest.approx(18 / 30 * 180))
    (fine,) = cells_of("bouncing_ball", grid="dt=1/1800")
    assert cost_of(fine)[1] == pytest.approx(18 / 30 * 1800)
    (foam,) = cells_of("foam_stretching/1/soft", "newton")
    assert cost_of(foam)[0] == ("newton", "volume")
    assert cost_of(foam)[1] > 20 * cost_of(ball)[1]
    # Nothing to run takes no time.
    assert cost_of(*cells_of("foam_stretching/1/soft", "isaac"))[1] >= 0
    costs = {cost_of(s) for s in suites_of([ball]) if kind_of(s.checks[0]) != "rigid"}
    # Of cloth and foam Bullet says at once that it has none: they do not tell a suite's pace.
    assert costs == {(("bullet", "suite"), 0.0)}
    (rigid,) = [s for s in suites_of([ball]) if "free_fall" in s.checks]
    assert cost_of(rigid)[1] == pytest.approx(180 * sum(CHECKS[c].seconds for c in rigid.checks))


def test_the_rest_is_told_by_an_engine_s_own_speed():
    cells = cells_of("bouncing_ball,pendulum/1/metal", "bullet,newton")
    made = Estimate(cells, workers=1)
    assert made.left() is None
    made.ended(0, 18.0)  # a second a frame
    # The other engine has shown nothing yet: as fast as what is known.
    assert made.left() == pytest.approx(300 + 18 + 300)
    made.ended(2, 1.8)
    assert made.left() == pytest.approx(300 + 30)
    assert Estimate(cells, workers=2)._workers == 2
    made.ended(1, 300.0)
    made.ended(3, 30.0)
    assert made.left() == 0


def test_the_first_cell_s_compiling_is_not_expected_of_the_others():
    made = Estimate(cells_of("bouncing_ball,pendulum/1/metal,slope_slider/1"), workers=1)
    made.ended(0, 218.0, build=200.0)
    made.ended(1, 302.0, build=2.0)
    assert made.left() == pytest.approx(3 * (9 + 2))


def test_nothing_is_said_before_every_kind_of_body_has_shown_its_pace():
    tasks = "bouncing_ball,textile_bending/1/rayon"
    made = Estimate(cells_of(tasks, "newton,genesis"), workers=1)
    made.ended(0, 2.5, build=2.4)
    assert made.left() is None  # how slow a textile is nobody knows
    made.ended(1, 60.0, build=2.0)
    assert made.left() == pytest.approx(0.1 + 58.0 + 2 * 2.0)


def test_what_is_not_run_takes_its_little_time():
    made = Estimate(cells_of("bouncing_ball,textile_bending", "bullet"), workers=1)
    made.ended(0, 1.0, build=0.9)
    assert made.left() == 0.0
    made.ended(1, 0.1)
    assert made.left() == pytest.approx(5 * 0.1)


def test_time_is_said_as_people_say_it():
    assert [clock(x) for x in (0.01, 40.2, 600, 4800, 7260)] == [
        "1 s", "40 s", "10 min", "80 min", "2 h 1 min",
    ]  # fmt: skip


def test_a_suite_says_nothing_of_how_long_a_cell_is_built():
    cells = cells_of("bouncing_ball,slope_slider/1")
    suites = suites_of(cells)
    made = Estimate([*suites, *cells], workers=1)
    for k in range(len(suites)):
        made.ended(k, 4.0)
    assert made.left() is None
    costs = [cost_of(c)[1] for c in cells]
    made.ended(len(suites), costs[0] / 10 + 2.0, build=2.0)  # 10 substeps a second
    assert made.left() == pytest.approx(sum(costs[1:]) / 10 + 2.0 * len(costs[1:]))
    # Nor does a cell whose process did not come back.
    made.ended(len(suites) + 1, costs[1] / 10)
    assert made.left() == pytest.approx(sum(costs[2:]) / 10 + 2.0 * len(costs[2:]))
