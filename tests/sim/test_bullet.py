"""The Bullet engine against closed forms and conservation laws."""

from __future__ import annotations

import dataclasses
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from physics_scenes import DT, beam_domino, body, drive, floor, world_spec

from wmeval.clock import SceneClock
from wmeval.errors import UserError
from wmeval.records import WorldLog
from wmeval.scene import Box, Collision, Cylinder, Mesh, MeshData, Sphere
from wmeval.sim.engines import engine_info, make_engine
from wmeval.sim.engines.bullet_shapes import mass_properties, principal_inertia
from wmeval.sim.protocol import EngineConfig, Probe
from wmeval.sim.world import LocalWorld

G = 9.81
EVERY = Probe(states="substeps", contacts=True)
SLOW = SceneClock(Fraction(1, 180), Fraction(1, 30))


def run(spec, steps: int, probe: Probe = EVERY, action=()) -> WorldLog:
    world = LocalWorld(spec)
    log = WorldLog.concatenate([world.reset(), world.advance(action, steps, probe)])
    world.close()
    return log


def box_mesh(x: float, y: float, z: float) -> MeshData:
    vertices = np.array([(i, j, k) for i in (-x, x) for j in (-y, y) for k in (-z, z)], np.float32)
    triangles = np.array(
        [
            (0, 1, 3),
            (0, 3, 2),
            (4, 6, 7),
            (4, 7, 5),
            (0, 4, 5),
            (0, 5, 1),
            (2, 3, 7),
            (2, 7, 6),
            (0, 2, 6),
            (0, 6, 4),
            (1, 5, 7),
            (1, 7, 3),
        ],
        np.uint32,
    )
    return MeshData(vertices, triangles, np.zeros_like(vertices), np.zeros((8, 2), np.float32))


def with_meshes(spec, *meshes: MeshData):
    return dataclasses.replace(spec, meshes={m.content_hash(): m for m in meshes})


def test_a_tumbling_body_does_not_spin_ever_faster():
    """Bullet's gyroscopic torque gives it energy; without a limit it comes to 17,000 rad/s."""
    spin = (66.0, 66.0, 66.0)
    brick = body("brick", Box(half_extents=(0.01, 0.02, 0.0075)), angular_velocity=spin)
    ball = body("ball", Sphere(radius=0.02), position=(1, 0, 0), angular_velocity=(0, 0, 900.0))
    fast = body("fast", Sphere(radius=0.02), position=(2, 0, 0), linear_velocity=(0, 0, 150.0))
    log = run(dataclasses.replace(world_spec(brick, ball, fast), clock=SLOW), 360)
    speeds = np.linalg.norm(log.state.angular_velocity, axis=2)
    assert speeds[:, 0].max() < 100 * math.sqrt(3) + 1e-6
    # What has no gyroscopic torque is as fast as it is.
    assert speeds[:, 1] == pytest.approx(900.0)
    assert log.state.linear_velocity[1, 2, 2] == pytest.approx(150.0 - G / 180)


def test_free_fall_is_the_semi_implicit_closed_form():
    x0, v0, spin = (
        np.array([1.0, -2.0, 100.0]),
        np.array([3.0, -1.0, 5.0]),
        np.array([0.0, 0.0, 7.0]),
    )
    ball = body(
        "ball",
        Sphere(radius=0.2),
        position=tuple(x0),
        linear_velocity=tuple(v0),
        angular_velocity=tuple(spin),
    )
    log = run(world_spec(ball), 480)
    k = np.arange(481)
    dt = float(DT)
    expected = x0 + np.outer(k * dt, v0)
    expected[:, 2] -= G * dt**2 * k * (k + 1) / 2
    assert np.abs(log.state.position[:, 0] - expected).max() < 1e-9
    assert np.abs(log.state.linear_velocity[:, 0, 2] - (v0[2] - G * k * dt)).max() < 1e-9
    assert np.abs(log.state.angular_velocity[:, 0] - spin).max() < 1e-9
    angle = 7.0 * k * dt
    turned = np.stack([np.cos(angle / 2), 0 * k, 0 * k, np.sin(angle / 2)], axis=-1)
    overlap = np.abs((log.state.quaternion_wxyz[:, 0] * turned).sum(-1))
    assert np.abs(overlap - 1).max() < 1e-9


@pytest.mark.parametrize("height", [0.93, 1.0, 1.07, 1.113])
def test_bounce_height_is_e_squared_with_tight_contacts(height):
    radius, e = 0.2, 0.54
    ball = body("ball", Sphere(radius=radius), position=(0, 0, radius + height), restitution=0.9)
    spec = world_spec(ball, floor(restitution=0.6), contact_erp=0.0, restitution_threshold=0.05)
    z = run(spec, 240).state.position[:, 0, 2] - radius
    impact = int(np.argmax(np.diff(z) > 0))
    apex = z[impact:].max()
    assert abs(math.sqrt(apex / height) - e) < 0.012


def test_sliding_box_stops_after_v0_squared_over_2_mu_g():
    v0, mu = 4.0, 0.35
    box = body(
        "box",
        Box(half_extents=(0.4, 0.4, 0.1)),
        position=(0, 0, 0.1),
        linear_velocity=(v0, 0, 0),
        friction=0.7,
        mass=3.0,
    )
    log = run(world_spec(box, floor(friction=0.5)), 480)
    distance = log.state.position[-1, 0, 0]
    assert abs(distance / (v0**2 / (2 * mu * G)) - 1) < 0.01
    assert abs(log.state.linear_velocity[-1, 0, 0]) < 1e-3


def test_ball_rolls_down_an_incline_at_five_sevenths():
    slope = math.radians(12)
    ball = body("ball", Sphere(radius=0.3), position=(0, 0, 0.3), mass=2.0, friction=1.0)
    gravity = (G * math.sin(slope), 0.0, -G * math.cos(slope))
    log = run(world_spec(ball, floor(friction=1.0), gravity=gravity), 480)
    t = log.state.times
    v = log.state.linear_velocity[:, 0, 0]
    acceleration = (v[480] - v[60]) / (t[480] - t[60])
    assert abs(acceleration / (5 / 7 * G * math.sin(slope)) - 1) < 2e-3
    # Rolling without slipping: v = omega r about +y.
    assert abs(log.state.angular_velocity[-1, 0, 1] * 0.3 / v[-1] - 1) < 2e-3


def test_two_spheres_conserve_momentum_and_part_with_e():
    a = body(
        "a", Sphere(radius=0.3), mass=2.0, position=(-1, 0, 0), linear_velocity=(5, 0, 0),
        restitution=0.8, friction=0.0,
    )  # fmt: skip
    b = body(
        "b", Sphere(radius=0.4), mass=3.0, position=(1, 0.25, 0), linear_velocity=(-2, 0, 0),
        restitution=1.0, friction=0.0,
    )  # fmt: skip
    spec = world_spec(a, b, gravity=(0, 0, 0), contact_erp=0.0)
    log = run(spec, 240)
    v = log.state.linear_velocity
    momentum = 2.0 * v[:, 0] + 3.0 * v[:, 1]
    assert np.abs(momentum - momentum[0]).max() < 1e-9
    hit = log.contacts
    assert len(hit) > 0
    n = hit.normal[0] * (1 if hit.body_a[0] == 0 else -1)
    before, after = v[0, 0] - v[0, 1], v[-1, 0] - v[-1, 1]
    assert abs(-(after @ n) / (before @ n) - 0.8) < 0.01


def test_contact_impulses_integrate_to_the_momentum_change():
    bodies = (
        body("box", Box(half_extents=(0.3, 0.2, 0.1)), mass=3.0, friction=0.6,
             position=(0, 0, 0.35), linear_velocity=(2.0, 0.5, -1.0)),
        body("ball", Sphere(radius=0.25), mass=1.5, friction=0.6, restitution=0.5,
             position=(1.2, 0.25, 0.25), linear_velocity=(-1.5, 0, 0), angular_velocity=(3, -5, 2)),
        floor(friction=0.8, restitution=0.5),
    )  # fmt: skip
    log = run(world_spec(*bodies), 240)
    c = log.contacts
    pairs = set(zip(c.body_a.tolist(), c.body_b.tolist(), strict=True))
    assert {frozenset(p) for p in pairs} == {
        frozenset((0, 1)), frozenset((0, 2)), frozenset((1, 2)),
    }  # fmt: skip
    impulse = c.normal_impulse[:, None] * c.normal + c.tangential_impulse
    for i, mass in ((0, 3.0), (1, 1.5)):
        change = np.zeros((240, 3))
        np.add.at(change, c.substep[c.body_a == i], impulse[c.body_a == i])
        np.add.at(change, c.substep[c.body_b == i], -impulse[c.body_b == i])
        change[:, 2] -= mass * G * float(DT)
        moved = mass * np.diff(log.state.linear_velocity[:, i], axis=0)
        assert np.abs(moved - change).max() < 1e-6


def test_impulses_close_the_momentum_of_released_bodies_too():
    # A release takes bodies out of the world and puts them back, which changes PyBullet's order.
    log = WorldLog.concatenate(drive(LocalWorld(beam_domino(0.0)), seconds=3.2))
    spec = beam_domino(0.0)
    c, v = log.contacts, log.state.linear_velocity
    impulse = c.normal_impulse[:, None] * c.normal + c.tangential_impulse
    count = len(log) - 1
    freed = int(np.argmax(log.state.motion[:, log.state.body("slab")] == 2))
    for i, part in enumerate(spec.scene.bodies):
        if part.motion == "static" or part.name == "ball":
            continue
        change = np.zeros((count, 3))
        np.add.at(change, c.substep[c.body_a == i], impulse[c.body_a == i])
        np.add.at(change, c.substep[c.body_b == i], -impulse[c.body_b == i])
        change[:, 2] -= part.mass * G * float(DT)
        moved = part.mass * np.diff(v[:, i], axis=0)
        assert np.abs(moved - change)[freed:].max() < 1e-6


def test_a_driver_reads_contacts_turned_its_way():
    class Reader:
        def reset(self, scene, view):
            self.seen = []

        def before(self, view):
            pass

        def after(self, view):
            self.seen.append((view.contacts(0, 1), view.contacts(1, 0)))

    box = body(
        "box", Box(half_extents=(0.2, 0.2, 0.1)), position=(0, 0, 0.1), linear_velocity=(3, 0, 0)
    )
    for order, sign in (((box, floor()), 1.0), ((floor(), box), -1.0)):
        spec = world_spec(*order)
        engine, reader = make_engine("bullet"), Reader()
        engine.build(spec.scene, {}, EngineConfig(), DT, (reader,))
        engine.advance((), 20, Probe())
        for forward, backward in reader.seen[5:]:
            assert len(forward) == len(backward) > 0
            for a, b in zip(forward, backward, strict=True):
                assert a.normal == pytest.approx((0, 0, sign))
                assert b.normal == pytest.approx((0, 0, -sign))
                assert a.tangential_impulse == pytest.approx([-x for x in b.tangential_impulse])
            # Friction acts on the box against its motion.
            assert sign * sum(a.tangential_impulse[0] for a in forward) < -1e-3
        engine.close()


def test_normals_point_from_b_to_a():
    ball = body("ball", Sphere(radius=0.25), position=(0, 0, 0.25))
    for bodies in ((ball, floor()), (floor(), ball)):
        spec = world_spec(*bodies)
        c = run(spec, 20).contacts
        up = np.where(np.array([spec.scene.bodies[a].name == "ball" for a in c.body_a]), 1.0, -1.0)
        assert len(c) >= 15
        assert np.allclose(c.normal[:, 2], up)
        assert (c.normal_impulse > 0).all()


def test_damping_is_a_fraction_lost_per_second():
    ball = body(
        "ball",
        Sphere(radius=0.2),
        linear_velocity=(8, 0, 0),
        angular_velocity=(0, 0, 9),
        linear_damping=0.3,
        angular_damping=0.6,
    )
    log = run(world_spec(ball, gravity=(0, 0, 0)), 480)
    assert log.state.linear_velocity[-1, 0, 0] == pytest.approx(8 * 0.7**2, rel=1e-9)
    assert log.state.angular_velocity[-1, 0, 2] == pytest.approx(9 * 0.4**2, rel=1e-9)


def test_rolling_resistance_decelerates_by_its_lever_arm():
    # m a = F, I alpha = F r - mu_r N with v = omega r: a = mu_r g / r / (1 + 2/5).
    radius, lever, v0 = 0.5, 0.01, 2.0
    ball = body(
        "ball",
        Sphere(radius=radius),
        position=(0, 0, radius),
        linear_velocity=(v0, 0, 0),
        angular_velocity=(0, v0 / radius, 0),
        rolling_friction=lever,
    )
    log = run(world_spec(ball, floor(friction=1.0)), 480)
    lost = v0 - log.state.linear_velocity[-1, 0, 0]
    assert lost / 2.0 == pytest.approx(lever * G / radius / 1.4, rel=0.02)


def test_halved_step_converges_to_the_same_fall():
    ball = body("ball", Sphere(radius=0.2), position=(0, 0, 50))
    exact = 50 - 0.5 * G * 4.0
    fine = run(world_spec(ball, dt=Fraction(1, 480)), 960).state.position[-1, 0, 2]
    coarse = run(world_spec(ball, dt=Fraction(1, 240)), 480).state.position[-1, 0, 2]
    # First order: half the step, half the error.
    assert (coarse - exact) / (fine - exact) == pytest.approx(2.0, rel=1e-6)


# --- mass properties and shapes -----------------------------------------------------------------


def test_compound_of_two_half_boxes_is_the_box():
    halves = tuple(
        Collision(shape=Box(half_extents=(0.5, 0.2, 0.3)), position=(x, 0, 0)) for x in (-0.5, 0.5)
    )
    volume, centre, inertia = mass_properties(body("b", halves, mass=6.0), {})
    assert volume == pytest.approx(0.48)
    assert np.allclose(centre, 0)
    x, y, z = 1.0, 0.04, 0.09
    assert np.allclose(inertia, np.diag([y + z, x + z, x + y]) * 6.0 / 3)


def test_hull_inertia_is_exact_and_used():
    mesh = box_mesh(1.0, 0.5, 0.2)
    hull = body("b", Mesh(sha256=mesh.content_hash()), mass=2.0)
    expected = np.array([0.25 + 0.04, 1 + 0.04, 1 + 0.25]) * 2.0 / 3
    assert np.allclose(principal_inertia(hull, {mesh.content_hash(): mesh}), expected, rtol=1e-6)
    # Two mirrored, off-centre touches would betray a wrong inertia; the solver's own number tells.
    engine = make_engine("bullet")
    spec = with_meshes(world_spec(hull, gravity=(0, 0, 0)), mesh)
    engine.build(spec.scene, spec.meshes, EngineConfig(), DT, ())
    info = engine._p.getDynamicsInfo(0, -1, physicsClientId=engine._client)  # type: ignore[attr-defined]
    assert np.allclose(info[2], expected, rtol=1e-6)
    engine.close()


def test_off_centre_body_is_refused_with_its_centre():
    off = (Collision(shape=Sphere(radius=0.2), position=(0.3, 0, 0)),)
    with pytest.raises(UserError, match=r"centre of mass.*0\.3"):
        run(world_spec(body("b", off)), 1)


def test_concave_static_mesh_holds_a_ball_in_its_valley():
    # Two slopes that meet at x = 0; their convex hull would be a flat roof at z = 1.
    vertices = np.array(
        [(-2, -2, 1), (-2, 2, 1), (0, -2, 0), (0, 2, 0), (2, -2, 1), (2, 2, 1)], np.float32
    )
    triangles = np.array([(0, 2, 1), (1, 2, 3), (2, 4, 3), (3, 4, 5)], np.uint32)
    mesh = MeshData(
        vertices, triangles, np.zeros_like(vertices), np.zeros((len(vertices), 2), np.float32)
    )
    valley = body("valley", Mesh(sha256=mesh.content_hash(), convex=False), motion="static")
    ball = body("ball", Sphere(radius=0.3), position=(0, 0, 0.6))
    log = run(with_meshes(world_spec(valley, ball), mesh), 480)
    rest = 0.3 * math.hypot(1, 0.5)
    assert log.state.position[-1, 1, 2] == pytest.approx(rest, abs=5e-3)


def test_moving_concave_mesh_and_missing_mesh_are_refused():
    mesh = box_mesh(0.1, 0.1, 0.1)
    concave = Mesh(sha256=mesh.content_hash(), convex=False)
    with pytest.raises(UserError, match="make it static"):
        run(with_meshes(world_spec(body("b", concave)), mesh), 1)
    with pytest.raises(UserError, match="not among the meshes"):
        run(world_spec(body("b", concave)), 1)


def test_shapes_rest_at_their_own_height():
    mesh = box_mesh(0.2, 0.2, 0.15)
    bodies = (
        body("ball", Sphere(radius=0.3), position=(0, 0, 0.3)),
        body("box", Box(half_extents=(0.2, 0.2, 0.1)), position=(2, 0, 0.1)),
        body("can", Cylinder(radius=0.2, height=0.5), position=(4, 0, 0.25)),
        body("hull", Mesh(sha256=mesh.content_hash()), position=(6, 0, 0.151)),
        floor(),
    )
    log = run(with_meshes(world_spec(*bodies), mesh), 240)
    heights = log.state.position[-1, :4, 2]
    assert np.abs(heights - [0.3, 0.1, 0.25, 0.151]).max() < 2e-3


# --- rows ---------------------------------------------------------------------------------------


def test_last_row_equals_the_last_of_every_substep():
    spec = beam_domino(0.0)
    every = drive(LocalWorld(spec), seconds=2.0)
    last = drive(LocalWorld(spec), seconds=2.0, probe=Probe())
    for a, b in zip(every, last, strict=True):
        assert len(b) == 1
        assert a.rows(slice(-1, None)).state.sha256() == b.state.sha256()
        assert np.array_equal(a.cameras.T_world_camera[-1], b.cameras.T_world_camera[-1])


def test_unread_bodies_repeat_their_last_known_state():
    bodies = [body(n, Sphere(radius=0.1), position=(i, 0, 9)) for i, n in enumerate("ab")]
    world = LocalWorld(world_spec(*bodies))
    world.reset()
    first = world.advance((), 10, Probe(bodies=(0,)))
    assert first.state.position[-1, 0, 2] < 9
    assert first.state.position[-1, 1, 2] == 9
    both = world.advance((), 20, Probe())
    assert both.state.position[-1, 0, 2] == both.state.position[-1, 1, 2]


def test_rays_hit_where_a_fast_ball_is_now():
    ball = body("ball", Sphere(radius=0.1), position=(0, 0, 1), linear_velocity=(60, 0, 0))
    world = LocalWorld(world_spec(ball, floor(), gravity=(0, 0, 0)))
    world.reset()
    before = world.advance((), 3, Probe())
    x = before.state.position[-1, 0, 0]
    assert x == pytest.approx(0.75)
    xs = np.array([x - 0.09, x, x + 0.09, x + 0.2])
    up = np.stack([xs, 0 * xs, 0 * xs + 5], axis=-1)
    down = np.stack([xs, 0 * xs, 0 * xs - 5], axis=-1)
    bodies, points = world.raycast(up, down)
    assert bodies.tolist() == [0, 0, 0, 1]
    height = math.sqrt(0.1**2 - 0.09**2)
    assert np.abs(points[:, 2] - [1 + height, 1.1, 1 + height, 0.0]).max() < 1e-3


def test_rays_leave_the_world_as_it_was():
    spec = beam_domino(0.0)
    looked, plain = LocalWorld(spec), LocalWorld(spec)
    for world in (looked, plain):
        world.reset()
    for k in range(100, 500, 100):
        seen = looked.advance((1.0, 0.0), k, EVERY)
        looked.raycast(np.array([[0, -20, 0.3]]), np.array([[0, 20, 0.3]]))
        assert seen.state.sha256() == plain.advance((1.0, 0.0), k, EVERY).state.sha256()


# --- determinism --------------------------------------------------------------------------------

_SCRIPT = """
import sys
sys.path.insert(0, {here!r})
from physics_scenes import beam_domino, drive
from wmeval.records import WorldLog
from wmeval.sim.world import LocalWorld
print(WorldLog.concatenate(drive(LocalWorld(beam_domino(0.1)), seconds=4.0)).state.sha256())
"""


def test_processes_and_rebuilt_worlds_agree_to_the_bit():
    here = str(Path(__file__).parent)
    script = _SCRIPT.format(here=here)
    runs = [
        subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    world = LocalWorld(beam_domino(0.1))
    drive(world, seconds=1.0)
    again = WorldLog.concatenate(drive(world, seconds=4.0)).state.sha256()
    assert {again} == {r.communicate()[0].strip() for r in runs}


def test_interleaved_worlds_do_not_disturb_each_other():
    alone = drive(LocalWorld(beam_domino(0.0)), seconds=2.5, probe=Probe())[-1]
    worlds = [LocalWorld(beam_domino(x)) for x in (0.0, 0.5)]
    for world in worlds:
        world.reset()
    for i in range(150):
        logs = [w.advance((1.0, 0.0), 4 * (i + 1), Probe()) for w in worlds]
    assert logs[0].state.sha256() == alone.state.sha256()
    assert logs[1].state.sha256() != alone.state.sha256()


# --- bad input ----------------------------------------------------------------------------------


def test_unknown_names_are_refused_with_the_known():
    ball = body("ball", Sphere(radius=0.2))
    with pytest.raises(UserError, match=r"no option 'erp'; known: .*contact_erp"):
        run(world_spec(ball, erp=0.1), 1)
    with pytest.raises(UserError, match=r"give 0.0 to 1.0"):
        run(world_spec(ball, contact_erp=2.0), 1)
    with pytest.raises(UserError, match=r"no engine 'havok'; known: .*bullet"):
        make_engine("havok")
    spec = world_spec(body("b", ()))
    with pytest.raises(UserError, match="no collision shape"):
        run(spec, 1)


def test_engine_tells_its_true_version():
    import importlib.metadata

    info = engine_info("bullet")
    assert info.version == importlib.metadata.version("pybullet")
    assert info.deterministic
    assert info.contact_impulses


def test_a_world_goes_forward_only():
    world = LocalWorld(world_spec(body("ball", Sphere(radius=0.2))))
    with pytest.raises(UserError, match="reset"):
        world.advance((), 1, Probe())
    world.reset()
    world.advance((), 4, Probe())
    with pytest.raises(UserError, match="already at 4"):
        world.advance((), 4, Probe())
    world.close()
    world.close()


def test_a_dropped_world_frees_its_client():
    spec = world_spec(body("ball", Sphere(radius=0.2)))
    world = LocalWorld(spec)
    world.reset()
    client = world._engine._client
    p = world._engine._p
    assert p.isConnected(client)
    del world
    assert not p.isConnected(client)
