"""CPU time of another process."""

import os
import subprocess
import sys
import time

from wmeval.jobs.cpu import cpu_seconds_of

WORK = """
import threading, time
def spin():
    while time.thread_time() < 0.003:
        pass
for _ in range(3):
    threads = [threading.Thread(target=spin) for _ in range(3)]
    for t in threads: t.start()
    for t in threads: t.join()
print(time.process_time(), flush=True)
input()
print(time.process_time(), flush=True)
input()
"""


def test_it_is_the_process_own_clock_with_threads_that_have_ended() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", WORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        before = float(process.stdout.readline())
        told = cpu_seconds_of(process.pid)
        process.stdin.write("\n")
        process.stdin.flush()
        after = float(process.stdout.readline())
        process.stdin.write("\n")
        process.stdin.flush()
    # The process reads its clock before and after; ticks of 10 ms do not lie between.
    assert told is not None
    assert 9 * 0.003 <= before <= told <= after


def test_of_this_process_it_is_process_time() -> None:
    for pid in (0, os.getpid()):
        before = time.process_time()
        told = cpu_seconds_of(pid)
        assert told is not None
        assert before <= told <= time.process_time()


def test_a_process_that_is_gone_has_none() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    assert cpu_seconds_of(process.pid) is None
