"""What the published bundle of a clip states in its tables: trajectories, contacts, metadata.

Names, shapes and types are those that the released scorer reads.
"""

from __future__ import annotations

from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import (
    matrix_to_quaternion,
    quaternion_conjugate,
    quaternion_multiply,
    quaternion_to_matrix,
)
from wmeval.datasets.clip import ClipRecord

FORMAT = "wmeval-bundle/1"
SENSOR_WIDTH_MM = 36.0
"""Of the camera whose 35 mm lens section A.3 names."""
NOTHING_M = 1e10
"""Depth where nothing is hit, as Cycles writes it."""
POINTS_PER_PAIR = 5

F8 = NDArray[np.float64]


def trajectories(clip: ClipRecord) -> dict[str, NDArray[np.float32]]:
    """Arrays of trajectories.npz: poses, and their differences from frame to frame.

    Returns:
        Of each actor ``<name>_positions`` (T, 3) [m], ``<name>_rotations`` (T, 4) wxyz,
        ``<name>_linear_velocity`` (T, 3) [m/frame] and ``<name>_angular_velocity`` (T, 3), Euler
        angles of the turn since the frame before [rad/frame]. Row 0 of both is zero.
    """
    position, turned = clip.states.position, clip.states.quaternion_wxyz
    turn = quaternion_multiply(turned[1:], quaternion_conjugate(turned[:-1]))
    still = np.zeros_like(position[:1])
    whole = {
        "positions": position,
        "rotations": turned,
        "linear_velocity": np.concatenate([still, np.diff(position, axis=0)]),
        "angular_velocity": np.concatenate([still, blender_euler(turn)]),
    }
    return {
        f"{actor.name}_{name}": array[:, i].astype(np.float32)
        for i, actor in enumerate(clip.actors)
        for name, array in whole.items()
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


def contact_pairs(clip: ClipRecord) -> list[dict[str, Any]]:
    """What contacts.json holds: by frame the touching pairs of an actor and something else.

    A pair touches in frame i if it did in a substep since frame i - 1; so no impact is missed. Its
    points are those of the largest normal impulses, at most five; normals point from b to a.
    """
    bodies = [body.name for body in clip.rollout.scene.bodies]
    actors = {clip.body(i) for i in range(len(clip.actors))}
    pairs = []
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
        for (a, b), points in groupby(
            rows, key=lambda r: (int(found.body_a[r]), int(found.body_b[r]))
        ):
            all_points = list(points)
            # The first of a pair is an actor; normals point to it.
            first, second, sign = (a, b, 1.0) if a in actors else (b, a, -1.0)
            pairs.append(
                {
                    "frame": i,
                    "obj_a": bodies[first],
                    "obj_b": bodies[second],
                    "contacts": [
                        {
                            "point": found.position[r].tolist(),
                            "normal": (sign * found.normal[r]).tolist(),
                        }
                        for r in all_points[:POINTS_PER_PAIR]
                    ],
                    "normal_impulse_Ns": float(found.normal_impulse[all_points].sum()),
                }
            )
    return pairs


_MADE_BY = ("engine", "engine_version", "renderer", "renderer_version")


def metadata_of(clip: ClipRecord, *, exr: bool = False) -> dict[str, Any]:
    """What metadata.json holds: the facts that Table 8 lists, and how to read the other files."""
    facts, (width, height) = clip.facts, clip.size
    K, T = clip.K[0], clip.T_world_camera[0]
    blender = T @ np.diag([1.0, -1.0, -1.0, 1.0])
    scene = clip.rollout.scene
    support = next((b for b in scene.bodies if b.name == f"support:{facts.surface_name}"), None)
    made_by = {
        key: clip.rollout.metadata[key]
        for key in (*_MADE_BY, "renderer_about", "wmeval")
        if key in clip.rollout.metadata
    }
    return {
        "format": FORMAT,
        "sample_id": facts.sample_id,
        "task_type": facts.task_type,
        "scene_id": facts.scene_id,
        "surface": facts.surface_name,
        "center": None if support is None else list(support.position),
        "seed": facts.seed,
        "split": facts.split,
        "task_angle": (facts.turn_deg - 90.0) % 360.0,
        "camera_azimuth": (facts.azimuth_deg + 90.0) % 360.0,
        "footprint": None if facts.footprint_m is None else list(facts.footprint_m),
        "actors": {
            actor.name: {
                "object_id": actor.object,
                "role": actor.role,
                "position": clip.states.position[0, i].tolist(),
                "instance": actor.instance,
                "seen_share": actor.seen_share,
            }
            for i, actor in enumerate(facts.actors)
        },
        "camera": {
            "intrinsics": {
                "fx": float(K[0, 0]),
                "fy": float(K[1, 1]),
                "cx": float(K[0, 2]),
                "cy": float(K[1, 2]),
                "width": width,
                "height": height,
            },
            "extrinsics": {
                "location": T[:3, 3].tolist(),
                "rotation": matrix_to_quaternion(blender[:3, :3]).tolist(),
            },
            "lens_mm": float(K[0, 0]) * SENSOR_WIDTH_MM / width,
            "sensor_width_mm": SENSOR_WIDTH_MM,
            "T_world_camera": T.tolist(),
        },
        "render": {"resolution": [width, height], "fps": float(clip.fps)},
        "frames": len(clip),
        "prompt": facts.prompt,
        "full_prompt": facts.full_prompt,
        "negative_prompt": facts.negative_prompt,
        "physics": facts.physics,
        "rollout_sha256": clip.rollout.sha256(),
        "made_by": made_by,
        "conventions": {
            "task_angle": "of the task's way down from +y about z, deg",
            "camera_azimuth": "from the task to the camera, from -y about z, deg",
            "intrinsics": "px, pixel centres at +0.5",
            "extrinsics": "Blender axes: x right, y up, looks along -z; m, wxyz",
            "T_world_camera": "OpenCV axes: x right, y down, z forward; m",
            "frames": "as rendered" if clip.lossless_rgb else "decoded from the video: lossy",
            "depth.npz": f"planar depth, m; {NOTHING_M:g} where nothing is hit",
            "positions": "centre of mass, world, z up, m",
            "rotations": "wxyz; of q and -q the one next to the frame before's",
            "linear_velocity": "difference of positions to the frame before, m per FRAME",
            "angular_velocity": "Blender XYZ Euler angles of the turn since the frame before, "
            "rad per FRAME; state.h5 has rad/s in the world frame",
            "contacts.json": f"empty: {unknown}"
            if (unknown := clip.rollout.metadata.get("contacts"))
            else "pairs touching since the frame before, an actor first; at most "
            f"{POINTS_PER_PAIR} points of the largest impulses; normals from b to a; m, N s",
            "state.h5": "every substep, SI",
            "exr": "written" if exr else "not written: masks.npz and depth.npz hold the same",
        },
    }
