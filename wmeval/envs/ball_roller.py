"""BallRoller: a driven white ball, fifteen coloured balls and three obstacles within walls."""

from __future__ import annotations

import colorsys
import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.meshes import wedge
from wmeval.envs.base import Composition, EnvOptions, Observation, WorldEnv
from wmeval.envs.parts import ball, ball_drivers, block, material, unit, yaw
from wmeval.envs.rewards import Displaced
from wmeval.scene import (
    Body,
    Camera,
    Collision,
    Color,
    Mesh,
    Meshes,
    Scene,
    Sky,
    Sphere,
    Sun,
    Vec3,
    Visual,
)
from wmeval.sim.protocol import EngineConfig, EventRules, StateView

PUSH_N = 2.0
MAX_SPEED_MPS = 10.0
HALF_ARENA_M = 8.0
PLAYER_RADIUS, PLAYER_MASS = 0.5, 1.0
PLAYER_START: Vec3 = (-1.2, -1.2, PLAYER_RADIUS)
BALLS, BALL_RADIUS, BALL_MASS = 15, 0.3, 0.25
CLUSTER_XY, CLUSTER_SPACING, CLUSTER_JITTER = (2.4, 2.3), 0.92, 0.2
APART_M = 2 * BALL_RADIUS + 0.04
CAMERA_OFFSET: Vec3 = (-4.4, -7.2, 6.0)
CAMERA_LOOK_AT: Vec3 = (1.1, 1.8, -0.4)
DISPLACED_M = 0.25

_RAMP = wedge(3.2, 2.4, 0.9)
_RAMP_HASH = _RAMP.content_hash()
_WALL_HEIGHT, _WALL_THICK = 0.5, 0.3
_DOME_RADIUS, _DOME_SUNK = 1.6, 0.6


class BallRoller(WorldEnv):
    """A white ball is pushed around a walled square and knocks other balls away.

    ## Description

    A square arena of 16 m x 16 m with a blue-gray floor and low white walls holds a yellow ramp, a
    magenta dome, a cyan cube and a cluster of 15 coloured balls. The player pushes a white ball;
    passive balls that it strikes roll away, and strike others. Velocities are not observed: whoever
    predicts must infer them (paper, Appendix "Unity Scenes", BallRoller).

    ## Action space

    `Box(-1, 1, (2,), float32)`: a force on the player's centre, world-fixed, held for one control
    period. It acts while the player's horizontal speed is below 10 m/s.

    | index | name | meaning | at -1 | at +1 |
    |---|---|---|---|---|
    | 0 | `force_x` | rightward force, Unity +x | -2 N | +2 N |
    | 1 | `force_z` | forward force, Unity +z | -2 N | +2 N |

    ## Observation space

    `Box(-200, 200, (48,), float32)` [m] in Unity's frame (left-handed, x right, y up, z forward),
    relative to the arena's centre on the floor.

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | player position | m | +-200 |
    | 3 + 3 i ... 5 + 3 i | passive ball i (0 to 14): position | m | +-200 |

    ## Rewards

    0.0, unless `reward="balls_displaced"`: the fraction of passive balls that in this step first
    were more than 0.25 m from where they started, so that an episode's sum is the fraction moved.

    ## Starting state

    Everything is at rest. The player is at (-1.2, -1.2) m; straight ways of 6 m in the four
    directions are free. The seed moves each passive ball by up to 20 cm along x and y from its
    place in a cluster around (2.4, 2.3) m; balls never overlap.

    ## Episode end

    Terminated when the player's centre lies below z = -2 m (it left the ground); truncated after
    `max_steps` (600: 10 s at 60 Hz).

    ## Arguments

    See `WorldEnv`. dt 1/240 s, control period 1/60 s.

    ## Reset options

    `view`, `camera`, `camera_motion`, `seed_space`: see `WorldEnv.reset`. Views: `follow` (a fixed
    offset from the player, looking diagonally into the arena), `static` (the whole arena), `top`.

    ## Physical parameters

    The paper gives none; these are ours. Player 1 kg, r 0.5 m; balls 0.25 kg, r 0.3 m. Friction of
    a ball 0.6, of floor, walls and obstacles 1; restitution of a ball 0.9, of the floor 0.5, of
    walls and obstacles 0.8; a pair's value is the product. Rolling resistance 2 mm. A push of 2 N
    rolls the player at 1.43 m/s2.

    ## Version history

    * v0: initial version.
    """

    ID = "WMEval/BallRoller-v0"
    PLAYER = "player"
    REWARDS = {"balls_displaced": "fraction of balls first moved by 0.25 m"}  # noqa: RUF012
    _MEMORY = ("_displaced",)

    def __init__(self, **common: Unpack[EnvOptions]) -> None:
        super().__init__(**common)

    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        high = np.full(48, 200.0, np.float32)
        return -high, high

    def _compose(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Composition:
        return compose(rng)

    def _begin(self, scene: Scene) -> None:
        self._player, self._balls = scene.index(self.PLAYER), scene.indices("ball")
        start = np.array([scene.bodies[i].position for i in self._balls])
        self._displaced = Displaced(start, DISPLACED_M)

    def _observe(self, now: StateView) -> Observation:
        out: list[float] = []
        for body in (self._player, *self._balls):
            x, y, z = now.pose(body)[0]
            out += (x, z, y)
        if self.reward is not None:
            self._displaced.feed(np.array([now.pose(i)[0] for i in self._balls]))
        return np.array(out, np.float32)

    def _reward(self, name: str) -> float:
        return self._displaced.newly


def cluster(rng: np.random.Generator) -> list[tuple[float, float]]:
    """Places (x, y) [m] of the passive balls, scattered about a loose hexagonal cluster."""
    rows = (4, 4, 4, 3)
    places: list[tuple[float, float]] = []
    for r, count in enumerate(rows):
        for k in range(count):
            x = CLUSTER_XY[0] + (k - 1.5 + 0.5 * (r % 2)) * CLUSTER_SPACING
            y = CLUSTER_XY[1] + (r - 1.5) * CLUSTER_SPACING * math.sqrt(3) / 2
            while True:
                dx, dy = rng.uniform(-CLUSTER_JITTER, CLUSTER_JITTER, 2).tolist()
                if all(math.hypot(x + dx - a, y + dy - b) > APART_M for a, b in places):
                    break
            places.append((x + dx, y + dy))
    return places


def compose(rng: np.random.Generator) -> Composition:
    """The world for one draw of the cluster."""
    half, high, thick = HALF_ARENA_M, _WALL_HEIGHT / 2, _WALL_THICK / 2
    edge = half + thick
    hard = {"friction": 1.0, "restitution": 0.8}
    walls: dict[str, tuple[Vec3, Vec3]] = {
        "wall_front": ((0.0, edge, high), (edge + thick, thick, high)),
        "wall_back": ((0.0, -edge, high), (edge + thick, thick, high)),
        "wall_left": ((-edge, 0.0, high), (thick, half, high)),
        "wall_right": ((edge, 0.0, high), (thick, half, high)),
    }
    ramp = Mesh(sha256=_RAMP_HASH)
    dome = Sphere(radius=_DOME_RADIUS)
    bodies = [
        block("ground", "ground", 1, material="ground", half=(60.0, 60.0, 0.5),
              position=(0.0, 0.0, -0.52), friction=1.0, restitution=0.5),
        block("floor", "floor", 2, material="floor", half=(half, half, 0.25),
              position=(0.0, 0.0, -0.25), friction=1.0, restitution=0.5),
        *(
            block(name, "wall", 3 + i, material="wall", half=extent, bevel=0.04, position=center,
                  **hard)
            for i, (name, (center, extent)) in enumerate(walls.items())
        ),
        Body(
            name="ramp", role="obstacle", motion="static", instance=7,
            collision=(Collision(shape=ramp),), visuals=(Visual(shape=ramp, material="ramp"),),
            position=(-4.9, 3.1, 0.3), quaternion_wxyz=yaw(65.0), **hard,
        ),
        Body(
            name="dome", role="obstacle", motion="static", instance=8,
            collision=(Collision(shape=dome),), visuals=(Visual(shape=dome, material="dome"),),
            position=(5.4, -4.2, -_DOME_SUNK), **hard,
        ),
        block("cube", "obstacle", 9, material="cube", half=(0.75, 0.75, 0.75), bevel=0.05,
              position=(0.7, 6.2, 0.75), quaternion_wxyz=yaw(20.0), **hard),
        ball("player", "player", 10, material="player", radius=PLAYER_RADIUS, mass=PLAYER_MASS,
             position=PLAYER_START, **_BALL),
        *(
            ball(f"ball_{i:02d}", "ball", 11 + i, material=f"ball_{i:02d}", radius=BALL_RADIUS,
                 mass=BALL_MASS, position=(x, y, BALL_RADIUS), **_BALL)
            for i, (x, y) in enumerate(cluster(rng))
        ),
    ]  # fmt: skip
    eye = tuple(p + o for p, o in zip(PLAYER_START, CAMERA_OFFSET, strict=True))
    seen = tuple(p + o for p, o in zip(PLAYER_START, CAMERA_LOOK_AT, strict=True))
    scene = Scene(
        name="BallRoller",
        bodies=tuple(bodies),
        materials=_MATERIALS,
        cameras=(
            Camera(name="follow", position=eye, target=seen, fov_y_deg=48.0),
            Camera(name="static", position=(-7.5, -17.0, 14.0), target=(-0.5, -1.7, 0.0),
                   fov_y_deg=44.0),
            Camera(name="top", position=(0.0, -0.01, 24.0), target=(0.0, 0.0, 0.0),
                   fov_y_deg=42.0),
        ),
        sun=Sun(direction=unit((0.55, 0.25, -0.9)), strength=2.6),
        sky=Sky(),
    )  # fmt: skip
    drivers = ball_drivers(
        newtons=PUSH_N,
        max_speed=MAX_SPEED_MPS,
        offset=CAMERA_OFFSET,
        look_at=CAMERA_LOOK_AT,
    )
    rules = EventRules(
        contact_roles=(
            ("player", "ball"), ("ball", "ball"), ("player", "wall"), ("player", "obstacle"),
            ("ball", "wall"), ("ball", "obstacle"),
        )
    )  # fmt: skip
    meshes: Meshes = {_RAMP_HASH: _RAMP}
    return Composition(scene, drivers, rules, meshes, EngineConfig(restitution_threshold=0.1))


# --- parts --------------------------------------------------------------------------------------

_BALL: dict[str, Any] = {"friction": 0.6, "restitution": 0.9, "rolling_friction": 0.002}


def _hue(i: int) -> tuple[Color, Color]:
    # Fifteen hues apart; every third is darker, so that neighbours on the wheel differ.
    value = (0.85, 0.6, 0.38)[i % 3]
    r, g, b = colorsys.hsv_to_rgb(i / BALLS, 0.92, value)
    return (r**2.2, g**2.2, b**2.2), (0.75, 0.73, 0.68)


_MATERIALS = (
    material("ground", "concrete", (0.34, 0.33, 0.31), (0.26, 0.25, 0.24),
             uv_m=6.0, roughness=0.95, specular=0.05),
    material("floor", "tiles", (0.17, 0.25, 0.34), (0.10, 0.15, 0.22),
             uv_m=4.0, roughness=0.5, specular=0.3),
    material("wall", "concrete", (0.82, 0.82, 0.80), (0.66, 0.66, 0.66),
             uv_m=2.0, roughness=0.8, specular=0.1),
    material("ramp", "planks", (0.86, 0.60, 0.03), (0.62, 0.38, 0.02),
             uv_m=1.6, roughness=0.5, specular=0.3),
    material("dome", "marble", (0.58, 0.02, 0.38), (0.85, 0.25, 0.66),
             uv_m=2.0, roughness=0.25, specular=0.5),
    material("cube", "speckle", (0.02, 0.58, 0.66), (0.35, 0.82, 0.86), (0.01, 0.30, 0.40),
             uv_m=1.0, roughness=0.35, specular=0.4),
    material("player", "ball_panels", (0.88, 0.88, 0.86), (0.52, 0.57, 0.66), (0.05, 0.12, 0.30),
             roughness=0.2, specular=0.6),
    *(
        material(f"ball_{i:02d}", "ball_panels", *_hue(i), seed=i, roughness=0.25, specular=0.6)
        for i in range(BALLS)
    ),
)  # fmt: skip
