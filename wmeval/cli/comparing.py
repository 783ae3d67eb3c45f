"""Candidates against the reference: `wmeval pair`, `demo` and `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from wmeval.cli.console import say, show
from wmeval.cli.options import (
    SIZED,
    EnvId,
    MaxSteps,
    Out,
    Overwrite,
    Plan,
    Processes,
    SceneSeeds,
    Set,
    Size,
    parse_seeds,
    parse_settings,
    parse_size,
)
from wmeval.errors import UserError


def pair(
    env_id: EnvId,
    candidate: Annotated[
        list[str],
        typer.Option("--candidate", help="Who stands against the reference; repeatable."),
    ],
    plan: Plan,
    out: Out,
    scene_seeds: SceneSeeds = "0:5",
    generations: Annotated[
        int, typer.Option(min=1, max=1000, help="Draws of the candidate per case.")
    ] = 1,
    view: Annotated[
        str | None,
        typer.Option(
            "--view",
            help="Camera: static, top, ...; default: the plan's, else static, every scene's still "
            "view of the whole action.",
        ),
    ] = None,
    size: Size = "640x352",
    grid: Annotated[str, typer.Option(help="candidate or reference: whose frame times.")] = (
        "candidate"
    ),
    tolerance: Annotated[
        float | None, typer.Option(help="Strict window of the causal chain [s]; default: none.")
    ] = None,
    max_steps: MaxSteps = None,
    suite: Annotated[
        Path | None,
        typer.Option(help="Frozen suite to read references from; its seeds, view and size count."),
    ] = None,
    workers: Processes = 0,
    overwrite: Overwrite = False,
    settings: Set = None,
) -> None:
    """Compare candidates with the reference world: results.json and report.html."""
    from wmeval.eval.pair import PairConfig, run_pairs
    from wmeval.eval.report import joint_table, terminal_table

    width, height = parse_size(size)
    kwargs = parse_settings(settings, SIZED)
    if max_steps is not None:
        kwargs["max_steps"] = max_steps
    configs = [
        PairConfig(
            env_id=env_id,
            candidate=text,
            plan=plan,
            scene_seeds=parse_seeds(scene_seeds),
            generations=generations,
            view=view or "",
            width=width,
            height=height,
            grid=_grid(grid),
            tolerance=tolerance,
            env_kwargs=kwargs,
            suite=None if suite is None else str(suite),
        )
        for text in candidate
    ]
    done = run_pairs(configs, out, workers=workers, overwrite=overwrite, progress=say)
    show(joint_table(done) if len(done) > 1 else terminal_table(done[0]))
    show(f"report: {out / 'report.html'}")


def _grid(text: str) -> Literal["candidate", "reference"]:
    if text not in ("candidate", "reference"):
        raise UserError(f"--grid {text!r}: choose candidate or reference")
    return "candidate" if text == "candidate" else "reference"


def demo(
    out: Annotated[Path, typer.Option("--out", help="Folder of the report.")] = Path("runs/demo"),
    workers: Annotated[int, typer.Option(min=0, max=1024, help="Processes over scenes.")] = 2,
    overwrite: Overwrite = False,
) -> None:
    """Compare five candidates of known error with BeamDomino, and check what must be so."""
    from wmeval.eval.demo import run_demo
    from wmeval.eval.report import joint_table

    done = run_demo(out, workers=workers, overwrite=overwrite, progress=say)
    show(joint_table(done.results))
    for claim in done.claims:
        show(("yes  " if claim.holds else "NO   ") + claim.text)
    show(f"report: {done.report.resolve()}")
    if not all(claim.holds for claim in done.claims):
        raise typer.Exit(1)


def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders that `wmeval pair` left.")],
    latex: Annotated[bool, typer.Option("--latex", help="A booktabs table for a paper.")] = False,
    every: Annotated[bool, typer.Option("--every", help="All rows, not the main ones.")] = False,
) -> None:
    """Show results again: a table here, or LaTeX with "not separable" marks."""
    from wmeval.eval import report as reports
    from wmeval.eval.folders import results_files
    from wmeval.eval.results import read_results

    paths = [p for folder in folders for p in results_files(folder)]
    results = [read_results(p) for p in paths]
    if latex:
        typer.echo(reports.latex(results))
        return
    for one in results:
        show(reports.terminal_table(one, every=every))
