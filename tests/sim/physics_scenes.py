"""Worlds for the physics tests: small closed-form set-ups and a full beam-and-domino scene."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

from wmeval.clock import SceneClock
from wmeval.scene import (
    Body,
    Box,
    Camera,
    Collision,
    Cylinder,
    Material,
    Scene,
    Sphere,
    Sun,
    Texture,
    Visual,
)
from wmeval.sim.protocol import DriverSpec, EngineConfig, EventRules, WorldSpec

DT = Fraction(1, 240)
TA = Fraction(1, 60)
STONE = Material(name="stone", texture=Texture(builder="noise", colors=((0.5, 0.5, 0.5),)))
CAMERAS = (
    Camera(name="follow", position=(0, -10, 4), target=(0, 0, 1)),
    Camera(name="static", position=(12, -12, 8), target=(0, 0, 1)),
)


def body(
    name: str, shape: Any, *, role: str = "thing", motion: str = "dynamic", **fields: Any
) -> Body:
    shapes = shape if isinstance(shape, tuple) else (Collision(shape=shape),)
    return Body(
        name=name,
        role=role,
        motion=motion,  # type: ignore[arg-type]
        instance=0,
        collision=shapes,
        visuals=tuple(Visual(shape=c.shape, material="stone") for c in shapes),
        **{"mass": 1.0 if motion == "dynamic" else 0.0, **fields},
    )


def floor(**fields: Any) -> Body:
    return body(
        "floor",
        Box(half_extents=(50, 50, 0.5)),
        role="floor",
        motion="static",
        position=(0, 0, -0.5),
        **fields,
    )


def world_spec(
    *bodies: Body,
    gravity: tuple[float, float, float] = (0.0, 0.0, -9.81),
    drivers: tuple[DriverSpec, ...] = (),
    dt: Fraction = DT,
    rules: EventRules | None = None,
    iterations: int = 50,
    restitution_threshold: float = 0.2,
    **options: float,
) -> WorldSpec:
    scene = Scene(
        name="test",
        gravity=gravity,
        bodies=bodies,
        materials=(STONE,),
        cameras=CAMERAS,
        sun=Sun(direction=(0.3, 0.4, -0.8660254)),
    )
    return WorldSpec(
        scene,
        {},
        drivers,
        SceneClock(dt, TA),
        rules or EventRules(),
        config=EngineConfig(
            iterations=iterations,
            restitution_threshold=restitution_threshold,
            options=dict(options),
        ),
    )


LEGS = ((0.0, 0.0), (-1.9483, -0.081), (-1.3144, -1.4404))
LEG_NAMES = ("leg_0", "leg_1", "leg_2")
BEAM_RULES = EventRules(
    chain="beam_domino",
    contact_roles=(("player", "leg"), ("player", "domino"), ("roof_ball", "domino")),
)


def yaw(degrees: float) -> tuple[float, float, float, float]:
    half = math.radians(degrees) / 2
    return (math.cos(half), 0.0, 0.0, math.sin(half))


def beam_domino(
    x0: float,
    *,
    dt: Fraction = DT,
    without: tuple[str, ...] = (),
    pinned: bool = False,
    iterations: int = 50,
) -> WorldSpec:
    """The verified layout: 80 N drives a 12 kg ball from (x0, -6) along +y."""
    bodies = [
        body(
            "floor",
            Box(half_extents=(30, 30, 0.5)),
            role="floor",
            motion="static",
            position=(0, 0, -0.5),
            friction=1.0,
            restitution=0.1,
        ),
        body(
            "ball",
            Sphere(radius=0.5),
            role="player",
            position=(x0, -6.0, 0.5),
            mass=12.0,
            friction=0.7,
            restitution=0.1,
            rolling_friction=0.003,
        ),
    ]
    for name, (x, y) in zip(LEG_NAMES, LEGS, strict=True):
        bodies.append(
            body(
                name,
                Cylinder(radius=0.25, height=1.8),
                role="leg",
                motion="kinematic",
                position=(x, y, 0.9),
                mass=4.0,
                friction=0.2,
            )
        )
    bodies.append(
        body(
            "slab",
            Box(half_extents=(1.25, 1.1, 0.08)),
            role="slab",
            motion="kinematic",
            position=(-0.725, -0.3381, 1.88),
            quaternion_wxyz=yaw(25),
            mass=15.0,
            friction=0.3,
        )
    )
    bodies.append(
        body(
            "roof_ball",
            Sphere(radius=0.35),
            role="roof_ball",
            position=(-0.0906, -0.0423, 2.31),
            mass=5.0,
            friction=0.3,
            restitution=0.1,
            rolling_friction=0.005,
        )
    )
    x, y, heading = 1.45, 0.5, 45.0
    for i in range(20):
        bodies.append(
            body(
                f"domino_{i:02d}",
                Box(half_extents=(0.04, 0.45, 0.25)),
                role="domino",
                position=(x, y, 0.25),
                quaternion_wxyz=yaw(heading),
                friction=0.6,
            )
        )
        heading -= 2.5
        # The next domino stands one spacing on, along the mean of the two headings.
        along = math.radians(heading + 1.25)
        x, y = x + 0.44 * math.cos(along), y + 0.44 * math.sin(along)
    bodies.append(
        body(
            "wall",
            Box(half_extents=(12, 0.2, 0.4)),
            role="wall",
            motion="static",
            position=(0, 6, 0.4),
            friction=0.5,
        )
    )
    released = LEG_NAMES if pinned else (*LEG_NAMES, "slab")
    drivers = (
        DriverSpec(
            kind="force",
            params={
                "body": "ball",
                "axes": [[0, 1, 0], [1, 0, 0]],
                "newtons": 80.0,
                "max_speed": 20.0,
            },
        ),
        DriverSpec(
            kind="release",
            params={
                "striker": "ball",
                "struck": list(LEG_NAMES),
                "released": list(released),
                "impulse": 76.0,
            },
        ),
        DriverSpec(
            kind="follow_camera",
            params={"camera": "follow", "body": "ball", "offset": [0, -12, 6], "mode": "smooth"},
        ),
    )
    return world_spec(
        *(b for b in bodies if b.name not in without),
        drivers=drivers,
        dt=dt,
        rules=BEAM_RULES,
        iterations=iterations,
    )


def drive(world: Any, *, seconds: float = 8.0, until_force: float = 3.0, probe: Any = None) -> list:
    """Reset, then hold full forward force for ``until_force`` seconds; all logs."""
    from wmeval.sim.protocol import Probe

    probe = probe or Probe(states="substeps", contacts=True)
    logs = [world.reset()]
    per = world.spec.clock.substeps
    for i in range(round(seconds / TA)):
        action = (1.0, 0.0) if i * TA < until_force else (0.0, 0.0)
        logs.append(world.advance(action, (i + 1) * per, probe))
    return logs
