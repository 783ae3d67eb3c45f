"""Worlds that are made again give back the memory of those before."""

import subprocess
import sys

import pytest

_CODE = """
import sys
from wmeval.envs import environment_class
env = environment_class(sys.argv[1])(info_level="none", observation_mode="vector")
for seed in range(12):
    env.reset(seed=seed)
    with open("/proc/self/statm") as file:
        print(int(file.read().split()[1]) * 4096 / 2**20)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize("name", ["SunRisesAndSets", "ChessBoard", "WanderingGarden"])
def test_resets_keep_no_memory(name):
    """PyBullet never lets go of the sequences that hold a mesh, so it gets the same ones again."""
    done = subprocess.run(
        [sys.executable, "-c", _CODE, name], capture_output=True, text=True, check=True, timeout=120
    )
    used = [float(line) for line in done.stdout.split()]
    assert len(used) == 12
    assert used[-1] - used[3] < 10, f"{name}: memory [MB] after each reset {used}"
