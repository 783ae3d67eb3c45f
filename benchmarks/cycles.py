"""CPU-seconds of pictures by Cycles over a bare ``bpy.ops.render.render`` of the same frames."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

SIZE = (320, 176)
FRAMES = 2


def worker_cpu(pid: int) -> float:
    """CPU-seconds [s] of another process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measure(presets: tuple[str, ...] = ("draft", "paper")) -> dict[str, Any]:
    """Means over frames [CPU-s]; {"not_run": why} where there is no bpy."""
    from wmeval.sim.blender_worker import bpy_version

    version = bpy_version()
    if version is None:
        return {"not_run": "bpy is not installed"}
    return {
        "blender": version,
        "size": list(SIZE),
        "frames": FRAMES,
        **{preset: _of_preset(preset) for preset in presets},
    }


def _of_preset(preset: str) -> dict[str, float]:
    from wmeval.envs import make_environment
    from wmeval.envs.plans import load_plan
    from wmeval.envs.record import record
    from wmeval.sim.protocol import render_state
    from wmeval.sim.render import cycles

    env = make_environment("RigidBench/FreeFall-v0")
    rollout = record(env, plan=load_plan(env.ID, "clip"), seed=1, fps=24)
    rows = [len(rollout.log) * (k + 1) // (FRAMES + 2) for k in range(FRAMES + 1)]
    states = [render_state(rollout.log, row, env.scene, env.camera_index()) for row in rows]
    serve, cycles._SERVE = cycles._SERVE, Path(__file__).with_name("cycles_bare.py")
    try:
        renderer = cycles.CyclesRenderer(
            env.scene, env.meshes, preset=preset, device="cpu", threads=1
        )
        layers = ("rgb", "depth", "ids")
        renderer.draw(states[0], *SIZE, layers)  # builds the scene
        worker = renderer._started()
        path = bare = 0.0
        for k, state in enumerate(states[1:]):
            began = time.process_time() + worker_cpu(worker.pid)
            renderer.draw(state, *SIZE, layers)
            drawn = time.process_time() + worker_cpu(worker.pid)
            # Another frame than the one before, for this one too: Blender has as much to take in.
            worker.call("bare", {"number": k}, {})
            path += (drawn - began) / FRAMES
            bare += (time.process_time() + worker_cpu(worker.pid) - drawn) / FRAMES
        renderer.close()
    finally:
        cycles._SERVE = serve
        env.close()
    return {"path_cpu_s": path, "bare_cpu_s": bare, "path_over_bare": path / bare}
