"""Cans and a bottle, standing; lengths in metres."""

from __future__ import annotations

import math

import numpy as np

from wmeval.assets.meshes import cylinder, merge
from wmeval.assets.models import Part
from wmeval.assets.objects.forms import METAL, look, part, placed
from wmeval.assets.skin import Skin, grid_skin, turned_skin
from wmeval.assets.solids import moved, slab, stretched
from wmeval.scene import Material, MeshData

Parts = tuple[Part, ...]
Points = list[tuple[float, float]]


def _metal(name: str) -> Material:
    return look(name, "lid", METAL, roughness=0.28, specular=1.0)


def _tab(radius: float, z: float) -> MeshData:
    """The ring-pull of a drink can, and the scored opening's rim before it."""
    s = radius / 0.033
    ring = [
        moved(slab((0.0015 * s, 0.0070 * s, 0.0006), 0.0003, steps=1), y * 0.0062 * s, 0, z)
        for y in (-1, 1)
    ]
    ends = [
        moved(slab((0.0076 * s, 0.0030 * s, 0.0006), 0.0003, steps=1), 0, y * s, z)
        for y in (-0.0085, 0.0070)
    ]
    rivet = moved(cylinder(0.0024 * s, 0.0016, 16, 1), 0, -0.0045 * s, z)
    return merge([*ring, *ends, rivet])


def _drink_can(name: str, radius: float, height: float, neck: float, label: Material) -> Parts:
    """An aluminium can: domed foot, printed wall, necked lid with a ring-pull."""
    r, h, n = radius, height, neck
    foot: Points = [
        (0.0, 0.0075), (0.5 * n, 0.0055), (0.80 * n, 0.0018), (0.83 * n, 0.0004), (0.86 * n, 0.0),
        (0.90 * n, 0.0005), (0.96 * n, 0.0032), (r - 0.0025, 0.0065), (r - 0.0005, 0.0100),
        (r, 0.0130),
    ]  # fmt: skip
    wall: Points = [(r, 0.0130), (r, h - 0.024)]
    # The neck: a quarter in, a quarter up.
    for t in np.linspace(0, 1, 9)[1:]:
        x = 0.5 - 0.5 * math.cos(math.pi * t)
        wall.append((r + (n - r) * x, h - 0.024 + 0.0165 * float(t)))
    top = h - 0.0075
    lid: Points = [
        (n, top), (n + 0.0004, top + 0.0030), (n + 0.0007, h - 0.0012), (n + 0.0002, h - 0.0002),
        (n - 0.0008, h), (n - 0.0016, h - 0.0008), (n - 0.0024, top + 0.0008),
        (n - 0.0036, top - 0.0004), (n - 0.0048, top + 0.0010), (0.0, top + 0.0012),
    ]  # fmt: skip
    metal = _metal(f"{name}_metal")
    opening = stretched(cylinder(0.0072 * r / 0.033, 0.0006, 24, 1), 1.25, 1.0, 1.0)
    dark = look(f"{name}_score", "lid", (0.36, 0.37, 0.39), roughness=0.4, specular=0.8)
    return (
        part(turned_skin(wall), label),
        part(turned_skin(foot, 48), metal),
        part(turned_skin(lid, 64), metal),
        part(_tab(r, top + 0.0022), metal),
        part(moved(opening, 0, -0.0125 * r / 0.033, top + 0.0012), dark),
    )


def soda_can() -> Parts:
    """A red cola can."""
    label = look("soda_label", "soda_label", (0.58, 0.012, 0.020), (0.86, 0.86, 0.86),
                 (0.20, 0.004, 0.010), roughness=0.25, specular=0.8)  # fmt: skip
    return _drink_can("soda", 0.033, 0.1225, 0.0268, label)


def red_bull_can() -> Parts:
    """A slim can in blue and silver, of our own design."""
    label = look("energy_label", "energy_label", (0.012, 0.055, 0.33), (0.62, 0.65, 0.70),
                 (0.30, 0.80, 0.08), (0.006, 0.02, 0.10), roughness=0.25, specular=0.9)  # fmt: skip
    return _drink_can("energy", 0.0265, 0.135, 0.0228, label)


def food_can() -> Parts:
    """A tin of beans: paper around, rolled rims, ribbed lids."""
    r, h = 0.0362, 0.108
    wall: Points = [(r + 0.0002, 0.0062), (r + 0.0002, h - 0.0062)]
    rim: Points = []
    for t in np.linspace(-0.5 * math.pi, 0.5 * math.pi, 7):
        rim.append((r + 0.0008 * math.cos(t), h - 0.0016 + 0.0016 * math.sin(t)))
    inner: Points = [
        (r - 0.0016, h - 0.0012), (r - 0.0022, h - 0.0050), (r - 0.0050, h - 0.0050),
        (r - 0.0064, h - 0.0038), (r - 0.0078, h - 0.0050), (0.62 * r, h - 0.0050),
        (0.58 * r, h - 0.0040), (0.54 * r, h - 0.0050), (0.36 * r, h - 0.0050),
        (0.32 * r, h - 0.0042), (0.28 * r, h - 0.0050), (0.0, h - 0.0050),
    ]  # fmt: skip
    top: Points = [(r, h - 0.0064), (r - 0.0006, h - 0.0050), (r, h - 0.0036), *rim, *inner]
    foot = [(x, h - z) for x, z in reversed(top)]
    metal = _metal("food_metal")
    label = look("food_label", "food_label", (0.62, 0.05, 0.03), (0.05, 0.20, 0.10),
                 (0.86, 0.79, 0.60), (0.62, 0.17, 0.03), roughness=0.5, specular=0.3)  # fmt: skip
    return (
        part(turned_skin(wall), label),
        part(turned_skin(top, 48), metal),
        part(turned_skin(foot, 48), metal),
    )


def _cap(radius: float, low: float, high: float) -> Skin:
    """A screw cap with ribs."""
    ribs, columns = 24, 96
    turn = np.linspace(0, 2 * np.pi, columns + 1)
    rib = 0.5 + 0.5 * np.cos(ribs * turn)
    rings = []
    for r, z, share in (
        (0.0, high, 0.0), (radius - 0.0028, high, 0.0), (radius - 0.0008, high - 0.0006, 0.2),
        (radius, high - 0.0020, 1.0), (radius, 0.5 * (low + high), 1.0),
        (radius, low + 0.0034, 1.0),
        (radius + 0.0003, low + 0.0030, 0.0), (radius + 0.0003, low + 0.0002, 0.0),
        (radius - 0.0015, low, 0.0),
    ):  # fmt: skip
        at = r - 0.0007 * share * rib
        rings.append(np.stack([at * np.cos(turn), at * np.sin(turn), np.full_like(turn, z)], 1))
    out = np.array(rings)
    out[:, -1] = out[:, 0]
    return grid_skin(out)


def plastic_bottle() -> Parts:
    """A full half-litre bottle of an orange soft drink: label, ribs, screw cap."""
    r, label_low, label_high = 0.033, 0.078, 0.138
    body: Points = [(0.0, 0.0045), (0.017, 0.0035), (0.0225, 0.0006), (0.0255, 0.0),
                    (0.0290, 0.0012), (0.0318, 0.0050), (r, 0.0105)]  # fmt: skip
    for k in range(5):
        z = 0.020 + 0.0105 * k
        body += [(r, z), (r - 0.0013, z + 0.0022), (r - 0.0013, z + 0.0036), (r, z + 0.0058)]
    body += [(r, label_low - 0.003), (r - 0.0014, label_low), (r - 0.0014, label_high),
             (r, label_high + 0.003)]  # fmt: skip
    for t in np.linspace(0, 1, 11)[1:]:
        # The shoulder: from upright inwards, and upright again at the neck.
        x = 0.5 - 0.5 * math.cos(math.pi * float(t) ** 1.1)
        body.append((r + (0.0132 - r) * x, label_high + 0.004 + 0.0465 * float(t)))
    body += [(0.0130, 0.1915), (0.0158, 0.1925), (0.0160, 0.1940), (0.0130, 0.1950),
             (0.0128, 0.2000), (0.0, 0.2000)]  # fmt: skip
    clear = look("bottle_drink", "drink", (0.83, 0.25, 0.012), (0.80, 0.79, 0.74),
                 (0.60, 0.12, 0.004), roughness=0.07, specular=1.0)  # fmt: skip
    label = look("bottle_label", "bottle_label", (0.84, 0.84, 0.82), (0.02, 0.09, 0.38),
                 (0.86, 0.55, 0.02), roughness=0.35, specular=0.5)  # fmt: skip
    blue = look("bottle_cap", "plain", (0.02, 0.10, 0.42), roughness=0.4, specular=0.45)
    band = turned_skin([(r - 0.0009, label_low), (r - 0.0009, label_high)])
    return (
        part(turned_skin(body, 48), clear),
        part(band, label),
        part(placed(_cap(0.0148, 0.1965, 0.215), 0, 0, 0), blue),
    )
