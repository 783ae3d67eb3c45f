"""Whole or absent: files and folders that appear on a local disk only when they are complete.

The content is made under a temporary name beside its place, forced to the disk, and renamed. A
process that dies on the way leaves a temporary name only; the next writer there removes it.
"""

from __future__ import annotations

import errno
import hashlib
import os
import secrets
import shutil
import socket
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from wmeval.errors import UserError

_PREFIX = ".wmeval-tmp"
_OTHER_HOST_STALE_AFTER = 24 * 3600.0
_NO_SPACE = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})
_NOT_ALLOWED = frozenset({errno.EACCES, errno.EPERM, errno.EROFS})


def _host() -> str:
    return hashlib.sha256(socket.gethostname().encode()).hexdigest()[:8]


def _temporary(path: Path) -> Path:
    # The whole name comes last, so that writers that look at the suffix see the right one.
    return path.with_name(f"{_PREFIX}.{_host()}.{os.getpid()}.{secrets.token_hex(4)}.{path.name}")


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _remove(path: Path) -> None:
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
    except OSError:
        pass  # The next writer tries again; a left-over name harms nobody.


def remove_stale(folder: Path) -> int:
    """Remove temporary names that dead writers left in a folder.

    A name is stale when its writer was on this host and no longer lives, or when it is of another
    host and a day old.

    Returns:
        How many were removed.
    """
    count = 0
    if not folder.is_dir():
        return 0
    for path in folder.glob(f"{_PREFIX}.*"):
        host, pid, *_ = [*path.name[len(_PREFIX) + 1 :].split("."), ""]
        try:
            if host == _host() and pid.isdigit():
                stale = not _alive(int(pid))
            else:
                stale = time.time() - path.stat().st_mtime > _OTHER_HOST_STALE_AFTER
        except OSError:
            continue
        if stale:
            _remove(path)
            count += 1
    return count


def sync(path: Path) -> None:
    """Force a file, or the names in a folder, to the disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


@contextmanager
def disk_errors(path: Path) -> Iterator[None]:
    """Turn a full or read-only disk into one clear error.

    Raises:
        UserError: no space, no permission, or the place is no folder.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise UserError(
                f"{path}: disk full ({os.strerror(error.errno or 0)}); nothing was written there. "
                "Free some space or choose another folder."
            ) from error
        if error.errno in _NOT_ALLOWED:
            raise UserError(
                f"{path}: may not write here ({os.strerror(error.errno or 0)}); "
                "choose a folder of your own."
            ) from error
        if isinstance(error, NotADirectoryError | FileExistsError | IsADirectoryError):
            raise UserError(
                f"{path}: a file stands where a folder is needed, or a folder where the file shall "
                "be; choose another path."
            ) from error
        raise


@contextmanager
def _place(path: Path) -> Iterator[Path]:
    path.parent.mkdir(parents=True, exist_ok=True)
    remove_stale(path.parent)
    temporary = _temporary(path)
    try:
        yield temporary
    except BaseException:
        _remove(temporary)
        raise


@contextmanager
def atomic_file(path: str | Path) -> Iterator[Path]:
    """A path to write to; on leaving without error the file stands at ``path``, whole.

    Args:
        path: where the file shall be; an old file there is replaced at once. Missing folders are
            made.

    Yields:
        A temporary path in the same folder with the same suffix.

    Raises:
        UserError: disk full or not writable; nothing is left behind.
    """
    path = Path(path)
    with disk_errors(path), _place(path) as temporary:
        yield temporary
        if not temporary.is_file():
            raise RuntimeError(f"{path}: its writer made no file")
        sync(temporary)
        os.replace(temporary, path)
        sync(path.parent)


@contextmanager
def atomic_dir(path: str | Path, *, overwrite: bool = False) -> Iterator[Path]:
    """A fresh folder to fill; on leaving without error it stands at ``path``, whole.

    Args:
        path: where the folder shall be. Missing folders above it are made.
        overwrite: replace what is there; the old folder goes only when the new one is complete.

    Yields:
        A temporary folder beside it.

    Raises:
        UserError: something is there and ``overwrite`` is false; disk full; not writable.
    """
    path = Path(path)
    _refuse_existing(path, overwrite)
    with disk_errors(path), _place(path) as temporary:
        temporary.mkdir()
        yield temporary
        for folder, _, names in os.walk(temporary):
            for name in names:
                sync(Path(folder, name))
            sync(Path(folder))
        old: Path | None = None
        if path.exists() or path.is_symlink():
            _refuse_existing(path, overwrite)
            old = _temporary(path)
            os.rename(path, old)
        os.rename(temporary, path)
        sync(path.parent)
        if old is not None:
            _remove(old)


def _refuse_existing(path: Path, overwrite: bool) -> None:
    if not overwrite and (path.exists() or path.is_symlink()):
        raise UserError(f"{path} exists; pass overwrite (--overwrite) to replace it.")


def write_parts(path: str | Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write a whole file of consecutive parts, atomically.

    Raises:
        UserError: disk full or not writable; an older file stays as it was.
    """
    with atomic_file(path) as temporary, temporary.open("wb") as stream:
        for part in parts:
            stream.write(part)


def write_bytes(path: str | Path, data: bytes | memoryview) -> None:
    """Write a whole file, atomically.

    Raises:
        UserError: disk full or not writable; an older file stays as it was.
    """
    write_parts(path, [data])


def write_text(path: str | Path, text: str) -> None:
    """Write a whole UTF-8 file, atomically.

    Raises:
        UserError: disk full or not writable; an older file stays as it was.
    """
    write_bytes(path, text.encode())
