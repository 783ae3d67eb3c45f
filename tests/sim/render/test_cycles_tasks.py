"""RigidBench's tasks by Cycles, with their draft samples, beside the raster's labels."""

from __future__ import annotations

import numpy as np
import pytest
from agreement import apart_from_edges, assert_same_labels
from blender_here import needs_bpy

from wmeval.datasets.rollout import Rollout
from wmeval.envs import make_environment
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record
from wmeval.generators.rigidbench import ENVIRONMENT_OF, PLAN, QUALITIES
from wmeval.sim.protocol import render_state
from wmeval.sim.render import labels, make_renderer

DRAFT = QUALITIES["draft"]
SIZES = dict.fromkeys(ENVIRONMENT_OF, (DRAFT.width // 2, DRAFT.height // 2))
"""One task at its draft size; labels are compared pixel by pixel at any."""
SIZES["free_fall"] = (DRAFT.width, DRAFT.height)
LAYERS = ("rgb", "depth", "ids", "normals")
FRAMES = (0, 14)
"""Of 24 a second: as placed, and after the first touch of most."""


@needs_bpy
@pytest.mark.gl
@pytest.mark.parametrize("task", list(ENVIRONMENT_OF))
def test_two_frames_of_a_task_agree_with_the_raster(task):
    env = make_environment(ENVIRONMENT_OF[task])
    rollout: Rollout = record(env, plan=load_plan(env.ID, PLAN), seed=20, fps=24)
    scene, log = env.scene, rollout.log
    rows = [frame * len(log) // 49 for frame in FRAMES]
    states = [render_state(log, row, scene, env.camera_index()) for row in rows]
    drawn = []
    for name, options in (
        ("raster", {}),
        ("cycles", {"preset": "draft", "device": "cpu", "threads": 1}),
    ):
        renderer = make_renderer(name, scene, env.meshes, **options)
        drawn.append([renderer.draw(state, *SIZES[task], LAYERS) for state in states])
        renderer.close()
    env.close()
    instance = labels.instances(scene)
    for k, (here, there) in enumerate(zip(*drawn, strict=True)):
        assert_same_labels(here, there)
        # Every actor is in the picture, and Cycles' picture is one of the same light.
        assert set(np.unique(there["ids"])) == set(np.unique(here["ids"]))
        assert np.abs(here["rgb"].mean((0, 1)) - there["rgb"].mean((0, 1))).max() < 30
        other = states[1 - k]
        flows = [
            labels.flow(x["depth"], x["ids"], states[k], other, instance) for x in (here, there)
        ]
        gap = np.linalg.norm(flows[0] - flows[1], axis=-1)[apart_from_edges(here, there)]
        assert np.nanquantile(gap, 0.999) < 0.05
        moving = np.linalg.norm(flows[0], axis=-1) > 1
        assert moving.any()
