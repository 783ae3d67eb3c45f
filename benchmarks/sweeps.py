"""What a sweep adds to its engine: a cell's whole time over the bare loop of the same work."""

from __future__ import annotations

import time
from typing import Any

from wmeval.eval.sweep.cells import Cell, parse_engines
from wmeval.eval.sweep.planning import plan, tasks_of
from wmeval.eval.sweep.running import prepare, run_cell
from wmeval.sim.protocol import Probe
from wmeval.sim.world import open_world

TASKS = ("turntable/3/metal", "newtons_cradle/1/metal")
REPEATS = 3


def _bare(cell: Cell) -> tuple[float, float]:
    """Build the world and run all its substeps at once; wall and CPU time [s]."""
    wall, cpu = time.perf_counter(), time.process_time()
    ready = prepare(cell)
    world = open_world(ready.spec)
    world.reset()
    world.advance((), (ready.frames - 1) * ready.spec.clock.substeps, Probe("last"))
    world.close()
    return time.perf_counter() - wall, time.process_time() - cpu


def _cell(cell: Cell) -> tuple[float, float]:
    """The same with what a sweep does: recorded, watched, measured."""
    wall, cpu = time.perf_counter(), time.process_time()
    run_cell(cell, "bench")
    return time.perf_counter() - wall, time.process_time() - cpu


def measure() -> dict[str, Any]:
    """Ratios of CPU and wall time on Bullet, the best of three of each, taken in turn."""
    out: dict[str, Any] = {}
    for cell in plan(parse_engines("bullet"), tasks_of(",".join(TASKS)), ["tuned"], twice="none"):
        pairs = [(_bare(cell), _cell(cell)) for _ in range(REPEATS)]
        bare = [min(p[0][k] for p in pairs) for k in (0, 1)]
        whole = [min(p[1][k] for p in pairs) for k in (0, 1)]
        out[cell.task] = {
            "bare_cpu_s": round(bare[1], 3),
            "cell_cpu_s": round(whole[1], 3),
            "cpu_ratio": round(whole[1] / bare[1], 3),
            "wall_ratio": round(whole[0] / bare[0], 3),
        }
    return out
