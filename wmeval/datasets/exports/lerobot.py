"""LeRobotDataset v3.0: parquet tables and one mp4 an episode, written without that package.

A row is a frame with an action in force: ``observation.state`` is the environment's flat vector and
``action`` the action at the control time at or before the frame. Frames after the last action stay
in the video only. An environment without actions has no ``action``.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.datasets.clips import ClipSet
from wmeval.datasets.exports.samples import Episode, Step, episodes, one_length
from wmeval.datasets.exports.tables import arrow, write_parquet
from wmeval.datasets.film import film_layer
from wmeval.datasets.rollout import Rollout
from wmeval.datasets.sets import RolloutSet
from wmeval.errors import UserError

VERSION = "v3.0"
CHUNK = 1000
"""Files of a folder."""
VIDEO = "observation.images.main"
ROWS_PER_FILE = 200_000
SAMPLED_FRAMES = 4
"""Frames of an episode that colour statistics look at."""

_PATTERN = "chunk-{chunk_index:03d}/file-{file_index:03d}"
_INDICES = ("frame_index", "episode_index", "index", "task_index")

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class _Rows:
    """The rows of one episode."""

    columns: dict[str, Array]
    length: int


def write(source: ClipSet | RolloutSet, folder: Path, step: Step) -> int:
    """Fill a folder with one data set.

    Raises:
        UserError: pyarrow is missing; a sample without video or frames, or a damaged one; samples
            whose vectors, rates or sizes differ.
    """
    pa = arrow("the export lerobot")
    _refuse_tasks_of_different_length(source)
    writer = _Writer(pa, folder, source.url)
    for done, episode in enumerate(episodes(source), 1):
        writer.add(episode)
        step(done, len(source))
    writer.finish()
    return len(source)


def _refuse_tasks_of_different_length(source: ClipSet | RolloutSet) -> None:
    """Look at one clip of each task before hundreds are copied."""
    if isinstance(source, ClipSet):
        facts = [source.facts(i) for i in range(len(source))]
        first = {f.task_type: i for i, f in reversed(list(enumerate(facts)))}
        length = None
        for i in sorted(first.values()) if len(first) > 1 else ():
            found = source[i].rollout.observations.shape[1]
            length = one_length("the observation", facts[i].sample_id, length, found)


class _Writer:
    """Tables so far; data files are written when they are full."""

    def __init__(self, pa: Any, folder: Path, url: str) -> None:
        self.pa, self.folder, self.url = pa, folder, url
        self.tasks: dict[str, int] = {}
        self.meta: list[dict[str, Any]] = []
        self.data: list[_Rows] = []
        self.file = 0
        self.total = 0
        self.fps: Fraction | None = None
        self.size: tuple[int, int] | None = None
        self.state: int | None = None
        self.action: int | None = None

    def add(self, episode: Episode) -> None:
        rollout = episode.rollout
        frames = rollout.frames
        if episode.film is None or frames is None:
            raise UserError(
                f"{self.url}: sample {episode.name} has no video, and LeRobot needs one of every "
                "episode: make the set with --video"
            )
        times = {b - a for a, b in zip(frames.times, frames.times[1:], strict=False)}
        rate = 1 / times.pop() if len(times) == 1 else None
        if rate is None or rate.denominator != 1 or (self.fps or rate) != rate:
            raise UserError(
                f"{episode.name}: frames at {rate or 'uneven times'}; LeRobot needs one whole "
                "number of frames per second for all"
            )
        if (self.size or frames.size) != frames.size:
            raise UserError(f"{episode.name}: frames of {frames.size} px, {self.size} before")
        self.fps, self.size = rate, frames.size
        self.state = one_length(
            "the observation", episode.name, self.state, rollout.observations.shape[1]
        )
        self.action = one_length("the action", episode.name, self.action, rollout.actions.shape[1])
        number, task = len(self.meta), self.tasks.setdefault(episode.text, len(self.tasks))
        rows = _rows(rollout, number, self.total, task, rate)
        name = _PATTERN.format(chunk_index=number // CHUNK, file_index=number % CHUNK)
        episode.film.copy(self.folder / "videos" / VIDEO / f"{name}.mp4")
        pictures = _sampled(episode.film.url, len(frames), frames.size)
        self.data.append(rows)
        self.meta.append(
            {
                "episode_index": number,
                "tasks": [episode.text],
                "length": rows.length,
                "data/chunk_index": self.file // CHUNK,
                "data/file_index": self.file % CHUNK,
                "dataset_from_index": self.total,
                "dataset_to_index": self.total + rows.length,
                f"videos/{VIDEO}/chunk_index": number // CHUNK,
                f"videos/{VIDEO}/file_index": number % CHUNK,
                f"videos/{VIDEO}/from_timestamp": 0.0,
                f"videos/{VIDEO}/to_timestamp": float(rows.length / rate),
                "meta/episodes/chunk_index": 0,
                "meta/episodes/file_index": 0,
                "stats": {
                    **{key: _stats(column) for key, column in rows.columns.items()},
                    VIDEO: _picture_stats(pictures),
                },
            }
        )
        self.total += rows.length
        if sum(r.length for r in self.data) >= ROWS_PER_FILE:
            self._flush()

    def _flush(self) -> None:
        if not self.data:
            return
        pa = self.pa
        columns = {}
        for key in self.data[0].columns:
            whole = np.concatenate([r.columns[key] for r in self.data])
            if whole.ndim == 2 and whole.shape[1] > 1:
                flat = pa.array(whole.reshape(-1))
                columns[key] = pa.FixedSizeListArray.from_arrays(flat, whole.shape[1])
            else:
                columns[key] = pa.array(whole.reshape(-1))  # one number is a plain column
        name = _PATTERN.format(chunk_index=self.file // CHUNK, file_index=self.file % CHUNK)
        write_parquet(self.folder / "data" / f"{name}.parquet", pa.table(columns))
        self.data, self.file = [], self.file + 1

    def finish(self) -> None:
        self._flush()
        meta, pa = self.folder / "meta", self.pa
        every = [entry.pop("stats") for entry in self.meta]
        flat = [
            {
                **entry,
                **{
                    f"stats/{key}/{name}": value
                    for key, stats in found.items()
                    for name, value in stats.items()
                },
            }
            for entry, found in zip(self.meta, every, strict=True)
        ]
        write_parquet(
            meta / "episodes" / f"{_PATTERN.format(chunk_index=0, file_index=0)}.parquet",
            pa.Table.from_pylist(flat),
        )
        write_parquet(meta / "tasks.parquet", _task_table(pa, tuple(self.tasks)))
        stats = {key: _merged([found[key] for found in every]) for key in every[0]}
        (meta / "stats.json").write_text(json.dumps(stats, indent=4) + "\n")
        (meta / "info.json").write_text(json.dumps(self._info(), indent=4) + "\n")

    def _info(self) -> dict[str, Any]:
        assert self.fps is not None
        assert self.size is not None
        fps, (width, height) = int(self.fps), self.size
        features: dict[str, Any] = {
            "observation.state": _feature("float32", self.state or 0, fps),
            **({"action": _feature("float32", self.action, fps)} if self.action else {}),
            VIDEO: {
                "dtype": "video",
                "shape": [height, width, 3],
                "names": ["height", "width", "channels"],
                "info": {
                    "video.height": height,
                    "video.width": width,
                    "video.codec": "h264",
                    "video.pix_fmt": "yuv420p",
                    "video.is_depth_map": False,
                    "video.fps": fps,
                    "video.channels": 3,
                    "has_audio": False,
                },
            },
            "timestamp": {**_feature("float32", 1, fps), "names": None},
            **{name: {**_feature("int64", 1, fps), "names": None} for name in _INDICES},
        }
        return {
            "codebase_version": VERSION,
            "robot_type": None,
            "total_episodes": len(self.meta),
            "total_frames": self.total,
            "total_tasks": len(self.tasks),
            "chunks_size": CHUNK,
            "data_files_size_in_mb": 100,
            "video_files_size_in_mb": 200,
            "fps": fps,
            "splits": {"train": f"0:{len(self.meta)}"},
            "data_path": f"data/{_PATTERN}.parquet",
            "video_path": f"videos/{{video_key}}/{_PATTERN}.mp4",
            "features": features,
        }


def _feature(dtype: str, length: int, fps: int) -> dict[str, Any]:
    names = [str(i) for i in range(length)]
    return {"dtype": dtype, "shape": [length], "names": names, "fps": fps}


def _rows(rollout: Rollout, episode: int, first: int, task: int, fps: Fraction) -> _Rows:
    frames = rollout.frames
    assert frames is not None
    substep = rollout.log.state.substep[frames.state_index]
    action = substep // rollout.clock.substeps
    action = action[action < len(rollout)]
    count = len(action)
    if not count:
        raise UserError(f"episode {episode}: no frame has an action in force")
    columns: dict[str, Array] = {"observation.state": rollout.observations[action]}
    if rollout.actions.shape[1]:
        columns["action"] = rollout.actions[action].astype(np.float32)
    columns["timestamp"] = (np.arange(count) / float(fps)).astype(np.float32)
    columns["frame_index"] = np.arange(count)
    columns["episode_index"] = np.full(count, episode)
    columns["index"] = first + np.arange(count)
    columns["task_index"] = np.full(count, task)
    return _Rows(columns, count)


def _sampled(url: str, count: int, size: tuple[int, int]) -> Array:
    index = np.unique(np.linspace(0, count - 1, SAMPLED_FRAMES).astype(int))
    return np.asarray(film_layer(url, count, size)[index])


def _stats(column: Array) -> dict[str, list[Any]]:
    """Statistics of a column over its rows, as lists of one number a component."""
    values = column.astype(np.float64).reshape(len(column), -1)
    return {
        "min": values.min(axis=0).tolist(),
        "max": values.max(axis=0).tolist(),
        "mean": values.mean(axis=0).tolist(),
        "std": values.std(axis=0).tolist(),
        "count": [len(values)],
    }


def _picture_stats(pictures: Array) -> dict[str, list[Any]]:
    """The same of colour in [0, 1], by channel (3, 1, 1)."""
    stats = _stats(pictures.reshape(-1, 3) / 255.0)
    shaped = {k: [[[x]] for x in v] for k, v in stats.items() if k != "count"}
    return {**shaped, "count": [len(pictures)]}


def _merged(parts: list[dict[str, list[Any]]]) -> dict[str, list[Any]]:
    """Statistics of all rows from those of parts."""
    count = np.array([p["count"][0] for p in parts], np.float64)
    share = count / count.sum()
    mean, std = (np.array([p[k] for p in parts]) for k in ("mean", "std"))
    weight = share.reshape(-1, *([1] * (mean.ndim - 1)))
    whole = (weight * mean).sum(axis=0)
    spread = np.sqrt((weight * (std**2 + (mean - whole) ** 2)).sum(axis=0))
    return {
        "min": np.min([p["min"] for p in parts], axis=0).tolist(),
        "max": np.max([p["max"] for p in parts], axis=0).tolist(),
        "mean": whole.tolist(),
        "std": spread.tolist(),
        "count": [int(count.sum())],
    }


def _task_table(pa: Any, tasks: tuple[str, ...]) -> Any:
    """Tasks as pandas writes a table with the text as its index: readers ask pandas for it."""
    table = pa.table({"task_index": pa.array(range(len(tasks)), pa.int64()), "task": list(tasks)})
    described = {
        "index_columns": ["task"],
        "column_indexes": [],
        "columns": list(_described()),
        "creator": {"library": "pyarrow", "version": pa.__version__},
        "pandas_version": "2.0.0",
    }
    return table.replace_schema_metadata({"pandas": json.dumps(described)})


def _described() -> Iterator[dict[str, Any]]:
    for name, kind, numpy_kind in (
        ("task_index", "int64", "int64"),
        ("task", "unicode", "object"),
    ):
        yield {
            "name": name,
            "field_name": name,
            "pandas_type": kind,
            "numpy_type": numpy_kind,
            "metadata": None,
        }
