"""Perception from pixels against pictures whose truth is known in closed form."""

import math
from fractions import Fraction

import numpy as np
import pytest
from rolling_ball import clip, floor_colour

from wmeval.conventions import intrinsics, look_at, project
from wmeval.eval.metrics.flow import relative_epe
from wmeval.eval.perception import (
    ClassicalFlow,
    Estimate,
    Still,
    ball_radius,
    camera_moved,
    classical,
    classical_flows,
    floor_balls,
    flow_step,
    nothing_moves,
    oracle,
    resample,
    sphere_on_plane,
    track_balls,
)
from wmeval.records import CameraLog, Event, LightLog, StateLog, WorldLog
from wmeval.scene import Body, Box, Camera, Collision, Scene, Sphere, Sun


@pytest.fixture(scope="module")
def rolling():
    return clip(width=208, height=120, seconds=2.5)


def centroids(masks):
    return np.array([[np.nonzero(m)[1].mean() + 0.5, np.nonzero(m)[0].mean() + 0.5] for m in masks])


def texture(width=200, height=120):
    x, y = np.meshgrid(np.linspace(0, 8, width), np.linspace(0, 5, height))
    return (floor_colour(x, y) * 255).astype(np.uint8)


def scene(radius=0.5, height=0.5):
    ball = Body(
        name="b", role="player", motion="dynamic", instance=1, mass=1.0, position=(0, 0, height),
        collision=(Collision(shape=Sphere(radius=radius)),),
    )  # fmt: skip
    block = Body(
        name="block", role="player", motion="dynamic", instance=2, mass=1.0,
        collision=(Collision(shape=Box(half_extents=(1, 1, 1))),),
    )  # fmt: skip
    camera = Camera(name="static", position=(0, -5, 5), target=(0, 0, 0))
    return Scene(
        name="s",
        bodies=(ball, block),
        materials=(),
        cameras=(camera,),
        sun=Sun(direction=(0, 0, -1)),
    )


# --- balls --------------------------------------------------------------------------------------


def test_a_rolling_ball_is_followed_to_a_fraction_of_a_pixel(rolling):
    frames, masks, position, _, camera = rolling
    colours, sure = track_balls(frames, {"b": masks[0]})
    both, _ = track_balls(frames, {"b": masks[0]}, camera=camera, radii={"b": 0.5})
    for pixels in (colours["b"], both["b"]):
        error = np.linalg.norm(pixels - centroids(masks), axis=1)
        assert np.isfinite(error).all()
        assert np.median(error) < 0.2
        assert error.max() < 0.5
        metres = np.linalg.norm(sphere_on_plane(pixels, 0.5, 0.5, camera) - position, axis=1)
        assert np.median(metres) < 0.02
        assert metres.max() < 0.06
    assert sure["b"].min() > 0.5


def test_a_ball_that_vanishes_is_lost_not_guessed(rolling):
    frames, masks, *_ = rolling
    gone = frames.copy()
    gone[30:] = np.where(masks[0][..., None], frames[-1], frames[0])  # the floor without the ball
    pixels, sure = track_balls(gone, {"b": masks[0]})
    assert np.isfinite(pixels["b"][:30]).all()
    assert np.isnan(pixels["b"][32:]).all()
    assert (sure["b"][32:] == 0).all()


def test_a_seed_too_small_to_be_told_is_not_tracked(rolling):
    frames, masks, *_ = rolling
    tiny = np.zeros_like(masks[0])
    tiny[60, 60:70] = True
    assert np.isnan(track_balls(frames, {"b": tiny})[0]["b"]).all()


def test_the_silhouette_of_a_sphere_gives_back_its_centre():
    K = intrinsics(math.radians(60), 640, 352)
    camera = Still(K, look_at(np.array([3.0, -4.0, 3.0]), np.array([0.0, 1.0, 0.0])))
    for center in ([0.0, 0.0, 0.6], [1.5, -1.0, 0.6], [-3.0, 4.0, 0.6]):
        # The outline is where rays touch the sphere: sample it, fit the ellipse's centre.
        c, eye = np.array(center), camera.T_world_camera[:3, 3]
        axis = c - eye
        d = np.linalg.norm(axis)
        u = np.cross(axis / d, [0, 0, 1.0])
        u /= np.linalg.norm(u)
        v = np.cross(u, axis / d)
        angle = np.linspace(0, 2 * np.pi, 720, endpoint=False)[:, None]
        at, rim = c - axis * (0.6 / d) ** 2, 0.6 * math.sqrt(1 - (0.6 / d) ** 2)
        pixels, _ = project(at + rim * (np.cos(angle) * u + np.sin(angle) * v), K,
                            camera.T_world_camera)  # fmt: skip
        x, y = pixels.T
        conic = np.linalg.svd(np.stack([x * x, x * y, y * y, x, y, np.ones_like(x)], 1))[2][-1]
        a, b, cc, dd, e, _ = conic
        centre = np.linalg.solve([[2 * a, b], [b, 2 * cc]], [-dd, -e])
        found = sphere_on_plane(centre[None], 0.6, 0.6, camera)[0]
        assert np.linalg.norm(found - c) < 1e-3


def test_rays_above_the_horizon_meet_no_floor():
    K = intrinsics(math.radians(60), 64, 64)
    camera = Still(K, look_at(np.array([0.0, -4.0, 1.0]), np.array([0.0, 4.0, 1.0])))
    out = sphere_on_plane(np.array([[32.0, 10.0], [np.nan, 3.0], [32.0, 60.0]]), 0.3, 0.3, camera)
    assert np.isnan(out[:2]).all()
    assert np.isfinite(out[2]).all()


def test_only_balls_on_the_floor_have_a_known_height():
    assert floor_balls(scene()) == ("b",)
    assert floor_balls(scene(height=2.0)) == ()
    assert ball_radius(scene(), "b") == 0.5
    with pytest.raises(ValueError, match="not a ball"):
        ball_radius(scene(), "block")


@pytest.mark.gl
@pytest.mark.parametrize(
    ("env_id", "plan"),
    [("BeamDomino", "canonical"), ("BallRoller", "forward"), ("MirrorRollingBall", "forward")],
)
def test_the_driven_ball_of_every_scene_is_found_in_its_video(env_id, plan):
    from wmeval.envs.record import record
    from wmeval.eval.pair import PairConfig, case_of
    from wmeval.eval.reference import first_masks, still_camera

    size = (320, 176)
    case = case_of(PairConfig(env_id=env_id, candidate="frozen", plan=plan), 0)
    with case.open() as env:
        rollout = record(
            env, plan=case.plan, seed=0, options=case.options, layers=("rgb",), view="static",
            width=size[0], height=size[1], fps=12, max_steps=100,
        )  # fmt: skip
        log, player = rollout.state_of_frames(), env.PLAYER
        masks = first_masks(env, log, "static", size)
        camera = still_camera(env, log, "static", size)
    frames = np.asarray(rollout.frames.layers["rgb"])
    estimate = classical(
        frames, rollout.frames.times, scene=rollout.scene, balls=floor_balls(rollout.scene),
        masks=masks, camera=camera,
    )  # fmt: skip
    true = log.state.position[:, log.state.body(player)]
    pixels, depth = project(true, camera.K, camera.T_world_camera)
    middle = camera.K[:2, 2]  # the silhouette's centre lies further out than the projected centre
    r = ball_radius(rollout.scene, player)
    pixels = middle + (pixels - middle) * (depth**2 / (depth**2 - r**2))[:, None]
    error = np.linalg.norm(estimate.pixels[player] - pixels, axis=1)
    assert estimate.coverage(player) == 1.0
    assert np.median(error) < 0.8
    assert error.max() < 2.5
    assert np.linalg.norm(true[-1] - true[0]) > 1
    assert np.median(np.linalg.norm(estimate.positions[player] - true, axis=1)) < 0.15


# --- camera, stillness --------------------------------------------------------------------------


def test_a_still_camera_is_told_from_a_moving_one(rolling):
    frames, masks, *_ = rolling
    assert camera_moved(frames, masks[0]) == ""
    panned = np.stack([np.roll(f, k // 6, axis=1) for k, f in enumerate(frames)])
    assert "moved" in camera_moved(panned, masks[0])
    noise = np.random.default_rng(0).integers(0, 255, frames.shape, np.uint8)
    assert "found again" in camera_moved(np.concatenate([frames[:1], noise]), masks[0])
    flat = np.full_like(frames, 90)
    assert "no texture" in camera_moved(flat, masks[0])


def test_events_are_only_known_of_a_clip_in_which_nothing_moves(rolling):
    frames, masks, _, _, camera = rolling
    rng = np.random.default_rng(1)
    still = np.repeat(frames[:1], 8, axis=0).astype(int) + rng.integers(
        -6, 7, (8, *frames.shape[1:])
    )
    still = np.clip(still, 0, 255).astype(np.uint8)
    assert nothing_moves(still, {"b": masks[0]})
    assert not nothing_moves(frames, {"b": masks[0]})
    times = tuple(Fraction(k, 24) for k in range(8))
    given = {"scene": scene(), "balls": ("b",), "masks": {"b": masks[0]}, "camera": camera}
    assert classical(still, times, **given).events == ()
    moving = classical(frames[::9][:8], times, **given)
    assert moving.events is None
    assert "events" in moving.missing


def test_metres_need_a_known_camera(rolling):
    frames, masks, _, _, camera = rolling
    times = tuple(Fraction(k, 24) for k in range(len(frames)))
    given = {"scene": scene(), "balls": ("b",), "masks": {"b": masks[0]}}
    unknown = classical(frames, times, camera=None, **given)
    assert unknown.missing["positions"] == "camera unknown"
    assert not unknown.positions
    panned = np.stack([np.roll(f, k // 6, axis=1) for k, f in enumerate(frames)])
    assert "camera unknown" in classical(panned, times, camera=camera, **given).missing["positions"]
    known = classical(frames, times, camera=camera, **given)
    assert known.coverage("b") == 1.0
    assert known.coverage("nobody") == 0.0


# --- flow ---------------------------------------------------------------------------------------


def test_classical_flow_of_a_known_shift_is_right_where_it_is_given():
    import cv2

    big = cv2.resize(texture(420, 260), None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
    grey = np.asarray(cv2.cvtColor(big, cv2.COLOR_RGB2GRAY))
    first, second = grey[100:300, 100:400], grey[97:297, 95:395]
    flow = ClassicalFlow().between(first, second)
    known = np.isfinite(flow).all(axis=-1)
    assert known.mean() > 0.85
    error = np.linalg.norm(flow[known] - np.array([5.0, 3.0]), axis=-1)
    assert np.median(error) < 0.15
    assert np.quantile(error, 0.95) < 0.6


def test_flow_that_cannot_be_followed_back_is_left_out():
    first = np.asarray(texture()[..., 0])
    second = np.random.default_rng(0).integers(0, 255, first.shape).astype(np.uint8)
    assert np.isfinite(ClassicalFlow().between(first, second)).all(axis=-1).mean() < 0.3


def test_far_displacements_are_composed_from_near_frames():
    strip = texture(600, 120)
    frames = np.stack([strip[:, 8 * k : 8 * k + 200] for k in range(13)])
    truth = np.zeros((120, 200, 2), np.float32)
    truth[..., 0] = -96
    for step in (1, 2):
        (flow,) = classical_flows(frames, [(0, 12)], step=step)
        score = relative_epe([flow], [truth])
        assert score.value < 0.02
        assert 0.3 < score.coverage <= 0.53  # the rest has left the picture


def test_flow_steps_follow_the_frame_rate():
    assert flow_step([Fraction(k, 60) for k in range(3)]) == 5
    assert flow_step([Fraction(k, 24) for k in range(3)]) == 2
    assert flow_step([Fraction(k, 10) for k in range(3)]) == 1
    assert flow_step([Fraction(0)]) == 1


# --- records ------------------------------------------------------------------------------------


def log_of(positions, events=()):
    n = len(positions)
    shape = (n, 2, 3)
    position = np.zeros(shape)
    position[:, 0] = positions
    state = StateLog(
        ("b", "other"), Fraction(1, 240), np.arange(n, dtype=np.int64), position,
        np.tile([1.0, 0, 0, 0], (n, 2, 1)), np.ones(shape), np.zeros(shape),
        np.array([[True, k < 2] for k in range(n)]), np.full((n, 2), 2, np.uint8),
    )  # fmt: skip
    cameras = CameraLog(("static",), np.ones((n, 1)), np.tile(np.eye(4), (n, 1, 1, 1)))
    lights = LightLog(np.zeros((n, 3)), np.zeros((n, 3)), np.zeros((n, 3, 3)))
    return WorldLog(state, cameras, lights, events=events)


def test_the_oracle_reads_records_and_nothing_of_absent_bodies():
    times = tuple(Fraction(k, 10) for k in range(4))
    event = Event("contact", 0.1, 0.1, "b", "other")
    estimate = oracle(log_of(np.arange(12.0).reshape(4, 3), (event,)), times, bodies=["b", "other"])
    assert np.array_equal(estimate.positions["b"], np.arange(12.0).reshape(4, 3))
    assert np.isfinite(estimate.velocities["other"][:2]).all()
    assert np.isnan(estimate.positions["other"][2:]).all()
    assert estimate.events == (event,)
    assert "flows" in estimate.missing
    with pytest.raises(ValueError, match="4 recorded"):
        oracle(log_of(np.zeros((4, 3))), times[:3], bodies=["b"])


def test_resampling_is_linear_and_passes_over_no_gap():
    track = np.array([[0.0, 0, 0], [1, 2, 0], [np.nan] * 3, [3, 6, 0]])
    estimate = Estimate("classical", tuple(Fraction(k, 10) for k in range(4)), {"b": track})
    times = [Fraction(n, 20) for n in range(8)]
    out = resample(estimate, times).positions["b"]
    assert out[1] == pytest.approx([0.5, 1, 0])
    assert out[2] == pytest.approx([1, 2, 0])
    assert np.isnan(out[3:6]).all()
    assert out[6] == pytest.approx([3, 6, 0])
    assert np.isnan(out[7]).all()  # beyond the last frame: stop at the shorter
    assert np.array_equal(resample(estimate, estimate.times).positions["b"], track, equal_nan=True)
