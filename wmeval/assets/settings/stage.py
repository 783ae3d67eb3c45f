"""What a setting is put together with: a stage whose frame is that of the support.

The stage's origin is the floor below the middle of the support, x its long axis, z up. Builders
put things there; the stage turns and moves them to where the card says that the support is.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from wmeval.assets.cards import SettingCard, Surface
from wmeval.assets.meshes import box, merge, revolve
from wmeval.assets.settings.boards import slab
from wmeval.assets.settings.looks import LOOKS
from wmeval.assets.solids import Part, Parts, tube
from wmeval.conventions import axis_angle_quaternion
from wmeval.scene import (
    IDENTITY,
    Body,
    Box,
    Collision,
    Color,
    Cylinder,
    Material,
    Mesh,
    MeshData,
    Meshes,
    Quat,
    Sky,
    Sun,
    Texture,
    Vec3,
    Visual,
)

SUPPORT_INSTANCE = 65000
"""Id of the support in label layers; everything else in a setting is 0."""


@dataclass(frozen=True, eq=False)
class Setting:
    """A room or outdoor place, ready to be joined with what a task puts on its support.

    Attributes:
        bodies: static; the supports are named ``support:<surface>`` and collide, as the ground
            does; what is only seen has no collision geometry.
        materials: of the bodies; their names start with ``setting/``.
        meshes: of the bodies, by content hash.
        sun, sky: the light.
        clutter: names of bodies that the layout removes, by surface.
    """

    bodies: tuple[Body, ...]
    materials: tuple[Material, ...]
    meshes: Meshes
    sun: Sun
    sky: Sky
    clutter: Mapping[str, tuple[str, ...]]


def look(builder: str, *colors: Color, **more: Any) -> Material:
    """A look without a name; ``more`` are fields of `Material`, and the texture's own."""
    texture = {k: more.pop(k) for k in ("repeat", "seed") if k in more}
    return Material(name="-", texture=Texture(builder=builder, colors=colors, **texture), **more)


def yaw(degrees: float) -> Quat:
    """Rotation about the vertical."""
    if degrees == 0:
        return IDENTITY
    w, x, y, z = axis_angle_quaternion((0.0, 0.0, 1.0), math.radians(degrees)).tolist()
    return (w, x, y, z)


class Stage:
    """Collects the things of one setting.

    Args:
        card: the setting's card; its first surface is the one that things stand around.
        looks: the setting's own looks, beside those of `LOOKS`.
        turn: direction of the stage's x axis in the world [deg]; None: the support's long axis.
        floor: height of the floor in the world [m].
    """

    def __init__(
        self,
        card: SettingCard,
        looks: Mapping[str, Material],
        *,
        turn: float | None = None,
        floor: float = 0.0,
    ) -> None:
        self.surface, self.support = next(iter(card.surfaces.items()))
        self.turn = self.support.long_axis_deg if turn is None else turn
        self.floor = floor
        self.height = self.support.center[2] - floor
        self._looks = {**LOOKS, **looks}
        self._bodies: list[Body] = []
        self._meshes: dict[str, MeshData] = {}
        self._clutter: list[str] = []
        self._used: dict[str, None] = {}
        self._names: dict[str, int] = {}

    # --- things ---

    def put(
        self,
        name: str,
        parts: Iterable[Part],
        x: float = 0.0,
        y: float = 0.0,
        z: float = 0.0,
        turn: float = 0.0,
    ) -> None:
        """Something that is only seen, its origin at a place of the stage, turned by [deg]."""
        self._add(name, parts, (x, y, z), turn, role="setting")

    def strew(
        self, name: str, parts: Iterable[Part], x: float = 0.0, y: float = 0.0, turn: float = 0.0
    ) -> None:
        """Clutter that stands on the support; the layout removes it."""
        self._clutter.append(
            self._add(f"clutter:{name}", parts, (x, y, self.height), turn, role="clutter")
        )

    def ground(self, half: tuple[float, float], material: str, *, z: float = 0.0) -> None:
        """A level floor that things fall on, of half extents [m], its top at height z [m]."""
        self._floor(Box(half_extents=(*half, 0.05)), material, z)

    def round_ground(self, radius: float, material: str, *, z: float = 0.0) -> None:
        """A level round floor that things fall on, its top at height z [m]."""
        self._floor(Cylinder(radius=radius, height=0.1), material, z)

    def _floor(self, shape: Box | Cylinder, material: str, z: float) -> None:
        self._used.setdefault(material)
        self._bodies.append(
            Body(
                name=self._name("ground"), role="ground", motion="static", instance=0,
                collision=(Collision(shape=shape),),
                visuals=(Visual(shape=shape, material=f"setting/{material}"),),
                position=self.world((0.0, 0.0, z - 0.05)), quaternion_wxyz=yaw(self.turn),
            )
        )  # fmt: skip

    def stand(self, parts: Iterable[Part], *, thick: float = 0.05) -> None:
        """The support, its parts in the stage's frame; its top collides, ``thick`` [m] deep."""
        length, width = self.support.size
        shape = (
            Cylinder(radius=length / 2, height=thick)
            if self.round
            else Box(half_extents=(length / 2, width / 2, thick / 2))
        )
        lift = self.support.center[2] - self.floor
        self._bodies.append(
            Body(
                name=f"support:{self.surface}", role="support", motion="static",
                instance=SUPPORT_INSTANCE,
                collision=(Collision(shape=shape, position=(0.0, 0.0, -thick / 2)),),
                visuals=tuple(self._visual(p, -lift) for p in parts),
                position=self.support.center, quaternion_wxyz=yaw(self.turn),
            )
        )  # fmt: skip

    # --- the result ---

    def finish(
        self,
        *,
        azimuth: float,
        elevation: float,
        sky: Sky,
        color: Color = (1.0, 0.95, 0.87),
        strength: float = 2.2,
        softness: float = 0.03,
    ) -> Setting:
        """The setting, lit by a sun that stands at an azimuth and elevation of the stage [deg]."""
        a, e = math.radians(azimuth + self.turn), math.radians(elevation)
        sun = Sun(
            direction=(-math.cos(a) * math.cos(e), -math.sin(a) * math.cos(e), -math.sin(e)),
            color=color, strength=strength, softness=softness,
        )  # fmt: skip
        materials = tuple(
            self._looks[name].model_copy(update={"name": f"setting/{name}"}) for name in self._used
        )
        return Setting(
            tuple(self._bodies), materials, dict(self._meshes), sun, sky,
            {self.surface: tuple(self._clutter)},
        )  # fmt: skip

    @property
    def round(self) -> bool:
        """The support is a disc."""
        return is_round(self.surface, self.support)

    def world(self, at: Vec3) -> Vec3:
        """A place of the stage in the world [m]."""
        a = math.radians(self.turn)
        x, y, z = self.support.center[0], self.support.center[1], self.floor
        c, s = math.cos(a), math.sin(a)
        return (x + c * at[0] - s * at[1], y + s * at[0] + c * at[1], z + at[2])

    # --- parts ---

    def _add(self, name: str, parts: Iterable[Part], at: Vec3, turn: float, *, role: str) -> str:
        found = self._name(name)
        self._bodies.append(
            Body(
                name=found, role=role, motion="static", instance=0,
                visuals=tuple(self._visual(p, 0.0) for p in parts),
                position=self.world(at), quaternion_wxyz=yaw(self.turn + turn),
            )
        )  # fmt: skip
        return found

    def _visual(self, part: Part, lift: float) -> Visual:
        if part.material not in self._looks:
            raise KeyError(f"setting: no look {part.material!r}")
        self._used.setdefault(part.material)
        # A mesh lies around its own middle: its bounds are then tight wherever it is put.
        low, high = part.mesh.vertices.min(axis=0), part.mesh.vertices.max(axis=0)
        middle = np.round((low.astype(np.float64) + high) / 2, 4)
        vertices = (part.mesh.vertices - middle).astype(np.float32)
        mesh = MeshData(vertices, part.mesh.triangles, part.mesh.normals, part.mesh.uv)
        sha = mesh.content_hash()
        self._meshes[sha] = mesh
        x, y, z = middle.tolist()
        return Visual(
            shape=Mesh(sha256=sha, convex=part.solid), material=f"setting/{part.material}",
            position=(x, y, z + lift),
        )  # fmt: skip

    def _name(self, name: str) -> str:
        count = self._names.get(name, 0)
        self._names[name] = count + 1
        return f"{name}_{count}" if count else name


def is_round(name: str, surface: Surface) -> bool:
    """Whether a support is a disc, as the names of the released scenes' meshes say."""
    return name.startswith(("Circle", "Cylinder")) and surface.size[0] == surface.size[1]


# --- supports -----------------------------------------------------------------------------------


def top(stage: Stage, thick: float, material: str, *, bevel: float = 0.004) -> Part:
    """The support's own slab or disc, exactly as large and as high as the card says."""
    length, width = stage.support.size
    h, b = stage.height, bevel
    if stage.round:
        r = length / 2
        bend = [k * math.pi / 8 for k in range(5)]
        low = [(r - b + b * math.sin(t), h - thick + b - b * math.cos(t)) for t in bend]
        high = [(r - b + b * math.cos(t), h - b + b * math.sin(t)) for t in bend]
        disc = revolve([(0.0, h - thick), *low, *high, (0.0, h)], 96)
        return Part(disc, material)
    mesh = box((length / 2, width / 2, thick / 2), bevel, 2)
    vertices = mesh.vertices + np.array([0, 0, h - thick / 2], np.float32)
    return Part(MeshData(vertices, mesh.triangles, mesh.normals, mesh.uv), material, solid=True)


def table_legs(
    stage: Stage,
    inset: float,
    half: float,
    material: str,
    *,
    thick: float,
    taper: float = 0.7,
    apron: float = 0.0,
) -> Part:
    """Four legs under the support's slab, and perhaps an apron [m] high."""
    length, width = stage.support.size
    x, y, h = length / 2 - inset, width / 2 - inset, stage.height - thick
    legs = [
        tube(
            [(sx * (x + 0.02), sy * (y + 0.02), 0.0), (sx * x, sy * y, h)], [taper * half, half], 14
        )
        for sx in (-1, 1)
        for sy in (-1, 1)
    ]
    if apron > 0:
        legs += [
            slab((x, 0.012, apron / 2), 0.003, at=(0, s * y, h - apron / 2), steps=1)
            for s in (-1, 1)
        ]
        legs += [
            slab((0.012, y, apron / 2), 0.003, at=(s * x, 0, h - apron / 2), steps=1)
            for s in (-1, 1)
        ]
    return Part(merge(legs), material)


__all__ = ["Parts", "Setting", "Stage", "is_round", "look", "table_legs", "top", "yaw"]
