"""Blender as a worker: which interpreter has `bpy`, how it is started, how its failures read.

`bpy` is never imported in this process: it is GPL-3.0, needs numpy < 2 and takes the whole process
for itself. The worker's scripts need `bpy` and numpy, nothing else.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import subprocess
import sys
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from wmeval.errors import UserError, one_line
from wmeval.jobs.worker import Buffers, Header, WorkerClient, WorkerError

PYTHON_VARIABLE = "WMEVAL_BLENDER_PYTHON"
"""Names the interpreter that has `bpy`, where it is not this one."""
INSTALL = "pip install 'wmeval[blender]'"
_START = 180.0
_MISSING = (
    f"bpy is not installed: {INSTALL}, or name an interpreter that has it (option python=, or "
    f"{PYTHON_VARIABLE} in the environment)"
)
_ASK_VERSION = "import importlib.metadata as m; print(m.version('bpy'))"


def interpreter(python: str = "") -> str:
    """The interpreter that has `bpy`: the one named, the environment's, or this one.

    Raises:
        UserError: none is named, and this one has no `bpy`.
    """
    named = python or os.environ.get(PYTHON_VARIABLE, "")
    if named:
        return named
    if importlib.util.find_spec("bpy") is None:
        raise UserError(_MISSING)
    return sys.executable


@lru_cache(maxsize=8)
def _version(python: str) -> str:
    """Version of `bpy` in an interpreter; "" where there is none."""
    if python == sys.executable:
        return importlib.metadata.version("bpy")
    try:
        done = subprocess.run(
            [python, "-I", "-c", _ASK_VERSION],
            capture_output=True,
            text=True,
            timeout=60.0,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""


def bpy_version(python: str = "") -> str | None:
    """Version of `bpy`, without importing it; None where it is not installed."""
    try:
        return _version(interpreter(python)) or None
    except UserError:
        return None


class BlenderWorker:
    """A worker process that holds one `bpy`.

    Args:
        script: file beside the caller whose ``handlers`` serve.
        what: what messages call it.
        python: its interpreter; "" for `interpreter`'s choice.
        timeout: time-out of a call [s].

    Raises:
        UserError: no `bpy`, or no such interpreter.
        WorkerError: it did not come up.
    """

    def __init__(self, script: Path, what: str, *, python: str = "", timeout: float) -> None:
        self._what = what
        self.python = interpreter(python)
        try:
            self._client = WorkerClient(
                f"{script}:handlers",
                name=what,
                python=self.python,
                timeout=timeout,
                start_timeout=_START,
                max_bytes=1 << 36,
                one_thread=False,
            )
        except WorkerError as error:
            if "No module named 'bpy'" in error.printed:
                raise UserError(f"{self.python}: {_MISSING}") from error
            raise self._read(error) from error

    @property
    def pid(self) -> int:
        """The worker's process."""
        return self._client.pid

    def call(
        self, verb: str, header: Mapping[str, Any], buffers: Mapping[str, NDArray[Any]]
    ) -> tuple[Header, Buffers]:
        """Ask for one thing and wait for the answer.

        Raises:
            UserError: the request is at fault.
            WorkerError: Blender crashed, hung or refused; one line says how it ended.
        """
        try:
            return self._client.call(verb, header, buffers)
        except WorkerError as error:
            raise self._read(error) from error
        except UserError:
            raise
        except BaseException:
            # Interrupted in the middle of an answer: nothing that comes after can be trusted.
            self._client.kill()
            raise

    def _read(self, error: WorkerError) -> WorkerError:
        """The same failure in one line."""
        mend = {
            "timeout": "; allow more with timeout=, or ask for less",
            "crash": "; was memory short? run it again",
            "start": "; `wmeval doctor` says what it lacks",
        }.get(error.kind, "")
        last = one_line(error.printed.rpartition("\n")[2], 200)
        said = f"; it printed last: {last}" if last else ""
        what = error.what if error.kind != "error" else error.what.strip().rpartition("\n")[2]
        name = "" if self._what in what else f"{self._what}: "
        return WorkerError(error.kind, one_line(f"{name}{what}{said}{mend}"))

    def close(self) -> None:
        """End it; idempotent."""
        self._client.close()
