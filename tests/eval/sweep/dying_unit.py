"""A unit of a sweep whose process dies, for tests of what that costs."""

import os
import signal

from wmeval.eval.sweep.sweeping import run_unit


def run_or_die(unit, *, out, limit):
    if unit[0] == "cell" and unit[1].family == "pendulum":
        os.kill(os.getpid(), signal.SIGKILL)
    return run_unit(unit, out=out, limit=limit)
