"""SunRisesAndSets: a breakfast table on a terrace while the sun turns around it."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.conventions import unity_camera_euler_degrees_of, unity_euler_degrees_of
from wmeval.envs.base import Composition, Observation, WorldEnv
from wmeval.envs.terrace import MATERIALS, terrace_bodies
from wmeval.errors import UserError
from wmeval.scene import Camera, Scene, Sky, Sun, Vec3
from wmeval.sim.drivers.sun import Sun as TurningSun
from wmeval.sim.drivers.sun import daylight, elevation_deg, light_direction, light_quaternion
from wmeval.sim.drivers.walking_orbit import WalkingOrbit, eye_at
from wmeval.sim.protocol import DriverSpec, EventRules, StateView

LIGHT_RATE_DEG_PER_S = 100.0
LIGHT_YAW_DEG = -30.0
START_TURN_DEG = 24.0
FIXED_AZIMUTH_DEG, FIXED_ELEVATION_DEG = 20.0, 36.0

LOOK_AT: Vec3 = (0.0, 0.0, 0.62)
ORBIT_YAW_DEG, ORBIT_PITCH_DEG, ORBIT_DISTANCE_M = 45.0, 30.0, 8.0

WALK_RADIUS_M, WALK_EYE_M, WALK_PERIOD_S, WALK_START_DEG = 2.9, 1.6, 12.0, 225.0

STATE_EVERY = 10
"""Decision steps between two scene states in ``info``."""
LIGHT_NAME, CAMERA_NAME = "Directional Light", "Main Camera"
_LUMINANCE = (0.2126, 0.7152, 0.0722)

LIGHTS = ("turning", "fixed")
CAMERA_PATHS = ("fixed", "walk", "walk_back")


class SunRisesAndSets(WorldEnv):
    """A laid breakfast table on a terrace: nothing moves but the sun, and with it all shadows.

    ## Description

    An outdoor tabletop scene: a round dining table with a toaster, a mug, a bowl, a plate, a knife
    and a lamp, and four chairs, on a wooden deck in a garden. One directional light turns about the
    world's X axis at 100 degrees a second: a day and a night take 3.6 s. Cast shadows sweep over
    the deck, long and soft when the sun is low; sunlight and sky pass through the hues of sunrise,
    day, sunset, dusk and a dim night (paper, Appendix "Unity Scenes", SunRisesAndSets). With
    `light="fixed"` the sun stands still, and with `camera_path="walk"` the first-person camera
    walks around the table with its eyes on it: the regime of the lighting metrics.

    The lamp on the table is an object like the others; it is never lit.

    ## Action space

    `Box(-1, 1, (0,), float32)`: there is nothing to do. Every step passes one control period.

    ## Observation space

    `Box((9,), float32)` in Unity's frame (left-handed, x right, y up, z forward), origin on the
    deck under the table's middle.

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | camera position | m | +-20 |
    | 3-5 | point that it looks at, over the table unless a `camera_motion` turns away | m | +-20 |
    | 6-8 | Euler angles of the light, Unity's ZXY order | deg | +-180 |

    The light's orientation is `R_X(turn) R_Y(-30) R_X(0)`, turn = 24 + 100 t degrees by default:
    24 degrees after sunrise (an elevation of 20.6 degrees) at t = 0, noon at 60 degrees of
    elevation, sunset 1.56 s after the start.

    ## Side channel

    Every ten decision steps, from the reset on, `info["scene_state"]` holds a JSON text, whatever
    the info level (paper, "Observation space"): `step`, `time` [s], `objects` (every body's and the
    camera's `name`, `position` [m] and `euler` [deg] in Unity's frame), and `light` (`name`,
    `intensity`: luminance of its linear colour, and `euler` [deg]).

    ## Rewards

    0.0; there is no task.

    ## Starting state

    The same for every seed: nothing in this scene is drawn at random.

    ## Episode end

    Never terminated; truncated after `max_steps` (720: 12 s at 60 Hz).

    ## Arguments

    See `WorldEnv`. dt 1/240 s, control period 1/60 s. `perturb`: no factor changes anything: there
    are neither forces nor actions.

    ## Reset options

    `light`, `turn_deg`, `azimuth_deg`, `elevation_deg`, `camera_path`, `bob_m`: see `OPTIONS`. A
    fixed light stands by default at an azimuth of 20 degrees and an elevation of 36 degrees. A walk
    rounds the table in 12 s: 2.9 m from its middle, eyes at 1.6 m, 1.5 m/s, counter-clockwise seen
    from above (`walk_back`: clockwise), from the orbit camera's side; `bob_m` lifts the head 24
    times a round. The observation's camera is then the walking one; look through it with
    `view="first"`.

    `view`, `camera`, `camera_motion`, `seed_space`: see `WorldEnv.reset`. Views: `orbit` (yaw 45
    degrees, pitch 30 degrees, 8 m from the look-at point), `first` (the walker's), `static` (low,
    with the horizon and the evening sky), `top`.

    ## Physical parameters

    Turning rate, camera and observation are the paper's; the rest is ours. Table 1.6 m across and
    0.75 m high, seats at 0.46 m, deck 9.2 m wide. Colours of light and sky by the sun's height:
    `wmeval.sim.drivers.sun.KEYS`.

    ## Version history

    * v0: initial version.
    """

    ID = "WMEval/SunRisesAndSets-v0"
    OPTIONS = {  # noqa: RUF012
        "light": "turning (default): 100 degrees a second about world X; fixed: stands still",
        "turn_deg": "turning light: how far it has turned at t = 0 [deg]; 0 is sunrise, 180 sunset",
        "azimuth_deg": "fixed light: direction to the sun, clockwise from Unity's forward [deg]",
        "elevation_deg": "fixed light: height of the sun [deg], -90..90",
        "camera_path": "the observed camera: fixed (the orbit point), walk or walk_back",
        "bob_m": "walking: height by which each step lifts the head [m], 0..0.2",
    }

    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        high = np.array([20.0] * 6 + [180.0] * 3, np.float32)
        return -high, high

    def _compose(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Composition:
        light = _one_of("light", options.get("light", "turning"), LIGHTS)
        path = _one_of("camera_path", options.get("camera_path", "fixed"), CAMERA_PATHS)
        stray = [n for n in ("azimuth_deg", "elevation_deg") if n in options and light != "fixed"]
        stray += ["turn_deg"] if "turn_deg" in options and light == "fixed" else []
        stray += ["bob_m"] if "bob_m" in options and path == "fixed" else []
        if stray:
            raise UserError(
                f"{self.ID}: option {stray[0]} says nothing with light {light!r} and camera_path "
                f"{path!r}: leave it out or choose another"
            )
        if light == "turning":
            turn = _number("turn_deg", options.get("turn_deg", START_TURN_DEG), -3600, 3600)
            sun = {"rate_deg_per_s": LIGHT_RATE_DEG_PER_S, "turn_deg": turn,
                   "yaw_deg": LIGHT_YAW_DEG, "pitch_deg": 0.0}  # fmt: skip
        else:
            azimuth = options.get("azimuth_deg", FIXED_AZIMUTH_DEG)
            azimuth = _number("azimuth_deg", azimuth, -360, 360)
            height = options.get("elevation_deg", FIXED_ELEVATION_DEG)
            height = _number("elevation_deg", height, -90, 90)
            sun = {"rate_deg_per_s": 0.0, "turn_deg": 0.0, "yaw_deg": azimuth - 180.0,
                   "pitch_deg": height}  # fmt: skip
        walk = WalkingOrbit.Params(
            camera="first",
            target=LOOK_AT,
            radius=WALK_RADIUS_M,
            eye_height=WALK_EYE_M,
            period=WALK_PERIOD_S,
            start_deg=WALK_START_DEG,
            forward=path != "walk_back",
            bob=_number("bob_m", options.get("bob_m", 0.0), 0.0, 0.2),
        )
        return compose(sun, walk)

    def _begin(self, scene: Scene) -> None:
        # From the options, not from `_compose`: a fork begins without composing.
        walks = self.options.get("camera_path", "fixed") != "fixed"
        self._camera = [c.name for c in scene.cameras].index("first" if walks else "orbit")
        sun = next(d.params for d in self.world_spec.drivers if d.kind == "sun")
        light = TurningSun.Params.model_validate(sun)
        self._yaw, self._pitch = light.yaw_deg, light.pitch_deg
        self._turns = light.rate_deg_per_s != 0.0

    def _light_euler(self, now: StateView) -> tuple[float, float, float]:
        """Unity Euler angles [deg] of the light that shines along the sun's direction."""
        (_, y, z), _ = now.sun()
        turn = math.degrees(math.atan2(-z, y)) if self._turns else 0.0
        return unity_euler_degrees_of(light_quaternion(turn, self._yaw, self._pitch))

    def _observe(self, now: StateView) -> Observation:
        pose = now.camera(self._camera)
        tx, ty, tz = _looked_at(pose)
        # Unity's axes: x, z, y.
        return np.array(
            (pose[3], pose[11], pose[7], tx, tz, ty, *self._light_euler(now)), np.float32
        )

    def _side_info(self, now: StateView, step: int) -> Mapping[str, Any]:
        return {} if step % STATE_EVERY else {"scene_state": self._scene_state(now, step)}

    def _scene_state(self, now: StateView, step: int) -> str:
        """The side channel's JSON text of one state."""
        objects = []
        for index, body in enumerate(self.scene.bodies):
            (x, y, z), turn = now.pose(index)
            objects.append(
                {"name": body.name, "position": [x, z, y], "euler": unity_euler_degrees_of(turn)}
            )
        a, b, c, x, d, e, f, y, g, h, i, z = now.camera(self._camera)[:12]
        rows = ((a, b, c, x), (d, e, f, y), (g, h, i, z), (0.0, 0.0, 0.0, 1.0))
        euler = unity_camera_euler_degrees_of(rows)
        objects.append({"name": CAMERA_NAME, "position": [x, z, y], "euler": euler})
        _, color = now.sun()
        intensity = sum(w * v for w, v in zip(_LUMINANCE, color, strict=True))
        light = {"name": LIGHT_NAME, "intensity": intensity, "euler": self._light_euler(now)}
        time = float(step * self.clock.control_period)
        return json.dumps({"step": step, "time": time, "objects": objects, "light": light})


def orbit_position() -> Vec3:
    """The orbit camera's place [m] (paper: yaw 45 degrees, pitch 30 degrees, 8 m)."""
    yaw, pitch = math.radians(ORBIT_YAW_DEG), math.radians(ORBIT_PITCH_DEG)
    x, y, z = LOOK_AT
    out = ORBIT_DISTANCE_M * math.cos(pitch)
    return (
        x - out * math.sin(yaw),
        y - out * math.cos(yaw),
        z + ORBIT_DISTANCE_M * math.sin(pitch),
    )


def compose(sun: Mapping[str, JsonValue], walk: WalkingOrbit.Params) -> Composition:
    """The world for given parameters of the light and of the walk."""
    bodies, meshes = terrace_bodies()
    start = TurningSun.Params.model_validate(sun)
    direction = light_direction(start.turn_deg, start.yaw_deg, start.pitch_deg)
    color, zenith, horizon, ground = daylight(elevation_deg(direction))
    scene = Scene(
        name="SunRisesAndSets",
        bodies=bodies,
        materials=MATERIALS,
        cameras=(
            Camera(name="orbit", position=orbit_position(), target=LOOK_AT, fov_y_deg=32.0,
                   far=400.0),
            Camera(name="first", position=eye_at(walk, 0.0), target=LOOK_AT, fov_y_deg=60.0,
                   far=400.0),
            Camera(name="static", position=(-4.3, -2.6, 1.75), target=(0.4, 0.55, 0.80),
                   fov_y_deg=46.0, far=400.0),
            Camera(name="top", position=(0.0, -0.01, 9.5), target=(0.0, 0.0, 0.0),
                   fov_y_deg=44.0, far=400.0),
        ),
        sun=Sun(direction=direction, color=color, strength=1.0, softness=0.03, reach=8.0),
        sky=Sky(zenith=zenith, horizon=horizon, ground=ground, clouds=0.3),
    )  # fmt: skip
    drivers = (
        DriverSpec(kind="sun", params=dict(sun)),
        DriverSpec(kind="walking_orbit", params=walk.model_dump(mode="json")),
    )
    return Composition(scene, drivers, EventRules(), meshes)


def _looked_at(pose: tuple[float, ...]) -> Vec3:
    """The point that a camera (sixteen numbers) looks at: as far ahead as the table's is away.

    A regime that turns the camera (`camera_motion`) takes the point with it.
    """
    x, y, z = pose[3], pose[7], pose[11]
    away = math.dist((x, y, z), LOOK_AT)
    point = (x + away * pose[2], y + away * pose[6], z + away * pose[10])
    return LOOK_AT if math.dist(point, LOOK_AT) < 1e-9 else point


# --- parts --------------------------------------------------------------------------------------


def _one_of(name: str, value: Any, known: tuple[str, ...]) -> str:
    if value not in known:
        raise UserError(
            f"{SunRisesAndSets.ID}: option {name} = {value!r}: choose from {', '.join(known)}"
        )
    return str(value)


def _number(name: str, value: Any, low: float, high: float) -> float:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not number or not low <= value <= high:
        raise UserError(
            f"{SunRisesAndSets.ID}: option {name} = {value!r}: give a number in {low:g}..{high:g}"
        )
    return float(value)
