"""Random rollouts that obey the table of fields; no physics is claimed of them."""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from wmeval.conventions import intrinsics, look_at
from wmeval.datasets.rollout import Frames, Rollout
from wmeval.layers import LAYERS
from wmeval.records import CameraLog, Contacts, Event, LightLog, StateLog, WorldLog
from wmeval.scene import (
    Body,
    Camera,
    Collision,
    Material,
    Mesh,
    MeshData,
    Modal,
    Scene,
    Sphere,
    Sun,
    Texture,
    Visual,
)

DT = Fraction(1, 240)


def tetrahedron() -> MeshData:
    v = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float32)
    t = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]], np.uint32)
    n = v / np.maximum(np.linalg.norm(v, axis=1, keepdims=True), 1e-6)
    return MeshData(v, t, n.astype(np.float32), v[:, :2].copy())


def a_scene(bodies: int, modal: tuple[str, ...] = ()) -> tuple[Scene, dict[str, MeshData]]:
    mesh = tetrahedron()
    key = mesh.content_hash()
    shapes = [Sphere(radius=0.5), Mesh(sha256=key)]
    scene = Scene(
        name="heap",
        bodies=tuple(
            Body(
                name=f"body {i}",
                role="thing",
                motion="dynamic",
                instance=i + 1,
                mass=1.0,
                collision=(Collision(shape=shapes[i % 2]),),
                visuals=(Visual(shape=shapes[i % 2], material="m"),),
            )
            for i in range(bodies)
        ),
        materials=(Material(name="m", texture=Texture(builder="checker", colors=((1, 0, 0),))),),
        cameras=(
            Camera(name="follow", position=(0, -5, 3), target=(0, 0, 0)),
            Camera(name="static", position=(5, -5, 3), target=(0, 0, 0)),
        ),
        sun=Sun(direction=(0.0, 0.0, -1.0)),
        modal=tuple(Modal(name=name, size=2, unit="m", doc="two numbers") for name in modal),
    )
    return scene, {key: mesh}


def layer_frames(
    name: str, count: int, height: int, width: int, rng: np.random.Generator
) -> np.ndarray:
    """A still picture over which a patch moves: what a static camera sees."""
    row = LAYERS[name]
    plate = np.broadcast_to(np.linspace(1, 200, width, dtype=np.float32)[None, :], (height, width))
    if row.channels:
        plate = np.broadcast_to(plate[..., None], (height, width, row.channels))
    out = np.repeat(plate[None].astype(row.dtype), count, axis=0).copy()
    for i in range(count):
        x = i % max(width - 1, 1)
        patch = rng.uniform(1, 200, size=out[i, : height // 2 + 1, x : x + 2].shape)
        out[i, : height // 2 + 1, x : x + 2] = patch.astype(row.dtype)
    if name == "depth" and out.size:
        out[:, 0, 0] = np.inf
    return out


def make_rollout(
    *,
    seed: int = 0,
    steps: int = 6,
    per_step: int = 4,
    bodies: int = 3,
    contacts: int = 5,
    events: int = 3,
    action: int = 2,
    observation: int = 9,
    frames: int = 0,
    layers: tuple[str, ...] = (),
    size: tuple[int, int] = (16, 12),
    modal: tuple[str, ...] = (),
    moving_camera: bool = False,
) -> Rollout:
    rng = np.random.default_rng(seed)
    states = steps * per_step + 1
    scene, meshes = a_scene(bodies, modal)
    q = rng.normal(size=(states, bodies, 4))
    q /= np.linalg.norm(q, axis=-1, keepdims=True)
    state = StateLog(
        tuple(b.name for b in scene.bodies),
        DT,
        np.arange(states, dtype=np.int64),
        np.cumsum(rng.normal(size=(states, bodies, 3)) * 0.01, axis=0),
        q,
        rng.normal(size=(states, bodies, 3)),
        rng.normal(size=(states, bodies, 3)),
        rng.random((states, bodies)) < 0.9,
        rng.integers(0, 3, (states, bodies)).astype(np.uint8),
        modal={name: rng.normal(size=(states, 2)) for name in modal},
    )
    pose = np.stack([look_at(np.array(c.position), np.array(c.target)) for c in scene.cameras])
    poses = np.repeat(pose[None], states, axis=0)
    if moving_camera:
        poses[:, :, 0, 3] += np.linspace(0, 1, states)[:, None]
    fov = np.repeat(np.radians([[c.fov_y_deg for c in scene.cameras]]), states, axis=0)
    rows = [
        (
            int(k),
            int(rng.integers(bodies)),
            int(rng.integers(bodies)),
            rng.normal(size=3),
            rng.normal(size=3),
            float(rng.random()),
            rng.normal(size=3),
            -1e-4,
        )
        for k in np.sort(rng.integers(0, max(states - 1, 1), contacts if bodies else 0))
    ]
    happened = [
        Event(
            ("contact", "fall", "stage")[i % 3],
            i * 0.01,
            i * 0.01 + 0.004,
            f"body {i % max(bodies, 1)}",
            "" if i % 2 else "Küchentisch",
            float("nan") if i % 2 else 31.25,
        )
        for i in range(events)
    ]
    log = WorldLog(
        state,
        CameraLog(tuple(c.name for c in scene.cameras), fov, poses),
        LightLog(
            np.tile([0.0, 0.0, -1.0], (states, 1)),
            np.ones((states, 3)),
            rng.random((states, 3, 3)),
        ),
        Contacts.from_rows(rows),
        tuple(happened),
    )
    width, height = size
    pictures = None
    if frames:
        pictures = Frames(
            "static",
            np.linspace(0, states - 1, frames).astype(np.int64),
            tuple(Fraction(j, 24) for j in range(frames)),
            np.tile(intrinsics(0.8, width, height), (frames, 1, 1)),
            {n: layer_frames(n, frames, height, width, rng) for n in layers},
        )
    return Rollout(
        scene=scene,
        meshes=meshes,
        log=log,
        actions=rng.uniform(-1, 1, (steps, action)),
        rewards=rng.normal(size=steps),
        terminated=np.arange(steps) == steps - 1,
        truncated=np.zeros(steps, bool),
        observations=rng.normal(size=(steps + 1, observation)).astype(np.float32),
        frames=pictures,
        metadata={"env_id": "Test/Heap-v0", "seed": seed, "dt": "1/240", "control_period": "1/60"},
    )
