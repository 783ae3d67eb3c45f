"""LiquidContainer: a sealed, half-full glass bottle, moved and turned by hand at the coast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Unpack

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.assets import bottle
from wmeval.assets.liquid import Surface, liquid_mesh
from wmeval.conventions import unity_euler_degrees_of
from wmeval.envs.base import Composition, EnvOptions, Observation, WorldEnv
from wmeval.envs.parts import block, material, unit
from wmeval.errors import UserError
from wmeval.scene import (
    Body,
    Camera,
    Deform,
    Material,
    Mesh,
    Scene,
    Sky,
    Sun,
    Texture,
    Vec3,
    Vessel,
    Visual,
)
from wmeval.sim.drivers.slosh import MODAL
from wmeval.sim.protocol import DriverSpec, EngineConfig, EventRules, StateView

SQUARE_M = 0.10
"""Side of a square of the calibration floor."""
VISCOSITY_M2PS = 8.9e-5
"""Kinematic viscosity: an 85 % (by mass) solution of glycerol in water at 20 degrees Celsius."""
ACCELERATION, SPEED = 0.8, 1.2
TURN_ACCELERATION, TURN_RATE = 6.0, 1.6
REACH: Vec3 = (0.60, 0.35, 0.24)
"""How far the bottle may be moved from the middle [m], along x and y to both sides, and up."""
STARTS = {"centre": 0.0, "left": -REACH[0], "right": REACH[0]}
SIDE_EYE: Vec3 = (0.0, -2.1, 0.52)
SIDE_TARGET: Vec3 = (0.0, 0.0, 0.275)


class LiquidContainer(WorldEnv):
    """A sealed, half-full glass bottle is moved and turned in six degrees of freedom.

    ## Description

    A clear glass bottle with a ribbed red cap stands on a checker-and-cross calibration floor
    (10 cm squares, a red cross every 40 cm) at a sandy bay. An amber liquid fills half of it. It
    follows a parametric slosh model, not a fluid solver: its free surface is level in the world
    whatever the bottle's attitude, and carries damped waves that the bottle's linear and angular
    acceleration drives (paper, Appendix "Unity Scenes", LiquidContainer, and "Fluid Mechanics").
    Its volume is exactly half of the bottle's at every instant.

    The state log holds the modal state beside the bodies (see `wmeval.sim.drivers.slosh`): modal
    amplitudes and velocities, the surface's normal and level, and the meniscus as 72 points in the
    world. Labels are unrefracted: ``ids`` show the liquid as a solid at its true place,
    ``glass_ids`` the glass in front of it. Only ``rgb`` is refracted.

    ## Action space

    `Box(-1, 1, (6,), float32)`, held for one control period; axes are the world's.

    | index | name | meaning | at -1 | at +1 |
    |---|---|---|---|---|
    | 0 | `forward` | along Unity +z, away from the camera | -0.8 m/s2 | +0.8 m/s2 |
    | 1 | `right` | along Unity +x | -0.8 m/s2 | +0.8 m/s2 |
    | 2 | `up` | along Unity +y | -0.8 m/s2 | +0.8 m/s2 |
    | 3 | `pitch` | about Unity +x: + tips the cap forward | -1.6 rad/s | +1.6 rad/s |
    | 4 | `yaw` | about Unity +y: + turns it clockwise, seen from above | -1.6 rad/s | +1.6 rad/s |
    | 5 | `roll` | about Unity +z: + tips the cap to the left | -1.6 rad/s | +1.6 rad/s |

    The response law is ours. A translation's command is an acceleration, up to 1.2 m/s; released,
    the bottle brakes at 0.8 m/s2. A rotation's command is a rate, reached at 6 rad/s2 times the
    command. The bottle brakes by itself at 0.8 m/s2 to stop at the bound of its work volume:
    0.60 m to the left and right, 0.35 m forward and back, 0.24 m up from where it stands. It never
    sinks into the floor.

    A lateral acceleration that lasts 8 s and tilts the surface by a visible angle would carry the
    bottle out of any still picture: 1 degree takes 5.5 m. So a strafe that is held longer
    accelerates for 1.2 s (from bound to bound), brakes for as long, and then waits at the bound:
    the surface leans to the steady angle atan(0.8 / 9.81) = 4.7 degrees one way, then the other,
    for about three periods of the first mode each, with the waves of the steps upon it.

    ## Observation space

    `Box((24,), float32)` in Unity's frame (left-handed, x right, y up, z forward), origin on the
    floor below the middle of the work volume.

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | bottle position (of its half-full level on its axis) | m | +-2 |
    | 3-5 | bottle's forward direction | 1 | +-1 |
    | 6-8 | bottle's up direction (from foot to cap) | 1 | +-1 |
    | 9-11 | linear velocity | m/s | +-4 |
    | 12-14 | angular velocity | rad/s | +-4 |
    | 15-17 | Euler angles x, y, z, divided by 180 degrees | 1 | +-1 |
    | 18-23 | the six action values in force (0 after reset) | 1 | +-1 |

    ## Rewards

    Always 0.0.

    ## Starting state

    The bottle stands at rest on the floor, the liquid is still. The seed turns the bottle about its
    axis by up to 15 degrees and chooses nothing else; `start` chooses the place.

    ## Episode end

    Never terminated; truncated after `max_steps` (1200: 20 s at 60 Hz).

    ## Arguments

    See `WorldEnv`. dt 1/240 s, control period 1/60 s: the 12 Hz of the paper's action profiles are
    5 periods, its pulse of 0.2 s is 12. `perturb`: gravity, above 0, scales the waves' frequencies
    by its root and the lean; friction, restitution and mass change nothing: a hand moves the
    bottle.

    ## Reset options

    `start`: where the bottle stands along x: centre (default), left or right bound of its work
    volume. `view`, `camera`, `camera_motion`, `seed_space`: see `WorldEnv.reset`. Views: `side`
    (the paper's static side camera), `static` (the same from farther away), `top`.

    ## Physical parameters

    The paper gives none; these are ours, with the sources of the formulas in
    `wmeval.sim.drivers.slosh`. Bottle: inner radius 80 mm, cylinder 254 mm, 6.1 litres, wall 4 mm,
    395 mm high. Liquid: 85 % glycerol in water, 8.9e-5 m2/s, refractive index 1.45. First mode
    2.39 Hz, damping ratio 0.028 (decay time 2.3 s); second mode 4.07 Hz, 0.013; higher ones as one
    at 5.15 Hz, 0.011. Gravity 9.81 m/s2.

    ## Version history

    * v0: initial version.
    """

    ID = "WMEval/LiquidContainer-v0"
    PLAYER = "bottle"
    OPTIONS = {"start": "place along x: centre, left or right"}  # noqa: RUF012

    def __init__(self, **common: Unpack[EnvOptions]) -> None:
        super().__init__(**common)

    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        high = [2.0] * 3 + [1.001] * 6 + [4.0] * 6 + [1.0] * 9
        return -np.array(high, np.float32), np.array(high, np.float32)

    def _compose(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Composition:
        start = options.get("start", "centre")
        if not isinstance(start, str) or start not in STARTS:
            raise UserError(
                f"{self.ID}: unknown option start {start!r}: choose from {', '.join(STARTS)}"
            )
        return compose(STARTS[start], float(rng.uniform(-15.0, 15.0)))

    def _begin(self, scene: Scene) -> None:
        self._bottle = scene.index(self.PLAYER)

    def _terminated(self, now: StateView) -> bool:
        return False

    def _observe(self, now: StateView) -> Observation:
        (px, py, pz), q = now.pose(self._bottle)
        (vx, vy, vz), (wx, wy, wz) = now.velocity(self._bottle)
        w, x, y, z = q
        # Columns of the rotation: the body's forward (+y) and up (+z), in Unity's axes x, z, y.
        forward = (2 * (x * y - w * z), 2 * (y * z + w * x), 1 - 2 * (x * x + z * z))
        up = (2 * (x * z + w * y), 1 - 2 * (x * x + y * y), 2 * (y * z - w * x))
        ex, ey, ez = unity_euler_degrees_of(q)
        inputs = self._actions[-1] if self._actions else (0.0,) * 6
        return np.array(
            [px, pz, py, *forward, *up, vx, vz, vy, -wx, -wz, -wy,
             ex / 180, ey / 180, ez / 180, *inputs],
            np.float32,
        )  # fmt: skip


def compose(x: float = 0.0, turn_deg: float = 0.0) -> Composition:
    """The world with the bottle standing at ``x`` [m], turned about its axis by ``turn_deg``."""
    cavity = bottle.cavity()
    deform = Deform(kind="half_full", modal="liquid_surface", profile=bottle.inner_profile())
    still = liquid_mesh(Surface(cavity, np.array([0.0, 0.0, 1.0]), np.zeros((3, 3))))
    parts = {"bottle": bottle.glass_mesh(), "liquid": still, "cap": bottle.cap_mesh()}
    meshes = {mesh.content_hash(): mesh for mesh in parts.values()}
    shapes = {
        name: Mesh(
            sha256=mesh.content_hash(), convex=False, deform=deform if name == "liquid" else None
        )
        for name, mesh in parts.items()
    }
    vessel = Vessel(outer=bottle.outer_profile(), liquid="liquid", surface=deform)
    height = bottle.level()
    half = np.radians(turn_deg) / 2
    pose: dict[str, Any] = {
        "position": (x, 0.0, height),
        "quaternion_wxyz": (float(np.cos(half)), 0.0, 0.0, float(np.sin(half))),
    }

    def part(name: str, role: str, instance: int, look: str, **more: Any) -> Body:
        visual = Visual(shape=shapes[name], material=look, **more)
        return Body(
            name=name, role=role, motion="kinematic", instance=instance, visuals=(visual,), **pose
        )

    scene = Scene(
        name="LiquidContainer",
        bodies=(
            block("floor", "floor", 1, material="floor", half=(4.4, 4.4, 0.05),
                  position=(0.0, 0.0, -0.05)),
            part("bottle", "container", 2, "glass", vessel=vessel),
            part("liquid", "liquid", 3, "liquid"),
            part("cap", "cap", 4, "cap"),
        ),
        materials=_MATERIALS,
        cameras=(
            Camera(name="side", position=SIDE_EYE, target=SIDE_TARGET, fov_y_deg=22.0),
            Camera(name="static", position=(0.9, -3.3, 0.95), target=(0.0, 0.0, 0.18),
                   fov_y_deg=28.0),
            Camera(name="top", position=(0.0, -0.01, 2.6), target=(0.0, 0.0, 0.0),
                   fov_y_deg=34.0),
        ),
        sun=Sun(direction=unit((0.62, 0.38, -0.66)), color=(1.0, 0.95, 0.87), strength=2.9,
                softness=0.03, reach=1.0),
        sky=Sky(
            zenith=(0.14, 0.32, 0.70), horizon=(0.60, 0.73, 0.86), clouds=0.42,
            panorama=Texture(
                builder="coast", repeat=2.0, seed=3,
                colors=((0.05, 0.16, 0.22), (0.62, 0.50, 0.34), (0.36, 0.29, 0.22),
                        (0.16, 0.22, 0.08)),
            ),
        ),
        modal=MODAL,
    )  # fmt: skip
    drivers = (
        DriverSpec(
            kind="bottle",
            params={
                "body": "bottle",
                "carried": ["liquid", "cap"],
                "translation": [1, 0, 2],
                "rotation": [3, 4, 5],
                # Unity's axes are left-handed: a positive turn about x is one about -x here.
                "rotation_axes": [[-1.0, 0.0, 0.0], [0.0, 0.0, -1.0], [0.0, -1.0, 0.0]],
                "acceleration": ACCELERATION,
                "speed": SPEED,
                "turn_acceleration": TURN_ACCELERATION,
                "turn_rate": TURN_RATE,
                "low": [-REACH[0], -REACH[1], height],
                "high": [REACH[0], REACH[1], height + REACH[2]],
                "outline": _hull(),
            },
        ),
        DriverSpec(
            kind="slosh",
            params={
                "body": "bottle",
                "profile": [list(point) for point in bottle.inner_profile()],
                "viscosity": VISCOSITY_M2PS,
            },
        ),
    )
    return Composition(scene, drivers, EventRules(), meshes, EngineConfig())


def _hull() -> list[JsonValue]:
    """Corners (radius, z) of the bottle with its cap: what may stand on the floor."""
    low, top = bottle.CAP_LOW - bottle.level(), bottle.CAP_HIGH - bottle.level()
    line = [*bottle.outer_profile()[:-2], (bottle.CAP_RADIUS, low), (bottle.CAP_RADIUS, top)]
    return [[r, z] for r, z in line]


_MATERIALS: tuple[Material, ...] = (
    material("floor", "calibration", (0.56, 0.56, 0.54), (0.07, 0.075, 0.085), (0.62, 0.05, 0.035),
             uv_m=4 * SQUARE_M, roughness=0.75, specular=0.15, seed=2),
    material("glass", "noise", (0.86, 0.93, 0.90), opacity=0.12, roughness=0.05, specular=0.8,
             ior=1.5),
    material("liquid", "noise", (0.86, 0.34, 0.035), (0.80, 0.28, 0.02),
             labelled_solid=True, ior=1.45, roughness=0.1, specular=0.5),
    material("cap", "speckle", (0.56, 0.018, 0.014), (0.50, 0.012, 0.010), (0.66, 0.05, 0.04),
             roughness=0.32, specular=0.55, seed=4),
)  # fmt: skip
