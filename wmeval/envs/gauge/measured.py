"""Whether a measured motion can lead a set-up: its units and length, by the card's own motion."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import RECORD_HZ, Drive
from wmeval.assets.gauge_profiles import Measured, Motion, motion
from wmeval.errors import UserError

F8 = NDArray[np.float64]

ENOUGH = 0.5
"""Share of a record that a motion must cover which does not end at rest."""
SEEN = 0.02
"""Share of its whole way, or of the card's, that a motion which moves at all goes in its record."""
FASTER, LEAST_RATE = 15.0, 20.0
"""Times the card's greatest rate that are taken, and at least so much [rad/s]: degrees are 57."""
SWIFTER, LEAST_SPEED = 50.0, 3.0
"""Times the card's greatest speed that are taken, and at least so much [m/s]: mm are 1000."""
_REST = 0.01
"""Share of its greatest rate that a motion may have where it is said to be at rest."""


def check_units(measured: Measured, path: str, drive: Drive, seconds: float) -> None:
    """Refuse a motion whose numbers are plainly of other units.

    Args:
        measured: of the file.
        path: of the file.
        drive: the card's, in whose place it leads.
        seconds: length of the record.

    Raises:
        UserError: it is far faster than the card's, or its record sees next to nothing of it.
    """
    times = _frames(seconds)
    own, card = measured.motion(times), motion(drive, times)
    for what, unit, ask, found, most in (
        ("turns", "rad/s", "is the angle in radians, and are the times in seconds?",
         _fastest(own.angle[:, None]),
         max(LEAST_RATE, FASTER * _fastest(card.angle[:, None]))),
        ("moves", "m/s", "are the offsets in metres, and the times in seconds?",
         _fastest(own.offset), max(LEAST_SPEED, SWIFTER * _fastest(card.offset))),
    ):  # fmt: skip
        if found > most:
            raise UserError(
                f"{path}: {drive.body} {what} at up to {found:.3g} {unit}, at most {most:.3g} are "
                f"taken here: {ask}"
            )
    whole = measured.samples[:, :3], measured.samples[:, 3:]
    ways = [(_way(w), _way(s), _way(c)) for w, s, c in
            zip(whole, _parts(own), _parts(card), strict=True)]  # fmt: skip
    if any(w for w, _, _ in ways) and all(
        seen <= SEEN * (min(way, led) if led else way) for way, seen, led in ways
    ):
        raise UserError(
            f"{path}: it lasts {measured.times[-1]:.4g} s, and in the {seconds:.3g} s of the "
            f"record {drive.body} hardly moves: are the times in seconds, from the record's start?"
        )


def check_length(measured: Measured, path: str, seconds: float) -> None:
    """Refuse a motion that breaks off long before its record does.

    Raises:
        UserError: it covers less than `ENOUGH`, and is not at rest at its end.
    """
    last = float(measured.times[-1])
    if last >= ENOUGH * seconds:
        return
    step = 1 / RECORD_HZ
    ends = measured.motion([max(last - step, float(measured.times[0])), last])
    whole = measured.motion(_frames(last))
    for end, way in zip(_parts(ends), _parts(whole), strict=True):
        if _fastest(end) > _REST * _fastest(way):
            raise UserError(
                f"{path}: it covers {last:.3g} s of the record's {seconds:.3g} s and is moving "
                "where it breaks off: record all of it, or end with a line at rest (are the times "
                "in seconds?)"
            )


def _frames(seconds: float) -> F8:
    return np.arange(max(1, round(seconds * RECORD_HZ)) + 1) / RECORD_HZ


def _parts(found: Motion) -> tuple[F8, F8]:
    return found.offset, found.angle[:, None]


def _fastest(x: F8) -> float:
    """Greatest speed of (N, D), frame by frame: samples' noise is no speed."""
    return float(np.linalg.norm(np.diff(x, axis=0), axis=1).max(initial=0.0)) * RECORD_HZ


def _way(x: F8) -> float:
    """Greatest distance of (N, D) from its start."""
    return float(np.linalg.norm(x - x[:1], axis=1).max())
