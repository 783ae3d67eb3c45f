"""An engine's friction and restitution by the real cube tosses.

Every evaluation throws all tosses of the half once, from their measured starts, in worlds that they
share. Each engine's own numbers are looked for: what it takes for friction and for restitution, and
where contacts are soft springs, how soft.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from wmeval.datasets.mocap.contactnets import HALF_WIDTH
from wmeval.datasets.mocap.schema import Mocap, Trial
from wmeval.envs.gauge.configurations import Settings
from wmeval.errors import UserError
from wmeval.eval.fitting.cubes import Start, fly
from wmeval.eval.fitting.search import Parameter
from wmeval.eval.fitting.tosses import BODY, cube_of, start_of
from wmeval.eval.truths.real import toss_errors
from wmeval.sim.engines.engine_options import with_python
from wmeval.sim.protocol import EngineConfig
from wmeval.sim.world import World

LOSS = (
    "mean over the tosses of the centre's distance and half a width times the angle, each a mean "
    "over the frames [mm]"
)
SOFT: dict[str, Parameter] = {
    "newton": Parameter("contact_stiffness", 16.0, 4.0, 64.0, log=True),
    "genesis": Parameter("contact_time", 0.01, 0.002, 0.04, log=True),
}
"""Engines' own option that says how soft contacts are."""


def parameters(engine: str, mocap: Mocap, settings: Settings) -> tuple[Parameter, ...]:
    """What is looked for on an engine, from the authors' numbers on."""
    given = mocap.header.metadata
    soft = SOFT.get(engine)
    own = settings.config.options.get(soft.name) if soft is not None else None
    if soft is not None and isinstance(own, int | float) and soft.low <= own <= soft.high:
        soft = Parameter(soft.name, float(own), soft.low, soft.high, soft.log)
    return (
        Parameter("friction", float(given["friction_fitted"]), 0.02, 0.8),
        Parameter("restitution", float(given["restitution_fitted"]), 0.0, 0.7),
        *((soft,) if soft is not None else ()),
    )


@dataclass
class TossLoss:
    """How far an engine's tosses are from real ones, by the numbers that it is given.

    Attributes:
        engine: row of `wmeval.sim.engines.ENGINES`.
        settings: over which the numbers are laid.
        mocap: the recording; names: of its tosses that count.
        taken: the process' last world.
    """

    engine: str
    settings: Settings
    mocap: Mocap
    names: Sequence[str]
    python: str = ""
    taken: list[World] = field(default_factory=list)

    def __post_init__(self) -> None:
        wanted = set(self.names)
        self.trials: list[Trial] = [t for t in self.mocap.trials if t.name in wanted]
        if not self.trials:
            raise UserError("no toss to fit on")
        self.starts = [Start(start_of(t), t.times - t.times[0]) for t in self.trials]

    def __call__(self, values: dict[str, float]) -> float:
        """The loss [mm]; infinite where a cube leaves its patch."""
        cube = cube_of(self.mocap.header.metadata, _split(self.engine, values)[0])
        flights = fly(
            self.starts, cube, engine=self.engine, config=self._config(values),
            dt=self.settings.dt, taken=self.taken,
        )  # fmt: skip
        found = []
        for trial, flight in zip(self.trials, flights, strict=True):
            if flight is None or not flight.stayed:
                return math.inf
            e = toss_errors(flight.position, flight.quaternion_wxyz, trial)
            found.append(e.mean_position + HALF_WIDTH * e.mean_rotation)
        return 1e3 * float(np.mean(found))

    def _config(self, values: dict[str, float]) -> EngineConfig:
        config = self.settings.config
        options = {**config.options, **_split(self.engine, values)[1]}
        return with_python(config.model_copy(update={"options": options}), self.python)

    def close(self) -> None:
        """Free the last world; idempotent."""
        while self.taken:
            self.taken.pop().close()


def _split(engine: str, values: dict[str, float]) -> tuple[dict[str, float], dict[str, float]]:
    """Numbers of the cube, and options of the engine."""
    own = {SOFT[engine].name} if engine in SOFT else set()
    return (
        {k: v for k, v in values.items() if k not in own},
        {k: v for k, v in values.items() if k in own},
    )


def parts(engine: str, values: dict[str, float]) -> tuple[dict[str, dict[str, float]],
                                                          dict[str, float]]:  # fmt: skip
    """Properties and options of a `Fitted` file."""
    body, options = _split(engine, values)
    return {BODY: body}, options
