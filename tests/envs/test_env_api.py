"""Every environment keeps Gymnasium's contract, refuses bad input and says what mends it."""

import subprocess
import sys
import warnings
from fractions import Fraction

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from random_play import digest, moves, random_actions

import wmeval
from wmeval.envs import ENVIRONMENTS, environment_class, environment_row
from wmeval.envs.base import EYES, Snapshot
from wmeval.errors import UserError
from wmeval.records import WorldLog
from wmeval.sim.engines import ENGINES
from wmeval.tables import DIMENSIONS

IDS = tuple(ENVIRONMENTS)
PUSH = np.array([0.6, -0.3], np.float32)


def make(env_id, **kwargs):
    return environment_class(env_id)(**kwargs)


@pytest.fixture(scope="module")
def ball_roller():
    env = make("BallRoller")
    yield env
    env.close()


@pytest.mark.gl
@pytest.mark.parametrize("env_id", IDS)
def test_gymnasiums_checker_has_no_complaint(env_id):
    env = gym.make(env_id, render_mode="rgb_array", width=64, height=48)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    env.close()


@pytest.mark.parametrize("env_id", IDS)
def test_spaces_are_the_papers(env_id):
    row = ENVIRONMENTS[env_id]
    env = make(env_id)
    continuous = len(row.channels) - len(row.branches)
    box = gym.spaces.Box(-1.0, 1.0, (continuous,), np.float32)
    discrete = gym.spaces.MultiBinary(max(1, len(row.branches)))
    hybrid = gym.spaces.Dict({"continuous": box, "discrete": discrete})
    assert env.action_space == (hybrid if row.branches else box)
    space = env.observation_space
    if row.image is not None:
        assert space["image"] == gym.spaces.Box(0, 255, (*row.image[::-1], 3), np.uint8)
        space = space["vector"]
    assert space.shape == (row.observation,)
    assert space.dtype == np.float32
    assert np.isfinite(space.low).all()
    assert np.isfinite(space.high).all()
    assert env.metadata["render_fps"] == float(1 / row.control_period)
    assert env.channels == row.channels


@pytest.mark.parametrize("env_id", IDS)
def test_row_tells_of_the_scene_what_it_needs_no_scene_for(env_id):
    row = ENVIRONMENTS[env_id]
    env = make(env_id, observation_mode="vector")
    observation, _ = env.reset(seed=0)
    names = [c.name for c in env.scene.cameras]
    assert row.view == names[0] == env.view
    assert {"static", "top"} <= set(names)
    assert env.engine == row.engines[0]
    assert set(row.engines) <= set(ENGINES)
    assert set(row.dimensions) <= set(DIMENSIONS)
    assert set(env.one_shot_channels) <= set(row.branches)
    assert set(env.ending_channels) <= set(row.branches)
    assert observation.shape == (row.observation,)
    if env.camera_twist is not None:
        assert env.camera_twist.shape == (6, len(row.channels))
    env.close()


def test_both_names_make_the_same_environment():
    plain = gym.make("WMEval/BeamDomino-v0")
    by_module = gym.make("wmeval:WMEval/BeamDomino-v0")
    assert type(plain.unwrapped) is type(by_module.unwrapped)
    assert wmeval.__version__
    assert environment_row("BeamDomino") is environment_row("WMEval/BeamDomino-v0")


def test_sync_vector_equals_single_episodes():
    vector = gym.make_vec("WMEval/BallRoller-v0", num_envs=2, vectorization_mode="sync")
    observations, _ = vector.reset(seed=[3, 4])
    for _ in range(5):
        observations, rewards, terminated, truncated, _ = vector.step(np.stack([PUSH, -PUSH]))
    assert observations.shape == (2, 48)
    assert not rewards.any()
    assert not (terminated | truncated).any()
    for i, seed in enumerate((3, 4)):
        env = make("BallRoller")
        env.reset(seed=seed)
        for _ in range(5):
            single = env.step(PUSH if i == 0 else -PUSH)[0]
        np.testing.assert_array_equal(observations[i], single)
        env.close()
    vector.close()


_ASYNC = """
import gymnasium as gym, numpy as np, wmeval
if __name__ == "__main__":
    env = gym.make_vec("WMEval/BeamDomino-v0", num_envs=2, vectorization_mode="async",
                       vector_kwargs={"context": "spawn"}, info_level="state")
    first, info = env.reset(seed=[0, 0])
    for _ in range(3):
        observation, *_, info = env.step(np.full((2, 2), 0.5, np.float32))
    assert observation.shape == (2, 92) and (observation[0] == observation[1]).all()
    assert (observation[0] != first[0]).any()
    assert info["time"].tolist() == [0.05, 0.05]
    env.close()
"""


def test_async_vector_by_spawn(tmp_path):
    script = tmp_path / "vector.py"
    script.write_text(_ASYNC)
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr[-2000:]


# --- episodes -----------------------------------------------------------------------------------


def test_episode_is_truncated_by_steps_and_then_refuses_to_go_on():
    env = make("BallRoller", max_steps=3)
    env.reset(seed=0)
    flags = [env.step(PUSH)[2:4] for _ in range(3)]
    assert flags == [(False, False), (False, False), (False, True)]
    with pytest.raises(UserError, match="episode is over: call reset"):
        env.step(PUSH)
    env.close()


def test_falling_off_the_floor_terminates():
    env = make("BeamDomino", info_level="state")
    env.reset(seed=0, options={"x0": 5.0})
    right = np.array([0.0, 1.0], np.float32)
    for _ in range(480):
        _, _, terminated, truncated, info = env.step(right)
        if terminated:
            break
    assert terminated
    assert not truncated
    assert env.log.state.position[-1, env.scene.index("floor_ball"), 2] < -2.0
    assert info["shape"] == "none"
    env.close()


def test_drawn_seeds_follow_from_the_first_and_are_reported():
    env, other = make("BeamDomino"), make("BeamDomino")
    env.reset(seed=5)
    first = env.reset()[0]
    other.reset(seed=5)
    np.testing.assert_array_equal(first, other.reset()[0])
    again = make("BeamDomino").reset(seed=env.seed)[0]
    np.testing.assert_array_equal(first, again)
    assert not np.array_equal(first, env.reset()[0])


def test_training_and_evaluation_seeds_never_share_a_scene():
    env = make("BallRoller")
    training = env.reset(seed=1)[0]
    evaluation = env.reset(seed=1, options={"seed_space": "evaluation"})[0]
    assert not np.array_equal(training, evaluation)
    env.close()


def test_clock_follows_the_arguments():
    env = make("BallRoller", dt="1/480", control_period="1/30")
    env.reset(seed=0)
    env.step(PUSH)
    assert env.log.state.substep[-1] == 16
    assert env.log.state.times[-1] == 1 / 30
    assert env.max_steps == 300
    assert env.time == Fraction(1, 30)
    env.close()


# --- information --------------------------------------------------------------------------------


def test_information_levels_say_more_and_change_nothing():
    seen = {}
    for level in ("none", "state", "full"):
        env = make("BeamDomino", info_level=level, max_steps=150)
        env.reset(seed=2)
        infos = [env.step(np.array([1, 0], np.float32))[4] for _ in range(150)]
        seen[level] = infos, env.log.state.sha256()
        env.close()
    assert len({digest for _, digest in seen.values()}) == 1
    assert not any(seen["none"][0])
    last = seen["state"][0][-1]
    assert last["shape"] == "canonical"
    assert not any({"shape", "episode_events"} & set(info) for info in seen["state"][0][:-1])
    events = [e for info in seen["state"][0] for e in info["events"]]
    for level in ("state", "full"):
        whole = seen[level][0][-1]["episode_events"]
        assert whole[len(whole) - len(events) :] == tuple(events)
    kinds = {e.kind for e in events}
    assert {"impact", "contact"} <= kinds
    assert last["state"]["floor_ball"]["position"].shape == (3,)
    assert last["time"] == 2.5
    full = seen["full"][0][-1]
    assert full["contacts"].normal_impulse.sum() > 0
    assert full["cameras"].T_world_camera.shape == (1, 3, 4, 4)
    assert full["lights"].sun_direction.shape == (1, 3)
    np.testing.assert_array_equal(
        full["state"]["slab"]["quaternion_wxyz"], last["state"]["slab"]["quaternion_wxyz"]
    )


def test_reward_is_zero_unless_named():
    env = make("BeamDomino", reward="dominoes_fallen")
    plain = make("BeamDomino")
    push, rest = np.array([1, 0], np.float32), np.zeros(2, np.float32)
    totals = [0.0, 0.0]
    for i, one in enumerate((env, plain)):
        one.reset(seed=0, options={"shape": "direct_strike"})
        for k in range(480):
            observation, reward, *_ = one.step(push if k < 180 else rest)
            totals[i] += reward
        one.close()
    assert totals[0] == pytest.approx(float(observation[56]))
    assert totals == [pytest.approx(1.0), 0.0]


@pytest.mark.parametrize("name", ["BallRoller", "MirrorRollingBall"])
def test_displaced_balls_are_rewarded_once(name):
    env = make(name, reward="balls_displaced")
    env.reset(seed=0)
    start = env.log.state.position[0].copy()
    aim = np.array([0.67, 0.74] if name == "BallRoller" else [0.41, 0.91], np.float32)
    total = sum(env.step(aim)[1] for _ in range(300))
    moved = np.linalg.norm(env.log.state.position[-1] - start, axis=1) > 0.25
    balls = list(env.scene.indices("ball"))
    assert total > 0
    assert total == pytest.approx(moved[balls].mean())
    env.close()


# --- snapshots and branches ---------------------------------------------------------------------


def test_snapshot_replays_to_the_same_bits():
    env = make("BeamDomino", info_level="state")
    env.reset(seed=1)
    for _ in range(100):
        env.step(np.array([1, 0.1], np.float32))
    snapshot = Snapshot.model_validate_json(env.get_state().model_dump_json())
    there = env.log.state.sha256()
    after = env.step(PUSH)[0]
    other = make("BeamDomino", info_level="state")
    observation, info = other.set_state(snapshot)
    assert other.log.state.sha256() == there
    assert info["time"] == 100 / 60
    assert other.events == tuple(e for e in env.events if e.detected_at <= 100 / 60)
    np.testing.assert_array_equal(other.step(PUSH)[0], after)
    assert observation.shape == (92,)
    env.close()
    other.close()


@pytest.mark.parametrize("branching", [False, True])
def test_branches_continue_from_here_and_are_independent(branching):
    env = make("BeamDomino", branching=branching, info_level="state", reward="dominoes_fallen")
    env.reset(seed=0, options={"shape": "direct_strike"})
    push = np.array([1, 0], np.float32)
    for _ in range(110):
        env.step(push)
    events = env.events
    one, two = env.branch(2)
    assert one.time == two.time == env.time
    results = [[e.step(a) for _ in range(8)] for e, a in ((env, push), (one, push), (two, -push))]
    for mine, theirs in zip(results[0], results[1], strict=True):
        np.testing.assert_array_equal(mine[0], theirs[0])
        assert mine[1] == theirs[1]
        assert mine[4]["events"] == theirs[4]["events"]
    assert env.log.state.sha256() == one.log.state.sha256()
    assert env.log.state.sha256() != two.log.state.sha256()
    assert env.events[: len(events)] == one.events[: len(events)] == events
    assert one.events == env.events
    np.testing.assert_array_equal(one.actions, env.actions)
    env.close()
    (deeper,) = one.branch(1)
    np.testing.assert_array_equal(deeper.step(push)[0], one.step(push)[0])
    for e in (one, two, deeper):
        e.close()


MORE = {"WMEval/SunRisesAndSets-v0": {"camera_path": "walk"}}
"""Reset options beside a regime's, by scene: more that moves."""


def begun(env_id, steps, options, **settings):
    """An environment in the middle of an episode in which something moves, and more actions."""
    cls = environment_class(env_id)
    settings = {"observation_mode": "vector", "info_level": "state", **settings}
    env = cls(reward=next(iter(cls.REWARDS), None), **settings)
    env.reset(seed=4, options={**options, **MORE.get(env_id, {})})
    # Room for a few more; short clips are joined earlier.
    steps = min(steps, env.max_steps - 10)
    logs, actions = [env.log], random_actions(env, steps + 8)
    for action in actions[:steps]:
        assert not env.step(action)[2]
        logs.append(env.log)
    assert moves(env, WorldLog.concatenate(logs))
    return env, actions[steps:]


@pytest.mark.parametrize("options", [{}, {"camera_motion": "turn"}], ids=["", "turn"])
@pytest.mark.parametrize("env_id", IDS)
def test_every_scene_returns_to_a_snapshot_in_mid_episode(env_id, options):
    env, actions = begun(env_id, 40, options)
    snapshot = Snapshot.model_validate_json(env.get_state().model_dump_json())
    other = type(env)(**env.settings)
    other.reset(seed=9)
    observation, info = other.set_state(snapshot)
    np.testing.assert_array_equal(observation, env.vector)
    assert info["time"] == float(env.time)
    assert digest(other.log) == digest(env.log)
    for action in actions:
        mine, theirs = env.step(action), other.step(action)
        np.testing.assert_array_equal(mine[0], theirs[0])
        assert mine[1:4] == theirs[1:4]
        assert digest(other.log) == digest(env.log)
    # And back, in the environment itself.
    env.set_state(snapshot)
    for action in actions:
        env.step(action)
    assert digest(other.log) == digest(env.log)
    env.close()
    other.close()


@pytest.mark.parametrize("branching", [False, True])
@pytest.mark.parametrize("env_id", IDS)
def test_every_scene_branches_in_mid_episode(env_id, branching):
    env, actions = begun(env_id, 40, {"camera_motion": "turn"}, branching=branching)
    one, two = env.branch(2)
    for other in (one, two):
        np.testing.assert_array_equal(other.vector, env.vector)
        assert digest(other.log) == digest(env.log)
        assert (other.time, other.events, other.view) == (env.time, env.events, env.view)
        # A fork begins without composing: what an episode knows must reach it all the same.
        mine, theirs = (
            {name for name, value in vars(e).items() if value is not None} for e in (env, other)
        )
        assert mine - theirs <= {"_np_random_seed"}
    held = len(env.row.branches)
    for action in actions:
        away = np.concatenate([-action[: len(action) - held], action[len(action) - held :]])
        mine, theirs, _ = env.step(action), one.step(action), two.step(away)
        np.testing.assert_array_equal(mine[0], theirs[0])
        assert mine[1:4] == theirs[1:4]
        assert mine[4].keys() == theirs[4].keys()
        assert mine[4].get("scene_state") == theirs[4].get("scene_state")
    assert digest(env.log) == digest(one.log)
    assert (digest(env.log) != digest(two.log)) == bool(env.channels)
    env.close()
    (deeper,) = one.branch(1)
    np.testing.assert_array_equal(deeper.step(actions[0])[0], one.step(actions[0])[0])
    assert digest(deeper.log) == digest(one.log)
    for other in (one, two, deeper):
        other.close()


# --- bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (np.zeros(3, np.float32), r"shape \(3,\): give shape \(2,\)"),
        (np.zeros((1, 2), np.float32), r"shape \(1, 2\)"),
        (0.5, r"shape \(\)"),
        (np.array([np.nan, 0], np.float32), r"force_x = nan is not in \[-1, 1\]"),
        (np.array([0, np.inf], np.float32), r"force_z = inf"),
        (np.array([0, 1.001], np.float32), r"force_z = 1.00\d* is not in \[-1, 1\]: scale or clip"),
        (np.array(["a", "b"]), "give float32"),
        (np.array([True, False]), "type bool"),
        (np.array([1j, 0]), "type complex"),
        ([[0], [0, 1]], "is no array"),
        (None, "type object"),
    ],
)
def test_bad_actions_are_refused_and_cost_nothing(ball_roller, action, message):
    ball_roller.reset(seed=0)
    with pytest.raises(UserError, match=message):
        ball_roller.step(action)
    assert len(ball_roller.actions) == 0
    ball_roller.step(PUSH)


@pytest.mark.parametrize("action", [[1, 0], np.array([1, 0]), np.array([1.0, 0.0])])
def test_any_real_numbers_in_range_are_an_action(ball_roller, action):
    ball_roller.reset(seed=0)
    ball_roller.step(action)
    assert ball_roller.actions.tolist() == [[1.0, 0.0]]


@pytest.mark.parametrize(
    ("env_id", "kwargs", "message"),
    [
        ("BeamDomino", {"engine": "nope"}, "unknown engine 'nope': choose from .*bullet"),
        ("BeamDomino", {"renderer": "nope"}, "unknown renderer 'nope': choose from .*raster"),
        ("BeamDomino", {"reward": "nope"}, "unknown reward 'nope': choose from dominoes_fallen"),
        ("BeamDomino", {"info_level": "all"}, "unknown info_level 'all': choose from none, state"),
        ("BeamDomino", {"render_mode": "human"}, "choose from rgb_array"),
        ("BeamDomino", {"dt": "1/250"}, "does not divide the control period"),
        ("BeamDomino", {"dt": "abc"}, "not an exact number"),
        ("BeamDomino", {"max_steps": 0}, "at least 1"),
        ("BeamDomino", {"width": 8}, "width = 8"),
        ("BeamDomino", {"width": 0}, "width = 0"),
        ("BeamDomino", {"height": 0}, "height = 0"),
        ("BeamDomino", {"dt": "1/60000000"}, "at most 10000"),
        ("BeamDomino", {"dt": "1e-999999999"}, "write it shorter"),
        ("BeamDomino", {"branching": "yes"}, "give true or false"),
        ("BeamDomino", {"perturb": 3}, "give a text like 'gravity=0.8' or a mapping"),
        ("BeamDomino", {"perturb": {"gravity": "x"}}, "gravity = 'x' is not a number"),
        ("BeamDomino", {"perturb": "colour=2"}, "no perturbation 'colour'"),
        ("BeamDomino", {"perturb": "delay=0.02"}, "not a whole number of control periods"),
        ("MirrorRollingBall", {"ball_count": 11}, "choose from 10, 20, 30, 48"),
    ],
)
def test_bad_arguments_are_refused_when_it_is_made(env_id, kwargs, message):
    with pytest.raises(UserError, match=message):
        make(env_id, **kwargs)


@pytest.mark.parametrize(
    ("env_id", "options", "message"),
    [
        ("BallRoller", {"nope": 1}, "unknown option 'nope': choose from view, camera"),
        ("BallRoller", {"view": "side"}, "unknown option view 'side': choose from follow, static"),
        ("BallRoller", {"seed_space": "test"}, "choose from training, evaluation"),
        ("BallRoller", {"camera": {"position": [0, 0]}}, "option camera: give"),
        ("BallRoller", {"camera": 3}, "option camera: give"),
        ("BallRoller", 5, "options = 5: give a mapping"),
        ("BallRoller", [], r"options = \[\]: give a mapping"),
        ("BallRoller", {"camera": {1, 2}}, "options are JSON values"),
        ("BeamDomino", {"shape": "round"}, "choose from canonical, glancing, direct_strike"),
        ("BeamDomino", {"x0": 7.0}, r"give metres in \[-5, 5\]"),
        ("BeamDomino", {"x0": float("nan")}, "give metres"),
        ("BeamDomino", {"x0": "left"}, "give metres"),
        ("BeamDomino", {"intervention": "magic"}, "choose from none, no_roof_ball, slab_pinned"),
    ],
)
def test_bad_options_are_refused_at_reset(env_id, options, message):
    env = make(env_id)
    with pytest.raises(UserError, match=message):
        env.reset(seed=0, options=options)


def test_unknown_environment_names_the_known_ones():
    with pytest.raises(UserError, match="choose from WMEval/BallRoller-v0, WMEval/BeamDomino-v0"):
        environment_class("WMEval/Nope-v0")


def test_stepping_before_reset_is_refused():
    env = make("BallRoller")
    for call in (lambda: env.step(PUSH), env.get_state, lambda: env.branch(1), lambda: env.log):
        with pytest.raises(UserError, match=r"reset\(\)"):
            call()


def test_snapshot_that_is_too_long_is_refused(ball_roller):
    short = make("BallRoller", max_steps=1)
    ball_roller.reset(seed=0)
    ball_roller.step(PUSH)
    ball_roller.step(PUSH)
    with pytest.raises(UserError, match="larger max_steps"):
        short.set_state(ball_roller.get_state())


@pytest.mark.parametrize(
    ("env_id", "kwargs", "message"),
    [
        ("BeamDomino", {}, "its env_id is 'WMEval/BallRoller-v0', here it is 'WMEval/BeamDomino"),
        ("BallRoller", {"dt": "1/480"}, "its dt is '1/240', here it is '1/480'"),
        ("BallRoller", {"control_period": "1/30"}, "its control_period"),
        ("BallRoller", {"perturb": "gravity=0.5"}, "its perturb is None"),
    ],
)
def test_snapshot_of_another_world_is_refused(ball_roller, env_id, kwargs, message):
    ball_roller.reset(seed=0)
    with pytest.raises(UserError, match=message):
        make(env_id, **kwargs).set_state(ball_roller.get_state())


def test_snapshot_knows_the_scenes_own_arguments():
    env = make("MirrorRollingBall", ball_count=10)
    env.reset(seed=0)
    with pytest.raises(UserError, match="its ball_count is 10, here it is 48"):
        make("MirrorRollingBall").set_state(env.get_state())
    env.close()


@pytest.mark.parametrize("snapshot", [None, {"a": 1}, b"{}", "{}"])
def test_only_a_snapshot_is_a_state(ball_roller, snapshot):
    with pytest.raises(UserError, match="takes a Snapshot of get_state"):
        ball_roller.set_state(snapshot)


def test_options_are_kept_as_plain_values():
    env = make("BeamDomino")
    camera = {"position": np.array([0.0, -9.0, 5.0], np.float32), "target": (0, 0, 0)}
    given = {"x0": np.float32(0.5), "camera": camera}
    env.reset(seed=0, options=given)
    kept = env.get_state().options
    assert kept == {"x0": 0.5, "camera": {"position": [0, -9, 5], "target": [0, 0, 0]}}
    camera["target"] = (1, 1, 1)
    assert env.get_state().options == kept
    env.close()


# --- perturbed worlds ---------------------------------------------------------------------------


def test_perturbed_actions_are_the_perturbations_own():
    env = make("BallRoller", perturb="gain=0.5,delay=0.05")
    same = make("BallRoller")
    actions = np.random.default_rng(0).uniform(-1, 1, (12, 2)).astype(np.float32)
    driven = env.perturb.actions(actions, env.clock.control_period).astype(np.float32)
    env.reset(seed=0)
    same.reset(seed=0)
    for given, arrived in zip(actions, driven, strict=True):
        env.step(given)
        same.step(arrived)
    assert env.log.state.sha256() == same.log.state.sha256()
    np.testing.assert_array_equal(env.actions, actions.astype(float))
    assert type(env)(**env.settings).perturb == env.perturb
    assert make("BallRoller", perturb={"gain": 0.5, "delay": 0.05}).perturb == env.perturb
    env.close()
    same.close()


# --- pictures -----------------------------------------------------------------------------------


@pytest.mark.gl
@pytest.mark.parametrize("env_id", IDS)
def test_every_view_shows_the_player(env_id):
    env = make(env_id, width=160, height=88)
    env.reset(seed=0)
    shown = [b.instance for b in env.scene.bodies if b.role == "player" or b.name == env.PLAYER]
    for view in [c.name for c in env.scene.cameras if c.name not in EYES]:
        layers = env.draw(("rgb", "ids", "glass_ids", "depth"), view=view)
        assert layers["rgb"].shape == (88, 160, 3)
        assert layers["rgb"].std() > 10
        if env.PLAYER is None:
            continue
        seen = np.isin(layers["ids"], [i for i in shown if i])
        # A player of glass is seen through, and has a layer of its own.
        assert seen.any() or np.isin(layers["glass_ids"], shown).any(), view
        assert np.isfinite(layers["depth"][seen]).all()
    env.close()


@pytest.mark.gl
def test_a_renderer_kept_over_resets_draws_as_a_fresh_one():
    env, fresh = (make("MirrorRollingBall", width=96, height=64) for _ in range(2))
    env.reset(seed=1)
    before = env.draw("rgb", view="static")["rgb"]
    env.reset(seed=2)
    fresh.reset(seed=2)
    for view in ("static", "follow"):
        picture = env.draw("rgb", view=view)["rgb"]
        np.testing.assert_array_equal(picture, fresh.draw("rgb", view=view)["rgb"])
        assert not np.array_equal(picture, before)
    env.close()
    fresh.close()


@pytest.mark.gl
def test_pictures_of_logged_rows_custom_cameras_and_branches():
    env = make("BallRoller", width=96, height=64, render_mode="rgb_array")
    camera = {"position": [0, -9, 5], "target": [0, 0, 0], "fov_y_deg": 50}
    env.reset(seed=0, options={"camera": camera})
    assert env.view == "custom"
    first = env.render()
    log = env.log
    for _ in range(60):
        env.step(np.array([1, 1], np.float32))
    assert not np.array_equal(env.render(), first)
    np.testing.assert_array_equal(env.draw("rgb", log=log, row=0)["rgb"], first)
    (branch,) = env.branch(1)
    picture = env.render()
    env.close()
    np.testing.assert_array_equal(branch.render(), picture)
    with pytest.raises(UserError, match="unknown layer"):
        branch.draw("colour")
    for layers, options, message in (
        ("flow", {}, "not of one instant: record depth and ids"),
        (5, {}, "layers = 5"),
        ("rgb", {"width": 0}, "width = 0"),
        ("rgb", {"row": 1}, "row 1: the log has 1 rows"),
    ):
        with pytest.raises(UserError, match=message):
            branch.draw(layers, **options)
    branch.close()
    with pytest.raises(UserError, match="is closed"):
        branch.draw("rgb")
