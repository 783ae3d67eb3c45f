"""Living rooms: by the coast, and a cosy one with a fireplace."""

from __future__ import annotations

import math

from wmeval.assets.cards import SettingCard
from wmeval.assets.meshes import merge
from wmeval.assets.settings import decor, plants, seating, storage
from wmeval.assets.settings.boards import slab
from wmeval.assets.settings.light import COAST, PARK
from wmeval.assets.settings.rooms import Opening, Room, curtain, picture, rod, round_mirror, rug
from wmeval.assets.settings.stage import Setting, Stage, look, table_legs, top
from wmeval.assets.solids import Part, tube
from wmeval.scene import Sky


def coastal_living_room(card: SettingCard) -> Setting:
    """White boards, washed oak, linen and blue; the sea in the windows."""
    stage = Stage(card, {
        "floor": look("planks", (0.46, 0.37, 0.26), (0.37, 0.285, 0.19), uv_m=1.6, roughness=0.6),
        "wall": look("boards", (0.70, 0.71, 0.70), (0.45, 0.47, 0.48), uv_m=1.3, roughness=0.8),
        "blue_wall": look("boards", (0.30, 0.42, 0.48), (0.17, 0.25, 0.30), uv_m=1.3,
            roughness=0.8),
        "washed": look("wood", (0.50, 0.40, 0.285), (0.40, 0.31, 0.21), uv_m=0.9, roughness=0.6),
        "sofa": look("weave", (0.68, 0.66, 0.61), (0.60, 0.58, 0.53), uv_m=0.28, roughness=0.95),
        "navy": look("stripes", (0.05, 0.10, 0.20), (0.70, 0.69, 0.66), uv_m=0.22, roughness=0.95),
        "aqua": look("weave", (0.20, 0.42, 0.46), (0.15, 0.34, 0.38), uv_m=0.25, roughness=0.95),
        "rug": look("weave", (0.54, 0.44, 0.30), (0.44, 0.35, 0.225), uv_m=0.7, roughness=0.98,
            specular=0.02),
        "art": look("painting", (0.66, 0.71, 0.72), (0.06, 0.18, 0.27), (0.70, 0.62, 0.46), (0.25,
            0.45, 0.50),
                    seed=52, roughness=0.7),
        "art_2": look("painting", (0.72, 0.70, 0.64), (0.10, 0.25, 0.33), (0.60, 0.34, 0.18),
            (0.40, 0.55, 0.57),
                      seed=55, roughness=0.7),
    })  # fmt: skip
    stage.ground((4.5, 4.4), "floor")
    room = Room(stage, 4.3, 4.2, 2.9)
    room.wall("south", "wall", [Opening(x, 1.9, 0.0, 2.45, bars=(2, 2)) for x in (-2.2, 0.0, 2.2)])
    room.wall("north", "blue_wall")
    room.wall("west", "wall", [Opening(0.2, 2.2, 0.7, 2.35, bars=(3, 2))])
    room.wall(
        "east",
        "wall",
        [Opening(0.0, 1.2, 0.7, 2.35, bars=(2, 2)), Opening(2.6, 1.0, 0.0, 2.2, "door")],
    )
    room.put(
        "sofa",
        seating.sofa(
            2.5, cloth="sofa", cushions=("navy", "aqua", "aqua", "navy"), legs="washed", back=0.74
        ),
        "north",
        -0.9,
        off=0.6,
    )
    for x, art in ((-1.55, "art"), (-0.25, "art_2")):
        room.put("painting", picture(1.1, 0.8, art, frame="washed", mount=0.06), "north", x, z=1.65)
    room.put(
        "side_table",
        decor.side_table(0.25, 0.52, look="washed", leg="washed"),
        "north",
        0.75,
        off=0.5,
    )
    room.put(
        "table_lamp", decor.table_lamp(0.56, foot="blue_glaze"), "north", 0.75, off=0.5, z=0.52
    )
    room.put(
        "bookcase",
        storage.bookcase(
            1.7,
            2.1,
            look="washed",
            seed=31,
            levels=5,
            back="blue_wall",
            vases=("china", "blue_glaze", "stoneware"),
        ),
        "north",
        2.3,
    )
    room.put("palm", plants.palm(2.2, 21, pot_look="rattan"), "north", 3.75, off=0.55)
    room.put("fig", plants.fig(1.8, 18, pot_look="china"), "north", -3.6, off=0.6)
    for y, turn in ((-1.9, 0), (1.9, 0)):
        room.put("wicker_chair", seating.wicker_chair(cushion="sofa"), "west", y, off=0.75 + turn)
    room.put("wicker_stool", seating.pouf(0.28, 0.4, "navy"), "west", 0.0, off=0.6)
    room.put(
        "sideboard", storage.sideboard(1.9, look="wall", top="washed", height=0.8), "east", -1.9
    )
    room.put("mirror", round_mirror(0.45, "rattan"), "east", -1.9, z=1.6)
    room.put("pampas", plants.grass_vase(0.85, 8), "east", -2.5, off=0.2, z=0.8)
    room.put(
        "shell_bowl",
        (Part(storage.vase(0.26, 2, segments=32), "blue_glaze"),),
        "east",
        -1.3,
        off=0.2,
        z=0.8,
    )
    room.put("basket", decor.basket(0.27, 0.38), "east", 1.3, off=0.5)
    room.put(
        "oar",
        (
            Part(
                merge(
                    [
                        tube([(0, 0.05, 0.2), (0, 0.05, 2.0)], 0.022, 10),
                        slab((0.08, 0.014, 0.3), 0.012, at=(0, 0.05, 2.2)),
                    ]
                ),
                "washed",
            ),
        ),
        "east",
        3.55,
    )
    for x in (-3.5, -1.1, 1.1, 3.5):
        room.put("curtain", curtain(0.5, 2.66, seed=int(9 + x)), "south", x)
    room.put("curtain_rod", rod(7.6, 2.68, "washed"), "south", 0.0)
    stage.put("rug", rug(3.3, 2.6, "rug"))
    x, y = (s / 2 for s in stage.support.size)
    shelf = [
        slab((x - 0.07, 0.035, 0.009), 0.003, at=(0, -y + 0.11 + 0.082 * k, 0.15), steps=1)
        for k in range(7)
    ]
    stage.stand(
        (
            top(stage, 0.045, "washed"),
            table_legs(stage, 0.07, 0.035, "washed", thick=0.045, taper=0.9, apron=0.06),
            Part(merge(shelf), "washed"),
        ),
        thick=0.045,
    )
    stage.put("magazines", decor.stack_of_books(4, 2, long=0.3), -0.25, 0.0, 0.16, 10)
    stage.put("low_basket", decor.basket(0.15, 0.16), 0.3, 0.0, 0.16)
    stage.strew("books", decor.stack_of_books(2, 7), -0.3, 0.08, 12)
    stage.strew("shell_vase", (Part(storage.vase(0.26, 0, segments=32), "china"),), 0.3, 0.12)
    stage.strew("tray", decor.tray(0.36, 0.24, "washed"), 0.1, -0.12)
    sky = Sky(
        zenith=(0.42, 0.50, 0.60),
        horizon=(0.68, 0.72, 0.76),
        ground=(0.42, 0.40, 0.36),
        clouds=0.35,
        panorama=COAST,
    )
    return stage.finish(azimuth=-75, elevation=44, sky=sky, color=(1.0, 0.95, 0.87), strength=2.0)


def cozy_living_room(card: SettingCard) -> Setting:
    """Green walls, books, a fireplace, deep chairs; a low round table of oak on a soft rug."""
    stage = Stage(card, {
        "floor": look("planks", (0.228, 0.145, 0.087), (0.151, 0.089, 0.051), uv_m=1.5,
            roughness=0.45, specular=0.3),
        "wall": look("plaster", (0.185, 0.24, 0.165), uv_m=1.5, roughness=0.92),
        "panel": look("plaster", (0.16, 0.21, 0.142), uv_m=1.0, roughness=0.6),
        "table": look("wood", (0.332, 0.221, 0.127), (0.245, 0.153, 0.081), uv_m=0.9,
            roughness=0.42, specular=0.3),
        "sofa": look("weave", (0.47, 0.37, 0.26), (0.39, 0.30, 0.205), uv_m=0.28, roughness=0.96),
        "leather": look("noise", (0.25, 0.10, 0.045), (0.32, 0.14, 0.065), uv_m=0.6,
            roughness=0.45),
        "rust": look("weave", (0.45, 0.16, 0.06), (0.37, 0.12, 0.045), uv_m=0.25, roughness=0.95),
        "forest": look("weave", (0.10, 0.17, 0.11), (0.075, 0.13, 0.085), uv_m=0.25,
            roughness=0.95),
        "cream": look("weave", (0.64, 0.58, 0.47), (0.56, 0.50, 0.40), uv_m=0.25, roughness=0.95),
        "rug": look("carpet", (0.232, 0.083, 0.06), (0.06, 0.072, 0.084), (0.412, 0.343, 0.239),
            (0.097, 0.132, 0.103), seed=9,
                    roughness=0.98, specular=0.02),
        "stone": look("masonry", (0.40, 0.36, 0.31), (0.28, 0.25, 0.21), uv_m=1.3, roughness=0.9),
        "art": look("painting", (0.42, 0.36, 0.24), (0.08, 0.11, 0.06), (0.52, 0.30, 0.10), (0.26,
            0.30, 0.24),
                    seed=62, roughness=0.6),
        "art_2": look("painting", (0.50, 0.44, 0.34), (0.20, 0.08, 0.04), (0.12, 0.17, 0.14),
            (0.55, 0.36, 0.14),
                      seed=64, roughness=0.6),
        "drape": look("weave", (0.42, 0.20, 0.09), (0.34, 0.155, 0.065), uv_m=0.5, roughness=0.95,
            two_sided=True),
    })  # fmt: skip
    stage.ground((4.5, 4.3), "floor")
    room = Room(stage, 4.3, 4.2, 2.8)
    panel = ("panel", 0.85)
    room.wall(
        "south",
        "wall",
        [Opening(-1.7, 1.7, 0.4, 2.35, bars=(2, 3)), Opening(1.7, 1.7, 0.4, 2.35, bars=(2, 3))],
        frame="oak",
        panel=("panel", 0.4),
        skirting=None,
    )
    room.wall("north", "wall", panel=panel, skirting=None)
    room.wall("west", "wall", panel=panel, skirting=None)
    room.wall(
        "east",
        "wall",
        [Opening(2.6, 0.95, 0.0, 2.15, "door"), Opening(-0.4, 1.5, 0.4, 2.35, bars=(2, 3))],
        frame="oak",
        panel=panel,
        skirting=None,
    )
    room.put("fireplace", decor.fireplace(1.7, stone="stone", shelf="table"), "north", 0.0)
    room.put(
        "chimney", (Part(slab((0.8, 0.14, 0.8), 0.0, at=(0, 0.14, 2.03)), "stone"),), "north", 0.0
    )
    room.put("mirror", round_mirror(0.42), "north", 0.0, off=0.29, z=1.9)
    room.put("candles", decor.candles(), "north", -0.6, off=0.18, z=1.24)
    room.put(
        "vase",
        (Part(storage.vase(0.3, 2, segments=32), "green_glaze"),),
        "north",
        0.65,
        off=0.18,
        z=1.24,
    )
    for x, seed in ((-2.15, 41), (2.15, 45)):
        room.put(
            "bookcase", storage.bookcase(2.0, 2.4, look="table", seed=seed, levels=6), "north", x
        )
    room.put(
        "sofa",
        seating.sofa(
            2.4, cloth="sofa", cushions=("rust", "cream", "forest"), legs="table", back=0.78
        ),
        "west",
        0.3,
        off=0.52,
    )
    room.put("throw", decor.blanket(0.6, 0.9, "cream"), "west", 1.0, off=0.35, z=0.79)
    for y, art in ((-0.4, "art"), (1.0, "art_2")):
        room.put("painting", picture(0.95, 0.75, art, frame="brass"), "west", y, z=1.62)
    room.put(
        "side_table",
        decor.side_table(0.24, 0.52, look="table", leg="table"),
        "west",
        1.95,
        off=0.45,
    )
    room.put(
        "table_lamp", decor.table_lamp(0.55, foot="green_glaze"), "west", 1.95, off=0.45, z=0.52
    )
    room.put("fig", plants.fig(2.0, 31, pot_look="clay"), "west", 3.2, off=0.6)
    room.put("lamp", decor.floor_lamp(1.6, stand="brass"), "west", -1.5, off=0.45)
    room.put(
        "armchair",
        seating.armchair(cloth="leather", legs="table", cushion="forest"),
        "west",
        -2.6,
        off=0.75,
    )
    room.put(
        "armchair",
        seating.armchair(cloth="leather", legs="table", cushion="rust"),
        "east",
        -2.2,
        off=0.75,
    )
    room.put("pouf", seating.pouf(0.27, 0.36, "rust"), "east", -3.2, off=0.6)
    room.put("sideboard", storage.sideboard(1.6, look="table", height=0.78, doors=3), "east", 1.15)
    room.put("table_lamp", decor.table_lamp(0.5, foot="clay"), "east", 0.65, off=0.2, z=0.78)
    room.put("books", decor.stack_of_books(5, 15), "east", 1.2, off=0.2, z=0.78)
    room.put(
        "herbs", plants.trailing_plant(0.34, 12, pot_look="clay"), "east", 1.65, off=0.2, z=0.78
    )
    room.put("painting", picture(0.8, 0.6, "art", frame="brass"), "east", 1.15, z=1.65)
    room.put("basket", decor.basket(0.28, 0.38), "south", 0.0, off=0.45)
    room.put("palm", plants.palm(2.1, 25, pot_look="rattan"), "south", 3.4, off=0.6)
    room.put("snake_plant", plants.snake_plant(0.9, 9, pot_look="clay"), "south", -3.4, off=0.5)
    for k, x in enumerate((-1.7, 1.7)):
        room.put("curtain_rod", rod(2.6, 2.52, "brass"), "south", x)
        for s in (-1, 1):
            room.put(
                "curtain",
                curtain(0.55, 2.5, material="drape", seed=5 * k + s),
                "south",
                x + s * 1.07,
            )
    stage.put("rug", rug(3.6, 2.8, "rug"))
    r, h = stage.support.size[0] / 2, stage.height
    legs = [
        tube(
            [
                (0.66 * r * math.cos(a), 0.66 * r * math.sin(a), 0.012),
                (0.6 * r * math.cos(a), 0.6 * r * math.sin(a), h - 0.04),
            ],
            [0.03, 0.04],
            14,
        )
        for a in (k * math.tau / 4 + 0.4 for k in range(4))
    ]
    stage.stand((top(stage, 0.045, "table", bevel=0.006), Part(merge(legs), "table")), thick=0.045)
    stage.strew("books", decor.stack_of_books(3, 16), -0.2, 0.15, 20)
    stage.strew("candles", decor.candles(), 0.2, 0.2)
    stage.strew("tray", decor.tray(0.4, 0.28, "walnut"), 0.1, -0.25)
    return stage.finish(
        azimuth=-66,
        elevation=37,
        sky=Sky(
            zenith=(0.54, 0.53, 0.52),
            horizon=(0.76, 0.70, 0.62),
            ground=(0.42, 0.37, 0.31),
            strength=1.45,
            clouds=0.3,
            panorama=PARK,
        ),
        color=(1.0, 0.86, 0.66),
        strength=2.9,
    )
