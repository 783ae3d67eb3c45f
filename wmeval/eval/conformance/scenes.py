"""The suite's small worlds: each has one known answer."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from wmeval.deformables import block_face, sheet_edge
from wmeval.scene import (
    Block,
    Body,
    Box,
    Camera,
    Cloth,
    Collision,
    Cylinder,
    Deformable,
    Joint,
    Material,
    Pin,
    Scene,
    Sheet,
    Soft,
    Sphere,
    Sun,
    Texture,
    Vec3,
    Visual,
)

GRAVITY = 9.81
MU = 0.3
LEG, BALL, WEIGHT = 0.28, 0.03, 0.1
"""Pivot to ball and its radius [m]; mass of balls, cubes and the top [kg]."""
STRIP = {
    "bending": 1e-5, "areal_density": 0.2, "stretch": 100.0, "length": 0.1, "width": 0.04,
    "gravity": 49.05,
}  # fmt: skip
OVERHANG = {
    "bending": 1e-5, "areal_density": 0.2, "stretch": 100.0, "cell": 0.01, "length": 0.045,
    "width": 0.2, "gravity": 0.274,
}  # fmt: skip
"""A strip that hangs over, of about the lightest and stiffest textile's B and weight, in cells of
the families' size: cells free plus half the cell that is held, since a mesh of flat triangles bends
at its edges only, the holding's edge among them, each for half a cell to both sides. Its weight is
such that w length^3 / B = 1/2: it droops by 1/16 of its length, where shapes are nearly linear and
a swing's mean is its rest within 3 %. It is far wider than it hangs over: a `Sheet`'s diagonals all
lean one way, so bending twists it unless its held edge is wide enough to forbid that (a strip of
two cells' width is 14 % softer by it, this one 3 %)."""
FOAM = {"young": 86_410.0, "density": 13.2, "length": 0.2, "gravity": 490.5}
SPEED = 1.0
"""Of the cube that is thrown along the sheet [m/s]."""

_STONE = Material(name="stone", texture=Texture(builder="noise", colors=((0.5, 0.5, 0.5),)))


def _body(name: str, *shapes: Any, **fields: Any) -> Body:
    parts = tuple(s if isinstance(s, Collision) else Collision(shape=s) for s in shapes)
    return Body.model_validate(
        {
            "name": name,
            "role": name,
            "motion": "dynamic",
            "instance": 0,
            "collision": parts,
            "visuals": tuple(
                Visual(
                    shape=p.shape,
                    material="stone",
                    position=p.position,
                    quaternion_wxyz=p.quaternion_wxyz,
                )
                for p in parts
            ),
            "mass": 0.0 if fields.get("motion") == "static" else 1.0,
            **fields,
        }
    )


def _scene(
    *bodies: Body,
    gravity: float = GRAVITY,
    joints: tuple[Joint, ...] = (),
    deformables: tuple[Deformable, ...] = (),
) -> Scene:
    return Scene(
        name="conformance",
        gravity=(0.0, 0.0, -gravity),
        bodies=bodies,
        materials=(_STONE,),
        cameras=(Camera(name="static", position=(1.0, -1.5, 1.0), target=(0.0, 0.0, 0.3)),),
        sun=Sun(direction=(0.3, 0.4, -0.8660254)),
        joints=joints,
        deformables=deformables,
    )


def _ground(**fields: Any) -> Body:
    return _body(
        "ground", Box(half_extents=(2.0, 2.0, 0.1)), motion="static", position=(0.0, 0.0, -0.1),
        **fields,
    )  # fmt: skip


def falling() -> Scene:
    """A ball, nothing below it."""
    return _scene(_body("ball", Sphere(radius=BALL), mass=WEIGHT, position=(0.0, 0.0, 5.0)))


def bouncing(restitution: float) -> Callable[[], Scene]:
    """A ball above the ground, of this restitution."""

    def make() -> Scene:
        ball = _body(
            "ball", Sphere(radius=BALL), mass=WEIGHT, position=(0.0, 0.0, 0.4 + BALL),
            restitution=restitution,
        )  # fmt: skip
        return _scene(ball, _ground(restitution=1.0))

    return make


def slope(degrees: float) -> Callable[[], Scene]:
    """A cube on a board that is tilted by so many degrees."""

    def make() -> Scene:
        angle = math.radians(degrees)
        turned = (math.cos(angle / 2), 0.0, math.sin(angle / 2), 0.0)
        out = 0.035
        cube = _body(
            "cube", Box(half_extents=(0.025,) * 3), mass=WEIGHT, friction=MU,
            position=(out * math.sin(angle), 0.0, out * math.cos(angle)), quaternion_wxyz=turned,
        )  # fmt: skip
        board = _body(
            "board", Box(half_extents=(2.0, 0.2, 0.01)), motion="static", quaternion_wxyz=turned
        )
        return _scene(cube, board)

    return make


def stack() -> Scene:
    """Five boxes on the ground."""
    boxes = [
        _body(f"box_{i}", Box(half_extents=(0.05,) * 3), friction=0.5, mass=WEIGHT,
              position=(0.0, 0.0, 0.05 + 0.1 * i))
        for i in range(5)
    ]  # fmt: skip
    return _scene(*boxes, _ground(friction=1.0))


def pendulum() -> Scene:
    """A ball on a hinge, level with it."""
    ball = _body("ball", Sphere(radius=BALL), mass=WEIGHT, position=(-LEG, 0.0, 1.0))
    hinge = Joint(
        name="hinge", kind="hinge", body="ball", pivot=(0.0, 0.0, 1.0), axis=(0.0, 1.0, 0.0)
    )
    return _scene(ball, joints=(hinge,))


TOP = {"radius": 0.08, "height": 0.02, "arm": 0.05, "spin": 40.0, "tilt": math.radians(20)}


def top_precession() -> float:
    """Steady precession [rad/s] of the suite's top, the slow one.

    I1 W^2 cos(tilt) - I3 w3 W + m g l = 0 with w3 the spin along the axis (Goldstein 5.7).
    """
    r, h, arm = TOP["radius"], TOP["height"], TOP["arm"]
    axial = r * r / 2
    across = (3 * r * r + h * h) / 12 + arm * arm
    a, b, c = across * math.cos(TOP["tilt"]), axial * TOP["spin"], GRAVITY * arm
    return (b - math.sqrt(b * b - 4 * a * c)) / (2 * a)


def top() -> Scene:
    """A disc on a rod that stands on a point, begun in its steady precession."""
    tilt, rate = TOP["tilt"], top_precession()
    axis = np.array((math.sin(tilt), 0.0, math.cos(tilt)))
    place = 1.0 * np.array((0, 0, 1)) + TOP["arm"] * axis
    turning = TOP["spin"] * axis + rate * (np.array((0, 0, 1.0)) - math.cos(tilt) * axis)
    disc = _body(
        "top", Cylinder(radius=TOP["radius"], height=TOP["height"]), mass=WEIGHT,
        position=tuple(place.tolist()),
        quaternion_wxyz=(math.cos(tilt / 2), 0.0, math.sin(tilt / 2), 0.0),
        angular_velocity=tuple(turning.tolist()),
        linear_velocity=tuple(np.cross(turning, TOP["arm"] * axis).tolist()),
    )  # fmt: skip
    point = Joint(name="point", kind="ball", body="top", pivot=(0.0, 0.0, 1.0))
    return _scene(disc, joints=(point,))


BRICK: Vec3 = (0.01, 0.02, 0.0075)
"""Half extents of the brick that tumbles [m], those of the bricks of GAUGE's wall."""
TUMBLE = 30.0
"""Its spin [rad/s]: of bricks that fall off a wall, and of wedges that fall over."""


def tumbling() -> Scene:
    """A brick that spins about none of its axes, in empty space."""
    spin = TUMBLE / math.sqrt(3)
    brick = _body(
        "brick", Box(half_extents=BRICK), mass=WEIGHT, angular_velocity=(spin, spin, spin)
    )
    return _scene(brick, gravity=0.0)


STRIKER = {"radius": 0.05, "mass": 1.0, "other_mass": 2.0, "aside": 0.03, "restitution": 0.7}
"""Two balls: of which radius [m], masses [kg], by how much the first is aside [m], each one's e."""


def collision() -> Scene:
    """A ball strikes another, of another mass, aside of its middle."""
    ball = Sphere(radius=STRIKER["radius"])
    first = _body(
        "first", ball, mass=STRIKER["mass"], position=(-0.3, STRIKER["aside"], 0.0), friction=0.3,
        restitution=STRIKER["restitution"], linear_velocity=(1.0, 0.0, 0.0),
    )  # fmt: skip
    second = _body(
        "second", ball, mass=STRIKER["other_mass"], position=(0.0, 0.0, 0.0), friction=0.3,
        restitution=STRIKER["restitution"],
    )  # fmt: skip
    return _scene(first, second, gravity=0.0)


def strip_sheet() -> Sheet:
    """The strip's cells, y along it."""
    return Sheet(size=(STRIP["width"], STRIP["length"]), cells=(4, 10))


def strip() -> Scene:
    """A strip of cloth, held by its upper edge."""
    sheet = strip_sheet()
    upright = (math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0)
    return _held(
        STRIP, sheet, sheet_edge(sheet, "y+"), position=(0.0, 0.0, 1.0), quaternion_wxyz=upright
    )


def overhang_sheet() -> Sheet:
    """The strip's cells, x along it; the first is held, so that it stays level there."""
    cell = OVERHANG["cell"]
    free = round(OVERHANG["length"] / cell - 0.5)
    wide = round(OVERHANG["width"] / cell)
    return Sheet(size=((free + 1) * cell, OVERHANG["width"]), cells=(free + 1, wide))


def overhanging() -> Scene:
    """A strip of cloth, clamped level at one end, let go."""
    sheet = overhang_sheet()
    clamped = tuple(v + k for v in sheet_edge(sheet, "x-") for k in (0, 1))
    return _held(OVERHANG, sheet, clamped, position=(0.0, 0.0, 0.1))


def _held(numbers: dict[str, float], sheet: Sheet, held: tuple[int, ...], **place: Any) -> Scene:
    """A strip of cloth above the ground, some of whose vertices are held."""
    cloth = Cloth(
        name="strip",
        surface=sheet,
        areal_density=numbers["areal_density"],
        stretch=numbers["stretch"],
        shear=numbers["stretch"] / 2.7,
        bending=numbers["bending"],
        pins=(Pin(vertices=held),),
        **place,
    )
    return _scene(_ground(), gravity=numbers["gravity"], deformables=(cloth,))


def bar_block() -> Block:
    """The bar's cells, z along it."""
    return Block(size=(0.05, 0.05, FOAM["length"]), cells=(3, 3, 12))


def bar() -> Scene:
    """A bar of foam, held by its upper face."""
    block = bar_block()
    foam = Soft(
        name="bar",
        volume=block,
        density=FOAM["density"],
        youngs_modulus=FOAM["young"],
        poisson_ratio=0.23,
        pins=(Pin(vertices=block_face(block, "z+")),),
        position=(0.0, 0.0, 1.0),
    )
    return _scene(_ground(), gravity=FOAM["gravity"], deformables=(foam,))


def cloth_sheet() -> Sheet:
    """The sheet's cells: as wide as the tablecloth's."""
    return Sheet(size=(0.3, 0.06), cells=(30, 6))


def cloth_slide() -> Scene:
    """A cube slides along a sheet that lies on ice and is held by the edge behind it.

    So the sheet is taut where it is dragged and free ahead, and bears the cube; where a cube goes
    through it, it slides on the ice. (Not all vertices are held: what is held touches nothing in
    some engines.)
    """
    sheet = cloth_sheet()
    thickness = 1e-3
    cloth = Cloth(
        name="sheet",
        surface=sheet,
        areal_density=0.2,
        stretch=1000.0,
        shear=370.0,
        bending=1e-5,
        thickness=thickness,
        pins=(Pin(vertices=sheet_edge(sheet, "x-")),),
        position=(0.0, 0.0, thickness / 2),
        friction=1.0,
    )
    half = 0.025
    cube = _body(
        "cube", Box(half_extents=(half,) * 3), mass=WEIGHT, friction=MU,
        position=(-0.1, 0.0, thickness + half), linear_velocity=(SPEED, 0.0, 0.0),
    )  # fmt: skip
    return _scene(cube, _ground(friction=0.0), deformables=(cloth,))
