"""Layouts of the five tasks: intervals, gaps and contacts as Table 4 says; the ring; the fit."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wmeval.assets.cards import Builtin, library
from wmeval.conventions import quaternion_to_matrix
from wmeval.envs.rigidbench.framing import (
    MARGIN,
    PADDING_ABOVE_M,
    PADDING_M,
    azimuths,
    choose_view,
    field_of_view_y,
    frame,
)
from wmeval.envs.rigidbench.layout import CLEARANCE_M, Layout, draw_layout, fits, ring_radius
from wmeval.errors import UserError

CARDS = library()
TRAIN = CARDS.splits.train.objects
SIZES = {
    i: card.asset.size_m
    for i, card in CARDS.objects.items()
    if isinstance(card.asset, Builtin) and card.asset.size_m is not None
}


def layouts(task: str, count: int = 40) -> list[Layout]:
    return [
        draw_layout(CARDS.tasks[task], CARDS, TRAIN, SIZES, np.random.default_rng(s))
        for s in range(count)
    ]


@pytest.mark.parametrize("task", ["free_fall", "bounce"])
def test_a_dropped_object_hangs_half_a_metre_and_more_above_the_support(task: str) -> None:
    heights = [x.actors[0].corners()[:, 2].mean() for x in layouts(task)]
    assert min(heights) >= 0.5
    assert max(heights) <= 0.7
    assert np.ptp(heights) > 0.1


def test_bounce_drops_only_what_bounces() -> None:
    names = {x.actors[0].object for x in layouts("bounce")}
    assert names == {"baseball", "bouncy_ball"}


def test_opposing_ramps_keep_their_gap_and_slopes_fall_towards_it() -> None:
    for layout in layouts("ramp_collision"):
        left, right, *balls = layout.actors
        assert left.wedge is not None
        assert right.wedge is not None
        low_left = left.position[0] + left.wedge.length / 2
        low_right = right.position[0] - right.wedge.length / 2
        assert 0.1 <= low_right - low_left <= 0.15
        assert left.wedge.material == right.wedge.material
        for ramp, ball in zip((left, right), balls, strict=True):
            assert ramp.wedge is not None
            # Distance of the object's middle from the slope's plane: half its height and a margin.
            turn = quaternion_to_matrix(np.array(ramp.quaternion_wxyz))
            normal = turn @ [math.sin(ramp.wedge.angle), 0, math.cos(ramp.wedge.angle)]
            high = turn @ [-ramp.wedge.length / 2, 0, ramp.wedge.height / 2]
            off = np.array(ball.position) - ramp.position - high
            assert off @ normal == pytest.approx(ball.size[2] / 2 + CLEARANCE_M, abs=1e-12)
            down = turn @ [math.cos(ramp.wedge.angle), 0, -math.sin(ramp.wedge.angle)]
            slope = math.hypot(ramp.wedge.length, ramp.wedge.height)
            assert off @ down == pytest.approx(0.25 * slope, abs=1e-12)
            # The long axis lies across the slope, level.
            long_axis = quaternion_to_matrix(np.array(ball.quaternion_wxyz))[:, 0]
            assert abs(long_axis[1]) == pytest.approx(1, abs=1e-12)


def test_a_chain_stands_in_front_of_its_ramp_with_its_gaps() -> None:
    for layout in layouts("ball_chain"):
        ramp, _, *chain = layout.actors
        assert ramp.wedge is not None
        edge = ramp.position[0] + ramp.wedge.length / 2
        gaps = []
        for actor in chain:
            box = actor.corners()
            gaps.append(box[:, 0].min() - edge)
            edge = box[:, 0].max()
            assert box[:, 2].min() == pytest.approx(CLEARANCE_M, abs=1e-12)
        assert 0.08 - 1e-9 <= gaps[0] <= 0.12 + 1e-9
        assert all(0.02 - 1e-9 <= g <= 0.04 + 1e-9 for g in gaps[1:])


def test_a_cluster_of_equal_balls_touches_at_its_gap() -> None:
    for layout in layouts("drop_into_cluster"):
        *ring, faller = layout.actors
        centres = np.array([a.position[:2] for a in ring])
        apart = [np.linalg.norm(centres[i] - centres[j]) for i, j in ((0, 1), (1, 2), (2, 0))]
        widest = max(max(a.size[:2]) for a in ring)
        assert max(apart) == pytest.approx(min(apart), abs=1e-12)
        assert widest + 0.003 - 1e-9 <= apart[0] <= widest + 0.008 + 1e-9
        assert np.allclose(faller.position[:2], centres.mean(axis=0), atol=1e-9)


@given(st.floats(0.01, 0.2), st.floats(0, 0.05), st.integers(2, 8))
def test_neighbours_in_a_ring_are_two_radii_and_a_gap_apart(r: float, g: float, n: int) -> None:
    big = ring_radius(r, g, n)
    assert 2 * big * math.sin(math.pi / n) == pytest.approx(2 * r + g)


def test_things_of_a_row_or_a_ring_are_drawn_each_for_itself() -> None:
    for task, others in (("ball_chain", 2), ("drop_into_cluster", 0)):
        kinds = [[a.object for a in x.actors][others:][:3] for x in layouts(task, 120)]
        allowed = len(CARDS.tagged("stackable", TRAIN))
        pairs = np.mean([[len({*k[i : i + 2]}) == 1 for i in (0, 1)] for k in kinds])
        assert pairs == pytest.approx(1 / allowed, abs=0.06)
        assert pairs > 0


@pytest.mark.parametrize("task", sorted(CARDS.tasks))
def test_layouts_are_centred_and_made_again_from_their_seed(task: str) -> None:
    for first, second in zip(layouts(task, 5), layouts(task, 5), strict=True):
        assert first == second
        low, high = first.box()
        assert np.allclose((low + high)[:2], 0, atol=1e-12)


def test_a_missing_tag_names_task_slot_and_tag() -> None:
    with pytest.raises(UserError, match=r"bounce.*bouncing.*bouncy"):
        draw_layout(CARDS.tasks["bounce"], CARDS, ("apple",), SIZES, np.random.default_rng(0))


@given(st.floats(0, 2 * math.pi), st.floats(0.1, 2), st.floats(0.1, 2))
def test_a_footprint_fits_exactly_when_its_turned_box_does(
    angle: float, length: float, width: float
) -> None:
    corners = np.array([[x * length / 2, y * width / 2] for x in (-1, 1) for y in (-1, 1)])
    c, s = math.cos(angle), math.sin(angle)
    extent = np.ptp(corners @ np.array([[c, s], [-s, c]]), axis=0)
    assert fits((length, width), (extent[0] + 1e-9, extent[1] + 1e-9), angle)
    assert not fits((length, width), (extent[0] - 1e-6, extent[1] + 1e-9), angle)


def test_azimuths_go_every_15_degrees_within_the_ranges() -> None:
    assert list(azimuths([(70, 110), (250, 290)], 0)) == [250, 265, 280, 70, 85, 100]
    assert len(list(azimuths([(0, 360)], 12.5))) == 24
    assert [*azimuths([(0, 30)], 350)] == [170, 185, 200]


def test_the_camera_looks_at_the_padded_box_from_ten_degrees_above() -> None:
    low, high = np.array([0.0, 0.0, 0.5]), np.array([1.2, 0.4, 1.0])
    camera = frame(low, high, 30.0, width=1280, height=704)
    away = np.array(camera.position) - np.array(camera.target)
    distance = np.linalg.norm(away)
    raised = [0, 0, (PADDING_ABOVE_M - PADDING_M) / 2]
    assert np.allclose(camera.target, (low + high) / 2 + raised)
    assert distance == pytest.approx(MARGIN * (1.2 + 2 * PADDING_M))
    tall = frame(low, high + np.array([0, 0, 1.0]), 30.0, width=1280, height=704)
    away_tall = np.array(tall.position) - np.array(tall.target)
    assert np.linalg.norm(away_tall) == pytest.approx(MARGIN * (1.5 + PADDING_M + PADDING_ABOVE_M))
    assert math.degrees(math.asin(away[2] / distance)) == pytest.approx(10)
    assert math.degrees(math.atan2(away[1], away[0])) == pytest.approx(30)
    near = frame(low, low + 0.1, 0.0, width=1280, height=704)
    assert np.linalg.norm(np.array(near.position) - near.target) == pytest.approx(1.4)


def test_the_lens_is_35_mm_on_a_36_mm_sensor() -> None:
    focal = 704 / 2 / math.tan(field_of_view_y(1280, 704) / 2)
    assert focal == pytest.approx(35 / 36 * 1280)


def test_the_first_rotation_with_enough_in_view_wins_else_the_best_pair() -> None:
    rng = np.random.default_rng(0)
    asked: list[float] = []

    def share(turn: float, azimuth: float) -> float:
        asked.append(turn)
        return 0.9 if turn == 20 and azimuth == 215 else 0.1

    view = choose_view([10, 20, 30], [(0, 30)], share, rng)
    assert (view.turn_deg, view.azimuth_deg) == (20, 215)
    assert 30 not in asked
    poor = choose_view([10, 20], [(0, 30)], lambda t, a: 0.4 if (t, a) == (10, 205) else 0.2, rng)
    assert (poor.turn_deg, poor.azimuth_deg, poor.share) == (10, 205, 0.4)
