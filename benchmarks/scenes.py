"""What each scene costs: steps of its state alone, and pictures of it.

"steps/s" is `env.step` at ``info_level="none"`` by CPU time, under smooth random actions; "real
time" is the scene's time over that. Pictures are 640 x 352 of the scene's paper camera, a new state
each, by CPU time of all threads: "rgb" alone, and with depth, ids, normals and shadow ids. "reset"
makes the scene with its physics, the first time in a process; "renderer" is the first picture. On a
machine without a GPU pictures are drawn by the CPU.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import wmeval  # noqa: F401 - registers the environments
from wmeval.envs import ENVIRONMENTS, make_environment, short_name
from wmeval.envs.base import WorldEnv
from wmeval.envs.policies import RandomPolicy, Task

WIDTH, HEIGHT = 640, 352
LABELS = ("rgb", "depth", "ids", "normals", "shadow_ids")
WARM, STEPS, SECONDS, FRAMES = 20, 360, 2.5, 6
COLUMNS = {
    "steps_per_s": "steps/s",
    "times_real_time": "× real time",
    "rgb_ms": "rgb [ms]",
    "labels_ms": "rgb and labels [ms]",
    "reset_ms": "reset [ms]",
    "renderer_ms": "renderer [ms]",
}


def actor(env: WorldEnv) -> Any:
    """Smooth random actions as a function of the step."""
    policy = RandomPolicy(scale=1.0)
    policy.begin(Task.of(env))
    return lambda step: policy.act(step, None, {})


def cpu_ms(call: Any) -> float:
    """CPU milliseconds of a call."""
    began = time.process_time()
    call()
    return 1e3 * (time.process_time() - began)


def steps_per_second(env: WorldEnv) -> float:
    """Steps per CPU second of `step`, after a few to warm up; an episode that ends begins anew."""
    act = actor(env)
    actions = [act(i) for i in range(WARM + STEPS)]
    spent, count = 0.0, 0
    for i, action in enumerate(actions):
        began = time.process_time()
        ended = any(env.step(action)[2:4])
        if i >= WARM:
            spent += time.process_time() - began
            count += 1
        if ended:
            env.reset(seed=0)
        if spent > SECONDS:
            break
    return count / spent


def frame_ms(env: WorldEnv, layers: tuple[str, ...]) -> float:
    """Median CPU milliseconds of a picture of a new state."""
    act, times = actor(env), []
    for i in range(FRAMES):
        if any(env.step(act(i))[2:4]):
            env.reset(seed=0)
        _ = env.log  # The state is read before the clock starts.
        times.append(cpu_ms(lambda: env.draw(layers)))
    return statistics.median(times)


def measure() -> dict[str, Any]:
    """By scene: the figures of `COLUMNS`."""
    out: dict[str, Any] = {}
    for env_id, row in ENVIRONMENTS.items():
        env = make_environment(env_id, width=WIDTH, height=HEIGHT, observation_mode="vector")
        reset_ms = cpu_ms(lambda env=env: env.reset(seed=0))
        speed = steps_per_second(env)
        env.reset(seed=0)
        renderer_ms = cpu_ms(lambda env=env: env.draw(LABELS))
        out[short_name(env_id)] = {
            "steps_per_s": round(speed),
            "times_real_time": round(speed * float(row.control_period), 1),
            "rgb_ms": round(frame_ms(env, ("rgb",)), 1),
            "labels_ms": round(frame_ms(env, LABELS), 1),
            "reset_ms": round(reset_ms),
            "renderer_ms": round(renderer_ms),
        }
        env.close()
    return out
