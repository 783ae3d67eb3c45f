"""One renderer, made when first needed, shared by an environment and its branches."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.scene import Meshes, Scene

if TYPE_CHECKING:
    from wmeval.sim.protocol import Renderer, RenderState


class Pictures:
    """A lazily made renderer with a count of its holders.

    It is made anew (a quarter of a second) when the scene changes, starting poses included: where
    its shadow map lies follows from them, and a picture must not depend on the episode before.

    Args:
        name: row of `wmeval.sim.render.RENDERERS`.
        options: the renderer's own keyword arguments.
    """

    def __init__(self, name: str, options: Mapping[str, Any] = MappingProxyType({})) -> None:
        self.name = name
        self._options = dict(options)
        self._holders = 1
        self._renderer: Renderer | None = None
        self._look: str | None = None
        self._scene: Scene | None = None

    def share(self) -> Pictures:
        """One more holder."""
        self._holders += 1
        return self

    def release(self) -> None:
        """One holder less; the last one frees the renderer."""
        self._holders -= 1
        if self._holders <= 0:
            self._free()

    def draw(
        self,
        scene: Scene,
        meshes: Meshes,
        state: RenderState,
        size: tuple[int, int],
        layers: tuple[str, ...],
    ) -> Mapping[str, NDArray[Any]]:
        """Layers of one instant at (width, height) [px]."""
        return self._of(scene, meshes).draw(state, size[0], size[1], layers)

    def version(self, scene: Scene, meshes: Meshes) -> str:
        """Version of the renderer."""
        return self._of(scene, meshes).version

    @property
    def about(self) -> dict[str, Any]:
        """What the present renderer tells of its quality and device."""
        return dict(getattr(self._renderer, "about", {}))

    def _of(self, scene: Scene, meshes: Meshes) -> Renderer:
        if self._renderer is not None and scene is self._scene:
            return self._renderer
        look = _look(scene)
        if self._renderer is None or look != self._look:
            from wmeval.sim.render import make_renderer

            self._free()
            try:
                self._renderer = make_renderer(self.name, scene, meshes, **self._options)
            except TypeError as error:
                if not self._options:
                    raise
                raise UserError(f"renderer {self.name!r}: {error}") from error
            self._look = look
        self._scene = scene
        return self._renderer

    def _free(self) -> None:
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
            self._look = None
            self._scene = None


def _look(scene: Scene) -> str:
    """What a renderer is built from: all but the cameras."""
    return scene.model_dump_json(exclude={"cameras"})
