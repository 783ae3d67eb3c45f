"""ChessBoard: a mannequin walks, sprints and jumps among giant chess pieces and a chrome sphere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.chess import KINDS, piece_collision, piece_shape
from wmeval.assets.mannequin import SKELETON, STATURE_M, mannequin
from wmeval.envs.base import Composition, Observation, WorldEnv
from wmeval.envs.parts import block, material, unit, yaw
from wmeval.scene import (
    Body,
    Camera,
    Capsule,
    Collision,
    MeshData,
    Scene,
    Sky,
    Sphere,
    Sun,
    Vec3,
    Visual,
)
from wmeval.sim.drivers.character import grounded_modal
from wmeval.sim.drivers.gait import gait_modal
from wmeval.sim.protocol import DriverSpec, EngineConfig, EventRules, StateView
from wmeval.vectors import plus

SQUARE_M, SQUARES, BORDER_M = 3.0, 8, 1.2
BOARD_HEIGHT = 0.06
"""Of the board over the ground around it [m]."""
WALK_MPS, SPRINT_MPS, JUMP_MPS = 2.0, 5.0, 4.43
PLAYER_RADIUS, PLAYER_MASS = 0.28, 75.0
PLAYER_CENTRE = STATURE_M / 2
POLISHED = 0.2
"""Friction of sphere and pieces: who jumps onto one slides off."""
PLAYER_SQUARE = (-1.5, -1.5)
SPHERE_RADIUS, SPHERE_AT = 1.2, (1.5, 1.5)
FIXED = (
    ("white", "king", (-7.5, 7.5)), ("black", "knight", (-4.5, 1.5)),
    ("white", "bishop", (-1.5, 7.5)), ("black", "queen", (7.5, 7.5)),
    ("white", "rook", (-7.5, 4.5)), ("black", "pawn", (-4.5, 4.5)),
)  # fmt: skip
"""Pieces that stand in the same place in every scene: colour, kind, square's middle [m]."""
DEALT = (
    *(
        (colour, kind)
        for colour in ("white", "black")
        for kind in KINDS
        if (colour, kind) not in {(c, k) for c, k, _ in FIXED}
    ),
    *(("white", "pawn"), ("black", "pawn")) * 2,
)
"""Pieces that the seed deals to free squares."""
PIECES = len(FIXED) + len(DEALT)
CAMERA_OFFSET: Vec3 = (0.0, -4.9, 1.75)
CAMERA_LOOK_AT: Vec3 = (0.0, 0.0, 0.28)
CAMERA_RATE = 6.0
EYE: Vec3 = (0.0, 0.0, 0.765)
"""In the middle of the head, so that a turn of the eye is one in place."""


class ChessBoard(WorldEnv):
    """A gray mannequin walks on a giant chessboard among glossy pieces and a chrome sphere.

    ## Description

    A chessboard of 8 x 8 squares, 3 m each, lies under a flat gray sky. Glossy black and white
    pieces of all six kinds, 1.3 to 2.6 m high, stand on it, and a large chrome sphere near the
    middle mirrors board, pieces and character. The player is an artist's mannequin of 1.75 m, seen
    from behind, that walks, sprints and jumps; it cannot pass through pieces or sphere, pushes
    nothing and never falls over (paper, Appendix "Unity Scenes", ChessBoard).

    ## Action space

    `Dict(continuous=Box(-1, 1, (2,)), discrete=MultiBinary(2))`, or one `Box` of 4 with
    `action_mode="flat"`. The axes are the world's, whatever the character or the camera faces. An
    action holds for one control period.

    | index | name | meaning | at -1 | at 0 | at +1 |
    |---|---|---|---|---|---|
    | 0 | `move_x` | velocity asked for along Unity x (right) | -2 m/s | 0 | +2 m/s |
    | 1 | `move_z` | velocity asked for along Unity z (forward) | -2 m/s | 0 | +2 m/s |
    | 2 | `jump` | a press while grounded is one jump | - | no | press |
    | 3 | `sprint` | 5 m/s instead of 2 m/s | - | no | held |

    The two moves together ask for at most the full speed. Velocity follows with at most 9 m/s2 on
    the ground and 2.5 m/s2 in flight; the character turns to where it is told to move.

    ## Observation space

    `Box((8,), float32)` in Unity's frame (left-handed, x right, y up, z forward), origin in the
    middle of the board.

    | index | quantity | unit | range |
    |---|---|---|---|
    | 0-2 | position of the character's pivot, on the ground between its feet | m | +-200 |
    | 3-6 | rotation quaternion x, y, z, w; w >= 0 | 1 | +-1 |
    | 7 | grounded: 1 while a contact supports it | 1 | 0, 1 |

    ## Rewards

    0.0; the scene has no task.

    ## Starting state

    The character stands at (-1.5, -1.5) m, facing +z. The sphere (radius 1.2 m) and six pieces
    always stand in the same places. The seed deals ten more to free squares, at most one a square,
    and turns them; the squares beside the sphere and the player's ways forward, back and right stay
    free.

    ## Episode end

    Terminated when the character's centre lies below -2 m (it left the 160 m x 160 m ground);
    truncated after `max_steps` (900: 15 s at 60 Hz).

    ## Arguments

    See `WorldEnv`. dt 1/240 s, control period 1/60 s. `perturb`: friction scales the grip, gravity
    the flight, mass what the character's unchanged forces and its jump achieve; nothing here
    bounces, so restitution changes nothing.

    ## Reset options

    `view`, `camera`, `camera_motion`, `seed_space`: see `WorldEnv.reset`. Views: `follow` (behind
    and above the character, smoothed by 6 per second, world-fixed heading as a Cinemachine rig that
    nobody turns), `static` (the whole board), `top`, `first` (the character's eyes, which do
    not see itself but for its shadow and its image in the sphere).

    ## Physical parameters

    The paper gives none. Walking and sprinting speed as Unity's Starter Assets third-person
    controller (2 and about 5 m/s); jump at 4.43 m/s, 1 m high; character 75 kg in a capsule of
    radius 0.28 m; grip 1 on the board, 0.2 on sphere and pieces; a turn takes about 0.4 s: ours.
    Proportions of the mannequin: Drillis & Contini (1966). Gait: `wmeval.sim.drivers.strides`.
    Pieces: Staunton pattern, sizes ours.

    ## Version history

    * v0: initial version.
    """

    ID = "WMEval/ChessBoard-v0"
    PLAYER = "player"
    one_shot_channels = ("jump",)

    def _bounds(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        high = np.array([200.0] * 3 + [1.0] * 5, np.float32)
        low = -high
        low[7] = 0.0
        return low, high

    def _compose(self, rng: np.random.Generator, options: Mapping[str, Any]) -> Composition:
        return compose(deal(rng))

    def _begin(self, scene: Scene) -> None:
        self._figure = scene.index("player")

    def _observe(self, now: StateView) -> Observation:
        (x, y, z), (qw, qx, qy, qz) = now.pose(self._figure)
        (grounded,) = now.modal("grounded")
        # Unity's axes: x, z, y; the quaternion's vector is axial: det P = -1.
        sign = -1.0 if qw >= 0 else 1.0
        turn = (sign * qx, sign * qz, sign * qy, -sign * qw)
        return np.array((x, z - PLAYER_CENTRE, y, *turn, grounded), np.float32)


Placed = tuple[str, str, tuple[float, float], float]
"""Colour, kind, square's middle [m] and heading [deg] of a piece."""


def _free_squares() -> list[tuple[float, float]]:
    """Middles of the squares that the seed may use, by rows."""
    half = SQUARE_M * (SQUARES - 1) / 2
    lines = [SQUARE_M * i - half for i in range(SQUARES)]
    taken = {at for _, _, at in FIXED}
    out = []
    for y in lines:
        for x in lines:
            ahead = abs(x - PLAYER_SQUARE[0]) < 0.1 and -11 < y < 5
            aside = abs(y - PLAYER_SQUARE[1]) < 0.1 and x > -5
            near = math.dist((x, y), SPHERE_AT) < 4.0 or math.dist((x, y), PLAYER_SQUARE) < 4.0
            if not (near or ahead or aside or (x, y) in taken):
                out.append((x, y))
    return out


def deal(rng: np.random.Generator) -> list[Placed]:
    """All pieces of a scene: the fixed ones, and those dealt to free squares."""
    placed: list[Placed] = [
        (colour, kind, at, _towards(at, PLAYER_SQUARE)) for colour, kind, at in FIXED
    ]
    squares = _free_squares()
    chosen = rng.choice(len(squares), len(DEALT), replace=False).tolist()
    for (colour, kind), k in zip(DEALT, chosen, strict=True):
        placed.append((colour, kind, squares[k], float(rng.integers(8)) * 45.0))
    return placed


def _towards(a: tuple[float, float], b: tuple[float, float]) -> float:
    """Heading [deg] about the vertical that turns +y from a to b."""
    return math.degrees(math.atan2(-(b[0] - a[0]), b[1] - a[1]))


def compose(pieces: list[Placed]) -> Composition:
    """The world for given pieces."""
    figure = mannequin("mannequin", "joints")
    meshes: dict[str, MeshData] = dict(figure.meshes)
    half = SQUARE_M * SQUARES / 2
    rim = half + BORDER_M
    x0, y0 = PLAYER_SQUARE
    bodies = [
        block("ground", "ground", 1, material="ground", half=(80.0, 80.0, 0.5),
              position=(0.0, 0.0, -0.5 - BOARD_HEIGHT)),
        block("board", "board", 2, material="board", half=(half, half, 0.5),
              position=(0.0, 0.0, -0.5)),
        *(
            block(f"border_{k}", "border", 3 + k, material="border",
                  half=(0.5 * BORDER_M, half, 0.5) if dx else (rim, 0.5 * BORDER_M, 0.5),
                  position=(dx * (half + 0.5 * BORDER_M), dy * (half + 0.5 * BORDER_M), -0.5))
            for k, (dx, dy) in enumerate(((-1, 0), (1, 0), (0, -1), (0, 1)))
        ),
        Body(
            name="sphere", role="sphere", motion="static", instance=7,
            collision=(Collision(shape=Sphere(radius=SPHERE_RADIUS)),),
            visuals=(Visual(shape=Sphere(radius=SPHERE_RADIUS), material="chrome"),),
            friction=POLISHED, position=(*SPHERE_AT, SPHERE_RADIUS),
        ),
        Body(
            name="player", role="player", motion="dynamic", instance=8, mass=PLAYER_MASS,
            collision=(Collision(shape=Capsule(radius=PLAYER_RADIUS, height=STATURE_M)),),
            friction=0.0, upright=True, position=(x0, y0, PLAYER_CENTRE),
        ),
    ]  # fmt: skip
    for k, bone in enumerate(SKELETON):
        x, y, z = figure.positions[bone.name]
        bodies.append(
            Body(name=f"player_{bone.name}", role="player", motion="kinematic", instance=9 + k,
                 visuals=figure.visuals[bone.name], position=(x0 + x, y0 + y, z))
        )  # fmt: skip
    count: dict[str, int] = {}
    for k, (colour, kind, (x, y), turn) in enumerate(pieces):
        shape, made = piece_shape(kind)
        meshes |= made
        name = f"{colour}_{kind}"
        count[name] = number = count.get(name, 0) + 1
        bodies.append(
            Body(name=name if number == 1 else f"{name}_{number}", role="piece", motion="static",
                 instance=9 + len(SKELETON) + k, collision=piece_collision(kind),
                 visuals=(Visual(shape=shape, material=colour),),
                 friction=POLISHED, position=(x, y, 0.0), quaternion_wxyz=yaw(turn))
        )  # fmt: skip
    centre = (x0, y0, PLAYER_CENTRE)
    scene = Scene(
        name="ChessBoard",
        bodies=tuple(bodies),
        materials=_MATERIALS,
        cameras=(
            Camera(name="follow", position=plus(centre, CAMERA_OFFSET),
                   target=plus(centre, CAMERA_LOOK_AT), fov_y_deg=48.0),
            Camera(name="static", position=(-9.0, -19.0, 9.5), target=(0.0, 0.4, 0.0),
                   fov_y_deg=40.0),
            Camera(name="top", position=(0.0, -0.01, 38.0), target=(0.0, 0.0, 0.0),
                   fov_y_deg=42.0),
            Camera(name="first", position=plus(centre, EYE),
                   target=plus(centre, (0.0, 6.0, 0.4)), fov_y_deg=58.0,
                   hides=tuple(f"player_{bone.name}" for bone in SKELETON)),
        ),
        sun=Sun(direction=unit((0.5, 0.45, -0.9)), color=(1.0, 0.98, 0.95), strength=1.9,
                softness=0.05),
        sky=Sky(zenith=(0.50, 0.51, 0.53), horizon=(0.60, 0.61, 0.63), ground=(0.28, 0.28, 0.28),
                clouds=0.0),
        modal=(grounded_modal(), gait_modal("player_gait")),
    )  # fmt: skip
    return Composition(scene, _DRIVERS, _RULES, meshes, _CONFIG)


# --- parts --------------------------------------------------------------------------------------

_DRIVERS = (
    DriverSpec(
        kind="character",
        params={
            "body": "player",
            "modal": "grounded",
            "move": [0, 1],
            "jump": 2,
            "sprint": 3,
            "walk_speed": WALK_MPS,
            "sprint_speed": SPRINT_MPS,
            "jump_speed": JUMP_MPS,
            "sole": "player_foot_left",
            "mass": PLAYER_MASS,
        },
    ),
    DriverSpec(
        kind="gait",
        params={
            "root": "player",
            "prefix": "player_",
            "modal": "player_gait",
            "ground": PLAYER_CENTRE,
            "stature": STATURE_M,
            "grounded": "grounded",
            "jump_speed": JUMP_MPS,
        },
    ),
    DriverSpec(
        kind="follow_camera",
        params={
            "camera": "follow",
            "body": "player",
            "offset": list(CAMERA_OFFSET),
            "look_at": list(CAMERA_LOOK_AT),
            "mode": "smooth",
            "rate": CAMERA_RATE,
        },
    ),
    DriverSpec(
        kind="mounted_camera",
        params={"camera": "first", "body": "player", "eye": list(EYE), "target": [0.0, 6.0, 0.4]},
    ),
)
_RULES = EventRules(contact_roles=(("player", "piece"), ("player", "sphere")))
_CONFIG = EngineConfig(
    iterations=20,
    # Contacts are found and kept from 5 cm off: a sprint ends at a piece, not a centimetre in it.
    options={"contact_processing_threshold": 0.05, "contact_breaking_threshold": 0.05},
)

_MATERIALS = (
    material("ground", "speckle", (0.36, 0.36, 0.37), (0.34, 0.34, 0.35), (0.38, 0.38, 0.39),
             uv_m=7.0, roughness=0.9, specular=0.05),
    material("board", "checker", (0.60, 0.60, 0.58), (0.035, 0.035, 0.038),
             uv_m=2 * SQUARE_M, roughness=0.45, specular=0.35),
    material("border", "speckle", (0.10, 0.10, 0.105), (0.085, 0.085, 0.09), (0.13, 0.13, 0.135),
             uv_m=1.5, roughness=0.5, specular=0.3),
    material("chrome", "noise", (0.935, 0.945, 0.955), (0.925, 0.935, 0.945), repeat=6.0,
             roughness=0.02, specular=1.0, mirror=0.95),
    material("mannequin", "speckle", (0.33, 0.34, 0.36), (0.31, 0.32, 0.34), (0.36, 0.37, 0.39),
             roughness=0.42, specular=0.4),
    material("joints", "speckle", (0.12, 0.125, 0.13), (0.10, 0.10, 0.105), (0.15, 0.155, 0.16),
             roughness=0.35, specular=0.5),
    material("white", "marble", (0.74, 0.72, 0.67), (0.62, 0.60, 0.55),
             roughness=0.15, specular=0.8),
    material("black", "marble", (0.020, 0.020, 0.023), (0.032, 0.032, 0.037),
             roughness=0.12, specular=0.9),
)  # fmt: skip
