"""Which rate and how many iterations a rigid family of GAUGE needs on an engine.

    python -m benchmarks.tuning bullet slope_slider/2/wood turntable/1/wood --hz 180,360,720,1440
    python -m benchmarks.tuning physx newtons_cradle --iterations 10,50 --option contact_offset=1e-4

Every set-up runs at every rate and number of iterations in place of the configuration's, all else
as configured. A line tells what it cost, the numbers that closed forms predict beside their values,
and how far the measured bodies' paths are from those of the line before [mm]. The rows of
``tuned`` in `wmeval.envs.gauge.configurations` were chosen by these lines: the cheapest setting
whose number holds, or no longer changes by 2 %.
"""

from __future__ import annotations

import argparse
import itertools
import json
from typing import Any

import numpy as np
from pydantic import JsonValue

from wmeval.assets.gauge_cards import families
from wmeval.eval.sweep.cells import Cell, parse_engines
from wmeval.eval.sweep.planning import tasks_of
from wmeval.eval.sweep.running import run_cell


def main() -> None:
    """Print the lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("engine")
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--config", default="tuned")
    parser.add_argument("--hz", default="360,720,1440")
    parser.add_argument("--iterations", default="")
    parser.add_argument("--option", action="append", default=[])
    parser.add_argument("--seconds", type=float)
    told = parser.parse_args()
    options: dict[str, JsonValue] = {}
    for pair in told.option:
        key, _, value = pair.partition("=")
        try:
            options[key] = json.loads(value)
        except ValueError:
            options[key] = value
    (engine,) = parse_engines(told.engine)
    counts: list[int | None] = [int(n) for n in told.iterations.split(",") if n]
    counts = counts or [None]
    for task in tasks_of(",".join(told.tasks)):
        before = None
        for hz, count in itertools.product(told.hz.split(","), counts):
            grid: dict[str, JsonValue] = {"dt": f"1/{hz}", **options}
            if count is not None:
                grid["iterations"] = count
            cell = Cell(engine=engine, config=told.config, family=task.family,
                        subtask=task.subtask, material=task.material, grid=grid)  # fmt: skip
            kept: list[Any] = []
            result = run_cell(
                cell, "tuning", seconds=told.seconds, keep=lambda *a, k=kept: k.append(a[1])
            )
            path = None
            if kept[0] is not None:
                state = kept[0].state
                names = families()[task.family].measured
                rows = [state.body(n) for n in names if n in state.bodies]
                path = state.position[:, rows]
            moved = "-"
            if path is not None and before is not None and path.shape == before.shape:
                moved = f"{1e3 * float(np.linalg.norm(path - before, axis=2).max()):.2f}"
            before = path
            numbers = ", ".join(
                f"{m.metric} {m.value:.5g}" + (f" ({m.expected:.5g})" if m.expected else "")
                for m in result.measurements if m.value is not None
            )  # fmt: skip
            cpu = "-" if result.cpu_s is None else f"{result.cpu_s:.2f}"
            print(
                f"{engine.label} {cell.task} {hz} Hz x {count or result.settings.get('iterations')}"
                f": {result.status} {result.reason} cpu {cpu} s, moved {moved} mm, deep "
                f"{result.penetration_mm} mm; {numbers}",
                flush=True,
            )


if __name__ == "__main__":
    main()
