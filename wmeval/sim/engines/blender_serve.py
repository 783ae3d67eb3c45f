"""The worker of engine `blender`: Blender's rigid-body world behind three verbs.

It runs under an interpreter with `bpy`, by path: nothing of this package but the worker boundary is
imported. One Blender frame is one substep, which gives the same bits as that many substeps a frame
(a test checks it) and every state in between.
"""

from __future__ import annotations

import os
from typing import Any

import bpy
import numpy as np
from mathutils import Quaternion
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.jobs.worker import Buffers, Handler, Header

LAST_FRAME = 1_000_000
_RUN_UP = 3
"""Frames before state 0 in which bodies are carried, so that they start with a velocity."""
_CORNERS = [(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]
_FACES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
_CURVES = ("location", "rotation_quaternion")


class _World:
    """One rigid-body world."""

    def __init__(self) -> None:
        self._moving: list[Any] = []
        self._first = 1
        self._state = 0

    def build(self, header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        """Make the world at state 0."""
        bpy.ops.wm.read_factory_settings(use_empty=True)
        scene = self._scene = bpy.context.scene
        scene.render.fps, scene.render.fps_base = header["fps"], header["fps_base"]
        scene.frame_start, scene.frame_end = 1, LAST_FRAME
        scene.use_gravity, scene.gravity = True, header["gravity"]
        bpy.ops.rigidbody.world_add()
        world = scene.rigidbody_world
        world.substeps_per_frame = header["substeps_per_frame"]
        world.solver_iterations = header["iterations"]
        world.use_split_impulse = header["split_impulse"]
        world.collection = bpy.data.collections.new("bodies")
        world.point_cache.frame_start, world.point_cache.frame_end = 1, LAST_FRAME
        moving = [b for b in header["bodies"] if b["moves"]]
        carried = any(any(b["linear"]) or any(b["angular"]) for b in moving)
        self._first = 1 + _RUN_UP if carried else 1
        self._state = 0
        self._moving = []
        frame_time = header["fps_base"] / header["fps"]
        for number, body in enumerate(header["bodies"]):
            made = self._add(number, body, buffers)
            if body["moves"]:
                self._moving.append(made)
                if carried:
                    self._carry(made, body, frame_time)
        for frame in range(1, self._first + 1):
            scene.frame_set(frame)
        return {"version": bpy.app.version_string}, {"poses": self._poses()}

    def _add(self, number: int, body: dict[str, Any], buffers: Buffers) -> Any:
        scene = self._scene
        mesh = _mesh(body, buffers)
        made = bpy.data.objects.new(f"body_{number:05d}", mesh)
        scene.collection.objects.link(made)
        scene.rigidbody_world.collection.objects.link(made)
        made.rotation_mode = "QUATERNION"
        made.location, made.rotation_quaternion = body["position"], body["quaternion_wxyz"]
        rigid = made.rigid_body
        rigid.type = "ACTIVE" if body["moves"] else "PASSIVE"
        rigid.collision_shape = body["shape"]
        rigid.mesh_source = "BASE"
        rigid.use_margin, rigid.collision_margin = True, body["margin"]
        rigid.use_deactivation = False
        rigid.friction, rigid.restitution = body["friction"], body["restitution"]
        rigid.linear_damping = body["linear_damping"]
        rigid.angular_damping = body["angular_damping"]
        if body["moves"]:
            rigid.mass = body["mass"]
        return made

    def _carry(self, made: Any, body: dict[str, Any], frame_time: float) -> None:
        """Carry a body along its initial motion up to state 0, where it is let go."""
        start, speed = np.array(body["position"]), np.array(body["linear"])
        turn, spin = Quaternion(body["quaternion_wxyz"]), np.array(body["angular"])
        rate = float(np.linalg.norm(spin))
        axis = spin / rate if rate > 0 else np.array([0.0, 0.0, 1.0])
        for frame in range(1, self._first + 1):
            t = (frame - self._first) * frame_time
            made.location = start + speed * t
            made.rotation_quaternion = Quaternion(axis, rate * t) @ turn
            for curve in _CURVES:
                made.keyframe_insert(curve, frame=frame)
        rigid = made.rigid_body
        # The step that leads to a frame sees that frame's switch.
        for kinematic, frame in ((True, 1), (False, self._first + 1)):
            rigid.kinematic = kinematic
            made.keyframe_insert("rigid_body.kinematic", frame=frame)

    def _poses(self) -> NDArray[np.float64]:
        """Position and wxyz quaternion (M, 7) of what moves."""
        graph = bpy.context.evaluated_depsgraph_get()
        out = np.empty((len(self._moving), 7))
        for row, made in zip(out, self._moving, strict=True):
            matrix = made.evaluated_get(graph).matrix_world
            row[:3], row[3:] = matrix.translation, matrix.to_quaternion()
        return out

    def advance(self, header: Header, buffers: Buffers) -> tuple[Header, Buffers]:
        """Poses (n, M, 7) of every state after the present one up to ``until``."""
        until = header["until"]
        if self._first + until > LAST_FRAME:
            raise UserError(f"engine blender ends at substep {LAST_FRAME - self._first}")
        out = np.empty((until - self._state, len(self._moving), 7))
        for row in out:
            self._state += 1
            self._scene.frame_set(self._first + self._state)
            row[:] = self._poses()
        return {}, {"poses": out}


def _mesh(body: dict[str, Any], buffers: Buffers) -> Any:
    """What the shape is made from: a mesh, or a box of the shape's size."""
    key = body["mesh"]
    if key is None:
        size = body["half"]
        points = [tuple(c * h for c, h in zip(corner, size, strict=True)) for corner in _CORNERS]
        faces: Any = _FACES
    else:
        points = buffers[f"{key}/vertices"].tolist()
        faces = buffers[f"{key}/triangles"].tolist()
    mesh = bpy.data.meshes.new("shape")
    mesh.from_pydata(points, [], faces)
    mesh.update()
    return mesh


def handlers() -> dict[str, Handler]:
    """Verbs: build, advance."""
    # What Blender tells of its progress would fill every error's last words.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    world = _World()
    return {"build": world.build, "advance": world.advance}
