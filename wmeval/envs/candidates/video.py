"""Clips made elsewhere, checked, as a candidate: <folder>/<case_id>/<generation>.mp4.

The folder is what ``wmeval cases export`` wrote (its ``model.yaml`` is the card) after the model's
own code has put its clips there. Frame 0 of each clip is the seed frame.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.envs.case import Case
from wmeval.envs.model import ModelError, ModelSpec, read_spec
from wmeval.errors import UserError
from wmeval.scene import Card


class Options(Card):
    """Where the clips are.

    Attributes:
        folder: holds <case_id>/<generation>.mp4.
        card: model card; default: <folder>/model.yaml.
    """

    folder: str
    card: str | None = None


def read_clip(path: Path, spec: ModelSpec, count: int) -> NDArray[np.uint8]:
    """A whole clip (count, H, W, 3), frame 0 the seed frame, checked against the card.

    Raises:
        ModelError: no such file, not a video, or the wrong length, size or rate.
    """
    from wmeval.datasets.video import read_mp4

    clock = spec.clock
    try:
        frames, times = read_mp4(path, frames=count, size=(spec.width, spec.height), fps=clock.fps)
    except UserError as error:
        raise ModelError(f"model {spec.name!r}: {error}") from error
    for j, time in enumerate(times):
        # Tools round time stamps to their container's clock; a dropped or doubled frame is far off.
        if abs(time - clock.frame_time(j)) * clock.fps > Fraction(1, 4):
            raise ModelError(
                f"model {spec.name!r}: {path}: frame {j} is at {float(time):.4f} s, expected "
                f"{float(clock.frame_time(j)):.4f} s: write it at a constant {spec.fps} fps"
            )
    return np.asarray(frames)


class Video:
    """Plays one clip back, once it is what its card promises."""

    def __init__(self, spec: ModelSpec, path: Path) -> None:
        self.spec = spec.model_copy(update={"mode": "clip"})
        self.path = path

    def reset(
        self,
        context_frames: NDArray[np.uint8],
        prompt: str,
        negative_prompt: str,
        seed: int,
        intrinsics: NDArray[np.float64],
    ) -> None:
        """Nothing to do: the clip has been made."""

    def generate(self, controls: Sequence[Any]) -> NDArray[np.uint8]:
        """Frames 1 ... n s of the clip.

        Raises:
            ModelError: no such file, not a video, or the wrong length, size or rate.
        """
        frames = read_clip(self.path, self.spec, len(controls) * self.spec.frames_per_action + 1)
        return frames[1:]

    def close(self) -> None:
        """Nothing is held."""


def make(options: Options, case: Case, generation: int) -> Video:
    """The clip of one case and generation.

    Raises:
        UserError: no such folder, or no good card in it.
    """
    folder = Path(options.folder)
    if not folder.is_dir():
        raise UserError(
            f"candidate video: no folder {folder}; it holds model.yaml and the clips "
            "<case_id>/<generation>.mp4: `wmeval cases export` makes one to be filled"
        )
    card = Path(options.card) if options.card else folder / "model.yaml"
    if not card.exists() and not options.card:
        raise UserError(
            f"candidate video: {folder} holds no model.yaml, the model's card: write one, give "
            "card=FILE, or let `wmeval cases export` make the folder"
        )
    return Video(read_spec(options.card or card), folder / case.case_id / f"{generation}.mp4")


def identity(options: Options, case: Case, generation: int) -> Any:
    """The card, and the bytes of the clip (None: it is not there, which only matters if asked)."""
    video = make(options, case, generation)
    digest = None
    with suppress(OSError), video.path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return [video.spec.model_dump(mode="json"), digest]
