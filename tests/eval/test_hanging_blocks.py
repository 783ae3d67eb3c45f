"""The swing of foam and rubber blocks in turn, by what it must have in common with other means."""

import math

import numpy as np
import pytest
from scipy.linalg import eigh

from wmeval.eval.truths import blocks, soft

FOAM = {"young": 86410, "poisson": 0.23, "side": 0.05, "blocks": 2, "soft_mass": 0.0016,
        "rigid_mass": 0.1341}  # fmt: skip
SECONDS = 149 / 30


def test_it_comes_to_rest_where_the_exact_beam_does():
    made = blocks.block_swing(**FOAM, duration=SECONDS)
    assert made.rest == pytest.approx(soft.block_cantilever(**FOAM).drop, rel=5e-3)


def test_a_swing_from_level_is_in_the_mean_higher_than_rest():
    made = blocks.block_swing(**FOAM, duration=SECONDS)
    assert 0.94 < made.drop / made.rest < 0.97
    # Of a hundredth of the weight, none: small swings are even.
    light = blocks.block_swing(**FOAM, duration=SECONDS, g=0.0981)
    assert light.drop / light.rest == pytest.approx(1, abs=0.02)


def test_small_swings_are_about_where_it_hangs_and_not_about_level():
    """Stiff blocks hardly bend: two linear coordinates of one cube on a beam."""
    young, nu, side, mass = 1e9, 0.3, 0.05, 0.1
    stiff = blocks.block_swing(young, nu, side, 1, 0.0, mass, duration=0.01, rate=1e4)
    bend = young * side**4 / 12
    shear = soft.shear_coefficient(nu) * soft.shear_modulus(young, nu) * side**2
    # Of the beam's end under a force and a moment there; then of the cube's centre.
    end = np.array(
        [[side**3 / 3 / bend + side / shear, side**2 / 2 / bend], [side**2 / 2 / bend, side / bend]]
    )
    arm = np.array([[1, side / 2], [0, 1]])
    stiffness = np.linalg.inv(arm @ end @ arm.T)
    (low, _) = eigh(stiffness, np.diag([mass, mass * side**2 / 6]), eigvals_only=True)
    assert stiff.frequency == pytest.approx(math.sqrt(low) / (2 * math.pi), rel=1e-4)
    # Foam bends by a third of its length: about level it would be slower.
    level = blocks.block_swing(**FOAM, duration=SECONDS, g=1e-6).frequency
    assert 1.03 < blocks.block_swing(**FOAM, duration=SECONDS).frequency / level < 1.05


def test_forces_are_the_slope_of_the_energy():
    chain = blocks._Blocks(4000.0, 3.0, 1.0, 0.05, 2, 0.1, 0.2, 9.81)

    def energy(state):
        out, place, angle = 0.0, np.zeros(2), 0.0
        for x, y, turn in state.reshape(-1, 3):
            half = 0.025 * np.array([math.cos(turn), math.sin(turn)])
            chord = np.array([x, y]) - half - place
            lean = math.atan2(chord[1], chord[0])
            a, b = angle - lean, turn - lean
            out += 4000 / 2 * (np.hypot(*chord) - 0.05) ** 2 + 1.5 * (a * a + b * b) + a * b
            out -= 9.81 * (0.2 * y + 0.05 * (place[1] + y - half[1]))
            place, angle = np.array([x, y]) + half, turn
        return out

    state = chain.level() + np.array([0.002, 0.01, 0.2, 0.001, 0.05, 0.5])
    slopes = [(energy(state + d) - energy(state - d)) / 2e-6 for d in 1e-6 * np.eye(6)]
    assert chain.slope(state) == pytest.approx(slopes, abs=1e-6)


def test_steps_keep_the_energy_of_the_swing():
    finer = blocks.block_swing(**FOAM, duration=SECONDS, rate=60.0)
    made = blocks.block_swing(**FOAM, duration=SECONDS)
    assert finer.drop == pytest.approx(made.drop, rel=0.01)


def test_whole_swings_are_from_one_way_down_to_another():
    times = np.arange(90) / 30
    rows = blocks.whole_swings(1 - np.cos(2 * np.pi * 2.0 * times))
    assert rows.stop - rows.start == 75
    assert blocks.whole_swings(times) is None
