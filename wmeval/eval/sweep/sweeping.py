"""The sweep itself: which cells are still to be run, who runs them, what they add up to."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

import wmeval
from wmeval.assets.gauge_cards import families
from wmeval.datasets.checksums import sha256_of
from wmeval.envs.gauge.configurations import NAMES, file_of, settings_of
from wmeval.errors import DiskError, UserError, one_line
from wmeval.eval.results import dumps
from wmeval.eval.sweep import conclude
from wmeval.eval.sweep.cells import Cell, CellResult, version_of
from wmeval.eval.sweep.compare import with_ranges
from wmeval.eval.sweep.estimate import Estimate
from wmeval.eval.sweep.folder import (
    SWEEP_FOLDER,
    arrays_of,
    seal,
    seal_suite,
    sealed,
    sealed_suite,
    take_over,
)
from wmeval.eval.sweep.gates import Suite, conformance_rows, failed_rows, gated, suites_of
from wmeval.eval.sweep.results import COLUMNS, SweepResults, flat_rows
from wmeval.eval.sweep.running import last_world, run_cell
from wmeval.eval.sweep.shards import joined_in, read_shard, whole_shards
from wmeval.eval.sweep.toss import FAMILY, data_file, toss_settings
from wmeval.jobs.atomic import atomic_file, claim, write_text
from wmeval.jobs.executors import Outcome, check_executor, make_executor
from wmeval.jobs.ledger import checksum

BUILD_LIMIT = 900.0
"""Time beside a cell's own limit that its process may take [s]: kernels may have to be compiled."""
AGAIN = ("crash", "time_out")
"""What ``retry`` runs once more."""


_version = cache(version_of)


def stamp(cell: Cell, hashed: Callable[[Path], str] = sha256_of) -> str:
    """What a cell's numbers depend on beside the cell: versions, its family's card, settings.

    Args:
        cell: which.
        hashed: tells a file's content.
    """
    config = cell.config
    if config not in NAMES:
        config = Path(file_of(config, cell.engine.adapter)).read_text("utf-8")
    if cell.family == FAMILY:
        return _toss_stamp(cell, config, hashed)
    card = families()[cell.family]
    try:
        chosen = settings_of(card, cell.engine.adapter, cell.config)
        settings = [chosen.hz, chosen.config.model_dump(mode="json")]
    except UserError:
        settings = []
    return checksum(
        [wmeval.__version__, _version(cell.engine), card.model_dump(mode="json"), config, settings]
        + [hashed(Path(path)) for path in (cell.data, cell.drive) if path]
    )


def _toss_stamp(cell: Cell, config: str, hashed: Callable[[Path], str]) -> str:
    try:
        chosen = toss_settings(cell)
        path = data_file(cell)
    except UserError as error:
        return checksum([wmeval.__version__, _version(cell.engine), config, str(error)])
    data = hashed(path) if path.is_file() else str(path)
    settings = [chosen.hz, chosen.config.model_dump(mode="json")]
    return checksum([wmeval.__version__, _version(cell.engine), config, settings, data])


def _told(out: Path, key: str, retry: bool) -> bool:
    """Whether a suite is sealed, and no failed check of it shall be run again."""
    rows = sealed_suite(out, key)
    return rows is not None and not (retry and any(r["status"] == "failed" for r in rows))


def _kept(out: Path, keys: Sequence[str], total: int) -> str:
    """How many cells an earlier command has run here, and when.

    A library that was built anew under the same version looks the same: none would be run again.
    """
    when = sorted((out / "cells" / f"{key}.json").stat().st_mtime for key in keys)
    first, last = (time.strftime("%Y-%m-%d %H:%M", time.localtime(t)) for t in (when[0], when[-1]))
    return (
        f"{len(keys)} of {total} cell{'s' if total > 1 else ''} kept from an earlier run "
        f"({first}{f' to {last}' if last != first else ''}): --overwrite runs all again"
    )


def _key(suite: Suite) -> str:
    return suite.key(f"{wmeval.__version__} {_version(suite.engine)}")


Unit = tuple[Literal["cell", "suite"], Any, str]


def run_sweep(
    cells: Sequence[Cell],
    out: str | Path,
    *,
    plan: dict[str, JsonValue] | None = None,
    workers: int = 1,
    executor: str = "local",
    address: str | None = None,
    limit: float | None = None,
    conformance: bool = True,
    retry: bool = False,
    overwrite: bool = False,
    progress: Callable[[int, int, str, float | None], None] | None = None,
    kept: Callable[[str], None] | None = None,
) -> SweepResults:
    """Run what is not sealed yet, and write results.json (and .parquet where pyarrow is).

    Args:
        cells: of `planning.plan`.
        out: folder; what is finished there is kept.
        plan: the command's options, for results.json.
        workers: processes; 0: this one.
        executor: row of `wmeval.jobs.executors.EXECUTORS`.
        address: of a cluster, for "ray".
        limit: wall time that a cell's stepping may take [s].
        conformance: also run the suite of every engine and configuration.
        retry: also run again what crashed or timed out, and suites of which a check failed; what
            was not run always is.
        overwrite: begin anew.
        progress: hears of how many of all are done, what ended last, and how many seconds the
            rest may take; None: nothing says yet, of some kind of body or at all.
        kept: hears in a line of cells that are not run again, where there are any.

    Raises:
        UserError: the folder holds something else, another run writes there, or the disk is full.
    """
    out = Path(out)
    check_executor(executor, address)
    with claim(out):
        SWEEP_FOLDER.refuse_others(out)
        if overwrite and out.exists():
            shutil.rmtree(out)
        # The same recording is of every point of a grid.
        hashed = cache(sha256_of)
        keys = {c.name: c.key(stamp(c, hashed)) for c in cells}
        if len(keys) != len(cells):
            raise UserError("a cell stands in the plan twice: name every engine and task once")
        done: dict[str, CellResult] = {}
        units: list[Unit] = []
        for cell in cells:
            old = sealed(out, keys[cell.name])
            # What was not installed may be by now.
            if old is not None and old.status != "not_run" and not (retry and old.status in AGAIN):
                done[cell.name] = old
            else:
                units.append(("cell", cell, keys[cell.name]))
        if done and kept is not None:
            kept(_kept(out, [r.key for r in done.values()], len(cells)))
        suites = suites_of(cells) if conformance else []
        units += [("suite", s, _key(s)) for s in suites if not _told(out, _key(s), retry)]
        # Engine by engine, its suites first: a worker keeps its engine.
        labels = list(dict.fromkeys(c.engine.label for c in cells))
        units.sort(key=lambda u: (labels.index(u[1].engine.label), u[0] != "suite"))
        total, ended = len(cells) + len(suites), len(cells) + len(suites) - len(units)
        if progress is not None:
            progress(ended, total, "", None)

        estimate = Estimate([u[1] for u in units], workers)

        def heard(number: int, outcome: Outcome[CellResult | None]) -> None:
            nonlocal ended
            kind, what, key = units[number]
            if isinstance(outcome.fault, DiskError):  # so would all that are left
                raise outcome.fault
            ended += 1
            estimate.ended(number, outcome.seconds, _beside(outcome))
            said = ""
            if kind == "cell":
                result = outcome.value or _lost(what, key, outcome)
                if outcome.value is None:
                    seal(out, result)
                done[what.name] = result
                why = f" ({result.reason})" if result.reason else ""
                said = f"{what.name}: {result.status}{why}, {outcome.seconds:.1f} s"
            else:
                if outcome.error:
                    seal_suite(out, key, failed_rows(what, outcome.error, _version(what.engine)))
                said = f"{what.engine.label}:{what.config}: conformance, {_checks(what)}"
            if progress is not None:
                progress(ended, total, said, estimate.left())

        with make_executor(
            executor, workers=workers, timeout=None if limit is None else limit + BUILD_LIMIT,
            address=address, folder=out,
        ) as pool:  # fmt: skip
            _write_plan(out, plan or {})
            pool.map(
                partial(run_unit, out=str(out.absolute()), limit=limit), units, on_outcome=heard
            )
        rows = [row for s in suites for row in sealed_suite(out, _key(s)) or ()]
        made = gated(with_ranges([done[c.name] for c in cells]), rows)
        results = gather(out, made, rows, plan or {})
        write_results(out, results)
    return results


def _beside(outcome: Outcome[CellResult | None]) -> float | None:
    """What a cell took beside its stepping [s]: building, compiling, measuring.

    None of a suite, or of a cell whose process did not come back.
    """
    if outcome.value is None:
        return None
    return max(0.0, outcome.seconds - (outcome.value.wall_s or 0.0))


def _checks(suite: Suite) -> str:
    return suite.checks[0] if len(suite.checks) == 1 else f"{len(suite.checks)} checks"


def run_unit(unit: Unit, *, out: str, limit: float | None) -> CellResult | None:
    """What a worker does with one unit."""
    kind, what, key = unit
    folder = Path(out)
    if kind == "suite":
        seal_suite(folder, key, conformance_rows(what, last_world, limit))
        return None
    return run_cell(what, key, limit=limit, keep=partial(seal, folder))


def _lost(cell: Cell, key: str, outcome: Outcome[Any]) -> CellResult:
    """A cell whose process did not come back."""
    error = one_line(outcome.error or "its process did not come back")
    slow = error.startswith("no result within")
    return CellResult(
        cell=cell, key=key, status="time_out" if slow else "crash",
        reason=("time-out: " if slow else "crash: ") + error,
        version=_version(cell.engine), wall_s=outcome.seconds,
    )  # fmt: skip


def gather(
    out: Path, cells: Sequence[CellResult], rows: Sequence[dict[str, JsonValue]],
    plan: dict[str, JsonValue],
) -> SweepResults:  # fmt: skip
    """What cells say together.

    Args:
        out: where their states are.
        cells: each number of them told whether it counts.
        rows: of the suites that told it.
        plan: the command's options.
    """
    arrays = cache(partial(arrays_of, out))
    engines = {c.cell.engine.label: c.cell.engine for c in cells}
    versions: dict[str, dict[str, None]] = {}
    for c in cells:
        if c.version:
            versions.setdefault(c.cell.engine.label, {})[c.version] = None
    return SweepResults(
        wmeval=wmeval.__version__,
        plan=plan,
        engines=tuple(engines.values()),
        versions={label: " and ".join(found) for label, found in versions.items()},
        cells=tuple(cells),
        twice=conclude.agreements(cells, arrays),
        converged=conclude.convergence(cells, arrays),
        apart=conclude.spreads(cells, arrays),
        conformance=tuple(rows),
        rows=flat_rows(cells),
    )


def write_results(out: Path, results: SweepResults) -> None:
    """results.parquet where pyarrow is installed, and results.json, which says that all is done."""
    from wmeval.datasets.exports.tables import arrow, nullable, write_parquet

    try:
        pyarrow = arrow("results.parquet")
    except UserError:
        (out / "results.parquet").unlink(missing_ok=True)  # of other rows
    else:
        schema = pyarrow.schema([(k, getattr(pyarrow, kind)()) for k, kind in COLUMNS.items()])
        with atomic_file(out / "results.parquet") as temporary:
            table = pyarrow.Table.from_pylist(list(results.rows), schema=schema)
            write_parquet(temporary, nullable(table))
    write_text(out / "results.json", dumps(results))


def merge(out: str | Path, parts: Sequence[str | Path]) -> SweepResults:
    """Join shards: their cells, and what all of them say together.

    Whether a number counts stays as the machine said that ran it, whatever is installed here. Where
    two have the same cell the later one is taken, but for one that was not run.

    Raises:
        UserError: a part holds no sweep or did not end, a shard is missing, or no cell is there.
    """
    out = Path(out)
    with claim(out):
        SWEEP_FOLDER.refuse_others(out)
        folders = [Path(p) for p in parts]
        here = joined_in(out)
        found = [read_shard(folder) for folder in folders]
        plans = whole_shards(out, [*here, *found])
        cells: dict[str, CellResult] = {}
        rows: dict[tuple[JsonValue, ...], dict[str, JsonValue]] = {}
        for one in (*here, *found):
            for r in one.cells:
                if r.status != "not_run" or r.cell.name not in cells:
                    cells[r.cell.name] = r
            rows |= {tuple(row[k] for k in _CHECKED): row for row in one.conformance}
        if not cells:
            raise UserError(f"{out}: holds no cells of a sweep")
        for folder, one in zip(folders, found, strict=True):
            take_over(out, folder, [r.key for r in one.cells])
        order = {name: k for k, name in enumerate(families())}
        results = sorted(
            cells.values(),
            key=lambda r: (
                r.cell.engine.label, r.cell.config, order.get(r.cell.family, 99), r.cell.name
            ),
        )  # fmt: skip
        plan: dict[str, JsonValue] = {"merged": len(folders), "of": plans}
        _write_plan(out, plan)
        made = gather(out, results, list(rows.values()), plan)
        write_results(out, made)
    return made


_CHECKED = ("label", "config", "dt", "settings", "version", "check")
"""What tells a row of conformance from others."""


def _write_plan(out: Path, plan: dict[str, JsonValue]) -> None:
    write_text(
        out / "sweep.json", json.dumps({"format": "wmeval-sweep/1", "plan": plan}, indent=1) + "\n"
    )
