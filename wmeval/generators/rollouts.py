"""Action-labelled sets of rollouts of any environment: parallel, resumable, sharded.

Episode i of a set is made from seed ``seed0 + i`` of the *training* family of scene seeds. The
evaluation family has its own spawn key, and is refused here: what candidates are judged on cannot
get into their training data by accident. The same settings give the same bytes, whatever the number
of workers, the shards or the interruptions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from wmeval.clock import exact
from wmeval.datasets import sets, zarr_store
from wmeval.datasets.film import write_film
from wmeval.datasets.location import locate
from wmeval.datasets.rollout import Rollout, read, write_hdf5, write_zarr
from wmeval.envs import environment_row
from wmeval.envs.base import WorldEnv
from wmeval.envs.case import refuse_evaluation
from wmeval.envs.plans import load_plan, plans_of
from wmeval.envs.policies import CLOSED_LOOP, ReplayPolicy, make_policy
from wmeval.envs.record import record
from wmeval.errors import UserError
from wmeval.generators.making import Made, Progress, kept_environment, make_set, needs_of
from wmeval.layers import stored_layers

POLICIES = (*CLOSED_LOOP, "plan", "replay")
BACKENDS = {"hdf5": ".h5", "zarr": ".zarr"}


def generate_rollouts(
    env_id: str,
    policy: str = "random",
    episodes: int = 1,
    out: str | Path = "rollouts",
    *,
    plan: str | Sequence[str] | None = None,
    source: str | Path | None = None,
    seed0: int = 0,
    workers: int | None = None,
    size: tuple[int, int] | None = None,
    layers: str | Sequence[str] = (),
    video: bool = True,
    view: str | None = None,
    fps: Fraction | int | str | None = None,
    max_steps: int | None = None,
    backend: str = "hdf5",
    executor: str = "local",
    ray_address: str | None = None,
    shard: str | tuple[int, int] | None = None,
    overwrite: bool = False,
    env_kwargs: Mapping[str, Any] | None = None,
    options: Mapping[str, Any] | None = None,
    policy_kwargs: Mapping[str, Any] | None = None,
    timeout: float | None = None,
    progress: Progress | None = None,
) -> Made:
    """Make a set of rollouts, or go on with one that was interrupted.

    Args:
        env_id: environment.
        policy: "random" (smooth random actions), "explorer" (walks on and keeps out of the way,
            where the scene has a walker), "plan" (named plans, in turn), or "replay" (the
            actions, seeds and options of other rollouts, in this environment).
        episodes: how many.
        out: folder or fsspec URL of the set. A set of the same settings that is there is completed,
            what is damaged in it made again; it may be given more episodes.
        plan: names of plans for "plan"; None takes all that the environment has.
        source: a set, or a rollout, whose actions "replay" repeats; episode i repeats sample i.
        seed0: seed of episode 0; episode i has seed0 + i. "replay" takes the source's seeds.
        workers: processes; None: one per core; 0: none but this one (always so for ``memory://``).
        size: picture (width, height) [px]; default: the environment's.
        layers: picture layers to keep without loss.
        video: write an mp4 beside each rollout.
        view: camera; default: the plan's, else the environment's.
        fps: frame rate of layers and video; default: one frame per control period.
        max_steps: most actions of an episode.
        backend: "hdf5" or "zarr".
        executor: "local" or "ray": where they run.
        ray_address: of a Ray cluster to join; None: ``RAY_ADDRESS``, else one is started here.
        shard: "i/n": only the episodes i, i + n, ...; complete with `set_runs.merge_set`.
        overwrite: forget the set that is there.
        env_kwargs: constructor arguments of the environment.
        options: reset options for all episodes.
        policy_kwargs: arguments of the random policy (``scale``, ``correlation``, ``stop_after``,
            ``hold``), or of the explorer.
        timeout: wall time [s] after which an episode is given up.
        progress: called with (episodes done, episodes asked, what just ended or None at the start).

    Returns:
        What was made; a failed episode does not stop the others.

    Raises:
        UserError: unknown names, evaluation seeds, something else is there already, another run
            writes there, the disk is full, or no episode can be made as asked.
    """
    place = locate(out)
    job = _job(
        env_id=env_id,
        policy=policy,
        episodes=episodes,
        plan=plan,
        source=source,
        seed0=seed0,
        size=size,
        layers=layers,
        video=video,
        view=view,
        fps=fps,
        max_steps=max_steps,
        backend=backend,
        env_kwargs=env_kwargs,
        options=options,
        policy_kwargs=policy_kwargs,
    )
    return make_set(
        place,
        job,
        sets.ROLLOUTS,
        partial(_episode, job, place.url),
        range(episodes),
        shard=shard,
        workers=workers,
        executor=executor,
        ray_address=ray_address,
        needs=needs_of(job["env_kwargs"]),
        timeout=timeout,
        overwrite=overwrite,
        progress=progress,
    )


# --- the job ------------------------------------------------------------------------------------


def _job(
    *,
    env_id: str,
    policy: str,
    episodes: int,
    plan: str | Sequence[str] | None,
    source: str | Path | None,
    seed0: int,
    size: tuple[int, int] | None,
    layers: str | Sequence[str],
    video: bool,
    view: str | None,
    fps: Fraction | int | str | None,
    max_steps: int | None,
    backend: str,
    env_kwargs: Mapping[str, Any] | None,
    options: Mapping[str, Any] | None,
    policy_kwargs: Mapping[str, Any] | None,
) -> dict[str, Any]:
    row = environment_row(env_id)
    if policy not in POLICIES:
        raise UserError(f"unknown policy {policy!r}: choose from {', '.join(POLICIES)}.")
    if backend not in BACKENDS:
        raise UserError(f"unknown backend {backend!r}: choose from {', '.join(BACKENDS)}.")
    if episodes < 1 or seed0 < 0:
        raise UserError(f"needs episodes >= 1 and seed0 >= 0; got {episodes} and {seed0}.")
    refuse_evaluation(options, what="generate rollouts")
    if policy_kwargs and policy not in CLOSED_LOOP:
        raise UserError(f"policy {policy!r} takes no arguments; 'random' does.")
    if policy in CLOSED_LOOP:
        make_policy(policy, **dict(policy_kwargs or {}))
    if (source is not None) != (policy == "replay"):
        raise UserError("policy 'replay' needs source (a set or a rollout), others take none.")
    if plan is not None and policy != "plan":
        raise UserError(f"policy {policy!r} takes no plan; policy 'plan' does.")
    plans: tuple[str, ...] = ()
    if policy == "plan":
        if plan is None:
            plans = plans_of(row.id)
        else:
            plans = tuple(plan.split(",")) if isinstance(plan, str) else tuple(plan)
        for name in plans:
            refuse_evaluation(load_plan(row.id, name).reset_options, what=f"plan {name!r}")
    if source is not None:
        held = _source_count(str(source))
        if held < episodes:
            raise UserError(f"{source}: holds {held} rollouts, {episodes} episodes are asked for.")
        of = _source(str(source), 0).metadata.get("env_id")
        if of != row.id:
            raise UserError(f"{source}: holds rollouts of {of}; they cannot replay in {row.id}.")
    width, height = size or row.size
    return {
        "env_id": row.id,
        "env_kwargs": dict(env_kwargs or {}),
        "policy": policy,
        "policy_kwargs": dict(policy_kwargs or {}),
        "plans": list(plans),
        "source": None if source is None else str(source),
        "episodes": episodes,
        "seed0": seed0,
        "options": dict(options or {}),
        "width": width,
        "height": height,
        "layers": list(stored_layers(layers if isinstance(layers, str) else list(layers))),
        "video": video,
        "view": view,
        "fps": None if fps is None else str(exact(fps)),
        "max_steps": max_steps,
        "backend": backend,
    }


# --- one episode --------------------------------------------------------------------------------


def _environment(job: Mapping[str, Any]) -> WorldEnv:
    kwargs = {"width": job["width"], "height": job["height"], **job["env_kwargs"]}
    return kept_environment(job["env_id"], **kwargs)


def _episode(job: Mapping[str, Any], url: str, episode: int) -> int:
    """Make one sample: rollout, video, then its row."""
    place = locate(url)
    drawn = (*job["layers"], *(("rgb",) if job["video"] and "rgb" not in job["layers"] else ()))
    seed, options = job["seed0"] + episode, job["options"]
    if job["view"] is not None:
        options = {**options, "view": job["view"]}
    chosen: dict[str, Any] = {}
    if job["policy"] in CLOSED_LOOP:
        chosen = {"policy": make_policy(job["policy"], **job["policy_kwargs"])}
    elif job["policy"] == "plan":
        name = job["plans"][episode % len(job["plans"])]
        chosen = {"plan": load_plan(job["env_id"], name)}
    elif job["policy"] == "replay":
        model = _source(job["source"], episode)
        options = {**model.metadata.get("options", {}), **options}
        refuse_evaluation(options, what=f"{job['source']}")
        seed = int(model.metadata["seed"])
        chosen = {"policy": ReplayPolicy(model.actions)}
    rollout = record(
        _environment(job),
        **chosen,
        seed=seed,
        options=options,
        layers=drawn,
        view=job["view"],
        fps=job["fps"],
        max_steps=job["max_steps"],
    )
    name = sets.sample_name(episode)
    path = f"{sets.ROLLOUTS.samples}/{name}{BACKENDS[job['backend']]}"
    film = f"{sets.ROLLOUTS.samples}/{name}.mp4" if job["video"] else None
    kept = tuple(job["layers"])
    objects: dict[str, list[int | str]] = {}
    if job["backend"] == "zarr":
        zarr_store.remove_rest(place / path)
    write = {"hdf5": write_hdf5, "zarr": write_zarr}[job["backend"]]
    write(rollout, (place / path).url, layers=kept)
    if film is not None:
        assert rollout.frames is not None
        rate = 1 / rollout.clock.control_period if job["fps"] is None else exact(job["fps"])
        write_film(place / film, rollout.frames.layers["rgb"], rate)
    stored = f"{path}/{zarr_store.MANIFEST}" if job["backend"] == "zarr" else path
    for key in (stored, film):
        if key is not None:
            content = place.get(key, limit=None)
            assert content is not None
            objects[key] = sets.object_entry(content)
    row = {
        "format": sets.ROLLOUTS.format,
        "episode": episode,
        "seed": seed,
        "path": path,
        "video": film,
        "objects": objects,
        "steps": len(rollout),
        "frames": 0 if rollout.frames is None else len(rollout.frames),
        "return": float(rollout.rewards.sum()),
        "terminated": bool(rollout.terminated.any()),
        "truncated": bool(rollout.truncated.any()),
        "plan": rollout.metadata.get("plan", None) and rollout.metadata["plan"]["name"],
        "rollout_sha256": rollout.sha256(),
    }
    place.put(sets.row_key(episode), sets.sealed(row))
    return episode


# --- sources of replays -------------------------------------------------------------------------


def _source_count(source: str) -> int:
    if sets.kind_of(locate(source)) is not None:
        return len(sets.read_set(source))
    read(source)
    return 1


def _source(source: str, episode: int) -> Rollout:
    if sets.kind_of(locate(source)) is not None:
        return sets.read_set(source)[episode]
    return read(source)
