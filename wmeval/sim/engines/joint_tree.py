"""Bodies as trees of joints, for engines that keep joint coordinates."""

from __future__ import annotations

from dataclasses import dataclass

from wmeval.errors import UserError
from wmeval.scene import Joint, Scene


@dataclass(frozen=True)
class JointTree:
    """Every body that collides, and how it hangs.

    Attributes:
        order: scene indices, what a body hangs on first.
        held: the joint that holds a body; none for free ones.
    """

    order: tuple[int, ...]
    held: dict[int, Joint]


def joint_tree(scene: Scene, engine: str) -> JointTree:
    """Sort the bodies of a scene by what they hang on.

    Args:
        scene: the world.
        engine: what messages call it.

    Raises:
        UserError: joints that close a loop.
    """
    held: dict[int, Joint] = {}
    for joint in scene.joints:
        i = scene.index(joint.body)
        if i in held:
            raise UserError(
                f"joints {held[i].name!r} and {joint.name!r} both hold {joint.body!r}: engine "
                f"{engine} has no loops; name the other body first in one of them"
            )
        held[i] = joint
    order: list[int] = []

    def visit(i: int, seen: tuple[int, ...]) -> None:
        if i in seen:
            raise UserError(f"joint {held[i].name!r} closes a loop: engine {engine} has none")
        if i in order:
            return
        joint = held.get(i)
        if joint is not None and joint.other:
            visit(scene.index(joint.other), (*seen, i))
        order.append(i)

    for i, body in enumerate(scene.bodies):
        if body.collision and body.active:
            visit(i, ())
    return JointTree(tuple(order), held)
