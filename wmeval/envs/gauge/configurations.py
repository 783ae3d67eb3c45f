"""How GAUGE's families are solved: three configurations, never mixed.

- ``published-settings``: 180 steps a second (900 for volumes), every engine's defaults, GAUGE's
  mapping of measured stiffness with its fall-backs (4.2, eqs. 4-12).
- ``tuned``: by the material card and by convergence alone, never by a task's reference: more and
  shorter steps, contacts whose restitution is the card's, no rotor inertia that is not there.
- a file (`Fitted`): numbers identified on a stated half of real data, to be scored on the other.

What was chosen, and in which regime, goes into results.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

import numpy as np
import yaml
from pydantic import Field, JsonValue, ValidationError

from wmeval.assets.gauge_cards import Family, Properties
from wmeval.assets.gauge_mapping import newton_textile
from wmeval.deformables import rest_shape
from wmeval.envs.gauge.build import Built, setup_of
from wmeval.envs.gauge.genesis_numbers import genesis_textile_numbers
from wmeval.errors import UserError, first_problem
from wmeval.scene import Card, Cloth
from wmeval.sim.protocol import EngineConfig

Name = Literal["published-settings", "tuned"]
PUBLISHED, TUNED = "published-settings", "tuned"
NAMES: tuple[str, ...] = (PUBLISHED, TUNED)
ENGINES = ("bullet", "physx", "newton", "genesis")
"""Engines whose settings are known here, in the order in which a default is looked for."""
JOB_ENGINES = ("isaac",)
"""Engines that run whole jobs: sweeps have them, environments that are stepped do not."""

PAPER_VERSIONS = {"genesis": "1.12.0", "newton": "1.3.0", "isaac": "6.0.0"}
"""What the published results were made with (GAUGE, 4.2)."""


@dataclass(frozen=True)
class Row:
    """Settings of one engine for families of one rate.

    Attributes:
        hz: steps per second.
        config: iterations, threshold, options.
        solver: as results name it.
        departs: where it is not what the name of the configuration says, and why.
    """

    hz: int
    config: EngineConfig
    solver: str
    departs: str = ""


def _row(hz: int, solver: str, iterations: int, threshold: float = 0.2, departs: str = "", /,
         **options: JsonValue) -> Row:  # fmt: skip
    config = EngineConfig(
        iterations=iterations, restitution_threshold=threshold, options=dict(options)
    )
    return Row(hz, config, solver, departs)


_ROUND = "vbd: this adapter fills blocks with the published particles, and the stick is round"
_FREE_CUBES = "vbd: the cubes between are free to move, and the published particles pull on none"
_WAVES = "each step in as many parts as waves need to cross a cell: undivided ones fly apart"
_HELD = "fem: what holds the foam is free to move, and the published particles pull on nothing"
_CAPSULES = "a rope's capsules are held by springs, which need more than 5,700 steps a second"
_SPLIT = {"hull_margin": 1e-5, "maximal_coordinates": 1, "split_impulse": 1}
"""Bullet where a free body meets what stands still: its rigid bodies with split impulses have the
restitution that they are given there; what is led or jointed needs the other kind."""
_RIGID_SPLIT, _MULTIBODY = "rigid bodies, split impulses", "generalised coordinates"
_NEAR = {"contact_offset": 1e-3, "velocity_iterations": 4}
_DAMPED = "mujoco, contacts by restitution"
_HULLS = "mujoco, hulls in up to four points"
_WARM = "vbd, begun with the last substep's share of gravity"
ROWS: dict[tuple[str, str, str], Row] = {
    # (configuration, engine, rates)
    (PUBLISHED, "bullet", "rigid"): _row(180, "generalised coordinates", 50),
    (PUBLISHED, "bullet", "textile"): _row(7200, "capsules and springs", 50, 0.2, _CAPSULES),
    (PUBLISHED, "physx", "rigid"): _row(180, "tgs", 10, 2.0, contact_offset=0.01),
    (PUBLISHED, "physx", "textile"): _row(7200, "tgs, capsules and springs", 10, 2.0, _CAPSULES,
                                          contact_offset=1e-4),
    (PUBLISHED, "newton", "rigid"): _row(180, "mujoco", 100, solver="mujoco"),
    (PUBLISHED, "newton", "textile"): _row(180, "vbd", 10, solver="vbd"),
    (PUBLISHED, "newton", "volume"): _row(900, "implicit mpm", 250, solver="mpm"),
    (PUBLISHED, "genesis", "rigid"): _row(180, "rigid", 50, default_armature=0.1),
    (PUBLISHED, "genesis", "textile"): _row(180, "pbd", 50),
    (PUBLISHED, "genesis", "volume"): _row(900, "mpm", 50, 0.2, _WAVES, volume="mpm"),
    # PhysX' defaults in Isaac Sim: TGS, 16 position iterations. No row of it is tuned here: that
    # would take convergence measured on it.
    (PUBLISHED, "isaac", "rigid"): _row(180, "omni physx, tgs", 16),
    (PUBLISHED, "isaac", "textile"): _row(180, "omni physx, surface fem", 16),
    (PUBLISHED, "isaac", "volume"): _row(900, "omni physx, fem", 16),
    (TUNED, "bullet", "rigid"): _row(1800, "generalised coordinates", 200, 0.01, hull_margin=1e-5),
    (TUNED, "bullet", "textile"): _row(7200, "capsules and springs", 50, 0.01),
    (TUNED, "physx", "rigid"): _row(1800, "tgs", 50, 0.01, contact_offset=1e-3,
                                    velocity_iterations=4),
    (TUNED, "physx", "textile"): _row(7200, "tgs, capsules and springs", 10, 0.01,
                                      contact_offset=1e-4),
    (TUNED, "newton", "rigid"): _row(1800, "mujoco, contacts by restitution", 100, solver="mujoco",
                                     contact="restitution"),
    (TUNED, "newton", "textile"): _row(900, _WARM, 5, solver="vbd", warm_start=1),
    (TUNED, "newton", "volume"): _row(1800, _WARM, 10, solver="vbd", warm_start=1),
    (TUNED, "genesis", "rigid"): _row(1800, "rigid, contacts by restitution", 100,
                                      contact="restitution"),
    (TUNED, "genesis", "textile"): _row(360, "pbd, springs of the card's stiffness", 50,
                                        textile="network", stretch_iterations=8,
                                        stretch_relaxation=0.5),
    (TUNED, "genesis", "volume"): _row(900, "fem, linear corotated", 50, contact_softness=5e-4),
}  # fmt: skip
OF_FAMILY: dict[tuple[str, str, str], Row] = {
    # (configuration, engine, family), before `ROWS`
    (PUBLISHED, "newton", "stick_stack"): _row(900, "vbd", 10, 0.2, _ROUND, solver="vbd"),
    (PUBLISHED, "newton", "cantilever_beam"): _row(900, "vbd", 10, 0.2, _FREE_CUBES, solver="vbd"),
    # Below: the cheapest setting whose number holds, or changes by less than 2 % when the rate is
    # doubled and iterations are four times as many. `python -m benchmarks.tuning ENGINE FAMILY`
    # prints what stands in the comments.
    # e 0.5761 of 0.5767 in 8 ms; at 720 Hz 0.573.
    (TUNED, "bullet", "bouncing_ball"): _row(1800, _RIGID_SPLIT, 50, 0.01, **_SPLIT),
    # Acceleration 6.991 of 6.976 m/s^2, 1 um deep; at 1800 Hz 7.026, 42 um.
    (TUNED, "bullet", "slope_contact"): _row(3600, _RIGID_SPLIT, 50, 0.01, **_SPLIT),
    # Paths move by 0.4 to 2.8 mm from 1800 Hz, and by nothing from 10 iterations on.
    (TUNED, "bullet", "nonsmooth_contact"): _row(3600, _RIGID_SPLIT, 50, 0.01, **_SPLIT),
    # 2.583 of 2.580 m/s^2; as the board tilts 0.17 mm off at 1800 Hz, 5.8 mm at 360.
    (TUNED, "bullet", "slope_slider"): _row(1800, _MULTIBODY, 50, 0.01, hull_margin=1e-5),
    # Creep 0.23 mm in 3 s (0.66 at 1800 Hz); 0.6 CPU-s.
    (TUNED, "bullet", "turntable"): _row(7200, _MULTIBODY, 50, 0.01, hull_margin=1e-5),
    # Period and energy as at 1800 Hz: 1.2563 s, 7e-6 of the energy.
    (TUNED, "bullet", "pendulum"): _row(720, _MULTIBODY, 50, 0.01),
    # Transfer 0.292; 0.290 at 3600 Hz, 0.301 at 720; as with 200 and 1000 iterations.
    (TUNED, "bullet", "newtons_cradle"): _row(1800, _MULTIBODY, 50, 0.01),
    # The ball's path is 2.7 mm from that at 720 Hz, at a third of the cost.
    (TUNED, "bullet", "wall_breaking"): _row(360, _MULTIBODY, 200, 0.01, hull_margin=1e-5),
    # 2.587 of 2.580 m/s^2; as the board tilts 0.12 mm off, 0.06 at 1800 Hz.
    (TUNED, "physx", "slope_slider"): _row(720, "tgs", 50, 0.01, **_NEAR),
    # Acceleration 5.839 of 5.810 m/s^2; 7.01 of 6.98.
    (TUNED, "physx", "slope_contact"): _row(1800, "tgs", 16, 0.01, **_NEAR),
    # Radius at the end 0.1008 of 0.0912 m (transition, metal), 0.1046 at 1800 Hz.
    (TUNED, "physx", "turntable"): _row(3600, "tgs", 16, 0.01, **_NEAR),
    (TUNED, "physx", "pendulum"): _row(720, "tgs", 50, 0.01, **_NEAR),
    # Transfer 0.2398 from 720 Hz on (0.2396 at 7200).
    (TUNED, "physx", "newtons_cradle"): _row(720, "tgs", 50, 0.01, **_NEAR),
    # Paths 1.1 mm from those at 360 Hz, 2.7 from those at 1800; 1.5 CPU-s a second.
    (TUNED, "physx", "wall_breaking"): _row(720, "tgs", 50, 0.01, **_NEAR),
    # e 0.5758 of 0.5767; springs that damp, in MuJoCo, make it 0.60.
    (TUNED, "newton", "bouncing_ball"): _row(1800, "xpbd", 8, solver="xpbd"),
    # Creep 1.3 mm; 55 mm by MuJoCo's springs, whose friction gives way.
    (TUNED, "newton", "turntable"): _row(900, "xpbd", 8, solver="xpbd"),
    # 5.836 of 5.810 m/s^2, 0.02 mm deep; with one point between two hulls 6.34, 8.6 mm.
    (TUNED, "newton", "slope_contact"): _row(
        1800, _HULLS, 100, solver="mujoco", contact="restitution", multiccd=1
    ),
    # Nothing in anything (0.4 um); by MuJoCo's springs 3.6 mm.
    (TUNED, "newton", "nonsmooth_contact"): _row(1800, "xpbd", 8, solver="xpbd"),
    # 2.581 of 2.580 m/s^2; creep 0.03 mm where it should stick.
    (TUNED, "newton", "slope_slider"): _row(
        1800, _DAMPED, 100, solver="mujoco", contact="restitution"
    ),
    # Energy to 7e-7, period 1.2563 s.
    (TUNED, "newton", "pendulum"): _row(720, "mujoco", 100, solver="mujoco"),
    (TUNED, "newton", "wall_breaking"): _row(
        360, _DAMPED, 100, solver="mujoco", contact="restitution"
    ),
    (TUNED, "genesis", "wall_breaking"): _row(
        360, "rigid, contacts by restitution", 100, contact="restitution"
    ),
}

_HANGING = ("cantilever_beam",)
"""Families whose foam carries bodies that are free."""


class Identified(Card):
    """How fitted numbers were found.

    Attributes:
        engine, version: on which they were; they are no other engine's.
        data: name of the recording; sha256: of its file.
        half: which half, as it was asked for; trials: its names, which are never scored.
        parameters: what was found; start: from where; bounds: of the search.
        loss: what was made least; loss_before, loss_after: at the start and at what was found.
        other_half: the loss on the trials that were not fitted on, of the engine and of what it is
            compared with; empty where the sweep scores them.
        evaluations: of the loss; optimizer: which; seed: of it.
    """

    engine: str
    version: str = ""
    data: str
    sha256: str
    half: str
    trials: tuple[str, ...] = Field(min_length=1)
    parameters: dict[str, float]
    start: dict[str, float]
    bounds: dict[str, tuple[float, float]]
    loss: str
    loss_before: float
    loss_after: float
    other_half: dict[str, float] = Field(default_factory=dict)
    evaluations: int = Field(ge=1)
    optimizer: str
    seed: int = 0


class Fitted(Card):
    """A fitted configuration, from a YAML file.

    Attributes:
        family: id of the card that it is for.
        fitted_on: which half of which data, in words; the other half may be scored.
        base: the configuration that it starts from.
        hz: steps per second; None: the base's.
        iterations, restitution_threshold: None: the base's.
        options: of the engine, over the base's.
        properties: numbers by body, over the card's.
        identified: how they were found, where `wmeval fit` found them.
    """

    family: str
    fitted_on: str = Field(min_length=1)
    base: Name = "tuned"
    hz: int | None = Field(default=None, ge=30)
    iterations: int | None = Field(default=None, ge=1)
    restitution_threshold: float | None = Field(default=None, ge=0)
    options: dict[str, JsonValue] = Field(default_factory=dict)
    properties: dict[str, dict[str, float]] = Field(default_factory=dict)
    identified: Identified | None = None


@dataclass(frozen=True)
class Settings:
    """What a world is solved with.

    Attributes:
        name: ``published-settings``, ``tuned`` or ``fitted``.
        hz: steps per second.
        config: of the engine.
        solver, departs: as in `Row`.
        changes: numbers in place of the card's, by body.
        fitted_on: where fitted.
    """

    name: str
    hz: int
    config: EngineConfig
    solver: str
    departs: str = ""
    changes: dict[str, dict[str, float]] = field(default_factory=dict)
    fitted_on: str = ""

    @property
    def dt(self) -> Fraction:
        """Substep [s]."""
        return Fraction(1, self.hz)


def engines_of(card: Family) -> tuple[str, ...]:
    """Engines that have the physics of a family, the default first."""
    return tuple(e for e in ENGINES if e in card.engines and card.engines[e].status != "not_run")


def check_engine(card: Family, engine: str, *, stepped: bool = True) -> None:
    """Whether an engine has the physics of a family.

    Args:
        card: the family.
        engine: which.
        stepped: it must go one step at a time, as an environment does.

    Raises:
        UserError: not so; the message says why and which engines have it.
    """
    able = engines_of(card)
    if engine in able:
        return
    found = card.engines.get(engine)
    if engine in JOB_ENGINES and found is not None and found.status != "not_run":
        if not stepped:
            return
        raise UserError(
            f"GAUGE/{card.env}-v0 cannot be stepped on {engine}, which runs whole jobs: wmeval "
            f"sweep gauge --engines {engine} --tasks {card.id}; step it on {' or '.join(able)}"
        )
    why = found.reason if found is not None and found.reason else "its settings are not known here"
    raise UserError(
        f"GAUGE/{card.env}-v0 does not run on {engine}: {why}; run it on {' or '.join(able)}"
    )


def settings_of(card: Family, engine: str, config: str) -> Settings:
    """Settings of a family on an engine.

    Args:
        card: the family.
        engine: one of `engines_of`.
        config: row of `NAMES`, or the path of a `Fitted` file (`file_of`).

    Raises:
        UserError: no such configuration, or a file that is none or of another family.
    """
    if config in NAMES:
        return _known(card, engine, config)
    if not Path(config).suffix:
        raise UserError(
            f"no configuration {config!r}: choose from {', '.join(NAMES)}, or name a .yaml file of "
            "fitted numbers"
        )
    fit = read_fitted(file_of(config, engine))
    if fit.family != card.id:
        raise UserError(f"{config}: its numbers are of {fit.family}, not of {card.id}")
    return fitted_settings(fit, card, engine)


def fitted_settings(fit: Fitted, card: Family, engine: str) -> Settings:
    """Settings of fitted numbers: over those that their base has for a family.

    Raises:
        UserError: they were identified on another engine.
    """
    of = fit.identified
    if of is not None and of.engine != engine:
        raise UserError(
            f"numbers of {fit.family} that were identified on {of.engine} are not {engine}'s: fit "
            f"them there, as wmeval fit gauge --family {fit.family} --engine {engine}"
        )
    base = _known(card, engine, fit.base)
    changed: dict[str, Any] = {
        name: value
        for name in ("iterations", "restitution_threshold")
        if (value := getattr(fit, name)) is not None
    }
    options = {**base.config.options, **fit.options}
    return Settings(
        "fitted",
        fit.hz or base.hz,
        base.config.model_copy(update={**changed, "options": options}),
        base.solver,
        base.departs,
        fit.properties,
        fit.fitted_on,
    )


def _known(card: Family, engine: str, name: str) -> Settings:
    check_engine(card, engine, stepped=False)
    row = OF_FAMILY.get((name, engine, card.id)) or ROWS.get((name, engine, card.rates))
    if row is None:
        raise UserError(f"{card.id} has no {name} for engine {engine}")
    hz, config, solver = row.hz, row.config, row.solver
    if engine == "genesis" and card.id in _HANGING:
        options = {**config.options, "volume": "fem"}
        config = config.model_copy(update={"options": options})
        if name == PUBLISHED:
            row = replace(row, departs=_HELD)
            solver = "fem, linear corotated"
    return Settings(name, hz, config, solver, row.departs)


def file_of(config: str, engine: str) -> str:
    """The file of a fitted configuration: ``{engine}`` in its name stands for the engine's."""
    return config.replace("{engine}", engine)


def read_fitted(path: str | Path) -> Fitted:
    """Read a fitted configuration.

    Raises:
        UserError: no such file, no YAML, or a wrong field.
    """
    try:
        return Fitted.model_validate(yaml.safe_load(Path(path).read_text("utf-8")))
    except ValidationError as error:
        raise UserError(f"{path}: {first_problem(error)}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: {error}") from error


def regimes(card: Family, subtask: str, material: str, settings: Settings, engine: str,
            built: Built) -> dict[str, JsonValue]:  # fmt: skip
    """What became of measured stiffness: chosen numbers and whether a fall-back stands behind them.

    Args:
        card: the family.
        subtask: of it.
        material: of it.
        settings: by which it is solved.
        engine: that takes them.
        built: the world.
    """
    out: dict[str, JsonValue] = {f"{c.body}.poisson": c.told for c in built.ratios}
    properties = setup_of(card, subtask, material, settings.changes).properties
    for item in built.scene.deformables:
        if isinstance(item, Cloth):
            own: Properties = properties[item.name]
            stretch, hinge = own.number("stretch_stiffness"), own.number("bend_stiffness")
            if engine == "newton":
                rest = rest_shape(item, built.meshes)
                edges = np.unique(
                    np.sort(rest.triangles[:, [[0, 1], [1, 2], [2, 0]]].reshape(-1, 2), axis=1),
                    axis=0,
                )
                along = rest.vertices[edges[:, 1]] - rest.vertices[edges[:, 0]]
                chosen = newton_textile(
                    stretch=stretch, shear=own.number("shear_stiffness"), hinge=hinge,
                    edge_length=float(np.linalg.norm(along, axis=1).mean()),
                )  # fmt: skip
                out[item.name] = {
                    "tri_ke": chosen.tri_ke, "tri_ka": chosen.tri_ka, "edge_ke": chosen.edge_ke,
                    "regime": chosen.regime,
                }  # fmt: skip
            if engine == "genesis":
                out[item.name] = genesis_textile_numbers(
                    item, built.meshes, settings.config.options, settings.hz
                )
    return out
