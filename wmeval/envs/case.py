"""A case: one scene, one seed, one plan, one view; what a candidate is asked.

Cases draw their scenes from the evaluation family of seeds (its own spawn key), which no training
set may use: `refuse_evaluation` is what generators of training data call.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, JsonValue, field_validator, model_validator

from wmeval.conventions import intrinsics
from wmeval.envs import environment_row, make_environment, short_name
from wmeval.envs.adapters import Channels, channels_of
from wmeval.envs.base import EYES, WorldEnv, camera_name, motion_record
from wmeval.envs.camera_path import CameraPath
from wmeval.envs.model import Context, ModelSpec
from wmeval.errors import UserError
from wmeval.plan import ActionPlan
from wmeval.records import WorldLog
from wmeval.scene import Card

EVALUATION = "evaluation"
"""The family of seeds that cases use: `env.reset(options={"seed_space": "evaluation"})`."""


def refuse_evaluation(options: Mapping[str, Any] | None, *, what: str) -> None:
    """Refuse to make training data of the scenes that candidates are judged on.

    Args:
        options: reset options about to be used.
        what: who asks, for the message.

    Raises:
        UserError: the options name the evaluation seeds.
    """
    if (options or {}).get("seed_space") == EVALUATION:
        raise UserError(
            f"{what}: seed_space 'evaluation' is kept for judging; training data takes the default"
        )


class Case(Card):
    """One case.

    Attributes:
        env_id: scene.
        env_kwargs: constructor arguments of the environment, as JSON values.
        scene_seed: seed of the scene within the evaluation family.
            A manifest's row in the plan's reset options says all of the scene by itself.
        plan: what is done; its prompts are what the candidate is told.
        view: camera of the scene that the candidate sees; default: the plan's, else the
            environment's.
        width, height: size of the reference's pictures [px].
    """

    env_id: str
    env_kwargs: dict[str, JsonValue] = Field(default_factory=dict)
    scene_seed: int = Field(default=0, ge=0, lt=2**63)
    plan: ActionPlan
    view: str = ""
    width: int = Field(default=640, ge=16, le=8192)
    height: int = Field(default=352, ge=16, le=8192)

    @field_validator("env_id")
    @classmethod
    def _full_id(cls, value: str) -> str:
        return environment_row(value).id

    @model_validator(mode="after")
    def _own_view(self) -> Case:
        if not self.view:
            view = self.plan.reset_options.get("view") or environment_row(self.env_id).view
            object.__setattr__(self, "view", str(view))
        return self

    @property
    def case_id(self) -> str:
        """Name of the case, safe as a folder: scene, plan, seed, view; kwargs as a short hash.

        Of a manifest's row: its sample id.
        """
        row = self.plan.reset_options.get("row")
        sample = row.get("sample_id") if isinstance(row, Mapping) else None
        if isinstance(sample, str) and re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", sample):
            return sample
        parts = [short_name(self.env_id), self.plan.name, f"s{self.scene_seed:03d}", self.view]
        if self.env_kwargs:
            text = json.dumps(self.env_kwargs, sort_keys=True)
            parts.append(hashlib.sha256(text.encode()).hexdigest()[:6])
        return "-".join(re.sub(r"[^A-Za-z0-9_.]", "_", p) for p in parts)

    @property
    def options(self) -> dict[str, Any]:
        """Reset options: the plan's, the view, the evaluation seeds."""
        return {**self.plan.reset_options, "view": self.view, "seed_space": EVALUATION}

    def make(self) -> WorldEnv:
        """The environment, not yet reset."""
        # Candidates are shown pictures drawn for them; the environment's own would be for nobody.
        own = {"width": self.width, "height": self.height, "observation_mode": "vector"}
        kwargs: dict[str, Any] = {**own, **self.env_kwargs}
        return make_environment(self.env_id, **kwargs)

    def reset(self, env: WorldEnv) -> None:
        """Reset an environment that `make` made to the case's state 0."""
        env.reset(seed=self.scene_seed, options=self.options)

    @contextmanager
    def open(self) -> Iterator[WorldEnv]:
        """The environment at state 0; closed afterwards."""
        env = self.make()
        try:
            self.reset(env)
            yield env
        finally:
            env.close()

    def actions(self, env: WorldEnv) -> NDArray[np.float64]:
        """The plan's actions (T, A) on the environment's clock, at most its ``max_steps``."""
        period, branches = env.clock.control_period, env.row.branches
        return self.plan.actions(env.channels, period, branches=branches)[: env.max_steps]

    @property
    def camera_motion(self) -> dict[str, JsonValue] | None:
        """The camera regime that its plan asks for: name and legs; see `motion_record`."""
        name = self.options.get("camera_motion")
        return None if name is None else motion_record(str(name), self.view, self.view in EYES)

    def channels(self, env: WorldEnv, log: WorldLog | None = None) -> Channels:
        """What an adapter must know: the scene's channels, and the path of a regime's camera.

        Args:
            env: reset to this case.
            log: of the reference, whose camera is followed where a body takes it along; None: as
                long as nothing moves, it is known in closed form.
        """
        channels = channels_of(env)
        if channels.camera_path is None:
            return channels
        if log is not None:
            return self.followed(channels, log, self.actions(env))
        return dataclasses.replace(channels, idle=not self.actions(env).any())

    def followed(self, channels: Channels, log: WorldLog, actions: NDArray[Any]) -> Channels:
        """Channels with the camera's path in a reference's log, where a regime turns it.

        Args:
            channels: of the scene.
            log: of the reference.
            actions: (T, A) that it was driven with.
        """
        if self.camera_motion is None:
            return channels
        camera = log.cameras.camera(camera_name(self.view, log.cameras.names))
        path = CameraPath.of_log(log, camera)
        return dataclasses.replace(channels, camera_path=path, idle=not np.any(actions))

    def context(self, env: WorldEnv, spec: ModelSpec) -> Context:
        """What a model is given, drawn at its own size from the environment at state 0.

        Reference worlds are at rest before t = 0, so the frames before the seed frame equal it.
        """
        return live_context(
            env,
            spec,
            prompt=self.plan.prompt,
            negative_prompt=self.plan.negative_prompt,
            view=self.view,
        )


def live_context(
    env: WorldEnv,
    spec: ModelSpec,
    *,
    prompt: str = "",
    negative_prompt: str = "",
    view: str | None = None,
) -> Context:
    """Context of a freshly reset environment, drawn at the model's size."""
    frame = env.draw(("rgb",), view=view, width=spec.width, height=spec.height)["rgb"]
    fov_y = float(env.log.cameras.fov_y[-1, env.camera_index(view)])
    return Context(
        np.repeat(np.asarray(frame, np.uint8)[None], spec.context_length, axis=0),
        prompt,
        negative_prompt,
        intrinsics(fov_y, spec.width, spec.height),
        env.clock.control_period,
    )


def resized_context(
    seed_frame: NDArray[np.uint8],
    K: NDArray[np.float64],
    plan: ActionPlan,
    spec: ModelSpec,
    control_period: Fraction,
) -> Context:
    """Context from a stored seed frame, resized to the model's size by area averaging.

    Args:
        seed_frame: (H, W, 3) uint8.
        K: (3, 3) its intrinsics [px]; they are scaled with the picture, each axis by itself.
        plan: prompts.
        spec: the model's card.
        control_period: of the reference [s].
    """
    import cv2

    height, width = seed_frame.shape[:2]
    frame = seed_frame
    if (width, height) != (spec.width, spec.height):
        way = cv2.INTER_AREA if spec.width * spec.height < width * height else cv2.INTER_CUBIC
        frame = cv2.resize(seed_frame, (spec.width, spec.height), interpolation=way).astype(
            np.uint8
        )
    scale = np.diag([spec.width / width, spec.height / height, 1.0])
    return Context(
        np.repeat(frame[None], spec.context_length, axis=0),
        plan.prompt,
        plan.negative_prompt,
        scale @ K,
        control_period,
    )
