"""What each factor of a perturbation does in scenes with physics of their own, or does not."""

import numpy as np
import pytest
from random_play import digest, random_actions

from wmeval.envs import ENVIRONMENTS, environment_class
from wmeval.errors import UserError
from wmeval.sim.engines.carom_scene import read_table

SHOT = {"balls": [[-1.0, 0.0], [0.9, 0.5], [0.9, -0.5]]}


def played(name, steps, perturb=None):
    """An environment after so many random steps, and the vectors on the way."""
    env = environment_class(name)(
        perturb=perturb, observation_mode="vector", action_mode="flat", max_steps=steps + 1
    )
    env.reset(seed=3)
    seen = [env.step(action)[0] for action in random_actions(env, steps)]
    env.close()
    return env, np.array(seen, np.float64)


# --- billiards ----------------------------------------------------------------------------------


def table(perturb):
    env = environment_class("BilliardGame")(perturb=perturb)
    env.reset(seed=1)
    spec = env.world_spec
    env.close()
    return read_table(spec.scene, spec.config).spec


@pytest.mark.parametrize(
    ("factor", "scaled"),
    [
        ("friction", {"friction", "cushion_friction", "sliding"}),
        ("restitution", {"restitution", "cushion_restitution"}),
        ("mass", {"masses"}),
        ("gravity", {"sliding", "rolling", "spinning"}),
    ],
)
def test_every_factor_scales_its_constants_of_every_pair_and_no_other(factor, scaled):
    one, other = table(None), table(f"{factor}=0.7")
    constants = {
        "masses": lambda t: t.masses,
        "restitution": lambda t: t.restitution,
        "friction": lambda t: t.friction,
        "cushion_restitution": lambda t: t.cushion_restitution,
        "cushion_friction": lambda t: t.cushion_friction,
        "sliding": lambda t: [c.sliding for c in t.cloths],
        "rolling": lambda t: [c.rolling for c in t.cloths],
        "spinning": lambda t: [c.spinning for c in t.cloths],
    }
    for name, of in constants.items():
        expected = np.array(of(one)) * (0.7 if name in scaled else 1.0)
        np.testing.assert_allclose(np.array(of(other)), expected, rtol=1e-12, err_msg=name)
        assert expected.all(), name
    assert one.pair_friction == other.pair_friction


def glide(perturb):
    """Speed at once and 0.15 s after a level stun shot along the table."""
    env = environment_class("BilliardGame")(perturb=perturb, action_mode="flat")
    env.reset(seed=0, options=SHOT)
    act = np.zeros(12, np.float32)
    act[6], act[7], act[10] = -1.0, 0.0, 1.0  # Along +x, 650 N.
    speeds = []
    for _ in range(10):
        env.step(act)
        ball = env.scene.index("cue_ball")
        speeds.append(float(np.linalg.norm(env.log.state.linear_velocity[0, ball])))
    env.close()
    return speeds[0], speeds[-1]


def test_a_shot_in_wrong_worlds():
    """The ball slides: mu g takes speed from it; the impulse is the player's, whatever the mass."""
    fast, slower = glide(None)
    loss = fast - slower
    assert loss == pytest.approx(0.2 * 9.81 * 0.15, rel=1e-6)
    for text in ("friction=0.5", "gravity=0.5"):
        fast, slower = glide(text)
        assert fast - slower == pytest.approx(0.5 * loss, rel=1e-6), text
    assert glide("mass=2")[0] == pytest.approx(0.65 / 0.42 - 0.2 * 9.81 / 60, rel=1e-6)
    assert glide("restitution=0.5") == glide(None)


def test_balls_cannot_gain_speed_at_an_impact():
    env = environment_class("BilliardGame")(perturb="restitution=1.2")
    with pytest.raises(UserError, match=r"would bounce with .* use a factor of at most 1\.05"):
        env.reset(seed=0)


# --- liquid -------------------------------------------------------------------------------------


def test_a_quarter_of_gravity_halves_the_sloshs_frequency():
    """omega^2 is proportional to g (Abramson 1966)."""
    crossings = {}
    for perturb in (None, "gravity=0.25"):
        env = environment_class("LiquidContainer")(perturb=perturb)
        env.reset(seed=0)
        wave = []
        for k in range(200):
            env.step(np.array([0, 0.5 * (k < 6), 0, 0, 0, 0], np.float32))
            wave.append(env.log.state.modal["slosh_amplitude"][0, 0])
        env.close()
        turns = np.flatnonzero(np.diff(np.sign(wave[20:])))
        crossings[perturb] = float(np.diff(turns).mean())
    assert crossings["gravity=0.25"] == pytest.approx(2 * crossings[None], rel=0.03)
    assert 30 / crossings[None] == pytest.approx(2.39, rel=0.03)


def test_liquid_without_gravity_is_refused():
    env = environment_class("LiquidContainer")(perturb="gravity=0")
    with pytest.raises(UserError, match="needs gravity straight down"):
        env.reset(seed=0)


# --- where nothing is there to scale ------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "perturb"),
    [
        ("LiquidContainer", "friction=0.5,restitution=0.5,mass=2"),
        ("WanderingGarden", "friction=0.5,restitution=0.5,mass=2"),
        ("SunRisesAndSets", "gravity=0.5,friction=0.5,restitution=0.5,mass=2,gain=0.5,delay=0.05"),
    ],
)
def test_what_a_hand_or_a_walker_does_has_no_such_constants(name, perturb):
    """Nothing there is pushed: the class page says so."""
    one, other = played(name, 40), played(name, 40, perturb)
    np.testing.assert_array_equal(one[1], other[1])
    assert digest(one[0].log) == digest(other[0].log)
    assert "`perturb`:" in environment_class(name).__doc__


def test_gravity_moves_the_gardens_water_and_the_visitors_gait_alone():
    one, other = played("WanderingGarden", 40), played("WanderingGarden", 40, "gravity=0.5")
    np.testing.assert_array_equal(one[1], other[1])
    differ = (one[0].log.state.position != other[0].log.state.position).any(axis=(0, 2))
    roles = {b.role for b, d in zip(one[0].scene.bodies, differ, strict=True) if d}
    assert roles == {"drop", "limb"}


# --- actions ------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [n for n, row in ENVIRONMENTS.items() if row.channels])
@pytest.mark.parametrize("perturb", ["gain=0.5", "delay=0.1"])
def test_gain_and_delay_reach_every_scene(name, perturb):
    late = 6 if perturb.startswith("delay") else 0
    env = environment_class(name)(perturb=perturb, observation_mode="vector", action_mode="flat")
    same = environment_class(name)(observation_mode="vector", action_mode="flat")
    env.reset(seed=4)
    same.reset(seed=4)
    actions = random_actions(same, 40)
    held = len(env.row.branches)
    driven = np.zeros_like(actions)
    driven[late:] = actions[: len(actions) - late]
    driven[:, : driven.shape[1] - held] *= 1.0 if late else 0.5
    for given, arrived in zip(actions, driven, strict=True):
        env.step(given)
        same.step(arrived)
    one, two = env.log, same.log
    if name == "WMEval/LiquidContainer-v0":
        np.testing.assert_array_equal(env.vector[:18], same.vector[:18])
    assert digest(one) == digest(two)
    env.close()
    same.close()
