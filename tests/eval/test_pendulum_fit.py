"""A torque-driven pendulum on engines: closed forms, known parameters, the real recording."""

import math
from fractions import Fraction
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from engine_worlds import engine_here
from scipy.integrate import solve_ivp
from scipy.special import ellipk

from wmeval.datasets.mocap import read_pendulum
from wmeval.errors import UserError
from wmeval.eval.fitting import pendulum_fit
from wmeval.eval.fitting.fit import fit
from wmeval.eval.fitting.pendulum_fit import FULL, LINEAR, UNENDED, baselines, remarks
from wmeval.eval.fitting.pendulums import (
    GRAVITY,
    Pendulum,
    Piece,
    cut,
    error,
    linear_swing,
    swing,
)
from wmeval.eval.truths import real
from wmeval.sim.protocol import EngineConfig

REAL = Path(__file__).parents[3] / "shared/data/dfki_pendulum/sysid_measured.csv"
KNOWN = Pendulum(length=0.5, mass=0.6, damping=0.04)
ENGINES = ["bullet"] + [pytest.param(e, marks=pytest.mark.accept) for e in
                        ("physx", "newton", "genesis")]  # fmt: skip


def run(engine, what, given, hz=960):
    engine_here(engine)
    taken = []
    try:
        return swing(
            what, given, engine=engine, config=EngineConfig(iterations=50), dt=Fraction(1, hz),
            taken=taken,
        )  # fmt: skip
    finally:
        for world in taken:
            world.close()


def piece(angle, seconds, torque=None, rate=0.0, what=KNOWN):
    """A piece whose angles are of the pendulum's own equation."""
    t = np.arange(0, seconds, 1 / 300)
    given = np.zeros_like(t) if torque is None else torque(t)

    def rhs(at, y):
        drive = np.interp(at, t, given)
        return [y[1], (drive - what.damping * y[1] - what.weight * math.sin(y[0])) / what.inertia]

    made = solve_ivp(rhs, (0, t[-1]), [angle, rate], t_eval=t, rtol=1e-9, atol=1e-11, max_step=0.01)
    return Piece(f"at {angle}", t, made.y[0], given, rate)


def test_the_linear_pendulum_in_closed_form_is_its_equation():
    for damping, weight in ((0.04, 3.0), (2.0, 1.0), (0.0, 3.0)):
        inertia = 0.15
        t = np.arange(0, 2, 0.004)
        torque = 0.5 * np.sin(3 * t) + 0.2

        def rhs(at, y, b=damping, k=weight, t=t, torque=torque, i=inertia):
            return [y[1], (np.interp(at, t, torque) - b * y[1] - k * y[0]) / i]

        made = solve_ivp(rhs, (0, t[-1]), [0.3, -0.5], t_eval=t, rtol=1e-10, atol=1e-12,
                         max_step=0.004)  # fmt: skip
        found = linear_swing(inertia, damping, weight, Piece("p", t, made.y[0], torque, -0.5))
        assert found == pytest.approx(made.y[0], abs=1e-6)


@pytest.mark.parametrize("engine", ENGINES)
def test_an_engine_swings_driven_and_damped_as_the_equation_says(engine):
    given = [
        piece(0.1, 1.0),
        piece(1.0, 1.0, lambda t: 0.6 * np.sin(5 * t), -2.0),
        piece(2.5, 1.0, lambda t: 0.0 * t + 1.0, 1.0),
    ]
    found = run(engine, KNOWN, given)
    # The last goes over the top fast, where a step's first-order error counts most.
    assert (np.degrees(error(found, given)) < [0.5, 0.5, 3.0]).all()
    assert error([linear_swing(KNOWN.inertia, KNOWN.damping, KNOWN.weight, p) for p in given],
                 given)[0] < 1e-3  # fmt: skip


@pytest.mark.parametrize("engine", ENGINES[:3])
def test_periods_grow_with_amplitude_and_energy_decays_as_closed_forms_say(engine):
    """T = T0 2 K(sin(A/2)) / pi undamped; the energy of small swings falls as exp(-b t / I)."""
    free = Pendulum(0.5, 0.6, 0.0)
    far = [piece(a, 1.6, what=free) for a in (0.1, 1.0, 2.0)]
    slow = piece(0.1, 1.6)
    still = run(engine, free, far)
    natural = 2 * math.pi * math.sqrt(free.inertia / free.weight)
    for p, angles in zip(far, still, strict=True):
        # A quarter of a period is when it hangs down first.
        down = float(np.interp(0.0, -angles[: np.argmin(angles)], p.times[: np.argmin(angles)]))
        exact = natural * 2 * ellipk(math.sin(p.angles[0] / 2) ** 2) / math.pi
        assert 4 * down == pytest.approx(exact, rel=0.01)
    (damped,) = run(engine, KNOWN, [slow])
    rate = np.gradient(damped, slow.times)
    energy = KNOWN.inertia * rate**2 / 2 + KNOWN.weight * (1 - np.cos(damped))
    # Over a whole period, as losses go with the rate.
    k = round(natural * 300)
    assert -math.log(energy[20 + k] / energy[20]) == pytest.approx(
        KNOWN.damping / KNOWN.inertia * k / 300, rel=0.08
    )


def recording(path, seconds=3.0):
    p = piece(0.2, seconds, lambda t: 1.5 * np.sin(2.1 * t) + 0.8 * np.sin(5.3 * t + 1))
    rate = np.gradient(p.angles, p.times)
    table = np.column_stack([p.times, p.angles, rate, p.torques])
    np.savetxt(path, table, delimiter=",", header="time,position,velocity,torque", comments="")
    return path


def test_length_mass_and_damping_are_found_on_half_of_the_pieces(tmp_path):
    path = recording(tmp_path / "swing.csv")
    found = fit("pendulum", path, "bullet", half="even", base="published-settings", evaluations=80)
    of = found.identified
    assert found.family == "driven_pendulum"
    assert of.parameters["length"] == pytest.approx(KNOWN.length, rel=0.06)
    assert of.parameters["mass"] == pytest.approx(KNOWN.mass, rel=0.1)
    assert len(of.trials) == 5
    assert of.other_half["bullet, fitted"] < 0.3 * of.other_half["bullet, at the start"]
    # Sine counts: what is linear cannot follow.
    assert of.other_half["bullet, fitted"] < of.other_half["linear damped pendulum, closed form"]
    assert of.other_half["pendulum with dry friction, Runge-Kutta"] < 0.5
    with pytest.raises(UserError, match="name the pendulum's recording"):
        fit("pendulum", None, "bullet", half="even")


def fitted(path, **columns):
    """A fit of the made-up recording with some columns changed."""
    table = np.genfromtxt(recording(path, 1.3), delimiter=",", skip_header=1)
    for name, change in columns.items():
        k = ("time", "position", "velocity", "torque").index(name)
        table[:, k] = change(table[:, k])
    np.savetxt(path, table, delimiter=",", header="time,position,velocity,torque", comments="")
    return fit("pendulum", path, "bullet", half="even", base="published-settings", evaluations=30)


def test_recordings_that_tell_nothing_are_refused(tmp_path):
    with pytest.raises(UserError, match=r"samples are 3\.33 s apart, too coarse"):
        fitted(tmp_path / "ms.csv", time=lambda t: 1000 * t)
    with pytest.raises(UserError, match="torque is zero throughout"):
        fitted(tmp_path / "free.csv", torque=lambda t: 0 * t)


@pytest.mark.filterwarnings("error")
def test_a_fit_in_degrees_says_what_to_look_at(tmp_path):
    of = fitted(tmp_path / "deg.csv", position=np.degrees, velocity=np.degrees).identified
    assert "more than a turn: radians are wanted; are these degrees?" in of.remarks[0]
    assert "on the other half it runs away: linear damped pendulum, closed form" in of.remarks[1]
    assert all(math.isfinite(x) for x in of.other_half.values())
    others = {"bullet, fitted": 2.0, "bullet, at the start": 1.0}
    trial = read_pendulum(recording(tmp_path / "swing.csv")).trials[0]
    (told,) = remarks(trial, "bullet", others)
    assert told == "the fit is no better than the start on the other half: do not use it"
    assert remarks(trial, "bullet", {**others, "bullet, fitted": 0.5}) == []


@pytest.mark.filterwarnings("error")
def test_a_search_that_does_not_end_is_named(tmp_path, monkeypatch):
    (trial,) = read_pendulum(recording(tmp_path / "swing.csv", 1.3)).trials
    given = cut(trial)
    assert sorted(baselines(trial, given, (0, 2))) == [LINEAR, FULL]
    for module in (pendulum_fit, real):
        monkeypatch.setattr(module, "leastsq", partial(module.leastsq, maxfev=6))
    assert sorted(baselines(trial, given, (0, 2))) == [LINEAR + UNENDED, FULL + UNENDED]


@pytest.mark.skipif(not REAL.is_file(), reason="the recording is not here")
def test_the_real_recording_is_cut_into_pieces_that_begin_as_measured():
    given = cut(read_pendulum(REAL).trials[0])
    assert len(given) == 12
    assert all(p.times[0] == 0 for p in given)
    joined = np.concatenate([p.angles[:-1] for p in given])
    assert np.abs(np.diff(joined)).max() < 0.1
    assert math.isclose(GRAVITY, 9.81)
