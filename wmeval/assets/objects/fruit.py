"""Fruit of smooth skin, stalks and all. Lengths in nominal widths; models scale them."""

from __future__ import annotations

import numpy as np

from wmeval.assets.loft import monotone_cubic
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
)
from wmeval.assets.skin import Array, grid_skin, round_skin

Parts = tuple[Part, ...]


def apple() -> Parts:
    """A streaked red apple with its stalk in the hollow."""

    def shape(d: Array) -> Array:
        z, s, turn = polar(d)
        low = np.clip(0.5 - 0.6 * z, 0, 1)
        radius = 0.5 * s * (1 + 0.11 * z - 0.05 * z**2) * (1 + 0.022 * low * np.cos(5 * turn + 0.4))
        height = 0.45 * z - (z > 0) * 0.20 * bell(s, 0.30) + (z < 0) * 0.10 * bell(s, 0.26)
        height -= (z < 0) * 0.018 * np.cos(5 * turn + 0.4) * bell(s - 0.48, 0.25)
        return around(radius, turn, height * (1 + 0.008 * bumps(d, 1, 1.3, 2)))

    stem = np.array([[0, 0, 0.22], [0.004, 0, 0.31], [0.02, 0.006, 0.38], [0.045, 0.012, 0.435]])
    skin = look("apple_skin", "apple_skin", (0.47, 0.018, 0.022), (0.72, 0.50, 0.11),
                (0.42, 0.36, 0.09), (0.85, 0.62, 0.36), roughness=0.28, specular=0.55)  # fmt: skip
    return (
        part(round_skin(shape), skin),
        part(stalk(stem, (0.014, 0.02)), look("apple_stalk", "stem_bark", *STALK, roughness=0.8)),
        part(
            placed(ellipsoid(0.055, 0.055, 0.022, columns=16, rows=8), 0, 0, -0.35),
            look("apple_calyx", "stem_bark", (0.07, 0.045, 0.02), roughness=0.95, specular=0.1),
        ),
    )


def orange() -> Parts:
    """An orange with its pores and the button of its stalk."""

    def shape(d: Array) -> Array:
        z, s, turn = polar(d)
        height = 0.485 * z - (z > 0) * 0.045 * bell(s, 0.16) + (z < 0) * 0.02 * bell(s, 0.09)
        rough = 1 + 0.006 * bumps(d, 4, 1.6, 2) + 0.0035 * bumps(d, 5, 9, 2)
        return around(0.5 * s * rough, turn, height * rough)

    rind = look("orange_rind", "citrus", (0.83, 0.25, 0.012), (0.60, 0.13, 0.004),
                (0.72, 0.26, 0.02), roughness=0.42, specular=0.4)  # fmt: skip
    button = look("orange_button", "stem_bark", (0.11, 0.16, 0.03), (0.27, 0.24, 0.08),
                  roughness=0.85, specular=0.15)  # fmt: skip

    def star(d: Array) -> Array:
        z, s, turn = polar(d)
        radius = 0.062 * s * (1 + 0.22 * np.cos(5 * turn))
        return around(radius, turn, 0.446 + 0.018 * z)

    return part(round_skin(shape), rind), part(round_skin(star, columns=40, rows=8), button)


def lemon() -> Parts:
    """A lemon lying along x, a nipple at its end."""

    def shape(d: Array) -> Array:
        z, s, turn = polar(d)
        height = 0.55 * z + np.where(z > 0, 0.15 * bell(s, 0.22), -0.06 * bell(s, 0.20))
        rough = 1 + 0.012 * bumps(d, 7, 2.0, 2) + 0.005 * bumps(d, 8, 8, 2)
        return around(rough * 0.5 * s * (1 - 0.06 * np.square(z)), turn, height)

    rind = look("lemon_rind", "citrus", (0.86, 0.62, 0.022), (0.70, 0.44, 0.01),
                (0.66, 0.60, 0.05), seed=1, roughness=0.38, specular=0.45)  # fmt: skip
    scar = look("lemon_scar", "stem_bark", (0.24, 0.20, 0.07), (0.16, 0.22, 0.05), roughness=0.9)
    return (
        part(round_skin(shape, axis="x"), rind),
        part(placed(ellipsoid(0.012, 0.035, 0.035, columns=16, rows=8), -0.606, 0, 0), scar),
    )


def kiwi() -> Parts:
    """A brown kiwi lying along x."""

    def shape(d: Array) -> Array:
        z, s, turn = polar(d)
        height = 0.63 * z + (z > 0) * 0.02 * bell(s, 0.12) - (z < 0) * 0.012 * bell(s, 0.12)
        rough = 1 + 0.010 * bumps(d, 11, 1.5, 2) + 0.004 * bumps(d, 12, 12, 2)
        return around(0.5 * s**0.94 * rough, turn, height)

    fuzz = look("kiwi_fuzz", "kiwi_fuzz", (0.155, 0.088, 0.033), (0.37, 0.245, 0.11),
                (0.06, 0.034, 0.016), roughness=0.9, specular=0.1)  # fmt: skip
    nub = look("kiwi_nub", "stem_bark", (0.13, 0.09, 0.045), (0.22, 0.16, 0.085), roughness=0.9)
    return (
        part(round_skin(shape, axis="x"), fuzz),
        part(placed(ellipsoid(0.022, 0.062, 0.062, columns=16, rows=8), 0.645, 0, 0), nub),
    )


def mango() -> Parts:
    """A mango lying along x, its beak to one side."""

    def shape(d: Array) -> Array:
        z, s, turn = polar(d)
        radius = 0.5 * s * (1 + 0.16 * z - 0.08 * z**2)
        out = around(radius, turn, 0.74 * z - (z > 0) * 0.03 * bell(s, 0.16))
        out[:, 0] += 0.13 * (1 - z**2) - 0.06 * (z < 0) * bell(s, 0.45)
        out[:, 1] *= 0.92
        return out * (1 + 0.006 * bumps(d, 15, 1.2, 2))[:, None]

    skin = look("mango_skin", "mango_skin", (0.76, 0.40, 0.03), (0.56, 0.055, 0.03),
                (0.17, 0.26, 0.03), (0.83, 0.58, 0.20), roughness=0.36, specular=0.45)  # fmt: skip
    scar = np.array([[0.70, 0.0, 0.0], [0.735, 0.0, 0.0], [0.765, 0.006, 0.0]])
    stem = look("mango_stalk", "stem_bark", *STALK, roughness=0.9)
    return part(round_skin(shape, axis="x"), skin), part(stalk(scar, (0.03, 0.022)), stem)


def peach() -> Parts:
    """A peach with its cleft and a blush."""

    def shape(d: Array) -> Array:
        z, s, turn = polar(d)
        cleft = bell(turn, 0.14) * (0.35 + 0.65 * np.clip(0.6 + 0.5 * z, 0, 1))
        radius = 0.5 * s * (1 - 0.11 * cleft) * (1 + 0.03 * z)
        height = 0.47 * z - (z > 0) * 0.13 * bell(s, 0.22) + (z < 0) * 0.035 * bell(s, 0.24)
        height -= (z > 0) * 0.035 * bell(turn, 0.3) * bell(s - 0.3, 0.25)
        return around(radius, turn, height * (1 + 0.006 * bumps(d, 21, 1.4, 2)))

    velvet = look("peach_skin", "peach_skin", (0.84, 0.44, 0.13), (0.70, 0.145, 0.07),
                  (0.36, 0.03, 0.03), roughness=0.85, specular=0.12)  # fmt: skip
    stem = np.array([[0, 0, 0.325], [0.003, 0, 0.36], [0.008, 0.004, 0.395]])
    return (
        part(round_skin(shape), velvet),
        part(stalk(stem, (0.028, 0.02)), look("peach_stalk", "stem_bark", *STALK, roughness=0.9)),
    )


def pear() -> Parts:
    """A standing pear."""

    def shape(d: Array) -> Array:
        z, s, turn = polar(d)
        wide = 1 - 0.40 * z - 0.13 * z**2 - 0.13 * bell(z - 0.60, 0.26)
        height = 0.60 * z - (z > 0) * 0.02 * bell(s, 0.10) + (z < 0) * 0.07 * bell(s, 0.26)
        rough = 1 + 0.012 * bumps(d, 25, 1.3, 2)
        return around(0.49 * s * wide * rough, turn, height)

    skin = look("pear_skin", "pear_skin", (0.44, 0.47, 0.055), (0.26, 0.16, 0.05),
                (0.58, 0.30, 0.06), (0.20, 0.20, 0.04), roughness=0.42, specular=0.4)  # fmt: skip
    stem = np.array([[0, 0, 0.56], [0.004, 0, 0.64], [0.022, 0.004, 0.72], [0.055, 0.01, 0.79]])
    return (
        part(round_skin(shape), skin),
        part(stalk(stem, (0.026, 0.030)), look("pear_stalk", "stem_bark", *STALK, roughness=0.8)),
        part(
            placed(ellipsoid(0.05, 0.05, 0.02, columns=16, rows=8), 0, 0, -0.535),
            look("pear_calyx", "stem_bark", (0.05, 0.035, 0.02), roughness=0.95, specular=0.1),
        ),
    )


def coconut() -> Parts:
    """A coconut lying along x, its eyes at one end."""

    def shape(d: Array) -> Array:
        z, s, turn = polar(d)
        eyes = np.zeros_like(z)
        for k in range(3):
            a = 2 * np.pi * k / 3 + 0.3
            eye = np.array([np.sin(0.4) * np.cos(a), np.sin(0.4) * np.sin(a), np.cos(0.4)])
            eyes += bell(np.arccos(np.clip(d @ eye, -1, 1)), 0.10)
        ridges = 0.008 * np.cos(3 * turn) * s
        rough = 1 + 0.006 * bumps(d, 31, 2.0, 3) + 0.008 * bumps(d, 32, 8, 3) - 0.05 * eyes
        return around(0.5 * s * (1 + ridges) * rough, turn, (0.535 * z + 0.02 * z**3) * rough)

    husk = look("coconut_husk", "coconut_husk", (0.20, 0.105, 0.048), (0.40, 0.26, 0.135),
                (0.030, 0.016, 0.009), roughness=0.95, specular=0.08)  # fmt: skip
    return (part(round_skin(shape, axis="x"), husk),)


def watermelon() -> Parts:
    """A striped watermelon lying along x, with a stub of its stalk."""

    def shape(d: Array) -> Array:
        z, s, turn = polar(d)
        height = 0.575 * z - (z > 0) * 0.012 * bell(s, 0.12)
        rough = 1 + 0.003 * bumps(d, 41, 1.2, 2)
        return around(0.5 * s**0.95 * rough, turn, height * rough)

    rind = look("watermelon_rind", "watermelon_rind", (0.26, 0.42, 0.085), (0.022, 0.085, 0.018),
                (0.42, 0.46, 0.16), roughness=0.3, specular=0.5)  # fmt: skip
    stem = np.array([[0.55, 0, 0.0], [0.575, 0, 0.004], [0.592, 0.004, 0.012]])
    return (
        part(round_skin(shape, axis="x"), rind),
        part(stalk(stem, (0.022, 0.018)), look("watermelon_stalk", "stem_bark", *SEPAL,
                                              roughness=0.8)),
    )  # fmt: skip


def banana() -> Parts:
    """A banana lying on its side, bent in the plane; lengths in metres."""
    rows, columns = 64, 40
    t = np.linspace(0, 1, rows + 1)
    bend = 0.118
    angle = -0.90 + 1.80 * t
    # The stalk's end bends a little further.
    angle = angle - 0.16 * (np.clip(0.2 - t, 0, 1) / 0.2) ** 2
    centre = bend * np.stack([np.sin(angle), 1 - np.cos(angle), 0 * angle], axis=1)
    knots = np.array([0.0, 0.02, 0.09, 0.17, 0.28, 0.45, 0.62, 0.78, 0.88, 0.94, 0.975, 1.0])
    width = np.array([6.2, 6.6, 6.2, 10.5, 15.6, 18.0, 18.0, 16.4, 13.2, 8.6, 5.2, 4.6]) * 1e-3
    radius = monotone_cubic(knots, width, np.clip(t, 0, 1))
    # The thin ends rest on the ground, too.
    centre[:, 2] = 0.97 * radius
    along = np.stack([np.cos(angle), np.sin(angle), 0 * angle], axis=1)
    inward = np.stack([-np.sin(angle), np.cos(angle), 0 * angle], axis=1)
    turn = np.linspace(0, 2 * np.pi, columns + 1)
    edges = 1 + 0.055 * np.cos(5 * turn) + 0.012 * np.cos(10 * turn)
    c, s = (np.cos(turn) * edges)[None, :, None], (np.sin(turn) * edges)[None, :, None]
    up = np.array([0.0, 0.0, 1.0])
    rings = centre[:, None] + radius[:, None, None] * (c * up + s * inward[:, None])
    rings[:, -1] = rings[:, 0]
    # Flat ends of stalk and blossom.
    rings[0], rings[-1] = centre[0] - 1e-5 * along[0], centre[-1] + 1e-5 * along[-1]
    peel = look("banana_peel", "banana_peel", (0.84, 0.58, 0.035), (0.48, 0.50, 0.06),
                (0.13, 0.075, 0.025), roughness=0.48, specular=0.3)  # fmt: skip
    return (part(grid_skin(rings), peel),)
