"""Arrays out of files that PyTorch saved, without PyTorch and without running anything in them.

Both forms are read: the ZIP archive (PyTorch 1.6 and later) and the older sequence of pickles. A
pickle in them may name tensors, their storages and an ordered dictionary; anything else is refused.
"""

from __future__ import annotations

import collections
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError

MOST_BYTES = 64 << 20
"""Largest file that is read."""

_TYPES = {
    "FloatStorage": "<f4", "DoubleStorage": "<f8", "HalfStorage": "<f2", "LongStorage": "<i8",
    "IntStorage": "<i4", "ShortStorage": "<i2", "CharStorage": "i1", "ByteStorage": "u1",
    "BoolStorage": "?",
}  # fmt: skip
_MAGIC = 0x1950A86A20F9469CFC6C


class _Storage:
    """A storage that the old form names before its content comes."""

    def __init__(self, dtype: str, count: int) -> None:
        self.values: NDArray[Any] = np.zeros(count, dtype)


class _Lazy:
    """A tensor: where in which storage."""

    def __init__(self, storage: _Storage, offset: int, size: Any, stride: Any) -> None:
        self.storage, self.offset = storage, int(offset)
        self.size, self.stride = tuple(map(int, size)), tuple(map(int, stride))

    def array(self) -> NDArray[Any]:
        values = self.storage.values
        if len(self.size) != len(self.stride) or min((*self.size, *self.stride, self.offset)) < 0:
            raise ValueError("a tensor's shape is impossible")
        if 0 in self.size:
            return np.zeros(self.size, values.dtype)
        last = self.offset + sum((n - 1) * s for n, s in zip(self.size, self.stride, strict=True))
        if last >= len(values):
            raise ValueError("a tensor reaches beyond its storage")
        step = values.itemsize
        view = np.lib.stride_tricks.as_strided(
            values[self.offset :], self.size, tuple(s * step for s in self.stride), writeable=False
        )
        return view.copy()


def _rebuild(storage: _Storage, offset: int, size: Any, stride: Any, *_: Any) -> _Lazy:
    if not isinstance(storage, _Storage):
        raise pickle.UnpicklingError("a tensor without a storage")
    return _Lazy(storage, offset, size, stride)


class _Reader(pickle.Unpickler):
    def __init__(self, stream: io.BytesIO, storages: dict[str, _Storage]) -> None:
        super().__init__(stream, encoding="utf-8")
        self.storages = storages

    def find_class(self, module: str, name: str) -> Any:
        """The few names that a saved tensor needs."""
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return _rebuild
        if (module, name) == ("collections", "OrderedDict"):
            return collections.OrderedDict
        if module == "torch" and name in _TYPES:
            return _TYPES[name]
        raise pickle.UnpicklingError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        """A storage by its key."""
        if not isinstance(pid, tuple) or len(pid) < 5 or pid[0] != "storage":
            raise pickle.UnpicklingError("an unknown reference")
        _, dtype, key, _, count = pid[:5]
        if dtype not in _TYPES.values() or not 0 <= int(count) <= MOST_BYTES:
            raise pickle.UnpicklingError("an unknown storage")
        if str(key) not in self.storages:
            self.storages[str(key)] = _Storage(dtype, int(count))
        return self.storages[str(key)]


def read_torch(path: str | Path) -> Any:
    """What a file saved by PyTorch holds, tensors as arrays.

    Args:
        path: .pt or .pth.

    Returns:
        The saved object: arrays, and lists, tuples and dictionaries of them.

    Raises:
        UserError: no such file, too large, cut, or with anything but tensors in it.
    """
    try:
        if Path(path).stat().st_size > MOST_BYTES:
            raise UserError(f"{path}: larger than {MOST_BYTES >> 20} MiB")
        content = Path(path).read_bytes()
        found = _from_zip(content) if content[:2] == b"PK" else _from_pickles(content)
        return _arrays(found)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror or error}") from error
    except UserError:
        raise
    except Exception as error:  # a damaged pickle raises whatever its bytes spell
        raise UserError(f"{path}: no file of plain tensors: {error}") from error


def _from_zip(content: bytes) -> Any:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        if sum(entry.file_size for entry in archive.infolist()) > MOST_BYTES:
            raise ValueError("it unpacks to too much")
        names = archive.namelist()
        main = next(n for n in names if n.endswith("/data.pkl"))
        root = main[: -len("data.pkl")]
        storages: dict[str, _Storage] = {}
        found = _Reader(io.BytesIO(archive.read(main)), storages).load()
        if root + "byteorder" in names and archive.read(root + "byteorder") != b"little":
            raise ValueError("it is big-endian")
        for key, storage in storages.items():
            _fill(storage, archive.read(f"{root}data/{key}"))
    return found


def _from_pickles(content: bytes) -> Any:
    stream = io.BytesIO(content)
    storages: dict[str, _Storage] = {}
    if _Reader(stream, {}).load() != _MAGIC:
        raise ValueError("its first number is another")
    for _ in range(2):  # protocol, and sizes of the writer's integers
        _Reader(stream, {}).load()
    found = _Reader(stream, storages).load()
    for key in _Reader(stream, {}).load():
        storage = storages[str(key)]
        count = int.from_bytes(stream.read(8), "little")
        if count != len(storage.values):
            raise ValueError("a storage has another length")
        _fill(storage, stream.read(storage.values.nbytes))
    return found


def _fill(storage: _Storage, raw: bytes) -> None:
    if len(raw) != storage.values.nbytes:
        raise ValueError("a storage is cut")
    storage.values = np.frombuffer(raw, storage.values.dtype)


def _arrays(value: Any) -> Any:
    if isinstance(value, _Lazy):
        return value.array()
    if isinstance(value, dict):
        return {k: _arrays(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_arrays(v) for v in value)
    return value
