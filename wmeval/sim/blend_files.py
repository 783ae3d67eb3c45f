"""Blender's own files, read by Blender: a .blend becomes a .glb, once for each content.

What is written is kept beside the installed environments (`wmeval.jobs.installed.home`), under the
hash of the .blend. Materials come as glTF has them: base colour and its picture; what nodes compute
does not come along.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from wmeval.errors import UserError, one_line
from wmeval.jobs.atomic import atomic_file
from wmeval.jobs.installed import home
from wmeval.jobs.worker import WorkerError
from wmeval.sim.blender_worker import BlenderWorker

FOLDER = "converted"
VERSION = 1
"""Of the way of writing; what another one wrote is not used."""
_SERVE = Path(__file__).with_name("blend_serve.py")
_TIMEOUT = 600.0


def as_glb(path: Path) -> Path:
    """The .glb of a .blend.

    Raises:
        UserError: no such file, one that Blender cannot read, no Blender.
    """
    try:
        with path.open("rb") as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise UserError(f"{path}: cannot be read: {error.strerror or error}") from error
    target = home().parent / FOLDER / f"{digest}-{VERSION}.glb"
    if target.is_file():
        return target
    try:
        worker = BlenderWorker(_SERVE, f"reader of {path.name}", timeout=_TIMEOUT)
        try:
            with atomic_file(target) as temporary:
                given = {"source": str(path.absolute()), "target": str(temporary)}
                worker.call("convert", given, {})
        finally:
            worker.close()
    except (UserError, WorkerError) as error:
        raise UserError(f"{path}: {one_line(error)}") from error
    return target
