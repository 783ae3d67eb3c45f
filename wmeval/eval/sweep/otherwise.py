"""GAUGE's RMSE scored two more ways: from the start, and as published.

Two things about the markers can be larger than all that a task does to them. The published proxies
are nodes up to 1 cm from their markers, so that areas and curvatures are off by a constant before
anything moves; and the published face list of the two-sided foams names one side twice and the
other never. Both are kept apart from the number that counts, whose markers are points of the body.

- ``rmse_relative``: of A(t) / A(0) times the reference's A(0), or of K(t) - K(0).
- ``rmse_published``: of nodes near the markers, on the published face list, as GAUGE scores.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import QUANTITY_UNITS, Family, Quantity
from wmeval.assets.gauge_markers import MarkerSet
from wmeval.assets.gauge_published import TRIALS, published
from wmeval.envs.gauge.build import Built
from wmeval.envs.gauge.markers import followers
from wmeval.errors import UserError, one_line
from wmeval.eval.metrics import surfaces
from wmeval.eval.metrics.gauge import generalised
from wmeval.eval.metrics.trajectory import rmse
from wmeval.eval.sweep.cells import UNSEEN, Measurement
from wmeval.eval.sweep.course import LEVEL, Course
from wmeval.records import StateLog

F8 = NDArray[np.float64]

OTHERWISE: Mapping[str, str] = {
    "rmse_relative": "RMSE from the start",
    "rmse_published": "RMSE, published faces",
}
"""These numbers, and how tables head them."""


def over_published(card: Family, subtask: str, material: str, metric: str) -> dict[str, Any]:
    """What a `Measurement` says of GAUGE's real trials: their baseline, its spread, their number.

    Empty where GAUGE publishes none.
    """
    known = published().find(card.id, subtask, material, metric)
    if known is None:
        return {}
    return {"baseline": known.baseline, "spread": known.spread, "trials": TRIALS}


def relative(found: F8, true: F8, quantity: Quantity) -> float:
    """RMSE of the way from the start.

    Args:
        found: (N, D) areas [mm^2] or curvatures [rad] of a record, as `generalised`.
        true: likewise, of the reference.
        quantity: what they are.
    """
    if quantity == "area":
        return rmse(surfaces.ratio_to_start(found) * true[0], true)
    return rmse(surfaces.change_from_start(found), surfaces.change_from_start(true))


def rows_of(faces: NDArray[np.intp], among: NDArray[np.intp]) -> list[int]:
    """For every face, which of the others has the same markers.

    Raises:
        ValueError: one is not among them.
    """
    known = {tuple(sorted(f)): k for k, f in enumerate(among.tolist())}
    rows = [known.get(tuple(sorted(f)), -1) for f in faces.tolist()]
    if -1 in rows:
        raise ValueError(f"face {rows.index(-1)} is not among the others")
    return rows


@dataclass(frozen=True, eq=False)
class Nodes:
    """What is scored as published.

    Attributes:
        worn: markers with the published faces.
        course: of the nodes that stand for them; None where a marker has none near it.
        reason: then, which.
    """

    worn: MarkerSet
    course: Course | None
    reason: str = ""


def as_published(card: Family, built: Built, state: StateLog) -> Nodes | None:
    """Markers with the published faces, and the course of the nodes that stand for them.

    None where positions are compared: then there is nothing else to score.
    """
    if built.markers is None or card.quantity == "position":
        return None
    worn = replace(built.markers, faces=built.markers.published_faces)
    try:
        track = followers(built.scene, built.meshes, worn, "hungarian").track(state)
    except UserError as error:
        return Nodes(worn, None, one_line(str(error)))
    values = LEVEL[card.quantity](track, worn)
    return Nodes(worn, Course(state.times, values, card.quantity, ("markers",)))


def scored_otherwise(
    card: Family, subtask: str, material: str, built: Built, nodes: Nodes | None, found: F8,
    true: F8, truth: str, accuracy: float = 0.0,
) -> list[Measurement]:  # fmt: skip
    """Both numbers against a closed form; none where positions are compared.

    Args:
        card: the family.
        subtask: of it.
        material: of it.
        built: its world.
        nodes: what `as_published` says of the record.
        found: (N, ...) the course of the body's own points, SI.
        true: (K, ...) the closed form's at the first K of them, on our faces.
        truth: its name.
        accuracy: relative error of it.
    """
    worn = built.markers
    if nodes is None or worn is None:
        return []
    n = len(true)
    unit = QUANTITY_UNITS[card.quantity]
    value, reason = None, nodes.reason
    if nodes.course is not None:
        wanted = true
        if card.quantity == "area":
            wanted = true.reshape(n, -1)[:, rows_of(nodes.worn.faces, worn.faces)]
        a, b = (generalised(x, card.quantity) for x in (nodes.course.values[:n], wanted))
        value, reason = _told(rmse(a, b))
    a, b = (generalised(x, card.quantity) for x in (found[:n], true))
    own, why = _told(relative(a, b, card.quantity))
    return [
        Measurement(
            metric="rmse_relative", truth=truth, value=own, unit=unit, accuracy=accuracy, n=n,
            reason=why,
        ),
        Measurement(
            metric="rmse_published", truth=truth, value=value, unit=unit, accuracy=accuracy, n=n,
            reason=reason, **over_published(card, subtask, material, "rmse"),
        ),
    ]  # fmt: skip


def _told(value: float) -> tuple[float | None, str]:
    return (value, "") if np.isfinite(value) else (None, UNSEEN)


def unscored(quantity: Quantity, reason: str) -> Sequence[Measurement]:
    """Both numbers, missing; none where positions are compared."""
    if quantity == "position":
        return ()
    unit = QUANTITY_UNITS[quantity]
    return tuple(Measurement(metric=m, unit=unit, reason=reason) for m in OTHERWISE)
