"""Check a sweep: every cell that was asked for says how it ended, and what is installed ran.

    python tools/whole_sweep.py FOLDER [--engines A,B] [--tasks A,B] [--config A,B] [--twice first]

What was asked for is the command's, as the sweep keeps it (of joined shards, all of theirs), or
the options'. Ends with 1 where a cell is missing, crashed, or was not run though its engine has the
physics, where an engine that declares determinism came out otherwise the second time, and where
some engines could be installed and others not. Where none of those that live in environments of
their own could be (a machine without network), it says so and ends with 0.
"""

import argparse
import json
import sys

from wmeval.assets.gauge_cards import families
from wmeval.envs.gauge.configurations import check_engine
from wmeval.errors import UserError
from wmeval.eval.fitting.tosses import LIKE
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import Cell, parse_engines
from wmeval.eval.sweep.results import SweepResults, read_sweep
from wmeval.eval.sweep.shards import plans_of
from wmeval.eval.sweep.toss import FAMILY
from wmeval.sim.engines import WORKERS

Key = tuple[str, str, str, str, int]


def key_of(cell: Cell) -> Key:
    """Engine, configuration, task, grid point and repeat."""
    point = json.dumps(cell.grid, sort_keys=True)
    return cell.engine.label, cell.config, cell.task, point, cell.repeat


def asked_of(
    results: SweepResults, engines: str = "", tasks: str = "", config: str = "", twice: str = ""
) -> list[Cell]:
    """Cells that a sweep, or the shards that were joined, were asked for.

    By their plans, where options do not say it.

    Raises:
        UserError: neither says it.
    """
    asked: dict[Key, Cell] = {}
    for plan in plans_of(results.plan) or [{}]:
        named = config.split(",") if config else plan.get("config") or ["published-settings"]
        assert isinstance(named, list)
        cells = planning.share(
            planning.plan(
                parse_engines(engines or str(plan.get("engines", ""))),
                planning.tasks_of(tasks or str(plan.get("tasks", ""))),
                [planning.check_config(str(c)) for c in named],
                planning.parse_grid(str(plan.get("grid", ""))),
                twice=planning.parse_twice(twice or str(plan.get("twice", "first"))),
            ),
            planning.parse_shard(str(plan.get("shard", "1/1"))),
        )
        asked |= {key_of(cell): cell for cell in cells}
    return list(asked.values())


def able(cell: Cell) -> bool:
    """Whether the cell's engine has the physics, by the family's card."""
    card = families()[LIKE if cell.family == FAMILY else cell.family]
    try:
        check_engine(card, cell.engine.adapter, stepped=False)
    except UserError:
        return False
    return True


def problems(results: SweepResults, asked: list[Cell]) -> list[str]:
    """What is wrong with a sweep, a line each; every cell is printed."""
    done = {key_of(c.cell): c for c in results.cells}
    found = []
    for wanted in asked:
        cell = done.get(key_of(wanted))
        if cell is None:
            found.append(f"{wanted.name}: no cell")
            continue
        spent = f"{cell.cpu_s:.1f} CPU-s" if cell.cpu_s is not None else "-"
        print(f"{wanted.name:60} {cell.status:12} {spent:>12}  {cell.reason}")
        if cell.status != "ok" and not cell.reason:
            found.append(f"{wanted.name}: {cell.status} without a reason")
        if cell.status in ("crash", "time_out"):
            found.append(f"{wanted.name}: {cell.status}: {cell.reason}")
        if cell.status == "not_run" and able(wanted) and results.versions.get(wanted.engine.label):
            found.append(f"{wanted.name}: not run: {cell.reason}")
    found += [f"{t.cell}: {t.said}" for t in results.twice if t.declared and not t.same]
    apart = {c.engine.label for c in asked if c.engine.adapter in WORKERS}
    missing = sorted(label for label in apart if not results.versions.get(label))
    if missing:
        for label in missing:
            print(f"ENGINE {label} IS NOT INSTALLED: nothing here says that it works")
        if len(missing) < len(apart):
            found += [f"engine {label} is not installed, others are" for label in missing]
    return found


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder")
    for name in ("engines", "tasks", "config", "twice"):
        parser.add_argument(f"--{name}", default="")
    given = parser.parse_args()
    results = read_sweep(given.folder)
    wrong = problems(
        results, asked_of(results, given.engines, given.tasks, given.config, given.twice)
    )
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
