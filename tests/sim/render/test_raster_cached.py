"""The cached still-camera path, other renderers and other processes change no bit of a picture."""

import contextlib
import gc
import hashlib
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path

import moderngl
import numpy as np
import pytest
from raster_scene import HEIGHT, MESHES, WIDTH, make_scene, moved

from wmeval.assets import textures
from wmeval.sim.render import gl, make_renderer, pool
from wmeval.sim.render.raster import RasterRenderer

pytestmark = pytest.mark.gl
SCENE = make_scene()
LAYERS = ("rgb", "depth", "ids", "normals")
ALL = (*LAYERS, "glass_ids", "shadow_ids")


def equal(a, b):
    assert list(a) == list(b)
    for name in a:
        assert np.array_equal(a[name], b[name], equal_nan=True), (
            name, int((a[name] != b[name]).sum()))  # fmt: skip


def script():
    """(state, width, height, layers): a still camera, then everything that breaks the cache."""
    for k in (0, 0, 1, 2, 3, 4):
        yield moved(SCENE, k), 640, 352, LAYERS
    for k in range(3):
        yield moved(SCENE, k, fly=True), 640, 352, LAYERS
    for k in (5, 5, 6, 6):
        yield moved(SCENE, k), 640, 352, ALL
        yield moved(SCENE, k, camera=1), WIDTH, HEIGHT, ("rgb",)
        yield moved(SCENE, k + 1, camera=1), WIDTH, HEIGHT, ("ids", "depth")
    state = moved(SCENE, 7)
    low = np.array([0.8, 0.2, -0.35]) / np.linalg.norm([0.8, 0.2, -0.35])
    for k in (7, 8, 9):
        yield replace(moved(SCENE, k), sun_direction=low), 640, 352, LAYERS
    yield replace(state, sun_color=state.sun_color * 0.5), 640, 352, LAYERS
    for k in (7, 8, 9):
        yield replace(moved(SCENE, k), sky=state.sky * 0.3), 640, 352, LAYERS
    night = low * (1, 1, -1)
    for k in (7, 8, 9):
        yield replace(moved(SCENE, k), sun_direction=night), 640, 352, ALL
    yield replace(moved(SCENE, 9), sun_direction=night * (-1, 1, 1)), 640, 352, LAYERS
    # Only one thing moves: the chrome ball, the glass, then something high above the floor.
    for index, shift in ((4, (0.1, 0, 0)), (5, (0, 0.1, 0)), (9, (0, 0, 2.0)), (1, (0, -2.5, 1.2))):
        yield state, 640, 352, LAYERS
        yield state, 640, 352, LAYERS
        position = state.position.copy()
        position[index] += shift
        yield replace(state, position=position), 640, 352, LAYERS
    # A ball that passes beside and behind the camera; one that leaves the floor.
    for where in ((0.3, -5.6, 2.2), (0.3, -7.0, 2.2), (39.9, 0.0, 0.5), (60.0, 3.0, -4.0)):
        position = state.position.copy()
        position[1] = where
        yield replace(state, position=position), 640, 352, LAYERS


def test_cached_pictures_are_bit_identical(monkeypatch):
    partial = []
    original = RasterRenderer._changed

    def watched(self, before, now, **kind):
        rects = original(self, before, now, **kind)
        partial.append(bool(rects) and rects[0] != (0, 0, now.camera.width, now.camera.height))
        return rects

    monkeypatch.setattr(RasterRenderer, "_changed", watched)
    cached = make_renderer("raster", SCENE, MESHES, cached=True)
    plain = make_renderer("raster", SCENE, MESHES, cached=False)
    for state, width, height, layers in script():
        equal(cached.draw(state, width, height, layers), plain.draw(state, width, height, layers))
    cached.close()
    plain.close()
    # The test is about partial redraws: most of them must have been partial.
    assert sum(partial) > 20


def test_random_motions_are_bit_identical():
    rng = np.random.default_rng(4)
    cached = make_renderer("raster", SCENE, MESHES, cached=True)
    plain = make_renderer("raster", SCENE, MESHES, cached=False)
    state = moved(SCENE, 0)
    for _ in range(25):
        position, turn = state.position.copy(), state.quaternion_wxyz.copy()
        active = state.active.copy()
        for body in rng.choice(np.arange(1, 10), rng.integers(1, 4), replace=False):
            position[body, :2] += rng.normal(0, 0.15, 2)
            position[body, 2] = max(0.1, position[body, 2] + rng.normal(0, 0.1))
            turn[body] = rng.normal(size=4)
            turn[body] /= np.linalg.norm(turn[body])
            active[body] = rng.random() < 0.85
        state = replace(state, position=position, quaternion_wxyz=turn, active=active)
        equal(cached.draw(state, WIDTH, HEIGHT, LAYERS), plain.draw(state, WIDTH, HEIGHT, LAYERS))
    cached.close()
    plain.close()


def test_low_suns_and_bodies_beside_the_camera_are_bit_identical():
    rng = np.random.default_rng(1)
    cached = make_renderer("raster", SCENE, MESHES, cached=True)
    plain = make_renderer("raster", SCENE, MESHES, cached=False)
    for trial in range(8):
        sun = np.array([*rng.normal(0, 0.5, 2), -rng.uniform(0.1, 1)])
        state = moved(SCENE, 0, camera=trial % 2)
        state = replace(state, sun_direction=sun / np.linalg.norm(sun))
        eye = state.T_world_camera[:3, 3]
        for _ in range(6):
            position, turn = state.position.copy(), state.quaternion_wxyz.copy()
            for body in rng.choice(np.arange(1, 10), rng.integers(1, 3), replace=False):
                position[body] += rng.normal(0, (0.02, 0.2, 1.5)[rng.integers(3)], 3)
                if rng.random() < 0.2:
                    position[body] = eye + rng.normal(0, 1.5, 3)
                turn[body] = rng.normal(size=4)
                turn[body] /= np.linalg.norm(turn[body])
            state = replace(state, position=position, quaternion_wxyz=turn)
            equal(cached.draw(state, 400, 240, LAYERS), plain.draw(state, 400, 240, LAYERS))
    cached.close()
    plain.close()


def test_results_belong_to_the_caller():
    renderer = make_renderer("raster", SCENE, MESHES)
    states = [moved(SCENE, k) for k in (0, 0, 1)]
    first = [renderer.draw(s, WIDTH, HEIGHT, LAYERS) for s in states]
    kept = {name: array.copy() for name, array in first[1].items()}
    for array in first[0].values():
        array[...] = 7
    first[2]["rgb"][...] = 0
    again = renderer.draw(states[0], WIDTH, HEIGHT, LAYERS)
    equal(again, kept)
    equal(first[1], kept)
    renderer.close()


def test_renderers_and_threads_share_the_context():
    state = moved(SCENE, 2)
    a = make_renderer("raster", SCENE, MESHES)
    b = make_renderer("raster", make_scene(chrome=False), MESHES)
    alone = a.draw(state, WIDTH, HEIGHT, ALL)
    other = b.draw(state, 200, 100, ALL)
    equal(a.draw(state, WIDTH, HEIGHT, ALL), alone)
    found = []
    thread = threading.Thread(target=lambda: found.append(a.draw(state, WIDTH, HEIGHT, ALL)))
    thread.start()
    thread.join()
    equal(found[0], alone)
    a.close()
    equal(b.draw(state, 200, 100, ALL), other)
    b.close()


def digest() -> str:
    renderer = make_renderer("raster", SCENE, MESHES)
    total = hashlib.sha256()
    for k in (0, 0, 1, 3):
        for array in renderer.draw(moved(SCENE, k), WIDTH, HEIGHT, ALL).values():
            total.update(array.tobytes())
    renderer.close()
    return total.hexdigest()


def test_another_process_draws_the_same_bits():
    code = "from test_raster_cached import digest; print(digest())"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == digest()


def test_a_dropped_renderer_frees_its_memory():
    def dropped(inside):
        renderer = make_renderer("raster", SCENE, MESHES)
        renderer.draw(moved(SCENE, 0), 32, 32, LAYERS)
        held = [renderer._passes.vertices, renderer._passes.targets(32, 32).many]
        with gl.current_device() if inside else contextlib.nullcontext():
            del renderer
            gc.collect()
            yield [isinstance(thing.mglo, moderngl.mgl.InvalidObject) for thing in held]
        yield [isinstance(thing.mglo, moderngl.mgl.InvalidObject) for thing in held]

    assert next(dropped(inside=False)) == [True, True]
    # In the middle of a pass it waits for the next one.
    found = dropped(inside=True)
    assert next(found) == [False, False]
    next(found)
    with gl.current_device():
        pass
    other = make_renderer("raster", SCENE, MESHES)
    before = other.draw(moved(SCENE, 0), 32, 32, LAYERS)
    equal(other.draw(moved(SCENE, 0), 32, 32, LAYERS), before)
    other.close()


def test_textures_stay_between_scenes_and_make_room_for_others(monkeypatch):
    def made(seed):
        looks = tuple(
            m.model_copy(update={"texture": m.texture.model_copy(update={"seed": seed})})
            for m in SCENE.materials
        )
        scene = SCENE.model_copy(update={"materials": looks})
        return make_renderer("raster", scene, MESHES, texture_size=64)

    def draw(renderer):
        return renderer.draw(moved(SCENE, 0), 160, 96, ("rgb",))["rgb"]

    baked = []
    monkeypatch.setattr(pool, "bake", lambda *a: baked.append(a) or textures.bake(*a))
    monkeypatch.setattr(pool, "KEPT_BYTES", 0)
    with gl.current_device() as device:
        device.pools.pop(64, None)
    first, second = made(1), made(1)
    alone = draw(first)
    count = len(baked)
    assert count > 3
    assert np.array_equal(draw(second), alone)
    assert len(baked) == count, "the same textures were baked twice"
    first.close()
    # One holder is left: others take other layers.
    other = made(2)
    assert not np.array_equal(draw(other), alone)
    assert np.array_equal(draw(second), alone)
    second.close()
    other.close()
    # Nobody holds any: new ones come into their places, and the array does not grow.
    with gl.current_device() as device:
        held = device.pools[64]
    full = held._capacity
    for seed in range(3, 9):
        another = made(seed)
        draw(another)
        another.close()
    assert held._capacity == full
    # Layers are others now, pictures the same.
    again = made(1)
    assert np.array_equal(draw(again), alone)
    assert len(baked) > 7 * count
    again.close()


@pytest.mark.parametrize("size", [(320, 180), (639, 353), (200, 480)])
def test_a_long_roll_is_bit_identical(size):
    """Cells come and go with the balls: how a pixel is drawn changes long before what it shows."""
    cached = make_renderer("raster", SCENE, MESHES, cached=True)
    plain = make_renderer("raster", SCENE, MESHES, cached=False)
    start = moved(SCENE, 0)
    for k in range(24):
        position = start.position.copy()
        position[1, :2] += (0.07 * k, 0.11 * k)
        position[2, :2] += (-0.05 * k, 0.02 * k)
        position[4, :2] += (0.09 * k, -0.15 * k)
        state = replace(start, position=position)
        equal(cached.draw(state, *size, LAYERS), plain.draw(state, *size, LAYERS))
    cached.close()
    plain.close()


def test_a_forked_child_is_told_to_spawn():
    code = """
import os, sys
from test_raster_cached import SCENE, MESHES, moved, make_renderer
renderer = make_renderer("raster", SCENE, MESHES)
renderer.draw(moved(SCENE, 0), 32, 32, ("ids",))
child = os.fork()
if child == 0:
    try:
        renderer.draw(moved(SCENE, 0), 32, 32, ("ids",))
    except Exception as error:
        os._exit(0 if "spawn" in str(error) and type(error).__name__ == "UserError" else 3)
    os._exit(4)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent, timeout=200,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == "0"


def test_absent_egl_names_the_packages():
    code = """
import ctypes
real = ctypes.CDLL
def refuse(name, *a, **k):
    if name and "EGL" in str(name):
        raise OSError("libEGL.so.1: cannot open shared object file")
    return real(name, *a, **k)
ctypes.CDLL = refuse
from test_raster_cached import SCENE, MESHES, moved, make_renderer
try:
    make_renderer("raster", SCENE, MESHES).draw(moved(SCENE, 0), 32, 32, ("ids",))
except ValueError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=Path(__file__).parent,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.startswith("UserError")
    for package in ("libegl1", "libegl-mesa0", "libgl1-mesa-dri"):
        assert package in done.stdout
