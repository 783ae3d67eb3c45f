"""SHA256SUMS of a folder, in the form that ``sha256sum -c`` reads."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from wmeval.errors import UserError
from wmeval.jobs.atomic import write_text

NAME = "SHA256SUMS"
_LINE = re.compile(r"([0-9a-f]{64})  ([^\n\0]+)")


def sha256_of(path: Path) -> str:
    """Sha256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _files(folder: Path) -> list[str]:
    names = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
    # Hidden names are of writers at work or of the system.
    return sorted(n for n in names if n != NAME and not n.split("/")[-1].startswith("."))


def write_checksums(folder: str | Path) -> Path:
    """List every file below a folder; call it last, when the folder is complete.

    Returns:
        The file SHA256SUMS.

    Raises:
        UserError: disk full or not writable.
    """
    folder = Path(folder)
    lines = [f"{sha256_of(folder / name)}  {name}\n" for name in _files(folder)]
    write_text(folder / NAME, "".join(lines))
    return folder / NAME


def check_checksums(folder: str | Path) -> list[str]:
    """Compare a folder with its SHA256SUMS.

    Returns:
        One sentence per file that is missing, changed or not listed.

    Raises:
        UserError: there is no SHA256SUMS.
    """
    folder = Path(folder)
    sums = folder / NAME
    if not sums.is_file():
        raise UserError(f"{sums}: there is no such file.")
    content = sums.read_bytes()
    lines = content.decode("utf-8", "replace").split("\n")
    listed: dict[str, str] = {}
    problems = []
    if content and lines[-1]:
        problems.append(f"{sums}: cut off in its last line.")
    for number, line in enumerate(lines[:-1], 1):
        match = _LINE.fullmatch(line)
        if match is None:
            problems.append(f"{sums}: line {number} is no checksum and name.")
        else:
            listed[match[2]] = match[1]
    for name, sha256 in listed.items():
        path = folder / name
        if Path(name).is_absolute() or ".." in Path(name).parts:
            problems.append(f"{sums}: {name!r} lies outside the folder.")
        elif not path.is_file():
            problems.append(f"{path}: is listed in {NAME} but missing.")
        elif sha256_of(path) != sha256:
            problems.append(f"{path}: checksum does not match {NAME}.")
    problems += [
        f"{folder / name}: is not listed in {NAME}."
        for name in _files(folder)
        if name not in listed
    ]
    return problems
