"""Run every benchmark once and write one JSON file: ``python -m benchmarks --out FILE``.

``--brief`` leaves out what takes minutes: whether it runs is a question for a build server, what it
costs one for a quiet machine.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODULES = (
    "startup",
    "physics",
    "environment",
    "scenes",
    "raster",
    "storage",
    "clips",
    "making",
    "sweeps",
    "cycles",
    "http",
)


BRIEF: dict[str, dict[str, Any] | None] = {
    "making": None,
    "cycles": None,
    "sweeps": {"engines": ("bullet", "physx")},
}
"""Arguments of modules in a brief run; None leaves one out."""


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    model = next(
        (line.split(":", 1)[1].strip() for line in Path("/proc/cpuinfo").read_text().splitlines()
         if line.startswith("model name")),
        platform.processor(),
    )  # fmt: skip
    commit = subprocess.run(
        ["git", "rev-parse", "--short", "HEAD"], capture_output=True, text=True, check=False
    ).stdout.strip()
    return {
        "cpu": model,
        "cores": len(os.sched_getaffinity(0)),
        "python": platform.python_version(),
        "commit": commit,
    }


def main() -> None:
    """Measure and write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/latest.json"))
    parser.add_argument("--only", nargs="*", choices=MODULES, default=list(MODULES))
    parser.add_argument("--brief", action="store_true", help="leave out what takes minutes")
    args = parser.parse_args()
    changed = BRIEF if args.brief else {}
    results: dict[str, Any] = {"machine": machine()}
    for name in args.only:
        options = changed.get(name, {})
        if options is None:
            continue
        began = time.perf_counter()
        results[name] = importlib.import_module(f"benchmarks.{name}").measure(**options)
        print(f"{name}: {time.perf_counter() - began:.0f} s", file=sys.stderr)
        print(json.dumps({name: results[name]}, indent=2))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(results, indent=2) + "\n")


if __name__ == "__main__":
    main()
