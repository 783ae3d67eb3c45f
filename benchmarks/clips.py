"""One clip of RigidBench on disk: 49 frames of 1280x704 with colour, depth and ids.

A room, two objects rolling down ramps, every substep's state and contacts.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.storage import folder_bytes, seconds

WIDTH, HEIGHT, FRAMES = 1280, 704, 49
ENV_ID, SETTING = "RigidBench/RampCollision-v0", "modern_loft"


def clip() -> Any:
    """The clip, its pictures in memory."""
    from wmeval.datasets.clip import ClipActor, ClipFacts, with_facts
    from wmeval.envs import make_environment
    from wmeval.envs.policies import make_policy
    from wmeval.envs.record import record

    env: Any = make_environment(ENV_ID, width=WIDTH, height=HEIGHT)
    try:
        rollout = record(
            env,
            policy=make_policy("random"),
            seed=4,
            options={"setting": SETTING},
            layers=("rgb", "depth", "ids"),
            fps=24,
            max_steps=FRAMES - 1,
        )
        sample = env.sample
    finally:
        env.close()
    facts = ClipFacts(
        **sample.row.model_dump(),
        actors=tuple(ClipActor(**vars(actor)) for actor in sample.actors),
        prompt=sample.prompt,
    )
    return with_facts(rollout, facts)


def measure() -> dict[str, Any]:
    """Bytes against npz, seconds of writing, milliseconds of reading."""
    import wmeval
    from wmeval.datasets import set_runs
    from wmeval.datasets.clips import write_clip
    from wmeval.datasets.location import locate
    from wmeval.datasets.sets import CLIPS

    rollout = clip()
    layers = {name: np.asarray(rollout.frames.layers[name]) for name in ("depth", "ids")}
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        npz = folder / "a.npz"
        began = time.perf_counter()
        np.savez_compressed(npz, **layers)
        npz_s = time.perf_counter() - began
        url = str(folder / "set")
        set_runs.begin(locate(url), {"clips": 1}, kind=CLIPS)
        write_s = seconds(lambda: write_clip(url, 0, rollout), 3)
        set_runs.complete(locate(url), CLIPS)
        store = folder / "set" / "clips" / "000000.zarr"

        def taken(name: str) -> int:
            return sum(folder_bytes(str(store / part / name)) for part in ("layer", "plate"))

        read = wmeval.open(url)[0]
        index = iter(np.random.default_rng(0).integers(0, FRAMES, 200).tolist())
        labels = taken("depth") + taken("ids")
        return {
            "frames": FRAMES,
            "width": WIDTH,
            "height": HEIGHT,
            "npz_bytes": folder_bytes(str(npz)),
            "npz_write_s": npz_s,
            "depth_and_ids_bytes": labels,
            "over_npz": labels / folder_bytes(str(npz)),
            "rgb_lossless_bytes": taken("rgb"),
            "video_bytes": folder_bytes(str(folder / "set" / "clips" / "000000.mp4")),
            "clip_bytes": folder_bytes(url),
            "write_clip_s": write_s,
            "open_clip_ms": 1e3 * seconds(lambda: wmeval.open(url)[0], 7),
            **{
                f"{name}_frame_ms": 1e3 * seconds(lambda n=name: read.layer(n)[next(index)], 15)  # type: ignore[misc]
                for name in ("rgb", "depth", "ids")
            },
            "masks_frame_ms": 1e3 * seconds(lambda: read.masks(next(index)), 9),
            "flow_ms": 1e3 * seconds(lambda: read.flow(next(index), next(index)), 9),
            "normals_ms": 1e3 * seconds(lambda: read.normals(next(index)), 5),
            "video_49_frames_ms": 1e3 * seconds(lambda: read.film[:], 3),  # type: ignore[index]
        }
