"""Which parts of a picture a motion can change, as few rectangles of pixels. Pure numpy.

Everything here errs on the side of too much: a rectangle may hold pixels that stay as they are,
but no pixel outside of all rectangles may change by a single bit.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wmeval.sim.render.cells import MARGIN_PX, Rect
from wmeval.sim.render.pieces import BALL_DARKENS, Pieces, SunView, View, extents

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Mask = NDArray[np.bool_]
RECT_COST_PX = 3000
"""Cost of one more rectangle, in pixels."""

_SIGNS = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)], np.float64)


_TURNS = np.arange(12) * (np.pi / 6)
# Around a unit circle from outside.
_RING = np.stack([np.cos(_TURNS), np.sin(_TURNS)], axis=1) / np.cos(np.pi / 12)


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
        angle = np.arctan2(np.ascontiguousarray(local[:, k]), np.maximum(depth, 1e-9))
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


def piece_hulls(pieces: Pieces, rotation: F8, centre: F8, chosen: I8, pad: float, view: View) -> F8:
    """Points (N, 12, 3) [m] whose hulls look at least as large as the pieces grown by ``pad``."""
    box = corners(pieces, rotation, centre, chosen, pad)
    out = np.concatenate([box, box[:, :4]], axis=1)
    ball = pieces.ball[chosen]
    if ball.any():
        middle = centre[chosen][ball]
        radius = pieces.radius[chosen][ball] + pad
        to = middle - view.eye
        away = np.linalg.norm(to, axis=1)
        share = np.minimum(radius / np.maximum(away, 1e-9), 1.0)
        # The circle in which lines of sight touch the ball.
        flat = middle - to * (share**2)[:, None]
        wide = radius * np.sqrt(1 - share**2)
        axis = to / np.maximum(away, 1e-9)[:, None]
        helper = np.where(np.abs(axis[:, 2:]) < 0.9, [[0.0, 0, 1]], [[1.0, 0, 0]])
        u = np.cross(helper, axis)
        u /= np.linalg.norm(u, axis=1, keepdims=True)
        turn = np.stack([u, np.cross(axis, u)], axis=1) * wide[:, None, None]
        ring = flat[:, None] + np.einsum("kc,ncx->nkx", _RING, turn)
        # Too near to be seen as a circle: its box may be anything.
        out[ball] = np.where((share < 0.9)[:, None, None], ring, out[ball])
    return out


def landing_hulls(
    pieces: Pieces, rotation: F8, centre: F8, chosen: I8, pad: float, sun: SunView, height: F8
) -> F8:
    """Points (N, 12, 3) around the chosen pieces' shadows on the planes at ``height`` (N,) [m]."""
    box = corners(pieces, rotation, centre, chosen, pad)
    radius = pieces.radius[chosen] + pad
    steep = max(float(sun.to_sun[2]), 1e-3)
    drift = -sun.to_sun[:2] / steep  # sideways for each metre down
    run = np.maximum(box[..., 2] - height[:, None], 0.0)
    flat = box[..., :2] + drift * run[..., None]
    flat = np.concatenate([flat, flat[:, :4]], axis=1)
    # A plane meets the cylinder of a ball's shadow in an ellipse, drawn out along the sun's path.
    run = np.maximum(centre[chosen, 2] - height, 0.0)
    middle = centre[chosen, :2] + drift * run[:, None]
    far = float(np.hypot(*drift))
    along = drift / far if far > 1e-9 else np.array([1.0, 0.0])
    across = np.array([-along[1], along[0]])
    ellipse = _RING @ np.stack([along * np.hypot(1.0, far), across])
    ring = middle[:, None] + ellipse[None] * radius[:, None, None]
    flat = np.where(pieces.ball[chosen, None, None], ring, flat)
    plane = np.broadcast_to(height[:, None, None], (*flat.shape[:2], 1))
    return np.concatenate([flat, plane], axis=2)


def shadow_hulls(
    pieces: Pieces,
    rotation: F8,
    centre: F8,
    chosen: I8,
    pad: float,
    view: View,
    sun: SunView,
    floor: F8 | None,
) -> F8:
    """Points (N, 24, 3) [m] whose hulls hide all that the pieces and their shadows can touch.

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
    lowest = corners(pieces, rotation, centre, chosen, pad)[..., 2].min(axis=1)
    deep = lowest - 100.0
    if floor is not None:
        top = np.full(len(chosen), floor[1, 2])
        land = landing_hulls(pieces, rotation, centre, chosen, pad, sun, top)[..., :2]
        inside = ((land > floor[0, :2]) & (land < floor[1, :2])).all(axis=(1, 2))
        deep = np.where(inside, top, np.minimum(deep, floor[0, 2]))
    start = piece_hulls(pieces, rotation, centre, chosen, pad, view)
    end = landing_hulls(pieces, rotation, centre, chosen, pad, sun, deep)
    return np.concatenate([start, end], axis=1)


def received_hulls(
    pieces: Pieces,
    rotation: F8,
    centre: F8,
    chosen: I8,
    pad: float,
    view: View,
    sun: SunView,
    receivers: tuple[F8, F8],
) -> F8:
    """Points (M, 24, 3) [m] around the chosen pieces' shadows, each within one receiver's box.

    Args:
        pieces: the scene's.
        rotation: (P, 3, 3).
        centre: (P, 3) [m].
        chosen: indices of N pieces.
        pad: how much the shadow map blurs [m].
        view: of the picture.
        sun: the light's, above the horizon.
        receivers: lower and upper corners (R, 3) [m] of upright boxes.
    """
    box = corners(pieces, rotation, centre, chosen, pad)
    ball, radius = pieces.ball[chosen, None], pieces.radius[chosen, None] + pad
    low = np.where(ball, centre[chosen] - radius, box.min(axis=1))
    high = np.where(ball, centre[chosen] + radius, box.max(axis=1))
    ray = np.append(-sun.to_sun[:2], -max(float(sun.to_sun[2]), 1e-3))
    # When the piece's own upright box, on its way along the light, is within that of a receiver.
    under, over = receivers
    enter, leave = np.zeros((len(low), len(under))), np.full((len(low), len(under)), np.inf)
    for k in range(3):
        first = under[None, :, k] - high[:, None, k]
        last = over[None, :, k] - low[:, None, k]
        if abs(ray[k]) < 1e-12:
            leave[(first > 0) | (last < 0)] = -1.0
            continue
        first, last = (first / ray[k], last / ray[k])[:: 1 if ray[k] > 0 else -1]
        enter, leave = np.maximum(enter, first), np.minimum(leave, last)
    i, j = np.nonzero(enter <= leave)
    top = np.minimum(over[j, 2], high[i, 2] + enter[i, j] * ray[2])
    bottom = np.maximum(under[j, 2], low[i, 2] + leave[i, j] * ray[2])
    which = chosen[i]
    lowest = low[i, 2]
    start = landing_hulls(pieces, rotation, centre, which, pad, sun, np.minimum(top, lowest))
    beside = top > lowest
    start[beside] = piece_hulls(pieces, rotation, centre, which[beside], pad, view)
    end = landing_hulls(pieces, rotation, centre, which, pad, sun, np.minimum(bottom, lowest))
    return np.concatenate([start, end], axis=1)


def dark_boxes(pieces: Pieces, rotation: F8, centre: F8, chosen: I8, pad: float) -> tuple[F8, F8]:
    """Corners (M, 3) [m] of boxes around the ground from which M of the pieces take light."""
    radius, ball = pieces.radius[chosen], pieces.ball[chosen]
    up = centre[chosen, 2] - pieces.stand
    lateral = np.sqrt(np.maximum((BALL_DARKENS * radius) ** 2 - up**2, 0.0))
    half, darkens = extents(pieces, rotation)[chosen], pieces.darkens[chosen]
    reach = np.where(ball[:, None], lateral[:, None], half[:, :2] + darkens[:, None])
    beside = (darkens > 0) & (np.abs(up) - half[:, 2] < 2.1 * darkens)
    near = np.where(ball, lateral > 0, beside)
    size = np.concatenate([reach + pad, np.full((len(chosen), 1), 0.22)], axis=1)
    middle = centre[chosen].copy()
    middle[:, 2] = pieces.stand
    return np.asarray((middle - size)[near]), np.asarray((middle + size)[near])


def dark_hulls(pieces: Pieces, rotation: F8, centre: F8, chosen: I8, pad: float) -> F8:
    """Points (M, 8, 3) [m] around the ground from which M of the pieces take ambient light."""
    low, high = dark_boxes(pieces, rotation, centre, chosen, pad)
    return _box_points(low, high)


def darkened_hulls(
    pieces: Pieces,
    rotation: F8,
    centre: F8,
    chosen: I8,
    pad: float,
    receivers: tuple[F8, F8],
) -> F8:
    """Points (M, 8, 3) [m] around what is darkened, each within one receiver's upright box."""
    low, high = dark_boxes(pieces, rotation, centre, chosen, pad)
    low = np.maximum(low[:, None], receivers[0][None])
    high = np.minimum(high[:, None], receivers[1][None])
    some = (low <= high).all(axis=2)
    return _box_points(low[some], high[some])


def _box_points(low: F8, high: F8) -> F8:
    return np.asarray(np.where(_SIGNS[None] > 0, high[:, None], low[:, None]))


def upright_boxes(
    pieces: Pieces, rotation: F8, centre: F8, chosen: I8, view: View
) -> tuple[F8, F8]:
    """Lower and upper corners (N, 3) [m] around what is drawn of the chosen pieces."""
    half = extents(pieces, rotation)[chosen]
    half = np.where(pieces.ball[chosen, None], pieces.radius[chosen, None], half)
    away = np.linalg.norm(centre[chosen] - view.eye, axis=1) + pieces.radius[chosen]
    # Coarser meshes and the rim of a ball depart by parts of a pixel.
    half = half + (1e-3 + 3 * away * view.tangents[1] / view.height)[:, None]
    return centre[chosen] - half, centre[chosen] + half


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


def merge(rects: list[Rect]) -> list[Rect]:
    """Join rectangles as long as that is cheaper than drawing them apart."""
    box = np.array(list(dict.fromkeys(rects)), np.int64).reshape(-1, 4)
    while len(box) > 1:
        low = np.minimum(box[:, None, :2], box[None, :, :2])
        high = np.maximum(box[:, None, 2:], box[None, :, 2:])
        area = (box[:, 2:] - box[:, :2]).prod(axis=1)
        gain = area[:, None] + area[None] + RECT_COST_PX - (high - low).prod(axis=2)
        np.fill_diagonal(gain, 0)
        i, j = divmod(int(gain.argmax()), len(box))
        if gain[i, j] <= 0:
            break
        joined = np.concatenate([low[i, j], high[i, j]])
        inside = (box[:, :2] >= joined[:2]).all(axis=1) & (box[:, 2:] <= joined[2:]).all(axis=1)
        box = np.concatenate([box[~inside], joined[None]])
    return [(int(x0), int(y0), int(x1), int(y1)) for x0, y0, x1, y1 in box]


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
