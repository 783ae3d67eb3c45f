"""Cubes side by side do what one alone does, on every engine that is installed here."""

from fractions import Fraction

import numpy as np
import pytest
from engine_worlds import engine_here

from wmeval.datasets.mocap.contactnets import HALF_WIDTH, RATE, TossState
from wmeval.errors import UserError
from wmeval.eval.fitting.cubes import CubeBody, Start, batches, fly, scene_of
from wmeval.sim.engines.genesis_apart import Apart, joint_speeds
from wmeval.sim.protocol import EngineConfig

CUBE = CubeBody(0.37, 0.18, 0.125, 0.295 * HALF_WIDTH**2)
FIRST = 1e-5
"""Before and at the first contact nothing has grown yet [m]: the rounding of places 2 m apart in
single precision."""
GROWN = {"bullet": 1e-8, "genesis": 1e-8, "physx": 2e-3, "newton": 2e-3}
"""After 0.3 s of tumbling [m]: what single precision's rounding has become."""


def starts(count, frames=45):
    rng = np.random.default_rng(6)
    out = []
    for _ in range(count):
        q = rng.normal(size=4)
        state = TossState(
            np.array([0.0, 0.0, 0.12 + 0.02 * rng.random()]), q / np.linalg.norm(q),
            rng.normal(0, 0.7, 3), rng.normal(0, 3, 3), 0, 0, 0,
        )  # fmt: skip
        out.append(Start(state, np.arange(frames) / RATE))
    return out


@pytest.mark.parametrize(
    "engine",
    [
        "bullet",
        *(pytest.param(e, marks=pytest.mark.accept) for e in ("physx", "newton", "genesis")),
    ],
)
def test_side_by_side_is_as_alone(engine):
    engine_here(engine)
    given = starts(5)
    options = {"contact": "restitution"} if engine in ("newton", "genesis") else {}
    run = {
        "engine": engine, "config": EngineConfig(iterations=50, options=options),
        "dt": Fraction(1, 720), "taken": [],
    }  # fmt: skip
    try:
        many = fly(given, CUBE, **run)
        again = fly(given, CUBE, **run)
        ones = [fly([start], CUBE, **run)[0] for start in given[:2]]
    finally:
        for world in run["taken"]:
            world.close()
    assert all(f.stayed for f in many)
    assert max(f.position[:, 2].min() for f in many) < 2 * HALF_WIDTH  # all have come down
    for a, b in zip(many, again, strict=True):
        assert np.array_equal(a.position, b.position)
        assert np.array_equal(a.quaternion_wxyz, b.quaternion_wxyz)
    for one, among in zip(ones, many, strict=False):
        off = np.linalg.norm(one.position - among.position, axis=1)
        print(f"{engine}: {off[:8].max():.2g} m at first, {off.max():.2g} m at most")
        assert off[:8].max() < FIRST
        assert off.max() < GROWN[engine]


def test_tosses_of_like_length_go_together_and_stopping_leaves_the_rest():
    given = [Start(s.state, s.times[: 20 + 5 * (k % 3)]) for k, s in enumerate(starts(7))]
    assert list(batches(given, 3)) == [[0, 3, 6], [1, 4, 2], [5]]
    asked = []

    def stop():
        asked.append(True)
        return len(asked) > 1

    found = fly(given, CUBE, engine="bullet", config=EngineConfig(), dt=Fraction(1, 240),
                taken=(taken := []), together=3, stop=stop)  # fmt: skip
    taken[0].close()
    assert [f is not None for f in found] == [True, False, False, True, False, False, True]
    assert [len(f.position) for f in found if f is not None] == [20, 20, 20]


def test_a_cube_that_leaves_its_patch_is_told():
    given = starts(1)
    fast = TossState(*(getattr(given[0].state, k) for k in ("position", "quaternion_wxyz")),
                     np.array([9.0, 0, 1.0]), np.zeros(3), 0, 0, 0)  # fmt: skip
    (found,) = fly([Start(fast, given[0].times)], CUBE, engine="bullet", config=EngineConfig(),
                   dt=Fraction(1, 240), taken=(taken := []))  # fmt: skip
    taken[0].close()
    assert not found.stayed


def test_environments_are_for_like_free_bodies_alone():
    """Of Genesis, and without it."""
    scene, _ = scene_of([s.state for s in starts(3)], CUBE)
    groups = [[0], [1], [2], [3]]
    motion = [0, 2, 2, 2]
    made = Apart(scene, groups, motion)
    assert made.bodies == [1, 2, 3]
    assert made.groups == [[0], [1]]
    heavier = scene.bodies[2].model_copy(update={"mass": 1.0})
    unlike = scene.model_copy(update={"bodies": (*scene.bodies[:2], heavier, scene.bodies[3])})
    with pytest.raises(UserError, match="'cube_0' and 'cube_1' are not alike"):
        Apart(unlike, groups, motion)
    with pytest.raises(UserError, match="free bodies among static ones"):
        Apart(scene, [[0], [1, 2], [3]], motion)


def test_a_free_joint_s_turning_is_in_the_frame_of_its_body():
    half = np.sqrt(0.5)
    turned = (half, 0.0, 0.0, half)  # x of the body is y of the world
    put = (0.0, 0.0, 1.0), turned, (1.0, 2.0, 3.0), (0.0, 4.0, 5.0)
    assert joint_speeds(put) == pytest.approx([1, 2, 3, 4, 0, 5])
