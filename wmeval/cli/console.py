"""What the command says: tables and lines on stdout, progress and errors on stderr."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import typer

from wmeval.errors import one_line

if TYPE_CHECKING:
    from rich.table import Table


def table(*columns: str, rows: Sequence[Sequence[str]], title: str | None = None) -> Table:
    """A table of text under its columns' names."""
    from rich.table import Table

    made = Table(title=title, title_justify="left", box=None, pad_edge=False, header_style="bold")
    for column in columns:
        made.add_column(column, overflow="fold")
    for row in rows:
        made.add_row(*row)
    return made


def many(count: int, what: str) -> str:
    """Such as "1 clip", "3 clips"."""
    return f"{count} {what}" + ("" if count == 1 else "s")


def show(what: Table | str) -> None:
    """Put a table or a text on stdout."""
    # Text keeps whole lines, and its brackets: a script reads them.
    if isinstance(what, str):
        typer.echo(what)
        return
    from rich.console import Console

    width = None if sys.stdout.isatty() else 160
    Console(width=width, highlight=False, markup=False, emoji=False).print(what)


def say(line: str) -> None:
    """Put one line on stderr."""
    typer.echo(one_line(line), err=True)


class Bar:
    """A progress bar on a terminal; in a pipe nothing, or lines (`heard`).

    Args:
        what: what is counted.
        rate: also show how many an hour, and how many failed.
        estimated: who counts says what time is left, in place of the bar's own guess.
    """

    def __init__(self, what: str, *, rate: bool = False, estimated: bool = False) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        self.rate = ""
        """Such as "240 clips/hour"; "" until one is made."""
        self._what, self._began, self._ended, self._failed = what, time.monotonic(), 0, 0
        self._progress = Progress(
            "{task.description}",
            BarColumn(),
            MofNCompleteColumn(),
            *(() if estimated else (TimeRemainingColumn(),)),
            *(("{task.fields[speed]}",) if rate or estimated else ()),
            console=Console(stderr=True),
            disable=not sys.stderr.isatty(),
        )
        self._task = self._progress.add_task(what, total=None, speed="")

    def at(self, count: int, total: int, said: str = "") -> None:
        """Show that ``count`` of ``total`` are done, and what else there is to say."""
        self._progress.update(self._task, completed=count, total=total)
        if said:
            self._progress.update(self._task, speed=said)

    def outcome(self, count: int, total: int, ended: Any) -> None:
        """As `at`, after one has ended (None: at the start)."""
        if ended is not None:
            self._ended += 1
            self._failed += not ended.ok
            hours = max(time.monotonic() - self._began, 1e-9) / 3600
            self.rate = f"{(self._ended - self._failed) / hours:.0f} {self._what}/hour"
            failed = f", {self._failed} failed" if self._failed else ""
            self._progress.update(self._task, speed=self.rate + failed)
        self.at(count, total)

    def heard(self, count: int, total: int, said: str, left: float | None = None) -> None:
        """As `at`, with the seconds ``left``; in a pipe a line on stderr for each that ended."""
        from wmeval.eval.sweep.estimate import clock

        rest = "" if left is None or count == total else f"about {clock(left)} left"
        self.at(count, total, rest)
        if said and not sys.stderr.isatty():
            typer.echo(one_line(f"{count}/{total} {said}", 200) + (rest and f"; {rest}"), err=True)

    def __enter__(self) -> Bar:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()
