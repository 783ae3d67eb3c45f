"""Check a sweep: every planned cell says how it ended, and what is installed ran.

    python tools/whole_sweep.py FOLDER

Ends with 1 where a cell is missing, crashed, or was not run though its engine is installed and has
the physics.
"""

import sys
from itertools import product

from wmeval.assets.gauge_cards import families
from wmeval.envs.gauge.configurations import engines_of
from wmeval.eval.sweep.results import read_sweep


def problems(folder: str) -> list[str]:
    """What is wrong with a sweep, a line each; every cell is printed."""
    results = read_sweep(folder)
    cells = {(c.cell.engine.label, c.cell.task): c for c in results.cells}
    labels = [e.label for e in results.engines]
    found = []
    for label, task in product(labels, dict.fromkeys(c.cell.task for c in results.cells)):
        cell = cells.get((label, task))
        if cell is None:
            found.append(f"{label} {task}: no cell")
            continue
        spent = f"{cell.cpu_s:.1f} CPU-s" if cell.cpu_s is not None else "-"
        print(f"{label:8} {task:32} {cell.status:12} {spent:>12}  {cell.reason}")
        able = cell.cell.engine.adapter in engines_of(families()[cell.cell.family])
        if cell.status != "ok" and not cell.reason:
            found.append(f"{label} {task}: {cell.status} without a reason")
        if cell.status in ("crash", "time_out"):
            found.append(f"{label} {task}: {cell.status}: {cell.reason}")
        if cell.status == "not_run" and able and results.versions.get(label):
            found.append(f"{label} {task}: not run: {cell.reason}")
    return found


if __name__ == "__main__":
    wrong = problems(sys.argv[1])
    print(*wrong, sep="\n")
    sys.exit(1 if wrong else 0)
