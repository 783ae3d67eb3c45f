"""Seats: sofas, armchairs, chairs, stools, poufs, benches, cushions.

Each stands on its origin at the middle of its foot; its sitter looks along +y.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from wmeval.assets.loft import loft, superellipse
from wmeval.assets.meshes import cylinder, merge, revolve
from wmeval.assets.settings.boards import slab
from wmeval.assets.solids import Part, Parts, by_material, moved, tube, turned
from wmeval.scene import MeshData


@lru_cache(maxsize=16)
def pillow(half: float, thick: float, *, across: int = 12) -> MeshData:
    """A square scatter cushion that lies at its origin, pinched at the corners."""
    n = across + 1
    t = np.linspace(-1, 1, n)
    u, v = np.meshgrid(t, t)
    # Sides curve inwards between the corners.
    x = half * u * (1 - 0.09 * (1 - v * v))
    y = half * v * (1 - 0.09 * (1 - u * u))
    z = thick / 2 * np.sqrt(np.clip((1 - u**4) * (1 - v**4), 0, 1)) ** 0.8
    i = (np.arange(n - 1)[:, None] * n + np.arange(n - 1)).ravel()
    up = np.concatenate([np.stack([i, i + 1, i + n + 1], 1), np.stack([i, i + n + 1, i + n], 1)])
    halves = []
    for sign, faces in ((1.0, up), (-1.0, up[:, ::-1])):
        points = np.stack([x, y, sign * z], axis=-1).reshape(-1, 3)
        du, dv = np.gradient(sign * z, t * half, axis=1), np.gradient(sign * z, t * half, axis=0)
        normals = sign * np.stack([-du * sign * sign, -dv, np.ones_like(z)], axis=-1)
        normals = normals.reshape(-1, 3)
        normals /= np.linalg.norm(normals, axis=1, keepdims=True)
        uv = np.stack([u, v], axis=-1).reshape(-1, 2) * 0.5 + 0.5
        halves.append(
            MeshData(
                points.astype(np.float32), np.ascontiguousarray(faces, np.uint32),
                normals.astype(np.float32), uv.astype(np.float32),
            )
        )  # fmt: skip
    return merge(halves)


def scatter(x: float, y: float, z: float, *, half: float = 0.21, lean: float = 62.0,
            turn: float = 0.0, thick: float = 0.15) -> MeshData:  # fmt: skip
    """A cushion that leans against a back behind it, its foot at (x, y, z)."""
    mesh = turned(pillow(half, thick), (1, 0, 0), lean)
    up = half * math.sin(math.radians(lean))
    return moved(turned(mesh, (0, 0, 1), turn), x, y, z + up)


def sofa(
    width: float,
    *,
    cloth: str,
    depth: float = 0.92,
    back: float = 0.74,
    seats: int = 3,
    cushions: tuple[str, ...] = (),
    legs: str = "oak",
    chaise: float = 0.0,
    arms: bool = True,
) -> Parts:
    """A sofa ``back`` [m] high; ``chaise`` [m] more of depth at its right seat (+x)."""
    w, d = width / 2, depth / 2
    arm = 0.17 if arms else 0.0
    base, seat = 0.15, 0.42
    parts = [
        Part(slab((w - 0.01, d - 0.01, 0.09), 0.03, at=(0, 0, base + 0.09), steps=2), cloth),
        Part(slab((w - 0.005, 0.10, (back - base) / 2), 0.06,
                  at=(0, -d + 0.10, (back + base) / 2), steps=3), cloth),
    ]  # fmt: skip
    if arms:
        side = slab((arm / 2, d - 0.005, 0.22), 0.055, steps=3)
        parts += [Part(moved(side, s * (w - arm / 2), 0.0, base + 0.22), cloth) for s in (-1, 1)]
    wide = (width - 2 * arm) / seats
    for k in range(seats):
        x = -w + arm + (k + 0.5) * wide
        deep = d - 0.09 + (chaise / 2 if k == seats - 1 else 0.0)
        y = 0.1 + (chaise / 2 if k == seats - 1 else 0.0)
        parts.append(Part(slab((wide / 2 - 0.006, deep, 0.085), 0.05,
                               at=(x, y, seat - 0.06), steps=3), cloth))  # fmt: skip
        tall = (back - seat + 0.08) / 2
        rest = turned(slab((wide / 2 - 0.012, 0.085, tall), 0.07, steps=3), (1, 0, 0), 9)
        parts.append(Part(moved(rest, x, -d + 0.25, seat + tall - 0.02), cloth))
        if chaise and k == seats - 1:
            parts.append(Part(slab((wide / 2 - 0.01, chaise / 2, 0.09), 0.03,
                                   at=(x, d + chaise / 2 - 0.02, base + 0.09)), cloth))  # fmt: skip
    feet = [(sx * (w - 0.09), sy * (d - 0.09)) for sx in (-1, 1) for sy in (-1, 1)]
    if chaise:
        feet.append((w - arm - 0.1, d + chaise - 0.1))
    parts.append(
        Part(merge([tube([(x, y, 0.0), (x * 0.985, y * 0.97, base + 0.02)], [0.016, 0.026], 10)
                    for x, y in feet]), legs)
    )  # fmt: skip
    inner = w - arm - 0.2
    for k, name in enumerate(cushions):
        x = -inner + 2 * inner * k / max(1, len(cushions) - 1)
        turn = (12, -9, 7, -12)[k % 4]
        parts.append(Part(scatter(x, -d + 0.42, seat + 0.015, turn=turn), name))
    return by_material(parts)


def armchair(
    *, cloth: str, legs: str = "oak", back: float = 0.78, cushion: str | None = None
) -> Parts:
    """A rounded tub chair."""
    shell = [_bent_back(0.35, 0.33, -205, 25, 0.1, 0.2, back, drop=0.26, count=28)]
    seat = revolve([(0.0, 0.24), (0.27, 0.24), (0.30, 0.27), (0.31, 0.36), (0.29, 0.41),
                    (0.24, 0.435), (0.0, 0.44)], 36)  # fmt: skip
    parts = [Part(merge([*shell, moved(seat, 0, 0.04, 0)]), cloth)]
    feet = [tube([(sx * 0.27, sy * 0.26, 0), (sx * 0.22, sy * 0.21, 0.26)], [0.012, 0.02], 10)
            for sx in (-1, 1) for sy in (-1, 1)]  # fmt: skip
    parts.append(Part(merge(feet), legs))
    if cushion is not None:
        parts.append(Part(scatter(0.0, -0.13, 0.44, half=0.18, turn=8), cushion))
    return tuple(parts)


def _bent_back(
    a: float, b: float, start: float, end: float, thick: float, low: float, high: float, *,
    drop: float, count: int,
) -> MeshData:  # fmt: skip
    """A padded back along an arc of an ellipse.

    Args:
        a: half axis along x [m].
        b: half axis along y [m].
        start: angle from +x [deg].
        end: angle from +x, larger [deg].
        thick: [m].
        low: lower edge [m].
        high: upper edge in the middle [m].
        drop: how much lower it ends at both sides [m].
        count: of sections.
    """
    rings = []
    section = superellipse(14, 1.0, 1.0, 5.0)[::-1]
    for k in range(count + 1):
        t = math.radians(start + (end - start) * k / count)
        far = abs(2 * k / count - 1)
        tall = high - drop * far**2.4 - low
        # The ends are rounded off.
        close = 0.55 if k in (0, count) else 1.0
        radial = section[:, 0] * thick / 2 * close
        up = low + tall / 2 + section[:, 1] * tall / 2 * (0.94 if close < 1 else 1.0)
        c, s = math.cos(t), math.sin(t)
        rings.append(np.stack([(a + radial) * c, (b + radial) * s, up], axis=1))
    return loft(np.array(rings))


@lru_cache(maxsize=16)
def dining_chair(*, seat: str, frame: str, height: float = 0.46, back: float = 0.80,
                 style: str = "shell") -> Parts:  # fmt: skip
    """A chair of style "shell" (bent upholstered back), "spindle" (low bow) or "slat"."""
    w, d = 0.225, 0.215
    legs = [
        tube([(sx * (w + 0.005), sy * (d + 0.01), 0.0), (sx * (w - 0.05), sy * (d - 0.05),
                                                         height - 0.03)], [0.011, 0.017], 10)
        for sx in (-1, 1) for sy in (-1, 1)
    ]  # fmt: skip
    parts = [Part(slab((w, d, 0.03), 0.028, at=(0, 0, height - 0.02), steps=3), seat)]
    if style == "shell":
        low = height + 0.34 * (back - height)
        parts.append(
            Part(_bent_back(0.24, 0.23, -150, -30, 0.034, low, back, drop=0.05, count=14), seat)
        )
        struts = [tube([(s * 0.12, -0.19, height - 0.03), (s * 0.12, -0.205, back - 0.1)], 0.009, 8)
                  for s in (-1, 1)]  # fmt: skip
        parts.append(Part(merge([*legs, *struts]), frame))
        return tuple(parts)
    posts = []
    if style == "spindle":
        path = []
        for k in range(15):
            a = math.radians(-192 + 204 * k / 14)
            path.append((0.235 * math.cos(a), 0.02 + 0.225 * math.sin(a), back))
        posts.append(tube(path, 0.014, 8))
        for k in range(9):
            a = math.radians(-172 + 164 * k / 8)
            x, y = 0.232 * math.cos(a), 0.02 + 0.222 * math.sin(a)
            posts.append(tube([(0.85 * x, 0.85 * y, height - 0.01), (x, y, back)], 0.0065, 6))
    else:
        posts += [
            tube([(s * (w - 0.02), -d + 0.01, height - 0.02), (s * (w - 0.025), -d - 0.035, back)],
                 [0.016, 0.012], 8) for s in (-1, 1)
        ]  # fmt: skip
        for share in (0.38, 0.66, 0.94):
            z = height + (back - height) * share
            y = -d + 0.01 - 0.045 * share
            posts.append(slab((w - 0.03, 0.009, 0.026), 0.006, at=(0, y, z), steps=1))
    parts.append(Part(merge([*legs, *posts]), frame))
    return tuple(parts)


def bar_stool(height: float, *, seat: str, frame: str, back: float = 0.0) -> Parts:
    """A stool with a round seat, a ring for the feet and perhaps a low back."""
    pad = revolve([(0.0, height - 0.055), (0.165, height - 0.055), (0.185, height - 0.03),
                   (0.18, height - 0.008), (0.14, height), (0.0, height + 0.002)], 32)  # fmt: skip
    legs = [
        tube([(0.21 * c, 0.21 * s, 0.0), (0.12 * c, 0.12 * s, height - 0.045)], [0.011, 0.014], 8)
        for c, s in ((math.cos(a), math.sin(a)) for a in (0.785, 2.356, 3.927, 5.498))
    ]
    ring = [(0.175 * math.cos(math.tau * k / 24), 0.175 * math.sin(math.tau * k / 24), 0.26)
            for k in range(25)]  # fmt: skip
    metal = [*legs, tube(ring, 0.008, 6)]
    parts = [Part(pad, seat)]
    if back > 0:
        bow = [(0.185 * math.cos(a), 0.185 * math.sin(a), height + back)
               for a in (math.radians(-160 + 140 * k / 10) for k in range(11))]  # fmt: skip
        parts.append(Part(tube(bow, 0.02, 10), seat))
        metal += [
            tube([(s * 0.1, -0.14, height - 0.03), (s * 0.1, -0.155, height + back)], 0.008, 6)
            for s in (-1, 1)
        ]
    parts.append(Part(merge(metal), frame))
    return tuple(parts)


def pouf(radius: float, height: float, material: str) -> Parts:
    """A stuffed round seat."""
    profile = [(0.0, 0.0)]
    for k in range(13):
        t = -math.pi / 2 + math.pi * k / 12
        c, s = math.cos(t), math.sin(t)
        profile.append((radius * (0.72 + 0.28 * abs(c) ** 0.7), height / 2 * (1 + s)))
    profile.append((0.0, height))
    return (Part(revolve(profile, 40), material),)


def bench(length: float, depth: float, height: float, *, seat: str, legs: str) -> Parts:
    """A low bench with a pad."""
    x, y = length / 2, depth / 2
    feet = [slab((0.022, 0.022, (height - 0.07) / 2), 0.004,
                 at=(sx * (x - 0.05), sy * (y - 0.05), (height - 0.07) / 2), steps=1)
            for sx in (-1, 1) for sy in (-1, 1)]  # fmt: skip
    frame = slab((x, y, 0.02), 0.005, at=(0, 0, height - 0.075), steps=1)
    pad = slab((x - 0.01, y - 0.01, 0.03), 0.025, at=(0, 0, height - 0.03), steps=3)
    return Part(merge([*feet, frame]), legs), Part(pad, seat)


def wicker_chair(*, cushion: str, weave: str = "rattan", back: float = 0.74) -> Parts:
    """A deep garden chair of woven cane with cushions."""
    parts = [
        Part(slab((0.36, 0.36, 0.11), 0.03, at=(0, 0, 0.21), steps=2), weave),
        Part(slab((0.36, 0.06, (back - 0.1) / 2), 0.04, at=(0, -0.33, (back + 0.1) / 2)), weave),
        Part(slab((0.29, 0.30, 0.06), 0.05, at=(0, 0.03, 0.37), steps=3), cushion),
        Part(moved(turned(slab((0.28, 0.07, 0.19), 0.06, steps=3), (1, 0, 0), 12), 0, -0.22, 0.58),
             cushion),
    ]  # fmt: skip
    parts += [Part(slab((0.05, 0.36, 0.24), 0.035, at=(s * 0.35, 0, 0.32)), weave) for s in (-1, 1)]
    feet = [moved(cylinder(0.02, 0.11, 10, 0), sx * 0.3, sy * 0.3, 0.055)
            for sx in (-1, 1) for sy in (-1, 1)]  # fmt: skip
    parts.append(Part(merge(feet), "black_metal"))
    return by_material(parts)
