"""Closed forms of the rigid families, from their cards."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wmeval.assets.gauge_cards import GRAVITY, Box, Bricks, Convex, Cylinder, Prism, Sphere
from wmeval.eval.truths import rigid
from wmeval.eval.truths.chain import chain_transfer
from wmeval.eval.truths.prediction import Number, Prediction, SetUp

F8 = NDArray[np.float64]

_DOWN = np.array([0.0, 0.0, -1.0])


def _made(
    truth: str, s: SetUp, numbers: dict[str, Number], body: str,
    trajectory: Callable[[F8], F8], until: float,
) -> Prediction:  # fmt: skip
    return Prediction(
        truth, s.card.id, s.subtask, s.material, numbers, body, trajectory,
        (0.0, min(until, s.duration)),
    )  # fmt: skip


def _falling(start: F8, acceleration: F8) -> Callable[[F8], F8]:
    def at(times: F8) -> F8:
        t = np.asarray(times, np.float64)
        out: F8 = start + t[:, None] ** 2 / 2 * acceleration
        return out

    return at


def tetrahedron_slides(s: SetUp) -> Prediction:
    """`rigid.tetrahedron_slide`, frame by frame until it tips."""
    shape = s.shape("tetrahedron", Convex)
    points = np.array(shape.points)
    leg = float(np.linalg.norm(points[1] - points[0]))
    made = rigid.tetrahedron_slide(leg, s.number("tetrahedron", "friction"))
    return _made(
        "tetrahedron_slides", s,
        {
            "acceleration": Number(made.acceleration, "m/s^2", "down the slope"),
            "tip_distance": Number(made.tip_distance, "m", "way to where it tips"),
            "tip_time": Number(made.tip_time, "s", "when it tips"),
        },
        "tetrahedron",
        _falling(s.position("tetrahedron"), made.acceleration * np.array(made.direction)),
        made.tip_time,
    )  # fmt: skip


def falls_until_contact(s: SetUp) -> Prediction:
    """Free fall of the pyramid or wedge until it first touches base or ground."""
    there = s.card.bodies_of(s.subtask, s.material)
    body = next(n for n, b in there.items() if b.motion == "dynamic")
    base = next(n for n, b in there.items() if b.motion == "fixed")
    shape, plate = s.shape(body, Convex), s.shape(base, Prism)
    points = np.array(shape.points) @ s.rotation(body).T + s.position(body)
    pieces = [
        np.array([(x, y, z) for x, y in piece for z in (plate.bottom, plate.top)])
        + s.position(base)
        for piece in plate.pieces
    ]
    contact = rigid.first_contact(points, pieces, s.ground)
    return _made(
        "falls_until_contact", s,
        {"contact": Number(contact, "s", "first contact")},
        body, _falling(s.position(body), GRAVITY * _DOWN), contact,
    )  # fmt: skip


def _board(s: SetUp) -> tuple[float, float, float, F8]:
    """The s of the cube's start, its height above the axis, half length, and board's rotation."""
    board, cube = s.shape("board", Box), s.shape("cube", Box)
    turn = s.rotation("board")
    own = turn.T @ (s.position("cube") - s.position("board"))
    return float(own[0]), (board.size[2] + cube.size[2]) / 2, board.size[0] / 2, turn


def cube_sticks(s: SetUp) -> Prediction:
    """No displacement where tan th < mu."""
    angle = math.radians(s.pose("board").euler_deg[1])
    friction = s.number("cube", "friction")
    start = s.position("cube")
    stays = math.tan(angle) < friction
    return _made(
        "cube_sticks", s,
        {
            "displacement": Number(0.0 if stays else math.inf, "m", "in the whole record"),
            "demand": Number(math.tan(angle) / friction, "1", "friction it needs over friction"),
        },
        "cube", lambda times: np.tile(start, (len(times), 1)), s.duration if stays else 0.0,
    )  # fmt: skip


def cube_slides(s: SetUp) -> Prediction:
    """Way a t^2 / 2, a = g (sin th - mu cos th), until the centre is over the board's end."""
    angle = math.radians(s.pose("board").euler_deg[1])
    a = rigid.slope_acceleration(angle, s.number("cube", "friction"))
    start, _, half, turn = _board(s)
    off = math.sqrt(2 * (half - start) / a)
    return _made(
        "cube_slides", s,
        {
            "acceleration": Number(a, "m/s^2", "down the board"),
            "off_time": Number(off, "s", "when its centre is over the board's end"),
        },
        "cube", _falling(s.position("cube"), a * turn[:, 0]), off,
    )  # fmt: skip


def cube_slides_as_board_tilts(s: SetUp) -> Prediction:
    """`rigid.tilting_board` with the card's or a measured tilt."""
    start, height, half, _ = _board(s)
    duration = max(s.duration, 3.0)
    friction = s.number("cube", "friction")
    made = rigid.tilting_board(
        s.turning("board", duration), friction,
        start=start, height=height, end=half, duration=duration,
    )  # fmt: skip
    centre = s.position("board")

    def at(times: F8) -> F8:
        t = np.asarray(times, np.float64)
        along = made.at(t)
        angle = s.motion("board", t).angle
        c, d = np.cos(angle), np.sin(angle)
        offset = np.stack(
            [along * c + height * d, np.zeros(len(t)), -along * d + height * c], axis=1
        )
        out: F8 = centre + offset
        return out

    return _made(
        "cube_slides_as_board_tilts", s,
        {
            "slip_time": Number(made.slip_time, "s", "when it begins to slide"),
            "slip_angle": Number(math.degrees(made.slip_angle), "deg", "the board's angle then"),
            "friction_angle": Number(math.degrees(math.atan(friction)), "deg", "atan mu"),
            "off_time": Number(made.off_time, "s", "when its centre is over the board's end"),
            "off_speed": Number(made.off_speed, "m/s", "its speed along the board then"),
        },
        "cube", at, made.off_time,
    )  # fmt: skip


def cube_on_turntable(s: SetUp) -> Prediction:
    """`rigid.turntable` with the card's or a measured spin, until the rim."""
    plate = s.shape("plate", Cylinder)
    axis = s.position("plate")
    start = s.position("cube")
    place = (float(start[0] - axis[0]), float(start[1] - axis[1]))
    radius = math.hypot(*place)
    friction = s.number("cube", "friction")
    duration = s.duration + 0.2
    spin = s.turning("plate", duration)
    made = rigid.turntable(spin, friction, position=place, rim=plate.radius, duration=duration)

    def at(times: F8) -> F8:
        plane = made.at(np.asarray(times, np.float64))
        height = np.full((len(plane), 1), start[2])
        return np.hstack([plane + axis[:2], height])

    end = float(np.linalg.norm(made.at([s.duration])[0]))
    return _made(
        "cube_on_turntable", s,
        {
            "slip_rate": Number(rigid.slip_rate(radius, friction), "rad/s", "sqrt(mu g / r)"),
            "start_radius": Number(radius, "m", "at the start"),
            "end_radius": Number(end, "m", "at the last frame"),
            "slip_time": Number(
                rigid.slip_onset(spin, friction, radius, duration), "s", "begins to slide"
            ),
            "stick_time": Number(
                made.sticks[-1] if made.sticks else math.inf, "s", "turns with the plate again"
            ),
            "rim_time": Number(made.rim_time, "s", "leaves the plate"),
        },
        "cube", at, made.rim_time,
    )  # fmt: skip


def ball_bounces(s: SetUp) -> Prediction:
    """`rigid.bounce` from the ball's starting height."""
    ball = s.shape("ball", Sphere)
    start = s.position("ball")
    radius = ball.diameter / 2
    height = float(start[2]) - radius - s.ground
    e = s.number("ball", "restitution")
    made = rigid.bounce(height, e)

    def at(times: F8) -> F8:
        t = np.asarray(times, np.float64)
        out = np.tile(start, (len(t), 1))
        out[:, 2] = rigid.bounce_height(t, height, e) + s.ground + radius
        return out

    return _made(
        "ball_bounces", s,
        {
            "height": Number(height, "m", "of the fall"),
            "impact": Number(made.impact, "s", "first impact"),
            "speed": Number(made.speed, "m/s", "at it"),
            "apex": Number(made.apex, "s", "highest after it"),
            "apex_height": Number(made.apex_height, "m", "above the ground, of its lowest point"),
            "second": Number(made.second, "s", "second impact"),
            "rest": Number(made.rest, "s", "at rest"),
        },
        "ball", at, s.duration,
    )  # fmt: skip


def _swing(s: SetUp, body: str) -> tuple[float, float, float]:
    """Length [m], amplitude [rad] (signed about the hinge) and small period [s] of a hung ball.

    Ball and rod are one body, as engines have them: the ball is solid and turns with its rod, so
    that it swings as a point on a rod of L + 2 r^2 / (5 L).
    """
    hung, rod = s.body(body), s.rod(body)
    euler = s.pose(body).euler_deg
    amplitude = math.radians(euler[0] if hung.hinge == "x" else euler[1])
    ball = s.shape(body, Sphere)
    mass = s.number(body, "mass")
    inertia = 0.1 * mass * ball.diameter**2
    return rod, amplitude, rigid.small_period(rod, mass=mass, inertia=inertia)


def hung_position(s: SetUp, body: str, angles: F8) -> F8:
    """Centres (N, 3) [m] of a ball that hangs from its pivot at angles about its hinge [rad]."""
    hung, rod = s.body(body), s.rod(body)
    out = np.tile(s.position(body), (len(angles), 1))
    out[:, 2] -= rod * np.cos(angles)
    # A positive turn about x swings a hanging body to +y, about y to -x.
    if hung.hinge == "x":
        out[:, 1] += rod * np.sin(angles)
    else:
        out[:, 0] -= rod * np.sin(angles)
    return out


def pendulum_swings(s: SetUp) -> Prediction:
    """`rigid.swing_angle`: finite amplitude, undamped, a solid ball on a massless rod."""
    rod, amplitude, small = _swing(s, "ball")
    point = rigid.swing_period(rigid.small_period(rod), amplitude)
    return _made(
        "pendulum_swings", s,
        {
            "small_period": Number(small, "s", "of small swings"),
            "period": Number(rigid.swing_period(small, amplitude), "s", "of these"),
            "point_period": Number(point, "s", "of a point in place of the solid ball"),
            "energy_loss": Number(0.0, "1", "of the whole record"),
        },
        "ball",
        lambda times: hung_position(s, "ball", rigid.swing_angle(times, small, amplitude)),
        s.duration,
    )  # fmt: skip


def cradle_transfers(s: SetUp) -> Prediction:
    """Equal balls exchange their speeds: the last swings while the first rests, and in turn.

    Lossless; what the stated restitution asks for instead stands beside it as numbers.
    """
    length, amplitude, small = _swing(s, "ball_1")
    period = rigid.swing_period(small, amplitude)
    balls = sum(b.translation == "pivot" for b in s.card.bodies.values())
    e = s.number("ball_1", "restitution")
    lossless = "" if e == 1 else "lossless"

    def at(times: F8) -> F8:
        angle = rigid.swing_angle(np.asarray(times, np.float64), small, amplitude)
        beyond = np.where(np.sign(angle) == math.copysign(1, amplitude), 0.0, angle)
        return hung_position(s, "ball_5", beyond)

    return _made(
        "cradle_transfers", s,
        {
            "speed": Number(
                length * rigid.swing_speed(small, amplitude, 0.0), "m/s", "of its centre at impact"
            ),
            "small_period": Number(small, "s", "of small swings"),
            "period": Number(period, "s", "of these"),
            "impact": Number(period / 4, "s", "first impact"),
            "lsd": Number(period / 2, "s", "longest stationary duration", lossless),
            "mte_first": Number(100.0, "%", "momentum transfer", lossless),
            "mte_of_restitution": Number(
                100 * chain_transfer(e, balls), "%",
                "one impact after another, stated restitution",
            ),
        },
        "ball_5", at, s.duration,
    )  # fmt: skip


def wall_is_struck(s: SetUp) -> Prediction:
    """A swing until the ball meets the wall's face."""
    _, amplitude, small = _swing(s, "ball")
    wall, ball = s.shape("wall", Bricks), s.shape("ball", Sphere)
    rod = s.rod("ball")
    pivot = s.position("ball")
    face = min(wall.columns) - wall.size[0] / 2 - ball.diameter / 2
    # It starts on the other side of the pivot: the angle about +y is negative at the wall.
    angle = -math.asin((face - pivot[0]) / rod)
    contact = rigid.swing_time(amplitude, angle, small)
    speed = rod * rigid.swing_speed(small, amplitude, angle)
    return _made(
        "wall_is_struck", s,
        {
            "contact": Number(contact, "s", "first contact"),
            "speed": Number(speed, "m/s", "of the ball then"),
            "height": Number(float(pivot[2]) - rod * math.cos(angle), "m", "z of its centre then"),
        },
        "ball",
        lambda times: hung_position(s, "ball", rigid.swing_angle(times, small, amplitude)),
        contact,
    )  # fmt: skip
