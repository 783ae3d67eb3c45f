"""Every named trajectory of every scene goes through `wmeval rollout` and `wmeval pair`."""

import pytest
from sweep import ALL, compare, roll

pytestmark = [pytest.mark.gl, pytest.mark.accept]


@pytest.mark.parametrize(("name", "plan"), ALL)
def test_every_plan_is_recorded_and_paired(tmp_path, name, plan):
    roll(tmp_path / "rollout", name, plan, steps=48)
    compare(tmp_path / "pair", name, plan, steps=24)
