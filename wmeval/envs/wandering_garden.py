"""WanderingGarden: a walk through a garden court, seen through the walker's eyes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.envs.base import Composition, Observation, WorldEnv
from wmeval.envs.garden_court import (
    ANCHORS,
    OBJECT_ROLES,
    PLAYER_HEIGHT,
    PLAYER_RADIUS,
    PLAYER_START,
)
from wmeval.envs.garden_life import VISITORS, court
from wmeval.envs.garden_materials import MATERIALS
from wmeval.envs.parts import unit
from wmeval.scene import Camera, Modal, Scene, Sky, Sun
from wmeval.sim.drivers.gait import gait_modal
from wmeval.sim.protocol import DriverSpec, EngineConfig, EventRules, StateView

SPEED_MPS, RATE_PER_S = 4.0, 10.0
YAW_DEG_PER_S, PITCH_DEG_PER_S, PITCH_LIMIT_DEG = 90.0, 60.0, 80.0
EYE_M = 1.65
FOV_Y_DEG = 55.0
DETECTION_M = 15.0
NEAREST = 10


class WanderingGarden(WorldEnv):
    """First person in a garden where everything that lives moves.

    ## Description

    A walled garden court: a gravel walk leads between two lamp posts to a round place with a
    fountain, past flower beds, a pond, benches, clipped hedges and trees of five kinds. Leaves sway
    in the wind, petals fall, water drops, motes drift over the pond, two visitors stroll on closed
    splines and a flock of birds circles above. The player is an upright capsule that walks and
    looks around. Five anchors are its landmarks, wherever one looks in between: `main_tree`,
    `lamp_left`, `lamp_right`, `rockery_front` and `rockery_back`, the bodies of role `anchor`
    (paper, Appendix "Unity Scenes", WanderingGarden, and Appendix D). The crown's boughs that sway
    are bodies of their own (`main_tree_bough_0`, ...); the anchor is the trunk with its limbs and
    the heart of the crown.

    ## Action space

    `Box(-1, 1, (4,), float32)`, as written to Unity's StarterAssets inputs, held for one control
    period. Strafe and forward count together, at most 1.

    | index | name | meaning | at -1 | at +1 |
    |---|---|---|---|---|
    | 0 | `strafe` | speed to the right | -4 m/s | +4 m/s |
    | 1 | `forward` | speed ahead | -4 m/s | +4 m/s |
    | 2 | `yaw` | turning right, about Unity's +y | -90 deg/s | +90 deg/s |
    | 3 | `pitch` | looking down, about Unity's +x | -60 deg/s | +60 deg/s |

    ## Observation space

    `Dict(vector=Box((50,), float32), image=Box(0, 255, (128, 128, 3), uint8))`;
    `observation_mode="vector"` gives the vector alone, which needs no renderer. The image is the
    first-person view. The vector is in Unity's frame (left-handed, x right, y up, z forward), world
    axes throughout, origin on the ground where the court's south walk meets (0, 0).

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | player position: the middle of the capsule | m | +-200 |
    | 3-5 | player's forward direction (level: the pitch turns the eyes alone) | 1 | +-1 |
    | 6-8 | controller velocity: what the last substep really covered | m/s | +-100 |
    | 9 | number of objects within 15 m (not limited to ten) | 1 | 0 ... 100 |
    | 10 + 4 k ... 12 + 4 k | k-th nearest (k = 0 to 9): position minus player position | m | +-15 |
    | 13 + 4 k | its distance | m | 0 ... 15 |

    Objects are the bodies of roles `anchor`, `tree`, `bush`, `bench`, `ornament` (fountain, pond,
    pergola, gate, urns) and `visitor`, at their bodies' origins (half way up); neither ground,
    walls and hedges, nor leaves, birds and particles. Slots without an object within 15 m are zero.

    ## Rewards

    0.0: there is no task.

    ## Starting state

    The player stands on the south walk, 13 m south of the court's middle, and looks north: all five
    anchors are in view. The seed draws kinds, sizes and places of bushes, the flowers, where the
    visitors are on their walks, the wind, the flock and the particles. Anchors, trees, walks and
    furniture are the same for every seed.

    ## Episode end

    Terminated when the player's middle lies below z = -2 m (hedges make it impossible); truncated
    after `max_steps` (900: 15 s at 60 Hz).

    ## Arguments

    See `WorldEnv`. dt 1/240 s, control period 1/60 s. `perturb`: friction, restitution and mass
    change nothing: the walker is a kinematic controller; gravity changes the fountain's water and
    the visitors' gait alone.

    ## Reset options

    `view`, `camera`, `camera_motion`, `seed_space`: see `WorldEnv.reset`. Views: `first` (the eyes,
    1.65 m up), `static` (the whole court from its south-east corner), `top`.

    ## Physical parameters

    StarterAssets' first-person controller (Unity Technologies): speed 4 m/s, speed change rate
    10 /s, step offset 0.25 m; the velocity follows as `1 - exp(-10 t)`. Ours: capsule of radius
    0.4 m and height 1.8 m, turning speeds, pitch within +-80 deg, field of view 55 deg. The player
    slides along obstacles higher than a step, and is pushed aside by visitors. Flock after Reynolds
    (1987); wind, particles and walks are functions of time and seed.

    ## Version history

    * v0: initial version.
    """

    ID = "WMEval/WanderingGarden-v0"
    PLAYER = "player"
    ANCHORS = ANCHORS
    """Names of the five landmarks."""
    camera_twist = np.array(
        [
            # Per unit of strafe, forward, yaw, pitch; the camera's axes are right, down, ahead.
            (SPEED_MPS, 0.0, 0.0, 0.0),
            (0.0, 0.0, 0.0, 0.0),
            (0.0, SPEED_MPS, 0.0, 0.0),
            (0.0, 0.0, 0.0, -math.radians(PITCH_DEG_PER_S)),
            (0.0, 0.0, math.radians(YAW_DEG_PER_S), 0.0),
            (0.0, 0.0, 0.0, 0.0),
        ]
    )

    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        near = [DETECTION_M] * 4 * NEAREST
        high = np.array([200.0] * 3 + [1.0] * 3 + [100.0] * 3 + [100.0] + near, np.float32)
        low = -high
        low[9] = 0.0
        low[13::4] = 0.0
        return low, high

    def _compose(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Composition:
        return compose(rng)

    def _begin(self, scene: Scene) -> None:
        self._body = scene.index(self.PLAYER)
        objects = [i for i, b in enumerate(scene.bodies) if b.role in OBJECT_ROLES]
        still = [i for i in objects if scene.bodies[i].motion == "static"]
        self._movers = [i for i in objects if scene.bodies[i].motion != "static"]
        self._still = np.array([scene.bodies[i].position for i in still], np.float64)

    def _observe(self, now: StateView) -> Observation:
        (px, py, pz), (w, _, _, k) = now.pose(self._body)
        (vx, vy, vz), _ = now.velocity(self._body)
        # The body's +y ahead: (-sin, cos) of the heading.
        out = np.zeros(10 + 4 * NEAREST, np.float32)
        out[:9] = (px, pz, py, -2 * w * k, 0.0, 1 - 2 * k * k, vx, vz, vy)
        moving = [now.pose(i)[0] for i in self._movers]
        there = np.concatenate([self._still, moving]) - (px, py, pz)
        distance = np.sqrt((there * there).sum(axis=1))
        near = np.flatnonzero(distance <= DETECTION_M)
        out[9] = len(near)
        near = near[np.argsort(distance[near], kind="stable")[:NEAREST]]
        slots = out[10 : 10 + 4 * len(near)].reshape(-1, 4)
        slots[:, :3] = there[near][:, (0, 2, 1)]
        slots[:, 3] = distance[near]
        return out


def compose(rng: np.random.Generator) -> Composition:
    """The world of one seed."""
    built, moving = court(rng)
    x, y, _ = PLAYER_START
    scene = Scene(
        name="WanderingGarden",
        bodies=tuple(built.bodies),
        materials=MATERIALS,
        cameras=(
            Camera(name="first", position=(x, y, EYE_M), target=(x, y + 10.0, EYE_M),
                   fov_y_deg=FOV_Y_DEG, near=0.08, far=400.0),
            Camera(name="static", position=(15.5, -20.0, 10.5), target=(0.5, -1.5, 0.0),
                   fov_y_deg=48.0, far=400.0),
            Camera(name="top", position=(0.0, 1.99, 36.0), target=(0.0, 2.0, 0.0),
                   fov_y_deg=60.0, far=400.0),
        ),
        sun=Sun(direction=unit((0.62, 0.35, -0.62)), color=(1.0, 0.93, 0.82), strength=2.7),
        sky=Sky(zenith=(0.12, 0.25, 0.52), horizon=(0.5, 0.6, 0.72), strength=1.6, clouds=0.5),
        modal=(
            Modal(name="pitch", size=1, unit="rad", doc="how far the eyes look down"),
            *(gait_modal(f"visitor_{i}_gait") for i in range(len(VISITORS))),
        ),
    )  # fmt: skip
    walker = DriverSpec(
        kind="first_person",
        params={
            "body": "player",
            "camera": "first",
            "movers": [f"visitor_{i}" for i in range(len(VISITORS))],
            "speed": SPEED_MPS,
            "rate": RATE_PER_S,
            "yaw_deg": YAW_DEG_PER_S,
            "pitch_deg": PITCH_DEG_PER_S,
            "pitch_limit_deg": PITCH_LIMIT_DEG,
            "radius": PLAYER_RADIUS,
            "height": PLAYER_HEIGHT,
            "eye": EYE_M,
        },
    )
    # Visitors walk before the player looks where they are.
    return Composition(scene, (*moving, walker), EventRules(), built.meshes, EngineConfig())
