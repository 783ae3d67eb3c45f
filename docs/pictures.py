"""Pictures of the scenes: docs/images/scenes.jpg, the README's, and what the gallery shows.

The gallery draws every row of `ENVIRONMENTS`, the sheet those of `SHOTS`, which says where and when
a scene looks best.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import cv2
import matplotlib
import numpy as np

import wmeval  # noqa: F401 - registers the environments
from wmeval.clock import exact
from wmeval.datasets.derived import flow_layer, shadow_azimuth_layer
from wmeval.datasets.rollout import Rollout
from wmeval.envs import environment_class, environment_row, short_name
from wmeval.envs.plans import load_plan, plans_of
from wmeval.envs.record import record

OUT = Path(__file__).parent / "images" / "scenes.jpg"
WIDTH, HEIGHT = 640, 352
GAP = 8


Place = tuple[tuple[float, float, float], tuple[float, float, float], float]


@dataclass(frozen=True)
class Shot:
    """One picture: when, where from (None: the scene's paper camera), in which room."""

    env_id: str
    plan: str
    time: str
    camera: Place | None = None
    setting: str | None = None


SHOTS = {
    shot.env_id: shot
    for shot in (
        Shot("WMEval/BallRoller-v0", "collision", "2.9", ((0.9, -4.6, 3.0), (1.1, 1.2, 0.1), 42)),
        Shot("WMEval/BeamDomino-v0", "canonical", "2.45", ((4.6, -5.4, 2.9), (2, 0.9, 0.75), 46)),
        Shot("WMEval/BilliardGame-v0", "break", "0.9"),
        Shot("WMEval/ChessBoard-v0", "circle", "1.5"),
        Shot("WMEval/LiquidContainer-v0", "impulse_decay", "11.4"),
        Shot(
            "WMEval/MirrorRollingBall-v0", "collision", "0.8", ((-1, -4.6, 1.7), (0.3, 1, 0.5), 50)
        ),
        Shot("WMEval/RacingCar-v0", "accelerate", "4"),
        Shot("WMEval/SunRisesAndSets-v0", "day", "0.4"),
        Shot("WMEval/WanderingGarden-v0", "walk_path", "0.5"),
    )
}  # fmt: skip
"""The nine scenes of the sheet."""
CLIPS = {
    shot.env_id: shot
    for shot in (
        Shot("RigidBench/FreeFall-v0", "clip", "0.25", setting="hallway_interior"),
        Shot("RigidBench/Bounce-v0", "clip", "0.25", setting="modern_warm_kitchen"),
        Shot("RigidBench/RampCollision-v0", "clip", "0.375", setting="modern_loft"),
        Shot("RigidBench/BallChain-v0", "clip", "0.375", setting="dining_room_set"),
        Shot("RigidBench/DropIntoCluster-v0", "clip", "0.375", setting="beach_gazebo"),
    )
}
"""Tasks whose clips last 2 s: what happens, happens early."""
LABELED = "WMEval/BeamDomino-v0"
LAYERS = ("rgb", "depth", "ids", "glass_ids", "normals", "shadow_ids", "shadow_masks")


def shot_of(env_id: str) -> Shot:
    """Where a scene looks best; else its first plan after a second."""
    return (SHOTS | CLIPS).get(env_id) or Shot(env_id, plans_of(env_id)[0], "1")


def shoot(shot: Shot) -> Rollout:
    """Two neighbouring instants of a shot."""
    env = environment_class(shot.env_id)()
    plan = load_plan(shot.env_id, shot.plan)
    options, view = {}, environment_row(shot.env_id).view
    if shot.camera is not None:
        position, target, fov = shot.camera
        options = {"camera": {"position": position, "target": target, "fov_y_deg": fov}}
        view = "custom"
    if shot.setting is not None:
        options = {**options, "setting": shot.setting}
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


def angle_picture(angle: np.ndarray, strength: np.ndarray) -> np.ndarray:
    """A direction [rad] as hue, a strength in 0..1 as saturation; grey where it is not a number."""
    hsv = np.stack([(angle / (2 * np.pi)) % 1.0, strength, np.ones_like(angle)], -1)
    rgb = matplotlib.colors.hsv_to_rgb(np.nan_to_num(hsv))
    rgb[np.isnan(angle)] = 0.5
    return (rgb * 255).astype(np.uint8)


def flow_picture(flow: np.ndarray) -> np.ndarray | None:
    """Direction as hue, length as saturation; None where nothing moves."""
    length = np.linalg.norm(flow, axis=-1)
    moving = length[length > 0.1]
    if not len(moving):
        return None
    strength = np.clip(length / np.percentile(moving, 98), 0, 1)
    return angle_picture(np.arctan2(flow[..., 1], flow[..., 0]), strength)


def masks_picture(masks: np.ndarray) -> np.ndarray:
    """Colours of the bodies whose own shadows lie on a surface, mixed where several do."""
    sets, which = np.unique(masks, return_inverse=True)
    palette = ids_picture(np.arange(65))
    colors = np.array(
        [
            palette[[i + 1 for i in range(64) if s >> i & 1] or [0]].mean(axis=0)
            for s in map(int, sets)
        ]
    )
    return colors.astype(np.uint8)[which.reshape(masks.shape)]


def pictures_of(rollout: Rollout) -> dict[str, np.ndarray]:
    """The first frame's layers as colours (H, W, 3) uint8, those with something to show."""
    layers = {name: values[0] for name, values in rollout.frames.layers.items()}
    out = {
        "rgb": layers["rgb"],
        "depth": depth_picture(layers["depth"]),
        "ids": ids_picture(layers["ids"]),
        "normals": ((layers["normals"] * 0.5 + 0.5) * 255).astype(np.uint8),
        "shadow_ids": ids_picture(layers["shadow_ids"]),
    }
    if layers["shadow_masks"].any():
        out["shadow_masks"] = masks_picture(layers["shadow_masks"])
    azimuth = shadow_azimuth_layer(rollout)[0]
    if np.isfinite(azimuth).any():
        out["shadow_azimuth"] = angle_picture(azimuth, np.ones_like(azimuth))
    if layers["glass_ids"].any():
        out["glass_ids"] = ids_picture(layers["glass_ids"])
    flow = flow_picture(flow_layer(rollout)[0])
    return out if flow is None else {**out, "flow": flow}


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
    for env_id in SHOTS:
        rollout = shoot(shot_of(env_id))
        labeled = rollout if env_id == LABELED else labeled
        scenes.append(caption(rollout.frames.layers["rgb"][0], short_name(env_id), 0.8))
    blank = np.full_like(scenes[0], 255)
    scenes += [blank] * (-len(scenes) % 3)
    gap = np.full((GAP, 3 * WIDTH + 2 * GAP, 3), 255, np.uint8)
    rows = [row(scenes[i : i + 3]) for i in range(0, len(scenes), 3)]
    top = np.concatenate([x for r in rows for x in (r, gap)][:-1])
    assert labeled is not None
    pictures = pictures_of(labeled)
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
