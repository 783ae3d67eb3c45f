"""Policies: who acts. A plan, a replayed log, smooth random actions, or a user's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.plan import ActionPlan

if TYPE_CHECKING:
    from wmeval.envs.base import WorldEnv

Action = NDArray[np.float32]


@dataclass(frozen=True)
class Task:
    """What a policy is told when an episode begins.

    Attributes:
        env_id: environment.
        channels: components of the action, in order.
        control_period: time that one action holds [s].
        max_steps: actions until truncation.
        seed: the episode's seed.
        branches: the channels that are 0 or 1, the last ones.
        one_shots: channels that are pressed, not held.
        endings: channels that end the episode.
        camera_twist: (6, A) what a unit of each channel does to the camera, as
            `WorldEnv.camera_twist`; None where actions push a body.
    """

    env_id: str
    channels: tuple[str, ...]
    control_period: Fraction
    max_steps: int
    seed: int
    branches: tuple[str, ...] = ()
    one_shots: tuple[str, ...] = ()
    endings: tuple[str, ...] = ()
    camera_twist: NDArray[np.float64] | None = field(default=None, compare=False)

    @classmethod
    def of(cls, env: WorldEnv, max_steps: int | None = None) -> Task:
        """What an environment, reset or about to be, asks of a policy.

        Args:
            env: the environment; its present seed is the task's.
            max_steps: actions until the policy is asked no more; default: the environment's.
        """
        return cls(
            env.ID,
            env.channels,
            env.clock.control_period,
            env.max_steps if max_steps is None else min(max_steps, env.max_steps),
            env.seed,
            env.row.branches,
            env.one_shot_channels,
            env.ending_channels,
            env.camera_twist,
        )


class Policy(Protocol):
    """Closed loop or open: `record` asks it for every action.

    One with an attribute ``observes = "vector"`` is shown the flat vector alone, and no picture is
    drawn for it; others are shown the environment's own observation.
    """

    def begin(self, task: Task) -> None:
        """A new episode."""

    def act(self, step: int, observation: Any, info: Mapping[str, Any]) -> Action | None:
        """Action (A,) of step i, from what the environment last gave; None ends the episode."""

    def describe(self) -> dict[str, Any]:
        """JSON values for the metadata: ``kind`` and, where possible, what makes it again."""


class PlanPolicy:
    """Follows an ActionPlan on physical time and ends with it."""

    observes = "vector"

    def __init__(self, plan: ActionPlan) -> None:
        self.plan = plan

    def begin(self, task: Task) -> None:
        """Lay the plan on the environment's clock.

        Raises:
            UserError: the plan is made for another scene, or sets a channel that is not there.
        """
        if self.plan.scene != task.env_id:
            raise UserError(
                f"plan {self.plan.name!r} is made for {self.plan.scene}, not for {task.env_id}"
            )
        try:
            actions = self.plan.actions(task.channels, task.control_period, branches=task.branches)
        except ValueError as error:
            raise UserError(str(error)) from error
        self._actions = actions.astype(np.float32)

    def act(self, step: int, observation: Any, info: Mapping[str, Any]) -> Action | None:
        """Action of step i; None after the last."""
        return self._actions[step] if step < len(self._actions) else None

    def describe(self) -> dict[str, Any]:
        """Kind and name; the plan itself stands in the metadata's ``plan``."""
        return {"kind": "plan", "name": self.plan.name}


class ReplayPolicy:
    """Repeats an action log (T, A) and ends with it."""

    observes = "vector"

    def __init__(self, actions: NDArray[Any]) -> None:
        self._actions = np.asarray(actions).astype(np.float32)
        if self._actions.ndim != 2:
            raise UserError(f"an action log is (T, A); got shape {self._actions.shape}")

    def begin(self, task: Task) -> None:
        """Check the number of channels.

        Raises:
            UserError: the log has another number of channels than the environment.
        """
        if self._actions.shape[1] != len(task.channels):
            raise UserError(
                f"the action log has {self._actions.shape[1]} channels; {task.env_id} has "
                f"{len(task.channels)}: {', '.join(task.channels)}"
            )

    def act(self, step: int, observation: Any, info: Mapping[str, Any]) -> Action | None:
        """Action of step i; None after the last."""
        return self._actions[step] if step < len(self._actions) else None

    def describe(self) -> dict[str, Any]:
        """Kind; the log itself is the rollout's actions."""
        return {"kind": "replay"}


class RandomPolicy:
    """Smooth random actions: an Ornstein-Uhlenbeck process, squashed to [-1, 1].

    ``a = tanh(x)`` with ``x`` of standard deviation ``scale`` and autocorrelation
    ``exp(-t / correlation)``, exact for any control period. Seeded by the episode's seed on a
    stream of its own, so that scene and actions are independent.

    A branch is a random telegraph: it keeps its value for a time of mean ``hold``, whatever the
    control period. A one-shot is pressed for one action after a time of mean ``hold``. A channel
    that ends the episode stays 0: episodes last until the step limit.

    Args:
        scale: standard deviation of x.
        correlation: time [s] over which actions stay alike.
        stop_after: number of actions; None runs to the step limit.
        hold: mean time [s] between two changes of a branch.
    """

    observes = "vector"

    def __init__(
        self,
        *,
        scale: float = 1.0,
        correlation: float = 0.5,
        stop_after: int | None = None,
        hold: float = 1.0,
    ) -> None:
        if not (scale > 0 and correlation > 0 and math.isfinite(scale * correlation)):
            raise UserError(
                f"random policy: scale {scale} and correlation {correlation} s must be > 0"
            )
        if not 0 < hold < math.inf:
            raise UserError(f"random policy: hold {hold} s must be > 0")
        self.scale, self.correlation, self.stop_after = scale, correlation, stop_after
        self.hold = hold

    def begin(self, task: Task) -> None:
        """Seed the stream."""
        sequence = np.random.SeedSequence(task.seed, spawn_key=(_ACTION_STREAM,))
        self._rng = np.random.Generator(np.random.PCG64(sequence))
        self._keep = math.exp(-float(task.control_period) / self.correlation)
        self._change = -math.expm1(-float(task.control_period) / self.hold)
        self._x = self.scale * self._rng.standard_normal(len(task.channels) - len(task.branches))
        self._held = np.zeros(len(task.branches), bool)
        self._once = np.array([name in task.one_shots for name in task.branches], bool)
        self._goes_on = np.array([name not in task.endings for name in task.branches], bool)

    def act(self, step: int, observation: Any, info: Mapping[str, Any]) -> Action | None:
        """The next action of the process."""
        if self.stop_after is not None and step >= self.stop_after:
            return None
        if step:
            fresh = self.scale * self._rng.standard_normal(len(self._x))
            self._x = self._keep * self._x + math.sqrt(1 - self._keep**2) * fresh
        action: Action = np.tanh(self._x).astype(np.float32)
        if not len(self._held):
            return action
        changes = (self._rng.random(len(self._held)) < self._change) & self._goes_on
        # A press is over after its action, so that the next one is a rise again.
        self._held = np.where(self._once, changes & ~self._held, self._held ^ changes)
        hybrid: Action = np.concatenate([action, self._held.astype(np.float32)])
        return hybrid

    def describe(self) -> dict[str, Any]:
        """Kind and parameters."""
        return {
            "kind": "random",
            "scale": self.scale,
            "correlation": self.correlation,
            "stop_after": self.stop_after,
            "hold": self.hold,
        }


class ExplorerPolicy:
    """Walks on along a sine wave and keeps out of the way of what it observes.

    The paper's controller of WanderingGarden: sine-wave turning, forward walking, obstacle
    avoidance (Appendix "Unity Scenes"); the law is ours. Yaw is ``sway sin(2 pi t / period)`` plus
    a turn away from the nearest observed objects ahead, weighted by how near and how much ahead
    they are; it walks slower the more they weigh. What is not among the objects (hedges, low walls)
    it feels: where the velocity leaves its forward direction it turns that way, off the wall, and
    where it stands still it turns on the spot, each for a while.

    Made for scenes with the channels strafe, forward, yaw and pitch, whose flat vector begins like
    WanderingGarden's. The episode's seed draws the wave's phase and how long such turns last.

    Args:
        pace: forward action on a free way, 0 to 1.
        sway: amplitude of the yaw action.
        period: of the wave [s].
        caution: distance [m] from which objects ahead turn it.
        stop_after: number of actions; None runs to the step limit.
    """

    observes = "vector"
    CHANNELS = ("strafe", "forward", "yaw", "pitch")

    def __init__(
        self,
        *,
        pace: float = 0.5,
        sway: float = 0.22,
        period: float = 7.0,
        caution: float = 3.6,
        stop_after: int | None = None,
    ) -> None:
        if not (0 < pace <= 1 and 0 <= sway <= 1 and period > 0 and caution > 0):
            raise UserError(
                f"explorer policy: give a pace in (0, 1], a sway in [0, 1], and a period [s] and a "
                f"caution [m] > 0; got pace {pace}, sway {sway}, period {period}, caution {caution}"
            )
        self.pace, self.sway, self.period, self.caution = pace, sway, period, caution
        self.stop_after = stop_after

    def begin(self, task: Task) -> None:
        """Seed the stream.

        Raises:
            UserError: a scene of other channels, or whose actions do not move the camera.
        """
        if task.channels != self.CHANNELS:
            raise UserError(
                f"the explorer policy walks with {', '.join(self.CHANNELS)}; {task.env_id} has the "
                f"channels {', '.join(task.channels) or 'none'}"
            )
        if task.camera_twist is None:
            raise UserError(
                f"the explorer policy needs the walker's speed: {task.env_id} says no camera_twist"
            )
        # [m/s] per unit of the forward action.
        self._speed = float(task.camera_twist[2, self.CHANNELS.index("forward")])
        sequence = np.random.SeedSequence(task.seed, spawn_key=(_ACTION_STREAM,))
        self._rng = np.random.Generator(np.random.PCG64(sequence))
        self._dt = float(task.control_period)
        self._phase = float(self._rng.uniform(0, 2 * math.pi))
        self._asked = self._slow = self._until = self._away = 0.0
        self._side = 1.0

    def act(self, step: int, observation: Any, info: Mapping[str, Any]) -> Action | None:
        """The next action."""
        if self.stop_after is not None and step >= self.stop_after:
            return None
        vector = observation["vector"] if isinstance(observation, Mapping) else observation
        fx, fz = float(vector[3]), float(vector[5])
        vx, vz = float(vector[6]), float(vector[8])
        time = step * self._dt
        speed = math.hypot(vx, vz)
        # Half a second of hardly moving is being stuck.
        self._slow = self._slow + self._dt if speed < 0.3 * self._asked else 0.0
        if self._slow > 0.5 and time >= self._until:
            self._slow, self._side = 0.0, float(self._rng.choice((-1.0, 1.0)))
            self._until = time + float(self._rng.uniform(0.8, 1.6))
        if time < self._until:
            return self._action(0.0, self._side)
        turn, weight = self._avoidance(vector[10:].tolist(), fx, fz)
        # Sliding along something: the velocity has left the forward direction to this side.
        aside = math.atan2(vx * fz - vz * fx, vx * fx + vz * fz) if speed > 0.3 else 0.0
        if abs(aside) > 0.15 and time >= self._away:
            self._side = math.copysign(1.0, aside)
            self._away = time + float(self._rng.uniform(0.7, 1.5))
        if time < self._away:
            return self._action(self.pace, self._side)
        turn += self.sway * math.sin(2 * math.pi * time / self.period + self._phase)
        return self._action(self.pace * (1.0 - 0.6 * weight), turn)

    def _avoidance(self, slots: list[float], fx: float, fz: float) -> tuple[float, float]:
        """Turn away from the objects ahead, and how much the heaviest of them weighs (0 to 1)."""
        turn = most = 0.0
        for x, _, z, distance in zip(
            slots[0::4], slots[1::4], slots[2::4], slots[3::4], strict=True
        ):
            away = math.hypot(x, z)
            if distance <= 0 or not 1e-6 < away < self.caution:
                continue
            ahead, right = (x * fx + z * fz) / away, (x * fz - z * fx) / away
            if ahead <= 0:
                continue
            weight = (1 - away / self.caution) * ahead * ahead
            turn -= 2.5 * weight * (1.0 if right >= 0 else -1.0)
            most = max(most, weight)
        return turn, most

    def _action(self, forward: float, yaw: float) -> Action:
        self._asked = self._speed * forward
        return np.array([0.0, forward, min(max(yaw, -1.0), 1.0), 0.0], np.float32)

    def describe(self) -> dict[str, Any]:
        """Kind and parameters."""
        return {
            "kind": "explorer",
            "pace": self.pace,
            "sway": self.sway,
            "period": self.period,
            "caution": self.caution,
            "stop_after": self.stop_after,
        }


POLICIES: dict[str, Callable[..., Policy]] = {
    "plan": PlanPolicy,
    "replay": ReplayPolicy,
    "random": RandomPolicy,
    "explorer": ExplorerPolicy,
}
"""Policies by name; the arguments differ by kind."""

CLOSED_LOOP = ("random", "explorer")
"""Those that a name and their own arguments make again."""

# Beyond the seed spaces of scenes and the streams of branches.
_ACTION_STREAM = 1_000


def make_policy(name: str, **arguments: Any) -> Policy:
    """A policy by name.

    Raises:
        UserError: no such policy, or arguments that it does not take.
    """
    if name not in POLICIES:
        raise UserError(f"unknown policy {name!r}: choose from {', '.join(POLICIES)}")
    try:
        return POLICIES[name](**arguments)
    except TypeError as error:
        raise UserError(f"policy {name!r}: {error}") from error
