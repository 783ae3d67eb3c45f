"""The guide's converter as a user runs it: 20 CSV files of known spread, one baseline."""

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from wmeval.datasets.mocap import read_mocap
from wmeval.eval.metrics import gauge

GUIDE = Path(__file__).parents[2] / "docs/guide/mocap.md"
SIGMA = 0.4
"""Of the trials, per axis [mm]."""
TRIALS, FRAMES, RATE = 20, 361, 180


@pytest.fixture(scope="module")
def converted(tmp_path_factory):
    folder = tmp_path_factory.mktemp("mocap")
    (template,) = re.findall(r'```python title="convert\.py"\n(.*?)```', GUIDE.read_text(), re.S)
    (folder / "convert.py").write_text(template)
    (folder / "trials").mkdir()
    random = np.random.default_rng(3)
    t = np.arange(FRAMES) / RATE
    course = np.stack([900 * t, 0 * t, 400 - 80 * t**2], axis=1)
    turn = np.tile([math.cos(0.2), 0, math.sin(0.2), 0], (FRAMES, 1))
    for k in range(TRIALS):
        # A clock that did not begin at zero, as cameras' do.
        rows = np.column_stack([t + 12.5, course + random.normal(0, SIGMA, course.shape), turn])
        np.savetxt(
            folder / f"trials/{k:02d}.csv", rows, delimiter=",", comments="",
            header="time,x,y,z,qw,qx,qy,qz",
        )  # fmt: skip
    subprocess.run(
        [sys.executable, "convert.py", "trials", "cube.h5"], cwd=folder, check=True, timeout=120
    )
    return read_mocap(folder / "cube.h5"), course


@pytest.mark.parametrize(
    ("lines", "said"), [(None, "holds no trial"), ("x\n1\n2\n", "0.csv: 1 columns")]
)
def test_a_folder_without_whole_trials_makes_no_recording(tmp_path, lines, said):
    (template,) = re.findall(r'```python title="convert\.py"\n(.*?)```', GUIDE.read_text(), re.S)
    (tmp_path / "convert.py").write_text(template)
    (tmp_path / "trials").mkdir()
    if lines:
        (tmp_path / "trials/0.csv").write_text(lines)
    done = subprocess.run(
        [sys.executable, "convert.py", "trials", "cube.h5"],
        cwd=tmp_path, check=False, timeout=120, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 1
    assert said in done.stderr
    assert not (tmp_path / "cube.h5").exists()


def test_the_file_is_in_si_units_with_what_was_said_of_it(converted):
    mocap, course = converted
    assert len(mocap.trials) == TRIALS
    assert mocap.header.units.length == "m"
    assert mocap.header.uncertainty.position == pytest.approx(0.3e-3)
    first = mocap.trials[0]
    assert first.times[0] == 0
    assert first.positions[-1, 0] == pytest.approx(course[-1] / 1e3, abs=5 * SIGMA / 1e3)


def test_mean_within_trial_rmse_and_its_std_are_those_of_the_known_spread(converted):
    """RMSE sqrt(3 (n-1)/n) sigma of the 3-vector; its scatter from 3 N numbers of a trial."""
    mocap, course = converted
    trials = [gauge.generalised(t.positions, "position") for t in mocap.aligned(30)]
    real = gauge.baseline(trials)
    assert real.trials == TRIALS
    frames = len(real.mean)
    assert frames == 61
    exact = gauge.generalised(course[:: RATE // 30][:, None] / 1e3, "position")
    assert np.abs(real.mean - exact).max() < 4.5 * SIGMA / math.sqrt(TRIALS)
    spread = SIGMA * math.sqrt((TRIALS - 1) / TRIALS)
    dimension = real.mean.shape[1]
    assert real.rmse == pytest.approx(spread * math.sqrt(dimension), rel=0.03)
    scatter = real.rmse / math.sqrt(2 * dimension * frames)
    # The standard deviation of twenty is itself known to 16 %.
    assert real.rmse_std == pytest.approx(scatter, rel=0.5)
