"""BeamDomino: a heavy ball, a platform on three legs, a ball on its roof and twenty dominoes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray

from wmeval.conventions import (
    unity_camera_euler_degrees_of,
    unity_euler_degrees_of,
)
from wmeval.envs.base import Composition, EnvOptions, Observation, WorldEnv
from wmeval.envs.parts import ball, block, material, unit, yaw
from wmeval.errors import UserError
from wmeval.scene import (
    DYNAMIC,
    Body,
    Box,
    Camera,
    Collision,
    Cylinder,
    Scene,
    Sky,
    Sun,
    Vec3,
    Visual,
)
from wmeval.sim.protocol import DriverSpec, EngineConfig, EventRules, StateView

PUSH_N = 80.0
MAX_SPEED_MPS = 20.0
CAMERA_OFFSET: Vec3 = (0.0, -12.0, 6.0)
"""Unity (0, 6, -12) in the world frame [m] (paper, Unity Scenes, BeamDomino)."""
CAMERA_RATE_PER_S = 8.0
FALL_DEG = 30.0
DROP_M, LANDING_GAP_M = 0.1, 0.01

START_BANDS = {"canonical": (-0.25, 0.25), "glancing": (0.42, 0.70), "direct_strike": (0.82, 1.5)}
"""Where the ball's x0 [m] is drawn from: the class is the same at dt, dt/2 and dt/4 throughout."""
X0_LIMIT_M = 5.0
INTERVENTIONS = ("none", "no_roof_ball", "slab_pinned")

BALL_RADIUS, BALL_MASS = 0.5, 12.0
ROOF_RADIUS, ROOF_MASS = 0.35, 5.0
PILLAR_RADIUS, PILLAR_HEIGHT, PILLAR_MASS = 0.25, 1.8, 4.0
PILLARS_XY = ((0.0, 0.0), (-1.9483, -0.081), (-1.3144, -1.4404))
SLAB_HALF: Vec3 = (1.25, 1.1, 0.08)
SLAB_CENTER: Vec3 = (-0.725, -0.3381, 1.88)
SLAB_YAW_DEG, SLAB_MASS = 25.0, 15.0
ROOF_CENTER: Vec3 = (-0.0906, -0.0423, 2.31)
DOMINO_SIZE: Vec3 = (0.08, 0.9, 0.5)
DOMINO_MASS = 1.0
DOMINOES = 20
FIRST_XY, SPACING, HEADING_DEG, TURN_DEG = (1.45, 0.5), 0.44, 45.0, -2.5
RELEASE_NS = 76.0
"""Impulse m v_n [N s] at which legs and slab come loose; a head-on hit has 84.5."""


class BeamDomino(WorldEnv):
    """A driven ball knocks a leg away, and the consequences run to the end of a domino row.

    ## Description

    The player drives a heavy red ball across the floor towards a white platform on three round
    legs. On the platform's roof rests a smaller ball; to its right a row of 20 two-tone dominoes
    bends away. A clean hit brings a leg down, the platform tilts, the roof ball rolls off its edge,
    drops onto the first domino and starts the cascade. The scene tests whether a candidate keeps
    the causal order ROLLING, IMPACT, TOPPLE, CASCADE (paper, Appendix "Unity Scenes", BeamDomino).

    Small changes of the ball's start give three shapes:

    | shape | start x0 [m] | what happens |
    |---|---|---|
    | canonical | -0.25 ... 0.25 | leg struck, platform falls, roof ball topples the row |
    | glancing | 0.42 ... 0.70 | leg clipped, platform stands, the ball topples the row itself |
    | direct_strike | 0.82 ... 1.50 | the ball passes the platform and strikes the row first |

    ## Action space

    `Box(-1, 1, (2,), float32)`: a force on the ball's centre, world-fixed, held for one control
    period. It acts while the ball's horizontal speed is below 20 m/s.

    | index | name | meaning | at -1 | at +1 |
    |---|---|---|---|---|
    | 0 | `force_z` | forward force, Unity +z | -80 N | +80 N |
    | 1 | `force_x` | rightward force, Unity +x | -80 N | +80 N |

    ## Observation space

    `Box((92,), float32)` in Unity's frame (left-handed, x right, y up, z forward), origin at the
    foot of the first leg. Positions [m] within +-200, velocities [m/s] within +-100, angular
    velocities [rad/s] within +-400, Euler angles [deg] in [-180, 180) in Unity's order.

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | floor ball position | m | +-200 |
    | 3-5 | floor ball linear velocity | m/s | +-100 |
    | 6-8 | floor ball angular velocity | rad/s | +-400 |
    | 9-11 | roof ball position | m | +-200 |
    | 12-14 | roof ball linear velocity | m/s | +-100 |
    | 15 | roof ball airborne: over 0.1 m below its place, not yet at the floor | flag | 0, 1 |
    | 16 + 2 i | domino i, angle between its own and the vertical axis | deg | 0 ... 180 |
    | 17 + 2 i | domino i has been tilted by 30 deg or more at a control step | flag | 0, 1 |
    | 56 | fraction of dominoes fallen | 1 | 0 ... 1 |
    | 57 | time since a control step first saw a fallen domino; 0 before | s | 0 ... episode |
    | 58-60 | follow camera position | m | +-200 |
    | 61-63 | follow camera Euler angles | deg | -180 ... 180 |
    | 64 + 7 p | pillar p (0 to 2): position (3) | m | +-200 |
    | 67 + 7 p | pillar p: Euler angles (3) | deg | -180 ... 180 |
    | 70 + 7 p | pillar p is still held (kinematic) | flag | 0, 1 |
    | 85-87 | slab position | m | +-200 |
    | 88-90 | slab Euler angles | deg | -180 ... 180 |
    | 91 | slab is still held (kinematic) | flag | 0, 1 |

    ## Rewards

    0.0, unless `reward="dominoes_fallen"`: the fraction of the row that fell in this step, so that
    an episode's sum is the fraction fallen.

    ## Starting state

    The ball rests at (x0, -6 m), the row, platform and roof ball at rest. The seed draws x0
    uniformly from the shape's band above (the bands keep away from the boundaries, which move by at
    most 1 cm with dt). Legs and slab are held until the ball strikes a leg with m v_n > 76 N s (a
    head-on hit has 84.5), then they are free bodies: a clip leaves the platform standing.

    ## Episode end

    Terminated when the ball's centre lies below z = -2 m (it left the 60 m x 60 m floor); truncated
    after `max_steps` (480: 8 s at 60 Hz). At the end, `info["shape"]` names the shape
    (`info_level` state or full).

    ## Arguments

    See `WorldEnv`. dt 1/240 s, control period 1/60 s.

    ## Reset options

    | name | values | meaning |
    |---|---|---|
    | `shape` | canonical (default), glancing, direct_strike | band from which x0 is drawn |
    | `x0` | -5 ... 5 [m] | the ball's start itself; goes before `shape` |
    | `intervention` | none (default), no_roof_ball, slab_pinned | a cause taken away |
    | `view`, `camera`, `camera_motion`, `seed_space` | | see `WorldEnv.reset` |

    Views: `follow` (paper: offset Unity (0, 6, -12), smoothed by 8/s, looking at the ball),
    `static` (the whole action), `top`.

    ## Physical parameters

    Ball 12 kg, r 0.5 m, friction 0.7; legs 4 kg, r 0.25 m, 1.8 m high, friction 0.2; slab 15 kg,
    2.5 m x 2.2 m x 0.16 m; roof ball 5 kg, r 0.35 m; dominoes 1 kg, 0.08 m x 0.9 m x 0.5 m,
    0.44 m apart; floor friction 1. Friction and restitution of a pair are products.

    ## Version history

    * v0: initial version.
    """

    ID = "WMEval/BeamDomino-v0"
    PLAYER = "floor_ball"
    OPTIONS = {  # noqa: RUF012
        "shape": f"{', '.join(START_BANDS)}: band of the ball's start",
        "x0": "the ball's start itself [m]; goes before shape",
        "intervention": f"{', '.join(INTERVENTIONS)}: a cause taken away",
    }
    REWARDS = {"dominoes_fallen": "fraction of the row that fell in this step"}  # noqa: RUF012
    _MEMORY = ("_landed", "_fallen", "_fallen_count", "_fallen_before", "_first_fall")

    def __init__(self, **common: Unpack[EnvOptions]) -> None:
        super().__init__(**common)

    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        position, linear, angular, euler = [200.0] * 3, [100.0] * 3, [400.0] * 3, [180.0] * 3
        episode = self.max_steps * float(self.clock.control_period)
        piece = [*position, *euler, 1.0]
        high = [*position, *linear, *angular, *position, *linear, 1.0]
        high += [180.0, 1.0] * DOMINOES + [1.0, episode] + position + euler + piece * 4
        low = [-x for x in high]
        for flag in (15, *range(16, 58), 70, 77, 84, 91):
            low[flag] = 0.0
        return np.array(low, np.float32), np.array(high, np.float32)

    def _compose(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Composition:
        return compose(_start(rng, options), _intervention(options))

    def _begin(self, scene: Scene) -> None:
        self._ball = scene.index("floor_ball")
        self._roof = scene.index("roof_ball")
        self._held = [*scene.indices("leg"), scene.index("slab")]
        self._dominoes = scene.indices("domino")
        self._pieces: list[tuple[float, ...] | None] = [None] * len(self._held)
        self._landed = False
        self._fallen = [0.0] * DOMINOES
        self._fallen_count = self._fallen_before = 0
        self._first_fall: int | None = None
        self._period = float(self.clock.control_period)

    def _observe(self, now: StateView) -> Observation:
        # Called at every step. Plain numbers: on so few, an array operation costs more than a loop.
        pose = now.pose
        (px, py, pz), _ = pose(self._ball)
        (vx, vy, vz), (wx, wy, wz) = now.velocity(self._ball)
        (rx, ry, rz), _ = pose(self._roof)
        (ux, uy, uz), _ = now.velocity(self._roof)
        # Unity's axes: x, z, y; the angular velocity is an axial vector: det P = -1.
        out: list[float] = [px, pz, py, vx, vz, vy, -wx, -wz, -wy, rx, rz, ry, ux, uz, uy]
        out.append(self._airborne(rz))
        fallen = self._fallen
        for i, body in enumerate(self._dominoes):
            _, (_, x, y, _) = pose(body)
            # cos(tilt) = 1 - 2 (x^2 + y^2) = 1 - 2 sin^2(tilt / 2)
            tilt = math.degrees(2.0 * math.asin(min(math.hypot(x, y), 1.0)))
            if tilt >= FALL_DEG:
                fallen[i] = 1.0
            out += (tilt, fallen[i])
        self._fallen_before, self._fallen_count = self._fallen_count, int(sum(fallen))
        if self._first_fall is None and self._fallen_count:
            self._first_fall = len(self._actions)
        since = 0 if self._first_fall is None else len(self._actions) - self._first_fall
        camera = now.camera(0)
        out += (
            self._fallen_count / DOMINOES,
            since * self._period,
            *_unity(camera[3:12:4]),
            *unity_camera_euler_degrees_of([camera[i : i + 4] for i in (0, 4, 8, 12)]),
        )
        for i, body in enumerate(self._held):
            piece = self._pieces[i]
            if piece is None or now.motion(body) == DYNAMIC:
                # What is held stays where it is; what is free is looked at anew.
                position, quaternion = pose(body)
                held = float(now.motion(body) != DYNAMIC)
                piece = (*_unity(position), *unity_euler_degrees_of(quaternion), held)
                self._pieces[i] = piece
            out += piece
        return np.array(out, np.float32)

    def _airborne(self, height: float) -> bool:
        # The slab drops away at nearly g, so that a flag of contact would flicker all the way down.
        self._landed = self._landed or height - ROOF_RADIUS <= LANDING_GAP_M
        return not self._landed and height < ROOF_CENTER[2] - DROP_M

    def _reward(self, name: str) -> float:
        return (self._fallen_count - self._fallen_before) / DOMINOES


def _unity(v: Sequence[float]) -> tuple[float, float, float]:
    """`to_unity_vector` of three numbers, for the inner loop."""
    return v[0], v[2], v[1]


def domino_poses() -> tuple[tuple[float, float, float], ...]:
    """(x [m], y [m], yaw [deg]) of the dominoes: an arc that turns by 2.5 deg a piece."""
    x, y = FIRST_XY
    poses = []
    for i in range(DOMINOES):
        yaw = HEADING_DEG + TURN_DEG * i
        poses.append((x, y, yaw))
        ahead = math.radians(yaw + TURN_DEG / 2)
        x, y = x + SPACING * math.cos(ahead), y + SPACING * math.sin(ahead)
    return tuple(poses)


def compose(x0: float, intervention: str = "none") -> Composition:
    """The world for one start of the ball.

    Args:
        x0: the ball's start [m].
        intervention: row of `INTERVENTIONS`.
    """
    start = (x0, -6.0, BALL_RADIUS)
    pinned, absent = intervention == "slab_pinned", intervention == "no_roof_ball"
    bodies = [
        block("floor", "floor", 1, material="floor", half=(30.0, 30.0, 0.5),
              position=(0.0, 0.0, -0.5), friction=1.0, restitution=0.1),
        # Lower than where an episode ends, so that nothing can ever touch it: a picture only.
        Body(
            name="ground", role="ground", motion="static", instance=29,
            visuals=(Visual(shape=Box(half_extents=(200.0, 200.0, 0.5)), material="ground"),),
            position=(0.0, 0.0, -4.0),
        ),
        block("stop_wall", "wall", 2, material="wall", half=(12.0, 0.2, 0.4),
              position=(0.0, 6.0, 0.4), friction=0.5, restitution=0.0),
        ball("floor_ball", "player", 3, material="floor_ball", radius=BALL_RADIUS, mass=BALL_MASS,
             friction=0.7, restitution=0.1, rolling_friction=0.003, position=start),
        ball("roof_ball", "roof_ball", 4, material="roof_ball", radius=ROOF_RADIUS, mass=ROOF_MASS,
             friction=0.3, restitution=0.1, rolling_friction=0.005, position=ROOF_CENTER,
             active=not absent),
    ]  # fmt: skip
    column = Cylinder(radius=PILLAR_RADIUS, height=PILLAR_HEIGHT)
    for i, (x, y) in enumerate(PILLARS_XY):
        bodies.append(
            Body(
                name=f"pillar_{i}", role="leg", motion="kinematic", instance=5 + i,
                collision=(Collision(shape=column),),
                visuals=(Visual(shape=column, material="pillar"),),
                mass=PILLAR_MASS, friction=0.2, position=(x, y, PILLAR_HEIGHT / 2),
            )
        )  # fmt: skip
    bodies.append(
        Body(
            name="slab", role="slab", motion="static" if pinned else "kinematic", instance=8,
            collision=(Collision(shape=Box(half_extents=SLAB_HALF)),),
            visuals=(Visual(shape=Box(half_extents=SLAB_HALF, bevel=0.03), material="slab"),),
            mass=SLAB_MASS, friction=0.3, position=SLAB_CENTER, quaternion_wxyz=yaw(SLAB_YAW_DEG),
        )
    )  # fmt: skip
    half = (DOMINO_SIZE[0] / 2, DOMINO_SIZE[1] / 2, DOMINO_SIZE[2] / 2)
    leaf = Box(half_extents=(half[0] / 2, half[1], half[2]), bevel=0.008)
    for i, (x, y, turn) in enumerate(domino_poses()):
        bodies.append(
            Body(
                name=f"domino_{i:02d}", role="domino", motion="dynamic", instance=9 + i,
                collision=(Collision(shape=Box(half_extents=half)),),
                visuals=(
                    Visual(shape=leaf, material="domino_face", position=(-half[0] / 2, 0, 0)),
                    Visual(shape=leaf, material="domino_back", position=(half[0] / 2, 0, 0)),
                ),
                mass=DOMINO_MASS, friction=0.6, position=(x, y, half[2]),
                quaternion_wxyz=yaw(turn),
            )
        )  # fmt: skip
    scene = Scene(
        name="BeamDomino",
        bodies=tuple(bodies),
        materials=_MATERIALS,
        cameras=(
            Camera(
                name="follow",
                position=(start[0], start[1] + CAMERA_OFFSET[1], start[2] + CAMERA_OFFSET[2]),
                target=start,
                fov_y_deg=45.0,
            ),
            Camera(name="static", position=(1.0, -20.5, 11.5), target=(0.8, -3.6, 0.0),
                   fov_y_deg=38.0),
            Camera(name="top", position=(0.6, -2.51, 26.0), target=(0.6, -2.5, 0.0),
                   fov_y_deg=42.0),
        ),
        sun=Sun(direction=unit((0.45, 0.55, -0.9)), strength=2.6),
        sky=Sky(),
    )  # fmt: skip
    pillars = ["pillar_0", "pillar_1", "pillar_2"]
    drivers = (
        DriverSpec(
            kind="force",
            params={
                "body": "floor_ball",
                "axes": [[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
                "newtons": PUSH_N,
                "max_speed": MAX_SPEED_MPS,
            },
        ),
        DriverSpec(
            kind="release",
            params={
                "striker": "floor_ball",
                "struck": list(pillars),
                "released": [*pillars] if pinned else [*pillars, "slab"],
                "impulse": RELEASE_NS,
            },
        ),
        DriverSpec(
            kind="follow_camera",
            params={
                "camera": "follow",
                "body": "floor_ball",
                "offset": list(CAMERA_OFFSET),
                "mode": "smooth",
                "rate": CAMERA_RATE_PER_S,
            },
        ),
    )
    rules = EventRules(
        chain="beam_domino",
        contact_roles=(
            ("player", "leg"), ("player", "domino"), ("player", "wall"), ("player", "slab"),
            ("roof_ball", "slab"), ("roof_ball", "domino"), ("roof_ball", "floor"),
            ("domino", "domino"), ("slab", "domino"), ("leg", "domino"),
        ),
        fall_deg=FALL_DEG,
        plateau=0.5,
    )  # fmt: skip
    config = EngineConfig(iterations=50, restitution_threshold=0.2)
    return Composition(scene, drivers, rules, {}, config)


# --- parts --------------------------------------------------------------------------------------


def _start(rng: np.random.Generator, options: Mapping[str, Any]) -> float:
    if "x0" in options:
        x0 = options["x0"]
        if isinstance(x0, bool) or not isinstance(x0, int | float) or not abs(x0) <= X0_LIMIT_M:
            raise UserError(f"BeamDomino: option x0 = {x0!r}: give metres in [-5, 5]")
        return float(x0)
    shape = options.get("shape", "canonical")
    if shape not in START_BANDS:
        raise UserError(
            f"BeamDomino: unknown option shape {shape!r}: choose from {', '.join(START_BANDS)}"
        )
    return float(rng.uniform(*START_BANDS[shape]))


def _intervention(options: Mapping[str, Any]) -> str:
    name = options.get("intervention", "none")
    if name not in INTERVENTIONS:
        raise UserError(
            f"BeamDomino: unknown option intervention {name!r}: "
            f"choose from {', '.join(INTERVENTIONS)}"
        )
    return str(name)


_MATERIALS = (
    material("ground", "grass", (0.10, 0.15, 0.05), (0.16, 0.17, 0.07),
             uv_m=12.0, roughness=1.0, specular=0.0),
    material("floor", "tiles", (0.105, 0.135, 0.17), (0.06, 0.08, 0.10),
             uv_m=4.0, roughness=0.5, specular=0.3),
    material("wall", "concrete", (0.36, 0.34, 0.31), (0.27, 0.26, 0.24),
             uv_m=2.0, roughness=0.9, specular=0.1),
    material("floor_ball", "ball_panels", (0.55, 0.02, 0.02), (0.42, 0.012, 0.012),
             (0.86, 0.82, 0.76), roughness=0.2, specular=0.6),
    material("roof_ball", "ball_panels", (0.02, 0.30, 0.09), (0.015, 0.20, 0.06),
             (0.85, 0.85, 0.70), roughness=0.2, specular=0.6, seed=2),
    material("pillar", "marble", (0.50, 0.50, 0.51), (0.30, 0.31, 0.34),
             uv_m=1.2, roughness=0.4, specular=0.4),
    material("slab", "marble", (0.80, 0.80, 0.78), (0.58, 0.59, 0.60),
             uv_m=2.0, roughness=0.35, specular=0.4, seed=3),
    material("domino_face", "speckle", (0.78, 0.42, 0.04), (0.60, 0.28, 0.02),
             uv_m=0.5, roughness=0.35, specular=0.45),
    material("domino_back", "speckle", (0.015, 0.05, 0.16), (0.04, 0.12, 0.28),
             uv_m=0.5, roughness=0.35, specular=0.45, seed=5),
)  # fmt: skip
