"""Lists that an option takes with commas may also be given one by one."""

import pytest
import typer.main
from typer.testing import CliRunner

from wmeval.cli import app
from wmeval.cli.options import joined
from wmeval.errors import UserError
from wmeval.eval.sweep import sweeping


def options(command, path=""):
    if hasattr(command, "commands"):
        for name, below in command.commands.items():
            yield from options(below, f"{path} {name}")
    for one in command.params:
        yield f"{path} {one.opts[0]}", one


def lists():
    found = dict(options(typer.main.get_command(app)))
    return {k: o for k, o in found.items() if "comma-separated" in (getattr(o, "help", "") or "")
            or k.endswith((" --engines", " --tasks", "gauge --grid"))}  # fmt: skip


def test_no_list_is_silently_the_last_of_two():
    assert {k.split()[-1] for k in lists()} == {
        "--engines", "--tasks", "--grid", "--layers", "--materialize",
    }  # fmt: skip
    assert not [name for name, option in lists().items() if not option.multiple]


def test_lists_given_twice_are_one():
    assert joined(["a,b", "c"], "z") == "a,b,c"
    assert joined([], "z") == joined(None, "z") == "z"
    assert joined([""], "z") == ""


def test_a_sweep_has_all_tasks_engines_and_settings_that_are_named(monkeypatch, tmp_path):
    told = {}

    def stop(cells, out, *, plan, **_):
        told.update(cells=[(c.engine.label, c.family, c.grid) for c in cells], plan=plan)
        raise UserError("enough")

    monkeypatch.setattr(sweeping, "run_sweep", stop)
    CliRunner().invoke(
        app,
        ["sweep", "gauge", "--out", str(tmp_path / "s"), "--twice", "none",
         "--tasks", "slope_slider/2/wood", "--tasks", "bouncing_ball,pendulum/1/metal",
         "--engines", "name=mine,adapter=bullet", "--engines", "physx",
         "--grid", "dt=1/180,1/360", "--grid", "iterations=10"],
    )  # fmt: skip
    assert {family for _, family, _ in told["cells"]} == {
        "slope_slider", "bouncing_ball", "pendulum",
    }  # fmt: skip
    assert {label for label, _, _ in told["cells"]} == {"mine", "physx"}
    assert {tuple(grid.values()) for _, _, grid in told["cells"]} == {("1/180", 10), ("1/360", 10)}
    assert told["plan"]["tasks"] == "slope_slider/2/wood,bouncing_ball,pendulum/1/metal"


@pytest.mark.parametrize(
    "option", [[], ["--layers", "depth"], ["--layers", "depth", "--layers", "ids"]]
)
def test_layers_of_a_rollout(monkeypatch, tmp_path, option):
    from wmeval.generators import rollout_folder

    told = []

    def stop(config, *_, **__):
        told.append(config.layers)
        raise UserError("enough")

    monkeypatch.setattr(rollout_folder, "make_rollout_folder", stop)
    CliRunner().invoke(
        app, ["rollout", "WMEval/BeamDomino-v0", "--out", str(tmp_path / "r"), *option]
    )
    assert told == [("depth", "ids") if len(option) != 2 else ("depth",)]
