"""Arithmetic of pairing, over random rates, strides, chunks and lengths."""

from fractions import Fraction as F
from itertools import pairwise

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from wmeval.clock import (
    CandidateClock,
    SceneClock,
    exact,
    nearest_earlier,
    period_of,
    substep_of,
)
from wmeval.errors import UserError

FPS = st.one_of(
    st.sampled_from(
        [F(24), F(16), F(25), F(30), F(60), F(10), F(12), F(24000, 1001), F(30000, 1001)]
    ),
    st.fractions(min_value=4, max_value=240, max_denominator=1001),
)
PERIODS = st.sampled_from([F(1, 60), F(1, 50), F(1, 30), F(1, 10), F(1, 240), F(2, 75)])
CLOCKS = st.builds(
    CandidateClock, fps=FPS, frames_per_action=st.integers(1, 16), chunk=st.integers(1, 6)
)
BLOCKS = st.integers(0, 300)


@given(CLOCKS, PERIODS, BLOCKS)
def test_weights_sum_to_the_block_and_are_positive(clock, period, b):
    weights = clock.weights_of_block(b, period)
    assert sum(w for _, w in weights) == clock.block_duration
    assert all(0 < w <= period for _, w in weights)
    indices = [i for i, _ in weights]
    assert indices == list(range(indices[0], indices[-1] + 1))


@given(CLOCKS, PERIODS, st.integers(1, 12))
def test_blocks_partition_time_actions_and_frames(clock, period, blocks):
    shares = {}
    frames = []
    for b in range(blocks):
        for i, w in clock.weights_of_block(b, period):
            shares[i] = shares.get(i, F(0)) + w
        frames.extend(clock.frames_of_block(b))
    assert frames == list(range(1, blocks * clock.frames_per_action + 1))
    # Every action is used up exactly, but the last, which the end of the last block may cut.
    last = max(shares)
    assert sorted(shares) == list(range(last + 1))
    assert all(shares[i] == period for i in range(last))
    assert sum(shares.values()) == blocks * clock.block_duration
    # The last frame of a block stands at the block's end.
    assert clock.frame_time(frames[-1]) == blocks * clock.block_duration


@given(CLOCKS, PERIODS, BLOCKS)
def test_weights_equal_a_measure_by_cutting_time(clock, period, b):
    """Brute force: cut time at every action's and block's edge and add up the pieces."""
    start, end = b * clock.block_duration, (b + 1) * clock.block_duration
    first = int(start // period)
    cuts = sorted({start, end, *(k * period for k in range(first, int(end // period) + 2))})
    pieces = {}
    for lo, hi in pairwise(cuts):
        if start <= lo and hi <= end:
            pieces[int(lo // period)] = pieces.get(int(lo // period), F(0)) + hi - lo
    assert dict(clock.weights_of_block(b, period)) == pieces


@given(CLOCKS, PERIODS, BLOCKS)
def test_a_block_is_sent_at_the_first_step_that_covers_it(clock, period, b):
    i = clock.step_of_block(b, period)
    assert (i + 1) * period >= (b + 1) * clock.block_duration
    assert i * period < (b + 1) * clock.block_duration
    assert clock.blocks_covered(i + 1, period) >= b + 1 > clock.blocks_covered(i, period)
    # No action that has not been taken is needed.
    assert max(j for j, _ in clock.weights_of_block(b, period)) <= i


@given(CLOCKS, PERIODS, st.integers(0, 2000))
def test_uncovered_blocks_and_unfilled_chunks_are_not_sent(clock, period, actions):
    covered, sent = clock.blocks_covered(actions, period), clock.blocks_sent(actions, period)
    assert covered * clock.block_duration <= actions * period
    assert (covered + 1) * clock.block_duration > actions * period
    assert sent % clock.chunk == 0
    assert 0 <= covered - sent < clock.chunk


@given(CLOCKS, PERIODS, st.integers(0, 5000))
def test_an_instant_belongs_to_one_block(clock, period, i):
    t = i * period
    b = clock.block_of_instant(t)
    assert b * clock.block_duration <= t < (b + 1) * clock.block_duration


@given(CLOCKS, st.sampled_from([F(1, 240), F(1, 480), F(1, 120)]), st.integers(0, 2000))
def test_the_reference_state_beside_a_frame_is_the_nearest(clock, dt, j):
    t, k = clock.frame_time(j), clock.state_of_frame(j, dt)
    assert abs(k * dt - t) <= dt / 2
    # A tie goes to the later state: floor(x + 1/2).
    assert k * dt - t != -dt / 2


@given(st.integers(1, 12), PERIODS, st.integers(0, 4000))
def test_a_substep_uses_the_action_that_holds_its_start(n, period, substep):
    clock = SceneClock(dt=period / n, control_period=period)
    action = clock.action_of_substep(substep)
    start = substep * clock.dt
    assert action * period <= start < (action + 1) * period
    assert clock.substeps == n


def test_the_worked_example():
    """dt 1/240, Ta 1/60, 24 fps, s 4, as the design states it."""
    scene = SceneClock(F(1, 240), F(1, 60))
    clock = CandidateClock(F(24), 4)
    assert clock.block_duration / scene.dt == 40
    assert clock.block_duration / scene.control_period == 10
    for j in range(125):
        assert clock.state_of_frame(j, scene.dt) == 10 * j
    for b in range(31):
        used = clock.weights_of_block(b, scene.control_period)
        assert [i for i, _ in used] == list(range(10 * b, 10 * b + 10))
        assert {w for _, w in used} == {F(1, 60)}
        assert clock.step_of_block(b, scene.control_period) == 10 * b + 9
    assert clock.blocks_covered(305, scene.control_period) == 30  # block 30 is not sent
    assert clock.blocks_covered(310, scene.control_period) == 31


@pytest.mark.parametrize(
    ("fps", "first", "second"),
    [
        # 16 fps, a frame lasts 3.75 actions; 25 fps, 2.4 actions.
        (16, [(0, 16), (1, 16), (2, 16), (3, 12)], [(3, 4), (4, 16), (5, 16), (6, 16), (7, 8)]),
        (25, [(0, 10), (1, 10), (2, 4)], [(2, 6), (3, 10), (4, 8)]),
    ],
)
def test_rates_that_do_not_divide_the_control_period(fps, first, second):
    unit = F(1, 960) if fps == 16 else F(1, 600)
    clock = CandidateClock(F(fps), 1)
    for b, expected in enumerate((first, second)):
        assert clock.weights_of_block(b, F(1, 60)) == tuple((i, n * unit) for i, n in expected)
    assert [clock.step_of_block(b, F(1, 60)) for b in range(4)] == (
        [3, 7, 11, 14] if fps == 16 else [2, 4, 7, 9]
    )
    assert [clock.state_of_frame(j, F(1, 240)) for j in range(4)] == (
        [0, 15, 30, 45] if fps == 16 else [0, 10, 19, 29]
    )


def test_exact_reads_decimals_as_they_print():
    assert exact(0.2) == F(1, 5)
    assert exact("24000/1001") == F(24000, 1001)
    assert exact(1 / 3) == F("0.3333333333333333")
    for bad in ("fast", float("nan"), float("inf"), None, "1/0"):
        with pytest.raises(ValueError, match="is not an exact number"):
            exact(bad)


@given(st.integers(1, 9999), st.integers(1, 10_000))
def test_a_float_is_the_period_or_the_divisor_that_was_meant(n, parts):
    period = period_of(1 / n)
    assert period == F(1, n)
    assert substep_of(float(F(1, n) / parts), period) == F(1, n * parts)
    assert substep_of(1 / n / parts, period) == F(1, n * parts)


def test_no_other_time_is_taken_for_a_divisor():
    assert period_of(0.2) == F(1, 5)
    assert period_of("0.0333333333333") == F("0.0333333333333")
    assert substep_of(0.00138888, F(1, 30)) == F("0.00138888")
    assert substep_of("0.001388888888888889", F(1, 30)) == F("0.001388888888888889")
    for dt, near in ((0.00138888, "1/720"), ("1/250", "1/240"), (0.5, "1/30")):
        with pytest.raises(UserError, match=f"whole n, as '{near}'$"):
            SceneClock(substep_of(dt, F(1, 30)), F(1, 30))
    with pytest.raises(UserError, match="must be > 0"):
        SceneClock(substep_of(-1 / 720, F(1, 30)), F(1, 30))


@given(st.fractions(F(1, 1000), 1), st.fractions(F(1, 1000), 1))
def test_a_substep_that_does_not_divide_the_period_is_refused(dt, period):
    assume((period / dt).denominator != 1)
    with pytest.raises(ValueError, match="does not divide the control period"):
        SceneClock(dt, period)


@pytest.mark.parametrize(
    ("fps", "stride", "chunk"), [(0, 1, 1), (24, 0, 1), (24, 1, 0), (-1, 1, 1)]
)
def test_a_candidate_clock_needs_positive_numbers(fps, stride, chunk):
    with pytest.raises(ValueError, match="a candidate needs"):
        CandidateClock(F(fps), stride, chunk)


@given(
    st.lists(st.fractions(0, 10, max_denominator=60), min_size=1, max_size=20, unique=True),
    st.fractions(-1, 11),
)
def test_nearest_of_two_equally_near_times_is_the_earlier(times, t):
    times = sorted(times)
    i = nearest_earlier(times, t)
    distance = abs(times[i] - t)
    assert all(abs(x - t) > distance for x in times[:i])
    assert all(abs(x - t) >= distance for x in times[i:])
