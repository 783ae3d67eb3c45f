"""Sets of samples: a folder or URL whose samples exist only once their row is written.

set.json             what the set is (format, job)
SAMPLES/000000.h5    samples (or 000000.zarr/), 000000.mp4 beside them
rows/000000.json     one row per finished sample: seed, length, checksums; written after it
failed/000000.json   why a sample is not there; only while a set is not complete
manifest.json        all rows and their content hash; written last, when the set is complete
README.md, ...       of clips: what the set is (`wmeval.datasets.card`)

SAMPLES is ``episodes`` in a set of rollouts (`ROLLOUTS`) and ``clips`` in a set of clips (`CLIPS`),
which keeps meshes that clips share once, in ``meshes/``.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from wmeval.datasets import zarr_store
from wmeval.datasets.document import damaged
from wmeval.datasets.location import Location, locate
from wmeval.datasets.rollout import Rollout, read
from wmeval.errors import UserError
from wmeval.jobs.atomic import FolderKind
from wmeval.jobs.executors import LocalExecutor
from wmeval.jobs.ledger import canonical, checksum

SET, MANIFEST, ROWS, FAILED = "set.json", "manifest.json", "rows", "failed"
CARD = r"README\.md|index\.html|croissant\.json|thumbs/\d+\.jpg"
"""What `wmeval.datasets.card` writes beside a set of clips."""
_LIMIT = 1 << 30


@dataclass(frozen=True)
class SetKind:
    """What tells the sets of one maker from others.

    Attributes:
        format: as its JSON files state it.
        what: what its samples are, for messages.
        samples: folder of the samples; the job states their number under this name.
        mend: what makes a damaged sample again, for messages.
        shared: regular expression of further files, which several rows may name.
    """

    format: str
    what: str
    samples: str
    mend: str
    shared: str = ""

    @cached_property
    def folder(self) -> FolderKind:
        """How a folder of such a set is told from everything else."""
        return FolderKind(
            files=(
                rf"({SET}|{MANIFEST}|({ROWS}|{FAILED})/\d+\.json)"
                rf"|{self.samples}/\d+(\.h5|\.mp4|\.zarr/({zarr_store.STORE.files}))"
                + (f"|{self.shared}" if self.shared else "")
            ),
            marks=dict.fromkeys((SET, MANIFEST, rf"{ROWS}/.*"), f'"{self.format}"'),
        )

    def count(self, job: Mapping[str, Any]) -> int:
        """How many samples a job asks for."""
        return int(job[self.samples])

    def nothing(self, place: Location) -> UserError:
        """The error of a place without such a set."""
        return UserError(f"{place.url}: there is no set of {self.what} here (no {SET}).")


ROLLOUTS = SetKind(
    "wmeval-rollouts/1", "rollouts", "episodes", "run its `wmeval generate rollouts` again"
)
CLIPS = SetKind(
    "wmeval-clips/1",
    "clips",
    "clips",
    "run its `wmeval generate` again",
    shared=rf"meshes/[0-9a-f]{{64}}\.npz|{CARD}",
)
BUNDLES = SetKind(
    "wmeval-bundles/1",
    "bundles",
    "bundles",
    "run its `wmeval generate` again",
    shared=r"bundles/[A-Za-z0-9][A-Za-z0-9._-]*/((frames|masks|depth)/\w+\.(png|exr)|[A-Za-z0-9]+"
    rf"(\.(mp4|npz|json|txt|h5))?)|{CARD}",
)
KINDS = (ROLLOUTS, CLIPS, BUNDLES)


def sealed(value: Mapping[str, Any]) -> bytes:
    """JSON that carries its own checksum."""
    return (canonical({**value, "sha256": checksum(value)}) + "\n").encode()


def unsealed(place: Location, key: str, kind: SetKind = ROLLOUTS) -> dict[str, Any] | None:
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
        raise damaged(where, "it cannot be read", kind.mend) from error
    if not whole:
        raise damaged(where, "its checksum does not match", kind.mend)
    if value.get("format") != kind.format:
        raise UserError(f"{where}: format is {value.get('format')!r}, not {kind.format!r}.")
    return dict(value)


def content_hash(rows: Sequence[Mapping[str, Any]]) -> str:
    """What a complete set states in its manifest: sha256 of all rows, in order.

    A row holds its sample's facts and the sha256 of every file of it: colour, labels, states. Two
    sets are the same if and only if their content hashes are, however they were made.
    """
    return checksum(list(rows))


def plain(value: Any) -> Any:
    """A value as it comes back from JSON."""
    return json.loads(canonical(value))


def kind_of(place: Location) -> SetKind | None:
    """Kind of the set that is here, or of what is left of one; None without one."""
    head = place.get(SET, limit=_LIMIT)
    text = (head or b"") + (place.get(MANIFEST, limit=_LIMIT) or b"")[:100]
    found = next((kind for kind in KINDS if f'"{kind.format}"'.encode() in text), None)
    return ROLLOUTS if found is None and head is not None else found


def is_whole(place: Location, number: int, kind: SetKind = ROLLOUTS) -> bool:
    """The sample is there, with its row and byte for byte as the row says."""
    try:
        row = unsealed(place, row_key(number), kind)
        return row is not None and not sample_problems(place, row, kind)
    except UserError:
        return False


def sample_name(number: int) -> str:
    """Name of a sample in file names."""
    return f"{number:06d}"


def object_entry(content: bytes) -> list[int | str]:
    """Length and sha256 of an object, as rows hold them."""
    return [len(content), hashlib.sha256(content).hexdigest()]


def row_key(number: int) -> str:
    """Where the row of a sample lies."""
    return f"{ROWS}/{sample_name(number)}.json"


def failure_key(number: int) -> str:
    """Where it is recorded why a sample is not there."""
    return f"{FAILED}/{sample_name(number)}.json"


def rows_of(place: Location, count: int, kind: SetKind = ROLLOUTS) -> dict[int, dict[str, Any]]:
    """Rows of the finished samples, by number.

    Raises:
        UserError: a damaged row; the set's maker makes its sample again.
    """
    rows = {}
    for number in range(count):
        row = unsealed(place, row_key(number), kind)
        if row is not None:
            rows[number] = row
    return rows


def read_rows(
    place: Location, kind: SetKind = ROLLOUTS
) -> tuple[dict[str, Any], tuple[dict[str, Any], ...]]:
    """Job of a set, and the rows of its finished samples in order.

    Raises:
        UserError: no set of this kind here, or a damaged one.
    """
    head = unsealed(place, SET, kind)
    if head is None:
        raise kind.nothing(place)
    manifest = unsealed(place, MANIFEST, kind)
    if manifest is not None:
        return dict(head["job"]), tuple(manifest["rows"])
    found = rows_of(place, kind.count(head["job"]), kind)
    return dict(head["job"]), tuple(found[i] for i in sorted(found))


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

    def __repr__(self) -> str:
        return f"<RolloutSet {self.url}: {len(self)} of {self.job.get('episodes')} rollouts>"

    def __getitem__(self, index: int) -> Rollout:
        return read((locate(self.url) / str(self.rows[index]["path"])).url)

    def __iter__(self) -> Iterator[Rollout]:
        return (self[i] for i in range(len(self)))

    def video(self, index: int) -> str | None:
        """Where the video of a sample lies; None without one."""
        name = self.rows[index].get("video")
        return None if name is None else (locate(self.url) / str(name)).url


def read_set(url: str | Path) -> RolloutSet:
    """Open a set of rollouts; samples are read when they are asked for.

    Raises:
        UserError: no set here, or a damaged one.
    """
    place = locate(url)
    return RolloutSet(place.url, *read_rows(place))


def check_set(
    place: Location,
    check: Callable[[Location], list[str]],
    kind: SetKind = ROLLOUTS,
    *,
    workers: int = 0,
) -> list[str]:
    """Re-check a set: its own files, every sample and every checksum of a row.

    Args:
        place: where it lies.
        check: re-checks one sample; an importable function.
        kind: what set it is.
        workers: processes that samples are dealt to; 0: none but this one (always so for
            ``memory://``).

    Returns:
        One sentence per problem, in the order of the samples.
    """
    try:
        head = unsealed(place, SET, kind)
        manifest = unsealed(place, MANIFEST, kind)
        if head is None:
            return [f"{place.url}/{SET}: is missing; {kind.mend}."]
        count = kind.count(head["job"])
    except (KeyError, TypeError, ValueError) as error:
        return [str(error) if isinstance(error, UserError) else f"{place.url}/{SET}: no job"]
    problems: list[str] = []
    rows: list[dict[str, Any]] = []
    # The memory file system is this process's own.
    executor = LocalExecutor(workers=0 if place.url.startswith("memory://") else workers)
    examine = partial(_examined, place.url, check, kind, {})
    for number, outcome in enumerate(executor.map(examine, range(count))):
        where = f"{place.url}/{row_key(number)}"
        if outcome.value is None:
            problems.append(f"{where}: cannot be checked: {outcome.error}")
            continue
        row, found = outcome.value
        problems += found
        if row is not None:
            rows.append(row)
        elif manifest is not None and not found:
            problems.append(f"{where}: is missing; {kind.mend}.")
    if manifest is not None and not problems and manifest["rows"] != rows:
        problems.append(
            f"{place.url}/{MANIFEST}: does not list the rows that are there; {kind.mend}."
        )
    elif not (manifest is None or problems or manifest.get("content_hash") == content_hash(rows)):
        problems.append(
            f"{place.url}/{MANIFEST}: does not state the content hash of its rows; {kind.mend}."
        )
    return problems


def unfinished(place: Location, kind: SetKind = ROLLOUTS) -> str:
    """What a set that is not complete holds so far, and what completes it; "" for a complete one.

    Raises:
        UserError: no set of this kind here, or a damaged one.
    """
    head = unsealed(place, SET, kind)
    if head is None:
        raise kind.nothing(place)
    if unsealed(place, MANIFEST, kind) is not None:
        return ""
    count = kind.count(head["job"])
    wanted = {f"{sample_name(number)}.json" for number in range(count)}
    made = wanted & set((place / ROWS).objects())
    failed = (wanted - made) & set((place / FAILED).objects())
    mend = kind.mend if len(made) < count else f"`wmeval merge {place.url}` completes it"
    return f"{len(made)} of {count} {kind.samples}, {len(failed)} failed; {mend}"


def _examined(
    url: str,
    check: Callable[[Location], list[str]],
    kind: SetKind,
    good: dict[str, Any],
    number: int,
) -> tuple[dict[str, Any] | None, list[str]]:
    """Row of a sample, None without one, and what is wrong with it."""
    place = locate(url)
    try:
        row = unsealed(place, row_key(number), kind)
    except UserError as error:
        return None, [str(error)]
    if row is None:
        return None, []
    return row, sample_problems(place, row, kind, good) or check(place / str(row["path"]))


def sample_problems(
    place: Location,
    row: Mapping[str, Any],
    kind: SetKind = ROLLOUTS,
    good: dict[str, Any] | None = None,
) -> list[str]:
    """Compare the objects of a sample with its row: one sentence per departure.

    Args:
        place: where the set lies.
        row: of the sample.
        kind: what set it is.
        good: shared objects found whole, by name; they are added, and not read again.
    """
    problems = []
    good = {} if good is None else good
    for key, entry in row["objects"].items():
        if good.get(key) == entry:
            continue
        content = place.get(key, limit=None)
        if content is None:
            problems.append(f"{place.url}/{key}: is missing; {kind.mend}.")
        elif object_entry(content) != entry:
            what = "its checksum does not match"
            problems.append(str(damaged(f"{place.url}/{key}", what, kind.mend)))
        elif not key.startswith(f"{kind.samples}/"):
            good[key] = entry
    if not problems and f"{row['path']}/{zarr_store.MANIFEST}" in row["objects"]:
        problems = zarr_store.check_objects(place / str(row["path"]))
    return problems
