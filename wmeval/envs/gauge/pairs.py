"""Friction and restitution of GAUGE's pairs, as values of bodies whose products they are.

What was measured is a pair's value, stated with the object that moves. A body that moves among
fixed ones has that value and they have 1. Among bodies of one kind (the cradle's balls, bricks)
each has the square root, and what they stand on and are struck by has it too: no value of the ball
against a brick was measured, so the bricks' is taken.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from wmeval.assets.gauge_cards import Family, Properties

FIXED = 1.0


@dataclass(frozen=True)
class Surface:
    """Friction and restitution of a body; a pair's are the products."""

    friction: float
    restitution: float


def surfaces(card: Family, properties: dict[str, Properties]) -> dict[str, Surface]:
    """Values of every body, and of the ground under the name ``ground``.

    Args:
        card: the family.
        properties: of the bodies of a set-up.
    """
    fixed = Surface(FIXED, FIXED)
    if "wall" in properties:
        return dict.fromkeys((*card.bodies, "ground"), _root(properties["wall"]))
    if "rope" in properties:
        # Rope on beam is what counts; no rule but the product would give the balls another value.
        rope, ball = properties["rope"].number("friction"), properties["ball_1"]
        every = Surface(math.sqrt(rope), math.sqrt(ball.number("restitution")))
        return dict.fromkeys((*card.bodies, "ground"), every)
    if card.id == "newtons_cradle":
        return {"ground": fixed, **{name: _root(properties[name]) for name in properties}}
    if card.id == "tablecloth_pulling":
        # Cloth on table, cube on cloth, and the cube on the table as on the cloth.
        cloth = math.sqrt(properties["textile"].number("friction"))
        cube = Surface(
            properties["cube"].number("friction") / cloth, properties["cube"].restitution or 0.0
        )
        return {
            "textile": Surface(cloth, FIXED),
            "table": Surface(cloth, FIXED),
            "cube": cube,
            "rod": fixed,
            "ground": fixed,
        }
    out = {"ground": fixed}
    for name, body in card.bodies.items():
        moves = body.motion in ("dynamic", "clamped")
        own = properties.get(name, Properties())
        out[name] = Surface(own.friction or 0.0, own.restitution or 0.0) if moves else fixed
    return out


def _root(own: Properties) -> Surface:
    return Surface(math.sqrt(own.number("friction")), math.sqrt(own.number("restitution")))
