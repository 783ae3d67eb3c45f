"""What a step and iterations do to GAUGE's set-ups on an engine.

    python -m benchmarks.tuning bullet slope_slider/2/wood turntable/1/wood --hz 180,360,720,1440
    python -m benchmarks.tuning physx newtons_cradle --iterations 10,50 --option contact_offset=1e-4
    python -m benchmarks.tuning newton turntable/1/wood --hz 900 --option solver=xpbd --conformance

Every set-up runs at every rate and number of iterations in place of the configuration's, all else
as configured. A line tells what it cost, how far the measured bodies' paths, or the markers of what
bends, are from those of the line before [mm], and the record's own numbers. Nothing that a set-up
should come to is shown, nor its distance from it: what is right for a task is for the sweep to
judge. With ``--conformance`` the checks of `wmeval.eval.conformance` that the set-up rests on run
under the same settings, as whether the suite's ball bounces as asked for and its cube stays on its
slope.

The rows of ``tuned`` in `wmeval.envs.gauge.solver_rows` were chosen by these lines alone: the
rate and iterations from which doubling changes little, the solver by the checks. Where doubling
changes more, the row's comment says by how much.
"""

from __future__ import annotations

import argparse
import itertools
import json
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.assets.gauge_cards import families
from wmeval.envs.gauge.configurations import settings_of
from wmeval.eval.conformance import CHECKS, run_suite
from wmeval.eval.sweep.cells import (
    ERRORS,
    Cell,
    CellResult,
    engine_config,
    fraction,
    parse_engines,
)
from wmeval.eval.sweep.course import measured_points
from wmeval.eval.sweep.gates import checks_of
from wmeval.eval.sweep.planning import tasks_of
from wmeval.eval.sweep.prepared import prepare
from wmeval.eval.sweep.running import run_cell
from wmeval.records import StateLog


def numbers_of(result: CellResult) -> str:
    """A record's own numbers: none that tells how far it is from what the set-up should do."""
    own = {
        m.metric: m.value
        for m in result.measurements
        if m.value is not None and m.metric not in ERRORS and m.truth != "real"
    }
    return ", ".join(f"{name} {value:.5g}" for name, value in own.items())


def path_of(cell: Cell, state: StateLog) -> NDArray[np.float64]:
    """Where what is measured was at every frame, (N, M, 3) [m]."""
    ready = prepare(cell)
    _, points = measured_points(ready.card, cell.subtask, cell.material, ready.built, state)
    return points


def moved(before: NDArray[np.float64] | None, path: NDArray[np.float64] | None) -> str:
    """The greatest way between two paths over the frames that both have, in words [mm]."""
    if before is None or path is None or before.shape[1:] != path.shape[1:]:
        return "-"
    n = min(len(before), len(path))
    return f"{1e3 * float(np.linalg.norm(path[:n] - before[:n], axis=2).max()):.2f}"


def conformance_of(cell: Cell) -> list[str]:
    """The suite's checks that a cell rests on, under its settings, a line each."""
    settings = settings_of(families()[cell.family], cell.engine.adapter, cell.config)
    dt = fraction(cell.grid["dt"]) if "dt" in cell.grid else settings.dt
    found = run_suite(
        cell.engine.adapter, engine_config(cell, settings.config), dt=dt,
        checks=checks_of(cell.family, cell.subtask),
    )  # fmt: skip
    out = []
    for o in found:
        value = "-" if o.effective is None else f"{o.effective:.4g}"
        unit = CHECKS[o.check].unit
        out.append(f"{o.check}: {value} of {o.asked:.4g} {unit}, {o.status} {o.reason}".rstrip())
    return out


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
    parser.add_argument("--conformance", action="store_true")
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
            path = None if kept[0] is None else path_of(cell, kept[0].state)
            way, before = moved(before, path), path
            cpu = "-" if result.cpu_s is None else f"{result.cpu_s:.2f}"
            print(
                f"{engine.label} {cell.task} {hz} Hz x {count or result.settings.get('iterations')}"
                f": {result.status} {result.reason} cpu {cpu} s, moved {way} mm, deep "
                f"{result.penetration_mm} mm; {numbers_of(result)}",
                flush=True,
            )
            if told.conformance:
                for line in conformance_of(cell):
                    print(f"    {line}", flush=True)


if __name__ == "__main__":
    main()
