"""Dining rooms: japandi, classic."""

from __future__ import annotations

from wmeval.assets.cards import SettingCard
from wmeval.assets.meshes import merge
from wmeval.assets.settings import decor, plants, seating, storage
from wmeval.assets.settings.boards import slab
from wmeval.assets.settings.light import BRIGHT_GARDEN, GARDEN
from wmeval.assets.settings.rooms import Opening, Room, curtain, picture, rod, round_mirror, rug
from wmeval.assets.settings.stage import Setting, Stage, look, table_legs, top
from wmeval.assets.solids import Part


def modern_japandi_dining(card: SettingCard) -> Setting:
    """Pale oak, limewash, black lines, a wall of slats, paper lamps."""
    stage = Stage(card, {
        "floor": look("planks", (0.385, 0.296, 0.203), (0.307, 0.228, 0.149), uv_m=1.6,
            roughness=0.5),
        "wall": look("concrete", (0.60, 0.56, 0.49), (0.55, 0.51, 0.44), uv_m=2.6, roughness=0.95),
        "table": look("wood", (0.401, 0.3, 0.195), (0.32, 0.228, 0.14), uv_m=1.2, roughness=0.4,
                      specular=0.3),
        "rug": look("weave", (0.52, 0.48, 0.41), (0.44, 0.40, 0.335), uv_m=0.6, roughness=0.98,
                    specular=0.02),
        "art": look("painting", (0.70, 0.66, 0.58), (0.03, 0.03, 0.03), (0.45, 0.28, 0.16),
                    (0.58, 0.52, 0.43), seed=11, roughness=0.8),
        "art_2": look("painting", (0.66, 0.61, 0.52), (0.10, 0.09, 0.08), (0.33, 0.36, 0.30),
                      (0.50, 0.36, 0.22), seed=5, roughness=0.8),
        "seat": look("weave", (0.24, 0.235, 0.22), (0.18, 0.175, 0.165), uv_m=0.25, roughness=0.95),
        "drape": look("weave", (0.68, 0.64, 0.56), (0.62, 0.58, 0.50), uv_m=0.5, roughness=0.95,
                      two_sided=True),
    })  # fmt: skip
    stage.ground((4.4, 4.2), "floor")
    room = Room(stage, 4.2, 4.0, 2.85)
    room.wall(
        "south", "wall", [Opening(0.0, 4.8, 0.0, 2.5, bars=(4, 4))], frame="ebony", skirting="ebony"
    )
    room.wall("north", "wall", skirting="ebony")
    room.wall("west", "wall", [Opening(1.9, 1.2, 0.0, 2.2, "gap")], skirting="ebony")
    room.wall(
        "east", "wall", [Opening(-1.6, 1.5, 0.5, 2.3, bars=(2, 3))], frame="ebony", skirting="ebony"
    )
    room.alcove("west", 1.9, 2.0, 1.1, wall="wall", floor="floor")
    battens = [
        slab((0.016, 0.014, 1.4), 0.003, at=(-1.5 + 0.06 * k, 0.02, 1.4), steps=1)
        for k in range(51)
    ]
    room.put("slats", (Part(merge(battens), "table"), Part(slab((1.54, 0.004, 1.41), 0.0,
                                                                at=(0, 0.004, 1.41)), "ebony")),
             "north", -2.1)  # fmt: skip
    room.put(
        "sideboard",
        storage.sideboard(2.1, look="table", height=0.72, reeded=True, legs="ebony"),
        "north",
        1.5,
    )
    room.put(
        "painting", picture(0.85, 1.15, "art", frame="ebony", mount=0.09), "north", 1.05, z=1.6
    )
    room.put(
        "painting", picture(0.6, 0.8, "art_2", frame="ebony", mount=0.07), "north", 2.05, z=1.6
    )
    room.put("pampas", plants.grass_vase(0.95, 4), "north", 2.25, off=0.21, z=0.72)
    room.put(
        "table_lamp", decor.table_lamp(0.45, foot="concrete_pot"), "north", 0.75, off=0.21, z=0.72
    )
    room.put("books", decor.stack_of_books(3, 6), "north", 1.5, off=0.21, z=0.72)
    room.put(
        "bench", seating.bench(1.5, 0.38, 0.44, seat="linen", legs="table"), "north", -2.1, off=0.35
    )
    room.put("palm", plants.palm(2.0, 3, pot_look="concrete_pot"), "north", -3.6, off=0.55)
    stage.stand(
        (
            top(stage, 0.038, "table"),
            table_legs(stage, 0.1, 0.032, "table", thick=0.038, apron=0.07),
        ),
        thick=0.038,
    )
    chair = seating.dining_chair(
        seat="seat", frame="ebony", height=0.47, back=0.80, style="spindle"
    )
    for x in (-0.45, 0.45):
        stage.put("chair", chair, x, -0.47)
        stage.put("chair", chair, x, 0.47, turn=180)
    stage.put("rug", rug(3.1, 2.3, "rug"))
    room.put(
        "tea_shelf",
        storage.bookcase(
            1.3,
            1.9,
            look="table",
            seed=12,
            levels=4,
            back="wall",
            vases=("stoneware", "concrete_pot", "china"),
        ),
        "west",
        -0.4,
    )
    room.put("snake_plant", plants.snake_plant(1.0, 2), "west", -1.9, off=0.4)
    room.put(
        "paper_lamp",
        decor.pendant(0.27, 1.5, look="shade", top=2.85),
        "west",
        -2.9,
        off=0.9,
    )
    room.put("pouf", seating.pouf(0.34, 0.38, "linen"), "west", -2.9, off=0.9)
    room.put("olive_tree", plants.olive_tree(2.0, 7, pot_look="concrete_pot"), "east", 0.5, off=0.6)
    room.put("console", decor.console(1.3, look="table", leg="ebony"), "east", 2.3)
    room.put("mirror", round_mirror(0.42, "ebony"), "east", 2.3, z=1.55)
    room.put(
        "vase",
        (Part(storage.vase(0.34, 2, segments=32), "stoneware"),),
        "east",
        2.65,
        off=0.17,
        z=0.82,
    )
    for x in (-2.75, 2.75):
        room.put("curtain", curtain(0.62, 2.7, material="drape", seed=int(4 + x)), "south", x)
    stage.strew("branch_vase", plants.grass_vase(0.5, 9, look="concrete_pot"), 0.1, 0.0)
    stage.strew("tea_tray", decor.tray(0.4, 0.26, "ebony"), -0.45, 0.05, 10)
    stage.strew("tea_bowl", (Part(storage.vase(0.12, 2, segments=32), "stoneware"),), 0.5, -0.12)
    return stage.finish(
        azimuth=-60, elevation=42, sky=GARDEN, color=(1.0, 0.94, 0.84), strength=2.1
    )


def dining_room_set(card: SettingCard) -> Setting:
    """A classic dining room: panelled blue-green walls, dark table, carpet, mirror, candles."""
    stage = Stage(card, {
        "floor": look("herringbone", (0.238, 0.15, 0.088), (0.143, 0.085, 0.045), uv_m=2.0,
            roughness=0.4,
                      specular=0.35),
        "wall": look("plaster", (0.20, 0.285, 0.29), uv_m=1.4, roughness=0.9),
        "panel": look("plaster", (0.17, 0.245, 0.25), uv_m=1.0, roughness=0.55),
        "table": look("wood", (0.157, 0.078, 0.044), (0.082, 0.038, 0.021), uv_m=1.2,
                      roughness=0.36, specular=0.4),
        "seat": look("weave", (0.60, 0.53, 0.41), (0.52, 0.45, 0.34), uv_m=0.25, roughness=0.95),
        "rug": look("carpet", (0.211, 0.053, 0.05), (0.037, 0.045, 0.08), (0.425, 0.356, 0.241),
                    (0.12, 0.143, 0.155), seed=1, roughness=0.98, specular=0.02),
        "art": look("painting", (0.40, 0.38, 0.30), (0.06, 0.09, 0.05), (0.55, 0.42, 0.20),
                    (0.35, 0.14, 0.08), seed=21, roughness=0.5),
        "art_2": look("painting", (0.48, 0.44, 0.36), (0.10, 0.07, 0.05), (0.20, 0.27, 0.33),
                      (0.55, 0.30, 0.14), seed=26, roughness=0.5),
        "drape": look("weave", (0.46, 0.34, 0.17), (0.38, 0.27, 0.12), uv_m=0.5, roughness=0.9,
                      two_sided=True),
    })  # fmt: skip
    stage.ground((4.4, 4.2), "floor")
    room = Room(stage, 4.2, 4.0, 3.0)
    panel = ("panel", 0.92)
    room.wall(
        "south",
        "wall",
        [Opening(-1.75, 1.7, 0.0, 2.6, bars=(2, 4)), Opening(1.75, 1.7, 0.0, 2.6, bars=(2, 4))],
        panel=panel,
        skirting=None,
    )
    room.wall("north", "wall", panel=panel, skirting=None)
    room.wall("west", "wall", [Opening(-1.9, 1.0, 0.0, 2.25, "door")], panel=panel, skirting=None)
    room.wall(
        "east", "wall", [Opening(0.0, 1.7, 0.0, 2.6, bars=(2, 4))], panel=panel, skirting=None
    )
    room.put(
        "sideboard", storage.sideboard(2.4, look="table", height=0.86, depth=0.46), "north", 0.0
    )
    room.put("mirror", round_mirror(0.55), "north", 0.0, z=1.75)
    for x in (-0.95, 0.95):
        room.put(
            "table_lamp", decor.table_lamp(0.6, foot="china", kind=2), "north", x, off=0.23, z=0.86
        )
        room.put("wall_light", decor.sconce(), "north", 1.05 * x, z=1.85)
    room.put("flowers", plants.flowers(0.5, 3, look="blue_glaze"), "north", 0.1, off=0.23, z=0.86)
    room.put("painting", picture(1.0, 0.75, "art", frame="brass"), "north", 2.6, z=1.75)
    room.put("painting", picture(1.0, 0.75, "art_2", frame="brass"), "north", -2.6, z=1.75)
    chair = seating.dining_chair(seat="seat", frame="table", height=0.46, back=0.80, style="shell")
    for x in (-0.42, 0.42):
        stage.put("chair", chair, x, -0.52)
        stage.put("chair", chair, x, 0.52, turn=180)
    for s in (1, -1):
        room.put("spare_chair", chair, "north", s * 2.6, off=0.5)
    stage.stand((top(stage, 0.036, "table", bevel=0.008),
                 table_legs(stage, 0.09, 0.034, "table", thick=0.036, taper=0.55, apron=0.08)),
                thick=0.036)  # fmt: skip
    stage.put("rug", rug(3.4, 2.6, "rug"))
    room.put("bookcase", storage.bookcase(1.9, 2.3, look="table", seed=4, levels=5), "west", 1.2)
    room.put("armchair", seating.armchair(cloth="seat", legs="table"), "west", -3.1, off=0.7)
    room.put("palm", plants.palm(2.1, 6, pot_look="clay"), "west", 3.2, off=0.6)
    room.put("fig", plants.fig(1.9, 7, pot_look="blue_glaze"), "east", 3.0, off=0.6)
    room.put("console", decor.console(1.2, look="table", leg="brass"), "east", -2.5)
    room.put("painting", picture(0.7, 0.9, "art_2", frame="brass"), "east", -2.5, z=1.7)
    room.put(
        "vase",
        (Part(storage.vase(0.4, 0, segments=32), "blue_glaze"),),
        "east",
        -2.5,
        off=0.17,
        z=0.82,
    )
    for side, places in (("south", (-1.75, 1.75)), ("east", (0.0,))):
        for k, x in enumerate(places):
            room.put("curtain_rod", rod(2.6, 2.75, "brass"), side, x)
            for s in (-1, 1):
                room.put(
                    "curtain",
                    curtain(0.55, 2.73, material="drape", seed=3 * k + s),
                    side,
                    x + s * 1.08,
                )
    stage.strew("candles", decor.candles(), 0.0, 0.0)
    stage.strew("flower_vase", plants.flowers(0.38, 6, look="china"), 0.38, 0.05)
    stage.strew("fruit_bowl", decor.fruit_bowl(bowl="china", seed=3), -0.4, 0.0)
    return stage.finish(
        azimuth=-58, elevation=40, sky=BRIGHT_GARDEN, color=(1.0, 0.92, 0.80), strength=2.6
    )
