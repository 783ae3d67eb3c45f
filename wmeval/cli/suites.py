"""Frozen cases and their hand-off to a cluster: `wmeval suite` and `wmeval cases`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wmeval.cli.console import many, say, show
from wmeval.cli.options import (
    END_OF_SEEDS,
    SIZED,
    Limit,
    MaxSteps,
    Out,
    Overwrite,
    Set,
    Size,
    View,
    joined,
    parse_seeds,
    parse_settings,
    parse_size,
)
from wmeval.errors import UserError, one_line

suite_app = typer.Typer(no_args_is_help=True, help="Frozen sets of cases under one content hash.")
cases_app = typer.Typer(no_args_is_help=True, help="Hand cases to a cluster and take clips back.")


@suite_app.command("build")
def suite_build(
    out: Out,
    env: Annotated[str | None, typer.Option("--env", help="Environment.")] = None,
    plan: Annotated[
        list[str] | None, typer.Option("--plan", help="Plan cards; repeatable.")
    ] = None,
    scene_seeds: Annotated[
        str | None,
        typer.Option("--scene-seeds", help="Seeds: FIRST:END or a list; default: 0:5."),
    ] = None,
    manifest: Annotated[
        str | None,
        typer.Option(
            "--manifest",
            help="Instead of --env: eval, or a file of evaluation rows in the published form.",
        ),
    ] = None,
    limit: Limit = None,
    tasks: Annotated[
        list[str] | None,
        typer.Option(help="Only rows of these tasks, comma-separated; repeatable."),
    ] = None,
    assets: Annotated[
        Path | None, typer.Option(help="Of --manifest: folder of your own cards.")
    ] = None,
    seed: Annotated[
        int, typer.Option("--seed", min=0, max=END_OF_SEEDS - 1, help="Of our own manifest.")
    ] = 0,
    fps: Annotated[
        list[str] | None, typer.Option("--fps", help="Rates of cached frames; repeatable.")
    ] = None,
    view: View = None,
    size: Size = "640x352",
    max_steps: MaxSteps = None,
    overwrite: Overwrite = False,
    settings: Set = None,
) -> None:
    """Freeze cases as files under one content hash (wmeval-suite/1)."""
    from wmeval.generators.suites import build_suite, cases_of

    width, height = parse_size(size)
    shared: dict[str, Any] = {
        "view": view,
        "width": width,
        "height": height,
        "max_steps": max_steps,
        "env_kwargs": parse_settings(settings, SIZED),
    }
    if manifest is not None:
        from wmeval.generators.manifest_cases import cases_of_manifest

        if env is not None or plan or scene_seeds is not None:
            raise UserError("a row of --manifest says environment, plan and seed: leave those out")
        names = [name for name in joined(tasks).split(",") if name]
        cases = cases_of_manifest(
            manifest, seed=seed, limit=limit, tasks=names, assets=assets, **shared
        )
    else:
        if env is None or not plan:
            raise UserError("a suite needs --env and --plan, or --manifest")
        if limit is not None or joined(tasks) or assets is not None or seed:
            raise UserError("--limit, --tasks, --assets and --seed choose rows of a --manifest")
        cases = cases_of(env, plan, parse_seeds(scene_seeds or "0:5"), **shared)
    suite = build_suite(cases, out, fps=tuple(fps or ()), overwrite=overwrite, progress=say)
    show(f"{out}: {many(len(suite.case_ids), 'case')}, content hash {suite.content_hash}")


@cases_app.command("export")
def cases_export(
    suite: Annotated[Path, typer.Option("--suite", help="Folder of `wmeval suite build`.")],
    model_card: Annotated[Path, typer.Option("--model-card", help="The model's card (YAML).")],
    out: Out,
    generations: Annotated[
        int, typer.Option(min=1, max=1000, help="Draws wanted of every case.")
    ] = 5,
    overwrite: Overwrite = False,
) -> None:
    """Write context frames, prompts and native controls of a suite for one model."""
    from wmeval.datasets.suite import read_suite
    from wmeval.generators.cases import export_cases

    done = export_cases(
        read_suite(suite), model_card, out, generations=generations, overwrite=overwrite
    )
    show(f"{done.folder}: {many(len(done.exported), 'case')} of {generations} generations each")
    for case, reasons in done.ineligible.items():
        show(f"{case}: ineligible: {'; '.join(reasons)}")
    for (case, dimension), reason in done.skipped.items():
        show(f"{case}: {dimension} ineligible: {reason}")


@cases_app.command("check")
def cases_check(
    folder: Annotated[Path, typer.Argument(help="Folder of `wmeval cases export`.")],
) -> None:
    """Say which predictions are missing, wrong or doubtful; exit code 1 unless all are good."""
    from wmeval.generators.cases import check_cases

    found = check_cases(folder)
    for name in found.missing:
        show(f"missing: {name}")
    for name, problem in found.wrong.items():
        show(one_line(f"wrong: {name}: {problem}"))
    for name, doubt in found.doubtful.items():
        show(one_line(f"doubtful: {name}: {doubt}"))
    for name in found.extra:
        show(f"not asked for: {name}")
    show(f"{found.good} of {found.expected} clips are there and right")
    if found.good < found.expected:
        raise typer.Exit(1)
