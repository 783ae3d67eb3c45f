"""Reading that the back ends share: a group of arrays, HDF5 or Zarr, becomes a rollout.

A back end opens its file or store, checks its checksum, and hands over two things: the open group,
from which the state is read now, and a `Source`, from which frames and contacts are read later.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wmeval.datasets import codecs, document
from wmeval.datasets.lazy import LazyLayer
from wmeval.datasets.rollout import FrameArray, Rollout
from wmeval.datasets.stored_contacts import PATHS

Array = NDArray[Any]


class Source(Protocol):
    """The file or store behind what is read later; it reopens itself in another process."""

    url: str

    def read(self, path: str, index: Any, what: str) -> Array:
        """Part of an array.

        Raises:
            UserError: damaged or replaced; the message names ``what``.
        """


class ReadFrame:
    """Reads one frame of one layer; the background plate with the first."""

    def __init__(
        self,
        source: Source,
        name: str,
        entry: Mapping[str, Any],
        plate: Mapping[str, Any] | None,
    ) -> None:
        self.source, self.name, self.entry, self.plate = source, name, entry, plate
        self.dtype = np.dtype(entry["dtype"])
        self._packing: codecs.Packing | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_packing": None}

    def packing(self) -> codecs.Packing:
        """How the layer is packed."""
        if self._packing is None:
            self._packing = document.packing_of(
                self.source.url,
                self.name,
                self.entry,
                self.plate,
                lambda path: self.source.read(path, ..., path),
            )
        return self._packing

    def __call__(self, i: int) -> Array:
        """Frame i, unpacked."""
        what = f"frame {i} of layer {self.name!r}"
        stored = self.source.read(f"layer/{self.name}", i, what)
        return self.packing().unpack(stored, self.dtype)


def restore(group: Any, where: str, header: dict[str, Any], source: Source) -> Rollout:
    """The rollout of an open group: its state now, checked; frames and contacts when asked for.

    Args:
        group: arrays by path, each with ``shape`` and ``dtype``, read by slicing.
        where: name for messages.
        header: the group's checked header.
        source: reads the same arrays later.

    Raises:
        UserError: an array departs from the header.
    """

    def load(name: str) -> Array:
        entry = header["arrays"][name]
        _same(group[name], where, name, entry)
        return np.ascontiguousarray(group[name][...])

    def later(name: str) -> Array:
        return source.read(name, ..., name)

    layers: dict[str, FrameArray] = {}
    for name, entry in document.layer_entries(where, header):
        dtype, shape = np.dtype(entry["dtype"]), tuple(entry["shape"])
        stored = group[f"layer/{name}"]
        if stored.shape != shape or stored.dtype != document.stored_dtype(entry):
            raise document.damaged(where, f"layer {name!r} is {stored.dtype} {stored.shape}")
        plate = header["arrays"].get(f"plate/{name}")
        layers[name] = LazyLayer(ReadFrame(source, name, entry, plate), shape, dtype)
    for name in PATHS.values():
        _same(group[name], where, name, header["arrays"][name])
    return document.restore(where, header, load, later, layers)


def _same(array: Any, where: str, name: str, entry: Mapping[str, Any]) -> None:
    # What is allocated is what the file says, so that is compared before anything is read.
    if list(array.shape) != entry["shape"] or array.dtype != np.dtype(entry["dtype"]):
        raise document.damaged(where, f"{name} is {array.dtype} {array.shape}")
