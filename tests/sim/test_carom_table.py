"""Whole shots: closed forms, conservation, frozen balls, reversal, and a thousand shots."""

import hashlib
import math
import random
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from carom_tables import (
    ROLL,
    SLIDE,
    G,
    M,
    R,
    digest,
    energy,
    events,
    random_shot,
    rolling,
    shot,
    smooth,
    table,
    table_spec,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from wmeval.sim.engines.carom_contacts import first_pair_contact
from wmeval.sim.engines.carom_motion import BallState, begin

D = 2 * R


def cut_setup(angle, distance=0.3):
    """A ball at the origin, and where one along x must wait to be cut by an angle."""
    return BallState(distance + D * math.cos(angle), D * math.sin(angle))


def angle_between(a, b):
    return math.acos((a.vx * b.vx + a.vy * b.vy) / math.hypot(a.vx, a.vy) / math.hypot(b.vx, b.vy))


def bare(**changes):
    """Published cloth, perfect balls: what the textbook rules assume."""
    return table_spec(2, **{"e": 1.0, "friction": 0.0, "half": (9, 9), **changes})


# --- rules of the game --------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [10, 30, 48.6, 70])
def test_ninety_degree_rule_for_a_stun_shot(degrees):
    """Sliding without spin when they meet: backspin that the cloth has just used up."""
    speed, distance = 2.0, 0.25
    # Slip falls by 7/2 of the speed lost; the spin is gone when w R = 0.
    v = math.sqrt(speed**2 - 2 * SLIDE * G * distance)
    lost = speed - v
    first = shot(0, 0, speed, 0.0, follow=-lost / speed)
    angle = math.radians(degrees)
    world = table(bare(), first, cut_setup(angle, distance))
    world.advance(world.impacts[0].time if world.impacts else (speed - v) / (SLIDE * G) - 1e-9)
    assert abs(world.state(0, world.now).wy) < 1e-4
    while not world.impacts:
        world.advance(world.next_event)
    cue, struck = (world.state(i, world.now) for i in (0, 1))
    assert math.degrees(angle_between(cue, struck)) == pytest.approx(90.0, abs=1e-6)


@pytest.mark.parametrize("degrees", [5, 14.5, 30, 48.6, 65])
def test_natural_angle_rule_for_a_rolling_ball(degrees):
    """tan(deflection) = sin phi cos phi / (sin^2 phi + 2/5): about 30 degrees over a wide range."""
    phi = math.radians(degrees)
    world = table(bare(), rolling(0, 0, 2.0, 0.0), cut_setup(phi))
    for _ in events(world):
        cue = world.phases(0)[-1]
        if world.impacts and cue.kind == 2:  # rolling again
            break
    s = cue.state
    expected = math.atan(math.sin(phi) * math.cos(phi) / (math.sin(phi) ** 2 + 0.4))
    assert math.atan2(-s.vy, s.vx) == pytest.approx(expected, abs=1e-9)
    if 14 < degrees < 49:
        assert 26 < math.degrees(expected) < 34


@pytest.mark.parametrize(("follow", "sign"), [(0.4, 1), (0.5, 1), (-0.5, -1)])
def test_follow_and_draw_distances(follow, sign):
    """Struck full from touching distance: it stands, then its spin drives it.

    From rest with a surface speed u it reaches 2/7 u within u_f^2 / (2 mu_s g), then rolls out.
    """
    speed = 1.5
    world = table(bare(), shot(0, 0, speed, 0.0, follow=follow), BallState(D, 0.0))
    world.settle()
    final = 2 / 7 * 2.5 * follow * speed
    expected = final**2 / (2 * SLIDE * G) + final**2 / (2 * ROLL * G)
    assert world.state(0, world.now).x == pytest.approx(sign * expected, rel=1e-9)


def test_elastic_pairs_exchange_velocities_and_a_stun_ball_stops_dead():
    world = table(bare(), shot(0, 0, 1.0, 0.0), BallState(D, 0.0))
    world.advance(0.0)
    assert world.state(0, 0.0).vx == pytest.approx(0.0, abs=1e-15)
    assert world.state(1, 0.0).vx == pytest.approx(1.0)


# --- conservation -------------------------------------------------------------------------------


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**32))
def test_energy_never_rises_and_momentum_is_kept_in_every_impact(seed):
    world = table(table_spec(), *random_shot(random.Random(seed)))
    last, noted = energy(world), 0
    for t in events(world):
        now = energy(world)
        assert now <= last + 1e-13
        last = now
        for impact in world.impacts[noted:]:
            assert impact.time == t
            assert impact.normal_impulse > 0
        noted = len(world.impacts)
    assert last == 0.0
    # Between events, too.
    times = [min(world.now * k / 300, world.now) for k in range(301)]
    energies = [energy(world, t) for t in times]
    assert all(b <= a + 1e-13 for a, b in pairwise(energies))


def test_momentum_changes_by_the_recorded_impulses():
    """Of a pair that meets far from everything, on a smooth cloth."""
    spec = table_spec(2, slide=0.0, roll=0.0, spin=0.0, half=(50, 50))
    world = table(spec, shot(0, 0, 3.0, 0.05, side=0.3), BallState(0.9, 0.02))
    before = world.mechanics(0.0)
    world.advance(1.0)
    (impact,) = world.impacts
    after = world.mechanics(1.0)
    for k in (0, 1):
        total = impact.normal_impulse * impact.normal[k] + impact.tangential_impulse[k]
        gained = after[0].momentum[k] - before[0].momentum[k]
        assert gained == pytest.approx(total, abs=1e-15)
        assert after[1].momentum[k] == pytest.approx(-gained, abs=1e-15)


@pytest.mark.parametrize("seed", range(8))
def test_a_frictionless_shot_runs_backwards_to_its_start(seed):
    rng = random.Random(seed)
    balls = random_shot(rng)
    first = replace(balls[0], vx=balls[0].vx / 3, vy=balls[0].vy / 3)
    world = table(smooth(), first, *balls[1:])
    world.advance(1.2)
    for i in range(3):
        s = world.state(i, 1.2)
        world.put(i, replace(s, vx=-s.vx, vy=-s.vy, wx=-s.wx, wy=-s.wy, wz=-s.wz))
    hits = len(world.impacts)
    assert energy(world) == pytest.approx(energy(world, 0.0), rel=1e-13)
    world.advance(2.4)
    assert len(world.impacts) == 2 * hits
    for i, s in enumerate((first, *balls[1:])):
        end = world.state(i, 2.4)
        assert math.hypot(end.x - s.x, end.y - s.y) < 1e-9
        assert math.hypot(end.vx + s.vx, end.vy + s.vy) < 1e-9


# --- frozen and simultaneous --------------------------------------------------------------------


def test_a_row_of_frozen_balls_passes_the_blow_on():
    spec = smooth(4, half=(9, 9))
    balls = [BallState(0.5 + D * k, 0.0) for k in range(3)]
    world = table(spec, shot(0, 0, 1.0, 0.0), *balls)
    world.advance(1.0)
    speeds = [world.state(i, 1.0).vx for i in range(4)]
    assert speeds == pytest.approx([0, 0, 0, 1], abs=1e-12)


def test_a_frozen_ball_leaves_along_the_line_of_centres():
    world = table(bare(), shot(0, 0, 2.0, 0.0), BallState(D * math.cos(0.6), D * math.sin(0.6)))
    world.advance(0.05)
    s = world.state(1, 0.05)
    assert math.atan2(s.vy, s.vx) == pytest.approx(0.6)
    assert world.impacts[0].time == 0.0


def test_frozen_balls_that_nobody_touches_stay():
    spec = table_spec(4)
    others = [BallState(0.4, 0.1), BallState(0.4 + D, 0.1), BallState(0.4, 0.1 + D)]
    world = table(spec, shot(-1, -0.3, 0.5, math.pi), *others)
    world.settle()
    for i in (1, 2, 3):
        assert world.state(i, world.now) == others[i - 1]
    assert all(i.b is None for i in world.impacts)


def test_two_balls_hit_at_once_leave_symmetrically_to_the_end():
    c, s = math.cos(math.pi / 6), math.sin(math.pi / 6)
    world = table(
        table_spec(),
        rolling(-0.6, 0.0, 2.5, 0.0),
        BallState(D * c, D * s),
        BallState(D * c, -D * s),
    )
    while not world.impacts:
        world.advance(world.next_event)
    one, two = (world.state(i, world.now) for i in (1, 2))
    assert len(world.impacts) == 2
    assert one.vx == pytest.approx(two.vx, rel=1e-12)
    assert one.vy == pytest.approx(-two.vy, rel=1e-12)
    assert abs(world.state(0, world.now).vy) < 1e-12
    cue = world.state(0, world.now)
    expected = 2.5 * M  # rolling costs a little on the way
    assert sum(M * world.state(i, world.now).vx for i in range(3)) == pytest.approx(
        expected, rel=0.02
    )
    assert cue.vx < one.vx
    world.settle()
    a, b = (world.state(i, world.now) for i in (1, 2))
    assert (a.x, a.y) == pytest.approx((b.x, -b.y), abs=1e-7)


def test_a_ball_that_spins_against_a_frozen_one_at_a_cushion_makes_finitely_many_bounces():
    """Follow presses the cue ball on; the object ball has nowhere to go."""
    reach = 1.42 - R * math.sqrt(1 - ((0.037 - R) / R) ** 2)
    spec = table_spec(2)
    world = table(spec, shot(0.8, 0, 3.0, 0.0, follow=0.5), BallState(reach, 0.0))
    last, gap, count = energy(world), 1.0, 0
    for _ in events(world):
        count += 1
        now = energy(world)
        assert now <= last + 1e-13
        last, gap = now, min(gap, world.gap(0, 1))
    assert world.at_rest
    assert gap > -1e-10
    assert count < 5000


def test_a_pressed_pair_at_rest_bounces_within_a_contact_time():
    """Elastic balls, rolling cue ball, a row of two against a wall: touching with no approach."""
    reach = 1.42 - R * math.sqrt(1 - ((0.037 - R) / R) ** 2)
    spec = table_spec(3, e=1.0, friction=0.0, cushion_e=0.0)
    world = table(
        spec,
        BallState(reach - 2 * D, 0.0, wy=200.0),
        BallState(reach - D, 0.0),
        BallState(reach, 0),
    )
    least, count = 1.0, 0
    last = energy(world)
    for _ in events(world):
        count += 1
        least = min(least, world.gap(0, 1), world.gap(1, 2))
        now = energy(world)
        assert now <= last + 1e-13
        last = now
    assert least > -1e-9
    assert world.at_rest
    assert count < 20_000


def test_a_ball_driven_into_a_cushion_by_its_spin_stays_on_the_table():
    reach = 0.71 - R * math.sqrt(1 - ((0.037 - R) / R) ** 2)
    world = table(table_spec(1), BallState(0.0, -reach, wx=150.0))
    for _ in events(world):
        assert world.state(0, world.now).y >= -reach - 1e-10
    assert world.at_rest
    assert world.impacts


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**32))
def test_balls_that_touch_each_other_and_cushions_never_overlap_and_come_to_rest(seed):
    """Any frozen cluster, in a corner or on a cushion or free, struck hard with any spin."""
    rng = random.Random(seed)
    sine = (0.037 - R) / R
    reach = (1.42 - R * math.sqrt(1 - sine**2), 0.71 - R * math.sqrt(1 - sine**2))
    turn = rng.choice([0.0, math.pi / 2, rng.uniform(-math.pi, math.pi)])
    x = rng.choice([reach[0], reach[0] - D, 0.0])
    y = rng.choice([reach[1], reach[1] - D, 0.0])
    second = (x - D * abs(math.cos(turn)), y - D * abs(math.sin(turn)))
    third = (second[0] - D * rng.choice([1.0, 0.5]), second[1] - D * 0.9)
    first = (x - rng.uniform(0.1, 0.8), y - rng.uniform(0.1, 0.4))
    if min(math.dist(first, p) for p in ((x, y), second, third)) < D:
        return
    if math.dist((x, y), third) < D or math.dist(second, third) < D:
        return
    aim = math.atan2(y - first[1], x - first[0]) + rng.gauss(0, 0.05)
    cue = shot(*first, rng.uniform(0.3, 6.0), aim, rng.uniform(-0.4, 0.4), rng.uniform(-0.5, 0.5))
    world = table(table_spec(), cue, *(BallState(*p) for p in ((x, y), second, third)[:2]))
    last = energy(world)
    for _ in events(world, 50_000):
        assert world.gap(0, 1) > -1e-9
        assert world.gap(0, 2) > -1e-9
        assert world.gap(1, 2) > -1e-9
        now = energy(world)
        assert now <= last + 1e-13
        last = now
    for i in range(3):
        s = world.state(i, world.now)
        assert abs(s.x) < reach[0] + 1e-9
        assert abs(s.y) < reach[1] + 1e-9


def test_contacts_of_moving_balls_are_the_companion_matrix_roots():
    """Two sliding balls: the first root of the quartic, by its companion matrix."""
    rng = np.random.default_rng(7)
    cloth = table_spec(1).cloths[0]
    found = missed = 0
    while found < 150:
        p, v = rng.uniform(-0.5, 0.5, (2, 2)), rng.uniform(-2, 2, (2, 2))
        w = rng.uniform(-80, 80, (2, 2))
        if np.linalg.norm(p[0] - p[1]) < D:
            continue
        a, b = (begin(BallState(*p[i], *v[i], *w[i]), 0.0, cloth) for i in (0, 1))
        horizon = min(a.duration, b.duration)
        d = np.array(
            [
                [a.state.x - b.state.x, a.state.vx - b.state.vx, (a.ax - b.ax) / 2],
                [a.state.y - b.state.y, a.state.vy - b.state.vy, (a.ay - b.ay) / 2],
            ]
        )
        square = sum(np.polynomial.polynomial.polymul(x, x) for x in d)
        square[0] -= D * D
        roots = np.roots(square[::-1])
        real = np.sort(roots[np.abs(roots.imag) < 1e-9].real)
        real = real[(real > 0) & (real <= horizon)]
        t = first_pair_contact(a, b, 0.0, D)
        if len(real):
            assert t == pytest.approx(real[0], abs=1e-9)
            found += 1
        else:
            assert t is None
            missed += 1
    assert missed > 50


@pytest.mark.parametrize("graze", [1e-4, 1e-7, 1e-10])
def test_a_graze_is_a_hit_and_a_near_miss_is_none(graze):
    for sign, hits in ((1, 1), (-1, 0)):
        spec = table_spec(2, half=(9, 9))
        for angle in (0.0, 0.7, 2.9):
            across = D - sign * graze
            other = BallState(
                0.4 * math.cos(angle) - across * math.sin(angle),
                0.4 * math.sin(angle) + across * math.cos(angle),
            )
            world = table(spec, shot(0, 0, 2.0, angle), other)
            world.settle()
            assert sum(i.b is not None for i in world.impacts) == hits


# --- any time, any rate -------------------------------------------------------------------------


def test_state_is_known_at_any_time():
    balls = random_shot(random.Random(11))
    world, other = table(table_spec(), *balls), table(table_spec(), *balls)
    world.settle()
    for t in (0.0, 1e-9, 0.1234567, 1.0, world.now / 3, world.now):
        other.advance(t) if t > other.now else None
        for i in range(3):
            assert world.state(i, t) == other.state(i, t)
        assert world.mechanics(t) == other.mechanics(t)
    with pytest.raises(ValueError, match="the table knows 0 to"):
        world.state(0, world.now + 1)
    with pytest.raises(ValueError, match="already at"):
        world.advance(0.5)


def test_looking_changes_no_bit():
    for seed in range(10):
        balls = random_shot(random.Random(seed))
        results = set()
        for step in (0.0, 1 / 30, 1 / 240, 0.0137):
            world = table(table_spec(), *balls)
            t = 0.0
            while step and not world.at_rest:
                t += step
                world.advance(t)
                world.rotation(seed % 3)
            world.settle()
            world.advance(60.0)
            results.add(digest(world))
        assert len(results) == 1


# --- many ---------------------------------------------------------------------------------------


def play_many(count, check=True):
    """Random shots to rest; every bit of each."""
    bits = []
    for seed in range(count):
        world = table(table_spec(), *random_shot(random.Random(seed)))
        for _ in events(world):
            if check:
                for a, b in ((0, 1), (0, 2), (1, 2)):
                    assert world.gap(a, b) > -1e-9
        assert world.at_rest
        if check:
            for i in range(3):
                s = world.state(i, world.now)
                assert math.isfinite(s.x + s.y)
                assert abs(s.x) < 1.42 - 0.9 * R
                assert abs(s.y) < 0.71 - 0.9 * R
        bits.append(digest(world))
    return bits


_OTHER = """
import hashlib, sys
sys.path.insert(0, {folder!r})
from test_carom_table import play_many
print(hashlib.sha256(repr(play_many({count}, check=False)).encode()).hexdigest())
"""


def alike_elsewhere(count):
    folder = str(Path(__file__).parent)
    with subprocess.Popen(
        [sys.executable, "-c", _OTHER.format(folder=folder, count=count)],
        stdout=subprocess.PIPE, text=True, env={"PYTHONHASHSEED": "7"},
    ) as other:  # fmt: skip
        here = hashlib.sha256(repr(play_many(count)).encode()).hexdigest()
        return other.communicate(timeout=250)[0].strip() == here


def test_random_shots_end_well_and_bit_identically_in_another_process():
    assert alike_elsewhere(80)


@pytest.mark.accept
def test_a_thousand_random_shots_end_well_and_bit_identically_in_another_process():
    assert alike_elsewhere(1000)
