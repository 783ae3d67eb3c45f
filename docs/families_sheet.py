"""GAUGE's 22 task families, each at an instant when something happens: docs/images/families.jpg.

Rigid families and the rope move on Bullet, what else bends on Newton: `wmeval install newton`.
"""

from __future__ import annotations

from pathlib import Path

import cv2
import gymnasium as gym
import numpy as np

import wmeval  # noqa: F401 - registers the environments
from wmeval.assets.gauge_cards import families

OUT = Path(__file__).parent / "images" / "families.jpg"
WIDTH, HEIGHT, COLUMNS, GAP = 320, 200, 5, 6
INSTANTS = {
    # family: seconds, subtask
    "slope_contact": (0.13, "1"),
    "nonsmooth_contact": (0.12, "1"),
    "slope_slider": (0.4, "2"),
    "turntable": (0.5, "2"),
    "bouncing_ball": (0.43, "1"),
    "newtons_cradle": (0.35, "1"),
    "wall_breaking": (0.45, "1"),
    "pendulum": (0.2, "1"),
    "rope_winding": (0.7, "1"),
    "textile_stretching": (2.0, "1"),
    "textile_bending": (4.0, "1"),
    "textile_flinging": (0.5, "1"),
    "funnel": (1.2, "1"),
    "rotating_ball": (0.8, "1"),
    "tablecloth_pulling": (0.2, "1"),
    "foam_stretching": (0.9, "1"),
    "foam_compressing": (0.9, "1"),
    "foam_shearing": (1.1, "1"),
    "foam_twisting": (1.4, "1"),
    "foam_bending": (0.9, "1"),
    "stick_stack": (1.0, "1"),
    "cantilever_beam": (0.2, "1"),
}


def tile(name: str) -> np.ndarray:
    """Picture of a family with its name, (HEIGHT, WIDTH, 3)."""
    seconds, subtask = INSTANTS[name]
    card = families()[name]
    engine = "bullet" if card.engines["bullet"].status != "not_run" else "newton"
    solver = {"solver": "vbd"} if name.startswith("foam_") else {}
    env = gym.make(
        f"GAUGE/{card.env}-v0", engine=engine, subtask=subtask, solver=solver,
        render_mode="rgb_array", width=WIDTH, height=HEIGHT,
    )  # fmt: skip
    env.reset(seed=0)
    while env.unwrapped.time < seconds - 1e-9:
        env.step(env.action_space.sample() * 0)
    picture = env.render().copy()
    env.close()
    for color, width in (((0, 0, 0), 3), ((255, 255, 255), 1)):
        cv2.putText(picture, card.env, (8, 18), cv2.FONT_HERSHEY_SIMPLEX, 0.5, color, width,
                    cv2.LINE_AA)  # fmt: skip
    return picture


def main() -> None:
    """Draw the sheet; tiles that an earlier run left in runs/families are taken."""
    kept = Path("runs/families")
    kept.mkdir(parents=True, exist_ok=True)
    rows = -(-len(INSTANTS) // COLUMNS)
    sheet = np.full((rows * (HEIGHT + GAP) - GAP, COLUMNS * (WIDTH + GAP) - GAP, 3), 255, np.uint8)
    for i, name in enumerate(INSTANTS):
        y, x = (i // COLUMNS) * (HEIGHT + GAP), (i % COLUMNS) * (WIDTH + GAP)
        file = kept / f"{name}.png"
        if not file.exists():
            cv2.imwrite(str(file), tile(name)[..., ::-1])
        sheet[y : y + HEIGHT, x : x + WIDTH] = cv2.imread(str(file))[..., ::-1]
        print(name, flush=True)
    cv2.imwrite(str(OUT), sheet[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 88])


if __name__ == "__main__":
    main()
