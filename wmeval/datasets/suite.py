"""Suites: frozen cases as files under one content hash (``wmeval-suite/1``).

A suite folder:

- ``suite.json``: format, content hash, the cases, and the sha256 and size of every other file;
- ``cases/<case_id>/case.json``: the case (scene, seed, plan card with prompts, view, size), its
  camera at t = 0 and its clock;
- ``cases/<case_id>/context/000.png``: the seed frame; reference worlds are at rest before t = 0, so
  every earlier context frame equals it;
- ``cases/<case_id>/reference-<fps>.h5``: the reference rollout, every substep's state, with its
  frames rendered at that rate (one file per cached rate, "24000_1001" for a fraction).

Scoring reads these and never simulates. Two suites are the same if and only if their content hashes
are: the hash runs over the names and contents of all files but ``suite.json``.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wmeval.clock import exact
from wmeval.datasets.png import read_png
from wmeval.datasets.rollout import Rollout, read
from wmeval.errors import UserError
from wmeval.jobs.atomic import write_text

FORMAT = "wmeval-suite/1"
NOTE = "own scenes: not comparable with the papers' tables"
INDEX = "suite.json"
_ANEW = "get an unchanged copy, or make it anew with `wmeval suite build --overwrite`"
_MEND = "get an unchanged copy, or run its `wmeval suite build` again"
_JSON_BYTES = 64 << 20
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,199}")


@dataclass(frozen=True)
class SuiteCase:
    """One case of a suite, as files.

    Attributes:
        case_id: name of the case and of its folder.
        folder: where its files are.
        case: the card as JSON values; `wmeval.envs.case.Case` reads it.
        K: (3, 3) intrinsics [px] of the seed frame.
        T_world_camera: (4, 4) camera pose at t = 0.
        dt: substep [s].
        control_period: time that one action holds [s].
        rates: frame rates at which reference frames are cached.
    """

    case_id: str
    folder: Path
    case: Mapping[str, Any]
    K: NDArray[np.float64]
    T_world_camera: NDArray[np.float64]
    dt: Fraction
    control_period: Fraction
    rates: tuple[Fraction, ...]

    def seed_frame(self) -> NDArray[np.uint8]:
        """The seed frame (H, W, 3) uint8 sRGB."""
        return read_png(self.folder / "context" / "000.png")

    def reference(self, fps: Fraction | None = None) -> Rollout:
        """The reference rollout; its frames at ``fps``, or at the first cached rate.

        Raises:
            UserError: no frames are cached at that rate.
        """
        rate = self.rates[0] if fps is None else fps
        if rate not in self.rates:
            known = ", ".join(str(r) for r in self.rates)
            raise UserError(
                f"{self.folder}: no reference frames at {rate} fps (cached: {known}); build the "
                f"suite with --fps {rate} too"
            )
        return read(self.folder / reference_name(rate))


@dataclass(frozen=True)
class Suite:
    """A suite on disk.

    Attributes:
        path: its folder.
        content_hash: sha256 over names and contents of all files.
        case_ids: its cases, in order.
        files: relative name to (sha256, bytes).
    """

    path: Path
    content_hash: str
    case_ids: tuple[str, ...]
    files: Mapping[str, tuple[str, int]]

    def case(self, case_id: str) -> SuiteCase:
        """One case.

        Raises:
            UserError: no such case, or its file is damaged.
        """
        if case_id not in self.case_ids:
            raise UserError(
                f"suite {self.path} has no case {case_id!r}; it has {', '.join(self.case_ids)}"
            )
        folder = self.path / "cases" / case_id
        document = _read_json(folder / "case.json")
        try:
            return SuiteCase(
                case_id,
                folder,
                dict(document["case"]),
                np.array(document["K"], np.float64).reshape(3, 3),
                np.array(document["T_world_camera"], np.float64).reshape(4, 4),
                exact(document["dt"]),
                exact(document["control_period"]),
                tuple(exact(r) for r in document["rates"]),
            )
        except (KeyError, TypeError, ValueError) as error:
            raise UserError(
                f"{folder / 'case.json'}: not a case of a {FORMAT} ({error})"
            ) from error

    def cases(self) -> Iterable[SuiteCase]:
        """All cases, in order."""
        return (self.case(c) for c in self.case_ids)


def reference_name(fps: Fraction) -> str:
    """File name of a reference with frames at a rate."""
    return f"reference-{str(fps).replace('/', '_')}.h5"


# --- writing ------------------------------------------------------------------------------------


def write_case_json(
    folder: Path,
    case: Mapping[str, Any],
    *,
    K: NDArray[np.float64],
    T_world_camera: NDArray[np.float64],
    dt: Fraction,
    control_period: Fraction,
    rates: Iterable[Fraction],
) -> None:
    """Write ``case.json``."""
    document = {
        "case": dict(case),
        "K": np.asarray(K).tolist(),
        "T_world_camera": np.asarray(T_world_camera).tolist(),
        "dt": str(dt),
        "control_period": str(control_period),
        "rates": [str(r) for r in rates],
    }
    text = json.dumps(document, indent=1, sort_keys=True, ensure_ascii=False, allow_nan=False)
    write_text(folder / "case.json", text + "\n")


def seal(path: str | Path, case_ids: Iterable[str], *, made_with: Mapping[str, str]) -> Suite:
    """Hash a folder's files and write ``suite.json``, last: from then on it is a suite.

    Args:
        path: folder that holds ``cases/<case_id>/...``.
        case_ids: the cases, in order.
        made_with: versions (wmeval, engine, renderer), for the record.
    """
    path = Path(path)
    ids = tuple(case_ids)
    files = {f"cases/{n}": d for n, d in digests(path / "cases").items()}
    content = content_hash({n: sha for n, (sha, _) in files.items()})
    document = {
        "format": FORMAT,
        "content_hash": content,
        "note": NOTE,
        "made_with": dict(made_with),
        "cases": list(ids),
        "files": {n: {"sha256": sha, "bytes": size} for n, (sha, size) in files.items()},
    }
    write_text(path / INDEX, json.dumps(document, indent=1, ensure_ascii=False) + "\n")
    return Suite(path, content, ids, files)


def content_hash(files: Mapping[str, str]) -> str:
    """Sha256 over the sorted lines "<sha256>  <name>" of all files."""
    lines = (f"{files[name]}  {name}\n" for name in sorted(files))
    return hashlib.sha256("".join(lines).encode()).hexdigest()


# --- reading ------------------------------------------------------------------------------------


def read_suite(path: str | Path, *, verify: bool = True) -> Suite:
    """Open a suite.

    Args:
        path: its folder.
        verify: re-hash every file; false trusts ``suite.json``.

    Raises:
        UserError: no suite there, or a file that is missing, extra or changed; names the first.
    """
    path = Path(path)
    if not (path / INDEX).is_file():
        raise UserError(f"{path}: no suite (no {INDEX}); make one with `wmeval suite build`")
    document = _read_json(path / INDEX)
    if document.get("format") != FORMAT:
        found = str(document.get("format"))[:80]
        raise UserError(f"{path / INDEX}: format is {found!r}, not {FORMAT!r}; {_ANEW}")
    try:
        ids = tuple(str(c) for c in document["cases"])
        files = {
            str(n): (str(entry["sha256"]), int(entry["bytes"]))
            for n, entry in document["files"].items()
        }
        stated = str(document["content_hash"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"{path / INDEX}: damaged ({error!r}); {_ANEW}") from error
    for name in [*ids, *(part for n in files for part in n.split("/"))]:
        if not _NAME.fullmatch(name):
            raise UserError(f"{path / INDEX}: {name[:80]!r} is no name of a file or case; {_ANEW}")
    if content_hash({n: sha for n, (sha, _) in files.items()}) != stated:
        raise UserError(f"{path / INDEX}: the content hash is not that of its list; {_ANEW}")
    suite = Suite(path, stated, ids, files)
    problems = verify_suite(suite) if verify else []
    if problems:
        raise UserError(f"{problems[0]} ({len(problems)} such)")
    return suite


def verify_suite(suite: Suite) -> list[str]:
    """Compare every file with the list: one sentence per departure."""
    problems = []
    present = {f"cases/{n}": digest for n, digest in digests(suite.path / "cases").items()}
    for name, listed in suite.files.items():
        if name not in present:
            problems.append(f"{suite.path / name}: missing from the suite; {_MEND}")
        elif present[name] != listed:
            problems.append(f"{suite.path / name}: changed since the suite was built; {_MEND}")
    problems += [
        f"{suite.path / name}: not part of the suite; move it elsewhere"
        for name in sorted(present)
        if name not in suite.files
    ]
    problems += [
        f"{suite.path}: case {c} has no case.json; {_ANEW}"
        for c in suite.case_ids
        if f"cases/{c}/case.json" not in suite.files
    ]
    return problems


def suite_problems(path: str | Path) -> list[str]:
    """All departures of a suite folder, one sentence each; does not raise."""
    try:
        return verify_suite(read_suite(path, verify=False))
    except UserError as error:
        return [str(error)]


def digests(folder: Path) -> dict[str, tuple[str, int]]:
    """Sha256 and size of every file below a folder, by relative name; not of hidden ones."""
    names = {p.relative_to(folder).as_posix(): p for p in sorted(folder.rglob("*")) if p.is_file()}
    # Hidden names are of writers at work or of the system.
    return {n: _digest(p) for n, p in names.items() if not re.search(r"(^|/)\.", n)}


def _digest(path: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as stream:
        while part := stream.read(1 << 20):
            digest.update(part)
            size += len(part)
    return digest.hexdigest(), size


def _read_json(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as stream:
            text = stream.read(_JSON_BYTES + 1)
        document = json.loads(text) if len(text) <= _JSON_BYTES else None
    except OSError as error:
        raise UserError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{path}: not JSON ({error}); {_ANEW}") from error
    if not isinstance(document, dict):
        raise UserError(f"{path}: not a JSON object of a sane size; {_ANEW}")
    return document
