"""Starts a program, and ends it with all that it started when the one who asked is gone.

Run by path under any Python with ``-I -S``: it needs nothing but the standard library. Arguments:
the number of a pipe's end, a folder, the program and its own arguments. Who asked holds the other
end: when that closes, by whatever death, the program's process group is killed and the folder
removed; when something comes through it, the group is killed and the folder stays. The program
prints to this process's standard error; standard output says how it ended: its exit code, the
negative number of the signal that killed it, or ``!`` and the errno with which it did not start.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading


def main(end: int, folder: str, arguments: list[str]) -> None:
    """Run it."""
    try:
        process = subprocess.Popen(arguments, stdout=2, start_new_session=True)
    except OSError as error:
        print(f"!{error.errno}", flush=True)
        return
    gone: list[bool] = []

    def watch() -> None:
        gone.append(not os.read(end, 1))
        os.killpg(process.pid, signal.SIGKILL)

    threading.Thread(target=watch, daemon=True).start()
    # It is not reaped before this process ends: until then nobody else gets its number.
    ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert ended is not None
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    if any(gone):
        shutil.rmtree(folder, ignore_errors=True)
    else:
        sign = 1 if ended.si_code == os.CLD_EXITED else -1
        print(sign * ended.si_status, flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3:])
