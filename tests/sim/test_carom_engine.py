"""The carom engine as worlds see it: scenes, clocks, drivers, contacts, rays."""

from fractions import Fraction

import numpy as np
import pytest

from wmeval.clock import SceneClock
from wmeval.envs.billiard_game import compose
from wmeval.envs.billiard_room import BALL_MASS, BALL_RADIUS, REACH
from wmeval.errors import UserError
from wmeval.scene import Body, Box, Collision
from wmeval.sim.engines import engine_info, make_engine
from wmeval.sim.perturb import Perturbation
from wmeval.sim.protocol import EngineConfig, Probe, WorldSpec
from wmeval.sim.world import EVERYTHING, LocalWorld

PLACES = [(0.7, -0.1), (0.1, 0.05), (-0.6, 0.3)]
SHOT = (0.0,) * 6 + (-0.07, 0.2, 0.4, 0.3, 1.0, 0.0)
WAIT = (*SHOT[:10], 0.0, 0.0)


def world(dt="1/240", places=PLACES, config=None, events=False, **changes):
    parts = compose(places)
    scene = parts.scene.with_bodies(**changes) if changes else parts.scene
    dt = Fraction(dt)
    spec = WorldSpec(
        scene, parts.meshes, parts.drivers, SceneClock(dt, 4 * dt), parts.rules,
        engine="carom", config=config or EngineConfig(),
    )  # fmt: skip
    found = LocalWorld(spec, events=events)
    found.reset()
    return found


def played(dt, until, control):
    """Final state after a shot under steps of a control period."""
    w = world(dt)
    per = round(Fraction(control) / Fraction(dt))
    total = round(Fraction(until) / Fraction(dt))
    for k in range(0, total, per):
        w.run(SHOT if k == 0 else WAIT, min(k + per, total))
    return w.log().state


def test_info():
    info = engine_info("carom")
    assert (info.clock, info.deterministic, info.contact_impulses) == ("exact", True, True)


def test_final_states_do_not_depend_on_the_substep_or_the_control_rate():
    balls = slice(5, 8)
    results = set()
    for dt in ("1/240", "1/60", "1/1000", "1/30"):
        for control in ("1/30", "1/60", "1/240", "1/10"):
            if (Fraction(control) / Fraction(dt)).denominator > 1:
                continue
            for until in (1, 8):
                state = played(dt, until, control)
                names = ("position", "quaternion_wxyz", "linear_velocity", "angular_velocity")
                bits = b"".join(getattr(state, n)[-1, balls].tobytes() for n in names)
                results.add((until, bits))
    assert len(results) == 2


def test_kept_rows_are_the_states_of_every_substep():
    full, sparse = world(), world()
    log = full.advance(SHOT, 200, EVERYTHING)
    for k in (1, 50, 77, 200):
        sparse.run(SHOT, k)
        row = sparse.log().state
        np.testing.assert_array_equal(log.state.position[k - 1], row.position[0])
        np.testing.assert_array_equal(log.state.quaternion_wxyz[k - 1], row.quaternion_wxyz[0])


def test_contacts_are_the_changes_of_momentum():
    w = world()
    log = w.advance(SHOT, 900, EVERYTHING)
    contacts, scene = log.contacts, w.spec.scene
    assert len(contacts) >= 4
    assert (np.diff(contacts.substep) >= 0).all()
    assert set(contacts.body_a) <= set(scene.indices("player") + scene.indices("ball"))
    assert set(contacts.body_b) <= set(
        scene.indices("ball") + scene.indices("cushion") + scene.indices("player")
    )
    assert (contacts.normal_impulse > 0).all()
    # Around the first impact, in the horizontal, up to the friction of two substeps.
    k, a, b = (int(x[0]) for x in (contacts.substep, contacts.body_a, contacts.body_b))
    total = contacts.normal_impulse[0] * contacts.normal[0] + contacts.tangential_impulse[0]
    v = log.state.linear_velocity
    slack = 2 * 0.2 * 9.81 / 240 * BALL_MASS
    for body, sign in ((a, 1), (b, -1)):
        gained = BALL_MASS * (v[k, body] - v[k - 1, body])
        np.testing.assert_allclose(gained[:2], sign * total[:2], atol=slack)
    separation = log.state.position[k, a] - log.state.position[k, b]
    assert np.linalg.norm(separation) >= 2 * BALL_RADIUS - 1e-9
    np.testing.assert_allclose(np.linalg.norm(contacts.normal, axis=1), 1.0)


def test_a_probe_of_pairs_keeps_those():
    w, other = world(), world()
    ball, cushion = w.spec.scene.index("yellow_ball"), w.spec.scene.index("cushion_far")
    everything = w.advance(SHOT, 900, EVERYTHING).contacts
    some = other.advance(SHOT, 900, Probe(contacts=((cushion, ball),))).contacts
    both = [
        {ball, cushion} == {a, b} for a, b in zip(everything.body_a, everything.body_b, strict=True)
    ]
    assert len(some) == sum(both)


def test_events_name_what_the_balls_touch():
    w = world(events=True)
    events = [e for k in range(60) for e in w.advance(SHOT, 15 * (k + 1), Probe()).events]
    contacts = [e for e in events if e.kind == "contact"]
    assert (contacts[0].body_a, contacts[0].body_b) == ("cue_ball", "yellow_ball")
    assert any(e.body_b.startswith("cushion_") for e in contacts)
    assert contacts == sorted(contacts, key=lambda e: e.detected_at)


def test_mechanics_between_states():
    w = world()
    engine = w._engine
    w.advance(SHOT, 300, Probe())
    for t in (0.0, 0.01234, 0.5, 1.25):
        found = engine.mechanics(t)
        assert set(found) == {"cue_ball", "yellow_ball", "red_ball"}
        ball = found["cue_ball"]
        assert ball.translational_energy == pytest.approx(
            sum(p * p for p in ball.momentum) / (2 * BALL_MASS)
        )
    # Momentum between impacts is linear in time: the middle of a phase is the mean of its ends.
    phase = engine.table.phases(0)[1]
    one, two = engine.mechanics(phase.start), engine.mechanics(phase.start + 0.02)
    middle = engine.mechanics(phase.start + 0.01)["cue_ball"].momentum
    mean = [
        (a + b) / 2 for a, b in zip(one["cue_ball"].momentum, two["cue_ball"].momentum, strict=True)
    ]
    assert middle == pytest.approx(mean, abs=1e-15)
    with pytest.raises(UserError, match=r"the table knows 0 to 1\.25 s"):
        engine.mechanics(1.26)


# --- what it refuses ----------------------------------------------------------------------------


def test_it_refuses_what_it_has_no_physics_for():
    scene = compose(PLACES).scene
    box = Body(
        name="crate", role="thing", motion="dynamic", instance=99, mass=1.0,
        collision=(Collision(shape=Box(half_extents=(0.1, 0.1, 0.1))),),
    )  # fmt: skip
    standing = box.model_copy(update={"motion": "static"})
    for body, message in ((box, "'crate' is not one sphere"), (standing, "take its collision")):
        wrong = scene.model_copy(update={"bodies": (*scene.bodies, body)})
        with pytest.raises(UserError, match=message):
            make_engine("carom").build(wrong, {}, EngineConfig(), Fraction(1, 240), ())


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"cue_ball": {"position": (0.7, -0.1, 0.05)}}, "stay on the cloth"),
        ({"cue_ball": {"position": (0.1, 0.06, BALL_RADIUS)}}, "overlap: put them apart"),
        ({"red_ball": {"position": (1.41, 0.0, BALL_RADIUS)}}, "beyond a cushion"),
        ({"red_ball": {"linear_damping": 0.1}}, "damping"),
        ({"cushion_far": {"position": (0.0, 0.735, 0.02)}}, "above the cloth: give a height"),
        ({"bed": {"role": "floor"}}, "has collision shapes"),
    ],
)
def test_it_says_what_is_wrong_with_a_table(changes, message):
    with pytest.raises(UserError, match=message):
        world(**changes)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spin": 1.0}, "no option 'spin'; known: ball_friction, contact_time, throw"),
        ({"spin_friction": -1}, "give 1 number"),
        ({"ball_friction": [1, 2]}, "give 3 number"),
        ({"contact_time": True}, "give 1 number"),
        ({"throw": "newton_1687"}, "throw = 'newton_1687': choose from alciatore_a14"),
        ({"cushion": 2005}, "cushion = 2005: choose from han_2005"),
    ],
)
def test_it_refuses_wrong_options(options, message):
    with pytest.raises(UserError, match=message):
        world(config=EngineConfig(options=options))


def test_a_tilted_table_is_refused():
    scene = compose(PLACES).scene.model_copy(update={"gravity": (0.1, 0.0, -9.8)})
    with pytest.raises(UserError, match="level the table"):
        make_engine("carom").build(scene, {}, EngineConfig(), Fraction(1, 240), ())


def test_drivers_cannot_push_during_a_substep():
    engine = make_engine("carom")
    parts = compose(PLACES)
    engine.build(parts.scene, parts.meshes, EngineConfig(), Fraction(1, 240), ())
    with pytest.raises(UserError, match="strike a ball by set_state"):
        engine.apply_force(5, (1.0, 0.0, 0.0))
    with pytest.raises(UserError, match="only balls are put"):
        engine.set_state(0, (0, 0, 0), (1, 0, 0, 0), (0, 0, 0), (0, 0, 0))
    engine.set_state(5, (0.1, 0.05, BALL_RADIUS), (1, 0, 0, 0), (0, 0, 0), (0, 0, 0))
    with pytest.raises(UserError, match="overlap"):
        engine.run((), 1)


# --- perturbed, rays ----------------------------------------------------------------------------


def test_perturbed_constants_reach_the_table():
    plain = world()
    reading = plain._engine.table.spec
    spec = Perturbation.parse("friction=0.5,gravity=0.9,restitution=0.8,mass=2").apply(plain.spec)
    other = LocalWorld(spec)
    other.reset()
    wrong = other._engine.table.spec
    for a, b in zip(wrong.cloths, reading.cloths, strict=True):
        assert a.sliding == pytest.approx(0.45 * b.sliding)
        assert a.rolling == pytest.approx(0.9 * b.rolling)
        assert a.spinning == pytest.approx(0.9 * b.spinning)
    assert wrong.restitution[0][1] == pytest.approx(0.8 * 0.95)
    assert wrong.cushion_restitution[0][0] == pytest.approx(0.8 * 0.85)
    assert wrong.cushion_friction[0][0] == pytest.approx(0.1)
    assert wrong.friction[0][1] == pytest.approx(0.5)
    assert wrong.masses[0] == pytest.approx(0.42)


def test_published_constants_of_the_scene():
    spec = world()._engine.table.spec
    assert spec.cloths[0].sliding == pytest.approx(0.2 * 9.81)
    assert spec.cloths[0].rolling == pytest.approx(0.008 * 9.81)
    assert spec.cloths[0].spinning == pytest.approx(10.0, rel=0.01)
    assert spec.restitution[0][1] == pytest.approx(0.95)
    assert spec.cushion_restitution[0][0] == pytest.approx(0.85)
    offsets = sorted(-c.offset for c in spec.cushions)
    assert offsets == pytest.approx(sorted([*REACH, *REACH]))


def test_rays_are_exact():
    w = world()
    view, scene = w._engine, w.spec.scene
    hit = view.raycast((0.1, 0.05, 1.0), (0.1, 0.05, -1.0))
    assert scene.bodies[hit.body].name == "yellow_ball"
    assert hit.position == pytest.approx((0.1, 0.05, 2 * BALL_RADIUS))
    assert hit.normal == pytest.approx((0, 0, 1))
    under = view.raycast((0.1, 0.05, 1.0), (0.1, 0.05, -1.0), ignore=(hit.body,))
    assert scene.bodies[under.body].name == "bed"
    assert under.position[2] == pytest.approx(0.0)
    side = view.raycast((0.0, 0.0, 0.037), (2.0, 0.0, 0.037))
    assert scene.bodies[side.body].name == "cushion_right"
    assert side.position == pytest.approx((1.42, 0.0, 0.037))
    assert side.normal == pytest.approx((-1, 0, 0))
    assert view.raycast((0, 0, 1), (0, 0, 2)) is None
    rng = np.random.default_rng(1)
    origins = rng.uniform(-0.5, 0.5, (200, 3)) + np.array([0, 0, 1.5])
    ends = rng.uniform([-1.3, -0.6, -0.01], [1.3, 0.6, -0.01], (200, 3))
    bodies, points = w.raycast(origins, ends)
    for o, e, body, point in zip(origins, ends, bodies, points, strict=True):
        one = view.raycast(tuple(o), tuple(e))
        assert one.body == body
        np.testing.assert_allclose(one.position, point, atol=1e-12)
        if scene.bodies[body].role in ("ball", "player"):
            centre = np.array(scene.bodies[body].position)
            assert np.linalg.norm(point - centre) == pytest.approx(BALL_RADIUS, abs=1e-12)
        else:
            assert point[2] == pytest.approx(0.0, abs=1e-12) or scene.bodies[body].role == "cushion"
