"""Parquet tables, by the optional package ``pyarrow``."""

from __future__ import annotations

import json
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


def nullable(table: Any) -> Any:
    """A table of which pandas reads whole numbers and yes or no as such, also where some miss.

    It would make float64 and object of them; what it has been told stands in the schema
    (https://pandas.pydata.org/docs/development/developer.html).
    """
    columns = [
        {"name": f.name, "field_name": f.name, "pandas_type": str(f.type),
         "numpy_type": _NULLABLE[str(f.type)], "metadata": None}
        for f in table.schema
        if str(f.type) in _NULLABLE
    ]  # fmt: skip
    described = {
        "index_columns": [], "column_indexes": [], "columns": columns, "pandas_version": "2.0.0",
    }  # fmt: skip
    return table.replace_schema_metadata({"pandas": json.dumps(described)})


_NULLABLE = {"int64": "Int64", "bool": "boolean"}
"""Arrow's kinds -> those of pandas that have a missing value."""


def write_parquet(path: Path, table: Any) -> None:
    """Write a table."""
    path.parent.mkdir(parents=True, exist_ok=True)
    import_module("pyarrow.parquet").write_table(table, path)
