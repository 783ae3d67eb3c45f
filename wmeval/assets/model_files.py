"""A user's own mesh file as parts of a model: .glb, .gltf, .obj, .ply, .stl, by Blender .blend.

The lengths of a file are metres times the card's ``scale``. glTF is y-up by its specification and
is turned; other files are taken to be z-up as they stand.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.loft import shaded
from wmeval.assets.models import Part
from wmeval.assets.outsides import outwards
from wmeval.assets.pictures import from_image, image_texture
from wmeval.assets.textures import decode_srgb, encode_srgb
from wmeval.errors import UserError, one_line
from wmeval.scene import Color, Material, Texture

SUFFIXES = (".glb", ".gltf", ".obj", ".ply", ".stl")
GLTF = (".glb", ".gltf")
SMALLEST_M, LARGEST_M = 0.005, 3.0
CREASE_DEG = 40.0
"""Sharper edges stay sharp; normals are made anew."""
MOST_COLORS = 24
"""Faces of more colours than this are one part, each of its texel of a palette."""
UV_STEP = 2.0**-18
"""Texture coordinates are rounded to this: Blender's modifiers leave noise in their last bits."""
PALETTE_SIDE, PALETTE_PX = 64, 8
"""Colours along a side of a palette, and pixels along a side of each."""
GREY: Color = (0.45, 0.45, 0.45)

_Y_UP = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])


def read_model(
    path: Path, scale: float, name: str, as_glb: Callable[[Path], Path] | None = None
) -> tuple[Part, ...]:
    """Parts of a file, one for each mesh and colour.

    Colours of vertices and faces, and the base colours of materials, become plain materials;
    pictures of base colours stay pictures. Other maps (normals, roughness, transparency) are left
    out. Closed surfaces are turned outwards, open ones are seen from both sides.

    Args:
        path: of the file.
        scale: factor on its lengths to metres.
        name: of the object; materials are named after it.
        as_glb: makes a .glb of a .blend; None: these cannot be read.

    Raises:
        UserError: no such file, another kind of file, one that cannot be read, one without
            triangles, or a thing of an odd size.
    """
    what = f"object {name!r}: {path}"
    if path.suffix.lower() == ".blend":
        if as_glb is None:
            raise UserError(f"{what}: a .blend is read by Blender alone: export it as .glb there")
        if not path.is_file():
            raise UserError(f"{what}: no such file: paths are relative to the card")
        try:
            path = as_glb(path)
        except UserError as error:
            raise UserError(f"object {name!r}: {error}") from error
    if path.suffix.lower() not in SUFFIXES:
        raise UserError(f"{what}: give one of .blend, {', '.join(SUFFIXES)}")
    if not path.is_file():
        raise UserError(f"{what}: no such file: paths are relative to the card")
    import trimesh

    try:
        loaded: Any = trimesh.load(path, process=False)
    except Exception as error:  # readers raise whatever their format's bytes lead to
        raise UserError(f"{what}: cannot be read: {one_line(error)}") from error
    pieces = placed_pieces(loaded) if isinstance(loaded, trimesh.Scene) else [loaded]
    pieces = [piece for piece in pieces if len(getattr(piece, "faces", ()))]
    gltf = path.suffix.lower() in GLTF
    turn = scale * (_Y_UP if gltf else np.eye(3))
    placed = [np.asarray(piece.vertices, np.float64) @ turn.T for piece in pieces]
    if not all(np.isfinite(vertices).all() for vertices in placed):
        raise UserError(f"{what}: some vertices are not finite: export it anew")
    triangles = [np.asarray(piece.faces, np.int64) for piece in pieces]
    parts: list[Part] = []
    for piece, vertices, (faces, thin) in zip(
        pieces, placed, outwards(list(zip(placed, triangles, strict=True))), strict=True
    ):
        for surface in surfaces(piece, gltf=gltf):
            for two_sided in (False, True):
                chosen = surface.chosen & (thin == two_sided)
                parts += _part(vertices, faces, chosen, surface, f"{name}_{len(parts)}", two_sided)
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


def placed_pieces(scene: Any) -> list[Any]:
    """Geometries of a trimesh scene where they stand, the colours beside their materials kept."""
    out = []
    for node in scene.graph.nodes_geometry:
        transform, name = scene.graph[node]
        geometry = scene.geometry[name]
        piece = geometry.copy()
        piece.apply_transform(transform)
        kept = getattr(getattr(geometry, "visual", None), "vertex_attributes", None)
        if kept and "color" in kept and hasattr(piece.visual, "vertex_attributes"):
            piece.visual.vertex_attributes["color"] = kept["color"]
        out.append(piece)
    return out


def _part(
    vertices: NDArray[np.float64],
    faces: NDArray[np.int64],
    chosen: NDArray[np.bool_],
    surface: Surface,
    name: str,
    two_sided: bool,
) -> list[Part]:
    """The part of some triangles; none of none."""
    if not chosen.any():
        return []
    used, triangles, uv = surface.laid_out(faces, chosen)
    mesh = shaded(vertices[used], triangles, uv, crease_deg=CREASE_DEG)
    if not len(mesh.triangles):
        return []
    carried = None
    if surface.texels is not None:
        texture, carried = image_texture(surface.texels)
    else:
        texture = Texture(
            builder="plain", colors=(surface.color,), seed=int(name.rpartition("_")[2])
        )
    look = Material(
        name=name,
        texture=texture,
        roughness=0.5,
        specular=0.4,
        uv_m=None if carried is not None else 0.1,
        two_sided=two_sided,
    )
    return [Part(mesh, look, picture=carried)]


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles of one look.

    Attributes:
        chosen: (F,) which triangles of the piece.
        color: linear; of a picture the mean.
        texels: (H, W, 3) sRGB of a picture, the lowest row first; None: one colour.
        uv: of the piece's vertices (V, 2), where there is a picture.
        face_uv: of its triangles (F, 2) instead, one for all of each.
    """

    chosen: NDArray[np.bool_]
    color: Color
    texels: NDArray[np.uint8] | None = None
    uv: NDArray[np.float64] | None = None
    face_uv: NDArray[np.float64] | None = None

    def laid_out(
        self, faces: NDArray[np.int64], chosen: NDArray[np.bool_]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
        """Some triangles alone: which of the vertices they use, their own, coordinates (N, 2)."""
        if self.face_uv is not None:
            used = faces[chosen].ravel()
            each = np.arange(len(used)).reshape(-1, 3)
            return used, each, np.repeat(self.face_uv[chosen], 3, axis=0)
        used, again = np.unique(faces[chosen], return_inverse=True)
        uv = np.zeros((len(used), 2)) if self.uv is None else self.uv[used]
        return used, np.asarray(again, np.int64).reshape(-1, 3), uv


def surfaces(piece: Any, *, gltf: bool) -> list[Surface]:
    """What the triangles of a trimesh look like.

    Args:
        piece: a mesh as it was read.
        gltf: numbers of colours are linear, and a material without colour is white, as glTF says;
            else they are codes of sRGB.
    """
    visual, faces = piece.visual, len(piece.faces)
    every = np.ones(faces, bool)
    if visual.kind in ("vertex", "face"):
        return _of_codes(np.asarray(visual.face_colors, np.uint8)[:, :3], gltf, (1.0, 1.0, 1.0))
    material = getattr(visual, "material", None)
    if material is None:
        return [Surface(every, GREY)]
    image = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
    given = getattr(material, "baseColorFactor", None)
    factor: Color = (1.0, 1.0, 1.0)
    if gltf and given is not None:
        factor = _color(np.asarray(given, np.uint8)[:3], gltf)
    codes = _tints(visual, np.asarray(piece.faces, np.int64), len(piece.vertices))
    if image is not None:
        if codes is not None:
            r, g, b = (np.array(factor) * codes.mean(axis=0) / 255).tolist()
            factor = (r, g, b)
        texels = from_image(image, factor)
        mean = decode_srgb(texels).reshape(-1, 3).mean(axis=0, dtype=np.float64)
        uv = getattr(visual, "uv", None)
        if uv is not None and np.shape(uv) == (len(piece.vertices), 2) and np.isfinite(uv).all():
            places = np.rint(np.asarray(uv, np.float64) / UV_STEP) * UV_STEP
            return [Surface(every, _triple(mean), texels, places)]
        return [Surface(every, _triple(mean))]
    if codes is not None:
        return _of_codes(codes, gltf, factor)
    if gltf:
        return [Surface(every, factor)]
    return [Surface(every, _color(np.asarray(material.main_color, np.uint8)[:3], gltf))]


def _tints(visual: Any, faces: NDArray[np.int64], vertices: int) -> NDArray[np.uint8] | None:
    """Colours of faces that stand beside a material, as codes (F, 3)."""
    kept = getattr(visual, "vertex_attributes", None)
    found = kept.get("color") if kept else None
    if found is None or np.ndim(found) != 2 or len(found) != vertices or np.shape(found)[1] < 3:
        return None
    values = np.asarray(found)[:, :3]
    most = float(np.iinfo(values.dtype).max) if values.dtype.kind in "iu" else 1.0
    share = np.clip(values.astype(np.float64) / most, 0, 1)[faces].mean(axis=1)
    return np.asarray(np.rint(share * 255), np.uint8)


def _of_codes(codes: NDArray[np.uint8], gltf: bool, factor: Color) -> list[Surface]:
    found, which = np.unique(codes, axis=0, return_inverse=True)
    which = np.asarray(which).ravel()
    if len(found) > MOST_COLORS:
        return [_palette(codes, gltf, factor)]
    return [
        Surface(which == k, _triple(np.array(_color(code, gltf)) * factor))
        for k, code in enumerate(found)
    ]


def _palette(codes: NDArray[np.uint8], gltf: bool, factor: Color) -> Surface:
    """Faces of many colours: what is alike to a sixteenth of each channel has its mean."""
    cells, which = np.unique(codes // 16, axis=0, return_inverse=True)
    which = np.asarray(which).ravel()
    linear = codes / 255.0 if gltf else decode_srgb(codes).astype(np.float64)
    count = np.bincount(which)
    means = np.stack([np.bincount(which, linear[:, k]) / count for k in range(3)], axis=1)
    grid = np.zeros((PALETTE_SIDE, PALETTE_SIDE, 3), np.float32)
    grid.reshape(-1, 3)[: len(cells)] = means * factor
    texels = encode_srgb(grid).repeat(PALETTE_PX, axis=0).repeat(PALETTE_PX, axis=1)
    row, column = np.divmod(which, PALETTE_SIDE)
    uv = (np.stack([column, row], axis=1) + 0.5) / PALETTE_SIDE
    mean = _triple(linear.mean(axis=0) * factor)
    return Surface(np.ones(len(codes), bool), mean, texels, face_uv=uv)


def _color(code: NDArray[np.uint8], gltf: bool) -> Color:
    return _triple(code / 255.0 if gltf else decode_srgb(code))


def _triple(color: NDArray[Any]) -> Color:
    r, g, b = color.tolist()
    return (r, g, b)
