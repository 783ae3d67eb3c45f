"""What exports need of a set, be it of clips or of rollouts: one episode after the other."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from wmeval.datasets import sets
from wmeval.datasets.clips import ClipSet
from wmeval.datasets.location import locate
from wmeval.datasets.rollout import Rollout
from wmeval.datasets.sets import RolloutSet
from wmeval.errors import UserError

Step = Callable[[int, int], None]
"""Told (samples done, samples)."""


@dataclass(frozen=True, eq=False)
class Episode:
    """One sample of a set.

    Attributes:
        name: of the sample.
        rollout: all of it.
        video: where its video lies; None without one.
        text: what happens in it, in words.
    """

    name: str
    rollout: Rollout
    video: str | None
    text: str


def episodes(source: ClipSet | RolloutSet) -> Iterator[Episode]:
    """Samples of a set, read one by one."""
    for i in range(len(source)):
        if isinstance(source, ClipSet):
            clip = source[i]
            yield Episode(clip.facts.sample_id, clip.rollout, source.video(i), clip.prompt)
        else:
            rollout = source[i]
            plan = rollout.metadata.get("plan")
            text = plan.get("prompt") if isinstance(plan, dict) else None
            words = str(text or f"Act in {rollout.metadata.get('env_id')}.")
            number = int(source.rows[i].get("episode", i))
            yield Episode(sets.sample_name(number), rollout, source.video(i), words)


def copy_file(url: str, path: Path) -> None:
    """Copy a file from any file system."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with locate(url).open() as source, path.open("wb") as target:
        shutil.copyfileobj(source, target)


def one_length(what: str, name: str, first: int | None, found: int) -> int:
    """The length that all samples of a table must share.

    Raises:
        UserError: this one differs.
    """
    if first is not None and first != found:
        raise UserError(
            f"{name}: {what} has {found} numbers, those before have {first}: export one "
            "environment or task at a time (--task)"
        )
    return found


def plain_state(rollout: Rollout) -> dict[str, NDArray[Any]]:
    """All arrays of a rollout by plain names, SI: ``state.position`` and so on."""
    return {path.replace("/", "."): column for path, column in rollout.columns().items()}
