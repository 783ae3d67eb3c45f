"""Looks of ramps; their physics is the passive default whatever they are made of."""

from __future__ import annotations

from wmeval.assets.cards import BlenderKit, Builtin, MaterialCard
from wmeval.errors import UserError
from wmeval.scene import Material, Texture

RAMP_MATERIALS: dict[str, Material] = {
    material.name: material
    for material in (
        Material(
            name="light_wood",
            texture=Texture(
                builder="wood", colors=((0.60, 0.40, 0.21), (0.43, 0.25, 0.11)), seed=3
            ),
            roughness=0.5,
            specular=0.35,
            uv_m=0.45,
        ),
        Material(
            name="dark_wood",
            texture=Texture(
                builder="wood", colors=((0.115, 0.052, 0.024), (0.045, 0.019, 0.009)), seed=5
            ),
            roughness=0.4,
            specular=0.45,
            uv_m=0.45,
        ),
        Material(
            name="polished_white_marble",
            texture=Texture(
                builder="marble", colors=((0.80, 0.79, 0.77), (0.30, 0.30, 0.32)), seed=2
            ),
            roughness=0.12,
            specular=0.8,
            uv_m=0.6,
        ),
        Material(
            name="rough_grey_concrete",
            texture=Texture(
                builder="concrete", colors=((0.34, 0.335, 0.32), (0.22, 0.22, 0.215)), seed=4
            ),
            roughness=0.95,
            specular=0.08,
            uv_m=0.5,
        ),
    )
}
"""By the builders that cards name; ``uv_m`` gives each wedge the grain's true size."""


def ramp_material(card: MaterialCard) -> Material:
    """The look of a card, named after it.

    Raises:
        UserError: no such builder, or an asset that is not built in.
    """
    if not isinstance(card.asset, Builtin):
        kind = "BlenderKit" if isinstance(card.asset, BlenderKit) else "file"
        raise UserError(
            f"material {card.id!r}: ramps do not take their look from a {kind} asset: give a "
            f"built-in builder, one of {', '.join(RAMP_MATERIALS)}"
        )
    found = RAMP_MATERIALS.get(card.asset.builder)
    if found is None:
        raise UserError(
            f"material {card.id!r}: no builder {card.asset.builder!r}: choose from "
            f"{', '.join(RAMP_MATERIALS)}"
        )
    return found.model_copy(update={"name": card.id})
