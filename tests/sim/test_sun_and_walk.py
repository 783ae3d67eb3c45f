"""The turning sun and the walking orbit against their closed forms."""

import math
from types import SimpleNamespace

import numpy as np
import pytest

from wmeval.conventions import from_unity_quaternion, quaternion_to_matrix, to_unity_vector
from wmeval.sim.drivers import make_driver
from wmeval.sim.drivers.sun import (
    KEYS,
    daylight,
    elevation_deg,
    light_direction,
    light_quaternion,
    turn_of,
)
from wmeval.sim.drivers.walking_orbit import WalkingOrbit, eye_at
from wmeval.sim.protocol import DriverSpec

ANGLES = [(0, 0, 0), (37, -30, 0), (90, -30, 0), (181, -30, 0), (271.5, 40, 20), (-20, 200, -70)]


def unity_turn(axis, degrees):
    """Rotation matrix of Unity about an axis, acting on (x, y, z) in its left-handed frame."""
    a = math.radians(degrees)
    c, s = math.cos(a), math.sin(a)
    if axis == "x":
        return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])
    return np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])


@pytest.mark.parametrize(("turn", "yaw", "pitch"), ANGLES)
def test_the_light_is_turned_as_unity_turns_it(turn, yaw, pitch):
    unity = unity_turn("x", turn) @ unity_turn("y", yaw) @ unity_turn("x", pitch)
    forward = to_unity_vector(unity @ [0, 0, 1])
    assert np.allclose(light_direction(turn, yaw, pitch), forward, atol=1e-12)
    q = np.array(light_quaternion(turn, yaw, pitch))
    swap = np.eye(3)[[0, 2, 1]]
    assert np.allclose(quaternion_to_matrix(q), swap @ unity @ swap, atol=1e-12)
    assert np.allclose(quaternion_to_matrix(q) @ [0, 1, 0], forward, atol=1e-12)


def test_a_light_in_unitys_inspector():
    """Euler (50, -30, 0), Unity's new light: from the upper right behind, downwards."""
    half = [math.radians(a) / 2 for a in (50, -30)]
    qx = (math.sin(half[0]), 0, 0, math.cos(half[0]))
    qy = (0, math.sin(half[1]), 0, math.cos(half[1]))
    x = qy[3] * qx[0]
    y = qy[1] * qx[3]
    z = -qy[1] * qx[0]
    w = qy[3] * qx[3]
    expected = from_unity_quaternion(np.array([x, y, z, w]))
    assert np.allclose(light_quaternion(0.0, -30.0, 50.0), expected, atol=1e-12)


def test_turning_is_told_from_the_direction():
    for turn in np.linspace(-179, 179, 37):
        for yaw, pitch in ((-30.0, 0.0), (12.0, 25.0)):
            back = turn_of(light_direction(turn, yaw, pitch), pitch, yaw)
            assert math.remainder(back - turn, 360) == pytest.approx(0, abs=1e-9)


def test_sunrise_noon_sunset():
    at = [elevation_deg(light_direction(t, -30.0)) for t in (0, 90, 180, 270)]
    assert at == pytest.approx([0, 60, 0, -60], abs=1e-9)
    # The part along X never changes: the sun stays on one side of the table.
    x = [light_direction(t, -30.0)[0] for t in range(0, 360, 10)]
    assert x == pytest.approx([-0.5] * 36)


def test_colours_meet_their_keys_without_jumps_or_overshoot():
    for key in KEYS:
        for got, want in zip(daylight(key[0]), key[1:], strict=True):
            assert got == pytest.approx(want, abs=1e-12)
    heights = np.linspace(-90, 90, 3601)
    colors = np.array([np.concatenate(daylight(float(h))) for h in heights])
    assert np.abs(np.diff(colors, axis=0)).max() < 0.035  # in a twentieth of a degree
    keys = np.array([np.concatenate(k[1:]) for k in KEYS])
    which = np.clip(
        np.searchsorted([k[0] for k in KEYS], heights, side="right") - 1, 0, len(KEYS) - 2
    )
    low, high = np.minimum(keys[which], keys[which + 1]), np.maximum(keys[which], keys[which + 1])
    assert (colors >= low - 1e-12).all()
    assert (colors <= high + 1e-12).all()


def test_a_low_sun_is_red_and_a_high_one_white():
    redness = [daylight(h)[0][0] / max(daylight(h)[0][2], 1e-9) for h in (1.5, 6, 14, 30, 60)]
    assert redness == sorted(redness, reverse=True)
    assert redness[0] > 15
    assert redness[-1] < 1.2
    brightness = [sum(daylight(h)[0]) for h in range(-18, 91, 2)]
    assert brightness == sorted(brightness)
    assert brightness[0] < 0.05
    # Twilight: orange at the horizon under a blue zenith; at night both are blue.
    _, zenith, horizon, _ = daylight(0.0)
    assert horizon[0] > 2 * horizon[2]
    assert zenith[2] > 2 * zenith[0]
    _, zenith, horizon, _ = daylight(-40.0)
    assert horizon[2] > horizon[0]
    assert zenith[2] > zenith[0]


class Shown:
    """A view that keeps what a driver puts."""

    def __init__(self, substep=0, dt=1 / 240):
        self.substep, self.dt = substep, dt

    def set_sun(self, direction, color):
        self.sun = direction, color

    def set_sky(self, *sky):
        self.sky = sky

    def set_camera(self, camera, position, target):
        self.camera = camera, position, target


def test_the_driver_is_a_pure_function_of_time():
    spec = DriverSpec(kind="sun", params={"turn_deg": 10.0, "yaw_deg": -30.0})
    seen = {}
    for order in ([0, 120, 864, 24], [864, 24, 0, 0, 120]):
        driver = make_driver(spec)
        driver.reset(SimpleNamespace(), Shown())
        for k in order:
            view = Shown(k)
            driver.show(view)
            assert seen.setdefault(k, (view.sun, view.sky)) == (view.sun, view.sky)
    assert seen[120][0][0] == pytest.approx(light_direction(60.0, -30.0), abs=1e-12)
    # 3.6 s later the sun stands where it stood.
    assert seen[864][0][0] == pytest.approx(seen[0][0][0], abs=1e-9)


def test_a_walk_rounds_the_target_at_an_even_pace():
    params = WalkingOrbit.Params(
        camera="first", target=(1.0, -2.0, 0.7), radius=3.0, period=12.0, start_deg=225.0
    )
    times = np.linspace(0, 12, 49)
    at = np.array([eye_at(params, t) for t in times])
    assert np.allclose(np.hypot(at[:, 0] - 1, at[:, 1] + 2), 3.0)
    assert np.allclose(at[:, 2], 1.6)
    assert np.allclose(at[0], at[-1])
    steps = np.linalg.norm(np.diff(at, axis=0), axis=1)
    assert np.allclose(steps, 2 * 3.0 * math.sin(math.pi / 48))
    back = np.array([eye_at(params.model_copy(update={"forward": False}), t) for t in times])
    assert np.allclose(back, at[::-1])
    # Counter-clockwise from above.
    angle = np.unwrap(np.arctan2(at[:, 1] + 2, at[:, 0] - 1))
    assert angle[-1] - angle[0] == pytest.approx(2 * math.pi)


def test_a_bobbing_head_rises_once_a_step():
    params = WalkingOrbit.Params(
        camera="first", target=(0, 0, 0.7), radius=3.0, period=12.0, bob=0.04, steps=24
    )
    z = np.array([eye_at(params, t)[2] for t in np.arange(0, 12, 0.005)])
    assert z.min() == pytest.approx(1.6)
    assert z.max() == pytest.approx(1.64)
    inner = z[1:-1]
    assert ((inner > z[:-2]) & (inner >= z[2:])).sum() == 24
