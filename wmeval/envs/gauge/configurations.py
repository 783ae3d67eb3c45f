"""How GAUGE's families are solved: three configurations, never mixed.

- ``published-settings``: 180 steps a second (900 for volumes), every engine's defaults, GAUGE's
  mapping of measured stiffness with its fall-backs (4.2, eqs. 4-12).
- ``tuned``: by the material card, by convergence in the step and by the conformance suite, never by
  what a task should come to: more and shorter steps, solvers whose suite's ball bounces as asked,
  contacts whose restitution is the card's, no rotor inertia that is not there
  (`wmeval.envs.gauge.solver_rows` says of each row what it was chosen by).
- a file (`Fitted`): numbers identified on a stated half of real data, to be scored on the other.

What was chosen, and in which regime, goes into results.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import Field, JsonValue, ValidationError

from wmeval.assets.gauge_cards import Family
from wmeval.envs.gauge.build import Built
from wmeval.envs.gauge.changes import check_changes
from wmeval.envs.gauge.solver_rows import OF_FAMILY, PUBLISHED, ROWS, TUNED
from wmeval.envs.gauge.textile_numbers import (
    genesis_textile_numbers,
    isaac_textile_numbers,
    newton_textile_numbers,
)
from wmeval.errors import UserError, first_problem, what_of
from wmeval.scene import Card, Cloth
from wmeval.sim.engines import ENGINES as ALL_ENGINES
from wmeval.sim.engines import engine_info
from wmeval.sim.protocol import EngineConfig

Name = Literal["published-settings", "tuned"]
NAMES: tuple[str, ...] = (PUBLISHED, TUNED)
ENGINES = ("bullet", "physx", "newton", "genesis")
"""Engines whose settings are known here, in the order in which a default is looked for."""
JOB_ENGINES = ("isaac",)
"""Engines that run whole jobs: sweeps have them, environments that are stepped do not."""

PAPER_VERSIONS = {"genesis": "1.12.0", "newton": "1.3.0", "isaac": "6.0.0"}
"""What the published results were made with (GAUGE, 4.2)."""


class Identified(Card):
    """How fitted numbers were found.

    Attributes:
        engine, version: on which they were; they are no other engine's.
        data: name of the recording; sha256: of its file.
        half: which half, as it was asked for; trials: its names, which are never scored.
        used: those of them that the loss was of; files that name none do not say.
        parameters: what was found; start: from where; bounds: of the search.
        loss: what was made least; loss_before, loss_after: at the start and at what was found.
        improved: something better than the start was found; if not, that is what stands here.
        other_half: the loss on the trials that were not fitted on, of the engine and of what it is
            compared with; empty where the sweep scores them.
        evaluations: of the loss; asked: how many it could have; optimizer: which; seed: of it.
        remarks: what to look at before the numbers are used.
    """

    engine: str
    version: str = ""
    data: str
    sha256: str
    half: str
    trials: tuple[str, ...] = Field(min_length=1)
    used: tuple[str, ...] = ()
    parameters: dict[str, float]
    start: dict[str, float]
    bounds: dict[str, tuple[float, float]]
    loss: str
    loss_before: float
    loss_after: float
    improved: bool = True
    other_half: dict[str, float] = Field(default_factory=dict)
    evaluations: int = Field(ge=1)
    asked: int | None = None
    optimizer: str
    seed: int = 0
    remarks: tuple[str, ...] = ()


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
        solver, departs: as in `wmeval.envs.gauge.solver_rows.Row`.
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


def chained(engine: str) -> bool:
    """Whether a rope is a chain of links to an engine, which has no ropes."""
    return "rope" not in engine_info(engine).body_kinds


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
    if engine not in ALL_ENGINES:
        raise UserError(f"{card.id}: no engine {engine!r}: choose from {', '.join(able)}")
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
        UserError: no such configuration, or a file that is none, of another family, or with
            numbers that none of its bodies takes.
    """
    if config in NAMES:
        return _known(card, engine, config)
    if not isinstance(config, str):
        raise UserError(
            f"config = {config!r}: give {' or '.join(NAMES)}, or the name of a .yaml file"
        )
    if not Path(config).suffix:
        raise UserError(
            f"no configuration {config!r}: choose from {', '.join(NAMES)}, or name a .yaml file of "
            "fitted numbers"
        )
    fit = read_fitted(file_of(config, engine))
    if fit.family != card.id:
        raise UserError(f"{config}: its numbers are of {fit.family}, not of {card.id}")
    try:
        check_changes(card, fit.properties)
    except UserError as error:
        raise UserError(f"{file_of(config, engine)}: {error}") from error
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
    return Settings(name, row.hz, row.config, row.solver, row.departs)


def file_of(config: str, engine: str) -> str:
    """The file of a fitted configuration: ``{engine}`` in its name stands for the engine's."""
    return config.replace("{engine}", engine)


def read_fitted(path: str | Path) -> Fitted:
    """Read a fitted configuration.

    Raises:
        UserError: no such file, no YAML, or a wrong field.
    """
    try:
        return _fitted(Path(path).read_text("utf-8"))
    except ValidationError as error:
        raise UserError(f"{path}: {first_problem(error)}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"{path}: {what_of(error)}") from error


@lru_cache(maxsize=16)
def _fitted(text: str) -> Fitted:
    """A sweep asks for every point of its grid; trials' names make the files long."""
    return Fitted.model_validate(yaml.safe_load(text))


def regimes(engine: str, config: EngineConfig, dt: Fraction, built: Built) -> dict[str, JsonValue]:
    """What became of measured stiffness: chosen numbers and whether a fall-back stands behind them.

    Args:
        engine: that takes them.
        config: by which it does, with everything that a user or a grid put over it.
        dt: substep [s].
        built: the world.
    """
    out: dict[str, JsonValue] = {f"{c.body}.poisson": c.told for c in built.ratios}
    for item in built.scene.deformables:
        if not isinstance(item, Cloth):
            continue
        if engine == "newton":
            out[item.name] = newton_textile_numbers(item, built.meshes, config.options)
        elif engine == "genesis":
            out[item.name] = genesis_textile_numbers(item, built.meshes, config.options, dt)
        elif engine == "isaac":
            out[item.name] = isaac_textile_numbers(item)
    return out
