"""Does a set of arrays follow the table of fields? One answer for memory, HDF5 and Zarr."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.records import FIELDS

Array = NDArray[Any]

FRAME_FIELDS = tuple(path for path in FIELDS if path.startswith("frame/"))
GROUPS = tuple(dict.fromkeys(path.split("/")[0] for path in FIELDS))
DECLARED = ("modal/", "vertices/")
"""Groups of arrays that the scene declares: modal state, vertices of deformables."""

QUATERNION_TOLERANCE = 1e-5
"""Engines in single precision keep unit quaternions to a few 1e-7."""


def _ascending(a: Array, path: str) -> str:
    return "" if a.size < 2 or bool(np.all(np.diff(a) > 0)) else f"{path} does not ascend"


def _not_descending(a: Array, path: str) -> str:
    return "" if a.size < 2 or bool(np.all(np.diff(a) >= 0)) else f"{path} descends"


def _not_negative(a: Array, path: str) -> str:
    return "" if a.size == 0 or a.min() >= 0 else f"{path} is negative at {int(np.argmin(a))}"


def _unit(a: Array, path: str) -> str:
    if a.size == 0:
        return ""
    error = np.abs(np.linalg.norm(a, axis=-1) - 1)
    if error.max() <= QUATERNION_TOLERANCE:
        return ""
    where = tuple(int(i) for i in np.unravel_index(int(np.argmax(error)), error.shape))
    return f"{path}{list(where)} is no unit quaternion (norm off by {error.max():.3g})"


def _at_most(limit: int) -> Callable[[Array, str], str]:
    def rule(a: Array, path: str) -> str:
        return "" if a.size == 0 or a.max() <= limit else f"{path} holds {a.max()} > {limit}"

    return rule


def _pose(a: Array, path: str) -> str:
    if a.size == 0:
        return ""
    rotation = a[..., :3, :3]
    residue = np.abs(rotation @ np.swapaxes(rotation, -1, -2) - np.eye(3)).max()
    if residue > 1e-5 or bool(np.any(a[..., 3, :] != np.array([0.0, 0.0, 0.0, 1.0]))):
        return f"{path} holds a matrix that is no rigid pose"
    return ""


def _field_of_view(a: Array, path: str) -> str:
    inside = a.size == 0 or (a.min() > 0 and a.max() < np.pi)
    return "" if inside else f"{path} leaves (0, pi)"


def _focal(a: Array, path: str) -> str:
    positive = a.size == 0 or bool((a[:, 0, 0] > 0).all() and (a[:, 1, 1] > 0).all())
    return "" if positive else f"{path} has a focal length that is not positive"


RULES: dict[str, tuple[Callable[[Array, str], str], ...]] = {
    "state/substep": (_ascending, _not_negative),
    "state/quaternion_wxyz": (_unit,),
    "state/motion": (_at_most(2),),
    "camera/fov_y": (_field_of_view,),
    "camera/T_world_camera": (_pose,),
    "contact/substep": (_not_descending, _not_negative),
    "contact/body_a": (_not_negative,),
    "contact/body_b": (_not_negative,),
    "frame/state_index": (_not_descending, _not_negative),
    "frame/time": (_ascending,),
    "frame/K": (_focal,),
}
"""What the values of a field must obey, beyond dtype, dimensions and being finite."""

MAY_BE_NAN = frozenset({"event/value"})


def _dimensions(
    path: str, array: Array, dims: tuple[str, ...], sizes: dict[str, int], origin: dict[str, str]
) -> list[str]:
    if array.ndim != len(dims):
        return [f"{path} has {array.ndim} dimensions; it needs ({', '.join(dims)})"]
    problems = []
    for length, name in zip(array.shape, dims, strict=True):
        expected = int(name) if name.isdigit() else sizes.setdefault(name, length)
        if not name.isdigit():
            origin.setdefault(name, path)
        if length != expected:
            why = f"as in {origin[name]}" if name in origin else f"as {name} says"
            problems.append(f"{path} has {length} along {name!r}; it needs {expected}, {why}")
    return problems


def problems_of(
    arrays: Mapping[str, Array],
    sizes: Mapping[str, int],
    *,
    groups: Collection[str] | None = None,
    declared: Mapping[str, tuple[int, ...]] | None = None,
) -> list[str]:
    """Departures of arrays from the table of fields (empty: none).

    Args:
        arrays: by path; text fields are arrays of str.
        sizes: known lengths of named dimensions, at least "body" and "camera".
        groups: first parts of the paths that are looked at; None: all.
        declared: shape, but for the states, of every array of the groups in `DECLARED` (float64) by
            its path; None: they are not looked at.

    Returns:
        One sentence per problem, naming the field.
    """
    known = dict(sizes)
    origin = dict.fromkeys(known, "the scene")
    problems: list[str] = []
    with_frames = any(path in arrays for path in FRAME_FIELDS)
    for path, field in FIELDS.items():
        if groups is not None and path.split("/")[0] not in groups:
            continue
        if path not in arrays:
            if not field.optional or (with_frames and path in FRAME_FIELDS):
                problems.append(f"{path} is missing")
            continue
        array = arrays[path]
        if (array.dtype.kind != "U") if field.dtype == "str" else (array.dtype != field.dtype):
            problems.append(f"{path} is {array.dtype}; it needs {field.dtype}")
            continue
        shape_problems = _dimensions(path, array, field.dims, known, origin)
        if path == "step/action" and not shape_problems:
            # An observation comes before every action and after the last.
            known.setdefault("control", len(array) + 1)
            origin.setdefault("control", "step/action plus one")
        problems += shape_problems
        if shape_problems:
            continue
        if array.dtype.kind == "f" and path not in MAY_BE_NAN and not np.isfinite(array).all():
            where = [int(i) for i in np.argwhere(~np.isfinite(array))[0]]
            problems.append(f"{path}{where} is not finite")
            continue
        problems += [text for rule in RULES.get(path, ()) if (text := rule(array, path))]
    if declared is not None:
        problems += _declared_problems(arrays, declared, known.get("state", 0))
    problems += [
        f"{path} is no field of a rollout"
        for path in arrays
        if path not in FIELDS and not path.startswith(DECLARED)
    ]
    return problems or _between_fields(arrays, known)


def _declared_problems(
    arrays: Mapping[str, Array], declared: Mapping[str, tuple[int, ...]], states: int
) -> list[str]:
    """Do modal states and vertices hold what the scene declares, neither less nor more?"""
    problems = []
    for path, shape in declared.items():
        array = arrays.get(path)
        if array is None:
            problems.append(f"{path} is missing: the scene declares it")
        elif array.dtype != np.float64 or array.shape != (states, *shape):
            problems.append(
                f"{path} is {array.dtype} {array.shape}; it needs float64 {(states, *shape)}"
            )
        elif not np.isfinite(array).all():
            problems.append(f"{path} is not finite")
    undeclared = [p for p in arrays if p.startswith(DECLARED) and p not in declared]
    return problems + [f"{path} is not declared by the scene" for path in undeclared]


def _between_fields(arrays: Mapping[str, Array], sizes: Mapping[str, int]) -> list[str]:
    problems = [
        f"{path} names body {arrays[path].max()} of {sizes['body']}"
        for path in ("contact/body_a", "contact/body_b")
        if path in arrays and arrays[path].size and arrays[path].max() >= sizes["body"]
    ]
    if "event/time" in arrays and np.any(arrays["event/detected_at"] < arrays["event/time"]):
        problems.append(
            "event/detected_at is before event/time: nothing is known before it happens"
        )
    if sizes.get("state") == 0:
        problems.append("state/substep is empty: a rollout holds state 0 at least")
    index = arrays.get("frame/state_index")
    if index is not None and index.size and index.max() >= sizes["state"]:
        problems.append(f"frame/state_index names state row {index.max()} of {sizes['state']}")
    return problems
