"""Where a layout stands on its support, and from where it is seen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import axis_angle_quaternion, quaternion_multiply, quaternion_to_matrix
from wmeval.envs.rigidbench import framing
from wmeval.envs.rigidbench.layout import Layout
from wmeval.envs.rigidbench.place import Place
from wmeval.envs.rigidbench.shapes import Shape
from wmeval.envs.rigidbench.sight import visible_shares
from wmeval.scene import Camera

F8 = NDArray[np.float64]


class Search:
    """Poses and cameras of a layout on a support.

    Args:
        place: with the support.
        layout: of the actors.
        shapes: theirs.
        ranges: azimuths of the camera relative to the task's rotation [deg].
        width: of the picture [px].
        height: of the picture [px].
    """

    def __init__(
        self,
        place: Place,
        layout: Layout,
        shapes: Sequence[Shape],
        ranges: Sequence[tuple[float, float]],
        *,
        width: int,
        height: int,
    ) -> None:
        surface = place.card.surfaces[place.surface]
        self._origin = np.array(surface.center, np.float64)
        self._layout, self._shapes = layout, shapes
        self._surroundings = place.surroundings
        self._corners = np.concatenate([a.corners() for a in layout.actors])
        self._ranges = tuple(ranges)
        self._size = (width, height)
        self._shares: dict[float, dict[float, float]] = {}

    def poses(self, turn_deg: float) -> list[tuple[F8, F8]]:
        """Position (3,) and ``wxyz`` quaternion (4,) of every actor's body in the world."""
        turn = np.asarray(axis_angle_quaternion((0.0, 0.0, 1.0), math.radians(turn_deg)))
        rotation = quaternion_to_matrix(turn)
        out = []
        for actor, shape in zip(self._layout.actors, self._shapes, strict=True):
            own = quaternion_multiply(np.array(actor.quaternion_wxyz), np.array(shape.turn))
            quaternion = np.asarray(quaternion_multiply(turn, np.asarray(own)))
            quaternion = quaternion / np.linalg.norm(quaternion)
            middle = self._origin + rotation @ np.array(actor.position)
            center = quaternion_to_matrix(quaternion) @ np.array(shape.center)
            out.append((np.asarray(middle - center), quaternion))
        return out

    def box(self, turn_deg: float) -> tuple[F8, F8]:
        """Lower and upper corner (3,) of the actors' joint box, down to the support, world [m]."""
        turn = quaternion_to_matrix(
            np.asarray(axis_angle_quaternion((0.0, 0.0, 1.0), math.radians(turn_deg)))
        )
        corners = self._corners @ turn.T + self._origin
        low, high = corners.min(axis=0), corners.max(axis=0)
        low[2] = self._origin[2]
        return low, high

    def camera(self, turn_deg: float, azimuth_deg: float) -> Camera:
        """The camera that looks at the actors from an azimuth in the world."""
        low, high = self.box(turn_deg)
        width, height = self._size
        return framing.frame(low, high, azimuth_deg, width=width, height=height)

    def share(self, turn_deg: float, azimuth_deg: float) -> float:
        """Least visible share over the actors; the whole ring of a rotation is cast at once."""
        known = self._shares.get(turn_deg)
        if known is None:
            ring = list(framing.azimuths(self._ranges, turn_deg))
            known = dict(zip(ring, self._cast(turn_deg, ring), strict=True))
            self._shares[turn_deg] = known
        return known[azimuth_deg]

    def _cast(self, turn_deg: float, ring: Sequence[float]) -> list[float]:
        poses = self.poses(turn_deg)
        eyes = np.array([self.camera(turn_deg, a).position for a in ring], np.float64)
        shares: list[float] = visible_shares(
            [s.solid for s in self._shapes],
            [p for p, _ in poses],
            [quaternion_to_matrix(q) for _, q in poses],
            eyes,
            self._surroundings,
        ).tolist()
        return shares

    def others(self, main: Camera) -> tuple[Camera, Camera]:
        """Views beside the clip's: "static", higher and wider, and "top"."""
        eye, target = np.array(main.position), np.array(main.target)
        away = eye - target
        flat = float(np.hypot(away[0], away[1]))
        high = np.array([away[0], away[1], flat * math.tan(math.radians(28))]) * 1.15
        up = np.array([-away[0] / flat * 1e-2, -away[1] / flat * 1e-2, 1.0]) * flat
        cameras = []
        for name, way in (("static", high), ("top", up)):
            x, y, z = (target + way * self._room(target, way)).tolist()
            cameras.append(main.model_copy(update={"name": name, "position": (x, y, z)}))
        return cameras[0], cameras[1]

    def _room(self, target: F8, way: F8) -> float:
        """Share of a way from the target that ends before the setting is met."""
        reached = float(self._surroundings.reached(target[None], (target + way)[None])[0])
        return min(1.0, 0.9 * reached)
