"""Restitution of a spring and a damper, against their motion stepped finely."""

import math

import numpy as np
import pytest
from physics_scenes import body, floor, world_spec

from wmeval.scene import Sphere
from wmeval.sim.engines.genesis_contacts import contact_numbers
from wmeval.sim.engines.spring_contacts import LEAST, damping_ratio, restitution


def bounced(ratio, stiffness=400.0, steps=40_000):
    """Speed after of a unit mass that comes in at 1 m/s; the contact pushes only."""
    h, x, v = 6.0 / math.sqrt(stiffness) * max(1.0, 2 * ratio) / steps, 0.0, 1.0
    for step in range(steps):
        pull = -stiffness * x - 2 * ratio * math.sqrt(stiffness) * v
        if step and (pull >= 0 or x <= 0):
            break
        half = v + h / 2 * pull
        x += h * half
        v = half + h / 2 * (-stiffness * x - 2 * ratio * math.sqrt(stiffness) * half)
    return -v


@pytest.mark.parametrize("ratio", [0.0, 0.05, 0.3, 0.7072, 0.9, 1.0, 1.5, 4.0])
def test_the_closed_form_is_what_a_spring_and_a_damper_do(ratio):
    assert restitution(ratio) == pytest.approx(bounced(ratio), abs=2e-3)


def test_the_damping_ratio_gives_the_restitution_back():
    for wanted in (1.0, 0.964, 0.577, 0.202387, 0.1, 0.02):
        assert restitution(damping_ratio(wanted)) == pytest.approx(wanted, abs=1e-9)
    assert damping_ratio(0.0) == damping_ratio(LEAST)
    # The spring that goes on pulling would ask for a third less damping at the cradle's balls.
    log = -math.log(0.202387)
    assert damping_ratio(0.202387) > 1.5 * log / math.hypot(math.pi, log)


def test_pairs_have_their_restitution_by_the_mean_of_what_their_bodies_are_given():
    ball = body("ball", Sphere(radius=0.03), mass=0.1, position=(0, 0, 0.4), restitution=0.577)
    other = body("other", Sphere(radius=0.03), mass=0.1, position=(1, 0, 0.4), restitution=0.577)
    ground = floor(restitution=1.0)
    for scene, meeting in (
        (world_spec(ball, ground).scene, [(0, 1)]),
        (world_spec(ball, other, ground).scene, [(0, 1), (0, 2)]),
    ):
        found = contact_numbers(scene, 2e-3)
        for a, b in meeting:
            wanted = scene.bodies[a].restitution * scene.bodies[b].restitution
            time, ratio = (np.array(found[a]) + np.array(found[b])) / 2
            assert restitution(ratio) == pytest.approx(wanted, abs=0.03)
            assert time * ratio == pytest.approx(2e-3, rel=0.3)
