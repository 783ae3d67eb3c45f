"""Where data lie: on the local disk or at any fsspec URL, behind a few verbs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from wmeval.errors import UserError, one_line
from wmeval.jobs.atomic import FolderKind, disk_errors, write_parts

_FLAT = frozenset({"s3", "gs", "abfs", "oss"})
"""Object stores: they have no folders, and asked for one they would make a bucket."""


@dataclass(frozen=True)
class Location:
    """A folder or file on the local disk (``path``) or elsewhere (``system``, ``root``).

    Attributes:
        url: as users name it.
        path: local path, None elsewhere.
        system: fsspec file system, None for local.
        root: path on that file system.
    """

    url: str
    path: Path | None
    system: Any = None
    root: str = ""

    def __truediv__(self, name: str) -> Location:
        if self.path is not None:
            return Location(str(self.path / name), self.path / name)
        return Location(
            f"{self.url.rstrip('/')}/{name}", None, self.system, f"{self.root.rstrip('/')}/{name}"
        )

    def get(self, key: str, *, limit: int | None) -> bytes | None:
        """Content of an object; None when there is none.

        Raises:
            UserError: it cannot be read, or is larger than ``limit`` bytes.
        """
        try:
            if self.path is not None:
                target = self.path / key
                size = target.stat().st_size
                if not target.is_file():
                    return None
            else:
                name = f"{self.root.rstrip('/')}/{key}"
                size = int(self.system.info(name)["size"] or 0)
            if limit is not None and size > limit:
                raise UserError(f"{self.url}: {key} has {size} bytes, over the limit of {limit}.")
            if self.path is not None:
                return (self.path / key).read_bytes()
            return bytes(self.system.cat_file(name))
        except UserError:
            raise
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError, KeyError):
            return None
        except Exception as error:  # file systems raise what they like
            raise UserError(f"{self.url}: {key} cannot be read: {one_line(error)}") from error

    def put(self, key: str, content: bytes) -> None:
        """Write an object: atomically on a local disk, at once elsewhere.

        Raises:
            UserError: disk full or not writable.
        """
        (self / key).write([content])

    def write(self, parts: Sequence[bytes]) -> None:
        """Write this very file or object; as `put`."""
        if self.path is not None:
            write_parts(self.path, parts)
            return
        with self._remote_errors():
            self._make_room(self.root.rstrip("/"))
            self.system.pipe_file(self.root, b"".join(parts))

    def open(self) -> BinaryIO:
        """Open this very file or object for reading.

        Raises:
            UserError: it is not there, is a folder, or cannot be read.
        """
        try:
            if self.path is not None:
                return self.path.open("rb")
            if self.system.isdir(self.root):
                raise IsADirectoryError
            stream: BinaryIO = self.system.open(self.root, "rb")
            return stream
        except (FileNotFoundError, NotADirectoryError) as error:
            raise UserError(f"{self.url}: there is no such file.") from error
        except IsADirectoryError as error:
            raise UserError(f"{self.url} is a folder, not a rollout file.") from error
        except Exception as error:  # file systems raise what they like
            what = getattr(error, "strerror", None) or one_line(error)
            raise UserError(f"{self.url} cannot be read: {what}") from error

    def objects(self) -> list[str]:
        """Names of all objects below, sorted."""
        if self.path is not None:
            if not self.path.is_dir():
                return []
            files = (p for p in self.path.rglob("*") if not p.is_dir())
            return sorted(p.relative_to(self.path).as_posix() for p in files)
        with self._remote_errors():
            root = self.root.strip("/")
            try:
                found = [str(name).strip("/") for name in self.system.find(self.root)]
            except FileNotFoundError:
                return []
            return sorted(name[len(root) :].strip("/") for name in found)

    def refuse_others(self, kind: FolderKind) -> None:
        """As `FolderKind.refuse_others`, for this place."""
        if self.path is not None:
            kind.refuse_others(self.path)
            return
        kind.refuse_names(self.url, self.objects(), lambda key: self.get(key, limit=None) or b"")

    def remove(self, key: str) -> None:
        """Remove an object, if it is there."""
        if self.path is not None:
            (self.path / key).unlink(missing_ok=True)
            return
        with self._remote_errors():
            name = f"{self.root.rstrip('/')}/{key}"
            if self.system.exists(name):
                self.system.rm_file(name)

    def upload(self, folder: Path, *, last: str) -> None:
        """Copy a local folder here (not for local places), one object after the others.

        What was here before goes first, its ``last`` object before all.

        Raises:
            UserError: the file system fails; ``last`` is not there then.
        """
        self.clear(first=last)
        keys = (p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file())
        root = self.root.rstrip("/")
        # Outer objects before inner ones: what breaks off still shows whose it is. Those of one
        # depth go together, which object stores do many times faster.
        ranks: dict[int, list[str]] = {}
        for key in sorted(keys):
            ranks.setdefault(key.count("/") if key != last else 1 << 30, []).append(key)
        with self._remote_errors():
            for _, same in sorted(ranks.items()):
                for first in {key.rpartition("/")[0]: key for key in same}.values():
                    self._make_room(f"{root}/{first}")
                self.system.put(
                    [str(folder / key) for key in same], [f"{root}/{key}" for key in same]
                )

    def clear(self, *, first: str) -> None:
        """Remove what is here (not for local places), the object ``first`` before all others."""
        self.remove(first)
        with self._remote_errors():
            if self.system.exists(self.root):
                self.system.rm(self.root, recursive=True)

    def _make_room(self, name: str) -> None:
        """Make the folder of an object, where there are folders."""
        known = self.system.protocol
        if not _FLAT.intersection((known,) if isinstance(known, str) else known):
            self.system.makedirs(name.rsplit("/", 1)[0], exist_ok=True)

    @contextmanager
    def _remote_errors(self) -> Iterator[None]:
        try:
            with disk_errors(Path(self.url)):
                yield
        except UserError:
            raise
        except Exception as error:  # file systems raise what they like
            raise UserError(f"{self.url}: {one_line(error) or type(error).__name__}") from error


def locate(url: str | Path) -> Location:
    """Find the place that a path or URL names.

    Raises:
        UserError: a protocol that is not installed.
    """
    text = str(url)
    if "://" not in text:
        return Location(text, Path(text))
    if text.startswith("file://"):
        path = Path(text.removeprefix("file://"))
        return Location(str(path), path)
    import fsspec

    try:
        system, root = fsspec.core.url_to_fs(text)
    except (ValueError, ImportError) as error:
        raise UserError(
            f"{text}: {error}. Give a folder, or install the file system of this protocol."
        ) from error
    return Location(text.rstrip("/"), None, system, root)
