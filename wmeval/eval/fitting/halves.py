"""Which half of a recording is fitted on; the other may be scored."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import numpy as np

from wmeval.errors import UserError, what_of

T = TypeVar("T")
HALVES = ("even", "odd")


@dataclass(frozen=True)
class Half:
    """A stated half.

    Attributes:
        said: in words.
        names: of its trials, in the recording's order.
    """

    said: str
    names: tuple[str, ...]


def half_of(names: Sequence[str], *, half: str = "", split: str = "") -> Half:
    """The trials that a fit may see.

    Args:
        names: of all trials, in order.
        half: "even" or "odd", by their place from 0.
        split: instead, a file with one name a line, or a seed by which half of them are drawn.

    Raises:
        UserError: neither or both are given, an unknown name, or nothing is left to score.
    """
    if bool(half) == bool(split):
        raise UserError(
            "--half, --split: say which half is fitted on: --half even, --half odd, or --split "
            "with a file of names or a seed"
        )
    if half:
        if half not in HALVES:
            raise UserError(f"--half {half}: choose even or odd")
        found = tuple(names[places_of(half)])
        said = f"{half} places, from 0"
    elif split.isdigit():
        random = np.random.Generator(np.random.PCG64(int(split)))
        drawn = set(random.permutation(len(names))[: len(names) // 2].tolist())
        found = tuple(n for k, n in enumerate(names) if k in drawn)
        said = f"half of them, drawn with seed {split}"
    else:
        found = _listed(Path(split), names)
        said = f"named in {Path(split).name}"
    if not 0 < len(found) < len(names):
        raise UserError(
            f"{len(found)} of {len(names)} trials to fit on: leave some of both kinds, to fit on "
            "and to score"
        )
    return Half(said, found)


def _listed(path: Path, names: Sequence[str]) -> tuple[str, ...]:
    try:
        wanted = [x.strip() for x in path.read_text("utf-8").splitlines() if x.strip()]
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"--split {path}: no seed and no readable file: {what_of(error)}"
        ) from error
    unknown = next((n for n in wanted if n not in names), None)
    if unknown is not None:
        raise UserError(f"--split {path}: the recording has no trial {unknown!r}")
    return tuple(n for n in names if n in set(wanted))


def places_of(half: str) -> slice:
    """The places of a half, "even" or "odd", from 0; all for ""."""
    return slice(HALVES.index(half), None, 2) if half else slice(None)


def spaced(items: Sequence[T], count: int) -> tuple[T, ...]:
    """Evenly spaced ones; all for a count of 0 or beyond."""
    if not 0 < count < len(items):
        return tuple(items)
    rows = {round(k) for k in np.linspace(0, len(items) - 1, count)}
    return tuple(items[k] for k in sorted(rows))
