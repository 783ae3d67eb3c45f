"""BilliardGame: three-ball carom on a real table, struck by a cue."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.assets.billiards import CUSHION_TOP
from wmeval.clock import exact
from wmeval.envs.base import Composition, Observation, Time, WorldEnv
from wmeval.envs.billiard_room import (
    BALL_RADIUS,
    BALLS,
    CAMERAS,
    HALF_LENGTH,
    HALF_WIDTH,
    MATERIALS,
    REACH,
    SKY,
    SUN,
    bodies,
)
from wmeval.errors import UserError
from wmeval.scene import Scene
from wmeval.sim.drivers.cue import MODAL, places_are_free
from wmeval.sim.engines.carom_motion import BallState
from wmeval.sim.engines.carom_spec import ball_mechanics
from wmeval.sim.protocol import BodyMechanics, DriverSpec, EngineConfig, EventRules, StateView

MAX_FORCE_N = 1300.0
CONTACT_S = 1e-3
MISCUE = 0.5
APART_M, MARGIN_M = 0.25, 0.12

Place = tuple[float, float]

_MODELS = EngineConfig(options={"throw": "alciatore_a14", "cushion": "han_2005"})


class BilliardGame(WorldEnv):
    """Three-ball carom: place the balls, aim, strike with English, and watch the caroms.

    ## Description

    A white, a yellow and a red ball on a carom table without pockets (Union Mondiale de Billard:
    2.84 m x 1.42 m, balls of 61.5 mm) in a club room. The engine `carom` is event-driven: balls
    slide, roll and spin in closed form from one impact to the next, so that no motion depends on
    the substep, on the control rate or on when somebody looks; side spin, draw, follow,
    throw and cushions follow published models (paper, Appendix "Unity Scenes", BilliardGame).
    Only contacts and events know substeps: they are dated by the state that an impact led to, up
    to one dt after it.

    ## Action space

    `Dict(continuous=Box(-1, 1, (10,), float32), discrete=MultiBinary(2))`; with
    `action_mode="flat"` one `Box((12,))` whose last two lie in [0, 1] (above 1/2 is 1).

    | index | name | meaning | at -1 | at +1 |
    |---|---|---|---|---|
    | 0, 1 | `ball_0_x`, `ball_0_z` | place of the white cue ball | -1.3899, -0.6799 m | + |
    | 2, 3 | `ball_1_x`, `ball_1_z` | place of the yellow ball | -1.3899, -0.6799 m | + |
    | 4, 5 | `ball_2_x`, `ball_2_z` | place of the red ball | -1.3899, -0.6799 m | + |
    | 6 | `angle` | aim, from Unity +x towards Unity +z | 0 | 2 pi rad |
    | 7 | `force` | mean force of the tip over 1 ms | 0 N | 1300 N |
    | 8 | `hit_x` | where the tip hits, to the player's right | -0.5 R | +0.5 R |
    | 9 | `hit_y` | where the tip hits, upwards | -0.5 R | +0.5 R |
    | 10 | `execute` | a rise strikes | wait: 0 | strike: 1 |
    | 11 | `force_end` | ends the game | go on: 0 | end: 1 |

    Places at +-1 touch the cushions: half of the field less 30.1 mm (the nose touches a ball above
    its centre). While nothing moves and `execute` is 0 or has just risen, the balls go where the
    six numbers say whenever these are others than those tried last; all go or none: a placement
    in which balls overlap is refused, they keep their places, and `info` says so. An agent that
    only sends zeros asks for three balls in one place and so keeps the seed's placement.

    The hit point is clamped to the unit circle, which is the miscue limit, half the ball's radius.
    A shot gives the cue ball force x 1 ms, up to 6.19 m/s, along the aim, the cue held level, and
    the spin of the hit point; the small deviation called squirt is left out. A rise of `execute`
    while something moves strikes nothing. After a shot has come to rest the next may follow. A
    strike at `force` -1 (0 N) is a shot that moves nothing: it counts, and the next may follow at
    once.

    ## Observation space

    `Box((13,), float32)` in the table's frame and Unity's axes (left-handed, x along the table,
    y up, z across), origin in the middle of the cloth.

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | white cue ball: x, y, z | m | +-1.42, 0 to 0.1, +-0.71 |
    | 3-5 | yellow ball | m | as above |
    | 6-8 | red ball | m | as above |
    | 9 | cue pivot angle over 2 pi | 1 | 0 to 1 |
    | 10 | force setting | N | 0 to 1300 |
    | 11-12 | hit point, right and up | 1 | the unit circle |

    Before the first action the cue is set as by a zero action: angle pi, half force, centre.

    ## Rewards

    0.0, unless `reward="carom"`: 1 in the step in which the cue ball has first touched both other
    balls since the newest shot.

    ## Starting state

    Everything at rest. The seed places the three balls at least 0.25 m apart and 0.12 m off the
    cushions; the option `balls` places them instead.

    ## Episode end

    Terminated when `force_end` is 1: the balls stop where they are. Truncated after `max_steps`
    (600: 10 s at 60 Hz). An agent that draws from `action_space` sets `force_end` in half of its
    actions and so ends the game at once: let it hold 0, or choose when to end.

    ## Arguments

    See `WorldEnv`. dt 1/240 s, control period 1/60 s; the engine is `carom`. `perturb`: friction
    scales sliding and what balls and cushions rub off each other; rolling and spinning stay;
    restitution, at most 1.05, and mass are the balls', gravity is the cloth's. `mechanics` tells
    momentum and energy of each ball at any time exactly; at `info_level="full"` the info holds
    them for the newest state (`info["mechanics"]`). At every level but none, `info["game"]` holds
    `moving`, `placement_refused`, `shot_ignored`, `shots`, and, since the newest shot, whether the
    cue ball has `touched` yellow and red, and how many `cushions`.

    ## Reset options

    `balls`: three places [x, z] in metres, Unity's axes. `view`, `camera`, `camera_motion`,
    `seed_space`: see `WorldEnv.reset`. Views: `overhead` (fixed, the long side across the picture),
    `static` (the whole table from a corner of the room), `top` (the table with the floor around
    it), `first` (behind the cue, along the shot).

    ## Physical parameters

    Balls 0.21 kg, r 30.75 mm, nose of the cushions 37 mm above the cloth (UMB rules of play).
    Cloth: sliding 0.2, spin about the vertical slows by 10 rad/s2 (Alciatore's collected measured
    values: 0.15 to 0.4, 5 to 15); rolling 0.008 (0.005 to 0.015). Ball and ball: restitution 0.95
    (0.92 to 0.98), friction 0.01 + 0.108 exp(-1.088 v) (Alciatore's fit to Marlow). Ball and
    cushion: restitution 0.85, friction 0.2 (values ours, in the range of measured 0.6 to 0.9). The
    models of impacts are options of the engine, and rollouts say which were in force:
    `throw="alciatore_a14"` between balls, `cushion="han_2005"` (`metadata["engine_config"]`). The
    force, 1300 N over 1 ms, is ours: a hard break.

    ## Version history

    * v0: initial version.
    """

    ID = "WMEval/BilliardGame-v0"
    PLAYER = "cue_ball"
    OPTIONS = {"balls": "places of white, yellow and red ball, [[x, z], [x, z], [x, z]] in m"}  # noqa: RUF012
    REWARDS = {"carom": "1 when the cue ball has touched both other balls in one shot"}  # noqa: RUF012
    one_shot_channels = ("execute",)
    ending_channels = ("force_end",)
    tracked_roles = ("player", "ball")
    _MEMORY = ("_carom", "_scores")

    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        high = [HALF_LENGTH, 0.1, HALF_WIDTH] * 3 + [1.0, MAX_FORCE_N, 1.0, 1.0]
        low = [-HALF_LENGTH, 0.0, -HALF_WIDTH] * 3 + [0.0, 0.0, -1.0, -1.0]
        return np.array(low, np.float32), np.array(high, np.float32)

    def _compose(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Composition:
        drawn = default_places(rng)
        return compose(_places(options["balls"]) if "balls" in options else drawn)

    def _begin(self, scene: Scene) -> None:
        self._balls = [scene.index(name) for name in BALLS]
        self._carom = self._scores = False

    def _observe(self, now: StateView) -> Observation:
        pose = now.pose
        out: list[float] = []
        for body in self._balls:
            (x, y, z), _ = pose(body)
            out += (x, z, y)
        if self.reward is not None:
            one, two, _ = now.modal("touched")
            before, self._carom = self._carom, one > 0 and two > 0
            self._scores = self._carom and not before
        angle, force, right, up = now.modal("cue")
        out += (angle / (2.0 * math.pi), min(force, MAX_FORCE_N), right, up)
        return np.array(out, np.float32)

    def _terminated(self, now: StateView) -> bool:
        return now.modal("game")[3] > 0.0

    def _reward(self, name: str) -> float:
        return float(self._scores)

    def _side_info(self, now: StateView, step: int) -> Mapping[str, Any]:
        if self.info_level == "none":
            return {}
        moving, refused, ignored, _, _ = now.modal("game")
        info: dict[str, Any] = {
            "game": {
                "moving": moving > 0,
                "placement_refused": refused > 0,
                "shot_ignored": ignored > 0,
                "shots": int(now.modal("shot")[5]),
                "touched": [b > 0 for b in now.modal("touched")[:2]],
                "cushions": int(now.modal("touched")[2]),
            }
        }
        if self.info_level == "full":
            info["mechanics"] = mechanics_of(self.scene, now)
        return info

    # --- mechanics ------------------------------------------------------------------------------

    def mechanics(self, time: Time | None = None) -> dict[str, BodyMechanics]:
        """Momentum and kinetic energy of every ball at ANY time of the episode so far, exactly.

        It is that of the closed form: the time need not be that of a state.

        Args:
            time: [s]; None is now.

        Returns:
            By name of the ball: momentum (3,) [kg m/s] and angular momentum (3,) [kg m2/s] in the
            world's frame, translational and rotational energy [J].

        Raises:
            UserError: before the first reset, or a time outside the episode so far.
        """
        if self._world is None:
            raise UserError(f"{self.ID}: call reset() first")
        t = self.time if time is None else exact(time)
        if not 0 <= t <= self.time:
            raise UserError(f"{self.ID}: t = {time} s: the episode so far has 0 to {self.time} s")
        return self._world.mechanics(float(t))


def mechanics_of(scene: Scene, now: StateView) -> dict[str, BodyMechanics]:
    """Momentum and kinetic energy of every ball of a state, by name."""
    found = {}
    for name in BALLS:
        i = scene.index(name)
        (x, y, _), (linear, angular) = now.pose(i)[0], now.velocity(i)
        state = BallState(x, y, linear[0], linear[1], *angular)
        found[name] = ball_mechanics(state, scene.bodies[i].mass, BALL_RADIUS)
    return found


# --- placing ------------------------------------------------------------------------------------


def default_places(rng: np.random.Generator) -> list[Place]:
    """Places (x, y) [m] of the three balls, apart from each other and from the cushions."""
    places: list[Place] = []
    while len(places) < len(BALLS):
        x, y = (float(rng.uniform(-r + MARGIN_M, r - MARGIN_M)) for r in REACH)
        if all(math.hypot(x - a, y - b) > APART_M for a, b in places):
            places.append((x, y))
    return places


def _places(given: Any) -> list[Place]:
    """Checked places of the option ``balls``."""
    where = f"{BilliardGame.ID}: option balls"
    try:
        array = np.array(given, np.float64)
    except (TypeError, ValueError) as error:
        raise UserError(f"{where} = {given!r}: give three pairs of numbers: {error}") from error
    if array.shape != (3, 2) or not np.isfinite(array).all():
        raise UserError(f"{where} = {given!r}: give three places [x, z] in m")
    places: list[Place] = [(float(x), float(y)) for x, y in array]
    if not places_are_free([(x, y, 0.0) for x, y in places], REACH, BALL_RADIUS):
        raise UserError(
            f"{where} = {given!r}: balls overlap each other or a cushion: keep centres "
            f"{2 * BALL_RADIUS} m apart, |x| <= {REACH[0]:.6f} and |z| <= {REACH[1]:.6f} m"
        )
    return places


def compose(places: list[Place]) -> Composition:
    """The world for given places (x, y) [m] of white, yellow and red ball."""
    things, meshes = bodies(places)
    scene = Scene(
        name="BilliardGame",
        bodies=things,
        materials=MATERIALS,
        cameras=CAMERAS,
        sun=SUN,
        sky=SKY,
        modal=MODAL,
    )
    cue: dict[str, JsonValue] = {
        "balls": list(BALLS),
        "half": list(REACH),
        "newtons": MAX_FORCE_N,
        "contact_s": CONTACT_S,
        "miscue": MISCUE,
        "stick": "cue_stick",
        "camera": "first",
        "cushion": CUSHION_TOP + 0.003 - BALL_RADIUS,
    }
    rules = EventRules(
        contact_roles=(("player", "ball"), ("ball", "ball"), ("player", "cushion"),
                       ("ball", "cushion")),
        contact_gap=0.02,
    )  # fmt: skip
    return Composition(scene, (DriverSpec(kind="cue", params=cue),), rules, meshes, _MODELS)
