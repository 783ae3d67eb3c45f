"""Public motion capture that a user may fetch: `get`.

A source is a commit of a git repository. Its id is the checksum of all that the commit holds, and
git verifies every object against it, so that what arrives is what was pinned or nothing.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from wmeval.datasets.checksums import check_checksums, write_checksums
from wmeval.datasets.mocap.contactnets import read_contactnets
from wmeval.datasets.mocap.files import write_mocap
from wmeval.datasets.mocap.schema import Mocap
from wmeval.errors import UserError, one_line
from wmeval.jobs.atomic import FolderKind, atomic_dir, write_text
from wmeval.jobs.installed import home

_RECORD = "source.json"
_TIMEOUT = 1800.0
_KIND = FolderKind(files=r"[\w.-]+", marks={r"source\.json": '"commit"'})


@dataclass(frozen=True)
class Source:
    """A row of `SOURCES`.

    Attributes:
        name: what `get` calls it; ``title``, ``licence``, ``cite``: what users must know.
        url: the repository; ``commit``: its pinned commit, 40 hex digits.
        paths: what is checked out of it.
        keep: files that are stored beside the recording, such as its licence.
        read: turns the checkout into a recording.
        trials: how many trials it holds; None where that is not pinned.
    """

    name: str
    title: str
    licence: str
    cite: str
    url: str
    commit: str
    paths: tuple[str, ...]
    keep: tuple[str, ...]
    read: Callable[[Path], Mocap]
    trials: int | None = None


SOURCES: Mapping[str, Source] = {
    "contactnets": Source(
        name="contactnets",
        title="cube tosses, 6-DoF at 148 Hz",
        licence="BSD-3-Clause",
        cite="Pfrommer, Halm, Posa: ContactNets, CoRL 2020",
        url="https://github.com/DAIRLab/contact-nets",
        commit="3357ba1300b91f27a7d7077d161b05ad54f10dec",
        paths=("data", "LICENSE"),
        keep=("LICENSE", "data/params_processed/experiment.json"),
        read=read_contactnets,
    ),
}


def data_home() -> Path:
    """Where fetched data lie: ``data`` beside the installed environments."""
    return home().parent / "data"


def get(
    name: str,
    target: str | Path | None = None,
    *,
    url: str | None = None,
    progress: Callable[[str], None] | None = None,
    sources: Mapping[str, Source] = SOURCES,
) -> Path:
    """Fetch a public data set and store it as one `wmeval-mocap/1` file with its licence.

    What is there already, whole and of the same commit, is kept. Kill it anywhere: nothing half
    remains.

    Args:
        name: row of ``sources``.
        target: folder; `data_home` / name where none is given.
        url: a mirror of the repository; the commit is the same.
        progress: told what is going on, line by line.
        sources: the table.

    Returns:
        The recording's file.

    Raises:
        UserError: no such source; no git; the commit is not there or not to be reached; the target
            holds something else, or was changed since; disk full.
    """
    if name not in sources:
        raise UserError(f"there is no data set {name!r}: choose from {', '.join(sources)}")
    source = sources[name]
    folder = Path(target) if target is not None else data_home() / name
    file = folder / f"{name}.h5"
    say = progress or (lambda _: None)
    if _is_there(folder, source):
        say(f"{file} is there")
        return file
    with atomic_dir(folder, replaces=_KIND) as new:
        checkout = new / ".checkout"
        say(f"fetching {source.commit[:12]} of {url or source.url}")
        _checkout(source, url or source.url, checkout)
        say("reading it")
        mocap = source.read(checkout)
        if source.trials is not None and len(mocap.trials) != source.trials:
            raise UserError(
                f"{url or source.url}: {len(mocap.trials)} trials; {source.trials} are known"
            )
        write_mocap(mocap, new / f"{name}.h5")
        for path in source.keep:
            if (checkout / path).is_file():
                shutil.copyfile(checkout / path, new / Path(path).name)
        shutil.rmtree(checkout)
        record = {"name": name, "commit": source.commit, "licence": source.licence,
                  "cite": source.cite, "trials": len(mocap.trials)}  # fmt: skip
        write_text(new / _RECORD, json.dumps(record, indent=1) + "\n")
        write_checksums(new)
    say(f"{len(mocap.trials)} trials in {file}")
    return file


def _is_there(folder: Path, source: Source) -> bool:
    try:
        record = json.loads((folder / _RECORD).read_text())
    except (OSError, ValueError):
        return False
    if not isinstance(record, dict) or record.get("commit") != source.commit:
        return False
    wrong = check_checksums(folder)
    if wrong:
        raise UserError(f"{wrong[0]} Remove {folder} and fetch again.")
    return True


def _git(arguments: list[str], folder: Path) -> str:
    environment = {**os.environ, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    # A repository around the target must not be taken for the checkout's own.
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        environment.pop(name, None)
    try:
        done = subprocess.run(
            ["git", "-c", "core.hooksPath=/dev/null", *arguments],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_TIMEOUT,
            check=False,
        )
    except FileNotFoundError as error:
        raise UserError("git is not installed: install it to fetch data") from error
    except subprocess.TimeoutExpired as error:
        raise UserError(f"git {arguments[0]} took longer than {_TIMEOUT:g} s") from error
    if done.returncode:
        raise UserError(f"git {arguments[0]} failed: {one_line(done.stderr or done.stdout, 300)}")
    return done.stdout.strip()


def _checkout(source: Source, url: str, folder: Path) -> None:
    """The pinned commit's files, each verified by its id."""
    folder.mkdir()
    _git(["init", "-q"], folder)
    try:
        _git(["-c", "fetch.fsckObjects=true", "fetch", "-q", "--no-tags", "--depth", "1", url,
              source.commit], folder)  # fmt: skip
    except UserError as error:
        raise UserError(
            f"{source.name}: {url} does not give commit {source.commit[:12]}: {error}"
        ) from error
    found = _git(["rev-parse", "FETCH_HEAD^{commit}"], folder)
    if found != source.commit:
        raise UserError(f"{source.name}: {url} gave commit {found[:12]}, not the pinned one")
    _git(["checkout", "-q", source.commit, "--", *source.paths], folder)
