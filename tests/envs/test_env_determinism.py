"""The same seed gives the same bits in any process."""

import os
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

_CODE = """
import hashlib, sys
import numpy as np
from wmeval.envs import environment_class
from wmeval.envs.policies import RandomPolicy
from wmeval.envs.record import record
for name in ("BallRoller", "BeamDomino", "MirrorRollingBall"):
    env = environment_class(name)()
    for seed in range(int(sys.argv[1])):
        policy = RandomPolicy(scale=2.0, correlation=2.0, stop_after=int(sys.argv[2]))
        print(name, seed, record(env, policy=policy, seed=seed).sha256())
    env.close()
"""


def digests(seeds, steps, **environment):
    done = subprocess.run(
        [sys.executable, "-c", _CODE, str(seeds), str(steps)],
        capture_output=True, text=True, check=True, timeout=900,
        env={**os.environ, **environment},
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if len(line.split()) == 3]


def test_two_processes_give_the_same_states():
    one = digests(1, 150, PYTHONHASHSEED="1")
    assert one == digests(1, 150, PYTHONHASHSEED="2", OMP_NUM_THREADS="1")
    assert len({line.split()[2] for line in one}) == 3


@pytest.mark.parametrize("name", ["BallRoller", "BeamDomino", "MirrorRollingBall"])
def test_every_info_level_tells_of_the_same_states_and_vectors(name):
    """What is looked at, and when, changes nothing; level none makes its rows when asked."""
    envs = [
        gym.make(f"WMEval/{name}-v0", info_level=level).unwrapped
        for level in ("none", "state", "full")
    ]
    vectors = [env.reset(seed=4)[0] for env in envs]
    assert all(np.array_equal(v, vectors[0]) for v in vectors)
    for step in range(120):
        action = np.array([1.0, 0.02 * (step % 7)], np.float32)
        vectors = [env.step(action)[0] for env in envs]
        assert all(v.tobytes() == vectors[0].tobytes() for v in vectors)
        if step % 11 == 0:
            assert len({env.log.state.sha256() for env in envs}) == 1
    for env in envs:
        env.close()
    # The last state is there after the end, too.
    assert len({env.log.state.sha256() for env in envs}) == 1
    assert envs[0].log.state.substep.tolist() == [480]


@pytest.mark.accept
def test_ten_seeds_of_each_scene_in_two_processes():
    one = digests(10, 480, PYTHONHASHSEED="1")
    assert one == digests(10, 480, PYTHONHASHSEED="2", OMP_NUM_THREADS="1")
    assert len(set(one)) == 30
