"""Looking around: `wmeval list`, `doctor` and `install`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from wmeval.cli.console import show, table
from wmeval.errors import one_line


def list_(
    what: Annotated[
        str,
        typer.Argument(
            help="envs, plans, engines, renderers, candidates, adapters, layers, metrics, "
            "families, truths or published."
        ),
    ] = "envs",
) -> None:
    """Show what there is: environments with the dimensions they serve, plans, engines, ..."""
    from wmeval import tables

    title, columns, rows = tables.listing(what)
    show(table(*columns, rows=rows, title=title))


def doctor() -> None:
    """Say what is installed, which GL driver draws, which engines run, and what mends the rest."""
    from wmeval.doctor import diagnose, parts

    wide = max(map(len, parts()))
    well = True
    # Line by line: a probe may take a minute, and what is known already should be seen.
    for f in diagnose():
        line = f"{f.part:{wide}}  {f.status:7}  {one_line(f.detail, 200)}"
        show(line + (f"; mend with: {f.mend}" if f.mend else ""))
        sys.stdout.flush()
        well = well and not (f.needed and f.status != "ok")
    if not well:
        raise typer.Exit(1)


def install(
    names: Annotated[
        list[str] | None, typer.Argument(help="Environments; see `wmeval install --list`.")
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show what can be installed.")] = False,
    python: Annotated[
        str | None, typer.Option("--python", help="Interpreter to make them from.")
    ] = None,
    upgrade: Annotated[
        bool, typer.Option("--upgrade", help="Make them anew, with the newest fitting versions.")
    ] = False,
) -> None:
    """Put heavy engines (Blender, Newton, ...) into virtual environments of their own."""
    from wmeval.jobs import installed

    if listed or not names:
        rows = [
            (
                row.name,
                "by hand" if row.by_hand else f"{row.size_mb} MB",
                installed.version(row.name) or "-",
                row.summary,
            )
            for row in installed.ENVIRONMENTS.values()
        ]
        title = f"environments, in {installed.home()}"
        show(table("name", "on disk", "version", "what", rows=rows, title=title))
        return
    for name in dict.fromkeys(names):
        installed.environment(name)
    for name in dict.fromkeys(names):
        folder = installed.install(
            name,
            python=python,
            upgrade=upgrade,
            progress=lambda line: typer.echo(one_line(line, 160), err=True),
        )
        found = (installed.recorded(name) or {}).get("versions", {})
        versions = ", ".join(
            f"{p} {found.get(p, '?')}" for p in installed.environment(name).packages
        )
        show(f"{folder}: {versions}")
