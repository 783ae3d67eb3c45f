"""A sweep's folder: a cell is sealed when its file stands there; results are made from them.

``cells/KEY.npz`` holds bodies' poses and markers at 30 Hz, the faces between markers, the course
that is compared, and all vertices at a few instants for pictures; ``cells/KEY.json``, written last,
the result. Keys stand for cell, versions and cards: a newer engine never meets an older one's
numbers.
"""

from __future__ import annotations

import io
import json
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue, TypeAdapter, ValidationError

from wmeval.envs.gauge.build import Built
from wmeval.envs.gauge.markers import followers
from wmeval.errors import UserError
from wmeval.eval.results import dumps
from wmeval.eval.sweep.cells import CellResult
from wmeval.jobs.atomic import FolderKind, write_bytes, write_text
from wmeval.records import StateLog, WorldLog

Rows = list[dict[str, JsonValue]]
SWEEP_FOLDER = FolderKind(
    files=r"sweep\.json|results\.(json|parquet)|report\.html|(cells|conformance)/[^/]+\.(json|npz)",
    marks={r"sweep\.json": "wmeval-sweep", r"results\.json": "wmeval"},
)
STRIP_FRAMES = 6
"""Instants of which all vertices are kept, for film strips."""


def strip_rows(frames: int) -> list[int]:
    """Which frames those are."""
    return sorted({round(k) for k in np.linspace(0, frames - 1, min(STRIP_FRAMES, frames))})


def marker_arrays(built: Built, state: StateLog) -> dict[str, NDArray[Any]]:
    """Markers in every recorded frame, with the faces between them; empty where none are worn.

    ``markers`` (N, M, 3) [m], ``marker_faces`` (F, 3) and ``marker_faces_published`` (F, 3).
    """
    worn = built.markers
    if worn is None:
        return {}
    try:
        track = followers(built.scene, built.meshes, worn).track(state)
    except UserError:  # a cell of another size, on which no marker has its place
        return {}
    return {
        "markers": track,
        "marker_faces": worn.faces,
        "marker_faces_published": worn.published_faces,
    }


def seal(
    folder: Path, result: CellResult, log: WorldLog | None = None,
    more: Mapping[str, NDArray[Any]] | None = None,
) -> None:  # fmt: skip
    """Write a cell's states and then its result.

    Args:
        folder: of the sweep.
        result: what became of it.
        log: what was recorded; None where there is nothing.
        more: what else is kept, as `wmeval.eval.sweep.running.run_cell` gives it.
    """
    arrays: dict[str, NDArray[Any]] = dict(more or {})
    if log is not None:
        state = log.state
        arrays |= {
            "times": state.times,
            "position": state.position,
            "quaternion_wxyz": state.quaternion_wxyz.astype(np.float32),
            "strip": np.array(strip_rows(len(state))),
            # Cameras and light of these scenes stand still.
            "fov_y": log.cameras.fov_y[0],
            "T_world_camera": log.cameras.T_world_camera[0],
            "sun_direction": log.lights.sun_direction[0],
            "sun_color": log.lights.sun_color[0],
            "sky": log.lights.sky[0],
        }
        for name, x in state.vertices.items():
            arrays[f"vertices/{name}"] = x[arrays["strip"]].astype(np.float32)
    if arrays:
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        write_bytes(folder / "cells" / f"{result.key}.npz", stream.getvalue())
    write_text(folder / "cells" / f"{result.key}.json", dumps(result))


def sealed(folder: Path, key: str) -> CellResult | None:
    """A finished cell; None where it is not, or its file is damaged."""
    path = folder / "cells" / f"{key}.json"
    try:
        return CellResult.model_validate_json(path.read_text("utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None


def arrays_of(folder: Path, key: str) -> dict[str, NDArray[Any]]:
    """States of a sealed cell; empty where there are none."""
    path = folder / "cells" / f"{key}.npz"
    try:
        with np.load(path, allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except (OSError, ValueError, EOFError, zipfile.BadZipFile, zlib.error):
        return {}


def _suite_file(folder: Path, key: str) -> Path:
    return folder / "conformance" / f"{key}.json"


def seal_suite(folder: Path, key: str, rows: Rows) -> None:
    """Write what a suite of conformance came to."""
    write_text(_suite_file(folder, key), json.dumps(rows, indent=1) + "\n")


def sealed_suite(folder: Path, key: str) -> Rows | None:
    """Rows of a finished suite; None where it is not, or its file is damaged."""
    try:
        return _ROWS.validate_json(_suite_file(folder, key).read_text("utf-8"))
    except (OSError, UnicodeDecodeError, ValidationError):
        return None


_ROWS: TypeAdapter[Rows] = TypeAdapter(Rows)


def take_over(folder: Path, part: Path, keys: Iterable[str]) -> None:
    """Copy a shard's sealed cells, by their keys, and its suites into a folder."""
    for key in keys:
        # The result last: it says that the states are there.
        for path in (part / "cells" / f"{key}{end}" for end in (".npz", ".json")):
            if path.is_file():
                write_bytes(folder / "cells" / path.name, path.read_bytes())
    for path in sorted((part / "conformance").glob("[!.]*.json")):
        write_bytes(folder / "conformance" / path.name, path.read_bytes())
