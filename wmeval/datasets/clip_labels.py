"""Labels that follow from the rest of a clip, as files hold them where they are stored too.

Pictures among them (flow, normals, amodal masks) are layers; boxes and tracks are arrays beside the
state, by the paths of `ARRAYS`. Each form is exact: what is unpacked is what was packed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.sim.render.labels import PixelBox, Tracks

Array = NDArray[Any]
Mask = NDArray[np.bool_]

BOXES, TRACKS = "boxes", "tracks/"
MAX_ACTORS = 64


class Described(NamedTuple):
    """What a reader without this package sees beside an array."""

    unit: str
    dims: tuple[str, ...]
    doc: str


ARRAYS: dict[str, Described] = {
    BOXES: Described(
        "px",
        ("frame", "actor", "5"),
        "x0, y0, x1, y1 (ends exclusive) and number of pixels; zeros where it is not seen",
    ),
    f"{TRACKS}pixels": Described("px", ("point", "frame", "2"), "x, y; pixel centres at +0.5"),
    f"{TRACKS}depth": Described("m", ("point", "frame"), "planar depth"),
    f"{TRACKS}position": Described("m", ("point", "frame", "3"), "in the world frame"),
    f"{TRACKS}visible": Described("1", ("point", "frame"), "the point is seen in that frame"),
    f"{TRACKS}ids": Described("1", ("point",), "instance that the point lies on"),
}
"""Stored arrays of labels by path below ``label/``."""


def pack_boxes(found: Sequence[Mapping[str, PixelBox]], names: Sequence[str]) -> NDArray[np.int32]:
    """Boxes of every frame, by actor, as (T, N, 5)."""
    out = np.zeros((len(found), len(names), 5), np.int32)
    for row, boxes in zip(out, found, strict=True):
        for number, name in enumerate(names):
            if name in boxes:
                box = boxes[name]
                row[number] = box.x0, box.y0, box.x1, box.y1, box.pixels
    return out


def unpack_boxes(rows: Array, names: Sequence[str]) -> dict[str, PixelBox]:
    """Boxes of one frame (N, 5), by actor; who is not seen has none."""
    return {
        name: PixelBox(*(int(x) for x in row))
        for name, row in zip(names, rows, strict=True)
        if row[4]
    }


def pack_tracks(tracks: Tracks) -> dict[str, Array]:
    """Arrays of tracks by path."""
    return {f"{TRACKS}{f.name}": np.asarray(getattr(tracks, f.name)) for f in fields(Tracks)}


def unpack_tracks(stored: Mapping[str, Array]) -> Tracks:
    """The inverse of `pack_tracks`."""
    return Tracks(**{f.name: stored[f"{TRACKS}{f.name}"] for f in fields(Tracks)})


def pack_masks(masks: Mask) -> NDArray[np.uint64]:
    """Masks (N, H, W) as one picture (H, W): bit i is that of actor i.

    Raises:
        UserError: more than 64 actors.
    """
    if len(masks) > MAX_ACTORS:
        raise UserError(f"amodal masks of {len(masks)} actors: files hold those of {MAX_ACTORS}")
    out = np.zeros(masks.shape[1:], np.uint64)
    for number, mask in enumerate(masks):
        out |= mask.astype(np.uint64) << np.uint64(number)
    return out


def unpack_masks(picture: Array, count: int) -> Mask:
    """The inverse of `pack_masks` for ``count`` actors."""
    return np.stack([(picture >> np.uint64(i) & np.uint64(1)).astype(bool) for i in range(count)])
