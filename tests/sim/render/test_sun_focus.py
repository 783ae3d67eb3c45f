"""Around the sun's focus shadows are fine; elsewhere nothing changes, and no light leaks in."""

from dataclasses import replace

import numpy as np
import pytest
from raster_scene import HEIGHT, MESHES, WIDTH, make_scene, moved

from wmeval.conventions import intrinsics
from wmeval.scene import Body, Box, Camera, Focus, Material, Scene, Sun, Texture, Visual
from wmeval.sim.render import make_renderer
from wmeval.sim.render.pieces import start_state

pytestmark = pytest.mark.gl
LAYERS = ("rgb", "depth", "ids")


def focused(scene, center=(0.0, 0.0, 0.3), radius=1.0):
    focus = Focus(center=center, radius=radius)
    return scene.model_copy(update={"sun": scene.sun.model_copy(update={"focus": focus})})


def draw(scene, meshes=None, size=(640, 360)):
    renderer = make_renderer("raster", scene, meshes or {})
    layers = renderer.draw(start_state(scene), *size, LAYERS)
    renderer.close()
    return layers


def hall(*, roof: bool) -> Scene:
    """A floor between posts 40 m apart, with a box upon it and, maybe, a roof over all."""
    grey = Material(name="grey", texture=Texture(builder="plain", colors=((0.5, 0.5, 0.5),)))

    def block(name, instance, half, position):
        return Body(
            name=name, role=name, motion="static", instance=instance, position=position,
            visuals=(Visual(shape=Box(half_extents=half), material="grey"),),
        )  # fmt: skip

    bodies = [
        block("floor", 1, (50, 50, 0.5), (0, 0, -0.5)),
        block("box", 2, (0.1, 0.1, 0.1), (0, 0, 0.1)),
        *(block(f"post{k}", 5 + k, (0.2, 0.2, 2), (x, x, 2)) for k, x in enumerate((-20, 20))),
    ]  # fmt: skip
    if roof:
        bodies.append(block("roof", 4, (14, 14, 0.1), (0, 0, 6)))
    return Scene(
        name="hall",
        bodies=tuple(bodies),
        materials=(grey,),
        cameras=(Camera(name="a", position=(0, -1.5, 1.2), target=(0.1, 0.1, 0), fov_y_deg=40),),
        sun=Sun(direction=(0.5, 0.3, -0.8), softness=0.02),
    )


@pytest.mark.parametrize("sun", [None, (0.7, 0.2, -0.3)])
def test_motions_through_the_focus_are_bit_identical(sun):
    scene = focused(make_scene())
    rng = np.random.default_rng(7)
    cached = make_renderer("raster", scene, MESHES, cached=True)
    plain = make_renderer("raster", scene, MESHES, cached=False)
    state = moved(scene, 0)
    if sun is not None:
        state = replace(state, sun_direction=np.array(sun) / np.linalg.norm(sun))
    for _ in range(20):
        position, turn = state.position.copy(), state.quaternion_wxyz.copy()
        for body in rng.choice(np.arange(1, 10), rng.integers(1, 3), replace=False):
            position[body, :2] += rng.normal(0, (0.03, 0.4)[rng.integers(2)], 2)
            position[body, 2] = max(0.1, position[body, 2] + rng.normal(0, 0.15))
            turn[body] = rng.normal(size=4)
            turn[body] /= np.linalg.norm(turn[body])
        state = replace(state, position=position, quaternion_wxyz=turn)
        a, b = (r.draw(state, WIDTH, HEIGHT, LAYERS) for r in (cached, plain))
        for name in LAYERS:
            assert np.array_equal(a[name], b[name], equal_nan=True), name
    cached.close()
    plain.close()


def test_outside_of_the_focus_the_picture_stays_as_it_was():
    scene = make_scene(chrome=False)
    radius, center = 0.8, np.array([-1.0, 0.2, 0.3])
    before, after = draw(scene, MESHES), draw(focused(scene, tuple(center), radius), MESHES)
    state = start_state(scene)
    height, width = before["depth"].shape
    K = intrinsics(state.fov_y, width, height)
    x = (np.arange(width) + 0.5 - K[0, 2]) / K[0, 0]
    y = (np.arange(height) + 0.5 - K[1, 2]) / K[1, 1]
    rays = np.stack([*np.meshgrid(x, y), np.ones((height, width))], axis=-1)
    T = state.T_world_camera
    points = (rays * np.nan_to_num(before["depth"], posinf=1e3)[..., None]) @ T[:3, :3].T + T[:3, 3]
    to_sun = -state.sun_direction / np.linalg.norm(state.sun_direction)
    across = points - center
    across = across - (across @ to_sun)[..., None] * to_sun
    away = np.linalg.norm(across, axis=-1)
    outside = away > 2.1 * radius  # a square, and it fades
    changed = np.abs(before["rgb"].astype(int) - after["rgb"]).max(axis=-1)
    assert outside.mean() > 0.1
    assert changed[outside].max() <= 1
    assert (changed[away < 0.9 * radius] > 10).sum() > 50, "no shadow became finer"


def steepest(rgb) -> float:
    """The greatest change of light within three pixels across the end of the box's shadow."""
    row = rgb[rgb.shape[0] // 2].astype(float).sum(axis=-1)[330:]
    return float(np.abs(row[3:] - row[:-3]).max() / row.max())


def test_a_shadow_at_the_focus_has_a_fine_edge_in_a_wide_scene():
    scene = hall(roof=False)
    coarse, fine = draw(scene)["rgb"], draw(focused(scene, (0.1, 0.1, 0.0), 0.6))["rgb"]
    assert steepest(fine) > 2 * steepest(coarse)
    assert steepest(fine) > 0.3


def test_what_stands_far_above_still_keeps_the_sun_off_the_focus():
    scene = hall(roof=True)
    shaded = draw(focused(scene, (0.1, 0.1, 0.0), 0.6))
    open_sky = draw(focused(hall(roof=False), (0.1, 0.1, 0.0), 0.6))
    floor = shaded["ids"] == 1
    assert np.abs(shaded["rgb"].astype(int) - draw(scene)["rgb"])[floor].max() <= 1
    assert shaded["rgb"][floor].mean() < 0.8 * open_sky["rgb"][floor].mean()
