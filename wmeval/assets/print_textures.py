"""Printed and moulded covers: labels of cans and bottles, faces of dice and cube, plain plastic.

Labels: columns once around, rows from the top to the foot. Faces: an atlas of three by two cells in
the order +x, -x, +y, -y, +z, -z. All words and marks are ours.
"""

from __future__ import annotations

import numpy as np

from wmeval.assets.noise import solid_noise
from wmeval.assets.patterns import F4, Rng, color_of, flat, mix, mottle, shade, step, texels
from wmeval.scene import Color

Colors = tuple[Color, ...]

DICE_FACES = (3, 4, 2, 5, 1, 6)
"""Pips on +x, -x, +y, -y, +z, -z: opposite faces have seven."""

CUBE_FACES = (
    (1, 4, 0, 2, 0, 5, 3, 0, 2),
    (5, 1, 3, 3, 1, 4, 0, 2, 5),
    (0, 2, 4, 5, 2, 1, 1, 3, 3),
    (4, 0, 1, 2, 3, 0, 5, 4, 1),
    (2, 3, 5, 1, 4, 4, 4, 0, 2),
    (3, 5, 0, 4, 5, 2, 1, 5, 3),
)
"""Colours of the stickers, row by row; each of the six occurs nine times, the middles differ."""


def _pip_places() -> dict[int, tuple[tuple[float, float], ...]]:
    low, mid, high = 0.25, 0.5, 0.75
    two = ((low, low), (high, high))
    four = (*two, (low, high), (high, low))
    six = (*four, (low, mid), (high, mid))
    middle = ((mid, mid),)
    return {1: middle, 2: two, 3: (*two, *middle), 4: four, 5: (*four, *middle), 6: six}


PIPS = _pip_places()
"""Middles of the pips in a face's unit square."""


# --- ink ----------------------------------------------------------------------------------------


def lettering(text: str, width: int, height: int, stroke: int) -> F4:
    """A word as weights (height, width), filling it; ``stroke`` in 64ths of the letters' height."""
    import cv2

    font, scale, thick = cv2.FONT_HERSHEY_DUPLEX, 4.0, max(1, round(stroke * 1.4))
    (w, h), below = cv2.getTextSize(text, font, scale, thick)
    sheet = np.zeros((h + below + 2 * thick, w + 2 * thick), np.uint8)
    cv2.putText(sheet, text, (thick, h + thick), font, scale, (255,), thick, cv2.LINE_AA)
    rows, columns = np.flatnonzero(sheet.any(axis=1)), np.flatnonzero(sheet.any(axis=0))
    sheet = sheet[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    small = cv2.resize(sheet, (max(width, 1), max(height, 1)), interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.float32) / 255


_BOLT = ((0.62, 0.0), (0.08, 0.56), (0.44, 0.56), (0.30, 1.0), (0.94, 0.38), (0.55, 0.38),
         (0.95, 0.0))  # fmt: skip


def filled(outline: tuple[tuple[float, float], ...], width: int, height: int) -> F4:
    """A polygon of the unit square as weights (height, width)."""
    import cv2

    sheet = np.zeros((4 * height, 4 * width), np.uint8)
    corners = np.array(outline) * np.array([4 * width - 1, 4 * height - 1])
    cv2.fillPoly(sheet, [np.rint(corners).astype(np.int32)], (255,))
    small = cv2.resize(sheet, (width, height), interpolation=cv2.INTER_AREA)
    return np.asarray(small, np.float32) / 255


def pasted(size: int, mask: F4, u: float, v: float) -> F4:
    """Weights (size, size) with a mask's middle at (u, v), going on around at the sides."""
    height, width = mask.shape
    rows = np.arange(height) + round(v * size) - height // 2
    columns = (np.arange(width) + round(u * size) - width // 2) % size
    inside = (rows >= 0) & (rows < size)
    out = np.zeros((size, size), np.float32)
    out[np.ix_(rows[inside], columns)] = mask[inside]
    return out


def _disc(size: int, u: float, v: float, radius: tuple[float, float]) -> F4:
    """An ellipse, soft by a texel; around at the sides."""
    x, y = texels(size)
    dx = np.abs(((x - u + 0.5) % 1 - 0.5) / radius[0])
    soft = 1.5 / (size * min(radius))
    return step(1 + soft, 1 - soft, np.hypot(dx, (y - v) / radius[1]).astype(np.float32))


# --- builders -----------------------------------------------------------------------------------


def plain(size: int, colors: Colors, rng: Rng) -> F4:
    """One colour, all but: clouds and grain of two per cent, so that motion shows."""
    return shade(flat(color_of(colors, 0)), mottle(size, rng, 0.02, 0.025))


def soda_label(size: int, colors: Colors, rng: Rng) -> F4:
    """A cola can: a white wave around red and a slanting word. Colours: red, white, dark."""
    u, v = texels(size)
    base, white = flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.6))
    dark = flat(color_of(colors, 2, fallback=0.4))
    rgb = mix(base, dark, 0.5 * step(0.6, 1.0, v))
    wave = v - 0.70 - 0.07 * np.sin(2 * np.pi * 2 * u) - 0.02 * np.sin(2 * np.pi * 4 * u + 1)
    rgb = mix(rgb, white, step(0.040, 0.032, np.abs(wave)))
    rgb = mix(rgb, white, step(0.010, 0.006, np.abs(wave + 0.065)))
    for k in (0.0, 0.5):
        word = lettering("COLA", size * 36 // 100, size * 30 // 100, 9)
        rgb = mix(rgb, dark, 0.5 * pasted(size, word, k + 0.383, 0.382))
        rgb = mix(rgb, white, pasted(size, word, k + 0.375, 0.37))
        small = lettering("ORIGINAL TASTE", size * 26 // 100, size * 5 // 100, 6)
        rgb = mix(rgb, white, pasted(size, small, k + 0.375, 0.88))
    rgb = mix(rgb, white, 0.9 * step(0.018, 0.012, np.abs(v - 0.02)))
    return shade(rgb, mottle(size, rng, 0.02, 0.02))


def energy_label(size: int, colors: Colors, rng: Rng) -> F4:
    """A slim can, blue over silver: a bolt, a word. Colours: blue, silver, bolt, dark."""
    u, v = texels(size)
    blue, silver = flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.7))
    bright, deep = flat(color_of(colors, 2, fallback=0.85)), flat(color_of(colors, 3, fallback=0.4))
    # Zigzags around the can, twice.
    zigzag = np.abs((u * 4) % 2 - 1)
    border = (v - 0.56 - 0.17 * (zigzag - 0.5)).astype(np.float32)
    rgb = mix(blue, deep, step(0.55, 0.0, v))
    rgb = mix(rgb, silver, step(-0.004, 0.004, border))
    for gap in (0.030, 0.055):
        rgb = mix(rgb, bright, step(0.008, 0.004, np.abs(border - gap)))
    for k in (0.0, 0.5):
        at = k + 0.375
        for grow, ink in ((1.0, silver), (0.80, bright)):
            bolt = filled(_BOLT, round(0.20 * size * grow), round(0.42 * size * grow))
            rgb = mix(rgb, ink, pasted(size, bolt, at, 0.53))
        word = lettering("TURBO", size * 34 // 100, size * 13 // 100, 10)
        rgb = mix(rgb, deep, pasted(size, word, at + 0.006, 0.206))
        rgb = mix(rgb, silver, pasted(size, word, at, 0.20))
        small = lettering("ENERGY DRINK", size * 32 // 100, size * 6 // 100, 8)
        rgb = mix(rgb, blue, pasted(size, small, at, 0.85))
    brushed = solid_noise(np.stack([u * 0 + 1, v * 40, u * 2]), rng, frequency=3, octaves=3)
    return shade(rgb, 0.03 * brushed, mottle(size, rng, 0.015, 0.02))


def food_label(size: int, colors: Colors, rng: Rng) -> F4:
    """A tin of beans: bands, a bowl, a word. Colours: paper, band, pale, beans."""
    _, v = texels(size)
    paper, band = flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.6))
    pale = flat(color_of(colors, 2, fallback=0.9))
    beans = color_of(colors, 3, fallback=0.5)
    rgb = mix(paper, pale, step(0.42, 0.43, v))
    rgb = mix(rgb, band, step(0.030, 0.024, np.abs(v - 0.425)))
    rgb = mix(rgb, band, np.maximum(step(0.06, 0.05, v), step(0.93, 0.94, v)))
    rgb = mix(rgb, pale, step(0.010, 0.006, np.abs(v - 0.085)))
    for k in (0.0, 0.5):
        word = lettering("BEANS", size * 34 // 100, size * 20 // 100, 10)
        rgb = mix(rgb, pale, pasted(size, word, k + 0.375, 0.245))
        bowl = _disc(size, k + 0.375, 0.68, (0.15, 0.19))
        rgb = mix(rgb, band, bowl)
        inner = _disc(size, k + 0.375, 0.68, (0.13, 0.165))
        rgb = mix(rgb, flat(beans * np.float32(0.45)), inner)
        small = lettering("IN TOMATO SAUCE", size * 15 // 100, size * 4 // 100, 7)
        rgb = mix(rgb, band, pasted(size, small, k + 0.625, 0.62))
        small = lettering("400 g", size * 8 // 100, size * 5 // 100, 7)
        rgb = mix(rgb, band, pasted(size, small, k + 0.625, 0.76))
        for _ in range(46):
            r, turn = 0.92 * np.sqrt(rng.random()), rng.uniform(0, 2 * np.pi)
            at = (k + 0.375 + 0.115 * r * np.cos(turn), 0.68 + 0.145 * r * np.sin(turn))
            tone = beans * np.float32(rng.uniform(0.7, 1.25))
            rgb = mix(rgb, flat(tone * np.float32(0.5)), _disc(size, *at, (0.022, 0.021)))
            rgb = mix(rgb, flat(tone), _disc(size, at[0], at[1] - 0.003, (0.019, 0.0165)))
    return shade(rgb, mottle(size, rng, 0.025, 0.03))


def bottle_label(size: int, colors: Colors, rng: Rng) -> F4:
    """A soft drink's label: a sun over waves, a word. Colours: ground, word, accent."""
    u, v = texels(size)
    ground, ink = flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.5))
    accent = flat(color_of(colors, 2, fallback=0.8))
    rgb = ground
    wave = v - 0.80 - 0.06 * np.sin(2 * np.pi * 3 * u)
    rgb = mix(rgb, accent, step(0.0, 0.012, wave))
    rgb = mix(rgb, ink, step(0.08, 0.092, wave + 0.02 * np.sin(2 * np.pi * 6 * u)))
    rgb = mix(rgb, ink, np.maximum(step(0.045, 0.035, v), step(0.955, 0.965, v)))
    for k in (0.0, 0.5):
        rgb = mix(rgb, accent, _disc(size, k + 0.375, 0.42, (0.19, 0.33)))
        word = lettering("FIZZ", size * 30 // 100, size * 34 // 100, 10)
        rgb = mix(rgb, ink, pasted(size, word, k + 0.375, 0.42))
    return shade(rgb, mottle(size, rng, 0.02, 0.025))


def drink(size: int, colors: Colors, rng: Rng) -> F4:
    """A clear bottle and what it holds, down from its neck. Colours: drink, empty neck, deep."""
    u, v = texels(size)
    ring = np.stack([np.cos(2 * np.pi * u), np.sin(2 * np.pi * u), 5 * v]).astype(np.float32)
    cloud = solid_noise(ring, rng, frequency=1.5, octaves=3)
    rgb = mix(flat(color_of(colors, 0)), flat(color_of(colors, 2, fallback=0.7)),
              step(0.35, 1.05, v + 0.03 * cloud))  # fmt: skip
    neck = step(0.155, 0.145, v)
    rgb = mix(rgb, flat(color_of(colors, 1, fallback=0.9)), 0.9 * neck)
    rgb = shade(rgb, 0.35 * step(0.006, 0.002, np.abs(v - 0.152)))
    bubbles = step(2.0, 2.6, solid_noise(ring, rng, frequency=14))
    return shade(rgb, 0.05 * cloud, 0.3 * bubbles * (1 - neck), mottle(size, rng, 0.01, 0.02))


def _cells(size: int) -> tuple[np.ndarray, F4, F4]:  # type: ignore[type-arg]
    """Of an atlas: which face a texel is on, and its place in the face's unit square."""
    u, v = texels(size)
    which = np.floor(u * 3).astype(int) + 3 * np.floor(v * 2).astype(int)
    return which, np.asarray(u * 3 % 1, np.float32), np.asarray(v * 2 % 1, np.float32)


def dice_faces(size: int, colors: Colors, rng: Rng) -> F4:
    """Pips on an atlas of six faces. Colours: die, pips."""
    which, x, y = _cells(size)
    pip = np.zeros((size, size), np.float32)
    rim = np.zeros((size, size), np.float32)
    soft = 3.0 / size
    for face, count in enumerate(DICE_FACES):
        on = which == face
        for px, py in PIPS[count]:
            r = np.hypot(x - px, y - py)
            pip = np.maximum(pip, on * step(0.105 + soft, 0.105 - soft, r))
            rim = np.maximum(rim, on * step(0.135, 0.105, r))
    rgb = shade(flat(color_of(colors, 0)), -0.18 * rim.astype(np.float32))
    rgb = mix(rgb, flat(color_of(colors, 1, fallback=0.3)), pip.astype(np.float32))
    return shade(rgb, mottle(size, rng, 0.02, 0.03))


def cube_stickers(size: int, colors: Colors, rng: Rng) -> F4:
    """Nine stickers on each face of an atlas. Colours: body, then the six of the stickers."""
    which, x, y = _cells(size)
    column, row = (np.minimum(np.floor(w * 3), 2).astype(int) for w in (x, y))
    palette = np.stack([color_of(colors, 1 + k, fallback=0.85 - 0.1 * k) for k in range(6)])
    index = np.array(CUBE_FACES)[which, 3 * row + column]
    sticker = palette.T[:, index]
    # A rounded square.
    px, py = np.abs(x * 3 % 1 - 0.5), np.abs(y * 3 % 1 - 0.5)
    half, corner = 0.425, 0.09
    beyond = np.hypot(np.maximum(px - half + corner, 0), np.maximum(py - half + corner, 0))
    inside = step(corner + 9 / size, corner - 9 / size, beyond.astype(np.float32))
    rgb = mix(flat(color_of(colors, 0)), sticker.astype(np.float32), inside)
    return shade(rgb, mottle(size, rng, 0.025, 0.035))


def lid(size: int, colors: Colors, rng: Rng) -> F4:
    """Spun metal: fine rings and a sweep of light around. Colours: metal."""
    u, v = texels(size)
    rings = solid_noise(np.stack([v * 30, v * 0, v * 0 + 1]), rng, frequency=1.7, octaves=3)
    turn = 2 * np.pi * u
    sweep = 0.10 * np.cos(2 * turn + 0.4) + 0.06 * np.cos(6 * turn)
    return shade(flat(color_of(colors, 0)), 0.06 * rings, sweep.astype(np.float32),
                 mottle(size, rng, 0.01, 0.025))  # fmt: skip
