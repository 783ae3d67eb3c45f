"""From a command line to cells: tasks, configurations, grids, shards, repeats."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from wmeval.assets.gauge_cards import RECORD_HZ, Family, families, family
from wmeval.assets.gauge_published import published
from wmeval.envs.gauge.changes import check_changes
from wmeval.envs.gauge.configurations import NAMES, check_engine, file_of, read_fitted
from wmeval.errors import UserError
from wmeval.eval.fitting.tosses import LIKE, check_cube
from wmeval.eval.sweep.cells import Cell, EngineSpec, fraction
from wmeval.eval.sweep.driven import leads
from wmeval.eval.sweep.fitted import fitted_trials
from wmeval.eval.sweep.recorded import is_of, recording
from wmeval.eval.sweep.refused import refuse
from wmeval.eval.sweep.suited import check as check_suited
from wmeval.eval.sweep.toss import FAMILY, data_file, wanted_of

Twice = Literal["first", "all", "none"]
TWICE: tuple[Twice, ...] = ("first", "all", "none")
"""Which cells run a second time, to see whether they come out the same: of every engine and kind
of body, and of the tosses, the shortest, all, or none."""
GRID_LIMIT = 4096


@dataclass(frozen=True)
class Task:
    """A set-up of a family.

    Attributes:
        card: the family; None: the cube tosses, which have none.
        subtask, material: of it.
    """

    card: Family | None
    subtask: str
    material: str

    @property
    def family(self) -> str:
        """Id of the family."""
        return self.card.id if self.card is not None else FAMILY


def tasks_of(text: str) -> tuple[Task, ...]:
    """Tasks of ``benchmarked``, ``table-3``, ``all`` or names, comma-separated.

    The 14 benchmarked families have more set-ups than the 15 that GAUGE's Table 3 shows.
    ``cube_toss/N`` is N real tosses of a cube, and what else `wanted_of` reads. Any other name is a
    family, ``family/subtask`` or
    ``family/subtask/material``; what is left out means every one.

    Raises:
        UserError: an unknown name.
    """
    out: dict[tuple[str, str, str], Task] = {}
    wanted: list[tuple[Family, str, str]]
    for name in (t.strip() for t in text.split(",") if t.strip()):
        if name.partition("/")[0] == FAMILY:
            task = Task(None, _count(name.partition("/")[2]), "acrylic")
            out[FAMILY, task.subtask, task.material] = task
            continue
        if name in ("benchmarked", "all"):
            cards = [c for c in families().values() if c.benchmarked or name == "all"]
            wanted = [(c, "", "") for c in cards]
        elif name == "table-3":
            rows = published().rows
            wanted = [(families()[r.family], r.subtask, r.material) for r in rows if r.main_table]
        else:
            first, _, rest = name.partition("/")
            subtask, _, material = rest.partition("/")
            wanted = [(family(first), subtask, material)]
        for card, subtask, material in wanted:
            for one in _set_ups(card, subtask, material):
                out[(card.id, one.subtask, one.material)] = one
    if not out:
        raise UserError("--tasks: name benchmarked, all, or families")
    return tuple(out.values())


def _count(text: str) -> str:
    """Of ``cube_toss`` or ``cube_toss/20``: which tosses."""
    if text:
        wanted_of(text)
    return text or "all"


def _set_ups(card: Family, subtask: str, material: str) -> list[Task]:
    subtasks = [subtask] if subtask else list(card.subtasks)
    found = []
    for one in subtasks:
        if one not in card.subtasks:
            known = ", ".join(card.subtasks)
            raise UserError(f"--tasks: {card.id} has no subtask {one!r}: choose from {known}")
        frames = card.subtasks[one].frames
        found += [Task(card, one, m) for m in frames if material in ("", m)]
    if not found:
        known = ", ".join(card.materials)
        raise UserError(f"--tasks: {card.id} has no material {material!r}: choose from {known}")
    return found


def parse_grid(text: str) -> dict[str, tuple[JsonValue, ...]]:
    """Axes of ``dt=1/180,1/360,iterations=10,50``: a part without ``=`` is one more value.

    Raises:
        UserError: a value before any name, one that is neither number nor word, or a step that does
            not divide a recorded frame.
    """
    axes: dict[str, list[JsonValue]] = {}
    name = ""
    for part in (t.strip() for t in text.split(",") if t.strip()):
        key, equals, value = part.rpartition("=")
        if equals:
            name = key.strip()
        if not name:
            raise UserError(f"--grid: {part!r}: write NAME=VALUE,VALUE,NAME=VALUE")
        axes.setdefault(name, []).append(_value(name, value if equals else part))
    count = 1
    for values in axes.values():
        count *= len(values)
    if count > GRID_LIMIT:
        raise UserError(f"--grid: {count} points: at most {GRID_LIMIT}")
    return {k: tuple(dict.fromkeys(v)) for k, v in axes.items()}


def _value(name: str, text: str) -> JsonValue:
    if name == "dt":
        dt = fraction(text)
        if (Fraction(1, RECORD_HZ) / dt).denominator != 1:
            raise UserError(
                f"--grid: dt = {text} does not divide the recorded 1/{RECORD_HZ} s: choose "
                f"1/{RECORD_HZ * 6}, 1/{RECORD_HZ * 12}, ..."
            )
        return str(dt)
    try:
        value: JsonValue = json.loads(text)
    except json.JSONDecodeError:
        value = text
    if isinstance(value, list | dict) or (isinstance(value, float) and not math.isfinite(value)):
        raise UserError(f"--grid: {name} = {text}: give a number or a word")
    return value


def points(grid: Mapping[str, Sequence[JsonValue]]) -> list[dict[str, JsonValue]]:
    """All combinations; one empty one where there is no grid."""
    return [dict(zip(grid, v, strict=True)) for v in itertools.product(*grid.values())]


def parse_shard(text: str) -> tuple[int, int]:
    """``2/5``: the second of five parts.

    Raises:
        UserError: not of this form.
    """
    try:
        part, _, of = text.partition("/")
        i, n = int(part), int(of)
    except ValueError:
        i, n = 0, 0
    if not 1 <= i <= n:
        raise UserError(f"--shard {text}: write I/N with 1 <= I <= N")
    return i, n


def parse_twice(text: str) -> Twice:
    """Row of `TWICE`.

    Raises:
        UserError: none of them.
    """
    for one in TWICE:
        if text == one:
            return one
    raise UserError(f"--twice {text}: choose from {', '.join(TWICE)}")


def check_config(config: str) -> str:
    """A configuration's name, or the path of a file that can be read.

    Raises:
        UserError: neither.
    """
    if config not in NAMES:
        if not Path(config).suffix:
            raise UserError(
                f"--config: {config!r}: choose from {', '.join(NAMES)}, or name a .yaml file of "
                "fitted numbers"
            )
        if file_of(config, "") == config:
            read_fitted(config)
    return config


def plan(
    engines: Sequence[EngineSpec],
    tasks: Sequence[Task],
    configs: Sequence[str],
    grid: Mapping[str, Sequence[JsonValue]] | None = None,
    *,
    twice: Twice = "first",
    tosses: str = "",
    real: Sequence[str] = (),
    drives: Mapping[str, str] | None = None,
) -> tuple[Cell, ...]:
    """All cells, engine by engine, so that a worker keeps its engine.

    A file of fitted numbers is run on its own family only; ``{engine}`` in its name stands for each
    engine's. ``tosses`` names the recording of the
    cube tosses, where it is not the fetched one; ``real`` others, each of one set-up by its header.
    ``drives`` are of `wmeval.eval.sweep.driven.parse_drives`.

    Raises:
        UserError: fitted numbers of another family or that no body takes, a recording of which it
            is not known which trials they were fitted on, one of no task here, or one that lacks
            what its task measures or is far shorter; and what
            `wmeval.eval.sweep.refused.refuse` refuses.
    """
    out = []
    for engine in engines:
        for config in configs:
            wanted = list(tasks)
            if config not in NAMES:
                of = _fitted_family(file_of(config, engine.adapter))
                wanted = [t for t in wanted if t.family == of]
                if not wanted:
                    raise UserError(f"{config}: its numbers are of {of}, which no task here is")
            cells = [
                Cell(
                    engine=engine, config=config, family=t.family, subtask=t.subtask,
                    material=t.material, grid=point,
                    data=tosses if t.card is None else _recording(t, real),
                    drive=_drive(t, drives or {}),
                )
                for t in wanted
                for point in points(grid or {})
            ]  # fmt: skip
            _check_fitted(cells)
            out += cells
            out += [c.model_copy(update={"repeat": 1}) for c in _again(cells, twice)]
    _check_used(out, tasks, tosses, real)
    refuse(out)
    return tuple(out)


def _fitted_family(path: str) -> str:
    """Family of a file of fitted numbers, each of which one of its bodies takes."""
    fit = read_fitted(path)
    if fit.family != FAMILY and fit.hz is not None and fit.hz % RECORD_HZ:
        raise UserError(
            f"{path}: hz = {fit.hz}: 1/{fit.hz} s does not divide the recorded 1/{RECORD_HZ} s: "
            f"choose {RECORD_HZ * 6}, {RECORD_HZ * 12}, ..."
        )
    try:
        if fit.family == FAMILY:
            check_cube(fit.properties)
        elif fit.family in families():
            check_changes(families()[fit.family], fit.properties)
    except UserError as error:
        raise UserError(f"{path}: {error}") from error
    return fit.family


def _check_used(
    cells: Sequence[Cell], tasks: Sequence[Task], tosses: str, real: Sequence[str]
) -> None:
    """Refuse a recording that nothing would be held against."""
    used = {c.data for c in cells}
    if tosses and tosses not in used:
        raise UserError(f"--tosses {tosses}: no task here is {FAMILY}: name it in --tasks")
    for path in real:
        if path in used:
            continue
        h = recording(path).header
        of = "/".join(x or "*" for x in (h.family, h.subtask, h.material))
        mine = next(
            (t for t in tasks if is_of(recording(path), t.family, t.subtask, t.material)), None
        )
        if mine is None:
            raise UserError(f"--real {path}: it measures {of}, which no task here is")
        raise UserError(
            f"--real {path}: {_recording(mine, real)} measures {of} as well: give one of them"
        )


def _check_fitted(cells: Sequence[Cell]) -> None:
    """Refuse fits that cannot be kept apart from what they are scored on, whatever the grid."""
    scored = {
        (c.config, c.engine.adapter, c.family == FAMILY, c.data): c
        for c in cells
        if c.config not in NAMES and (c.data or c.family == FAMILY)
    }
    for cell in scored.values():
        try:
            data = data_file(cell) if cell.family == FAMILY else Path(cell.data)
        except UserError:  # no tosses are here: the cell says so
            continue
        fitted_trials(cell.config, cell.engine.adapter, data)


def _drive(task: Task, drives: Mapping[str, str]) -> str:
    """The file that leads a task; "" where none does, or nothing is led."""
    path = drives.get(task.family, "")
    if path and task.card is not None and leads(task.card, task.subtask, task.material):
        return path
    return ""


def _recording(task: Task, real: Sequence[str]) -> str:
    """The file that measures a task; "" where none does.

    Raises:
        UserError: it cannot be of the task.
    """
    for path in real:
        if is_of(recording(path), task.family, task.subtask, task.material):
            if task.card is not None:
                check_suited(recording(path), path, task.card, task.subtask, task.material)
            return path
    return ""


def _again(cells: Sequence[Cell], twice: Twice) -> list[Cell]:
    if twice == "none":
        return []
    if twice == "all":
        return list(cells)
    shortest: dict[str, tuple[int, Cell]] = {}
    for cell in cells:
        card = families()[LIKE if cell.family == FAMILY else cell.family]
        try:
            check_engine(card, cell.engine.adapter, stepped=False)
        except UserError:  # it has not the physics: the cell says so
            continue
        if cell.family == FAMILY:
            wanted = wanted_of(cell.subtask)
            cubes = (wanted.count or 10**9) * wanted.starts
            if FAMILY not in shortest or cubes < shortest[FAMILY][0]:
                shortest[FAMILY] = (cubes, cell)
            continue
        steps = card.frames(cell.subtask, cell.material) * card.solver_hz
        # A record of a few frames hardly leaves room for a difference.
        steps += 10**9 if card.frames(cell.subtask, cell.material) < 15 else 0
        if card.kind not in shortest or steps < shortest[card.kind][0]:
            shortest[card.kind] = (steps, cell)
    return [cell for _, cell in shortest.values()]


def share(cells: Sequence[Cell], shard: tuple[int, int]) -> tuple[Cell, ...]:
    """One of n parts: every n-th cell, with its repeat."""
    i, n = shard
    together = list(dict.fromkeys(c.model_copy(update={"repeat": 0}).name for c in cells))
    mine = set(together[i - 1 :: n])
    return tuple(c for c in cells if c.model_copy(update={"repeat": 0}).name in mine)
