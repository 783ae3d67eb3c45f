"""Programs of others, which end with the process that asked for them, whatever becomes of it.

A launcher is a shell script, which starts another program: to kill it alone would leave that
running. So a guard (`guard.py`) stands between, and kills the whole process group when the program
ends, when its time is over, and when the one who asked is gone, by SIGKILL too.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO

_GUARD = Path(__file__).with_name("guard.py")


def run_guarded(
    arguments: Sequence[str],
    folder: str | Path,
    printed: IO[bytes],
    *,
    limit: float,
    environment: Mapping[str, str] | None = None,
) -> int | None:
    """Run a program to its end.

    Args:
        arguments: the program and what it is given.
        folder: where it runs; removed should this process die first.
        printed: file that gets what it prints.
        limit: time-out [s].
        environment: its variables; None: this process's.

    Returns:
        Its exit code, the negative number of the signal that killed it, or None after the time-out.

    Raises:
        OSError: it cannot be started.
    """
    read_end, write_end = os.pipe()
    try:
        guard = subprocess.Popen(
            [sys.executable, "-I", "-S", str(_GUARD), str(read_end), str(folder), *arguments],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=printed, cwd=folder,
            env=None if environment is None else dict(environment), pass_fds=(read_end,),
            start_new_session=True,
        )  # fmt: skip
    except BaseException:
        os.close(write_end)
        raise
    finally:
        os.close(read_end)
    said = b""
    try:
        said, _ = guard.communicate(timeout=limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        with contextlib.suppress(BrokenPipeError):
            os.write(write_end, b".")
        guard.wait()
        os.close(write_end)
        assert guard.stdout is not None
        guard.stdout.close()
    text = said.decode().strip()
    if text.startswith("!"):
        number = int(text[1:])
        raise OSError(number, os.strerror(number))
    return int(text) if text else -9


__all__ = ["run_guarded"]
