"""Pictures of the scenes: docs/images/scenes.jpg, the README's, and what the gallery shows.

Every row of `ENVIRONMENTS` is drawn; `SHOTS` only says where and when it looks best.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import matplotlib
import numpy as np

import wmeval  # noqa: F401 - registers the environments
from wmeval.clock import exact
from wmeval.datasets.derived import flow_layer
from wmeval.datasets.rollout import Rollout
from wmeval.envs import ENVIRONMENTS, environment_class, environment_row, short_name
from wmeval.envs.plans import load_plan, plans_of
from wmeval.envs.record import record

OUT = Path(__file__).parent / "images" / "scenes.jpg"
WIDTH, HEIGHT = 640, 352
GAP = 8


Place = tuple[tuple[float, float, float], tuple[float, float, float], float]


@dataclass(frozen=True)
class Shot:
    """One picture: when, and where the camera stands (None: the scene's paper camera)."""

    env_id: str
    plan: str
    time: str
    camera: Place | None = None


SHOTS = {
    shot.env_id: shot
    for shot in (
        Shot("WMEval/BallRoller-v0", "collision", "2.9", ((0.9, -4.6, 3.0), (1.1, 1.2, 0.1), 42)),
        Shot("WMEval/BeamDomino-v0", "canonical", "2.45", ((4.6, -5.4, 2.9), (2, 0.9, 0.75), 46)),
        Shot("WMEval/BilliardGame-v0", "break", "0.9"),
        Shot("WMEval/ChessBoard-v0", "circle", "1.5"),
        Shot("WMEval/LiquidContainer-v0", "impulse_decay", "0.6"),
        Shot(
            "WMEval/MirrorRollingBall-v0", "collision", "0.8", ((-1, -4.6, 1.7), (0.3, 1, 0.5), 50)
        ),
        Shot("WMEval/RacingCar-v0", "accelerate", "4"),
        Shot("WMEval/SunRisesAndSets-v0", "day", "0.4"),
        Shot("WMEval/WanderingGarden-v0", "walk_path", "0.5"),
    )
}  # fmt: skip
LABELED = "WMEval/BeamDomino-v0"
LAYERS = ("rgb", "depth", "ids", "glass_ids", "normals", "shadow_ids")


def shot_of(env_id: str) -> Shot:
    """Where a scene looks best; else its first plan after a second."""
    return SHOTS.get(env_id) or Shot(env_id, plans_of(env_id)[0], "1")


def shoot(shot: Shot) -> Rollout:
    """Two neighbouring instants of a shot."""
    env = environment_class(shot.env_id)()
    plan = load_plan(shot.env_id, shot.plan)
    options, view = {}, environment_row(shot.env_id).view
    if shot.camera is not None:
        position, target, fov = shot.camera
        options = {"camera": {"position": position, "target": target, "fov_y_deg": fov}}
        view = "custom"
    last = exact(shot.time) + exact("1/24")
    rollout = record(
        env,
        plan=plan,
        seed=0,
        options={**plan.reset_options, **options},
        layers=LAYERS,
        view=view,
        width=WIDTH,
        height=HEIGHT,
        frame_times=(exact(shot.time), last),
        max_steps=int(last / env.clock.control_period) + 1,
    )
    env.close()
    return rollout


def depth_picture(depth: np.ndarray) -> np.ndarray:
    """Near is bright."""
    seen = np.isfinite(depth)
    near = np.where(seen, 1 / depth, 0)
    low, high = np.percentile(near[seen], [1, 99.5])
    value = np.clip((near - low) / (high - low), 0, 1)
    return (matplotlib.colormaps["magma"](value)[..., :3] * 255).astype(np.uint8)


def ids_picture(ids: np.ndarray) -> np.ndarray:
    """One colour per instance, by the golden angle."""
    hue = (np.arange(ids.max() + 1) * 0.618034) % 1.0
    colors = matplotlib.colors.hsv_to_rgb(
        np.stack([hue, np.full_like(hue, 0.6), 0.55 + 0.4 * hue], 1)
    )
    colors[0] = 0.12
    return (colors[ids] * 255).astype(np.uint8)


def flow_picture(flow: np.ndarray) -> np.ndarray:
    """Direction as hue, length as saturation; grey where it is not known."""
    length = np.linalg.norm(flow, axis=-1)
    scale = np.nanpercentile(length[length > 0.1], 98) if np.nanmax(length) > 0.1 else 1.0
    hue = (np.arctan2(flow[..., 1], flow[..., 0]) / (2 * np.pi)) % 1.0
    hsv = np.stack([hue, np.clip(length / scale, 0, 1), np.ones_like(hue)], -1)
    rgb = matplotlib.colors.hsv_to_rgb(np.nan_to_num(hsv))
    rgb[~np.isfinite(length)] = 0.5
    return (rgb * 255).astype(np.uint8)


def pictures_of(rollout: Rollout) -> dict[str, np.ndarray]:
    """The first frame's layers as colours (H, W, 3) uint8; glass only where there is some."""
    layers = rollout.frames.layers
    out = {
        "rgb": layers["rgb"][0],
        "depth": depth_picture(layers["depth"][0]),
        "ids": ids_picture(layers["ids"][0]),
        "normals": ((layers["normals"][0] * 0.5 + 0.5) * 255).astype(np.uint8),
        "shadow_ids": ids_picture(layers["shadow_ids"][0]),
    }
    if layers["glass_ids"][0].any():
        out["glass_ids"] = ids_picture(layers["glass_ids"][0])
    return out


def caption(picture: np.ndarray, text: str, size: float) -> np.ndarray:
    """White text with a dark rim, bottom left."""
    place = (10, picture.shape[0] - 12)
    out = np.ascontiguousarray(picture)
    for color, width in (((20, 20, 20), 4), ((255, 255, 255), 1)):
        cv2.putText(out, text, place, cv2.FONT_HERSHEY_DUPLEX, size, color, width, cv2.LINE_AA)
    return out


def row(pictures: list[np.ndarray]) -> np.ndarray:
    """Side by side with white gaps."""
    gap = np.full((pictures[0].shape[0], GAP, 3), 255, np.uint8)
    return np.concatenate([x for p in pictures for x in (p, gap)][:-1], axis=1)


def main() -> None:
    """Draw and write."""
    scenes, labeled = [], None
    for env_id in ENVIRONMENTS:
        rollout = shoot(shot_of(env_id))
        labeled = rollout if env_id == LABELED else labeled
        scenes.append(caption(rollout.frames.layers["rgb"][0], short_name(env_id), 0.8))
    blank = np.full_like(scenes[0], 255)
    scenes += [blank] * (-len(scenes) % 3)
    gap = np.full((GAP, 3 * WIDTH + 2 * GAP, 3), 255, np.uint8)
    rows = [row(scenes[i : i + 3]) for i in range(0, len(scenes), 3)]
    top = np.concatenate([x for r in rows for x in (r, gap)][:-1])
    assert labeled is not None
    pictures = {**pictures_of(labeled), "flow": flow_picture(flow_layer(labeled)[0])}
    del pictures["rgb"]
    width = (top.shape[1] - GAP * (len(pictures) - 1)) // len(pictures)
    height = round(width * HEIGHT / WIDTH)
    bottom = row(
        [
            caption(cv2.resize(p, (width, height), interpolation=cv2.INTER_AREA), name, 0.6)
            for name, p in pictures.items()
        ]
    )
    bottom = cv2.copyMakeBorder(
        bottom, GAP, 0, 0, top.shape[1] - bottom.shape[1], cv2.BORDER_CONSTANT, value=(255,) * 3
    )
    OUT.parent.mkdir(exist_ok=True)
    sheet = np.concatenate([top, bottom])[..., ::-1]
    small = cv2.resize(sheet, None, fx=0.75, fy=0.75, interpolation=cv2.INTER_AREA)
    cv2.imwrite(str(OUT), small, [cv2.IMWRITE_JPEG_QUALITY, 90])


if __name__ == "__main__":
    main()
