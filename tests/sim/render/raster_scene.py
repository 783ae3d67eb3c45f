"""A small scene with every kind of surface, and analytic ray casting against it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from wmeval import conventions
from wmeval.assets.meshes import wedge
from wmeval.scene import (
    Body,
    Box,
    Camera,
    Cylinder,
    Material,
    Mesh,
    Scene,
    Sphere,
    Sun,
    Texture,
    Visual,
)
from wmeval.sim.protocol import RenderState
from wmeval.sim.render.pieces import start_state

RAMP = wedge(1.2, 0.8, 0.5)
MESHES = {RAMP.content_hash(): RAMP}
WIDTH, HEIGHT = 320, 180


def _material(name, builder, color, **look):
    return Material(name=name, texture=Texture(builder=builder, colors=(color,)), **look)


def _turn(*axis_angle):
    return tuple(conventions.axis_angle_quaternion(axis_angle[:3], axis_angle[3]))


def make_scene(*, chrome=True, glass=True) -> Scene:
    materials = (
        _material("floor", "tiles", (0.3, 0.33, 0.38), uv_m=3.0, roughness=0.8),
        _material("toy", "ball_panels", (0.7, 0.1, 0.05), roughness=0.3, specular=0.6),
        _material("block", "checker", (0.1, 0.4, 0.6), roughness=0.5),
        _material(
            "chrome", "brushed", (0.7, 0.72, 0.75), mirror=0.95 if chrome else 0.0, roughness=0.02
        ),
        _material("glass", "noise", (0.6, 0.9, 0.7), opacity=0.3 if glass else 1.0, roughness=0.05),
    )

    def body(name, instance, shape, material, position, motion="dynamic", **more):
        return Body(
            name=name, role=name, motion=motion, instance=instance, position=position,
            mass=1.0 if motion == "dynamic" else 0.0,
            visuals=(Visual(shape=shape, material=material),), **more,
        )  # fmt: skip

    bodies = (
        body("floor", 1, Box(half_extents=(40, 40, 0.5)), "floor", (0, 0, -0.5), "static"),
        body("ball", 2, Sphere(radius=0.5), "toy", (-1.0, 0.2, 0.5),
             quaternion_wxyz=_turn(1, 2, 3, 0.7)),
        body("small", 3, Sphere(radius=0.2), "toy", (0.2, -1.1, 0.2)),
        body("block", 4, Box(half_extents=(0.4, 0.3, 0.35)), "block", (1.1, 0.9, 0.35),
             quaternion_wxyz=_turn(0, 0, 1, 0.5)),
        body("mirror", 5, Sphere(radius=0.45), "chrome", (0.1, 0.9, 0.45)),
        body("bottle", 60000, Sphere(radius=0.35), "glass", (0.9, -0.5, 0.35)),
        body("pillar", 7, Cylinder(radius=0.2, height=1.0), "block", (-0.3, 2.2, 0.5), "static"),
        body("ramp", 8, Mesh(sha256=RAMP.content_hash()), "block", (-2.2, 1.2, 0.5 / 3), "static"),
        body("unlabelled", 0, Sphere(radius=0.15), "toy", (-0.2, -0.4, 0.15)),
        body("away", 9, Sphere(radius=0.3), "toy", (0.0, -0.3, 0.8), active=False),
    )  # fmt: skip
    return Scene(
        name="render-test",
        bodies=bodies,
        materials=materials,
        cameras=(
            Camera(name="a", position=(0.3, -5.0, 2.2), target=(0.0, 0.4, 0.4), fov_y_deg=40),
            Camera(name="b", position=(3.0, -3.5, 1.6), target=(0.0, 0.5, 0.3), fov_y_deg=48),
        ),
        sun=Sun(direction=(0.45, 0.35, -0.82), softness=0.03),
    )


def moved(scene: Scene, k: int, *, camera: int = 0, fly: bool = False) -> RenderState:
    """Instant k of a scripted motion: rolling, spinning and sliding bodies."""
    state = start_state(scene, camera)
    position, turn = state.position.copy(), state.quaternion_wxyz.copy()

    def spin(index, *axis_angle):
        q = conventions.axis_angle_quaternion(axis_angle[:3], axis_angle[3])
        turn[index] = conventions.quaternion_multiply(q, turn[index])

    position[1, 0] += 0.08 * k
    spin(1, 0, 1, 0, 0.16 * k)
    position[2] += (0.03 * k, 0.02 * k, 0)
    spin(3, 0, 0, 1, 0.05 * k)
    position[4, 1] += 0.04 * k
    position[5] += (-0.03 * k, 0.01 * k, 0)
    active = state.active.copy()
    active[9] = k >= 3
    T = state.T_world_camera
    if fly:
        eye = np.array([0.3 + 0.05 * k, -5.0 + 0.06 * k, 2.2 + 0.01 * k])
        T = conventions.look_at(eye, np.array([0.02 * k, 0.4, 0.4]))
    return replace(state, position=position, quaternion_wxyz=turn, active=active, T_world_camera=T)


def rays(state: RenderState, width: int = WIDTH, height: int = HEIGHT):
    """Eye (3,) and directions (H, W, 3) with unit forward component."""
    K = conventions.intrinsics(state.fov_y, width, height)
    grid = conventions.pixel_grid(width, height)
    ends = conventions.unproject(grid, np.ones(grid.shape[:2]), K, state.T_world_camera)
    eye = np.asarray(state.T_world_camera)[:3, 3]
    return eye, ends - eye


def cast(scene: Scene, state: RenderState, skip=(), width: int = WIDTH, height: int = HEIGHT):
    """Exact planar depth, body index (-1: none) and normal of the first balls and boxes hit."""
    eye, ray = rays(state, width, height)
    depth = np.full(ray.shape[:2], np.inf)
    body_index = np.full(ray.shape[:2], -1)
    normal = np.zeros_like(ray)

    def keep(t, n, index):
        near = (t < depth) & (t > 0)
        depth[near] = t[near]
        body_index[near] = index
        normal[near] = n[near]

    for i, body in enumerate(scene.bodies):
        if not state.active[i] or body.name in skip:
            continue
        shape = body.visuals[0].shape
        R = conventions.quaternion_to_matrix(state.quaternion_wxyz[i])
        o, d = (eye - state.position[i]) @ R, ray @ R
        if isinstance(shape, Sphere):
            a, b, c = (d * d).sum(-1), d @ o, o @ o - shape.radius**2
            with np.errstate(invalid="ignore"):
                t = (-b - np.sqrt(b * b - a * c)) / a
            n = (o + d * t[..., None]) / shape.radius
            keep(np.where(np.isnan(t), np.inf, t), n @ R.T, i)
        elif isinstance(shape, Box):
            h = np.array(shape.half_extents)
            with np.errstate(divide="ignore", invalid="ignore"):
                t1, t2 = (-h - o) / d, (h - o) / d
            low, high = np.minimum(t1, t2), np.maximum(t1, t2)
            axis = low.argmax(axis=-1)
            t = low.max(axis=-1)
            hit = t <= high.min(axis=-1)
            n = np.zeros_like(d)
            np.put_along_axis(
                n, axis[..., None], -np.sign(np.take_along_axis(d, axis[..., None], -1)), -1
            )
            keep(np.where(hit, t, np.inf), n @ R.T, i)
        elif isinstance(shape, Cylinder):
            r, h = shape.radius, shape.height / 2
            a = (d[..., :2] ** 2).sum(-1)
            b, c = d[..., :2] @ o[:2], o[:2] @ o[:2] - r * r
            with np.errstate(invalid="ignore", divide="ignore"):
                t = (-b - np.sqrt(b * b - a * c)) / a
                side = np.abs(o[2] + t * d[..., 2]) <= h
                p = o + d * t[..., None]
                n = np.concatenate([p[..., :2] / r, np.zeros((*t.shape, 1))], -1)
                keep(np.where(side, t, np.inf), n @ R.T, i)
                t = (h - o[2]) / d[..., 2]
                p = o + d * t[..., None]
                top = (p[..., :2] ** 2).sum(-1) <= r * r
            keep(np.where(top, t, np.inf), np.broadcast_to(R[:, 2], d.shape), i)
        else:
            mesh = MESHES[shape.sha256]
            for triangle in mesh.vertices[mesh.triangles].astype(np.float64):
                e1, e2 = triangle[1] - triangle[0], triangle[2] - triangle[0]
                n = np.cross(e1, e2)
                n /= np.linalg.norm(n)
                facing = d @ n
                with np.errstate(divide="ignore", invalid="ignore"):
                    t = ((triangle[0] - o) @ n) / facing
                    p = o + d * t[..., None] - triangle[0]
                basis = np.linalg.pinv(np.stack([e1, e2], axis=1))
                uv = p @ basis.T
                hit = (uv >= 0).all(-1) & (uv.sum(-1) <= 1) & (facing < 0)
                keep(np.where(hit, t, np.inf), np.broadcast_to(R @ n, d.shape), i)
    return depth, body_index, normal


def near_edge(labels: np.ndarray, pixels: int = 1) -> np.ndarray:
    """Pixels whose neighbourhood holds another label."""
    out = np.zeros(labels.shape, bool)
    for dy in range(-pixels, pixels + 1):
        for dx in range(-pixels, pixels + 1):
            out |= np.roll(labels, (dy, dx), (0, 1)) != labels
    out[:pixels] = out[-pixels:] = True
    out[:, :pixels] = out[:, -pixels:] = True
    return out


def angle_deg(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Angle between unit vectors, well-conditioned where it is small."""
    return np.degrees(2 * np.arcsin(np.clip(np.linalg.norm(a - b, axis=-1) / 2, 0, 1)))
