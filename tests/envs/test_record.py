"""The recording loop keeps everything and changes nothing."""

from fractions import Fraction

import gymnasium as gym
import numpy as np
import pytest

from wmeval.envs import environment_class
from wmeval.envs import record as record_module
from wmeval.envs.plans import load_plan
from wmeval.envs.policies import PlanPolicy, RandomPolicy, ReplayPolicy, Task, make_policy
from wmeval.envs.record import record, remake
from wmeval.errors import UserError
from wmeval.plan import ActionPlan
from wmeval.sim.events import detect
from wmeval.sim.protocol import render_state


def make(name="BallRoller", **kwargs):
    return environment_class(name)(**kwargs)


def plan_of(duration, scene="WMEval/BallRoller-v0", **values):
    return ActionPlan(
        name="test", scene=scene, dimensions=(), doc="", duration=duration, prompt="",
        negative_prompt="", segments=({"start": 0, "end": duration, "values": values},),
    )  # fmt: skip


def test_everything_of_every_substep_is_kept_and_nothing_is_changed():
    rollout = record(make("BeamDomino"), plan=load_plan("BeamDomino", "canonical"), seed=2)
    assert len(rollout) == 480
    log = rollout.log
    np.testing.assert_array_equal(log.state.substep, np.arange(1921))
    assert log.cameras.T_world_camera.shape == (1921, 3, 4, 4)
    assert log.lights.sun_direction.shape == (1921, 3)
    assert np.unique(log.contacts.substep).size > 1900
    assert log.events == detect(rollout.scene, make("BeamDomino").row and _rules(), log)
    assert rollout.truncated.tolist() == [False] * 479 + [True]
    assert not rollout.terminated.any()
    env = make("BeamDomino")
    observation, _ = env.reset(seed=2, options=dict(rollout.metadata["options"]))
    rows = [0]
    for i, action in enumerate(rollout.actions.astype(np.float32)):
        np.testing.assert_array_equal(observation, rollout.observations[i])
        observation = env.step(action)[0]
        rows.append(4 * (i + 1))
        if i % 60 == 59:
            assert env.log.state.sha256() == log.state.rows([rows[-1]]).sha256()
    env.close()


def _rules():
    env = make("BeamDomino")
    env.reset(seed=0)
    return env.world_spec.rules


def test_a_wrapped_environment_is_looked_through():
    plan = plan_of("0.1", force_x=1.0)
    wrapped = record(gym.make("WMEval/BallRoller-v0"), plan=plan, seed=0)
    assert wrapped.sha256() == record(make(), plan=plan, seed=0).sha256()


def test_plan_length_step_limit_and_options():
    env = make("BeamDomino", max_steps=20)
    plan = load_plan("BeamDomino", "glancing")
    whole = record(env, plan=plan, seed=0)
    assert len(whole) == 20
    assert whole.truncated[-1]
    assert whole.metadata["options"] == {"shape": "glancing"}
    short = record(env, plan=plan, seed=0, max_steps=5, options={"shape": "canonical"})
    assert len(short) == 5
    assert not short.truncated.any()
    assert short.metadata["options"] == {"shape": "canonical"}
    np.testing.assert_array_equal(short.actions, [[1.0, 0.0]] * 5)
    env.close()


def test_metadata_make_the_rollout_again():
    plan = record(make(perturb="gravity=0.9"), plan=plan_of("1/10", force_z=0.3), seed=7)
    again = remake(plan.metadata)
    assert again.sha256() == plan.sha256()
    assert again.metadata == plan.metadata
    for key in ("engine_version", "dt", "control_period", "wmeval", "channels"):
        assert plan.metadata[key]
    policy = RandomPolicy(scale=0.7, stop_after=12)
    random = record(make(dt="1/480"), policy=policy, seed=7)
    assert remake(random.metadata).sha256() == random.sha256()
    assert remake(random.metadata, actions=random.actions).sha256() == random.sha256()
    with pytest.raises(UserError, match="give the rollout's actions"):
        remake({**random.metadata, "policy": {"kind": "mine"}})
    with pytest.raises(UserError, match="lack seed"):
        remake({k: v for k, v in random.metadata.items() if k != "seed"})


def test_closed_loop_policies_see_the_observation():
    class Brake:
        """Push right, and back once it moves to the right of x = -1.19 m."""

        def begin(self, task):
            self.task = task

        def act(self, step, observation, info):
            if step == 60:
                return None
            return np.array([1.0 if observation[0] < -1.19 else -1.0, 0.0], np.float32)

        def describe(self):
            return {"kind": "brake"}

    rollout = record(make(), policy=Brake(), seed=0)
    assert len(rollout) == 60
    assert set(rollout.actions[:, 0]) == {1.0, -1.0}
    assert remake(rollout.metadata, actions=rollout.actions).sha256() == rollout.sha256()


def test_random_policy_is_smooth_seeded_and_within_range():
    task = Task("x", ("a", "b"), Fraction(1, 60), 6000, 3)

    def series(seed):
        policy = RandomPolicy(scale=1.0, correlation=0.5)
        policy.begin(Task(task.env_id, task.channels, task.control_period, task.max_steps, seed))
        return np.array([policy.act(i, np.zeros(1), {}) for i in range(6000)])

    one = series(3)
    np.testing.assert_array_equal(one, series(3))
    assert not np.array_equal(one, series(4))
    assert np.abs(one).max() <= 1.0
    x = np.arctanh(np.clip(one, -0.999999, 0.999999))
    assert x.std() == pytest.approx(1.0, abs=0.15)
    lag = np.mean([np.corrcoef(x[:-30, c], x[30:, c])[0, 1] for c in range(2)])
    assert lag == pytest.approx(np.exp(-1), abs=0.12)


def test_bad_requests_are_refused():
    env = make()
    plan = plan_of("0.1", force_x=1.0)
    for kwargs, message in (
        ({}, "a plan or a policy"),
        ({"plan": plan, "policy": PlanPolicy(plan)}, "a plan or a policy"),
        ({"plan": plan_of("0.1", force_y=1.0)}, "sets 'force_y'.*force_x, force_z"),
        ({"plan": load_plan("BeamDomino", "left"), "options": {}}, "unknown option 'x0'"),
        (
            {"plan": plan_of("0.1", "WMEval/BeamDomino-v0", force_x=1.0)},
            "made for WMEval/BeamDomino",
        ),
        ({"plan": plan, "layers": "rgb,colour"}, "unknown layer 'colour'"),
        ({"plan": plan, "fps": "abc"}, "not an exact number"),
        ({"plan": plan, "fps": 0}, "fps > 0"),
        ({"plan": plan, "fps": 10**9}, "at most 240 fps"),
        ({"plan": plan, "view": "side"}, "unknown view 'side'"),
        ({"plan": plan, "width": 0}, "width = 0"),
        ({"plan": plan, "max_steps": 0}, "max_steps = 0"),
        ({"plan": plan.model_dump()}, "give an ActionPlan"),
        ({"plan": plan, "fps": 24, "frame_times": [0]}, "not both"),
        ({"plan": plan, "frame_times": [0, "1/2", "1/3"]}, "must ascend"),
        ({"policy": ReplayPolicy(np.zeros((3, 5)))}, "has 5 channels"),
        ({"policy": ReplayPolicy(np.full((3, 2), 2.0))}, "is not in"),
    ):
        with pytest.raises(UserError, match=message):
            record(env, seed=0, **kwargs)
    with pytest.raises(UserError, match="choose from plan, replay, random"):
        make_policy("nope")
    with pytest.raises(UserError, match="policy 'random'"):
        make_policy("random", colour=1)
    env.close()


# --- pictures -----------------------------------------------------------------------------------


@pytest.mark.gl
def test_frames_lie_on_their_exact_grid():
    env = make(width=64, height=48)
    plan = plan_of("1/2", force_x=1.0)
    rollout = record(env, plan=plan, seed=0, layers="rgb,depth,ids", fps=25)
    frames = rollout.frames
    assert frames.times == tuple(Fraction(j, 25) for j in range(13))
    # State floor(j / (25 dt) + 1/2): 9.6 substeps a frame.
    assert frames.state_index.tolist() == [
        int(Fraction(48, 5) * j + Fraction(1, 2)) for j in range(13)
    ]
    assert {n: (a.shape, str(a.dtype)) for n, a in frames.layers.items()} == {
        "rgb": ((13, 48, 64, 3), "uint8"),
        "depth": ((13, 48, 64), "float32"),
        "ids": ((13, 48, 64), "uint16"),
    }
    row = int(frames.state_index[7])
    np.testing.assert_array_equal(
        frames.layers["rgb"][7], env.draw("rgb", log=rollout.log, row=row)["rgb"]
    )
    state = render_state(rollout.log, row, rollout.scene, 0)
    focal = 24 / np.tan(state.fov_y / 2)
    np.testing.assert_allclose(frames.K[7], [[focal, 0, 32], [0, focal, 24], [0, 0, 1]])
    again = remake(rollout.metadata)
    np.testing.assert_array_equal(again.frames.layers["rgb"][:], frames.layers["rgb"][:])
    env.close()


@pytest.mark.gl
def test_given_frame_times_another_view_and_pictures_out_of_memory(monkeypatch):
    monkeypatch.setattr(record_module, "IN_MEMORY_BYTES", 0)
    env = make(width=64, height=48)
    rollout = record(
        env, plan=plan_of("1/4", force_x=1.0), seed=0, layers=("ids",), view="static",
        frame_times=["0", "1/100", "1/4", 9], width=48, height=32,
    )  # fmt: skip
    env.close()
    frames = rollout.frames
    assert frames.camera == "static"
    assert frames.state_index.tolist() == [0, 2, 60]
    assert isinstance(frames.layers["ids"], np.memmap)
    assert frames.layers["ids"].shape == (3, 32, 48)
    assert (np.asarray(frames.layers["ids"][2]) > 0).any()
