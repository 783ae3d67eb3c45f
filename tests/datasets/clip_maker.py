"""Small clips of BeamDomino: two dominoes and the slab, seen by a still camera."""

from __future__ import annotations

from functools import cache

from wmeval.datasets.clip import ClipActor, ClipFacts, with_facts
from wmeval.datasets.rollout import Rollout
from wmeval.envs import make_environment
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record

ENV = "WMEval/BeamDomino-v0"
ACTORS = ("floor_ball", "slab", "domino_00")
FRAMES = 7


@cache
def recorded(seed: int, size: tuple[int, int], layers: tuple[str, ...]) -> Rollout:
    env = make_environment(ENV, width=size[0], height=size[1])
    try:
        return record(
            env,
            plan=load_plan(ENV, "canonical"),
            seed=seed,
            layers=layers,
            view="static",
            fps=24,
            max_steps=15,
        )
    finally:
        env.close()


def make_clip(
    seed: int = 0,
    *,
    size: tuple[int, int] = (96, 64),
    layers: tuple[str, ...] = ("rgb", "depth", "ids"),
    split: str = "train",
    task: str = "topple",
) -> Rollout:
    rollout = recorded(seed, size, layers)
    bodies = {body.name: body for body in rollout.scene.bodies}
    facts = ClipFacts(
        sample_id=f"{seed:05d}",
        task_type=task,
        scene_id="court",
        surface_name="floor",
        seed=seed,
        split=split,
        objects=("ball", "beam"),
        actors=tuple(
            ClipActor(
                name=name,
                role="passive" if name == "slab" else "active",
                object=None if name == "slab" else name.split("_")[1],
                instance=bodies[name].instance,
            )
            for name in ACTORS
        ),
        prompt="The ball rolls, and a row of dominoes topples.",
        negative_prompt="blur",
        turn_deg=30.0,
        azimuth_deg=75.0,
        footprint_m=(1.5, 0.5),
    )
    return with_facts(rollout, facts)
