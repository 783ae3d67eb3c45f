"""Motion capture as data: repeated trials of bodies, markers or named signals.

The format's name is `FORMAT`. In memory all is SI, z up, right-handed, quaternions wxyz, angular
velocities in the world frame; what is not measured is NaN. Files may state other units (`Units`)
and y up; readers turn them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, model_validator

from wmeval.errors import UserError
from wmeval.scene import Card

FORMAT = "wmeval-mocap/1"

F8 = NDArray[np.float64]

ARRAYS: Mapping[str, tuple[str, int, str]] = {
    "positions": ("bodies", 3, "length"),
    "quaternions_wxyz": ("bodies", 4, ""),
    "linear_velocities": ("bodies", 3, "length"),
    "angular_velocities": ("bodies", 3, "angle"),
    "markers": ("markers", 3, "length"),
    "signals": ("signals", 0, ""),
}
"""Each array of a trial: which names it has rows of, components, and the unit that scales it."""

METRES = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}
RADIANS = {"rad": 1.0, "deg": float(np.pi / 180)}


class Units(Card):
    """Units of a file's numbers; times are in seconds."""

    length: Literal["m", "cm", "mm"] = "m"
    angle: Literal["rad", "deg"] = "rad"


class Signal(Card):
    """A named number over time, such as a joint's angle: name, unit, what it is."""

    name: str = Field(min_length=1)
    unit: str
    doc: str = ""


class Uncertainty(Card):
    """Standard deviations of what is measured, in the file's units; None where not known.

    Attributes:
        position: of a body's position, per axis.
        rotation: of its orientation, as an angle.
        marker: of a marker's position, per axis.
        signals: of each signal, in its own unit.
    """

    position: float | None = Field(default=None, ge=0)
    rotation: float | None = Field(default=None, ge=0)
    marker: float | None = Field(default=None, ge=0)
    signals: dict[str, float] = Field(default_factory=dict)


class Header(Card):
    """What a recording is of.

    Attributes:
        format: `FORMAT`.
        title: one line.
        source: who measured it and where it is published; licence: its terms.
        units: of the file.
        up: the vertical axis of the file.
        rate: nominal frames per second; the trials' times count.
        bodies: names of rigid bodies; markers: of single markers; signals: of other numbers.
        faces: markers of each triangle, if they form a surface.
        uncertainty: of the measurement.
        family, subtask, material: the set-up that it measures, where it is one of GAUGE's.
        metadata: masses, sizes, friction and whatever else is known, with its unit in its name.
    """

    format: Literal["wmeval-mocap/1"]
    title: str = Field(min_length=1)
    source: str = ""
    licence: str = ""
    units: Units = Units()
    up: Literal["z", "y"] = "z"
    rate: float | None = Field(default=None, gt=0)
    bodies: tuple[str, ...] = ()
    markers: tuple[str, ...] = ()
    signals: tuple[Signal, ...] = ()
    faces: tuple[tuple[int, int, int], ...] = ()
    uncertainty: Uncertainty = Uncertainty()
    family: str | None = None
    subtask: str | None = None
    material: str | None = None
    metadata: dict[str, str | float | int | bool] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check(self) -> Header:
        for kind in ("bodies", "markers", "signals"):
            names = self.names(kind)
            twice = next((n for n in names if names.count(n) > 1), None)
            if twice:
                raise ValueError(f"{kind}: {twice!r} stands twice")
        if not (self.bodies or self.markers or self.signals):
            raise ValueError("bodies, markers or signals: name what is measured")
        for face in self.faces:
            if min(face) < 0 or max(face) >= len(self.markers) or len(set(face)) < 3:
                raise ValueError(f"faces: {face} does not name three of the markers")
        unknown = set(self.uncertainty.signals) - set(self.names("signals"))
        if unknown:
            raise ValueError(f"uncertainty.signals: there is no signal {sorted(unknown)[0]!r}")
        return self

    def names(self, kind: str) -> tuple[str, ...]:
        """Names of the bodies, markers or signals."""
        found = getattr(self, kind)
        return tuple(x.name if isinstance(x, Signal) else x for x in found)


@dataclass(frozen=True, eq=False)
class Trial:
    """One recording of N frames; what the header does not name is empty, (N, 0, ...).

    Attributes:
        name: of the trial.
        times: (N,) ascending [s].
        positions: (N, B, 3) [m]; quaternions_wxyz: (N, B, 4), NaN where not given.
        linear_velocities: (N, B, 3) [m/s], angular_velocities: (N, B, 3) [rad/s], world frame, or
            None where not given.
        markers: (N, M, 3) [m].
        signals: (N, S), each in its unit.
        metadata: of this trial alone.
    """

    name: str
    times: F8
    positions: F8
    quaternions_wxyz: F8
    markers: F8
    signals: F8
    linear_velocities: F8 | None = None
    angular_velocities: F8 | None = None
    metadata: Mapping[str, str | float | int | bool] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.times)

    def resampled(self, rate: float) -> Trial:
        """The trial at k / rate seconds after its first frame, as GAUGE takes its 30 Hz (4.1).

        Linear between neighbours, quaternions along the shorter great circle; NaN where one of the
        two neighbours is not measured. Velocities are interpolated like positions.
        """
        last = self.times[-1] - self.times[0]
        t = self.times[0] + np.arange(int(np.floor(last * rate + 1e-6)) + 1) / rate
        left = np.clip(np.searchsorted(self.times, t, side="right") - 1, 0, len(self.times) - 1)
        right = np.minimum(left + 1, len(self.times) - 1)
        gap = self.times[right] - self.times[left]
        share = np.where(gap > 0, (t - self.times[left]) / np.where(gap > 0, gap, 1), 0.0)
        # A frame that is met exactly needs no neighbour.
        share = np.where(share < 1e-9, 0.0, np.where(share > 1 - 1e-9, 1.0, share))
        right = np.where(share == 0, left, right)
        left = np.where(share == 1, right, left)

        def mixed(values: F8) -> F8:
            w = share.reshape(-1, *[1] * (values.ndim - 1))
            out: F8 = values[left] * (1 - w) + values[right] * w
            return out

        return replace(
            self,
            times=t - self.times[0],
            positions=mixed(self.positions),
            quaternions_wxyz=_slerp(
                self.quaternions_wxyz[left], self.quaternions_wxyz[right], share[:, None]
            ),
            markers=mixed(self.markers),
            signals=mixed(self.signals),
            linear_velocities=None
            if self.linear_velocities is None
            else mixed(self.linear_velocities),
            angular_velocities=None
            if self.angular_velocities is None
            else mixed(self.angular_velocities),
        )


def _slerp(a: F8, b: F8, share: F8) -> F8:
    """Great-circle interpolation of unit quaternions (..., 4), share (...)."""
    dot = (a * b).sum(axis=-1)
    b = np.where((dot < 0)[..., None], -b, b)
    angle = np.arccos(np.clip(np.abs(dot), 0.0, 1.0))
    sine = np.sin(angle)
    near = sine < 1e-9
    safe = np.where(near, 1.0, sine)
    w0 = np.where(near, 1 - share, np.sin((1 - share) * angle) / safe)
    w1 = np.where(near, share, np.sin(share * angle) / safe)
    out = w0[..., None] * a + w1[..., None] * b
    with np.errstate(invalid="ignore"):
        made: F8 = out / np.linalg.norm(out, axis=-1, keepdims=True)
    return made


@dataclass(frozen=True, eq=False)
class Mocap:
    """A recording: its header and its trials, in SI units, z up."""

    header: Header
    trials: tuple[Trial, ...]

    def aligned(self, rate: float = 30.0) -> tuple[Trial, ...]:
        """All trials at one rate, cut to the shortest: what a baseline of trials is made of."""
        made = [t.resampled(rate) for t in self.trials]
        count = min(len(t) for t in made)
        return tuple(_cut(t, count) for t in made)


def _cut(trial: Trial, count: int) -> Trial:
    arrays = {
        name: array[:count]
        for name in ("times", *ARRAYS)
        if (array := getattr(trial, name)) is not None
    }
    return replace(trial, **arrays)


def make_trial(
    header: Header,
    name: str,
    times: Sequence[float] | F8,
    arrays: Mapping[str, object],
    *,
    metadata: Mapping[str, str | float | int | bool] | None = None,
    where: str = "",
) -> Trial:
    """A trial whose arrays fit a header, turned to SI and z up.

    Args:
        header: whose names, units and axis the arrays have.
        name: of the trial.
        times: (N,) [s].
        arrays: by the names of `ARRAYS`; None or NaN stands for what is not measured.
        metadata: of the trial.
        where: beginning of error messages, such as the file.

    Raises:
        UserError: an array is missing, unknown, or of the wrong shape; times do not ascend; a
            number is infinite; a quaternion is not of unit length.
    """
    at = f"{where}trial {name!r}: "
    t = _array(times, at + "times")
    if t.ndim != 1 or not len(t) or not np.isfinite(t).all() or not (np.diff(t) > 0).all():
        raise UserError(f"{at}times must be finite and ascend strictly")
    unknown = sorted(set(arrays) - set(ARRAYS))
    if unknown:
        raise UserError(f"{at}there is no array {unknown[0]!r}: choose from {', '.join(ARRAYS)}")
    made: dict[str, F8 | None] = {}
    for key, (kind, size, unit) in ARRAYS.items():
        names = header.names(kind)
        shape = (len(t), len(names), size) if size else (len(t), len(names))
        given = arrays.get(key)
        if given is None:
            if names and key == "quaternions_wxyz":  # a ball with one marker has no orientation
                made[key] = np.full(shape, np.nan)
                continue
            if names and "velocities" not in key:
                raise UserError(f"{at}{key} of {', '.join(names[:3])} are missing: give {shape}")
            made[key] = None if "velocities" in key else np.empty(shape)
            continue
        values = _array(given, at + key)
        if values.shape != shape:
            raise UserError(f"{at}{key} are {values.shape}; {shape} are wanted")
        if np.isinf(values).any():
            raise UserError(f"{at}{key} hold an infinite number: NaN stands for not measured")
        scale = {"length": METRES[header.units.length], "angle": RADIANS[header.units.angle]}
        made[key] = _upright(values * scale.get(unit, 1.0), key, header.up)
    quaternions = made["quaternions_wxyz"]
    assert quaternions is not None
    norm = np.linalg.norm(quaternions, axis=-1)
    with np.errstate(invalid="ignore"):
        if (np.abs(norm - 1) > 0.02).any():
            frame = int(np.argwhere(np.abs(norm - 1) > 0.02)[0][0])
            raise UserError(
                f"{at}quaternions_wxyz of frame {frame} are not of length 1: is it w first?"
            )
        made["quaternions_wxyz"] = quaternions / norm[..., None]
    return Trial(name, t, metadata=dict(metadata or {}), **made)  # type: ignore[arg-type]


def _array(values: object, what: str) -> F8:
    try:
        return np.array(_numbers(values), np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"{what} are not a table of numbers: {error}") from error


def _numbers(values: object) -> object:
    """Nested lists with NaN for None."""
    if isinstance(values, list):
        return [float("nan") if v is None else _numbers(v) for v in values]
    return values


_HALF = float(np.sqrt(0.5))


def _upright(values: F8, key: str, up: str) -> F8:
    """Vectors and quaternions with y up, seen with z up: a quarter turn about x."""
    if up == "z" or key == "signals":
        return values
    if key == "quaternions_wxyz":
        w, x, y, z = np.moveaxis(values, -1, 0)
        turned: F8 = _HALF * np.stack([w - x, x + w, y - z, z + y], axis=-1)
        return turned
    x, y, z = np.moveaxis(values, -1, 0)
    return np.stack([x, -z, y], axis=-1)
