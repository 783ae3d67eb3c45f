"""What candidates backed by a simulator share: their clock options and their environment."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, field_validator

from wmeval.envs.base import WorldEnv
from wmeval.envs.case import Case
from wmeval.envs.model import ModelSpec, frame_rate
from wmeval.errors import UserError
from wmeval.records import WorldLog
from wmeval.scene import Card


class ClockOptions(Card):
    """Clock and picture of a simulator-backed candidate.

    Attributes:
        fps: frames per second; default: one frame per reference action (fm = 1/Ta).
        stride: frames per action.
        chunk: blocks taken at once.
        width, height: picture size [px]; default: the case's.
    """

    fps: str | None = None
    stride: int = Field(default=1, ge=1, le=10_000)
    chunk: int = Field(default=1, ge=1, le=10_000)
    width: int | None = Field(default=None, ge=16, le=8192)
    height: int | None = Field(default=None, ge=16, le=8192)

    @field_validator("fps", mode="before")
    @classmethod
    def _exact(cls, value: object) -> str | None:
        if value is None:
            return None
        return str(frame_rate(value))  # type: ignore[arg-type]


def spec_of(name: str, options: ClockOptions, case: Case, env: WorldEnv) -> ModelSpec:
    """Card of a simulator-backed candidate.

    Raises:
        UserError: more frames per second than the world has states.
    """
    try:
        fps = env.clock.frame_rate(options.fps or 1 / env.clock.control_period)
    except UserError as error:
        raise UserError(f"{name}: {error}") from error
    return ModelSpec(
        name=name,
        fps=str(fps),
        frames_per_action=options.stride,
        chunk=options.chunk,
        width=options.width or case.width,
        height=options.height or case.height,
        paradigm="action",
        mode="stepwise",
        # It is the whole world, cameras included.
        actuates=("body", "camera"),
    )


def identity(options: ClockOptions, case: Case, generation: int) -> Any:
    """Options and this package's version: a simulator is as it was when both are."""
    import wmeval

    return [wmeval.__version__, options.model_dump(mode="json")]


def pictures(env: WorldEnv, log: WorldLog, spec: ModelSpec, view: str) -> NDArray[np.uint8]:
    """Colour pictures (N, H, W, 3) of all rows of a log."""
    size = {"width": spec.width, "height": spec.height}
    out = np.empty((len(log), spec.height, spec.width, 3), np.uint8)
    for i in range(len(log)):
        out[i] = env.draw(("rgb",), view=view, log=log, row=i, **size)["rgb"]
    return out


def first_substep_at(time: Fraction, dt: Fraction) -> int:
    """Index of the first substep that starts at or after a time [s]: ceil(time / dt)."""
    ratio = time / dt
    return -(-ratio.numerator // ratio.denominator)
