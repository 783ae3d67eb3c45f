"""Picture of GAUGE's 22 task families: docs/images/families.jpg.

``python docs/families_sheet.py [--out FILE] [NAME...]`` draws the named families (all of them),
each at an instant when something happens. What bends moves on Newton, which
`wmeval install newton` installs; it takes minutes.
"""

from __future__ import annotations

import argparse
import math
from dataclasses import dataclass
from pathlib import Path

import cv2
import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

import wmeval  # noqa: F401 - registers the environments
from wmeval.assets.gauge_cards import families

OUT = Path(__file__).parent / "images" / "families.jpg"
MAX_BYTES = 400_000
WIDTH, HEIGHT, GAP, COLUMNS = 320, 200, 6, 4
DRAWN = 4
"""How many times as large as its tile a scene is drawn: things are cut out of it."""
MARGIN, BELOW = 0.05, 0.08
"""About what is cut out, and more of it below, where the name stands: over its size."""


@dataclass(frozen=True)
class Shot:
    """When a family is drawn [s], of which set-up, and the least share of it that is cut out."""

    time: float
    subtask: str = "1"
    view: str = "main"
    config: str = "published-settings"
    least: float = 0.35


SHOTS = {
    "slope_contact": Shot(0.2),
    "nonsmooth_contact": Shot(0.12),
    "slope_slider": Shot(0.4, "2"),
    "turntable": Shot(0.5, "2"),
    "bouncing_ball": Shot(0.33, least=0.5),
    "newtons_cradle": Shot(0.35),
    "wall_breaking": Shot(0.5),
    "pendulum": Shot(0.1),
    "rope_winding": Shot(1.53),
    "textile_stretching": Shot(2.0),
    "textile_bending": Shot(4.0),
    "textile_flinging": Shot(0.5),
    "funnel": Shot(1.6, view="static"),
    "rotating_ball": Shot(1.0),
    "tablecloth_pulling": Shot(0.2, config="tuned"),
    "foam_stretching": Shot(0.95, config="tuned"),
    "foam_compressing": Shot(0.95, config="tuned"),
    "foam_shearing": Shot(1.2, config="tuned"),
    "foam_twisting": Shot(2.0, config="tuned"),
    "foam_bending": Shot(0.9, config="tuned"),
    "stick_stack": Shot(1.0, config="tuned"),
    "cantilever_beam": Shot(0.2, config="tuned"),
}


def shoot(name: str) -> tuple[NDArray[np.uint8], NDArray[np.bool_]]:
    """A family at its instant (H, W, 3) RGB, and where something but the ground is seen (H, W)."""
    card, shot = families()[name], SHOTS[name]
    bends = card.rates != "rigid" and card.kind != "rope"
    env = gym.make(
        f"GAUGE/{card.env}-v0", engine="newton" if bends else "bullet", subtask=shot.subtask,
        config=shot.config,
    ).unwrapped  # fmt: skip
    try:
        env.reset(seed=0, options={"view": shot.view})
        for _ in range(round(shot.time * 30)):
            env.step([])
        drawn = env.draw(("rgb", "ids"), width=DRAWN * WIDTH, height=DRAWN * HEIGHT)
        ground = {b.instance for b in env.scene.bodies if b.role == "ground"}
    finally:
        env.close()
    return drawn["rgb"], ~np.isin(drawn["ids"], [0, *ground])


def framed(picture: NDArray[np.uint8], there: NDArray[np.bool_], least: float) -> NDArray[np.uint8]:
    """Cut out what is there, as a tile (HEIGHT, WIDTH, 3)."""
    rows, columns = np.flatnonzero(there.any(axis=1)), np.flatnonzero(there.any(axis=0))
    high, wide = there.shape
    # As shares of what is drawn, whose aspect is a tile's.
    reach = max((1 + BELOW) * (np.ptp(rows) + 1) / high, (np.ptp(columns) + 1) / wide)
    share = min(1.0, max(least, (1 + 2 * MARGIN) * reach))
    size = np.array([math.floor(share * high), math.floor(share * wide)])
    middle = np.array([rows[0] + rows[-1] + BELOW * size[0], columns[0] + columns[-1]]) / 2
    low = np.clip(np.round(middle - size / 2), 0, np.array(there.shape) - size).astype(int)
    cut = picture[low[0] : low[0] + size[0], low[1] : low[1] + size[1]]
    return np.asarray(cv2.resize(cut, (WIDTH, HEIGHT), interpolation=cv2.INTER_AREA), np.uint8)


def labelled(picture: NDArray[np.uint8], text: str) -> NDArray[np.uint8]:
    """White text with a dark rim, bottom left."""
    out = np.ascontiguousarray(picture)
    for color, thick in (((20, 20, 20), 4), ((255, 255, 255), 1)):
        cv2.putText(out, text, (8, HEIGHT - 9), cv2.FONT_HERSHEY_DUPLEX, 0.5, color, thick,
                    cv2.LINE_AA)  # fmt: skip
    return out


def main() -> None:
    """Draw the sheet."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", default=[])
    parser.add_argument("--out", type=Path, default=OUT)
    args = parser.parse_args()
    tiles = []
    for name in args.names or SHOTS:
        tile = framed(*shoot(name), SHOTS[name].least)
        tiles.append(labelled(tile, families()[name].env))
        print(name, flush=True)
    columns = min(COLUMNS, len(tiles))
    rows = math.ceil(len(tiles) / columns)
    sheet = np.full((rows * (HEIGHT + GAP) - GAP, columns * (WIDTH + GAP) - GAP, 3), 255, np.uint8)
    for k, tile in enumerate(tiles):
        y, x = (k // columns) * (HEIGHT + GAP), (k % columns) * (WIDTH + GAP)
        sheet[y : y + HEIGHT, x : x + WIDTH] = tile
    quality = [cv2.IMWRITE_JPEG_QUALITY, 80] if args.out.suffix == ".jpg" else []
    if not cv2.imwrite(str(args.out), sheet[..., ::-1], quality):
        raise SystemExit(f"{args.out}: cannot be written")
    if args.out.stat().st_size > MAX_BYTES:
        raise SystemExit(f"{args.out}: more than {MAX_BYTES // 1000} kB")


if __name__ == "__main__":
    main()
