"""Measured motion: `wmeval data`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from wmeval.cli.console import say, show, table

app = typer.Typer(no_args_is_help=True, help="Measured motion: fetch it, look into it.")


@app.command("list")
def data_list() -> None:
    """Show what can be fetched, with its terms."""
    from wmeval.datasets.mocap import SOURCES
    from wmeval.datasets.mocap.sources import data_home

    rows = [(s.name, s.title, s.licence, s.url, s.commit[:12]) for s in SOURCES.values()]
    title = f"public motion capture, fetched to {data_home()}"
    show(table("name", "what", "licence", "from", "commit", rows=rows, title=title))


@app.command("get")
def data_get(
    name: Annotated[str, typer.Argument(help="Data set; see `wmeval data list`.")],
    out: Annotated[
        Path | None, typer.Option("--out", help="Folder; default: the user's data folder.")
    ] = None,
    url: Annotated[
        str | None, typer.Option("--url", help="A mirror of its repository; same commit.")
    ] = None,
) -> None:
    """Fetch public motion capture at its pinned commit and store it as wmeval-mocap/1."""
    from wmeval.datasets.mocap import get

    show(str(get(name, out, url=url, progress=say)))


@app.command("show")
def data_show(
    file: Annotated[str, typer.Argument(help="A wmeval-mocap/1 file or URL (.json, .h5).")],
) -> None:
    """Read a motion capture file, refuse what is wrong in it, and say what it holds."""
    from wmeval.datasets.mocap import read_mocap

    mocap = read_mocap(file)
    header = mocap.header
    frames = sorted(len(t) for t in mocap.trials)
    seconds = sorted(float(t.times[-1] - t.times[0]) for t in mocap.trials)
    what = ", ".join(
        f"{len(names)} {kind}"
        for kind in ("bodies", "markers", "signals")
        if (names := header.names(kind))
    )
    show(
        f"{header.title}: {len(mocap.trials)} trials of {what}; {frames[0]} to {frames[-1]} frames,"
        f" {seconds[0]:.3g} to {seconds[-1]:.3g} s"
    )
