"""The colour frames of a video as a picture layer, decoded when they are asked for.

Frames in ascending order cost one decoding each. A step back begins at the file's start again, and
decodes what lies before without making pictures of it: more key frames would make that faster, and
the file larger. What shall be read in any order is better kept as the lossless layer ``rgb``.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.datasets import video
from wmeval.datasets.document import damaged
from wmeval.datasets.lazy import LazyLayer
from wmeval.datasets.location import Location, locate
from wmeval.errors import UserError

_MAX_BYTES = 1 << 30


def film_layer(url: str | Path, frames: int, size: tuple[int, int]) -> LazyLayer:
    """A video's frames, sliced like any picture layer.

    Args:
        url: the mp4 file, or its fsspec URL.
        frames: number of frames F that it must hold.
        size: width and height [px] that it must have.

    Returns:
        (F, H, W, 3) uint8 sRGB. Slicing raises `UserError` where the file is missing, cut or of
        another size.
    """
    width, height = size
    return LazyLayer(_Film(locate(url).url, size), (frames, height, width, 3), "uint8")


class _Film:
    """Decodes one frame after the other; a frame before the last one begins anew."""

    def __init__(self, url: str, size: tuple[int, int]) -> None:
        self.url, self.size = url, size
        self._at = -1
        self._frames: Iterator[Callable[[], NDArray[np.uint8]]] = iter(())
        self._last: NDArray[np.uint8] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_at": -1, "_frames": iter(()), "_last": None}

    def __call__(self, i: int) -> NDArray[np.uint8]:
        if i < self._at or self._last is None:
            self._frames, self._at = self._open(), -1
        if self._at < i:
            self._last = None  # Until the frame is there: the next call begins anew.
            frame = next(islice(self._frames, i - self._at - 1, None), None)
            if frame is None:
                raise damaged(self.url, f"it ends before frame {i}")
            picture = frame()
            if picture.shape[:2] != self.size[::-1]:
                found = f"{picture.shape[1]}x{picture.shape[0]}"
                raise damaged(self.url, f"its frames are {found} px, not {self.size}")
            self._last, self._at = picture, i
        assert self._last is not None
        return self._last

    def _open(self) -> Iterator[Callable[[], NDArray[np.uint8]]]:
        place = locate(self.url)
        if place.path is not None:
            return video.iter_pictures(place.path)
        folder, name = self.url.rsplit("/", 1)
        content = locate(folder).get(name, limit=_MAX_BYTES)
        if content is None:
            raise UserError(f"{self.url}: there is no such file.")
        return _from_memory(content)


def _from_memory(content: bytes) -> Iterator[Callable[[], NDArray[np.uint8]]]:
    # The reader wants a file by name.
    with tempfile.TemporaryDirectory(prefix="wmeval-") as folder:
        local = Path(folder, "film.mp4")
        local.write_bytes(content)
        yield from video.iter_pictures(local)


def write_film(
    place: Location, frames: Iterable[NDArray[Any]], fps: Fraction, *, crf: int = 18
) -> None:
    """Write a video at a place, local or not, whole or not at all; see `video.write_mp4`.

    Raises:
        UserError: as `wmeval.datasets.video.write_mp4`; or the place fails.
    """
    if place.path is not None:
        video.write_mp4(place.path, frames, fps, crf=crf)
        return
    with tempfile.TemporaryDirectory(prefix="wmeval-") as folder:
        local = Path(folder, "film.mp4")
        video.write_mp4(local, frames, fps, crf=crf)
        place.write([local.read_bytes()])
