"""SunRisesAndSets: its vector and side channel against closed forms, its camera, its walk."""

import json
import math

import gymnasium as gym
import numpy as np
import pytest

from wmeval import conventions
from wmeval.envs import make_environment
from wmeval.envs.plans import load_plan, plans_of
from wmeval.envs.record import record
from wmeval.envs.terrace import OBJECTS, terrace_bodies
from wmeval.errors import UserError
from wmeval.sim.drivers.sun import daylight

ENV = "WMEval/SunRisesAndSets-v0"
NOTHING = np.zeros(0, np.float32)


@pytest.fixture
def env():
    made = make_environment(ENV)
    yield made
    made.close()


def light_matrix(turn, yaw, pitch=0.0):
    """Unity's R_X(turn) R_Y(yaw) R_X(pitch) in its own left-handed frame."""
    ax, ay, ap = (math.radians(a) for a in (turn, yaw, pitch))

    def about_x(a):
        return np.array([[1, 0, 0], [0, math.cos(a), -math.sin(a)], [0, math.sin(a), math.cos(a)]])

    about_y = np.array(
        [[math.cos(ay), 0, math.sin(ay)], [0, 1, 0], [-math.sin(ay), 0, math.cos(ay)]]
    )
    return about_x(ax) @ about_y @ about_x(ap)


def of_euler(degrees):
    """Unity's matrix of Euler angles: z first, then x, then y."""
    x, y, z = (math.radians(a) for a in degrees)
    rz = np.array([[math.cos(z), -math.sin(z), 0], [math.sin(z), math.cos(z), 0], [0, 0, 1]])
    rx = np.array([[1, 0, 0], [0, math.cos(x), -math.sin(x)], [0, math.sin(x), math.cos(x)]])
    ry = np.array([[math.cos(y), 0, math.sin(y)], [0, 1, 0], [-math.sin(y), 0, math.cos(y)]])
    return ry @ rx @ rz


def test_the_vector_is_camera_target_and_the_lights_exact_angles(env):
    rollout = record(env, plan=load_plan(ENV, "day"), seed=3)
    log = rollout.log
    every = env.clock.substeps
    for k in range(0, 241, 7):
        vector = rollout.observations[k].astype(float)
        row = log.state.row_of_substep(k * every)
        pose = log.cameras.T_world_camera[row, log.cameras.camera("orbit")]
        assert np.allclose(vector[:3], pose[[0, 2, 1], 3], atol=1e-6)
        # The looked-at point lies 8 m along the optical axis.
        seen = pose[:3, 3] + 8.0 * pose[:3, 2]
        assert np.allclose(vector[3:6], seen[[0, 2, 1]], atol=1e-5)
        expected = light_matrix(24.0 + 100.0 * k / 60.0, -30.0)
        assert np.abs(of_euler(vector[6:9]) - expected).max() < 2e-6
        shines = log.lights.sun_direction[row]
        assert np.allclose(of_euler(vector[6:9]) @ [0, 0, 1], shines[[0, 2, 1]], atol=2e-6)


def test_what_one_episode_does_to_its_meshes_no_other_sees():
    _, meshes = terrace_bodies()
    kept = dict(meshes)
    meshes.clear()
    assert dict(terrace_bodies()[1]) == kept


def test_one_turn_takes_three_point_six_seconds(env):
    first = env.reset(seed=0)[0]
    for _ in range(216):
        last = env.step(NOTHING)[0]
    assert np.allclose(first, last, atol=1e-4)
    for _ in range(108):
        half = env.step(NOTHING)[0]
    opposite = of_euler(half[6:9].astype(float)) @ [0, 0, 1]
    there = of_euler(first[6:9].astype(float)) @ [0, 0, 1]
    # Half a turn about X: only the part along X stays.
    assert np.allclose(opposite, there * [1, -1, -1], atol=1e-5)


def test_the_orbit_point_is_the_papers(env):
    vector = env.reset(seed=0)[0].astype(float)
    way = vector[3:6] - vector[:3]
    assert np.linalg.norm(way) == pytest.approx(8.0, abs=1e-5)
    pose = env.log.cameras.T_world_camera[0, 0]
    euler = conventions.unity_camera_euler_degrees(pose)
    assert euler == pytest.approx([30.0, 45.0, 0.0], abs=1e-5)
    assert env.scene.cameras[0].name == "orbit" == env.view


def test_nothing_but_the_light_changes(env):
    log = record(env, plan=load_plan(ENV, "day"), seed=0).log
    assert (log.state.position == log.state.position[0]).all()
    assert (log.state.quaternion_wxyz == log.state.quaternion_wxyz[0]).all()
    orbit = log.cameras.T_world_camera[:, 0]
    assert (orbit == orbit[0]).all()
    for k in range(0, len(log), 60):
        height = math.degrees(math.asin(-log.lights.sun_direction[k, 2]))
        color, *sky = daylight(height)
        assert log.lights.sun_color[k] == pytest.approx(color, abs=1e-9)
        assert log.lights.sky[k] == pytest.approx(np.array(sky), abs=1e-9)


def test_scenes_are_the_same_for_every_seed(env):
    hashes = set()
    for seed in (0, 1):
        env.reset(seed=seed)
        hashes.add(env.scene.content_hash())
    assert len(hashes) == 1


@pytest.mark.parametrize("level", ["none", "state", "full"])
def test_the_side_channel_speaks_every_ten_steps_at_every_level(level):
    env = make_environment(ENV, info_level=level)
    _, info = env.reset(seed=0)
    spoken = [0] if "scene_state" in info else []
    for step in range(1, 32):
        info = env.step(NOTHING)[4]
        if "scene_state" in info:
            spoken.append(step)
            assert json.loads(info["scene_state"])["step"] == step
    assert spoken == [0, 10, 20, 30]
    env.close()


@pytest.mark.parametrize("options", [{}, {"light": "fixed", "camera_path": "walk"}])
def test_the_side_channel_is_the_state(env, options):
    env.reset(seed=0, options=options)
    for _ in range(20):
        vector, _, _, _, info = env.step(NOTHING)
    told = json.loads(info["scene_state"])
    assert told["time"] == pytest.approx(20 / 60)
    objects = {o["name"]: o for o in told["objects"]}
    log = env.log
    assert set(objects) == {*log.state.bodies, "Main Camera"}
    assert set(OBJECTS) <= set(objects)
    swap = np.eye(3)[[0, 2, 1]]
    for i, name in enumerate(log.state.bodies):
        assert np.allclose(objects[name]["position"], swap @ log.state.position[-1, i])
        turn = conventions.quaternion_to_matrix(log.state.quaternion_wxyz[-1, i])
        assert np.allclose(of_euler(objects[name]["euler"]), swap @ turn @ swap, atol=1e-12)
    camera = objects["Main Camera"]
    assert np.allclose(camera["position"], vector[:3], atol=1e-5)
    forward = of_euler(camera["euler"]) @ [0, 0, 1]
    way = (vector[3:6] - vector[:3]).astype(float)
    assert np.allclose(forward, way / np.linalg.norm(way), atol=1e-5)
    light = told["light"]
    assert np.allclose(light["euler"], vector[6:9], atol=1e-4)
    r, g, b = log.lights.sun_color[-1]
    assert light["intensity"] == pytest.approx(0.2126 * r + 0.7152 * g + 0.0722 * b)


def test_a_fixed_light_stands_where_it_is_asked_to(env):
    for azimuth, elevation in ((0.0, 45.0), (90.0, 10.0), (200.0, 70.0)):
        options = {"light": "fixed", "azimuth_deg": azimuth, "elevation_deg": elevation}
        first = env.reset(seed=0, options=options)[0]
        for _ in range(30):
            last = env.step(NOTHING)[0]
        assert (first[6:] == last[6:]).all()
        direction = env.log.lights.sun_direction[-1]
        a, e = math.radians(azimuth), math.radians(elevation)
        to_sun = np.array([math.sin(a) * math.cos(e), math.cos(a) * math.cos(e), math.sin(e)])
        assert np.allclose(direction, -to_sun, atol=1e-12)
        # As in Unity's inspector: pitch is the elevation, yaw the way of the light.
        assert first[6] == pytest.approx(elevation, abs=1e-4)
        assert math.remainder(first[7] - (azimuth + 180), 360) == pytest.approx(0, abs=1e-4)
        assert first[8] == pytest.approx(0, abs=1e-4)


@pytest.mark.parametrize("name", ["walk_orbit", "walk_orbit_back"])
def test_the_walk_rounds_the_table_once(env, name):
    rollout = record(env, plan=load_plan(ENV, name), seed=0)
    seen = rollout.observations.astype(float)
    assert len(seen) == 721
    assert np.allclose(seen[0, :3], seen[-1, :3], atol=1e-5)
    assert np.allclose(np.hypot(seen[:, 0], seen[:, 2]), 2.9, atol=1e-5)
    assert np.allclose(seen[:, 1], 1.6, atol=1e-6)
    # Unity's x and z are the world's x and y; counter-clockwise from above is forward.
    angle = np.unwrap(np.arctan2(seen[:, 2], seen[:, 0]))
    assert angle[-1] - angle[0] == pytest.approx(
        math.tau if name == "walk_orbit" else -math.tau, abs=1e-5
    )
    assert np.allclose(np.diff(angle), (angle[-1] - angle[0]) / 720, atol=1e-6)
    assert (rollout.log.lights.sun_direction == rollout.log.lights.sun_direction[0]).all()
    pose = rollout.log.cameras.T_world_camera[:, rollout.log.cameras.camera("first")]
    way = np.array([0, 0, 0.62]) - pose[:, :3, 3]
    way /= np.linalg.norm(way, axis=1, keepdims=True)
    assert np.allclose(pose[:, :3, 2], way, atol=1e-9)


def test_a_bobbing_walk_is_in_the_vector(env):
    env.reset(seed=0, options={"camera_path": "walk", "bob_m": 0.05})
    heights = [env.step(NOTHING)[0][1] for _ in range(60)]
    assert min(heights) == pytest.approx(1.6, abs=1e-3)
    assert max(heights) == pytest.approx(1.65, abs=1e-3)


def test_a_regime_that_turns_the_camera_takes_the_looked_at_point_with_it(env):
    env.reset(seed=0, options={"camera_motion": "perturb_left"})
    for _ in range(40):
        vector = env.step(NOTHING)[0].astype(float)
    pose = env.log.cameras.T_world_camera[-1, 0]
    assert np.allclose(vector[:3], pose[[0, 2, 1], 3], atol=1e-5)
    way = vector[3:6] - vector[:3]
    assert np.allclose(way / np.linalg.norm(way), pose[[0, 2, 1], 2], atol=1e-5)
    still = np.array([-4.8989795, 4.62, -4.8989795])
    assert not np.allclose(np.hstack([vector[:3], way]), np.hstack([still, -still - [0, -0.62, 0]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"light": "moon"}, "option light = 'moon': choose from turning, fixed"),
        ({"camera_path": "fly"}, "option camera_path = 'fly': choose from fixed, walk"),
        ({"light": "fixed", "elevation_deg": 91}, "elevation_deg = 91: give a number in -90..90"),
        ({"turn_deg": "noon"}, "turn_deg = 'noon': give a number"),
        ({"turn_deg": True}, "turn_deg = True: give a number"),
        ({"azimuth_deg": 10}, "azimuth_deg says nothing with light 'turning'"),
        ({"light": "fixed", "turn_deg": 10}, "turn_deg says nothing with light 'fixed'"),
        ({"bob_m": 0.1}, "bob_m says nothing"),
    ],
)
def test_wrong_options_are_told(env, options, message):
    with pytest.raises(UserError, match=message):
        env.reset(seed=0, options=options)


def test_no_step_takes_an_action_and_none_ends_the_day(env):
    assert env.action_space == gym.spaces.Box(-1.0, 1.0, (0,), np.float32)
    env.reset(seed=0)
    with pytest.raises(UserError, match="shape"):
        env.step(np.zeros(1, np.float32))
    short = make_environment(ENV, max_steps=3)
    short.reset(seed=0)
    ends = [short.step(NOTHING)[2:4] for _ in range(3)]
    assert ends == [(False, False), (False, False), (False, True)]
    short.close()


def test_every_plan_serves_the_lighting_dimension():
    names = plans_of(ENV)
    assert set(names) == {
        "day", "two_days", "sunrise", "sunset", "walk_orbit", "walk_orbit_back"
    }  # fmt: skip
    assert all(load_plan(ENV, n).dimensions == ("lighting",) for n in names)


@pytest.mark.gl
def test_day_is_brighter_than_dusk_and_dusk_than_night(env):
    def brightness(turn):
        env.reset(seed=0, options={"turn_deg": turn})
        return env.draw(("rgb",), width=160, height=88)["rgb"].mean(axis=(0, 1))

    noon, low, dusk, night = (brightness(t) for t in (90.0, 8.0, 184.0, 270.0))
    assert noon.sum() > low.sum() > dusk.sum() > night.sum()
    # Redder when the sun is low, blue at night, and never black.
    assert low[0] / low[2] > 1.3 * noon[0] / noon[2]
    assert night[2] > night[0] * 0.8
    assert night.mean() > 12


@pytest.mark.gl
def test_every_thing_on_the_deck_is_seen_from_the_orbit_point(env):
    env.reset(seed=0)
    ids = env.draw(("ids",))["ids"]
    for name in OBJECTS:
        instance = env.scene.bodies[env.scene.index(name)].instance
        assert (ids == instance).sum() > (8 if name == "knife" else 50), name
