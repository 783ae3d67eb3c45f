"""Labels of samples against rays and poses: ids, depth, flow and tracks, to 0.05 px."""

from __future__ import annotations

import numpy as np
import pytest
from exactness import check_flow, check_ids_depth

from wmeval.envs import make_environment

pytestmark = pytest.mark.gl

TASKS = ("FreeFall", "RampCollision", "BallChain", "DropIntoCluster")


@pytest.mark.parametrize(
    "name", ["Bounce", *(pytest.param(n, marks=pytest.mark.accept) for n in TASKS)]
)
def test_labels_of_a_sample_are_those_of_rays(name: str) -> None:
    env = make_environment(name)
    env.reset(seed=2)
    for _ in range(6):
        env.step([])
    rng = np.random.default_rng(0)
    assert check_ids_depth(env, rng, 300) > 60
    assert check_flow(env, rng, 300, steps=8, px=0.05) > 20
    env.close()
