"""The row of a manifest: all that a sample is drawn from; and which side of the split is which."""

from __future__ import annotations

from typing import Literal

import numpy as np
from pydantic import Field

from wmeval.assets.cards import Library, Ramp, TaskCard
from wmeval.errors import UserError
from wmeval.scene import Card

Split = Literal["train", "in_distribution", "ood-scene", "ood-object", "ood-both"]

CONDITIONS: tuple[tuple[Split, str, str], ...] = (
    ("in_distribution", "train", "train"),
    ("ood-scene", "held_out", "train"),
    ("ood-object", "train", "held_out"),
    ("ood-both", "held_out", "held_out"),
)
"""Evaluation condition, side of its settings, side of its objects (RigidBench, Table 6)."""

SIDES: dict[Split, tuple[str, str]] = {
    "train": ("train", "train"),
    **{split: (settings, objects) for split, settings, objects in CONDITIONS},
}
"""Partition to the sides of the split that its settings and its objects come from."""


class Row(Card):
    """One sample.

    Attributes:
        sample_id: name of its clip.
        scene_id: setting.
        task_type: task.
        surface_name: support in the setting.
        seed: of everything drawn in it.
        split: partition.
        objects: ids that its task may draw from.
    """

    sample_id: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    scene_id: str
    task_type: str
    surface_name: str
    seed: int = Field(ge=0, lt=2**63)
    split: Split
    objects: tuple[str, ...] = Field(min_length=1)


def check_row(row: Row, library: Library, task: TaskCard | None = None) -> None:
    """Whether every name of a row has its card, and every slot of its task an object.

    Args:
        row: of a manifest.
        library: all cards.
        task: a card in place of the row's own.

    Raises:
        UserError: one has not; the message names the field and the known names.
    """
    setting = library.settings.get(row.scene_id)
    for field, value, known in (
        ("task_type", row.task_type, library.tasks),
        ("scene_id", row.scene_id, library.settings),
        ("surface_name", row.surface_name, setting.surfaces if setting else {}),
        *(("objects", name, library.objects) for name in row.objects),
    ):
        if value not in known:
            raise UserError(f"{field}: no card {value!r}: choose from {', '.join(known)}")
    for placement in (task or library.tasks[row.task_type]).placements:
        if isinstance(placement, Ramp) or placement.objects:
            continue
        if not library.tagged(placement.tags, row.objects):
            tagged = library.tagged(placement.tags, tuple(library.objects))
            raise UserError(
                f"objects: none of {', '.join(row.objects)} is tagged {placement.tags!r}, as slot "
                f"{placement.slot!r} of task {row.task_type!r} needs: choose from "
                f"{', '.join(tagged)}"
            )


def draw_row(
    task: str,
    split: Split,
    library: Library,
    rng: np.random.Generator,
    *,
    setting: str | None = None,
) -> Row:
    """A row of a task and a partition: setting, support and seed are drawn uniformly.

    Args:
        task: id of the task.
        split: partition.
        library: all cards.
        rng: draws.
        setting: id of the setting in place of the drawn one.

    Raises:
        UserError: no such setting.
    """
    settings, objects = SIDES[split]
    scenes = getattr(library.splits, settings).scenes
    drawn = scenes[int(rng.integers(len(scenes)))]
    scene = drawn if setting is None else setting
    if not isinstance(scene, str) or scene not in library.settings:
        raise UserError(f"no setting {scene!r}: choose from {', '.join(library.settings)}")
    surfaces = tuple(library.settings[scene].surfaces)
    return Row(
        sample_id=task,
        scene_id=scene,
        task_type=task,
        surface_name=surfaces[int(rng.integers(len(surfaces)))],
        seed=int(rng.integers(2**31)),
        split=split,
        objects=getattr(library.splits, objects).objects,
    )
