"""Writing and reading rollouts against the bare library, the bare disk and npz.

One rollout: BeamDomino's canonical plan with every substep's state and contacts, and 49 frames of
1280x704 with depth and ids from the still view.
"""

from __future__ import annotations

import dataclasses
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

WIDTH, HEIGHT, FRAMES = 1280, 704, 49


def seconds(call: Callable[[], Any], repeats: int = 3) -> float:
    """Median wall seconds after one warm-up."""
    call()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        call()
        times.append(time.perf_counter() - began)
    return statistics.median(times)


def recorded() -> tuple[Any, float, float]:
    """A rollout with pictures, and the seconds of recording it without and with them."""
    from wmeval.envs import environment_class
    from wmeval.envs.plans import load_plan
    from wmeval.envs.record import record

    env_id = "WMEval/BeamDomino-v0"
    env = environment_class(env_id)(width=WIDTH, height=HEIGHT)
    plan = load_plan(env_id, "canonical")
    try:
        began = time.perf_counter()
        bare = record(env, plan=plan, seed=0)
        middle = time.perf_counter()
        last = bare.log.state.times[-1]
        times = [round(float(last) * j / FRAMES, 6) for j in range(FRAMES)]
        rollout = record(
            env, plan=plan, seed=0, layers=("depth", "ids"), view="static", frame_times=times
        )
        return rollout, middle - began, time.perf_counter() - middle
    finally:
        env.close()


def folder_bytes(path: str) -> int:
    """Bytes of a file or of all files below a folder."""
    target = Path(path)
    if target.is_file():
        return target.stat().st_size
    return sum(p.stat().st_size for p in target.rglob("*") if p.is_file())


def measure() -> dict[str, Any]:
    """Seconds, bytes and ratios."""
    import h5py

    from wmeval.datasets.rollout import read, write_hdf5, write_zarr

    rollout, record_s, with_pictures_s = recorded()
    layers = {name: np.asarray(layer) for name, layer in rollout.frames.layers.items()}
    rows = np.arange(200) * (len(rollout.log) // 200)
    base = dataclasses.replace(
        rollout,
        frames=None,
        log=rollout.log.rows(rows),
    )
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)

        def bare() -> None:
            with h5py.File(folder / "bare.h5", "w") as file:
                for name, layer in layers.items():
                    file.create_dataset(
                        name,
                        data=layer,
                        chunks=(1, HEIGHT, WIDTH),
                        compression="gzip",
                        compression_opts=4,
                        shuffle=True,
                    )
                for name, array in rollout.columns().items():
                    if array.dtype.kind != "U":
                        file[name] = array

        stores = {
            "hdf5": lambda **kept: write_hdf5(rollout, folder / "a.h5", **kept),
            "zarr": lambda **kept: write_zarr(rollout, folder / "a.zarr", **kept),
        }
        results: dict[str, Any] = {
            "frames": FRAMES,
            "width": WIDTH,
            "height": HEIGHT,
            "states": len(rollout.log),
            "contacts": len(rollout.log.contacts),
            "record_states_s": record_s,
            "record_with_pictures_s": with_pictures_s,
        }
        results["bare_h5py_write_s"] = seconds(bare, 1)
        results["bare_h5py_bytes"] = folder_bytes(str(folder / "bare.h5"))
        np.savez_compressed(folder / "numbers.npz", **_numbers(rollout))
        results["npz_numbers_bytes"] = folder_bytes(str(folder / "numbers.npz"))
        began = time.perf_counter()
        np.savez_compressed(folder / "a.npz", **layers)
        results["npz_pictures_write_s"] = time.perf_counter() - began
        results["npz_pictures_bytes"] = folder_bytes(str(folder / "a.npz"))
        began = time.perf_counter()
        with np.load(folder / "a.npz", allow_pickle=False) as archive:
            archive["depth"][24]
        results["npz_frame_read_ms"] = 1e3 * (time.perf_counter() - began)
        for name, write in stores.items():
            url = str(write())
            size = folder_bytes(url)
            payload = os.urandom(size)

            def disk(payload: bytes = payload) -> None:
                with (folder / "disk").open("wb") as stream:
                    stream.write(payload)
                    os.fsync(stream.fileno())

            state_only = write_hdf5 if name == "hdf5" else write_zarr
            states = state_only(base, folder / f"state.{name}")
            numbers = folder_bytes(str(write(layers=())))
            write()
            layer = read(url).frames.layers["depth"]  # type: ignore[union-attr]
            flow = read(url).frames.layers["flow"]  # type: ignore[union-attr]
            write_s, disk_s = seconds(write, 1), seconds(disk)
            index = iter(range(1, 40))
            results[name] = {
                "write_s": write_s,
                "numbers_bytes": numbers,
                "pictures_bytes": size - numbers,
                "numbers_over_npz": numbers / results["npz_numbers_bytes"],
                "pictures_over_npz": (size - numbers) / results["npz_pictures_bytes"],
                "write_over_record": write_s / with_pictures_s,
                "write_over_bare_h5py": write_s / results["bare_h5py_write_s"],
                "disk_write_of_same_bytes_s": disk_s,
                "write_200_states_s": seconds(lambda s=states, w=state_only: w(base, s)),  # type: ignore[misc]
                "load_200_states_ms": 1e3 * seconds(lambda s=states: read(s), 7),  # type: ignore[misc]
                "open_with_frames_ms": 1e3 * seconds(lambda u=url: read(u), 7),  # type: ignore[misc]
                "frame_read_ms": 1e3 * seconds(lambda a=layer, i=index: a[next(i)], 9),  # type: ignore[misc]
                "flow_frame_ms": 1e3 * seconds(lambda a=flow: a[20], 3),  # type: ignore[misc]
            }
    return results


def _numbers(rollout: Any) -> dict[str, NDArray[Any]]:
    return {
        path.replace("/", "."): array
        for path, array in rollout.columns().items()
        if array.dtype.kind != "U"
    }
