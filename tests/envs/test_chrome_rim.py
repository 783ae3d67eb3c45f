"""Towards the rim a pixel of a chrome ball shows ever more of the world: it must not flicker."""

from dataclasses import replace

import cv2
import numpy as np
import pytest

from wmeval.envs import environment_class
from wmeval.sim.render.pieces import start_state
from wmeval.sim.render.raster import RasterRenderer

pytestmark = pytest.mark.gl


def test_the_rim_changes_little_while_the_camera_moves_by_parts_of_a_pixel():
    env = environment_class("ChessBoard")(info_level="none", observation_mode="vector")
    env.reset(seed=0)
    scene, meshes = env.world_spec.scene, env.world_spec.meshes
    env.close()
    label = scene.bodies[scene.index("sphere")].instance
    state, draws = start_state(scene), RasterRenderer(scene, meshes)
    colors, masks = [], []
    for k in range(6):
        pose = state.T_world_camera.copy()
        pose[:3, 3] += pose[:3, 0] * 0.002 * k
        seen = draws.draw(replace(state, T_world_camera=pose), 640, 352, ("rgb", "ids"))
        colors.append(seen["rgb"].astype(np.float32))
        masks.append(seen["ids"] == label)
    draws.close()
    ball = np.logical_and.reduce(masks)
    rim = ball & (cv2.erode(ball.astype(np.uint8), np.ones((7, 7), np.uint8)) == 0)
    assert rim.sum() > 500
    change = np.abs(np.diff(np.stack(colors), axis=0)).mean(axis=-1)[:, rim]
    # One sample of the finest level in each pixel: 4 and 80 grey levels.
    assert change.mean() < 2.5
    assert np.quantile(change, 0.99) < 35
