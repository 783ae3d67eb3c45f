"""How long the camera sees what moves in RigidBench's clips, by task.

``python -m benchmarks.seen [MANIFEST] [--limit N]``: rows of a manifest (train, eval, a file), N of
them spread evenly, drawn small. The camera frames what stands there at first, as published.
"""

from __future__ import annotations

import argparse

import numpy as np

WIDTH, HEIGHT = 320, 176


def main() -> None:
    """Print a row a task."""
    from wmeval.assets.cards import library
    from wmeval.datasets.clip import ClipRecord
    from wmeval.generators.rigidbench import clip_of, rows_of

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("manifest", nargs="?", default="eval")
    parser.add_argument("--limit", type=int, default=100)
    parser.add_argument("--physics", default="bullet")
    args = parser.parse_args()
    rows = rows_of(args.manifest, library())
    count = min(args.limit, len(rows))
    chosen = [rows[i] for i in np.linspace(0, len(rows) - 1, count).round().astype(int)]
    job = {
        "width": WIDTH,
        "height": HEIGHT,
        "layers": ("ids",),
        "physics": args.physics,
        "renderer": "raster",
        "renderer_options": {"texture_size": 128},
    }
    shares: dict[str, list[float]] = {}
    for row in sorted(chosen, key=lambda r: (r.task_type, r.scene_id)):
        share = ClipRecord(clip_of(row, job)).facts.seen_share
        shares.setdefault(row.task_type, []).append(share if share is not None else np.nan)
    print(f"{'task':20} {'clips':>5} {'frames seen':>12} {'seen throughout':>16}")
    for task, found in shares.items():
        every = np.array(found)
        print(f"{task:20} {len(every):5} {every.mean():12.3f} {(every == 1).mean():16.2f}")


if __name__ == "__main__":
    main()
