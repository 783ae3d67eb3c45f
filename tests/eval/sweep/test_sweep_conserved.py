"""After a closed form has ended: energy that never rises, bricks that fell."""

from dataclasses import replace

import numpy as np
import pytest

from wmeval.assets.gauge_cards import family
from wmeval.envs.gauge.build import build
from wmeval.eval.sweep.cells import Cell, parse_engines
from wmeval.eval.sweep.conserved import fallen, kept, mechanical_energy
from wmeval.eval.sweep.gates import WHOLE, rests_on
from wmeval.eval.sweep.running import run_cell


def record(task, seconds=None, **grid):
    name, subtask, material = task.split("/")
    (spec,) = parse_engines("bullet")
    logs = []
    cell = Cell(engine=spec, config="tuned", family=name, subtask=subtask, material=material,
                grid=grid)  # fmt: skip
    result = run_cell(cell, "kept", seconds=seconds, keep=lambda *a: logs.append(a[1]))
    built = build(family(name), subtask, material)
    return result, built, logs[0].state


def test_energy_of_what_falls_and_turns_is_kept_and_a_kick_is_seen():
    result, built, state = record("nonsmooth_contact/1/wood")
    found = result.measurement("energy_rise")
    assert found.expected == 0
    assert 0 <= found.value < 0.02
    # Falling freely, energy is kept to what a step misses: m g dt v / 2.
    energy = mechanical_energy(built, state)
    spent = energy[0] - energy.min()
    assert spent > 0
    assert abs(energy[3] - energy[0]) < 0.01 * spent
    # The same bodies, one of which is thrown upwards in the last frame.
    i = next(k for k, b in enumerate(built.scene.bodies) if b.motion == "dynamic")
    mass = built.scene.bodies[i].mass
    speed = state.linear_velocity.copy()
    speed[-1, state.body(built.scene.bodies[i].name)] = (0.0, 0.0, 5.0)
    card = family("nonsmooth_contact")
    kicked = kept(card, built, replace(state, linear_velocity=speed))[0]
    assert kicked.value * spent == pytest.approx(12.5 * mass, rel=0.35)
    assert kept(family("pendulum"), built, state) == []


def test_spin_counts_by_the_body_s_own_inertia():
    _, built, state = record("nonsmooth_contact/1/wood", seconds=0.1)
    i = next(k for k, b in enumerate(built.scene.bodies) if b.motion == "dynamic")
    body = built.scene.bodies[i]
    still = np.zeros_like(state.angular_velocity)
    turned = still.copy()
    turned[:, state.body(body.name)] = (0.0, 3.0, 0.0)
    without = mechanical_energy(built, replace(state, angular_velocity=still))
    gain = mechanical_energy(built, replace(state, angular_velocity=turned)) - without
    # Between those of its mass at a millimetre and at 0.2 m from the axis.
    assert np.all((gain > 4.5 * body.mass * 1e-6) & (gain < 4.5 * body.mass * 0.04))


def test_fallen_bricks_are_those_that_lie_lower():
    built = build(family("wall_breaking"), "1", "wood")
    wall = family("wall_breaking").bodies["wall"].shape
    _, _, state = record("wall_breaking/1/wood", seconds=0.1)
    rows = [k for k, n in enumerate(state.bodies) if n.startswith("brick")]
    assert len(rows) == 118
    assert fallen(wall, state).sum() == 0
    moved = state.position.copy()
    moved[-1, rows[5:8], 2] -= 0.6 * wall.size[2]
    moved[-1, rows[9], 2] -= 0.4 * wall.size[2]
    found = kept(family("wall_breaking"), built, replace(state, position=moved))
    assert {m.metric: m.value for m in found}["bricks_fallen"] == 3
    assert rests_on("wall_breaking", "1", "energy_rise") == WHOLE["wall_breaking"]
