"""``import wmeval`` and the command's first answer, in fresh interpreters."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from typing import Any

REPEATS = 7


def seconds(code: str) -> float:
    """Median wall seconds of a fresh interpreter running code, after one warm-up."""
    times = []
    for _ in range(REPEATS + 1):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
        times.append(time.perf_counter() - began)
    return statistics.median(times[1:])


def measure() -> dict[str, Any]:
    """Seconds over those of an empty interpreter; the aim is below 0.5 s."""
    bare = seconds("pass")
    return {
        "import_wmeval_s": round(seconds("import wmeval") - bare, 3),
        "import_gymnasium_s": round(seconds("import gymnasium") - bare, 3),
        "wmeval_help_s": round(seconds("from wmeval.cli import main; main(['--help'])") - bare, 3),
        "bare_interpreter_s": round(bare, 3),
    }
