"""Settings: the rooms and outdoor places that RigidBench's tasks take place in.

`SETTINGS` holds one builder for each row; `build_setting` makes what a card asks for, be it
built in or a user's own file.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.resources.abc import Traversable
from pathlib import Path

from wmeval.assets.cards import Builtin, File, SettingCard
from wmeval.assets.settings.stage import SUPPORT_INSTANCE, Setting, is_round
from wmeval.errors import UserError

SETTINGS: dict[str, str] = {
    "hallway_interior": "wmeval.assets.settings.halls:hallway_interior",
    "modern_loft": "wmeval.assets.settings.lofts:modern_loft",
    "modern_luxury_kitchen": "wmeval.assets.settings.kitchens:modern_luxury_kitchen",
    "minimal_white_kitchen": "wmeval.assets.settings.kitchens:minimal_white_kitchen",
    "modern_japandi_dining": "wmeval.assets.settings.dining:modern_japandi_dining",
    "dining_room_set": "wmeval.assets.settings.dining:dining_room_set",
    "modular_flat": "wmeval.assets.settings.lofts:modular_flat",
    "coastal_living_room": "wmeval.assets.settings.living:coastal_living_room",
    "beach_gazebo": "wmeval.assets.settings.outdoors:beach_gazebo",
    "butterfly_mural_room": "wmeval.assets.settings.nursery:butterfly_mural_room",
    "cozy_living_room": "wmeval.assets.settings.living:cozy_living_room",
    "modern_warm_kitchen": "wmeval.assets.settings.kitchens:modern_warm_kitchen",
}
"""Builders ``(SettingCard) -> Setting`` as "module:function", loaded when asked for."""


def build_setting(
    card: SettingCard, folder: Traversable | Path, as_glb: Callable[[Path], Path] | None = None
) -> Setting:
    """Make a setting: what stands there, its light, and its supports where the card says.

    Args:
        card: its card.
        folder: where the card lies; a `File`'s path is relative to it.
        as_glb: makes a .glb of a .blend; None: these cannot be read.

    Returns:
        Static bodies: instance 0, but for the supports ``support:<surface>`` (`SUPPORT_INSTANCE`).

    Raises:
        UserError: no such builder, a card with supports that the builder does not make, an asset
            that has to be fetched first, a file that cannot be read.
    """
    asset = card.asset
    if isinstance(asset, Builtin):
        row = SETTINGS.get(asset.builder)
        if row is None:
            raise UserError(
                f"setting {card.id!r}: no builder {asset.builder!r}: choose from "
                f"{', '.join(SETTINGS)}"
            )
        if len(card.surfaces) > 1:
            raise UserError(
                f"setting {card.id!r}: a built-in setting has one support, the card names "
                f"{', '.join(card.surfaces)}: leave one"
            )
        module, name = row.split(":")
        built: Setting = getattr(import_module(module), name)(card)
        return built
    if isinstance(asset, File):
        from wmeval.assets.settings.files import from_file

        return from_file(card, asset, Path(str(folder)) / asset.path, as_glb)
    raise UserError(
        f"setting {card.id!r} is BlenderKit's scene {asset.id}, which cannot be fetched from here: "
        "fetch it with Blender, export it as .glb, and give a card with source: file in an asset "
        "folder"
    )


__all__ = ["SETTINGS", "SUPPORT_INSTANCE", "Setting", "build_setting", "is_round"]
