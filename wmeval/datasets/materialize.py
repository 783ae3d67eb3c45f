"""Labels that readers derive, computed once and stored beside the others.

They say nothing new: a clip reads the same, to the bit, with them and without. They spare readers
the computing, and readers without this package have them at all.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.datasets import clip_labels
from wmeval.datasets.clip import ClipRecord
from wmeval.datasets.derived import flow_layer
from wmeval.datasets.lazy import LazyLayer
from wmeval.datasets.rollout import FrameArray, Rollout
from wmeval.errors import UserError
from wmeval.layers import LAYERS

ALL = "all"

Array = NDArray[Any]


def _flow(clip: ClipRecord) -> FrameArray:
    layer = flow_layer(clip.rollout)
    return LazyLayer(layer.__getitem__, layer.shape, layer.dtype)


def _normals(clip: ClipRecord) -> FrameArray:
    return LazyLayer(clip.normals, (*clip.depth.shape, 3), LAYERS["normals"].dtype)


def _amodal_masks(clip: ClipRecord) -> FrameArray:
    # As few bytes as hold the actors, until they are written.
    small = np.min_scalar_type(2 ** len(clip.actors) - 1)
    bits = [clip_labels.pack_masks(m).astype(small) for m in clip.each_amodal_mask()]
    dtype = np.dtype(LAYERS["amodal_masks"].dtype)
    return LazyLayer(lambda i: bits[i].astype(dtype), clip.depth.shape, dtype)


def _boxes(clip: ClipRecord) -> dict[str, Array]:
    names = [actor.name for actor in clip.actors]
    found = [clip.boxes(i) for i in range(len(clip))]
    return {clip_labels.BOXES: clip_labels.pack_boxes(found, names)}


def _tracks(clip: ClipRecord) -> dict[str, Array]:
    return clip_labels.pack_tracks(clip.tracks())


_LAYERS: dict[str, Callable[[ClipRecord], FrameArray]] = {
    "flow": _flow,
    "normals": _normals,
    "amodal_masks": _amodal_masks,
}
_TABLES: dict[str, Callable[[ClipRecord], dict[str, Array]]] = {
    "tracks": _tracks,
    "boxes": _boxes,
}
NAMES = ("flow", "normals", "tracks", "boxes", "amodal_masks")
"""What can be stored; each is a method of `ClipRecord`."""


def chosen(names: Sequence[str]) -> tuple[str, ...]:
    """Names in the order of `NAMES`; "all" stands for every one.

    Raises:
        UserError: an unknown name.
    """
    unknown = [name for name in names if name not in (*NAMES, ALL)]
    if unknown:
        raise UserError(
            f"cannot materialize {unknown[0]!r}: choose from {', '.join((*NAMES, ALL))}"
        )
    return NAMES if ALL in names else tuple(name for name in NAMES if name in names)


def materialized(rollout: Rollout, names: Sequence[str]) -> Rollout:
    """A clip that holds labels which its readers would derive.

    Flow is that of each frame to the next (the last frame's is NaN), tracks are those of
    `ClipRecord.tracks` without arguments, amodal masks what the raster renderer draws.

    Args:
        rollout: a clip with depth and ids, its pictures as they will be stored.
        names: of `NAMES`, or "all".

    Returns:
        The clip; flow and normals are computed when they are written.

    Raises:
        UserError: an unknown name, no clip, or depth or ids missing.
    """
    wanted = chosen(names)
    if not wanted:
        return rollout
    clip = ClipRecord(rollout)
    layers = {
        name: _LAYERS[name](clip)
        for name in wanted
        if name in _LAYERS and clip.stored(name) is None
    }
    tables = {k: v for name in wanted if name in _TABLES for k, v in _TABLES[name](clip).items()}
    frames = replace(clip.frames, layers={**clip.frames.layers, **layers})
    return replace(rollout, frames=frames, labels={**rollout.labels, **tables})
