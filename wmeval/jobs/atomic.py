"""Whole or absent: files and folders that appear on a local disk only when they are complete.

The content is made under a temporary name beside its place, forced to the disk, and renamed. A
process that dies on the way leaves a temporary name only; the next writer there removes it. Of two
runs that would write in one place, `claim` lets one in; what stood there before is replaced only
where a `FolderKind` says that it is of the same maker.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import re
import secrets
import shutil
import socket
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from wmeval.errors import DiskError, UserError

_PREFIX = ".wmeval-tmp"
_LOCK = ".wmeval-lock"
_OURS = (_PREFIX, _LOCK)
_HEAD_BYTES = 4096
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


@contextmanager
def witness(folder: Path) -> Iterator[Path]:
    """A file by which others show that they see the same folder; it goes with the block."""
    path = _temporary(folder / "witness")
    path.touch()
    try:
        yield path
    finally:
        path.unlink(missing_ok=True)


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
        DiskError: no space or no permission.
        UserError: the place is no folder.
    """
    try:
        yield
    except OSError as error:
        if error.errno in _NO_SPACE:
            raise DiskError(
                f"{path}: disk full ({os.strerror(error.errno or 0)}); nothing was written there. "
                "Free some space or choose another folder."
            ) from error
        if error.errno in _NOT_ALLOWED:
            raise DiskError(
                f"{path}: may not write here ({os.strerror(error.errno or 0)}); "
                "choose a folder of your own."
            ) from error
        if isinstance(error, NotADirectoryError | FileExistsError | IsADirectoryError):
            raise UserError(
                f"{path}: a file stands where a folder is needed, or a folder where the file shall "
                "be; choose another path."
            ) from error
        raise


# --- one writer at a time -----------------------------------------------------------------------


@contextmanager
def claim(path: str | Path, *, shared: bool = False) -> Iterator[None]:
    """Keep other runs out of a file or folder while this one writes there.

    The claim is a lock on a dot-file beside the place (on the folder itself where nothing may be
    written beside it). It ends with the block, or with the process however that dies.

    Args:
        path: what is going to be written; it need not be there yet.
        shared: let others in that share too (the shards of one set), and keep out the rest.

    Raises:
        UserError: another run has it; or the place cannot be written.
    """
    place = Path(os.path.realpath(path))
    beside: Path | None = place.with_name(f"{_LOCK}.{place.name}")
    with disk_errors(Path(path)):
        try:
            place.parent.mkdir(parents=True, exist_ok=True)
            handle = _lock(place.with_name(f"{_LOCK}.{place.name}"), shared)
        except PermissionError:
            if not place.is_dir():
                raise
            handle, beside = _lock(place, shared), None
        except FileNotFoundError as error:  # a file system that makes none, as /proc
            raise DiskError(
                f"{path}: nothing can be made there; choose a folder of your own."
            ) from error
    if handle is None:
        raise UserError(
            f"{path}: another run is writing here: wait for it or choose another --out."
        )
    try:
        yield
    finally:
        if beside is not None and _try_lock(handle, fcntl.LOCK_EX):  # no other shares it
            beside.unlink(missing_ok=True)
        os.close(handle)


def _lock(path: Path, shared: bool) -> int | None:
    """Open and lock a file or folder; None when another run has it."""
    flags = os.O_RDONLY | (0 if path.is_dir() else os.O_CREAT)
    while True:
        handle = os.open(path, flags, 0o666)
        if not _try_lock(handle, fcntl.LOCK_SH if shared else fcntl.LOCK_EX):
            os.close(handle)
            return None
        try:
            if os.path.samestat(os.fstat(handle), os.stat(path)):
                return handle
        except FileNotFoundError:
            pass
        os.close(handle)  # Its last owner removed it between our two calls.


def _try_lock(handle: int, kind: int) -> bool:
    try:
        fcntl.flock(handle, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        pass  # A file system without locks: the run goes on as if alone.
    return True


# --- whose a folder is --------------------------------------------------------------------------


@dataclass(frozen=True)
class FolderKind:
    """How the folders of one maker are told from everything else; only they are ever replaced.

    Attributes:
        files: regular expression of the names, relative to the folder, of all files it writes.
        marks: regular expressions of names whose content begins unmistakably, with a text that
            stands in their first 4096 bytes; one of them is enough, so that damage does not make a
            stranger of a folder.
    """

    files: str
    marks: Mapping[str, str]

    def refuse_others(self, folder: str | Path) -> None:
        """Let nothing but such a folder pass, or an empty or absent one.

        Raises:
            UserError: it holds a file that the maker did not write; names the first.
        """
        folder = Path(folder)
        if folder.exists() and not folder.is_dir():
            raise UserError(f"{folder} is a file: choose another folder.")
        names = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if not _is_folder(p))
        self.refuse_names(str(folder), sorted(names), lambda name: _head(folder / name))

    def strangers(self, names: Iterable[str]) -> list[str]:
        """Those of the names that the maker does not write."""
        return [n for n in names if not re.fullmatch(self.files, n)]

    def refuse_names(self, where: str, names: Iterable[str], head: Callable[[str], bytes]) -> None:
        """As `refuse_others`, for files named by the caller.

        Args:
            where: the folder, for the message.
            names: files, relative.
            head: the first bytes of one.
        """
        known = [n for n in names if not any(p.startswith(_OURS) for p in n.split("/"))]
        strange = self.strangers(known)
        if not strange and not any(
            re.fullmatch(mark, name) and text.encode() in head(name)
            for name in known
            for mark, text in self.marks.items()
        ):
            strange = known
        if strange:
            raise UserError(
                f"{where}: holds files that wmeval did not write here ({strange[0]}): choose "
                "another folder or empty it yourself."
            )


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _head(path: Path) -> bytes:
    try:
        with path.open("rb") as stream:
            return stream.read(_HEAD_BYTES)
    except OSError:
        return b""


# --- whole or absent ----------------------------------------------------------------------------


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
def atomic_dir(
    path: str | Path, *, replaces: FolderKind | None = None, durable: bool = True
) -> Iterator[Path]:
    """A fresh folder to fill; on leaving without error it stands at ``path``, whole.

    Args:
        path: where the folder shall be; nothing or an empty folder stands there. Missing folders
            above it are made.
        replaces: also replace a folder of this kind; it goes only when the new one is complete.
        durable: force every file to the disk first. Without, a power cut may leave it damaged:
            for what is large and can be had again.

    Yields:
        A temporary folder beside it.

    Raises:
        UserError: something else is there; disk full; not writable.
    """
    path = Path(path)
    _refuse_existing(path, replaces)
    with disk_errors(path), _place(path) as temporary:
        temporary.mkdir()
        yield temporary
        for folder, _, names in os.walk(temporary) if durable else ():
            for name in names:
                sync(Path(folder, name))
            sync(Path(folder))
        old: Path | None = None
        if path.exists() or path.is_symlink():
            _refuse_existing(path, replaces)
            old = _temporary(path)
            os.rename(path, old)
        os.rename(temporary, path)
        sync(path.parent)
        if old is not None:
            _remove(old)


def _refuse_existing(path: Path, replaces: FolderKind | None) -> None:
    if replaces is not None:
        replaces.refuse_others(path)
        return
    empty = _is_folder(path) and not any(path.iterdir())
    if not empty and (path.exists() or path.is_symlink()):
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
