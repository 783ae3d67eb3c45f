"""CPU-seconds and bytes of a clip, by task, renderer and preset, split into its parts.

``python -m benchmarks.rigidbench [RENDERER/QUALITY ...]`` also writes the calibration that
``wmeval generate rigidbench --dry-run`` reads; what is named is measured anew, the rest kept. Of
Cycles single frames are measured (`benchmarks.cycles.cost`): whole clips take hours.
"""

from __future__ import annotations

import json
import resource
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks import cycles
from benchmarks.storage import folder_bytes

CLIPS_EACH = 2
"""Measured clips of each task; one more before them builds what a process keeps."""


def cpu() -> float:
    """CPU-seconds [s] of this process and of its finished children."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(which: tuple[str, ...] = ("raster/draft", "raster/paper")) -> dict[str, Any]:
    """Means over clips of our evaluation manifest."""
    return {name: measure_one(*name.split("/")) for name in which}


def measure_one(renderer: str, quality: str) -> dict[str, Any]:
    """CPU-seconds of sampling and physics, drawing, writing; bytes of store and video."""
    from wmeval.assets.cards import library
    from wmeval.datasets import set_runs
    from wmeval.datasets.clips import write_clip
    from wmeval.datasets.location import locate
    from wmeval.datasets.sets import CLIPS
    from wmeval.envs.plans import load_plan
    from wmeval.envs.record import record
    from wmeval.generators import rigidbench
    from wmeval.generators.making import close_environment

    preset = rigidbench.QUALITIES[quality]
    job = {
        "width": preset.width,
        "height": preset.height,
        "layers": list(preset.layers),
        "physics": "bullet",
        "renderer": renderer,
        "renderer_options": dict(preset.renderer_options.get(renderer, {})),
    }
    rows = rigidbench.rows_of("eval", library())
    by_task: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as made:
        url = str(Path(made, "set"))
        set_runs.begin(locate(url), {"clips": 1}, kind=CLIPS)
        for task in rigidbench.ENVIRONMENT_OF:
            parts = {"simulate_s": 0.0, "draw_s": 0.0, "write_s": 0.0, "bytes": 0}
            chosen = [row for row in rows if row.task_type == task][:CLIPS_EACH]
            for row in chosen:
                options = {"row": row.model_dump(mode="json")}
                env = rigidbench.environment_of(task, job)
                plan = load_plan(env.ID, rigidbench.PLAN)
                record(env, plan=plan, seed=row.seed, options=options)  # builds the room
                began = cpu()
                record(env, plan=plan, seed=row.seed, options=options)
                simulated = cpu()
                rollout = rigidbench.clip_of(row, job)
                drawn = cpu()
                kept = tuple(n for n in rollout.frames.layers if n != "rgb" or n in preset.layers)
                write_clip(url, 0, rollout, layers=kept)
                parts["simulate_s"] += simulated - began
                parts["draw_s"] += (drawn - simulated) - (simulated - began)
                parts["write_s"] += cpu() - drawn
                parts["bytes"] += folder_bytes(str(Path(url, "clips")))
            close_environment()
            by_task[task] = {name: value / len(chosen) for name, value in parts.items()}
    return {"width": preset.width, "height": preset.height, "by_task": by_task}


def main() -> None:
    """Measure and write the calibration."""
    from benchmarks.__main__ import machine
    from wmeval.generators.estimate import CALIBRATION

    known = json.loads(CALIBRATION.read_text())["clips"] if CALIBRATION.exists() else {}
    which = tuple(sys.argv[1:])
    by_cycles = [name for name in which if name.startswith("cycles/")]
    others = tuple(name for name in which if name not in by_cycles)
    if others or not which:
        known |= measure(others) if others else measure()
    for name in by_cycles:
        known[name] = cycles.cost(name.partition("/")[2], known)
    text = json.dumps({"machine": machine(), "clips": known}, indent=1)
    CALIBRATION.write_text(text + "\n")


if __name__ == "__main__":
    main()
