"""Skins of fruit, as maps over a thing: columns once around, rows from the +z pole to the -z pole.

All but the banana's are functions of direction, without seam or pinch. Colours beyond those given
are derived from the first.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from wmeval.assets.noise import solid_noise
from wmeval.assets.patterns import F4, Rng, color_of, flat, mix, shade, step, texels
from wmeval.scene import Color

Colors = tuple[Color, ...]


@lru_cache(maxsize=4)
def sphere_map(size: int) -> F4:
    """Directions (3, size, size) of the texels; read-only."""
    u, v = texels(size)
    longitude, polar = 2 * np.pi * u, np.pi * v
    out = np.stack(
        [np.sin(polar) * np.cos(longitude), np.sin(polar) * np.sin(longitude), np.cos(polar)]
    ).astype(np.float32)
    out.flags.writeable = False
    return np.asarray(out)


def _meridians(d: F4, across: float, along: float) -> F4:
    """Places whose noise runs in streaks from pole to pole."""
    r = np.maximum(np.hypot(d[0], d[1]), 1e-3)
    return np.asarray(np.stack([across * d[0] / r, across * d[1] / r, along * d[2]]), np.float32)


def _grain(d: F4, rng: Rng, amount: float = 0.04) -> F4:
    """Relative brightness variation, broad and fine."""
    broad = solid_noise(d, rng, frequency=1.7, octaves=3)
    fine = solid_noise(d, rng, frequency=24, octaves=2, gain=0.8)
    return np.asarray(amount * broad + 0.8 * amount * fine, np.float32)


def citrus(size: int, colors: Colors, rng: Rng) -> F4:
    """Rind with pores. Colours: rind, pores, the stem end's and the blossom end's tint."""
    d = sphere_map(size)
    rind, pore = flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.6))
    ends = flat(color_of(colors, 2, fallback=0.75))
    near_end = step(0.86, 1.0, np.abs(d[2]) + 0.03 * solid_noise(d, rng, frequency=7, octaves=2))
    rgb = mix(rind, ends, 0.7 * near_end)
    patch = solid_noise(d, rng, frequency=1.3, octaves=2)
    rgb = shade(rgb, 0.035 * patch)
    pits = solid_noise(d, rng, frequency=21, octaves=1)
    small = solid_noise(d, rng, frequency=34, octaves=1)
    rgb = mix(rgb, pore, 0.42 * step(0.75, 1.9, pits))
    # The rim of a pit towards the light shines.
    return shade(rgb, 0.10 * step(-0.6, -2.0, pits), 0.05 * small, _grain(d, rng, 0.018))


def apple_skin(size: int, colors: Colors, rng: Rng) -> F4:
    """Streaked skin. Colours: red, the yellow ground, the stem's cavity, lenticels."""
    d = sphere_map(size)
    red, ground = flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.8))
    cavity, spot = flat(color_of(colors, 2, fallback=0.6)), flat(color_of(colors, 3, fallback=0.9))
    streaks = solid_noise(_meridians(d, 5, 0.9), rng, frequency=2.2, octaves=3, gain=0.7)
    blush = 0.85 * d[0] + 0.5 * d[1] + 0.35 * solid_noise(d, rng, frequency=1.4, octaves=2)
    cover = step(-0.9, 0.35, np.asarray(blush + 0.34 * streaks, np.float32))
    rgb = mix(ground, red, cover)
    rgb = shade(rgb, -0.16 * step(0.3, 1.6, streaks) * cover)
    top = step(0.80, 0.985, d[2] + 0.05 * streaks)
    rgb = mix(rgb, cavity, 0.8 * top)
    rgb = mix(rgb, cavity, 0.6 * step(0.93, 1.0, -d[2] + 0.02 * streaks))
    dots = step(1.7, 2.3, solid_noise(d, rng, frequency=19))
    rgb = mix(rgb, spot, 0.5 * dots * (1 - top))
    return shade(rgb, _grain(d, rng, 0.045))


def tomato_skin(size: int, colors: Colors, rng: Rng) -> F4:
    """Taut skin. Colours: flesh, shoulders around the stem."""
    d = sphere_map(size)
    broad = solid_noise(d, rng, frequency=1.2, octaves=2)
    shoulder = step(0.82, 0.99, d[2] + 0.03 * broad)
    rgb = mix(flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.75)), 0.8 * shoulder)
    rays = solid_noise(_meridians(d, 3, 0.4), rng, frequency=1.5, octaves=2)
    return shade(rgb, 0.06 * broad, 0.05 * rays, _grain(d, rng, 0.025))


def peach_skin(size: int, colors: Colors, rng: Rng) -> F4:
    """Velvet with a blush and the suture at longitude 0. Colours: ground, blush, deep blush."""
    d = sphere_map(size)
    blush = -0.75 * d[1] + 0.35 * d[0] + 0.25 * d[2]
    rough = solid_noise(d, rng, frequency=3, octaves=4, gain=0.65)
    cover = step(-0.75, 0.7, np.asarray(blush + 0.26 * rough, np.float32))
    rgb = mix(flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.8)), cover)
    deep = step(0.2, 1.2, np.asarray(blush + 0.2 * rough, np.float32))
    rgb = mix(rgb, flat(color_of(colors, 2, fallback=0.55)), 0.75 * deep)
    suture = np.exp(-((d[1] / 0.05) ** 2)) * (d[0] > 0)
    fuzz = solid_noise(d, rng, frequency=30, octaves=2, gain=0.9)
    return shade(rgb, -0.34 * suture.astype(np.float32), 0.06 * fuzz, _grain(d, rng, 0.03))


def pear_skin(size: int, colors: Colors, rng: Rng) -> F4:
    """Green-yellow with freckles and russet ends. Colours: ground, russet, blush, freckles."""
    d = sphere_map(size)
    broad = solid_noise(d, rng, frequency=1.5, octaves=3)
    blush = step(-0.1, 1.1, np.asarray(0.9 * d[0] - 0.4 * d[1] + 0.25 * broad, np.float32))
    rgb = mix(flat(color_of(colors, 0)), flat(color_of(colors, 2, fallback=0.85)), 0.55 * blush)
    freckles = step(1.15, 1.8, solid_noise(d, rng, frequency=27))
    rgb = mix(rgb, flat(color_of(colors, 3, fallback=0.6)), 0.65 * freckles)
    rough = solid_noise(d, rng, frequency=6, octaves=4, gain=0.7)
    russet = step(0.78, 1.02, np.abs(d[2]) + 0.06 * rough)
    rgb = mix(rgb, flat(color_of(colors, 1, fallback=0.5)), 0.6 * russet)
    return shade(rgb, 0.06 * broad, _grain(d, rng, 0.035))


def mango_skin(size: int, colors: Colors, rng: Rng) -> F4:
    """From red shoulder over yellow to green. Colours: yellow, red, green, lenticels."""
    d = sphere_map(size)
    rough = solid_noise(d, rng, frequency=2, octaves=4, gain=0.6)
    red = step(-0.25, 0.75, np.asarray(0.75 * d[2] + 0.6 * d[0] + 0.22 * rough, np.float32))
    green = step(0.1, 0.95, np.asarray(-0.8 * d[0] - 0.55 * d[2] + 0.2 * rough, np.float32))
    rgb = mix(flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.8)), red)
    rgb = mix(rgb, flat(color_of(colors, 2, fallback=0.6)), 0.9 * green)
    dots = step(1.6, 2.2, solid_noise(d, rng, frequency=24))
    rgb = mix(rgb, flat(color_of(colors, 3, fallback=0.9)), 0.55 * dots)
    return shade(rgb, 0.05 * rough, _grain(d, rng, 0.03))


def pomegranate_skin(size: int, colors: Colors, rng: Rng) -> F4:
    """Leathery red with pale and brown patches. Colours: red, pale patches, brown scuffs."""
    d = sphere_map(size)
    rough = solid_noise(d, rng, frequency=2.2, octaves=4, gain=0.6)
    pale = step(0.3, 1.9, np.asarray(rough + 0.9 * d[0], np.float32))
    rgb = mix(flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.8)), 0.65 * pale)
    scuff = solid_noise(d, rng, frequency=5, octaves=4, gain=0.75)
    scuff = step(1.3, 2.0, scuff + 0.5 * np.abs(d[2]))
    rgb = mix(rgb, flat(color_of(colors, 2, fallback=0.5)), 0.7 * scuff)
    fine = solid_noise(d, rng, frequency=20, octaves=2, gain=0.8)
    return shade(rgb, 0.07 * fine, 0.07 * rough, _grain(d, rng, 0.03))


def kiwi_fuzz(size: int, colors: Colors, rng: Rng) -> F4:
    """Brown fuzz. Colours: skin, hairs, ends."""
    d = sphere_map(size)
    hairs = solid_noise(_meridians(d, 6, 2.2), rng, frequency=9, octaves=3, gain=0.95)
    hairs = hairs + 0.5 * solid_noise(d, rng, frequency=26, octaves=2, gain=0.9)
    rgb = mix(
        flat(color_of(colors, 0)),
        flat(color_of(colors, 1, fallback=0.65)),
        step(-0.2, 2.4, np.asarray(hairs, np.float32)),
    )
    ends = step(0.93, 0.995, np.abs(d[2]) + 0.012 * hairs)
    rgb = mix(rgb, flat(color_of(colors, 2, fallback=0.4)), 0.85 * ends)
    return shade(rgb, 0.10 * solid_noise(d, rng, frequency=2, octaves=3), _grain(d, rng, 0.04))


def coconut_husk(size: int, colors: Colors, rng: Rng) -> F4:
    """Fibres from pole to pole, three eyes near the +z pole. Colours: shell, fibres, eyes."""
    d = sphere_map(size)
    coarse = solid_noise(_meridians(d, 4, 1.2), rng, frequency=3.2, octaves=3, gain=0.8)
    fine = solid_noise(_meridians(d, 6, 1.6), rng, frequency=7, octaves=2, gain=0.9)
    fibres = np.asarray(0.6 * coarse + 0.6 * fine, np.float32)
    rgb = mix(
        flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.6)), step(-0.5, 1.9, fibres)
    )
    rgb = shade(rgb, -0.5 * step(-0.7, -1.8, fibres), 0.12 * coarse)
    for k in range(3):
        turn, tilt = 2 * np.pi * k / 3 + 0.3, 0.40
        eye = np.array(
            [np.sin(tilt) * np.cos(turn), np.sin(tilt) * np.sin(turn), np.cos(tilt)], np.float32
        )
        off = np.arccos(np.clip(np.tensordot(eye, d, 1), -1, 1)) + 0.012 * fine
        rgb = mix(rgb, flat(color_of(colors, 1, fallback=0.6)), 0.75 * step(0.27, 0.18, off))
        rgb = mix(rgb, flat(color_of(colors, 2, fallback=0.35)), 0.95 * step(0.165, 0.13, off))
    return shade(rgb, _grain(d, rng, 0.05))


def watermelon_rind(size: int, colors: Colors, rng: Rng) -> F4:
    """Ragged dark stripes from pole to pole over veined green. Colours: light, dark, ends."""
    d = sphere_map(size)
    u, _ = texels(size)
    jag = solid_noise(d, rng, frequency=3.0, octaves=4, gain=0.75)
    fine = solid_noise(d, rng, frequency=9, octaves=3, gain=0.8)
    r = np.hypot(d[0], d[1])
    phase = 11 * u + np.minimum(r, 0.6) / 0.6 * (0.13 * jag + 0.07 * fine)
    wave = np.cos(2 * np.pi * phase).astype(np.float32)
    dark = step(0.0, 0.5, wave + 0.22 * fine)
    veins = step(0.22, 0.0, np.abs(solid_noise(d, rng, frequency=7, octaves=3, gain=0.7)))
    cover = np.clip(dark + 0.34 * veins * (1 - dark), 0, 1).astype(np.float32)
    rgb = mix(flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.35)), cover)
    ends = step(0.975, 1.0, np.abs(d[2]))
    rgb = mix(rgb, flat(color_of(colors, 2, fallback=0.6)), 0.8 * ends)
    return shade(rgb, 0.12 * fine * dark, 0.07 * jag, _grain(d, rng, 0.03))


def banana_peel(size: int, colors: Colors, rng: Rng) -> F4:
    """Peel along v, its five edges around. Colours: yellow, green ends, brown."""
    u, v = texels(size)
    ring = np.stack([np.cos(2 * np.pi * u), np.sin(2 * np.pi * u), 9 * v]).astype(np.float32)
    rough = solid_noise(ring, rng, frequency=1.2, octaves=4, gain=0.6)
    lines = solid_noise(ring * np.array([6, 6, 0.5], np.float32)[:, None, None], rng,
                        frequency=2.0, octaves=2)  # fmt: skip
    green = np.maximum(step(0.26, 0.06, v + 0.03 * rough), step(0.84, 0.95, v + 0.02 * rough))
    rgb = mix(flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.75)), 0.7 * green)
    brown = flat(color_of(colors, 2, fallback=0.3))
    edge = np.abs((u * 5 + 0.5) % 1 - 0.5).astype(np.float32)
    ridge = step(0.06, 0.0, edge + 0.02 * rough)
    rgb = mix(rgb, brown, 0.30 * ridge * step(-0.2, 1.0, rough))
    small = solid_noise(ring, rng, frequency=7.5)
    freckles = step(1.75, 2.2, small + 0.35 * rough)
    streaks = step(1.7, 2.3, lines + 0.3 * rough)
    rgb = mix(rgb, brown, np.clip(0.75 * freckles + 0.4 * streaks, 0, 1).astype(np.float32))
    tips = np.maximum(step(0.035, 0.02, v + 0.004 * rough), step(0.955, 0.975, v + 0.004 * rough))
    rgb = mix(rgb, brown, 0.95 * tips)
    fine = solid_noise(ring * np.float32(3), rng, frequency=9, octaves=2, gain=0.9)
    return shade(rgb, 0.05 * rough, 0.04 * lines, 0.03 * fine)


def stem_bark(size: int, colors: Colors, rng: Rng) -> F4:
    """Stalk or sepal, grained along v. Colours: two tones."""
    u, v = texels(size)
    ring = np.stack([4 * np.cos(2 * np.pi * u), 4 * np.sin(2 * np.pi * u), 3 * v])
    ring = ring.astype(np.float32)
    grain = solid_noise(ring, rng, frequency=1.6, octaves=4, gain=0.8)
    fine = solid_noise(ring, rng, frequency=11, octaves=2, gain=0.9)
    rgb = mix(
        flat(color_of(colors, 0)), flat(color_of(colors, 1, fallback=0.6)), step(-1.4, 1.6, grain)
    )
    return shade(rgb, 0.08 * grain, 0.08 * fine)
