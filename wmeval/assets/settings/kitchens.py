"""Kitchens: luxurious, minimal and white, warm."""

from __future__ import annotations

from typing import Any

from wmeval.assets.cards import SettingCard
from wmeval.assets.meshes import merge
from wmeval.assets.settings import decor, plants, seating, storage
from wmeval.assets.settings.boards import slab
from wmeval.assets.settings.light import BRIGHT_GARDEN, GARDEN
from wmeval.assets.settings.rooms import Opening, Room, curtain, picture, rod
from wmeval.assets.settings.stage import Setting, Stage, look, top
from wmeval.assets.solids import Part, Parts, by_material, turned


def _island(stage: Stage, *, body: str, worktop: str, handle: str, thick: float, inset: float,
            grip: str = "bar") -> Parts:  # fmt: skip
    """A block of cupboards under the support's slab, fronts on both long sides."""
    length, width = stage.support.size
    h = stage.height - thick
    x, y = length / 2 - inset, width / 2 - inset
    parts = [
        top(stage, thick, worktop),
        Part(slab((x, y, (h - 0.09) / 2), 0.003, at=(0, 0, (h + 0.09) / 2), steps=1), body, True),
        Part(slab((x - 0.05, y - 0.05, 0.05), 0.0, at=(0, 0, 0.05)), "black"),
    ]
    count = max(2, round(2 * x / 0.55))
    wide = 2 * x / count
    for k in range(count):
        at = -x + (k + 0.5) * wide
        for a, b in ((0.09, 0.62 * h), (0.62 * h, h)):
            for part in storage.front(at, a, b, wide, y, look=body, handle=handle, grip=grip):
                parts.append(part)
                parts.append(Part(turned(part.mesh, (0, 0, 1), 180), part.material))
    return _merged(parts)


def _merged(parts: list[Part]) -> Parts:
    """One part for each look, but what is solid stays by itself."""
    return (*(p for p in parts if p.solid), *by_material(p for p in parts if not p.solid))


def modern_luxury_kitchen(card: SettingCard) -> Setting:
    """Walnut and dark veined marble, brass handles, parquet; morning light."""
    stage = Stage(card, {
        "floor": look("herringbone", (0.217, 0.142, 0.086), (0.122, 0.073, 0.04), uv_m=2.2,
                      roughness=0.42, specular=0.35),
        "wall": look("plaster", (0.52, 0.48, 0.42), uv_m=1.4, roughness=0.9),
        "front": look("wood", (0.125, 0.068, 0.038), (0.068, 0.034, 0.019), uv_m=1.3,
            roughness=0.42,
                      specular=0.35),
        "dark_front": look("plaster", (0.055, 0.06, 0.065), uv_m=0.9, roughness=0.5),
        "marble": look("marble", (0.42, 0.405, 0.385), (0.15, 0.135, 0.12), uv_m=1.7, roughness=0.2,
                       specular=0.55),
        "splash": look("marble", (0.66, 0.65, 0.63), (0.20, 0.18, 0.17), uv_m=2.1, roughness=0.22,
                       specular=0.5, seed=2),
        "leather": look("noise", (0.22, 0.10, 0.05), (0.28, 0.14, 0.075), uv_m=0.5, roughness=0.5),
        "art": look("painting", (0.62, 0.58, 0.5), (0.05, 0.07, 0.08), (0.50, 0.30, 0.10),
                    (0.30, 0.33, 0.30), seed=4, roughness=0.7),
    })  # fmt: skip
    stage.ground((4.6, 4.4), "floor")
    room = Room(stage, 4.5, 4.3, 3.0)
    room.wall("south", "wall", [Opening(-2.2, 2.3, 0.0, 2.6, bars=(2, 1)),
                                Opening(1.6, 2.9, 0.0, 2.6, bars=(3, 1))], frame="black_metal",
              skirting="dark_front")  # fmt: skip
    room.wall("north", "wall", skirting=None)
    room.wall("west", "wall", [Opening(-1.4, 1.0, 0.0, 2.3, "door")], frame="front",
              skirting="dark_front")  # fmt: skip
    room.wall("east", "wall", [Opening(0.6, 2.2, 0.9, 2.5, bars=(2, 1))], frame="black_metal",
              skirting="dark_front")  # fmt: skip
    handle: dict[str, Any] = {"handle": "brass"}
    run = [(0.6, "drawers"), (0.9, "sink"), (0.6, "dishwasher"), (0.9, "hob"), (0.6, "drawers"),
           (0.6, "door")]  # fmt: skip
    room.put("worktop_run", storage.base_units(run, look="dark_front", worktop="marble", **handle),
             "north", 0.3)  # fmt: skip
    room.put("splashback", (Part(slab((2.1, 0.008, 0.31), 0.0, at=(0, 0.008, 1.21)), "splash"),),
             "north", 0.3)  # fmt: skip
    room.put("cupboards", storage.wall_units([0.6, 0.6, 0.6], look="front", z=1.52, height=0.8,
                                             **handle), "north", 1.7)  # fmt: skip
    room.put(
        "cupboards",
        storage.wall_units([0.6, 0.6], look="front", z=1.52, height=0.8, **handle),
        "north",
        -1.2,
    )
    room.put("hood", storage.hood(0.9, z=1.62, look="dark_steel", top=3.0), "north", -0.15)
    for k, oven in enumerate((True, False, False)):
        room.put(
            "tall_cupboard",
            storage.tall_unit(0.75, look="front", oven=oven, height=2.45, **handle),
            "north",
            -2.25 - 0.76 * k,
        )
    room.put("fridge", storage.fridge("dark_steel", height=2.05), "north", 3.2)
    stage.stand(
        _island(stage, body="front", worktop="marble", handle="brass", thick=0.045, inset=0.03),
        thick=0.045,
    )
    room.put("console", storage.sideboard(2.2, look="front", top="marble", height=0.8, reeded=True),
             "west", 1.6)  # fmt: skip
    room.put("painting", picture(1.5, 1.0, "art", frame="brass"), "west", 1.6, z=1.62)
    room.put("table_lamp", decor.table_lamp(0.55, foot="stoneware"), "west", 0.9, off=0.2, z=0.8)
    room.put("vase", plants.grass_vase(0.85, 3, look="blue_glaze"), "west", 2.3, off=0.2, z=0.8)
    for x in (-1.9, -1.25):
        room.put("bar_stool", seating.bar_stool(0.66, seat="leather", frame="brass", back=0.14),
                 "east", x, off=0.55)  # fmt: skip
    room.put("fig", plants.fig(2.1, 4, pot_look="stoneware"), "east", 2.9, off=0.55)
    room.put("palm", plants.palm(2.0, 8, pot_look="clay"), "south", -3.8, off=0.6)
    room.put("fruit_dish", decor.fruit_bowl(bowl="china", seed=5), "north", 0.9, off=0.3, z=0.9)
    room.put("jars", decor.jar(0.2, "clay"), "north", 2.0, off=0.25, z=0.9)
    room.put("board", decor.chopping_board(), "north", -0.75, off=0.3, z=0.9)
    for x in (-1.5, 1.5):
        room.put("wall_light", decor.sconce(), "west", 1.6 + x * 0.85, z=1.75)
    stage.strew("flower_vase", plants.flowers(0.45, 2, look="green_glaze"), -1.1, 0.1)
    stage.strew("fruit_bowl", decor.fruit_bowl(bowl="blue_glaze"), 0.0, 0.05)
    stage.strew("serving_board", decor.chopping_board(0.42, "oak"), 0.9, -0.1, 20)
    return stage.finish(azimuth=-62, elevation=43, sky=GARDEN, strength=2.15)


def minimal_white_kitchen(card: SettingCard) -> Setting:
    """White fronts without handles, pale boards, open shelves; bright day."""
    stage = Stage(card, {
        "floor": look("planks", (0.40, 0.29, 0.185), (0.31, 0.215, 0.13), uv_m=1.5, roughness=0.5,
                      specular=0.25),
        "wall": look("plaster", (0.68, 0.675, 0.66), uv_m=1.4, roughness=0.9),
        "front": look("plaster", (0.52, 0.52, 0.51), uv_m=0.9, roughness=0.4, specular=0.3),
        "stone": look("speckle", (0.33, 0.33, 0.325), (0.21, 0.21, 0.21), (0.50, 0.495, 0.48),
            uv_m=0.7,
                      roughness=0.32, specular=0.4),
        "tile": look("glazed", (0.68, 0.69, 0.68), (0.55, 0.56, 0.55), uv_m=0.9, roughness=0.25,
                     specular=0.5),
        "art": look("painting", (0.72, 0.71, 0.68), (0.12, 0.14, 0.15), (0.45, 0.47, 0.48),
                    (0.60, 0.52, 0.40), seed=7, roughness=0.7),
    })  # fmt: skip
    stage.ground((4.4, 4.2), "floor")
    room = Room(stage, 4.2, 4.1, 2.9)
    room.wall("south", "wall", [Opening(0.0, 4.6, 0.0, 2.5, bars=(4, 1))], frame="white")
    room.wall("north", "wall", [Opening(1.1, 1.5, 1.12, 2.2, bars=(2, 1))])
    room.wall("west", "wall", [Opening(-2.4, 0.95, 0.0, 2.2, "door")])
    room.wall("east", "wall", [Opening(0.8, 1.8, 0.85, 2.3, bars=(2, 2))])
    plain: dict[str, Any] = {"grip": "none"}
    run = [(0.6, "drawers"), (0.6, "door"), (1.0, "sink"), (0.6, "dishwasher"), (0.6, "door"),
           (0.6, "drawers")]  # fmt: skip
    room.put(
        "worktop_run", storage.base_units(run, look="front", worktop="stone", **plain), "north", 1.1
    )
    room.put(
        "tiles", (Part(slab((2.0, 0.006, 0.11), 0.0, at=(0, 0.006, 1.0)), "tile"),), "north", 1.1
    )
    for k, oven in enumerate((True, False, False)):
        room.put(
            "tall_cupboard",
            storage.tall_unit(0.7, look="front", oven=oven, height=2.3, **plain),
            "north",
            -1.35 - 0.7 * k,
        )
    run = [(0.6, "drawers"), (0.8, "hob"), (0.6, "drawers"), (0.6, "door")]
    room.put(
        "hob_run", storage.base_units(run, look="front", worktop="stone", **plain), "west", 1.0
    )
    room.put(
        "hob_tiles",
        (Part(slab((1.3, 0.006, 0.45), 0.0, at=(0, 0.006, 1.35)), "tile"),),
        "west",
        1.0,
    )
    room.put("hood", storage.hood(0.8, look="white"), "west", 1.1)
    for x, seed in ((0.0, 3), (2.05, 6)):
        room.put("shelf", storage.shelf(0.9, look="pale_oak"), "west", x + 0.1, z=1.5)
        room.put(
            "crockery", storage.crockery(0.85, seed, ("china", "stoneware")), "west", x + 0.1, z=1.5
        )
    stage.stand(
        _island(
            stage,
            body="front",
            worktop="stone",
            handle="steel",
            thick=0.04,
            inset=0.025,
            grip="none",
        ),
        thick=0.04,
    )
    for y in (-2.6, -1.9):
        room.put("bar_stool", seating.bar_stool(0.65, seat="pale_oak", frame="white"), "east", y,
                 off=0.5)  # fmt: skip
    room.put(
        "painting", picture(0.8, 1.1, "art", frame="pale_oak", mount=0.08), "east", -2.2, z=1.6
    )
    room.put("fig", plants.fig(1.9, 2, pot_look="china"), "east", 3.2, off=0.6)
    room.put("basket", decor.basket(0.24, 0.36), "south", 3.3, off=0.5)
    room.put(
        "olive_tree", plants.olive_tree(1.9, 5, pot_look="concrete_pot"), "south", -3.3, off=0.6
    )
    room.put("board", decor.chopping_board(0.4, "pale_oak"), "north", 2.5, off=0.32, z=0.9)
    room.put("herbs", plants.trailing_plant(0.3, 5), "north", 0.2, off=0.22, z=0.9)
    room.put("jar", decor.jar(0.18, "china"), "north", 2.95, off=0.22, z=0.9)
    room.put("jar", decor.jar(0.14, "stoneware"), "west", 1.95, off=0.25, z=0.9)
    stage.strew("fruit_bowl", decor.fruit_bowl(bowl="china", fruit=("lemon",)), 0.25, 0.1)
    stage.strew("flower_vase", plants.flowers(0.4, 4, look="stoneware"), -0.4, -0.15)
    return stage.finish(
        azimuth=-112, elevation=44, sky=GARDEN, color=(1.0, 0.97, 0.92), strength=1.75
    )


def modern_warm_kitchen(card: SettingCard) -> Setting:
    """Olive cupboards, terracotta floor, green glazed tiles, a long oak table."""
    stage = Stage(card, {
        "floor": look("tiles", (0.42, 0.21, 0.125), (0.36, 0.27, 0.20), uv_m=1.5, roughness=0.7),
        "wall": look("plaster", (0.60, 0.52, 0.415), uv_m=1.4, roughness=0.92),
        "front": look("plaster", (0.17, 0.19, 0.105), uv_m=0.9, roughness=0.5),
        "butcher": look("planks", (0.304, 0.201, 0.115), (0.219, 0.133, 0.071), uv_m=0.55,
            roughness=0.45),
        "table": look("wood", (0.31, 0.203, 0.118), (0.23, 0.138, 0.076), uv_m=1.1, roughness=0.42,
                      specular=0.3),
        "tile": look("glazed", (0.13, 0.24, 0.17), (0.42, 0.40, 0.33), uv_m=0.85, roughness=0.2,
                     specular=0.6),
        "seat": look("weave", (0.50, 0.30, 0.14), (0.40, 0.22, 0.09), uv_m=0.3, roughness=0.9),
        "art": look("painting", (0.66, 0.56, 0.42), (0.30, 0.10, 0.05), (0.60, 0.32, 0.08),
                    (0.20, 0.22, 0.11), seed=3, roughness=0.7),
        "rug": look("carpet", (0.234, 0.096, 0.067), (0.114, 0.073, 0.05), (0.409, 0.323, 0.219),
                    (0.067, 0.09, 0.073), seed=2, roughness=0.98, specular=0.02),
        "drape": look("weave", (0.64, 0.52, 0.36), (0.56, 0.44, 0.29), uv_m=0.5, roughness=0.95,
                      two_sided=True),
    })  # fmt: skip
    stage.ground((4.4, 4.2), "floor")
    room = Room(stage, 4.3, 4.1, 2.9)
    room.wall("south", "wall", [Opening(-1.9, 1.9, 0.35, 2.4, bars=(2, 2)),
                                Opening(1.9, 1.9, 0.35, 2.4, bars=(2, 2))], frame="oak",
              skirting="oak")  # fmt: skip
    room.wall("north", "wall", skirting=None)
    room.wall("west", "wall", [Opening(-0.4, 1.6, 0.0, 2.45, "arch")], skirting="oak")
    room.wall(
        "east", "wall", [Opening(1.2, 1.5, 0.9, 2.2, bars=(2, 2))], frame="oak", skirting="oak"
    )
    room.alcove("west", -0.4, 2.4, 1.2, wall="wall", floor="floor")
    room.stage.put("hall_plant", plants.palm(1.7, 4, pot_look="clay"), -5.15, -0.4)
    shaker: dict[str, Any] = {"shaker": True, "grip": "knob", "handle": "brass"}
    run = [(0.5, "door"), (0.6, "drawers"), (0.9, "oven"), (0.6, "drawers"), (1.0, "sink"),
           (0.6, "dishwasher"), (0.5, "door")]  # fmt: skip
    room.put(
        "worktop_run",
        storage.base_units(run, look="front", worktop="butcher", **shaker),
        "north",
        0.2,
    )
    room.put("hob", storage.hob(0.0, 0.6, 0.9), "north", 0.2 + 0.65)
    room.put(
        "tiles", (Part(slab((2.36, 0.008, 0.33), 0.0, at=(0, 0.008, 1.23)), "tile"),), "north", 0.2
    )
    room.put("hood", storage.hood(0.9, z=1.6, look="wall"), "north", 0.85)
    for x, seed in ((-1.15, 5), (2.05, 9)):
        for z in (1.62, 2.05):
            room.put("shelf", storage.shelf(1.25, look="oak"), "north", x, z=z)
            room.put(
                "crockery",
                storage.crockery(1.15, seed + int(10 * z), ("clay", "stoneware", "china")),
                "north",
                x,
                z=z,
            )
    room.put("fridge", storage.fridge("front", height=1.85), "north", -3.0)
    room.put(
        "dresser",
        storage.bookcase(1.2, 2.1, look="oak", seed=7, levels=4, depth=0.36),
        "north",
        3.45,
    )
    length, width = stage.support.size
    h = stage.height
    legs = [
        slab(
            (0.04, 0.04, (h - 0.045) / 2),
            0.006,
            at=(sx * (length / 2 - 0.09), sy * (width / 2 - 0.09), (h - 0.045) / 2),
            steps=1,
        )
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    apron = [
        slab(
            (length / 2 - 0.1, 0.012, 0.04),
            0.003,
            at=(0, s * (width / 2 - 0.09), h - 0.085),
            steps=1,
        )
        for s in (-1, 1)
    ]
    apron += [
        slab(
            (0.012, width / 2 - 0.1, 0.04),
            0.003,
            at=(s * (length / 2 - 0.09), 0, h - 0.085),
            steps=1,
        )
        for s in (-1, 1)
    ]
    stage.stand((top(stage, 0.045, "table"), Part(merge([*legs, *apron]), "table")), thick=0.045)
    stool = seating.bench(1.7, 0.34, 0.43, seat="seat", legs="table")
    stage.put("bench", stool, 0.0, 0.50)
    for x in (-0.62, 0.0, 0.62):
        stage.put("chair", seating.dining_chair(seat="seat", frame="table", height=0.42, back=0.70,
                                                style="spindle"), x, -0.46)  # fmt: skip
    stage.put("rug", (Part(slab((1.75, 1.25, 0.005), 0.002, at=(0, 0, 0.005)), "rug"),))
    room.put("olive_tree", plants.olive_tree(2.0, 3), "south", 0.0, off=0.5)
    room.put("curtain_rod", rod(3.0, 2.6), "south", -1.9)
    for x in (-3.2, -0.7):
        room.put("curtain", curtain(0.5, 2.58, material="drape", seed=int(x)), "south", x)
    room.put("painting", picture(0.75, 0.95, "art", frame="oak"), "east", -1.1, z=1.6)
    room.put("sideboard", storage.sideboard(1.7, look="table", height=0.78), "east", -1.3)
    room.put("table_lamp", decor.table_lamp(0.5, foot="clay"), "east", -1.9, off=0.2, z=0.78)
    room.put(
        "bowl", decor.fruit_bowl(bowl="clay", fruit=("orange",)), "east", -1.0, off=0.2, z=0.78
    )
    room.put("basket", decor.basket(0.26, 0.36), "east", 2.7, off=0.5)
    room.put("fig", plants.fig(1.8, 9, pot_look="clay", kind="taper"), "west", 2.6, off=0.55)
    room.put("books", decor.stack_of_books(4, 2), "west", -2.5, off=0.25, z=0.78)
    room.put(
        "dresser_low", storage.sideboard(1.6, look="table", height=0.78, doors=3), "west", -2.5
    )
    room.put("vase", plants.grass_vase(0.9, 5, look="clay"), "west", -3.0, off=0.22, z=0.78)
    room.put("board", decor.chopping_board(), "north", -0.5, off=0.3, z=0.9)
    room.put(
        "herbs", plants.trailing_plant(0.32, 6, pot_look="clay"), "north", 1.75, off=0.2, z=0.9
    )
    stage.strew(
        "fruit_bowl", decor.fruit_bowl(bowl="green_glaze", fruit=("orange", "lemon")), 0.3, 0.05
    )
    stage.strew("bread_board", decor.chopping_board(), -0.45, 0.1, 15)
    stage.strew("jar", decor.jar(0.16, "stoneware"), 0.75, 0.2)
    return stage.finish(
        azimuth=-65, elevation=38, sky=BRIGHT_GARDEN, color=(1.0, 0.89, 0.72), strength=2.4
    )
