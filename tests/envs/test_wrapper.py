"""Driving candidates: block by block, the whole clip, and as an environment."""

from fractions import Fraction as F

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

from wmeval.clock import CandidateClock, SceneClock
from wmeval.envs.adapters import Channels, make_adapter
from wmeval.envs.model import Context, ModelError, ModelSpec
from wmeval.envs.wrapper import BlockFeeder, WorldModelEnv, drive, frame_count, native_controls
from wmeval.errors import UserError
from wmeval.records import Clip

TA = F(1, 60)
CHANNELS = Channels(("force_x", "force_z"))


class Counter:
    """A stepwise model whose pixel value is the frame's index."""

    def __init__(self, **kwargs):
        self.spec = ModelSpec(
            **{
                "name": "counter",
                "width": 16,
                "height": 16,
                "fps": 24,
                "frames_per_action": 4,
                **kwargs,
            }
        )
        self.calls = []

    def reset(self, context_frames, prompt, negative_prompt, seed, intrinsics):
        self.seed, self.j, self.calls = seed, 0, []

    def _frames(self, controls):
        n = len(controls) * self.spec.frames_per_action
        out = np.empty((n, 16, 16, 3), np.uint8)
        out[:] = (self.j + 1 + np.arange(n))[:, None, None, None]
        self.j += n
        return out

    def step(self, controls):
        self.calls.append(controls)
        return self._frames(controls)

    def close(self):
        pass


class WholeClip(Counter):
    def __init__(self, **kwargs):
        super().__init__(mode="clip", **kwargs)

    def generate(self, controls):
        return self.step(controls)


def context(spec):
    return Context(np.zeros((spec.context_length, 16, 16, 3), np.uint8), "p", "n", np.eye(3), TA)


def actions(n):
    return np.random.default_rng(0).uniform(-1, 1, (n, 2))


def adapter(model):
    return make_adapter(model.spec, CHANNELS, control_period=TA)


# --- block arithmetic ---------------------------------------------------------------------------


@settings(deadline=None)
@given(
    st.sampled_from([16, 24, 25, 30, 60, "24000/1001"]),
    st.integers(1, 6),
    st.integers(1, 3),
    st.integers(0, 130),
)
def test_blocks_are_handed_out_once_in_order_when_covered(fps, stride, chunk, n):
    clock = CandidateClock(F(fps), stride, chunk)
    log = actions(n)
    feeder = BlockFeeder(clock, TA, make_adapter(ModelSpec(name="m"), CHANNELS, control_period=TA))
    got, step_of = [], []
    for i, action in enumerate(log):
        for controls in feeder.push(action):
            assert len(controls) == chunk
            got.extend(controls)
            step_of.extend([i] * chunk)
    assert len(got) == clock.blocks_sent(n, TA)
    for b, control in enumerate(got):
        weights = dict(clock.weights_of_block(b, TA))
        expected = sum(float(w) * log[i] for i, w in weights.items()) / float(clock.block_duration)
        assert np.allclose(control, expected, atol=1e-12)
        last_of_chunk = (b // chunk + 1) * chunk - 1
        assert step_of[b] == clock.step_of_block(last_of_chunk, TA)


@given(
    st.sampled_from([16, 24, 25, 60]),
    st.integers(1, 5),
    st.lists(st.booleans(), min_size=1, max_size=80),
)
def test_every_press_belongs_to_the_one_block_that_holds_its_start(fps, stride, presses):
    channels = Channels(("jump",), one_shots=("jump",))
    clock = CandidateClock(F(fps), stride)
    feeder = BlockFeeder(clock, TA, make_adapter(ModelSpec(name="m"), channels, control_period=TA))
    got = [float(c[0]) for p in presses for chunk in feeder.push([float(p)]) for c in chunk]
    starts = [i for i, p in enumerate(presses) if p and not (i and presses[i - 1])]
    expected = {clock.block_of_instant(i * TA) for i in starts}
    assert got == [float(b in expected) for b in range(len(got))]


def test_the_worked_example_is_sent_at_10b_plus_9():
    feeder = BlockFeeder(CandidateClock(F(24), 4), TA, adapter(Counter()))
    sent = [i for i, a in enumerate(actions(305)) for _ in feeder.push(a)]
    assert sent == [10 * b + 9 for b in range(30)]


def test_a_log_that_covers_nothing_is_refused():
    with pytest.raises(
        UserError, match=r"9 actions of 1/60 s, 0.15 s in all, do not cover the 0.1667 s"
    ):
        native_controls(CandidateClock(F(24), 4), TA, adapter(Counter()), actions(9))
    with pytest.raises(UserError, match=r"an action here has shape \(2,\) \(force_x, force_z\)"):
        native_controls(CandidateClock(F(24), 4), TA, adapter(Counter()), [[1.0]])


# --- drive --------------------------------------------------------------------------------------


@pytest.mark.parametrize("chunk", [1, 3])
@pytest.mark.parametrize("kind", [Counter, WholeClip])
def test_stepwise_and_clip_models_get_the_same_controls_and_times(kind, chunk):
    model = kind(chunk=chunk)
    clip = drive(model, adapter(model), actions(305), context(model.spec), seed=7)
    assert model.seed == 7
    assert clip.frames[:, 0, 0, 0].tolist() == list(range(121))
    assert clip.times == tuple(F(j, 24) for j in range(121))
    controls = [c for call in model.calls for c in call]
    expected = native_controls(model.spec.clock, TA, adapter(model), actions(305))
    assert np.array_equal(controls, expected)
    assert len(model.calls) == (1 if kind is WholeClip else 30 // chunk)


def test_a_longest_clip_cuts_whole_chunks():
    model = WholeClip(chunk=3, max_frames=121 - 1)
    clip = drive(model, adapter(model), actions(305), context(model.spec))
    assert len(clip) == frame_count(model.spec, TA, 305) == 27 * 4 + 1
    assert frame_count(Counter().spec, TA, 305) == 121
    assert frame_count(Counter().spec, TA, 9) == 1


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (lambda c: 1 / 0, "raised ZeroDivisionError: division by zero"),
        (lambda c: np.zeros((4, 16, 16), np.uint8), "returned the wrong shape"),
        (lambda c: np.zeros((3, 16, 16, 3), np.uint8), "returned the wrong number"),
        (lambda c: np.zeros((4, 16, 16, 3)), "dtype float64"),
        (lambda c: None, "a NoneType"),
    ],
)
def test_a_model_that_breaks_its_contract_is_named(step, message):
    model = Counter()
    model.step = step
    with pytest.raises(ModelError, match=f"model 'counter': step .*{message}"):
        drive(model, adapter(model), actions(20), context(model.spec))


def live(env):
    env.reset(seed=0)
    env.step(np.zeros(2, np.float32))
    env.close()


@pytest.mark.parametrize("verb", ["reset", "step", "close"])
@pytest.mark.parametrize("error", [SystemExit(0), GeneratorExit(), ValueError("a\nb" * 999)])
def test_a_model_in_this_process_does_not_end_it(verb, error):
    def fail(*_):
        raise error

    env = WorldModelEnv(Reference(), Counter(frames_per_action=1, fps=60))
    setattr(env.model, verb, fail)
    with pytest.raises(
        ModelError, match=f"model 'counter': {verb} raised {type(error).__name__}"
    ) as e:
        live(env)
    assert "\n" not in str(e.value)
    assert len(str(e.value)) < 400


def test_an_interrupt_stays_one():
    def interrupt(controls):
        raise KeyboardInterrupt

    model = Counter()
    model.step = interrupt
    with pytest.raises(KeyboardInterrupt):
        drive(model, adapter(model), actions(20), context(model.spec))


def test_a_wrong_context_is_refused():
    model = Counter(context_length=2)
    bad = Context(np.zeros((1, 16, 16, 3), np.uint8), "", "", np.eye(3), TA)
    with pytest.raises(UserError, match=r"takes context frames \(2, 16, 16, 3\)"):
        drive(model, adapter(model), actions(20), bad)


# --- as an environment --------------------------------------------------------------------------


class Reference(gym.Env):
    """The narrow part of a reference environment that the wrapper uses; its seed frame is noise."""

    clock = SceneClock(F(1, 240), TA)
    channels = ("force_x", "force_z")
    max_steps = 305
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    observation_space = gym.spaces.Box(-1, 1, (1,), np.float32)

    class log:
        class cameras:
            fov_y = np.array([[0.8]])

    def camera_index(self, view):
        return 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.picture = self.np_random.integers(100, 256, (16, 16, 3), np.uint8)
        return np.zeros(1, np.float32), {}

    def step(self, action):
        raise AssertionError("the reference is never stepped")

    def draw(self, layers, *, width, height, view):
        assert (layers, width, height) == (("rgb",), 16, 16)
        return {"rgb": self.picture}


def run(env, n):
    observation, _ = env.reset(seed=0)
    rows = [(observation, {})]
    for action in actions(n).astype(np.float32):
        observation, reward, terminated, _truncated, info = env.step(action)
        assert reward == 0.0
        assert not terminated
        rows.append((observation, info))
    return rows


@pytest.mark.parametrize("chunk", [1, 2])
def test_the_newest_frame_its_age_and_the_clip(chunk):
    env = WorldModelEnv(Reference(), Counter(chunk=chunk))
    rows = run(env, 60)
    span = 10 * chunk
    for i, (observation, info) in enumerate(rows):
        block = i // span * chunk
        newest = 4 * block
        assert observation["frame"].shape == (16, 16, 3)
        if newest:
            assert (observation["frame"] == newest).all()
        else:  # the seed frame
            assert (observation["frame"] == env.env.picture).all()
        assert observation["age"][0] == pytest.approx(i / 60 - newest / 24, abs=1e-7)
        if i and i % span == 0:
            assert info["clip"].times == tuple(
                F(j, 24) for j in range(newest - 4 * chunk + 1, newest + 1)
            )
        else:
            assert "clip" not in info


@pytest.mark.parametrize(("fps", "stride"), [(16, 1), (25, 1), (25, 3), (60, 1), (120, 1)])
def test_stepping_and_driving_give_the_same_frames_and_controls(fps, stride):
    env = WorldModelEnv(Reference(), Counter(fps=fps, frames_per_action=stride))
    clips = [info["clip"] for _, info in run(env, 60) if "clip" in info]
    stepped = [c for call in env.model.calls for c in call]
    model = Counter(fps=fps, frames_per_action=stride)
    driven = drive(model, adapter(model), actions(60).astype(np.float32), context(model.spec))
    joined = Clip.concatenate(clips)
    assert np.array_equal(joined.frames, driven.frames[1:])
    assert joined.times == driven.times[1:]
    assert np.array_equal(stepped, [c for call in model.calls for c in call])


def test_step_per_block_takes_one_action_per_block():
    env = WorldModelEnv(Reference(), Counter(), step_per_block=True)
    rows = run(env, 5)
    assert all("clip" in info and len(info["clip"]) == 4 for _, info in rows[1:])
    assert all(observation["age"] == 0 for observation, _ in rows)
    assert env.max_steps == 30  # 305 actions of 1/60 s hold 30 blocks of 1/6 s
    sent = [c for call in env.model.calls for c in call]
    assert np.array_equal(sent, actions(5).astype(np.float32))


def test_it_passes_the_environment_checker():
    env = WorldModelEnv(Reference(), Counter(), max_steps=30)
    check_env(env, skip_render_check=True)


def test_it_truncates_at_the_environments_length():
    env = WorldModelEnv(Reference(), Counter(), max_steps=3)
    env.reset(seed=0)
    assert [env.step(np.zeros(2, np.float32))[3] for _ in range(3)] == [False, False, True]


def test_a_clip_model_is_sent_to_pair():
    with pytest.raises(UserError, match=r"makes whole clips and cannot be stepped.*wmeval pair"):
        WorldModelEnv(Reference(), WholeClip())


def test_bad_actions_and_early_steps_are_refused():
    env = WorldModelEnv(Reference(), Counter())
    with pytest.raises(UserError, match="call reset"):
        env.step(np.zeros(2, np.float32))
    env.reset(seed=0)
    for bad in (np.zeros(3), np.array([np.nan, 0]), np.array([2.0, 0])):
        with pytest.raises(UserError, match="the action"):
            env.step(bad)


def test_the_models_seed_follows_the_episodes_seed():
    seeds = []
    for seed in (1, 1, 2):
        env = WorldModelEnv(Reference(), Counter())
        env.reset(seed=seed)
        seeds.append(env.model.seed)
    assert seeds[0] == seeds[1] != seeds[2]


@pytest.mark.gl
def test_a_real_scene_checks_and_shows_its_seed_frame():
    reference = gym.make("WMEval/BeamDomino-v0", width=32, height=32, max_steps=60)
    env = WorldModelEnv(reference, Counter(width=32, height=32))
    env.model._frames = lambda c: np.zeros((4 * len(c), 32, 32, 3), np.uint8)
    check_env(env, skip_render_check=True)
    observation, _ = env.reset(seed=5, options={"shape": "glancing", "view": "static"})
    reference.reset(seed=5, options={"shape": "glancing", "view": "static"})
    assert np.array_equal(observation["frame"], reference.unwrapped.draw(("rgb",))["rgb"])
    assert env.action_space == reference.action_space
    steps = [env.step(np.zeros(2, np.float32)) for _ in range(60)]
    assert [i for i, s in enumerate(steps) if "clip" in s[4]] == [9, 19, 29, 39, 49, 59]
    assert steps[-1][3]
    reference.close()
