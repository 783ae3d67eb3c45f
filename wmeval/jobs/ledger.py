"""Ledger: which units of a job are done, as an append-only file that survives any kill.

One JSON object a line, each with a checksum of itself. The first line says which job it is of. A
torn last line (a kill while appending) is dropped; a damaged line elsewhere counts as not written,
so that its unit is done again.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from wmeval.errors import UserError
from wmeval.jobs.atomic import disk_errors

FORMAT = "wmeval-ledger/1"


def canonical(value: Any) -> str:
    """The one JSON text of a value: sorted keys, no spaces, no NaN.

    Raises:
        ValueError: not JSON.
    """
    return json.dumps(
        value, sort_keys=True, separators=(",", ":"), allow_nan=False, ensure_ascii=False
    )


def checksum(value: Any) -> str:
    """Sha256 of the canonical JSON."""
    return hashlib.sha256(canonical(value).encode()).hexdigest()


def _line(record: Mapping[str, Any]) -> bytes:
    return (canonical({**record, "sha256": checksum(record)}) + "\n").encode()


def _parse(line: bytes) -> dict[str, Any] | None:
    try:
        record = json.loads(line)
        found = record.pop("sha256")
        return record if isinstance(record, dict) and checksum(record) == found else None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


class Ledger:
    """The completed units of one job.

    Use as a context manager; while it is open no other process can open it.

    Attributes:
        path: the file.
        damaged: lines that could not be read back (their units are not done).
    """

    def __init__(
        self, path: str | Path, job: Mapping[str, Any], *, overwrite: bool = False
    ) -> None:
        """Open or begin a ledger.

        Args:
            path: the file; missing folders are made.
            job: what the job is: JSON; a ledger of another job is refused.
            overwrite: forget what is there.

        Raises:
            UserError: it belongs to another job, is no ledger, is in use, or cannot be written.
        """
        self.path = Path(path)
        self.damaged = 0
        self._done: dict[str, dict[str, Any]] = {}
        with disk_errors(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            self._handle = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UserError(
                    f"{self.path}: another run is at work here; wait for it or choose another "
                    "output (or another --shard)."
                ) from error
            self._load(json.loads(canonical(job)), overwrite)
        except BaseException:
            os.close(self._handle)
            raise

    def _load(self, job: dict[str, Any], overwrite: bool) -> None:
        content = b"" if overwrite else self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        lines = whole.splitlines()
        first = _parse(lines[0]) if lines else None
        if lines and (first is None or first.get("format") != FORMAT):
            raise UserError(
                f"{self.path} is no ledger of wmeval; choose another output, or --overwrite."
            )
        if first is not None and first.get("job") != job:
            raise UserError(
                f"{self.path} belongs to a job with other settings "
                f"({differences(first['job'], job)}); choose another output, or --overwrite."
            )
        with disk_errors(self.path):
            if len(whole) != os.fstat(self._handle).st_size:
                os.ftruncate(self._handle, len(whole))
            if first is None:
                self._append({"format": FORMAT, "job": job})
        for line in lines[1:]:
            record = _parse(line)
            if record is None or "unit" not in record:
                self.damaged += 1
            else:
                self._done[record["unit"]] = record["result"]

    def _append(self, record: Mapping[str, Any]) -> None:
        data = _line(record)
        size = os.fstat(self._handle).st_size
        with disk_errors(self.path):
            try:
                written = os.write(self._handle, data)
                while written < len(data):
                    written += os.write(self._handle, data[written:])
                os.fsync(self._handle)
            except OSError:
                os.ftruncate(self._handle, size)
                raise

    def __contains__(self, unit: str) -> bool:
        return unit in self._done

    def __len__(self) -> int:
        return len(self._done)

    @property
    def done(self) -> Mapping[str, dict[str, Any]]:
        """Results of the completed units."""
        return dict(self._done)

    def add(self, unit: str, result: Mapping[str, Any]) -> None:
        """Record a completed unit; on return it is on the disk.

        Args:
            unit: its key.
            result: JSON; what a rerun needs to know of it (paths, checksums).

        Raises:
            UserError: disk full; the ledger stays readable.
        """
        record = json.loads(canonical(dict(result)))
        self._append({"unit": unit, "result": record})
        self._done[unit] = record

    def close(self) -> None:
        """Let others in; idempotent."""
        if self._handle >= 0:
            os.close(self._handle)
            self._handle = -1

    def __enter__(self) -> Ledger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The settings in which two jobs differ, for a message."""
    keys = [k for k in sorted({*old, *new}) if old.get(k) != new.get(k)]
    return ", ".join(f"{k}: {old.get(k)!r} there, {new.get(k)!r} asked" for k in keys[:3])
