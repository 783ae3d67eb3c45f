"""The one error that is the user's to mend, and how errors become one line."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pydantic import ValidationError

LINE_LENGTH = 1000
"""Most characters of an error's line."""
GIVEN = 120
"""Most characters of a wrong value in it."""


class UserError(ValueError):
    """Bad input: the message says what, where and how to mend it. The command exits with 2."""


class DiskError(UserError):
    """A disk that is full or may not be written: the fault of all that is written there."""


class NotFiniteError(UserError):
    """A world whose state is no longer finite: its step is too long for what acts in it."""


def user_error(kind: object, message: str) -> UserError:
    """An error of the user's by its class's name, as another process tells it."""
    known: dict[object, type[UserError]] = {
        c.__name__: c for c in (UserError, DiskError, NotFiniteError)
    }
    return known.get(kind, UserError)(message)


def one_line(text: object, limit: int = LINE_LENGTH) -> str:
    """A message as one line of at most ``limit`` characters."""
    line = " ".join(str(text).split())
    return line if len(line) <= limit else line[: limit - 4] + " ..."


def what_of(error: Exception) -> str:
    """What an error of a file says, without its number and the name that stands before it."""
    said = getattr(error, "strerror", None)
    return one_line(said or error)


def first_problem(error: ValidationError) -> str:
    """The first wrong field of a card in one line: its name, what was given, what is wrong."""
    first = error.errors()[0]
    name = ".".join(str(part) for part in first["loc"])
    # What lacks a field is not the field's value.
    value = "" if first["type"] == "missing" else f" = {one_line(repr(first['input']), GIVEN)}"
    given = f"{name}{value}: " if name else ""
    return one_line(given + first["msg"].removeprefix("Value error, "))
