"""Camera regimes are exact in closed form, over whatever else moves the camera."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from physics_scenes import DT, body, world_spec

from wmeval.clock import SceneClock
from wmeval.conventions import look_at
from wmeval.errors import UserError
from wmeval.scene import Sphere
from wmeval.sim.drivers import make_driver
from wmeval.sim.drivers.camera_motion import REGIMES, regime, yaw_deg, yawed
from wmeval.sim.protocol import DriverSpec, Probe
from wmeval.sim.world import LocalWorld

IN_PLACE = {"camera": "static"}
ROUND = {"camera": "static", "point": [1.0, 2.0, 0.5]}
FOLLOW = DriverSpec(
    kind="follow_camera",
    params={"camera": "follow", "body": "ball", "offset": [0, -12, 6], "mode": "smooth"},
)


def motion(**params):
    return DriverSpec(kind="camera_motion", params=params)


def world(*drivers, dt=DT):
    ball = body("ball", Sphere(radius=0.5), position=(1, 2, 0.5), linear_velocity=(3, 5, 0))
    spec = world_spec(ball, gravity=(0, 0, 0), drivers=drivers)
    return LocalWorld(type(spec)(**{**vars(spec), "clock": SceneClock(dt, Fraction(1, 60))}))


def poses(camera, *drivers, until=2400, probe="substeps", every=None, dt=DT):
    made = world(*drivers, dt=dt)
    rows = [made.reset().cameras.T_world_camera[:, camera]]
    while made.substep < until:
        stop = min(until, made.substep + (every or until))
        rows.append(made.advance((), stop, Probe(probe)).cameras.T_world_camera[:, camera])
    made.close()
    return np.concatenate(rows)


def rotation(deg):
    c, s = math.cos(math.radians(deg)), math.sin(math.radians(deg))
    return np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])


@pytest.mark.parametrize("name", list(REGIMES))
def test_legs_have_no_gaps_and_end_where_they_began(name):
    for in_place in (False, True):
        legs = regime(name).legs(in_place)
        assert legs[0].start == 0
        for a, b in pairwise(legs):
            assert (a.end, a.to_deg) == (b.start, b.from_deg)
        assert legs[-1].to_deg % 360 == 0
        assert yaw_deg(legs, float(legs[-1].end) + 3) == legs[-1].to_deg
    assert [leg.name for leg in regime("perturb_left").first] == ["out", "in"]
    assert regime("turn").third[-1].to_deg == 2 * regime("turn").first[-1].to_deg == 720


@pytest.mark.parametrize("name", list(REGIMES))
@pytest.mark.parametrize("params", [IN_PLACE, ROUND])
def test_every_substep_is_the_closed_form(name, params):
    log = poses(1, motion(regime=name, **params))
    pivot = np.array(params.get("point", log[0, :3, 3]))
    legs = regime(name).legs("point" not in params)
    knots = [0.0, *(float(leg.end) for leg in legs)]
    yaws = [0.0, *(leg.to_deg for leg in legs)]
    for k in (0, 1, 77, 300, 599, 600, 601, 1200, 1201, 1799, 2399, 2400):
        R = rotation(np.interp(k / 240, knots, yaws))
        expected = log[0].copy()
        expected[:3, :3] = R @ log[0, :3, :3]
        expected[:3, 3] = pivot + R @ (log[0, :3, 3] - pivot)
        assert np.abs(log[k] - expected).max() < 1e-12, k
        np.testing.assert_allclose(log[k, 2, :], log[0, 2, :], atol=1e-12)
    assert np.abs(log[2400] - log[0]).max() <= 1e-12


def test_left_is_left_and_an_orbit_keeps_what_it_looks_at():
    log = poses(1, motion(regime="sweep_left", **IN_PLACE), until=300)
    right = log[0, :3, 0]
    assert right @ log[300, :3, 2] < -0.5
    there = look_at((12, -12, 8), ROUND["point"])
    for deg in (33.0, 180.0, 275.0):
        pose = np.array(yawed(there.ravel().tolist(), deg, ROUND["point"])).reshape(4, 4)
        seen = np.linalg.inv(pose) @ [*ROUND["point"], 1]
        np.testing.assert_allclose(seen, np.linalg.inv(there) @ [*ROUND["point"], 1], atol=1e-12)


def test_a_following_camera_goes_on_following():
    plain = poses(0, FOLLOW, until=1200)
    over = poses(0, FOLLOW, motion(camera="follow", regime="sweep_left", body="ball"), until=1200)
    for k in (0, 1, 240, 555, 1200):
        at = np.array([1, 2, 0.5]) + np.array([3, 5, 0]) * k / 240
        R = rotation(36 * k / 240)
        np.testing.assert_allclose(over[k, :3, :3], R @ plain[k, :3, :3], atol=1e-12)
        expected = at + R @ (plain[k, :3, 3] - at)
        np.testing.assert_allclose(over[k, :3, 3], expected, atol=1e-9)


@pytest.mark.parametrize("drivers", [
    (motion(regime="turn", **ROUND),),
    (FOLLOW, motion(camera="follow", regime="turn", body="ball")),
])  # fmt: skip
def test_who_looks_and_how_often_changes_nothing(drivers):
    camera = 0 if len(drivers) == 2 else 1
    every = poses(camera, *drivers, until=400)
    seldom = poses(camera, *drivers, until=400, probe="last", every=100)
    np.testing.assert_array_equal(seldom, every[::100])
    made = world(*drivers)
    made.reset()
    view = made.run((), 200)
    first = view.camera(camera)
    assert view.camera(camera) == first == tuple(every[200].ravel())
    assert made.run((), 400).camera(camera) == tuple(every[400].ravel())
    made.close()


def test_angles_do_not_depend_on_the_step():
    coarse = poses(1, motion(regime="turn", **ROUND), until=60, dt=Fraction(1, 60))
    fine = poses(1, motion(regime="turn", **ROUND), until=480, dt=Fraction(1, 480))
    np.testing.assert_allclose(fine[::8], coarse, atol=1e-12)


def test_bad_regimes_are_refused():
    with pytest.raises(UserError, match="no camera motion 'spin': choose from perturb_left"):
        make_driver(motion(camera="static", regime="spin"))
    with pytest.raises(UserError, match="give body or point, not both"):
        make_driver(motion(camera="static", regime="turn", body="ball", point=[0, 0, 0]))
    with pytest.raises(UserError, match="no camera 'side'"):
        world(motion(camera="side", regime="turn")).reset()
