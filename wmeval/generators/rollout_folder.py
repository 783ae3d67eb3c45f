"""One recorded episode as a folder: rollout.h5, video.mp4, summary.json, config.yaml."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import Field, JsonValue

import wmeval
from wmeval.datasets.checksums import write_checksums
from wmeval.datasets.rollout import FORMAT as STORE_FORMAT
from wmeval.datasets.rollout import Rollout, write_hdf5
from wmeval.datasets.validate import validate
from wmeval.datasets.video import write_mp4
from wmeval.envs import environment_row, make_environment
from wmeval.envs.base import WorldEnv
from wmeval.envs.model import validated
from wmeval.envs.plans import load_plan
from wmeval.envs.policies import CLOSED_LOOP, make_policy
from wmeval.envs.record import record
from wmeval.errors import UserError
from wmeval.jobs.atomic import FolderKind, atomic_dir, claim
from wmeval.layers import stored_layers
from wmeval.scene import Card

FORMAT = "wmeval-rollout-folder/1"
ROLLOUT_FOLDER = FolderKind(
    files=r"rollout\.h5|video\.mp4|summary\.json|config\.yaml|SHA256SUMS",
    marks={r"config\.yaml": FORMAT, r"rollout\.h5": STORE_FORMAT},
)


class RolloutConfig(Card):
    """Everything that makes one rollout folder again.

    Attributes:
        env_id: environment.
        plan: name of a plan card of the environment; "" where a policy acts.
        policy: name of a closed-loop policy; "" where a plan is followed.
        seed: scene seed.
        engine: row of the table of engines; None is the environment's own.
        width, height: picture size [px].
        view: camera; "" is the plan's, else the environment's own.
        fps: frames per second, exact.
        max_steps: step limit; None keeps the plan's length.
        layers: picture layers kept without loss in rollout.h5; colour always goes to video.mp4.
        env_kwargs: further constructor arguments of the environment.
    """

    env_id: str
    plan: str = ""
    policy: str = ""
    seed: int = Field(default=0, ge=0)
    engine: str | None = None
    width: int = Field(default=640, ge=16, le=8192)
    height: int = Field(default=352, ge=16, le=8192)
    view: str = ""
    fps: str = "24"
    max_steps: int | None = Field(default=None, ge=1)
    layers: tuple[str, ...] = ("depth", "ids")
    env_kwargs: dict[str, JsonValue] = Field(default_factory=dict)

    def resolved(self) -> RolloutConfig:
        """With the environment's own engine and the plan's view where none is named.

        Raises:
            UserError: no such environment, plan or policy; neither or both of plan and policy.
        """
        row = environment_row(self.env_id)
        if bool(self.plan) == bool(self.policy):
            raise UserError(f"rollout of {row.id}: give a plan or a policy, one of them")
        if self.policy and self.policy not in CLOSED_LOOP:
            known = ", ".join(CLOSED_LOOP)
            raise UserError(f"unknown policy {self.policy!r}: choose from {known}")
        planned = load_plan(row.id, self.plan).reset_options.get("view") if self.plan else None
        view = self.view or planned or row.view
        return self.model_copy(update={"engine": self.engine or row.engines[0], "view": view})

    def document(self) -> dict[str, Any]:
        """The resolved configuration, as config.yaml holds it."""
        return {
            "format": FORMAT,
            "wmeval": wmeval.__version__,
            "command": "rollout",
            **{
                name: value
                for name, value in self.model_dump(mode="json").items()
                if value or name not in ("plan", "policy")
            },
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any], where: str) -> RolloutConfig:
        """The inverse of `document`.

        Raises:
            UserError: not a configuration of a rollout.
        """
        values = {k: v for k, v in document.items() if k not in ("format", "wmeval", "command")}
        if document.get("format") != FORMAT:
            raise UserError(f"{where} is not the configuration of a rollout ({FORMAT})")
        return validated(cls, values, where=where)


@dataclass(frozen=True)
class RolloutFolder:
    """What `make_rollout_folder` left.

    Attributes:
        path: the folder.
        summary: what summary.json holds.
        reused: a complete folder of the same configuration was there already.
    """

    path: Path
    summary: Mapping[str, Any]
    reused: bool


def summary_of(rollout: Rollout) -> dict[str, Any]:
    """The facts of an episode that a person or a script asks for first."""
    log = rollout.log
    first, last = log.state.position[0], log.state.position[-1]
    moved = np.linalg.norm(last - first, axis=-1)
    frames = rollout.frames
    return {
        "env_id": rollout.metadata["env_id"],
        "seed": rollout.metadata["seed"],
        "steps": len(rollout),
        "duration_s": float(log.state.times[-1]),
        "states": len(log),
        "contacts": len(log.contacts),
        "frames": 0 if frames is None else len(frames),
        "terminated": bool(rollout.terminated.any()),
        "truncated": bool(rollout.truncated.any()),
        "shape": rollout.metadata.get("shape"),
        "events": [
            {"kind": e.kind, "time_s": e.time, "body_a": e.body_a, "body_b": e.body_b}
            for e in log.events
            if e.kind != "contact"
        ],
        "contact_events": sum(e.kind == "contact" for e in log.events),
        "moved_m": {
            name: round(float(d), 6)
            for name, d in zip(log.state.bodies, moved, strict=True)
            if d > 0.01
        },
        "sha256": rollout.sha256(),
    }


def make_rollout_folder(
    config: RolloutConfig, out: str | Path, *, overwrite: bool = False
) -> RolloutFolder:
    """Record an episode and write its folder, whole or not at all.

    A complete folder of the same configuration is validated and kept; anything else that stands
    there is refused unless ``overwrite``.

    Raises:
        UserError: bad configuration, or ``out`` is taken; the configuration is looked at first.
    """
    out, config = Path(out), config.resolved()
    text = yaml.safe_dump(config.document(), sort_keys=False)
    kept = stored_layers(config.layers)
    plan = load_plan(config.env_id, config.plan) if config.plan else None
    policy = make_policy(config.policy) if config.policy else None
    with closing(_environment(config)) as env, claim(out):
        fps = env.clock.frame_rate(config.fps)
        options = {"view": config.view}
        env.reset(seed=config.seed, options={**(plan.reset_options if plan else {}), **options})
        ROLLOUT_FOLDER.refuse_others(out)
        if not overwrite and out.is_dir() and any(out.iterdir()):
            if _same(out, text):
                return _reused(out)
            raise UserError(
                f"{out} holds a rollout of other settings; choose another folder or pass "
                "--overwrite"
            )
        rollout = record(
            env,
            plan=plan,
            policy=policy,
            seed=config.seed,
            options=options,
            layers=("rgb", *(name for name in kept if name != "rgb")),
            view=config.view,
            fps=fps,
            max_steps=config.max_steps,
        )
        summary = summary_of(rollout)
        assert rollout.frames is not None
        with atomic_dir(out, replaces=ROLLOUT_FOLDER if overwrite else None) as folder:
            write_hdf5(rollout, folder / "rollout.h5", layers=kept)
            write_mp4(folder / "video.mp4", rollout.frames.layers["rgb"], fps)
            (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
            (folder / "config.yaml").write_text(text)
            write_checksums(folder)
    return RolloutFolder(out, summary, False)


def _environment(config: RolloutConfig) -> WorldEnv:
    own = {name: getattr(config, name) for name in ("engine", "width", "height")}
    for name in own:
        if name in config.env_kwargs:
            raise UserError(f"env_kwargs: {name!r} is a setting of its own; leave it out there")
    return make_environment(config.env_id, **own, **config.env_kwargs)


def _reused(out: Path) -> RolloutFolder:
    problems = validate(out)
    if problems:
        raise UserError(f"{out}: {problems[0]}; run again with --overwrite")
    return RolloutFolder(out, json.loads((out / "summary.json").read_text()), True)


def _same(out: Path, text: str) -> bool:
    try:
        return (out / "config.yaml").read_text() == text
    except (OSError, UnicodeDecodeError):
        return False
