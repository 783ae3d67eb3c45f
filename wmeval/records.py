"""What a world is known to have done: states, contacts, events, cameras, lights, clips.

Struct-of-arrays with named dimensions. `FIELDS` is the one table of recorded arrays; in-memory
records, HDF5 and Zarr back ends and the documentation all follow it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]
I8 = NDArray[np.int64]
I4 = NDArray[np.int32]
U1 = NDArray[np.uint8]


@dataclass(frozen=True)
class FieldSpec:
    """One recorded array.

    Attributes:
        path: "group/name" in files.
        dtype: numpy dtype name; "str" for variable-length text.
        dims: named dimensions; a number is a fixed length.
        unit: SI unit, "1" for none.
        doc: one line.
        optional: may be absent.
    """

    path: str
    dtype: str
    dims: tuple[str, ...]
    unit: str
    doc: str
    optional: bool = False

    @property
    def name(self) -> str:
        """Last part of the path: the attribute of its record."""
        return self.path.rsplit("/", 1)[-1]


_ROWS: tuple[tuple[str, str, str, str, str, bool], ...] = (
    # path, dtype, dims, unit, doc, optional
    ("state/substep", "int64", "state", "1", "substeps done; t = substep dt", False),
    ("state/position", "float64", "state body 3", "m", "centre of mass", False),
    ("state/quaternion_wxyz", "float64", "state body 4", "1", "body to world rotation", False),
    ("state/linear_velocity", "float64", "state body 3", "m/s", "of the centre of mass", False),
    ("state/angular_velocity", "float64", "state body 3", "rad/s", "in the world frame", False),
    ("state/active", "bool", "state body", "1", "slot is in the world", False),
    ("state/motion", "uint8", "state body", "1", "0 static, 1 kinematic, 2 dynamic", False),
    ("camera/fov_y", "float64", "state camera", "rad", "vertical field of view", False),
    ("camera/T_world_camera", "float64", "state camera 4 4", "m", "OpenCV camera pose", False),
    ("light/sun_direction", "float64", "state 3", "1", "along which sunlight travels", False),
    ("light/sun_color", "float64", "state 3", "1", "linear RGB times strength", False),
    ("light/sky", "float64", "state 3 3", "1", "zenith, horizon, ground: as sun_color", False),
    ("contact/substep", "int64", "contact", "1", "the substep (0-based) that resolved it", False),
    ("contact/body_a", "int32", "contact", "1", "index into bodies", False),
    ("contact/body_b", "int32", "contact", "1", "index into bodies", False),
    ("contact/position", "float64", "contact 3", "m", "on body b", False),
    ("contact/normal", "float64", "contact 3", "1", "from b to a", False),
    ("contact/normal_impulse", "float64", "contact", "N s", "on a along the normal", False),
    ("contact/tangential_impulse", "float64", "contact 3", "N s", "friction impulse on a", False),
    ("contact/distance", "float64", "contact", "m", "negative when overlapping", False),
    ("event/time", "float64", "event", "s", "when it happened", False),
    ("event/detected_at", "float64", "event", "s", "when a streaming observer can know it", False),
    ("event/kind", "str", "event", "1", "row of the table of event kinds", False),
    ("event/body_a", "str", "event", "1", "the body it happened to; empty for none", False),
    ("event/body_b", "str", "event", "1", "the other body; empty for none", False),
    ("event/value", "float64", "event", "1", "the event's number; NaN for none", False),
    ("step/action", "float64", "step action", "1", "what the agent did", False),
    ("step/reward", "float64", "step", "1", "reward", False),
    ("step/terminated", "bool", "step", "1", "physical end", False),
    ("step/truncated", "bool", "step", "1", "step limit", False),
    ("step/observation", "float32", "control observation", "1", "flat vector", False),
    ("frame/state_index", "int64", "frame", "1", "row of state/* that a frame shows", True),
    ("frame/time", "float64", "frame", "s", "time of a frame on its own grid", True),
    ("frame/time_exact", "int64", "frame 2", "s", "the same time: numerator, denominator", True),
    ("frame/K", "float64", "frame 3 3", "px", "intrinsics at the recorded size", True),
)  # fmt: skip

FIELDS: dict[str, FieldSpec] = {
    row[0]: FieldSpec(row[0], row[1], tuple(row[2].split()), row[3], row[4], row[5])
    for row in _ROWS
}


def _frozen_array(value: Any, dtype: str) -> NDArray[Any]:
    array = np.ascontiguousarray(value, dtype=dtype)
    if array.flags.writeable:
        array = array.view()
        array.flags.writeable = False
    return array


def _digest(parts: Sequence[tuple[str, NDArray[Any]]]) -> str:
    digest = hashlib.sha256()
    for name, array in parts:
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


@dataclass(frozen=True, eq=False)
class StateLog:
    """States of all bodies of a scene at chosen substeps; arrays as in `FIELDS` "state/*".

    Attributes:
        bodies: names, the scene's order.
        dt: substep [s].
        modal: named extra state (slosh modes, gait phases) as ``Scene.modal`` declares it, each
            (N, size) float64.
        vertices: of each of ``Scene.deformables`` by name, (N, V, 3) float64 [m], world frame.
    """

    bodies: tuple[str, ...]
    dt: Fraction
    substep: I8
    position: F8
    quaternion_wxyz: F8
    linear_velocity: F8
    angular_velocity: F8
    active: NDArray[np.bool_]
    motion: U1
    modal: Mapping[str, F8] = field(default_factory=lambda: MappingProxyType({}))
    vertices: Mapping[str, F8] = field(default_factory=lambda: MappingProxyType({}))

    def __repr__(self) -> str:
        return f"<StateLog: {len(self)} states of {len(self.bodies)} bodies>"

    ARRAYS = (
        "substep",
        "position",
        "quaternion_wxyz",
        "linear_velocity",
        "angular_velocity",
        "active",
        "motion",
    )

    def __len__(self) -> int:
        return len(self.substep)

    @property
    def times(self) -> F8:
        """Times of the states [s], (N,); each is the correctly rounded k dt."""
        # One rounding: k * numerator is exact in float64 (below 2^53).
        return self.substep * float(self.dt.numerator) / float(self.dt.denominator)

    def body(self, name: str) -> int:
        """Index of a body by name.

        Raises:
            KeyError: no such body.
        """
        if name not in self.bodies:
            raise KeyError(f"no body {name!r}; there are {', '.join(self.bodies)}")
        return self.bodies.index(name)

    def rows(self, index: slice | NDArray[Any] | Sequence[int]) -> StateLog:
        """The chosen states."""
        arrays = {n: getattr(self, n)[index] for n in self.ARRAYS}
        modal = {k: v[index] for k, v in self.modal.items()}
        vertices = {k: v[index] for k, v in self.vertices.items()}
        return StateLog(self.bodies, self.dt, **arrays, modal=modal, vertices=vertices)

    def row_of_substep(self, k: int) -> int:
        """Row that holds state k.

        Raises:
            KeyError: state k was not kept.
        """
        row = int(np.searchsorted(self.substep, k))
        if row >= len(self) or self.substep[row] != k:
            raise KeyError(f"state {k} (t = {float(k * self.dt):.6g} s) is not in this record")
        return row

    @staticmethod
    def concatenate(logs: Sequence[StateLog]) -> StateLog:
        """Join consecutive logs of one world."""
        first = logs[0]
        arrays = {n: np.concatenate([getattr(x, n) for x in logs]) for n in StateLog.ARRAYS}
        modal = {k: np.concatenate([x.modal[k] for x in logs]) for k in first.modal}
        vertices = {k: np.concatenate([x.vertices[k] for x in logs]) for k in first.vertices}
        return StateLog(first.bodies, first.dt, **arrays, modal=modal, vertices=vertices)

    def sha256(self) -> str:
        """Digest over every bit of every array: equal only for bit-identical states."""
        parts = [(n, getattr(self, n)) for n in self.ARRAYS]
        parts += [(f"modal/{k}", self.modal[k]) for k in sorted(self.modal)]
        parts += [(f"vertices/{k}", self.vertices[k]) for k in sorted(self.vertices)]
        return _digest(parts)


@dataclass(frozen=True, eq=False)
class Contacts:
    """Contacts, one row per substep and contact point; arrays as in `FIELDS` "contact/*".

    Rows ascend by substep. Substep n (0-based) leads from state n to state n + 1.
    """

    substep: I8
    body_a: I4
    body_b: I4
    position: F8
    normal: F8
    normal_impulse: F8
    tangential_impulse: F8
    distance: F8

    def __repr__(self) -> str:
        return f"<Contacts: {len(self)} points>"

    def __len__(self) -> int:
        return len(self.substep)

    @classmethod
    def empty(cls) -> Contacts:
        """No contacts."""
        return cls.from_rows([])

    @classmethod
    def from_rows(cls, rows: Sequence[tuple[Any, ...]]) -> Contacts:
        """From tuples (substep, a, b, position, normal, normal_impulse, tangential, distance)."""
        n = len(rows)
        columns = list(zip(*rows, strict=True)) if n else [()] * 8
        shapes = ((n,), (n,), (n,), (n, 3), (n, 3), (n,), (n, 3), (n,))
        arrays = {
            f.name: np.array(c, dtype=FIELDS[f"contact/{f.name}"].dtype).reshape(s)
            for f, c, s in zip(fields(cls), columns, shapes, strict=True)
        }
        return cls(**arrays)

    @staticmethod
    def concatenate(parts: Sequence[Contacts]) -> Contacts:
        """Join consecutive parts."""
        if not parts:
            return Contacts.empty()
        return Contacts(
            *(np.concatenate([getattr(p, f.name) for p in parts]) for f in fields(Contacts))
        )

    def splits(self, substep: I8) -> I8:
        """CSR row pointer by state: contacts that led to state i are rows splits[i]:splits[i+1].

        Args:
            substep: `StateLog.substep` of N states. Contacts between two kept states belong to the
                later one.
        """
        ends = np.searchsorted(self.substep, substep, side="left")
        return np.concatenate([[0], ends]).astype(np.int64)


@dataclass(frozen=True)
class Event:
    """Something that happened.

    Attributes:
        kind: row of the table of event kinds in `wmeval.sim.events`.
        time: when it happened [s].
        detected_at: first time [s] at which a streaming observer can know it (>= time).
        body_a, body_b: names; empty for none.
        value: the event's number (an angle [deg], an impulse [N s]); NaN for none.
    """

    kind: str
    time: float
    detected_at: float
    body_a: str = ""
    body_b: str = ""
    value: float = float("nan")


Events = tuple[Event, ...]


@dataclass(frozen=True, eq=False)
class CameraLog:
    """Cameras at the states of a StateLog: ``fov_y`` (N, C), ``T_world_camera`` (N, C, 4, 4)."""

    names: tuple[str, ...]
    fov_y: F8
    T_world_camera: F8

    def __repr__(self) -> str:
        return f"<CameraLog: {len(self.fov_y)} states of {', '.join(self.names)}>"

    def rows(self, index: Any) -> CameraLog:
        """The chosen states."""
        return CameraLog(self.names, self.fov_y[index], self.T_world_camera[index])

    def camera(self, name: str) -> int:
        """Index of a camera by name.

        Raises:
            KeyError: no such camera.
        """
        if name not in self.names:
            raise KeyError(f"no camera {name!r}; there are {', '.join(self.names)}")
        return self.names.index(name)


@dataclass(frozen=True, eq=False)
class LightLog:
    """Lights at the states of a StateLog: sun (N, 3) each and sky (N, 3, 3).

    Attributes:
        sun_direction: unit, along which sunlight travels.
        sun_color: linear RGB times strength.
        sky: zenith, horizon and ground (rows), each linear RGB times strength.
    """

    sun_direction: F8
    sun_color: F8
    sky: F8

    def __repr__(self) -> str:
        return f"<LightLog: {len(self.sky)} states>"

    def rows(self, index: Any) -> LightLog:
        """The chosen states."""
        return LightLog(self.sun_direction[index], self.sun_color[index], self.sky[index])


@dataclass(frozen=True, eq=False)
class WorldLog:
    """Everything a world tells of a stretch of time: rows of the logs belong together."""

    state: StateLog
    cameras: CameraLog
    lights: LightLog
    contacts: Contacts = field(default_factory=Contacts.empty)
    events: Events = ()

    def __repr__(self) -> str:
        return f"<WorldLog: {self.state!r}, {self.contacts!r}, {len(self.events)} events>"

    def __len__(self) -> int:
        return len(self.state)

    def rows(self, index: Any) -> WorldLog:
        """The chosen states, with all contacts and events."""
        return WorldLog(
            self.state.rows(index),
            self.cameras.rows(index),
            self.lights.rows(index),
            self.contacts,
            self.events,
        )

    @staticmethod
    def concatenate(logs: Sequence[WorldLog]) -> WorldLog:
        """Join consecutive logs of one world; events are merged and sorted by detection."""
        cameras = CameraLog(
            logs[0].cameras.names,
            np.concatenate([x.cameras.fov_y for x in logs]),
            np.concatenate([x.cameras.T_world_camera for x in logs]),
        )
        lights = LightLog(
            np.concatenate([x.lights.sun_direction for x in logs]),
            np.concatenate([x.lights.sun_color for x in logs]),
            np.concatenate([x.lights.sky for x in logs]),
        )
        return WorldLog(
            StateLog.concatenate([x.state for x in logs]),
            cameras,
            lights,
            Contacts.concatenate([x.contacts for x in logs]),
            tuple(e for x in logs for e in x.events),
        )


@dataclass(frozen=True, eq=False)
class Clip:
    """Pictures with their times, from a reference or a candidate.

    Attributes:
        frames: (T, H, W, 3) uint8, sRGB.
        times: (T,) exact times [s].
        record: what the maker knows of the truth behind the frames (simulator-backed candidates:
            a `WorldLog` whose row i is frame i's state); None for a model.
    """

    frames: U1
    times: tuple[Fraction, ...]
    record: WorldLog | None = None

    def __post_init__(self) -> None:
        frames = self.frames
        if frames.ndim != 4 or frames.shape[-1] != 3 or frames.dtype != np.uint8:
            raise ValueError(
                f"a clip's frames are (T, H, W, 3) uint8; got {frames.shape} {frames.dtype}"
            )
        if len(self.times) != len(frames):
            raise ValueError(f"{len(frames)} frames but {len(self.times)} times")
        if self.record is not None and len(self.record) != len(frames):
            raise ValueError(f"{len(frames)} frames but {len(self.record)} recorded states")

    def __len__(self) -> int:
        return len(self.frames)

    @staticmethod
    def concatenate(clips: Sequence[Clip]) -> Clip:
        """Join consecutive clips; the record survives only where every part has one."""
        records = [c.record for c in clips if c.record is not None]
        return Clip(
            np.concatenate([c.frames for c in clips]),
            tuple(t for c in clips for t in c.times),
            WorldLog.concatenate(records) if len(records) == len(clips) else None,
        )
