"""A rollout in one HDF5 file.

The file begins with a 512-byte user block of text: format, sha256 and length of all that follows.
HDF5 readers skip it; `validate` detects any changed bit by it, and `read_hdf5` a cut file. Inside,
"/" holds the header (attribute ``wmeval``, JSON), the groups of `wmeval.records.FIELDS` hold arrays
(gzip, shuffle, fletcher32) and "layer/*" the pictures, one chunk per frame. No plug-in is needed.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.datasets import codecs, document, stored
from wmeval.datasets.location import Location, locate
from wmeval.datasets.rollout import FORMAT, FrameArray, Rollout
from wmeval.errors import UserError
from wmeval.jobs.ledger import canonical
from wmeval.layers import LAYERS

Array = NDArray[Any]

USER_BLOCK = 512
SIGNATURE = b"\x89HDF\r\n\x1a\n"
_GZIP = 4
_CHUNK_BYTES = 8 << 20
_BLOCK_BYTES = 64 << 20
# Format 1.10 checks every structure of the file by itself (superblock, headers, indices).
_LIBRARY = ("v110", "v110")


def user_block(content: bytes | memoryview) -> bytes:
    """The 512 bytes that go before a content."""
    text = f"{FORMAT}\nsha256 {hashlib.sha256(content).hexdigest()}\nbytes {len(content)}\n"
    return text.encode().ljust(USER_BLOCK, b"\0")


def write_hdf5(rollout: Rollout, path: str | Path, *, layers: tuple[str, ...] | None = None) -> str:
    """Write a rollout as one HDF5 file, whole or not at all; the same rollout gives the same bytes.

    The compressed file is put together in memory: HDF5 does not survive a full disk, and what it
    takes is less than the rollout that is in memory already. Use Zarr where that is too much.

    Args:
        rollout: what to write.
        path: the file, or its fsspec URL; one that is there is replaced.
        layers: picture layers to keep; None keeps all that are not derived from others.

    Returns:
        The path or URL.

    Raises:
        UserError: a layer that the rollout does not hold, disk full, not writable.
    """
    import h5py

    place = locate(path)
    chosen = document.chosen_layers(rollout, layers)
    doc = document.describe(rollout)
    with h5py.File(
        "rollout", "w", driver="core", backing_store=False, block_size=1 << 20, libver=_LIBRARY
    ) as file:
        for name, array in doc.arrays.items():
            _put(file, name, array, document.attributes_of(name, doc.header))
        for name, layer in chosen.items():
            doc.header["frames"]["layers"][name] = _put_layer(file, rollout, name, layer)
            _put_plate(file, doc, name)
        file.attrs["wmeval"] = canonical(doc.header)
        file.flush()
        content = file.id.get_file_image()
    place.write([user_block(content), content])
    return place.url


def _put(file: Any, path: str, array: Array, attributes: dict[str, Any]) -> None:
    if array.size:
        row_bytes = max(array.nbytes // len(array), 1)
        rows = min(len(array), max(1, _CHUNK_BYTES // row_bytes))
        dataset = file.create_dataset(
            path,
            data=array,
            chunks=(rows, *array.shape[1:]),
            compression="gzip",
            compression_opts=_GZIP,
            shuffle=True,
            fletcher32=True,
        )
    else:
        dataset = file.create_dataset(path, shape=array.shape, dtype=array.dtype)
    for key, value in attributes.items():
        dataset.attrs[key] = value if isinstance(value, str) else json.dumps(value)


def _cost(frame: Array) -> int:
    raw = np.ascontiguousarray(frame).reshape(-1).view(np.uint8)
    shuffled = np.ascontiguousarray(raw.reshape(-1, frame.dtype.itemsize).T)
    return len(zlib.compress(shuffled.data, _GZIP))


def _put_layer(file: Any, rollout: Rollout, name: str, layer: FrameArray) -> dict[str, Any]:
    frames = rollout.frames
    assert frames is not None
    still = codecs.is_still(frames, rollout.log.cameras)
    packing = codecs.choose(layer, still=still, cost=_cost)
    shape = tuple(int(n) for n in layer.shape)
    filters: dict[str, Any] = (
        {
            "chunks": (1, *shape[1:]),
            "compression": "gzip",
            "compression_opts": _GZIP,
            "shuffle": True,
            "fletcher32": True,
        }
        if 0 not in shape
        else {}
    )
    dataset = file.create_dataset(
        f"layer/{name}", shape=shape, dtype=packing.stored_dtype(layer.dtype), **filters
    )

    def parts() -> Any:
        for start, block in codecs.blocks(layer, _BLOCK_BYTES):
            if block.size:
                dataset[start : start + len(block)] = packing.pack(block)
            yield block

    sha256 = document.running_digest(layer.dtype, shape, parts())
    dataset.attrs["codec"] = packing.codec
    dataset.attrs["unit"] = LAYERS[name].unit
    dataset.attrs["doc"] = LAYERS[name].doc
    if packing.plate is not None:
        _put(file, f"plate/{name}", packing.plate, {})
    return document.layer_entry(layer, packing, still, sha256)


def _put_plate(file: Any, doc: document.Document, name: str) -> None:
    if f"plate/{name}" in file:
        plate = file[f"plate/{name}"][...]
        doc.header["arrays"][f"plate/{name}"] = document.describe_array(plate)


# --- reading --------------------------------------------------------------------------------------


def check_user_block(place: Location) -> tuple[str, int]:
    """Read what the user block says, and compare the length with the file's.

    Returns:
        Sha256 and length of the content.

    Raises:
        UserError: no such file, a file of another kind, or a cut one.
    """
    path = place.url
    with place.open() as stream:
        block = stream.read(USER_BLOCK)
        size = stream.seek(0, 2)
    lines = block.rstrip(b"\0").split(b"\n")
    if lines[0] != FORMAT.encode():
        what = (
            "an HDF5 file of another program"
            if block.startswith(SIGNATURE)
            else "empty"
            if not block
            else "no rollout"
        )
        raise UserError(
            f"{path}: {what}; expected a file that begins with {FORMAT!r}, as `wmeval rollout` "
            "writes it."
        )
    try:
        sha256, length = lines[1].decode().split(" ")[1], int(lines[2].split(b" ")[1])
        text = f"{FORMAT}\nsha256 {sha256}\nbytes {length}\n"
        whole = block == text.encode().ljust(USER_BLOCK, b"\0") and len(sha256) == 64
    except (IndexError, ValueError) as error:
        raise document.damaged(path, "its first 512 bytes") from error
    if not whole:
        raise document.damaged(path, "its first 512 bytes")
    if size != USER_BLOCK + length:
        raise document.damaged(
            path, f"it has {size} bytes, expected {USER_BLOCK + length} (cut or appended to)"
        )
    return sha256, length


class _Source:
    """The open file behind lazy layers; opened on first use and again in another process."""

    def __init__(self, place: Location, sha256: str) -> None:
        if place.path is not None:
            place = locate(place.path.absolute())
        self.url, self.sha256 = place.url, sha256
        self._file: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "sha256": self.sha256, "_file": None}

    def dataset(self, path: str) -> Any:
        if self._file is None:
            place = locate(self.url)
            # A file that was replaced since holds other frames than the state that was read.
            if check_user_block(place)[0] != self.sha256:
                raise UserError(f"{self.url} has been replaced since it was opened; read it again.")
            self._file = _open(place)
        return self._file[path]

    def read(self, path: str, index: Any, what: str) -> Array:
        try:
            return np.asarray(self.dataset(path)[index])
        except UserError:
            raise
        except (OSError, KeyError, RuntimeError, ValueError, TypeError) as error:
            raise document.damaged(self.url, f"{what} ({error})") from error


def _open(place: Location) -> Any:
    import h5py

    # A frame is read once and kept by no one: the chunk cache would only copy it.
    source = place.open() if place.path is None else place.path
    return h5py.File(source, "r", rdcc_nbytes=0)


def read_hdf5(url: str | Path) -> Rollout:
    """Read a rollout file: the state now, checked by its checksums; frames when sliced.

    Args:
        url: the file, or its fsspec URL.

    Raises:
        UserError: no such file, no rollout, or a damaged one; the message names the file.
    """
    return read_with_header(url)[0]


def read_with_header(url: str | Path) -> tuple[Rollout, dict[str, Any]]:
    """The rollout and the header of its file; raises as the reader does."""
    place = locate(url)
    where = place.url
    sha256, _ = check_user_block(place)
    try:
        with _open(place) as file:
            text = file.attrs["wmeval"]
            header = document.parse_header(text, where)
            return stored.restore(file, where, header, _Source(place, sha256)), header
    except UserError:
        raise
    except (OSError, KeyError, RuntimeError, ValueError, TypeError, AttributeError) as error:
        raise document.damaged(where, str(error) or type(error).__name__) from error
