"""BilliardGame: its vector, placing, shots, rewards, mechanics, plans, labels."""

import math
import os
import subprocess
import sys
from fractions import Fraction
from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
from exactness import check_flow, check_ids_depth, check_normals, check_shadow_ids

from wmeval.conventions import intrinsics
from wmeval.datasets.rollout import read, write_hdf5
from wmeval.envs import environment_class
from wmeval.envs.billiard_room import BALL_MASS, BALL_RADIUS, BALLS, HALF_LENGTH, HALF_WIDTH, REACH
from wmeval.envs.plans import load_plan, plans_of
from wmeval.envs.record import record
from wmeval.errors import UserError
from wmeval.sim.world import LocalWorld

NAME = "BilliardGame"
SHOTS = sorted(set(plans_of(NAME)) - {n for n in plans_of(NAME) if n[:5] in ("pertu", "sweep")})
CONTACTS = {
    "stun": [("cue_ball", "yellow_ball"), ("yellow_ball", "cushion_far"),
             ("cue_ball", "cushion_near")],
    "follow": [("cue_ball", "yellow_ball"), ("yellow_ball", "cushion_left")],
    "draw": [("cue_ball", "yellow_ball"), ("yellow_ball", "cushion_left")],
    "side_spin": [("cue_ball", "cushion_left"), ("cue_ball", "cushion_far")],
    "carom": [("cue_ball", "yellow_ball"), ("cue_ball", "red_ball"), ("cue_ball", "cushion_far")],
    "frozen_pair": [("cue_ball", "yellow_ball"), ("yellow_ball", "red_ball")],
    "near_miss": [("cue_ball", "cushion_left")],
    "break": [("cue_ball", "red_ball")],
    "placed": [("cue_ball", "yellow_ball"), ("yellow_ball", "red_ball")],
}  # fmt: skip


def make(**kwargs):
    return environment_class(NAME)(**kwargs)


def action(env=None, execute=0, end=0, **channels):
    names = ("ball_0_x", "ball_0_z", "ball_1_x", "ball_1_z", "ball_2_x", "ball_2_z",
             "angle", "force", "hit_x", "hit_y")  # fmt: skip
    continuous = np.array([channels.pop(n, 0.0) for n in names], np.float32)
    assert not channels
    return {"continuous": continuous, "discrete": np.array([execute, end], np.int8)}


@pytest.fixture(scope="module")
def rollouts():
    env = make()
    found = {name: record(env, plan=load_plan(NAME, name), seed=3) for name in SHOTS}
    env.close()
    return found


# --- the vector ---------------------------------------------------------------------------------


def test_the_vector_is_that_of_the_log(rollouts):
    for name, rollout in rollouts.items():
        scene, state = rollout.scene, rollout.states_at_control()
        bodies = [scene.index(n) for n in ("cue_ball", "yellow_ball", "red_ball")]
        places = state.position[:, bodies][:, :, [0, 2, 1]].reshape(-1, 9)
        np.testing.assert_allclose(rollout.observations[:, :9], places, atol=1e-6)
        held = np.concatenate([np.zeros((1, 12)), rollout.actions])
        np.testing.assert_allclose(rollout.observations[:, 9], (held[:, 6] + 1) / 2, atol=1e-6)
        np.testing.assert_allclose(rollout.observations[:, 10], 650 * (held[:, 7] + 1), rtol=1e-5)
        hit = held[:, 8:10] / np.maximum(1, np.hypot(held[:, 8], held[:, 9]))[:, None]
        np.testing.assert_allclose(rollout.observations[:, 11:], hit, atol=1e-6, err_msg=name)


def test_places_at_one_touch_the_cushions():
    env = make()
    env.reset(seed=0)
    out = env.step(action(ball_0_x=1, ball_0_z=-1, ball_1_x=-1, ball_1_z=1, ball_2_x=0.3))[0]
    sine = (0.037 - BALL_RADIUS) / BALL_RADIUS
    touch = BALL_RADIUS * math.sqrt(1 - sine**2)
    assert out[0] == pytest.approx(HALF_LENGTH - touch, abs=1e-6)
    assert out[2] == pytest.approx(-(HALF_WIDTH - touch), abs=1e-6)
    assert out[3] == -out[0]
    assert out[6] == pytest.approx(0.3 * REACH[0], abs=1e-6)
    env.close()


def test_zeros_keep_the_seeds_places():
    env = make(info_level="state")
    start, _ = env.reset(seed=5)
    for _ in range(10):
        out, _, terminated, _, info = env.step(action())
    np.testing.assert_array_equal(out, start)
    assert info["game"]["placement_refused"]
    assert not terminated
    other = env.reset(seed=6)[0]
    assert np.abs(other[:9] - start[:9]).max() > 0.05
    env.close()


def test_placing_in_metres():
    env = make()
    places = [[1.2, 0.3], [-0.4, -0.6], [-0.4 + 2 * BALL_RADIUS, -0.6]]
    out, _ = env.reset(seed=0, options={"balls": places})
    np.testing.assert_allclose(out[:9].reshape(3, 3)[:, [0, 2]], places, atol=1e-6)
    for wrong, message in (
        ([[0, 0], [0.06, 0], [1, 0]], "overlap each other or a cushion"),
        ([[1.4, 0], [0.06, 0], [1, 0]], "overlap each other or a cushion"),
        ([[0, 0], [1, 0]], "give three places"),
        ([[0, 0], [1, 0], [float("inf"), 0]], "give three places"),
        ("middle", "give three pairs of numbers"),
    ):
        with pytest.raises(UserError, match=message):
            env.reset(options={"balls": wrong})
    env.close()


def test_seeded_places_fit():
    env = make()
    for seed in range(20):
        places = env.reset(seed=seed)[0][:9].reshape(3, 3)[:, [0, 2]]
        gaps = np.linalg.norm(places[:, None] - places[None], axis=-1) + np.eye(3)
        assert gaps.min() > 0.24
        assert (np.abs(places) < np.array(REACH) - 0.1).all()
    env.close()


# --- episodes -----------------------------------------------------------------------------------


def test_force_end_terminates():
    env = make()
    env.reset(seed=0)
    for _ in range(30):
        assert not env.step(action(force=0.5, execute=1))[2]
    terminated, truncated = env.step(action(force=0.5, end=1))[2:4]
    assert terminated
    assert not truncated
    with pytest.raises(UserError, match="episode is over"):
        env.step(action())
    env.close()


def test_flat_actions_are_the_same():
    one, two = make(), make(action_mode="flat")
    one.reset(seed=2)
    two.reset(seed=2)
    for k in range(60):
        native = action(angle=0.4, force=0.1, hit_x=0.3, execute=int(k == 5))
        flat = np.concatenate([native["continuous"], native["discrete"]]).astype(np.float32)
        a, b = one.step(native)[0], two.step(flat)[0]
        assert a.tobytes() == b.tobytes()
    one.close()
    two.close()


def test_the_same_shot_at_any_control_rate():
    ends = set()
    for rate, dt in ((30, "1/240"), (60, "1/240"), (240, "1/240"), (60, "1/60"), (60, "1/960")):
        env = make(control_period=Fraction(1, rate), dt=dt)
        env.reset(seed=9)
        for k in range(8 * rate):
            out = env.step(action(angle=0.62, force=0.3, hit_y=0.5, execute=int(k >= rate)))[0]
        ends.add(out.tobytes())
        env.close()
    assert len(ends) == 1


def test_the_task_reward_counts_caroms():
    env = make(reward="carom")
    plan = load_plan(NAME, "carom")
    env.reset(seed=0, options=dict(plan.reset_options))
    actions = plan.actions(env.channels, Fraction(1, 60), branches=env.row.branches)
    flat = make(reward="carom", action_mode="flat")
    flat.reset(seed=0, options=dict(plan.reset_options))
    rewards = [flat.step(a.astype(np.float32))[1] for a in actions]
    assert sum(rewards) == 1.0
    # 0.5 s wait, then the red ball 1.391 s after the shot.
    assert rewards.index(1.0) == pytest.approx((0.5 + 1.391) * 60, abs=1)
    env.close()
    flat.close()


def test_what_info_says():
    env = make(info_level="full")
    env.reset(seed=0, options={"balls": [[0.5, 0.0], [0.0, 0.0], [-0.9, 0.5]]})
    for _ in range(60):
        _, _, _, _, info = env.step(action(force=0.0, execute=1))
    game = info["game"]
    assert game["moving"]
    assert game["shots"] == 1
    assert game["touched"] == [True, False]
    assert len(info["contacts"]) == 0
    kinetic = info["mechanics"]["yellow_ball"]
    v = info["state"]["yellow_ball"]["linear_velocity"]
    assert kinetic.momentum[:2] == pytest.approx(BALL_MASS * v[:2])
    assert make(info_level="none").reset(seed=0)[1] == {}
    env.close()


_CODE = """
from wmeval.envs import environment_class
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record
env = environment_class("BilliardGame")()
for name in ("three_cushion", "frozen_pair", "draw"):
    print(record(env, plan=load_plan("BilliardGame", name), seed=3).sha256())
"""


def test_another_process_gives_the_same_bits(rollouts):
    done = subprocess.run(
        [sys.executable, "-c", _CODE], capture_output=True, text=True, check=True, timeout=200,
        env={**os.environ, "PYTHONHASHSEED": "3"},
    )  # fmt: skip
    here = [rollouts[name].sha256() for name in ("three_cushion", "frozen_pair", "draw")]
    assert done.stdout.split() == here


def test_snapshots_branches_and_files_go_on_with_the_same_bits(tmp_path, rollouts):
    env = make(action_mode="flat")
    env.reset(seed=4)
    held = np.array([0.0] * 6 + [0.5, 0.2, 0.4, -0.3, 1.0, 0.0], np.float32)
    for _ in range(50):
        env.step(held)
    snapshot = env.get_state()
    (branch,) = env.branch(1)
    other = make(action_mode="flat")
    other.set_state(snapshot)
    for _ in range(60):
        one, two, three = (e.step(held)[0].tobytes() for e in (env, branch, other))
        assert one == two == three
    for e in (env, branch, other):
        e.close()
    options = rollouts["carom"].metadata["engine_config"]["options"]
    assert options == {"throw": "alciatore_a14", "cushion": "han_2005"}
    path = tmp_path / "shot.h5"
    write_hdf5(rollouts["carom"], path)
    assert read(path).log.state.sha256() == rollouts["carom"].log.state.sha256()


# --- mechanics at any time ----------------------------------------------------------------------


@pytest.mark.parametrize("branching", [False, True])
def test_mechanics_at_any_time(branching):
    env = make(branching=branching, info_level="full")
    env.reset(seed=1)
    shot = action(angle=0.3, force=0.4, hit_x=0.5, execute=1)
    for _ in range(120):
        info = env.step(shot)[4]
    now = env.mechanics()
    for name in BALLS:
        assert now[name] == info["mechanics"][name]
    early = env.mechanics("0.001")["cue_ball"]
    speed = 0.7 * 1.3 / BALL_MASS
    lost = 0.2 * 9.81 * 0.001
    assert np.linalg.norm(early.momentum) == pytest.approx(BALL_MASS * (speed - lost), rel=1e-6)
    energies = [
        sum(m.energy for m in env.mechanics(Fraction(k, 777)).values()) for k in range(1, 1554)
    ]
    assert (np.diff(energies) <= 1e-12).all()
    with pytest.raises(UserError, match="the episode so far has 0 to 2 s"):
        env.mechanics(2.01)
    env.reset(seed=2)
    assert all(m.energy == 0 for m in env.mechanics().values())
    env.close()


# --- named shots --------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CONTACTS))
def test_a_named_shot_makes_its_contacts(rollouts, name):
    contacts = [(e.body_a, e.body_b) for e in rollouts[name].log.events if e.kind == "contact"]
    wanted = CONTACTS[name]
    assert [c for c in contacts if c in wanted][: len(wanted)] == wanted
    assert contacts[0] == wanted[0]


def test_shots_begin_after_half_a_second(rollouts):
    for rollout in rollouts.values():
        speed = np.linalg.norm(rollout.log.state.linear_velocity, axis=-1).max(axis=1)
        assert speed[120] == 0
        assert speed[121] > 0.5


def test_the_three_cushion_shot_scores(rollouts):
    contacts = [e for e in rollouts["three_cushion"].log.events if e.kind == "contact"]
    mine = [e.body_b for e in contacts if e.body_a == "cue_ball"]
    red = mine.index("red_ball")
    assert mine[0] == "yellow_ball"
    assert mine[1:red] == ["cushion_far", "cushion_right", "cushion_near"]


def path(rollout, body):
    return rollout.log.state.position[:, rollout.scene.index(body)]


def test_stun_parts_at_a_right_angle_nearly(rollouts):
    rollout = rollouts["stun"]
    hit = next(e for e in rollout.log.events if e.kind == "contact")
    row = rollout.log.state.row_of_substep(round(hit.time * 240))
    a, b = (rollout.log.state.linear_velocity[row, rollout.scene.index(n)] for n in BALLS[:2])
    angle = np.degrees(np.arccos(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    assert 82 < angle < 90  # restitution and throw close it a little
    before = rollout.log.state.angular_velocity[row - 2, rollout.scene.index("cue_ball")]
    assert np.linalg.norm(before) * BALL_RADIUS < 0.05


def test_follow_goes_on_and_draw_comes_back(rollouts):
    follow, draw = path(rollouts["follow"], "cue_ball"), path(rollouts["draw"], "cue_ball")
    assert follow[-1, 0] < 0.2 - 0.2
    assert draw[:, 0].min() > 0.2
    assert draw[-1, 0] > 0.7


def test_near_miss_leaves_the_others_alone(rollouts):
    rollout = rollouts["near_miss"]
    for body in ("yellow_ball", "red_ball"):
        assert np.ptp(path(rollout, body), axis=0).max() == 0
    gap = np.linalg.norm(path(rollout, "cue_ball") - path(rollout, "yellow_ball"), axis=1)
    assert 0.003 < gap.min() - 2 * BALL_RADIUS < 0.005


def test_frozen_pair_sends_the_far_ball_along_the_line(rollouts):
    rollout = rollouts["frozen_pair"]
    way = path(rollout, "red_ball")[140 + 70] - path(rollout, "red_ball")[0]
    assert math.atan2(way[1], -way[0]) == pytest.approx(0.35, abs=0.1)


# --- pictures -----------------------------------------------------------------------------------


@pytest.mark.gl
@pytest.mark.parametrize("view", ["overhead", pytest.param("first", marks=pytest.mark.accept)])
def test_every_label_is_right_to_the_pixel(view):
    env = make(action_mode="flat")
    env.reset(seed=3)
    held = np.array([0.0] * 6 + [0.2, 0.3, 0.5, 0.0, 0.0, 0.0], np.float32)
    env.step(held)
    held[10] = 1.0
    for _ in range(30):
        env.step(held)
    # What the check steps: a random action would end the game.
    env.action_space = SimpleNamespace(sample=lambda: held)
    rng = np.random.default_rng(0)
    assert check_ids_depth(env, rng, 120, view=view) > 75
    assert check_normals(env, rng, 120, view=view) > 75
    assert check_shadow_ids(env, rng, 120, view=view) > 15
    assert check_flow(env, rng, 120, view=view) > 50
    env.close()


@pytest.mark.gl
@pytest.mark.parametrize("view", ["overhead"])
def test_pictures_show_the_balls_of_the_engine(view):
    env = make(width=480, height=264)
    env.reset(seed=3)
    for k in range(40):
        env.step(action(angle=0.1, force=0.3, execute=int(k > 2)))
    layers = env.draw(("ids", "depth"), view=view)
    log, scene = env.log, env.scene
    camera = env.camera_index(view)
    K = intrinsics(float(log.cameras.fov_y[0, camera]), 480, 264)
    pose = log.cameras.T_world_camera[0, camera]
    world = LocalWorld(env.world_spec)
    world.reset()
    engine = world._engine
    for k, done in enumerate(env.actions):
        engine.run(tuple(done), 4 * (k + 1))
    rows, columns = np.mgrid[0:264:3, 0:480:3]
    pixels = np.stack([columns + 0.5, rows + 0.5, np.ones(rows.shape)], -1).reshape(-1, 3)
    ways = pixels @ np.linalg.inv(K).T @ pose[:3, :3].T
    origins = np.broadcast_to(pose[:3, 3], ways.shape)
    bodies, points = engine.cast_rays(origins, origins + 12 * ways)
    ids = layers["ids"][rows, columns].ravel()
    depth = layers["depth"][rows, columns].ravel()
    exact = (points - pose[:3, 3]) @ pose[:3, 2]
    balls = [scene.index(n) for n in BALLS]
    instance = np.array([b.instance for b in scene.bodies])
    hidden = np.isin(ids, [scene.bodies[scene.index("cue_stick")].instance])
    for body in (*balls, scene.index("bed")):
        mine = (bodies == body) & ~hidden
        if body in balls and mine.sum() < 5:
            continue
        if body not in balls:  # cushions and rails are more than the strips that balls touch
            mine &= (np.abs(points[:, :2]) < [1.34, 0.63]).all(axis=1)
        same = ids[mine] == instance[body]
        # Outlines of tessellated balls may differ.
        assert same.mean() > 0.97, scene.bodies[body].name
        np.testing.assert_allclose(depth[mine][same], exact[mine][same], atol=1e-3)
    env.close()


@pytest.mark.gl
def test_every_view_shows_the_balls():
    env = make()
    env.reset(seed=0)
    for view in ("overhead", "static", "top"):
        ids = env.draw(("ids",), view=view)["ids"]
        for name in BALLS:
            assert (ids == env.scene.bodies[env.scene.index(name)].instance).sum() > 15
    ids = env.draw(("ids",), view="overhead")["ids"]
    # 61.5 mm on a table of 3.1 m across 640 pixels.
    assert (ids == env.scene.bodies[env.scene.index("cue_ball")].instance).sum() > 100
    first = env.draw(("ids",), view="first")["ids"]
    for name in ("cue_ball", "cue_stick"):
        assert (first == env.scene.bodies[env.scene.index(name)].instance).sum() > 200
    env.close()


def test_gym_makes_it():
    env = gym.make("WMEval/BilliardGame-v0")
    assert env.action_space["continuous"].shape == (10,)
    assert env.action_space["discrete"].n == 2
    assert env.observation_space.shape == (13,)
    env.close()
