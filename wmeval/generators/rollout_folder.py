"""One recorded episode as a folder: rollout.h5, video.mp4, summary.json, config.yaml."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import wmeval
from wmeval.clock import exact
from wmeval.datasets.checksums import write_checksums
from wmeval.datasets.rollout import Rollout, write_hdf5
from wmeval.datasets.validate import validate
from wmeval.datasets.video import write_mp4
from wmeval.envs import environment_row, make_environment
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record
from wmeval.errors import UserError
from wmeval.jobs.atomic import atomic_dir
from wmeval.layers import layers_of

FORMAT = "wmeval-rollout-folder/1"


@dataclass(frozen=True)
class RolloutConfig:
    """Everything that makes one rollout folder again.

    Attributes:
        env_id: environment.
        plan: name of a plan card of the environment.
        seed: scene seed.
        engine: row of the table of engines.
        width, height: picture size [px].
        layers: picture layers kept without loss in rollout.h5; colour always goes to video.mp4.
        view: camera.
        fps: frames per second, exact.
        max_steps: step limit; None keeps the plan's length.
        env_kwargs: further constructor arguments of the environment.
    """

    env_id: str
    plan: str
    seed: int = 0
    engine: str = "bullet"
    width: int = 640
    height: int = 352
    layers: tuple[str, ...] = ("depth", "ids")
    view: str = "follow"
    fps: str = "24"
    max_steps: int | None = None
    env_kwargs: Mapping[str, Any] | None = None

    def document(self) -> dict[str, Any]:
        """The resolved configuration, as config.yaml holds it."""
        return {
            "format": FORMAT,
            "wmeval": wmeval.__version__,
            "command": "rollout",
            **{k: v for k, v in self.__dict__.items() if k not in ("layers", "env_kwargs")},
            "layers": list(self.layers),
            "env_kwargs": dict(self.env_kwargs or {}),
        }

    @classmethod
    def from_document(cls, document: Mapping[str, Any], where: str) -> RolloutConfig:
        """The inverse of `document`.

        Raises:
            UserError: not a configuration of a rollout.
        """
        values = {k: v for k, v in document.items() if k not in ("format", "wmeval", "command")}
        if document.get("format") != FORMAT or set(values) - set(cls.__dataclass_fields__):
            raise UserError(f"{where} is not the configuration of a rollout ({FORMAT})")
        return cls(**{**values, "layers": tuple(values.get("layers", ()))})


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
        UserError: bad configuration, or ``out`` is taken.
    """
    out = Path(out)
    text = yaml.safe_dump(config.document(), sort_keys=False)
    if out.exists() and not overwrite and _same(out, text):
        problems = validate(out)
        if problems:
            raise UserError(f"{out}: {problems[0]}; run again with --overwrite")
        return RolloutFolder(out, json.loads((out / "summary.json").read_text()), True)
    if out.exists() and not overwrite and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"{out} holds something else; choose another folder or pass --overwrite")
    row = environment_row(config.env_id)
    kept = tuple(layer.name for layer in layers_of(config.layers))
    plan = load_plan(row.id, config.plan)
    env = make_environment(
        row.id,
        engine=config.engine,
        width=config.width,
        height=config.height,
        **dict(config.env_kwargs or {}),
    )
    try:
        rollout = record(
            env,
            plan=plan,
            seed=config.seed,
            layers=("rgb", *(k for k in kept if k not in ("rgb", "flow"))),
            view=config.view,
            fps=exact(config.fps),
            max_steps=config.max_steps,
        )
    finally:
        env.close()
    summary = summary_of(rollout)
    assert rollout.frames is not None
    # An empty folder that stands there is as good as none.
    with atomic_dir(out, overwrite=overwrite or out.exists()) as folder:
        write_hdf5(rollout, folder / "rollout.h5", layers=kept)
        write_mp4(folder / "video.mp4", rollout.frames.layers["rgb"], exact(config.fps))
        (folder / "summary.json").write_text(json.dumps(summary, indent=2) + "\n")
        (folder / "config.yaml").write_text(text)
        write_checksums(folder)
    return RolloutFolder(out, summary, False)


def _same(out: Path, text: str) -> bool:
    try:
        return (out / "config.yaml").read_text() == text
    except OSError:
        return False
