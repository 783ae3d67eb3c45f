"""Exact arithmetic of time and of pairing: fractions, never accumulated floats.

A reference world advances in substeps of ``dt``; an agent acts every control period ``Ta``.
State k is the state after k substeps, at t = k dt; t = 0 is the seed frame in both worlds. A
candidate makes ``fps`` frames a second and takes one control per ``frames_per_action`` frames (its
stride s); a block b is frames ``b s + 1 ... (b + 1) s`` and spans [b S, (b + 1) S), S = s / fps.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from numbers import Rational

from wmeval.errors import UserError


def exact(value: int | str | float | Rational) -> Fraction:
    """Exact fraction of a time or a rate.

    Integers, fractions and strings ("1/240", "24000/1001", "0.2") are taken as they are. A float is
    read as the decimal that it prints as, so that 0.2 means 1/5.

    Raises:
        UserError: not a finite number, or one written with a needlessly long text.
    """
    # "1e999999999" is an exact number too, of a gigabyte.
    if isinstance(value, str) and (len(value) > 100 or re.search(r"[eE][-+]?\d{4}", value)):
        raise UserError(f"{value[:40]!r} ... is no number of a time or a rate: write it shorter")
    try:
        return Fraction(float.__repr__(value)) if isinstance(value, float) else Fraction(value)
    except (ValueError, ZeroDivisionError, TypeError) as error:
        raise UserError(
            f"{value!r} is not an exact number: give an integer, a decimal or 'a/b'"
        ) from error


ROUNDED = 1e-9
"""Relative error that is a float's rounding, or a reader's, and no other time."""


def period_of(value: int | str | float | Rational) -> Fraction:
    """`exact`, but a float such as 1/30 is the fraction that was meant.

    Raises:
        UserError: as `exact`.
    """
    found = exact(value)
    simple = found.limit_denominator(10_000)
    near = isinstance(value, float) and abs(simple - found) <= ROUNDED * abs(found)
    return simple if near and simple else found


def substep_of(value: int | str | float | Rational, period: Fraction) -> Fraction:
    """`exact`, but a float such as 1/720 is the divisor of a period [s] that was meant.

    Raises:
        UserError: as `exact`.
    """
    found = exact(value)
    if not isinstance(value, float) or found <= 0 or period <= 0:
        return found
    divisor = period / max(1, round(period / found))
    return divisor if abs(divisor - found) <= ROUNDED * found else found


MAX_SUBSTEPS = 10_000
"""Most substeps of one action."""


def _floor(value: Fraction) -> int:
    return value.numerator // value.denominator


def _ceil(value: Fraction) -> int:
    return -((-value.numerator) // value.denominator)


@dataclass(frozen=True)
class SceneClock:
    """Clock of a reference world.

    Attributes:
        dt: substep [s].
        control_period: time that one action holds [s], a whole multiple of ``dt``.
    """

    dt: Fraction
    control_period: Fraction

    def __post_init__(self) -> None:
        if self.dt <= 0 or self.control_period <= 0:
            raise UserError(f"dt {self.dt} and control period {self.control_period} must be > 0")
        if (self.control_period / self.dt).denominator != 1:
            near = self.control_period / max(1, round(self.control_period / self.dt))
            raise UserError(
                f"dt = {self.dt} s does not divide the control period {self.control_period} s: "
                f"choose dt = control period / n with a whole n, as '{near}'"
            )
        if self.substeps > MAX_SUBSTEPS:
            raise UserError(
                f"dt = {self.dt} s makes {self.substeps} substeps of a control period of "
                f"{self.control_period} s: at most {MAX_SUBSTEPS} are simulated; choose a larger dt"
            )

    @property
    def substeps(self) -> int:
        """Substeps per action."""
        return int(self.control_period / self.dt)

    def frame_rate(self, fps: int | str | float | Rational) -> Fraction:
        """An exact frame rate at which every frame shows a state of its own.

        Raises:
            UserError: not a number in (0, 1 / dt].
        """
        rate = exact(fps)
        if rate <= 0:
            raise UserError(f"fps = {fps}: give fps > 0")
        if rate * self.dt > 1:
            raise UserError(
                f"{rate} fps is more than one frame per state (dt = {self.dt} s): use at most "
                f"{1 / self.dt} fps or a smaller dt"
            )
        return rate

    def action_of_substep(self, n: int) -> int:
        """Index of the action in force during substep n: floor(n dt / Ta)."""
        return _floor(n * self.dt / self.control_period)

    def time_of_state(self, k: int) -> Fraction:
        """Time of state k [s]."""
        return k * self.dt

    def substeps_in(self, duration: Fraction) -> int:
        """Number of substeps in a duration [s].

        Raises:
            ValueError: ``dt`` does not divide it.
        """
        count = duration / self.dt
        if count.denominator != 1:
            raise UserError(f"dt = {self.dt} s does not divide {duration} s")
        return int(count)

    def actions_in(self, duration: Fraction) -> int:
        """Whole actions that start within a duration [s] (a last, partly covered one counts)."""
        return _ceil(duration / self.control_period)


@dataclass(frozen=True)
class CandidateClock:
    """Clock of a candidate.

    Attributes:
        fps: frames per second.
        frames_per_action: frames made per control (stride s), at least 1.
        chunk: blocks that a chunked model takes at once, at least 1.
    """

    fps: Fraction
    frames_per_action: int
    chunk: int = 1

    def __post_init__(self) -> None:
        if self.fps <= 0 or self.frames_per_action < 1 or self.chunk < 1:
            raise UserError(
                f"a candidate needs fps > 0, frames_per_action >= 1 and chunk >= 1; got {self}"
            )

    @property
    def block_duration(self) -> Fraction:
        """S = s / fps [s]."""
        return Fraction(self.frames_per_action) / self.fps

    def frame_time(self, j: int) -> Fraction:
        """Time of frame j [s]; frame 0 is the seed frame."""
        return Fraction(j) / self.fps

    def frames_of_block(self, b: int) -> range:
        """Frame indices that block b makes."""
        return range(b * self.frames_per_action + 1, (b + 1) * self.frames_per_action + 1)

    def weights_of_block(
        self, b: int, control_period: Fraction
    ) -> tuple[tuple[int, Fraction], ...]:
        """Reference actions that overlap block b, each with its overlap [s]; they sum to S."""
        start, end = b * self.block_duration, (b + 1) * self.block_duration
        first, last = _floor(start / control_period), _ceil(end / control_period)
        return tuple(
            (i, min(end, (i + 1) * control_period) - max(start, i * control_period))
            for i in range(first, last)
        )

    def block_of_instant(self, time: Fraction) -> int:
        """The one block that holds the start of a one-shot: floor(t / S)."""
        return _floor(time / self.block_duration)

    def blocks_covered(self, actions: int, control_period: Fraction) -> int:
        """Blocks wholly covered by the first ``actions`` reference actions."""
        return _floor(actions * control_period / self.block_duration)

    def blocks_sent(self, actions: int, control_period: Fraction) -> int:
        """Covered blocks that a model with this chunk length has been sent."""
        return self.blocks_covered(actions, control_period) // self.chunk * self.chunk

    def step_of_block(self, b: int, control_period: Fraction) -> int:
        """First step i with (i + 1) Ta >= (b + 1) S: the step that can send block b."""
        return _ceil((b + 1) * self.block_duration / control_period) - 1

    def state_of_frame(self, j: int, dt: Fraction) -> int:
        """Reference state shown beside frame j: floor(j / (fps dt) + 1/2)."""
        return _floor(self.frame_time(j) / dt + Fraction(1, 2))


def nearest_earlier(times: list[Fraction] | tuple[Fraction, ...], t: Fraction) -> int:
    """Index of the nearest of ascending times, ties to the earlier (grid "reference", masks)."""
    if not times:
        raise ValueError("nearest_earlier: no times")
    return min(range(len(times)), key=lambda i: (abs(times[i] - t), i))
