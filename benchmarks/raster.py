"""CPU time of pictures: the raster renderer beside MuJoCo's three passes on the same things.

Both draw the same 64 textured objects (balls, boxes, cylinders) on a textured floor under one
shadow-casting sun, 13 objects moving: colour with 4 samples a pixel, planar depth, ids, and (raster
only) world normals. MuJoCo needs three passes (colour, depth, segmentation) and has no normals. CPU
time of all threads of a process (``time.process_time``), medians; each side runs in a process of
its own, since two OpenGL contexts disturb each other's timing.

    python benchmarks/raster.py            # prints JSON
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SIZES = ((320, 180), (640, 352), (1280, 704))
MOVING = 13
EYE, TARGET, FOV_Y_DEG = (0.0, -11.0, 6.5), (0.0, -0.5, 0.3), 45.0
SUN = (0.4, 0.45, -0.8)


def things() -> list[tuple[str, tuple[float, ...], tuple[float, float, float], float, int]]:
    """(kind, size [m], position [m], yaw [rad], colour) of 64 objects on an 8 by 8 field."""
    rng = np.random.default_rng(1)
    out = []
    for i in range(64):
        x = 1.5 * (i % 8 - 3.5) + rng.uniform(-0.25, 0.25)
        y = 1.5 * (i // 8 - 3.5) + rng.uniform(-0.25, 0.25)
        kind = ("ball", "ball", "box", "cylinder")[i % 4]
        size: tuple[float, ...] = {
            "ball": (0.42,), "box": (0.35, 0.3, 0.4), "cylinder": (0.3, 0.45)
        }[kind]  # fmt: skip
        height = size[-1]
        out.append((kind, size, (x, y, height), float(rng.uniform(0, math.pi)), i % 8))
    return out


COLORS = (
    (0.75, 0.05, 0.04), (0.04, 0.3, 0.75), (0.05, 0.5, 0.1), (0.9, 0.35, 0.02),
    (0.35, 0.08, 0.6), (0.8, 0.75, 0.1), (0.1, 0.6, 0.6), (0.8, 0.8, 0.8),
)  # fmt: skip


def path(frame: int, k: int) -> tuple[float, float, float]:
    """Shift (x, y) [m] and turn [rad] of the k-th moving object in a frame."""
    a = 0.12 * frame + k
    return 0.25 * math.sin(a), 0.25 * math.cos(1.3 * a), 0.1 * frame


def median_ms(draw: Callable[[int], object], frames: int) -> float:
    """Median CPU time [ms] of drawing; the first three frames warm up."""
    spent = []
    for i in range(frames + 3):
        start = time.process_time()
        draw(i)
        spent.append(time.process_time() - start)
    return 1e3 * float(np.median(spent[3:]))


# --- raster -------------------------------------------------------------------------------------


def _scene(chrome: bool) -> Any:
    from wmeval import scene as s

    def material(name: str, builder: str, *colors: tuple[float, float, float], **look: Any) -> Any:
        return s.Material(name=name, texture=s.Texture(builder=builder, colors=colors), **look)

    materials = [material("floor", "tiles", (0.3, 0.34, 0.4), uv_m=4.0, roughness=0.8)]
    materials.append(material("chrome", "brushed", (0.7, 0.72, 0.75), mirror=0.95, roughness=0.03))
    for i, c in enumerate(COLORS):
        materials.append(material(f"c{i}", "ball_panels", c, roughness=0.25, specular=0.6))
    bodies = [
        s.Body(name="floor", role="floor", motion="static", instance=1, position=(0, 0, -0.5),
               visuals=(s.Visual(shape=s.Box(half_extents=(30, 30, 0.5)), material="floor"),))
    ]  # fmt: skip
    for i, (kind, size, position, yaw, color) in enumerate(things()):
        shape: Any
        if kind == "ball":
            shape = s.Sphere(radius=size[0])
        elif kind == "box":
            shape = s.Box(half_extents=(size[0], size[1], size[2]), bevel=0.03)
        else:
            shape = s.Cylinder(radius=size[0], height=2 * size[1])
        look = "chrome" if chrome and i == 28 else f"c{color}"
        bodies.append(
            s.Body(name=f"o{i}", role="object", mass=1.0, instance=i + 2, position=position,
                   motion="dynamic" if i % 5 == 0 or (chrome and i == 28) else "static",
                   quaternion_wxyz=(math.cos(yaw / 2), 0, 0, math.sin(yaw / 2)),
                   visuals=(s.Visual(shape=shape, material=look),))
        )  # fmt: skip
    norm = math.sqrt(sum(c * c for c in SUN))
    return s.Scene(
        name="bench", bodies=tuple(bodies), materials=tuple(materials),
        cameras=(s.Camera(name="c", position=EYE, target=TARGET,
                          fov_y_deg=FOV_Y_DEG),),
        sun=s.Sun(direction=(SUN[0] / norm, SUN[1] / norm, SUN[2] / norm)),
    )  # fmt: skip


def _raster(frames: int) -> dict[str, Any]:
    from dataclasses import replace

    from wmeval.conventions import axis_angle_quaternion, quaternion_multiply
    from wmeval.sim.render.pieces import start_state
    from wmeval.sim.render.raster import RasterRenderer

    layers = ("rgb", "depth", "ids", "normals")
    out: dict[str, Any] = {}
    for chrome in (False, True):
        scene = _scene(chrome)
        base = start_state(scene)
        states = []
        for frame in range(frames + 3):
            position, turn = base.position.copy(), base.quaternion_wxyz.copy()
            for k in range(MOVING):
                dx, dy, angle = path(frame, k)
                position[1 + 5 * k] += (dx, dy, 0)
                spin = axis_angle_quaternion((0.0, 0.0, 1.0), angle)
                turn[1 + 5 * k] = quaternion_multiply(spin, turn[1 + 5 * k])
            states.append(replace(base, position=position, quaternion_wxyz=turn))
        for cached, key in ((False, "full"), (True, "static")):
            renderer = RasterRenderer(scene, {}, samples=4, cached=cached)
            for width, height in SIZES:
                name = f"{'chrome_' if chrome else ''}{key}_{width}x{height}"
                out[name] = median_ms(
                    lambda i, r=renderer, s=states, w=width, h=height: r.draw(s[i], w, h, layers),
                    frames,
                )
            out["driver"] = renderer.driver
            renderer.close()
    return out


# --- MuJoCo -------------------------------------------------------------------------------------


def _mujoco(frames: int) -> dict[str, Any]:
    import mujoco

    from wmeval.assets.textures import bake
    from wmeval.conventions import look_at
    from wmeval.scene import Texture

    spec = mujoco.MjSpec()
    spec.visual.quality.offsamples = 4
    spec.visual.quality.shadowsize = 1024
    spec.visual.global_.offwidth, spec.visual.global_.offheight = SIZES[-1]

    pixels: dict[str, Any] = {}

    def textured(name: str, builder: str, color: tuple[float, float, float], kind: Any) -> None:
        n = 6 if kind == mujoco.mjtTexture.mjTEXTURE_CUBE else 1
        spec.add_texture(name=name, type=kind, width=512, height=512 * n,
                         builtin=mujoco.mjtBuiltin.mjBUILTIN_FLAT)  # fmt: skip
        pixels[name] = np.concatenate([bake(Texture(builder=builder, colors=(color,)), 512)] * n)
        material = spec.add_material(name=name)
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = name
        if n == 1:
            material.texrepeat = [15, 15]

    textured("floor", "tiles", (0.3, 0.34, 0.4), mujoco.mjtTexture.mjTEXTURE_2D)
    for i, c in enumerate(COLORS):
        textured(f"c{i}", "ball_panels", c, mujoco.mjtTexture.mjTEXTURE_CUBE)
    spec.add_texture(name="sky", type=mujoco.mjtTexture.mjTEXTURE_SKYBOX,
                     builtin=mujoco.mjtBuiltin.mjBUILTIN_GRADIENT, rgb1=[0.4, 0.6, 0.9],
                     rgb2=[0.8, 0.85, 0.9], width=256, height=256 * 6)  # fmt: skip
    world = spec.worldbody
    world.add_light(dir=list(SUN), pos=[-4, -4.5, 8], type=mujoco.mjtLightType.mjLIGHT_DIRECTIONAL)
    world.add_geom(type=mujoco.mjtGeom.mjGEOM_PLANE, size=[30, 30, 1], material="floor")
    kinds = {
        "ball": mujoco.mjtGeom.mjGEOM_SPHERE,
        "box": mujoco.mjtGeom.mjGEOM_BOX,
        "cylinder": mujoco.mjtGeom.mjGEOM_CYLINDER,
    }
    for i, (kind, size, position, yaw, color) in enumerate(things()):
        quat = [math.cos(yaw / 2), 0, 0, math.sin(yaw / 2)]
        body = world.add_body(name=f"o{i}", pos=list(position), quat=quat)
        if i % 5 == 0:
            body.add_freejoint()
        padded = [*size, *([0.0] * (3 - len(size)))]
        body.add_geom(type=kinds[kind], size=padded, material=f"c{color}")
    pose = look_at(np.array(EYE), np.array(TARGET))
    rotation = pose[:3, :3] @ np.diag([1.0, -1.0, -1.0])  # OpenCV to OpenGL camera axes
    quat = np.zeros(4)
    mujoco.mju_mat2Quat(quat, rotation.ravel())
    world.add_camera(name="c", pos=list(EYE), quat=quat, fovy=FOV_Y_DEG)
    model = spec.compile()
    for name, texels in pixels.items():
        texture = model.texture(name)
        start_of = model.tex_adr[texture.id]
        model.tex_data[start_of : start_of + texels.size] = texels.ravel()
    data = mujoco.MjData(model)
    start = data.qpos.copy()

    def place(frame: int) -> None:
        data.qpos[:] = start
        for k in range(MOVING):
            dx, dy, _ = path(frame, k)
            data.qpos[7 * k] += dx
            data.qpos[7 * k + 1] += dy
        mujoco.mj_kinematics(model, data)
        mujoco.mj_camlight(model, data)

    out: dict[str, Any] = {"version": mujoco.__version__}
    for width, height in SIZES:
        renderer = mujoco.Renderer(model, height, width)

        def three_passes(frame: int, renderer: Any = renderer) -> None:
            place(frame)
            renderer.update_scene(data, "c")
            renderer.render()
            renderer.enable_depth_rendering()
            renderer.render()
            renderer.disable_depth_rendering()
            renderer.enable_segmentation_rendering()
            renderer.render()
            renderer.disable_segmentation_rendering()

        out[f"{width}x{height}"] = median_ms(three_passes, frames)
        if os.environ.get("WMEVAL_BENCH_PICTURES"):
            import cv2

            place(5)
            renderer.update_scene(data, "c")
            cv2.imwrite(
                f"{os.environ['WMEVAL_BENCH_PICTURES']}/mujoco_{width}.png",
                renderer.render()[..., ::-1],
            )
        renderer.close()
    return out


# --- both ---------------------------------------------------------------------------------------


def measure(frames: int = 15) -> dict[str, Any]:
    """CPU milliseconds a frame of both, and their ratios.

    Returns:
        "raster_ms": {"full_WxH", "static_WxH", "chrome_full_WxH", ...}; "mujoco_ms": {"WxH"};
        "ratio": raster over MuJoCo (without chrome, which MuJoCo does not have); versions.
    """
    environment = {**os.environ, "MUJOCO_GL": "egl"}
    sides = {}
    for side in ("raster", "mujoco"):
        done = subprocess.run(
            [sys.executable, __file__, "--side", side, "--frames", str(frames)],
            check=True, capture_output=True, text=True, env=environment,
        )  # fmt: skip
        sides[side] = json.loads(done.stdout.strip().splitlines()[-1])
    raster, mujoco = sides["raster"], sides["mujoco"]
    versions = {"driver": raster.pop("driver"), "mujoco": mujoco.pop("version")}
    ratio = {
        f"{key}_{size}": raster[f"{key}_{size}"] / mujoco[size]
        for size in mujoco
        for key in ("full", "static")
    }
    return {
        "raster_ms": {k: round(v, 2) for k, v in raster.items()},
        "mujoco_ms": {k: round(v, 2) for k, v in mujoco.items()},
        "ratio": {k: round(v, 3) for k, v in ratio.items()},
        **versions,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--frames", type=int, default=15)
    parser.add_argument("--side", choices=("raster", "mujoco"))
    options = parser.parse_args()
    if options.side:
        print(json.dumps({"raster": _raster, "mujoco": _mujoco}[options.side](options.frames)))
    else:
        print(json.dumps(measure(options.frames), indent=2))


if __name__ == "__main__":
    main()
