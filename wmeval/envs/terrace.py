"""The breakfast table on a wooden terrace that SunRisesAndSets looks at: bodies, looks, meshes."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from wmeval.assets import furniture, garden, tableware, terrace
from wmeval.assets.meshes import merge
from wmeval.assets.solids import Part, Parts, slab, turned
from wmeval.conventions import axis_angle_quaternion
from wmeval.envs.parts import block, material
from wmeval.scene import (
    Body,
    Collision,
    Material,
    Mesh,
    MeshData,
    Meshes,
    Vec3,
    Visual,
)

DECK_HALF_M, DECK_ABOVE_LAWN_M = 4.6, 0.22
"""The deck's top is z = 0."""
TABLE_TOP_Z = furniture.TABLE_HEIGHT

OBJECTS = ("dining_table", "chair_0", "chair_1", "chair_2", "chair_3", "toaster", "mug", "bowl",
           "plate", "knife", "lamp")  # fmt: skip
"""Names of what stands on the deck, as the paper lists it."""


def _on_table(right: float, away: float) -> tuple[float, float]:
    """Place (x, y) [m] on the table as the orbit camera (from -x -y) sees it."""
    s = math.sqrt(0.5)
    return s * (right + away), s * (away - right)


# name, role, parts, (x, y, z) [m], yaw [deg] counter-clockwise from above
def _things() -> list[tuple[str, str, Parts, Vec3, float]]:
    top = TABLE_TOP_Z
    chair = furniture.chair()

    def seat(angle: float, distance: float, turn: float = 0.0) -> tuple[Vec3, float]:
        a = math.radians(angle)
        # The sitter looks along the chair's +y: towards the table.
        return (distance * math.cos(a), distance * math.sin(a), 0.0), angle + 90.0 + turn

    on = [
        ("toaster", tableware.toaster(), _on_table(0.34, 0.26), -27.0),
        ("mug", tableware.mug(), _on_table(0.44, -0.24), -75.0),
        ("bowl", tableware.bowl(), _on_table(0.0, -0.02), 0.0),
        ("plate", tableware.plate(), _on_table(-0.14, -0.5), 0.0),
        ("knife", tableware.knife(), _on_table(0.08, -0.5), 48.0),
        ("lamp", furniture.table_lamp(), _on_table(-0.4, 0.24), 20.0),
    ]
    seats = [seat(2, 1.0), seat(93, 0.97, -4), seat(176, 1.02, 5), seat(268, 1.2, -16)]
    things: list[tuple[str, str, Parts, Vec3, float]] = [
        ("deck", "ground", _deck(), (0.0, 0.0, 0.0), 0.0),
        ("dining_table", "furniture", furniture.round_table(), (0.0, 0.0, 0.0), 0.0),
        *((f"chair_{i}", "furniture", chair, at, turn) for i, (at, turn) in enumerate(seats)),
        *(
            (name, "lamp" if name == "lamp" else "tableware", parts, (x, y, top), turn)
            for name, parts, (x, y), turn in on
        ),
    ]
    low = -DECK_ABOVE_LAWN_M
    edge = DECK_HALF_M - 0.65
    hedge = Part(garden.hedge(15.0, 0.9, 1.3, seed=3), "hedge", solid=True)
    far_hedge = Part(garden.hedge(11.0, 0.9, 1.15, seed=4), "hedge", solid=True)
    fence = terrace.picket_fence(14.0)
    things += [
        ("shrub_0", "garden", terrace.potted_shrub(1.15, 5), (edge, edge, 0.0), 0.0),
        ("shrub_1", "garden", terrace.potted_shrub(0.95, 6), (edge - 0.75, edge + 0.1, 0.0), 70.0),
        ("shrub_2", "garden", terrace.potted_shrub(1.05, 7), (-edge, edge, 0.0), 30.0),
        ("shrub_3", "garden", terrace.potted_shrub(1.0, 8), (edge, -edge, 0.0), 10.0),
        ("hedge_0", "garden", (hedge,), (-0.6, 8.6, low), 0.0),
        ("hedge_1", "garden", (far_hedge,), (-9.6, -1.0, low), 90.0),
        ("fence_0", "garden", fence, (8.2, 0.9, low), -90.0),
        ("fence_1", "garden", fence, (-0.5, -9.4, low), 180.0),
        ("tree_0", "garden", terrace.tree("maple", 3), (12.5, 6.6, low), 0.0),
        ("tree_1", "garden", terrace.tree("plum", 8), (13.0, -4.6, low), 0.0),
        ("tree_2", "garden", terrace.tree("maple", 9), (-14.0, 9.0, low), 40.0),
        ("tree_3", "garden", terrace.tree("birch", 4), (-13.0, -9.0, low), 0.0),
        ("wood", "garden", _wood(92.0, 12), (0.0, 0.0, low), 0.0),
        ("hills", "garden", (Part(garden.hills(120.0, 9.0, 5), "hills"),), (0.0, 0.0, low), 0.0),
    ]  # fmt: skip
    return things


def _wood(radius: float, seed: int) -> Parts:
    """A ring of distant trees."""
    return tuple(Part(sector, "far_trees") for sector in garden.tree_line(radius, seed, 3.4))


def _deck() -> Parts:
    """Boards on a frame with an edge of darker timber."""
    h, low, thick = DECK_HALF_M, DECK_ABOVE_LAWN_M, 0.025
    frame = slab((h, h, low / 2 - thick), 0.0, at=(0, 0, -low / 2 - thick / 2))
    edge = slab((h + 0.07, 0.035, low / 2 - 0.004), 0.008, at=(0, h + 0.035, -low / 2))
    edges = [turned(edge, (0, 0, 1), 90 * k) for k in range(4)]
    return (
        *terrace.deck_boards(h, thick, 2),
        Part(merge([frame, *edges]), "trim", solid=True),
    )


def _centred(part: Part) -> tuple[MeshData, Vec3]:
    """A part's mesh about the middle of its own box, and where that lies in the thing's frame."""
    points = part.mesh.vertices.astype(np.float64)
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    mesh = MeshData(
        (points - middle).astype(np.float32), part.mesh.triangles, part.mesh.normals, part.mesh.uv
    )
    x, y, z = middle.tolist()
    return mesh, (x, y, z)


def _collision(
    parts: Parts, visuals: list[Visual], meshes: dict[str, MeshData]
) -> tuple[Collision, ...]:
    """The look itself, as the one mesh that engines ask for."""
    if len(parts) == 1:
        shape = visuals[0].shape
        assert isinstance(shape, Mesh)
        at = visuals[0].position
        return (Collision(shape=Mesh(sha256=shape.sha256, convex=False), position=at),)
    whole = merge([part.mesh for part in parts])
    # Physics asks for places only.
    whole = MeshData(
        whole.vertices, whole.triangles, np.zeros_like(whole.normals), np.zeros_like(whole.uv)
    )
    key = whole.content_hash()
    meshes.setdefault(key, whole)
    return (Collision(shape=Mesh(sha256=key, convex=False)),)


def terrace_bodies() -> tuple[tuple[Body, ...], Meshes]:
    """All bodies, static, each with its own instance, and the meshes that they are made of.

    Collision geometry is the look itself, triangle by triangle, so that ray casts are exact; the
    distant trees have none.
    """
    bodies, meshes = _built()
    return bodies, dict(meshes)


@lru_cache(maxsize=1)
def _built() -> tuple[tuple[Body, ...], Meshes]:
    """What `terrace_bodies` says, built once in a process."""
    low = DECK_ABOVE_LAWN_M
    bodies = [
        block("lawn", "ground", 1, material="lawn", half=(220.0, 220.0, 0.5),
              position=(0.0, 0.0, -0.5 - low)),
    ]  # fmt: skip
    meshes: dict[str, MeshData] = {}
    for number, (name, role, parts, position, turn) in enumerate(_things(), start=2):
        visuals = []
        for part in parts:
            mesh, at = _centred(part)
            key = mesh.content_hash()
            meshes.setdefault(key, mesh)
            visuals.append(
                Visual(
                    shape=Mesh(sha256=key, convex=part.solid),
                    material=part.material,
                    position=at,
                )
            )
        collision = _collision(parts, visuals, meshes) if name != "wood" else ()
        w, x, y, z = axis_angle_quaternion((0.0, 0.0, 1.0), math.radians(turn)).tolist()
        bodies.append(
            Body(
                name=name, role=role, motion="static", instance=number, visuals=tuple(visuals),
                collision=collision, position=position, quaternion_wxyz=(w, x, y, z),
            )
        )  # fmt: skip
    return tuple(bodies), meshes


MATERIALS: tuple[Material, ...] = (
    material("lawn", "grass", (0.095, 0.165, 0.05), (0.155, 0.175, 0.075),
             uv_m=2.6, roughness=0.95, specular=0.0),
    material("deck_0", "wood", (0.40, 0.265, 0.16), (0.27, 0.165, 0.095), seed=1,
             roughness=0.62, specular=0.2),
    material("deck_1", "wood", (0.345, 0.225, 0.135), (0.23, 0.14, 0.08), seed=2,
             roughness=0.62, specular=0.2),
    material("deck_2", "wood", (0.45, 0.31, 0.195), (0.32, 0.205, 0.12), seed=3,
             roughness=0.62, specular=0.2),
    material("trim", "wood", (0.30, 0.18, 0.10), (0.19, 0.11, 0.06), uv_m=0.7, roughness=0.7),
    material("table_top", "wood", (0.43, 0.225, 0.09), (0.26, 0.12, 0.042),
             uv_m=0.9, roughness=0.30, specular=0.55),
    material("table_leg", "wood", (0.34, 0.17, 0.07), (0.21, 0.10, 0.036),
             uv_m=0.5, roughness=0.4, specular=0.4),
    material("chair", "wood", (0.72, 0.66, 0.55), (0.62, 0.55, 0.44),
             uv_m=0.6, roughness=0.45, specular=0.35),
    material("cushion", "noise", (0.11, 0.26, 0.30), (0.075, 0.19, 0.235),
             uv_m=0.12, roughness=0.95, specular=0.0),
    material("enamel", "speckle", (0.56, 0.045, 0.035), (0.50, 0.035, 0.03), (0.62, 0.07, 0.05),
             uv_m=0.6, roughness=0.16, specular=0.9),
    material("steel", "brushed", (0.62, 0.63, 0.65), (0.50, 0.51, 0.53),
             uv_m=0.2, roughness=0.2, specular=1.0),
    material("dark", "noise", (0.028, 0.028, 0.03), (0.018, 0.018, 0.02),
             uv_m=0.1, roughness=0.5, specular=0.4),
    material("toast", "noise", (0.62, 0.36, 0.13), (0.40, 0.19, 0.055),
             uv_m=0.06, roughness=0.9, specular=0.0),
    material("glaze", "speckle", (0.06, 0.19, 0.42), (0.045, 0.15, 0.35), (0.10, 0.26, 0.52),
             uv_m=0.12, roughness=0.14, specular=0.8),
    material("coffee", "noise", (0.035, 0.016, 0.008), (0.05, 0.024, 0.012),
             uv_m=0.05, roughness=0.12, specular=0.5),
    material("stoneware", "speckle", (0.74, 0.70, 0.60), (0.60, 0.54, 0.44), (0.80, 0.77, 0.70),
             uv_m=0.16, roughness=0.35, specular=0.5),
    material("inside", "speckle", (0.07, 0.30, 0.29), (0.05, 0.23, 0.23), (0.12, 0.40, 0.38),
             uv_m=0.14, roughness=0.16, specular=0.8),
    material("china", "speckle", (0.83, 0.82, 0.79), (0.79, 0.78, 0.75), (0.86, 0.85, 0.83),
             uv_m=0.2, roughness=0.15, specular=0.8),
    material("band", "stripes", (0.05, 0.15, 0.42), (0.09, 0.22, 0.50),
             uv_m=0.16, roughness=0.2, specular=0.7),
    material("blade", "brushed", (0.66, 0.67, 0.69), (0.54, 0.55, 0.57),
             uv_m=0.2, roughness=0.12, specular=1.0),
    material("handle", "wood", (0.10, 0.055, 0.03), (0.06, 0.032, 0.018),
             uv_m=0.15, roughness=0.4, specular=0.4),
    material("lamp_foot", "brushed", (0.52, 0.36, 0.13), (0.42, 0.28, 0.09),
             uv_m=0.3, roughness=0.22, specular=0.9),
    material("shade", "noise", (0.80, 0.73, 0.58), (0.72, 0.64, 0.49),
             uv_m=0.05, roughness=0.95, specular=0.0),
    material("bulb", "noise", (0.80, 0.80, 0.78), (0.74, 0.74, 0.72),
             uv_m=0.05, roughness=0.2, specular=0.6),
    material("terracotta", "concrete", (0.42, 0.16, 0.075), (0.33, 0.12, 0.055),
             uv_m=0.6, roughness=0.85, specular=0.1),
    material("soil", "noise", (0.07, 0.045, 0.028), (0.04, 0.026, 0.016),
             uv_m=0.2, roughness=1.0, specular=0.0),
    material("foliage", "leaves", (0.075, 0.165, 0.035), (0.12, 0.22, 0.05), (0.05, 0.11, 0.025),
             roughness=0.85, specular=0.05),
    material("hedge", "leaves", (0.055, 0.135, 0.032), (0.085, 0.175, 0.045), (0.035, 0.085, 0.02),
             roughness=0.9, specular=0.05),
    material("bark", "bark", (0.16, 0.11, 0.075), (0.09, 0.06, 0.04), roughness=0.95, specular=0.0),
    material("fence", "wood", (0.78, 0.77, 0.73), (0.68, 0.66, 0.61),
             uv_m=0.8, roughness=0.7, specular=0.15),
    material("far_trees", "leaves", (0.05, 0.105, 0.035), (0.075, 0.135, 0.045),
             roughness=0.95, specular=0.0),
    material("hills", "noise", (0.10, 0.16, 0.07), (0.15, 0.19, 0.09),
             roughness=0.95, specular=0.0),
)  # fmt: skip
