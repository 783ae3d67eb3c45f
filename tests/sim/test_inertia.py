"""Stated inertia: torque-free turning against Euler's closed form, on every engine that is here."""

import dataclasses
import math

import numpy as np
import pytest
from engine_worlds import at_rate, engine_here, joined, period, play
from physics_scenes import body, world_spec
from pydantic import ValidationError
from scipy.special import ellipj

from wmeval.conventions import quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import Box, Collision, Joint, Scene, Sphere
from wmeval.sim.engines.blender import _described
from wmeval.sim.engines.bullet_shapes import centred_inertia, mass_properties, principal_inertia
from wmeval.sim.engines.carom_scene import read_table

MOMENTS = (2.0e-4, 5.2e-4, 6.8e-4)
HEAVY = [pytest.param(name, marks=pytest.mark.accept) for name in ("newton", "genesis")]


def spinning(**fields):
    """A cube in free space whose stated moments are those of a brick."""
    cube = body("cube", Box(half_extents=(0.03, 0.03, 0.03)), mass=0.6, inertia=MOMENTS, **fields)
    spec = world_spec(cube)
    free = spec.scene.model_copy(update={"gravity": (0.0, 0.0, 0.0)})
    return dataclasses.replace(spec, scene=free)


def turning(times, moments, start):
    """Angular velocity (N, 3) in the body's frame, free of torques (Landau and Lifshitz 37.10).

    ``start`` is turned about the axis of the least moment, begins where the middle one is 0.
    """
    (a, b, c), (p, _, r) = moments, start
    energy = a * p * p + c * r * r
    square = a * a * p * p + c * c * r * r
    # It circles the axis of the least moment while L^2 < 2 E I_middle.
    rate = math.sqrt((b - a) * (c * energy - square) / (a * b * c))
    modulus = (c - b) * (square - a * energy) / ((b - a) * (c * energy - square))
    sn, cn, dn, _ = ellipj(rate * np.asarray(times), modulus)
    middle = math.sqrt((square - a * energy) / (b * (b - a)))
    return np.stack([p * dn, middle * sn, r * cn], axis=1)


def in_body(state):
    frames = np.stack([quaternion_to_matrix(q) for q in state.quaternion_wxyz[:, 0]])
    return np.einsum("nji,nj->ni", frames, state.angular_velocity[:, 0]), frames


@pytest.fixture(params=["bullet", "physx", *HEAVY])
def engine(request):
    return engine_here(request.param)


def test_a_free_body_turns_as_its_stated_moments_say(engine):
    start = (12.0, 0.0, 2.4)
    turned = (math.cos(0.4), 0.0, math.sin(0.4) * 0.6, math.sin(0.4) * 0.8)
    frame = quaternion_to_matrix(np.array(turned))
    state = play(
        at_rate(
            spinning(quaternion_wxyz=turned, angular_velocity=tuple((frame @ start).tolist())),
            800, engine,
        ),
        0.8,
    ).state  # fmt: skip
    found, frames = in_body(state)
    expected = turning(state.times, MOMENTS, start)
    assert np.abs(expected[:, 1]).max() > 1.6  # it wobbles, once over
    assert np.abs(found - expected).max() < 0.04 * np.linalg.norm(start)
    momentum = np.einsum("nij,nj->ni", frames, found * MOMENTS)
    departure = np.linalg.norm(momentum - momentum[0], axis=1).max()
    assert departure < 3e-2 * np.linalg.norm(momentum[0])


def test_turning_about_a_principal_axis_goes_on(engine):
    for axis in (0, 2):
        rates = np.zeros(3)
        rates[axis] = 5.0
        state = play(at_rate(spinning(angular_velocity=tuple(rates)), 480, engine), 0.5).state
        assert np.abs(state.angular_velocity[:, 0] - rates).max() < 1e-3


def test_a_hinge_feels_the_stated_moment_about_its_axis(engine):
    extra = 0.1 * (0.28**2 + 0.4 * 0.03**2) * 0.5
    ball = body(
        "ball", Sphere(radius=0.03), mass=0.1, inertia=(1.1 * extra, extra, 1.2 * extra),
        position=(-0.28 * math.sin(0.2), 0.0, 1.0 - 0.28 * math.cos(0.2)),
    )  # fmt: skip
    hinge = Joint(name="pivot", kind="hinge", body="ball", pivot=(0, 0, 1), axis=(0, 1, 0))
    log = play(at_rate(joined(world_spec(ball), hinge), 720, engine), 2.0)
    x = log.state.position[:, 0, 0]
    rising = np.flatnonzero((x[:-1] < 0) & (x[1:] >= 0))[:1]
    falling = np.flatnonzero((x[:-1] > 0) & (x[1:] <= 0))[:1]
    assert len(rising)
    assert len(falling)
    half = abs(log.state.times[falling[0]] - log.state.times[rising[0]])
    own = 0.4 * 0.1 * 0.03**2
    assert half == pytest.approx(period(math.degrees(0.2), extra - own) / 2, rel=3e-3)


def test_stated_moments_are_the_body_s_whatever_its_shapes():
    shapes = (Collision(shape=Sphere(radius=0.1), position=(0.3, 0.1, 0.0)),)
    one = body("one", shapes, mass=2.0, inertia=(0.1, 0.2, 0.25))
    _, centre, tensor = mass_properties(one, {})
    assert np.array_equal(centre, np.zeros(3))
    assert np.array_equal(tensor, np.diag((0.1, 0.2, 0.25)))
    assert principal_inertia(one, {}) == (0.1, 0.2, 0.25)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"inertia": (0.1, 0.1, 0.0)}, "give three > 0"),
        ({"inertia": (0.1, 0.1, 0.3)}, "none of them above the sum of the other two"),
        ({"inertia": (0.1, 0.1, 0.1), "mass": 0.0, "motion": "kinematic"}, "no mass"),
    ],
)
def test_moments_that_no_body_has_are_refused(fields, said):
    with pytest.raises(ValidationError, match=said):
        body("one", Sphere(radius=0.1), **{"mass": 1.0, **fields})


def test_a_flat_body_is_a_body():
    body("disc", Sphere(radius=0.1), mass=1.0, inertia=(0.1, 0.2, 0.1 + 0.2))


def test_scenes_that_state_no_inertia_keep_their_bytes():
    plain = spinning().scene.with_bodies(cube={"inertia": None})
    assert "inertia" not in plain.model_dump_json()
    assert "inertia" not in plain.model_dump()["bodies"][0]
    stated = spinning().scene
    assert Scene.model_validate_json(stated.model_dump_json()) == stated
    assert stated.content_hash() != plain.content_hash()


def test_engines_of_solid_shapes_alone_refuse_stated_moments():
    spec = world_spec(body("ball_0", Sphere(radius=0.03), mass=0.1, inertia=(4e-5,) * 3))
    with pytest.raises(UserError, match=r"ball 'ball_0' states its inertia: balls are solid"):
        read_table(spec.scene, spec.config)
    with pytest.raises(UserError, match="engine blender has no inertia but that of its shapes"):
        _described(spinning().scene.bodies[0], {}, {})


def test_a_body_whose_mass_is_elsewhere_is_refused_by_every_engine_alike():
    away = Collision(shape=Box(half_extents=(0.1, 0.1, 0.1)), position=(0.0, 0.0, 3e-4))
    said = r"'b': the centre of mass of its shapes is at \[0\.0, 0\.0, 0\.0003\] m in its own frame"
    with pytest.raises(UserError, match=said):
        centred_inertia(body("b", (away,)), {})
    near = away.model_copy(update={"position": (0.0, 0.0, 1.9e-4)})
    tensor = centred_inertia(body("b", (near,), mass=3.0), {})
    assert np.diag(tensor) == pytest.approx(3.0 * (0.01 + 0.01) / 3)
    assert principal_inertia(body("b", (near,), mass=3.0), {}) == pytest.approx(np.diag(tensor))
