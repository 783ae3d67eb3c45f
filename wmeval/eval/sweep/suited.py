"""Whether a recording can be of a set-up at all: its bodies, its length, its units."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import RECORD_HZ, Bricks, Family
from wmeval.assets.gauge_markers import MarkerSet, markers
from wmeval.datasets.mocap.schema import Mocap
from wmeval.errors import UserError
from wmeval.scene import Vec3

F8 = NDArray[np.float64]
ENOUGH = 0.5
"""Share of a record's frames that a recording must cover."""
LONG = 2.0
"""Length of trials in records' lengths from which it is said."""
FAR = 10.0
"""How many sizes of the scene a recording may start from the card's place."""
ROOM = 1000.0
"""Least size of a scene that is taken here [mm]: laboratories have origins of their own."""
SCALE = 5.0
"""Ratio of the ways of recording and run from which it is said; `SPAN` of markers' spans."""
SPAN = 2.0


def check(mocap: Mocap, path: str, card: Family, subtask: str, material: str) -> None:
    """What can be told of a recording before anything runs.

    Raises:
        UserError: it lacks a body or markers that are measured, is too short, starts far away, or
            its markers span another length than the card's.
    """
    if card.markers is not None:
        _check_markers(mocap, path, card, markers(card, subtask, material))
    else:
        wanted = [
            n for n in card.measured_in(subtask, material)
            if not isinstance(card.bodies[n].shape, Bricks)
        ]  # fmt: skip
        missing = [n for n in wanted if n not in mocap.header.bodies]
        if missing:
            has = ", ".join(mocap.header.bodies) or "none"
            raise UserError(
                f"{path}: has no body {missing[0]!r}, which {card.id} measures; its bodies: {has}"
            )
        _check_place(mocap, path, {n: p.position for n, p in card.poses(subtask, material).items()})
    covers(mocap, path, card.frames(subtask, material))


def covers(mocap: Mocap, path: str, frames: int) -> None:
    """Refuse trials that are far shorter than a record of so many frames.

    Raises:
        UserError: one covers less than `ENOUGH`.
    """
    name, lasts = min(
        ((t.name, float(t.times[-1] - t.times[0])) for t in mocap.trials), key=lambda x: x[1]
    )
    if np.floor(lasts * RECORD_HZ + 1e-6) + 1 < ENOUGH * frames:
        raise UserError(
            f"{path}: trial {name!r} covers {lasts:.3g} s of the record's "
            f"{(frames - 1) / RECORD_HZ:.3g} s; {100 * ENOUGH:.0f} % are needed"
        )


def lengths(mocap: Mocap, count: int, frames: int) -> list[str]:
    """What is said of trials that are shorter or far longer than a record.

    Args:
        mocap: the recording.
        count: frames that all its trials have.
        frames: of the record.
    """
    whole = (frames - 1) / RECORD_HZ
    if count < frames:
        return [f"covers {(count - 1) / RECORD_HZ:.3g} s of the record's {whole:.3g} s"]
    lasts = min(float(t.times[-1] - t.times[0]) for t in mocap.trials)
    if lasts > LONG * max(whole, 1 / RECORD_HZ):
        return [
            f"its trials last {lasts:.3g} s, the record {whole:.3g} s: only their beginning is "
            "compared (are the times in seconds?)"
        ]
    return []


def ways(found: F8, mean: F8) -> list[str]:
    """What is said of positions that move on another scale than a run's.

    Args:
        found: (T, D) of the run [mm].
        mean: (T, D) of the trials [mm].

    Raises:
        UserError: they start further from the run's place than `FAR` sizes of its scene.
    """
    apart = float(np.linalg.norm((mean[0] - found[0]).reshape(-1, 3).mean(axis=0)))
    size = max(ROOM, float(np.ptp(found.reshape(-1, 3), axis=0).max()))
    if apart > FAR * size:
        raise UserError(
            f"it starts {apart:.0f} mm from the card's place, more than {FAR:.0f} times the scene: "
            "are its lengths in the unit that its header says?"
        )
    own, other = _way(found), _way(mean)
    if max(own, other) > 10 and not 1 / SCALE < (other + 1e-9) / (own + 1e-9) < SCALE:
        return [
            f"the recording moves by {other:.3g} mm, the run by {own:.3g} mm: if the run is right, "
            "are its lengths in the unit that its header says?"
        ]
    return []


def _way(g: F8) -> float:
    """Largest distance of a point from where it starts [mm]."""
    x = g.reshape(len(g), -1, 3)
    return float(np.nanmax(np.linalg.norm(x - x[:1], axis=2)))


def _check_place(mocap: Mocap, path: str, poses: Mapping[str, Vec3]) -> None:
    """As `ways`, by where the card's bodies start [m]."""
    size = max(ROOM, 1e3 * float(np.ptp(np.array(list(poses.values())), axis=0).max()))
    for trial in mocap.trials:
        for k, name in enumerate(mocap.header.bodies):
            if name not in poses:
                continue
            apart = 1e3 * float(np.linalg.norm(trial.positions[0, k] - poses[name]))
            if apart > FAR * size:
                raise UserError(
                    f"{path}: trial {trial.name!r}: {name} starts {apart:.0f} mm from the card's "
                    f"place, more than {FAR:.0f} times the scene: are its lengths in the unit that "
                    "its header says?"
                )


def _check_markers(mocap: Mocap, path: str, card: Family, worn: MarkerSet) -> None:
    for trial in mocap.trials:
        if trial.markers.shape[1] != len(worn.points):
            raise UserError(
                f"{path}: trial {trial.name!r}: {trial.markers.shape[1]} markers; {card.id} wears "
                f"{len(worn.points)}, in the order of its layout"
            )
        seen = np.isfinite(trial.markers[0]).all(axis=1)
        if seen.sum() < 2:
            continue
        own = float(np.linalg.norm(np.ptp(trial.markers[0][seen], axis=0)))
        wanted = float(np.linalg.norm(np.ptp(worn.points[seen], axis=0)))
        if not wanted / SPAN <= own <= wanted * SPAN:
            raise UserError(
                f"{path}: trial {trial.name!r}: its markers span {1e3 * own:.4g} mm at the start, "
                f"the card's {1e3 * wanted:.4g} mm: are its lengths in the unit that its header "
                "says?"
            )
