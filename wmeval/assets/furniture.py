"""Dining furniture: a round table, a chair, a table lamp.

Every function gives the parts of one thing in its own frame: the origin on the ground at its
middle, z upwards. What stands apart is a part of its own (each leg), so that a renderer that
darkens the ground near a part's box darkens it where the part is.
"""

from __future__ import annotations

import math

from wmeval.assets.meshes import cylinder, merge, revolve
from wmeval.assets.solids import Part, Parts, moved, slab, tube, turned
from wmeval.scene import MeshData

TABLE_RADIUS, TABLE_HEIGHT = 0.80, 0.75
SEAT_HEIGHT, CHAIR_HEIGHT = 0.46, 0.92
LAMP_HEIGHT = 0.52


def round_table() -> Parts:
    """A round dining table on four splayed legs. Materials: ``table_top``, ``table_leg``."""
    r, h, t = TABLE_RADIUS, TABLE_HEIGHT, 0.034
    edge = [(r - 0.011 + 0.011 * math.cos(a), h - t + 0.011 + 0.011 * math.sin(a))
            for a in (-1.57, -1.0, -0.5, 0.0)]  # fmt: skip
    edge += [(r - 0.011 + 0.011 * math.cos(a), h - 0.011 + 0.011 * math.sin(a))
             for a in (0.0, 0.5, 1.0, math.pi / 2)]  # fmt: skip
    top = revolve([(0.0, h - t), *edge, (0.0, h)], 96)
    inner, outer, low = r - 0.165, r - 0.14, h - t - 0.085
    apron = revolve([(inner, low), (outer, low), (outer, h - t), (inner, h - t), (inner, low)], 96)
    parts = [Part(top, "table_top"), Part(apron, "table_leg")]
    for k in range(4):
        a = math.radians(45 + 90 * k)
        c, s = math.cos(a), math.sin(a)
        leg = tube(
            [(0.60 * c, 0.60 * s, 0.0), (0.60 * c, 0.60 * s, 0.004), (0.565 * c, 0.565 * s, 0.35),
             (0.53 * c, 0.53 * s, h - t)],
            [0.019, 0.021, 0.029, 0.036], 20,
        )  # fmt: skip
        parts.append(Part(leg, "table_leg"))
    return tuple(parts)


def chair() -> Parts:
    """A slat-back chair, its sitter looking along +y. Materials: ``chair`` and ``cushion``."""
    w, d, h = 0.225, 0.215, SEAT_HEIGHT
    seat = slab((w, d, 0.016), 0.012, at=(0.0, 0.0, h - 0.026), steps=3)
    pad = slab((w - 0.025, d - 0.025, 0.02), 0.019, at=(0.0, 0.008, h + 0.008), steps=4)
    parts = [Part(seat, "chair"), Part(pad, "cushion")]
    for sx in (-1, 1):
        front = tube(
            [(sx * (w - 0.015), d - 0.005, 0.0), (sx * (w - 0.035), d - 0.035, h - 0.035)],
            [0.014, 0.020], 14,
        )  # fmt: skip
        # Hind legs go on as the posts of the back, leaning backwards above the seat.
        post = tube(
            [(sx * (w - 0.012), -d - 0.045, 0.0), (sx * (w - 0.02), -d + 0.012, h - 0.04),
             (sx * (w - 0.02), -d + 0.006, h + 0.06), (sx * (w - 0.028), -d - 0.06, 0.9),
             (sx * (w - 0.03), -d - 0.066, CHAIR_HEIGHT)],
            [0.015, 0.020, 0.020, 0.016, 0.014], 14,
        )  # fmt: skip
        parts += [Part(front, "chair"), Part(post, "chair")]
    back = []
    for z, half in ((0.60, 0.022), (0.70, 0.022), (0.845, 0.045)):
        lean = -d + 0.006 - 0.066 * (z - h - 0.06) / (0.9 - h - 0.06)
        back.append(_curved_slat(w - 0.02, half, lean, z))
    rails = [
        slab((w - 0.05, 0.010, 0.022), 0.006, at=(0.0, d - 0.035, h - 0.062)),
        slab((w - 0.05, 0.010, 0.022), 0.006, at=(0.0, -d + 0.015, h - 0.062)),
    ]
    stretchers = [
        tube([(sx * (w - 0.022), d - 0.015, 0.19), (sx * (w - 0.017), -d - 0.02, 0.19)], 0.010, 12)
        for sx in (-1, 1)
    ]
    return (*parts, Part(merge(back), "chair"), Part(merge([*rails, *stretchers]), "chair"))


def _curved_slat(half_width: float, half_height: float, y: float, z: float) -> MeshData:
    """A slat bent backwards in the middle, as a row of short straight ones."""
    n, sag = 8, 0.035
    rows = []
    for k in range(n):
        a, b = -1 + 2 * k / n, -1 + 2 * (k + 1) / n
        ya, yb = (-sag * (1 - t * t) for t in (a, b))
        length = math.hypot(half_width * (b - a), yb - ya)
        angle = math.degrees(math.atan2(yb - ya, half_width * (b - a)))
        piece = slab((length / 2 + 0.003, 0.008, half_height), 0.004, steps=1)
        rows.append(
            moved(turned(piece, (0, 0, 1), angle), half_width * (a + b) / 2, y + (ya + yb) / 2, z)
        )
    return merge(rows)


def table_lamp() -> Parts:
    """A table lamp with a drum shade. Materials: ``lamp_foot``, ``shade`` and ``bulb``."""
    foot = revolve(
        [(0.0, 0.0), (0.085, 0.0), (0.088, 0.006), (0.08, 0.014), (0.05, 0.024), (0.03, 0.05),
         (0.034, 0.09), (0.05, 0.13), (0.055, 0.16), (0.045, 0.20), (0.022, 0.235), (0.012, 0.26),
         (0.009, 0.30), (0.009, 0.36), (0.0, 0.36)],
        48,
    )  # fmt: skip
    low, high, z0, z1, wall = 0.155, 0.115, 0.285, LAMP_HEIGHT, 0.004
    shade = revolve(
        [(low - wall, z0), (low, z0), (high, z1), (high - wall, z1), (low - wall, z0)], 64
    )
    bulb = moved(revolve([(0.0, -0.04), (0.014, -0.04), (0.016, -0.02), (0.03, 0.01), (0.026, 0.03),
                          (0.012, 0.042), (0.0, 0.044)], 32), 0, 0, 0.40)  # fmt: skip
    spokes = merge([
        turned(tube([(0.0, 0, 0.47), (high * 0.99, 0, 0.49)], 0.003, 8), (0, 0, 1), 120 * k)
        for k in range(3)
    ] + [moved(cylinder(0.006, 0.13, 12, 0), 0, 0, 0.42)])  # fmt: skip
    return (
        Part(foot, "lamp_foot"),
        Part(shade, "shade"),
        Part(bulb, "bulb"),
        Part(spokes, "lamp_foot"),
    )
