"""The rooms are as bright and as contrasty as photographs of rooms are."""

from __future__ import annotations

import numpy as np
import pytest

from wmeval.assets.cards import library
from wmeval.assets.settings import SETTINGS, build_setting
from wmeval.scene import Camera, Scene
from wmeval.sim.render.pieces import start_state
from wmeval.sim.render.raster import RasterRenderer

pytestmark = [pytest.mark.gl, pytest.mark.accept]

WIDTH, HEIGHT = 160, 88
LUMA = np.array([0.2126, 0.7152, 0.0722])


@pytest.mark.parametrize("name", SETTINGS)
def test_a_room_is_lit_like_a_photograph(name: str) -> None:
    cards = library()
    card = cards.settings[name]
    setting = build_setting(card, cards.folders[f"settings/{name}"])
    x, y, z = next(iter(card.surfaces.values())).center
    cameras = tuple(
        Camera(
            name=f"from_{k}",
            position=(x + 1.5 * np.cos(a), y + 1.5 * np.sin(a), z + 0.6),
            target=(x, y, z + 0.3),
            fov_y_deg=32.0,
        )
        for k, a in enumerate(np.radians([20, 110, 200, 290]).tolist())
    )
    scene = Scene(
        name=name, bodies=setting.bodies, materials=setting.materials, cameras=cameras,
        sun=setting.sun, sky=setting.sky,
    )  # fmt: skip
    renderer = RasterRenderer(scene, setting.meshes, texture_size=128)
    shots = [
        np.asarray(renderer.draw(start_state(scene, k), WIDTH, HEIGHT, ("rgb",))["rgb"]) @ LUMA
        for k in range(len(cameras))
    ]
    renderer.close()
    every = np.array(shots)
    assert 95 < every.mean() < 165
    assert min(shot.mean() for shot in shots) > 80
    assert every.std() > 25
    dark, bright = np.percentile(every, [5, 95])
    assert dark > 15
    assert 140 < bright < 245
