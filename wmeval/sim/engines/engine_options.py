"""What engines of installed environments are, and the options that they are given."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import JsonValue

from wmeval.errors import UserError
from wmeval.jobs import installed
from wmeval.sim.protocol import EngineConfig, EngineInfo

Options = Mapping[str, tuple[float, float, float]]
"""Option to default, least, greatest."""
PYTHON = "python"
"""Option of every engine of an environment of its own: the interpreter that runs it."""


def with_python(config: EngineConfig, python: str) -> EngineConfig:
    """A configuration for the interpreter that a caller named; "": as it is."""
    if not python:
        return config
    return config.model_copy(update={"options": {**config.options, PYTHON: python}})


def without_python(options: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Options that say how an engine solves: all but where its interpreter lies."""
    return {key: value for key, value in options.items() if key != PYTHON}


def info_of(
    name: str, kinds: tuple[str, ...], *, deterministic: bool, impulses: bool
) -> EngineInfo:
    """What an engine of an installed environment of the same name is."""
    version = installed.version(name)
    return EngineInfo(
        name=name,
        version="not installed" if version is None else version,
        body_kinds=kinds,
        deterministic=deterministic,
        clock="fixed",
        contact_impulses=impulses,
        mend="" if version is not None else installed.mend(name),
    )


def options_of(
    engine: str,
    known: Options,
    config: EngineConfig,
    choices: Mapping[str, tuple[str, ...]] | None = None,
    *,
    iterations: int | None = None,
) -> tuple[dict[str, float], dict[str, str]]:
    """An engine's options: numbers with their defaults, and words, of which the first is default.

    ``python``, the interpreter that runs the engine, is for `wmeval.sim.world.open_world`.

    Args:
        engine: its name.
        known: its numbers.
        config: what it is given.
        choices: its words.
        iterations: the most that its solver takes; None: as many as any `EngineConfig` may have.

    Raises:
        UserError: an unknown option, a value that is none, or more iterations than it takes.
    """
    if iterations is not None and config.iterations > iterations:
        raise UserError(f"{engine} iterations = {config.iterations}: give 1 to {iterations}")
    numbers = {key: default for key, (default, _, _) in known.items()}
    words = {key: row[0] for key, row in (choices or {}).items()}
    for key, value in config.options.items():
        if key == PYTHON:
            if not isinstance(value, str):
                raise UserError(f"{engine} option python = {value!r}: name an interpreter")
            continue
        if key in words:
            words[key] = _choice(engine, key, value, (choices or {})[key])
        elif key in known:
            numbers[key] = _number(engine, key, value, known[key])
        else:
            names = ", ".join(sorted([*known, *words, PYTHON]))
            raise UserError(f"{engine} has no option {key!r}; known: {names}")
    return numbers, words


def _choice(engine: str, key: str, value: JsonValue, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise UserError(f"{engine} option {key} = {value!r}: choose from {', '.join(choices)}")
    return str(value)


def _number(engine: str, key: str, value: JsonValue, row: tuple[float, float, float]) -> float:
    _, least, greatest = row
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise UserError(f"{engine} option {key} = {value!r}: give a number")
    if not least <= value <= greatest:
        raise UserError(f"{engine} option {key} = {value}: give {least:g} to {greatest:g}")
    return float(value)
