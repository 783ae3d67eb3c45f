"""Branches, pictures in observations and empty actions keep Gymnasium's contract."""

import subprocess
import sys
import warnings
from pathlib import Path

import branch_scenes
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from wmeval.envs.actions import ActionForm
from wmeval.errors import UserError

CHANNELS = ("force_x", "force_z", "jump", "sprint")


@pytest.fixture(autouse=True)
def _scenes():
    branch_scenes.register()
    yield
    branch_scenes.unregister()


def parts(x, z, jump, sprint):
    return {
        "continuous": np.array([x, z], np.float32),
        "discrete": np.array([jump, sprint], np.int8),
    }


@pytest.mark.gl
@pytest.mark.parametrize("action_mode", ["hybrid", "flat"])
@pytest.mark.parametrize("observation_mode", ["full", "vector"])
@pytest.mark.parametrize("name", ["Branches", "Inert"])
def test_checker_passes_in_every_mode(name, action_mode, observation_mode):
    env = gym.make(
        f"WMEval/{name}-v0",
        action_mode=action_mode,
        observation_mode=observation_mode,
        render_mode="rgb_array",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The checker asks whether a Box is symmetric and normalised; a branch's half of it is not.
        warnings.filterwarnings("ignore", message=".*symmetric and normalized.*")
        check_env(env.unwrapped)
    env.close()


def test_spaces_of_each_mode():
    env = branch_scenes.Branches()
    box = gym.spaces.Box(-1, 1, (2,), np.float32)
    assert env.action_space == gym.spaces.Dict(
        {"continuous": box, "discrete": gym.spaces.MultiBinary(2)}
    )
    image = gym.spaces.Box(0, 255, (32, 48, 3), np.uint8)
    assert env.observation_space["image"] == image
    assert env.observation_space["vector"].shape == (3,)
    flat = branch_scenes.Branches(action_mode="flat", observation_mode="vector")
    assert flat.action_space.low.tolist() == [-1, -1, 0, 0]
    assert flat.action_space.high.tolist() == [1, 1, 1, 1]
    assert flat.observation_space.shape == (3,)
    assert branch_scenes.Inert().action_space.shape == (0,)


def test_both_forms_of_an_action_are_one_flat_vector():
    env = branch_scenes.Branches(observation_mode="vector")
    env.reset(seed=0)
    for action in (
        parts(0.5, -0.25, 1, 0),
        np.array([0.5, -0.25, 0.51, 0.5], np.float32),
        [0.5, -0.25, 1, 0],
        {"continuous": [0.5, -0.25], "discrete": [True, False]},
    ):
        env.step(action)
    assert env.actions.tolist() == [[0.5, -0.25, 1.0, 0.0]] * 4
    native = env._form.native(env.actions[0])
    assert env.action_space.contains(native)
    assert native["discrete"].tolist() == [1, 0]


def test_snapshots_hold_the_flat_vector():
    env = branch_scenes.Branches(observation_mode="vector")
    env.reset(seed=0)
    for step in range(20):
        env.step(parts(0.3, 0.1, step % 7 == 0, 1))
    other = branch_scenes.Branches(observation_mode="vector", action_mode="flat")
    other.set_state(env.get_state())
    assert other.log.state.sha256() == env.log.state.sha256()
    assert env.get_state().actions[0][2:] == (1.0, 1.0)


@pytest.mark.parametrize(
    ("action", "message"),
    [
        ({"continuous": [0, 0]}, r"keys \['continuous'\]: give \['continuous', 'discrete'\]"),
        (parts(1.5, 0, 0, 0), r"force_x = 1.5 is not in \[-1, 1\]"),
        ({"continuous": [0.0, 0.0], "discrete": [2, 0]}, "jump = 2 is not 0 or 1"),
        ({"continuous": [0.0], "discrete": [0, 0]}, r"continuous has shape \(1,\): give shape"),
        ({"continuous": [0.0, 0.0], "discrete": ["a", "b"]}, "discrete has type"),
        (np.array([0, 0, -0.5, 0], np.float32), r"jump = -0.5 is not in \[0, 1\]"),
        (np.array([0, 0, np.nan, 0], np.float32), "jump = nan"),
        (np.zeros(2, np.float32), r"shape \(2,\): give shape \(4,\)"),
    ],
)
def test_bad_actions_are_refused(action, message):
    env = branch_scenes.Branches(observation_mode="vector")
    env.reset(seed=0)
    with pytest.raises(UserError, match=message):
        env.step(action)
    assert len(env.actions) == 0


def test_a_mapping_needs_branches():
    env = branch_scenes.Inert()
    env.reset(seed=0)
    with pytest.raises(UserError, match="has no branches"):
        env.step({"continuous": [], "discrete": []})
    env.step(np.zeros(0, np.float32))
    env.step([])
    assert env.actions.shape == (2, 0)


def test_branches_come_last():
    with pytest.raises(ValueError, match="not the last channels"):
        ActionForm("x", CHANNELS, ("force_x",), "hybrid")


def test_gain_scales_no_branch_and_delay_delays_all():
    env = branch_scenes.Branches(perturb="gain=0.5,delay=0.05", observation_mode="vector")
    same = branch_scenes.Branches(observation_mode="vector")
    actions = np.random.default_rng(0).uniform(-1, 1, (20, 4)).astype(np.float32)
    actions[:, 2:] = actions[:, 2:] > 0
    driven = env.perturb.actions(actions, env.clock.control_period, branches=2)
    assert set(driven[3:, 2:].ravel()) == {0.0, 1.0}
    env.reset(seed=0)
    same.reset(seed=0)
    for given, arrived in zip(actions, driven.astype(np.float32), strict=True):
        env.step(given)
        same.step(arrived)
    assert env.log.state.sha256() == same.log.state.sha256()


def test_side_info_stands_at_every_level_and_the_end_is_the_scenes_own():
    env = branch_scenes.Branches(observation_mode="vector")
    _, info = env.reset(seed=0)
    assert info == {"height": 0.5, "step": 0}
    info = env.step(parts(0, 0, 1, 0))[4]
    assert info["step"] == 1
    assert info["height"] > 0.5
    env = branch_scenes.Branches(observation_mode="vector", info_level="state")
    assert {"state", "height"} <= set(env.reset(seed=0)[1])
    inert = branch_scenes.Inert()
    inert.reset(seed=0)
    assert inert.step([])[2] is False


@pytest.mark.gl
def test_observed_picture_is_the_paper_cameras():
    env = branch_scenes.Branches()
    observation, _ = env.reset(seed=0, options={"view": "static"})
    drawn = env.draw("rgb", view="follow", width=48, height=32)["rgb"]
    np.testing.assert_array_equal(observation["image"], drawn)
    np.testing.assert_array_equal(observation["vector"], env.vector)
    observation = env.step(parts(1, 0, 1, 0))[0]
    drawn = env.draw("rgb", view="follow", width=48, height=32)["rgb"]
    np.testing.assert_array_equal(observation["image"], drawn)
    with env.unpictured():
        assert env.step(parts(1, 0, 1, 0))[0].shape == (3,)
    assert set(env.step(parts(1, 0, 1, 0))[0]) == {"vector", "image"}
    env.close()


def test_third_is_another_name_of_follow():
    env = branch_scenes.Branches(observation_mode="vector")
    env.reset(seed=0)
    assert env.view == "follow"
    env.reset(seed=0, options={"view": "third"})
    assert env.view == "follow"
    assert env.camera_index("third") == env.camera_index("follow") == 0
    with pytest.raises(UserError, match="unknown view 'second': choose from follow, static"):
        env.camera_index("second")


@pytest.mark.gl
def test_vectors_of_dict_spaces_by_sync():
    vector = gym.make_vec("WMEval/Branches-v0", num_envs=2, vectorization_mode="sync")
    vector.reset(seed=[0, 0])
    action = {
        "continuous": np.array([[1, 0], [1, 0]], np.float32),
        "discrete": np.array([[1, 0], [0, 0]], np.int8),
    }
    observations = vector.step(action)[0]
    assert observations["image"].shape == (2, 32, 48, 3)
    assert observations["vector"][0, 2] > observations["vector"][1, 2]
    vector.close()


_ASYNC = """
import sys
sys.path.insert(0, {folder!r})
import branch_scenes, gymnasium as gym, numpy as np
branch_scenes.register()
if __name__ == "__main__":
    env = gym.make_vec("WMEval/Branches-v0", num_envs=2, vectorization_mode="async",
                       vector_kwargs={{"context": "spawn"}})
    env.reset(seed=[0, 0])
    action = env.action_space.sample()
    action["discrete"][:] = [[1, 0], [0, 0]]
    observation, *_ = env.step(action)
    assert observation["image"].shape == (2, 32, 48, 3)
    assert observation["vector"][0, 2] > observation["vector"][1, 2]
    env.close()
"""


@pytest.mark.gl
def test_vectors_of_dict_spaces_by_spawn(tmp_path):
    script = tmp_path / "vector.py"
    script.write_text(_ASYNC.format(folder=str(Path(__file__).parent)))
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]
