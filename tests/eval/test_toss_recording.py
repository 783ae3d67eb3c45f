"""What a recording of tosses says of itself: made-up ones with known answers, and the real one."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from wmeval.datasets.mocap import FORMAT, Header, Mocap, make_trial, read_contactnets
from wmeval.datasets.mocap.contactnets import GRAVITY, HALF_WIDTH, RATE
from wmeval.errors import UserError
from wmeval.eval.fitting.recording import describe
from wmeval.eval.truths.real import TossSigma

REAL = Path(__file__).parents[3] / "shared/data/contactnets/contactnets_cube_tosses.npz"


def wxyz(rotation):
    return np.roll(rotation.as_quat(), 1, axis=-1)


def recorded(*, scale=1.0, noise=0.0, turn_noise=0.0, backward=False, count=60):
    """Flights of 14 frames that end at rest on a face, recorded by a ruler that is off."""
    rng = np.random.default_rng(2)
    header = Header(format=FORMAT, title="made", bodies=("cube",))
    trials = []
    for k in range(count):
        t = np.arange(20) / RATE
        p = np.array([0, 0, 0.6]) + t[:, None] * rng.normal(0, 0.5, 3)
        p[:, 2] -= GRAVITY * t**2 / 2
        r = Rotation.from_rotvec(t[:, None] * rng.normal(0, 5, 3)) * Rotation.random(random_state=k)
        p[14:] = [0.1, 0.2, HALF_WIDTH]
        face = Rotation.from_euler(
            "xyz", [[90, 0, 0], [0, 180, 0], [0, 0, 30]][k % 3], degrees=True
        )
        q = np.concatenate([wxyz(r[:14]), np.tile(wxyz(face), (6, 1))])
        v = np.gradient(p, t, axis=0)
        v[1:14] = np.diff(p[:14], axis=0) * RATE if backward else 0
        if not backward:
            v[:14] = (p[1] - p[0]) * RATE + [0, 0, GRAVITY / RATE / 2]
            v[:14, 2] -= GRAVITY * t[:14]
        else:
            v[0] = v[1] + [0, 0, GRAVITY / RATE]
        shaken = Rotation.from_rotvec(rng.normal(0, turn_noise, (20, 3))) * Rotation.from_quat(
            np.roll(q, -1, axis=1)
        )
        trials.append(
            make_trial(
                header, f"t{k}", t,
                {
                    "positions": (scale * (p + rng.normal(0, noise, p.shape)))[:, None],
                    "quaternions_wxyz": wxyz(shaken)[:, None],
                    "linear_velocities": scale * v[:, None],
                },
            )
        )  # fmt: skip
    return Mocap(header, tuple(trials))


def test_an_exact_recording_is_found_exact():
    found = describe(recorded())
    assert found.flights == 60
    assert found.gravity[0] == pytest.approx(GRAVITY, rel=1e-6)
    assert found.position_sigma < 1e-9
    assert found.rotation_sigma < 2e-3  # the second order of the turning about the middle
    assert found.length_scale == pytest.approx((1, 1), rel=1e-6)
    assert abs(found.velocity_lag) < 1e-6
    assert found.lowest == pytest.approx(0, abs=1e-9)
    seen = [h for h in found.rest_heights if math.isfinite(h)]
    assert len(seen) == 3
    assert seen == pytest.approx([HALF_WIDTH] * 3)


def test_a_short_ruler_and_noise_and_backward_differences_are_found():
    found = describe(recorded(scale=0.97, noise=1e-4, turn_noise=4e-3, backward=True))
    low, high = found.gravity[1:]
    assert low < 0.97 * GRAVITY < high
    assert found.length_scale[0] == pytest.approx(0.97, abs=0.01)
    assert found.length_scale[1] == pytest.approx(0.97, abs=1e-3)
    assert found.position_sigma == pytest.approx(0.97e-4, rel=0.1)
    assert found.rotation_sigma == pytest.approx(4e-3, rel=0.15)
    assert found.velocity_lag == pytest.approx(0.5 / RATE, rel=0.15)
    # A slope over six frames has sigma * rate / sqrt(17.5).
    assert found.linear_sigma == pytest.approx(0.97e-4 * RATE / math.sqrt(17.5), rel=0.1)


def test_too_few_flights_are_refused():
    short = recorded(count=1)
    with pytest.raises(UserError, match="fewer than two free flights"):
        describe(short)


@pytest.mark.skipif(not REAL.is_file(), reason="the recording is not here")
def test_the_real_recording_s_lengths_are_two_percent_short_by_two_rulers():
    """Free fall and rest on six faces agree; corners dip under the board as it touches down."""
    found = describe(read_contactnets(REAL))
    assert found.flights > 350
    assert 9.58 < found.gravity[1] < 9.6 < found.gravity[2] < 9.62
    by_fall, by_rest = found.length_scale
    assert by_fall == pytest.approx(0.979, abs=0.006)
    assert by_rest == pytest.approx(0.978, abs=0.003)
    heights = np.array(found.rest_heights)
    assert np.isfinite(heights).all()
    assert np.ptp(heights) < 0.4e-3
    assert -0.0065 < found.lowest < found.median_lowest < -0.003
    assert found.velocity_lag == pytest.approx(0.5 / RATE, rel=0.1)


@pytest.mark.skipif(not REAL.is_file(), reason="the recording is not here")
def test_the_declared_noise_of_the_starts_covers_what_is_measured():
    """Random errors lie below it, and so does the ruler's share of a usual speed."""
    mocap = read_contactnets(REAL)
    found, sigma = describe(mocap), TossSigma()
    assert found.position_sigma < sigma.position
    assert found.rotation_sigma < sigma.rotation
    assert found.linear_sigma < sigma.linear
    assert found.angular_sigma < sigma.angular
    speeds = [np.linalg.norm(t.linear_velocities[0, 0]) for t in mocap.trials]
    ruler = abs(1 - found.length_scale[1]) * float(np.median(speeds))
    assert 0.5 * sigma.linear < ruler / math.sqrt(3) < 2 * sigma.linear
