"""What Genesis' ways of bending things have in common: how they are told, led and read."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wmeval.deformables import RestShape
from wmeval.errors import UserError
from wmeval.scene import Deformable, Scene, Soft
from wmeval.sim.engines.pins import Pinned

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
Where = Callable[[Pinned], F8]
"""Places (n, 3) [m] of the vertices of a pin when the step is over."""


class NowhereError(Exception):
    """Something that bends has places that are no numbers; says what."""


SAME = 1e-6
"""Vertices whose places at rest are this near are the same [m]."""


@dataclass(frozen=True, eq=False)
class Bent:
    """A deformable of a scene.

    Attributes:
        item: as the scene says it.
        rest: its vertices and elements at t = 0.
        pins: what holds it.
    """

    item: Deformable
    rest: RestShape
    pins: tuple[Pinned, ...]


class Bending(Protocol):
    """One of Genesis' solvers and everything that it moves.

    Attributes:
        substeps: of Genesis, within one of ours, that it needs.
    """

    substeps: int

    def scene_options(self) -> dict[str, Any]:
        """What the maker of the scene is told."""
        ...

    def add(self, world: Any, folder: Path) -> None:
        """Add everything to a scene that is not built yet."""
        ...

    def begin(self, links: Mapping[int, Any]) -> None:
        """After the scene is built: pins and numbers; links of the rigid solver by scene index."""
        ...

    def lead(self, where: Where) -> None:
        """Before a step: what is pinned will be there when it is over."""
        ...

    def pulls(self, gravity: F8, bodies: Container[int]) -> Sequence[tuple[Pinned, F8, F8]]:
        """Pins to ``bodies``, where their vertices are (n, 3) [m], forces on them (n, 3) [N]."""
        ...

    def vertices(self) -> dict[str, F8]:
        """Vertices (V, 3) [m] of everything now, by name."""
        ...


def matched(name: str, ours: F8, theirs: F8) -> I8:
    """For each of our vertices (V, 3) its number among those that the engine made (W, 3).

    Raises:
        UserError: one has no partner within `SAME`, or two have the same one.
    """
    order, worst = np.empty(len(ours), np.int64), 0.0
    for k, place in enumerate(ours):
        apart = np.abs(theirs - place).max(axis=1)
        order[k] = int(np.argmin(apart))
        worst = max(worst, float(apart[order[k]]))
    if worst > SAME or len(np.unique(order)) != len(ours):
        raise UserError(
            f"deformable {name!r}: engine genesis made other vertices of it (up to {worst:.2g} m "
            "away): give it a mesh without double vertices"
        )
    return order


def write_surface(path: Path, vertices: F8, triangles: NDArray[np.int32]) -> None:
    """A mesh file that Genesis reads back to the last digit."""
    lines = [" ".join(["v", *(repr(x) for x in v)]) for v in vertices.tolist()]
    lines += [f"f {a} {b} {c}" for a, b, c in (triangles.astype(np.int64) + 1).tolist()]
    path.write_text("\n".join(lines) + "\n")


def pinned_numbers(pins: Sequence[Pinned]) -> I8:
    """Numbers of all vertices that pins hold, pin by pin."""
    if not pins:
        return np.zeros(0, np.int64)
    return np.concatenate([p.vertices for p in pins]).astype(np.int64)


def friction_of_solids(scene: Scene) -> float:
    """The one friction of what bends.

    Raises:
        UserError: there are several.
    """
    values = sorted({d.friction for d in scene.deformables if isinstance(d, Soft)})
    if len(values) > 1:
        raise UserError(
            f"scene {scene.name!r}: engine genesis has one friction for all solids; they have "
            + ", ".join(f"{v:g}" for v in values)
        )
    return values[0] if values else 0.0


__all__ = [
    "Bending",
    "Bent",
    "NowhereError",
    "Where",
    "friction_of_solids",
    "matched",
    "pinned_numbers",
    "write_surface",
]
