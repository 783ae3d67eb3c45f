"""A user's own mesh file as parts of a model: .glb, .gltf, .obj, .ply, .stl.

The lengths of a file are metres times the card's ``scale``. glTF is y-up by its specification and
is turned; other files are taken to be z-up as they stand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.loft import shaded
from wmeval.assets.models import Part
from wmeval.assets.textures import decode_srgb
from wmeval.errors import UserError, one_line
from wmeval.scene import Color, Material, Texture

SUFFIXES = (".glb", ".gltf", ".obj", ".ply", ".stl")
SMALLEST_M, LARGEST_M = 0.005, 3.0
CREASE_DEG = 40.0
"""Sharper edges stay sharp; normals are made anew."""
MOST_COLORS = 24
"""Faces of more colours than this are put together by the nearest of the most frequent."""
GREY: Color = (0.45, 0.45, 0.45)

_Y_UP = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])


def read_model(path: Path, scale: float, name: str) -> tuple[Part, ...]:
    """Parts of a file, one for each mesh and colour.

    Colours of vertices and faces, and the base colours of materials, become plain materials; of a
    picture texture its mean colour.

    Args:
        path: of the file.
        scale: factor on its lengths to metres.
        name: of the object; materials are named after it.

    Raises:
        UserError: no such file, another kind of file, one that cannot be read, one without
            triangles, or a thing of an odd size.
    """
    what = f"object {name!r}: {path}"
    if path.suffix.lower() == ".blend":
        raise UserError(
            f"{what}: a .blend is read by Blender alone: export it as .glb there, or render with "
            "--renderer cycles where bpy is installed"
        )
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"{what}: give one of {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise UserError(f"{what}: no such file: paths are relative to the card")
    import trimesh

    try:
        loaded = trimesh.load(path, process=False)
    except Exception as error:  # readers raise whatever their format's bytes lead to
        raise UserError(f"{what}: cannot be read: {one_line(error)}") from error
    pieces = loaded.dump() if isinstance(loaded, trimesh.Scene) else [loaded]
    turn = scale * (_Y_UP if path.suffix.lower() in (".glb", ".gltf") else np.eye(3))
    parts: list[Part] = []
    for piece in pieces:
        if len(getattr(piece, "faces", ())):
            if not np.isfinite(np.asarray(getattr(piece, "vertices", 0.0))).all():
                raise UserError(f"{what}: some vertices are not finite: export it anew")
            parts += _parts(piece, turn, name, len(parts))
    if not parts:
        raise UserError(f"{what}: no triangles in it")
    every = np.concatenate([p.mesh.vertices for p in parts])
    size = float(np.ptp(every, axis=0).max())
    if not SMALLEST_M <= size <= LARGEST_M:
        raise UserError(
            f"{what}: it is {size:.4g} m large; objects are {SMALLEST_M} to {LARGEST_M:g} m: set "
            "the asset's scale"
        )
    return tuple(parts)


def _parts(piece: Any, turn: NDArray[np.float64], name: str, first: int) -> list[Part]:
    faces = np.asarray(piece.faces, np.int64)
    vertices = np.asarray(piece.vertices, np.float64) @ turn.T
    colors, which = _colors(piece, len(faces))
    out: list[Part] = []
    for k, color in enumerate(colors):
        chosen = faces[which == k]
        used, again = np.unique(chosen, return_inverse=True)
        triangles = np.asarray(again, np.int64).reshape(-1, 3)
        uv = np.zeros((len(used), 2))
        mesh = shaded(vertices[used], triangles, uv, crease_deg=CREASE_DEG)
        if len(mesh.triangles):
            look = Material(
                name=f"{name}_{first + len(out)}",
                texture=Texture(builder="plain", colors=(color,), seed=first + len(out)),
                roughness=0.5,
                specular=0.4,
                uv_m=0.1,
            )
            out.append(Part(mesh, look))
    return out


def _colors(piece: Any, faces: int) -> tuple[list[Color], NDArray[np.int64]]:
    """Linear colours, and which of them each face has."""
    visual = piece.visual
    if visual.kind in ("vertex", "face"):
        codes = np.asarray(visual.face_colors, np.uint8)[:, :3]
        found, which, count = np.unique(codes, axis=0, return_inverse=True, return_counts=True)
        which = np.asarray(which).ravel()
        if len(found) > MOST_COLORS:
            main = np.sort(np.argsort(-count)[:MOST_COLORS])
            far = np.linalg.norm(
                found[:, None].astype(np.float64) - found[main][None].astype(np.float64), axis=-1
            )
            found, which = found[main], far.argmin(axis=1)[which]
        return [_linear(code) for code in found], which
    one = np.zeros(faces, np.int64)
    material = getattr(visual, "material", None)
    if material is None:
        return [GREY], one
    image = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    if image is not None:
        mean = decode_srgb(np.asarray(image.convert("RGB"), np.uint8)).mean(axis=(0, 1))
        return [(float(mean[0]), float(mean[1]), float(mean[2]))], one
    return [_linear(np.asarray(material.main_color, np.uint8)[:3])], one


def _linear(code: NDArray[np.uint8]) -> Color:
    r, g, b = decode_srgb(code).tolist()
    return (r, g, b)
