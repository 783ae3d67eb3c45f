"""An endless road: a pool of tiles, recycled ahead of and behind what drives on it.

Tile k covers [begin + k length, begin + (k + 1) length) along +y, for k = 0, 1, 2, ...: before the
first there is nothing. Tile k is shown by slot k mod n of the pool. With the driven body in tile c
the tiles from c - behind (at least 0) on are there, ``n - REST`` of them, so that a slot rests for
`REST` tiles of driving before it comes again at the other end: no slot is ever in two places within
that stretch, and what flow follows is either a slot that stood still or one that is gone. Which
tiles are there is a function of the body's place alone; what stands on a tile is a function of
seed and tile alone, so that a stretch looks the same whenever it is visited.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from pydantic import Field, model_validator

from wmeval.scene import Card, Scene, Vec3
from wmeval.sim.drivers.names import body_index
from wmeval.sim.protocol import Driver, Quat, SubstepView

REST = 2
"""Slots of the pool that are always empty."""


class TileBody(Card):
    """One body of every slot.

    Attributes:
        names: of the bodies of slot 0, 1, ..., each without collision geometry.
        place: in its tile [m]: x, along the tile, height.
        spread: greatest displacement along x and y [m], drawn for every tile.
        turned: a heading is drawn for every tile; else it faces along the road.
    """

    names: tuple[str, ...] = Field(min_length=REST + 1)
    place: Vec3
    spread: float = Field(default=0.0, ge=0)
    turned: bool = False


def first_tile(y: float, begin: float, length: float, behind: int) -> int:
    """Index of the first tile that is there when the driven body is at ``y`` [m]."""
    return max(math.floor((y - begin) / length) - behind, 0)


@lru_cache(maxsize=4096)
def draws(seed: int, tile: int, count: int) -> tuple[float, ...]:
    """Numbers in [0, 1) that belong to a tile."""
    sequence = np.random.SeedSequence(seed, spawn_key=(tile,))
    numbers: list[float] = np.random.Generator(np.random.PCG64(sequence)).random(count).tolist()
    return tuple(numbers)


class Road(Driver):
    """Puts the tiles where the driven body needs them; see the module."""

    class Params(Card):
        """Parameters.

        Attributes:
            body: name of what drives.
            tiles: the bodies of a slot; all have as many names as there are slots.
            begin: where the road begins along y [m].
            length: of a tile [m].
            behind: tiles kept behind the driven body's own.
            seed: of what stands on the tiles.
        """

        body: str
        tiles: tuple[TileBody, ...] = Field(min_length=1)
        begin: float
        length: float = Field(gt=0)
        behind: int = Field(ge=0)
        seed: int = Field(ge=0)

        @model_validator(mode="after")
        def _check(self) -> Road.Params:
            counts = {len(t.names) for t in self.tiles}
            if len(counts) != 1:
                raise ValueError(f"tile bodies with {sorted(counts)} slots: give all the same")
            if counts.pop() < self.behind + 1 + REST:
                raise ValueError(f"fewer slots than behind + 1 + {REST}")
            return self

    def __init__(self, params: Params) -> None:
        self._params = params

    def reset(self, scene: Scene, view: SubstepView) -> None:
        """Begin at state 0."""
        p = self._params
        self._body = body_index(scene, p.body, "road")
        self._slots = len(p.tiles[0].names)
        self._bodies = [
            tuple(body_index(scene, t.names[s], "road") for t in p.tiles)
            for s in range(self._slots)
        ]
        self._shown: list[int | None] = [None] * self._slots

    def show(self, view: SubstepView) -> None:
        """Put the tiles of the present window."""
        p, n = self._params, self._slots
        first = first_tile(view.pose(self._body)[0][1], p.begin, p.length, p.behind)
        for k in range(first, first + n - REST):
            if self._shown[k % n] != k:
                self._put(view, k)
        for k in range(first + n - REST, first + n):
            if self._shown[k % n] != -1:
                self._shown[k % n] = -1
                for body in self._bodies[k % n]:
                    view.set_active(body, False)

    def _put(self, view: SubstepView, k: int) -> None:
        # What stands there already is left alone: that saves time and changes nothing.
        p, slot = self._params, k % self._slots
        self._shown[slot] = k
        for body, (position, quaternion) in zip(self._bodies[slot], tile_poses(p, k), strict=True):
            view.set_state(body, position, quaternion, (0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
            view.set_active(body, True)


def tile_poses(params: Road.Params, tile: int) -> list[tuple[Vec3, Quat]]:
    """Poses of a tile's bodies, in the order of ``params.tiles``."""
    start = params.begin + tile * params.length
    numbers = draws(params.seed, tile, 3 * len(params.tiles))
    out: list[tuple[Vec3, Quat]] = []
    for i, part in enumerate(params.tiles):
        u, v, w = numbers[3 * i : 3 * i + 3]
        x, y, z = part.place
        x += part.spread * (2 * u - 1)
        y += part.spread * (2 * v - 1)
        half = math.pi * w if part.turned else 0.0
        out.append(((x, start + y, z), (math.cos(half), 0.0, 0.0, math.sin(half))))
    return out
