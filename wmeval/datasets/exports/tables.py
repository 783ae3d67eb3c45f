"""Parquet tables, by the optional package ``pyarrow``."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

from wmeval.errors import UserError


def arrow(what: str) -> Any:
    """The package ``pyarrow``.

    Raises:
        UserError: it is not installed.
    """
    try:
        return import_module("pyarrow")
    except ImportError as error:
        raise UserError(
            f"{what} needs pyarrow: install it with `pip install 'wmeval[tables]'` ({error})"
        ) from error


def write_parquet(path: Path, table: Any) -> None:
    """Write a table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    import_module("pyarrow.parquet").write_table(table, path)
