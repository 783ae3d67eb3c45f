"""A user's own file as a setting: its look as it is, its supports as the card says."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from wmeval.assets.cards import File, SettingCard
from wmeval.assets.cards import Surface as SupportSurface
from wmeval.assets.model_files import Surface, placed_pieces, surfaces
from wmeval.assets.pictures import image_texture
from wmeval.assets.settings.stage import SUPPORT_INSTANCE, Setting, is_round, yaw
from wmeval.errors import UserError
from wmeval.scene import (
    Body,
    Box,
    Collision,
    Color,
    Cylinder,
    Material,
    Mesh,
    MeshData,
    Sky,
    Sun,
    Texture,
    Visual,
)

READABLE = (".glb", ".gltf", ".obj", ".ply", ".stl")
Y_UP = (".glb", ".gltf")
"""Formats whose y axis points upwards."""

SUPPORT_DEPTH_M = 0.05
SUN = Sun(direction=(0.35, 0.55, -0.757), color=(1.0, 0.95, 0.87), strength=2.4, softness=0.03)
SKY = Sky(zenith=(0.58, 0.60, 0.64), horizon=(0.80, 0.80, 0.80), ground=(0.40, 0.38, 0.35))


def from_file(
    card: SettingCard,
    asset: File,
    path: Path,
    as_glb: Callable[[Path], Path] | None = None,
) -> Setting:
    """Read a setting from a file.

    The file's surfaces become static looks with their colours and pictures; both sides are seen,
    since rooms of other tools are often made of sheets. The card's surfaces become the supports:
    invisible boxes (discs where the name says so) whose tops are the surfaces.

    Args:
        card: the setting's card.
        asset: its file row.
        path: of the file.
        as_glb: makes a .glb of a .blend; None: these cannot be read.

    Raises:
        UserError: no such file, a format that needs Blender, a file without triangles or one that
            cannot be read.
    """
    if path.suffix.lower() == ".blend" and as_glb is not None and path.is_file():
        try:
            path = as_glb(path)
        except UserError as error:
            raise UserError(f"setting {card.id!r}: {error}") from error
    suffix = path.suffix.lower()
    if suffix not in READABLE and not (suffix == ".blend" and as_glb is not None):
        how = "open it in Blender and export it as .glb" if suffix == ".blend" else "convert it"
        raise UserError(
            f"setting {card.id!r}: {path.name}: {', '.join(READABLE)} can be read: {how}"
        )
    if not path.is_file():
        raise UserError(f"setting {card.id!r}: no file {path}: put it there or mend asset.path")
    import trimesh

    try:
        loaded = trimesh.load_scene(path)
    except Exception as error:  # readers of many formats raise all kinds
        raise UserError(f"setting {card.id!r}: {path} cannot be read: {error}") from error
    visuals: list[Visual] = []
    meshes: dict[str, MeshData] = {}
    materials: dict[Texture, Material] = {}
    for geometry in placed_pieces(loaded):
        if not isinstance(geometry, trimesh.Trimesh) or not len(geometry.faces):
            continue
        for surface in surfaces(geometry, gltf=suffix in Y_UP):
            mesh, middle = _mesh(geometry, surface, asset.scale, suffix in Y_UP)
            sha = mesh.content_hash()
            meshes[sha] = mesh
            texture = _plaster(surface.color)
            if surface.texels is not None:
                texture, carried = image_texture(surface.texels)
                meshes[carried.content_hash()] = carried
            look = materials.setdefault(texture, _material(len(materials), texture))
            visuals.append(
                Visual(
                    shape=Mesh(sha256=sha, convex=False), material=look.name,
                    position=(middle[0], middle[1], middle[2]),
                )
            )  # fmt: skip
    if not visuals:
        raise UserError(f"setting {card.id!r}: {path} holds no triangles: export its meshes")
    room = Body(name="room", role="setting", motion="static", instance=0, visuals=tuple(visuals))
    supports = tuple(_support(name, surface) for name, surface in card.surfaces.items())
    clutter = {name: surface.clutter_hide for name, surface in card.surfaces.items()}
    return Setting((room, *supports), tuple(materials.values()), meshes, SUN, SKY, clutter)


def _mesh(
    geometry: Any, surface: Surface, scale: float, y_up: bool
) -> tuple[MeshData, list[float]]:
    """A geometry's surface around its own middle, z upwards, and where the middle is [m]."""
    vertices = np.asarray(geometry.vertices, np.float64) * scale
    normals = np.asarray(geometry.vertex_normals, np.float64)
    if y_up:
        vertices, normals = (a[:, [0, 2, 1]] * (1.0, -1.0, 1.0) for a in (vertices, normals))
    used, triangles, uv = surface.laid_out(np.asarray(geometry.faces, np.int64), surface.chosen)
    vertices, normals = vertices[used], normals[used]
    # A file's own normals may look to the other side than its triangles do.
    corner = vertices[triangles]
    facing = np.cross(corner[:, 1] - corner[:, 0], corner[:, 2] - corner[:, 0])
    around = np.zeros_like(vertices)
    for k in range(3):
        np.add.at(around, triangles[:, k], facing)
    normals = np.where(((normals * around).sum(axis=1) < 0)[:, None], -normals, normals)
    middle = (vertices.min(axis=0) + vertices.max(axis=0)) / 2
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = normals / np.where(length > 0, length, 1)
    mesh = MeshData(
        np.ascontiguousarray(vertices - middle, np.float32),
        np.ascontiguousarray(triangles, np.uint32),
        np.ascontiguousarray(normals, np.float32),
        np.ascontiguousarray(uv, np.float32),
    )
    return mesh, middle.tolist()


def _plaster(color: Color) -> Texture:
    """A colour to two digits: files have it in many shades that nobody tells apart."""
    r, g, b = np.round(color, 2).tolist()
    return Texture(builder="plaster", colors=((r, g, b),))


def _material(index: int, texture: Texture) -> Material:
    return Material(
        name=f"setting/file_{index}", texture=texture,
        uv_m=1.0 if texture.builder == "plaster" else None, two_sided=True,
    )  # fmt: skip


def _support(name: str, surface: SupportSurface) -> Body:
    length, width = surface.size
    shape = (
        Cylinder(radius=length / 2, height=SUPPORT_DEPTH_M)
        if is_round(name, surface)
        else Box(half_extents=(length / 2, width / 2, SUPPORT_DEPTH_M / 2))
    )
    return Body(
        name=f"support:{name}", role="support", motion="static", instance=SUPPORT_INSTANCE,
        collision=(Collision(shape=shape, position=(0.0, 0.0, -SUPPORT_DEPTH_M / 2)),),
        position=surface.center, quaternion_wxyz=yaw(surface.long_axis_deg),
    )  # fmt: skip
