"""What is outside the windows: skies and panoramas that settings share."""

from __future__ import annotations

from typing import Any

from wmeval.scene import Sky, Texture

_LEAVES = ((0.075, 0.115, 0.06), (0.20, 0.265, 0.13))
PARK = Texture(builder="park", colors=((0.27, 0.315, 0.16), *_LEAVES), repeat=2.0, seed=5)
CITY = Texture(
    builder="city",
    colors=((0.40, 0.41, 0.42), (0.50, 0.42, 0.35), (0.13, 0.16, 0.19), (0.12, 0.18, 0.08)),
    repeat=2.0,
    seed=2,
)
COAST = Texture(
    builder="coast",
    colors=((0.08, 0.24, 0.31), (0.66, 0.55, 0.38), (0.27, 0.22, 0.17), (0.08, 0.13, 0.05)),
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
BRIGHT_GARDEN = GARDEN.model_copy(update={"strength": 1.35})
"""For rooms of dark walls, which send less light about: their pictures are exposed longer."""
