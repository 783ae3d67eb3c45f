"""Blender's own rigid bodies, by `bpy` in a worker: the physics of RigidBench (section A.4).

One Blender frame is one substep: the states are bit-identical to those of as many Bullet substeps a
frame as the dt says, and every one of them can be read.

What it does not give, and refuses:

- Blender tells no contacts, so there are none (`EngineInfo.contact_impulses` is False); nor rays.
- Nothing but gravity acts on a body: drivers may move cameras, lights, data bodies and modal
  state; one that pushes, releases or puts a body is an error. A kinematic body stands still.
- Rolling friction, bodies kept upright, compounds that move, restitution thresholds but Bullet's.

Velocities are differences of consecutive poses over dt. Bullet moves a body by the velocity that
the substep ends with, so they are the solver's own up to the rounding of float32 poses: about
``1e-7 / dt`` (1e-4 m/s and rad/s at dt = 1/720 s, a metre from the origin). At state 0 they are the
scene's. A body with an initial velocity is carried along it for three frames and let go.

Spheres, boxes, cylinders and capsules are themselves, with Bullet's inertia for them; a convex
mesh is its hull, inflated by ``hull_margin``, with the inertia of its bounding box; a concave one
(static only) a triangle mesh inflated by ``mesh_margin``. Damping is (1 - d)^dt per substep.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_conjugate, quaternion_multiply, quaternion_to_matrix
from wmeval.errors import NotFiniteError, UserError
from wmeval.jobs.worker import Buffers
from wmeval.scene import (
    IDENTITY,
    Body,
    Box,
    Collision,
    Mesh,
    Meshes,
    Scene,
    Sphere,
)
from wmeval.sim.blender_worker import INSTALL, BlenderWorker, bpy_version
from wmeval.sim.engines.bullet_shapes import mass_properties
from wmeval.sim.engines.engine_options import options_of
from wmeval.sim.engines.stepped import SteppedEngine
from wmeval.sim.protocol import Driver, EngineConfig, EngineInfo

F8 = NDArray[np.float64]

OPTIONS: dict[str, tuple[float, float, float]] = {
    # option: (default, least, greatest)
    "hull_margin": (1e-3, 0.0, 0.1),
    "mesh_margin": (1e-4, 0.0, 0.1),
    "split_impulse": (0, 0, 1),
    "timeout": (600.0, 1.0, 86_400.0),
}
"""Numbers that `EngineConfig.options` may hold beside ``python``, the interpreter that has bpy."""

RESTITUTION_THRESHOLD = 0.2
"""Bullet's own [m/s]; Blender offers no other."""

_SERVE = Path(__file__).with_name("blender_serve.py")
_SHAPES = {"sphere": "SPHERE", "box": "BOX", "cylinder": "CYLINDER", "capsule": "CAPSULE"}
_CHUNK = 2000
"""States a call asks for at most."""
_MAX_FPS = 32_767
_XYZW = [0, 1, 2, 4, 5, 6, 3]


class BlenderEngine(SteppedEngine):
    """Rigid bodies by Blender; also the `SubstepView` of its drivers."""

    def __init__(self) -> None:
        super().__init__()
        self._worker: BlenderWorker | None = None
        self._asked: tuple[str, float] = ("", 0.0)
        version = bpy_version()
        self.info = EngineInfo(
            name="blender",
            version="not installed" if version is None else version,
            body_kinds=("rigid",),
            deterministic=True,
            clock="fixed",
            contact_impulses=False,
            mend=INSTALL if version is None else "",
        )

    # --- building ---------------------------------------------------------------------------------

    def build(
        self,
        scene: Scene,
        meshes: Meshes,
        config: EngineConfig,
        dt: Fraction,
        drivers: Sequence[Driver],
    ) -> None:
        """Make the scene at state 0 and reset the drivers.

        Raises:
            UserError: no bpy, an unknown option, or what this engine has no physics for.
            WorkerError: Blender did not start.
        """
        options = _options(config)
        header: dict[str, Any] = {
            "gravity": scene.gravity,
            "iterations": config.iterations,
            "split_impulse": bool(options["split_impulse"]),
            "substeps_per_frame": 1,
            **_rate(dt),
        }
        bodies: list[dict[str, Any]] = []
        moving: list[int] = []
        used: set[str] = set()
        for i, body in enumerate(scene.bodies):
            if not body.active or not body.collision:
                if body.motion == "dynamic" and body.active:
                    raise UserError(
                        f"body {body.name!r} is dynamic but has no collision shape: add one"
                    )
                continue
            made = _described(body, meshes, options)
            bodies += made
            used |= {b["mesh"] for b in made if b["mesh"] is not None}
            if body.motion == "dynamic":
                moving.append(i)
        arrays: Buffers = {}
        for key in sorted(used):
            arrays[f"{key}/vertices"] = meshes[key].vertices
            arrays[f"{key}/triangles"] = meshes[key].triangles
        worker = self._running(str(config.options.get("python", "")), options["timeout"])
        self._set_stage(scene, dt)
        self._bodies = tuple(moving)
        self._at = {body: row for row, body in enumerate(moving)}
        self._stale = self._vertices_stale = False
        self._process = os.getpid()
        self._broken = False
        _, answer = worker.call("build", {**header, "bodies": bodies}, arrays)
        self._poses = answer["poses"]
        start = np.array([(*b.linear_velocity, *b.angular_velocity) for b in scene.bodies])
        self._now = np.concatenate(
            [self._poses[:, _XYZW], start[moving].reshape(-1, 6)], axis=1
        ).tolist()
        self._enter(drivers, self)

    def _running(self, python: str, timeout: float) -> BlenderWorker:
        asked = (python, timeout)
        if self._worker is None or self._worker.lost or asked != self._asked:
            self.close()
            self._worker = BlenderWorker(_SERVE, "engine blender", python=python, timeout=timeout)
            self._asked = asked
        return self._worker

    # --- running ----------------------------------------------------------------------------------

    def _steps(
        self, until: int, write: Callable[[], None] | None, found: list[tuple[Any, ...]] | None
    ) -> None:
        """Ask Blender for the states, many at once, and let drivers and rows see them."""
        if self._worker is None or self._broken:
            raise UserError("engine blender broke off in its last stretch: reset the world")
        if os.getpid() != self._process:
            raise UserError("a world of engine blender does not branch: replay it instead")
        self._broken = True  # until all is done: Blender is ahead of what the drivers have seen
        while self.substep < until:
            ahead = min(until, self.substep + _CHUNK)
            _, answer = self._worker.call("advance", {"until": ahead}, {})
            self._replay(answer["poses"], write)
        self._broken = False

    def _replay(self, poses: F8, write: Callable[[], None] | None) -> None:
        """Let drivers and rows see states (n, M, 7) one by one."""
        numbers = self._with_velocities(poses)
        if not np.isfinite(poses).all():
            body = self._bodies[int(np.argmin(np.isfinite(poses).all(axis=(0, 2))))]
            raise NotFiniteError(
                f"body {self._scene.bodies[body].name!r} left the finite world before t = "
                f"{float((self.substep + len(poses)) * self._dt):.4g} s: use a smaller dt"
            )
        if not (self._before or self._after or write):
            self.substep += len(poses)
            self._now = numbers[-1].tolist()
            return
        for now in numbers.tolist():
            self._in_hooks = True
            for prepare in self._before:
                prepare(self)
            self.substep += 1
            self._now = now
            for call in self._after:
                call(self)
            self._in_hooks = False
            if write is not None:
                write()

    def _with_velocities(self, poses: F8) -> F8:
        """Rows (n, M, 13) of poses (n, M, 7), which follow the last known one."""
        before = np.concatenate([self._poses[None], poses[:-1]])
        self._poses = poses[-1]
        linear = (poses[..., :3] - before[..., :3]) / self.dt
        turn = quaternion_multiply(poses[..., 3:], quaternion_conjugate(before[..., 3:]))
        sine = np.linalg.norm(turn[..., 1:], axis=-1, keepdims=True)
        cosine = turn[..., :1]
        angle = 2 * np.arctan2(sine, np.abs(cosine)) * np.where(cosine < 0, -1.0, 1.0)
        angular = turn[..., 1:] * (angle / np.where(sine > 0, sine, 1.0) / self.dt)
        return np.concatenate([poses[..., _XYZW], linear, angular], axis=-1)

    def close(self) -> None:
        """End the worker; idempotent."""
        if self._worker is not None:
            self._worker.close()
            self._worker = None


# --- a scene in Blender's terms -------------------------------------------------------------------


def _options(config: EngineConfig) -> dict[str, float]:
    numbers, _ = options_of("blender", OPTIONS, config)
    if config.restitution_threshold != RESTITUTION_THRESHOLD:
        raise UserError(
            f"engine blender has Bullet's restitution threshold, {RESTITUTION_THRESHOLD} m/s: "
            f"{config.restitution_threshold} m/s cannot be had"
        )
    return numbers


def _rate(dt: Fraction) -> dict[str, int]:
    """Frames a second over their base, so that a frame lasts dt."""
    if dt.denominator > _MAX_FPS or dt.numerator > _MAX_FPS:
        raise UserError(f"engine blender: dt = {dt} s needs terms up to {_MAX_FPS}")
    return {"fps": dt.denominator, "fps_base": dt.numerator}


def _described(body: Body, meshes: Meshes, options: dict[str, float]) -> list[dict[str, Any]]:
    """Blender's objects of a body: one, or one for each part of what stands still."""
    moves = body.motion == "dynamic"
    for value, what in (
        (body.rolling_friction, "rolling_friction"),
        (body.upright, "upright"),
        (moves and body.inertia is not None, "inertia but that of its shapes"),
        (not moves and any((*body.linear_velocity, *body.angular_velocity)), "a moving surface"),
    ):
        if value:
            raise UserError(f"body {body.name!r}: engine blender has no {what}: run it with bullet")
    if moves:
        _check_moving(body, meshes)
    turn = np.array(body.quaternion_wxyz)
    out = []
    for part in body.collision:
        at = np.array(body.position) + quaternion_to_matrix(turn) @ np.array(part.position)
        own = quaternion_multiply(turn, np.array(part.quaternion_wxyz))
        out.append(
            {
                **_shape(part, body, meshes, options),
                "moves": moves,
                "position": at.tolist(),
                "quaternion_wxyz": own.tolist(),
                "linear": body.linear_velocity,
                "angular": body.angular_velocity,
                "mass": body.mass,
                "friction": body.friction,
                "restitution": body.restitution,
                "linear_damping": body.linear_damping,
                "angular_damping": body.angular_damping,
            }
        )
    return out


def _check_moving(body: Body, meshes: Meshes) -> None:
    part = body.collision[0]
    if len(body.collision) > 1:
        raise UserError(
            f"body {body.name!r} moves and has several collision shapes: engine blender takes one; "
            "join them into one hull"
        )
    if part.position != (0.0, 0.0, 0.0) or part.quaternion_wxyz != IDENTITY:
        raise UserError(
            f"body {body.name!r} moves: engine blender takes its collision shape in the body's own "
            "frame; move the frame into the shape"
        )
    if isinstance(part.shape, Mesh):
        if not part.shape.convex:
            raise UserError(
                f"body {body.name!r} moves, but its mesh is concave: make it static, or convex=true"
            )
        volume, centre, _ = mass_properties(body, meshes)
        if float(np.abs(centre).max()) > 1e-3 * volume ** (1 / 3):
            raise UserError(
                f"body {body.name!r}: the centre of mass of its hull is at "
                f"{centre.round(4).tolist()} m in its own frame; move the mesh so that it is at 0"
            )


def _shape(
    part: Collision, body: Body, meshes: Meshes, options: dict[str, float]
) -> dict[str, Any]:
    shape = part.shape
    if isinstance(shape, Mesh):
        if shape.sha256 not in meshes:
            raise UserError(
                f"body {body.name!r}: mesh {shape.sha256[:12]}... is not among the meshes"
            )
        kind = ("CONVEX_HULL", "hull_margin") if shape.convex else ("MESH", "mesh_margin")
        return {"shape": kind[0], "mesh": shape.sha256, "margin": options[kind[1]]}
    if isinstance(shape, Sphere):
        half = (shape.radius,) * 3
    elif isinstance(shape, Box):
        half = shape.half_extents
    else:
        half = (shape.radius, shape.radius, shape.height / 2)
    # Bullet keeps this margin inside of the shape: it must be smaller than the thinnest part.
    margin = min(options["hull_margin"], 0.1 * min(half))
    return {"shape": _SHAPES[shape.kind], "mesh": None, "half": half, "margin": margin}


__all__ = ["OPTIONS", "RESTITUTION_THRESHOLD", "BlenderEngine"]
