"""Whether a rope hangs over its beam when a record begins.

A set-up that settles before its record may have come apart by then, unseen: what is measured of it
from its first frame on says nothing. How high the balls under a rope hang is a closed form.
"""

from __future__ import annotations

import math

from wmeval.assets.gauge_cards import GRAVITY
from wmeval.eval.truths.flexible import hanging_strain
from wmeval.records import StateLog
from wmeval.scene import Body, Cylinder, Rope, Scene, Sphere

NEAR = 0.01
"""By how much they may hang off the closed form [m] (ours): they swing a little, still."""


def hanging_heights(scene: Scene) -> tuple[list[str], float, float] | None:
    """Between which heights the middle of both balls under a rope's ends is at rest [m].

    The balls, of mass m, stretch their strands by m g / E A, and the strands themselves by half
    their weight over E A. The length about the beam, half a turn, is stretched as much if nothing
    rubs on it, and not at all at most: with friction it may keep any tension below the strands'.
    Of either ball alone nothing is said: as they weigh the same, the rope may lie anywhere along
    itself on the beam.

    Returns:
        The balls' names, the least and the greatest height; None if no rope hangs over a beam here.
    """
    beam = next((b for b in scene.bodies if b.name == "beam"), None)
    rope = next((d for d in scene.deformables if isinstance(d, Rope)), None)
    if beam is None or rope is None or not beam.collision:
        return None
    balls = [pin.body for pin in rope.pins if pin.body]
    ends = [scene.bodies[scene.index(ball)] for ball in balls]
    about = beam.collision[0].shape
    if len(ends) != 2 or not isinstance(about, Cylinder):
        return None
    length = sum(math.dist(a, b) for a, b in zip(rope.points, rope.points[1:], strict=False))
    turn = math.pi * (about.radius + rope.radius)
    weight = rope.density * math.pi * rope.radius**2 * GRAVITY
    mean = sum(b.mass for b in ends) / 2
    stretch = 1 + mean * GRAVITY / rope.stretch
    stretch += hanging_strain(length / 2, weight, rope.stretch)
    below = beam.position[2] - sum(_radius(b) for b in ends) / 2
    return balls, below - (length * stretch - turn) / 2, below - (length - turn) * stretch / 2


def _radius(ball: Body) -> float:
    shape = ball.collision[0].shape
    return shape.radius if isinstance(shape, Sphere) else 0.0


def fallen(scene: Scene, state: StateLog) -> str:
    """What is wrong with a rope's balls in the first row of some states; "" if they hang.

    Args:
        scene: as it was built.
        state: from where the record begins.
    """
    hung = hanging_heights(scene)
    if hung is None:
        return ""
    balls, low, high = hung
    z = [float(state.position[0, state.body(ball), 2]) for ball in balls]
    if low - NEAR <= sum(z) / len(z) <= high + NEAR:
        return ""
    return (
        "the rope does not hang over its beam as the record begins: its balls are at "
        f"{' and '.join(f'{1e3 * x:.0f}' for x in z)} mm, at rest their middle hangs at "
        f"{1e3 * low:.0f} to {1e3 * high:.0f}"
    )


__all__ = ["NEAR", "fallen", "hanging_heights"]
