"""Limbs that follow a root: feet that stay, velocities that are theirs, poses from state alone."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from physics_scenes import TA, body, floor, world_spec

from wmeval.assets import mannequin as man
from wmeval.clock import SceneClock
from wmeval.conventions import quaternion_to_matrix
from wmeval.errors import UserError
from wmeval.records import WorldLog
from wmeval.scene import Capsule
from wmeval.sim.drivers import gait, strides
from wmeval.sim.drivers.character import grounded_modal
from wmeval.sim.engines import make_engine
from wmeval.sim.protocol import Driver, DriverSpec, EngineConfig, Probe
from wmeval.sim.world import LocalWorld

S = 1.75
EVERY = Probe("substeps", contacts=False)
FINE = EngineConfig(
    options={"contact_processing_threshold": 0.05, "contact_breaking_threshold": 0.05}
)
NAMES = [b.name for b in man.SKELETON]


def limbs(prefix="figure_"):
    return [
        body(f"{prefix}{bone.name}", (), motion="kinematic", position=(0.0, 0.0, 1.0))
        for bone in man.SKELETON
    ]


def walker(grounded=True):
    """A character on a floor, with limbs."""
    figure = body("figure", Capsule(radius=0.28, height=S), mass=75.0, friction=0.0, upright=True,
                  position=(0.0, 0.0, S / 2))  # fmt: skip
    spec = world_spec(floor(), figure, *limbs())
    scene = spec.scene.model_copy(update={"modal": (grounded_modal(), gait.gait_modal("gait"))})
    params = {"root": "figure", "prefix": "figure_", "modal": "gait", "ground": S / 2}
    if grounded:
        params["grounded"] = "grounded"
    drivers = (
        DriverSpec(kind="character", params={"body": "figure"}),
        DriverSpec(kind="gait", params=params),
    )
    return LocalWorld(
        dataclasses.replace(
            spec, scene=scene, drivers=drivers, config=FINE, clock=SceneClock(spec.clock.dt, TA)
        )
    )


def play(made, *acts):
    logs, at = [made.reset()], 0
    for count, action in acts:
        at += count
        logs.append(made.advance(action, at, EVERY))
    made.close()
    return WorldLog.concatenate(logs)


def bodies(log, prefix="figure_"):
    return {n: log.state.bodies.index(prefix + n) for n in NAMES}


def on_sole(log, side, ahead, prefix="figure_", stature=S):
    """World path (N, 3) of a point of the sole, ``ahead`` of the ankle."""
    which = bodies(log, prefix)[f"foot_{side}"]
    bone = next(b for b in man.SKELETON if b.name == f"foot_{side}")
    local = np.array([0.0, ahead, -man.ANKLE * stature]) - np.array(bone.centre) * stature
    turn = quaternion_to_matrix(log.state.quaternion_wxyz[:, which])
    return log.state.position[:, which] + turn @ local


WALK, SPRINT = (0.0, 1.0, 0.0, 0.0), (0.0, 1.0, 0.0, 1.0)


@pytest.mark.parametrize("action", [WALK, SPRINT, (0.0, 0.6, 0.0, 0.0), (0.6, -0.8, 0.0, 0.0)])
def test_a_standing_foot_moves_less_than_two_centimetres(action):
    log = play(walker(), (720, action))
    steady = slice(420, None)
    stood = 0
    for side in ("right", "left"):
        heel, ball = (on_sole(log, side, a * S)[steady] for a in (-man.HEEL_BACK, man.BALL_AHEAD))
        for path in (heel, ball):
            down = path[:, 2] < 1e-3
            edges = np.flatnonzero(np.diff(np.concatenate([[0], down.astype(int), [0]])))
            for start, end in edges.reshape(-1, 2):
                if end - start > 6:
                    stood += 1
                    assert np.ptp(path[start:end, :2], axis=0).max() < 0.02
        assert min(heel[:, 2].min(), ball[:, 2].min()) > -0.01
    assert stood >= 4


def test_feet_never_sink_when_starting_jumping_landing_and_turning():
    log = play(
        walker(), (60, WALK), (60, SPRINT), (2, (0.0, 1.0, 1.0, 1.0)), (240, SPRINT),
        (120, (1.0, 0.0, 0.0, 0.0)), (120, (-1.0, 0.0, 0.0, 0.0)), (240, (0.0, 0.0, 1.0, 0.0)),
        (240, (0.0, 0.0, 0.0, 0.0)),
    )  # fmt: skip
    for side in ("right", "left"):
        for ahead in (-man.HEEL_BACK, man.BALL_AHEAD):
            assert on_sole(log, side, ahead * S)[:, 2].min() > -0.01


def test_the_phase_goes_on_with_the_distance():
    log = play(walker(), (960, WALK))
    state = log.state
    phase = np.unwrap(state.modal["gait"][:, gait.PHASE], period=1.0)
    way = state.position[:, 1, 1]
    length = strides.stride_length(2.0, 0.0, S)
    run = state.modal["gait"][-1, gait.RUN]
    length = strides.stride_length(2.0, float(run), S)
    slope = np.diff(phase[480:]) / np.diff(way[480:])
    np.testing.assert_allclose(slope, 1 / length, rtol=2e-3)


def test_limbs_velocities_are_those_of_their_poses():
    log = play(walker(), (480, WALK))
    state, dt = log.state, 1 / 240
    for name in ("pelvis", "head", "hand_left", "shank_right", "foot_left"):
        i = bodies(log)[name]
        moved = (state.position[401:, i] - state.position[399:-2, i]) / (2 * dt)
        said = state.linear_velocity[400:-1, i]
        scale = np.abs(moved).max()
        assert np.sqrt(np.mean((moved - said) ** 2)) < 0.03 * scale, name
        turns = quaternion_to_matrix(state.quaternion_wxyz[:, i])
        a, b = turns[399:-2], turns[401:]
        turn = b @ np.swapaxes(a, 1, 2)
        spin = np.stack([turn[:, 2, 1], turn[:, 0, 2], turn[:, 1, 0]], 1)
        spin -= np.stack([turn[:, 1, 2], turn[:, 2, 0], turn[:, 0, 1]], 1)
        rate = spin / 2 / (2 * dt)
        off = rate - state.angular_velocity[400:-1, i]
        assert np.sqrt(np.mean(off**2)) < 0.06 * max(np.abs(rate).max(), 0.5), name


def test_the_landing_is_caught_by_the_knees():
    log = play(walker(), (60, (0.0,) * 4), (4, (0.0, 0.0, 1.0, 0.0)), (480, (0.0,) * 4))
    crouch = log.state.modal["gait"][:, gait.CROUCH]
    landing = np.flatnonzero(np.diff(log.state.modal["grounded"][:, 0]) == 1)[-1]
    assert crouch[:landing].max() == 0
    assert 0.05 < crouch.max() < 0.2
    assert crouch[landing + 180] < 0.02
    head = log.state.position[:, bodies(log)["head"], 2]
    assert head[landing : landing + 60].min() < head[0] - 0.05
    assert head[-1] == pytest.approx(head[0], abs=5e-3)


def test_arms_rise_and_knees_are_drawn_up_in_flight():
    log = play(walker(), (60, (0.0,) * 4), (4, (0.0, 0.0, 1.0, 0.0)), (480, (0.0,) * 4))
    position, at = log.state.position, bodies(log)
    top = int(position[:, 1, 2].argmax())
    reach = position[:, at["pelvis"], 2] - position[:, at["foot_right"], 2]
    assert reach[top] < reach[0] - 0.1
    hand = position[:, at["hand_left"], 2] - position[:, at["chest"], 2]
    assert hand[top] > hand[0] + 0.2


def test_it_leans_into_a_start_and_against_a_stop():
    log = play(walker(), (60, SPRINT), (240, SPRINT), (60, (0.0,) * 4))
    lean = log.state.modal["gait"][:, gait.LEAN_Y]
    assert lean[40] > 0.05
    assert abs(lean[290]) < 0.01
    assert lean[340] < -0.03


def test_a_standing_figure_breathes_and_stays():
    log = play(walker(), (960, (0.0,) * 4))
    position = log.state.position[:, list(bodies(log).values())]
    assert 0.0005 < np.ptp(position, axis=0).max() < 0.03
    feet = [bodies(log)[n] for n in ("foot_left", "foot_right", "toes_left", "toes_right")]
    assert np.ptp(log.state.position[:, feet], axis=0).max() < 2e-5  # as it settles


def test_quaternions_are_the_frames():
    rng = np.random.default_rng(1)
    q = rng.normal(size=(500, 4))
    q /= np.linalg.norm(q, axis=1, keepdims=True)
    # Half turns about each axis, too, and next to them.
    q = np.concatenate([q, np.eye(4), np.eye(4) + 1e-9])
    frames = np.swapaxes(quaternion_to_matrix(q), 1, 2)
    ours = gait.quaternions(frames)
    np.testing.assert_allclose(np.abs(np.einsum("ij,ij->i", ours, q)), 1, atol=1e-8)


# --- any root -----------------------------------------------------------------------------------


class Round(Driver):
    """Leads a data body along a circle at an even pace."""

    def __init__(self, radius, speed):
        self.radius, self.speed = radius, speed

    def _put(self, view):
        a = self.speed / self.radius * view.substep * view.dt
        r, half = self.radius, a / 2
        view.set_state(
            0, (r * math.cos(a) - r, r * math.sin(a), 0.0),
            (math.cos(half), 0.0, 0.0, math.sin(half)),
            (-self.speed * math.sin(a), self.speed * math.cos(a), 0.0),
            (0.0, 0.0, self.speed / r),
        )  # fmt: skip

    def reset(self, scene, view):
        self._put(view)

    def after(self, view):
        self._put(view)


@pytest.mark.parametrize("stature", [1.2, 1.6])
def test_a_root_without_physics_leads_as_well(stature):
    spec = world_spec(body("root", (), motion="kinematic"), *limbs("npc_"))
    scene = spec.scene.model_copy(update={"modal": (gait.gait_modal("npc"),)})
    params = gait.Gait.Params(root="root", prefix="npc_", modal="npc", ground=0.0, stature=stature)
    engine = make_engine("bullet")
    engine.build(scene, {}, EngineConfig(), spec.clock.dt, [Round(40.0, 1.1), gait.Gait(params)])
    log = WorldLog(*engine.advance((), 720, EVERY))
    engine.close()
    for side in ("right", "left"):
        for ahead in (-man.HEEL_BACK, man.BALL_AHEAD):
            path = on_sole(log, side, ahead * stature, "npc_", stature)[360:]
            down = path[:, 2] < 1e-3
            edges = np.flatnonzero(np.diff(np.concatenate([[0], down.astype(int), [0]])))
            runs = [path[a:b, :2] for a, b in edges.reshape(-1, 2) if b - a > 6]
            assert runs
            # On a wide circle, at its even pace, feet stay as well.
            assert max(np.ptp(run, axis=0).max() for run in runs) < 0.02
            assert path[:, 2].min() > -0.01
    head = log.state.position[:, bodies(log, "npc_")["head"], 2]
    assert head.max() < stature
    assert head.min() > 0.85 * stature


def test_what_is_shown_does_not_depend_on_who_looks():
    acts = [(100, WALK), (50, SPRINT), (4, (0.0, 1.0, 1.0, 1.0)), (60, WALK)]
    every = play(walker(), *acts)
    made, at = walker(), 0
    made.reset()
    for count, action in acts:
        at += count
        last = made.advance(action, at, Probe())
    made.close()
    assert last.state.sha256() == every.state.rows(slice(-1, None)).sha256()


def test_missing_limbs_are_named():
    made = walker()
    scene = made.spec.scene
    fewer = scene.model_copy(update={"bodies": scene.bodies[:-1]})
    with pytest.raises(UserError, match="no body 'figure_toes_left'"):
        LocalWorld(dataclasses.replace(made.spec, scene=fewer)).reset()
