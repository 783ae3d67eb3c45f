"""Picture of the settings: docs/images/settings.jpg, each from the paper's camera.

``python docs/settings_sheet.py [--out FILE] [--azimuth DEG] [--extent M] [--width PX]
[--clutter] [NAME...]`` draws the named settings (all of them) with their supports empty.
"""

from __future__ import annotations

import argparse
import math
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from wmeval.assets.cards import library
from wmeval.assets.settings import SETTINGS, Setting, build_setting
from wmeval.envs.rigidbench.framing import frame
from wmeval.scene import Camera, Scene
from wmeval.sim.render.pieces import start_state
from wmeval.sim.render.raster import RasterRenderer

OUT = Path(__file__).parent / "images" / "settings.jpg"
WIDTH, HEIGHT, GAP, COLUMNS = 640, 352, 8, 3
AZIMUTHS = {
    "hallway_interior": 72.0, "modern_loft": -55.0, "modern_luxury_kitchen": 0.0,
    "minimal_white_kitchen": -60.0, "modern_japandi_dining": -70.0, "dining_room_set": -110.0,
    "modular_flat": -70.0, "coastal_living_room": -110.0, "beach_gazebo": -75.0,
    "butterfly_mural_room": 48.0, "cozy_living_room": -70.0, "modern_warm_kitchen": 0.0,
}  # fmt: skip
"""From the support to the camera, in the world [deg]; a second look when asked for."""


def scene_of(name: str, setting: Setting, camera: Camera, *, tidy: bool = True) -> Scene:
    """The setting as a scene of its own; ``tidy`` leaves the clutter out."""
    hidden = {n for names in setting.clutter.values() for n in names} if tidy else set()
    bodies = tuple(b for b in setting.bodies if b.name not in hidden)
    return Scene(
        name=name, bodies=bodies, materials=setting.materials, cameras=(camera,), sun=setting.sun,
        sky=setting.sky,
    )  # fmt: skip


def draw(
    name: str, azimuth: float, extent: float, width: int, height: int, *, tidy: bool = True
) -> NDArray[np.uint8]:
    """One setting, (height, width, 3) RGB.

    Args:
        name: id of its card.
        azimuth: from the support to the camera [deg].
        extent: of the actors that the camera would frame [m].
        width: of the picture [px].
        height: of the picture [px].
        tidy: without clutter on the support.
    """
    cards = library()
    card = cards.settings[name]
    setting = build_setting(card, cards.folders[f"settings/{name}"])
    center = np.array(next(iter(card.surfaces.values())).center)
    reach = np.array([extent / 2, extent / 2, 0.0])
    high = center + reach + np.array([0, 0, 0.2])
    camera = frame(center - reach, high, azimuth, width=width, height=height)
    scene = scene_of(name, setting, camera, tidy=tidy)
    renderer = RasterRenderer(scene, setting.meshes)
    try:
        picture = renderer.draw(start_state(scene), width, height, ("rgb",))["rgb"]
    finally:
        renderer.close()
    return np.asarray(picture, np.uint8)


def main() -> None:
    """Draw the sheet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--azimuth", type=float, default=0.0, help="added to each [deg]")
    parser.add_argument("--extent", type=float, default=1.4, help="of what is framed [m]")
    parser.add_argument("--width", type=int, default=WIDTH)
    parser.add_argument("--clutter", action="store_true", help="leave the clutter on")
    args = parser.parse_args()
    height = round(args.width * HEIGHT / WIDTH)
    tiles = []
    for name in args.names or SETTINGS:
        picture = draw(name, AZIMUTHS[name] + args.azimuth, args.extent, args.width, height,
                       tidy=not args.clutter)  # fmt: skip
        label = next(c.name for i, c in library().settings.items() if i == name)
        scale = args.width / WIDTH * 0.55
        at = (round(10 * args.width / WIDTH), height - round(12 * args.width / WIDTH))
        picture = picture.copy()
        for color, thick in (((20, 20, 20), 3), ((250, 250, 250), 1)):
            cv2.putText(
                picture, label, at, cv2.FONT_HERSHEY_SIMPLEX, scale, color, thick, cv2.LINE_AA
            )
        tiles.append(picture)
    columns = min(COLUMNS, len(tiles))
    rows = math.ceil(len(tiles) / columns)
    sheet = np.full(
        (rows * (height + GAP) - GAP, columns * (args.width + GAP) - GAP, 3), 255, np.uint8
    )
    for k, tile in enumerate(tiles):
        y, x = (k // columns) * (height + GAP), (k % columns) * (args.width + GAP)
        sheet[y : y + height, x : x + args.width] = tile
    quality = [cv2.IMWRITE_JPEG_QUALITY, 74] if args.out.suffix == ".jpg" else []
    if not cv2.imwrite(str(args.out), sheet[..., ::-1], quality):
        raise SystemExit(f"{args.out}: cannot be written")


if __name__ == "__main__":
    main()
