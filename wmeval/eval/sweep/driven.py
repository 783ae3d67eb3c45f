"""Recorded motions in place of a family's own: ``--drive FAMILY=FILE``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wmeval.assets.gauge_cards import RECORD_HZ, Family
from wmeval.assets.gauge_profiles import COLUMNS, read_measured
from wmeval.envs.gauge.measured import check_length, check_units
from wmeval.envs.gauge.motions import led_bodies
from wmeval.errors import UserError

if TYPE_CHECKING:
    from wmeval.eval.sweep.planning import Task

NO_TRUTH = "led by a recorded motion: closed forms are of the card's own"


def parse_drives(given: Sequence[str], tasks: Sequence[Task]) -> dict[str, str]:
    """Files by family of ``FAMILY=FILE``.

    Args:
        given: as a command line gives them.
        tasks: that are run.

    Raises:
        UserError: not of this form, a family that no task is of or of which nothing is led, a file
            that holds no motion, one of other units, or one that breaks off.
    """
    out: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not path:
            raise UserError(
                f"--drive {text}: write FAMILY=FILE, a .csv file {','.join(COLUMNS)} of a motion"
            )
        own = [t for t in tasks if t.card is not None and t.family == name]
        if not own:
            raise UserError(f"--drive {text}: no task here is of {name!r}: name it in --tasks")
        if name in out:
            raise UserError(f"--drive: {name} is named twice")
        if not any(leads(t.card, t.subtask, t.material) for t in own if t.card is not None):
            raise UserError(f"--drive {text}: {name} has no set-up in which one body is led")
        measured = read_measured(path)
        for t in own:
            if t.card is not None and leads(t.card, t.subtask, t.material):
                (led,) = led_bodies(t.card, t.subtask, t.material)
                seconds = (t.card.frames(t.subtask, t.material) - 1) / RECORD_HZ
                check_units(measured, path, led, seconds)
                check_length(measured, path, seconds)
        out[name] = str(Path(path))
    return out


def leads(card: Family, subtask: str, material: str) -> bool:
    """Whether a set-up has the one led body that a file can lead."""
    return len(led_bodies(card, subtask, material)) == 1
