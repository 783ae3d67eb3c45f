"""What a ball does to its sheet, on sheets that are where we put them."""

import math
from fractions import Fraction

import numpy as np
import pytest

from wmeval.assets.gauge_cards import family
from wmeval.assets.gauge_profiles import motion
from wmeval.deformables import rest_shape
from wmeval.envs.gauge.build import build
from wmeval.eval.sweep.measure import measure
from wmeval.eval.sweep.prepared import resolved
from wmeval.records import StateLog

AXIS = np.array([0.4785, 0.4285])
RIM, TOP, UNDER = 0.1, 0.186, 0.174
DEEP = 0.073 - 0.07  # of the ball's lowest point, at the end


def record(name, put, frames=None):
    """A record whose ball is led by its card, and whose sheet is where a function puts it.

    ``put`` is given places about the axis at rest (V, 3), the ball's centre and its angle.
    """
    card = resolved(family(name), 0.02)
    built = build(card, "1", "rayon")
    n = frames or card.frames("1", "rayon")
    times = np.arange(n) / 30
    (drive,) = card.drives("1", "rayon")
    made = motion(drive, times)
    bodies = built.scene.bodies
    position = np.tile([x.position for x in bodies], (n, 1, 1)).astype(float)
    position[:, [b.name for b in bodies].index("ball")] += made.offset
    (sheet,) = built.scene.deformables
    rest = rest_shape(sheet, built.meshes).vertices - [*AXIS, 0]
    ball = position[:, [b.name for b in bodies].index("ball")]
    vertices = np.array([put(rest, c, a) for c, a in zip(ball, made.angle, strict=True)])
    b = len(bodies)
    state = StateLog(
        tuple(x.name for x in bodies), Fraction(1, 30), np.arange(n), position,
        np.tile([x.quaternion_wxyz for x in bodies], (n, 1, 1)).astype(float),
        np.zeros((n, b, 3)), np.zeros((n, b, 3)), np.ones((n, b), bool),
        np.full((n, b), 2, np.uint8), vertices={sheet.name: vertices + np.array([*AXIS, 0])},
    )  # fmt: skip
    found = measure(card, "1", "rayon", built, state)
    return {m.metric: m for m in found if m.truth == "ball_leads_sheet"}


def drawn_in(rest, ball, angle):
    """From the ball's lowest point straight to the hole's rim, then level: no longer than it was.

    Around the axis it is squeezed, as folds let it be.
    """
    pole = min(TOP, ball[2] - 0.07)
    slant = math.hypot(RIM, TOP - pole)
    far = np.linalg.norm(rest[:, :2], axis=1)
    inside = far < slant
    out = np.where(inside, RIM * far / slant, RIM + far - slant)
    up = np.where(inside, pole + (TOP - pole) * far / slant, TOP)
    along = rest[:, :2] / np.maximum(far, 1e-12)[:, None]
    return np.column_stack([along * out[:, None], up])


def test_a_sheet_drawn_through_the_hole_goes_with_the_ball():
    found = record("funnel", drawn_in)
    assert found["middle_gap"].value == pytest.approx(0, abs=1e-9)
    assert found["middle_gap"].expected == 0
    assert found["uneven"].value == pytest.approx(0, abs=1e-9)
    # Of this cone, what is under the board; the bound is a disc as wide as the middle is deep.
    slant = math.hypot(RIM, TOP - DEEP)
    part = math.pi * (slant * (UNDER - DEEP) / (TOP - DEEP)) ** 2 / 0.64
    assert found["through"].value == pytest.approx(part, rel=0.02)
    assert found["through"].expected == pytest.approx(math.pi * (UNDER - DEEP) ** 2 / 0.64)
    assert found["through"].value > found["through"].expected
    assert found["through"].ideal
    assert found["uneven"].ideal
    assert not found["middle_gap"].ideal


def test_a_sheet_that_stays_or_falls_ahead_is_told():
    lying = record("funnel", lambda rest, ball, angle: rest)
    assert lying["middle_gap"].value == pytest.approx(TOP - DEEP, abs=3e-4)
    assert lying["through"].value == 0
    fallen = record("funnel", lambda rest, ball, angle: rest * [0.2, 0.2, 0])
    # Farthest off when the ball is half a radius in.
    assert TOP - 0.035 - 0.015 < fallen["middle_gap"].value < TOP - 0.035
    assert fallen["through"].value == 1
    # Flaps beyond the board's edges hang as low and are not through.
    flaps = record("funnel", lambda rest, ball, angle: rest - [0, 0, 0.05]
                   * (np.abs(rest[:, :2]).max(axis=1) > 0.27)[:, None])  # fmt: skip
    assert flaps["through"].value == 0


def test_a_sheet_that_slips_aside_is_uneven():
    way = np.array([0.004, 0, 0])
    aside = record("funnel", lambda rest, ball, angle: drawn_in(rest, ball, angle) + way)
    assert aside["middle_gap"].value == pytest.approx(0.004, abs=1e-9)
    assert aside["uneven"].value == pytest.approx(0.008, abs=1e-9)
    bent = record(
        "rotating_ball", lambda rest, ball, angle: rest + (rest[:, :1] > 0) * [0, 0, 0.01]
    )
    # One side of four corners is 10 mm up: each is 10 mm off its opposite.
    assert bent["uneven"].value == pytest.approx(0.01)


def test_before_the_ball_is_in_nothing_is_told():
    assert record("funnel", drawn_in, frames=20) == {}
    part = record("funnel", drawn_in, frames=60)
    assert set(part) == {"middle_gap", "uneven"}


@pytest.mark.parametrize("share", [0.0, 0.4, 1.0])
def test_corners_turn_by_a_share_of_the_ball_s_turn(share):
    def turned(rest, ball, angle):
        c, s = math.cos(share * angle), math.sin(share * angle)
        return rest @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]])

    found = record("rotating_ball", turned)
    assert found["corner_turn"].value == pytest.approx(share, abs=1e-9)
    assert (found["corner_turn"].expected, found["corner_turn"].ideal) == (1.0, "nothing slips")
    assert found["middle_gap"].value == pytest.approx(0, abs=3e-4)  # half its thickness
    assert found["uneven"].value == pytest.approx(0, abs=1e-9)
    assert "through" not in found
