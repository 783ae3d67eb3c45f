"""Heavy engines in virtual environments of their own, one folder each.

Blender, Newton, Genesis and SAPIEN ask for gigabytes and for versions of shared packages that do
not go together. Each lives apart, made by `install` from the user's own pip settings (index, proxy,
cache), and is used through a worker process (`wmeval.jobs.worker`) that its interpreter runs. An
environment stands in its place only when it is whole: it is made under a temporary name, and the
next `install` removes what a killed one left.

A record beside the packages says what was asked for and which versions came.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from wmeval.errors import UserError, one_line, what_of
from wmeval.jobs.atomic import FolderKind, atomic_dir, claim

HOME_VARIABLE = "WMEVAL_HOME"
"""Names the folder that holds environments, where it is not the user's data folder."""

Progress = Callable[[str], None]

_RECORD = "wmeval-environment.json"
_MARK = "an environment of wmeval"
_KIND = FolderKind(files=r"(?s).*", marks={_RECORD: _MARK})
_ASK = "import importlib.metadata as m, sys; print(m.version(sys.argv[1]))"
_ASK_ALL = (
    "import importlib.metadata as m, json;"
    "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
)
_ASK_PYTHON = "import sys; print('%d.%d' % sys.version_info[:2])"


@dataclass(frozen=True)
class Installable:
    """One environment that `install` can make.

    Attributes:
        name: what ``wmeval install`` calls it; its folder's name.
        summary: what it is for, one line.
        requirements: what pip is asked for, pinned.
        packages: distributions whose versions are shown; the first is the main one.
        module: that it is imported by.
        variable: of the process environment; names an interpreter to use instead.
        size_mb: on disk, about [MB].
        constraints: versions for what the requirements bring along; no others hold here.
        python: release it needs, as "3.11"; "" for any that runs wmeval.
        release: how the main package's version must begin to be taken from the interpreter that
            runs wmeval; "" for any.
        also: environments that serve as well where this one is not there.
        by_hand: how a program that `install` cannot make is installed; "" for all others.
    """

    name: str
    summary: str
    requirements: tuple[str, ...]
    packages: tuple[str, ...]
    module: str
    variable: str
    size_mb: int
    constraints: tuple[str, ...] = ()
    python: str = ""
    release: str = ""
    also: tuple[str, ...] = ()
    by_hand: str = ""


_WORLD = ("pydantic>=2.7", "scipy>=1.11", "trimesh>=4.0")
"""What a whole world needs beside numpy where its drivers run in the environment too."""

ENVIRONMENTS: dict[str, Installable] = {
    row.name: row
    for row in (
        Installable(
            name="blender",
            summary="renderer cycles and engine blender: Blender 4.5 LTS as a module",
            requirements=("bpy==4.5.*", "numpy==1.26.4"),
            packages=("bpy", "numpy"),
            module="bpy",
            variable="WMEVAL_BLENDER_PYTHON",
            size_mb=900,
            python="3.11",
            also=("blender5",),
        ),
        Installable(
            name="blender5",
            summary="the same by Blender 5.0",
            requirements=("bpy==5.0.*", "numpy==1.26.4"),
            packages=("bpy", "numpy"),
            module="bpy",
            variable="WMEVAL_BLENDER5_PYTHON",
            size_mb=900,
            python="3.11",
            release="5.0.",
        ),
        Installable(
            name="newton",
            summary="engine newton: NVIDIA Newton on Warp, with MuJoCo",
            requirements=("newton[sim]==1.8.0", "numpy>=1.26", *_WORLD),
            packages=("newton", "warp-lang", "mujoco", "numpy"),
            module="newton",
            variable="WMEVAL_NEWTON_PYTHON",
            size_mb=1000,
        ),
        Installable(
            name="genesis",
            summary="engine genesis: Genesis on the CPU",
            requirements=("genesis-world==1.4.5", "torch==2.13.0", "numpy>=1.26", *_WORLD),
            packages=("genesis-world", "torch", "numpy"),
            module="genesis",
            variable="WMEVAL_GENESIS_PYTHON",
            size_mb=4200,
        ),
        Installable(
            name="physx",
            summary="engine physx: SAPIEN on PhysX 5",
            requirements=("sapien==3.0.3", "numpy>=1.26", *_WORLD),
            packages=("sapien", "numpy"),
            module="sapien",
            variable="WMEVAL_PHYSX_PYTHON",
            size_mb=700,
        ),
        Installable(
            name="isaac",
            summary="engine isaac: NVIDIA Isaac Sim, a program of its own (NVIDIA GPU)",
            requirements=(),
            packages=("isaacsim",),
            module="isaacsim",
            variable="WMEVAL_ISAAC_PYTHON",
            size_mb=0,
            by_hand="install Isaac Sim 5.1 or 6.0 as its makers say, and name its python.sh by "
            "WMEVAL_ISAAC_PYTHON in the environment, or by option python=",
        ),
    )
}


def environment(name: str) -> Installable:
    """A row of `ENVIRONMENTS`.

    Raises:
        UserError: there is none of this name.
    """
    if name not in ENVIRONMENTS:
        raise UserError(f"no environment {name!r}: choose from {', '.join(ENVIRONMENTS)}")
    return ENVIRONMENTS[name]


def mend(name: str) -> str:
    """How an environment that is not there is got, in words.

    Raises:
        UserError: there is none of this name.
    """
    return environment(name).by_hand or f"wmeval install {name}"


def home() -> Path:
    """Where environments live: ``$WMEVAL_HOME/environments``, else in the user's data folder."""
    named = os.environ.get(HOME_VARIABLE, "")
    if named:
        return Path(named).expanduser().absolute() / "environments"
    data = os.environ.get("XDG_DATA_HOME", "")
    return (Path(data) if data else Path.home() / ".local" / "share") / "wmeval" / "environments"


# --- which interpreter ----------------------------------------------------------------------------


def interpreter(name: str, python: str = "") -> str:
    """The interpreter that serves an environment's package.

    The first of these: the one named; the one that the row's variable names; this one, if it has
    the package; the environment's own.

    Args:
        name: row of `ENVIRONMENTS`.
        python: an interpreter, or the name of another row, which is then asked instead.

    Raises:
        UserError: none has it.
    """
    row = environment(name)
    if python in ENVIRONMENTS:
        row, python = ENVIRONMENTS[python], ""
    named = python or os.environ.get(row.variable, "")
    if named:
        return named
    here = _version_here(row.packages[0])
    if here is not None and here.startswith(row.release):
        return sys.executable
    for each in (row.name, *row.also):
        if recorded(each) is not None:
            return str(_python(home() / each))
    otherwise = "" if row.by_hand else (
        f" (or name an interpreter that has it: option python=, or {row.variable} in the "
        "environment)"
    )  # fmt: skip
    raise UserError(f"{row.packages[0]} is not installed: {mend(row.name)}{otherwise}")


def version(name: str, python: str = "") -> str | None:
    """Version of an environment's main package, without importing it; None where there is none."""
    try:
        found = interpreter(name, python)
    except UserError:
        return None
    package = environment(python if python in ENVIRONMENTS else name).packages[0]
    if found == sys.executable:
        return _version_here(package)
    there = _version_there(found, package)
    if there is None and environment(name).by_hand:
        # A program that is unpacked, not installed by pip, says its version beside its launcher.
        there = _version_beside(Path(found))
    return there


def _version_beside(launcher: Path) -> str | None:
    try:
        words = (launcher.parent / "VERSION").read_text("utf-8").split()
    except (OSError, UnicodeDecodeError):
        return None
    return words[0] if words else None


def recorded(name: str) -> dict[str, Any] | None:
    """What `install` recorded of an environment: "requirements", "constraints", "versions".

    None where it is not installed, or the interpreter that it was made from is gone.
    """
    folder = home() / name
    try:
        record: dict[str, Any] = json.loads((folder / _RECORD).read_text())
    except (OSError, ValueError):
        return None
    return record if os.access(_python(folder), os.X_OK) else None


def _python(folder: Path) -> Path:
    return folder / "bin" / "python"


def _version_here(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


@lru_cache(maxsize=32)
def _version_there(python: str, package: str) -> str | None:
    try:
        return _asked(python, _ASK, package)
    except UserError:
        return None


def ask(arguments: list[str], limit: float) -> subprocess.CompletedProcess[str]:
    """Run a program to its end; after the time-out [s] it is killed with all that it started.

    Raises:
        OSError: it cannot be run.
        subprocess.TimeoutExpired: it took longer.
    """
    process = subprocess.Popen(
        arguments, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, errors="replace", start_new_session=True,
    )  # fmt: skip
    try:
        out, err = process.communicate(timeout=limit)
    except BaseException:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        raise
    return subprocess.CompletedProcess(arguments, process.returncode, out, err)


def _asked(python: str, code: str, *args: str) -> str:
    """What an interpreter prints.

    Raises:
        UserError: it cannot be run, or fails.
    """
    try:
        done = ask([python, "-I", "-c", code, *args], 60.0)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UserError(f"cannot run {python!r} ({what_of(error)}): name a Python") from error
    if done.returncode != 0:
        said = done.stderr.strip().rpartition("\n")[2]
        raise UserError(one_line(f"{python}: {said or 'it failed'}"))
    # A launcher may have words of its own before.
    return done.stdout.strip().rpartition("\n")[2]


# --- installing -----------------------------------------------------------------------------------


def install(
    name: str,
    *,
    python: str | None = None,
    upgrade: bool = False,
    progress: Progress | None = None,
) -> Path:
    """Make an environment, unless it is there as its row says.

    Args:
        name: row of `ENVIRONMENTS`.
        python: interpreter to make it from; None for this one, or what the row needs.
        upgrade: make it anew, with the newest versions that the row allows.
        progress: is told, line by line, what is being done.

    Returns:
        The environment's folder.

    Raises:
        UserError: an unknown name, no fitting interpreter, pip failed, or another run is at it. An
            older environment then stays as it was.
    """
    row = environment(name)
    if row.by_hand:
        raise UserError(f"{name} cannot be installed from here: {row.by_hand}")
    folder = home() / name
    asked = {"requirements": list(row.requirements), "constraints": list(row.constraints)}
    with claim(folder):
        there = recorded(name)
        if not upgrade and there is not None and all(there.get(k) == v for k, v in asked.items()):
            return folder
        base = _base(row, python)
        say = progress or (lambda line: None)
        with atomic_dir(folder, replaces=_KIND, durable=False) as made:
            say(f"making {folder} ({row.size_mb} MB)")
            own = str(_python(made))
            # A pip that is here can serve another interpreter: one fewer to unpack.
            pip_here = importlib.util.find_spec("pip") is not None
            options = ["--prompt", name, *(["--without-pip"] if pip_here else [])]
            _run(row, [base, "-I", "-m", "venv", *options, str(made)], say)
            pip = [sys.executable, "-m", "pip", "--python", own] if pip_here else [own, "-m", "pip"]
            _pip(row, pip, made / "constraints.txt", say)
            versions = json.loads(_asked(own, _ASK_ALL))
            _move(made, folder)
            record = {"what": _MARK, "name": name, **asked, "versions": versions}
            (made / _RECORD).write_text(json.dumps(record, indent=1, sort_keys=True))
    _version_there.cache_clear()
    return folder


def _base(row: Installable, python: str | None) -> str:
    """The interpreter to make an environment from."""
    if python is not None:
        found = _asked(python, _ASK_PYTHON)
        if row.python and found != row.python:
            raise UserError(
                f"{row.packages[0]} needs Python {row.python}; {python} is Python {found}"
            )
        return python
    if row.python in ("", "{}.{}".format(*sys.version_info[:2])):
        return sys.executable
    other = shutil.which(f"python{row.python}")
    try:
        if other is not None and _asked(other, _ASK_PYTHON) == row.python:
            return other
    except UserError:
        pass  # A name without a Python behind it.
    raise UserError(
        f"{row.packages[0]} needs Python {row.python}, and there is no python{row.python}: "
        "install it, or name one with --python"
    )


def _pip(row: Installable, pip: list[str], constraints: Path, say: Progress) -> None:
    # Constraints that pip's settings name are made for other environments.
    constraints.write_text("".join(f"{line}\n" for line in row.constraints))
    arguments = [*pip, "install", "--no-input", "--no-compile", "--disable-pip-version-check"]
    arguments += ["--progress-bar", "off", *row.requirements]
    _run(row, arguments, say, PIP_CONSTRAINT=str(constraints))


def _run(row: Installable, arguments: list[str], say: Progress, **variables: str) -> None:
    """Run a step; its lines are told.

    It writes into a pipe of this process: when this one is killed, it ends at its next line.
    """
    lines: list[str] = []
    with subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env={**os.environ, **variables},
    ) as process:
        try:
            assert process.stdout is not None
            for line in process.stdout:
                lines = [*lines[-200:], line.strip()]
                say(lines[-1])
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        said = [x for x in lines if x.startswith(("ERROR:", "Error:"))] or [x for x in lines if x]
        last = said[-1].removeprefix("ERROR: ") if said else f"exit code {process.returncode}"
        raise UserError(
            one_line(
                f"wmeval install {row.name}: {last}; nothing was installed: look at the network "
                "and at the index that `pip config list` names, and run it again"
            )
        )


def _move(made: Path, folder: Path) -> None:
    """Let scripts and settings name the place where the environment will stand."""
    old, new = os.fsencode(made), os.fsencode(folder)
    for path in (made / "pyvenv.cfg", *(made / "bin").iterdir()):
        if path.is_symlink() or not path.is_file():
            continue
        data = path.read_bytes()
        if old in data and b"\0" not in data:
            path.write_bytes(data.replace(old, new))


__all__ = [
    "ENVIRONMENTS",
    "HOME_VARIABLE",
    "Installable",
    "ask",
    "environment",
    "home",
    "install",
    "interpreter",
    "recorded",
    "version",
]
