"""How worlds look. A renderer is one row of `RENDERERS`; it is loaded when it is first used."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

from wmeval.errors import UserError
from wmeval.scene import Meshes, Scene

if TYPE_CHECKING:
    from wmeval.sim.protocol import Renderer

RENDERERS: dict[str, str] = {
    "raster": "wmeval.sim.render.raster:RasterRenderer",
    "cycles": "wmeval.sim.render.cycles:CyclesRenderer",
}

GPU_OPTIONS: dict[str, dict[str, Any]] = {"cycles": {"device": "gpu"}}
"""Options with which a renderer fills a GPU of its own; else it draws on cores, or shares one."""


def gpus_of(name: str, options: Mapping[str, Any]) -> int:
    """How many GPUs a renderer with these options keeps busy."""
    wanted = GPU_OPTIONS.get(name, {})
    return int(any(options.get(key) == value for key, value in wanted.items()))


def make_renderer(name: str, scene: Scene, meshes: Meshes, **options: Any) -> Renderer:
    """A renderer of one scene, by name; ``options`` are its own keyword arguments.

    Raises:
        UserError: no such renderer (the message names the known ones).
    """
    if name not in RENDERERS:
        raise UserError(f"no renderer {name!r}: choose from {', '.join(RENDERERS)}")
    module, _, attribute = RENDERERS[name].partition(":")
    made: Renderer = getattr(import_module(module), attribute)(scene, meshes, **options)
    return made
