"""Errors of recorded light and of a recorded liquid, against known answers."""

import math

import numpy as np
import pytest

from wmeval.eval.metrics import fluid, lighting

RNG = np.random.default_rng(0)


def around_z(degrees, tilt=60.0):
    """Unit vectors at one tilt from z, turned about it."""
    a, s = np.radians(degrees), math.sin(math.radians(tilt))
    z = np.full_like(a, math.cos(math.radians(tilt)))
    return np.stack([s * np.cos(a), s * np.sin(a), z], axis=1)


def test_angles_between_directions_are_exact_from_none_to_opposite():
    reference = np.tile([0.0, 0.0, -1.0], (5, 1))
    angles = np.array([0.0, 1e-7, 10.0, 90.0, 180.0])
    a = np.radians(angles)
    turned = np.stack([np.sin(a), np.zeros(5), -np.cos(a)], axis=1)
    assert lighting.direction_errors(turned, reference) == pytest.approx(angles, rel=1e-9)
    # No matter how long the vectors are.
    assert lighting.direction_errors(3 * turned, 0.1 * reference) == pytest.approx(angles, rel=1e-9)


def test_a_turn_about_z_leaves_the_angle_of_the_spherical_law_of_cosines():
    turned = around_z(np.array([25.0, 65.0]))
    plain = around_z(np.array([0.0, 0.0]))
    cos2, sin2 = 0.25, 0.75
    expected = [math.degrees(math.acos(cos2 + sin2 * math.cos(math.radians(d)))) for d in (25, 65)]
    assert lighting.direction_errors(turned, plain) == pytest.approx(expected, rel=1e-12)
    rms = math.hypot(*expected) / math.sqrt(2)
    assert lighting.direction_rmse(turned, plain) == pytest.approx(rms, rel=1e-12)


def test_what_is_equal_has_no_error_at_all():
    d = RNG.normal(size=(50, 3))
    assert lighting.direction_rmse(d, d) == 0
    assert lighting.relative_light_error(d, d) == 0
    assert fluid.surface_angle(d, d) == 0
    assert fluid.amplitude_rmse(d, d) == 0


def test_light_too_strong_by_a_tenth_is_ten_per_cent_wrong_by_day_and_night():
    light = np.array([[3.0, 2.0, 1.0], [1e-6, 0.0, 0.0], [0.0, 0.0, 0.0]])
    assert lighting.relative_light_error(1.1 * light, light) == pytest.approx(10)
    assert lighting.relative_light_error(0 * light, light) == pytest.approx(100)
    sky = RNG.uniform(size=(4, 3, 3))
    assert lighting.relative_light_error(0.75 * sky, sky) == pytest.approx(25)


def test_a_surface_askew_and_a_wave_off_by_known_amounts():
    tilt = np.radians([3.0, 4.0])
    askew = np.stack([np.sin(tilt), np.zeros(2), np.cos(tilt)], axis=1)
    level = np.tile([0.0, 0.0, 1.0], (2, 1))
    assert fluid.surface_angle(askew, level) == pytest.approx(math.sqrt(12.5))
    t = np.arange(240) / 240
    wave = np.stack([0.02 * np.cos(2 * math.pi * 2 * t), np.zeros(240)], axis=1)
    assert fluid.amplitude_rmse(0 * wave, wave) == pytest.approx(0.02 / math.sqrt(2))


def test_what_is_not_known_is_left_out_and_nothing_known_is_no_number():
    a, b = around_z(np.array([0.0, 30.0])), around_z(np.array([20.0, 30.0]))
    b[0] = np.nan
    assert lighting.direction_rmse(a, b) == 0
    assert lighting.relative_light_error(a, b) == 0
    nothing = np.full((2, 3), np.nan)
    for function in (lighting.direction_rmse, lighting.relative_light_error,
                     fluid.surface_angle, fluid.amplitude_rmse):  # fmt: skip
        assert math.isnan(function(nothing, a))
    assert math.isnan(lighting.direction_rmse(a, 0 * a))
    assert math.isnan(lighting.relative_light_error(a, 0 * a))


def test_series_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"\(T, 3\)"):
        lighting.direction_errors(np.zeros((2, 3)), np.zeros((3, 3)))
    with pytest.raises(ValueError, match="one shape"):
        lighting.relative_light_error(np.zeros((2, 3)), np.zeros((2, 9)))
