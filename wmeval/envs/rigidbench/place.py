"""A setting as the place of a sample: cleared for a support, with its physics and what one sees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

from wmeval.assets.cards import Library, SettingCard, TaskCard
from wmeval.assets.pictures import picture_keys
from wmeval.envs.rigidbench.physics import Physics
from wmeval.envs.rigidbench.sight import Surroundings
from wmeval.errors import UserError
from wmeval.scene import Body, Material, Mesh, Meshes

if TYPE_CHECKING:
    from wmeval.assets.settings import Setting


@dataclass(frozen=True, eq=False)
class Place:
    """A setting cleared for one of its supports.

    Attributes:
        setting: as its builder made it.
        card: its card.
        surface: name of the support.
        still: its bodies but for what the layout hides.
        materials, meshes: of those.
        surroundings: what stops rays.
    """

    setting: Setting
    card: SettingCard
    surface: str
    still: tuple[Body, ...]
    materials: tuple[Material, ...]
    meshes: Meshes
    surroundings: Surroundings

    @property
    def radius(self) -> float | None:
        """Of a support that is a disc [m]; None of a rectangle."""
        from wmeval.assets.settings.stage import is_round

        support = self.card.surfaces[self.surface]
        return support.size[0] / 2 if is_round(self.surface, support) else None

    def bodies(self, task: TaskCard, mode: Physics) -> Iterator[Body]:
        """Its bodies with their physics for a task."""
        for body in self.still:
            physics = (mode.passive_friction, mode.passive_restitution)
            if body.name == f"support:{self.surface}" and task.support is not None:
                physics = (task.support.friction, task.support.restitution)
            if body.collision:
                friction, restitution = physics
                yield body.model_copy(update={"friction": friction, "restitution": restitution})
            else:
                yield body


def place_of(library: Library, setting: str, surface: str) -> Place:
    """A setting's support as a place; built once in a process.

    Raises:
        UserError: as `wmeval.assets.settings.build_setting`, or it has no such support.
    """
    folder = str(library.folders[f"settings/{setting}"])
    digest = library.file_digest("settings", setting)
    return _built_place(library.settings[setting].model_dump_json(), folder, surface, digest)


@lru_cache(maxsize=32)
def _built_place(card_json: str, folder: str, surface: str, digest: str) -> Place:
    from wmeval.assets.settings import build_setting
    from wmeval.sim.blend_files import as_glb

    card = SettingCard.model_validate_json(card_json)
    setting = build_setting(card, Path(folder), as_glb)
    hidden = {*card.surfaces[surface].clutter_hide, *setting.clutter.get(surface, ())}
    still = tuple(b for b in setting.bodies if b.name not in hidden)
    if not any(b.name == f"support:{surface}" for b in still):
        raise UserError(
            f"setting {card.id!r}: its builder made no support {surface!r}: name the surface of "
            "its card like one of the built-in room's"
        )
    used = {v.material for b in still for v in b.visuals}
    materials = tuple(m for m in setting.materials if m.name in used)
    shapes = [v.shape for b in still for v in b.visuals]
    shapes += [c.shape for b in still for c in b.collision]
    keys = {
        k for s in shapes if isinstance(s, Mesh) for k in (s.sha256, *(c for c, _ in s.coarser))
    }
    keys |= picture_keys(materials)
    meshes = {k: m for k, m in setting.meshes.items() if k in keys}
    surroundings = Surroundings(still, materials, meshes)
    return Place(setting, card, surface, still, materials, meshes, surroundings)
