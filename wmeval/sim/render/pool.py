"""Baked textures as layers of one array, kept between the scenes of a process.

Scenes of one room, or with the same objects, share most of their textures, and making these takes
longer than all else. Which layer a texture lies in changes no bit of a picture.
"""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from wmeval.assets.textures import bake, decode_srgb
from wmeval.scene import Texture
from wmeval.sim.render import gl

if TYPE_CHECKING:
    from wmeval.sim.render.gl import Device

KEPT_BYTES = 256 << 20
"""Up to here textures that no scene needs now are kept."""

LAYERS_MORE = 16
"""An array grows by so many layers at once."""


class TexturePool:
    """Textures of one size; texels hold the square root of linear light.

    Args:
        device: of this process.
        size: texels along a side.
    """

    def __init__(self, device: Device, size: int) -> None:
        self._device, self.size = device, size
        self._levels = size.bit_length()
        self._array = 0
        self._capacity = 0
        self._places: dict[Texture, int] = {}  # the longest unused one first
        self._holders: Counter[Texture] = Counter()
        layer_bytes = 4 * size * size * 4 // 3
        self._kept_layers = max(1, KEPT_BYTES // layer_bytes)

    def hold(self, textures: Iterable[Texture]) -> list[int]:
        """Layers of these textures, which stay until `leave`; what is missing is baked."""
        wanted = list(textures)
        self._holders.update(wanted)
        missing = [t for t in dict.fromkeys(wanted) if t not in self._places]
        self._make_room(len(missing))
        free = iter(sorted(set(range(self._capacity)) - set(self._places.values())))
        if missing:
            scratch = self._new_array(1)
            for texture in missing:
                layer = next(free)
                self._fill(scratch, texture)
                self._copy(scratch, self._array, 0, layer, 1)
                self._places[texture] = layer
            self._device.delete_texture(scratch)
        for texture in wanted:
            self._places[texture] = self._places.pop(texture)
        return [self._places[texture] for texture in wanted]

    def leave(self, textures: Iterable[Texture]) -> None:
        """The inverse of `hold`: they may go when others need their places."""
        self._holders.subtract(list(textures))
        self._holders += Counter()

    def bind(self, unit: int) -> None:
        """Use the array as the texture of a unit."""
        self._device.glBindTextureUnit(unit, self._array)

    def _make_room(self, count: int) -> None:
        """Free layers for so many more."""
        short = count - (self._capacity - len(self._places))
        if short <= 0:
            return
        # Grow while all that is kept is little; then let go what nobody holds, oldest first.
        wanted = -(-(self._capacity + short) // LAYERS_MORE) * LAYERS_MORE
        if wanted > self._kept_layers:
            for texture in [t for t in self._places if t not in self._holders][:short]:
                del self._places[texture]
                short -= 1
            wanted = -(-(self._capacity + short) // LAYERS_MORE) * LAYERS_MORE
        if wanted > self._capacity:
            self._grow(wanted)

    def _grow(self, capacity: int) -> None:
        array = self._new_array(capacity)
        if self._array:
            self._copy(self._array, array, 0, 0, self._capacity)
            self._device.delete_texture(self._array)
        self._array, self._capacity = array, capacity

    def _new_array(self, layers: int) -> int:
        device, size = self._device, self.size
        name = ctypes.c_uint()
        device.glCreateTextures(gl.TEXTURE_2D_ARRAY, 1, ctypes.byref(name))
        device.glTextureStorage3D(name, self._levels, gl.RGBA8, size, size, layers)
        device.glTextureParameteri(name, gl.TEXTURE_MIN_FILTER, gl.LINEAR_MIPMAP_LINEAR)
        device.glTextureParameteri(name, gl.TEXTURE_MAG_FILTER, gl.LINEAR)
        return name.value

    def _fill(self, array: int, texture: Texture) -> None:
        """Bake into the first layer of an array, with its coarser levels."""
        size = self.size
        texels = np.full((size, size, 4), 255, np.uint8)
        texels[..., :3] = _ROOTS[bake(texture, size)]
        self._device.glTextureSubImage3D(
            array, 0, 0, 0, 0, size, size, 1, gl.RGBA, gl.UNSIGNED_BYTE, texels.ctypes.data
        )
        self._device.glGenerateTextureMipmap(array)

    def _copy(self, source: int, target: int, first: int, place: int, layers: int) -> None:
        for level in range(self._levels):
            side = max(1, self.size >> level)
            self._device.glCopyImageSubData(
                source, gl.TEXTURE_2D_ARRAY, level, 0, 0, first,
                target, gl.TEXTURE_2D_ARRAY, level, 0, 0, place, side, side, layers,
            )  # fmt: skip


_ROOTS = np.rint(255 * np.sqrt(decode_srgb(np.arange(256, dtype=np.uint8)))).astype(np.uint8)
