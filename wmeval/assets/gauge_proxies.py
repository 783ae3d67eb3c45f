"""Markers on a simulated body: which node, particle or point of it stands for each.

Source: GAUGE 3.2.1 for the published way (`hungarian`: each marker takes a node of its own, less
than 1 cm away). That moves a marker by up to 1 cm, which changes areas and curvatures for good;
ours are points of the body itself (`on_triangles`, `affine`), which start where the
marker is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from wmeval.errors import UserError

F8 = NDArray[np.float64]
I8 = NDArray[np.intp]

LIMIT = 0.01
"""A marker further from its proxy than this is an error [m] (GAUGE 3.2.1)."""


@dataclass(frozen=True, eq=False)
class Proxies:
    """Markers as weighted sums of nodes.

    Attributes:
        nodes: (M, K) node numbers.
        weights: (M, K), summing to 1.
        errors: (M,) distance of the proxy from its marker at the start [m].
        method: ``hungarian``, ``triangles`` or ``affine``.
    """

    nodes: I8
    weights: F8
    errors: F8
    method: str

    def follow(self, positions: F8) -> F8:
        """Proxies' positions (..., M, 3) [m] of node positions (..., V, 3)."""
        x = np.asarray(positions, np.float64)
        out: F8 = (x[..., self.nodes, :] * self.weights[..., None]).sum(axis=-2)
        return out


def _refuse(errors: F8, names: Sequence[str] | None, limit: float, what: str) -> None:
    far = np.flatnonzero(~(errors < limit))
    if len(far):
        listed = ", ".join(
            f"{names[k] if names else k} ({errors[k] * 1e3:.1f} mm)" for k in far[:8].tolist()
        )
        more = f" and {len(far) - 8} more" if len(far) > 8 else ""
        raise UserError(
            f"markers too far from {what} (limit {limit * 1e3:g} mm): {listed}{more}; "
            "check the body's pose and the mesh's spacing"
        )


def hungarian(
    markers: F8, nodes: F8, *, names: Sequence[str] | None = None, limit: float = LIMIT
) -> Proxies:
    """One node per marker, each its own, with the least sum of distances (Kuhn 1955).

    Of each marker only its M nearest nodes can take part in a best assignment of M markers, so that
    bodies of many nodes cost little.

    Args:
        markers: (M, 3) [m].
        nodes: (V, 3) [m], V >= M.
        names: of the markers, for the message.
        limit: greatest distance [m].

    Raises:
        UserError: fewer nodes than markers, or a marker whose node is ``limit`` or further away;
            the message names the markers.
    """
    m, x = np.asarray(markers, np.float64), np.asarray(nodes, np.float64)
    if len(x) < len(m):
        raise UserError(f"{len(m)} markers need as many nodes; the body has {len(x)}")
    _, near = cKDTree(x).query(m, k=min(len(m), len(x)))
    candidates = np.unique(np.asarray(near))
    distances = cdist(m, x[candidates])
    rows, columns = linear_sum_assignment(distances)
    chosen = np.empty(len(m), np.intp)
    chosen[rows] = candidates[columns]
    errors = np.linalg.norm(m - x[chosen], axis=1)
    _refuse(errors, names, limit, "any free node")
    return Proxies(chosen[:, None], np.ones((len(m), 1)), errors, "hungarian")


def _closest_on_segment(p: F8, a: F8, b: F8) -> F8:
    """Share of b of the point of a segment that is closest to p; (F,) for segments (F, 3)."""
    along = b - a
    square = (along**2).sum(axis=1)
    share = ((p - a) * along).sum(axis=1) / np.where(square > 0, square, 1.0)
    out: F8 = np.clip(share, 0.0, 1.0)
    return out


def _closest(p: F8, corners: F8) -> tuple[int, F8, float]:
    """Nearest triangle, weights (3,) of its nearest point, and the distance."""
    a, b, c = corners[:, 0], corners[:, 1], corners[:, 2]
    u, v, w = b - a, c - a, p - a
    uu, uv, vv = (u * u).sum(1), (u * v).sum(1), (v * v).sum(1)
    wu, wv = (w * u).sum(1), (w * v).sum(1)
    area = uu * vv - uv * uv
    safe = np.where(area > 0, area, 1.0)
    s, t = (vv * wu - uv * wv) / safe, (uu * wv - uv * wu) / safe
    inside = (area > 0) & (s >= 0) & (t >= 0) & (s + t <= 1)
    options = [np.stack([1 - s - t, s, t], axis=1)]
    for i, j in ((0, 1), (1, 2), (2, 0)):
        share = _closest_on_segment(p, corners[:, i], corners[:, j])
        weights = np.zeros((len(corners), 3))
        weights[:, i], weights[:, j] = 1 - share, share
        options.append(weights)
    all_weights = np.stack(options)
    points = np.einsum("kfi,fid->kfd", all_weights, corners)
    distances = np.linalg.norm(points - p, axis=2)
    distances[0, ~inside] = np.inf
    k, f = np.unravel_index(int(np.argmin(distances)), distances.shape)
    return int(f), all_weights[k, f], float(distances[k, f])


def on_triangles(
    markers: F8, nodes: F8, triangles: I8, *,
    names: Sequence[str] | None = None, limit: float = LIMIT,
) -> Proxies:  # fmt: skip
    """The nearest point of the surface, by its barycentric coordinates (ours).

    Args:
        markers: (M, 3) [m].
        nodes: (V, 3) [m].
        triangles: (F, 3).
        names: of the markers, for the message.
        limit: greatest distance [m].

    Raises:
        UserError: a marker is ``limit`` or further from the surface.
    """
    m, x = np.asarray(markers, np.float64), np.asarray(nodes, np.float64)
    faces = np.asarray(triangles, np.intp)
    corners = x[faces]
    found = [_closest(p, corners) for p in m]
    errors = np.array([d for _, _, d in found])
    _refuse(errors, names, limit, "the surface")
    return Proxies(
        faces[[f for f, _, _ in found]], np.array([w for _, w, _ in found]), errors, "triangles"
    )


def affine(
    markers: F8, nodes: F8, *, neighbours: int = 12,
    names: Sequence[str] | None = None, limit: float = LIMIT,
) -> Proxies:  # fmt: skip
    """Weights of the nearest nodes that give the marker exactly, of least norm (ours).

    For particles and tetrahedra, which have no surface at the marker. Sum 1 and right first
    moments, so that every affine motion of the body is followed exactly.

    Args:
        markers: (M, 3) [m].
        nodes: (V, 3) [m].
        neighbours: how many nodes take part.
        names: of the markers, for the message.
        limit: greatest distance from the nearest node, and from what the weights give [m].

    Raises:
        UserError: a marker is too far from the nodes.
    """
    m, x = np.asarray(markers, np.float64), np.asarray(nodes, np.float64)
    k = min(neighbours, len(x))
    distance, near = cKDTree(x).query(m, k=k)
    distance, near = np.asarray(distance).reshape(-1, k), np.asarray(near).reshape(-1, k)
    _refuse(distance[:, 0], names, limit, "any node")
    weights = np.empty((len(m), k))
    for row in range(len(m)):
        local = x[near[row]] - m[row]
        scale = float(np.abs(local).max()) or 1.0
        moments = np.vstack([np.ones(k), local.T / scale])
        weights[row] = np.linalg.lstsq(moments, np.array([1.0, 0, 0, 0]), rcond=1e-9)[0]
        weights[row] /= weights[row].sum()
    found = np.einsum("mk,mkd->md", weights, x[near])
    errors = np.linalg.norm(found - m, axis=1)
    _refuse(errors, names, limit, "what its neighbours span")
    return Proxies(near.astype(np.intp), weights, errors, "affine")
