"""Clips are drawn in parts: what changed alone. The same bits come from drawing all of it."""

import numpy as np
import pytest

from wmeval.assets.cards import library
from wmeval.envs import make_environment
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record
from wmeval.envs.rigidbench import tasks
from wmeval.sim.protocol import render_state
from wmeval.sim.render import make_renderer
from wmeval.sim.render.raster import RasterRenderer

pytestmark = pytest.mark.gl
LAYERS = ("rgb", "depth", "ids", "normals")
SIZE = (640, 352)


def compare(task, monkeypatch, *, seed, frames, options=None):
    """Draw a clip both ways; the share of the picture that was drawn anew each time."""
    shares = []
    original = RasterRenderer._changed

    def watched(self, before, now, *, light):
        rects = original(self, before, now, light=light)
        if light:
            area = sum((x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in rects)
            shares.append(area / (now.camera.width * now.camera.height))
        return rects

    monkeypatch.setattr(RasterRenderer, "_changed", watched)
    env = make_environment(getattr(tasks, task).ID)
    try:
        played = record(env, plan=load_plan(env.ID, "clip"), seed=seed, options=options)
        spec, camera = env.world_spec, env.camera_index(None)
        cached, plain = (
            make_renderer("raster", spec.scene, spec.meshes, cached=how) for how in (True, False)
        )
        for row in np.linspace(0, len(played.log) - 1, frames).astype(int).tolist():
            state = render_state(played.log, row, spec.scene, camera)
            a, b = (r.draw(state, *SIZE, LAYERS) for r in (cached, plain))
            for name in LAYERS:
                wrong = int((a[name] != b[name]).sum())
                assert np.array_equal(a[name], b[name]), f"row {row}: {name}: {wrong} values"
        cached.close()
        plain.close()
    finally:
        env.close()
    return float(np.mean(shares[1:]))


def test_ramps_are_drawn_in_parts_to_the_bit(monkeypatch):
    assert 0 < compare("RampCollision", monkeypatch, seed=4, frames=10) < 0.4


@pytest.mark.accept
@pytest.mark.parametrize("setting", sorted(library().settings))
def test_every_room_is_drawn_in_parts_to_the_bit(setting, monkeypatch):
    number = sorted(library().settings).index(setting)
    task = ("FreeFall", "Bounce", "RampCollision", "BallChain", "DropIntoCluster")[number % 5]
    share = compare(
        task, monkeypatch, seed=number, frames=14, options={"setting": setting, "split": "train"}
    )
    assert share < 0.6
