"""Branches, pictures in observations and empty actions keep Gymnasium's contract."""

import subprocess
import sys
import warnings
from fractions import Fraction
from pathlib import Path

import branch_scenes
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from wmeval.clock import CandidateClock
from wmeval.datasets.rollout import read, write_hdf5, write_zarr
from wmeval.envs import environment_class
from wmeval.envs.actions import ActionForm
from wmeval.envs.adapters import (
    Keys,
    channels_of,
    control_from_json,
    control_json,
    make_adapter,
)
from wmeval.envs.candidates import parse_candidate
from wmeval.envs.case import Case
from wmeval.envs.model import ModelSpec
from wmeval.envs.policies import RandomPolicy, Task
from wmeval.envs.record import record, remake
from wmeval.envs.wrapper import WorldModelEnv, drive, native_controls
from wmeval.errors import UserError
from wmeval.plan import ActionPlan

TA = Fraction(1, 60)
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


def plan(**segment):
    segment = {"start": 0, "end": "0.5", "values": {"force_x": 1.0, "sprint": 1, **segment}}
    return ActionPlan.read(
        {
            "name": "run_and_jump", "scene": "WMEval/Branches-v0",
            "dimensions": ["controllability"], "doc": "d", "duration": 1,
            "segments": [segment, {"start": "0.2", "end": "13/60", "values": {"jump": 1}}],
            "prompt": "p", "negative_prompt": "n",
        }
    )  # fmt: skip


def test_a_branch_of_a_plan_is_0_or_1():
    with pytest.raises(UserError, match=r"sprint = 0\.5 at 0 s is a branch: set it to 0 or 1"):
        record(branch_scenes.Branches(), plan=plan(sprint=0.5), seed=0)


def test_random_branches_hold_and_one_shots_are_single_presses():
    policy, rows = RandomPolicy(hold=0.5), []
    row = branch_scenes.Branches().row
    policy.begin(Task(row.id, row.channels, row.control_period, 10_000, 0, row.branches, ("jump",)))
    rows = np.array([policy.act(i, None, {}) for i in range(20_000)])
    assert set(rows[:, 2:].ravel()) == {0.0, 1.0}
    jump, sprint = rows[:, 2], rows[:, 3]
    assert not (jump[1:] * jump[:-1]).any()
    # Both change, or are pressed, every 30 actions on average.
    assert 20_000 / np.count_nonzero(np.diff(sprint)) == pytest.approx(30, rel=0.1)
    assert 20_000 / jump.sum() == pytest.approx(30, rel=0.15)
    assert sprint.mean() == pytest.approx(0.5, abs=0.1)


def test_random_actions_do_not_end_the_episode():
    env = environment_class("BilliardGame")()
    env.reset(seed=2)
    task = Task.of(env)
    assert task.endings == ("force_end",)
    policy = RandomPolicy(hold=0.1)
    policy.begin(task)
    rows = np.array([policy.act(i, None, {}) for i in range(2000)])
    assert not rows[:, task.channels.index("force_end")].any()
    assert rows[:, task.channels.index("execute")].sum() > 100
    ended = [env.step(row)[2] for row in rows[: env.max_steps]]
    assert not any(ended)
    shots = env.log.state.modal["shot"][0, 5]
    assert shots >= 1
    env.close()


def test_continuous_random_actions_know_nothing_of_branches():
    policy, other = RandomPolicy(), RandomPolicy()
    row = branch_scenes.Branches().row
    policy.begin(Task(row.id, row.channels, row.control_period, 9, 3, row.branches))
    other.begin(Task(row.id, row.channels[:2], row.control_period, 9, 3))
    np.testing.assert_array_equal(policy.act(0, None, {})[:2], other.act(0, None, {}))


class Looker:
    """A user's own policy that asks for the environment's observation."""

    def begin(self, task):
        self.seen = []

    def act(self, step, observation, info):
        self.seen.append(observation)
        return np.zeros(4, np.float32) if step < 2 else None

    def describe(self):
        return {"kind": "own"}


@pytest.mark.gl
def test_a_recording_keeps_the_flat_vector_and_shows_pictures_to_who_looks(tmp_path):
    env, looker = branch_scenes.Branches(), Looker()
    rollout = record(env, policy=looker, seed=0)
    assert rollout.observations.shape == (3, 3)
    assert looker.seen[0]["image"].shape == (32, 48, 3)
    again = record(branch_scenes.Branches(observation_mode="vector"), policy=looker, seed=0)
    assert looker.seen[0].shape == (3,)
    assert again.sha256() == rollout.sha256()
    env.close()


@pytest.mark.parametrize("name", ["Branches", "Inert"])
@pytest.mark.parametrize("backend", ["hdf5", "zarr"])
def test_branches_and_empty_actions_survive_a_file(tmp_path, name, backend):
    env = getattr(branch_scenes, name)(observation_mode="vector")
    rollout = record(env, policy=RandomPolicy(hold=0.1), seed=1)
    assert rollout.actions.shape == (60, 4 if name == "Branches" else 0)
    write = {"hdf5": write_hdf5, "zarr": write_zarr}[backend]
    path = tmp_path / f"rollout.{'h5' if backend == 'hdf5' else 'zarr'}"
    write(rollout, str(path))
    stored = read(path)
    np.testing.assert_array_equal(stored.actions, rollout.actions)
    assert stored.sha256() == rollout.sha256()
    again = remake(stored.metadata)
    assert again.sha256() == rollout.sha256()


def test_branches_reduce_by_the_longest_and_shots_by_their_start():
    channels = channels_of("Branches")
    assert channels.branches == ("jump", "sprint")
    adapter = make_adapter(ModelSpec(name="m"), channels, control_period=TA)
    actions = np.array([[0.5, 0, 0, 1], [0.0, 0, 1, 1], [0.1, 0, 1, 0]])
    assert adapter.reduce(actions, [TA] * 3).tolist() == [pytest.approx(0.2), 0, 0, 1]
    assert adapter.reduce(actions[1:], [TA] * 2).tolist() == [pytest.approx(0.05), 0, 0, 0]
    # Five actions a block: a press from action 4 on belongs to block 0 alone.
    log = np.zeros((15, 4))
    log[4:8, 2] = 1.0
    log[3:10, 3] = 1.0
    clock = CandidateClock(Fraction(12), 1)
    controls = native_controls(clock, TA, adapter, log)
    assert [c[2:].tolist() for c in controls] == [[1, 0], [0, 1], [0, 0]]
    keys = make_adapter(
        ModelSpec(name="k", paradigm="keyboard", actuates=("body",)), channels, control_period=TA
    )
    held = native_controls(clock, TA, keys, log)
    assert held == (Keys((), ("SPACE",)), Keys(("SHIFT",)), Keys(()))


def test_empty_actions_reduce_to_nothing():
    adapter = make_adapter(ModelSpec(name="m"), channels_of("Inert"), control_period=TA)
    controls = native_controls(CandidateClock(Fraction(12), 1), TA, adapter, np.zeros((10, 0)))
    assert [control_from_json(control_json(c)).shape for c in controls] == [(0,), (0,)]


@pytest.mark.gl
@pytest.mark.parametrize("wrong", ["", "gain=0.5,"])
def test_the_twin_presses_what_is_pressed(wrong):
    case = Case(env_id="Branches", plan=plan(), width=32, height=32)
    with case.open() as env:
        truth = record(env, plan=case.plan, seed=case.scene_seed, options=case.options)
        model = parse_candidate(f"twin:{wrong}width=16,height=16")(case)
        adapter = make_adapter(model.spec, channels_of(env), control_period=TA)
        case.reset(env)
        clip = drive(model, adapter, case.actions(env), case.context(env, model.spec))
    height = clip.record.state.position[:, 1, 2]
    np.testing.assert_allclose(height, truth.log.state.position[::4, 1, 2], atol=1e-12)
    same = not wrong
    x = clip.record.state.position[:, 1, 0]
    assert (x == truth.log.state.position[::4, 1, 0]).all() == same
    model.close()


@pytest.mark.gl
@pytest.mark.parametrize("action_mode", ["hybrid", "flat"])
def test_world_model_environment_takes_the_same_actions(action_mode):
    case = Case(env_id="Branches", plan=plan(), width=32, height=32)
    reference = branch_scenes.Branches(action_mode=action_mode, width=32, height=32)
    env = WorldModelEnv(reference, parse_candidate("twin:fps=30")(case))
    assert env.action_space == reference.action_space
    env.reset(seed=0)
    first = reference._form.native([0.5, 0, 1, 0])
    env.step(first)
    info = env.step(first)[4]
    assert len(info["clip"]) == 1
    env.close()
    reference.close()


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
