"""Manifests of RigidBench clips: one row a sample, read as published or drawn from one seed.

Counts and conditions follow RigidBench, section A.2 and Tables 5 and 6. The two sides of the split
never share a sample's seed: training refuses every seed of our evaluation manifest and of the
published one.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from pydantic import ValidationError

from wmeval.assets.cards import Library
from wmeval.datasets.suite import read_suite
from wmeval.envs.rigidbench.rows import CONDITIONS, Row, Split, check_row
from wmeval.errors import UserError, first_problem, what_of

__all__ = [
    "CONDITIONS",
    "EVAL_PER_TASK",
    "TRAIN_COUNTS",
    "Row",
    "Split",
    "evaluation_manifest",
    "held_back_rows",
    "published_seeds",
    "read_manifest",
    "refuse_evaluation_seeds",
    "training_manifest",
]

TRAIN_COUNTS = {
    "free_fall": 1047,
    "bounce": 1000,
    "ball_chain": 953,
    "drop_into_cluster": 1000,
    "ramp_collision": 1000,
}
"""Training clips by task (section A.2)."""

EVAL_PER_TASK = 5
_TRAIN_KEY, _EVAL_KEY = 0, 1
_MAX_BYTES = 64 << 20


def read_manifest(path: str | Path, library: Library) -> tuple[Row, ...]:
    """A manifest in the published form: a JSON list of rows.

    Args:
        path: the file.
        library: cards that its names must have.

    Raises:
        UserError: unreadable, empty, a wrong field, an unknown name, or a sample id twice; the
            message names the row and the field.
    """
    file = Path(path)
    try:
        if file.stat().st_size > _MAX_BYTES:
            raise UserError(f"manifest {file} is larger than {_MAX_BYTES >> 20} MiB: is it one?")
        document = json.loads(file.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise UserError(f"manifest {file}: {what_of(error)}") from error
    if not isinstance(document, list) or not document:
        raise UserError(f"manifest {file}: give a JSON list of rows, at least one")
    rows = []
    for i, item in enumerate(document):
        try:
            row = Row.model_validate(item)
        except ValidationError as error:
            raise UserError(f"manifest {file}, row {i}: {first_problem(error)}") from error
        try:
            check_row(row, library)
        except UserError as error:
            raise UserError(
                f"manifest {file}, row {i}, sample {row.sample_id!r}: {error}"
            ) from error
        rows.append(row)
    twice = [name for name, n in Counter(r.sample_id for r in rows).items() if n > 1]
    if twice:
        raise UserError(f"manifest {file}: sample_id {twice[0]!r} twice: rename one")
    _refuse_alike(file, [row.sample_id for row in rows])
    return tuple(rows)


def held_back_rows(path: str | Path, library: Library) -> tuple[Row, ...]:
    """Rows whose seeds stay out of training: those of a manifest, or of a suite made of one.

    Args:
        path: the file, or the suite's folder.
        library: cards that the names of a file must have.

    Raises:
        UserError: unreadable, or a suite without such rows.
    """
    if not Path(path).is_dir():
        return read_manifest(path, library)
    options = [_options(entry.case) for entry in read_suite(path, verify=False).cases()]
    try:
        rows = tuple(Row.model_validate(o["row"]) for o in options if "row" in o)
    except ValidationError as error:
        raise UserError(f"suite {path}: {first_problem(error)}") from error
    if not rows:
        raise UserError(f"suite {path} is not made of a manifest: it has no rows to hold back")
    return rows


def _options(case: Mapping[str, Any]) -> Mapping[str, Any]:
    plan = case.get("plan")
    options = plan.get("reset_options") if isinstance(plan, Mapping) else None
    return options if isinstance(options, Mapping) else {}


def _refuse_alike(file: Path, names: Sequence[str]) -> None:
    """Folders of samples are named after them, and some disks do not tell cases apart."""
    known: dict[str, str] = {}
    for name in names:
        other = known.setdefault(name.casefold(), name)
        if other != name:
            raise UserError(
                f"manifest {file}: sample_id {other!r} and {name!r} differ in case alone: rename "
                "one"
            )


def published_seeds() -> frozenset[int]:
    """Seeds of the published evaluation's samples."""
    file = files("wmeval.assets").joinpath("rigidbench/published_evaluation.yaml")
    return frozenset(yaml.safe_load(file.read_text("utf-8"))["seeds"])


def evaluation_manifest(library: Library, seed: int = 0) -> tuple[Row, ...]:
    """Our own evaluation rows: every condition, five samples a task.

    Args:
        library: all cards.
        seed: one seed fixes all rows.
    """
    rng = _rng(seed, _EVAL_KEY)
    planned: list[tuple[Split, str, str, tuple[str, ...]]] = []
    for split, settings, objects in CONDITIONS:
        scenes = getattr(library.splits, settings).scenes
        for task in library.splits.tasks:
            drawn = rng.choice(scenes, EVAL_PER_TASK).tolist()
            allowed = getattr(library.splits, objects).objects
            planned += [(split, task, scene, allowed) for scene in drawn]
    return _rows(planned, library, rng, frozenset())


def training_manifest(
    library: Library, seed: int = 0, *, held_back: Collection[int] = ()
) -> tuple[Row, ...]:
    """Our own training rows with the published counts: 5,000 clips, 625 a setting.

    Args:
        library: all cards.
        seed: one seed fixes all rows.
        held_back: seeds of evaluation samples, which no row gets; the published ones and those of
            `evaluation_manifest` under the same seed never occur.
    """
    rng = _rng(seed, _TRAIN_KEY)
    train = library.splits.train
    tasks = [task for task, count in TRAIN_COUNTS.items() for _ in range(count)]
    each, rest = divmod(len(tasks), len(train.scenes))
    scenes = [s for i, s in enumerate(train.scenes) for _ in range(each + (i < rest))]
    order = rng.permutation(len(tasks)).tolist()
    planned: list[tuple[Split, str, str, tuple[str, ...]]] = [
        ("train", tasks[i], scene, train.objects) for i, scene in zip(order, scenes, strict=True)
    ]
    mixed = [planned[i] for i in rng.permutation(len(planned)).tolist()]
    forbidden = {r.seed for r in evaluation_manifest(library, seed)}
    forbidden |= published_seeds() | set(held_back)
    return _rows(mixed, library, rng, forbidden)


def refuse_evaluation_seeds(rows: Sequence[Row], held_back: Collection[int]) -> None:
    """Keep training off the evaluation's samples.

    Raises:
        UserError: a training row has the seed of an evaluation sample; names both.
    """
    forbidden = set(held_back)
    for row in rows:
        if row.split == "train" and row.seed in forbidden:
            raise UserError(
                f"training sample {row.sample_id!r} has seed {row.seed}, which belongs to the "
                "evaluation: draw the training rows with another seed"
            )


def _rng(seed: int, key: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed, spawn_key=(key,))))


def _rows(
    planned: Sequence[tuple[Split, str, str, tuple[str, ...]]],
    library: Library,
    rng: np.random.Generator,
    forbidden: Collection[int],
) -> tuple[Row, ...]:
    used = set(forbidden)
    rows = []
    for i, (split, task, scene, objects) in enumerate(planned):
        surfaces = tuple(library.settings[scene].surfaces)
        surface = surfaces[int(rng.integers(len(surfaces)))]
        number = int(rng.integers(2**31))
        while number in used:
            number = int(rng.integers(2**31))
        used.add(number)
        row = Row(
            sample_id=f"{i:05d}",
            scene_id=scene,
            task_type=task,
            surface_name=surface,
            seed=number,
            split=split,
            objects=objects,
        )
        rows.append(row)
    return tuple(rows)
