"""The same seed gives the same bits in any process."""

import os
import subprocess
import sys

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


@pytest.mark.accept
def test_ten_seeds_of_each_scene_in_two_processes():
    one = digests(10, 480, PYTHONHASHSEED="1")
    assert one == digests(10, 480, PYTHONHASHSEED="2", OMP_NUM_THREADS="1")
    assert len(set(one)) == 30
