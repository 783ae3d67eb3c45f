"""Curvature, turning angles and face areas of triangulated markers.

Source: GAUGE, appendix B.1 (eqs. 13 and 14). Marker positions are (..., N, 3) in metres with any
leading axes (time); a marker with a non-finite component is not measured.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]
I8 = NDArray[np.intp]


def _check(points: F8, faces: I8) -> tuple[F8, I8]:
    p, f = np.asarray(points, np.float64), np.asarray(faces, np.intp)
    if p.ndim < 2 or p.shape[-1] != 3 or f.ndim != 2 or f.shape[1] != 3:
        raise ValueError(
            f"points (..., N, 3) and faces (F, 3) are wanted; got {p.shape}, {f.shape}"
        )
    if len(f) and (f.min() < 0 or f.max() >= p.shape[-2]):
        raise ValueError(f"a face names marker {f.max()}; there are {p.shape[-2]}")
    return p, f


def corner_angles(points: F8, faces: I8) -> F8:
    """Interior angles of every face at its three corners, (..., F, 3) [rad] (eq. 13).

    NaN at all corners of a face with a marker that is not measured or with two that coincide.
    """
    p, f = _check(points, faces)
    corners = p[..., f, :]
    out = np.empty(corners.shape[:-1])
    for k in range(3):
        a = corners[..., (k + 1) % 3, :] - corners[..., k, :]
        b = corners[..., (k + 2) % 3, :] - corners[..., k, :]
        # atan2 of sine and cosine: the arccosine of eq. 13 loses digits near 0 and pi.
        across = np.linalg.norm(np.cross(a, b), axis=-1)
        along = (a * b).sum(axis=-1)
        with np.errstate(invalid="ignore"):
            flat = (np.linalg.norm(a, axis=-1) == 0) | (np.linalg.norm(b, axis=-1) == 0)
        out[..., k] = np.where(flat, np.nan, np.arctan2(across, along))
    lost = ~np.isfinite(out).all(axis=-1)
    out[lost] = np.nan
    return out


def reference_angles(rest: F8, faces: I8) -> F8:
    """Theta_i, the full angle of each marker (N,) [rad] (below eq. 14).

    2 pi inside, pi on a straight edge, pi / 2 at a corner. What lies on the boundary is read off
    the face list (an edge of one face only), edge or corner from the angles at rest.

    Args:
        rest: (N, 3) positions at rest [m].
        faces: (F, 3).

    Raises:
        ValueError: shapes do not fit, or a marker belongs to no face.
    """
    p, f = _check(rest, faces)
    count = len(p)
    angles = np.zeros(count)
    np.add.at(angles, f, corner_angles(p, f))
    edges = np.sort(np.concatenate([f[:, [0, 1]], f[:, [1, 2]], f[:, [2, 0]]]), axis=1)
    unique, times = np.unique(edges, axis=0, return_counts=True)
    boundary = np.zeros(count, bool)
    boundary[unique[times == 1].ravel()] = True
    lonely = sorted(set(range(count)) - set(f.ravel().tolist()))
    if lonely:
        raise ValueError(f"marker {lonely[0]} belongs to no face")
    corner = boundary & (np.abs(angles - math.pi / 2) < np.abs(angles - math.pi))
    return np.where(boundary, np.where(corner, math.pi / 2, math.pi), 2 * math.pi)


def curvature(points: F8, faces: I8, full: F8) -> F8:
    """k_i = Theta_i - sum of the angles at marker i, (..., N) [rad] (eq. 14).

    The angle deficit: curvature integrated over the marker's surroundings, not divided by their
    area. A disc's k_i sum to zero in any shape (Gauss and Bonnet). The angles of a face that is not
    measured, or whose markers coincide, are left out of the sum, as GAUGE does, which makes the
    deficit jump by them.

    Args:
        points: (..., N, 3) [m].
        faces: (F, 3).
        full: (N,) Theta_i of `reference_angles`.
    """
    p, f = _check(points, faces)
    angles = np.nan_to_num(corner_angles(p, f), nan=0.0)
    total = np.zeros(p.shape[:-1])
    for k in range(3):
        for face, marker in enumerate(f[:, k]):
            total[..., marker] += angles[..., face, k]
    out: F8 = np.asarray(full, np.float64) - total
    return out


def turning_angles(points: F8, lines: Sequence[Sequence[int]]) -> F8:
    """k_i = pi - angle between neighbours along a chain of markers, (..., N) [rad].

    Eq. 14 for markers that form lines: zero at a line's ends, in [0, pi] in between, without sign;
    NaN where the marker or a neighbour is not measured or coincides with it.
    """
    p = np.asarray(points, np.float64)
    out = np.zeros(p.shape[:-1])
    for line in lines:
        for before, here, after in zip(line, line[1:], line[2:], strict=False):
            a, b = p[..., here, :] - p[..., before, :], p[..., after, :] - p[..., here, :]
            across = np.linalg.norm(np.cross(a, b), axis=-1)
            turn = np.arctan2(across, (a * b).sum(axis=-1))
            still = (np.linalg.norm(a, axis=-1) == 0) | (np.linalg.norm(b, axis=-1) == 0)
            out[..., here] = np.where(still, np.nan, turn)
    return out


def face_areas(points: F8, faces: I8) -> F8:
    """Areas of the faces, (..., F) [m^2] (GAUGE B.1, A(t)); NaN where a marker is not measured."""
    p, f = _check(points, faces)
    a, b, c = (p[..., f[:, k], :] for k in range(3))
    out: F8 = np.linalg.norm(np.cross(b - a, c - a), axis=-1) / 2
    return out


def ratio_to_start(areas: F8) -> F8:
    """A(t) / A(0), (T, F) [1] (ours): free of a constant offset of the marker proxies."""
    first = areas[0]
    out: F8 = areas / np.where(first > 0, first, np.nan)
    return out


def change_from_start(values: F8) -> F8:
    """K(t) - K(0), (T, N), unit of the input (ours): likewise."""
    out: F8 = values - values[0]
    return out
