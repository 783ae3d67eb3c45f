"""From recorded states to numbers: GAUGE's quantities and metrics, closed forms' numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import QUANTITY_UNITS, RECORD_HZ, Family, families
from wmeval.deformables import edge_lengths, edges_of, rest_shape
from wmeval.envs.gauge.build import Built
from wmeval.errors import one_line
from wmeval.eval.metrics import gauge
from wmeval.eval.metrics.trajectory import rmse, warp
from wmeval.eval.sweep.cells import UNSEEN, Measurement
from wmeval.eval.sweep.conserved import kept
from wmeval.eval.sweep.course import Course, course_of
from wmeval.eval.sweep.driven import NO_TRUTH
from wmeval.eval.sweep.otherwise import (
    Nodes,
    as_published,
    over_published,
    scored_otherwise,
    unscored,
)
from wmeval.eval.sweep.predicted import MEASURED, Record, expected
from wmeval.eval.sweep.recorded import against
from wmeval.eval.sweep.trials import alone_against
from wmeval.eval.truths import NO_CLOSED_FORM, TRUTHS, Number, Prediction, predict
from wmeval.records import StateLog
from wmeval.scene import Cloth

F8 = NDArray[np.float64]


def measure(
    card: Family, subtask: str, material: str, built: Built, state: StateLog,
    course: Course | None = None, data: str = "", without: Sequence[str] = (),
    recorded_drive: bool = False,
) -> tuple[Measurement, ...]:  # fmt: skip
    """All numbers of a record.

    The family's metrics, against the closed form as far as it holds where they compare, and every
    number that a closed form predicts and the record tells. A number that cannot be taken says why
    and costs no other.

    Args:
        card: the family.
        subtask: of it.
        material: of it.
        built: its world.
        state: recorded states.
        course: what `course_of` says of them; None: it is asked here.
        data: a recording to hold them against; "": none.
        without: its trials that are left out, for the engine was fitted on them.
        recorded_drive: a recorded motion leads in place of the card's: no closed form is held
            against the record.

    Raises:
        UserError: as `course_of`.
    """
    course = course or course_of(card, subtask, material, built, state)
    compares = "rmse" in card.metrics and not recorded_drive
    nodes = as_published(card, built, state) if compares or data else None
    record = Record(card, subtask, material, built, state, course.values)
    out: list[Measurement] = []
    forms = () if recorded_drive else _predictions(card, subtask, material)
    if "rmse" in card.metrics and recorded_drive:
        out += _missing(card, NO_TRUTH)
    elif "rmse" in card.metrics:
        out += _compared(card, subtask, material, course, forms, built, nodes)
    if data:
        out += against(card, data, course, built.markers, nodes, without)
    out += _alone(card, record)
    for form in forms:
        for name, value in _told(record, form).items():
            said = expected(record, form, name)
            out.append(
                Measurement(
                    metric=name, truth=form.truth, value=_finite(value), unit=said.unit,
                    expected=_finite(said.value), ideal=said.ideal,
                    accuracy=_accuracy(form.truth, said), n=len(state),
                    reason="" if _finite(value) is not None else UNSEEN,
                )
            )  # fmt: skip
    if data:
        out += alone_against(record, data, _BY_ITSELF, without)
    out += kept(card, built, state)
    stretched = _stretch(built, state)
    if stretched is not None:
        out.append(Measurement(metric="stretch", value=stretched, n=len(state)))
    return tuple(out)


def _told(record: Record, form: Prediction) -> dict[str, float]:
    function = MEASURED.get(form.truth)
    return function(record, form) if function is not None else {}


def _accuracy(truth: str, said: Number) -> float:
    return TRUTHS[truth].accuracy if said.accuracy is None else said.accuracy


def _predictions(card: Family, subtask: str, material: str) -> tuple[Prediction, ...]:
    """Closed forms of a built-in set-up, worked out once a process."""
    return _worked_out(card.id, subtask, material)


@cache
def _worked_out(name: str, subtask: str, material: str) -> tuple[Prediction, ...]:
    return predict(families()[name], subtask, material)


def reference_of(
    card: Family, subtask: str, material: str, times: F8
) -> tuple[Prediction | None, F8 | None]:
    """The closed form of a set-up's course and its values (K, ...) at the first K times, in SI."""
    for form in _predictions(card, subtask, material):
        if form.trajectory is not None:
            frames = int((times <= form.valid[1] + 1e-9).sum())
            if frames >= 2:
                return form, form.trajectory(times[:frames])
    return None, None


def _compared(
    card: Family, subtask: str, material: str, course: Course, forms: tuple[Prediction, ...],
    built: Built, nodes: Nodes | None,
) -> list[Measurement]:  # fmt: skip
    unit = QUANTITY_UNITS[card.quantity]
    form, true = reference_of(card, subtask, material, course.times)
    if form is None or true is None or form.body not in (*course.names, *_worn(card)):
        reason = NO_CLOSED_FORM.get(card.id, "no closed form of its course")
        return _missing(card, reason)
    found = course.values[: len(true)]
    a = gauge.generalised(found, card.quantity)
    b = gauge.generalised(true, card.quantity)
    out = []
    for metric, value in (("rmse", rmse(a, b)), ("dtw", warp(a, b).mean)):
        out.append(
            Measurement(
                metric=metric, truth=form.truth, value=_finite(value), unit=unit,
                accuracy=TRUTHS[form.truth].accuracy, n=len(true),
                **over_published(card, subtask, material, metric),
            )
        )  # fmt: skip
    return out + scored_otherwise(
        card, subtask, material, built, nodes, found, true, form.truth, TRUTHS[form.truth].accuracy
    )


def _missing(card: Family, reason: str) -> list[Measurement]:
    unit = QUANTITY_UNITS[card.quantity]
    out = [Measurement(metric=m, unit=unit, reason=reason) for m in ("rmse", "dtw")]
    return [*out, *unscored(card.quantity, reason)]


def _worn(card: Family) -> tuple[str, ...]:
    return (card.markers.body,) if card.markers is not None else ()


def _alone(card: Family, record: Record) -> list[Measurement]:
    """Metrics of a record by itself: rest, momentum, period, energy."""
    out = []
    for metric in card.metrics:
        if metric not in _BY_ITSELF:
            continue
        unit, value = _BY_ITSELF[metric](record)
        found = _finite(value)
        out.append(
            Measurement(
                metric=metric, value=found, unit=unit, n=len(record.state),
                reason="" if found is not None else UNSEEN,
                **over_published(card, record.subtask, record.material, metric),
            )
        )  # fmt: skip
    return out


_BY_ITSELF: Mapping[str, Callable[[Record], tuple[str, float]]] = {
    # As motion capture tells it, which has no speeds: the closed form's number has the engine's.
    "lsd": lambda r: ("s", gauge.longest_rest(r.path("ball_5"), RECORD_HZ)),
    "mte_first": lambda r: ("%", 100 * r.momentum_transfer()),
    "pd_fourier": lambda r: ("s", gauge.pd_fourier(r.swing(), RECORD_HZ).raw),
    "el": lambda r: ("1", r.energy_loss().raw),
}


def _stretch(built: Built, state: StateLog) -> float | None:
    """Greatest strain of a textile's edge over the record [1]; None where there is no textile."""
    worst = None
    for item in built.scene.deformables:
        if not isinstance(item, Cloth):
            continue
        rest = rest_shape(item, built.meshes)
        edges, _ = edges_of(rest)
        strain = (
            edge_lengths(state.vertices[item.name], edges) / edge_lengths(rest.vertices, edges) - 1
        )
        # A high percentile: one pinched edge is no stretched sheet.
        worst = max(worst or 0.0, float(np.percentile(strain, 99, axis=1).max()))
    return worst


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


def say(error: Exception) -> str:
    """An error in one line."""
    return one_line(str(error))
