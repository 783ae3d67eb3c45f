"""Seamless textures, made from a name, colours and a seed.

Each builder bakes ONE period of its pattern; a renderer repeats it ``Texture.repeat`` times across
the unit square of texture coordinates (or across ``uv_m`` metres). Every pattern carries contrast
at several scales, from the whole tile down to single texels, because optical-flow estimators fail
on flat colour: even a "plain" wall is ``concrete`` or ``speckle``, never a constant.

Colours are linear RGB; a builder that wants more colours than it gets derives the rest from the
first. ``ball_panels`` is meant for spheres: it is evaluated on directions, so it has no seam and no
pinch at the poles; its octants and band make rotation about any axis visible.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.object_textures import OBJECT_TEXTURES
from wmeval.assets.patterns import F4, Rng, periodic_field
from wmeval.assets.patterns import cells as _cells
from wmeval.assets.patterns import color_of as _rgb
from wmeval.assets.patterns import flat as _flat
from wmeval.assets.patterns import mix as _mix
from wmeval.assets.patterns import mottle as _mottle
from wmeval.assets.patterns import shade as _shade
from wmeval.assets.patterns import step as _step
from wmeval.assets.patterns import texels as _grid
from wmeval.assets.pictures import PREFIX, sampled
from wmeval.errors import UserError
from wmeval.scene import Color, Texture

Builder = Callable[[int, tuple[Color, ...], Rng], F4]
"""(texels a side, linear colours, generator) -> linear (3, size, size)."""

TEXTURES: dict[str, Builder] = dict(OBJECT_TEXTURES)


def _builder(function: Builder) -> Builder:
    TEXTURES[function.__name__] = function
    return function


# --- builders -----------------------------------------------------------------------------------


@_builder
def checker(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Two by two squares with narrow joints; polished-stone mottling."""
    u, v = _grid(size)
    odd = ((np.floor(u * 2) + np.floor(v * 2)) % 2).astype(np.float32)
    a, b = _rgb(colors, 0), _rgb(colors, 1, fallback=0.62)
    rgb = _mix(_flat(a), _flat(b), odd)
    edge = np.minimum(np.abs((u * 2 + 0.5) % 1 - 0.5), np.abs((v * 2 + 0.5) % 1 - 0.5))
    joint = 1 - _step(0.004, 0.012, edge)
    cloud = periodic_field(size, rng, slope=1.7)
    return _shade(rgb, -0.35 * joint, 0.06 * cloud, _mottle(size, rng, 0.02, 0.06))


@_builder
def tiles(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Four by four tiles, each of its own tone, with grout (colour 1) and worn rims."""
    u, v = _grid(size)
    n = 4
    tone = rng.uniform(-0.11, 0.11, (n, n)).astype(np.float32)
    tone = tone[np.floor(v * n).astype(int), np.floor(u * n).astype(int)]
    edge = np.minimum(np.abs((u * n + 0.5) % 1 - 0.5), np.abs((v * n + 0.5) % 1 - 0.5))
    edge = edge + 0.004 * periodic_field(size, rng, slope=1.2, low=6)
    grout = 1 - _step(0.014, 0.030, edge)
    rim = (1 - _step(0.03, 0.085, edge)) * (1 - grout)
    face = _shade(_flat(_rgb(colors, 0)), tone, 0.07 * rim, _mottle(size, rng, 0.045, 0.06))
    speck = _step(1.9, 2.6, periodic_field(size, rng, slope=0.5, low=40))
    face = _shade(face, -0.22 * speck)
    filler = _shade(_flat(_rgb(colors, 1, fallback=0.6)), _mottle(size, rng, 0.04, 0.1))
    return _mix(face, filler, grout)


@_builder
def planks(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Six staggered boards along u, with grain, growth rings and dark joints."""
    u, v = _grid(size)
    rows = 6
    row = np.floor(v * rows).astype(int)
    start = rng.random(rows).astype(np.float32)[row]
    board = (row * 2 + (np.floor((u + start) * 2).astype(int) % 2)).astype(int)
    tone = rng.uniform(-0.16, 0.16, rows * 2).astype(np.float32)[board]
    shift = rng.integers(0, size, rows * 2)[board]
    grain = periodic_field(size, rng, slope=0.9, low=3, stretch=14)
    rings = periodic_field(size, rng, slope=1.5, low=1, stretch=7)
    iv = (np.arange(size)[:, None] + shift) % size
    iu = np.broadcast_to(np.arange(size)[None, :], (size, size))
    grain, rings = grain[iv, iu], rings[iv, iu]
    ring = np.sin(9 * rings).astype(np.float32)
    rgb = _mix(
        _flat(_rgb(colors, 0)),
        _flat(_rgb(colors, 1, fallback=0.55)),
        np.clip(0.38 + 0.16 * ring + 0.16 * grain, 0, 1).astype(np.float32),
    )
    across = np.abs((v * rows + 0.5) % 1 - 0.5) / rows
    along = np.abs(((u + start) * 2 + 0.5) % 1 - 0.5) / 2
    joint = 1 - _step(0.0015, 0.0055, np.minimum(across, along))
    return _shade(rgb, tone, -0.7 * joint, _mottle(size, rng, 0.02, 0.04))


@_builder
def noise(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Clouded blend of the colours, fractal down to single texels."""
    field = periodic_field(size, rng, slope=1.35)
    level = np.clip(0.5 + 0.28 * field, 0, 1).astype(np.float32)
    stops = max(2, len(colors))
    palette = np.stack([_rgb(colors, i, fallback=0.62) for i in range(stops)])
    x = level * (stops - 1)
    i = np.minimum(x.astype(int), stops - 2)
    rgb = _mix(palette.T[:, i], palette.T[:, i + 1], (x - i).astype(np.float32))
    return _shade(rgb, _mottle(size, rng, 0.0, 0.07))


@_builder
def speckle(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Terrazzo: chips of three sizes in the other colours on colour 0."""
    rgb = _shade(_flat(_rgb(colors, 0)), _mottle(size, rng, 0.035, 0.045))
    chips = [_rgb(colors, 1, fallback=0.68), _rgb(colors, 2, fallback=1.45)]
    chips += [_rgb(colors, i) for i in range(3, len(colors))]
    for count, radius, share in ((10, 0.36, 0.42), (26, 0.36, 0.5), (64, 0.4, 0.5)):
        distance, which = _cells(size, count, rng)
        keep = rng.random(count * count) < share
        size_of = rng.uniform(0.45, 1.0, count * count).astype(np.float32) * radius
        ragged = distance + 0.05 * periodic_field(size, rng, slope=0.9, low=count)
        mask = (1 - _step(-0.06, 0.06, ragged - size_of[which])) * keep[which]
        pick = np.stack(chips)[rng.integers(0, len(chips), count * count)]
        tone = rng.uniform(0.85, 1.15, (count * count, 1)).astype(np.float32)
        rgb = _mix(
            rgb, np.asarray((pick * tone).T[:, which], np.float32), (0.8 * mask).astype(np.float32)
        )
    return rgb


@_builder
def stripes(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Painted bands across u: four periods of the colours, a little worn."""
    u, _ = _grid(size)
    n = max(2, len(colors))
    wobble = 0.006 * periodic_field(size, rng, slope=1.3, low=4)
    x = (u * 4 + wobble) % 1 * n
    index = np.floor(x).astype(int) % n
    palette = np.stack([_rgb(colors, i, fallback=0.5) for i in range(n)])
    edge = np.abs((x + 0.5) % 1 - 0.5)
    rgb = _shade(palette.T[:, index], -0.25 * (1 - _step(0.01, 0.035, edge)))
    wear = _step(1.5, 2.4, periodic_field(size, rng, slope=1.0, low=6))
    return _shade(rgb, -0.18 * wear, _mottle(size, rng, 0.045, 0.07))


@_builder
def marble(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Pale stone with branching veins of colour 1."""
    u, v = _grid(size)
    warp = periodic_field(size, rng, slope=1.75)
    detail = periodic_field(size, rng, slope=1.2, low=4)
    rgb = _flat(_rgb(colors, 0))
    vein_color = _flat(_rgb(colors, 1, fallback=0.4))
    for ku, kv, width, weight in ((1, 1, 0.16, 0.75), (2, -1, 0.08, 0.5), (3, 2, 0.05, 0.35)):
        phase = 2 * np.pi * (ku * u + kv * v) + 1.9 * warp + 0.25 * detail
        vein = np.exp(-np.abs(np.sin(phase / 2)) / width).astype(np.float32)
        strength = np.clip(0.55 + 0.4 * periodic_field(size, rng, slope=1.5), 0, 1)
        rgb = _mix(rgb, vein_color, (weight * vein * strength).astype(np.float32))
    return _shade(rgb, 0.05 * warp, _mottle(size, rng, 0.03, 0.035))


@_builder
def concrete(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Cast concrete or matt plaster: stains, pores, fine aggregate."""
    broad = periodic_field(size, rng, slope=1.8)
    stain = _step(0.6, 1.9, periodic_field(size, rng, slope=1.5, low=2))
    pores = _step(2.2, 2.8, periodic_field(size, rng, slope=0.75, low=14))
    light = _step(2.1, 2.9, periodic_field(size, rng, slope=0.6, low=28))
    rgb = _mix(
        _flat(_rgb(colors, 0)),
        _flat(_rgb(colors, 1, fallback=0.72)),
        (0.5 * stain).astype(np.float32),
    )
    return _shade(rgb, 0.055 * broad, -0.4 * pores, 0.14 * light, _mottle(size, rng, 0.0, 0.065))


@_builder
def brushed(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Brushed metal: hairlines along u over soft bands."""
    hair = periodic_field(size, rng, slope=0.45, low=6, stretch=40)
    band = periodic_field(size, rng, slope=1.3, low=2, stretch=10)
    scratch = _step(1.9, 2.7, periodic_field(size, rng, slope=0.7, low=10, stretch=18))
    rgb = _mix(
        _flat(_rgb(colors, 0)),
        _flat(_rgb(colors, 1, fallback=0.75)),
        np.clip(0.4 + 0.2 * band, 0, 1).astype(np.float32),
    )
    return _shade(rgb, 0.075 * hair, 0.22 * scratch)


@lru_cache(maxsize=8)
def _on_sphere(size: int, seed: int) -> tuple[F4, F4, F4]:
    """Directions (3, size, size) of an equirectangular map; broad and fine noise on them."""
    u, v = _grid(size)
    longitude, latitude = 2 * np.pi * u, np.pi * (0.5 - v)
    direction = np.stack(
        [
            np.cos(latitude) * np.cos(longitude),
            np.cos(latitude) * np.sin(longitude),
            np.sin(latitude),
        ]
    ).astype(np.float32)
    rng = np.random.default_rng(seed)
    flat = direction.reshape(3, -1)

    def waves(count: int, low: float, high: float) -> F4:
        k = rng.standard_normal((count, 3))
        k *= (rng.uniform(low, high, count) / np.linalg.norm(k, axis=1))[:, None]
        phase = rng.uniform(0, 2 * np.pi, (count, 1)).astype(np.float32)
        vectors = k.astype(np.float32)
        total = np.empty(size * size, np.float32)
        step = 4096  # as much as stays in the processor's cache
        for start in range(0, len(total), step):
            turned = vectors @ flat[:, start : start + step]
            turned += phase
            np.cos(turned, out=turned).sum(axis=0, out=total[start : start + step])
        return np.asarray((total / total.std()).reshape(size, size), np.float32)

    return direction, waves(14, 3, 9), waves(36, 30, 140)


@lru_cache(maxsize=8)
def _cover(size: int, seed: int) -> tuple[F4, F4, F4]:
    """What a ball's cover has in common in all colours: weights of colours 1 and 2, brightness."""
    direction, broad, fine = _on_sphere(size, seed)
    x, y, z = direction
    octant = _step(-0.012, 0.012, x) * 2 - 1
    octant = octant * (_step(-0.012, 0.012, y) * 2 - 1) * (_step(-0.012, 0.012, z) * 2 - 1)
    seam = 1 - _step(0.012, 0.03, np.min(np.abs(direction), axis=0))
    along = np.float32(0.48) * x + np.float32(0.6) * y + np.float32(0.64) * z
    ring = 1 - _step(0.035, 0.05, np.abs(along - 0.52))
    away = np.float32(0.64) * x - np.float32(0.6) * y + np.float32(0.48) * z
    dot = 1 - _step(0.03, 0.05, 1 + away - 0.02)
    dot = dot + _step(0.93, 0.945, along)
    away = np.float32(-0.8) * x + np.float32(0.36) * y + np.float32(0.48) * z
    small = 1 - _step(0.008, 0.014, 1 + away)
    speck = _step(1.7, 2.3, fine)
    bright = (1 - 0.5 * seam) * (1 + 0.05 * broad) * (1 + 0.05 * fine) * (1 - 0.2 * speck)
    second = (0.5 - 0.5 * octant).astype(np.float32)
    marked = np.clip(ring + dot + small, 0, 1).astype(np.float32)
    return second, marked, bright.astype(np.float32)


@_builder
def ball_panels(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """A ball's cover: octants of colours 0 and 1, seams, an off-axis ring and dots (colour 2).

    Rows run from the +z pole to the -z pole, columns once around: for the texture coordinates of a
    sphere. No axis of rotation leaves the picture unchanged.
    """
    second, marked, bright = _cover(size, int(rng.integers(0, 4)))
    first = (1 - second) * (1 - marked) * bright
    second = second * (1 - marked) * bright
    third = marked * bright
    a, b, c = (_rgb(colors, i, fallback=f) for i, f in ((0, 1.0), (1, 0.7), (2, 1.75)))
    return np.stack([first * a[i] + second * b[i] + third * c[i] for i in range(3)])


@_builder
def grid(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Measuring grid: one heavy line a tile, ten fine ones, on lightly clouded ground."""
    u, v = _grid(size)

    def line(n: int, width: float) -> F4:
        d = np.minimum(np.abs((u * n + 0.5) % 1 - 0.5), np.abs((v * n + 0.5) % 1 - 0.5)) / n
        return 1 - _step(width, width + 1.5 / size, np.asarray(d, np.float32))

    paint = np.clip(line(1, 0.006) + 0.5 * line(10, 0.0015), 0, 1).astype(np.float32)
    base = _shade(_flat(_rgb(colors, 0)), _mottle(size, rng, 0.06, 0.06))
    return _mix(base, _flat(_rgb(colors, 1, fallback=1.6)), (0.85 * paint).astype(np.float32))


@_builder
def grass(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Mown turf: blades, clumps and drier patches (colour 1)."""
    blades = periodic_field(size, rng, slope=0.7, low=20, stretch=0.35)
    cross = periodic_field(size, rng, slope=0.7, low=24, stretch=2.4)
    clump = periodic_field(size, rng, slope=1.2, low=3)
    dry = _step(0.2, 1.8, periodic_field(size, rng, slope=1.5, low=2))
    rgb = _mix(
        _flat(_rgb(colors, 0)),
        _flat(_rgb(colors, 1, fallback=0.6)),
        (0.6 * dry).astype(np.float32),
    )
    tips = _step(1.3, 2.4, np.asarray(blades + 0.6 * cross, np.float32))
    return _shade(rgb, 0.16 * blades, 0.09 * cross, 0.12 * clump, 0.35 * tips)


@_builder
def asphalt(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Rolled aggregate in dark binder, with worn lanes."""
    rgb = _shade(_flat(_rgb(colors, 0)), 0.1 * periodic_field(size, rng, slope=1.6))
    for count, bright in ((40, 0.55), (90, 0.4)):
        distance, which = _cells(size, count, rng)
        tone = rng.uniform(-bright, bright, count * count).astype(np.float32)
        stone = 1 - _step(0.24, 0.44, distance)
        rgb = _shade(rgb, stone * tone[which])
    return _shade(rgb, _mottle(size, rng, 0.03, 0.1))


@_builder
def leaves(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Foliage: leaves over leaves, from the shadow (colour 0) to the light (1); 2 on a few."""
    import cv2

    deep, light = _rgb(colors, 0), _rgb(colors, 1, fallback=1.5)
    sheet = np.empty((size, size, 3), np.float32)
    sheet[:] = 0.35 * deep
    count = 520
    for i in range(count):
        share = (i / count) ** 0.8
        tone = deep + (light - deep) * np.float32(share * rng.uniform(0.55, 1.15))
        if len(colors) > 2 and rng.random() < 0.12:
            tone = _rgb(colors, 2) * np.float32(rng.uniform(0.7, 1.1))
        long = size * rng.uniform(0.035, 0.07)
        turn = float(rng.uniform(0, 360))
        x, y = rng.uniform(0, size, 2)
        rib = (long * np.cos(np.radians(turn)), long * np.sin(np.radians(turn)))
        for dx in (-size, 0, size):
            for dy in (-size, 0, size):
                if not (-long < x + dx < size + long and -long < y + dy < size + long):
                    continue
                at = (round(x + dx), round(y + dy))
                axes = (round(long), round(0.42 * long))
                color = tone.tolist()
                cv2.ellipse(sheet, at, axes, turn, 0, 360, color, -1)
                ends = [(round(at[0] + s * rib[0]), round(at[1] + s * rib[1])) for s in (-1, 1)]
                cv2.line(sheet, ends[0], ends[1], (0.72 * tone).tolist(), 1)
    rgb = np.ascontiguousarray(np.moveaxis(sheet, -1, 0))
    return _shade(rgb, _mottle(size, rng, 0.1, 0.08))


@_builder
def bark(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Furrowed bark, ridges along v; colour 1 in the furrows, 2 as patches of moss."""
    ridges = periodic_field(size, rng, slope=1.15, low=4, stretch=0.16)
    cracks = periodic_field(size, rng, slope=1.0, low=8, stretch=3.0)
    field = np.abs(ridges + 0.35 * cracks)
    furrow = 1 - _step(0.08, 0.55, np.asarray(field, np.float32))
    rgb = _mix(_flat(_rgb(colors, 0)), _flat(_rgb(colors, 1, fallback=0.35)), 0.85 * furrow)
    if len(colors) > 2:
        moss = _step(0.7, 1.8, periodic_field(size, rng, slope=1.4, low=2))
        rgb = _mix(rgb, _flat(_rgb(colors, 2)), 0.55 * moss)
    return _shade(rgb, 0.16 * ridges, _mottle(size, rng, 0.08, 0.09))


@_builder
def birch_bark(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Pale bark with dark slits across (colour 1)."""
    slits = periodic_field(size, rng, slope=0.8, low=10, stretch=7.0)
    scars = periodic_field(size, rng, slope=1.5, low=3)
    dark = _step(1.5, 1.9, np.asarray(slits + 0.5 * scars, np.float32))
    rgb = _mix(_flat(_rgb(colors, 0)), _flat(_rgb(colors, 1, fallback=0.1)), 0.9 * dark)
    return _shade(rgb, 0.05 * scars, _mottle(size, rng, 0.05, 0.05))


@_builder
def gravel(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Raked pebbles of mixed tones over dark joints."""
    rgb = _shade(_flat(_rgb(colors, 1, fallback=0.45)), _mottle(size, rng, 0.1, 0.1))
    for count, radius, share in ((72, 0.5, 1.0), (44, 0.46, 0.5), (28, 0.4, 0.25)):
        distance, which = _cells(size, count, rng)
        keep = rng.random(count * count) < share
        tone = rng.uniform(0.62, 1.3, (count * count, 1)).astype(np.float32)
        warm = rng.normal(0, 0.05, (count * count, 3)).astype(np.float32)
        pebble = (_rgb(colors, 0) * tone * (1 + warm)).T[:, which]
        mask = (1 - _step(radius - 0.14, radius, distance)) * keep[which]
        dome = (1 - 0.45 * (distance / radius) ** 2).astype(np.float32)
        rgb = _mix(rgb, np.asarray(pebble * dome, np.float32), np.asarray(mask, np.float32))
    return _shade(rgb, 0.07 * periodic_field(size, rng, slope=1.6))


@_builder
def masonry(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Squared rubble stones in mortar (colour 1), five courses a tile."""
    u, v = _grid(size)
    courses = 5
    row = np.floor(v * courses).astype(int)
    wobble = 0.05 * periodic_field(size, rng, slope=1.4, low=3)
    y = (v * courses + wobble) % 1
    row = np.floor(v * courses + wobble).astype(int) % courses
    counts = np.array([3, 4, 3, 4, 3])[row]
    x = u * counts + rng.random(courses)[row] + 0.6 * wobble
    column = np.floor(x).astype(int) % counts
    gap = np.minimum(
        np.abs((x + 0.5) % 1 - 0.5) * size / counts, np.abs((y + 0.5) % 1 - 0.5) * size / courses
    )
    mortar = 1 - _step(2.5 * size / 512, 7.0 * size / 512, np.asarray(gap, np.float32))
    tone = rng.uniform(0.72, 1.22, (courses, 4)).astype(np.float32)[row, column]
    hue = rng.normal(0, 0.07, (courses, 4)).astype(np.float32)[row, column]
    warm = np.stack([hue, 0.3 * hue, -hue])
    grain = periodic_field(size, rng, slope=0.9, low=8)
    stone = _shade(_flat(_rgb(colors, 0)), np.asarray(tone - 1, np.float32), 0.13 * grain) * (
        1 + warm
    )
    rgb = _mix(stone, _flat(_rgb(colors, 1, fallback=0.5)), mortar)
    return _shade(rgb, _mottle(size, rng, 0.07, 0.07))


@_builder
def weathered(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Field stone: grain, cracks in colour 1 and patches of lichen in colour 2."""
    broad = periodic_field(size, rng, slope=1.6)
    grain = periodic_field(size, rng, slope=0.8, low=10)
    vein = np.abs(periodic_field(size, rng, slope=1.5, low=3))
    crack = (1 - _step(0.01, 0.07, np.asarray(vein, np.float32))) * _step(-0.4, 0.8, broad)
    rgb = _shade(_flat(_rgb(colors, 0)), 0.18 * broad, 0.17 * grain)
    rgb = _mix(rgb, _flat(_rgb(colors, 1, fallback=0.4)), 0.75 * crack)
    spots = periodic_field(size, rng, slope=1.2, low=5)
    lichen = _step(1.1, 1.5, np.asarray(spots + 0.35 * grain, np.float32))
    rgb = _mix(rgb, _flat(_rgb(colors, 2, fallback=1.3)), 0.7 * lichen)
    return _shade(rgb, _mottle(size, rng, 0.06, 0.08))


@_builder
def petals(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Blossoms of colours 2, 3, ... over foliage of colours 0 and 1."""
    import cv2

    sheet = np.ascontiguousarray(np.moveaxis(leaves(size, colors[:2], rng), 0, -1))
    for _ in range(150):
        x, y = rng.uniform(0, size, 2)
        reach = size * rng.uniform(0.018, 0.034)
        color = _rgb(colors, int(rng.integers(2, max(3, len(colors)))), fallback=1.8)
        tone = (color * np.float32(rng.uniform(0.75, 1.1))).tolist()
        turn = rng.uniform(0, 2 * np.pi)
        for dx in (-size, 0, size):
            for dy in (-size, 0, size):
                for k in range(5):
                    a = turn + 2 * np.pi * k / 5
                    at = (round(x + dx + reach * np.cos(a)), round(y + dy + reach * np.sin(a)))
                    cv2.circle(sheet, at, max(1, round(0.75 * reach)), tone, -1)
                heart = (round(x + dx), round(y + dy))
                cv2.circle(sheet, heart, max(1, round(0.5 * reach)), (0.8, 0.55, 0.06), -1)
    rgb = np.ascontiguousarray(np.moveaxis(sheet, -1, 0))
    return _shade(rgb, _mottle(size, rng, 0.05, 0.06))


@_builder
def ripples(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Still water: soft ripples, clouded from colour 0 to 1."""
    waves = periodic_field(size, rng, slope=1.1, low=5, stretch=0.4)
    broad = periodic_field(size, rng, slope=1.7)
    crest = _step(1.0, 2.2, np.asarray(waves + 0.4 * broad, np.float32))
    level = np.clip(0.5 + 0.3 * broad, 0, 1).astype(np.float32)
    rgb = _mix(_flat(_rgb(colors, 0)), _flat(_rgb(colors, 1, fallback=1.2)), level)
    return _shade(rgb, 0.16 * waves, 0.7 * crest, _mottle(size, rng, 0.04, 0.06))


@_builder
def wood(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Planed timber without joints: grain along u, growth rings (colour 1), pores."""
    rings = periodic_field(size, rng, slope=1.5, low=1, stretch=6)
    ring = np.sin(11 * rings).astype(np.float32)
    grain = periodic_field(size, rng, slope=0.8, low=4, stretch=18)
    pores = _step(1.6, 2.5, periodic_field(size, rng, slope=0.5, low=12, stretch=16))
    rgb = _mix(
        _flat(_rgb(colors, 0)),
        _flat(_rgb(colors, 1, fallback=0.6)),
        np.clip(0.36 + 0.2 * ring + 0.15 * grain, 0, 1).astype(np.float32),
    )
    return _shade(rgb, -0.22 * pores, _mottle(size, rng, 0.03, 0.035))


@_builder
def calibration(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Measuring checker, four by four squares a tile: a fine cross in each, a bold one a tile.

    Colours: light squares, dark squares, the bold cross (at the tile's corner).
    """
    u, v = _grid(size)
    n = 4
    odd = ((np.floor(u * n) + np.floor(v * n)) % 2).astype(np.float32)
    light, dark = _flat(_rgb(colors, 0)), _flat(_rgb(colors, 1, fallback=0.1))
    bold = _flat(_rgb(colors, 2, fallback=0.5))

    def cross(count: int, shift: float, arm: float, width: float) -> F4:
        """Crosses at ``count`` places a side: 1 on them, soft by a texel."""
        x, y = (np.abs((w * count + shift) % 1 - 0.5) / count for w in (u, v))
        soft = 0.75 / size

        def bar(a: F4, b: F4) -> F4:
            wide, long = _step(width - soft, width + soft, a), _step(arm - soft, arm + soft, b)
            return np.asarray((1 - wide) * (1 - long), np.float32)

        return np.maximum(bar(x, y), bar(y, x))

    rgb = _mix(light, dark, odd)
    fine = cross(n, 0.0, 0.050, 0.0055)
    rgb = _mix(rgb, _mix(dark, light, odd), 0.85 * fine)
    rgb = _mix(rgb, bold, cross(1, 0.5, 0.105, 0.014))
    worn = _step(1.4, 2.6, periodic_field(size, rng, slope=1.1, low=5))
    return _shade(rgb, -0.12 * worn, _mottle(size, rng, 0.035, 0.05))


@_builder
def plaster(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Painted plaster: a roller's grain under broad, faint clouds."""
    broad = periodic_field(size, rng, slope=1.7)
    roller = periodic_field(size, rng, slope=0.9, low=20)
    rgb = _mix(
        _flat(_rgb(colors, 0)),
        _flat(_rgb(colors, 1, fallback=0.93)),
        np.clip(0.5 + 0.3 * broad, 0, 1).astype(np.float32),
    )
    return _shade(rgb, 0.022 * roller, _mottle(size, rng, 0.012, 0.03))


@_builder
def weave(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Cloth of crossing threads, 48 a tile, of uneven thickness; colour 1 is the weft."""
    u, v = _grid(size)
    n = 48
    wobble = 0.18 * periodic_field(size, rng, slope=1.0, low=8)
    x, y = u * n + wobble, v * n + wobble
    over = (np.floor(x) + np.floor(y)) % 2
    warp = np.sin(np.pi * (x % 1)) * (0.72 + 0.28 * over)
    weft = np.sin(np.pi * (y % 1)) * (1.0 - 0.28 * over)
    on_top = (over > 0.5).astype(np.float32)
    height = (warp * on_top + weft * (1 - on_top)).astype(np.float32)
    rgb = _mix(_flat(_rgb(colors, 1, fallback=0.82)), _flat(_rgb(colors, 0)), on_top)
    slub = periodic_field(size, rng, slope=0.7, low=6, stretch=12)
    return _shade(rgb, 0.34 * height - 0.24, 0.05 * slub, _mottle(size, rng, 0.04, 0.05))


@_builder
def brickwork(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Running bond, eight courses of four bricks a tile, with joints of colour 1."""
    u, v = _grid(size)
    courses, across = 8, 4
    wobble = 0.02 * periodic_field(size, rng, slope=1.3, low=8)
    row = np.floor(v * courses).astype(int) % courses
    x = (u * across + 0.5 * (row % 2)) % across
    column = np.floor(x).astype(int) % across
    gap = np.minimum(
        np.abs((x + 0.5) % 1 - 0.5) / across, np.abs((v * courses + 0.5) % 1 - 0.5) / courses
    )
    joint = 1 - _step(0.0025, 0.0065, np.asarray(gap + 0.04 * wobble, np.float32))
    tone = rng.uniform(-0.13, 0.13, (courses, across)).astype(np.float32)[row, column]
    face = _shade(
        _mix(
            _flat(_rgb(colors, 0)),
            _flat(_rgb(colors, 2, fallback=0.86)),
            rng.random((courses, across)).astype(np.float32)[row, column],
        ),
        tone,
        _mottle(size, rng, 0.04, 0.06),
    )
    mortar = _shade(_flat(_rgb(colors, 1, fallback=0.6)), _mottle(size, rng, 0.05, 0.08))
    return _mix(face, mortar, joint)


@_builder
def glazed(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Small upright tiles in running bond, hand-glazed, with thin joints of colour 1."""
    u, v = _grid(size)
    columns, rows = 12, 4
    column = np.floor(u * columns).astype(int) % columns
    y = (v * rows + 0.5 * (column % 2)) % rows
    row = np.floor(y).astype(int) % rows
    gap = np.minimum(
        np.abs((u * columns + 0.5) % 1 - 0.5) / columns, np.abs((y + 0.5) % 1 - 0.5) / rows
    )
    joint = 1 - _step(0.0012, 0.0042, np.asarray(gap, np.float32))
    tone = rng.uniform(-0.16, 0.16, (rows, columns)).astype(np.float32)[row, column]
    pool = periodic_field(size, rng, slope=1.3, low=8)
    face = _shade(_flat(_rgb(colors, 0)), tone, 0.06 * pool, _mottle(size, rng, 0.02, 0.04))
    mortar = _shade(_flat(_rgb(colors, 1, fallback=0.75)), _mottle(size, rng, 0.03, 0.06))
    return _mix(face, mortar, joint)


@_builder
def herringbone(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Parquet of blocks three times as long as wide, laid at right angles in zigzags."""
    u, v = _grid(size)
    n = 12
    x, y = u * n, v * n
    i, j = np.floor(x).astype(int), np.floor(y).astype(int)
    # Along each diagonal three cells lie, then three stand.
    phase = (i - j) % 6
    lying = phase < 3
    start = np.where(lying, i - phase, i) % n
    begin = np.where(lying, j, j - (5 - phase)) % n
    across = np.where(lying, y % 1, x % 1)
    along = np.where(lying, (x % 1) + phase, (y % 1) + (5 - phase))
    gap = np.minimum(np.minimum(across, 1 - across), np.minimum(along, 3 - along)) / n
    joint = 1 - _step(0.0008, 0.0035, np.asarray(gap, np.float32))
    key = (start * n + begin + np.where(lying, 0, n * n)) % (2 * n * n)
    tone = rng.uniform(-0.2, 0.2, 2 * n * n).astype(np.float32)[key]
    shift = rng.integers(0, size, 2 * n * n)[key]
    grain = periodic_field(size, rng, slope=0.9, low=4, stretch=12)
    rows, columns = np.mgrid[0:size, 0:size]
    picked = np.where(
        lying, grain[(rows + shift) % size, columns], grain[(columns + shift) % size, rows]
    )
    rgb = _mix(
        _flat(_rgb(colors, 0)),
        _flat(_rgb(colors, 1, fallback=0.6)),
        np.clip(0.4 + 0.2 * picked, 0, 1).astype(np.float32),
    )
    return _shade(rgb, tone, -0.6 * joint, _mottle(size, rng, 0.02, 0.04))


@_builder
def boards(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Painted boards along u with shadow gaps, eight a tile."""
    _, v = _grid(size)
    n = 8
    row = np.floor(v * n).astype(int) % n
    tone = rng.uniform(-0.045, 0.045, n).astype(np.float32)[row]
    edge = np.abs((v * n + 0.5) % 1 - 0.5) / n
    gap = 1 - _step(0.003, 0.0085, edge)
    grain = periodic_field(size, rng, slope=0.9, low=4, stretch=16)
    rgb = _shade(_flat(_rgb(colors, 0)), tone, 0.03 * grain, _mottle(size, rng, 0.015, 0.035))
    return _mix(rgb, _shade(_flat(_rgb(colors, 1, fallback=0.4)), 0.1 * grain), 0.8 * gap)


@_builder
def sand(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """Dry sand: wind ripples, footworn hollows, single grains, a few shells (colour 1)."""
    ripple = periodic_field(size, rng, slope=1.2, low=7, stretch=0.3)
    hollow = periodic_field(size, rng, slope=1.6, low=2)
    grain = periodic_field(size, rng, slope=0.35, low=50)
    shells = _step(3.0, 3.3, periodic_field(size, rng, slope=0.6, low=30))
    rgb = _shade(_flat(_rgb(colors, 0)), 0.055 * ripple, 0.05 * hollow, 0.07 * grain)
    rgb = _mix(rgb, _flat(_rgb(colors, 1, fallback=1.4)), 0.7 * shells)
    return _shade(rgb, _mottle(size, rng, 0.02, 0.04))


@_builder
def carpet(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """A woven rug as a whole: field (colour 0), borders (1), medallions and vines (2, 3)."""
    u, v = _grid(size)
    edge = np.minimum(np.minimum(u, 1 - u), np.minimum(v, 1 - v))
    field, border, motif, thread = (
        _flat(_rgb(colors, k, fallback=f)) for k, f in ((0, 1.0), (1, 0.6), (2, 1.5), (3, 0.4))
    )
    x, y = np.abs(u - 0.5), np.abs(v - 0.5)
    rgb = np.broadcast_to(field, (3, size, size)).astype(np.float32)

    def paint(rgb: F4, mask: F4, color: F4, weight: float = 0.9) -> F4:
        return _mix(rgb, color, np.asarray(weight * np.clip(mask, 0, 1), np.float32))

    def band(value: F4, middle: float, width: float) -> F4:
        return 1 - _step(0.6 * width, width, np.asarray(np.abs(value - middle), np.float32))

    # A lattice of small blossoms over the field, its own mirror image about both middles.
    petals_of = np.cos(2 * np.pi * 11 * x) * np.cos(2 * np.pi * 11 * y)
    rgb = paint(rgb, _step(0.55, 0.8, np.asarray(petals_of, np.float32)), motif, 0.7)
    rgb = paint(rgb, _step(0.55, 0.8, np.asarray(-petals_of, np.float32)), thread, 0.55)
    turn = np.arctan2(y, x + 1e-9)
    reach = np.hypot(x, y) * (1 + 0.08 * np.cos(12 * turn))
    for radius, color in ((0.20, border), (0.17, motif), (0.15, border), (0.08, thread),
                          (0.055, motif)):  # fmt: skip
        rgb = paint(rgb, 1 - _step(radius - 0.006, radius + 0.006, reach), color, 0.92)
    rgb = paint(rgb, 1 - _step(0.118, 0.128, edge), border, 0.95)
    round_ = np.where(np.minimum(u, 1 - u) < np.minimum(v, 1 - v), v, u)
    wave = 0.022 * np.sin(2 * np.pi * 14 * round_)
    rgb = paint(rgb, band(edge + wave, 0.075, 0.012), motif, 0.9)
    rgb = paint(rgb, band(edge - wave, 0.075, 0.008), thread, 0.8)
    for middle, width, color in ((0.122, 0.005, motif), (0.034, 0.006, motif), (0.012, 0.012,
                                 thread)):  # fmt: skip
        rgb = paint(rgb, band(edge, middle, width), color)
    knots = np.sin(2 * np.pi * 96 * u) * np.sin(2 * np.pi * 96 * v)
    worn = periodic_field(size, rng, slope=1.4, low=2)
    stripe = periodic_field(size, rng, slope=0.9, low=8, stretch=10)
    return _shade(rgb, 0.09 * knots.astype(np.float32), 0.05 * worn, 0.05 * stripe,
                  _mottle(size, rng, 0.03, 0.05))  # fmt: skip


@_builder
def painting(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """An abstract picture: overlapping brushed shapes in the colours, on colour 0."""
    import cv2

    sheet = np.empty((size, size, 3), np.float32)
    sheet[:] = _rgb(colors, 0)
    palette = [_rgb(colors, k, fallback=f) for k, f in ((1, 0.5), (2, 1.5), (3, 0.75))]
    palette += [_rgb(colors, k) for k in range(4, len(colors))]
    # Shapes keep off the rim, so that the picture also fits beside itself.
    for i in range(9):
        color = (palette[i % len(palette)] * np.float32(rng.uniform(0.8, 1.15))).tolist()
        at = tuple(int(c) for c in rng.uniform(0.3, 0.7, 2) * size)
        long = int(size * rng.uniform(0.05, 0.24) * (1 - 0.06 * i))
        wide = int(long * rng.uniform(0.5, 1.0))
        turn = float(rng.uniform(0, 180))
        start = float(rng.choice([0.0, 180.0]))
        end = start + float(rng.choice([180.0, 360.0]))
        cv2.ellipse(sheet, at, (long, wide), turn, start, end, color, -1, cv2.LINE_AA)
    for _ in range(5):
        a, b = ((rng.uniform(0.12, 0.88, 2) * size).astype(int).tolist() for _ in range(2))
        ink = (palette[0] * np.float32(0.5)).tolist()
        cv2.line(sheet, a, b, ink, max(1, size // 170), cv2.LINE_AA)
    brush = periodic_field(size, rng, slope=0.8, low=5, stretch=9)
    rgb = np.ascontiguousarray(np.moveaxis(sheet, -1, 0))
    return _shade(rgb, 0.06 * brush, _mottle(size, rng, 0.05, 0.05))


@_builder
def butterflies(size: int, colors: tuple[Color, ...], rng: Rng) -> F4:
    """A mural: butterflies of colours 2, 3, ... among faint stems and leaves (1) on colour 0."""
    import cv2

    sheet = np.empty((size, size, 3), np.float32)
    sheet[:] = _rgb(colors, 0)
    stem = _rgb(colors, 1, fallback=0.7)
    wings = [_rgb(colors, k, fallback=f) for k, f in ((2, 0.4), (3, 0.6), (4, 0.8))]
    wings += [_rgb(colors, k) for k in range(5, len(colors))]
    shifts = [(dx, dy) for dx in (-size, 0, size) for dy in (-size, 0, size)]

    def leaf(x: float, y: float, long: float, turn: float, tone: F4) -> None:
        for dx, dy in shifts:
            at = (round(x + dx), round(y + dy))
            axes = (max(1, round(long)), max(1, round(0.36 * long)))
            cv2.ellipse(sheet, at, axes, turn, 0, 360, tone.tolist(), -1, cv2.LINE_AA)

    for _ in range(11):
        x, y = rng.uniform(0, size, 2)
        heading = rng.uniform(-2.2, -0.9)
        for step in range(12):
            x += size * 0.026 * np.cos(heading)
            y += size * 0.026 * np.sin(heading)
            heading += rng.normal(0, 0.16)
            tone = sheet[0, 0] * 0 + stem * np.float32(rng.uniform(0.92, 1.15))
            side = 90.0 if step % 2 else -90.0
            turn = float(np.degrees(heading) + 0.55 * side)
            a = np.radians(turn)
            long = size * 0.021 * (1.25 - step / 14)
            leaf(x, y, size * 0.014, float(np.degrees(heading)), tone)
            leaf(x + long * np.cos(a), y + long * np.sin(a), long, turn, tone)

    def butterfly(x: float, y: float, s: float, turn: float, color: F4) -> None:
        c, sn = np.cos(turn), np.sin(turn)
        dark, pale = (0.25 * color).tolist(), (color + (1 - color) * 0.45).tolist()

        def put(px: float, py: float, a: float, b: float, tilt: float, tone: list[float]) -> None:
            for dx, dy in shifts:
                at = (
                    round(x + dx + s * (c * px - sn * py)),
                    round(y + dy + s * (sn * px + c * py)),
                )
                axes = (max(1, round(s * a)), max(1, round(s * b)))
                angle = float(np.degrees(turn) + tilt)
                cv2.ellipse(sheet, at, axes, angle, 0, 360, tone, -1, cv2.LINE_AA)

        for sx in (-1, 1):
            for a, b, shrink, tone in ((1.0, 1.0, 0.0, dark), (0.84, 0.8, 0.0, color.tolist()),
                                       (0.4, 0.42, 0.12, pale)):  # fmt: skip
                put(sx * (0.52 + shrink), -0.36, 0.56 * a, 0.36 * b, sx * -35.0, tone)
                put(sx * (0.40 + shrink), 0.34, 0.40 * a, 0.28 * b, sx * 50.0, tone)
        put(0.0, 0.0, 0.07, 0.46, 0.0, dark)
        for sx in (-1, 1):
            put(sx * 0.13, -0.58, 0.03, 0.18, sx * 25.0, dark)

    count = 20
    for i in range(count):
        # One in each place of a loose lattice.
        x = size * ((i % 5) + rng.uniform(0.2, 0.8)) / 5
        y = size * ((i // 5) + rng.uniform(0.2, 0.8)) / 4
        tone = wings[i % len(wings)] * np.float32(rng.uniform(0.85, 1.1))
        butterfly(x, y, size * rng.uniform(0.04, 0.085), rng.uniform(-0.7, 0.7), tone)
    rgb = np.ascontiguousarray(np.moveaxis(sheet, -1, 0))
    return _shade(rgb, 0.03 * periodic_field(size, rng, slope=1.7), _mottle(size, rng, 0.02, 0.04))


# --- baking -------------------------------------------------------------------------------------


def encode_srgb(linear: F4) -> NDArray[np.uint8]:
    """Linear [0, 1] to 8-bit sRGB (IEC 61966-2-1)."""
    x = np.clip(linear, 0, 1)
    encoded = np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)
    return np.asarray(np.rint(encoded * 255), np.uint8)


@lru_cache(maxsize=1)
def _codes() -> NDArray[np.uint8]:
    return encode_srgb((np.arange(65536) / 65535).astype(np.float32))


def _encode(linear: F4) -> NDArray[np.uint8]:
    """As `encode_srgb`, of (3, size, size) to (size, size, 3).

    From a table of 65536 levels: a code differs by one where it was a near tie.
    """
    level = linear * np.float32(65535)
    level += np.float32(0.5)
    import cv2

    codes = _codes()[np.clip(level, 0, 65535, out=level).astype(np.uint16)]
    return np.asarray(cv2.merge(list(codes)), np.uint8)


def decode_srgb(encoded: NDArray[np.uint8]) -> F4:
    """8-bit sRGB to linear [0, 1]."""
    x = np.arange(256) / 255
    table = np.where(x <= 0.04045, x / 12.92, ((x + 0.055) / 1.055) ** 2.4).astype(np.float32)
    return np.asarray(table[encoded])


KEPT_BYTES = 192 << 20
"""Baked textures kept in the process; the ones unused for longest go first."""

_baked: dict[tuple[Texture, int], NDArray[np.uint8]] = {}
_keeping = threading.Lock()


def bake(texture: Texture, size: int = 512) -> NDArray[np.uint8]:
    """One period of a texture; those used last are kept in the process.

    Args:
        texture: builder, colours and seed (``repeat`` is the renderer's business).
        size: texels along each side.

    Returns:
        (size, size, 3) uint8 sRGB, read-only; opposite edges fit together.

    Raises:
        UserError: no such builder; the message names the known ones.
    """
    key = texture, size
    with _keeping:
        kept = _baked.pop(key, None)
        if kept is not None:
            _baked[key] = kept
            return kept
    builder = TEXTURES.get(texture.builder)
    if texture.builder.startswith(PREFIX):
        baked = sampled(texture, size)
    elif builder is None:
        raise UserError(
            f"no texture builder {texture.builder!r}: choose from {', '.join(TEXTURES)}"
        )
    else:
        baked = _encode(builder(size, texture.colors, np.random.default_rng(texture.seed)))
    baked.flags.writeable = False
    with _keeping:
        _baked[key] = baked
        total = sum(array.nbytes for array in _baked.values())
        for old in list(_baked)[:-1]:
            if total <= KEPT_BYTES:
                break
            total -= _baked.pop(old).nbytes
    return baked
