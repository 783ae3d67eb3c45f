"""Contacts on disk, read when they are first touched: they can outweigh all states together."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.records import Contacts

GROUP = "contact/"
PATHS = {f.name: f"{GROUP}{f.name}" for f in fields(Contacts)}


class StoredContacts(Contacts):
    """`Contacts` whose arrays are read, all at once, by the first question that needs them."""

    _load: Callable[[], Mapping[str, NDArray[Any]]]
    _count: int

    def __getattr__(self, name: str) -> Any:
        # Called only for what is not there yet.
        if name not in PATHS:
            raise AttributeError(f"contacts have no {name!r}")
        arrays = self._load()
        for column, path in PATHS.items():
            object.__setattr__(self, column, np.asarray(arrays[path]))
        return self.__dict__[name]

    def __len__(self) -> int:
        return self._count

    def __reduce__(self) -> tuple[Any, ...]:
        return Contacts, tuple(getattr(self, name) for name in PATHS)


def stored_contacts(count: int, load: Callable[[], Mapping[str, NDArray[Any]]]) -> StoredContacts:
    """Contacts that are read later.

    Args:
        count: number of rows.
        load: reads and checks all arrays, by path.
    """
    contacts = object.__new__(StoredContacts)
    object.__setattr__(contacts, "_count", count)
    object.__setattr__(contacts, "_load", load)
    return contacts


def unread(contacts: Contacts) -> bool:
    """The arrays have not been read yet."""
    return isinstance(contacts, StoredContacts) and not set(PATHS) <= set(contacts.__dict__)
