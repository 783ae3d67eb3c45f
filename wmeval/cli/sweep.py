"""Physics engines against what is true: `wmeval sweep`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from wmeval.cli.console import Bar, many, say, show
from wmeval.cli.options import ExecutorName, Out, Overwrite, Processes, RayAddress, joined
from wmeval.errors import UserError

app = typer.Typer(help="Physics engines against what is true.")

_Strips = Annotated[
    bool, typer.Option("--strips/--no-strips", help="Draw film strips in the report.")
]


@app.callback(invoke_without_command=True)
def sweep(
    context: typer.Context,
    explain: Annotated[
        list[str] | None,
        typer.Option("--explain", help="Cell ENGINE:CONFIG:FAMILY/SUBTASK/MATERIAL; repeatable."),
    ] = None,
    budget: Annotated[
        float,
        typer.Option("--budget", min=1.0, help="Wall time of the changes tried on each cell [s]."),
    ] = 60.0,
    metric: Annotated[
        str, typer.Option("--metric", help="Number to explain; default: what departs most.")
    ] = "",
    seconds: Annotated[
        float | None,
        typer.Option(
            "--seconds", min=0.1, help="Of the record to run [s]; default: as much as shows it."
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder for explain.json; default: none.")
    ] = None,
) -> None:
    """Physics engines against what is true."""
    if not explain:
        if context.invoked_subcommand is None:
            typer.echo(context.get_help())
            raise typer.Exit(2)
        return
    from wmeval.eval.sweep import explain as explaining
    from wmeval.jobs.atomic import write_text

    made = [
        explaining.explain(cell, budget=budget, metric=metric, seconds=seconds, told=say)
        for cell in [explaining.parse_cell(text) for text in explain]
    ]
    for one in made:
        show(f"{one.cell}: {one.verdict}")
        if one.untried:
            show(f"  not tried within {budget:g} s: {', '.join(one.untried)}")
    if out is not None:
        text = json.dumps([one.model_dump(mode="json") for one in made], indent=1)
        write_text(out / "explain.json", text + "\n")


@app.command("gauge")
def sweep_gauge(
    out: Out,
    engines: Annotated[
        list[str] | None,
        typer.Option(
            "--engines",
            help="bullet,newton,... or name=LABEL,adapter=newton,python=PATH; repeatable; default: "
            "bullet.",
        ),
    ] = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(
            "--tasks",
            help="benchmarked, table-3, all, cube_toss/N, FAMILY[/SUBTASK[/MATERIAL]],...; "
            "repeatable; default: benchmarked.",
        ),
    ] = None,
    config: Annotated[
        list[str] | None,
        typer.Option(
            "--config",
            help="published-settings, tuned, or a .yaml of fitted numbers, in whose name {engine} "
            "stands for each engine's; repeatable.",
        ),
    ] = None,
    grid: Annotated[
        list[str] | None,
        typer.Option(
            "--grid",
            help="Settings to vary: dt=1/180,1/360,iterations=10,50,cell=0.02,...; repeatable.",
        ),
    ] = None,
    twice: Annotated[
        str, typer.Option("--twice", help="Cells that run again to compare: first, all or none.")
    ] = "first",
    limit: Annotated[
        float, typer.Option("--limit", min=0.1, help="Wall time a cell may take [s].")
    ] = 300.0,
    workers: Processes = 1,
    executor: ExecutorName = "local",
    ray_address: RayAddress = None,
    shard: Annotated[str, typer.Option("--shard", help="Part I/N of the cells.")] = "1/1",
    conformance: Annotated[
        bool,
        typer.Option(
            "--conformance/--no-conformance", help="Run the suite that says which numbers count."
        ),
    ] = True,
    strips: _Strips = True,
    tosses: Annotated[
        Path | None,
        typer.Option("--tosses", help="Recording for cube_toss; default: the fetched one."),
    ] = None,
    real: Annotated[
        list[Path] | None,
        typer.Option("--real", help="Recording (wmeval-mocap/1) of a task's trials; repeatable."),
    ] = None,
    drive: Annotated[
        list[str] | None,
        typer.Option(
            "--drive", help="FAMILY=FILE: a recorded motion (.csv) in place of its own; repeatable."
        ),
    ] = None,
    baseline: Annotated[
        Path | None, typer.Option("--baseline", help="Older results.json to compare with.")
    ] = None,
    fail_on_regression: Annotated[
        bool,
        typer.Option(
            "--fail-on-regression", help="Exit with 1 where a number got worse or was lost."
        ),
    ] = False,
    retry: Annotated[
        bool, typer.Option("--retry", help="Run again what crashed or timed out.")
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Run GAUGE's families on engines: results.json and report.html; what is done is kept."""
    from wmeval.eval.sweep import planning
    from wmeval.eval.sweep.cells import parse_engines
    from wmeval.eval.sweep.compare import compare
    from wmeval.eval.sweep.driven import parse_drives
    from wmeval.eval.sweep.report import write_sweep_report
    from wmeval.eval.sweep.results import read_sweep
    from wmeval.eval.sweep.shards import machine
    from wmeval.eval.sweep.sweeping import run_sweep
    from wmeval.eval.sweep.tables import terminal_tables

    if fail_on_regression and baseline is None:
        raise UserError("--fail-on-regression compares with a --baseline: name one")
    old = None if baseline is None else read_sweep(baseline)
    configs = [planning.check_config(c) for c in config or ["published-settings"]]
    told: dict[str, Any] = {
        "engines": joined(engines, "bullet"), "tasks": joined(tasks, "benchmarked"),
        "config": list(configs), "grid": joined(grid),
    }  # fmt: skip
    wanted = planning.tasks_of(told["tasks"])
    planned = planning.plan(
        parse_engines(told["engines"]), wanted, configs, planning.parse_grid(told["grid"]),
        twice=planning.parse_twice(twice), tosses="" if tosses is None else str(tosses),
        real=[str(p) for p in real or ()], drives=parse_drives(drive or (), wanted),
    )  # fmt: skip
    cells = planning.share(planned, planning.parse_shard(shard))
    kept: list[str] = []
    with Bar("cells", estimated=True) as bar:
        results = run_sweep(
            cells, out,
            plan={**told, "twice": twice, "limit_s": limit, "shard": shard,
                  "drive": list(drive or ()), "machine": machine()},
            workers=workers, executor=executor, address=ray_address, limit=limit,
            conformance=conformance, retry=retry, overwrite=overwrite,
            progress=bar.heard, kept=kept.append,
        )  # fmt: skip
    page = write_sweep_report(results, out, strips=strips)
    for table in terminal_tables(results):
        show(table)
    for said in kept:
        show(said)
    _report_sweep(results, page)
    if old is not None:
        made = compare(old, results, elsewhere={c.name for c in planned} - {c.name for c in cells})
        for change in (*made.engines, *made.changes):
            show(str(change))
        show(f"{made.compared} numbers compared, {len(made.regressions)} got worse or were lost")
        if fail_on_regression and cells and not made.compared:
            raise UserError(
                f"--fail-on-regression: {baseline} has no number that this sweep has: "
                "name its engines, tasks and settings"
            )
        if fail_on_regression and made.regressions:
            raise typer.Exit(1)
    if results.idle():
        show("nothing was measured: no engine got through a cell")
        raise typer.Exit(1)


def _report_sweep(results: Any, page: Path) -> None:
    for one in results.twice:
        show(f"twice: {one.cell}: {one.said}")
    for note in results.notes():
        show(note)
    for engine, reason, count in results.not_run():
        show(f"not run: {engine}, {many(count, 'cell')}: {reason}")
    for engine, reason, count in results.crashed():
        show(f"crash: {engine}, {'all its ' * (count > 1)}{many(count, 'cell')}: {reason}")
    counts = ", ".join(f"{n} {s.replace('_', ' ')}" for s, n in results.counts().items())
    show(f"cells: {counts or 'none'}")
    show(results.gate())
    show(f"report: {page}")


@app.command("merge")
def sweep_merge(
    out: Annotated[Path, typer.Argument(help="Folder of the joined sweep.")],
    parts: Annotated[list[Path] | None, typer.Argument(help="Folders of its shards.")] = None,
    strips: _Strips = True,
) -> None:
    """Join the shards of a sweep: their cells, results.json and report.html of all."""
    from wmeval.eval.sweep.report import write_sweep_report
    from wmeval.eval.sweep.sweeping import merge as join

    results = join(out, list(parts or []))
    _report_sweep(results, write_sweep_report(results, out, strips=strips))
