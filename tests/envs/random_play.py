"""Smooth random play of any scene, and whether anything came of it."""

import hashlib

import numpy as np

from wmeval.envs.policies import RandomPolicy, Task

MOVES_MPS = 0.1


def random_actions(env, steps, *, scale=2.0, hold=0.25):
    """Actions (T, A) of a random policy for an environment's present seed."""
    policy = RandomPolicy(scale=scale, correlation=1.0, hold=hold)
    policy.begin(Task.of(env))
    return np.array([policy.act(i, None, {}) for i in range(steps)], np.float32)


def moves(env, log):
    """Whether what the actions drive moves in a log; where they drive nothing, whether a body
    moves, or light or camera turn."""
    if env.PLAYER is not None:
        player = env.scene.index(env.PLAYER)
        speed = np.linalg.norm(log.state.linear_velocity[:, player], axis=1)
        return bool(speed.max() > MOVES_MPS)
    turning = (log.lights.sun_direction, log.cameras.T_world_camera, log.state.position)
    return any(bool(np.ptp(array, axis=0).max() > 1e-3) for array in turning)


def digest(log):
    """Of every bit of states, modal states, cameras and lights."""
    cameras, lights = log.cameras, log.lights
    arrays = (cameras.T_world_camera, cameras.fov_y,
              lights.sun_direction, lights.sun_color, lights.sky)  # fmt: skip
    rest = hashlib.sha256(b"".join(a.tobytes() for a in arrays)).hexdigest()
    return log.state.sha256() + rest
