"""The making of RigidBench clips: clips an hour, and where the seconds of a clip go.

Rows of one room of our training manifest, as a long run meets them: what a process builds once (the
room, its textures) is built by the clips before those that are measured.

    python -m benchmarks.making                 # prints JSON
    python -m benchmarks.making draft           # one preset
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOM = "modern_loft"
CLIPS = {"draft": 6, "paper": 4}
"""Clips of a run of `clips_per_hour`, by preset; a worker's first one does not count."""
PARTS_OF = 2
"""Clips of `seconds_of_a_clip`; one more before them."""


def job_of(quality: str) -> dict[str, Any]:
    """What `wmeval.generators.rigidbench.clip_of` wants to know."""
    from wmeval.generators import rigidbench

    preset = rigidbench.QUALITIES[quality]
    return {
        "width": preset.width,
        "height": preset.height,
        "layers": list(preset.layers),
        "physics": "bullet",
        "renderer": "raster",
        "renderer_options": dict(preset.renderer_options.get("raster", {})),
    }


def rows_of_room(count: int) -> list[Any]:
    """So many training rows of a room, its tasks in turn."""
    from wmeval.assets.cards import library
    from wmeval.generators import rigidbench

    rows = [r for r in rigidbench.rows_of("train", library()) if r.scene_id == ROOM]
    by_task = [[r for r in rows if r.task_type == t] for t in rigidbench.ENVIRONMENT_OF]
    turns = [row for turn in zip(*(b[:count] for b in by_task), strict=False) for row in turn]
    return turns[:count]


def clips_per_hour(quality: str, workers: int) -> float:
    """Clips an hour of wall time once every worker has made its first."""
    from wmeval.generators import rigidbench

    count = CLIPS[quality]
    with tempfile.TemporaryDirectory() as made:
        manifest = Path(made, "rows.json")
        manifest.write_text(json.dumps(_manifest(rows_of_room(count + workers))))
        ended: list[float] = []

        def progress(done: int, asked: int, outcome: Any) -> None:
            if outcome is not None:
                ended.append(time.perf_counter())

        rigidbench.generate_rigidbench(
            manifest, Path(made, "set"), quality=quality, workers=workers, progress=progress
        )
    return 3600 * (len(ended) - workers) / (ended[-1] - ended[workers - 1])


def _manifest(rows: list[Any]) -> Any:
    return [row.model_dump(mode="json") for row in rows]


class _Clock:
    """CPU and wall seconds of calls, by name."""

    def __init__(self) -> None:
        self.cpu: dict[str, float] = {}
        self.wall: dict[str, float] = {}

    def __call__(self, name: str, call: Any) -> Any:
        cpu, wall = time.process_time(), time.perf_counter()
        result = call()
        self.cpu[name] = self.cpu.get(name, 0.0) + time.process_time() - cpu
        self.wall[name] = self.wall.get(name, 0.0) + time.perf_counter() - wall
        return result


def seconds_of_a_clip(quality: str) -> dict[str, Any]:
    """CPU-seconds of a clip on disk and of its parts; wall time over bare physics and drawing.

    ``physics`` is the sample's layout and the recorded simulation, ``rendering`` drawing and
    keeping the frames, ``encoding`` the video, ``writing`` all else on disk. ``bare`` steps the
    same world unrecorded and calls the renderer, made anew, for the same states; nothing else.
    """
    from wmeval.datasets import set_runs
    from wmeval.datasets.clip import ClipRecord
    from wmeval.datasets.clips import write_clip
    from wmeval.datasets.film import write_film
    from wmeval.datasets.location import locate
    from wmeval.datasets.sets import CLIPS as KIND
    from wmeval.envs.plans import load_plan
    from wmeval.envs.record import record
    from wmeval.generators import rigidbench
    from wmeval.sim.protocol import render_state
    from wmeval.sim.render import make_renderer
    from wmeval.sim.world import LocalWorld

    job = job_of(quality)
    clock = _Clock()
    with tempfile.TemporaryDirectory() as made:
        url = str(Path(made, "set"))
        set_runs.begin(locate(url), {"clips": 1 + PARTS_OF}, kind=KIND)
        for number, row in enumerate(rows_of_room(1 + PARTS_OF)):
            if number == 1:
                clock = _Clock()
            env = rigidbench.environment_of(row.task_type, job)
            # Alone, and first: so is what a process builds for a row's objects only once.
            options = {"row": row.model_dump(mode="json")}
            plan = load_plan(env.ID, rigidbench.PLAN)
            record(env, plan=plan, seed=row.seed, options=options)
            clock(
                "physics",
                lambda e=env, p=plan, r=row, o=options: record(e, plan=p, seed=r.seed, options=o),
            )
            rollout = clock("made", lambda r=row: rigidbench.clip_of(r, job))
            kept = tuple(n for n in rollout.frames.layers if n != "rgb" or n in job["layers"])
            clock("written", lambda n=number, r=rollout, k=kept: write_clip(url, n, r, layers=k))
            clip = ClipRecord(rollout)
            clock(
                "encoding",
                lambda c=clip: write_film(locate(str(Path(made, "a.mp4"))), c.rgb, c.fps),
            )
            spec, layers = env.world_spec, ("rgb", *(n for n in job["layers"] if n != "rgb"))
            world = LocalWorld(spec)
            last = len(rollout.log) - 1
            clock("bare_physics", lambda w=world, n=last: (w.reset(), w.run((), n)))
            world.close()
            states = [
                render_state(rollout.log, int(k), env.scene, env.camera_index(None))
                for k in rollout.frames.state_index
            ]

            def draw(spec: Any = spec, states: Any = states, layers: Any = layers) -> None:
                renderer = make_renderer(
                    "raster", spec.scene, spec.meshes, **job["renderer_options"]
                )
                for state in states:
                    renderer.draw(state, job["width"], job["height"], layers)
                renderer.close()

            clock("bare_rendering", draw)
    cpu = {name: seconds / PARTS_OF for name, seconds in clock.cpu.items()}
    wall = {name: seconds / PARTS_OF for name, seconds in clock.wall.items()}
    return {
        "cpu_s": cpu["made"] + cpu["written"],
        "physics_cpu_s": cpu["physics"],
        "rendering_cpu_s": cpu["made"] - cpu["physics"],
        "encoding_cpu_s": cpu["encoding"],
        "writing_cpu_s": cpu["written"] - cpu["encoding"],
        "bare_physics_cpu_s": cpu["bare_physics"],
        "bare_rendering_cpu_s": cpu["bare_rendering"],
        "wall_s": wall["made"] + wall["written"],
        "wall_over_bare": (wall["made"] + wall["written"])
        / (wall["bare_physics"] + wall["bare_rendering"]),
        "cpu_over_bare": (cpu["made"] + cpu["written"])
        / (cpu["bare_physics"] + cpu["bare_rendering"]),
    }


def measure(qualities: tuple[str, ...] = ("draft", "paper")) -> dict[str, Any]:
    """Both, by preset."""
    out: dict[str, Any] = {"room": ROOM}
    for quality in qualities:
        job = job_of(quality)
        one, two = (clips_per_hour(quality, workers) for workers in (1, 2))
        out[quality] = {
            "size": [job["width"], job["height"]],
            "layers": job["layers"],
            "clips_per_hour_1_worker": one,
            "clips_per_hour_2_workers": two,
            "two_over_one": two / one,
            **seconds_of_a_clip(quality),
        }
    return out


if __name__ == "__main__":
    print(json.dumps(measure(tuple(sys.argv[1:]) or ("draft", "paper")), indent=2))
