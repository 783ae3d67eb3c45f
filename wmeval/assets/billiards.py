"""Meshes of a carom table: cushions, cue, legs."""

from __future__ import annotations

import math

import numpy as np

from wmeval.assets.meshes import flat_shaded, revolve
from wmeval.scene import MeshData

CUSHION_WIDTH = 0.05
"""From the nose to the wood [m]."""
CUSHION_TOP = 0.041
"""Height of its back over the cloth [m]."""


def cushion(half_length: float, nose: float) -> MeshData:
    """A cushion along x with mitred ends, nose towards +y at y = 0, cloth at z = 0.

    Args:
        half_length: half of the nose's length [m].
        nose: height of the nose over the cloth [m].

    Returns:
        A convex prism behind y = 0.
    """
    # (depth behind the nose, height): the rubber's triangle under its cloth.
    profile = (
        (0.0, nose - 0.0015), (0.0, nose + 0.0015), (0.006, CUSHION_TOP - 0.0015),
        (CUSHION_WIDTH, CUSHION_TOP), (CUSHION_WIDTH, 0.0), (0.010, 0.0),
    )  # fmt: skip
    n = len(profile)
    vertices = np.array([(side * (half_length + d), -d, z) for side in (-1, 1) for d, z in profile])
    sides = [(k, n + k, n + (k + 1) % n, (k + 1) % n) for k in range(n)]
    ends = [tuple(range(n)), tuple(range(2 * n - 1, n - 1, -1))]
    return _outward(vertices, [*sides, *ends])


def _outward(vertices: np.ndarray, faces: list[tuple[int, ...]]) -> MeshData:  # type: ignore[type-arg]
    """A convex solid with every face turned outwards."""
    middle = vertices.mean(axis=0)
    turned = []
    for face in faces:
        a, b, c = (vertices[i] for i in face[:3])
        out = float(np.cross(b - a, c - a) @ (vertices[list(face)].mean(axis=0) - middle))
        turned.append(face if out > 0 else face[::-1])
    return flat_shaded(vertices, turned)


CUE_LENGTH = 1.42
_TIP, _FERRULE, _JOINT = 0.010, 0.022, 0.71
_RADII = ((0.0, 0.0058), (_TIP, 0.0060), (_FERRULE, 0.0061), (_JOINT, 0.0105), (CUE_LENGTH, 0.0145))
"""Distance from the tip and radius [m]."""


def cue_pieces() -> tuple[tuple[str, MeshData], ...]:
    """Material name and mesh of the pieces of a cue; the tip's end is the origin, +z its way."""
    return (
        ("tip", _turned(0.0, _TIP, round_end=True)),
        ("ferrule", _turned(_TIP, _FERRULE)),
        ("shaft", _turned(_FERRULE, _JOINT - 0.012)),
        ("ring", _turned(_JOINT - 0.012, _JOINT + 0.012, 0.0006)),
        ("butt", _turned(_JOINT + 0.012, 1.0)),
        ("grip", _turned(1.0, 1.26, 0.0008)),
        ("butt", _turned(1.26, CUE_LENGTH - 0.02)),
        ("ring", _turned(CUE_LENGTH - 0.02, CUE_LENGTH, 0.0008)),
    )


def _radius(s: float) -> float:
    x, r = zip(*_RADII, strict=True)
    return float(np.interp(s, x, r))


def _turned(start: float, end: float, thicker: float = 0.0, round_end: bool = False) -> MeshData:
    a, b = _radius(start) + thicker, _radius(end) + thicker
    profile = [(0.0, -end), (b, -end)]
    if round_end:
        profile += [(a * math.cos(t), -0.003 + 0.003 * math.sin(t)) for t in np.linspace(0, 1.4, 5)]
        profile.append((0.0, 0.0))
    else:
        profile += [(a, -start), (0.0, -start)]
    return revolve(profile, 24)


def table_leg(height: float) -> MeshData:
    """A turned leg, its foot at z = 0 [m]."""
    h = height
    profile = [
        (0.0, 0.0), (0.055, 0.0), (0.058, 0.012), (0.05, 0.03), (0.04, 0.05), (0.062, 0.085),
        (0.045, 0.12), (0.05, 0.16), (0.066, 0.45 * h), (0.072, 0.62 * h), (0.06, 0.74 * h),
        (0.045, 0.78 * h), (0.07, 0.82 * h), (0.07, 0.84 * h), (0.052, 0.86 * h), (0.085, 0.9 * h),
        (0.085, h), (0.0, h),
    ]  # fmt: skip
    return revolve(profile, 32)
