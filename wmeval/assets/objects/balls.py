"""Balls of sports and play: exact spheres, and the rugby ball."""

from __future__ import annotations

from wmeval.assets.models import Part
from wmeval.assets.objects.forms import around, look, part, polar
from wmeval.assets.skin import Array, ball_skin, round_skin
from wmeval.scene import Material

Parts = tuple[Part, ...]


def _ball(material: Material) -> Parts:
    return (part(ball_skin(0.5), material),)


def baseball() -> Parts:
    """White leather, red stitches."""
    return _ball(look("baseball_cover", "baseball_cover", (0.80, 0.775, 0.71), (0.55, 0.02, 0.025),
                      (0.36, 0.32, 0.27), roughness=0.6, specular=0.25))  # fmt: skip


def tennis_ball() -> Parts:
    """Yellow felt, pale seam."""
    return _ball(look("tennis_felt", "tennis_felt", (0.56, 0.71, 0.045), (0.78, 0.80, 0.66),
                      (0.34, 0.47, 0.03), roughness=0.97, specular=0.03))  # fmt: skip


def cricket_ball() -> Parts:
    """Red leather, six rows of stitches."""
    return _ball(look("cricket_leather", "cricket_leather", (0.33, 0.014, 0.018),
                      (0.76, 0.66, 0.48), (0.42, 0.10, 0.08), roughness=0.25,
                      specular=0.6))  # fmt: skip


def bouncy_ball() -> Parts:
    """Marbled rubber in bright colours."""
    return _ball(look("bouncy_rubber", "swirled_rubber", (0.03, 0.16, 0.70), (0.78, 0.05, 0.28),
                      (0.90, 0.66, 0.03), (0.06, 0.56, 0.26), roughness=0.12,
                      specular=0.75))  # fmt: skip


def rugby_ball() -> Parts:
    """Four panels, pointed ends, lying along x."""

    def shape(d: Array) -> Array:
        z, s, turn = polar(d)
        return around(0.5 * s**1.10, turn, 0.758 * z)

    cover = look("rugby_cover", "rugby_panels", (0.82, 0.82, 0.79), (0.03, 0.11, 0.40),
                 (0.62, 0.035, 0.04), (0.02, 0.03, 0.08), roughness=0.5, specular=0.3)  # fmt: skip
    return (part(round_skin(shape, axis="x"), cover),)
