"""One clip of RigidBench on disk: 49 frames of 1280x704 with colour, depth and ids.

A room, two objects rolling down ramps, every substep's state and contacts.
"""

from __future__ import annotations

import statistics
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
    from wmeval.datasets.clip import ClipRecord
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
        held = ClipRecord(rollout)
        masks = np.stack([held.masks(i) for i in range(FRAMES)])
        np.savez_compressed(folder / "masks.npz", depth=layers["depth"], masks=masks)
        url = str(folder / "set")
        set_runs.begin(locate(url), {"clips": 1}, kind=CLIPS)
        write_s = seconds(lambda: write_clip(url, 0, rollout), 3)
        set_runs.complete(locate(url), CLIPS)
        store = folder / "set" / "clips" / "000000.zarr"

        def taken(name: str) -> int:
            return sum(folder_bytes(str(store / part / name)) for part in ("layer", "plate"))

        read = wmeval.open(url)[0]
        index = iter(np.random.default_rng(0).integers(0, FRAMES, 200).tolist())
        frames = {name: frame_ms(read.layer(name)) for name in ("rgb", "depth", "ids")}
        labels = taken("depth") + taken("ids")
        return {
            "frames": FRAMES,
            "width": WIDTH,
            "height": HEIGHT,
            "npz_bytes": folder_bytes(str(npz)),
            "npz_write_s": npz_s,
            "depth_and_ids_bytes": labels,
            "over_npz": labels / folder_bytes(str(npz)),
            "over_npz_of_depth_and_masks": labels / folder_bytes(str(folder / "masks.npz")),
            "rgb_lossless_bytes": taken("rgb"),
            "video_bytes": folder_bytes(str(folder / "set" / "clips" / "000000.mp4")),
            "clip_bytes": folder_bytes(url),
            "write_clip_s": write_s,
            "open_clip_ms": 1e3 * seconds(lambda: wmeval.open(url)[0], 7),
            **{f"{name}_frame_ms": statistics.median(times) for name, times in frames.items()},
            "slowest_frame_of_any_layer_ms": max(map(max, frames.values())),
            "masks_frame_ms": 1e3 * seconds(lambda: read.masks(next(index)), 9),
            "flow_ms": 1e3 * seconds(lambda: read.flow(next(index), next(index)), 9),
            "normals_ms": 1e3 * seconds(lambda: read.normals(next(index)), 5),
            "video_49_frames_ms": 1e3 * seconds(lambda: read.film[:], 3),  # type: ignore[index]
            "materialized": materialized_labels(folder, rollout),
        }


def materialized_labels(folder: Path, rollout: Any) -> dict[str, Any]:
    """What stored labels take, and what they spare."""
    import wmeval
    from wmeval.datasets import set_runs
    from wmeval.datasets.clips import write_clip
    from wmeval.datasets.location import locate
    from wmeval.datasets.materialize import NAMES, materialized
    from wmeval.datasets.sets import CLIPS

    results: dict[str, Any] = {}
    for name in NAMES:
        url = str(folder / name)
        set_runs.begin(locate(url), {"clips": 1}, kind=CLIPS)
        began = time.perf_counter()
        held = materialized(rollout, [name])
        write_clip(url, 0, held, layers=(name,) if name in held.frames.layers else ())
        made_s = time.perf_counter() - began
        set_runs.complete(locate(url), CLIPS)
        store = folder / name / "clips" / "000000.zarr"
        parts = [store / part / name for part in ("layer", "plate", "label")]
        layer = wmeval.open(url)[0].stored(name)
        results[name] = {
            "bytes": sum(folder_bytes(str(part)) for part in parts),
            "make_and_write_s": made_s,
            **({} if layer is None else {"frame_ms": statistics.median(frame_ms(layer))}),
        }
    return results


def frame_ms(layer: Any) -> list[float]:
    """Milliseconds of reading each frame of a layer, in random order."""
    layer[0]
    times = []
    for i in np.random.default_rng(0).permutation(FRAMES):
        began = time.perf_counter()
        layer[int(i)]
        times.append(1e3 * (time.perf_counter() - began))
    return times
