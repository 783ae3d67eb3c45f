"""Plants in pots and vases. Each stands on its origin, z upwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from wmeval.assets import foliage
from wmeval.assets.meshes import cylinder, merge, revolve
from wmeval.assets.settings.storage import vase
from wmeval.assets.solids import Part, Parts, moved, tube, turned
from wmeval.scene import MeshData


def pot(radius: float, height: float, look: str, *, kind: str = "taper") -> list[Part]:
    """A pot with soil: "taper", "drum" or "belly"."""
    r, h = radius, height
    outline = {
        "taper": [(0.72 * r, 0.0), (r, 0.94 * h)],
        "drum": [(0.96 * r, 0.0), (r, 0.03 * h), (r, 0.94 * h)],
        "belly": [(0.6 * r, 0.0), (0.95 * r, 0.25 * h), (1.04 * r, 0.5 * h), (0.9 * r, 0.94 * h)],
    }[kind]
    rim = outline[-1][0]
    body = revolve([(0.0, 0.0), *outline, (rim, h), (rim - 0.02, h), (rim - 0.025, 0.86 * h),
                    (0.0, 0.86 * h)], 36)  # fmt: skip
    soil = moved(cylinder(rim - 0.024, 0.012, 28, 0), 0, 0, 0.9 * h)
    return [Part(body, look), Part(soil, "soil")]


def _leaf(
    long: float, wide: float, *, bend: float = 0.35, joints: int = 4, fold: float = 0.2
) -> MeshData:
    """A leaf from the origin along +x, arching downwards; a sheet."""
    t = np.linspace(0, 1, joints + 1)
    half = wide / 2 * np.sin(np.pi * np.clip(t * 0.94 + 0.06, 0, 1)) ** 0.75
    half[-1] = 0.0
    turn = bend * t
    x = np.concatenate([[0], np.cumsum(np.cos(turn[1:]) * np.diff(t))]) * long
    z = -np.concatenate([[0], np.cumsum(np.sin(turn[1:]) * np.diff(t))]) * long
    points = np.concatenate(
        [np.stack([x, s * half, z + fold * half * abs(s)], axis=1) for s in (-1, 0, 1)]
    )
    n = joints + 1
    i = np.arange(joints)
    faces = []
    for base in (0, n):
        a, b = base + i, base + n + i
        faces += [np.stack([a, a + 1, b + 1], 1), np.stack([a, b + 1, b], 1)]
    triangles = np.concatenate(faces)
    normals = np.tile(np.stack([np.sin(turn), 0 * t, np.cos(turn)], axis=1), (3, 1))
    uv = points[:, :2] / 0.3
    return MeshData(
        points.astype(np.float32), np.ascontiguousarray(triangles, np.uint32),
        normals.astype(np.float32), uv.astype(np.float32),
    )  # fmt: skip


def _set(leaf: MeshData, climb: float, heading: float, at: Sequence[float]) -> MeshData:
    """A leaf raised by ``climb`` and turned to ``heading`` [deg], its foot at a place."""
    return moved(turned(turned(leaf, (0, 1, 0), -climb), (0, 0, 1), heading), *at)


@lru_cache(maxsize=16)
def fig(height: float, seed: int, *, pot_look: str = "china", kind: str = "drum") -> Parts:
    """A fiddle-leaf fig: a slim trunk with large upright leaves."""
    rng = np.random.Generator(np.random.PCG64(seed))
    foot = 0.3
    out = pot(0.17, foot, pot_look, kind=kind)
    stems, leaves = [], []
    for k in range(3):
        a = 2.1 * k + rng.uniform(0, 1)
        top = height * (1.0 - 0.17 * k) - 0.15
        c, s = math.cos(a), math.sin(a)
        lean = 0.05 + 0.11 * top / 2
        path = [
            (0.02 * c, 0.02 * s, foot - 0.04),
            (0.5 * lean * c, 0.5 * lean * s, (foot + top) / 2),
            (lean * c, lean * s, top),
        ]
        stems.append(tube(path, [0.013, 0.011, 0.006], 7))
        count = 16 + 4 * (k == 0)
        for j in range(count):
            share = 0.3 + 0.7 * j / (count - 1)
            at = [lean * c * share, lean * s * share, foot + (top - foot) * share]
            long = float(rng.uniform(0.25, 0.34)) * (1.1 - 0.25 * share)
            heading = math.degrees(foliage.GOLDEN) * j + 120 * k
            climb = float(rng.uniform(15, 45)) + 25 * share
            leaves.append(_set(_leaf(long, 0.62 * long, bend=0.9), climb, heading, at))
    return (*out, Part(merge(stems), "stem"), Part(merge(leaves), "deep_leaf"))


@lru_cache(maxsize=16)
def palm(height: float, seed: int, *, pot_look: str = "rattan", kind: str = "taper") -> Parts:
    """An areca palm: arching fronds of many leaflets."""
    rng = np.random.Generator(np.random.PCG64(seed))
    foot = 0.28
    out = pot(0.19, foot, pot_look, kind=kind)
    stems, leaves = [], []
    for k in range(13):
        heading = math.degrees(foliage.GOLDEN) * k
        a = math.radians(heading)
        long = (height - foot) * float(rng.uniform(0.72, 1.05))
        lean = 0.30 + 0.035 * k
        t = np.linspace(0, 1, 7)
        out_ = long * lean * t**1.7
        up = long * (t - 0.38 * lean * t**3)
        path = np.stack([out_ * math.cos(a), out_ * math.sin(a), foot - 0.03 + up], axis=1)
        stems.append(tube([tuple(p) for p in path.tolist()],
                          np.linspace(0.009, 0.003, 7).tolist(), 5))  # fmt: skip
        for j in range(20):
            share = 0.34 + 0.66 * j / 19
            at = [float(np.interp(share, t, path[:, i])) for i in range(3)]
            size = 0.30 * math.sin(math.pi * (0.15 + 0.8 * share)) + 0.06
            side = 1 if j % 2 else -1
            leaf = _leaf(size, 0.026, bend=0.7, joints=2, fold=0.5)
            leaves.append(_set(leaf, 32 - 25 * share, heading + side * (62 - 26 * share), at))
    return (*out, Part(merge(stems), "leaf"), Part(merge(leaves), "leaf"))


@lru_cache(maxsize=8)
def snake_plant(height: float, seed: int, *, pot_look: str = "concrete_pot") -> Parts:
    """Stiff upright blades."""
    rng = np.random.Generator(np.random.PCG64(seed))
    foot = 0.4 * height
    out = pot(0.2 * height + 0.03, foot, pot_look, kind="drum")
    blades = []
    for k in range(13):
        r = 0.1 * height * math.sqrt((k + 0.5) / 13)
        a = foliage.GOLDEN * k
        long = height * float(rng.uniform(0.42, 0.66))
        leaf = _leaf(long, 0.055 * (0.6 + height), bend=-0.1, joints=4, fold=0.35)
        at = [r * math.cos(a), r * math.sin(a), 0.88 * foot]
        blades.append(_set(leaf, float(rng.uniform(74, 88)), math.degrees(a), at))
    return (*out, Part(merge(blades), "deep_leaf"))


@lru_cache(maxsize=8)
def olive_tree(height: float, seed: int, *, pot_look: str = "clay") -> Parts:
    """A small olive tree with a loose round crown."""
    rng = np.random.Generator(np.random.PCG64(seed))
    foot = 0.34
    out = pot(0.21, foot, pot_look, kind="belly")
    fork = foot + 0.42 * (height - foot)
    wood = [
        tube(
            [(0, 0, foot - 0.05), (0.03, 0.01, 0.6 * fork), (0.0, 0.0, fork)],
            [0.026, 0.022, 0.018],
            9,
        )
    ]
    crown = []
    for k in range(7):
        a = foliage.GOLDEN * k
        rise = float(rng.uniform(0.25, 0.8)) * (height - fork)
        reach = 0.30 * (height - foot) * float(rng.uniform(0.4, 0.75))
        end = (reach * math.cos(a), reach * math.sin(a), fork + rise)
        wood.append(tube([(0, 0, fork - 0.02), end], [0.012, 0.005], 6))
        size = 0.13 * height
        mesh = foliage.leaf_cluster(seed + k, (size, size, 0.8 * size), sprays=90, spray=0.12,
                                    level=1, metres=0.5)  # fmt: skip
        crown.append(moved(mesh, *end))
    return (*out, Part(merge(wood), "stem"), Part(merge(crown), "olive_leaf"))


def trailing_plant(size: float, seed: int, *, pot_look: str = "china") -> Parts:
    """A small pot with leaves that hang over its rim."""
    rng = np.random.Generator(np.random.PCG64(seed))
    out = pot(0.3 * size, 0.45 * size, pot_look, kind="belly")
    leaves = []
    for k in range(46):
        heading = math.degrees(foliage.GOLDEN) * k
        a, r = math.radians(heading), 0.3 * size * math.sqrt((k + 0.5) / 46)
        leaf = _leaf(size * float(rng.uniform(0.2, 0.34)), size * 0.16, bend=1.0, joints=3)
        z = 0.42 * size + 0.3 * size * float(rng.uniform(0, 1)) * (1 - k / 60)
        leaves.append(
            _set(leaf, float(rng.uniform(0, 50)), heading, [r * math.cos(a), r * math.sin(a), z])
        )
    return (*out, Part(merge(leaves), "leaf"))


def grass_vase(height: float, seed: int, *, look: str = "stoneware") -> Parts:
    """Pampas plumes in a vase."""
    rng = np.random.Generator(np.random.PCG64(seed))
    foot = 0.42 * height
    plumes = []
    for k in range(9):
        heading = math.degrees(foliage.GOLDEN) * k
        a = math.radians(heading)
        leaf = _leaf(
            0.6 * height * float(rng.uniform(0.8, 1.1)), 0.1 * height, bend=0.5, joints=6, fold=0.6
        )
        plumes.append(
            _set(
                leaf,
                float(rng.uniform(66, 84)),
                heading,
                [0.03 * math.cos(a), 0.03 * math.sin(a), foot - 0.06],
            )
        )
    return Part(vase(foot, 0, segments=28), look), Part(merge(plumes), "pampas")


def flowers(height: float, seed: int, *, look: str = "china", petals: str = "white") -> Parts:
    """Blossoms in a vase."""
    rng = np.random.Generator(np.random.PCG64(seed))
    foot = 0.45 * height
    stems, heads, leaves = [], [], []
    for k in range(11):
        a, r = foliage.GOLDEN * k, 0.3 * height * math.sqrt((k + 0.5) / 11)
        top = (r * math.cos(a), r * math.sin(a), height * float(rng.uniform(0.78, 1.0)))
        stems.append(tube([(0.1 * top[0], 0.1 * top[1], 0.75 * foot), top], 0.0035, 5))
        for j in range(7):
            leaf = _leaf(0.11 * height, 0.08 * height, bend=-0.5, joints=2)
            heads.append(_set(leaf, 30, 51.4 * j + 20 * k, top))
        leaves.append(
            _set(
                _leaf(0.22 * height, 0.08 * height, bend=0.8, joints=3),
                40,
                math.degrees(a),
                [0.5 * top[0], 0.5 * top[1], 0.62 * height],
            )
        )
    return (Part(vase(foot, 2, segments=28), look), Part(merge([*stems, *leaves]), "leaf"),
            Part(merge(heads), petals))  # fmt: skip
