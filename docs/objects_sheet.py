"""Contact sheet of the 24 everyday objects: docs/images/objects.jpg, two views of each."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import cv2
import numpy as np

from wmeval.assets.cards import library
from wmeval.assets.models import Model, build_object
from wmeval.scene import Body, Box, Camera, Collision, Material, Scene, Sky, Sun, Texture, Visual
from wmeval.sim.render.pieces import start_state
from wmeval.sim.render.raster import RasterRenderer

OUT = Path(__file__).parent / "images" / "objects.jpg"
SIDE = 200
COLUMNS = 6
MAX_BYTES = 300_000
VIEWS = ((-45.0, 24.0), (135.0, 48.0))
"""Azimuth and elevation of the cameras [deg]."""


def stage(model: Model) -> Scene:
    """An object on a pale table."""
    half = max(model.size) / 2
    bottom = model.size[2] / 2 - model.box_center[2]
    table = Box(half_extents=(14 * half, 14 * half, half))
    cameras = []
    for azimuth, elevation in VIEWS:
        a, e = math.radians(azimuth), math.radians(elevation)
        x, y, z = model.size
        radius = 0.5 * math.sqrt(x * x + y * y + z * z)
        away = 0.98 * radius / math.sin(math.radians(13))
        middle = (model.box_center[0], model.box_center[1], z / 2)
        eye = (
            middle[0] + away * math.cos(e) * math.cos(a),
            middle[1] + away * math.cos(e) * math.sin(a),
            middle[2] + away * math.sin(e),
        )
        cameras.append(
            Camera(name=f"view_{len(cameras)}", position=eye, target=middle, fov_y_deg=26,
                   near=0.1 * away, far=40 * away)
        )  # fmt: skip
    cloth = Material(
        name="cloth", texture=Texture(builder="plain", colors=((0.40, 0.42, 0.44),)),
        roughness=0.9, specular=0.1, uv_m=6 * half,
    )  # fmt: skip
    return Scene(
        name="object",
        bodies=(
            Body(name="table", role="table", motion="static", instance=2,
                 collision=(Collision(shape=table),),
                 visuals=(Visual(shape=table, material="cloth"),), position=(0, 0, -half)),
            Body(name="object", role="object", motion="static", instance=1,
                 collision=(model.collision(),), visuals=model.visuals(),
                 position=(0.0, 0.0, bottom)),
        ),
        materials=(cloth, *model.materials()),
        cameras=tuple(cameras),
        sun=Sun(direction=(0.42, 0.52, -0.74), strength=2.6, softness=0.012),
        sky=Sky(clouds=0.2),
    )  # fmt: skip


def shots(model: Model, side: int = SIDE) -> np.ndarray:
    """The views of an object side by side, (side, 2 side, 3) RGB."""
    scene = stage(model)
    renderer = RasterRenderer(scene, model.meshes(), shadow_size=1024)
    pictures = [
        renderer.draw(start_state(scene, k), 2 * side, 2 * side, ("rgb",))["rgb"]
        for k in range(len(VIEWS))
    ]
    renderer.close()
    both = np.concatenate(pictures, axis=1)
    return cv2.resize(both, None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA)


def contact_sheet(path: Path | str = OUT, *, names: bool = True) -> None:
    """Draw and write a JPEG of at most 300 kB; ``names`` writes each object's id below it."""
    cards = library()
    cells = []
    for key, card in cards.objects.items():
        cell = shots(build_object(card, cards.folders[f"objects/{key}"]))
        label = np.full((22, cell.shape[1], 3), 255, np.uint8)
        text = key if names else str(len(cells) + 1)
        cv2.putText(label, text, (6, 16), cv2.FONT_HERSHEY_SIMPLEX, 0.48, (40, 40, 40), 1,
                    cv2.LINE_AA)  # fmt: skip
        cells.append(cv2.copyMakeBorder(np.concatenate([cell, label]), 2, 2, 2, 2,
                                        cv2.BORDER_CONSTANT, value=(255, 255, 255)))  # fmt: skip
    cells += [np.full_like(cells[0], 255)] * (-len(cells) % COLUMNS)
    rows = [np.concatenate(cells[i : i + COLUMNS], axis=1) for i in range(0, len(cells), COLUMNS)]
    sheet = np.concatenate(rows)[..., ::-1]
    scale = 1.0
    while True:
        small = cv2.resize(sheet, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)
        done, data = cv2.imencode(".jpg", small, [cv2.IMWRITE_JPEG_QUALITY, 85])
        if done and len(data) <= MAX_BYTES:
            break
        scale *= 0.93
    Path(path).write_bytes(data.tobytes())


if __name__ == "__main__":
    contact_sheet(sys.argv[1] if len(sys.argv) > 1 else OUT)
