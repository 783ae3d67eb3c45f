"""Shells of rooms: walls with openings, windows, doors, curtains, what hangs on walls.

A wall's frame: the room's side is y = 0, the room towards +y, x along it, the floor z = 0. There is
no ceiling: a picture's upper edge is 6 degrees above the horizon, so that none is ever in view, and
sun and sky come in over the walls as well as through the windows.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from wmeval.assets.meshes import box, cylinder, merge, revolve
from wmeval.assets.settings.boards import block, slab
from wmeval.assets.settings.stage import Stage
from wmeval.assets.solids import Part, Parts, moved, tube, turned
from wmeval.scene import MeshData

SIDES = {"south": 0.0, "east": 90.0, "north": 180.0, "west": -90.0}
"""Turn of a wall's frame [deg]; the south wall stands at y = -Y."""

THICK = 0.14


@dataclass(frozen=True)
class Opening:
    """A hole in a wall.

    Attributes:
        x: of its middle along the wall, in the stage's x or y [m].
        width: [m].
        low, high: heights of its lower and upper edge [m].
        kind: "window" (frame and bars), "door" (a closed leaf), "arch" or "gap" (nothing).
        bars: panes across and up.
    """

    x: float
    width: float
    low: float
    high: float
    kind: str = "window"
    bars: tuple[int, int] = (2, 1)


@dataclass(frozen=True)
class Room:
    """A rectangle of walls about the stage's origin.

    Attributes:
        stage: where it stands.
        x, y: half of the inner extents [m].
        height: of the walls [m].
    """

    stage: Stage
    x: float
    y: float
    height: float = 2.9

    def at(self, side: str, along: float, off: float = 0.0) -> tuple[float, float, float]:
        """Place (x, y) and turn of something that has its back on a wall.

        Args:
            side: of `SIDES`.
            along: the stage's x (south, north) or y (west, east) [m].
            off: distance from the wall [m].
        """
        turn = SIDES[side]
        if side in ("south", "north"):
            return along, (-self.y + off if side == "south" else self.y - off), turn
        return (-self.x + off if side == "west" else self.x - off), along, turn

    def put(
        self, name: str, parts: Iterable[Part], side: str, along: float, *, off: float = 0.0,
        z: float = 0.0,
    ) -> None:  # fmt: skip
        """Stand or hang something against a wall."""
        x, y, turn = self.at(side, along, off)
        self.stage.put(name, parts, x, y, z, turn)

    def wall(
        self,
        side: str,
        material: str,
        openings: Sequence[Opening] = (),
        *,
        frame: str = "white",
        skirting: str | None = "white",
        panel: tuple[str, float] | None = None,
    ) -> None:
        """A whole wall.

        Args:
            side: of `SIDES`.
            material: its look.
            openings: from one end to the other, none over another.
            frame: look of windows and doors.
            skirting: look of the skirting board, or none.
            panel: look and height [m] of a panelling with a rail.
        """
        half = self.x if side in ("south", "north") else self.y
        flip = 1.0 if side in ("south", "east") else -1.0
        holes = sorted(
            (Opening(flip * o.x, o.width, o.low, o.high, o.kind, o.bars) for o in openings),
            key=lambda o: o.x,
        )
        parts = [Part(_with_holes(half + THICK, self.height, THICK, holes), material)]
        gaps = [(o.x - o.width / 2, o.x + o.width / 2) for o in holes if o.low < 0.1]
        if skirting is not None:
            strips = [
                slab(((b - a) / 2, 0.009, 0.045), 0.004, at=((a + b) / 2, 0.009, 0.045), steps=1)
                for a, b in _between(-half, half, gaps)
            ]
            parts.append(Part(merge(strips), skirting))
        if panel is not None:
            name, top = panel
            spans = [(o.x - o.width / 2 - 0.08, o.x + o.width / 2 + 0.08)
                     for o in holes if o.low < top + 0.05]  # fmt: skip
            found = []
            for a, b in _between(-half, half, spans):
                found += _panelling(a, b, top)
            parts.append(Part(merge(found), name))
        for hole in holes:
            parts += [
                Part(moved(p.mesh, hole.x, 0.0, 0.0), p.material) for p in _fitted(hole, frame)
            ]
        self.put(f"wall_{side}", _joined(parts), side, 0.0)

    def alcove(
        self, side: str, along: float, width: float, depth: float, *, wall: str, floor: str
    ) -> None:
        """What is seen through a gap or an arch: a floor, a back wall and two sides.

        Args:
            side: of `SIDES`.
            along: middle of the opening, as for `at` [m].
            width: between its sides [m].
            depth: from the wall to its back [m].
            wall: look of its walls.
            floor: look of its floor.
        """
        w, far, t = width / 2, -THICK - depth, 0.08
        walls = [
            block(-w - t, w + t, far - t, far, 0.0, self.height),
            block(-w - t, -w, far, -THICK, 0.0, self.height),
            block(w, w + t, far, -THICK, 0.0, self.height),
        ]
        # A millimetre below the room's own floor, which reaches a little into it.
        ground = block(-w, w, far, 0.0, -0.04, -0.001)
        self.put("alcove", (Part(merge(walls), wall), Part(ground, floor)), side, along)


def _joined(parts: Iterable[Part]) -> Parts:
    groups: dict[str, list[MeshData]] = {}
    for part in parts:
        groups.setdefault(part.material, []).append(part.mesh)
    return tuple(Part(merge(found), name) for name, found in groups.items())


def _between(a: float, b: float, gaps: Sequence[tuple[float, float]]) -> list[tuple[float, float]]:
    """What is left of [a, b] without some intervals."""
    out, start = [], a
    for low, high in sorted(gaps):
        if low - start > 0.02:
            out.append((start, low))
        start = max(start, high)
    if b - start > 0.02:
        out.append((start, b))
    return out


def _with_holes(half: float, height: float, thick: float, holes: Sequence[Opening]) -> MeshData:
    spans = [(o.x - o.width / 2, o.x + o.width / 2) for o in holes]
    fields = [(a, b, 0.0, height) for a, b in _between(-half, half, spans)]
    arches = []
    for hole, (a, b) in zip(holes, spans, strict=True):
        if hole.low > 0.01:
            fields.append((a, b, 0.0, hole.low))
        if hole.high < height - 0.01:
            fields.append((a, b, hole.high, height))
        if hole.kind == "arch":
            arches.append(_arch(a, b, hole.high, thick))
    parts = [block(a, b, -thick, 0.0, z0, z1) for a, b, z0, z1 in fields]
    # A core that nobody sees: shadow maps keep the side that looks away from the sun, and the
    # wall's own would leave the last centimetres of a corner lit.
    inset = 0.008
    cores = [
        block(a + inset, b - inset, -thick + inset, -0.7 * thick, z0 + inset, z1 - inset)
        for a, b, z0, z1 in fields
        if min(b - a, z1 - z0) > 4 * inset
    ]
    return merge([*parts, *cores, *arches])


def _arch(a: float, b: float, high: float, thick: float) -> MeshData:
    """What fills the corners of a hole so that a half round is left."""
    r, middle, steps = (b - a) / 2, (a + b) / 2, 12
    parts = []
    for k in range(steps):
        t0, t1 = math.pi * k / steps, math.pi * (k + 1) / steps
        x0, x1 = middle + r * math.cos(t1), middle + r * math.cos(t0)
        # Its underside is a chord of the arc: a block cut slantwise.
        z0, z1 = high - r + r * math.sin(t1), high - r + r * math.sin(t0)
        piece = block(x0, x1, -thick, 0.0, min(z0, z1), high)
        v = piece.vertices.copy()
        low = v[:, 2] < high - 1e-4
        share = (v[low, 0] - x0) / max(x1 - x0, 1e-9)
        v[low, 2] = np.minimum(z0 + share * (z1 - z0), high - 1e-3)
        parts.append(MeshData(v, piece.triangles, piece.normals, piece.uv))
    return merge(parts)


def _panelling(a: float, b: float, top: float) -> list[MeshData]:
    count = max(1, round((b - a) / 0.62))
    step = (b - a) / count
    found = [
        slab(((b - a) / 2, 0.008, top / 2), 0.003, at=((a + b) / 2, 0.008, top / 2), steps=1),
        slab(((b - a) / 2, 0.022, 0.022), 0.008, at=((a + b) / 2, 0.018, top), steps=1),
        slab(((b - a) / 2, 0.018, 0.06), 0.005, at=((a + b) / 2, 0.014, 0.06), steps=1),
    ]
    for k in range(count):
        x = a + (k + 0.5) * step
        w, z0, z1 = step / 2 - 0.07, 0.19, top - 0.1
        bars = (
            (w, 0.012, x, z0), (w, 0.012, x, z1),
            (0.012, (z1 - z0) / 2 + 0.012, x - w, (z0 + z1) / 2),
            (0.012, (z1 - z0) / 2 + 0.012, x + w, (z0 + z1) / 2),
        )  # fmt: skip
        found += [slab((a, 0.012, c), 0.0, at=(px, 0.016, pz)) for a, c, px, pz in bars]
    return found


def _fitted(hole: Opening, frame: str) -> list[Part]:
    """What is in a hole, about its middle."""
    w, low, high = hole.width / 2, hole.low, hole.high
    mid, tall = (low + high) / 2, (high - low) / 2
    if hole.kind in ("gap", "arch"):
        return []
    casing = [
        slab((0.045, 0.022, tall + 0.045), 0.006, at=(s * (w + 0.03), 0.008, mid), steps=1)
        for s in (-1, 1)
    ]
    casing.append(slab((w + 0.095, 0.024, 0.045), 0.006, at=(0, 0.009, high + 0.03), steps=1))
    if hole.kind == "door":
        leaf = [slab((w, 0.022, tall), 0.003, at=(0, -0.05, mid), steps=1)]
        fields = ((low + 0.16, mid - 0.12), (mid + 0.06, high - 0.16))
        leaf += [
            slab((w / 2 - 0.1, 0.008, (z1 - z0) / 2), 0.007,
                 at=(s * w / 2, -0.026, (z0 + z1) / 2), steps=1)
            for z0, z1 in fields for s in (-1, 1)
        ]  # fmt: skip
        knob = slab((0.055, 0.012, 0.01), 0.008, at=(w - 0.11, 0.0, low + 1.02))
        plate = slab((0.02, 0.006, 0.06), 0.004, at=(w - 0.07, -0.022, low + 1.0))
        return [Part(merge(casing + leaf), frame), Part(merge([knob, plate]), "brass")]
    across, up = hole.bars
    bars = [
        slab((0.028, 0.03, tall), 0.006, at=(s * (w - 0.028), -0.07, mid), steps=1)
        for s in (-1, 1)
    ] + [
        slab((w, 0.03, 0.028), 0.006, at=(0, -0.07, z), steps=1)
        for z in (low + 0.028, high - 0.028)
    ]  # fmt: skip
    for k in range(1, across):
        x = -w + hole.width * k / across
        bars.append(slab((0.022, 0.026, tall), 0.006, at=(x, -0.07, mid), steps=1))
    for k in range(1, up):
        z = low + (high - low) * k / up
        bars.append(slab((w, 0.018, 0.014), 0.004, at=(0, -0.07, z), steps=1))
    if low > 0.2:
        bars.append(slab((w + 0.1, 0.09, 0.018), 0.006, at=(0, 0.05, low - 0.012), steps=1))
    else:
        bars.append(slab((w, 0.06, 0.012), 0.004, at=(0, -0.06, low + 0.012), steps=1))
    return [Part(merge(bars + casing), frame)]


# --- what hangs on walls ------------------------------------------------------------------------


def curtain(width: float, height: float, *, folds: int = 7, material: str = "gauze",
            depth: float = 0.045, seed: int = 0) -> Parts:  # fmt: skip
    """A drawn-back curtain that hangs from ``height`` [m]; its look is ``two_sided``."""
    rng = np.random.Generator(np.random.PCG64(seed % 2**16))
    columns, rows = 8 * folds + 1, 4
    u = np.linspace(0, 1, columns)
    phase = 2 * np.pi * folds * u + 0.5 * np.cumsum(rng.normal(0, 0.25, columns))
    points, normals, uv = [], [], []
    for k in range(rows):
        v = k / (rows - 1)
        wide = width * (0.86 + 0.14 * v)
        x = (u - 0.5) * wide
        y = 0.07 + depth * (0.55 + 0.45 * v) * np.sin(phase + 0.3 * v)
        z = np.full(columns, height * (1 - v) + 0.015 * v)
        slope = np.gradient(y, x)
        normals.append(np.stack([-slope, np.ones(columns), np.zeros(columns)], axis=1))
        points.append(np.stack([x, y, z], axis=1))
        uv.append(np.stack([u * 2.2 * width, np.full(columns, v * height)], axis=1))
    i = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    # Seen from the room (+y) with x to the left: down, then along.
    faces = np.concatenate([np.stack([i, i + 1, i + columns + 1], 1),
                            np.stack([i, i + columns + 1, i + columns], 1)])  # fmt: skip
    n = np.concatenate(normals)
    n /= np.linalg.norm(n, axis=1, keepdims=True)
    sheet = MeshData(
        np.concatenate(points).astype(np.float32),
        np.ascontiguousarray(faces, np.uint32),
        n.astype(np.float32),
        np.concatenate(uv).astype(np.float32),
    )
    return (Part(sheet, material),)


def rod(width: float, height: float, material: str = "black_metal") -> Parts:
    """A curtain rod with finials."""
    h = width / 2
    bar = tube([(-h, 0.07, height), (h, 0.07, height)], 0.013, 10)
    ends = [slab((0.02, 0.02, 0.02), 0.012, at=(s * (h + 0.015), 0.07, height)) for s in (-1, 1)]
    hooks = [slab((0.01, 0.04, 0.012), 0.003, at=(s * (h - 0.1), 0.035, height)) for s in (-1, 1)]
    return (Part(merge([bar, *ends, *hooks]), material),)


def picture(
    width: float, height: float, art: str, *, frame: str = "oak", mount: float = 0.0
) -> Parts:
    """A framed picture about its own middle; ``mount`` [m] of paper around it."""
    w, h, f = width / 2, height / 2, 0.018
    bars = [slab((w, 0.014, f), 0.004, at=(0, 0.014, s * (h - f)), steps=1) for s in (-1, 1)]
    bars += [slab((f, 0.014, h), 0.004, at=(s * (w - f), 0.014, 0), steps=1) for s in (-1, 1)]
    out = [Part(merge(bars), frame), Part(block(-w, w, 0.0, 0.012, -h, h), "paper")]
    m = 2 * f + mount
    out.append(Part(block(-w + m, w - m, 0.006, 0.015, -h + m, h - m), art))
    return tuple(out)


def round_mirror(radius: float, frame: str = "brass") -> Parts:
    """A round mirror about its own middle."""
    ring = revolve([(radius - 0.02, 0.0), (radius + 0.012, 0.0), (radius + 0.012, 0.028),
                    (radius - 0.02, 0.028), (radius - 0.02, 0.0)], 64)  # fmt: skip
    pane = moved(cylinder(radius - 0.01, 0.02, 64, 0), 0, 0, 0.01)
    return (
        Part(turned(ring, (1, 0, 0), -90), frame),
        Part(turned(pane, (1, 0, 0), -90), "mirror_glass"),
    )


def rug(length: float, width: float, material: str, *, thick: float = 0.012) -> Parts:
    """A rug on the floor; its texture spans it once."""
    mesh = moved(box((length / 2, width / 2, thick / 2), 0.004, 1), 0, 0, thick / 2)
    return (Part(mesh, material),)


def beam(start: tuple[float, float, float], end: tuple[float, float, float], half: float,
         material: str) -> Part:  # fmt: skip
    """A square timber along x or y between two points."""
    a, b = np.array(start), np.array(end)
    size = np.abs(b - a) / 2 + half
    x, y, z = ((a + b) / 2).tolist()
    return Part(
        slab((float(size[0]), float(size[1]), float(size[2])), 0.008, at=(x, y, z), steps=1),
        material,
    )
