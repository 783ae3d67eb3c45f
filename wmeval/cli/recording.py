"""One reference rollout: `wmeval rollout` and `rerun`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
import yaml

from wmeval.cli.console import show
from wmeval.cli.options import (
    SIZED,
    EngineName,
    EnvId,
    Fps,
    MaxSteps,
    Out,
    Overwrite,
    Plan,
    Seed,
    Set,
    Size,
    View,
    joined,
    parse_settings,
    parse_size,
)
from wmeval.errors import UserError


def rollout(
    env_id: EnvId,
    out: Out,
    plan: Plan = "",
    policy: Annotated[
        str, typer.Option("--policy", help="Instead of a plan: random or explorer.")
    ] = "",
    seed: Seed = 0,
    engine: EngineName = None,
    size: Size = "640x352",
    layers: Annotated[
        list[str] | None,
        typer.Option(
            help="Layers kept without loss in rollout.h5, comma-separated; repeatable; default: "
            "depth,ids."
        ),
    ] = None,
    view: View = None,
    fps: Fps = "24",
    max_steps: MaxSteps = None,
    overwrite: Overwrite = False,
    settings: Set = None,
) -> None:
    """Record one reference rollout: rollout.h5, video.mp4, summary.json, config.yaml."""
    from wmeval.generators.rollout_folder import RolloutConfig, make_rollout_folder

    width, height = parse_size(size)
    config = RolloutConfig(
        env_id=env_id,
        plan=plan,
        policy=policy,
        seed=seed,
        engine=engine,
        width=width,
        height=height,
        layers=tuple(x for x in joined(layers, "depth,ids").split(",") if x),
        view=view or "",
        fps=fps,
        max_steps=max_steps,
        env_kwargs=parse_settings(settings, {**SIZED, "engine": "--engine NAME"}),
    )
    _report_rollout(make_rollout_folder(config, out, overwrite=overwrite))


def _report_rollout(done: Any) -> None:
    facts = done.summary
    show(
        f"{done.path}: {facts['duration_s']:.2f} s, {facts['states']} states, "
        f"{facts['frames']} frames, {facts['contacts']} contact points"
        + (f", shape {facts['shape']}" if facts.get("shape") else "")
        + (" (already complete)" if done.reused else "")
    )


def rerun(
    folder: Annotated[Path, typer.Argument(help="Folder that `wmeval rollout` left.")],
    out: Out,
    overwrite: Overwrite = False,
) -> None:
    """Make a rollout folder again from its config.yaml; equal versions give equal bytes."""
    from wmeval.generators.rollout_folder import RolloutConfig, make_rollout_folder

    path = folder / "config.yaml"
    if not path.is_file():
        what = "has no config.yaml" if folder.is_dir() else "is no folder"
        raise UserError(f"{folder} {what}: give a folder that `wmeval rollout` left")
    try:
        document = yaml.safe_load(path.read_text())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise UserError(f"{path} cannot be read as YAML: {error}") from error
    if not isinstance(document, dict):
        raise UserError(f"{path} holds no configuration")
    config = RolloutConfig.from_document(document, str(path))
    _report_rollout(make_rollout_folder(config, out, overwrite=overwrite))
