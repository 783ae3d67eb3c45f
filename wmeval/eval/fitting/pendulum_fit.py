"""A pendulum's length, mass and damping on an engine, by half of a recording's pieces.

The recording states none of them, so an engine can be scored only fitted. Beside it stand two
fits to the same half without an engine: the linear damped pendulum in closed form, which is right
for small angles only, and the pendulum with sine and dry friction by Runge and Kutta.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import leastsq

from wmeval.datasets.mocap.schema import Trial
from wmeval.envs.gauge.configurations import Settings
from wmeval.errors import UserError
from wmeval.eval.fitting.pendulums import WINDOW, Pendulum, Piece, error, linear_swing, swing
from wmeval.eval.fitting.search import Parameter
from wmeval.eval.truths.real import CONVERGED, fit_pendulum, predict_pendulum
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
UNENDED = " (its fit did not converge)"
FITTED, START = "fitted", "at the start"


def check_driven(trial: Trial) -> None:
    """Refuse a recording that no torque drives: nothing in it tells a mass.

    Raises:
        UserError: the torque is zero throughout.
    """
    if not np.any(trial.signals[:, 2]):
        raise UserError(
            f"trial {trial.name!r}: its torque is zero throughout, and only a torque tells a mass: "
            "give the motor's, in N m"
        )


def remarks(trial: Trial, engine: str, others: Mapping[str, float]) -> list[str]:
    """What a user should look at before believing a fit.

    Args:
        trial: the recording.
        engine: which was fitted.
        others: losses on the other half, as in the file of the fit.
    """
    out = []
    most = float(np.abs(trial.signals[:, 0]).max())
    if most > 2 * math.pi:
        out.append(
            f"angles go up to {most:.4g} rad, more than a turn: radians are wanted; are these "
            "degrees?"
        )
    out += [f"on the other half it runs away: {k}" for k, v in others.items() if not v < math.inf]
    fitted, start = (others.get(f"{engine}, {x}", math.nan) for x in (FITTED, START))
    if not fitted < start:
        out.append("the fit is no better than the start on the other half: do not use it")
    return out


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

    others = [given[r] for r in rest]
    # What runs away on the way to the best is told by its loss.
    with np.errstate(over="ignore", invalid="ignore"):
        best, *_, state = leastsq(
            off, np.log(np.array([0.15, 0.05, 2.8])), xtol=1e-8, ftol=1e-10, full_output=True
        )
        i, b, k = np.exp(best).tolist()
        linear = error([linear_swing(i, b, k, p) for p in others], others)
    full = fit_pendulum(trial, window=WINDOW, chosen=fitted)
    predicted, measured = predict_pendulum(full, trial, window=WINDOW, chosen=rest)
    rms = np.sqrt(np.mean((predicted - measured) ** 2, axis=1))
    return {
        LINEAR + ("" if state in CONVERGED else UNENDED): _degrees(linear),
        FULL + ("" if full.converged else UNENDED): _degrees(rms),
    }
