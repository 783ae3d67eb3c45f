"""What the mp4 codec takes from a score: stated in docs/guide/pairing.md, held here."""

import numpy as np
import pytest

from wmeval.clock import exact
from wmeval.datasets.video import read_mp4, write_mp4
from wmeval.envs import make_environment
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record
from wmeval.eval.metrics.trajectory import final_displacement
from wmeval.eval.perception import classical, floor_balls
from wmeval.eval.reference import first_masks, still_camera

SIZE = (320, 176)
FPS = exact(20)
# Median distance between the two tracks, and between their ends [m]; a pixel is 0.06 to 0.1 m.
MEDIAN_M, END_M = 0.1, 0.3


def tracked(frames, rollout, masks, camera):
    name = floor_balls(rollout.scene)[0]
    estimate = classical(
        frames, rollout.frames.times, scene=rollout.scene, balls=(name,), masks=masks, camera=camera
    )
    return estimate.positions[name]


@pytest.mark.gl
@pytest.mark.parametrize("env_id", ["WMEval/BallRoller-v0", "WMEval/MirrorRollingBall-v0"])
def test_a_score_from_mp4_is_the_score_from_memory_within_the_codecs_effect(env_id, tmp_path):
    env = make_environment(env_id)
    rollout = record(
        env, plan=load_plan(env_id, "forward"), seed=0, layers=("rgb",), view="static",
        width=SIZE[0], height=SIZE[1], fps=FPS,
    )  # fmt: skip
    log = rollout.state_of_frames()
    masks = first_masks(env, log, "static", SIZE)
    camera = still_camera(env, log, "static", SIZE)
    env.close()
    frames = np.asarray(rollout.frames.layers["rgb"][:])
    write_mp4(tmp_path / "clip.mp4", frames, FPS)
    decoded, times = read_mp4(tmp_path / "clip.mp4")
    assert times == rollout.frames.times
    assert (decoded != frames).any()  # the codec is lossy: there is an effect to bound
    memory, file = (tracked(f, rollout, masks, camera) for f in (frames, decoded))
    apart = np.linalg.norm(memory - file, axis=-1)
    print(env_id, "median", np.nanmedian(apart), "max", np.nanmax(apart), "end", apart[-1])
    assert np.nanmedian(apart) < MEDIAN_M
    truth = log.state.position[:, rollout.scene.index(floor_balls(rollout.scene)[0])]
    assert abs(final_displacement(memory, truth) - final_displacement(file, truth)) < END_M
