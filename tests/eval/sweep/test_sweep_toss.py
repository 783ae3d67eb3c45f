"""CubeToss: engines against tosses of a cube, made up with known answers and real ones."""

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from engine_worlds import engine_here

from wmeval.datasets.mocap import Mocap, read_contactnets, write_mocap
from wmeval.datasets.mocap.contactnets import GRAVITY, HALF_WIDTH, RATE, TossState
from wmeval.errors import UserError
from wmeval.eval.fitting import cubes, tosses
from wmeval.eval.sweep import planning, running, toss
from wmeval.eval.sweep.cells import CellResult, Measurement, parse_engines
from wmeval.eval.sweep.report import write_sweep_report
from wmeval.eval.sweep.results import SweepResults
from wmeval.eval.sweep.sweeping import run_sweep
from wmeval.eval.sweep.tables import terminal_tables
from wmeval.eval.sweep.toss_section import band
from wmeval.eval.sweep.toss_standing import difference, standings
from wmeval.eval.sweep.unlike import unlike
from wmeval.sim.protocol import EngineConfig

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


def sweep(
    tmp_path, data, task="cube_toss", config="tuned", engines="bullet", twice="none", **options
):
    cells = planning.plan(
        parse_engines(engines), planning.tasks_of(task), [config], tosses=str(data), twice=twice
    )
    return run_sweep(cells, tmp_path / "s", workers=0, conformance=False, **options)


def test_free_flight_is_followed_and_the_spread_is_of_the_declared_noise(tmp_path):
    results = sweep(tmp_path, tosses_file(tmp_path / "t.npz"))
    (cell,) = results.cells
    assert cell.status == "ok"
    found = {m.metric: m for m in cell.measurements}
    assert found["position_error"].n == 3
    # The measured start flies exactly; the 16 others with the noise of their start and speed.
    stored = np.load(tmp_path / "s" / "cells" / f"{cell.key}.npz")
    assert stored["toss_position"].shape == (3, 17)
    assert stored["toss_position"][:, 0].max() < 1e-3
    assert stored["toss_course"].shape == stored["toss_turn"].shape == (3, 20)
    assert found["first_position_error"].value < 1
    assert cell.facts["tosses"]["toss-001"] == pytest.approx(
        1e3 * stored["toss_position"][1].mean(), abs=1e-3
    )
    t = np.arange(20) / RATE
    sigma = np.sqrt(3 * (toss.SIGMA.position**2 + (toss.SIGMA.linear * t) ** 2)).mean() * 1e3
    assert found["draw_spread"].value == pytest.approx(sigma, rel=0.2)
    assert found["rotation_error"].value < 2.0
    assert found["penetration"].value == 0.0
    assert found["position_error"].low <= found["position_error"].value
    assert "by the authors" in cell.facts["fitted_on"]
    page = write_sweep_report(results, tmp_path / "s", strips=False).read_text()
    assert "Against real cube tosses" in page
    assert "fitted (friction and restitution: by the authors, to these same tosses)" in page
    assert "scored on 3 of 3 tosses" in page
    assert "simulated from 17 starts" in page
    assert "bullet" in terminal_tables(results)[0].columns[0]._cells


def test_states_between_substeps_are_interpolated():
    t = np.arange(5) / 10
    position = np.stack([t, 2 * t, 0 * t], axis=1)
    turn = np.stack([np.cos(t), 0 * t, 0 * t, np.sin(t)], axis=1)
    turn[2] *= -1  # the same orientation
    x, q = cubes.at_times(t, position, turn, np.array([0.0, 0.15, 0.4]))
    assert x == pytest.approx(np.array([[0, 0, 0], [0.15, 0.3, 0], [0.4, 0.8, 0]]))
    assert abs(q[1] @ [np.cos(0.15), 0, 0, np.sin(0.15)]) == pytest.approx(1, abs=1e-6)


def result(label, error, spread=8.0, tosses=None, status="ok"):
    (cell,) = planning.plan(
        parse_engines("bullet"), planning.tasks_of("cube_toss"), ["tuned"], twice="none"
    )
    engine = cell.engine.model_copy(update={"label": label})
    return CellResult(
        cell=cell.model_copy(update={"engine": engine}), key=label, status=status,
        facts={"tosses": {str(k): v for k, v in enumerate(tosses or [])}},
        measurements=(
            Measurement(metric="position_error", truth="real", value=error, unit="mm"),
            Measurement(metric="draw_spread", truth="real", value=spread, unit="mm"),
        ),
    )  # fmt: skip


def test_engines_closer_than_the_spread_are_tied():
    made = standings([result("a", 30.0), result("b", 20.0), result("c", 25.0), result("d", 37.0)])
    assert [(s.result.key, s.rank, s.tied) for s in made] == [
        ("b", 1, False), ("c", 1, True), ("a", 3, False), ("d", 3, True),
    ]  # fmt: skip
    assert "closer than the starts' spread of 8 mm" in made[1].why


def test_engines_that_the_tosses_do_not_separate_are_tied():
    even = [10.0, 20.0, 30.0, 40.0] * 5
    mixed = [x + (30 if k % 2 else -26) for k, x in enumerate(even)]
    apart = [x + 2 for x in even]
    made = standings([
        result("a", 25.0, 0.1, even), result("b", 27.0, 0.1, mixed), result("c", 27.1, 0.1, apart)
    ])  # fmt: skip
    assert [(s.result.key, s.rank) for s in made] == [("a", 1), ("b", 1), ("c", 3)]
    assert "over the tosses they differ by" in made[1].why
    low, high = difference(result("a", 25.0, 0.1, even), result("c", 27.0, 0.1, apart))
    assert low == pytest.approx(2)
    assert high == pytest.approx(2)


def test_bands_are_of_the_means_over_tosses_while_half_of_them_run():
    rng = np.random.default_rng(1)
    course = rng.normal(5.0, 2.0, (400, 30))
    course[:300, 20:] = np.nan
    times, low, mean, high = band(course)
    assert times == pytest.approx(np.arange(20) / RATE)
    assert mean == pytest.approx(course[:, :20].mean(axis=0))
    assert (high - low).mean() / 2 == pytest.approx(1.96 * 2.0 / np.sqrt(400), rel=0.15)
    assert ((low < 5) & (high > 5)).mean() > 0.8


def test_who_did_not_finish_has_no_rank():
    made = standings([result("a", 5.0, status="time_out"), result("b", 20.0)])
    assert [(s.result.key, s.rank) for s in made] == [("b", 1), ("a", 0)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("all", toss.Wanted()),
        ("20", toss.Wanted("", 20)),
        ("odd", toss.Wanted("odd")),
        ("even-7", toss.Wanted("even", 7)),
        ("100x1", toss.Wanted("", 100, 1)),
        ("oddx3", toss.Wanted("odd", 0, 3)),
        ("odd-5x3", toss.Wanted("odd", 5, 3)),
    ],
)
def test_tosses_are_chosen_by_number_half_and_starts(text, found):
    assert toss.wanted_of(text) == found


@pytest.mark.parametrize("text", ["few", "", "0", "odd20", "odd-", "3x0", "x", "even-x3"])
def test_a_wrong_choice_of_tosses_is_refused(text):
    with pytest.raises(UserError, match="write how many tosses"):
        toss.wanted_of(text)


def test_tosses_that_were_fitted_on_are_not_scored(tmp_path):
    mocap = read_contactnets(tosses_file(tmp_path / "t.npz", tosses=6))
    names = [t.name for _, t in toss.chosen(mocap, toss.Wanted("odd"))]
    assert names == ["toss-001", "toss-003", "toss-005"]
    rest = toss.chosen(mocap, toss.Wanted(), tuple(names))
    assert [t.name for _, t in rest] == ["toss-000", "toss-002", "toss-004"]
    assert [k for k, _ in rest] == [0, 2, 4]
    with pytest.raises(UserError, match="all of these tosses were fitted on: score the other half"):
        toss.chosen(mocap, toss.Wanted("odd"), tuple(names))


@pytest.mark.parametrize(
    ("wanted", "half"),
    [("all", "odd"), ("allx1", "oddx1"), ("100x1", "odd-100x1"), ("even-20", "odd-20"),
     ("oddx1", "oddx1")],
)  # fmt: skip
def test_other_tosses_under_one_name_are_told(wanted, half):
    def scored(config, tosses, engine="bullet"):
        made = result(engine, 10.0, tosses=tosses)
        cell = made.cell.model_copy(update={"config": config, "subtask": wanted})
        return made.model_copy(update={"cell": cell})

    mine = scored("fit.yaml", [1.0, 2.0])
    tuned, other = scored("tuned", [1.0, 2.0, 3.0]), scored("tuned", [1.0, 2.0, 3.0], "newton")
    (told,) = unlike([mine, tuned, other])
    assert told == (
        f"cube_toss/{wanted}/acrylic was scored on other trials, 2 for bullet:fit.yaml; 3 for "
        "bullet:tuned, newton:tuned, 2 of them the same: their numbers are not to be compared: "
        f"name the half that no fit saw, as cube_toss/{half}"
    )
    assert toss.wanted_of(half).half == "odd"
    odd = mine.model_copy(update={"facts": {**mine.facts, "fitted_on": "2 of 4: odd places"}})
    assert unlike([odd, tuned])[0].endswith(f"cube_toss/{half.replace('odd', 'even')}")
    assert not unlike([tuned, other])
    assert not unlike([mine, tuned.model_copy(update={"status": "diverged"})])
    crashed = scored("tuned", []).model_copy(update={"facts": {}, "status": "crash"})
    assert not unlike([mine, crashed])
    results = SweepResults(wmeval="0", engines=(), versions={}, cells=(mine, tuned, other))
    assert told in results.notes()


def test_tosses_without_orientations_are_refused(tmp_path):
    mocap = read_contactnets(tosses_file(tmp_path / "t.npz"))
    flat = replace(mocap.trials[0], quaternions_wxyz=np.full((20, 1, 4), np.nan))
    path = tmp_path / "flat.h5"
    write_mocap(Mocap(mocap.header, (flat, *mocap.trials[1:])), path)
    with pytest.raises(UserError, match=r"flat\.h5: trial 'toss-000': no quaternions_wxyz, and"):
        sweep(tmp_path, path)
    assert not (tmp_path / "s").exists()


def test_cubes_side_by_side_do_what_one_alone_does(tmp_path):
    """Bullet, in double precision: a contact's rounding is all that differs."""
    mocap = read_contactnets(tosses_file(tmp_path / "t.npz", tosses=5, frames=90))
    cube = toss.cube_of(dict(mocap.header.metadata), {})
    starts = [cubes.Start(toss.start_of(t), t.times) for t in mocap.trials]
    config = EngineConfig(iterations=50)
    run = {"engine": "bullet", "config": config, "dt": Fraction(1, 360)}
    many = cubes.fly(starts, cube, taken=[], **run)
    for start, flight in zip(starts, many, strict=True):
        (one,) = cubes.fly([start], cube, taken=[], **run)
        assert one.position == pytest.approx(flight.position, abs=1e-9)
        assert one.quaternion_wxyz == pytest.approx(flight.quaternion_wxyz, abs=1e-8)
        assert flight.stayed
    assert many[0].position[-1, 2] < 2 * HALF_WIDTH  # it has come down
    again = cubes.fly(starts, cube, taken=[], **run)
    assert all(np.array_equal(a.position, b.position) for a, b in zip(many, again, strict=True))


def test_the_cube_has_the_inertia_that_was_measured():
    cube = toss.cube_of({"mass_kg": 0.37, "friction_fitted": 0.18, "restitution_fitted": 0.125,
                         "inertia_kg_m2": 8.1e-4}, {"friction": 0.2})  # fmt: skip
    assert (cube.mass, cube.friction, cube.restitution, cube.inertia) == (0.37, 0.2, 0.125, 8.1e-4)
    scene, offsets = cubes.scene_of([TossState(*map(np.array, ([0, 0, 1], [1, 0, 0, 0], [0, 0, 0],
                                    [0, 0, 0])), 0, 0, 0)] * 5, cube)  # fmt: skip
    assert scene.bodies[1].inertia == (8.1e-4,) * 3
    assert scene.bodies[1].friction * scene.bodies[0].friction == pytest.approx(0.2)
    assert len({tuple(o) for o in offsets.tolist()}) == 5
    assert np.linalg.norm(offsets[0] - offsets[1]) == cubes.APART


def test_what_is_missing_is_said(tmp_path, monkeypatch, nothing_installed):
    with pytest.raises(UserError, match="write how many tosses"):
        planning.tasks_of("cube_toss/few")
    monkeypatch.setattr(tosses, "data_home", lambda: tmp_path / "none")
    cells = planning.plan(
        parse_engines("bullet,isaac"), planning.tasks_of("cube_toss"), ["tuned"], twice="none"
    )
    results = run_sweep(cells, tmp_path / "s", workers=0, conformance=False)
    assert [c.status for c in results.cells] == ["not_run", "not_run"]
    assert "wmeval data get contactnets" in results.cells[0].reason
    assert results.cells[1].reason == "Isaac Sim is not installed"


def test_the_fewest_tosses_of_every_engine_run_twice():
    cells = planning.plan(
        parse_engines("bullet,newton"), planning.tasks_of("cube_toss/9,cube_toss/9x2,cube_toss"),
        ["tuned"],
    )  # fmt: skip
    again = [(c.engine.label, c.subtask) for c in cells if c.repeat]
    assert again == [("bullet", "9x2"), ("newton", "9x2")]


@pytest.mark.accept
@pytest.mark.parametrize("engine", ["bullet", "physx", "newton", "genesis"])
def test_the_same_tosses_twice_are_the_same_bits(tmp_path, engine):
    engine_here(engine)
    data = tosses_file(tmp_path / "t.npz", frames=120)  # long enough to come down and tumble
    results = sweep(tmp_path, data, "cube_toss/2x3", engines=engine, twice="first")
    assert [c.status for c in results.cells] == ["ok", "ok"]
    assert results.cells[0].sha256
    (one,) = results.twice
    assert (one.same, one.spread) == (True, 0.0)


def test_tosses_that_differ_say_by_how_much(tmp_path, monkeypatch):
    offsets = iter([0.0, 2e-3])
    flown = toss.fly

    def off(*args, **kwargs):
        by = next(offsets)
        return [replace(f, position=f.position + by) for f in flown(*args, **kwargs)]

    monkeypatch.setattr(toss, "fly", off)
    data = tosses_file(tmp_path / "t.npz")
    (one,) = sweep(tmp_path, data, "cube_toss/2x2", twice="first").twice
    assert not one.same
    assert one.spread == pytest.approx(2e-3, abs=1e-9)


def test_a_sweep_of_tosses_stops_at_its_limit(tmp_path):
    results = sweep(tmp_path, tosses_file(tmp_path / "t.npz", tosses=5), limit=1e-6)
    (cell,) = results.cells
    assert cell.status == "time_out"
    assert "0 of 5 tosses done" in cell.reason


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


def test_time_that_is_up_before_any_world_is_a_time_out(tmp_path):
    """Of the first cell of a process, which has none to take over."""
    while running.last_world:
        running.last_world.pop().close()
    (cell,) = planning.plan(
        parse_engines("bullet"), planning.tasks_of("cube_toss/2x1"), ["tuned"], twice="none",
        tosses=str(tosses_file(tmp_path / "t.npz")),
    )  # fmt: skip
    result = running.run_cell(cell, "k", limit=0.0)
    assert (result.status, result.measurements) == ("time_out", ())
    assert result.cpu_s < 5


def test_tosses_that_crash_say_how_they_were_solved_and_how_long_it_took(tmp_path, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("the solver gave up")

    monkeypatch.setattr(toss, "fly", broken)
    (cell,) = sweep(tmp_path, tosses_file(tmp_path / "t.npz"), "cube_toss/2x1").cells
    assert (cell.status, cell.reason) == ("crash", "RuntimeError: the solver gave up")
    assert cell.solver
    assert cell.wall_s > 0
