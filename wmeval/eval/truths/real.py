"""Real measurements as truth: cube tosses from their first instants, a pendulum fitted on one half.

Tumbling is chaotic: a toss is simulated from several initial states drawn from a declared noise,
and engines whose errors differ by less than the spread of these are tied. The pendulum's recording
states no mass, length or damping: they are identified on its first half and scored on the second.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import leastsq

from wmeval.datasets.mocap.contactnets import TossState, lowest_corner
from wmeval.datasets.mocap.schema import Trial
from wmeval.errors import UserError

F8 = NDArray[np.float64]

# --- cube tosses ----------------------------------------------------------------------------------


def rotation_error(candidate_wxyz: F8, reference_wxyz: F8) -> F8:
    """Geodesic angle between unit quaternions (..., 4), (...) [rad]; range [0, pi]."""
    a = np.asarray(candidate_wxyz, np.float64)
    b = np.asarray(reference_wxyz, np.float64)
    # The vector part of a^-1 b keeps small angles that the arccosine would lose.
    w = (a * b).sum(axis=-1)
    v = a[..., :1] * b[..., 1:] - b[..., :1] * a[..., 1:] - np.cross(a[..., 1:], b[..., 1:])
    out: F8 = 2 * np.arctan2(np.linalg.norm(v, axis=-1), np.abs(w))
    return out


@dataclass(frozen=True, eq=False)
class TossErrors:
    """A simulated toss against the real one, by frame.

    Attributes:
        position: (N,) distance of the centres [m]; rotation: (N,) [rad].
        penetration: (N,) depth of the lowest corner below the board [m].
        real_penetration: (N,) of the recording itself [m]: what its calibration leaves.
    """

    position: F8
    rotation: F8
    penetration: F8
    real_penetration: F8

    @property
    def mean_position(self) -> float:
        """Mean over the measured frames [m]."""
        return float(np.nanmean(self.position))

    @property
    def mean_rotation(self) -> float:
        """Mean over the measured frames [rad]."""
        return float(np.nanmean(self.rotation))


def toss_errors(
    positions: F8, quaternions_wxyz: F8, trial: Trial, *, ground: float = 0.0
) -> TossErrors:
    """Errors of a simulated toss at the recording's own frames.

    Args:
        positions: (N, 3) of the cube's centre [m].
        quaternions_wxyz: (N, 4).
        trial: the real toss, N frames.
        ground: height of the board [m].

    Raises:
        UserError: another number of frames.
    """
    x, q = np.asarray(positions, np.float64), np.asarray(quaternions_wxyz, np.float64)
    if x.shape != (len(trial), 3) or q.shape != (len(trial), 4):
        raise UserError(
            f"toss {trial.name!r} has {len(trial)} frames; the simulation has {x.shape}, {q.shape}"
        )
    real_x, real_q = trial.positions[:, 0], trial.quaternions_wxyz[:, 0]

    def depth(p: F8, r: F8) -> F8:
        out: F8 = np.maximum(0.0, ground - lowest_corner(p, r))
        return out

    return TossErrors(
        np.linalg.norm(x - real_x, axis=1), rotation_error(q, real_q),
        depth(x, q), depth(real_x, real_q),
    )  # fmt: skip


@dataclass(frozen=True)
class TossSigma:
    """Declared noise of a toss' first state: standard deviations per axis.

    Attributes:
        position: [m]; rotation: [rad]; linear: [m/s]; angular: [rad/s].
    """

    position: float = 5e-4
    rotation: float = 5e-3
    linear: float = 0.02
    angular: float = 0.1


def toss_draws(
    state: TossState, sigma: TossSigma, *, count: int = 16, seed: int = 0, toss: int = 0
) -> tuple[TossState, ...]:
    """Initial states of one toss: the measured one, then ``count`` - 1 drawn about it.

    The same seed and toss number give the same states, whatever else is drawn.
    """
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(toss,))))
    out = [state]
    for _ in range(count - 1):
        turn = random.normal(0, sigma.rotation, 3)
        angle = float(np.linalg.norm(turn))
        axis = turn / angle if angle else turn
        half = np.array([np.cos(angle / 2), *(np.sin(angle / 2) * axis)])
        out.append(
            TossState(
                state.position + random.normal(0, sigma.position, 3),
                _product(half, state.quaternion_wxyz),
                state.linear + random.normal(0, sigma.linear, 3),
                state.angular + random.normal(0, sigma.angular, 3),
                sigma.position, sigma.linear, sigma.angular,
            )
        )  # fmt: skip
    return tuple(out)


def _product(a: F8, b: F8) -> F8:
    w = a[0] * b[0] - a[1:] @ b[1:]
    v = a[0] * b[1:] + b[0] * a[1:] + np.cross(a[1:], b[1:])
    return np.array([w, *v])


def draw_spread(positions: F8) -> F8:
    """Root mean square distance of K draws (K, N, 3) from their mean, by frame (N,) [m]."""
    x = np.asarray(positions, np.float64)
    out: F8 = np.sqrt(((x - x.mean(axis=0)) ** 2).sum(axis=2).mean(axis=0))
    return out


def tied(first: float, second: float, spread: float) -> bool:
    """Whether two errors differ by less than the draws' spread: no ranking is claimed then."""
    return abs(first - second) < spread


# --- the pendulum ---------------------------------------------------------------------------------


@dataclass(frozen=True)
class PendulumFit:
    """I th'' = tau - b th' - c sign(th') - k sin th.

    Attributes:
        inertia: I [kg m^2]; damping: b [N m s]; coulomb: c [N m]; weight: k = m g l [N m].
        converged: whether the search for them came to an end.
    """

    inertia: float
    damping: float
    coulomb: float
    weight: float
    converged: bool = True


def half_of(trial: Trial, part: int) -> Trial:
    """First (0) or second (1) half of a recording, by frames."""
    middle = len(trial) // 2
    rows = slice(0, middle) if part == 0 else slice(middle, None)
    return Trial(
        f"{trial.name}[{part}]", trial.times[rows], trial.positions[rows],
        trial.quaternions_wxyz[rows], trial.markers[rows], trial.signals[rows],
        metadata=trial.metadata,
    )  # fmt: skip


_START = (0.15, 0.05, 0.05, 2.8)
"""Where the search for a pendulum of about half a metre and half a kilogram begins."""

_EDGE = 0.05
"""Rate over which Coulomb friction turns its sign, so that the fit is smooth [rad/s]."""


def pieces(trial: Trial, window: float) -> tuple[NDArray[np.intp], int]:
    """First samples of the pieces that a recording is cut into, and their length in samples.

    Raises:
        UserError: fewer than three pieces, or fewer than three samples in one.
    """
    step = float(np.median(np.diff(trial.times)))
    if 3 * step > window * (1 + 1e-6):
        raise UserError(
            f"trial {trial.name!r}: its samples are {step:.3g} s apart, too coarse for pieces of "
            f"{window:g} s: is the time in seconds?"
        )
    length = max(3, round(window / step))
    count = (len(trial) - 1) // length
    if count < 3:
        raise UserError(
            f"trial {trial.name!r}: {len(trial)} samples are too short for pieces of {window:g} s"
        )
    return np.arange(count) * length, length


def predict_pendulum(
    fit: PendulumFit, trial: Trial, *, window: float = 0.4, chosen: Sequence[int] | None = None
) -> tuple[F8, F8]:
    """Predicted and measured angles of each piece (K, L) [rad], from its first measured state.

    Each piece begins at the measured angle, and at the slope of a cubic through the angles
    within 50 ms (the recorded rate is noisy), and runs under the recorded torque.

    Args:
        fit: the parameters.
        trial: signals position [rad], velocity [rad/s], torque [N m].
        window: length of a piece [s].
        chosen: numbers of pieces; None: all.
    """
    starts, length = pieces(trial, window)
    starts = starts if chosen is None else starts[list(chosen)]
    t, angle, torque = trial.times, trial.signals[:, 0], trial.signals[:, 2]
    y = angle[starts].copy()
    rate = np.array([slope(t, angle, int(k)) for k in starts])

    def turn(y: F8, rate: F8, drive: F8) -> F8:
        drag = fit.damping * rate + fit.coulomb * np.tanh(rate / _EDGE)
        out: F8 = (drive - drag - fit.weight * np.sin(y)) / fit.inertia
        return out

    track = [y]
    for k in range(length):
        # Runge and Kutta, all pieces at once; the torque is linear between samples.
        at = starts + k
        h = t[at + 1] - t[at]
        here, there = torque[at], torque[at + 1]
        middle = (here + there) / 2
        v1, a1 = rate, turn(y, rate, here)
        v2, a2 = rate + h / 2 * a1, turn(y + h / 2 * v1, rate + h / 2 * a1, middle)
        v3, a3 = rate + h / 2 * a2, turn(y + h / 2 * v2, rate + h / 2 * a2, middle)
        v4, a4 = rate + h * a3, turn(y + h * v3, rate + h * a3, there)
        y = y + h / 6 * (v1 + 2 * v2 + 2 * v3 + v4)
        rate = rate + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        track.append(y)
    measured = np.stack([angle[starts + k] for k in range(length + 1)], axis=1)
    return np.stack(track, axis=1), measured


def slope(t: F8, angle: F8, at: int, within: float = 0.05) -> float:
    """Rate of an angle at a sample, by a cubic through those within 50 ms."""
    near = np.abs(t - t[at]) <= within
    x = t[near] - t[at]
    degree = min(3, int(near.sum()) - 1)
    return float(np.polyfit(x, angle[near], degree)[-2]) if degree else 0.0


CONVERGED = (1, 2, 3, 4)
"""What MINPACK says of a search that came to an end."""


def fit_pendulum(
    trial: Trial, *, window: float = 0.4, chosen: Sequence[int] | None = None
) -> PendulumFit:
    """Parameters of a torque-driven pendulum by multiple shooting (ours).

    The recording is cut into pieces; the four parameters, kept positive, minimise the squared
    differences of predicted and measured angles over all of them (`predict_pendulum`). A regression
    of the recorded rates and torques would be linear, but their noise biases it beyond use.

    Args:
        trial: signals position [rad], velocity [rad/s], torque [N m].
        window: length of a piece [s].
        chosen: numbers of the pieces that count; None: all.

    Raises:
        UserError: too short, or the pendulum does not move.
    """
    pieces(trial, window)
    if not np.ptp(trial.signals[:, 0]) > 0.05:
        raise UserError(f"trial {trial.name!r}: it does not move: nothing can be fitted")

    def made(p: F8, converged: bool = True) -> PendulumFit:
        inertia, damping, coulomb, weight = np.exp(np.clip(p, -25, 6)).tolist()
        return PendulumFit(inertia, damping, coulomb, weight, converged)

    def off(p: F8) -> F8:
        found, measured = predict_pendulum(made(p), trial, window=window, chosen=chosen)
        # A parameter far off may run away: it is wrong enough at 100 rad.
        return np.clip(np.nan_to_num(found - measured, nan=100.0), -100.0, 100.0).ravel()

    with np.errstate(over="ignore", invalid="ignore"):
        best, *_, state = leastsq(
            off, np.log(np.array(_START)), xtol=1e-8, ftol=1e-10, full_output=True
        )
    return made(best, state in CONVERGED)
