"""Fruit with a crown or a calyx of leaves. Lengths in nominal widths."""

from __future__ import annotations

import numpy as np

from wmeval.assets.meshes import merge
from wmeval.assets.models import Part
from wmeval.assets.objects.forms import (
    SEPAL,
    STALK,
    around,
    bell,
    bumps,
    ellipsoid,
    look,
    part,
    placed,
    polar,
    stalk,
    sweep,
)
from wmeval.assets.skin import Array, Skin, grid_skin, round_skin

Parts = tuple[Part, ...]


def _tomato_shape(d: Array) -> Array:
    z, s, turn = polar(d)
    lobes = np.cos(5 * turn + 0.5) + 0.4 * np.cos(3 * turn)
    radius = 0.5 * s**0.96 * (1 + 0.016 * lobes * np.clip(0.5 + 0.6 * z, 0, 1))
    height = 0.43 * z - (z > 0) * (0.12 + 0.014 * lobes) * bell(s, 0.30)
    height += (z < 0) * 0.025 * bell(s, 0.2)
    return around(radius, turn, height * (1 + 0.006 * bumps(d, 51, 1.3, 2)))


def _sepal(turn: float, long: float, lift: float) -> Skin:
    """A leaf from the stalk over the shoulder, its tip curled up."""
    t = np.linspace(0, 1, 17)
    polar_angle = 0.06 + long * t
    d = np.stack([np.sin(polar_angle) * np.cos(turn), np.sin(polar_angle) * np.sin(turn),
                  np.cos(polar_angle)], axis=1)  # fmt: skip
    path = _tomato_shape(d)
    path[:, 2] += 0.010 + lift * t**2.2
    wide = 0.05 * np.sin(np.pi * np.clip(t * 0.93 + 0.07, 0, 1)) ** 0.8 * (1 - 0.35 * t)
    wide[0] = wide[-1] = 0.0
    thick = np.minimum(0.011, wide)
    side = np.array([-np.sin(turn), np.cos(turn), 0.0])
    return sweep(path, side, wide, thick)


def tomato() -> Parts:
    """A red tomato with five green sepals and a stalk."""
    skin = look("tomato_skin", "tomato_skin", (0.60, 0.026, 0.014), (0.62, 0.17, 0.03),
                roughness=0.2, specular=0.6)  # fmt: skip
    green = look("tomato_calyx", "stem_bark", *SEPAL, roughness=0.7, specular=0.2)
    leaves = [
        _sepal(2 * np.pi * k / 5 + 0.3 + 0.12 * (k % 2), 0.60 + 0.07 * (k % 3), 0.035).mesh
        for k in range(5)
    ]
    stem = np.array([[0, 0, 0.29], [0.0, 0, 0.36], [0.012, 0.004, 0.41]])
    return (
        part(round_skin(_tomato_shape, rows=32), skin),
        part(merge([*leaves, stalk(stem, (0.032, 0.026)).mesh]), green),
    )


def _crown() -> Skin:
    """Six pointed lobes around a mouth: up the inside, over the rim, down the outside."""
    columns = 48
    turn = np.linspace(0, 2 * np.pi, columns + 1)
    tooth = np.abs((turn * 6 / (2 * np.pi)) % 1 * 2 - 1) ** 1.2
    rings = []
    for radius, low, share in (
        (0.050, 0.43, 0.0), (0.088, 0.455, 0.0), (0.098, 0.50, 0.35), (0.118, 0.535, 0.75),
        (0.142, 0.56, 1.0), (0.140, 0.53, 0.72), (0.128, 0.49, 0.3), (0.122, 0.455, 0.0),
        (0.155, 0.40, 0.0),
    ):  # fmt: skip
        height = low + share * 0.075 * (tooth - 0.45)
        flare = radius * (1 + 0.10 * share * tooth)
        rings.append(np.stack([flare * np.cos(turn), flare * np.sin(turn), height], axis=1))
    out = np.array(rings)
    out[:, -1] = out[:, 0]
    return grid_skin(out)


def pomegranate() -> Parts:
    """A pomegranate standing, its crown up."""

    def shape(d: Array) -> Array:
        z, s, turn = polar(d)
        radius = 0.5 * s * (1 + 0.014 * np.cos(6 * turn + 0.4) * s)
        height = 0.455 * z + (z > 0) * 0.02 * bell(s, 0.30) + (z < 0) * 0.03 * bell(s, 0.20)
        rough = 1 + 0.009 * bumps(d, 61, 1.6, 3)
        return around(radius * rough, turn, height * rough)

    skin = look("pomegranate_skin", "pomegranate_skin", (0.45, 0.022, 0.030), (0.70, 0.24, 0.13),
                (0.20, 0.09, 0.04), roughness=0.36, specular=0.45)  # fmt: skip
    crown = look("pomegranate_crown", "stem_bark", (0.44, 0.06, 0.04), (0.55, 0.22, 0.10),
                 seed=1, roughness=0.6, specular=0.3)  # fmt: skip
    tuft = look("pomegranate_tuft", "stem_bark", *STALK, seed=2, roughness=0.95, specular=0.05)
    return (
        part(round_skin(shape, rows=32), skin),
        part(_crown(), crown),
        part(placed(ellipsoid(0.085, 0.085, 0.03, columns=16, rows=8), 0, 0, 0.452), tuft),
    )
