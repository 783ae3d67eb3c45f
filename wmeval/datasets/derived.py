"""Layers that follow from stored ones and take no space: forward flow, directions of shadows."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wmeval.datasets.lazy import LazyLayer
from wmeval.datasets.rollout import Rollout
from wmeval.errors import UserError
from wmeval.layers import DERIVED, LAYERS
from wmeval.sim.protocol import RenderState, render_state


class _Frame:
    """Computes one frame of a layer."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout

    def _depth(self, i: int) -> NDArray[np.float32]:
        frames = self.rollout.frames
        assert frames is not None
        return np.asarray(frames.layers["depth"][i])

    def _instant(self, i: int) -> RenderState:
        frames, log = self.rollout.frames, self.rollout.log
        assert frames is not None
        camera = log.cameras.camera(frames.camera)
        return render_state(log, int(frames.state_index[i]), self.rollout.scene, camera)


class _Flow(_Frame):
    """Computes one frame of flow."""

    def __call__(self, i: int) -> NDArray[np.float32]:
        from wmeval.sim.render import labels

        frames = self.rollout.frames
        assert frames is not None
        depth = frames.layers["depth"][i]
        if i + 1 == len(frames):
            return LAYERS["flow"].empty(*depth.shape)
        return labels.flow(
            depth,
            frames.layers["ids"][i],
            self._instant(i),
            self._instant(i + 1),
            labels.instances(self.rollout.scene),
        )


class _ShadowAzimuth(_Frame):
    """Computes one frame of directions of shadows."""

    def __call__(self, i: int) -> NDArray[np.float32]:
        from wmeval.sim.render import shadows

        return shadows.image_azimuth(self._depth(i), self._instant(i))


def flow_layer(rollout: Rollout) -> LazyLayer:
    """Forward flow of a rollout's frames, computed when it is sliced.

    Returns:
        (F, H, W, 2) float32 [px]: displacement from each frame to the next, from depth, ids and the
        recorded poses, as `wmeval.sim.render.labels.flow` defines it. The last frame is NaN.

    Raises:
        UserError: the rollout has no depth or no ids.
    """
    return _lazy("flow", _Flow, rollout)


def shadow_azimuth_layer(rollout: Rollout) -> LazyLayer:
    """Directions in which shadows fall in a rollout's frames, computed when it is sliced.

    Returns:
        (F, H, W) float32 [rad], as `wmeval.sim.render.shadows.image_azimuth` defines them.

    Raises:
        UserError: the rollout has no depth.
    """
    return _lazy("shadow_azimuth", _ShadowAzimuth, rollout)


_MAKERS: dict[str, Callable[[Rollout], LazyLayer]] = {
    "flow": flow_layer,
    "shadow_azimuth": shadow_azimuth_layer,
}


def layers_of(rollout: Rollout) -> dict[str, LazyLayer]:
    """All that follows from a rollout's stored layers and is not stored itself."""
    held = {} if rollout.frames is None else rollout.frames.layers
    return {
        name: make(rollout)
        for name, make in _MAKERS.items()
        if name not in held and all(n in held for n in DERIVED[name])
    }


def _lazy(name: str, kind: type[_Flow] | type[_ShadowAzimuth], rollout: Rollout) -> LazyLayer:
    frames, layer = rollout.frames, LAYERS[name]
    held = {} if frames is None else frames.layers
    missing = [n for n in DERIVED[name] if n not in held]
    if missing:
        wanted = ",".join(DERIVED[name])
        raise UserError(f"{name} needs the layer {missing[0]!r}: record the rollout with {wanted}.")
    count, height, width = held["depth"].shape
    shape = (count, *layer.shape(height, width))
    return LazyLayer(kind(rollout), shape, layer.dtype, derived=True)
