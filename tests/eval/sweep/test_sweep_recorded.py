"""A user's own trials as truth: their mean, and their own spread as the unit."""

import contextlib
import io
import json
from pathlib import Path

import numpy as np
import pytest
import yaml

from wmeval.assets.gauge_markers import markers
from wmeval.assets.gauge_published import published
from wmeval.cli import main
from wmeval.datasets.checksums import sha256_of
from wmeval.datasets.mocap import Header, Mocap, make_trial, read_mocap, write_mocap
from wmeval.envs.gauge import configurations
from wmeval.errors import UserError
from wmeval.eval.metrics.trajectory import rmse
from wmeval.eval.sweep import fitted, planning, sweeping
from wmeval.eval.sweep.cells import CellResult, parse_engines
from wmeval.eval.sweep.measure import reference_of
from wmeval.eval.sweep.recorded import over_trials, without_each
from wmeval.eval.sweep.results import SweepResults, read_sweep
from wmeval.eval.sweep.running import run_cell
from wmeval.eval.sweep.tables import main_lines, real_lines

TASK = "bouncing_ball/1/rubber"


def write(path, *, family="bouncing_ball", bodies=("ball",), offsets=(-1e-3, 1e-3), rate=90.0,
          place=(0.0, 0.0, 0.0)):  # fmt: skip
    """Trials of the closed form, each off by so much along x, at another rate than 30 Hz."""
    card = planning.tasks_of(TASK)[0].card
    times = np.arange(52) / rate
    _, true = reference_of(card, "1", "rubber", times)
    header = Header(
        format="wmeval-mocap/1", title="made up", rate=rate, bodies=bodies, family=family,
        subtask="1", material="rubber",
    )  # fmt: skip
    trials = tuple(
        make_trial(
            header, f"trial-{k}", times + 3.0,
            {"positions": (true + np.add([off, 0, 0], place))[:, None]},
        )
        for k, off in enumerate(offsets)
    )  # fmt: skip
    write_mocap(Mocap(header, trials), path)
    return str(path)


def test_an_engine_is_held_against_the_mean_of_the_trials(tmp_path):
    path = write(tmp_path / "own.h5")
    (cell,) = planning.plan(
        parse_engines("bullet"), planning.tasks_of(TASK), ["tuned"], twice="none", real=[path]
    )
    result = run_cell(cell, "k")
    real, closed = result.measurement("rmse", "real"), result.measurement("rmse", "ball_bounces")
    assert real.baseline == pytest.approx(1.0, rel=1e-6)  # mm: each is 1 mm off their mean
    # Their mean is the closed form, but for the kinks of a bounce between samples.
    assert real.value == pytest.approx(closed.value, abs=0.5)
    assert real.normalised == pytest.approx(real.value)
    assert real.n == 18


def test_a_recording_made_elsewhere_in_space_is_compared_from_its_own_start(tmp_path, capsys):
    found = {}
    for name, place in {"here": (0, 0, 0), "there": (0.3, 0, 0.4), "near": (0, 0.002, 0)}.items():
        path = write(tmp_path / f"{name}.h5", place=place)
        (cell,) = planning.plan(
            parse_engines("bullet"), planning.tasks_of(TASK), ["tuned"], twice="none", real=[path]
        )
        found[name] = run_cell(cell, "k").measurement("rmse", "real")
    here, there = found["here"], found["there"]
    assert there.value == pytest.approx(here.value, abs=1e-6)
    assert there.normalised < 50
    assert there.reason == "from the recording's own start, which is 500 mm from the card's"
    assert here.reason == ""
    # Two millimetres are a fault of the engine or of the set-up, not another place.
    assert found["near"].reason == ""
    assert found["near"].value == pytest.approx(np.hypot(here.value, 2), rel=0.2)
    with pytest.raises(SystemExit):
        main(
            ["sweep", "gauge", "--tasks", TASK, "--real", str(tmp_path / "there.h5"), "--workers",
             "0", "--no-conformance", "--no-strips", "--twice", "none", "--out",
             str(tmp_path / "s")]
        )  # fmt: skip
    assert f"{TASK} against real: {there.reason}\n" in capsys.readouterr().out


def test_a_baseline_of_own_trials_says_its_spread_and_how_many_they_are(tmp_path):
    found = real_of(write(tmp_path / "own.h5", offsets=(-2e-3, 0.0, 2e-3)), "rmse")
    # The trials are 2, 0 and 2 mm off their mean.
    off = np.array([2.0, 0.0, 2.0])
    assert found.baseline == pytest.approx(off.mean(), rel=1e-6)
    assert found.spread == pytest.approx(off.std(ddof=1), rel=1e-6)
    assert found.trials == 3
    dtw = real_of(str(tmp_path / "own.h5"), "dtw")
    assert dtw.spread > 0
    assert dtw.trials == 3


def test_two_trials_have_no_spread_of_what_they_are_off_their_mean(tmp_path):
    path = write(tmp_path / "two.h5", offsets=(-2e-3, 2e-3))
    for metric in ("rmse", "dtw"):
        found = real_of(path, metric)
        assert (found.trials, found.spread) == (2, None)
        assert found.baseline == pytest.approx(2.0, rel=1e-2)


def test_an_error_against_trials_has_the_interval_that_they_leave_it(tmp_path):
    """By leaving each trial out in turn: of errors along one line it is known."""
    mean = np.zeros((40, 3))
    trials = [mean + np.array([k, 0.0, 0.0]) for k in (-2.0, 0.0, 2.0)]
    found = mean + np.array([10.0, 0.0, 0.0])
    low, high = over_trials(10.0, [rmse(found, m) for m in without_each(trials)])
    # Left out in turn the mean is at 1, 0 and -1: as the standard error of the mean says.
    half = 4.302653 * 2 / np.sqrt(3)
    assert (low, high) == (pytest.approx(10 - half), pytest.approx(10 + half))
    assert over_trials(1.0, [0.0, 5.0])[0] == 0.0
    assert over_trials(1.0, [1.0, np.nan]) == (None, None)
    # A frame that one trial alone has has no mean without it.
    trials[0][3] = np.nan
    trials[1][3] = np.nan
    assert np.isnan(without_each(trials)[2][3]).all()
    for metric in ("rmse", "dtw"):
        told = real_of(write(tmp_path / "own.h5", offsets=(-2e-3, 1e-3, 2e-3)), metric)
        assert 0 <= told.low < told.value < told.high


@pytest.fixture(scope="module")
def swept(tmp_path_factory):
    """A sweep against own trials: its folder, and what it printed."""
    out = tmp_path_factory.mktemp("own")
    path = write(out / "own.h5", offsets=(-2e-3, 0.0, 2e-3))
    with pytest.raises(SystemExit) as stop, contextlib.redirect_stdout(io.StringIO()) as said:
        main(
            ["sweep", "gauge", "--tasks", TASK, "--real", path, "--workers", "0", "--no-strips",
             "--no-conformance", "--twice", "none", "--config", "tuned", "--out", str(out / "s")]
        )  # fmt: skip
    assert stop.value.code == 0
    return out / "s", said.getvalue()


def test_own_trials_have_a_table_of_their_own_with_their_baseline(swept):
    out, said = swept
    results = read_sweep(out)
    assert "real" not in {line.truth for line in main_lines(results, "tuned")}
    lines = {line.what: line for line in real_lines(results, "tuned")}
    assert lines["RMSE"].expected == "1.33 ± 1.15 mm (3 trials)"
    assert lines["RMSE"].under == "own.h5"
    assert lines["RMSE"].published == ()
    page = (out / "report.html").read_text()
    assert "1.33 ± 1.15 mm" in page
    table = page[page.index("own recordings") :]
    assert "published" not in table[: table.index("</table>")]
    own = said[said.index("tuned: against own recordings") :]
    assert "1.33 ± 1.15 mm (3 trials)" in own
    assert "own recordings" not in said[: said.index("tuned: against own recordings")]


def test_rows_hold_the_baseline_and_no_published_number_of_other_trials(swept):
    out, _ = swept
    rows = {(r["metric"], r["truth"]): r for r in json.loads((out / "results.json").read_text())[
        "rows"]}  # fmt: skip
    own, form = rows["rmse", "real"], rows["rmse", "ball_bounces"]
    assert (own["baseline"], own["spread"], own["trials"]) == (
        pytest.approx(4 / 3, rel=1e-6), pytest.approx(1.1547, rel=1e-4), 3
    )  # fmt: skip
    assert own["low"] < own["value"] < own["high"]
    assert own["published_newton"] is None
    known = published().find("bouncing_ball", "1", "rubber", "rmse")
    assert form["published_newton"] == known.engines["newton"]
    assert (form["baseline"], form["spread"], form["trials"]) == (known.baseline, known.spread, 20)


def changed(path, change):
    """A recording whose trials' (times, positions) are changed."""
    mocap = read_mocap(path)
    trials = []
    for k, t in enumerate(mocap.trials):
        times, positions = change(k, t.times.copy(), t.positions.copy())
        turn = np.tile([1.0, 0, 0, 0], (len(times), positions.shape[1], 1))
        trials.append(make_trial(
            mocap.header, t.name, times, {"positions": positions, "quaternions_wxyz": turn}
        ))  # fmt: skip
    write_mocap(Mocap(mocap.header, tuple(trials)), path)
    return path


def real_of(path, metric):
    (cell,) = planning.plan(
        parse_engines("bullet"), planning.tasks_of(TASK), ["tuned"], twice="none", real=[path]
    )
    return run_cell(cell, "k").measurement(metric, "real")


def lost(rows):
    def change(k, times, positions):
        positions[rows(k)] = np.nan
        return times, positions

    return change


def cut_out(k, times, positions):
    keep = ~((times - times[0] > 0.19) & (times - times[0] < 0.31))
    return times[keep], positions[keep]


@pytest.mark.parametrize(
    ("change", "frames", "said"),
    [
        (lost(lambda k: slice(18, 27)), 15,
         "3 of 18 frames are measured in no trial and left out"),
        (cut_out, 14, "4 of 18 frames are measured in no trial and left out"),
        (lost(lambda k: slice(18, 27) if k else slice(0, 0)), 18,
         "in 3 of 18 frames the mean is not of all trials"),
    ],
)  # fmt: skip
def test_a_gap_in_a_recording_is_left_out_on_both_sides(tmp_path, change, frames, said):
    whole = real_of(write(tmp_path / "whole.h5"), "dtw")
    path = changed(write(tmp_path / "gap.h5"), change)
    found = real_of(path, "dtw")
    assert found.n == frames
    assert found.reason == said
    # A millimetre between trials, and the engine's own error, not the centimetres of a gap.
    assert found.baseline == pytest.approx(whole.baseline, abs=0.6)
    assert found.value == pytest.approx(whole.value, abs=0.6)
    assert real_of(path, "rmse").n == frames


def first(count):
    return lambda k, times, positions: (times[:count], positions[:count])


@pytest.mark.parametrize("frames", [1, 3, 20])
def test_a_recording_of_a_few_frames_is_refused_before_anything_runs(tmp_path, frames):
    path = changed(write(tmp_path / "short.h5"), first(frames))
    lasts = f"{(frames - 1) / 90:.3g} s"
    with pytest.raises(UserError, match=f"'trial-0' covers {lasts} of the record's 0.567 s"):
        real_of(path, "rmse")


def test_how_far_a_recording_and_a_record_overlap_is_said(tmp_path):
    path = changed(write(tmp_path / "part.h5"), first(40))
    found = real_of(path, "rmse")
    assert (found.n, found.reason) == (14, "covers 0.433 s of the record's 0.567 s")
    longer = changed(
        write(tmp_path / "long.h5"),
        lambda k, t, x: (np.arange(150) / 90, np.concatenate([x, np.repeat(x[-1:], 98, axis=0)])),
    )
    assert real_of(longer, "rmse").reason == (
        "its trials last 1.66 s, the record 0.567 s: only their beginning is compared (are the "
        "times in seconds?)"
    )
    holes = changed(write(tmp_path / "holes.h5"), lost(lambda k: slice(15, 45)))
    told = real_of(holes, "rmse")
    assert told.value is None
    assert "of the record's 18 frames are measured; 50 % are needed" in told.reason


def test_lengths_in_another_unit_are_refused_or_said(tmp_path):
    """Millimetres said to be metres, and centimetres said to be metres or the reverse."""

    def times(scale):
        return lambda k, t, x: (t, x * scale)

    far = changed(write(tmp_path / "m.h5", place=(0.3, 0, 0.4)), times(1000))
    with pytest.raises(UserError, match="mm from the card's place, more than 10 times the scene"):
        real_of(far, "rmse")
    (cell,) = planning.plan(parse_engines("bullet"), planning.tasks_of(TASK), ["tuned"],
                            twice="none")  # fmt: skip
    told = run_cell(cell.model_copy(update={"data": far}), "k").measurement("rmse", "real")
    assert told.value is None
    assert "mm from the card's place, more than 10 times the scene" in told.reason
    for scale in (10, 0.01):
        found = real_of(changed(write(tmp_path / f"{scale}.h5"), times(scale)), "rmse")
        assert "are its lengths in the unit that its header says?" in found.reason
    assert real_of(write(tmp_path / "lab.h5", place=(4.0, 5.0, 0.0)), "rmse").value < 50


def test_markers_in_another_unit_or_number_are_refused(tmp_path):
    (task,) = planning.tasks_of("foam_stretching/1/soft")
    worn = markers(task.card, "1", "soft")

    def made(scale, count):
        header = Header(
            format="wmeval-mocap/1", title="made up", family="foam_stretching",
            markers=tuple(f"m{k}" for k in range(count)),
        )  # fmt: skip
        points = np.tile(scale * worn.points[:count], (60, 1, 1))
        path = tmp_path / f"{scale}-{count}.json"
        trials = [make_trial(header, n, np.arange(60) / 60, {"markers": points}) for n in "ab"]
        write_mocap(Mocap(header, tuple(trials)), path)
        return planning.plan(parse_engines("bullet"), [task], ["tuned"], real=[str(path)])

    whole = len(worn.points)
    assert made(1.0, whole)
    for scale in (10.0, 1e-3):
        with pytest.raises(UserError, match=r"its markers span .* are its lengths in the unit"):
            made(scale, whole)
    with pytest.raises(UserError, match="1 markers; foam_stretching wears"):
        made(1.0, 1)


def test_identical_trials_are_no_unit(tmp_path, capsys):
    path = write(tmp_path / "same.h5", offsets=(0.0, 0.0, 0.0))
    for metric in ("rmse", "dtw"):
        found = real_of(path, metric)
        assert found.value > 0
        assert (found.baseline, found.normalised) == (None, None)
        assert found.reason == "trials do not differ: nothing to divide by"


def test_a_recording_is_used_for_its_own_set_up_only(tmp_path):
    path = write(tmp_path / "own.h5")
    cells = planning.plan(
        parse_engines("bullet"), planning.tasks_of("bouncing_ball,pendulum/1"), ["tuned"],
        twice="none", real=[path],
    )  # fmt: skip
    assert {c.task: bool(c.data) for c in cells}[TASK]
    assert sum(bool(c.data) for c in cells) == 1
    assert len(cells) > 1


def test_recordings_that_do_not_fit_are_refused(tmp_path):
    other = write(tmp_path / "a.h5", family=None)
    tasks = planning.tasks_of(TASK)
    with pytest.raises(UserError, match="family None is none of GAUGE's"):
        planning.plan(parse_engines("bullet"), tasks, ["tuned"], real=[other])
    one = write(tmp_path / "b.h5", offsets=(0.0,))
    with pytest.raises(UserError, match="two trials or more"):
        planning.plan(parse_engines("bullet"), tasks, ["tuned"], real=[one])
    wrong = write(tmp_path / "c.h5", bodies=("cube",))
    with pytest.raises(UserError, match=r"c\.h5: has no body 'ball'.*; its bodies: cube"):
        planning.plan(parse_engines("bullet"), tasks, ["tuned"], real=[wrong])
    # What is found only as it runs costs no other number.
    (cell,) = planning.plan(parse_engines("bullet"), tasks, ["tuned"], twice="none")
    cell = cell.model_copy(update={"data": wrong})
    result = run_cell(cell, "k")
    told = result.measurement("rmse", "real")
    assert told.value is None
    assert "has no body 'ball'" in told.reason
    # What needs no recording is measured all the same.
    assert result.measurement("rmse", "ball_bounces").value > 0
    results = SweepResults(wmeval="0", engines=(cell.engine,), versions={}, cells=(result,))
    (note,) = results.notes()
    assert note == f"{cell.name} against real: rmse, dtw not measured: {told.reason}"


def fitted_file(path, data, **changes):
    """Numbers of a ball that were fitted to two trials of a recording."""
    identified = {
        "engine": "bullet", "data": "own.h5", "sha256": sha256_of(Path(data)), "half": "odd",
        "trials": ["trial-1", "trial-3"], "parameters": {}, "start": {}, "bounds": {},
        "loss": "rmse", "loss_before": 2.0, "loss_after": 1.0, "evaluations": 9,
        "optimizer": "by hand", **changes,
    }  # fmt: skip
    fit = {"family": "bouncing_ball", "fitted_on": "half of own.h5", "identified": identified}
    path.write_text(yaml.safe_dump(fit))
    return str(path)


def planned(config, data):
    return planning.plan(
        parse_engines("bullet"), planning.tasks_of(TASK), [config], twice="none", real=[data]
    )


def test_trials_that_were_fitted_on_are_left_out_of_the_truth(tmp_path):
    data = write(tmp_path / "own.h5", offsets=(-1e-3, 0.5, 1e-3, 0.7))
    (cell,) = planned(fitted_file(tmp_path / "fit.yaml", data), data)
    real = run_cell(cell, "k").measurement("rmse", "real")
    assert real.baseline == pytest.approx(1.0, rel=1e-6)  # of trials 0 and 2 alone
    closed = run_cell(cell, "k").measurement("rmse", "ball_bounces")
    assert real.value == pytest.approx(closed.value, abs=0.5)
    most = fitted_file(
        tmp_path / "most.yaml", data, trials=["trial-0", "trial-1", "trial-3"]
    )  # fmt: skip
    (cell,) = planned(most, data)
    told = run_cell(cell, "k").measurement("dtw", "real")
    assert (told.value, told.unit) == (None, "mm")
    assert "1 of its 4 trials were not fitted on" in told.reason


def test_a_fit_that_cannot_be_kept_apart_from_a_recording_is_refused(tmp_path):
    data = write(tmp_path / "own.h5")
    other = fitted_file(tmp_path / "other.yaml", data, sha256="0" * 64)
    with pytest.raises(UserError, match="is another file: score on the one that was fitted on"):
        planned(other, data)
    by_hand = tmp_path / "hand.yaml"
    by_hand.write_text("family: bouncing_ball\nfitted_on: the first half\n")
    with pytest.raises(UserError, match="names no trials"):
        planned(str(by_hand), data)
    # Against closed forms it needs none.
    tasks = planning.tasks_of(TASK)
    assert planning.plan(parse_engines("bullet"), tasks, [str(by_hand)], twice="none")


def test_a_fit_is_read_and_its_recording_hashed_once_for_a_whole_grid(tmp_path, monkeypatch):
    data = write(tmp_path / "own.h5", offsets=(-1e-3, 0.5, 1e-3, 0.7))
    path = fitted_file(tmp_path / "fit.yaml", data, seed=20)
    calls = []
    for module, name in ((configurations.yaml, "safe_load"), (fitted, "sha256_of")):
        monkeypatch.setattr(module, name, counted(calls, name, getattr(module, name)))
    cells = planning.plan(
        parse_engines("bullet"), planning.tasks_of(TASK), [path],
        planning.parse_grid("iterations=10,20,30,40"), real=[data], twice="all",
    )  # fmt: skip
    assert len(cells) == 8
    assert sorted(calls) == ["safe_load", "sha256_of"]
    # A file that says something else is read anew.
    fitted_file(tmp_path / "fit.yaml", data, trials=["trial-0"])
    assert configurations.read_fitted(path).identified.trials == ("trial-0",)
    hashed = []
    monkeypatch.setattr(sweeping, "sha256_of", counted(hashed, "hashed", sweeping.sha256_of))
    monkeypatch.setattr(sweeping, "run_cell", lambda c, key, **_: CellResult(
        cell=c, key=key, status="not_run"))  # fmt: skip
    sweeping.run_sweep(cells, tmp_path / "s", workers=0, conformance=False)
    assert hashed == ["hashed"]


def counted(calls, name, function):
    def call(*args, **kwargs):
        calls.append(name)
        return function(*args, **kwargs)

    return call
