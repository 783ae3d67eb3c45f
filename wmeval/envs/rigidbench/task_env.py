"""What the five task environments share: a sample is drawn at reset, then physics runs alone."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, TypeVar, Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue, ValidationError

from wmeval.assets.cards import Library, TaskCard, library
from wmeval.envs.base import Composition, EnvOptions, Observation, WorldEnv
from wmeval.envs.rigidbench.physics import PHYSICS, physics_mode
from wmeval.envs.rigidbench.rows import CONDITIONS, SIDES, Row, draw_row
from wmeval.envs.rigidbench.sample import Sample, draw_sample
from wmeval.errors import UserError, first_problem
from wmeval.jobs.ledger import checksum
from wmeval.scene import Card, Scene
from wmeval.sim.protocol import StateView

SLOT_WIDTH = 13
"""Numbers of an actor: position 3, quaternion ``wxyz`` 4, linear 3 and angular velocity 3."""

_C = TypeVar("_C", bound=Card)
_BOUNDS = [100.0] * 3 + [1.0] * 4 + [100.0] * 3 + [2000.0] * 3


class RigidBenchTask(WorldEnv):
    """Base of the five tasks.

    Args:
        physics: row of `wmeval.envs.rigidbench.physics.PHYSICS`; default: the first one of the
            engine.
        assets: folder of a user's own cards, which replace the built-in ones of their ids.
        **common: see `WorldEnv`.

    Raises:
        UserError: an unknown physics mode, or one of another engine.
    """

    TASK: ClassVar[str]
    """Id of the task's card."""
    SLOTS: ClassVar[tuple[str, ...]]
    """Names of the actors, in the order of the observation and of their instances."""
    OPTIONS = {  # noqa: RUF012
        "row": "a whole row of a manifest, as published; no other option of the sample beside it",
        "setting": "id of the setting (room); default: drawn from the split's",
        "surface": "name of its support; default: drawn",
        "objects": "ids that the task may draw from; default: the split's",
        "split": "train, in_distribution, ood-scene, ood-object or ood-both: where setting and "
        "objects are drawn from; default: train, of evaluation seeds one of the four others",
        "placements": "fields of the task's card to fix, by slot: {'falling': {'height_m': 0.6, "
        "'objects': ['apple']}}; a number, or an interval to draw from",
        "ramp_material": "material of the ramps; default: drawn",
        "turn_deg": "rotation of the task from the support's long axis [deg]; default: drawn",
        "azimuth_deg": "camera's azimuth about the task [deg]; at 0 it looks along the task's x "
        "axis, down the first ramp; default: searched",
    }
    tracked_roles = ()
    _MEMORY = ("_sample",)

    def __init__(
        self, *, physics: str | None = None, assets: str | None = None, **common: Unpack[EnvOptions]
    ) -> None:
        engine = common.get("engine")
        if physics is None:
            physics = next((p.name for p in PHYSICS.values() if p.engine == engine), "bullet")
        mode = physics_mode(physics)
        if engine not in (None, mode.engine):
            raise UserError(
                f"{self.ID}: physics {physics!r} runs on engine {mode.engine!r}, not on "
                f"{engine!r}: leave out one of the two"
            )
        self.physics = mode
        self.assets = assets
        self.library: Library = library(assets)
        self.check_card(self.library.tasks[self.TASK])
        self._sample: Sample | None = None
        common["engine"] = mode.engine
        super().__init__(**common)

    @classmethod
    def check_card(cls, card: TaskCard) -> None:
        """Whether a card makes the actors that are observed.

        Raises:
            UserError: it makes others.
        """
        if card.actors != cls.SLOTS:
            raise UserError(
                f"{cls.ID}: task card {card.id!r} puts {', '.join(card.actors)} there, the "
                f"environment observes {', '.join(cls.SLOTS)}: keep slots and counts"
            )

    @property
    def facts(self) -> Mapping[str, JsonValue]:
        """The cards that the episode is made from, with the files that they name."""
        return {"cards_sha256": checksum(self.library.document())}

    @property
    def sample(self) -> Sample:
        """This episode's sample.

        Raises:
            UserError: before the first reset.
        """
        if self._sample is None:
            raise UserError(f"{self.ID}: call reset() first")
        return self._sample

    def _settings(self) -> dict[str, JsonValue]:
        return {"physics": self.physics.name, "assets": self.assets}

    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        high = np.array(_BOUNDS * len(self.SLOTS), np.float32)
        return -high, high

    def _compose(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Composition:
        self._sample = sample = draw_sample(
            self._row(rng, options),
            self.library,
            width=self.width,
            height=self.height,
            physics=self.physics.name,
            task=self._card(options),
            turn_deg=self._angle("turn_deg", options),
            azimuth_deg=self._angle("azimuth_deg", options),
        )
        return Composition(sample.scene, sample.drivers, sample.rules, sample.meshes, sample.config)

    def _begin(self, scene: Scene) -> None:
        self._bodies = tuple(scene.index(name) for name in self.SLOTS)

    def _observe(self, now: StateView) -> Observation:
        flat: list[float] = []
        for body in self._bodies:
            position, quaternion = now.pose(body)
            linear, angular = now.velocity(body)
            flat += (*position, *quaternion, *linear, *angular)
        return np.array(flat, np.float32)

    def _side_info(self, now: StateView, step: int) -> Mapping[str, Any]:
        if step:
            return {}
        sample = self.sample
        return {
            "prompt": sample.full_prompt,
            "negative_prompt": sample.negative_prompt,
            "sample": sample.metadata(width=self.width, height=self.height),
        }

    # --- options ----------------------------------------------------------------------------------

    def _row(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Row:
        """The row of the episode: given, or drawn with the given fields in it."""
        fields = {"setting": "scene_id", "surface": "surface_name", "objects": "objects"}
        if "row" in options:
            stray = [name for name in (*fields, "split") if name in options]
            if stray:
                raise UserError(f"{self.ID}: option row says all: leave out {stray[0]}")
            row = self._validated(Row, options["row"], "row")
            if row.task_type != self.TASK:
                raise UserError(
                    f"{self.ID}: option row is of task {row.task_type!r}, not {self.TASK!r}"
                )
            return row
        split = options.get("split")
        if split is None:
            condition = CONDITIONS[int(rng.integers(len(CONDITIONS)))][0]
            split = condition if options.get("seed_space") == "evaluation" else "train"
        if not isinstance(split, str) or split not in SIDES:
            raise UserError(
                f"{self.ID}: unknown option split {split!r}: choose from {', '.join(SIDES)}"
            )
        row = draw_row(self.TASK, split, self.library, rng, setting=options.get("setting"))
        given = {fields[name]: options[name] for name in fields if name in options}
        return self._validated(Row, {**row.model_dump(), **given}, "setting, surface or objects")

    def _card(self, options: Mapping[str, Any]) -> TaskCard:
        """The task's card with what the options fix."""
        card = self.library.tasks[self.TASK]
        fixed = options.get("placements", {})
        slots = [p.slot for p in card.placements]
        if not isinstance(fixed, Mapping) or not all(
            isinstance(f, Mapping) for f in fixed.values()
        ):
            raise UserError(f"{self.ID}: option placements: give {{slot: {{field: value}}}}")
        unknown = [slot for slot in fixed if slot not in slots]
        if unknown:
            raise UserError(
                f"{self.ID}: option placements: no slot {unknown[0]!r}: choose from "
                f"{', '.join(slots)}"
            )
        document = card.model_dump()
        for placement in document["placements"]:
            for name, value in fixed.get(placement["slot"], {}).items():
                number = isinstance(value, int | float) and not isinstance(value, bool)
                interval = name.endswith("_m") and number
                placement[name] = (value, value) if interval else value
        material = options.get("ramp_material")
        if material is not None:
            if not isinstance(material, str) or material not in card.ramp_materials:
                choices = ", ".join(card.ramp_materials) or "this task has no ramps"
                raise UserError(
                    f"{self.ID}: unknown option ramp_material {material!r}: choose from {choices}"
                )
            document["ramp_materials"] = (material,)
        fixed_card = self._validated(TaskCard, document, "placements")
        self.check_card(fixed_card)
        return fixed_card

    def _angle(self, name: str, options: Mapping[str, Any]) -> float | None:
        value = options.get(name)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) <= 3600:
            raise UserError(f"{self.ID}: option {name} = {value!r}: give an angle in degrees")
        return float(value)

    def _validated(self, model: type[_C], document: Any, option: str) -> _C:
        try:
            return model.model_validate(document)
        except ValidationError as error:
            raise UserError(f"{self.ID}: option {option}: {first_problem(error)}") from error
