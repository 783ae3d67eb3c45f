"""The bytes of a user's asset: its file, and those that it names, as one digest."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote

from wmeval.errors import UserError, what_of

_OBJ_NAMES = ("mtllib", "map_", "bump", "disp", "decal", "refl", "norm")
"""First words of the lines of .obj and .mtl files that end with the name of another file."""


def asset_digest(path: Path, what: str) -> str:
    """Sha256 over a file and the files that it names: buffers, materials, pictures.

    It is remembered while size and times of the files stay.

    Args:
        path: of the file.
        what: it is of, for messages.

    Raises:
        UserError: the file is not there or cannot be read.
    """
    try:
        return _digest(tuple(_stamp(file) for file in (path, *_named(path))))
    except FileNotFoundError:
        raise UserError(f"{what}: {path}: no such file: paths are relative to the card") from None
    except (OSError, ValueError) as error:
        raise UserError(f"{what}: {path}: cannot be read: {what_of(error)}") from error


_Stamp = tuple[str, int, int, int]


def _stamp(file: Path) -> _Stamp:
    facts = file.stat()
    return str(file), facts.st_size, facts.st_mtime_ns, facts.st_ctime_ns


@lru_cache(maxsize=256)
def _digest(files: tuple[_Stamp, ...]) -> str:
    whole = hashlib.sha256()
    for name, *_ in files:
        with open(name, "rb") as file:
            whole.update(hashlib.file_digest(file, "sha256").digest())
    return whole.hexdigest()


def _named(path: Path) -> Iterator[Path]:
    """The files that a file names and that are there, each once."""
    suffix = path.suffix.lower()
    if suffix == ".gltf":
        yield from _of_gltf(path)
    elif suffix == ".ply":
        yield from _of_ply(path)
    elif suffix == ".obj":
        for library in _of_lines(path):
            yield library
            if library.suffix.lower() == ".mtl":
                yield from _of_lines(library)


def _of_gltf(path: Path) -> Iterator[Path]:
    try:
        document = json.loads(path.read_bytes())
        parts = [*document.get("buffers", ()), *document.get("images", ())]
        names = [unquote(str(part["uri"])) for part in parts if "uri" in part]
    except (ValueError, AttributeError, TypeError, RecursionError):
        return  # its reader says what is wrong with it
    yield from _there(path, [name for name in names if not name.startswith("data:")])


def _of_ply(path: Path) -> Iterator[Path]:
    with path.open("rb") as file:
        head = file.read(1 << 16).partition(b"end_header")[0].decode("utf-8", "replace")
    lines = [line.split(maxsplit=2) for line in head.splitlines()]
    said = [words for words in lines if len(words) == 3 and words[0] == "comment"]
    yield from _there(path, [w[2].strip() for w in said if w[1].lower() == "texturefile"])


def _of_lines(path: Path) -> Iterator[Path]:
    names = []
    with path.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:
            if line.lstrip().lower().startswith(_OBJ_NAMES):
                words = line.split(maxsplit=1)
                names += [words[1].strip(), words[1].split()[-1]] if len(words) > 1 else []
    yield from _there(path, names)


def _there(path: Path, names: list[str]) -> Iterator[Path]:
    for name in dict.fromkeys(names):
        file = path.parent / name
        if "\0" not in name and file.is_file():
            yield file
