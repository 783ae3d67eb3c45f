"""The twin: the reference world itself as a candidate, exact or wrong by a known amount.

At fm = 1/Ta, s = 1 and unperturbed it repeats the reference bit for bit: the identity check. With
another frame rate or stride it shows what reducing the actions alone costs: the reduction floor.
With a perturbation its error is known in advance: what metrics are tried on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from wmeval.clock import exact
from wmeval.envs.base import WorldEnv
from wmeval.envs.candidates.simulated import (
    ClockOptions,
    first_substep_at,
    identity,
    pictures,
    spec_of,
)
from wmeval.envs.case import Case
from wmeval.errors import UserError
from wmeval.records import Clip, Event, WorldLog
from wmeval.sim.perturb import Perturbation
from wmeval.sim.protocol import Probe
from wmeval.sim.world import World, open_world

__all__ = ["Options", "Twin", "check", "identity", "make"]


class Options(ClockOptions, Perturbation):
    """Clock, picture size, and the factors of `wmeval.sim.perturb.Perturbation`.

    ``delay`` here is a whole number of substeps, so that it may be shorter than a block.
    """

    @property
    def perturbation(self) -> Perturbation:
        """The factors alone."""
        return Perturbation(**{k: getattr(self, k) for k in Perturbation.model_fields})


class Twin:
    """A world model that is a world.

    Its clips carry a `WorldLog`, one row per frame, with the events found on the way.
    """

    def __init__(self, options: Options, case: Case) -> None:
        self._case, self._options = case, options
        self._perturbation = options.perturbation
        wrong = str(self._perturbation)
        self._env = case.make()
        self.spec = spec_of(f"twin:{wrong}" if wrong else "twin", options, case, self._env)
        dt = self._env.clock.dt
        delay = exact(options.delay) / dt
        if delay.denominator != 1:
            self._env.close()
            raise UserError(
                f"twin: delay = {options.delay} s is not a whole number of substeps of {dt} s"
            )
        self._late = int(delay)
        self._world: World | None = None
        self.seed_record: WorldLog

    def reset(
        self,
        context_frames: NDArray[np.uint8],
        prompt: str,
        negative_prompt: str,
        seed: int,
        intrinsics: NDArray[np.float64],
    ) -> None:
        """Go to the case's state 0; a deterministic world has no use for the seed."""
        self._close_world()
        self._case.reset(self._env)
        self._world = open_world(self._perturbation.apply(self._env.world_spec), events=True)
        self.seed_record = self._row = self._world.reset()
        self._controls: list[tuple[float, ...]] = []
        self._frame = 0

    def step(self, controls: Sequence[NDArray[np.float64]]) -> Clip:
        """Advance over the blocks; frames and the state behind each."""
        assert self._world is not None
        gain, channels = self._perturbation.gain, self._env.channels
        factors = np.array([1.0 if c in self._env.row.branches else gain for c in channels])
        rows: list[WorldLog] = []
        events: list[Event] = []
        for control in controls:
            self._controls.append(tuple((factors * control).tolist()))
            for k, shown in self._stops(len(self._controls) - 1):
                while self._world.substep < k:
                    until, action = self._stretch(k)
                    self._row = self._world.advance(action, until, Probe())
                    events.extend(self._row.events)
                if shown:
                    rows.append(dataclasses.replace(self._row, events=()))
        first, self._frame = self._frame + 1, self._frame + len(rows)
        record = dataclasses.replace(WorldLog.concatenate(rows), events=tuple(events))
        shot = pictures(self._env, record, self.spec, self._case.view)
        return Clip(shot, self.spec.times(first, len(rows)), record)

    def _stops(self, b: int) -> list[tuple[int, bool]]:
        """States to reach in block b, each with whether a frame shows it."""
        clock, dt = self.spec.clock, self._env.clock.dt
        stops = [(clock.state_of_frame(j, dt), True) for j in clock.frames_of_block(b)]
        # The block's control rules every substep that starts within the block.
        return [*stops, (first_substep_at((b + 1) * clock.block_duration, dt), False)]

    def _stretch(self, until: int) -> tuple[int, tuple[float, ...]]:
        """How far the action of the present substep lasts (at most ``until``), and the action."""
        assert self._world is not None
        clock, dt = self.spec.clock, self._env.clock.dt
        n = self._world.substep - self._late
        if n < 0:
            return min(until, self._late), (0.0,) * len(self._controls[0])
        b = clock.block_of_instant(n * dt)
        end = first_substep_at((b + 1) * clock.block_duration, dt) + self._late
        return min(until, end), self._controls[b]

    def _close_world(self) -> None:
        if self._world is not None:
            self._world.close()
            self._world = None

    def close(self) -> None:
        """Free world and renderer."""
        self._close_world()
        self._env.close()


def check(options: Options, env: WorldEnv) -> None:
    """Refuse a perturbation that the scene cannot bear: a body that would gain by bouncing."""
    options.perturbation.apply(env.world_spec)


def make(options: Options, case: Case, generation: int) -> Twin:
    """A twin of the case's world; all generations are alike."""
    return Twin(options, case)
