"""A rollout as a document: one JSON header and named arrays. Both back ends store just that.

The header says everything but the arrays: the scene, the names, the format of every array with its
sha256, how each picture layer is packed. Text columns are stored as codes into a list of names in
the header, so that files hold numbers only.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from pydantic import ValidationError

from wmeval.clock import exact
from wmeval.datasets import clip_labels, derived
from wmeval.datasets.codecs import Packing, bits_dtype
from wmeval.datasets.conformity import problems_of
from wmeval.datasets.rollout import FORMAT, FrameArray, Rollout
from wmeval.datasets.stored_contacts import GROUP, PATHS, stored_contacts
from wmeval.errors import UserError
from wmeval.layers import LAYERS
from wmeval.records import FIELDS, Contacts
from wmeval.scene import MeshData, Scene

Array = NDArray[Any]

MESH_ARRAYS = {"vertices": "float32", "triangles": "uint32", "normals": "float32", "uv": "float32"}
PLATE, LABEL = "plate/", "label/"
MAX_HEADER_BYTES = 64 << 20
MAX_STATE_BYTES = 4 << 30
MAX_FRAME_BYTES = 1 << 30
_DTYPES = frozenset(
    ("float64", "float32", "int64", "int32", "uint64", "uint32", "uint16", "uint8", "bool")
)


def digest(array: Array) -> str:
    """Sha256 over dtype, shape and bytes."""
    return running_digest(array.dtype, array.shape, [array])


def running_digest(dtype: Any, shape: tuple[int, ...], parts: Any) -> str:
    """Sha256 of a whole array that comes in parts along its first axis."""
    total = hashlib.sha256(f"{np.dtype(dtype).name}{tuple(shape)}".encode())
    for part in parts:
        total.update(
            np.ascontiguousarray(part).view(np.uint8).reshape(-1).data if part.size else b""
        )
    return total.hexdigest()


def stream_digest(stream: BinaryIO) -> str:
    """Sha256 of what follows in a stream."""
    total = hashlib.sha256()
    while part := stream.read(1 << 20):
        total.update(part)
    return total.hexdigest()


@dataclass(frozen=True)
class Document:
    """What a back end writes: ``arrays`` by path and ``header``, to which it adds the layers."""

    header: dict[str, Any]
    arrays: dict[str, Array]


def chosen_layers(rollout: Rollout, layers: tuple[str, ...] | None) -> dict[str, FrameArray]:
    """The layers to store: those asked for, else all that are not derived from others.

    Raises:
        UserError: a layer was asked for that the rollout does not hold.
    """
    held = {} if rollout.frames is None else dict(rollout.frames.layers)
    if layers is None:
        return {k: v for k, v in held.items() if not getattr(v, "derived", False)}
    for name in layers:
        if name not in held:
            raise UserError(
                f"cannot store layer {name!r}: this rollout holds {', '.join(held) or 'none'}; "
                "record it with that layer."
            )
    return {name: held[name] for name in layers}


def describe(rollout: Rollout) -> Document:
    """Header and arrays of a rollout, without picture layers."""
    arrays: dict[str, Array] = {}
    text: dict[str, list[str]] = {}
    for path, column in rollout.columns().items():
        if column.dtype.kind == "U":
            names = sorted({str(x) for x in column})
            code = {name: i for i, name in enumerate(names)}
            arrays[path] = np.array([code[str(x)] for x in column], np.int32).reshape(column.shape)
            text[path] = names
        else:
            arrays[path] = np.ascontiguousarray(column)
    for key, mesh in sorted(rollout.meshes.items()):
        for name, dtype in MESH_ARRAYS.items():
            arrays[f"mesh/{key}/{name}"] = np.ascontiguousarray(getattr(mesh, name), dtype)
    for name, table in sorted(rollout.labels.items()):
        arrays[f"{LABEL}{name}"] = np.ascontiguousarray(table)
    frames = rollout.frames
    header = {
        "format": FORMAT,
        "dt": str(rollout.log.state.dt),
        "scene": rollout.scene.model_dump(mode="json"),
        "bodies": [body.name for body in rollout.scene.bodies],
        "cameras": [camera.name for camera in rollout.scene.cameras],
        "meshes": sorted(rollout.meshes),
        "text": text,
        "metadata": dict(rollout.metadata),
        "arrays": {path: describe_array(array) for path, array in arrays.items()},
        "frames": None if frames is None else {"camera": frames.camera, "layers": {}},
    }
    return Document(header, arrays)


def describe_array(array: Array) -> dict[str, Any]:
    """Entry of an array in the header."""
    return {"dtype": array.dtype.name, "shape": list(array.shape), "sha256": digest(array)}


def attributes_of(path: str, header: Mapping[str, Any]) -> dict[str, Any]:
    """What a reader without this package sees beside an array: unit, dimensions, meaning."""
    field = FIELDS.get(path)
    if field is not None:
        return {"unit": field.unit, "dims": list(field.dims), "doc": field.doc}
    label = clip_labels.ARRAYS.get(path.removeprefix(LABEL)) if path.startswith(LABEL) else None
    if label is not None:
        return {**label._asdict(), "dims": list(label.dims)}
    for modal in header["scene"]["modal"]:
        if path == f"modal/{modal['name']}":
            dims = ["state", str(modal["size"])]
            return {"unit": modal["unit"], "dims": dims, "doc": modal["doc"]}
    if path.startswith("vertices/"):
        doc = "vertices of a deformable, world frame"
        return {"unit": "m", "dims": ["state", "vertex", "3"], "doc": doc}
    return {}


def parse_header(text: str | bytes, where: str) -> dict[str, Any]:
    """Parse a header.

    Args:
        text: JSON.
        where: name of the file, for messages.

    Raises:
        UserError: no header of this format.
    """
    if len(text) > MAX_HEADER_BYTES:
        raise UserError(f"{where}: header of {len(text)} bytes is over {MAX_HEADER_BYTES}.")
    try:
        header = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise damaged(where, f"its header is no JSON ({error})") from error
    return check_header(header, where)


def check_header(header: Any, where: str) -> dict[str, Any]:
    """The header, if it is one of this format.

    Raises:
        UserError: it is not.
    """
    found = header.get("format") if isinstance(header, dict) else None
    if found != FORMAT:
        raise UserError(
            f"{where}: format is {found!r}, not {FORMAT!r}: no rollout of this version."
        )
    return dict(header)


_MENDS: tuple[tuple[str, str], ...] = (
    (r"/(clips|thumbs|meshes)/[0-9a-f]+\.(zarr|mp4|jpg|npz)", "run its `wmeval generate` again"),
    (r"/bundles/[^/]+/", "run its `wmeval generate` again"),
    (r"/episodes/\d+\.(h5|zarr|mp4)", "run its `wmeval generate rollouts` again"),
    (r"(^|/)rollout\.h5", "run its `wmeval rollout` again with --overwrite"),
)
"""What makes a file again, by its place: samples of sets, and what `wmeval rollout` leaves."""


def damaged(where: str, what: str, mend: str = "") -> UserError:
    """The error of a file that was whole once.

    Args:
        where: name of the file.
        what: is wrong with it.
        mend: what makes it again; default: what its place tells.
    """
    found = (said for pattern, said in _MENDS if re.search(pattern, where))
    mend = mend or next(found, "run the command that made it again")
    return UserError(f"{where}: damaged: {what}. Restore it from a copy, or {mend}.")


def check_size(where: str, path: str, entry: Mapping[str, Any], limit: int) -> int:
    """Bytes that an array of the header takes; checked before anything is allocated.

    Raises:
        UserError: no dtype or shape of this format, or too large.
    """
    dtype, shape = entry.get("dtype"), entry.get("shape")
    good = (
        dtype in _DTYPES
        and isinstance(shape, list)
        and len(shape) <= 8
        and all(isinstance(n, int) and 0 <= n < 1 << 40 for n in shape)
    )
    if not good:
        raise damaged(where, f"{path} is said to be {dtype!r} {shape!r}")
    size = int(np.dtype(str(dtype)).itemsize)
    for n in shape:  # type: ignore[union-attr]
        size *= n
    if size > limit:
        raise UserError(f"{where}: {path} would take {size} bytes, over the limit of {limit}.")
    return size


def verified(where: str, path: str, entry: Mapping[str, Any], array: Array) -> Array:
    """The array, if it is the one that the header describes.

    Raises:
        UserError: another dtype, shape or content.
    """
    if array.dtype != np.dtype(entry["dtype"]) or list(array.shape) != entry["shape"]:
        raise damaged(
            where,
            f"{path} is {array.dtype} {array.shape}, "
            f"its header says {entry['dtype']} {tuple(entry['shape'])}",
        )
    if digest(array) != entry.get("sha256"):
        raise damaged(where, f"checksum of {path} does not match")
    return array


def restore(
    where: str,
    header: dict[str, Any],
    load: Callable[[str], Array],
    later: Callable[[str], Array],
    layers: dict[str, FrameArray],
) -> Rollout:
    """Make the rollout of a header, with the layers that follow from stored ones.

    Args:
        where: name of the file, for messages.
        header: as `parse_header` gives it.
        load: reads one array by path, now.
        later: reads one array by path when the file may be closed: contacts.
        layers: picture layers.

    Raises:
        UserError: header and arrays make no rollout.
    """
    try:
        return _restore(where, header, load, later, layers)
    except UserError:
        raise
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(str(x) for x in first["loc"])
        raise damaged(where, f"its scene is not valid: {place}: {first['msg']}") from error
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise damaged(where, str(error) or type(error).__name__) from error


def _restore(
    where: str,
    header: dict[str, Any],
    load: Callable[[str], Array],
    later: Callable[[str], Array],
    layers: dict[str, FrameArray],
) -> Rollout:
    entries: dict[str, Any] = header["arrays"]
    total = sum(check_size(where, path, e, MAX_STATE_BYTES) for path, e in entries.items())
    if total > MAX_STATE_BYTES:
        raise UserError(f"{where}: its arrays would take {total} bytes; limit {MAX_STATE_BYTES}.")
    arrays = {
        path: verified(where, path, entry, load(path))
        for path, entry in entries.items()
        if not path.startswith((PLATE, GROUP))
    }
    for path, names in header["text"].items():
        codes = arrays[path]
        if codes.size and not (codes.min() >= 0 and codes.max() < len(names)):
            raise damaged(where, f"{path} has a code without a name")
        arrays[path] = np.array([names[i] for i in codes], np.str_).reshape(codes.shape)
    meshes = {}
    for key in header["meshes"]:
        parts = {name: arrays.pop(f"mesh/{key}/{name}") for name in MESH_ARRAYS}
        meshes[key] = MeshData(**parts)
        if meshes[key].content_hash() != key:
            raise damaged(where, f"mesh {key[:12]} is not the one of its name")
    labels = {p: arrays.pop(p) for p in sorted(arrays) if p.startswith(LABEL)}
    frames = header["frames"]
    rollout = Rollout.from_columns(
        arrays,
        contacts=_contacts(where, header, later),
        scene=Scene.model_validate(header["scene"]),
        meshes=meshes,
        dt=Fraction(exact(header["dt"])),
        camera=None if frames is None else str(frames["camera"]),
        layers=layers,
        metadata=header["metadata"],
        labels={path.removeprefix(LABEL): table for path, table in labels.items()},
    )
    layers.update(derived.layers_of(rollout))
    return rollout


def _contacts(where: str, header: Mapping[str, Any], later: Callable[[str], Array]) -> Contacts:
    entries = {path: header["arrays"][path] for path in PATHS.values()}
    sizes = {"body": len(header["scene"]["bodies"]), "camera": len(header["scene"]["cameras"])}

    def load() -> dict[str, Array]:
        arrays = {path: verified(where, path, e, later(path)) for path, e in entries.items()}
        problems = problems_of(arrays, sizes, groups=(GROUP.rstrip("/"),))
        if problems:
            raise damaged(where, problems[0])
        return arrays

    return stored_contacts(int(entries[PATHS["substep"]]["shape"][0]), load)


def layer_entries(where: str, header: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Stored picture layers of a header, checked.

    Raises:
        UserError: an unknown layer or packing.
    """
    frames = header.get("frames")
    if frames is None:
        return
    if not isinstance(frames, dict) or not isinstance(frames.get("layers"), dict):
        raise damaged(where, "its header does not describe its frames")
    for name, entry in frames["layers"].items():
        if name not in LAYERS or not isinstance(entry, dict):
            raise damaged(where, f"unknown layer {name!r}")
        if entry.get("codec") not in ("bits_xor", "bytes"):
            raise damaged(where, f"layer {name!r} is packed by {entry.get('codec')!r}")
        check_size(where, f"layer/{name}", entry, 1 << 44)
        if len(entry["shape"]) < 3:
            raise damaged(where, f"layer {name!r} has shape {entry['shape']}")
        one = {**entry, "shape": entry["shape"][1:]}
        check_size(where, f"a frame of layer/{name}", one, MAX_FRAME_BYTES)
        yield name, entry


def layer_entry(layer: FrameArray, packing: Packing, still: bool, sha256: str) -> dict[str, Any]:
    """Entry of a picture layer in the header."""
    return {
        "dtype": layer.dtype.name,
        "shape": [int(n) for n in layer.shape],
        "sha256": sha256,
        "codec": packing.codec,
        "still_camera": still,
        "trial_bytes": packing.trial,
    }


def stored_dtype(entry: Mapping[str, Any]) -> np.dtype[Any]:
    """Dtype on disk of a picture layer."""
    dtype = np.dtype(entry["dtype"])
    return bits_dtype(dtype) if entry["codec"] == "bits_xor" else dtype


def packing_of(
    where: str,
    name: str,
    entry: Mapping[str, Any],
    plate_entry: Mapping[str, Any] | None,
    load: Callable[[str], Array],
) -> Packing:
    """How a stored layer is packed; its plate is read and checked.

    Raises:
        UserError: the plate is missing or damaged.
    """
    if entry["codec"] == "bytes":
        return Packing("bytes", None, {})
    path = f"{PLATE}{name}"
    if plate_entry is None:
        raise damaged(where, f"layer {name!r} has no background plate")
    check_size(where, path, plate_entry, MAX_FRAME_BYTES)
    plate = verified(where, path, plate_entry, load(path))
    if list(plate.shape) != entry["shape"][1:] or plate.dtype != stored_dtype(entry):
        raise damaged(where, f"plate of layer {name!r} is {plate.dtype} {plate.shape}")
    return Packing("bits_xor", plate, {})
