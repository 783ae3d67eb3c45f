"""Flats: an industrial loft, a modular flat."""

from __future__ import annotations

from wmeval.assets.cards import SettingCard
from wmeval.assets.meshes import merge
from wmeval.assets.settings import decor, plants, seating, storage
from wmeval.assets.settings.boards import slab
from wmeval.assets.settings.light import CITY, DAY
from wmeval.assets.settings.rooms import Opening, Room, picture, rug
from wmeval.assets.settings.stage import Setting, Stage, look, top
from wmeval.assets.solids import Part, Parts, tube
from wmeval.scene import MeshData, Sky


def modern_loft(card: SettingCard) -> Setting:
    """Brick, steel windows over the city, leather, concrete; a low counter of oak on steel."""
    stage = Stage(card, {
        "floor": look("concrete", (0.36, 0.345, 0.325), (0.30, 0.285, 0.27), uv_m=2.6,
            roughness=0.5, specular=0.3),
        "brick": look("brickwork", (0.27, 0.13, 0.088), (0.36, 0.325, 0.28), (0.185, 0.085,
            0.063), uv_m=1.05,
                      roughness=0.92),
        "wall": look("plaster", (0.52, 0.50, 0.46), uv_m=1.6, roughness=0.9),
        "counter": look("wood", (0.303, 0.199, 0.114), (0.208, 0.127, 0.068), uv_m=1.1,
            roughness=0.42, specular=0.3),
        "leather": look("noise", (0.24, 0.105, 0.045), (0.31, 0.145, 0.065), uv_m=0.6,
            roughness=0.45),
        "throw": look("weave", (0.45, 0.42, 0.36), (0.36, 0.33, 0.28), uv_m=0.25, roughness=0.95),
        "mustard": look("weave", (0.56, 0.33, 0.05), (0.47, 0.26, 0.03), uv_m=0.25, roughness=0.95),
        "rug": look("carpet", (0.143, 0.137, 0.131), (0.051, 0.051, 0.054), (0.297, 0.28, 0.251),
            (0.197, 0.099, 0.064), seed=5,
                    roughness=0.98, specular=0.02),
        "front": look("plaster", (0.065, 0.077, 0.083), uv_m=0.9, roughness=0.5),
        "art": look("painting", (0.58, 0.55, 0.48), (0.04, 0.04, 0.05), (0.58, 0.20, 0.05), (0.10,
            0.25, 0.30),
                    seed=14, roughness=0.7),
        "art_2": look("painting", (0.10, 0.11, 0.12), (0.60, 0.50, 0.30), (0.50, 0.14, 0.06),
            (0.50, 0.50, 0.48),
                      seed=17, roughness=0.7),
    })  # fmt: skip
    stage.ground((5.0, 4.6), "floor")
    room = Room(stage, 4.8, 4.4, 3.4)
    bays = [Opening(x, 2.6, 0.45, 3.0, bars=(4, 4)) for x in (-3.0, 0.0, 3.0)]
    room.wall("south", "brick", bays, frame="black_metal", skirting=None)
    room.wall("north", "wall", skirting="front")
    room.wall("west", "brick", [Opening(-2.3, 1.1, 0.0, 2.3, "door")], frame="front", skirting=None)
    room.wall(
        "east",
        "brick",
        [Opening(1.7, 2.6, 0.45, 3.0, bars=(4, 4))],
        frame="black_metal",
        skirting=None,
    )
    room.put(
        "sofa",
        seating.sofa(2.6, cloth="leather", cushions=("mustard", "throw"), legs="black_metal"),
        "west",
        0.95,
        off=0.55,
    )
    room.put(
        "side_table",
        decor.side_table(0.26, 0.5, look="counter", leg="black_metal"),
        "west",
        2.7,
        off=0.4,
    )
    room.put("table_lamp", decor.table_lamp(0.45, foot="concrete_pot"), "west", 2.7, off=0.4, z=0.5)
    room.put("painting", picture(1.7, 1.15, "art", frame="black_metal"), "west", 0.95, z=1.75)
    run = [(0.6, "drawers"), (0.9, "sink"), (0.6, "dishwasher"), (0.9, "hob"), (0.6, "drawers")]
    room.put(
        "kitchen",
        storage.base_units(run, look="front", worktop="counter", handle="brass"),
        "north",
        -1.6,
    )
    room.put(
        "tiles", (Part(slab((1.8, 0.008, 0.3), 0.0, at=(0, 0.008, 1.2)), "brick"),), "north", -1.6
    )
    for z in (1.65, 2.05):
        room.put("shelf", storage.shelf(2.2, look="counter"), "north", -2.2, z=z)
        room.put(
            "crockery",
            storage.crockery(2.0, int(10 * z), ("china", "stoneware", "concrete_pot")),
            "north",
            -2.2,
            z=z,
        )
    room.put("hood", storage.hood(0.8, z=1.7, look="dark_steel", top=3.4), "north", -0.25)
    room.put("fridge", storage.fridge("dark_steel"), "north", -4.15)
    room.put(
        "bookcase",
        storage.bookcase(2.2, 2.6, look="black_metal", seed=21, levels=6, back="wall"),
        "north",
        1.9,
    )
    room.put("ladder", _ladder(2.5), "north", 3.35)
    room.put("fig", plants.fig(2.3, 12, pot_look="concrete_pot"), "north", 4.2, off=0.6)
    room.put(
        "media_bench", storage.sideboard(2.2, look="counter", height=0.5, doors=3), "east", -1.5
    )
    room.put("television", decor.television(1.5), "east", -1.5, z=1.2)
    room.put("snake_plant", plants.snake_plant(0.95, 4), "east", -3.1, off=0.4)
    room.put(
        "armchair",
        seating.armchair(cloth="throw", legs="black_metal", cushion="mustard"),
        "east",
        1.6,
        off=0.75,
    )
    room.put("lamp", decor.floor_lamp(1.65, kind="tripod"), "east", 2.9, off=0.6)
    room.put("palm", plants.palm(2.2, 10, pot_look="rattan"), "south", -1.5, off=0.5)
    room.put(
        "bench",
        seating.bench(1.5, 0.4, 0.45, seat="leather", legs="black_metal"),
        "south",
        1.5,
        off=0.35,
    )
    room.put(
        "crate",
        (Part(slab((0.3, 0.22, 0.2), 0.01, at=(0, 0, 0.2), steps=1), "counter"),),
        "south",
        3.6,
        off=0.4,
    )
    room.put("records", decor.stack_of_books(6, 9, long=0.34), "south", 3.6, off=0.4, z=0.4)
    room.put(
        "picture_leaning",
        picture(0.8, 1.1, "art_2", frame="black_metal"),
        "south",
        -3.9,
        off=0.05,
        z=0.57,
    )
    stage.put("rug", rug(4.2, 2.9, "rug"))
    x, y = (s / 2 for s in stage.support.size)
    h = stage.height
    frame = [
        slab(
            (0.02, 0.02, (h - 0.06) / 2),
            0.003,
            at=(sx * (x - 0.08), sy * (y - 0.06), (h - 0.06) / 2),
            steps=1,
        )
        for sx in (-1, 0, 1)
        for sy in (-1, 1)
    ]
    frame += [
        slab((x - 0.06, 0.02, 0.02), 0.003, at=(0, s * (y - 0.06), h - 0.08), steps=1)
        for s in (-1, 1)
    ]
    frame += [
        slab((0.02, y - 0.06, 0.02), 0.003, at=(s * (x - 0.08), 0, h - 0.08), steps=1)
        for s in (-1, 0, 1)
    ]
    shelf = slab((x - 0.06, y - 0.05, 0.015), 0.004, at=(0, 0, 0.16), steps=1)
    stage.stand(
        (top(stage, 0.06, "counter"), Part(merge(frame), "black_metal"), Part(shelf, "counter")),
        thick=0.06,
    )
    for k, at in enumerate((-0.9, -0.3, 0.75)):
        stage.put("books_below", decor.stack_of_books(3 + k, 4 + k), at, 0.1, 0.175, 12.0 * k)
    stage.strew("books", decor.stack_of_books(3, 8), -0.8, 0.1, 25)
    stage.strew("vase", (Part(storage.vase(0.34, 0, segments=32), "green_glaze"),), 0.9, 0.12)
    stage.strew("tray", decor.tray(0.45, 0.3, "counter"), 0.1, -0.1, 8)
    sky = Sky(**DAY, strength=1.3, clouds=0.3, panorama=CITY)
    return stage.finish(azimuth=-68, elevation=39, sky=sky, color=(1.0, 0.91, 0.78), strength=2.8)


def _ladder(height: float) -> Parts:
    """A ladder that leans on y = 0."""
    rails = [tube([(s * 0.2, 0.5, 0.0), (s * 0.2, 0.03, height)], 0.018, 8) for s in (-1, 1)]
    rungs = []
    for k in range(1, 8):
        t = k / 8
        rungs.append(
            tube([(-0.2, 0.5 - 0.47 * t, height * t), (0.2, 0.5 - 0.47 * t, height * t)], 0.014, 8)
        )
    return (Part(merge([*rails, *rungs]), "counter"),)


def modular_flat(card: SettingCard) -> Setting:
    """A young flat: cubes for shelves, a modular sofa, clear colours, white walls."""
    stage = Stage(card, {
        "floor": look("planks", (0.33, 0.245, 0.16), (0.26, 0.185, 0.115), uv_m=1.5, roughness=0.5),
        "wall": look("plaster", (0.66, 0.65, 0.62), uv_m=1.5, roughness=0.9),
        "teal_wall": look("plaster", (0.055, 0.22, 0.235), uv_m=1.5, roughness=0.9),
        "cube": look("plaster", (0.70, 0.69, 0.66), uv_m=0.8, roughness=0.45),
        "block": look("wood", (0.379, 0.281, 0.18), (0.305, 0.217, 0.128), uv_m=0.9,
            roughness=0.42, specular=0.3),
        "sofa": look("weave", (0.34, 0.35, 0.36), (0.27, 0.28, 0.29), uv_m=0.28, roughness=0.95),
        "yellow": look("weave", (0.70, 0.42, 0.03), (0.60, 0.34, 0.02), uv_m=0.25, roughness=0.95),
        "teal": look("weave", (0.06, 0.28, 0.29), (0.045, 0.22, 0.23), uv_m=0.25, roughness=0.95),
        "coral": look("weave", (0.66, 0.20, 0.12), (0.56, 0.15, 0.09), uv_m=0.25, roughness=0.95),
        "rug": look("stripes", (0.62, 0.60, 0.55), (0.10, 0.28, 0.29), (0.66, 0.58, 0.45), (0.62,
            0.38, 0.08),
                    roughness=0.98, specular=0.02, seed=3),
        "art": look("painting", (0.74, 0.70, 0.60), (0.06, 0.25, 0.27), (0.70, 0.42, 0.04), (0.66,
            0.18, 0.10),
                    seed=41, roughness=0.7),
        "art_2": look("painting", (0.72, 0.35, 0.20), (0.05, 0.10, 0.14), (0.74, 0.66, 0.50),
            (0.06, 0.26, 0.27),
                      seed=43, roughness=0.7),
        "art_3": look("painting", (0.10, 0.22, 0.26), (0.70, 0.60, 0.40), (0.68, 0.40, 0.05),
            (0.55, 0.58, 0.56),
                      seed=47, roughness=0.7),
    })  # fmt: skip
    stage.ground((4.5, 4.3), "floor")
    room = Room(stage, 4.3, 4.1, 2.8)
    room.wall("south", "wall", [Opening(-1.0, 3.4, 0.0, 2.4, bars=(3, 1))], frame="white")
    room.wall("north", "teal_wall")
    room.wall("west", "wall", [Opening(-2.4, 0.95, 0.0, 2.15, "door")])
    room.wall("east", "wall", [Opening(1.0, 1.8, 0.8, 2.2, bars=(2, 1))])
    room.put(
        "sofa",
        seating.sofa(
            2.9,
            cloth="sofa",
            cushions=("yellow", "teal", "coral"),
            chaise=0.7,
            back=0.72,
            legs="black_metal",
        ),
        "north",
        -0.3,
        off=0.55,
    )
    for k, (x, art) in enumerate(((-1.2, "art"), (-0.3, "art_2"), (0.6, "art_3"))):
        room.put(
            "poster",
            picture(0.62, 0.86, art, frame="black_metal", mount=0.05),
            "north",
            x,
            z=1.62 + 0.02 * k,
        )
    room.put("lamp", decor.floor_lamp(1.7, kind="arc"), "north", 2.0, off=0.3)
    room.put("fig", plants.fig(1.9, 15, pot_look="china"), "north", 3.6, off=0.6)
    room.put("snake_plant", plants.snake_plant(0.9, 7, pot_look="china"), "north", -2.7, off=0.45)
    room.put("cubes", _cubes(5, 4, 0.42, seed=6), "west", 1.0)
    room.put(
        "media",
        storage.sideboard(
            2.4, look="cube", height=0.46, doors=4, handle="black_metal", grip="none"
        ),
        "east",
        -1.6,
    )
    room.put("television", decor.television(1.35), "east", -1.6, z=1.1)
    room.put("trailing", plants.trailing_plant(0.36, 3), "east", -0.65, off=0.22, z=0.46)
    room.put(
        "speaker",
        (Part(slab((0.1, 0.12, 0.17), 0.02, at=(0, 0.14, 0.17)), "black"),),
        "east",
        -2.6,
        z=0.46,
    )
    room.put(
        "desk",
        decor.console(1.4, look="block", leg="black_metal", height=0.74, depth=0.6),
        "east",
        2.4,
    )
    room.put(
        "desk_chair",
        seating.dining_chair(seat="coral", frame="black_metal", back=0.8),
        "east",
        2.4,
        off=0.75,
    )
    room.put(
        "desk_lamp", decor.table_lamp(0.42, foot="china", kind=1), "east", 2.9, off=0.2, z=0.74
    )
    room.put("desk_books", decor.stack_of_books(4, 11), "east", 2.0, off=0.25, z=0.74)
    for x, name in ((2.2, "yellow"), (2.95, "teal")):
        room.put("pouf", seating.pouf(0.3, 0.4, name), "south", x, off=0.5)
    room.put("painting", picture(1.2, 0.85, "art_3", frame="block"), "south", 2.6, z=1.6)
    room.put("palm", plants.palm(1.9, 14, pot_look="rattan"), "south", -3.6, off=0.6)
    stage.put("rug", rug(3.3, 2.4, "rug"))
    x, y = (s / 2 for s in stage.support.size)
    h = stage.height
    cells = [
        slab((0.012, y - 0.02, (h - 0.09) / 2), 0.002, at=(px, 0, (h - 0.03) / 2 + 0.03), steps=1)
        for px in (-x + 0.014, 0.0, x - 0.014)
    ]
    cells += [
        slab((x - 0.002, y - 0.02, 0.012), 0.002, at=(0, 0, pz), steps=1) for pz in (0.045, 0.3)
    ]
    cells.append(slab((x - 0.02, 0.01, (h - 0.09) / 2), 0.0, at=(0, 0, (h - 0.03) / 2 + 0.03)))
    wheels = [slab((0.03, 0.03, 0.017), 0.01, at=(sx * (x - 0.1), sy * (y - 0.1), 0.017), steps=1)
              for sx in (-1, 1) for sy in (-1, 1)]  # fmt: skip
    stage.stand(
        (top(stage, 0.03, "block"), Part(merge(cells), "cube"), Part(merge(wheels), "black")),
        thick=0.03,
    )
    for sx, sy in ((-1, 1), (1, -1)):
        stage.put("books_in", decor.stack_of_books(4, 3 + sx), sx * 0.3, sy * 0.22, 0.31)
        stage.put("bowl_in", decor.basket(0.14, 0.16), sx * -0.3, sy * 0.22, 0.06)
    stage.strew("books", decor.stack_of_books(3, 5), -0.3, 0.1, 15)
    stage.strew("plant", plants.trailing_plant(0.34, 9), 0.35, 0.1)
    stage.strew("tray", decor.tray(0.36, 0.24, "block"), 0.1, -0.2)
    return stage.finish(azimuth=-104, elevation=44, sky=Sky(**DAY, clouds=0.35, panorama=CITY),
                        color=(1.0, 0.95, 0.87), strength=2.0)  # fmt: skip


def _cubes(columns: int, rows: int, size: float, *, seed: int) -> Parts:
    """Open cubes, some with coloured backs, filled with books, vases and plants."""
    case = storage.bookcase(
        columns * size,
        rows * size + 0.06,
        look="cube",
        seed=seed,
        levels=rows,
        depth=0.36,
        columns=columns,
        vases=("blue_glaze", "clay", "china"),
    )
    backs: dict[str, list[MeshData]] = {"teal": [], "yellow": [], "coral": []}
    for k, (column, row) in enumerate(((0, 1), (2, 3), (3, 0), (4, 2), (1, 2), (2, 0))):
        x = (column + 0.5 - columns / 2) * size
        z = 0.06 + (row + 0.5) * size
        backs[("teal", "yellow", "coral")[k % 3]].append(
            slab((size / 2 - 0.02, 0.006, size / 2 - 0.02), 0.0, at=(x, 0.015, z))
        )
    return (*case, *(Part(merge(found), name) for name, found in backs.items()))
