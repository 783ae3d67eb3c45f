"""The worker of the Cycles benchmark: the renderer's own, and a bare render of the same frames."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import bpy

import wmeval

_SERVE = Path(next(iter(wmeval.__path__)), "sim", "render", "cycles_serve.py")


def handlers() -> dict[str, Any]:
    """Verbs: build, draw, and bare: frame ``number`` of those drawn, by Blender alone."""
    spec = importlib.util.spec_from_file_location("cycles_serve", _SERVE)
    assert spec is not None
    assert spec.loader is not None
    serve = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = serve
    spec.loader.exec_module(serve)
    own = serve.handlers()
    stage = own["draw"].__self__
    drawn: list[Any] = []

    def draw(header: Any, buffers: Any) -> Any:
        drawn.append((header, buffers))
        return own["draw"](header, buffers)

    def bare(header: Any, buffers: Any) -> Any:
        asked, arrays = drawn[header["number"]]
        stage._put(arrays)
        stage._look(asked, arrays)
        stage._color.render.resolution_x = asked["width"]
        stage._color.render.resolution_y = asked["height"]
        bpy.ops.render.render(scene=stage._color.name)
        return {}, {}

    return {**own, "draw": draw, "bare": bare}
