"""Sets of bundles: the published files of each clip in a folder of its own, made like any set.

set.json               what the set is (format, job)
bundles/SAMPLE_ID/     one bundle (`wmeval.datasets.bundle`)
thumbs/000000.jpg      first frame of the video, small
rows/000000.json       facts and checksums of one finished bundle; written after it
README.md, ...         what the set is, and a page to look at it (`wmeval.datasets.card`)
manifest.json          all rows; written last, when the set is complete
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wmeval.datasets import browse, sets
from wmeval.datasets.bundle import write_bundle
from wmeval.datasets.clip import ClipRecord
from wmeval.datasets.clips import row_facts
from wmeval.datasets.location import locate
from wmeval.datasets.rollout import Rollout
from wmeval.datasets.sets import BUNDLES
from wmeval.errors import UserError


def write_bundle_of(
    url: str | Path, number: int, rollout: Rollout, *, exr: bool = False
) -> dict[str, Any]:
    """Write one bundle of a set, and last its row; the same rollout gives the same bytes.

    Args:
        url: folder of the set, begun by `wmeval.datasets.set_runs.begin`.
        number: of the bundle in the set.
        rollout: with facts (`wmeval.datasets.clip.with_facts`) and the layers rgb, depth and ids.
        exr: as `write_bundle`.

    Returns:
        The row.

    Raises:
        UserError: not a folder, no clip, or as `write_bundle`.
    """
    place = locate(url)
    if place.path is None:
        raise UserError(f"{place.url}: bundles are folders of files: give a folder")
    clip = ClipRecord(rollout)
    name = f"{BUNDLES.samples}/{clip.facts.sample_id}"
    folder = place.path / name
    # One that a dead run left without its row is made anew.
    write_bundle(clip, folder, exr=exr, overwrite=True)
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    film = f"{name}/video.mp4"
    thumb, content = browse.put_thumbnail(place, number, film, clip.size, len(clip))
    row = {
        "format": BUNDLES.format,
        "clip": number,
        "path": name,
        "video": film,
        "objects": {
            thumb: sets.object_entry(content),
            **{
                f"{name}/{p.relative_to(folder).as_posix()}": sets.object_entry(p.read_bytes())
                for p in files
            },
        },
        **row_facts(clip),
    }
    place.put(sets.row_key(number), sets.sealed(row))
    return row
