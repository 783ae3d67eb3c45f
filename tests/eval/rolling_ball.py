"""A ray-cast ball that rolls over a textured floor: pictures with exactly known truth."""

import numpy as np

from wmeval.conventions import axis_angle_quaternion, intrinsics, look_at, quaternion_to_matrix
from wmeval.eval.perception import Still


def floor_colour(x, y):
    rng = np.random.default_rng(7)
    noise = rng.uniform(0.75, 1.0, (64, 64))
    tile = ((np.floor(x) + np.floor(y)) % 2)[..., None]
    i = (np.floor(x * 4).astype(int) % 64, np.floor(y * 4).astype(int) % 64)
    return (tile * [0.55, 0.6, 0.62] + (1 - tile) * [0.35, 0.4, 0.45]) * noise[i][..., None]


def ball_colour(direction):
    """Red with cream panels, in the ball's own frame."""
    a = np.arctan2(direction[..., 1], direction[..., 0])
    panel = ((np.floor(a / (np.pi / 3)) + np.floor(direction[..., 2] * 2.2)) % 2)[..., None]
    return panel * [0.8, 0.15, 0.1] + (1 - panel) * [0.9, 0.75, 0.35]


def draw(center, rotation, radius, camera, width, height):
    """(H, W, 3) uint8 and the exact ball mask, 2x2 samples a pixel."""
    K, T = camera.K, camera.T_world_camera
    offsets = np.array([0.25, 0.75])
    u = (np.arange(width)[:, None] + offsets).ravel()
    v = (np.arange(height)[:, None] + offsets).ravel()
    uu, vv = np.meshgrid(u, v)
    rays = np.stack([(uu - K[0, 2]) / K[0, 0], (vv - K[1, 2]) / K[1, 1], np.ones_like(uu)], -1)
    rays = rays @ T[:3, :3].T
    rays /= np.linalg.norm(rays, axis=-1, keepdims=True)
    eye = T[:3, 3]
    t = -eye[2] / np.where(rays[..., 2] < -1e-6, rays[..., 2], -1e-6)
    ground = eye + rays * t[..., None]
    colour = floor_colour(ground[..., 0], ground[..., 1])
    shade = np.hypot(ground[..., 0] - center[0] - 0.3, ground[..., 1] - center[1] + 0.2) < radius
    colour = np.where(shade[..., None], 0.55 * colour, colour)
    b = rays @ (eye - center)
    disc = b**2 - (np.dot(eye - center, eye - center) - radius**2)
    hit = disc > 0
    s = -b - np.sqrt(np.where(hit, disc, 0))
    normal = (eye + rays * s[..., None] - center) / radius
    light = 0.45 + 0.55 * np.clip(normal @ np.array([-0.4, -0.3, 0.86]), 0, 1)
    colour = np.where(hit[..., None], ball_colour(normal @ rotation) * light[..., None], colour)
    colour = colour.reshape(height, 2, width, 2, 3).mean((1, 3))
    mask = hit.reshape(height, 2, width, 2).mean((1, 3)) >= 0.5
    return (np.clip(colour, 0, 1) ** (1 / 2.2) * 255 + 0.5).astype(np.uint8), mask


def clip(*, seconds=3.0, fps=24, width=320, height=176, radius=0.5):
    """Frames, masks, true positions (T, 3), camera: a ball pushed along +y, then turning to +x."""
    K = intrinsics(np.radians(45), width, height)
    camera = Still(K, look_at(np.array([9.0, -6.0, 6.0]), np.array([0.0, 0.0, 0.3])))
    t = np.arange(int(seconds * fps) + 1) / fps
    x = 0.35 * np.maximum(t - 1.0, 0) ** 2
    y = -4 + 0.6 * np.minimum(t, 2) ** 2 + 2.4 * np.maximum(t - 2, 0)
    position = np.stack([x, y, np.full_like(t, radius)], axis=1)
    rotation, frames, masks = np.eye(3), [], []
    for k, p in enumerate(position):
        if k:
            step = p - position[k - 1]
            length = np.linalg.norm(step)
            if length > 1e-9:
                axis = np.cross([0, 0, 1.0], step / length)
                q = axis_angle_quaternion(tuple(axis), length / radius)
                rotation = quaternion_to_matrix(q) @ rotation
        frame, mask = draw(p, rotation, radius, camera, width, height)
        frames.append(frame)
        masks.append(mask)
    return np.stack(frames), np.stack(masks), position, t, camera
