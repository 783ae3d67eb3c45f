"""What a recording of cube tosses says of itself: noise, gravity, ruler, and how rates were made.

Everything follows from free flights and from cubes at rest, so that it tells of the measurement and
of no engine: a flight is a parabola with a constant turning (the cube's inertia is isotropic), and
a cube at rest lies on a face, half a width above the board.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.datasets.mocap.contactnets import GRAVITY, HALF_WIDTH, lowest_corner
from wmeval.datasets.mocap.schema import Mocap, Trial
from wmeval.errors import UserError

F8 = NDArray[np.float64]

CLEAR = 0.003
"""Height of the lowest corner from which a cube counts as in the air [m]."""
LEAST_FRAMES = 8
"""Of a flight that counts."""
STILL = 0.001
"""How far a cube at rest moves in its last four frames at most [m]."""


@dataclass(frozen=True, eq=False)
class TossRecording:
    """What the recording says of itself.

    Attributes:
        flights: how many are long enough.
        gravity: downward acceleration of all flights [m/s^2], with its 95 % interval over them.
        position_sigma: residual of the parabolas, per axis [m].
        rotation_sigma: residual of constant turning, per axis [rad].
        linear_sigma: of a velocity from the first six frames, per axis [m/s].
        angular_sigma: of an angular velocity from the first six frames, per axis [rad/s].
        velocity_lag: by how much the recorded velocities are late [s]: half a frame for backward
            differences.
        rest_heights: of the centre at rest on each of the six faces [m]; NaN where on none.
        lowest: of all corners in all frames [m]; median_lowest: of the tosses' lowest.
    """

    flights: int
    gravity: tuple[float, float, float]
    position_sigma: float
    rotation_sigma: float
    linear_sigma: float
    angular_sigma: float
    velocity_lag: float
    rest_heights: tuple[float, ...]
    lowest: float
    median_lowest: float

    @property
    def length_scale(self) -> tuple[float, float]:
        """Recorded over true lengths: by free fall, and by the height at rest."""
        return self.gravity[0] / GRAVITY, float(np.nanmean(self.rest_heights)) / HALF_WIDTH


@dataclass(frozen=True, eq=False)
class _Flight:
    gravity: float
    weight: float
    position: F8
    turning: F8
    lag: float


def describe(mocap: Mocap) -> TossRecording:
    """Measure a recording of cube tosses by itself.

    Raises:
        UserError: fewer than two flights are long enough.
    """
    flights = [f for t in mocap.trials if (f := _flight(t)) is not None]
    if len(flights) < 2:
        raise UserError(f"{mocap.header.title!r}: fewer than two free flights to measure it by")
    weights = np.array([f.weight for f in flights])
    gravity = np.array([f.gravity for f in flights])
    fall = _weighted(gravity, weights)
    position = _rms([f.position for f in flights])
    turning = _rms([f.turning for f in flights])
    rate = float(np.median(np.diff(mocap.trials[0].times)))
    # Standard error of a slope over six frames, with the unknown start.
    slope = 1 / (rate * float(np.sqrt(((np.arange(6) - 2.5) ** 2).sum())))
    lowest = [float(lowest_corner(t.positions[:, 0], t.quaternions_wxyz[:, 0]).min())
              for t in mocap.trials]  # fmt: skip
    return TossRecording(
        len(flights), fall, position, turning, position * slope, turning * slope,
        float(np.median([f.lag for f in flights])), _rest_heights(mocap),
        min(lowest), float(np.median(lowest)),
    )  # fmt: skip


def _weighted(values: F8, weights: F8, resamples: int = 2000) -> tuple[float, float, float]:
    """Weighted mean with its 95 % percentile interval over resampled flights."""
    random = np.random.Generator(np.random.PCG64(0))
    rows = random.integers(0, len(values), (resamples, len(values)))
    means = (weights * values)[rows].sum(axis=1) / weights[rows].sum(axis=1)
    low, high = np.percentile(means, (2.5, 97.5)).tolist()
    return float((weights * values).sum() / weights.sum()), low, high


def _rms(parts: list[F8]) -> float:
    return float(np.sqrt(np.mean(np.concatenate([p.ravel() for p in parts]) ** 2)))


def _flight(trial: Trial) -> _Flight | None:
    p, q = trial.positions[:, 0], trial.quaternions_wxyz[:, 0]
    touching = lowest_corner(p, q) < CLEAR
    count = int(np.argmax(touching)) if touching.any() else len(trial)
    if count < LEAST_FRAMES:
        return None
    t = trial.times[:count] - trial.times[0]
    basis = np.stack([np.ones(count), t, t**2 / 2], axis=1)
    found, *_ = np.linalg.lstsq(basis, p[:count], rcond=None)
    # Unbiased: three numbers of each axis are the fit's.
    off = (p[:count] - basis @ found) * np.sqrt(count / (count - 3))
    weight = 1 / float(np.linalg.inv(basis.T @ basis)[2, 2])
    lag = float("nan")
    if trial.linear_velocities is not None:
        down = trial.linear_velocities[:count, 0, 2] - (found[1, 2] + found[2, 2] * t)
        lag = float(np.mean(down)) / -float(found[2, 2])
    return _Flight(-float(found[2, 2]), weight, off, _turning(t, q[:count]), lag)


def _turning(t: F8, q: F8) -> F8:
    """Residuals (N, 3) of orientations about a constant turning [rad], to first order in them."""
    base = q[len(q) // 2]
    w = (base * q).sum(axis=1)
    v = base[0] * q[:, 1:] - q[:, :1] * base[1:] + np.cross(q[:, 1:], base[1:])
    sign = np.where(w < 0, -1.0, 1.0)
    size = np.linalg.norm(v, axis=1)
    angle = 2 * np.arctan2(size, np.abs(w))
    vector = v * (sign * np.where(size > 1e-12, angle / np.maximum(size, 1e-12), 2.0))[:, None]
    basis = np.stack([np.ones(len(t)), t - t[len(q) // 2]], axis=1)
    found, *_ = np.linalg.lstsq(basis, vector, rcond=None)
    out: F8 = (vector - basis @ found) * np.sqrt(len(t) / (len(t) - 2))
    return out


def _rest_heights(mocap: Mocap) -> tuple[float, ...]:
    heights: list[list[float]] = [[] for _ in range(6)]
    for trial in mocap.trials:
        p, (w, x, y, z) = trial.positions[:, 0], trial.quaternions_wxyz[-1, 0]
        if len(p) < 4 or float(np.linalg.norm(p[-1] - p[-4])) > STILL:
            continue
        up = np.array([2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z])
        axis = int(np.argmax(np.abs(up)))
        if abs(up[axis]) > np.cos(0.05):
            heights[2 * axis + int(up[axis] < 0)].append(float(p[-1, 2]))
    return tuple(float(np.mean(h)) if h else float("nan") for h in heights)
