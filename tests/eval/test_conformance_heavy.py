"""Newton and Genesis, where they are installed, give what a few quick checks of the suite ask."""

import pytest
from engine_worlds import engine_here

from wmeval.eval.conformance import run_suite
from wmeval.jobs import installed

QUICK = ("free_fall", "friction_slide", "pendulum_period")


@pytest.mark.accept
@pytest.mark.parametrize("engine", ["newton", "genesis"])
def test_a_heavy_engine_gives_what_is_asked(engine):
    engine_here(engine)
    outcomes = run_suite(engine, checks=QUICK)
    assert [o.check for o in outcomes] == list(QUICK)
    assert {o.check: (o.status, o.effective) for o in outcomes if o.status != "ok"} == {}
    assert {o.version for o in outcomes} == {installed.version(engine)}
