"""Ropes as chains of capsules: stretch, friction about a beam, what is held stays held."""

import dataclasses
import math

import numpy as np
import pytest
from engine_worlds import at_rate, engine_here, joined, play
from physics_scenes import body, world_spec

from wmeval.conventions import quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.scene import Cylinder, Joint, Pin, Rope, Scene, Sheet, Sphere
from wmeval.sim.engines.rope_chain import Motion, RopeChain

G = 9.81


@pytest.fixture(params=["bullet", "physx"])
def engine(request):
    return engine_here(request.param)


def with_ropes(spec, *ropes):
    data = {**spec.scene.model_dump(), "deformables": ropes}
    return dataclasses.replace(spec, scene=Scene.model_validate(data))


def hung(pieces=17, length=0.34, bob=0.1, **fields):
    """A rope from the world with a ball at its end, straight and without stress."""
    points = tuple((0.0, 0.0, -length * k / pieces) for k in range(pieces + 1))
    made = {
        "name": "rope", "points": points, "radius": 2.06e-3, "density": 1100.0, "stretch": 10.6,
        "bending": 1e-6, "position": (0, 0, 1), **fields,
        "pins": (Pin(vertices=(0,)), Pin(vertices=(pieces,), body="bob")),
    }  # fmt: skip
    ball = body("bob", Sphere(radius=0.03), mass=bob, position=(0, 0, 1 - length - 0.03))
    return with_ropes(world_spec(ball), Rope(**made))


def test_a_ball_on_a_rope_bobs_about_where_the_rope_bears_it(engine):
    log = play(at_rate(hung(), 3600, engine), 0.7182)
    rope_mass = 1100.0 * math.pi * 2.06e-3**2 * 0.34
    stretched = (0.1 + rope_mass / 2) * G * 0.34 / 10.6
    # A spring of length L and stiffness E A / L, that weighs something.
    period = 2 * math.pi * math.sqrt((0.1 + rope_mass / 3) * 0.34 / 10.6)
    fallen = log.state.position[0, 0, 2] - log.state.position[:, 0, 2]
    whole = round(2 * period * 3600)
    assert fallen[:whole].mean() == pytest.approx(stretched, rel=0.02)
    assert fallen.max() == pytest.approx(2 * stretched, rel=0.02)
    nodes = log.state.vertices["rope"]
    assert np.abs(nodes[:, 0] - (0, 0, 1)).max() < 1e-9
    assert np.abs(nodes[:, -1] - log.state.position[:, 0] - (0, 0, 0.03)).max() < 1e-6
    # It stretches evenly: no joint is weaker than another.
    pieces = np.linalg.norm(np.diff(nodes[-1], axis=0), axis=1)
    assert pieces.max() < 1.03 * pieces.min()


def weighed(heavy, light, friction, radius=0.03, rise=0.004, **balls):
    """A rope about half a fixed beam, a ball at either end."""
    out, own = radius + rise, math.sqrt(friction)
    arc = [(-out * math.cos(a), 0.0, out * math.sin(a)) for a in np.linspace(0.0, math.pi, 11)]
    step = 0.01
    left = [(-out, 0.0, -step * k) for k in range(8, 0, -1)]
    right = [(out, 0.0, -step * k) for k in range(1, 9)]
    points = (*left, *arc, *right)
    beam = body(
        "beam", Cylinder(radius=radius, height=0.2), motion="static", position=(0, 0, 1),
        quaternion_wxyz=(math.sqrt(0.5), math.sqrt(0.5), 0.0, 0.0), friction=own,
    )  # fmt: skip
    below = 1.0 - 0.08 - 0.02
    ends = [
        body(
            "heavy",
            Sphere(radius=0.02),
            mass=heavy,
            position=(-out, 0, below),
            friction=own,
            **balls,
        ),
        body(
            "light",
            Sphere(radius=0.02),
            mass=light,
            position=(out, 0, below),
            friction=own,
            **balls,
        ),
    ]
    rope = Rope(
        name="rope", points=points, radius=rise, density=1100.0, stretch=24.0, damping=5e-5,
        friction=own, position=(0, 0, 1),
        pins=(Pin(vertices=(0,), body="heavy"), Pin(vertices=(len(points) - 1,), body="light")),
    )  # fmt: skip
    return with_ropes(world_spec(*ends, beam), rope)


@pytest.mark.accept
def test_a_rope_about_a_beam_holds_below_the_capstan_ratio_and_slips_at_it(engine):
    friction, light, rate = 0.3, 0.05, 10_000
    # Contacts that PhysX foresees 1 mm ahead take friction from a rope.
    near = {"contact_offset": 1e-4} if engine == "physx" else {}
    most = math.exp(friction * math.pi)  # 2.57
    still = weighed(most**0.6 * light, light, friction, linear_damping=1 - 1e-6)
    held = play(at_rate(still, rate, engine, **near), 0.35).state
    ends = held.linear_velocity[-rate // 10 :, :2, 2].mean(axis=0)
    assert abs(ends[1] - ends[0]) / 2 < 0.01
    slow = weighed(1.6 * most * light, light, friction, linear_damping=1 - 1e-6)
    slips = play(at_rate(slow, rate, engine, **near), 0.4).state
    nodes = slips.vertices["rope"]
    lengths = np.linalg.norm(np.diff(nodes, axis=1), axis=2)
    strain = lengths / lengths[0] - 1
    k = slips.times > 0.3
    assert slips.linear_velocity[k, 1, 2].min() > 0.05
    ratio = strain[k, 1:6].mean() / strain[k, -6:-1].mean()
    # Friction acts at the beam's surface and tension a rope's radius outside of it. Contacts that
    # come and go as pieces pass take a share more.
    assert 0.75 < math.log(ratio) / (friction * math.pi * 0.03 / 0.034) < 1.02


def held_by(kind):
    """A rope between two balls at rest, without gravity; a joint holds the second."""
    pieces, length = 6, 0.12
    balls = [body(n, Sphere(radius=0.03), mass=0.1, friction=0.3, position=(0, 0, z))
             for n, z in (("top", 1.03), ("bob", 1 - length - 0.03))]  # fmt: skip
    rope = Rope(
        name="rope", points=tuple((0.0, 0.0, -length * k / pieces) for k in range(pieces + 1)),
        radius=4e-3, density=1100.0, stretch=10.0, bending=1e-6, friction=0.3,
        position=(0, 0, 1),
        pins=(Pin(vertices=(0,), body="top"), Pin(vertices=(pieces,), body="bob")),
    )  # fmt: skip
    joints = {
        "none": (),
        "to the world": (Joint(name="j", kind="hinge", body="bob", pivot=(0, 0.2, 1.0 - length),
                               axis=(1, 0, 0)),),
        "to a body": (Joint(name="j", kind="ball", body="bob", other="top", pivot=(0, 0, 0.9)),),
    }[kind]  # fmt: skip
    return joined(with_ropes(world_spec(*balls, gravity=(0, 0, 0)), rope), *joints)


@pytest.mark.parametrize("kind", ["none", "to the world", "to a body"])
def test_a_rope_does_not_touch_what_it_is_pinned_to_however_that_is_held(engine, kind):
    """Its last capsule is round beyond its node, inside of the ball: at rest it stays at rest."""
    state = play(at_rate(held_by(kind), 3600, engine), 0.02).state
    assert np.abs(state.position - state.position[0]).max() < 1e-6
    assert np.abs(state.vertices["rope"] - state.vertices["rope"][0]).max() < 1e-6


def test_two_runs_agree_to_the_bit(engine):
    one, two = (play(at_rate(hung(bob=0.05), 3600, engine), 0.05).state for _ in range(2))
    assert np.array_equal(one.vertices["rope"], two.vertices["rope"])
    assert np.array_equal(one.position, two.position)


def random_motion(rng, n):
    turn = rng.normal(size=(n, 4))
    turn /= np.linalg.norm(turn, axis=1)[:, None]
    return Motion(rng.normal(size=(n, 3)), turn, rng.normal(size=(n, 3)), rng.normal(size=(n, 3)))


def test_springs_between_pieces_keep_momentum_and_angular_momentum():
    spec = hung(damping=1e-5)
    chain = RopeChain(spec.scene, spec.scene.deformables[0])
    rng = np.random.default_rng(3)
    now, ends = random_motion(rng, 17), random_motion(rng, 2)
    forces, torques, on_ends = chain.forces(now, ends)
    total = forces.sum(axis=0) + on_ends.sum(axis=0)
    assert np.abs(total).max() < 1e-9 * np.abs(forces).max()
    turning = (np.cross(now.position, forces) + torques).sum(axis=0)
    turning += np.cross((0.0, 0.0, 1.0), on_ends[0])  # the world's pin
    turning += sum(np.cross(at, force) for _, force, at in chain.pulls(on_ends, ends))
    assert np.abs(turning).max() < 1e-9 * np.abs(torques).max()


def test_a_rope_of_any_form_has_no_stress_where_it_begins():
    points = ((0.0, 0.0, 0.0), (0.1, 0.0, 0.0), (0.1, 0.1, 0.05), (0.0, 0.1, 0.2))
    rope = Rope(
        name="r", points=points, radius=0.004, density=1000.0, stretch=10.0, bending=0.1,
        pins=(Pin(vertices=(3,)),), position=(0.0, 0.0, 1.0),
        quaternion_wxyz=(0.5, 0.5, 0.5, 0.5),
    )  # fmt: skip
    chain = RopeChain(hung().scene, rope)
    still = [
        [*p.position, *(p.quaternion_wxyz[k] for k in (1, 2, 3, 0)), *(0.0,) * 6]
        for p in chain.pieces
    ]
    now, ends = Motion.of(still), Motion.of([[0.0] * 13] * 2)
    forces, torques, on_ends = chain.forces(now, ends)
    assert max(np.abs(forces).max(), np.abs(torques).max(), np.abs(on_ends).max()) < 1e-13
    turn = quaternion_to_matrix(np.array((0.5, 0.5, 0.5, 0.5)))
    assert chain.nodes(now, ends) == pytest.approx(np.array(points) @ turn.T + (0, 0, 1), abs=1e-12)
    assert sum(p.mass for p in chain.pieces) == pytest.approx(
        1000.0 * math.pi * 0.004**2 * np.linalg.norm(np.diff(points, axis=0), axis=1).sum()
    )


def test_substeps_that_springs_do_not_bear_are_refused_with_the_rate_they_need():
    spec = at_rate(hung(), 240, "bullet")
    with pytest.raises(UserError, match=r"rope 'rope': its 17 pieces need 2\d{3} substeps a sec"):
        play(spec, 0.1)
    chain = RopeChain(spec.scene, spec.scene.deformables[0])
    chain.check_rate(1.0 / chain.least_rate * 0.999)


def test_what_no_chain_has_is_refused_by_name(engine):
    base = hung()
    rope = base.scene.deformables[0]
    middle = rope.model_copy(update={"pins": (Pin(vertices=(5,)),)})
    with pytest.raises(UserError, match="'rope' is pinned at node 5: a chain of capsules is"):
        play(at_rate(with_ropes(base, middle.model_dump()), 3600, engine), 0.01)
    sheet = {
        "kind": "cloth", "name": "sheet", "surface": Sheet(size=(0.1, 0.1), cells=(2, 2)),
        "areal_density": 0.1, "stretch": 1.0, "shear": 1.0, "bending": 0.0,
    }  # fmt: skip
    with pytest.raises(UserError, match=f"{engine} has no cloth"):
        play(at_rate(with_ropes(base, sheet), 3600, engine), 0.01)
