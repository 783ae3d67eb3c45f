"""One published bundle per clip, in folders named after the samples."""

from __future__ import annotations

import json
from pathlib import Path

from wmeval.datasets.bundle import write_bundle
from wmeval.datasets.checksums import check_checksums
from wmeval.datasets.clips import ClipSet
from wmeval.datasets.exports.samples import Step, refuse_twins
from wmeval.errors import UserError


def write(
    clips: ClipSet, folder: Path, step: Step, *, overwrite: bool = False, exr: bool = False
) -> int:
    """Write what is missing; a bundle of the same clip that is there and whole is kept.

    Args:
        clips: the set.
        folder: of the bundles.
        step: told of each.
        overwrite: write each anew.
        exr: with EXR streams, as `wmeval.datasets.bundle.write_bundle`.

    Raises:
        UserError: two clips of one name; another clip's bundle stands there, or a damaged one, or
            one with other streams, and ``overwrite`` is off.
    """
    refuse_twins(clips, by_split=False)
    for i in range(len(clips)):
        place = folder / clips.facts(i).sample_id
        if overwrite or not _kept(place, str(clips.rows[i]["rollout_sha256"]), exr):
            write_bundle(clips[i], place, exr=exr, overwrite=overwrite)
        step(i + 1, len(clips))
    return len(clips)


def _kept(place: Path, sha256: str, exr: bool) -> bool:
    if not (place / "metadata.json").is_file():
        return False
    problems = check_checksums(place)
    if problems:
        raise UserError(f"{problems[0]} Make it anew with --overwrite.")
    if json.loads((place / "metadata.json").read_bytes()).get("rollout_sha256") != sha256:
        raise UserError(
            f"{place}: the bundle of another clip; pass overwrite (--overwrite) to replace it"
        )
    if any((place / "depth").glob("*.exr")) != exr:
        raise UserError(
            f"{place}: a bundle {'without' if exr else 'with'} EXR streams; pass overwrite "
            "(--overwrite) to replace it"
        )
    return True
