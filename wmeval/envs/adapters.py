"""Adapters: semantic actions on physical time to a model's native controls, and who may be scored.

One adapter per paradigm (`ADAPTERS`). ``reduce`` turns the actions that overlap one block, weighted
by their overlap, into that block's control; ``eligible`` says why a (scene, dimension, model) cell
cannot be scored. An ineligible cell is never driven and never scored. Source: the paper's "Action
Adaptation" and "Conditioning-mismatched Models".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wmeval.envs import environment_class, environment_row
from wmeval.envs.camera_path import CameraPath
from wmeval.envs.model import Actuates, KeyPair, ModelSpec
from wmeval.errors import UserError

F8 = NDArray[np.float64]
T = TypeVar("T")
Span = tuple[Fraction, Fraction]


# --- what a scene's channels are ----------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Channels:
    """Action channels of a scene, as adapters need to know them.

    Attributes:
        names: in the action vector's order.
        one_shots: channels that are pressed, not held (a jump): a rise above 1/2 is one press, and
            belongs to the one block that holds its start.
        camera_twist: (6, A) camera velocity (v [m/s], w [rad/s], in the camera's own OpenCV frame)
            per unit of each channel; None where the actions push a body of the scene.
        branches: channels that are 0 or 1.
        camera_path: where a regime takes the camera, whatever the actions; None without one.
        idle: no action does anything: the camera's path is all that is asked for.
    """

    names: tuple[str, ...]
    one_shots: tuple[str, ...] = ()
    camera_twist: F8 | None = None
    branches: tuple[str, ...] = ()
    camera_path: CameraPath | None = None
    idle: bool = False

    @property
    def moves(self) -> tuple[Actuates, ...]:
        """What a candidate is asked to move; nothing where nobody acts: a prompt says it all."""
        if not self.names and self.camera_path is None:
            return ()
        if self.camera_twist is not None or (self.camera_path is not None and self.idle):
            return ("camera",)
        return ("body",) if self.camera_path is None else ("body", "camera")

    @property
    def pressed(self) -> NDArray[np.bool_]:
        """(A,) True for one-shots."""
        return np.array([n in self.one_shots for n in self.names], bool)


def channels_of(env: Any) -> Channels:
    """Channels of an environment, or of its id.

    From the table row's ``channels``, and the class attributes ``one_shot_channels`` and
    ``camera_twist`` where a scene has such.

    Raises:
        UserError: an unknown id.
    """
    if isinstance(env, str):
        row, holder = environment_row(env), environment_class(env)
        names, branches = row.channels, row.branches
    else:
        holder = getattr(env, "unwrapped", env)
        names, branches = holder.channels, getattr(getattr(holder, "row", None), "branches", ())
    return Channels(
        tuple(names),
        tuple(getattr(holder, "one_shot_channels", ())),
        getattr(holder, "camera_twist", None),
        tuple(branches),
        None if isinstance(env, str) else CameraPath.at_rest(holder),
    )


# --- eligibility --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Rule:
    """One reason for which a cell is not scored.

    Attributes:
        scene_moves: what the scene's actions, or a camera regime, move.
        model: whether the rule speaks of this model.
        spared: evaluation dimensions that are scored all the same.
        reason: the sentence.
    """

    scene_moves: Actuates
    model: Callable[[ModelSpec], bool]
    spared: tuple[str, ...]
    reason: str


# "prompt_consistency" asks only whether the picture holds what the prompt names.
# A keyboard trained as a viewer's navigation still moves the picture of a follow camera: it is
# scored on obedience and on looks (Tables 2 and 5), never on what a force does to a body (Table 3).
# A model with camera control alone is scored nowhere on force scenes: stricter than Table 2, which
# has one such model by flow.
RULES: tuple[Rule, ...] = (
    Rule(
        "body",
        lambda m: not m.moves,
        ("prompt_consistency",),
        "it is driven by a prompt alone, and a prompt that describes a force is not action-matched",
    ),
    Rule(
        "body",
        lambda m: m.paradigm == "camera",
        ("prompt_consistency",),
        "it exposes only camera control: a force on a body has no place to be injected",
    ),
    Rule(
        "body",
        lambda m: "body" not in m.moves,
        ("prompt_consistency", "controllability", "causal_lpips", "consistency"),
        "its keys were trained as the viewer's own navigation: they map onto no force on a body",
    ),
    Rule(
        "camera",
        lambda m: not m.moves,
        ("prompt_consistency",),
        "it is driven by a prompt alone, which is not matched with a camera path",
    ),
    Rule(
        "camera",
        lambda m: "camera" not in m.moves,
        ("prompt_consistency",),
        "the scene moves the camera, and it has no camera control",
    ),
)


def ineligible(
    env_id: str,
    dimension: str,
    spec: ModelSpec,
    scene_moves: Actuates | Sequence[Actuates] = "body",
) -> str | None:
    """Why a model is not scored on one dimension of a scene; None when it is.

    Args:
        env_id: scene.
        dimension: evaluation dimension, as a plan names it.
        spec: the model's card.
        scene_moves: what it is asked to move (`Channels.moves`).
    """
    asked = (scene_moves,) if isinstance(scene_moves, str) else scene_moves
    for rule in RULES:
        if rule.scene_moves in asked and rule.model(spec) and dimension not in rule.spared:
            return f"{spec.name} on {env_id}, {dimension}: {rule.reason}"
    return None


# --- controls -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Keys:
    """Native control of a keyboard model for one block.

    Attributes:
        held: keys held during the whole block, in the channels' order.
        pressed: keys pressed once, at its start.
    """

    held: tuple[str, ...]
    pressed: tuple[str, ...] = ()


Control = F8 | Keys | str
"""Continuous (A,), camera (4, 4), keys, or text."""


@dataclass(frozen=True)
class Hold:
    """A key held down: ``start`` and ``duration`` [s]; a press lasts 0."""

    key: str
    start: Fraction
    duration: Fraction


def holds(controls: Sequence[Keys], block_duration: Fraction) -> tuple[Hold, ...]:
    """Key strokes of consecutive blocks: a key held in neighbouring blocks is one long hold."""
    down: dict[str, int] = {}
    out: list[Hold] = []
    for b, keys in enumerate([*controls, Keys(())]):
        for key in [k for k in down if k not in keys.held]:
            first = down.pop(key)
            out.append(Hold(key, first * block_duration, (b - first) * block_duration))
        for key in keys.held:
            down.setdefault(key, b)
        out.extend(Hold(key, b * block_duration, Fraction(0)) for key in keys.pressed)
    return tuple(sorted(out, key=lambda h: (h.start, h.key)))


def control_json(control: Control) -> Any:
    """A control as JSON: numbers, {"held": [...], "pressed": [...]}, or text."""
    if isinstance(control, Keys):
        return {"held": list(control.held), "pressed": list(control.pressed)}
    return control if isinstance(control, str) else control.tolist()


def control_from_json(value: Any) -> Control:
    """Inverse of `control_json`, exact."""
    if isinstance(value, dict):
        return Keys(tuple(value["held"]), tuple(value["pressed"]))
    return value if isinstance(value, str) else np.array(value, np.float64)


# --- SE(3) --------------------------------------------------------------------------------------


def _hat(w: F8) -> F8:
    return np.array([[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]])


def se3_exp(twist: F8) -> F8:
    """Pose (4, 4) of a twist (v, w) (6,) [m, rad] held for unit time."""
    v, w = np.asarray(twist[:3], np.float64), np.asarray(twist[3:], np.float64)
    angle = float(np.linalg.norm(w))
    W = _hat(w)
    if angle < 1e-4:  # Taylor; the next terms are below 1e-16
        a, b, c = 1 - angle**2 / 6, 0.5 - angle**2 / 24, 1 / 6 - angle**2 / 120
    else:
        a = math.sin(angle) / angle
        # (1 - cos) / angle^2, without cancellation
        b = 0.5 * (math.sin(angle / 2) / (angle / 2)) ** 2
        c = (1 - a) / angle**2
    pose = np.eye(4)
    pose[:3, :3] += a * W + b * W @ W
    pose[:3, 3] = (np.eye(3) + b * W + c * W @ W) @ v
    return pose


def se3_log(pose: F8) -> F8:
    """Twist (6,) of a pose (4, 4); the rotation is less than half a turn."""
    R = np.asarray(pose, np.float64)[:3, :3]
    axis2 = np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])  # 2 sin(angle) axis
    sin, cos = float(np.linalg.norm(axis2)) / 2, (float(np.trace(R)) - 1) / 2
    angle = math.atan2(sin, cos)
    if sin > 1e-6:
        w = axis2 * (angle / (2 * sin))
    elif cos > 0:
        w = axis2 / 2
    else:  # half a turn: the axis is the column space of R + 1
        column = (R + np.eye(3))[:, int(np.argmax(np.diag(R)))]
        w = column / float(np.linalg.norm(column)) * angle
        w = -w if axis2 @ w < 0 else w
    W = _hat(w)
    if angle < 1e-4:
        d = 1 / 12 + angle**2 / 720
    else:
        half = angle / 2
        d = (1 - half * math.cos(half) / math.sin(half)) / angle**2
    v = (np.eye(3) - W / 2 + d * W @ W) @ np.asarray(pose)[:3, 3]
    return np.concatenate([v, w])


def compose_fractional(poses: Sequence[F8], fractions: Sequence[Fraction]) -> F8:
    """Product of ``exp(f_i log T_i)``: relative poses (4, 4), each done to the fraction f_i."""
    out = np.eye(4)
    for pose, f in zip(poses, fractions, strict=True):
        # A whole one is taken as it is: log and exp would only round it.
        out = out @ (np.asarray(pose) if f == 1 else se3_exp(float(f) * se3_log(pose)))
    return out


# --- adapters -----------------------------------------------------------------------------------


class Adapter(Protocol):
    """Maps one scene's actions to one model's controls."""

    @property
    def channels(self) -> Channels:
        """Of the scene."""

    def eligible(self, env_id: str, dimension: str, spec: ModelSpec) -> str | None:
        """Reason for which a cell is not scored, or None."""

    def reduce(
        self,
        actions: F8,
        weights: Sequence[Fraction],
        pressed: NDArray[np.bool_] | None = None,
        *,
        span: Span | None = None,
    ) -> Control:
        """Control of one block.

        Args:
            actions: (n, A) the reference actions that overlap the block, in order.
            weights: (n,) overlap [s] of each; they sum to the block's duration.
            pressed: (A,) one-shots whose start lies in this block.
            span: start and end of the block [s], where a camera path is to be followed.
        """


def _pressed(pressed: NDArray[np.bool_] | None, channels: Channels) -> NDArray[np.bool_]:
    none = np.zeros(len(channels.names), bool)
    return none if pressed is None else pressed & channels.pressed


@dataclass(frozen=True, eq=False)
class _Base:
    channels: Channels

    def eligible(self, env_id: str, dimension: str, spec: ModelSpec) -> str | None:
        """Reason for which a cell is not scored, or None."""
        return ineligible(env_id, dimension, spec, self.channels.moves)


@dataclass(frozen=True, eq=False)
class ContinuousAdapter(_Base):
    """Weighted mean of every channel; correctly rounded, so that equal actions stay as they are.

    A branch takes the value that it holds longest in the block, ties to the later one.
    """

    def reduce(
        self,
        actions: F8,
        weights: Sequence[Fraction],
        pressed: NDArray[np.bool_] | None = None,
        *,
        span: Span | None = None,
    ) -> F8:
        """Mean (A,); a one-shot channel is 1 in the block that holds its start, else 0."""
        total = sum(weights, Fraction(0))
        exact = [
            sum((Fraction(float(a)) * w for a, w in zip(column, weights, strict=True)), Fraction(0))
            for column in np.asarray(actions, np.float64).T
        ]
        mean = np.array([float(x / total) for x in exact])
        for c, name in enumerate(self.channels.names):
            if name in self.channels.branches:
                mean[c] = _longest(np.asarray(actions)[:, c].tolist(), weights)
        once = self.channels.pressed
        mean[once] = _pressed(pressed, self.channels)[once]
        return mean


def _longest(values: Sequence[T], weights: Sequence[Fraction]) -> T:
    """The value held longest, ties to the one held later."""
    votes: dict[T, tuple[Fraction, int]] = {}
    for i, (value, weight) in enumerate(zip(values, weights, strict=True)):
        # Pairs compare by weight, then by the last action that held the value.
        votes[value] = (votes.get(value, (Fraction(0), 0))[0] + weight, i)
    return max(votes, key=lambda v: votes[v])


CAMERA_YAW, CAMERA_STRAFE = "camera_yaw", "camera_strafe"
"""Channels that a keyboard has beside the scene's where a regime turns the camera."""
YAW_RATE, STRAFE_MPS = math.radians(1.0), 0.02
"""Slower turns [rad/s] and ways to the side [m/s] hold no key."""

_DEFAULT_KEYS = {
    "strafe": KeyPair(negative="A", positive="D"),
    "x": KeyPair(negative="A", positive="D"),
    "z": KeyPair(negative="S", positive="W"),
    "yaw": KeyPair(negative="LEFT", positive="RIGHT"),
    "pitch": KeyPair(negative="DOWN", positive="UP"),
    "jump": KeyPair(negative="NONE", positive="SPACE"),
    "sprint": KeyPair(negative="NONE", positive="SHIFT"),
}


@dataclass(frozen=True, eq=False)
class KeyboardAdapter(_Base):
    """Each channel is two keys; the one held longest in the block wins, ties to the later one.

    A key knows no amplitude: what is above the dead zone is held. Channels vote apart, so that
    "forward, then forward and right" is not split into two weak keys.

    Attributes:
        keys: channel to keys.
        dead_zone: |value| up to which neither is held.
    """

    keys: Mapping[str, KeyPair]
    dead_zone: float

    def reduce(
        self,
        actions: F8,
        weights: Sequence[Fraction],
        pressed: NDArray[np.bool_] | None = None,
        *,
        span: Span | None = None,
    ) -> Keys:
        """Keys held in the block and keys pressed at its start."""
        held = []
        presses = _pressed(pressed, self.channels)
        for c, name in enumerate(self.channels.names):
            pair = self.keys[name]
            if name in self.channels.one_shots:
                continue
            keys = [
                None
                if abs(value) <= self.dead_zone
                else (pair.positive if value > 0 else pair.negative)
                for value in actions[:, c]
            ]
            winner = _longest(keys, weights)
            if winner is not None:
                held.append(winner)
        once = [
            self.keys[n].positive for n, p in zip(self.channels.names, presses, strict=True) if p
        ]
        return Keys((*held, *self._camera_keys(span)), tuple(once))

    def _camera_keys(self, span: Span | None) -> list[str]:
        """Keys that turn and strafe the viewer along a camera path."""
        path = self.channels.camera_path
        if path is None or span is None:
            return []
        motion = path.between(*span)
        seconds = float(span[1] - span[0])
        # Seen from above: the share of the view's direction to the right, and of the way.
        yaw = math.atan2(motion[0, 2], motion[2, 2]) / seconds
        strafe = float(motion[0, 3]) / seconds
        rates = ((CAMERA_YAW, yaw, YAW_RATE), (CAMERA_STRAFE, strafe, STRAFE_MPS))
        return [
            self.keys[name].positive if rate > 0 else self.keys[name].negative
            for name, rate, least in rates
            if abs(rate) > least
        ]


@dataclass(frozen=True, eq=False)
class CameraAdapter(_Base):
    """Camera motion of the block: along the camera path where there is one.

    Else the fractional-log composition of each action's relative pose.

    Attributes:
        control_period: time that one action holds [s].
    """

    control_period: Fraction

    def reduce(
        self,
        actions: F8,
        weights: Sequence[Fraction],
        pressed: NDArray[np.bool_] | None = None,
        *,
        span: Span | None = None,
    ) -> F8:
        """Pose (4, 4) of the camera at the block's end in the camera at its start (OpenCV)."""
        twist = self.channels.camera_twist
        if self.channels.camera_path is not None:
            if span is None:
                raise UserError("a camera path is followed block by block: give the block's span")
            return self.channels.camera_path.between(*span)
        if twist is None and not self.channels.names:
            return np.eye(4)  # Nobody acts, and the camera stands.
        if twist is None:
            raise UserError(
                f"channels {', '.join(self.channels.names)} move no camera: this model is "
                "ineligible here"
            )
        poses = [se3_exp(twist @ a * float(self.control_period)) for a in np.asarray(actions)]
        return compose_fractional(poses, [w / self.control_period for w in weights])


@dataclass(frozen=True, eq=False)
class LanguageAdapter(_Base):
    """The plan's prompt, in every block: text knows no time.

    Attributes:
        prompt: the plan's.
    """

    prompt: str

    def reduce(
        self,
        actions: F8,
        weights: Sequence[Fraction],
        pressed: NDArray[np.bool_] | None = None,
        *,
        span: Span | None = None,
    ) -> str:
        """The prompt."""
        return self.prompt


def _continuous(spec: ModelSpec, channels: Channels, period: Fraction, prompt: str) -> Adapter:
    return ContinuousAdapter(channels)


def _keyboard(spec: ModelSpec, channels: Channels, period: Fraction, prompt: str) -> Adapter:
    known = (*channels.names, CAMERA_YAW, CAMERA_STRAFE)
    unknown = set(spec.keys) - set(known)
    if unknown:
        raise UserError(
            f"model {spec.name!r} binds keys to channel {sorted(unknown)[0]!r}; the scene has "
            f"{', '.join(known)}"
        )
    keys = {
        name: spec.keys.get(name)
        or _DEFAULT_KEYS.get(name.rsplit("_", 1)[-1])
        or KeyPair(negative=f"{name}-", positive=f"{name}+")
        for name in known
    }
    return KeyboardAdapter(channels, keys, spec.dead_zone)


def _camera(spec: ModelSpec, channels: Channels, period: Fraction, prompt: str) -> Adapter:
    return CameraAdapter(channels, period)


def _language(spec: ModelSpec, channels: Channels, period: Fraction, prompt: str) -> Adapter:
    return LanguageAdapter(channels, prompt)


@dataclass(frozen=True)
class AdapterRow:
    """One paradigm's adapter.

    Attributes:
        make: from the model's card, the scene's channels, the control period [s] and the prompt.
        summary: one line for tables.
    """

    make: Callable[[ModelSpec, Channels, Fraction, str], Adapter]
    summary: str


ADAPTERS: dict[str, AdapterRow] = {
    "action": AdapterRow(_continuous, "numbers per channel: the block's mean, by overlap in time"),
    "keyboard": AdapterRow(_keyboard, "keys: per channel the one held longest in the block"),
    "camera": AdapterRow(_camera, "a 4x4 pose: the camera's motion over the block"),
    "language": AdapterRow(_language, "text: the plan's prompt, the same in every block"),
}


def make_adapter(
    spec: ModelSpec, channels: Channels, *, control_period: Fraction, prompt: str = ""
) -> Adapter:
    """The adapter of a model's paradigm on a scene's channels.

    Raises:
        UserError: the card binds keys to channels that the scene does not have.
    """
    return ADAPTERS[spec.paradigm].make(spec, channels, control_period, prompt)
