"""What can be known of a clip: from the simulator's records, or from its pixels alone.

One result type for every source. The *oracle* reads records (references, simulator-backed
candidates). The *classical* source reads pixels: DIS optical flow with a forward-backward gate, and
a tracker of balls that is told nothing but the first frame's mask. Whatever cannot be measured is
NaN or absent with a reason, never a guess.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from types import MappingProxyType
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wmeval.records import Events, WorldLog
from wmeval.scene import Scene, Sphere

F8 = NDArray[np.float64]
Bool = NDArray[np.bool_]
Source = Literal["oracle", "classical", "learned"]

# Settings of the classical source; results print them.
FLOW_GATE_PX = 1.0
FLOW_PRESET = "DIS medium, finest scale 0"
LOST_BELOW = 0.35  # share of the first frame's contrast at which a ball counts as lost
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


@dataclass(frozen=True)
class Still:
    """A camera that does not move: ``K`` (3, 3) [px], ``T_world_camera`` (4, 4)."""

    K: F8
    T_world_camera: F8


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
    missing: Mapping[str, str] = field(default_factory=dict)
    weights_sha256: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)

    def coverage(self, body: str) -> float:
        """Share of the frames in which a body's position was measured, in [0, 1]."""
        track = self.positions.get(body)
        if track is None or not len(track):
            return 0.0
        return float(np.isfinite(track).all(axis=1).mean())


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


# --- balls in pixels ----------------------------------------------------------------------------

_BINS = (16, 32, 32)  # Lab


@dataclass(frozen=True)
class _Window:
    """A clipped square of a picture."""

    x: int
    y: int
    width: int
    height: int

    @staticmethod
    def around(cx: float, cy: float, half: float, shape: tuple[int, int]) -> _Window:
        x0, y0 = max(0, int(cx - half)), max(0, int(cy - half))
        x1, y1 = min(shape[1], int(cx + half) + 2), min(shape[0], int(cy + half) + 2)
        return _Window(x0, y0, max(0, x1 - x0), max(0, y1 - y0))

    def cut(self, picture: NDArray[Any]) -> NDArray[Any]:
        return picture[self.y : self.y + self.height, self.x : self.x + self.width]


def _bins(lab: NDArray[np.uint8]) -> NDArray[np.int64]:
    """Histogram bin of every pixel, (H, W)."""
    q = lab.astype(np.int64)
    out: NDArray[np.int64] = ((q[..., 0] >> 4) * 32 + (q[..., 1] >> 3)) * 32 + (q[..., 2] >> 3)
    return out


def _histogram(bins: NDArray[np.int64]) -> F8:
    """Smoothed probabilities of the bins, flat."""
    from scipy.ndimage import gaussian_filter

    counts = np.bincount(bins.ravel(), minlength=int(np.prod(_BINS))).astype(np.float64)
    cube: Any = gaussian_filter(counts.reshape(_BINS), (0.7, 0.7, 0.7), mode="nearest")
    smooth: F8 = cube.ravel()
    total = float(smooth.sum())
    return smooth / total if total > 0 else smooth


def _disc(radius: float) -> NDArray[np.float32]:
    """Anti-aliased disc kernel that sums to 1."""
    half = int(np.ceil(radius)) + 1
    y, x = np.mgrid[-half : half + 1, -half : half + 1]
    return _unit_sum(np.clip(radius + 0.5 - np.hypot(x, y), 0, 1))


def _unit_sum(kernel: F8) -> NDArray[np.float32]:
    return np.asarray(kernel / kernel.sum(), np.float32)


def _ring(inner: float, outer: float) -> NDArray[np.float32]:
    """Anti-aliased ring kernel that sums to 1."""
    half = int(np.ceil(outer)) + 1
    y, x = np.mgrid[-half : half + 1, -half : half + 1]
    distance = np.hypot(x, y)
    return _unit_sum(np.clip(outer + 0.5 - distance, 0, 1) - np.clip(inner + 0.5 - distance, 0, 1))


def _parabola(left: float, middle: float, right: float) -> float:
    """Offset of the top of a parabola through three equidistant samples, within +-1/2."""
    curvature = left - 2 * middle + right
    return 0.0 if curvature >= 0 else float(np.clip(0.5 * (left - right) / curvature, -0.5, 0.5))


@dataclass
class _Ball:
    """Tracker of one ball: a disc whose inside looks like the seed and whose rim does not.

    Attributes:
        foreground: probabilities of the seed's colours.
        center, radius, velocity: [px], [px], [px/frame].
        size: radius [px] that the ball has at a place, where the camera is known.
        contrast: of the disc in the first frame.
        lost: frames since it was last found.
    """

    foreground: F8
    center: F8
    radius: float
    velocity: F8
    size: Callable[[F8], float] | None = None
    contrast: float = 0.0
    lost: int = 0

    @classmethod
    def seeded(
        cls, lab: NDArray[np.uint8], mask: Bool, size: Callable[[F8], float] | None
    ) -> _Ball:
        ys, xs = np.nonzero(mask)
        center = np.array([xs.mean() + 0.5, ys.mean() + 0.5])
        radius = float(np.sqrt(len(xs) / np.pi))
        if size is not None:
            # The ratio keeps a candidate's own scale: its ball may be drawn a little larger.
            ratio = radius / size(center)
            known = size
            size = lambda at: ratio * known(at)  # noqa: E731
        return cls(_histogram(_bins(lab[mask])), center, radius, np.zeros(2), size)

    def look(
        self, lab: NDArray[np.uint8], background: _Background | None, *, reach: float
    ) -> tuple[F8, float, float] | None:
        """Best (centre, radius, contrast) within ``reach`` of the prediction; None outside."""
        import cv2

        height, width = lab.shape[:2]
        px, py = self.center + self.velocity
        window = _Window.around(px, py, reach + 2.2 * self.radius + 2, (height, width))
        if window.width < 4 or window.height < 4:
            return None
        piece = window.cut(lab)
        bins = _bins(piece)
        y, x = np.mgrid[0 : window.height, 0 : window.width]
        away = np.hypot(x + window.x + 0.5 - px, y + window.y + 0.5 - py)
        near = away <= max(reach, 1.0)
        if not near.any():
            return None
        outside = away > reach + 1.15 * self.radius
        around = _histogram(bins[outside] if outside.sum() > 20 else bins)
        ratio = np.log((self.foreground + 1e-4) / (around + 1e-4))
        evidence = np.clip(ratio[bins], -3, 3).astype(np.float32)
        if background is not None:
            evidence += background.evidence(window, piece)
        expected = self.radius if self.size is None else self.size(np.array([px, py]))
        expected = expected if math.isfinite(expected) else self.radius  # above the horizon
        spread = (0.94, 0.97, 1.0, 1.03, 1.06) if self.size is None else (0.97, 1.0, 1.03)
        found: list[tuple[float, float, int, int, NDArray[Any]]] = []
        for radius in (expected * scale for scale in spread):
            # Beyond the picture's edge nothing speaks for a ball.
            border = cv2.BORDER_REPLICATE
            inside = cv2.filter2D(evidence, -1, _disc(radius), borderType=border)
            rim = cv2.filter2D(evidence, -1, _ring(radius, 1.35 * radius + 1), borderType=border)
            score = np.where(near, inside - rim - 0.02 * (away / expected) ** 2, -np.inf)
            j, i = divmod(int(np.argmax(score)), window.width)
            found.append((float(score[j, i]), radius, i, j, score))
        top, radius, i, j, score = max(found, key=lambda f: f[0])
        dx = dy = 0.0
        if 0 < i < window.width - 1 and np.isfinite(score[j, i - 1 : i + 2]).all():
            dx = _parabola(*(float(v) for v in score[j, i - 1 : i + 2]))
        if 0 < j < window.height - 1 and np.isfinite(score[j - 1 : j + 2, i]).all():
            dy = _parabola(*(float(v) for v in score[j - 1 : j + 2, i]))
        return np.array([window.x + i + 0.5 + dx, window.y + j + 0.5 + dy]), radius, top

    def begin(self, lab: NDArray[np.uint8], background: _Background | None) -> float:
        """Look at the first frame; the confidence, 1 or 0."""
        found = self.look(lab, background, reach=0.3 * self.radius)
        self.contrast = 0.0 if found is None else found[2]
        return 1.0 if self.contrast > 0 else 0.0

    def advance(self, lab: NDArray[np.uint8], background: _Background | None) -> float:
        """Go on by one frame; the confidence in [0, 1], 0 when the ball is not found."""
        speed = float(np.linalg.norm(self.velocity))
        reach = (0.6 * self.radius + 2 + 0.4 * speed) * min(1 + self.lost, 3)
        found = self.look(lab, background, reach=reach)
        if found is None or self.contrast <= 0 or found[2] < LOST_BELOW * self.contrast:
            self.lost += 1
            self.velocity = self.velocity * 0.8
            self.center = self.center + self.velocity
            return 0.0
        center, radius, top = found
        step = (center - self.center) if not self.lost else self.velocity
        self.velocity = 0.5 * self.velocity + 0.5 * step
        self.center = center
        self.radius = 0.7 * self.radius + 0.3 * radius
        self.lost = 0
        return float(np.clip(top / self.contrast, 0, 1))


@dataclass(frozen=True, eq=False)
class _Background:
    """What a still camera sees without the balls: Lab (H, W, 3) float32, NaN where never seen."""

    lab: NDArray[np.float32]

    @classmethod
    def of(
        cls, labs: Sequence[NDArray[np.uint8]], pixels: Mapping[str, F8], radii: Mapping[str, F8]
    ) -> _Background | None:
        """Median over at most 24 frames, leaving out where the balls were found.

        A frame in which a ball was not found is not used; None when that leaves no frame.
        """
        found = [np.isfinite(p).all(axis=1) for p in pixels.values()]
        usable = np.flatnonzero(np.all(found, axis=0)) if found else np.arange(len(labs))
        if not len(usable):
            return None
        picks = usable[np.unique(np.linspace(0, len(usable) - 1, 24).astype(int))]
        height, width = labs[0].shape[:2]
        y, x = np.mgrid[0:height, 0:width]
        stack = np.empty((len(picks), height, width, 3), np.float32)
        for row, k in enumerate(picks.tolist()):
            stack[row] = labs[k]
            for name, track in pixels.items():
                u, v = track[k]
                near = np.hypot(x + 0.5 - u, y + 0.5 - v) < 1.3 * radii[name][k] + 2
                stack[row][near] = np.nan
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # pixels that are never uncovered
            return cls(np.nanmedian(stack, axis=0).astype(np.float32))

    def evidence(self, window: _Window, lab: NDArray[np.uint8]) -> NDArray[np.float32]:
        """How far pixels speak for something before the background, about -1 ... 2.

        Darker without another hue is a shadow: it speaks for nothing.
        """
        difference = lab.astype(np.float32) - window.cut(self.lab)
        hue = np.hypot(difference[..., 1], difference[..., 2])
        lighter = difference[..., 0]
        change = np.maximum(hue * 1.5, np.where(lighter > 0, lighter, 0.0)) / 8.0 - 1.0
        shadow = (lighter < -8) & (hue < 6)
        out = np.where(shadow | np.isnan(change), 0.0, np.clip(change, -1.0, 2.0))
        return out.astype(np.float32)


def track_balls(
    frames: NDArray[np.uint8],
    seeds: Mapping[str, Bool],
    *,
    camera: Still | None = None,
    radii: Mapping[str, float] | None = None,
) -> tuple[dict[str, F8], dict[str, F8]]:
    """Silhouette centres (T, 2) [px] and confidences (T,) of balls seeded in the first frame.

    Colours alone find the balls; where the camera is still, a second pass also knows the background
    that the first one uncovered, and how large a ball on the floor looks where.

    Args:
        frames: (T, H, W, 3) uint8.
        seeds: body -> mask (H, W) in the first frame. A seed below 12 px is not tracked: NaN.
        camera: the still camera, where there is one.
        radii: body -> radius [m]; needed with a camera.

    Returns:
        Centres, NaN where the ball was not found or its disc leaves the picture, and confidences.
    """
    import cv2

    labs = [np.asarray(cv2.cvtColor(f, cv2.COLOR_RGB2LAB), np.uint8) for f in frames]
    pixels, sure, sizes = _follow(labs, seeds, {}, None)
    if camera is None or not seeds:
        return pixels, sure
    looks = {n: partial(_apparent, r, camera) for n, r in (radii or {}).items() if n in seeds}
    background = _Background.of(labs, pixels, sizes)
    pixels, sure, _ = _follow(labs, seeds, looks, background)
    return pixels, sure


def _apparent(radius: float, camera: Still, center: F8) -> float:
    """Radius [px] of the silhouette of a ball on the floor that is seen at ``center`` (2,) [px]."""
    place = sphere_on_plane(center[None], radius, radius, camera)[0]
    T = camera.T_world_camera
    depth = float((place - T[:3, 3]) @ T[:3, 2])
    if not depth > radius:
        return math.nan
    # Of the ellipse's two half axes: f r / sqrt(Z^2 - r^2) across the viewing direction.
    return float(camera.K[1, 1] * radius / math.sqrt(depth**2 - radius**2))


def _follow(
    labs: Sequence[NDArray[np.uint8]],
    seeds: Mapping[str, Bool],
    looks: Mapping[str, Callable[[F8], float]],
    background: _Background | None,
) -> tuple[dict[str, F8], dict[str, F8], dict[str, F8]]:
    """One pass: centres (T, 2), confidences (T,), radii (T,) [px]."""
    count, (height, width) = len(labs), labs[0].shape[:2]
    pixels = {n: np.full((count, 2), np.nan) for n in seeds}
    confidence = {n: np.zeros(count) for n in seeds}
    sizes = {n: np.full(count, np.nan) for n in seeds}
    for name, mask in seeds.items():
        if mask.sum() < 12:
            continue
        ball = _Ball.seeded(labs[0], mask, looks.get(name))
        for k, lab in enumerate(labs):
            sure = ball.advance(lab, background) if k else ball.begin(lab, background)
            margin = np.array([width, height]) - ball.center
            whole = min(ball.center.min(), margin.min()) >= ball.radius - 0.5
            if sure > 0 and whole:
                pixels[name][k], confidence[name][k] = ball.center, sure
                sizes[name][k] = ball.radius
    return pixels, confidence, sizes


def sphere_on_plane(pixels: F8, radius: float, height: float, camera: Still) -> F8:
    """World centres (T, 3) [m] of spheres whose silhouettes are centred at ``pixels`` (T, 2).

    The silhouette of a sphere at camera coordinates (X, Y, Z) is an ellipse centred at
    (X, Y) Z / (Z^2 - r^2), not at the projection (X, Y) / Z of its centre; the centre lies on the
    plane z = ``height`` of the world. NaN for rays that do not meet the plane in front.

    Args:
        pixels: (T, 2) [px].
        radius: of the spheres [m].
        height: of their centres above z = 0 [m]; a ball on the floor has ``radius``.
        camera: a camera that stands still.
    """
    K, T = camera.K, camera.T_world_camera
    m = (np.asarray(pixels, np.float64) - K[:2, 2]) / np.array([K[0, 0], K[1, 1]])
    eye = T[:3, 3]
    out = np.full((len(m), 3), np.nan)
    shrink = np.ones(len(m))
    for _ in range(4):  # a contraction of ratio (r / Z)^2: four rounds reach rounding error
        rays = np.concatenate([m * shrink[:, None], np.ones((len(m), 1))], axis=1) @ T[:3, :3].T
        with np.errstate(divide="ignore", invalid="ignore"):
            depth = (height - eye[2]) / rays[:, 2]
            depth = np.where(depth > radius, depth, np.nan)
            shrink = 1 - (radius / depth) ** 2
        out = eye + rays * depth[:, None]
    return out


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
