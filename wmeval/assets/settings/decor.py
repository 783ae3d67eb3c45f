"""Lamps, tables beside, and small things. Each stands on its origin, z upwards."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wmeval.assets.meshes import box, cylinder, merge, revolve, sphere
from wmeval.assets.settings.boards import slab
from wmeval.assets.settings.storage import vase
from wmeval.assets.solids import Part, Parts, by_material, moved, stretched, tube, turned


def floor_lamp(height: float = 1.6, *, stand: str = "black_metal", kind: str = "drum") -> Parts:
    """A standing lamp: "drum" on a pole, "tripod", or "arc" that reaches out along +y."""
    metal = [revolve([(0, 0), (0.15, 0), (0.15, 0.012), (0.02, 0.024), (0, 0.024)], 32)]
    top = (0.0, 0.0, height)
    if kind == "tripod":
        metal = [
            tube(
                [
                    (0.27 * math.cos(a), 0.27 * math.sin(a), 0.0),
                    (0.02 * math.cos(a), 0.02 * math.sin(a), height - 0.3),
                ],
                [0.012, 0.017],
                8,
            )
            for a in (0.5, 2.594, 4.689)
        ]
    elif kind == "arc":
        path = [
            (0.0, 1.15 * (1 - math.cos(t)) / 2 * 1.0, 0.02 + (height - 0.05) * math.sin(t) ** 0.8)
            for t in np.linspace(0.01, math.pi * 0.62, 14).tolist()
        ]
        metal.append(tube(path, 0.011, 8))
        top = (path[-1][0], path[-1][1], path[-1][2])
    else:
        metal.append(tube([(0, 0, 0.02), (0, 0, height - 0.28)], 0.011, 10))
    x, y, z = top
    if kind == "arc":
        shade = revolve(
            [
                (0.17, -0.14),
                (0.18, -0.14),
                (0.16, -0.03),
                (0.05, 0.02),
                (0.0, 0.022),
                (0.0, 0.015),
                (0.04, 0.012),
                (0.15, -0.035),
                (0.17, -0.14),
            ],
            40,
        )
        bulb = stretched(sphere(16), 0.05, 0.05, 0.05)
        return (Part(merge(metal), stand), Part(moved(shade, x, y, z), stand),
                Part(moved(bulb, x, y, z - 0.08), "glow"))  # fmt: skip
    shade = revolve([(0.205, height - 0.32), (0.21, height - 0.32), (0.17, height), (0.165, height),
                     (0.205, height - 0.32)], 40)  # fmt: skip
    bulb = moved(stretched(sphere(16), 0.05, 0.05, 0.06), 0, 0, height - 0.18)
    lid = moved(cylinder(0.165, 0.004, 32, 0), 0, 0, height - 0.02)
    return Part(merge(metal), stand), Part(merge([shade, lid]), "shade"), Part(bulb, "glow")


def table_lamp(height: float = 0.5, *, foot: str = "blue_glaze", kind: int = 2) -> Parts:
    """A lamp with a vase for a foot."""
    low = 0.52 * height
    r = 0.27 * height
    shade = revolve([(r - 0.004, low), (r, low), (0.72 * r, height), (0.72 * r - 0.004, height),
                     (r - 0.004, low)], 36)  # fmt: skip
    lid = moved(cylinder(0.72 * r - 0.003, 0.003, 28, 0), 0, 0, height - 0.012)
    bulb = moved(stretched(sphere(12), 0.03, 0.03, 0.04), 0, 0, 0.7 * height)
    return (Part(vase(0.56 * height, kind, segments=28), foot), Part(merge([shade, lid]), "shade"),
            Part(bulb, "glow"))  # fmt: skip


def pendant(radius: float, z: float, *, look: str, top: float) -> Parts:
    """A globe that hangs from ``top`` [m] with its lower edge at z [m]."""
    r = radius
    bend = np.linspace(0.15, math.pi - 0.05, 14).tolist()
    outline = [(r * math.sin(t), r - r * math.cos(t)) for t in bend]
    shade = moved(revolve([(0, 0.0), *outline, (0, 2 * r)], 40), 0, 0, z)
    cord = tube([(0, 0, z + 2 * r - 0.01), (0, 0, top)], 0.004, 6)
    return Part(shade, look), Part(cord, "black_metal")


def sconce(*, metal: str = "brass") -> Parts:
    """A wall lamp: a globe on an arm, its plate at y = 0."""
    plate = turned(cylinder(0.05, 0.015, 24, 0), (1, 0, 0), 90)
    arm = tube([(0, 0.0, 0), (0, 0.1, 0.0), (0, 0.12, 0.04)], 0.009, 8)
    ball = moved(stretched(sphere(24), 0.07, 0.07, 0.07), 0, 0.12, 0.11)
    return Part(merge([moved(plate, 0, 0.008, 0), arm]), metal), Part(ball, "glow")


def side_table(radius: float, height: float, *, look: str, leg: str) -> Parts:
    """A small round table on a stem."""
    disc = revolve(
        [
            (0, height - 0.025),
            (radius - 0.006, height - 0.025),
            (radius, height - 0.016),
            (radius, height - 0.006),
            (radius - 0.006, height),
            (0, height),
        ],
        40,
    )
    stem = revolve(
        [
            (0, 0),
            (0.6 * radius, 0),
            (0.6 * radius, 0.012),
            (0.022, 0.03),
            (0.018, height - 0.03),
            (0.05, height - 0.025),
            (0, height - 0.025),
        ],
        28,
    )
    return Part(disc, look), Part(stem, leg)


def console(
    width: float, *, look: str, leg: str, height: float = 0.82, depth: float = 0.34
) -> Parts:
    """A narrow table with its back on y = 0."""
    w = width / 2
    legs = [
        slab(
            (0.013, 0.013, (height - 0.03) / 2),
            0.003,
            at=(s * (w - 0.02), y, (height - 0.03) / 2),
            steps=1,
        )
        for s in (-1, 1)
        for y in (0.025, depth - 0.025)
    ]
    legs += [
        slab((w - 0.02, 0.01, 0.01), 0.003, at=(0, y, 0.16), steps=1)
        for y in (0.025, depth - 0.025)
    ]
    plate = slab((w, depth / 2, 0.016), 0.004, at=(0, depth / 2, height - 0.016), steps=1)
    low = slab((w - 0.02, depth / 2 - 0.02, 0.01), 0.003, at=(0, depth / 2, 0.17), steps=1)
    return Part(merge([plate, low]), look), Part(merge(legs), leg)


def stack_of_books(count: int, seed: int, *, long: float = 0.26) -> Parts:
    """Books that lie on each other."""
    rng = np.random.Generator(np.random.PCG64(seed))
    z, parts = 0.0, []
    names = ("book_blue", "book_sand", "book_red", "book_green")
    for k in range(count):
        thick = float(rng.uniform(0.018, 0.035))
        x, y = (
            long / 2 * float(rng.uniform(0.8, 1.0)),
            long / 2 * 0.72 * float(rng.uniform(0.85, 1.0)),
        )
        turn = float(rng.uniform(-14, 14))
        cover = [slab((x, y, 0.002), 0.0, at=(0, 0, z + dz)) for dz in (0.002, thick - 0.002)]
        cover.append(slab((0.002, y, thick / 2), 0.0, at=(-x + 0.002, 0, z + thick / 2)))
        page = slab((x - 0.004, y - 0.004, thick / 2 - 0.003), 0.0, at=(0.001, 0, z + thick / 2))
        parts += [Part(turned(merge(cover), (0, 0, 1), turn), names[(k + seed) % 4]),
                  Part(turned(page, (0, 0, 1), turn), "paper")]  # fmt: skip
        z += thick
    return by_material(parts)


def fruit_bowl(
    *, bowl: str = "stoneware", fruit: Sequence[str] = ("lemon", "orange"), seed: int = 1
) -> Parts:
    """A bowl of citrus."""
    rng = np.random.Generator(np.random.PCG64(seed))
    dish = revolve(
        [
            (0, 0.0),
            (0.06, 0.0),
            (0.062, 0.012),
            (0.12, 0.045),
            (0.15, 0.09),
            (0.144, 0.09),
            (0.11, 0.05),
            (0.0, 0.022),
        ],
        44,
    )
    parts = [Part(dish, bowl)]
    for k in range(7):
        a, r = 2.4 * k, 0.0 if k == 0 else 0.078
        ball = stretched(sphere(16), 0.036, 0.034, 0.034)
        z = 0.072 + (0.045 if k == 0 else 0.0)
        ball = turned(ball, (0, 0, 1), float(rng.uniform(0, 180)))
        parts.append(Part(moved(ball, r * math.cos(a), r * math.sin(a), z), fruit[k % len(fruit)]))
    return by_material(parts)


def candles(look: str = "brass") -> Parts:
    """Three candlesticks of different heights."""
    sticks, wax = [], []
    for x, y, h in ((0.0, 0.0, 0.2), (0.1, 0.04, 0.14), (0.04, -0.1, 0.1)):
        sticks.append(
            moved(
                revolve(
                    [
                        (0, 0),
                        (0.042, 0),
                        (0.042, 0.006),
                        (0.009, 0.016),
                        (0.007, h - 0.02),
                        (0.018, h - 0.012),
                        (0.018, h),
                        (0, h),
                    ],
                    20,
                ),
                x,
                y,
                0,
            )
        )
        wax.append(moved(cylinder(0.011, 0.17, 14, 1), x, y, h + 0.085))
    return Part(merge(sticks), look), Part(merge(wax), "wax")


def tray(length: float, width: float, look: str = "oak") -> Parts:
    """A tray with a rim and two cups."""
    x, y = length / 2, width / 2
    rim = [slab((x, 0.008, 0.02), 0.004, at=(0, s * (y - 0.008), 0.02), steps=1) for s in (-1, 1)]
    rim += [slab((0.008, y, 0.02), 0.004, at=(s * (x - 0.008), 0, 0.02), steps=1) for s in (-1, 1)]
    base = slab((x, y, 0.005), 0.002, at=(0, 0, 0.005), steps=1)
    cup = revolve([(0, 0), (0.026, 0), (0.036, 0.03), (0.04, 0.075), (0.037, 0.075), (0.033, 0.03),
                   (0, 0.01)], 28)  # fmt: skip
    cups = [moved(cup, px, py, 0.01) for px, py in ((-0.2 * length, 0.02), (0.12 * length, -0.03))]
    return Part(merge([base, *rim]), look), Part(merge(cups), "china")


def chopping_board(long: float = 0.4, look: str = "oak") -> Parts:
    """A board with a loaf on it."""
    board = slab((long / 2, 0.12, 0.011), 0.006, at=(0, 0, 0.011))
    loaf = stretched(sphere(24), 0.13, 0.065, 0.06)
    return Part(board, look), Part(moved(loaf, 0.02, 0.0, 0.068), "bread")


def jar(height: float = 0.16, look: str = "china") -> Parts:
    """A storage jar with a wooden lid."""
    r = 0.36 * height
    body = revolve(
        [(0, 0), (r, 0.0), (r, 0.82 * height), (0.9 * r, 0.86 * height), (0, 0.86 * height)], 32
    )
    lid = revolve([(0, 0.86 * height), (0.95 * r, 0.86 * height), (0.95 * r, 0.95 * height),
                   (0.25 * r, 0.96 * height), (0.25 * r, height), (0, height)], 28)  # fmt: skip
    return Part(body, look), Part(lid, "oak")


def basket(radius: float, height: float, look: str = "rattan") -> Parts:
    """A woven basket with a folded blanket in it."""
    r = radius
    body = revolve([(0, 0), (0.85 * r, 0), (r, 0.5 * height), (0.95 * r, height), (0.9 * r, height),
                    (0.94 * r, 0.5 * height), (0, 0.6 * height)], 36)  # fmt: skip
    blanket = moved(
        turned(slab((0.6 * r, 0.6 * r, 0.12), 0.08, steps=3), (0, 1, 0), 14), 0.05 * r, 0, height
    )
    return Part(body, look), Part(blanket, "linen")


def television(width: float = 1.4) -> Parts:
    """A screen about its own middle, its back at y = 0."""
    w, h = width / 2, width * 0.28
    return (
        Part(slab((w, 0.02, h), 0.006, at=(0, 0.025, 0), steps=1), "black_metal"),
        Part(moved(box((w - 0.012, 0.002, h - 0.012)), 0, 0.0455, 0), "black_glass"),
    )


def fireplace(width: float = 1.5, *, stone: str, shelf: str) -> Parts:
    """A surround with a hearth and logs; its back on y = 0."""
    w = width / 2
    legs = [
        slab((0.15, 0.12, 0.46), 0.01, at=(s * (w - 0.15), 0.12, 0.46), steps=1) for s in (-1, 1)
    ]
    head = slab((w, 0.12, 0.13), 0.01, at=(0, 0.12, 1.05), steps=1)
    mantel = slab((w + 0.09, 0.16, 0.03), 0.01, at=(0, 0.16, 1.21), steps=1)
    hearth = slab((w + 0.1, 0.27, 0.025), 0.008, at=(0, 0.27, 0.025), steps=1)
    dark = slab((w - 0.3, 0.01, 0.46), 0.0, at=(0, 0.02, 0.48))
    logs = [
        tube(
            [(-0.24, 0.16 + 0.02 * k, 0.1 + 0.075 * k), (0.24, 0.1 + 0.05 * k, 0.1 + 0.075 * k)],
            0.042,
            10,
        )
        for k in range(3)
    ]
    return (Part(merge([*legs, head, hearth]), stone), Part(mantel, shelf), Part(dark, "black"),
            Part(merge(logs), "stem"))  # fmt: skip


def blanket(width: float, long: float, look: str) -> Parts:
    """A throw over an edge at y = 0, z = 0: half lies behind it, half hangs in front."""
    top = slab((width / 2, long / 4, 0.008), 0.006, at=(0, -long / 4, 0.008), steps=1)
    down = slab((width / 2, 0.008, long / 4), 0.006, at=(0, 0.008, -long / 4 + 0.016), steps=1)
    return (Part(merge([top, down]), look),)
