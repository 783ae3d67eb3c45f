"""Labels of samples in their rooms against rays and poses: ids, depth, flow, tracks."""

from __future__ import annotations

import numpy as np
import pytest
from exactness import check_flow, check_ids_depth

from wmeval.envs import make_environment

pytestmark = pytest.mark.gl

PLACES = {
    "Bounce": "beach_gazebo",
    "FreeFall": "butterfly_mural_room",
    "RampCollision": "modern_loft",
    "BallChain": "dining_room_set",
    "DropIntoCluster": "minimal_white_kitchen",
}


@pytest.mark.parametrize(
    "name",
    [pytest.param(n, marks=[] if n == "Bounce" else [pytest.mark.accept]) for n in PLACES],
)
def test_labels_of_a_sample_are_those_of_rays(name: str) -> None:
    small = {"texture_size": 128}
    env = make_environment(name, width=320, height=176, renderer_options=small)
    env.reset(seed=2, options={"setting": PLACES[name]})
    for _ in range(6):
        env.step([])
    rng = np.random.default_rng(0)
    assert check_ids_depth(env, rng, 200) > 150
    # Over a third of a second: a track is the same, pose by pose.
    assert check_flow(env, rng, 200, steps=8, px=0.05) > 50
    env.close()
