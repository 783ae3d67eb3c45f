"""Minari 0.5: one HDF5 data set an environment, with the flat vector that its agents observe.

``{env}/data/main_data.hdf5``: groups ``episode_0`` ... with ``observations`` and ``infos/time`` [s]
(T + 1), ``actions``, ``rewards``, ``terminations``, ``truncations`` (T). Pictures stay out: the
format stores bounds of picture spaces element by element.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import wmeval
from wmeval.datasets.clips import ClipSet
from wmeval.datasets.exports.samples import Episode, Step, episodes, one_length
from wmeval.datasets.sets import RolloutSet

VERSION = "0.5.0"
FILE = "main_data.hdf5"


@dataclass
class _Table:
    """What is known of one environment's data set so far."""

    folder: Path
    episodes: int = 0
    steps: int = 0
    observation: int | None = None
    action: int | None = None
    bounded: bool = True
    metadata: dict[str, Any] = field(default_factory=dict)


def write(source: ClipSet | RolloutSet, folder: Path, step: Step) -> int:
    """Fill a folder with one data set per environment.

    Raises:
        UserError: observations or actions of different lengths within one environment.
    """
    tables: dict[str, _Table] = {}
    for done, episode in enumerate(episodes(source), 1):
        env_id = str(episode.rollout.metadata.get("env_id", "unknown"))
        if env_id not in tables:
            data = folder / dataset_id(env_id) / "data"
            data.mkdir(parents=True)
            tables[env_id] = _Table(data, metadata=dict(episode.rollout.metadata))
        _append(tables[env_id], episode)
        step(done, len(source))
    for env_id, table in tables.items():
        _finish(env_id, table)
    return len(source)


def dataset_id(env_id: str) -> str:
    """Id of an environment's data set: "wmeval/BeamDomino-v0" of "WMEval/BeamDomino-v0"."""
    space, _, name = env_id.rpartition("/")
    match = re.fullmatch(r"(.+)-v(\d+)", name)
    stem, version = (match[1], match[2]) if match else (name, "0")
    plain = re.sub(r"[^A-Za-z0-9_-]", "_", stem)
    return f"{space.lower() or 'wmeval'}/{plain}-v{version}"


def _append(table: _Table, episode: Episode) -> None:
    import h5py

    rollout = episode.rollout
    observations, actions = rollout.observations, rollout.actions
    table.observation = one_length(
        "the observation", episode.name, table.observation, observations.shape[1]
    )
    table.action = one_length("the action", episode.name, table.action, actions.shape[1])
    table.bounded &= bool((np.abs(actions) <= 1).all())
    times = np.arange(len(rollout) + 1) * float(rollout.clock.control_period)
    columns = {
        "observations": observations,
        "actions": actions.astype(np.float32),
        "rewards": rollout.rewards,
        "terminations": rollout.terminated,
        "truncations": rollout.truncated,
        "infos/time": times,
    }
    with h5py.File(table.folder / FILE, "a", track_order=True) as file:
        group = file.create_group(f"episode_{table.episodes}")
        group.attrs["id"] = table.episodes
        group.attrs["total_steps"] = len(rollout)
        group.attrs["sample"] = episode.name
        group.attrs["task"] = episode.text
        if isinstance(rollout.metadata.get("seed"), int):
            group.attrs["seed"] = rollout.metadata["seed"]
        for name, array in columns.items():
            group.create_dataset(name, data=array, **_packed(array))
    table.episodes += 1
    table.steps += len(rollout)


def _packed(array: Any) -> dict[str, Any]:
    return {"compression": "gzip", "shuffle": True} if array.size else {}


def _finish(env_id: str, table: _Table) -> None:
    size = (table.folder / FILE).stat().st_size
    assert table.observation is not None
    assert table.action is not None
    bound = 1.0 if table.bounded else float("inf")
    metadata = {
        "dataset_id": dataset_id(env_id),
        "minari_version": VERSION,
        "data_format": "hdf5",
        "jpeg_encoding": False,
        "total_episodes": table.episodes,
        "total_steps": table.steps,
        "dataset_size": round(size / 1e6, 1),
        "observation_space": _box(table.observation, float("inf")),
        "action_space": _box(table.action, bound),
        "algorithm_name": str(table.metadata.get("policy", "")),
        "description": f"Recorded from {env_id} by wmeval {wmeval.__version__}.",
    }
    spec = _spec(env_id, table.metadata)
    if spec is not None:
        metadata["env_spec"] = spec
    (table.folder / "metadata.json").write_text(json.dumps(metadata, indent=1) + "\n")


def _box(length: int, bound: float) -> str:
    box = {
        "type": "Box",
        "dtype": "float32",
        "shape": [length],
        "low": [-bound] * length,
        "high": [bound] * length,
    }
    return json.dumps(box)


def _spec(env_id: str, metadata: dict[str, Any]) -> str | None:
    """How to make the environment again, as Gymnasium writes it; None for one that it lacks."""
    import gymnasium as gym

    if env_id not in gym.registry:
        return None
    spec = gym.spec(env_id)
    kwargs = {**spec.kwargs, **metadata.get("env_kwargs", {})}
    # As recorded: flat actions, and the flat vector without pictures.
    flat = {"action_mode": "flat", "observation_mode": "vector"}
    kwargs |= {name: mode for name, mode in flat.items() if name in kwargs}
    return replace(spec, kwargs=kwargs).to_json()
