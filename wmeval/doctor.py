"""What is installed, which GL driver draws, which engines run, and what mends each absence."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

Status = Literal["ok", "missing", "broken"]


@dataclass(frozen=True)
class Finding:
    """One line of the doctor's table.

    Attributes:
        part: what was looked at.
        status: ok, missing or broken.
        needed: the product's main job cannot do without it.
        detail: version, driver or reason.
        mend: command that mends it; empty when it is ok.
    """

    part: str
    status: Status
    needed: bool
    detail: str
    mend: str = ""


LIMIT = 60.0
"""What a probe may take [s]: then it is killed with all that it started, and told as broken."""

# distribution, needed, extra that brings it
_PACKAGES: tuple[tuple[str, bool, str], ...] = (
    ("numpy", True, ""),
    ("scipy", True, ""),
    ("gymnasium", True, ""),
    ("pybullet", True, ""),
    ("moderngl", True, ""),
    ("trimesh", True, ""),
    ("opencv-python", True, ""),
    ("h5py", True, ""),
    ("zarr", True, ""),
    ("av", True, ""),
    ("pydantic", True, ""),
    ("matplotlib", True, ""),
    ("dtaidistance", False, "metrics"),
    ("ray", False, "ray"),
)

# Run in processes of their own, so that a broken driver or library cannot take the doctor along.
_DRIVER_PROBE = (
    "import moderngl; c = moderngl.create_context(standalone=True, backend='egl', require=330);"
    "print(c.info['GL_RENDERER'], '| GL', c.info['GL_VERSION'])"
)
_CODEC_PROBE = (
    "import av; av.CodecContext.create('libx264', 'w'); print('PyAV', av.__version__, 'libx264')"
)
_ABSENT = "not installed"
_ENGINE_PROBE = (
    "import sys; from wmeval.sim.engines import engine_info; i = engine_info(sys.argv[1]);"
    f"sys.exit('{_ABSENT}') if i.mend else None;"
    "print(i.name, i.version, '|', ', '.join(i.body_kinds), '| deterministic' * i.deterministic)"
)
_BLENDER_LIBRARIES = (
    "apt-get install -y libx11-6 libxrender1 libxfixes3 libxi6 libxkbcommon0 libxext6 libsm6 libgl1"
)


def _probe(
    code: str, *args: str, timeout: float = LIMIT, python: str = sys.executable
) -> tuple[bool, str]:
    """Run Python code in a fresh interpreter: (worked, last line of its output or error)."""
    from wmeval.jobs.installed import ask

    try:
        done = ask([python, "-c", code, *args], timeout)
    except subprocess.TimeoutExpired:
        return False, f"no answer in {timeout:.0f} s"
    except OSError as error:
        return False, f"cannot run {python}: {error.strerror}"
    lines = (done.stdout if done.returncode == 0 else done.stderr).strip().splitlines()
    return done.returncode == 0, lines[-1] if lines else f"exit code {done.returncode}"


def _package(name: str, needed: bool, extra: str) -> Finding:
    try:
        return Finding(name, "ok", needed, importlib.metadata.version(name))
    except importlib.metadata.PackageNotFoundError:
        source = f"pip install 'wmeval[{extra}]'" if extra else "make setup"
        return Finding(name, "missing", needed, "not installed", source)


def _probed(part: str, needed: bool, code: str, mend: str, *args: str) -> Finding:
    worked, line = _probe(code, *args)
    return Finding(part, "ok" if worked else "broken", needed, line, "" if worked else mend)


def _engine(name: str) -> Finding:
    found = _probed(f"engine {name}", name == "bullet", _ENGINE_PROBE, "make setup", name)
    if found.detail == _ABSENT:
        from wmeval.sim.engines import engine_info

        return replace(found, status="missing", mend=engine_info(name).mend)
    return found


def _environment(name: str) -> Finding:
    """An environment of its own: its main module, imported once where it lives."""
    from wmeval.errors import UserError
    from wmeval.jobs.installed import environment, interpreter, mend, version

    row = environment(name)
    part = f"environment {name}"
    try:
        python = interpreter(name)
    except UserError:
        return Finding(part, "missing", False, _ABSENT, mend(name))
    worked, line = _probe(f"import {row.module}", python=python)
    if worked:
        return Finding(part, "ok", False, f"{row.packages[0]} {version(name)}, {python}")
    library = row.module == "bpy" and "cannot open shared object" in line
    return Finding(part, "broken", False, line, _BLENDER_LIBRARIES if library else mend(name))


def parts() -> tuple[str, ...]:
    """Names of what `diagnose` looks at, in its order."""
    from wmeval.jobs.installed import ENVIRONMENTS
    from wmeval.sim.engines import ENGINES

    return (
        "python", "cores", *(name for name, _, _ in _PACKAGES), "GL driver (EGL)", "video codec",
        *(f"environment {name}" for name in ENVIRONMENTS), *(f"engine {name}" for name in ENGINES),
    )  # fmt: skip


def diagnose() -> Iterator[Finding]:
    """Look at every part once, each in `LIMIT` at most.

    Yields:
        One finding per part as soon as it is known, needed ones first within their kind.
    """
    from wmeval.jobs.installed import ENVIRONMENTS
    from wmeval.sim.engines import ENGINES

    version = ".".join(map(str, sys.version_info[:3]))
    checks: list[Callable[[], Finding]] = [
        lambda: Finding("python", "ok", True, version),
        lambda: Finding("cores", "ok", True, str(len(os.sched_getaffinity(0)))),
        *(lambda row=row: _package(*row) for row in _PACKAGES),
        lambda: _probed(
            "GL driver (EGL)",
            True,
            _DRIVER_PROBE,
            "apt-get install -y libegl1 libegl-mesa0 libgl1-mesa-dri",
        ),
        lambda: _probed("video codec", True, _CODEC_PROBE, "pip install --force-reinstall av"),
        *(lambda name=name: _environment(name) for name in ENVIRONMENTS),
        *(lambda name=name: _engine(name) for name in ENGINES),
    ]
    for check in checks:
        yield check()
