"""A child's room with a mural of butterflies."""

from __future__ import annotations

from wmeval.assets.cards import SettingCard
from wmeval.assets.meshes import merge, revolve, sphere
from wmeval.assets.settings import decor, plants, seating, storage
from wmeval.assets.settings.boards import slab
from wmeval.assets.settings.light import DAY, PARK
from wmeval.assets.settings.rooms import Opening, Room, curtain, rod
from wmeval.assets.settings.stage import Setting, Stage, look, top
from wmeval.assets.solids import Part, Parts, moved, stretched, turned
from wmeval.scene import MeshData, Sky


def butterfly_mural_room(card: SettingCard) -> Setting:
    """A child's room: butterflies on a wall, a soft carpet in the middle, toys around it."""
    stage = Stage(card, {
        "floor": look("planks", (0.36, 0.26, 0.165), (0.28, 0.195, 0.12), uv_m=1.4, roughness=0.5),
        "mural": look("butterflies", (0.72, 0.70, 0.62), (0.42, 0.55, 0.40), (0.08, 0.27, 0.55),
            (0.80, 0.36, 0.06),
                      (0.70, 0.14, 0.30), (0.36, 0.18, 0.50), (0.85, 0.62, 0.10), uv_m=1.5,
            roughness=0.92, seed=3),
        "wall": look("plaster", (0.62, 0.66, 0.62), uv_m=1.5, roughness=0.92),
        "panel": look("plaster", (0.68, 0.67, 0.64), uv_m=1.0, roughness=0.6),
        "carpet": look("carpet", (0.36, 0.24, 0.225), (0.16, 0.245, 0.22), (0.50, 0.45, 0.37),
            (0.25, 0.155, 0.19), seed=7, roughness=0.99, specular=0.0),
        "carpet_rim": look("weave", (0.68, 0.64, 0.57), (0.60, 0.56, 0.49), uv_m=0.4,
            roughness=0.99, specular=0.0),
        "rose": look("weave", (0.60, 0.26, 0.28), (0.52, 0.20, 0.22), uv_m=0.25, roughness=0.95),
        "sky": look("weave", (0.22, 0.40, 0.52), (0.17, 0.33, 0.45), uv_m=0.25, roughness=0.95),
        "sun": look("weave", (0.76, 0.50, 0.10), (0.67, 0.42, 0.07), uv_m=0.25, roughness=0.95),
        "mint": look("plaster", (0.28, 0.46, 0.38), uv_m=0.6, roughness=0.5),
        "fur": look("noise", (0.36, 0.22, 0.11), (0.46, 0.30, 0.17), uv_m=0.2, roughness=0.98),
        "toy_red": look("plaster", (0.62, 0.07, 0.06), uv_m=0.4, roughness=0.4),
        "toy_blue": look("plaster", (0.06, 0.20, 0.50), uv_m=0.4, roughness=0.4),
        "toy_yellow": look("plaster", (0.78, 0.50, 0.04), uv_m=0.4, roughness=0.4),
    }, floor=-0.014)  # fmt: skip
    stage.ground((4.4, 4.3), "floor")
    room = Room(stage, 4.2, 4.1, 2.8)
    room.wall(
        "south",
        "wall",
        [Opening(-1.6, 1.8, 0.75, 2.3, bars=(2, 3)), Opening(1.6, 1.8, 0.75, 2.3, bars=(2, 3))],
    )
    room.wall("north", "mural", skirting="panel")
    room.wall("west", "mural", skirting="panel")
    room.wall(
        "east",
        "wall",
        [Opening(2.2, 0.95, 0.0, 2.15, "door"), Opening(-1.4, 1.6, 0.75, 2.3, bars=(2, 3))],
    )
    room.put("bed", _bed(), "north", -2.2)
    room.put(
        "night_table",
        decor.side_table(0.22, 0.5, look="panel", leg="panel"),
        "north",
        -0.75,
        off=0.4,
    )
    room.put("night_lamp", decor.table_lamp(0.42, foot="china"), "north", -0.75, off=0.4, z=0.5)
    room.put("toy_shelf", _toy_shelf(), "north", 1.0)
    room.put("dolls_house", _dolls_house(), "north", 2.9)
    room.put(
        "toy_chest",
        (
            Part(slab((0.5, 0.24, 0.22), 0.015, at=(0, 0.26, 0.22), steps=1), "mint"),
            Part(slab((0.52, 0.26, 0.025), 0.012, at=(0, 0.26, 0.46), steps=1), "panel"),
        ),
        "west",
        1.4,
    )
    room.put("bear", _bear(), "west", 0.2, off=0.42)
    room.put("ball_of_cloth", seating.pouf(0.3, 0.36, "sun"), "west", -0.9, off=0.5)
    room.put(
        "armchair",
        seating.armchair(cloth="rose", legs="oak", cushion="sun", back=0.74),
        "west",
        -2.9,
        off=0.7,
    )
    room.put("lamp", decor.floor_lamp(1.5, kind="drum", stand="brass"), "west", -3.6, off=0.4)
    room.put(
        "desk", decor.console(1.1, look="panel", leg="oak", height=0.6, depth=0.5), "south", 0.0
    )
    room.put("stool", seating.pouf(0.2, 0.32, "sky"), "south", 0.0, off=0.75)
    room.put("pencils", decor.jar(0.14, "sky"), "south", 0.3, off=0.2, z=0.6)
    room.put("books", decor.stack_of_books(4, 3), "south", -0.25, off=0.25, z=0.6)
    room.put(
        "wardrobe",
        storage.tall_unit(1.1, look="panel", height=1.95, grip="knob", handle="brass", shaker=True),
        "east",
        0.55,
    )
    room.put("books_on_floor", decor.stack_of_books(5, 13), "east", -2.7, off=0.4)
    room.put("basket", decor.basket(0.26, 0.36), "east", -3.4, off=0.5)
    room.put("fig", plants.fig(1.5, 22, pot_look="china"), "south", 3.4, off=0.5)
    room.put(
        "rocking_chair",
        seating.armchair(cloth="sky", legs="oak", back=0.74),
        "south",
        -3.2,
        off=0.8,
    )
    for x in (-1.6, 1.6):
        room.put("curtain_rod", rod(2.4, 2.46, "brass"), "south", x)
        for s in (-1, 1):
            room.put("curtain", curtain(0.45, 2.44, seed=int(7 + 2 * x + s)), "south", x + s * 1.02)
    length, width = stage.support.size
    rim = [
        slab(
            (length / 2 + 0.05, 0.03, 0.0065),
            0.004,
            at=(0, s * (width / 2 + 0.025), 0.0065),
            steps=1,
        )
        for s in (-1, 1)
    ]
    rim += [
        slab(
            (0.03, width / 2 + 0.05, 0.0065),
            0.004,
            at=(s * (length / 2 + 0.025), 0, 0.0065),
            steps=1,
        )
        for s in (-1, 1)
    ]
    stage.stand(
        (top(stage, stage.height, "carpet", bevel=0.001), Part(merge(rim), "carpet_rim")),
        thick=0.08,
    )
    stage.strew("toy_blocks", _blocks(), 0.4, 0.3)
    stage.strew("toy_train", _train(), -0.3, -0.4, 20)
    sky = Sky(**DAY, clouds=0.4, panorama=PARK)
    return stage.finish(azimuth=-68, elevation=43, sky=sky, color=(1.0, 0.94, 0.85), strength=2.0)


def _bed() -> Parts:
    """A small bed along the wall, its back on y = 0."""
    x, d = 0.95, 0.46
    ends = [
        slab(
            (0.03, d, 0.36 if s < 0 else 0.27),
            0.02,
            at=(s * x, d, 0.36 if s < 0 else 0.27),
            steps=2,
        )
        for s in (-1, 1)
    ]
    side = [slab((x, 0.015, 0.07), 0.008, at=(0, y, 0.25), steps=1) for y in (0.03, 2 * d - 0.03)]
    mattress = slab((x - 0.04, d - 0.03, 0.09), 0.05, at=(0, d, 0.34), steps=3)
    cover = slab((0.62, d + 0.005, 0.075), 0.05, at=(0.3, d, 0.385), steps=3)
    cushion = moved(turned(seating.pillow(0.24, 0.14), (0, 1, 0), 24), -0.66, d, 0.50)
    return (Part(merge([*ends, *side]), "panel"), Part(mattress, "white_cloth"), Part(cover, "sky"),
            Part(cushion, "rose"))  # fmt: skip


def _toy_shelf() -> Parts:
    case = storage.bookcase(
        1.5,
        0.95,
        look="panel",
        seed=17,
        levels=2,
        columns=3,
        vases=("toy_red", "toy_blue", "toy_yellow"),
    )
    balls = [
        moved(stretched(sphere(20), r, r, r), x, 0.17, 0.95 + r)
        for x, r in ((-0.5, 0.09), (-0.3, 0.06))
    ]
    return (*case, Part(balls[0], "toy_red"), Part(balls[1], "toy_yellow"),
            *(Part(moved(p.mesh, 0.45, 0.17, 0.95), p.material) for p in _bear(0.5)))  # fmt: skip


def _dolls_house() -> Parts:
    """Two floors under a gable; its back on y = 0."""
    walls = [
        slab((0.012, 0.18, 0.3), 0.003, at=(s * 0.36, 0.19, 0.32), steps=1) for s in (-1, 0, 1)
    ]
    walls += [slab((0.37, 0.18, 0.01), 0.003, at=(0, 0.19, z), steps=1) for z in (0.02, 0.32, 0.62)]
    walls.append(slab((0.37, 0.006, 0.3), 0.0, at=(0, 0.015, 0.32)))
    roof = [
        moved(
            turned(slab((0.28, 0.21, 0.012), 0.004, steps=1), (0, 1, 0), s * 42), s * 0.2, 0.2, 0.80
        )
        for s in (-1, 1)
    ]
    rooms = [
        slab((0.08, 0.06, 0.05), 0.01, at=(x, 0.16, z), steps=1)
        for x, z in ((-0.18, 0.08), (0.2, 0.38))
    ]
    return Part(merge(walls), "panel"), Part(merge(roof), "rose"), Part(merge(rooms), "toy_blue")


def _bear(scale: float = 1.0) -> Parts:
    """A teddy bear that sits and looks along +y."""

    def ball(x: float, y: float, z: float, a: float, b: float, c: float) -> MeshData:
        return moved(
            stretched(sphere(20), scale * a, scale * b, scale * c), scale * x, scale * y, scale * z
        )

    fur = [ball(0, 0, 0.2, 0.17, 0.15, 0.2), ball(0, 0.02, 0.47, 0.14, 0.13, 0.13)]
    for s in (-1, 1):
        fur += [
            ball(s * 0.11, 0, 0.58, 0.05, 0.03, 0.05),
            ball(s * 0.18, 0.07, 0.27, 0.06, 0.12, 0.06),
            ball(s * 0.12, 0.18, 0.08, 0.075, 0.16, 0.075),
        ]
    pale = [ball(0, 0.13, 0.44, 0.065, 0.05, 0.05), ball(0, 0.1, 0.2, 0.11, 0.07, 0.13)]
    dark = [ball(0, 0.18, 0.46, 0.02, 0.015, 0.015)] + [
        ball(s * 0.05, 0.135, 0.51, 0.014, 0.01, 0.014) for s in (-1, 1)
    ]
    return Part(merge(fur), "fur"), Part(merge(pale), "linen"), Part(merge(dark), "black")


def _blocks() -> Parts:
    groups: dict[str, list[MeshData]] = {"toy_red": [], "toy_blue": [], "toy_yellow": []}
    spots = (
        (0, 0, 0),
        (0.11, 0.02, 0),
        (0.05, 0.1, 0),
        (0.05, 0.03, 1),
        (-0.12, 0.09, 0),
        (0.22, -0.06, 0),
    )
    for k, (x, y, level) in enumerate(spots):
        cube = turned(slab((0.035, 0.035, 0.035), 0.005), (0, 0, 1), 23.0 * k)
        groups[("toy_red", "toy_blue", "toy_yellow")[k % 3]].append(
            moved(cube, x, y, 0.035 + 0.07 * level)
        )
    return tuple(Part(merge(found), name) for name, found in groups.items())


def _train() -> Parts:
    body = [slab((0.09, 0.035, 0.025), 0.008, at=(x, 0, 0.055)) for x in (0.0, 0.22, 0.44)]
    cabin = [slab((0.03, 0.03, 0.035), 0.006, at=(-0.05, 0, 0.11))]
    wheels = [
        moved(
            turned(
                revolve([(0, -0.008), (0.025, -0.008), (0.025, 0.008), (0, 0.008)], 18),
                (1, 0, 0),
                90,
            ),
            x + dx,
            s * 0.04,
            0.025,
        )
        for x in (0.0, 0.22, 0.44)
        for dx in (-0.05, 0.05)
        for s in (-1, 1)
    ]
    return (
        Part(merge(body), "toy_blue"),
        Part(merge(cabin), "toy_red"),
        Part(merge(wheels), "toy_yellow"),
    )
