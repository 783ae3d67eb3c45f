"""From estimates to measurements: doses in, doses out, and silence to other metrics' errors."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from wmeval.eval.measure import LEAST_COVERAGE, Truth, below_floor, ineligible, measure, unrun
from wmeval.eval.metrics import METRICS
from wmeval.eval.perception import oracle
from wmeval.eval.results import Measurement
from wmeval.records import CameraLog, Event, LightLog, StateLog, WorldLog
from wmeval.scene import Body, Camera, Collision, Scene, Sphere, Sun

FRAMES, FPS = 49, 24
ROLES = {"ball": "player", "leg": "leg", "slab": "slab", "d0": "domino", "d1": "domino"}


def body(name, instance, motion="dynamic"):
    shape = Collision(shape=Sphere(radius=0.5))
    return Body(name=name, role=ROLES[name], motion=motion, instance=instance, mass=2.0,
                collision=(shape,))  # fmt: skip


SCENE = Scene(
    name="s",
    bodies=tuple(body(name, i + 1) for i, name in enumerate(ROLES)),
    materials=(),
    cameras=(Camera(name="static", position=(0, -5, 5), target=(0, 0, 0)),),
    sun=Sun(direction=(0, 0, -1)),
)


def event(kind, time, a, b=""):
    return Event(kind, time, time, a, b)


EVENTS = (
    event("contact", 0.5, "ball", "d0"),
    event("fall", 0.7, "d0"),
    event("contact", 0.8, "d0", "d1"),
    event("fall", 0.9, "d1"),
)


def log_of(position, velocity, events):
    n = len(position)
    t = np.arange(n) / FPS
    modal = {
        "surface_normal": np.stack([np.sin(t), np.zeros(n), np.cos(t)], axis=1),
        "slosh_amplitude": np.stack([0.01 * np.cos(6 * t), np.zeros(n)], axis=1),
    }
    state = StateLog(
        tuple(ROLES), Fraction(1, 240), 10 * np.arange(n, dtype=np.int64), position,
        np.tile([1.0, 0, 0, 0], (n, 5, 1)), velocity, np.zeros_like(position),
        np.ones((n, 5), bool), np.full((n, 5), 2, np.uint8), modal,
    )  # fmt: skip
    cameras = CameraLog(("static",), np.ones((n, 1)), np.tile(np.eye(4), (n, 1, 1, 1)))
    down = np.stack([np.sin(t), np.zeros(n), -np.cos(t)], axis=1)
    lights = LightLog(down, np.tile([3.0, 2.0, 1.0], (n, 1)), np.full((n, 3, 3), 0.5))
    return WorldLog(state, cameras, lights, events=events)


def states():
    t = np.arange(FRAMES) / FPS
    velocity = np.zeros((FRAMES, 5, 3))
    velocity[:, 0, 1] = 1 + 2 * t
    velocity[:, 3, 0] = 0.3
    position = np.zeros((FRAMES, 5, 3))
    position[:, 0, 1] = t + t**2
    position[:, 3, 0] = 0.3 * t
    return position, velocity


TIMES = tuple(Fraction(k, FPS) for k in range(FRAMES))
PAIRS = ((0, 6), (6, 12))
FLOW = np.zeros((20, 30, 2), np.float32)
FLOW[5:12, 5:15] = (6.0, 2.0)
TRUTH = Truth(
    SCENE, log_of(*states(), EVENTS), TIMES, PAIRS, (FLOW, FLOW), EVENTS, "direct_strike", "ball",
    dimensions=("fluid", "lighting"),
)  # fmt: skip


def candidate(position=None, velocity=None, events=EVENTS, flows=(FLOW, FLOW)):
    true_position, true_velocity = states()
    log = log_of(
        true_position if position is None else position,
        true_velocity if velocity is None else velocity,
        events,
    )
    return oracle(log, TIMES, bodies=list(ROLES), flows=flows)


def numbers(estimate, **options):
    found, _ = measure(TRUTH, estimate, **options)
    return {(x.metric, x.subject): x for x in found}


def of(estimate, metric, subject="ball", **options):
    x = numbers(estimate, **options)[metric, subject]
    assert x.status == "measured", x.reason
    return x.value


PERFECT = {
    "fde": 0, "dtw": 0, "dtw_sum": 0, "rmse": 0, "momentum_rmse": 0, "energy_rmse": 0,
    "exact_match": 100, "error_rate": 0, "robust_error": 0, "rel_epe_dyn": 0, "cos_sim_dyn": 1,
    "csr": 100, "amcl": 3, "mcl": 3, "rf": 0, "ws": 12, "dua": 100, "icra": 100, "stage_delay": 0,
    "surface_normal_error": 0, "modal_amplitude_rmse": 0,
    "sun_direction_error": 0, "sun_color_error": 0, "sky_color_error": 0,
}  # fmt: skip
SUBJECTS = {"kinematics": "ball", "mechanics": "ball", "controllability": "picture",
            "causality": "chain", "fluid": "liquid", "lighting": "light"}  # fmt: skip


def test_the_truth_against_itself_is_perfect_in_every_metric():
    found = numbers(candidate())
    assert set(PERFECT) == set(METRICS)
    for name, value in PERFECT.items():
        x = found[name, SUBJECTS[METRICS[name].dimension]]
        assert x.value == pytest.approx(value, abs=1e-6), name
    assert found["fde", "domino"].detail["bodies"] == 2
    assert found["error_rate", "all bodies"].detail["below_floor"] == 4 * 3  # three never move


def doses():
    """Known errors: what changes, which metrics must rise with the dose, all others silent."""

    def shifted(e):
        position, _ = states()
        position[:, 0, 0] += e
        return candidate(position=position)

    def faster(e):
        _, velocity = states()
        velocity[:, 0] *= 1 + e
        return candidate(velocity=velocity)

    def flowing(e):
        return candidate(flows=tuple(f * np.float32(1 + e) for f in (FLOW, FLOW)))

    def turned(e):
        a = np.array([[np.cos(e), -np.sin(e)], [np.sin(e), np.cos(e)]])
        return candidate(flows=tuple((f @ a.T).astype(np.float32) for f in (FLOW, FLOW)))

    def late(e):
        return candidate(events=tuple(replace(x, time=x.time + e) for x in EVENTS))

    def broken(e):
        """One, two, three links missing, from the end."""
        return candidate(events=EVENTS[: len(EVENTS) - int(e)])

    def recorded(name, change):
        def make(e):
            estimate = candidate()
            return replace(
                estimate, series={**estimate.series, name: change(estimate.series[name], e)}
            )

        return make

    def leaning(d, e):
        return d @ np.array([[1, 0, 0], [0, np.cos(e), np.sin(e)], [0, -np.sin(e), np.cos(e)]])

    def brighter(c, e):
        return c * (1 + e)

    paths = ("fde", "dtw", "dtw_sum", "rmse")
    momenta = ("momentum_rmse", "energy_rmse", "error_rate", "robust_error")
    return [
        pytest.param(shifted, (0.1, 0.2, 0.5), paths, (), id="shift"),
        pytest.param(faster, (0.1, 0.3, 0.6), momenta, ("exact_match",), id="speed"),
        pytest.param(flowing, (0.1, 0.3, 0.6), ("rel_epe_dyn",), (), id="flow speed"),
        pytest.param(turned, (0.2, 0.5, 1.0), ("rel_epe_dyn", "-cos_sim_dyn"), (), id="flow turn"),
        pytest.param(late, (0.05, 0.2, 0.4), ("stage_delay",), (), id="delay"),
        pytest.param(recorded("sun_direction", leaning), (0.1, 0.5, 2.0),
                     ("sun_direction_error",), (), id="sun"),
        pytest.param(recorded("sun_color", brighter), (0.1, 0.5, 2.0), ("sun_color_error",), (),
                     id="sunlight"),
        pytest.param(recorded("sky", brighter), (0.1, 0.5, 2.0), ("sky_color_error",), (),
                     id="sky light"),
        pytest.param(recorded("surface_normal", leaning), (0.1, 0.5, 2.0),
                     ("surface_normal_error",), (), id="surface"),
        pytest.param(recorded("slosh_amplitude", brighter), (0.1, 0.5, 2.0),
                     ("modal_amplitude_rmse",), (), id="waves"),
        pytest.param(broken, (2, 3, 4), ("rf", "-amcl", "-ws", "-icra"),
                     ("csr", "mcl", "dua", "stage_delay"), id="broken chain"),
    ]  # fmt: skip


@pytest.mark.parametrize(("make", "strengths", "rising", "also"), doses())
def test_known_errors_raise_their_metrics_and_leave_the_others_alone(make, strengths, rising, also):
    series = [numbers(candidate()), *(numbers(make(e)) for e in strengths)]
    names = [n.removeprefix("-") for n in rising]
    for name in rising:
        plain = name.removeprefix("-")
        sign = -1 if name.startswith("-") else 1
        key = plain, SUBJECTS[METRICS[plain].dimension]
        values = [sign * s[key].value for s in series]
        assert all(a < b for a, b in itertools.pairwise(values)), (plain, values)
    for name, value in PERFECT.items():
        if name not in names and name not in also:
            key = name, SUBJECTS[METRICS[name].dimension]
            for s in series[1:]:
                assert s[key].value == pytest.approx(value, abs=1e-6), name


def test_a_track_that_is_mostly_lost_is_not_scored():
    position, _ = states()
    estimate = candidate()
    track = position[:, 0].copy()
    track[15:] = np.nan
    lost = replace(estimate, source="classical", positions={"ball": track}, velocities={})
    x = numbers(lost)["fde", "ball"]
    assert (x.status, x.value) == ("not_measured", None)
    assert x.reason == "found in 31 % of the frames, needs 50 %"
    assert x.coverage == pytest.approx(15 / FRAMES)
    track = position[:, 0].copy()
    track[30:] = np.nan
    kept = numbers(replace(lost, positions={"ball": track}))
    assert kept["fde", "ball"].detail["at_s"] == pytest.approx(29 / FPS)
    assert kept["fde", "ball"].coverage > LEAST_COVERAGE


def test_pixels_are_asked_for_the_driven_body_alone_and_velocity_is_differenced():
    position, _ = states()
    estimate = replace(
        candidate(), source="classical", positions={"ball": position[:, 0]}, velocities={},
        events=None, missing={"events": "not from pixels"},
    )  # fmt: skip
    found = numbers(estimate)
    assert {s for _, s in found} == {"ball", "picture", "chain", "light", "liquid"}
    # The line's slope is the speed of its middle: exact inside; one-sided at the ends, where it
    # lags by up to a = 2 m/s^2 times half of the half window of 0.2 s.
    assert 0 < found["momentum_rmse", "ball"].value < 2.0 * 2.0 * 0.1
    assert found["csr", "chain"].reason == "not from pixels"


def test_a_body_without_mass_carries_no_momentum_that_could_be_right():
    bodies = tuple(
        b.model_copy(update={"mass": 0.0, "motion": "kinematic"}) if b.name == "ball" else b
        for b in SCENE.bodies
    )
    truth = replace(TRUTH, scene=SCENE.model_copy(update={"bodies": bodies}))
    found = {(x.metric, x.subject): x for x in measure(truth, candidate())[0]}
    assert found["fde", "ball"].value == 0
    for name in ("momentum_rmse", "energy_rmse", "exact_match", "error_rate", "robust_error"):
        x = found[name, "ball"]
        assert (x.status, x.value, x.reason) == ("not_measured", None, "the body has no mass")
    assert found["momentum_rmse", "all bodies"].n == len(ROLES) - 1


def test_light_and_liquid_are_compared_only_where_they_are_asked_about_and_recorded():
    plain, _ = measure(replace(TRUTH, dimensions=()), candidate())
    assert not {x.metric for x in plain} & {"sun_direction_error", "surface_normal_error"}
    dry = replace(candidate(), series={})
    assert numbers(dry)["surface_normal_error", "liquid"].reason == "not recorded"
    seen = replace(dry, source="classical")
    assert numbers(seen)["sky_color_error", "light"].reason == "only a record knows it"


def test_windowing_is_a_named_option():
    late = candidate(events=tuple(replace(x, time=x.time + 0.4) for x in EVENTS))
    assert of(late, "csr", "chain") == 100
    assert of(late, "csr", "chain", tolerance=0.3) == 0


def test_stages_after_the_last_shared_frame_are_not_asked():
    short = replace(TRUTH, times=TIMES[:19], log=TRUTH.log.rows(slice(0, 19)))  # ends at 0.75 s
    own = oracle(short.log, short.times, bodies=list(ROLES), flows=(FLOW, FLOW))
    found = {x.metric: x for x in measure(short, own)[0] if x.subject == "chain"}
    assert found["csr"].value == 100
    assert found["csr"].n == 2
    assert found["csr"].detail["stages_after_end"] == 1
    shown = [stage for stage, *_ in found["csr"].detail["stages_seen_caused"]]
    assert shown == ["rolling", "strike"]


def test_a_scene_without_a_chain_is_not_asked_about_one():
    found, _ = measure(replace(TRUTH, shape="none"), candidate())
    assert not [x for x in found if METRICS[x.metric].dimension == "causality"]


def test_ineligible_dimensions_lose_their_numbers_and_keep_the_reason():
    found, _ = measure(TRUTH, candidate())
    cut = ineligible(found, {"causality": "keys move the viewer"})
    for before, after in zip(found, cut, strict=True):
        if METRICS[before.metric].dimension == "causality":
            assert (after.status, after.value) == ("ineligible", None)
            assert after.reason == "keys move the viewer"
        else:
            assert after == before


def test_what_needs_weights_is_named():
    rows = unrun(("causal_lpips",))
    assert [(x.metric, x.status, x.reason) for x in rows] == [
        ("clpips", "not_run", "weights LPIPS-Alex")
    ]
    assert unrun(("kinematics",)) == ()
    assert len(unrun(("lighting",))) == 6  # SRR, SDR, MOSD, SDJ, SAS, SSD
    assert len(unrun(("fluid",))) == 5
    assert Measurement(metric="fde", subject="b", source="oracle").key == ("fde", "b", "oracle")


def test_what_pixels_cannot_measure_is_withdrawn_with_its_reason():
    def number(metric, value, source="classical"):
        return Measurement(metric=metric, subject="ball", source=source, value=value)

    def checked(metric, floor, still, source="classical"):
        (x,) = below_floor([number(metric, 9.0, source)], [number(metric, floor)],
                           [number(metric, still, "oracle")])  # fmt: skip
        return x

    x = checked("energy_rmse", 725.0, 110.0)
    assert (x.status, x.value, x.detail) == ("not_measured", None, {"value": 9.0})
    assert x.reason == (
        "below the pixel floor: the reference's own video scores 725 J, a picture that never "
        "moves 110 J"
    )
    assert checked("energy_rmse", 30.0, 110.0).value == 9.0
    assert checked("exact_match", 0.0, 0.0).status == "not_measured"
    assert checked("exact_match", 50.0, 0.0).value == 9.0
    assert checked("energy_rmse", 725.0, 110.0, "oracle").value == 9.0
    assert checked("fde", 0.2, 0.0).value == 9.0  # metres say something by themselves
