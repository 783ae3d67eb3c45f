"""Panoramas: what stands around a scene at infinity, painted as a band about the horizon.

A panorama holds reflectances, lit by the scene's own sun and sky, and how much of the sky it hides.
It covers elevations from `LOW_DEG` to `HIGH_DEG`; it fits together at its sides.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.patterns import periodic_field
from wmeval.errors import UserError
from wmeval.scene import Color, Texture

F4 = NDArray[np.float32]
Rng = np.random.Generator
Builder = Callable[[F4, F4, tuple[Color, ...], Rng], tuple[F4, F4]]
"""(azimuth (1, W) and elevation (H, 1) [deg], colours, generator) -> linear (H, W, 3), cover."""

LOW_DEG, HIGH_DEG = -26.0, 12.0  # as in ``sky.glsl``
WIDTH, HEIGHT = 2048, 384
SPAN_DEG = 180.0
"""Azimuth that builders paint over; the middle of the picture is 0."""


def _step(edge0: float, edge1: float, x: F4) -> F4:
    t = np.clip((x - edge0) / (edge1 - edge0), 0, 1)
    return np.asarray(t * t * (3 - 2 * t), np.float32)


def _line(rng: Rng, octaves: tuple[int, ...], *, fade: float = 0.5) -> F4:
    """Periodic random line (1, WIDTH), about 1 high: sums of few waves a octave."""
    x = np.arange(WIDTH) * (2 * np.pi / WIDTH)
    out = np.zeros(WIDTH)
    height = 1.0
    for octave in octaves:
        for _ in range(3):
            k = int(rng.integers(octave, 2 * octave))
            out += height * np.sin(k * x + rng.uniform(0, 2 * np.pi)) / 2
        height *= fade
    return np.asarray(out[None], np.float32)


def _sheet(rng: Rng, *, slope: float, low: float, across: int = 1, down: float = 1.0) -> F4:
    """Random field (HEIGHT, WIDTH) from a periodic one of 512 texels."""
    import cv2

    field = periodic_field(512, rng, slope=slope, low=low)
    field = np.tile(field, (1, across))
    rows = (np.arange(HEIGHT) * down).astype(int) % 512
    return np.asarray(cv2.resize(field[rows], (WIDTH, HEIGHT), interpolation=cv2.INTER_LINEAR))


def coast(x: F4, e: F4, colors: tuple[Color, ...], rng: Rng) -> tuple[F4, F4]:
    """A sandy bay: sea with foam and glints, two headlands, stacks of rock.

    Colours: sea, sand, rock, growth on the rock.
    """
    sea, sand, rock, green = (np.array(c, np.float32) for c in colors[:4])
    down = np.maximum(-e, 1e-3)
    far = np.minimum(1.0 / down, 60.0)  # distance, in units of 57 eye heights

    # The sea: rows of waves that crowd towards the horizon, deeper colour far out.
    waves = np.zeros((HEIGHT, WIDTH), np.float32)
    for count, height in ((9, 0.5), (23, 0.3), (61, 0.2)):
        bend = _line(rng, (3, 9)) * 0.6 + 0.25 * _line(rng, (40,))
        waves += height * np.sin(count * far * 0.7 + bend * 4).astype(np.float32)
    chop = _sheet(rng, slope=0.5, low=20, across=3, down=1.0)
    water = sea * (1 + 0.14 * waves + 0.10 * chop)[..., None]
    pale = _step(-1.5, 0.0, e)[..., None]
    water = water * (1 - 0.35 * pale) + np.array([0.34, 0.44, 0.52], np.float32) * 0.35 * pale
    shallow = _step(1.2, 3.0, down)[..., None]
    water = water * (1 - shallow) + np.array([0.16, 0.36, 0.36], np.float32) * shallow
    glint = _step(1.6, 2.6, chop + 0.8 * waves) * _step(0.15, 0.8, down)
    water = water + (0.28 * glint)[..., None]

    # The shore: foam where the sea ends, wet sand, dry sand.
    shore = 3.1 + 0.22 * _line(rng, (2, 5, 13)) + 0.05 * _line(rng, (50, 110))
    foam_lines = np.zeros((HEIGHT, WIDTH), np.float32)
    for place, width, strength in ((0.0, 0.10, 0.95), (-0.55, 0.06, 0.7), (-1.0, 0.035, 0.5)):
        edge = down - shore - place - 0.10 * _line(rng, (9, 21))
        ragged = edge + 0.05 * chop
        foam_lines = np.maximum(foam_lines, strength * (1 - _step(0.4 * width, width, abs(ragged))))
    grain = _sheet(rng, slope=0.55, low=18, across=4)
    dunes = _sheet(rng, slope=1.5, low=2, across=1, down=1.3)
    wet = 1 - _step(0.1, 2.4, down - shore)
    ground = sand * (1 + 0.10 * dunes + 0.09 * grain)[..., None] * (1 - 0.42 * wet)[..., None]
    ripple = np.sin(26 * far + 3 * _line(rng, (4, 12))) * _step(1.5, 4.0, down - shore)
    ground = ground * (1 + 0.05 * ripple)[..., None]
    pebbles = _step(2.1, 2.9, _sheet(rng, slope=0.6, low=34, across=2)) * _step(
        0.3, 1.5, down - shore
    )
    ground = ground * (1 - 0.55 * pebbles)[..., None]

    on_land = _step(-0.03, 0.03, down - shore)[..., None]
    picture = water * (1 - on_land) + ground * on_land
    foam = np.clip(foam_lines, 0, 1)[..., None]
    picture = picture * (1 - foam) + 0.82 * foam
    texel = (HIGH_DEG - LOW_DEG) / HEIGHT
    cover = _step(texel, -texel, e) * np.ones_like(x)

    # Headlands, from far to near: ridge, foot [deg], haze.
    strata = _sheet(rng, slope=1.0, low=3, across=2, down=1.4)
    cracks = _sheet(rng, slope=0.75, low=14, across=5)
    rough = 0.16 * _line(rng, (20, 45, 90))
    for middle, width, high, steep, foot, haze in (
        (-58.0, 36.0, 2.7, 1.4, -0.05, 0.62),
        (34.0, 23.0, 1.7, 2.0, -0.06, 0.72),
        (21.5, 9.5, 4.6, 3.2, -0.95, 0.24),
        (-17.5, 1.7, 1.5, 4.0, -0.42, 0.30),
        (-14.6, 0.8, 0.75, 4.0, -0.45, 0.26),
        (72.0, 13.0, 5.2, 3.0, -1.2, 0.22),
    ):
        away = np.abs(x - middle + rough * 2 * min(1.0, width / 8)) / width
        ridge = high * np.clip(1 - away**steep, -1, 1) + rough * min(1.0, 0.35 * high)
        ridge = np.where(away < 1.15, ridge, -9.0)
        low = foot + 0.06 * rough
        # Only the part of the picture that it stands in.
        columns = np.flatnonzero(ridge[0] > foot - 1)
        rows = np.flatnonzero((e[:, 0] < ridge.max() + 0.5) & (e[:, 0] > foot - 0.5))
        part = (slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1))
        here, x_here, ridge, low = e[part[0]], x[:, part[1]], ridge[:, part[1]], low[:, part[1]]
        layers, gaps = strata[part], cracks[part]
        inside = _step(-texel, texel, ridge - here) * _step(-texel, texel, here - low)
        below = ridge - here
        face = rock * (1 + 0.24 * layers + 0.16 * gaps)[..., None]
        bands = np.sin(9 * (here + 0.12 * layers) + 0.25 * x_here) * 0.10
        face = face * (1 + bands)[..., None]
        grown = (1 - _step(0.06 * high, 0.30 * high, below + 0.16 * layers))[..., None]
        face = face * (1 - grown) + green * (1 + 0.25 * gaps)[..., None] * grown
        # Lit from the upper left, dark at the water line.
        slope = np.gradient(ridge, axis=1) * (WIDTH / SPAN_DEG)
        face = face * np.clip(1 + 0.18 * slope, 0.6, 1.35)[..., None]
        tide = (1 - _step(0.0, 0.22, here - low))[..., None]
        face = face * (1 - 0.55 * tide)
        air = np.array([0.42, 0.52, 0.62], np.float32)
        face = face * (1 - haze) + air * haze
        alpha = inside[..., None]
        picture[part] = picture[part] * (1 - alpha) + face * alpha
        cover[part] = np.maximum(cover[part], inside)
    return np.asarray(picture, np.float32), np.asarray(cover, np.float32)


def park(x: F4, e: F4, colors: tuple[Color, ...], rng: Rng) -> tuple[F4, F4]:
    """A lawn with a path, clumps of shrubs, two belts of trees.

    Colours: lawn, leaves in shadow, leaves in light.
    """
    lawn, dark, light = (np.array(c, np.float32) for c in colors[:3])
    down = np.maximum(-e, 1e-3)
    far = np.minimum(1.0 / down, 60.0)
    grain = _sheet(rng, slope=0.6, low=16, across=4)
    broad = _sheet(rng, slope=1.5, low=2, across=2)
    mown = np.sin(5.5 * far + 0.4 * _line(rng, (3, 7))) * _step(0.8, 2.5, down)
    picture = lawn * (1 + 0.08 * mown + 0.10 * broad + 0.10 * grain)[..., None]
    shore = 6.0 + 1.4 * _line(rng, (2, 3, 5))
    path = (1 - _step(0.5, 0.8, np.abs(down - shore) / (0.25 * shore)))[..., None]
    picture = (
        picture * (1 - path)
        + np.array([0.42, 0.35, 0.26], np.float32) * path * (1 + 0.1 * grain)[..., None]
    )
    texel = (HIGH_DEG - LOW_DEG) / HEIGHT
    cover = _step(texel, -texel, e) * np.ones_like(x)
    leaves = _sheet(rng, slope=0.7, low=18, across=4)
    clumps = _sheet(rng, slope=1.2, low=6, across=4)
    column = (np.arange(WIDTH) * (SPAN_DEG / WIDTH))[None]
    # From far to near: trees, mean height and width of a crown, foot [deg], haze.
    for count, high, width, foot, haze in (
        (120, 1.9, 3.4, 0.1, 0.5), (44, 4.2, 5.0, -0.8, 0.22), (40, 1.6, 4.0, -2.4, 0.05),
    ):  # fmt: skip
        ridge = np.full((1, WIDTH), -9.0)
        spread = high
        for _ in range(count):
            middle, half = rng.uniform(0, SPAN_DEG), width / 2 * rng.uniform(0.6, 1.3)
            top = high * rng.uniform(0.55, 1.25)
            across = np.abs((column - middle + SPAN_DEG / 2) % SPAN_DEG - SPAN_DEG / 2) / half
            crown = foot + top * np.clip(1 - across**2.4, 0, 1) ** 0.5
            ridge = np.maximum(ridge, np.where(across < 1, crown, -9.0))
        ridge = ridge + 0.16 * leaves + 0.12 * _line(rng, (60, 130))
        inside = _step(-texel, texel, ridge - e) * _step(-texel, texel, e - foot)
        inside = inside * _step(foot + 0.05, foot + 0.4, ridge)
        below = np.clip((ridge - e) / max(spread, 1.0), 0, 3)
        bright = np.clip(0.62 - 0.22 * below + 0.24 * clumps + 0.16 * leaves, 0, 1.2)[..., None]
        face = dark + (light - dark) * bright
        face = face * (1 - haze) + np.array([0.30, 0.38, 0.44], np.float32) * haze
        alpha = inside[..., None]
        picture = picture * (1 - alpha) + face * alpha
        cover = np.maximum(cover, inside)
    return np.asarray(picture, np.float32), np.asarray(cover, np.float32)


def city(x: F4, e: F4, colors: tuple[Color, ...], rng: Rng) -> tuple[F4, F4]:
    """Roofs and towers with rows of windows, seen from an upper floor; trees in the streets.

    Colours: concrete, brick, glass, trees.
    """
    concrete, brick, glass, trees = (np.array(c, np.float32) for c in colors[:4])
    texel = (HIGH_DEG - LOW_DEG) / HEIGHT
    grain = _sheet(rng, slope=0.8, low=12, across=3)
    cover = _step(texel, -texel, e) * np.ones_like(x)
    picture = concrete * 0.55 * (1 + 0.12 * grain)[..., None]
    air = np.array([0.44, 0.50, 0.56], np.float32)
    # From far to near: houses, mean width, height and foot [deg], haze.
    for count, width, high, foot, haze in (
        (46, 4.5, 4.5, -3.0, 0.62), (30, 7.0, 2.6, -8.0, 0.34), (20, 11.0, -1.5, -27.0, 0.10),
    ):  # fmt: skip
        for _ in range(count):
            middle = float(rng.uniform(0, SPAN_DEG))
            half = width / 2 * float(rng.uniform(0.55, 1.3))
            top = high + abs(high + 5) * float(rng.uniform(-0.45, 0.42))
            # Only its own columns and rows are painted; the picture closes on itself.
            first = round((middle - half) * WIDTH / SPAN_DEG)
            number = max(2, round(2 * half * WIDTH / SPAN_DEG))
            at = np.arange(first, first + number) % WIDTH
            across = (np.arange(number) / number * 2 - 1) * half
            rows = np.flatnonzero((e[:, 0] < top) & (e[:, 0] > foot))
            if not len(rows):
                continue
            kind = rng.random()
            base = glass * 2.2 if kind < 0.2 else brick if kind < 0.5 else concrete
            base = base * np.float32(rng.uniform(0.75, 1.3))
            floor, bay = 0.09 * width, 0.085 * width
            height = top - e[rows]
            row, along = (height / floor) % 1, (across / bay) % 1
            pane = (row > 0.3) & (row < 0.82) & (height > 0.4 * floor)
            pane = pane & ((along > 0.22) & (along < 0.8))[None]
            spot = np.ix_(rows, at)
            bright = 1 + 0.1 * grain[spot] + (0.16 if middle < 90 else -0.06)
            shade = 1 - 0.25 * _step(0.2 * half, half, np.asarray(across, np.float32))
            face = np.where(pane[..., None], glass, base) * (bright * shade[None])[..., None]
            picture[spot] = face * (1 - haze) + air * haze
            cover[spot] = 1.0
    leaves = _sheet(rng, slope=0.7, low=16, across=4)
    ridge = -13.0 + 3.0 * _line(rng, (6, 15, 31)) + 0.3 * leaves
    green = _step(-texel, texel, ridge - e)[..., None]
    tone = trees * np.clip(1 + 0.45 * leaves + 0.25 * grain, 0.2, 2.2)[..., None]
    picture = picture * (1 - green) + tone * green
    return np.asarray(picture, np.float32), np.asarray(np.maximum(cover, green[..., 0]), np.float32)


PANORAMAS: dict[str, Builder] = {"coast": coast, "park": park, "city": city}


@lru_cache(maxsize=4)
def bake_panorama(texture: Texture) -> NDArray[np.uint8]:
    """A panorama, cached in the process.

    Args:
        texture: builder, colours and seed (``repeat`` is the renderer's business).

    Returns:
        (HEIGHT, WIDTH, 4) uint8, read-only: square roots of linear reflectances,
        and the cover; the first row is the highest.

    Raises:
        UserError: no such builder; the message names the known ones.
    """
    builder = PANORAMAS.get(texture.builder)
    if builder is None:
        raise UserError(
            f"no panorama builder {texture.builder!r}: choose from {', '.join(PANORAMAS)}"
        )
    x = ((np.arange(WIDTH) + 0.5) / WIDTH - 0.5).astype(np.float32)[None] * SPAN_DEG
    e = HIGH_DEG - ((np.arange(HEIGHT) + 0.5) / HEIGHT).astype(np.float32)[:, None] * (
        HIGH_DEG - LOW_DEG
    )
    picture, cover = builder(x, e, texture.colors, np.random.default_rng(texture.seed))
    out = np.empty((HEIGHT, WIDTH, 4), np.uint8)
    out[..., :3] = np.rint(255 * np.sqrt(np.clip(picture, 0, 1)))
    out[..., 3] = np.rint(255 * np.clip(cover, 0, 1))
    out.flags.writeable = False
    return out
