"""Numbers of a record by itself, of own trials as of a run: rests, momentum, period, energy.

Every trial is read as the run is, at 30 frames a second over the frames that all have, and the
trials' mean and standard deviation are what the run's number is divided by, as GAUGE divides by its
own trials'. Heights of balls at rest are the recording's: it may stand elsewhere, on another rod.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import RECORD_HZ
from wmeval.datasets.mocap.schema import Mocap, Trial
from wmeval.errors import UserError, one_line
from wmeval.eval.metrics.crossings import pd_crossings
from wmeval.eval.sweep.cells import UNSEEN, Measurement
from wmeval.eval.sweep.predicted import Record
from wmeval.eval.sweep.recorded import in_holes, mean_and_spread, recording, scored_trials
from wmeval.eval.sweep.suited import lengths
from wmeval.records import StateLog
from wmeval.scene import DYNAMIC

F8 = NDArray[np.float64]
Told = Callable[[Record], tuple[str, float]]
"""A number of a record with its unit."""
AT_REST = 3
"""Frames from the start in which a ball that waits to be hit hangs."""


@dataclass(frozen=True)
class Own:
    """What a number needs of a recording.

    Attributes:
        swings: bodies that swing through their lowest point, whose rest it is.
        hangs: bodies that hang at rest as the recording begins.
    """

    swings: tuple[str, ...] = ()
    hangs: tuple[str, ...] = ()


NEEDS: Mapping[str, Own] = {
    "lsd": Own(hangs=("ball_5",)),
    "mte_first": Own(swings=("ball_1",), hangs=("ball_5",)),
    "pd_fourier": Own(swings=("ball",)),
    "el": Own(swings=("ball",)),
}
"""Of the metrics of a record by itself."""

BESIDE: Mapping[str, Mapping[str, Told]] = {
    # The spectrum knows periods by its bins alone, and trials would not differ.
    "pd_fourier": {
        "period": lambda r: ("s", pd_crossings(r.swing(), r.state.times).period),
    },
}
"""What is told besides, where a metric cannot tell trials apart."""


@dataclass(frozen=True, eq=False)
class TrialRecord(Record):
    """A trial as a record of its bodies; ``rests`` are the heights at which they hang [m]."""

    rests: Mapping[str, float] = field(default_factory=dict)

    def hanging(self, body: str) -> float:
        """Height of a hung ball at rest [m]."""
        return self.rests[body]


def alone_against(
    record: Record, path: str, by_itself: Mapping[str, Told], without: Sequence[str] = ()
) -> list[Measurement]:
    """A family's metrics of a record by itself, over what a recording's trials come to.

    A number that the recording does not allow says so in its place.

    Args:
        record: of the engine.
        path: of the recording.
        by_itself: how the metrics are told of a record.
        without: names of trials that are left out: those that the engine was fitted on.
    """
    out = []
    for metric in record.card.metrics:
        if metric not in NEEDS:
            continue
        functions = {metric: by_itself[metric], **BESIDE.get(metric, {})}
        for name, function in functions.items():
            try:
                out.append(_held(record, path, name, function, NEEDS[metric], without))
            except UserError as error:
                unit, _ = function(record)
                said = one_line(str(error))
                out.append(Measurement(metric=name, truth="real", unit=unit, reason=said))
    return out


def _held(
    record: Record, path: str, name: str, function: Told, own: Own, without: Sequence[str]
) -> Measurement:
    """One number.

    Raises:
        UserError: the recording lacks what is measured, or fewer than two trials tell it.
    """
    mocap = recording(path)
    trials = scored_trials(mocap, path, len(record.state), without)
    missing = [b for b in (*own.swings, *own.hangs) if b not in mocap.header.bodies]
    if missing:
        raise UserError(f"{Path(path).name} has no body {missing[0]!r}, which this number needs")
    evens = [t.resampled(RECORD_HZ) for t in trials]
    count = min(len(record.state), *(len(t) for t in evens))
    values = [
        function(_as_record(record, mocap, trial, even, own, count))[1]
        for trial, even in zip(trials, evens, strict=True)
    ]
    known = [v for v in values if math.isfinite(v)]
    if len(known) < 2:
        raise UserError(f"{path}: {len(known)} of its {len(values)} trials tell it; two are needed")
    unit, value = function(replace(record, state=record.state.rows(slice(count))))
    baseline, spread = mean_and_spread(known)
    notes = lengths(mocap, count, len(record.state))
    if len(known) < len(values):
        notes.append(f"{name} is of {len(known)} of {len(values)} trials")
    if not math.isfinite(value):
        notes.append(UNSEEN)
    return Measurement(
        metric=name, truth="real", value=value if math.isfinite(value) else None, unit=unit,
        baseline=baseline, spread=spread, trials=len(known), n=count, reason="; ".join(notes),
    )  # fmt: skip


def _as_record(
    record: Record, mocap: Mocap, trial: Trial, even: Trial, own: Own, count: int
) -> TrialRecord:
    """A trial at 30 frames a second in place of a run; frames that are not measured are NaN."""
    bodies = (*own.swings, *own.hangs)
    columns = [mocap.header.bodies.index(b) for b in bodies]
    lost = in_holes(trial, even.times[:count])
    shape = (count, len(bodies))
    state = StateLog(
        bodies, Fraction(1, RECORD_HZ), np.arange(count),
        np.where(lost[:, None, None], np.nan, even.positions[:count, columns]),
        even.quaternions_wxyz[:count, columns], np.full((*shape, 3), np.nan),
        np.full((*shape, 3), np.nan), np.ones(shape, bool), np.full(shape, DYNAMIC, np.uint8),
    )  # fmt: skip
    z = trial.positions[:, columns, 2]
    # At the recording's own rate, which sees more of the lowest point than 30 frames do.
    rests = {b: _least(z[:, k]) for k, b in enumerate(own.swings)}
    for k, b in enumerate(own.hangs, len(own.swings)):
        at_rest = state.position[:AT_REST, k, 2]
        rests[b] = float(at_rest.mean())
    return TrialRecord(
        record.card, record.subtask, record.material, record.built, state, state.position, rests
    )


def _least(heights: F8) -> float:
    known = heights[np.isfinite(heights)]
    return float(known.min()) if len(known) else math.nan
