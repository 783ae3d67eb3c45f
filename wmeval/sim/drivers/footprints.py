"""What an upright capsule on level ground bumps into: outlines of obstacles seen from above.

A standing capsule that may not climb meets a static obstacle where their outlines meet. Outlines
are discs (balls, upright cylinders and capsules) and convex polygons (boxes); exact for upright
obstacles, the hull of the tilted shape's corners for others.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import quaternion_multiply, quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import Body, Box, Capsule, Collision, Cylinder, Scene, Sphere

F8 = NDArray[np.float64]
XY = tuple[float, float]
CELL = 2.0
"""Width of the squares in which obstacles are looked up [m]."""
ROUNDS = 4


@dataclass(frozen=True)
class Outline:
    """One obstacle from above.

    Attributes:
        body: scene index.
        corners: of a convex polygon, counter-clockwise [m]; one corner is a disc's centre.
        radius: of the rounding [m]: a disc's radius, 0 for polygons.
        low, high: of its bounding rectangle [m].
    """

    body: int
    corners: tuple[XY, ...]
    radius: float
    low: XY
    high: XY

    def gap(self, x: float, y: float) -> tuple[float, float, float]:
        """Distance from (x, y) to the outline [m] (negative inside), and the unit way out."""
        corners = self.corners
        n = len(corners)
        if n == 1:
            dx, dy = x - corners[0][0], y - corners[0][1]
            d = math.sqrt(dx * dx + dy * dy)
            if d < 1e-12:
                return -self.radius, 1.0, 0.0
            return d - self.radius, dx / d, dy / d
        best, ways = -math.inf, (0.0, 0.0)
        nearest, toward = math.inf, (0.0, 0.0)
        ax, ay = corners[-1]
        for bx, by in corners:
            ex, ey = bx - ax, by - ay
            length = math.sqrt(ex * ex + ey * ey)
            ex, ey = ex / length, ey / length
            px, py = x - ax, y - ay
            outside = px * ey - py * ex
            if outside > best:
                best, ways = outside, (ey, -ex)
            along = min(max(px * ex + py * ey, 0.0), length)
            qx, qy = px - along * ex, py - along * ey
            d = qx * qx + qy * qy
            if d < nearest:
                nearest, toward = d, (qx, qy)
            ax, ay = bx, by
        if best <= 0.0:
            return best, ways[0], ways[1]
        d = math.sqrt(nearest)
        if d < 1e-12:
            return 0.0, ways[0], ways[1]
        return d, toward[0] / d, toward[1] / d


def outlines(scene: Scene, low: float, high: float, skip: Iterable[int] = ()) -> list[Outline]:
    """Outlines of all static collision shapes that reach into the heights ``low`` to ``high`` [m].

    Args:
        scene: whose static bodies count.
        low: lowest height that bumps [m].
        high: highest height that bumps [m].
        skip: scene indices that do not count.

    Raises:
        UserError: a static body collides as a mesh.
    """
    left_out = frozenset(skip)
    found = []
    for index, body in enumerate(scene.bodies):
        if body.motion != "static" or not body.active or index in left_out:
            continue
        for collision in body.collision:
            outline = _outline(index, body, collision, low, high)
            if outline is not None:
                found.append(outline)
    return found


def _outline(
    index: int, body: Body, collision: Collision, low: float, high: float
) -> Outline | None:
    turn = quaternion_to_matrix(np.array(body.quaternion_wxyz))
    centre = turn @ np.array(collision.position) + np.array(body.position)
    q = quaternion_multiply(np.array(body.quaternion_wxyz), np.array(collision.quaternion_wxyz))
    turn = quaternion_to_matrix(q)
    shape = collision.shape
    if isinstance(shape, Sphere):
        reach = shape.radius
        if centre[2] - reach >= high or centre[2] + reach <= low:
            return None
        # Its widest circle within the heights that bump.
        level = min(max(low - centre[2], 0.0), reach) if centre[2] < low else 0.0
        return _disc(index, centre, math.sqrt(max(reach * reach - level * level, 0.0)))
    if isinstance(shape, Cylinder | Capsule) and abs(turn[2, 2]) > 1 - 1e-9:
        if centre[2] - shape.height / 2 >= high or centre[2] + shape.height / 2 <= low:
            return None
        return _disc(index, centre, shape.radius)
    if isinstance(shape, Cylinder | Capsule):
        half = np.array([shape.radius, shape.radius, shape.height / 2])
    elif isinstance(shape, Box):
        half = np.array(shape.half_extents)
    else:
        raise UserError(
            f"body {body.name!r} collides as a mesh: a walker needs balls, boxes, cylinders and "
            "capsules"
        )
    signs = np.array([(a, b, c) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)], np.float64)
    corners = (signs * half) @ turn.T + centre
    if corners[:, 2].min() >= high or corners[:, 2].max() <= low:
        return None
    hull = convex_hull([(float(x), float(y)) for x, y, _ in corners])
    xs, ys = [x for x, _ in hull], [y for _, y in hull]
    return Outline(index, hull, 0.0, (min(xs), min(ys)), (max(xs), max(ys)))


def _disc(index: int, centre: F8, radius: float) -> Outline:
    x, y = float(centre[0]), float(centre[1])
    return Outline(index, ((x, y),), radius, (x - radius, y - radius), (x + radius, y + radius))


def convex_hull(points: Sequence[XY]) -> tuple[XY, ...]:
    """Corners of the convex hull, counter-clockwise (Andrew's monotone chain, 1979)."""
    ordered = sorted({(round(x, 9), round(y, 9)) for x, y in points})
    if len(ordered) < 3:
        return tuple(ordered)

    def chain(run: Iterable[XY]) -> list[XY]:
        out: list[XY] = []
        for p in run:
            while len(out) > 1 and _left(out[-2], out[-1], p) <= 1e-12:
                out.pop()
            out.append(p)
        return out[:-1]

    return tuple(chain(ordered) + chain(reversed(ordered)))


def _left(a: XY, b: XY, c: XY) -> float:
    return (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])


class Court:
    """Obstacles by place, and the way around them.

    Args:
        obstacles: outlines that keep a disc out.
        radius: of the disc [m].
    """

    def __init__(self, obstacles: Sequence[Outline], radius: float) -> None:
        self.radius = radius
        self._cells: dict[tuple[int, int], tuple[Outline, ...]] = {}
        cells: dict[tuple[int, int], list[Outline]] = {}
        for o in obstacles:
            x0, y0 = (math.floor((v - radius - 0.1) / CELL) for v in o.low)
            x1, y1 = (math.floor((v + radius + 0.1) / CELL) for v in o.high)
            for i in range(x0, x1 + 1):
                for j in range(y0, y1 + 1):
                    cells.setdefault((i, j), []).append(o)
        self._cells = {key: tuple(found) for key, found in cells.items()}

    def near(self, x: float, y: float) -> tuple[Outline, ...]:
        """Obstacles that a disc about (x, y) may touch."""
        return self._cells.get((math.floor(x / CELL), math.floor(y / CELL)), ())

    def clear(self, x: float, y: float) -> float:
        """Free space [m] around a disc about (x, y): negative where it overlaps, at most 2 m."""
        gaps = [o.gap(x, y)[0] - self.radius for o in self.near(x, y)]
        return min([CELL, *gaps])

    def settle(
        self, x: float, y: float, movers: Sequence[tuple[float, float, float]] = ()
    ) -> tuple[float, float]:
        """The nearest free place that pushing a disc out of what it overlaps leads to.

        Args:
            x: where it wants to be [m].
            y: where it wants to be [m].
            movers: discs (x, y, radius) that push it too; static obstacles win against them.

        Returns:
            Where it is [m]: moved along the ways out, so that what is left of a step into a wall is
            its part along the wall.
        """
        radius = self.radius
        for mx, my, r in movers:
            dx, dy = x - mx, y - my
            d = math.sqrt(dx * dx + dy * dy)
            if d < r + radius:
                ux, uy = (dx / d, dy / d) if d > 1e-9 else (1.0, 0.0)
                x, y = mx + (r + radius) * ux, my + (r + radius) * uy
        for _ in range(ROUNDS):
            moved = False
            for o in self.near(x, y):
                gap, ux, uy = o.gap(x, y)
                push = radius - gap
                if push > 1e-9:
                    x, y = x + push * ux, y + push * uy
                    moved = True
            if not moved:
                break
        return x, y
