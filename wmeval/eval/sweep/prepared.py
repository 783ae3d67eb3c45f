"""A cell's world before it runs: its family as the grid has it, its settings, its scene."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pydantic import JsonValue

from wmeval.assets.gauge_cards import RECORD_HZ, Family, Sheet, Sphere, families
from wmeval.clock import SceneClock
from wmeval.envs.gauge.build import Built, build, foam_of
from wmeval.envs.gauge.configurations import Settings, chained, settings_of
from wmeval.errors import UserError
from wmeval.eval.sweep.cells import Cell, absent, engine_config, fraction
from wmeval.sim.protocol import EventRules, WorldSpec

FRAME = Fraction(1, RECORD_HZ)


@dataclass(frozen=True, eq=False)
class Prepared:
    """A cell's world before it runs.

    Attributes:
        card: its family.
        built: scene, drives, markers.
        settings: of the configuration, before the grid.
        spec: of the world, the grid's settings in it.
        frames: to record, the first at time 0.
    """

    card: Family
    built: Built
    settings: Settings
    spec: WorldSpec
    frames: int


def prepare(cell: Cell) -> Prepared:
    """Build a cell's world.

    Raises:
        UserError: the engine has not the physics, is not installed, or a setting is none of its.
    """
    missing = absent(cell.engine)
    if missing:
        raise UserError(missing)
    card, settings, built = scene_of(cell)
    adapter = cell.engine.adapter
    dt = fraction(cell.grid.get("dt", settings.dt))
    spec = WorldSpec(
        built.scene, built.meshes, built.drives.specs, SceneClock(dt, FRAME), EventRules(),
        adapter, engine_config(cell, settings.config), round(built.drives.settle / float(dt)),
    )  # fmt: skip
    return Prepared(card, built, settings, spec, card.frames(cell.subtask, cell.material))


def scene_of(cell: Cell) -> tuple[Family, Settings, Built]:
    """A cell's family as its grid has it, its configuration, and its scene.

    Raises:
        UserError: the engine has not the physics, or a setting is none of the family's.
    """
    card = families()[cell.family]
    settings = settings_of(card, cell.engine.adapter, cell.config)
    if "gap" in cell.grid:
        card = spaced(card, cell.grid["gap"])
    if "cell" in cell.grid:
        card = resolved(card, cell.grid["cell"])
    built = build(
        card, cell.subtask, cell.material, drive=cell.drive or None,
        rope_chain=chained(cell.engine.adapter), changes=settings.changes,
    )  # fmt: skip
    return card, settings, built


def spaced(card: Family, gap: JsonValue) -> Family:
    """The cradle with balls that are smaller by a gap [m].

    Touching balls are one contact problem; with gaps there is one impact after another.

    Raises:
        UserError: another family, or a gap that leaves no balls.
    """
    balls = {n: b for n, b in card.bodies.items() if isinstance(b.shape, Sphere)}
    if card.id != "newtons_cradle":
        raise UserError(f"gap = {gap}: is of newtons_cradle, not of {card.id}")
    least = min(b.shape.diameter for b in balls.values() if isinstance(b.shape, Sphere))
    if not isinstance(gap, int | float) or not 0 <= gap < least:
        raise UserError(f"gap = {gap}: give metres, 0 to less than {least:g}")
    made = {
        n: b.model_copy(
            update={"shape": b.shape.model_copy(update={"diameter": b.shape.diameter - gap})}
        )
        for n, b in balls.items()
        if isinstance(b.shape, Sphere)
    }
    return card.model_copy(update={"bodies": {**card.bodies, **made}})


def resolved(card: Family, cell: JsonValue) -> Family:
    """A family whose sheet or foam has cells of another size [m].

    Raises:
        UserError: a family without either, or a size that is none.
    """
    foam = foam_of(card)
    made_of = {n: b for n, b in card.bodies.items() if isinstance(b.shape, Sheet) or n in foam}
    if not made_of:
        raise UserError(f"cell = {cell}: is of families with a sheet or foam, not of {card.id}")
    if not isinstance(cell, int | float) or not 1e-3 <= cell <= 0.2:
        raise UserError(f"cell = {cell}: give metres, 0.001 to 0.2")
    made = {
        n: b.model_copy(update={"shape": b.shape.model_copy(update={"grid": float(cell)})})
        for n, b in made_of.items()
    }
    return card.model_copy(update={"bodies": {**card.bodies, **made}})
