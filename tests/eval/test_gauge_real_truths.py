"""Real and converged truths: on motions whose answers are known, and on the public recordings."""

import math
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp
from scipy.spatial.transform import Rotation

from wmeval.datasets.mocap import (
    FORMAT,
    Header,
    Signal,
    first_state,
    make_trial,
    read_contactnets,
    read_pendulum,
)
from wmeval.datasets.mocap.contactnets import RATE, TossState
from wmeval.errors import UserError
from wmeval.eval.metrics import gauge
from wmeval.eval.metrics.gauge_table import GAUGE_METRICS
from wmeval.eval.truths.converged import engine_spread, greatest_rise, self_convergence
from wmeval.eval.truths.real import (
    PendulumFit,
    TossSigma,
    draw_spread,
    fit_pendulum,
    half_of,
    predict_pendulum,
    rotation_error,
    tied,
    toss_draws,
    toss_errors,
)

SHARED = Path(__file__).parents[3] / "shared" / "data"
TOSSES = SHARED / "contactnets" / "contactnets_cube_tosses.npz"
PENDULUM = SHARED / "dfki_pendulum" / "sysid_measured.csv"
RNG = np.random.default_rng(5)


def wxyz(rotation):
    x, y, z, w = np.moveaxis(rotation.as_quat(), -1, 0)
    return np.stack([w, x, y, z], axis=-1)


@pytest.mark.parametrize("angle", [0, 1e-9, 1e-4, 1.0, 3.0, math.pi])
def test_rotation_errors_are_the_angles_between(angle):
    base = Rotation.from_rotvec(RNG.normal(size=(4, 3)))
    turned = Rotation.from_rotvec(np.tile([0, angle, 0], (4, 1))) * base
    assert rotation_error(wxyz(turned), wxyz(base)) == pytest.approx(angle, rel=1e-6, abs=1e-15)
    assert rotation_error(-wxyz(turned), wxyz(base)) == pytest.approx(angle, rel=1e-6, abs=1e-15)


def toss(frames=30):
    head = Header(format=FORMAT, title="toss", bodies=("cube",))
    t = np.arange(frames) / RATE
    p = np.stack([t, 0 * t, 0.5 - 9.81 * t**2 / 2], axis=1)
    q = np.tile([1.0, 0, 0, 0], (frames, 1))
    return make_trial(
        head, "toss-000", t, {"positions": p[:, None], "quaternions_wxyz": q[:, None]}
    )


def test_toss_errors_of_a_shift_and_a_turn():
    trial = toss()
    x, q = trial.positions[:, 0], trial.quaternions_wxyz[:, 0]
    made = toss_errors(x + np.array([0.03, 0, -0.04]), wxyz(Rotation.from_rotvec([0, 0, 0.2]) *
                       Rotation.from_quat(q[:, [1, 2, 3, 0]])), trial)  # fmt: skip
    assert made.mean_position == pytest.approx(0.05)
    assert made.mean_rotation == pytest.approx(0.2)
    assert made.penetration.max() == pytest.approx(max(0, 0.0524 - (x[-1, 2] - 0.04)), abs=1e-12)
    assert made.real_penetration == pytest.approx(0)
    with pytest.raises(UserError, match="30 frames"):
        toss_errors(x[:-1], q[:-1], trial)


def test_draws_have_the_declared_spread_and_are_the_same_again():
    state = TossState(np.zeros(3), np.array([1.0, 0, 0, 0]), np.ones(3), np.ones(3), 0, 0, 0)
    sigma = TossSigma(1e-3, 0.02, 0.1, 0.5)
    draws = toss_draws(state, sigma, count=2000, seed=3, toss=7)
    assert draws[0] is state
    assert np.std([d.position for d in draws[1:]]) == pytest.approx(1e-3, rel=0.05)
    assert np.std([d.linear - 1 for d in draws[1:]]) == pytest.approx(0.1, rel=0.05)
    assert np.std([d.angular - 1 for d in draws[1:]]) == pytest.approx(0.5, rel=0.05)
    turns = rotation_error(
        np.array([d.quaternion_wxyz for d in draws[1:]]), draws[0].quaternion_wxyz
    )
    assert np.sqrt(np.mean(turns**2)) == pytest.approx(0.02 * math.sqrt(3), rel=0.05)
    again = toss_draws(state, sigma, count=5, seed=3, toss=7)
    assert all(np.array_equal(a.linear, b.linear) for a, b in zip(again, draws, strict=False))
    other = toss_draws(state, sigma, count=5, seed=3, toss=8)
    assert not np.array_equal(other[1].linear, again[1].linear)
    spread = draw_spread(np.array([[[0, 0, 0], [1, 0, 0]], [[0, 0, 0], [-1, 0, 0.0]]]))
    assert spread == pytest.approx([0, 1])
    assert tied(0.10, 0.11, 0.02)
    assert not tied(0.10, 0.13, 0.02)


@pytest.mark.skipif(not TOSSES.is_file(), reason=f"the public tosses are not at {TOSSES}")
def test_real_tosses_fly_as_their_first_state_says_until_they_touch():
    """Ballistics from the first state: within 2 mm and 3 degrees while the cube is in the air."""
    mocap = read_contactnets(TOSSES)
    far, turned = [], []
    for trial in mocap.trials[:40]:
        try:
            start = first_state(trial)
        except UserError:
            continue
        height = trial.positions[:, 0, 2]
        frames = int(np.argmax(height < 0.0524 * math.sqrt(3) + 0.005)) or len(trial)
        t = trial.times[:frames]
        x = start.position + t[:, None] * start.linear
        x[:, 2] -= 9.81 * t**2 / 2
        spin = Rotation.from_rotvec(t[:, None] * start.angular)
        q = wxyz(spin * Rotation.from_quat(start.quaternion_wxyz[[1, 2, 3, 0]]))
        far.append(np.linalg.norm(x - trial.positions[:frames, 0], axis=1).max())
        turned.append(rotation_error(q, trial.quaternions_wxyz[:frames, 0]).max())
    assert len(far) > 30
    assert np.median(far) < 2e-3
    assert np.degrees(np.median(turned)) < 3


# --- the pendulum ---------------------------------------------------------------------------------

TRUE = PendulumFit(inertia=0.15, damping=0.05, coulomb=0.02, weight=2.8)


def swing(noise=0.0):
    t = np.arange(0, 8, 1 / 300)
    torque = 1.5 * np.sin(2.1 * t) + 0.8 * np.sin(5.3 * t + 1)

    def rhs(at, y):
        drive = 1.5 * math.sin(2.1 * at) + 0.8 * math.sin(5.3 * at + 1)
        drag = TRUE.damping * y[1] + TRUE.coulomb * math.tanh(y[1] / 0.02)
        return [y[1], (drive - drag - TRUE.weight * math.sin(y[0])) / TRUE.inertia]

    made = solve_ivp(rhs, (0, 8), [0.1, 0.0], t_eval=t, rtol=1e-9, atol=1e-11, max_step=0.01)
    signals = np.column_stack([made.y[0], made.y[1], torque])
    signals += np.random.default_rng(1).normal(0, 1, signals.shape) * noise * [0.002, 0.05, 0.02]
    head = Header(
        format=FORMAT, title="swing",
        signals=tuple(Signal(name=n, unit="") for n in ("position", "velocity", "torque")),
    )  # fmt: skip
    return make_trial(head, "swing", t, {"signals": signals})


@pytest.mark.parametrize(("noise", "tolerance"), [(0, 0.01), (1, 0.08)])
def test_a_pendulums_parameters_are_found_on_one_half_and_hold_on_the_other(noise, tolerance):
    trial = swing(noise)
    found = fit_pendulum(half_of(trial, 0))
    assert found.inertia == pytest.approx(TRUE.inertia, rel=tolerance)
    assert found.weight == pytest.approx(TRUE.weight, rel=tolerance)
    # Noise trades one kind of drag for the other: their sum at a middling rate is found.
    drag, true = (f.damping * 1.5 + f.coulomb for f in (found, TRUE))
    assert drag == pytest.approx(true, rel=0.05 + 0.3 * noise)
    rest = half_of(trial, 1)
    assert len(rest) + len(half_of(trial, 0)) == len(trial)
    predicted, measured = predict_pendulum(found, rest)
    assert predicted.shape == measured.shape
    assert (
        np.sqrt(np.mean((predicted - measured) ** 2)) < 0.002 + 0.06 * noise
    )  # the noise of its starts


def test_a_pendulum_that_does_not_move_tells_nothing():
    trial = swing()
    still = type(trial)(**{**vars(trial), "signals": np.zeros_like(trial.signals)})
    with pytest.raises(UserError, match="does not move"):
        fit_pendulum(still)
    short = type(trial)(**{**vars(trial), "times": trial.times[:30], "signals": trial.signals[:30]})
    with pytest.raises(UserError, match="too short"):
        fit_pendulum(short)


@pytest.mark.skipif(not PENDULUM.is_file(), reason=f"the public recording is not at {PENDULUM}")
def test_the_real_pendulum_is_predicted_on_its_second_half():
    """Better than a free swing of the stated kind of arm would be, and of a sensible length."""
    trial = read_pendulum(PENDULUM).trials[0]
    found = fit_pendulum(half_of(trial, 0))
    assert 0.3 < 9.81 * found.inertia / found.weight < 0.8  # I / (m l): its equivalent length
    rest = half_of(trial, 1)
    predicted, measured = predict_pendulum(found, rest)
    error = np.sqrt(np.mean((predicted - measured) ** 2))
    assert error < 0.15 * np.std(rest.signals[:, 0])


# --- convergence ----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1.0, 2.0, 3.5])
@pytest.mark.parametrize("steps", [(0.4, 0.2, 0.1), (0.9, 0.5, 0.2, 0.1)])
def test_the_order_and_limit_of_a_known_scheme(order, steps):
    shape = RNG.normal(size=(5, 3))
    values = [2.0 + shape * h**order for h in steps]
    made = self_convergence(steps, values)
    assert made.order == pytest.approx(order, rel=1e-6)
    assert made.limit == pytest.approx(2.0)
    assert made.error == pytest.approx(np.sqrt(np.mean(shape**2)) * steps[-1] ** order)
    assert made.converging


def test_what_does_not_converge_says_so():
    made = self_convergence((0.4, 0.2, 0.1), [1.0, 1.1, 1.3])
    assert not made.converging
    assert math.isnan(made.order)
    assert np.isnan(made.limit)
    same = self_convergence((0.4, 0.2, 0.1), [1.0, 1.0, 1.0])
    assert same.error == 0
    for steps, values in (((0.1, 0.2, 0.4), [1, 2, 3]), ((0.2, 0.1), [1, 2]),
                          ((0.4, 0.2, 0.1), [1, 2])):  # fmt: skip
        with pytest.raises(UserError, match="descending steps"):
            self_convergence(steps, values)
    with pytest.raises(UserError, match="differ in shape"):
        self_convergence((0.4, 0.2, 0.1), [np.ones(2), np.ones(2), np.ones(3)])


def test_the_explicit_euler_step_is_of_first_order():
    def fall(h):
        x = v = 0.0
        for _ in range(round(1 / h)):
            x, v = x + h * v, v + h * 9.81
        return x

    made = self_convergence((0.01, 0.005, 0.0025), [fall(h) for h in (0.01, 0.005, 0.0025)])
    assert made.order == pytest.approx(1, abs=1e-3)
    assert made.limit == pytest.approx(9.81 / 2, rel=1e-5)


def test_the_spread_names_the_two_furthest_engines():
    made = engine_spread({"a": np.zeros(4), "b": np.ones(4), "c": 3 * np.ones(4)})
    assert made.largest == 3
    assert made.between == ("a", "c")
    assert made.pairs["b", "c"] == 2
    with pytest.raises(UserError, match="two or more engines"):
        engine_spread({"a": np.zeros(4)})


def test_a_rise_of_energy_is_found():
    assert greatest_rise(np.array([3, 2, 2.5, 1, 1.2])) == pytest.approx(0.5)
    assert greatest_rise(np.array([3, 2, 1.0])) == 0


def test_every_metric_of_the_cards_has_a_row():
    from wmeval.assets.gauge_cards import families

    assert {m for c in families().values() for m in c.metrics} <= set(GAUGE_METRICS)
    assert all(row.nan_rule and row.equation and row.source for row in GAUGE_METRICS.values())
    assert GAUGE_METRICS["lsd"].function is gauge.longest_rest
