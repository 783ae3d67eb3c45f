"""How much of a facet's error is the scoring's: nodes in place of markers, areas as they are.

The published proxies are nodes up to 1 cm from their markers. Areas between such nodes differ from
those between the markers before anything moves, by a constant that can exceed all that the task
does to them. The same record, scored four ways, tells.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import Family
from wmeval.envs.gauge.build import Built
from wmeval.envs.gauge.markers import METHODS
from wmeval.errors import UserError
from wmeval.eval.metrics.gauge import generalised
from wmeval.eval.metrics.trajectory import rmse
from wmeval.eval.sweep.course import course_of
from wmeval.eval.sweep.measure import reference_of
from wmeval.eval.sweep.otherwise import relative
from wmeval.records import StateLog
from wmeval.scene import Card

F8 = NDArray[np.float64]


class Scoring(Card):
    """One way of scoring the areas of a record against its closed form.

    Attributes:
        markers: row of `METHODS`.
        error: RMSE of the areas as they are [mm^2].
        offset: what of it stands before anything moves [mm^2].
        relative: RMSE of A(t)/A(0) times the true A(0) [mm^2].
        signal: of the closed form: its RMS way from the start [mm^2].
    """

    markers: str
    error: float
    offset: float
    relative: float
    signal: float


def scored(areas: F8, true: F8, markers: str) -> Scoring:
    """Score areas (N, F) against true ones (N, F), both in mm^2."""
    return Scoring(
        markers=markers,
        error=rmse(areas, true),
        offset=rmse(np.repeat(areas[:1], len(areas), 0), np.repeat(true[:1], len(true), 0)),
        relative=relative(areas, true, "area"),
        signal=rmse(true, np.repeat(true[:1], len(true), 0)),
    )


def scorings(
    card: Family, subtask: str, material: str, built: Built, state: StateLog
) -> tuple[Scoring, ...]:
    """All ways; none where the family has no areas, or no closed form of them.

    Args:
        card: the family.
        subtask: of it.
        material: of it.
        built: its world.
        state: recorded states.
    """
    if card.quantity != "area" or built.markers is None:
        return ()
    form, true = reference_of(card, subtask, material, state.times)
    if form is None or true is None:
        return ()
    out = []
    for method in METHODS:
        try:
            course = course_of(card, subtask, material, built, state, method)
        except UserError:  # a marker that no node is near
            continue
        n = min(len(course.values), len(true))
        if course.values[0].size == true[0].size:
            a, b = (generalised(x[:n], "area") for x in (course.values, true))
            out.append(scored(a, b, method))
    return tuple(out)


def told(found: Sequence[Scoring]) -> str:
    """What they say, in a sentence; "" where the markers are not what is off."""
    by = {s.markers: s for s in found}
    if "hungarian" not in by:
        return ""
    s = by["hungarian"]
    ours = by.get("barycentric")
    texts = [
        f"scored as published (nodes near the markers, areas as they are) {s.error:.3g} mm2, of "
        f"which {s.offset:.3g} stand before anything moves, where the whole task moves them by "
        f"{s.signal:.3g}"
    ]
    if s.offset > 0.5 * s.error:
        texts.append(f"closed by A(t)/A(0) ({s.relative:.3g})")
    if ours is not None and ours.error < 0.5 * s.error:
        texts.append(f"closed by points of the body itself ({ours.error:.3g})")
    return "; ".join(texts)
