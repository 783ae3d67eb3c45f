"""CPU time of a process, this one or another."""

from __future__ import annotations

import time

_SCHEDULED = 2
"""Linux: the scheduler's own count, in ns; its times of use come in ticks of 10 ms."""


def cpu_seconds_of(pid: int) -> float | None:
    """CPU time so far of a process, of all its threads, ended ones too [s].

    It is the clock that `time.process_time` reads in the process itself, reached from outside as
    clock_getcpuclockid(3) does; 1 ns fine. Children count on their own clocks.

    Args:
        pid: of a process of this machine; 0: this one, which every system tells.

    Returns:
        None where the process is gone, or the system has no such clock.
    """
    if not pid:
        return time.process_time()
    try:
        return time.clock_gettime(~pid << 3 | _SCHEDULED)
    except (OSError, AttributeError, OverflowError):
        return None
