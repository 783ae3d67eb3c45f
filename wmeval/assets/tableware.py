"""What stands on a breakfast table: toaster, mug, bowl, plate, knife. Sizes are everyday ones.

Every function gives the parts of one thing in its own frame: the origin lies where it stands, at
the middle of its foot, z upwards. Materials are names that the scene gives a look to.
"""

from __future__ import annotations

import math

from wmeval.assets.meshes import cylinder, revolve
from wmeval.assets.solids import (
    Part,
    Parts,
    by_material,
    moved,
    plate_of,
    slab,
    stretched,
    tube,
    turned,
)
from wmeval.scene import MeshData

TOASTER_SIZE = (0.40, 0.21, 0.22)
"""Length, width and height [m] of the toaster's body with its base."""
MUG_RADIUS, MUG_HEIGHT = 0.047, 0.105
BOWL_RADIUS, BOWL_HEIGHT = 0.15, 0.085
PLATE_RADIUS = 0.14
KNIFE_LENGTH = 0.235


def toaster() -> Parts:
    """A four-slice toaster, long side along x: enamel body, two long slots, lever, dial, toast.

    Materials: ``enamel``, ``steel``, ``dark`` and ``toast``.
    """
    x, y, z = (s / 2 for s in TOASTER_SIZE)
    foot = 0.012
    top = TOASTER_SIZE[2]
    found = [
        Part(slab((x, y, 0.017), 0.008, at=(0, 0, foot + 0.017)), "dark"),
        Part(
            slab((x - 0.006, y - 0.006, z - 0.016), 0.052, at=(0, 0, z + 0.016), steps=6), "enamel"
        ),
        # The crown of steel around the slots, slightly proud of the body.
        Part(slab((x - 0.055, 0.062, 0.004), 0.003, at=(0, 0, top - 0.002)), "steel"),
        *(
            Part(slab((x - 0.07, 0.0165, 0.002), 0.001, at=(0, s * 0.031, top + 0.0015)), "dark")
            for s in (-1, 1)
        ),
    ]
    for s, shift, tilt in ((-1, -0.066, 2.0), (-1, 0.062, -3.0), (1, -0.058, -2.0), (1, 0.07, 3.0)):
        slice_ = turned(_slice(), (0, 1, 0), tilt)
        found.append(Part(moved(slice_, shift, s * 0.031, top - 0.018), "toast"))
    end = x - 0.004
    found += [
        Part(slab((0.002, 0.011, 0.06), 0.001, at=(end, 0, 0.115)), "dark"),
        Part(slab((0.016, 0.024, 0.009), 0.005, at=(end + 0.014, 0, 0.148), steps=3), "steel"),
        *(
            Part(moved(turned(cylinder(0.016, 0.022, 24), (0, 1, 0), 90), end + 0.008, s * 0.058,
                       0.062), "steel")
            for s in (-1, 1)
        ),
        *(
            Part(
                moved(cylinder(0.014, 0.014, 16), sx * (x - 0.04), sy * (y - 0.035), 0.007), "dark"
            )
            for sx in (-1, 1)
            for sy in (-1, 1)
        ),
    ]  # fmt: skip
    return by_material(found)


def _slice() -> MeshData:
    """A slice of bread standing in the x-z plane, its foot at z = 0."""
    outline = []
    for k in range(40):
        t = 2 * math.pi * k / 40
        # A loaf's outline: a rounded square with a domed upper crust.
        c, s = math.cos(t), math.sin(t)
        p = 4.0
        r = (abs(c) ** p + abs(s) ** p) ** (-1 / p)
        outline.append((0.052 * r * c, 0.05 * r * s + (0.008 * (1 - c * c) if s > 0 else 0.0)))
    flat = plate_of(outline, 0.018)
    return moved(turned(flat, (1, 0, 0), 90), 0, 0, 0.012)


def mug() -> Parts:
    """A mug with coffee, its handle towards +x. Materials: ``glaze`` and ``coffee``."""
    r, h, wall = MUG_RADIUS, MUG_HEIGHT, 0.005
    lip = [
        (r - wall / 2 + wall / 2 * math.cos(t), h - wall / 2 + wall / 2 * math.sin(t))
        for t in (0.0, 0.6, 1.2, math.pi / 2, 1.95, 2.5, math.pi)
    ]
    body = revolve(
        [(0.0, 0.003), (r * 0.76, 0.003), (r * 0.78, 0.0), (r * 0.86, 0.0), (r * 0.95, 0.006),
         (r, 0.018), *lip, (r - wall, 0.016), (r - 0.013, 0.009), (0.0, 0.008)],
        56,
    )  # fmt: skip
    bend = [
        (r - 0.004 + 0.033 * math.sin(math.pi * k / 16), 0.0,
         0.053 - 0.031 * math.cos(math.pi * k / 16))
        for k in range(17)
    ]  # fmt: skip
    coffee = moved(cylinder(r - wall - 0.0005, 0.002, 40, 0), 0, 0, h * 0.80)
    return (*by_material([Part(body, "glaze"), Part(tube(bend, 0.0062, 14), "glaze")]),
            Part(coffee, "coffee"))  # fmt: skip


def bowl() -> Parts:
    """A deep bowl: ``stoneware`` outside and ``inside`` glaze within."""
    r, h = BOWL_RADIUS, BOWL_HEIGHT
    foot = 0.36 * r
    outer = [(0.0, 0.004), (foot - 0.006, 0.004), (foot - 0.004, 0.0), (foot, 0.0), (foot, 0.008)]
    for k in range(1, 13):
        t = k / 12 * math.pi / 2
        outer.append((foot + (r - foot) * math.sin(t), 0.008 + (h - 0.008) * (1 - math.cos(t))))
    wall = 0.007
    rim = [(r - 0.5 * wall + 0.5 * wall * math.cos(t), h + 0.5 * wall * math.sin(t))
           for t in (0.5, 1.1, math.pi / 2)]  # fmt: skip
    shell = [*outer, *rim]
    inner = [(r - 0.5 * wall, h + 0.5 * wall), (r - 0.9 * wall, h + 0.2 * wall)]
    for k in range(12, -1, -1):
        t = k / 12 * math.pi / 2
        inner.append(
            (foot + (r - foot - wall) * math.sin(t), 0.015 + (h - 0.016) * (1 - math.cos(t)))
        )
    inner.append((0.0, 0.0145))
    # Two open sheets that meet at the rim: together they are closed.
    return Part(revolve(shell, 64), "stoneware"), Part(revolve(inner, 64), "inside")


def plate() -> Parts:
    """A dinner plate: ``china`` with a coloured ``band`` on its rim."""
    r = PLATE_RADIUS
    well = 0.62 * r
    dish = revolve(
        [(0.0, 0.003), (0.5 * r, 0.003), (0.52 * r, 0.0), (0.56 * r, 0.0), (0.6 * r, 0.004),
         (r, 0.017), (r + 0.001, 0.0195), (r - 0.002, 0.0205), (well + 0.012, 0.0105),
         (well, 0.0075), (0.0, 0.007)],
        72,
    )  # fmt: skip

    def at(share: float) -> tuple[float, float]:
        a, b = (well + 0.012, 0.0105), (r - 0.002, 0.0205)
        return a[0] + (b[0] - a[0]) * share, a[1] + (b[1] - a[1]) * share

    (r0, z0), (r1, z1) = at(0.62), at(0.9)
    band = revolve([(r0, z0 - 0.001), (r1, z1 - 0.001), (r1, z1 + 0.0005), (r0, z0 + 0.0005),
                    (r0, z0 - 0.001)], 72)  # fmt: skip
    return Part(dish, "china"), Part(band, "band")


def knife() -> Parts:
    """A table knife lying flat, tip towards +x. Materials: ``blade`` and ``handle``."""
    half = KNIFE_LENGTH / 2
    split = -half + 0.105
    blade = [(split, -0.009)]
    for k in range(9):
        t = k / 8
        blade.append((split + (half - split) * (0.62 + 0.38 * math.sin(t * math.pi / 2)),
                      -0.0105 + 0.0195 * (1 - math.cos(t * math.pi / 2))))  # fmt: skip
    blade += [(split, 0.009)]
    grip = tube(
        [(-half, 0, 0.007), (-half + 0.004, 0, 0.007), (-half + 0.03, 0, 0.007),
         (split - 0.012, 0, 0.007), (split, 0, 0.007)],
        [0.006, 0.009, 0.0105, 0.0085, 0.0075], 16,
    )  # fmt: skip
    grip = moved(stretched(moved(grip, 0, 0, -0.007), z=0.68), 0, 0, 0.0072)
    return Part(moved(plate_of(blade, 0.0022), 0, 0, 0.0072), "blade"), Part(grip, "handle")
