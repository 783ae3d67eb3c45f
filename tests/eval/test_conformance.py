"""The conformance suite: measures on motions with known answers, engines that pass it."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from engine_worlds import engine_here
from scipy.integrate import solve_ivp

from wmeval.conventions import quaternion_multiply, quaternion_to_matrix
from wmeval.deformables import rest_shape
from wmeval.errors import UserError
from wmeval.eval.conformance import CHECKS, measures, rows_of, run_suite, scenes, spec_of
from wmeval.eval.sweep.gates import kind_of
from wmeval.eval.truths.rigid import swing_angle
from wmeval.records import CameraLog, LightLog, StateLog, WorldLog
from wmeval.sim.protocol import EngineConfig

RIGID = [name for name in CHECKS if kind_of(name) == "rigid"]


def log_of(position, *, dt=Fraction(1, 180), linear=None, angular=None, vertices=None):
    """A log of bodies whose places (T, B, 3) are known; velocities by differences."""
    position = np.asarray(position, float)
    n, b = position.shape[:2]
    if linear is None:
        linear = np.gradient(position, float(dt), axis=0)
    state = StateLog(
        tuple(f"b{i}" for i in range(b)),
        dt,
        np.arange(n),
        position,
        np.tile([1.0, 0, 0, 0], (n, b, 1)),
        np.asarray(linear, float),
        np.zeros((n, b, 3)) if angular is None else np.asarray(angular, float),
        np.ones((n, b), bool),
        np.full((n, b), 2, np.uint8),
        vertices=vertices or {},
    )
    cameras = CameraLog(("c",), np.ones((n, 1)), np.tile(np.eye(4), (n, 1, 1, 1)))
    lights = LightLog(np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3, 3)))
    return WorldLog(state, cameras, lights)


def path(n, x=0.0, y=0.0, z=0.0):
    return np.stack([np.broadcast_to(np.asarray(v, float), n) for v in (x, y, z)], axis=-1)[:, None]


T = np.arange(181) / 180


def test_gravity_and_friction_are_read_from_accelerations():
    fall = log_of(path(181, z=5 - 1.62 * T**2 / 2))
    assert measures.effective_gravity(fall) == pytest.approx(1.62, rel=1e-9)
    angle, friction = math.radians(30), 0.22
    gone = 9.81 * (math.sin(angle) - friction * math.cos(angle)) * T**2 / 2
    slide = log_of(path(181, x=gone * math.cos(angle), z=-gone * math.sin(angle)))
    measured = CHECKS["friction_slide"].measure(slide)
    assert measured == pytest.approx(friction, abs=1e-9)
    creeping = log_of(path(181, x=0.004 * T))
    assert measures.creep(creeping) == pytest.approx(0.002, rel=0.02)


def test_friction_on_cloth_is_read_while_the_cube_slides():
    for friction in (0.0, 0.3, 0.6):
        stop = 1.0 / (9.81 * friction) if friction else 9.0
        t = np.minimum(T[:37], stop)
        slid = path(37, x=t - 9.81 * friction * t**2 / 2)
        speed = path(37, x=1 - 9.81 * friction * t)
        measured = CHECKS["cloth_slide"].measure(log_of(slid, linear=speed))
        assert measured == pytest.approx(friction, abs=1e-9)
    with pytest.raises(UserError, match="did not slide"):
        measures.cloth_friction(log_of(path(37), linear=path(37, x=np.where(T[:37] > 0, 0.0, 1.0))))


@pytest.mark.parametrize("restitution", [0.0, 0.3, 0.9])
def test_restitution_is_the_ratio_of_speeds_about_the_impact(restitution):
    speed = np.where(T < 0.3, -9.81 * T, restitution * 9.81 * 0.3 - 9.81 * (T - 0.3))
    speed[T > 0.36] = 0.0
    log = log_of(path(181), linear=path(181, z=speed))
    assert measures.effective_restitution(log) == pytest.approx(restitution, abs=0.02)


def test_period_and_energy_of_an_exact_pendulum_are_right():
    small, amplitude = 2 * math.pi * math.sqrt((0.28**2 + 0.4 * 0.03**2) / (9.81 * 0.28)), 1.5
    times = np.arange(3601) / 720
    angle = -swing_angle(times, small, amplitude)
    places = path(3601, x=0.28 * np.sin(angle), z=1 - 0.28 * np.cos(angle))
    rate = np.gradient(angle, 1 / 720)
    log = log_of(places, dt=Fraction(1, 720), angular=path(3601, y=-rate))
    exact = small * 2 / math.pi * float(_ellipk(math.sin(amplitude / 2) ** 2))
    assert measures.pendulum_period(log) == pytest.approx(exact, rel=1e-5)
    assert measures.pendulum_energy(log) == pytest.approx(1.0, abs=1e-3)
    with pytest.raises(UserError, match="did not swing through twice"):
        measures.pendulum_period(log.rows(slice(0, 100)))


def _ellipk(m):
    a, g = 1.0, math.sqrt(1 - m)
    for _ in range(8):
        a, g = (a + g) / 2, math.sqrt(a * g)
    return math.pi / 2 / a


def test_the_top_s_precession_solves_its_equation_of_motion():
    """Steady precession keeps dL/dt = torque: checked with the full vectors, not the formula."""
    top = CHECKS["top"].scene().bodies[0]
    rate = scenes.top_precession()
    tilt, arm = math.radians(20), scenes.TOP["arm"]
    r, h = scenes.TOP["radius"], scenes.TOP["height"]
    axis = np.array((math.sin(tilt), 0, math.cos(tilt)))
    turning = np.array(top.angular_velocity)
    across = (3 * r * r + h * h) / 12 + arm * arm
    momentum = across * (turning - (turning @ axis) * axis) + r * r / 2 * (turning @ axis) * axis
    change = np.cross((0, 0, rate), momentum)
    torque = np.cross(arm * axis, (0, 0, -9.81))
    assert change == pytest.approx(torque, abs=1e-9)
    assert np.array(top.linear_velocity) == pytest.approx(np.cross(turning, arm * axis))
    circle = path(181, x=np.cos(2.5 * T), y=np.sin(2.5 * T))
    assert measures.precession(log_of(circle)) == pytest.approx(2.5, rel=1e-9)


def tumbled(share=1.0):
    """The suite's brick by Euler's equations; the energy of its spin ends at a share of itself."""
    (brick,) = CHECKS["tumble_energy"].scene().bodies
    x, y, z = (h * h for h in brick.collision[0].shape.half_extents)
    inertia = brick.mass / 3 * np.array([y + z, x + z, x + y])

    def rate(_, state):
        q, w = state[:4], state[4:]
        turned = 0.5 * quaternion_multiply(q, np.array([0.0, *w]))
        return np.concatenate([turned, np.cross(inertia * w, w) / inertia])

    start = np.array([1.0, 0, 0, 0, *brick.angular_velocity])
    solved = solve_ivp(rate, (0, 1), start, t_eval=T, rtol=1e-10, atol=1e-12).y.T
    own = solved[:, 4:] * np.sqrt(np.linspace(1.0, share, len(T)))[:, None]
    turn = quaternion_to_matrix(solved[:, :4])
    log = log_of(path(181), angular=np.einsum("nij,nj->ni", turn, own)[:, None])
    return replace(log, state=replace(log.state, quaternion_wxyz=solved[:, None, :4]))


def test_a_brick_that_tumbles_by_euler_s_equations_keeps_energy_and_momentum():
    log = tumbled()
    # It does tumble: its spin is another after a while.
    spin = log.state.angular_velocity[:, 0]
    assert np.linalg.norm(spin - spin[0], axis=1).max() > 0.5 * np.linalg.norm(spin[0])
    assert CHECKS["tumble_energy"].measure(log) == pytest.approx(1.0, abs=1e-6)
    assert CHECKS["tumble_momentum"].measure(log) == pytest.approx(0.0, abs=1e-6)
    faster = tumbled(1.44)
    assert CHECKS["tumble_energy"].measure(faster) == pytest.approx(1.44)
    assert CHECKS["tumble_momentum"].measure(faster) == pytest.approx(0.2)
    # Without its gyroscopic torque a body keeps its spin, and not its momentum.
    plain = log_of(path(181), angular=np.repeat(spin[:1, None], 181, axis=0))
    angle, axis = 30.0 * T, np.full(3, 3**-0.5)
    turned = np.concatenate([np.cos(angle / 2)[:, None], np.outer(np.sin(angle / 2), axis)], axis=1)
    plain = replace(plain, state=replace(plain.state, quaternion_wxyz=turned[:, None]))
    assert CHECKS["tumble_energy"].measure(plain) == pytest.approx(1.0)
    assert CHECKS["tumble_momentum"].measure(plain) > 0.3


def test_bullet_gives_what_tumbles_energy_unless_it_is_a_rigid_body_or_the_step_is_short():
    names = ["tumble_energy", "tumble_momentum"]
    rigid = EngineConfig(options={"maximal_coordinates": 1})
    for config, rate, told in (
        (None, 180, "off"), (None, 1800, "ok"), (rigid, 3600, "ok"),
    ):  # fmt: skip
        found = run_suite("bullet", config, checks=names, dt=Fraction(1, rate))
        assert [o.status for o in found] == [told, told], (rate, found)


def test_stiffness_is_read_from_how_far_a_strip_and_a_bar_hang():
    for name, kind, wanted in (
        ("strip", "cloth_stretch", 80.0),
        ("bar", "bar_stretch", 5e4),
    ):
        scene = CHECKS[kind].scene()
        item = scene.deformables[0]
        rest = rest_shape(item, {}).vertices
        low = rest[:, 2] < rest[:, 2].min() + 1e-9
        weight = (item.areal_density if name == "strip" else item.density) * -scene.gravity[2]
        length = float(np.ptp(rest[:, 2]))
        moved = np.repeat(rest[None], 40, axis=0)
        moved[1:, low, 2] -= weight * length**2 / 2 / wanted
        log = log_of(np.zeros((40, 1, 3)), vertices={name: moved})
        assert CHECKS[kind].measure(log) == pytest.approx(wanted, rel=1e-9)


def struck(restitution, *, spun=0.0):
    """The suite's two balls: an impulse along their centres at contact, and one across it."""
    r = 0.05
    first = np.array((-0.3, 0.03, 0.0)) + T[:109, None] * (1.0, 0.0, 0.0)
    second = np.zeros((109, 3))
    normal = np.array((math.sqrt(1 - 0.3**2), -0.3, 0.0))
    met = 0.3 - 0.1 * normal[0]
    after = T[:109] >= met
    across = np.cross((0.0, 0.0, 1.0), normal)
    pull = (1 + restitution) * normal[0] / (1 + 1 / 2) * normal + spun * across
    linear = np.zeros((109, 2, 3))
    linear[:, 0] = (1.0, 0.0, 0.0)
    linear[after, 0] -= pull
    linear[after, 1] += pull / 2
    late = np.where(after, T[:109] - met, 0.0)[:, None]
    first -= late * pull
    second += late * pull / 2
    angular = np.zeros((109, 2, 3))
    turn = -spun * np.cross(normal, across)
    angular[after, 0] = r * turn / (0.4 * r**2)
    angular[after, 1] = r * turn / (0.4 * r**2 * 2)
    return log_of(np.stack([first, second], axis=1), linear=linear, angular=angular)


COLLISIONS = ("collision_momentum", "collision_spin", "collision_restitution")


@pytest.mark.parametrize("spun", [0.0, 0.1])
def test_balls_that_strike_each_other_keep_their_momentum(spun):
    for restitution in (0.0, 0.49, 1.0):
        log = struck(restitution, spun=spun)
        drift, turned, found = (CHECKS[n].measure(log) for n in COLLISIONS)
        assert (drift, turned) == (pytest.approx(0.0, abs=1e-12), pytest.approx(0.0, abs=1e-12))
        assert found == pytest.approx(restitution, abs=1e-12)
    lost = struck(0.49)
    lost.state.linear_velocity[lost.state.times > 0.5, 1] *= 0.9
    assert CHECKS["collision_momentum"].measure(lost) > 0.01


@pytest.mark.parametrize("name", COLLISIONS)
def test_balls_that_go_through_each_other_have_not_collided(name):
    first = path(109, x=-0.3 + T[:109], y=0.03)
    log = log_of(np.concatenate([first, np.zeros((109, 1, 3))], axis=1))
    with pytest.raises(UserError, match="did not strike"):
        CHECKS[name].measure(log)


def overhung(drooping):
    """The check's strip, its free end this far down (T,) [m]."""
    (item,) = CHECKS["cloth_bend"].scene().deformables
    rest = rest_shape(item, {}).vertices
    moved = np.repeat(rest[None], len(drooping), axis=0)
    moved[:, rest[:, 0] > rest[:, 0].max() - 1e-9, 2] -= np.asarray(drooping)[:, None]
    return log_of(np.zeros((len(drooping), 1, 3)), vertices={"strip": moved})


def hinged(bend):
    """Where a chain of plates with hinges between them comes to rest under its weight: (n, 2) [m].

    What any mesh of flat triangles is when it is bent one way: hinge i turns by M_i h / B.
    """
    (item,) = CHECKS["cloth_bend"].scene().deformables
    h, load = 0.01, item.areal_density * -CHECKS["cloth_bend"].scene().gravity[2]
    count = item.surface.cells[0]
    share = np.full(count, load * h)
    share[-1] /= 2
    angle = np.zeros(count)
    for _ in range(400):
        x = np.concatenate([[0.0], np.cumsum(h * np.cos(angle))])
        moment = [(share[i:] * (x[i + 1 :] - x[i])).sum() for i in range(1, count)]
        turned = np.concatenate([[0.0], np.cumsum(np.array(moment) * h / bend)])
        angle += 0.2 * (turned - angle)
    return np.stack([x, np.concatenate([[0.0], np.cumsum(h * np.sin(angle))])], axis=1)


def test_bending_stiffness_is_read_from_how_far_a_strip_that_hangs_over_droops():
    check = CHECKS["cloth_bend"]
    scene = check.scene()
    (item,) = scene.deformables
    assert item.bending == check.asked
    assert len(item.pins[0].vertices) == 2 * (item.surface.cells[1] + 1)
    times = np.arange(round(check.seconds * 180)) / 180
    for bend in (0.5e-5, 1e-5, 2e-5):
        droop = hinged(bend)[-1, 1]
        # Let go, it swings about where it would hang, twice as far at most.
        for swing in (0.0, droop * np.cos(9.0 * times)):
            made = overhung(np.where(times > 0, droop - swing, 0.0))
            assert check.measure(made) == pytest.approx(bend, rel=0.04)


def test_the_overhanging_strip_s_mesh_hardly_changes_its_stiffness():
    """Hinges at all its edges, B / h each per length, at rest: small slopes, so linear.

    Diagonals that all lean one way couple bending with twist; a strip of two cells' width is 14 %
    softer by it.
    """
    check = CHECKS["cloth_bend"]
    scene = check.scene()
    (item,) = scene.deformables
    rest = rest_shape(item, {})
    flat, h = rest.vertices[:, :2], scenes.OVERHANG["cell"]
    tips = {}
    for face in rest.triangles.tolist():
        for k in range(3):
            tips.setdefault(frozenset((face[k], face[k - 1])), []).append(face[k - 2])
    stiff, load = np.zeros((len(flat), len(flat))), np.zeros(len(flat))
    for edge, two in tips.items():
        (a, b), turn = sorted(edge), np.zeros(len(flat))
        along = flat[b] - flat[a]
        length = np.hypot(*along)
        for tip in two if len(two) == 2 else []:
            share = (flat[tip] - flat[a]) @ along / length**2
            off = abs(along[0] * (flat[tip] - flat[a])[1] - along[1] * (flat[tip] - flat[a])[0])
            turn[[tip, a, b]] += np.array((1.0, share - 1.0, -share)) * length / off
        stiff += item.bending / h * length * np.outer(turn, turn)
    for face in rest.triangles:
        load[face] += item.areal_density * -scene.gravity[2] * h * h / 6
    free = np.setdiff1d(np.arange(len(flat)), item.pins[0].vertices)
    down = np.zeros(len(flat))
    down[free] = np.linalg.solve(stiff[np.ix_(free, free)], load[free])
    moved = np.repeat(rest.vertices[None], 60, axis=0)
    moved[1:, :, 2] -= down
    log = log_of(np.zeros((60, 1, 3)), vertices={"strip": moved})
    assert check.measure(log) == pytest.approx(item.bending, rel=0.05)


def test_a_strip_without_bending_stiffness_hangs_straight_down():
    check = CHECKS["cloth_bend"]
    free = scenes.OVERHANG["length"]
    assert check.measure(overhung([0.0] + [0.999 * free] * 99)) == 0.0
    with pytest.raises(UserError, match="does not hang down"):
        check.measure(overhung([0.0] * 100))


@pytest.mark.parametrize("engine", ["bullet", "physx"])
def test_an_engine_gives_what_is_asked(engine):
    engine_here(engine)
    told = []
    outcomes = run_suite(engine, told=told.append)
    assert told == outcomes
    assert [o.check for o in outcomes] == list(CHECKS)
    found = {o.check: o for o in outcomes}
    wrong = {n: (found[n].effective, found[n].reason) for n in RIGID if found[n].status != "ok"}
    # At 180 steps a second, with generalised coordinates.
    assert set(wrong) == ({"tumble_energy", "tumble_momentum"} if engine == "bullet" else set())
    for name, kind in (
        ("cloth_stretch", "cloth"),
        ("cloth_bend", "cloth"),
        ("cloth_slide", "cloth"),
        ("bar_stretch", "soft"),
    ):
        assert found[name].status == "not_run"
        assert f"engine {engine} has no {kind}" in found[name].reason
        assert found[name].effective is None
    rows = rows_of(outcomes)
    assert {r["version"] for r in rows} == {installed_version(engine)}
    assert rows[0]["unit"] == "m/s^2"


def installed_version(engine):
    from wmeval.sim.engines import engine_info

    return engine_info(engine).version


def test_settings_that_make_an_engine_wrong_show_as_off():
    """Bullet's raw contact ERP and few iterations: the suite tells, it does not hide."""
    loose = EngineConfig(iterations=50, restitution_threshold=10.0)
    (outcome,) = run_suite("bullet", loose, checks=["bounce_0.8"])
    assert outcome.status == "off"
    assert outcome.effective == pytest.approx(0.0, abs=0.05)


def test_what_cannot_be_run_says_why():
    (outcome,) = run_suite("bullet", EngineConfig(options={"warp": 9}), checks=["free_fall"])
    assert outcome.status == "not_run"
    assert "no option 'warp'" in outcome.reason
    with pytest.raises(UserError, match="no check 'weather'"):
        run_suite("bullet", checks=["weather"])
    with pytest.raises(UserError, match="no engine 'havok'"):
        run_suite("havok", checks=["free_fall"])
    assert spec_of(CHECKS["bar_stretch"], "bullet").clock.dt == Fraction(1, 900)
    assert spec_of(CHECKS["top"], "bullet", dt=Fraction(1, 1800)).clock.dt == Fraction(1, 1800)
