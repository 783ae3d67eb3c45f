"""Rows of the table of textures that everyday objects are made of.

They are maps over a thing, not tiles: only their left and right edges fit together.
"""

from __future__ import annotations

from collections.abc import Callable

from wmeval.assets import ball_textures, print_textures, rind_textures
from wmeval.assets.patterns import F4, Rng
from wmeval.scene import Color

OBJECT_TEXTURES: dict[str, Callable[[int, tuple[Color, ...], Rng], F4]] = {
    builder.__name__: builder
    for builder in (
        rind_textures.apple_skin,
        rind_textures.banana_peel,
        rind_textures.citrus,
        rind_textures.coconut_husk,
        rind_textures.kiwi_fuzz,
        rind_textures.mango_skin,
        rind_textures.peach_skin,
        rind_textures.pear_skin,
        rind_textures.pomegranate_skin,
        rind_textures.stem_bark,
        rind_textures.tomato_skin,
        rind_textures.watermelon_rind,
        ball_textures.baseball_cover,
        ball_textures.cricket_leather,
        ball_textures.rugby_panels,
        ball_textures.swirled_rubber,
        ball_textures.tennis_felt,
        print_textures.bottle_label,
        print_textures.cube_stickers,
        print_textures.dice_faces,
        print_textures.drink,
        print_textures.energy_label,
        print_textures.food_label,
        print_textures.lid,
        print_textures.plain,
        print_textures.soda_label,
    )
}
