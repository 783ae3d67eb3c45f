"""Chess pieces after the Staunton pattern (Cook and Jaques, 1849): turned bodies with carved heads.

Every piece stands on z = 0 with its axis on z; the knight looks along +y, the bishop's cut opens
towards +y and the king's cross spreads along x. Sizes are those of a giant outdoor set beside a
person of 1.75 m. The proportions (height to base, order of heights) follow tournament sets: a base
of about 0.4 of the height for the king, and king > queen > bishop > knight > rook > pawn.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.loft import (
    Array,
    clustered,
    column,
    loft,
    monotone_cubic,
    superellipse,
)
from wmeval.assets.meshes import merge, revolve
from wmeval.assets.solids import mirrored
from wmeval.errors import UserError
from wmeval.scene import Box, Capsule, Collision, Cylinder, Mesh, MeshData, Quat, Vec3

Point = tuple[float, float]
Profile = list[Point]

KINDS = ("king", "queen", "rook", "bishop", "knight", "pawn")

CROSS_HALF = 0.105
"""Half width of the king's cross [m]."""

SEGMENTS = 44
"""Facets around a turned body."""


@dataclass(frozen=True)
class Size:
    """Of one kind of piece, in metres: height over all and radius of the base."""

    height: float
    base: float


SIZES: dict[str, Size] = {
    "king": Size(2.60, 0.54),
    "queen": Size(2.36, 0.52),
    "bishop": Size(2.02, 0.46),
    "knight": Size(1.81, 0.48),
    "rook": Size(1.56, 0.46),
    "pawn": Size(1.26, 0.40),
}


# --- profiles: (radius, z), upwards -------------------------------------------------------------


def _bead(r: float, z0: float, z1: float, out: float, steps: int = 5) -> Profile:
    """A half-round ring from z0 to z1 that stands ``out`` beyond r."""
    turn = np.linspace(-math.pi / 2, math.pi / 2, steps + 1)
    middle, half = 0.5 * (z0 + z1), 0.5 * (z1 - z0)
    return [(r + out * math.cos(t), middle + half * math.sin(t)) for t in turn]


def _curve(a: Point, control: Point, b: Point, steps: int = 7) -> Profile:
    """A quadratic Bezier from a to b."""
    t = np.linspace(0, 1, steps + 1)[:, None]
    p = (1 - t) ** 2 * np.array(a) + 2 * t * (1 - t) * np.array(control) + t**2 * np.array(b)
    return [(float(r), float(z)) for r, z in p]


def _foot(r: float, rise: float) -> Profile:
    """Plinth, bead and ogee of a base of radius r; ends ``rise`` up, at 0.56 r."""
    return [
        (0.0, 0.0), (0.95 * r, 0.0), (0.985 * r, 0.02 * r), (r, 0.06 * r), (r, 0.15 * r),
        (0.985 * r, 0.185 * r), (0.94 * r, 0.20 * r),
        *_bead(0.86 * r, 0.21 * r, 0.41 * r, 0.085 * r),
        (0.85 * r, 0.43 * r),
        *_curve((0.83 * r, 0.45 * r), (0.80 * r, 0.45 * r + 0.55 * (rise - 0.45 * r)),
                (0.64 * r, 0.45 * r + 0.74 * (rise - 0.45 * r)), 4),
        *_curve((0.60 * r, 0.45 * r + 0.80 * (rise - 0.45 * r)), (0.56 * r, rise - 0.04 * r),
                (0.56 * r, rise), 3),
    ]  # fmt: skip


def _collar(r: float, z: float, out: float) -> Profile:
    """Three stacked rings, the lowest the widest, from z up to z + 0.42 out."""
    k = out - r
    return [
        (r, z),
        (r + 0.9 * k, z + 0.10 * out), *_bead(r + 0.88 * k, z + 0.11 * out, z + 0.21 * out,
                                              0.12 * k, 4),
        (r + 0.45 * k, z + 0.22 * out), *_bead(r + 0.42 * k, z + 0.23 * out, z + 0.33 * out,
                                               0.14 * k, 4),
        (r + 0.10 * k, z + 0.34 * out), *_bead(r + 0.06 * k, z + 0.35 * out, z + 0.42 * out,
                                               0.12 * k, 3),
    ]  # fmt: skip


def _stem(size: Size, rise: float, neck: float, top: float, collar: float) -> Profile:
    """Foot, waisted stem and collar; ends at ``top``, above a neck of radius ``neck``."""
    r = size.base
    start = top - 0.42 * collar
    return [
        *_foot(r, rise),
        *_bead(0.53 * r, rise + 0.01 * r, rise + 0.13 * r, 0.07 * r),
        *_curve((0.50 * r, rise + 0.15 * r), (0.92 * neck, rise + 0.45 * (start - rise)),
                (neck, start), 9),
        *_collar(neck, start, collar),
    ]  # fmt: skip


def _pawn_profile() -> Profile:
    size = SIZES["pawn"]
    ball = 0.205
    top = size.height - 2 * ball + 0.035
    stem = _stem(size, 0.36, 0.125, top, 0.255)
    middle = size.height - ball
    start = math.asin((top + 0.004 - middle) / ball)
    turn = np.linspace(start, math.pi / 2, 14)
    head = [(ball * math.cos(t), middle + ball * math.sin(t)) for t in turn]
    head[-1] = (0.0, size.height)
    return [*stem, *head]


def _rook_profile() -> Profile:
    size = SIZES["rook"]
    r, h = size.base, size.height
    wall, floor = 0.335, h - 0.165
    return [
        *_foot(r, 0.42),
        *_bead(0.53 * r, 0.425, 0.475, 0.07 * r),
        *_curve((0.262, 0.485), (0.205, 0.80), (0.235, 1.075), 8),
        *_bead(0.25, 1.08, 1.125, 0.03, 4),
        *_curve((0.262, 1.13), (0.275, 1.20), (0.322, 1.225), 4),
        (wall - 0.006, 1.235), (wall, 1.25), (wall, floor),
        # The cup within the battlements; the merlons stand on the rim.
        (wall - 0.085, floor), (wall - 0.092, floor - 0.055), (0.0, floor - 0.075),
    ]  # fmt: skip


def _queen_profile() -> Profile:
    size = SIZES["queen"]
    return [
        *_stem(size, 0.50, 0.160, 1.66, 0.315),
        *_curve((0.175, 1.665), (0.185, 1.86), (0.285, 2.085), 8),
        (0.0, 2.085),
    ]  # fmt: skip


def _king_profile() -> Profile:
    size = SIZES["king"]
    return [
        *_stem(size, 0.52, 0.170, 1.80, 0.335),
        *_curve((0.188, 1.805), (0.200, 1.98), (0.288, 2.165), 8),
        (0.300, 2.175), *_bead(0.292, 2.18, 2.225, 0.016, 4),
        *_curve((0.285, 2.23), (0.250, 2.275), (0.130, 2.30), 6),
        *_bead(0.060, 2.302, 2.345, 0.032, 4),
        *_curve((0.060, 2.348), (0.030, 2.36), (0.0, 2.362), 3),
    ]  # fmt: skip


def _bishop_profile() -> Profile:
    size = SIZES["bishop"]
    return [*_stem(size, 0.44, 0.132, 1.42, 0.265), (0.135, 1.425), (0.0, 1.44)]


def _knight_profile() -> Profile:
    size = SIZES["knight"]
    r = size.base
    return [
        *_foot(r, 0.40)[:-5],
        *_curve((0.80 * r, 0.46 * r), (0.79 * r, 0.62 * r), (0.70 * r, 0.68 * r), 4),
        *_bead(0.66 * r, 0.69 * r, 0.80 * r, 0.05 * r, 4),
        (0.62 * r, 0.81 * r), (0.0, 0.84 * r),
    ]  # fmt: skip


# --- carved heads -------------------------------------------------------------------------------


def _cross() -> MeshData:
    """The king's cross pattee: four arms that widen outwards, cut from a thick plate."""
    z0, top = 2.345, SIZES["king"].height
    middle, thick = z0 + 0.55 * (top - z0), 0.035
    root, tip = 0.024, 0.062
    up, down, side = top - middle, middle - z0, CROSS_HALF
    outline = np.array(
        [
            (root, root), (side, tip), (side, -tip), (root, -root), (tip, -down), (-tip, -down),
            (-root, -root), (-side, -tip), (-side, tip), (-root, root), (-tip, up), (tip, up),
        ][::-1]
    )  # fmt: skip
    rings = []
    for y, k in ((-thick, 0.86), (-thick + 0.008, 1.0), (thick - 0.008, 1.0), (thick, 0.86)):
        ring = np.column_stack([outline[:, 0], np.full(len(outline), y), outline[:, 1]])
        # The bevel draws every arm in towards the middle.
        ring[:, [0, 2]] *= k if k == 1.0 else 0.95
        ring[:, 2] += middle
        rings.append(ring)
    return _star_loft(np.array(rings))


def _star_loft(rings: Array) -> MeshData:
    """A loft whose rings are star-shaped about their middle (any cap fans out from it)."""
    mesh = loft(rings, crease_deg=30.0)
    corner = mesh.vertices.astype(np.float64)[mesh.triangles]
    volume = np.einsum("ij,ij->i", corner[:, 0], np.cross(corner[:, 1], corner[:, 2])).sum()
    return mesh if volume > 0 else loft(rings[:, ::-1], crease_deg=30.0)


def _merlons() -> MeshData:
    """The rook's battlements: six blocks of a ring."""
    top = SIZES["rook"].height
    low, inner, outer = top - 0.17, 0.247, 0.335
    parts = []
    count, share = 6, 0.66
    for k in range(count):
        middle = 2 * math.pi * (k + 0.5) / count
        half = share * math.pi / count
        angle = np.linspace(middle - half, middle + half, 7)
        bevel = 0.010
        rings = []
        for z, r0, r1, trim in (
            (low, inner, outer, 0.0), (top - bevel, inner, outer, 0.0),
            (top, inner + bevel, outer - bevel, bevel / outer),
        ):  # fmt: skip
            a = np.clip(angle, middle - half + trim, middle + half - trim)
            arc = np.concatenate([r1 * np.exp(1j * a), r0 * np.exp(1j * a[::-1])])
            rings.append(np.column_stack([arc.real, arc.imag, np.full(len(arc), z)]))
        parts.append(loft(np.array(rings), crease_deg=35.0))
    return merge(parts)


def _coronet() -> MeshData:
    """The queen's crown: a hollow flaring rim cut into nine points, a dome and a ball within."""
    top, rim = SIZES["queen"].height, 2.085
    points, around = 9, 108
    angle = 2 * np.pi * np.arange(around) / around
    # Scallops: round valleys between the points.
    height = 0.125 - 0.085 * np.abs(np.cos(0.5 * points * angle)) ** 0.8
    rings = []
    for share, r0, r1 in (
        (0.0, 0.285, 0.285), (0.35, 0.295, 0.302), (0.8, 0.308, 0.320), (1.0, 0.306, 0.318),
        (1.02, 0.290, 0.300), (0.9, 0.270, 0.278), (0.3, 0.245, 0.250), (-0.25, 0.215, 0.215),
    ):  # fmt: skip
        r = r0 + (r1 - r0) * height / 0.125
        z = rim + share * height if share >= 0 else np.full(around, rim + share * 0.125)
        rings.append(np.column_stack([r * np.cos(angle), r * np.sin(angle), z]))
    crown = loft(np.array(rings), crease_deg=60.0)
    ball = 0.062
    middle = top - ball
    dome = [
        (0.0, rim - 0.06), (0.222, rim - 0.05),
        *_curve((0.222, rim - 0.035), (0.205, rim + 0.10), (0.075, middle - 0.078), 7),
        *_bead(0.046, middle - 0.076, middle - 0.052, 0.020, 3),
    ]  # fmt: skip
    turn = np.linspace(-0.9, math.pi / 2, 10)
    dome += [(ball * math.cos(t), middle + ball * math.sin(t)) for t in turn]
    dome[-1] = (0.0, top)
    return merge([crown, revolve(dome, SEGMENTS)])


def _mitre() -> MeshData:
    """The bishop's mitre: an egg sliced by a family of tilted planes, one slice cut open."""
    low, tip, widest = 1.425, 1.93, 1.62
    fat = 0.192
    z = np.array([low - 0.02, low, 1.49, 1.555, widest, 1.70, 1.78, 1.85, 1.905, tip])
    r = np.array([0.0, 0.105, 0.166, 0.187, fat, 0.182, 0.148, 0.100, 0.050, 0.0])
    tilt = math.radians(38)
    # In-plane axes and normal of the slices; the cut opens towards +y.
    u = np.array([0.0, math.cos(tilt), -math.sin(tilt)])
    n = np.array([0.0, math.sin(tilt), math.cos(tilt)])
    v = np.array([-1.0, 0.0, 0.0])
    origin = np.array([0.0, 0.0, 1.735])

    def inside(p: Array) -> NDArray[np.bool_]:
        radius = np.interp(p[..., 2], fine_z, fine_r, left=-1.0, right=-1.0)
        return np.hypot(p[..., 0], p[..., 1]) <= radius

    fine_z = np.linspace(z[0], z[-1], 400)
    fine_r = np.maximum(monotone_cubic(z, r, fine_z), 0.0)
    outline = np.stack([np.zeros_like(fine_z), fine_r, fine_z], axis=1)
    spread = np.concatenate([outline, outline * [1, -1, 1]]) - origin
    reach = spread @ n
    lowest, highest = float(reach.min()), float(reach.max())
    width = 0.017
    ends = 0.5 - 0.5 * np.cos(np.pi * np.arange(17) / 16)
    below = lowest + (-width - lowest) * np.clip(ends * 1.0, 0, 1)
    above = width + (highest - width) * np.clip(ends * 1.0, 0, 1)
    angle = 2 * np.pi * np.arange(56) / 56
    rings, cuts = [], [*((d, False) for d in below), (-width, True), (width, True)]
    cuts += [(d, False) for d in above]
    for offset, cut in cuts:
        d = float(np.clip(offset, lowest + 1e-4, highest - 1e-4))
        # A point of the slice well inside: the middle of its chord on the plane of symmetry.
        chord = origin + d * n + np.linspace(-0.5, 0.5, 2001)[:, None] * u
        within = np.flatnonzero(inside(chord))
        middle = chord[(within[0] + within[-1]) // 2] if len(within) else origin + d * n
        far, near = np.full(len(angle), 0.6), np.zeros(len(angle))
        way = np.cos(angle)[:, None] * u + np.sin(angle)[:, None] * v
        for _ in range(40):
            half = 0.5 * (far + near)
            hit = inside(middle + half[:, None] * way)
            near, far = np.where(hit, half, near), np.where(hit, far, half)
        ring = middle + near[:, None] * way
        if cut:
            along = (ring - origin) @ u
            ring = ring - np.maximum(along - 0.015, 0.0)[:, None] * u
        rings.append(ring)
    mesh = _star_loft(np.array(rings))
    ball, middle_z = 0.058, SIZES["bishop"].height - 0.058
    turn = np.linspace(-1.15, math.pi / 2, 10)
    finial = [(0.0, tip - 0.05), (0.030, tip - 0.04)]
    finial += [(ball * math.cos(t), middle_z + ball * math.sin(t)) for t in turn]
    finial[-1] = (0.0, SIZES["bishop"].height)
    return merge([mesh, revolve(finial, 32)])


# The horse's head: cross-sections along a spine in the plane x = 0. Each row: y and z of its
# middle, direction of the spine [deg from +y towards +z], half width (x), half depth, squareness.
_NECK = (
    (0.015, 0.385, 90.0, 0.245, 0.300, 2.3),
    (0.020, 0.520, 95.0, 0.215, 0.305, 2.2),
    (-0.015, 0.720, 104.0, 0.178, 0.285, 2.1),
    (-0.070, 0.930, 100.0, 0.156, 0.255, 2.0),
    (-0.095, 1.130, 89.0, 0.146, 0.238, 2.0),
    (-0.070, 1.310, 74.0, 0.142, 0.228, 2.0),
    (-0.005, 1.460, 56.0, 0.138, 0.205, 2.1),
    (0.070, 1.560, 40.0, 0.118, 0.150, 2.2),
    (0.115, 1.598, 32.0, 0.070, 0.080, 2.2),
)
_FACE = (
    (-0.005, 1.520, -40.0, 0.080, 0.095, 2.2),
    (0.040, 1.478, -43.0, 0.135, 0.185, 2.3),
    (0.100, 1.418, -46.0, 0.160, 0.222, 2.4),
    (0.172, 1.342, -48.0, 0.154, 0.212, 2.5),
    (0.252, 1.270, -49.0, 0.130, 0.162, 2.6),
    (0.330, 1.198, -49.0, 0.112, 0.118, 2.6),
    (0.398, 1.124, -49.0, 0.104, 0.096, 2.5),
    (0.448, 1.066, -50.0, 0.105, 0.094, 2.4),
    (0.484, 1.022, -51.0, 0.092, 0.080, 2.3),
    (0.503, 0.999, -51.0, 0.048, 0.045, 2.2),
)
_JAW = (
    (0.060, 1.340, -52.0, 0.060, 0.070, 2.2),
    (0.110, 1.270, -52.0, 0.098, 0.098, 2.3),
    (0.180, 1.185, -51.0, 0.092, 0.080, 2.3),
    (0.250, 1.105, -50.0, 0.080, 0.058, 2.3),
    (0.318, 1.025, -50.0, 0.072, 0.048, 2.3),
    (0.362, 0.975, -50.0, 0.064, 0.042, 2.2),
    (0.380, 0.954, -50.0, 0.032, 0.022, 2.1),
)
_Row = tuple[float, float, float, float, float, float]


def _swept(
    rows: tuple[_Row, ...], points: int, between: int, shape: Callable[[Array, float], Array]
) -> MeshData:
    """A loft of cross-sections across a spine in the plane x = 0, rounded by cubics."""
    table = np.array(rows)
    t = np.arange(len(rows), dtype=np.float64)
    fine = np.linspace(0, t[-1], (len(rows) - 1) * between + 1)
    y, z, turn, a, b, p = (monotone_cubic(t, table[:, k], fine) for k in range(6))
    rings = []
    for k, share in enumerate(fine / t[-1]):
        flat = shape(superellipse(points, a[k], b[k], p[k]), float(share))
        angle = math.radians(turn[k])
        # Across the spine: x, and the direction that lies a quarter turn back from it.
        back = np.array([0.0, -math.sin(angle), math.cos(angle)])
        rings.append(np.array([0.0, y[k], z[k]]) + flat[:, :1] * [1.0, 0, 0] + flat[:, 1:] * back)
    return _star_loft(np.array(rings))


def _horse() -> MeshData:
    def neck(flat: Array, share: float) -> Array:
        # Narrower towards the crest, fuller in front.
        out = flat.copy()
        crest = np.clip(out[:, 1] / max(float(out[:, 1].max()), 1e-9), 0, 1)
        out[:, 0] *= 1 - 0.62 * crest**1.5 * min(1.0, 4 * share)
        return out

    def face(flat: Array, share: float) -> Array:
        # A flat broad forehead above, a narrower jaw below; the bridge of the nose is a little
        # hollow and the nostrils are flared.
        out = flat.copy()
        low = np.clip(-out[:, 1] / max(float(-out[:, 1].min()), 1e-9), 0, 1)
        out[:, 0] *= 1 - 0.38 * low**1.3
        if 0.55 < share < 0.75:
            out[:, 0] *= 1 - 0.10 * math.sin(math.pi * (share - 0.55) / 0.2)
        return out

    parts = [_swept(_NECK, 30, 3, neck), _swept(_FACE, 30, 3, face), _mane()]
    parts.append(_swept(_JAW, 20, 3, lambda flat, _: flat))
    for side in (_cheek(), _eye(), _nostril(), _ear()):
        parts += [side, mirrored(side)]
    return merge(parts)


def _blob(at: Array, axes: Array, radii: tuple[float, float, float], n: int = 18) -> MeshData:
    """An ellipsoid with given unit axes (rows)."""
    turn = np.linspace(-math.pi / 2, math.pi / 2, n // 2 + 1)
    rings = []
    for t in turn:
        ring = superellipse(n, radii[0] * max(math.cos(t), 1e-4), radii[1] * max(math.cos(t), 1e-4))
        local = np.column_stack([ring, np.full(n, radii[2] * math.sin(t))])
        rings.append(at + local @ axes)
    return _star_loft(np.array(rings))


def _axes(turn_deg: float) -> Array:
    """Unit rows: along the face, across it (upwards), sideways."""
    a = math.radians(turn_deg)
    along, across = (
        np.array([0, math.cos(a), math.sin(a)]),
        np.array([0, -math.sin(a), math.cos(a)]),
    )
    return np.array([along, across, [1.0, 0, 0]])


def _cheek() -> MeshData:
    return _blob(np.array([0.088, 0.085, 1.335]), _axes(-48), (0.165, 0.150, 0.068), 24)


def _eye() -> MeshData:
    brow = _blob(np.array([0.122, 0.232, 1.462]), _axes(-40), (0.070, 0.028, 0.034), 14)
    ball = _blob(np.array([0.132, 0.228, 1.428]), _axes(-48), (0.036, 0.028, 0.024), 14)
    return merge([brow, ball])


def _nostril() -> MeshData:
    return _blob(np.array([0.082, 0.482, 1.082]), _axes(-25), (0.040, 0.020, 0.026), 14)


def _ear() -> MeshData:
    ear = column(
        [(0.0, 0.038, 0.046, 0.0, 0.0), (0.05, 0.040, 0.048, 0.004, 0.006),
         (0.11, 0.030, 0.036, 0.010, 0.018), (0.16, 0.016, 0.019, 0.014, 0.034),
         (0.20, 0.003, 0.003, 0.016, 0.050)],
        points=14,
    )  # fmt: skip
    lean = math.radians(-8)
    turn = np.array(
        [[1, 0, 0], [0, math.cos(lean), math.sin(lean)], [0, -math.sin(lean), math.cos(lean)]]
    )
    vertices = ear.vertices @ turn.astype(np.float32) + np.array([0.066, 0.050, 1.615], np.float32)
    return MeshData(
        np.ascontiguousarray(vertices, np.float32), ear.triangles,
        np.ascontiguousarray(ear.normals @ turn.astype(np.float32), np.float32), ear.uv,
    )  # fmt: skip


def _mane() -> MeshData:
    """A ridge along the crest of the neck, carved into locks."""
    table = np.array(_NECK)
    t = np.arange(len(table), dtype=np.float64)
    fine = np.linspace(0.9, 7.7, 71)
    y, z, turn, _, b, _ = (monotone_cubic(t, table[:, k], fine) for k in range(6))
    rings = []
    for k, share in enumerate(np.linspace(0, 1, len(fine))):
        angle = math.radians(turn[k])
        back = np.array([0.0, -math.sin(angle), math.cos(angle)])
        # Seven locks; each rises gently from below and falls off steeply above.
        part = 7 * share % 1.0
        lock = min(part / 0.8, (1 - part) / 0.2) ** 0.8
        swell = min(1.0, 0.35 + 2.2 * share, 4 * (1.02 - share))
        high, wide = (0.012 + 0.050 * lock) * swell, (0.050 + 0.012 * lock) * swell
        flat = superellipse(14, max(wide, 1e-3), max(high + 0.07, 1e-3), 2.2)
        centre = np.array([0.0, y[k], z[k]]) + back * (b[k] - 0.045)
        rings.append(centre + flat[:, :1] * [1.0, 0, 0] + flat[:, 1:] * back)
    return _star_loft(np.array(rings))


# --- pieces -------------------------------------------------------------------------------------

_PROFILES: dict[str, Callable[[], Profile]] = {
    "king": _king_profile, "queen": _queen_profile, "rook": _rook_profile,
    "bishop": _bishop_profile, "knight": _knight_profile, "pawn": _pawn_profile,
}  # fmt: skip
_HEADS: dict[str, Callable[[], MeshData]] = {
    "king": _cross, "queen": _coronet, "rook": _merlons, "bishop": _mitre, "knight": _horse,
}  # fmt: skip


@lru_cache(maxsize=16)
def piece_mesh(kind: str) -> MeshData:
    """Mesh of a piece, standing on z = 0.

    Raises:
        UserError: no such kind.
    """
    if kind not in KINDS:
        raise UserError(f"no chess piece {kind!r}: choose from {', '.join(KINDS)}")
    body = revolve(_PROFILES[kind](), SEGMENTS)
    return merge([body, _HEADS[kind]()]) if kind in _HEADS else body


# Facets around, distance [m] that a profile may be straightened by, cell of the carved heads [m].
_COARSER = ((10, 0.024, 0.060), (18, 0.007, 0.022), (28, 0.0025, 0.009))


def _straightened(profile: Profile, tolerance: float) -> Profile:
    """The profile without points that lie this close to the line of their neighbours.

    By the method of Ramer (1972) and Douglas & Peucker (1973).
    """
    points = np.array(profile)
    keep = np.zeros(len(points), bool)
    keep[[0, -1]] = True
    spans = [(0, len(points) - 1)]
    while spans:
        start, end = spans.pop()
        if end - start < 2:
            continue
        a, b = points[start], points[end]
        way = b - a
        length = math.hypot(*way)
        between = points[start + 1 : end] - a
        if length > 0:
            along = np.clip(between @ way / length**2, 0, 1)
            off = np.linalg.norm(between - along[:, None] * way, axis=1)
        else:
            off = np.linalg.norm(between, axis=1)
        worst = int(off.argmax())
        if off[worst] > tolerance:
            keep[start + 1 + worst] = True
            spans += [(start, start + 1 + worst), (start + 1 + worst, end)]
    return [profile[k] for k in np.flatnonzero(keep)]


@lru_cache(maxsize=16)
def coarser_meshes(kind: str) -> tuple[tuple[MeshData, float], ...]:
    """Stand-ins of a piece for pictures from afar, coarse to fine: mesh, departure [m].

    Raises:
        UserError: no such kind.
    """
    piece_mesh(kind)
    profile = _PROFILES[kind]()
    widest = max(r for r, _ in profile)
    out = []
    for segments, tolerance, cell in _COARSER:
        body = revolve(_straightened(profile, tolerance), segments)
        off = tolerance + widest * (1 - math.cos(math.pi / segments))
        if kind in _HEADS:
            head, moved = clustered(_HEADS[kind](), cell)
            body, off = merge([body, head]), max(off, moved)
        out.append((body, off))
    return tuple(out)


def piece_shape(kind: str) -> tuple[Mesh, dict[str, MeshData]]:
    """Shape of a piece for a scene, and the meshes that it refers to by content hash.

    Raises:
        UserError: no such kind.
    """
    mesh = piece_mesh(kind)
    meshes = {mesh.content_hash(): mesh}
    coarser = []
    for stand_in, off in coarser_meshes(kind):
        key = stand_in.content_hash()
        meshes[key] = stand_in
        coarser.append((key, off))
    return Mesh(sha256=mesh.content_hash(), coarser=tuple(coarser)), meshes


# --- what is bumped into ------------------------------------------------------------------------

_STEP_M, _FIT_M = 0.01, 0.03


def _outline(mesh: MeshData, low: float, high: float) -> tuple[Array, Array]:
    """Largest distance from the axis at heights from ``low`` to ``high``, every `_STEP_M`."""
    v = mesh.vertices.astype(np.float64)[mesh.triangles]
    share = np.linspace(0, 1, 9)[:, None, None, None]
    edge = v[None] * (1 - share) + np.roll(v, -1, axis=1)[None] * share
    points = edge.reshape(-1, 3)
    count = max(math.ceil((high - low) / _STEP_M - 1e-9), 1)
    which = np.floor((points[:, 2] - low) / _STEP_M).astype(int)
    inside = (which >= 0) & (points[:, 2] <= high + 1e-9)
    out = np.zeros(count)
    radius = np.hypot(points[inside, 0], points[inside, 1])
    np.maximum.at(out, np.minimum(which[inside], count - 1), radius)
    return low + _STEP_M * np.arange(count), out


def _discs(mesh: MeshData, low: float, high: float) -> list[Collision]:
    """Cylinders around the axis that hold the mesh and stand off by `_FIT_M` at most."""
    heights, radii = _outline(mesh, low, high)
    known = radii > 0
    radii = np.interp(heights, heights[known], radii[known])
    out, start = [], 0
    for k in range(1, len(heights) + 1):
        part = radii[start : k + 1] if k < len(heights) else None
        if part is not None and float(np.ptp(part)) <= _FIT_M:
            continue
        z0, z1 = heights[start], min(heights[k - 1] + _STEP_M, high)
        shape = Cylinder(radius=float(radii[start:k].max()), height=float(z1 - z0))
        out.append(Collision(shape=shape, position=(0.0, 0.0, float(0.5 * (z0 + z1)))))
        start = k
    return out


def _rod(a: Vec3, b: Vec3, radius: float) -> Collision:
    """A capsule in the plane x = 0 whose ends' middles are a and b."""
    dy, dz = b[1] - a[1], b[2] - a[2]
    length = math.hypot(dy, dz)
    # Turned about x, which takes z to (0, -sin, cos).
    half = 0.5 * math.atan2(-dy, dz)
    turn: Quat = (math.cos(half), math.sin(half), 0.0, 0.0)
    middle = (0.0, 0.5 * (a[1] + b[1]), 0.5 * (a[2] + b[2]))
    shape = Capsule(radius=radius, height=length + 2 * radius)
    return Collision(shape=shape, position=middle, quaternion_wxyz=turn)


@lru_cache(maxsize=16)
def piece_collision(kind: str) -> tuple[Collision, ...]:
    """Primitives that a piece collides with: discs of its turned outline, and its carved head.

    They hold the mesh (the knight's: nearly) and stand off by 3 cm at most where it is turned.

    Raises:
        UserError: no such kind.
    """
    mesh, size = piece_mesh(kind), SIZES[kind]
    if kind == "king":
        half = 0.5 * (size.height - 2.36)
        cross = Collision(
            shape=Box(half_extents=(CROSS_HALF, 0.036, half)),
            position=(0.0, 0.0, size.height - half),
        )
        return (*_discs(mesh, 0.0, 2.36), cross)
    if kind == "knight":
        neck = (
            _rod((0.0, 0.03, 0.50), (0.0, -0.01, 0.70), 0.27),
            _rod((0.0, -0.04, 0.80), (0.0, -0.09, 1.12), 0.25),
            _rod((0.0, -0.09, 1.15), (0.0, 0.00, 1.45), 0.23),
        )
        head = (
            _rod((0.0, 0.02, 1.48), (0.0, 0.21, 1.27), 0.20),
            _rod((0.0, 0.25, 1.25), (0.0, 0.42, 1.06), 0.13),
        )
        return (*_discs(mesh, 0.0, 0.84 * size.base), *neck, *head)
    return tuple(_discs(mesh, 0.0, size.height))
