"""Labels that follow from depth, ids, poses and cameras: no renderer is asked again. Pure numpy.

Flow between ANY two instants: a pixel's surface point is carried along with its body (by id) from
instant a to instant b and projected there. What carries the point:

- a pixel with id i > 0 moves with the body whose ``instance`` is i;
- a body whose mesh deforms carries the point by the mesh's material map, too: the same place of the
  same triangle (`wmeval.sim.render.deform`; the mesh lies in the body's own frame);
- cloth, solids and ropes have no such map yet: where a pixel shows one, nothing is told (NaN);
- a surface without a label (id 0 at finite depth) counts as part of the still world;
- the sky is at infinity: it moves with the camera's rotation alone (``sky="nan"`` drops it).

A target exists wherever the point lies before camera b, be it outside the picture or hidden;
`occlusion` tells that. Behind glass the labels, and so the flow, are of what is seen through it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wmeval import conventions
from wmeval.errors import UserError
from wmeval.scene import Deform, Scene
from wmeval.sim.protocol import RenderState
from wmeval.sim.render.deform import carry, make_deformer

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]
U2 = NDArray[np.uint16]
Mask = NDArray[np.bool_]
Draw = Callable[[RenderState, int, int, tuple[str, ...]], Mapping[str, NDArray[Any]]]

TINY_MOTION = 1e-12
"""Bodies whose pose changed by less than this (matrix entries, metres) count as still."""


def instances(scene: Scene) -> U2:
    """Label of every body, (B,)."""
    return np.array([b.instance for b in scene.bodies], np.uint16)


def _camera_from_world(state: RenderState) -> F8:
    T = np.asarray(state.T_world_camera, np.float64)
    out = np.eye(4)
    out[:3, :3] = T[:3, :3].T
    out[:3, 3] = -T[:3, :3].T @ T[:3, 3]
    return out


def _motions(a: RenderState, b: RenderState) -> F8:
    """World-to-world motion (B, 4, 4) of every body from a to b."""
    turn_a = conventions.quaternion_to_matrix(a.quaternion_wxyz)
    turn_b = conventions.quaternion_to_matrix(b.quaternion_wxyz)
    out = np.zeros((len(turn_a), 4, 4))
    turn = turn_b @ np.swapaxes(turn_a, -1, -2)
    # A body that did not turn shall not turn by rounding either.
    same = (np.asarray(a.quaternion_wxyz) == np.asarray(b.quaternion_wxyz)).all(axis=-1)
    turn[same] = np.eye(3)
    out[:, :3, :3] = turn
    out[:, :3, 3] = b.position - np.einsum("bij,bj->bi", turn, a.position)
    out[:, 3, 3] = 1
    return out


def _bent(a: RenderState, b: RenderState) -> dict[int, Deform]:
    """Bodies whose mesh is another at b than at a, with how it deforms."""
    return {
        body: deform
        for body, deform in a.deforms
        if not np.array_equal(a.modal[deform.modal], b.modal[deform.modal])
    }


def _moved_points(points: F8, body: int, deform: Deform, a: RenderState, b: RenderState) -> F8:
    """World points (N, 3) on a deforming body's mesh at a, carried to b."""
    pose_a, pose_b = (
        conventions.quaternion_to_matrix(np.asarray(s.quaternion_wxyz[body])) for s in (a, b)
    )
    local = (points - a.position[body]) @ pose_a
    values = (np.asarray(s.modal[deform.modal]) for s in (a, b))
    return np.asarray(carry(make_deformer(deform), local, *values) @ pose_b.T + b.position[body])


def _rays(state: RenderState, width: int, height: int) -> tuple[F8, F8]:
    """Camera-frame x (W,) and y (H,) at depth 1 of the pixels' centres."""
    K = conventions.intrinsics(state.fov_y, width, height)
    x = (np.arange(width) + 0.5 - K[0, 2]) / K[0, 0]
    y = (np.arange(height) + 0.5 - K[1, 2]) / K[1, 1]
    return x, y


def _carried(
    depth: F4,
    ids: U2,
    a: RenderState,
    b: RenderState,
    instance: U2,
    sky: Literal["rotation", "nan"],
) -> tuple[F8, F8]:
    """Pixels (H, W, 2) [px] and depth (H, W) [m] at instant b of what each pixel shows at a."""
    height, width = depth.shape
    x, y = _rays(a, width, height)
    view = _camera_from_world(b)
    from_a = np.asarray(a.T_world_camera, np.float64)
    K = conventions.intrinsics(b.fov_y, width, height)
    pixels = np.empty((height, width, 2))
    reached = np.empty((height, width))

    def project(matrix: F8, rows: Any, columns: Any, xs: F8, ys: F8, z: F8) -> None:
        """Points (x z, y z, z) through ``matrix``; x, y and z broadcast."""
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            inverse = 1.0 / z
            p = [matrix[i, 0] * xs + matrix[i, 1] * ys + matrix[i, 2] for i in range(3)]
            p = [p[i] + matrix[i, 3] * inverse for i in range(3)]
            ok = p[2] > 0
            share = 1.0 / np.where(ok, p[2], np.nan)
            pixels[rows, columns, 0] = K[0, 0] * p[0] * share + K[0, 2]
            pixels[rows, columns, 1] = K[1, 1] * p[1] * share + K[1, 2]
            reached[rows, columns] = np.where(ok, p[2] * z, np.nan)

    # The still world first, all of it: infinite depth makes 1 / z = 0, the sky's pure rotation.
    project(
        view @ from_a, slice(None), slice(None), x[None, :], y[:, None], depth.astype(np.float64)
    )
    motion = _motions(a, b)
    still = np.abs(motion - np.eye(4)).max(axis=(1, 2)) < TINY_MOTION
    bent = _bent(a, b)
    present = np.zeros(65536, bool)
    present[ids] = True
    for body in np.flatnonzero(present[instance] & (instance > 0)):
        gone = not b.active[body]
        if still[body] and not gone and body not in bent:
            continue
        rows, columns = np.nonzero(ids == instance[body])
        if gone:
            pixels[rows, columns] = np.nan
            reached[rows, columns] = np.nan
            continue
        z = depth[rows, columns].astype(np.float64)
        if body in bent:
            local = np.stack([x[columns] * z, y[rows] * z, z], axis=1)
            world = local @ from_a[:3, :3].T + from_a[:3, 3]
            moved = _moved_points(world, int(body), bent[int(body)], a, b)
            at = moved @ view[:3, :3].T + view[:3, 3]
            with np.errstate(invalid="ignore", divide="ignore"):
                far = np.where(at[:, 2] > 0, at[:, 2], np.nan)
                pixels[rows, columns, 0] = K[0, 0] * at[:, 0] / far + K[0, 2]
                pixels[rows, columns, 1] = K[1, 1] * at[:, 1] / far + K[1, 2]
            reached[rows, columns] = far
            continue
        project(view @ motion[body] @ from_a, rows, columns, x[columns], y[rows], z)
    if a.vertices:
        bends = ~_bodies_only(instance)[ids]
        pixels[bends] = np.nan
        reached[bends] = np.nan
    if sky == "nan":
        nothing = np.isinf(depth)
        pixels[nothing] = np.nan
        reached[nothing] = np.nan
    return pixels, reached


def _bodies_only(instance: U2) -> NDArray[np.bool_]:
    """Which labels (65536,) are of a body or of none: the others are of what bends."""
    known = np.zeros(65536, bool)
    known[instance] = known[0] = True
    return known


def flow(
    depth: F4,
    ids: U2,
    a: RenderState,
    b: RenderState,
    instance: U2,
    *,
    sky: Literal["rotation", "nan"] = "rotation",
) -> F4:
    """Displacement of what each pixel shows, from instant a to instant b.

    Args:
        depth: (H, W) planar depth [m] at a.
        ids: (H, W) at a.
        a: the instant of the pictures.
        b: the other one, before or after.
        instance: (B,) label of every body (`instances`).
        sky: "rotation": moves with the camera's turning (exact for a thing at infinity); "nan".

    Returns:
        (H, W, 2) float32 [px], x right and y down; NaN where the body is absent at b or the point
        lies behind camera b.

    Raises:
        UserError: shapes that do not fit.
    """
    _check(depth, ids, a, b, instance)
    height, width = depth.shape
    pixels, _ = _carried(depth, ids, a, b, instance, sky)
    pixels[..., 0] -= np.arange(width) + 0.5
    pixels[..., 1] -= (np.arange(height) + 0.5)[:, None]
    return pixels.astype(np.float32)


def occlusion(
    depth_a: F4,
    ids_a: U2,
    a: RenderState,
    depth_b: F4,
    ids_b: U2,
    b: RenderState,
    instance: U2,
    *,
    tolerance: float = 0.02,
) -> Mask:
    """Where what is seen at a cannot be seen at b: hidden, out of the picture, or gone.

    A point counts as seen when, of the four pixels around its target, those with the same id span
    the expected depth, give or take ``tolerance`` (relative); sky where one of them shows sky.

    Returns:
        (H, W) bool, True where not visible at b.

    Raises:
        UserError: shapes that do not fit.
    """
    _check(depth_a, ids_a, a, b, instance)
    _check(depth_b, ids_b, b, a, instance)
    pixels, reached = _carried(depth_a, ids_a, a, b, instance, "rotation")
    return ~_seen(pixels, reached, ids_a, depth_b, ids_b, tolerance)


def _seen(
    pixels: F8, reached: F8, ids: NDArray[Any], depth_b: F4, ids_b: U2, tolerance: float
) -> Mask:
    """Visibility of points with ids at pixels (..., 2) and depth (...) in a picture."""
    height, width = depth_b.shape
    with np.errstate(invalid="ignore"):
        inside = (
            (pixels[..., 0] >= 0)
            & (pixels[..., 0] < width)
            & (pixels[..., 1] >= 0)
            & (pixels[..., 1] < height)
        )
    corner = np.where(inside[..., None], pixels, 0.0) - 0.5
    base = np.floor(corner).astype(np.int64)
    low = np.full(inside.shape, np.inf)
    high = np.full(inside.shape, -np.inf)
    for dx in (0, 1):
        for dy in (0, 1):
            column = np.clip(base[..., 0] + dx, 0, width - 1)
            row = np.clip(base[..., 1] + dy, 0, height - 1)
            found = depth_b[row, column].astype(np.float64)
            same = ids_b[row, column] == ids
            low = np.where(same, np.minimum(low, found), low)
            high = np.where(same, np.maximum(high, found), high)
    # Between the nearest and the farthest of them: a floor seen at a flat angle changes its depth
    # a good deal from pixel to pixel.
    with np.errstate(invalid="ignore"):
        seen = (reached >= low * (1 - tolerance)) & (reached <= high * (1 + tolerance))
    return np.asarray(seen & inside, bool)


@dataclass(frozen=True, eq=False)
class Tracks:
    """Paths of surface points through a sequence of instants.

    Attributes:
        pixels: (N, T, 2) float64 [px]; NaN where the body is absent or the point is behind.
        depth: (N, T) planar depth [m].
        position: (N, T, 3) in the world [m]; NaN for sky.
        visible: (N, T) bool: seen in that picture.
        ids: (N,) what each point lies on.
    """

    pixels: F8
    depth: F8
    position: F8
    visible: Mask
    ids: U2

    def __repr__(self) -> str:
        count, instants = self.visible.shape
        return f"<Tracks: {count} points through {instants} pictures>"


def tracks(
    queries: F8,
    query_frame: int,
    states: Sequence[RenderState],
    depth: Sequence[F4] | NDArray[np.float32],
    ids: Sequence[U2] | NDArray[np.uint16],
    instance: U2,
    *,
    tolerance: float = 0.02,
) -> Tracks:
    """Follow surface points, forwards and backwards in time.

    Args:
        queries: (N, 2) pixels [px, centres at +0.5] in frame ``query_frame``. The surface is the
            one at that pixel's centre, so queries at pixel centres are exact.
        query_frame: index into ``states``.
        states: T instants.
        depth: T pictures (H, W) [m].
        ids: T pictures (H, W).
        instance: (B,) label of every body.
        tolerance: relative depth difference up to which a point counts as seen.

    Raises:
        UserError: a query outside the picture, or numbers of frames that differ.
    """
    if not len(states) == len(depth) == len(ids):
        raise UserError(f"{len(states)} states, {len(depth)} depths, {len(ids)} id pictures")
    queries = np.asarray(queries, np.float64).reshape(-1, 2)
    first = np.asarray(depth[query_frame])
    height, width = first.shape
    index = np.floor(queries).astype(np.int64)
    if len(index) and (index.min() < 0 or (index >= (width, height)).any()):
        raise UserError(f"a query lies outside the {width}x{height} picture")
    a = states[query_frame]
    z = first[index[:, 1], index[:, 0]].astype(np.float64)
    label = np.asarray(ids[query_frame])[index[:, 1], index[:, 0]]
    body_of = np.full(65536, -1, np.int64)
    body_of[instance[instance > 0]] = np.flatnonzero(instance > 0)
    body = body_of[label]
    K = conventions.intrinsics(a.fov_y, width, height)
    sky = np.isinf(z)
    point = conventions.unproject(queries, np.where(sky, 1.0, z), K, a.T_world_camera)
    eye = np.asarray(a.T_world_camera)[:3, 3]
    ray = point - eye
    count, length = len(queries), len(states)
    pixels = np.full((count, length, 2), np.nan)
    reached = np.full((count, length), np.nan)
    position = np.full((count, length, 3), np.nan)
    visible = np.zeros((count, length), bool)
    for t, b in enumerate(states):
        motion = np.concatenate([_motions(a, b), np.eye(4)[None]])
        moved = np.einsum("nij,nj->ni", motion[body, :3, :3], point) + motion[body, :3, 3]
        for k, deform in _bent(a, b).items():
            on = (body == k) & ~sky
            if on.any():
                moved[on] = _moved_points(point[on], k, deform, a, b)
        # A point of the sky stays on its ray from wherever the camera is.
        moved[sky] = np.asarray(b.T_world_camera)[:3, 3] + ray[sky]
        K = conventions.intrinsics(b.fov_y, width, height)
        at, far = conventions.project(moved, K, b.T_world_camera)
        there = (far > 0) & np.concatenate([b.active, [True]])[body]
        if a.vertices:
            there &= _bodies_only(instance)[label]
        pixels[there, t] = at[there]
        reached[:, t] = np.where(there, np.where(sky, np.inf, far), np.nan)
        position[:, t] = np.where((there & ~sky)[:, None], moved, np.nan)
        visible[:, t] = there & _seen(
            pixels[:, t], reached[:, t], label, np.asarray(depth[t]), np.asarray(ids[t]), tolerance
        )
    return Tracks(pixels, reached, position, visible, np.asarray(label, np.uint16))


@dataclass(frozen=True)
class PixelBox:
    """Smallest box around the pixels of one id; the ends are exclusive [px]."""

    x0: int
    y0: int
    x1: int
    y1: int
    pixels: int


def boxes(ids: U2) -> dict[int, PixelBox]:
    """Box and number of pixels of every id in a picture (H, W); background 0 is left out."""
    _, width = ids.shape
    flat = ids.ravel()
    order = np.argsort(flat, kind="stable")
    ordered = flat[order]
    start = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    end = np.concatenate([start[1:], [len(flat)]])
    column = order % width
    x0 = np.minimum.reduceat(column, start)
    x1 = np.maximum.reduceat(column, start) + 1
    y0 = order[start] // width
    y1 = order[end - 1] // width + 1
    return {
        int(ordered[s]): PixelBox(int(a), int(b), int(c), int(d), int(e - s))
        for s, e, a, b, c, d in zip(start, end, x0, y0, x1, y1, strict=True)
        if ordered[s]
    }


def amodal_mask(
    draw: Draw, state: RenderState, body: int, instance: U2, width: int, height: int
) -> Mask:
    """Pixels (H, W) that a body would cover if nothing stood before it.

    Args:
        draw: ``renderer.draw``.
        state: the instant.
        body: index into the scene's bodies.
        instance: (B,) label of every body.
        width: of the picture [px].
        height: of the picture [px].

    Returns:
        bool; glass counts. All False for a body that is not in the world at that instant.

    Raises:
        UserError: a body without a label.
    """
    if not instance[body]:
        raise UserError(f"body {body} has instance 0, so no layer can show where it is")
    alone = np.zeros_like(state.active)
    alone[body] = state.active[body]
    seen = draw(replace(state, active=alone), width, height, ("ids", "glass_ids"))
    mask: Mask = (seen["ids"] == instance[body]) | (seen["glass_ids"] == instance[body])
    return mask


def _check(depth: F4, ids: U2, a: RenderState, b: RenderState, instance: U2) -> None:
    if depth.shape != ids.shape or depth.ndim != 2:
        raise UserError(f"depth {depth.shape} and ids {ids.shape} must be the same (H, W)")
    if not len(a.position) == len(b.position) == len(instance):
        raise UserError(
            f"{len(instance)} labels, {len(a.position)} bodies at a, {len(b.position)} at b"
        )
