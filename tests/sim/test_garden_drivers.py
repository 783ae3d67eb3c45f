"""Wind, particles, boids, splines: what moves in a garden, against closed forms."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from physics_scenes import body, world_spec
from pydantic import ValidationError
from scipy.spatial.transform import Rotation

from wmeval.conventions import quaternion_multiply
from wmeval.errors import UserError
from wmeval.records import WorldLog
from wmeval.scene import Body, Cylinder
from wmeval.sim.drivers import make_driver
from wmeval.sim.drivers.particles import Particles
from wmeval.sim.drivers.scatter import scattered
from wmeval.sim.drivers.spline import ClosedSpline
from wmeval.sim.drivers.turns import exponential, turned
from wmeval.sim.protocol import DriverSpec, Probe
from wmeval.sim.world import LocalWorld

EVERY = Probe(states="substeps")
DT = 1 / 240


def data(name, position=(0.0, 0.0, 0.0), **fields):
    return Body(name=name, role="leaf", motion="kinematic", instance=0, position=position, **fields)


def run(spec, steps):
    world = LocalWorld(spec)
    return WorldLog.concatenate([world.reset(), world.advance((), steps, EVERY)]).state


def angular_velocity(quaternions):
    """By central differences, world frame, of (N, 4) quaternions a substep apart: (N - 2, 3)."""
    turns = Rotation.from_quat(quaternions[:, [1, 2, 3, 0]])
    return (turns[2:] * turns[:-2].inv()).as_rotvec() / (2 * DT)


def agrees_with_its_rates(state, body, *, linear=1e-3, angular=1e-3):
    """Velocities are the derivatives of poses."""
    steps = np.diff(state.position[:, body], axis=0)
    middle = (steps[1:] + steps[:-1]) / (2 * DT)
    np.testing.assert_allclose(state.linear_velocity[1:-1, body], middle, atol=linear)
    spin = angular_velocity(state.quaternion_wxyz[:, body])
    np.testing.assert_allclose(state.angular_velocity[1:-1, body], spin, atol=angular)


# --- rotations and counters ---------------------------------------------------------------------


def test_exponential_and_products_are_scipys():
    rng = np.random.default_rng(0)
    vector = rng.normal(size=(40, 3)) * np.geomspace(1e-7, 3.0, 40)[:, None]
    rate = rng.normal(size=(40, 3))
    quaternion, velocity = exponential(vector, rate)
    theirs = Rotation.from_rotvec(vector)
    mine = Rotation.from_quat(quaternion[:, [1, 2, 3, 0]])
    assert (theirs.inv() * mine).magnitude().max() < 1e-12
    h = 1e-6
    ahead, behind = (Rotation.from_rotvec(vector + s * h * rate) for s in (1, -1))
    np.testing.assert_allclose(velocity, (ahead * behind.inv()).as_rotvec() / (2 * h), atol=1e-7)
    other = Rotation.random(40, random_state=1)
    q = other.as_quat()[:, [3, 0, 1, 2]]
    product = quaternion_multiply(quaternion, q)
    assert (
        (theirs * other).inv() * Rotation.from_quat(product[:, [1, 2, 3, 0]])
    ).magnitude().max() < 1e-12
    np.testing.assert_allclose(turned(q, vector), other.apply(vector), atol=1e-12)


def test_scattered_numbers_are_uniform_and_belong_to_their_place():
    a, b = (x.ravel().astype(np.uint64) for x in np.meshgrid(np.arange(200), np.arange(200)))
    draws = scattered(7, a, b, 4)[3]
    assert 0 <= draws.min() < 0.001 < 0.999 < draws.max() < 1
    counts = np.histogram(draws, 20, (0, 1))[0]
    # Chi-square of 19 degrees of freedom: 99.9 % lie below 43.8.
    assert ((counts - 2000) ** 2 / 2000).sum() < 43.8
    other = scattered(8, a, b, 4)[3]
    assert abs(np.corrcoef(draws, other)[0, 1]) < 0.02
    assert abs(np.corrcoef(draws[1:], draws[:-1])[0, 1]) < 0.02
    np.testing.assert_array_equal(scattered(7, a[5:9], b[5:9], 6)[3], draws[5:9])


# --- wind ---------------------------------------------------------------------------------------


def wind_spec(seed=3, sway=5.0, shift=0.1):
    names = [f"leaf_{i}" for i in range(6)]
    leaves = [
        data(n, (1.5 * i, 0.3 * i, 2.0), quaternion_wxyz=(math.cos(i), 0, 0, math.sin(i)))
        for i, n in enumerate(names)
    ]
    params = {
        "bodies": names,
        "sway_deg": [sway] * 6,
        "shift": [shift] * 6,
        "heading_deg": 30.0,
        "seed": seed,
    }
    return world_spec(*leaves, drivers=(DriverSpec(kind="wind", params=params),))


def test_wind_keeps_within_its_amplitudes_and_leans_with_the_wind():
    state = run(wind_spec(), 6000)
    rest = np.array([b.position for b in wind_spec().scene.bodies])
    away = state.position - rest
    d = np.array([math.cos(math.radians(30)), math.sin(math.radians(30)), 0])
    side = np.array([-d[1], d[0], 0])
    # Of its amplitude 0.28 are the lean and 0.72 the sway.
    assert (away @ d).min() >= -0.1 * (0.72 - 0.28)
    assert (away @ d).max() <= 0.1
    assert (away @ d).mean() > 0.01
    assert np.abs(away @ side).max() <= 0.05 * (1 - 0.28) + 1e-9
    assert np.abs(away[..., 2]).max() == 0
    assert (away @ d).max() > 0.06
    for k in range(6):
        turn = Rotation.from_quat(state.quaternion_wxyz[::50, k][:, [1, 2, 3, 0]])
        at_rest = Rotation.from_quat(np.array([0, 0, math.sin(k), math.cos(k)]))
        lean = (turn * at_rest.inv()).as_rotvec()
        assert np.linalg.norm(lean, axis=1).max() <= math.radians(5.0) * math.hypot(1, 0.36) + 1e-9
        # What stood upright leans along the wind on the average.
        assert (np.cross(lean, [0, 0, 1.0]) @ d).mean() > 0.1 * math.radians(5.0)


def test_wind_velocities_are_the_rates_of_its_poses():
    state = run(wind_spec(sway=40.0, shift=0.3), 600)
    for k in range(6):
        agrees_with_its_rates(state, k)


def test_wind_is_a_function_of_time_and_seed_alone():
    often = run(wind_spec(), 300)
    world = LocalWorld(wind_spec())
    world.reset()
    once = world.advance((), 300, Probe()).state
    np.testing.assert_array_equal(often.position[-1], once.position[-1])
    np.testing.assert_array_equal(often.quaternion_wxyz[-1], once.quaternion_wxyz[-1])
    assert np.abs(run(wind_spec(seed=4), 300).position[-1] - once.position[-1]).max() > 1e-3


# --- particles ----------------------------------------------------------------------------------


def particles(motion, count=30, **more):
    params = {
        "bodies": [f"p{i}" for i in range(count)],
        "motion": motion,
        "low": [-1.0, -1.0, 3.0],
        "high": [1.0, 1.0, 4.0],
        "period": 4.0,
        "life": 3.0,
        "seed": 5,
        **more,
    }
    bodies = [data(f"p{i}") for i in range(count)]
    return world_spec(*bodies, drivers=(DriverSpec(kind="particles", params=params),))


def test_jets_are_parabolas_under_the_scenes_gravity():
    spec = particles("jet", velocity=[0, 0, 6.0], spread=[1.0, 1.0, 0.0], floor=-50.0)
    state = run(spec, 960)
    alive = state.active
    both = alive[2:] & alive[1:-1] & alive[:-2]
    z = state.position[..., 2]
    bend = (z[2:] - 2 * z[1:-1] + z[:-2]) / DT**2
    whole = both & (np.abs(bend) < 100)  # a new life begins elsewhere
    np.testing.assert_allclose(bend[whole], -9.81, atol=1e-4)
    assert whole.mean() > 0.7
    moon = spec.scene.model_copy(update={"gravity": (0.0, 0.0, -1.62)})
    state = run(dataclasses.replace(spec, scene=moon), 4)
    z = state.position[..., 2]
    slow = (z[2:] - 2 * z[1:-1] + z[:-2]) / DT**2
    np.testing.assert_allclose(np.median(slow), -1.62, atol=1e-4)


@pytest.mark.parametrize("motion", ["fall", "jet", "drift"])
def test_particles_velocities_are_the_rates_of_their_poses(motion):
    spec = particles(motion, 6, velocity=[0.3, 0, -0.6], spread=[0.2, 0.2, 0.1], swing=0.2,
                     spin=3.0, period=50.0, life=50.0, floor=-1e3)  # fmt: skip
    state = run(spec, 400)
    for k in range(6):
        jumped = np.abs(np.diff(state.position[:, k], axis=0)).max() > 0.5
        if not jumped:
            agrees_with_its_rates(state, k, linear=2e-3, angular=5e-3)
    assert motion != "drift" or np.abs(state.position[:, :, :2]).max() < 1.0 + 2 * 0.2 + 1e-9


def test_particles_begin_in_their_box_and_live_their_share():
    driver = make_driver(particles("drift", 50).drivers[0])
    assert isinstance(driver, Particles)
    world = LocalWorld(particles("drift", 50))
    world.reset()
    driver.reset(world.spec.scene, world._engine)
    alive = np.array([driver.at(t)[1] for t in np.arange(0, 40, 0.05)])
    assert alive.mean() == pytest.approx(0.75, abs=0.01)
    births = [driver.at(t)[0][:, :3] for t in np.arange(0, 8, 0.5)]
    assert (np.abs(np.array(births)[..., :2]) <= 1).all()
    first, later = driver.at(0.0)[0], driver.at(4.0)[0]
    assert np.abs(first[:, :3] - later[:, :3]).max() > 0.3  # drawn anew in every life
    np.testing.assert_array_equal(driver.at(17.3)[0], driver.at(17.3)[0])


def test_particles_that_cannot_be_are_refused():
    with pytest.raises(UserError, match="does not fit a period"):
        LocalWorld(particles("fall", life=5.0)).reset()
    with pytest.raises(UserError, match="has no inside"):
        LocalWorld(particles("fall", low=[0, 0, 5.0])).reset()


# --- boids --------------------------------------------------------------------------------------


def flock(seed=1, count=14, **more):
    names = [f"b{i}" for i in range(count)]
    params = {
        "birds": names,
        "centre": [0.0, 0.0, 20.0],
        "half": [16.0, 16.0, 6.0],
        "obstacles": [[3.0, 2.0, 20.0, 3.0]],
        "seed": seed,
        **more,
    }
    return world_spec(*(data(n) for n in names), drivers=(DriverSpec(kind="boids", params=params),))


def polarisation(velocity):
    unit = velocity / np.linalg.norm(velocity, axis=-1, keepdims=True)
    return np.linalg.norm(unit.mean(axis=-2), axis=-1)


def test_a_flock_keeps_its_speeds_its_bounds_and_its_distance():
    state = run(flock(), 240 * 30)
    speed = np.linalg.norm(state.linear_velocity, axis=-1)
    assert speed.min() >= 4.0 - 1e-9
    assert speed.max() <= 8.0 + 1e-9
    away = np.abs(state.position - [0.0, 0.0, 20.0]) / [16.0, 16.0, 6.0]
    assert away.max() < 1.3  # at 8 m/s and 9 m/s2 a turn is 7 m wide
    from_obstacle = np.linalg.norm(state.position - [3.0, 2.0, 20.0], axis=-1)
    assert (from_obstacle < 3.0).mean() < 0.005
    assert from_obstacle.min() > 2.3
    gap = np.linalg.norm(state.position[:, :, None] - state.position[:, None], axis=-1)
    gap += 1e9 * np.eye(14)
    assert np.median(gap.min(axis=-1)) > 0.5
    # It is a flock: together (most in sight of the next one), and of one direction.
    assert np.quantile(gap[2400:].min(axis=-1), 0.8) < 5.0
    assert np.median(polarisation(state.linear_velocity[2400:])) > 0.8


def test_birds_do_not_depend_on_where_memory_lies():
    """Numpy's vector paths, and with them last bits, may change with the addresses of arrays."""
    first, second = (run(flock(count=12), 240).quaternion_wxyz for _ in range(2))
    held = []
    rng = np.random.default_rng(0)
    for _ in range(6):
        # Holes of the sizes that show() asks for, in ever other places.
        held += [np.empty(int(n)) for n in rng.choice([12, 24, 36, 48, 156], 400)]
        del held[:: int(rng.integers(2, 5))]
        assert run(flock(count=12), 240).quaternion_wxyz.tobytes() == first.tobytes()
    assert first.tobytes() == second.tobytes()


@pytest.mark.parametrize(("tick", "mend"), [(0.03, "0.0291667"), (1e-3, "0.00416667")])
def test_ticks_between_substeps_are_refused(tick, mend):
    with pytest.raises(UserError, match=f"no whole number of substeps .* or a tick of {mend} s"):
        LocalWorld(flock(tick=tick)).reset()
    LocalWorld(flock(tick=7 / 240)).reset()


def test_birds_that_do_not_avoid_fly_through():
    blind = run(flock(weights=[3.0, 1.0, 0.45, 0.0, 2.5]), 240 * 30)
    from_obstacle = np.linalg.norm(blind.position - [3.0, 2.0, 20.0], axis=-1)
    assert (from_obstacle < 3.0).mean() > 0.02
    assert from_obstacle.min() < 1.5


def test_birds_that_do_not_look_at_each_other_are_no_flock():
    alone = {"weights": [0.0, 0.0, 0.0, 18.0, 2.5]}
    apart = [np.median(polarisation(run(flock(s, **alone), 4800).linear_velocity[2400:]))
             for s in (1, 2)]  # fmt: skip
    together = [np.median(polarisation(run(flock(s), 4800).linear_velocity[2400:])) for s in (1, 2)]
    assert max(apart) < min(together)


def test_birds_fly_straight_between_ticks_and_looking_changes_nothing():
    state = run(flock(), 480)
    steps = np.diff(state.position, axis=0)
    # The velocity of a state is that of the way to the next one.
    np.testing.assert_allclose(state.linear_velocity[:-1] * DT, steps, atol=1e-9)
    changed = np.flatnonzero(np.abs(np.diff(state.linear_velocity, axis=0)).max(axis=(1, 2)))
    assert (np.unique((changed + 1) % 8) == 0).all()
    world = LocalWorld(flock())
    world.reset()
    np.testing.assert_array_equal(
        world.advance((), 480, Probe()).state.position[-1], state.position[-1]
    )


def test_wings_beat_about_their_shoulders():
    names = ["b0", "l0", "r0"]
    params = {"birds": ["b0"], "wings": [["l0", "r0"]], "centre": [0, 0, 20.0],
              "half": [30.0, 30.0, 9.0], "hinge": [0.02, 0.05, 0.01]}  # fmt: skip
    state = run(
        world_spec(*(data(n) for n in names), drivers=(DriverSpec(kind="boids", params=params),)),
        240,
    )
    bird = Rotation.from_quat(state.quaternion_wxyz[:, 0][:, [1, 2, 3, 0]])
    for k, side in ((1, 1.0), (2, -1.0)):
        hinge = state.position[:, 0] + bird.apply([0.02, side * 0.05, 0.01])
        np.testing.assert_allclose(state.position[:, k], hinge, atol=1e-12)
        wing = Rotation.from_quat(state.quaternion_wxyz[:, k][:, [1, 2, 3, 0]])
        along = bird.inv().apply(wing.apply([0, 1.0, 0]))
        np.testing.assert_allclose(along[:, 0], 0, atol=1e-12)
        assert (np.sign(along[:, 1]) == side).all()
        lift = np.degrees(np.arcsin(along[:, 2]))
        assert 36 < lift.max() < 38.1
        assert -38.1 < lift.min() < -36
    left, right = (
        Rotation.from_quat(state.quaternion_wxyz[:, k][:, [1, 2, 3, 0]]).apply([0, 1.0, 0])
        for k in (1, 2)
    )
    np.testing.assert_allclose(
        bird.inv().apply(left)[:, 2], bird.inv().apply(right)[:, 2], atol=1e-9
    )


# --- splines ------------------------------------------------------------------------------------

WALK = [(2.0, 0.0, 1.0), (1.2, 1.9, 1.0), (-1.0, 1.7, 1.0), (-2.2, 0.3, 1.0), (-0.4, -2.0, 1.0)]


def test_spline_runs_through_its_points_at_one_metre_a_metre():
    curve = ClosedSpline(WALK)
    s = np.linspace(0, curve.length, 4001)
    points = np.array([curve.at(x)[0] for x in s])
    tangents = np.array([curve.at(x)[1] for x in s])
    for point in WALK:
        assert np.linalg.norm(points - point, axis=1).min() < curve.length / 4000
    chord = np.linalg.norm(np.diff(points, axis=0), axis=1)
    assert chord.sum() == pytest.approx(curve.length, rel=1e-6)
    assert chord.max() / chord.min() < 1 + 1e-4
    np.testing.assert_allclose(np.linalg.norm(tangents, axis=1), 1, atol=1e-12)
    middle = (points[2:] - points[:-2]) / np.linalg.norm(points[2:] - points[:-2], axis=1)[:, None]
    assert np.abs(middle - tangents[1:-1]).max() < 2e-3
    np.testing.assert_allclose(points[0], points[-1], atol=1e-9)


def test_spline_through_a_circle_is_nearly_one():
    angles = 2 * np.pi * np.arange(16) / 16
    curve = ClosedSpline([(3 * math.cos(a), 3 * math.sin(a), 0.0) for a in angles])
    assert curve.length == pytest.approx(2 * math.pi * 3, rel=2e-3)
    for x in np.linspace(0, curve.length, 50):
        point, tangent, bend = curve.at(x)
        assert math.hypot(*point[:2]) == pytest.approx(3.0, rel=2e-3)
        assert tangent[0] * point[0] + tangent[1] * point[1] == pytest.approx(0, abs=0.02)
        assert bend == pytest.approx(1 / 3, rel=0.12)


@pytest.mark.parametrize("solid", [True, False])
def test_a_walker_keeps_its_speed_and_faces_its_way(solid):
    walker = data("walker", WALK[0])
    if solid:
        walker = body("walker", Cylinder(radius=0.3, height=1.8), motion="kinematic",
                      position=WALK[0])  # fmt: skip
    params = {"body": "walker", "points": [list(p) for p in WALK], "speed": 1.5, "start": 0.25}
    spec = world_spec(walker, drivers=(DriverSpec(kind="spline", params=params),))
    state = run(spec, 2400)
    speed = np.linalg.norm(state.linear_velocity[:, 0], axis=1)
    np.testing.assert_allclose(speed, 1.5, rtol=1e-9)
    steps = np.diff(state.position[:, 0], axis=0)
    middle = (steps[1:] + steps[:-1]) / (2 * DT)
    np.testing.assert_allclose(state.linear_velocity[1:-1, 0], middle, atol=6e-3)
    off = np.abs(state.angular_velocity[1:-1, 0] - angular_velocity(state.quaternion_wxyz[:, 0]))
    # A Catmull-Rom spline's curvature jumps at its points, ten times on this walk.
    assert (off.max(axis=1) > 0.01).sum() < 30
    ahead = Rotation.from_quat(state.quaternion_wxyz[:, 0][:, [1, 2, 3, 0]]).apply([0, 1.0, 0])
    np.testing.assert_allclose(ahead, state.linear_velocity[:, 0] / 1.5, atol=1e-9)
    # Once around and it is where it began.
    round_ = ClosedSpline(WALK).length / 1.5
    k = round_ / DT
    assert k < 2400
    between = state.position[int(k)] + (k - int(k)) * (
        state.position[int(k) + 1] - state.position[int(k)]
    )
    np.testing.assert_allclose(between[0], state.position[0, 0], atol=1e-4)


def test_a_spline_of_two_points_is_refused():
    with pytest.raises(UserError, match="points"):
        make_driver(DriverSpec(kind="spline", params={"body": "a", "points": [[0, 0, 0], [1, 0, 0]],
                                                      "speed": 1.0}))  # fmt: skip
    with pytest.raises((UserError, ValidationError)):
        make_driver(DriverSpec(kind="wind", params={"bodies": ["a"], "sway_deg": [], "shift": []}))
