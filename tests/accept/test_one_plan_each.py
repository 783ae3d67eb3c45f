"""One trajectory of every scene through `wmeval rollout` and `wmeval pair`, in the normal tests."""

import pytest
from sweep import ALL, acting, begins, compare, roll

pytestmark = pytest.mark.gl
NAMES = tuple(dict.fromkeys(name for name, _ in ALL))
# Of each scene the plan that acts first; where none acts, its first.
SOON = [
    min((p for p in ALL if p[0] == name), key=lambda p: (not acting(*p).any(), begins(*p)))
    for name in NAMES
]


@pytest.mark.parametrize(("name", "plan"), SOON)
def test_a_plan_of_every_scene_is_recorded_and_paired(tmp_path, name, plan):
    steps = begins(name, plan) + 12
    roll(tmp_path / "rollout", name, plan, steps, fps="12")
    compare(tmp_path / "pair", name, plan, steps, candidates=("twin:fps=10",))


def test_a_turned_camera_is_recorded_and_paired(tmp_path):
    roll(tmp_path / "rollout", "MirrorRollingBall", "turn_third", steps=12)
    compare(tmp_path / "pair", "MirrorRollingBall", "turn_third", steps=12)
