"""Whole sweeps: resuming, a dead process, shards, baselines, the page."""

import json
import re
import shutil
import signal
import subprocess
import sys

import dying_unit
import numpy as np
import pytest

from wmeval.cli import main
from wmeval.errors import UserError
from wmeval.eval.sweep import planning, sweeping
from wmeval.eval.sweep.cells import parse_engines
from wmeval.eval.sweep.compare import compare
from wmeval.eval.sweep.report import write_sweep_report
from wmeval.eval.sweep.results import read_sweep
from wmeval.eval.sweep.sweeping import merge, run_sweep

BROWSER = shutil.which("chromium") or shutil.which("google-chrome")
TASKS = "slope_slider/2/wood,bouncing_ball,pendulum/1/metal"


def cells_of(tasks=TASKS, config="published-settings", engines="bullet", grid="", twice="first"):
    return planning.plan(
        parse_engines(engines), planning.tasks_of(tasks), [config], planning.parse_grid(grid),
        twice=twice,
    )  # fmt: skip


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A sweep of three families on Bullet, and one engine that is not here."""
    out = tmp_path_factory.mktemp("sweep") / "small"
    results = run_sweep(cells_of(engines="bullet,isaac"), out, workers=0, conformance=False)
    return out, results


def test_results_hold_every_cell_and_flat_rows(small):
    out, results = small
    assert results.counts() == {"ok": 4, "not_run": 4}
    assert read_sweep(out) == results
    rows = json.loads((out / "results.json").read_text())["rows"]
    assert len({(r["engine"], r["task"], r["repeat"]) for r in rows}) == 8
    slid = next(r for r in rows if r["task"] == "slope_slider" and r["metric"] == "rmse")
    assert slid["truth"] == "cube_slides"
    assert slid["normalised"] == pytest.approx(slid["value"] / 18)
    assert slid["published_genesis"] == 0.53
    missing = [r for r in rows if r["engine"] == "isaac"]
    assert all(r["value"] is None and r["reason"] == "Isaac Sim is not installed" for r in missing)
    table = pytest.importorskip("pyarrow.parquet").read_table(out / "results.parquet")
    assert table.num_rows == len(rows)


def test_a_cell_run_twice_is_compared(small):
    _, results = small
    (one,) = results.twice
    assert (one.engine, one.declared, one.same, one.spread) == ("bullet", True, True, 0.0)


def test_what_is_sealed_is_not_run_again(small, monkeypatch):
    out, results = small
    monkeypatch.setattr(
        sweeping, "run_cell", lambda *_, **__: pytest.fail("a sealed cell was run again")
    )
    again = run_sweep(cells_of(), out, workers=0, conformance=False)
    assert list(again.cells) == [c for c in results.cells if c.cell.engine.label != "isaac"]


def test_a_damaged_or_outdated_cell_is_run_again(small, monkeypatch, tmp_path):
    cells = cells_of("bouncing_ball", twice="none")
    out = tmp_path / "s"
    first = run_sweep(cells, out, workers=0, conformance=False)
    (path,) = (out / "cells").glob("*.json")
    path.write_text("{")
    assert run_sweep(cells, out, workers=0, conformance=False).cells[0].sha256 == (
        first.cells[0].sha256
    )
    monkeypatch.setattr(sweeping.wmeval, "__version__", "0.0.0-other")
    run_sweep(cells, out, workers=0, conformance=False)
    assert len(list((out / "cells").glob("*.json"))) == 2


def test_a_dead_process_costs_one_cell(tmp_path, monkeypatch):
    monkeypatch.setattr(sweeping, "run_unit", dying_unit.run_or_die)
    results = run_sweep(cells_of(twice="none"), tmp_path / "s", workers=1, conformance=False)
    by_family = {c.cell.family: c for c in results.cells}
    assert by_family["pendulum"].status == "crash"
    assert "signal 9" in by_family["pendulum"].reason
    assert by_family["slope_slider"].status == by_family["bouncing_ball"].status == "ok"
    monkeypatch.undo()
    kept = run_sweep(cells_of(twice="none"), tmp_path / "s", workers=0, conformance=False)
    assert kept.counts() == {"ok": 2, "crash": 1}
    mended = run_sweep(
        cells_of(twice="none"), tmp_path / "s", workers=0, conformance=False, retry=True
    )
    assert mended.counts() == {"ok": 3}


KILLED = """
import os, signal, sys
from wmeval.cli import main
from wmeval.eval.sweep import sweeping
from wmeval.sim.engines.bullet import BulletEngine
run, advance, families = sweeping.run_cell, BulletEngine.advance, []
def noted(cell, *rest, **more):
    families.append(cell.family)
    return run(cell, *rest, **more)
def deadly(self, action, until, probe):
    if families[-1] == "newtons_cradle" and until > 100:
        os.kill(os.getpid(), signal.SIGKILL)
    return advance(self, action, until, probe)
sweeping.run_cell, BulletEngine.advance = noted, deadly
main(sys.argv[1:])
"""


def test_a_killed_sweep_goes_on_where_it_was(tmp_path):
    out = tmp_path / "s"
    command = [
        sys.executable, "-c", KILLED, "sweep", "gauge", "--engines", "bullet",
        "--tasks", "bouncing_ball,newtons_cradle", "--config", "tuned", "--out", str(out),
        "--workers", "0", "--no-conformance", "--no-strips", "--twice", "none",
    ]  # fmt: skip
    died = subprocess.run(command, capture_output=True, text=True, check=False)
    assert died.returncode == -signal.SIGKILL, died.stderr
    done = {p: p.stat().st_mtime_ns for p in out.glob("cells/[!.]*.json")}
    assert len(done) == 1
    assert not (out / "results.json").exists()
    results = run_sweep(
        cells_of("bouncing_ball,newtons_cradle", "tuned", twice="none"), out, workers=0,
        conformance=False, limit=0.2,
    )  # fmt: skip
    assert {p: p.stat().st_mtime_ns for p in done} == done
    assert [c.status for c in results.cells] == ["ok", "time_out"]


def test_shards_merge_to_the_same_results(small, tmp_path):
    _, whole = small
    cells = cells_of()
    for i in (1, 2):
        run_sweep(
            planning.share(cells, (i, 2)), tmp_path / f"part{i}", workers=0, conformance=False
        )
    # What a killed shard was writing is no cell.
    half = next((tmp_path / "part1" / "cells").glob("[!.]*.json"))
    (half.parent / f".wmeval-tmp.1.{half.name}").write_text(half.read_text())
    joined = merge(tmp_path / "all", [tmp_path / "part1", tmp_path / "part2"])
    assert len(joined.cells) == 4
    ours = {c.cell.name: (c.sha256, c.measurements) for c in joined.cells}
    theirs = {
        c.cell.name: (c.sha256, c.measurements)
        for c in whole.cells
        if c.cell.engine.label == "bullet"
    }
    assert ours == theirs
    assert joined.twice == whole.twice
    with pytest.raises(UserError, match="holds no cells of a sweep"):
        merge(tmp_path / "all", [tmp_path])


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    (tmp_path / "precious.txt").write_text("mine")
    with pytest.raises(UserError, match=r"did not write here \(precious.txt\)"):
        run_sweep(cells_of("bouncing_ball"), tmp_path, workers=0, conformance=False)


def test_a_regression_is_told_and_ends_with_one(small, tmp_path, capsys):
    _, results = small
    same = compare(results, results)
    assert same.compared > 10
    assert same.changes == ()
    coarse = run_sweep(
        cells_of("bouncing_ball", twice="none"), tmp_path / "a", workers=0, conformance=False
    )
    # The same cell by an engine of which a change made it worse: no iterations, no bounce.
    document = json.loads((tmp_path / "a" / "results.json").read_text())
    for m in document["cells"][0]["measurements"]:
        if m["metric"] == "rmse":
            m["value"] /= 3
    old = tmp_path / "old.json"
    old.write_text(json.dumps(document))
    made = compare(read_sweep(old), coarse)
    assert [(c.kind, c.metric) for c in made.regressions] == [("worse", "rmse (ball_bounces)")]
    assert [c.kind for c in compare(coarse, read_sweep(old)).changes] == ["better"]
    command = [
        "sweep", "gauge", "--engines", "bullet", "--tasks", "bouncing_ball", "--twice", "none",
        "--out", str(tmp_path / "a"), "--workers", "0", "--no-conformance", "--no-strips",
        "--baseline",
    ]  # fmt: skip
    with pytest.raises(SystemExit) as stop:
        main([*command, str(old), "--fail-on-regression"])
    assert stop.value.code == 1
    assert "worse: bullet:published-settings:bouncing_ball/1/rubber rmse" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main([*command, str(tmp_path / "a" / "results.json"), "--fail-on-regression"])
    assert stop.value.code == 0
    with pytest.raises(SystemExit) as stop:
        main(["sweep", "gauge", "--out", str(tmp_path / "b"), "--fail-on-regression"])
    assert stop.value.code == 2


def test_intervals_keep_a_spread_from_being_a_regression(small):
    _, results = small
    (cell,) = [
        c
        for c in results.cells
        if c.cell.task == "bouncing_ball/1/rubber" and c.sha256 and not c.cell.repeat
    ]
    rmse = cell.measurement("rmse")

    def with_rmse(value, low, high):
        made = rmse.model_copy(update={"value": value, "low": low, "high": high})
        one = cell.model_copy(update={"measurements": (made,)})
        return results.model_copy(update={"cells": (one,)})

    old = with_rmse(10.0, 8.0, 12.0)
    assert not compare(old, with_rmse(13.0, 11.0, 15.0)).changes
    assert [c.kind for c in compare(old, with_rmse(16.0, 13.0, 19.0)).changes] == ["worse"]
    lost = old.model_copy(
        update={"cells": (cell.model_copy(update={"status": "crash", "measurements": ()}),)}
    )
    assert [c.kind for c in compare(old, lost).regressions] == ["lost"]


def test_a_grid_converges_in_the_step(tmp_path):
    results = run_sweep(
        cells_of("slope_slider/2/wood", grid="dt=1/180,1/360,1/720,1/1440", twice="none"),
        tmp_path / "s", workers=0, conformance=False,
    )  # fmt: skip
    (one,) = results.converged
    # Semi-implicit Euler: first order.
    assert one.order == pytest.approx(1.0, abs=0.1)
    assert all(b < a for a, b in zip(one.errors, one.errors[1:], strict=False))
    page = write_sweep_report(results, tmp_path / "s", strips=False).read_text()
    assert "Error against step and cost" in page
    assert page.count("error against CPU time") == 1


def test_the_page_says_what_was_found(small):
    out, results = small
    page = write_sweep_report(results, out, strips=False).read_text()
    assert "Isaac Sim is not installed" in page
    assert "published-settings" in page
    assert "ball_bounces" in page
    assert "Genesis 1.12.0" in page
    assert "bit-identical" in page
    assert page.count('alt="course and error of') == 3
    assert page == write_sweep_report(results, out, strips=False).read_text()


def test_convergence_is_also_told_over_the_size_of_cells():
    """A made-up sheet whose curvature is off by the square of its cells."""
    from wmeval.eval.sweep.cells import CellResult
    from wmeval.eval.sweep.conclude import convergence

    cells = cells_of(
        "textile_bending/1/rayon", engines="newton", grid="cell=0.04,0.02,0.01", twice="none"
    )
    sizes = {f"k{k}": size for k, size in enumerate((0.04, 0.02, 0.01))}
    results = [
        CellResult(cell=c, key=key, status="ok") for c, key in zip(cells, sizes, strict=True)
    ]
    true = np.linspace(0, 1, 30)[:, None] * np.ones(14)
    (made,) = convergence(results, lambda key: {"course": true * (1 + sizes[key] ** 2)})
    assert (made.over, made.steps) == ("cell", (0.04, 0.02, 0.01))
    assert made.order == pytest.approx(2.0)
    assert made.errors[0] == pytest.approx(16 * made.errors[2])


def test_a_sheet_s_cells_are_a_setting_of_the_grid():
    from wmeval.eval.sweep.prepared import prepare

    fine, coarse = cells_of(
        "textile_bending/1/rayon", engines="newton", grid="cell=0.02,0.04", twice="none"
    )
    count = [len(prepare(c).built.scene.deformables[0].pins[0].vertices) for c in (fine, coarse)]
    assert count == [21, 11]
    (ball,) = cells_of("bouncing_ball", twice="none")
    wrong = ball.model_copy(update={"grid": {"cell": 0.02}})
    with pytest.raises(UserError, match="families with a sheet or foam, not of bouncing_ball"):
        prepare(wrong)


def test_every_family_is_filmed_before_any_set_up_more(monkeypatch):
    from wmeval.eval.sweep import report
    from wmeval.eval.sweep.cells import CellResult
    from wmeval.eval.sweep.results import SweepResults

    cells = cells_of("slope_slider,turntable/1,bouncing_ball", engines="bullet,physx", twice="none")
    results = SweepResults(
        wmeval="0", engines=(), versions={},
        cells=tuple(CellResult(cell=c, key="k", status="ok") for c in cells),
    )  # fmt: skip
    monkeypatch.setattr(report, "MAXIMUM_STRIPS", 7)
    found = report.filmed(results)
    assert len(found) == 7
    for engine in ("bullet", "physx"):
        for task in ("slope_slider/1/wood", "turntable/1/wood", "bouncing_ball/1/rubber"):
            assert (engine, "published-settings", task) in found


def test_the_page_has_no_dead_link_and_loads_nothing(small):
    out, results = small
    page = write_sweep_report(results, out, strips=False).read_text()
    targets = set(re.findall(r'id="([^"]+)"', page))
    links = re.findall(r'(?:href|src)="([^"]+)"', page)
    assert links
    for link in links:
        assert link.startswith("data:") or (link[0] == "#" and link[1:] in targets), link[:80]
    assert len(page) < 1e6


@pytest.mark.accept
@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_the_page_is_no_wider_than_a_window(small, tmp_path):
    out, results = small
    page = write_sweep_report(results, out, strips=False).read_text()
    asked = "<script>document.title = document.documentElement.scrollWidth</script></body>"
    (tmp_path / "page.html").write_text(page.replace("</body>", asked))
    for width in (1280, 800):
        argv = [
            BROWSER, "--headless", "--no-sandbox", "--disable-gpu", f"--window-size={width},900",
            f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom",
            f"file://{tmp_path}/page.html",
        ]  # fmt: skip
        done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
        (shown,) = re.findall(r"<title>(\d+)</title>", done.stdout)
        assert int(shown) <= width


@pytest.mark.gl
def test_the_page_shows_film_strips(small):
    out, results = small
    page = write_sweep_report(results, out, strips=True).read_text()
    assert page.count("data:image/jpeg") == 3 * 6


@pytest.mark.accept
def test_every_engine_passes_through_the_conformance_suite(tmp_path):
    results = run_sweep(cells_of("bouncing_ball", "tuned", twice="none"), tmp_path / "s", workers=0)
    rows = {r["check"]: r for r in results.conformance}
    assert rows["free_fall"]["status"] == rows["pendulum_period"]["status"] == "ok"
    assert rows["cloth_stretch"]["status"] == "not_run"
    page = write_sweep_report(results, tmp_path / "s", strips=False).read_text()
    assert "What each engine does with each parameter" in page


def test_progress_tells_what_ended_and_how_long_the_rest_takes(tmp_path, capfd):
    with pytest.raises(SystemExit):
        main(
            ["sweep", "gauge", "--tasks", "bouncing_ball,slope_slider/2/wood", "--twice", "none",
             "--out", str(tmp_path / "s"), "--workers", "0", "--no-conformance", "--no-strips"]
        )  # fmt: skip
    lines = [x for x in capfd.readouterr().err.splitlines() if x]
    assert lines[0].startswith("1/2 bullet:published-settings:bouncing_ball/1/rubber: ok, ")
    assert "left" in lines[0]
    assert lines[1].startswith("2/2 ")


def test_a_repeat_that_differs_is_told_with_its_spread(small, tmp_path):
    _, results = small
    (one,) = results.twice
    assert one.said == "bit-identical"
    broken = one.model_copy(update={"same": False, "spread": 2.5e-4})
    assert broken.said == "differs by up to 0.25 mm, though bullet declares determinism"
    free = broken.model_copy(update={"declared": False})
    assert free.said == "differs by up to 0.25 mm (bullet declares no determinism)"
    page = write_sweep_report(
        results.model_copy(update={"twice": (broken,)}), tmp_path, strips=False
    ).read_text()
    assert broken.said in page


def test_a_spread_over_repeats_stands_beside_the_number(small):
    from wmeval.eval.sweep.tables import main_lines

    _, results = small
    (cell,) = [c for c in results.cells if c.cell.name.endswith("bouncing_ball/1/rubber")][:1]
    made = tuple(
        m.model_copy(update={"low": 10.0, "high": 12.0}) if m.metric == "rmse" else m
        for m in cell.measurements
    )
    one = results.model_copy(update={"cells": (cell.model_copy(update={"measurements": made}),)})
    entry = main_lines(one, "published-settings")[0].entries[0]
    assert "10 to 12 mm" in entry.more


@pytest.mark.accept
def test_a_cluster_s_cells_are_the_same_bytes(tmp_path):
    pytest.importorskip("ray")
    tasks = "slope_slider/2/wood,bouncing_ball,pendulum/1/metal,turntable/2/metal"
    cells = cells_of(tasks, twice="none")
    run_sweep(cells, tmp_path / "here", workers=0, conformance=False)
    run_sweep(cells, tmp_path / "ray", workers=2, executor="ray", conformance=False)
    here = sorted((tmp_path / "here" / "cells").glob("*.npz"))
    assert len(here) == 4
    for path in here:
        assert path.read_bytes() == (tmp_path / "ray" / "cells" / path.name).read_bytes()
