"""Every test here has the plain setting in place of the rooms."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from plain_setting import use_plain_settings

import wmeval.assets.settings
from wmeval.envs.rigidbench import place


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(wmeval.assets.settings, "SETTINGS", {})
    use_plain_settings()
    yield
    place._built_place.cache_clear()
