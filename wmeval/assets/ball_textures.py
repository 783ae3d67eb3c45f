"""Covers of balls, as maps over a sphere: columns once around, rows from the +z to the -z pole.

The seam of a tennis ball and of a baseball is the curve (a cos t + b cos 3t, a sin t - b sin 3t,
2 sqrt(ab) sin 2t), a + b = 1, which lies on the unit sphere.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.noise import solid_noise
from wmeval.assets.patterns import F4, Rng, color_of, flat, mix, shade, step, texels
from wmeval.assets.print_textures import lettering, pasted
from wmeval.assets.rind_textures import Colors, sphere_map

SEAM_B = 0.29
"""The share b: how narrow the two waists are."""
_POINTS = 4096
STITCHES = 108
"""Of a baseball (Official Baseball Rules 3.01's ball has 108 double stitches)."""


def seam_curve(points: int) -> NDArray[np.float64]:
    """Places (points, 3) of the seam on the unit sphere, once along it."""
    t = 2 * np.pi * np.arange(points) / points
    a, b = 1 - SEAM_B, SEAM_B
    return np.stack(
        [
            a * np.cos(t) + b * np.cos(3 * t),
            a * np.sin(t) - b * np.sin(3 * t),
            2 * np.sqrt(a * b) * np.sin(2 * t),
        ],
        axis=1,
    )


@lru_cache(maxsize=4)
def _to_seam(size: int) -> tuple[F4, F4]:
    """Each texel's angle [rad] from the seam, signed by its side, and its place along it, 0..1."""
    from scipy.spatial import cKDTree

    curve = seam_curve(_POINTS)
    step_ = np.linalg.norm(np.diff(curve, axis=0, append=curve[:1]), axis=1)
    along = np.concatenate([[0.0], np.cumsum(step_)[:-1]]) / step_.sum()
    tangent = np.roll(curve, -1, axis=0) - np.roll(curve, 1, axis=0)
    d = sphere_map(size).reshape(3, -1).T.astype(np.float64)
    distance, nearest = cKDTree(curve).query(d)
    side = np.sign(np.einsum("ij,ij->i", np.cross(curve, tangent)[nearest], d))
    off = 2 * np.arcsin(np.minimum(distance / 2, 1)) * side
    shape = (size, size)
    return off.astype(np.float32).reshape(shape), along[nearest].astype(np.float32).reshape(shape)


def baseball_cover(size: int, colors: Colors, rng: Rng) -> F4:
    """White leather and red stitches along the seam. Colours: leather, thread, seam's shadow."""
    d = sphere_map(size)
    off, along = _to_seam(size)
    leather = flat(color_of(colors, 0))
    rgb = shade(leather, 0.03 * solid_noise(d, rng, frequency=3, octaves=4, gain=0.7))
    rgb = shade(rgb, 0.025 * solid_noise(d, rng, frequency=30, octaves=2, gain=0.9))
    away = np.abs(off)
    rgb = mix(rgb, flat(color_of(colors, 2, fallback=0.5)), 0.85 * step(0.016, 0.006, away))
    # Chevrons: each thread leaves the seam backwards on both sides.
    phase = along * STITCHES + away * 8.0
    thread = step(0.30, 0.20, np.abs(phase % 1 - 0.5)) * step(0.105, 0.09, away)
    thread = thread * step(0.012, 0.02, away)
    shadow = step(0.46, 0.3, np.abs((phase + 0.16) % 1 - 0.5)) * step(0.12, 0.09, away)
    rgb = shade(rgb, -0.22 * shadow)
    rgb = mix(rgb, flat(color_of(colors, 1, fallback=0.6)), 0.97 * thread)
    scuff = step(1.6, 2.4, solid_noise(d, rng, frequency=4, octaves=3))
    return shade(rgb, -0.10 * scuff)


def tennis_felt(size: int, colors: Colors, rng: Rng) -> F4:
    """Felt with a pale seam. Colours: felt, seam, felt's shadow."""
    d = sphere_map(size)
    off, _ = _to_seam(size)
    fuzz = solid_noise(d, rng, frequency=13, octaves=3, gain=0.9)
    strands = solid_noise(d, rng, frequency=30, octaves=2, gain=0.9)
    felt = mix(
        flat(color_of(colors, 0)),
        flat(color_of(colors, 2, fallback=0.7)),
        step(0.2, 2.4, np.asarray(fuzz + 0.5 * strands, np.float32)),
    )
    felt = shade(felt, 0.10 * strands, 0.06 * solid_noise(d, rng, frequency=2, octaves=3))
    away = np.abs(off) + 0.008 * fuzz
    felt = shade(felt, -0.22 * step(0.11, 0.055, away))
    seam = shade(flat(color_of(colors, 1, fallback=0.85)), 0.05 * strands)
    rgb = mix(felt, seam, step(0.055, 0.036, away))
    # A maker's mark of our own on one panel.
    word = pasted(size, lettering("ACE", size // 9, size // 14, 5), 0.25, 0.34)
    return mix(rgb, flat(color_of(colors, 2, fallback=0.3)) * 0.25, 0.85 * word)


def cricket_leather(size: int, colors: Colors, rng: Rng) -> F4:
    """Polished leather, six rows of stitches about a leaning axis. Colours: leather, thread."""
    d = sphere_map(size)
    lean = np.array([0.82, 0.12, 0.56])
    lean /= np.linalg.norm(lean)
    first = np.cross(lean, [0, 0, 1])
    first /= np.linalg.norm(first)
    second = np.cross(lean, first)
    height = np.tensordot(lean.astype(np.float32), d, 1)
    around = np.arctan2(np.tensordot(second, d, 1), np.tensordot(first, d, 1)) / (2 * np.pi)
    latitude = np.arcsin(np.clip(height, -1, 1))
    rough = solid_noise(d, rng, frequency=2.5, octaves=4, gain=0.65)
    rgb = shade(flat(color_of(colors, 0)), 0.10 * rough)
    scuff = step(1.5, 2.4, solid_noise(d, rng, frequency=6, octaves=3, gain=0.8))
    rgb = mix(rgb, flat(color_of(colors, 2, fallback=0.8)), 0.25 * scuff)
    seam = step(0.012, 0.005, np.abs(latitude))
    rgb = shade(rgb, -0.6 * seam, -0.15 * step(0.21, 0.17, np.abs(latitude)))
    # The quarter seams of either half.
    quarter = np.abs(np.tensordot(first.astype(np.float32), d, 1)) + (height < 0) * 9
    other = np.abs(np.tensordot(second.astype(np.float32), d, 1)) + (height > 0) * 9
    faint = step(0.012, 0.004, np.minimum(quarter, other)) * step(0.22, 0.26, np.abs(latitude))
    rgb = shade(rgb, -0.45 * faint)
    thread = np.zeros((size, size), np.float32)
    for row, offset in enumerate((0.035, 0.085, 0.135)):
        for sign in (-1, 1):
            phase = around * 84 + 0.5 * (row % 2)
            line = step(0.017, 0.011, np.abs(latitude - sign * offset))
            line = line * step(0.40, 0.30, np.abs(phase % 1 - 0.5))
            thread = np.maximum(thread, line.astype(np.float32))
    rgb = mix(rgb, flat(color_of(colors, 1, fallback=0.6)), 0.95 * thread)
    return shade(rgb, 0.03 * solid_noise(d, rng, frequency=28, octaves=2, gain=0.9))


def swirled_rubber(size: int, colors: Colors, rng: Rng) -> F4:
    """Marbled rubber: bands of all colours, folded into each other."""
    d = sphere_map(size)
    warp = np.stack([solid_noise(d, rng, frequency=1.2) for _ in range(3)])
    p = d + 0.30 * warp
    level = 0.8 * p[2] + 0.5 * p[0] + 0.12 * solid_noise(p, rng, frequency=1.6)
    count = max(3, len(colors))
    x = (level * 1.15) % 1 * count
    index = np.floor(x).astype(int) % count
    palette = np.stack([color_of(colors, i, fallback=0.9 - 0.25 * i) for i in range(count)])
    blend = step(0.82, 1.0, (x % 1).astype(np.float32))
    rgb = mix(palette.T[:, index], palette.T[:, (index + 1) % count], blend)
    fine = solid_noise(d, rng, frequency=26, octaves=2, gain=0.9)
    return shade(rgb, 0.04 * fine, 0.05 * solid_noise(d, rng, frequency=3, octaves=5, gain=0.8))


def rugby_panels(size: int, colors: Colors, rng: Rng) -> F4:
    """Four panels of a ball about z: pale with coloured flames at the ends, grip, seams, lettering.

    Colours: panels, flames, second flames, seams and letters.
    """
    d = sphere_map(size)
    u, v = texels(size)
    fine = solid_noise(d, rng, frequency=24, octaves=2, gain=0.9)
    panel = (u * 4) % 1
    middle = np.abs(panel - 0.5)
    rgb = flat(color_of(colors, 0))
    height = np.abs(v - 0.5)
    which = np.floor(u * 4).astype(int) % 2
    first, second = color_of(colors, 1, fallback=0.8), color_of(colors, 2, fallback=0.6)
    flame = np.where(which[None] == 0, first[:, None, None], second[:, None, None])
    # A flame reaches farthest in the middle of its panel.
    reach = 0.23 + 0.20 * (middle * 2) ** 1.6
    rgb = mix(rgb, flame.astype(np.float32), step(0.0, 0.012, height - reach))
    line = step(0.010, 0.004, np.abs(height - reach + 0.03))
    ink = flat(color_of(colors, 3, fallback=0.3))
    rgb = mix(rgb, ink, 0.9 * line)
    seam = step(0.030, 0.012, np.minimum(panel, 1 - panel))
    rgb = mix(rgb, ink, 0.75 * seam)
    # Letters run along the ball, upright on either of its upper panels.
    word = lettering("RUGBY", size // 3, size // 11, 7)
    for k, turns in ((0, -1), (1, 1)):
        rgb = mix(rgb, ink, 0.95 * pasted(size, np.rot90(word, turns), (k + 0.5) / 4, 0.5))
    n = 74.0
    pimple = np.cos(2 * np.pi * n * u) * np.cos(2 * np.pi * n * 0.75 * v)
    rgb = shade(rgb, 0.05 * pimple.astype(np.float32), 0.035 * fine)
    return shade(rgb, 0.03 * solid_noise(d, rng, frequency=2.5, octaves=4))
