"""What a sweep of many engines prints and shows stays short and legible."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from wmeval.cli import main
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import EngineSpec, parse_engines
from wmeval.eval.sweep.report import write_sweep_report
from wmeval.eval.sweep.sweeping import gather, run_sweep
from wmeval.eval.sweep.tables import main_lines

BROWSER = next(
    (b for b in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if b), None
)
REASON = "time-out after 90 s, at t = 27.2 s of 34.2 s"


@pytest.fixture(scope="module")
def four(tmp_path_factory):
    """Results as four engines would have them, two of them timed out."""
    out = tmp_path_factory.mktemp("four") / "s"
    tasks = planning.tasks_of("newtons_cradle,turntable/1/metal")
    cells = planning.plan(parse_engines("bullet"), tasks, ["tuned"], twice="none")
    ran = run_sweep(cells, out, workers=0, conformance=False, limit=60.0).cells
    made = []
    for label in ("newton", "genesis", "physx", "bullet"):
        for r in ran:
            cell = r.cell.model_copy(update={"engine": EngineSpec(label=label, adapter=label)})
            changes = {"cell": cell, "version": "1.4.5"}
            if r.cell.family == "newtons_cradle" and label in ("newton", "genesis"):
                changes |= {"status": "time_out", "reason": REASON, "measurements": ()}
            made.append(r.model_copy(update=changes))
    return out, gather(out, made, [], {})


def test_a_cell_that_timed_out_says_so_in_two_words_and_in_full_elsewhere(four):
    out, results = four
    (rest, *_) = [x for x in main_lines(results, "tuned") if x.task.startswith("newtons_cradle")]
    assert [e.text for e in rest.entries[:2]] == ["time out"] * 2
    assert [e.more for e in rest.entries[:2]] == [""] * 2
    page = write_sweep_report(results, out, strips=False).read_text()
    assert page.count(f'title="{REASON}"') >= 2
    assert f">{REASON}</td>" in page


@pytest.mark.skipif(BROWSER is None, reason="no browser is installed")
def test_tables_of_four_engines_do_not_scroll_and_no_text_leaves_its_cell(four, tmp_path):
    out, results = four
    page = write_sweep_report(results, out, strips=False).read_text()
    asked = """<script>
    const all = (what, spare) => [...document.querySelectorAll(what)].filter(
      x => x.scrollWidth > x.clientWidth + spare).length;
    document.title = all('.scroll', 0) + ' ' + all('td div, td', 1)</script></body>"""
    (tmp_path / "page.html").write_text(page.replace("</body>", asked))
    argv = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,900",
        f"--user-data-dir={tmp_path / 'profile'}", "--dump-dom", f"file://{tmp_path}/page.html",
    ]  # fmt: skip
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    assert re.findall(r"<title>(\d+ \d+)</title>", done.stdout) == ["0 0"]


def test_what_was_not_run_is_told_by_its_reason(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("wmeval.eval.sweep.prepared.absent", lambda engine: "Isaac Sim is not here")
    with pytest.raises(SystemExit):
        main(
            ["sweep", "gauge", "--engines", "isaac", "--tasks", "slope_slider,bouncing_ball",
             "--twice", "none", "--out", str(tmp_path / "s"), "--workers", "0",
             "--no-conformance", "--no-strips"]
        )  # fmt: skip
    lines = capsys.readouterr().out.splitlines()
    assert "not run: isaac, 10 cells: Isaac Sim is not here" in lines
    assert not any(line.startswith("slope_slider") for line in lines)
    assert len(lines) < 8


def test_numbers_of_cells_hold_what_the_rows_hold(four):
    import json

    out, results = four
    run = json.loads(results.model_dump_json())
    told = {
        (c["cell"]["engine"]["label"], c["cell"]["family"], m["metric"], m["truth"]): m[
            "normalised"
        ]
        for c in run["cells"]
        for m in c["measurements"]
    }
    rows = {
        (r["engine"], r["task"], r["metric"], r["truth"]): r["normalised"]
        for r in run["rows"]
        if r["metric"]
    }
    assert told == rows
    assert any(told.values())
    assert type(results).model_validate_json(results.model_dump_json()) == results
    assert Path(out).is_dir()


def test_one_number_has_one_scale_in_a_cell(four):
    _, results = four
    for r in results.cells:
        units = {(m.metric, m.unit) for m in r.measurements}
        assert len(units) == len({metric for metric, _ in units})
    (cradle,) = [
        r for r in results.cells
        if r.cell.family == "newtons_cradle" and r.cell.engine.label == "bullet"
    ]  # fmt: skip
    passed = {m.truth: m.value for m in cradle.measurements if m.metric == "mte_first"}
    if cradle.status == "ok":  # within its time, on a slow machine
        assert len(passed) == 2
        assert len(set(passed.values())) == 1
