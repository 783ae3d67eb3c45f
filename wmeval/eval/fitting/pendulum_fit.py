"""A pendulum's length, mass and damping on an engine, by half of a recording's pieces.

The recording states none of them, so an engine can be scored only fitted. Beside it stand two
fits to the same half without an engine: the linear damped pendulum in closed form, which is right
for small angles only, and the pendulum with sine and dry friction by Runge and Kutta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import leastsq

from wmeval.datasets.mocap.schema import Trial
from wmeval.envs.gauge.configurations import Settings
from wmeval.eval.fitting.pendulums import WINDOW, Pendulum, Piece, error, linear_swing, swing
from wmeval.eval.fitting.search import Parameter
from wmeval.eval.truths.real import fit_pendulum, predict_pendulum
from wmeval.sim.engines.engine_options import with_python
from wmeval.sim.world import World

F8 = NDArray[np.float64]

FAMILY = "driven_pendulum"
LIKE = "pendulum"
"""The family whose settings it is run with."""
BODY = "ball"
LOSS = "mean over the pieces of the root mean square error of the angle [deg]"
PARAMETERS = (
    Parameter("length", 0.5, 0.1, 1.5, log=True),
    Parameter("mass", 0.5, 0.1, 3.0, log=True),
    Parameter("damping", 0.05, 1e-3, 1.0, log=True),
)
LINEAR = "linear damped pendulum, closed form"
FULL = "pendulum with dry friction, Runge-Kutta"


@dataclass
class PendulumLoss:
    """How far an engine's pendulum is from the measured one.

    Attributes:
        engine, settings: how it is solved.
        python: interpreter of the engine; "": the installed one.
        taken: the process' last world.
    """

    engine: str
    settings: Settings
    python: str = ""
    taken: list[World] = field(default_factory=list)

    def of(self, values: dict[str, float], given: Sequence[Piece]) -> float:
        """The loss over pieces [deg]; infinite where a state is not finite."""
        found = swing(
            Pendulum(**values), given, engine=self.engine,
            config=with_python(self.settings.config, self.python), dt=self.settings.dt,
            taken=self.taken,
        )  # fmt: skip
        return _degrees(error(found, given))

    def close(self) -> None:
        """Free the last world; idempotent."""
        while self.taken:
            self.taken.pop().close()


def _degrees(errors: F8) -> float:
    return math.degrees(float(np.mean(errors)))


def baselines(trial: Trial, given: Sequence[Piece], fitted: Sequence[int]) -> dict[str, float]:
    """Losses on the pieces that were not fitted on, of fits without an engine [deg].

    Args:
        trial: the recording.
        given: all its pieces.
        fitted: numbers of those that are fitted on.
    """
    rest = [k for k in range(len(given)) if k not in set(fitted)]
    own = [given[k] for k in fitted]

    def off(p: F8) -> F8:
        i, b, k = np.exp(np.clip(p, -20, 6)).tolist()
        made = [linear_swing(i, b, k, piece) - piece.angles for piece in own]
        out: F8 = np.clip(np.nan_to_num(np.concatenate(made), nan=100.0), -100.0, 100.0)
        return out

    best, *_ = leastsq(off, np.log(np.array([0.15, 0.05, 2.8])), xtol=1e-8, ftol=1e-10)
    i, b, k = np.exp(best).tolist()
    others = [given[r] for r in rest]
    linear = error([linear_swing(i, b, k, p) for p in others], others)
    full = fit_pendulum(trial, window=WINDOW, chosen=fitted)
    predicted, measured = predict_pendulum(full, trial, window=WINDOW, chosen=rest)
    rms = np.sqrt(np.mean((predicted - measured) ** 2, axis=1))
    return {LINEAR: _degrees(linear), FULL: _degrees(rms)}
