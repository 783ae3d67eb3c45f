"""What cannot be meant is refused in one line, before anything runs or is written."""

import json
from pathlib import Path

import numpy as np
import pytest

from wmeval.cli import main
from wmeval.datasets.mocap import Header, Mocap, make_trial, write_mocap
from wmeval.errors import UserError
from wmeval.eval.sweep import planning, sweeping
from wmeval.eval.sweep.cells import parse_engines
from wmeval.eval.sweep.sweeping import run_sweep


def cells_of(tasks="bouncing_ball", engines="bullet", grid="", **options):
    return planning.plan(
        parse_engines(engines), planning.tasks_of(tasks), ["published-settings"],
        planning.parse_grid(grid), twice="none", **options,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ("iterations=-1", "--grid: iterations = -1: Input should be greater than or equal to 1"),
        ("restitution_threshold=abc", "--grid: restitution_threshold = 'abc': .*valid number"),
        ("cone_friction=7", "--grid: bullet option cone_friction = 7: give 0 to 1"),
        ("foo=3", "--grid: bullet has no option 'foo'; known: "),
        ("cell=0.02", "--grid: cell = 0.02: is of families with a sheet or foam"),
        ("iterations=10,-1", "--grid: iterations = -1: "),
        ("dt=1/180,1/360,foo=3", "--grid: bullet has no option 'foo'"),
    ],
)
def test_settings_that_no_cell_takes_are_refused(grid, said):
    with pytest.raises(UserError, match=said) as found:
        cells_of(grid=grid)
    assert "\n" not in str(found.value)
    assert "validation error" not in str(found.value)


@pytest.mark.parametrize(
    ("tasks", "engine", "has", "has_not"),
    [
        ("bouncing_ball", "bullet", {"cone_friction", "hull_margin"}, {"gap", "cell", "ccd"}),
        ("newtons_cradle", "physx", {"ccd", "gap", "python"}, {"cell", "hull_margin"}),
        ("foam_stretching", "newton", {"solver", "voxel", "cell"}, {"gap"}),
        ("foam_stretching", "genesis", {"volume", "grid_density", "cell"}, {"gap"}),
        ("bouncing_ball", "isaac", {"python"}, {"cell"}),
    ],
)
def test_a_name_that_is_none_is_answered_with_all_that_are(tasks, engine, has, has_not):
    with pytest.raises(UserError, match=f"^--grid: {engine} has no option 'foo'; known: ") as found:
        cells_of(tasks, engine, grid="foo=3")
    known = set(str(found.value).partition("known: ")[2].split(", "))
    assert {"dt", "iterations", "restitution_threshold"} | has <= known
    assert not known & has_not
    # None of them is refused as unknown.
    said = []
    for name in known - {"dt"}:
        try:
            cells_of(tasks, engine, grid=f"{name}=0.001")
        except UserError as error:
            said.append(str(error))
    assert not [text for text in said if "has no option" in text]


def test_a_setting_of_one_engine_or_task_is_none_of_the_others():
    # Newton has no cone_friction and the ball no gap: their cells say so.
    assert len(cells_of(engines="bullet,newton", grid="cone_friction=0,1")) == 4
    assert len(cells_of("bouncing_ball,newtons_cradle", grid="gap=0,0.0001")) == 4
    # PhysX counts to 255 only.
    assert len(cells_of(engines="bullet,physx", grid="iterations=10,500")) == 4
    with pytest.raises(UserError, match="physx iterations = 500: give 1 to 255"):
        cells_of(engines="physx", grid="iterations=500")


@pytest.mark.parametrize("adapter", ["newton", "isaac"])
def test_a_program_that_is_not_there_is_refused(adapter):
    with pytest.raises(UserError, match="--engines: python=/no/where: no program is there"):
        cells_of(engines=f"name=mine,adapter={adapter},python=/no/where")


def tosses(path: Path, count=4):
    header = Header(
        format="wmeval-mocap/1", title="made up", rate=148, bodies=("cube",),
        metadata={"mass_kg": 0.37, "friction_fitted": 0.2, "restitution_fitted": 0.1},
    )  # fmt: skip
    times = np.arange(8) / 148
    turn = np.tile([1.0, 0, 0, 0], (8, 1, 1))
    arrays = {"positions": np.zeros((8, 1, 3)) + times[:, None, None], "quaternions_wxyz": turn}
    trials = tuple(make_trial(header, f"t{k}", times, arrays) for k in range(count))
    write_mocap(Mocap(header, trials), path)
    return str(path)


def test_more_tosses_than_were_recorded_are_refused(tmp_path):
    path = tosses(tmp_path / "tosses.h5")
    assert len(cells_of("cube_toss/4,cube_toss/odd-2", tosses=path)) == 2
    with pytest.raises(UserError, match=r"cube_toss/9999: tosses.h5 holds 4 tosses: ask"):
        cells_of("cube_toss/9999", tosses=path)
    with pytest.raises(UserError, match=r"tosses.h5 holds 2 tosses in odd places"):
        cells_of("cube_toss/odd-3", tosses=path)
    with pytest.raises(UserError, match=r"--tosses .*: no task here is cube_toss"):
        cells_of("bouncing_ball", tosses=path)


def test_nothing_is_left_behind_by_a_refused_command(tmp_path, capsys):
    for wrong in (["--grid", "iterations=-1"], ["--executor", "foo"]):
        with pytest.raises(SystemExit) as stop:
            main(
                ["sweep", "gauge", "--tasks", "bouncing_ball", "--out", str(tmp_path / "s"), *wrong]
            )
        assert stop.value.code == 2
        assert capsys.readouterr().err.count("\n") == 1
        assert not (tmp_path / "s").exists()


def test_an_executor_that_is_none_does_not_cost_what_was_there(tmp_path):
    out = tmp_path / "s"
    run_sweep(cells_of(), out, workers=0, conformance=False)
    with pytest.raises(UserError, match="unknown executor 'foo': choose from local, ray"):
        run_sweep(cells_of(), out, executor="foo", overwrite=True)
    assert (out / "results.json").is_file()


def test_a_full_disk_ends_the_sweep_in_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeping, "run_unit", full)
    with pytest.raises(UserError, match="disk full"):
        run_sweep(
            cells_of("bouncing_ball,pendulum/1"), tmp_path / "s", workers=0, conformance=False
        )
    assert not (tmp_path / "s" / "results.json").exists()
    monkeypatch.undo()
    mended = run_sweep(cells_of(), tmp_path / "s", workers=0, conformance=False)
    assert mended.counts() == {"ok": 1}


def full(unit, **_):
    from wmeval.errors import DiskError

    raise DiskError("x: disk full (No space left on device); nothing was written there.")


def test_shards_that_are_missing_are_named(tmp_path):
    cells = cells_of("bouncing_ball,pendulum/1/metal,slope_slider/1/wood")
    for i in (1, 2, 3):
        plan = {"engines": "bullet", "tasks": "x", "shard": f"{i}/3", "limit_s": 10.0 * i}
        run_sweep(
            planning.share(cells, (i, 3)), tmp_path / str(i), plan=plan, workers=0,
            conformance=False,
        )  # fmt: skip
    with pytest.raises(UserError, match=r"shard 3/3 is missing: run it \(--shard 3/3\)"):
        sweeping.merge(tmp_path / "all", [tmp_path / "1", tmp_path / "2"])
    assert not (tmp_path / "all" / "results.json").exists()
    joined = sweeping.merge(tmp_path / "all", [tmp_path / "1", tmp_path / "2", tmp_path / "3"])
    assert len(joined.cells) == 3
    # What was joined may be joined again; a shard that did not end is not whole.
    again = sweeping.merge(tmp_path / "more", [tmp_path / "all"])
    assert len(again.cells) == 3
    (tmp_path / "3" / "results.json").unlink()
    with pytest.raises(UserError, match=r"3: this shard did not end: run its command again"):
        sweeping.merge(tmp_path / "other", [tmp_path / str(i) for i in (1, 2, 3)])
    assert json.loads((tmp_path / "all" / "sweep.json").read_text())["plan"]["merged"] == 3


def test_a_recording_of_no_task_is_refused(tmp_path):
    header = Header(
        format="wmeval-mocap/1", title="made up", rate=30, bodies=("ball",),
        family="bouncing_ball", subtask="1", material="rubber",
    )  # fmt: skip
    times = np.arange(18) / 30
    turn = np.tile([1.0, 0, 0, 0], (18, 1, 1))
    arrays = {"positions": np.zeros((18, 1, 3)), "quaternions_wxyz": turn}
    trials = tuple(make_trial(header, f"t{k}", times, arrays) for k in range(2))
    one, two = str(tmp_path / "one.h5"), str(tmp_path / "two.h5")
    for path in (one, two):
        write_mocap(Mocap(header, trials), path)
    assert [bool(c.data) for c in cells_of("bouncing_ball,pendulum/1/metal", real=[one])] == [1, 0]
    said = r"--real .*one.h5: it measures bouncing_ball/1/rubber, which no task here is"
    with pytest.raises(UserError, match=said):
        cells_of("pendulum/1/metal", real=[one])
    with pytest.raises(
        UserError, match=r"two.h5: .*one.h5 measures bouncing_ball/1/rubber as well"
    ):
        cells_of("bouncing_ball", real=[one, two])


@pytest.mark.parametrize(
    ("family", "properties", "said"),
    [
        ("slope_slider", "cubee: {friction: 0.2}", "slope_slider has no body 'cubee': choose fr"),
        ("slope_slider", "cube: {frixion: 0.2}", "slope_slider's cube takes no 'frixion'"),
        ("cube_toss", "cubee: {friction: 0.2}", "cube_toss has no body 'cubee': choose from cube"),
        ("cube_toss", "cube: {frixion: 1}", "cube_toss's cube takes no 'frixion': choose from ma"),
        ("cube_toss", "cube: {friction: -1}", "cube_toss's cube: friction = -1.0: Input should"),
        ("cube_toss", "cube: {restitution: 2}", "cube_toss's cube: restitution = 2.0: Input"),
        ("cube_toss", "cube: {inertia: 0}", "cube_toss's cube: inertia = 0.0: Input should be"),
    ],
)
@pytest.mark.parametrize("grid", [(), ("--grid", "iterations=10,20")])
def test_fitted_numbers_that_no_body_takes_are_refused(
    tmp_path, capsys, family, properties, said, grid
):
    name = "{engine}" if grid else "bullet"
    fit = tmp_path / "bullet.yaml"
    fit.write_text(f"family: {family}\nfitted_on: half\nproperties: {{{properties}}}\n")
    with pytest.raises(SystemExit) as stop:
        main(
            ["sweep", "gauge", "--engines", "bullet", "--tasks", "slope_slider/2/wood,cube_toss",
             "--config", str(tmp_path / f"{name}.yaml"), *grid, "--out", str(tmp_path / "s")]
        )  # fmt: skip
    assert stop.value.code == 2
    told = capsys.readouterr().err
    assert f"bullet.yaml: {said}" in " ".join(told.split())
    assert not (tmp_path / "s").exists()
