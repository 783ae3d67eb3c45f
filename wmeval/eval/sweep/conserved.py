"""What holds of a whole record: energy that nothing gives never rises; bricks that fell."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import GRAVITY, Bricks, Family
from wmeval.conventions import quaternion_to_matrix
from wmeval.envs.gauge.build import Built
from wmeval.eval.sweep.cells import Measurement
from wmeval.eval.truths.converged import greatest_rise
from wmeval.records import StateLog
from wmeval.scene import Body
from wmeval.sim.engines.bullet_shapes import mass_properties

F8 = NDArray[np.float64]

PASSIVE = ("slope_contact", "nonsmooth_contact", "wall_breaking")
"""Families in which nothing is led and nothing bends: bodies are let go, and lose energy only."""
COUNTED = ("bricks_fallen",)
"""Numbers of the whole record that nothing predicts: shown, and never the best."""
SHARE = 0.1
"""Of what weight can give, the gain from which it is said (ours): the energy of a pendulum that is
stepped at 180 Hz swings by 0.01 of it."""
LIFT = 1e-3
"""A gain that lifts nothing higher than this is never said [m] (ours): what lies still has none."""


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


def gained(built: Built, state: StateLog) -> str:
    """Says that bodies which nothing leads gained energy, and which most; "" where they did not.

    More than at the start they can never have, whatever they strike. It is held against what their
    weight can give: all motion at the start, and m g times how far each ever lies below where it
    began. Where something is led or bends, the record does not tell what that gave: "".
    """
    if built.drives.leads or built.scene.deformables:
        return ""
    free = _free(built, state)
    weight = GRAVITY * np.array([b.mass for b in free])
    height = state.position[:, [state.body(b.name) for b in free], 2]
    each = _energies(built, state)
    given = float(each[0].sum() - weight @ height.min(axis=0))
    over = (each - each[0]).sum(axis=1)
    most = max(SHARE * given, LIFT * float(weight.sum()))
    if over.max() <= most:
        return ""
    begins, top = int(np.argmax(over > most)), int(np.argmax(over))
    by = free[int(np.argmax(each[top] - each[0]))].name
    times = f", {over[top] / given:.3g} times what weight can give" if given > 0 else ""
    return f"gained {over[top]:.3g} J{times}, most of it {by}, from t = {state.times[begins]:.3g} s"


def mechanical_energy(built: Built, state: StateLog) -> F8:
    """Kinetic energy and that of weight of all bodies that are let go, (N,) [J]."""
    return np.asarray(_energies(built, state).sum(axis=1))


def _free(built: Built, state: StateLog) -> list[Body]:
    """Bodies that are let go."""
    return [b for b in built.scene.bodies if b.motion == "dynamic" and b.name in state.bodies]


def _energies(built: Built, state: StateLog) -> F8:
    """Of each body of `_free`: its kinetic energy and that of its weight, (N, K) [J]."""
    free = _free(built, state)
    out = np.zeros((len(state), len(free)))
    for k, body in enumerate(free):
        i = state.body(body.name)
        speed, spin = state.linear_velocity[:, i], state.angular_velocity[:, i]
        _, _, inertia = mass_properties(body, built.meshes)
        turn = quaternion_to_matrix(state.quaternion_wxyz[:, i])
        own = np.einsum("nji,nj->ni", turn, spin)
        out[:, k] = body.mass * (GRAVITY * state.position[:, i, 2] + (speed**2).sum(axis=1) / 2)
        out[:, k] += np.einsum("ni,ij,nj->n", own, inertia, own) / 2
    return out


def fallen(wall: Bricks, state: StateLog) -> NDArray[np.bool_]:
    """Which bricks lie a half of a brick's height below where they began, at the end."""
    rows = [k for k, name in enumerate(state.bodies) if name.startswith("brick")]
    sunk: F8 = state.position[0, rows, 2] - state.position[-1, rows, 2]
    return sunk > wall.size[2] / 2
