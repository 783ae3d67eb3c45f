"""RacingCar: vector, cameras, plans, the edge, and labels while tiles are recycled."""

import dataclasses
import math
import os
import subprocess
import sys
from functools import lru_cache

import exactness
import numpy as np
import pytest
from exactness import check_flow, check_ids_depth, check_normals, check_shadow_ids
from gymnasium.utils.env_checker import check_env
from scipy.spatial.transform import Rotation

from wmeval.conventions import intrinsics, project
from wmeval.datasets.rollout import read, write_hdf5
from wmeval.envs.plans import load_plan, plans_of
from wmeval.envs.racing_car import BEGIN_M, MASS, TOP_SPEED_MPS, RacingCar
from wmeval.envs.record import record
from wmeval.sim.protocol import render_state
from wmeval.sim.render import labels
from wmeval.sim.render.raster import RasterRenderer

SWAP = [0, 2, 1]
"""World (x right, y forward, z up) to Unity (x right, y up, z forward)."""
FULL, BACK, BRAKE = ((0.0, t, b) for t, b in ((1.0, 0.0), (-1.0, 0.0), (0.0, 1.0)))


def long_case(*values):
    """A case that `make accept` runs."""
    return pytest.param(*values, marks=pytest.mark.accept)


@lru_cache(maxsize=32)
def play(plan):
    env = RacingCar()
    rollout = record(env, plan=load_plan("RacingCar", plan), seed=3)
    env.close()
    return rollout


def driven(steps, action, *, options=None, **kwargs):
    env = RacingCar(action_mode="flat", **kwargs)
    env.reset(seed=3, options=options)
    for _ in range(steps):
        env.step(np.array(action, np.float32))
    return env


@pytest.mark.parametrize("mode", ["hybrid", "flat"])
def test_gymnasium_accepts_it(mode):
    env = RacingCar(action_mode=mode)
    check_env(env, skip_render_check=True)
    env.close()


@pytest.mark.parametrize("plan", ["slalom", "brake"])
def test_vector_by_independent_code(plan):
    rollout = play(plan)
    state = rollout.states_at_control()
    car = state.bodies.index("car")
    turn = Rotation.from_quat(state.quaternion_wxyz[:, car][:, [1, 2, 3, 0]])
    velocity = state.linear_velocity[:, car]
    out = rollout.observations
    assert out.shape[1] == 13
    np.testing.assert_allclose(out[:, 0:3], state.position[:, car][:, SWAP], atol=1e-5)
    ahead = turn.apply([0, 1, 0])[:, SWAP]
    np.testing.assert_allclose(out[:, 3:6], ahead, atol=1e-6)
    np.testing.assert_allclose(out[:, 6:9], velocity[:, SWAP], atol=1e-5)
    speed = np.minimum(np.linalg.norm(velocity, axis=1) * 3.6 / 120, 1)
    np.testing.assert_allclose(out[:, 9], speed, atol=1e-6)
    # The inputs in force over the step that has just been done.
    np.testing.assert_array_equal(out[1:, 10:13], rollout.actions.astype(np.float32))
    np.testing.assert_array_equal(out[0, 10:13], 0)
    space = RacingCar().observation_space
    assert (out >= space.low).all()
    assert (out <= space.high).all()
    assert out[:, 12].max() == (1.0 if plan == "brake" else 0.0)


def test_normalised_speed_ends_at_one():
    env = driven(1100, FULL, max_steps=2000)
    assert env.vector[8] == pytest.approx(TOP_SPEED_MPS, rel=0.02)
    assert 0.97 < env.vector[9] <= 1.0
    env.close()


def test_reversing_over_the_edge_ends_the_episode():
    env = RacingCar(action_mode="flat")
    env.reset(seed=0)
    for _ in range(600):
        vector, _, terminated, truncated, _ = env.step(np.array(BACK, np.float32))
        if terminated:
            break
    assert terminated
    assert not truncated
    assert 120 < len(env.actions) < 400
    assert vector[2] < BEGIN_M
    assert vector[1] < -2
    env.close()


def test_follow_camera_answers_to_speed():
    """Up to 3 m further back, further ahead, and 65 to 80 degrees; smoothly."""
    rollout = play("full_throttle")
    log, scene = rollout.log, rollout.scene
    camera, car = log.cameras.camera("follow"), scene.index("car")
    fov = np.degrees(log.cameras.fov_y[:, camera])
    eye = log.cameras.T_world_camera[:, camera, :3, 3]
    back = log.state.position[:, car, 1] - eye[:, 1]
    assert fov[0] == pytest.approx(65)
    assert back[0] == pytest.approx(6.0)
    for values, most in ((fov, 15.0), (back, 3.0)):
        grown = values - values[0]
        assert (np.diff(grown) >= 0).all()
        share = log.state.linear_velocity[-1, car, 1] / TOP_SPEED_MPS
        assert 0.75 * share < grown[-1] / most < share
        assert np.abs(np.diff(values, 2)).max() < 1e-3
    # It looks down less, since it looks further ahead.
    down = -log.cameras.T_world_camera[:, camera, 2, 2]
    assert down[-1] < 0.75 * down[0]
    env = driven(1500, FULL, max_steps=2000)
    last = env.log
    assert np.degrees(last.cameras.fov_y[-1, camera]) == pytest.approx(80, abs=0.5)
    gap = last.state.position[-1, car, 1] - last.cameras.T_world_camera[-1, camera, 1, 3]
    assert gap == pytest.approx(9.0, abs=0.05)
    env.close()


def test_other_cameras_stand_still_or_ride_along():
    rollout = play("u_turn")
    log = rollout.log
    for name in ("static", "top"):
        pose = log.cameras.T_world_camera[:, log.cameras.camera(name)]
        assert (pose == pose[0]).all()
    car, first = rollout.scene.index("car"), log.cameras.camera("first")
    eye = log.cameras.T_world_camera[:, first]
    turn = Rotation.from_quat(log.state.quaternion_wxyz[:, car][:, [1, 2, 3, 0]])
    own = turn.inv().apply(eye[:, :3, 3] - log.state.position[:, car])
    assert np.ptp(own, axis=0).max() < 1e-9
    ahead = turn.apply([0, 1, 0])
    assert (np.einsum("ij,ij->i", ahead, eye[:, :3, 2]) > 0.99).all()


@pytest.mark.parametrize("name", plans_of("RacingCar"))
def test_still_views_show_the_car_in_every_plan_all_along(name):
    rollout = play(name)
    car = rollout.scene.index("car")
    for view in ("static", "top"):
        camera = rollout.log.cameras.camera(view)
        K = intrinsics(float(rollout.log.cameras.fov_y[0, camera]), 640, 352)
        pose = rollout.log.cameras.T_world_camera[0, camera]
        pixels, depth = project(rollout.log.state.position[::4, car], K, pose)
        half = (2.3 * K[0, 0] / depth)[:, None]
        assert half.min() > 12  # at least 24 px long
        assert ((pixels - half > 8) & (pixels + half < [632, 344])).all()


def test_plans_do_what_they_say():
    ends = {}
    for name in ("brake", "lane_change", "u_turn", "guard_rail", "turn_left", "turn_right"):
        rollout = play(name)
        ends[name] = rollout.observations
        hits = [e for e in rollout.log.events if e.kind == "contact"]
        assert bool(hits) == (name == "guard_rail")
        if hits:
            assert {hits[0].body_a, hits[0].body_b} == {"car", "rail_right"}
            assert 4 < hits[0].time < 5
    heading = {n: np.degrees(np.arctan2(o[:, 3], o[:, 5])) for n, o in ends.items()}
    assert ends["brake"][-1, 9] < 1e-3
    assert ends["brake"][:, 9].max() > 0.35
    assert -1.9 < ends["lane_change"][-1, 0] < -1.5
    assert abs(heading["lane_change"][-1]) < 1
    assert abs(heading["u_turn"][-1]) > 170
    assert heading["turn_left"][-1] == pytest.approx(-40, abs=3)
    assert heading["turn_right"][-1] == pytest.approx(27, abs=3)


def test_momentum_and_energy_follow_from_what_is_recorded():
    """The mechanics of the dimension: p = m v and its change is the impulse of rails and road."""
    rollout = play("brake")
    state = rollout.log.state
    car = state.bodies.index("car")
    p = MASS * state.linear_velocity[:, car, 1]
    rows = (state.substep > 4.1 * 240) & (state.substep < 5.2 * 240)
    force = np.gradient(p, state.substep / 240)[rows]
    load = state.modal["load"][rows].sum(axis=1)
    drag = 0.42 * state.linear_velocity[rows, car, 1] ** 2
    assert np.median((-force - drag) / load) == pytest.approx(0.9145, abs=0.02)


def test_snapshots_branches_and_files_hold_it(tmp_path):
    env = driven(40, (0.3, 0.8, 0.0))
    snapshot = env.get_state()
    copy = RacingCar(action_mode="flat")
    np.testing.assert_array_equal(copy.set_state(snapshot)[0], env.vector)
    (branch,) = env.branch(1)
    for one in (env, copy, branch):
        for _ in range(20):
            one.step(np.array(BRAKE, np.float32))
    assert env.log.state.sha256() == copy.log.state.sha256() == branch.log.state.sha256()
    for one in (env, copy, branch):
        one.close()
    rollout = play("turn_left")
    path = tmp_path / "car.h5"
    write_hdf5(rollout, path)
    again = read(path)
    assert again.log.state.sha256() == rollout.log.state.sha256()
    np.testing.assert_array_equal(again.log.state.modal["load"], rollout.log.state.modal["load"])


def test_every_info_level_tells_of_the_same_states():
    envs = [RacingCar(action_mode="flat", info_level=level) for level in ("none", "state", "full")]
    for env in envs:
        env.reset(seed=4)
    for step in range(150):
        action = np.array([0.1 * (step % 5), 1.0, float(step > 120)], np.float32)
        vectors = [env.step(action)[0] for env in envs]
        assert all(v.tobytes() == vectors[0].tobytes() for v in vectors)
    assert len({env.log.state.sha256() for env in envs}) == 1
    for env in envs:
        env.close()


_RECORD = """
from wmeval.envs.policies import RandomPolicy
from wmeval.envs.racing_car import RacingCar
from wmeval.envs.record import record
policy = RandomPolicy(scale=2.0, correlation=1.0, stop_after=150)
print(record(RacingCar(), policy=policy, seed=2).sha256())
"""


def test_two_processes_record_the_same_bits():
    outputs = {
        subprocess.run(
            [sys.executable, "-c", _RECORD], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1
    assert len(outputs.pop()) == 64


def test_a_world_with_half_the_friction_brakes_twice_as_long():
    """The perturbation scales each body's share of a pair: the wheels' and the road's."""
    ways = []
    for perturb in (None, "friction=0.5"):
        env = driven(120, (0.0, 0.5, 0.0), perturb=perturb)
        start = env.vector[2], env.vector[8]
        for _ in range(300):
            env.step(np.array(BRAKE, np.float32))
        ways.append((env.vector[2] - start[0]) / start[1] ** 2)
        env.close()
    assert ways[1] == pytest.approx(2 * ways[0], rel=0.05)


def test_hybrid_and_flat_actions_are_the_same():
    hybrid, flat = RacingCar(), RacingCar(action_mode="flat")
    hybrid.reset(seed=1)
    flat.reset(seed=1)
    for step in range(90):
        on = int(step > 60)
        parts = {"continuous": np.array([0.2, 0.9], np.float32), "discrete": np.array([on])}
        a = hybrid.step(parts)[0]
        b = flat.step(np.array([0.2, 0.9, on], np.float32))[0]
        np.testing.assert_array_equal(a, b)
    assert a[12] == 1
    hybrid.close()
    flat.close()


# --- pictures -----------------------------------------------------------------------------------


@pytest.fixture
def large_labels(monkeypatch):
    """Look at what covers 60 pixels or more: a far tree is smaller than what rays agree about."""

    def sample(self, layer, rng, n):
        values, counts = np.unique(layer, return_counts=True)
        values = values[counts >= 60]
        each = -(-n // len(values))
        picked = [rng.permutation(np.argwhere(layer == v))[:each] for v in values]
        return rng.permutation(np.concatenate(picked))[:n]

    monkeypatch.setattr(exactness.View, "sample", sample)


@pytest.mark.gl
@pytest.mark.parametrize("view", ["follow", "static", long_case("first"), long_case("top")])
def test_labels_agree_with_rays(view, large_labels):
    env = driven(200, (0.1, 1.0, 0.0), options={"view": view})
    env.action_space.seed(1)
    for check in (check_ids_depth, check_normals, check_flow):
        assert check(env, np.random.default_rng(4), 200) > 40
    if view != "first":  # from 1 m a texel of the shadow map is many pixels
        assert check_shadow_ids(env, np.random.default_rng(4), 200) > 20
    env.close()


@pytest.mark.gl
@pytest.mark.parametrize(
    ("view", "turn"), [long_case("follow", False), long_case("first", False), ("first", True)]
)
def test_flow_while_tiles_are_recycled(view, turn):
    """All but the car is a still world: flow is its reprojection, or NaN where a tile is gone."""
    options = {"view": view} | ({"camera_motion": "sweep_left"} if turn else {})
    env = RacingCar(action_mode="flat", max_steps=2000)
    env.reset(seed=3, options=options)
    recycled = 0
    before = None
    scene = env.scene
    instance = labels.instances(scene)
    own = np.array([b.role in ("player", "wheel") for b in scene.bodies])
    slots = np.array([b.role in ("tile", "guard_rail", "tree") for b in scene.bodies])
    for _ in range(500):
        env.step(np.array(FULL, np.float32))
    for _ in range(20):
        for _ in range(24):
            env.step(np.array(FULL, np.float32))
        state = render_state(env.log, -1, scene, env.camera_index())
        layers = env.draw(("ids", "depth"), width=320, height=176)
        if before is not None:
            recycled += int((before[0].active != state.active).sum())
            flow = labels.flow(before[1]["depth"], before[1]["ids"], before[0], state, instance)
            still = labels.flow(
                before[1]["depth"], np.zeros_like(before[1]["ids"]), before[0], state, instance
            )
            moving = np.isin(before[1]["ids"], instance[own])
            gone = np.isin(before[1]["ids"], instance[slots & ~state.active])
            assert np.isnan(flow[gone]).all()
            rest = ~(moving | gone)
            np.testing.assert_array_equal(flow[rest], still[rest])
        before = state, layers
    assert recycled >= 4 * 2 * 8
    env.close()


@pytest.mark.gl
def test_tiles_appear_where_nobody_sees_it():
    """A new tile stands so far off in the haze that hardly a pixel changes."""
    env = RacingCar(action_mode="flat", max_steps=2000)
    env.reset(seed=3)
    before = None
    for _ in range(1200):
        env.step(np.array(FULL, np.float32))
        state = render_state(env.log, -1, env.scene, 0) if len(env.actions) > 700 else None
        if state is not None and before is not None and (state.active & ~before).any():
            break
        before = None if state is None else state.active
    new = state.active & ~before
    assert new.sum() == 8
    pictures = []
    for active in (state.active, before & state.active):
        renderer = RasterRenderer(env.scene, env.meshes)
        shown = dataclasses.replace(state, active=active)
        pictures.append(renderer.draw(shown, 640, 352, ("rgb",))["rgb"].astype(int))
        renderer.close()
    off = np.abs(pictures[0] - pictures[1]).max(axis=2)
    assert (off > 8).sum() < 20
    assert off.max() < 40
    env.close()


@pytest.mark.gl
def test_the_drivers_eye_sees_road_where_the_car_is():
    """The car has no inside: it is not seen from there, while its shadow is."""
    env = RacingCar(action_mode="flat")
    env.reset(seed=3, options={"view": "first", "camera_motion": "turn"})
    own = [b.instance for b in env.scene.bodies if b.role in ("player", "wheel")]
    shadow = 0
    for _ in range(8):
        for _ in range(75):
            env.step(np.zeros(3, np.float32))
        layers = env.draw(("ids", "shadow_ids"), width=320, height=176)
        assert not np.isin(layers["ids"], own).any()
        shadow += int(np.isin(layers["shadow_ids"], own).sum())
    assert shadow > 100
    env.close()


@pytest.mark.gl
def test_only_sky_is_seen_past_the_edge():
    """Half a turn of the third-person orbit: the camera looks past the car at the beginning."""
    env = RacingCar(action_mode="flat")
    env.reset(seed=3, options={"view": "follow", "camera_motion": "turn"})
    for _ in range(150):
        env.step(np.zeros(3, np.float32))
    state = render_state(env.log, -1, env.scene, 0)
    eye, ahead = state.T_world_camera[:3, 3], state.T_world_camera[:3, 2]
    assert ahead[1] < -0.9
    layers = env.draw(("ids", "depth"))
    ids, depth = layers["ids"], layers["depth"]
    rows = np.argwhere(np.isfinite(depth) & (ids > 0))
    K = intrinsics(state.fov_y, 640, 352)
    x = (rows[:, 1] + 0.5 - K[0, 2]) / K[0, 0]
    y = (rows[:, 0] + 0.5 - K[1, 2]) / K[1, 1]
    z = depth[rows[:, 0], rows[:, 1]]
    points = np.stack([x * z, y * z, z], axis=1) @ state.T_world_camera[:3, :3].T + eye
    assert points[:, 1].min() > BEGIN_M - 0.05
    assert points[:, 1].min() < BEGIN_M + 0.3
    # Below the horizon, beyond the edge, there is nothing.
    horizon = K[1, 2] - K[1, 1] * math.tan(math.asin(-ahead[2]))
    below = depth[int(horizon) + 2 : int(horizon) + 12, 250:390]
    assert np.isinf(below).mean() > 0.5
    env.close()
