"""One row per picture layer: what a renderer may emit and how files keep it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError

TimeRule = Literal["never", "nearest", "linear"]


@dataclass(frozen=True)
class Layer:
    """A picture layer.

    Attributes:
        name: key in ``render`` results and in files.
        dtype: numpy dtype name.
        channels: 0 for (H, W), else the last axis of (H, W, channels).
        fill: value where nothing is seen.
        unit: SI unit, "px" or "1".
        codec: lossless packing on disk: ``bits_xor`` (exclusive or with a background plate, for
            still cameras), ``bytes`` (compressed as it is), ``h264`` (colour only, lossy).
        time_rule: how a value between two frames may be had.
        doc: one line for tables.
    """

    name: str
    dtype: str
    channels: int
    fill: float
    unit: str
    codec: Literal["bits_xor", "bytes", "h264"]
    time_rule: TimeRule
    doc: str

    def shape(self, height: int, width: int) -> tuple[int, ...]:
        """Array shape of one frame."""
        return (height, width, self.channels) if self.channels else (height, width)

    def empty(self, height: int, width: int) -> NDArray[Any]:
        """A frame of nothing."""
        return np.full(self.shape(height, width), self.fill, np.dtype(self.dtype))


LAYERS: dict[str, Layer] = {
    layer.name: layer
    for layer in (
        Layer("rgb", "uint8", 3, 0, "1", "h264", "linear", "colour, sRGB"),
        Layer("depth", "float32", 0, float("inf"), "m", "bits_xor", "nearest",
              "planar depth along the camera's z axis; +inf where nothing is hit"),
        Layer("ids", "uint16", 0, 0, "1", "bits_xor", "nearest",
              "instance of the nearest opaque surface (seen through glass); 0 is background"),
        Layer("glass_ids", "uint16", 0, 0, "1", "bits_xor", "nearest",
              "instance of the nearest glass surface in front of `ids`; 0 is none"),
        Layer("normals", "float32", 3, 0.0, "1", "bytes", "nearest",
              "unit surface normal in the world frame; zero where nothing is hit"),
        Layer("shadow_ids", "uint16", 0, 0, "1", "bits_xor", "nearest",
              "instance that keeps the sun off this sunward surface; 0 is lit or turned away"),
        Layer("shadow_masks", "uint64", 0, 0, "1", "bits_xor", "nearest",
              "bit i - 1: instance i (1..64), alone in the world, keeps the sun off this surface"),
        Layer("shadow_azimuth", "float32", 0, float("nan"), "rad", "bytes", "nearest",
              "image direction (from x to y) in which shadows fall on level ground; NaN at night"),
        Layer("flow", "float32", 2, float("nan"), "px", "bytes", "never",
              "forward displacement to the next frame; NaN where it has no target"),
        Layer("amodal_masks", "uint64", 0, 0, "1", "bits_xor", "nearest",
              "bit i: actor i (0..63) of a clip would cover this pixel if nothing stood before it"),
    )
}  # fmt: skip

DERIVED = {
    "flow": ("depth", "ids"),
    "shadow_azimuth": ("depth",),
    "amodal_masks": ("ids",),
}
"""Layers computed when a rollout is read: name to the layers that they follow from."""

RENDERED = ("rgb", "depth", "ids", "glass_ids", "normals", "shadow_ids", "shadow_masks")


def layers_of(names: str | tuple[str, ...] | list[str]) -> tuple[Layer, ...]:
    """Rows of layers by name ("rgb,depth" or a sequence).

    Raises:
        UserError: an unknown layer, naming the known ones.
    """
    wanted = [n for n in names.split(",") if n] if isinstance(names, str) else list(names)
    unknown = [n for n in wanted if n not in LAYERS]
    if unknown:
        raise UserError(f"unknown layer {unknown[0]!r}: choose from {', '.join(LAYERS)}")
    return tuple(LAYERS[n] for n in dict.fromkeys(wanted))


def stored_layers(names: str | tuple[str, ...] | list[str]) -> tuple[str, ...]:
    """Names of the layers to keep in a file: those asked for, less the derived ones.

    Raises:
        UserError: an unknown layer, or a derived one without what it follows from.
    """
    wanted = tuple(layer.name for layer in layers_of(names))
    for name in wanted:
        missing = [n for n in DERIVED.get(name, ()) if n not in wanted]
        if missing:
            raise UserError(
                f"layer {name!r} is derived from {', '.join(DERIVED[name])} when a rollout is "
                f"read: keep {' and '.join(missing)} too"
            )
    return tuple(name for name in wanted if name not in DERIVED)
