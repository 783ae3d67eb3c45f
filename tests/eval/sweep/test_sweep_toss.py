"""CubeToss: engines against tosses of a cube, made up with known answers and real ones."""

from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from wmeval.datasets.mocap import read_contactnets
from wmeval.datasets.mocap.contactnets import GRAVITY, HALF_WIDTH, RATE
from wmeval.errors import UserError
from wmeval.eval.sweep import planning, toss
from wmeval.eval.sweep.cells import CellResult, Measurement, parse_engines
from wmeval.eval.sweep.report import write_sweep_report
from wmeval.eval.sweep.sweeping import run_sweep
from wmeval.eval.sweep.tables import terminal_tables
from wmeval.records import StateLog

REAL = Path(__file__).parents[4] / "shared/data/contactnets/contactnets_cube_tosses.npz"


def tosses_file(path, tosses=3, frames=20, error=0.0):
    """Tosses that fly freely, turning about z; ``error``: the cube is off by so much, linearly."""
    t = np.arange(frames) / RATE
    p, q, v, w = [], [], [], []
    for k in range(tosses):
        start, speed = np.array([0.1, 0.2, 0.4 + 0.1 * k]), np.array([0.5, -0.3, 1.0])
        fall = np.outer(-GRAVITY * t**2 / 2, [0, 0, 1])
        p.append(start + t[:, None] * speed + fall + error * t[:, None] * np.array([1, 0, 0]))
        rate = 2.0 + k
        q.append(np.stack([np.cos(rate * t / 2), 0 * t, 0 * t, np.sin(rate * t / 2)], axis=1))
        v.append(speed + np.outer(-GRAVITY * t, [0, 0, 1]))
        w.append(np.tile([0.0, 0.0, rate], (frames, 1)))
    np.savez(
        path, offsets=np.arange(tosses + 1) * frames, toss_id=np.arange(tosses),
        position_m=np.concatenate(p), quaternion_wxyz=np.concatenate(q),
        linear_velocity_mps=np.concatenate(v), angular_velocity=np.concatenate(w),
    )  # fmt: skip
    return path


def sweep(tmp_path, data, task="cube_toss", config="tuned", engines="bullet", **options):
    cells = planning.plan(
        parse_engines(engines), planning.tasks_of(task), [config], tosses=str(data)
    )
    return run_sweep(cells, tmp_path / "s", workers=0, conformance=False, **options)


def test_free_flight_is_followed_and_the_spread_is_of_the_declared_noise(tmp_path):
    results = sweep(tmp_path, tosses_file(tmp_path / "t.npz"))
    (cell,) = results.cells
    assert cell.status == "ok"
    found = {m.metric: m for m in cell.measurements}
    assert found["position_error"].n == 3
    # The measured start flies exactly; the 15 others with the noise of their start and speed.
    course = np.load(tmp_path / "s" / "cells" / f"{cell.key}.npz")["toss_course"]
    assert np.nanmax(course) < 1e-3
    t = np.arange(20) / RATE
    sigma = np.sqrt(3 * (toss.SIGMA.position**2 + (toss.SIGMA.linear * t) ** 2)).mean() * 1e3
    assert found["draw_spread"].value == pytest.approx(sigma, rel=0.2)
    assert found["rotation_error"].value < 2.0
    assert found["penetration"].value == 0.0
    assert found["position_error"].low <= found["position_error"].value
    assert "by the authors" in cell.facts["fitted_on"]
    page = write_sweep_report(results, tmp_path / "s", strips=False).read_text()
    assert "Against real cube tosses" in page
    assert "bullet" in terminal_tables(results)[0].columns[0]._cells


def test_states_between_substeps_are_interpolated():
    t = np.arange(5) / 10
    position = np.stack([t, 2 * t, 0 * t], axis=1)[:, None]
    turn = np.stack([np.cos(t), 0 * t, 0 * t, np.sin(t)], axis=1)[:, None]
    turn[2] *= -1  # the same orientation
    zero = np.zeros((5, 1, 3))
    state = StateLog(
        ("cube",), Fraction(1, 10), np.arange(5), position, turn, zero, zero,
        np.ones((5, 1), bool), np.full((5, 1), 2, np.uint8),
    )  # fmt: skip
    x, q = toss.at_times(state, np.array([0.0, 0.15, 0.4]))
    assert x[:, 0] == pytest.approx(np.array([[0, 0, 0], [0.15, 0.3, 0], [0.4, 0.8, 0]]))
    assert abs(q[1, 0] @ [np.cos(0.15), 0, 0, np.sin(0.15)]) == pytest.approx(1, abs=1e-6)


def test_engines_closer_than_the_spread_are_tied():
    (cell,) = planning.plan(parse_engines("bullet"), planning.tasks_of("cube_toss"), ["tuned"])

    def result(label, error, spread=8.0):
        engine = cell.engine.model_copy(update={"label": label})
        return CellResult(
            cell=cell.model_copy(update={"engine": engine}), key=label, status="ok",
            measurements=(
                Measurement(metric="position_error", truth="real", value=error, unit="mm"),
                Measurement(metric="draw_spread", truth="real", value=spread, unit="mm"),
            ),
        )  # fmt: skip

    made = toss.standings([result("a", 30.0), result("b", 20.0), result("c", 25.0)])
    assert [(s.result.key, s.tied) for s in made] == [("b", True), ("c", True), ("a", False)]


def test_what_is_missing_is_said(tmp_path, monkeypatch):
    with pytest.raises(UserError, match="write how many tosses"):
        planning.tasks_of("cube_toss/few")
    monkeypatch.setattr(toss, "data_home", lambda: tmp_path / "none")
    cells = planning.plan(parse_engines("bullet,isaac"), planning.tasks_of("cube_toss"), ["tuned"])
    results = run_sweep(cells, tmp_path / "s", workers=0, conformance=False)
    assert [c.status for c in results.cells] == ["not_run", "not_run"]
    assert "wmeval data get contactnets" in results.cells[0].reason
    assert results.cells[1].reason == "Isaac Sim is not installed"


def test_a_sweep_of_tosses_stops_at_its_limit(tmp_path):
    results = sweep(tmp_path, tosses_file(tmp_path / "t.npz", tosses=5), limit=1e-6)
    (cell,) = results.cells
    assert cell.status == "time_out"
    assert "1 of 5 tosses done" in cell.reason


@pytest.mark.skipif(not REAL.is_file(), reason="the recording is not here")
def test_bullet_stays_within_a_cube_s_width_of_the_real_ones(tmp_path):
    results = sweep(tmp_path, REAL, "cube_toss/4", "published-settings")
    found = {m.metric: m for m in results.cells[0].measurements}
    assert 2 < found["position_error"].value < 1e3 * HALF_WIDTH
    assert found["rotation_error"].value < 60
    assert found["draw_spread"].value > 2


@pytest.mark.skipif(not REAL.is_file(), reason="the recording is not here")
def test_every_real_toss_has_a_first_state():
    starts = [toss.start_of(t) for t in read_contactnets(REAL).trials[::40]]
    assert all(np.isfinite(s.linear).all() for s in starts)
