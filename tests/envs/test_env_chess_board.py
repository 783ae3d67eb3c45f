"""ChessBoard: its vector, its scenes, its plans, its pictures."""

from __future__ import annotations

import dataclasses
import math
import os
import subprocess
import sys

import numpy as np
import pytest
from exactness import check_flow, check_ids_depth, check_normals, check_shadow_ids
from scipy.spatial.transform import Rotation

from wmeval.envs.chess_board import CAMERA_OFFSET, CAMERA_RATE, FIXED, PIECES, ChessBoard
from wmeval.envs.plans import load_plan, plans_of
from wmeval.envs.policies import RandomPolicy
from wmeval.envs.record import record
from wmeval.sim.protocol import render_state
from wmeval.sim.render import make_renderer

SWAP = np.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]])
"""World (x right, y forward, z up) to Unity (x right, y up, z forward)."""


def play(name, seed=3, **kwargs):
    env = ChessBoard(**kwargs)
    rollout = record(env, plan=load_plan(env.ID, name), seed=seed)
    env.close()
    return rollout


@pytest.fixture(scope="module")
def sprint():
    return play("sprint_jump")


# --- wrong worlds -------------------------------------------------------------------------------


def run_up(steps, perturb=None, jump=False):
    """Vectors of a start to the run, or of a jump from rest."""
    env = ChessBoard(perturb=perturb, action_mode="flat")
    env.reset(seed=3)
    action = np.array([0, 0, 1, 0] if jump else [0, 1, 0, 1], np.float32)
    seen = np.array([env.step(action)[0] for _ in range(steps)], np.float64)
    env.close()
    return seen


@pytest.mark.parametrize("factor", [0.25, 0.5, 2.0])
def test_friction_of_a_pair_scales_what_the_character_can_accelerate(factor):
    """Way from rest while the grip is the limit: half the acceleration times the time squared."""
    reference, other = run_up(12), run_up(12, f"friction={factor}")
    assert other[-1, 2] + 1.5 == pytest.approx(factor * (reference[-1, 2] + 1.5), rel=1e-3)


def test_mass_leaves_the_forces_and_gravity_leaves_the_take_off():
    assert run_up(12, "mass=2")[-1, 2] + 1.5 == pytest.approx(
        0.5 * (run_up(12)[-1, 2] + 1.5), rel=1e-3
    )
    apex = {p: run_up(90, p, jump=True)[:, 1].max() for p in (None, "gravity=0.8", "mass=2")}
    assert apex["gravity=0.8"] == pytest.approx(apex[None] / 0.8, rel=5e-3)
    assert apex["mass=2"] == pytest.approx(apex[None] / 4, rel=5e-3)


def test_nothing_bounces_here():
    np.testing.assert_array_equal(run_up(60, "restitution=0.5"), run_up(60))


# --- the vector ---------------------------------------------------------------------------------


def test_the_vector_is_position_rotation_and_grounded(sprint):
    scene, log = sprint.scene, sprint.log
    player = scene.index("player")
    supported = np.zeros(len(log.state), bool)
    contacts = log.contacts
    of_a, of_b = contacts.body_a == player, contacts.body_b == player
    up = np.where(of_a, 1.0, -1.0) * contacts.normal[:, 2]
    supported[contacts.substep[(of_a | of_b) & (up >= 0.7)] + 1] = True
    supported[0] = True
    for i in range(len(sprint) + 1):
        row, out = 4 * i, sprint.observations[i]
        pivot = log.state.position[row, player] - [0, 0, 1.75 / 2]
        np.testing.assert_allclose(out[:3], SWAP @ pivot, atol=1e-6)
        w, x, y, z = log.state.quaternion_wxyz[row, player]
        matrix = SWAP @ Rotation.from_quat([x, y, z, w]).as_matrix() @ SWAP
        theirs = Rotation.from_quat(out[3:7].astype(float)).as_matrix()
        np.testing.assert_allclose(theirs, matrix, atol=1e-6)
        assert out[6] >= 0
        assert out[7] == supported[row]
    flight = sprint.observations[:, 7] == 0
    assert 0.8 < flight.sum() / 60 < 1.0  # 2 v / g = 0.90 s
    assert sprint.observations[:, 1].max() == pytest.approx(1.0, abs=0.01)
    # A walk to the right turns it by +90 degrees about Unity's y.
    yaw = Rotation.from_quat(sprint.observations[-1, 3:7].astype(float)).as_euler("YXZ", True)
    np.testing.assert_allclose(yaw, [90, 0, 0], atol=0.1)


def test_vectors_lie_within_the_bounds(sprint):
    env = ChessBoard()
    for rollout in (sprint, play("slide")):
        assert (rollout.observations >= env.observation_space.low).all()
        assert (rollout.observations <= env.observation_space.high).all()


# --- scenes -------------------------------------------------------------------------------------


def test_seeds_deal_the_pieces_and_leave_the_ways_free():
    env, seen = ChessBoard(), set()
    for seed in range(12):
        env.reset(seed=seed)
        pieces = [b for b in env.scene.bodies if b.role == "piece"]
        places = [b.position[:2] for b in pieces]
        seen.add(tuple(places))
        assert len(pieces) == PIECES == len(set(places))
        kinds = {tuple(b.name.split("_")[:2]) for b in pieces}
        assert len(kinds) == 12
        for (colour, kind, at), body in zip(FIXED, pieces, strict=False):
            assert (body.name, body.position[:2]) == (f"{colour}_{kind}", at)
        for x, y in places:
            # In the middle of a square; away from the sphere's ring and the player's ways.
            assert (x / 3) % 1 == (y / 3) % 1 == 0.5
            assert max(abs(x), abs(y)) < 12
            assert math.dist((x, y), (1.5, 1.5)) > 4.2
            assert not (abs(x + 1.5) < 1 and -11 < y < 5)
            assert not (abs(y + 1.5) < 1 and x > -5)
    assert len(seen) == 12
    env.close()


def test_nothing_moves_the_character_in_the_still_plans():
    env = ChessBoard()
    for name in plans_of(env.ID):
        plan = load_plan(env.ID, name)
        if plan.segments:
            continue
        start, _ = env.reset(seed=1, options=plan.reset_options)
        for _ in range(60):
            now = env.step(np.zeros(4, np.float32))[0]
        np.testing.assert_allclose(now, start, atol=2e-5)
    env.close()


@pytest.mark.parametrize(
    "name",
    [
        "slide",
        "mirror",
        "jump",
        *(pytest.param(n, marks=pytest.mark.accept) for n in ("circle", "out_and_back")),
    ],
)
def test_plans_do_what_their_prompts_say(name):
    rollout = play(name)
    path = rollout.log.state.position[:, rollout.scene.index("player")]
    touched = [e.body_b for e in rollout.log.events if e.kind == "contact"]
    assert rollout.log.contacts.distance.min() > -0.005
    if name == "circle":
        around = path[400:-240, :2] - [1.5, 1.5]
        assert np.abs(np.hypot(*around.T) - 3.0).max() < 0.12
        assert np.ptp(np.unwrap(np.arctan2(around[:, 1], around[:, 0]))) > 2 * math.pi - 0.5
    elif name == "slide":
        assert touched == ["black_knight"]
        assert path[-1, 1] > 3.0  # past the knight
    elif name == "mirror":
        assert set(touched) == {"sphere"}
        away = np.hypot(*(path[:, :2] - [1.5, 1.5]).T)
        assert away.min() == pytest.approx(1.2 + 0.28, abs=2e-3)
    elif name == "out_and_back":
        assert np.ptp(path[:, 1]) > 4.5
        np.testing.assert_allclose(path[-1], path[0], atol=0.01)
    else:
        assert path[:, 2].max() == pytest.approx(1.0 + 1.75 / 2, abs=2e-3)
        assert np.abs(path[:, :2] - path[0, :2]).max() < 1e-6
    if name not in ("slide", "mirror"):
        assert not touched


# --- cameras ------------------------------------------------------------------------------------


def test_the_follow_camera_is_smooth_and_keeps_its_heading(sprint):
    log, player = sprint.log, sprint.scene.index("player")
    camera = log.cameras.camera("follow")
    pose = log.cameras.T_world_camera[:, camera]
    body = log.state.position[:, player]
    eye = pose[:, :3, 3]
    k = 1 - math.exp(-CAMERA_RATE / 240)
    wanted = body[1:] + np.array(CAMERA_OFFSET)
    np.testing.assert_allclose(eye[1:], eye[:-1] + k * (wanted - eye[:-1]), atol=1e-9)
    # It lags a sprint by v / rate and looks that much sideways, no more.
    yaw = np.degrees(np.arctan2(pose[:, 0, 2], pose[:, 1, 2]))
    assert np.abs(yaw).max() < 12
    assert np.abs(yaw[[0, -1]]).max() < 1


def test_the_first_person_looks_where_the_character_faces(sprint):
    log, player = sprint.log, sprint.scene.index("player")
    pose = log.cameras.T_world_camera[:, log.cameras.camera("first")]
    w, _, _, z = log.state.quaternion_wxyz[:, player].T
    yaw = 2 * np.arctan2(z, w)
    np.testing.assert_allclose(pose[:, 0, 2], -np.sin(yaw) * np.hypot(*pose[:, :2, 2].T), atol=1e-6)
    height = pose[:, 2, 3] - (log.state.position[:, player, 2] - 1.75 / 2)
    np.testing.assert_allclose(height, 1.64, atol=1e-6)


# --- exactness ----------------------------------------------------------------------------------

_CODE = """
from wmeval.envs.chess_board import ChessBoard
from wmeval.envs.policies import RandomPolicy
from wmeval.envs.record import record
env = ChessBoard()
print("sha", record(env, policy=RandomPolicy(stop_after=240), seed=5).sha256())
"""


def test_two_processes_give_the_same_bits():
    said = [
        subprocess.run(
            [sys.executable, "-c", _CODE], capture_output=True, text=True, check=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    ]  # fmt: skip
    assert said[0].startswith("sha ")
    assert said[0] == said[1]


def test_snapshots_and_branches_go_on_to_the_same_bits():
    env, policy = ChessBoard(), np.random.default_rng(2)
    env.reset(seed=4)

    def some(n):
        for _ in range(n):
            action = np.append(policy.uniform(-1, 1, 2), policy.integers(0, 2, 2))
            yield action.astype(np.float32)

    for action in some(80):
        env.step(action)
    other = ChessBoard()
    other.set_state(env.get_state())
    (branch,) = env.branch(1)
    for action in some(40):
        out = [e.step(action)[0] for e in (env, other, branch)]
        assert out[0].tobytes() == out[1].tobytes() == out[2].tobytes()
    assert len({e.log.state.sha256() for e in (env, other, branch)}) == 1
    for e in (env, other, branch):
        e.close()


def test_a_policy_records_and_presses_are_presses():
    env = ChessBoard()
    rollout = record(env, policy=RandomPolicy(stop_after=120), seed=1)
    assert set(np.unique(rollout.actions[:, 2:])) <= {0.0, 1.0}
    env.close()


# --- pictures -----------------------------------------------------------------------------------


@pytest.mark.gl
@pytest.mark.parametrize("view", ["follow", "static", "top", "first"])
def test_labels_are_right_to_the_pixel(view):
    env = ChessBoard(width=640, height=352)
    env.reset(seed=3, options={"view": view})
    env.action_space.seed(7)
    actions = load_plan(env.ID, "sprint_jump").actions(
        env.row.channels, env.row.control_period, branches=env.row.branches
    )
    rng = np.random.default_rng(1)
    for action in actions[:150]:
        env.step(action.astype(np.float32))
    for check in (check_ids_depth, check_normals, check_shadow_ids, check_flow):
        assert check(env, rng, 150) > 20
    env.close()


@pytest.mark.gl
def test_the_first_person_does_not_see_itself_but_in_the_sphere():
    """A turn of the eye is one in place: above the figure's axis, and nothing of it in the way."""
    env = ChessBoard(action_mode="flat")
    env.reset(seed=0, options={"view": "first", "camera_motion": "turn"})
    scene, first = env.scene, env.camera_index()
    own = [b.instance for b in scene.bodies if b.role == "player"]
    renderer = make_renderer("raster", scene, env.meshes)
    mirrored = 0
    for _ in range(8):
        for _ in range(75):
            env.step(np.zeros(4, np.float32))
        state = render_state(env.log, -1, scene, first)
        player = state.position[scene.index("player")]
        np.testing.assert_allclose(state.T_world_camera[:2, 3], player[:2], atol=1e-6)
        layers = env.draw(("rgb", "ids"), width=320, height=176)
        assert not np.isin(layers["ids"], own).any()
        gone = dataclasses.replace(state, active=state.active & ~state.hidden)
        without = renderer.draw(gone, 320, 176, ("rgb", "ids"))
        assert np.array_equal(layers["ids"], without["ids"])
        sphere = layers["ids"] == scene.bodies[scene.index("sphere")].instance
        off = np.abs(layers["rgb"].astype(int) - without["rgb"]).max(axis=2)
        mirrored += int((off[sphere] > 30).sum())
    assert mirrored > 20
    renderer.close()
    env.close()


@pytest.mark.gl
def test_the_sphere_mirrors_the_character_and_the_pieces():
    env = ChessBoard(width=480, height=264)
    env.reset(seed=0)
    for action in load_plan(env.ID, "mirror").actions(
        env.row.channels, env.row.control_period, branches=env.row.branches
    )[:150]:
        env.step(action.astype(np.float32))
    scene, meshes = env.scene, env.meshes
    state = render_state(env.log, 0, scene, 0)
    whole = env.draw(("rgb", "ids"))
    on_sphere = whole["ids"] == scene.bodies[scene.index("sphere")].instance
    # A pixel within the sphere, away from the figure and its shadow.
    assert on_sphere.sum() > 3000
    for role, least in (("player", 40), ("piece", 40)):
        without = scene.model_copy(
            update={
                "bodies": tuple(
                    b.model_copy(update={"visuals": ()}) if b.role == role else b
                    for b in scene.bodies
                )
            }
        )
        renderer = make_renderer("raster", without, meshes)
        other = renderer.draw(state, 480, 264, ("rgb",))["rgb"]
        renderer.close()
        changed = np.abs(whole["rgb"].astype(int) - other).max(axis=2) > 40
        assert (changed & on_sphere).sum() > least, role
    env.close()


@pytest.mark.gl
def test_the_character_shows_from_behind_and_the_six_kinds_are_in_view():
    env = ChessBoard()
    env.reset(seed=0)
    ids = env.draw("ids")["ids"]
    height = ids.shape[0]
    seen = {b.name for b in env.scene.bodies if b.instance and (ids == b.instance).sum() > 40}
    assert {f"{c}_{k}" for c, k, _ in FIXED} <= seen
    assert "sphere" in seen
    limbs = np.isin(ids, [b.instance for b in env.scene.bodies if b.role == "player"])
    rows = np.flatnonzero(limbs.any(axis=1))
    assert 0.25 * height < len(rows) < 0.6 * height
    env.close()
