"""Cases of a manifest's rows: what a suite freezes of RigidBench's evaluation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from wmeval.assets.cards import library
from wmeval.envs.case import Case
from wmeval.envs.plans import load_plan
from wmeval.envs.rigidbench.prompts import NEGATIVE_PROMPT
from wmeval.envs.rigidbench.rows import Row
from wmeval.envs.rigidbench.sample import prompt_of
from wmeval.errors import UserError
from wmeval.generators.rigidbench import ENVIRONMENT_OF, EVALUATION, PLAN, TRAINING, rows_of


def cases_of_manifest(
    manifest: str | Path = EVALUATION,
    *,
    seed: int = 0,
    limit: int | None = None,
    tasks: Sequence[str] = (),
    assets: str | Path | None = None,
    view: str | None = None,
    width: int = 640,
    height: int = 352,
    max_steps: int | None = None,
    env_kwargs: Mapping[str, Any] | None = None,
) -> tuple[Case, ...]:
    """The cases of a manifest, one a row, called by its sample id.

    A case's world is, bit for bit, that of the clip which `generate_rigidbench` makes of the row;
    its prompts are the sample's.

    Args:
        manifest: "eval", our own; or a file of evaluation rows in the published form.
        seed: of our own manifest.
        limit: only the first so many rows.
        tasks: only rows of these tasks; none: all.
        assets: folder of a user's own cards, which replace the built-in ones of their ids.
        view: camera that candidates see; None: the sample's.
        width: of the pictures [px].
        height: of the pictures [px].
        max_steps: ends each case after so many actions; None: the length of a clip.
        env_kwargs: further arguments of the environments.

    Raises:
        UserError: a wrong manifest, a row of the training, or two rows of one task and seed.
    """
    if manifest == TRAINING:
        raise UserError("a suite judges: manifest train is for training; choose eval or a file")
    if limit is not None and limit < 1:
        raise UserError(f"limit = {limit}: give at least 1")
    cards = library(assets)
    rows = rows_of(manifest, cards, seed=seed, tasks=tasks)[:limit]
    _refuse(rows)
    kwargs = dict(env_kwargs or {})
    if assets is not None:
        kwargs["assets"] = str(assets)
    if max_steps is not None:
        kwargs["max_steps"] = max_steps
    return tuple(
        _case(row, prompt_of(row, cards), kwargs, view=view or "", width=width, height=height)
        for row in rows
    )


def _case(row: Row, prompt: str, kwargs: Mapping[str, Any], **shared: Any) -> Case:
    env_id = ENVIRONMENT_OF[row.task_type]
    plan = load_plan(env_id, PLAN)
    told = {
        "reset_options": {**plan.reset_options, "row": row.model_dump(mode="json")},
        "prompt": prompt,
        "negative_prompt": NEGATIVE_PROMPT,
    }
    return Case(
        env_id=env_id,
        env_kwargs=dict(kwargs),
        scene_seed=row.seed,
        plan=plan.model_copy(update=told),
        **shared,
    )


def _refuse(rows: Sequence[Row]) -> None:
    """Refuse what would not be one case each, or is not to be judged on."""
    known: dict[tuple[str, int], str] = {}
    for row in rows:
        if row.split == "train":
            raise UserError(
                f"sample {row.sample_id!r} is of the training: a suite judges; leave it out"
            )
        # Pairs tell the cases of an environment apart by their seeds.
        other = known.setdefault((row.task_type, row.seed), row.sample_id)
        if other != row.sample_id:
            raise UserError(
                f"samples {other!r} and {row.sample_id!r} of {row.task_type} have one seed, "
                f"{row.seed}: leave one out"
            )
