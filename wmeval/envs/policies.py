"""Policies: who acts. A plan, a replayed log, smooth random actions, or a user's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.plan import ActionPlan

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
    """

    env_id: str
    channels: tuple[str, ...]
    control_period: Fraction
    max_steps: int
    seed: int
    branches: tuple[str, ...] = ()
    one_shots: tuple[str, ...] = ()


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
    control period. A one-shot is pressed for one action after a time of mean ``hold``.

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
        changes = self._rng.random(len(self._held)) < self._change
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


POLICIES: dict[str, Callable[..., Policy]] = {
    "plan": PlanPolicy,
    "replay": ReplayPolicy,
    "random": RandomPolicy,
}
"""Policies by name; the arguments differ by kind."""

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
