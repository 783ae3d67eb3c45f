"""Periods, energy losses, rests and momentum transfers of a user's own trials."""

import contextlib
import io

import numpy as np
import pytest

from wmeval.assets.gauge_cards import family
from wmeval.cli import main
from wmeval.datasets.mocap import Header, Mocap, make_trial, write_mocap
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import parse_engines
from wmeval.eval.sweep.results import read_sweep
from wmeval.eval.sweep.running import run_cell
from wmeval.eval.sweep.tables import main_lines, number_lines, real_lines
from wmeval.eval.truths import predict

PENDULUM, CRADLE = "pendulum/1/metal", "newtons_cradle/1/metal"
PERIODS = (1.24, 1.25, 1.26)
RATE = 120.0


def write(path, task, tracks, bodies, lost=None):
    """Trials of so many positions (N, B, 3) at `RATE`; ``lost``: rows of the first not measured."""
    name, subtask, material = task.split("/")
    header = Header(
        format="wmeval-mocap/1", title="made up", rate=RATE, bodies=bodies, family=name,
        subtask=subtask, material=material,
    )  # fmt: skip
    trials = []
    for k, positions in enumerate(tracks):
        if k == 0 and lost is not None:
            positions[lost] = np.nan
        arrays = {"positions": positions}  # balls with one marker have no orientation
        trials.append(make_trial(header, f"trial-{k}", np.arange(len(positions)) / RATE, arrays))
    write_mocap(Mocap(header, tuple(trials)), path)
    return str(path)


def swings(seconds=10.0, damping=0.02, place=(0.0, 0.0, 0.0)):
    """Of a ball on 0.3 m, let go at 60 degrees; e^-bt of the angle, in ``place`` beside the card's.

    Energies at the peaks are 1 - cos of the angle there.
    """
    pose = family("pendulum").poses("1", "metal")["ball"]
    t = np.arange(round(seconds * RATE) + 1) / RATE
    out = []
    for period in PERIODS:
        angle = np.pi / 3 * np.exp(-damping * t) * np.cos(2 * np.pi * t / period)
        x = np.zeros((len(t), 1, 3)) + np.add(pose.position, place)
        x[:, 0, 0] -= 0.3 * np.sin(angle)
        x[:, 0, 2] -= 0.3 * np.cos(angle)
        out.append(x)
    return out


def real_of(task, path):
    (cell,) = planning.plan(
        parse_engines("bullet"), planning.tasks_of(task), ["tuned"], twice="none", real=[path]
    )
    return {m.metric: m for m in run_cell(cell, "k").measurements if m.truth == "real"}


def test_periods_and_energy_losses_are_over_those_of_the_trials(tmp_path):
    found = real_of(PENDULUM, write(tmp_path / "p.h5", PENDULUM, swings(), ("ball",)))
    assert {"rmse", "dtw", "pd_fourier", "period", "el"} == set(found)
    period = found["period"]
    assert (period.baseline, period.spread, period.trials) == (
        pytest.approx(1.25, abs=1e-4), pytest.approx(0.01, rel=0.02), 3
    )  # fmt: skip
    assert period.value == pytest.approx(1.2558, abs=2e-3)
    assert period.normalised == pytest.approx(period.value / period.baseline)
    assert found["pd_fourier"].unit == period.unit == "s"
    # 8 bins of ten seconds, of trials as of the run.
    assert found["pd_fourier"].baseline == pytest.approx(found["pd_fourier"].value)
    peaks = [np.pi / 3 * np.exp(-0.02 * T * np.floor(2 * 9.9 / T) / 2) for T in PERIODS]
    losses = 1 - (1 - np.cos(peaks)) / (1 - np.cos(np.pi / 3))
    el = found["el"]
    # A peak between two frames is missed by 0.005 of the energy.
    assert el.baseline == pytest.approx(losses.mean(), abs=0.01)
    assert 0 < el.spread < 0.02
    # What is published is not beside it, and it is raw as published.
    assert el.normalised == el.value != el.baseline


def test_a_pendulum_that_hangs_elsewhere_loses_the_same(tmp_path):
    here = real_of(PENDULUM, write(tmp_path / "h.h5", PENDULUM, swings(), ("ball",)))
    there = real_of(
        PENDULUM, write(tmp_path / "t.h5", PENDULUM, swings(place=(0.4, 0, 0.3)), ("ball",))
    )
    for metric in ("el", "period", "pd_fourier"):
        assert there[metric].baseline == pytest.approx(here[metric].baseline, abs=1e-6)


def test_trials_that_are_shorter_or_have_a_gap_say_so(tmp_path):
    short = real_of(PENDULUM, write(tmp_path / "s.h5", PENDULUM, swings(6.0), ("ball",)))
    assert (short["period"].n, short["period"].reason) == (
        181, "covers 6 s of the record's 9.97 s"
    )  # fmt: skip
    gap = slice(200, 230)
    lost = real_of(PENDULUM, write(tmp_path / "g.h5", PENDULUM, swings(), ("ball",), gap))
    assert lost["pd_fourier"].reason == "pd_fourier is of 2 of 3 trials"
    assert (lost["pd_fourier"].trials, lost["period"].trials) == (2, 3)


def passes(bodies):
    """Trials of the cradle's closed form, timed 1 % apart; ball 1 lies still once it has hit."""
    card = family("newtons_cradle")
    poses = card.poses("1", "metal")
    (form,) = predict(card, "1", "metal")
    out = []
    for k in (0.99, 1.0, 1.01):
        t = np.arange(round(34.2 * RATE) + 1) / RATE / k
        x = np.zeros((len(t), len(bodies), 3))
        last = form.trajectory(t)
        for b, name in enumerate(bodies):
            if name == "ball_5":
                x[:, b] = last
                continue
            # As the last ball half a swing earlier, and where that one hangs once it has hit.
            quarter = form.numbers["impact"].value
            down = np.minimum(t / quarter, 1.0)
            high = poses[name].position[2] - last[:, 2].min()
            x[:, b] = last[0]
            x[:, b, 2] += np.cos(down * np.pi / 2) * max(high, 0.05)
        out.append(x)
    return out


def test_rests_and_transfers_are_over_those_of_the_trials(tmp_path):
    path = write(tmp_path / "c.h5", CRADLE, passes(("ball_1", "ball_5")), ("ball_1", "ball_5"))
    found = real_of(CRADLE, path)
    assert found["lsd"].trials == found["mte_first"].trials == 3
    # 0.38 s is published of real ones, and the ideal course rests as long at 30 frames a second.
    assert found["lsd"].baseline == pytest.approx(11 / 30, abs=0.02)
    assert found["mte_first"].baseline > 50
    assert found["mte_first"].spread < 5
    alone = write(tmp_path / "one.h5", CRADLE, passes(("ball_5",)), ("ball_5",))
    told = real_of(CRADLE, alone)
    assert told["lsd"].value is not None
    assert (told["mte_first"].value, told["mte_first"].unit) == (None, "%")
    assert told["mte_first"].reason == "one.h5 has no body 'ball_1', which this number needs"


def test_report_and_command_show_them(tmp_path):
    path = write(tmp_path / "p.h5", PENDULUM, swings(), ("ball",))
    said = io.StringIO()
    with pytest.raises(SystemExit) as stop, contextlib.redirect_stdout(said):
        main(
            ["sweep", "gauge", "--tasks", PENDULUM, "--real", path, "--workers", "0", "--no-strips",
             "--no-conformance", "--twice", "none", "--config", "tuned", "--out",
             str(tmp_path / "s")]
        )  # fmt: skip
    assert stop.value.code == 0
    results = read_sweep(tmp_path / "s")
    lines = {line.what: line for line in real_lines(results, "tuned")}
    assert lines["Period"].expected == "1.25 ± 0.0100 s (3 trials)"
    assert {"RMSE", "DTW", "Period"} < set(lines)
    page = (tmp_path / "s" / "report.html").read_text()
    for text in (said.getvalue(), page):
        assert "1.25 ± 0.0100 s" in text
    # GAUGE's and the closed form's keep their own rows.
    (row,) = [x for x in main_lines(results, "tuned") if x.what.startswith("Period,")]
    assert any(e.text != "–" for e in row.published)
    assert "real" not in {x.truth for x in number_lines(results, "tuned")}
    own = results.cells[0].measurement("period")
    assert own.expected is not None, "the closed form's is found first"
