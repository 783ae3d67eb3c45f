"""Motion capture on disk: JSON alone, or HDF5 with a JSON header."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from wmeval.datasets.location import locate
from wmeval.datasets.mocap.schema import ARRAYS, Header, Mocap, Trial, Units, make_trial
from wmeval.errors import UserError, first_problem, what_of
from wmeval.jobs.ledger import canonical

RATES = 2.0
"""By how much a header's rate and the trials' times may differ: frames may be missing."""
MOST_BYTES = 1 << 30
"""Largest JSON file that is read."""

_ATTRIBUTE = "wmeval-mocap"
_JSON, _HDF5 = (".json",), (".h5", ".hdf5")


def _kind(path: str | Path) -> str:
    suffix = Path(str(path)).suffix.lower()
    if suffix in _JSON:
        return "json"
    if suffix in _HDF5:
        return "hdf5"
    raise UserError(f"{path}: motion capture is stored as .json or .h5")


def _written_header(mocap: Mocap) -> Header:
    """The header of what is in memory: SI, z up, its uncertainties with it."""
    scale = {"m": 1.0, "cm": 1e-2, "mm": 1e-3}[mocap.header.units.length]
    turn = {"rad": 1.0, "deg": math.pi / 180}[mocap.header.units.angle]
    old = mocap.header.uncertainty
    return mocap.header.model_copy(
        update={
            "units": Units(),
            "up": "z",
            "uncertainty": old.model_copy(
                update={
                    "position": None if old.position is None else old.position * scale,
                    "marker": None if old.marker is None else old.marker * scale,
                    "rotation": None if old.rotation is None else old.rotation * turn,
                }
            ),
        }
    )


def _present(trial: Trial) -> dict[str, Any]:
    """Arrays that are written: orientations only where some are measured."""
    return {
        key: array
        for key in ARRAYS
        if (array := getattr(trial, key)) is not None
        and array.shape[1]
        and not (key == "quaternions_wxyz" and np.isnan(array).all())
    }


def write_mocap(mocap: Mocap, path: str | Path) -> str:
    """Write a recording, whole or not at all; the same recording gives the same bytes.

    Args:
        mocap: what to write; it is stored in SI units, z up.
        path: file or fsspec URL, ending in .json or .h5.

    Returns:
        The path or URL.

    Raises:
        UserError: another ending, no trial or one twice, disk full, not writable.
    """
    kind = _kind(path)
    _checked(mocap.header, list(mocap.trials), str(path))
    place = locate(path)
    header = _written_header(mocap).model_dump(mode="json", exclude_none=True)
    if kind == "json":
        place.write([canonical({**header, "trials": [_listed(t) for t in mocap.trials]}).encode()])
        return place.url
    import h5py

    with h5py.File("mocap", "w", driver="core", backing_store=False) as file:
        file.attrs[_ATTRIBUTE] = canonical(header)
        for number, trial in enumerate(mocap.trials):
            group = file.create_group(f"trials/{number:05d}")
            group.attrs["name"] = trial.name
            group.attrs["metadata"] = canonical(dict(trial.metadata))
            for key, array in {"times": trial.times, **_present(trial)}.items():
                group.create_dataset(
                    key, data=array, compression="gzip", shuffle=True, fletcher32=True
                )
        file.flush()
        content = file.id.get_file_image()
    place.write([content])
    return place.url


def _listed(trial: Trial) -> dict[str, Any]:
    def listed(value: Any) -> Any:
        if isinstance(value, list):
            return [listed(v) for v in value]
        return value if math.isfinite(value) else None

    out: dict[str, Any] = {"name": trial.name, "times": listed(trial.times.tolist())}
    if trial.metadata:
        out["metadata"] = dict(trial.metadata)
    return out | {key: listed(array.tolist()) for key, array in _present(trial).items()}


def read_mocap(path: str | Path) -> Mocap:
    """Read a recording in any of the schema's units; in memory it is SI, z up.

    Args:
        path: file or fsspec URL, ending in .json or .h5.

    Raises:
        UserError: no such file, another format, or a wrong field; the message says which.
    """
    kind = _kind(path)
    with locate(path).open() as stream:
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise UserError(f"{path}: larger than {MOST_BYTES >> 20} MiB: split its trials")
    return _from_json(content, str(path)) if kind == "json" else _from_hdf5(content, str(path))


def _header(raw: object, path: str) -> Header:
    try:
        return Header.model_validate(raw)
    except ValidationError as error:
        raise UserError(f"{path}: {first_problem(error)}") from error


def _from_json(content: bytes, path: str) -> Mocap:
    try:
        raw = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: no JSON: {error}") from error
    trials = raw.pop("trials", None) if isinstance(raw, dict) else None
    header = _header(raw, path)
    if not isinstance(trials, list) or not all(isinstance(t, dict) for t in trials):
        raise UserError(f"{path}: trials must be a list of objects")
    made = []
    for number, trial in enumerate(trials):
        name, times = trial.pop("name", str(number)), trial.pop("times", None)
        metadata = trial.pop("metadata", {})
        if times is None or not isinstance(metadata, dict):
            raise UserError(f"{path}: trial {name!r}: times are missing, or metadata is no object")
        made.append(
            make_trial(header, str(name), times, trial, metadata=metadata, where=f"{path}: ")
        )
    return _checked(header, made, path)


def _from_hdf5(content: bytes, path: str) -> Mocap:
    import h5py

    try:
        with h5py.File(io.BytesIO(content), "r") as file:
            if _ATTRIBUTE not in file.attrs:
                raise UserError(f"{path}: has no attribute {_ATTRIBUTE!r}: no motion capture")
            header = _header(json.loads(file.attrs[_ATTRIBUTE]), path)
            made = []
            for number in sorted(file.get("trials", {})):
                group = file["trials"][number]
                arrays = {key: np.asarray(group[key][()]) for key in group}
                times = arrays.pop("times", None)
                if times is None:
                    raise UserError(f"{path}: trials/{number} has no times")
                made.append(
                    make_trial(
                        header,
                        str(group.attrs.get("name", number)),
                        times,
                        arrays,
                        metadata=json.loads(group.attrs.get("metadata", "{}")),
                        where=f"{path}: ",
                    )
                )
    except (OSError, RuntimeError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"{path}: no readable HDF5: {what_of(error)}") from error
    return _checked(header, made, path)


def _checked(header: Header, trials: list[Trial], path: str) -> Mocap:
    if not trials:
        raise UserError(f"{path}: holds no trial: a recording has one or more")
    names = [t.name for t in trials]
    twice = next((n for n in names if names.count(n) > 1), None)
    if twice is not None:
        raise UserError(f"{path}: trial {twice!r} stands twice")
    _check_rate(header, trials, path)
    return Mocap(header, tuple(trials))


def _check_rate(header: Header, trials: list[Trial], path: str) -> None:
    for trial in trials:
        if header.rate is None or len(trial) < 2:
            continue
        own = 1 / float(np.median(np.diff(trial.times)))
        if not 1 / RATES <= own / header.rate <= RATES:
            raise UserError(
                f"{path}: trial {trial.name!r}: its times are {own:.4g} frames a second, the "
                f"header says {header.rate:.4g}: are the times in seconds?"
            )
