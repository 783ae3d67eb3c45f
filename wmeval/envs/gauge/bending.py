"""What bends in GAUGE's scenes: textiles, foam, the elastic rod, the rope; and what holds it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from wmeval.assets import gauge_cards as cards
from wmeval.assets.gauge_mapping import Poisson, isotropic_poisson, poisson
from wmeval.deformables import block_face, sheet_edge
from wmeval.envs.gauge.bodies import SetUp
from wmeval.errors import UserError
from wmeval.scene import (
    IDENTITY,
    Block,
    Cloth,
    Pin,
    Quat,
    Rope,
    Sheet,
    Soft,
    Tetrahedra,
    Vec3,
)

CELL = 0.0125
"""Edge of the cells that foam is made of, at most, where its card states none [m]."""
_HALF = math.sqrt(0.5)
_SHEET_TURNS: dict[tuple[str, str], Quat] = {
    ("x", "y"): IDENTITY,
    ("y", "z"): (0.5, 0.5, 0.5, 0.5),
    ("x", "z"): (_HALF, _HALF, 0.0, 0.0),
}
_EDGES: dict[str, dict[str, tuple[str, ...]]] = {
    "textile_stretching": {"frame": ("x-", "x+", "y-", "y+")},
    "textile_bending": {"rod_moving": ("x-",), "rod_fixed": ("x+",)},
    "textile_flinging": {"rod": ("y+",)},
    "tablecloth_pulling": {"rod": ("x-",)},
}
"""Edges of the sheet that a body holds, by family."""
_LYING = ("funnel", "rotating_ball")
"""Families whose sheet lies on something at first: it is raised by half its thickness."""
_FOLDING = ("funnel", "rotating_ball")
"""Families in which the sheet touches itself."""
SECTORS, LAYERS = 12, 30
"""Of the elastic rod: around and along."""


@dataclass(frozen=True)
class Chosen:
    """A Poisson's ratio as it was given and as it was chosen (GAUGE eq. 6), with the body."""

    body: str
    ratio: Poisson

    @property
    def told(self) -> dict[str, JsonValue]:
        """For results: given, chosen, regime; of an impossible one also why it is refused."""
        out: dict[str, JsonValue] = {
            "given": self.ratio.given, "value": self.ratio.value, "regime": self.ratio.regime
        }  # fmt: skip
        try:
            isotropic_poisson(self.ratio.given, of=self.body)
        except UserError as error:
            out["refused"] = str(error)
        return out


def textile(setup: SetUp, name: str = "textile") -> Cloth:
    """The sheet of a set-up."""
    shape, own = setup.card.bodies[name].shape, setup.properties[name]
    assert isinstance(shape, cards.Sheet)
    nx, ny = (max(1, math.ceil(s / shape.grid - 1e-9)) for s in shape.size)
    sheet = Sheet(size=shape.size, cells=(nx, ny))
    pins, taken = [], set[int]()
    for body, edges in _EDGES.get(setup.card.id, {}).items():
        held = sorted({v for edge in edges for v in sheet_edge(sheet, edge)} - taken)
        taken |= set(held)
        pins.append(Pin(vertices=tuple(held), body=body))
    x, y, z = setup.card.poses(setup.subtask, setup.material)[name].position
    thickness = own.number("thickness")
    lift = thickness / 2 if setup.card.id in _LYING else 0.0
    look = setup.material if setup.card.id != "tablecloth_pulling" else "tablecloth"
    return Cloth(
        name=name,
        role="actor" if name in setup.card.measured else "support",
        material=look,
        pins=tuple(pins),
        friction=setup.surfaces[name].friction,
        position=(x, y, z + lift),
        quaternion_wxyz=_SHEET_TURNS[shape.axes],
        surface=sheet,
        areal_density=own.number("areal_density"),
        stretch=own.number("stretch_stiffness"),
        shear=own.number("shear_stiffness"),
        bending=own.number("bend_stiffness"),
        thickness=thickness,
        self_contact=setup.card.id in _FOLDING,
    )


def foam(setup: SetUp, name: str, holders: dict[str, str]) -> tuple[Soft, Chosen]:
    """A box of foam.

    Args:
        setup: where it is from.
        name: on the card.
        holders: face ("y-") to the body that all its nodes follow.
    """
    shape, own = setup.card.bodies[name].shape, setup.properties[name]
    assert isinstance(shape, cards.Box)
    nx, ny, nz = (max(2, math.ceil(s / (shape.grid or CELL) - 1e-9)) for s in shape.size)
    block = Block(size=shape.size, cells=(nx, ny, nz))
    ratio = poisson(own.number("poisson"))
    soft = Soft(
        name=name,
        role="actor",
        material="foam",
        pins=tuple(Pin(vertices=block_face(block, f), body=b) for f, b in holders.items()),
        friction=setup.surfaces[name].friction,
        position=setup.card.poses(setup.subtask, setup.material)[name].position,
        volume=block,
        density=own.number("density"),
        youngs_modulus=own.number("young"),
        poisson_ratio=ratio.value,
    )
    return soft, Chosen(name, ratio)


def elastic_rod(setup: SetUp, name: str, holder: str) -> tuple[Soft, Chosen]:
    """A round rod along z whose upper end a body holds."""
    shape, own = setup.card.bodies[name].shape, setup.properties[name]
    assert isinstance(shape, cards.Cylinder)
    volume = round_rod(shape.radius, shape.length)
    top = [k for k, v in enumerate(volume.vertices) if v[2] > shape.length / 2 - 1e-9]
    ratio = poisson(own.number("poisson"))
    soft = Soft(
        name=name,
        role="actor",
        material="rubber",
        pins=(Pin(vertices=tuple(top), body=holder),),
        friction=setup.surfaces[name].friction,
        position=setup.card.poses(setup.subtask, setup.material)[name].position,
        volume=volume,
        density=own.number("density"),
        youngs_modulus=own.number("young"),
        poisson_ratio=ratio.value,
    )
    return soft, Chosen(name, ratio)


def round_rod(
    radius: float, length: float, sectors: int = SECTORS, layers: int = LAYERS
) -> Tetrahedra:
    """A round rod along z of tetrahedra, about its middle.

    The polygon that stands for the circle has the circle's area, so that what is stretched or
    weighed is right; its second moment is 0.4 % too great at 12 sectors.
    """
    angle = 2 * math.pi / sectors
    around = radius * math.sqrt(2 * math.pi / (sectors * math.sin(angle)))
    vertices: list[Vec3] = []
    for layer in range(layers + 1):
        z = (layer / layers - 0.5) * length
        vertices.append((0.0, 0.0, z))
        vertices += [
            (around * math.cos(k * angle), around * math.sin(k * angle), z) for k in range(sectors)
        ]
    elements: list[tuple[int, int, int, int]] = []
    step = sectors + 1
    for layer in range(layers):
        low, high = layer * step, (layer + 1) * step
        for k in range(sectors):
            corner = sorted((k, (k + 1) % sectors))
            a, b = corner[0] + 1, corner[1] + 1
            # Prisms whose diagonals run from the lower number: neighbours agree.
            prism = (low, low + a, low + b, high, high + a, high + b)
            elements += [
                (prism[0], prism[1], prism[2], prism[5]),
                (prism[0], prism[1], prism[5], prism[4]),
                (prism[0], prism[4], prism[5], prism[3]),
            ]
    points = np.array(vertices)
    return Tetrahedra(
        vertices=tuple(vertices), elements=tuple(_positive(points, e) for e in elements)
    )


def _positive(points: NDArray[np.float64], element: Sequence[int]) -> tuple[int, int, int, int]:
    a, b, c, d = element
    p, q, r, s = points[[a, b, c, d]]
    return (a, b, c, d) if float(np.dot(np.cross(q - p, r - p), s - p)) > 0 else (a, c, b, d)


def rope_points(setup: SetUp, lift: float) -> list[Vec3]:
    """Nodes of the rope at the start, along x [m], world frame."""
    shape = setup.card.bodies["rope"].shape
    assert isinstance(shape, cards.Rope)
    x, y, z = setup.card.poses(setup.subtask, setup.material)["rope"].position
    along = (np.arange(shape.nodes) / (shape.nodes - 1) - 0.5) * shape.length
    return [(x + d, y, z + lift) for d in along.tolist()]


def rope_clearance(setup: SetUp) -> float:
    """By how much rope and balls are raised so that the rope begins above the beam [m].

    The rope's radius is inferred, and by it the published pose lies 0.06 mm inside the beam.
    """
    poses = setup.card.poses(setup.subtask, setup.material)
    beam, rope = setup.card.bodies["beam"].shape, setup.card.bodies["rope"].shape
    assert isinstance(beam, cards.Cylinder)
    assert isinstance(rope, cards.Rope)
    apart = poses["rope"].position[2] - poses["beam"].position[2]
    return max(0.0, beam.radius + rope.radius - apart)


def rope(setup: SetUp, points: list[Vec3], ends: tuple[str, str]) -> Rope:
    """The rope, tied to two bodies."""
    shape, own = setup.card.bodies["rope"].shape, setup.properties["rope"]
    assert isinstance(shape, cards.Rope)
    stretch = own.number("axial_stiffness")
    return Rope(
        name="rope",
        role="actor",
        material="rubber",
        pins=(Pin(vertices=(0,), body=ends[0]), Pin(vertices=(len(points) - 1,), body=ends[1])),
        friction=setup.surfaces["rope"].friction,
        points=tuple(points),
        radius=shape.radius,
        density=own.number("density"),
        stretch=stretch,
        # Of a round solid: E A r^2 / 4.
        bending=stretch * shape.radius**2 / 4,
    )
