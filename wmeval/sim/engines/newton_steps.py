"""One substep of Newton, back and forth between two states, by recorded graphs where it can be.

A graph replays what a substep launches without asking Python for each launch. Poses of led bodies
and pinned vertices are written into the states' own memory between replays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

_PLAIN = 2
"""Substeps each way that run plainly first: they load kernels and make what is made once."""


class Steps:
    """Substeps between two states; ``now`` is the present one, ``then`` the other."""

    def __init__(
        self, warp: Any, step: Callable[[Any, Any], None], states: tuple[Any, Any], *, record: bool
    ) -> None:
        """Nothing runs yet.

        Args:
            warp: the module.
            step: launches a substep from a state into another.
            states: the two.
            record: whether graphs may replay it.
        """
        self._warp, self._step = warp, step
        self.now, self.then = states
        self._record = record
        self._runs = 0
        self._graphs: dict[int, Any] = {}

    def __call__(self) -> None:
        """One substep; then `now` is what it made."""
        key = id(self.now)
        graph = self._graphs.get(key)
        if graph is None and self._record and self._runs >= 2 * _PLAIN:
            with self._warp.ScopedCapture(device="cpu") as capture:
                self._step(self.now, self.then)
            graph = self._graphs[key] = capture.graph
        if graph is None:
            self._step(self.now, self.then)
        else:
            self._warp.capture_launch(graph)
        self._runs += 1
        self.now, self.then = self.then, self.now
