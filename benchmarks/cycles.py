"""CPU-seconds of pictures by Cycles over a bare ``bpy.ops.render.render`` of the same frames."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from wmeval.jobs.cpu import cpu_seconds_of

SIZE = (320, 176)
FRAMES = 2


def worker_cpu(pid: int) -> float:
    """CPU-seconds [s] of another process so far.

    Raises:
        RuntimeError: this system does not tell.
    """
    told = cpu_seconds_of(pid)
    if told is None:
        raise RuntimeError(f"no CPU clock of process {pid}")
    return told


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


# --- calibration ----------------------------------------------------------------------------------

SMALL = (32, 18)
"""Picture of which nearly all is overhead."""


def cost(quality: str, known: dict[str, Any]) -> dict[str, Any]:
    """A calibration entry of Cycles: of each task one frame at `SIZE` with the quality's samples.

    A clip is its frames, each an overhead and a cost per pixel-sample, and the start of Blender.
    Physics, encoding and bytes are those of the raster's clips of the same quality.

    Args:
        quality: row of `wmeval.generators.rigidbench.QUALITIES`.
        known: the calibration's entries; holds the raster's of this quality.

    Raises:
        UserError: no bpy.
    """
    from wmeval.assets.cards import library
    from wmeval.envs.rigidbench.physics import FRAMES as FRAMES_OF_CLIP
    from wmeval.generators import rigidbench
    from wmeval.generators.making import close_environment
    from wmeval.sim.protocol import render_state
    from wmeval.sim.render.cycles import PRESETS, CyclesRenderer

    preset = rigidbench.QUALITIES[quality]
    name = str(preset.renderer_options["cycles"]["preset"])
    samples = PRESETS[name].samples
    raster = known[f"raster/{quality}"]
    rows = {row.task_type: row for row in reversed(rigidbench.rows_of("eval", library()))}
    job = {
        "width": SIZE[0], "height": SIZE[1], "physics": "bullet",
        "renderer": "raster", "renderer_options": {},
    }  # fmt: skip
    by_task, overheads, rates = {}, [], []
    for task, row in rows.items():
        env = rigidbench.environment_of(task, job)
        env.reset(seed=row.seed, options={"row": row.model_dump(mode="json")})
        state = render_state(env.log, -1, env.scene, env.camera_index())
        renderer = CyclesRenderer(
            env.scene,
            env.meshes,
            preset=preset.renderer_options["cycles"]["preset"],
            device="cpu",
            threads=1,
        )
        layers = ("rgb", *(layer for layer in preset.layers if layer != "rgb"))

        def spent(
            size: tuple[int, int],
            renderer: Any = renderer,
            state: Any = state,
            layers: Any = layers,
        ) -> float:
            pid = renderer._started().pid
            began = time.process_time() + worker_cpu(pid)
            renderer.draw(state, *size, layers)
            return time.process_time() + worker_cpu(pid) - began

        began = time.process_time()
        start = worker_cpu(renderer._started().pid) + time.process_time() - began
        start += spent(SMALL)
        overhead = spent(SMALL)
        whole = spent(SIZE)
        renderer.close()
        rate = max(whole - overhead, 0.0) / (SIZE[0] * SIZE[1] * samples)
        each = overhead + rate * preset.width * preset.height * samples
        by_task[task] = {**raster["by_task"][task], "draw_s": start + FRAMES_OF_CLIP * each}
        overheads.append(overhead)
        rates.append(rate)
    close_environment()
    return {
        "width": preset.width,
        "height": preset.height,
        "by_task": dict(sorted(by_task.items())),
        "frame": {
            "measured_at": list(SIZE),
            "samples": samples,
            "overhead_s": sum(overheads) / len(overheads),
            "us_per_pixel_sample": 1e6 * sum(rates) / len(rates),
        },
    }
