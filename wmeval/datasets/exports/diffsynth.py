"""The layout that Wan trainers (DiffSynth-Studio) read: metadata.csv beside videos.

Columns ``video`` (path below the folder) and ``prompt`` are theirs; the negative prompt, sample,
task, setting and split are carried along. The first frame of a video is the image that
image-to-video training conditions on.
"""

from __future__ import annotations

import csv
from pathlib import Path

from wmeval.datasets.clips import ClipSet
from wmeval.datasets.exports.samples import Step, film_of_clip, refuse_twins

COLUMNS = (
    "video",
    "prompt",
    "negative_prompt",
    "sample_id",
    "task_type",
    "scene_id",
    "split",
)


def write(clips: ClipSet, folder: Path, step: Step) -> int:
    """Fill a folder with metadata.csv and videos.

    Raises:
        UserError: two clips of one name, or a damaged video.
    """
    refuse_twins(clips, by_split=False)
    with (folder / "metadata.csv").open("w", newline="", encoding="utf-8") as stream:
        table = csv.DictWriter(stream, COLUMNS, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
        table.writeheader()
        for i in range(len(clips)):
            facts = clips.facts(i)
            name = f"videos/{facts.sample_id}.mp4"
            film_of_clip(clips, i).copy(folder / name)
            row = facts.model_dump(mode="json")
            table.writerow({**{c: row[c] for c in COLUMNS[1:]}, "video": name})
            step(i + 1, len(clips))
    return len(clips)
