"""Three balls of a carom table are found in an overhead video, to millimetres."""

import numpy as np
import pytest

from wmeval.envs import environment_class
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record
from wmeval.eval.perception import classical, floor_balls
from wmeval.eval.reference import first_masks, still_camera

pytestmark = pytest.mark.gl


def test_balls_are_followed_by_their_colours():
    env = environment_class("BilliardGame")()
    plan = load_plan("BilliardGame", "carom")
    size = (640, 352)
    rollout = record(env, plan=plan, seed=0, layers="rgb", view="overhead", max_steps=60)
    log = rollout.state_of_frames()
    balls = floor_balls(rollout.scene, roles=env.tracked_roles)
    assert set(balls) == {"cue_ball", "yellow_ball", "red_ball"}
    estimate = classical(
        np.asarray(rollout.frames.layers["rgb"]),
        rollout.frames.times,
        scene=rollout.scene,
        balls=balls,
        masks=first_masks(env, log, "overhead", size),
        camera=still_camera(env, log, "overhead", size),
    )
    travelled = 0.0
    for name in balls:
        truth = log.state.position[:, log.state.body(name)]
        error = np.linalg.norm(estimate.positions[name] - truth, axis=1)
        assert estimate.coverage(name) > 0.95, name
        assert np.nanmedian(error) < 0.003, name
        assert np.nanmax(error) < 0.01, name
        travelled += np.linalg.norm(np.diff(truth, axis=0), axis=1).sum()
    assert travelled > 0.5, travelled
    env.close()
