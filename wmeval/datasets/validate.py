"""Re-check what lies on disk: every checksum, array, picture and file beside them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from wmeval.datasets import card, checksums, codecs, document, hdf5, suite, video, zarr_store
from wmeval.datasets.bundle import read_bundle
from wmeval.datasets.location import Location, locate
from wmeval.datasets.rollout import FORMAT, FrameArray, Rollout
from wmeval.datasets.sets import SetKind, check_set, kind_of, unfinished
from wmeval.errors import UserError

_BLOCK_BYTES = 64 << 20


@dataclass
class Checked:
    """What `examine` found; each a sentence that names the file.

    Attributes:
        problems: what is damaged or missing.
        unfinished: sets that are not complete, with what they hold so far: no fault.
        notes: what is allowed and yet worth telling, such as a page changed by hand.
    """

    problems: list[str] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def validate(target: str | Path, *, workers: int = 0) -> list[str]:
    """Re-check a file, a folder or a store; a set that is not complete is no problem.

    Args:
        target: as `examine` takes it.
        workers: as there.

    Returns:
        One sentence per problem, naming the file; empty when all is well. Whatever the bytes are,
        this does not raise.
    """
    return examine(target, workers=workers).problems


def examine(target: str | Path, *, workers: int = 0) -> Checked:
    """Re-check a file, a folder or a store, and tell what else is to say of it.

    Rollouts (HDF5, Zarr), folders that ``wmeval rollout`` left, generated sets with their cards,
    mp4, JSON and YAML files are known. A folder of such things is checked thing by thing.

    Args:
        target: path or fsspec URL.
        workers: processes for the samples of a set; 0: none but this one.

    Returns:
        What was found. Whatever the bytes are, this does not raise.
    """
    told = Checked()
    try:
        told.problems += _place(locate(target), told, workers)
    except UserError as error:
        told.problems.append(str(error))
    except RecursionError:
        told.problems.append(f"{target}: nested too deeply to be read.")
    return told


def _place(place: Location, told: Checked, workers: int = 0) -> list[str]:
    path = place.path
    if path is None:
        kind = kind_of(place)
        return _rollout_at(place) if kind is None else _set(place, kind, told, workers)
    if path.is_file():
        return _file(path)
    if not path.is_dir():
        return [f"{path}: there is no such file or folder."]
    if (path / checksums.NAME).is_file():
        summed = checksums.check_checksums(path)
        return summed + _contents(place, path, told, workers, summed=True)
    return _contents(place, path, told, workers, summed=False)


def _contents(
    place: Location, path: Path, told: Checked, workers: int, *, summed: bool
) -> list[str]:
    kind = kind_of(place)
    if kind is not None:
        return _set(place, kind, told, workers)
    if (path / zarr_store.MANIFEST).is_file() or (path / "zarr.json").is_file():
        return _zarr(place)
    if (path / suite.INDEX).is_file():
        return suite.suite_problems(path)
    return _folder(path, told, summed=summed)


def _set(place: Location, kind: SetKind, told: Checked, workers: int) -> list[str]:
    problems = check_set(place, _rollout_at, kind, workers=workers)
    try:
        held = unfinished(place, kind)
        if held:
            told.unfinished.append(f"{place.url}: {held}")
    except UserError:
        pass  # Told already: its set.json or manifest is damaged.
    if kind in card.KINDS:
        wrong, notes = card.check_card(place, kind)
        problems += wrong
        told.notes += notes
    return problems


# --- rollouts -------------------------------------------------------------------------------------


def _rollout_at(place: Location) -> list[str]:
    if place.path is not None and (place.path / checksums.NAME).is_file():
        return _bundle(place.path)
    return _hdf5(place) if place.url.endswith(".h5") else _zarr(place)


def _bundle(path: Path) -> list[str]:
    problems = checksums.check_checksums(path) + _folder(path, Checked(), summed=True)
    try:
        if not problems:
            read_bundle(path)
    except UserError as error:
        problems.append(str(error))
    return problems


def _hdf5(target: Path | Location) -> list[str]:
    place = locate(target) if isinstance(target, Path) else target
    try:
        sha256, _ = hdf5.check_user_block(place)
        with place.open() as stream:
            stream.seek(hdf5.USER_BLOCK)
            found = document.stream_digest(stream)
        if found != sha256:
            # HDF5 is not asked to read what is known to be damaged.
            return [str(document.damaged(place.url, "checksum of its content does not match"))]
        return _pictures(place.url, *hdf5.read_with_header(place.url))
    except UserError as error:
        return [str(error)]


def _zarr(place: Location) -> list[str]:
    try:
        problems = zarr_store.check_objects(place)
        return problems or _pictures(place.url, *zarr_store.read_with_header(place.url))
    except UserError as error:
        return [str(error)]


def _pictures(where: str, rollout: Rollout, header: Mapping[str, Any]) -> list[str]:
    problems: list[str] = []
    try:
        rollout.log.contacts.substep  # noqa: B018 -- reads and checks them
    except UserError as error:
        problems.append(str(error))
    if rollout.frames is None:
        return problems
    for name, entry in document.layer_entries(where, header):
        layer = rollout.frames.layers[name]
        try:
            found = layer_digest(layer)
        except UserError as error:
            problems.append(str(error))
            continue
        if found != entry.get("sha256"):
            problems.append(f"{where}: damaged: checksum of layer {name!r} does not match.")
    return problems


def layer_digest(layer: FrameArray) -> str:
    """Sha256 of a picture layer, as the header states it."""
    parts = (block for _, block in codecs.blocks(layer, _BLOCK_BYTES))
    return document.running_digest(layer.dtype, tuple(layer.shape), parts)


# --- other files ----------------------------------------------------------------------------------


def _mp4(path: Path) -> list[str]:
    try:
        video.check_mp4(path)
    except UserError as error:
        return [str(error)]
    return []


def _json(path: Path) -> list[str]:
    try:
        json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        return [f"{path}: no JSON ({error}); make it again."]
    return []


def _yaml(path: Path) -> list[str]:
    import yaml

    try:
        document = yaml.safe_load(path.read_bytes())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        first = str(error).splitlines()[0]
        return [f"{path}: no YAML ({first}); make it again."]
    if not isinstance(document, dict):
        return [f"{path}: no mapping of settings; make it again."]
    return []


_BY_SUFFIX: dict[str, Callable[[Path], list[str]]] = {
    ".h5": _hdf5,
    ".mp4": _mp4,
    ".json": _json,
    ".yaml": _yaml,
    ".yml": _yaml,
}


def _file(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            if stream.read(len(FORMAT)) == FORMAT.encode():
                return _hdf5(path)
        check = _BY_SUFFIX.get(path.suffix.lower())
        if check is None:
            known = ", ".join(_BY_SUFFIX)
            return [f"{path}: not a file that wmeval writes (known: {known})."]
        return check(path)
    except OSError as error:
        return [f"{path}: cannot be read: {error.strerror or error}."]


def _folder(path: Path, told: Checked, *, summed: bool) -> list[str]:
    problems: list[str] = []
    known = 0
    for child in sorted(path.iterdir()):
        if child.name.startswith(".") or child.name == checksums.NAME:
            continue
        if child.is_dir():
            found = _place(locate(child), told)
            # A folder of other things (pictures of a report) is no fault.
            if found != [_nothing(child)]:
                known += 1
                problems += found
        elif child.suffix.lower() in _BY_SUFFIX:
            known += 1
            problems += _file(child)
    if not known and not summed:
        return [_nothing(path)]
    return problems or _together(path)


def _nothing(path: Path) -> str:
    return f"{path}: holds nothing that wmeval writes."


def _together(path: Path) -> list[str]:
    """Do the files of one rollout's folder tell of the same rollout?"""
    film, store = path / "video.mp4", path / "rollout.h5"
    if not (film.is_file() and store.is_file()):
        return []
    rollout = hdf5.read_hdf5(store)
    info = video.probe_mp4(film)
    if rollout.frames is None:
        return []
    problems = []
    if info.frames != len(rollout.frames):
        problems.append(
            f"{film}: {info.frames} frames, expected {len(rollout.frames)} as in {store.name}."
        )
    if (info.width, info.height) != rollout.frames.size:
        expected = "x".join(map(str, rollout.frames.size))
        problems.append(f"{film}: {info.width}x{info.height} px, expected {expected}.")
    return problems
