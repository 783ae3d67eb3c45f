"""LiquidContainer: the vector by independent code, the four profiles, the record, the pictures."""

import hashlib
import math
import os
import subprocess
import sys
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from wmeval.assets import bottle
from wmeval.datasets.rollout import read, write_hdf5
from wmeval.envs import environment_class, environment_row
from wmeval.envs.plans import load_plan, plans_of
from wmeval.envs.record import record
from wmeval.errors import UserError

SWAP = np.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]])
PROFILES = ("chirp_strafe", "impulse_decay", "rest", "step_hold")
TICK = Fraction(1, 12)


def make(**kwargs):
    return environment_class("LiquidContainer")(**kwargs)


def wild(steps=150):
    """Actions on all six channels."""
    t = np.arange(steps) / 60
    rows = [np.sin((0.7 + 0.4 * k) * 2 * np.pi * t + k) for k in range(6)]
    actions = np.stack(rows, axis=1)
    actions[:30, 2] = 1.0
    return np.clip(actions, -1, 1).astype(np.float32)


@cache
def play(plan):
    """Vectors and modal state of every control step of a plan."""
    env = make()
    card = load_plan("LiquidContainer", plan)
    vectors = [env.reset(seed=3, options=card.reset_options)[0]]
    modal = [env.log.state.modal]
    for row in card.actions(env.channels, env.clock.control_period).astype(np.float32):
        vectors.append(env.step(row)[0])
        modal.append(env.log.state.modal)
    env.close()
    return np.array(vectors), {k: np.concatenate([m[k] for m in modal]) for k in modal[0]}


def test_the_vector_is_that_of_the_states():
    env = make(info_level="full")
    seen = [env.reset(seed=2)[0]]
    actions = wild()
    states = [env.log.state]
    for action in actions:
        seen.append(env.step(action)[0])
        states.append(env.log.state)
    player = env.scene.index("bottle")
    env.close()
    for i in range(0, len(seen), 7):
        state, out = states[i], seen[i]
        w, x, y, z = state.quaternion_wxyz[-1, player]
        turn = Rotation.from_quat([x, y, z, w]).as_matrix()
        np.testing.assert_allclose(out[0:3], SWAP @ state.position[-1, player], atol=1e-6)
        np.testing.assert_allclose(out[3:6], SWAP @ turn[:, 1], atol=1e-6)
        np.testing.assert_allclose(out[6:9], SWAP @ turn[:, 2], atol=1e-6)
        np.testing.assert_allclose(out[9:12], SWAP @ state.linear_velocity[-1, player], atol=1e-6)
        np.testing.assert_allclose(
            out[12:15], -(SWAP @ state.angular_velocity[-1, player]), atol=1e-6
        )
        ey, ex, ez = Rotation.from_matrix(SWAP @ turn @ SWAP).as_euler("YXZ", degrees=True)
        one = Rotation.from_euler("YXZ", [ey, ex, ez], degrees=True)
        two = Rotation.from_euler("YXZ", 180 * out[[16, 15, 17]].astype(float), degrees=True)
        assert (one.inv() * two).magnitude() < 1e-5
        np.testing.assert_array_equal(out[18:24], actions[i - 1] if i else np.zeros(6))
    vectors = np.array(seen)
    assert (vectors >= env.observation_space.low).all()
    assert (vectors <= env.observation_space.high).all()
    # Nothing was trivially zero.
    assert (np.abs(vectors).max(axis=0) > 0.01).all()


@pytest.mark.parametrize(
    ("channel", "axis", "sign"), [(0, 2, 1), (1, 0, 1), (2, 1, 1), (3, 5, 1), (4, 3, 1), (5, 6, -1)]
)
def test_unity_signs_of_the_six_actions(channel, axis, sign):
    """Forward +z, right +x, up +y; pitch tips the cap forward, yaw turns right, roll tips left."""
    env = make()
    start = env.reset(seed=0)[0]
    action = np.zeros(6, np.float32)
    action[channel] = 1.0
    for _ in range(20):
        out = env.step(action)[0]
    env.close()
    if channel < 3:
        assert out[axis] - start[axis] > 0.03
    elif channel == 3:
        assert out[8] > 0.2  # up leans to +z
    elif channel == 4:
        assert out[3] - start[3] > 0.2  # forward turns to +x
    else:
        assert sign * out[axis] > 0.2


def test_the_four_profiles_are_the_papers():
    assert plans_of("LiquidContainer") == PROFILES
    row = environment_row("LiquidContainer")
    plans = {name: load_plan("LiquidContainer", name) for name in PROFILES}
    actions = {n: p.actions(row.channels, Fraction(1, 60)) for n, p in plans.items()}
    right = row.channels.index("right")
    for name, rows in actions.items():
        assert len(rows) == 19 * 60 <= row.max_steps
        assert not np.delete(rows, right, axis=1).any()
        # Piecewise constant on the 12 Hz grid, but for the pulse of 0.2 s (2.4 of its steps).
        if name != "impulse_decay":
            held = rows[:, right].reshape(-1, 5)
            assert (held == held[:, :1]).all()
        assert "fluid" in plans[name].dimensions
        assert len(plans[name].prompt.split()) > 60
    t = np.arange(19 * 60) / 60
    assert not actions["rest"].any()
    np.testing.assert_array_equal(actions["step_hold"][:, right], (t >= 2) & (t < 10))
    np.testing.assert_array_equal(actions["impulse_decay"][:, right], (t > 10.99) & (t < 11.19))


def test_the_chirp_sweeps_from_0_3_to_3_hertz():
    plan = load_plan("LiquidContainer", "chirp_strafe")
    right = plan.actions(("right",), TICK)[:, 0]
    assert set(np.unique(right)) == {-0.25, 0.25}
    turns = np.flatnonzero(np.diff(right)) + 1
    at, half = (turns[1:] + turns[:-1]) / 24, np.diff(turns) / 12
    expected = 0.5 / (0.3 + 2.7 / 19 * at)
    # Each half period is right to the step of 1/12 s, and all together are the sweep.
    assert np.abs(half - expected).max() <= 1 / 12 + 1e-9
    phase = 0.3 * turns / 12 + 2.7 / 38 * (turns / 12) ** 2
    cycles = 0.5 * np.arange(len(turns))
    assert np.abs((phase - cycles) - (phase - cycles).mean()).max() < 0.25
    assert 1.0 < half[0] < 1.7
    assert half[-1] == pytest.approx(1 / 6, abs=1 / 12)


def rise(plan):
    """Largest rise of mode 1 at the wall [m] at every control step of a plan."""
    return np.hypot(*play(plan)[1]["slosh_amplitude"][:, :2].T)


def test_the_chirp_is_played_as_commanded_and_resonates():
    vectors, _ = play("chirp_strafe")
    # The bound of the work volume takes no part: the way is that of the commands alone.
    push = 0.8 * load_plan("LiquidContainer", "chirp_strafe").actions(("right",), TICK)[:, 0]
    push = np.repeat(push, 5)
    speed = np.concatenate([[0.0], np.cumsum(push) / 60])
    way = np.concatenate([[0.0], np.cumsum(speed[:-1] / 60 + push / 7200)])
    np.testing.assert_allclose(vectors[:, 9], speed, atol=1e-6)
    np.testing.assert_allclose(vectors[:, 0], way, atol=1e-6)
    assert np.abs(way).max() < 0.6 - 0.002
    assert not np.ptp(vectors[:, [1, 2]], axis=0).any()
    # The sweep passes 2.39 Hz at t = 14.7 s; a mode that rings for 2.3 s answers a little later.
    wave = rise("chirp_strafe")
    peak = int(np.argmax(wave)) / 60
    assert 14.7 < peak < 14.7 + 2.3
    assert wave.max() > 2 * wave[: 12 * 60].max()
    assert wave[-30:].max() < 0.5 * wave.max()
    # It shakes the liquid more than any other profile does, over the clip.
    rms = {name: float(np.sqrt(np.mean(rise(name) ** 2))) for name in PROFILES}
    assert max(rms, key=rms.get) == "chirp_strafe"
    assert rms["chirp_strafe"] > 1.4 * rms["impulse_decay"] > 0


def test_a_held_strafe_ends_at_the_bound_as_its_plan_says():
    vectors, _ = play("step_hold")
    held = slice(2 * 60, 10 * 60)
    moving = np.flatnonzero(vectors[:, 9]) / 60
    assert moving[0] == pytest.approx(2.0, abs=0.02)
    assert moving[-1] == pytest.approx(4.43, abs=0.03)
    assert (vectors[held][1:, 19] == 1).all()
    assert vectors[-1, 0] == pytest.approx(0.6, abs=1e-6)
    doc = load_plan("LiquidContainer", "step_hold").doc
    assert "from t = 4.43 s on stands at the right bound while the strafe is still held" in doc


def test_rest_is_still_a_held_strafe_leans_the_surface_and_a_pulse_dies_away():
    played = {name: play(name) for name in ("rest", "step_hold", "impulse_decay")}
    modal = {name: seen for name, (_, seen) in played.items()}
    assert not modal["rest"]["slosh_amplitude"].any()
    assert not played["rest"][0][:, 9:15].any()
    for name, (vectors, _) in played.items():
        assert np.abs(vectors[:, 0]).max() < 0.6 + 1e-6, name
    tilt = -np.degrees(
        np.arctan2(modal["step_hold"]["surface_normal"][:, 0],
                   modal["step_hold"]["surface_normal"][:, 2])
    )  # fmt: skip
    steady = math.degrees(math.atan(0.8 / 9.81))
    assert tilt[120 + 5 : 120 + 73].mean() == pytest.approx(-steady, rel=0.2)
    assert tilt[120 + 78 : 120 + 146].mean() == pytest.approx(steady, rel=0.2)
    wave = modal["impulse_decay"]["slosh_amplitude"][:, 0]
    assert not wave[: 11 * 60].any()
    assert 0.015 < np.abs(wave).max() < 0.03
    assert np.abs(wave[-60:]).max() < 0.08 * np.abs(wave).max()


def test_what_is_recorded_comes_back_from_hdf5(tmp_path):
    env = make()
    plan = load_plan("LiquidContainer", "impulse_decay").model_copy(update={"duration": "1/2"})
    rollout = record(env, plan=plan, seed=1)
    env.close()
    write_hdf5(rollout, tmp_path / "one.h5")
    back = read(tmp_path / "one.h5")
    assert back.sha256() == rollout.sha256()
    assert set(back.log.state.modal) == {m.name for m in rollout.scene.modal}
    assert back.log.state.modal["meniscus"].shape[1] == 216
    assert back.scene == rollout.scene


_CODE = """
import hashlib, numpy as np
from wmeval.envs import environment_class
env = environment_class("LiquidContainer")()
env.reset(seed=5)
t = np.arange(90) / 60
for row in np.sin(np.outer(t, np.arange(1, 7)) * 3).astype(np.float32):
    env.step(row)
print(env.log.state.sha256(), hashlib.sha256(env.vector.tobytes()).hexdigest())
"""


def test_two_processes_and_a_snapshot_give_the_same_bits():
    lines = [
        subprocess.run(
            [sys.executable, "-c", _CODE], capture_output=True, text=True, check=True, timeout=300,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout.strip()
        for seed in ("1", "2")
    ]  # fmt: skip
    assert lines[0] == lines[1]
    env, other = make(), make()
    env.reset(seed=5)
    rows = np.sin(np.outer(np.arange(90) / 60, np.arange(1, 7)) * 3).astype(np.float32)
    for row in rows[:40]:
        env.step(row)
    other.set_state(env.get_state())
    for row in rows[40:]:
        env.step(row)
        other.step(row)
    digest = hashlib.sha256(env.vector.tobytes()).hexdigest()
    assert f"{env.log.state.sha256()} {digest}" == lines[0]
    assert other.log.state.sha256() == env.log.state.sha256()
    env.close()
    other.close()


def test_start_chooses_the_place():
    env = make()
    for start, x in (("left", -0.6), ("centre", 0.0), ("right", 0.6)):
        assert env.reset(seed=0, options={"start": start})[0][0] == np.float32(x)
    with pytest.raises(UserError, match="left"):
        env.reset(options={"start": "up"})
    env.close()


@pytest.mark.gl
@pytest.mark.parametrize("start", ["left", "centre", "right"])
def test_the_side_camera_frames_the_bottle_wherever_it_is_driven(start):
    env = make()
    env.reset(seed=0, options={"start": start})
    for k in range(2):
        seen = env.draw(("ids", "glass_ids"))
        rows, columns = np.nonzero((seen["glass_ids"] == 2) | np.isin(seen["ids"], [3, 4]))
        assert rows.min() > 3
        assert rows.max() < 348
        assert columns.min() > 3
        assert columns.max() < 636
        assert np.ptp(rows) > 0.45 * 352
        liquid = (seen["ids"] == 3).sum()
        assert liquid > 0.015 * 640 * 352
        for _ in range(100 if k == 0 else 0):
            env.step(np.array([0, 0, 1, 0, 0, 0], np.float32))
    assert env.vector[1] == pytest.approx(bottle.level() + 0.24, abs=1e-4)
    env.close()
