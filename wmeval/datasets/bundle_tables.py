"""What the published bundle of a clip states in its tables: trajectories, contacts, metadata."""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_to_matrix
from wmeval.datasets.clip import ClipRecord

FORMAT = "wmeval-bundle/1"
SENSOR_WIDTH_MM = 36.0
"""Of the camera whose 35 mm lens section A.3 names."""
NOTHING_M = 1e10
"""Depth where nothing is hit, as Cycles writes it."""
POINTS_PER_PAIR = 5

F8 = NDArray[np.float64]


def trajectories(clip: ClipRecord) -> dict[str, F8]:
    """Arrays of trajectories.npz: poses, and their differences from frame to frame.

    Returns:
        ``positions`` (T, N, 3) [m], ``quaternions`` (T, N, 4) wxyz, ``linear_velocity`` (T, N, 3)
        [m/frame] and ``angular_velocity`` (T, N, 3), differences of Euler angles [rad/frame] that
        jump where an angle passes half a turn. Row i is frame i less frame i - 1; row 0 is zero.
    """
    position = clip.states.position
    euler = blender_euler(clip.states.quaternion_wxyz)
    return {
        "positions": position,
        "quaternions": clip.states.quaternion_wxyz,
        "linear_velocity": np.diff(position, axis=0, prepend=position[:1]),
        "angular_velocity": np.diff(euler, axis=0, prepend=euler[:1]),
    }


def blender_euler(quaternion_wxyz: F8) -> F8:
    """Euler angles [rad] of Blender's default order "XYZ": R = Rz Ry Rx.

    Of the two triples that give a rotation, the one with the smaller sum of magnitudes.

    Args:
        quaternion_wxyz: (..., 4), unit.

    Returns:
        (..., 3).
    """
    # Rows and columns first: what follows then depends on the values alone (`conventions.apart`).
    R = np.ascontiguousarray(np.moveaxis(quaternion_to_matrix(quaternion_wxyz), (-2, -1), (0, 1)))
    c = np.hypot(R[0, 0], R[1, 0])
    locked = c < 1e-9
    first = np.stack(
        [
            np.where(
                locked,
                np.arctan2(-R[1, 2], R[1, 1]),
                np.arctan2(R[2, 1], R[2, 2]),
            ),
            np.arctan2(-R[2, 0], c),
            np.where(locked, 0.0, np.arctan2(R[1, 0], R[0, 0])),
        ],
        axis=-1,
    )
    second = np.stack(
        [
            np.arctan2(-R[2, 1], -R[2, 2]),
            np.arctan2(-R[2, 0], -c),
            np.arctan2(-R[1, 0], -R[0, 0]),
        ],
        axis=-1,
    )
    closer = (np.abs(second).sum(-1) < np.abs(first).sum(-1)) & ~locked
    return np.where(closer[..., None], second, first)


def contact_frames(clip: ClipRecord) -> dict[str, Any]:
    """What contacts.json holds: of each frame the touching pairs with at least one actor.

    A pair touches in frame i if it did in a substep since frame i - 1; so no impact is missed. Its
    points are those of the largest normal impulses, at most five; normals point from b to a.
    """
    bodies = [body.name for body in clip.rollout.scene.bodies]
    actors = {clip.body(i) for i in range(len(clip.actors))}
    frames = []
    for i in range(len(clip)):
        found = clip.contacts_of_frame(i)
        rows = [
            r
            for r in range(len(found))
            if int(found.body_a[r]) in actors or int(found.body_b[r]) in actors
        ]
        rows.sort(
            key=lambda r: (
                int(found.body_a[r]),
                int(found.body_b[r]),
                -float(found.normal_impulse[r]),
            )
        )
        pairs = []
        for (a, b), points in groupby(
            rows, key=lambda r: (int(found.body_a[r]), int(found.body_b[r]))
        ):
            all_points = list(points)
            chosen = all_points[:POINTS_PER_PAIR]
            pairs.append(
                {
                    "actor_a": bodies[a],
                    "actor_b": bodies[b],
                    "points": found.position[chosen].tolist(),
                    "normals": found.normal[chosen].tolist(),
                    "normal_impulse_Ns": float(found.normal_impulse[all_points].sum()),
                }
            )
        frames.append({"frame": i, "contacts": pairs})
    return {"frames": frames}


def metadata_of(clip: ClipRecord, *, exr: bool = False) -> dict[str, Any]:
    """What metadata.json holds: the facts that Table 8 lists, and how to read the other files."""
    facts, (width, height) = clip.facts, clip.size
    K, T = clip.K[0], clip.T_world_camera[0]
    blender = T @ np.diag([1.0, -1.0, -1.0, 1.0])
    made_by = {
        key: clip.rollout.metadata[key]
        for key in ("engine", "engine_version", "renderer", "renderer_version", "wmeval")
        if key in clip.rollout.metadata
    }
    return {
        "format": FORMAT,
        "sample_id": facts.sample_id,
        "task_type": facts.task_type,
        "scene_id": facts.scene_id,
        "surface_name": facts.surface_name,
        "seed": facts.seed,
        "split": facts.split,
        "task_angle_deg": facts.turn_deg,
        "camera_azimuth_deg": facts.azimuth_deg,
        "footprint_m": None if facts.footprint_m is None else list(facts.footprint_m),
        "actors": [actor.model_dump(mode="json") for actor in facts.actors],
        "camera": {
            "lens_mm": float(K[0, 0]) * SENSOR_WIDTH_MM / width,
            "sensor_width_mm": SENSOR_WIDTH_MM,
            "K": K.tolist(),
            "T_world_camera": T.tolist(),
            "matrix_world": blender.tolist(),
        },
        "resolution": [width, height],
        "fps": float(clip.fps),
        "num_frames": len(clip),
        "prompt": facts.prompt,
        "full_prompt": facts.full_prompt,
        "negative_prompt": facts.negative_prompt,
        "physics": facts.physics,
        "rollout_sha256": clip.rollout.sha256(),
        "made_by": made_by,
        "conventions": {
            "K": "px, pixel centres at +0.5",
            "T_world_camera": "OpenCV axes: x right, y down, z forward; m",
            "matrix_world": "Blender axes: x right, y up, looks along -z; m",
            "frames": "as rendered" if clip.lossless_rgb else "decoded from the video: lossy",
            "depth.npz": f"planar depth, m; {NOTHING_M:g} where nothing is hit",
            "positions": "centre of mass, world, z up, m",
            "quaternions": "wxyz",
            "linear_velocity": "difference of positions to the frame before, m per FRAME",
            "angular_velocity": "difference of Blender XYZ Euler angles to the frame before, "
            "rad per FRAME, not unwrapped; state.h5 has rad/s in the world frame",
            "contacts.json": "pairs touching since the frame before; at most "
            f"{POINTS_PER_PAIR} points of the largest impulses; normals from b to a; m, N s",
            "state.h5": "every substep, SI",
            "exr": "written" if exr else "not written: masks.npz and depth.npz hold the same",
        },
    }
