"""A sports car: a lofted body in one skin, a cabin, spoiler and lamps, and wheels with rims.

The body's frame: x right, y forward, z up, origin at the centre of mass, `COM_HEIGHT` above the
road. The skin is a stack of cross-sections along y whose points keep their place around the ring,
so that paint, stripes, glass, lamps and sills are patches of one smooth surface. The arches over
the wheels are where its underside is cut out.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.loft import monotone_cubic, shaded
from wmeval.assets.meshes import box, cylinder, merge, revolve
from wmeval.assets.solids import mirrored, moved, rotated
from wmeval.scene import Mesh, MeshData, Quat, Vec3, Visual

Array = NDArray[np.float64]

COM_HEIGHT = 0.5
AXLE = 1.30
"""The axles' distance from the centre of mass [m]."""
HALF_TRACK = 0.80
WHEEL_RADIUS, WHEEL_WIDTH = 0.34, 0.27
LENGTH, WIDTH, HEIGHT = 4.50, 1.92, 1.20
REAR, FRONT = -2.14, 2.26
ARCH = 0.395
"""Radius of the wheel arches [m]."""

PAINT, STRIPE, DARK, GLASS, LAMP, TAIL = "paint", "stripe", "dark", "glass", "lamp", "tail"
TYRE, RIM, DISC = "tyre", "rim", "disc"
PARTS = (PAINT, STRIPE, DARK, GLASS, LAMP, TAIL, TYRE, RIM, DISC)
"""What a car is made of: names of materials, see `Car`."""

_STRIPE_X = (0.085, 0.33)


@dataclass(frozen=True, eq=False)
class Car:
    """Visuals of a car, with the meshes that they name.

    Attributes:
        body: of the chassis; materials are the names of `PARTS` behind a prefix.
        wheel: of a left and of a right wheel; x is the axle, the wheel's middle the origin.
        meshes: by content hash.
    """

    body: tuple[Visual, ...]
    wheel: tuple[tuple[Visual, ...], tuple[Visual, ...]]
    meshes: dict[str, MeshData]


@lru_cache(maxsize=4)
def sports_car(prefix: str = "car_") -> Car:
    """The car; equal every time."""
    meshes: dict[str, MeshData] = {}

    def shown(parts: dict[str, MeshData]) -> tuple[Visual, ...]:
        visuals = []
        for name, mesh in parts.items():
            key = mesh.content_hash()
            meshes[key] = mesh
            visuals.append(Visual(shape=Mesh(sha256=key), material=prefix + name))
        return tuple(visuals)

    right = wheel()
    left = {name: mirrored(mesh) for name, mesh in right.items()}
    return Car(shown(body()), (shown(left), shown(right)), meshes)


# --- the skin -----------------------------------------------------------------------------------


def _curve(table: tuple[tuple[float, ...], ...], at: Array) -> Array:
    """Columns of a table (first column ascending) at points, by a monotone cubic."""
    columns = np.array(table, np.float64).T
    return np.stack([monotone_cubic(columns[0], c, at) for c in columns[1:]], axis=1)


_BODY: tuple[tuple[float, ...], ...] = (
    # y, half width, underside, waist (widest), shoulder, crown at the middle line
    (-2.14, 0.800, 0.36, 0.58, 0.80, 0.845),
    (-2.08, 0.870, 0.30, 0.58, 0.845, 0.885),
    (-1.90, 0.915, 0.24, 0.57, 0.865, 0.900),
    (-1.60, 0.945, 0.20, 0.56, 0.870, 0.895),
    (-1.30, 0.958, 0.17, 0.55, 0.872, 0.885),
    (-0.90, 0.945, 0.16, 0.53, 0.835, 0.865),
    (-0.40, 0.915, 0.16, 0.50, 0.790, 0.850),
    (0.20, 0.905, 0.16, 0.48, 0.765, 0.840),
    (0.70, 0.920, 0.16, 0.48, 0.765, 0.815),
    (1.05, 0.940, 0.16, 0.49, 0.795, 0.780),
    (1.30, 0.945, 0.16, 0.50, 0.805, 0.755),
    (1.60, 0.930, 0.17, 0.48, 0.765, 0.705),
    (1.90, 0.880, 0.18, 0.42, 0.640, 0.610),
    (2.08, 0.800, 0.19, 0.37, 0.545, 0.545),
    (2.20, 0.680, 0.21, 0.33, 0.450, 0.470),
    (2.26, 0.540, 0.25, 0.32, 0.390, 0.400),
)

_CABIN: tuple[tuple[float, ...], ...] = (
    # y, half width at the belt, half width of the roof, belt, roof at the middle line
    (-1.55, 0.46, 0.38, 0.860, 0.892),
    (-1.25, 0.60, 0.46, 0.835, 0.975),
    (-0.95, 0.70, 0.52, 0.800, 1.075),
    (-0.65, 0.745, 0.560, 0.780, 1.150),
    (-0.35, 0.765, 0.585, 0.770, 1.192),
    (-0.05, 0.770, 0.590, 0.765, 1.200),
    (0.20, 0.765, 0.580, 0.765, 1.172),
    (0.45, 0.745, 0.560, 0.765, 1.080),
    (0.70, 0.700, 0.530, 0.765, 0.955),
    (0.95, 0.600, 0.480, 0.755, 0.800),
)


def _stations() -> Array:
    """Places along y: closer where the arches begin and where the ends round off."""
    parts: list[Array] = [
        np.linspace(REAR, FRONT, 45),
        np.array([-2.12, -2.1, 2.14, 2.17, 2.23, 2.25]),
    ]
    for axle in (-AXLE, AXLE):
        angle = np.linspace(0, np.pi, 19)
        parts.append(axle - ARCH * np.cos(angle))
        parts.append(np.array([axle - ARCH - 0.004, axle + ARCH + 0.004]))
    y = np.unique(np.round(np.concatenate(parts), 4))
    # Two stations closer than this would make slivers, but for the steps at the arches' ends.
    keep = np.concatenate([[True], np.diff(y) > 0.0035])
    return np.asarray(y[keep])


def _arch(y: float) -> float:
    """Height of the arch over the wheels at a place, 0 away from them."""
    for axle in (-AXLE, AXLE):
        square = ARCH**2 - (y - axle) ** 2
        if square > 0:
            return WHEEL_RADIUS + 0.015 + math.sqrt(square)
    return 0.0


def _half_ring(w: float, low: float, waist: float, shoulder: float, crown: float) -> Array:
    """Right half of a cross-section (x, z), from the underside's middle over the side to the top.

    The points of the stripes' edges come at the same place in every ring.
    """
    waist = max(waist, low + 0.03)
    sill = 0.94 * w
    # An arch cuts into the sides alone.
    deep = min(low, crown - 0.10)
    under = [(0.0, deep), (0.62, deep), (sill - 0.02, low), (sill, low + 0.012)]
    side_z = np.linspace(low + 0.03, shoulder, 9)
    t = (side_z - waist) / max(shoulder - waist, 1e-6)
    below = np.clip((waist - side_z) / max(waist - low, 1e-6), 0, 1)
    side_x = w * np.where(t > 0, 1 - 0.035 * t**2, 1 - 0.055 * below**1.5)
    side = list(zip(side_x.tolist(), side_z.tolist(), strict=True))
    edge = side[-1][0]
    top_x = [0.965 * edge, 0.90 * edge, 0.80 * edge, 0.66 * edge, 0.52 * edge]
    inner = [min(x, 0.62 * 0.66 * edge) for x in (_STRIPE_X[1], _STRIPE_X[0])]
    top = []
    for x in (*top_x, inner[0], inner[1], 0.0):
        share = x / edge
        # From the shoulder it rolls over quickly, then the panel is nearly flat to the middle.
        roll = 0.020 * (1 - share**14)
        top.append((x, shoulder + roll + (crown - shoulder - 0.02) * (1 - share**2.4)))
    return np.array([*under, *side, *top])


_HALF = 4 + 9 + 8
_STRIPE_OUT = _HALF - 3


def _closed(half: Array, y: float) -> Array:
    """A whole ring (2 H - 2, 3), counter-clockwise seen from the front, from the half (H, 2)."""
    left = half.copy()
    left[:, 0] *= -1
    outline = np.concatenate([left, half[-2:0:-1]])
    return np.column_stack([outline[:, 0], np.full(len(outline), y), outline[:, 1] - COM_HEIGHT])


def _sides(around: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Quads of a ring in order from the underside's middle to the top's, left and right."""
    left = np.arange(around // 2)
    return left, around - 1 - left


def _skin_patches(rings: Array, parts: NDArray[np.int64], names: tuple[str, ...],
                  caps: tuple[int, int], crease: float) -> dict[str, MeshData]:  # fmt: skip
    """Meshes of a closed loft by what its quads are made of.

    Args:
        rings: (R, M, 3).
        parts: (R - 1, M) index into ``names`` of the quad between ring r, r + 1 and point m, m + 1.
        names: materials.
        caps: index into ``names`` of the first and the last cap.
        crease: sharp edges from this angle on [deg].
    """
    count, around = rings.shape[:2]
    vertices = rings.reshape(-1, 3)
    r, m = np.meshgrid(np.arange(count - 1), np.arange(around), indexing="ij")
    n = (m + 1) % around
    a, b = r * around + m, r * around + n
    c, d = a + around, b + around
    one, two = np.stack([a, b, d], axis=-1), np.stack([a, d, c], axis=-1)
    triangles = np.concatenate([one.reshape(-1, 3), two.reshape(-1, 3)])
    owner = np.concatenate([parts.ravel(), parts.ravel()])
    # The caps fan out from their middles.
    middles = np.stack([rings[0].mean(axis=0), rings[-1].mean(axis=0)])
    k = np.arange(around)
    first = np.stack([np.full(around, len(vertices)), (k + 1) % around, k], axis=1)
    base = (count - 1) * around
    last = np.stack([np.full(around, len(vertices) + 1), base + k, base + (k + 1) % around], axis=1)
    vertices = np.concatenate([vertices, middles])
    triangles = np.concatenate([triangles, first, last])
    owner = np.concatenate([owner, np.full(around, caps[0]), np.full(around, caps[1])])
    # Normals come from the whole skin; each patch then keeps its own triangles.
    corner = vertices[triangles]
    area = np.linalg.norm(
        np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0]), axis=1
    )
    keep = area > 1e-12
    whole = shaded(vertices, triangles[keep], np.zeros((len(vertices), 2)), crease_deg=crease)
    owner = owner[keep]
    out = {}
    for index, name in enumerate(names):
        chosen = whole.triangles[owner == index]
        if not len(chosen):
            continue
        used, again = np.unique(chosen, return_inverse=True)
        out[name] = MeshData(
            np.ascontiguousarray(whole.vertices[used]),
            np.ascontiguousarray(np.asarray(again).reshape(-1, 3), np.uint32),
            np.ascontiguousarray(whole.normals[used]),
            np.ascontiguousarray(whole.uv[used]),
        )
    return out


def _shell() -> dict[str, MeshData]:
    y = _stations()
    table = _curve(_BODY, y)
    rings = []
    for place, (w, low, waist, shoulder, crown) in zip(y, table, strict=True):
        arch = _arch(float(place))
        # Fenders stand out a little around the arches.
        flare = 0.016 * math.exp(-(((abs(float(place)) - AXLE) / 0.42) ** 4))
        rings.append(_closed(_half_ring(w + flare, max(low, arch), waist, shoulder, crown), place))
    count, around = len(y), 2 * _HALF - 2
    names = (PAINT, STRIPE, DARK, LAMP)
    parts = np.zeros((count - 1, around), np.int64)
    middle = 0.5 * (y[:-1] + y[1:])
    for side in _sides(around):
        parts[:, side[_STRIPE_OUT]] = 1
        parts[:, side[:4]] = 2
        # Sills: the lowest strip of the side between the wheels.
        between = np.abs(middle) < AXLE - ARCH
        parts[np.ix_(between, side[4:6])] = 2
        # Head lamps: slim, swept back over the corners of the front.
        front = (middle > 1.83) & (middle < 2.09)
        parts[np.ix_(front, side[11:14])] = 3
        # Intakes below them, and the front's lower lip.
        nose = middle > 2.02
        parts[np.ix_(nose, side[4:7])] = 2
    return _skin_patches(np.array(rings), parts, names, (0, 2), 34.0)


def _cabin() -> dict[str, MeshData]:
    y = np.unique(np.concatenate([np.linspace(-1.55, 0.95, 41), [-1.0, -0.97, -0.16, -0.10]]))
    table = _curve(_CABIN, y)
    height = np.array([0.0, 0.12, 0.3, 0.5, 0.7, 0.86, 0.95, 1.0])
    rings = []
    for place, (belt_w, roof_w, belt, roof) in zip(y, table, strict=True):
        foot_z = belt - 0.12  # inside the body
        rise = roof - foot_z
        lean = (belt_w + 0.03) + (roof_w - belt_w - 0.03) * height**1.25
        wall = np.column_stack([lean, foot_z + rise * (0.93 * height)])
        edge_x, edge_z = wall[-1]
        shares = (0.95, 0.86, 0.72, _STRIPE_X[1] / edge_x, _STRIPE_X[0] / edge_x, 0.0)
        top = [(edge_x * s, edge_z + (roof - edge_z) * (1 - min(s, 1.0) ** 2.6)) for s in shares]
        foot = [(0.0, foot_z), (0.6 * belt_w, foot_z)]
        rings.append(_closed(np.array([*foot, *wall, *top]), place))
    half_count = 2 + len(height) + 6
    around = 2 * half_count - 2
    parts = np.zeros((len(y) - 1, around), np.int64)
    middle = 0.5 * (y[:-1] + y[1:])
    roof_on = (middle > -0.62) & (middle < 0.17)
    screen = middle >= 0.17
    rear = middle <= -0.62
    b_pillar = (middle > -0.42) & (middle < -0.34)
    for side in _sides(around):
        glass = side[2:7]
        over = side[10 : half_count - 1]  # towards the middle line
        parts[np.ix_(middle > -1.0, glass)] = 1
        parts[np.ix_(b_pillar, glass)] = 0
        parts[np.ix_(screen | rear, over)] = 1
        parts[np.ix_(middle < -1.12, over)] = 0
        stripe = side[half_count - 3 : half_count - 2]
        parts[np.ix_(roof_on | (middle < -1.12), stripe)] = 2
    return _skin_patches(np.array(rings), parts, (PAINT, GLASS, STRIPE), (0, 0), 40.0)


# --- what is put on -----------------------------------------------------------------------------


def _block(half: Vec3, at: Vec3, bevel: float = 0.01, tilt_deg: float = 0.0) -> MeshData:
    """A bevelled box about ``at`` (road frame), pitched nose up by ``tilt_deg``."""
    made = box(half, bevel, 1)
    t = math.radians(tilt_deg)
    turn = np.array([[1, 0, 0], [0, math.cos(t), -math.sin(t)], [0, math.sin(t), math.cos(t)]])
    return moved(rotated(made, turn), at[0], at[1], at[2] - COM_HEIGHT)


_ALONG_X = np.array([[0.0, 0, 1], [1, 0, 0], [0, 1, 0]])
"""Turns z into x."""
_ALONG_Y = np.array([[1.0, 0, 0], [0, 0, 1], [0, -1, 0]])
"""Turns z into y."""


def body() -> dict[str, MeshData]:
    """Meshes of the chassis by part, origin at the centre of mass."""
    found: dict[str, list[MeshData]] = {name: [] for name in PARTS}
    for patches in (_shell(), _cabin()):
        for name, mesh in patches.items():
            found[name].append(mesh)
    dark, paint, tail, lamp, rim = (found[n] for n in (DARK, PAINT, TAIL, LAMP, RIM))
    # What one sees through the arches: the dark middle of the car.
    dark.append(_block((0.60, 1.84, 0.22), (0.0, -0.14, 0.40), 0.03))
    # Rear: a dark band with the lamps, a diffuser with fins, exhausts, the plate.
    dark.append(_block((0.73, 0.015, 0.062), (0.0, REAR - 0.002, 0.715), 0.008))
    dark.append(_block((0.66, 0.012, 0.07), (0.0, REAR - 0.002, 0.42), 0.01))
    dark.append(_block((0.62, 0.10, 0.075), (0.0, REAR + 0.07, 0.33), 0.02, 14.0))
    for x in (-0.36, -0.12, 0.12, 0.36):
        dark.append(_block((0.012, 0.12, 0.06), (x, REAR + 0.03, 0.28), 0.004))
    for sign in (-1, 1):
        tail.append(_block((0.20, 0.018, 0.034), (0.49 * sign, REAR - 0.008, 0.715), 0.01))
        for x in (0.44, 0.56):
            pipe = moved(rotated(cylinder(0.042, 0.16, 24, 1), _ALONG_Y),
                         x * sign, REAR + 0.02, 0.38 - COM_HEIGHT)  # fmt: skip
            rim.append(pipe)
            dark.append(moved(rotated(cylinder(0.033, 0.01, 24, 0), _ALONG_Y),
                              x * sign, REAR - 0.063, 0.38 - COM_HEIGHT))  # fmt: skip
    lamp.append(_block((0.19, 0.008, 0.045), (0.0, REAR - 0.012, 0.545), 0.004))
    # Spoiler: a wing on two posts.
    wing = _block((0.80, 0.135, 0.014), (0.0, REAR + 0.20, 1.115), 0.012, 6.0)
    found[STRIPE].append(wing)
    for sign in (-1, 1):
        dark.append(_block((0.014, 0.07, 0.12), (0.46 * sign, REAR + 0.22, 1.0), 0.006, -8.0))
        found[STRIPE].append(_block((0.012, 0.14, 0.045), (0.80 * sign, REAR + 0.20, 1.115), 0.006))
        # Mirrors, each on a foot that stands on the door's shoulder: from inside no cabin is seen.
        paint.append(_block((0.095, 0.05, 0.055), (0.90 * sign, 0.53, 0.93), 0.035))
        dark.append(_block((0.06, 0.018, 0.014), (0.82 * sign, 0.53, 0.885), 0.008))
        dark.append(_block((0.020, 0.024, 0.070), (0.785 * sign, 0.53, 0.828), 0.008))
        # Door handle and the air intake before the rear wheel.
        dark.append(_block((0.006, 0.065, 0.012), (0.912 * sign, -0.30, 0.68), 0.005))
        dark.append(_block((0.012, 0.10, 0.075), (0.924 * sign, -0.80, 0.62), 0.01))
    # Front splitter and grille.
    dark.append(_block((0.72, 0.16, 0.012), (0.0, 2.12, 0.19), 0.008))
    dark.append(_block((0.40, 0.05, 0.055), (0.0, 2.225, 0.30), 0.02))
    return {name: merge(meshes) for name, meshes in found.items() if meshes}


def wheel() -> dict[str, MeshData]:
    """Meshes of a right wheel by part: x points outwards along the axle."""
    r, half = WHEEL_RADIUS, WHEEL_WIDTH / 2
    inner = 0.245
    tyre = [
        (inner, -half + 0.02), (inner + 0.02, -half), (r - 0.045, -half - 0.004),
        (r - 0.012, -half + 0.018), (r, -half + 0.05),
        (r, -0.062), (r - 0.008, -0.058), (r - 0.008, -0.05), (r, -0.046),
        (r, 0.046), (r - 0.008, 0.05), (r - 0.008, 0.058), (r, 0.062),
        (r, half - 0.05), (r - 0.012, half - 0.018), (r - 0.045, half + 0.004),
        (inner + 0.02, half), (inner, half - 0.02), (inner - 0.004, 0.0), (inner, -half + 0.02),
    ]  # fmt: skip
    # The rim's barrel is open to the outside; its lip faces outwards.
    barrel = [
        (0.0, -0.02), (0.228, -0.02), (0.228, half - 0.018), (0.236, half - 0.006),
        (inner + 0.006, half - 0.004), (inner + 0.006, half - 0.02), (0.244, -half + 0.02),
        (0.0, -half + 0.04),
    ]  # fmt: skip
    outwards = list(reversed(barrel))
    rim = [rotated(revolve(outwards, 48), _ALONG_X)]
    for k in range(5):
        for side in (-0.16, 0.16):
            angle = 2 * math.pi * k / 5 + side
            spoke = box((0.016, 0.016, 0.098), 0.006, 1)
            c, s = math.cos(angle), math.sin(angle)
            turn = np.array([[1.0, 0, 0], [0, c, -s], [0, s, c]])
            outer = moved(spoke, half - 0.035, -0.045 * side / 0.16 * 0.4, 0.137)
            rim.append(rotated(outer, turn))
    rim.append(moved(rotated(cylinder(0.055, 0.05, 24, 1), _ALONG_X), half - 0.035))
    return {
        TYRE: rotated(revolve(tyre, 48), _ALONG_X),
        RIM: merge(rim),
        DISC: moved(rotated(cylinder(0.165, 0.02, 32, 1), _ALONG_X), 0.012),
    }


def rest_of_wheel(index: int) -> tuple[Vec3, Quat]:
    """Pose of a wheel (front left, front right, rear left, rear right) in the standing car."""
    x = HALF_TRACK * (-1 if index % 2 == 0 else 1)
    y = AXLE if index < 2 else -AXLE
    return (x, y, WHEEL_RADIUS - COM_HEIGHT), (1.0, 0.0, 0.0, 0.0)
