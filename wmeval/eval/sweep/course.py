"""What is compared over time: positions, curvatures or areas of a record."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import Family, Quantity, Rope
from wmeval.assets.gauge_markers import MarkerSet
from wmeval.envs.gauge.build import Built
from wmeval.envs.gauge.markers import followers
from wmeval.errors import UserError
from wmeval.eval.metrics import gauge, surfaces
from wmeval.records import StateLog

F8 = NDArray[np.float64]


def _curvature(points: F8, worn: MarkerSet) -> F8:
    if not len(worn.faces):
        return surfaces.turning_angles(points, worn.lines)
    return surfaces.curvature(
        points, worn.faces, surfaces.reference_angles(worn.points, worn.faces)
    )


LEVEL: Mapping[Quantity, Callable[[F8, MarkerSet], F8]] = {
    "position": lambda points, worn: points,
    "curvature": _curvature,
    "area": lambda points, worn: surfaces.face_areas(points, worn.faces),
}
"""From marker positions (N, M, 3) [m] to the quantity in SI units."""


@dataclass(frozen=True, eq=False)
class Course:
    """What is compared over time.

    Attributes:
        times: (N,) [s].
        values: (N, ...) in SI units.
        quantity: what they are.
        names: of the bodies; ("markers",) where markers are followed.
    """

    times: F8
    values: F8
    quantity: Quantity
    names: tuple[str, ...]

    @property
    def curve(self) -> F8:
        """One number a frame, in the published unit: the distance from the first frame (N,)."""
        g = gauge.generalised(self.values, self.quantity)
        out: F8 = np.linalg.norm(g - g[:1], axis=1) / math.sqrt(max(1, self.count))
        return out

    @property
    def count(self) -> int:
        """Bodies, markers or faces."""
        return int(self.values.shape[1]) if self.values.ndim > 1 else 1


def course_of(
    card: Family, subtask: str, material: str, built: Built, state: StateLog,
    method: str = "barycentric", markers: F8 | None = None,
) -> Course:  # fmt: skip
    """The quantity of a family over a record.

    Args:
        card: the family.
        subtask: of it.
        material: of it.
        built: its world.
        state: recorded states.
        method: row of `wmeval.envs.gauge.markers.METHODS`.
        markers: (N, M, 3) [m] where it was followed already; None: it is followed here.

    Raises:
        UserError: a marker that no proxy is near, or nothing to measure.
    """
    names, points = (
        measured_points(card, subtask, material, built, state, method)
        if markers is None
        else (("markers",), markers)
    )
    values = points if built.markers is None else LEVEL[card.quantity](points, built.markers)
    return Course(state.times, values, card.quantity, names)


def measured_points(
    card: Family, subtask: str, material: str, built: Built, state: StateLog,
    method: str = "barycentric",
) -> tuple[tuple[str, ...], F8]:  # fmt: skip
    """Where what is measured is: names of its bodies, or ("markers",), and points (N, M, 3) [m].

    Of a rigid body its centre, of what bends its markers or, where it wears none, its vertices.
    Arguments and errors are those of `course_of`.
    """
    if built.markers is not None:
        follow = followers(built.scene, built.meshes, built.markers, method)  # type: ignore[arg-type]
        return ("markers",), follow.track(state)
    names, parts = [], []
    for name in card.measured_in(subtask, material):
        if name in state.bodies:
            names.append(name)
            parts.append(state.position[:, state.body(name)][:, None])
        elif name in state.vertices:
            names.append(name)
            parts.append(state.vertices[name])
        elif isinstance(card.bodies[name].shape, Rope):
            links = [i for i, b in enumerate(state.bodies) if b.startswith(f"{name}_")]
            names.append(name)
            parts.append(state.position[:, links])
    if not parts:
        raise UserError(f"{card.id}: nothing of {', '.join(card.measured)} is in the record")
    return tuple(names), np.concatenate(parts, axis=1)
