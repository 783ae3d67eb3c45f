"""The sky as pictures all around, for renderers that trace rays: ``sky.glsl`` in numpy.

`seen_sky` is what eyes and mirrors see: gradient, clouds, the sun's disc, a panorama. `lit_sky` is
what lights surfaces: the raster renderer's ambient light as the sky that gives it (a surface that
looks up gets the cosine-weighted mean of the gradient, two thirds of the way up).
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.panorama import HIGH_DEG, LOW_DEG, bake_panorama
from wmeval.conventions import apart
from wmeval.scene import Sky
from wmeval.sim.render.clouds import cloud_layer
from wmeval.sim.render.raster import SUN_HALF_WIDTH

F4 = NDArray[np.float32]
F8 = NDArray[np.float64]


@lru_cache(maxsize=4)
def directions(height: int) -> F4:
    """Unit vectors (height, 2 height, 3): rows from -z to +z, columns as Blender's equirectangular.

    The middle column looks along +x, and columns turn clockwise seen from above.
    """
    rows = (np.arange(height) + 0.5) / height
    columns = (np.arange(2 * height) + 0.5) / (2 * height)
    climb = ((rows - 0.5) * math.pi)[:, None]
    turn = ((0.5 - columns) * 2 * math.pi)[None]
    out = np.empty((height, 2 * height, 3), np.float32)
    out[..., 0], out[..., 1] = np.cos(climb) * np.cos(turn), np.cos(climb) * np.sin(turn)
    out[..., 2] = np.sin(climb)
    out.flags.writeable = False
    return out


def _step(low: float, high: float, x: F4 | F8) -> F4:
    t = np.clip((x - low) / (high - low), 0, 1)
    return np.asarray(t * t * (3 - 2 * t), np.float32)


def _mix(a: F4 | F8, b: F4 | F8, share: F4) -> F4:
    return np.asarray(a + (b - a) * share[..., None], np.float32)


def lit_sky(sky: F8, bounce: F8, height: int = 64) -> F4:
    """The sky that lights surfaces, (height, 2 height, 3) linear.

    Args:
        sky: (3, 3) zenith, horizon and ground.
        bounce: (3,) light that the floor sends up.
        height: rows.
    """
    zenith, horizon, _ = sky
    up = directions(height)[..., 2]
    above = _mix(horizon, zenith, np.asarray(np.minimum(0.825 * np.maximum(up, 0), 1), np.float32))
    below = _mix(horizon * 0.8, bounce, np.asarray(np.clip(-4 * up, 0, 1), np.float32))
    return np.where(up[..., None] > 0, above, below)


def seen_sky(
    sky: F8, ground: F8, card: Sky, to_sun: F8, glow: F8, light: F8, height: int = 1024
) -> F4:
    """The sky that is looked at, (height, 2 height, 3) linear.

    Args:
        sky: (3, 3) zenith, horizon and ground.
        ground: (3,) what is seen below the horizon.
        card: clouds and panorama.
        to_sun: unit vector towards the sun.
        glow: (3,) the sun's colour in the sky, also at dusk.
        light: (3,) the sun's light that arrives: none at night.
        height: rows.
    """
    zenith, horizon, _ = sky
    d = directions(height)
    up = d[..., 2]
    s = np.maximum(d @ to_sun.astype(np.float32), 0)
    elevation = float(to_sun[2])
    # Gradient.
    low2 = (1 - np.abs(up)) ** 2
    above = _mix(zenith * 1.45, horizon * 1.6, low2**4 * 0.75 + low2 * 0.25)
    above += (0.035 * s**8 + 0.07 * s**32)[..., None] * glow.astype(np.float32)
    color = _mix(above, ground, _step(0, 0.25, -up))
    color = _dusk(color, d, to_sun, glow)
    # Clouds: a flat layer overhead.
    height_of = np.maximum(up, 0) + 0.14
    cloud = _sampled(
        d[..., 0] / height_of * 0.16 + 0.13, d[..., 1] / height_of * 0.16 + 0.41, _clouds()
    )
    cover = card.clouds
    density = _step(0.78 - 0.62 * cover, 1.12 - 0.55 * cover, cloud[..., 0])
    density = density * _step(0.01, 0.13, up) * min(1.0, 3.0 * cover) * 0.92
    lit = (
        horizon * float(_step(-0.5, -0.03, np.array(elevation)))
        + glow * (0.34 + 0.1 * cloud[..., 1] + 0.25 * s**4)[..., None]
    )
    color = _mix(color, lit * (0.82 + 0.3 * cloud[..., 1])[..., None], density)
    # The sun's disc.
    edge = math.cos(SUN_HALF_WIDTH)
    disc = _step(edge, edge * 0.3 + 0.7, d @ to_sun)
    blaze = 1.3 + (6.0 - 1.3) * float(_step(0.04, 0.3, np.array(elevation)))
    shine = disc * (1 - density) * _step(-0.002, 0.002, up)
    color += (blaze * shine)[..., None] * glow.astype(np.float32)
    return (
        color if card.panorama is None else _with_panorama(color, card, d, to_sun, light, horizon)
    )


def _dusk(color: F4, d: F4, to_sun: F8, glow: F8) -> F4:
    elevation = float(to_sun[2])
    low = 1 - float(_step(0.08, 0.42, np.array(elevation)))
    if low == 0:
        return color
    s = np.maximum(d @ to_sun.astype(np.float32), 0)
    flat = np.linalg.norm(d[..., :2], axis=-1) + 1e-9
    toward = 0.5 + 0.5 * (d[..., :2] @ to_sun[:2].astype(np.float32)) / flat
    band = np.exp2(-11 * np.abs(d[..., 2]))
    tint = np.array([0.62, 0.60, 0.86], np.float32)
    far_side = 1 + (tint - 1) * (band * (1 - toward))[..., None]
    color = color * (1 + (far_side - 1) * low)
    add = 0.30 * band * toward**2 + 0.10 * s**16 + 0.30 * s**64 + 0.6 * s**256
    color = color + glow.astype(np.float32) * (low * add)[..., None]
    night = 0.26 + (1 - 0.26) * float(_step(-0.34, -0.03, np.array(elevation)))
    return np.asarray(color * np.float32(night), np.float32)


@lru_cache(maxsize=1)
def _clouds() -> F4:
    return np.asarray(cloud_layer(512) / np.float32(255), np.float32)


def _sampled(u: F4, v: F4, texels: F4) -> F4:
    """Bilinear samples of a texture that repeats."""
    rows, columns = texels.shape[:2]
    x, y = u * columns - 0.5, v * rows - 0.5
    x0, y0 = np.floor(x), np.floor(y)
    fx, fy = (x - x0)[..., None], (y - y0)[..., None]
    i, j = x0.astype(int) % columns, y0.astype(int) % rows
    i1, j1 = (i + 1) % columns, (j + 1) % rows
    top = texels[j, i] * (1 - fx) + texels[j, i1] * fx
    low = texels[j1, i] * (1 - fx) + texels[j1, i1] * fx
    return np.asarray(top * (1 - fy) + low * fy, np.float32)


def _with_panorama(color: F4, card: Sky, d: F4, to_sun: F8, light: F8, horizon: F8) -> F4:
    """What stands around at infinity: reflectances, lit by the sun and the sky."""
    assert card.panorama is not None
    climb = np.degrees(np.arcsin(np.clip(d[..., 2], -1, 1)))
    u = np.arctan2(*apart(d)[:2]) / (2 * math.pi) * round(card.panorama.repeat) + 0.5
    v = np.clip((HIGH_DEG - climb) / (HIGH_DEG - LOW_DEG), 0.001, 0.999)
    land = _sampled(u, v, bake_panorama(card.panorama).astype(np.float32) / 255)
    shade = 0.40 * max(float(to_sun[2]), 0.0) * light + horizon * 0.62
    lit = land[..., :3] ** 2 * shade.astype(np.float32)
    return _mix(color, lit, np.where(climb > HIGH_DEG - 0.5, 0, land[..., 3]))
