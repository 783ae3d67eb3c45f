"""How far the physics modes come apart on the same samples: ``python -m benchmarks.physics_modes``.

Each sample is simulated in each mode, and each pair of modes is compared by where the same actor is
at the same time. ``--clips N`` takes so many samples of each task of our evaluation manifest.
"""

from __future__ import annotations

import argparse
import itertools
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

AT_S = (1, 2)
"""Times at which distances are told [s]; a clip is two seconds long."""
CLIPS = 2


def measure(clips: int = CLIPS) -> dict[str, Any]:
    """Distances [m] by pair of modes and task: median and largest over samples at each of `AT_S`.

    A sample's distance is that of the actor that is furthest from itself. A mode whose engine is
    not here is ``not_run``, with the reason.
    """
    from wmeval.assets.cards import library
    from wmeval.envs.rigidbench.physics import PHYSICS
    from wmeval.generators.manifest import evaluation_manifest

    cards = library()
    rows = evaluation_manifest(cards)
    absent = {mode: reason for mode in PHYSICS if (reason := _absence(mode))}
    out: dict[str, Any] = {}
    for task in cards.splits.tasks:
        places: dict[str, list[NDArray[np.float64]]] = {}
        for mode in PHYSICS:
            if mode not in absent:
                chosen = [row for row in rows if row.task_type == task][:clips]
                places[mode] = [_places(row, cards, mode) for row in chosen]
        for one, other in itertools.combinations(PHYSICS, 2):
            why = absent.get(one) or absent.get(other)
            if why:
                out[f"{one} - {other}"] = {"not_run": why}
                continue
            told = out.setdefault(f"{one} - {other}", {})
            apart = np.array(
                [
                    np.linalg.norm(a - b, axis=-1).max(axis=-1)
                    for a, b in zip(places[one], places[other], strict=True)
                ]
            )
            told[task] = {
                f"after_{second}_s": {
                    "median_m": float(np.median(apart[:, k])),
                    "largest_m": float(apart[:, k].max()),
                }
                for k, second in enumerate(AT_S)
            }
    return out


def _absence(mode: str) -> str:
    """Why a mode cannot run here; "" where it can."""
    from wmeval.envs.rigidbench.physics import PHYSICS
    from wmeval.errors import UserError

    if PHYSICS[mode].engine != "blender":
        return ""
    from wmeval.sim.blender_worker import blender_python

    try:
        blender_python()
    except UserError as error:
        return str(error)
    return ""


def _places(row: Any, cards: Any, mode: str) -> NDArray[np.float64]:
    """Positions (times, actors, 3) [m] of what moves."""
    from wmeval.clock import SceneClock
    from wmeval.envs.rigidbench.physics import FPS, SUBSTEPS
    from wmeval.envs.rigidbench.sample import ACTIVE, draw_sample
    from wmeval.sim.protocol import Probe, WorldSpec
    from wmeval.sim.world import LocalWorld

    x = draw_sample(row, cards, physics=mode)
    clock = SceneClock(Fraction(1, FPS * SUBSTEPS), Fraction(1, FPS))
    world = LocalWorld(
        WorldSpec(
            x.scene, x.meshes, x.drivers, clock, x.rules, engine=x.physics.engine, config=x.config
        )
    )
    moving = list(x.scene.indices(ACTIVE))
    places = []
    try:
        world.reset()
        for second in AT_S:
            log = world.advance((), second * FPS * SUBSTEPS, Probe("substeps"))
            places.append(log.state.position[-1, moving])
    finally:
        world.close()
    return np.array(places, np.float64)


def main() -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clips", type=int, default=CLIPS, help="samples of each task")
    args = parser.parse_args()
    print(f"{'modes':28} {'task':18} {'after':6} {'median':>9} {'largest':>9}   [mm]")
    for pair, tasks in measure(max(1, args.clips)).items():
        if "not_run" in tasks:
            print(f"{pair:28} not_run: {tasks['not_run']}")
            continue
        for task, told in tasks.items():
            for second in AT_S:
                at = told[f"after_{second}_s"]
                median, largest = (1e3 * at[name] for name in ("median_m", "largest_m"))
                print(f"{pair:28} {task:18} {second} s    {median:9.2f} {largest:9.2f}")


if __name__ == "__main__":
    main()
