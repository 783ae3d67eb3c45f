"""The checks by rays: right pictures pass, and each kind of wrong label is found."""

import gymnasium as gym
import numpy as np
import pytest
from exactness import check_flow, check_ids_depth, check_normals, check_shadow_ids

import wmeval  # noqa: F401 - registers the environments

pytestmark = pytest.mark.gl
CHECKS = (check_ids_depth, check_normals, check_shadow_ids, check_flow)


@pytest.fixture(scope="module", params=["BeamDomino", "MirrorRollingBall"])
def env(request):
    made = gym.make(f"WMEval/{request.param}-v0")
    made.reset(seed=3)
    made.action_space.seed(1)
    for _ in range(20):
        made.step(made.action_space.sample())
    yield made
    made.close()


class Wrong:
    """The environment with one layer spoilt."""

    def __init__(self, env, layer, spoil):
        self._env, self._layer, self._spoil = env.unwrapped, layer, spoil

    @property
    def unwrapped(self):
        return self

    def __getattr__(self, name):
        return getattr(self._env, name)

    def draw(self, *args, **kwargs):
        out = self._env.draw(*args, **kwargs)
        if self._layer in out:
            out[self._layer] = self._spoil(out[self._layer])
        return out


@pytest.mark.parametrize("check", CHECKS)
def test_right_pictures_pass(env, check):
    assert check(env, np.random.default_rng(4), 300) > 20


def rolled(pixels):
    return lambda layer: np.roll(layer, pixels, axis=1)


SPOILT = {
    "ids beside": (check_ids_depth, "ids", rolled(4)),
    "ids swapped": (check_ids_depth, "ids", lambda ids: np.where(ids == 1, 7, ids)),
    "depth along the ray": (check_ids_depth, "depth", lambda depth: depth * np.float32(1.004)),
    "depth off": (check_ids_depth, "depth", lambda depth: depth + np.float32(0.02)),
    "normals turned": (check_normals, "normals", lambda n: n[..., [1, 0, 2]]),
    "normals to the camera": (check_normals, "normals", lambda n: -n),
    "shadows beside": (check_shadow_ids, "shadow_ids", rolled(6)),
    "no shadows": (check_shadow_ids, "shadow_ids", lambda ids: ids * 0),
    "flow from wrong depth": (check_flow, "depth", lambda depth: depth * np.float32(1.1)),
}


@pytest.mark.parametrize("name", SPOILT)
def test_wrong_pictures_are_found(env, name):
    check, layer, spoil = SPOILT[name]
    with pytest.raises(AssertionError):
        check(Wrong(env, layer, spoil), np.random.default_rng(4), 300)
