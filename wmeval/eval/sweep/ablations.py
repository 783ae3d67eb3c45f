"""What may be changed about an engine, one thing at a time, and for which families."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from wmeval.assets.gauge_cards import Box, Family, Sheet, families
from wmeval.envs.gauge.bending import CELL
from wmeval.envs.gauge.build import build, foam_of
from wmeval.envs.gauge.configurations import settings_of
from wmeval.eval.sweep.cells import Cell


@dataclass(frozen=True)
class Ablation:
    """A change of one thing about an engine.

    Attributes:
        name: what is changed, in words.
        settings: over the configuration's, as in a grid; ``*dt`` and ``*cell`` divide the step and
            the cells of a sheet or foam by so much, ``*iterations`` multiplies.
        rates: of families that it is for; none: of all.
        families: that it is for; none: all.
        where: options that the configuration must have, for what is of one solver.
        loose: of scenes without joints only.
    """

    name: str
    settings: Mapping[str, JsonValue]
    rates: tuple[str, ...] = ()
    families: tuple[str, ...] = ()
    where: Mapping[str, JsonValue] = field(default_factory=dict)
    loose: bool = False


_RIGID, _TEXTILE, _VOLUME = ("rigid",), ("textile",), ("volume",)
_BENDS = (*_TEXTILE, *_VOLUME)
_UNSAID: Mapping[str, JsonValue] = {"volume": "fem"}
"""Of options that a configuration leaves out."""
_MPM, _VBD, _FEM, _POINTS = (
    {"solver": "mpm"},
    {"solver": "vbd"},
    {"volume": "fem"},
    {"volume": "mpm"},
)
COMMON = (
    Ablation("iterations x 4", {"*iterations": 4}),
    Ablation("restitution from 0.01 m/s", {"restitution_threshold": 0.01}, _RIGID),
    Ablation("gaps of 0.1 mm", {"gap": 1e-4}, _RIGID, ("newtons_cradle",)),
    Ablation("cells twice as large", {"*cell": 0.5}, _BENDS),
    Ablation("cells half as large", {"*cell": 2}, _BENDS),
    Ablation("step / 2", {"*dt": 2}),
    Ablation("step / 5", {"*dt": 5}, _TEXTILE),
    Ablation("step / 10", {"*dt": 10}, _RIGID),
)
"""For every engine."""

SECONDS: Mapping[str, float] = {"newtons_cradle": 2.0, "pendulum": 4.0, "rope_winding": 2.0}
"""How much of a long record is run [s]: as much as shows what departs, the same for every trial."""
STRETCH_SECONDS = 2.0
"""Of a textile, where its stretch is explained [s]."""
STRETCH_LIMIT = 0.02
"""Strain of a textile's edges that is too much (build sheet: stretch < 2 %)."""

ABLATIONS: Mapping[str, tuple[Ablation, ...]] = {
    "bullet": (
        Ablation(
            "rigid bodies, split impulses",
            {"maximal_coordinates": 1, "split_impulse": 1},
            _RIGID,
            loose=True,
        ),
        Ablation("softer contact correction", {"contact_erp": 0.02}),
        Ablation("margin of hulls 0.01 mm", {"hull_margin": 1e-5}),
        Ablation("friction cone", {"cone_friction": 1}),
    ),
    "physx": (
        Ablation("contact gap 1 mm", {"contact_offset": 1e-3}),
        Ablation("four velocity iterations", {"velocity_iterations": 4}),
        Ablation("PGS in place of TGS", {"tgs": 0}),
        Ablation("continuous collisions", {"ccd": 1}),
    ),
    "newton": (
        Ablation("contacts by restitution", {"contact": "restitution"}, _RIGID),
        Ablation("contact stiffness x 10", {"contact_stiffness": 160.0}, _RIGID),
        Ablation("elliptic friction cone", {"elliptic": 1}, _RIGID),
        Ablation("XPBD in place of MuJoCo", {"solver": "xpbd"}, _RIGID),
        Ablation("contact stiffness of cloth x 10", {"particle_contact_stiffness": 1e4}, _TEXTILE),
        Ablation("contacts of cloth undamped", {"particle_contact_damping": 0.0}, _TEXTILE),
        Ablation(
            "tetrahedra (VBD) in place of particles",
            {**_VBD, "iterations": 10, "warm_start": 1},
            _VOLUME,
            where=_MPM,
        ),
        Ablation(
            "particles (MPM) in place of tetrahedra",
            {**_MPM, "iterations": 250},
            _VOLUME,
            where=_VBD,
        ),
        Ablation("particles' grid of 3 mm", {"voxel": 3e-3}, _VOLUME, where=_MPM),
    ),
    "genesis": (
        Ablation("no default armature", {"default_armature": 0.0}, _RIGID),
        Ablation("contacts by restitution", {"contact": "restitution"}, _RIGID),
        Ablation("contact time 2 ms", {"contact_time": 2e-3}, _RIGID),
        Ablation("noslip iterations", {"noslip_iterations": 10}, _RIGID),
        Ablation("finite elements in place of particles", _FEM, _VOLUME, where=_POINTS),
        Ablation("particles in place of finite elements", _POINTS, _VOLUME, where=_FEM),
        Ablation("particles' grid twice as dense", {"grid_density": 128.0}, _VOLUME, where=_POINTS),
        Ablation("contacts of foam at 0.1 ms", {"contact_softness": 1e-4}, _VOLUME),
    ),
}
"""Of each engine's own settings. Contacts by restitution are springs damped as restitution asks: of
rigid bodies, that is how contact damping is set."""


def cell_of(card: Family) -> float | None:
    """Least size of the cells of a family's sheet or foam [m]; None where it has neither."""
    foam = foam_of(card)
    sizes = [
        float(b.shape.grid or CELL)
        for n, b in card.bodies.items()
        if isinstance(b.shape, Sheet) or (n in foam and isinstance(b.shape, Box))
    ]
    return min(sizes, default=None)


def applies(ablation: Ablation, cell: Cell) -> bool:
    """Whether an ablation is for a cell's family, and its engine can do it to its scene."""
    card = families()[cell.family]
    of_rate = not ablation.rates or card.rates in ablation.rates
    if "*cell" in ablation.settings and cell_of(card) is None:
        return False
    if ablation.where:
        options = settings_of(card, cell.engine.adapter, cell.config).config.options
        if any(options.get(k, _UNSAID.get(k)) != v for k, v in ablation.where.items()):
            return False
    if not of_rate or (ablation.families and card.id not in ablation.families):
        return False
    return not (ablation.loose and build(card, cell.subtask, cell.material).scene.joints)


def grid_of(cell: Cell, ablation: Ablation) -> dict[str, JsonValue]:
    """An ablation as a grid point; factors are resolved against the configuration."""
    base = settings_of(families()[cell.family], cell.engine.adapter, cell.config)
    out: dict[str, JsonValue] = {}
    for key, value in ablation.settings.items():
        if key == "*dt":
            assert isinstance(value, int)
            out["dt"] = str(base.dt / value)
        elif key == "*iterations":
            assert isinstance(value, int)
            out["iterations"] = min(1000, base.config.iterations * value)
        elif key == "*cell":
            size = cell_of(families()[cell.family])
            assert size is not None
            assert isinstance(value, int | float)
            out["cell"] = round(size / value, 6)
        else:
            out[key] = value
    return out


def is_change(cell: Cell, grid: Mapping[str, JsonValue]) -> bool:
    """Whether a grid point differs from the configuration."""
    base = settings_of(families()[cell.family], cell.engine.adapter, cell.config)
    own = {
        "dt": str(base.dt),
        "cell": cell_of(families()[cell.family]),
        "iterations": base.config.iterations,
        "restitution_threshold": base.config.restitution_threshold,
        **base.config.options,
    }
    return any(own.get(k) != v for k, v in grid.items())
