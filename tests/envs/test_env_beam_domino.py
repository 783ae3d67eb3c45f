"""BeamDomino: three shapes for the right reasons, whatever the substep."""

import numpy as np
import pytest

from wmeval.envs import environment_class
from wmeval.envs.beam_domino import RELEASE_NS, START_BANDS
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record
from wmeval.errors import UserError

SHAPES = tuple(START_BANDS)
SEEDS = range(5)


def play(options, *, plan="canonical", max_steps=None, seed=0):
    env = environment_class("BeamDomino")()
    plan = load_plan("BeamDomino", plan)
    rollout = record(env, plan=plan, seed=seed, options=options, max_steps=max_steps)
    env.close()
    return rollout


def shape_of(shape, seed, dt):
    """Class, fallen fraction and the dominoes' order, without recording."""
    env = environment_class("BeamDomino")(dt=dt, info_level="state")
    actions = load_plan("BeamDomino", shape).actions(env.channels, env.clock.control_period)
    env.reset(seed=seed, options={"shape": shape})
    for action in actions.astype(np.float32):
        observation, *_, info = env.step(action)
    falls = [e.body_a for e in env.events if e.kind == "fall" and e.body_a.startswith("domino")]
    env.close()
    return info["shape"], float(observation[56]), falls


def falls_of(rollout):
    return {
        e.body_a: e.time
        for e in rollout.log.events
        if e.kind == "fall" and e.body_a.startswith("domino")
    }


def test_small_changes_of_the_start_make_the_shapes():
    """What decides the class happens in the first two and a half seconds."""
    for shape in SHAPES:
        for seed in SEEDS:
            rollout = play({"shape": shape}, plan=shape, max_steps=150, seed=seed)
            assert rollout.metadata["shape"] == shape, seed


@pytest.mark.parametrize("shape", SHAPES)
def test_three_shapes(shape):
    found, fraction, falls = shape_of(shape, 0, "1/240")
    assert (found, fraction) == (shape, 1.0)
    assert falls == sorted(falls)


@pytest.mark.accept
@pytest.mark.parametrize("dt", ["1/240", "1/480", "1/960"])
@pytest.mark.parametrize("shape", SHAPES)
def test_class_of_five_seeds_does_not_depend_on_the_substep(shape, dt):
    for seed in SEEDS:
        found, fraction, falls = shape_of(shape, seed, dt)
        assert (found, fraction) == (shape, 1.0), seed
        assert falls == sorted(falls), seed


def test_roof_ball_is_the_cause_of_the_canonical_cascade():
    base = play({"x0": 0.0})
    without = play({"x0": 0.0, "intervention": "no_roof_ball"})
    pinned = play({"x0": 0.0, "intervention": "slab_pinned"})
    assert len(falls_of(base)) == 20
    assert falls_of(without) == {}
    assert falls_of(pinned) == {}
    # The slab falls without the ball on its roof, too: the chain is cut after TOPPLE's cause.
    kinds = {e.kind for e in without.log.events}
    assert "collapse" in kinds
    assert "collapse" not in {e.kind for e in pinned.log.events}
    slab = pinned.scene.index("slab")
    assert np.ptp(pinned.log.state.position[:, slab], axis=0).max() == 0.0
    # In the canonical run the floor ball touches no domino.
    pairs = {frozenset((e.body_a, e.body_b)) for e in base.log.events if e.kind == "contact"}
    assert frozenset(("floor_ball", "domino_00")) not in pairs
    assert frozenset(("roof_ball", "domino_00")) in pairs


@pytest.mark.parametrize("shape", ["glancing", "direct_strike"])
def test_other_shapes_owe_nothing_to_the_roof_ball(shape):
    base, without = (
        falls_of(play({"shape": shape, "intervention": i}, plan=shape, max_steps=330))
        for i in ("none", "no_roof_ball")
    )
    assert len(base) == 20
    assert base == without


def test_stages_come_in_order_at_the_measured_times():
    rollout = play({"x0": 0.0})
    first = {e.kind: e.time for e in reversed(rollout.log.events)}
    assert first["rolling"] == 0.0
    assert first["impact"] == pytest.approx(1.50, abs=0.05)
    assert first["collapse"] == pytest.approx(2.12, abs=0.1)
    assert first["roof_release"] == pytest.approx(2.43, abs=0.1)
    assert first["impact"] < first["collapse"] < first["topple"] < first["cascade"]
    assert rollout.metadata["shape"] == "canonical"


def test_legs_hold_below_the_threshold_and_give_way_above():
    """A hit of m v_n just below 76 N s leaves everything standing."""
    mass, distance = 12.0, 6.0 - 0.5 - 0.25
    speed = RELEASE_NS / mass
    # A rolling ball under a force F: a = F / (m (1 + 2/5)).
    for factor, falls in ((0.93, False), (1.07, True)):
        push = (factor * speed) ** 2 / (2 * distance) * mass * 1.4 / 80.0
        env = environment_class("BeamDomino")(info_level="state")
        env.reset(seed=0, options={"x0": 0.0})
        action = np.array([push, 0], np.float32)
        for _ in range(240):
            env.step(action)
        kinds = {e.kind for e in env.events}
        assert "impact" in kinds
        assert ("collapse" in kinds) == falls
        env.close()


def test_force_and_speed_limit():
    """80 N on 12 kg of a rolling ball is 4.76 m/s2; no force acts from 20 m/s on."""
    env = environment_class("BeamDomino")()
    env.reset(seed=0, options={"x0": -4.0})
    back = np.array([-1, 0], np.float32)
    for _ in range(60):
        out = env.step(back)[0]
    assert out[5] == pytest.approx(-80 / (12 * 1.4), rel=0.01)
    env.reset(seed=0, options={"x0": 5.0})
    away = np.array([-1, -1], np.float32)
    speeds = []
    for _ in range(440):
        out = env.step(away)[0]
        if out[1] < 0.4:  # over the edge
            break
        speeds.append(float(np.hypot(out[3], out[5])))
    assert 19.5 < max(speeds) < 20.1
    env.close()


def test_a_pinned_slab_counts_as_held_and_an_unwatched_shape_is_refused():
    env = environment_class("BeamDomino")()
    vector, _ = env.reset(seed=0, options={"intervention": "slab_pinned"})
    assert vector[91] == 1
    with pytest.raises(UserError, match="info_level"):
        env.shape()
    env.close()
