"""The published artifact bundle of one clip: a folder of plain files (RigidBench, Table 8).

frames/00000.png ...  the rendered colour frames
video.mp4             the same, encoded
masks.npz             masks (T, N, H, W) bool, object_names (N,)
depth.npz             depth (T, H, W) float32 planar [m], 1e10 where nothing is hit (as Cycles)
trajectories.npz      of each actor NAME_positions (T, 3) [m], NAME_rotations (T, 4) wxyz,
                      NAME_linear_velocity (T, 3) [m/frame], NAME_angular_velocity (T, 3)
                      [rad/frame], all float32
contacts.json         contacts by frame and pair, at most five points with normals
metadata.json         task, setting, seed, angles, actors, camera, size, rate, prompt
prompt.txt            the prompt
state.h5              ours: every substep's state and contacts in SI, scene, meshes, ids
masks/, depth/        only on demand: EXR streams of object index and depth
SHA256SUMS            checksums of all

Where the published units are odd they are kept: velocities are differences of successive frames'
poses, and a contact list is per frame. state.h5 has the engine's velocities and every substep's
contacts. Names within the files are those that the released scorer reads.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.datasets.bundle_tables import (
    FORMAT,
    NOTHING_M,
    contact_pairs,
    metadata_of,
    trajectories,
)
from wmeval.datasets.checksums import NAME, check_checksums, write_checksums
from wmeval.datasets.clip import KEY, ClipRecord
from wmeval.datasets.codecs import is_still
from wmeval.datasets.hdf5 import read_hdf5, write_hdf5
from wmeval.datasets.lazy import LazyLayer
from wmeval.datasets.png import png_bytes, read_png
from wmeval.datasets.video import write_mp4
from wmeval.errors import UserError, what_of
from wmeval.jobs.atomic import FolderKind, atomic_dir, claim

BUNDLE = FolderKind(
    files=r"frames/\d+\.png|(masks/IndexOB|depth/Depth)_\d+\.exr|video\.mp4|(masks|depth|trajectories)\.npz"
    rf"|(contacts|metadata)\.json|prompt\.txt|state\.h5|{NAME}",
    marks={r"metadata\.json": FORMAT},
)

_TOLD = (
    "sample_id",
    "seed",
    "actors",
    "render",
    "frames",
    "prompt",
    "rollout_sha256",
)

Array = NDArray[Any]


# --- writing ------------------------------------------------------------------------------------


def write_bundle(
    clip: ClipRecord, folder: str | Path, *, exr: bool = False, overwrite: bool = False
) -> Path:
    """Write the bundle of a clip, whole or not at all.

    Args:
        clip: seen by a still camera.
        folder: where it shall be.
        exr: also write the EXR streams that Cycles' compositor leaves; slow and large.
        overwrite: replace a bundle that is there.

    Returns:
        The folder.

    Raises:
        UserError: the camera moves, something is there already, disk full, or no EXR writer.
    """
    folder = Path(folder)
    if not is_still(clip.frames, clip.rollout.log.cameras) and len(clip) > 1:
        raise UserError(
            f"{folder}: the published bundle states one camera, and clip "
            f"{clip.facts.sample_id}'s moves: take a still view, or another format"
        )
    with claim(folder), atomic_dir(folder, replaces=BUNDLE if overwrite else None) as made:
        (made / "frames").mkdir()
        for i, picture in enumerate(clip.rgb):
            (made / "frames" / f"{i:05d}.png").write_bytes(png_bytes(picture))
        write_mp4(made / "video.mp4", clip.rgb, clip.fps)
        names = np.array([actor.name for actor in clip.actors])
        masks = np.stack([clip.masks(i) for i in range(len(clip))])
        np.savez_compressed(made / "masks.npz", masks=masks, object_names=names)
        depth = np.stack([_finite(z) for z in clip.depth])
        np.savez_compressed(made / "depth.npz", depth=depth)
        np.savez_compressed(made / "trajectories.npz", **trajectories(clip))
        _write_json(made / "contacts.json", contact_pairs(clip))
        _write_json(made / "metadata.json", metadata_of(clip, exr=exr))
        (made / "prompt.txt").write_text(clip.prompt + "\n", encoding="utf-8")
        layers = clip.frames.layers
        kept = [n for n in layers if n not in ("rgb", "depth") and not _derived(layers[n])]
        write_hdf5(clip.rollout, made / "state.h5", layers=tuple(kept))
        if exr:
            _write_exr(made, depth, np.asarray(clip.ids[:]))
        write_checksums(made)
    return folder


def _derived(layer: object) -> bool:
    return bool(getattr(layer, "derived", False))


def _finite(depth: Array) -> NDArray[np.float32]:
    return np.where(np.isfinite(depth), depth, np.float32(NOTHING_M)).astype(np.float32)


def _write_json(path: Path, value: Any) -> None:
    text = json.dumps(value, indent=1, ensure_ascii=False, allow_nan=False)
    path.write_text(text + "\n", encoding="utf-8")


def _write_exr(folder: Path, depth: Array, ids: Array) -> None:
    # The library reads this once, when its first EXR file is touched.
    os.environ.setdefault("OPENCV_IO_ENABLE_OPENEXR", "1")
    import cv2

    for name, stem, layer in (("depth", "Depth", depth), ("masks", "IndexOB", ids)):
        (folder / name).mkdir()
        for i, picture in enumerate(layer):
            try:
                done, data = cv2.imencode(".exr", picture.astype(np.float32))
            except cv2.error as error:
                raise UserError(
                    "this build of OpenCV writes no EXR files: leave exr out (masks.npz and "
                    "depth.npz hold the same numbers), or set OPENCV_IO_ENABLE_OPENEXR=1 before "
                    "Python starts"
                ) from error
            assert done
            (folder / name / f"{stem}_{i:04d}.exr").write_bytes(data.tobytes())


# --- reading ------------------------------------------------------------------------------------


def read_bundle(folder: str | Path, *, check: bool = True) -> ClipRecord:
    """Read a bundle that `write_bundle` made.

    Args:
        folder: the bundle.
        check: verify every file's checksum, and that masks.npz, trajectories.npz and metadata.json
            tell of the clip that state.h5 holds.

    Returns:
        The clip; its colour and depth come from frames/ and depth.npz, read when they are sliced.

    Raises:
        UserError: no bundle, a damaged one, or files of different clips; names the file.
    """
    folder = Path(folder)
    metadata = _metadata(folder)
    if check:
        problems = check_checksums(folder)
        if problems:
            raise UserError(problems[0])
    rollout = read_hdf5(folder / "state.h5")
    if rollout.frames is None:
        raise UserError(f"{folder / 'state.h5'}: holds no frames; get the bundle anew")
    count, (width, height) = len(rollout.frames), metadata["render"]["resolution"]
    layers = {
        **rollout.frames.layers,
        "rgb": LazyLayer(_Picture(folder), (count, height, width, 3), "uint8"),
        "depth": LazyLayer(_Depth(folder), (count, height, width), "float32"),
    }
    held = replace(rollout, frames=replace(rollout.frames, layers=layers))
    clip = ClipRecord(held)
    if check:
        _check(folder, metadata, clip)
    return clip


def _metadata(folder: Path) -> dict[str, Any]:
    path = folder / "metadata.json"
    try:
        metadata = json.loads(path.read_bytes())
    except OSError as error:
        raise UserError(f"{folder}: no bundle: {path.name}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: no JSON ({error}); get the bundle anew") from error
    found = metadata.get("format") if isinstance(metadata, dict) else None
    if found != FORMAT:
        raise UserError(
            f"{path}: format is {found!r}, not {FORMAT!r}: not a bundle that wmeval wrote"
        )
    return dict(metadata)


class _Picture:
    """Reads one colour frame."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __call__(self, i: int) -> Array:
        return read_png(self.folder / "frames" / f"{i:05d}.png")


class _Depth:
    """Reads depth.npz whole with the first frame: it is one compressed array."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": self.folder}

    @cached_property
    def whole(self) -> Array:
        return load_npz(self.folder / "depth.npz", ("depth",))["depth"]

    def __call__(self, i: int) -> Array:
        depth = self.whole[i]
        return np.where(depth >= np.float32(NOTHING_M), np.float32(np.inf), depth)


def load_npz(path: Path, names: Sequence[str]) -> dict[str, Array]:
    """Arrays of an npz file by name.

    Raises:
        UserError: no such file, damaged, or an array is missing.
    """
    import zipfile

    try:
        with np.load(path, allow_pickle=False) as archive:
            return {name: archive[name] for name in names}
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise UserError(f"{path}: cannot be read ({what_of(error)}); get it anew") from error


def _check(folder: Path, metadata: dict[str, Any], clip: ClipRecord) -> None:
    """Do the published files tell of the clip in state.h5?"""
    told = metadata_of(clip)
    for key in _TOLD:
        if metadata.get(key) != told[key]:
            raise UserError(f"{folder / 'metadata.json'}: {key} is not that of state.h5's {KEY}")
    names = [actor.name for actor in clip.actors]
    width, height = clip.size
    masks = load_npz(folder / "masks.npz", ("masks", "object_names"))
    shape = (len(clip), len(names), height, width)
    if masks["masks"].shape != shape or masks["masks"].dtype != np.bool_:
        is_ = f"{masks['masks'].dtype} {masks['masks'].shape}"
        raise UserError(f"{folder / 'masks.npz'}: masks are {is_}, expected bool {shape}")
    if masks["object_names"].tolist() != names or any(
        (masks["masks"][i] != clip.masks(i)).any() for i in range(len(clip))
    ):
        raise UserError(f"{folder / 'masks.npz'}: masks are not those of state.h5's ids")
    expected = trajectories(clip)
    found = load_npz(folder / "trajectories.npz", tuple(expected))
    for name, array in expected.items():
        if found[name].shape != array.shape or not np.allclose(found[name], array):
            raise UserError(f"{folder / 'trajectories.npz'}: {name} is not that of state.h5")
    depth = load_npz(folder / "depth.npz", ("depth",))["depth"]
    if depth.shape != (len(clip), height, width) or depth.dtype != np.float32:
        raise UserError(f"{folder / 'depth.npz'}: depth is {depth.dtype} {depth.shape}")
    count = len(list((folder / "frames").glob("*.png")))
    if count != len(clip):
        raise UserError(f"{folder / 'frames'}: {count} pictures, expected {len(clip)}")
