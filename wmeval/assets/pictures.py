"""Pictures of a user's files as textures.

A picture's texels travel beside the meshes, under the hash of their content, in the four arrays of
a `MeshData`: so they are stored, checked and sent wherever meshes are, and engines, which look up
the shapes that they know, never meet them. The texture's builder is ``image:`` and that hash.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.errors import UserError
from wmeval.scene import Color, Material, MeshData, Meshes, Texture

U1 = NDArray[np.uint8]
F4 = NDArray[np.float32]

PREFIX = "image:"
LARGEST_PX = 2048
"""Larger pictures are made smaller, each texel the mean of what it covers."""

_known: weakref.WeakValueDictionary[str, U1] = weakref.WeakValueDictionary()
"""Texels by hash, while somebody holds them."""


def packed(texels: U1) -> MeshData:
    """Texels (H, W, 3) as what travels; `unpacked` gives them back."""
    raw = np.zeros(-(-texels.size // 12) * 12, np.uint8)
    raw[: texels.size] = texels.ravel()
    return MeshData(
        np.array([texels.shape], np.float32),
        raw.view("<u4").reshape(-1, 3),
        np.zeros((1, 3), np.float32),
        np.zeros((1, 2), np.float32),
    )


def unpacked(mesh: MeshData) -> U1:
    """Inverse of `packed`.

    Raises:
        UserError: it is no picture.
    """
    shape = tuple(int(n) for n in mesh.vertices.reshape(-1))
    count = int(np.prod(shape, dtype=np.int64))
    raw = np.ascontiguousarray(mesh.triangles, "<u4").view(np.uint8).reshape(-1)
    if len(shape) != 3 or shape[2] != 3 or not 0 < count <= len(raw):
        raise UserError("a texture's picture is no picture: build the scene anew from its files")
    return np.array(raw[:count].reshape(shape))


def from_image(image: Any, factor: Color = (1.0, 1.0, 1.0)) -> U1:
    """Texels (H, W, 3) sRGB of a PIL image, the lowest row first, as texture coordinates have it.

    Args:
        image: what was read; its transparency is left out.
        factor: linear, on every texel.
    """
    from wmeval.assets.textures import decode_srgb

    texels = np.asarray(image.convert("RGB"), np.uint8)[::-1]
    height, width = (min(n, LARGEST_PX) for n in texels.shape[:2])
    if texels.shape[:2] == (height, width) and factor == (1.0, 1.0, 1.0):
        return np.ascontiguousarray(texels)
    linear = _resized(decode_srgb(texels), height, width) * np.array(factor, np.float32)
    return _encoded(linear)


def image_texture(texels: U1) -> tuple[Texture, MeshData]:
    """The texture of a picture, its colour the mean, and what is to travel with the meshes."""
    from wmeval.assets.textures import decode_srgb

    mesh = packed(texels)
    mean = decode_srgb(texels).reshape(-1, 3).mean(axis=0, dtype=np.float64)
    r, g, b = np.round(mean, 4).tolist()
    return Texture(builder=PREFIX + mesh.content_hash(), colors=((r, g, b),)), mesh


def picture_key(texture: Texture) -> str | None:
    """Hash of a texture's picture; None: it has none."""
    return texture.builder[len(PREFIX) :] if texture.builder.startswith(PREFIX) else None


def picture_keys(materials: Iterable[Material]) -> frozenset[str]:
    """Hashes of the pictures that looks need."""
    return frozenset(key for m in materials if (key := picture_key(m.texture)) is not None)


def provide(materials: Iterable[Material], meshes: Meshes) -> tuple[U1, ...]:
    """Make the pictures of looks known to `sampled`, as long as the answer is held.

    Raises:
        UserError: a picture that is not beside the meshes.
    """
    held = []
    for key in sorted(picture_keys(materials)):
        texels = _known.get(key)
        if texels is None:
            if key not in meshes:
                raise UserError(
                    f"the picture {key[:12]} of a texture is not with the scene's meshes: build "
                    "the scene anew from its files"
                )
            texels = _known[key] = unpacked(meshes[key])
        held.append(texels)
    return tuple(held)


def sampled(texture: Texture, size: int) -> U1:
    """A picture's texture as (size, size, 3) sRGB, the lowest row first.

    Raises:
        UserError: nobody provided it.
    """
    from wmeval.assets.textures import decode_srgb

    texels = _known.get(picture_key(texture) or "")
    if texels is None:
        raise UserError(f"no picture for the texture {texture.builder[:18]!r}: draw it in a scene")
    if texels.shape[:2] == (size, size):
        return texels.copy()
    return _encoded(_resized(decode_srgb(texels), size, size))


def _resized(linear: F4, height: int, width: int) -> F4:
    """By the means of what texels cover where it becomes smaller, by lines where larger."""
    import cv2

    low = min(height, linear.shape[0]), min(width, linear.shape[1])
    out = cv2.resize(np.ascontiguousarray(linear), low[::-1], interpolation=cv2.INTER_AREA)
    out = cv2.resize(out, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(out, np.float32).reshape(height, width, 3)


def _encoded(linear: F4) -> U1:
    from wmeval.assets.textures import encode_srgb

    return np.ascontiguousarray(encode_srgb(np.clip(linear, 0, 1)), np.uint8)
