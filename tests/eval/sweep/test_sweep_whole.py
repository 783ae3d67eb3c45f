"""CI's check of its sweep: what was asked for is there, and what is missing is told."""

import importlib.util
from pathlib import Path

import pytest

from wmeval.eval.sweep.cells import CellResult
from wmeval.eval.sweep.results import Agreement, SweepResults

TOOL = Path(__file__).resolve().parents[3] / "tools" / "whole_sweep.py"
ENGINES, TASKS = "bullet,physx,newton", "bouncing_ball,textile_bending/1/oxford"


@pytest.fixture(scope="module")
def tool():
    spec = importlib.util.spec_from_file_location("whole_sweep", TOOL)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def swept(tool, *, lost=(), ended=None, versions=("bullet", "physx", "newton"), **more):
    """A sweep in which everything went well but what is named."""
    plan = {"engines": ENGINES, "tasks": TASKS, "config": ["published-settings"],
            "twice": "first", **more.pop("plan", {})}  # fmt: skip
    empty = SweepResults(wmeval="1", plan=plan, engines=(), versions={}, cells=())
    cells = []
    for cell in tool.asked_of(empty):
        status, reason = (ended or {}).get(cell.name, ("ok", ""))
        if not tool.able(cell):
            status, reason = "not_run", "it has no such physics"
        elif cell.engine.label not in versions:
            status, reason = "not_run", f"{cell.engine.label} is not installed"
        if cell.name not in lost:
            cells.append(CellResult(cell=cell, key="k", status=status, reason=reason))
    return SweepResults(
        wmeval="1", plan=plan, engines=(), versions=dict.fromkeys(versions, "1.0"),
        cells=tuple(cells), **more,
    )  # fmt: skip


def wrong(tool, results):
    return tool.problems(results, tool.asked_of(results))


def test_a_whole_sweep_has_nothing_wrong_and_tells_every_cell(tool, capsys):
    results = swept(tool)
    assert wrong(tool, results) == []
    assert len(capsys.readouterr().out.splitlines()) == len(results.cells)
    # Three engines, two tasks; rigid twice on all, textiles on the one that has them.
    assert len(results.cells) == 6 + 4


BALL = "bullet:published-settings:bouncing_ball/1/rubber"


@pytest.mark.parametrize("name", [BALL, f"{BALL} #1"])
def test_what_was_asked_for_and_is_not_there_is_missed(tool, name):
    assert f"{name}: no cell" in wrong(tool, swept(tool, lost=(name,)))


def test_a_task_an_engine_or_a_configuration_that_left_no_cell_at_all_is_missed(tool):
    results = swept(tool)
    less = [c for c in results.cells if c.cell.family == "bouncing_ball"]
    found = wrong(tool, results.model_copy(update={"cells": tuple(less)}))
    assert len(found) == 4
    assert all("textile_bending/1/oxford" in line for line in found)
    asked = tool.asked_of(results, "bullet,genesis", TASKS, "published-settings,tuned", "none")
    names = {line.partition(": no cell")[0] for line in tool.problems(results, asked)}
    assert "genesis:published-settings:bouncing_ball/1/rubber" in names
    assert "bullet:tuned:bouncing_ball/1/rubber" in names
    assert BALL not in names


def test_a_repeat_that_crashed_is_not_hidden_by_the_first(tool):
    ended = {f"{BALL} #1": ("crash", "it died")}
    assert wrong(tool, swept(tool, ended=ended)) == [f"{BALL} #1: crash: it died"]


def test_an_engine_that_has_the_physics_must_have_run(tool):
    found = wrong(tool, swept(tool, ended={BALL: ("not_run", "no reason to")}))
    assert found == [f"{BALL}: not run: no reason to"]


def test_bits_that_differ_where_determinism_is_declared_are_wrong(tool):
    def of(declared):
        one = Agreement(cell=BALL, engine="bullet", declared=declared, same=False, spread=1e-3)
        return wrong(tool, swept(tool, twice=(one,)))

    assert of(False) == []
    assert of(True) == [f"{BALL}: differs by up to 1 mm, though bullet declares determinism"]


def test_an_engine_that_could_not_be_installed_is_told_and_wrong_where_others_could(tool, capsys):
    found = wrong(tool, swept(tool, versions=("bullet", "physx")))
    assert found == ["engine newton is not installed, others are"]
    assert "ENGINE newton IS NOT INSTALLED" in capsys.readouterr().out
    # Without network none of them can be had.
    assert wrong(tool, swept(tool, versions=("bullet",))) == []
    assert capsys.readouterr().out.count("IS NOT INSTALLED") == 2


def test_joined_shards_were_asked_for_what_each_was(tool):
    whole = swept(tool)
    plans = [{**whole.plan, "shard": f"{k}/2"} for k in (1, 2)]
    results = whole.model_copy(update={"plan": {"merged": 2, "of": plans}})
    asked = tool.asked_of(results)
    assert {c.name for c in asked} == {c.name for c in tool.asked_of(whole)}
    assert len(asked) == len({c.name for c in asked})
    assert tool.problems(results, asked) == []
    less = results.model_copy(update={"cells": results.cells[1:]})
    assert tool.problems(less, asked) == [f"{results.cells[0].cell.name}: no cell"]


def test_a_program_that_was_there_must_have_run_wherever_it_is_checked(tool, nothing_installed):
    plan = {"engines": "isaac"}
    name = "isaac:published-settings:bouncing_ball/1/rubber"
    ended = {name: ("not_run", "no reason to")}
    results = swept(tool, ended=ended, versions=("isaac",), plan=plan)
    assert f"{name}: not run: no reason to" in wrong(tool, results)
    absent = results.model_copy(update={"versions": {}})
    assert not any(name in line for line in wrong(tool, absent))
