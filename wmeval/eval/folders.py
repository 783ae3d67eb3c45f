"""A run's folders: whose they are, and which of their cases are finished and whole.

``cases/<case_id>/reference/`` holds the reference, ``cases/<case_id>/gNN/`` a generation and its
record. Each has a SHA256SUMS that was written last: a folder without one was never finished.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import yaml
from pydantic import ValidationError

from wmeval.datasets.checksums import NAME, check_checksums, sha256_of, write_checksums
from wmeval.errors import UserError
from wmeval.eval.results import CaseRecord, PairConfig, dumps
from wmeval.jobs.atomic import FolderKind, write_text

REFERENCE = "reference"
ORDER = "candidates.json"
"""Names of a joint run's folders, in the order in which the candidates were given."""
PAIR_FOLDER = FolderKind(
    files=(
        r"config\.yaml|results\.json|report\.html"
        r"|cases/[^/]+/(reference|g\d+)/(SHA256SUMS|[^/]+\.(json|h5|mp4))"
    ),
    marks={r"config\.yaml": "\ncandidate: "},
)
_GROWS = ("scene_seeds", "generations")


def candidate_folders(jobs: Sequence[PairConfig], out: Path) -> list[Path]:
    """Where each candidate's results go: ``out`` itself for one, a folder below it for several.

    Raises:
        UserError: a candidate is given twice, or one candidate's results lie in ``out``.
    """
    if len(jobs) == 1:
        return [out]
    names = [re.sub(r"[^A-Za-z0-9.=_-]+", "_", job.candidate)[:100] for job in jobs]
    twice = [job.candidate for job, n in zip(jobs, names, strict=True) if names.count(n) > 1]
    if twice:
        raise UserError(f"candidate {twice[0]!r} is given twice; leave one out")
    if (out / "config.yaml").exists():
        raise UserError(f"{out} holds one candidate's comparison; choose another --out")
    return [out / name for name in names]


def settle(out: Path, job: PairConfig, *, overwrite: bool) -> None:
    """Make the folder this job's.

    Raises:
        UserError: it holds something else, or a comparison of other settings.
    """
    path = out / "config.yaml"
    if overwrite and path.exists():
        PAIR_FOLDER.refuse_others(out)
        shutil.rmtree(out)
    if path.exists():
        try:
            old = PairConfig.model_validate(yaml.safe_load(path.read_text("utf-8")))
        except (yaml.YAMLError, ValueError) as error:
            first = str(error).splitlines()[0]
            raise UserError(
                f"{path}: not a comparison's settings ({first}); choose another --out"
            ) from error
        for name in PairConfig.model_fields:
            if name not in _GROWS and getattr(old, name) != getattr(job, name):
                raise UserError(
                    f"{path}: {name} is {getattr(old, name)!r} there and {getattr(job, name)!r} "
                    "now; choose another --out, or --overwrite"
                )
    elif out.is_dir() and any(out.iterdir()):
        raise UserError(f"{out}: not empty and not a comparison; choose another --out")
    write_text(path, yaml.safe_dump(job.model_dump(mode="json"), sort_keys=False))


def case_folder(out: Path, case_id: str) -> Path:
    """Where a case's reference and generations lie."""
    return out / "cases" / case_id


def seal_reference(folder: Path) -> str:
    """Close a reference's folder; the sha256 of its SHA256SUMS stands for all its files."""
    return sha256_of(write_checksums(folder))


def seal_case(folder: Path, record: CaseRecord) -> None:
    """Write a generation's record and close its folder: now it is finished."""
    write_text(folder / "case.json", dumps(record))
    write_checksums(folder)


def finished(folder: Path, fingerprint: str) -> CaseRecord | str:
    """The record of a generation that is finished, every byte as it was written.

    Args:
        folder: of the generation.
        fingerprint: of the candidate as it is now.

    Returns:
        The record; or why the generation has to be done again, "" where it never was finished.
    """
    reference = folder.parent / REFERENCE
    if not (folder / NAME).is_file():
        return ""
    try:
        problems = check_checksums(reference) + check_checksums(folder)
        if problems:
            return problems[0].rstrip(".")
        record = CaseRecord.model_validate_json((folder / "case.json").read_text("utf-8"))
        if record.reference_files != sha256_of(reference / NAME):
            return f"{reference}: is not the reference that it was compared with"
    except (OSError, UserError) as error:
        return str(error)
    except ValidationError:
        return f"{folder / 'case.json'}: of another version"
    return record if record.fingerprint == fingerprint else "the candidate has changed since"


def write_order(out: Path, folders: Sequence[Path]) -> None:
    """Keep the order of a joint run's candidates."""
    write_text(out / ORDER, json.dumps([f.name for f in folders], indent=1) + "\n")


def results_files(folder: Path) -> list[Path]:
    """The results.json of a folder, or those of the folders below it, as the candidates were given.

    Raises:
        UserError: there is none.
    """
    if folder.is_file():
        return [folder]
    own = folder / "results.json"
    found = [own] if own.is_file() else sorted(folder.glob("*/results.json"))
    if not found:
        raise UserError(f"{folder} holds no results.json: give a folder that `wmeval pair` left")
    try:
        order = json.loads((folder / ORDER).read_text("utf-8"))
    except (OSError, ValueError):
        order = []
    rank = {str(name): k for k, name in enumerate(order)} if isinstance(order, list) else {}
    return sorted(found, key=lambda p: rank.get(p.parent.name, len(rank)))
