"""The camera of a sample: on a ring of azimuths, where the actors are seen (RigidBench, A.3)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.scene import Camera, Focus, MeshData

F8 = NDArray[np.float64]

LENS_MM, SENSOR_MM = 35.0, 36.0
ELEVATION = math.radians(10)
MARGIN, PADDING_M, NEAREST_M = 1.4, 0.2, 1.4
PADDING_ABOVE_M = 1.2 * PADDING_M
"""Padding above the actors [m]. Table 7 states 0.2 m of padding and no other; the code pads a fifth
more there: `framing_bbox`, src/rigidbench/scenes/camera/framing.py of swarnim-j/RigidBench. The
published clips are the code's."""
BEHIND_DEG = 180.0
"""From the task's x axis, which leads down the first ramp, to where its azimuths count from."""
FOCUS_MARGIN = 1.1
"""Radius of the ball of fine shadows, as a share of half of what is seen at the target."""
STEP_DEG = 15.0
SURFACE_POINTS = 16
ENOUGH_SEEN = 0.5

Cast = Callable[[F8, F8], NDArray[np.bool_]]
"""Rays (N, 3) -> (N, 3): whether the way is free, up to the last millimetre."""


def field_of_view_y(width: int, height: int) -> float:
    """Vertical field of view [rad] of a 35 mm lens whose 36 mm sensor spans the width."""
    return 2 * math.atan(SENSOR_MM / (2 * LENS_MM) * height / width)


def azimuths(ranges: Sequence[tuple[float, float]], turn_deg: float) -> Iterator[float]:
    """Camera azimuths [deg] every 15 degrees within the task's ranges, both ends included.

    Args:
        ranges: from behind the task [deg]: at 0 the camera looks along the task's x axis.
        turn_deg: the task's rotation in the world [deg].

    Yields:
        World azimuths, none of them twice (0 and 360 are one).
    """
    seen: set[float] = set()
    for low, high in ranges:
        for i in range(int((high - low) // STEP_DEG) + 1):
            relative = (low + i * STEP_DEG) % 360.0
            if relative not in seen:
                seen.add(relative)
                yield (relative + turn_deg + BEHIND_DEG) % 360.0


def frame(low: F8, high: F8, azimuth_deg: float, *, width: int, height: int) -> Camera:
    """The camera that looks at a box from an azimuth.

    Args:
        low: lower corner (3,) of the actors' joint box, down to the support [m], world frame.
        high: upper corner (3,) [m].
        azimuth_deg: direction from the box to the camera, from +x about z [deg].
        width: of the picture [px].
        height: of the picture [px].
    """
    low, high = low - PADDING_M, high + np.array([PADDING_M, PADDING_M, PADDING_ABOVE_M])
    extent = float((high - low).max())
    distance = max(MARGIN * extent, NEAREST_M)
    azimuth = math.radians(azimuth_deg)
    away = np.array(
        [
            math.cos(ELEVATION) * math.cos(azimuth),
            math.cos(ELEVATION) * math.sin(azimuth),
            math.sin(ELEVATION),
        ]
    )
    target = (low + high) / 2
    ex, ey, ez = (target + distance * away).tolist()
    tx, ty, tz = target.tolist()
    return Camera(
        name="main",
        position=(ex, ey, ez),
        target=(tx, ty, tz),
        fov_y_deg=math.degrees(field_of_view_y(width, height)),
        near=0.05,
        far=100.0,
    )


def focus(camera: Camera) -> Focus:
    """Where shadows are drawn finely: what a camera of `frame` shows around the actors."""
    away = math.dist(camera.position, camera.target)
    return Focus(center=camera.target, radius=FOCUS_MARGIN * away * SENSOR_MM / (2 * LENS_MM))


def surface_points(mesh: MeshData, count: int = SURFACE_POINTS) -> F8:
    """About ``count`` points (N, 3) [m] spread over a mesh: its vertices, evenly by index."""
    vertices = np.unique(mesh.vertices.astype(np.float64), axis=0)
    chosen = np.unique(np.linspace(0, len(vertices) - 1, count).round().astype(int))
    return np.asarray(vertices[chosen])


def visible_share(eye: Sequence[float], points: F8, free: Cast) -> float:
    """Share of points (N, 3) that a ray from the eye reaches."""
    origins = np.broadcast_to(np.asarray(eye, np.float64), points.shape)
    return float(np.mean(free(origins, points)))


@dataclass(frozen=True)
class View:
    """A rotation of the task with a camera, and how much of the actors it sees.

    Attributes:
        turn_deg: rotation of the task in the world [deg].
        azimuth_deg: of the camera in the world [deg].
        share: least visible share over the actors.
    """

    turn_deg: float
    azimuth_deg: float
    share: float


def choose_view(
    turns: Sequence[float],
    ranges: Sequence[tuple[float, float]],
    share: Callable[[float, float], float],
    rng: np.random.Generator,
) -> View:
    """The first rotation with a camera that sees at least half of every actor, else the best pair.

    Args:
        turns: rotations of the task to try, in order [deg].
        ranges: allowed azimuths relative to the rotation [deg].
        share: least visible share of a (rotation, azimuth) pair.
        rng: draws among a rotation's good cameras.
    """
    best: View | None = None
    for turn in turns:
        found = [View(turn, a, share(turn, a)) for a in azimuths(ranges, turn)]
        good = [v for v in found if v.share >= ENOUGH_SEEN]
        if good:
            return good[int(rng.integers(len(good)))]
        top = max(found, key=lambda v: v.share)
        if best is None or top.share > best.share:
            best = top
    assert best is not None, "no rotation to try"
    return best
