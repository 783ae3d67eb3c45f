"""Does the picture move as the reference moves: relative end-point error and direction of flow.

Sources: WMEval, appendix "Action Controllability" (Ground Truth RAFT) and its pipeline details. The
estimator of the flow is not this module's matter: fields come from the exact renderer labels, from
classical flow or from a learned network, and results name which.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.clock import nearest_earlier

Flow = NDArray[Any]

SAMPLE_RATE_HZ = Fraction(4)
MAXIMUM_FRAMES = 32
LEAST_MOTION_PX = 0.5
EPSILON = 1e-8


def sampled_frames(
    times: Sequence[Fraction],
    *,
    rate: Fraction = SAMPLE_RATE_HZ,
    maximum: int = MAXIMUM_FRAMES,
) -> tuple[int, ...]:
    """Indices of frames nearest to k / rate, at most ``maximum`` of them, without repeats.

    WMEval, RAFT controllability pipeline: 4 Hz by timestamp, at most 32 frames; pairs are adjacent
    samples. A rate above the clip's own takes every frame.
    """
    if not times:
        return ()
    out: list[int] = []
    k = 0
    while len(out) < maximum and times[0] + k / rate <= times[-1]:
        index = nearest_earlier(tuple(times), times[0] + k / rate)
        if not out or index > out[-1]:
            out.append(index)
        k += 1
    return tuple(out)


def compose(first: Flow, second: Flow) -> Flow:
    """Flow a -> c from flows a -> b and b -> c, (H, W, 2) [px].

    f_ac(p) = f_ab(p) + f_bc(p + f_ab(p)), the second sampled bilinearly; NaN where p leaves the
    picture or meets a NaN. Displacements at 4 Hz reach hundreds of pixels, beyond what classical
    estimators find in one go: they are composed from adjacent frames.
    """
    height, width = first.shape[:2]
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    tx, ty = x + first[..., 0], y + first[..., 1]
    inside = (tx >= 0) & (ty >= 0) & (tx <= width - 1) & (ty <= height - 1)  # False for NaN
    tx, ty = np.where(inside, tx, 0.0), np.where(inside, ty, 0.0)
    x0 = np.minimum(tx.astype(np.int64), max(width - 2, 0))
    y0 = np.minimum(ty.astype(np.int64), max(height - 2, 0))
    x1, y1 = np.minimum(x0 + 1, width - 1), np.minimum(y0 + 1, height - 1)
    wx, wy = (tx - x0)[..., None], (ty - y0)[..., None]

    def part(weight: NDArray[np.float64], rows: NDArray[np.int64], cols: NDArray[np.int64]) -> Flow:
        # A neighbour of weight 0 must not spread its NaN.
        return np.where(weight > 0, weight * second[rows, cols], 0.0)

    sampled = (
        part((1 - wx) * (1 - wy), y0, x0)
        + part(wx * (1 - wy), y0, x1)
        + part((1 - wx) * wy, y1, x0)
        + part(wx * wy, y1, x1)
    )
    out: Flow = np.where(inside[..., None], first + sampled, np.nan)
    return out


def compose_all(flows: Iterable[Flow]) -> Flow:
    """Compose consecutive flows into one.

    Raises:
        ValueError: no flow.
    """
    total: Flow | None = None
    for flow in flows:
        total = flow if total is None else compose(total, flow)
    if total is None:
        raise ValueError("compose_all: no flow")
    return total


def dynamic_mask(reference: Flow, *, least: float = LEAST_MOTION_PX) -> NDArray[np.bool_]:
    """M_t = {p : |f_ref(p)| >= q75 of |f_ref| and >= ``least`` px}, (H, W).

    WMEval, "Dynamic-region mask"; the second condition is ours: with exact flow and a still camera
    q75 is 0 and the mask would be the whole picture. Pixels without a reference flow are out.
    """
    size = np.hypot(reference[..., 0], reference[..., 1])
    known = np.isfinite(size)
    if not known.any():
        return np.zeros(size.shape, bool)
    threshold = max(float(np.quantile(size[known], 0.75)), least)
    mask: NDArray[np.bool_] = known & (np.where(known, size, 0.0) >= threshold)
    return mask


@dataclass(frozen=True)
class FlowScore:
    """A number over flow pairs.

    Attributes:
        value: mean over pairs of the mean over each pair's mask; NaN when no pair could be scored.
        pairs: pairs that entered.
        empty: pairs whose mask is empty: nothing moved in the reference.
        pixels: mask pixels that entered, over all pairs.
        coverage: measured share of the mask pixels in [0, 1]; NaN when all masks are empty.
    """

    value: float
    pairs: int
    empty: int
    pixels: int
    coverage: float


def _score(
    candidate: Sequence[Flow], reference: Sequence[Flow], least: float, cosine: bool
) -> FlowScore:
    if len(candidate) != len(reference):
        raise ValueError(f"{len(candidate)} candidate flows but {len(reference)} reference flows")
    means: list[float] = []
    empty = pixels = wanted = 0
    for c, r in zip(candidate, reference, strict=True):
        if c.shape != r.shape:
            raise ValueError(f"flows of one size are wanted; got {c.shape} and {r.shape}")
        mask = dynamic_mask(r, least=least)
        if not mask.any():
            empty += 1
            continue
        wanted += int(mask.sum())
        mask &= np.isfinite(c).all(axis=-1)
        if not mask.any():
            continue
        fc, fr = c[mask].astype(np.float64), r[mask].astype(np.float64)
        length = np.linalg.norm(fr, axis=1)
        if cosine:
            terms = (fc * fr).sum(axis=1) / (np.linalg.norm(fc, axis=1) * length + EPSILON)
        else:
            terms = np.linalg.norm(fc - fr, axis=1) / (length + EPSILON)
        means.append(float(terms.mean()))
        pixels += int(mask.sum())
    value = float(np.mean(means)) if means else float("nan")
    return FlowScore(value, len(means), empty, pixels, pixels / wanted if wanted else float("nan"))


def relative_epe(
    candidate: Sequence[Flow], reference: Sequence[Flow], *, least: float = LEAST_MOTION_PX
) -> FlowScore:
    """RelEPE_dyn = mean_t mean_{M_t} |f_c - f_r| / (|f_r| + 1e-8).

    WMEval, appendix Action Controllability. Unit 1, range [0, inf), lower is better; 1 is what a
    still picture gets. Pairs with an empty mask are left out and counted; NaN when all are (ours).

    Args:
        candidate: flows (H, W, 2) [px] of the sampled pairs; NaN where not measured.
        reference: flows of the same pairs, same size.
        least: the mask's least motion [px].
    """
    return _score(candidate, reference, least, cosine=False)


def cosine_similarity(
    candidate: Sequence[Flow], reference: Sequence[Flow], *, least: float = LEAST_MOTION_PX
) -> FlowScore:
    """CosSim_dyn = mean_t mean_{M_t} f_c . f_r / (|f_c| |f_r| + 1e-8).

    WMEval, appendix Action Controllability. Unit 1, range [-1, 1], higher is better; 0 is what a
    still picture gets. Masks, left-outs and arguments as in `relative_epe`.
    """
    return _score(candidate, reference, least, cosine=True)
