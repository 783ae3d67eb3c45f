"""How a set comes to be: begun or gone on with, made in parts, gathered, completed.

Whoever makes samples begins the set, asks which are missing, makes those, and merges. A sample's
row is written after the sample; the manifest after all rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from wmeval.datasets import card, sets
from wmeval.datasets.browse import THUMBS
from wmeval.datasets.location import Location, locate
from wmeval.datasets.sets import SetKind
from wmeval.errors import UserError, one_line
from wmeval.jobs.atomic import claim, remove_stale
from wmeval.jobs.ledger import differences


def parse_shard(shard: str | tuple[int, int] | None) -> tuple[int, int]:
    """Shard "i/n" (0-based) as (i, n); None is the whole.

    Raises:
        UserError: no such form, or not 0 <= i < n.
    """
    if shard is None:
        return (0, 1)
    try:
        i, n = (int(x) for x in shard.split("/")) if isinstance(shard, str) else shard
    except ValueError as error:
        raise UserError(f"shard {shard!r}: give i/n, for example 0/4.") from error
    if not 0 <= i < n:
        raise UserError(f"shard {i}/{n}: i counts from 0 to n - 1.")
    return (i, n)


@contextmanager
def claimed(place: Location, part: int = 0, parts: int = 1) -> Iterator[None]:
    """Keep others out of a local set; shards share it, each alone in its own part."""
    if place.path is None:
        yield
    elif parts == 1:
        with claim(place.path):
            yield
    else:
        own = place.path.with_name(f"{place.path.name}.{part}-of-{parts}")
        with claim(place.path, shared=True), claim(own):
            yield


def begin(place: Location, job: dict[str, Any], *, kind: SetKind, overwrite: bool = False) -> None:
    """Make the place this job's, or go on with a set of the same job; it may only grow.

    Args:
        place: where the set lies.
        job: JSON values; ``job[kind.samples]`` is the number of samples.
        kind: what set it is.
        overwrite: forget the set that is there.

    Raises:
        UserError: something else is there, or a set of other settings.
    """
    job = sets.plain(job)
    known = _known_job(place, kind)
    if known is None or overwrite:
        place.refuse_others(kind.folder)
    if overwrite:
        _forget(place, kind)
    elif known is not None:
        count = kind.samples
        if {**known, count: job[count]} != job or known[count] > job[count]:
            raise UserError(
                f"{place.url} is a set of other settings ({differences(known, job)}); choose "
                "another place, or --overwrite."
            )
    elif any(not key.split("/")[-1].startswith(".") for key in place.objects()):
        raise UserError(
            f"{place.url}/{sets.SET}: missing or damaged, and no {sets.MANIFEST} tells what the "
            "set is made of; restore it from a copy, or make the set anew with --overwrite."
        )
    content = sets.sealed({"format": kind.format, "job": job})
    if place.get(sets.SET, limit=None) != content:
        if known is not None and known != job:
            place.remove(sets.MANIFEST)  # The set grows: it is not complete any more.
            card.forget_card(place)
        place.put(sets.SET, content)


def _known_job(place: Location, kind: SetKind) -> dict[str, Any] | None:
    """What the set that stands here is made of; None without one, or where nothing tells."""
    for key in (sets.SET, sets.MANIFEST):
        try:
            head = sets.unsealed(place, key, kind)
        except UserError:
            continue
        if head is not None:
            return dict(head["job"])
    return None


def _forget(place: Location, kind: SetKind) -> None:
    if place.path is None:
        place.clear(first=sets.MANIFEST)
        return
    place.remove(sets.MANIFEST)
    # Rows before samples: a kill in between leaves samples that do not count.
    shared = {p.split("/")[0] for p in place.objects() if "/" in p} - {sets.ROWS, kind.samples}
    for name in (sets.ROWS, kind.samples, *sorted(shared)):
        shutil.rmtree(place.path / name, ignore_errors=True)
    card.forget_card(place)
    place.remove(sets.SET)


def readable_rows(place: Location, count: int, kind: SetKind) -> dict[int, dict[str, Any]]:
    """Rows that can be read, of the first ``count`` samples; damaged ones are made again."""
    rows = {}
    for number in range(count):
        try:
            row = sets.unsealed(place, sets.row_key(number), kind)
        except UserError:
            continue
        if row is not None:
            rows[number] = row
    return rows


def note_failure(place: Location, number: int, error: str, kind: SetKind) -> None:
    """Record why a sample is not there; the record goes when the sample comes."""
    place.put(
        sets.failure_key(number),
        sets.sealed({"format": kind.format, "number": number, "error": one_line(error)}),
    )


def forget_failure(place: Location, number: int) -> None:
    """Remove the record of a sample's failure, if there is one."""
    place.remove(sets.failure_key(number))


def complete(place: Location, kind: SetKind) -> str:
    """Check that no sample is missing, write a set of clips' card, and last the manifest.

    Returns:
        Content hash of the set.

    Raises:
        UserError: samples are missing or their rows damaged.
    """
    head = sets.unsealed(place, sets.SET, kind)
    if head is None:
        raise kind.nothing(place)
    count = kind.count(head["job"])
    rows = readable_rows(place, count, kind)
    missing = [i for i in range(count) if i not in rows]
    if missing:
        shown = ", ".join(map(str, missing[:8])) + (", ..." if len(missing) > 8 else "")
        raise UserError(
            f"{place.url}: {len(missing)} of {count} {kind.samples} are missing or damaged "
            f"({shown}); run the shards that hold them, then merge again."
        )
    whole = [rows[i] for i in range(count)]
    stated = sets.content_hash(whole)
    content = sets.sealed(
        {"format": kind.format, "job": head["job"], "content_hash": stated, "rows": whole}
    )
    sweep(place, kind)
    for name in (place / sets.FAILED).objects():
        place.remove(f"{sets.FAILED}/{name}")
    if place.path is not None and (place.path / sets.FAILED).is_dir():
        (place.path / sets.FAILED).rmdir()
    if kind in card.KINDS:
        card.write_card(place, card.Card(kind, head["job"], whole, content))
    if place.get(sets.MANIFEST, limit=None) != content:
        place.put(sets.MANIFEST, content)
    return stated


def sweep(place: Location, kind: SetKind) -> None:
    """Remove what dead writers left in a local set."""
    if place.path is not None:
        for name in ("", sets.ROWS, sets.FAILED, kind.samples, THUMBS):
            remove_stale(place.path / name)


def merge_set(out: str | Path, parts: Sequence[str | Path] = ()) -> str:
    """Complete a set made in shards: gather, check that none is missing, write the manifest.

    Args:
        out: the set, of rollouts or of clips. Shards that worked in one place need nothing else.
        parts: other sets of the same settings, whose samples are copied into ``out`` first.

    Returns:
        URL of the set.

    Raises:
        UserError: no set here, samples are missing, or a part has other settings.
    """
    place = locate(out)
    kinds = (sets.kind_of(p) for p in (place, *map(locate, parts)))
    kind = next((k for k in kinds if k is not None), None)
    if kind is None:
        raise UserError(f"{place.url}: there is no set here (no {sets.SET}).")
    with claimed(place):
        for part in parts:
            _gather(place, locate(part), kind)
        complete(place, kind)
    return place.url


def _gather(place: Location, part: Location, kind: SetKind) -> None:
    head = sets.unsealed(part, sets.SET, kind)
    if head is None:
        raise kind.nothing(part)
    ours = sets.unsealed(place, sets.SET, kind)
    if ours is None:
        place.put(sets.SET, sets.sealed(head))
    elif ours["job"] != head["job"]:
        raise UserError(
            f"{part.url} is a set of other settings ({differences(ours['job'], head['job'])})."
        )
    keys = part.objects()
    for number, row in sorted(sets.rows_of(part, kind.count(head["job"]), kind).items()):
        if sets.is_whole(place, number, kind):
            continue
        problems = sets.sample_problems(part, row, kind)
        if problems:
            raise UserError(problems[0])
        inside = f"{row['path']}/"
        for key in keys:
            if key in row["objects"] or key.startswith(inside):
                content = part.get(key, limit=None)
                assert content is not None
                place.put(key, content)
        place.put(sets.row_key(number), sets.sealed(row))
