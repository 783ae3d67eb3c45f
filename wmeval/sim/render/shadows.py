"""True shadows: which body casts each, and where they fall. Pure numpy.

`image_azimuth` is the layer ``shadow_azimuth``; `mask_of` reads the layer ``shadow_masks``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wmeval import conventions
from wmeval.errors import UserError
from wmeval.records import LightLog
from wmeval.scene import Scene
from wmeval.sim.protocol import RenderState

F8 = NDArray[np.float64]
F4 = NDArray[np.float32]

MASKED = 64
"""Instances 1 to this have a bit in the layer ``shadow_masks``."""
LOWEST = 1e-6
"""Sine of the elevation [1] from which on the sun casts shadows."""


def mask_bits(scene: Scene) -> dict[str, int]:
    """Bit of every body that has one in ``shadow_masks``, by name: its instance less one."""
    return {b.name: b.instance - 1 for b in scene.bodies if 1 <= b.instance <= MASKED}


def mask_of(masks: NDArray[np.uint64], instance: int) -> NDArray[np.bool_]:
    """The true shadow of one body.

    Args:
        masks: the layer ``shadow_masks``, (..., H, W).
        instance: of the body.

    Returns:
        (..., H, W) bool: surfaces turned to the sun that would not see it if the body were alone in
        the world with them; also where another body's shadow lies, and where the body shades
        itself.

    Raises:
        UserError: an instance without a bit.
    """
    if not 1 <= instance <= MASKED:
        raise UserError(
            f"instance {instance} has no bit in shadow_masks: those of 1..{MASKED} have one; "
            "shadow_ids tells the nearest caster of all"
        )
    return np.asarray(masks >> np.uint64(instance - 1) & np.uint64(1), bool)


def ground_azimuth(sun_direction: F8) -> F8:
    """Direction in which shadows fall on level ground.

    Args:
        sun_direction: (..., 3) along which sunlight travels, world frame.

    Returns:
        (...) [rad], counter-clockwise from +x in the world's x-y plane; NaN while the sun is not
        above the horizon, or in the zenith.
    """
    d = np.asarray(sun_direction, np.float64)
    x, y, _ = conventions.apart(d)
    flat = np.hypot(x, y)
    length = np.linalg.norm(d, axis=-1)
    falls = (-d[..., 2] > LOWEST * length) & (flat > 1e-9 * length)
    return np.where(falls, np.arctan2(y, x), np.nan)


def shadow_azimuths(lights: LightLog) -> F8:
    """`ground_azimuth` at every state of a log, (N,) [rad]."""
    return ground_azimuth(lights.sun_direction)


def image_azimuth(depth: F4, state: RenderState) -> F4:
    """Image direction in which a shadow falls at the surface point that each pixel shows.

    It is the direction in which the pixel moves as its point moves along the shadow's direction on
    level ground: that of a vertical pole's shadow, seen in perspective.

    Args:
        depth: (H, W) planar depth [m].
        state: the instant.

    Returns:
        (H, W) float32 [rad] in (-pi, pi]: 0 is right, pi/2 is down; NaN where nothing is hit, while
        the sun is not above the horizon, and where the direction points along the line of sight.
    """
    height, width = depth.shape
    azimuth = float(ground_azimuth(state.sun_direction))
    if np.isnan(azimuth):
        return np.full((height, width), np.nan, np.float32)
    K = conventions.intrinsics(state.fov_y, width, height)
    x = ((np.arange(width) + 0.5 - K[0, 2]) / K[0, 0])[None, :]
    y = ((np.arange(height) + 0.5 - K[1, 2]) / K[1, 1])[:, None]
    turn = np.asarray(state.T_world_camera, np.float64)[:3, :3]
    a, b, c = turn.T @ np.array([np.cos(azimuth), np.sin(azimuth), 0.0])
    # d/ds of ((X + s a) / (Z + s c), (Y + s b) / (Z + s c)) at s = 0, times the depth Z.
    right, down = K[0, 0] * (a - x * c), K[1, 1] * (b - y * c)
    seen = np.isfinite(depth) & (np.hypot(right, down) > 1e-9 * K[0, 0])
    return np.where(seen, np.arctan2(*np.broadcast_arrays(down, right)), np.nan).astype(np.float32)
