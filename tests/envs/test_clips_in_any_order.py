"""A row's state and pictures are its own, whatever else this process made before."""

from __future__ import annotations

import hashlib

import pytest

from wmeval.assets.cards import library
from wmeval.envs import make_environment

pytestmark = [pytest.mark.gl, pytest.mark.accept]

PLACES = {
    "FreeFall": ("free_fall", "cozy_living_room"),
    "BallChain": ("ball_chain", "modern_loft"),
    "DropIntoCluster": ("drop_into_cluster", "modern_loft"),
    "Bounce": ("bounce", "beach_gazebo"),
}
LAYERS = ("rgb", "depth", "ids", "normals")


def made(name: str) -> tuple[str, ...]:
    """Digests of the state, and of each layer of a late picture."""
    task, setting = PLACES[name]
    cards = library()
    env = make_environment(name, width=192, height=104, renderer_options={"texture_size": 128})
    row = {
        "sample_id": "one", "scene_id": setting, "task_type": task, "seed": 77, "split": "train",
        "surface_name": next(iter(cards.settings[setting].surfaces)),
        "objects": list(cards.splits.train.objects),
    }  # fmt: skip
    env.reset(seed=0, options={"row": row})
    for _ in range(9):
        env.step([])
    drawn = env.draw(LAYERS)
    found = (env.log.state.sha256(), env.scene.content_hash())
    env.close()
    return (*found, *(hashlib.sha256(drawn[k].tobytes()).hexdigest() for k in LAYERS))


def test_rows_are_the_same_in_any_order() -> None:
    forth = {name: made(name) for name in PLACES}
    back = {name: made(name) for name in reversed(PLACES)}
    assert back == forth
    assert len(set(forth.values())) == len(PLACES)
