"""The ``wmeval`` command: thin. Every command calls one documented function with a typed result.

Exit codes: 0 done, 1 done with failures (they are listed), 2 bad input (the message says how to
mend it), 130 stopped from the keyboard.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import typer

from wmeval.cli import comparing, data, fit, generate, looking, recording, sets, suites, sweep
from wmeval.cli.console import say
from wmeval.errors import UserError, first_problem

app = typer.Typer(
    rich_markup_mode=None,  # brackets of our texts are no markup
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Reference worlds, matched rollouts and fidelity metrics for world models and engines.",
)
COMMANDS: dict[str, Callable[..., None]] = {
    "list": looking.list_,
    "doctor": looking.doctor,
    "install": looking.install,
    "rollout": recording.rollout,
    "rerun": recording.rerun,
    "validate": sets.validate,
    "merge": sets.merge,
    "describe": sets.describe,
    "export": sets.export,
    "pair": comparing.pair,
    "demo": comparing.demo,
    "report": comparing.report,
}
GROUPS: dict[str, typer.Typer] = {
    "generate": generate.app,
    "suite": suites.suite_app,
    "cases": suites.cases_app,
    "data": data.app,
    "sweep": sweep.app,
    "fit": fit.app,
}
"""Both in the order that the help shows."""

for _name, _command in COMMANDS.items():
    app.command(_name)(_command)
for _name, _group in GROUPS.items():
    app.add_typer(_group, name=_name)


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command; bad input becomes one line and exit code 2."""
    code: Any = 130
    try:
        app(args=None if argv is None else list(argv), prog_name="wmeval")
    except SystemExit as stop:
        code = stop.code
    except KeyboardInterrupt:
        pass
    except (ValueError, OSError) as error:
        said = _said(error)
        if said is None:
            raise
        say(f"error: {said}")
        code = 2
    if code == 130:
        say("stopped; run the same command again to go on")
    sys.exit(code)


def _said(error: ValueError | OSError) -> str | None:
    """What the user is told; None for a fault of the program."""
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename is not None else ""
        return f"{where}{error.strerror or error}"
    from pydantic import ValidationError

    return first_problem(error) if isinstance(error, ValidationError) else None
