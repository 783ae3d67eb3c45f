"""A user's own file as a setting: its look as it is, its supports as the card says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from wmeval.assets.cards import File, SettingCard, Surface
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


def from_file(card: SettingCard, asset: File, path: Path) -> Setting:
    """Read a setting from a file.

    The file's surfaces become static looks with their mean colours; both sides are seen, since
    rooms of other tools are often made of sheets. The card's surfaces become the supports:
    invisible boxes (discs where the name says so) whose tops are the surfaces.

    Args:
        card: the setting's card.
        asset: its file row.
        path: of the file.

    Raises:
        UserError: no such file, a format that needs Blender, a file without triangles or one that
            cannot be read.
    """
    suffix = path.suffix.lower()
    if suffix not in READABLE:
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
    materials: dict[Color, Material] = {}
    for geometry in loaded.dump(concatenate=False):
        if not isinstance(geometry, trimesh.Trimesh) or not len(geometry.faces):
            continue
        mesh, middle = _mesh(geometry, asset.scale, suffix in Y_UP)
        sha = mesh.content_hash()
        meshes[sha] = mesh
        color = _color(geometry)
        look = materials.setdefault(color, _material(len(materials), color))
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


def _mesh(geometry: Any, scale: float, y_up: bool) -> tuple[MeshData, list[float]]:
    """A geometry around its own middle, z upwards, and where the middle is [m]."""
    vertices = np.asarray(geometry.vertices, np.float64) * scale
    normals = np.asarray(geometry.vertex_normals, np.float64)
    if y_up:
        vertices, normals = (a[:, [0, 2, 1]] * (1.0, -1.0, 1.0) for a in (vertices, normals))
    middle = (vertices.min(axis=0) + vertices.max(axis=0)) / 2
    uv = getattr(geometry.visual, "uv", None)
    uv = np.asarray(uv, np.float32) if uv is not None else np.zeros((len(vertices), 2), np.float32)
    length = np.linalg.norm(normals, axis=1, keepdims=True)
    normals = normals / np.where(length > 0, length, 1)
    mesh = MeshData(
        np.ascontiguousarray(vertices - middle, np.float32),
        np.ascontiguousarray(geometry.faces, np.uint32),
        np.ascontiguousarray(normals, np.float32),
        np.ascontiguousarray(uv),
    )
    return mesh, middle.tolist()


def _color(geometry: Any) -> Color:
    """Mean linear colour of a geometry, to two digits."""
    from wmeval.assets.textures import decode_srgb

    visual = geometry.visual
    try:
        colored = visual.to_color() if hasattr(visual, "to_color") else visual
        encoded = np.asarray(colored.vertex_colors)[:, :3].astype(np.uint8)
    except (AttributeError, ValueError, IndexError):
        encoded = np.full((1, 3), 170, np.uint8)
    r, g, b = np.round(decode_srgb(encoded).reshape(-1, 3).mean(axis=0).astype(float), 2).tolist()
    return (r, g, b)


def _material(index: int, color: Color) -> Material:
    return Material(
        name=f"setting/file_{index}", texture=Texture(builder="plaster", colors=(color,)),
        uv_m=1.0, two_sided=True,
    )  # fmt: skip


def _support(name: str, surface: Surface) -> Body:
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
