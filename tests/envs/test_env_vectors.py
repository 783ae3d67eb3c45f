"""The flat vectors against a computation of their own, in Unity's frame."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from wmeval.envs import environment_class
from wmeval.envs.plans import load_plan
from wmeval.envs.record import record

SWAP = np.array([[1.0, 0, 0], [0, 0, 1], [0, 1, 0]])
"""World (x right, y forward, z up) to Unity (x right, y up, z forward)."""


def unity_euler(quaternion_wxyz):
    """Unity composes R = R_y R_x R_z; intrinsic YXZ."""
    w, x, y, z = quaternion_wxyz
    matrix = SWAP @ Rotation.from_quat([x, y, z, w]).as_matrix() @ SWAP
    y, x, z = Rotation.from_matrix(matrix).as_euler("YXZ", degrees=True)
    return np.array([x, y, z])


def vertical_angle(axis):
    return np.degrees(np.arctan2(np.hypot(axis[0], axis[1]), axis[2]))


def unity_axial(v):
    return -SWAP @ v


def same_turn(a, b, tolerance=1e-3):
    """Euler angles agree up to whole turns (and up to how the same attitude may be written)."""
    one = Rotation.from_euler("YXZ", np.array(a)[[1, 0, 2]], degrees=True)
    two = Rotation.from_euler("YXZ", np.array(b)[[1, 0, 2]], degrees=True)
    return np.degrees((one.inv() * two).magnitude()) < tolerance


def play(name, plan, **kwargs):
    env = environment_class(name)(**kwargs)
    rollout = record(env, plan=load_plan(name, plan), seed=3)
    env.close()
    return env, rollout


@pytest.fixture(scope="module")
def canonical():
    return play("BeamDomino", "canonical")


def test_every_vector_lies_within_the_stated_bounds(canonical):
    for env, rollout in (
        canonical,
        play("BallRoller", "collision"),
        play("MirrorRollingBall", "collision"),
    ):
        space = env.observation_space
        assert rollout.observations.dtype == np.float32
        assert (rollout.observations >= space.low).all()
        assert (rollout.observations <= space.high).all()


def test_beam_domino_vector(canonical):
    _, rollout = canonical
    scene, log = rollout.scene, rollout.log
    pieces = [scene.index(n) for n in ("pillar_0", "pillar_1", "pillar_2", "slab")]
    ball, roof = scene.index("floor_ball"), scene.index("roof_ball")
    fallen, first_fall = np.zeros(20, bool), None
    airborne = []
    for i in range(0, len(rollout) + 1):
        row = 4 * i
        position, quaternion = log.state.position[row], log.state.quaternion_wxyz[row]
        turns = [Rotation.from_quat(quaternion[b][[1, 2, 3, 0]]) for b in scene.indices("domino")]
        tilts = np.array([vertical_angle(turn.as_matrix()[:, 2]) for turn in turns])
        fallen |= tilts >= 30
        if fallen.any() and first_fall is None:
            first_fall = i / 60
        if i % 7 and i < len(rollout):
            continue
        out = rollout.observations[i]
        expected = np.concatenate(
            [
                SWAP @ position[ball],
                SWAP @ log.state.linear_velocity[row, ball],
                unity_axial(log.state.angular_velocity[row, ball]),
                SWAP @ position[roof],
                SWAP @ log.state.linear_velocity[row, roof],
            ]
        )
        np.testing.assert_allclose(out[:15], expected, atol=1e-5, rtol=1e-5)
        airborne.append(out[15])
        np.testing.assert_allclose(out[16:56:2], tilts, atol=2e-3)
        np.testing.assert_array_equal(out[17:57:2], fallen)
        assert out[56] == pytest.approx(fallen.mean())
        assert out[57] == pytest.approx(0 if first_fall is None else i / 60 - first_fall, abs=1e-5)
        pose = log.cameras.T_world_camera[row, 0]
        np.testing.assert_allclose(out[58:61], SWAP @ pose[:3, 3], atol=1e-5, rtol=1e-6)
        axes = np.stack([SWAP @ pose[:3, 0], SWAP @ -pose[:3, 1], SWAP @ pose[:3, 2]], axis=1)
        turn = Rotation.from_matrix(axes).as_euler("YXZ", degrees=True)
        assert same_turn(out[61:64], turn[[1, 0, 2]])
        for p, body in enumerate(pieces):
            piece = out[64 + 7 * p : 71 + 7 * p]
            np.testing.assert_allclose(piece[:3], SWAP @ position[body], atol=1e-5, rtol=1e-5)
            assert same_turn(piece[3:6], unity_euler(quaternion[body]), 0.02)
            assert piece[6] == (log.state.motion[row, body] == 1)
    assert out[56] == 1.0
    assert rollout.observations[0, 70::7].all()
    assert not rollout.observations[-1, 70::7].any()
    assert airborne[0] == 0.0
    assert max(airborne) == 1.0


def test_roof_ball_is_airborne_between_roof_and_floor(canonical):
    _, rollout = canonical
    flying = np.flatnonzero(rollout.observations[:, 15])
    assert (np.diff(flying) == 1).all()
    first = {e.kind: e.time for e in reversed(rollout.log.events)}
    landed = next(
        e.time
        for e in rollout.log.events
        if e.kind == "contact" and (e.body_a, e.body_b) == ("roof_ball", "floor")
    )
    assert first["impact"] < flying[0] / 60 < first["collapse"]
    assert flying[-1] / 60 == pytest.approx(landed, abs=1 / 60)


def test_unity_signs_of_a_rolling_ball():
    """Left-handed: rolling forward turns about +x, rolling right about -z; the paper's camera."""
    env = environment_class("BeamDomino")()
    for action, moved, axis, sign in (([1, 0], 2, 6, 1), ([0, 1], 0, 8, -1)):
        start = env.reset(seed=0)[0]
        for _ in range(30):
            out = env.step(np.array(action, np.float32))[0]
        assert out[moved] > start[moved] + 0.3
        speed = out[3 + moved]
        assert out[axis] == pytest.approx(sign * speed / 0.5, rel=0.02)
    start = env.reset(seed=0)[0]
    np.testing.assert_allclose(start[58:61] - start[0:3], [0, 6, -12], atol=1e-5)
    # It looks at the ball: down by atan(6 / 12), straight ahead, upright.
    np.testing.assert_allclose(start[61:64], [np.degrees(np.arctan2(6, 12)), 0, 0], atol=1e-4)
    env.close()


def test_ball_roller_vector():
    _, rollout = play("BallRoller", "collision")
    scene = rollout.scene
    bodies = [scene.index("player"), *(scene.index(f"ball_{i:02d}") for i in range(15))]
    position = rollout.states_at_control().position[:, bodies]
    expected = (position @ SWAP.T).reshape(len(rollout) + 1, 48)
    np.testing.assert_allclose(rollout.observations, expected, atol=1e-5)


@pytest.mark.parametrize("count", [10, 48])
def test_mirror_rolling_ball_vector(count):
    _, rollout = play("MirrorRollingBall", "collision", ball_count=count)
    scene, state = rollout.scene, rollout.states_at_control()
    player = scene.index("player")
    assert len(scene.indices("ball")) == count
    np.testing.assert_allclose(
        rollout.observations[:, :9],
        np.concatenate(
            [
                state.position[:, player] @ SWAP,
                state.linear_velocity[:, player] @ SWAP,
                -state.angular_velocity[:, player] @ SWAP,
            ],
            axis=1,
        ),
        atol=1e-5,
    )
    for i in range(count):
        body = scene.index(f"ball_{i:02d}")
        slot = rollout.observations[:, 9 + 6 * i : 15 + 6 * i]
        np.testing.assert_allclose(slot[:, :3], state.position[:, body] @ SWAP, atol=1e-5)
        np.testing.assert_allclose(slot[:, 3:], state.linear_velocity[:, body] @ SWAP, atol=1e-5)
    assert not rollout.observations[:, 9 + 6 * count :].any()


def test_fewer_balls_are_the_beginning_of_more():
    few, many = (environment_class("MirrorRollingBall")(ball_count=n) for n in (10, 48))
    a, b = few.reset(seed=4)[0], many.reset(seed=4)[0]
    np.testing.assert_array_equal(a[: 9 + 60], b[: 9 + 60])
    places = b[9:].reshape(48, 6)[:, [0, 2]]
    assert np.linalg.norm(places[0] - places[1]) == pytest.approx(4.0)


@pytest.mark.parametrize(("name", "radius"), [("BallRoller", 0.3), ("MirrorRollingBall", 0.7)])
def test_balls_never_overlap_at_the_start(name, radius):
    env = environment_class(name)()
    starts = []
    for seed in range(20):
        env.reset(seed=seed)
        scene = env.scene
        places = np.array([scene.bodies[i].position for i in scene.indices("ball")])
        gaps = np.linalg.norm(places[:, None] - places[None], axis=-1)
        gaps[np.diag_indices(len(gaps))] = np.inf
        assert gaps.min() > 2 * radius
        player = np.array(scene.bodies[scene.index("player")].position)
        assert np.linalg.norm(places - player, axis=1).min() > radius + 0.5
        starts.append(places)
    assert not np.array_equal(starts[0], starts[1])
    env.close()
