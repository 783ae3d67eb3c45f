"""Where a body went: final displacement, dynamic time warping, root mean square error.

Sources: WMEval, appendix "Kinematics and Mechanics", Trajectory Fidelity. Positions are (T, D) in
metres (or in pixels: the unit of the result is the unit of the input); a row with a non-finite
component is a frame in which nothing was measured.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]


@dataclass(frozen=True)
class Warp:
    """A dynamic-time-warping alignment.

    Attributes:
        total: sum of the Euclidean distances along the best path [input unit].
        path: the best path, index pairs (candidate, reference) from the first to the last.
        mean: total / len(path) [input unit]: the normalised value.
    """

    total: float
    path: tuple[tuple[int, int], ...]
    mean: float


def jointly_valid(candidate: F8, reference: F8) -> NDArray[np.bool_]:
    """Frames (T,) in which every component of both tracks (T, D) is finite.

    Raises:
        ValueError: the tracks are not both (T, D) of one shape.
    """
    a, b = np.asarray(candidate, np.float64), np.asarray(reference, np.float64)
    if a.ndim != 2 or a.shape != b.shape:
        raise ValueError(f"two tracks of one shape (T, D) are wanted; got {a.shape} and {b.shape}")
    valid: NDArray[np.bool_] = np.isfinite(a).all(axis=1) & np.isfinite(b).all(axis=1)
    return valid


def final_displacement(candidate: F8, reference: F8) -> float:
    """FDE = |x^_T - x_T|, T the last frame of the shared valid window.

    WMEval, appendix Kinematics and Mechanics (FDE). Unit of the input, range [0, inf), lower is
    better. The shared valid window ends at the last frame in which both are measured; NaN when
    there is none. Report the coverage beside it: a track that is lost early ends early.
    """
    valid = np.flatnonzero(jointly_valid(candidate, reference))
    if not len(valid):
        return float("nan")
    last = int(valid[-1])
    return float(np.linalg.norm(np.asarray(candidate)[last] - np.asarray(reference)[last]))


def distances(candidate: F8, reference: F8) -> F8:
    """|x^_t - x_t| by frame, (T,); NaN where either is not measured."""
    valid = jointly_valid(candidate, reference)
    out = np.full(len(valid), np.nan)
    difference = np.asarray(candidate, np.float64)[valid] - np.asarray(reference)[valid]
    out[valid] = np.linalg.norm(difference, axis=1)
    return out


def rmse(candidate: F8, reference: F8) -> float:
    """Root of the mean over jointly valid frames of |x^_t - x_t|^2 (GAUGE eq. 1, WMEval's frames).

    Unit of the input, range [0, inf), lower is better; NaN without a jointly valid frame.
    """
    error = distances(candidate, reference)
    error = error[np.isfinite(error)]
    return float(np.sqrt(np.mean(error**2))) if len(error) else float("nan")


def warp(candidate: F8, reference: F8) -> Warp:
    """DTW: the monotone path that minimises the SUM of Euclidean distances.

    WMEval, appendix Kinematics and Mechanics (DTW). The path starts at (0, 0), ends at the last
    frames and steps by (1, 1), (1, 0) or (0, 1); ties prefer (1, 1), then (1, 0). Frames that are
    not measured are left out of either track beforehand, so that the tracks (N, D) and (M, D) may
    differ in length. Unit of the input, range [0, inf), lower is better.

    The normalised value divides the minimal sum by the length of ITS path; minimising the quotient
    itself is another problem and is not done.

    Returns:
        The alignment; ``Warp(nan, (), nan)`` when a track holds no measured frame.

    Raises:
        ValueError: the tracks are not (N, D) and (M, D).
    """
    a, b = np.asarray(candidate, np.float64), np.asarray(reference, np.float64)
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(f"tracks (N, D) and (M, D) are wanted; got {a.shape} and {b.shape}")
    rows = np.flatnonzero(np.isfinite(a).all(axis=1))
    cols = np.flatnonzero(np.isfinite(b).all(axis=1))
    if not len(rows) or not len(cols):
        return Warp(float("nan"), (), float("nan"))
    a, b = a[rows], b[cols]
    cost = np.linalg.norm(a[:, None, :] - b[None, :, :], axis=-1)
    total = _accumulate(cost)
    path = _trace(total)
    value = float(total[-1, -1])
    return Warp(value, tuple((int(rows[i]), int(cols[j])) for i, j in path), value / len(path))


def _accumulate(cost: F8) -> F8:
    """Least sums of costs over monotone paths from (0, 0) to every cell, (N, M)."""
    n, m = cost.shape
    total = np.full((n + 1, m + 1), np.inf)
    total[0, 0] = 0.0
    # Cells of one anti-diagonal depend on the two before it alone, so each is one vector operation.
    for diagonal in range(n + m - 1):
        i = np.arange(max(0, diagonal - m + 1), min(n, diagonal + 1))
        j = diagonal - i
        best = np.minimum(np.minimum(total[i, j], total[i, j + 1]), total[i + 1, j])
        total[i + 1, j + 1] = cost[i, j] + best
    return total[1:, 1:]


def _trace(total: F8) -> list[tuple[int, int]]:
    i, j = total.shape[0] - 1, total.shape[1] - 1
    path = [(i, j)]
    while i or j:
        # Listed in the order of preference: min() keeps the first of equals.
        steps = [(i - 1, j - 1), (i - 1, j), (i, j - 1)]
        i, j = min((s for s in steps if min(s) >= 0), key=lambda s: total[s])
        path.append((i, j))
    return path[::-1]
