"""Data bodies, lazy showing, forces at points, rays: what drivers can read and put."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from physics_scenes import DT, body, floor, world_spec

from wmeval.conventions import quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.records import WorldLog
from wmeval.scene import DYNAMIC, Box, Cylinder, Modal, Scene, Sphere
from wmeval.sim.engines import make_engine
from wmeval.sim.protocol import Driver, EngineConfig, Probe
from wmeval.sim.rows import LastRow, look_at_row
from wmeval.sim.wire import pack_log, unpack_log

EVERY = Probe(states="substeps", contacts=True)
ONE = (1.0, 0.0, 0.0, 0.0)
ZERO = (0.0, 0.0, 0.0)
LEAVES = 5


def a_scene(*extra, **changes) -> Scene:
    """A rolling ball on a floor, leaves without physics, one modal state."""
    ball = body("ball", Sphere(radius=0.2), position=(0, 0, 0.2), linear_velocity=(1, 0.3, 0))
    leaves = [
        body(f"leaf {i}", (), motion="kinematic", position=(i, 1, 1)).model_copy(
            update={"active": i != 3}
        )
        for i in range(LEAVES)
    ]
    scene = world_spec(ball, floor(), *leaves, *extra).scene
    modal = (Modal(name="slosh", size=2, unit="m", doc="amplitude and its rate"),)
    return scene.model_copy(update={"modal": modal, **changes})


def built(scene, *drivers):
    engine = make_engine("bullet")
    engine.build(scene, {}, EngineConfig(), DT, drivers)
    return engine


class Slosh(Driver):
    """A driver with physics of its own: an oscillator pushed by the ball's speed."""

    def reset(self, scene, view):
        self.x, self.v = 0.1, 0.0
        view.set_modal("slosh", (self.x, self.v))

    def after(self, view):
        push = view.velocity(0)[0][0]
        self.v += view.dt * (push - 40.0 * self.x)
        self.x += view.dt * self.v
        view.set_modal("slosh", (self.x, self.v))


class Wind(Driver):
    """A pure function of time, of the ball and of the modal state, put when somebody looks."""

    def __init__(self):
        self.calls = 0

    def reset(self, scene, view):
        self.leaves = np.array([scene.index(f"leaf {i}") for i in range(LEAVES)])

    def show(self, view):
        self.calls += 1
        t = view.substep * view.dt
        x, v = view.modal("slosh")
        bx, by, bz = view.pose(0)[0]
        numbers = np.zeros((LEAVES, 13))
        for i in range(LEAVES):
            angle = 0.3 * math.sin(3 * t + i) + x
            turn = (math.cos(angle / 2), 0, math.sin(angle / 2), 0)
            numbers[i] = (i + bx, 1 + by, 1 + x, *turn, v, 0, 0, 0, 0.9 * math.cos(3 * t + i), 0)
        view.set_states(self.leaves[:4], numbers[:4])
        last = numbers[4].tolist()
        view.set_state(int(self.leaves[4]), *(tuple(last[a:b]) for a, b in PARTS))
        view.set_active(int(self.leaves[3]), view.substep % 7 < 3)
        view.set_camera(0, (bx, by - 5, 3.0), (bx, by, bz), 0.7 + 0.1 * math.sin(t))
        c, s = math.cos(t), math.sin(t)
        view.set_sun((c, 0.0, s), (2.0 + s, 1.0, abs(c)))
        view.set_sky((0.1, 0.1 + 0.05 * s, 0.4), (0.5, 0.5, 0.5 + x), (0.2, 0.2, 0.2))


PARTS = ((0, 3), (3, 7), (7, 10), (10, 13))


def logs_of(scene, drivers, plan):
    """Advance as planned, (substeps, how, looks before it); one row at each stop."""
    engine = built(scene, *drivers)
    rows = [WorldLog(*engine.log(Probe()))]
    for count, how, looks in plan:
        for look in looks:
            LOOKS[look](engine)
        until = engine.substep + count
        if how == "run":
            engine.run((), until)
            rows.append(WorldLog(*engine.log(Probe())))
        else:
            rows.append(WorldLog(*engine.advance((), until, EVERY if how == "all" else Probe())))
    engine.close()
    return rows


LOOKS = {
    "leaf": lambda e: e.pose(3),
    "leaf speed": lambda e: e.velocity(6),
    "active": lambda e: e.active(5),
    "camera": lambda e: e.camera(0),
    "fov": lambda e: e.fov_y(0),
    "sun": lambda e: e.sun(),
    "sky": lambda e: e.sky(),
    "ball": lambda e: e.pose(0),
    "row": lambda e: e.log(Probe()),
}


def bits(log: WorldLog) -> bytes:
    arrays = (log.cameras.fov_y, log.cameras.T_world_camera, log.lights.sun_direction)
    arrays += (log.lights.sun_color, log.lights.sky)
    return log.state.sha256().encode() + b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)


@settings(max_examples=25)
@given(
    st.lists(
        st.tuples(
            st.integers(1, 9),
            st.sampled_from(["run", "all", "last"]),
            st.lists(st.sampled_from(sorted(LOOKS)), max_size=4),
        ),
        min_size=1,
        max_size=8,
    )
)
def test_what_is_shown_does_not_depend_on_who_looks_how_often(plan):
    scene = a_scene()
    total = sum(count for count, _, _ in plan)
    everything = WorldLog.concatenate(logs_of(scene, (Slosh(), Wind()), [(total, "all", ())]))
    at = 0
    for log, (count, _, _) in zip(logs_of(scene, (Slosh(), Wind()), plan)[1:], plan, strict=True):
        at += count
        first = at - len(log) + 1
        assert bits(log) == bits(everything.rows(slice(first, at + 1)))


def test_running_shows_nothing_until_somebody_looks():
    wind = Wind()
    engine = built(a_scene(), Slosh(), wind)
    assert wind.calls == 0
    engine.run((), 50)
    engine.pose(0)  # the ball has physics: nothing to show
    engine.pose(1)  # nor is the floor shown
    assert wind.calls == 0
    seen = engine.pose(2)
    engine.camera(0), engine.sun(), engine.pose(3)
    assert wind.calls == 1
    # The same numbers by hand, from the ball and the oscillator.
    x = engine.modal("slosh")[0]
    bx, by, _ = engine.pose(0)[0]
    assert seen[0] == (bx, 1 + by, 1 + x)
    engine.advance((), 60, Probe())
    assert wind.calls == 2
    engine.advance((), 70, EVERY)
    assert wind.calls == 12
    engine.close()


def test_modal_state_that_no_show_puts_is_read_without_showing():
    wind = Wind()
    engine = built(a_scene(), Slosh(), wind)
    before = wind.calls
    engine.run((), 10)
    x, _ = engine.modal("slosh")
    assert x != 0.1
    assert wind.calls == before
    engine.pose(3)
    assert wind.calls == before + 1
    engine.close()


def test_rows_that_need_no_show_get_none_but_for_the_last():
    wind = Wind()
    lazy, full = built(a_scene(), Slosh(), wind), built(a_scene(), Slosh(), Wind())
    for until in (30, 31, 60):
        some = WorldLog(*lazy.advance((), until, Probe("substeps", contacts=True, shown=False)))
        every = WorldLog(*full.advance((), until, EVERY))
        assert bits(some.rows([-1])) == bits(every.rows([-1]))
        # The ball and the oscillator are in every row.
        assert np.array_equal(some.state.position[:, 0], every.state.position[:, 0])
        assert np.array_equal(some.state.modal["slosh"], every.state.modal["slosh"])
        assert np.array_equal(some.contacts.position, every.contacts.position)
    assert wind.calls == 3
    lazy.close()
    full.close()


def test_a_log_tells_every_row_of_what_was_put():
    scene = a_scene()
    engine = built(scene, Slosh(), Wind())
    log = WorldLog(*engine.advance((), 40, EVERY))
    t = log.state.times
    assert log.state.modal["slosh"].shape == (40, 2)
    sun = np.stack([np.cos(t), 0 * t, np.sin(t)], axis=1)
    assert np.abs(log.lights.sun_direction - sun).max() < 1e-12
    assert np.allclose(log.lights.sun_color[:, 0], 2 + np.sin(t))
    assert np.allclose(log.lights.sky[:, 1, 2], 0.5 + log.state.modal["slosh"][:, 0])
    assert np.allclose(log.lights.sky[:, 0, 1], 0.1 + 0.05 * np.sin(t))
    assert np.allclose(log.cameras.fov_y[:, 0], 0.7 + 0.1 * np.sin(t))
    assert np.allclose(log.cameras.fov_y[:, 1], math.radians(scene.cameras[1].fov_y_deg))
    assert log.state.active[:, 5].tolist() == [k % 7 < 3 for k in log.state.substep]
    assert log.state.active[:, [0, 1, 2, 3, 4, 6]].all()
    ball = log.state.position[:, 0]
    for i in range(LEAVES):
        position = log.state.position[:, 2 + i]
        assert np.abs(position[:, 0] - (i + ball[:, 0])).max() < 1e-12
        assert np.abs(position[:, 2] - (1 + log.state.modal["slosh"][:, 0])).max() < 1e-12
    pose = look_at_row((ball[-1, 0], ball[-1, 1] - 5, 3.0), tuple(ball[-1].tolist()))
    assert np.abs(log.cameras.T_world_camera[-1, 0].ravel() - pose).max() < 1e-12
    back = unpack_log(*pack_log(log))
    assert bits(back) == bits(log)
    row = LastRow(log)
    for name, arguments in (
        ("pose", (3,)), ("velocity", (0,)), ("active", (5,)), ("camera", (0,)), ("fov_y", (0,)),
        ("sun", ()), ("sky", ()), ("modal", ("slosh",)), ("motion", (2,)),
    ):  # fmt: skip
        expected, got = getattr(engine, name)(*arguments), getattr(row, name)(*arguments)
        assert np.array_equal(flat(expected), flat(got)), name
    engine.close()


def flat(value):
    if isinstance(value, tuple | list):
        return [x for part in value for x in flat(part)]
    return [value]


CAMERA = ("show", "camera")
"""A camera is shown from where the other hooks have put it, so that one may read that."""


class Peek(Driver):
    """Reads what another driver shows."""

    def __init__(self, read, hook):
        self.read = read
        setattr(self, hook, self.look)

    def reset(self, scene, view):
        pass

    def look(self, view):
        self.read(view)

    def after(self, view):
        pass

    def show(self, view):
        pass


SHOWN = ["leaf", "leaf speed", "active", "camera", "fov", "sun", "sky"]


@pytest.mark.parametrize(
    ("hook", "look"),
    [(hook, look) for hook in ("after", "show") for look in SHOWN if (hook, look) != CAMERA],
)
def test_what_is_shown_cannot_feed_back(look, hook):
    engine = built(a_scene(), Slosh(), Peek(LOOKS[look], hook), Wind())
    engine.log(Probe())  # what is shown is known after the first look
    with pytest.raises(UserError, match=r"put by a driver's show\(\)"):
        engine.advance((), 1, Probe())
    engine.close()


def test_a_camera_is_shown_anew_from_where_the_hooks_have_put_it():
    seen = []
    earlier = Peek(lambda view: seen.append(view.camera(0)), "show")
    engine = built(a_scene(), Slosh(), earlier, Wind())
    first = engine.camera(0)
    engine.advance((), 3, EVERY)
    assert len(set(seen)) == 1
    assert engine.camera(0) != first
    engine.close()


def test_showing_in_order_may_read_what_was_shown_before():
    seen = []
    later = Peek(lambda view: seen.append(view.pose(2)[0]), "show")
    engine = built(a_scene(), Slosh(), Wind(), later)
    engine.advance((), 3, EVERY)
    assert len(seen) == 3
    assert len(set(seen)) == 3
    assert seen[-1] == engine.pose(2)[0]
    engine.close()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda v: v.set_state(0, ZERO, ONE, ZERO, ZERO), r"show\(\) cannot put body 'ball'"),
        (lambda v: v.set_states(np.array([2, 1]), np.zeros((2, 13))), "'floor' has collision"),
        (lambda v: v.set_states(np.array([2, 3]), np.zeros((2, 12))), r"need numbers \(2, 13\)"),
        (lambda v: v.set_active(0, False), "'ball' has collision geometry: set_active"),
        (lambda v: v.set_modal("wave", (1.0,)), "no modal state 'wave'; there are: slosh"),
        (lambda v: v.set_modal("slosh", (1.0,)), "'slosh' holds 2 numbers, got 1"),
        (lambda v: v.modal("wave"), "no modal state 'wave'"),
        (lambda v: v.set_sun(ZERO, ZERO), "has no length"),
        (lambda v: v.set_camera(0, (0, -5, 3), ZERO, 4.0), "fov_y = 4.0 rad"),
    ],
)
def test_what_cannot_be_put_is_refused(act, message):
    class Doer(Driver):
        def reset(self, scene, view):
            pass

        def show(self, view):
            act(view)

    engine = built(a_scene(), Doer())
    with pytest.raises(UserError, match=message):
        engine.log(Probe())
    engine.close()


# --- forces, torques, contacts --------------------------------------------------------------------


class Do(Driver):
    """Calls functions before and after each substep."""

    def __init__(self, before=None, after=None):
        self.todo = before, after

    def reset(self, scene, view):
        pass

    def before(self, view):
        if self.todo[0]:
            self.todo[0](view)

    def after(self, view):
        if self.todo[1]:
            self.todo[1](view)


def test_torques_and_forces_act_in_the_world_frame():
    half = np.array([0.5, 0.3, 0.1])
    turn = np.array([0.8, 0.3, -0.4, 0.33])
    turn /= np.linalg.norm(turn)
    box = body("box", Box(half_extents=tuple(half)), mass=2.0, quaternion_wxyz=tuple(turn))
    spec = world_spec(box, gravity=(0, 0, 0))
    R = quaternion_to_matrix(turn)
    inertia = R @ np.diag(2.0 / 3 * (half**2)[[1, 0, 0]] + 2.0 / 3 * (half**2)[[2, 2, 1]]) @ R.T
    torque, force, arm = np.array([1.0, 2, 3]), np.array([4.0, -5, 6]), np.array([0.2, 0.1, -0.3])
    for act, linear, angular in (
        (lambda v: v.apply_torque(0, tuple(torque)), 0 * force, torque),
        (lambda v: v.apply_force(0, tuple(force)), force, 0 * torque),
        (lambda v: v.apply_force(0, tuple(force), tuple(arm)), force, np.cross(arm, force)),
    ):
        engine = built(spec.scene, Do(act))
        engine.run((), 1)
        v, w = engine.velocity(0)
        assert np.abs(np.array(v) - linear / 2 * float(DT)).max() < 1e-12
        assert np.abs(np.array(w) - np.linalg.solve(inertia, angular) * float(DT)).max() < 1e-9
        engine.close()


def test_contacts_with_any_body_are_those_with_each():
    seen = []

    def read(view):
        every = view.contacts(0)
        parts = [view.contacts(0, 1), view.contacts(0, 2)]
        seen.append((every, parts))

    box = Box(half_extents=(0.2, 0.2, 0.2))
    scene = world_spec(
        body("box", box, position=(0, 0, 0.2)),
        floor(),
        body("top", box, position=(0.05, 0, 0.6)),
        body("far", box, position=(9, 0, 0.2)),
    ).scene
    engine = built(scene, Do(None, read))
    engine.run((), 12)
    key = lambda c: (c.body_b, c.position)  # noqa: E731
    for every, parts in seen[4:]:
        assert {c.body_a for c in every} == {0}
        assert {c.body_b for c in every} == {1, 2}
        assert sorted(every, key=key) == sorted(itertools.chain(*parts), key=key)
        for c in every:  # the floor pushes up, the box on top pushes down
            assert c.normal[2] == pytest.approx(1.0 if c.body_b == 1 else -1.0)
    engine.close()


def test_a_kinematic_body_stays_where_it_is_put_and_drags_what_lies_on_it():
    belt = body("belt", Box(half_extents=(9, 1, 0.1)), motion="kinematic", position=(0, 0, -0.1))
    box = body("box", Box(half_extents=(0.1, 0.1, 0.1)), position=(0, 0, 0.1))
    put = lambda view: view.set_state(0, (0, 0, -0.1), ONE, (0.7, 0, 0), ZERO)  # noqa: E731

    class Once(Do):
        def reset(self, scene, view):
            put(view)

    for driver in (Once(), Do(put), Do(None, put)):
        engine = built(world_spec(belt, box).scene, driver)
        log = WorldLog(*engine.advance((), 240, EVERY))
        assert np.abs(log.state.position[:, 0] - (0, 0, -0.1)).max() == 0
        assert (log.state.linear_velocity[1:, 0] == (0.7, 0, 0)).all()
        assert log.state.linear_velocity[-1, 1] == pytest.approx((0.7, 0, 0), abs=0.01)
        engine.close()


def test_a_kinematic_body_that_moves_pushes():
    ram = body("ram", Box(half_extents=(0.1, 0.5, 0.5)), motion="kinematic", position=(-1, 0, 0.6))
    box = body("box", Box(half_extents=(0.2, 0.2, 0.2)), position=(0, 0, 0.2), friction=0.0)

    def push(view):
        x = -1 + 1.5 * view.substep * view.dt
        view.set_state(0, (x, 0.0, 0.6), ONE, (1.5, 0, 0), ZERO)

    engine = built(world_spec(ram, box, floor()).scene, Do(None, push))
    log = WorldLog(*engine.advance((), 240, EVERY))
    assert log.state.position[-1, 0, 0] == pytest.approx(0.5)
    assert log.state.position[-1, 1, 0] > 0.5 + 0.3 - 0.01
    # What pushes two bodies apart again adds a little speed.
    assert 1.5 <= log.state.linear_velocity[-1, 1, 0] < 1.7
    engine.close()


# --- rays -----------------------------------------------------------------------------------------


def test_a_ray_finds_the_nearest_body_that_is_not_ignored():
    hits = []

    def look(view):
        # The slab is moved in this very substep: the ray must see it where it is now.
        x = 0.3 * view.substep
        view.set_state(1, (x, 0.0, 1.0), ONE, ZERO, ZERO)
        hits.extend(
            (x, ignore, view.raycast((x, 0, 5.0), (x, 0, -5.0), ignore))
            for ignore in ((), (1,), (1, 2), (1, 2, 0))
        )
        hits.append((x, None, view.raycast((x + 1.7, 0, 5.0), (x + 1.7, 0, 2.0))))

    scene = world_spec(
        floor(),
        body("slab", Box(half_extents=(0.5, 0.5, 0.1)), motion="kinematic", position=(0, 0, 1)),
        body("post", Cylinder(radius=40, height=0.2), motion="static", position=(0, 0, 0.5)),
    ).scene
    engine = built(scene, Do(None, look))
    engine.run((), 12)
    for x, ignore, hit in hits:
        if ignore in (None, (1, 2, 0)):
            assert hit is None
            continue
        expected, height = {0: (1, 1.1), 1: (2, 0.6), 2: (0, 0.0)}[len(ignore)]
        assert hit.body == expected
        assert hit.position == pytest.approx((x, 0, height), abs=4e-4)
        assert hit.normal == pytest.approx((0, 0, 1), abs=1e-3)
        assert hit.fraction == pytest.approx((5 - height) / 10, abs=4e-5)
    engine.close()


def test_rays_of_a_driver_change_no_bit():
    def stir(view):
        for i in range(6):
            view.raycast((-2 + i, 0.1, 3), (-2 + i, 0.1, -3), (1, i))

    rng = np.random.default_rng(2)
    shapes = (Sphere(radius=0.15), Box(half_extents=(0.2, 0.1, 0.15)))
    heap = [
        body(f"b{i}", shapes[i % 2], position=(*rng.uniform(-0.5, 0.5, 2), 0.3 + 0.25 * i))
        for i in range(12)
    ]
    spec = world_spec(floor(), *heap)
    plain, stirred = built(spec.scene), built(spec.scene, Do(stir, stir))
    for k in range(60, 481, 60):
        a, b = (WorldLog(*e.advance((), k, EVERY)) for e in (plain, stirred))
        assert a.state.sha256() == b.state.sha256()
        assert len(a.contacts) == len(b.contacts) > 0
        assert np.array_equal(a.contacts.normal_impulse, b.contacts.normal_impulse)
    plain.close()
    stirred.close()


def test_released_bodies_no_longer_stay_where_they_were_put():
    box = body(
        "box", Box(half_extents=(0.1,) * 3), motion="kinematic", position=(0, 0, 3), mass=1.0
    )

    def carry(view):
        if view.substep < 10:
            view.set_state(0, (0, 0, 3), ONE, (0, 0, 1.0), ZERO)
        elif view.substep == 10:
            view.set_motion(0, DYNAMIC)

    engine = built(world_spec(box).scene, Do(None, carry))
    log = WorldLog(*engine.advance((), 130, EVERY))
    fallen = 3 - log.state.position[-1, 0, 2]
    assert fallen == pytest.approx(0.5 * 9.81 * 0.5**2, rel=0.02)
    engine.close()
