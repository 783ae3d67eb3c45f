"""Driving a candidate with the reference's actions, on one clock.

`BlockFeeder` holds the only block arithmetic; `drive` (whole action log at once: pairing),
`native_controls` (hand-off to a model elsewhere) and `WorldModelEnv` (action by action: agents) all
go through it.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from wmeval.clock import CandidateClock
from wmeval.envs.actions import ActionForm
from wmeval.envs.adapters import Adapter, Control, channels_of, make_adapter
from wmeval.envs.case import live_context
from wmeval.envs.model import (
    Context,
    ModelSpec,
    WorldModel,
    called,
    checked_clip,
    checked_spec,
)
from wmeval.errors import UserError
from wmeval.records import Clip

F8 = NDArray[np.float64]


class BlockFeeder:
    """Turns a growing action log into the controls of the blocks that it covers.

    Block b is ready at the first action i with (i + 1) Ta >= (b + 1) S, and is handed out with its
    whole chunk; a block that is not covered is never handed out.
    """

    def __init__(self, clock: CandidateClock, control_period: Fraction, adapter: Adapter) -> None:
        self.clock = clock
        self.control_period = control_period
        self.adapter = adapter
        self._actions: dict[int, F8] = {}
        self._pressed: dict[int, NDArray[np.bool_]] = {}
        self._before: F8 = np.zeros(len(adapter.channels.names))
        self.count = 0
        """Actions taken."""
        self.sent = 0
        """Blocks handed out."""

    def push(self, action: Any) -> tuple[tuple[Control, ...], ...]:
        """Take one action (A,); returns the controls of each chunk that it completes."""
        action = np.array(action, np.float64)
        if action.shape != self._before.shape:
            raise UserError(
                f"an action here has shape {self._before.shape} "
                f"({', '.join(self.adapter.channels.names)}); got {action.shape}"
            )
        starts = (action > 0.5) & ~(self._before > 0.5)  # of one-shot channels; the adapter knows
        if starts.any():
            b = self.clock.block_of_instant(self.count * self.control_period)
            self._pressed[b] = self._pressed.get(b, False) | starts
        self._actions[self.count] = self._before = action
        self.count += 1
        ready = self.clock.blocks_sent(self.count, self.control_period)
        controls = [self._control(b) for b in range(self.sent, ready)]
        self.sent = ready
        c = self.clock.chunk
        return tuple(tuple(controls[k : k + c]) for k in range(0, len(controls), c))

    def _control(self, b: int) -> Control:
        weights = self.clock.weights_of_block(b, self.control_period)
        for old in [i for i in self._actions if i < weights[0][0]]:
            del self._actions[old]
        actions = np.stack([self._actions[i] for i, _ in weights])
        overlaps, pressed = [w for _, w in weights], self._pressed.pop(b, None)
        S = self.clock.block_duration
        return self.adapter.reduce(actions, overlaps, pressed, span=(b * S, (b + 1) * S))


def native_controls(
    clock: CandidateClock, control_period: Fraction, adapter: Adapter, actions: Sequence[Any] | F8
) -> tuple[Control, ...]:
    """Controls of all blocks that an action log (T, A) covers, whole chunks only.

    Raises:
        UserError: an action of the wrong shape, or a log too short for one chunk.
    """
    feeder = BlockFeeder(clock, control_period, adapter)
    controls = tuple(c for action in actions for chunk in feeder.push(action) for c in chunk)
    _check_blocks(clock, control_period, feeder.count)
    return controls


def _check_blocks(clock: CandidateClock, control_period: Fraction, actions: int) -> None:
    if not clock.blocks_sent(actions, control_period):
        need, given = clock.chunk * clock.block_duration, actions * control_period
        raise UserError(
            f"{actions} actions of {control_period} s, {float(given):.4g} s in all, do not cover "
            f"the {float(need):.4g} s that the candidate takes at once ({clock.chunk} x "
            f"{clock.frames_per_action} frames at {clock.fps} fps): use a longer plan or less "
            "stride or chunk"
        )


def check_covered(spec: ModelSpec, control_period: Fraction, actions: int) -> None:
    """Refuse a model that so many actions give no block to.

    Raises:
        UserError: they do not cover one chunk, or the model's longest clip does not hold one.
    """
    _check_blocks(spec.clock, control_period, actions)
    if frame_count(spec, control_period, actions) == 1:
        raise UserError(
            f"model {spec.name!r}: max_frames {spec.max_frames} does not hold one chunk of "
            f"{spec.chunk * spec.frames_per_action} frames and the seed frame"
        )


def _ask(model: WorldModel, spec: ModelSpec, verb: str, *args: Any) -> Any:
    return called(f"model {spec.name!r}: {verb}", getattr(model, verb), *args)


def _check_context(spec: ModelSpec, context: Context) -> None:
    shape = (spec.context_length, spec.height, spec.width, 3)
    if context.frames.shape != shape or context.frames.dtype != np.uint8:
        raise UserError(
            f"model {spec.name!r} takes context frames {shape} uint8; "
            f"got {context.frames.shape} {context.frames.dtype}"
        )


def _reset(model: WorldModel, spec: ModelSpec, context: Context, seed: int) -> Clip:
    """Reset a model on its context; returns the seed frame as frame 0."""
    _check_context(spec, context)
    texts = (context.prompt, context.negative_prompt)
    _ask(model, spec, "reset", context.frames, *texts, seed, context.K)
    return Clip(context.frames[-1:], (Fraction(0),), getattr(model, "seed_record", None))


def model_controls(
    spec: ModelSpec, control_period: Fraction, adapter: Adapter, actions: Sequence[Any] | F8
) -> tuple[Control, ...]:
    """Controls that a model gets for an action log (T, A): `native_controls`, cut to its length.

    Raises:
        UserError: as `native_controls`, or not even one chunk fits the model's longest clip.
    """
    controls = native_controls(spec.clock, control_period, adapter, actions)
    check_covered(spec, control_period, len(actions))
    frames = frame_count(spec, control_period, len(actions))
    return controls[: frames // spec.frames_per_action]


def frame_count(spec: ModelSpec, control_period: Fraction, actions: int) -> int:
    """Frames of a clip driven by so many actions, seed frame included (0 blocks: 1)."""
    clock, s = spec.clock, spec.frames_per_action
    blocks = clock.blocks_sent(actions, control_period)
    if spec.max_frames is not None:
        blocks = min(blocks, (spec.max_frames - 1) // s // clock.chunk * clock.chunk)
    return blocks * s + 1


def _parts(
    spec: ModelSpec, context: Context, adapter: Adapter, actions: Sequence[Any] | F8
) -> list[tuple[int, tuple[Control, ...], str]]:
    """Calls to make: first frame, controls, method."""
    _check_context(spec, context)
    controls = model_controls(spec, context.control_period, adapter, actions)
    if spec.mode == "clip":
        return [(1, controls, "generate")]
    c, s = spec.chunk, spec.frames_per_action
    return [(b * s + 1, controls[b : b + c], "step") for b in range(0, len(controls), c)]


def drive(
    model: WorldModel,
    adapter: Adapter,
    actions: Sequence[Any] | F8,
    context: Context,
    *,
    seed: int = 0,
) -> Clip:
    """Drive a stepwise or a clip model with an action log.

    Args:
        model: candidate.
        adapter: of its paradigm on the scene's channels.
        actions: (T, A) reference actions, each holding ``context.control_period``.
        context: context frames, prompts, intrinsics.
        seed: of this generation.

    Returns:
        Frames 0 ... n s: the seed frame, then every block that the actions cover.

    Raises:
        UserError: the actions do not fit the scene or cover no block.
        ModelError: the model raised, or returned what its card does not promise.
    """
    spec = checked_spec(model)
    parts = _parts(spec, context, adapter, actions)
    clips = [_reset(model, spec, context, seed)]
    for first, controls, verb in parts:
        result = _ask(model, spec, verb, controls)
        count = len(controls) * spec.frames_per_action
        clips.append(checked_clip(result, spec, first=first, count=count, verb=verb))
    return Clip.concatenate(clips)


def drive_together(
    models: Sequence[WorldModel],
    adapter: Adapter,
    actions: Sequence[Any] | F8,
    context: Context,
    *,
    seeds: Sequence[int],
) -> list[Clip]:
    """Drive several generations of one case.

    Models with ``call_together`` and ``reset_together`` (served ones) go in lockstep, several in
    one request; others one after another. The frames are those of `drive` either way.

    Raises:
        UserError: as `drive`, or not one seed per model.
    """
    if len(models) != len(seeds):
        raise UserError(f"{len(models)} models but {len(seeds)} seeds")
    kind: Any = type(models[0]) if models else None
    if not hasattr(kind, "call_together"):
        return [
            drive(m, adapter, actions, context, seed=s) for m, s in zip(models, seeds, strict=True)
        ]
    spec = checked_spec(models[0])
    parts = _parts(spec, context, adapter, actions)
    texts = (context.prompt, context.negative_prompt)
    kind.reset_together(models, [(context.frames, *texts, s, context.K) for s in seeds])
    seed_clip = Clip(context.frames[-1:], (Fraction(0),))
    clips = [[seed_clip] for _ in models]
    for first, controls, verb in parts:
        results = kind.call_together(models, [controls] * len(models), verb=verb)
        count = len(controls) * spec.frames_per_action
        for mine, result in zip(clips, results, strict=True):
            mine.append(checked_clip(result, spec, first=first, count=count, verb=verb))
    return [Clip.concatenate(mine) for mine in clips]


class WorldModelEnv(gym.Env[dict[str, Any], Any]):
    """A world model in place of a reference world: same action space, same actions, its pictures.

    A step takes one reference action (Ta). Block b goes to the model at the first step with
    (i + 1) Ta >= (b + 1) S; that step's ``info["clip"]`` holds all frames made, and the observation
    is the newest frame with its age. Before the first block it is the seed frame. A chunked model
    waits for its chunk. The reference world is only reset, for the seed frame; it never moves.

    | Observation | Meaning | Range |
    |---|---|---|
    | ``frame`` | newest frame, (H, W, 3) uint8 sRGB at the model's size | 0 ... 255 |
    | ``age`` | time of this step less the frame's time [s], (1,) float32 | 0 ... chunk S + Ta |

    | Information | Meaning |
    |---|---|
    | ``frame_time`` | exact time [s] of the newest frame, a ``Fraction`` |
    | ``clip`` | the `Clip` of all frames that this step made; absent when it completed no block |

    The reward is 0.0. A model never ends an episode physically; ``truncated`` comes after the
    environment's maximum number of steps. The model runs in this process: what it raises, an exit
    too, is a `ModelError`, but one that hangs is not interrupted.

    Args:
        env: reference environment (any wrapper of a `wmeval.envs.base.WorldEnv`); not closed here.
        model: stepwise candidate.
        adapter: of its paradigm; made from the card when left out.
        prompt: what the model is told.
        negative_prompt: what it is told to avoid.
        view: the reference's camera that the seed frame comes from; None for its default.
        step_per_block: one step is one block (Ta := S).
        max_steps: steps after which an episode is truncated; None: the environment's own duration.

    Raises:
        UserError: a clip model, or keys bound to channels that the scene does not have.
        ModelError: the object is no model.
    """

    metadata = {"render_modes": ["rgb_array"]}  # noqa: RUF012 (Gymnasium's own spelling)

    def __init__(
        self,
        env: gym.Env[Any, Any],
        model: WorldModel,
        adapter: Adapter | None = None,
        *,
        prompt: str = "",
        negative_prompt: str = "",
        view: str | None = None,
        step_per_block: bool = False,
        max_steps: int | None = None,
    ) -> None:
        self.model_spec = checked_spec(model)
        if self.model_spec.mode == "clip":
            raise UserError(
                f"model {self.model_spec.name!r} makes whole clips and cannot be stepped; compare "
                "it with `wmeval pair`, which gives it all its controls at once"
            )
        self.env, self.model, self.view = env, model, view
        self.prompt, self.negative_prompt = prompt, negative_prompt
        world: Any = env.unwrapped
        self._world = world
        clock = self.model_spec.clock
        own: Fraction = world.clock.control_period
        self.control_period = clock.block_duration if step_per_block else own
        self._given = adapter
        self.adapter = adapter or self._own_adapter()
        if max_steps is None and getattr(world, "max_steps", None) is not None:
            max_steps = int(world.max_steps * own / self.control_period)
        self.max_steps = max_steps
        self.render_mode = "rgb_array"
        self.action_space = env.action_space
        form = self.adapter.channels
        self._flat = ActionForm(
            getattr(world, "ID", str(world)), form.names, form.branches, "hybrid"
        ).flat
        # A frame is shown until its successor's chunk is covered, at most one action late.
        oldest = float(clock.chunk * clock.block_duration + self.control_period)
        size = (self.model_spec.height, self.model_spec.width, 3)
        self.observation_space = gym.spaces.Dict(
            {
                "frame": gym.spaces.Box(0, 255, size, np.uint8),
                "age": gym.spaces.Box(0.0, oldest, (1,), np.float32),
            }
        )
        self._feeder: BlockFeeder | None = None
        self._newest: Clip | None = None

    def _own_adapter(self) -> Adapter:
        return make_adapter(
            self.model_spec,
            channels_of(self.env),
            control_period=self.control_period,
            prompt=self.prompt,
        )

    def _observation(self, now: Fraction) -> dict[str, Any]:
        assert self._newest is not None
        age = float(now - self._newest.times[-1])
        return {"frame": self._newest.frames[-1].copy(), "age": np.array([age], np.float32)}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Reset the reference for its seed frame, and the model on it.

        The model's own seed is drawn from this environment's generator.
        """
        super().reset(seed=seed)
        self.env.reset(seed=seed, options=options)
        # A regime of this episode turns the camera along a path of its own.
        self.adapter = self._given or self._own_adapter()
        context = live_context(
            self._world,
            self.model_spec,
            prompt=self.prompt,
            negative_prompt=self.negative_prompt,
            view=self.view,
        )
        model_seed = int(self.np_random.integers(2**31))
        self._newest = _reset(self.model, self.model_spec, context, model_seed)
        self._feeder = BlockFeeder(self.model_spec.clock, self.control_period, self.adapter)
        return self._observation(Fraction(0)), {"frame_time": Fraction(0)}

    def step(self, action: Any) -> tuple[dict[str, Any], float, bool, bool, dict[str, Any]]:
        """Take one action; ``info["clip"]`` holds the frames of the blocks it completed, if any.

        Raises:
            UserError: before ``reset``, or an action outside the action space.
            ModelError: the model raised, or returned what its card does not promise.
        """
        if self._feeder is None or self._newest is None:
            raise UserError("call reset() before step()")
        action = self._flat(action)
        spec, s = self.model_spec, self.model_spec.frames_per_action
        b = self._feeder.sent
        info: dict[str, Any] = {}
        clips = []
        for chunk in self._feeder.push(action):
            result = _ask(self.model, spec, "step", chunk)
            clips.append(checked_clip(result, spec, first=b * s + 1, count=len(chunk) * s))
            b += len(chunk)
        if clips:
            info["clip"] = self._newest = Clip.concatenate(clips)
        info["frame_time"] = self._newest.times[-1]
        now = self._feeder.count * self.control_period
        truncated = self.max_steps is not None and self._feeder.count >= self.max_steps
        return self._observation(now), 0.0, False, truncated, info

    def render(self) -> NDArray[np.uint8] | None:
        """The newest frame, (H, W, 3) uint8."""
        return None if self._newest is None else self._newest.frames[-1].copy()

    def close(self) -> None:
        """Close the model; the reference environment is its maker's to close."""
        _ask(self.model, self.model_spec, "close")
