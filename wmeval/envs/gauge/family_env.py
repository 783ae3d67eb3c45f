"""What the 22 family environments share: a card's set-up is built at reset, then physics runs."""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue, ValidationError

from wmeval.assets import gauge_cards as cards
from wmeval.assets.gauge_cards import Family, family
from wmeval.conventions import quaternion_to_matrix
from wmeval.envs.base import Composition, EnvOptions, Observation, WorldEnv
from wmeval.envs.gauge.build import Built, build
from wmeval.envs.gauge.configurations import (
    PAPER_VERSIONS,
    Settings,
    chained,
    check_engine,
    engines_of,
    regimes,
    settings_of,
)
from wmeval.envs.gauge.markers import Followers, followers
from wmeval.envs.gauge.motions import ACTION, channels
from wmeval.envs.gauge.solver_rows import PUBLISHED
from wmeval.errors import UserError, first_problem
from wmeval.scene import Scene
from wmeval.sim.engines.engine_checks import OF_EVERY_ENGINE, check_names
from wmeval.sim.protocol import EngineConfig, EventRules, StateView

SLOT_WIDTH = 13
"""Numbers of a body: position 3, quaternion ``wxyz`` 4, linear 3 and angular velocity 3."""
REACH = 100.0
"""Bound of the observation's lengths and speeds [m], [m/s]."""
_SPIN = 1e4


class FamilyEnv(WorldEnv):
    """Base of the families.

    Args:
        material: variant of the family; default: the card's first.
        subtask: set-up of the family; default: the card's first.
        config: ``published-settings``, ``tuned``, or a .yaml file of fitted numbers.
        drive: in place of the card's motion: a .csv file ``time,x,y,z,angle`` of a measured one, or
            "action": then the agent moves what is led.
        solver: settings over the configuration's: ``iterations``, ``restitution_threshold``, and
            the engine's own options, as an ablation needs them.
        **common: see `WorldEnv`.

    Raises:
        UserError: an engine that has not the physics of the family, or anything of another name.
    """

    FAMILY: ClassVar[str]
    """Id of the family's card."""
    tracked_roles = ()
    _MEMORY = ("_built", "_followers")

    def __init__(
        self, *, material: str | None = None, subtask: str | int | None = None,
        config: str = PUBLISHED, drive: str | None = None,
        solver: Mapping[str, JsonValue] | None = None, **common: Unpack[EnvOptions],
    ) -> None:  # fmt: skip
        card = self.card
        engine = common.get("engine") or engines_of(card)[0]
        check_engine(card, engine)
        # A command line reads "3" as a number.
        named = None if subtask is None else str(subtask)
        self.subtask = _chosen(card, "subtask", named, tuple(card.subtasks))
        known = tuple(card.subtasks[self.subtask].frames)
        self.material = _chosen(card, "material", material, known)
        for name, value, kind, wanted in (
            ("drive", drive, str, f"the name of a .csv file, or {ACTION!r}"),
            ("solver", solver, Mapping, "settings by name"),
        ):
            if value is not None and not isinstance(value, kind):
                raise UserError(f"GAUGE/{card.env}-v0: {name} = {value!r}: give {wanted}")
        self.config, self.drive = config, drive
        self.solver = dict(solver or {})
        self.solving: Settings = settings_of(card, engine, config)
        common["engine"] = engine
        if common.get("dt") is None:
            common["dt"] = self.solving.dt
        self._built: Built | None = None
        self._followers: Followers | None = None
        super().__init__(**common)
        if common.get("max_steps") is None:
            # The row's is that of the first set-up; others of the family are longer.
            record = Fraction(self.frames - 1, cards.RECORD_HZ)
            self.max_steps = math.ceil(record / self.clock.control_period)

    @property
    def card(self) -> Family:
        """The family's card."""
        return family(self.FAMILY)

    @property
    def frames(self) -> int:
        """Frames that are recorded, the first at time 0."""
        return self.card.frames(self.subtask, self.material)

    @property
    def built(self) -> Built:
        """This episode's world with its markers and drives.

        Raises:
            UserError: before the first reset.
        """
        if self._built is None:
            raise UserError(f"{self.ID}: call reset() first")
        return self._built

    def markers(self) -> NDArray[np.float64]:
        """Where the markers are now, (M, 3) [m]; (0, 3) where the family wears none."""
        if self._followers is None:
            return np.zeros((0, 3))
        from wmeval.sim.rows import LastRow

        return self._followers.now(self.scene, LastRow(self.log))

    @property
    def facts(self) -> Mapping[str, JsonValue]:
        """Under ``gauge``: set-up, configuration, regimes, hashes of the drives."""
        card, solving = self.card, self.solving
        told: dict[str, JsonValue] = {
            "family": card.id,
            "paper": card.paper,
            "subtask": self.subtask,
            "material": self.material,
            "frames": self.frames,
            "quantity": card.quantity,
            "measured": list(self._measured(self.scene)),
            "config": solving.name,
            "solver": solving.solver,
            "hz": float(1 / self.clock.dt),
            "regimes": regimes(self.engine, self._config(), self.clock.dt, self.built),
            "drives": dict(self.built.drives.hashes),
            "settled_s": self.built.drives.settle,
        }
        if solving.departs:
            told["departs"] = solving.departs
        if self.solver:
            told["solver_overrides"] = dict(self.solver)
        if solving.fitted_on:
            told["fitted_on"] = solving.fitted_on
        if solving.name == PUBLISHED:
            told["paper_versions"] = dict(PAPER_VERSIONS)
        return {"gauge": told}

    # --- of WorldEnv ------------------------------------------------------------------------------

    def _settings(self) -> dict[str, JsonValue]:
        return {
            "material": self.material,
            "subtask": self.subtask,
            "config": self.config,
            "drive": self.drive,
            "solver": dict(self.solver) or None,
        }

    def _channels(self) -> tuple[str, ...]:
        if self.drive != ACTION:
            return ()
        return channels(self.card, self.subtask, self.material)

    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        one = [REACH] * 3 + [1.0] * 4 + [REACH] * 3 + [_SPIN] * 3
        card = self.card
        if card.markers is not None:
            high = [REACH] * (3 * card.markers.count)
        else:
            high = one * len(self._observed_names())
            rope = card.bodies.get("rope")
            if rope is not None and isinstance(rope.shape, cards.Rope):
                high += [REACH] * (3 * rope.shape.nodes)
        bound = np.array(high, np.float32)
        return -bound, bound

    def _observed_names(self) -> tuple[str, ...]:
        """Rigid bodies that the observation holds, in the card's order."""
        there = self.card.bodies_of(self.subtask, self.material)
        return tuple(
            name
            for name, body in there.items()
            if body.motion == "dynamic"
            and not isinstance(body.shape, cards.Bricks | cards.Rope | cards.Sheet)
        )

    def _compose(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Composition:
        self._built = built = build(
            self.card, self.subtask, self.material,
            drive=self.drive, rope_chain=chained(self.engine), changes=self.solving.changes,
        )  # fmt: skip
        return Composition(
            built.scene, built.drives.specs, EventRules(), built.meshes, self._config(),
            settle=round(built.drives.settle / float(self.clock.dt)),
        )  # fmt: skip

    def _config(self) -> EngineConfig:
        check_names(self.engine, self.solver)
        of, own = self.solving.config, dict(self.solver)
        fields: dict[str, Any] = {name: own.pop(name) for name in OF_EVERY_ENGINE if name in own}
        try:
            return EngineConfig.model_validate(
                {**of.model_dump(), **fields, "options": {**of.options, **own}}
            )
        except ValidationError as error:
            raise UserError(f"{self.ID}: solver: {first_problem(error)}") from error

    def _begin(self, scene: Scene) -> None:
        built = self.built
        worn = built.markers
        self._followers = None if worn is None else followers(scene, built.meshes, worn)
        observed = self._observed_names() if worn is None else ()
        self._bodies = tuple(scene.index(name) for name in observed)
        self._links = tuple(i for i, b in enumerate(scene.bodies) if b.role == "rope")

    def _observe(self, now: StateView) -> Observation:
        if self._followers is not None:
            return self._followers.now(self.scene, now).ravel().astype(np.float32)
        flat: list[float] = []
        for body in self._bodies:
            position, quaternion = now.pose(body)
            linear, angular = now.velocity(body)
            flat += (*position, *quaternion, *linear, *angular)
        if "rope" in self.card.bodies:
            flat += self._rope(now).ravel().tolist()
        return np.array(flat, np.float32)

    def _rope(self, now: StateView) -> NDArray[np.float64]:
        """Nodes of the rope (N, 3) [m]: its vertices, or the ends of its links."""
        if not self._links:
            return now.vertices("rope")
        nodes: list[NDArray[np.float64]] = []
        shape = self.card.bodies["rope"].shape
        assert isinstance(shape, cards.Rope)
        half = shape.length / len(self._links) / 2
        for i in self._links:
            position, quaternion = now.pose(i)
            along = quaternion_to_matrix(np.array(quaternion))[:, 2] * half
            if not nodes:
                nodes.append(np.array(position) - along)
            nodes.append(np.array(position) + along)
        return np.array(nodes)

    def _measured(self, scene: Scene) -> tuple[str, ...]:
        names = {b.name for b in scene.bodies} | {d.name for d in scene.deformables}
        return tuple(n for n in self.card.measured if n in names)

    def _side_info(self, now: StateView, step: int) -> Mapping[str, Any]:
        return {} if step else dict(self.facts)


def _chosen(card: Family, what: str, given: str | None, known: tuple[str, ...]) -> str:
    if given is None:
        return known[0]
    if given not in known:
        raise UserError(
            f"GAUGE/{card.env}-v0: unknown {what} {given!r}: choose from {', '.join(known)}"
        )
    return given
