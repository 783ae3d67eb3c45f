"""The frozen candidate: the seed frame for ever. What every metric must tell from the truth."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.envs.candidates.simulated import ClockOptions, identity, spec_of
from wmeval.envs.case import Case
from wmeval.records import Clip, WorldLog

__all__ = ["Frozen", "Options", "identity", "make"]


class Options(ClockOptions):
    """Clock and picture size."""


class Frozen:
    """Repeats the seed frame; its record is the seed state held, with all velocities zero."""

    def __init__(self, options: Options, case: Case) -> None:
        self._case = case
        self._env = case.make()
        self.spec = spec_of("frozen", options, case, self._env)
        self.seed_record: WorldLog

    def reset(
        self,
        context_frames: NDArray[np.uint8],
        prompt: str,
        negative_prompt: str,
        seed: int,
        intrinsics: NDArray[np.float64],
    ) -> None:
        """Keep the seed frame and the state behind it."""
        self._case.reset(self._env)
        self._picture = context_frames[-1]
        log = self._env.log
        still = np.zeros_like(log.state.linear_velocity)
        state = dataclasses.replace(log.state, linear_velocity=still, angular_velocity=still)
        self.seed_record = dataclasses.replace(log, state=state, events=())
        self._frame = 0

    def step(self, controls: Sequence[Any]) -> Clip:
        """The seed frame, once per frame."""
        count = len(controls) * self.spec.frames_per_action
        first, self._frame = self._frame + 1, self._frame + count
        clock, dt = self.spec.clock, self._env.clock.dt
        held = self.seed_record.rows(np.zeros(count, np.int64))
        substep = np.array([clock.state_of_frame(first + j, dt) for j in range(count)], np.int64)
        record = dataclasses.replace(held, state=dataclasses.replace(held.state, substep=substep))
        frames = np.repeat(self._picture[None], count, axis=0)
        return Clip(frames, self.spec.times(first, count), record)

    def close(self) -> None:
        """Free the environment."""
        self._env.close()


def make(options: Options, case: Case, generation: int) -> Frozen:
    """A frozen candidate; all generations are alike."""
    return Frozen(options, case)
