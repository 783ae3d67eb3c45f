"""``env.step`` against a bare PyBullet loop of the same world, and what recording adds.

Steps per second by CPU time, medians of interleaved runs of whole BeamDomino episodes. The bare
loop (`benchmarks.physics`) includes the push, the speed cap and the release rule. "wrapped" is what
`gym.make` returns: Gymnasium's checker, order guard and the unwrapped environment.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import wmeval  # noqa: F401 - registers the environments
from benchmarks.physics import REPEATS, actions, beam_domino_spec, cpu_seconds_bare

LEVELS = ("none", "state", "full")


def cpu_seconds_env(level: str, todo: list[NDArray[np.float32]], *, wrapped: bool = False) -> float:
    """CPU seconds of one episode of `step`."""
    env = gym.make("WMEval/BeamDomino-v0", info_level=level)
    env = env if wrapped else env.unwrapped
    env.reset(seed=0, options={"x0": 0.0})
    began = time.process_time()
    for action in todo:
        env.step(action)
    spent = time.process_time() - began
    env.close()
    return spent


def cpu_seconds_record() -> float:
    """CPU seconds of recording the same episode: every substep's state, contacts and events."""
    from wmeval.envs.plans import load_plan
    from wmeval.envs.record import record

    env = gym.make("WMEval/BeamDomino-v0").unwrapped
    plan = load_plan("WMEval/BeamDomino-v0", "canonical")
    began = time.process_time()
    record(env, plan=plan, seed=0)
    spent = time.process_time() - began
    env.close()
    return spent


def measure() -> dict[str, Any]:
    """Steps/s over the bare loop's (1 is as fast; the aim at level none is 0.9)."""
    spec = beam_domino_spec()
    todo = [np.array(a, np.float32) for a in actions(spec)]
    names = ("bare", *LEVELS, "none_wrapped", "record")
    seconds: dict[str, list[float]] = {name: [] for name in names}
    for _ in range(REPEATS):
        seconds["bare"].append(cpu_seconds_bare(spec)[0])
        for level in LEVELS:
            seconds[level].append(cpu_seconds_env(level, todo))
        seconds["none_wrapped"].append(cpu_seconds_env("none", todo, wrapped=True))
        seconds["record"].append(cpu_seconds_record())
    middle = {k: statistics.median(v) for k, v in seconds.items()}
    return {
        "bare_env_steps_per_s": round(len(todo) / middle["bare"]),
        **{
            f"step_{k}_over_bare": round(middle["bare"] / middle[k], 3)
            for k in (*LEVELS, "none_wrapped")
        },
        "record_over_bare": round(middle["bare"] / middle["record"], 3),
        "record_over_step_full": round(middle["full"] / middle["record"], 3),
    }
