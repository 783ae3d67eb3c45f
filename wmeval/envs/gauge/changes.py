"""Which numbers of a card others may take the place of: those that a scene is made of."""

from __future__ import annotations

from collections.abc import Mapping

from pydantic import BaseModel, ValidationError

from wmeval.assets.gauge_cards import Bricks, Family, Properties, Rope, Sheet
from wmeval.envs.gauge.build import ROPE_ENDS, foam_of
from wmeval.errors import UserError, first_problem

_RIGID = ("mass", "friction", "restitution")
_SOFT = ("density", "friction", "young", "poisson")
_CLOTH = (
    "areal_density", "friction", "thickness", "stretch_stiffness", "shear_stiffness",
    "bend_stiffness",
)  # fmt: skip
_ROPE = ("density", "friction", "axial_stiffness")


def taken(card: Family, name: str) -> tuple[str, ...]:
    """Numbers of a body that a scene depends on; none of what is fixed or led.

    Others that a card states (as a density beside a mass) say what was measured, and no more.

    Args:
        card: the family.
        name: of the body.
    """
    body = card.bodies[name]
    if isinstance(body.shape, Sheet):
        return _CLOTH
    if isinstance(body.shape, Rope):
        return _ROPE
    if name in foam_of(card) or (card.id == "stick_stack" and name == "rod"):
        return _SOFT
    if body.motion != "dynamic":
        return ()
    # What meets a wall or hangs on a rope has its friction (`wmeval.envs.gauge.pairs`).
    if "rope" in card.bodies:
        return ("mass", "restitution") if name == ROPE_ENDS[0] else ("mass",)
    if any(isinstance(b.shape, Bricks) for b in card.bodies.values()):
        return _RIGID if isinstance(body.shape, Bricks) else ("mass",)
    return _RIGID


def check_changes(card: Family, changes: Mapping[str, Mapping[str, float]]) -> None:
    """Refuse numbers that would change nothing, or that are none.

    Args:
        card: the family.
        changes: numbers by body.

    Raises:
        UserError: no such body, one that takes no such number, or a number out of its range.
    """
    check_numbers(card.id, {n: taken(card, n) for n in card.bodies}, changes, Properties)


def check_numbers(
    family: str, takes: Mapping[str, tuple[str, ...]],
    changes: Mapping[str, Mapping[str, float]], ranges: type[BaseModel],
) -> None:  # fmt: skip
    """`check_changes` of any bodies.

    Args:
        family: id of whose they are.
        takes: names of the numbers that each body takes.
        changes: numbers by body.
        ranges: a card that has these numbers.

    Raises:
        UserError: as `check_changes`.
    """
    some = ", ".join(name for name, numbers in takes.items() if numbers)
    for name, numbers in changes.items():
        if name not in takes:
            raise UserError(f"{family} has no body {name!r}: choose from {some}")
        if not takes[name]:
            raise UserError(
                f"nothing depends on numbers of {family}'s {name}, which is fixed or led: choose "
                f"from {some}"
            )
        for number in numbers:
            if number not in takes[name]:
                raise UserError(
                    f"{family}'s {name} takes no {number!r}: choose from {', '.join(takes[name])}"
                )
        try:
            ranges.model_validate(dict(numbers))
        except ValidationError as error:
            raise UserError(f"{family}'s {name}: {first_problem(error)}") from error
