"""Engines' numbers from real data: `wmeval fit`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wmeval.cli.console import Bar, show
from wmeval.errors import UserError

app = typer.Typer(no_args_is_help=True, help="Engines' numbers from one half of real data.")


@app.command("gauge")
def fit_gauge(
    out: Annotated[Path, typer.Option("--out", help="The .yaml file to write.")],
    family: Annotated[str, typer.Option("--family", help="cube_toss or pendulum.")] = "cube_toss",
    engine: Annotated[
        str, typer.Option("--engine", help="Whose numbers are looked for.")
    ] = "bullet",
    data: Annotated[
        Path | None,
        typer.Option("--data", help="Recording, or the folder it lies in; default: the fetched."),
    ] = None,
    half: Annotated[
        str, typer.Option("--half", help="Fit on the trials in even or in odd places.")
    ] = "",
    split: Annotated[
        str, typer.Option("--split", help="Instead: a file of trials' names, or a seed.")
    ] = "",
    base: Annotated[
        str, typer.Option("--base", help="Solver settings to keep: tuned or published-settings.")
    ] = "tuned",
    trials: Annotated[
        int, typer.Option("--trials", min=0, help="Of that half, evenly spaced; 0: all.")
    ] = 0,
    evaluations: Annotated[
        int,
        typer.Option(
            "--evaluations",
            min=20,
            max=100_000,
            help="Of the loss: 20 or more of 2 numbers, 30 of 3.",
        ),
    ] = 60,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Of the search.")] = 0,
) -> None:
    """Identify an engine's parameters on a half of real data, for `sweep --config` to score."""
    from wmeval.eval.fitting.fit import check_base, fit, write_fitted
    from wmeval.eval.sweep.cells import parse_engines

    (one, *more) = parse_engines(engine)
    if more:
        raise UserError(f"--engine {engine}: numbers are one engine's: fit one after another")
    with Bar("evaluations") as bar:
        found = fit(
            family, data, one.adapter, half=half, split=split, base=check_base(base),
            trials=trials, evaluations=evaluations, seed=seed, python=one.python,
            told=bar.heard,
        )  # fmt: skip
    write_fitted(found, out)
    of = found.identified
    assert of is not None
    for name, value in of.parameters.items():
        low, high = of.bounds[name]
        at = " (at its bound)" if value in (low, high) else ""
        show(f"{name}: {value:g} (from {of.start[name]:g}, within {low:g} to {high:g}){at}")
    show(f"loss: {of.loss_before:.4g} to {of.loss_after:.4g}, {of.evaluations} evaluations")
    if not of.improved:
        show(
            "nothing better than the start was found: the numbers are those that it began with; "
            f"give more than --evaluations {evaluations}, or fit another half"
        )
    show(f"fitted on {found.fitted_on}")
    for name, value in of.other_half.items():
        show(f"on the other half: {value:.4g}, {name}")
    for remark in of.remarks:
        show(f"look at this: {remark}")
    if not of.other_half:
        show(f"{out}: give it to sweep gauge --config; the other half is scored")
