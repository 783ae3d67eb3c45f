"""What settings are chosen by shows a record's own numbers and the suite's checks, no truths."""

import dataclasses
import importlib
import sys
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from wmeval.deformables import rest_shape
from wmeval.eval.sweep.cells import Cell, CellResult, Measurement, parse_engines
from wmeval.eval.sweep.prepared import prepare
from wmeval.records import StateLog


@pytest.fixture
def tuning(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[3]))
    return importlib.import_module("benchmarks.tuning")


def cell(engine="bullet", **grid):
    (spec,) = parse_engines(engine)
    return Cell(engine=spec, config="tuned", family="bouncing_ball", subtask="1",
                material="rubber", grid=grid)  # fmt: skip


def test_nothing_that_a_set_up_should_come_to_is_shown(tuning):
    numbers = (
        Measurement(metric="rmse", truth="ball_bounces", value=7.0),
        Measurement(metric="rmse", truth="real", value=8.0),
        Measurement(metric="lsd", truth="real", value=9.0),
        Measurement(metric="apex", truth="ball_bounces", value=0.25, expected=0.75),
    )
    told = tuning.numbers_of(CellResult(cell=cell(), key="k", status="ok", measurements=numbers))
    assert told == "apex 0.25"


def test_a_line_tells_how_far_paths_moved_and_how_the_suite_bounces(tuning, monkeypatch, capsys):
    monkeypatch.setattr(
        sys, "argv",
        ["tuning", "bullet", "bouncing_ball/1/rubber", "--hz", "360,720", "--conformance",
         "--seconds", "0.4"],
    )  # fmt: skip
    tuning.main()
    text = capsys.readouterr().out
    assert "bullet bouncing_ball/1/rubber 360 Hz" in text
    assert "moved - mm" in text
    moved = float(text.split("720 Hz")[1].split("moved ")[1].split(" mm")[0])
    assert 0.1 < moved < 30
    # At these settings of the engine, not at its own: the suite's ball, not the task's.
    assert text.count("bounce_0.5: 0.5 of 0.5 1, ok") == 2
    assert "0.5767" not in text
    assert "rmse" not in text


def lying_still(cell, frames=3):
    """A cell's states, nothing of which moves."""
    built = prepare(cell).built
    bodies = built.scene.bodies
    n, b = frames, len(bodies)
    return StateLog(
        tuple(x.name for x in bodies), Fraction(1, 30), np.arange(n),
        np.tile([x.position for x in bodies], (n, 1, 1)).astype(float),
        np.tile([x.quaternion_wxyz for x in bodies], (n, 1, 1)).astype(float),
        np.zeros((n, b, 3)), np.zeros((n, b, 3)), np.ones((n, b), bool),
        np.full((n, b), 2, np.uint8),
        vertices={
            d.name: np.tile(rest_shape(d, built.meshes).vertices, (n, 1, 1))
            for d in built.scene.deformables
        },
    )  # fmt: skip


@pytest.mark.parametrize(
    ("task", "grid"),
    [
        ("textile_bending/1/oxford", ["--option", "cell=0.05"]),  # markers on a sheet
        ("foam_shearing/1/soft", []),  # on a block
        ("cantilever_beam/1/soft", []),  # on foam and on rigid cubes
        ("tablecloth_pulling/1/wood", ["--option", "cell=0.05"]),  # the cube alone
        ("rope_winding/1/rubber", []),  # a rope's vertices and two balls
    ],
)
def test_what_bends_is_compared_by_its_markers(tuning, monkeypatch, capsys, task, grid):
    """The second run as the first, but all of it 3 mm aside; the third ends early."""
    told = iter((0.0, 3e-3, 3e-3))

    def run(cell, key, *, seconds, keep):
        state, aside = lying_still(cell), next(told)
        state = dataclasses.replace(
            state, position=state.position + np.array([aside, 0, 0]),
            vertices={k: x + np.array([aside, 0, 0]) for k, x in state.vertices.items()},
        ).rows(slice(0, 2 if cell.grid["dt"] == "1/720" else 3))  # fmt: skip
        keep(None, SimpleNamespace(state=state), {})
        return CellResult(cell=cell, key=key, status="ok")

    monkeypatch.setattr(tuning, "run_cell", run)
    monkeypatch.setattr(sys, "argv", ["tuning", "newton", task, "--hz", "180,360,720", *grid])
    tuning.main()
    lines = capsys.readouterr().out.splitlines()
    assert [line.partition("moved ")[2].partition(" mm")[0] for line in lines] == [
        "-", "3.00", "0.00",
    ]  # fmt: skip
