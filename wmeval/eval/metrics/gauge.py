"""GAUGE's metrics: generalised trajectories, rests, momentum, periods, energy, baselines.

Source: GAUGE, sections 3.2.2 and 3.3.2, appendices B.1 and C.3. Two periods and two momentum
transfers stand there under one name each; they are kept apart here: `pd_fourier` (engine track) and
`pd_fit` (video track, eq. 45), `mte_first` (eq. 16) and `mte_mean` (eq. 39). The
video track's two are for recordings of clips; sweeps have the engine track's, and the period itself
by `wmeval.eval.metrics.crossings`. RMSE and the
path-normalised DTW (eq. 2) are those of `wmeval.eval.metrics.trajectory`, on g(t) as (T, D).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import leastsq

from wmeval.assets.gauge_cards import Quantity
from wmeval.errors import UserError
from wmeval.eval.metrics.trajectory import jointly_valid, rmse, warp

F8 = NDArray[np.float64]

STILL_HEIGHT = 0.5e-3
"""eps_z of eq. 15 [m]."""

STILL_SPEED = 5e-3
"""v_th of eq. 15 [m/s]."""

SCALES: Mapping[Quantity, float] = {"position": 1e3, "curvature": 1.0, "area": 1e6}
"""From SI to the published units: mm, rad, mm^2."""


def generalised(values: F8, quantity: Quantity) -> F8:
    """g(t) of eq. 1 in the published unit, (T, D): P [mm], K [rad] or A [mm^2].

    Args:
        values: SI values (T, ...); all that follows time becomes one vector.
        quantity: what they are.
    """
    g = np.asarray(values, np.float64)
    out: F8 = g.reshape(len(g), -1) * SCALES[quantity]
    return out


# --- rests and momentum ---------------------------------------------------------------------------


def longest_rest(
    positions: F8,
    rate: float,
    *,
    velocities: F8 | None = None,
    height: float = STILL_HEIGHT,
    speed: float = STILL_SPEED,
) -> float:
    """LSD: longest run S of frames with max z - min z <= eps_z and |v| <= v_th (eq. 15) [s].

    Range [0, T / rate], the reference's value is best. |S| / f_s, |S| the number of frames. A frame
    that is not measured ends a run; NaN when none is measured.

    Args:
        positions: (T, 3) [m], z up.
        rate: f_s [1/s].
        velocities: (T, 3) [m/s]; central differences of the positions where not given, which makes
            the frames beside a motion count as moving.
        height: eps_z [m].
        speed: v_th [m/s].
    """
    x = np.asarray(positions, np.float64)
    measured = np.isfinite(x).all(axis=1)
    if not measured.any():
        return float("nan")
    if velocities is not None:
        v = np.asarray(velocities, np.float64)
    else:
        v = np.gradient(x, 1 / rate, axis=0) if len(x) > 1 else np.zeros_like(x)
    with np.errstate(invalid="ignore"):
        still = measured & (np.linalg.norm(v, axis=1) <= speed)
    z = x[:, 2]
    best = begin = 0
    for end in range(len(z)):
        if not still[end]:
            begin = end + 1
            continue
        # The window's range grows with it: drop frames from its start until it fits.
        while np.ptp(z[begin : end + 1]) > height:
            begin += 1
        best = max(best, end - begin + 1)
    return best / rate


def parabola_peak(values: F8, at: int) -> tuple[float, float]:
    """Place (frames) and value of the parabola's top through three frames around ``at``."""
    if not 0 < at < len(values) - 1:
        return float(at), float(values[at])
    left, here, right = (float(v) for v in values[at - 1 : at + 2])
    bend = left - 2 * here + right
    if not bend < 0:
        return float(at), here
    shift = (left - right) / (2 * bend)
    return at + shift, here - (left - right) * shift / 4


def peaks(values: F8, *, floor: float = 0.0, apart: int = 1) -> list[int]:
    """Frames of the local maxima above ``floor``, the higher first chosen, ``apart`` frames apart.

    A start that falls, and an end that rises, are no peaks here. Of equal neighbours the first.
    """
    z = np.asarray(values, np.float64)
    found = [
        k for k in range(1, len(z) - 1) if z[k] > floor and z[k] > z[k - 1] and z[k] >= z[k + 1]
    ]
    kept: list[int] = []
    for k in sorted(found, key=lambda k: -z[k]):
        if all(abs(k - other) >= apart for other in kept):
            kept.append(k)
    return sorted(kept)


def mte_first(
    incoming: F8, outgoing: F8, *, rest_in: float, rest_out: float, floor: float = STILL_HEIGHT
) -> float:
    """MTE = sqrt(dH_out / dH_in) of the first impact (eq. 16) [1].

    Range [0, inf), 1 is lossless. dH_in: the incoming ball's first height above its equilibrium;
    dH_out: the highest that the outgoing ball reaches in its first excursion, between the frames.
    0 where it never rises by ``floor``; NaN where the incoming ball is not raised, or frames that
    are not measured hide whether the other rises, or how high.

    Args:
        incoming: heights (T,) of the ball that is let go [m].
        outgoing: heights (T,) of the last ball [m].
        rest_in: height of the former at equilibrium [m].
        rest_out: of the latter [m].
        floor: what counts as an excursion [m].
    """
    drop = float(incoming[0]) - rest_in
    if not drop > 0:
        return float("nan")
    rise = np.asarray(outgoing, np.float64) - rest_out
    up = np.flatnonzero(rise > floor)
    if not len(up):
        return 0.0 if np.isfinite(rise).all() else float("nan")
    begin = int(up[0])
    back = np.flatnonzero(rise[begin:] <= floor)
    end = begin + int(back[0]) if len(back) else len(rise)
    _, top = parabola_peak(rise, begin + int(np.argmax(rise[begin:end])))
    return math.sqrt(top / drop)


def mte_mean(
    outgoing: F8, *, drop: float, rest_out: float, rate: float,
    floor: float = STILL_HEIGHT, apart: float = 0.3,
) -> tuple[float, int]:  # fmt: skip
    """MTE = mean over apex events of sqrt(h_R,i / h_L) (eqs. 38, 39), and their number.

    Range [0, inf), 1 is lossless. NaN, 0 when there is no apex.

    Args:
        outgoing: heights (T,) [m].
        drop: h_L [m].
        rest_out: height at equilibrium [m].
        rate: frames per second.
        floor: lowest height of an apex [m].
        apart: least time between two [s].
    """
    rise = np.asarray(outgoing, np.float64) - rest_out
    events = peaks(rise, floor=floor, apart=max(1, math.ceil(apart * rate)))
    if not events or not drop > 0:
        return float("nan"), 0
    tops = [parabola_peak(rise, k)[1] for k in events]
    return float(np.mean(np.sqrt(np.array(tops) / drop))), len(events)


# --- periods --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class FourierPeriod:
    """Period by the spectrum.

    Attributes:
        raw: 1 / the frequency of the highest bin [s]: GAUGE's reading.
        resolution: periods of the bins beside it, (longer, shorter) [s]; raw knows none between.
    """

    raw: float
    resolution: tuple[float, float]


def pd_fourier(signal: F8, rate: float) -> FourierPeriod:
    """PD of the engine track: reciprocal of the dominant frequency (GAUGE B.1) [s].

    It knows the bins of a record's length only; `crossings.pd_crossings` tells the period itself.

    Take a coordinate that swings once a period (`swing_coordinate`), not the height, which swings
    twice. All NaN for fewer than four frames, a frame that is not measured, or no motion.
    """
    x = np.asarray(signal, np.float64)
    nothing = FourierPeriod(float("nan"), (float("nan"), float("nan")))
    if len(x) < 4 or not np.isfinite(x).all() or np.ptp(x) == 0:
        return nothing
    length = len(x) / rate
    centred = x - x.mean()
    k = 1 + int(np.argmax(np.abs(np.fft.rfft(centred))[1:]))
    longer = length / (k - 1) if k > 1 else math.inf
    return FourierPeriod(length / k, (longer, length / (k + 1)))


def swing_coordinate(positions: F8) -> F8:
    """Coordinate along the principal horizontal direction of a motion, (T,) [m].

    NaN in frames that are not measured.
    """
    plane = np.asarray(positions, np.float64)[:, :2]
    good = np.isfinite(plane).all(axis=1)
    if not good.any():
        return np.full(len(plane), np.nan)
    centred = plane - plane[good].mean(axis=0)
    _, _, directions = np.linalg.svd(centred[good], full_matrices=False)
    out: F8 = centred @ directions[0]
    return out


@dataclass(frozen=True)
class FittedSwing:
    """A damped sinusoid (eq. 43).

    Attributes:
        period: 2 pi / w_d [s] (eq. 45).
        damping: beta [1/s]; negative where the motion grows.
        r2: coefficient of determination (eq. 44).
        rate: w_d [rad/s].
        equilibrium: theta_eq [rad].
    """

    period: float
    damping: float
    r2: float
    rate: float
    equilibrium: float


def pd_fit(angles: F8, times: F8) -> FittedSwing:
    """PD of the video track: best damped sinusoid (eqs. 43 to 45).

    theta_eq, C and D by linear least squares for each (beta, w_d); the pair of least residual is
    searched from the five highest bins of the spectrum and refined by least squares. The damping
    may be negative. Frames that are not measured are left out; all NaN with fewer than six.

    Args:
        angles: (T,) [rad].
        times: (T,) ascending [s].
    """
    y, t = np.asarray(angles, np.float64), np.asarray(times, np.float64)
    good = np.isfinite(y) & np.isfinite(t)
    y, t = y[good], t[good]
    nan = float("nan")
    if len(y) < 6 or np.ptp(y) == 0:
        return FittedSwing(nan, nan, nan, nan, nan)
    t = t - t[0]
    span = float(t[-1])

    def solve(beta: float, w: float) -> tuple[F8, F8]:
        """Residuals and (theta_eq, C, D) for one pair."""
        decay = np.exp(np.clip(-beta * t, -50, 50))
        basis = np.stack([np.ones_like(t), decay * np.cos(w * t), decay * np.sin(w * t)], axis=1)
        x, *_ = np.linalg.lstsq(basis, y, rcond=None)
        return y - basis @ x, x

    even = np.interp(np.linspace(0, span, len(t)), t, y)
    power = np.abs(np.fft.rfft(even - even.mean()))[1:]
    bins = 1 + np.argsort(power)[::-1][:5]
    step = 2 * math.pi / span
    grid = sorted({round(float(k + d), 3) for k in bins for d in np.arange(-1, 1.01, 0.125)})
    starts = [
        (float((solve(beta, w * step)[0] ** 2).sum()), beta, w * step)
        for w in grid
        if w > 0
        for beta in (-0.5 / span, 0.0, 0.5 / span, 2 / span, 6 / span)
    ]
    _, beta, w = min(starts)
    scale = np.array([1 / span, step])

    def off(p: F8) -> F8:
        return solve(float(p[0] * scale[0]), float(p[1] * scale[1]))[0]

    # A search that does not end says so by its r2.
    found, *_ = leastsq(off, np.array([beta, w]) / scale, xtol=1e-10, ftol=1e-12, full_output=True)
    beta, w = float(found[0] * scale[0]), abs(float(found[1] * scale[1]))
    residuals, x = solve(beta, w)
    residual = float((residuals**2).sum())
    r2 = 1 - residual / float(((y - y.mean()) ** 2).sum())
    return FittedSwing(2 * math.pi / w, beta, r2, w, float(x[0]))


# --- energy ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EnergyLoss:
    """Energy lost between the first and the last peak.

    Attributes:
        raw: from the heights of recorded frames: GAUGE's reading [1].
        interpolated: from parabolas through three frames at each peak [1] (ours).
        peaks: how many there are.
    """

    raw: float
    interpolated: float
    peaks: int


def energy_loss(heights: F8, equilibrium: float) -> EnergyLoss:
    """EL = (E_start - E_end) / E_start at the peaks of the swing (eq. 17) [1].

    Range (-inf, 1]; 0 conserves energy, below 0 it grows. (GAUGE's text calls values near 1 good;
    its own table reads 0.) Energy is potential at a peak: height above the equilibrium. The first
    frame counts as a peak where the motion falls from it. At 30 frames a second a peak between
    frames is missed by up to 0.5 % of a 90 degree swing of 0.28 m, which the parabolas mend.
    NaN with fewer than two peaks, or where frames before the first or after the last are not
    measured.

    Args:
        heights: (T,) [m].
        equilibrium: height of the lowest point [m].
    """
    h = np.asarray(heights, np.float64) - equilibrium
    found = peaks(h)
    first = bool(len(h) > 1 and h[0] > h[1])
    if first:
        found = [0, *found]
    lost = ~np.isfinite(h)
    hidden = len(found) > 1 and (lost[: found[0]].any() or lost[found[-1] :].any())
    if len(found) < 2 or hidden or not h[found[0]] > 0:
        return EnergyLoss(float("nan"), float("nan"), len(found))
    tops = [parabola_peak(h, k)[1] for k in (found[0], found[-1])]
    return EnergyLoss(
        float((h[found[0]] - h[found[-1]]) / h[found[0]]),
        (tops[0] - tops[1]) / tops[0],
        len(found),
    )


# --- real trials as a baseline --------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Baseline:
    """Repeated real trials.

    Attributes:
        mean: (T, D) mean trajectory, unit of the input.
        rmse: mean over trials of each trial's RMSE to the mean ("within-trial RMSE").
        rmse_std: sample standard deviation of those.
        dtw, dtw_std: the same of the path-normalised DTW.
        trials: how many.
    """

    mean: F8
    rmse: float
    rmse_std: float
    dtw: float
    dtw_std: float
    trials: int


def baseline(trials: Sequence[F8]) -> Baseline:
    """Mean trajectory and spread of repeated trials (GAUGE 3.2.2).

    A frame's mean is over the trials in which it is measured. The mean contains each trial, so that
    the within-trial RMSE of n independent trials is sqrt((n - 1) / n) of their true spread.

    Args:
        trials: arrays (T, D) of one shape.

    Raises:
        UserError: fewer than two trials, or of different shapes; the message says which.
    """
    if len(trials) < 2:
        raise UserError(f"a baseline needs two trials or more; got {len(trials)}")
    shapes = [np.shape(t) for t in trials]
    for number, shape in enumerate(shapes):
        if len(shape) != 2 or shape != shapes[0]:
            raise UserError(
                f"trial {number} is {shape}, trial 0 is {shapes[0]}: cut all to one length (T, D)"
            )
    stack = np.asarray(trials, np.float64)
    measured = np.isfinite(stack)
    count = measured.sum(axis=0)
    total = np.where(measured, stack, 0.0).sum(axis=0)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    errors = np.array([rmse(t, mean) for t in stack])
    # A frame that one trial lacks is no delay of it: the mean is warped without it.
    warps = np.array([
        warp(t[here], mean[here]).mean
        for t, here in ((t, jointly_valid(t, mean)) for t in stack)
    ])  # fmt: skip
    return Baseline(
        mean, float(errors.mean()), float(errors.std(ddof=1)),
        float(warps.mean()), float(warps.std(ddof=1)), len(stack),
    )  # fmt: skip


def normalised(value: float, against: float) -> float:
    """A value over its baseline (GAUGE Table 3); NaN where that is zero, as the energy loss'."""
    return value / against if against else float("nan")
