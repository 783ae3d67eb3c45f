"""RacingCar: a yellow sports car on an endless highway that begins at an edge in the sky."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.assets import car as model
from wmeval.assets import road as highway
from wmeval.envs.base import Composition, Observation, WorldEnv
from wmeval.envs.parts import material, unit
from wmeval.scene import (
    Body,
    Box,
    Camera,
    Collision,
    Mesh,
    MeshData,
    Scene,
    Sky,
    Sun,
    Vec3,
    Visual,
)
from wmeval.sim.drivers.vehicle import WHEELS, modal_state
from wmeval.sim.protocol import DriverSpec, EngineConfig, EventRules, StateView
from wmeval.vectors import axes

MASS = 1400.0
TOP_SPEED_MPS = 120.0 / 3.6
START: Vec3 = (1.8, 0.0, model.COM_HEIGHT)
"""Where the car stands: in the inner right-hand lane."""
BEGIN_M = -10.0
"""Where road and ground begin, behind the car."""
FAR_M = 20_000.0
"""How far road and ground go on: ten minutes at top speed."""
TILE_M, BEHIND, SLOTS = 40.0, 5, 19
TREES_A_SIDE = 3
TREE_KINDS = 4
MEADOW_HALF_M = 320.0
_REST_LOAD = MASS * 9.81 / 4
_SINK = 0.086
"""Compression of the standing car's springs [m]: a natural frequency of 1.7 Hz."""
_MOUNT = 0.25


class RacingCar(WorldEnv):
    """A yellow sports car drives on a straight highway that is made under its wheels.

    ## Description

    A wide straight highway with four marked lanes, dark guard rails, grass strips and two rows of
    tall trees goes on for ever; it begins abruptly 10 m behind the car, and behind its edge there
    is only open sky. A yellow sports car with two black racing stripes stands on it: rear drive,
    front steering, four brakes, on raycast wheels with sprung struts and slipping tyres (paper,
    Appendix "Unity Scenes", RacingCar). Tiles of the road are recycled ahead and behind; the
    physics below them is one piece, 20 km long. The wheels' contacts are rays, no engine contacts:
    their loads, slips, spins and springs are modal state in every log, with the steering angle and
    the inputs in force.

    Instances: 1 meadow, 2 car, 3-6 wheels (front left, front right, rear left, rear right), 7 what
    closes the road at its edge; from 100 on the slots of the pool: tiles of road, guard rails, six
    trees each. A slot that is recycled rests for 80 m of driving; flow between frames that are
    closer than that is exact, and NaN where a tile is gone.

    ## Action space

    `Dict(continuous=Box(-1, 1, (2,)), discrete=MultiBinary(1))`, or with `action_mode="flat"` one
    `Box` of three.

    | index | name | meaning | at -1 | at +1 |
    |---|---|---|---|---|
    | 0 | `steering` | angle of the front wheels | 30 deg left | 30 deg right |
    | 1 | `throttle` | torque of the rear wheels | 1,900 N m backwards | 1,900 N m forwards |
    | 2 | `brake` | 3,000 N m of brake torque on each of the four wheels | - | on (0 is off) |

    ## Observation space

    `Box((13,), float32)` in Unity's frame (left-handed, x right, y up, z forward), origin on the
    road's middle line 10 m from its edge.

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | position of the car's centre of mass | m | x, y +-500, z +-25,000 |
    | 3-5 | forward direction | 1 | +-1 |
    | 6-8 | linear velocity | m/s | +-200 |
    | 9 | speed over 120 km/h, at most 1 | 1 | 0-1 |
    | 10 | steering in force | 1 | +-1 |
    | 11 | throttle in force | 1 | +-1 |
    | 12 | brake in force | 1 | 0 or 1 |

    ## Rewards

    Always 0.0.

    ## Starting state

    The car stands still in the inner right-hand lane, 10 m from the edge. The seed places and
    turns the trees.

    ## Episode end

    Terminated when the car's centre lies below z = -2 m (it went over the edge); truncated after
    `max_steps` (600: 10 s at 60 Hz).

    ## Arguments

    See `WorldEnv`. dt 1/240 s, control period 1/60 s.

    ## Reset options

    `view`, `camera`, `camera_motion`, `seed_space`: see `WorldEnv.reset`. Views: `follow` (behind
    the car; with its speed it pulls back by up to 3 m, looks further ahead, and its vertical field
    of view opens from 65 to 80 deg), `static` (the first hundred metres from the side, above the
    trees), `top` (the same from straight above), `first` (the driver's eye, which
    sees of the car its shadow only).

    ## Physical parameters

    From the paper: steering +-30 deg, rear drive, 3,000 N m of brake torque on each wheel, the
    120 km/h scale, the follow camera's +3 m and 65 to 80 deg (Unity's field of view is vertical).
    Ours: 1,400 kg, wheelbase 2.6 m, track 1.6 m, centre of mass 0.5 m high and midway; wheels
    r 0.34 m, 1.3 kg m2; springs 39.9 kN/m, dampers 3.0 kN s/m, anti-roll bars 12 (front) and 4
    (rear) kN/m; tyres by Pacejka's Magic Formula (B 9 front, 11 rear, C 1.9, E 0.97), friction 1.0
    on the road and 0.6 on grass, relaxation 0.35 m, rolling resistance 0.012; the brakes lock the
    wheels, whose sliding friction is 0.91 of the peak; engine 1,900 N m at the wheels and 150 kW, a
    limiter at 120 km/h; drag 0.42 N s2/m2; the front wheels turn at 120 deg/s; the steering angle
    is their mean by Ackermann's rule.

    ## Version history

    * v0: initial version.
    """

    ID = "WMEval/RacingCar-v0"
    PLAYER = "car"

    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        high = np.array([500, 500, 25_000, 1, 1, 1, 200, 200, 200, 1, 1, 1, 1], np.float32)
        low = -high
        low[[9, 12]] = 0
        return low, high

    def _compose(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Composition:
        return compose(int(rng.integers(2**31)))

    def _begin(self, scene: Scene) -> None:
        self._car = scene.index(self.PLAYER)

    def _observe(self, now: StateView) -> Observation:
        (px, py, pz), quaternion = now.pose(self._car)
        vx, vy, vz = now.velocity(self._car)[0]
        _, (fx, fy, fz), _ = axes(quaternion)
        ahead = (fx, fz, fy)
        speed = math.sqrt(vx * vx + vy * vy + vz * vz)
        out = (px, pz, py, *ahead, vx, vz, vy, min(speed / TOP_SPEED_MPS, 1.0))
        # Rounding must not lead out of the stated ranges.
        values = [*out[:3], *(min(max(a, -1.0), 1.0) for a in ahead), *out[6:]]
        return np.array([*values, *now.modal("controls")], np.float32)


# --- the car ------------------------------------------------------------------------------------


def chassis(position: Vec3 = START, **changes: Any) -> Body:
    """The car's body: solid but for the wheel arches, through which the wheels' rays look."""
    wide, narrow, high = 0.93, 0.62, 0.30
    ends, middle = (1.75, 2.20), 0.85
    parts = [(Box(half_extents=(wide, middle, high)), 0.0)]
    for side in (-1.0, 1.0):
        well, well_y = (ends[0] - middle) / 2, (ends[0] + middle) / 2
        nose, nose_y = (ends[1] - ends[0]) / 2, (ends[1] + ends[0]) / 2
        parts.append((Box(half_extents=(narrow, well, high)), side * well_y))
        parts.append((Box(half_extents=(wide, nose, high)), side * nose_y))
    body: dict[str, Any] = {
        "name": "car", "role": "player", "motion": "dynamic", "instance": 2, "mass": MASS,
        "friction": 0.4, "restitution": 0.1, "position": position,
        "visuals": model.sports_car().body,
        "collision": tuple(Collision(shape=s, position=(0.0, y, 0.0)) for s, y in parts),
    }  # fmt: skip
    return Body(**(body | changes))


def wheel_bodies(position: Vec3 = START) -> tuple[Body, ...]:
    """The four wheels, which are only shown."""
    looks = model.sports_car().wheel
    x, y, z = position
    bodies = []
    for i, name in enumerate(WHEELS):
        (wx, wy, wz), _ = model.rest_of_wheel(i)
        bodies.append(
            Body(
                name=f"wheel_{name}", role="wheel", motion="kinematic", instance=3 + i,
                visuals=looks[i % 2], position=(x + wx, y + wy, z + wz),
            )
        )  # fmt: skip
    return tuple(bodies)


def vehicle_params(**changes: JsonValue) -> dict[str, JsonValue]:
    """Parameters of the driver "vehicle": the car's data (class docstring)."""
    stiffness = _REST_LOAD / _SINK
    axle: dict[str, JsonValue] = {
        "half_track": model.HALF_TRACK,
        "mount": _MOUNT,
        "free": _MOUNT + model.COM_HEIGHT - model.WHEEL_RADIUS + _SINK,
        "stiffness": stiffness,
        "damping": 2 * 0.4 * math.sqrt(stiffness * MASS / 4),
    }
    params: dict[str, JsonValue] = {
        "body": "car",
        "wheels": [f"wheel_{name}" for name in WHEELS],
        "front": axle
        | {"forward": model.AXLE, "steered": True, "anti_roll": 12e3, "tyre_stiffness": 9.0},
        "rear": axle
        | {"forward": -model.AXLE, "driven": 1.0, "anti_roll": 4e3, "tyre_stiffness": 11.0},
        "radius": model.WHEEL_RADIUS,
        "wheel_inertia": 1.3,
        "travel": 0.2,
        "torque": 1900.0,
        "power": 150e3,
        "top_speed": TOP_SPEED_MPS,
        "brake_torque": 3000.0,
        "drag": 0.42,
    }
    return params | changes


# --- the road -----------------------------------------------------------------------------------


def compose(seed: int) -> Composition:
    """The world whose trees a seed places."""
    meshes: dict[str, MeshData] = dict(model.sports_car().meshes)
    pool, tiles = tile_pool(meshes)
    scene = Scene(
        name="RacingCar",
        bodies=(*land(), chassis(), *wheel_bodies(), *pool),
        materials=_MATERIALS,
        cameras=_CAMERAS,
        sun=Sun(direction=unit((0.42, 0.5, -0.75)), strength=3.0),
        sky=Sky(zenith=(0.14, 0.32, 0.72), horizon=(0.60, 0.73, 0.88), ground=(0.50, 0.68, 0.94),
                clouds=0.4),
        modal=modal_state(),
    )  # fmt: skip
    drivers = (
        DriverSpec(kind="vehicle", params=vehicle_params()),
        DriverSpec(
            kind="road",
            params={
                "body": "car", "tiles": tiles, "begin": BEGIN_M, "length": TILE_M,
                "behind": BEHIND, "seed": seed,
            },
        ),
        DriverSpec(
            kind="chase_camera",
            params={
                "camera": "follow", "body": "car", "distance": 6.0, "pull_back": 3.0,
                "height": 1.75, "ahead": 2.0, "shift": 6.0, "look_height": 0.45,
                "fov_deg": [65.0, 80.0], "full_speed": TOP_SPEED_MPS,
            },
        ),
        DriverSpec(
            kind="mounted_camera",
            params={
                "camera": "first", "body": "car", "eye": list(_EYE),
                "target": [_EYE[0], _EYE[1] + 10.0, _EYE[2] - 0.3],
            },
        ),
    )  # fmt: skip
    rules = EventRules(
        contact_roles=(("player", "rail"),),
        bounds=((-500.0, -500.0, -5.0), (500.0, FAR_M + 1000.0, 500.0)),
    )
    return Composition(scene, drivers, rules, meshes, EngineConfig(iterations=20))


def land() -> tuple[Body, ...]:
    """Meadow, roadbed and rails in one piece each, from the edge on; the tiles show the road."""
    half = (FAR_M - BEGIN_M) / 2
    middle = BEGIN_M + half

    def long_box(name: str, role: str, x: float, wide: float, top: float, thick: float,
                 **more: Any) -> Body:  # fmt: skip
        shape = Box(half_extents=(wide, half, thick / 2))
        body: dict[str, Any] = {
            "instance": 0, "collision": (Collision(shape=shape),),
            "position": (x, middle, top - thick / 2),
        }  # fmt: skip
        return Body(name=name, role=role, motion="static", **(body | more))

    def lip(x0: float, x1: float, top: float, name: str) -> Visual:
        """What closes the tiles' open ends at the edge; a centimetre below their surface."""
        return Visual(
            shape=Box(half_extents=((x1 - x0) / 2, 1.0, 0.14)), material=name,
            position=((x0 + x1) / 2, 1.0 - half, top - 0.012 - 0.14 + 0.25),
        )  # fmt: skip

    turf = Box(half_extents=(MEADOW_HALF_M, half, 0.5))
    soil = Box(half_extents=(MEADOW_HALF_M - 0.4, half - 0.4, 2.0))
    return (
        long_box(
            "meadow", "ground", 0.0, MEADOW_HALF_M, _MEADOW_TOP, 1.0, instance=1, friction=0.6,
            visuals=(
                Visual(shape=turf, material="meadow"),
                Visual(shape=soil, material="soil", position=(0.0, 0.0, -2.5)),
            ),
        ),
        long_box(
            "roadbed", "road", 0.0, highway.HALF_ROAD + 0.3, 0.0, 0.5, instance=7,
            visuals=(
                lip(-highway.HALF_ROAD, highway.HALF_ROAD, 0.0, "asphalt"),
                lip(-highway.STRIP[1], -highway.STRIP[0], 0.02, "mown"),
                lip(highway.STRIP[0], highway.STRIP[1], 0.02, "mown"),
            ),
        ),
        *(
            long_box(
                f"rail_{name}", "rail", side * (highway.RAIL + 0.08), 0.08, 0.76, 0.45,
                friction=0.5, restitution=0.3,
            )
            for name, side in (("left", -1.0), ("right", 1.0))
        ),
    )  # fmt: skip


def tile_pool(meshes: dict[str, MeshData]) -> tuple[list[Body], list[JsonValue]]:
    """Bodies of all slots, and what the driver "road" has to know of them.

    Args:
        meshes: the tiles' meshes are put into it.
    """

    def look(mesh: MeshData, name: str) -> Visual:
        key = mesh.content_hash()
        meshes[key] = mesh
        return Visual(shape=Mesh(sha256=key, convex=False), material=name)

    half = highway.HALF_ROAD
    road = (
        look(highway.slab(-half, half, TILE_M, 0.0, highway.SLAB), "asphalt"),
        look(highway.lane_marks(TILE_M), "paint"),
        look(highway.strips(TILE_M), "mown"),
    )
    rails = (look(highway.guard_rails(TILE_M), "rail"),)
    kinds = []
    for kind in range(TREE_KINDS):
        tree = highway.poplar(kind)
        kinds.append((look(tree.wood, "bark"), look(tree.crown, f"leaves_{kind % 2}")))
    bodies: list[Body] = []
    tiles: list[JsonValue] = []

    def part(
        name: str, role: str, instance: int, visuals: Sequence[tuple[Visual, ...]], place: Vec3,
        **more: JsonValue,
    ) -> None:  # fmt: skip
        names: list[JsonValue] = []
        for slot in range(SLOTS):
            names.append(f"{name}_{slot:02d}")
            bodies.append(
                Body(
                    name=f"{name}_{slot:02d}", role=role, motion="kinematic",
                    instance=instance + slot, visuals=visuals[slot % len(visuals)],
                    position=(place[0], BEGIN_M + slot * TILE_M + place[1], place[2]),
                    active=False,
                )
            )  # fmt: skip
        tiles.append({"names": names, "place": list(place), **more})

    part("road", "tile", 100, [road], (0.0, 0.0, 0.0))
    part("rails", "guard_rail", 100 + SLOTS, [rails], (0.0, 0.0, 0.0))
    number = 0
    for along in range(TREES_A_SIDE):
        for side in (-1.0, 1.0):
            place = (side * highway.TREES, (along + 0.5) * TILE_M / TREES_A_SIDE, _MEADOW_TOP)
            order = [kinds[(number + 3 * slot) % TREE_KINDS] for slot in range(SLOTS)]
            part(f"tree_{number}", "tree", 100 + (2 + number) * SLOTS, order, place,
                 spread=0.35, turned=True)  # fmt: skip
            number += 1
    return bodies, tiles


_MEADOW_TOP = -0.04
_EYE: Vec3 = (0.0, 0.25, 0.62)

_CAMERAS = (
    Camera(name="follow", position=(START[0], -6.0, 2.25), target=(START[0], 2.0, 0.95),
           fov_y_deg=65.0, near=0.2, far=900.0),
    Camera(name="static", position=(76.0, 33.0, 98.0), target=(0.0, 33.0, 0.0),
           fov_y_deg=22.5, near=1.0, far=900.0),
    Camera(name="top", position=(0.1, 33.0, 118.0), target=(0.0, 33.0, 0.0),
           fov_y_deg=23.5, near=1.0, far=900.0),
    Camera(name="first", position=(START[0], 0.0, 1.1), target=(START[0], 10.0, 0.5),
           fov_y_deg=60.0, near=0.05, far=900.0,
           # The car has no inside: its skin, seen from there, is a tub without a roof.
           hides=("car", *(f"wheel_{name}" for name in WHEELS))),
)  # fmt: skip

_MATERIALS = (
    material("meadow", "grass", (0.085, 0.17, 0.035), (0.16, 0.19, 0.055), uv_m=7.0,
             roughness=0.95, specular=0.05),
    material("soil", "noise", (0.15, 0.10, 0.065), (0.09, 0.062, 0.042), uv_m=6.0,
             roughness=0.95, specular=0.05),
    material("asphalt", "asphalt", (0.085, 0.086, 0.09), uv_m=2.6, roughness=0.9, specular=0.15),
    material("paint", "concrete", (0.62, 0.62, 0.60), (0.5, 0.5, 0.48), uv_m=3.0,
             roughness=0.7, specular=0.2),
    material("mown", "grass", (0.075, 0.21, 0.03), (0.10, 0.22, 0.04), uv_m=5.0,
             roughness=0.95, specular=0.05),
    material("rail", "brushed", (0.07, 0.074, 0.08), (0.045, 0.048, 0.052), uv_m=0.8,
             roughness=0.45, specular=0.6),
    material("bark", "bark", (0.16, 0.115, 0.075), (0.06, 0.043, 0.03), roughness=0.9,
             specular=0.05),
    material("leaves_0", "leaves", (0.018, 0.055, 0.012), (0.095, 0.19, 0.04), roughness=0.85,
             specular=0.1),
    material("leaves_1", "leaves", (0.016, 0.05, 0.014), (0.075, 0.17, 0.045), seed=1,
             roughness=0.85, specular=0.1),
    material("car_paint", "noise", (0.86, 0.55, 0.02), (0.84, 0.50, 0.015), uv_m=1.5,
             roughness=0.18, specular=0.8),
    material("car_stripe", "noise", (0.012, 0.012, 0.014), (0.02, 0.02, 0.022), uv_m=1.0,
             roughness=0.2, specular=0.6),
    material("car_dark", "noise", (0.02, 0.02, 0.022), (0.03, 0.03, 0.033), uv_m=0.6,
             roughness=0.6, specular=0.3),
    material("car_glass", "noise", (0.015, 0.02, 0.025), (0.03, 0.035, 0.04), uv_m=1.0,
             roughness=0.05, specular=1.0),
    material("car_lamp", "noise", (0.85, 0.86, 0.88), (0.7, 0.72, 0.76), uv_m=0.3,
             roughness=0.1, specular=0.9),
    material("car_tail", "noise", (0.55, 0.01, 0.01), (0.42, 0.008, 0.008), uv_m=0.2,
             roughness=0.15, specular=0.8),
    material("car_tyre", "noise", (0.02, 0.02, 0.02), (0.035, 0.034, 0.033), uv_m=0.4,
             roughness=0.85, specular=0.15),
    material("car_rim", "brushed", (0.42, 0.43, 0.45), (0.3, 0.31, 0.33), uv_m=0.4,
             roughness=0.25, specular=0.9),
    material("car_disc", "brushed", (0.2, 0.2, 0.2), (0.12, 0.12, 0.12), uv_m=0.3,
             roughness=0.4, specular=0.6),
)  # fmt: skip
