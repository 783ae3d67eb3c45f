"""Picture layers that are read when they are sliced, one frame at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]


class LazyLayer:
    """A layer on disk, or one that follows from others; looks like a read-only array.

    ``layer[i]`` reads one frame, ``layer[a:b]`` or ``layer[[i, j]]`` some, ``layer[i, y, x]`` cuts
    a frame after reading it; ``np.asarray(layer)`` reads all.

    Attributes:
        shape: (F, H, W) or (F, H, W, C).
        dtype: of one element.
        derived: it follows from other layers and takes no space in files.
    """

    def __init__(
        self,
        read: Callable[[int], Array],
        shape: tuple[int, ...],
        dtype: Any,
        *,
        derived: bool = False,
    ) -> None:
        self._read = read
        self.shape = tuple(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.derived = derived

    def __len__(self) -> int:
        return self.shape[0]

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    def __iter__(self) -> Iterator[Array]:
        return (self._read(i) for i in range(len(self)))

    def __getitem__(self, index: Any) -> Array:
        first, *rest = index if isinstance(index, tuple) else (index,)
        if first is Ellipsis or first is None:
            return np.asarray(np.asarray(self)[index])
        if isinstance(first, int | np.integer):
            i = int(first)
            if not -len(self) <= i < len(self):
                raise IndexError(f"frame {i} of {len(self)}")
            frame = self._read(i % len(self))
            return np.asarray(frame[tuple(rest)]) if rest else frame
        chosen = np.arange(len(self))[first]
        out = np.empty((len(chosen), *self.shape[1:]), self.dtype)
        for row, i in enumerate(chosen):
            out[row] = self._read(int(i))
        return np.asarray(out[(slice(None), *rest)]) if rest else out

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        if copy is False:
            raise ValueError("a layer on disk cannot become an array without reading it")
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def __repr__(self) -> str:
        return f"LazyLayer({self.dtype.name}, {self.shape})"
