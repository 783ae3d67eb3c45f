"""How wrong the recorded light is: where the sun stands, and what sun and sky send (ours).

Of records, not of pixels: `wmeval.records.LightLog` holds the truth that shadows and shading follow
from. The published lighting metrics measure shadows in pixels; they are rows of `NEEDS_WEIGHTS`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]


def direction_errors(candidate: F8, reference: F8) -> F8:
    """Angles (T,) [deg] in [0, 180] between directions (T, 3), which need not be unit vectors.

    NaN where a component is not finite or a vector has no length.

    Raises:
        ValueError: not both (T, 3).
    """
    a, b = np.asarray(candidate, np.float64), np.asarray(reference, np.float64)
    if a.ndim != 2 or a.shape != b.shape or a.shape[1] != 3:
        raise ValueError(f"two series (T, 3) are wanted; got {a.shape} and {b.shape}")
    across, along = np.linalg.norm(np.cross(a, b), axis=1), np.sum(a * b, axis=1)
    # The arc tangent of both keeps small angles exact, and equal vectors at 0.
    angle = np.degrees(np.arctan2(across, along))
    known = (np.linalg.norm(a, axis=1) > 0) & (np.linalg.norm(b, axis=1) > 0)
    return np.where(known, angle, np.nan)


def direction_rmse(candidate: F8, reference: F8) -> float:
    """Root mean square over frames of the angle between directions (T, 3).

    Ours. Unit deg, range [0, 180], lower is better. Frames without a direction in both are left
    out; NaN when none is left.
    """
    errors = direction_errors(candidate, reference)
    known = errors[np.isfinite(errors)]
    return float(np.sqrt(np.mean(known**2))) if len(known) else float("nan")


def relative_light_error(candidate: F8, reference: F8) -> float:
    """|c^ - c| / |c|, both norms over all frames and channels at once.

    Ours. Unit %, range [0, inf), lower is better. Over all frames at once, not frame by frame: a
    night's light is next to nothing, and would decide a mean of ratios. Frames with a value that is
    not finite are left out; NaN when none is left or the reference sends no light in them.

    Args:
        candidate: (T, ...) linear RGB times strength.
        reference: of the same shape.

    Raises:
        ValueError: shapes differ.
    """
    a, b = np.asarray(candidate, np.float64), np.asarray(reference, np.float64)
    if a.shape != b.shape or a.ndim < 2:
        raise ValueError(f"two series (T, ...) of one shape are wanted; got {a.shape}, {b.shape}")
    a, b = a.reshape(len(a), -1), b.reshape(len(b), -1)
    known = np.isfinite(a).all(axis=1) & np.isfinite(b).all(axis=1)
    size = float(np.linalg.norm(b[known]))
    return 100.0 * float(np.linalg.norm(a[known] - b[known])) / size if size else float("nan")
