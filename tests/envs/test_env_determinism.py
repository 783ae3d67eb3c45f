"""The same seed gives the same bits in any process."""

import os
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest

from wmeval.envs import ENVIRONMENTS
from wmeval.envs.policies import RandomPolicy, Task

_CODE = """
import hashlib, sys
import numpy as np
from wmeval.envs import ENVIRONMENTS, environment_class, short_name
from wmeval.envs.policies import RandomPolicy
from wmeval.envs.record import record
for name in map(short_name, ENVIRONMENTS):
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
    assert len({line.split()[2] for line in one}) == len(ENVIRONMENTS)


@pytest.mark.parametrize("env_id", ENVIRONMENTS)
def test_every_info_level_tells_of_the_same_states_and_vectors(env_id):
    """What is looked at, and when, changes nothing; level none makes its rows when asked."""
    envs = [
        gym.make(env_id, info_level=level, observation_mode="vector").unwrapped
        for level in ("none", "state", "full")
    ]
    vectors = [env.reset(seed=4)[0] for env in envs]
    assert all(np.array_equal(v, vectors[0]) for v in vectors)
    policy, row = RandomPolicy(scale=2.0), envs[0].row
    once = envs[0].one_shot_channels
    policy.begin(Task(env_id, row.channels, row.control_period, 120, 5, row.branches, once))
    for step in range(120):
        action = policy.act(step, None, {})
        results = [env.step(action) for env in envs]
        assert all(r[0].tobytes() == results[0][0].tobytes() for r in results)
        assert len({r[2] for r in results}) == 1
        if step % 11 == 0:
            assert len({env.log.state.sha256() for env in envs}) == 1
        if results[0][2]:
            break
    for env in envs:
        env.close()
    # The last state is there after the end, too.
    assert len({env.log.state.sha256() for env in envs}) == 1
    assert envs[0].log.state.substep.tolist() == [(step + 1) * envs[0].clock.substeps]


@pytest.mark.accept
def test_ten_seeds_of_each_scene_in_two_processes():
    one = digests(10, 480, PYTHONHASHSEED="1")
    assert one == digests(10, 480, PYTHONHASHSEED="2", OMP_NUM_THREADS="1")
    # Some scenes draw nothing from their seed; then only the actions tell seeds apart.
    assert len(one) == 10 * len(ENVIRONMENTS)
