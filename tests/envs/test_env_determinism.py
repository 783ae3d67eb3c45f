"""The same seed gives the same bits in any process."""

import os
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from random_play import digest, moves, random_actions

from wmeval.envs import ENVIRONMENTS, short_name
from wmeval.records import WorldLog

_CODE = """
import sys
import numpy as np
from random_play import digest, moves
from wmeval.envs import ENVIRONMENTS, environment_class, short_name
from wmeval.envs.policies import RandomPolicy
from wmeval.envs.record import record
for name in sys.argv[3:] or map(short_name, ENVIRONMENTS):
    env = environment_class(name)()
    for seed in range(int(sys.argv[1])):
        policy = RandomPolicy(scale=2.0, correlation=2.0, stop_after=int(sys.argv[2]))
        rollout = record(env, policy=policy, seed=seed)
        print(name, seed, rollout.sha256() + digest(rollout.log), moves(env, rollout.log))
    env.close()
"""

# Played without rows, and looked at now and then: a bit that differed once would show later, too.
_BRISK = """
import hashlib, sys
from random_play import digest, moves, random_actions
from wmeval.envs import environment_class
from wmeval.records import WorldLog
seeds, steps, name = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
env = environment_class(name)(
    info_level="none", observation_mode="vector", action_mode="flat", max_steps=steps
)
for seed in range(1, seeds):
    vector, _ = env.reset(seed=seed)
    # What falls without a hand may lie again before the first look.
    made, seen = hashlib.sha256(), [env.log]
    made.update(vector.tobytes())
    for step, action in enumerate(random_actions(env, steps)):
        vector, reward, terminated, truncated, _ = env.step(action)
        made.update(vector.tobytes() + repr((reward, terminated, truncated)).encode())
        if step % 20 == 19 or terminated or truncated:
            seen.append(env.log)
            made.update(digest(seen[-1]).encode())
        if terminated or truncated:
            break
    print(name, seed, made.hexdigest(), moves(env, WorldLog.concatenate(seen)))
env.close()
"""


def digests(seeds, steps, *names, code=_CODE, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code, str(seeds), str(steps), *names],
        capture_output=True, text=True, check=True, timeout=900,
        env={**os.environ, "PYTHONPATH": os.path.dirname(__file__), **environment},
    )  # fmt: skip
    return [line for line in done.stdout.splitlines() if len(line.split()) == 4]


def still(lines):
    """The episodes in which nothing moved."""
    return [line for line in lines if not line.endswith(" True")]


def test_two_processes_give_the_same_states():
    one = digests(1, 150, PYTHONHASHSEED="1")
    assert still(one) == []
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
    seen = []
    for step, action in enumerate(random_actions(envs[0], 120)):
        results = [env.step(action) for env in envs]
        seen.append(envs[2].log)
        assert all(r[0].tobytes() == results[0][0].tobytes() for r in results)
        assert len({r[2] for r in results}) == 1
        if step % 11 == 0:
            assert len({digest(env.log) for env in envs}) == 1
        if results[0][2] or results[0][3]:
            break
    assert moves(envs[2], WorldLog.concatenate(seen))
    for env in envs:
        env.close()
    # The last state is there after the end, too.
    assert len({digest(env.log) for env in envs}) == 1
    assert envs[0].log.state.substep.tolist() == [(step + 1) * envs[0].clock.substeps]


@pytest.mark.accept
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("name", [short_name(env_id) for env_id in ENVIRONMENTS])
def test_ten_seeds_in_two_processes(name):
    """The first with every state, contact and event that a record keeps."""
    first, second = {"PYTHONHASHSEED": "1"}, {"PYTHONHASHSEED": "2", "OMP_NUM_THREADS": "1"}
    one = digests(1, 240, name, **first) + digests(10, 240, name, code=_BRISK, **first)
    # A random hand may set billiard balls for eight seconds and never shoot.
    assert len(still(one)) <= 2
    two = digests(1, 240, name, **second) + digests(10, 240, name, code=_BRISK, **second)
    assert one == two
    assert len(one) == 10
