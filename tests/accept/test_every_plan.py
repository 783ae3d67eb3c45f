"""Every named trajectory of every scene goes through `wmeval rollout` and `wmeval pair`."""

import pytest
from sweep import ALL, begins, compare, length, roll

pytestmark = [pytest.mark.gl, pytest.mark.accept]


@pytest.mark.parametrize(("name", "plan"), ALL)
def test_every_plan_is_recorded_in_full(tmp_path, name, plan):
    roll(tmp_path / "rollout", name, plan, steps=length(name, plan), fps="6")


@pytest.mark.parametrize(("name", "plan"), ALL)
def test_every_plan_is_paired_past_its_beginning(tmp_path, name, plan):
    steps = min(begins(name, plan) + 24, length(name, plan))
    compare(tmp_path / "pair", name, plan, steps, candidates=("twin:fps=10",))
