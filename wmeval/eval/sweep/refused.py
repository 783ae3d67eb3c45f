"""What can be told before anything runs: settings that nobody takes, tosses that are not there."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path

from wmeval.assets.gauge_cards import Family, families
from wmeval.envs.gauge.configurations import settings_of
from wmeval.errors import UserError
from wmeval.eval.fitting.halves import places_of
from wmeval.eval.fitting.tosses import read_tosses
from wmeval.eval.sweep.cells import OF_SCENE, Cell, engine_config
from wmeval.eval.sweep.prepared import resolved, spaced
from wmeval.eval.sweep.toss import FAMILY, data_file, toss_settings, wanted_of
from wmeval.jobs.installed import ENVIRONMENTS
from wmeval.sim.engines.engine_checks import check_config, check_names


def refuse(cells: Sequence[Cell]) -> None:
    """Let only cells pass of which every setting is taken by some cell that has it.

    An option of one engine is none of another's, and a size of cells is none of a rigid family's:
    such cells say so and are not run. What no cell at all can take was meant otherwise.

    Raises:
        UserError: a setting that no engine or task takes, a program that is not there, or more
            tosses than the recording holds.
    """
    _refuse_programs(cells)
    _refuse_tosses(cells)
    faults: dict[str, str] = {}
    taken: set[str] = set()
    for cell in cells:
        if cell.repeat:
            continue
        says = _fault(cell.model_copy(update={"subtask": "", "material": ""}).model_dump_json())
        if says is None:  # the engine has not the physics
            continue
        axes = [json.dumps([k, v]) for k, v in cell.grid.items()] or [cell.config]
        for axis in axes:
            if says:
                where = "--grid" if cell.grid else f"--config {cell.config}"
                faults.setdefault(axis, f"{where}: {says.removeprefix('--grid: ')}")
            else:
                taken.add(axis)
    for axis, says in faults.items():
        if axis not in taken:
            raise UserError(says)


@cache
def _fault(told: str) -> str | None:
    """Why a cell's settings are none; "" where they are, None where nothing is to be run."""
    cell = Cell.model_validate_json(told)
    try:
        if cell.family == FAMILY:
            base = toss_settings(cell).config
        else:
            card = families()[cell.family]
            base = settings_of(card, cell.engine.adapter, cell.config).config
    except UserError:
        return None
    try:
        if cell.family != FAMILY:
            if "gap" in cell.grid:
                spaced(card, cell.grid["gap"])
            if "cell" in cell.grid:
                resolved(card, cell.grid["cell"])
        check_names(
            cell.engine.adapter, (k for k in cell.grid if k not in ("dt", *OF_SCENE)), _beside(cell)
        )
        check_config(cell.engine.adapter, engine_config(cell, base))
    except UserError as error:
        return str(error)
    return ""


def _beside(cell: Cell) -> tuple[str, ...]:
    """What a grid may vary of a cell that is no option of its engine."""
    card = families().get(cell.family)
    scene = () if card is None else tuple(k for k in OF_SCENE if _OF_SCENE[k](card))
    return ("dt", *scene)


def _takes(make: Callable[[Family], object]) -> Callable[[Family], bool]:
    def takes(card: Family) -> bool:
        try:
            make(card)
        except UserError:
            return False
        return True

    return takes


_OF_SCENE: Mapping[str, Callable[[Family], bool]] = {
    "gap": _takes(lambda card: spaced(card, 0.0)),
    "cell": _takes(lambda card: resolved(card, 0.01)),
}
"""Settings of the scene, and whether a family has what they are of."""


def _refuse_programs(cells: Sequence[Cell]) -> None:
    for python in dict.fromkeys(c.engine.python for c in cells):
        if python and python not in ENVIRONMENTS and shutil.which(python) is None:
            raise UserError(f"--engines: python={python}: no program is there that can be run")


def _refuse_tosses(cells: Sequence[Cell]) -> None:
    asked = {(c.subtask, c.data): c for c in cells if c.family == FAMILY}
    for cell in asked.values():
        wanted = wanted_of(cell.subtask)
        try:
            path = data_file(cell)
        except UserError:
            if cell.data:
                raise
            continue  # it was not fetched: the cell says so
        held = _tosses_in(path)
        held = len(range(held)[places_of(wanted.half)])
        if wanted.count > held:
            of = f" in {wanted.half} places" if wanted.half else ""
            raise UserError(
                f"--tasks: {FAMILY}/{cell.subtask}: {path.name} holds {held} tosses{of}: ask for "
                f"as many at most, or for {FAMILY}"
            )


@cache
def _tosses_in(path: Path) -> int:
    return len(read_tosses(path).trials)
