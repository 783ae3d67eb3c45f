"""The hit that releases the platform: recorded impulses account for the ball's momentum."""

import numpy as np

from wmeval.envs import make_environment
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record


def test_impulses_close_the_momentum_across_the_release():
    env = make_environment("BeamDomino")
    rollout = record(env, plan=load_plan(env.ID, "canonical"), seed=0, max_steps=100)
    env.close()
    state, contacts = rollout.log.state, rollout.log.contacts
    ball = state.body("floor_ball")
    mass = rollout.scene.bodies[ball].mass
    first, last = 350, 380  # the ball reaches the pillar after 1.5 s = 360 substeps
    position = state.position[first : last + 1, ball]
    undone = int((np.diff(position, axis=0) == 0).all(axis=1).sum())
    assert undone == 1  # the releasing substep put the ball back: it stands still for once
    impulse = np.zeros(3)
    for side, sign in ((contacts.body_a, 1), (contacts.body_b, -1)):
        rows = (side == ball) & (contacts.substep >= first) & (contacts.substep < last)
        push = contacts.normal_impulse[rows, None] * contacts.normal[rows]
        impulse += sign * (push + contacts.tangential_impulse[rows]).sum(axis=0)
    acting = float((last - first - undone) * state.dt)
    impulse += acting * np.array([0.0, 80.0, mass * rollout.scene.gravity[2]])
    gained = mass * (state.linear_velocity[last, ball] - state.linear_velocity[first, ball])
    np.testing.assert_allclose(impulse, gained, atol=1e-6)
    assert np.linalg.norm(gained) > 5
