"""What a sweep adds to its engine: a cell's whole time over the bare loop of the same work.

Both take a worker that has its library loaded, as every cell of a sweep but an engine's first does;
what the first costs, import and compiled kernels, is told apart.
"""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

from wmeval.eval.sweep.cells import Cell, parse_engines
from wmeval.eval.sweep.planning import plan, tasks_of
from wmeval.eval.sweep.prepared import prepare
from wmeval.eval.sweep.running import cpu_seconds, last_world, run_cell
from wmeval.jobs import installed
from wmeval.sim.engines import WORKERS
from wmeval.sim.protocol import Probe
from wmeval.sim.world import WorkerWorld, open_world

TASKS: Mapping[str, tuple[str, tuple[str, ...]]] = {
    # engine: (configuration, tasks)
    "bullet": ("tuned", ("turntable/3/metal", "newtons_cradle/1/metal")),
    "physx": ("tuned", ("turntable/3/metal",)),
    "newton": ("published-settings", ("turntable/3/metal", "foam_stretching/1/soft")),
    "genesis": ("published-settings", ("turntable/3/metal",)),
}
"""A rigid family on every engine, and where it has the physics one that bends."""
REPEATS = 3
LONG = 20.0
"""Seconds from which a cell is taken once: what comes by chance is small beside it."""


def _used() -> float:
    """CPU time of this process and of the worker that is kept [s]."""
    kept = last_world[0] if last_world else None
    worker = cpu_seconds(kept) if isinstance(kept, WorkerWorld) else None
    return time.process_time() + (worker or 0.0)


def _bare(cell: Cell) -> None:
    """Build the world and run all its substeps at once."""
    ready = prepare(cell)
    world = open_world(ready.spec, instead_of=last_world.pop() if last_world else None)
    last_world.append(world)
    world.reset()
    world.advance((), (ready.frames - 1) * ready.spec.clock.substeps, Probe("last"))


def _cell(cell: Cell) -> float:
    """The same with what a sweep does: recorded, watched, measured; seconds of building."""
    return run_cell(cell, "bench").build_s or 0.0


def _timed(work: Any, cell: Cell) -> tuple[float, float, float]:
    """Wall and CPU time [s], and what the work returns."""
    wall, cpu = time.perf_counter(), _used()
    made = work(cell)
    return time.perf_counter() - wall, _used() - cpu, made or 0.0


def of_engine(engine: str, *, repeats: int = REPEATS) -> dict[str, Any]:
    """Ratios of CPU and wall time of an engine's tasks, the least of each, taken in turn.

    Args:
        engine: key of `TASKS`.
        repeats: how often work that is not `LONG` is taken.
    """
    config, tasks = TASKS[engine]
    out: dict[str, Any] = {}
    for cell in plan(parse_engines(engine), tasks_of(",".join(tasks)), [config], twice="none"):
        first = time.perf_counter()
        _bare(cell)
        first = time.perf_counter() - first
        times = repeats if first < LONG else 1
        pairs = [(_timed(_bare, cell), _timed(_cell, cell)) for _ in range(times)]
        bare = [min(p[0][k] for p in pairs) for k in (0, 1)]
        whole = [min(p[1][k] for p in pairs) for k in (0, 1, 2)]
        out[f"{engine} {cell.task}"] = {
            "first_s": round(first, 2),
            "times": times,
            "build_s": round(whole[2], 3),
            "bare_cpu_s": round(bare[1], 3),
            "cell_cpu_s": round(whole[1], 3),
            "cpu_ratio": round(whole[1] / bare[1], 3),
            "wall_ratio": round(whole[0] / bare[0], 3),
        }
    while last_world:
        last_world.pop().close()
    return out


def measure(engines: Sequence[str] = tuple(TASKS)) -> dict[str, Any]:
    """All engines that are installed here."""
    out: dict[str, Any] = {}
    # A sweep's processes hold little; what other benchmarks left is no garbage to go through.
    gc.collect()
    gc.freeze()
    try:
        for engine in engines:
            if engine not in WORKERS or installed.version(engine) is not None:
                out |= of_engine(engine)
    finally:
        gc.unfreeze()
    return out


if __name__ == "__main__":
    for one in sys.argv[1:] or tuple(TASKS):
        for name, numbers in measure([one]).items():
            print(name, numbers, flush=True)
