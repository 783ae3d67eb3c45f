"""A rope that does not hang over its beam when its record begins is no record of it."""

import dataclasses
from fractions import Fraction

import numpy as np
import pytest

from wmeval.eval.sweep import planning, running
from wmeval.eval.sweep.cells import parse_engines
from wmeval.eval.sweep.hung import fallen, hanging_heights
from wmeval.eval.sweep.prepared import prepare
from wmeval.records import StateLog


def cell_of(task="rope_winding", config="tuned"):
    (cell,) = planning.plan(
        parse_engines("bullet"), planning.tasks_of(task), [config], {}, twice="none"
    )
    return cell


def state_of(scene, heights):
    """One row: the scene as it is built, balls at other heights."""
    position = np.array([[b.position for b in scene.bodies]], float)
    for name, z in heights.items():
        position[0, scene.index(name), 2] = z
    bodies, still = tuple(b.name for b in scene.bodies), np.zeros_like(position)
    turns = np.array([[b.quaternion_wxyz for b in scene.bodies]], float)
    return StateLog(
        bodies, Fraction(1, 30), np.zeros(1, np.int64), position, turns, still, still,
        np.ones((1, len(bodies)), bool), np.zeros((1, len(bodies)), np.uint8),
    )  # fmt: skip


def test_a_rope_s_balls_hang_where_its_stretch_lets_them():
    scene = prepare(cell_of()).spec.scene
    balls, low, high = hanging_heights(scene)
    assert balls == ["ball_1", "ball_2"]
    # Half of 340 mm less half a turn of 22.2, stretched by 28.9 % (0.3122 kg on 10.6 N) and 0.1 %
    # by its own weight; the beam's middle is at 304.1, a ball 30 thick.
    strand = (0.340 - 0.0222) / 2 * (1 + 0.289 + 0.0012)
    assert high == pytest.approx(0.3041 - 0.030 - strand, abs=2e-4)
    assert high - low == pytest.approx(0.0222 * 0.29 / 2, abs=2e-4)


def test_a_rope_on_the_ground_is_told_in_one_line():
    scene = prepare(cell_of()).spec.scene
    assert fallen(scene, state_of(scene, {"ball_1": 0.067, "ball_2": 0.070})) == ""
    # As heavy as each other, they are at rest wherever the rope lies on the beam.
    assert fallen(scene, state_of(scene, {"ball_1": 0.050, "ball_2": 0.084})) == ""
    said = fallen(scene, state_of(scene, {"ball_1": 0.031, "ball_2": 0.029}))
    assert said == (
        "the rope does not hang over its beam as the record begins: its balls are at 31 and 29 mm, "
        "at rest their middle hangs at 66 to 69"
    )
    other = prepare(cell_of("pendulum/1/metal")).spec.scene
    assert fallen(other, state_of(other, {})) == ""


def test_a_cell_whose_rope_does_not_hang_is_not_ok(monkeypatch):
    """On Bullet, begun as it is built, before it has settled: its balls are level with the beam."""

    def unsettled(cell):
        ready = prepare(cell)
        return dataclasses.replace(ready, spec=dataclasses.replace(ready.spec, settle=0))

    monkeypatch.setattr(running, "prepare", unsettled)
    result = running.run_cell(cell_of(), "k", seconds=0.1)
    assert result.status == "diverged"
    assert result.reason.startswith("the rope does not hang over its beam as the record begins")
    assert "\n" not in result.reason
    assert result.measurements == ()
