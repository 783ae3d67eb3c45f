"""A picture as a grid of square cells, to say which parts of it need what. Pure numpy.

Masks of cells only choose the cheapest way to draw: they may be too large, never too small.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.sim.render.pieces import OPAQUE, Pieces, View

F8 = NDArray[np.float64]
Mask = NDArray[np.bool_]
Rect = tuple[int, int, int, int]
"""x0, y0, x1, y1 [px]; the ends are exclusive."""

MARGIN_PX = 2
PARTS = 8
"""Of a cell's side, in which outlines are drawn to find the cells they touch."""
SMALL_CELLS = 1.5
_FAR = 30_000.0  # beyond, what is drawn would no longer be exact
_ROUNDING = np.ones((5, 5), np.uint8)


def intersection(a: Rect, b: Rect) -> Rect | None:
    """What two rectangles share."""
    out = (max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3]))
    return out if out[2] > out[0] and out[3] > out[1] else None


def outside(a: Rect, b: Rect | None) -> list[Rect]:
    """The part of ``a`` that is not in ``b``, as up to four rectangles."""
    both = b and intersection(a, b)
    if both is None:
        return [a]
    x0, y0, x1, y1 = both
    parts = [(a[0], a[1], a[2], y0), (a[0], y1, a[2], a[3])]
    parts += [(a[0], y0, x0, y1), (x1, y0, a[2], y1)]
    return [p for p in parts if p[2] > p[0] and p[3] > p[1]]


@dataclass(frozen=True)
class Grid:
    """Cells of a picture.

    Attributes:
        width, height: of the picture [px].
        size: of a cell [px], even: the 2 x 2 pixels that share derivatives stay together.
    """

    width: int
    height: int
    size: int

    @staticmethod
    def of(width: int, height: int) -> Grid:
        """Cells for a picture: each costs about as much to draw as to tell apart."""
        return Grid(width, height, 8 if width * height < 50_000 else 16)

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of cells."""
        return -(-self.height // self.size), -(-self.width // self.size)

    def _ranges(self, bounds: F8) -> NDArray[np.int64]:
        """Ends (N, 4) x0, y0, x1, y1 in cells of bounds (N, 4) [px] with a margin; x1 exclusive."""
        rows, columns = self.shape
        grown = bounds + np.array([-MARGIN_PX, -MARGIN_PX, MARGIN_PX, MARGIN_PX])
        limit = np.array([columns, rows, columns, rows]) * self.size
        inside = np.clip(np.nan_to_num(grown, posinf=1e9, neginf=-1e9), 0, limit) / self.size
        low, high = np.floor(inside[:, :2]), np.ceil(inside[:, 2:])
        return np.asarray(np.concatenate([low, high], axis=1), np.int64)

    def mark(self, bounds: F8) -> Mask:
        """Cells that any of the bounds (N, 4) [px] reaches into."""
        rows, columns = self.shape
        x0, y0, x1, y1 = self._ranges(bounds).T
        some = (x1 > x0) & (y1 > y0)
        x0, y0, x1, y1 = x0[some], y0[some], x1[some], y1[some]
        # Each rectangle as steps at its corners, summed up at once.
        wide = columns + 1
        at = np.concatenate([y0 * wide + x0, y1 * wide + x1, y0 * wide + x1, y1 * wide + x0])
        step = np.repeat([1.0, 1.0, -1.0, -1.0], len(x0))
        steps = np.bincount(at, step, (rows + 1) * wide).reshape(rows + 1, wide)
        return np.asarray(steps.cumsum(axis=0).cumsum(axis=1)[:-1, :-1] > 0.5)

    def cover(self, view: View, *hulls: F8) -> Mask:
        """Cells that the convex hulls of points may reach into.

        What lies behind the camera reaches into none, what passes it (or nearly so) into all.

        Args:
            view: of the picture.
            hulls: points (N, K, 3) [m] of N hulls each.
        """
        import cv2

        rows, columns = self.shape
        fine = np.zeros((rows * PARTS, columns * PARTS), np.uint8)
        size = np.array([self.width, self.height]) * (PARTS / self.size)
        boxes: list[F8] = []
        for points in hulls:
            local = (points - view.eye) @ view.axes.T
            behind = local[..., 2] < view.near
            front = ~behind.any(axis=1)
            if not (front | behind.all(axis=1)).all():
                return np.ones(self.shape, bool)
            local = local[front]
            at = (local[..., :2] / local[..., 2:] / np.array(view.tangents) + 1) / 2 * size - 0.5
            if len(at) and np.abs(at).max() > _FAR:
                return np.ones(self.shape, bool)
            # What is hardly larger than a cell is marked as its box: no hull is worth its while.
            low, high = at.min(axis=1), at.max(axis=1)
            small = ((high - low) < SMALL_CELLS * PARTS).all(axis=1)
            if small.any():
                boxes.append(np.concatenate([low[small], high[small]], axis=1) + 0.5)
            for hull in np.rint(at[~small] * 16).astype(np.int32):
                cv2.fillConvexPoly(fine, cv2.convexHull(hull), (255,), shift=4)
        # What is drawn in these finer parts is right to two of them.
        cv2.dilate(fine, _ROUNDING, dst=fine)
        few = cv2.resize(fine, (columns, rows), interpolation=cv2.INTER_AREA)
        marked = np.asarray(few) > 0
        return marked | self.mark(np.concatenate(boxes) * (self.size / PARTS)) if boxes else marked

    def fill(self, rects: list[Rect]) -> Mask:
        """The inverse of `rects`."""
        out = np.zeros(self.shape, bool)
        s = self.size
        for x0, y0, x1, y1 in rects:
            out[y0 // s : -(-y1 // s), x0 // s : -(-x1 // s)] = True
        return out

    def touched(self, mask: Mask, bounds: F8) -> Mask:
        """Which of the bounds (N, 4) [px] reach into a marked cell."""
        total = np.zeros((mask.shape[0] + 1, mask.shape[1] + 1), np.int64)
        np.cumsum(np.cumsum(mask, axis=0), axis=1, out=total[1:, 1:])
        x0, y0, x1, y1 = self._ranges(bounds).T
        x1, y1 = np.maximum(x0, x1), np.maximum(y0, y1)
        return np.asarray(total[y1, x1] - total[y0, x1] - total[y1, x0] + total[y0, x0] > 0)

    def joined(self, mask: Mask) -> Mask:
        """The mask with its small gaps filled: fewer rectangles, of a few more cells."""
        import cv2

        wide = np.pad(mask.astype(np.uint8), 2)
        closed = cv2.morphologyEx(wide, cv2.MORPH_CLOSE, _ROUNDING[:3, :3])
        return np.asarray(closed[2:-2, 2:-2] > 0)

    def blocks(self, mask: Mask, cost_px: float) -> list[Rect]:
        """Few rectangles [px] that hold all marked cells and do not overlap.

        Args:
            mask: cells.
            cost_px: what one more rectangle costs, in pixels.
        """
        out: list[Rect] = []
        cost = cost_px / self.size**2
        waiting = [(0, 0, mask.shape[1], mask.shape[0])]
        while waiting:
            x0, y0, x1, y1 = waiting.pop()
            part = mask[y0:y1, x0:x1]
            columns, rows = part.any(axis=0).nonzero()[0], part.any(axis=1).nonzero()[0]
            if not len(rows):
                continue
            x0, x1 = x0 + int(columns[0]), x0 + int(columns[-1]) + 1
            y0, y1 = y0 + int(rows[0]), y0 + int(rows[-1]) + 1
            part = mask[y0:y1, x0:x1]
            area = (x1 - x0) * (y1 - y0)
            across, at_x = _best_cut(part)
            down, at_y = _best_cut(part.T)
            if min(across, down) + cost >= area:
                s = self.size
                out.append((x0 * s, y0 * s, min(x1 * s, self.width), min(y1 * s, self.height)))
            elif across <= down:
                waiting += [(x0, y0, x0 + at_x, y1), (x0 + at_x, y0, x1, y1)]
            else:
                waiting += [(x0, y0, x1, y0 + at_y), (x0, y0 + at_y, x1, y1)]
        return out

    def rects(self, mask: Mask) -> list[Rect]:
        """The marked cells as rectangles [px] that do not overlap."""
        if mask.all():
            return [(0, 0, self.width, self.height)]
        edges = np.diff(np.pad(mask.astype(np.int8), ((0, 0), (1, 1))), axis=1)
        row, x0 = np.nonzero(edges > 0)
        x1 = np.nonzero(edges < 0)[1]
        out: list[Rect] = []
        open_: dict[tuple[int, int], int] = {}
        runs: list[list[tuple[int, int]]] = [[] for _ in range(mask.shape[0] + 1)]
        for y, a, b in zip(row.tolist(), x0.tolist(), x1.tolist(), strict=True):
            runs[y].append((a, b))
        s = self.size
        for y, current in enumerate(runs):
            # A run that the next row has, too, goes on; the others end above this row.
            going = {run: open_.get(run, y) for run in current}
            for (a, b), top in open_.items():
                if (a, b) not in going:
                    out.append((a * s, top * s, min(b * s, self.width), min(y * s, self.height)))
            open_ = going
        return out


def _best_cut(mask: Mask) -> tuple[int, int]:
    """The column before which a cut leaves the smallest two bounding boxes; their area first."""
    rows, columns = mask.shape
    if columns < 2:
        return rows * columns, 0
    some = mask.any(axis=0)
    first = np.where(some, mask.argmax(axis=0), rows)
    last = np.where(some, rows - mask[::-1].argmax(axis=0), 0)
    index = np.arange(columns)

    def grown(first: NDArray[np.int64], last: NDArray[np.int64], some: Mask) -> NDArray[np.int64]:
        """Area of the box of the first 1, 2, ... columns."""
        high = np.maximum.accumulate(last) - np.minimum.accumulate(first)
        start = int(some.argmax())
        wide = np.maximum.accumulate(np.where(some, index + 1, 0)) - start
        return np.asarray(np.maximum(high, 0) * np.maximum(wide, 0))

    left = grown(first, last, some)
    right = grown(first[::-1], last[::-1], some[::-1])[::-1]
    total = left[:-1] + right[1:]
    best = int(total.argmin())
    return int(total[best]), best + 1


@dataclass(frozen=True, eq=False)
class Layout:
    """How the cells of one instant's picture are drawn.

    Attributes:
        grid: the cells.
        covered: show the floor's top and nothing behind it.
        open: show nothing of the floor's top.
        many: edges of anything may show: several samples a pixel.
        shaded: the floor's top may be shadowed or darkened.
    """

    grid: Grid
    covered: Mask
    open: Mask
    many: Mask
    shaded: Mask

    def differs(self, other: Layout) -> Mask:
        """Cells that the two draw in different ways: equal up to rounding, not to the bit."""
        return np.asarray((self.many != other.many) | (self.shaded != other.shaded))


@dataclass(frozen=True, eq=False)
class Ground:
    """The floor's top as a plane.

    Attributes:
        half: half extents [m] of the part that is flat.
        disc: it is round.
        top: height [m] above the piece's origin.
        u, v: texture coordinates as (x, y, 1) of the piece's frame times these.
    """

    half: tuple[float, float]
    disc: bool
    top: float
    u: F8
    v: F8

    @staticmethod
    def of(pieces: Pieces) -> Ground | None:
        """The top of the floor's finest mesh; None where there is no floor or it is not plain."""
        k = pieces.floor
        if k < 0 or pieces.kind[k] != OPAQUE or pieces.ball[k]:
            return None
        count, first, start = pieces.slots[pieces.slot[k]]
        used = np.unique(pieces.triangles.ravel()[first : first + count]) + start
        vertices = pieces.vertices[used].astype(np.float64)
        flat = vertices[vertices[:, 5] > 1 - 1e-6]
        if len(flat) < 3 or np.ptp(flat[:, 2]) > 1e-6:
            return None
        place = np.column_stack([flat[:, :2], np.ones(len(flat))])
        maps, _, rank, _ = np.linalg.lstsq(place, flat[:, 6:8], rcond=None)
        if rank < 3 or np.abs(place @ maps - flat[:, 6:8]).max() > 1e-4:
            return None
        x, y = np.abs(flat[:, :2]).max(axis=0)
        disc = not (np.abs(flat[:, :2]) > 0.999 * np.array([x, y])).all(axis=1).any()
        return Ground((float(x), float(y)), disc, float(flat[0, 2]), maps[:, 0], maps[:, 1])

    def maps(self, pieces: Pieces, rotation: F8, centre: F8) -> tuple[F8, F8]:
        """Texture coordinates as (x, y, 1) of the world times these; whole turns are left out.

        Args:
            pieces: whose floor it is.
            rotation: (3, 3) of the floor.
            centre: (3,) of the floor, relative to where x and y are counted from [m].
        """
        out = []
        for row, repeat in zip((self.u, self.v), pieces.record[pieces.floor, 13:15], strict=True):
            turned = rotation[:2, :2] @ row[:2]
            start = (row[2] - turned @ centre[:2]) * float(repeat)
            out.append(np.array([*(turned * float(repeat)), start % 1.0]))
        return out[0], out[1]

    def lies(self, pieces: Pieces, rotation: F8, drawn: Mask) -> bool:
        """It is in the world, and level."""
        k = pieces.floor
        return bool(drawn[k] and rotation[k, 2, 2] > 1 - 1e-9)

    def split(self, grid: Grid, camera: View, rotation: F8, centre: F8) -> tuple[Mask, Mask]:
        """Cells that show the floor's top and nothing behind it; cells that show nothing of it.

        The top is convex: a cell whose corners lie on it lies on it altogether.

        Args:
            grid: cells.
            camera: view.
            rotation: (3, 3) of the floor.
            centre: (3,) [m] of the floor.
        """
        rows, columns = grid.shape
        eye = (camera.eye - centre) @ rotation
        height = eye[2] - self.top
        if height <= 1e-3:
            nothing = np.zeros(grid.shape, bool)
            return nothing, nothing
        s = grid.size
        x = np.minimum(np.arange(columns + 1) * s, grid.width) * 2 / grid.width - 1
        y = np.minimum(np.arange(rows + 1) * s, grid.height) * 2 / grid.height - 1
        ray = (
            camera.axes[2]
            + x[None, :, None] * (camera.tangents[0] * camera.axes[0])
            + y[:, None, None] * (camera.tangents[1] * camera.axes[1])
        ) @ rotation
        with np.errstate(divide="ignore", invalid="ignore"):
            t = -height / ray[..., 2]
            at = eye[:2] + ray[..., :2] * t[..., None]
        if self.disc:
            inside = np.hypot(at[..., 0], at[..., 1]) < 0.99 * min(self.half)
        else:
            inside = (np.abs(at) < 0.999 * np.array(self.half)).all(axis=-1)
        inside &= (t > camera.near) & (t < 0.99 * camera.far)
        # The whole floor lies below its top: a ray that does not descend meets none of it.
        above = ray[..., 2] >= 0

        def whole(corner: Mask) -> Mask:
            return np.asarray(corner[:-1, :-1] & corner[1:, :-1] & corner[:-1, 1:] & corner[1:, 1:])

        return whole(inside), whole(above)
