"""Rollout: everything that is known of one episode, in memory and on disk.

A `Rollout` is what `wmeval.envs.record.record` returns, what files hold and what comparisons read.
Its arrays follow `wmeval.records.FIELDS`, its picture layers `wmeval.layers.LAYERS`; the back ends
(`hdf5`: one file; `zarr_store`: any fsspec URL) know nothing else of it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, fields
from fractions import Fraction
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wmeval.clock import SceneClock, exact
from wmeval.datasets.conformity import GROUPS, problems_of
from wmeval.datasets.stored_contacts import unread
from wmeval.deformables import vertex_count
from wmeval.layers import LAYERS
from wmeval.records import FIELDS, CameraLog, Contacts, Event, LightLog, StateLog, WorldLog
from wmeval.scene import Meshes, Scene

FORMAT = "wmeval-rollout/1"

Array = NDArray[Any]


class FrameArray(Protocol):
    """What a picture layer must offer: a numpy array does, and so does a layer on disk.

    ``array[i]`` reads one frame (H, W[, C]) alone; ``array[a:b]`` a run (b - a, H, W[, C]).
    """

    @property
    def shape(self) -> tuple[int, ...]:
        """(F, H, W) or (F, H, W, C)."""

    @property
    def dtype(self) -> np.dtype[Any]:
        """Of one element."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: Any, /) -> Array: ...

    def __iter__(self) -> Iterator[Array]: ...


@dataclass(frozen=True, eq=False)
class Frames:
    """Pictures of a rollout by one camera on their own grid of times.

    Attributes:
        camera: name of a camera of the scene.
        state_index: (F,) int64, row of the rollout's log that each frame shows.
        times: exact times [s] of the frames on their grid, ascending; the state shown may lie up to
            half a substep away.
        K: (F, 3, 3) float64 intrinsics [px] at the recorded size.
        layers: name (`wmeval.layers.LAYERS`) to array-like (F, H, W[, C]), sliced lazily.
    """

    camera: str
    state_index: NDArray[np.int64]
    times: tuple[Fraction, ...]
    K: NDArray[np.float64]
    layers: Mapping[str, FrameArray]

    def __post_init__(self) -> None:
        count = len(self.times)
        _set(self, "state_index", _array("frames.state_index", self.state_index, np.int64))
        _set(self, "K", _array("frames.K", self.K, np.float64))
        _set(self, "times", tuple(exact(t) for t in self.times))
        if self.state_index.shape != (count,) or self.K.shape != (count, 3, 3):
            raise ValueError(
                f"frames: {count} times need state_index ({count},) and K ({count}, 3, 3); "
                f"got {self.state_index.shape} and {self.K.shape}"
            )
        limit = np.iinfo(np.int64).max
        for time in self.times:
            if abs(time.numerator) > limit or time.denominator > limit:
                raise ValueError(f"frames.times: {time} s does not fit two 64-bit integers")
        size: tuple[int, int] | None = None
        for name, layer in self.layers.items():
            if name not in LAYERS:
                raise ValueError(f"frames: unknown layer {name!r}; known: {', '.join(LAYERS)}")
            row = LAYERS[name]
            shape = tuple(layer.shape)
            size = size or (shape[1:3] if len(shape) >= 3 else (0, 0))  # type: ignore[assignment]
            if size is None or shape != (count, *row.shape(*size)) or layer.dtype != row.dtype:
                raise ValueError(
                    f"frames: layer {name!r} is {layer.dtype} {shape}; it needs {row.dtype} "
                    f"(F = {count}, H, W{', ' + str(row.channels) if row.channels else ''}) "
                    "at one size for all layers"
                )

    def __len__(self) -> int:
        return len(self.times)

    def __repr__(self) -> str:
        width, height = self.size
        named = ", ".join(self.layers) or "no layers"
        return f"<Frames: {len(self)} of {width}x{height} px by {self.camera!r}: {named}>"

    @property
    def size(self) -> tuple[int, int]:
        """Width and height [px]: of the layers, else twice the principal point of ``K``."""
        for layer in self.layers.values():
            return int(layer.shape[2]), int(layer.shape[1])
        if not len(self):
            return (0, 0)
        return round(2 * float(self.K[0, 0, 2])), round(2 * float(self.K[0, 1, 2]))


@dataclass(frozen=True, eq=False)
class Rollout:
    """One episode: T actions, N recorded states, F frames.

    Attributes:
        scene: the world at t = 0.
        meshes: content hash to mesh, all that the scene names.
        log: states as recorded (every substep, usually), cameras, lights, contacts, events.
        actions: (T, A) float64.
        rewards: (T,) float64.
        terminated: (T,) bool, physical end.
        truncated: (T,) bool, step limit.
        observations: (T + 1, D) float32, the environment's flat vector.
        frames: pictures, or None.
        metadata: JSON values, enough to make the rollout again: ``env_id``, ``env_kwargs``,
            ``seed``, ``options``, ``plan``, ``engine``, ``engine_version``, ``engine_config``,
            ``renderer``, ``renderer_version``, ``dt``, ``control_period``, ``wmeval``.
        labels: tables that follow from the rest and are stored all the same, by path
            (`wmeval.datasets.clip_labels.ARRAYS`); none of them is in `columns` or `sha256`.

    Raises:
        ValueError: an array departs from the table of fields, or the metadata is no JSON; the
            message names the field.
    """

    scene: Scene
    meshes: Meshes
    log: WorldLog
    actions: NDArray[np.float64]
    rewards: NDArray[np.float64]
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    observations: NDArray[np.float32]
    frames: Frames | None
    metadata: Mapping[str, Any]
    labels: Mapping[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, dtype in _STEP_DTYPES.items():
            _set(self, name, _array(name, getattr(self, name), dtype))
        try:
            # The round trip makes tuples lists: a rollout in memory equals itself read from disk.
            _set(self, "metadata", json.loads(json.dumps(dict(self.metadata), allow_nan=False)))
        except (TypeError, ValueError) as error:
            raise ValueError(f"metadata is no JSON: {error}") from error
        names = tuple(body.name for body in self.scene.bodies)
        if self.log.state.bodies != names:
            raise ValueError(f"log.state.bodies are not the scene's {len(names)} bodies, in order")
        cameras = tuple(camera.name for camera in self.scene.cameras)
        if self.log.cameras.names != cameras:
            raise ValueError(f"log.cameras.names are not the scene's cameras {', '.join(cameras)}")
        if self.frames is not None and self.frames.camera not in cameras:
            raise ValueError(f"frames.camera {self.frames.camera!r} is not in {', '.join(cameras)}")
        stated = self.metadata.get("dt")
        if stated is not None and exact(stated) != self.log.state.dt:
            raise ValueError(f"metadata.dt {stated} is not the log's dt {self.log.state.dt}")
        sizes = {"body": len(names), "camera": len(cameras), "step": len(self.actions)}
        # Contacts that lie on disk are checked when they are read.
        groups = [g for g in GROUPS if g != "contact" or not unread(self.log.contacts)]
        declared: dict[str, tuple[int, ...]] = {
            f"modal/{m.name}": (m.size,) for m in self.scene.modal
        }
        for item in self.scene.deformables:
            declared[f"vertices/{item.name}"] = (vertex_count(item, self.meshes), 3)
        problems = problems_of(self._columns(groups), sizes, groups=groups, declared=declared)
        if problems:
            raise ValueError(f"rollout: {problems[0]}")

    def __repr__(self) -> str:
        return (
            f"<Rollout of {self.metadata.get('env_id')}: {len(self.actions)} actions, "
            f"{self.log!r}, {self.frames!r}>"
        )

    # --- as a table ---------------------------------------------------------------------------

    def columns(self) -> dict[str, Array]:
        """All arrays by the paths of `wmeval.records.FIELDS` and "modal/*", "vertices/*".

        Text is arrays of str.
        """
        return self._columns(GROUPS)

    def _columns(self, groups: Collection[str]) -> dict[str, Array]:
        log = self.log
        out: dict[str, Array] = {}
        for group, record in _records(log):
            if group not in groups:
                continue
            for name in _names(record):
                out[f"{group}/{name}"] = getattr(record, name)
        for name, values in log.state.modal.items():
            out[f"modal/{name}"] = values
        for name, values in log.state.vertices.items():
            out[f"vertices/{name}"] = values
        for name, dtype in _EVENT_DTYPES.items():
            column = [getattr(event, name) for event in log.events]
            out[f"event/{name}"] = np.array(column, dtype=dtype).reshape(len(column))
        for name, path in _STEP_PATHS.items():
            out[path] = getattr(self, name)
        if self.frames is not None:
            times = self.frames.times
            out["frame/state_index"] = self.frames.state_index
            out["frame/time"] = np.array([float(t) for t in times], np.float64)
            out["frame/time_exact"] = np.array(
                [(t.numerator, t.denominator) for t in times], np.int64
            ).reshape(len(times), 2)
            out["frame/K"] = self.frames.K
        return out

    @classmethod
    def from_columns(
        cls,
        columns: Mapping[str, Array],
        *,
        contacts: Contacts | None = None,
        scene: Scene,
        meshes: Meshes,
        dt: Fraction,
        camera: str | None,
        layers: Mapping[str, FrameArray],
        metadata: Mapping[str, Any],
        labels: Mapping[str, Array] | None = None,
    ) -> Rollout:
        """The inverse of `columns`.

        Args:
            columns: arrays by path; frame/* only when ``camera`` is given.
            contacts: instead of the columns "contact/*".
            scene: the world at t = 0.
            meshes: what the scene names.
            dt: substep [s].
            camera: camera of the frames, None for no frames.
            layers: picture layers.
            metadata: JSON values.
            labels: tables beside them.

        Raises:
            ValueError: the arrays do not make a rollout.
        """
        needed = [p for p, row in FIELDS.items() if not row.optional]
        if contacts is not None:
            needed = [p for p in needed if not p.startswith("contact/")]
        missing = [p for p in needed if p not in columns]
        if missing:
            raise ValueError(f"{missing[0]} is missing")
        group = {
            name: {
                path.split("/", 1)[1]: array
                for path, array in columns.items()
                if path.startswith(f"{name}/")
            }
            for name in ("state", "camera", "light", "contact", "event", "modal", "vertices")
        }
        names = tuple(body.name for body in scene.bodies)
        log = WorldLog(
            StateLog(names, dt, **group["state"], modal=group["modal"], vertices=group["vertices"]),
            CameraLog(tuple(c.name for c in scene.cameras), **group["camera"]),
            LightLog(**group["light"]),
            Contacts(**group["contact"]) if contacts is None else contacts,
            tuple(
                Event(**dict(zip(_EVENT_DTYPES, row, strict=True)))
                for row in zip(
                    *(group["event"][name].tolist() for name in _EVENT_DTYPES), strict=True
                )
            ),
        )
        frames = None
        if camera is not None:
            times = tuple(Fraction(int(a), int(b)) for a, b in columns["frame/time_exact"])
            frames = Frames(camera, columns["frame/state_index"], times, columns["frame/K"], layers)
        steps = {name: columns[path] for name, path in _STEP_PATHS.items()}
        return cls(
            scene=scene,
            meshes=meshes,
            log=log,
            **steps,
            frames=frames,
            metadata=metadata,
            labels=dict(labels or {}),
        )

    def sha256(self) -> str:
        """Digest over every bit of states, contacts and actions: equal only for equal episodes."""
        digest = hashlib.sha256(self.log.state.sha256().encode())
        arrays = [(f.name, getattr(self.log.contacts, f.name)) for f in fields(Contacts)]
        for name, array in [*arrays, ("action", self.actions)]:
            digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()

    # --- questions ----------------------------------------------------------------------------

    def __len__(self) -> int:
        """Number of actions T."""
        return len(self.actions)

    @property
    def clock(self) -> SceneClock:
        """Clock of the reference world.

        Raises:
            ValueError: the metadata does not state ``control_period``.
        """
        if "control_period" not in self.metadata:
            raise ValueError("rollout: metadata states no control_period")
        return SceneClock(self.log.state.dt, exact(self.metadata["control_period"]))

    def states_at_control(self) -> StateLog:
        """States (T + 1) at the control times: row i is the state that action i meets.

        Raises:
            KeyError: such a state was not recorded.
        """
        substeps = np.arange(len(self) + 1) * self.clock.substeps
        return self.log.state.rows([self.log.state.row_of_substep(int(k)) for k in substeps])

    def row_of_frame(self, frame: int) -> int:
        """Row of ``log`` that a frame shows."""
        return int(self._frames().state_index[frame])

    def state_of_frames(self) -> WorldLog:
        """The log at the frames (F rows)."""
        return self.log.rows(self._frames().state_index)

    def contacts_of_state(self, row: int) -> Contacts:
        """Contacts of the substeps that led from the row before to this row of ``log``."""
        substep = self.log.state.substep
        return self._contacts(int(substep[row - 1]) if row else 0, int(substep[row]))

    def contacts_of_frame(self, frame: int) -> Contacts:
        """Contacts of the substeps between the frame before (or t = 0) and this frame."""
        index = self._frames().state_index
        substep = self.log.state.substep
        first = int(substep[index[frame - 1]]) if frame else 0
        return self._contacts(first, int(substep[index[frame]]))

    def action_of_frame(self, frame: int) -> int:
        """Index of the action in force in the substep that led to the frame (0 at t = 0)."""
        substep = int(self.log.state.substep[self.row_of_frame(frame)])
        return self.clock.action_of_substep(max(substep - 1, 0))

    def _frames(self) -> Frames:
        if self.frames is None:
            raise ValueError("this rollout holds no frames: record it with layers")
        return self.frames

    def _contacts(self, start: int, stop: int) -> Contacts:
        contacts = self.log.contacts
        a, b = np.searchsorted(contacts.substep, [start, stop])
        return Contacts(*(getattr(contacts, f.name)[a:b] for f in fields(Contacts)))


# --- verbs ----------------------------------------------------------------------------------------


def write_hdf5(rollout: Rollout, path: str | Path, *, layers: tuple[str, ...] | None = None) -> str:
    """Write one HDF5 file, whole or not at all. See `wmeval.datasets.hdf5.write_hdf5`."""
    from wmeval.datasets.hdf5 import write_hdf5 as write

    return write(rollout, path, layers=layers)


def write_zarr(rollout: Rollout, url: str | Path, *, layers: tuple[str, ...] | None = None) -> str:
    """Write a Zarr v3 store at any fsspec URL. See `wmeval.datasets.zarr_store.write_zarr`."""
    from wmeval.datasets.zarr_store import write_zarr as write

    return write(rollout, url, layers=layers)


def read(path_or_url: str | Path) -> Rollout:
    """Read a rollout: the state now, verified; contacts when touched, frames when sliced.

    Args:
        path_or_url: an HDF5 file, a Zarr store (folder or fsspec URL), or a folder that
            ``wmeval rollout`` left (its rollout.h5).

    Raises:
        UserError: no such thing, or no whole rollout of this format; the message names the file.
    """
    from wmeval.datasets.hdf5 import read_hdf5
    from wmeval.datasets.zarr_store import read_zarr

    text = str(path_or_url)
    if "://" not in text:
        path = Path(text)
        if (path / "rollout.h5").is_file():
            return read_hdf5(path / "rollout.h5")
        if not path.is_dir():
            return read_hdf5(path)
    return read_hdf5(text) if text.endswith(".h5") else read_zarr(text)


def validate(path_or_url: str | Path) -> list[str]:
    """Re-check a file, folder or URL; see `wmeval.datasets.validate.validate`."""
    from wmeval.datasets.validate import validate as check

    return check(path_or_url)


# --- parts ----------------------------------------------------------------------------------------

_STEP_DTYPES: dict[str, type[Any]] = {
    "actions": np.float64,
    "rewards": np.float64,
    "terminated": np.bool_,
    "truncated": np.bool_,
    "observations": np.float32,
}
_STEP_PATHS = {
    "actions": "step/action",
    "rewards": "step/reward",
    "terminated": "step/terminated",
    "truncated": "step/truncated",
    "observations": "step/observation",
}
_EVENT_DTYPES: dict[str, type[Any]] = {
    "kind": np.str_,
    "time": np.float64,
    "detected_at": np.float64,
    "body_a": np.str_,
    "body_b": np.str_,
    "value": np.float64,
}


def _records(log: WorldLog) -> Iterator[tuple[str, Any]]:
    yield "state", log.state
    yield "camera", log.cameras
    yield "light", log.lights
    yield "contact", log.contacts


def _names(record: Any) -> tuple[str, ...]:
    if isinstance(record, StateLog):
        return StateLog.ARRAYS
    return tuple(f.name for f in fields(record) if f.name != "names")


def _set(record: Any, name: str, value: Any) -> None:
    object.__setattr__(record, name, value)


def _array(name: str, value: Any, dtype: type[Any]) -> Array:
    try:
        array = np.asarray(value)
        if array.size and not np.can_cast(array.dtype, dtype, "same_kind"):
            raise TypeError(f"{array.dtype} does not become {np.dtype(dtype).name}")
        return np.ascontiguousarray(array, dtype=dtype)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{name} is not an array of {np.dtype(dtype).name}: {error}") from error
