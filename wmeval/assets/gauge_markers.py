"""Marker layouts of GAUGE's deformable families: where markers start and how they are triangulated.

Counts are the published ones; the layouts are read from the clips or inferred from the counts
(GAUGE's Fig. 2, section 3.1.2: adjacent markers are connected into a triangulated surface).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import Box, Cylinder, Family, Sheet
from wmeval.errors import UserError

F8 = NDArray[np.float64]
I8 = NDArray[np.intp]

_AXES = {"x": 0, "y": 1, "z": 2}


@dataclass(frozen=True, eq=False)
class MarkerSet:
    """Markers on a body.

    Attributes:
        points: (N, 3) starting positions [m], world frame.
        faces: (F, 3) markers of each triangle; empty where the markers form lines or stand alone.
        published_faces: the face list as GAUGE publishes it, where it differs from ours: its foam
            strips list the face along +x twice and that along +y never.
        lines: chains of markers along an edge; empty where there are faces.
        names: of the markers, as error messages say them.
    """

    points: F8
    faces: I8
    published_faces: I8
    lines: tuple[tuple[int, ...], ...]
    names: tuple[str, ...]


def _grid_faces(rows: int, columns: int, first: int = 0) -> I8:
    """Two triangles per cell of a grid, (2 (rows - 1) (columns - 1), 3), row by row."""
    out = []
    for i in range(rows - 1):
        for j in range(columns - 1):
            a = first + i * columns + j
            b, c, d = a + 1, a + columns, a + columns + 1
            out += [(a, b, d), (a, d, c)]
    return np.array(out, np.intp).reshape(-1, 3)


def _line(count: int, spacing: float) -> F8:
    return (np.arange(count) - (count - 1) / 2) * spacing


def _plane(sheet: Sheet, centre: F8, u: F8, v: F8) -> F8:
    """World positions of in-plane coordinates (N,), (N,) about a sheet's centre."""
    out = np.tile(centre, (len(u), 1))
    out[:, _AXES[sheet.axes[0]]] += u
    out[:, _AXES[sheet.axes[1]]] += v
    return out


def _lattice(rows: int, columns: int, spacing: float) -> tuple[F8, F8]:
    v, u = np.meshgrid(_line(rows, spacing), _line(columns, spacing), indexing="ij")
    return u.ravel(), v.ravel()


def _set(points: F8, faces: I8, lines: tuple[tuple[int, ...], ...] = (), prefix: str = "m",
         published: I8 | None = None) -> MarkerSet:  # fmt: skip
    names = tuple(f"{prefix}{k + 1}" for k in range(len(points)))
    return MarkerSet(points, faces, faces if published is None else published, lines, names)


_NONE = np.empty((0, 3), np.intp)


def _lattice_centres(card: Family, centre: F8) -> MarkerSet:
    """4 x 4 at 0.10 m and the middles of its 9 cells; each cell in 4 triangles: 25, 36 faces."""
    sheet = _sheet(card)
    u, v = _lattice(4, 4, 0.1)
    cu, cv = _lattice(3, 3, 0.1)
    faces = []
    for i in range(3):
        for j in range(3):
            a, middle = 4 * i + j, 16 + 3 * i + j
            ring = (a, a + 1, a + 5, a + 4)
            faces += [(ring[k], ring[(k + 1) % 4], middle) for k in range(4)]
    points = _plane(sheet, centre, np.concatenate([u, cu]), np.concatenate([v, cv]))
    return _set(points, np.array(faces, np.intp))


def _flinging(card: Family, centre: F8) -> MarkerSet:
    """7 across and 9 down at 0.05 m: 63 markers, 96 faces."""
    u, v = _lattice(9, 7, 0.05)
    return _set(_plane(_sheet(card), centre, u, v), _grid_faces(9, 7))


def _edge_lines(card: Family, centre: F8) -> MarkerSet:
    """7 at 0.05 m along each free edge: 14 markers, two lines."""
    sheet = _sheet(card)
    along = _line(7, 0.05)
    half = sheet.size[1] / 2
    u = np.concatenate([along, along])
    v = np.concatenate([np.full(7, -half), np.full(7, half)])
    return _set(_plane(sheet, centre, u, v), _NONE, (tuple(range(7)), tuple(range(7, 14))))


def _ring_lattice(card: Family, centre: F8) -> MarkerSet:
    """7 x 7 at 0.1 m without the middle 3 x 3: 40 markers."""
    u, v = _lattice(7, 7, 0.1)
    keep = ~((np.abs(u) < 0.15) & (np.abs(v) < 0.15))
    return _set(_plane(_sheet(card), centre, u[keep], v[keep]), _NONE)


def _corners(card: Family, centre: F8) -> MarkerSet:
    """The four corners."""
    sheet = _sheet(card)
    u, v = (
        np.array(s) * h / 2
        for s, h in zip(((-1, 1, 1, -1), (-1, -1, 1, 1)), sheet.size, strict=True)
    )
    return _set(_plane(sheet, centre, u, v), _NONE)


FACE_AREA = 208.33e-6
"""Area of a foam facet at rest, 16.67 mm x 25 mm / 2 [m^2]."""


def _strip(card: Family, centre: F8, face: str) -> F8:
    """2 columns (+-8.33 mm) x 7 rows (25 mm) on the foam's +x or +y face, row by row, (14, 3)."""
    box = card.bodies["foam"].shape
    if not isinstance(box, Box):
        raise UserError(f"{card.id}: its foam is no box")
    long = int(np.argmax(box.size))
    normal = _AXES[face]
    across = 3 - long - normal
    row, column = np.meshgrid(_line(7, 0.025), _line(2, 0.05 / 3), indexing="ij")
    out = np.tile(centre, (14, 1))
    out[:, long] += row.ravel()
    out[:, across] += column.ravel()
    out[:, normal] += box.size[normal] / 2
    return out


def _two_faces(card: Family, centre: F8) -> MarkerSet:
    """Strips on the +x and the +y face: 28 markers, 12 + 12 faces."""
    points = np.concatenate([_strip(card, centre, "x"), _strip(card, centre, "y")])
    first, second = _grid_faces(7, 2), _grid_faces(7, 2, 14)
    return _set(points, np.concatenate([first, second]), published=np.concatenate([first, first]))


def _one_face(card: Family, centre: F8) -> MarkerSet:
    """A strip on the +x face: 14 markers, 12 faces."""
    return _set(_strip(card, centre, "x"), _grid_faces(7, 2))


def _along_rod(card: Family, centre: F8) -> MarkerSet:
    """4 along the rod's +y side, evenly between its ends (assumed)."""
    rod = card.bodies["rod"].shape
    if not isinstance(rod, Cylinder):
        raise UserError(f"{card.id}: its rod is no cylinder")
    out = np.tile(centre, (4, 1))
    out[:, 1] += rod.radius
    out[:, 2] += _line(4, rod.length / 5)
    return _set(out, _NONE, (tuple(range(4)),))


def _four_cubes(card: Family, centre: F8) -> MarkerSet:
    """5 on the +x face of each cube: its middle and +-15 mm about it (assumed)."""
    cubes = [card.poses("1", card.materials[0])[f"cube_{k}"].position for k in range(1, 5)]
    face = np.array([(0.025, y, z) for y, z in ((0, 0), *_SQUARE)])
    return _set(np.concatenate([np.asarray(c) + face for c in cubes]), _NONE)


_SQUARE = ((-0.015, -0.015), (0.015, -0.015), (0.015, 0.015), (-0.015, 0.015))


def _sheet(card: Family) -> Sheet:
    shape = card.bodies["textile"].shape
    if not isinstance(shape, Sheet):
        raise UserError(f"{card.id}: its textile is no sheet")
    return shape


LAYOUTS: Mapping[str, Callable[[Family, F8], MarkerSet]] = {
    "lattice_centres": _lattice_centres,
    "lattice": _flinging,
    "edge_lines": _edge_lines,
    "ring_lattice": _ring_lattice,
    "corners": _corners,
    "two_faces": _two_faces,
    "one_face": _one_face,
    "along_rod": _along_rod,
    "four_cubes": _four_cubes,
}


def markers(card: Family, subtask: str = "1", material: str | None = None) -> MarkerSet:
    """Markers of a family at the start of a set-up.

    Args:
        card: the family.
        subtask: the set-up.
        material: its material; the first where none is named.

    Raises:
        UserError: the family wears no markers, or names no known layout.
    """
    if card.markers is None:
        raise UserError(f"{card.id} wears no markers: its bodies' poses are compared")
    if card.markers.layout not in LAYOUTS:
        raise UserError(
            f"{card.id}: there is no marker layout {card.markers.layout!r}: choose from "
            f"{', '.join(LAYOUTS)}"
        )
    pose = card.poses(subtask, material or card.materials[0])[card.markers.body]
    made = LAYOUTS[card.markers.layout](card, np.asarray(pose.position, np.float64))
    if len(made.points) != card.markers.count:
        raise UserError(
            f"{card.id}: layout {card.markers.layout!r} has {len(made.points)} markers, the card "
            f"states {card.markers.count}"
        )
    return made
