"""A carom table in a club room: bodies, looks, meshes, cameras."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

from wmeval.assets.billiards import CUSHION_TOP, CUSHION_WIDTH, cue_pieces, cushion, table_leg
from wmeval.conventions import axis_angle_quaternion
from wmeval.envs.parts import ball, material, yaw
from wmeval.scene import (
    Body,
    Box,
    Camera,
    Collision,
    Cylinder,
    Material,
    Mesh,
    MeshData,
    Meshes,
    Quat,
    Sky,
    Sphere,
    Sun,
    Vec3,
    Visual,
)

HALF_LENGTH, HALF_WIDTH = 1.42, 0.71
"""Half of the playing field [m] (Union Mondiale de Billard: 2.84 m x 1.42 m, nose to nose)."""
NOSE_M = 0.037
"""Height of the cushions (UMB: 36 to 37 mm)."""
BALL_RADIUS, BALL_MASS = 0.03075, 0.21
"""UMB: 61 to 61.5 mm, 205 to 220 g."""
CLOTH_ABOVE_FLOOR = 0.78
RAIL_WIDTH = 0.125
"""From the nose to the outer edge [m]."""
_NOSE_SINE = (NOSE_M - BALL_RADIUS) / BALL_RADIUS
TOUCH_M = BALL_RADIUS * math.sqrt(1.0 - _NOSE_SINE**2)
"""From the nose's line to the centre of a ball that touches it: less than the radius."""
REACH = (HALF_LENGTH - TOUCH_M, HALF_WIDTH - TOUCH_M)
"""Half of the field of the balls' centres [m]."""

SLIDING, ROLLING_M, CUSHION_FRICTION = 0.2, 0.008 * BALL_RADIUS, 0.2
BALL_BALL_E, BALL_CUSHION_E = 0.95, 0.85
BALLS = ("cue_ball", "yellow_ball", "red_ball")
_BALL_E = math.sqrt(BALL_BALL_E)

ROOM_X, ROOM_Y, ROOM_Z = 4.5, 4.0, 2.9
_FLOOR = -CLOTH_ABOVE_FLOOR


def bodies(places: Sequence[tuple[float, float]]) -> tuple[tuple[Body, ...], Meshes]:
    """Everything in the room, and its meshes.

    Args:
        places: (x, y) [m] of cue, yellow and red ball.
    """
    before, after, meshes = _furniture()
    balls = tuple(
        ball(name, "player" if i == 0 else "ball", 10 + i, material=name, radius=BALL_RADIUS,
             mass=BALL_MASS, friction=1.0, restitution=_BALL_E, position=(x, y, BALL_RADIUS))
        for i, (name, (x, y)) in enumerate(zip(BALLS, places, strict=True))
    )  # fmt: skip
    return (*before, *balls, *after), dict(meshes)


@lru_cache(maxsize=1)
def _furniture() -> tuple[tuple[Body, ...], tuple[Body, ...], Meshes]:
    """All that is the same in every episode: what the balls meet, the rest, and its meshes."""
    meshes: dict[str, MeshData] = {}
    meets = (_bed(), *_cushions(meshes))
    return meets, (_stick(meshes), *_rails(), _frame(meshes), *_room()), meshes


# --- the table ----------------------------------------------------------------------------------


def _bed() -> Body:
    half = (HALF_LENGTH + CUSHION_WIDTH, HALF_WIDTH + CUSHION_WIDTH, 0.025)
    spot = Cylinder(radius=0.003, height=0.0006)
    spots = [(-0.71, 0.0), (0.0, 0.0), (0.71, 0.0), (0.71, 0.1825), (0.71, -0.1825)]
    return Body(
        name="bed", role="bed", motion="static", instance=1,
        collision=(Collision(shape=Box(half_extents=half)),),
        visuals=(
            Visual(shape=Box(half_extents=half), material="cloth"),
            *(
                Visual(shape=spot, material="chalk", position=(x, y, half[2] + 0.0002))
                for x, y in spots
            ),
        ),
        position=(0.0, 0.0, -half[2]), friction=SLIDING, rolling_friction=ROLLING_M,
    )  # fmt: skip


# name, turn [deg] of the cushion's own frame (nose towards +y), half of its length
_SIDES = (
    ("right", 90.0, HALF_WIDTH, HALF_LENGTH),
    ("left", -90.0, HALF_WIDTH, HALF_LENGTH),
    ("near", 0.0, HALF_LENGTH, HALF_WIDTH),
    ("far", 180.0, HALF_LENGTH, HALF_WIDTH),
)


def _outwards(turn: float, distance: float) -> tuple[float, float]:
    """Place at a distance from the middle behind a cushion's nose."""
    a = math.radians(turn - 90.0)
    return round(math.cos(a), 12) * distance, round(math.sin(a), 12) * distance


def _cushions(meshes: dict[str, MeshData]) -> list[Body]:
    found = []
    for i, (name, turn, half, distance) in enumerate(_SIDES):
        mesh = _kept(meshes, cushion(half, NOSE_M))
        depth = CUSHION_WIDTH / 2
        x, y = _outwards(turn, distance + depth)
        found.append(
            Body(
                name=f"cushion_{name}", role="cushion", motion="static", instance=2 + i,
                collision=(Collision(shape=Box(half_extents=(half, depth, 0.001))),),
                visuals=(
                    Visual(shape=mesh, material="cushion_cloth", position=(0.0, depth, -NOSE_M)),
                ),
                position=(x, y, NOSE_M), quaternion_wxyz=yaw(turn),
                friction=CUSHION_FRICTION, restitution=BALL_CUSHION_E / _BALL_E,
            )
        )  # fmt: skip
    return found


def _rails() -> list[Body]:
    """Wood behind the cushions, with sights (an eighth of the length apart) and an apron."""
    wide = (RAIL_WIDTH - CUSHION_WIDTH) / 2
    top = CUSHION_TOP + 0.002
    high = 0.05
    sight = Box(half_extents=(0.009, 0.009, 0.0012))
    diamond = yaw(45.0)
    found = []
    for i, (name, turn, half, distance) in enumerate(_SIDES):
        long = half == HALF_LENGTH
        length = half + (RAIL_WIDTH if long else CUSHION_WIDTH)
        x, y = _outwards(turn, distance + CUSHION_WIDTH + wide)
        count = 8 if long else 4
        marks = [2 * half * k / count - half for k in range(count + 1)]
        plank = Box(half_extents=(length, wide, high), bevel=0.006)
        apron = Box(half_extents=(length - (0.03 if long else 0.0), 0.014, 0.075), bevel=0.004)
        visuals = [
            Visual(shape=plank, material="rail_wood", position=(0.0, 0.0, -high)),
            Visual(shape=apron, material="dark_wood", position=(0.0, -wide + 0.045, -0.165)),
            *(
                Visual(shape=sight, material="pearl", position=(x, 0.0, 0.0002),
                       quaternion_wxyz=diamond)
                for x in marks
            ),
        ]  # fmt: skip
        found.append(
            Body(
                name=f"rail_{name}", role="rail", motion="static", instance=6 + i,
                visuals=tuple(visuals), position=(x, y, top), quaternion_wxyz=yaw(turn),
            )
        )  # fmt: skip
    return found


def _frame(meshes: dict[str, MeshData]) -> Body:
    """Slate, beams and six turned legs."""
    height = CLOTH_ABOVE_FLOOR - 0.13
    leg = _kept(meshes, table_leg(height))
    feet = [(x, y) for x in (-1.28, 0.0, 1.28) for y in (-0.62, 0.62)]
    slate = Box(half_extents=(HALF_LENGTH + 0.06, HALF_WIDTH + 0.06, 0.04))
    beam = Box(half_extents=(HALF_LENGTH - 0.02, 0.05, 0.06), bevel=0.005)
    return Body(
        name="table_frame", role="table", motion="static", instance=13,
        visuals=(
            Visual(shape=slate, material="dark_wood", position=(0.0, 0.0, 0.69)),
            *(
                Visual(shape=beam, material="dark_wood", position=(0.0, y, 0.59))
                for y in (-0.62, 0.62)
            ),
            *(Visual(shape=leg, material="dark_wood", position=(x, y, 0.0)) for x, y in feet),
        ),
        position=(0.0, 0.0, _FLOOR),
    )  # fmt: skip


def _stick(meshes: dict[str, MeshData]) -> Body:
    """The cue: the tip at its origin, pointing along +x. Nothing touches it."""
    forward = _quat((0.0, 1.0, 0.0), 90.0)
    return Body(
        name="cue_stick", role="cue", motion="kinematic", instance=14,
        visuals=tuple(
            Visual(shape=_kept(meshes, mesh), material=f"cue_{name}", quaternion_wxyz=forward)
            for name, mesh in cue_pieces()
        ),
        position=(0.0, 0.0, 0.6),
    )  # fmt: skip


# --- the room -----------------------------------------------------------------------------------


def _room() -> list[Body]:
    x, y, z = ROOM_X, ROOM_Y, ROOM_Z
    rug = Box(half_extents=(2.35, 1.6, 0.006))
    found = [
        _picture("floor", "ground", 15, (0.0, 0.0, _FLOOR),
                 [(Box(half_extents=(x, y, 0.05)), "floor_wood", (0.0, 0.0, -0.05)),
                  (rug, "rug", (0.0, 0.0, 0.006))]),
    ]  # fmt: skip
    sides = (
        ("wall_right", (x, 0.0), 90.0, y), ("wall_left", (-x, 0.0), -90.0, y),
        ("wall_near", (0.0, -y), 0.0, x), ("wall_far", (0.0, y), 180.0, x),
    )  # fmt: skip
    for i, (name, (px, py), turn, half) in enumerate(sides):
        body = _picture(
            name, "wall", 16 + i, (px, py, _FLOOR),
            [
                (Box(half_extents=(half, 0.05, z / 2)), "wall", (0.0, -0.05, z / 2)),
                (Box(half_extents=(half, 0.02, 0.5), bevel=0.004), "panel", (0.0, 0.0, 0.5)),
                (Box(half_extents=(half, 0.03, 0.03), bevel=0.006), "dark_wood", (0.0, 0.01, 1.0)),
                *_decoration(name, half),
            ],
        )  # fmt: skip
        found.append(body.model_copy(update={"quaternion_wxyz": yaw(turn)}))
    return found


_Piece = tuple[Box | Cylinder | Sphere, str, Vec3]


def _decoration(wall: str, half: float) -> list[_Piece]:
    """Pilasters on the panels; pictures, a board, a rack of cues."""
    pieces: list[_Piece] = []
    count = round(half / 0.55)
    for k in range(-count, count + 1):
        place = (k * half / (count + 0.5), 0.015, 0.5)
        pieces.append((Box(half_extents=(0.035, 0.015, 0.42), bevel=0.003), "dark_wood", place))
    if wall in ("wall_far", "wall_near"):
        for x, picture in ((-1.9, "picture_0"), (0.0, "picture_1"), (1.9, "picture_2")):
            pieces.append((Box(half_extents=(0.46, 0.02, 0.34), bevel=0.006), "rail_wood",
                           (x, 0.01, 1.65)))  # fmt: skip
            pieces.append((Box(half_extents=(0.40, 0.012, 0.28)), picture, (x, 0.025, 1.65)))
        for x in (-0.95, 0.95):
            pieces.append((Box(half_extents=(0.05, 0.012, 0.11), bevel=0.008), "brass",
                           (x, 0.01, 1.62)))  # fmt: skip
            pieces.append((Cylinder(radius=0.010, height=0.16), "brass", (x, 0.09, 1.66)))
            pieces.append((Sphere(radius=0.085), "milk_glass", (x, 0.09, 1.80)))
    if wall == "wall_left":
        pieces.append((Box(half_extents=(0.62, 0.02, 0.42), bevel=0.006), "rail_wood",
                       (0.9, 0.01, 1.6)))  # fmt: skip
        pieces.append((Box(half_extents=(0.56, 0.012, 0.36)), "slate_board", (0.9, 0.025, 1.6)))
        pieces += _rack(-1.1)
    if wall == "wall_right":
        for x in (-1.3, 1.3):
            pieces.append((Box(half_extents=(0.5, 0.02, 0.62), bevel=0.006), "rail_wood",
                           (x, 0.01, 1.72)))  # fmt: skip
            pieces.append((Box(half_extents=(0.43, 0.012, 0.55)), "picture_3", (x, 0.025, 1.72)))
    return pieces


def _rack(x: float) -> list[_Piece]:
    """Cues in a wall rack."""
    pieces: list[_Piece] = [
        (Box(half_extents=(0.45, 0.03, 0.04), bevel=0.005), "rail_wood", (x, 0.03, 1.18)),
        (Box(half_extents=(0.45, 0.02, 0.03), bevel=0.005), "rail_wood", (x, 0.02, 2.2)),
    ]
    for k in range(6):
        place = (x - 0.36 + 0.144 * k, 0.045, 1.55)
        pieces.append((Cylinder(radius=0.012, height=0.7), "cue_butt", place))
        pieces.append((Cylinder(radius=0.008, height=0.7), "cue_shaft", (place[0], 0.045, 2.25)))
    return pieces


def _picture(name: str, role: str, instance: int, position: Vec3, pieces: list[_Piece]) -> Body:
    """A static body that is only seen."""
    return Body(
        name=name, role=role, motion="static", instance=instance, position=position,
        visuals=tuple(Visual(shape=s, material=m, position=p) for s, m, p in pieces),
    )  # fmt: skip


def _kept(meshes: dict[str, MeshData], mesh: MeshData) -> Mesh:
    sha = mesh.content_hash()
    meshes[sha] = mesh
    return Mesh(sha256=sha)


def _quat(axis: Vec3, degrees: float) -> Quat:
    w, x, y, z = axis_angle_quaternion(axis, math.radians(degrees)).tolist()
    return (w, x, y, z)


# --- light, cameras, looks ----------------------------------------------------------------------

CAMERAS = (
    # A vertical view has no up; it leans by half a degree. The long side lies across the picture.
    Camera(name="overhead", position=(0.0, -0.025, 2.42), target=(0.0, 0.0, 0.0), fov_y_deg=39.6),
    Camera(name="static", position=(2.35, -2.2, 1.42), target=(0.02, -0.02, -0.12), fov_y_deg=37.0),
    Camera(name="top", position=(0.0, -0.03, 4.2), target=(0.0, 0.0, 0.0), fov_y_deg=43.0),
    Camera(name="first", position=(1.0, 0.0, 0.39), target=(0.0, 0.0, BALL_RADIUS), fov_y_deg=50.0,
           near=0.05),
)  # fmt: skip

SUN = Sun(direction=(0.13, 0.22, -0.967), color=(1.0, 0.90, 0.74), strength=2.45, softness=0.06,
          reach=2.2)  # fmt: skip
"""The lamps over the table: from one side, warm, soft."""
SKY = Sky(zenith=(0.70, 0.64, 0.55), horizon=(0.80, 0.71, 0.58), ground=(0.52, 0.45, 0.37),
          clouds=0.0)  # fmt: skip
"""The ceiling."""

MATERIALS: tuple[Material, ...] = (
    material("cloth", "noise", (0.048, 0.148, 0.235), (0.058, 0.166, 0.258), uv_m=0.9,
             roughness=0.97, specular=0.04),
    material("cushion_cloth", "noise", (0.042, 0.134, 0.216), (0.052, 0.152, 0.240), uv_m=0.9,
             roughness=0.97, specular=0.04),
    material("chalk", "noise", (0.02, 0.03, 0.04), (0.03, 0.04, 0.05), roughness=0.9),
    material("cue_ball", "ball_panels", (0.90, 0.88, 0.80), (0.84, 0.82, 0.73), (0.72, 0.06, 0.05),
             seed=1, roughness=0.10, specular=0.9),
    material("yellow_ball", "ball_panels", (0.92, 0.60, 0.03), (0.84, 0.50, 0.02),
             (0.55, 0.07, 0.02), seed=2, roughness=0.10, specular=0.9),
    material("red_ball", "ball_panels", (0.66, 0.018, 0.02), (0.55, 0.012, 0.015),
             (0.92, 0.80, 0.66), seed=3, roughness=0.10, specular=0.9),
    material("rail_wood", "wood", (0.27, 0.10, 0.04), (0.13, 0.045, 0.018), uv_m=0.9,
             roughness=0.5, specular=0.18),
    material("dark_wood", "wood", (0.13, 0.055, 0.028), (0.06, 0.025, 0.014), uv_m=0.8,
             roughness=0.4, specular=0.4),
    material("pearl", "marble", (0.86, 0.85, 0.80), (0.70, 0.70, 0.68), roughness=0.15,
             specular=0.8),
    material("floor_wood", "planks", (0.22, 0.105, 0.05), (0.12, 0.055, 0.025), uv_m=1.3,
             roughness=0.5, specular=0.3),
    material("rug", "speckle", (0.085, 0.020, 0.024), (0.060, 0.014, 0.018), (0.125, 0.055, 0.038),
             uv_m=0.8, roughness=0.98, specular=0.02),
    material("milk_glass", "marble", (0.97, 0.93, 0.82), (0.93, 0.87, 0.74), roughness=0.25,
             specular=0.6),
    material("brass", "brushed", (0.62, 0.45, 0.18), (0.48, 0.34, 0.13), roughness=0.25,
             specular=0.9),
    material("wall", "concrete", (0.15, 0.20, 0.165), (0.12, 0.165, 0.135), uv_m=1.6,
             roughness=0.9, specular=0.1),
    material("panel", "wood", (0.19, 0.085, 0.042), (0.10, 0.045, 0.022), uv_m=1.1,
             roughness=0.45, specular=0.35),
    material("picture_0", "noise", (0.10, 0.18, 0.10), (0.45, 0.42, 0.25), (0.35, 0.45, 0.55),
             seed=4, roughness=0.5),
    material("picture_1", "marble", (0.42, 0.36, 0.28), (0.16, 0.10, 0.07), seed=5, roughness=0.5),
    material("picture_2", "noise", (0.28, 0.10, 0.06), (0.50, 0.36, 0.20), (0.12, 0.12, 0.16),
             seed=6, roughness=0.5),
    material("picture_3", "brushed", (0.50, 0.52, 0.52), (0.36, 0.38, 0.40), roughness=0.2,
             specular=0.8),
    material("slate_board", "concrete", (0.05, 0.06, 0.06), (0.09, 0.10, 0.10), roughness=0.8),
    material("cue_tip", "noise", (0.06, 0.20, 0.40), (0.09, 0.26, 0.48), roughness=0.95),
    material("cue_ferrule", "noise", (0.82, 0.80, 0.74), (0.74, 0.72, 0.66), roughness=0.3),
    material("cue_shaft", "wood", (0.66, 0.45, 0.23), (0.52, 0.33, 0.15), repeat=2.0,
             roughness=0.3, specular=0.5),
    material("cue_ring", "brushed", (0.70, 0.58, 0.32), (0.55, 0.45, 0.25), roughness=0.2,
             specular=0.9),
    material("cue_butt", "wood", (0.10, 0.035, 0.02), (0.035, 0.015, 0.01), repeat=2.0,
             roughness=0.2, specular=0.6),
    material("cue_grip", "stripes", (0.03, 0.03, 0.035), (0.05, 0.05, 0.055), repeat=6.0,
             roughness=0.8),
)  # fmt: skip
