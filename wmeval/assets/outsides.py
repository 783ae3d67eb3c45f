"""Which way the triangles of a user's mesh look: closed surfaces outwards, open ones both ways.

Files of other tools hold surfaces that are turned inside out, or have no inside at all; a renderer
that draws a triangle from its outside only would show the far wall of the former and holes in the
latter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]

WELD_M = 1e-6
"""Vertices that are so near to each other [m] are one."""


def outwards(pieces: Sequence[tuple[Array, Ints]]) -> list[tuple[Ints, Mask]]:
    """Triangles turned outwards, and which of them (F,) belong to an open surface.

    A surface is what hangs together by its vertices, in one piece or, where it is open there, in
    all of them (files cut a thing by its materials). It is closed if each edge is passed as often
    one way as the other; of negative volume, it is turned. A hollow's own wall is turned as well:
    it is not seen from within the wall.

    Args:
        pieces: vertices (V, 3) [m] and triangles (F, 3) of each.
    """
    found = [_judged(vertices, triangles) for vertices, triangles in pieces]
    left = [k for k, (_, thin) in enumerate(found) if thin.any()]
    if len(left) > 1:
        open_ones = [found[k][0][found[k][1]] for k in left]
        starts = np.cumsum([0] + [len(pieces[k][0]) for k in left])
        joined = np.concatenate([t + s for t, s in zip(open_ones, starts, strict=False)])
        turned, thin = _judged(np.concatenate([pieces[k][0] for k in left]), joined)
        ends = np.cumsum([len(t) for t in open_ones])[:-1]
        for k, start, new, still in zip(
            left, starts, np.split(turned, ends), np.split(thin, ends), strict=False
        ):
            triangles, flags = found[k][0].copy(), found[k][1].copy()
            triangles[found[k][1]] = new - start
            flags[found[k][1]] = still
            found[k] = triangles, flags
    return found


def _judged(vertices: Array, triangles: Ints) -> tuple[Ints, Mask]:
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    _, place = np.unique(np.rint(vertices / WELD_M).astype(np.int64), axis=0, return_inverse=True)
    welded = np.asarray(place, np.int64).ravel()[triangles]
    count = int(welded.max()) + 1
    a, b = welded.ravel(), np.roll(welded, -1, axis=1).ravel()
    graph = coo_matrix((np.ones(len(a), np.int8), (a, b)), shape=(count, count))
    parts, label = connected_components(graph, directed=False)
    of_face = label[welded[:, 0]]
    # Each edge once with its sign: 1 from the lower vertex to the higher, -1 the other way.
    low, high = np.minimum(a, b), np.maximum(a, b)
    _, first, edge = np.unique(low * count + high, return_index=True, return_inverse=True)
    balance = np.bincount(np.asarray(edge).ravel(), np.sign(b - a), minlength=len(first))
    is_open = np.zeros(parts, bool)
    is_open[label[low[first[balance != 0]]]] = True
    corner = vertices[triangles] - vertices.mean(axis=0)
    six = np.einsum("fi,fi->f", corner[:, 0], np.cross(corner[:, 1], corner[:, 2]))
    volume = np.bincount(of_face, six, minlength=parts)
    inside_out = ~is_open & (volume < 0)
    turned = np.where(inside_out[of_face][:, None], triangles[:, ::-1], triangles)
    return turned, is_open[of_face]
