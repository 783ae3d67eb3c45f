"""Plan cards: complete, readable, and they do what they say."""

import numpy as np
import pytest

from wmeval.clock import exact
from wmeval.conventions import intrinsics, project
from wmeval.envs import ENVIRONMENTS, environment_class, environment_row
from wmeval.envs.plans import load_plan, plans_of
from wmeval.envs.record import record
from wmeval.errors import UserError
from wmeval.tables import DIMENSIONS

DIRECTIONS = {"forward": (1, 1), "back": (1, -1), "left": (0, -1), "right": (0, 1)}
"""World axis (x right, y forward) and sign."""
ALL = [(env_id, name) for env_id in ENVIRONMENTS for name in plans_of(env_id)]


def play(env_id, name, seed):
    env = environment_class(env_id)()
    rollout = record(env, plan=load_plan(env_id, name), seed=seed)
    env.close()
    return rollout


BALLS = ("BallRoller", "BeamDomino", "MirrorRollingBall")
"""Scenes in which a ball is pushed."""


def test_every_scene_has_its_plans():
    for env_id in BALLS:
        assert set(DIRECTIONS) <= set(plans_of(env_id))
    for env_id in ("BallRoller", "MirrorRollingBall"):
        assert "collision" in plans_of(env_id)
    assert {"canonical", "glancing", "direct_strike"} <= set(plans_of("BeamDomino"))


def test_every_dimension_of_a_scene_has_a_plan():
    for env_id, row in ENVIRONMENTS.items():
        served = {d for name in plans_of(env_id) for d in load_plan(env_id, name).dimensions}
        assert set(row.dimensions) <= served, env_id


@pytest.mark.parametrize(("env_id", "name"), ALL)
def test_card_is_whole(env_id, name):
    plan, row = load_plan(env_id, name), environment_row(env_id)
    actions = plan.actions(row.channels, row.control_period, branches=row.branches)
    assert len(actions) * row.control_period == exact(plan.duration)
    assert len(actions) <= row.max_steps
    assert actions.any() == bool(plan.segments)
    assert set(plan.dimensions) <= set(DIMENSIONS)
    assert len(plan.prompt.split()) > 60
    assert len(plan.negative_prompt.split()) > 10
    assert plan.doc.endswith((".", "?"))
    assert plan.prompt.count("  ") == 0


@pytest.mark.parametrize("env_id", BALLS)
@pytest.mark.parametrize("name", list(DIRECTIONS))
def test_directions_move_the_player_alone(env_id, name):
    axis, sign = DIRECTIONS[name]
    rollout = play(env_id, name, seed=11)
    state = rollout.log.state
    player = rollout.scene.indices("player")[0]
    path = state.position[:, player] - state.position[0, player]
    assert sign * path[-1, axis] > 4.0
    assert abs(path[-1, 1 - axis]) < 0.01
    assert (np.diff(sign * path[8:, axis]) > 0).all()
    others = [i for i in range(len(rollout.scene.bodies)) if i != player]
    moved = np.abs(state.position[:, others] - state.position[0, others]).max()
    assert moved < 0.005


@pytest.mark.parametrize("env_id", BALLS)
def test_still_view_shows_the_player_in_every_plan_all_along(env_id):
    """Metres are measured from video in this view alone."""
    for name in plans_of(env_id):
        if "camera_motion" in load_plan(env_id, name).reset_options:
            continue  # Nothing is measured in metres there, and the ball lies still.
        rollout = play(env_id, name, seed=5)
        player = rollout.scene.indices("player")[0]
        radius = rollout.scene.bodies[player].visuals[0].shape.radius
        camera = rollout.log.cameras.camera("static")
        K = intrinsics(float(rollout.log.cameras.fov_y[0, camera]), 640, 352)
        pose = rollout.log.cameras.T_world_camera[:, camera]
        assert (pose == pose[0]).all()
        pixels, depth = project(rollout.log.state.position[::4, player], K, pose[0])
        half = (radius * K[0, 0] / depth)[:, None]
        assert half.min() > 6  # at least 12 px across
        assert ((pixels - half > 8) & (pixels + half < [632, 344])).all(), name


@pytest.mark.parametrize("env_id", ["BallRoller", "MirrorRollingBall"])
def test_collision_plans_collide(env_id):
    for seed in range(3):
        rollout = play(env_id, "collision", seed)
        hits = [
            e
            for e in rollout.log.events
            if e.kind == "contact" and "player" in (e.body_a, e.body_b)
        ]
        assert 1.0 < hits[0].time < 3.5
        other = hits[0].body_b if hits[0].body_a == "player" else hits[0].body_a
        body = rollout.scene.index(other)
        row = rollout.log.state.row_of_substep(round(hits[0].time * 240))
        before, after = rollout.log.state.position[[row - 1, -1], body]
        assert np.linalg.norm(after - before) > 0.5


def test_unknown_plan_names_the_known_ones():
    with pytest.raises(UserError, match="has no plan 'jump': choose from back, canonical"):
        load_plan("BeamDomino", "jump")
    with pytest.raises(UserError, match=r"has no plan '\.\./ball_roller/left'"):
        load_plan("BeamDomino", "../ball_roller/left")
