"""Native controls, and who may be scored."""

import math
from fractions import Fraction as F

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.linalg import expm

from wmeval.envs.adapters import (
    ADAPTERS,
    Channels,
    Hold,
    Keys,
    channels_of,
    compose_fractional,
    control_json,
    holds,
    ineligible,
    make_adapter,
    se3_exp,
    se3_log,
)
from wmeval.envs.model import ModelSpec
from wmeval.errors import UserError

TA = F(1, 60)
FORCES = Channels(("force_x", "force_z"))
JUMPER = Channels(("move_x", "jump"), one_shots=("jump",))
VALUE = st.floats(-1, 1, width=32)


def spec(**kwargs):
    return ModelSpec(name="m", **kwargs)


KEYS = spec(paradigm="keyboard", actuates=("body",))


# --- continuous ---------------------------------------------------------------------------------


@given(VALUE, st.lists(st.fractions(F(1, 1000), F(1, 60)), min_size=1, max_size=12))
def test_equal_actions_stay_as_they_are(value, weights):
    """Bit for bit, whatever the weights: the identity check rests on it."""
    adapter = make_adapter(spec(), FORCES, control_period=TA)
    actions = np.full((len(weights), 2), value)
    assert adapter.reduce(actions, weights).tolist() == [value, value]


@given(st.lists(st.tuples(VALUE, st.integers(1, 9)), min_size=1, max_size=10))
def test_the_mean_is_weighted(pairs):
    adapter = make_adapter(spec(), Channels(("a",)), control_period=TA)
    values = np.array([[v] for v, _ in pairs])
    weights = [F(n, 600) for _, n in pairs]
    expected = sum(v * n for v, n in pairs) / sum(n for _, n in pairs)
    assert adapter.reduce(values, weights)[0] == pytest.approx(expected, abs=1e-12)


def test_a_pressed_channel_is_one_in_its_block_and_no_mean():
    adapter = make_adapter(spec(), JUMPER, control_period=TA)
    actions = np.array([[0.5, 1.0], [0.5, 1.0]])
    assert adapter.reduce(actions, [TA, TA]).tolist() == [0.5, 0.0]
    assert adapter.reduce(actions, [TA, TA], np.array([False, True])).tolist() == [0.5, 1.0]
    # What is not declared a one-shot cannot be pressed.
    assert adapter.reduce(actions, [TA, TA], np.array([True, True])).tolist() == [0.5, 1.0]


# --- keyboard -----------------------------------------------------------------------------------


def test_the_key_held_longest_wins():
    adapter = make_adapter(KEYS, FORCES, control_period=TA)
    actions = np.array([[1.0, 0.0], [-1.0, 0.9], [-1.0, 0.9]])
    assert adapter.reduce(actions, [F(3, 60), F(1, 60), F(1, 60)]) == Keys(("D",))
    assert adapter.reduce(actions, [F(1, 60), F(1, 60), F(1, 60)]) == Keys(("A", "W"))


@pytest.mark.parametrize(
    ("order", "key"), [([1, -1], ("A",)), ([-1, 1], ("D",)), ([1, 0], ()), ([0, 1], ("D",))]
)
def test_a_tie_goes_to_the_later_key(order, key):
    adapter = make_adapter(KEYS, FORCES, control_period=TA)
    actions = np.array([[v, 0.0] for v in order], np.float64)
    assert adapter.reduce(actions, [TA, TA]).held == key


def test_a_tie_is_broken_by_the_last_action_of_each_key():
    """D, A, A, D: both hold two periods; D is held last."""
    adapter = make_adapter(KEYS, FORCES, control_period=TA)
    actions = np.array([[1, 0], [-1, 0], [-1, 0], [1, 0]], np.float64)
    assert adapter.reduce(actions, [TA] * 4).held == ("D",)


@given(st.lists(st.tuples(VALUE, st.integers(1, 5)), min_size=1, max_size=8))
def test_majority_equals_brute_force(pairs):
    adapter = make_adapter(KEYS, Channels(("force_x",)), control_period=TA)
    symbols = [("" if abs(v) <= 0.1 else "D" if v > 0 else "A") for v, _ in pairs]
    weights = [n for _, n in pairs]
    total = {s: sum(w for t, w in zip(symbols, weights, strict=True) if t == s) for s in symbols}
    best = [s for s in total if total[s] == max(total.values())]
    last = max(best, key=lambda s: max(i for i, t in enumerate(symbols) if t == s))
    got = adapter.reduce(np.array([[v] for v, _ in pairs]), [F(n, 100) for n in weights])
    assert got.held == ((last,) if last else ())


def test_presses_are_keys_too():
    adapter = make_adapter(KEYS, JUMPER, control_period=TA)
    got = adapter.reduce(np.array([[1.0, 1.0]]), [TA], np.array([False, True]))
    assert got == Keys(("D",), ("SPACE",))
    assert control_json(got) == {"held": ["D"], "pressed": ["SPACE"]}


def test_neighbouring_blocks_make_one_long_hold():
    S = F(1, 6)
    controls = [Keys(("W",)), Keys(("W", "D")), Keys(("D",), ("SPACE",)), Keys(()), Keys(("W",))]
    assert holds(controls, S) == (
        Hold("W", F(0), 2 * S),
        Hold("D", S, 2 * S),
        Hold("SPACE", 2 * S, F(0)),
        Hold("W", 4 * S, S),
    )


@given(st.lists(st.sets(st.sampled_from("WASD")), max_size=20))
def test_holds_cover_exactly_the_held_blocks(blocks):
    S = F(4, 24)
    strokes = holds([Keys(tuple(sorted(b))) for b in blocks], S)
    for b, keys in enumerate(blocks):
        now = {h.key for h in strokes if h.start <= b * S < h.start + h.duration}
        assert now == keys
    # Maximal: no stroke of a key begins where another of it ends.
    ends = {(h.key, h.start + h.duration) for h in strokes}
    assert not any((h.key, h.start) in ends for h in strokes)


def test_own_keys_and_unknown_channels():
    card = spec(
        paradigm="keyboard",
        actuates=("body",),
        keys={"force_z": {"negative": "DOWN", "positive": "UP"}},
    )
    adapter = make_adapter(card, FORCES, control_period=TA)
    assert adapter.reduce(np.array([[1.0, 1.0]]), [TA]).held == ("D", "UP")
    with pytest.raises(UserError, match="channel 'force_z'; the scene has steer"):
        make_adapter(card, Channels(("steer",)), control_period=TA)


# --- camera -------------------------------------------------------------------------------------

TWIST = st.lists(st.floats(-2, 2), min_size=6, max_size=6).map(np.array)


@given(TWIST)
def test_se3_exp_equals_the_matrix_exponential(twist):
    v, w = twist[:3], twist[3:]
    M = np.zeros((4, 4))
    M[:3, :3] = [[0, -w[2], w[1]], [w[2], 0, -w[0]], [-w[1], w[0], 0]]
    M[:3, 3] = v
    assert np.allclose(se3_exp(twist), expm(M), atol=1e-12)


@given(TWIST.filter(lambda t: np.linalg.norm(t[3:]) < 3.1))
def test_se3_log_undoes_exp(twist):
    assert np.allclose(se3_log(se3_exp(twist)), twist, atol=1e-7)


@pytest.mark.parametrize("axis", [(1, 0, 0), (0, -1, 0), (0.6, 0, 0.8), (-0.48, 0.6, 0.64)])
@pytest.mark.parametrize("angle", [math.pi, math.pi - 1e-8, math.pi - 1e-5, 1e-9, 0.0])
def test_se3_log_at_half_a_turn_and_at_rest(axis, angle):
    pose = se3_exp(np.array([0.3, -1, 2, *(np.array(axis) * angle)]))
    assert np.allclose(se3_exp(se3_log(pose)), pose, atol=1e-8)


def test_fractions_of_one_motion_compose_to_the_whole():
    pose = se3_exp(np.array([0.2, -0.1, 0.4, 0.3, 0.9, -0.5]))
    assert np.array_equal(compose_fractional([pose], [F(1)]), pose)
    parts = compose_fractional([pose] * 3, [F(1, 2), F(1, 3), F(1, 6)])
    assert np.allclose(parts, pose, atol=1e-12)


@pytest.mark.parametrize("fps", [16, 24, 25])
def test_a_camera_path_ends_where_the_actions_lead(fps):
    """Blocks that straddle actions compose to the same end as the actions themselves."""
    twist = np.zeros((6, 2))
    twist[2, 0], twist[4, 1] = 2.0, 1.5  # forward [m/s], yaw [rad/s]
    channels = Channels(("forward", "yaw"), camera_twist=twist)
    card = spec(paradigm="camera", fps=fps, frames_per_action=1)
    adapter = make_adapter(card, channels, control_period=TA)
    actions = np.random.default_rng(3).uniform(-1, 1, (60, 2))
    whole = np.eye(4)
    for a in actions:
        whole = whole @ se3_exp(twist @ a / 60)
    path = np.eye(4)
    for b in range(fps):
        weights = card.clock.weights_of_block(b, TA)
        path = path @ adapter.reduce(actions[[i for i, _ in weights]], [w for _, w in weights])
    assert np.allclose(path, whole, atol=1e-12)


def test_a_camera_model_has_no_control_on_a_force_scene():
    adapter = make_adapter(spec(paradigm="camera"), FORCES, control_period=TA)
    with pytest.raises(UserError, match="move no camera"):
        adapter.reduce(np.zeros((1, 2)), [TA])


# --- language and eligibility -------------------------------------------------------------------


def test_language_is_the_prompt():
    adapter = make_adapter(spec(paradigm="language"), FORCES, control_period=TA, prompt="push it")
    assert adapter.reduce(np.zeros((1, 2)), [TA]) == "push it"


BEAM = "WMEval/BeamDomino-v0"
CASES = [
    # (card, dimension, eligible): the paper's Tables 2, 3 and 5
    ({"paradigm": "action"}, "causality", True),
    ({"paradigm": "keyboard", "actuates": ("body",)}, "causality", True),
    ({"paradigm": "keyboard", "actuates": ("camera",)}, "causality", False),
    ({"paradigm": "keyboard", "actuates": ("camera",)}, "kinematics", False),
    ({"paradigm": "keyboard", "actuates": ("camera",)}, "controllability", True),
    ({"paradigm": "keyboard", "actuates": ("camera",)}, "causal_lpips", True),
    ({"paradigm": "keyboard", "actuates": ("body", "camera")}, "kinematics", True),
    ({"paradigm": "camera"}, "causality", False),
    ({"paradigm": "camera"}, "controllability", False),
    ({"paradigm": "camera"}, "prompt_consistency", True),
    ({"paradigm": "language"}, "causality", False),
    ({"paradigm": "language"}, "controllability", False),
    ({"paradigm": "language"}, "prompt_consistency", True),
]


@pytest.mark.parametrize(("card", "dimension", "eligible"), CASES)
def test_who_is_scored_on_a_force_scene(card, dimension, eligible):
    model = spec(**card)
    adapter = make_adapter(model, FORCES, control_period=TA)
    reason = adapter.eligible(BEAM, dimension, model)
    assert (reason is None) == eligible
    if reason:
        assert reason.startswith(f"m on {BEAM}, {dimension}: ")


def test_an_unknown_dimension_needs_the_body():
    assert ineligible(BEAM, "something new", spec(paradigm="camera"))
    assert ineligible(BEAM, "something new", spec(paradigm="action")) is None


def test_camera_scenes_need_camera_control():
    assert ineligible("Garden", "consistency", spec(paradigm="camera"), "camera") is None
    assert "no camera control" in ineligible("Garden", "consistency", spec(), "camera")
    both = spec(actuates=("body", "camera"))
    assert ineligible("Garden", "consistency", both, "camera") is None


@pytest.mark.parametrize("paradigm", ["action", "keyboard", "camera", "language"])
def test_where_nobody_acts_a_prompt_is_enough(paradigm):
    model = spec(paradigm=paradigm, **({"actuates": ("body",)} if paradigm == "keyboard" else {}))
    channels = channels_of("RigidBench/FreeFall-v0")
    assert channels.moves == ()
    adapter = make_adapter(model, channels, control_period=TA, prompt="it falls")
    assert adapter.eligible("RigidBench/FreeFall-v0", "kinematics", model) is None
    control = adapter.reduce(np.zeros((1, 0)), [TA])
    expected = {"action": [], "keyboard": Keys(()), "camera": np.eye(4), "language": "it falls"}
    assert np.array_equal(control, expected[paradigm])


def test_every_paradigm_has_an_adapter():
    assert set(ADAPTERS) == set(ModelSpec.model_fields["paradigm"].annotation.__args__)
