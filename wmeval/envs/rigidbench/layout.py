"""Where a task's actors stand: drawn from its card, then laid out in the task's own frame.

The task frame has its origin on the support, x along the task (down the first ramp), y to the left
and z up. Positions are of the middle of an object's box as it stands; builders put an object's long
axis along x. Source: RigidBench, sections A.1 and A.3, Table 4.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.cards import Cluster, Drop, Interval, Library, Line, OnRamp, Ramp, TaskCard
from wmeval.conventions import axis_angle_quaternion, quaternion_multiply, quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import IDENTITY, Quat, Vec3

F8 = NDArray[np.float64]
Sizes = Mapping[str, Vec3]
"""Extents of every object as it stands [m], by id."""

CLEARANCE_M = 1e-3
"""Gap under a placed object: the collision margin of active bodies (Table 7)."""


@dataclass(frozen=True)
class Wedge:
    """A ramp's dimensions [m] and material."""

    length: float
    height: float
    width: float
    material: str

    @property
    def angle(self) -> float:
        """Slope [rad]."""
        return math.atan2(self.height, self.length)


@dataclass(frozen=True)
class Actor:
    """A thing that a task puts on its support.

    Attributes:
        name: slot, with a number where the slot holds several.
        object: id of the object's card; None for a ramp.
        wedge: the ramp's dimensions; None for an object.
        size: extents in its own frame [m].
        position: middle of its box, task frame [m].
        quaternion_wxyz: own frame to task frame.
    """

    name: str
    object: str | None
    wedge: Wedge | None
    size: Vec3
    position: Vec3
    quaternion_wxyz: Quat = IDENTITY

    @property
    def active(self) -> bool:
        """It moves; a ramp does not."""
        return self.wedge is None

    def corners(self) -> F8:
        """The eight corners (8, 3) of its box, task frame [m]."""
        signs = np.array(list(np.ndindex(2, 2, 2))) - 0.5
        turn = quaternion_to_matrix(np.array(self.quaternion_wxyz))
        return np.asarray(signs * np.array(self.size) @ turn.T + np.array(self.position))


@dataclass(frozen=True)
class Layout:
    """Actors in the task frame, their footprint centred on the origin."""

    actors: tuple[Actor, ...]

    def box(self) -> tuple[F8, F8]:
        """Lower and upper corner (3,) of all actors' boxes, task frame [m]."""
        corners = np.concatenate([a.corners() for a in self.actors])
        return corners.min(axis=0), corners.max(axis=0)

    @property
    def footprint(self) -> tuple[float, float]:
        """Extents along x and y [m]."""
        low, high = self.box()
        return float(high[0] - low[0]), float(high[1] - low[1])

    @property
    def reach(self) -> float:
        """Largest distance of an actor's box from the vertical through the origin [m]."""
        corners = np.concatenate([a.corners() for a in self.actors])
        return float(np.hypot(corners[:, 0], corners[:, 1]).max())


def fits(footprint: tuple[float, float], support: tuple[float, float], angle: float) -> bool:
    """Whether a footprint turned by ``angle`` [rad] lies on a support (section A.3).

    Args:
        footprint: extents along the task's x and y [m].
        support: extents along the support's long and short axis [m].
        angle: from the long axis to the task's x [rad].
    """
    length, width = footprint
    c, s = abs(math.cos(angle)), abs(math.sin(angle))
    return length * c + width * s <= support[0] and length * s + width * c <= support[1]


def ring_radius(radius: float, gap: float, count: int) -> float:
    """Radius R = (r + g/2) / sin(pi/n) of a ring of n things, g apart [m] (section A.1)."""
    return (radius + gap / 2) / math.sin(math.pi / count)


def draw_layout(
    task: TaskCard,
    library: Library,
    objects: tuple[str, ...],
    sizes: Sizes,
    rng: np.random.Generator,
) -> Layout:
    """Draw dimensions and objects of a task and lay them out.

    Every interval and every object is drawn uniformly, each for itself, in the card's order: two
    things of a line or a cluster may be of one kind.

    Args:
        task: the task.
        library: all cards.
        objects: ids that may be used.
        sizes: their extents.
        rng: the sample's.

    Raises:
        UserError: no object among the allowed ones has a tag that the task needs.
    """
    ramps: dict[str, Actor] = {}
    actors: list[Actor] = []
    shared_gap: float | None = None
    material = _choice(task.ramp_materials, rng) if task.ramp_materials else ""

    def pick(card: Drop | OnRamp | Line | Cluster, count: int = 1) -> list[str]:
        allowed = [i for i in objects if card.tags in library.objects[i].tags]
        allowed = list(card.objects) or allowed
        where = f"task {task.id!r}, slot {card.slot!r}"
        if not allowed:
            raise UserError(f"{where}: none of {', '.join(objects)} is tagged {card.tags!r}")
        unknown = [i for i in allowed if i not in sizes]
        if unknown:
            raise UserError(f"{where}: no object {unknown[0]!r}: choose from {', '.join(sizes)}")
        chosen = rng.integers(len(allowed), size=count)
        return [allowed[i] for i in chosen]

    for placement in task.placements:
        match placement:
            case Drop():
                (name,) = pick(placement)
                size = sizes[name]
                height = _uniform(placement.height_m, rng)
                if height < size[2] / 2:
                    raise UserError(
                        f"task {task.id!r}, slot {placement.slot!r}: height_m = {height:.4g} puts "
                        f"{name!r} into the support: give at least {size[2] / 2:.4g}"
                    )
                actors.append(Actor(placement.slot, name, None, size, (0.0, 0.0, height)))
            case Ramp():
                wedge = Wedge(
                    _uniform(placement.length_m, rng),
                    _uniform(placement.height_m, rng),
                    _uniform(placement.width_m, rng),
                    material,
                )
                if placement.gap_m is not None and shared_gap is None:
                    shared_gap = _uniform(placement.gap_m, rng)
                ramps[placement.slot] = ramp = _ramp(placement, wedge, shared_gap or 0.0)
                actors.append(ramp)
            case OnRamp():
                (name,) = pick(placement)
                actors.append(_on_ramp(placement, ramps[placement.ramp], name, sizes[name]))
            case Line():
                names = pick(placement, placement.count)
                actors += _line(placement, ramps[placement.in_front_of], names, sizes, rng)
            case Cluster():
                names = pick(placement, placement.count)
                actors += _cluster(placement, names, sizes, rng)
    return _centred(Layout(tuple(actors)))


# --- parts --------------------------------------------------------------------------------------


def _uniform(interval: Interval, rng: np.random.Generator) -> float:
    return float(rng.uniform(*interval))


def _choice(names: tuple[str, ...], rng: np.random.Generator) -> str:
    return names[int(rng.integers(len(names)))]


def _about(axis: Vec3, angle: float) -> F8:
    return np.asarray(axis_angle_quaternion(axis, angle))


def _quat(q: F8) -> Quat:
    w, x, y, z = q.tolist()
    return (w, x, y, z)


def _ramp(card: Ramp, wedge: Wedge, gap: float) -> Actor:
    """A wedge whose low edge lies ``gap / 2`` before the origin, or behind it facing back."""
    back = card.facing == "backward"
    x = (gap / 2 + wedge.length / 2) * (1.0 if back else -1.0)
    turn = _quat(_about((0.0, 0.0, 1.0), math.pi)) if back else IDENTITY
    size = (wedge.length, wedge.width, wedge.height)
    return Actor(card.slot, None, wedge, size, (x, 0.0, wedge.height / 2), turn)


def _on_ramp(card: OnRamp, ramp: Actor, name: str, size: Vec3) -> Actor:
    """An object on the slope, its long axis across, its underside along the slope."""
    assert ramp.wedge is not None
    angle, wedge = ramp.wedge.angle, ramp.wedge
    along = card.position * math.hypot(wedge.length, wedge.height)
    lift = size[2] / 2 + CLEARANCE_M
    # In the ramp's own frame: from the top edge down the slope, then off it along its normal.
    x = -wedge.length / 2 + along * math.cos(angle) + lift * math.sin(angle)
    z = wedge.height / 2 - along * math.sin(angle) + lift * math.cos(angle)
    place = quaternion_to_matrix(np.array(ramp.quaternion_wxyz)) @ np.array([x, 0.0, z])
    pitched = quaternion_multiply(
        _about((0.0, 1.0, 0.0), angle), _about((0.0, 0.0, 1.0), math.pi / 2)
    )
    turn = quaternion_multiply(np.array(ramp.quaternion_wxyz), pitched)
    px, py, pz = (place + np.array(ramp.position)).tolist()
    return Actor(card.slot, name, None, size, (px, py, pz), _quat(np.asarray(turn)))


def _standing(name: str, card: str, size: Vec3, x: float, y: float, yaw: float = 0.0) -> Actor:
    turn = _quat(_about((0.0, 0.0, 1.0), yaw)) if yaw else IDENTITY
    return Actor(name, card, None, size, (x, y, size[2] / 2 + CLEARANCE_M), turn)


def _line(
    card: Line, ramp: Actor, names: list[str], sizes: Sizes, rng: np.random.Generator
) -> list[Actor]:
    """Objects in a row from the ramp's low edge on, long axes across the row."""
    assert ramp.wedge is not None
    x = ramp.position[0] + ramp.wedge.length / 2 + _uniform(card.distance_m, rng)
    out = []
    for i, name in enumerate(names):
        across, along = sizes[name][0], sizes[name][1]
        if i:
            x += _uniform(card.gap_m, rng)
        yaw = math.pi / 2 if across != along else 0.0
        out.append(_standing(f"{card.slot}_{i}", name, sizes[name], x + along / 2, 0.0, yaw))
        x += along
    return out


def _cluster(
    card: Cluster, names: list[str], sizes: Sizes, rng: np.random.Generator
) -> list[Actor]:
    """Objects in a ring about the origin that has room for the widest of them."""
    gap = _uniform(card.gap_m, rng)
    radius = max(max(sizes[n][0], sizes[n][1]) / 2 for n in names)
    ring = ring_radius(radius, gap, len(names))
    out = []
    for i, name in enumerate(names):
        angle = 2 * math.pi * i / len(names)
        x, y = ring * math.cos(angle), ring * math.sin(angle)
        out.append(_standing(f"{card.slot}_{i}", name, sizes[name], x, y))
    return out


def _centred(layout: Layout) -> Layout:
    low, high = layout.box()
    dx, dy = ((low + high) / 2)[:2].tolist()
    return Layout(
        tuple(
            replace(a, position=(a.position[0] - dx, a.position[1] - dy, a.position[2]))
            for a in layout.actors
        )
    )
