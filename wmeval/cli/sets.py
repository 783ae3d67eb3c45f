"""What was made: `wmeval validate`, `merge`, `describe` and `export`."""

from __future__ import annotations

from typing import Annotated

import typer

from wmeval.cli.console import Bar, many, show
from wmeval.cli.options import Exr, Overwrite
from wmeval.errors import one_line


def validate(
    path: Annotated[str, typer.Argument(help="A file, folder or URL that wmeval wrote.")],
    workers: Annotated[
        int, typer.Option(min=0, max=1024, help="Processes for the samples of a set; 0: this one.")
    ] = 0,
) -> None:
    """Re-check every checksum, table and video of a file, folder or store.

    A set that is not complete is no fault: it is said how many samples are there and failed.
    """
    from wmeval.datasets.validate import examine

    found = examine(path, workers=workers)
    for line in (*found.problems, *(f"note: {note}" for note in found.notes)):
        show(one_line(line))
    for line in found.unfinished:
        show(one_line(f"not complete: {line}"))
    if found.problems:
        typer.echo(f"error: {path}: {many(len(found.problems), 'problem')}", err=True)
        raise typer.Exit(2)
    show(f"{path}: valid" + (" so far, not complete" if found.unfinished else ""))


def merge(
    out: Annotated[str, typer.Argument(help="The set to complete.")],
    parts: Annotated[list[str] | None, typer.Argument(help="Shards that worked elsewhere.")] = None,
) -> None:
    """Join the shards of a set, check that none is missing, write its manifest."""
    from wmeval.datasets.set_runs import merge_set

    show(f"{merge_set(out, parts or [])}: complete")


def describe(
    source: Annotated[str, typer.Argument(metavar="SET", help="Set of clips, complete or not.")],
    url: Annotated[str, typer.Option(help="Where it can be had, https://...")] = "",
    creator: Annotated[str, typer.Option(help="Who publishes it.")] = "",
    date: Annotated[str, typer.Option(help="Of publication, YYYY-MM-DD.")] = "",
    overwrite: Annotated[
        bool,
        typer.Option("--overwrite", help="Also replace what was changed by hand or said before."),
    ] = False,
) -> None:
    """Write a set's card (README.md, croissant.json) and its page to look at (index.html)."""
    from wmeval.datasets.card import describe_set
    from wmeval.datasets.croissant import Publication

    done = describe_set(
        source,
        publication=Publication(url=url, creator=creator, date=date),
        overwrite=overwrite,
    )
    show(f"{done.url}: {many(done.clips, done.what)} described")
    for name in done.kept:
        show(f"{name}: changed by hand, left as it is; --overwrite replaces it")


def export(
    name: Annotated[
        str,
        typer.Argument(
            metavar="FORMAT", help="bundle, webdataset, diffsynth, minari, lerobot or hf."
        ),
    ],
    source: Annotated[str, typer.Argument(metavar="SRC", help="Set of clips or of rollouts.")],
    out: Annotated[str, typer.Argument(metavar="DST", help="Folder or fsspec URL to write.")],
    split: Annotated[str | None, typer.Option(help="Only clips of this split.")] = None,
    task: Annotated[str | None, typer.Option(help="Only clips of this task.")] = None,
    exr: Exr = False,
    overwrite: Overwrite = False,
) -> None:
    """Write a set in a format that others read."""
    from wmeval.datasets import exports

    with Bar("samples") as bar:
        done = exports.export(
            name,
            source,
            out,
            split=split,
            task=task,
            overwrite=overwrite,
            exr=exr,
            progress=bar.at,
        )
    show(f"{done.url}: {many(done.samples, 'sample')} as {name}")
