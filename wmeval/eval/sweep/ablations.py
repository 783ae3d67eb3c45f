"""What may be changed about an engine, one thing at a time, and for which families."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from wmeval.assets.gauge_cards import families
from wmeval.envs.gauge.configurations import settings_of
from wmeval.eval.sweep.cells import Cell


@dataclass(frozen=True)
class Ablation:
    """A change of one thing about an engine.

    Attributes:
        name: what is changed, in words.
        settings: over the configuration's, as in a grid; ``*dt`` and ``*iterations`` multiply.
        rates: of families that it is for; none: of all.
        families: that it is for; none: all.
    """

    name: str
    settings: Mapping[str, JsonValue]
    rates: tuple[str, ...] = ()
    families: tuple[str, ...] = ()


_RIGID = ("rigid",)
COMMON = (
    Ablation("iterations x 4", {"*iterations": 4}),
    Ablation("restitution from 0.01 m/s", {"restitution_threshold": 0.01}, _RIGID),
    Ablation("gaps of 0.1 mm", {"gap": 1e-4}, _RIGID, ("newtons_cradle",)),
    Ablation("step / 2", {"*dt": 2}),
    Ablation("step / 5", {"*dt": 5}, ("textile",)),
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
            "rigid bodies, split impulses", {"maximal_coordinates": 1, "split_impulse": 1}, _RIGID
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
    ),
    "genesis": (
        Ablation("no default armature", {"default_armature": 0.0}, _RIGID),
        Ablation("contacts by restitution", {"contact": "restitution"}, _RIGID),
        Ablation("contact time 2 ms", {"contact_time": 2e-3}, _RIGID),
        Ablation("noslip iterations", {"noslip_iterations": 10}, _RIGID),
    ),
}
"""Of each engine's own settings."""


def applies(ablation: Ablation, cell: Cell) -> bool:
    """Whether an ablation is for a cell's family."""
    card = families()[cell.family]
    of_rate = not ablation.rates or card.rates in ablation.rates
    return of_rate and (not ablation.families or card.id in ablation.families)


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
        else:
            out[key] = value
    return out


def is_change(cell: Cell, grid: Mapping[str, JsonValue]) -> bool:
    """Whether a grid point differs from the configuration."""
    base = settings_of(families()[cell.family], cell.engine.adapter, cell.config)
    own = {
        "dt": str(base.dt),
        "iterations": base.config.iterations,
        "restitution_threshold": base.config.restitution_threshold,
        **base.config.options,
    }
    return any(own.get(k) != v for k, v in grid.items())
