"""A rollout as a Zarr v3 store at any fsspec URL (a folder, ``memory://``, object storage).

The root group's attribute ``wmeval`` is the header; groups and arrays are those of the HDF5 file.
Arrays are blosc-zstd with a CRC32C per chunk; a picture layer is sharded, one chunk per frame.
``manifest.json`` lists every object with its length and sha256 and is written last: a store without
it does not exist.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.datasets import codecs, document, stored
from wmeval.datasets.location import Location, locate
from wmeval.datasets.rollout import FORMAT, FrameArray, Rollout
from wmeval.errors import UserError
from wmeval.jobs.atomic import FolderKind, atomic_dir, disk_errors
from wmeval.jobs.ledger import canonical
from wmeval.layers import LAYERS

Array = NDArray[Any]

MANIFEST = "manifest.json"
STORE = FolderKind(
    files=r"manifest\.json|([^/]+/)*zarr\.json|([^/]+/)+c(\.\d+)*",
    marks={r"manifest\.json": f'"{FORMAT}"', r"zarr\.json": '"wmeval"'},
)
_LEVEL = 3
_CHUNK_BYTES = 16 << 20
_SHARD_BYTES = 256 << 20
# A dot for the slash: one folder per array, not one more per dimension.
_KEYS: Any = {"name": "default", "separator": "."}


def write_zarr(rollout: Rollout, url: str | Path, *, layers: tuple[str, ...] | None = None) -> str:
    """Write a rollout as a Zarr store, whole or not at all; the same rollout, the same bytes.

    The store is made on the local disk first: beside its place and renamed, or in the temporary
    folder and uploaded, the manifest last.

    Args:
        rollout: what to write.
        url: folder or fsspec URL; a store that is there is replaced, nothing else is.
        layers: picture layers to keep; None keeps all that are not derived from others.

    Returns:
        The URL.

    Raises:
        UserError: a layer that the rollout does not hold, something else is there, disk full, not
            writable, unknown protocol.
    """
    place = locate(url)
    if place.path is not None:
        with atomic_dir(place.path, replaces=STORE) as folder:
            _fill(rollout, folder, layers)
    else:
        place.refuse_others(STORE)
        with tempfile.TemporaryDirectory(prefix="wmeval-") as made, disk_errors(Path(made)):
            store = Path(made, "store")
            store.mkdir()
            _fill(rollout, store, layers)
            place.upload(store, last=MANIFEST)
    return place.url


def _fill(rollout: Rollout, folder: Path, layers: tuple[str, ...] | None) -> None:
    import zarr

    chosen = document.chosen_layers(rollout, layers)
    doc = document.describe(rollout)
    with _quiet():
        root = zarr.create_group(str(folder), zarr_format=3, overwrite=True)
        for name, array in doc.arrays.items():
            _put(root, name, array, document.attributes_of(name, doc.header))
        for name, layer in chosen.items():
            packing = _put_layer(root, doc, rollout, name, layer)
            if packing.plate is not None:
                _put(root, f"plate/{name}", packing.plate, {})
                doc.header["arrays"][f"plate/{name}"] = document.describe_array(packing.plate)
        root.update_attributes({"wmeval": json.loads(canonical(doc.header))})
        # One request instead of one per array; readers that do not know it ignore it.
        zarr.consolidate_metadata(str(folder))
    (folder / MANIFEST).write_text(manifest_of(folder), encoding="utf-8")


@contextmanager
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata")
        yield


def _compressors(itemsize: int, *, picture: bool) -> list[Any]:
    from zarr.codecs import BloscCodec, Crc32cCodec

    blosc = BloscCodec(
        typesize=itemsize,
        cname="zstd",
        clevel=_LEVEL,
        shuffle="bitshuffle" if picture else "shuffle",
        blocksize=0,
    )
    return [blosc, Crc32cCodec()]


def _put(root: Any, path: str, array: Array, attributes: dict[str, Any]) -> None:
    row_bytes = max(array.nbytes // max(len(array), 1), 1)
    rows = max(1, min(len(array), _CHUNK_BYTES // row_bytes))
    target = root.create_array(
        path,
        shape=array.shape,
        dtype=array.dtype,
        chunks=(rows, *(max(n, 1) for n in array.shape[1:])),
        compressors=_compressors(array.dtype.itemsize, picture=False),
        attributes=attributes,
        chunk_key_encoding=_KEYS,
        config={"write_empty_chunks": True},
    )
    if array.size:
        target[...] = array


def _cost(frame: Array) -> int:
    from numcodecs import Blosc  # type: ignore[import-untyped]

    codec = Blosc(cname="zstd", clevel=_LEVEL, shuffle=Blosc.BITSHUFFLE)
    return len(codec.encode(np.ascontiguousarray(frame)))


def _put_layer(
    root: Any, doc: document.Document, rollout: Rollout, name: str, layer: FrameArray
) -> codecs.Packing:
    frames = rollout.frames
    assert frames is not None
    still = codecs.is_still(frames, rollout.log.cameras)
    packing = codecs.choose(layer, still=still, cost=_cost)
    shape = tuple(int(n) for n in layer.shape)
    stored = packing.stored_dtype(layer.dtype)
    chunk = (1, *(max(n, 1) for n in shape[1:]))
    frame_bytes = int(np.prod(chunk, dtype=np.int64)) * stored.itemsize
    in_shard = max(1, min(shape[0], _SHARD_BYTES // frame_bytes))
    target = root.create_array(
        f"layer/{name}",
        shape=shape,
        dtype=stored,
        chunks=chunk,
        shards=(in_shard, *chunk[1:]),
        compressors=_compressors(stored.itemsize, picture=True),
        attributes={"codec": packing.codec, "unit": LAYERS[name].unit, "doc": LAYERS[name].doc},
        chunk_key_encoding=_KEYS,
        config={"write_empty_chunks": True},
    )

    def parts() -> Iterator[Array]:
        for start in range(0, shape[0], in_shard):
            block = np.asarray(layer[start : start + in_shard])
            if block.size:
                target[start : start + len(block)] = packing.pack(block)
            yield block

    sha256 = document.running_digest(layer.dtype, shape, parts())
    doc.header["frames"]["layers"][name] = document.layer_entry(layer, packing, still, sha256)
    return packing


# --- manifest -------------------------------------------------------------------------------------


def manifest_of(folder: Path) -> str:
    """Text of the manifest of a local store: every object with length and sha256."""
    objects = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        key = path.relative_to(folder).as_posix()
        if key != MANIFEST:
            with path.open("rb") as stream:
                sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
            objects[key] = [path.stat().st_size, sha256]
    body = {"format": FORMAT, "objects": objects}
    total = hashlib.sha256(canonical(body).encode()).hexdigest()
    return canonical({**body, "sha256": total}) + "\n"


def read_manifest(place: Location) -> dict[str, tuple[int, str]]:
    """Objects of a store with length and sha256.

    Raises:
        UserError: no whole rollout here, a store of another kind, or a damaged manifest.
    """
    where = place.url
    content = place.get(MANIFEST, limit=document.MAX_HEADER_BYTES)
    if content is None:
        if place.get("zarr.json", limit=document.MAX_HEADER_BYTES) is not None:
            raise UserError(
                f"{where}: a Zarr store without {MANIFEST}: its writing was cut off, or it is of "
                "another program. Make it again."
            )
        raise UserError(f"{where}: there is no rollout here (no {MANIFEST}).")
    try:
        text = content.decode()
        value = json.loads(text)
        body = {"format": value["format"], "objects": value["objects"]}
        total = hashlib.sha256(canonical(body).encode()).hexdigest()
        whole = canonical({**body, "sha256": total}) + "\n" == text
        objects = {
            str(key): (int(size), str(sha256)) for key, (size, sha256) in value["objects"].items()
        }
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise document.damaged(where, f"{MANIFEST} cannot be read") from error
    if value["format"] != FORMAT:
        raise UserError(f"{where}: format is {value['format']!r}, not {FORMAT!r}.")
    if not whole:
        raise document.damaged(where, f"checksum of {MANIFEST} does not match")
    if any(key.startswith("/") or ".." in key.split("/") for key in objects):
        raise document.damaged(where, f"{MANIFEST} names an object outside the store")
    return objects


def check_objects(place: Location) -> list[str]:
    """Compare every object of a store with the manifest.

    Returns:
        One sentence per object that is missing, changed or not listed.

    Raises:
        UserError: there is no readable manifest.
    """
    objects = read_manifest(place)
    wrong = []
    for key, (size, sha256) in objects.items():
        content = place.get(key, limit=None)
        if content is None:
            wrong.append(f"{key} is missing")
        elif len(content) != size:
            wrong.append(f"{key} has {len(content)} bytes, expected {size}")
        elif hashlib.sha256(content).hexdigest() != sha256:
            wrong.append(f"checksum of {key} does not match")
    return [str(document.damaged(place.url, what)) for what in wrong] + [
        f"{place.url}: {key} does not belong to the rollout; move it elsewhere"
        for key in place.objects()
        if key not in objects and key != MANIFEST
    ]


# --- reading --------------------------------------------------------------------------------------


def _open(place: Location) -> Any:
    import zarr

    with _quiet():
        return zarr.open_group(place.url, mode="r", zarr_format=3, use_consolidated=True)


class _Source:
    """The open group behind lazy layers; opened on first use and again in another process."""

    def __init__(self, url: str, sha256: str) -> None:
        self.url, self.sha256 = url, sha256
        self._arrays: dict[str, Any] = {}

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "sha256": self.sha256, "_arrays": {}}

    @cached_property
    def _opened(self) -> tuple[Any, list[str]]:
        """The group, and what the manifest lists and is not there: one listing tells of all."""
        place = locate(self.url)
        objects = read_manifest(place)
        if objects.get("zarr.json", (0, ""))[1] != self.sha256:
            raise UserError(f"{self.url} has been replaced since it was opened; read it again.")
        there = set(place.objects())
        return _open(place), [key for key in objects if key not in there]

    def array(self, path: str) -> Any:
        if path not in self._arrays:
            group, lost = self._opened
            # A lost chunk would read as a picture of nothing.
            mine = next((key for key in lost if key.startswith(f"{path}/")), None)
            if mine is not None:
                raise document.damaged(self.url, f"{mine} is missing")
            self._arrays[path] = group[path]
        return self._arrays[path]

    def read(self, path: str, index: Any, what: str) -> Array:
        try:
            return np.ascontiguousarray(self.array(path)[index])
        except UserError:
            raise
        except Exception as error:  # zarr, codecs and file systems raise what they like
            raise document.damaged(self.url, f"{what} ({error})") from error


def read_zarr(url: str | Path) -> Rollout:
    """Read a Zarr store: the state now, checked by its checksums; frames when sliced.

    Args:
        url: folder or fsspec URL.

    Raises:
        UserError: no whole rollout there, or a damaged one; the message names the URL.
    """
    return read_with_header(url)[0]


def read_with_header(url: str | Path) -> tuple[Rollout, dict[str, Any]]:
    """The rollout and the header of its file; raises as the reader does."""
    place = locate(url)
    where = place.url
    objects = read_manifest(place)
    root_json = place.get("zarr.json", limit=4 * document.MAX_HEADER_BYTES)
    sha256 = objects.get("zarr.json", (0, ""))[1]
    if root_json is None or hashlib.sha256(root_json).hexdigest() != sha256:
        raise document.damaged(where, "checksum of zarr.json does not match")
    try:
        root = _open(place)
        header = document.check_header(root.attrs.get("wmeval"), where)
        return stored.restore(root, where, header, _Source(where, sha256)), header
    except UserError:
        raise
    except Exception as error:  # zarr, codecs and file systems raise what they like
        raise document.damaged(where, str(error) or type(error).__name__) from error


def remove_rest(place: Location) -> None:
    """Remove what a writer left of a store: it may not show any more whose it is.

    A folder that holds other files stays; the next `write_zarr` there refuses it.
    """
    names = place.objects()
    if names and not STORE.strangers(names):
        remove(place.url)


def remove(url: str | Path) -> None:
    """Remove a store: the manifest first, so that no half of it counts as a rollout."""
    place = locate(url)
    if place.path is not None:
        (place.path / MANIFEST).unlink(missing_ok=True)
        shutil.rmtree(place.path, ignore_errors=True)
    else:
        place.clear(first=MANIFEST)
