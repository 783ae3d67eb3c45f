"""Fits on one half of a recording: searches with known answers, halves, made-up tosses."""

import math
from fractions import Fraction
from pathlib import Path
from typing import get_args, get_type_hints

import numpy as np
import pytest
from typer.testing import CliRunner

from wmeval.cli import app
from wmeval.cli.fit import fit_gauge
from wmeval.datasets.mocap import read_contactnets
from wmeval.datasets.mocap.contactnets import GRAVITY, HALF_WIDTH, RATE, TossState
from wmeval.envs.gauge.configurations import Settings, read_fitted
from wmeval.errors import UserError
from wmeval.eval.fitting import cubes, pendulum_fit
from wmeval.eval.fitting.fit import fit, write_fitted
from wmeval.eval.fitting.halves import half_of, spaced
from wmeval.eval.fitting.search import Parameter, search
from wmeval.eval.fitting.toss_fit import parameters
from wmeval.eval.sweep import planning
from wmeval.eval.sweep.cells import parse_engines
from wmeval.eval.sweep.sweeping import run_sweep
from wmeval.sim.protocol import EngineConfig

REAL = Path(__file__).parents[3] / "shared/data/contactnets/contactnets_cube_tosses.npz"
NAMES = [f"t{k}" for k in range(10)]


def test_the_least_of_a_rough_bowl_is_found_and_the_same_again():
    """A bowl with ripples a tenth as high as its rim, least at (0.3, 2)."""

    def loss(v):
        x, y = v["a"] - 0.3, math.log(v["b"] / 2)
        return x * x + y * y + 0.01 * (2 - math.cos(40 * x) - math.cos(40 * y))

    wanted = (Parameter("a", 0.9, -1.0, 1.0), Parameter("b", 8.0, 0.5, 10.0, log=True))
    seen = []
    found = search(loss, wanted, evaluations=150, told=lambda n, *_: seen.append(n))
    assert found.values["a"] == pytest.approx(0.3, abs=0.03)
    assert found.values["b"] == pytest.approx(2, rel=0.03)
    assert found.before == pytest.approx(loss({"a": 0.9, "b": 8.0}))
    assert found.after == loss(dict(found.values))
    assert seen == list(range(1, found.evaluations + 1))
    assert found.evaluations <= 150
    assert search(loss, wanted, evaluations=150) == found
    assert search(loss, wanted, evaluations=150, seed=1).values != found.values


def test_the_best_at_a_bound_is_found_there():
    found = search(lambda v: v["a"], (Parameter("a", 0.5, 0.0, 1.0),), evaluations=60)
    assert found.values["a"] == pytest.approx(0, abs=1e-3)


def test_a_search_that_finds_nothing_better_says_so():
    wanted = (Parameter("a", 0.5, 0.0, 1.0),)
    assert not search(lambda v: (v["a"] - 0.5) ** 2, wanted, evaluations=20).improved
    assert not search(lambda v: 1.0, wanted, evaluations=20).improved
    assert search(lambda v: (v["a"] - 0.3) ** 2, wanted, evaluations=20).improved


def test_the_command_offers_no_number_of_evaluations_that_every_fit_refuses():
    """Friction and restitution are two; an engine's softness makes three, as a swing's are."""
    (_, option) = get_args(get_type_hints(fit_gauge, include_extras=True)["evaluations"])
    two = [Parameter(n, 0.5, 0.0, 1.0) for n in "ab"]
    assert len(pendulum_fit.PARAMETERS) == 3
    assert search(lambda v: v["a"], two, evaluations=option.min).improved
    with pytest.raises(UserError, match=r"2 parameters \(a, b\) want 20 or more"):
        search(lambda v: v["a"], two, evaluations=option.min - 1)
    assert "20 or more of 2 numbers, 30 of 3" in option.help


@pytest.mark.parametrize("improved", [True, False])
def test_the_command_says_whether_a_fit_is_better_than_its_start(
    fitted, improved, monkeypatch, tmp_path
):
    assert fitted.identified.improved
    of = fitted.identified.model_copy(update={"improved": improved})
    made = fitted.model_copy(update={"identified": of})
    monkeypatch.setattr("wmeval.eval.fitting.fit.fit", lambda *a, **k: made)
    out = tmp_path / "fit.yaml"
    told = CliRunner().invoke(
        app, ["fit", "gauge", "--family", "cube_toss", "--half", "even", "--out", str(out)]
    )
    assert told.exit_code == 0, told.output
    said = told.output
    assert ("nothing better than the start was found" in said) is not improved
    assert ("--evaluations" in said) is not improved
    assert read_fitted(out).identified.improved is improved


def test_a_loss_that_is_not_finite_is_the_worst():
    def loss(v):
        return math.inf if v["a"] > 0.6 else (v["a"] - 0.4) ** 2

    found = search(loss, (Parameter("a", 0.1, 0.0, 1.0),), evaluations=60)
    assert found.values["a"] == pytest.approx(0.4, abs=1e-3)
    with pytest.raises(UserError, match="not finite at the start"):
        search(loss, (Parameter("a", 0.9, 0.0, 1.0),), evaluations=60)
    with pytest.raises(UserError, match=r"9: 1 parameter \(a\) wants 10 or more"):
        search(loss, (Parameter("a", 0.1, 0.0, 1.0),), evaluations=9)
    with pytest.raises(UserError, match="not within"):
        search(loss, (Parameter("a", 2.0, 0.0, 1.0),), evaluations=60)


def test_halves_are_stated(tmp_path):
    assert half_of(NAMES, half="even").names == ("t0", "t2", "t4", "t6", "t8")
    assert half_of(NAMES, half="odd").names == ("t1", "t3", "t5", "t7", "t9")
    drawn = half_of(NAMES, split="7")
    assert len(drawn.names) == 5
    assert drawn == half_of(NAMES, split="7")
    assert drawn.names != half_of(NAMES, split="8").names
    file = tmp_path / "mine.txt"
    file.write_text("t3\n\nt1\n")
    assert half_of(NAMES, split=str(file)).names == ("t1", "t3")
    assert spaced(NAMES, 3) == ("t0", "t4", "t9")
    for wrong, said in (
        ({}, "say which half"),
        ({"half": "even", "split": "1"}, "say which half"),
        ({"half": "left"}, "choose even or odd"),
        ({"split": str(tmp_path / "none")}, "no seed and no readable file"),
    ):
        with pytest.raises(UserError, match=said):
            half_of(NAMES, **wrong)
    file.write_text("t99\n")
    with pytest.raises(UserError, match="no trial 't99'"):
        half_of(NAMES, split=str(file))
    file.write_text("\n".join(NAMES))
    with pytest.raises(UserError, match="leave some of both kinds"):
        half_of(NAMES, split=str(file))


def made_tosses(path, friction, restitution, count=8, frames=60):
    """Tosses that an engine made by known numbers, as if they had been measured."""
    rng = np.random.default_rng(4)
    starts = []
    for _ in range(count):
        q = rng.normal(size=4)
        starts.append(
            TossState(
                np.array([0.0, 0.0, 0.13 + 0.05 * rng.random()]), q / np.linalg.norm(q),
                np.array([0.8, 0.5, -0.2]) * rng.uniform(0.5, 1.5, 3), rng.normal(0, 3, 3), 0, 0, 0,
            )
        )  # fmt: skip
    times = np.arange(frames) / RATE
    inertia = 0.2950002913583124 * HALF_WIDTH**2
    flights = cubes.fly(
        [cubes.Start(s, times) for s in starts],
        cubes.CubeBody(0.37, friction, restitution, inertia), engine="bullet",
        config=EngineConfig(iterations=50), dt=Fraction(1, 180), taken=[],
    )  # fmt: skip
    p = np.array([f.position for f in flights])
    q = np.array([f.quaternion_wxyz for f in flights])
    # In flight the turning is constant; the reader takes it from the first frames.
    w = np.array([np.tile(_in_body(s), (frames, 1)) for s in starts])
    v = np.gradient(p, times, axis=1)
    v[:, :6] = [s.linear + np.outer(times[:6], [0, 0, -GRAVITY]) for s in starts]
    np.savez(
        path, offsets=np.arange(count + 1) * frames, toss_id=np.arange(count),
        position_m=p.reshape(-1, 3), quaternion_wxyz=q.reshape(-1, 4),
        linear_velocity_mps=v.reshape(-1, 3), angular_velocity=w.reshape(-1, 3),
    )  # fmt: skip
    return path


def _in_body(state):
    """The angular velocity in the cube's own frame, as the authors store it."""
    w, *u = state.quaternion_wxyz
    u = np.array(u)
    t = 2 * np.cross(-u, state.angular)
    return state.angular + w * t + np.cross(-u, t)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    return made_tosses(tmp_path_factory.mktemp("made") / "t.npz", 0.3, 0.4)


@pytest.fixture(scope="module")
def fitted(made):
    return fit("cube_toss", made, "bullet", half="even", base="published-settings", evaluations=70)


def test_the_numbers_by_which_an_engine_made_the_tosses_are_found_on_a_half_of_them(fitted):
    of = fitted.identified
    assert of.used == of.trials
    assert of.parameters["friction"] == pytest.approx(0.3, rel=0.05)
    assert of.parameters["restitution"] == pytest.approx(0.4, abs=0.06)
    assert of.loss_after < 0.2 * of.loss_before
    assert of.trials == ("toss-000", "toss-002", "toss-004", "toss-006")
    assert of.evaluations <= 70
    assert fitted.fitted_on == "4 of 8 tosses of t.npz: even places, from 0"
    assert of.start == {"friction": 0.18, "restitution": 0.125}


def test_the_sweep_scores_the_other_half_only(fitted, made, tmp_path):
    path = tmp_path / "fit.yaml"
    write_fitted(fitted, path)
    write_fitted(fitted, tmp_path / "bullet.yaml")
    assert read_fitted(path) == fitted

    def swept(task, config, engines="bullet"):
        cells = planning.plan(
            parse_engines(engines), planning.tasks_of(task), [str(config)], tosses=str(made)
        )
        folder = tmp_path / task.replace("/", "_") / engines / Path(config).stem
        return run_sweep(cells, folder, workers=0, conformance=False).cells[0]

    cell = swept("cube_toss/allx1", path)
    assert cell.status == "ok"
    assert sorted(cell.facts["tosses"]) == ["toss-001", "toss-003", "toss-005", "toss-007"]
    assert cell.facts["scored_on"] == "4 of the 4 tosses that were not fitted on"
    assert cell.measurement("position_error").value < 10
    authors = swept("cube_toss/oddx1", "published-settings")
    assert sorted(authors.facts["tosses"]) == sorted(cell.facts["tosses"])
    assert authors.measurement("position_error").value > 2 * (
        cell.measurement("position_error").value
    )
    each = swept("cube_toss/oddx1", tmp_path / "{engine}.yaml")
    assert each.measurements == cell.measurements
    assert each.facts["fitted_by"]["loss_after"] == fitted.identified.loss_after
    fitted_half = swept("cube_toss/evenx1", path)
    assert fitted_half.status == "not_run"
    assert "all of these tosses were fitted on: score the other half" in fitted_half.reason
    by_hand = tmp_path / "hand.yaml"
    by_hand.write_text("family: cube_toss\nfitted_on: even tosses\n")
    with pytest.raises(UserError, match="names no trials"):
        swept("cube_toss/oddx1", by_hand)
    stranger = fitted.identified.model_copy(update={"sha256": "0" * 64})
    write_fitted(fitted.model_copy(update={"identified": stranger}), by_hand)
    with pytest.raises(UserError, match="is another file"):
        swept("cube_toss/oddx1", by_hand)
    other = swept("cube_toss/4x1", path, "physx")
    assert other.status == "not_run"
    assert "identified on bullet are not physx's: fit them there" in other.reason


def test_the_command_writes_a_configuration(made, tmp_path):
    out = tmp_path / "fit.yaml"
    done = CliRunner().invoke(
        app,
        ["fit", "gauge", "--engine", "bullet", "--data", str(made.parent), "--half", "odd",
         "--base", "published-settings", "--evaluations", "20", "--trials", "2", "--out", str(out)],
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "loss:" in done.output
    assert "fitted on 2 of 8 tosses of t.npz: odd places, from 0, evenly spaced" in done.output
    # What was left out of the half to save time is not scored either.
    of = read_fitted(out).identified
    assert len(of.trials) == 4
    # The file says enough to make the fit again.
    assert of.used == (of.trials[0], of.trials[-1])
    assert of.asked == 20
    names = tmp_path / "half.txt"
    names.write_text("\n".join(of.trials))
    again = fit(
        "cube_toss", made, of.engine, split=str(names), base="published-settings",
        trials=len(of.used), evaluations=of.asked, seed=of.seed,
    ).identified  # fmt: skip
    assert (again.used, again.parameters) == (of.used, of.parameters)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--half", "even", "--engine", "bullet,physx"], "one engine's"),
        (["--half", "even", "--base", "mine"], "choose from published-settings, tuned"),
        (["--half", "even", "--family", "turntable"], "choose from cube_toss"),
        ([], "say which half"),
    ],
)
def test_a_wrong_fit_is_one_line(made, tmp_path, options, said):
    done = CliRunner().invoke(
        app, ["fit", "gauge", "--data", str(made), "--out", str(tmp_path / "f.yaml"), *options]
    )
    assert isinstance(done.exception, UserError)
    assert said in str(done.exception)


def test_softness_is_looked_for_from_the_settings_own_where_it_is_within_bounds(made):
    mocap = read_contactnets(made)

    def start(engine, **options):
        config = EngineConfig(options=options)
        found = parameters(engine, mocap, Settings("tuned", 1800, config, ""))
        return {p.name: p.start for p in found}

    both = {"friction": 0.18, "restitution": 0.125}
    assert start("bullet") == both
    assert start("newton", contact_stiffness=20) == {**both, "contact_stiffness": 20}
    # 0 stands for an engine's own choice.
    assert start("genesis", contact_time=0) == {**both, "contact_time": 0.01}


@pytest.mark.accept
@pytest.mark.skipif(not REAL.is_file(), reason="the recording is not here")
def test_bullet_s_numbers_by_half_of_the_real_tosses_do_better_on_the_other_half(tmp_path):
    path = tmp_path / "fit.yaml"
    found = fit("cube_toss", REAL, "bullet", half="even", trials=60, evaluations=30)
    write_fitted(found, path)
    errors = {}
    for config in ("tuned", str(path)):
        cells = planning.plan(
            parse_engines("bullet"), planning.tasks_of("cube_toss/odd-60x3"), [config],
            tosses=str(REAL), twice="none",
        )  # fmt: skip
        folder = tmp_path / f"s{len(errors)}"
        (cell,) = run_sweep(cells, folder, workers=0, conformance=False).cells
        errors[config] = cell.measurement("position_error").value
    assert errors[str(path)] < errors["tuned"]
