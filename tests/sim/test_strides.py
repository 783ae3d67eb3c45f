"""Gait: feet that stay where they stand, and joints that turn as people's do."""

from __future__ import annotations

import math

import numpy as np
import pytest

from wmeval.assets import mannequin as man
from wmeval.sim.drivers import strides
from wmeval.sim.drivers.strides import GaitState, Stride

S, G = 1.75, 9.81
NAMES = [b.name for b in man.SKELETON]
SPEEDS = (0.5, 0.8, 1.1, 1.4, 1.7, 2.0, 2.2, 2.6, 3.0, 4.0, 5.0)


def figure(phase, speed, stature=S):
    run = strides.run_share(speed, stature, G)
    state = GaitState(phase=phase, speed=speed, move=1.0, run=run)
    return dict(zip(NAMES, strides.pose(state, stature), strict=True))


def point(part, local):
    at, frame = part
    return np.array(at) + np.array(frame).T @ np.array(local)


def soles(parts, side, stature=S):
    """Heel, ball and tip of the toes on the sole."""
    foot, toes = parts[f"foot_{side}"], parts[f"toes_{side}"]
    low = -man.ANKLE * stature
    return {
        "heel": point(foot, (0, -man.HEEL_BACK * stature, low)),
        "ball": point(toes, (0, 0, -0.0115 * stature)),
        "tip": point(toes, (0, 0.030 * stature, -0.0115 * stature)),
    }


@pytest.mark.parametrize("stature", [1.2, 1.75, 1.95])
@pytest.mark.parametrize("speed", SPEEDS)
def test_the_foot_on_the_ground_does_not_slide(speed, stature):
    run = strides.run_share(speed, stature, G)
    length, duty = strides.stride_length(speed, run, stature), strides.duty(speed, run, stature)
    for side, offset in (("right", 0.0), ("left", 0.5)):
        places = {"heel": [], "ball": []}
        for k in range(200):
            phase = duty * k / 199
            at = soles(figure(phase - offset, speed, stature), side, stature)
            pitch = Stride(speed, run, stature).stance(phase).pitch
            # It stands on its heel at first, then on the whole sole, then on its ball.
            for name in ("heel",) if pitch > 0 else ("heel", "ball") if pitch == 0 else ("ball",):
                ground = at[name] + [0, phase * length, 0]
                places[name].append(ground)
        for name, points in places.items():
            if len(points) > 1:
                path = np.array(points)
                assert np.ptp(path[:, 1]) < 0.01, name
                assert np.abs(path[:, 2]).max() < 0.006, name


@pytest.mark.parametrize("speed", SPEEDS)
def test_feet_never_go_below_the_ground_and_swing_clear_of_it(speed):
    lowest, lifted = [], 0.0
    for k in range(200):
        for side in ("right", "left"):
            heights = [p[2] for p in soles(figure(k / 200, speed), side).values()]
            lowest.append(min(heights))
            lifted = max(lifted, min(heights))
    assert min(lowest) > -0.006
    assert lifted > 0.01
    run = strides.run_share(speed, S, G)
    both = np.array(lowest).reshape(200, 2).min(axis=1)
    # A runner flies twice a stride, a walker never.
    assert (both.max() > 0.02) == (strides.duty(speed, run, S) < 0.45)


@pytest.mark.parametrize("speed", SPEEDS)
def test_bones_keep_their_length_and_joints_stay_together(speed):
    for k in range(40):
        parts = figure(k / 40, speed)
        for bone in man.SKELETON:
            if bone.parent is None:
                continue
            joint = point(parts[bone.parent], [c * S for c in bone.joint])
            off = np.linalg.norm(joint - np.array(parts[bone.name][0]))
            # The foot is put where it has to be; the shank reaches it but for a stretched leg.
            assert off < 1e-9, bone.name
        for _, frame in parts.values():
            m = np.array(frame)
            assert np.allclose(m @ m.T, np.eye(3), atol=1e-9)
            assert np.linalg.det(m) == pytest.approx(1)


def sagittal(frame):
    return math.degrees(math.atan2(-frame[2][1], frame[2][2]))


def angles(speed):
    """Hip flexion, knee flexion and ankle dorsiflexion [deg] of the right leg, each 1 %."""
    out = []
    for k in range(100):
        parts = figure(k / 100, speed)
        thigh, shank, foot = (sagittal(parts[f"{n}_right"][1]) for n in ("thigh", "shank", "foot"))
        out.append((thigh, thigh - shank, foot - shank))
    return np.array(out)


# Normal walking at a free pace, every 10 % of the stride from heel strike on, read from the
# curves of Perry, Gait Analysis (1992), chapters 4 to 6, to some 3 degrees.
PERRY = {
    "hip": (25, 23, 14, 2, -8, -17, -10, 12, 25, 27),
    "knee": (5, 17, 16, 8, 5, 18, 40, 60, 50, 18),
    "ankle": (0, -4, 3, 7, 10, 6, -15, -6, 0, 0),
}


LIMITS = {"hip": (8.0, 0.92), "knee": (11.0, 0.84), "ankle": (9.0, 0.84)}
"""Root of the mean square [deg] and correlation."""


@pytest.mark.parametrize(("k", "name"), list(enumerate(PERRY)))
def test_joints_turn_as_people_walk(k, name):
    ours, theirs = angles(1.4)[::10, k], np.array(PERRY[name])
    worst, least = LIMITS[name]
    assert math.sqrt(float(np.mean((ours - theirs) ** 2))) < worst
    assert np.corrcoef(ours, theirs)[0, 1] > least


def test_stride_and_cadence_are_peoples():
    walk = strides.stride_length(1.4, 0.0, S)
    cadence = 2 * 60 * 1.4 / walk
    assert 105 < cadence < 118  # Winter (1991): 101-122 steps a minute at a natural pace
    assert strides.duty(1.4, 0.0, S) == pytest.approx(0.62, abs=0.02)
    run = strides.stride_length(3.0, 1.0, S)
    assert 60 * 3.0 / run == pytest.approx(84.8, abs=3.6)  # Lieberman et al. (2015), 3 m/s
    assert strides.duty(5.0, 1.0, S) / (5.0 / strides.stride_length(5.0, 1.0, S)) < 0.25
    # Walking gives way to running around a Froude number of one half.
    half = math.sqrt(0.5 * G * man.HIP * S)
    assert 0.0 < strides.run_share(half, S, G) < 0.5
    assert strides.run_share(1.9, S, G) == 0.0
    assert strides.run_share(3.0, S, G) == 1.0


def test_the_pelvis_vaults_in_walking_and_bounces_in_running():
    walk, run = Stride(1.4, 0.0, S), Stride(4.0, 1.0, S)
    # Mid-stance of the right foot.
    assert walk.pelvis(0.3) > walk.pelvis(0.05) + 0.025
    assert run.pelvis(0.5 * run.duty) < run.pelvis(0.5 * run.duty + 0.25) - 0.03
    # About 4 to 5 cm up and down in walking (Perry 1992).
    heights = [walk.pelvis(k / 50) for k in range(50)]
    assert 0.025 < max(heights) - min(heights) < 0.055


def test_arms_swing_against_the_legs():
    swing = []
    for k in range(50):
        parts = figure(k / 50, 1.4)
        hand = point(parts["hand_right"], (0, 0, -0.08))[1]
        swing.append((hand, parts["foot_right"][0][1], parts["foot_left"][0][1]))
    hand, own, other = np.array(swing).T
    assert np.corrcoef(hand, own)[0, 1] < -0.6
    assert np.corrcoef(hand, other)[0, 1] > 0.6


@pytest.mark.parametrize("phase", [0.0, 0.2, 0.6, 0.9])
def test_left_and_right_are_half_a_stride_apart(phase):
    one, two = figure(phase, 1.4), figure(phase + 0.5, 1.4)
    for bone in NAMES:
        other = bone.replace("right", "LEFT").replace("left", "right").replace("LEFT", "left")
        x, y, z = one[bone][0]
        assert (-x, y, z) == pytest.approx(two[other][0], abs=1e-9), bone


@pytest.mark.parametrize("rise", np.linspace(-1, 1, 9))
@pytest.mark.parametrize("run", [0.0, 1.0])
@pytest.mark.parametrize("air", [0.2, 0.7, 1.0])
def test_a_jumper_keeps_above_the_ground(rise, run, air):
    state = GaitState(phase=0.4, speed=5.0 * run, move=run, run=run, air=air, rise=float(rise))
    parts = dict(zip(NAMES, strides.pose(state, S), strict=True))
    for side in ("right", "left"):
        assert min(p[2] for p in soles(parts, side).values()) > -0.008


def test_a_crouch_bends_the_knees_and_leaves_the_feet():
    upright = dict(zip(NAMES, strides.pose(GaitState(), S), strict=True))
    low = dict(zip(NAMES, strides.pose(GaitState(crouch=0.12), S), strict=True))
    assert low["head"][0][2] < upright["head"][0][2] - 0.11
    for side in ("right", "left"):
        assert low[f"foot_{side}"][0] == pytest.approx(upright[f"foot_{side}"][0], abs=1e-3)
