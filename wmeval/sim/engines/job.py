"""Whole jobs for simulators that are programs of their own: one file in, one file out.

A simulator's own Python is given a *job* file and answers with a *states* file. Both are NumPy
archives (``.npz``) without pickles: the member ``header`` is a JSON text as bytes, the others are
the arrays that it and `docs/reference/jobs.md` name. SI units, z up, quaternions ``wxyz``. What
comes back is checked before anything is made of it: that it answers this very job, whole and
unaltered, in these units, at the states asked for, in the shapes of the scene; that what is led
was led; that the first state is the scene's.
"""

from __future__ import annotations

import hashlib
import json
import os
import signal
import tempfile
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError, one_line
from wmeval.jobs.guarded import run_guarded
from wmeval.jobs.worker import Kind, WorkerError

Arrays = dict[str, NDArray[Any]]
JOB, STATES = "wmeval-job/1", "wmeval-states/1"
UNITS = {"length": "m", "mass": "kg", "time": "s", "angle": "rad"}
MAX_BYTES = 1 << 34
"""Of a states file, unpacked."""
PLACE, TURN = 1e-3, 1e-2
"""How far [m], [rad] what is known beforehand may be from where it is said to be."""
BODY_ARRAYS = {
    "position": 3, "quaternion_wxyz": 4, "linear_velocity": 3, "angular_velocity": 3,
}  # fmt: skip
_SAYS = "wmeval: "
"""A worker's own last words begin with this."""
_DROPPED = ("PYTHONPATH", "PYTHONHOME", "PYTHONSTARTUP", "VIRTUAL_ENV")


@dataclass(frozen=True)
class Asked:
    """What a job asks for.

    Attributes:
        simulator: how the answer's simulator must be called.
        sha256: of the job's arrays and header.
        states: wanted, ascending.
        bodies: how many; ``vertices``: of each deformable.
        first: (B, 7) position and quaternion of every body at state 0; None after settling.
        led: scene indices, with their poses (N, L, 7) at the wanted states.
    """

    simulator: str
    sha256: str
    states: tuple[int, ...]
    bodies: int
    vertices: Mapping[str, int]
    first: NDArray[np.float64] | None
    led: tuple[tuple[int, ...], NDArray[np.float64]]


@dataclass(frozen=True, eq=False)
class Answer:
    """A states file, checked.

    Attributes:
        arrays: ``position`` (N, B, 3) ... and ``vertices/NAME`` (N, V, 3).
        version: of the simulator.
        build_s, run_s: until state 0 and from there [s].
        about: whatever else the simulator says of how it solved.
    """

    arrays: Arrays
    version: str
    build_s: float
    run_s: float
    about: dict[str, Any]


def digest(header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Sha256 over a header and all arrays: names, types, shapes, bytes."""
    made = hashlib.sha256(json.dumps(dict(header), sort_keys=True).encode())
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        made.update(f"{name}|{array.dtype.str}|{array.shape}".encode())
        made.update(array.tobytes())
    return made.hexdigest()


def write_job(path: Path, header: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> str:
    """Write a job file; returns its digest, which stands in it and in the answer."""
    full = {"format": JOB, "units": UNITS, **header}
    sha256 = digest(full, arrays)
    text = json.dumps({**full, "sha256": sha256}).encode()
    members: dict[str, Any] = {"header": np.frombuffer(text, np.uint8), **arrays}
    with path.open("wb") as file:
        np.savez(file, **members)
    return sha256


def read_members(path: Path) -> tuple[dict[str, Any], Arrays]:
    """Header and arrays of a job or states file.

    Raises:
        ValueError: it is none, cut short, or too large.
    """
    try:
        with zipfile.ZipFile(path) as packed:
            size = sum(i.file_size for i in packed.infolist())
            if size > MAX_BYTES:
                raise ValueError(f"it unpacks to {size} bytes, over the limit of {MAX_BYTES}")
        with np.load(path, allow_pickle=False) as found:
            arrays = {name: found[name] for name in found.files}
        header = json.loads(bytes(arrays.pop("header").tobytes()))
    except (OSError, EOFError, KeyError, zipfile.BadZipFile, json.JSONDecodeError) as error:
        raise ValueError(f"it is no whole file ({error})") from error
    if not isinstance(header, dict):
        raise ValueError("its header is no object")
    return header, arrays


# --- what comes back ------------------------------------------------------------------------------


def read_answer(path: Path, asked: Asked) -> Answer:
    """Read and check a states file.

    Numbers that are not finite pass, in states of bodies and deformables: a solver that blew up is
    no broken file. All else must be.

    Raises:
        ValueError: it is not the answer to the job; the message says what is wrong where.
    """
    header, arrays = read_members(path)
    if header.get("format") != STATES:
        raise ValueError(f"its format is {header.get('format')!r}, not {STATES!r}")
    if header.get("job") != asked.sha256:
        raise ValueError("it answers another job")
    who = header.get("simulator")
    if not isinstance(who, dict) or who.get("name") != asked.simulator:
        raise ValueError(f"it is of {who!r}, not of {asked.simulator}")
    if header.get("units") != UNITS:
        raise ValueError(f"its units are {header.get('units')!r}, not {UNITS!r}")
    said = header.pop("sha256", None)
    if digest(header, arrays) != said:
        raise ValueError("its checksum does not fit its numbers")
    _check_shapes(arrays, asked)
    _check_known(arrays, asked)
    seconds = header.get("seconds")
    if not isinstance(seconds, dict) or not all(
        isinstance(seconds.get(k), int | float) and 0 <= seconds[k] < 1e9 for k in ("build", "run")
    ):
        raise ValueError(f"its seconds are {seconds!r}: build and run are wanted")
    about = header.get("about", {})
    return Answer(
        arrays, str(who.get("version", "")), float(seconds["build"]), float(seconds["run"]),
        about if isinstance(about, dict) else {},
    )  # fmt: skip


def _check_shapes(arrays: Arrays, asked: Asked) -> None:
    n = len(asked.states)
    wanted: dict[str, tuple[int, ...]] = {"states": (n,)}
    wanted |= {name: (n, asked.bodies, size) for name, size in BODY_ARRAYS.items()}
    wanted |= {f"vertices/{name}": (n, count, 3) for name, count in asked.vertices.items()}
    for name, shape in wanted.items():
        if name not in arrays:
            raise ValueError(f"it lacks {name}")
        if arrays[name].shape != shape:
            raise ValueError(f"{name} has the shape {arrays[name].shape}, not {shape}")
        kind = arrays[name].dtype.kind
        if kind != ("i" if name == "states" else "f"):
            raise ValueError(f"{name} has the type {arrays[name].dtype}")
    extra = sorted(set(arrays) - set(wanted))
    if extra:
        raise ValueError(f"it holds {extra[0]}, which nobody asked for")
    if tuple(arrays["states"].tolist()) != asked.states:
        raise ValueError("its states are not the ones asked for")


def _check_known(arrays: Arrays, asked: Asked) -> None:
    """Quaternions are unit, the first state is the scene's, what is led is where it was led."""
    norm = np.linalg.norm(arrays["quaternion_wxyz"], axis=2)
    if float(np.abs(norm[np.isfinite(norm)] - 1).max(initial=0.0)) > PLACE:
        raise ValueError("quaternion_wxyz holds quaternions whose length is not 1")
    poses = np.concatenate([arrays["position"], arrays["quaternion_wxyz"]], axis=2)
    if asked.first is not None:
        _same(poses[0], asked.first, "body {} is not where the scene begins")
    bodies, led = asked.led
    for k, body in enumerate(bodies):
        _same(poses[:, body], led[:, k], f"body {body}, which is led, is elsewhere in row {{}}")


def _same(found: NDArray[Any], wanted: NDArray[Any], what: str) -> None:
    """Whether poses (N, 7) agree; ``what`` is told with the number of the worst."""
    away = np.linalg.norm(found[:, :3] - wanted[:, :3], axis=1)
    cosine = np.abs((found[:, 3:] * wanted[:, 3:]).sum(axis=1))
    turned = 2 * np.arccos(np.clip(cosine, 0.0, 1.0))
    wrong = ~((away <= PLACE) & (turned <= TURN))
    if wrong.any():
        k = int(np.flatnonzero(wrong)[0])
        raise ValueError(
            f"{what.format(k)} ({away[k]:.3g} m and {turned[k]:.3g} rad off): units, axes, or the "
            "order of numbers differ"
        )


# --- running --------------------------------------------------------------------------------------


def run_job(
    name: str,
    python: str,
    worker: Path,
    header: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    asked: Asked,
    *,
    limit: float,
) -> Answer:
    """Let a simulator's Python do a job.

    Args:
        name: of the simulator, for messages.
        python: its interpreter.
        worker: script that is given the paths of the job and of the states to be written.
        header: what it asks for.
        arrays: of numbers, as the header names them.
        asked: what the answer is checked against; its ``sha256`` is filled in here.
        limit: time-out [s].

    Raises:
        UserError: the interpreter cannot be run.
        WorkerError: it failed, hung, or answered what is no answer; one line says which.
    """
    with tempfile.TemporaryDirectory(prefix="wmeval-job-") as folder:
        job, states = Path(folder) / "job.npz", Path(folder) / "states.npz"
        sha256 = write_job(job, header, arrays)
        asked = replace(asked, sha256=sha256)
        code, said = _call(name, [python, str(worker), str(job), str(states)], folder, limit)
        # A simulator that wrote its answer whole may do what it likes as it closes.
        if not states.is_file():
            kind: Kind = "error" if code > 0 else "crash"
            raise WorkerError(
                kind,
                one_line(
                    f"{name} {_ended(code)} without an answer"
                    + (f": {last}" if (last := _last(said)) else ", and said nothing")
                ),
                said,
            )
        try:
            return read_answer(states, asked)
        except ValueError as error:
            raise WorkerError("protocol", one_line(f"{name}'s states: {error}"), said) from error


def _call(name: str, arguments: Sequence[str], folder: str, limit: float) -> tuple[int, str]:
    """Exit code, and the end of what was printed."""
    environment = {k: v for k, v in os.environ.items() if k not in _DROPPED}
    with (Path(folder) / "printed").open("w+b") as printed:
        try:
            code = run_guarded(arguments, folder, printed, limit=limit, environment=environment)
        except OSError as error:
            raise UserError(
                f"cannot run {arguments[0]!r} ({error.strerror}): name {name}'s Python"
            ) from error
        printed.seek(0, os.SEEK_END)
        printed.seek(max(0, printed.tell() - 16384))
        said = printed.read().decode(errors="replace")
    if code is None:
        last = _last(said)
        raise WorkerError(
            "timeout",
            one_line(f"{name} gave no answer within {limit:g} s" + (f": {last}" if last else "")),
            said,
        )
    return code, said


def _ended(code: int) -> str:
    if code >= 0:
        return f"ended with code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"


def _last(said: str) -> str:
    """The worker's own last words, or the last line of all."""
    lines = [x.strip() for x in said.splitlines() if x.strip()]
    own = [x.removeprefix(_SAYS) for x in lines if x.startswith(_SAYS)]
    return (own or lines or [""])[-1]


__all__ = [
    "JOB",
    "STATES",
    "UNITS",
    "Answer",
    "Asked",
    "digest",
    "read_answer",
    "read_members",
    "run_job",
    "write_job",
]
