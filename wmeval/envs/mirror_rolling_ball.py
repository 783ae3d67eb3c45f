"""MirrorRollingBall: a chrome ball on open ground in a field of glossy yellow balls."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.envs.base import Composition, EnvOptions, Observation, WorldEnv
from wmeval.envs.parts import ball, ball_drivers, block, material, unit
from wmeval.envs.rewards import Displaced
from wmeval.errors import UserError
from wmeval.scene import Camera, Scene, Sky, Sun, Vec3
from wmeval.sim.protocol import DriverSpec, EngineConfig, EventRules, StateView
from wmeval.vectors import plus

PUSH_N = 2.0
MAX_SPEED_MPS = 10.0
PLAYER_RADIUS, PLAYER_MASS = 0.5, 1.0
PLAYER_START: Vec3 = (0.0, 0.0, PLAYER_RADIUS)
SLOTS, BALL_RADIUS, BALL_MASS = 48, 0.7, 1.5
BALL_COUNTS = (10, 20, 30, 48)
ANCHORS_XY = ((-2.0, 4.5), (2.0, 4.5))
"""Two foreground balls 4.0 m apart, the pair whose distance is judged (paper, Appendix D)."""
GAP_M = 0.35
FREE_WAY_M, FREE_LENGTH_M = 1.4, 9.0
FREE_AROUND_PLAYER_M = 3.0
FIELD_NEAR_M, FIELD_FAR_M = 6.5, 16.0
CAMERA_OFFSET: Vec3 = (0.0, -6.2, 2.9)
CAMERA_LOOK_AT: Vec3 = (0.0, 2.4, 0.3)
EYE_OFFSET: Vec3 = (0.0, 0.0, 0.8)
EYE_LOOK_AT: Vec3 = (0.0, 6.0, 0.35)
"""Of the first-person view: just over the ball, which it does not see."""
DISPLACED_M = 0.25


class MirrorRollingBall(WorldEnv):
    """A chrome ball is pushed over open ground among large yellow balls.

    ## Description

    A mirror-like ball rolls on flat open ground under a bright sun, in a field of up to 48 large
    glossy yellow balls. It reflects ground, sky and balls; everything casts a shadow. All positions
    and velocities are observed (paper, Appendix "Unity Scenes", MirrorRollingBall).

    ## Action space

    `Box(-1, 1, (2,), float32)`: a force on the player's centre, world-fixed, held for one control
    period. It acts while the player's horizontal speed is below 10 m/s.

    | index | name | meaning | at -1 | at +1 |
    |---|---|---|---|---|
    | 0 | `force_x` | rightward force, Unity +x | -2 N | +2 N |
    | 1 | `force_z` | forward force, Unity +z | -2 N | +2 N |

    ## Observation space

    `Box((297,), float32)` in Unity's frame (left-handed, x right, y up, z forward), origin on the
    ground where the player starts. Slots of balls that the scene does not have are zero.

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | player position | m | +-200 |
    | 3-5 | player linear velocity | m/s | +-100 |
    | 6-8 | player angular velocity | rad/s | +-400 |
    | 9 + 6 i ... 11 + 6 i | yellow ball i (0 to 47): position | m | +-200 |
    | 12 + 6 i ... 14 + 6 i | yellow ball i: linear velocity | m/s | +-100 |

    ## Rewards

    0.0, unless `reward="balls_displaced"`: the fraction of yellow balls that in this step first
    were more than 0.25 m from where they started.

    ## Starting state

    Everything is at rest, the player at the origin. Balls 0 and 1 always lie at (-2, 4.5) and
    (2, 4.5) m, 4.0 m apart. The seed places the others, at least 0.35 m from each other, out of the
    four straight ways (2.8 m wide, 9 m long) and 3 m from the player. A scene with fewer balls is
    the beginning of the scene with more: ball i lies in the same place for every `ball_count`.

    ## Episode end

    Terminated when the player's centre lies below z = -2 m (it left the 160 m x 160 m ground);
    truncated after `max_steps` (600: 10 s at 60 Hz).

    ## Arguments

    `ball_count`: 10, 20, 30 or 48 (default). Else see `WorldEnv`. dt 1/240 s, control period
    1/60 s.

    ## Reset options

    `view`, `camera`, `camera_motion`, `seed_space`: see `WorldEnv.reset`. Views: `follow` (a fixed
    offset behind and above the player), `static` (the field), `top`, `first` (from the player,
    forward).

    ## Physical parameters

    The paper gives none; these are ours. Player 1 kg, r 0.5 m; yellow balls 1.5 kg, r 0.7 m;
    friction of a ball 0.6, of the ground 1; restitution 0.9 of a ball (0.81 a pair), 0.5 of the
    ground; rolling resistance 2 mm. A push of 2 N rolls the player at 1.43 m/s2.

    ## Version history

    * v0: initial version.
    """

    ID = "WMEval/MirrorRollingBall-v0"
    PLAYER = "player"
    REWARDS = {"balls_displaced": "fraction of balls first moved by 0.25 m"}  # noqa: RUF012
    _MEMORY = ("_displaced",)

    def __init__(self, *, ball_count: int = SLOTS, **common: Unpack[EnvOptions]) -> None:
        if ball_count not in BALL_COUNTS or isinstance(ball_count, bool):
            choices = ", ".join(map(str, BALL_COUNTS))
            raise UserError(f"{self.ID}: ball_count = {ball_count!r}: choose from {choices}")
        self.ball_count = int(ball_count)
        super().__init__(**common)

    def _settings(self) -> dict[str, JsonValue]:
        return {"ball_count": self.ball_count}

    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        position, linear, angular = [200.0] * 3, [100.0] * 3, [400.0] * 3
        high = position + linear + angular + (position + linear) * SLOTS
        return -np.array(high, np.float32), np.array(high, np.float32)

    def _compose(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Composition:
        return compose(field(rng)[: self.ball_count])

    def _begin(self, scene: Scene) -> None:
        self._player, self._balls = scene.index(self.PLAYER), scene.indices("ball")
        start = np.array([scene.bodies[i].position for i in self._balls])
        self._displaced = Displaced(start, DISPLACED_M)

    def _observe(self, now: StateView) -> Observation:
        (px, py, pz), _ = now.pose(self._player)
        (vx, vy, vz), (wx, wy, wz) = now.velocity(self._player)
        # Unity's axes: x, z, y; the angular velocity is an axial vector: det P = -1.
        flat: list[float] = [px, pz, py, vx, vz, vy, -wx, -wz, -wy]
        for body in self._balls:
            px, py, pz = now.pose(body)[0]
            vx, vy, vz = now.velocity(body)[0]
            flat += (px, pz, py, vx, vz, vy)
        if self.reward is not None:
            self._displaced.feed(np.array([now.pose(i)[0] for i in self._balls]))
        out = np.zeros(9 + 6 * SLOTS, np.float32)
        out[: len(flat)] = flat
        return out

    def _reward(self, name: str) -> float:
        return self._displaced.newly


def field(rng: np.random.Generator) -> list[tuple[float, float]]:
    """Places (x, y) [m] of all 48 balls, nearer ones first; no two closer than their gap."""
    places = list(ANCHORS_XY)
    while len(places) < SLOTS:
        reach = FIELD_NEAR_M + (FIELD_FAR_M - FIELD_NEAR_M) * len(places) / SLOTS
        # Uniform over the disc of this ball's reach; the disc has room, so that this ends soon.
        radius, angle = reach * math.sqrt(rng.uniform()), rng.uniform(0, 2 * math.pi)
        x, y = radius * math.cos(angle), radius * math.sin(angle)
        in_way = min(abs(x), abs(y)) < FREE_WAY_M and max(abs(x), abs(y)) < FREE_LENGTH_M
        near_player = radius < FREE_AROUND_PLAYER_M
        apart = 2 * BALL_RADIUS + GAP_M
        if in_way or near_player or any(math.hypot(x - a, y - b) < apart for a, b in places):
            continue
        places.append((x, y))
    return places


def compose(places: list[tuple[float, float]]) -> Composition:
    """The world for given places of the yellow balls."""
    bodies = [
        block("ground", "ground", 1, material="ground", half=(80.0, 80.0, 0.5),
              position=(0.0, 0.0, -0.5), friction=1.0, restitution=0.5),
        ball("player", "player", 2, material="chrome", radius=PLAYER_RADIUS, mass=PLAYER_MASS,
             position=PLAYER_START, **_BALL),
        *(
            ball(f"ball_{i:02d}", "ball", 3 + i, material=f"yellow_{i % 4}", radius=BALL_RADIUS,
                 mass=BALL_MASS, position=(x, y, BALL_RADIUS), **_BALL)
            for i, (x, y) in enumerate(places)
        ),
    ]  # fmt: skip
    eye, seen = plus(PLAYER_START, CAMERA_OFFSET), plus(PLAYER_START, CAMERA_LOOK_AT)
    scene = Scene(
        name="MirrorRollingBall",
        bodies=tuple(bodies),
        materials=_MATERIALS,
        cameras=(
            Camera(name="follow", position=eye, target=seen, fov_y_deg=50.0),
            Camera(name="static", position=(0.0, -19.0, 10.5), target=(0.0, -0.8, 0.0),
                   fov_y_deg=44.0),
            Camera(name="top", position=(0.0, -0.01, 40.0), target=(0.0, 0.0, 0.0),
                   fov_y_deg=45.0),
            Camera(name="first", position=plus(PLAYER_START, EYE_OFFSET),
                   target=plus(PLAYER_START, EYE_LOOK_AT), fov_y_deg=50.0),
        ),
        sun=Sun(direction=unit((0.5, 0.42, -0.75)), strength=3.2),
        sky=Sky(),
    )  # fmt: skip
    eye_driver = DriverSpec(
        kind="follow_camera",
        params={
            "camera": "first",
            "body": "player",
            "offset": list(EYE_OFFSET),
            "look_at": list(EYE_LOOK_AT),
        },
    )
    drivers = (
        *ball_drivers(
            newtons=PUSH_N,
            max_speed=MAX_SPEED_MPS,
            offset=CAMERA_OFFSET,
            look_at=CAMERA_LOOK_AT,
        ),
        eye_driver,
    )
    rules = EventRules(contact_roles=(("player", "ball"), ("ball", "ball")))
    return Composition(scene, drivers, rules, {}, EngineConfig(restitution_threshold=0.1))


# --- parts --------------------------------------------------------------------------------------

_BALL: dict[str, Any] = {"friction": 0.6, "restitution": 0.9, "rolling_friction": 0.002}

_MATERIALS = (
    material("ground", "tiles", (0.23, 0.25, 0.28), (0.15, 0.165, 0.19),
             uv_m=8.0, roughness=0.85, specular=0.1),
    material("chrome", "brushed", (0.90, 0.91, 0.93), (0.72, 0.74, 0.78),
             roughness=0.04, specular=1.0, mirror=0.92),
    *(
        material(f"yellow_{i}", "ball_panels", (0.90, 0.56, 0.02), (0.82, 0.42, 0.01),
                 (0.95, 0.80, 0.30), seed=i, roughness=0.12, specular=0.8)
        for i in range(4)
    ),
)  # fmt: skip
