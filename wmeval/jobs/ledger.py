"""One JSON text of a value: what jobs and rows are told apart and checked by."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any


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


def differences(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    """The settings in which two jobs differ, for a message."""
    keys = [k for k in sorted({*old, *new}) if old.get(k) != new.get(k)]
    return ", ".join(f"{k}: {old.get(k)!r} there, {new.get(k)!r} asked" for k in keys[:3])
