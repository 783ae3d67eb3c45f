"""What exports need of a set, be it of clips or of rollouts: one episode after the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from wmeval.datasets import sets
from wmeval.datasets.clips import ClipSet
from wmeval.datasets.document import damaged
from wmeval.datasets.location import locate
from wmeval.datasets.rollout import Rollout
from wmeval.datasets.sets import RolloutSet
from wmeval.errors import UserError

Step = Callable[[int, int], None]
"""Told (samples done, samples)."""


@dataclass(frozen=True)
class Film:
    """The video of a sample.

    Attributes:
        url: where it lies.
        entry: its length and sha256, as the row of the sample states them.
    """

    url: str
    entry: Sequence[int | str]

    def content(self) -> bytes:
        """The file.

        Raises:
            UserError: it is missing or damaged.
        """
        with locate(self.url).open() as stream:
            content = stream.read()
        if sets.object_entry(content) != list(self.entry):
            raise damaged(self.url, "its checksum does not match")
        return content

    def copy(self, path: Path) -> None:
        """Copy the file, from any file system; raises as `content` does."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.content())


def film_of(source: ClipSet | RolloutSet, index: int) -> Film | None:
    """The video of a sample; None without one."""
    url, row = source.video(index), source.rows[index]
    return None if url is None else Film(url, row["objects"][str(row["video"])])


@dataclass(frozen=True, eq=False)
class Episode:
    """One sample of a set.

    Attributes:
        name: of the sample.
        rollout: all of it.
        film: its video; None without one.
        text: what happens in it, in words.
    """

    name: str
    rollout: Rollout
    film: Film | None
    text: str


def episodes(source: ClipSet | RolloutSet) -> Iterator[Episode]:
    """Samples of a set, read one by one."""
    for i in range(len(source)):
        if isinstance(source, ClipSet):
            clip = source[i]
            yield Episode(clip.facts.sample_id, clip.rollout, film_of(source, i), clip.prompt)
        else:
            rollout = source[i]
            plan = rollout.metadata.get("plan")
            text = plan.get("prompt") if isinstance(plan, dict) else None
            words = str(text or f"Act in {rollout.metadata.get('env_id')}.")
            number = int(source.rows[i].get("episode", i))
            yield Episode(sets.sample_name(number), rollout, film_of(source, i), words)


def film_of_clip(clips: ClipSet, index: int) -> Film:
    """The video of a clip: each has one."""
    film = film_of(clips, index)
    assert film is not None
    return film


def refuse_twins(clips: ClipSet, *, by_split: bool) -> None:
    """Let only clips of different names pass, since their files are named after them.

    Args:
        clips: the set.
        by_split: those of one split lie in one place, else all do.

    Raises:
        UserError: two have the same name.
    """
    seen: set[tuple[str, str]] = set()
    for i in range(len(clips)):
        facts = clips.facts(i)
        key = (facts.split if by_split else "", facts.sample_id)
        if key in seen:
            mend = f"all are of split {facts.split!r}" if by_split else "choose one --split"
            raise UserError(f"{clips.url}: two clips are named {facts.sample_id!r}: {mend}")
        seen.add(key)


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
