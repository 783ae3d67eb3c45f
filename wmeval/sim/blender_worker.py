"""Blender as a worker: which interpreter has `bpy`, how it is started, how its failures read.

`bpy` is never imported in this process: it is GPL-3.0, needs numpy < 2 and takes the whole process
for itself. The worker's scripts need `bpy` and numpy, nothing else.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from wmeval.errors import UserError, one_line
from wmeval.jobs.installed import ENVIRONMENTS, interpreter, mend, version
from wmeval.jobs.worker import Buffers, Header, WorkerClient, WorkerError

ENVIRONMENT = "blender"
PYTHON_VARIABLE = ENVIRONMENTS[ENVIRONMENT].variable
"""Names the interpreter that has `bpy`, where it is not this one."""
INSTALL = mend(ENVIRONMENT)
_START = 180.0


def blender_python(python: str = "") -> str:
    """The interpreter that has `bpy`; see `wmeval.jobs.installed.interpreter`.

    Raises:
        UserError: none has.
    """
    return interpreter(ENVIRONMENT, python)


def bpy_version(python: str = "") -> str | None:
    """Version of `bpy`, without importing it; None where it is not installed."""
    return version(ENVIRONMENT, python)


class BlenderWorker:
    """A worker process that holds one `bpy`.

    Args:
        script: file beside the caller whose ``handlers`` serve.
        what: what messages call it.
        python: its interpreter or environment; "" for `interpreter`'s choice.
        timeout: time-out of a call [s].

    Raises:
        UserError: no `bpy`, or no such interpreter.
        WorkerError: it did not come up.
    """

    def __init__(self, script: Path, what: str, *, python: str = "", timeout: float) -> None:
        self._what = what
        self.python = blender_python(python)
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
                raise UserError(f"{self.python} has no bpy: {INSTALL}") from error
            raise self._read(error) from error

    @property
    def pid(self) -> int:
        """The worker's process."""
        return self._client.pid

    @property
    def lost(self) -> bool:
        """It crashed or hung: it answers no more, and another one is to be made."""
        return self._client.failed

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
