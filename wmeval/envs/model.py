"""The candidate: what a world model declares, what it is called with, what it must return.

A model is stepped (``mode = "stepwise"``: controls of one chunk in, its frames out) or asked once
for a whole clip (``mode = "clip"``). Whatever it returns is checked here before anything uses it.

An object of yours that is handed over in Python (`wmeval.envs.wrapper.WorldModelEnv`, ``drive``)
runs in this process: one that hangs, hangs its caller, and one that dies takes it along. The
candidates ``python`` and ``http`` run elsewhere and have real time-outs.
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar

import numpy as np
import yaml
from numpy.typing import NDArray
from pydantic import Field, ValidationError, model_validator

from wmeval.clock import CandidateClock, exact
from wmeval.errors import UserError, one_line
from wmeval.records import Clip, WorldLog
from wmeval.scene import Card

Paradigm = Literal["action", "keyboard", "camera", "language"]
Actuates = Literal["body", "camera"]
CardT = TypeVar("CardT", bound=Card)

# What a control moves unless the card says otherwise. A keyboard says nothing by itself: the same
# four keys drive a body in one model and the viewer in another.
_ACTUATES: dict[str, tuple[Actuates, ...]] = {"action": ("body",), "camera": ("camera",)}


CARDS = Path(__file__).parent / "candidates" / "cards"
"""Templates of model cards, one per paradigm."""


class ModelError(UserError):
    """A candidate failed or broke its contract; the message names it, what it did and the mend."""


class KeyPair(Card):
    """Keys that stand for a negative and a positive value of one channel."""

    negative: str = Field(min_length=1)
    positive: str = Field(min_length=1)


class ModelSpec(Card):
    """Card of a candidate.

    Attributes:
        name: as tables print it.
        fps: frames per second, exact ("24", "24000/1001").
        frames_per_action: frames made per control (stride s).
        chunk: controls that the model takes at once.
        context_length: frames it is conditioned on; the last one is the seed frame.
        width, height: picture size [px].
        paradigm: native control interface: "action" (continuous channels), "keyboard" (keys),
            "camera" (relative poses), "language" (a prompt).
        mode: "stepwise" or "clip".
        actuates: what the control moves in the data that the model was trained on: a "body" in the
            scene, the "camera" itself, both. A keyboard card must say it; a prompt moves nothing.
        keys: keyboard only: channel name to its two keys; others get default names.
        dead_zone: keyboard only: |value| up to which no key is held.
        max_frames: longest clip that the model can make, seed frame included; None: no limit.
        notes: where the numbers come from.
    """

    name: str = Field(min_length=1, max_length=100)
    fps: str | int | float = 24
    frames_per_action: int = Field(default=1, ge=1, le=10_000)
    chunk: int = Field(default=1, ge=1, le=10_000)
    context_length: int = Field(default=1, ge=1, le=1000)
    width: int = Field(default=640, ge=16, le=8192)
    height: int = Field(default=352, ge=16, le=8192)
    paradigm: Paradigm = "action"
    mode: Literal["stepwise", "clip"] = "stepwise"
    actuates: tuple[Actuates, ...] | None = None
    keys: dict[str, KeyPair] = Field(default_factory=dict)
    dead_zone: float = Field(default=0.1, ge=0, lt=1)
    max_frames: int | None = Field(default=None, ge=2)
    notes: str = ""

    @model_validator(mode="after")
    def _check(self) -> ModelSpec:
        frame_rate(self.fps)
        if self.paradigm == "keyboard" and self.actuates is None:
            raise ValueError(
                "a keyboard model must say what its keys move: actuates: [body] (an object of the "
                "scene) or actuates: [camera] (the viewer)"
            )
        if self.paradigm == "language" and self.actuates:
            raise ValueError("a prompt actuates nothing: leave `actuates` out")
        if self.keys and self.paradigm != "keyboard":
            raise ValueError(f"keys belong to a keyboard model, not to paradigm {self.paradigm!r}")
        return self

    @property
    def clock(self) -> CandidateClock:
        """Exact clock."""
        return CandidateClock(exact(self.fps), self.frames_per_action, self.chunk)

    @property
    def moves(self) -> tuple[Actuates, ...]:
        """What the control moves: ``actuates``, or the paradigm's own meaning."""
        return _ACTUATES.get(self.paradigm, ()) if self.actuates is None else self.actuates

    def times(self, first: int, count: int) -> tuple[Fraction, ...]:
        """Exact times [s] of ``count`` frames from frame ``first`` on."""
        return tuple(self.clock.frame_time(first + j) for j in range(count))


def frame_rate(value: str | int | float) -> Fraction:
    """An exact frame rate [1/s] in (0, 1000].

    Raises:
        ValueError: not a number in that range.
    """
    # "1e999999999" is an exact number too, of a gigabyte.
    if isinstance(value, str) and not re.fullmatch(r"[-+]?[\d.]{1,20}(/\d{1,12})?", value.strip()):
        raise ValueError(f"{value[:40]!r} is not an exact number like 24, 23.976 or 24000/1001")
    rate = exact(value)
    if not 0 < rate <= 1000:
        raise ValueError(f"fps = {value} must be > 0 and at most 1000")
    return rate


def read_spec(path: str | Path) -> ModelSpec:
    """Read a model card (YAML or JSON).

    Args:
        path: a file, or the bare name of a template beside `wmeval.envs.candidates` ("keyboard").

    Raises:
        UserError: no such file, not YAML, or a field that is unknown or out of range.
    """
    path = Path(path)
    template = CARDS / f"{path}.yaml"
    if not path.suffix and len(path.parts) == 1 and not path.exists() and template.is_file():
        path = template
    try:
        with path.open("rb") as file:
            document = yaml.safe_load(file.read(1 << 20))
    except OSError as error:
        raise UserError(f"model card {path}: {error.strerror}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"model card {path} is not YAML: {one_line(error, 300)}") from error
    return validated(ModelSpec, document, where=f"model card {path}")


def validated(kind: type[CardT], document: Any, *, where: str) -> CardT:
    """Validate a parsed card, with one readable message.

    Raises:
        UserError: naming the place, the first wrong field and what is wrong with it.
    """
    if not isinstance(document, dict):
        raise UserError(f"{where}: expected a mapping of fields, found {type(document).__name__}")
    try:
        return kind.model_validate(document)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(p) for p in first["loc"])
        known = ", ".join(kind.model_fields)
        hint = f"; known fields: {known}" if first["type"] == "extra_forbidden" else ""
        what = one_line(f"{name or 'card'}: {first['msg']}", 300)
        raise UserError(f"{where}: {what}{hint}") from error


@dataclass(frozen=True, eq=False)
class Context:
    """What a candidate is given before its first control.

    Attributes:
        frames: (L, H, W, 3) uint8 sRGB at the model's size; the last is the seed frame, at t = 0;
            frame L - 1 - n stands at -n / fps.
        prompt, negative_prompt: text.
        K: (3, 3) intrinsics [px] at the model's size.
        control_period: time that one reference action holds [s].
    """

    frames: NDArray[np.uint8]
    prompt: str
    negative_prompt: str
    K: NDArray[np.float64]
    control_period: Fraction


class WorldModel(Protocol):
    """A candidate world. Subclassing is not needed: three methods and ``spec`` make a model.

    ``step`` is called for ``mode = "stepwise"``, ``generate`` for ``mode = "clip"``. Both return
    the frames of the controls' blocks and not the seed frame: control b makes frames
    ``b s + 1 ... (b + 1) s``. A bare (T, H, W, 3) uint8 array is taken to be on the clock of
    ``spec``; a `Clip` also says its times and, for a simulator, the truth behind each frame.
    """

    @property
    def spec(self) -> ModelSpec:
        """Its card."""

    def reset(
        self,
        context_frames: NDArray[np.uint8],
        prompt: str,
        negative_prompt: str,
        seed: int,
        intrinsics: NDArray[np.float64],
    ) -> None:
        """Begin a generation.

        Args:
            context_frames: (L, H, W, 3) uint8; the last is the seed frame.
            prompt: what the model is told.
            negative_prompt: what it is told to avoid.
            seed: of this generation's own randomness.
            intrinsics: (3, 3) [px].
        """

    def close(self) -> None:
        """Free everything; idempotent."""


class StepwiseModel(WorldModel, Protocol):
    """A model that goes on one chunk at a time."""

    def step(self, controls: Sequence[Any]) -> Clip | NDArray[np.uint8]:
        """Frames of the next ``chunk`` blocks: (chunk * s, H, W, 3)."""


class ClipModel(WorldModel, Protocol):
    """A model that makes the whole clip at once."""

    def generate(self, controls: Sequence[Any]) -> Clip | NDArray[np.uint8]:
        """Frames of all n blocks: (n * s, H, W, 3)."""


class RecordedModel(StepwiseModel, Protocol):
    """A simulator-backed candidate that also knows the truth behind its seed frame."""

    seed_record: WorldLog
    """One row: the state at t = 0; read after ``reset``."""


def called(who: str, function: Callable[..., Any], *args: Any) -> Any:
    """Call a model's code; whatever it raises, an exit too, becomes one line that names it.

    Args:
        who: model and verb, for the message.
        function: of the model.
        args: its arguments.

    Raises:
        ModelError: it raised.
        KeyboardInterrupt: as it came.
    """
    try:
        return function(*args)
    except (ModelError, KeyboardInterrupt):
        raise
    except BaseException as error:
        text = called(who, str, error)
        told = f"{type(error).__name__}: {one_line(text, 300)}" if text else type(error).__name__
        raise ModelError(f"{who} raised {told}{_place(error)}") from error


def _place(error: BaseException) -> str:
    """Where in the model's own file, the one that was called into, an exception came from."""
    frames = traceback.extract_tb(error.__traceback__)[1:]
    files = [f for f in frames if "importlib" not in f.filename]
    own = [f for f in files if f.filename == files[0].filename]
    return f" ({Path(own[-1].filename).name}:{own[-1].lineno})" if own else ""


def checked_clip(
    result: object, spec: ModelSpec, *, first: int, count: int, verb: str = "step"
) -> Clip:
    """What a model returned, as a `Clip`, after every check.

    Args:
        result: what came back.
        spec: the model's card.
        first: index of the first frame expected.
        count: frames expected.
        verb: the method that was called, for the message.

    Raises:
        ModelError: naming the model, what was expected and what was found.
    """
    shape = (count, spec.height, spec.width, 3)
    wanted = f"{shape} uint8 (count, height, width, 3), frames {first}...{first + count - 1}"

    def refuse(found: str) -> ModelError:
        return ModelError(f"model {spec.name!r}: {verb} returned {found}; expected {wanted}")

    frames = result.frames if isinstance(result, Clip) else result
    if not isinstance(frames, np.ndarray):
        raise refuse(f"a {type(result).__name__}, neither a Clip nor an array")
    if frames.dtype != np.uint8:
        raise refuse(f"frames of dtype {frames.dtype}")
    if frames.shape != shape:
        what = "the wrong number of frames" if frames.shape[1:] == shape[1:] else "the wrong shape"
        raise refuse(f"{what}, {frames.shape}")
    times = spec.times(first, count)
    if not isinstance(result, Clip):
        return Clip(np.ascontiguousarray(frames), times)
    for j, (found, expected) in enumerate(zip(result.times, times, strict=True)):
        if found != expected:
            raise ModelError(
                f"model {spec.name!r}: {verb} says that frame {first + j} is at {found} s; at "
                f"{spec.fps} fps, with the seed frame at 0, it is at {expected} s"
            )
    return result


def checked_spec(model: object) -> ModelSpec:
    """The card of a model object.

    Raises:
        ModelError: the object is not a model: it has no card, or not the methods its mode needs.
    """
    spec = called(f"{type(model).__name__}: spec", getattr, model, "spec", None)
    if not isinstance(spec, ModelSpec):
        raise ModelError(
            f"{type(model).__name__} has no `spec`: give it a wmeval.envs.model.ModelSpec"
        )
    needed = ("reset", "close", "step" if spec.mode == "stepwise" else "generate")
    missing = [n for n in needed if not callable(getattr(model, n, None))]
    if missing:
        raise ModelError(f"model {spec.name!r} ({spec.mode}) has no method {missing[0]!r}")
    return spec
