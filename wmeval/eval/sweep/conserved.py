"""What holds after a closed form has ended: energy that never rises; a wall's bricks that fell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import GRAVITY, Bricks, Family
from wmeval.conventions import quaternion_to_matrix
from wmeval.envs.gauge.build import Built
from wmeval.eval.sweep.cells import Measurement
from wmeval.eval.truths.converged import greatest_rise
from wmeval.records import StateLog
from wmeval.sim.engines.bullet_shapes import mass_properties

F8 = NDArray[np.float64]

PASSIVE = ("slope_contact", "nonsmooth_contact", "wall_breaking")
"""Families in which nothing is led and nothing bends: bodies are let go, and lose energy only."""
COUNTED = ("bricks_fallen",)
"""Numbers of the whole record that nothing predicts: shown, and never the best."""


def kept(card: Family, built: Built, state: StateLog) -> list[Measurement]:
    """Numbers of a whole record of a family in `PASSIVE`; none of others."""
    if card.id not in PASSIVE:
        return []
    energy = mechanical_energy(built, state)
    spent = float(energy[0] - energy.min())
    out = [
        Measurement(
            metric="energy_rise", value=greatest_rise(energy) / spent if spent > 0 else None,
            expected=0.0, n=len(state), reason="" if spent > 0 else "no energy was lost",
        )
    ]  # fmt: skip
    wall = next((b.shape for b in card.bodies.values() if isinstance(b.shape, Bricks)), None)
    if wall is not None:
        out.append(
            Measurement(
                metric="bricks_fallen", value=float(fallen(wall, state).sum()), n=len(state)
            )
        )
    return out


def mechanical_energy(built: Built, state: StateLog) -> F8:
    """Kinetic energy and that of weight of all bodies that are let go, (N,) [J]."""
    total = np.zeros(len(state))
    for body in built.scene.bodies:
        if body.motion != "dynamic" or body.name not in state.bodies:
            continue
        i = state.body(body.name)
        speed, spin = state.linear_velocity[:, i], state.angular_velocity[:, i]
        _, _, inertia = mass_properties(body, built.meshes)
        turn = quaternion_to_matrix(state.quaternion_wxyz[:, i])
        own = np.einsum("nji,nj->ni", turn, spin)
        total += body.mass * (GRAVITY * state.position[:, i, 2] + (speed**2).sum(axis=1) / 2)
        total += np.einsum("ni,ij,nj->n", own, inertia, own) / 2
    return total


def fallen(wall: Bricks, state: StateLog) -> NDArray[np.bool_]:
    """Which bricks lie a half of a brick's height below where they began, at the end."""
    rows = [k for k, name in enumerate(state.bodies) if name.startswith("brick")]
    sunk: F8 = state.position[0, rows, 2] - state.position[-1, rows, 2]
    return sunk > wall.size[2] / 2
