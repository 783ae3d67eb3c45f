"""Meshes that follow modal state. A deformer is one class and one row of `DEFORMERS`.

A deformed mesh keeps its triangles, and its vertices keep their meaning: barycentric coordinates
carry a point of the surface from one instant to another. That is the material map by which labels
(flow, tracks, occlusion) follow such a body. Pure numpy.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.cavity import Cavity
from wmeval.assets.liquid import TRIANGLES, Surface, liquid_mesh
from wmeval.errors import UserError
from wmeval.scene import Deform, MeshData

F8 = NDArray[np.float64]


class Deformer(Protocol):
    """A mesh as a pure function of modal state.

    Attributes:
        size: how many numbers it reads.
        bounds: (2, 3) corners [m] of the box that no state's mesh leaves.
    """

    size: int
    bounds: F8

    def mesh(self, values: F8) -> MeshData:
        """The mesh of a state; always the same triangles."""

    @property
    def triangles(self) -> NDArray[np.uint32]:
        """(F, 3) of every state's mesh."""


class HalfFull:
    """The liquid in a half-full vessel of revolution (`wmeval.assets.liquid`).

    Reads `wmeval.sim.drivers.slosh`'s "liquid_surface": up, and the slopes of three shapes.
    """

    size = 12
    triangles = TRIANGLES

    def __init__(self, deform: Deform) -> None:
        self._cavity = Cavity(deform.profile)
        self.bounds = self._cavity.bounds

    def surface(self, values: F8) -> Surface:
        """The liquid's surface; zeros (a state that nobody has put) are a still one."""
        up = np.asarray(values[:3], np.float64)
        size = float(np.linalg.norm(up))
        up = up / size if size > 0 else np.array([0.0, 0.0, 1.0])
        return Surface(self._cavity, up, np.asarray(values[3:12], np.float64).reshape(3, 3))

    def mesh(self, values: F8) -> MeshData:
        """The liquid's body."""
        return liquid_mesh(self.surface(values))


DEFORMERS: dict[str, type[HalfFull]] = {"half_full": HalfFull}


def make_deformer(deform: Deform) -> HalfFull:
    """The deformer of a card.

    Raises:
        UserError: no such deformer; the message names the known ones.
    """
    if deform.kind not in DEFORMERS:
        raise UserError(f"no deformer {deform.kind!r}: choose from {', '.join(DEFORMERS)}")
    return DEFORMERS[deform.kind](deform)


def carry(deformer: Deformer, points: F8, before: F8, after: F8) -> F8:
    """Where points of a deformed mesh's surface are in another state.

    Args:
        deformer: whose mesh.
        points: (N, 3) [m] on the surface of the first state's mesh, to rounding.
        before: the first state.
        after: the other one.

    Returns:
        (N, 3) [m] in the same frame.
    """
    if not len(points) or np.array_equal(before, after):
        return np.array(points, np.float64)
    corners = [
        deformer.mesh(v).vertices.astype(np.float64)[deformer.triangles] for v in (before, after)
    ]
    face, weights = locate(corners[0], points)
    return np.asarray(np.einsum("nk,nkc->nc", weights, corners[1][face]))


def locate(corners: F8, points: F8, *, candidates: int = 24) -> tuple[NDArray[np.int64], F8]:
    """The triangle that each point lies on, and its barycentric coordinates there.

    Args:
        corners: (F, 3, 3) [m].
        points: (N, 3) [m].
        candidates: how many of the triangles with the nearest middles are tried.

    Returns:
        (N,) index and (N, 3) weights: of the triangle to which the point is nearest.
    """
    from scipy.spatial import cKDTree

    tree = cKDTree(corners.mean(axis=1))
    _, near = tree.query(points, k=min(candidates, len(corners)))
    near = near.reshape(len(points), -1)
    a, b, c = (corners[near, k] for k in range(3))
    u, v, w = b - a, c - a, points[:, None] - a
    uu, uv, vv = (u * u).sum(-1), (u * v).sum(-1), (v * v).sum(-1)
    wu, wv = (w * u).sum(-1), (w * v).sum(-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        inverse = 1.0 / (uu * vv - uv * uv)
        s = np.nan_to_num((vv * wu - uv * wv) * inverse, nan=-9.0, posinf=-9.0, neginf=-9.0)
        t = np.nan_to_num((uu * wv - uv * wu) * inverse, nan=-9.0, posinf=-9.0, neginf=-9.0)
    weights = np.stack([1 - s - t, s, t], axis=-1)
    inner = np.clip(weights, 0, None)
    inner /= np.maximum(inner.sum(axis=-1, keepdims=True), 1e-300)
    foot = np.einsum("nkw,nkwc->nkc", inner, corners[near])
    best = np.square(foot - points[:, None]).sum(axis=-1).argmin(axis=1)
    row = np.arange(len(points))
    return np.asarray(near[row, best]), np.asarray(inner[row, best])
