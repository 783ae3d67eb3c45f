"""A video folder as the package ``datasets`` loads it: one folder a split, with its metadata.

``load_dataset(FOLDER)`` gives the videos with the facts of each clip: README.md names the splits.
It works as well from a repository that the folder is pushed to.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from wmeval.datasets.clips import ClipSet
from wmeval.datasets.exports.samples import Step, film_of_clip, refuse_twins
from wmeval.datasets.exports.tables import arrow, write_parquet

METADATA = "metadata.parquet"


def write(clips: ClipSet, folder: Path, step: Step) -> int:
    """Fill a folder with videos and metadata by split.

    Raises:
        UserError: pyarrow is missing, two clips of one split have one name, or a damaged video.
    """
    pa = arrow("the export hf")
    refuse_twins(clips, by_split=True)
    rows: dict[str, list[dict[str, Any]]] = {}
    for i in range(len(clips)):
        facts = clips.facts(i)
        split = split_name(facts.split)
        name = f"{facts.sample_id}.mp4"
        film_of_clip(clips, i).copy(folder / split / name)
        row = facts.model_dump(mode="json")
        actors = row.pop("actors")
        footprint = row.pop("footprint_m")
        rows.setdefault(split, []).append(
            {
                "file_name": name,
                **row,
                "actor_names": [a["name"] for a in actors],
                "actor_roles": [a["role"] for a in actors],
                "actor_objects": [a["object"] for a in actors],
                "actor_seen_shares": [a["seen_share"] for a in actors],
                "footprint_m": footprint,
                "frames": int(clips.rows[i]["frames"]),
                "width": int(clips.rows[i]["width"]),
                "height": int(clips.rows[i]["height"]),
            }
        )
        step(i + 1, len(clips))
    schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in _PLAIN.items()])
    for name, kind in _LISTS.items():
        schema = schema.append(pa.field(name, pa.list_(getattr(pa, kind)())))
    for split, held in rows.items():
        write_parquet(folder / split / METADATA, pa.Table.from_pylist(held, schema=schema))
    (folder / "README.md").write_text(_readme(sorted(rows)), encoding="utf-8")
    return len(clips)


_PLAIN = {
    "file_name": "string",
    "sample_id": "string",
    "task_type": "string",
    "scene_id": "string",
    "surface_name": "string",
    "seed": "int64",
    "split": "string",
    "prompt": "string",
    "full_prompt": "string",
    "negative_prompt": "string",
    "physics": "string",
    "turn_deg": "float64",
    "azimuth_deg": "float64",
    "visible_share": "float64",
    "frames": "int64",
    "width": "int64",
    "height": "int64",
}
_LISTS = {
    "objects": "string",
    "actor_names": "string",
    "actor_roles": "string",
    "actor_objects": "string",
    "actor_seen_shares": "float64",
    "footprint_m": "float64",
}


def split_name(split: str) -> str:
    """A split's name as the package allows it: no dashes."""
    return split.replace("-", "_")


def _readme(splits: list[str]) -> str:
    files = "".join(f'  - split: {s}\n    path: "{s}/*"\n' for s in splits)
    return (
        "---\nconfigs:\n- config_name: default\n  drop_labels: true\n  data_files:\n"
        f"{files}---\n\nClips of rigid bodies with their facts; made by wmeval.\n"
    )
