"""Labels of SunRisesAndSets against rays: ids, depth, normals, shadows, flow."""

import numpy as np
import pytest
from exactness import check_flow, check_ids_depth, check_normals, check_shadow_ids

from wmeval.envs import make_environment

pytestmark = pytest.mark.gl
CASES = [
    {"turn_deg": 40.0},
    pytest.param({"turn_deg": 150.0, "view": "static"}, marks=pytest.mark.accept),
    {"light": "fixed", "camera_path": "walk", "view": "first"},
]


@pytest.mark.parametrize("options", CASES)
def test_labels_are_right_to_the_pixel(options):
    env = make_environment("WMEval/SunRisesAndSets-v0")
    env.reset(seed=0, options=options)
    for _ in range(3):
        env.step(np.zeros(0, np.float32))
    for check in (check_ids_depth, check_normals, check_shadow_ids, check_flow):
        assert check(env, np.random.default_rng(1), 250) > 50
    env.close()
