"""Layers that follow from stored ones and take no space: forward flow."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wmeval.datasets.lazy import LazyLayer
from wmeval.datasets.rollout import Rollout
from wmeval.errors import UserError
from wmeval.layers import DERIVED, LAYERS
from wmeval.sim.protocol import RenderState, render_state

NEEDED = DERIVED["flow"]


class _Flow:
    """Computes one frame of flow."""

    def __init__(self, rollout: Rollout) -> None:
        self.rollout = rollout

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

    def _instant(self, i: int) -> RenderState:
        frames, log = self.rollout.frames, self.rollout.log
        assert frames is not None
        camera = log.cameras.camera(frames.camera)
        return render_state(log, int(frames.state_index[i]), self.rollout.scene, camera)


def flow_layer(rollout: Rollout) -> LazyLayer:
    """Forward flow of a rollout's frames, computed when it is sliced.

    Returns:
        (F, H, W, 2) float32 [px]: displacement from each frame to the next, from depth, ids and the
        recorded poses, as `wmeval.sim.render.labels.flow` defines it. The last frame is NaN.

    Raises:
        UserError: the rollout has no depth or no ids.
    """
    frames = rollout.frames
    missing = [n for n in NEEDED if frames is None or n not in frames.layers]
    if frames is None or missing:
        raise UserError(f"flow needs the layer {missing[0]!r}: record the rollout with depth,ids.")
    shape = (*frames.layers["depth"].shape, 2)
    return LazyLayer(_Flow(rollout), shape, LAYERS["flow"].dtype, derived=True)
