"""Which parts of a picture a motion can change, as few rectangles of pixels. Pure numpy.

Everything here errs on the side of too much: a rectangle may hold pixels that stay as they are,
but no pixel outside of all rectangles may change by a single bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wmeval.sim.render.pieces import BALL_DARKENS, DARKENS_M, Pieces, SunView, View, extents

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Mask = NDArray[np.bool_]
Rect = tuple[int, int, int, int]
"""x0, y0, x1, y1 [px]; the ends are exclusive."""

MARGIN_PX = 2
RECT_COST_PX = 3000
"""Cost of one more rectangle, in pixels."""

_SIGNS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64)


def corners(pieces: Pieces, rotation: F8, centre: F8, chosen: I8, pad: float) -> F8:
    """Corners (N, 8, 3) [m] of the chosen pieces' boxes, grown by ``pad`` [m] on every side."""
    local = _SIGNS[None] * (pieces.half[chosen] + pad)[:, None]
    turned = np.einsum("nij,nkj->nki", rotation[chosen], local) + centre[chosen][:, None]
    return np.asarray(turned)


def outlines(points: F8, view: View) -> F8:
    """Bounds (N, 4) [px] of convex bodies given by points (N, K, 3) [m]; y runs downwards.

    A body that reaches up to the camera's plane may cover any pixel.
    """
    local = (points - view.eye) @ view.axes.T
    depth = local[..., 2]
    tangents = local[..., :2] / np.maximum(depth, 1e-9)[..., None]
    out = np.concatenate([tangents.min(axis=1), tangents.max(axis=1)], axis=1)
    return _pixels(out, (depth < view.near).any(axis=1), (depth < view.near).all(axis=1), view)


def ball_outlines(centre: F8, radius: F8, view: View) -> F8:
    """Bounds (N, 4) [px] of balls (N, 3), (N,) [m]: exact, also beside the picture's middle."""
    local = (centre - view.eye) @ view.axes.T
    depth = local[:, 2]
    reaches = depth < view.near + radius
    out = np.empty((len(centre), 4))
    for k in range(2):
        away = np.hypot(local[:, k], depth)
        with np.errstate(invalid="ignore"):
            half = np.arcsin(np.minimum(radius / np.maximum(away, 1e-9), 1.0))
        angle = np.arctan2(local[:, k], np.maximum(depth, 1e-9))
        limit = np.pi / 2 - 1e-6
        out[:, k] = np.tan(np.clip(angle - half, -limit, limit))
        out[:, k + 2] = np.tan(np.clip(angle + half, -limit, limit))
    return _pixels(out, reaches, depth < view.near - radius, view)


def piece_outlines(
    pieces: Pieces, rotation: F8, centre: F8, chosen: I8, pad: float, view: View
) -> F8:
    """Bounds (N, 4) [px] of the chosen pieces, grown by ``pad`` [m]."""
    boxes = outlines(corners(pieces, rotation, centre, chosen, pad), view)
    balls = ball_outlines(centre[chosen], pieces.radius[chosen] + pad, view)
    return np.where(pieces.ball[chosen, None], balls, boxes)


def _pixels(tangents: F8, reaches: Mask, behind: Mask, view: View) -> F8:
    size = np.array([view.width, view.height] * 2, np.float64)
    out = (tangents / np.array([*view.tangents] * 2) + 1) / 2 * size
    out[reaches] = (0, 0, view.width, view.height)
    out[behind] = (np.inf, np.inf, -np.inf, -np.inf)
    return np.asarray(out)


def shadow_outlines(
    pieces: Pieces,
    rotation: F8,
    centre: F8,
    chosen: I8,
    pad: float,
    view: View,
    sun: SunView,
    floor: F8 | None,
) -> F8:
    """Bounds (N, 4) [px] of all that the chosen pieces' shadows can touch.

    Args:
        pieces: the scene's.
        rotation: (P, 3, 3).
        centre: (P, 3) [m].
        chosen: indices of N pieces.
        pad: how much the shadow map blurs [m].
        view: of the picture.
        sun: the light's.
        floor: lower and upper corner (2, 3) [m] of the floor's upright box; None if there is none.

    A shadow that may miss the floor's top is followed far down.
    """
    ball = pieces.ball[chosen]
    box = corners(pieces, rotation, centre, chosen, pad)
    radius = pieces.radius[chosen] + pad
    lowest = np.where(ball, centre[chosen, 2] - radius, box[..., 2].min(axis=1))
    steep = max(float(sun.to_sun[2]), 1e-3)
    drift = -sun.to_sun[:2] / steep  # sideways for each metre down
    # Where a plane meets the cylinder of a ball's shadow: an ellipse of this size.
    ellipse = radius[:, None] * np.sqrt(1 + drift**2)

    def landing(height: F8) -> F8:
        """Corners (N, 8, 3) around the shadow on the plane at ``height`` (N,)."""
        run = np.maximum(box[..., 2] - height[:, None], 0.0)
        flat = box[..., :2] + drift * run[..., None]
        run = np.maximum(centre[chosen, 2] - height, 0.0)
        middle = centre[chosen, :2] + drift * run[:, None]
        square = middle[:, None] + _SIGNS[None, :, :2] * ellipse[:, None]
        flat = np.where(ball[:, None, None], square, flat)
        plane = np.broadcast_to(height[:, None, None], (*flat.shape[:2], 1))
        return np.concatenate([flat, plane], axis=2)

    deep = lowest - 100.0
    if floor is not None:
        top = np.full(len(chosen), floor[1, 2])
        land = landing(top)[..., :2]
        inside = ((land > floor[0, :2]) & (land < floor[1, :2])).all(axis=(1, 2))
        deep = np.where(inside, top, np.minimum(deep, floor[0, 2]))
    start = piece_outlines(pieces, rotation, centre, chosen, pad, view)
    end = landing(np.asarray(deep))
    # Where either reaches behind the camera, what lies between them may be anywhere.
    local = (end - view.eye) @ view.axes[2]
    some = ((local < view.near).any(axis=1) | ~np.isfinite(start).all(axis=1))[:, None]
    both = around(start, outlines(end, view))
    return np.where(some, np.array([0.0, 0, view.width, view.height]), both)


def dark_outlines(
    pieces: Pieces, rotation: F8, centre: F8, chosen: I8, pad: float, view: View
) -> F8:
    """Bounds (N, 4) [px] of the ground from which the chosen pieces take ambient light."""
    radius, ball = pieces.radius[chosen], pieces.ball[chosen]
    up = centre[chosen, 2] - pieces.stand
    lateral = np.sqrt(np.maximum((BALL_DARKENS * radius) ** 2 - up**2, 0.0))
    half = extents(pieces, rotation)[chosen]
    reach = np.where(ball[:, None], lateral[:, None], half[:, :2] + DARKENS_M)
    near = np.where(ball, lateral > 0, np.abs(up) - half[:, 2] < 2.1 * DARKENS_M)
    size = np.concatenate([reach + pad, np.full((len(chosen), 1), 0.22)], axis=1)
    middle = centre[chosen].copy()
    middle[:, 2] = pieces.stand
    out = outlines(middle[:, None] + _SIGNS[None] * size[:, None], view)
    nothing = np.array([np.inf, np.inf, -np.inf, -np.inf])
    return np.where(near[:, None], out, nothing)


def around(a: F8, b: F8) -> F8:
    """Bounds (N, 4) around both of two."""
    return np.concatenate([np.minimum(a[:, :2], b[:, :2]), np.maximum(a[:, 2:], b[:, 2:])], axis=1)


def to_rects(bounds: F8, view: View) -> list[Rect]:
    """Whole pixels inside the picture, with a margin."""
    out = []
    bounds = bounds[np.isfinite(bounds).all(axis=1)]
    low = np.floor(bounds[:, :2]) - MARGIN_PX
    high = np.ceil(bounds[:, 2:]) + MARGIN_PX
    low = np.clip(low, 0, (view.width, view.height)).astype(int)
    high = np.clip(high, 0, (view.width, view.height)).astype(int)
    for (x0, y0), (x1, y1) in zip(low.tolist(), high.tolist(), strict=True):
        if x1 > x0 and y1 > y0:
            out.append((x0, y0, x1, y1))
    return out


def _area(r: Rect) -> int:
    return (r[2] - r[0]) * (r[3] - r[1])


def _union(a: Rect, b: Rect) -> Rect:
    return (min(a[0], b[0]), min(a[1], b[1]), max(a[2], b[2]), max(a[3], b[3]))


def _overlap(a: Rect, b: Rect) -> int:
    w = min(a[2], b[2]) - max(a[0], b[0])
    h = min(a[3], b[3]) - max(a[1], b[1])
    return w * h if w > 0 and h > 0 else 0


def intersection(a: Rect, b: Rect) -> Rect | None:
    """What two rectangles share."""
    out = (max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3]))
    return out if out[2] > out[0] and out[3] > out[1] else None


def outside(a: Rect, b: Rect) -> list[Rect]:
    """The part of ``a`` that is not in ``b``, as up to four rectangles."""
    both = intersection(a, b)
    if both is None:
        return [a]
    x0, y0, x1, y1 = both
    parts = [(a[0], a[1], a[2], y0), (a[0], y1, a[2], a[3])]
    parts += [(a[0], y0, x0, y1), (x1, y0, a[2], y1)]
    return [p for p in parts if p[2] > p[0] and p[3] > p[1]]


def seen_part(polygon: F8, view: View) -> Rect:
    """Rectangle around what a view shows of a convex polygon (K, 3) [m]; empty if nothing."""
    depth = (polygon - view.eye) @ view.axes[2] - view.near
    kept = []
    for i in range(len(polygon)):
        a, b = depth[i - 1], depth[i]
        if (a > 0) != (b > 0):
            kept.append(polygon[i - 1] + (polygon[i] - polygon[i - 1]) * (a / (a - b)))
        if b > 0:
            kept.append(polygon[i])
    if not kept:
        return (0, 0, 0, 0)
    # A hair in front of the near plane, where rounding cannot put them behind it.
    points = np.array(kept) + view.axes[2] * (1e-6 * view.near)
    rects = to_rects(outlines(points[None], view), view)
    return rects[0] if rects else (0, 0, 0, 0)


def merge(rects: list[Rect]) -> list[Rect]:
    """Join rectangles as long as that is cheaper than drawing them apart."""
    rects = list(dict.fromkeys(rects))
    while len(rects) > 1:
        best, pair = 0, None
        for i, a in enumerate(rects):
            for j in range(i + 1, len(rects)):
                b = rects[j]
                gain = _area(a) + _area(b) + RECT_COST_PX - _area(_union(a, b))
                if gain > best:
                    best, pair = gain, (i, j)
        if pair is None:
            break
        i, j = pair
        joined = _union(rects[i], rects[j])
        rects = [r for k, r in enumerate(rects) if k not in pair]
        rects.append(joined)
    return rects


def covers_most(rects: list[Rect], view: View) -> bool:
    """Whether drawing the whole picture is as cheap."""
    return sum(map(_area, rects)) + len(rects) * RECT_COST_PX > 0.8 * view.width * view.height


def touching(bounds: F8, rect: Rect) -> Mask:
    """Which bounds (N, 4) [px] reach into a rectangle, with a margin."""
    m = MARGIN_PX
    return (
        (bounds[:, 0] <= rect[2] + m)
        & (bounds[:, 2] >= rect[0] - m)
        & (bounds[:, 1] <= rect[3] + m)
        & (bounds[:, 3] >= rect[1] - m)
    )
