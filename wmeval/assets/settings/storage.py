"""Cupboards, kitchens and shelves. Each has its back on y = 0, faces +y and stands on z = 0."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from wmeval.assets.meshes import box, cylinder, merge, revolve
from wmeval.assets.settings.boards import block, slab
from wmeval.assets.solids import Part, Parts, by_material, moved, tube, turned
from wmeval.scene import MeshData

DEPTH = 0.60
GAP = 0.0025


def front(
    x: float, z0: float, z1: float, width: float, y: float, *, look: str, handle: str,
    grip: str = "bar", shaker: bool = False, hinge: int = 0,
) -> list[Part]:  # fmt: skip
    """A door or drawer front in the plane y.

    Args:
        x: middle [m].
        z0: lower edge [m].
        z1: upper edge [m].
        width: [m].
        y: of the carcass's face [m].
        look: its material.
        handle: that of its handle.
        grip: "bar", "knob" or "none".
        shaker: framed panels.
        hinge: -1 or 1: a door whose handle is on the other side; 0: a drawer.
    """
    w, h, mid = width / 2 - GAP, (z1 - z0) / 2 - GAP, (z0 + z1) / 2
    pieces = [slab((w, 0.010, h), 0.003, at=(x, y + 0.010, mid), steps=1)]
    if shaker and min(w, h) > 0.09:
        rail = 0.035
        for s in (-1, 1):
            pieces.append(
                slab((w, 0.006, rail), 0.003, at=(x, y + 0.023, mid + s * (h - rail)), steps=1)
            )
            pieces.append(
                slab((rail, 0.006, h), 0.003, at=(x + s * (w - rail), y + 0.023, mid), steps=1)
            )
    out = [Part(merge(pieces), look)]
    if grip == "none":
        return out
    deep = y + (0.045 if shaker else 0.038)
    if hinge == 0:
        px, pz = x, mid if h < 0.12 else z1 - 0.06
    else:
        px = x - hinge * (w - 0.035)
        pz = z1 - 0.13 if z0 < 1.0 else z0 + 0.13
    if grip == "knob":
        out.append(Part(slab((0.013, 0.016, 0.013), 0.011, at=(px, deep - 0.006, pz)), handle))
    elif hinge == 0:
        out.append(Part(slab((min(0.11, 0.6 * w), 0.006, 0.006), 0.004, at=(px, deep, pz), steps=1),
                        handle))  # fmt: skip
    else:
        out.append(Part(slab((0.006, 0.006, 0.085), 0.004, at=(px, deep, pz), steps=1), handle))
    return out


def base_units(
    widths: Sequence[tuple[float, str]], *, look: str, worktop: str, handle: str = "black_metal",
    height: float = 0.90, depth: float = DEPTH, grip: str = "bar", shaker: bool = False,
) -> Parts:  # fmt: skip
    """A run of base cupboards, centred on x = 0.

    Args:
        widths: width [m] and kind of each: "door", "doors", "drawers", "oven", "sink", "hob",
            "dishwasher".
        look: material of the fronts.
        worktop: material of the worktop.
        handle: material of the handles.
        height: of the worktop's top [m].
        depth: of the worktop [m].
        grip: as for `front`.
        shaker: as for `front`.
    """
    total = sum(w for w, _ in widths)
    face, under, kick = depth - 0.035, height - 0.036, 0.10
    parts = [
        Part(block(-total / 2, total / 2, 0.0, face, kick, under), look),
        Part(block(-total / 2, total / 2, 0.0, face - 0.05, 0.0, kick), "black"),
        Part(slab((total / 2 + 0.005, depth / 2, 0.018), 0.004, at=(0, depth / 2, height - 0.018),
                  steps=1), worktop),
    ]  # fmt: skip
    x = -total / 2
    for width, kind in widths:
        mid = x + width / 2
        style: dict[str, Any] = {"look": look, "handle": handle, "grip": grip, "shaker": shaker}
        if kind in ("doors", "sink"):
            for s in (-1, 1):
                parts += front(mid + s * width / 4, kick, under, width / 2, face, hinge=s, **style)
        elif kind == "door":
            parts += front(mid, kick, under, width, face, hinge=1, **style)
        elif kind in ("drawers", "hob"):
            edges = [kick, kick + 0.30, kick + 0.57, under]
            for a, b in pairwise(edges):
                parts += front(mid, a, b, width, face, hinge=0, **style)
        elif kind == "dishwasher":
            parts += front(mid, kick, under, width, face, hinge=0, **style)
        elif kind == "oven":
            parts += _oven(mid, width, face, kick + 0.02, under)
        if kind == "sink":
            parts += _sink(mid, depth, height)
        elif kind == "hob":
            parts += hob(mid, depth, height)
        x += width
    return by_material(parts)


def _oven(x: float, width: float, face: float, z0: float, z1: float) -> list[Part]:
    w, top = width / 2 - 0.004, z1 - 0.11
    knobs = [turned(cylinder(0.018, 0.024, 16, 0), (1, 0, 0), 90) for _ in range(4)]
    return [
        Part(
            slab((w, 0.012, (top - z0) / 2), 0.004, at=(x, face + 0.012, (top + z0) / 2), steps=1),
            "black_glass",
        ),
        Part(slab((w, 0.012, 0.05), 0.004, at=(x, face + 0.012, z1 - 0.055), steps=1), "steel"),
        Part(
            tube(
                [(x - w + 0.05, face + 0.05, top - 0.06), (x + w - 0.05, face + 0.05, top - 0.06)],
                0.009,
                10,
            ),
            "steel",
        ),
        Part(
            merge(
                [
                    moved(k, x + s, face + 0.034, z1 - 0.055)
                    for k, s in zip(knobs, (-0.2, -0.1, 0.1, 0.2), strict=True)
                ]
            ),
            "steel",
        ),
    ]


def _sink(x: float, depth: float, height: float) -> list[Part]:
    mid = depth / 2 + 0.02
    rim = [slab((0.27, 0.012, 0.003), 0.002, at=(x, mid + s * 0.19, height + 0.002), steps=1)
           for s in (-1, 1)]  # fmt: skip
    rim += [slab((0.012, 0.20, 0.003), 0.002, at=(x + s * 0.27, mid, height + 0.002), steps=1)
            for s in (-1, 1)]  # fmt: skip
    bend = [(x, mid - 0.24, height), (x, mid - 0.24, height + 0.24)]
    bend += [(x, mid - 0.24 + 0.09 - 0.09 * math.cos(t), height + 0.24 + 0.09 * math.sin(t))
             for t in np.linspace(0.3, math.pi, 9).tolist()]  # fmt: skip
    bend.append((x, mid - 0.06, height + 0.19))
    return [
        Part(merge(rim), "steel"),
        Part(slab((0.26, 0.18, 0.001), 0.0, at=(x, mid, height + 0.001)), "dark_steel"),
        Part(merge([tube(bend, 0.013, 10),
                    moved(cylinder(0.026, 0.02, 20, 0), x, mid - 0.24, height + 0.01)]), "steel"),
    ]  # fmt: skip


def hob(x: float, depth: float, height: float) -> list[Part]:
    """Four rings on black glass, in a worktop at a height [m]."""
    rings = [
        revolve(
            [(r - 0.004, 0.0), (r, 0.0), (r, 0.0012), (r - 0.004, 0.0012), (r - 0.004, 0.0)], 32
        )
        for r in (0.09, 0.07, 0.07, 0.09)
    ]
    at = ((-0.16, -0.11), (0.16, -0.11), (-0.16, 0.12), (0.16, 0.12))
    mid = depth / 2
    return [
        Part(slab((0.30, 0.25, 0.004), 0.003, at=(x, mid, height + 0.004), steps=1), "black_glass"),
        Part(merge([moved(r, x + px, mid + py, height + 0.0075)
                    for r, (px, py) in zip(rings, at, strict=True)]), "dark_steel"),
    ]  # fmt: skip


def wall_units(
    widths: Sequence[float], *, look: str, handle: str = "black_metal", z: float = 1.45,
    height: float = 0.72, depth: float = 0.35, grip: str = "bar", shaker: bool = False,
) -> Parts:  # fmt: skip
    """A run of wall cupboards above z [m], centred on x = 0."""
    total = sum(widths)
    face = depth - 0.02
    parts = [Part(block(-total / 2, total / 2, 0.0, face, z, z + height), look)]
    x = -total / 2
    for k, width in enumerate(widths):
        parts += front(x + width / 2, z, z + height, width, face, look=look, handle=handle,
                       grip=grip, shaker=shaker, hinge=1 if k % 2 else -1)  # fmt: skip
        x += width
    return by_material(parts)


def tall_unit(width: float, *, look: str, handle: str = "black_metal", height: float = 2.2,
              oven: bool = False, grip: str = "bar", shaker: bool = False) -> Parts:  # fmt: skip
    """A tall cupboard, with a built-in oven and microwave or all doors."""
    w, face = width / 2, DEPTH - 0.02
    style: dict[str, Any] = {"look": look, "handle": handle, "grip": grip, "shaker": shaker}
    parts = [Part(block(-w, w, 0.0, face, 0.0, height), look)]
    if oven:
        parts += front(0, 0.1, 0.72, width, face, hinge=0, **style)
        parts += _oven(0.0, width, face, 0.76, 1.32)
        parts += _oven(0.0, width, face, 1.36, 1.74)
        parts += front(0, 1.78, height, width, face, hinge=1, **style)
    else:
        for s in (-1, 1):
            parts += front(s * w / 2, 0.1, 1.3, w, face, hinge=s, **style)
            parts += front(s * w / 2, 1.3, height, w, face, hinge=s, **style)
    return by_material(parts)


def fridge(look: str = "steel", *, width: float = 0.9, height: float = 1.8) -> Parts:
    """A free-standing fridge with two doors and a freezer drawer."""
    w, face = width / 2, 0.66
    parts = [
        Part(slab((w, face / 2, height / 2), 0.006, at=(0, face / 2, height / 2), steps=1), look)
    ]
    for s in (-1, 1):
        door = slab((w / 2 - 0.004, 0.03, (height - 0.72) / 2), 0.01,
                    at=(s * w / 2, face + 0.03, (height + 0.68) / 2), steps=2)  # fmt: skip
        bar = tube(
            [(s * 0.045, face + 0.1, 0.85), (s * 0.045, face + 0.1, height - 0.25)], 0.011, 8
        )
        parts += [Part(door, look), Part(bar, "dark_steel")]
    drawer = slab((w - 0.004, 0.03, 0.30), 0.01, at=(0, face + 0.03, 0.36), steps=2)
    bar = tube([(-w + 0.12, face + 0.1, 0.6), (w - 0.12, face + 0.1, 0.6)], 0.011, 8)
    return by_material([*parts, Part(drawer, look), Part(bar, "dark_steel")])


def hood(width: float = 0.9, *, z: float = 1.62, look: str = "steel", top: float = 2.9) -> Parts:
    """A chimney hood."""
    w = width / 2
    canopy = box((w, 0.24, 0.14))
    v = canopy.vertices.copy()
    upper = v[:, 2] > 0
    v[upper, 0] *= 0.36
    v[upper, 1] = -0.24 + (v[upper, 1] + 0.24) * 0.6
    canopy = MeshData(v, canopy.triangles, canopy.normals, canopy.uv)
    return by_material([
        Part(moved(canopy, 0, 0.24, z + 0.2), look),
        Part(slab((w, 0.24, 0.03), 0.004, at=(0, 0.24, z + 0.03), steps=1), look),
        Part(block(-0.16, 0.16, 0.0, 0.28, z + 0.3, top), look),
    ])  # fmt: skip


def sideboard(width: float, *, look: str, top: str | None = None, height: float = 0.75,
              depth: float = 0.42, doors: int = 4, legs: str = "black_metal", handle: str = "brass",
              grip: str = "knob", reeded: bool = False) -> Parts:  # fmt: skip
    """A sideboard on legs; ``reeded`` fronts are set with upright battens."""
    w, foot = width / 2, 0.14
    face = depth - 0.02
    parts = [
        Part(block(-w, w, 0.0, face, foot, height - 0.025), look),
        Part(
            slab((w + 0.01, depth / 2, 0.0125), 0.004, at=(0, depth / 2, height - 0.0125), steps=1),
            top or look,
        ),
    ]
    for k in range(doors):
        x = -w + (k + 0.5) * width / doors
        parts += front(x, foot, height - 0.03, width / doors, face, look=look, handle=handle,
                       grip=grip, hinge=1 if k % 2 else -1)  # fmt: skip
    if reeded:
        count = round(width / 0.04)
        reeds = [slab((0.014, 0.008, (height - foot - 0.05) / 2), 0.007,
                      at=(-w + (k + 0.5) * width / count, face + 0.024, (height + foot - 0.03) / 2),
                      steps=1) for k in range(count)]  # fmt: skip
        parts.append(Part(merge(reeds), look))
    feet = [tube([(sx * (w - 0.08), y, 0.0), (sx * (w - 0.1), y, foot)], [0.012, 0.018], 8)
            for sx in (-1, 1) for y in (0.06, depth - 0.08)]  # fmt: skip
    return by_material([*parts, Part(merge(feet), legs)])


BOOKS = ("book_red", "book_blue", "book_sand", "book_green", "paper")


def books(length: float, height: float, seed: int, *, deep: float = 0.2) -> list[Part]:
    """A row of books from x = 0 on, with their backs towards +y at y = ``deep`` [m]."""
    rng = np.random.Generator(np.random.PCG64(seed))
    x = 0.0
    out: list[Part] = []
    while True:
        thick = float(rng.uniform(0.018, 0.05))
        if x + thick > length:
            return list(by_material(out))
        tall = height * float(rng.uniform(0.68, 0.97))
        far = deep * float(rng.uniform(0.85, 1.0))
        mesh = block(x + 0.001, x + thick - 0.001, 0.0, far, 0.0, tall)
        out.append(Part(mesh, BOOKS[int(rng.integers(len(BOOKS)))]))
        x += thick


def bookcase(width: float, height: float, *, look: str, seed: int, levels: int = 5,
             depth: float = 0.32, columns: int = 2, back: str | None = None,
             vases: Sequence[str] = ("clay", "stoneware", "blue_glaze")) -> Parts:  # fmt: skip
    """Shelves filled with books, vases and gaps."""
    rng = np.random.Generator(np.random.PCG64(seed))
    w, t = width / 2, 0.02
    parts = []
    boards = [
        block(
            -w + k * (width - t) / columns, -w + k * (width - t) / columns + t, 0, depth, 0, height
        )
        for k in range(columns + 1)
    ]
    step = (height - t - 0.06) / levels
    boards += [block(-w, w, 0.0, depth - 0.004, 0.06 + k * step, 0.06 + k * step + t)
               for k in range(levels + 1)]  # fmt: skip
    parts.append(Part(merge(boards), look))
    parts.append(Part(block(-w, w, 0.0, 0.01, 0.0, height), back or look))
    cell = (width - t) / columns - t
    for row in range(levels):
        for column in range(columns):
            x, z = -w + t + column * (cell + t), 0.06 + row * step + t
            free = step - t
            kind = rng.random()
            if kind < 0.62:
                share = float(rng.uniform(0.45, 0.95))
                row_of = books(share * cell, 0.85 * free, int(rng.integers(1 << 30)))
                parts += [Part(moved(p.mesh, x + 0.01, 0.05, z), p.material) for p in row_of]
                if share < 0.7 and vases:
                    name = vases[int(rng.integers(len(vases)))]
                    mesh = vase(0.7 * free, int(rng.integers(4)))
                    parts.append(Part(moved(mesh, x + 0.86 * cell, 0.17, z), name))
            elif kind < 0.9 and vases:
                count = int(rng.integers(1, 3))
                for k in range(count):
                    name = vases[int(rng.integers(len(vases)))]
                    # Low enough to stand beside each other.
                    tall = min(free * float(rng.uniform(0.45, 0.8)), 1.1 * cell / count)
                    at = x + cell * (k + float(rng.uniform(0.4, 0.6))) / count
                    mesh = vase(tall, int(rng.integers(4)))
                    parts.append(Part(moved(mesh, at, 0.17, z), name))
    return by_material(parts)


_VASES = (
    ((0.0, 0.0), (0.16, 0.0), (0.24, 0.12), (0.27, 0.35), (0.22, 0.62), (0.1, 0.82), (0.1, 0.95),
     (0.13, 1.0), (0.11, 1.0), (0.08, 0.93), (0.0, 0.8)),
    ((0.0, 0.0), (0.2, 0.0), (0.23, 0.3), (0.2, 0.75), (0.24, 1.0), (0.22, 1.0), (0.18, 0.75),
     (0.0, 0.7)),
    ((0.0, 0.0), (0.12, 0.0), (0.36, 0.3), (0.4, 0.5), (0.34, 0.75), (0.14, 0.92), (0.16, 1.0),
     (0.13, 1.0), (0.1, 0.9), (0.0, 0.85)),
    ((0.0, 0.0), (0.2, 0.0), (0.2, 0.05), (0.06, 0.2), (0.06, 0.35), (0.3, 0.62), (0.32, 0.9),
     (0.22, 1.0), (0.2, 1.0), (0.28, 0.88), (0.0, 0.7)),
)  # fmt: skip


def vase(height: float, kind: int, *, segments: int = 20) -> MeshData:
    """A vase of one of four outlines; from 28 facets around on its outline is rounded, too."""
    outline: Sequence[tuple[float, float]] = _VASES[kind % len(_VASES)]
    if segments >= 28:
        # Corners of the belly are cut (Chaikin 1974); foot and lip stay sharp.
        fine = [*outline[:2]]
        for (r0, z0), (r1, z1) in pairwise(outline[1:-3]):
            fine.append((0.75 * r0 + 0.25 * r1, 0.75 * z0 + 0.25 * z1))
            fine.append((0.25 * r0 + 0.75 * r1, 0.25 * z0 + 0.75 * z1))
        outline = (*fine, *outline[-4:])
    return revolve([(r * height, z * height) for r, z in outline], segments)


def shelf(width: float, *, look: str, depth: float = 0.24, brackets: str = "black_metal") -> Parts:
    """A board on brackets, its top at z = 0."""
    hooks = [
        slab(
            (0.008, depth / 2 - 0.01, 0.008),
            0.003,
            at=(s * (width / 2 - 0.12), depth / 2, -0.042),
            steps=1,
        )
        for s in (-1, 1)
    ]
    hooks += [slab((0.008, 0.006, 0.07), 0.003, at=(s * (width / 2 - 0.12), 0.006, -0.1), steps=1)
              for s in (-1, 1)]  # fmt: skip
    return (
        Part(slab((width / 2, depth / 2, 0.016), 0.004, at=(0, depth / 2, -0.016), steps=1), look),
        Part(merge(hooks), brackets),
    )


def crockery(width: float, seed: int, looks: Sequence[str] = ("china", "stoneware")) -> Parts:
    """Stacks of plates and bowls, jars and cups in a row about x = 0, 0.24 m deep."""
    rng = np.random.Generator(np.random.PCG64(seed))
    parts, x = [], -width / 2 + 0.1
    while x < width / 2 - 0.08:
        kind = int(rng.integers(4))
        name = looks[int(rng.integers(len(looks)))]
        if kind == 0:
            for k in range(int(rng.integers(4, 8))):
                plate = revolve([(0, 0), (0.07, 0), (0.10, 0.012), (0.10, 0.015), (0, 0.006)], 20)
                parts.append(Part(moved(plate, x, 0.12, 0.013 * k), name))
        elif kind == 1:
            for k in range(int(rng.integers(2, 4))):
                bowl = revolve([(0, 0), (0.035, 0), (0.07, 0.05), (0.068, 0.05), (0, 0.012)], 20)
                parts.append(Part(moved(bowl, x, 0.12, 0.03 * k), name))
        elif kind == 2:
            mesh = revolve([(0, 0), (0.05, 0), (0.05, 0.14), (0.04, 0.15), (0.0, 0.15)], 20)
            lid = revolve([(0, 0.15), (0.045, 0.15), (0.045, 0.17), (0.0, 0.175)], 20)
            parts += [Part(moved(mesh, x, 0.12, 0), name), Part(moved(lid, x, 0.12, 0), "oak")]
        else:
            parts.append(
                Part(
                    moved(vase(float(rng.uniform(0.14, 0.24)), int(rng.integers(4))), x, 0.12, 0),
                    name,
                )
            )
        x += float(rng.uniform(0.2, 0.27))
    return by_material(parts)
