"""Lossless packing of picture layers, chosen per layer by trial and recorded in the file.

A still camera sees the same surfaces frame after frame: the exclusive or of a frame's bits with a
background plate is zero nearly everywhere, and what is zero costs nothing. For a moving camera the
plate says nothing and the xor only spoils what a compressor could find, so those layers are stored
as they are. Both are exact for every bit pattern, infinities and NaN included.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wmeval.datasets.rollout import FrameArray, Frames
from wmeval.records import CameraLog

Array = NDArray[Any]

SAMPLES = 9
"""Frames looked at for the plate (odd, so that the median of bits is one of them)."""

_UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


@dataclass(frozen=True, eq=False)
class Packing:
    """How one layer is stored.

    Attributes:
        codec: "bits_xor" or "bytes".
        plate: bits of the background, one frame of unsigned integers; None for "bytes".
        trial: what decided: compressed bytes of the sampled frames by codec.
    """

    codec: Literal["bits_xor", "bytes"]
    plate: Array | None
    trial: dict[str, int]

    def stored_dtype(self, dtype: np.dtype[Any]) -> np.dtype[Any]:
        """Dtype on disk of a layer's dtype."""
        return bits_dtype(dtype) if self.plate is not None else dtype

    def pack(self, frames: Array) -> Array:
        """Frames (..., H, W[, C]) to what is stored."""
        if self.plate is None:
            return np.ascontiguousarray(frames)
        return np.asarray(bits(frames) ^ self.plate)

    def unpack(self, stored: Array, dtype: np.dtype[Any]) -> Array:
        """The inverse of `pack`."""
        return stored if self.plate is None else np.asarray(stored ^ self.plate).view(dtype)


def bits_dtype(dtype: Any) -> np.dtype[Any]:
    """Unsigned integer of the same width."""
    return np.dtype(_UNSIGNED[np.dtype(dtype).itemsize])


def bits(array: Array) -> Array:
    """The same bits as unsigned integers."""
    return np.ascontiguousarray(array).view(bits_dtype(array.dtype))


def is_still(frames: Frames, cameras: CameraLog) -> bool:
    """The camera stands still over all frames, to the bit."""
    if len(frames) < 2:
        return False
    camera = cameras.camera(frames.camera)
    poses = cameras.T_world_camera[frames.state_index, camera]
    fov = cameras.fov_y[frames.state_index, camera]
    return bool(
        (poses == poses[0]).all() and (fov == fov[0]).all() and (frames.K[0] == frames.K).all()
    )


def choose(layer: FrameArray, *, still: bool, cost: Callable[[Array], int]) -> Packing:
    """Choose the packing of a layer.

    Args:
        layer: (F, H, W[, C]).
        still: the camera does not move.
        cost: compressed bytes of one frame as the back end will compress it.

    Returns:
        ``bits_xor`` where the camera is still and the trial, plate included, comes out smaller.
    """
    count = len(layer)
    if not still or count < 2 or 0 in layer.shape:
        return Packing("bytes", None, {})
    index = np.unique(np.linspace(0, count - 1, min(SAMPLES, count)).astype(int))
    if len(index) % 2 == 0:
        index = index[:-1]
    sample = np.stack([np.asarray(layer[int(i)]) for i in index])
    middle = len(index) // 2
    plate = np.ascontiguousarray(np.partition(bits(sample), middle, axis=0)[middle])
    xor = Packing("bits_xor", plate, {})
    # Three frames tell: compressing all nine both ways would cost more than it saves.
    tried = sample[[0, middle, -1]]
    plain = sum(cost(frame) for frame in tried)
    packed = sum(cost(xor.pack(frame)) for frame in tried)
    trial = {"frames": len(tried), "bytes": plain, "bits_xor": packed, "plate": cost(plate)}
    share = len(tried) / count
    if packed + share * trial["plate"] < plain:
        return Packing("bits_xor", plate, trial)
    return Packing("bytes", None, trial)


def blocks(layer: FrameArray, limit: int) -> Iterator[tuple[int, Array]]:
    """Runs of frames of at most ``limit`` bytes (one frame at least), with their first index."""
    count = len(layer)
    frame_bytes = int(np.prod(layer.shape[1:], dtype=np.int64)) * layer.dtype.itemsize
    step = max(1, limit // max(frame_bytes, 1))
    for start in range(0, count, step):
        yield start, np.asarray(layer[start : start + step])
