"""The still-camera path draws every scene bit for bit as the full one does."""

import gymnasium
import numpy as np
import pytest

import wmeval  # noqa: F401  (registers the scenes)
from wmeval.envs import ENVIRONMENTS
from wmeval.envs.policies import RandomPolicy, Task
from wmeval.sim.protocol import render_state
from wmeval.sim.render import make_renderer

LAYERS = ("rgb", "depth", "ids", "normals")


@pytest.mark.gl
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_cached_pictures_of_every_scene_are_bit_identical(name):
    env = gymnasium.make(name, observation_mode="vector").unwrapped
    env.reset(seed=5)
    spec = env.world_spec
    cached = make_renderer("raster", spec.scene, spec.meshes, cached=True)
    plain = make_renderer("raster", spec.scene, spec.meshes, cached=False)
    names = [camera.name for camera in spec.scene.cameras]
    policy = RandomPolicy(scale=2.0)
    policy.begin(Task.of(env))
    for step in range(100):
        if any(env.step(policy.act(step, None, {}))[2:4]):
            break
        if step % 12 and step not in (1, 2, 61):
            continue
        camera = names.index("static" if step != 61 else env.row.view)
        state = render_state(env.log, 0, spec.scene, camera)
        a = cached.draw(state, 320, 180, LAYERS)
        b = plain.draw(state, 320, 180, LAYERS)
        for layer in LAYERS:
            assert np.array_equal(a[layer], b[layer], equal_nan=True), (step, layer)
    cached.close()
    plain.close()
    env.close()
