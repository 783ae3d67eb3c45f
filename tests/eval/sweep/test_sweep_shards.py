"""Shards joined: nothing is asked anew of this machine, nothing of another sweep is joined."""

import json
import re
import shutil

import pytest

from wmeval.cli import main
from wmeval.errors import UserError
from wmeval.eval.conformance import CHECKS
from wmeval.eval.sweep import gates, planning, sweeping
from wmeval.eval.sweep.cells import CellResult, EngineSpec, Measurement, parse_engines
from wmeval.eval.sweep.folder import seal, seal_suite, sealed_suite
from wmeval.eval.sweep.gates import gated, profile_of, suites_of
from wmeval.eval.sweep.results import COLUMNS, read_sweep
from wmeval.eval.sweep.shards import machine
from wmeval.eval.sweep.sweeping import gather, merge, run_sweep, write_results


def cells_of(tasks, engines="bullet", shard="1/1"):
    cells = planning.plan(
        parse_engines(engines), planning.tasks_of(tasks), ["published-settings"], twice="none"
    )
    return planning.share(cells, planning.parse_shard(shard))


def shard_of(folder, cells, off=(), version="9.9", shard="1/1", engines="", value=1.0):
    """A shard as a machine with the engine left it; the checks that are ``off`` were off."""
    plan = {"engines": engines, "tasks": "t", "shard": shard}
    made, rows = [], []
    for k, cell in enumerate(cells):
        label, config, dt, settings = profile_of(cell)
        own = [
            {
                "label": label, "config": config, "dt": dt, "settings": settings, "check": c,
                "asked": CHECKS[c].asked, "effective": 0.0 if c in off else CHECKS[c].asked,
                "status": "off" if c in off else "ok", "unit": CHECKS[c].unit, "reason": "",
                "tolerance": CHECKS[c].tolerance, "quantity": CHECKS[c].quantity,
                "off_by": 0.0, "version": version, "wall_s": 1.0, "engine": cell.engine.adapter,
            }
            for c in gates.checks_of(cell.family, cell.subtask)
        ]  # fmt: skip
        seal_suite(folder, f"suite-{k}", own)
        rows += own
        number = Measurement(metric="rmse", truth="cube_slides", value=value, unit="mm")
        result = CellResult(
            cell=cell, key=cell.key(version), status="ok", version=version, measurements=(number,)
        )
        seal(folder, result)
        made.append(result)
    sweeping._write_plan(folder, plan)
    write_results(folder, gather(folder, gated(made, rows), rows, plan))
    return folder


@pytest.mark.parametrize("adapter", ["isaac", "newton"])
def test_numbers_count_as_the_machine_said_that_ran_them(tmp_path, nothing_installed, adapter):
    engines = f"name=far,adapter={adapter}"
    tasks = "slope_slider/2/wood,bouncing_ball"
    for k in (1, 2):
        cells = cells_of(tasks, engines, f"{k}/2")
        shard_of(tmp_path / str(k), cells, ("friction_slide",), shard=f"{k}/2", engines=engines)
    joined = merge(tmp_path / "all", [tmp_path / "1", tmp_path / "2"])
    told = {c.cell.family: (m.counts, m.because) for c in joined.cells for m in c.measurements}
    assert told == {
        "slope_slider": (False, "friction_slide: 0 of 0.3"), "bouncing_ball": (True, "")
    }  # fmt: skip
    there = [r for k in (1, 2) for r in read_sweep(tmp_path / str(k)).cells]
    assert {c.cell.name: c for c in joined.cells} == {c.cell.name: c for c in there}
    assert joined.versions == {"far": "9.9"}
    assert {r["check"] for r in joined.conformance} == {
        "friction_slide", "free_fall", "bounce_0.5"
    }  # fmt: skip
    assert read_sweep(tmp_path / "all") == joined


def test_under_which_settings_a_cell_ran_is_not_asked_of_what_is_installed(nothing_installed):
    cells = cells_of("bouncing_ball", "isaac,newton")
    assert all(profile_of(c) is not None for c in cells)
    # Where it is not there, its suite is not run.
    assert {s.engine.label for s in suites_of(cells)} == {"newton"}


def test_what_another_command_left_in_a_shard_s_folder_is_not_joined(tmp_path):
    folder = tmp_path / "1"
    shard_of(folder, cells_of("bouncing_ball", "newton"), version="1.7")
    shard_of(folder, cells_of("slope_slider/2/wood", "newton"), version="1.8")
    assert len(list((folder / "cells").glob("*.json"))) == 2
    joined = merge(tmp_path / "all", [folder])
    assert [(c.cell.family, c.version) for c in joined.cells] == [("slope_slider", "1.8")]
    assert len(list((tmp_path / "all" / "cells").glob("*.json"))) == 1


def test_a_command_that_was_killed_in_a_folder_of_an_older_one_is_not_whole(tmp_path):
    folder = shard_of(tmp_path / "1", cells_of("bouncing_ball", "newton"))
    sweeping._write_plan(folder, {"engines": "newton", "tasks": "other"})
    with pytest.raises(UserError, match="1: this shard did not end: run its command again"):
        merge(tmp_path / "all", [folder])
    (folder / "sweep.json").write_text("{")
    with pytest.raises(UserError, match=r"sweep\.json: cannot be read"):
        merge(tmp_path / "all", [folder])


def test_the_later_of_two_is_taken_and_what_was_not_run_never_hides_what_was(tmp_path):
    cells = cells_of("slope_slider/2/wood", "newton")
    old = shard_of(tmp_path / "old", cells, version="1.7", value=5.0)
    new = shard_of(tmp_path / "new", cells, version="1.8", value=2.0)
    (one,) = merge(tmp_path / "all", [old, new]).cells
    assert (one.version, one.measurements[0].value) == ("1.8", 2.0)
    away = CellResult(cell=cells[0], key="away", status="not_run", reason="not here")
    write_results(old, gather(old, [away], [], read_sweep(old).plan))
    (one,) = merge(tmp_path / "all", [old]).cells
    assert one.status == "ok"
    # Two versions under one name are told as two.
    more = shard_of(tmp_path / "more", cells_of("bouncing_ball", "newton"), version="1.9")
    joined = merge(tmp_path / "all", [more])
    assert joined.versions == {"newton": "1.8 and 1.9"}
    assert joined.notes() == ["newton stands for 2 versions: 1.8 (1 cell), 1.9 (1 cell)"]


def test_machines_of_shards_are_told(tmp_path):
    cells, parts = cells_of("slope_slider/2/wood,bouncing_ball", "newton"), []
    for k, name in ((1, "A, 2 cores"), (2, "B, 8 cores")):
        parts.append(shard_of(tmp_path / str(k), planning.share(cells, (k, 2)), shard=f"{k}/2"))
        plan = {**read_sweep(parts[-1]).plan, "machine": name}
        sweeping._write_plan(parts[-1], plan)
        write_results(parts[-1], read_sweep(parts[-1]).model_copy(update={"plan": plan}))
    # They are shards of one sweep all the same.
    with pytest.raises(UserError, match="shard 2/2 is missing"):
        merge(tmp_path / "less", parts[:1])
    made = merge(tmp_path / "all", parts)
    assert made.notes() == ["times are of several machines: A, 2 cores; B, 8 cores"]
    assert made.plan["of"][1]["machine"] == "B, 8 cores"
    assert re.fullmatch(r".+, \d+ cores?", machine())


def test_a_merge_that_was_killed_is_done_again(tmp_path, monkeypatch):
    parts = [
        shard_of(tmp_path / f, cells_of(t, "newton")) for f, t in
        (("1", "bouncing_ball"), ("2", "slope_slider/2/wood"))
    ]  # fmt: skip
    out = shutil.copytree(parts[0], tmp_path / "all")

    def killed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(sweeping, "gather", killed)
    with pytest.raises(KeyboardInterrupt):
        merge(out, parts[1:])
    monkeypatch.undo()
    assert len(merge(out, parts[1:]).cells) == 2
    assert len(merge(out, []).cells) == 2


def test_a_shard_without_a_cell_is_a_shard(tmp_path, capsys):
    tasks = "bouncing_ball,slope_slider/1/wood"
    for k in (1, 2, 3):
        with pytest.raises(SystemExit) as stop:
            main(
                ["sweep", "gauge", "--tasks", tasks, "--twice", "none", "--out",
                 str(tmp_path / str(k)), "--workers", "0", "--no-conformance", "--no-strips",
                 "--shard", f"{k}/3"]
            )  # fmt: skip
        assert not stop.value.code
    out = capsys.readouterr().out
    assert "cells: none\n" in out
    assert read_sweep(tmp_path / "3").cells == ()
    with pytest.raises(UserError, match="shard 3/3 is missing"):
        merge(tmp_path / "less", [tmp_path / "1", tmp_path / "2"])
    joined = merge(tmp_path / "all", [tmp_path / str(k) for k in (1, 2, 3)])
    assert joined.counts() == {"ok": 2}
    with pytest.raises(UserError, match="holds no cells of a sweep"):
        merge(tmp_path / "none", [shard_of(tmp_path / "empty", [])])


def test_rows_have_all_columns_and_a_table_has_their_kinds(tmp_path):
    cells = cells_of("bouncing_ball", "newton")
    folder = shard_of(tmp_path / "1", cells)
    (ran,) = read_sweep(folder).cells
    away = CellResult(
        cell=cells[0].model_copy(update={"engine": EngineSpec(label="b", adapter="bullet")}),
        key="b", status="not_run", reason="not here",
    )  # fmt: skip
    results = gather(folder, [ran, away], [], {})
    assert all(tuple(row) == tuple(COLUMNS) for row in results.rows)
    write_results(folder, results)
    parquet = pytest.importorskip("pyarrow.parquet")
    whole = parquet.read_table(folder / "results.parquet")
    assert whole.column_names == list(COLUMNS)
    assert whole.to_pylist() == [dict(row) for row in results.rows]
    # Also where not one row has a value, as where there is no row.
    for rest in ([away], []):
        write_results(folder, gather(folder, rest, [], {}))
        assert parquet.read_table(folder / "results.parquet").schema == whole.schema


def test_pandas_reads_numbers_and_yes_or_no_as_such_where_some_are_missing(tmp_path):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    cells = cells_of("bouncing_ball")
    ran = CellResult(
        cell=cells[0], key="a", status="ok",
        measurements=(
            Measurement(metric="rmse", truth="t", value=1.0, n=30, counts=True),
            Measurement(metric="stretch", value=1.0, n=30),
        ),
    )  # fmt: skip
    away = CellResult(cell=cells[0], key="b", status="not_run", reason="not here")
    for name, found in (("one", [ran, away]), ("none", [away])):
        (tmp_path / name).mkdir()
        write_results(tmp_path / name, gather(tmp_path / name, found, [], {}))
        kinds = pandas.read_parquet(tmp_path / name / "results.parquet").dtypes
        assert {str(kinds[c]) for c in ("repeat", "n", "trials")} == {"Int64"}
        assert str(kinds["counts"]) == "boolean"
        assert {str(kinds[c]) for c in ("value", "error", "published_genesis")} == {"float64"}
    rows = pandas.read_parquet(tmp_path / "one" / "results.parquet")
    assert rows["counts"].fillna(False).tolist() == [True, False, False]
    assert rows["n"].sum() == 60


def test_a_suite_that_is_damaged_or_failed_is_run_again(tmp_path, monkeypatch):
    """The first at any time, the other where it is asked for."""
    cells = cells_of("bouncing_ball")
    ran = []

    def pretend(unit, *, out, limit):
        kind, what, key = unit
        if kind == "suite":
            ran.append(key)
            seal_suite(tmp_path / "s", key, gates.failed_rows(what, "it died", "1"))
            return None
        return CellResult(cell=what, key=key, status="not_run")

    monkeypatch.setattr(sweeping, "run_unit", pretend)

    def run(**options):
        ran.clear()
        run_sweep(cells, tmp_path / "s", workers=0, **options)
        return len(ran)

    suites = run()
    assert suites > 1
    assert run() == 0
    (tmp_path / "s" / "conformance" / f"{sweeping._key(suites_of(cells)[0])}.json").write_text("[{")
    assert run() == 1
    assert run(retry=True) == suites
    assert sealed_suite(tmp_path / "s", "none") is None


def test_a_check_that_breaks_the_engine_costs_itself_alone(monkeypatch):
    from wmeval.eval.conformance import run_suite
    from wmeval.sim.engines import bullet
    from wmeval.sim.protocol import EngineConfig

    class Faulty(bullet.BulletEngine):
        def build(self, scene, *args):
            if any(b.name == "cube" for b in scene.bodies):
                raise RuntimeError("the solver gave up")
            super().build(scene, *args)

    monkeypatch.setattr(bullet, "BulletEngine", Faulty)
    found = run_suite("bullet", EngineConfig(), checks=["free_fall", "friction_slide", "stack"])
    assert [o.status for o in found] == ["ok", "failed", "ok"]
    assert found[1].reason == "RuntimeError: the solver gave up"


def test_plans_stand_in_json(tmp_path):
    folder = shard_of(tmp_path / "1", cells_of("bouncing_ball", "newton"))
    merge(tmp_path / "all", [folder])
    plan = json.loads((tmp_path / "all" / "sweep.json").read_text())["plan"]
    assert plan == read_sweep(tmp_path / "all").plan
    assert plan["of"] == [read_sweep(folder).plan]
