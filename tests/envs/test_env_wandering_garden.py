"""WanderingGarden: the vector, the anchors, the visitors, the explorer, the labels."""

import dataclasses
import math

import numpy as np
import pytest
from exactness import check_flow, check_ids_depth, check_normals
from scipy.spatial.transform import Rotation

from wmeval.envs import environment_class
from wmeval.envs.garden_court import PLAYER_HEIGHT, PLAYER_RADIUS, VISITOR_RADIUS
from wmeval.envs.plans import load_plan, plans_of
from wmeval.envs.policies import Task, make_policy
from wmeval.envs.record import record
from wmeval.envs.wandering_garden import WanderingGarden
from wmeval.errors import UserError
from wmeval.sim.drivers.footprints import Court, outlines
from wmeval.sim.drivers.spline import ClosedSpline

ENV = "WMEval/WanderingGarden-v0"
ROLES = {"anchor", "tree", "bush", "bench", "ornament", "visitor"}
SWAP = [0, 2, 1]


def make(**kwargs):
    return WanderingGarden(**{"observation_mode": "vector", **kwargs})


@pytest.fixture(scope="module")
def walk():
    env = make()
    rollout = record(env, plan=load_plan(ENV, "walk_path"), seed=4, max_steps=210)
    yield env, rollout
    env.close()


def test_vector_is_what_the_log_says(walk):
    _, rollout = walk
    scene, state = rollout.scene, rollout.log.state
    player = scene.index("player")
    objects = [i for i, b in enumerate(scene.bodies) if b.role in ROLES]
    most = 0
    for step in range(0, len(rollout) + 1, 23):
        row = 4 * step
        out = rollout.observations[step]
        me = state.position[row, player]
        w, x, y, z = state.quaternion_wxyz[row, player]
        forward = np.array([2 * (x * y - w * z), 1 - 2 * (x * x + z * z), 2 * (y * z + w * x)])
        np.testing.assert_allclose(out[0:3], me[SWAP], atol=1e-5)
        np.testing.assert_allclose(out[3:6], forward[SWAP], atol=1e-6)
        np.testing.assert_allclose(out[6:9], state.linear_velocity[row, player][SWAP], atol=1e-5)
        near = sorted(
            (float(np.linalg.norm(state.position[row, i] - me)), i)
            for i in objects
            if np.linalg.norm(state.position[row, i] - me) <= 15
        )
        assert out[9] == len(near)
        most = max(most, len(near))
        for k, (distance, i) in enumerate(near[:10]):
            slot = out[10 + 4 * k : 14 + 4 * k]
            np.testing.assert_allclose(slot[:3], (state.position[row, i] - me)[SWAP], atol=1e-4)
            assert slot[3] == pytest.approx(distance, abs=1e-4)
    assert most > 10  # the count is not limited to the ten that are told
    space = WanderingGarden(observation_mode="vector").observation_space
    assert (rollout.observations >= space.low).all()
    assert (rollout.observations <= space.high).all()


def test_slots_beyond_the_detected_objects_are_zero():
    env = make()
    env.reset(seed=0)
    for _ in range(600):  # into the south-west corner, where little stands
        vector, *_ = env.step(np.array([-0.8, -0.6, 0, 0], np.float32))
    assert vector[9] <= 12
    told = int(min(vector[9], 10))
    assert (vector[10 + 4 * told :] == 0).all()
    distances = vector[13 : 13 + 4 * told : 4]
    assert (np.diff(distances) >= 0).all()


def test_the_velocity_is_what_was_covered(walk):
    _, rollout = walk
    state = rollout.log.state
    player = rollout.scene.index("player")
    covered = np.diff(state.position[:, player], axis=0) * 240
    np.testing.assert_allclose(state.linear_velocity[1:, player], covered, atol=1e-9)


def test_five_anchors_stand_where_they_stand_for_every_seed():
    scenes = []
    for seed in range(3):
        env = make()
        env.reset(seed=seed)
        scenes.append(env.scene)
    anchors = [b for b in scenes[0].bodies if b.role == "anchor"]
    assert tuple(b.name for b in anchors) != ()
    assert {b.name for b in anchors} == set(WanderingGarden.ANCHORS)
    assert len(anchors) == 5
    for scene in scenes[1:]:
        for body in anchors:
            assert scene.bodies[scene.index(body.name)] == body
    bushes = [tuple(b.position for b in scene.bodies if b.role == "bush") for scene in scenes]
    assert len(set(bushes)) == 3
    assert [len(s.bodies) for s in scenes] == [len(scenes[0].bodies)] * 3


def test_nothing_stands_on_the_walks_of_the_visitors_or_where_the_player_starts():
    for seed in range(5):
        env = make()
        env.reset(seed=seed)
        scene = env.scene
        walls = outlines(scene, 0.25, PLAYER_HEIGHT, (scene.index("player"),))
        court = Court(walls, VISITOR_RADIUS)
        walks = [d.params for d in env.world_spec.drivers if d.kind == "spline"]
        assert len(walks) == 2
        for params in walks:
            curve = ClosedSpline(params["points"])
            places = [curve.at(s)[0] for s in np.arange(0, curve.length, 0.1)]
            assert min(court.clear(x, y) for x, y, _ in places) > 0.15
        x, y, _ = scene.bodies[scene.index("player")].position
        assert Court(walls, PLAYER_RADIUS).clear(x, y) > 0.4


def test_the_player_cannot_leave_the_court():
    env = make(max_steps=700)
    for seed, action in enumerate(((1, 0.4), (-0.8, -1), (-0.2, 1.0))):
        env.reset(seed=seed)
        for _ in range(700):
            vector, _, terminated, *_ = env.step(np.array([*action, 0, 0], np.float32))
        assert not terminated
        assert abs(vector[0]) < 19
        assert -17.7 < vector[2] < 21.7
        assert vector[1] == pytest.approx(PLAYER_HEIGHT / 2)


def test_camera_twist_is_what_each_channel_does_at_full_action():
    env = make()
    for channel in range(4):
        env.reset(seed=0)
        action = np.zeros(4, np.float32)
        action[channel] = -1.0 if channel == 1 else 1.0
        action[channel] *= 0.5  # 2 m/s keeps to the free walk; all is linear
        for _ in range(40):
            env.step(action)
        before = env.log.cameras.T_world_camera[0, 0]
        env.step(action)
        moved = np.linalg.inv(before) @ env.log.cameras.T_world_camera[0, 0]
        twist = np.concatenate([moved[:3, 3], Rotation.from_matrix(moved[:3, :3]).as_rotvec()]) * 60
        np.testing.assert_allclose(twist / action[channel], env.camera_twist[:, channel], atol=0.01)


def play(name, seed, look=None, every=20, **kwargs):
    """Camera poses and the player's places every so many actions of a plan; ``look`` sees each."""
    env = make(**kwargs)
    plan = load_plan(ENV, name)
    env.reset(seed=seed, options=dict(plan.reset_options))
    player = env.scene.index("player")
    poses, places, looks = [], [], []
    actions = plan.actions(env.channels, env.clock.control_period).astype(np.float32)
    for step in range(len(actions) + 1):
        if step % every == 0:
            log = env.log
            poses.append(log.cameras.T_world_camera[0, 0])
            places.append(log.state.position[0, player])
            looks.append(look(env) if look else None)
        if step < len(actions):
            env.step(actions[step])
    env.close()
    return np.array(poses), np.array(places), looks


@pytest.mark.accept
def test_every_plan_does_what_it_says():
    ends = {name: play(name, seed=2)[:2] for name in plans_of(ENV)}
    for name, (pose, _) in ends.items():
        if name != "walk_path":  # everything else comes back to the first picture
            np.testing.assert_allclose(pose[-1, :3, :3], pose[0, :3, :3], atol=1e-2)
            assert np.linalg.norm(pose[-1, :3, 3] - pose[0, :3, 3]) < 0.05
    place = ends["walk_path"][1]
    assert place[-1, 1] - place[0, 1] > 10
    place = ends["out_and_back"][1]
    assert 7.5 < place[:, 1].max() - place[0, 1] < 9
    place = ends["strafe"][1]
    assert place[:, 0].max() > 1.5
    assert place[:, 0].min() < -1.5
    assert np.ptp(place[:, 1]) < 1e-9
    # Looking up the camera's forward axis rises: the 36 degrees of the card, and as far down.
    rise = np.degrees(np.arcsin(ends["pitch_sweep"][0][:, 2, 2]))
    assert rise.max() == pytest.approx(36, abs=0.5)
    assert rise.min() == pytest.approx(-36, abs=0.5)
    for name, turn in (("sweep_left", 1), ("sweep_right", -1), ("yaw_sweep", -1)):
        ahead = ends[name][0][:, :2, 2]
        heading = np.unwrap(np.arctan2(ahead[:, 1], ahead[:, 0]))
        assert math.degrees(heading[-1] - heading[0]) == pytest.approx(360 * turn, abs=0.5)


# --- pictures -----------------------------------------------------------------------------------


def seen(env):
    """Pixels of each anchor now."""
    ids = env.draw(("ids",), view="first", width=320, height=176)["ids"]
    scene = env.scene
    return {n: int((ids == scene.bodies[scene.index(n)].instance).sum()) for n in env.ANCHORS}


@pytest.mark.gl
@pytest.mark.parametrize(
    "motion",
    [
        "sweep_left",
        pytest.param("sweep_right", marks=pytest.mark.accept),
        pytest.param("perturb_left", marks=pytest.mark.accept),
        "perturb_right",
    ],
)
def test_anchors_are_permanent(motion):
    """What a perfect candidate shows: the five landmarks, at the end as at the start."""
    _, _, counts = play(motion, 1, seen, every=50)
    first, last = counts[0], counts[-1]
    assert min(first.values()) > 30, first
    for name in first:
        # Leaves and visitors in front of them move; nothing else does.
        assert abs(first[name] - last[name]) <= 0.25 * first[name] + 20, name
    if motion.startswith("sweep"):
        # They do leave the view.
        assert sum(not any(c.values()) for c in counts) >= 5
    else:
        middle = counts[len(counts) // 2]
        gone = [n for n in middle if middle[n] == 0]
        assert ("lamp_right" if motion == "perturb_left" else "lamp_left") in gone
        assert len(gone) < 5


@pytest.mark.gl
def test_the_picture_is_the_first_person_view():
    env = WanderingGarden()
    observation, _ = env.reset(seed=3)
    assert observation["image"].shape == (128, 128, 3)
    drawn = env.draw(("rgb",), width=128, height=128, view="first")["rgb"]
    np.testing.assert_array_equal(observation["image"], drawn)
    turned, *_ = env.step(np.array([0, 0, 1, 0], np.float32))
    assert np.abs(turned["image"].astype(int) - observation["image"]).mean() > 1
    assert observation["image"].std() > 35
    env.close()


@pytest.mark.gl
@pytest.mark.accept
@pytest.mark.parametrize("check", [check_ids_depth, check_normals, check_flow])
def test_labels_are_right_to_the_pixel(check):
    env = make()
    env.reset(seed=6)
    for _ in range(40):
        env.step(np.array([0.1, 0.4, 0.1, 0.05], np.float32))
    assert check(env, np.random.default_rng(1), 250) > 60
    env.close()


# --- the explorer -------------------------------------------------------------------------------


def explore(seed, seconds):
    env = make(max_steps=60 * seconds)
    vector, _ = env.reset(seed=seed)
    policy = make_policy("explorer")
    policy.begin(Task.of(env))
    track = [vector[[0, 2]]]
    for step in range(60 * seconds):
        vector, *_ = env.step(policy.act(step, vector, {}))
        track.append(vector[[0, 2]].copy())
    return np.array(track)


def wanders(track):
    """Least distance that it gets away from any place within 5 s, and squares of 3 m it visits."""
    starts = range(0, len(track) - 300, 20)
    reach = min(float(np.abs(track[k : k + 300] - track[k]).max()) for k in starts)
    return reach, len(set(map(tuple, np.floor(track / 3).astype(int).tolist())))


def test_the_explorer_walks_on():
    track = explore(7, 15)
    reach, cells = wanders(track)
    assert reach > 0.5
    assert cells >= 6
    np.testing.assert_array_equal(track, explore(7, 15))
    assert np.abs(track - explore(8, 15)).max() > 1


@pytest.mark.accept
@pytest.mark.parametrize("seed", range(5))
def test_the_explorer_is_never_stuck_in_a_minute(seed):
    track = explore(seed, 60)
    reach, cells = wanders(track)
    assert reach > 0.5
    assert cells > 20
    assert np.linalg.norm(np.diff(track, axis=0), axis=1).sum() > 80


def test_the_explorer_keeps_to_scenes_with_a_walker():
    env = environment_class("BallRoller")()
    with pytest.raises(UserError, match="walks with strafe, forward, yaw, pitch"):
        record(env, policy=make_policy("explorer"), seed=0)
    with pytest.raises(UserError, match=r"pace in \(0, 1\], a sway in \[0, 1\]"):
        make_policy("explorer", pace=0.0)
    with pytest.raises(UserError, match=r"got pace 0.5, sway 1.1"):
        make_policy("explorer", sway=1.1)
    make_policy("explorer", sway=0.0)


def test_the_explorer_knows_the_walkers_speed_from_the_scene():
    env = make()
    env.reset(seed=0)
    task = dataclasses.replace(Task.of(env), seed=5)
    still = np.zeros(50, np.float32)
    still[5], still[8] = 1.0, 0.5  # Ahead, at 0.5 m/s.
    turns = []
    for factor in (1.0, 0.25):
        # Half of 4 m/s is asked for and 0.5 got: stuck; half of 1 m/s: not.
        policy = make_policy("explorer", sway=0.0)
        policy.begin(dataclasses.replace(task, camera_twist=factor * env.camera_twist))
        rows = np.array([policy.act(step, still, {}) for step in range(60)])
        turns.append(bool((rows[:, 1] == 0).any()))
    assert turns == [True, False]
    with pytest.raises(UserError, match="needs the walker's speed"):
        make_policy("explorer").begin(dataclasses.replace(task, camera_twist=None))
    env.close()
