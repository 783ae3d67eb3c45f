"""What settings are chosen by shows a record's own numbers and the suite's checks, no truths."""

import importlib
import sys
from pathlib import Path

import pytest

from wmeval.eval.sweep.cells import Cell, CellResult, Measurement, parse_engines


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
