"""The court of WanderingGarden: what stands where, and of which material.

The plan, seen from above (x right, y forward, metres): a gravel walk leads from the gate (0, -17)
past two lamp posts to a round place with a fountain (0, 3), crosses a second walk there and goes on
north. Hedges close the court at x = +-19 and y = -17.6 and 21.6. Anchors, walks, trees and
furniture stand where they stand; the seed chooses bushes and flowers. What moves is in
`garden_life`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from wmeval.assets import garden, trees
from wmeval.assets.foliage import blades, leaf_cluster, lump, placed
from wmeval.assets.meshes import merge
from wmeval.envs.parts import yaw
from wmeval.scene import (
    Body,
    Box,
    Collision,
    Cylinder,
    Mesh,
    MeshData,
    Shape,
    Vec3,
    Visual,
)

Parts = Mapping[str, MeshData]

ANCHORS = ("main_tree", "lamp_left", "lamp_right", "rockery_front", "rockery_back")
"""The five landmarks (paper, Appendix D, WanderingGarden)."""
OBJECT_ROLES = ("anchor", "tree", "bush", "bench", "ornament", "visitor")
"""Bodies of these roles are what the player detects."""

HALF_X, SOUTH, NORTH = 19.0, -17.6, 21.6
"""Inner faces of the hedges [m] lie half a metre further in."""
PLAYER_RADIUS, PLAYER_HEIGHT = 0.4, 1.8
PLAYER_START: Vec3 = (0.0, -13.0, PLAYER_HEIGHT / 2)
VISITOR_RADIUS = 0.3
PLACE: tuple[float, float] = (0.0, 3.0)
PLACE_RADIUS = 5.6
WALK_HALF = 1.35

TREES: tuple[tuple[str, str, int, float, float, float, str], ...] = (
    # name, species, seed, x, y [m], turn [deg], leaves
    ("main_tree", "oak", 11, -7.6, 9.6, 40.0, "oak_leaves"),
    ("birch_0", "birch", 3, 11.0, 6.6, 0.0, "birch_leaves"),
    ("birch_1", "birch", 4, 13.6, 8.8, 90.0, "birch_leaves"),
    ("maple_0", "maple", 2, 9.0, -3.2, 10.0, "maple_leaves"),
    ("maple_1", "maple", 5, -14.6, 15.6, 80.0, "maple_leaves"),
    ("plum_0", "plum", 8, -9.2, -5.4, 0.0, "plum_leaves"),
    ("plum_1", "plum", 9, -12.8, -9.4, 130.0, "plum_leaves"),
    ("cypress_0", "cypress", 1, -3.6, 19.6, 0.0, "cypress_leaves"),
    ("cypress_1", "cypress", 2, 3.6, 19.6, 0.0, "cypress_leaves"),
    ("cypress_2", "cypress", 1, 14.5, 18.2, 70.0, "cypress_leaves"),
    ("cypress_3", "cypress", 2, -17.2, 5.8, 50.0, "cypress_leaves"),
    ("cypress_4", "cypress", 1, -17.0, -15.4, 20.0, "cypress_leaves"),
    ("cypress_5", "cypress", 2, 17.3, -15.6, 100.0, "cypress_leaves"),
    ("cypress_6", "cypress", 1, 17.4, -0.6, 10.0, "cypress_leaves"),
)


@dataclass
class Builder:
    """Collects bodies and meshes; instances count up from 1.

    Attributes:
        bodies: so far.
        meshes: content hash to mesh.
        boughs: swaying bodies: name, height over the ground [m] and how far out they grow, 0 to 1.
    """

    bodies: list[Body] = field(default_factory=list)
    meshes: dict[str, MeshData] = field(default_factory=dict)
    boughs: list[tuple[str, float, float]] = field(default_factory=list)

    def mesh(self, mesh: MeshData) -> Mesh:
        """Shape of a mesh, which is kept."""
        key = mesh.content_hash()
        self.meshes[key] = mesh
        return Mesh(sha256=key)

    def add(
        self,
        name: str,
        role: str,
        visuals: Sequence[Visual],
        at: Vec3,
        *,
        turn: float = 0.0,
        solid: Sequence[Collision] = (),
        moving: bool = False,
        active: bool = True,
    ) -> None:
        """A body at ``at`` [m], turned by ``turn`` [deg]; ``moving`` makes it kinematic."""
        self.bodies.append(
            Body(
                name=name, role=role, motion="kinematic" if moving else "static",
                instance=len(self.bodies) + 1, collision=tuple(solid), visuals=tuple(visuals),
                position=at, quaternion_wxyz=yaw(turn), friction=0.8, active=active,
            )
        )  # fmt: skip

    def stand(
        self,
        name: str,
        role: str,
        parts: Parts,
        at: tuple[float, float],
        *,
        middle: float,
        turn: float = 0.0,
        solid: Sequence[tuple[Shape, Vec3]] = (),
        looks: Mapping[str, str] | None = None,
    ) -> None:
        """A static ornament whose foot is at ``at``; its body's origin lies ``middle`` [m] above.

        Args:
            name: of the body.
            role: of the body.
            parts: material to mesh, origin at the foot.
            at: x, y [m].
            middle: height of the origin [m].
            turn: [deg].
            solid: collision shapes with their centres from the foot [m].
            looks: part to material, where they differ.
        """
        visuals = [
            Visual(
                shape=self.mesh(mesh), material=(looks or {}).get(part, part),
                position=(0.0, 0.0, -middle),
            )
            for part, mesh in parts.items()
        ]  # fmt: skip
        collision = [
            Collision(shape=shape, position=(x, y, z - middle)) for shape, (x, y, z) in solid
        ]
        self.add(name, role, visuals, (at[0], at[1], middle), turn=turn, solid=collision)

    def slab(self, name: str, role: str, look: str, half: Vec3, at: Vec3, *, turn: float = 0.0,
             solid: bool = False, bevel: float = 0.0) -> None:  # fmt: skip
        """A static box."""
        shape = Box(half_extents=half, bevel=bevel)
        self.add(
            name, role, [Visual(shape=shape, material=look)], at, turn=turn,
            solid=[Collision(shape=Box(half_extents=half))] if solid else (),
        )  # fmt: skip


# --- the parts of the court ---------------------------------------------------------------------


def grounds(b: Builder) -> None:
    """Lawn, walks, the round place, hedges, walls and the far background."""
    b.slab("ground", "ground", "lawn", (220.0, 220.0, 0.5), (0.0, 0.0, -0.5), solid=True)
    px, py = PLACE
    b.slab("walk_south", "walk", "gravel", (WALK_HALF, 8.0, 0.02), (0, -9.5, -0.006))
    b.slab("walk_north", "walk", "gravel", (WALK_HALF, 5.3, 0.02), (0, 13.4, -0.006))
    b.slab("walk_west", "walk", "gravel", (6.9, 1.15, 0.02), (-12.0, py, -0.006))
    b.slab("walk_east", "walk", "gravel", (6.9, 1.15, 0.02), (12.0, py, -0.006))
    disc, ring = (Cylinder(radius=PLACE_RADIUS + w, height=0.04) for w in (0.0, 0.22))
    b.add("place_edge", "walk", [Visual(shape=ring, material="kerb")], (px, py, -0.003))
    b.add("place", "walk", [Visual(shape=disc, material="paving")], (px, py, 0.0))
    for side, name in ((-1, "west"), (1, "east")):
        for way, middle, half in (("south", -9.5, 8.0), ("north", 13.4, 5.3)):
            b.slab(f"kerb_{way}_{name}", "walk", "kerb", (0.07, half, 0.035),
                   (side * (WALK_HALF + 0.07), middle, 0.0), bevel=0.015)  # fmt: skip
    width = 1.2
    for name, at, length, turn in (
        ("hedge_west", (-HALF_X - 0.6, 2.0), 40.4, 90.0),
        ("hedge_east", (HALF_X + 0.6, 2.0), 40.4, 90.0),
        ("hedge_north", (0.0, NORTH + 0.6), 39.6, 0.0),
        ("hedge_south_west", (-10.6, SOUTH - 0.6), 17.2, 0.0),
        ("hedge_south_east", (10.6, SOUTH - 0.6), 17.2, 0.0),
    ):
        mesh = garden.hedge(length, width, 2.0, seed=len(name))
        box = Box(half_extents=(length / 2, width / 2, 1.0))
        b.stand(name, "hedge", {"hedge_leaves": mesh}, at, middle=1.0, turn=turn,
                solid=[(box, (0.0, 0.0, 1.0))])  # fmt: skip
    b.stand("gate", "ornament", garden.gate(), (0.0, SOUTH - 0.45), middle=1.1,
            solid=[(Box(half_extents=(2.0, 0.4, 1.2)), (0.0, 0.0, 1.2))],
            looks={"stone": "masonry"})  # fmt: skip
    for name, at, half, turn in (
        ("wall_west", (-12.4, -0.6), 3.4, 0.0),
        ("wall_east", (12.6, -0.2), 3.0, 0.0),
        ("wall_tree", (-12.6, 12.4), 3.0, 62.0),
    ):
        visuals = [
            Visual(shape=Box(half_extents=(half, 0.2, 0.3), bevel=0.02), material="masonry"),
            Visual(shape=Box(half_extents=(half + 0.06, 0.26, 0.05), bevel=0.02), material="coping",
                   position=(0.0, 0.0, 0.35)),
        ]  # fmt: skip
        solid = [Collision(shape=Box(half_extents=(half + 0.06, 0.26, 0.4)))]
        b.add(name, "wall", visuals, (*at, 0.3), turn=turn, solid=solid)
    for i, mesh in enumerate(garden.tree_line(46.0, 3)):
        # Around its own middle: what is not in view is not drawn.
        x, y, z = (float(v) for v in mesh.vertices.mean(axis=0))
        visual = Visual(shape=b.mesh(placed(mesh, (-x, -y, -z))), material="forest")
        b.add(f"tree_line_{i}", "background", [visual], (x, y + 2.0, z))
    far = Visual(shape=b.mesh(garden.hills(110.0, 17.0, 4)), material="hills")
    b.add("hills", "background", [far], (0.0, 2.0, 0.0))


def landmarks(b: Builder) -> None:
    """Lamp posts, rockeries, fountain, pond, pergola, benches and urns."""
    lamp: list[tuple[Shape, Vec3]] = [(Cylinder(radius=0.26, height=3.0), (0.0, 0.0, 1.5))]
    for name, x in (("lamp_left", -2.75), ("lamp_right", 2.75)):
        b.stand(name, "anchor", garden.lamp_post(), (x, -3.6), middle=1.725, solid=lamp)
    for name, kind, at, turn in (
        ("rockery_front", "foreground", (3.7, -6.3), -15.0),
        ("rockery_back", "background", (5.6, 14.0), 10.0),
    ):
        radius, height = garden.ROCKERY_SIZE[kind]
        solid = [(Cylinder(radius=radius, height=height), (0.0, 0.0, height / 2))]
        b.stand(name, "anchor", garden.rockery(kind), at, middle=height / 2, turn=turn, solid=solid,
                looks={"leaves": "reed_leaves"})  # fmt: skip
    radius = garden.BASIN_RADIUS + 0.1
    b.stand("fountain", "ornament", garden.fountain(), PLACE, middle=0.9,
            solid=[(Cylinder(radius=radius, height=garden.BASIN_HEIGHT), (0, 0, 0.28)),
                   (Cylinder(radius=0.75, height=1.2), (0, 0, 1.15))])  # fmt: skip
    b.stand("pond", "ornament", garden.pond(2.3), (9.6, -9.2), middle=0.1, turn=25.0,
            solid=[(Cylinder(radius=2.55, height=0.6), (0, 0, 0.3))])  # fmt: skip
    posts = [
        (Box(half_extents=(0.1, 0.1, 1.25)), (x, y, 1.25))
        for x in (-2.0, 0.0, 2.0)
        for y in (-1.05, 1.05)
    ]
    b.stand("pergola", "ornament", garden.pergola(), (11.8, 14.2), middle=1.3, turn=30.0,
            solid=posts, looks={"wood": "white_wood", "leaves": "vine_leaves"})  # fmt: skip
    seat = [(Box(half_extents=garden.BENCH_HALF), (0.0, 0.0, 0.44))]
    for i, (x, y, turn) in enumerate(
        ((-4.9, 6.9, 50.0), (4.9, 6.9, -50.0), (-4.9, -0.9, 130.0), (14.4, -4.6, -60.0),
         (-16.6, -4.0, 90.0))
    ):  # fmt: skip
        b.stand(f"bench_{i}", "bench", garden.bench(), (x, y), middle=0.44, turn=turn, solid=seat)
    pot = [(Cylinder(radius=0.4, height=1.2), (0.0, 0.0, 0.6))]
    for i, (x, y) in enumerate(((-2.2, -15.6), (2.2, -15.6), (-1.9, 9.3), (1.9, 9.3))):
        b.stand(f"urn_{i}", "ornament", garden.urn(), (x, y), middle=0.6, solid=pot,
                looks={"leaves": "bush_leaves_1"})  # fmt: skip


def woods(b: Builder) -> None:
    """Trees: trunks stand still, one body per bough sways."""
    for name, species, seed, x, y, turn, leaves in TREES:
        kind = trees.SPECIES[species]
        still, limbs = trees.boughs(species, seed)
        middle = 0.45 * kind.height if species != "oak" else 2.2
        bark = {"birch": "birch_bark", "oak": "oak_bark"}.get(species, "bark")
        down = (0.0, 0.0, -middle)
        visuals = [
            Visual(shape=b.mesh(trees.grow(species, seed).wood), material=bark, position=down),
            Visual(shape=b.mesh(still), material=leaves, position=down),
        ]
        thick = 1.5 * kind.trunk if species != "cypress" else 0.85
        solid = Collision(shape=Cylinder(radius=thick, height=2 * middle))
        role = "anchor" if name in ANCHORS else "tree"
        b.add(name, role, visuals, (x, y, middle), turn=turn, solid=[solid])
        c, s = math.cos(math.radians(turn)), math.sin(math.radians(turn))
        for i, bough in enumerate(limbs):
            jx, jy, jz = bough.joint
            at = (x + c * jx - s * jy, y + s * jx + c * jy, jz)
            body = f"{name}_bough_{i}"
            visual = Visual(shape=b.mesh(bough.leaves), material=leaves)
            b.add(body, "foliage", [visual], at, turn=turn, moving=True)
            b.boughs.append((body, jz, bough.outer))


BEDS: tuple[tuple[float, float, float, float], ...] = (
    # x, y of the centre, half length, turn [deg]
    (-2.35, -10.4, 2.6, 90.0), (2.35, -10.9, 2.2, 90.0), (-4.9, 12.9, 1.5, 20.0),
    (-6.9, -1.6, 1.6, 150.0), (6.4, 9.8, 1.5, 140.0), (-12.4, 0.3, 2.6, 0.0),
    (12.6, 0.75, 2.3, 0.0),
)  # fmt: skip
BUSHES: tuple[tuple[float, float, float], ...] = (
    # x, y [m] and how far [m] the seed may move it
    (-4.6, -3.0, 0.15), (6.3, -0.6, 0.2), (-7.2, 5.6, 0.3), (7.4, 5.6, 0.3), (-14.6, 8.2, 0.7),
    (16.6, 4.9, 0.5), (13.8, -14.2, 0.7), (-14.6, -12.6, 0.7), (-6.2, -13.4, 0.7),
    (6.6, -13.2, 0.5), (-8.6, 18.4, 0.7), (9.0, 18.9, 0.6), (17.2, 12.4, 0.5),
    (-4.6, -7.6, 0.4), (5.6, -2.9, 0.3),
)  # fmt: skip


def plantings(b: Builder, rng: np.random.Generator) -> None:
    """Flower beds, bushes and reeds: kinds, places and sizes from the seed."""
    for i, (x, y, half, turn) in enumerate(BEDS):
        mounds = []
        count = round(half / 0.5)
        for k in range(count):
            size = float(rng.uniform(0.36, 0.5))
            shape = leaf_cluster(60 + k % 4, (0.62, size, 0.24), sprays=34, spray=0.17, metres=0.75)
            along = -half + (2 * k + 1) * half / count
            mounds.append(placed(shape, (along, float(rng.normal(0, 0.06)), 0.1),
                                 float(rng.choice((0.0, math.pi)))))  # fmt: skip
        soil = lump(9, (half + 0.3, 0.62, 0.12), level=1, bumps=0.04, metres=1.0)
        look = f"flowers_{int(rng.integers(4))}"
        b.stand(f"bed_{i}", "flowers", {look: merge(mounds), "soil": soil}, (x, y), middle=0.15,
                turn=turn)  # fmt: skip
    for i, (x, y, slack) in enumerate(BUSHES):
        at = (x + float(rng.uniform(-slack, slack)), y + float(rng.uniform(-slack, slack)))
        kind = int(rng.integers(3))
        size = float(rng.choice((0.55, 0.65, 0.75)))
        radii = (size, size, size * (0.95, 0.8, 1.1)[kind])
        sprays, spray = ((110, 0.12), (90, 0.21), (84, 0.25))[kind]
        mesh = leaf_cluster(40 + kind, radii, sprays=sprays, spray=spray, level=1, droop=0.0,
                            metres=0.7)  # fmt: skip
        look = f"bush_leaves_{kind}" if i % 4 else f"flowers_{kind}"
        solid = Cylinder(radius=size, height=1.8 * radii[2])
        b.stand(f"bush_{i:02d}", "bush", {look: placed(mesh, (0, 0, 0.8 * radii[2]))}, at,
                middle=0.8 * radii[2], turn=float(rng.uniform(0, 360)),
                solid=[(solid, (0, 0, 0.9 * radii[2]))])  # fmt: skip
    for i, (x, y) in enumerate(((11.4, -7.9), (8.0, -11.2), (11.9, -10.2))):
        name, mesh = f"reeds_{i}", blades(20 + i, 30, 1.25, 0.3, lean=0.3)
        b.add(name, "foliage", [Visual(shape=b.mesh(mesh), material="reed_leaves")], (x, y, 0.0),
              turn=float(rng.uniform(0, 360)), moving=True)  # fmt: skip
        b.boughs.append((name, 1.0, 1.0))
