"""Marks tests that need `bpy`, here or in the interpreter that WMEVAL_BLENDER_PYTHON names."""

from __future__ import annotations

import pytest

from wmeval.sim.blender_worker import INSTALL, bpy_version

needs_bpy = pytest.mark.skipif(bpy_version() is None, reason=f"bpy is not installed: {INSTALL}")
