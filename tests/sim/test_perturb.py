"""Perturbations: known errors, exactly as large as they say."""

from __future__ import annotations

import dataclasses
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from physics_scenes import TA, beam_domino, body, floor, world_spec

from wmeval.errors import UserError
from wmeval.records import WorldLog
from wmeval.scene import Box, Modal, Sphere
from wmeval.sim.engines import make_engine
from wmeval.sim.perturb import Perturbation
from wmeval.sim.protocol import Driver, Probe
from wmeval.sim.world import LocalWorld


def run(spec, steps):
    world = LocalWorld(spec)
    return WorldLog.concatenate([world.reset(), world.advance((), steps, Probe("substeps"))])


def test_text_round_trip():
    card = Perturbation.parse("gravity=0.8, delay=0.1")
    assert card == Perturbation(gravity=0.8, delay=0.1)
    assert str(card) == "gravity=0.8,delay=0.1"
    assert Perturbation.parse("") == Perturbation()
    assert str(Perturbation()) == ""


@given(
    st.builds(
        Perturbation,
        gravity=st.floats(0, 100),
        friction=st.floats(0, 100),
        mass=st.floats(0.01, 100),
        gain=st.floats(-100, 100),
        delay=st.floats(0, 10),
    )
)
def test_every_card_survives_its_text(card):
    assert Perturbation.parse(str(card)) == card


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gravty=0.8", "no perturbation 'gravty'; known: gravity, friction"),
        ("gravity", "write key=value"),
        ("gravity=low", "'low' is not a number"),
        ("gravity=1,gravity=2", "given twice"),
        ("mass=0", "mass = 0"),
        ("gain=nan", "gain = nan"),
        ("delay=-1", "delay = -1"),
    ],
)
def test_bad_text_is_refused(text, message):
    with pytest.raises(UserError, match=message):
        Perturbation.parse(text)


def test_the_reference_is_untouched():
    spec = beam_domino(0.0)
    assert Perturbation(gain=0.5, delay=0.1).apply(spec) is spec
    changed = Perturbation(gravity=0.5).apply(spec)
    assert spec.scene.gravity[2] == -9.81
    assert changed.scene.gravity[2] == pytest.approx(-4.905)


def test_gravity_and_friction_scale_the_pair():
    box = body(
        "box",
        Box(half_extents=(0.4, 0.4, 0.1)),
        position=(0, 0, 0.1),
        linear_velocity=(3, 0, 0),
        friction=0.9,
    )
    spec = world_spec(box, floor(friction=0.5))

    def distance(card):
        return run(card.apply(spec), 480).state.position[-1, 0, 0]

    base = distance(Perturbation())
    assert distance(Perturbation(friction=1.5)) == pytest.approx(base / 1.5, rel=0.01)
    assert distance(Perturbation(gravity=0.8)) == pytest.approx(base / 0.8, rel=0.01)
    assert distance(Perturbation(friction=1.25, gravity=0.8)) == pytest.approx(base, rel=0.01)


def test_rolling_resistance_is_not_friction():
    ball = body(
        "ball",
        Sphere(radius=0.5),
        position=(0, 0, 0.5),
        linear_velocity=(2, 0, 0),
        angular_velocity=(0, 4, 0),
        rolling_friction=0.01,
    )
    spec = world_spec(ball, floor())
    base = run(spec, 240).state.linear_velocity[-1, 0, 0]
    rough = run(Perturbation(friction=0.5).apply(spec), 240).state.linear_velocity[-1, 0, 0]
    assert rough == pytest.approx(base, rel=1e-3)


def test_restitution_scales_the_bounce_and_stops_at_one():
    ball = body("ball", Sphere(radius=0.2), position=(0, 0, 1.2), restitution=0.8)
    spec = world_spec(ball, floor(restitution=0.8), contact_erp=0.0, restitution_threshold=0.05)

    def apex(card):
        z = run(card.apply(spec), 240).state.position[:, 0, 2] - 0.2
        return z[int(np.argmax(np.diff(z) > 0)) :].max()

    ratio = apex(Perturbation(restitution=0.5)) / apex(Perturbation())
    assert ratio == pytest.approx(0.25, rel=0.05)
    with pytest.raises(UserError, match=r"'ball' would bounce .* at most 1\.56"):
        Perturbation(restitution=2).apply(spec)


def test_mass_scales_every_body():
    spec = beam_domino(0.0)
    heavy = Perturbation(mass=2).apply(spec).scene
    assert [b.mass for b in heavy.bodies] == [2 * b.mass for b in spec.scene.bodies]


def test_gain_and_delay_act_on_the_actions():
    actions = np.arange(1.0, 13.0).reshape(6, 2) / 12
    late = Perturbation(gain=0.5, delay=0.05).actions(actions, TA)
    assert (late[:3] == 0).all()
    assert np.array_equal(late[3:], 0.5 * actions[:3])
    assert np.array_equal(Perturbation(delay=9).actions(actions, TA), np.zeros((6, 2)))
    assert np.array_equal(Perturbation().actions(actions, TA), actions)
    # What is driven at step i does not depend on later actions.
    for i in range(1, 7):
        part = Perturbation(gain=0.5, delay=0.05).actions(actions[:i], TA)
        assert np.array_equal(part, late[:i])


def test_a_delay_between_control_periods_is_refused():
    with pytest.raises(UserError, match=r"the nearest are 0\.0166667 and 0\.0333333"):
        Perturbation(delay=0.02).delay_steps(TA)
    assert Perturbation(delay=0.02).delay_steps(Fraction(1, 100)) == 2


def test_drivers_of_a_perturbed_world_see_its_gravity_and_keep_their_state():
    """A driver with physics of its own reads the scene's constants: the perturbed ones."""

    class Pendulum(Driver):
        def reset(self, scene, view):
            self.g, self.mass = -scene.gravity[2], scene.bodies[0].mass
            self.angle, self.rate = 0.3, 0.0

        def after(self, view):
            self.rate -= view.dt * self.g / 2.0 * math.sin(self.angle)
            self.angle += view.dt * self.rate
            view.set_modal("swing", (self.angle, self.mass))

    ball = body("ball", Sphere(radius=0.1), position=(0, 0, 1), mass=2.0)
    spec = world_spec(ball)
    modal = (Modal(name="swing", size=2, doc="angle [rad] and the mass that was read [kg]"),)
    spec = dataclasses.replace(spec, scene=spec.scene.model_copy(update={"modal": modal}))
    crossing = {}
    for factor in (1.0, 0.25):
        wrong = Perturbation(gravity=factor, mass=3.0 if factor < 1 else 1.0).apply(spec)
        assert wrong.scene.modal == modal
        assert (wrong.scene.sun, wrong.scene.sky) == (spec.scene.sun, spec.scene.sky)
        engine = make_engine("bullet")
        engine.build(wrong.scene, {}, wrong.config, wrong.clock.dt, (Pendulum(),))
        state = engine.advance((), 480, Probe("substeps"))[0]
        engine.close()
        angle, mass = state.modal["swing"].T
        crossing[factor] = int(np.argmax(angle < 0))
        assert (mass == (2.0 if factor == 1 else 6.0)).all()
    # A quarter of the gravity: half the frequency.
    assert crossing[0.25] == pytest.approx(2 * crossing[1.0], abs=3)
