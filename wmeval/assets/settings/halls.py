"""A grand hallway."""

from __future__ import annotations

import math

from wmeval.assets.cards import SettingCard
from wmeval.assets.meshes import merge, revolve
from wmeval.assets.settings import decor, plants, seating, storage
from wmeval.assets.settings.boards import slab
from wmeval.assets.settings.light import BRIGHT_GARDEN
from wmeval.assets.settings.rooms import Opening, Room, curtain, picture, rod, round_mirror
from wmeval.assets.settings.stage import Setting, Stage, look, top
from wmeval.assets.solids import Part, Parts, moved, tube, turned


def hallway_interior(card: SettingCard) -> Setting:
    """A grand hall: checkered marble, columns, stairs, tall windows; a wide round stand in it."""
    stage = Stage(card, {
        "floor": look("checker", (0.54, 0.51, 0.45), (0.10, 0.10, 0.105), uv_m=1.6, roughness=0.22,
            specular=0.5),
        "wall": look("plaster", (0.60, 0.54, 0.43), uv_m=1.6, roughness=0.9),
        "panel": look("plaster", (0.66, 0.62, 0.54), uv_m=1.0, roughness=0.6),
        "stone": look("marble", (0.68, 0.64, 0.57), (0.50, 0.45, 0.37), uv_m=1.6, roughness=0.35),
        "table": look("marble", (0.062, 0.085, 0.07), (0.32, 0.34, 0.29), uv_m=1.9, roughness=0.25,
            specular=0.45,
                      seed=4),
        "runner": look("weave", (0.33, 0.05, 0.05), (0.26, 0.04, 0.04), uv_m=0.3, roughness=0.95),
        "art": look("painting", (0.36, 0.33, 0.25), (0.08, 0.06, 0.04), (0.45, 0.32, 0.14), (0.15,
            0.20, 0.20),
                    seed=31, roughness=0.5),
        "art_2": look("painting", (0.30, 0.33, 0.33), (0.05, 0.06, 0.08), (0.55, 0.45, 0.30),
            (0.33, 0.15, 0.08),
                      seed=33, roughness=0.5),
        "drape": look("weave", (0.36, 0.06, 0.055), (0.28, 0.045, 0.04), uv_m=0.5, roughness=0.9,
            two_sided=True),
    })  # fmt: skip
    stage.ground((5.4, 5.4), "floor")
    room = Room(stage, 5.2, 5.2, 4.2)
    panel = ("panel", 1.05)
    tall = [Opening(x, 1.5, 0.3, 3.7, bars=(2, 4)) for x in (-3.0, 0.0, 3.0)]
    room.wall("south", "wall", tall, panel=("panel", 0.3), skirting=None)
    room.wall(
        "north",
        "wall",
        [Opening(-3.1, 1.9, 0.0, 2.9, "arch"), Opening(1.2, 1.7, 0.0, 2.8, "door")],
        panel=panel,
        frame="walnut",
        skirting=None,
    )
    room.wall("west", "wall", panel=panel, skirting=None)
    room.wall(
        "east",
        "wall",
        [Opening(0.0, 1.9, 0.0, 2.9, "door")],
        panel=panel,
        frame="walnut",
        skirting=None,
    )
    room.alcove("north", -3.1, 2.9, 1.75, wall="wall", floor="floor")
    stage.put(
        "passage_console", decor.console(1.2, look="walnut", leg="walnut"), -3.1, 7.05, turn=180
    )
    stage.put("passage_painting", picture(0.9, 1.2, "art_2", frame="brass"), -3.1, 7.08, 1.75, 180)
    for x in (-4.45, 4.45):
        for y in (-4.45, 4.45):
            stage.put("column", _column(4.2), x, y)
    room.put("stairs", _stairs(13, 0.17, 0.29, 1.15), "west", 2.6)
    room.put("portrait", picture(1.3, 1.7, "art", frame="brass"), "west", 2.9, z=2.0)
    room.put(
        "bench", seating.bench(1.4, 0.45, 0.46, seat="runner", legs="walnut"), "west", 3.35, off=0.3
    )
    for x in (-1.35, 3.75):
        room.put("wall_light", decor.sconce(), "north", x if x > 0 else -0.4, z=2.1)
    room.put(
        "console",
        decor.console(1.5, look="walnut", leg="brass", height=0.9, depth=0.42),
        "north",
        3.4,
    )
    room.put("mirror", round_mirror(0.6), "north", 3.4, z=2.0)
    room.put("table_lamp", decor.table_lamp(0.65, foot="blue_glaze"), "north", 3.0, off=0.2, z=0.9)
    room.put("flowers", plants.flowers(0.6, 7, look="china"), "north", 3.75, off=0.2, z=0.9)
    room.put("clock_case", _clock(), "north", -1.3)
    for y in (-2.6, 2.6):
        room.put(
            "console",
            decor.console(1.5, look="walnut", leg="brass", height=0.9, depth=0.42),
            "east",
            y,
        )
        room.put(
            "painting",
            picture(1.35, 1.0, "art" if y > 0 else "art_2", frame="brass"),
            "east",
            y,
            z=2.05,
        )
        room.put(
            "vase",
            (Part(storage.vase(0.55, 2, segments=32), "blue_glaze"),),
            "east",
            y - 0.35,
            off=0.2,
            z=0.9,
        )
        room.put("table_lamp", decor.table_lamp(0.6, foot="china"), "east", y + 0.4, off=0.2, z=0.9)
        room.put("palm", plants.palm(2.4, 5, pot_look="clay"), "east", 1.5 * y, off=0.75)
    for k, x in enumerate((-3.0, 0.0, 3.0)):
        room.put("curtain_rod", rod(2.4, 3.85, "brass"), "south", x)
        for s in (-1, 1):
            room.put(
                "curtain",
                curtain(0.6, 3.83, material="drape", seed=5 * k + s),
                "south",
                x + s * 0.98,
            )
    for x in (-1.5, 1.5):
        room.put(
            "stool",
            seating.bench(0.9, 0.45, 0.46, seat="runner", legs="walnut"),
            "south",
            x,
            off=0.35,
        )
    h = stage.height
    foot = revolve(
        [
            (0, 0),
            (1.0, 0.0),
            (1.0, 0.1),
            (0.86, 0.14),
            (0.82, 0.2),
            (0.5, 0.34),
            (0.42, 0.55),
            (0.46, 0.8),
            (0.62, h - 0.2),
            (0.8, h - 0.12),
            (0.84, h - 0.06),
            (0, h - 0.06),
        ],
        64,
    )
    r = stage.support.size[0] / 2
    edge = revolve(
        [
            (r - 0.09, h - 0.115),
            (r - 0.03, h - 0.115),
            (r - 0.018, h - 0.085),
            (r - 0.03, h - 0.055),
            (r - 0.09, h - 0.055),
            (r - 0.09, h - 0.115),
        ],
        96,
    )
    stage.stand(
        (top(stage, 0.06, "table", bevel=0.012), Part(foot, "walnut"), Part(edge, "brass")),
        thick=0.06,
    )
    stage.strew("flower_urn", plants.flowers(0.75, 12, look="blue_glaze"), 0.0, 0.0)
    stage.strew("books", decor.stack_of_books(4, 3), 0.55, -0.25, 20)
    stage.strew("candles", decor.candles(), -0.5, -0.3)
    return stage.finish(
        azimuth=-64, elevation=42, sky=BRIGHT_GARDEN, color=(1.0, 0.93, 0.82), strength=2.3
    )


def _column(height: float) -> Parts:
    """A fluted-looking column: base, shaft with entasis, capital."""
    r = 0.21
    profile = [
        (0, 0),
        (1.45 * r, 0),
        (1.45 * r, 0.12),
        (1.3 * r, 0.16),
        (1.35 * r, 0.22),
        (1.1 * r, 0.27),
        (1.0 * r, 0.3),
        (1.0 * r, 0.4 * height),
        (0.86 * r, height - 0.34),
        (1.0 * r, height - 0.32),
        (1.0 * r, height - 0.28),
        (0.88 * r, height - 0.26),
        (1.3 * r, height - 0.12),
        (1.5 * r, height - 0.1),
        (1.5 * r, height),
        (0, height),
    ]
    return (Part(revolve(profile, 32), "stone"),)


def _stairs(steps: int, rise: float, tread: float, width: float) -> Parts:
    """A flight along +x with its back on y = 0, with balusters and a handrail."""
    boxes, runner, rails = [], [], []
    for k in range(steps):
        high = rise * (k + 1)
        x = (k + 0.5) * tread
        boxes.append(slab((tread / 2, width / 2, high / 2), 0.0, at=(x, width / 2, high / 2)))
        boxes.append(slab((tread / 2 + 0.015, width / 2 + 0.02, 0.016), 0.006,
                          at=(x - 0.015, width / 2, high - 0.016), steps=1))  # fmt: skip
        runner.append(
            slab(
                (tread / 2 + 0.006, 0.3 * width, 0.004), 0.0, at=(x - 0.01, width / 2, high + 0.004)
            )
        )
        runner.append(
            slab(
                (0.004, 0.3 * width, rise / 2),
                0.0,
                at=(x - tread / 2 - 0.022, width / 2, high - rise / 2),
            )
        )
        rails.append(
            moved(
                revolve(
                    [
                        (0, 0),
                        (0.012, 0),
                        (0.016, 0.2),
                        (0.024, 0.34),
                        (0.011, 0.5),
                        (0.012, 0.86),
                        (0, 0.86),
                    ],
                    10,
                ),
                x,
                width - 0.05,
                high,
            )
        )
    hand = tube(
        [(0.1, width - 0.05, rise + 0.87), (steps * tread, width - 0.05, steps * rise + 0.87)],
        0.032,
        10,
    )
    newel = slab((0.06, 0.06, 0.62), 0.015, at=(0.04, width - 0.05, 0.62))
    ball = moved(
        revolve([(0, 0), (0.05, 0.01), (0.075, 0.06), (0.05, 0.12), (0, 0.13)], 24),
        0.04,
        width - 0.05,
        1.24,
    )
    return (Part(merge(boxes), "stone"), Part(merge(runner), "runner"), Part(merge(rails), "white"),
            Part(merge([hand, newel, ball]), "walnut"))  # fmt: skip


def _clock() -> Parts:
    """A long-case clock, its back on y = 0."""
    case = [
        slab((0.26, 0.16, 0.28), 0.01, at=(0, 0.16, 0.28), steps=1),
        slab((0.18, 0.12, 0.55), 0.006, at=(0, 0.14, 1.05), steps=1),
        slab((0.26, 0.16, 0.26), 0.01, at=(0, 0.16, 1.84), steps=1),
        slab((0.3, 0.19, 0.03), 0.01, at=(0, 0.17, 2.13), steps=1),
    ]
    face = moved(revolve([(0, 0), (0.18, 0), (0.18, 0.02), (0, 0.02)], 40), 0, 0, 0)

    dial = moved(turned(face, (1, 0, 0), -90), 0, 0.315, 1.86)
    marks = [
        slab((0.006, 0.004, 0.02), 0.0, at=(0.145 * math.sin(a), 0.34, 1.86 + 0.145 * math.cos(a)))
        for a in (k * math.pi / 6 for k in range(12))
    ]
    hands = [
        slab((0.006, 0.003, 0.05), 0.0, at=(0, 0.341, 1.91)),
        slab((0.045, 0.003, 0.006), 0.0, at=(0.045, 0.341, 1.86)),
    ]
    return Part(merge(case), "walnut"), Part(dial, "china"), Part(merge([*marks, *hands]), "black")
