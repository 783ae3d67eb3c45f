"""Sets in the formats that others read. An export is one module and one row of `EXPORTS`.

What is exported is whole or absent: it is made beside its place, checksummed and renamed. Bundles
are whole one by one, and a run that was stopped goes on.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path

from wmeval.datasets import sets
from wmeval.datasets.checksums import NAME, write_checksums
from wmeval.datasets.clips import ClipSet, read_clips
from wmeval.datasets.exports.samples import Step
from wmeval.datasets.location import Location, locate
from wmeval.datasets.sets import RolloutSet, read_set
from wmeval.errors import UserError
from wmeval.jobs.atomic import FolderKind, atomic_dir, claim, disk_errors

FORMAT = "wmeval-export/1"
NOTE = "wmeval-export.json"

Source = ClipSet | RolloutSet


@dataclass(frozen=True)
class ExportRow:
    """One format.

    Attributes:
        entry: "module:function"; the function fills an empty folder and returns how many samples it
            wrote: ``(source, folder, step) -> int``.
        files: regular expression of the names that it writes.
        rollouts: sets of action-labelled rollouts can be exported too.
        doc: one line.
        one_by_one: its samples are folders, each whole or absent; its function takes ``overwrite``.
    """

    entry: str
    files: str
    rollouts: bool
    doc: str
    one_by_one: bool = False


EXPORTS: Mapping[str, ExportRow] = {
    "bundle": ExportRow(
        "wmeval.datasets.exports.bundles:write",
        ".*",
        False,
        "the published folders of plain files, one a clip",
        one_by_one=True,
    ),
    "webdataset": ExportRow(
        "wmeval.datasets.exports.webdataset:write",
        r".+-\d{6}\.tar",
        False,
        "tar shards for video trainers",
    ),
    "diffsynth": ExportRow(
        "wmeval.datasets.exports.diffsynth:write",
        r"metadata\.csv|videos/.+\.mp4",
        False,
        "metadata.csv and videos, as Wan trainers read them",
    ),
    "minari": ExportRow(
        "wmeval.datasets.exports.minari:write",
        r".+/data/(main_data\.hdf5|metadata\.json)",
        True,
        "offline reinforcement learning, one data set an environment",
    ),
    "lerobot": ExportRow(
        "wmeval.datasets.exports.lerobot:write",
        r"meta/(info|stats)\.json|(meta|data)/.+\.parquet|videos/.+\.mp4",
        True,
        "LeRobotDataset v3.0: parquet and videos",
    ),
    "hf": ExportRow(
        "wmeval.datasets.exports.hf:write",
        r"README\.md|[^/]+/(metadata\.parquet|[^/]+\.mp4)",
        False,
        "a video folder with parquet metadata, as `datasets` loads it",
    ),
}


@dataclass(frozen=True)
class Exported:
    """What `export` wrote: the folder or URL and how many samples."""

    url: str
    samples: int


def export(
    name: str,
    source: str | Path,
    out: str | Path,
    *,
    split: str | None = None,
    task: str | None = None,
    overwrite: bool = False,
    exr: bool = False,
    progress: Step | None = None,
) -> Exported:
    """Write a set in another format.

    Args:
        name: row of `EXPORTS`.
        source: set of clips, or of rollouts where the format takes them; folder or fsspec URL.
        out: folder to write; or fsspec URL, to which what is made in the temporary folder is
            copied, its checksums last (not bundles).
        split: only clips of this split.
        task: only clips of this task.
        overwrite: replace an export of the same format that is there.
        exr: bundles with EXR streams of object index and depth, too.
        progress: called with (samples done, samples).

    Raises:
        UserError: unknown format, no set, nothing selected, something else is there, a package
            that the format needs is missing, or samples that the format cannot hold.
    """
    if name not in EXPORTS:
        raise UserError(f"no export {name!r}: choose from {', '.join(EXPORTS)}")
    row, place = EXPORTS[name], locate(out)
    if exr and not row.one_by_one:
        raise UserError(
            f"EXR streams are files of a bundle: export bundle, or leave exr out of {name}"
        )
    given = _source(name, row, source)
    _refuse_inside(place, locate(source))
    if isinstance(given, ClipSet):
        given = given.select(split=split, task=task)
    elif split is not None or task is not None:
        raise UserError(f"{source}: rollouts have no split or task to choose by")
    if not len(given):
        raise UserError(f"{source}: no sample is finished yet")
    module, _, function = row.entry.partition(":")
    write = getattr(import_module(module), function)
    step = progress or (lambda done, total: None)
    if row.one_by_one:
        if place.path is None:
            raise UserError(f"{place.url}: bundles are folders of files: give a folder")
        return Exported(place.url, write(given, place.path, step, overwrite=overwrite, exr=exr))
    kind = FolderKind(
        files=rf"{row.files}|{NOTE}|{NAME}",
        marks={NOTE.replace(".", r"\."): f'"{FORMAT}", "export": "{name}"'},
    )

    def fill(folder: Path) -> int:
        count = int(write(given, folder, step))
        note = {"format": FORMAT, "export": name, "samples": count}
        (folder / NOTE).write_text(json.dumps(note) + "\n")
        write_checksums(folder)
        return count

    if place.path is not None:
        with (
            claim(place.path),
            atomic_dir(place.path, replaces=kind if overwrite else None) as made,
        ):
            return Exported(place.url, fill(made))
    if place.objects() and not overwrite:
        raise UserError(f"{place.url} exists; pass overwrite (--overwrite) to replace it.")
    place.refuse_others(kind)
    with tempfile.TemporaryDirectory(prefix="wmeval-") as near, disk_errors(Path(near)):
        folder = Path(near, "export")
        folder.mkdir()
        count = fill(folder)
        place.upload(folder, last=NAME)
    return Exported(place.url, count)


def _refuse_inside(place: Location, source: Location) -> None:
    if place.path is None or source.path is None:
        return
    inner, outer = place.path.resolve(), source.path.resolve()
    if outer in inner.parents:
        raise UserError(f"{place.url} lies inside the set {source.url}: choose a place outside it")


def _source(name: str, row: ExportRow, source: str | Path) -> Source:
    place = locate(source)
    kind = sets.kind_of(place)
    if kind == sets.ROLLOUTS:
        if not row.rollouts:
            able = ", ".join(k for k, r in EXPORTS.items() if r.rollouts)
            raise UserError(
                f"{source}: a set of rollouts; {name} takes clips (for rollouts: {able})"
            )
        return read_set(source)
    return read_clips(source)
