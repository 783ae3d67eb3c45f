"""Camera regimes as reset options, and candidates driven along a camera's path."""

import json
import re
from fractions import Fraction
from pathlib import Path

import branch_scenes
import numpy as np
import pytest

from wmeval.clock import CandidateClock, exact
from wmeval.conventions import intrinsics, project
from wmeval.datasets.rollout import read, write_hdf5
from wmeval.envs import ENVIRONMENTS, environment_class, environment_row, short_name
from wmeval.envs.adapters import (
    RULES,
    Channels,
    Keys,
    channels_of,
    ineligible,
    make_adapter,
)
from wmeval.envs.base import EYES
from wmeval.envs.camera_path import CameraPath
from wmeval.envs.candidates import parse_candidate
from wmeval.envs.case import Case
from wmeval.envs.model import ModelSpec
from wmeval.envs.plans import load_plan, plans_of
from wmeval.envs.record import record
from wmeval.envs.wrapper import drive, native_controls
from wmeval.errors import UserError
from wmeval.sim.drivers.camera_motion import REGIMES, regime, yaw_deg, yawed

TA = Fraction(1, 60)
MIRROR = "MirrorRollingBall"
TURNED = [
    (env_id, name)
    for env_id in ENVIRONMENTS
    for name in plans_of(env_id)
    if "camera_motion" in load_plan(env_id, name).reset_options
]


@pytest.fixture
def _scenes():
    branch_scenes.register()
    yield
    branch_scenes.unregister()


@pytest.mark.parametrize(("env_id", "name"), TURNED)
def test_regime_plans_last_as_long_as_their_regime(env_id, name):
    plan, row = load_plan(env_id, name), environment_row(env_id)
    legs = regime(plan.reset_options["camera_motion"]).first
    assert exact(plan.duration) == legs[-1].end <= row.max_steps * row.control_period
    assert {"consistency", "prompt_consistency"} & set(plan.dimensions)


@pytest.mark.parametrize("view", ["follow", "first", "static", "top"])
def test_the_view_of_the_reset_is_turned_and_no_other(view):
    env = environment_class(MIRROR)(max_steps=150)
    env.reset(seed=0, options={"camera_motion": "perturb_left", "view": view})
    names = [c.name for c in env.scene.cameras]
    before = env.log.cameras.T_world_camera[0]
    for _ in range(150):
        env.step(np.zeros(2, np.float32))
    after = env.log.cameras.T_world_camera[0]
    for i, name in enumerate(names):
        turn = before[i, :3, 2] @ after[i, :3, 2]
        level = np.hypot(*before[i, :2, 2])
        expected = level**2 * np.cos(np.pi / 4) + 1 - level**2 if name == view else 1.0
        assert turn == pytest.approx(expected, abs=1e-5), name
    in_place = np.allclose(before[names.index(view), :3, 3], after[names.index(view), :3, 3])
    assert in_place == (view == "first") == env.camera_motion.in_place
    env.close()


def test_regimes_change_no_physics():
    env = environment_class(MIRROR)()
    digests = []
    for options in ({}, {"camera_motion": "turn"}, {"camera_motion": "turn", "view": "first"}):
        env.reset(seed=3, options=options)
        for _ in range(60):
            env.step(np.array([0.4, 0.9], np.float32))
        digests.append(env.log.state.sha256())
    assert len(set(digests)) == 1
    env.close()


def test_third_person_orbits_keep_the_player_where_it_is_seen():
    rollout = record(environment_class(MIRROR)(), plan=load_plan(MIRROR, "turn_third"), seed=0)
    cameras, player = rollout.log.cameras, rollout.scene.index("player")
    K = intrinsics(float(cameras.fov_y[0, 0]), 640, 352)
    seen = [
        project(rollout.log.state.position[k, player][None], K, cameras.T_world_camera[k, 0])[0]
        for k in range(0, 2401, 60)
    ]
    assert np.ptp(np.array(seen), axis=0).max() < 1e-6
    np.testing.assert_allclose(
        cameras.T_world_camera[2400, 0], cameras.T_world_camera[0, 0], atol=2e-5
    )
    eye = cameras.T_world_camera[::120, 0, :2, 3]
    turns = np.unwrap(np.arctan2(eye[:, 1], eye[:, 0]))
    assert turns[-1] - turns[0] == pytest.approx(4 * np.pi, abs=1e-4)


@pytest.mark.gl
def test_first_person_does_not_see_its_own_ball():
    env = environment_class(MIRROR)(width=96, height=54)
    env.reset(seed=0, options={"view": "first"})
    player = env.scene.bodies[env.scene.index("player")].instance
    drawn = env.draw(("ids", "rgb"))
    assert not (drawn["ids"] == player).any()
    assert len(np.unique(drawn["ids"])) > 5
    env.close()


def test_rollouts_say_how_their_camera_was_turned(tmp_path):
    env = environment_class(MIRROR)(max_steps=10)
    rollout = record(env, plan=load_plan(MIRROR, "perturb_right"), seed=0)
    write_hdf5(rollout, str(tmp_path / "r.h5"))
    told = read(tmp_path / "r.h5").metadata["camera_motion"]
    assert (told["regime"], told["view"], told["in_place"]) == ("perturb_right", "follow", False)
    assert [(x["name"], x["start"], x["end"], x["to_deg"]) for x in told["legs"]] == [
        ("out", "0", "5/2", -45.0),
        ("in", "5/2", "5", 0.0),
    ]
    case = Case(env_id=MIRROR, plan=load_plan(MIRROR, "perturb_right"))
    assert case.camera_motion == told
    assert case.view == "follow"
    assert Case(env_id=MIRROR, plan=load_plan(MIRROR, "turn_first")).view == "first"
    json.dumps(case.camera_motion)
    plain = record(env, plan=load_plan(MIRROR, "forward"), seed=0)
    assert plain.metadata["camera_motion"] is None
    assert Case(env_id=MIRROR, plan=load_plan(MIRROR, "forward")).camera_motion is None


def test_snapshots_and_branches_keep_the_regime():
    env = environment_class(MIRROR)(branching=True)
    env.reset(seed=0, options={"camera_motion": "sweep_left"})
    for _ in range(30):
        env.step(np.zeros(2, np.float32))
    (branch,) = env.branch(1)
    other = environment_class(MIRROR)()
    other.set_state(env.get_state())
    for one in (branch, other):
        assert one.camera_motion == env.camera_motion
        np.testing.assert_array_equal(
            one.log.cameras.T_world_camera, env.log.cameras.T_world_camera
        )
        one.close()
    env.close()


def test_unknown_regimes_are_refused():
    env = environment_class(MIRROR)()
    with pytest.raises(UserError, match="unknown option camera_motion 'spin': choose from pert"):
        env.reset(seed=0, options={"camera_motion": "spin"})


# --- candidates ---------------------------------------------------------------------------------

CAMERA = ModelSpec(name="cam", paradigm="camera", fps="16", frames_per_action=4)
KEYS = ModelSpec(name="keys", paradigm="keyboard", actuates=("camera",), fps="16")


def case_at_rest(name, view=""):
    return Case(env_id=MIRROR, plan=load_plan(MIRROR, name), view=view, width=64, height=48)


@pytest.mark.parametrize("name", ["perturb_left", "sweep_right", "turn_first", "turn_third"])
def test_camera_controls_compose_to_the_references_path(name):
    case = case_at_rest(name)
    with case.open() as env:
        controls = native_controls(
            CAMERA.clock,
            TA,
            make_adapter(CAMERA, case.channels(env), control_period=TA),
            case.actions(env),
        )
        log = record(env, plan=case.plan, seed=0, options=case.options).log
        view = env.camera_index(case.view)
    pose = log.cameras.T_world_camera[0, view]
    for b, control in enumerate(controls):
        pose = pose @ control
        state = 60 * (b + 1)
        # Bodies sink by micrometres at first: the closed form is of bodies at rest.
        np.testing.assert_allclose(pose, log.cameras.T_world_camera[state, view], atol=2e-4)
    logged = case.followed(channels_of(MIRROR), log, np.zeros((1, 2)))
    exact_controls = native_controls(
        CAMERA.clock, TA, make_adapter(CAMERA, logged, control_period=TA), case.actions(env)
    )
    pose = log.cameras.T_world_camera[0, view]
    for control in exact_controls:
        pose = pose @ control
    last = 60 * len(exact_controls)
    np.testing.assert_allclose(pose, log.cameras.T_world_camera[last, view], atol=1e-9)


def test_paths_are_known_at_their_states_alone():
    path = CameraPath(Fraction(1, 240), np.array([0, 10, 20]), np.stack([np.eye(4)] * 3))
    assert (path.between(Fraction(0), Fraction(1, 12)) == np.eye(4)).all()
    assert (path.at(Fraction(5)) == np.eye(4)).all()
    with pytest.raises(UserError, match="state at 1/80 s is not known"):
        path.at(Fraction(1, 80))
    adapter = make_adapter(CAMERA, Channels(("x",), camera_path=path), control_period=TA)
    with pytest.raises(UserError, match="give the block's span"):
        adapter.reduce(np.zeros((1, 1)), [TA])


@pytest.mark.parametrize(
    ("name", "first", "second"),
    [
        ("perturb_left", ("LEFT", "D"), ("RIGHT", "A")),
        ("perturb_right", ("RIGHT", "A"), ("LEFT", "D")),
        ("turn_first", ("LEFT",), ("LEFT",)),
        ("turn_third", ("LEFT", "D"), ("LEFT", "D")),
    ],
)
def test_keys_turn_and_strafe_along_the_path(name, first, second):
    case = case_at_rest(name)
    with case.open() as env:
        adapter = make_adapter(KEYS, case.channels(env), control_period=TA)
        controls = native_controls(KEYS.clock, TA, adapter, case.actions(env))
    count = len(controls)
    assert set(controls[: count // 2 - 1]) == {Keys(first)}
    assert set(controls[count // 2 + 1 :]) == {Keys(second)}


def test_who_moves_the_camera_is_eligible_and_who_moves_a_body_is_not():
    case = case_at_rest("perturb_left")
    body = ModelSpec(name="body", paradigm="keyboard", actuates=("body",))
    text = ModelSpec(name="text", paradigm="language")
    with case.open() as env:
        moves = case.channels(env).moves
        assert moves == ("camera",)
        for spec in (CAMERA, KEYS, parse_candidate("twin")(case).spec):
            assert ineligible(env.ID, "consistency", spec, moves) is None, spec.name
        assert "no camera control" in ineligible(env.ID, "consistency", body, moves)
        assert "prompt alone" in ineligible(env.ID, "consistency", text, moves)
        assert ineligible(env.ID, "prompt_consistency", text, moves) is None
    pushed = load_plan(MIRROR, "forward").model_copy(
        update={"reset_options": {"camera_motion": "turn"}}
    )
    case = Case(env_id=MIRROR, plan=pushed)
    with case.open() as env:
        moves = case.channels(env).moves
        assert moves == ("body", "camera")
        assert "place to be injected" in ineligible(env.ID, "consistency", CAMERA, moves)
    assert Channels(("x",)).moves == ("body",)
    assert {r.scene_moves for r in RULES} == {"body", "camera"}


@pytest.mark.gl
def test_the_twin_shows_exactly_what_the_reference_shows():
    case = case_at_rest("perturb_left")
    with case.open() as env:
        model = parse_candidate("twin:fps=10,stride=2")(case)
        adapter = make_adapter(model.spec, case.channels(env), control_period=TA)
        clip = drive(model, adapter, case.actions(env), case.context(env, model.spec))
        rollout = record(env, plan=case.plan, seed=0, options=case.options, layers="rgb", fps=10)
        np.testing.assert_array_equal(clip.frames, rollout.frames.layers["rgb"])
        shown = rollout.frames.layers["rgb"].astype(int)
        assert np.abs(shown[25] - shown[0]).mean() > 5
        assert np.abs(shown[50] - shown[0]).mean() < 1
    model.close()


STEPS = 20
"""Control periods that each regime is looked at after."""


@pytest.fixture(scope="module")
def scenes():
    """By environment: itself, and what it shows after `STEPS` idle steps without a regime."""
    made = {}

    def of(env_id):
        if env_id not in made:
            env = environment_class(env_id)(observation_mode="vector", action_mode="flat")
            made[env_id] = env, idle(env, {})
        return made[env_id]

    yield of
    for env, _ in made.values():
        env.close()


def idle(env, options):
    env.reset(seed=1, options=options)
    for _ in range(STEPS):
        env.step(np.zeros(len(env.channels), np.float32))
    return env.log


@pytest.mark.parametrize("name", list(REGIMES))
@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_every_scene_takes_every_regime(scenes, env_id, name):
    """The paper camera, and the eye where there is one, are where the closed form says."""
    env, plain = scenes(env_id)
    names = [c.name for c in env.scene.cameras]
    for view in dict.fromkeys((names[0], "static", *(n for n in names if n in EYES))):
        log = idle(env, {"camera_motion": name, "view": view})
        i, motion = names.index(view), env.camera_motion
        assert motion.in_place == (view in EYES)
        pivot = motion.point
        if motion.body is not None:
            pivot = log.state.position[0, env.scene.index(motion.body)].tolist()
        legs = regime(name).first if motion.in_place else regime(name).third
        deg = yaw_deg(legs, float(env.time))
        assert abs(deg) > 0.9
        expected = yawed(plain.cameras.T_world_camera[0, i].ravel().tolist(), deg, pivot)
        np.testing.assert_allclose(log.cameras.T_world_camera[0, i].ravel(), expected, atol=1e-12)
        others = [k for k in range(len(names)) if k != i]
        np.testing.assert_array_equal(
            log.cameras.T_world_camera[0, others], plain.cameras.T_world_camera[0, others]
        )
        assert log.state.sha256() == plain.state.sha256()


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_the_page_names_regimes_and_views(scenes, env_id):
    env, _ = scenes(env_id)
    options = env.__doc__.split("## Reset options")[1].split("## ")[0]
    for name in ("camera_motion", *(c.name for c in env.scene.cameras)):
        assert f"`{name}`" in options, name


def test_the_readme_says_which_scenes_have_eyes(scenes):
    text = (Path(__file__).parents[2] / "README.md").read_text()
    told = next(line for line in text.splitlines() if line.startswith("| **camera regimes**"))
    with_eyes = [
        short_name(env_id)
        for env_id in ENVIRONMENTS
        if {c.name for c in scenes(env_id)[0].scene.cameras} & set(EYES)
    ]
    assert sorted(re.findall(r"`(\w+)`", told)) == sorted(with_eyes)


@pytest.mark.usefixtures("_scenes")
@pytest.mark.parametrize("name", list(REGIMES))
def test_regimes_need_neither_player_nor_actions(name):
    env = branch_scenes.Inert()
    env.reset(seed=0, options={"camera_motion": name, "view": "first"})
    base = env.log.cameras.T_world_camera[0, 2].ravel().tolist()
    for _ in range(20):
        env.step([])
    legs = regime(name).first
    expected = yawed(base, yaw_deg(legs, 80 / 240), None)
    np.testing.assert_allclose(env.log.cameras.T_world_camera[0, 2].ravel(), expected, atol=1e-12)
    clock = CandidateClock(Fraction(30), 1)
    env.reset(seed=0, options={"camera_motion": name, "view": "static"})
    adapter = make_adapter(CAMERA, channels_of(env), control_period=TA)
    assert len(native_controls(clock, TA, adapter, np.zeros((10, 0)))) == 5
    env.close()
