"""One trajectory of every scene through `wmeval rollout` and `wmeval pair`, in the normal tests."""

import pytest
from sweep import ALL, compare, roll

pytestmark = pytest.mark.gl
FIRST = list({name: (name, plan) for name, plan in reversed(ALL)}.values())[::-1]


@pytest.mark.parametrize(("name", "plan"), FIRST)
def test_a_plan_of_every_scene_is_recorded_and_paired(tmp_path, name, plan):
    roll(tmp_path / "rollout", name, plan, steps=8)
    compare(tmp_path / "pair", name, plan, steps=6, candidates=("twin",))


def test_a_turned_camera_is_recorded_and_paired(tmp_path):
    roll(tmp_path / "rollout", "MirrorRollingBall", "turn_third", steps=12)
    compare(tmp_path / "pair", "MirrorRollingBall", "turn_third", steps=12)
