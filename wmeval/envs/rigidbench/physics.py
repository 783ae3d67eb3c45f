"""How a sample is simulated: the table of physics modes (RigidBench, section A.4, Table 7)."""

from __future__ import annotations

from dataclasses import dataclass, field

from wmeval.errors import UserError
from wmeval.sim.protocol import EngineConfig

SUBSTEPS, FPS, FRAMES = 30, 24, 49
"""Substeps a frame; frames a second; frames a clip."""


@dataclass(frozen=True)
class Physics:
    """A physics mode.

    Attributes:
        name: as metadata records it.
        engine: row of `wmeval.sim.engines.ENGINES`.
        summary: one line.
        config: of the engine.
        exact_balls: what is a ball collides as one; else as its hull, like everything.
        linear_damping, angular_damping: share of velocity that active bodies lose per second.
        passive_friction, passive_restitution: of supports and ramps, unless a task says otherwise.
    """

    name: str
    engine: str
    summary: str
    config: EngineConfig = field(default_factory=lambda: EngineConfig(iterations=20))
    exact_balls: bool = False
    linear_damping: float = 0.1
    angular_damping: float = 0.5
    passive_friction: float = 0.4
    passive_restitution: float = 0.3


PHYSICS: dict[str, Physics] = {
    row.name: row
    for row in (
        Physics(
            name="bullet",
            engine="bullet",
            summary="Bullet; restitution as its coefficients say, at whatever phase the impact "
            "falls; balls roll as balls",
            # A contact acts only once there is one, and penetration is undone without velocity.
            config=EngineConfig(
                iterations=20, options={"maximal_coordinates": 1, "split_impulse": 1}
            ),
            exact_balls=True,
        ),
        Physics(
            name="bullet-faithful",
            engine="bullet",
            summary="Bullet with the solver defaults that the published clips were made with: "
            "speculative contacts, so that a bounce depends on the phase of its impact",
            # Bullet's own defaults where PyBullet has changed them.
            config=EngineConfig(
                iterations=20,
                options={
                    "maximal_coordinates": 1,
                    "contact_processing_threshold": 1.0,
                    "contact_erp": 0.2,
                    "friction_erp": 0.2,
                    "contact_slop": 0.0,
                },
            ),
        ),
        Physics(
            name="blender",
            engine="blender",
            summary="Blender's own rigid bodies",
        ),
    )
}


def physics_mode(name: str) -> Physics:
    """A row of `PHYSICS`.

    Raises:
        UserError: no such row; the message names the known ones.
    """
    if name not in PHYSICS:
        raise UserError(f"unknown physics {name!r}: choose from {', '.join(PHYSICS)}")
    return PHYSICS[name]
