"""Sets of rollouts: a folder or URL whose samples exist only once their row is written.

set.json             what the set is (format, job)
episodes/000000.h5   samples (or 000000.zarr/), 000000.mp4 beside them
rows/000000.json     one row per finished sample: seed, length, checksums; written after it
manifest.json        all rows; written last, when the set is complete
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wmeval.datasets import zarr_store
from wmeval.datasets.document import damaged
from wmeval.datasets.location import Location, locate
from wmeval.datasets.rollout import Rollout, read
from wmeval.errors import UserError
from wmeval.jobs.atomic import FolderKind
from wmeval.jobs.ledger import canonical, checksum

FORMAT = "wmeval-rollouts/1"
SET, MANIFEST, ROWS, EPISODES = "set.json", "manifest.json", "rows", "episodes"
SET_FOLDER = FolderKind(
    files=(
        rf"({SET}|{MANIFEST}|{ROWS}/\d+\.json)"
        rf"|{EPISODES}/\d+(\.h5|\.mp4|\.zarr/({zarr_store.STORE.files}))"
    ),
    marks=dict.fromkeys((SET, MANIFEST, rf"{ROWS}/.*"), f'"{FORMAT}"'),
)
_LIMIT = 1 << 30
_MEND = "run its `wmeval generate rollouts` again"


def sealed(value: Mapping[str, Any]) -> bytes:
    """JSON that carries its own checksum."""
    return (canonical({**value, "sha256": checksum(value)}) + "\n").encode()


def unsealed(place: Location, key: str) -> dict[str, Any] | None:
    """Read what `sealed` made; None when there is no such object.

    Raises:
        UserError: it is damaged or of another format.
    """
    content = place.get(key, limit=_LIMIT)
    if content is None:
        return None
    where = f"{place.url}/{key}"
    try:
        value = json.loads(content)
        found = value.pop("sha256")
        whole = sealed(value) == content and checksum(value) == found
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise damaged(where, "it cannot be read") from error
    if not whole:
        raise damaged(where, "its checksum does not match")
    if value.get("format") != FORMAT:
        raise UserError(f"{where}: format is {value.get('format')!r}, not {FORMAT!r}.")
    return dict(value)


def plain(value: Any) -> Any:
    """A value as it comes back from JSON."""
    return json.loads(canonical(value))


def is_set(place: Location) -> bool:
    """There is a set of rollouts here, or what is left of one."""
    if place.get(SET, limit=_LIMIT) is not None:
        return True
    return f'"{FORMAT}"'.encode() in (place.get(MANIFEST, limit=_LIMIT) or b"")[:100]


def is_whole(place: Location, episode: int) -> bool:
    """The sample is there, with its row and byte for byte as the row says."""
    try:
        row = unsealed(place, row_key(episode))
        return row is not None and not sample_problems(place, row)
    except UserError:
        return False


def episode_name(episode: int) -> str:
    """Name of an episode in file names."""
    return f"{episode:06d}"


def object_entry(content: bytes) -> list[int | str]:
    """Length and sha256 of an object, as rows hold them."""
    return [len(content), hashlib.sha256(content).hexdigest()]


def row_key(episode: int) -> str:
    """Where the row of an episode lies."""
    return f"{ROWS}/{episode_name(episode)}.json"


def rows_of(place: Location, episodes: int) -> dict[int, dict[str, Any]]:
    """Rows of the finished samples, by episode.

    Raises:
        UserError: a damaged row; the set's maker makes its sample again.
    """
    rows = {}
    for episode in range(episodes):
        row = unsealed(place, row_key(episode))
        if row is not None:
            rows[episode] = row
    return rows


@dataclass(frozen=True)
class RolloutSet:
    """A set of rollouts, read one sample at a time.

    Attributes:
        url: where it lies.
        job: what it is made of: environment, policy, seeds, layers.
        rows: facts of each finished sample.
    """

    url: str
    job: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> Rollout:
        return read((locate(self.url) / str(self.rows[index]["path"])).url)

    def __iter__(self) -> Iterator[Rollout]:
        return (self[i] for i in range(len(self)))

    def video(self, index: int) -> str | None:
        """Where the video of a sample lies; None without one."""
        name = self.rows[index].get("video")
        return None if name is None else (locate(self.url) / str(name)).url


def read_set(url: str | Path) -> RolloutSet:
    """Open a set; samples are read when they are asked for.

    Raises:
        UserError: no set here, or a damaged one.
    """
    place = locate(url)
    head = unsealed(place, SET)
    if head is None:
        raise UserError(f"{place.url}: there is no set of rollouts here (no {SET}).")
    manifest = unsealed(place, MANIFEST)
    if manifest is not None:
        rows = tuple(manifest["rows"])
    else:
        found = rows_of(place, int(head["job"]["episodes"]))
        rows = tuple(found[i] for i in sorted(found))
    return RolloutSet(place.url, head["job"], rows)


def check_set(place: Location, check: Callable[[Location], list[str]]) -> list[str]:
    """Re-check a set: its own files, every sample and every checksum of a row.

    Args:
        place: where it lies.
        check: re-checks one sample.

    Returns:
        One sentence per problem.
    """
    try:
        head = unsealed(place, SET)
        manifest = unsealed(place, MANIFEST)
        if head is None:
            return [f"{place.url}/{SET}: is missing; {_MEND}."]
        episodes = int(head["job"]["episodes"])
    except (KeyError, TypeError, ValueError) as error:
        return [str(error) if isinstance(error, UserError) else f"{place.url}/{SET}: no job"]
    problems: list[str] = []
    rows: list[dict[str, Any]] = []
    for episode in range(episodes):
        try:
            row = unsealed(place, row_key(episode))
        except UserError as error:
            problems.append(str(error))
            continue
        if row is None:
            if manifest is not None:
                problems.append(f"{place.url}/{row_key(episode)}: is missing; {_MEND}.")
            continue
        rows.append(row)
        problems += sample_problems(place, row) or check(place / str(row["path"]))
    if manifest is not None and not problems and manifest["rows"] != rows:
        problems.append(f"{place.url}/{MANIFEST}: does not list the rows that are there; {_MEND}.")
    return problems


def sample_problems(place: Location, row: Mapping[str, Any]) -> list[str]:
    """Compare the objects of a sample with its row: one sentence per departure."""
    problems = []
    for key, entry in row["objects"].items():
        content = place.get(key, limit=None)
        if content is None:
            problems.append(f"{place.url}/{key}: is missing; {_MEND}.")
        elif object_entry(content) != entry:
            problems.append(str(damaged(f"{place.url}/{key}", "its checksum does not match")))
    if not problems and f"{row['path']}/{zarr_store.MANIFEST}" in row["objects"]:
        problems = zarr_store.check_objects(place / str(row["path"]))
    return problems
