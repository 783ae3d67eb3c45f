"""How wrong a recorded liquid is: where its surface faces, and how its waves stand (ours).

Of records, not of pixels: the modal state of `wmeval.sim.drivers.slosh` ("surface_normal" and
"slosh_amplitude"). The published fluid metrics measure a liquid's mask; they are rows of
`NEEDS_WEIGHTS`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wmeval.eval.metrics.lighting import direction_rmse
from wmeval.eval.metrics.trajectory import rmse

F8 = NDArray[np.float64]


def surface_angle(candidate: F8, reference: F8) -> float:
    """Root mean square over frames of the angle between surface normals (T, 3), world frame.

    Ours. Unit deg, range [0, 180], lower is better. Frames without a normal in both are left out;
    NaN when none is left.
    """
    return direction_rmse(candidate, reference)


def amplitude_rmse(candidate: F8, reference: F8) -> float:
    """sqrt(mean_t |a^_t - a_t|^2) of the modal amplitudes (T, M): rises at the wall.

    Ours. Unit m, range [0, inf), lower is better. Frames that are not measured in both are left
    out; NaN when none is left.
    """
    return rmse(candidate, reference)
