"""Reference worlds, matched rollouts and fidelity metrics for interactive world models.

Importing the package registers the environments with Gymnasium; nothing heavy loads before it is
used.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from wmeval.envs import register_all

if TYPE_CHECKING:
    from wmeval.datasets.clips import ClipSet

__version__ = "0.1.0"

__all__ = ["__version__", "open"]

register_all()


def open(url: str | Path) -> ClipSet:
    """Open a set of clips, on a folder or any fsspec URL; ``open(url)[i]`` reads one clip.

    Raises:
        UserError: no set of clips here, or a damaged one.
    """
    from wmeval.datasets.clips import read_clips

    return read_clips(url)
