"""Samples in motion against closed forms that include damping, the step's bias and the margins."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
import pytest
from plain_setting import CARDS, row, simulate

from wmeval.assets.cards import TaskCard
from wmeval.assets.hulls import moments
from wmeval.conventions import quaternion_to_matrix
from wmeval.envs.rigidbench.sample import ACTIVE, Sample, draw_sample
from wmeval.records import WorldLog
from wmeval.scene import Scene, Sphere

G, DT = 9.81, 1 / 720
KEPT, SPIN_KEPT = 0.9**DT, 0.5**DT
C, C_SPIN = -math.log(0.9), -math.log(0.5)
TASKS = tuple(CARDS.splits.tasks)
BALLS = ("baseball", "bouncy_ball", "cricket_ball", "tennis_ball")


def sample(task: str, seed: int = 0, *, objects=(), physics: str = "bullet", **fixed) -> Sample:
    """A sample whose placements are fixed: slot=(field, value, ...)."""
    card = CARDS.tasks[task].model_dump()
    for placement in card["placements"]:
        for name, value in fixed.get(placement["slot"], {}).items():
            placement[name] = (value, value) if isinstance(value, float) else value
    chosen = TaskCard.model_validate(card)
    return draw_sample(row(task, seed, objects=objects), CARDS, physics=physics, task=chosen)


def changed(scene: Scene, **fields: float) -> Scene:
    """The scene with fields of all active bodies changed."""
    return scene.with_bodies(**{b.name: fields for b in scene.bodies if b.role == ACTIVE})


def body_of(x: Sample, name: str):
    return x.scene.bodies[x.scene.index(name)]


# --- falling ------------------------------------------------------------------------------------


@pytest.mark.parametrize("physics", ["bullet", "bullet-faithful"])
@pytest.mark.parametrize("name", ["apple", "banana", "toy_duck", "tennis_ball"])
def test_free_fall_is_the_damped_semi_implicit_closed_form(name: str, physics: str) -> None:
    x = sample("free_fall", objects=(name,), physics=physics)
    log = simulate(x, frames=7)
    i = x.scene.index("falling")
    assert not len(log.contacts.substep)
    k = np.arange(len(log.state.substep))
    fallen = 1 - KEPT**k
    speed = -G * DT * fallen / (1 - KEPT)
    way = -G * DT**2 / (1 - KEPT) * (k - KEPT * fallen / (1 - KEPT))
    z = log.state.position[:, i, 2]
    assert np.abs(log.state.linear_velocity[:, i, 2] - speed).max() < 1e-11
    assert np.abs(z - z[0] - way).max() < 1e-11
    # Against the true motion the step's bias is half a step's way, g t dt / 2.
    t = k[-1] * DT
    true = -G / C * (t - (1 - math.exp(-C * t)) / C)
    assert z[-1] - z[0] - true == pytest.approx(-G * t * DT / 2, rel=0.03)


@pytest.mark.parametrize("height", [0.5, 0.583, 0.7])
@pytest.mark.parametrize("name", BALLS)
def test_balls_bounce_to_e_squared(name: str, height: float) -> None:
    x = sample("bounce", objects=(name,), bouncing={"height_m": height})
    log = simulate(x)
    i = x.scene.index("bouncing")
    e = CARDS.objects[name].physics.restitution * 0.6
    v = log.state.linear_velocity[:, i, 2]
    hit = int(np.argmax(v > 0))
    # The fall ends with the first touch: its height less at most one substep's way.
    radius = body_of(x, "bouncing").collision[0].shape.radius
    low = x.layout.actors[0].position[2] - radius
    assert low == pytest.approx(height - radius, abs=2e-4)
    assert v[hit - 1] ** 2 / (2 * G * low) == pytest.approx(1.0 - C * 0.35 * 2 / 3, abs=0.02)
    assert (v[hit] / v[hit - 1]) ** 2 == pytest.approx(e**2, rel=0.04)
    assert v[hit] == pytest.approx(-e * KEPT * v[hit - 1], rel=5e-3)
    # Up to the top, and down again.
    rise = log.state.position[hit:, i, 2].max() - log.state.position[hit, i, 2]
    t = math.log(1 + C * v[hit] / G) / C
    top = (v[hit] + G / C) / C * (1 - math.exp(-C * t)) - G * t / C
    assert rise == pytest.approx(top, rel=0.02, abs=G * DT * DT + v[hit] * DT)


# --- rolling and sliding ------------------------------------------------------------------------


def down_the_ramp(x: Sample, scene: Scene) -> tuple[np.ndarray, np.ndarray, float]:
    """Times while it is on the slope, velocity down the slope, slope angle [rad]."""
    log = simulate(x, frames=20, scene=scene)
    ramp, i = x.layout.actors[0], x.scene.index("rolling")
    turn = math.radians(x.turn_deg)
    slope = ramp.wedge.angle
    down = np.array([math.cos(slope) * math.cos(turn), math.cos(slope) * math.sin(turn),
                     -math.sin(slope)])  # fmt: skip
    p, v = log.state.position[:, i], log.state.linear_velocity[:, i] @ down
    left = 0.6 * math.hypot(ramp.wedge.length, ramp.wedge.height)
    on = (p - p[0]) @ down < left
    k = int(np.argmin(on)) if not on.all() else len(on)
    return np.arange(k) * DT, v[:k], slope


def rolling(name: str, length: float, height: float, seed: int = 0) -> Sample:
    return sample(
        "ball_chain",
        seed,
        ramp={"length_m": length, "height_m": height},
        rolling={"objects": (name,)},
        chain={"objects": ("large_dice",)},
    )


def test_a_ball_rolls_down_its_ramp_at_five_sevenths() -> None:
    x = rolling("tennis_ball", 0.7, 0.3)
    assert isinstance(body_of(x, "rolling").collision[0].shape, Sphere)
    mu = 0.4 * CARDS.objects["tennis_ball"].physics.friction
    t, v, slope = down_the_ramp(
        x, changed(x.scene, linear_damping=0.0, angular_damping=0.0, restitution=0.0)
    )
    assert math.tan(slope) < 3.5 * mu
    late = t > 0.1
    rate = np.polyfit(t[late], v[late], 1)[0]
    assert rate == pytest.approx(5 / 7 * G * math.sin(slope), rel=2e-3)


def test_a_damped_ball_rolls_as_its_two_dampings_say() -> None:
    x = rolling("tennis_ball", 0.7, 0.3)
    t, v, slope = down_the_ramp(x, changed(x.scene, restitution=0.0))
    # (m + I/r^2) dv/dt = m g sin - (c m + c' I/r^2) v, with I/r^2 = 2/5 m.
    rate = (C + 0.4 * C_SPIN) / 1.4
    late = t > 0.1
    start, first = float(t[late][0]), float(v[late][0])
    end = 5 / 7 * G * math.sin(slope) / rate
    expected = end + (first - end) * np.exp(-rate * (t[late] - start))
    np.testing.assert_allclose(v[late], expected, rtol=3e-3)


def test_beyond_the_no_slip_slope_it_slides() -> None:
    x = rolling("tennis_ball", 0.5, 0.45)
    scene = changed(x.scene, linear_damping=0.0, angular_damping=0.0, restitution=0.0, friction=0.3)
    mu = 0.3 * 0.4
    t, v, slope = down_the_ramp(x, scene)
    assert math.tan(slope) > 3.5 * mu
    late = t > 0.1
    rate = np.polyfit(t[late], v[late], 1)[0]
    assert rate == pytest.approx(G * (math.sin(slope) - mu * math.cos(slope)), rel=0.01)


# --- accounts -----------------------------------------------------------------------------------


def impulses_on(log: WorldLog, body: int) -> tuple[np.ndarray, np.ndarray]:
    """Impulse and its moment about the body's centre in every substep, (steps, 3) each."""
    c, steps = log.contacts, len(log.state.substep) - 1
    total, moment = np.zeros((steps, 3)), np.zeros((steps, 3))
    j = c.normal_impulse[:, None] * c.normal + c.tangential_impulse
    for sign, ids in ((1.0, c.body_a), (-1.0, c.body_b)):
        mine = ids == body
        k = c.substep[mine]
        # Places are on b; on a they lie `distance` along the normal.
        at = c.position[mine] + (c.distance[mine, None] * c.normal[mine] if sign > 0 else 0.0)
        np.add.at(total, k, sign * j[mine])
        np.add.at(moment, k, np.cross(at - log.state.position[k, body], sign * j[mine]))
    return total, moment


@lru_cache(maxsize=10)
def played(task: str, seed: int, physics: str = "bullet") -> tuple[Sample, WorldLog]:
    """A sample and its whole clip."""
    x = draw_sample(row(task, seed), CARDS, physics=physics)
    return x, simulate(x)


@pytest.mark.parametrize("task", TASKS)
def test_contacts_turn_bodies_as_their_list_says_and_never_add_energy(task: str) -> None:
    """Each substep's spin is what was there, damped and precessed, and the moment of impulses."""
    for seed in (1, 2):
        x, log = played(task, seed)
        gained = np.zeros(len(log.state.substep) - 1)
        for i in x.scene.indices(ACTIVE):
            body = x.scene.bodies[i]
            own = inertia_of(x, body.name)
            turn = quaternion_to_matrix(log.state.quaternion_wxyz[:-1, i])
            inertia = turn @ own @ np.swapaxes(turn, 1, 2)
            v, w = log.state.linear_velocity[:, i], log.state.angular_velocity[:, i]
            _, moment = impulses_on(log, i)
            spun = np.linalg.solve(inertia, moment[..., None])[..., 0]
            held = np.einsum("nij,nj->ni", inertia, w[:-1])
            precession = np.linalg.solve(inertia, np.cross(held, w[:-1])[..., None])[..., 0] * DT
            off = w[1:] - (SPIN_KEPT * w[:-1] + precession + spun)
            largest = float(np.linalg.norm(spun, axis=1).max())
            # Places are told to a substep's way: levers of some 30 mm, to a millimetre.
            assert np.abs(off).max() < 0.03 * largest + 0.01, body.name
            # Energy that the impulses bring to what gravity, damping and precession leave.
            before, rest = w[1:] - spun, KEPT * v[:-1] + [0.0, 0.0, -G * DT]
            gained += 0.5 * body.mass * ((v[1:] ** 2).sum(1) - (rest**2).sum(1))
            for sign, spin in ((0.5, w[1:]), (-0.5, before)):
                gained += sign * np.einsum("ni,nij,nj->n", spin, inertia, spin)
        lost = -float(gained.min())
        assert lost > 1e-3
        assert gained.max() <= 1e-9 * lost


def inertia_of(x: Sample, name: str) -> np.ndarray:
    """Inertia (3, 3) [kg m^2] of an active body in its own frame: of its ball or its hull."""
    body = body_of(x, name)
    shape = body.collision[0].shape
    if isinstance(shape, Sphere):
        return np.eye(3) * 0.4 * body.mass * shape.radius**2
    volume, _, second = moments(x.meshes[shape.sha256])
    return (np.trace(second) * np.eye(3) - second) * body.mass / volume


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("physics", ["bullet", "bullet-faithful"])
def test_every_change_of_momentum_is_in_the_list_of_contacts(task: str, physics: str) -> None:
    for seed in (1, 2):
        x, log = played(task, seed, physics)
        touched = 0
        for i in x.scene.indices(ACTIVE):
            m = x.scene.bodies[i].mass
            v = log.state.linear_velocity[:, i]
            change = m * (v[1:] - KEPT * v[:-1] - [0.0, 0.0, -G * DT])
            given, _ = impulses_on(log, i)
            scale = max(float(np.linalg.norm(given, axis=1).max()), m * G * DT)
            assert np.abs(change - given).max() < 1e-6 * scale
            touched += bool((given != 0).any())
        assert touched == len(x.scene.indices(ACTIVE))


def test_two_balls_collide_with_their_restitution_and_account_for_their_energy() -> None:
    ball = {"objects": ("tennis_ball",)}
    low = {"height_m": 0.15, "length_m": 0.45}
    x = sample("ramp_collision", ramp_left=low, ramp_right=low, rolling_left=ball,
               rolling_right=ball)  # fmt: skip
    log = simulate(x)
    a, b = (x.scene.index(f"rolling_{side}") for side in ("left", "right"))
    m = x.scene.bodies[a].mass
    inertia = 0.4 * m * x.scene.bodies[a].collision[0].shape.radius ** 2
    c = log.contacts
    between = np.flatnonzero(np.isin(c.body_a, (a, b)) & np.isin(c.body_b, (a, b)))
    k = int(c.substep[between[0]])
    normal = c.normal[between[0]]
    v, w = log.state.linear_velocity, log.state.angular_velocity
    apart = [(v[s, c.body_a[between[0]]] - v[s, c.body_b[between[0]]]) @ normal for s in (k, k + 1)]
    assert apart[0] < -0.5
    assert apart[1] / -apart[0] == pytest.approx(0.75**2, rel=0.02)
    # Over the whole clip: each substep's change of energy is the work of its impulses, which never
    # add any, of gravity and of damping.
    change, work = np.zeros(len(v) - 1), np.zeros(len(v) - 1)
    for i in (a, b):
        given, moment = impulses_on(log, i)
        v0, w0 = KEPT * v[:-1, i], SPIN_KEPT * w[:-1, i]
        free = v0 + np.array([0.0, 0.0, -G * DT])
        v1, w1 = v[1:, i], w[1:, i]
        change += 0.5 * m * ((v1**2).sum(1) - (free**2).sum(1))
        change += 0.5 * inertia * ((w1**2).sum(1) - (w0**2).sum(1))
        work += (given * (free + v1)).sum(1) / 2 + (moment * (w0 + w1)).sum(1) / 2
    lost = -change
    np.testing.assert_allclose(change, work, atol=1e-6 * lost.max())
    assert change.max() < 1e-3 * lost.max()
    expected = 0.25 * m * apart[0] ** 2 * (1 - 0.75**4)
    assert lost[k] == pytest.approx(expected, rel=0.15)
