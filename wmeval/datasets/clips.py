"""Sets of clips: sharded Zarr stores, one mp4 a clip, on a folder or any fsspec URL.

set.json              what the set is (format, job)
clips/000000.zarr/    state, contacts, scene, layers without loss (`wmeval.datasets.zarr_store`)
clips/000000.mp4      colour
meshes/<sha256>.npz   meshes, by content hash: clips of one room share them
thumbs/000000.jpg     first frame of the video, small
rows/000000.json      facts and checksums of one finished clip; written after it
README.md, ...        what the set is, and a page to look at it (`wmeval.datasets.card`)
manifest.json         all rows; written last, when the set is complete

`read_clips` (``wmeval.open``) opens a set; ``[i]`` reads one clip, a slice or `ClipSet.select` a
part of the set. To make one: `wmeval.datasets.set_runs.begin`, then `write_clip` for each clip, in
any order and process, then `wmeval.datasets.set_runs.complete`.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, overload

import numpy as np

from wmeval.datasets import browse, document, sets, zarr_store
from wmeval.datasets.clip import ARRAYS, ClipFacts, ClipRecord
from wmeval.datasets.document import MESH_ARRAYS, damaged
from wmeval.datasets.film import film_layer, write_film
from wmeval.datasets.location import Location, locate
from wmeval.datasets.rollout import Rollout
from wmeval.datasets.sets import BUNDLES, CLIPS
from wmeval.datasets.zarr_store import read_zarr, write_zarr
from wmeval.errors import UserError
from wmeval.scene import MeshData, Meshes

MESHES = "meshes"
_MAX_MESH_BYTES = 1 << 30


# --- writing ------------------------------------------------------------------------------------


def write_clip(
    url: str | Path,
    number: int,
    rollout: Rollout,
    *,
    layers: tuple[str, ...] | None = None,
    crf: int = 18,
) -> dict[str, Any]:
    """Write one clip of a set: its store, its video, its meshes, and last its row.

    Until the row is there the clip does not exist; a kill on the way leaves nothing that counts.
    The same rollout gives the same bytes.

    Args:
        url: the set, begun by `wmeval.datasets.set_runs.begin`.
        number: of the clip in the set.
        rollout: with facts (`wmeval.datasets.clip.with_facts`) and the layer ``rgb``.
        layers: to store without loss; None: all that the rollout holds and that are not derived.
            Of a still camera's raster pictures ``rgb`` costs little more than the video.
        crf: quality of the video (`wmeval.datasets.video.write_mp4`).

    Returns:
        The row.

    Raises:
        UserError: no clip, no colour, disk full, not writable.
    """
    place = locate(url)
    clip = ClipRecord(rollout)
    name = f"{CLIPS.samples}/{sets.sample_name(number)}"
    store, film = f"{name}.zarr", f"{name}.mp4"
    zarr_store.remove_rest(place / store)
    objects = {key: _put_mesh(place, key, mesh) for key, mesh in _files(rollout.meshes)}
    # The meshes lie beside: two hundred clips of a room are two hundred times the same room.
    write_zarr(replace(rollout, meshes={}), (place / store).url, layers=layers)
    write_film(place / film, clip.rgb, clip.fps, crf=crf)
    for key in (f"{store}/{zarr_store.MANIFEST}", film):
        content = place.get(key, limit=None)
        assert content is not None
        objects[key] = sets.object_entry(content)
    thumb, content = browse.put_thumbnail(place, number, film, clip.size, len(clip))
    objects[thumb] = sets.object_entry(content)
    row = {
        "format": CLIPS.format,
        "clip": number,
        "path": store,
        "video": film,
        "layers": sorted(document.chosen_layers(rollout, layers)),
        "objects": objects,
        **row_facts(clip),
    }
    place.put(sets.row_key(number), sets.sealed(row))
    return row


def row_facts(clip: ClipRecord) -> dict[str, Any]:
    """What the row of a clip states of it, whatever files it lies in."""
    width, height = clip.size
    return {
        "facts": clip.facts.model_dump(mode="json"),
        "frames": len(clip),
        "fps": str(clip.fps),
        "width": width,
        "height": height,
        "contacts": len(clip.contacts),
        "rollout_sha256": clip.rollout.sha256(),
        "made_with": _made_with(clip.rollout.metadata),
    }


def _made_with(metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Engine, renderer and package with their versions, and whether a user's cards were used."""
    versions = [
        f"{metadata[name]} {metadata[f'{name}_version']}"
        for name in ("engine", "renderer")
        if metadata.get(name) and metadata.get(f"{name}_version")
    ]
    versions += [f"wmeval {metadata['wmeval']}"] if "wmeval" in metadata else []
    arguments = metadata.get("env_kwargs")
    assets = arguments.get("assets") if isinstance(arguments, Mapping) else None
    return {"versions": versions, "user_cards": assets is not None}


def _files(meshes: Meshes) -> Iterator[tuple[str, MeshData]]:
    return ((f"{MESHES}/{key}.npz", mesh) for key, mesh in sorted(meshes.items()))


_mesh_entries: dict[str, list[int | str]] = {}
"""What this process has found each mesh's file to be."""


def _put_mesh(place: Location, key: str, mesh: MeshData) -> list[int | str]:
    """Write a mesh unless it is there, byte for byte."""
    # Packing takes longer than looking: clips of one room have the same meshes.
    there = place.get(key, limit=None) if key in _mesh_entries else None
    if there is not None and sets.object_entry(there) == _mesh_entries[key]:
        return list(_mesh_entries[key])
    stream = io.BytesIO()
    np.savez_compressed(stream, **{n: getattr(mesh, n).astype(d) for n, d in MESH_ARRAYS.items()})
    content = stream.getvalue()
    if place.get(key, limit=None) != content:
        place.put(key, content)
    _mesh_entries[key] = sets.object_entry(content)
    return list(_mesh_entries[key])


# --- reading ------------------------------------------------------------------------------------


class SharedMeshes(Mapping[str, MeshData]):
    """Meshes of a set's ``meshes/``, read when they are asked for.

    Attributes:
        url: the set.
    """

    def __init__(self, url: str, keys: Sequence[str]) -> None:
        self.url, self._keys = url, dict.fromkeys(keys)
        self._read: dict[str, MeshData] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_read": {}}

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __getitem__(self, key: str) -> MeshData:
        if key not in self._keys:
            raise KeyError(key)
        if key not in self._read:
            self._read[key] = self._load(key)
        return self._read[key]

    def _load(self, key: str) -> MeshData:
        where = f"{self.url}/{MESHES}/{key}.npz"
        content = locate(self.url).get(f"{MESHES}/{key}.npz", limit=_MAX_MESH_BYTES)
        if content is None:
            raise UserError(f"{where}: is missing; {CLIPS.mend}.")
        try:
            with np.load(io.BytesIO(content), allow_pickle=False) as archive:
                mesh = MeshData(**{name: archive[name] for name in MESH_ARRAYS})
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
            raise damaged(where, "it cannot be read") from error
        if mesh.content_hash() != key:
            raise damaged(where, "it is not the mesh of its name")
        return mesh


@dataclass(frozen=True)
class ClipSet(Sequence[ClipRecord]):
    """A set of clips, or a part of one; a clip is read when it is asked for.

    It pickles, so workers that are spawned read for themselves (not from ``memory://``).

    Attributes:
        url: where it lies.
        job: what it is made of.
        rows: facts of each finished clip.
    """

    url: str
    job: Mapping[str, Any]
    rows: tuple[Mapping[str, Any], ...]

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        tasks = ", ".join(sorted({str(row["facts"]["task_type"]) for row in self.rows}))
        return f"<ClipSet {self.url}: {len(self)} clips{f' of {tasks}' if tasks else ''}>"

    @overload
    def __getitem__(self, index: int) -> ClipRecord: ...

    @overload
    def __getitem__(self, index: slice) -> ClipSet: ...

    def __getitem__(self, index: int | slice) -> ClipRecord | ClipSet:
        if isinstance(index, slice):
            return replace(self, rows=self.rows[index])
        row = self.rows[index]
        place = locate(self.url)
        if row["format"] == BUNDLES.format:
            return _bundle(place, str(row["path"]))
        rollout = read_zarr((place / str(row["path"])).url)
        names = (key.removeprefix(f"{MESHES}/") for key in row["objects"])
        keys = [name.removesuffix(".npz") for name in names if name.endswith(".npz")]
        size = (int(row["width"]), int(row["height"]))
        film = film_layer((place / str(row["video"])).url, int(row["frames"]), size)
        return ClipRecord(replace(rollout, meshes=SharedMeshes(place.url, keys)), film)

    @property
    def content_hash(self) -> str:
        """Sha256 of facts and checksums of these clips; of a complete set, its manifest's.

        Numbers of two sets, or of two parts of one, belong into one table only if it is the same.
        """
        return sets.content_hash(self.rows)

    def facts(self, index: int) -> ClipFacts:
        """What a clip is of, without reading it."""
        return ClipFacts.model_validate(self.rows[index]["facts"])

    def video(self, index: int) -> str:
        """Where the video of a clip lies."""
        return (locate(self.url) / str(self.rows[index]["video"])).url

    def select(
        self,
        *,
        split: str | None = None,
        task: str | None = None,
        scene: str | None = None,
        object: str | None = None,
        seen: float | None = None,
    ) -> ClipSet:
        """The clips of a split, a task, a setting, or with an object among their actors.

        Args:
            split: of the manifest's row.
            task: id of its card.
            scene: id of the setting's card.
            object: id of an actor's card.
            seen: least share 0..1 of the frames in which each thing that moves is seen; 1:
                throughout.

        Raises:
            UserError: there is none, naming what there is; or ``seen`` is no share.
        """
        if seen is not None and not 0 <= seen <= 1:
            raise UserError(f"seen = {seen:g}: a share of the frames lies in 0..1")
        rows = self.rows
        for field, wanted in (("split", split), ("task_type", task), ("scene_id", scene)):
            if wanted is not None:
                there = sorted({str(row["facts"][field]) for row in rows})
                rows = tuple(row for row in rows if row["facts"][field] == wanted)
                _refuse_none(self.url, rows, field, wanted, there)
        if object is not None:
            there = sorted({str(name) for row in rows for name in _objects(row)})
            rows = tuple(row for row in rows if object in _objects(row))
            _refuse_none(self.url, rows, "object", object, there)
        if seen is not None:
            shares = [ClipFacts.model_validate(row["facts"]).seen_share or 0.0 for row in rows]
            rows = tuple(row for row, share in zip(rows, shares, strict=True) if share >= seen)
            if not rows:
                raise UserError(
                    f"{self.url}: no clip that shows all that moves in {seen:g} of its frames: the "
                    f"most is {max(shares, default=0.0):.2f}"
                )
        return replace(self, rows=rows)

    def arrays(self, *names: str) -> ClipArrays:
        """The set as plain numpy arrays, the form that a data loader of any framework takes.

        Args:
            names: of `wmeval.datasets.clip.ARRAYS`.

        Raises:
            UserError: an unknown name.
        """
        unknown = [name for name in names if name not in ARRAYS]
        if unknown or not names:
            what = f"no array {unknown[0]!r}" if unknown else "name at least one array"
            raise UserError(f"{what}: choose from {', '.join(ARRAYS)}")
        return ClipArrays(self, names)


def _objects(row: Mapping[str, Any]) -> list[str]:
    return [a["object"] for a in row["facts"]["actors"] if a["object"] is not None]


def _bundle(place: Location, path: str) -> ClipRecord:
    # Bundles know sets of them, not the other way round: neither needs the other to be imported.
    from wmeval.datasets.bundle import read_bundle

    if place.path is None:
        raise UserError(f"{place.url}: bundles are read from folders: copy the set to a disk first")
    # Arrays and pictures carry checksums of their own; `wmeval validate` checks all.
    return read_bundle(place.path / path, check=False)


def _refuse_none(url: str, rows: Sequence[Any], field: str, wanted: str, there: list[str]) -> None:
    if not rows:
        raise UserError(f"{url}: no clip with {field} {wanted!r}: there are {', '.join(there)}")


@dataclass(frozen=True)
class ClipArrays(Sequence[dict[str, Any]]):
    """A set of clips as mappings of numpy arrays: ``sample_id``, ``prompt``, and those asked for.

    Attributes:
        clips: the set.
        names: arrays of each clip.
    """

    clips: ClipSet
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.clips)

    def __repr__(self) -> str:
        return f"<ClipArrays {', '.join(self.names)} of {self.clips!r}>"

    @overload
    def __getitem__(self, index: int) -> dict[str, Any]: ...

    @overload
    def __getitem__(self, index: slice) -> ClipArrays: ...

    def __getitem__(self, index: int | slice) -> dict[str, Any] | ClipArrays:
        if isinstance(index, slice):
            return replace(self, clips=self.clips[index])
        return self.clips[index].arrays(self.names)


def read_clips(url: str | Path) -> ClipSet:
    """Open a set of clips or of bundles; one that is being made shows the clips that are finished.

    Raises:
        UserError: no set of clips here, or a damaged one.
    """
    place = locate(url)
    kind = sets.kind_of(place) or CLIPS
    if kind == sets.ROLLOUTS:
        raise UserError(
            f"{place.url}: a set of rollouts, not of clips: read it with "
            "`wmeval.datasets.sets.read_set`"
        )
    return ClipSet(place.url, *sets.read_rows(place, kind))
