"""Tests that need `bpy` (of this interpreter, WMEVAL_BLENDER_PYTHON's or `wmeval install`'s)."""

from __future__ import annotations

import pytest

from wmeval.jobs import installed
from wmeval.sim.blender_worker import INSTALL, PYTHON_VARIABLE, bpy_version

without_bpy = pytest.mark.skipif(bpy_version() is None, reason=f"bpy is not installed: {INSTALL}")


def needs_bpy(test):
    """Marks a test that needs `bpy`, which `make accept` installs: not for `make test`."""
    return pytest.mark.accept(without_bpy(test))


def take_bpy_away(monkeypatch, tmp_path):
    """As on a machine where nothing has `bpy`."""
    monkeypatch.delenv(PYTHON_VARIABLE, raising=False)
    monkeypatch.setenv(installed.HOME_VARIABLE, str(tmp_path / "no-environments"))
    monkeypatch.setattr(installed, "_version_here", lambda package: None)
