"""Out of doors: a gazebo on a beach."""

from __future__ import annotations

import math

from wmeval.assets import foliage
from wmeval.assets.cards import SettingCard
from wmeval.assets.meshes import merge, revolve
from wmeval.assets.settings import decor, plants, seating
from wmeval.assets.settings.boards import slab
from wmeval.assets.settings.rooms import beam, curtain
from wmeval.assets.settings.stage import Setting, Stage, look, top
from wmeval.assets.solids import Part, Parts, moved, tube
from wmeval.assets.terrace import deck_boards
from wmeval.scene import Sky, Texture

_COAST = Texture(
    builder="coast",
    colors=((0.045, 0.19, 0.25), (0.60, 0.48, 0.31), (0.20, 0.15, 0.11), (0.05, 0.09, 0.03)),
    repeat=2.0,
    seed=7,
)


def beach_gazebo(card: SettingCard) -> Setting:
    """A square deck over the sand with posts, beams and curtains, wicker seats, the sea around."""
    teak = {"uv_m": None, "roughness": 0.7}
    stage = Stage(card, {
        "deck_0": look("wood", (0.307, 0.236, 0.164), (0.241, 0.179, 0.12), **teak),
        "deck_1": look("wood", (0.27, 0.202, 0.136), (0.211, 0.152, 0.1), **teak, seed=2),
        "deck_2": look("wood", (0.345, 0.273, 0.198), (0.271, 0.209, 0.147), **teak, seed=3),
        "under": look("wood", (0.219, 0.16, 0.108), (0.16, 0.114, 0.075), uv_m=1.0, roughness=0.8),
        "sand": look("sand", (0.60, 0.48, 0.31), (0.80, 0.74, 0.64), uv_m=2.6, roughness=0.98,
            specular=0.02),
        "post": look("boards", (0.70, 0.69, 0.65), (0.58, 0.57, 0.53), uv_m=1.1, roughness=0.7),
        "table": look("wood", (0.364, 0.263, 0.168), (0.283, 0.194, 0.116), uv_m=0.8,
            roughness=0.5),
        "cushion": look("weave", (0.66, 0.64, 0.58), (0.58, 0.56, 0.50), uv_m=0.28, roughness=0.95),
        "turquoise": look("weave", (0.07, 0.38, 0.40), (0.05, 0.31, 0.33), uv_m=0.25,
            roughness=0.95),
        "coral": look("weave", (0.70, 0.24, 0.15), (0.60, 0.19, 0.11), uv_m=0.25, roughness=0.95),
        "rug": look("stripes", (0.64, 0.61, 0.54), (0.15, 0.29, 0.32), roughness=0.98,
            specular=0.02, seed=4, repeat=2.0),
        "dune_grass": look("grass", (0.26, 0.30, 0.13), (0.42, 0.40, 0.22), roughness=0.9),
        "rock": look("weathered", (0.30, 0.26, 0.22), (0.16, 0.13, 0.11), (0.42, 0.40, 0.33),
            roughness=0.95),
    }, turn=0.0)  # fmt: skip
    half = 3.9
    # The deck's body collides; its boards are its look.
    stage.ground((half, half), "under", z=-0.012)
    stage.put("boards", deck_boards(half, 0.03, 5))
    edge = [
        slab((half + 0.03, 0.02, 0.16), 0.004, at=(0, s * (half + 0.02), -0.16), steps=1)
        for s in (-1, 1)
    ]
    edge += [
        slab((0.02, half + 0.03, 0.16), 0.004, at=(s * (half + 0.02), 0, -0.16), steps=1)
        for s in (-1, 1)
    ]
    stage.put("skirt", (Part(merge(edge), "under"),))
    stage.round_ground(14.8, "sand", z=-0.34)
    posts = [
        slab((0.075, 0.075, 1.3), 0.01, at=(sx * (half - 0.15), sy * (half - 0.15), 1.3), steps=1)
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    feet = [
        slab((0.12, 0.12, 0.09), 0.015, at=(sx * (half - 0.15), sy * (half - 0.15), 0.09), steps=1)
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    stage.put("posts", (Part(merge([*posts, *feet]), "post"),))
    p, z = half - 0.15, 2.62
    stage.put(
        "beams",
        (
            beam((-half, p, z), (half, p, z), 0.07, "post"),
            beam((-half, -p, z), (half, -p, z), 0.07, "post"),
            beam((p, -half, z), (p, half, z), 0.07, "post"),
            beam((-p, -half, z), (-p, half, z), 0.07, "post"),
        ),
    )
    rafters = [slab((half + 0.3, 0.035, 0.05), 0.005, at=(0, y, z + 0.11), steps=1)
               for y in (-3.4, -2.6, 2.6, 3.4)]  # fmt: skip
    stage.put("rafters", (Part(merge(rafters), "post"),))
    for k, (sx, sy) in enumerate(((-1, -1), (1, -1), (1, 1), (-1, 1))):
        stage.put(
            "curtain",
            curtain(0.5, 2.5, folds=5, seed=k),
            sx * (p - 0.5),
            sy * (p - 0.02),
            0.0,
            180 if sy > 0 else 0,
        )
        stage.put(
            "curtain",
            curtain(0.5, 2.5, folds=5, seed=k + 9),
            sx * (p - 0.02),
            sy * (p - 0.5),
            0.0,
            sx * 90,
        )
    # Low railings of rope between the posts on two sides, so that the sea stays in view.
    ropes = []
    for level in (0.35, 0.65):
        for s in (-1, 1):
            sag = [
                (s * p, -p + 2 * p * k / 12, level - 0.09 * math.sin(math.pi * k / 12))
                for k in range(13)
            ]
            ropes.append(tube(sag, 0.014, 6))
    stage.put("ropes", (Part(merge(ropes), "rattan"),))
    # Seats beyond the ring of cameras, or low enough to be looked over.
    for x, y, turn in ((-2.0, 3.15, 180.0), (-1.05, 3.2, 172.0), (2.0, 3.15, 180.0)):
        stage.put(
            "wicker_chair", seating.wicker_chair(cushion="cushion", back=0.66), x, y, 0.0, turn
        )
    stage.put(
        "daybed",
        seating.sofa(
            2.1,
            cloth="cushion",
            cushions=("turquoise", "coral", "turquoise"),
            legs="table",
            arms=False,
            back=0.62,
        ),
        -3.2,
        -0.4,
        0.0,
        -90,
    )
    stage.put("side_table", decor.side_table(0.24, 0.45, look="table", leg="rattan"), 0.35, 3.25)
    stage.put("lantern", _lantern(), 0.35, 3.25, 0.45)
    stage.put("lantern", _lantern(), 3.3, -3.0)
    stage.put("lantern", _lantern(), 3.05, -3.25, 0.0, 20)
    for x, y, name in ((3.1, 0.6, "turquoise"), (3.15, -0.4, "coral")):
        stage.put("pouf", seating.pouf(0.3, 0.36, name), x, y)
    stage.put("palm", plants.palm(2.2, 33, pot_look="clay"), -3.3, -3.2)
    stage.put("palm", plants.palm(1.9, 35, pot_look="rattan"), 3.3, 2.9)
    stage.put("olive_tree", plants.olive_tree(1.8, 12, pot_look="clay"), -3.35, 2.6)
    stage.put("basket", decor.basket(0.24, 0.32), -1.2, -3.4)
    stage.put("agave", plants.snake_plant(0.9, 13, pot_look="clay"), 1.4, -3.4)
    stage.put("rug", (Part(slab((1.7, 1.7, 0.004), 0.002, at=(0, 0, 0.005)), "rug"),))
    tufts = [
        moved(
            foliage.blades(40 + k, 24, 0.75, 0.3, width=0.02, lean=0.8),
            9.2 * math.cos(a),
            9.2 * math.sin(a),
            -0.34,
        )
        for k, a in enumerate(2 * math.pi * j / 16 + 0.3 * (j % 3) for j in range(16))
    ]
    tufts += [
        moved(
            foliage.blades(80 + k, 20, 0.6, 0.25, width=0.02, lean=0.8),
            (5.3 + k % 3) * math.cos(a),
            (5.3 + k % 3) * math.sin(a),
            -0.34,
        )
        for k, a in enumerate(2.4 * j for j in range(12))
    ]
    stage.put("dune_grass", (Part(merge(tufts), "dune_grass"),))
    stones = [
        moved(
            foliage.stone(20 + k, (0.4 + 0.1 * (k % 3), 0.35, 0.25), level=2),
            (7.0 + 0.6 * (k % 4)) * math.cos(a),
            (7.0 + 0.6 * (k % 4)) * math.sin(a),
            -0.3,
        )
        for k, a in enumerate(1.3 + 2.1 * j for j in range(7))
    ]
    stage.put("rocks", (Part(merge(stones), "rock"),))
    r, h = stage.support.size[0] / 2, stage.height
    foot = revolve(
        [
            (0, 0.009),
            (0.3, 0.009),
            (0.3, 0.03),
            (0.2, 0.06),
            (0.13, 0.16),
            (0.14, 0.24),
            (0.28, h - 0.04),
            (0, h - 0.04),
        ],
        40,
    )
    stage.stand((top(stage, 0.04, "table", bevel=0.006), Part(foot, "rattan")), thick=0.04)
    assert r < half
    stage.strew("fruit_bowl", decor.fruit_bowl(bowl="blue_glaze"), 0.1, 0.1)
    stage.strew("tray", decor.tray(0.36, 0.24, "table"), -0.2, -0.15, 20)
    sky = Sky(
        zenith=(0.22, 0.40, 0.70),
        horizon=(0.64, 0.74, 0.82),
        ground=(0.42, 0.36, 0.27),
        clouds=0.35,
        panorama=_COAST,
    )
    return stage.finish(
        azimuth=-50, elevation=46, sky=sky, color=(1.0, 0.95, 0.86), strength=2.7, softness=0.02
    )


def _lantern() -> Parts:
    """A lantern with a candle."""
    posts = [
        slab((0.008, 0.008, 0.13), 0.002, at=(sx * 0.075, sy * 0.075, 0.15), steps=1)
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    posts += [slab((0.09, 0.09, 0.01), 0.003, at=(0, 0, z), steps=1) for z in (0.015, 0.29)]
    cap = revolve([(0, 0.3), (0.1, 0.3), (0.03, 0.37), (0.012, 0.38), (0.012, 0.41), (0, 0.41)], 4)
    wax = revolve([(0, 0.025), (0.04, 0.025), (0.04, 0.15), (0, 0.145)], 20)
    return Part(merge([*posts, cap]), "black_metal"), Part(wax, "wax")
