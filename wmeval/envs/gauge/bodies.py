"""Rigid bodies of GAUGE's scenes, the joints that they hang on, and what merely stands there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wmeval.assets import gauge_cards as cards
from wmeval.assets.gauge_cards import Family, rotation
from wmeval.conventions import matrix_to_quaternion, quaternion_multiply
from wmeval.envs.gauge.looks import BREADBOARD, STEEL, look_of
from wmeval.envs.gauge.pairs import Surface
from wmeval.envs.gauge.shapes import form_of
from wmeval.scene import (
    IDENTITY,
    Body,
    Box,
    Capsule,
    Collision,
    Cylinder,
    Joint,
    MeshData,
    Quat,
    Vec3,
    Visual,
)

ROD_RADIUS = 0.0015
"""Of the massless rods, in pictures [m]."""
CLAMPS = ("frame", "clamp_low", "clamp_top", "clamp", "pedestal")
"""Bodies that hold what bends: they move it and do not touch it."""
_RODS = {"textile_bending": ("rod_moving", "rod_fixed"), "textile_flinging": ("rod",),
         "tablecloth_pulling": ("rod",)}  # fmt: skip
FLOOR_HALF = 4.0


@dataclass
class Made:
    """Bodies, joints and meshes, as they are gathered."""

    bodies: list[Body] = field(default_factory=list)
    joints: list[Joint] = field(default_factory=list)
    meshes: dict[str, MeshData] = field(default_factory=dict)

    def instance(self) -> int:
        """The next number for label layers."""
        return 1 + max((b.instance for b in self.bodies), default=0)


@dataclass(frozen=True)
class SetUp:
    """One set-up of a family.

    Attributes:
        card, subtask, material: which.
        properties: of its bodies, by name.
        surfaces: friction and restitution by name.
    """

    card: Family
    subtask: str
    material: str
    properties: dict[str, cards.Properties]
    surfaces: dict[str, Surface]


def holds(card: Family, name: str) -> bool:
    """Whether a body is a clamp, which nothing touches."""
    return name in CLAMPS or name in _RODS.get(card.id, ())


def quaternion_of(euler_deg: Vec3) -> Quat:
    """Quaternion of a card's angles."""
    w, x, y, z = matrix_to_quaternion(rotation(euler_deg)).tolist()
    return (w, x, y, z)


def add_body(made: Made, setup: SetUp, name: str, *, lift: float = 0.0) -> None:
    """Add one rigid body of a card.

    Args:
        made: gathers it.
        setup: where it is from.
        name: on the card.
        lift: by which it is raised [m].
    """
    card = setup.card
    body = card.bodies[name]
    pose = card.poses(setup.subtask, setup.material)[name]
    form = form_of(body.shape)
    made.meshes |= form.meshes
    measured = name in card.measured
    hung = body.rod is not None
    look = "metal" if hung else look_of(name, setup.material, measured=measured)
    turn = quaternion_of(pose.euler_deg)
    place = np.array(pose.position) + np.array([0.0, 0.0, lift])
    if body.rod is not None:
        place = place + rotation(pose.euler_deg) @ [0.0, 0.0, -body.rod]
    w, x, y, z = quaternion_multiply(np.array(turn), np.array(form.frame)).tolist()
    surface = setup.surfaces[name]
    motion = {"fixed": "static", "kinematic": "kinematic"}.get(body.motion, "dynamic")
    visuals = [
        Visual(shape=p.shape, material=look, position=p.position, quaternion_wxyz=p.quaternion_wxyz)
        for p in form.look
    ]
    if body.rod is not None:
        bar = Cylinder(radius=ROD_RADIUS, height=body.rod)
        visuals.append(Visual(shape=bar, material=STEEL, position=(0.0, 0.0, body.rod / 2)))
    pieces = () if holds(card, name) else form.pieces
    at = (float(place[0]), float(place[1]), float(place[2]))
    fields = {
        "motion": motion,
        "friction": surface.friction,
        "restitution": surface.restitution,
        "position": at,
        "quaternion_wxyz": (w, x, y, z),
    }
    role = "actor" if measured else "driven" if body.motion == "kinematic" else "support"
    made.bodies.append(
        Body(
            name=name, role=role, instance=made.instance(), collision=pieces[:1],
            visuals=tuple(visuals),
            mass=setup.properties[name].number("mass") if motion == "dynamic" else 0.0,
            **fields,
        )
    )  # fmt: skip
    made.bodies.extend(
        Body(name=f"{name}_{k}", role=role, instance=0, collision=(piece,), **fields)
        for k, piece in enumerate(pieces[1:], 2)
    )
    if body.hinge is not None:
        axis = (1.0, 0.0, 0.0) if body.hinge == "x" else (0.0, 1.0, 0.0)
        made.joints.append(
            Joint(name=f"{name}_pivot", kind="hinge", body=name, pivot=pose.position, axis=axis)
        )


def add_bricks(made: Made, setup: SetUp, name: str) -> None:
    """Add a wall of loose bricks: ``brick_1`` and on, layer by layer from below."""
    wall = setup.card.bodies[name].shape
    assert isinstance(wall, cards.Bricks)
    x, y, z = (s / 2 for s in wall.size)
    surface = setup.surfaces[name]
    shape = Box(half_extents=(x, y, z))
    shown = Box(half_extents=(x, y, z), bevel=0.03 * z)
    for k, centre in enumerate(cards.brick_centres(wall).tolist(), 1):
        made.bodies.append(
            Body(
                name=f"brick_{k}", role="brick", motion="dynamic", instance=made.instance(),
                collision=(Collision(shape=shape),),
                visuals=(Visual(shape=shown, material="wood"),),
                mass=setup.properties[name].number("mass"),
                friction=surface.friction, restitution=surface.restitution,
                position=(centre[0], centre[1], centre[2]),
            )
        )  # fmt: skip


def add_ground(made: Made, setup: SetUp, middle: Vec3) -> None:
    """Add the breadboard: the ground where the set-up has one, else only seen, at z = 0."""
    height = setup.card.ground(setup.subtask, setup.material)
    shape = Box(half_extents=(FLOOR_HALF, FLOOR_HALF, 0.05))
    surface = setup.surfaces["ground"]
    made.bodies.append(
        Body(
            name="ground", role="ground", motion="static", instance=made.instance(),
            collision=() if height is None else (Collision(shape=shape),),
            visuals=(Visual(shape=shape, material=BREADBOARD),),
            friction=surface.friction, restitution=surface.restitution,
            position=(middle[0], middle[1], (height or 0.0) - 0.05),
        )
    )  # fmt: skip


def add_rope_chain(made: Made, setup: SetUp, points: list[Vec3], ends: tuple[str, str]) -> None:
    """A rope as capsules that ball joints hold together: it bends and does not stretch.

    Args:
        made: gathers them; the bodies of ``ends`` are there already.
        setup: with the rope's card.
        points: its nodes, along x.
        ends: names of the bodies at its first and last node.
    """
    rope = setup.card.bodies["rope"].shape
    assert isinstance(rope, cards.Rope)
    own, surface = setup.properties["rope"], setup.surfaces["rope"]
    links = len(points) - 1
    length = rope.length / links
    capsule = Capsule(radius=rope.radius, height=length + 2 * rope.radius)
    turn = (math.sqrt(0.5), 0.0, math.sqrt(0.5), 0.0)
    names = [ends[0], *(f"rope_{k}" for k in range(1, links + 1)), ends[1]]
    for k in range(1, links + 1):
        a, b = points[k - 1], points[k]
        made.bodies.append(
            Body(
                name=names[k], role="rope", motion="dynamic", instance=made.instance(),
                collision=(Collision(shape=capsule),),
                visuals=(Visual(shape=capsule, material="rubber"),),
                mass=own.number("mass") / links, friction=surface.friction,
                restitution=surface.restitution,
                position=((a[0] + b[0]) / 2, a[1], a[2]), quaternion_wxyz=turn,
            )
        )  # fmt: skip
    for k, point in enumerate(points):
        # The second ball hangs on the rope, as every link hangs on the one before.
        made.joints.append(
            Joint(
                name=f"rope_{k}_joint", kind="ball", body=names[k + 1], other=names[k], pivot=point
            )
        )


def add_furniture(made: Made, setup: SetUp) -> None:
    """What holds things up in pictures; no engine knows of it."""
    card = setup.card
    poses = card.poses(setup.subtask, setup.material)
    hung = [(poses[n].position, b) for n, b in card.bodies.items() if b.hinge]
    if hung:
        where = np.array([p for p, _ in hung])
        along = 1 if hung[0][1].hinge == "x" else 0
        low, high = where.min(axis=0), where.max(axis=0)
        size = high - low + 0.05
        half = [0.006, 0.006, 0.006]
        half[along] = float(size[along]) / 2
        _prop(made, "rail", Box(half_extents=(half[0], half[1], half[2])), (low + high) / 2)
    for name, body in card.bodies.items():
        if name not in poses:
            continue
        x, y, z = poses[name].position
        if name == "plate" and isinstance(body.shape, cards.Cylinder):
            height = z - body.shape.length / 2
            column = Cylinder(radius=0.04, height=height - 0.004)
            _prop(made, "motor", column, np.array([x, y, height / 2 - 0.002]))
        if isinstance(body.shape, cards.HoledBoard | cards.Box) and name in ("board", "table"):
            if body.motion != "fixed":
                continue
            hx, hy, hz = (s / 2 for s in body.shape.size)
            height = z - hz
            if height < 0.05:
                continue
            leg = Cylinder(radius=0.008, height=height)
            for k, (sx, sy) in enumerate(((-1, -1), (1, -1), (1, 1), (-1, 1)), 1):
                at = np.array([x + sx * (hx - 0.02), y + sy * (hy - 0.02), height / 2])
                _prop(made, f"leg_{k}", leg, at)


def _prop(made: Made, name: str, shape: Box | Cylinder, at: NDArray[np.float64]) -> None:
    x, y, z = at.tolist()
    made.bodies.append(
        Body(
            name=name, role="furniture", motion="static", instance=made.instance(),
            visuals=(Visual(shape=shape, material=STEEL),), position=(x, y, z),
            quaternion_wxyz=IDENTITY,
        )
    )  # fmt: skip
