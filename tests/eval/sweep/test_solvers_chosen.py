"""Solvers of ``tuned`` are chosen by the conformance suite: they pass what the common one fails."""

import pytest
from engine_worlds import engine_here

from wmeval.assets.gauge_cards import families
from wmeval.envs.gauge.configurations import settings_of
from wmeval.envs.gauge.solver_rows import CHOSEN_BY, OF_FAMILY, ROWS, TUNED
from wmeval.eval.conformance import CHECKS, run_suite
from wmeval.eval.sweep.gates import checks_of


def test_every_other_solver_names_the_checks_that_it_was_chosen_by():
    other = {
        (engine, name)
        for (config, engine, name), row in OF_FAMILY.items()
        if config == TUNED and row.solver != ROWS[TUNED, engine, families()[name].rates].solver
    }
    assert other == set(CHOSEN_BY)
    for (_, name), checks in CHOSEN_BY.items():
        rests = {c for s in families()[name].subtasks for c in checks_of(name, s)}
        assert set(checks) <= rests <= set(CHECKS), name


def outcomes(engine):
    """Check, status under the chosen row and under the engine's row of rigid bodies."""
    common = ROWS[TUNED, engine, "rigid"]
    out = {}
    for (of, name), checks in CHOSEN_BY.items():
        if of != engine or not checks:
            continue
        own = settings_of(families()[name], engine, TUNED)
        chosen = run_suite(engine, own.config, checks=checks, dt=own.dt)
        plain = run_suite(engine, common.config, checks=checks, dt=own.dt)
        out[name] = [(a.check, a.status, b.status) for a, b in zip(chosen, plain, strict=True)]
    return out


def test_bullet_s_other_solver_bounces_as_asked_where_its_common_one_does_not():
    found = outcomes("bullet")
    assert set(found) == {"bouncing_ball", "slope_contact", "nonsmooth_contact"}
    assert all(row == [("bounce_0.5", "ok", "off")] for row in found.values())


@pytest.mark.accept
def test_newton_s_other_solver_bounces_as_asked_where_its_common_one_does_not():
    engine_here("newton")
    found = outcomes("newton")
    assert set(found) == {"bouncing_ball", "nonsmooth_contact"}
    assert all(row == [("bounce_0.5", "ok", "off")] for row in found.values())
