"""What is outside the windows: skies and panoramas that settings share."""

from __future__ import annotations

from typing import Any

from wmeval.scene import Sky, Texture

_LEAVES = ((0.03, 0.08, 0.025), (0.09, 0.17, 0.05))
PARK = Texture(builder="park", colors=((0.11, 0.20, 0.05), *_LEAVES), repeat=2.0, seed=5)
CITY = Texture(
    builder="city",
    colors=((0.26, 0.27, 0.29), (0.36, 0.30, 0.25), (0.07, 0.09, 0.11), (0.06, 0.12, 0.04)),
    repeat=2.0,
    seed=2,
)
COAST = Texture(
    builder="coast",
    colors=((0.05, 0.17, 0.23), (0.56, 0.45, 0.29), (0.20, 0.15, 0.11), (0.05, 0.09, 0.03)),
    repeat=2.0,
    seed=4,
)
DAY: dict[str, Any] = {
    "zenith": (0.60, 0.62, 0.65),
    "horizon": (0.82, 0.82, 0.81),
    "ground": (0.40, 0.38, 0.35),
}
"""Colours of a bright day within doors, where walls send light about."""
GARDEN = Sky(**DAY, clouds=0.25, panorama=PARK)
