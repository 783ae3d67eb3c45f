"""What an environment refuses, it refuses with one clear message: cause, place and mend."""

import gymnasium as gym
import numpy as np
import pytest

from wmeval.envs.actions import ActionForm
from wmeval.errors import UserError


@pytest.fixture
def env():
    made = gym.make("WMEval/BallRoller-v0").unwrapped
    yield made
    made.close()


@pytest.mark.parametrize("seed", [-1, "a", 1.5, True])
def test_a_seed_is_a_whole_number(env, seed):
    with pytest.raises(UserError, match=r"seed = .*: give a whole number, at least 0, or None"):
        env.reset(seed=seed)
    env.reset(seed=np.int64(3))
    assert env.seed == 3


def test_an_unknown_argument_names_the_known_ones_through_gymnasium_too():
    with pytest.raises(UserError, match=r"no argument 'sise': choose from action_mode, .*width"):
        gym.make("WMEval/BallRoller-v0", sise=3)


def test_a_closed_environment_draws_nothing_until_it_is_reset(env):
    env.reset(seed=0)
    env.close()
    with pytest.raises(UserError, match=r"the environment is closed: call reset\(\)"):
        env.draw(("rgb",), width=64, height=48)


CHANNELS = (*(f"place_{k}" for k in range(8)), "execute")


def test_switches_are_no_numbers_in_either_form():
    flat = ActionForm("S", CHANNELS, ("execute",), "flat")
    hybrid = ActionForm("S", CHANNELS, ("execute",), "hybrid")
    with pytest.raises(UserError, match="type bool"):
        flat.flat(np.zeros(9, bool))
    with pytest.raises(UserError, match="continuous has type bool"):
        hybrid.flat({"continuous": np.zeros(8, bool), "discrete": np.zeros(1, bool)})
    pressed = hybrid.flat({"continuous": np.zeros(8), "discrete": np.ones(1, bool)})
    assert pressed == (0.0,) * 8 + (1.0,)


def test_the_cause_comes_before_a_short_list_of_channels():
    form = ActionForm("S", CHANNELS, ("execute",), "flat")
    with pytest.raises(UserError) as caught:
        form.flat(np.zeros(3, np.float32))
    assert str(caught.value) == (
        "S: the action has shape (3,): give shape (9,) "
        "(channels: place_0, place_1, place_2, place_3, place_4, ...)"
    )
