"""Cards of GAUGE's 22 families: bodies, materials, poses, drivers, markers, numbers' sources.

Source: GAUGE (sections 3 and 4, appendices A and B) for what a family is; its released metadata for
masses, poses and material numbers. What neither states was read from the project page's clips,
inferred, or assumed by us, and the card's ``sources`` says which for every number: the most
specific dotted prefix counts, and a number that no prefix covers is refused. Lengths in metres,
z up, the breadboard at z = 0, g = 9.81 m/s^2, angles as published in degrees about fixed axes,
R = Rz Ry Rx (`rotation`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError, model_validator

from wmeval.errors import UserError, first_problem
from wmeval.scene import Card, Vec3

GRAVITY = 9.81
"""[m/s^2], along -z."""

RECORD_HZ = 30
"""Rate at which states are recorded (GAUGE 4.2): frame k at k / 30 s."""

SOLVER_HZ: Mapping[str, int] = {"rigid": 180, "textile": 180, "volume": 900}
"""Solver steps per second of the published settings (GAUGE 4.2)."""

Source = Literal["metadata", "paper", "clip", "inferred", "assumed"]
Kind = Literal["rigid", "rope", "textile", "soft"]
Quantity = Literal["position", "curvature", "area"]
QUANTITY_UNITS: Mapping[str, str] = {"position": "mm", "curvature": "rad", "area": "mm^2"}


# --- shapes, each about its body's translation ----------------------------------------------------


class Box(Card):
    """A block: extents along its axes [m]; of foam also the greatest edge of its cells [m]."""

    type: Literal["box"]
    size: Vec3
    grid: float | None = Field(default=None, gt=0)


class Sphere(Card):
    """A ball [m]."""

    type: Literal["sphere"]
    diameter: float = Field(gt=0)


class Cylinder(Card):
    """A round bar or disc along one of its axes [m]."""

    type: Literal["cylinder"]
    radius: float = Field(gt=0)
    length: float = Field(gt=0)
    axis: Literal["x", "y", "z"]


class Convex(Card):
    """Convex hull of points given about the centroid [m]: tetrahedron, pyramid, wedge."""

    type: Literal["convex"]
    points: tuple[Vec3, ...] = Field(min_length=4)


class NotchedBlock(Card):
    """A block turned about z, less the tetrahedron beyond one plane at its upper corner: convex.

    Attributes:
        size: extents of the whole block [m].
        turn_deg: its turn about z [deg].
        notch: the four corners that are cut away, about the block's centre [m].
    """

    type: Literal["notched_block"]
    size: Vec3
    turn_deg: float
    notch: tuple[Vec3, Vec3, Vec3, Vec3]


class Prism(Card):
    """A flat plate of convex pieces, with what they leave open going through it along z.

    Attributes:
        pieces: corners of each convex piece in the plate's plane, about the translation [m].
        bottom, top: z of the faces about the translation [m].
    """

    type: Literal["prism"]
    pieces: tuple[tuple[tuple[float, float], ...], ...] = Field(min_length=1)
    bottom: float
    top: float


class HoledBoard(Card):
    """A board with a round hole in its middle [m]."""

    type: Literal["holed_board"]
    size: Vec3
    hole_radius: float = Field(gt=0)


class Sheet(Card):
    """A textile: extents along two world axes [m] and the greatest grid spacing [m]."""

    type: Literal["sheet"]
    size: tuple[float, float]
    axes: tuple[Literal["x", "y", "z"], Literal["x", "y", "z"]]
    grid: float = Field(gt=0)


class Rope(Card):
    """A round rope [m] along a world axis, in so many nodes."""

    type: Literal["rope"]
    length: float = Field(gt=0)
    radius: float = Field(gt=0)
    axis: Literal["x", "y", "z"]
    nodes: int = Field(ge=2)


class Frame(Card):
    """Four round rods around a square opening, normal to an axis [m]."""

    type: Literal["frame"]
    size: tuple[float, float]
    axis: Literal["x", "y", "z"]
    radius: float = Field(gt=0)


class Bricks(Card):
    """A wall: brick extents [m] and the centres of all of them (`brick_centres`).

    Attributes:
        size: of one brick [m].
        rows: (z, first y, bricks along y) of each layer, from below; spacing is the brick's length.
        columns: x of the two leaves [m].
    """

    type: Literal["bricks"]
    size: Vec3
    rows: tuple[tuple[float, float, int], ...]
    columns: tuple[float, float]


Shape = Annotated[
    Box
    | Sphere
    | Cylinder
    | Convex
    | NotchedBlock
    | Prism
    | HoledBoard
    | Sheet
    | Rope
    | Frame
    | Bricks,
    Field(discriminator="type"),
]


def brick_centres(wall: Bricks) -> NDArray[np.float64]:
    """Centres of a wall's bricks, (N, 3) [m], layer by layer from below."""
    return np.array(
        [
            (x, y0 + i * wall.size[1], z)
            for z, y0, count in wall.rows
            for x in wall.columns
            for i in range(count)
        ]
    )


# --- bodies, numbers, motion ----------------------------------------------------------------------


class Body(Card):
    """One body.

    Attributes:
        shape: its form.
        motion: ``fixed``, ``kinematic`` (led by a driver), ``dynamic``, or ``clamped`` (deformable,
            held at its ends).
        translation: what its pose's position is: the centroid, the pivot that it swings about, or
            the middle of its top face.
        hinge: axis of its joint, where it hangs from a pivot.
        rod: from the pivot to its centre [m], massless.
    """

    shape: Shape
    motion: Literal["fixed", "kinematic", "dynamic", "clamped"]
    translation: Literal["centroid", "pivot", "top"] = "centroid"
    hinge: Literal["x", "y"] | None = None
    rod: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _check(self) -> Body:
        if (self.translation == "pivot") != (self.hinge is not None and self.rod is not None):
            raise ValueError("a body with a pivot, and only that, has hinge and rod")
        return self


class Properties(Card):
    """Material numbers of a body; None where they are not stated.

    Attributes:
        mass: [kg].
        density: [kg/m^3].
        areal_density: of a textile [kg/m^2].
        friction, restitution: of the pair that the body makes with what it touches.
        young: [Pa]; poisson: as published, even where it is impossible.
        thickness: [m].
        stretch_stiffness, shear_stiffness: per unit width [N/m] (K_s, K_sh).
        bend_stiffness: [N m] (B; the hinge's K_theta).
        axial_stiffness: E A of a rope [N].
    """

    mass: float | None = Field(default=None, gt=0)
    density: float | None = Field(default=None, gt=0)
    areal_density: float | None = Field(default=None, gt=0)
    friction: float | None = Field(default=None, ge=0)
    restitution: float | None = Field(default=None, ge=0, le=1)
    young: float | None = Field(default=None, gt=0)
    poisson: float | None = None
    thickness: float | None = Field(default=None, gt=0)
    stretch_stiffness: float | None = Field(default=None, gt=0)
    shear_stiffness: float | None = Field(default=None, gt=0)
    bend_stiffness: float | None = Field(default=None, gt=0)
    axial_stiffness: float | None = Field(default=None, gt=0)

    def number(self, name: str) -> float:
        """A number that must be there.

        Raises:
            UserError: it is not stated.
        """
        value: float | None = getattr(self, name)
        if value is None:
            raise UserError(f"the card states no {name} here: give it in the card")
        return value


class Pose(Card):
    """Where a body starts: position [m], Euler angles about the fixed x, y, z [deg]."""

    position: Vec3
    euler_deg: Vec3 = (0.0, 0.0, 0.0)


class Drive(Card):
    """A motion that is imposed on a body.

    Attributes:
        body: whom it leads.
        profile: row of `wmeval.assets.gauge_profiles.PROFILES`.
        parameters: the profile's numbers, SI units and radians.
    """

    body: str
    profile: str
    parameters: dict[str, float | Vec3]


class Subtask(Card):
    """One set-up of a family.

    Attributes:
        says: what happens, in a phrase.
        frames: how many frames are recorded, by material.
        poses: starting pose of each body, by material (``any``: of every material).
        ground: z of the ground plane [m], by material (``any``); none: there is no ground.
        drives: imposed motions, by material (``any``).
        overrides: numbers that differ in this subtask, by material and body.
    """

    says: str
    frames: dict[str, int]
    poses: dict[str, dict[str, Pose]]
    ground: dict[str, float] = Field(default_factory=dict)
    drives: dict[str, tuple[Drive, ...]] = Field(default_factory=dict)
    overrides: dict[str, dict[str, Properties]] = Field(default_factory=dict)


class Markers(Card):
    """Markers on a deformable body.

    Attributes:
        body: who wears them.
        layout: row of `wmeval.assets.gauge_markers.LAYOUTS`.
        count: how many.
    """

    body: str
    layout: str
    count: int = Field(ge=1)


class Support(Card):
    """What an engine does with a family.

    Attributes:
        published: solver of the published settings; None: not run.
        tuned: solver of the tuned ones; None: as published.
        status: ``run``, ``try`` (not known to work) or ``not_run``.
        reason: why, where it is not run or not known.
    """

    published: str | None = None
    tuned: str | None = None
    status: Literal["run", "try", "not_run"]
    reason: str = ""


class Family(Card):
    """A task family.

    Attributes:
        id: its name here; ``paper``: in GAUGE's Table 2; ``env``: its environment's.
        says: what it examines.
        kind: class of the object that is measured; ``rates``: row of `SOLVER_HZ`.
        benchmarked: whether it is one of the 14 of Table 3.
        quantity: what is compared over time (eq. 1); unit in `QUANTITY_UNITS`.
        measured: bodies whose position, or markers, are compared.
        metrics: names of the family's metrics.
        bodies, properties, subtasks, markers: the set-up.
        engines: what each engine does with it.
        sources: source of the numbers, by dotted prefix.
        notes: what a reader must know.
    """

    id: str
    paper: str
    env: str
    says: str
    kind: Kind
    rates: Literal["rigid", "textile", "volume"]
    benchmarked: bool
    quantity: Quantity
    measured: tuple[str, ...] = Field(min_length=1)
    metrics: tuple[str, ...] = Field(min_length=1)
    bodies: dict[str, Body]
    properties: dict[str, dict[str, Properties]]
    subtasks: dict[str, Subtask] = Field(min_length=1)
    markers: Markers | None = None
    engines: dict[str, Support]
    sources: dict[str, Source]
    notes: tuple[str, ...] = ()

    @property
    def materials(self) -> tuple[str, ...]:
        """The material variants."""
        return tuple(m for m in self.properties if m != "any")

    @property
    def solver_hz(self) -> int:
        """Solver steps per second of the published settings."""
        return SOLVER_HZ[self.rates]

    @model_validator(mode="after")
    def _check(self) -> Family:
        for material, by_body in self.properties.items():
            for body in by_body:
                if body not in self.bodies:
                    raise ValueError(f"properties.{material}.{body}: there is no such body")
        for name, subtask in self.subtasks.items():
            where = f"subtasks.{name}"
            if set(subtask.frames) - set(self.materials):
                raise ValueError(f"{where}.frames: a material that has no properties")
            for table in (subtask.poses, subtask.ground, subtask.drives, subtask.overrides):
                if set(table) - {"any", *self.materials}:
                    raise ValueError(f"{where}: a material that has no properties")
            for material in subtask.frames:
                there = self.poses(name, material)
                led = {drive.body for drive in self.drives(name, material)}
                for body in sorted(there):
                    if body not in self.bodies:
                        raise ValueError(f"{where}.poses.{material}: there is no body {body!r}")
                if led - set(there):
                    raise ValueError(f"{where}.drives: {sorted(led - set(there))[0]} has no pose")
        used = dict.fromkeys(self.sources, False)
        for path in _numbers(self.model_dump(exclude_none=True)):
            prefix = self._prefix(path)
            if prefix is None:
                raise ValueError(f"sources: nothing says where {path} is from")
            used[prefix] = True
        idle = sorted(p for p, hit in used.items() if not hit)
        if idle:
            raise ValueError(f"sources: {idle[0]!r} covers no number")
        return self

    def _prefix(self, path: str) -> str | None:
        parts = path.split(".")
        for end in range(len(parts), 0, -1):
            prefix = ".".join(parts[:end])
            if prefix in self.sources:
                return prefix
        return None

    def source(self, path: str) -> Source:
        """Where a number is from.

        Args:
            path: dotted, as ``bodies.board.shape.size``.

        Raises:
            UserError: no prefix of it has a source.
        """
        prefix = self._prefix(path)
        if prefix is None:
            raise UserError(f"{self.id}: {path!r} has no source: name a number of the card")
        return self.sources[prefix]

    def _subtask(self, name: str, material: str) -> Subtask:
        if name not in self.subtasks:
            raise UserError(
                f"{self.id} has no subtask {name!r}: choose from {', '.join(self.subtasks)}"
            )
        subtask = self.subtasks[name]
        if material not in subtask.frames:
            raise UserError(
                f"{self.id}, subtask {name}, has no material {material!r}: choose from "
                f"{', '.join(subtask.frames)}"
            )
        return subtask

    def frames(self, subtask: str, material: str) -> int:
        """Frames that are recorded."""
        return self._subtask(subtask, material).frames[material]

    def poses(self, subtask: str, material: str) -> dict[str, Pose]:
        """Starting poses by body (bricks have theirs in their shape)."""
        table = self._subtask(subtask, material).poses
        return {**table.get("any", {}), **table.get(material, {})}

    def bodies_of(self, subtask: str, material: str) -> dict[str, Body]:
        """The bodies that are there in a set-up: those with a pose, and walls of bricks."""
        there = self.poses(subtask, material)
        return {
            name: body
            for name, body in self.bodies.items()
            if name in there or isinstance(body.shape, Bricks)
        }

    def measured_in(self, subtask: str, material: str) -> tuple[str, ...]:
        """Bodies of ``measured`` that are there in a set-up."""
        there = self.bodies_of(subtask, material)
        return tuple(name for name in self.measured if name in there)

    def ground(self, subtask: str, material: str) -> float | None:
        """Height of the ground plane [m]; None where there is none."""
        table = self._subtask(subtask, material).ground
        return table.get(material, table.get("any"))

    def drives(self, subtask: str, material: str) -> tuple[Drive, ...]:
        """Imposed motions."""
        table = self._subtask(subtask, material).drives
        return (*table.get("any", ()), *table.get(material, ()))

    def body_properties(self, subtask: str, material: str, body: str) -> Properties:
        """Numbers of a body in a set-up."""
        overrides = self._subtask(subtask, material).overrides
        merged: dict[str, Any] = {}
        for table in (self.properties, overrides):
            for key in ("any", material):
                found = table.get(key, {}).get(body)
                if found is not None:
                    merged |= found.model_dump(exclude_none=True)
        return Properties(**merged)


def _numbers(value: Any, path: str = "") -> Iterator[str]:
    """Dotted paths of what holds numbers, below the parts that describe the set-up."""
    if isinstance(value, dict):
        for key, child in value.items():
            if not path and key in ("sources", "engines"):
                continue
            yield from _numbers(child, f"{path}.{key}" if path else str(key))
    elif isinstance(value, (list, tuple)):
        if any(_has_number(child) for child in value):
            yield path
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield path


def _has_number(value: Any) -> bool:
    if isinstance(value, dict):
        return any(_has_number(child) for child in value.values())
    if isinstance(value, (list, tuple)):
        return any(_has_number(child) for child in value)
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def rotation(euler_deg: Vec3) -> NDArray[np.float64]:
    """R = Rz Ry Rx of angles about the fixed axes x, y, z [deg], (3, 3).

    The sign is proven by the published slider: [0, 30, 0] turns the cube's offset
    (-0.1799, 0, 0.1385) into (-0.225, 0, 0.030) of the board's own frame. The order is ours.
    """
    x, y, z = (math.radians(a) for a in euler_deg)
    cx, sx, cy, sy, cz, sz = (
        math.cos(x), math.sin(x), math.cos(y), math.sin(y), math.cos(z), math.sin(z),
    )  # fmt: skip
    return np.array(
        [
            [cz * cy, cz * sy * sx - sz * cx, cz * sy * cx + sz * sx],
            [sz * cy, sz * sy * sx + cz * cx, sz * sy * cx - cz * sx],
            [-sy, cy * sx, cy * cx],
        ]
    )


# --- the library ----------------------------------------------------------------------------------


def read_family(path: str | Path | Traversable) -> Family:
    """Read one card.

    Raises:
        UserError: no such file, no YAML, or a wrong field; the message names file and field.
    """
    # Engines' own environments, whose workers need a drive's class only, may lack it.
    import yaml

    entry = Path(path) if isinstance(path, str) else path
    try:
        return Family.model_validate(yaml.safe_load(entry.read_text("utf-8")))
    except ValidationError as error:
        raise UserError(f"card {entry}: {first_problem(error)}") from error
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise UserError(f"card {entry}: {error}") from error


ORDER = (
    "slope_contact", "nonsmooth_contact", "slope_slider", "turntable", "bouncing_ball",
    "newtons_cradle", "wall_breaking", "pendulum", "rope_winding", "textile_stretching",
    "textile_bending", "textile_flinging", "funnel", "rotating_ball", "tablecloth_pulling",
    "foam_stretching", "foam_compressing", "foam_shearing", "foam_twisting", "foam_bending",
    "stick_stack", "cantilever_beam",
)  # fmt: skip
"""The families in the order of GAUGE's Table 2."""


@cache
def families() -> Mapping[str, Family]:
    """The 22 built-in families by id, in the order of Table 2."""
    root = files("wmeval.assets").joinpath("gauge", "families")
    return {name: read_family(root.joinpath(f"{name}.yaml")) for name in ORDER}


def family(name: str) -> Family:
    """A built-in family by its id, paper name or environment name.

    Raises:
        UserError: there is none; the message lists them.
    """
    table = families()
    for card in table.values():
        if name in (card.id, card.paper, card.env):
            return card
    raise UserError(f"there is no family {name!r}: choose from {', '.join(table)}")
