"""results.json of a sweep: every cell with its numbers, flat rows, what was concluded."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field, JsonValue

from wmeval.assets.gauge_published import published
from wmeval.eval.results import read_document
from wmeval.eval.sweep.cells import CellResult, EngineSpec
from wmeval.eval.sweep.unlike import unlike
from wmeval.scene import Card

FORMAT = "wmeval-sweep/1"
NOTE = (
    "errors are against closed forms within their validity, against convergence or against real "
    "data, as each row says; what GAUGE publishes stands beside them as published"
)


class Agreement(Card):
    """One cell, run twice.

    Attributes:
        cell: its name; ``engine``: label.
        declared: whether the engine declares determinism.
        same: bit-identical states.
        spread: greatest difference of a coordinate [m]: of bodies and markers at any frame, of
            what wears none at the six instants whose vertices are kept.
    """

    cell: str
    engine: str
    declared: bool
    same: bool
    spread: float

    @property
    def said(self) -> str:
        """What was found, against what is declared."""
        if self.same:
            return "bit-identical" + (
                "" if self.declared else f", though {self.engine} claims none"
            )
        apart = f"differs by up to {1e3 * self.spread:.3g} mm"
        if self.declared:
            return f"{apart}, though {self.engine} declares determinism"
        return f"{apart} ({self.engine} declares no determinism)"


class Converged(Card):
    """Convergence of one engine in its step, or in the size of cells, on one task.

    Attributes:
        engine, config, task: whose, on what; ``point``: other settings of the grid.
        over: ``dt`` or ``cell``; ``steps``: of it [s] or [m], from the coarsest.
        errors: of each against the extrapolated limit, in ``unit``; NaN is None.
        order: of the three finest; None where differences do not shrink.
        order_before: of the three before the finest, where there are four or more; None likewise.
        error: of the finest against the limit.
    """

    engine: str
    config: str
    task: str
    point: str = ""
    over: str = "dt"
    steps: tuple[float, ...]
    errors: tuple[float | None, ...]
    unit: str
    order: float | None
    order_before: float | None = None
    error: float | None


class Apart(Card):
    """How far engines are from one another on one task: root mean square, largest of all pairs."""

    config: str
    task: str
    point: str = ""
    unit: str
    pairs: dict[str, float]
    largest: float
    between: tuple[str, str]


class SweepResults(Card):
    """All of results.json.

    Attributes:
        format: name and version.
        wmeval: version of the package.
        note: how the numbers are to be read.
        plan: the command's options.
        engines: as they were named; ``versions``: by label.
        cells: what became of each.
        twice: cells that ran twice.
        converged, apart: convergence in the step, and the engines' spread.
        conformance: asked against effective parameters, rows as `eval.conformance.rows_of` with
            engine label, configuration, step and settings.
        rows: one per number, flat: for tables and data frames; made from the cells.
    """

    format: Literal["wmeval-sweep/1"] = "wmeval-sweep/1"
    wmeval: str
    note: str = NOTE
    plan: dict[str, JsonValue] = Field(default_factory=dict)
    engines: tuple[EngineSpec, ...]
    versions: dict[str, str]
    cells: tuple[CellResult, ...]
    twice: tuple[Agreement, ...] = ()
    converged: tuple[Converged, ...] = ()
    apart: tuple[Apart, ...] = ()
    conformance: tuple[dict[str, JsonValue], ...] = ()
    rows: tuple[dict[str, JsonValue], ...] = ()

    def counts(self) -> dict[str, int]:
        """Cells by status."""
        out: dict[str, int] = {}
        for cell in self.cells:
            out[cell.status] = out.get(cell.status, 0) + 1
        return out

    def not_run(self) -> list[tuple[str, str, int]]:
        """Engine, reason and number of the cells that were not run for it."""
        out: dict[tuple[str, str], int] = {}
        for r in self.cells:
            if r.status == "not_run":
                out[r.cell.engine.label, r.reason] = out.get((r.cell.engine.label, r.reason), 0) + 1
        return [(engine, reason, count) for (engine, reason), count in out.items()]

    def crashed(self) -> list[tuple[str, str, int]]:
        """Engines of which every cell crashed, the first reason, and how many cells that are."""
        of: dict[str, list[CellResult]] = {}
        for r in self.cells:
            of.setdefault(r.cell.engine.label, []).append(r)
        return [
            (engine, found[0].reason, len(found))
            for engine, found in of.items()
            if all(r.status == "crash" for r in found)
        ]

    def idle(self) -> bool:
        """Whether there are cells, and no engine got through any or was seen to diverge."""
        return bool(self.cells) and all(
            r.status in ("crash", "time_out", "not_run") for r in self.cells
        )

    def notes(self) -> list[str]:
        """How numbers of recordings were taken, where not as the card stands in space.

        And which could not be taken; what a recorded motion leads; tasks of which some were scored
        on other trials; engines of several versions, and times of several machines.
        """
        told: dict[tuple[str, str], list[str]] = {}
        for r in self.cells:
            for m in r.measurements:
                if m.truth == "real" and m.reason:
                    whose = r.cell.task if m.value is not None else r.cell.name
                    missing = told.setdefault((whose, m.reason), [])
                    missing += [m.metric] if m.value is None else []
        return self._mixed() + self._led() + unlike(self.cells) + [
            f"{whose} against real: "
            + (f"{', '.join(missing)} not measured: {reason}" if missing else reason)
            for (whose, reason), missing in told.items()
        ]  # fmt: skip

    def _led(self) -> list[str]:
        found: dict[tuple[str, str], dict[str, None]] = {}
        for r in self.cells:
            if motion_of(r):
                tasks = found.setdefault((Path(r.cell.drive).name, motion_of(r)), {})
                tasks[r.cell.task] = None
        return [
            f"led by {name} (sha256 of its numbers {motion}): {', '.join(tasks)}; closed forms and "
            "published numbers are of the card's motion"
            for (name, motion), tasks in found.items()
        ]

    def _mixed(self) -> list[str]:
        of: dict[str, dict[str, int]] = {}
        for r in self.cells:
            if r.version:
                counts = of.setdefault(r.cell.engine.label, {})
                counts[r.version] = counts.get(r.version, 0) + 1
        joined = self.plan.get("of")
        plans = [p for p in joined if isinstance(p, dict)] if isinstance(joined, list) else []
        machines = list(dict.fromkeys(str(p["machine"]) for p in plans if "machine" in p))
        return [
            f"{label} stands for {len(counts)} versions: "
            + ", ".join(f"{v} ({n} cell{'s'[: n > 1]})" for v, n in counts.items())
            for label, counts in of.items()
            if len(counts) > 1
        ] + ([f"times are of several machines: {'; '.join(machines)}"] if machines[1:] else [])

    def gate(self) -> str:
        """What the conformance suite says about the numbers, in a sentence."""
        if not self.conformance:
            return "conformance was not run: nothing says which numbers count"
        off = sum(r["status"] in ("off", "failed") for r in self.conformance)
        told = [m.counts for c in self.cells for m in c.measurements if m.counts is not None]
        return (
            f"conformance: {len(self.conformance)} checks, {off} off; "
            f"{sum(told)} of {len(told)} numbers count"
        )


def _columns() -> dict[str, str]:
    text, real, whole = "string", "float64", "int64"
    head = ("engine", "adapter", "version", "solver", "config", "task", "subtask", "material",
            "grid", "drive")  # fmt: skip
    return {
        **dict.fromkeys(head, text), "repeat": whole, "status": text, "reason": text,
        **dict.fromkeys(("hz", "wall_s", "cpu_s", "build_s"), real), "metric": text, "truth": text,
        "value": real, "unit": text, "expected": real, "ideal": text,
        **dict.fromkeys(("error", "normalised", "baseline", "spread"), real), "trials": whole,
        "n": whole, "low": real, "high": real,
        "counts": "bool_", "because": text,
        **{f"published_{name}": real for name in published().engines},
    }  # fmt: skip


COLUMNS: dict[str, str] = _columns()
"""Of the flat rows, with the kinds that a table holds them in."""


def flat_rows(cells: Sequence[CellResult]) -> tuple[dict[str, JsonValue], ...]:
    """One row a number, each with all `COLUMNS`; a cell without any has one that says why."""
    out: list[dict[str, JsonValue]] = []
    for r in cells:
        c = r.cell
        head: dict[str, JsonValue] = {
            "engine": c.engine.label, "adapter": c.engine.adapter, "version": r.version,
            "solver": r.solver, "config": c.config, "task": c.family, "subtask": c.subtask,
            "material": c.material, "grid": ",".join(f"{k}={v}" for k, v in c.grid.items()),
            "drive": _led(r), "repeat": c.repeat, "status": r.status, "reason": r.reason,
            "hz": r.hz, "wall_s": r.wall_s, "cpu_s": r.cpu_s, "build_s": r.build_s,
        }  # fmt: skip
        for m in r.measurements:
            name = "rmse" if m.metric == "rmse_published" else m.metric
            known = published().find(c.family, c.subtask, c.material, name)
            # GAUGE's engines are measured on GAUGE's trials, against these and over their spread.
            beside = m.expected is None and m.truth != "real" and not c.drive
            out.append(
                {
                    **head,
                    "metric": m.metric, "truth": m.truth, "value": m.value, "unit": m.unit,
                    "expected": m.expected, "ideal": m.ideal, "error": m.error,
                    "normalised": m.normalised, "baseline": m.baseline, "spread": m.spread,
                    "trials": m.trials, "n": m.n, "low": m.low, "high": m.high,
                    "counts": m.counts, "because": m.because,
                    "reason": r.reason or m.reason,
                    **{
                        f"published_{k}": v
                        for k, v in (known.engines if known and beside else {}).items()
                    },
                }
            )  # fmt: skip
        if not r.measurements:
            out.append({**head, "metric": "", "truth": ""})
    return tuple({name: row.get(name) for name in COLUMNS} for row in out)


def motion_of(r: CellResult) -> str:
    """Hash of the recorded motion that led a cell; "" where the card's did, or nothing ran."""
    hashes = r.facts.get("drives")
    found = list(hashes.values()) if isinstance(hashes, dict) else []
    return " ".join(str(x) for x in found) if r.cell.drive else ""


def _led(r: CellResult) -> str:
    """Name and hash of the recorded motion that led a cell; "" where the card's did."""
    return f"{Path(r.cell.drive).name} {motion_of(r)}".strip() if r.cell.drive else ""


def read_sweep(path: str | Path) -> SweepResults:
    """Read a sweep's results.json, or the one in a folder.

    Raises:
        UserError: not there, not JSON, or not of this format.
    """
    return read_document(path, SweepResults, FORMAT, made_by="wmeval sweep gauge")
