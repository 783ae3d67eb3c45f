"""Motions that GAUGE's drivers impose: displacement and angle as functions of time.

GAUGE publishes no driver. The profiles are read from its clips or assumed (each card says which),
and a measured one takes a profile's place by file (`read_measured`). All use the smooth step
S(u) = 3 u^2 - 2 u^3 with u clipped to [0, 1], which starts and ends at rest. Every function is pure
and takes times (N,) [s].
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wmeval.assets.gauge_cards import Drive
from wmeval.errors import UserError, what_of

F8 = NDArray[np.float64]
Number = float | tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Motion:
    """An imposed motion.

    Attributes:
        offset: displacement from the starting pose, (N, 3) [m], world axes.
        angle: turn about the drive's axis through its pivot since the start, (N,) [rad].
        velocity: rate of ``offset``, (N, 3) [m/s].
        rate: rate of ``angle``, (N,) [rad/s].
    """

    offset: F8
    angle: F8
    velocity: F8
    rate: F8


def smooth_step(u: ArrayLike) -> F8:
    """S(u) = 3 u^2 - 2 u^3, u clipped to [0, 1]."""
    x = np.clip(np.asarray(u, np.float64), 0.0, 1.0)
    out: F8 = x * x * (3.0 - 2.0 * x)
    return out


def smooth_slope(u: ArrayLike) -> F8:
    """dS/du = 6 u (1 - u); zero outside [0, 1]."""
    x = np.clip(np.asarray(u, np.float64), 0.0, 1.0)
    out: F8 = 6.0 * x * (1.0 - x)
    return out


def smooth_area(u: ArrayLike) -> F8:
    """Integral of S from 0 to u: u^3 - u^4 / 2, then u - 1/2."""
    x = np.asarray(u, np.float64)
    inside = np.clip(x, 0.0, 1.0)
    out: F8 = inside**3 - inside**4 / 2.0 + np.maximum(x - 1.0, 0.0)
    return out


def _scalar(parameters: Mapping[str, Number], name: str, default: float | None = None) -> float:
    value = parameters.get(name, default)
    if not isinstance(value, (int, float)):
        raise UserError(f"profile parameter {name!r} must be a number; got {value!r}")
    return float(value)


def _vector(parameters: Mapping[str, Number], name: str) -> F8:
    value = parameters.get(name)
    if not isinstance(value, (tuple, list)):
        raise UserError(f"profile parameter {name!r} must be three numbers; got {value!r}")
    return np.asarray(value, np.float64)


def _moved(along: F8, distance: F8, speed: F8) -> Motion:
    zero = np.zeros(len(distance))
    return Motion(distance[:, None] * along, zero, speed[:, None] * along, zero)


def _turned(angle: F8, rate: F8) -> Motion:
    zero = np.zeros((len(angle), 3))
    return Motion(zero, angle, zero, rate)


def _move(t: F8, p: Mapping[str, Number]) -> Motion:
    """Offset d S((t - start) / duration), then at rest."""
    u = (t - _scalar(p, "start", 0.0)) / _scalar(p, "duration")
    return _moved(_vector(p, "offset"), smooth_step(u), smooth_slope(u) / _scalar(p, "duration"))


def _turn(t: F8, p: Mapping[str, Number]) -> Motion:
    """Angle a S((t - start) / duration), then at rest."""
    duration = _scalar(p, "duration")
    u = (t - _scalar(p, "start", 0.0)) / duration
    angle = _scalar(p, "angle")
    return _turned(angle * smooth_step(u), angle * smooth_slope(u) / duration)


def _spin(t: F8, p: Mapping[str, Number]) -> Motion:
    """Rate w S((t - start) / duration), then constant."""
    duration, rate = _scalar(p, "duration"), _scalar(p, "rate")
    u = (t - _scalar(p, "start", 0.0)) / duration
    return _turned(rate * duration * smooth_area(u), rate * smooth_step(u))


def _spin_pulse(t: F8, p: Mapping[str, Number]) -> Motion:
    """Rate w sin^2(pi t / duration) within [0, duration], then at rest."""
    duration, peak = _scalar(p, "duration"), _scalar(p, "rate")
    x = np.clip(t, 0.0, duration)
    rate = peak * np.sin(math.pi * x / duration) ** 2
    angle = peak * (x / 2 - duration / (4 * math.pi) * np.sin(2 * math.pi * x / duration))
    return _turned(angle, rate)


def _to_and_fro(t: F8, p: Mapping[str, Number]) -> Motion:
    """Out and back by ``offset``, ``duration`` each way, ``count`` times, then at rest."""
    duration, count = _scalar(p, "duration"), round(_scalar(p, "count"))
    distance, speed = np.zeros(len(t)), np.zeros(len(t))
    for leg in range(2 * count):
        sign = 1.0 if leg % 2 == 0 else -1.0
        u = t / duration - leg
        distance += sign * smooth_step(u)
        speed += sign * smooth_slope(u) / duration
    return _moved(_vector(p, "offset"), distance, speed)


def _poke_circle(t: F8, p: Mapping[str, Number]) -> Motion:
    """Poke along x by reach + depth, one turn on a circle in y-z through that point, back out.

    The circle (radius R) is run once between the poke and the last ``retract`` seconds, as
    (y, z) = R (sin phi, 1 - cos phi) with phi = 2 pi S: at rest at both its ends (ours).
    """
    poke, back, end = _scalar(p, "poke"), _scalar(p, "retract"), _scalar(p, "end")
    depth, radius = _scalar(p, "reach") + _scalar(p, "depth"), _scalar(p, "radius")
    turn = end - poke - back
    if turn <= 0:
        raise UserError("profile poke_circle: end leaves no time for the circle")
    u_in, u_out, u = t / poke, (t - end + back) / back, (t - poke) / turn
    phi, phi_rate = 2 * math.pi * smooth_step(u), 2 * math.pi * smooth_slope(u) / turn
    sign = math.copysign(1.0, _scalar(p, "sign", 1.0))
    offset = np.stack(
        [
            sign * depth * (smooth_step(u_in) - smooth_step(u_out)),
            radius * np.sin(phi),
            radius * (1 - np.cos(phi)),
        ],
        axis=1,
    )
    velocity = np.stack(
        [
            sign * depth * (smooth_slope(u_in) / poke - smooth_slope(u_out) / back),
            radius * np.cos(phi) * phi_rate,
            radius * np.sin(phi) * phi_rate,
        ],
        axis=1,
    )
    zero = np.zeros(len(t))
    return Motion(offset, zero, velocity, zero)


def _pull(t: F8, p: Mapping[str, Number]) -> Motion:
    """Constant acceleration to a speed, constant speed, the same deceleration to rest.

    ``distance`` in all along ``direction``.
    """
    a, v, total = _scalar(p, "acceleration"), _scalar(p, "speed"), _scalar(p, "distance")
    rise = v / a
    cruise = (total - v * rise) / v
    if cruise < 0:
        raise UserError("profile pull: the distance is too short for the speed")
    x = np.clip(t, 0.0, 2 * rise + cruise)
    up, level = np.minimum(x, rise), np.clip(x - rise, 0.0, cruise)
    down = np.maximum(x - rise - cruise, 0.0)
    distance = a * up**2 / 2 + v * level + v * down - a * down**2 / 2
    return _moved(_vector(p, "direction"), distance, a * up - a * down)


def _press_slide(t: F8, p: Mapping[str, Number]) -> Motion:
    """Offset ``press`` by S(t / press_duration), then ``slide`` by S over slide_duration."""
    first, second = _scalar(p, "press_duration"), _scalar(p, "slide_duration")
    u, w = t / first, (t - first) / second
    press, slide = _vector(p, "press"), _vector(p, "slide")
    offset = smooth_step(u)[:, None] * press + smooth_step(w)[:, None] * slide
    velocity = smooth_slope(u)[:, None] * press / first + smooth_slope(w)[:, None] * slide / second
    zero = np.zeros(len(t))
    return Motion(offset, zero, velocity, zero)


def _kick(t: F8, p: Mapping[str, Number]) -> Motion:
    """A free body: held still, damped, for ``settle`` seconds before frame 0, then set off.

    Only the velocity at t = 0 is imposed; ``offset`` is that of a free body and stays zero here.
    """
    _scalar(p, "settle")
    zero = np.zeros(len(t))
    velocity = np.where((t == 0)[:, None], _vector(p, "velocity"), 0.0)
    return Motion(np.zeros((len(t), 3)), zero, velocity, zero)


@dataclass(frozen=True)
class Profile:
    """A row of `PROFILES`: its function and the names of its parameters."""

    function: Callable[[F8, Mapping[str, Number]], Motion]
    needs: tuple[str, ...]
    may: tuple[str, ...] = ()


PROFILES: Mapping[str, Profile] = {
    "move": Profile(_move, ("offset", "duration"), ("start",)),
    "turn": Profile(_turn, ("angle", "axis", "duration"), ("start", "pivot")),
    "spin": Profile(_spin, ("rate", "axis", "duration"), ("start", "pivot")),
    "spin_pulse": Profile(_spin_pulse, ("rate", "axis", "duration"), ("pivot",)),
    "to_and_fro": Profile(_to_and_fro, ("offset", "duration", "count")),
    "poke_circle": Profile(
        _poke_circle, ("reach", "depth", "radius", "poke", "retract", "end"), ("sign",)
    ),
    "pull": Profile(_pull, ("direction", "acceleration", "speed", "distance")),
    "press_slide": Profile(_press_slide, ("press", "press_duration", "slide", "slide_duration")),
    "kick": Profile(_kick, ("settle", "velocity")),
}


def check(drive: Drive) -> Profile:
    """The profile of a drive whose parameters fit it.

    Raises:
        UserError: no such profile, a parameter missing or unknown.
    """
    if drive.profile not in PROFILES:
        raise UserError(f"there is no profile {drive.profile!r}: choose from {', '.join(PROFILES)}")
    row = PROFILES[drive.profile]
    missing = [n for n in row.needs if n not in drive.parameters]
    unknown = [n for n in drive.parameters if n not in (*row.needs, *row.may)]
    if missing or unknown:
        what = f"needs {missing[0]!r}" if missing else f"has no parameter {unknown[0]!r}"
        raise UserError(f"profile {drive.profile!r} {what}: give {', '.join(row.needs)}")
    return row


def motion(drive: Drive, times: ArrayLike) -> Motion:
    """The motion that a drive imposes at times (N,) [s].

    Raises:
        UserError: as `check`.
    """
    t = np.atleast_1d(np.asarray(times, np.float64))
    return check(drive).function(t, drive.parameters)


def axis(drive: Drive) -> F8:
    """Unit axis of a turning drive, (3,); z where it names none."""
    if "axis" not in drive.parameters:
        return np.array([0.0, 0.0, 1.0])
    direction = _vector(drive.parameters, "axis")
    out: F8 = direction / np.linalg.norm(direction)
    return out


# --- measured profiles ----------------------------------------------------------------------------

COLUMNS = ("time", "x", "y", "z", "angle")


@dataclass(frozen=True, eq=False)
class Measured:
    """A measured motion, linear between its samples and at rest beyond them.

    Attributes:
        times: (N,) ascending [s]; samples: (N, 4) offset x, y, z [m] and angle [rad].
    """

    times: F8
    samples: F8

    def motion(self, times: ArrayLike) -> Motion:
        """The motion at times (M,) [s]; its rates are those of the straight pieces."""
        t = np.atleast_1d(np.asarray(times, np.float64))
        at = np.stack([np.interp(t, self.times, c) for c in self.samples.T], axis=1)
        slope = np.diff(self.samples, axis=0) / np.diff(self.times)[:, None]
        piece = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(slope) - 1)
        inside = (t >= self.times[0]) & (t < self.times[-1])
        rates = np.where(inside[:, None], slope[piece], 0.0)
        return Motion(at[:, :3], at[:, 3], rates[:, :3], rates[:, 3])


STARTS_WITHIN = 1e-3
"""A measured motion begins where the body does, but for so much [m, or rad]."""


def read_measured(path: str | Path) -> Measured:
    """Read a measured motion: CSV with the header ``time,x,y,z,angle`` [s, m, m, m, rad].

    Offsets and angle are from the body's starting pose.

    Raises:
        UserError: no such file, another header, numbers that are not finite and ascending, or a
            motion that begins elsewhere.
    """
    try:
        # Spreadsheets write a mark before the first letter.
        lines = Path(path).read_text("utf-8-sig").split("\n")
        header = tuple(name.strip() for name in lines[0].split(","))
        if header != COLUMNS:
            raise UserError(f"{path}: the first line must read {','.join(COLUMNS)}")
        rows = [[float(x) for x in line.split(",")] for line in lines[1:] if line.strip()]
        for number, row in enumerate(rows, 1):
            if len(row) != len(COLUMNS):
                raise UserError(f"{path}: line {number} of numbers has {len(row)}, five are wanted")
        table = np.array(rows, np.float64)
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path}: {what_of(error)}") from error
    except ValueError as error:
        if isinstance(error, UserError):
            raise
        raise UserError(f"{path}: a line is not five numbers: {error}") from error
    if table.ndim != 2 or len(table) < 2 or table.shape[1] != 5 or not np.isfinite(table).all():
        raise UserError(f"{path}: two or more lines of five finite numbers are wanted")
    if not (np.diff(table[:, 0]) > 0).all():
        raise UserError(f"{path}: times must ascend strictly")
    if (np.abs(table[0, 1:]) > STARTS_WITHIN).any():
        raise UserError(
            f"{path}: it begins at {', '.join(f'{v:g}' for v in table[0, 1:])}: give offsets and "
            "angle from the body's starting pose, the first line 0"
        )
    return Measured(table[:, 0], table[:, 1:])


def drive_hash(drive: Drive | Measured) -> str:
    """Sha256 of a drive's profile and numbers; results carry it.

    Of a measured motion it is that of its numbers, line by line, time first, each as 64-bit float,
    little-endian: not of the file, whose spelling of them does not matter.
    """
    if isinstance(drive, Measured):
        table = np.column_stack([drive.times, drive.samples]).astype("<f8")
        return hashlib.sha256(table.tobytes()).hexdigest()
    text = json.dumps(drive.model_dump(mode="json"), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()
