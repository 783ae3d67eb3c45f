"""Forms of an action: what a Gymnasium space holds, and the one flat vector behind it.

Plans, logs, candidates and drivers know the flat vector alone: continuous channels in [-1, 1], then
branches, each 0.0 or 1.0, in the order of the environment's ``channels``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeAlias

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError

ActionMode = Literal["hybrid", "flat"]
Action: TypeAlias = "NDArray[Any] | Mapping[str, Any]"
"""An array (A,), or a mapping of "continuous" (C,) and "discrete" (D,)."""

_SHOWN = 6
"""More channels than these are not all named in a message."""

PRESSED = 0.5
"""A branch above this is 1."""


class ActionForm:
    """Action space of an environment, and the flat vector of any action in it.

    Args:
        env_id: for messages.
        channels: names of all components, branches last.
        branches: names of the branches.
        mode: "hybrid": a Dict space where there are branches; "flat": always one Box.

    Attributes:
        space: Box(-1, 1, (A,)) without branches. With them Dict(continuous=Box(-1, 1, (C,)),
            discrete=MultiBinary(D)); flat: Box((A,)) whose branches lie in [0, 1], above 1/2 is 1.
    """

    def __init__(
        self, env_id: str, channels: Sequence[str], branches: Sequence[str], mode: ActionMode
    ) -> None:
        self.channels, self.branches = tuple(channels), tuple(branches)
        count = self._count = len(self.channels)
        self._continuous = count - len(self.branches)
        if self.channels[self._continuous :] != self.branches:
            raise ValueError(f"{env_id}: branches {self.branches} are not the last channels")
        self._where = f"{env_id}: the action"
        shown = self.channels if count <= _SHOWN else (*self.channels[: _SHOWN - 1], "...")
        self._order = f" (channels: {', '.join(shown)})"
        self._shape = (count,)
        self._plain = not self.branches
        box = gym.spaces.Box(-1.0, 1.0, (self._continuous,), np.float32)
        self.space: gym.spaces.Box | gym.spaces.Dict = box
        if self.branches and mode == "hybrid":
            discrete = gym.spaces.MultiBinary(len(self.branches))
            self.space = gym.spaces.Dict({"continuous": box, "discrete": discrete})
        elif self.branches:
            low = np.array([-1.0] * self._continuous + [0.0] * len(self.branches), np.float32)
            self.space = gym.spaces.Box(low, np.ones(count, np.float32), dtype=np.float32)

    def flat(self, action: Any) -> tuple[float, ...]:
        """The flat vector (A,) of an action of either form: float32 values, branches 0.0 or 1.0.

        Raises:
            UserError: a wrong shape, type or key, NaN, or a value out of range.
        """
        # The usual case first; NaN fails every comparison.
        if (
            self._plain
            and type(action) is np.ndarray
            and action.dtype == np.float32
            and action.shape == self._shape
        ):
            values = tuple(action.tolist())
            if all(-1.0 <= v <= 1.0 for v in values):
                return values
        if isinstance(action, Mapping):
            return self._of_parts(action)
        given = self._numbers(action, self._where, self.channels)
        self._within(given[: self._continuous], self.channels, -1.0)
        self._within(given[self._continuous :], self.branches, 0.0)
        return self._canonical(given)

    def native(self, values: Sequence[float]) -> Any:
        """The space's own form of a flat vector (A,)."""
        array = np.array(values, np.float32)
        if isinstance(self.space, gym.spaces.Box):
            return array
        pressed = (array[self._continuous :] > PRESSED).astype(np.int8)
        return {"continuous": array[: self._continuous], "discrete": pressed}

    def _canonical(self, given: Sequence[float]) -> tuple[float, ...]:
        n = self._continuous
        continuous: list[float] = np.array(given[:n], np.float32).tolist()
        return (*continuous, *(1.0 if v > PRESSED else 0.0 for v in given[n:]))

    def _of_parts(self, action: Mapping[str, Any]) -> tuple[float, ...]:
        where = self._where
        if self._plain:
            raise UserError(
                f"{where} is a mapping: this scene has no branches; give an array{self._order}"
            )
        names = {"continuous": self.channels[: self._continuous], "discrete": self.branches}
        if set(action) != set(names):
            raise UserError(f"{where} has the keys {sorted(map(str, action))}: give {list(names)}")
        parts = {
            key: self._numbers(action[key], f"{where}: {key}", names[key], kinds)
            for key, kinds in (("continuous", "fiu"), ("discrete", "biuf"))
        }
        self._within(parts["continuous"], names["continuous"], -1.0)
        for name, value in zip(self.branches, parts["discrete"], strict=True):
            if value not in (0, 1):
                raise UserError(f"{where}: {name} = {value} is not 0 or 1")
        return self._canonical([*parts["continuous"], *parts["discrete"]])

    def _numbers(
        self, given: Any, where: str, names: Sequence[str], kinds: str = "fiu"
    ) -> list[float]:
        try:
            array = np.asarray(given)
        except ValueError as error:
            raise UserError(f"{where} is no array: {error}") from error
        if array.dtype.kind not in kinds and not (array.size == 0 and array.dtype.kind != "O"):
            raise UserError(
                f"{where} has type {array.dtype}: give float32 numbers in [-1, 1]{self._order}"
            )
        if array.shape != (len(names),):
            raise UserError(
                f"{where} has shape {array.shape}: give shape {(len(names),)}{self._order}"
            )
        numbers: list[float] = array.tolist()
        return numbers

    def _within(self, values: Sequence[float], names: Sequence[str], low: float) -> None:
        for name, value in zip(names, values, strict=False):
            if not low <= value <= 1.0:
                raise UserError(
                    f"{self._where}: {name} = {value} is not in [{low:g}, 1]: scale or clip it "
                    "before step()"
                )
