"""PNG files: one picture each, without loss."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.jobs.atomic import write_bytes


def png_bytes(picture: NDArray[np.uint8]) -> bytes:
    """A picture (H, W, 3) uint8 sRGB as PNG.

    Raises:
        UserError: no such picture.
    """
    import cv2

    done, data = cv2.imencode(".png", cv2.cvtColor(picture, cv2.COLOR_RGB2BGR))
    if not done:
        raise UserError(f"the picture {picture.shape} cannot be written as PNG")
    return bytes(data.tobytes())


def write_png(path: Path, picture: NDArray[np.uint8]) -> None:
    """Write a picture (H, W, 3) uint8 sRGB, whole or not at all."""
    write_bytes(path, png_bytes(picture))


def read_png(path: Path) -> NDArray[np.uint8]:
    """Read a picture (H, W, 3) uint8 sRGB.

    Raises:
        UserError: no such file, or not a picture.
    """
    import cv2

    try:
        data = np.frombuffer(path.read_bytes(), np.uint8)
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    picture = cv2.imdecode(data, cv2.IMREAD_COLOR) if len(data) else None
    if picture is None:
        raise UserError(f"{path}: not a picture")
    return np.ascontiguousarray(cv2.cvtColor(picture, cv2.COLOR_BGR2RGB)).astype(np.uint8)
