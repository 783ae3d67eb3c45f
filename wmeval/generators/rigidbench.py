"""Sets of RigidBench clips from a manifest: parallel, resumable, sharded.

A clip is 49 frames at 24 frames/s of a still camera, with the state and the contacts of every
substep, depth and ids. A row's seed fixes its clip: number of workers, order, shards and
interruptions change no byte. Training rows never share a seed with the evaluation's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from wmeval.assets.cards import Library, library
from wmeval.datasets import sets
from wmeval.datasets.bundle_sets import write_bundle_of
from wmeval.datasets.clip import ClipActor, ClipFacts, with_facts
from wmeval.datasets.clips import write_clip
from wmeval.datasets.location import locate
from wmeval.datasets.materialize import chosen, materialized
from wmeval.datasets.rollout import Rollout
from wmeval.datasets.sets import SetKind
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record
from wmeval.envs.rigidbench import tasks
from wmeval.envs.rigidbench.physics import FPS, physics_mode
from wmeval.envs.rigidbench.rows import Row
from wmeval.envs.rigidbench.sample import Sample
from wmeval.envs.rigidbench.task_env import RigidBenchTask
from wmeval.errors import UserError
from wmeval.generators.making import Made, Progress, kept_environment, make_set, needs_of
from wmeval.generators.manifest import (
    evaluation_manifest,
    held_back_rows,
    published_seeds,
    read_manifest,
    refuse_evaluation_seeds,
    training_manifest,
)
from wmeval.jobs.ledger import checksum
from wmeval.sim.engines import engine_info
from wmeval.sim.render import RENDERERS

EVALUATION, TRAINING = "eval", "train"
"""Names of our own manifests."""
PLAN = "clip"
"""Nothing is done, for the length of a clip."""
FORMATS: dict[str, SetKind] = {"store": sets.CLIPS, "bundle": sets.BUNDLES}
_CLASS_OF: dict[str, type[RigidBenchTask]] = {
    env.TASK: env
    for env in (getattr(tasks, name) for name in tasks.__all__)
    if issubclass(env, RigidBenchTask)
}
ENVIRONMENT_OF: dict[str, str] = {task: env.ID for task, env in _CLASS_OF.items()}
"""Environment of each task."""
MAX_BYTES = 3 << 30
"""Memory beyond which a worker is replaced after its clip."""
RETRIES = 1


@dataclass(frozen=True)
class Quality:
    """What a quality preset stands for.

    Attributes:
        name: as the set records it.
        width: of the pictures [px].
        height: of the pictures [px].
        layers: kept without loss, beside the video.
        renderer_options: keyword arguments, by renderer.
        summary: one line.
    """

    name: str
    width: int
    height: int
    layers: tuple[str, ...]
    renderer_options: Mapping[str, Mapping[str, Any]] = field(
        default_factory=lambda: MappingProxyType({})
    )
    summary: str = ""


QUALITIES: dict[str, Quality] = {
    row.name: row
    for row in (
        Quality(
            name="draft",
            width=640,
            height=352,
            layers=("depth", "ids"),
            renderer_options={"cycles": {"preset": "draft"}},
            summary="a quarter of the pixels; colour in the video only",
        ),
        Quality(
            name="preview",
            width=960,
            height=528,
            layers=("depth", "ids"),
            renderer_options={"cycles": {"preset": "preview"}},
            summary="half the pixels; colour in the video only",
        ),
        Quality(
            name="paper",
            width=1280,
            height=704,
            layers=("rgb", "depth", "ids"),
            renderer_options={"raster": {"texture_size": 1024}, "cycles": {"preset": "paper"}},
            summary="the published size and settings; colour without loss, too",
        ),
    )
}
"""Sizes and Cycles' samples; "paper" is RigidBench's Table 7."""


def generate_rigidbench(
    manifest: str | Path = EVALUATION,
    out: str | Path = "clips",
    *,
    quality: str = "draft",
    renderer: str = "raster",
    physics: str = "bullet",
    format: str = "store",
    materialize: Sequence[str] = (),
    exr: bool = False,
    seed: int = 0,
    limit: int | None = None,
    tasks: Sequence[str] = (),
    each: int | None = None,
    assets: str | Path | None = None,
    hold_back: Sequence[str | Path] = (),
    width: int | None = None,
    height: int | None = None,
    workers: int | None = None,
    executor: str = "local",
    ray_address: str | None = None,
    shard: str | tuple[int, int] | None = None,
    timeout: float | None = None,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Made:
    """Make a set of clips, or go on with one that was interrupted.

    Args:
        manifest: "eval" or "train", our own; or a file in the published form.
        out: folder or fsspec URL of the set; a folder for bundles.
        quality: row of `QUALITIES`.
        renderer: row of `wmeval.sim.render.RENDERERS`.
        physics: row of `wmeval.envs.rigidbench.physics.PHYSICS`.
        format: "store" (`wmeval.datasets.clips`), or "bundle": the published files of each clip.
        materialize: labels to store that readers derive otherwise, of
            `wmeval.datasets.materialize.NAMES`, or "all".
        exr: bundles with EXR streams of object index and depth, too (the published Table 8).
        seed: of our own manifests.
        limit: only the first so many rows; the set may be given more later.
        tasks: only rows of these tasks; none: all.
        each: only the first so many rows of each task: a small set of all of them.
        assets: folder of a user's own cards, which replace the built-in ones of their ids.
        hold_back: manifests, or suites made of them, whose seeds no training row may have, beside
            our own evaluation's and the published one's.
        width: of the pictures [px]; default: the quality's.
        height: of the pictures [px]; default: the quality's.
        workers: processes; None: one per core; 0: none but this one.
        executor: "local" or "ray": where they run.
        ray_address: of a Ray cluster to join; None: ``RAY_ADDRESS``, else one is started here.
        shard: "i/n": only the rows i, i + n, ...; join with `set_runs.merge_set`.
        timeout: wall time [s] after which a clip is given up.
        overwrite: forget the set that is there.
        progress: see `wmeval.generators.making.Progress`.

    Returns:
        What was made. A failing clip is tried twice, recorded in ``failed/``, and skipped.

    Raises:
        UserError: an unknown name, a wrong card or manifest, an evaluation seed in the training,
            an engine or renderer that is not installed, something else is there already, another
            run writes there, the disk is full, or no clip can be made as asked.
    """
    place = locate(out)
    cards = library(assets)
    preset = chosen_quality(quality, width, height)
    rows = rows_of(manifest, cards, seed=seed, tasks=tasks, each=each, hold_back=hold_back)
    asked = rows if limit is None else rows[:limit]
    if limit is not None and limit < 1:
        raise UserError(f"limit = {limit}: give at least 1")
    kind = _format(format)
    if kind == sets.BUNDLES and place.path is None:
        raise UserError(
            f"{place.url}: bundles are folders of files: give a folder, or format store"
        )
    if exr and kind != sets.BUNDLES:
        raise UserError(
            "EXR streams are files of a bundle: ask for format bundle, or leave exr out"
        )
    _refuse_absent(renderer, physics)
    labels = chosen(materialize)
    own = manifest in (EVALUATION, TRAINING)
    job = {
        kind.samples: len(asked),
        "maker": "rigidbench",
        "manifest": str(manifest) if own else "file",
        "seed": seed if own else None,
        "manifest_sha256": checksum([row.model_dump(mode="json") for row in rows]),
        "cards_sha256": cards_digest(cards),
        "tasks": list(tasks),
        **({} if each is None else {"each": each}),
        "quality": quality,
        "renderer": renderer,
        "renderer_options": dict(preset.renderer_options.get(renderer, {})),
        "physics": physics,
        "width": preset.width,
        "height": preset.height,
        "layers": list(preset.layers),
        **({"materialize": list(labels)} if labels else {}),
        **({"exr": True} if exr else {}),
    }
    make = partial(_clip, job, place.url, kind, None if assets is None else str(assets))
    return make_set(
        place,
        job,
        kind,
        make,
        [(i, row.model_dump(mode="json")) for i, row in enumerate(asked)],
        shard=shard,
        workers=workers,
        executor=executor,
        ray_address=ray_address,
        needs=needs_of(job),
        timeout=timeout,
        max_bytes=MAX_BYTES,
        order=_room,
        retries=RETRIES,
        overwrite=overwrite,
        progress=progress,
    )


# --- what is asked ------------------------------------------------------------------------------


def chosen_quality(name: str, width: int | None = None, height: int | None = None) -> Quality:
    """A row of `QUALITIES`, at another size where one is given.

    Raises:
        UserError: no such row.
    """
    if name not in QUALITIES:
        raise UserError(f"unknown quality {name!r}: choose from {', '.join(QUALITIES)}")
    preset = QUALITIES[name]
    return replace(preset, width=width or preset.width, height=height or preset.height)


def rows_of(
    manifest: str | Path,
    cards: Library,
    *,
    seed: int = 0,
    tasks: Sequence[str] = (),
    each: int | None = None,
    hold_back: Sequence[str | Path] = (),
) -> tuple[Row, ...]:
    """The rows that a manifest asks for.

    Args:
        manifest: "eval", "train" or a file.
        cards: all of them.
        seed: of our own manifests.
        tasks: only these; none: all.
        each: only the first so many rows of each task; None: all.
        hold_back: manifests, or suites made of them, whose seeds no training row may have.

    Raises:
        UserError: an unknown task or name, a wrong file, or a training row with a held back seed.
    """
    unknown = [task for task in tasks if task not in ENVIRONMENT_OF]
    if unknown:
        raise UserError(f"unknown task {unknown[0]!r}: choose from {', '.join(ENVIRONMENT_OF)}")
    held = {row.seed for s in {0, seed} for row in evaluation_manifest(cards, s)}
    held |= published_seeds()
    held |= {row.seed for path in hold_back for row in held_back_rows(path, cards)}
    if manifest == EVALUATION:
        rows = evaluation_manifest(cards, seed)
    elif manifest == TRAINING:
        rows = training_manifest(cards, seed, held_back=held)
    else:
        rows = read_manifest(manifest, cards)
    refuse_evaluation_seeds(rows, held)
    chosen = tuple(row for row in rows if not tasks or row.task_type in tasks)
    if not chosen:
        raise UserError(f"manifest {manifest}: no row of {', '.join(tasks)}")
    if each is not None:
        if each < 1:
            raise UserError(f"each = {each}: give at least 1")
        seen = Counter[str]()
        few = []
        for row in chosen:
            seen[row.task_type] += 1
            if seen[row.task_type] <= each:
                few.append(row)
        chosen = tuple(few)
    strange = next((r for r in chosen if r.task_type not in ENVIRONMENT_OF), None)
    if strange is not None:
        raise UserError(
            f"sample {strange.sample_id!r}: no environment of task {strange.task_type!r}: choose "
            f"from {', '.join(ENVIRONMENT_OF)}"
        )
    for task in dict.fromkeys(row.task_type for row in chosen):
        _CLASS_OF[task].check_card(cards.tasks[task])
    return chosen


def cards_digest(cards: Library) -> str:
    """Sha256 of all cards and of the files that they name: what a row means.

    Raises:
        UserError: a file is not there.
    """
    return checksum(cards.document())


def _format(name: str) -> SetKind:
    if name not in FORMATS:
        raise UserError(f"unknown format {name!r}: choose from {', '.join(FORMATS)}")
    return FORMATS[name]


def _refuse_absent(renderer: str, physics: str) -> None:
    """Say at once what every clip would stumble over."""
    if renderer not in RENDERERS:
        raise UserError(f"no renderer {renderer!r}: choose from {', '.join(RENDERERS)}")
    engine = physics_mode(physics).engine
    engine_info(engine)
    if engine == "blender" or renderer == "cycles":
        from wmeval.sim.blender_worker import blender_python

        blender_python()


# --- one clip -----------------------------------------------------------------------------------


def _room(item: tuple[int, Mapping[str, Any]]) -> tuple[str, str]:
    """What clips share that a process keeps: their room's meshes and textures, an environment."""
    return item[1]["scene_id"], item[1]["task_type"]


def _clip(
    job: Mapping[str, Any],
    url: str,
    kind: SetKind,
    assets: str | None,
    item: tuple[int, Mapping[str, Any]],
) -> int:
    """Make one clip: simulate, draw, write, and last its row."""
    number, document = item
    row = Row.model_validate(document)
    rollout = materialized(clip_of(row, job, assets), job.get("materialize", ()))
    if rollout.metadata["cards_sha256"] != job["cards_sha256"]:
        raise UserError(f"{assets}: a card or its file changed meanwhile: start the set anew")
    if kind == sets.BUNDLES:
        write_bundle_of(url, number, rollout, exr=job.get("exr", False))
    else:
        assert rollout.frames is not None
        kept = tuple(n for n in rollout.frames.layers if n != "rgb" or n in job["layers"])
        write_clip(url, number, rollout, layers=kept)
    return number


def clip_of(row: Row, job: Mapping[str, Any], assets: str | None = None) -> Rollout:
    """The clip of a row, in memory.

    Args:
        row: of a manifest.
        job: ``width``, ``height``, ``layers``, ``physics``, ``renderer``, ``renderer_options``.
        assets: folder of a user's own cards.

    Raises:
        UserError: the row has no layout that fits, or the engine or renderer is not there.
    """
    env = environment_of(row.task_type, job, assets)
    options = {"row": row.model_dump(mode="json")}
    layers = ("rgb", *(name for name in job["layers"] if name != "rgb"))
    play = partial(
        record, env, plan=load_plan(env.ID, PLAN), seed=row.seed, options=options, fps=FPS
    )
    rollout = play(layers=layers)
    if _shows_glass(env.sample):
        # Rare, and known only once the sample is drawn: all of ours are opaque.
        rollout = play(layers=(*layers, "glass_ids"))
    metadata = {
        **rollout.metadata,
        "sample": env.sample.metadata(width=env.width, height=env.height),
    }
    return with_facts(replace(rollout, metadata=metadata), facts_of(env.sample))


def environment_of(task: str, job: Mapping[str, Any], assets: str | None = None) -> RigidBenchTask:
    """The environment of a task, kept by this process."""
    env = kept_environment(
        ENVIRONMENT_OF[task],
        physics=job["physics"],
        assets=assets,
        width=job["width"],
        height=job["height"],
        renderer=job["renderer"],
        renderer_options=job["renderer_options"],
    )
    assert isinstance(env, RigidBenchTask)
    return env


def facts_of(sample: Sample) -> ClipFacts:
    """What a clip says of its sample."""
    return ClipFacts(
        **sample.row.model_dump(),
        actors=tuple(
            ClipActor(name=a.name, role=a.role, object=a.object, instance=a.instance)
            for a in sample.actors
        ),
        prompt=sample.prompt,
        full_prompt=sample.full_prompt,
        negative_prompt=sample.negative_prompt,
        physics=sample.physics.name,
        turn_deg=sample.turn_deg,
        azimuth_deg=sample.azimuth_deg,
        footprint_m=sample.layout.footprint,
        visible_share=sample.share,
    )


def _shows_glass(sample: Sample) -> bool:
    """Whether an actor has parts that ``ids`` looks through."""
    clear = {m.name for m in sample.scene.materials if m.opacity < 1}
    names = {actor.name for actor in sample.actors}
    return any(
        v.material in clear for b in sample.scene.bodies if b.name in names for v in b.visuals
    )
