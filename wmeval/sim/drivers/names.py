"""Names in a driver's parameters, looked up in its scene."""

from __future__ import annotations

from wmeval.errors import UserError
from wmeval.scene import Scene


def body_index(scene: Scene, name: str, kind: str) -> int:
    """Index of a body that a driver names.

    Raises:
        UserError: the scene has no such body.
    """
    try:
        return scene.index(name)
    except KeyError:
        known = ", ".join(b.name for b in scene.bodies)
        raise UserError(f"driver {kind!r}: no body {name!r}; there are {known}") from None


def camera_index(scene: Scene, name: str, kind: str) -> int:
    """Index of a camera that a driver names.

    Raises:
        UserError: the scene has no such camera.
    """
    names = [c.name for c in scene.cameras]
    if name not in names:
        raise UserError(f"driver {kind!r}: no camera {name!r}; there are {', '.join(names)}")
    return names.index(name)
