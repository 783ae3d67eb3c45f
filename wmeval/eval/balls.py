"""Balls in pixels: a tracker that is told the first frame's mask alone, and metres from pixels.

A ball is a disc whose inside has the seed's colours and whose rim has not. Where the camera stands
still, a second pass also knows the background that the first one uncovered, and how large a ball on
the floor looks at each place.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

F8 = NDArray[np.float64]
Bool = NDArray[np.bool_]

LOST_BELOW = 0.35  # share of the first frame's contrast at which a ball counts as lost


@dataclass(frozen=True)
class Still:
    """A camera that does not move: ``K`` (3, 3) [px], ``T_world_camera`` (4, 4)."""

    K: F8
    T_world_camera: F8


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
