"""What can be known of a clip: from the simulator's records, or from its pixels alone.

One result type for every source. The *oracle* reads records (references, simulator-backed
candidates). The *classical* source reads pixels: DIS optical flow with a forward-backward gate, and
a tracker of balls that is told nothing but the first frame's mask. Whatever cannot be measured is
NaN or absent with a reason, never a guess.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wmeval.eval.balls import LOST_BELOW, Still, sphere_on_plane, track_balls
from wmeval.records import Events, WorldLog
from wmeval.scene import Scene, Sphere

__all__ = [
    "ClassicalFlow", "Estimate", "Still", "ball_radius", "camera_moved", "classical",
    "classical_flows", "floor_balls", "flow_step", "nothing_moves", "oracle", "resample",
    "sphere_on_plane", "track_balls",
]  # fmt: skip

F8 = NDArray[np.float64]
Bool = NDArray[np.bool_]
Source = Literal["oracle", "classical", "learned"]

# Settings of the classical source; results print them.
FLOW_GATE_PX = 1.0
FLOW_PRESET = "DIS medium, finest scale 0"
STILL_SHARE = 0.01  # of the picture's height: a background that moves less is still
FLOW_RATE_HZ = 12  # flows are composed from frames this close in time, or the clip's own
CHANGED_LEVELS = 16  # levels of smoothed grey by which a pixel changed beyond codec noise
CHANGED_SHARE = 0.15  # of a body's first mask: less change is no motion
CLASSICAL_SETTINGS: Mapping[str, Any] = MappingProxyType(
    {
        "flow": FLOW_PRESET,
        "flow_gate_px": FLOW_GATE_PX,
        "tracker": "colour contrast of a disc, seeded by the first frame's mask",
        "lost_below": LOST_BELOW,
        "still_share": STILL_SHARE,
        "flow_rate_hz": FLOW_RATE_HZ,
        "changed_levels": CHANGED_LEVELS,
        "changed_share": CHANGED_SHARE,
    }
)


@dataclass(frozen=True, eq=False)
class Estimate:
    """Recovered quantities of one clip, frame by frame.

    Attributes:
        source: where they come from.
        times: exact times [s] of the T frames.
        positions: body -> (T, 3) [m], NaN where not measured.
        velocities: body -> (T, 3) [m/s] where the source knows them (records); else absent.
        pixels: body -> (T, 2) [px] centre of the silhouette.
        confidence: body -> (T,) in [0, 1].
        flows: flow (H, W, 2) [px] of frame pairs that were asked for, NaN where not measured.
        events: what happened, in the candidate's own time; None when the source cannot tell.
        series: what else was recorded, as `SERIES` names it -> (T, n); records only.
        missing: quantity ("positions", "flows", "events") -> why it is absent.
        weights_sha256: of learned weights; empty for other sources.
        settings: of the source.
    """

    source: Source
    times: tuple[Fraction, ...]
    positions: Mapping[str, F8] = field(default_factory=dict)
    velocities: Mapping[str, F8] = field(default_factory=dict)
    pixels: Mapping[str, F8] = field(default_factory=dict)
    confidence: Mapping[str, F8] = field(default_factory=dict)
    flows: tuple[NDArray[np.float32], ...] | None = None
    events: Events | None = None
    series: Mapping[str, F8] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    weights_sha256: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def coverage(self, body: str) -> float:
        """Share of the frames in which a body's position was measured, in [0, 1]."""
        track = self.positions.get(body)
        if track is None or not len(track):
            return 0.0
        return float(np.isfinite(track).all(axis=1).mean())


SERIES = ("sun_direction", "sun_color", "sky", "surface_normal", "slosh_amplitude")
"""What a record may hold beside bodies: light, and the modal state of a liquid."""


def series_of(log: WorldLog) -> dict[str, F8]:
    """The `SERIES` that a record holds, each (T, n)."""
    known = {
        "sun_direction": log.lights.sun_direction,
        "sun_color": log.lights.sun_color,
        "sky": log.lights.sky.reshape(len(log), -1),
        **log.state.modal,
    }
    return {name: known[name] for name in SERIES if name in known}


# --- oracle -------------------------------------------------------------------------------------


def oracle(
    log: WorldLog,
    times: Sequence[Fraction],
    *,
    bodies: Sequence[str],
    flows: Sequence[NDArray[np.float32]] | None = None,
) -> Estimate:
    """What a record says of a clip.

    Args:
        log: row i is frame i's state.
        times: of the frames.
        bodies: names of the bodies that are wanted.
        flows: exact flows of the sampled pairs, where a renderer made them.

    Raises:
        ValueError: the record has not one row per frame.
    """
    if len(log) != len(times):
        raise ValueError(f"{len(times)} frames but {len(log)} recorded states")
    index = {name: log.state.body(name) for name in bodies}
    active = {name: log.state.active[:, i, None] for name, i in index.items()}
    return Estimate(
        source="oracle",
        times=tuple(times),
        positions={
            n: np.where(active[n], log.state.position[:, i], np.nan) for n, i in index.items()
        },
        velocities={
            n: np.where(active[n], log.state.linear_velocity[:, i], np.nan)
            for n, i in index.items()
        },
        flows=None if flows is None else tuple(flows),
        events=log.events,
        series=series_of(log),
        missing={} if flows is not None else {"flows": "no exact flow was rendered"},
    )


# --- flow ---------------------------------------------------------------------------------------


class ClassicalFlow:
    """Dense flow by OpenCV's DIS (medium preset, finest scale 0), gated forward and backward."""

    def __init__(self) -> None:
        import cv2

        # The stubs of OpenCV lack this class.
        create: Any = cv2.DISOpticalFlow_create  # type: ignore[attr-defined]
        self._dis = create(cv2.DISOPTICAL_FLOW_PRESET_MEDIUM)
        self._dis.setFinestScale(0)

    def between(self, first: NDArray[np.uint8], second: NDArray[np.uint8]) -> NDArray[np.float32]:
        """Flow (H, W, 2) float32 [px] of two grey pictures (H, W).

        NaN where following the flow there and back misses the start by `FLOW_GATE_PX` or more, or
        leaves the picture.
        """
        import cv2

        if np.array_equal(first, second):
            return np.zeros((*first.shape, 2), np.float32)
        first, second = np.ascontiguousarray(first), np.ascontiguousarray(second)
        # A fresh field each time: DIS would take a given one as its starting guess.
        forward = np.asarray(self._dis.calc(first, second, None), np.float32)
        backward = np.asarray(self._dis.calc(second, first, None), np.float32)
        height, width = first.shape
        x, y = np.meshgrid(np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32))
        tx, ty = x + forward[..., 0], y + forward[..., 1]
        inside = (tx >= 0) & (ty >= 0) & (tx <= width - 1) & (ty <= height - 1)
        back = cv2.remap(backward, tx, ty, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        gate = inside & (np.linalg.norm(forward + back, axis=-1) < FLOW_GATE_PX)
        return np.where(gate[..., None], forward, np.float32(np.nan))


def classical_flows(
    frames: NDArray[np.uint8], pairs: Sequence[tuple[int, int]], *, step: int = 1
) -> tuple[NDArray[np.float32], ...]:
    """Flows (H, W, 2) [px] of frame pairs (a, b), composed from near frames.

    Args:
        frames: (T, H, W, 3) uint8.
        pairs: frame indices with a < b.
        step: frames between those whose flow is estimated; the last stretch may be shorter.
    """
    import cv2

    from wmeval.eval.metrics.flow import compose

    estimator = ClassicalFlow()
    out: list[NDArray[np.float32]] = []
    for a, b in pairs:
        grey = cv2.cvtColor(frames[a], cv2.COLOR_RGB2GRAY)
        total: Any = None
        for k in [*range(a + step, b, step), b]:
            after = cv2.cvtColor(frames[k], cv2.COLOR_RGB2GRAY)
            near = estimator.between(np.asarray(grey), np.asarray(after))
            total = near if total is None else compose(total, near)
            grey = after
        out.append(np.asarray(total, np.float32))
    return tuple(out)


# --- is the camera still? -----------------------------------------------------------------------


def camera_moved(frames: NDArray[np.uint8], exclude: Bool, *, samples: int = 6) -> str:
    """Why the camera of a clip cannot be taken to stand still; empty when it can.

    The first frame's background is cut into blocks; each textured block is looked for in later
    frames, up to 4 % of the picture's height away. A camera is still when at least half of the
    blocks are found (correlation of the high-passed greys above 1/2) and the median of their
    displacements is below 1 % of the height.

    Args:
        frames: (T, H, W, 3) uint8.
        exclude: (H, W) pixels of the first frame that belong to bodies that may move.
        samples: later frames looked at.
    """
    import cv2

    height, width = frames.shape[1:3]
    reach = max(2, round(0.04 * height))

    def detail(frame: NDArray[np.uint8]) -> NDArray[np.float32]:
        grey = np.asarray(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY), np.float32)
        return grey - cv2.GaussianBlur(grey, (0, 0), max(2.0, height / 40))

    first = detail(frames[0])
    side_x, side_y = max(12, width // 10), max(12, height // 7)
    blocks = [
        (slice(y, y + side_y), slice(x, x + side_x))
        for y in range(reach, height - side_y - reach + 1, side_y)
        for x in range(reach, width - side_x - reach + 1, side_x)
    ]
    blocks = [b for b in blocks if exclude[b].mean() < 0.02 and first[b].std() > 1.0]
    if len(blocks) < 6:
        return "the first frame's background has no texture to tell by"
    for k in np.unique(np.linspace(0, len(frames) - 1, samples + 1).astype(int))[1:].tolist():
        other = detail(frames[k])
        shifts = []
        for rows, cols in blocks:
            window = other[
                rows.start - reach : rows.stop + reach, cols.start - reach : cols.stop + reach
            ]
            score = cv2.matchTemplate(window, first[rows, cols], cv2.TM_CCOEFF_NORMED)
            best = int(np.argmax(score))
            if score.flat[best] > 0.5:
                j, i = divmod(best, score.shape[1])
                shifts.append(float(np.hypot(i - reach, j - reach)))
        if len(shifts) < len(blocks) / 2:
            share = 100 * len(shifts) / len(blocks)
            return f"only {share:.0f} % of the background is found again in frame {k}"
        shift = float(np.median(shifts))
        if shift > max(1.0, STILL_SHARE * height):
            return f"the background has moved by {shift:.1f} px in frame {k}"
    return ""


# --- all together ------------------------------------------------------------------------------


def classical(
    frames: NDArray[np.uint8],
    times: Sequence[Fraction],
    *,
    scene: Scene,
    balls: Sequence[str],
    masks: Mapping[str, Bool],
    camera: Still | None,
    pairs: Sequence[tuple[int, int]] = (),
) -> Estimate:
    """What pixels alone tell of a clip.

    Args:
        frames: (T, H, W, 3) uint8.
        times: exact times [s].
        scene: for the radii of the balls.
        balls: names of the floor balls to be tracked.
        masks: body that may move -> its mask (H, W) in the FIRST frame, the only thing told about
            the contents.
        camera: the still camera; None when it moves or is not known.
        pairs: frame pairs whose flow is wanted.
    """
    reason = "" if camera is not None else "camera unknown"
    if camera is not None:
        reason = camera_moved(frames, _union(masks, frames.shape[1:3]))
        reason = f"camera unknown: {reason}" if reason else ""
    seeds = {name: masks[name] for name in balls if name in masks}
    radii = {name: ball_radius(scene, name) for name in seeds}
    still = None if reason else camera
    pixels, confidence = track_balls(frames, seeds, camera=still, radii=radii)
    missing: dict[str, str] = {}
    events: Events | None = None
    if nothing_moves(frames, masks):
        events = ()
    else:
        missing["events"] = "no contacts and falls are recovered from pixels"
    positions: dict[str, F8] = {}
    if still is None:
        missing["positions"] = reason
    else:
        # Only a ball on the floor has a known height.
        positions = {n: sphere_on_plane(pixels[n], r, r, still) for n, r in radii.items()}
    return Estimate(
        source="classical",
        times=tuple(times),
        positions=positions,
        pixels=pixels,
        confidence=confidence,
        flows=classical_flows(frames, pairs, step=flow_step(times)),
        events=events,
        missing=missing,
        settings=dict(CLASSICAL_SETTINGS),
    )


def _union(masks: Mapping[str, Bool], size: tuple[int, ...]) -> Bool:
    out = np.zeros(size, bool)
    for mask in masks.values():
        out |= mask
    return out


def nothing_moves(frames: NDArray[np.uint8], masks: Mapping[str, Bool]) -> bool:
    """Whether every body that could move keeps its first appearance through the whole clip.

    Then nothing was struck and nothing fell, which is all that pixels can say of events here. A
    body has moved when, in some frame, `CHANGED_SHARE` of its first mask differs by more than
    `CHANGED_LEVELS` levels of grey, smoothed over 3 x 3 pixels: colour is coded at half the
    resolution, so that the hues of small bodies change by coding alone.
    """
    import cv2

    def grey(frame: NDArray[np.uint8]) -> NDArray[np.int16]:
        smooth = cv2.blur(cv2.cvtColor(frame, cv2.COLOR_RGB2GRAY), (3, 3))
        return np.asarray(smooth, np.int16)

    first = grey(frames[0])
    shown = [mask for mask in masks.values() if mask.any()]
    for frame in frames[1:]:
        changed = np.abs(grey(frame) - first) > CHANGED_LEVELS
        if any(changed[mask].mean() > CHANGED_SHARE for mask in shown):
            return False
    return True


def flow_step(times: Sequence[Fraction]) -> int:
    """Frames between those whose flow is estimated: as few as `FLOW_RATE_HZ` asks for."""
    if len(times) < 2:
        return 1
    return max(1, int(1 / ((times[1] - times[0]) * FLOW_RATE_HZ)))


def resample(estimate: Estimate, times: Sequence[Fraction]) -> Estimate:
    """An estimate on other times (grid "reference"): linear, NaN beside NaN, none outside.

    Flows and events keep the frames that they were measured on.

    Args:
        estimate: on its own frames.
        times: wanted, ascending [s].
    """
    own = np.array([float(t) for t in estimate.times])
    new = np.array([float(t) for t in times])
    inside = (new >= own[0]) & (new <= own[-1])

    def linear(track: F8) -> F8:
        left = np.clip(np.searchsorted(own, new, side="right") - 1, 0, max(len(own) - 2, 0))
        right = np.minimum(left + 1, len(own) - 1)
        span = np.where(right > left, own[right] - own[left], 1.0)
        weight = np.clip((new - own[left]) / span, 0, 1)[:, None]
        # A neighbour of weight 0 must not spread its NaN.
        low = np.where(weight < 1, (1 - weight) * track[left], 0.0)
        high = np.where(weight > 0, weight * track[right], 0.0)
        out: F8 = np.where(inside[:, None], low + high, np.nan)
        return out

    return replace(
        estimate,
        times=tuple(times),
        positions={n: linear(t) for n, t in estimate.positions.items()},
        velocities={n: linear(t) for n, t in estimate.velocities.items()},
        pixels={n: linear(t) for n, t in estimate.pixels.items()},
        confidence={n: linear(t[:, None])[:, 0] for n, t in estimate.confidence.items()},
        series={n: linear(t) for n, t in estimate.series.items()},
    )


def ball_radius(scene: Scene, name: str) -> float:
    """Radius [m] of a body that is one ball.

    Raises:
        ValueError: the body is not a ball.
    """
    shapes = [v.shape for v in scene.bodies[scene.index(name)].visuals]
    shapes += [c.shape for c in scene.bodies[scene.index(name)].collision]
    balls = [s.radius for s in shapes if isinstance(s, Sphere)]
    if not balls:
        raise ValueError(f"body {name!r} is not a ball")
    return max(balls)


def floor_balls(scene: Scene, *, roles: Sequence[str] = ("player",)) -> tuple[str, ...]:
    """Balls that start on the floor z = 0: the only bodies whose height pixels can be trusted with.

    Args:
        scene: the world at t = 0.
        roles: which bodies are wanted.
    """
    names = []
    for body in scene.bodies:
        if body.role in roles and any(isinstance(c.shape, Sphere) for c in body.collision):
            radius = ball_radius(scene, body.name)
            if abs(body.position[2] - radius) < 0.05 * radius:
                names.append(body.name)
    return tuple(names)
