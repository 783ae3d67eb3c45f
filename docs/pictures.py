"""Draw docs/images/scenes.jpg, the README's picture: each scene, and one scene's label layers."""

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
from wmeval.envs import environment_class, short_name
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record

OUT = Path(__file__).parent / "images" / "scenes.jpg"
WIDTH, HEIGHT = 640, 352
GAP = 8


@dataclass(frozen=True)
class Shot:
    """One picture: where and when the camera stands."""

    env_id: str
    plan: str
    time: str
    camera: tuple[tuple[float, float, float], tuple[float, float, float], float]


SHOTS = (
    Shot("WMEval/BallRoller-v0", "collision", "2.9", ((0.9, -4.6, 3.0), (1.1, 1.2, 0.1), 42)),
    Shot("WMEval/BeamDomino-v0", "canonical", "2.45", ((4.6, -5.4, 2.9), (2.0, 0.9, 0.75), 46)),
    Shot("WMEval/MirrorRollingBall-v0", "collision", "0.8", ((-1.0, -4.6, 1.7), (0.3, 1, 0.5), 50)),
)
LABELED = SHOTS[1]
LAYERS = ("rgb", "depth", "ids", "normals", "shadow_ids")


def shoot(shot: Shot) -> Rollout:
    """Two neighbouring instants of a shot."""
    env = environment_class(shot.env_id)()
    plan = load_plan(shot.env_id, shot.plan)
    position, target, fov = shot.camera
    camera = {"position": position, "target": target, "fov_y_deg": fov}
    rollout = record(
        env,
        plan=plan,
        seed=0,
        options={**plan.reset_options, "camera": camera},
        layers=LAYERS,
        view="custom",
        width=WIDTH,
        height=HEIGHT,
        frame_times=(exact(shot.time), exact(shot.time) + exact("1/24")),
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
    shots = {shot: shoot(shot) for shot in SHOTS}
    top = row(
        [
            caption(rollout.frames.layers["rgb"][0], short_name(shot.env_id), 0.8)
            for shot, rollout in shots.items()
        ]
    )
    labeled = shots[LABELED]
    layers = labeled.frames.layers
    pictures = {
        "depth": depth_picture(layers["depth"][0]),
        "ids": ids_picture(layers["ids"][0]),
        "normals": ((layers["normals"][0] * 0.5 + 0.5) * 255).astype(np.uint8),
        "shadows": ids_picture(layers["shadow_ids"][0]),
        "flow": flow_picture(flow_layer(labeled)[0]),
    }
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
    cv2.imwrite(str(OUT), np.concatenate([top, bottom])[..., ::-1], [cv2.IMWRITE_JPEG_QUALITY, 92])


if __name__ == "__main__":
    main()
